"""Run what pages print, each page from an empty folder: ``python -m tests.docs_run [PAGES]``.

Files that a page titles are written, ``sh`` blocks run in a shell and ``python`` blocks in one
session for each page, in order; what a ``text`` block shows has to be among the lines that the
command before it printed, but for figures. ``<!-- begins: PAGE -->`` says that a page goes on in
the folder that another one leaves, ``<!-- not run: WHY -->`` that the next block is not run, and
``<!-- page not run: WHY -->`` that none is, and ``<!-- needs: MODULE -->`` that none is where
the module is not installed.

The suite runs programs and Python files in its one process, which has TensorFlow and compiled
kernels already, and starts a shell for other commands alone. Programs that measure time take few
samples there, because figures are not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n+)?"
    r'```(?P<language>\w*)(?: title="(?P<title>[^"\n]*)")?\n'
    r"(?P<body>.*?)^```$",
    re.M | re.S,
)
_BEGINS = re.compile(r"^<!-- begins: (\S+) -->$", re.M)
_NONE_RUNS = re.compile(r"^<!-- page not run: (.+) -->$", re.M)
_NEEDS = re.compile(r"^<!-- needs: (\w+) -->$", re.M)
_ENVIRONMENT = {"MPLBACKEND": "Agg", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
_LONGEST = 600
_FEW_SAMPLES = {"circle-bench": ["--num-runs=3", "--min-secs=0.05", "--warmup-min-secs=0"]}


class Block(NamedTuple):
    """A fenced block: its language, title and contents, why it is not run, and its line."""

    language: str
    title: str | None
    body: str
    why: str | None
    line: int


class Outcome(NamedTuple):
    """A block that ran, failed with a reason, or was not run with one."""

    block: Block
    state: str
    reason: str
    seconds: float


def blocks(text: str) -> Iterator[Block]:
    """List the fenced blocks of a page."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("body"))
        yield Block(found["language"], found["title"], found["body"], found["why"], line)


def masked(line: str) -> str:
    """Return a line of output without its numbers, which differ from machine to machine."""
    return " ".join(re.sub(r"[\d.,]+", "#", line).split())


def not_run(text: str) -> str | None:
    """Return why no block of a page is run, None where they are."""
    none = _NONE_RUNS.search(text)
    if none is not None:
        return none[1]
    missing = [name for name in _NEEDS.findall(text) if find_spec(name) is None]
    return f"{missing[0]} is not installed" if missing else None


def begins_after(text: str) -> str | None:
    """Return the page whose folder a page begins in, None for an empty one."""
    named = _BEGINS.search(text)
    return None if named is None else named[1]


@dataclass
class Session:
    """A folder, the names that Python blocks know, and the lines that were printed last. Commands
    that need no shell are run in this process where it is the ``one_process``.
    """

    folder: Path
    one_process: bool = False
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: set[str] = field(default_factory=set)

    def run(self, block: Block) -> str | None:
        """Run a block. Returns why it failed, None where it did not."""
        if block.title is not None:
            file = self.folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.body, "utf-8")
            return None
        if block.language == "text":
            missing = {masked(line) for line in block.body.splitlines()} - self.printed
            return f"not printed: {sorted(missing)[0]}" if missing else None
        reason, output = self.output(block)
        self.printed = {masked(line) for line in output.splitlines()}
        return reason

    def output(self, block: Block) -> tuple[str | None, str]:
        """Run a block of a shell or of Python. Returns why it failed, and what it printed."""
        if block.language != "sh":
            return self._python(block)
        words = commands_of(block.body) if self.one_process else []
        return self._called(words) if words else self._shell(block)

    def _called(self, commands: Sequence[list[str]]) -> tuple[str | None, str]:
        output, errors = io.StringIO(), io.StringIO()
        with self._inside(output), contextlib.redirect_stderr(errors):
            code = next(filter(None, map(_code_of, commands)), 0)
        failed = f"exit code {code}: {errors.getvalue()[-_LONGEST:]}"
        return (failed if code else None), output.getvalue()

    def _shell(self, block: Block) -> tuple[str | None, str]:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.body],
            cwd=self.folder,
            env=os.environ | _ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        failed = f"exit code {done.returncode}: {done.stderr[-_LONGEST:]}"
        return (failed if done.returncode else None), done.stdout

    def _python(self, block: Block) -> tuple[str | None, str]:
        output = io.StringIO()
        code = "\n" * block.line + block.body
        try:
            with self._inside(output):
                exec(compile(code, "page", "exec"), self.names)
        except Exception as error:  # whatever a page's code raises
            return f"{type(error).__name__}: {error}", output.getvalue()
        return None, output.getvalue()

    @contextlib.contextmanager
    def _inside(self, output: io.StringIO) -> Iterator[None]:
        """Work in the folder, and import and print as a process that was started there."""
        sys.path.insert(0, str(self.folder))
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(output):
                yield
        finally:
            sys.path.remove(str(self.folder))


