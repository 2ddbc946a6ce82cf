"""The page of operators: by family what is compiled, what NumPy computes and what becomes C."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import CUSTOM_OPS, OPS, Op, TensorType
from luciole.kernels.core import registry
from luciole.kernels.portable.calls import portable_kinds
from luciole.kernels.portable.moves import TYPES as HELD
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import BuiltinOperator

HEAD = """\
# Operators

Every operator listed here runs. It is read from and written to .circle without loss, and .tflite
too but for those that are [circle's own](#circles-own), and its shapes and element types are
inferred (extents may be unknown).

- **compiled**: element types that a compiled kernel computes as soon as shapes are known: before
  the model runs, or once it has computed them. Shapes that change from run to run, NumPy computes.
- **NumPy only**: element types that only the reference kernel computes: exact, but slower.
- **in C**: element types that `luciole compile` writes as C99, where shapes are known: {in_c}
  operators have some. "all" stands for those that programs hold: {held}.
- An element type that is in neither of the first two columns is refused with a sentence, unless
  tensors are quantized and floats are there: then the operator is computed in floats, between
  DEQUANTIZE and QUANTIZE, as where scales are none that kernels take. `luciole verify
  --performance` lists such operators.

Types are f32 (FLOAT32), i8 (INT8), u8 (UINT8) and so on; "f32 x i4/i8" is data in FLOAT32 with
weights in INT4 or INT8, "any" every type of numbers that NumPy has. Integers of 8 and 16 bits are
quantized where TFLite has them so, and computed bit for bit as its reference kernels do. "string"
is STRING: texts are fed and given as arrays of bytes objects, as LiteRT does (`str` and NumPy's own
types of texts may be fed, too). "no step" is an operator whose result is its input with another
shape: it takes no time.

Generated from the registry of operators and kernels; a test compares it.
"""

TAIL = """\
## Less than LiteRT runs

Nothing that LiteRT's builtin resolver knows: a test asks LiteRT about every operator that is kept
as it is. STABLEHLO_REDUCE_WINDOW and STABLEHLO_SCATTER take graphs of one operator of two numbers
(a sum, a product, the larger, the smaller, "and", "or"; an update for STABLEHLO_SCATTER), as LiteRT
does.

## Circle's own

TFLite has no such operators, so a model with one is written to .circle only: {circle}.

## Kept as they are

These are read, shown and written again with everything they hold, but cannot run: {names}.

Of those whose names start with {prefix}: {prefixed}.

CUSTOM operators run where a function is registered for them: see
[operators of your own](../how-to/custom-operators.md).
"""

MOVING = "Moving elements"
FAMILIES = {
    "Layers": "conv_2d conv_3d conv_3d_transpose depthwise_conv_2d transpose_conv fully_connected "
    "batch_matmul bcq_fully_connected lq_conv_2d lq_fully_connected",
    "Recurrent layers": "unidirectional_sequence_lstm bidirectional_sequence_lstm rnn "
    "bidirectional_sequence_rnn gru svdf",
    "Activations and normalization": "activations gelu leaky_relu prelu softmax instance_norm "
    "l2_normalization local_response_normalization rms_norm rope",
    "Pools, reductions and searches": "pool_2d reduce arg_min_max cumsum segment_sum topk_v2 "
    "unsorted_segment unique reduce_window stablehlo_reduce_window",
    "Element-wise arithmetic": "elementwise_binary elementwise_unary add_n complex_parts rfft2d "
    "stablehlo_elementwise",
    "Comparisons and choices": "comparisons logical select where",
    "Conversions": "cast quantize bitcast fake_quant bucketize densify",
    "Images and boxes": "resize non_max_suppression tflite_detection_postprocess",
    "Constants, shapes and random numbers": "fill range one_hot random rank shape "
    "stablehlo_rng_bit_generator",
    "Texts and hashes": "skip_gram lsh_projection",
    "Control flow and variables": "control_flow variables hashtable",
}
"""Titles, and files of ``ir/ops`` below them; what is in no other family moves elements."""

STABLEHLO = "STABLEHLO_"
_SHORT = {"FLOAT": "f", "UINT": "u", "INT": "i", "COMPLEX": "c"}
_WEIGHTS = ("i4", "i8", "u8")

Kernels = Mapping[str, set[str]]
"""Element types in short, by kind of kernel."""


def page() -> str:
    """Write the whole page."""
    families: dict[str, list[type[Op]]] = {title: [] for title in (*FAMILIES, MOVING)}
    for cls in sorted({*OPS.values(), *CUSTOM_OPS.values()}, key=name_of):
        families[_family(cls)].append(cls)
    found = kernels()
    tables = [_table(title, classes, found) for title, classes in families.items()]
    in_c = sum(cls.reshapes or "portable" in found[cls] for cls in found)
    held = ", ".join(map(_short, HELD))
    return "\n".join((HEAD.format(in_c=in_c, held=held), *tables, _tail()))


def kernels() -> dict[type[Op], dict[str, set[str]]]:
    """Find every operator's element types, by kind of kernel."""
    found: dict[type[Op], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for kind, cls, signature in registry.registered():
        found[cls][kind].add(_type(signature))
    for cls, signature in portable_kinds():
        found[cls]["portable"].add(_type(signature))
    return found


def name_of(cls: type[Op]) -> str:
    """Name an operator by its builtin code, or as files call it behind CUSTOM."""
    return (cls.code == BuiltinOperator.CUSTOM and cls.custom_code) or cls.code.name


def _family(cls: type[Op]) -> str:
    file = cls.__module__.rpartition(".")[2]
    return next((title for title, files in FAMILIES.items() if file in files.split()), MOVING)


def _table(title: str, classes: Iterable[type[Op]], found: Mapping[type[Op], Kernels]) -> str:
    rows = [" | ".join(("", name_of(cls), *_cells(cls, found[cls]), "")) for cls in classes]
    rows = [row.strip().replace("|  |", "| |") for row in rows]
    head = [f"## {title}", "", "| operator | compiled | NumPy only | in C |", "|---|---|---|---|"]
    return "\n".join((*head, *rows)) + "\n"


def _cells(cls: type[Op], found: Kernels) -> tuple[str, str, str]:
    in_c = _listed(found.get("portable", set()), HELD, "all")
    if cls.reshapes and "native" not in found:
        others = found["reference"] - {_short(dtype) for dtype in registry.ANY}
        return "no step", _listed(others), "no step"
    if "stateful" in found:
        return "", _listed(_types_with_texts(cls)) or "any", in_c
    native = found.get("native", set())
    reference = found.get("reference", set())
    return _listed(native), _listed(reference - native), in_c


def _types_with_texts(cls: type[Op]) -> set[str]:
    """Find the element types of operands that may be texts, and of few other types."""
    fields = [field.dtypes for field in cls.operand_fields() if TensorType.STRING in field.dtypes]
    return {_short(dtype) for dtypes in fields for dtype in dtypes}


def _listed(types: set[str], every: Iterable[TensorType] = registry.ANY, word: str = "any") -> str:
    everything = {_short(dtype) for dtype in every}
    if everything <= types:
        types = (types - everything) | {word}
    weights: dict[str, list[str]] = defaultdict(list)
    for data, _, of in sorted(text.partition(" x ") for text in types):
        weights[data] += [of] if of else []
    alone = sorted(text for text in types if " x " not in text)
    data_of: dict[str, list[str]] = defaultdict(list)
    for data, others in weights.items():
        data_of["/".join(others)] += [data] if others else []
    pairs = (f"{'/'.join(several)} x {of}" for of, several in data_of.items() if several)
    return ", ".join([*alone, *pairs])


def _type(signature: tuple[TensorType, ...]) -> str:
    """Say what a signature computes: its first type, and that of weights that differ from it."""
    first, *others = [_short(dtype) for dtype in signature] or ["no data"]
    if not others or others[0] == first:
        return first
    pair = sorted((first, others[0]), key=_bits, reverse=True)  # weights may come first
    return " x ".join(pair) if pair[1] in _WEIGHTS and pair[0] != "i32" else first


def _bits(short: str) -> int:
    return int("".join(filter(str.isdigit, short)) or 1)


def _short(dtype: TensorType) -> str:
    for long, letter in _SHORT.items():
        if dtype.name.startswith(long):
            return letter + dtype.name.removeprefix(long)
    return dtype.name.lower()


def _tail() -> str:
    codes = set(BuiltinOperator) - set(OPS)
    missing = sorted(code.name for code in codes)
    others = (n for n in missing if not n.startswith(STABLEHLO) and n != "CUSTOM")
    prefixed = (n.removeprefix(STABLEHLO) for n in missing if n.startswith(STABLEHLO))
    circle = sorted(code.name for code in OPS if TFLITE.number(code) is None)
    return TAIL.format(
        circle=", ".join(circle),
        names=", ".join(others),
        prefix=STABLEHLO,
        prefixed=", ".join(prefixed),
    )
