"""``luciole implant``: put scales, zero points, values and ranges of other tools into a model.

Parameters are as ONE's q-implant reads them: a folder with qparam.json, an object with dtype,
scale, zerop, quantized_dimension and, for constants, value for each tensor by name, and the .npy
files that it names. Ranges are a file of `luciole quantize --save-ranges`: they become the min and
max of tensors, as with ONE's record-minmax; `quantize --ranges-from FILE.circle` reads them.

  luciole implant net.circle -o net.int8.circle --parameters qparams/
  luciole implant net.circle -o net.minmax.circle --ranges ranges.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from luciole.tools.common.command import FINE, UsageError, add_common, parser_for, run_program
from luciole.tools.surgery.common import add_files, opened, write


def main(argv: Sequence[str] | None = None, program: str = "luciole implant") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    add_files(parser)
    parser.add_argument(
        "--parameters", metavar="FOLDER", help="a folder with qparam.json and .npy files"
    )
    parser.add_argument("--ranges", metavar="FILE", help="ranges that calibration saved (JSON)")
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.parameters is None and arguments.ranges is None:
        raise UsageError("say what is put in: --parameters FOLDER, --ranges FILE")
    model = opened(arguments)

    from luciole.implanting import implant

    write(arguments, implant(model, arguments.parameters, ranges=arguments.ranges))
    return FINE
