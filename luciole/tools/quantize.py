"""``luciole quantize``: give a model's layers fewer bits, learned levels or uniform integers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from luciole.tools.common import console
from luciole.tools.common.command import (
    DESCRIBE,
    FINE,
    UsageError,
    a_model,
    add_calibration,
    add_common,
    add_custom,
    add_data_bounds,
    add_metric,
    add_preprocess,
    add_strip_names,
    parser_for,
    run_program,
    with_dashes,
)
from luciole.tools.proving.files import show_judged, write_proved
from luciole.tools.proving.options import add_proof, asked_metric, asked_split
from luciole.tools.uniform_training import (
    add_training_arguments,
    check_training,
    is_trained,
    labels_judge,
    train,
    training_data,
)

if TYPE_CHECKING:
    from luciole.interpreter.records import Records
    from luciole.ir import Model
    from luciole.lquantizer import Result
    from luciole.lquantizer.assignment.choosing import WholeOptions
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split

LEARNED = "learned"
"""The scheme of ``lquantizer``, which has options of its own."""

MINIFLOAT = "minifloat"
"""The scheme of ``luciole.tools.minifloat``, likewise."""

_EXAMPLE = """examples:
  luciole quantize net.tflite -o q.tflite --scheme int8 --data train.npz:x_train
  luciole quantize net.tflite -o q.tflite --scheme dynamic
  luciole quantize net.tflite -o q.tflite --scheme int:w4a8 --data train.npz:x_train --tune 3
  luciole quantize net.tflite -o q.tflite --config formats.json --data train.npz:x_train
  luciole quantize net.tflite --scheme int:w4a8 --data train.npz:x_train --sensitivity
  luciole quantize q.tflite -o floats.tflite --simulate
  luciole quantize q.tflite -o u.tflite --requantize uint8
"""


def main(argv: Sequence[str] | None = None, program: str = "luciole quantize") -> int:
    """Run the program."""
    words = sys.argv[1:] if argv is None else argv
    learned = _learned(words)
    if learned == LEARNED:
        from luciole.tools import lquantizer

        return lquantizer.main(words, program, "int8")
    if learned == MINIFLOAT:
        from luciole.tools import minifloat

        return minifloat.main(words, program)
    parser = parser_for(program, __doc__ or "")
    parser.epilog = _EXAMPLE
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write")
    _add_scheme_arguments(parser)
    add_training_arguments(parser)
    add_strip_names(parser)
    add_proof(parser)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(words, parser, _run)


def _learned(words: Sequence[str]) -> str | None:
    """Name the scheme whose program has the options for some words: that of learned levels, that of
    minifloats, or None for this one, which also answers those who ask for help.
    """
    if not words or words[0] in ("-h", "--help", *DESCRIBE):
        return None
    asked = _asked(words)
    if asked.simulate or asked.requantize:
        return None
    scheme = asked.scheme
    if scheme is None:
        scheme = LEARNED if asked.config is None else _scheme_of(asked.config)
    kind = _kind(scheme)
    is_foreign = asked.compatible or (asked.config is not None and _is_foreign(asked.config))
    return None if scheme == LEARNED and is_foreign else kind


def _asked(words: Sequence[str]) -> argparse.Namespace:
    """Read the options that say what is done, whatever else there is."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for names in (("--scheme",), ("--config", "--recipe"), ("--compatible",)):
        parser.add_argument(*names, nargs="?")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--requantize", nargs="?", const=True)
    return parser.parse_known_args(with_dashes(words))[0]


def _kind(scheme: str) -> str | None:
    """Name what a scheme learns: levels, minifloats, or None for integers."""
    from luciole.lquantizer.assignment.layer_format import Levels, Minifloat
    from luciole.lquantizer.assignment.options import format_named

    format = format_named(scheme)
    if scheme == LEARNED or isinstance(format, Levels):
        return LEARNED
    return MINIFLOAT if scheme == MINIFLOAT or isinstance(format, Minifloat) else None


def _is_foreign(file: str) -> bool:
    from luciole.lquantizer.assignment.choosing import is_foreign_file

    return is_foreign_file(file)


def _scheme_of(config: str) -> str:
    """Read the scheme for the whole network from a config; faults are told by what reads it all."""
    from luciole.lquantizer import Choice, Config, QuantizeError

    try:
        return Config.of(config, Choice()).default.own_scheme or LEARNED
    except QuantizeError:
        return LEARNED


