"""List what each layer of a network may become, and a candidate's choice as a config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.names import short_names
from luciole.ir.value import element_count
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.assignment.layer_format import Integers, Levels, option_format, parse
from luciole.lquantizer.assignment.schemes import FLOAT, SCHEMES
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.layers import find_groups
from luciole.lquantizer.network.places import obstacle

WEIGHT_BITS = (1, 2, 3, 4)
INPUT_BITS = (1, 2, 3, 4, 8)
LEARNED_OPTIONS = tuple(str(Levels(w, a)) for w in WEIGHT_BITS for a in INPUT_BITS)
UNIFORM_OPTIONS = tuple(map(str, SCHEMES))
DYNAMIC = str(Integers(8, None))
UNCHANGED = str(FLOAT)
INTEGER_OPTIONS = tuple(str(Integers(bits, 8)) for bits in (*WEIGHT_BITS, 8))
"""Weights of integers and of levels that are integers, between tensors of 8 bits."""
OPTIONS = (*LEARNED_OPTIONS, *INTEGER_OPTIONS, DYNAMIC, str(Integers(4, None)), UNCHANGED)
"""What is tried unless others are asked for: learned levels, integers, int8 and int4 weights alone,
floats. Options are words of formats."""

Candidate = tuple[str, ...]
"""An option for each gene of a space."""


def is_learned(option: str) -> bool:
    """Check whether an option is of learned levels, such as levels:w2a4."""
    return option in LEARNED_OPTIONS


def is_between(option: str) -> bool:
    """Check whether an option is of integers between operators, such as int:w2a8."""
    types = SCHEMES.get(parse(option))
    return types is not None and types.activations is not None


@dataclass(frozen=True)
class Gene:
    """Layers, by their names, that get the same option, and the options they may get.

    ``is_end`` tells layers that learned levels spare by default. ``measured`` are the first ones of
    those that share their weights.
    """

    layers: tuple[str, ...]
    options: tuple[str, ...]
    is_end: bool = False
    measured: tuple[str, ...] = ()


@dataclass(frozen=True)
class Space:
    """All genes of a network, in execution order."""

    genes: tuple[Gene, ...]

    @classmethod
    def of(
        cls,
        graph: Graph,
        options: Sequence[str] = OPTIONS,
        tied: Iterable[str] = (),
        fixed: Mapping[str, str] | None = None,
    ) -> Space:
        """Find the layers of a graph. Those that share their weights are one gene, and those whose
        short names match a shell pattern of ``tied``; ``fixed`` gives layers by such a pattern one
        option.

        Raises QuantizeError where nothing can be chosen, and for patterns that match no layer.
        """
        genes = tied_genes(_genes(graph, read_options(options)), tied)
        names = (fixed or {}).values()
        genes = fixed_genes(genes, dict(zip(fixed or {}, read_options(names), strict=True)))
        _check_forms(graph, genes)
        if all(len(gene.options) < 2 for gene in genes):
            raise QuantizeError("nothing to search: no layer has more than one option")
        return cls(tuple(genes))

    @property
    def choices(self) -> list[tuple[str, ...]]:
        """The options of each gene."""
        return [gene.options for gene in self.genes]

    def uniform(self, option: str, ends: str | None = None) -> Candidate | None:
        """Give every layer one option, and layers that are spared by default another; None where
        they do not all have it.
        """
        asked = [ends if ends and gene.is_end else option for gene in self.genes]
        candidate = [
            gene.options[0] if len(gene.options) == 1 else one
            for gene, one in zip(self.genes, asked, strict=True)
        ]
        fits = all(one in gene.options for gene, one in zip(self.genes, candidate, strict=True))
        return tuple(candidate) if fits else None

    def by_layer(self, candidate: Candidate) -> dict[str, str]:
        """Return each layer's option, by its name."""
        pairs = zip(self.genes, candidate, strict=True)
        return {name: option for gene, option in pairs for name in gene.layers}

    def check_size(self, graph: Graph, name: str, size: int | None) -> None:
        """Refuse a ``size`` in bytes, of this name, that no file keeps to, as its weights alone
        take more. Raises QuantizeError.
        """
        least = self._least_bytes(graph)
        if size is not None and size < least:
            raise QuantizeError(f"{name} is {size} bytes: the weights alone take at least {least}")

    def _least_bytes(self, graph: Graph) -> int:
        """Bound the bytes of all layers' weights from below, by their options of the fewest bits;
        weights that layers share count once.
        """
        options = {name: gene.options for gene in self.genes for name in gene.layers}
        bits: dict[Value, int] = {}
        for op in graph.ops:
            weights = weight_constant(op) if op.name in options else None
            if weights is not None:
                each = min(parse(option).weights for option in options[op.name])
                bits[weights] = min(each, bits.get(weights, each))
        return sum(each * element_count(weights.dims) for weights, each in bits.items()) // 8

    def learned(self, candidate: Candidate) -> list[str]:
        """List the layers that get learned levels, one of each group that shares weights."""
        pairs = zip(self.genes, candidate, strict=True)
        return [name for gene, option in pairs if is_learned(option) for name in gene.measured]


