"""``luciole quantize --tune`` and ``--qat``: train a network of uniform integers on its way to the
file.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import UsageError
from luciole.tools.proving.options import asked_training

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Array, Model
    from luciole.lquantizer import Result
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split
    from luciole.lquantizer.training import UniformSettings
    from luciole.tools.data.load import Data

_DELAY, _FREEZE = 0.1, 0.7
"""Shares of the steps of ``--qat`` before tensors are rounded, and until ranges follow batches."""
_OF_WEIGHTS = ("labels", "labelled_output", "label_weight")
_OF_THRESHOLDS = ("tune_weights", "tune_biases")
_OF_BOTH = ("tune_data", "learning_rate", "gradient", "loss", "restarts", "shift", "mirror")


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--tune``, ``--qat`` and the options that go with them."""
    group = parser.add_argument_group("training (needs the extra tensorflow)")
    group.add_argument(
        "--tune", type=int, metavar="EPOCHS", help="train thresholds alone; no labels needed"
    )
    group.add_argument(
        "--qat", type=int, metavar="EPOCHS", help="train weights too, with --labels if given"
    )
    group.add_argument(
        "--tune-data",
        metavar="N|DATA",
        help="records to train on: the first N of --data, or others (default: all of --data)",
    )
    group.add_argument(
        "--tune-weights", action="store_true", help="--tune: a multiplier for each weight, too"
    )
    group.add_argument("--tune-biases", action="store_true", help="--tune: biases, too")
    group.add_argument(
        "--labels",
        metavar="NAME",
        help="an array or FILE: class numbers for --qat and --scheme mixed, anything for --metric",
    )
    group.add_argument(
        "--labelled-output", metavar="NAME", help="of several outputs, the one that --labels are of"
    )
    group.add_argument("--label-weight", type=float, help="--qat: their share (default 0.5)")
    group.add_argument(
        "--learning-rate", type=float, help="of thresholds, in units of the calibrated ones"
    )
    group.add_argument(
        "--gradient",
        help="what moves thresholds: step (default: rounding, too) or clip (what is cut off alone)",
    )
    group.add_argument("--loss", help="of classes: kl (default) or rmse (of logits)")
    group.add_argument(
        "--restarts", type=int, metavar="N", help="begin N times anew with the full learning rate"
    )
    group.add_argument("--shift", type=int, metavar="PIXELS", help="move images at random, at most")
    group.add_argument("--mirror", action="store_true", help="turn images left to right at random")


def check_training(arguments: argparse.Namespace) -> None:
    """Refuse early the arguments that would be refused after the calibration. Raises UsageError,
    QuantizeError for unknown choices.
    """
    for name in ("tune", "qat"):
        epochs = vars(arguments)[name]
        if epochs is not None and epochs < 1:
            raise UsageError(f"--{name} is {epochs}: at least 1 epoch is needed")
    if arguments.tune is not None and arguments.qat is not None:
        raise UsageError("--tune and --qat do not go together: train in one of the two ways")
    for name in _OF_WEIGHTS:
        may_be = arguments.qat is not None or (name == "labels" and labels_judge(arguments))
        if vars(arguments)[name] and not may_be:
            raise UsageError(f"--{name} goes with --qat EPOCHS")
    for name in _OF_THRESHOLDS:
        if arguments.tune is None and vars(arguments)[name]:
            raise UsageError(f"--{name} goes with --tune EPOCHS: --qat trains all")
    for name in _OF_BOTH:
        if vars(arguments)[name] and not is_trained(arguments):
            raise UsageError(f"--{name} goes with --tune EPOCHS or --qat EPOCHS")
    for name in ("labelled_output", "label_weight"):
        if vars(arguments)[name] is not None and not arguments.labels:
            raise UsageError(f"--{name} goes with --labels NAME")
    settings(arguments)


def labels_judge(arguments: argparse.Namespace) -> bool:
    """Return whether something is judged that labels would count for: a metric, or a target."""
    return arguments.metric is not None or arguments.scheme == "mixed"


def is_trained(arguments: argparse.Namespace) -> bool:
    """Return whether the network is to be trained."""
    return arguments.tune is not None or arguments.qat is not None


def settings(arguments: argparse.Namespace) -> UniformSettings:
    """Read the settings of a training. Raises QuantizeError for unknown ones."""
    from luciole.lquantizer.training import UniformSettings

    names = ("label_weight", "learning_rate", "gradient", "loss", "restarts", "shift")
    chosen = {name: vars(arguments)[name] for name in names if vars(arguments)[name] is not None}
    whole = arguments.qat is not None
    if not whole:
        chosen["label_weight"] = 0.0  # labels are for a metric alone
    rule, _, number = (arguments.ranges or "").partition(":")
    if whole and rule == "moving_average":
        chosen |= {"momentum": float(number or 0.99), "delay": _DELAY, "freeze": _FREEZE}
    return UniformSettings(
        **chosen,
        seed=arguments.seed or 0,
        mirror=arguments.mirror,
        train_points=arguments.tune_weights,
        train_weights=whole,
        train_biases=whole or arguments.tune_biases,
    )


def training_data(arguments: argparse.Namespace, model: Model, split: Split) -> Data:
    """Read the records to train on, with labels where these are asked for, except records that
    judge the file. Raises QuantizeError for labels that the network cannot be trained to.
    """
    from luciole.lquantizer.training.labels import Labels

    data = asked_training(arguments, model.graph, split, "tune_data", "training")
    is_trained_to = arguments.qat is not None and arguments.labels is not None
    if is_trained_to and data.labels is not None and may_train(data.labels, arguments):
        Labels.of(model, data.records, data.labels, arguments.labelled_output)
    return data


def may_train(labels: Array, arguments: argparse.Namespace) -> bool:
    """Return whether labels are trained to: with a metric, others than class numbers only judge."""
    return arguments.metric is None or labels.dtype.kind in "iu"


def train(
    result: Result,
    model: Model,
    data: Data,
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
        epochs=arguments.tune or arguments.qat,
        labels=data.labels if arguments.labels else None,
        labelled_output=arguments.labelled_output,
        metric=metric,
        settings=settings(arguments),
        proof=False,
        report=console.say,
        track=track,
    )
    line = f"training {tuned.trained:,} numbers {tuned.summary()}"
    if tuned.gained:
        console.say(line)
    else:
        result.report.warnings.append(line)
    result.model = tuned.model
    result.rounded = None
    if result.ranges is not None:
        result.ranges = result.ranges.of_integers(tuned.model)
    result.report.finetuning = [asdict(epoch) for epoch in tuned.history]
