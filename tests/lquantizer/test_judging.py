"""Proofs: the figures of a file are those of its bytes, on records that taught it nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.records import digest, digests
from luciole.ir import Array, Model
from luciole.ir.quantization import Affine
from luciole.lquantizer.judging.records import HELD_BACK, MADE_UP, SAME, Judges, Split
from luciole.lquantizer.proof import Fidelity
from luciole.lquantizer.proving.prove import Runtime, prove
from tests.lquantizer.networks import images
from tests.networks import network, random

SCHEMES = ["int8", "w4a8", "dynamic", "weights", "float16", "w2a2"]


def by_hand(model: Model, records: Array) -> Array:
    """Run records one by one, as users do."""
    interpreter = luciole.Interpreter(model)
    name = model.graph.inputs[0].name
    outputs = [next(iter(interpreter.run({name: one[None]}).values())) for one in records]
    return np.concatenate([np.array(output) for output in outputs]).astype(np.float64)


def ratio(float_: Array, file: Array) -> float:
    """Compute 10 log10(signal / noise)."""
    return float(10 * np.log10((float_**2).sum() / ((float_ - file) ** 2).sum()))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_figures_are_those_of_the_bytes(scheme: str) -> None:
    model, records, judges = network(), random(3, 40, 20), random(4, 24, 20)
    result = luciole.quantize(model, records, scheme=scheme, judges=judges)
    written = from_bytes(to_bytes(result.model))
    float_, file = by_hand(model, judges), by_hand(written, judges)
    proof = result.proof
    assert proof is not None
    assert (proof.records, proof.origin, proof.faults) == (24, HELD_BACK, [])
    (output,) = proof.outputs
    assert output.file.snr_db == pytest.approx(ratio(float_, file), abs=1e-3)
    assert output.file.agreement == np.mean(float_.argmax(-1) == file.argmax(-1))


def test_a_tenth_of_the_records_judges_and_does_not_teach() -> None:
    records = random(3, 50, 20)
    result = luciole.quantize(network(), records, scheme="int8")
    assert result.proof is not None
    assert (result.proof.records, result.proof.origin) == (5, HELD_BACK)
    whole = digests({"x": records})
    assert len(result.learned_from) == 45
    assert result.learned_from < whole


@pytest.mark.parametrize("count", [1, 2, 7])
def test_few_records_teach_and_judge(count: int) -> None:
    result = luciole.quantize(network(), random(3, count, 20), scheme="int8")
    assert result.proof is not None
    assert (result.proof.records, result.proof.origin) == (count, SAME)


def test_records_are_made_up_where_there_are_none() -> None:
    result = luciole.quantize(network(), scheme="dynamic")
    assert result.proof is not None
    assert (result.proof.records, result.proof.origin) == (16, MADE_UP)
    assert any("made up" in line for line in result.proof.lines())


def test_nothing_is_judged_or_held_back_without_a_proof() -> None:
    result = luciole.quantize(network(), random(3, 50, 20), scheme="int8", proof=False)
    assert result.proof is None
    assert len(result.learned_from) == 50


def test_records_behind_the_first_ones_judge() -> None:
    records = {"x": np.arange(1000, dtype=np.float32)}
    split = Split.of(records, 300)
    assert np.asarray(split.learned["x"]).tolist() == list(range(300))
    assert split.judges.count == 256
    assert np.asarray(split.judges.records["x"]).min() >= 300


@pytest.mark.parametrize("count", [8, 9, 10, 11, 99, 5000])
def test_a_split_loses_no_record(count: int) -> None:
    records, labels = {"x": np.arange(count)}, np.arange(count) * 2
    split = Split.of(records, None, labels)
    judging, teaching = map(np.asarray, (split.judges.records["x"], split.learned["x"]))
    assert len(judging) == min(256, max(1, count // 10))
    assert sorted([*judging, *teaching]) == list(range(count))
    assert split.labels is not None
    assert (split.labels == 2 * teaching).all()


def test_records_that_did_not_teach_before_judge_first() -> None:
    records = {"x": np.arange(100, dtype=np.float32)}
    known = {digest(records, n) for n in range(95)}
    judging = np.asarray(Split.of(records, None, None, known).judges.records["x"])
    assert judging.tolist() == [95, 96, 97, 98, 99]


def test_judges_that_taught_are_said_to_be_the_same() -> None:
    records = random(3, 20, 20)
    result = luciole.quantize(network(), records, scheme="int8", judges=records[:10])
    assert result.proof is not None
    assert result.proof.origin == SAME


def as_read(model: Model) -> Callable[[], Model]:
    """Read a model back from its bytes."""
    return partial(from_bytes, to_bytes(model))


def tampered(model: Model) -> Model:
    """Give one tensor inside an integer network a scale three times too large."""
    work = from_bytes(to_bytes(model))
    inner = next(op for op in work.graph.ops if op.kind == "CONV_2D").output
    affine = Affine.of(inner, "it")
    inner.quantization = replace(affine, scale=affine.scale * 3).table()
    return work


def test_a_file_that_does_something_else_than_its_simulation_is_wrong() -> None:
    model, records = images(), random(3, 40, 8, 8, 3)
    result = luciole.quantize(model, records, scheme="int8")
    assert result.rounded is not None
    judges = Judges({"x": random(5, 16, 8, 8, 3)})
    sound = prove(model, as_read(result.model), judges, result.rounded.model)
    assert sound.is_sound
    assert sound.outputs[0].simulation is not None
    wrong = prove(model, as_read(tampered(result.model)), judges, result.rounded.model)
    assert "where its simulation keeps" in wrong.faults[0]


def test_a_file_that_does_not_run_is_wrong() -> None:
    model = network()
    broken = from_bytes(to_bytes(model))
    broken.graph.outputs[0].producer.op.weights.shape = (4, 5)  # type: ignore[union-attr]  # dense
    judges = Judges({model.graph.inputs[0].name: random(3, 8, 20)})
    proof = prove(model, lambda: broken, judges)
    assert not proof.outputs
    assert "it cannot be read or run" in proof.faults[0]


def test_infinite_results_are_wrong_only_where_the_float_network_has_none() -> None:
    model = network()
    judges = Judges({model.graph.inputs[0].name: random(3, 8, 20)})
    broken = from_bytes(to_bytes(model))
    layer = broken.graph.ops[-1]
    for candidate in broken.graph.ops:
        if candidate.kind == "FULLY_CONNECTED":
            layer = candidate
    bias = next(v for v in reversed(layer.operands) if v is not None and v.is_constant)
    assert bias.data is not None
    bias.set_data(np.full_like(bias.data, np.nan))
    proof = prove(model, lambda: broken, judges)
    assert "becomes NaN or infinite for 8 records" in proof.faults[0]
    assert prove(broken, lambda: broken, judges).is_sound


def test_a_runtime_that_computes_otherwise_is_told() -> None:
    model = network()
    judges = Judges({model.graph.inputs[0].name: random(3, 8, 20)})
    exact = by_hand(model, np.asarray(judges.records[model.graph.inputs[0].name]))
    proof = prove(model, as_read(model), judges, None, {"other": Runtime(lambda arrays: [exact])})
    assert proof.is_sound
    proof = prove(model, as_read(model), judges, None, {"other": Runtime(lambda _: [exact[::-1]])})
    assert "in other where luciole keeps" in proof.faults[0]
    careful = Runtime(lambda _: [exact[::-1]], "its sums saturate")
    proof = prove(model, as_read(model), judges, None, {"other": careful})
    assert proof.is_sound
    assert proof.notes[0].endswith("its sums saturate")


def test_small_differences_are_no_fault() -> None:
    assert not Fidelity(40.0, 0.99).is_far_from(Fidelity(44.0, 1.0), 100)
    assert not Fidelity(60.0, None).is_far_from(Fidelity(None, None), 100)
    assert Fidelity(23.5, 0.99).is_far_from(Fidelity(30.5, 0.99), 100)
    assert Fidelity(20.0, 0.90).is_far_from(Fidelity(20.0, 0.99), 500)
    assert not Fidelity(20.0, 0.90).is_far_from(Fidelity(20.0, 1.0), 10)
