"""Declare the options of ``luciole quantize`` and ``lquantizer``, and what each one goes with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from enum import Enum
from typing import Any

from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    UsageError,
    a_model,
    add_calibration,
    add_common,
    add_custom,
    add_data_bounds,
    add_metric,
    add_preprocess,
    add_strip_names,
    byte_count,
)
from luciole.tools.proving.options import add_proof

DROP = 1.0
"""Points that may be lost where nothing else is said."""


class Kind(Enum):
    """What a scheme stores numbers as, in the words of ``--help``."""

    LEVELS = "learned levels"
    INTEGERS = "integers and float16"
    MINIFLOATS = "minifloats"


class Group:
    """A group of options that go with one kind of scheme, or with all."""

    def __init__(
        self, parser: argparse.ArgumentParser, title: str, kind: Kind | None = None
    ) -> None:
        self.inner = parser.add_argument_group(title)
        self._kind = kind
        self._kinds: dict[str, Kind] = parser.get_default("kinds")

    def add(self, *names: str, **declared: Any) -> None:
        """Declare an option."""
        action = self.inner.add_argument(*names, **declared)
        if self._kind is not None:
            self._kinds[action.dest] = self._kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare all options."""
    parser.set_defaults(kinds={})
    _add_files(parser)
    _add_schemes(parser)
    _add_levels(parser)
    _add_integers(parser)
    _add_minifloats(parser)
    _add_data(parser)
    _add_training(parser)
    add_proof(parser, learns=True)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)


def check_kind(arguments: argparse.Namespace, kind: Kind) -> None:
    """Refuse options that go with another kind of scheme. Raises UsageError."""
    for name, own in arguments.kinds.items():
        if own is not kind and is_chosen(arguments, name):
            option = dashed(name)
            raise UsageError(f"{option} goes with {own.value}, the scheme is one of {kind.value}")


def refuse(arguments: argparse.Namespace, names: Sequence[str], sentence: str) -> None:
    """Refuse the first of some options that is there: a sentence names it at ``{}``. Raises
    UsageError.
    """
    for name in names:
        if is_chosen(arguments, name):
            raise UsageError(sentence.format(dashed(name)))


def is_chosen(arguments: argparse.Namespace, name: str) -> bool:
    """Return whether an option was typed: 0 is a choice, too."""
    value = vars(arguments)[name]
    return value is not None and value is not False


def dashed(name: str) -> str:
    """Spell an argument as the option that people type."""
    return "--" + name.replace("_", "-")


def _add_files(parser: argparse.ArgumentParser) -> None:
    files = Group(parser, "files")
    files.add("model", nargs="?", metavar="MODEL", help=a_model())
    files.add("--input-model", metavar="FILE", help="the same")
    files.add(
        *("-o", "--output", "--output-model"),
        type=Output,
        metavar="FILE",
        help="the file to write",
    )
    files.add(
        *("--data", "--input-data"),
        metavar="DATA",
        help="unlabelled records: ONE's HDF5, .npz[:array], .npy, a folder, a list file",
    )
    add_strip_names(files.inner)
    files.add("--report", type=Output, metavar="FILE", help="also write the report as JSON")


def _add_schemes(parser: argparse.ArgumentParser) -> None:
    """Declare the scheme of a float network, the change of a network of integers, and the
    configuration of single layers.
    """
    schemes = Group(parser, "formats of layers")
    one_of = schemes.inner.add_mutually_exclusive_group()
    one_of.add_argument(
        "--scheme",
        metavar="SCHEME",
        help="the format of layers: int:w8a8 (or int8), uint:w8a8 (uint8), int:w4a8, int:w8a16 "
        "(int16x8), int:w4a16 (all learn from --data), dynamic:int8 (dynamic), dynamic:int4, "
        "weights:int8 (weights), weights:int4, float16, even:w4a4 (evenly spaced levels), "
        "levels:w2a4, minifloat:4,4; or learned (levels of --encode-bits), mixed (1 to 8 bits, or "
        "more, layer by layer), from_fake_quant (with --data or without), minifloat. The default "
        "is int:w4a8, or learned with an option of learned levels",
    )
    one_of.add_argument(
        "--simulate",
        action="store_true",
        help="turn a network of integers into one of floats that rounds with QUANTIZE and "
        "DEQUANTIZE",
    )
    one_of.add_argument(
        "--requantize",
        metavar="TYPE",
        help="change the integers of an 8-bit network to TYPE, uint8 or int8",
    )
    schemes.add(
        "--config",
        metavar="FILE.json",
        help="schemes and bits of single layers; or a recipe of AI Edge Quantizer, or a "
        "configuration of ONE",
    )
    schemes.add("--recipe", dest="config", help=argparse.SUPPRESS)  # its old name
    schemes.add(
        "--target-drop",
        type=float,
        metavar="POINTS",
        help="the largest loss that --auto-bits, --scheme mixed and --search allow: points of the "
        f"answers that change (default {DROP:g}), with --labels of right answers, without classes "
        "percent of the variance, with --metric in its unit",
    )
    schemes.add("--seed", type=int, help="seed of all random numbers (default 0)")


