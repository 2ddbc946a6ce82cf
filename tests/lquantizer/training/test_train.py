"""Fine-tuning from end to end: what is learned, from what, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.interpreter.records import digests
from luciole.ir import Array, Model
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.training import Epoch, FinetuneResult, FinetuneSettings, finetune
from luciole.lquantizer.training.batches import Batches, mixed, shifted
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.optimizer import schedule
from luciole.lquantizer.training.parameters import trained_ops
from tests.lquantizer.training.models import (
    EPOCHS,
    FEW,
    constants,
    convolutional,
    data_of,
    digits,
    plain,
    regression,
    run,
    step_by_step,
    tune,
    two_steps,
)


def test_the_loss_falls_and_the_agreement_rises() -> None:
    teacher, student, records, _ = digits()
    before = constants(student)
    result, lines, done = plain()
    losses = [epoch.loss for epoch in result.history]
    assert [epoch.epoch for epoch in result.history] == [0, 1, 2, 3]
    assert losses[0] is None
    assert losses[1] > losses[2] > losses[3]  # type: ignore[operator]  # only the first is None
    first, best = result.history[0], result.best
    assert first.agreement is not None
    assert best.agreement is not None
    assert best.agreement > first.agreement + 0.05
    assert constants(student) == before
    assert sum(done[1:]) == -done[0] == 3 * 18
    assert lines[0].startswith("epoch 0/3, agreement")
    assert lines[-1].endswith("0 s left")
    wanted = run(teacher, records).argmax(-1)
    better, worse = (np.mean(run(m, records).argmax(-1) == wanted) for m in (result.model, student))
    assert better > worse + 0.05


def test_the_best_state_is_kept_the_student_included() -> None:
    _, student, _, _ = digits()
    wild = FinetuneSettings(learning_rate=10.0, **FEW)
    result = two_steps(wild)
    assert result.best.epoch == 0
    binaries = [
        [data_of(op, "weights_binary") for op in trained_ops(m.graph)]
        for m in (student, result.model)
    ]
    for old, new in zip(*binaries, strict=True):
        np.testing.assert_array_equal(old, new)


def hidden() -> str:
    teacher, _, _, _ = digits()
    return next(op.name for op in teacher.graph.ops if op.kind == "TANH")


def test_the_last_state_is_kept_where_nothing_is_held_back() -> None:
    result = tune(2, FinetuneSettings(held_back=0, batch=400, hints=(hidden(),)))
    assert result.best.epoch == 2
    assert [e.agreement for e in result.history] == [None, None, None]


def epoch(number: int, agreement: float | None, distance: float) -> Epoch:
    return Epoch(number, 1.0, distance, agreement, 0.0)


def test_agreement_decides_unless_it_differs_by_chance_only() -> None:
    assert epoch(2, 0.95, 0.5).is_better_than(epoch(1, 0.90, 0.4), 1000)
    assert not epoch(2, 0.90, 0.3).is_better_than(epoch(1, 0.95, 0.4), 1000)
    assert epoch(2, 0.945, 0.3).is_better_than(epoch(1, 0.95, 0.4), 1000)
    assert not epoch(2, 0.955, 0.5).is_better_than(epoch(1, 0.95, 0.4), 1000)
    assert epoch(2, None, 0.3).is_better_than(epoch(1, None, 0.4), 1000)


def test_training_gained_where_agreement_or_distance_says_so() -> None:
    start = epoch(0, 0.95, 0.4)
    assert epoch(1, 0.951, 0.5).is_better_than(start, 100)
    assert epoch(1, 0.949, 0.3).is_better_than(start, 100)
    assert not epoch(1, 0.949, 0.5).is_better_than(start, 100)
    assert not epoch(1, 0.80, 0.3).is_better_than(start, 100)  # no chance


def test_a_student_that_knew_its_judges_stays_only_where_training_lost_for_certain() -> None:
    start = epoch(0, 0.95, 0.4)
    assert epoch(1, 0.93, 0.5).is_better_than(start, 100, judges_are_new=False)
    assert not epoch(1, 0.80, 0.3).is_better_than(start, 100, judges_are_new=False)
    assert not epoch(1, None, 0.5).is_better_than(epoch(0, None, 0.4), 100, judges_are_new=False)


def test_records_that_levels_were_not_learned_from_judge() -> None:
    _, student, records, _ = digits()
    first = next(iter(records.values()))
    seen = digests({name: array[100:] for name, array in records.items()})
    known = digests(records)
    few = FinetuneSettings(held_back=0.05)
    batches = Batches(student.graph, records, None, few, seen)
    assert batches.judges_are_new
    assert len(batches.held_back) == few.held_back_of(len(first))
    assert batches.held_back.max() < 100
    plain, told = (Batches(student.graph, records, None, few, k) for k in ((), known))
    assert plain.judges_are_new
    assert not told.judges_are_new
    np.testing.assert_array_equal(plain.held_back, told.held_back)


def test_a_result_knows_what_it_was_learned_from() -> None:
    teacher, _, records = regression()
    records = {name: array[:240] for name, array in records.items()}
    few = {name: array[:60] for name, array in records.items()}
    result = luciole.quantize(teacher, few, encode_bits=2, judges=records)
    assert result.learned_from == digests(few)
    with step_by_step():
        tuned, again = (luciole.finetune(result, teacher, x, epochs=1) for x in (records, few))
    assert tuned.judges_are_new
    assert tuned.held_back.min() >= 60
    assert not again.judges_are_new
    whole = luciole.quantize(teacher, few, scheme="int8", proof=False)
    assert whole.learned_from == digests(few)
    held_back = luciole.quantize(teacher, few, scheme="int8").learned_from
    assert held_back < digests(few)
    assert len(held_back) == 54


@pytest.mark.parametrize(
    ("records", "held_back"),
    [(1, 0), (2, 1), (60, 12), (900, 180), (4000, 800), (60_000, 1000)],
)
def test_enough_records_are_held_back_to_decide(records: int, held_back: int) -> None:
    assert FinetuneSettings().held_back_of(records) == held_back


def test_a_result_says_which_epoch_was_kept_and_what_it_gained() -> None:
    first, second = epoch(0, 0.9, 0.4), epoch(1, 0.95, 0.3)
    gained = FinetuneResult(Model([]), second, [first, second], np.arange(3))
    assert gained.gained
    assert gained.summary() == "kept epoch 1 of 1: agreement 90.00 % -> agreement 95.00 %"
    nothing = FinetuneResult(Model([]), first, [first, second], np.arange(3))
    assert not nothing.gained
    text = "gained nothing, the model is as it was before (agreement 90.00 %)"
    assert nothing.summary() == text


def scaled(model: Model, factor: float) -> Model:
    """The same function of inputs that are larger by a factor."""
    copy = model.clone()
    op = copy.graph.ops[0]
    if isinstance(op, FullyConnected):
        op.weights.set_data(data_of(op, "weights") / np.float32(factor))
    else:
        (op, _) = trained_ops(copy.graph)
        op.weights_scales.set_data(data_of(op, "weights_scales") / np.float32(factor))
        op.input_scales.set_data(data_of(op, "input_scales") * np.float32(factor))
    return copy


def test_the_scale_of_the_records_changes_nothing() -> None:
    teacher, student, records, _ = digits()
    large = {name: array * np.float32(64) for name, array in records.items()}
    models = scaled(student, 64), scaled(teacher, 64)
    settings = FinetuneSettings(**FEW)
    losses = [
        [e.loss for e in r.history[1:]]
        for r in (plain().result, finetune(*models, large, epochs=EPOCHS, settings=settings))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def rows_scaled(model: Model, factors: Array) -> Model:
    """The same function by rows that are larger by factors, which a multiplication undoes."""
    copy = model.clone()
    graph, (op,) = copy.graph, copy.graph.ops
    names = ("weights", "bias") if isinstance(op, FullyConnected) else ("weights_scales", "bias")
    for name in (*names, "weights_offsets"):
        value = dict(op.named_operands()).get(name)
        if value is not None and value.data is not None and value.data.size:
            value.set_data(value.data * factors.reshape(-1, *[1] * (value.data.ndim - 1)))
    back = graph.add_constant("back", 1 / factors)
    graph.outputs = [graph.append(Mul(graph.outputs[0], back), "undone").output]
    return copy


def regressed(factors: Array) -> tuple[Model, Model, FinetuneResult]:
    """Teacher and student with levels that are too small, rows larger by factors, and training."""
    teacher, student, records = regression()
    (op,) = trained_ops(student.graph)
    op.weights_scales.set_data(data_of(op, "weights_scales") * np.float32(0.5))
    teacher, student = rows_scaled(teacher, factors), rows_scaled(student, factors)
    settings = FinetuneSettings(learning_rate=3e-3, **FEW)
    return teacher, student, finetune(student, teacher, records, epochs=4, settings=settings)


def test_without_a_softmax_squared_errors_count_alike_however_large_rows_are() -> None:
    teacher, student, result = regressed(np.ones(3, np.float32))
    _, _, records = regression()
    first = result.history[0]
    assert first.agreement is None
    errors = [
        np.mean((run(m, records) - run(teacher, records)) ** 2) for m in (student, result.model)
    ]
    assert first.held_back_loss == pytest.approx(errors[0], rel=0.2)
    assert errors[1] < 0.9 * errors[0]
    assert result.gained
    _, _, scaled = regressed(np.array([1, 2**10, 2**-10], np.float32))
    losses = [[e.loss for e in one.history[1:]] for one in (result, scaled)]
    assert losses[0] == losses[1]


def test_labels_and_hints_and_float_weights_are_used() -> None:
    teacher, student, _, labels = digits()
    usual, labelled = two_steps(), two_steps(labels=labels[:150])
    hinted = two_steps(FinetuneSettings(hints=(hidden(),), **FEW))
    dense = [op for op in teacher.graph.ops if isinstance(op, FullyConnected)]
    named = {
        op.name: float_op.weights.data
        for op, float_op in zip(trained_ops(student.graph), dense, strict=True)
    }
    targeted = two_steps(latents=named)
    losses = {r.history[1].loss for r in (usual, labelled, hinted, targeted)}
    assert len(losses) == 4
    assert usual.history[0].agreement == targeted.history[0].agreement  # the same start


def test_layers_that_stayed_float_are_trained_unless_unwanted() -> None:
    teacher, _, records, _ = digits()
    config = {"layers": [{"name": teacher.graph.ops[0].name, "skip": True}]}
    few = {name: array[:100] for name, array in records.items()}
    student = luciole.quantize(teacher, few, encode_bits=1, config=config, proof=False).model
    first = next(op for op in student.graph.ops if isinstance(op, FullyConnected))
    for settings, stays in (
        (FinetuneSettings(), False),
        (FinetuneSettings(float_layers=False), True),
    ):
        with step_by_step():
            tuned = finetune(student, teacher, few, epochs=1, settings=settings).model
        op = next(op for op in tuned.graph.ops if isinstance(op, FullyConnected))
        for name in ("weights", "bias"):
            assert np.array_equal(data_of(op, name), data_of(first, name)) == stays


def test_outputs_that_are_not_kept_are_computed_batch_by_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = two_steps().history[1].loss
    monkeypatch.setattr("luciole.lquantizer.training.train.CACHE_LIMIT", 0)
    assert two_steps().history[1].loss == pytest.approx(kept, rel=1e-4)


def test_images_are_moved_by_whole_pixels() -> None:
    images = np.arange(2 * 5 * 6 * 1, dtype=np.float32).reshape(2, 5, 6, 1)
    moved = shifted(np.repeat(images, 50, axis=0), 1, np.random.default_rng(0))
    seen = set()
    for k, image in enumerate(moved):
        dy, dx = divmod(int(image[2, 2, 0] - images[k // 50, 2, 2, 0]) + 7, 6)
        seen.add((dy - 1, dx - 1))
        rows = np.clip(np.arange(5) + dy - 1, 0, 4)
        columns = np.clip(np.arange(6) + dx - 1, 0, 5)
        np.testing.assert_array_equal(image, images[k // 50][rows][:, columns])
    assert len(seen) == 9


def test_a_shift_reaches_the_batches() -> None:
    teacher, student, _ = convolutional()
    x = np.random.default_rng(0).normal(0, 1, (60, 8, 7, 5)).astype(np.float32)
    batches = Batches(student.graph, {"image": x}, None, FinetuneSettings(shift=1))
    (places, (images,)) = next(batches.epoch(1))
    assert not np.array_equal(images, x[places])
    settings = FinetuneSettings(shift=1, batch=20)
    with step_by_step():
        tuned = finetune(student, teacher, {"image": x}, epochs=1, settings=settings)
    assert len(tuned.history) == 2


def test_records_are_mixed_with_others_of_their_batch() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(0, 1, (40, 6)).astype(np.float32)
    names = np.eye(40, dtype=np.float32)  # says of which records a mixture is made
    mixture, parts = mixed([x, names], 0.5, generator)
    np.testing.assert_allclose(mixture, parts @ x, atol=1e-5)
    np.testing.assert_array_equal(mixture[20:], x[20:])
    np.testing.assert_allclose(parts.sum(1), 1, rtol=1e-6)
    assert np.mean((parts[:20] > 0).sum(1) == 2) > 0.9
    assert parts[:20].diagonal().min() < 0.2


def test_labels_and_integers_are_not_mixed() -> None:
    _, student, records, labels = digits()
    settings = FinetuneSettings(mix=0.5, batch=50)
    plain = Batches(student.graph, records, None, FinetuneSettings(batch=50))
    for own, mixes in ((None, True), (Labels(labels), False)):
        batches = Batches(student.graph, records, own, settings)
        (places, (x,)) = next(batches.epoch(1))
        assert np.array_equal(x, plain.at(places)[0]) != mixes


def test_mirrored_images_are_places_of_their_own() -> None:
    teacher, student, _ = convolutional()
    x = np.random.default_rng(0).normal(0, 1, (60, 8, 7, 5)).astype(np.float32)
    labels = np.arange(60)
    settings = FinetuneSettings(mirror=True, batch=20)
    batches = Batches(student.graph, {"image": x}, Labels(labels), settings)
    turned = 0
    for places, (images,) in batches.epoch(1):
        wanted = [x[p % 60, :, ::-1] if p >= 60 else x[p] for p in places]
        np.testing.assert_array_equal(images, wanted)
        np.testing.assert_array_equal(images, batches.at(places)[0])
        np.testing.assert_array_equal(batches.labels_at(places), places % 60)
        turned += int((places >= 60).sum())
    assert 10 < turned < 50
    with step_by_step():
        tuned = finetune(student, teacher, {"image": x}, epochs=1, settings=settings)
    assert len(tuned.history) == 2


@pytest.mark.parametrize(("records", "size"), [(20, 20), (1000, 32), (15000, 50), (60000, 100)])
def test_an_epoch_has_300_steps_where_there_are_records_enough(records: int, size: int) -> None:
    assert FinetuneSettings().batch_of(records) == size
    assert FinetuneSettings(batch=7).batch_of(records) == 7


def test_every_record_is_either_held_back_or_trained_on() -> None:
    _, student, records, _ = digits()
    batches = Batches(student.graph, records, None, FinetuneSettings(held_back=0.1, batch=100))
    assert len(batches.held_back) == 120
    together = np.concatenate([batches.held_back, batches.training])
    np.testing.assert_array_equal(np.sort(together), np.arange(1200))
    orders = [np.concatenate([p for p, _ in batches.epoch(n)]) for n in (1, 1, 2)]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])
    assert len(np.unique(orders[0])) == 1000
    assert not set(orders[0]) & set(batches.held_back)


def test_the_learning_rate_falls_along_half_a_cosine() -> None:
    assert [schedule(k, 4)[0] for k in (0, 2)] == pytest.approx([1, 0.5])
    assert schedule(99, 100)[0] < 0.001
    assert schedule(1, 4)[1:] == pytest.approx([0.9**2, 0.999**2])
    assert [FinetuneSettings().rate(k) for k in (1, 2, 3, 8)] == [4e-3, 1e-3, 1e-4, 1e-5]