def commands_of(body: str) -> list[list[str]]:
    """Split the commands of a block into words; none where one of them needs a shell, or is neither
    a program of luciole nor a file of Python.
    """
    lines = body.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.strip()]
    called = all(
        _program(words[0]) or re.search(r"^python3 \w+\.py$", " ".join(words)) for words in commands
    )
    return [] if re.search(r"[$`&|<>;]", body) or not called else commands


@cache
def _program(name: str) -> Callable[[Sequence[str]], int] | None:
    """Find the ``main`` of a command that luciole installs."""
    entries = entry_points(group="console_scripts", name=name)
    return next((e.load() for e in entries if e.value.startswith("luciole.")), None)


def _code_of(words: Sequence[str]) -> int:
    """Run a command in this process. Returns its exit code."""
    main = _program(words[0])
    try:
        if main is not None:
            return main([*words[1:], *_FEW_SAMPLES.get(words[0], ())])
        runpy.run_path(words[1], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception:  # whatever a page's file raises
        traceback.print_exc()
        return 1
    return 0


def run_page(text: str, folder: Path, one_process: bool = False) -> Iterator[Outcome]:
    """Run the blocks of a page in a folder, one after the other."""
    session, none = Session(folder, one_process), not_run(text)
    for block in blocks(text):
        if block.language not in ("sh", "python", "text") and block.title is None:
            continue
        why = "it installs" if "pip install" in block.body else block.why
        why = none or why
        if why is not None:
            yield Outcome(block, "not run", why, 0.0)
            continue
        begun = time.perf_counter()
        reason = session.run(block)
        state = "ok" if reason is None else "failed"
        yield Outcome(block, state, reason or "", time.perf_counter() - begun)


def _run(page: Path, kept: dict[Path, Path], folders: Path) -> int:
    """Run a page, after those that it goes on from. Returns how many of its blocks failed."""
    text = page.read_text("utf-8")
    before, failed = begins_after(text), 0
    first = None if before is None else (page.parent / before).resolve()
    if first is not None and first not in kept:
        failed += _run(first, kept, folders)
    folder = kept[page] = folders / str(len(kept))
    if first is None:
        folder.mkdir()
    else:
        shutil.copytree(kept[first], folder)
    for block, state, reason, seconds in run_page(text, folder):
        name = f"{page.relative_to(ROOT)}:{block.line}"
        print(f"{name:48} {state:8} {seconds:6.1f} s  {reason.strip()[-_LONGEST:]}", flush=True)
        failed += state == "failed"
    return failed


def main(argv: Sequence[str] | None = None) -> int:
    """Run pages, all of them unless some are named. Returns 1 where a block failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs_run", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    named = parser.parse_args(argv).pages
    pages = [page.resolve() for page in named] or sorted((ROOT / "docs").rglob("*.md"))
    kept: dict[Path, Path] = {}
    with tempfile.TemporaryDirectory() as folders:
        failed = sum(_run(page, kept, Path(folders)) for page in pages if page not in kept)
    print(f"{failed} blocks failed in {len(kept)} pages")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
