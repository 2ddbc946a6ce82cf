"""Libraries that are loaded: each is the file of now, described as luciole does, and unloaded."""

from __future__ import annotations

import gc
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from luciole.compiler import Compiled
from luciole.ir import LucioleError, Model
from luciole.ir.ops.activations import Relu, Tanh
from luciole.tools.random_models import lq_dense
from tests.compiler_support import built, needs_compiler, program_of
from tests.support import one_op

pytestmark = needs_compiler

X = np.array([[-1, 2]], np.float32)


def relu() -> Model:
    return one_op(Relu, [X])


def library(folder: Path, source: str, name: str = "foreign.so") -> Path:
    """A library of somebody else's."""
    (folder / "foreign.c").write_text(source)
    words = ["cc", "-shared", "-fPIC", str(folder / "foreign.c"), "-o", str(folder / name)]
    subprocess.run(words, check=True)
    return folder / name


def test_a_library_that_was_exchanged_is_the_new_one_however_many_were_loaded(
    tmp_path: Path,
) -> None:
    built(program_of(relu()), tmp_path)
    kept = [Compiled(tmp_path / "net.so") for _ in range(1000)]
    (tmp_path / "net.so").unlink()
    new = built(program_of(one_op(Tanh, [X])), tmp_path)
    np.testing.assert_array_equal(kept[-1].run({"x0": X})[0], np.maximum(X, 0))
    np.testing.assert_allclose(new.run({"x0": X})[0], np.tanh(X), atol=1e-6)


def test_a_library_is_unloaded_behind_the_last_that_calls_it(tmp_path: Path) -> None:
    def loaded() -> int:
        gc.collect()
        lines = Path("/proc/self/maps").read_text().splitlines()
        return sum("/luciole-" in line for line in lines)

    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not list what is loaded")
    before = loaded()
    call, results = built(program_of(relu()), tmp_path).bind({"x0": X})
    assert loaded() > before
    call()
    np.testing.assert_array_equal(results[0], np.maximum(X, 0))
    del call
    assert loaded() == before


def test_two_that_are_loaded_have_memory_of_their_own(tmp_path: Path) -> None:
    program = program_of(lq_dense((9, 5, 4), 1))
    built(program, tmp_path)
    one, other = (Compiled(tmp_path / "net.so") for _ in range(2))
    assert one._library.run is not other._library.run
    x = np.ones((1, 9), np.float32)
    np.testing.assert_array_equal(one.run({"x": x})[0], other.run({"x": x})[0])


FINE = {"name": "net", "inputs": [], "outputs": []}
TENSOR = {"name": "x", "dtype": "float32", "shape": [1, 2], "places": None}


@pytest.mark.parametrize(
    "described",
    [
        None,
        "no JSON",
        "{}",
        "[]",
        "[" * 100000,
        json.dumps(FINE | {"name": 3}),
        json.dumps(FINE | {"inputs": 3}),
        json.dumps(FINE | {"inputs": [TENSOR | {"shape": [-1]}]}),
        json.dumps(FINE | {"inputs": [TENSOR | {"shape": [1.5]}]}),
        json.dumps(FINE | {"inputs": [TENSOR | {"dtype": "object"}]}),
        json.dumps(FINE | {"inputs": [TENSOR | {"dtype": "float33"}]}),
        json.dumps(FINE | {"outputs": [TENSOR | {"places": "many"}]}),
        json.dumps(FINE | {"outputs": [{"name": "x"}]}),
    ],
    ids=lambda text: str(text)[:40],
)
def test_compiled_refuses_a_library_that_does_not_describe_itself(
    described: str | None, tmp_path: Path
) -> None:
    text = "0" if described is None else json.dumps(described)
    run = "int luciole_run(void) { return 0; }\n"
    path = library(tmp_path, f"{run}const char *luciole_describe(void) {{ return {text}; }}")
    with pytest.raises(LucioleError, match=r"foreign.so is no compiled network: it does not desc"):
        Compiled(path)


def test_compiled_refuses_a_library_without_the_functions(tmp_path: Path) -> None:
    with pytest.raises(LucioleError, match=r"is no compiled network: .*luciole_describe"):
        Compiled(library(tmp_path, "int other(void) { return 0; }"))
