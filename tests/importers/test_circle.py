"""Files whose tables are sound and whose graph is not: refused, or loaded with findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes, import_model
from luciole.ir import Graph, Model, Op, TensorType, UnknownOp
from luciole.ir.errors import FormatError
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.text.listing import dump_lines
from luciole.ir.verify import Finding, Severity, verify
from luciole.schema import tables as t
from luciole.schema.dialect import CIRCLE, TFLITE
from luciole.schema.enums import Padding
from luciole.schema.reader import read
from luciole.schema.writer import write
from tests.samples import ints, octets, whole_model


def sound() -> tuple[Model, Graph, Op]:
    """x -> abs -> y."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = graph.append(Abs(graph.add_input("x", (1, 4))), "y")
    graph.outputs = [op.output]
    return model, graph, op


def test_unknown_field__what_a_file_holds_and_the_schema_does_not_know() -> None:
    root, _ = read(to_bytes(sound()[0]))
    (root.subgraphs or [])[0].debug_metadata_index = 3
    as_tflite = write(root, CIRCLE).replace(b"CIR0", b"TFL3")
    _, findings = import_model(as_tflite)
    sentence = "field 6 of table SubGraph is not known and is left out"
    assert findings == [Finding(Severity.WARNING, "UNKNOWN_FIELD", "model", sentence)]


def test_loading_refuses_a_model_with_errors_and_counts_them() -> None:
    model, graph, op = sound()
    op.output.dtype = TensorType.INT8
    content = to_bytes(model, check=False)
    where = "error [DTYPE] subgraphs[0].operators[0]: Abs 'y'"
    with pytest.raises(FormatError, match=rf"^{re.escape(where)}.* computed$"):
        from_bytes(content)
    graph.append(Relu(op.output), "z").output.dtype = TensorType.FLOAT32
    with pytest.raises(FormatError, match=r"\(and 1 more: see luciole verify\)$"):
        from_bytes(to_bytes(model, check=False))


def test_loading_takes_a_model_with_warnings_and_notes() -> None:
    model, graph, op = sound()
    op.output.shape = (2, 4)
    graph.add_input("x", (1,))
    assert [f.severity for f in verify(model)] == [Severity.NOTE, Severity.WARNING]
    assert len(from_bytes(to_bytes(model)).graph.ops) == 1


def main(root: t.Model) -> t.SubGraph:
    return (root.subgraphs or [])[0]


def tensor(root: t.Model, index: int) -> t.Tensor:
    return (main(root).tensors or [])[index]


def operator(root: t.Model, index: int) -> t.Operator:
    return (main(root).operators or [])[index]


def signature(root: t.Model) -> t.SignatureDef:
    return (root.signature_defs or [])[0]


def no_graph(root: t.Model) -> None:
    root.subgraphs = None


def no_buffer(root: t.Model) -> None:
    tensor(root, 1).buffer = 9


def negative_extent(root: t.Model) -> None:
    tensor(root, 2).shape = ints(1, -4)


def no_input(root: t.Model) -> None:
    main(root).inputs = ints(0, 12)


def no_output(root: t.Model) -> None:
    main(root).outputs = ints(-1)


def no_operand(root: t.Model) -> None:
    operator(root, 1).inputs = ints(-2)


def no_operands(root: t.Model) -> None:
    operator(root, 1).inputs = ints(20, 0, 21, -1, -5)


def no_type(root: t.Model) -> None:
    tensor(root, 0).type = 77  # type: ignore[assignment]  # as a file may have it


def data_outside(root: t.Model) -> None:
    (root.buffers or [])[3] = t.Buffer(offset=2**32 - 4, size=4)


def no_code(root: t.Model) -> None:
    operator(root, 2).opcode_index = 3


def twice(root: t.Model) -> None:
    operator(root, 1).outputs = ints(2)


def twice_at_once(root: t.Model) -> None:
    operator(root, 1).outputs = ints(7, 7)


def no_intermediate(root: t.Model) -> None:
    operator(root, 0).intermediates = ints(99)


def no_metadata(root: t.Model) -> None:
    (root.metadata or [])[0].buffer = 9


def no_metadata_buffer(root: t.Model) -> None:
    root.metadata_buffer = ints(-1)


def no_signature_graph(root: t.Model) -> None:
    signature(root).subgraph_index = 2


def no_signature_tensor(root: t.Model) -> None:
    (signature(root).outputs or [])[0].tensor_index = 12


