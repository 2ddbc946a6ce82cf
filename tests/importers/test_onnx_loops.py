"""ONNX's Loop and Scan that run when the network does: as WHILE, against onnxruntime and LiteRT."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers.onnx.operators.control_flow import MOST_STEPS
from luciole.ir import Array, LucioleError, Model
from tests.support import litert

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(9)
W = RNG.standard_normal((4, 4)).astype(np.float32) / 4
NEVER = np.array(np.iinfo(np.int64).max)
"""The count of a loop that only its condition ends, as PyTorch writes it."""
X = RNG.standard_normal((2, 4)).astype(np.float32)


def node(kind: str, names: str, **attributes: Any) -> Any:
    """A node; ``names`` are its operands, an arrow and its results."""
    operands, results = (side.split(",") if side else [] for side in names.split("->"))
    return onnx.helper.make_node(kind, operands, results, **attributes)


def info(name: str, shape: Sequence[Any] | None, kind: str = "FLOAT") -> Any:
    return onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), shape)


def body(nodes: list[Any], inputs: list[Any], outputs: list[Any], **constants: Array) -> Any:
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    return onnx.helper.make_graph(nodes, "body", inputs, outputs, tensors)


def network(nodes: list[Any], inputs: list[Any], outputs: list[Any], **constants: Array) -> Any:
    graph = body(nodes, inputs, outputs, **constants)
    opset = onnx.helper.make_opsetid("", 17)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)


TURN = [info("i", [], "INT64"), info("c", [], "BOOL")]


def counted() -> Any:
    """Multiplies by weights from outside, adds the number of the turn, and collects sums; turns are
    counted by an input.
    """
    inner = body(
        [
            node("MatMul", "s,w->p"),
            node("Cast", "i->f", to=1),
            node("Add", "p,f->t"),
            node("ReduceSum", "t->sum", keepdims=0),
            node("Identity", "c->go"),
        ],
        [*TURN, info("s", [2, 4])],
        [info("go", [], "BOOL"), info("t", [2, 4]), info("sum", [])],
    )
    nodes = [node("Loop", "n,,x->y,sums", body=inner)]
    inputs = [info("n", [], "INT64"), info("x", [2, 4])]
    return network(nodes, inputs, [info("y", [2, 4]), info("sums", ["n"])], w=W)


def halving(count: Array = NEVER) -> Any:
    """Halves as long as the sum of squares is more than a number, and collects rows."""
    inner = body(
        [
            node("Mul", "s,half->t"),
            node("ReduceSumSquare", "t->q", keepdims=0),
            node("Greater", "q,least->go"),
            node("Gather", "t,zero->row", axis=0),
        ],
        [*TURN, info("s", [2, 4])],
        [info("go", [], "BOOL"), info("t", [2, 4]), info("row", [4])],
        half=np.array(0.5, np.float32),
        zero=np.array(0),
    )
    shown = count is not NEVER
    if not shown:
        del inner.output[2]
    first = [node("ReduceSumSquare", "x->q0", keepdims=0), node("Greater", "q0,least->g0")]
    loop = node("Loop", f"n,g0,x->y{',rows' if shown else ''}", body=inner)
    outputs = [info("y", [2, 4]), *([info("rows", ["k", 4])] if shown else [])]
    inputs = [info("x", [2, 4]), info("least", [])]
    return network([*first, loop], inputs, outputs, n=count)


def reading(count: int) -> Any:
    """Adds up the rows of an input, each times the number of its turn."""
    inner = body(
        [
            node("Gather", "x,i->row", axis=0),
            node("Cast", "i->f", to=1),
            node("Mul", "row,f->m"),
            node("Add", "s,m->t"),
            node("Identity", "c->go"),
        ],
        [*TURN, info("s", [4])],
        [info("go", [], "BOOL"), info("t", [4]), info("m", [4])],
    )
    constants = {"n": np.array(count), "zeros": np.zeros(4, np.float32)}
    outputs = [info("y", [4]), info("all", [count, 4])]
    nodes = [node("Loop", "n,,zeros->y,all", body=inner)]
    return network(nodes, [info("x", [count, 4])], outputs, **constants)


def scanning(length: int | str, **attributes: Any) -> Any:
    """A recurrence over two sequences, one of them along another axis and backwards."""
    inner = body(
        [
            node("MatMul", "h,w->p"),
            node("Add", "p,a->q"),
            node("Mul", "q,b->r"),
            node("Tanh", "r->g"),
            node("Sub", "g,a->d"),
        ],
        [info("h", [2, 4]), info("a", [2, 4]), info("b", [4])],
        [info("g", [2, 4]), info("d", [2, 4])],
    )
    scan = node(
        "Scan",
        "h0,xa,xb->y,ds",
        body=inner,
        num_scan_inputs=2,
        scan_input_axes=[1, 0],
        scan_input_directions=[1, 0],
        **attributes,
    )
    inputs = [info("h0", [2, 4]), info("xa", [2, length, 4]), info("xb", [length, 4])]
    return network([scan], inputs, [info("y", [2, 4]), info("ds", None)], w=W)


def of_length(count: int) -> dict[str, Array]:
    shapes = {"h0": (2, 4), "xa": (2, count, 4), "xb": (count, 4)}
    return {n: RNG.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def f32(number: float) -> Array:
    return np.array(number, np.float32)


ROWS = RNG.standard_normal((300, 4)).astype(np.float32) / 300
AT_END = {"scan_output_axes": [-1], "scan_output_directions": [1]}
CASES: Mapping[str, tuple[Callable[[], Any], list[dict[str, Array]]]] = {
    "a count that is an input": (counted, [{"n": np.array(n), "x": X} for n in (3, 0, 5, 3)]),
    "a condition": (
        halving,
        [{"x": X, "least": f32(n)} for n in (0.1, 1e-3, 1e9)],
    ),
    "a condition and outputs": (
        lambda: halving(np.array(8)),
        [{"x": X, "least": f32(n)} for n in (0.1, 1e-9, 1e9)],
    ),
    "many turns": (lambda: reading(300), [{"x": ROWS}, {"x": -ROWS}]),
    "a long scan": (lambda: scanning(300), [of_length(300)]),
    "a scan into the last axis": (lambda: scanning(300, **AT_END), [of_length(300)]),
    "a scan of open length": (lambda: scanning("t"), [of_length(n) for n in (5, 9, 5)]),
}
IN_LITERT = [name for name in CASES if "open" not in name and "input" not in name]


MOST = "as many turns as may stand one behind the other"
UNROLLED = {MOST: (lambda: reading(MOST_STEPS), [{"x": ROWS[:MOST_STEPS]}])}


def opened(name: str, folder: Path) -> tuple[Any, Model, Sequence[dict[str, Array]]]:
    """Open the file of a case in onnxruntime and here; also returns its records."""
    make, records = {**CASES, **UNROLLED}[name]
    onnx.save(make(), folder / "m.onnx")
    return runtime.InferenceSession(folder / "m.onnx"), luciole.load(folder / "m.onnx"), records


@pytest.mark.parametrize("name", [*CASES, *UNROLLED])
def test_a_loop_gives_what_onnxruntime_gives_in_each_run(name: str, tmp_path: Path) -> None:
    session, model, records = opened(name, tmp_path)
    loops = [op.kind for op in model.graph.ops].count("WHILE")
    assert loops == (name in CASES)
    interpreter = luciole.Interpreter(model)
    for record in (*records, records[0]):
        wanted = session.run(None, record)
        for _ in range(2):
            found = interpreter.run(record)
            for value, array in zip(found.values(), wanted, strict=True):
                np.testing.assert_allclose(value, array, rtol=1e-4, atol=1e-5, strict=True)
    reasons = [step.reason for step in interpreter.plan.steps if step.op.kind == "WHILE"]
    assert reasons == [""] * loops


@pytest.mark.parametrize("name", IN_LITERT)
def test_a_file_of_a_loop_runs_in_litert(name: str, tmp_path: Path) -> None:
    session, model, records = opened(name, tmp_path)
    content = to_bytes(model, "tflite")
    for record in records:
        given = [record[value.name] for value in model.graph.inputs]
        for value, array in zip(litert(content, given), session.run(None, record), strict=True):
            np.testing.assert_allclose(value, array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ["for", "while", "if"])
def test_loops_of_a_scripted_module_are_those_of_torch(case: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tests.importers.scripted import LOOPS

    module = torch.jit.script(LOOPS[case]().eval())
    x, path = torch.from_numpy(3 * X), tmp_path / "m.onnx"
    given = (x,) if case == "while" else (x, torch.tensor(4))
    names = ["x", "n"][: len(given)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, given, path, input_names=names, dynamo=False)
    interpreter = luciole.Interpreter(luciole.load(path))
    for count in (4, 1, 0, 7, 7):
        record = {"x": x.numpy() * (1 + count), "n": np.array(count)}
        record = {name: record[name] for name in names}
        (found,) = interpreter.run(record).values()
        tensors = [torch.from_numpy(array) for array in record.values()]
        wanted = module(tensors[0], *map(int, tensors[1:])).detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert [step.reason for step in interpreter.plan.steps if step.native is None] == []


def refused(model: Any, path: Path) -> str:
    onnx.save(model, path)
    with pytest.raises(LucioleError) as caught:
        luciole.load(path)
    return str(caught.value)


def test_a_loop_refuses_outputs_without_a_bound(tmp_path: Path) -> None:
    model = halving(np.array(8))
    (loop,) = (n for n in model.graph.node if n.op_type == "Loop")
    loop.input[0] = ""
    reason = "nothing bounds the number of steps whose results it collects"
    assert reason in refused(model, tmp_path / "m.onnx")


def test_a_loop_refuses_a_state_that_grows(tmp_path: Path) -> None:
    model = counted()
    inner = model.graph.node[0].attribute[0].g
    inner.node[2].CopyFrom(node("Concat", "p,p->t", axis=0))
    reason = "a step makes another shape or element type of its state"
    assert reason in refused(model, tmp_path / "m.onnx")


def test_a_loop_refuses_to_go_on_for_ever(tmp_path: Path) -> None:
    model = counted()
    model.graph.node[0].input[0] = ""
    del model.graph.node[0].output[1], model.graph.output[1]
    del model.graph.node[0].attribute[0].g.output[2]
    assert "nothing ends it" in refused(model, tmp_path / "m.onnx")
