"""``luciole warmup``: kernels are compiled once, and it says where they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import TensorType
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.kernels.core import building
from luciole.tools import random_models
from luciole.tools.warmup import usual_models
from tests.tools.running import call, spawn

Capture = pytest.CaptureFixture[str]


def figures(capsys: Capture, *argv: str) -> dict[str, Any]:
    outcome = call(capsys, "warmup", *argv, "--json")
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_nothing_is_compiled_twice(capsys: Capture, folder: Path) -> None:
    luciole.save(random_models.lq_dense((40, 8), bits=2), "levels.circle")
    first = figures(capsys, "levels.circle")
    again = figures(capsys, "levels.circle")
    assert (first["models"], again["compiled"]) == (1, 0)
    cache = Path(again["folder"])
    files = [file for file in cache.rglob("*") if file.is_file()]
    assert again["kernels"] == sum(file.suffix == ".o" for file in files) > 0
    assert again["bytes"] == sum(file.stat().st_size for file in files)
    assert str(cache) in call(capsys, "warmup", "levels.circle").out


def test_the_usual_models_have_every_width() -> None:
    found = [op for model in usual_models() for op in model.graph.ops]
    for kind in (LQFullyConnected, LQConv2D):
        widths = {op.input_scales.dims[0] for op in found if isinstance(op, kind)}
        assert widths == {1, 2, 3, 4}


def test_all_usual_models_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy: compiling everything takes minutes, and what cannot be planned has no kernel."""
    monkeypatch.setattr(building, "find_native", lambda op: None)
    for model in usual_models():
        Interpreter(model).allocate_tensors()


def test_the_usual_models_have_common_networks_in_float_and_int8() -> None:
    """Each kind of layer in both, and in int8 all of it compiled."""
    wanted = {"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "AVERAGE_POOL_2D", "FULLY_CONNECTED"}
    for dtype in (TensorType.FLOAT32, TensorType.INT8):
        found = [
            {op.kind for op in model.graph.ops}
            for model in usual_models()
            if model.graph.inputs[0].dtype == dtype
        ]
        assert any(wanted <= kinds for kinds in found), dtype
    interpreter = Interpreter(random_models.in_int8(random_models.convolutions()))
    interpreter.allocate_tensors()
    assert all(step.native is not None for step in interpreter.plan.steps)


def test_the_int8_network_answers_as_the_float_one() -> None:
    x = np.random.default_rng(0).normal(size=(1, 16, 16, 3)).astype(np.float32)
    (wanted,) = Interpreter(random_models.convolutions()).run(x).values()
    model = random_models.in_int8(random_models.convolutions())
    (found,) = Interpreter(model).run(np.rint(x * 127 / 6).astype(np.int8)).values()
    np.testing.assert_allclose((found + 128.0) / 256, wanted, rtol=0, atol=0.01)


def test_the_float_models_run_and_are_finite() -> None:
    for model in (random_models.dense((30, 20, 5)), random_models.convolutions()):
        shape = model.graph.inputs[0].dims
        outputs = Interpreter(model).run(np.ones(shape, np.float32))
        (result,) = outputs.values()
        assert result.sum() == pytest.approx(1), "softmax comes last"


def test_a_learned_model_keeps_the_size_of_what_it_is_given() -> None:
    x = np.random.default_rng(0).normal(size=(1, 400)).astype(np.float32)
    (y,) = Interpreter(random_models.lq_dense((400, 300), bits=2)).run(x).values()
    assert 0.5 < y.std() < 2


def test_an_operator_alone() -> None:
    model = random_models.alone(Add, [TensorType.INT32])
    assert model is not None
    assert [v.dtype for v in model.graph.inputs] == [TensorType.INT32] * 2
    assert random_models.alone(LQConv2D, [TensorType.FLOAT32]) is None
    assert random_models.alone(Add, [TensorType.INT4]) is None, "no caller can feed that"


def test_warmup_refuses_a_missing_file(capsys: Capture, folder: Path) -> None:
    text = call(capsys, "warmup", "nowhere.circle").error(1)
    assert text == "nowhere.circle: No such file or directory"


def test_warmup_refuses_to_compile_for_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUCIOLE_CACHE", str(folder / "model.circle"))
    assert spawn("warmup", "model.circle", "--json").error(1) == (
        f"compiled kernels cannot be kept for later runs: '{folder}/model.circle' is not a folder; "
        "LUCIOLE_CACHE may name another folder"
    )


def write_negation() -> None:
    """Write a model whose kernel takes little time to be compiled."""
    model = random_models.alone(Neg, [TensorType.FLOAT32])
    assert model is not None
    luciole.save(model, "model.circle")


def test_warmup_fails_where_the_disk_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import resource, sys\nfrom luciole.tools.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nsys.exit(main(sys.argv[1:]))"
    )
    monkeypatch.setenv("LUCIOLE_CACHE", str(folder / "empty"))
    write_negation()
    outcome = spawn("warmup", "model.circle", "--json", program=["-c", program])
    assert outcome.code == 1
    assert json.loads(outcome.out)["kernels"] == 0
    (line,) = outcome.err.splitlines()
    assert line.startswith("luciole: compiled kernels cannot be kept for later runs: '")
    assert "File too large" in line


def test_a_benchmark_says_whether_kernels_are_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_negation()
    few = ["--num-runs=1", "--min-secs=0", "--warmup-runs=0", "--warmup-min-secs=0"]
    for cache, said in (
        ("model.circle", r"[1-9]\d* compiled, not kept"),
        ("empty", r"[1-9]\d* compiled, cached from now on"),
        ("empty", "all cached"),
    ):
        monkeypatch.setenv("LUCIOLE_CACHE", str(folder / cache))
        outcome = spawn("bench", "model.circle", *few)
        assert re.search(rf"^kernels   {said}$", outcome.out, re.MULTILINE), outcome
        noise = "note: half of the samples are"  # on a machine with other work
        lines = [line for line in outcome.err.splitlines() if not line.startswith(noise)]
        assert len(lines) == ("not kept" in said), outcome.err
