"""Numbers of levels straight from where they come from: thresholds are pulled through rising
activations and into fixed point, so that nothing between learned layers is a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from luciole.compiler.lower import Network
from luciole.ir import TensorType, Value, learned_levels
from luciole.kernels.portable.calls import CCall, Field, made, number_of
from luciole.kernels.portable.level_windows import CONVOLUTION
from luciole.kernels.portable.levels import (
    ADDED,
    COUNTED,
    LARGEST,
    levels_of_fixed,
    thresholds_of,
)

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]
Inverse = Callable[[Doubles, Mapping[str, Field]], Doubles]

SUMS = ("luc_add_fixed", "luc_add_fixed_to_bytes")
LEVELS_OF_FLOATS, LEVELS_OF_FIXED = "luc_levels_of_floats", "luc_levels_of_fixed"
MOST_JOINT_BITS = 8
"""Of numbers between all thresholds of several layers."""


def _behind_tanh(t: Doubles, fields: Mapping[str, Field]) -> Doubles:
    del fields
    return np.where(np.abs(t) < 1, np.arctanh(np.clip(t, -1, 1)), np.copysign(np.inf, t))


def _behind_logistic(t: Doubles, fields: Mapping[str, Field]) -> Doubles:
    del fields
    inside = np.clip(t, 0, 1)
    beyond = np.where(t <= 0, -np.inf, np.inf)
    return np.where((t > 0) & (t < 1), np.log(inside) - np.log1p(-inside), beyond)


def _behind_clamp(t: Doubles, fields: Mapping[str, Field]) -> Doubles:
    """Move thresholds from behind a clamp: its results are above a threshold below its least number
    always, and never above one that is not below its largest.
    """
    moved = t
    if fields["has_least"]:
        moved = np.where(t < number_of(fields, "least"), -np.inf, moved)
    if fields["has_most"]:
        moved = np.where(t >= number_of(fields, "most"), np.inf, moved)
    return moved


INVERSES: dict[str, Inverse] = {
    "luc_tanh": _behind_tanh,
    "luc_logistic": _behind_logistic,
    "luc_clamp": _behind_clamp,
}
"""For each rising function f the largest x with f(x) <= t: f(x) > t wherever x is above it."""


def pull_thresholds(network: Network) -> None:
    """Encode inputs of learned layers from where they are computed, without floats between."""
    for call in [c for c in network.calls if c.function == LEVELS_OF_FLOATS]:
        shorter = _shorter(network, call)
        if shorter is not call:
            network.replace(call, shorter)
    network.remove_unread()
    if any(call.control for call in network.calls):
        return  # a tensor may be encoded in a branch alone, which others would not find
    for value in [c.reads[0] for c in network.calls if c.function == LEVELS_OF_FIXED]:
        _once(network, value)
    for call in [c for c in network.calls if c.function == LEVELS_OF_FIXED]:
        _into_layer(network, call)


def _shorter(network: Network, call: CCall) -> CCall:
    """Encode the operand of activations, where that is fixed point or bytes."""
    with np.errstate(all="ignore"):
        thresholds = thresholds_of(call).astype(np.float64)
        x = call.reads[0]
        maker = network.maker(x)
        while maker is not None and maker.function in INVERSES:
            thresholds = INVERSES[maker.function](thresholds, maker.fields)
            x = maker.reads[0]
            maker = network.maker(x)
    if maker is None:
        return call
    if maker.function == "luc_floats_of_fixed" and maker.fixed is not None:
        places = maker.fixed.places
        short = levels_of_fixed(maker.reads[0], call.writes[0], thresholds, places)
    elif maker.function == "luc_floats_of_bytes" and x is call.reads[0]:
        table = learned_levels.encode(np.asarray(maker.fields["table"]), thresholds_of(call))
        fields = {"count": maker.fields["count"], "table": table}
        short = CCall("luc_bytes_of_bytes", fields, maker.reads, call.writes)
    else:
        return call
    return replace(short, source=call.source)


def _once(network: Network, value: Value) -> None:
    """Encode once a tensor that several layers read, by the thresholds of all, with tables of the
    codes for each.
    """
    readers = network.readers(value)
    if len(readers) < 2 or {r.function for r in readers} != {LEVELS_OF_FIXED}:
        return
    each = [np.asarray(reader.fields["thresholds"], np.int64) for reader in readers]
    joint = np.unique(np.concatenate(each))
    levels = made(value, "levels", TensorType.UINT8)
    bits = len(joint).bit_length()
    if value in network.outputs or bits > MOST_JOINT_BITS:
        return
    fields = {**readers[0].fields, "bits": bits, "thresholds": _filled(joint, bits)}
    network.replace(readers[0], replace(readers[0], fields=fields, writes=(levels,)), readers[0])
    for reader, thresholds in zip(readers, each, strict=True):
        above = np.append(joint, joint[-1:] + 1)[:, None] > thresholds
        table = np.resize(above.sum(1), 256)
        tabled: dict[str, Field] = {"count": reader.fields["count"], "table": table}
        made_of = replace(reader, function="luc_bytes_of_bytes", fields=tabled, reads=(levels,))
        network.replace(reader, made_of)


def _filled(thresholds: Longs, bits: int) -> Longs:
    """Fill thresholds up to 2^bits - 1: nothing is above the last ones."""
    return np.pad(thresholds, (0, (1 << bits) - 1 - len(thresholds)), constant_values=LARGEST)


def _into_layer(network: Network, call: CCall) -> None:
    """Write numbers of levels in the layer that computes them, where nobody else reads its
    results.
    """
    x = call.reads[0]
    maker = network.maker(x)
    alone = len(network.readers(x)) == 1 and x not in network.outputs
    if maker is None or not alone or maker.function not in LAYERS:
        return
    fields = {"next_bits": call.fields["bits"], "thresholds": call.fields["thresholds"]}
    merged = replace(maker, fields={**maker.fields, **fields}, writes=call.writes)
    network.replace(maker, merged)
    network.calls.remove(call)


LAYERS = (ADDED, COUNTED, CONVOLUTION, *SUMS)
"""Functions that write fixed point, or numbers of levels where they have thresholds."""
