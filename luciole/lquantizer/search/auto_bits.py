"""Give each layer as many bits as pay: by measured sensitivity, for a file size or an accuracy.

Every layer is learned alone at every width, on the float network's own activations; its error is
the noise-to-signal ratio of its output on held-back records. From the smallest widths on, the step
that lowers the summed error most for each byte is taken, again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, Track, outputs_of, untracked
from luciole.ir import Model
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.learned_levels import plane_bytes
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.config import Choice, Config
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.network.preparation import Job, prepare
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.network.sampling import HELD_BACK, float_side, quantized_side
from luciole.lquantizer.network.walk import problem_of, quantize_records

WIDTHS = (1, 2, 3, 4)

Size = Callable[[Model], int]
"""The size of a model's file; exporters are not this room's, so the caller brings it."""


@dataclass(frozen=True)
class Option:
    """One layer at one width: its bytes, and the noise-to-signal ratio of its output."""

    choice: Choice
    bytes: int
    error: float


Sensitivities = dict[str, list[Option]]
"""By layer name, its options from the smallest width on."""


def sensitivities(
    model: Model,
    records: Records,
    config: Config,
    seed: int = 0,
    track: Track | None = None,
    unroll: bool = False,
) -> Sensitivities:
    """Measure what each layer loses at each width."""
    track = track or untracked
    method = OutputAware(seed)
    prepared = prepare(model, records, config, method, unroll)
    aims = float_side(prepared, records, track("float network", prepared.count))
    step = track("measuring layers", len(prepared.jobs) * len(WIDTHS))
    found: Sensitivities = {}
    for job, aim in zip(prepared.jobs, aims, strict=True):
        alone = replace(job, others=[None] * len(job.others))
        rows, _, numbers = quantized_side(prepared.work, alone, records, prepared.batch)
        problem = problem_of(alone, rows, aim, [None] * len(job.others), numbers)
        found[job.group.name] = []
        for choice in _choices(job.group.choice):
            learned = method.learn(problem, choice)
            error = learned.stages["output_aware"] / (learned.signal or 1.0)
            found[job.group.name].append(Option(choice, layer_bytes(job, choice), error))
            step(1)
    return found


def _choices(choice: Choice) -> list[Choice]:
    return [replace(choice, weight_bits=k, input_bits=k) for k in WIDTHS]


def layer_bytes(job: Job, choice: Choice) -> int:
    """Count the bytes of a job's constants under a choice: bit planes, scales, bias."""
    op, k = job.group.ops[0], choice.weight_bits
    shape = op.weights.dims if isinstance(op, FullyConnected) else op.filter.dims
    outputs, offsets = shape[0], shape[0] if k == 1 else 0
    return plane_bytes(shape, k) + 4 * (outputs * k + outputs + offsets + choice.input_bits)


def path(options: Sensitivities) -> list[dict[str, Option]]:
    """Allocations from the smallest to the largest, each one step up from the one before."""
    place = dict.fromkeys(options, 0)
    steps = [_at(options, place)]
    while True:
        gains = {
            name: _gain(options[name], at)
            for name, at in place.items()
            if at + 1 < len(options[name])
        }
        if not gains:
            return steps
        place[max(gains, key=gains.__getitem__)] += 1
        steps.append(_at(options, place))


def _at(options: Sensitivities, place: dict[str, int]) -> dict[str, Option]:
    return {name: options[name][at] for name, at in place.items()}


def _gain(options: list[Option], at: int) -> float:
    """Error taken away for each byte added by the next width."""
    now, then = options[at], options[at + 1]
    return (now.error - then.error) / max(then.bytes - now.bytes, 1)


def for_size(
    model: Model,
    records: Records,
    config: Config,
    target: int,
    size: Size,
    seed: int = 0,
    track: Track | None = None,
    unroll: bool = False,
) -> Result:
    """Find the best allocation whose file is no larger than ``target`` bytes. Raises QuantizeError
    when the smallest one is.
    """
    options = sensitivities(model, records, config, seed, track, unroll)
    room = target - size(model) + _replaced_bytes(model, options)
    steps = path(options)
    while True:
        allocation = next((a for a in reversed(steps) if _bytes(a) <= room), steps[0])
        result = _fit(model, records, config, allocation, seed, track, unroll)
        excess = size(result.model) - target
        if excess <= 0:
            result.report.options = _table(options)
            return result
        if allocation is steps[0]:
            smallest = size(result.model)
            raise QuantizeError(
                f"no allocation fits into {target} bytes: the smallest takes {smallest}"
            )
        room = _bytes(allocation) - excess  # what the tables take besides is known by now


def for_drop(
    model: Model,
    records: Records,
    config: Config,
    target: float,
    seed: int = 0,
    track: Track | None = None,
    unroll: bool = False,
) -> Result:
    """Find the smallest allocation that changes at most ``target`` points of a classifier's
    answers, on records that nothing was learned from.
    """
    judged = {n: a[HELD_BACK - 1 :: HELD_BACK] for n, a in records.items()}
    kept = {n: np.delete(a, np.s_[HELD_BACK - 1 :: HELD_BACK], axis=0) for n, a in records.items()}
    if not all(len(a) for a in (*judged.values(), *kept.values())):
        raise QuantizeError(f"a target drop needs at least {HELD_BACK} records")
    options = sensitivities(model, kept, config, seed, track, unroll)
    answers, steps = _answers(model, judged), path(options)
    low, high = 0, len(steps) - 1
    best = _fit(model, kept, config, steps[high], seed, track, unroll)
    while low < high:
        middle = (low + high) // 2
        result = _fit(model, kept, config, steps[middle], seed, track, unroll)
        drop = 100 * float(np.mean(_answers(result.model, judged) != answers))
        if drop <= target:
            best, high = result, middle
        else:
            low = middle + 1
    drop = 100 * float(np.mean(_answers(best.model, judged) != answers))
    if drop > target:
        best.report.warnings.append(
            f"even {WIDTHS[-1]} bits change {drop:.2f} % of the answers, {target:g} % were wanted"
        )
    best.report.options = _table(options)
    return best


def _answers(model: Model, records: Records) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    first = outputs_of(Interpreter(model), records)[model.graph.outputs[0].name]
    return np.asarray(first.reshape(len(first), -1).argmax(1))


def _fit(
    model: Model,
    records: Records,
    config: Config,
    allocation: dict[str, Option],
    seed: int,
    track: Track | None,
    unroll: bool,
) -> Result:
    chosen = config.with_choices({name: option.choice for name, option in allocation.items()})
    return quantize_records(model, records, OutputAware(seed), chosen, track, unroll)


def _bytes(allocation: dict[str, Option]) -> int:
    return sum(option.bytes for option in allocation.values())


def _replaced_bytes(model: Model, options: Sensitivities) -> int:
    return sum(constant_bytes(op) for op in model.graph.ops if op.name in options)


def _table(options: Sensitivities) -> list[dict[str, float | int | str]]:
    """Write the sensitivities as rows: layer, bits, bytes, error."""
    return [
        {"layer": name, "bits": o.choice.weight_bits, "bytes": o.bytes, "error": o.error}
        for name, found in options.items()
        for o in found
    ]
