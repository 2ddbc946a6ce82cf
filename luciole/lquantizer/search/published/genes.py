"""Find which layers are one when a network is deployed, and how a candidate says their widths.

After "Automated quantization of neural networks" (a thesis on mixed precision by NSGA-II), sections
6.2.1 (groups), 6.3.1 (chromosome) and 6.3.3 (mask).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.ops.activations import Logistic, Rectifier, Tanh
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.space import Candidate, Gene, Space, fixed_genes, tied_genes

WIDTHS = tuple(range(2, 9))
"""Bits of genes (section 6.3.1)."""
MASKED = 8
"""Bits of a group without weights, for the mask's -1 (section 6.3.3)."""
_ACTIVATIONS = (Rectifier, Logistic, Tanh)

Edge = tuple[Op, Op]


def components(graph: Graph) -> list[list[Op]]:
    """Group the operators that a deployed network fuses, each group in execution order, by
    breadth-first search (section 6.2.1).

    These are a layer, the multiplication and the addition of its batch normalization, and its
    activation; layers that share their weights are one as well.
    """
    near: dict[Op, list[Op]] = {op: [] for op in graph.ops}
    for one, other in (*_fused(graph), *_sharing(graph)):
        near[one].append(other)
        near[other].append(one)
    order, groups, grouped = {op: n for n, op in enumerate(graph.ops)}, [], set[Op]()
    for op in graph.ops:
        if op not in grouped:
            group = _reached(op, near)
            grouped |= group
            groups.append(sorted(group, key=order.__getitem__))
    return groups


def _reached(start: Op, near: Mapping[Op, Sequence[Op]]) -> set[Op]:
    reached, waiting = {start}, deque([start])
    while waiting:
        for op in near[waiting.popleft()]:
            if op not in reached:
                reached.add(op)
                waiting.append(op)
    return reached


def _fused(graph: Graph) -> Iterable[Edge]:
    """Yield operators and the only readers of their results that are fused with them."""
    for op in graph.ops:
        for result in op.results if is_layer(op) or isinstance(op, Mul | Add) else ():
            users = [use.op for use in result.users]
            if len(users) == 1 and not result.is_output and _follows(users[0], op):
                yield op, users[0]


def _follows(after: Op, op: Op) -> bool:
    if isinstance(after, Mul):
        return is_layer(op) and _has_constant(after)
    if isinstance(after, Add):
        return (is_layer(op) or isinstance(op, Mul)) and _has_constant(after)
    normalizes = is_layer(op) or _has_constant(op)
    return isinstance(after, _ACTIVATIONS) and normalizes


def _has_constant(op: Op) -> bool:
    return any(value is not None and value.data is not None for value in op.operands)


def _sharing(graph: Graph) -> Iterable[Edge]:
    first: dict[Value, Op] = {}
    for op in graph.ops:
        weights = weight_constant(op) if is_layer(op) else None
        if weights is not None and first.setdefault(weights, op) is not op:
            yield first[weights], op


def is_layer(op: Op) -> bool:
    """Check whether an operator has constant float weights."""
    weights = weight_constant(op) if has_weights(op) else None
    return weights is not None and weights.dtype == TensorType.FLOAT32


def mask_of(groups: Sequence[Collection[Op]]) -> list[int]:
    """Number the genes of groups in order, -1 for a group without weights."""
    mask, number = [], 0
    for group in groups:
        weighty = any(is_layer(op) for op in group)
        mask.append(number if weighty else -1)
        number += weighty
    return mask


@dataclass(frozen=True)
class Widths:
    """Bits of weights and of results, by the names of layers."""

    weights: Mapping[str, int]
    results: Mapping[str, int]


def space_of(
    layers: Sequence[Sequence[str]],
    tied: Iterable[str] = (),
    fixed: Mapping[str, str] | None = None,
    inputs: bool = False,
) -> Space:
    """Make a gene for each group of layers: options "w2" to "w8" for its weights; with ``inputs``
    another of "a2" to "a8" for its result, which is what the next group reads. Layers by a shell
    pattern of ``tied`` share a choice, ``fixed`` makes one, such as {"conv1": "w8"}.

    Raises QuantizeError for patterns and options that there are not, and where nothing is left.
    """
    kinds = "wa" if inputs else "w"
    fixed, tied = dict(fixed or {}), list(tied)
    _check(fixed, kinds)
    genes: list[Gene] = []
    for kind in kinds:
        options = tuple(f"{kind}{bits}" for bits in WIDTHS)
        own = [Gene(tuple(names), options, False, tuple(names[:1])) for names in layers]
        chosen = {p: option for p, option in fixed.items() if option[0] == kind}
        genes += fixed_genes(tied_genes(own, tied), chosen)
    if all(len(gene.options) < 2 for gene in genes):
        raise QuantizeError("nothing to search: no layer has more than one width")
    return Space(tuple(genes))


def _check(fixed: Mapping[str, str], kinds: str) -> None:
    possible = [f"{kind}{bits}" for kind in kinds for bits in WIDTHS]
    for option in fixed.values():
        if option not in possible:
            raise QuantizeError(f"option {option!r}: {', '.join(possible)} are possible")


def widths_of(space: Space, candidate: Candidate) -> Widths:
    """Read a candidate: layers whose results have no gene keep 8 bits there."""
    bits: dict[str, dict[str, int]] = {"w": {}, "a": {}}
    for gene, option in zip(space.genes, candidate, strict=True):
        bits[option[0]] |= dict.fromkeys(gene.layers, int(option[1]))
    return Widths(bits["w"], bits["a"])


def uniform(space: Space, bits: int) -> Candidate:
    """Give every gene the same bits, but those that have no choice."""
    return tuple(
        gene.options[0] if len(gene.options) == 1 else f"{gene.options[0][0]}{bits}"
        for gene in space.genes
    )
