"""Kernels compiled for processors with fewer registers and instructions give the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from luciole.ir import Array
from luciole.ir.ops.elementwise_unary import Exp
from luciole.kernels.jit.choice import parsed, told
from luciole.kernels.jit.processor import has
from tests.support import one_op, run_native

PROGRAM = """
import sys
import numpy as np
from luciole.kernels.jit import processor
if {vnni}:
    processor._own_decisions = lambda: frozenset(["avx2", "avxvnni"])
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from tests.kernels.test_processors import powers
from tests.ops.int8_support import INT16, SAMPLES, layer
from tests.ops.test_hybrid import check_sample
from tests.ops.test_int8_layers_native import check
from tests.support import one_op, run_native, run_reference

assert processor.vector_registers() == 8
assert processor.has("avx2") and not processor.has("avx512f")
for sample in (SAMPLES[2], SAMPLES[10]):
    check_sample(sample)
for cls, shape, filter, chosen in (SAMPLES[0], SAMPLES[10], SAMPLES[17]):
    check(layer(cls, shape, filter, 1, **chosen))
if {vnni}:
    raise SystemExit
for cls, shape, filter, chosen in (SAMPLES[0], SAMPLES[10], SAMPLES[17]):
    check(layer(cls, shape, filter, 1, INT16, bias=np.int64, **chosen))
rng = np.random.default_rng(0)
options = dict(stride_h=1, stride_w=1)
for cls, shape, filter in (
    (Conv2D, (1, 7, 9, 5), (21, 3, 3, 5)),
    (DepthwiseConv2D, (1, 7, 9, 21), (1, 3, 3, 21)),
):
    arrays = [rng.normal(size=s).astype(np.float32) for s in (shape, filter, (21,))]
    (want,) = run_reference(cls, arrays, (1, 2), **options)
    got = run_native(one_op(cls, arrays, (1, 2), **options), arrays[0])
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
np.save(sys.argv[1], powers())
"""


def powers() -> Array:
    """e^x where it is denormal, ordinary, infinite and NaN: processors scale it in two ways."""
    x = np.append(np.linspace(-110, 95, 4000), [np.inf, -np.inf, np.nan]).astype(np.float32)
    return run_native(one_op(Exp, [x]), x)


def test_an_older_processor_gives_the_same(tmp_path: Path) -> None:
    """To the last bit where the same is computed in another way."""
    gives_the_same({"LUCIOLE_CPU": "x86-64-v3"}, False, tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "powers.npy"), powers())


def test_a_processor_with_vnni_on_256_bits_gives_the_same(tmp_path: Path) -> None:
    """Kernels for ``vpdpbusd`` on 256 bits, which LLVM writes with AVX-512 as well: of bytes."""
    if not has("avx512vnni"):
        pytest.skip("needs VNNI")
    more = "+avx512f,+avx512bw,+avx512vl,+avx512vnni"
    name, features = told(*parsed("x86-64-v3"))
    chosen = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": f"{features},{more}"}
    gives_the_same({**chosen, "LUCIOLE_CACHE": str(tmp_path / "cache")}, True, tmp_path)


def gives_the_same(chosen: dict[str, str], vnni: bool, folder: Path) -> None:
    """Check layers in a process with another processor, and write e^x into a folder."""
    path = folder / "powers.npy"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(vnni=vnni), str(path)],
        cwd=root,
        env={**os.environ, **chosen},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


CLIENT = """
import sys
from pathlib import Path
from luciole.kernels.layers.int8.dot_tiles import float_windows

name, code = float_windows(2, 2, 0, 1).compile()
Path(sys.argv[1]).write_bytes(code)
"""
"""A tile of products of bytes."""


@pytest.mark.parametrize(("more", "added"), [("", False), (",+avxvnni", True)])
def test_vnni_on_256_bits_adds_four_products_at_once(
    more: str, added: bool, tmp_path: Path
) -> None:
    if os.uname().machine != "x86_64" or not shutil.which("objdump"):
        pytest.skip("needs objdump for x86-64")
    name, features = told(*parsed("x86-64-v3"))
    chosen = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": f"{features}{more}"}
    command = [sys.executable, "-c", CLIENT, str(tmp_path / "tile.o")]
    done = subprocess.run(
        command, env={**os.environ, **chosen}, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        ["objdump", "-d", str(tmp_path / "tile.o")], capture_output=True, text=True, check=True
    ).stdout
    assert ("vpdpbusd" in shown) == added
    assert ("vpmaddwd" in shown) == (not added)
    assert "zmm" not in shown


NEWER = """
from luciole.kernels.jit.vector import bitsliced, sorting
from luciole.kernels.layers.levels import counting, level_sums, tiles
from luciole.kernels.layers.levels.sorting import kernel
from luciole.kernels.layers.levels.tiling import Tiling

assert bitsliced.WIDE and sorting.COMPRESSES
shape = Tiling.of(1, 1, 64, 1).shape
ending = (0.0, 6.0, 1)
for made in (
    level_sums.kernel(1, level_sums.VECTORS[1], level_sums.TOGETHER[1], *ending),
    kernel(2),
    counting.kernel(1, *shape, *ending),
    tiles.kernel(1, *shape, *ending),
):
    name, code = made.compile()
    assert code
"""
"""What no machine without these instructions can run, but compile: one bit needs all of them."""


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
