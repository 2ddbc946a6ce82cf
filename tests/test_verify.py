"""Every finding that ``verify`` can have: when, how bad, where, and what it says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes, import_model
from luciole.importers.circle import model as circle
from luciole.interpreter import Interpreter
from luciole.ir import (
    Buffer,
    Graph,
    LucioleError,
    Model,
    Op,
    TensorType,
    UnknownOp,
    Value,
    moved_codes,
)
from luciole.ir import verify as verify_module
from luciole.ir.findings import LONGEST
from luciole.ir.ops.activations import Relu, Tanh
from luciole.ir.ops.control_flow import Call
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.split import Split
from luciole.ir.ops.transpose import Transpose
from luciole.ir.quantization import Affine
from luciole.ir.value import shape_text
from luciole.ir.verify import Finding, Severity, verify
from luciole.schema.dialect import CIRCLE
from luciole.schema.enums import DimensionType
from luciole.schema.reader import read
from luciole.schema.tables import (
    DimensionMetadata,
    Int32Vector,
    QuantizationParameters,
    SparsityParameters,
)
from luciole.schema.writer import write
from tests.samples import floats, ints, octets
from tests.support import litert


def empty() -> tuple[Model, Graph, Value]:
    """A model with an input and nothing else."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    return model, graph, graph.add_input("x", (1, 4))


def sound() -> tuple[Model, Graph, Op]:
    """x -> abs -> y."""
    model, graph, x = empty()
    op = graph.append(Abs(x), "y")
    graph.outputs = [op.output]
    return model, graph, op


def found(model: Model) -> tuple[str, str, str, str]:
    """The only finding, in parts."""
    (finding,) = verify(model)
    return finding.severity.value, finding.code, finding.path, finding.sentence


def result(name: str, *shape: int, dtype: TensorType = TensorType.FLOAT32) -> Value:
    return Value(name, dtype, shape)


def append(graph: Graph, op: Op, *values: Value) -> None:
    """Add an operator with results as a file gives them, not as they are inferred."""
    graph.append(op, results=[graph.add_value(v) for v in values])
    graph.outputs = list(values)


def test_a_sound_model_has_no_finding() -> None:
    assert verify(sound()[0]) == []


def codes_of(module: ModuleType) -> list[str]:
    """The codes of the findings that a module makes."""
    source = inspect.getsource(module)
    codes = re.findall(r"(?:Severity\.[A-Z]+,|_error\()\s*\"([A-Z_]+)\"", source)
    made = len(re.findall(r"Finding\(\s*Severity\.[A-Z]|self\._error\(", source))
    assert len(codes) == made - (module is circle), "every finding was seen"
    return codes


def test_every_code_is_tested_here() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    assert set(codes_of(verify_module)) <= {n[5:].partition("__")[0].upper() for n in tests}


def test_every_code_is_in_the_docs() -> None:
    text = Path(__file__).parent.parent.joinpath("docs", "reference", "findings.md").read_text()
    codes = {*codes_of(verify_module), *codes_of(moved_codes), *codes_of(circle)}
    column = " ".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))
    assert set(re.findall(r"`([A-Z_]{5,})`", column)) == codes


def test_calls__a_graph_that_calls_itself() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(Call.from_operands([], {"graph_": graph}), results=[])
    assert found(model) == ("error", "CALLS", "subgraphs[0]", "graph 'main' calls itself")


def test_extents__no_rule_speaks_of_what_has_too_many_axes() -> None:
    model, graph, x = empty()
    x.shape = (1,) * 33
    append(graph, Add(x, graph.add_constant("c", np.zeros((2, 1), np.float32))), result("y", 1))
    assert [f.code for f in verify(model)] == ["EXTENTS"]


