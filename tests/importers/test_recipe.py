"""ONE's recipes cooked into models: read again by LiteRT, flatc's tables and Google's protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import luciole
from luciole.exporters import to_bytes
from luciole.exporters.circle.tables import to_tables
from luciole.exporters.recipe.text import to_recipe
from luciole.importers import from_bytes
from luciole.importers.recipe import sparse
from luciole.importers.recipe.cook import cook_file, import_recipe
from luciole.importers.recipe.sparse import sparse_rows
from luciole.ir import Model, UnknownOp
from luciole.ir.errors import FormatError
from luciole.ir.verify import Severity
from luciole.schema import opcodes, recipe, tables
from luciole.schema.enums import BuiltinOperator, TensorType
from luciole.schema.reader import read
from tests.proto_support import message_class
from tests.schema.recipes import recipes
from tests.support import data_path, litert

WRONG = {
    "Net_Dangle_001": "nothing computes 'ofm2'",
    "Reshape_003": "does not reshape to []",
    "Slice_001": "begin -1 and size 1 do not fit",
    "UnidirectionalSequenceLSTM_000": "is not a variable tensor",
    "UnidirectionalSequenceLSTM_001": "is not a variable tensor",
}
"""Recipes of models that ``verify`` refuses, and what it says: ONE tests its tools with them."""

LITERT_REFUSES = {
    *("ExpandDims_001", "ExpandDims_002", "Reshape_003", "Slice_001"),
    *("UnidirectionalSequenceLSTM_000", "UnidirectionalSequenceLSTM_001"),
    *("Fill_000", "Fill_001"),  # the value is a vector of one
    *("L2Pool2D_U8_000", "DepthwiseConv2D_U8_001"),  # no kernel for these types
    "PadV2_000",  # the value is of another type
    "While_003",  # the condition is no single bool
}


def every_recipe() -> list[Path]:
    folders = ("tflite", "circle", "tflchef-tests", "circlechef-tests")
    return [path for folder in folders for path in recipes(folder)]


def test_every_recipe_cooks_into_a_model_that_verifies() -> None:
    paths = every_recipe()
    assert len(paths) == 296
    for path in paths:
        model, findings, *_ = cook_file(path)
        errors = [f.sentence for f in findings if f.severity is Severity.ERROR]
        assert bool(errors) == (path.parent.name in WRONG), (path, errors)
        if errors:
            assert any(WRONG[path.parent.name] in error for error in errors)
        assert [f for f in findings if f.code == "NOT_UNDERSTOOD"] == []
        unknown = [op for g in model.graphs for op in g.ops if isinstance(op, UnknownOp)]
        assert all(op.reason is None for op in unknown)


def test_litert_loads_every_model_of_builtin_operators() -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    refused, loaded = set(), 0
    for path in [*recipes("tflite"), *recipes("tflchef-tests")]:
        model, *_ = cook_file(path)
        kinds = {op.kind for graph in model.graphs for op in graph.ops}
        if any(kind.startswith("CUSTOM") for kind in kinds):
            continue
        try:
            content = to_bytes(model, "tflite", check=False)
            Interpreter(
                model_content=content, experimental_op_resolver_type=resolver, num_threads=1
            ).allocate_tensors()
            loaded += 1
        except (RuntimeError, ValueError):
            refused.add(path.parent.name)
    assert refused == LITERT_REFUSES
    assert loaded > 260


@pytest.mark.parametrize(("folder", "package"), [("tflite", "tflchef"), ("circle", "circlechef")])
def test_a_cooked_model_holds_what_google_reads_from_the_recipe(folder: str, package: str) -> None:
    cls = message_class(package)
    from google.protobuf import text_format

    options = 0
    for path in recipes(folder):
        theirs = text_format.Parse(path.read_text(), cls())
        root = to_tables(cook_file(path).model)
        for graph, wanted in zip(root.subgraphs or [], [theirs, *theirs.graph], strict=True):
            _check_tensors(graph, wanted)
            codes = root.operator_codes or []
            for operator, operation in zip(graph.operators or [], wanted.operation, strict=True):
                options += _check_options(operator, codes[operator.opcode_index], operation)
    assert options > {"tflite": 300, "circle": 8}[folder]


def _check_tensors(graph: tables.SubGraph, wanted: Any) -> None:
    for tensor, operand in zip(graph.tensors or [], wanted.operand, strict=True):
        assert (tensor.name, tensor.type.name) == (operand.name, _enum(operand, "type"))
        assert list(tensor.shape if tensor.shape is not None else ()) == list(operand.shape.dim)
        if operand.HasField("quant"):
            quant = tensor.quantization
            assert quant is not None
            for name in ("min", "max", "scale", "zero_point"):
                given, found = list(getattr(operand.quant, name)), getattr(quant, name)
                assert list(() if found is None else found) == given
            assert quant.quantized_dimension == operand.quant.quantized_dimension


def _enum(message: Any, name: str) -> str:
    field = message.DESCRIPTOR.fields_by_name[name]
    return str(field.enum_type.values_by_number[getattr(message, name)].name)


def _check_options(operator: tables.Operator, code: tables.OperatorCode, operation: Any) -> int:
    """Every field of an options message, given or not, is in the table; returns how many."""
    given = [f for f, _ in operation.ListFields() if f.name.endswith("_options")]
    if not given or opcodes.resolve(code) == BuiltinOperator.CUSTOM:
        return 0
    message, table = getattr(operation, given[0].name), operator.builtin_options
    names = {f.name for f in table.fields} if table is not None else set()
    for field in message.DESCRIPTOR.fields:
        found = getattr(table, field.name if field.name in names else recipe.FIELDS[field.name])
        value = getattr(message, field.name)
        if field.enum_type is not None:
            assert isinstance(found, IntEnum)
            assert found.name == _enum(message, field.name)
        elif field.is_repeated:
            assert list(() if found is None else found) == list(value)
        else:
            assert found == pytest.approx(value, rel=1e-7)
    return len(message.DESCRIPTOR.fields)


def cook(text: str, seed: int = 0) -> Model:
    return import_recipe(text, seed)


def operand(name: str, more: str = "", dtype: str = "FLOAT32") -> str:
    return f'operand {{ name: "{name}" type: {dtype} shape {{ dim: 2 }} {more} }} '


ADD = (
    operand("x")
    + operand("y", 'filler { tag: "gaussian" arg: "0" arg: "1" }')
    + operand("z")
    + 'operation { type: "Add" input: "x" input: "y" output: "z" '
    + "add_options { activation: RELU } } "
    + 'input: "x" output: "z" '
)


def test_a_recipe_loads_as_a_model_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "add.recipe"
    path.write_text("# a comment\n\n" + ADD.replace('"gaussian" arg: "0"', '"explicit" arg: "-5"'))
    output = luciole.Interpreter(path).run(np.array([1, 2], np.float32))["z"]
    np.testing.assert_array_equal(output, np.array([0, 3], np.float32))


def test_loading_refuses_a_recipe_of_a_wrong_model(tmp_path: Path) -> None:
    path = tmp_path / "wrong.recipe"
    path.write_text(ADD + 'output: "y2"')
    with pytest.raises(FormatError, match=r"wrong.recipe: graph 'main': there is no operand 'y2'"):
        luciole.load(path)
    path.write_text(operand("x") + operand("y") + 'input: "x" output: "y"')
    with pytest.raises(FormatError, match="nothing computes 'y'"):
        luciole.load(path)


def test_the_seed_alone_decides_about_random_constants() -> None:
    first, again, other = (to_bytes(cook(ADD, seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_graphs_signatures_and_microscaling() -> None:
    text = ADD + (
        f'graph {{ {ADD} name: "other" }} graph {{ {ADD} }} '
        'signature_def { signature_key: "serve" inputs { name: "a" tensor: "x" } '
        'outputs { name: "b" tensor_index: 2 } } '
        'signature_def { signature_key: "second" subgraph_index: 1 '
        'inputs { name: "a" tensor: "x" } }'
    )
    model = cook(text + 'operand { name: "m" type: MXINT8 mx_quant { axis: 1 } }')
    assert [graph.name for graph in model.graphs] == ["main", "other", "sub_2"]
    first, second = model.signatures
    assert (first.key, first.graph) == ("serve", model.graphs[0])
    assert [(n, v.name) for n, v in first.inputs + first.outputs] == [("a", "x"), ("b", "z")]
    assert second.graph is model.graphs[1]
    quant = model.graph.values[3].quantization
    assert quant is not None
    assert quant.details == tables.MXQuantization(axis=1)


def test_a_custom_operator_keeps_its_options() -> None:
    text = (
        operand("x") + operand("y") + 'operation { type: "Magic" custom_code: "Magic" '
        'input: "x" input: "" output: "y" magic_options { n: 3 name: "q" flag: true w: 1.5 } }'
    )
    (op,) = cook(text + ' input: "x" output: "y"').graph.ops
    assert isinstance(op, UnknownOp)
    assert op.operands[1] is None
    wanted = {"n": 3, "name": "q", "flag": True, "w": 1.5}
    assert flexbuffers.Loads(op.custom_options.tobytes()) == wanted


@pytest.mark.parametrize("words", ["T t TRUE true 1", "F f FALSE false 0"])
def test_bools_are_spelled_as_one_reads_them(words: str) -> None:
    arguments = " ".join(f'arg: "{word}"' for word in words.split())
    model = import_recipe(
        'operand { name: "x" type: BOOL shape { dim: 5 } '
        f'filler {{ tag: "explicit" {arguments} }} }}'
    )
    np.testing.assert_array_equal(model.graph.values[0].data, [words[0] == "T"] * 5)


def test_options_of_another_operator_count_only_where_they_say_something() -> None:
    text = 'operation { type: "Minimum" maximum_options { } input: "x" input: "x" output: "y" }'
    operands = [f'operand {{ name: "{n}" type: FLOAT32 shape {{ dim: 1 }} }}' for n in "xy"]
    (op,) = import_recipe(" ".join([*operands, text, 'input: "x" output: "y"'])).graph.ops
    assert op.kind == "MINIMUM"


POOL = """\
operand { name: "x" type: FLOAT32 shape { dim: 1 dim: 8 dim: 8 dim: 1 } }
operand { name: "y" type: FLOAT32 shape { dim: 1 dim: 4 dim: 4 dim: 1 } }
operand { name: "i" type: INT32 shape { dim: 1 dim: 4 dim: 4 dim: 1 } }
operation {
  type: "%s" input: "x" output: "y" output: "i" %s
  max_pool_with_argmax_options {
    padding: SAME filter_width: 3 filter_height: 2 stride_w: 5 stride_h: 4 output_type: INT32
  }
}
input: "x" output: "y" output: "i"
"""


@pytest.mark.parametrize(
    "name", [("Custom", 'custom_code: "MaxPoolWithArgmax"'), ("MaxPoolWithArgMax", "")]
)
def test_custom_pools_have_the_attributes_that_one_writes(name: tuple[str, str]) -> None:
    """``compiler/tflchef/core/src/CustomOp/MaxPoolWithArgmax.cpp``."""
    model = import_recipe(POOL % name)
    (op,) = model.graph.ops
    assert isinstance(op, UnknownOp)
    raw = op.custom_options.tobytes()
    assert flexbuffers.Loads(raw) == {
        "ksize": [1, 3, 2, 1],
        "strides": [1, 5, 4, 1],
        "Targmax": 2,
        "padding": "SAME",
        "include_batch_in_index": False,
        "T": 0,
    }
    assert flexbuffers.GetRoot(raw).AsMap["ksize"].IsTypedVector
    text = to_recipe(model).text
    assert "filter_width: 3" in text
    (again,) = import_recipe(text).graph.ops
    assert isinstance(again, UnknownOp)
    assert again.custom_options.tobytes() == raw


def test_broadcast_to_is_custom_by_the_name_that_one_has_for_it() -> None:
    """``compiler/tflchef/core/src/CustomOp/BroadcastTo.cpp``."""
    operands = """\
    operand { name: "x" type: FLOAT32 shape { dim: 1 } }
    operand { name: "s" type: INT32 shape { dim: 1 } filler { tag: "explicit" arg: "2" } }
    operand { name: "y" type: FLOAT32 shape { dim: 2 } }
    operation { type: "%s" input: "x" input: "s" output: "y" }
    """
    (custom,) = import_recipe(operands % "BroadcastTo").graph.ops
    assert isinstance(custom, UnknownOp)
    assert flexbuffers.Loads(custom.custom_options.tobytes()) == {"T": 0, "Tidx": 2}
    builtin = import_recipe(operands % "BROADCAST_TO")
    assert builtin.graph.ops[0].kind == "BROADCAST_TO"
    for model in (builtin, import_recipe(operands % "BroadcastTo")):
        text = to_recipe(model).text
        assert [op.kind for op in import_recipe(text).graph.ops] == [
            op.kind for op in model.graph.ops
        ]


@pytest.mark.parametrize("behind", [True, False])
def test_ext_offset_puts_constants_behind_the_tables(behind: bool) -> None:
    filler = 'filler { tag: "gaussian" arg: "0" arg: "1" }'
    text = f"""\
    operand {{ name: "x" type: FLOAT32 shape {{ dim: 64 }} }}
    operand {{ name: "c" type: FLOAT32 shape {{ dim: 64 }} {filler} }}
    operand {{ name: "y" type: FLOAT32 shape {{ dim: 64 }} }}
    operation {{ type: "Add" input: "x" input: "c" output: "y" add_options {{ }} }}
    input: "x" output: "y" ext_offset: {str(behind).lower()}
    """
    model = import_recipe(text).clone()
    assert ("ext_offset: true" in to_recipe(model).text) == behind
    content = to_bytes(model, "tflite")
    buffers = read(content)[0].buffers or []
    assert [b.size for b in buffers if b.offset] == ([256] if behind else [])
    x = np.arange(64, dtype=np.float32)
    constant = from_bytes(content).graph.values[1].data
    assert constant is not None
    np.testing.assert_array_equal(litert(content, [x])[0], x + constant)


def test_make_sparse_keeps_what_is_not_zero() -> None:
    values = "".join(f'arg: "{v}" ' for v in (0, 5, 0, 6, 0, 0))
    text = (
        'operand { name: "w" type: FLOAT32 shape { dim: 3 dim: 2 } make_sparse: true '
        f'filler {{ tag: "explicit" {values} }} }}'
    )
    root = to_tables(cook(text))
    assert root.subgraphs is not None
    (tensor,) = root.subgraphs[0].tensors or []
    assert root.buffers is not None
    data = root.buffers[tensor.buffer].data
    assert data is not None
    assert data.view(np.float32).tolist() == [5, 6]
    assert tensor.sparsity is not None
    rows, columns = tensor.sparsity.dim_metadata or []
    assert (rows.format.name, rows.dense_size) == ("DENSE", 3)
    assert isinstance(columns.array_segments, tables.Int32Vector)
    assert isinstance(columns.array_indices, tables.Int32Vector)
    assert columns.array_segments.values is not None
    assert columns.array_indices.values is not None
    assert columns.array_segments.values.tolist() == [0, 1, 2, 2]
    assert columns.array_indices.values.tolist() == [1, 1]


def sparse_of(values: Sequence[int], extents: tuple[int, ...], limit: int = 2**29) -> Any:
    content = np.array(values, np.int16).view(np.uint8)
    shape = np.array(extents, np.int32)
    data, params = sparse_rows(content, TensorType.INT16, shape, "w", limit)
    last = (params.dim_metadata or [])[-1]
    found: list[Any] = [last.array_segments, last.array_indices]
    return data.view(np.int16).tolist(), *(vector.values.tolist() for vector in found)


def test_make_sparse_looks_at_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(4).integers(-1, 2, 60).tolist()
    for extents in ((60,), (60, 1), (5, 12), (3, 4, 5), (1, 60)):
        whole = sparse_of(values, extents)
        rows = np.array(values).reshape(-1, extents[-1])
        assert whole[0] == [v for v in values if v]
        assert whole[1] == [0, *np.count_nonzero(rows, 1).cumsum()]
        assert whole[2] == np.nonzero(rows)[1].tolist()
        with monkeypatch.context() as patched:
            patched.setattr(sparse, "_BLOCK", 7)
            assert sparse_of(values, extents) == whole


@pytest.mark.parametrize("extents", [(2**31 - 1, 2**31 - 1, 0), (3, 2)])
def test_make_sparse_refuses_more_than_constants_may_take(extents: tuple[int, ...]) -> None:
    values = [1] * 6 if extents == (3, 2) else []
    with pytest.raises(FormatError, match=r"rows and values take [0-9]+ bytes, a recipe's constan"):
        sparse_of(values, extents, 51)
    assert sparse_of([1] * 6, (3, 2), 52)[1] == [0, 2, 4, 6]


CONSTANT = (
    'operand {{ name: "{}" type: INT8 shape {{ dim: 60 }} filler {{ tag: "constant" arg: "1" }} }}'
)


def test_recipes_refuse_constants_that_take_too_much_together() -> None:
    text = "".join(map(CONSTANT.format, "abc"))
    assert len(import_recipe(text, 0, 180).graph.values) == 3
    with pytest.raises(FormatError) as caught:
        import_recipe(text, 0, 179)
    assert str(caught.value) == (
        "line 1: operand 'c': 60 elements of INT8 take 60 bytes, a recipe's constants may take "
        "59 more (luciole chef --constants-limit)"
    )


@pytest.mark.parametrize("field", ["name: q{}", 'type: "T{}"', 'input: "q{}" output: ""', "q{}: 1"])
def test_recipes_refuse_long_names_in_a_sentence(field: str) -> None:
    with pytest.raises(FormatError) as caught:
        cook(f"operation {{ {field.format('q' * 100_000)} }}")
    assert 20 < len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2", "recipe version 2 is newer than 1"),
        ("operands { }", "line 1: recipe has no field 'operands'"),
        ("operand { type: FLOAT32 }", "line 1: an operand has no name"),
        ('operand { name: "x" }', "operand 'x': type None is no element type"),
        ('operand { name: "x" type: FLOAT31 }', "operand 'x': type FLOAT31 is no element type"),
        ('operand { name: "x" type: "INT8" }', "line 1: type takes a name, found 'INT8'"),
        ("operand { name: 3 type: INT8 }", "line 1: name takes a text in quotes, found 3"),
        ('operand { name: "x" shape: 3 type: INT8 }', "line 1: shape takes a message in braces"),
        (operand("x") * 2, "graph 'main': two operands are called 'x'"),
        (operand("x", "quant { skale: 1 }"), "line 1: QuantizationParameters has no field 'skale'"),
        (operand("x", "quant { scale: RELU }"), "line 1: scale takes a number, found 'RELU'"),
        (operand("x", "quant { zero_point: 1.5 }"), "line 1: zero_point takes an integer from"),
        (operand("x", "is_variable: 2"), "line 1: is_variable takes true or false, found 2"),
        (
            operand("x", 'filler { tag: "uniform" }'),
            "operand 'x': filler 'uniform' is none",
        ),
        (operand("x", "sparsity { dim_metadata { format: CSR } }"), "line 1: format takes one of"),
        (
            operand("x", "sparsity { dim_metadata { array_indices { type: INT8VEC } } }"),
            "line 1: type INT8VEC is none of SparseIdxVecType_NONE, INT32VEC",
        ),
        (
            'operand { name: "x" type: STRING filler { tag: "explicit" } make_sparse: true }',
            "operand 'x': make_sparse takes axes and numbers",
        ),
        (
            'operand { name: "x" type: INT8 shape { dim: 3000000000 } }',
            "line 1: dim takes an integer from",
        ),
        (
            operand("x", "sparsity { dim_metadata { array_indices { type: UINT8VEC dim: 256 } } }"),
            "line 1: dim takes an integer from 0 to 255, found 256",
        ),
        ("operation { }", "line 1: an operation has no type"),
        ('operation { type: "Sparkle" }', "line 1: operator 'Sparkle' is not known"),
        (
            'operation { type: "Add" sub_options { x: 1 } }',
            "operation has no field 'sub_options'",
        ),
        ('operation { type: "Add" add_options { axis: 1 } }', "AddOptions has no field 'axis'"),
        (
            'operation { type: "Add" add_options { activation: RELU7 } }',
            "line 1: activation takes one of NONE, RELU",
        ),
        ('operation { type: "Tanh" tanh_options { x: 1 } }', "tanh_options has no field 'x'"),
        ('operation { type: "MatMul" matmul_options { x: 1 } }', "MatMul has no option 'x'"),
        ('operation { type: "MatMul" matmul_options { T: INT5 } }', "line 1: T cannot be INT5"),
        ('operation { type: "X" custom_code: "X" custom_options: 3 }', "takes bytes as a text"),
        ('operation { type: "Add" input: "q" }', "graph 'main': there is no operand 'q'"),
        ("signature_def { subgraph_index: 4 }", "line 1: there is no graph 4"),
        ('signature_def { inputs { name: "a" } }', "line 1: neither tensor nor tensor_index"),
    ],
)
def test_recipes_refuse_what_they_cannot_mean(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        cook(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_refuse_what_is_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "x.recipe"
    path.write_text("operator { }")
    with pytest.raises(FormatError, match=r"x.recipe: not a .circle, .tflite, .recipe"):
        luciole.load(path)


def test_the_data_has_the_recipes_to_test_with() -> None:
    assert (data_path("recipes") / "LICENSE").exists()
