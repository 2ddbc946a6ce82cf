"""Quantize a model in the way of its options: each class of options has one."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from time import perf_counter

from luciole import lquantizer
from luciole.comparing import enter_smaller_and_closer
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.compare import second_inputs
from luciole.interpreter.finite import check_finite
from luciole.interpreter.records import Records, Track, check_records
from luciole.ir import Array, Graph, Model
from luciole.lquantizer import (
    Config,
    FitOptions,
    MinifloatOptions,
    OutputAware,
    Published,
    PublishedOptions,
    QuantizeError,
    Result,
    Settings,
    UniformOptions,
)
from luciole.lquantizer.assignment.choosing import Options
from luciole.lquantizer.assignment.layer_format import Levels, levels_format
from luciole.lquantizer.assignment.one_config import MAKE, RECORD, ROUND, OneOptions
from luciole.lquantizer.assignment.options import format_named
from luciole.lquantizer.assignment.schemes import FLOAT, LEARNED, MIXED
from luciole.lquantizer.calibration.doubts import doubts
from luciole.lquantizer.errors import OptionsError, check_points
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import FEW_JUDGES, Judges, Split, check_labels
from luciole.lquantizer.linear_algebra import one_thread
from luciole.lquantizer.proof import Proof
from luciole.lquantizer.proving.prove import prove
from luciole.lquantizer.proving.simulation import simulated, simulation_of
from luciole.lquantizer.search.auto_bits import Widths, for_drop, for_size
from luciole.lquantizer.search.mixed_bits import quantize_mixed_bits
from luciole.lquantizer.whole.one import quantize_noted, quantize_one, record_alone, round_alone
from luciole.optimizing import canonical


def check_widths(choices: Mapping[str, object]) -> None:
    """Refuse choices of bits of which one would be passed over: numbers beside a word that says
    them, and either beside a target that finds them. Raises QuantizeError.
    """
    scheme, bits = choices.get("scheme"), choices.get("encode_bits")
    if scheme == "":
        raise OptionsError("scheme is '': leave it out, or name one")
    words = {"scheme": format_named(str(scheme)) if scheme else None}
    if isinstance(bits, str):
        words["encode_bits"] = levels_format(bits)
    said = {name: word for name, word in words.items() if isinstance(word, Levels)}
    for name, levels in said.items():
        numbers = {"encode_bits", "weight_bits"} - {name}
        numbers |= set() if levels.inputs is None else {"input_bits"}
        for other in sorted(numbers):
            if choices.get(other) is not None:
                raise OptionsError(f"{name} {choices[name]!r} says the bits: leave {other} out")
    for target in ("target_size", "target_drop"):
        if choices.get(target) is not None and (said or bits is not None):
            named = "encode_bits" if bits is not None else f"scheme {scheme!r}"
            raise OptionsError(f"{target} finds the bits: {named} does not go with it")


@dataclass(frozen=True)
class Task:
    """A model, its samples by input name where there are any, their labels [records], other samples
    that judge the file, whether it is judged at all, who is told how far it is, and a metric.
    """

    model: Model
    records: Records | None
    labels: Array | None = None
    track: Track | None = None
    judges: Records | None = None
    proof: bool = True
    metric: Metric | None = None

    def needed(self, why: str) -> Records:
        """Return the samples. Raises QuantizeError that says ``why`` they are needed."""
        if self.records is None:
            raise QuantizeError(f"{why}: give some")
        return self.records

    def learned_from(self) -> Records:
        """Return the samples that levels are learned from. Raises QuantizeError for none."""
        return self.needed("levels are learned from data")


def quantized(task: Task, options: Options) -> Result:
    """Quantize a model as its options say, and note the sizes of both files and the seconds that
    all of it took. Raises QuantizeError where samples are needed, for labels that nothing minds,
    for a metric that fails, and what a way refuses.
    """
    begun = perf_counter()
    _check_judging(task, options)
    split = None
    if task.records is not None:
        split = parted(replace(task, proof=task.proof and not isinstance(options, OneOptions)))
        task = replace(task, records=split.learned, labels=split.labels)
        check_metric(task.metric, task.model, split.judges)
    elif task.judges is not None:
        _check_judges(task.model.graph, task.judges)
    with one_thread():
        result = _by(options, replace(task, model=model_for(options, task.model)))
    if task.records is not None and _teaches(options):
        result.report.warnings += doubts(task.records)
    content = note_sizes(result, task.model)
    if task.proof:
        enter_proof(result, task.model, _judges(task, split), content, task.metric)
        if split is not None:
            enter_smaller_and_closer(result, task.model, split.learned, split.judges, task.metric)
    result.report.seconds = perf_counter() - begun
    return result


def model_for(options: Options, model: Model) -> Model:
    """Return a model in the form that options quantize: the one form of all networks, but for ONE's
    numbers, which are of the file's own operators.
    """
    return model if isinstance(options, OneOptions) else canonical(model)


def _check_judging(task: Task, options: Options) -> None:
    """Refuse labels and metrics that judge nothing, and targets that do not suit them."""
    target, chooses = None, False
    if isinstance(options, FitOptions | UniformOptions | MinifloatOptions):
        target = options.target_drop
        chooses = target is not None
    if isinstance(options, UniformOptions):
        chooses |= options.scheme == MIXED
    if task.labels is not None and task.metric is None and not chooses:
        raise QuantizeError("labels judge what is chosen for a target_drop, or by a metric")
    if task.metric is None:
        check_points(target)
    elif chooses and target is None:
        raise QuantizeError(f"give a target_drop, in the unit of the metric {task.metric.name}")


def check_metric(metric: Metric | None, model: Model, judges: Judges) -> None:
    """Measure the float network on some of the records, so that a metric that fails does so before
    the work. Raises QuantizeError.
    """
    if metric is not None:
        Judge(model, judges.some(FEW_JUDGES), metric)


def _teaches(options: Options) -> bool:
    """Check whether options learn from samples."""
    if isinstance(options, MinifloatOptions):
        return options.needs_data
    if isinstance(options, UniformOptions):
        return options.takes_data or options.types.rounds_to_integers
    return not isinstance(options, OneOptions) or options.takes_data


def parted(task: Task, known: Container[bytes] = ()) -> Split:
    """Part a task's samples: all of them teach where others judge, and where nothing is proved; of
    those whose digest is not ``known`` some judge. Raises InputError for samples that do not fit
    the model, QuantizeError for more or fewer labels.
    """
    records, graph, labels = task.needed("samples are parted"), task.model.graph, task.labels
    check_records(graph, records)
    check_labels(records, labels)
    if task.judges is not None:
        _check_judges(graph, task.judges)
        return Split.judged_by(records, task.judges, labels)
    return Split.of(records, None, labels, known) if task.proof else Split.same(records, labels)


def _check_judges(graph: Graph, judges: Records) -> None:
    """Refuse samples that do not fit the model, or are not finite. Raises InputError."""
    check_records(graph, judges)
    check_finite(graph, judges)


def _judges(task: Task, split: Split | None) -> Judges | None:
    """Choose who judges: samples that were parted, or given for that; None where none were."""
    if split is not None:
        return split.judges
    return None if task.judges is None else Judges(task.judges)


@singledispatch
def _by(options: object, task: Task) -> Result:
    raise TypeError(f"options are {options!r}, which stand for no way to quantize")


@_by.register
def _minifloat(options: MinifloatOptions, task: Task) -> Result:
    return lquantizer.quantize_minifloat(
        task.model, task.records, options, task.track, task.labels, task.metric
    )


@_by.register
def _as_one_does(options: OneOptions, task: Task) -> Result:
    if options.step == ROUND:
        return round_alone(task.model, options)
    if options.step == RECORD:
        records = task.needed("ranges are those of data")
        return record_alone(task.model, records, options, task.track)
    if options.step == MAKE:
        return quantize_noted(task.model, options, task.track)
    return quantize_one(task.model, task.records, options, task.track)


@_by.register
def _uniform(options: UniformOptions, task: Task) -> Result:
    if options.scheme == MIXED:
        records = task.needed("the scheme 'mixed' learns from data")
        return quantize_mixed_bits(
            task.model, records, options, task.track, task.labels, task.metric
        )
    if options.config is None:
        return lquantizer.quantize_uniform(task.model, task.records, options, task.track)
    fit = FitOptions(config=options.config, spared=options.scheme, seed=options.seed)
    return lquantizer.quantize_mixed(
        task.model, task.records, fit, options, options.scheme, task.track
    )


@_by.register
def _published(options: PublishedOptions, task: Task) -> Result:
    records, config = task.learned_from(), options.per_layer()
    if config.schemes:
        raise QuantizeError("schemes in a config do not go with method 'published'")
    method = Published(options.settings or Settings(seed=options.seed))
    return lquantizer.quantize_records(task.model, records, method, config, task.track)


@_by.register
def _fit(options: FitOptions, task: Task) -> Result:
    records, config = task.learned_from(), options.per_layer()
    if config.schemes:
        return _by_scheme(options, task)
    result = _fitted(task, records, options, config)
    if options.spared_format == FLOAT:
        return result
    return lquantizer.with_integers(result, task.model, records, options, task.track)


def _by_scheme(options: FitOptions, task: Task) -> Result:
    """Quantize layers to levels and the schemes that a configuration names."""
    options.refuse_targets("schemes in a config")
    records, uniform = task.learned_from(), UniformOptions(seed=options.seed)
    return lquantizer.quantize_mixed(task.model, records, options, uniform, LEARNED, task.track)


def _fitted(task: Task, records: Records, options: FitOptions, config: Config) -> Result:
    """Learn levels: of the widths that were chosen, or of those that a target pays for."""
    measure = partial(
        Widths.measure,
        task.model,
        records,
        config,
        file_size,
        options.seed,
        task.track,
        options.unroll_lstms,
        options.levels_only or options.spared_format != FLOAT,
    )
    if options.target_size is not None:
        return for_size(measure(target_size=options.target_size), options.target_size)
    if options.target_drop is not None:
        return for_drop(measure(task.labels, task.metric), options.target_drop)
    method, unroll = OutputAware(options.seed), options.unroll_lstms
    return lquantizer.quantize_records(task.model, records, method, config, task.track, unroll)


def converted(result: Result, model: Model) -> Result:
    """Note the sizes of both files, and judge the new one by made-up samples."""
    content = note_sizes(result, model)
    enter_proof(result, model, None, content)
    return result


def note_sizes(result: Result, model: Model) -> bytes:
    """Note in a report the bytes of both models' files. Returns those of the new one."""
    content = to_bytes(result.model)
    result.report.bytes_before, result.report.bytes_after = file_size(model), len(content)
    return content


def enter_proof(
    result: Result,
    model: Model,
    judges: Judges | None,
    content: bytes,
    metric: Metric | None = None,
) -> None:
    """Judge a file's bytes, and warn in the report of what is wrong with them."""
    read = partial(from_bytes, content)
    proof = prove(model, read, judges, simulation_of(result), metric=metric)
    result.report.proof = proof
    result.report.warnings += [f"the file is wrong: {fault}" for fault in proof.faults]


def proved_training(task: Task, trained: Model, teacher: Model, judges: Judges) -> Proof:
    """Judge the file of a ``trained`` network by its float teacher, on samples for the student."""
    records = second_inputs(task.model.graph, teacher.graph, judges.records)
    read = partial(from_bytes, to_bytes(trained))
    own = replace(judges, records=records)
    return prove(teacher, read, own, simulated(trained), metric=task.metric)


def file_size(model: Model) -> int:
    """Count the bytes of a model's ``.circle`` file."""
    return len(to_bytes(model))