def test_findings_of_very_long_names_are_cut_off() -> None:
    """Each of thousands of operators may speak of a name that is as long as the file."""
    model, graph, op = sound()
    op.output.name, name = "y" * 10**6, "x" * 10**6
    graph.append(Abs(graph.add_value(result(name, 1, 4))), "z")
    _, _, _, sentence = found(model)
    begin = "Abs 'z': operand '"
    assert sentence.startswith(begin + name[: LONGEST - len(begin)] + "... (10000")
    assert len(sentence) < LONGEST + 30
    assert len(str(op)) < 1100
    unknown = UnknownOp(32, custom_code="c" * 10**6)
    assert len(unknown.kind) < 1100


def test_no_graph__an_empty_model() -> None:
    assert found(Model()) == ("error", "NO_GRAPH", "model", "there is no graph")


# ----------------------------------------------------------------------------------- tensors
def test_buffer_size__a_constant_of_the_wrong_length() -> None:
    model, graph, _ = sound()
    graph.add_constant("c", np.zeros(3, np.float32)).shape = (4,)
    path = "subgraphs[0].tensors[2] 'c'"
    sentence = "[4] of FLOAT32 takes 16 bytes, its buffer has 12"
    assert found(model) == ("error", "BUFFER_SIZE", path, sentence)


@pytest.mark.parametrize(("variable", "codes"), [(False, []), (True, ["BUFFER_SIZE"])])
def test_buffer_size__only_constants_may_be_sparse(variable: bool, codes: list[str]) -> None:
    model, graph, _ = sound()
    value = graph.add_constant("c", np.zeros(3, np.float32))
    value.shape, value.sparsity, value.is_variable = (4,), three_of_four(), variable
    assert [f.code for f in verify(model)] == codes


def three_of_four() -> SparsityParameters:
    """What a vector of 4 with 3 elements in the file says."""
    dimension = DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=Int32Vector(values=ints(0, 3)),
        array_indices=Int32Vector(values=ints(0, 2, 3)),
    )
    return SparsityParameters(traversal_order=ints(0), block_map=ints(), dim_metadata=[dimension])


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((5,), None),
        ((3,), "an index of axis 0 is none of 0 to 2"),
        ((), "a tensor without axes has no zeros to leave out"),
        ((2, 2), "traversal_order is [0], with 1 dimensions of 2"),
    ],
)
def test_sparsity__elements_that_do_not_make_up_the_tensor(
    shape: tuple[int, ...], sentence: str | None
) -> None:
    model, graph, _ = sound()
    value = graph.add_constant("c", np.zeros(3, np.float32))
    value.shape, value.sparsity = shape, three_of_four()
    path = "subgraphs[0].tensors[2] 'c'"
    wanted = [] if sentence is None else [("SPARSITY", path, sentence)]
    assert [(f.code, f.path, f.sentence) for f in verify(model)] == wanted


@pytest.mark.parametrize("signature", [(-1,), (4, 4), (1, 5), (-2, 4), ()])
@pytest.mark.parametrize("computed", [False, True])
def test_shape_signature__one_that_contradicts(signature: tuple[int, ...], computed: bool) -> None:
    model, graph, op = sound()
    value = op.output if computed else graph.inputs[0]
    value.shape_signature = signature
    path = f"subgraphs[0].tensors[{int(computed)}] {value.name!r}"
    sentence = f"shape signature {shape_text(signature)} contradicts shape [1,4], which counts"
    assert found(model) == ("warning", "SHAPE_SIGNATURE", path, sentence)
    assert value.shape in ((1, 4), (None, 4)), "extents are known as memory has them, or not known"


@pytest.mark.parametrize("dims", [(), (0,), (0, 0), (0, 3), (0, 3, 0)])
@pytest.mark.parametrize("signature", [(-1, 3), (-1, 2), (-1,)])
def test_shape_signature__runs_as_in_litert_where_it_contradicts(
    dims: tuple[int, ...], signature: tuple[int, ...]
) -> None:
    model, graph, x = empty()
    y, z = result("y"), result("z")
    append(graph, Relu(x), y)
    append(graph, Relu(y), z)
    for value in (y, z):
        value.dims, value.shape_signature = dims, signature
    content, array = to_bytes(model, "tflite"), np.array([[-1, 2, 3, -4]], np.float32)
    (ours,) = Interpreter(from_bytes(content)).run(array).values()
    np.testing.assert_array_equal(ours, litert(content, [array])[0], strict=True)


