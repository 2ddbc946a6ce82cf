"""What git says that changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def changed() -> list[str]:
    """List the files that differ from the last commit; where none does, those that it changed."""
    status = _git("status", "--porcelain", "--untracked-files=all", "--no-renames")
    return [line[3:] for line in status] or _git("diff", "--name-only", "HEAD~1")


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
