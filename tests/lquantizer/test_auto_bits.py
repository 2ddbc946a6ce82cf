"""Automatic widths: measured losses, the front of their sums, and the two targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import luciole
from luciole import quantizing
from luciole.exporters import to_bytes
from luciole.ir import Array, Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.value import element_count
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.records import Judges, Split
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.search import auto_bits
from luciole.lquantizer.search.additive import ACCURACY, SIZE, Table
from luciole.lquantizer.search.auto_bits import BYTES, OPTIONS, Widths, for_drop, for_size
from luciole.lquantizer.search.evaluate import Alone, Bench
from luciole.lquantizer.search.space import Gene, Space, is_between, is_learned
from luciole.lquantizer.search.tasks import tasks_of
from tests.lquantizer.networks import Builder, images
from tests.lquantizer.runs import records as some
from tests.networks import network, random, steps

X = random(1, 40, 20)


def file_size(model: Model) -> int:
    return len(to_bytes(model))


def test_the_exact_front_is_what_trying_everything_finds() -> None:
    chance = np.random.default_rng(5)
    options = tuple("abcd")
    genes = tuple(Gene((name,), options, measured=(name,)) for name in ("one", "two", "three"))
    alone = [
        Alone(gene.layers[0], option, 16 * int(chance.integers(0, 40)), float(chance.random()))
        for gene in genes
        for option in options
    ]
    table = Table.of(Space(genes), alone)
    every = [table.sum(candidate) for candidate in product(options, repeat=3)]
    best = {
        (one.bytes, one.loss)
        for one in every
        if not any(
            o.bytes <= one.bytes
            and o.loss <= one.loss
            and (o.bytes, o.loss) != (one.bytes, one.loss)
            for o in every
        )
    }
    found = table.front((ACCURACY, SIZE))
    assert {(one.bytes, one.loss) for one in found} == best
    assert [one.bytes for one in found] == sorted(one.bytes for one in found)


@pytest.fixture(scope="module")
def flat() -> Widths:
    """The losses of two layers."""
    return Widths.measure(network(), {"x": X}, Config(), file_size)


def test_losses_fall_with_width_and_bytes_are_those_of_the_file(flat: Widths) -> None:
    assert [(a.layer, a.option) for a in flat.alone] == [
        (layer, option) for layer in ("fc1", "fc2") for option in OPTIONS
    ]
    known = {(a.layer, a.option): a for a in flat.alone}
    for layer in ("fc1", "fc2"):
        wide = [known[layer, f"levels:w{bits}a8"] for bits in (1, 2, 3, 4)]
        assert [a.loss for a in wide] == sorted((a.loss for a in wide), reverse=True)
        sizes = [a.bytes for a in wide[1:]]  # one bit has offsets beside it
        assert sizes == sorted(sizes)
        config = {
            "layers": [
                {"pattern": "*", "skip": True},
                {"name": layer, "skip": False, "encode_bits": "w3a8"},
            ]
        }
        whole = luciole.quantize(network(), X, config=config, proof=False).model
        size = file_size(whole) - file_size(network())
        assert abs(size - known[layer, "levels:w3a8"].bytes) <= 32


def test_a_target_size_is_kept_and_used() -> None:
    results = (luciole.quantize(network(), X, encode_bits=k, proof=False) for k in (1, 4))
    small, large = (file_size(result.model) for result in results)
    target = (small + large) // 2
    result = luciole.quantize(network(), X, target_size=target, proof=False)
    assert small < file_size(result.model) <= target
    assert len(result.report.options) == 2 * len(OPTIONS)


DEEP = random(1, 200, 64)
SOME = tuple(one for one in OPTIONS if not (is_learned(one) and one.endswith("a4")))
"""All but learned levels of the same weights beside narrow inputs, which change no byte."""


@pytest.fixture(scope="module")
def deep() -> Widths:
    """The losses of three layers whose last gives one number, under some options."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto_bits, "OPTIONS", SOME)
        return Widths.measure(network((64, 48, 48, 1)), {"x": DEEP}, Config(), file_size)