def read_options(options: Iterable[str]) -> tuple[str, ...]:
    """Write options that people gave as words of formats. Raises QuantizeError for what is none,
    and for what might be two.
    """
    return tuple(map(_read, options))


def _read(option: str) -> str:
    known = (*LEARNED_OPTIONS, *UNIFORM_OPTIONS, UNCHANGED)
    word = str(option_format(option))
    if word not in known:
        raise QuantizeError(f"option {option!r}: {', '.join(known)} are possible")
    return word


def recipe(chosen: Mapping[str, str]) -> dict[str, Any]:
    """Write options by layer as the content of a config: ``Config.parse`` reads it."""
    return {
        "all_layers": True,
        "layers": [{"name": name, "scheme": option} for name, option in chosen.items()],
    }


def _genes(graph: Graph, options: Sequence[str]) -> list[Gene]:
    """Make a gene of each layer, with the options that its operator has."""
    every = Config(all_layers=True)
    groups, _ = find_groups(graph, every)
    spared = {name for group in find_groups(graph, Config())[0] for name in group.names}
    learned = {name: group.names for group in groups for name in group.names}
    uniform = tuple(option for option in options if not is_learned(option))
    genes: list[Gene] = []
    for op in graph.ops:
        weights = weight_constant(op) if has_weights(op) else None
        if weights is None or weights.dtype != TensorType.FLOAT32:
            continue
        names = tuple(learned.get(op.name, (op.name,)))
        allowed = tuple(options) if op.name in learned else uniform
        allowed = tuple(option for option in allowed if _why_not(op, option) is None)
        if names[0] == op.name and allowed:
            genes.append(Gene(names, allowed, op.name not in spared, names[:1]))
    return genes


def _check_forms(graph: Graph, genes: Iterable[Gene]) -> None:
    """Raise QuantizeError for a layer whose operator has no form of the integers it is to have."""
    chosen = {name: gene.options for gene in genes for name in gene.layers}
    for op in graph.ops:
        for option in chosen.get(op.name, ()):
            if (reason := _why_not(op, option)) is not None:
                raise QuantizeError(f"layer {op.name!r} has no form of {option}: {reason}")


def _why_not(op: Op, option: str) -> str | None:
    """Return the reason why a layer cannot compute with an option's integers, None where it can,
    and where the option has none between operators.
    """
    return obstacle(op, SCHEMES[parse(option)]) if is_between(option) else None


def tied_genes(genes: Sequence[Gene], patterns: Iterable[str]) -> list[Gene]:
    """Join genes that share a choice: those with a layer whose name matches a shell pattern.

    Raises QuantizeError for a pattern without layers, and for layers without a common option.
    """
    tied = list(genes)
    for pattern in patterns:
        members = _matching(tied, pattern)
        together = [option for option in members[0].options if _all_have(members, option)]
        if not together:
            which = ", ".join(gene.layers[0] for gene in members)
            raise QuantizeError(f"tied layers {which} have no option in common")
        names = tuple(name for gene in members for name in gene.layers)
        measured = tuple(name for gene in members for name in gene.measured)
        whole = Gene(names, tuple(together), all(g.is_end for g in members), measured)
        place = tied.index(members[0])
        tied = [gene for gene in tied if gene not in members]
        tied.insert(place, whole)
    return tied


def _all_have(genes: Sequence[Gene], option: str) -> bool:
    return all(option in gene.options for gene in genes)


def fixed_genes(genes: Sequence[Gene], fixed: Mapping[str, str]) -> list[Gene]:
    """Give genes one option, by a shell pattern for their layers.

    Raises QuantizeError for a pattern without layers, and for an option that a layer cannot have.
    """
    chosen = list(genes)
    for pattern, option in fixed.items():
        for gene in _matching(chosen, pattern):
            if is_learned(option) and not any(map(is_learned, gene.options)):
                raise QuantizeError(f"layer {gene.layers[0]!r} has no form with learned levels")
            chosen[chosen.index(gene)] = replace(gene, options=(option,))
    return chosen


def _matching(genes: Sequence[Gene], pattern: str) -> list[Gene]:
    """Find genes by a shell pattern for the whole or short name of one of their layers."""
    names = [name for gene in genes for name in gene.layers]
    short = short_names(names)
    matches = [
        gene
        for gene in genes
        if any(fnmatchcase(n, pattern) or fnmatchcase(short[n], pattern) for n in gene.layers)
    ]
    if not matches:
        known = ", ".join(short.values())
        raise QuantizeError(f"{pattern!r} matches no layer; the layers are {known}")
    return matches
