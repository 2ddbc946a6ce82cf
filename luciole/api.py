"""The calls that people make from Python: load, save, run and quantize models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from luciole import interpreter, lquantizer
from luciole.exporters import save, to_bytes
from luciole.importers import from_bytes, load
from luciole.interpreter.affine import as_input
from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT
from luciole.interpreter.plan import DEFAULT_MEMORY_LIMIT
from luciole.ir import Array, Graph, Model
from luciole.ir.passes.unroll_lstm import unroll_lstm
from luciole.lquantizer import Choice, Recipe, Result, Settings
from luciole.lquantizer.methods.published import Track
from luciole.lquantizer.search.auto_bits import for_drop, for_size

if TYPE_CHECKING:
    from luciole.lquantizer.training import FinetuneResult, FinetuneSettings

__all__ = ["Interpreter", "Result", "finetune", "load", "quantize", "save"]

Path_ = str | os.PathLike[str]
Method = Literal["fit", "published"]

_NOT_WITH = {
    "fit": {"settings"},
    "published": {"target_size", "target_drop", "weights_only", "unroll_lstms"},
}
"""Choices that a method does not know."""

_WIDTHS = {"input_bits", "weight_bits", "weights_only"}
"""Choices that a target leaves no room for: it finds the widths."""


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
    data: Mapping[str, Any] | Any,
    *,
    encode_bits: int = 3,
    input_bits: int | None = None,
    weight_bits: int | None = None,
    recipe: Path_ | Mapping[str, Any] | None = None,
    method: Method = "fit",
    settings: Settings | None = None,
    seed: int = 0,
    weights_only: bool = False,
    unroll_lstms: bool = False,
    target_size: int | None = None,
    target_drop: float | None = None,
    track: Track | None = None,
) -> Result:
    """Quantize a model's dense layers and convolutions to learned levels.

    ``data`` are unlabelled samples: arrays by input name (one array alone for a model with one
    input) whose first axis counts them; uint8 and float64 will do for float32. ``encode_bits`` is
    the width of inputs and weights unless ``input_bits`` or ``weight_bits`` say otherwise;
    ``recipe`` (a JSON file or its content) chooses layer by layer. ``method`` "fit" keeps each
    layer's output close; "published" is the baseline, for dense layers, with its own ``settings``.
    ``weights_only`` keeps layers' inputs float and writes ONE's BCQ_FULLY_CONNECTED;
    ``unroll_lstms`` turns LSTMs into dense layers first, whose state starts at zero in each run.
    With ``target_size`` (bytes) or ``target_drop`` (points of a classifier's answers that may
    change) each layer gets as many bits as pay. Returns the new model and a report. Raises
    QuantizeError when nothing qualifies, the data cannot be used or choices do not go together,
    InputError for data whose names, types or shapes the model does not take.
    """
    _check_choices(
        method,
        settings=settings,
        input_bits=input_bits,
        weight_bits=weight_bits,
        weights_only=weights_only,
        unroll_lstms=unroll_lstms,
        target_size=target_size,
        target_drop=target_drop,
    )
    model = model if isinstance(model, Model) else load(model)
    default = Choice(
        encode_bits if input_bits is None else input_bits,
        encode_bits if weight_bits is None else weight_bits,
        weights_only=weights_only,
    )
    records, chosen = _records(model, data), _recipe(recipe, default)
    task, how = (model, records, chosen), (seed, track, unroll_lstms)
    if method == "published":
        result = lquantizer.quantize_records(*task, settings or Settings(seed=seed), track)
    elif target_size is not None:
        result = for_size(*task, target_size, _file_size, *how)
    elif target_drop is not None:
        result = for_drop(*task, target_drop, *how)
    else:
        result = lquantizer.fit_records(*task, *how)
    _weigh(result, model, unroll_lstms)
    return result


def _check_choices(method: str, **choices: object) -> None:
    """Raise QuantizeError for choices that would be passed over."""
    given = {n for n, choice in choices.items() if choice is not None and choice is not False}
    if method not in get_args(Method):
        raise lquantizer.QuantizeError(f"method is {method!r}: 'fit' and 'published' are possible")
    for name in sorted(given & _NOT_WITH[method]):
        raise lquantizer.QuantizeError(f"{name} does not go with the method {method!r}")
    targets = given & {"target_size", "target_drop"}
    both = sorted(targets) + sorted(given & _WIDTHS)
    if targets and len(both) > 1:
        raise lquantizer.QuantizeError(f"{both[0]} does not go with {both[1]}")


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
        arrays = {str(name): np.asarray(array) for name, array in data.items()}
        return {n: as_input(inputs[n], a) if n in inputs else a for n, a in arrays.items()}
    if len(model.graph.inputs) != 1:
        names = sorted(v.name for v in model.graph.inputs)
        raise lquantizer.QuantizeError(
            f"the model has {len(names)} inputs {names}: give a dictionary of arrays"
        )
    return _records(model, {model.graph.inputs[0].name: data})


def _recipe(recipe: Path_ | Mapping[str, Any] | None, default: Choice) -> Recipe:
    if recipe is None:
        return Recipe(default)
    if isinstance(recipe, Mapping):
        return Recipe.parse(dict(recipe), default)
    return Recipe.read(Path(recipe), default)
