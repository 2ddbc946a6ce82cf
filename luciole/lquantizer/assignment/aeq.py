"""Recipes of AI Edge Quantizer (LiteRT Quantizer): which format each operator gets.

A recipe is a list of rules ``{"regex", "operation", "algorithm_key", "op_config"}``. A rule is for
operators whose scope, the names of their results each with a semicolon behind, has a match of the
regular expression, and whose name is the operation, or for all that the configuration is possible
for where that is ``*``. The last rule that is for an operator wins, rules of one expression
standing where its first one does (AI Edge Quantizer 0.10, ``recipe_manager.py``; what is possible
for which operator is in its ``default_policy.py``, for some algorithms in
``algorithm_manager.py``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from luciole.ir import Graph, Op, Value
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.lquantizer.assignment.layer_format import Float, Integers, LayerFormat, StoredLevels
from luciole.lquantizer.assignment.schemes import BLOCKS, FLOAT
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.reading import compiled, refuse_others, text_in

_INPUT, _OUTPUT = "INPUT", "OUTPUT"
"""Operations of a recipe that stand for a graph's inputs and outputs."""
_RENAMED = {"TRANSPOSE_CONV": "CONV_2D_TRANSPOSE"}
"""Names of operators in recipes that differ from those in files."""

_LAYERS = frozenset(
    ["CONV_2D", "CONV_2D_TRANSPOSE", "DEPTHWISE_CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED"]
)
_ENDS = frozenset([_INPUT, _OUTPUT])
_STATIC = _ENDS | {
    "ADD",
    "AVERAGE_POOL_2D",
    "BATCH_MATMUL",
    "CONCATENATION",
    "CONV_2D",
    "CONV_2D_TRANSPOSE",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "GELU",
    "LOGISTIC",
    "MEAN",
    "MUL",
    "RESHAPE",
    "RSQRT",
    "SOFTMAX",
    "SPLIT",
    "STRIDED_SLICE",
    "SUB",
    "TANH",
    "TRANSPOSE",
    "SLICE",
    "SUM",
    "SELECT",
    "SELECT_V2",
    "DYNAMIC_UPDATE_SLICE",
    "STABLEHLO_COMPOSITE",
    "PAD",
    "MAX_POOL_2D",
    "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR",
    "GATHER_ND",
    "PACK",
    "UNPACK",
    "DIV",
    "BROADCAST_TO",
    "SQRT",
    "GATHER",
    "MAXIMUM",
    "PADV2",
    "REDUCE_MIN",
    "EQUAL",
    "NOT_EQUAL",
    "MIRROR_PAD",
    "RELU",
}
_NARROW = frozenset(["FULLY_CONNECTED", "EMBEDDING_LOOKUP", "CONV_2D"])
_WITH_WEIGHTS = _LAYERS | {"BATCH_MATMUL"}
_INT8 = _STATIC | {"SQUARED_DIFFERENCE", "HARD_SWISH", "SPACE_TO_DEPTH"}
_FEW = {"FULLY_CONNECTED", "CONV_2D"}
"""Layers that 4 bit weights under integers are possible for."""
_OPERATIONS: dict[LayerFormat, frozenset[str]] = {
    Integers(8, 8): _INT8,
    Integers(8, 16): _STATIC,
    Integers(4, 8): (_INT8 - _WITH_WEIGHTS) | _FEW,
    Integers(4, 16): (_STATIC - _WITH_WEIGHTS) | _FEW,
    Integers(8, None): _WITH_WEIGHTS,
    Integers(4, None): _NARROW,
    StoredLevels(8): _WITH_WEIGHTS,
    StoredLevels(4): _NARROW | {"BATCH_MATMUL"},
    **{StoredLevels(4, size): frozenset(["FULLY_CONNECTED"]) for size in BLOCKS},
    Float(16): _LAYERS,
}
"""Operations that a format is possible for; weights are no matter where there are none."""
_ALGORITHMS: dict[str, frozenset[str]] = {
    "min_max_uniform_quantize": _INT8 | _LAYERS,
    "OCTAV": _INT8 | _LAYERS,
    "MSE": _LAYERS,
    "GPTQ": frozenset(["FULLY_CONNECTED"]),
    "float_casting": _LAYERS,
    "no_quantize": frozenset(),
}
"""Operations that an algorithm is for."""
_KEYS = {"regex", "operation", "algorithm_key", "op_config"}
_CONFIG = {
    "activation_tensor_config",
    "weight_tensor_config",
    "compute_precision",
    "explicit_dequantize",
    "skip_checks",
    "min_weight_elements",
}
_TENSOR = {"num_bits", "symmetric", "granularity", "dtype", "block_size", "algorithm_params"}


