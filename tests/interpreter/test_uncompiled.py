"""Networks run by NumPy alone, where it is asked that nothing is compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.interpreter.errors import InputError
from luciole.ir import Array, Model
from luciole.kernels.jit import compiling
from luciole.tools.main import main
from tests.interpreter.loop_support import COMPILED, Loop, model_of
from tests.networks import network


def refuse(*_: object) -> None:
    raise AssertionError("a kernel is compiled")


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.Kernel, "address", property(refuse))


def given(model: Model) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {v.name: rng.random(v.dims).astype(np.float32) for v in model.graph.inputs}


MODELS = {"layers": network(), **{str(loop): model_of(loop) for loop in (COMPILED[0], Loop())}}
COMPILED_OUTPUTS = {name: Interpreter(model).run(given(model)) for name, model in MODELS.items()}


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("name", MODELS)
def test_numpy_alone_gives_the_results_of_compiled_kernels(name: str) -> None:
    model = MODELS[name]
    outputs = Interpreter(model, compiled=False).run(given(model))
    assert outputs.keys() == COMPILED_OUTPUTS[name].keys()
    for output, array in outputs.items():
        np.testing.assert_allclose(array, COMPILED_OUTPUTS[name][output], rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("no_compiler")
def test_the_program_compiles_nothing_where_that_is_asked(tmp_path: Path) -> None:
    model = MODELS["layers"]
    luciole.save(model, tmp_path / "m.circle")
    (x,) = given(model).values()
    np.save(tmp_path / "x.npy", x)
    names = [str(tmp_path / name) for name in ("m.circle", "x.npy", "y.npz")]
    assert main(["run", names[0], "--data", names[1], "-o", names[2], "--no-compile"]) == 0
    expected = luciole.run(model, x, compiled=False)
    written = np.load(names[2])
    assert set(written) == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(written[name], array)


@pytest.mark.usefixtures("no_compiler")
def test_kernels_are_compiled_unless_it_is_said() -> None:
    with pytest.raises(AssertionError, match="a kernel is compiled"):
        Interpreter(MODELS["layers"]).run(given(MODELS["layers"]))


def test_threads_share_compiled_kernels_alone() -> None:
    with pytest.raises(InputError, match="only compiled kernels share work"):
        Interpreter(MODELS["layers"], num_threads=2, compiled=False)
