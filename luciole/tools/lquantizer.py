"""``lquantizer``: learn 1 to 4 bit levels for a model's layers from unlabelled data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from luciole.tools.common import console
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
    parser_for,
    run_program,
)
from luciole.tools.proving.files import show_judged, write_proved
from luciole.tools.proving.options import add_proof, asked_metric, asked_split, asked_training

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Model
    from luciole.lquantizer import Report, Result
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split
    from luciole.lquantizer.training import FinetuneResult
    from luciole.tools.data import Data

_EXAMPLE = """example:
  lquantizer --input_model model.circle --output_model answer.circle \\
             --input_data train.hdf5 --encode_bits 3
"""
_LONGEST_NAME = 48
"""Characters of the name of a layer that was left alone: converters write names of hundreds."""
_DROP = 1.0
"""Points that ``--auto_bits`` alone allows."""
_MOST_NAMES = 5
"""Operators with float constants that are named."""


def main(
    argv: Sequence[str] | None = None, program: str = "lquantizer", spared: str = "float"
) -> int:
    """Run the program; layers without learned levels become what is ``spared`` unless ``--spared``
    says otherwise.
    """
    parser = parser_for(program, __doc__ or "")
    parser.epilog = _EXAMPLE
    needed = parser.add_argument_group("files")
    needed.add_argument("model", nargs="?", metavar="MODEL", help=a_model())
    needed.add_argument("--input-model", metavar="FILE", help="the same")
    needed.add_argument(
        *("--output-model", "--output", "-o"),
        required=True,
        metavar="FILE",
        help="the .circle file to write",
    )
    needed.add_argument(
        *("--input-data", "--data"),
        required=True,
        metavar="DATA",
        help="unlabelled records: ONE's HDF5, .npz[:array], .npy, a folder, a list file",
    )
    add_strip_names(needed)
    needed.add_argument("--report", metavar="FILE", help="also write the report as JSON")
    _add_width_arguments(parser, spared)
    _add_fit_arguments(parser)
    _add_finetune_arguments(parser)
    add_proof(parser)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_width_arguments(parser: argparse.ArgumentParser, spared: str) -> None:
    widths = parser.add_argument_group("widths")
    widths.add_argument(
        "--scheme", metavar="SCHEME", help="learned (default), or a word such as even:w4a4"
    )
    widths.add_argument(
        "--encode-bits",
        metavar="1-4",
        help="bits of inputs and weights (default 3), or a word such as levels:w2a4 (recommended) "
        "or even:w4a4",
    )
    widths.add_argument(
        "--input-bits", type=int, metavar="1-8", help="bits of inputs, where they differ"
    )
    widths.add_argument(
        "--weight-bits", type=int, metavar="1-4", help="bits of weights, where they differ"
    )
    widths.add_argument(
        "--auto-bits", action="store_true", help="as many bits for each layer as pay"
    )
    widths.add_argument(
        "--target-size",
        type=byte_count,
        metavar="SIZE",
        help="with --auto_bits: the largest file, such as 60KB or 1.5MiB",
    )
    widths.add_argument(
        "--target-drop",
        type=float,
        metavar="POINTS",
        help=f"with --auto_bits: what may be lost (default {_DROP:g} point of the answers that "
        "change; with --labels of right ones, without classes percent of the variance, with "
        "--metric in its unit)",
    )
    widths.add_argument(
        "--weights-only", action="store_true", help="float inputs, written as ONE's BCQ layers"
    )
    widths.add_argument(
        "--uniform", action="store_true", help="evenly spaced levels: one step for each output"
    )
    _add_layer_arguments(widths, spared)


def _add_layer_arguments(widths: argparse._ArgumentGroup, spared: str) -> None:
    widths.add_argument(
        "--config", metavar="FILE.json", help="settings for single layers: bits, scheme or skip"
    )
    widths.add_argument(
        "--spared",
        default=spared,
        metavar="SCHEME",
        help=f"what layers become that get no levels: float, int8, dynamic, ... (default {spared})",
    )
    widths.add_argument(
        "--all-layers",
        action="store_true",
        help="also the first convolution, dense layers behind convolutions, and the weights of "
        "depthwise and transposed ones",
    )
    widths.add_argument("--recipe", dest="config", help=argparse.SUPPRESS)  # its old name


def _add_fit_arguments(parser: argparse.ArgumentParser) -> None:
    fit = parser.add_argument_group("data and fit")
    add_preprocess(fit)
    add_calibration(fit)
    fit.add_argument(
        "--labels",
        metavar="NAME",
        help="an array or FILE: class numbers to judge --auto_bits by and to fine-tune with, "
        "anything for --metric",
    )
    add_metric(fit)
    fit.add_argument(
        "--method",
        choices=("fit", "published"),
        default="fit",
        help="keep each layer's output close (default), or the published baseline",
    )
    fit.add_argument(
        "--update",
        choices=("gradient", "least_squares"),
        help="published only: how bases move, by gradient steps (default) or solved at once",
    )
    fit.add_argument(
        "--initialisation",
        choices=("random", "greedy", "uniform"),
        help="published only: first bases (default random)",
    )
    fit.add_argument(
        "--unroll-lstm", action="store_true", help="turn LSTMs into dense layers and quantize those"
    )
    fit.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")


def _add_finetune_arguments(parser: argparse.ArgumentParser) -> None:
    tune = parser.add_argument_group("fine-tuning (needs the extra tensorflow; no labels needed)")
    tune.add_argument(
        *("--finetune", "--tune", "--qat"),
        type=int,
        metavar="EPOCHS",
        help="train the learned layers",
    )
    tune.add_argument(
        *("--finetune-data", "--tune-data"),
        metavar="N|DATA",
        help="records to train on: the first N of the input data, or others (default: all of it)",
    )
    tune.add_argument(
        "--labelled-output", metavar="NAME", help="of several outputs, the one that --labels are of"
    )
    tune.add_argument(
        "--learning-rate",
        type=float,
        help="default: by bits, 4e-3 down to 1e-5, and lower where short trials say so",
    )
    tune.add_argument(
        "--hints", metavar="PATTERN", help="tensors that shall be alike too, by shell pattern"
    )
    tune.add_argument(
        "--shift", type=int, default=0, metavar="PIXELS", help="move images at random, at most"
    )
    tune.add_argument("--mirror", action="store_true", help="turn images left to right at random")
    tune.add_argument("--checkpoint", metavar="FILE", help="written after each epoch")
    tune.add_argument("--resume", action="store_true", help="go on from the checkpoint")


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api
    from luciole.files import write_file
    from luciole.ir.passes.strip_names import strip_names

    _check(arguments)
    metric = asked_metric(arguments)
    model = api.load(arguments.input_model)
    labels = arguments.labels if _labels_judge(arguments) else None
    split = asked_split(arguments, model.graph, arguments.input_data, labels)
    begun = perf_counter()
    training = _training_data(arguments, model, split) if arguments.finetune else None
    with console.tracked(arguments.json) as track:
        result = _quantized(model, split, metric, arguments, track)
        if training is not None:
            tuned = _tuned(model, training, result, metric, arguments, track)
            _enter(tuned, result, model, training)
        result = _with_spared(result, model, split, arguments, track)
    if arguments.strip_names:
        strip_names(result.model)
    code = write_proved(result, model, split.judges, arguments.output_model, arguments, metric)
    result.report.seconds = perf_counter() - begun
    if arguments.report:
        write_file(arguments.report, console.to_json(result.report.to_json()))
    _tell(result, arguments)
    return code


def _quantized(
    model: Model,
    split: Split,
    metric: Metric | None,
    arguments: argparse.Namespace,
    track: Track,
) -> Result:
    """Learn levels as the options say."""
    from luciole import api
    from luciole.lquantizer import Settings

    published = Settings(
        arguments.update or "gradient", arguments.initialisation or "random", seed=arguments.seed
    )
    return api.quantize(
        model,
        split.learned,
        labels=split.labels,
        metric=metric,
        encode_bits=_encode_bits(arguments.encode_bits),
        input_bits=arguments.input_bits,
        weight_bits=arguments.weight_bits,
        config=arguments.config,
        spared=arguments.spared if _has_schemes(arguments) else None,
        method=arguments.method,
        all_layers=arguments.all_layers,
        weights_only=arguments.weights_only,
        uniform=arguments.uniform,
        unroll_lstms=arguments.unroll_lstm,
        target_size=arguments.target_size,
        target_drop=_target_drop(arguments),
        levels_only=bool(arguments.auto_bits and arguments.finetune),
        settings=published if arguments.method == "published" else None,
        seed=arguments.seed,
        proof=False,
        track=track,
    )


def _labels_judge(arguments: argparse.Namespace) -> bool:
    """Return whether something is judged that labels would count for: a metric, or a target."""
    return arguments.metric is not None or (arguments.auto_bits and arguments.target_size is None)


def _encode_bits(text: str | None) -> int | str:
    """Read ``--encode_bits``: a number, or a word such as levels:w2a4 as it is."""
    if text is None:
        return 3
    return int(text) if text.isdecimal() else text


def _has_schemes(arguments: argparse.Namespace) -> bool:
    """Tell whether a config chooses schemes for single layers."""
    from luciole.lquantizer import Choice, Config

    return bool(Config.of(arguments.config, Choice()).schemes)


def _with_spared(
    result: Result, model: Model, split: Split, arguments: argparse.Namespace, track: Track
) -> Result:
    """Let layers without levels be what they are to be: after a fine-tuning, which needs floats."""
    from luciole.lquantizer import FitOptions, with_integers

    fit = FitOptions(config=arguments.config, spared=arguments.spared, seed=arguments.seed)
    if arguments.spared == "float" or _has_schemes(arguments):
        return result
    return with_integers(result, model, split.learned, fit, track)


def _target_drop(arguments: argparse.Namespace) -> float | None:
    """Read how many answers may change, where that decides widths."""
    if arguments.auto_bits and arguments.target_size is None and arguments.target_drop is None:
        return None if arguments.metric else _DROP
    drop: float | None = arguments.target_drop
    return drop


def _training_data(arguments: argparse.Namespace, model: Model, split: Split) -> Data:
    """Read all records to fine-tune on, where these are others than levels were learned from, but
    those that judge the file; refuse a network and labels that nothing can be trained by before the
    work of fitting it.
    """
    from luciole.lquantizer.training.labels import Labels
    from luciole.tools.data import Data
    from luciole.tools.uniform_training import may_train

    data = Data(dict(split.learned))
    if arguments.finetune_data or arguments.labels or arguments.calibration:
        data = asked_training(arguments, model.graph, split, "finetune_data", "fine-tuning")
    if arguments.labels and data.labels is not None and may_train(data.labels, arguments):
        Labels.of(model, data.records, data.labels, arguments.labelled_output)
    _check_trainable(model, data, arguments)
    return data


def _check_trainable(model: Model, data: Data, arguments: argparse.Namespace) -> None:
    """Refuse a network that cannot be trained."""
    from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
    from luciole.lquantizer.training import check_teacher

    teacher = model.clone()
    if arguments.unroll_lstm:
        unroll_unidirseqlstm(teacher.graph)
    check_teacher(teacher, [data.records[v.name] for v in teacher.graph.inputs])


def _tuned(
    model: Model,
    data: Data,
    result: Result,
    metric: Metric | None,
    arguments: argparse.Namespace,
    track: Track,
) -> FinetuneResult:
    """Fine-tune the quantized model as the options say."""
    from luciole import api
    from luciole.lquantizer.training import FinetuneSettings

    settings = FinetuneSettings(
        learning_rate=arguments.learning_rate,
        seed=arguments.seed,
        shift=arguments.shift,
        mirror=arguments.mirror,
        hints=(arguments.hints,) if arguments.hints else (),
    )
    return api.finetune(
        result,
        model,
        data.records,
        epochs=arguments.finetune,
        labels=data.labels if arguments.labels else None,
        labelled_output=arguments.labelled_output,
        metric=metric,
        settings=settings,
        checkpoint=arguments.checkpoint,
        resume=arguments.resume,
        proof=False,
        report=console.say,
        track=track,
    )


def _enter(tuned: FinetuneResult, result: Result, model: Model, data: Data) -> None:
    """Let the result be the fine-tuned model; layers are judged on records held back."""
    from dataclasses import asdict

    from luciole.lquantizer.network.measure import add_stage

    if tuned.gained:
        console.say(f"fine-tuning {tuned.summary()}")
        judges = tuned.held_back if len(tuned.held_back) else slice(None)
        unseen = {name: array[judges] for name, array in data.records.items()}
        add_stage(result.report, "fine_tuned", model, tuned.model, result.traces, unseen)
    else:
        result.report.warnings.append(f"fine-tuning {tuned.summary()}")
    result.model = tuned.model
    result.report.finetuning = [asdict(epoch) for epoch in tuned.history]


def _check(arguments: argparse.Namespace) -> None:
    """Refuse early what would be refused after long work."""
    from luciole.files import check_writable

    _take_model(arguments)
    _take_scheme(arguments)
    _check_widths(arguments)
    _check_targets(arguments)
    _check_finetuning(arguments)
    if arguments.method == "published" and (arguments.weights_only or arguments.unroll_lstm):
        raise UsageError("--weights_only and --unroll_lstm go with --method fit")
    if arguments.method == "published" and arguments.uniform:
        raise UsageError("--uniform goes with --method fit")
    if arguments.method == "fit" and (arguments.update or arguments.initialisation):
        raise UsageError("--update and --initialisation go with --method published")
    _check_output(arguments.output_model)
    for path in filter(None, (arguments.report, arguments.checkpoint)):
        check_writable(path)


def _take_model(arguments: argparse.Namespace) -> None:
    """Let the model have one name, in whichever way it was given."""
    named = [name for name in (arguments.model, arguments.input_model) if name is not None]
    if len(named) != 1:
        raise UsageError("give one model to quantize: MODEL or --input_model FILE")
    arguments.input_model = named[0]


def _take_scheme(arguments: argparse.Namespace) -> None:
    """Let a scheme that is a word of levels, or a pair, stand for widths that nobody gave."""
    from luciole.lquantizer.assignment.layer_format import Levels
    from luciole.lquantizer.assignment.options import format_named, level_choices

    scheme = arguments.scheme
    if scheme in (None, "learned"):
        return
    format = format_named(scheme)
    if not isinstance(format, Levels):
        raise UsageError(f"--scheme {scheme}: these are no levels, luciole quantize has the others")
    choices = level_choices(scheme, format)
    arguments.encode_bits = arguments.encode_bits or choices["encode_bits"]
    arguments.uniform |= "uniform" in choices


def _check_widths(arguments: argparse.Namespace) -> None:
    from luciole.ir.ops.lq_fully_connected import MAX_INPUT_BITS, MAX_WEIGHT_BITS

    most = {
        "encode_bits": MAX_WEIGHT_BITS,
        "input_bits": MAX_INPUT_BITS,
        "weight_bits": MAX_WEIGHT_BITS,
    }
    for name, largest in most.items():
        bits = vars(arguments)[name]
        if name == "encode_bits" and not str(bits or "").isdecimal():
            _check_pair(bits)
        elif bits is not None and not 1 <= int(bits) <= largest:
            raise UsageError(f"--{name} is {bits}: 1 to {largest} are possible")


def _check_pair(text: str | None) -> None:
    """Refuse what is no word of learned levels."""
    from luciole.lquantizer.assignment.layer_format import levels_format
    from luciole.lquantizer.errors import QuantizeError

    try:
        levels_format(3 if text is None else text)
    except QuantizeError as error:
        raise UsageError(f"--encode_bits {text}: {error}") from None


def _check_targets(arguments: argparse.Namespace) -> None:
    targets = [arguments.target_size, arguments.target_drop]
    if targets.count(None) < (1 if arguments.auto_bits else 2):
        raise UsageError("--auto_bits goes with one of --target_size SIZE and --target_drop POINTS")
    if arguments.auto_bits and arguments.metric and targets.count(None) == 2:
        raise UsageError("--metric has a unit of its own: give --target-drop in it")
    if arguments.auto_bits and (arguments.method != "fit" or arguments.weights_only):
        raise UsageError("--auto_bits goes with --method fit and learned inputs")
    widths = [n for n in ("encode_bits", "input_bits", "weight_bits") if vars(arguments)[n]]
    if arguments.auto_bits and widths:
        raise UsageError(f"--auto_bits finds the widths: --{widths[0]} does not go with it")


def _check_finetuning(arguments: argparse.Namespace) -> None:
    if arguments.finetune is not None and _has_schemes(arguments):
        raise UsageError("--finetune trains learned levels beside floats: no schemes in --config")
    if arguments.finetune is not None and arguments.finetune < 1:
        raise UsageError(f"--finetune is {arguments.finetune}: at least 1 epoch is needed")
    training = ("finetune_data", "labelled_output", "learning_rate", "hints", "shift")
    options = (*training, "mirror", "checkpoint", "resume")
    given = [name for name in options if vars(arguments)[name]]
    if arguments.finetune is None and given:
        raise UsageError(f"--{given[0]} goes with --finetune EPOCHS")
    if arguments.labels and arguments.finetune is None and not _labels_judge(arguments):
        raise UsageError("--labels goes with --finetune EPOCHS, --auto_bits or --metric")
    if arguments.resume and not arguments.checkpoint:
        raise UsageError("--resume goes with --checkpoint FILE")


def _check_output(path: str) -> None:
    """Refuse early what would be refused after the fit."""
    from luciole.tools.common.writing import check_output

    if check_output(path) != "circle":
        raise UsageError(f"{path}: only .circle holds layers with learned levels")


def _tell(result: Result, arguments: argparse.Namespace) -> None:
    report = result.report
    for warning in report.warnings:
        console.say(f"luciole: warning: {warning}")
    if arguments.json:
        console.print_json(report.to_json())
        return
    if report.options:
        console.print_table(
            console.fitted(_option_rows(report)),
            "what each layer alone loses under each option, and the bytes it adds",
        )
    title = "signal/noise of each layer's output in dB"
    console.print_table(console.fitted(report.rows()), title)
    for why, names in report.left_alone().items():
        shown = [console.shortened(name, _LONGEST_NAME) for name in names]
        console.show(f"left alone, {why}: {', '.join(shown)}")
    console.show(_float_line(report))
    if not show_judged(report):
        return
    before, after = console.size_text(report.bytes_before), console.size_text(report.bytes_after)
    console.show(f"{arguments.output_model}: {before} -> {after} in {report.seconds:.1f} s")


def _float_line(report: Report) -> str:
    """Say what stays float, the largest by name, and how many of the file's bytes that is."""
    from luciole.ir.names import short_names

    left = report.stays_float
    if not left:
        return "stays float: nothing"
    total, file = sum(left.values()), report.bytes_after
    short = short_names({*left, *(layer.name for layer in report.layers)})
    shown = [f"{short[n]} {console.size_text(left[n])}" for n in list(left)[:_MOST_NAMES]]
    rest = list(left.values())[_MOST_NAMES:]
    more = [f"{len(rest)} more {console.size_text(sum(rest))}"] if rest else []
    return (
        f"stays float: {console.size_text(total)} of the file's {console.size_text(file)} "
        f"({100 * total / max(file, 1):.0f} %): {', '.join(shown + more)}"
    )


def _option_rows(report: Report) -> list[tuple[str, ...]]:
    short = {layer.name: layer.short for layer in report.layers}
    rows = [
        (short[str(o["layer"])], str(o["option"]), f"{o['bytes']:,}", f"{o['error']:.3g}")
        for o in report.options
    ]
    return [("layer", "option", "bytes", "loss"), *rows]
