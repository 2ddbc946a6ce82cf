"""The published search: its numbers, by section of the thesis, and a run on a small network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import InputError
from luciole.ir import Array, Model
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.layer_format import parse
from luciole.lquantizer.search.nsga2 import fronts
from luciole.lquantizer.search.published import evolution, options, search
from luciole.lquantizer.search.published.begin import materials
from luciole.lquantizer.search.published.evaluate import SeedEvaluator
from luciole.lquantizer.search.published.genes import (
    MASKED,
    WIDTHS,
    components,
    mask_of,
    space_of,
    uniform,
    widths_of,
)
from luciole.lquantizer.search.published.network import Network
from luciole.lquantizer.search.published.options import SeedOptions
from luciole.lquantizer.search.published.size import (
    FORMULA,
    OPERATIONS,
    Layer,
    bytes_of,
    float_bytes,
)
from luciole.lquantizer.search.result import SearchResult
from tests.lquantizer.training.models import step_by_step
from tests.networks import network, random, two_outputs
from tests.norm_support import images, unfolded

X = images(1, 90)
SMALL = SeedOptions(generations=1, parents=2, offspring=2, partial=1, final=1, judges=30, files=2)


# -------------------------------------------------------------------------- the thesis's numbers
def test_section_5_the_space_has_7_to_the_n_candidates() -> None:
    layers = [[f"layer{n}"] for n in range(28)]
    weights, both = space_of(layers), space_of(layers, inputs=True)
    assert np.prod([len(c) for c in weights.choices], dtype=object) == 7**28
    assert np.prod([len(c) for c in both.choices], dtype=object) == 7 ** (2 * 28)


def test_section_6_3_the_start_is_the_seven_uniform_candidates() -> None:
    space = space_of([["a"], ["b"], ["c"]])
    start = {uniform(space, bits) for bits in WIDTHS}
    assert vars(search)["WIDTHS"] == WIDTHS == (2, 3, 4, 5, 6, 7, 8)
    assert start == {(f"w{bits}",) * 3 for bits in range(2, 9)}


def test_section_6_2_1_what_is_fused_is_one_group() -> None:
    """A layer, its batch normalization, its activation: 11 operators are 5 groups."""
    groups = [[op.name for op in group] for group in components(unfolded().graph)]
    assert groups == [
        ["conv", "conv/mul", "conv/add", "conv/relu"],
        ["depthwise", "depthwise/mul", "depthwise/add", "depthwise/relu"],
        ["pool"],
        ["dense"],
        ["softmax"],
    ]


def test_section_6_3_3_the_mask_of_groups_without_weights_points_at_8() -> None:
    mask = mask_of(components(unfolded().graph))
    assert mask == [0, 1, -1, 2, -1]
    chosen = [3, 2, 5, MASKED]  # -1 points at what is appended
    assert [chosen[place] for place in mask] == [3, 2, 8, 5, 8]


def test_section_6_3_2_children_take_genes_of_both_and_one_in_ten_a_new_one() -> None:
    choices = [tuple(f"w{bits}" for bits in WIDTHS)] * 40
    random = np.random.default_rng(0)
    one, other, count = ("w2",) * 40, ("w8",) * 40, 4000
    born = [evolution.crossed(one, other, choices, random) for _ in range(count)]
    fresh = [sum(gene not in ("w2", "w8") for gene in child) for child in born]
    assert max(fresh) == 1
    # of the 10 % that change, 2 of 7 new genes are the parents' own
    assert np.mean(fresh) == pytest.approx(0.1 * 5 / 7, abs=0.015)
    shares = np.mean([[gene == "w2" for gene in child] for child in born])
    assert shares == pytest.approx(0.5, abs=0.01)


def test_section_7_1_a_generation_is_24_parents_and_24_children() -> None:
    assert (evolution.PARENTS, evolution.OFFSPRING) == (24, 24)
    space = space_of([[f"layer{n}"] for n in range(12)])
    asked: list[int] = []

    def evaluate(candidates: list[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[float, ...]]:
        asked.append(len(candidates))
        widths = [[int(gene[1]) for gene in one] for one in candidates]
        return {
            one: (float(sum(2.0 ** (-2 * b) for b in w)), float(sum(w)))
            for one, w in zip(candidates, widths, strict=True)
        }

    start = [uniform(space, bits) for bits in WIDTHS]
    known = evolution.evolve(start, space.choices, evaluate, 5)  # type: ignore[arg-type]  # a list is a sequence
    assert asked == [7, 24, 24, 24, 24, 24]
    assert len(known) == 7 + 5 * 24
    assert known == evolution.evolve(start, space.choices, evaluate, 5)  # type: ignore[arg-type]  # as above


def test_section_7_1_epochs_of_partial_and_final_training() -> None:
    assert (options.PARTIAL, options.FINAL) == (12, 50)
    assert options.PARTIAL / options.FINAL == 0.24  # the text says 25 %
    assert pytest.approx(20) == options.DELAY * options.FINAL
    assert pytest.approx(50 - 10) == options.FREEZE * options.FINAL
    assert options.GENERATIONS == 16  # section 7.2


def test_equation_6_2_counts_bits_biases_and_scales() -> None:
    layers = {"a": Layer(1000, 10, 10), "b": Layer(500, 0, 5)}
    assert bytes_of(layers, {"a": 2, "b": 8}) == (1000 * 2 + 500 * 8) // 8 + 4 * 10 + 4 * 15
    one_scale = bytes_of(layers, {"a": 2, "b": 8}, by_channel=False)
    assert one_scale == 250 + 500 + 4 * 10 + 4 * (2 + 2)  # a scale and a zero point each
    assert bytes_of({"a": Layer(3, 0, 1)}, {"a": 3}) == 2 + 4, "9 bits are 2 bytes: no padding"


def test_section_7_3_ten_times_smaller_than_float_is_2_5_times_smaller_than_8_bits() -> None:
    layers = {"a": Layer(10**6, 0, 0)}
    assert float_bytes(list(layers.values())) / bytes_of(layers, {"a": 8}) == 4 == 10 / 2.5


def test_sections_3_2_and_8_what_a_smaller_memory_saves() -> None:
    """65 % of weights' memory, 21.5 % of a unit's area, are 14 % of the unit."""
    assert round(0.65 * 0.215, 2) == 0.14


# ------------------------------------------------------------------------------------ groups, masks
def test_layers_may_share_a_choice_or_have_none() -> None:
    layers = [["net/a"], ["net/b"], ["net/c"]]
    space = space_of(layers, tied=["[ab]"], fixed={"c": "w8"})
    assert [gene.layers for gene in space.genes] == [("net/a", "net/b"), ("net/c",)]
    assert space.choices[1] == ("w8",)
    assert widths_of(space, ("w3", "w8")).weights == {"net/a": 3, "net/b": 3, "net/c": 8}
    both = space_of(layers, tied=["*"], inputs=True, fixed={"*": "a5"})
    assert widths_of(both, ("w4", "a5")).results == dict.fromkeys(["net/a", "net/b", "net/c"], 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fixed": {"a": "w9"}}, "option 'w9'"),
        ({"fixed": {"a": "a4"}}, "option 'a4'"),
        ({"fixed": {"z": "w4"}}, "'z' matches no layer"),
        ({"tied": ["z"]}, "'z' matches no layer"),
        ({"fixed": {"*": "w4"}}, "no layer has more than one width"),
    ],
)
def test_a_space_refuses_what_there_is_not(given: dict[str, object], message: str) -> None:
    with pytest.raises(QuantizeError, match=message):
        space_of([["a"], ["b"]], **given)  # type: ignore[arg-type]  # the names are parameters


def test_a_network_without_layers_is_refused() -> None:
    model = network((4, 3))
    model.signatures.clear()
    model.graph.outputs = [model.graph.inputs[0]]
    model.graph.remove(model.graph.ops[0])
    with pytest.raises(QuantizeError, match="no layer has constant float weights"):
        Network.of(model, {"x": np.zeros((3, 4), np.float32)})


# ------------------------------------------------------------------------------------- a whole run
def small() -> Model:
    """One convolution, normalized, and a dense layer: what depthwise ones become is trained in
    tests/lquantizer/training/test_narrow.py.
    """
    return unfolded(depthwise=False)


def searched(
    model: Model, x: Array, folder: Path, how: SeedOptions, labels: Array | None = None
) -> SearchResult:
    """Search from two of the seven uniform candidates, each of which is trained twice."""
    with pytest.MonkeyPatch.context() as context:
        context.setattr(f"{search.__name__}.WIDTHS", (2, 8))
        return luciole.search(model, x, folder, how, labels=labels, say=lambda line: None)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    folder = tmp_path_factory.mktemp("seed")
    with step_by_step():
        return folder, searched(small(), X, folder, SMALL)


def test_it_finds_a_front_of_files(found: tuple[Path, SearchResult]) -> None:
    folder, result = found
    assert result.layers == ["conv", "dense"]
    assert result.uniform.keys() == {"2 bits", "8 bits"}
    assert all(one.before in result.evaluated for one in result.uniform.values())
    for one in result.uniform.values():
        assert not any(
            one.bytes <= file.found.bytes and one.loss < file.found.loss for file in result.front
        ), "no uniform candidate is better than a file"
    assert len(result.evaluated) == 2 + 2
    values = np.array([(f.found.bytes, f.found.loss) for f in result.front])
    assert len(fronts(values)) == 1
    layers = Network.of(small(), {"x": X[:20]}).layers()
    for file in result.front:
        widths = {name: parse(option).weights for name, option in file.options.items()}
        assert file.found.bytes == file.path.stat().st_size
        assert f"-{file.found.bytes}B." in file.path.name
        assert file.found.costs == {FORMULA: bytes_of(layers, widths)}
        assert file.found.before in result.evaluated
        answers = luciole.Interpreter(str(file.path)).run({"x": X[:5]})
        assert all(np.isfinite(array).all() for array in answers.values())
    assert {p.name for p in folder.glob("*.circle")} == {f.path.name for f in result.front}


def test_the_same_search_again_trains_nothing(
    found: tuple[Path, SearchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, result = found
    train = "luciole.lquantizer.search.published.evaluate.SeedEvaluator.train"
    monkeypatch.setattr(train, lambda *given: 1 / 0)
    again = searched(small(), X, folder, SMALL)
    assert [file.found for file in again.front] == [file.found for file in result.front]


def test_another_search_is_refused(found: tuple[Path, SearchResult]) -> None:
    folder, _ = found
    with pytest.raises(QuantizeError, match="of a search with other settings"):
        searched(small(), X, folder, replace(SMALL, partial=2))
    with pytest.raises(QuantizeError, match="of a search with other records"):
        searched(small(), X, folder, SMALL, np.zeros(len(X), np.int64))


@pytest.mark.parametrize("stage", ["partial", "final"])
def test_models_with_several_outputs_that_are_no_classes(stage: str) -> None:
    """What is lost is the sum over outputs of squared errors, of variances where judged."""
    model = two_outputs()
    how = SeedOptions(partial=1, final=1, judges=20, inputs=True)
    data = (random(1, 60, 20), how, from_bytes, to_bytes)
    given, _ = materials(model, {"x": data[0]}, None, *data[1:])
    assert len(given.space.genes) == 2 * 2
    found = SeedEvaluator(given)({"stage": stage, "candidate": ("w8", "w8", "a8", "a8")})
    assert 0 < found["figures"]["loss"] < 0.01
    assert found["figures"]["bytes"] > found["figures"]["costs"][FORMULA]
    assert found["figures"]["agreement"] is None or stage == "final"


def evaluator(model: Model, x: Array, **choices: Any) -> SeedEvaluator:
    how = SeedOptions(partial=1, final=1, judges=20, **choices)
    return SeedEvaluator(materials(model, {"x": x}, None, how, from_bytes, to_bytes)[0])


def test_widths_of_tensors_count_while_candidates_are_judged() -> None:
    model = network((20, 16, 16, 4))
    model.signatures.clear()
    of = evaluator(model, random(1, 60, 20), inputs=True)
    with step_by_step():
        figures = {
            bits: of({"stage": "partial", "candidate": ("w8",) * 3 + bits})["figures"]
            for bits in (("a8",) * 3, ("a2", "a8", "a8"), ("a8", "a2", "a8"))
        }
    losses = [one["loss"] for one in figures.values()]
    assert len(set(losses)) == 3
    assert losses[0] < min(losses[1:]) / 10
    macs = 20 * 16, 16 * 16, 16 * 4
    counted = [one["costs"][OPERATIONS] for one in figures.values()]
    assert counted == [
        8 * 8 * sum(macs),
        8 * (8 * macs[0] + 2 * macs[1] + 8 * macs[2]),
        8 * (8 * macs[0] + 8 * macs[1] + 2 * macs[2]),
    ]


def test_bit_operations_are_small_where_tensors_have_genes(tmp_path: Path) -> None:
    model = network((20, 16, 4))
    model.signatures.clear()
    how = replace(SMALL, generations=0, inputs=True, judges=20)
    with step_by_step():
        result = searched(model, random(1, 60, 20), tmp_path, how)
    assert result.objectives == ("accuracy", "size", OPERATIONS)
    assert result.float_network.costs[OPERATIONS] == 32 * 32 * (20 * 16 + 16 * 4)
    assert len(result.hypervolumes()) == len(result.evaluated)
    values = np.array(
        [(f.found.bytes, f.found.loss, f.found.costs[OPERATIONS]) for f in result.front]
    )
    assert len(fronts(values)) == 1
    assert result.rows()[0][-3:] == [FORMULA, OPERATIONS, "options"]


@pytest.mark.parametrize("granularity", ["channel", "tensor"])
def test_weights_of_few_bits_take_as_few_in_the_file(granularity: Any) -> None:
    model = network((64, 128, 10))
    model.signatures.clear()
    x = random(1, 60, 64)
    of = evaluator(model, x, granularity=granularity)
    weights, sizes = 64 * 128, {}
    for bits in (8, 4, 3, 2):
        whole = of.untrained(uniform(of.space, bits))
        packed = from_bytes(to_bytes(of.packed(whole.clone(), uniform(of.space, bits))))
        sizes[bits] = len(to_bytes(packed))
        outputs = [luciole.Interpreter(m).run({"x": x[:40]}) for m in (whole, packed)]
        for one, other in zip(*(o.values() for o in outputs), strict=True):
            np.testing.assert_array_equal(one, other)
        interpreter = luciole.Interpreter(packed)
        interpreter.allocate_tensors()
        kinds = {step.op.kind for step in interpreter.plan.steps}
        assert kinds == {"QUANTIZE", "FULLY_CONNECTED", "TANH", "DEQUANTIZE"}
    for more, fewer in ((8, 4), (4, 3), (3, 2)):
        saved = (more - fewer) * weights / 8
        assert sizes[more] - sizes[fewer] == pytest.approx(saved, abs=1200 if fewer == 3 else 400)


def test_options_refuse_what_there_is_not() -> None:
    for field, value in (
        ("folding", "none"),
        ("granularity", "row"),
        ("partial", 0),
        ("parents", 1),
    ):
        with pytest.raises(QuantizeError, match=field):
            SeedOptions(**{field: value})  # type: ignore[arg-type]  # that is the point
    with pytest.raises(QuantizeError, match="at least 10 records"):
        luciole.search(unfolded(), X[:5], "nowhere", SMALL)
    with pytest.raises(InputError, match=r"shape \[3\], the answers \[90\]"):
        luciole.search(unfolded(), X, "nowhere", SMALL, labels=np.zeros(3, np.int64))