FOUND: dict[Callable[[t.Model], None], str] = {
    no_graph: "[NO_GRAPH] model: there is no graph",
    no_buffer: "[REFERENCE] subgraphs[0].tensors[1] 'filter': buffer 9 does not exist: there are 9",
    negative_extent: (
        "[EXTENTS] subgraphs[0].tensors[2] 'out': [1,-4] has an extent of -4, 0 is the least"
    ),
    no_input: "[REFERENCE] subgraphs[0].inputs: tensor 12 does not exist: there are 12",
    no_output: "[REFERENCE] subgraphs[0].outputs: tensor -1 does not exist: there are 12",
    no_operand: "[REFERENCE] subgraphs[0].operators[1]: tensor -2 does not exist: there are 12",
    no_operands: (
        "[REFERENCE] subgraphs[0].operators[1]: "
        "tensor 20 does not exist, nor do 2 more: there are 12"
    ),
    no_code: "[REFERENCE] subgraphs[0].operators[2]: operator code 3 does not exist: there are 3",
    twice: "[COMPUTED_TWICE] subgraphs[0].operators[1]: tensor 'out' is computed twice",
    twice_at_once: (
        "[COMPUTED_TWICE] subgraphs[0].operators[1]: tensor 'custom out' is computed twice"
    ),
    no_intermediate: (
        "[REFERENCE] subgraphs[0].operators[0]: intermediate tensor 99 does not exist: there are 12"
    ),
    no_metadata: "[REFERENCE] metadata[0]: buffer 9 does not exist: there are 9",
    no_metadata_buffer: "[REFERENCE] metadata_buffer: buffer -1 does not exist: there are 9",
    no_signature_graph: (
        "[REFERENCE] signature_defs[0] 'serve': subgraph 2 does not exist: there are 2"
    ),
    no_signature_tensor: (
        "[REFERENCE] signature_defs[0] 'serve': tensor 12 does not exist: there are 12"
    ),
    no_type: "[ELEMENT_TYPE] subgraphs[0].tensors[0] 'in': element type 77 is not known",
    data_outside: "[BYTES] buffers[3]: its bytes end at byte 4294967296, the file has ",
}


@pytest.mark.parametrize("damage", FOUND, ids=lambda damage: damage.__name__)
def test_loading_refuses_what_is_no_graph_and_importing_shows_it(
    damage: Callable[[t.Model], None],
) -> None:
    root = whole_model()
    damage(root)
    content = write(root, CIRCLE)
    model, findings = import_model(content)
    errors = [str(f) for f in findings if f.severity is Severity.ERROR]
    assert any(error.startswith(f"error {FOUND[damage]}") for error in errors)
    assert len(list(dump_lines(model, "damaged"))) > 10
    more = f" (and {len(errors) - 1} more: see luciole verify)" if len(errors) > 1 else ""
    with pytest.raises(FormatError) as caught:
        from_bytes(content)
    assert str(caught.value) == errors[0] + more


def test_what_is_left_out_leaves_everything_else_in_its_place() -> None:
    root = whole_model()
    for damage in (no_output, no_operand, no_code, no_signature_graph, no_metadata):
        damage(root)
    model, _ = import_model(write(root, CIRCLE))
    custom = model.graph.ops[1]
    assert [v.name for v in model.graph.values] == [
        t.name for t in main(whole_model()).tensors or []
    ]
    assert (len(model.graph.ops), custom.operands, custom.name) == (3, (None,), "custom out")
    assert isinstance(model.graph.ops[2], UnknownOp)
    assert (model.graph.outputs, model.metadata) == ([], [])
    assert [s.key for s in model.signatures] == ["other"]


# --------------------------------------------------------- operators that their class cannot hold
CONV = t.Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)

NOT_UNDERSTOOD: dict[str, dict[str, Any]] = {
    "two options tables": {"builtin_options_2": t.StablehloPadOptions()},
    "custom options on a builtin operator": {"custom_options": octets(1, 2)},
    "options are AddOptions, expected Conv2DOptions": {"builtin_options": t.AddOptions()},
    "padding is 9, which names no Padding": {
        "builtin_options": t.Conv2DOptions(padding=9)  # type: ignore[arg-type]  # as a file may have it
    },
}


@pytest.mark.parametrize("reason", NOT_UNDERSTOOD)
@pytest.mark.parametrize("dialect", [CIRCLE, TFLITE], ids=lambda d: d.name)
def test_an_operator_that_its_class_cannot_hold_is_kept(reason: str, dialect: Any) -> None:
    root = whole_model()
    vars(operator(root, 0)).update({"builtin_options": CONV} | NOT_UNDERSTOOD[reason])
    model, _ = import_model(write(root, dialect))
    op = model.graph.ops[0]
    assert isinstance(op, UnknownOp)
    assert op.reason == reason
    findings = [f for f in verify(model) if f.severity is Severity.WARNING]
    assert [f.code for f in findings] == ["NOT_UNDERSTOOD"]
    found, expected = (operator(r, 0) for r in (read(to_bytes(model, dialect.name))[0], root))
    found.opcode_index = expected.opcode_index
    assert found == expected
