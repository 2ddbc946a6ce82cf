"""Compiled layers of bytes on 64-bit Arm, in QEMU: by plain instructions, ``sdot``, ``usdot``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from luciole.kernels.jit.arm import dot_products
from tests.boards.firmware import AARCH64, SECONDS
from tests.kernels.arm_layers import layers
from tests.kernels.arm_target import TRIPLE
from tests.support import run_reference

PROGRAM = """
import sys
from pathlib import Path
from tests.kernels import arm_target
arm_target.pretend()
from tests.kernels.arm_program import write
write(Path(sys.argv[1]))
"""

PROCESSORS = {
    "cortex-a53": ("cortex-a53", set()),
    "neoverse-n1": ("neoverse-n1", {"sdot"}),
    "neoverse-v1": ("max", {"usdot"}),
}
"""What QEMU runs code for a processor as, and the dot products in that code."""

LACKING = {"neoverse-n1": "cortex-a53", "neoverse-v1": "neoverse-n1"}
"""Processors without these dot products."""

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=PROCESSORS)
def compiled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A processor, and the folder of a program for it; no vectors longer than Neon's."""
    if AARCH64.missing:
        pytest.skip(AARCH64.missing)
    folder = tmp_path_factory.mktemp(request.param)
    chosen = {"NUMBA_CPU_NAME": request.param, "NUMBA_CPU_FEATURES": "-sve"}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **chosen}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    sources = [Path(__file__).parent / "arm_main.c", folder / "program.s", *folder.glob("*.o")]
    linked = [f"{AARCH64.prefix}gcc", "-static", *map(str, sources), "-o", str(folder / "program")]
    subprocess.run(linked, check=True, capture_output=True)
    return request.param, folder


def run(folder: Path, processor: str) -> subprocess.CompletedProcess[str]:
    command = [AARCH64.qemu, "-cpu", processor, str(folder / "program")]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


@cache
def wanted() -> list[str]:
    """What the interpreter's reference kernels give."""
    found = [run_reference(m.cls, m.operands, (1, 2), **m.options)[0] for m in layers()]
    return [result.tobytes().hex() for result in found]


def test_layers_of_bytes_give_the_same_bits_on_arm(compiled: tuple[str, Path]) -> None:
    name, folder = compiled
    done = run(folder, PROCESSORS[name][0])
    assert done.returncode == 0
    assert done.stdout.split() == wanted()


def test_kernels_have_the_dot_products_of_the_processor(compiled: tuple[str, Path]) -> None:
    name, folder = compiled
    kernels = sorted(folder.glob("kernel_*.o"))
    words = [f"{AARCH64.prefix}objdump", "-d", *map(str, kernels)]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r"\t([su]+dot)\t", listed)) == PROCESSORS[name][1]


def test_a_processor_without_the_dot_products_stops(compiled: tuple[str, Path]) -> None:
    """They are run, not only there."""
    name, folder = compiled
    lacking = LACKING.get(name)
    if lacking is None:
        assert run(folder, "max").stdout.split() == wanted()
    else:
        assert run(folder, lacking).returncode in (-signal.SIGILL, 128 + signal.SIGILL)


@pytest.mark.parametrize(
    ("processor", "given", "found"),
    [
        ("cortex-a53", "", set()),
        ("neoverse-n1", "+lse,-sve", {"dotprod"}),
        ("neoverse-v1", "-sve", {"dotprod", "i8mm"}),
        ("apple-m1", "", {"dotprod"}),
        ("generic", "", set()),
        ("generic", "+dotprod,+i8mm", {"dotprod", "i8mm"}),
    ],
)
def test_dot_products_are_known_by_the_name_of_a_processor(
    processor: str, given: str, found: set[str]
) -> None:
    assert dot_products(TRIPLE, processor, given) == found
