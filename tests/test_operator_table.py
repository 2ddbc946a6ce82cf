"""docs/reference/operators.md: the operators there are, and what the registry has to compute them.

After a change that adds an operator or a kernel:

    python3 -m tests.test_operator_table --update
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from docs.generate import operators
from docs.generate.operators import kernels, page
from luciole.exporters import to_bytes
from luciole.ir import CUSTOM_OPS, OPS, Graph, Model, TensorType, UnknownOp, Value
from luciole.kernels.core import registry
from luciole.schema import opcodes
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import BuiltinOperator
from luciole.schema.errors import FormatError

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "operators.md"

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


def test_the_page_is_what_the_registry_says() -> None:
    """A line that is missing or new here: see the head of this file."""
    assert PAGE.read_text() == page()


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


def test_litert_runs_nothing_that_is_kept_as_it_is() -> None:
    assert in_litert(BuiltinOperator.ADD)
    assert not in_litert(BuiltinOperator.CONCAT_EMBEDDINGS)
    assert [code.name for code in set(BuiltinOperator) - set(OPS) if in_litert(code)] == []


def test_the_page_names_what_tflite_files_cannot_have() -> None:
    (named,) = re.findall(r"is written to \.circle only: (.*)\.\n", page())
    refused = set()
    for code in set(OPS):
        try:
            opcodes.encode(int(code), 1, None, TFLITE)
        except FormatError:
            refused.add(code.name)
    assert set(named.split(", ")) == refused


def test_a_page_names_the_kinds_of_operators_that_do_not_run() -> None:
    text = (PAGE.parent.parent / "what-runs.md").read_text()
    kept = {code.name for code in set(BuiltinOperator) - set(OPS)}
    for name, words in (
        ("STABLEHLO_ABS", "most of StableHLO's operators"),
        ("HASHTABLE_FIND", "hash tables"),
        ("LSH_PROJECTION", "LSH_PROJECTION"),
        ("SKIP_GRAM", "SKIP_GRAM"),
    ):
        assert (name in kept) == (words in text), name


def test_every_operator_that_one_has_is_there() -> None:
    assert set(LUCI.split()) - {code.name for code in OPS} == {"CUSTOM"}
    assert len(LUCI.split()) == 126


def test_most_float_operators_are_compiled() -> None:
    found = kernels()
    assert len([cls for cls in found if "native" in found[cls]]) > len(found) / 3


def test_every_operator_has_one_line_and_every_family_files_that_there_are() -> None:
    lines = re.findall(r"^\| (\w+) \| .*\|$", page(), re.MULTILINE)
    listed = sorted(name for name in lines if name != "operator")
    assert listed == sorted(map(operators.name_of, {*OPS.values(), *CUSTOM_OPS.values()}))
    ops = PAGE.parent.parent.parent / "luciole" / "ir" / "ops"
    files = [name for names in operators.FAMILIES.values() for name in names.split()]
    assert len(set(files)) == len(files)
    assert all((ops / f"{name}.py").exists() for name in files)


def test_a_line_of_the_page_is_short_enough_to_read() -> None:
    rows = [line for line in page().splitlines() if line.startswith("|")]
    assert max(map(len, rows)) <= 120


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
