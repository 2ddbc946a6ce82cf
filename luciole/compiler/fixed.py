"""Fixed point between layers of learned levels: sums, pools and means of what they give need no
floats either.

Numbers stay int32. A sum has a place less than the operand with fewer, so that it fits whatever
the operands are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from luciole.compiler.lower import Network
from luciole.compiler.thresholds import INVERSES, LEVELS_OF_FLOATS, SUMS
from luciole.ir import Array, TensorType, Value
from luciole.kernels.portable.calls import CCall, Field, FixedPoint, made, number_of
from luciole.kernels.portable.level_windows import AND_SUM, CONVOLUTION
from luciole.kernels.portable.levels import LARGEST, fixed, floats_of_fixed

FLOATS_OF_FIXED, FLOATS_OF_BYTES = "luc_floats_of_fixed", "luc_floats_of_bytes"
MOST_DOWN = 31
"""Places that a shift of 32 bits takes away."""
HALF = LARGEST // 2
"""Largest size of an operand of a sum."""

Limits: TypeAlias = dict[str, Field]


@dataclass(frozen=True)
class Operand:
    """A tensor in fixed point, or bytes that a table says the numbers of."""

    value: Value
    point: FixedPoint
    table: Array | None = None


Result: TypeAlias = "tuple[CCall, FixedPoint | None] | None"
"""A call and the fixed point that it writes, None for another type; None where floats remain."""
Rule = Callable[[CCall, Sequence[Operand], Value], Result]


def keep_fixed(network: Network) -> None:
    """Compute in fixed point the calls that read nothing else, and make floats of the results."""
    for call in list(network.calls):
        rule = RULES.get(call.function)
        operands = [_operand(network, value) for value in call.reads] if rule else []
        known = [operand for operand in operands if operand is not None]
        are_bytes = all(operand.table is not None for operand in known)
        if rule is None or len(known) < len(operands) or are_bytes or _vanishes(network, call):
            continue
        fixed_point = rule(call, known, made(call.writes[0], "fixed", TensorType.INT32))
        if fixed_point is not None:
            network.replace(call, *_with_floats(call, *fixed_point))
    network.remove_unread()


def _vanishes(network: Network, call: CCall) -> bool:
    """Return whether an activation becomes part of thresholds wherever it is read."""
    (y,) = call.writes
    readers = {reader.function for reader in network.readers(y)}
    return call.function in INVERSES and readers == {LEVELS_OF_FLOATS} and y not in network.outputs


def _operand(network: Network, value: Value) -> Operand | None:
    """Find the numbers behind floats, None where they are floats from the beginning."""
    maker = network.maker(value)
    if maker is None:
        return None
    if maker.function == FLOATS_OF_FIXED and maker.fixed is not None:
        return Operand(maker.reads[0], maker.fixed)
    if maker.function != FLOATS_OF_BYTES:
        return None
    table = np.asarray(maker.fields["table"], np.float64)
    largest = np.abs(table).max()
    if not np.isfinite(largest):
        return None
    places = math.floor(math.log2(HALF / max(largest, 1e-9)))
    return Operand(maker.reads[0], FixedPoint(places, 0.0), table)


def _with_floats(call: CCall, computing: CCall, point: FixedPoint | None) -> list[CCall]:
    computing = replace(computing, source=call.source, fixed=point)
    if point is None:
        return [replace(computing, writes=call.writes)]
    after = floats_of_fixed(computing.writes[0], call.writes[0], point)
    note = f"results {point}"
    return [replace(computing, note=note), replace(after, source=call.source)]


def _limits(fields: Mapping[str, Field], places: int) -> Limits:
    """Write limits of floats in fixed point."""
    ends = {"least": -LARGEST - 1, "most": LARGEST}
    for name in ends:
        if fields.get(f"has_{name}"):
            number = number_of(fields, name) * 2.0**places
            ends[name] = int(np.clip(np.rint(number), -LARGEST - 1, LARGEST))
    return dict(ends)


def _sum(call: CCall, operands: Sequence[Operand], y: Value) -> Result:
    """Add the operand with fewer places, or a byte's number, to the other one."""
    x, other = sorted(operands, key=lambda operand: operand.table is None)
    places = min(x.point.places, other.point.places) - 1
    downs = [operand.point.places - places for operand in (x, other)]
    if downs[1] > MOST_DOWN or (x.table is None and downs[0] > MOST_DOWN):
        return None
    fields: dict[str, Field] = {"count": call.fields["count"], **_limits(call.fields, places)}
    fields |= {"y_down": downs[1], "next_bits": 0, "thresholds": None}
    point = FixedPoint(places, x.point.error + other.point.error + 2.0**-places)
    reads = x.value, other.value
    if x.table is not None:
        fields["table"] = fixed(x.table, places)
        return CCall("luc_add_fixed_to_bytes", fields, reads, (y,)), point
    return CCall("luc_add_fixed", fields | {"x_down": downs[0]}, reads, (y,)), point


