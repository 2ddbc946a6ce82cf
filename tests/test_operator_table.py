"""docs/reference/operators.md: the operators there are, and what the registry has to compute them.

After a change that adds an operator or a kernel:

    python3 -m tests.test_operator_table --update
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.exporters import to_bytes
from luciole.ir import CUSTOM_OPS, OPS, Graph, Model, Op, TensorType, UnknownOp, Value
from luciole.kernels.core import registry
from luciole.schema import opcodes
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import BuiltinOperator
from luciole.schema.errors import FormatError

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "operators.md"

HEAD = """\
# Operators

Generated from the registry of operators and kernels; a test compares it. Every operator that is
listed is read from and written to .circle without loss, and .tflite too but for those that are
circle's own (below), has its shapes and element types inferred (extents may be unknown), and has a
NumPy kernel with exact semantics for the element types named; for some of them there is a compiled
kernel too, which is used where shapes are known before the model runs. An element type that is not
named is refused with a sentence.

Types are f32 (FLOAT32), i8 (INT8), u8 (UINT8) and so on; "f32 i8 f32" is one type for each
operand with data, "any" every type that NumPy has. 8 and 16 bit integers are quantized tensors
where TFLite has them so, and computed bit for bit as its reference kernels do.
"""

TAIL = """\

## Less than LiteRT runs

What LiteRT's builtin resolver knows and luciole does not run, each with its reason (a test asks
LiteRT about every operator that is kept as it is):

{unlike}

The results of IF and the inputs of WHILE keep their rank: graphs of an IF whose results differ in
rank, and a body of a WHILE that changes one, are refused with a sentence. LiteRT runs them. Extents
may change.

## Circle's own

TFLite has no such operators, so a model with one is written to .circle only: {circle}.

## Kept as they are

These are read, shown and written again with everything they hold, but cannot run: {names}.

CUSTOM operators run where a function is registered for them: see
[operators of your own](../how-to/custom-operators.md).
"""

REASONS = {
    "HASHTABLE": "its keys or its values are strings, which no other operator here computes with",
    "SKIP_GRAM": "it computes with strings",
    "LSH_PROJECTION": "its results are bits of a hash of floats' bytes; no model met has it",
    "STABLEHLO": "converters write them only where they are told to leave StableHLO as it is; "
    "STABLEHLO_COMPOSITE, which has a decomposition, runs",
}
"""Why operators do not run, by the beginnings of their names: all that LiteRT runs have one."""

LUCI = """
ABS ADD ADD_N ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_TO_SPACE_ND BATCH_MATMUL
BIDIRECTIONAL_SEQUENCE_LSTM BROADCAST_TO CAST CEIL CONCATENATION CONV_2D COS CUMSUM CUSTOM DENSIFY
DEPTH_TO_SPACE DEPTHWISE_CONV_2D DEQUANTIZE DIV ELU EQUAL EXP EXPAND_DIMS FAKE_QUANT FILL FLOOR
FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GELU GREATER GREATER_EQUAL GRU HARD_SWISH IF
L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOCAL_RESPONSE_NORMALIZATION LOG
LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MATRIX_DIAG MAX_POOL_2D MATRIX_SET_DIAG
MAXIMUM MEAN MINIMUM MIRROR_PAD MUL NEG NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 NOT_EQUAL
ONE_HOT PACK PAD PADV2 POW PRELU QUANTIZE RANGE RANK REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD
RELU RELU_0_TO_1 RELU6 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR
REVERSE_SEQUENCE REVERSE_V2 ROUND RSQRT SCATTER_ND SEGMENT_SUM SELECT SELECT_V2 SHAPE SIGN SIN
SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SPLIT SPLIT_V SQRT SQUARE
SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV
UNIDIRECTIONAL_SEQUENCE_LSTM UNIQUE UNPACK WHERE WHILE ZEROS_LIKE BCQ_FULLY_CONNECTED BCQ_GATHER
INSTANCE_NORM RMS_NORM ROPE
"""
"""The operators that ONE's IR has, CUSTOM among them."""

_SHORT = {"FLOAT": "f", "UINT": "u", "INT": "i", "COMPLEX": "c"}


def page() -> str:
    """The whole file."""
    lines = [HEAD, "| operator | NumPy | compiled |", "|---|---|---|"]
    kernels = _kernels()
    for cls in sorted({*OPS.values(), *CUSTOM_OPS.values()}, key=_name):
        found = kernels.get(cls, {})
        anything = {("any",)} if "stateful" in found else set()
        reference = _types(found.get("reference", anything))
        lines.append(f"| {_name(cls)} | {reference} | {_types(found.get('native', set()))} |")
    missing = sorted(set(BuiltinOperator) - set(OPS), key=lambda code: code.name)
    only = _only_in_litert(missing)
    unlike = "\n".join(f"- {', '.join(found)}: {REASONS[start]}." for start, found in only.items())
    names = ", ".join(code.name for code in missing if code != BuiltinOperator.CUSTOM)
    circle = ", ".join(sorted(code.name for code in OPS if TFLITE.number(code) is None))
    return "\n".join(lines) + "\n" + TAIL.format(names=names, circle=circle, unlike=unlike)


