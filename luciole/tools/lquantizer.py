"""``lquantizer``: learn 1 to 4 bit levels for a model's layers from unlabelled data.

``luciole quantize`` is the same program.
"""

from __future__ import annotations

from collections.abc import Sequence

from luciole.tools.quantizing.program import quantizer

_EXAMPLE = """example:
  lquantizer --input-model model.circle --output-model answer.circle \\
             --input-data train.hdf5 --encode-bits 3
"""


def main(argv: Sequence[str] | None = None, program: str = "lquantizer") -> int:
    """Run the program."""
    return quantizer(argv, program, __doc__ or "", _EXAMPLE)