def _clamp(call: CCall, operands: Sequence[Operand], y: Value) -> Result:
    (x,) = operands
    fields: dict[str, Field] = {"count": call.fields["count"]}
    fields |= _limits(call.fields, x.point.places)
    return CCall("luc_clamp_fixed", fields, (x.value,), (y,)), _less_exact(x.point)


def _less_exact(point: FixedPoint) -> FixedPoint:
    """Return a fixed point whose numbers were rounded once more."""
    return FixedPoint(point.places, point.error + point.unit / 2)


def _mean(call: CCall, operands: Sequence[Operand], y: Value) -> Result:
    (x,) = operands
    return CCall("luc_mean_fixed", call.fields, (x.value,), (y,)), _less_exact(x.point)


def _pool(call: CCall, operands: Sequence[Operand], y: Value) -> Result:
    (x,) = operands
    least = {"has_least", "has_most", "least", "most"}
    fields = {name: field for name, field in call.fields.items() if name not in least}
    fields |= _limits(call.fields, x.point.places)
    fields["takes_largest"] = int("max" in call.function)
    return CCall("luc_pool_2d_fixed", fields, (x.value,), (y,)), _less_exact(x.point)


def _quantize(call: CCall, operands: Sequence[Operand], y: Value) -> Result:
    """Multiply by 2^-places / scale: 31 bits of it, and a shift."""
    del y
    (x,) = operands
    scale = number_of(call.fields, "scale")
    fraction, exponent = math.frexp(x.point.unit / scale)
    shift = 31 - exponent
    if not 1 <= shift <= 62:
        return None
    multiplier = min(round(fraction * 2**31), LARGEST)
    fields = {"count": call.fields["count"], "zero": call.fields["zero"]}
    fields |= {"multiplier": multiplier, "shift": shift}
    return CCall("luc_quantize_fixed", fields, (x.value,), call.writes), None


def join_sums(network: Network) -> None:
    """Add operands of sums within the convolutions whose results they are added to, so that these
    are never whole tensors of int32.
    """
    for call in [c for c in network.calls if c.function in SUMS]:
        convolution = _convolution(network, call)
        if convolution is not None:
            network.replace(call, _joined(call, convolution))
            network.calls.remove(convolution)


def _convolution(network: Network, call: CCall) -> CCall | None:
    """Find the last convolution whose results are read by a sum alone."""
    makers = [network.maker(x) for x in call.reads]
    fitting = [
        maker
        for maker in makers
        if maker is not None
        and maker.function == CONVOLUTION
        and network.readers(maker.writes[0]) == [call]
        and maker.writes[0] not in network.outputs
        and call.reads.count(maker.writes[0]) == 1
    ]
    return max(fitting, key=network.calls.index, default=None)


def _joined(call: CCall, convolution: CCall) -> CCall:
    place = call.reads.index(convolution.writes[0])
    downs = [call.fields.get("x_down", 0), call.fields["y_down"]]
    fields = {
        **convolution.fields,
        **{name: call.fields[name] for name in ("next_bits", "thresholds", "least", "most")},
        "table": call.fields.get("table"),
        "down": downs[place],
        "added_down": downs[1 - place],
    }
    return replace(
        convolution,
        function=AND_SUM,
        layout=CONVOLUTION,
        fields=fields,
        reads=(*convolution.reads, call.reads[1 - place]),
        writes=call.writes,
        fixed=call.fixed,
        note=f"{convolution.note}; the second operand is added",
    )


RULES: dict[str, Rule] = {
    "luc_add_float": _sum,
    "luc_clamp": _clamp,
    "luc_mean_float": _mean,
    "luc_average_pool_2d_float": _pool,
    "luc_max_pool_2d_float": _pool,
    "luc_quantize_int8": _quantize,
}
"""Rules of the functions on floats that have a form in fixed point, by the function's name."""