def _add_levels(parser: argparse.ArgumentParser) -> None:
    levels = Group(parser, Kind.LEVELS.value, Kind.LEVELS)
    levels.add(
        "--encode-bits",
        type=_levels,
        metavar="1-4|WORD",
        help="bits of inputs and weights (default 3), or a word such as levels:w2a4 (of levels the "
        "one to begin with) or even:w4a4",
    )
    levels.add(
        "--input-bits", type=_input_bits, metavar="1-8", help="bits of inputs, where they differ"
    )
    levels.add("--weight-bits", type=_weight_bits, metavar="1-4", help="bits of weights, likewise")
    levels.add(
        "--auto-bits",
        action="store_true",
        help="choose the bits of each layer by what the network gains from them",
    )
    levels.add(
        "--target-size",
        type=byte_count,
        metavar="SIZE",
        help="with --auto-bits: the largest file, such as 60KB or 1.5MiB",
    )
    levels.add(
        "--weights-only",
        action="store_true",
        help="quantize weights alone: inputs stay float (ONE's BCQ layers)",
    )
    levels.add(
        "--uniform", action="store_true", help="evenly spaced levels: one step for each output"
    )
    _add_extent_of_levels(parser, levels)


def _add_extent_of_levels(parser: argparse.ArgumentParser, levels: Group) -> None:
    """Declare which layers get levels, what the others become, and by what method."""
    levels.add(
        "--spared",
        metavar="SCHEME",
        help="the format of layers that get no levels: float, int8, dynamic, ... (default int8; "
        "with --method published and --auto-bits float)",
    )
    levels.add(
        "--all-layers",
        action="store_true",
        help="give levels to the first convolution, too, to dense layers behind convolutions, and "
        "to the weights of depthwise and transposed convolutions",
    )
    levels.add(
        "--method",
        choices=("fit", "published"),
        help="keep each layer's output close (fit, default), or the published baseline",
    )
    levels.add(
        "--update",
        choices=("gradient", "least_squares"),
        help="published only: how bases move, by gradient steps (default) or solved at once",
    )
    levels.add(
        "--initialisation",
        choices=("random", "greedy", "uniform"),
        help="published only: first bases (default random)",
    )
    levels.add(
        "--unroll-lstm", action="store_true", help="turn LSTMs into dense layers and quantize those"
    )


def _add_numbers_of_one(integers: Group) -> None:
    integers.add(
        "--compatible",
        metavar="TOOL",
        help="one: compute the numbers of Samsung ONE's quantizer (schemes uint8, int16, weights, "
        "weights_int16; granularity channel or layer)",
    )
    integers.add(
        "--step",
        metavar="STEP",
        help="with --compatible one: run one of its three steps alone: weights (rounds them), "
        "ranges (stores min and max of tensors), or, from such a file, integers",
    )


def _add_integers(parser: argparse.ArgumentParser) -> None:
    integers = Group(parser, Kind.INTEGERS.value, Kind.INTEGERS)
    _add_numbers_of_one(integers)
    integers.add(
        "--least-bits",
        type=int,
        metavar="1-4",
        help="the fewest bits of weights that mixed gives (1; 4 in files of other programs)",
    )
    integers.add(
        "--sensitivity",
        action="store_true",
        help="write no model, but print what the network loses when one layer alone is quantized, "
        "and when all others are",
    )
    integers.add(
        "--granularity",
        help="how many scales weights have: one for each channel (default) or for the tensor",
    )
    integers.add(
        "--ranges",
        metavar="RULE",
        help="the rule that chooses the range of each tensor: mse (default), min_max, "
        "percentile[:99.99], moving_average[:0.99], record_percentile[:99], entropy",
    )
    integers.add(
        "--save-ranges",
        type=Output,
        metavar="FILE",
        help="write every tensor's range as JSON, to be edited",
    )
    integers.add(
        "--ranges-from",
        action="append",
        metavar="FILE",
        help="use ranges of such a file, or the min and max in a .circle or .tflite file; given "
        "several times, they are merged. With --rounding nearest no data are needed",
    )
    integers.add("--rounding", help="how weights are rounded: output_aware (default) or nearest")
    integers.add(
        "--rescale",
        help="how channels between two layers are rescaled: auto (default: the best of the "
        "others), none, weights, peaks, equal",
    )
    _add_ends(integers)


def _add_ends(integers: Group) -> None:
    """Declare options of tensors around zero, and of the file's inputs and outputs."""
    integers.add(
        "--symmetric",
        action="store_true",
        default=None,
        help="give tensors with positive and negative values a symmetric range, with the zero "
        "point in its middle",
    )
    integers.add(
        "--input-type", help="the type of the file's inputs: float32 (default), int8, uint8, int16"
    )
    integers.add("--output-type", help="the type of its outputs, likewise")


