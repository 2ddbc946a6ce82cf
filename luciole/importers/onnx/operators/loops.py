"""Loop and Scan: steps whose number is known and small stand one behind the other, others are a
WHILE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.control_flow import MOST_STEPS, packed, slices
from luciole.importers.onnx.operators.sequences import Looped, Made, Turn, repeated
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops.reverse_v2 import ReverseV2

if TYPE_CHECKING:
    from onnx import GraphProto

_NO_BOUND = (1 << 31) - 1
"""Turns from which on a count bounds nothing: converters write the largest INT64 for none."""


@rule("Loop")
def loop(k: Building, node: Node) -> list[Value | None]:
    """Repeat a graph a number of times, or as long as a condition holds."""
    body, states = node.graph("body"), [node[slot] for slot in range(2, len(node.operands))]
    count, going = node.get(0), node.get(1)
    if count is not None and count.data is not None and int(count.data.item()) >= _NO_BOUND:
        count = None
    is_short = count is None or (count.data is not None and count.data.item() <= MOST_STEPS)
    if is_short and (going is None or going.data is not None):
        steps = None if count is None else k.integers(count)[0]
        results = _one_by_one(k, body, states, steps, going is None or bool(k.integers(going)[0]))
        if results is not None:
            return results
    return _in_while(k, body, states, count, going)


def _one_by_one(
    k: Building, body: GraphProto, states: list[Value], count: int | None, going: bool
) -> list[Value | None] | None:
    """Put steps one behind the other, ``count`` at most where it is given; None where the condition
    that ends them is not known, or lasts too long.
    """
    seen: list[list[Value]] = [[] for _ in body.output[1 + len(states) :]]
    step = 0
    while going and step < (MOST_STEPS if count is None else count):
        arguments = [k.constant(np.int64(step)), k.constant(np.bool_(True)), *states]
        condition, *results = k.nodes.inner(k, body, arguments)
        states, shown = results[: len(states)], results[len(states) :]
        for values, value in zip(seen, shown, strict=True):
            values.append(value)
        step += 1
        if condition.data is None:
            return None
        going = bool(condition.data.reshape(-1)[0])
    if going and count is None:
        return None
    return [*states, *(packed(k, values, 0) for values in seen)]


def _in_while(
    k: Building,
    body: GraphProto,
    states: Sequence[Value],
    count: Value | None,
    going: Value | None,
) -> list[Value | None]:
    """Add a WHILE that takes the steps when the network runs."""
    read = k.nodes.outside(body)
    held = [value for value in dict.fromkeys(read.values()) if not value.is_constant]

    def step(inner: Building, turn: Turn) -> Made:
        number = inner.cast(turn.number, TensorType.INT64)
        k.nodes.counters[number] = turn.number
        arguments = [number, inner.constant(np.bool_(True)), *turn.states]
        own = dict(zip(held, turn.held, strict=True))
        condition, *results = k.nodes.within(inner, body, arguments, read, own)
        new, shown = results[: len(states)], results[len(states) :]
        always = condition.data is not None and bool(condition.data.all())
        return Made(new, shown, None if always else inner.reshape(condition, ()))

    counted = None if count is None else k.cast(k.reshape(count, ()), TensorType.INT32)
    asked = None if going is None or going.data is not None else going
    ends, lists = repeated(k, Looped((), states, held, counted, asked), step)
    return [*ends, *lists]


@rule("Scan")
def scan(k: Building, node: Node) -> list[Value | None]:
    """Give a graph one slice after the other."""
    count = node.integer("num_scan_inputs")
    if node.opset < 9:
        raise RefusedError(f"its version {node.opset} is not done")
    operands = [node[slot] for slot in range(len(node.operands))]
    if not 0 < count <= len(operands):
        raise RefusedError(f"it scans {count} of {len(operands)} operands")
    states, scanned = operands[: len(operands) - count], operands[len(operands) - count :]
    axes = node.integers("scan_input_axes", [0] * count)
    axes = [k.axis(axis, value) for axis, value in zip(axes, scanned, strict=True)]
    steps = [value.shape[axis] for axis, value in zip(axes, scanned, strict=True)]
    if None in steps or max(n or 0 for n in steps) > MOST_STEPS:
        return _scan_in_while(k, node, states, _first_axes(k, node, scanned, axes))
    return _scan_one_by_one(k, node, states, _slices(k, node, scanned, axes))


def _ends(node: Node, count: int) -> list[tuple[int, int]]:
    """List for each output whether it begins with the last step, and the axis of steps."""
    turned = node.integers("scan_output_directions", [0] * count)
    return list(zip(turned, node.integers("scan_output_axes", [0] * count), strict=True))


def _scan_one_by_one(
    k: Building, node: Node, states: list[Value], by_step: Sequence[Sequence[Value]]
) -> list[Value | None]:
    body = node.graph("body")
    seen: list[list[Value]] = [[] for _ in body.output[len(states) :]]
    for parts in zip(*by_step, strict=True):
        results = k.nodes.inner(k, body, [*states, *parts])
        states, shown = results[: len(states)], results[len(states) :]
        for values, value in zip(seen, shown, strict=True):
            values.append(value)
    rows = zip(seen, _ends(node, len(seen)), strict=True)
    return [*states, *(packed(k, v[::-1] if turn else v, _place(v, a)) for v, (turn, a) in rows)]


def _place(values: Sequence[Value], axis: int) -> int:
    return axis if axis >= 0 or not values else axis + len(values[0].shape) + 1


def _scan_in_while(
    k: Building, node: Node, states: Sequence[Value], sequences: Sequence[Value]
) -> list[Value | None]:
    body = node.graph("body")
    read = k.nodes.outside(body)
    held = [value for value in dict.fromkeys(read.values()) if not value.is_constant]

    def step(inner: Building, turn: Turn) -> Made:
        own = dict(zip(held, turn.held, strict=True))
        arguments = [*turn.states, *turn.elements]
        results = k.nodes.within(inner, body, arguments, read, own)
        return Made(results[: len(states)], results[len(states) :])

    ends, lists = repeated(k, Looped(sequences, states, held), step)
    rows = zip(lists, _ends(node, len(lists)), strict=True)
    return [*ends, *(_placed(k, values, turn, axis) for values, (turn, axis) in rows)]


def _slices(
    k: Building, node: Node, scanned: Sequence[Value], axes: Sequence[int]
) -> list[list[Value]]:
    """Cut scanned values into the slices of each step."""
    turned = node.integers("scan_input_directions", [0] * len(scanned))
    parts = [slices(k, value, axis) for value, axis in zip(scanned, axes, strict=True)]
    return [p[::-1] if turn else p for p, turn in zip(parts, turned, strict=True)]


def _first_axes(
    k: Building, node: Node, scanned: Sequence[Value], axes: Sequence[int]
) -> list[Value]:
    """Bring scanned values into the order of the steps, along the first axis."""
    turned = node.integers("scan_input_directions", [0] * len(scanned))
    ordered = []
    for value, axis, turn in zip(scanned, axes, turned, strict=True):
        order = [axis, *(n for n in range(len(value.shape)) if n != axis)]
        moved = k.transpose(value, order)
        ordered.append(_reversed(k, moved) if turn else moved)
    return ordered


def _reversed(k: Building, values: Value) -> Value:
    return k.add(ReverseV2(values, k.int32([0])))


def _placed(k: Building, values: Value, turn: int, axis: int) -> Value:
    """Bring the outputs of all steps [steps, ...] into their direction, and along an axis."""
    values = _reversed(k, values) if turn else values
    axis = k.axis(axis, values)
    order = list(range(1, len(values.shape)))
    return k.transpose(values, [*order[:axis], 0, *order[axis:]])