@pytest.mark.parametrize("variable", [False, True])
def test_shape_signature__one_that_leaves_open_what_contents_have(variable: bool) -> None:
    model, graph, _ = sound()
    value = graph.add_constant("c", np.zeros((2, 3), np.float32))
    value.shape_signature, value.is_variable = (-1, 3), variable
    assert value.shape == (2, 3)
    sentence = (
        "shape signature [-1,3] leaves extents open that its contents have: shape [2,3] counts"
    )
    path = "subgraphs[0].tensors[2] 'c'"
    assert found(model) == ("warning", "SHAPE_SIGNATURE", path, sentence)


def test_shape_signature__none_where_extents_are_open_or_the_same() -> None:
    model, graph, op = sound()
    graph.inputs[0].shape_signature, op.output.shape_signature = (-1, 4), (1, -1)
    graph.add_constant("c", np.zeros(3, np.float32)).shape_signature = (3,)
    assert verify(model) == []


@pytest.mark.parametrize("variable", [False, True])
def test_shape__contents_under_an_open_signature_do_not_fit(variable: bool) -> None:
    """Compiled kernels take the real extents, so the shape rule must."""
    model, graph, x = empty()
    c = graph.add_constant("c", np.zeros(3, np.float32))
    c.shape_signature, c.is_variable = (-1,), variable
    append(graph, Add(x, c), result("y", 1, 4))
    errors = [f.sentence for f in verify(model) if f.severity is Severity.ERROR]
    assert errors == ["Add 'y': shapes [1,4] and [3] do not broadcast"]


def test_buffer_size__not_where_the_type_does_not_fix_it() -> None:
    model, graph, _ = sound()
    graph.add_constant("c", np.zeros(3, np.uint8)).dtype = TensorType.GGML_Q4_0
    assert verify(model) == []


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([2, 16, 16, 16], None),
        ([1, 12, 12], "holds 1"),
        ([2, 16, 16, 17], "is damaged"),
        ([2, 16, 12, 16], "is damaged"),
    ],
)
def test_strings__a_constant_whose_texts_are_not_there(
    numbers: list[int], reason: str | None
) -> None:
    model, graph, _ = sound()
    value = graph.add_constant("c", np.array(numbers, "<i4").view(np.uint8))
    value.dtype, value.shape = TensorType.STRING, (2,)
    sentence = f"[2] of STRING takes 2 texts, its buffer {reason}"
    wanted = ("error", "STRINGS", "subgraphs[0].tensors[2] 'c'", sentence)
    assert verify(model) == [] if reason is None else found(model) == wanted


def test_result_has_data__a_constant_that_is_computed() -> None:
    model, _, op = sound()
    op.output.buffer = Buffer(octets(*[0] * 16))
    path, sentence = "subgraphs[0].tensors[1] 'y'", "Abs 'y' computes a constant"
    assert found(model) == ("error", "RESULT_HAS_DATA", path, sentence)


def test_result_is_input__an_input_that_is_computed() -> None:
    model, graph, op = sound()
    graph.inputs.append(op.output)
    path, sentence = "subgraphs[0].tensors[1] 'y'", "Abs 'y' computes an input"
    assert found(model) == ("error", "RESULT_IS_INPUT", path, sentence)


def quantized(**fields: Any) -> Model:
    model, graph, _ = sound()
    graph.inputs[0].quantization = QuantizationParameters(**fields)
    return model