@dataclass(frozen=True)
class AeqRule:
    """One rule: what it is for, and the format that it says."""

    number: int
    pattern: re.Pattern[str]
    operation: str
    algorithm: str
    format: LayerFormat
    granularity: str | None = None
    least: int = 0
    """Elements that weights must have to be rounded, where tensors between operators stay float."""

    def is_for(self, operation: str, scope: str) -> bool:
        """Check whether the rule is for an operation with a scope."""
        if self.operation not in ("*", operation) or not self.pattern.search(scope):
            return False
        possible = _ALGORITHMS[self.algorithm] & _OPERATIONS.get(self.format, frozenset())
        return self.format == FLOAT or operation in possible

    def __str__(self) -> str:
        which = f"{self.pattern.pattern!r}, {self.operation}"
        return f"rule {self.number} ({which}): {self.algorithm} -> {self.format}"


@dataclass(frozen=True)
class AeqRecipe:
    """A recipe's rules in the order of their strength, the strongest last."""

    rules: tuple[AeqRule, ...]
    used: dict[int, Counter[str]] = field(default_factory=dict, compare=False)
    """Numbers of operators by format, for each rule by its number, after ``choices``."""
    own_ends: frozenset[str] = frozenset()
    """Which of ``input_type`` and ``output_type`` somebody chose otherwise."""

    @classmethod
    def parse(cls, content: Any) -> AeqRecipe:
        """Read a recipe. Raises QuantizeError that says what was not understood, or names what
        luciole does not have.
        """
        by_regex: dict[str, list[AeqRule]] = {}
        for number, entry in enumerate(content, 1):
            rule = _rule(number, entry)
            others = by_regex.setdefault(rule.pattern.pattern, [])
            by_regex[rule.pattern.pattern] = _with(others, rule)
        return cls(tuple(rule for rules in by_regex.values() for rule in rules))

    def choices(self, graph: Graph) -> Mapping[Op, LayerFormat]:
        """Return the format of every operator, floats where no rule is for it."""
        self.used.clear()
        return {op: self._format(op) for op in graph.ops}

    def _format(self, op: Op) -> LayerFormat:
        operation = _RENAMED.get(op.kind, op.kind)
        rule = self._last(operation, "".join(f"{value.name};" for value in op.results))
        if rule is None:
            return FLOAT
        format = FLOAT if _is_small(op, rule) else rule.format
        self.used.setdefault(rule.number, Counter())[str(format)] += 1
        return format

    def _last(self, operation: str, scope: str) -> AeqRule | None:
        return next((r for r in reversed(self.rules) if r.is_for(operation, scope)), None)

    def ends(self, graph: Graph) -> dict[str, str]:
        """Return the types of a graph's inputs and outputs: ``input_type`` and ``output_type``."""
        types = {
            "input_type": self._end(_INPUT, graph.inputs),
            "output_type": self._end(_OUTPUT, graph.outputs),
        }
        return {name: end for name, end in types.items() if name not in self.own_ends}

    def _end(self, operation: str, values: list[Value]) -> str:
        """Name the type of all inputs or outputs; float32 where they differ."""
        rules = [self._last(operation, f"{value.name};") for value in values]
        bits = {None if rule is None else _bits_between(rule.format) for rule in rules}
        return f"int{bits.pop()}" if len(bits) == 1 and None not in bits else "float32"

    def report(self) -> Iterator[str]:
        """Yield a line for every rule, with the number of operators of each format."""
        for rule in sorted(self.rules, key=lambda rule: rule.number):
            used = self.used.get(rule.number, Counter())
            counts = ", ".join(f"{count} {word}" for word, count in sorted(used.items()))
            yield f"{rule}: {counts or 'no operator'}"

    @property
    def defaults(self) -> dict[str, str]:
        """The choices of ``luciole.quantize`` that algorithms and granularities stand for.

        Raises QuantizeError where rules do not go together.
        """
        names = {rule.algorithm for rule in self.rules}
        choices = {"ranges": "min_max", "rounding": "nearest", "rescale": "none"}
        if names & {"MSE", "OCTAV"}:
            choices["ranges"] = "mse"
        if "GPTQ" in names:
            choices["rounding"] = "output_aware"
        sizes = {rule.granularity for rule in self.rules if rule.granularity is not None}
        if len(sizes) > 1:
            raise QuantizeError(
                "recipe: rules have TENSORWISE and CHANNELWISE weights, one is needed"
            )
        choices |= {"granularity": sizes.pop()} if sizes else {}
        return choices | {"scheme": str(self._format_of_all())}

    def _format_of_all(self) -> LayerFormat:
        """Choose a format with the element type of all integers between operators."""
        formats = [rule.format for rule in self.rules if rule.format != FLOAT]
        static = [format for format in formats if _bits_between(format) is not None]
        if not formats:
            raise QuantizeError("recipe: no rule quantizes anything")
        if len(set(map(_bits_between, static))) > 1:
            raise QuantizeError("recipe: rules have activations of 8 and of 16 bits, one is needed")
        return (static or formats)[0]