def _add_minifloats(parser: argparse.ArgumentParser) -> None:
    floats = Group(parser, Kind.MINIFLOATS.value, Kind.MINIFLOATS)
    floats.add("--exponent", type=int, metavar="BITS", help="bits of the exponent, 2 to 7")
    floats.add("--mantissa", type=int, metavar="BITS", help="bits of the mantissa, 0 to 16")
    text = "scale each tensor by a power of two, learned from --data"
    floats.add("--scaled", action="store_true", help=text)
    text = "round the inputs of layers alone, not the result of every operator"
    floats.add("--layers-only", action="store_true", help=text)
    text = "choose the fewest bits that lose at most --target-drop"
    floats.add("--search", action="store_true", help=text)
    floats.add(
        "--per-layer",
        action="store_true",
        help="with --search: then take bits from single layers as well",
    )


def _add_data(parser: argparse.ArgumentParser) -> None:
    data = Group(parser, "data")
    add_preprocess(data.inner)
    add_calibration(data.inner)
    data.add(
        "--labels",
        metavar="NAME",
        help="an array or FILE: class numbers that judge a choice of bits, and that --finetune and "
        "--qat train with; with --metric anything that it takes",
    )
    add_metric(data.inner)


def _add_training(parser: argparse.ArgumentParser) -> None:
    title = "training (needs the extra tensorflow; no labels needed)"
    both = Group(parser, title)
    both.add(
        "--finetune", type=int, metavar="EPOCHS", help="train the learned layers (also: --tune)"
    )
    both.add(
        "--tune", type=int, metavar="EPOCHS", help="train the thresholds of a network of integers"
    )
    both.add(
        "--qat",
        type=int,
        metavar="EPOCHS",
        help="train the weights of a network of integers as well",
    )
    both.add(
        *("--tune-data", "--finetune-data"),
        metavar="N|DATA",
        help="records to train on: the first N of --data, or others (default: all of --data)",
    )
    both.add(
        "--labelled-output",
        metavar="NAME",
        help="the output that --labels belong to, where there are several",
    )
    both.add(
        "--learning-rate",
        type=float,
        help="the learning rate (default of levels: 4e-3 to 1e-5 by their bits, lower where short "
        "trials say so; of thresholds: relative to the calibrated ones)",
    )
    both.add("--shift", type=int, metavar="PIXELS", help="move images at random by at most PIXELS")
    both.add("--mirror", action="store_true", help="mirror images left to right at random")
    _add_training_of_kinds(parser)


def _add_training_of_kinds(parser: argparse.ArgumentParser) -> None:
    """Declare options of training that go with levels alone, or with integers alone."""
    levels = Group(parser, "training of learned levels", Kind.LEVELS)
    text = "tensors (a shell pattern) that training keeps close as well"
    levels.add("--hints", metavar="PATTERN", help=text)
    levels.add(
        "--checkpoint",
        type=Output,
        metavar="FILE",
        help="a file that is written after each epoch",
    )
    levels.add("--resume", action="store_true", help="go on from the checkpoint")
    integers = Group(parser, "training of integers", Kind.INTEGERS)
    text = "--tune: train a multiplier for each weight, too"
    integers.add("--tune-weights", action="store_true", help=text)
    integers.add("--tune-biases", action="store_true", help="--tune: train biases, too")
    text = "--qat: the share of the labels in the loss (default 0.5)"
    integers.add("--label-weight", type=float, help=text)
    integers.add(
        "--gradient",
        help="which errors move thresholds: step (default: of rounding and of clipping) or clip "
        "(of clipping alone)",
    )
    integers.add(
        "--loss", help="the loss of outputs that score classes: kl (default) or rmse (of logits)"
    )
    text = "start the schedule of the learning rate N times anew"
    integers.add("--restarts", type=int, metavar="N", help=text)


def _levels(text: str) -> int | str:
    """Read a number of bits, or a word such as levels:w2a4 as it is. Raises ArgumentTypeError."""
    from luciole.lquantizer.assignment.layer_format import levels_format
    from luciole.lquantizer.errors import QuantizeError

    if text.isdecimal():
        return _weight_bits(text)
    try:
        levels_format(text)
    except QuantizeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _weight_bits(text: str) -> int:
    from luciole.ir.ops.lq_fully_connected import MAX_WEIGHT_BITS

    return _bits(text, MAX_WEIGHT_BITS)


def _input_bits(text: str) -> int:
    from luciole.ir.ops.lq_fully_connected import MAX_INPUT_BITS

    return _bits(text, MAX_INPUT_BITS)


def _bits(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text}: 1 to {most} are possible")
    return int(text)