@pytest.mark.parametrize(
    ("scales", "zeros", "axis", "sentence"),
    [
        (1, 2, 0, "1 scales but 2 zero points"),
        (4, 1, 1, "4 scales but 1 zero points"),
        (3, 3, 1, "3 scales for axis 1, which has 4 elements"),
        (4, 4, 0, "4 scales for axis 0, which has 1 elements"),
        (4, 4, 2, "4 scales for axis 2, the tensor has 2 axes"),
        (4, 4, -1, "4 scales for axis -1, the tensor has 2 axes"),
    ],
)
def test_quantization__scales_that_do_not_fit(
    scales: int, zeros: int, axis: int, sentence: str
) -> None:
    model = quantized(
        scale=floats(*[1] * scales),
        zero_point=np.zeros(zeros, np.int64),
        quantized_dimension=axis,
    )
    assert found(model) == ("error", "QUANTIZATION", "subgraphs[0].tensors[0] 'x'", sentence)


@pytest.mark.parametrize(
    "fields", [{}, {"min": floats(1)}, {"scale": floats()}, {"scale": floats(2)}]
)
def test_quantization__not_where_scales_fit(fields: dict[str, Any]) -> None:
    assert verify(quantized(**fields)) == []
    per_axis = {"scale": floats(1, 1, 1, 1), "quantized_dimension": 1}
    assert verify(quantized(**per_axis)) == []


@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf])
def test_scale__one_that_no_kernel_takes(scale: float) -> None:
    model = quantized(scale=floats(scale))
    assert verify(model) == []  # a float tensor's scales are a remark
    model.graph.inputs[0].dtype = model.graph.outputs[0].dtype = TensorType.INT8
    sentence = f"a scale is {scale}, scales are positive and finite"
    assert found(model) == ("error", "SCALE", "subgraphs[0].tensors[0] 'x'", sentence)


def test_scale__0_is_a_remark_and_stops_who_divides_by_it() -> None:
    model, graph, x = empty()
    x.dtype = TensorType.INT8
    x.quantization = QuantizationParameters(scale=floats(0))
    y = result("y", 1, 4, dtype=TensorType.INT8)
    y.quantization = QuantizationParameters(scale=floats(1 / 128))
    append(graph, Tanh(x), y)
    sentence = "a scale is 0: all numbers of that scale are 0, and none becomes a code"
    assert found(model) == ("warning", "SCALE", "subgraphs[0].tensors[0] 'x'", sentence)
    with pytest.raises(LucioleError, match=r"scales 0\.0 to 0\.0; they must be positive"):
        Interpreter(model).run(np.zeros((1, 4), np.int8))


@pytest.mark.parametrize("axis", [1, 3, -1])
def test_quantization__the_axis_that_a_vector_has_not(axis: int) -> None:
    model, graph, _ = sound()
    value = graph.add_constant("bias", np.zeros(4, np.int32))
    value.quantization = QuantizationParameters(
        scale=floats(1, 2, 3, 4), zero_point=np.zeros(4, np.int64), quantized_dimension=axis
    )
    path = "subgraphs[0].tensors[2] 'bias'"
    sentence = (
        f"4 scales are given for axis {axis}, of a vector: they are taken for its only axis "
        "(LiteRT refuses them)"
    )
    assert found(model) == ("warning", "QUANTIZATION", path, sentence)
    assert Affine.of(value, "the bias").axis == 0


@pytest.mark.parametrize(
    ("dtype", "point", "low", "high"),
    [
        (TensorType.INT8, 128, -128, 127),
        (TensorType.UINT8, -1, 0, 255),
        (TensorType.INT4, 8, -8, 7),
        (TensorType.UINT32, -1, 0, 2**32 - 1),
    ],
)
def test_zero_point__one_that_the_type_does_not_hold(
    dtype: TensorType, point: int, low: int, high: int
) -> None:
    model = quantized(scale=floats(1), zero_point=np.array([point]))
    model.graph.inputs[0].dtype = model.graph.outputs[0].dtype = dtype
    sentence = f"zero point {point} is not in {dtype.name}, which holds {low} to {high}"
    assert found(model) == ("warning", "ZERO_POINT", "subgraphs[0].tensors[0] 'x'", sentence)