def _bits_between(format: LayerFormat) -> int | None:
    """Return the bits of tensors between operators, None where they stay float."""
    return format.inputs if isinstance(format, Integers) else None


def _with(others: list[AeqRule], rule: AeqRule) -> list[AeqRule]:
    """Add a rule to those of its regular expression: in place of the one for the same operation, or
    of all where it is for all operations.
    """
    if rule.operation == "*":
        return [rule]
    kept = [rule if other.operation == rule.operation else other for other in others]
    return kept if rule in kept else [*others, rule]


def _is_small(op: Op, rule: AeqRule) -> bool:
    """Check whether an operator has no weights that the rule would round."""
    if _bits_between(rule.format) is not None or rule.format == FLOAT:
        return False
    value = weight_constant(op) if has_weights(op) else None
    return value is None or value.data is None or value.data.size < rule.least


def _rule(number: int, entry: Any) -> AeqRule:
    where = f"recipe: rule {number}"
    if not isinstance(entry, Mapping):
        raise QuantizeError(f"{where} is {entry!r}, an object is needed")
    refuse_others(where, entry, _KEYS)
    texts = {key: text_in(where, entry, key) for key in ("regex", "operation", "algorithm_key")}
    algorithm, operation = texts["algorithm_key"], texts["operation"]
    if algorithm not in _ALGORITHMS:
        known = ", ".join(_ALGORITHMS)
        raise QuantizeError(f"{where}: there is no {algorithm} here, there is {known}")
    pattern = compiled(f"{where}: regex", texts["regex"], texts["regex"])
    if algorithm == "no_quantize":
        return AeqRule(number, pattern, operation, algorithm, FLOAT)
    config = entry.get("op_config", {})
    if not isinstance(config, Mapping):
        raise QuantizeError(f"{where}: op_config is {config!r}, an object is needed")
    refuse_others(f"{where}: op_config", config, _CONFIG)
    format = _format(where, algorithm, config)
    if config.get("skip_checks"):
        raise QuantizeError(f"{where}: there is no skip_checks here")
    least = config.get("min_weight_elements", 0)
    if type(least) is not int or least < 0:
        raise QuantizeError(f"{where}: min_weight_elements is {least!r}")
    weights = _tensor(where, config, "weight_tensor_config")
    granularity = None if format == Float(16) else _GRANULARITIES[weights.granularity]
    rule = AeqRule(number, pattern, operation, algorithm, format, granularity, least)
    possible = _ALGORITHMS[algorithm] & _OPERATIONS[format]
    if operation != "*" and operation not in possible:
        names = ", ".join(sorted(possible))
        raise QuantizeError(f"{where}: {algorithm} to {format} is for {names}, not {operation}")
    return rule


