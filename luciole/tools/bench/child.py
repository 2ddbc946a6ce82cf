"""The process that a runtime of another project runs in: it answers requests until there are none.

Requests and answers are pickles through the pipes of ``luciole.tools.bench.process``; an answer is
a refusal, empty for none, and what was found.
"""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from luciole.ir import Array, LucioleError
from luciole.tools.bench.peers import open_here
from luciole.tools.bench.runtime import Runtime, Shape
from luciole.tools.common.timing import Here, Limits


class Served:
    """A runtime, and the requests that it answers."""

    runtime: Runtime

    def __init__(self) -> None:
        self.current: list[Array] = []
        self.calls: dict[str, Here] = {}

    def open(self, kind: str, path: Path, threads: int, shapes: Sequence[Shape]) -> Any:
        """Load a file: inputs, outputs, and how long that took."""
        self.runtime = runtime = open_here(kind, path, threads, shapes)
        copying = runtime.copying(self.current)
        self.calls = {"invoke": Here(runtime.invoke), "copies": Here(copying)}
        gc.collect()
        gc.disable()  # what is timed here is not to wait for it
        return runtime.inputs, runtime.outputs, dict(runtime.phases)

    def feed(self, arrays: list[Array]) -> None:
        """Copy arrays to where runs take them."""
        self.current[:] = arrays
        self.runtime.feed(arrays)

    def invoke(self) -> None:
        """Run."""
        self.runtime.invoke()

    def fetch(self) -> list[Array]:
        """Return copies of the results."""
        return self.runtime.fetch()

    def run_records(self, records: list[Array]) -> list[Array]:
        """Run records one by one."""
        return self.runtime.run_records(records)

    def warm_up(self, call: str, limits: Limits) -> int:
        """Run until it is warm; how many runs make a sample."""
        return self.calls[call].warm_up(limits)

    def until_warm(self, call: str) -> None:
        """Do the untimed runs of a turn."""
        self.calls[call].until_warm()

    def turn(self, call: str, size: int) -> list[float]:
        """Take the samples of a turn."""
        return self.calls[call].turn(size)


_REQUESTS = {
    "open": Served.open,
    "feed": Served.feed,
    "invoke": Served.invoke,
    "fetch": Served.fetch,
    "run_records": Served.run_records,
    "warm_up": Served.warm_up,
    "until_warm": Served.until_warm,
    "turn": Served.turn,
}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more of them."""
    served = Served()
    while True:
        try:
            what, arguments = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(served, what, arguments), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _answer(served: Served, what: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "", _REQUESTS[what](served, *arguments)  # type: ignore[operator]  # as asked for
    except LucioleError as error:
        return str(error), None
    except Exception as error:  # whatever another project raises
        return f"{served.runtime.name}: {error}", None


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library may print must not get among the answers
    with open(0, "rb", closefd=False) as asked:
        serve(asked, replies)
