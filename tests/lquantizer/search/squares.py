"""Work for workers that costs them nothing, in a module that they import in no time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from luciole.lquantizer.search.runners import Task, Work


class Squares:
    """Squares numbers; a worker that gets -1 dies the first time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> Squares:
        return self

    def work(self, task: Task) -> int:
        number = int(task["number"])
        if number < 0 and not (self.folder / str(number)).exists():
            (self.folder / str(number)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 99:
            raise ValueError("no square")
        return number * number


class Begin:
    """Gives the work, as what is sent to workers does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> Work:
        return Squares(self.folder).work
