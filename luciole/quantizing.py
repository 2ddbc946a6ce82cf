"""Quantize a model in the way of its options: each class of options has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch

from luciole import lquantizer
from luciole.exporters import to_bytes
from luciole.interpreter.records import Track
from luciole.ir import Array, Model
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
from luciole.lquantizer.compatible.choosing import Options
from luciole.lquantizer.compatible.one import OneOptions, quantize_one
from luciole.lquantizer.schemes import FLOAT, LEARNED, MIXED
from luciole.lquantizer.search.auto_bits import for_drop, for_size
from luciole.lquantizer.search.mixed_bits import quantize_mixed_bits

Records = Mapping[str, Array]


@dataclass(frozen=True)
class Task:
    """A model, its samples by input name where there are any, their labels [records], and who is
    told how far it is.
    """

    model: Model
    records: Records | None
    labels: Array | None = None
    track: Track | None = None

    def needed(self, why: str) -> Records:
        """Return the samples. Raises QuantizeError that says ``why`` they are needed."""
        if self.records is None:
            raise QuantizeError(f"{why}: give some")
        return self.records

    def learned_from(self) -> Records:
        """Return the samples that levels are learned from. Raises QuantizeError for none."""
        return self.needed("levels are learned from data")


def quantized(task: Task, options: Options) -> Result:
    """Quantize a model as its options say, and note the sizes of both files. Raises QuantizeError
    where samples are needed, for labels that nothing minds, and what a way refuses.
    """
    if task.labels is not None and not isinstance(options, MinifloatOptions):
        raise QuantizeError("only the search of minifloats minds labels")
    result = _by(options, task)
    note_sizes(result, task.model)
    return result


@singledispatch
def _by(options: object, task: Task) -> Result:
    raise TypeError(f"options are {options!r}, which stand for no way to quantize")


@_by.register
def _minifloat(options: MinifloatOptions, task: Task) -> Result:
    found = (task.model, task.records, options, task.track, task.labels)
    return lquantizer.quantize_minifloat(*found)


@_by.register
def _as_one_does(options: OneOptions, task: Task) -> Result:
    return quantize_one(task.model, task.records, options, task.track)


@_by.register
def _uniform(options: UniformOptions, task: Task) -> Result:
    if options.scheme == MIXED:
        records = task.needed("the scheme 'mixed' learns from data")
        return quantize_mixed_bits(task.model, records, options, task.track)
    if options.config is None:
        return lquantizer.quantize_uniform(task.model, task.records, options, task.track)
    fit = FitOptions(config=options.config, spared=options.scheme, seed=options.seed)
    how = (fit, options, options.scheme, task.track)
    return lquantizer.quantize_mixed(task.model, task.records, *how)


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
    if options.spared == FLOAT:
        return result
    return lquantizer.with_integers(result, task.model, records, options, task.track)


def _by_scheme(options: FitOptions, task: Task) -> Result:
    """Quantize layers to levels and the schemes that a configuration names."""
    options.refuse_targets("schemes in a config")
    how = (options, UniformOptions(seed=options.seed), LEARNED, task.track)
    return lquantizer.quantize_mixed(task.model, task.learned_from(), *how)


def _fitted(task: Task, records: Records, options: FitOptions, config: Config) -> Result:
    """Learn levels: of the widths that were chosen, or of those that a target pays for."""
    how = (options.seed, task.track, options.unroll_lstms)
    levels = options.levels_only or options.spared != FLOAT
    found = (task.model, records, config)
    if options.target_size is not None:
        return for_size(*found, options.target_size, file_size, *how, levels)
    if options.target_drop is not None:
        return for_drop(*found, options.target_drop, file_size, *how, levels)
    method = OutputAware(options.seed)
    rest = (config, task.track, options.unroll_lstms)
    return lquantizer.quantize_records(task.model, records, method, *rest)


def note_sizes(result: Result, model: Model) -> None:
    """Note in a report the bytes of both models' files."""
    report = result.report
    report.bytes_before, report.bytes_after = file_size(model), file_size(result.model)


def file_size(model: Model) -> int:
    """Count the bytes of a model's ``.circle`` file."""
    return len(to_bytes(model))
