"""String tensors: fed, run and read as LiteRT does, never in the arena, and within the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.errors import InputError
from luciole.interpreter.observe import Observer
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Buffer, Graph, GraphError, LucioleError, Model, Op, TensorType, Value
from luciole.ir.ops.comparisons import Equal, NotEqual
from luciole.ir.ops.control_flow import If
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.gather_nd import GatherNd
from luciole.ir.ops.hashtable_lookup import HashtableLookup
from luciole.ir.ops.rank import Rank
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.tile import Tile
from luciole.ir.strings import array_of
from luciole.ir.verify import verify
from luciole.kernels.core import registry
from luciole.kernels.core.errors import MemoryLimitError
from luciole.kernels.core.meter import SLACK
from tests.litert_support import ints
from tests.support import invoked_again, litert, one_op

TEXTS = [b"a", b"", b"\xff\0z\0", b"dd dd", "Glühwürmchen".encode(), b"a"]


def texts(*shape: int, first: int = 0) -> Array:
    """Some of them, in turn, among them bytes that are no UTF-8 and zeros at the end."""
    count = int(np.prod(shape))
    return array_of([TEXTS[(first + n) % len(TEXTS)] for n in range(count)], shape)


CASES: list[tuple[type[Op], list[Array], Sequence[int], dict[str, Any]]] = [
    (Reshape, [texts(2, 3), ints(3, 2)], (1,), {}),
    (Reshape, [texts(2, 3), ints(6)], (), {}),
    (Squeeze, [texts(1, 2, 1, 3)], (), {"squeeze_dims": (0,)}),
    (ExpandDims, [texts(2, 3), np.array(1, np.int32)], (1,), {}),
    (Gather, [texts(6), ints([5, 0], [1, 1])], (), {}),
    (Gather, [texts(6), np.array(2, np.int32)], (1,), {}),
    (GatherNd, [texts(2, 3), ints([1, 0], [0, 1])], (), {}),
    (GatherNd, [texts(2, 3), ints([1], [0])], (1,), {}),
    (GatherNd, [texts(2, 3), ints(0, 2)], (), {}),
    (Equal, [texts(2, 3), texts(3, first=3)], (), {}),
    (NotEqual, [texts(2, 3), texts(2, 3, first=5)], (1,), {}),
    (Equal, [texts(2, 3), texts(first=2)], (1,), {}),
    (Tile, [texts(2, 3), ints(2, 2)], (), {}),
    (Tile, [texts(2, 3), ints(0, 2)], (1,), {}),
    (StridedSlice, [texts(2, 3), ints(0, 2), ints(2, 0), ints(1, -2)], (), {"end_mask": 2}),
    (StridedSlice, [texts(2, 3), ints(1, 2), ints(2, 3), ints(1, 1)], (), {"shrink_axis_mask": 3}),
    (Slice, [texts(2, 3), ints(0, 1), ints(-1, 2)], (), {}),
    (Fill, [ints(2, 2), texts(first=2)], (1,), {}),
    (Shape, [texts(2, 3)], (), {"out_type": TensorType.INT32}),
    (Rank, [texts(2, 3)], (), {}),
    (HashtableLookup, [ints(3, 1, 7), ints(1, 3), texts(2, first=3)], (1, 2), {}),
]


def name_of(case: Any) -> str:
    return case.__name__ if isinstance(case, type) else ""


@pytest.mark.parametrize(("cls", "operands", "constant", "attributes"), CASES, ids=name_of)
def test_operators_give_the_texts_of_litert(
    cls: type[Op], operands: list[Array], constant: Sequence[int], attributes: dict[str, Any]
) -> None:
    content = to_bytes(one_op(cls, operands, constant, **attributes), "tflite")
    given = [a for i, a in enumerate(operands) if i not in constant]
    interpreter = Interpreter(from_bytes(content))
    arrays = {value.name: a for value, a in zip(interpreter.graph.inputs, given, strict=True)}
    for _ in range(2):
        found = interpreter.run(arrays)
        for ours, theirs in zip(found.values(), litert(content, given), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            assert ours.tolist() == theirs.tolist()
            assert {type(text) for text in ours.flat} == {type(text) for text in theirs.flat}


def test_every_operator_with_a_kernel_for_texts_is_among_these() -> None:
    listed = {cls for _, cls, signature in registry.registered() if TensorType.STRING in signature}
    others = {case[0] for case in CASES}
    assert {cls.__name__ for cls in listed - others} <= {"SkipGram", "LshProjection"}
    assert others <= listed


def test_no_compiled_kernel_takes_texts() -> None:
    kinds = {kind for kind, _, s in registry.registered() if TensorType.STRING in s}
    assert kinds == {"reference"}


def pass_on(*shape: int) -> Model:
    """Texts in another shape."""
    return one_op(ExpandDims, [texts(*shape), np.array(0, np.int32)], (1,))


@pytest.mark.parametrize(
    "given",
    [
        np.array(["a", "é"]),
        np.array([b"a", b"bb"]),
        array_of(["ü", b"\xff\0"], (2,)),
        array_of([np.bytes_(b"x"), np.str_("y")], (2,)),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_all_kinds_of_texts_are_taken_as_litert_takes_them(given: Array) -> None:
    model = pass_on(2)
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    (wanted,) = litert(to_bytes(model, "tflite"), [given])
    assert found.tolist() == wanted.tolist()
    assert interpreter.get_input_details()[0]["dtype"] is np.bytes_


def test_lists_and_numpys_own_texts_are_taken() -> None:
    model = pass_on(2)
    lists: list[Any] = [["a", "é"], (b"a\0", "b")]
    if hasattr(np.dtypes, "StringDType"):  # from NumPy 2
        lists.append(np.array(["a", "b"], np.dtypes.StringDType()))
    found = [Interpreter(model).run(given)["y0"].tolist()[0] for given in lists]
    assert found == [[b"a", "é".encode()], [b"a\0", b"b"], [b"a", b"b"]][: len(found)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([1, 2]), "'x0' of STRING: texts are bytes or str, found int"),
        (np.array([b"a", None], object), "texts are bytes or str, found NoneType"),
        (np.array([b"a", bytearray(b"b")], object), "texts are bytes or str, found bytearray"),
        (["a", "\udcff"], "'utf-8' codec can't encode character"),
        ([["a", "b"], ["c"]], "texts are bytes or str, found list"),
    ],
)
def test_set_tensor_refuses_what_is_no_text(given: Any, message: str) -> None:
    interpreter = Interpreter(pass_on(2))
    interpreter.allocate_tensors()
    for feed in (lambda: interpreter.set_tensor(0, given), lambda: interpreter.run(given)):
        with pytest.raises(InputError, match=message):
            feed()


def test_set_tensor_refuses_another_shape_and_texts_for_numbers() -> None:
    interpreter = Interpreter(pass_on(2))
    interpreter.allocate_tensors()
    with pytest.raises(InputError, match="Got 3 but expected 2 for dimension 0"):
        interpreter.set_tensor(0, ["a", "b", "c"])
    numbers = Interpreter(one_op(Rank, [np.zeros(2, np.float32)]))
    numbers.allocate_tensors()
    with pytest.raises(InputError, match="Got value of type object but expected type float32"):
        numbers.set_tensor(0, texts(2))


def test_inputs_are_empty_at_first_and_resized_as_numbers_are() -> None:
    interpreter = Interpreter(pass_on(2))
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(0).tolist() == [b"", b""]
    assert interpreter.run(texts(3))["y0"].tolist() == [texts(3).tolist()]


def test_views_of_texts_cannot_be_written_to() -> None:
    interpreter = Interpreter(pass_on(2))
    interpreter.run(["a", "b"])
    for number in (0, interpreter.get_output_details()[0]["index"]):
        with pytest.raises(ValueError, match="read-only"):
            interpreter.tensor(number)()[...] = 1
        interpreter.get_tensor(number)[...] = 1  # a copy
    assert interpreter.get_tensor(0).tolist() == [b"a", b"b"]


def test_texts_have_no_place_in_the_arena() -> None:
    interpreter = Interpreter(pass_on(2000), keep_tensors=True)
    interpreter.run(texts(2000))
    assert interpreter.arena_bytes == 0
    assert [step.native for step in interpreter.plan.steps] == [None]


def test_observers_see_texts() -> None:
    seen = []

    class Watch(Observer):
        def after_tensor_write(self, value: Value, array: Array) -> None:
            seen.append((value.name, array.tolist()))

    interpreter = Interpreter(pass_on(2))
    interpreter.attach_observer(Watch())
    interpreter.run(["a", "b"])
    assert seen == [("x0", [b"a", b"b"]), ("y0", [[b"a", b"b"]])]


def test_records_of_texts_run_in_batches() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (None, 2), TensorType.STRING)
    graph.outputs = [graph.append(Equal(x, graph.add_constant("c", texts(2))), "y").output]
    records = {"x": texts(5, 2)}
    found = outputs_of(Interpreter(model), records)["y"]
    np.testing.assert_array_equal(found, records["x"] == texts(2))


def test_branches_pass_texts_on() -> None:
    model = Model()
    main = model.add_graph(Graph("main"))
    branches = []
    for name, places in (("then", ints(1)), ("else", ints(0))):
        graph = model.add_graph(Graph(name))
        x = graph.add_input("x", (2,), TensorType.STRING)
        graph.outputs = [graph.append(Gather(x, graph.add_constant("i", places)), "y").output]
        branches.append(graph)
    condition = main.add_input("c", (), TensorType.BOOL)
    x = main.add_input("x", (2,), TensorType.STRING)
    op = If(condition, (x,), then_graph=branches[0], else_graph=branches[1])
    main.outputs = [main.append(op, "y").output]
    content = to_bytes(model, "tflite")
    interpreter = Interpreter(from_bytes(content))
    for way in (True, False):
        given = [np.array(way), texts(2, first=3)]
        (found,) = invoked_again(interpreter, given)
        assert found.tolist() == litert(content, given)[0].tolist()


# ----------------------------------------------------------------------------- what is untrusted
def with_constant(raw: Array, *shape: int) -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    constant = graph.add_value(Value("c", TensorType.STRING, shape, Buffer(raw.view(np.uint8))))
    x = graph.add_input("x", shape, TensorType.STRING)
    graph.outputs = [graph.append(Equal(x, constant), "y").output]
    return model


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([2, 16, 16, 17], "its buffer is damaged"),
        ([2, 16, 2**31 - 1, 16], "its buffer is damaged"),
        ([2, -1, 16, 16], "its buffer is damaged"),
        ([2, 0, 16, 16], "its buffer is damaged"),
        ([2, 16, 15, 16], "its buffer is damaged"),
        ([2, 16], "its buffer is damaged"),
        ([2**31 - 1, 16, 16, 16], "its buffer is damaged"),
        ([-1, 16, 16, 16], "its buffer is damaged"),
        ([1, 12, 12], "its buffer holds 1"),
    ],
    ids=str,
)
def test_the_interpreter_refuses_damaged_texts(numbers: list[int], message: str) -> None:
    model = with_constant(np.array(numbers, "<i4"), 2)
    with pytest.raises(GraphError, match=rf"tensor 'c': \[2\] of STRING takes 2 texts, {message}"):
        Interpreter(model).run(["a", "b"])
    assert [f.code for f in verify(model)] == ["STRINGS"]


def test_the_interpreter_refuses_more_constants_than_the_limit() -> None:
    count = 1 << 12
    raw = np.full(count + 2, 4 * (count + 2), "<i4")
    raw[0] = count
    model = with_constant(raw, count)
    Interpreter(model, memory_limit=1 << 20).run([""] * count)
    with pytest.raises(MemoryLimitError, match="bytes of texts are too many"):
        Interpreter(model, memory_limit=1 << 17).allocate_tensors()


def test_the_interpreter_refuses_longer_inputs_than_the_limit() -> None:
    interpreter = Interpreter(pass_on(2), memory_limit=1 << 12)
    interpreter.run([b"x" * 500, b""])
    with pytest.raises(MemoryLimitError, match="memory_limit is 4096"):
        interpreter.run([b"x" * 5000, b""])
    assert interpreter.run([b"x" * 500, b"y"])["y0"].tolist() == [[b"x" * 500, b"y"]]


def test_the_interpreter_refuses_repeated_texts_beyond_the_limit() -> None:
    """Though they are the same object."""
    model = one_op(Tile, [texts(1), ints(1)])
    interpreter = Interpreter(model, memory_limit=1 << 20)
    assert interpreter.run({"x0": [b"x" * 1000], "x1": ints(500)})["y0"].shape == (500,)
    with pytest.raises(MemoryLimitError, match="bytes of texts are too many"):
        interpreter.run({"x0": [b"x" * 1000], "x1": ints(5000)})


def test_texts_leave_less_for_arrays() -> None:
    """What texts take is given back with the plan."""
    interpreter = Interpreter(pass_on(1), memory_limit=4 * SLACK)
    meter = interpreter._caller.meter
    interpreter.run([b"x" * SLACK])
    assert 2 * SLACK <= meter.taken < 2 * SLACK + 10_000
    with meter, pytest.raises(MemoryError):
        np.ones(4 * SLACK, np.uint8)
    interpreter.resize_tensor_input(0, [2])
    assert meter.taken < 10_000


def test_functions_of_users_give_texts_and_nothing_else() -> None:
    from luciole.ir import UnknownOp
    from luciole.kernels.core.custom import FUNCTIONS

    model = Model()
    graph = model.add_graph(Graph("main"))
    op = UnknownOp(32, [graph.add_input("x", (2,), TensorType.STRING)], custom_code="Upper")
    graph.append(op, results=[graph.add_value(Value("y", TensorType.STRING, (2,)))])
    graph.outputs = list(op.results)
    try:
        luciole.custom_operator("Upper")(lambda x: array_of([t.upper() for t in x], x.shape))
        assert Interpreter(model).run(["a", "b"])["y"].tolist() == [b"A", b"B"]
        luciole.custom_operator("Upper")(lambda x: np.array([1, 2], object))
        with pytest.raises(LucioleError, match="'y' is to hold bytes, given were other objects"):
            Interpreter(model).run(["a", "b"])
    finally:
        del FUNCTIONS["Upper"]
