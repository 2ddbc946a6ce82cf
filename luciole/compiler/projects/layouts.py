"""The layouts of projects: which files stand where.

Each is the network, its self test, and a few files from ``templates``, in which ``@NAME@`` stands
for the network's name.
"""

from __future__ import annotations

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


def project_files(kind: str, program: Program, self_test: str) -> dict[str, str]:
    """Write all files of a project, by their paths in it. Raises OptionError for a network that is
    called as one of the project's own files.
    """
    name = program.options.name
    contents = {**program.files, f"{name}_test.c": self_test}
    written = {f"{SOURCES.get(kind, '')}{file}": text for file, text in contents.items()}
    for path, template in TEMPLATES[kind].items():
        text = files("luciole.compiler.projects").joinpath("templates", template)
        if path in written:
            raise OptionError(f"name {name!r}: a {kind} project has a file {path} of its own")
        written[path] = text.read_text(encoding="utf-8")
    return {_named(path, name): _named(text, name) for path, text in written.items()}


def _named(text: str, name: str) -> str:
    return text.replace("@NAME@", name)