def _add_what(parser: argparse.ArgumentParser) -> None:
    """Declare what is done: integers for a float network, or a change of those that there are."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--scheme",
        metavar="SCHEME",
        help="the format of layers: int:w8a8 (or int8), uint:w8a8 (uint8), int:w4a8, int:w8a16 "
        "(int16x8), int:w4a16 (all learn from --data), dynamic:int8 (dynamic), dynamic:int4, "
        "weights:int8 (weights), weights:int4, float16, even:w4a4 (evenly spaced levels, as "
        "lquantizer --uniform), levels:w2a4; or learned (as lquantizer, the default), mixed (4 or "
        "8 bits, or more, layer by layer), from_fake_quant (with --data or without), minifloat "
        "(has options of its own: --scheme minifloat --help)",
    )
    what.add_argument(
        "--simulate",
        action="store_true",
        help="let a network of integers compute with floats between QUANTIZE and DEQUANTIZE",
    )
    what.add_argument(
        "--requantize",
        metavar="TYPE",
        help="give a network of 8-bit integers the other ones: uint8 or int8",
    )


def _add_scheme_arguments(parser: argparse.ArgumentParser) -> None:
    _add_what(parser)
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="unlabelled records: ONE's HDF5, .npz[:array], .npy, a folder, a list file",
    )
    parser.add_argument(
        "--target-drop",
        type=float,
        metavar="POINTS",
        help="with --scheme mixed: what may be lost (default 1 point of the answers that change; "
        "with --labels of right ones, without classes percent of the variance, with --metric in "
        "its unit)",
    )
    add_metric(parser)
    add_preprocess(parser)
    add_calibration(parser)
    _add_foreign_arguments(parser)
    parser.add_argument("--granularity", help="scales of weights: channel (default) or tensor")
    _add_range_arguments(parser)
    parser.add_argument("--rounding", help="of weights: output_aware (default) or nearest")
    parser.add_argument(
        "--rescale",
        help="channels between two layers: auto (default: whatever is best), none, weights, peaks, "
        "equal",
    )
    parser.add_argument(
        "--symmetric",
        action="store_true",
        default=None,
        help="tensors on both sides of 0 reach equally far on both, their zero point is in the "
        "middle",
    )
    parser.add_argument(
        "--input-type", help="of the file's inputs: float32 (default), int8, uint8, int16"
    )
    parser.add_argument("--output-type", help="of its outputs, likewise")
    parser.add_argument("--seed", type=int, help="seed of everything random (default 0)")
    parser.add_argument("--report", metavar="FILE", help="also write the report as JSON")


def _add_foreign_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compatible",
        metavar="TOOL",
        help="one: the numbers of Samsung ONE's quantizer (schemes uint8, int16, weights, "
        "weights_int16; granularity channel or layer)",
    )
    parser.add_argument(
        "--config",
        "--recipe",
        dest="config",
        metavar="FILE.json",
        help="schemes, and bits of learned levels, of single layers; or a recipe of AI Edge "
        "Quantizer or a configuration of ONE, as it is",
    )
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="write no model, but say what each layer loses: alone, and the others without it",
    )


def _add_range_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ranges",
        metavar="RULE",
        help="what tensors' integers reach: mse (default), min_max, percentile[:99.99], "
        "moving_average[:0.99], record_percentile[:99], entropy",
    )
    parser.add_argument(
        "--save-ranges", metavar="FILE", help="write every tensor's range as JSON, to be edited"
    )
    parser.add_argument(
        "--ranges-from",
        action="append",
        metavar="FILE",
        help="use ranges of such a file; given several times, they are merged. With --rounding "
        "nearest no data are needed",
    )


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api
    from luciole.files import check_writable
    from luciole.tools.common.writing import check_apart, check_output

    is_converted = arguments.simulate or arguments.requantize is not None
    options = None if is_converted else _options(arguments)
    if arguments.sensitivity == bool(arguments.output):
        raise UsageError("give a file to write (-o FILE), or --sensitivity, which writes none")
    if arguments.output:
        check_output(arguments.output)
    places = (arguments.report, arguments.save_ranges)
    check_apart((arguments.output, *places))
    check_apart(places, (arguments.model, arguments.data, arguments.config))
    for path in filter(None, places):
        check_writable(path)
    metric = asked_metric(arguments)
    model = api.load(arguments.model)
    if options is None:
        return _convert(arguments, model)
    split = _split(arguments, model)
    records = None if split is None else split.learned
    labels = None if split is None else split.labels
    if arguments.sensitivity:
        return _show_sensitivity(model, records, options, arguments)
    begun = perf_counter()
    training = None
    if is_trained(arguments) and split is not None:
        training = training_data(arguments, model, split)
    with console.tracked(arguments.json) as track:
        result = api.quantize(
            model, records, options, labels=labels, metric=metric, proof=False, track=track
        )
        if training is not None:
            train(result, model, training, metric, arguments, track)
    return _finish(result, model, split, arguments, begun, metric)


def _finish(
    result: Result,
    model: Model,
    split: Split | None,
    arguments: argparse.Namespace,
    begun: float,
    metric: Metric | None = None,
) -> int:
    """Write the file that its bytes prove, the report and the ranges, and tell people, also how
    long it took since it was ``begun``.
    """
    from luciole.files import write_file
    from luciole.ir.passes.strip_names import strip_names

    if arguments.strip_names:
        strip_names(result.model)
    judges = None if split is None else split.judges
    code = write_proved(result, model, judges, arguments.output, arguments, metric)
    result.report.seconds = perf_counter() - begun
    if arguments.report:
        write_file(arguments.report, console.to_json(result.report.to_json()))
    if arguments.save_ranges and result.ranges is not None:
        result.ranges.save(arguments.save_ranges)
    _tell(result, arguments)
    return code


_CHOICES: tuple[str, ...] = (
    "scheme",
    "compatible",
    "config",
    "granularity",
    "ranges",
    "rounding",
    "rescale",
    "symmetric",
    "input_type",
    "output_type",
    "seed",
    "ranges_from",
    "target_drop",
)
"""Arguments that ``luciole.quantize`` takes under the same names."""


def _convert(arguments: argparse.Namespace, model: Model) -> int:
    """Change a network that has integers already."""
    from luciole import lquantizer
    from luciole.quantizing import note_sizes

    _refuse_beside_conversion(arguments)
    begun = perf_counter()
    if arguments.simulate:
        result = lquantizer.simulate(model)
    else:
        result = lquantizer.requantize(model, arguments.requantize)
    note_sizes(result, model)
    return _finish(result, model, None, arguments, begun)


def _refuse_beside_conversion(arguments: argparse.Namespace) -> None:
    """Refuse what means nothing where integers are there already."""
    names = ("data", "calibration", "preprocess", "save_ranges", "tune", "qat", *_CHOICES)
    for name in names:
        if getattr(arguments, name, None) is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"--simulate and --requantize learn nothing: leave {option} out")


def _show_sensitivity(
    model: Model,
    records: Records | None,
    options: WholeOptions,
    arguments: argparse.Namespace,
) -> int:
    """Print, and write where that is asked for, what each layer loses."""
    from luciole import api
    from luciole.files import write_file
    from luciole.lquantizer import UniformOptions

    if not isinstance(options, UniformOptions):
        raise UsageError("--sensitivity is not of ONE's numbers: leave --compatible out")
    with console.tracked(arguments.json) as track:
        found = api.sensitivity(model, records, options, track=track)
    if arguments.report:
        write_file(arguments.report, console.to_json(found.to_json()))
    if arguments.json:
        console.print_json(found.to_json())
        return FINE
    title = "signal/noise of the output, and answers that stay, with integers in"
    console.print_table(console.fitted(found.rows()), title)
    for line in found.lines():
        console.show(line)
    return FINE


def _options(arguments: argparse.Namespace) -> WholeOptions:
    """Read the options. Raises QuantizeError for what there is not, UsageError for missing data."""
    from luciole.lquantizer.assignment.choosing import options_for_network

    given = {name: getattr(arguments, name) for name in _CHOICES}
    options = options_for_network(_with_scheme(given))
    learning = _learning(options)
    if learning is not None and arguments.data is None:
        raise UsageError(f"--scheme {learning} learns from data: give --data")
    takes_data = options.takes_data or learning is not None
    if arguments.save_ranges and not takes_data:
        raise UsageError(f"--scheme {options.scheme} has no ranges: leave --save_ranges out")
    check_training(arguments)
    if is_trained(arguments) and not options.needs_data:
        raise UsageError(f"--scheme {options.scheme} has no thresholds that could be trained")
    return options


def _with_scheme(given: dict[str, Any]) -> dict[str, Any]:
    """Let a config say the scheme of the whole network where the command does not."""
    file = given["config"]
    if file is None or given["scheme"] is not None or given["compatible"] or _is_foreign(file):
        return given
    found = _scheme_of(file)
    return {**given, "scheme": found if found != LEARNED else "int8"}


def _learning(options: WholeOptions) -> str | None:
    """Name a scheme that needs data."""
    from luciole.lquantizer import Choice, Config, UniformOptions
    from luciole.lquantizer.assignment.schemes import learns

    others: set[str] = set()
    if isinstance(options, UniformOptions):
        others = Config.of(options.config, Choice()).schemes
        if options.does_without_data:
            others.discard(options.scheme)
    found = {*filter(learns, others), *([options.scheme] if options.needs_data else [])}
    return min(found, default=None)


def _split(arguments: argparse.Namespace, model: Model) -> Split | None:
    """Read the records that teach, and those that judge the file; None without data."""
    if arguments.data is None:
        return None
    labels = arguments.labels if labels_judge(arguments) else None
    return asked_split(arguments, model.graph, arguments.data, labels)


def _tell(result: Result, arguments: argparse.Namespace) -> None:
    report = result.report
    for warning in report.warnings:
        console.say(f"luciole: warning: {warning}")
    if arguments.json:
        console.print_json(report.to_json())
        return
    if report.layers:
        title = "signal/noise of each layer's output in dB"
        console.print_table(console.fitted(report.rows()), title)
    for rule in report.rules:
        console.show(rule)
    if report.floats:
        console.show(f"computed with floats: {'; '.join(report.floats)}")
    if not show_judged(report):
        return
    before, after = console.size_text(report.bytes_before), console.size_text(report.bytes_after)
    console.show(f"{arguments.output}: {before} -> {after} in {report.seconds:.1f} s")
