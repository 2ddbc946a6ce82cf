"""Passes are found by their names, chosen, and run until none changes anything."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir import LucioleError, Model
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.passes.registry import FOLDERS, all_passes, chosen, run_on_model
from luciole.kernels.core.evaluation import evaluate
from tests.networks import dense


def scaled() -> Model:
    """dense(x) * m + a."""
    model = Model()
    graph = model.add_graph(luciole.Graph("main"))
    y = dense(graph, graph.add_input("x", (1, 6)), (5, 6), "fc").output
    for number, kind in enumerate((Mul, Add)):
        constant = graph.add_constant(f"c{number}", np.arange(1, 6, dtype=np.float32))
        y = graph.append(kind(y, constant), f"y{number}").output
    graph.outputs = [y]
    return model


def names(**choices: object) -> list[str]:
    return [one.name for one in chosen(**choices)]  # type: ignore[arg-type]  # as the test has them


def test_every_pass_says_what_it_rewrites_to_what() -> None:
    passes = all_passes()
    assert len(passes) >= 10
    assert {one.folder for one in passes.values()} <= set(FOLDERS)
    assert all("->" in one.summary and one.summary[-1] in ".`" for one in passes.values())


def test_a_presets_name_stands_for_its_passes() -> None:
    named = [one.name for one in chosen(passes=["fuse_rope", "canonical", "replace_sub_with_add"])]
    assert named[0] == "fuse_rope"
    assert set(named[1:]) == {one.name for one in chosen("canonical")}
    assert chosen(passes=["none"]) == []


def test_presets_run_folders_in_their_order() -> None:
    assert names(preset="none") == []
    assert set(names(preset="canonical")) < set(names())
    assert not {"unroll_unidirseqlstm", "put_channels_last"} & set(names())
    order = [FOLDERS.index(one.folder) for one in chosen()]
    assert order == sorted(order)


def test_only_circle_gets_operators_of_its_own() -> None:
    own = {one.name for one in all_passes().values() if one.needs_circle}
    assert not own & set(names(circle=False))


def test_passes_are_chosen_and_left_out() -> None:
    assert names(passes=["remove_dead", "fold_constants"]) == ["remove_dead", "fold_constants"]
    assert "fold_constants" not in names(without=["fold_constants"])
    with pytest.raises(LucioleError, match="'fold_constant': did you mean"):
        names(passes=["fold_constant"])
    with pytest.raises(LucioleError, match="no preset is called 'o9': there are o1, canonical"):
        names(preset="o9")


def test_what_each_pass_changed_is_counted() -> None:
    model = scaled()
    changes = run_on_model(model, chosen(passes=["fuse_batch_norm"]), evaluate)
    (change,) = changes.values()
    assert dict(change.gone) == {"MUL": 1, "ADD": 1}
    assert [op.kind for op in model.graph.ops] == ["FULLY_CONNECTED"]


def test_optimize_leaves_the_model_as_it_is() -> None:
    model = scaled()
    simpler = luciole.optimize(model, preset="o1", without=["remove_dead"])
    assert (len(model.graph.ops), len(simpler.graph.ops)) == (3, 1)
    assert simpler.graph.outputs[0].name == "y1"
    with pytest.raises(LucioleError, match="target is 'onnx': tflite or circle is needed"):
        luciole.optimize(model, target="onnx")
