"""What is fuzzed: each subject is a module that makes cases and runs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

SUBJECTS = {
    "models": "tests.fuzz.cases",
    "npz": "tests.fuzz.data.npz",
    "hdf5": "tests.fuzz.data.hdf5",
    "lists": "tests.fuzz.data.lists",
    "keras": "tests.fuzz.data.keras",
    "recipes": "tests.fuzz.data.recipes",
    "onnx": "tests.fuzz.data.onnx_files",
    "rewrite": "tests.fuzz.rewritten",
}


class Subject(Protocol):
    """A module that makes cases and runs them: the same by number whatever ran before."""

    __name__: str
    PER_MODEL: int
    """Cases that start from the same file."""

    def make(self, seed: int, number: int, /) -> Any:
        """The case of that number, with ``what`` it is about and the file's ``content``."""

    def run(self, case: Any, seed: int, /) -> str:
        """How a case ended; raises what must not be."""


def subject(name: str) -> Subject:
    """The module of a subject."""
    return cast(Subject, import_module(SUBJECTS[name]))
