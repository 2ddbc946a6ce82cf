"""Where tensors lie in one block: apart while they live together, in place where they may be."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, GraphError, Model, TensorType, Value
from luciole.ir.analysis.layout import Layout, aligned, lay_out
from luciole.ir.analysis.lifetimes import Lifetime, lifetimes, shared_places
from luciole.ir.ops.add_n import AddN
from luciole.ir.ops.reshape import Reshape
from luciole.ir.value import element_count

ALIGNMENT = 32
SEEDS = range(40)


def tensor(name: str, count: int | None) -> Value:
    return Value(name, TensorType.FLOAT32, (count,))


def of_graph(graph: Graph, keep: bool = False) -> Layout:
    """The layout of all that has a place of its own, or shares one."""
    shared = shared_places(graph.ops)
    lives = lifetimes(graph, graph.ops, shared, keep)
    sizes = {v: 4 * element_count(v.dims) for v in lives}
    return lay_out(lives, sizes, shared, ALIGNMENT)


def of_lives(*sizes_and_lives: tuple[int, Lifetime]) -> list[tuple[int, int]]:
    """From where to where tensors lie, in the order in which they are given."""
    values = [tensor(f"v{n}", 1) for n in range(len(sizes_and_lives))]
    sizes = {v: size for v, (size, _) in zip(values, sizes_and_lives, strict=True)}
    lives = {v: life for v, (_, life) in zip(values, sizes_and_lives, strict=True)}
    places = lay_out(lives, sizes, {}, ALIGNMENT).places
    return [(places[v].begin, places[v].end) for v in values]


def random_graph(seed: int) -> Graph:
    """Operators that read any earlier tensor, of any sizes: most join several, many only reshape.
    There are a variable, tensors of unknown size, and several outputs.
    """
    rng, graph = np.random.default_rng(seed), Model().add_graph(Graph("main"))
    values = [graph.add_input(f"x{n}", (int(rng.integers(1, 60)),)) for n in range(3)]
    values.append(graph.add_value(tensor("state", 16)))
    values[-1].is_variable = True
    for number in range(60):
        recent = values[-15:]
        first, *others = (recent[i] for i in rng.integers(0, len(recent), 3))
        if number % 3 == 0 and None not in first.shape:
            count = element_count(first.dims)
            new_shape = (count, 1) if len(first.dims) == 1 else (count,)
            op = Reshape(first, None, new_shape=new_shape)
            values.append(graph.append(op, f"r{number}").output)
            continue
        size = None if number % 10 == 4 else int(rng.integers(1, 60))
        values.append(graph.add_value(tensor(f"t{number}", size)))
        graph.append(AddN((first, *others)), results=values[-1:])
    graph.outputs = [values[i] for i in rng.choice(len(values), 4, replace=False)]
    return graph


class Block:
    """The bytes of a layout, each with the number of who wrote it last."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.bytes = np.full(layout.size, -1)
        self.numbers: dict[Value, int] = {}

    def write(self, value: Value) -> None:
        """Write where a tensor lies, all in one's own number."""
        place = self.layout.places.get(value)
        if place is not None:
            self.numbers[value] = len(self.numbers)
            self.bytes[slice(*place)] = self.numbers[value]

    def holds(self, value: Value) -> bool:
        """Whether a tensor holds what was written to its place for it, or for its host."""
        place = self.layout.places.get(value)
        writer = self.layout.shared.get(value, value)
        return place is None or bool((self.bytes[slice(*place)] == self.numbers[writer]).all())


# ----------------------------------------------------------------------- of random graphs
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_operands_hold_what_was_computed_until_their_last_use(seed: int, keep: bool) -> None:
    graph = random_graph(seed)
    block = Block(of_graph(graph, keep))
    layout, lasting = block.layout, [*graph.inputs, *(v for v in graph.values if v.is_variable)]
    for value in lasting:
        block.write(value)
    for op in graph.ops:
        assert all(v is None or block.holds(v) for v in op.operands), op
        if op.output not in layout.shared:
            block.write(op.output)
    assert all(block.holds(v) for v in (*graph.outputs, *lasting))
    lost = {v for v in layout.places if not block.holds(v)}
    assert lost == layout.overwritten
    assert not (keep and lost)


@pytest.mark.parametrize("seed", SEEDS)
def test_places_are_aligned_and_as_large_as_asked_for(seed: int) -> None:
    graph = random_graph(seed)
    layout = of_graph(graph)
    for value, place in layout.places.items():
        assert place.begin % ALIGNMENT == 0
        assert place.end - place.begin == 4 * element_count(value.dims)
        assert place.end <= layout.size
    assert layout.size % ALIGNMENT == 0
    assert {v.name for v in graph.values if None in v.shape}.isdisjoint(
        v.name for v in layout.places
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_is_hardly_larger_than_what_lives_at_once(seed: int) -> None:
    graph = random_graph(seed)
    lives = lifetimes(graph, graph.ops, shared_places(graph.ops))
    sizes = {v: aligned(4 * element_count(v.dims), ALIGNMENT) for v in lives}
    most = max(
        sum(size for v, size in sizes.items() if lives[v].first <= now <= lives[v].last)
        for now in range(-1, len(graph.ops) + 1)
    )
    assert most <= of_graph(graph).size <= min(1.25 * most, sum(sizes.values()))
    assert of_graph(graph, keep=True).size == sum(sizes.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_what_only_reshapes_stands_in_its_operand_s_place(seed: int) -> None:
    graph = random_graph(seed)
    layout = of_graph(graph)
    assert layout.shared
    for value, host in layout.shared.items():
        assert layout.places[value] == layout.places[host]
        assert host not in layout.shared
        assert not host.is_variable
        assert not (host.is_input and value.is_output)


# ------------------------------------------------------------------------- of few tensors
def test_a_gap_is_used_again_and_the_lowest_one_first() -> None:
    early, late = Lifetime(0, 1), Lifetime(2, 3)
    assert of_lives((96, early), (64, early), (96, late), (32, late)) == [
        (0, 96),
        (96, 160),
        (0, 96),
        (96, 128),
    ]


def test_what_lasts_for_good_lies_below_in_order_of_size() -> None:
    found = of_lives((32, Lifetime(0, 1)), (8, Lifetime(-1, 5)), (64, Lifetime(-1, 5)))
    assert found == [(96, 128), (64, 72), (0, 64)]


def test_no_tensors_take_no_bytes() -> None:
    assert lay_out({}, {}, {}, ALIGNMENT) == Layout({}, 0, {}, frozenset())


def test_a_tensor_without_elements_takes_no_bytes() -> None:
    always = Lifetime(0, 3)
    assert of_lives((0, always), (32, always), (0, always))[1] == (0, 32)


def test_what_shares_the_place_of_a_tensor_without_one_has_none() -> None:
    host, guest = tensor("host", 1), tensor("guest", 1)
    assert lay_out({host: Lifetime(0, 1)}, {}, {guest: host}, ALIGNMENT).places == {}


def test_a_layout_refuses_more_bytes_than_numbers_count() -> None:
    values = [tensor(f"v{n}", 1) for n in range(5)]
    lives = dict.fromkeys(values, Lifetime(0, 0))
    with pytest.raises(GraphError, match=f"tensors take {5 << 60} bytes, at most {1 << 62} are"):
        lay_out(lives, dict.fromkeys(values, 1 << 60), {}, ALIGNMENT)
    four = dict.fromkeys(values[:4], 1 << 60)
    assert lay_out(lives, four, {}, ALIGNMENT).size == 1 << 62
