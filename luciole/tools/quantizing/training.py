"""``--finetune``, ``--tune`` and ``--qat``: train a quantized network on its way to the file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import UsageError
from luciole.tools.proving.options import asked_training
from luciole.tools.quantizing.arguments import Kind, dashed, is_chosen, refuse
from luciole.tools.quantizing.choices import has_schemes, kind_of, labels_judge

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Model
    from luciole.lquantizer import Result
    from luciole.lquantizer.assignment.choosing import Options
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split
    from luciole.lquantizer.training import FinetuneResult, FinetuneSettings, UniformSettings
    from luciole.tools.data.load import Data

_DELAY, _FREEZE = 0.1, 0.7
"""Shares of the steps of ``--qat`` before tensors are rounded, and until ranges follow batches."""
_WAYS = ("finetune", "tune", "qat")
_OF_THRESHOLDS = ("tune_weights", "tune_biases")
_OF_WEIGHTS = ("labelled_output", "label_weight")
_OF_ALL = (
    *("tune_data", "labelled_output", "learning_rate", "shift", "mirror"),
    *("hints", "checkpoint", "resume", "label_weight", "gradient", "loss", "restarts"),
)
"""Options that go with a training."""


_READ_LABELS = {
    Kind.LEVELS: "--finetune EPOCHS, --auto-bits",
    Kind.INTEGERS: "--qat EPOCHS, --scheme mixed",
    Kind.MINIFLOATS: "--search",
}
"""What labels are for, beside a metric."""


def check_training(arguments: argparse.Namespace, options: Options) -> None:
    """Refuse early the arguments that would be refused after the calibration. Raises UsageError,
    QuantizeError for unknown choices.
    """
    chosen = [name for name in _WAYS if is_chosen(arguments, name)]
    if len(chosen) > 1:
        first, second = map(dashed, chosen[:2])
        raise UsageError(f"{first} and {second} do not go together: train in one of the two ways")
    for name in chosen:
        if vars(arguments)[name] < 1:
            raise UsageError(
                f"{dashed(name)} is {vars(arguments)[name]}: at least 1 epoch is needed"
            )
    ways = _ways(options)
    others = [name for name in _WAYS if name not in ways]
    refuse(arguments, others, _instead(ways))
    if arguments.tune is None:
        refuse(arguments, _OF_THRESHOLDS, "{} goes with --tune EPOCHS: --qat trains all")
    if not chosen:
        refuse(arguments, _OF_ALL, f"{{}} goes with {_with_epochs(ways)}")
    _check_labels(arguments, options)
    if _trains_levels(options):
        _check_levels(arguments)
    elif chosen:
        _of_integers(arguments)


def is_trained(arguments: argparse.Namespace) -> bool:
    """Return whether the network is to be trained."""
    return any(is_chosen(arguments, name) for name in _WAYS)


def training_data(
    arguments: argparse.Namespace, model: Model, split: Split, options: Options
) -> Data:
    """Read the records to train on, with labels where these are asked for, except records that
    judge the file. Raises QuantizeError for labels that the network cannot be trained to, and for
    a network that cannot be trained, before the work of quantizing it.
    """
    import numpy as np

    from luciole.lquantizer.training.labels import Labels
    from luciole.tools.data import Data

    data = Data({name: np.asarray(array) for name, array in split.learned.items()})
    if arguments.tune_data or arguments.labels or arguments.calibration:
        data = asked_training(arguments, model.graph, split, "tune_data", "training")
    if data.labels is not None and _trains_to_labels(arguments, options, data):
        Labels.of(model, data.records, data.labels, arguments.labelled_output)
    if _trains_levels(options):
        _check_trainable(model, data, arguments)
    return data


def train(
    result: Result,
    model: Model,
    data: Data,
    options: Options,
    metric: Metric | None,
    arguments: argparse.Namespace,
    track: Track,
) -> None:
    """Replace the result by a network trained to answer as the float model does."""
    from dataclasses import asdict

    from luciole import api

    tuned = api.finetune(
        result,
        model,
        data.records,
        epochs=arguments.finetune or arguments.tune or arguments.qat,
        labels=data.labels if arguments.labels else None,
        labelled_output=arguments.labelled_output,
        metric=metric,
        settings=_settings(arguments, options),
        checkpoint=arguments.checkpoint,
        resume=arguments.resume,
        proof=False,
        report=console.say,
        track=track,
    )
    if _trains_levels(options):
        _enter_levels(tuned, result, model, data)
    else:
        _enter_integers(tuned, result)
    result.model = tuned.model
    result.report.finetuning = [asdict(epoch) for epoch in tuned.history]


def _trains_levels(options: Options) -> bool:
    return kind_of(options) is Kind.LEVELS


def _ways(options: Options) -> tuple[str, ...]:
    """Name the options that train what some options make."""
    from luciole.lquantizer import UniformOptions

    if _trains_levels(options):
        return _WAYS
    return _WAYS[1:] if isinstance(options, UniformOptions) and options.needs_data else ()


def _instead(ways: tuple[str, ...]) -> str:
    """Write the sentence that refuses one option of training."""
    if not ways:
        return "{}: the scheme has no thresholds that could be trained"
    return f"{{}} goes with learned levels, integers take {_with_epochs(ways)}"


def _with_epochs(ways: tuple[str, ...]) -> str:
    names = ("finetune",) if "finetune" in ways else ways or _WAYS[1:]
    return " or ".join(f"{dashed(name)} EPOCHS" for name in names)


def _check_labels(arguments: argparse.Namespace, options: Options) -> None:
    """Refuse labels that nothing is judged by or trained to, and options of labels alone."""
    trains = arguments.qat is not None or (_trains_levels(options) and is_trained(arguments))
    if not trains:
        refuse(arguments, _OF_WEIGHTS, "{} goes with --qat EPOCHS")
    if arguments.labels and not trains and not labels_judge(arguments):
        raise UsageError(f"--labels goes with {_READ_LABELS[kind_of(options)]} or --metric")
    if not arguments.labels:
        refuse(arguments, ("label_weight", "labelled_output"), "{} goes with --labels NAME")


def _check_levels(arguments: argparse.Namespace) -> None:
    if is_trained(arguments) and has_schemes(arguments):
        raise UsageError("--finetune trains learned levels beside floats: no schemes in --config")
    if arguments.resume and not arguments.checkpoint:
        raise UsageError("--resume goes with --checkpoint FILE")


def _check_trainable(model: Model, data: Data, arguments: argparse.Namespace) -> None:
    """Refuse a network that cannot be trained."""
    from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
    from luciole.lquantizer.training import check_teacher

    teacher = model.clone()
    if arguments.unroll_lstm:
        unroll_unidirseqlstm(teacher.graph)
    check_teacher(teacher, [data.records[v.name] for v in teacher.graph.inputs])


def _trains_to_labels(arguments: argparse.Namespace, options: Options, data: Data) -> bool:
    """Return whether labels are trained to: with a metric, others than class numbers only judge."""
    if not arguments.labels or not (_trains_levels(options) or arguments.qat is not None):
        return False
    is_class = data.labels is not None and data.labels.dtype.kind in "iu"
    return arguments.metric is None or is_class


def _settings(
    arguments: argparse.Namespace, options: Options
) -> FinetuneSettings | UniformSettings:
    return _of_levels(arguments) if _trains_levels(options) else _of_integers(arguments)


def _of_levels(arguments: argparse.Namespace) -> FinetuneSettings:
    from luciole.lquantizer.training import FinetuneSettings

    return FinetuneSettings(
        learning_rate=arguments.learning_rate,
        seed=arguments.seed or 0,
        shift=arguments.shift or 0,
        mirror=arguments.mirror,
        hints=(arguments.hints,) if arguments.hints else (),
    )


def _of_integers(arguments: argparse.Namespace) -> UniformSettings:
    """Read the settings of a training of integers. Raises QuantizeError for unknown ones."""
    from luciole.lquantizer.training import UniformSettings

    names = ("label_weight", "learning_rate", "gradient", "loss", "restarts", "shift")
    chosen = {name: vars(arguments)[name] for name in names if vars(arguments)[name] is not None}
    trains_weights = arguments.qat is not None
    if not trains_weights:
        chosen["label_weight"] = 0.0  # labels are for a metric alone
    rule, _, number = (arguments.ranges or "").partition(":")
    if trains_weights and rule == "moving_average":
        chosen |= {"momentum": float(number or 0.99), "delay": _DELAY, "freeze": _FREEZE}
    return UniformSettings(
        **chosen,
        seed=arguments.seed or 0,
        mirror=arguments.mirror,
        train_points=arguments.tune_weights,
        train_weights=trains_weights,
        train_biases=trains_weights or arguments.tune_biases,
    )


def _enter_levels(tuned: FinetuneResult, result: Result, model: Model, data: Data) -> None:
    """Enter into the report what the training of levels gained; layers are judged on records held
    back.
    """
    from luciole.lquantizer.network.measure import add_stage

    if not tuned.gained:
        result.report.warnings.append(f"fine-tuning {tuned.summary()}")
        return
    console.say(f"fine-tuning {tuned.summary()}")
    judges = tuned.held_back if len(tuned.held_back) else slice(None)
    unseen = {name: array[judges] for name, array in data.records.items()}
    add_stage(result.report, "fine_tuned", model, tuned.model, result.traces, unseen)


def _enter_integers(tuned: FinetuneResult, result: Result) -> None:
    """Enter into the report what the training of integers gained, and the ranges that it found."""
    line = f"training {tuned.trained:,} numbers {tuned.summary()}"
    if tuned.gained:
        console.say(line)
    else:
        result.report.warnings.append(line)
    result.rounded = None
    if result.ranges is not None:
        result.ranges = result.ranges.of_integers(tuned.model)
