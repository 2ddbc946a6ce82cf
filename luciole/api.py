"""The calls that people make from Python: load, save, run and quantize models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from luciole import interpreter, lquantizer
from luciole.exporters import save, to_bytes
from luciole.importers import from_bytes, load
from luciole.interpreter.affine import as_input
from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT
from luciole.interpreter.compile import DEFAULT_MEMORY_LIMIT
from luciole.interpreter.records import Track
from luciole.ir import Array, Graph, Model
from luciole.ir.names import by_own_names
from luciole.ir.passes.unroll_lstm import unroll_lstm, whole_lstms
from luciole.lquantizer import (
    OutputAware,
    Published,
    Result,
    Settings,
    UniformOptions,
    quantize_records,
    quantize_uniform,
)
from luciole.lquantizer.options import (
    Choices,
    FitOptions,
    PublishedOptions,
    QuantizeOptions,
    options_of,
)
from luciole.lquantizer.search.auto_bits import for_drop, for_size

if TYPE_CHECKING:
    from luciole.lquantizer.training import FinetuneResult, FinetuneSettings

__all__ = ["Interpreter", "Result", "finetune", "load", "quantize", "save"]

Path_ = str | os.PathLike[str]


class Interpreter(interpreter.Interpreter):
    """Runs a model, given as a path, as bytes (``model_content``) or as a Model.

    The calls are LiteRT's; every intermediate tensor can be read. ``graph`` is another one of a
    Model's than the main one. See ``luciole.interpreter.Interpreter``.
    """

    def __init__(
        self,
        model_path: Path_ | Model | None = None,
        model_content: bytes | None = None,
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        keep_tensors: bool = False,
        num_threads: int = 1,
        loop_limit: int = DEFAULT_LOOP_LIMIT,
        graph: Graph | None = None,
    ) -> None:
        if (model_path is None) == (model_content is None):
            raise TypeError("give either a model or its bytes as model_content")
        if model_content is not None:
            model = from_bytes(model_content)
        elif isinstance(model_path, Model):
            model = model_path
        else:
            model = load(model_path)  # type: ignore[arg-type]  # None was refused above
        super().__init__(
            model,
            memory_limit=memory_limit,
            keep_tensors=keep_tensors,
            num_threads=num_threads,
            loop_limit=loop_limit,
            graph=graph,
        )


def quantize(
    model: Path_ | Model,
    data: Mapping[str, Any] | Any = None,
    options: QuantizeOptions | UniformOptions | None = None,
    *,
    track: Track | None = None,
    **choices: Unpack[Choices],
) -> Result:
    """Quantize a model's dense layers and convolutions to learned levels, or with a ``scheme``
    ("int8", "w4a8", "int16x8", "dynamic", "weights", "float16") the whole network to uniform
    integers; the last three need no data.

    ``data`` are unlabelled samples: arrays by input name (one array alone for a model with one
    input) whose first axis counts them; uint8 and float64 will do for float32. What to do is said
    by ``options``, a FitOptions, PublishedOptions or UniformOptions, or by their fields as
    keywords; ``method`` then names the class: "fit" (keeps each layer's output close) unless it is
    "published" (the baseline, for dense layers). Returns the new model and a report. Raises
    QuantizeError when nothing qualifies, the data cannot be used or choices do not go together,
    InputError for data whose names, types or shapes the model does not take.
    """
    if options is not None and choices:
        raise TypeError(f"give options or keywords, not both: {', '.join(sorted(choices))}")
    options = options or options_of(choices)
    model = model if isinstance(model, Model) else load(model)
    records = None if data is None else _records(model, data)
    result = _quantized(model, records, options, track)
    unrolled = isinstance(options, FitOptions) and options.unroll_lstms
    if unrolled:
        result.report.warnings += whole_lstms(model.graph)
    _weigh(result, model, unrolled)
    return result


def _quantized(
    model: Model,
    records: Mapping[str, Array] | None,
    options: QuantizeOptions | UniformOptions,
    track: Track | None,
) -> Result:
    if isinstance(options, UniformOptions):
        return quantize_uniform(model, records, options, track)
    if records is None:
        raise lquantizer.QuantizeError("levels are learned from data: give some")
    return _learned(model, records, options, track)


def _learned(
    model: Model, records: Mapping[str, Array], options: QuantizeOptions, track: Track | None
) -> Result:
    config = options.per_layer()
    if isinstance(options, PublishedOptions):
        settings = options.settings or Settings(seed=options.seed)
        return quantize_records(model, records, Published(settings), config, track)
    assert isinstance(options, FitOptions), "options are those of a method"
    how = (options.seed, track, options.unroll_lstms)
    if options.target_size is not None:
        return for_size(model, records, config, options.target_size, _file_size, *how)
    if options.target_drop is not None:
        return for_drop(model, records, config, options.target_drop, *how)
    method = OutputAware(options.seed)
    return quantize_records(model, records, method, config, track, options.unroll_lstms)


def _weigh(result: Result, model: Model, unrolled: bool) -> None:
    """Note the sizes of both files, and warn where the new one is not smaller."""
    report = result.report
    report.bytes_before, report.bytes_after = _file_size(model), _file_size(result.model)
    if report.bytes_after >= report.bytes_before:
        why = ": an unrolled LSTM has operators for each step" if unrolled else ""
        report.warnings.append(
            f"the file is not smaller, {report.bytes_after:,} bytes instead of "
            f"{report.bytes_before:,}{why}"
        )


def _file_size(model: Model) -> int:
    return len(to_bytes(model))


def finetune(
    student: Path_ | Model,
    teacher: Path_ | Model,
    data: Mapping[str, Any] | Any,
    *,
    epochs: int,
    labels: Array | None = None,
    settings: FinetuneSettings | None = None,
    latents: Mapping[str, Array] | None = None,
    checkpoint: Path_ | None = None,
    resume: bool = False,
    report: Callable[[str], None] | None = None,
    track: Track | None = None,
) -> FinetuneResult:
    """Fine-tune a quantized model so that it does what the float model does, without labels.

    ``data`` are samples as ``quantize`` takes them, ``latents`` its result's; ``labels`` are used
    only where given. A ``checkpoint`` file is written after each epoch, and ``resume`` goes on from
    it. ``report`` is given a line for each epoch. Returns the best model by held-back records and
    the history. Raises what ``luciole.lquantizer.training.finetune`` does; needs TensorFlow.
    """
    from luciole.lquantizer import training as training

    student = student if isinstance(student, Model) else load(student)
    teacher = (teacher if isinstance(teacher, Model) else load(teacher)).clone()
    unroll_lstm(teacher.graph)  # it has no differentiable form of its own
    return training.finetune(
        student,
        teacher,
        _records(student, data),
        epochs=epochs,
        labels=labels,
        settings=settings,
        latents=latents,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        resume=resume,
        track=track,
        report=report,
    )


def _records(model: Model, data: Mapping[str, Any] | Any) -> dict[str, Array]:
    if isinstance(data, Mapping):
        inputs = {v.name: v for v in model.graph.inputs}
        given = {str(name): np.asarray(array) for name, array in data.items()}
        arrays = by_own_names(model.graph, given)
        return {n: as_input(inputs[n], a) if n in inputs else a for n, a in arrays.items()}
    if len(model.graph.inputs) != 1:
        names = sorted(v.name for v in model.graph.inputs)
        raise lquantizer.QuantizeError(
            f"the model has {len(names)} inputs {names}: give a dictionary of arrays"
        )
    return _records(model, {model.graph.inputs[0].name: data})
