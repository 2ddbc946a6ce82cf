"""Write one network in three schemes, and judge each file by right answers."""

from __future__ import annotations

from pathlib import Path

from digits import MODEL, images, labels

import luciole

for scheme, file in (
    ("int8", "int8.tflite"),
    ("w4a8", "w4a8.tflite"),
    ("levels:w2a2", "w2a2.circle"),
):
    result = luciole.quantize(MODEL, images("train"), scheme=scheme)
    luciole.save(result.model, file)
    right = luciole.evaluate(file, images("test"), labels("test")).top1
    print(f"{scheme:12} {Path(file).stat().st_size:7,} bytes  {right:.1%} right")
