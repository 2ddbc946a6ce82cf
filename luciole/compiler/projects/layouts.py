"""The layouts of projects: which files stand where.

Each is the network, its self test, and a few files from ``templates``, in which ``@NAME@`` stands
for the network's name, ``@COMPILER@`` and ``@FLAGS@`` for those of its target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

from luciole.compiler.options import OptionError
from luciole.compiler.program import Program

TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "cmake": {"CMakeLists.txt": "cmake.txt", "main.c": "main_stdio.c"},
    "makefile": {"Makefile": "host.mk", "main.c": "main_stdio.c"},
    "microbit": {
        "Makefile": "microbit.mk",
        "microbit.ld": "microbit.ld",
        "board.c": "microbit.c",
        "board.h": "board.h",
        "main.c": "main_board.c",
    },
    "arduino": {"@NAME@/@NAME@.ino": "arduino.ino"},
    "zephyr": {
        "CMakeLists.txt": "zephyr.txt",
        "prj.conf": "zephyr.conf",
        "src/main.c": "main_zephyr.c",
    },
}
"""By project: files, and the templates that they are written from."""

SOURCES = {"arduino": "@NAME@/src/", "zephyr": "src/"}
"""Folders of the network, where that is not the project's own."""

TARGETS = {"microbit": "cortex-m0plus"}
"""What a project's network is for, where that is not any machine."""

NEXT = {
    "cmake": "cmake -S {0} -B {0}/build && cmake --build {0}/build && ctest --test-dir {0}/build",
    "makefile": "make -C {0} test",
    "microbit": "make -C {0}, then copy {0}/@NAME@.hex to the drive MICROBIT; "
    "make -C {0} run is QEMU",
    "arduino": "arduino-cli compile {0}/@NAME@",
    "zephyr": "west build -b BOARD {0}",
}
"""The commands that build a project in a folder ``{0}`` and run it."""


def next_step(kind: str, folder: str, name: str) -> str:
    """Return the command that builds a project and runs its self test."""
    return _named(NEXT[kind].format(folder), name)


def memory_of(kind: str) -> dict[str, int]:
    """Return the bytes of a project's board by memory (FLASH, RAM), as its linker script has them;
    nothing for a project of many boards.
    """
    scripts = [_template(name) for name in TEMPLATES[kind].values() if name.endswith(".ld")]
    lengths = [match for text in scripts for match in _MEMORY.findall(text)]
    return {name: int(kilobytes) * 1024 for name, kilobytes in lengths}


_MEMORY = re.compile(r"^ *([A-Z]+) .*LENGTH = ([0-9]+)K$", re.MULTILINE)


def project_files(kind: str, program: Program, self_test: str) -> dict[str, str]:
    """Write all files of a project, by their paths in it. Raises OptionError for a network that is
    called as one of the project's own files.
    """
    name = program.options.name
    contents = {**program.files, f"{name}_test.c": self_test}
    written = {f"{SOURCES.get(kind, '')}{file}": text for file, text in contents.items()}
    for path, template in TEMPLATES[kind].items():
        if path in written:
            raise OptionError(f"name {name!r}: a {kind} project has a file {path} of its own")
        written[path] = _for_target(_template(template), program)
    return {_named(path, name): _named(text, name) for path, text in written.items()}


def _template(name: str) -> str:
    text = files("luciole.compiler.projects").joinpath("templates", name)
    return text.read_text(encoding="utf-8")


def _for_target(text: str, program: Program) -> str:
    target = program.options.machine
    return text.replace("@COMPILER@", target.compiler).replace("@FLAGS@", target.flags)


def _named(text: str, name: str) -> str:
    return text.replace("@NAME@", name)
