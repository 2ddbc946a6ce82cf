"""Classes of processors: gcc says which extensions a processor has, and machine code that was made
for its class is read on it and on no other.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from functools import cache

import pytest

from luciole.kernels.jit import arm
from luciole.kernels.jit.classes import CLASSES, belongs
from luciole.kernels.jit.processor import DECISIVE, decisions, has
from tests.imports import ROOT
from tests.kernels.arm_target import TRIPLE

KERNELS = ROOT / "kernels"
JIT = KERNELS / "jit"

NEWEST, VNNI, V4, AVX_VNNI, V3, I8MM, DOTPROD = CLASSES

PROCESSORS = {
    "ivybridge": None,
    "haswell": V3,
    "znver3": V3,
    "alderlake": AVX_VNNI,
    "skylake-avx512": V4,
    "cascadelake": VNNI,
    "cooperlake": VNNI,
    "cannonlake": None,
    "knl": None,
    "icelake-server": NEWEST,
    "tigerlake": NEWEST,
    "sapphirerapids": NEWEST,
}
"""The class of each: Alder Lake has GFNI without AVX-512, Cannon Lake VBMI without VNNI, Knights
Landing AVX-512 without instructions on bytes.
"""

OTHERWISE = {"sse4_1": "sse4.1", "sse4_2": "sse4.2", "lahf_sahf": "sahf"}
"""LLVM's names of what gcc calls otherwise."""


@cache
def extensions(processor: str) -> frozenset[str]:
    """What gcc uses on a processor, by LLVM's names."""
    command = ["gcc", f"-march={processor}", "-dM", "-E", "-xc", os.devnull]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    macros = {name.lower() for name in re.findall(r"#define __([A-Z0-9_]+)__ 1\n", told)}
    if "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16" in told:
        macros.add("cx16")
    return frozenset(OTHERWISE.get(name, name) for name in macros)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_processor_belongs_to_the_class_whose_decisions_are_its_own(processor: str) -> None:
    if platform.machine() != "x86_64" or not shutil.which("gcc"):
        pytest.skip("needs gcc for x86-64")
    found = [text for text in CLASSES if belongs(text, extensions(processor), processor)]
    assert found == [text for text in [PROCESSORS[processor]] if text]


def test_a_processor_that_counts_faster_is_of_no_class() -> None:
    newest = frozenset(word for word in re.findall(r"[\w.]+", NEWEST)) | DECISIVE
    assert not any(belongs(text, newest, "znver5") for text in CLASSES)


@pytest.mark.parametrize(
    ("processor", "classes"),
    [
        ("cortex-a53", []),
        ("neoverse-n1", [DOTPROD]),
        ("neoverse-v1", [I8MM]),
        ("apple-m1", [DOTPROD]),
    ],
)
def test_an_arm_processor_belongs_to_the_class_of_its_dot_products(
    processor: str, classes: list[str]
) -> None:
    shown = frozenset(["fp-armv8", "neon", "crc"])
    known = shown | arm.dot_products(TRIPLE, processor, "+fp-armv8,+neon,+crc,-sve")
    assert [text for text in CLASSES if belongs(text, known, processor)] == classes


def test_gfni_counts_with_512_bits_alone() -> None:
    assert decisions(frozenset(["avx2", "gfni"]), "alderlake") == {"avx2"}
    assert "gfni" in decisions(frozenset(["avx512f", "gfni"]), "znver4")


def test_products_of_bytes_are_added_with_512_bits_where_they_can_be() -> None:
    assert "avxvnni" in decisions(frozenset(["avx2", "avxvnni"]), "alderlake")
    assert "avxvnni" not in decisions(frozenset(["avx512vnni", "avxvnni"]), "sapphirerapids")


def test_a_question_refuses_what_decides_nothing() -> None:
    """Classes would not know of it."""
    with pytest.raises(KeyError, match="fma"):
        has("avx2", "fma")


def test_kernels_ask_for_nothing_else_of_a_processor() -> None:
    """Files beside those that make classes import only what gives a class's decisions."""
    making = {JIT / f"{name}.py" for name in ("arm", "choice", "classes", "objects", "processor")}
    for path in set(KERNELS.rglob("*.py")) - making:
        text = path.read_text()
        assert not re.search("get_host_cpu|NUMBA_CPU|LUCIOLE_CPU|cpuinfo", text), path
        asked = re.findall(r"from luciole.kernels.jit.processor import (.*)", text)
        names = {name.strip() for line in asked for name in line.split(",")}
        assert names <= {"has", "vector_registers", "adds_four_products"}, path
        assert "jit.processor" not in text or asked, path
