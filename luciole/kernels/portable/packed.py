"""Weights of few levels as codes: where an output has up to 16 different weights, C programs hold
numbers of 1 to 4 bits for them and unpack these while the layer runs.

So INT4 weights and integers of learned levels take what they take in a file, however they got into
the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from luciole.ir import Array
from luciole.ir.minifloat import pack_codes
from luciole.kernels.portable.calls import CCall, Field, PortableContext

MOST_BITS = 4
"""Bits of a code at the most."""

WORTH = 0.75
"""Bytes of codes and levels, of those of weights, from which on these stay as they are."""

BLOCK = 8192
"""Bytes of weights that a layer unpacks at a time, unless two outputs take more: what it lists of
its input it lists again for each block (ResNet-8 of 2 bits on Cortex-M4: 1.09 times the
instructions of bytes, 1.17 with 4096, 1.50 with 2048).
"""


def with_packed_weights(
    call: CCall, weights: Array, context: PortableContext, *, axis: int = 0, most: int = BLOCK
) -> CCall:
    """Return the call of a layer with its weights as codes where that takes fewer bytes, else the
    same call. Outputs lie along ``axis``; those of up to ``most`` bytes are unpacked at a time.
    """
    rows = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
    can_pack = context.packs_weights and weights.dtype == np.int8
    fields = _smallest(rows) if can_pack else None
    if fields is None:
        return call
    outputs, size = rows.shape
    block = outputs if rows.size <= most else min(max(most // size // 2 * 2, 2), outputs)
    stem, integer, kind = call.function.partition("_int")
    held: dict[str, Field] = {"layer": {**call.fields, "weights": None}}
    held["packed"] = {**fields, "block": block}
    scratch = call.scratch + -(-block * size // 8) * 8
    note = f"weights of {fields['bits']} bits"
    return replace(
        call, function=f"{stem}_packed{integer}{kind}", fields=held, scratch=scratch, note=note
    )


def _smallest(rows: Array) -> Mapping[str, Field] | None:
    """Return the fields of the smallest form of weights [outputs, size], with levels for each
    output or the same for all; None where bytes are as good.
    """
    forms = [form for form in (_coded(rows), _coded(rows.reshape(1, -1))) if form is not None]
    sized = [(_bytes_of(form, len(rows)), form) for form in forms]
    if not sized or (best := min(sized, key=lambda pair: pair[0]))[0] > WORTH * rows.size:
        return None
    codes, levels = best[1]
    bits = levels.shape[1].bit_length() - 1
    packed = np.stack([pack_codes(row, bits) for row in codes.reshape(rows.shape)])
    apart = 0 if len(levels) == 1 else levels.shape[1]
    return {
        "bits": bits,
        "row": packed.shape[1],
        "apart": apart,
        "codes": packed,
        "levels": levels,
    }


def _bytes_of(form: tuple[Array, Array], outputs: int) -> int:
    codes, levels = form
    bits = levels.shape[1].bit_length() - 1
    return int(levels.size + outputs * -(-codes.size // outputs * bits // 8))


def _coded(rows: Array) -> tuple[Array, Array] | None:
    """Number the different integers of each row: codes like rows, and levels [rows, 2^bits]; None
    for more than 16.
    """
    different = [np.unique(row) for row in rows]
    bits = max(1, max(len(levels) - 1 for levels in different).bit_length())
    if bits > MOST_BITS:
        return None
    filled = [np.pad(levels, (0, 2**bits - len(levels)), "edge") for levels in different]
    codes = [np.searchsorted(levels, row) for levels, row in zip(different, rows, strict=True)]
    return np.stack(codes), np.stack(filled)
