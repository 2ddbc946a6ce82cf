"""``luciole cache``: show where compiled kernels are kept, and carry them to other machines.

  luciole cache                                # where they lie, how many, how large
  luciole cache export kernels.zip             # all of them, into an archive
  luciole cache export kernels.zip --models net.circle   # those that models need
  luciole cache import kernels.zip             # into the cache of this user

An archive fits the same version of luciole, numba, llvmlite and Python, and the processor that its
kernels were compiled for; LUCIOLE_CPU=x86-64-v3 compiles for a class of processors. Kernels are
machine code, which is executed: import only what you would run as a program.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from luciole.schema.errors import LucioleError
from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    parser_for,
    run_program,
)


def main(argv: Sequence[str] | None = None, program: str = "luciole cache") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "verb", nargs="?", choices=tuple(_VERBS), metavar="VERB", help="export or import"
    )
    parser.add_argument("file", nargs="?", type=Output, metavar="FILE", help="the archive")
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="MODEL",
        help=f"export what these need, and compile what is missing: each {a_model()}",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    if (arguments.verb is None) != (arguments.file is None):
        raise UsageError(f"{arguments.verb} takes a FILE, the archive")
    if arguments.models and arguments.verb != "export":
        raise UsageError("--models goes with export")
    _VERBS.get(arguments.verb, _show)(arguments)
    return FINE


def _show(arguments: argparse.Namespace) -> None:
    """Print the folders that kernels are read from."""
    from luciole.kernels.jit import ahead, cache, classes

    own = cache.kernel_cache()
    folders = [{"folder": str(own.folder or ""), **_counted(own), "fault": own.fault}]
    made = [{"folder": str(f.folder), **_counted(f)} for f in ahead.ahead_folders()]
    if arguments.json:
        fits = list(classes.names())
        console.print_json({"cache": folders[0], "ahead": made, "classes": fits})
        return
    for name, folder in (("cache", folders[0]), *(("ahead", f) for f in made)):
        size = console.size_text(folder["bytes"])
        console.show(f"{name}  {folder['kernels']} kernels, {size}, in {folder['folder']}")
    console.show(f"class  {' and '.join(classes.names()) or 'none of those made ahead'}")
    if own.fault:
        console.say(f"luciole: {own.complaint}")


def _counted(folder: Any) -> dict[str, Any]:
    kernels, size = folder.contents()
    return {"kernels": kernels, "bytes": size}


def _export(arguments: argparse.Namespace) -> None:
    """Write an archive."""
    from luciole.files import check_writable, write_file
    from luciole.kernels.jit import archive, cache

    check_writable(arguments.file)
    own = cache.kernel_cache()
    names = _compiled(arguments) if arguments.models else own.names()
    content, count = archive.archive_of(names)
    if not count:
        raise LucioleError(f"{own.folder} holds no kernels: luciole warmup MODEL compiles some")
    size = write_file(arguments.file, content)
    _report(arguments, "exported", count, size)


def _compiled(arguments: argparse.Namespace) -> list[str]:
    """Compile the kernels of models; returns the files that hold them."""
    from luciole.importers import load
    from luciole.kernels.jit import objects
    from luciole.tools.warmup import compile_all

    compile_all([load(path) for path in arguments.models], arguments.json)
    return sorted(objects.used)


def _import(arguments: argparse.Namespace) -> None:
    """Read an archive, and put its files into the cache once all are known to be whole."""
    from luciole.kernels.jit import archive

    content = Path(arguments.file).read_bytes()
    try:
        files = archive.files_of(content)
    except LucioleError as error:
        raise LucioleError(f"{arguments.file} {error}") from None
    archive.put_into_cache(files)
    _report(arguments, "imported", len(files), len(content))


def _report(arguments: argparse.Namespace, done: str, count: int, size: int) -> None:
    from luciole.kernels.jit import cache

    folder = str(cache.kernel_cache().folder)
    if arguments.json:
        told = {"file": arguments.file, "folder": folder, "kernels": count, "bytes": size}
        console.print_json(told)
        return
    kernels = f"{count} kernel{'s' if count != 1 else ''}"
    where = f"{arguments.file}, {console.size_text(size)}"
    ends = f"to {where}" if done == "exported" else f"from {where}, to {folder}"
    console.show(f"{done}  {kernels} {ends}")


_VERBS = {"export": _export, "import": _import}
