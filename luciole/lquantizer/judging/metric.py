"""Load a metric of the user's own: a function that says how good a network's outputs are."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np

from luciole.ir import Array
from luciole.ir.errors import expect
from luciole.lquantizer.errors import QuantizeError

Answers = Array | Mapping[str, Array]
"""Outputs of networks, real numbers [records, ...]: of the only output, or of several by name."""
Function = Callable[[Any, Any], object]
"""Takes answers and labels, or where there are no labels the float network's answers, and returns
a number: larger is better."""
Source = str | Function
"""``FILE.py:function``, or a function."""


class Metric:
    """A function of a name that measures answers. It can be sent to other processes: one of a file
    goes as the file's text, one from Python by its name.
    """

    def __init__(self, function: Function, name: str, file: tuple[str, str] | None = None) -> None:
        self.name, self._function, self._file = name, function, file

    @classmethod
    def of(cls, source: Source | Metric) -> Metric:
        """Take a function, or load one. Raises QuantizeError for a file that cannot be read or
        run, and where it has no such function.
        """
        if isinstance(source, Metric):
            return source
        if callable(source):
            return cls(source, getattr(source, "__name__", type(source).__name__))
        expect(source, str, "metric: a function or FILE.py:function")
        path, colon, name = source.rpartition(":")
        if not colon or not path or not name.isidentifier():
            raise QuantizeError(f"metric {source!r}: FILE.py:function is needed")
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise QuantizeError(f"metric {source}: {path} cannot be read: {why}") from None
        return cls.loaded(path, text, name)

    @classmethod
    def loaded(cls, path: str, text: str, name: str) -> Self:
        """Run a file's text and take a function of it."""
        source = f"{path}:{name}"
        module = ModuleType(f"luciole_metric_{sha256(text.encode()).hexdigest()[:12]}")
        module.__file__ = path
        sys.modules[module.__name__] = module  # dataclasses look up the module that they are of
        with _as_one_line(source, path, "cannot be loaded"), _folder_first(path):
            exec(compile(text, path, "exec"), module.__dict__)
        function = vars(module).get(name)
        if not callable(function):
            kind = "nothing" if function is None else type(function).__name__
            raise QuantizeError(f"metric {source}: a function {name} is needed, {kind} is there")
        return cls(function, name, (path, text))

    def __call__(self, answers: Answers, labels: Answers) -> float:
        """Measure answers. Raises QuantizeError where the function raises, or returns something
        else than a finite number.
        """
        path = self._function.__code__.co_filename if hasattr(self._function, "__code__") else ""
        with _as_one_line(self.name, path, "failed"):
            result = self._function(answers, labels)
            number = np.asarray(result)
        if number.ndim or number.dtype.kind not in "biuf" or not np.isfinite(number):
            shown = " ".join(repr(result).split())[:80]
            raise QuantizeError(f"metric {self.name} returned {shown}: a finite number is needed")
        return float(number)

    @property
    def identity(self) -> str:
        """A text that tells this metric from others: a file's content, or the name of a function of
        Python.
        """
        text = self.name if self._file is None else self._file[1]
        return f"{self.name} {sha256(text.encode()).hexdigest()[:16]}"

    def check_sendable(self) -> None:
        """Raise QuantizeError for a function that no other process can find."""
        try:
            pickle.dumps(self)
        except (pickle.PicklingError, AttributeError, TypeError):
            raise QuantizeError(
                f"metric {self.name} cannot be sent to other processes: give FILE.py:function"
            ) from None

    def __reduce__(self) -> tuple[object, ...]:
        """Send the text of a file: other machines need not have it."""
        if self._file is None:
            return Metric, (self._function, self.name)
        return Metric.loaded, (*self._file, self.name)


@contextmanager
def _as_one_line(source: str, path: str, what: str) -> Iterator[None]:
    """Turn an exception of a user's code into one line with its place."""
    try:
        yield
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        if isinstance(error, SyntaxError) and error.filename == path:
            lines.append(error.lineno)
        place = f" in line {lines[-1]}" if lines else ""
        text = " ".join(str(error).split())
        raise QuantizeError(
            f"metric {source} {what}{place}: {type(error).__name__}: {text}"
        ) from None


@contextmanager
def _folder_first(path: str) -> Iterator[None]:
    """Make modules that stand beside a file importable."""
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
