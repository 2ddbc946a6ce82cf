"""``luciole compile``: write a network as C99, for machines without Python.

The header and the source file hold the kernels that the network needs, its constants, and one
function to call. They allocate no memory and need no library.

  luciole compile digits.circle -o firmware --target cortex-m0plus --input bytes \\
          --preprocess "(x - 4.884) / 6.017" --check digits.npz:x_test
"""

from __future__ import annotations

import argparse
import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import luciole
from luciole.ir import LucioleError
from luciole.tools.common import console
from luciole.tools.common.command import (
    FAILED,
    FINE,
    UsageError,
    a_model,
    add_common,
    add_data_bounds,
    add_preprocess,
    check_without_data,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    from luciole.compiler import CompileOptions, Program
    from luciole.compiler.check import Agreement
    from luciole.compiler.sizes import Measured
    from luciole.ir import Array, Model

_TARGETS = (
    "portable, native, cortex-m0plus, -m3, -m4, -m7, -m55, rv32imc, aarch64, x86-64-v2, -v3, -v4"
)

_MOST_NAMES = 3
"""Functions of libraries that are named."""


def main(argv: Sequence[str] | None = None, program: str = "luciole compile") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "-o", "--output-folder", required=True, metavar="DIR", help="the folder of the files"
    )
    parser.add_argument(
        "--name", help="the prefix of functions and files (default: the model's file name)"
    )
    parser.add_argument(
        "--target",
        metavar="MACHINE",
        help=f"what it is for: {_TARGETS} (default: portable, with --library native)",
    )
    _add_ends(parser)
    parser.add_argument(
        "--arena",
        default="static",
        choices=("static", "caller"),
        help="memory for tensors: static, or given with each call",
    )
    parser.add_argument(
        "--unpack",
        action="store_true",
        help="keep weights of up to 4 bits in flash as bytes, and not as codes that are unpacked "
        "while it runs; --library does so too",
    )
    _add_files(parser)
    parser.add_argument(
        "--check",
        metavar="DATA",
        help="compile for this machine, run on these records, and compare with the interpreter",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="check with the first N records")
    add_data_bounds(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Declare options for what is written beside the network or around it."""
    parser.add_argument(
        "--library",
        action="store_true",
        help="also make NAME.so with this machine's compiler, for luciole.Compiled",
    )
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="also write NAME_test.c: records, expected results, and main",
    )
    parser.add_argument(
        "--project",
        choices=("cmake", "makefile", "microbit", "arduino", "zephyr"),
        help="write a project that builds the network and runs its self test: PASS or FAIL",
    )


def _add_ends(parser: argparse.ArgumentParser) -> None:
    """Declare options for the inputs and outputs of callers."""
    parser.add_argument(
        "--input",
        default="model",
        choices=("model", "bytes", "float", "quantized"),
        help="what callers give: the model's own type (default), or unsigned bytes before "
        "--preprocess",
    )
    parser.add_argument(
        "--output",
        default="model",
        choices=("model", "float", "quantized", "fixed", "class"),
        help="what callers get: the model's own type (default; machines without floats get fixed "
        "point where there is some), fixed point before a softmax, or the largest score's number",
    )
    add_preprocess(parser)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.files import write_folder
    from luciole.importers import load

    if arguments.project and arguments.self_test:
        raise UsageError("--project has a self test of its own: leave --self-test out")
    _check_target(arguments)
    _check_records(arguments)
    model = load(arguments.model)
    program = _compiled(arguments, model)
    tested, agreement = _tested(arguments, model, program)
    network = {} if arguments.project else program.files
    write_folder(Path(arguments.output_folder), {**network, **tested}, UsageError)
    _tell(arguments, program, network or tested, agreement)
    return FINE if agreement is None or agreement.holds else FAILED


def _check_target(arguments: argparse.Namespace) -> None:
    """Refuse a machine that is not that of the project's board. Raises UsageError."""
    from luciole.compiler.projects.layouts import TARGETS as PROJECT_TARGETS

    own = PROJECT_TARGETS.get(arguments.project)
    if own is not None and arguments.target not in (None, own):
        text = f"--project {arguments.project} is for {own}, found --target {arguments.target}"
        raise UsageError(f"{text}: leave --target out")


def _check_records(arguments: argparse.Namespace) -> None:
    """Refuse options of records, and preprocessing, where there is nothing that they speak of.
    Raises UsageError.
    """
    from luciole.compiler.options import BYTES

    if arguments.check is not None:
        return
    check_without_data(arguments, "limit", needs="--check DATA")
    if arguments.preprocess is not None and arguments.input != BYTES:
        raise UsageError("--preprocess goes with --input bytes or --check DATA")


def _compiled(arguments: argparse.Namespace, model: Model) -> Program:
    """Compile as the options say. Raises UsageError for what does not suit the model."""
    from luciole.compiler import compile_model
    from luciole.compiler.options import OptionError

    try:
        return compile_model(model, _options(arguments, model), _origin(arguments.model))
    except OptionError as error:
        raise UsageError(str(error)) from None


def _options(arguments: argparse.Namespace, model: Model) -> CompileOptions:
    from luciole.compiler import CompileOptions
    from luciole.compiler.projects.layouts import TARGETS as PROJECT_TARGETS
    from luciole.compiler.targets import NATIVE, PORTABLE
    from luciole.tools.data.preprocess import transforms_of

    text = arguments.preprocess or ""
    transforms = transforms_of(text, model.graph) if text else ()
    name = _name_of(arguments.model) if arguments.name is None else arguments.name
    usual = NATIVE if arguments.library else PROJECT_TARGETS.get(arguments.project, PORTABLE)
    target = arguments.target or usual
    return CompileOptions(
        name,
        arguments.input,
        arguments.output,
        transforms,
        text,
        target,
        arguments.arena,
        arguments.unpack or arguments.library,
    )


def _name_of(path: str) -> str:
    """Make a name of a file's."""
    from luciole.compiler.options import C_HEADERS

    plain = re.sub(r"[^A-Za-z0-9]+", "_", Path(path).stem).strip("_")[:40]
    return plain if plain[:1].isalpha() and plain not in C_HEADERS else f"model_{plain}"[:40]


def _origin(path: str) -> str:
    """Name the file that a program comes from."""
    begun = f"luciole {luciole.__version__} from {Path(path).name}"
    if not Path(path).is_file():
        return begun
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    return f"{begun} (sha256 {digest}...)"


def _tested(
    arguments: argparse.Namespace, model: Model, program: Program
) -> tuple[dict[str, bytes | str], Agreement | None]:
    """Run the steps that need this machine's compiler: check, and make the files of library and
    self test.
    """
    from luciole.compiler import Compiled
    from luciole.compiler.host import library_of
    from luciole.files import write_file

    made_files: dict[str, bytes | str] = {}
    if not any((arguments.check, arguments.library, arguments.self_test, arguments.project)):
        return made_files, None
    name, library = program.options.name, library_of(program)
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / f"{name}.so"
        write_file(file, library)
        compiled, records, agreement = Compiled(file), None, None
    if arguments.check:
        records, agreement = _checked(arguments, model, program, compiled)
    if arguments.library:
        made_files[f"{name}.so"] = library
    if arguments.self_test:
        made_files[f"{name}_test.c"] = _self_test(program, compiled, records, agreement)
    if arguments.project:
        test = _self_test(program, compiled, records, agreement, f"{name}_test")
        made_files |= _project(arguments.project, program, test)
    return made_files, agreement


def _project(kind: str, program: Program, test: str) -> dict[str, str]:
    """Write a project. Raises UsageError for a name that it has for a file of its own."""
    from luciole.compiler.options import OptionError
    from luciole.compiler.projects.layouts import project_files

    try:
        return project_files(kind, program, test)
    except OptionError as error:
        raise UsageError(str(error)) from None


def _self_test(
    program: Program,
    compiled: Any,
    records: dict[str, Array] | None,
    agreement: Agreement | None,
    entry: str = "main",
) -> str:
    from luciole.compiler.self_test import random_records, self_test

    records = records or random_records(program)
    checked = None if agreement is None else agreement.text()
    return self_test(program, compiled, records, entry=entry, checked=checked)


def _checked(
    arguments: argparse.Namespace, model: Model, program: Program, compiled: Any
) -> tuple[dict[str, Array], Agreement]:
    """Run records through the program and the interpreter; return them as the program takes
    them.
    """
    from luciole.compiler.check import compare
    from luciole.compiler.options import BYTES
    from luciole.tools.data import asked_data

    real = asked_data(arguments, model.graph, arguments.check, limit=arguments.limit).records
    records = _bytes(arguments, model) if program.options.input == BYTES else real
    return records, compare(program, compiled, model, records, real)


def _bytes(arguments: argparse.Namespace, model: Model) -> dict[str, Array]:
    """Read the records as bytes, before preprocessing. Raises UsageError where they are none."""
    import numpy as np

    from luciole.ir import TensorType
    from luciole.tools.data import Bounds, load_data

    graph, copies = model.graph.clone()
    for value in model.graph.inputs:
        copies[value].dtype, copies[value].quantization = TensorType.FLOAT32, None
    bounds = Bounds.of(arguments)
    data = load_data(arguments.check, graph, limit=arguments.limit, preprocess=None, bounds=bounds)
    for name, array in data.records.items():
        if not (array == np.clip(np.rint(array), 0, 255)).all():
            raise UsageError(f"--input bytes: {name!r} has more than whole numbers from 0 to 255")
    return {name: array.astype(np.uint8) for name, array in data.records.items()}


def _tell(
    arguments: argparse.Namespace,
    program: Program,
    written: Iterable[str],
    agreement: Agreement | None,
) -> None:
    folder, name, measured = Path(arguments.output_folder), program.options.name, _measured(program)
    if arguments.json:
        checked = None if agreement is None else vars(agreement) | {"holds": agreement.holds}
        files = [str(folder / file) for file in written]
        calls = {"calls": len(program.calls), "check": checked}
        console.print_json({"name": name, "files": files, **_sizes(program, measured), **calls})
        return
    pair = f"{folder / name}.c and {name}.h"
    place = f"the {arguments.project} project {folder}" if arguments.project else pair
    console.show(f"{name}: {len(program.calls)} calls, written to {place}")
    for line in _size_lines(program, measured):
        console.show(line)
    if agreement is not None:
        console.show(f"  check  {agreement.text()}")
    if arguments.project:
        _show_project(arguments.project, folder, program, measured)


def _show_project(kind: str, folder: Path, program: Program, measured: Measured | None) -> None:
    """Print the command that comes next, and a warning where the board has too little memory."""
    from luciole.compiler.projects.layouts import memory_of, next_step

    console.show(f"  next   {next_step(kind, str(folder), program.options.name)}")
    code = 0 if measured is None else (measured.object_bytes or 0) - program.table_bytes
    stack = None if measured is None or measured.stack is None else measured.stack.bytes
    needs = {
        "FLASH": program.table_bytes + max(code, 0),
        "RAM": program.arena_bytes + program.state_bytes + (stack or 0),
    }
    for memory, size in memory_of(kind).items():
        if needs[memory] > size:
            text = console.size_text
            console.say(
                f"luciole: warning: the network alone takes {text(needs[memory])} of {memory}, "
                f"the {kind} has {text(size)}: it will not run there"
            )


def _measured(program: Program) -> Measured | None:
    """Measure with the target's compiler; what is written is right without it, too."""
    from luciole.compiler.sizes import measure

    try:
        return measure(program)
    except LucioleError as error:
        console.say(f"sizes and stack are not measured: {error}")
        return None


def _sizes(program: Program, measured: Measured | None) -> dict[str, object]:
    """Collect bytes of flash and of memory, and the compiler that measured them; None for what
    nobody knows.
    """
    size = None if measured is None else measured.object_bytes
    stack = None if measured is None else measured.stack
    return {
        "table_bytes": program.table_bytes,
        "code_bytes": None if size is None else size - program.table_bytes,
        "arena_bytes": program.arena_bytes,
        "state_bytes": program.state_bytes,
        "stack_bytes": None if stack is None else stack.bytes,
        "stack_outside": None if stack is None else stack.outside,
        "compiler": None if measured is None else measured.compiler,
    }


def _size_lines(program: Program, measured: Measured | None) -> Iterator[str]:
    """List the sizes of a program, and the compiler that they hold for."""
    sizes, text = _sizes(program, measured), console.size_text
    code = sizes["code_bytes"]
    of_code = f" + {text(code)} code" if isinstance(code, int) else ""
    yield f"  flash  {text(program.table_bytes)} tables{of_code}"
    state = f"{program.state_bytes} bytes state + " if program.is_stateful else ""
    yield f"  RAM    {program.arena_bytes} bytes arena + {state}{_stack_text(program, measured)}"
    if measured is not None:
        yield f"  by     {measured.compiler}"


def _stack_text(program: Program, measured: Measured | None) -> str:
    """Return how deep the stack is, and which calls are not counted."""
    if measured is None:
        return f"stack (not known: {program.options.machine.compiler} is missing or fails)"
    if measured.stack is None:
        return "stack (GCC tells how much, from version 10 on)"
    if measured.stack.bytes is None:
        return "stack without a bound"
    outside = measured.stack.outside
    names = ", ".join(outside) if len(outside) <= _MOST_NAMES else f"{len(outside)} library calls"
    return f"{measured.stack.bytes} bytes stack{f', and that of {names}' if outside else ''}"
