"""Models run in onert, ONE's runtime, where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from luciole.ir import Array

needs_onert = pytest.mark.skipif(
    importlib.util.find_spec("onert") is None, reason="needs the onert package"
)
RUN = """
import sys
import numpy as np
from onert import infer
model, given, result = sys.argv[1:]
np.save(result, infer.session(model).infer([np.load(given)])[0])
"""


def onert(model: Path, x: Array) -> tuple[Array | None, str]:
    """onert's result, or None and its message; a crash's message is its exit code."""
    given, result = model.with_suffix(".x.npy"), model.with_suffix(".y.npy")
    np.save(given, x)
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, (model, given, result))],
        capture_output=True,
        text=True,
        cwd=model.parent,
    )
    if result.exists():
        return np.load(result), ""
    first = next((n for n in done.stderr.splitlines() if n.startswith("Error during")), "")
    return None, first or f"exit code {done.returncode}"