@pytest.mark.parametrize("point", [2**31, -(2**31) - 1, 2**63 - 1])
@pytest.mark.parametrize("dtype", [TensorType.INT8, TensorType.INT64])
def test_zero_point__one_of_more_than_32_bits(point: int, dtype: TensorType) -> None:
    model = quantized(scale=floats(1), zero_point=np.array([point]))
    model.graph.inputs[0].dtype = model.graph.outputs[0].dtype = dtype
    sentence = f"zero point {point} has more than the 32 bits that runtimes have for it"
    assert found(model) == ("error", "ZERO_POINT", "subgraphs[0].tensors[0] 'x'", sentence)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((1,) * 33, "33 axes, at most 32 are possible"),
        ((-3, 0), "an extent of -3, 0 is the least"),
        ((0, 2**31), "an extent of 2147483648, at most 2147483647 are possible"),
        ((0, 2**31 - 1, 2**31 - 1), f"more than {2**62} bytes along the axes that are not 0"),
    ],
)
def test_extents__a_tensor_that_no_array_can_be(shape: tuple[int, ...], why: str) -> None:
    model, graph, _ = sound()
    graph.add_input("large", ()).dims = shape  # as a file may have it
    _, code, path, sentence = found(model)
    assert (code, path) == ("EXTENTS", "subgraphs[0].tensors[2] 'large'")
    assert sentence.endswith(f"has {why}")


def test_result_is_variable__a_state_that_is_computed() -> None:
    model, _, op = sound()
    op.output.is_variable = True
    path, sentence = "subgraphs[0].tensors[1] 'y'", "Abs 'y' computes a variable tensor"
    assert found(model) == ("error", "RESULT_IS_VARIABLE", path, sentence)


def test_shape__a_constant_that_is_too_short() -> None:
    model, graph, x = empty()
    perm = graph.add_constant("perm", np.zeros(1, np.int32))
    perm.shape = (2,)
    append(graph, Transpose(x, perm), result("y", 4, 1))
    assert [f.code for f in verify(model)] == ["BUFFER_SIZE", "SHAPE"]


def test_shape__a_number_of_results_that_is_absurd() -> None:
    model, graph, x = empty()
    axis = graph.add_constant("axis", np.array(1, np.int32))
    append(graph, Split(axis, x, num_splits=2**30), result("y", 1, 2))
    x.shape = (1, None)
    assert found(model)[3] == "Split 'y': num_splits is 1073741824, 0 to 65536 results are possible"


def test_duplicate_name__two_tensors() -> None:
    model, graph, _ = sound()
    graph.add_input("x", (1,))
    path = "subgraphs[0].tensors[2] 'x'"
    assert found(model) == ("note", "DUPLICATE_NAME", path, "another tensor has this name")


# --------------------------------------------------------------------------------- operators
OPERATOR = "subgraphs[0].operators[0]"


@pytest.mark.parametrize(
    ("given", "severity", "code", "sentence"),
    [
        ({}, "note", "UNKNOWN_OPERATOR", "CUSTOM(Mine) 'y' is kept as it is, but cannot run"),
        (
            {"reason": "operand 'x' is missing", "operands_fit": False},
            *("error", "OPERANDS", "CUSTOM(Mine) 'y': operand 'x' is missing"),
        ),
        (
            {"reason": "hidden_size is 'operand', expected a number"},
            *("warning", "NOT_UNDERSTOOD"),
            "CUSTOM(Mine) 'y' is kept as it is, but cannot run: "
            "hidden_size is 'operand', expected a number",
        ),
    ],
)
def test_unknown_operators(given: Any, severity: str, code: str, sentence: str) -> None:
    model, graph, x = empty()
    append(graph, UnknownOp(32, [x], custom_code="Mine", **given), result("y", 9))
    assert found(model) == (severity, code, OPERATOR, sentence)


