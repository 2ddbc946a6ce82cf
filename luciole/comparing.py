"""Compare a quantized network with what plainer schemes make of the same one."""

from __future__ import annotations

from functools import partial

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.records import Records
from luciole.ir import Model
from luciole.ir.errors import LucioleError
from luciole.ir.passes.strip_names import strip_names
from luciole.lquantizer import Result, UniformOptions, quantize_uniform
from luciole.lquantizer.assignment.layer_format import Integers, Levels, Minifloat, parse
from luciole.lquantizer.assignment.schemes import BYTES, NIBBLES
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Judges, evenly
from luciole.lquantizer.proof import OutputProof, Proof
from luciole.lquantizer.proving.prove import prove
from luciole.lquantizer.report import LayerReport
from luciole.optimizing import canonical

_PLAIN = (NIBBLES, BYTES)
"""Formats that others are compared with, the smaller one first."""
_TAUGHT = 16
"""Records that a plain scheme is learned from here: 1 to 10 s where levels take minutes."""
_COUNTED = 2
"""Records that do for a file that only its bytes are asked of."""
_ROOM = 1.04
"""Growth of a file by scales that rescaled channels are divided by, which is not done here: 3 % of
a MobileNetV2's."""


def enter_smaller_and_closer(
    result: Result,
    model: Model,
    records: Records,
    judges: Judges,
    metric: Metric | None = None,
    *,
    strips: bool = False,
) -> None:
    """Warn in a report of the first plain scheme whose file is smaller and keeps more of the float
    ``model``, by the same ``judges``; ``records`` teach it. ``strips`` says that the result's names
    are stripped. Nothing is said without a proof.

    The bytes are counted in a file of the scheme that learned next to nothing. Only where they are
    fewer is one learned, from few records, so that the scheme itself does better yet.
    """
    proof = result.report.proof
    if proof is None or not proof.outputs or not any(map(_is_unusual, result.report.layers)):
        return
    work = canonical(model)
    for format in _PLAIN:
        try:
            size = _ROOM * len(_plain_file(work, records, format, _COUNTED, strips))
            if size >= result.report.bytes_after:
                return  # those of more bits are larger
            content = _plain_file(work, records, format, _TAUGHT, strips)
        except LucioleError:
            return  # of a network that has no integers there is nothing to say
        other = prove(model, partial(from_bytes, content), judges, metric=metric)
        if _keeps_more(other, proof):
            sizes = f"{size:,.0f} instead of {result.report.bytes_after:,} bytes"
            kept = f"{other.outputs[0].file} instead of {proof.outputs[0].file}"
            result.report.warnings.append(
                f"the scheme {format} gives a smaller file that is closer to the float network: "
                f"{sizes}, {kept}, learned from only {_TAUGHT} records"
            )
            return


def _is_unusual(layer: LayerReport) -> bool:
    """Return whether a layer has other numbers than the plain schemes and fewer bits."""
    try:
        format = parse(layer.format)
    except LucioleError:
        return False
    if isinstance(format, Levels):
        return True
    return isinstance(format, Minifloat) or (isinstance(format, Integers) and format.has_levels)


def _plain_file(
    model: Model, records: Records, format: Integers, count: int, strips: bool
) -> bytes:
    """Make a file of a plain scheme by its quickest rules, from ``count`` records."""
    is_counted = count == _COUNTED
    options = UniformOptions(
        str(format),
        ranges="min_max",
        rescale="none",
        rounding="nearest" if is_counted or format == BYTES else "output_aware",
    )
    plain = quantize_uniform(model, evenly(records, count), options).model
    if strips:
        strip_names(plain)
    return to_bytes(plain)


def _keeps_more(other: Proof, own: Proof) -> bool:
    """Return whether a sound file keeps more of every output, and of what a metric measures."""
    pairs = list(zip(other.outputs, own.outputs, strict=False))
    if not other.is_sound or len(pairs) < len(own.outputs):
        return False
    if other.metric is not None and own.metric is not None and other.metric.file < own.metric.file:
        return False
    return all(_is_closer(one, two) for one, two in pairs)


def _is_closer(other: OutputProof, own: OutputProof) -> bool:
    """Return whether an output has less error, and as many answers that stay."""
    if own.file.snr_db is None or (other.file.agreement or 0) < (own.file.agreement or 0):
        return False
    return other.file.snr_db is None or other.file.snr_db > own.file.snr_db
