"""Runtimes of others in processes of their own: what crashes them ends nothing else."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luciole.ir import Array
from luciole.tools.bench.runtime import BenchError, CrashError, Runtime, Shape
from luciole.tools.common.timing import Call, Limits, Timed

_MODULE = "luciole.tools.bench.child"


class RemoteRuntime(Runtime):
    """A runtime of another project, asked through pipes; it is timed where it runs."""

    def __init__(self, kind: str, path: Path, threads: int, shapes: Sequence[Shape]) -> None:
        super().__init__(path)
        self.kind = kind
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        weakref.finalize(self, _end, self._process)
        opened = self.ask("open", kind, path, threads, tuple(shapes))
        self.inputs, self.outputs, phases = opened
        self.phases.update(phases)
        self.invoke = lambda: self.ask("invoke")

    def feed(self, arrays: Sequence[Array]) -> None:
        """Send arrays to where the runtime is, and copy them there."""
        self.ask("feed", list(arrays))

    def fetch(self) -> list[Array]:
        """Return copies of the results of the last run."""
        results: list[Array] = self.ask("fetch")
        return results

    def run_records(self, records: Sequence[Array]) -> list[Array]:
        """Run records one by one where the runtime is."""
        results: list[Array] = self.ask("run_records", list(records))
        return results

    def timed(self, arrays: Sequence[Array]) -> tuple[Call | Timed, Call | Timed]:
        """Make two calls that run, and are timed, on the arrays fed there last."""
        return _There(self, "invoke"), _There(self, "copies")

    def ask(self, what: str, *arguments: Any) -> Any:
        """Send a request and wait for its answer. Raises BenchError where the runtime refuses,
        CrashError when its process ends instead.
        """
        pipes = self._process
        assert pipes.stdin is not None, "it was asked for"
        assert pipes.stdout is not None, "it was asked for"
        try:
            pickle.dump((what, arguments), pipes.stdin, pickle.HIGHEST_PROTOCOL)
            pipes.stdin.flush()
            refusal, answer = pickle.load(pipes.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            doing = "loading it" if what == "open" else "running"
            raise CrashError(self, f"{self.name} {self._end_text()} while {doing}") from None
        if refusal:
            raise BenchError(refusal)
        return answer

    def _end_text(self) -> str:
        """Return words on how the process ended."""
        code = self._process.wait()
        if code >= 0:
            return f"ended with exit code {code}"
        name = signal.strsignal(-code) or f"signal {-code}"
        return f"crashed ({name.lower()})"


@dataclass(frozen=True)
class _There(Timed):
    """A call of a runtime in another process."""

    runtime: RemoteRuntime
    call: str

    def warm_up(self, limits: Limits) -> int:
        """Run the call until it is warm; return how many runs make a sample."""
        return int(self.runtime.ask("warm_up", self.call, limits))

    def until_warm(self) -> None:
        """Do the untimed runs of a turn."""
        self.runtime.ask("until_warm", self.call)

    def turn(self, size: int) -> list[float]:
        """Take the samples of a turn, in nanoseconds for each run."""
        return list(self.runtime.ask("turn", self.call, size))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that nobody asks any more."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