def changed(model: Model, **fields: Any) -> Model:
    """What a file with other fields of its first operator is read as."""
    root, _ = read(to_bytes(model))
    vars((root.subgraphs or [])[0].operators[0]).update(fields)  # type: ignore[index]  # there is one
    return import_model(write(root, CIRCLE))[0]


def test_unknown_operator__a_custom_one_of_a_file() -> None:
    root, _ = read(to_bytes(sound()[0]))
    code = (root.operator_codes or [])[0]
    code.builtin_code = code.deprecated_builtin_code = 32  # type: ignore[assignment]  # a file's number
    code.custom_code = "Mine"
    model, _ = import_model(write(root, CIRCLE))
    assert found(model)[:2] == ("note", "UNKNOWN_OPERATOR")


def test_operands__too_many_in_a_file() -> None:
    model = changed(sound()[0], inputs=np.array([0, 0], np.int32))
    sentence = "ABS 'y': 2 operands, Abs takes at most 1"
    assert found(model) == ("error", "OPERANDS", OPERATOR, sentence)


def test_operands__one_missing_in_a_file() -> None:
    model = changed(sound()[0], inputs=np.array([-1], np.int32))
    sentence = "ABS 'y': operand 'x' is missing"
    assert found(model) == ("error", "OPERANDS", OPERATOR, sentence)


def test_not_understood__custom_options_on_a_builtin_operator() -> None:
    model = changed(sound()[0], custom_options=octets(1))
    sentence = "ABS 'y' is kept as it is, but cannot run: custom options on a builtin operator"
    assert found(model) == ("warning", "NOT_UNDERSTOOD", OPERATOR, sentence)


def test_attribute__a_value_that_the_class_refuses() -> None:
    model, graph, x = empty()
    scales = graph.add_input("s", (2,))
    binary = graph.add_input("b", (3, 2, 0), TensorType.INT32)
    weights = graph.add_input("w", (3, 2))
    append(graph, LQFullyConnected(x, scales, weights, binary), result("y", 1, 3))
    first = verify(model)[0]
    assert (first.severity, first.code, first.path) == (Severity.ERROR, "ATTRIBUTE", OPERATOR)
    assert first.sentence == "LQFullyConnected 'y': hidden_size is 0, it must be at least 1"


def test_operand_type__indices_that_are_floats() -> None:
    model, graph, x = empty()
    perm = graph.add_input("p", (2,))
    append(graph, Transpose(x, perm), result("y", 4, 1))
    sentence = "Transpose 'y': perm 'p' is FLOAT32, INT32 or INT64 is needed"
    assert found(model) == ("error", "OPERAND_TYPE", OPERATOR, sentence)


def test_results__another_number_than_declared() -> None:
    model, graph, x = empty()
    append(graph, Abs(x), result("y", 1, 4), result("z", 1, 4))
    sentence = "Abs 'y': 2 results, 1 are declared"
    assert found(model) == ("error", "RESULTS", OPERATOR, sentence)


def test_results__another_number_than_attributes_say() -> None:
    model, graph, x = empty()
    axis = graph.add_constant("axis", np.array(1, np.int32))
    append(graph, Split(axis, x, num_splits=2), result("y", 1, 2))
    sentence = "Split 'y': 1 results, its attributes and operands give 2"
    assert found(model) == ("error", "RESULTS", OPERATOR, sentence)


def test_shape__operands_that_do_not_fit() -> None:
    model, graph, x = empty()
    weights = graph.add_input("w", (1, 1, 1, 4))
    append(graph, Conv2D(x, weights), result("y", 1, 4))
    sentence = "Conv2D 'y': input has shape [1,4], rank 4 is needed"
    assert found(model) == ("error", "SHAPE", OPERATOR, sentence)


def test_shape__operands_whose_shape_the_file_has_wrong() -> None:
    """What is computed may fit: the plan finds out."""
    model, graph, x = empty()
    append(graph, Abs(x), result("a", 5))
    append(
        graph,
        Transpose(graph.values[-1], graph.add_constant("p", np.array([1, 0], np.int32))),
        result("y", 4, 1),
    )
    found_ = [(f.severity.value, f.code) for f in verify(model)]
    assert found_ == [("warning", "SHAPE_DIFFERS"), ("warning", "SHAPE")]
    assert Interpreter(model).run(np.zeros((1, 4), np.float32))["y"].shape == (4, 1)