@dataclass(frozen=True)
class _Tensor:
    """A recipe's settings of weights, or of tensors between operators."""

    bits: int
    symmetric: bool
    dtype: str
    granularity: str

    @property
    def block(self) -> int | None:
        """Weights of a block, None where scales are of outputs or of the tensor."""
        size = self.granularity.removeprefix(_BLOCKWISE)
        return None if size == self.granularity else int(size)


def _tensor(where: str, config: Mapping[str, Any], key: str) -> _Tensor:
    settings = config.get(key)
    if not isinstance(settings, Mapping):
        raise QuantizeError(f"{where}: {key} is {settings!r}, an object is needed")
    where = f"{where}: {key}"
    refuse_others(where, settings, _TENSOR)
    bits, symmetric = settings.get("num_bits"), settings.get("symmetric", True)
    if type(bits) is not int or type(symmetric) is not bool:
        raise QuantizeError(f"{where}: num_bits is a whole number, symmetric true or false")
    if settings.get("algorithm_params"):
        raise QuantizeError(f"{where}: there are no algorithm_params here")
    size = settings.get("block_size")
    granularity = f"{_BLOCKWISE}{size}" if size else str(settings.get("granularity", "TENSORWISE"))
    if granularity not in _GRANULARITIES:
        raise QuantizeError(f"{where}: there is no granularity {granularity} here")
    return _Tensor(bits, symmetric, str(settings.get("dtype", "INT")), granularity)


_BLOCKWISE = "BLOCKWISE_"
_GRANULARITIES = {
    "CHANNELWISE": "channel",
    "TENSORWISE": "tensor",
    **{f"{_BLOCKWISE}{size}": "channel" for size in BLOCKS},
}
_WEIGHTS, _BETWEEN = (4, 8), (8, 16)
"""Bits that there are, of integer weights and of integers between operators."""


def _format(where: str, algorithm: str, config: Mapping[str, Any]) -> LayerFormat:
    """Read the format that a configuration says. Raises QuantizeError for one that is none."""
    weights = _tensor(where, config, "weight_tensor_config")
    precision, explicit = config.get("compute_precision"), config.get("explicit_dequantize")
    format: LayerFormat | None = None
    if algorithm == "float_casting":
        format = Float(16) if (weights.bits, weights.dtype) == (16, "FLOAT") else None
    elif weights.bits not in _WEIGHTS:
        format = None
    elif weights.block is not None:
        format = _blocks(weights, config)
    elif precision == "FLOAT" and explicit is True:
        format = StoredLevels(weights.bits)
    elif precision == "INTEGER" and not explicit and weights.symmetric:
        format = _integers(where, weights, config)
    if format is None or (format != Float(16) and weights.dtype != "INT"):
        raise QuantizeError(
            f"{where}: there is no {algorithm} of {weights.bits} bit {weights.dtype} weights with "
            f"compute_precision {precision} and explicit_dequantize {explicit} here"
        )
    return format


def _blocks(weights: _Tensor, config: Mapping[str, Any]) -> StoredLevels | None:
    """Read weights of blocks, which there are under float tensors alone."""
    precision, explicit = config.get("compute_precision"), config.get("explicit_dequantize")
    alone = config.get("activation_tensor_config") is None and weights.symmetric
    if precision != "INTEGER" or explicit or not alone:
        return None
    format = StoredLevels(weights.bits, weights.block)
    return format if format in _OPERATIONS else None


def _integers(where: str, weights: _Tensor, config: Mapping[str, Any]) -> Integers | None:
    if config.get("activation_tensor_config") is None:
        return Integers(weights.bits, None)
    between = _tensor(where, config, "activation_tensor_config")
    if between.dtype != "INT" or (between.bits == 16 and not between.symmetric):
        return None
    return Integers(weights.bits, between.bits) if between.bits in _BETWEEN else None
