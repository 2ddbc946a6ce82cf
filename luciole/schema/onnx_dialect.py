"""Name what luciole adds to ONNX files: a domain of operators, and entries of the metadata."""

from __future__ import annotations

OPSET, IR_VERSION = 18, 8
"""What files are written as unless something newer is asked for."""

PRODUCER = DOMAIN = "luciole"
"""Operators with learned levels: their bodies of standard operators are in the file."""

SIGNATURES = "luciole.signatures"
"""Metadata: JSON, a list of {"key", "inputs": {name: number of the graph's input}, "outputs"}."""

METADATA = "luciole.metadata."
"""Metadata: what begins so is an entry of the model's own metadata, its bytes in base64."""