def test_shape__a_type_that_cannot_be_inferred() -> None:
    model, graph, x = empty()
    append(graph, Shape(x), result("y", 2))
    sentence = "Shape 'y': out_type is FLOAT32, INT32 or INT64 is needed"
    assert found(model) == ("error", "SHAPE", OPERATOR, sentence)


def test_dtype__another_type_than_computed() -> None:
    model, graph, x = empty()
    append(graph, Relu(x), result("y", 1, 4, dtype=TensorType.INT8))
    sentence = "Relu 'y': result 'y' is INT8, FLOAT32 is computed"
    assert found(model) == ("error", "DTYPE", OPERATOR, sentence)


def test_shape_differs__another_shape_than_computed() -> None:
    model, graph, x = empty()
    append(graph, Relu(x), result("y", 1, 5))
    sentence = "Relu 'y': result 'y' is [1,5] in the file, [1,4] is computed"
    assert found(model) == ("warning", "SHAPE_DIFFERS", OPERATOR, sentence)


# ------------------------------------------------------------------------------------- order
def test_undefined__an_operand_that_is_computed_later() -> None:
    model, graph, op = sound()
    later = graph.append(Relu(op.output), "later")
    op.set_operand(0, later.output)
    sentence = "Abs 'y': operand 'later' is computed only later"
    assert found(model) == ("error", "UNDEFINED", OPERATOR, sentence)


def test_undefined__an_operand_that_nothing_computes() -> None:
    model, graph, op = sound()
    op.set_operand(0, graph.add_value(result("nothing", 1, 4)))
    sentence = "Abs 'y': operand 'nothing' has no contents and nothing computes it"
    assert found(model) == ("error", "UNDEFINED", OPERATOR, sentence)


def test_undefined__room_that_an_unknown_operator_works_in() -> None:
    model, graph, x = empty()
    scratch = graph.add_value(result("scratch", 64))
    append(graph, UnknownOp(32, [x, None, scratch], custom_code="ethos-u"), result("y", 1, 4))
    sentence = "CUSTOM(ethos-u) 'y': operand 'scratch' has no contents and nothing computes it"
    assert Finding(Severity.WARNING, "UNDEFINED", OPERATOR, sentence) in verify(model)
    again = from_bytes(to_bytes(model, "tflite"))
    assert [v and v.name for v in again.graph.ops[0].operands] == ["x", None, "scratch"]


def test_undefined__an_output_that_nothing_computes() -> None:
    model, graph, _ = sound()
    graph.outputs.append(graph.add_value(result("nothing", 1, 4)))
    path, sentence = "subgraphs[0].outputs", "nothing computes 'nothing'"
    assert found(model) == ("error", "UNDEFINED", path, sentence)


def test_undefined__not_for_constants_variables_and_inputs() -> None:
    model, graph, op = sound()
    variable = graph.add_value(result("v", 1, 4))
    variable.is_variable = True
    constant = graph.add_constant("c", np.zeros((1, 4), np.float32))
    graph.outputs += [variable, constant, graph.inputs[0]]
    op.set_operand(0, variable)
    assert verify(model) == []
    op.set_operand(0, constant)
    assert verify(model) == []


def test_findings_are_one_line() -> None:
    finding = Finding(Severity.WARNING, "CODE", "model", "it is so")
    assert str(finding) == "warning [CODE] model: it is so"


def test_findings_of_the_second_graph_say_so() -> None:
    model, _, _ = sound()
    graph = model.add_graph(Graph("second"))
    graph.add_input("a", ())
    graph.add_input("a", ())
    assert found(model)[2] == "subgraphs[1].tensors[1] 'a'"
