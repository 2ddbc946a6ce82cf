"""``luciole quantize``: give a model's layers fewer bits, learned levels or uniform integers."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.tools.quantizing.program import quantizer

_EXAMPLES = """examples:
  luciole quantize net.tflite -o q.tflite --data train.npz:x_train
  luciole quantize net.tflite -o q.tflite --scheme int8 --data train.npz:x_train
  luciole quantize net.tflite -o q.tflite --scheme dynamic
  luciole quantize net.tflite -o q.tflite --scheme int:w4a8 --data train.npz:x_train --tune 3
  luciole quantize net.tflite -o q.circle --scheme levels:w2a4 --data train.npz:x_train
  luciole quantize net.tflite -o q.circle --scheme minifloat --search --data train.npz:x_train
  luciole quantize net.tflite -o q.tflite --config formats.json --data train.npz:x_train
  luciole quantize net.tflite --scheme int:w4a8 --data train.npz:x_train --sensitivity
  luciole quantize q.tflite -o floats.tflite --simulate
  luciole quantize q.tflite -o u.tflite --requantize uint8
"""


def main(argv: Sequence[str] | None = None, program: str = "luciole quantize") -> int:
    """Run the program."""
    return quantizer(argv, program, __doc__ or "", _EXAMPLES)