def numbers(model: Model, records: Array) -> Array:
    """The only output for each record."""
    return next(iter(luciole.Interpreter(model).run({"x": records}).values()))[:, 0]


def test_integers_of_few_bits_are_closer_in_as_many_bytes(
    deep: Widths, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen, errors = random(9, 200, 64), []
    floats = numbers(deep.bench.model, unseen)
    rest = [one for one in SOME if not is_between(one)]
    without = [front for front in deep.fronts if not any(map(is_between, front[0].candidate))]
    assert len(without) == 1
    for options, fronts in ((SOME, deep.fronts), (rest, without)):
        monkeypatch.setattr(auto_bits, "OPTIONS", options)
        result = for_size(replace(deep, fronts=fronts), 5000)
        assert file_size(result.model) <= 5000
        errors.append(np.square(numbers(result.model, unseen) - floats).mean())
    assert errors[0] < 0.8 * errors[1]


WORDS = ("int:w8a8", "int:w4a8", "int:w2a8")


@pytest.mark.parametrize("word", WORDS)
def test_sizes_of_single_layers_of_integers_sum_to_the_file(word: str) -> None:
    """Conversions around one layer alone are not counted for each; decoders share a little."""
    bench, space, table = alone_in_images()
    candidate = space.uniform(word)
    assert candidate is not None
    size = file_size(bench.fit(space.by_layer(candidate)).model)
    estimate = file_size(bench.model) + table.sum(candidate).bytes
    assert estimate == pytest.approx(size, rel=0.07)


@cache
def alone_in_images() -> tuple[Bench, Space, Table]:
    """Each layer of a network of convolutions and branches, measured alone on integers."""
    model = images()
    split = Split.for_choices(some(model, 40))
    space = Space.of(model.graph, (*WORDS, "float"))
    bench = Bench(model, split.learned, split.judges, file_size)
    rows = [bench.alone(task["layer"], task["options"]) for task in tasks_of(space)]
    return bench, space, Table.of(space, [one for row in rows for one in row])


def test_a_search_refuses_integers_that_an_operator_has_no_form_for() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 4, 4, 2))
    shape = b.constant(np.array([1, 8, 8, 3], np.int32))
    up = TransposeConv(shape, b.weights(3, 2, 2, 2), x, stride_h=2, stride_w=2)
    b.graph.outputs = [b.add(Conv2D(b.add(up), b.weights(2, 1, 1, 3), stride_h=1, stride_w=1))]
    words = ("int:w2a8", "int:w4a8", "float")
    first, last = Space.of(b.graph, words).genes
    assert (first.options, last.options) == (("int:w2a8", "float"), words)
    with pytest.raises(QuantizeError, match=r"'t.' has no form of int:w4a8: TFLite has no kernel"):
        Space.of(b.graph, words, fixed={first.layers[0]: "int:w4a8"})


def test_a_target_size_refuses_what_cannot_be_reached(flat: Widths) -> None:
    with pytest.raises(
        QuantizeError, match="no allocation fits into 100 bytes: the smallest takes"
    ):
        for_size(flat, 100)


def test_quantize_refuses_a_size_below_that_of_the_weights_before_it_measures() -> None:
    def track(what: str, total: int) -> Callable[[int], None]:
        pytest.fail(f"{what} has begun")

    layers = [op for op in network().graph.ops if isinstance(op, FullyConnected)]
    least = sum(element_count(op.weights.dims) for op in layers) // 8
    sentence = f"target_size is {{}} bytes: the weights alone take at least {least}"
    for target in (10, least - 1):
        with pytest.raises(QuantizeError, match=sentence.format(target)):
            luciole.quantize(network(), X, target_size=target, track=track)


