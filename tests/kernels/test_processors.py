"""Kernels compiled for processors with fewer registers and instructions give the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from luciole.ir import Array
from luciole.ir.ops.elementwise_unary import Exp
from tests.support import one_op, run_native

PROGRAM = """
import sys
import numpy as np
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.kernels.jit.processor import features, vector_registers
from tests.kernels.test_processors import powers
from tests.ops.int8_support import INT16, SAMPLES, layer
from tests.ops.test_conv_2d import check_hybrid
from tests.ops.test_hybrid import check_sample
from tests.ops.test_int8_layers_native import check
from tests.support import one_op, run_native, run_reference

assert vector_registers() == 8
assert "avx2" in features()
assert "avx512f" not in features()
rng = np.random.default_rng(0)
for cls, shape, filter in (
    (Conv2D, (1, 7, 9, 5), (21, 3, 3, 5)),
    (DepthwiseConv2D, (1, 7, 9, 21), (1, 3, 3, 21)),
):
    arrays = [rng.normal(size=s).astype(np.float32) for s in (shape, filter, (21,))]
    options = {"stride_h": 1, "stride_w": 1}
    (want,) = run_reference(cls, arrays, (1, 2), **options)
    got = run_native(one_op(cls, arrays, (1, 2), **options), arrays[0])
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
check_hybrid(rng.normal(size=(1, 5, 6, 3)).astype(np.float32), (5, 3, 3, 3), **options)
for sample in (SAMPLES[2], SAMPLES[10]):
    check_sample(sample)
for cls, shape, filter, options in (SAMPLES[0], SAMPLES[10], SAMPLES[17]):
    check(layer(cls, shape, filter, 1, **options))
    check(layer(cls, shape, filter, 1, INT16, bias=np.int64, **options))
np.save(sys.argv[1], powers())
"""


def powers() -> Array:
    """e^x where it is denormal, ordinary, infinite and NaN: processors scale it in two ways."""
    x = np.append(np.linspace(-110, 95, 4000), [np.inf, -np.inf, np.nan]).astype(np.float32)
    return run_native(one_op(Exp, [x]), x)


@pytest.mark.parametrize("name", ["x86-64-v3"])
def test_an_older_processor_gives_the_same(name: str, tmp_path: Path) -> None:
    """To the last bit where the same is computed in another way."""
    environment = {**os.environ, "LUCIOLE_CPU": name}
    path = tmp_path / "powers.npy"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(path), powers())


NEWER = """
from luciole.kernels.jit.vector import bitsliced, sorting
from luciole.kernels.layers.levels import counting, level_sums, tiles
from luciole.kernels.layers.levels.sorting import kernel
from luciole.kernels.layers.levels.tiling import Tiling

assert bitsliced.WIDE and sorting.COMPRESSES
shape = Tiling.of(3, 3, 690, 1).shape
ending = (0.0, 6.0, 1)
for made in (
    level_sums.kernel(3, level_sums.VECTORS[3], level_sums.TOGETHER[3], *ending),
    kernel(8),
    counting.kernel(1, *shape, *ending),
    tiles.kernel(2, *shape, *ending),
):
    name, code = made.compile()
    assert code
"""
"""What no machine without these instructions can run, but compile."""


def test_kernels_of_a_newer_processor_compile() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("needs an x86-64 processor")
    features = ["f", "bw", "vl", "dq", "cd", "vbmi", "vbmi2", "vpopcntdq", "vnni", "bitalg"]
    given = ",".join([*(f"+avx512{name}" for name in features), "+gfni,+avx2,+fma,+bmi2,+popcnt"])
    environment = {**os.environ, "NUMBA_CPU_NAME": "znver5", "NUMBA_CPU_FEATURES": given}
    done = subprocess.run(
        [sys.executable, "-c", NEWER], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
