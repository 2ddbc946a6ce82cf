"""LUCIOLE_CPU: one variable for the processor's name and its features."""

from __future__ import annotations

import os
import platform

import llvmlite.binding as llvm
import pytest

from luciole.ir import LucioleError
from luciole.kernels.jit.choice import LEVELS, choose, chosen

HOST = dict.fromkeys(" ".join(LEVELS.values()).split(), True)


def test_a_level_sets_both_of_numbas_variables() -> None:
    if platform.machine() != "x86_64" or not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("needs an x86-64 processor with AVX2")
    environment = {"LUCIOLE_CPU": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx512f"}
    choose(environment)
    assert environment["NUMBA_CPU_NAME"] == "x86-64-v3"
    features = environment["NUMBA_CPU_FEATURES"].split(",")
    assert {"+avx2", "+fma"} <= set(features)
    assert "+avx512f" not in features


def test_levels_hold_the_features_of_llvms_levels() -> None:
    """LLVM makes an instruction of each for a level's name alone, and none for the level before."""
    if platform.machine() != "x86_64":
        pytest.skip("needs LLVM's x86-64 target")
    for before, level, word in (
        ("x86-64", "x86-64-v2", "popcnt"),
        ("x86-64-v2", "x86-64-v3", "lzcnt"),
    ):
        assert word not in LEVELS[before].split()
        assert word in LEVELS[level].split()
        assert word not in written(before)
        assert word in written(level)


def written(level: str) -> str:
    """Assembly of a count of bits and of leading zeros."""
    text = """
    define i64 @f(i64 %x) {
      %a = call i64 @llvm.ctpop.i64(i64 %x)
      %b = call i64 @llvm.ctlz.i64(i64 %x, i1 false)
      %c = add i64 %a, %b
      ret i64 %c
    }
    declare i64 @llvm.ctpop.i64(i64)
    declare i64 @llvm.ctlz.i64(i64, i1)
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=level)
    return str(machine.emit_assembly(llvm.parse_assembly(text)))


def test_features_stand_behind_a_level() -> None:
    host = {**HOST, "avx512vnni": True}
    name, features = chosen("x86-64-v4,+avx512vnni", host, "x86_64")
    assert name == "x86-64-v4"
    assert features.endswith("+avx512vl,+avx512vnni")


@pytest.mark.parametrize(
    ("text", "machine", "sentence"),
    [
        ("x86-64v3", "x86_64", "x86-64, x86-64-v2, x86-64-v3, x86-64-v4, armv8-a are possible"),
        ("x86-64-v3,avx512f", "x86_64", "are possible, with features behind them"),
        ("x86-64-v4,+amx", "x86_64", "this machine has no amx"),
        ("x86-64-v3", "aarch64", "this machine is aarch64, no x86-64"),
    ],
)
def test_a_choice_refuses_others(text: str, machine: str, sentence: str) -> None:
    with pytest.raises(LucioleError, match=sentence):
        chosen(text, HOST, machine)


def test_nothing_is_chosen_without_the_variable() -> None:
    environment = {"PATH": os.defpath}
    choose(environment)
    assert environment == {"PATH": os.defpath}
