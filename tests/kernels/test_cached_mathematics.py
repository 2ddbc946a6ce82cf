"""Kernels that call the C library's mathematics, run by a process that only reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.schema.enums import ActivationFunctionType
from tests.support import one_op
from luciole.interpreter import Interpreter
x = np.ones((32, 2), np.float32)
arrays = [x, np.full(4, 0.01, np.float32), np.full((4, 1), -1, np.int32), None,
          np.array([[1, 4]], np.int32)]
model = one_op(BCQFullyConnected, arrays, (1, 2, 4), weights_hidden_size=32,
               activation=ActivationFunctionType.TANH)
interpreter = Interpreter(model)
y = interpreter.run(x)["y0"]
assert interpreter.plan.steps[0].native is not None
assert np.allclose(y, np.tanh(0.32)), y
"""


def test_a_cached_kernel_finds_the_c_library(tmp_path: Path) -> None:
    environment = {**os.environ, "LUCIOLE_CACHE": str(tmp_path)}
    root = Path(__file__).parent.parent.parent
    written: list[dict[Path, int]] = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        written.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.o")})
    assert written[0]
    assert written[0] == written[1], "the second process compiles nothing"