def _only_in_litert(missing: Iterable[BuiltinOperator]) -> dict[str, list[str]]:
    """By the beginnings of their names, the operators that LiteRT knows and luciole only keeps."""
    known = [code.name for code in missing if in_litert(code)]
    return {start: [name for name in known if name.startswith(start)] for start in REASONS}


@cache
def in_litert(code: BuiltinOperator) -> bool:
    """Whether LiteRT's resolver has an operator: it says so when it reads a file with one."""
    from ai_edge_litert.interpreter import Interpreter

    if TFLITE.number(code) is None or code == BuiltinOperator.CUSTOM:
        return False
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = UnknownOp(int(code), [graph.add_input("x", (2,))])
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (2,)))])
    graph.outputs = list(op.results)
    try:
        Interpreter(model_content=to_bytes(model, "tflite"))
    except ValueError as error:
        return "Didn't find op" not in str(error)
    return True


def _kernels() -> dict[type[Op], dict[str, set[tuple[str, ...]]]]:
    """For every operator and kind of kernel the signatures, in short."""
    kernels: dict[type[Op], dict[str, set[tuple[str, ...]]]] = {}
    for kind, cls, signature in registry.registered():
        names = tuple(_short(t) for t in signature)
        kernels.setdefault(cls, {}).setdefault(kind, set()).add(names)
    return kernels


def _name(cls: type[Op]) -> str:
    """The builtin code, or what files call it behind CUSTOM."""
    return (cls.code == BuiltinOperator.CUSTOM and cls.custom_code) or cls.code.name


def _short(dtype: TensorType) -> str:
    for long, letter in _SHORT.items():
        if dtype.name.startswith(long):
            return letter + dtype.name.removeprefix(long)
    return dtype.name.lower()


def _types(signatures: Iterable[tuple[str, ...]]) -> str:
    found = set(signatures)
    everything = {(_short(t),) for t in registry.ANY}
    if everything <= found:
        found = (found - everything) | {("any",)}
    return ", ".join(" ".join(s) or "no data" for s in sorted(found, key=lambda s: (len(s), s)))


def test_the_page_is_what_the_registry_says() -> None:
    """A line that is missing or new here: see the head of this file."""
    assert PAGE.read_text() == page()


def test_all_that_only_litert_runs_has_one_reason_and_all_reasons_are_needed() -> None:
    assert in_litert(BuiltinOperator.ADD)
    assert not in_litert(BuiltinOperator.CONCAT_EMBEDDINGS)
    missing = set(BuiltinOperator) - set(OPS)
    listed = _only_in_litert(missing)
    assert all(listed.values())
    assert sorted(chain(*listed.values())) == sorted(c.name for c in missing if in_litert(c))


def test_the_page_names_what_tflite_files_cannot_have() -> None:
    (named,) = re.findall(r"is written to \.circle only: (.*)\.\n", page())
    refused = set()
    for code in set(OPS):
        try:
            opcodes.encode(int(code), 1, None, TFLITE)
        except FormatError:
            refused.add(code.name)
    assert set(named.split(", ")) == refused


def test_readme_names_the_kinds_of_operators_that_do_not_run() -> None:
    text = (PAGE.parent.parent.parent / "README.md").read_text()
    kept = {code.name for code in set(BuiltinOperator) - set(OPS)}
    for name, words in (
        ("STABLEHLO_ABS", "StableHLO's operators"),
        ("HASHTABLE_FIND", "hash tables"),
        ("LSH_PROJECTION", "LSH_PROJECTION"),
        ("SKIP_GRAM", "SKIP_GRAM"),
    ):
        assert (name in kept) == (words in text), name


def test_every_operator_that_one_has_is_there() -> None:
    assert set(LUCI.split()) - {code.name for code in OPS} == {"CUSTOM"}
    assert len(LUCI.split()) == 126


def test_most_float_operators_are_compiled() -> None:
    kernels = _kernels()
    native = [cls for cls, found in kernels.items() if "native" in found]
    assert len(native) > len(kernels) / 3


def test_the_page_is_written_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "operators.md"
    target.write_text("before")
    monkeypatch.setitem(globals(), "PAGE", target)
    with monkeypatch.context() as broken:
        broken.setattr(registry, "registered", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(["--update"])
    assert target.read_text() == "before"
    main(["--update"])
    assert target.read_text() == page()


def main(argv: Sequence[str] | None = None) -> None:
    """Print the page, or write it to its place once all of it is there."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.test_operator_table")
    parser.add_argument("--update", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args(argv)
    text = page()
    if given.update:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
