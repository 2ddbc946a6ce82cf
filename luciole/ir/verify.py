"""Check a model: everything that running, exporting or editing it relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from luciole.ir.blockwise import misfit_blocks
from luciole.ir.calls import Extent, check_calls, remembered
from luciole.ir.dtypes import byte_count
from luciole.ir.errors import GraphError, LucioleError
from luciole.ir.fields import REQUIRED
from luciole.ir.findings import Finding, Severity
from luciole.ir.graph import Graph, Model
from luciole.ir.infer import infer_op, open_ranks
from luciole.ir.links import broken_links
from luciole.ir.moved_codes import check_moved
from luciole.ir.op import Op
from luciole.ir.quantization import (
    absent_axis,
    absurd_points,
    impossible_scales,
    misfits,
    outside_points,
    zero_scales,
)
from luciole.ir.sparsity import fault
from luciole.ir.stored import unstorable
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import MOST_AXES, Value, compatible, element_count, impossible, shape_text
from luciole.schema.enums import TensorType

__all__ = ["Finding", "Severity", "verify"]

Check = Callable[[Graph, str], Iterator[Finding]]


def verify(model: Model) -> list[Finding]:
    """List everything found, in the order of the file."""
    findings = list(broken_links(model))
    if findings:  # what follows would look for what is not there
        return findings
    if not model.graphs:
        findings.append(Finding(Severity.ERROR, "NO_GRAPH", "model", "there is no graph"))
    known: dict[Graph, Extent] = {}
    with remembered():
        for index, graph in enumerate(model.graphs):
            findings.extend(_graph(graph, f"subgraphs[{index}]", known))
    return findings


def _graph(graph: Graph, path: str, known: dict[Graph, Extent]) -> Iterator[Finding]:
    try:
        check_calls(graph, known)
    except GraphError as error:  # what follows would not end
        yield Finding(Severity.ERROR, "CALLS", path, str(error))
        return
    for check in _CHECKS:
        yield from check(graph, path)


def _tensors(graph: Graph, path: str) -> Iterator[Finding]:
    inputs = set(graph.inputs)
    for index, value in enumerate(graph.values):
        here = f"{path}.tensors[{index}] {value.name!r}"
        yield from _extents(value, here)
        yield from _shape_signature(value, here)
        yield from _buffer(value, here)
        yield from _sparsity(value, here)
        yield from _quantization(value, here)
        if value.producer is not None and value.buffer is not None and len(value.buffer):
            yield Finding(
                Severity.ERROR, "RESULT_HAS_DATA", here, f"{value.producer.op} computes a constant"
            )
        if value.producer is not None and value in inputs:
            yield Finding(
                Severity.ERROR, "RESULT_IS_INPUT", here, f"{value.producer.op} computes an input"
            )
        if value.producer is not None and value.is_variable:
            sentence = f"{value.producer.op} computes a variable tensor"
            yield Finding(Severity.ERROR, "RESULT_IS_VARIABLE", here, sentence)


def _extents(value: Value, path: str) -> Iterator[Finding]:
    reason = impossible(value.dims)
    if reason is not None:
        yield Finding(Severity.ERROR, "EXTENTS", path, f"{shape_text(value.dims)} has {reason}")


def _shape_signature(value: Value, path: str) -> Iterator[Finding]:
    """Check that a signature has the shape's extents, or -1 for extents that are unknown until the
    model runs. Where it has others, runtimes do not ask it, nor do we.
    """
    signature, dims = value.shape_signature, value.dims
    if signature is None:
        return
    both = f"shape signature {shape_text(signature)}", f"shape {shape_text(dims)}"
    pairs = zip(signature, dims, strict=False)
    if len(signature) != len(dims) or any(s not in (-1, n) for s, n in pairs):
        sentence = f"{both[0]} contradicts {both[1]}, which counts"
        yield Finding(Severity.WARNING, "SHAPE_SIGNATURE", path, sentence)
    elif value.has_contents and signature != dims:
        sentence = f"{both[0]} leaves extents open that its contents have: {both[1]} counts"
        yield Finding(Severity.WARNING, "SHAPE_SIGNATURE", path, sentence)


def _buffer(value: Value, path: str) -> Iterator[Finding]:
    if value.buffer is None or not len(value.buffer):
        return
    if value.sparsity is not None and not value.is_variable:  # only constants may leave zeros out
        return
    needed = byte_count(value.dtype, element_count(value.dims))
    if needed is not None and needed != len(value.buffer):
        sentence = (
            f"{shape_text(value.dims)} of {value.dtype.name} takes {needed} bytes, "
            f"its buffer has {len(value.buffer)}"
        )
        yield Finding(Severity.ERROR, "BUFFER_SIZE", path, sentence)
    reason = value.text_fault() if value.dtype == TensorType.STRING else None
    if reason is not None:
        yield Finding(Severity.ERROR, "STRINGS", path, reason)


def _sparsity(value: Value, path: str) -> Iterator[Finding]:
    reason = fault(value) if value.sparsity is not None and value.is_constant else None
    if reason is not None:
        yield Finding(Severity.ERROR, "SPARSITY", path, reason)


def _quantization(value: Value, path: str) -> Iterator[Finding]:
    """Find scales and zero points that do not fit, or that kernels do not take."""
    for sentence in misfit_blocks(value):
        yield Finding(Severity.ERROR, "QUANTIZATION", path, sentence)
    for sentence in misfits(value):
        yield Finding(Severity.ERROR, "QUANTIZATION", path, sentence)
    for sentence in absent_axis(value):
        yield Finding(Severity.WARNING, "QUANTIZATION", path, sentence)
    for sentence in impossible_scales(value):
        yield Finding(Severity.ERROR, "SCALE", path, sentence)
    for sentence in zero_scales(value):
        yield Finding(Severity.WARNING, "SCALE", path, sentence)
    for sentence in absurd_points(value):
        yield Finding(Severity.ERROR, "ZERO_POINT", path, sentence)
    for sentence in outside_points(value):
        yield Finding(Severity.WARNING, "ZERO_POINT", path, sentence)


def _names(graph: Graph, path: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, value in enumerate(graph.values):
        if value.name in seen:
            sentence = "another tensor has this name"
            yield Finding(
                Severity.NOTE, "DUPLICATE_NAME", f"{path}.tensors[{index}] {value.name!r}", sentence
            )
        seen.add(value.name)


def _operators(graph: Graph, path: str) -> Iterator[Finding]:
    if any(value.has_open_rank for value in graph.values):
        graph, _ = graph.clone()  # to infer what the file leaves open
    with open_ranks(graph):
        yield from _all_operators(graph, path)


def _all_operators(graph: Graph, path: str) -> Iterator[Finding]:
    doubtful: set[Value] = set()
    for index, op in enumerate(graph.ops):
        here = f"{path}.operators[{index}]"
        unheld = [Finding(Severity.ERROR, "ATTRIBUTE", here, f"{op}: {s}") for s in unstorable(op)]
        if unheld:  # no rule speaks of them
            yield from unheld
            continue
        if isinstance(op, UnknownOp):
            infer_op(op, declared=True)
            yield from _unknown(op, here)
            continue
        if any(v is not None and len(v.dims) > MOST_AXES for v in op.operands):
            continue  # no rule speaks of such tensors, and any of them would take its time
        findings = list(_known(op, here, not doubtful.isdisjoint(op.operands)))
        if any(f.code in ("SHAPE", "SHAPE_DIFFERS") for f in findings):
            doubtful.update(op.results)
        yield from findings


def _unknown(op: UnknownOp, path: str) -> Iterator[Finding]:
    if op.reason is None:
        yield Finding(
            Severity.NOTE, "UNKNOWN_OPERATOR", path, f"{op} is kept as it is, but cannot run"
        )
    elif not op.operands_fit:
        yield Finding(Severity.ERROR, "OPERANDS", path, f"{op}: {op.reason}")
    else:
        yield Finding(
            Severity.WARNING,
            "NOT_UNDERSTOOD",
            path,
            f"{op} is kept as it is, but cannot run: {op.reason}",
        )


def _known(op: Op, path: str, doubtful: bool) -> Iterator[Finding]:
    """List the faults of an operator. ``doubtful``: the file's shape of an operand is not what is
    computed, so that a shape rule that is broken here need not be when the model runs.
    """
    missing = list(_missing_operands(op))
    if missing:
        sentence = f"{op}: operand {missing[0]!r} is missing"
        yield Finding(Severity.ERROR, "OPERANDS", path, sentence)
        return
    for sentence in op.broken_rules():
        yield Finding(Severity.ERROR, "ATTRIBUTE", path, f"{op}: {sentence}")
    for sentence in wrong_operand_types(op):
        yield Finding(Severity.ERROR, "OPERAND_TYPE", path, sentence)
    yield from check_moved(op, path)
    if not op.variadic_results and len(op.results) != len(op.result_names):
        sentence = f"{op}: {len(op.results)} results, {len(op.result_names)} are declared"
        yield Finding(Severity.ERROR, "RESULTS", path, sentence)
        return
    yield from _results(op, path, doubtful)


def _results(op: Op, path: str, doubtful: bool) -> Iterator[Finding]:
    """List results of other shapes and types than are computed."""
    try:
        shapes, types = op.result_shapes(), op.result_dtypes()
    except LucioleError as error:  # GraphError: a constant that is shorter than it must be
        if doubtful:
            yield Finding(Severity.WARNING, "SHAPE", path, str(error))
        else:
            yield Finding(Severity.ERROR, "SHAPE", path, str(error))
        return
    if len(shapes) != len(op.results):
        sentence = (
            f"{op}: {len(op.results)} results, its attributes and operands give {len(shapes)}"
        )
        yield Finding(Severity.ERROR, "RESULTS", path, sentence)
        return
    for value, shape, dtype in zip(op.results, shapes, types, strict=True):
        if dtype != value.dtype:
            sentence = (
                f"{op}: result {value.name!r} is {value.dtype.name}, {dtype.name} is computed"
            )
            yield Finding(Severity.ERROR, "DTYPE", path, sentence)
        if value.has_open_rank:
            value.shape = shape
        elif not compatible(shape, value.shape):
            sentence = (
                f"{op}: result {value.name!r} is {shape_text(value.shape)} in the file, "
                f"{shape_text(shape)} is computed"
            )
            yield Finding(Severity.WARNING, "SHAPE_DIFFERS", path, sentence)


def _missing_operands(op: Op) -> Iterator[str]:
    """List operands that must be there: others may be left out, but none of a variadic one."""
    operands = dict(op.named_operands())
    for field in op.operand_fields():
        if (
            field.kind == "operand"
            and field.default is REQUIRED
            and operands.get(field.name) is None
        ):
            yield field.name
    for slot, (name, value) in enumerate(operands.items()):
        if value is None and op.operand_field(slot).kind == "operands":
            yield name


def wrong_operand_types(op: Op) -> Iterator[str]:
    """List operands of an element type that the operator does not take."""
    for slot, (name, value) in enumerate(op.named_operands()):
        allowed = op.operand_field(slot).dtypes
        if value is not None and allowed and value.dtype not in allowed:
            needed = " or ".join(t.name for t in allowed)
            yield f"{op}: {name} {value.name!r} is {value.dtype.name}, {needed} is needed"


def _order(graph: Graph, path: str) -> Iterator[Finding]:
    """Check that every operand exists when its operator runs."""
    ready = set(graph.inputs)
    for index, op in enumerate(graph.ops):
        for value in op.operands:
            if value is None or value in ready or value.is_constant or value.is_variable:
                continue
            yield _undefined(op, value, f"{path}.operators[{index}]")
        ready.update(op.results)
    for value in graph.outputs:
        if value not in ready and not value.is_constant and not value.is_variable:
            yield Finding(
                Severity.ERROR, "UNDEFINED", f"{path}.outputs", f"nothing computes {value.name!r}"
            )


def _undefined(op: Op, value: Value, path: str) -> Finding:
    """Report an operand that is not there. A tensor that nothing computes may be room to work in
    for an operator that is not known: Ethos-U's has one.
    """
    operand = f"{op}: operand {value.name!r}"
    if value.producer is not None:
        return Finding(Severity.ERROR, "UNDEFINED", path, f"{operand} is computed only later")
    sentence = f"{operand} has no contents and nothing computes it"
    if isinstance(op, UnknownOp):
        return Finding(Severity.WARNING, "UNDEFINED", path, sentence)
    return Finding(Severity.ERROR, "UNDEFINED", path, sentence)


_CHECKS: tuple[Check, ...] = (_tensors, _names, _operators, _order)