def test_weights_that_layers_share_count_once() -> None:
    b = Builder()
    x, shared = b.graph.add_input("x", (1, 8)), b.weights(8, 8)
    for _ in range(2):
        x = b.add(FullyConnected(x, shared))
    b.graph.outputs = [x]
    space = Space.of(b.graph, ("int:w2a8", "float"))
    space.check_size(b.graph, "max_size", 16)
    with pytest.raises(QuantizeError, match=r"max_size is 15 bytes: the weights .* at least 16"):
        space.check_size(b.graph, "max_size", 15)


def test_a_layer_that_a_config_skips_stays_float(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_bits, "OPTIONS", ("levels:w2a8", "int:w4a8", BYTES))
    config = Config.parse({"layers": [{"name": "fc1", "skip": True}]}, Choice())
    found = Widths.measure(network(), {"x": X}, config, file_size)
    assert {one.candidate[0] for front in found.fronts for one in front} == {"float"}


@pytest.fixture(scope="module")
def bounded(deep: Widths) -> dict[float, Result]:
    """The results for some targets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto_bits, "OPTIONS", SOME)
        return {target: for_drop(deep, target) for target in (50.0, 0.5, 0.0)}


def test_a_loose_target_drop_gives_the_smallest_file_and_an_impossible_one_warns(
    bounded: dict[float, Result],
) -> None:
    loose, strict = bounded[50.0], bounded[0.0]
    assert file_size(loose.model) < file_size(strict.model)
    assert "% of the variance lost where 0 may be" in strict.report.warnings[0]


def test_a_target_bounds_the_error_where_there_are_no_classes(
    deep: Widths, bounded: dict[float, Result]
) -> None:
    """Outputs that are one number have no answers that change: what is bounded is their error."""
    judges, lost = DEEP[4::5], {}
    floats = numbers(deep.bench.model, judges)
    for target in (50.0, 0.5):
        error = np.square(numbers(bounded[target].model, judges) - floats).mean()
        lost[target] = 100 * error / floats.var()
        assert lost[target] <= target * 1.001
    assert lost[0.5] < lost[50.0]


def test_seconds_are_those_of_everything_that_was_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = iter([100.0, 268.0])
    monkeypatch.setattr(auto_bits, "OPTIONS", ("levels:w2a8", BYTES))
    monkeypatch.setattr(quantizing, "perf_counter", lambda: next(hands))
    result = luciole.quantize(network(), X, target_drop=100.0, proof=False)
    assert result.report.seconds == 168


def test_numbers_that_score_no_classes_have_no_answers_that_change() -> None:
    model = steps(softmax=False)
    data = {"x": random(5, 20, 6, 20)}
    judges = Judges(data)
    assert not Judge(model, judges).has_classes
    assert Judge(model, judges).judge(model).agreement is None
    assert Judge(steps(), judges).judge(steps()).agreement == 1


def test_a_target_drop_refuses_too_few_records() -> None:
    with pytest.raises(QuantizeError, match="at least 2 records"):
        luciole.quantize(network(), np.asarray(X[:1]), target_drop=1.0)


def test_levels_only_leaves_nothing_that_a_fine_tuning_cannot_train(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Layers get learned levels, or are what learned levels spare and stay float."""
    monkeypatch.setattr(auto_bits, "OPTIONS", ("levels:w2a8", "int:w4a8", BYTES))
    model = images()
    found = Widths.measure(model, some(model, 10), Config(), file_size, levels_only=True)
    spared = {gene.layers[0] for gene in Space.of(model.graph).genes if gene.is_end}
    for gene, row in zip(found.table.space.genes, found.table.rows, strict=True):
        is_spared = gene.layers[0] in spared
        assert list(row) == ["float"] if is_spared else all(map(is_learned, row))
    (front,) = found.fronts
    result = found.fit(front[len(front) // 2])
    learned = {layer.name for layer in result.report.layers if layer.weight_bits is not None}
    assert learned
    assert learned == result.latents.keys()
    assert not learned & spared
