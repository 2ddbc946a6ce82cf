"""Run ``luciole quantize`` and ``lquantizer``: quantize a model file, and prove what is written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import (
    FINE,
    UsageError,
    check_without_data,
    parser_for,
    run_program,
)
from luciole.tools.proving.files import write_proved
from luciole.tools.proving.options import asked_metric, asked_split, check_proof
from luciole.tools.quantizing.arguments import Kind, add_arguments
from luciole.tools.quantizing.choices import (
    asked_options,
    check_conversion,
    check_sensitivity,
    has_schemes,
    kind_of,
    labels_judge,
    spared_scheme,
)
from luciole.tools.quantizing.shown import show
from luciole.tools.quantizing.training import check_training, is_trained, train, training_data

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Model
    from luciole.lquantizer import Result
    from luciole.lquantizer.assignment.choosing import Options
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split


def quantizer(argv: Sequence[str] | None, program: str, description: str, examples: str) -> int:
    """Run the program."""
    parser = parser_for(program, description)
    parser.epilog = examples
    add_arguments(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api
    from luciole.quantizing import model_for

    _take_model(arguments)
    check_proof(arguments)
    is_converted = arguments.simulate or arguments.requantize is not None
    if is_converted:
        check_conversion(arguments)
    options = None if is_converted else _options(arguments)
    _check_files(arguments, options)
    metric = asked_metric(arguments)
    model = api.load(arguments.model)
    if options is None:
        return _convert(arguments, model)
    split = _split(arguments, model)
    if arguments.sensitivity:
        return _show_sensitivity(model, split, options, arguments)
    begun = perf_counter()
    result = _quantized(model_for(options, model), split, options, metric, arguments)
    return _finish(result, kind_of(options), model, split, arguments, begun, metric)


def _options(arguments: argparse.Namespace) -> Options:
    """Read the options, and refuse early what would be refused after long work."""
    if arguments.sensitivity:
        check_sensitivity(arguments)
    options = asked_options(arguments)
    check_training(arguments, options)
    if arguments.data is None and arguments.tune_data is None:
        check_without_data(arguments, "preprocess", "calibration")
    return options


def _take_model(arguments: argparse.Namespace) -> None:
    """Store the model's path under one name, whichever option has it."""
    named = [name for name in (arguments.model, arguments.input_model) if name is not None]
    if len(named) != 1:
        raise UsageError("give one model to quantize: MODEL or --input-model FILE")
    arguments.model, arguments.input_model = named[0], None


def _check_files(arguments: argparse.Namespace, options: Options | None) -> None:
    """Refuse files that cannot be written, or that hold no layers of the scheme."""
    from luciole.files import check_writable
    from luciole.tools.common.writing import check_output

    if arguments.sensitivity == bool(arguments.output):
        raise UsageError("give a file to write (-o FILE), or --sensitivity, which writes none")
    kind = None if options is None else kind_of(options)
    if arguments.output:
        format = check_output(arguments.output)
        if kind is Kind.LEVELS and format != "circle":
            raise UsageError(f"{arguments.output}: only .circle holds layers with learned levels")
        if kind is Kind.MINIFLOATS and format == "onnx":
            raise UsageError(f"{arguments.output}: ONNX has no minifloats: .circle and .tflite do")
    places = (arguments.report, arguments.save_ranges, arguments.checkpoint)
    for path in filter(None, places):
        check_writable(path)


def _split(arguments: argparse.Namespace, model: Model) -> Split | None:
    """Read the records that teach, and those that judge the file; None without data."""
    if arguments.data is None:
        return None
    labels = arguments.labels if labels_judge(arguments) else None
    return asked_split(arguments, model.graph, arguments.data, labels)


def _quantized(
    model: Model,
    split: Split | None,
    options: Options,
    metric: Metric | None,
    arguments: argparse.Namespace,
) -> Result:
    """Quantize the model, train it where that is asked for, and then let layers without levels be
    what they are to be: a training of levels needs floats beside them.
    """
    from luciole import api
    from luciole.lquantizer import MinifloatOptions

    training = None
    if is_trained(arguments) and split is not None:
        training = training_data(arguments, model, split, options)
    only_judges = isinstance(options, MinifloatOptions) and not options.needs_data
    used = None if only_judges else split
    records = None if used is None else used.learned
    labels = None if used is None else used.labels
    with console.tracked(arguments.json) as track:
        result = api.quantize(
            model, records, options, labels=labels, metric=metric, proof=False, track=track
        )
        if training is not None:
            train(result, model, training, options, metric, arguments, track)
        return _with_spared(result, model, split, options, arguments, track)


def _with_spared(
    result: Result,
    model: Model,
    split: Split | None,
    options: Options,
    arguments: argparse.Namespace,
    track: Track,
) -> Result:
    from luciole.lquantizer import FitOptions, QuantizeOptions, with_integers

    if not isinstance(options, QuantizeOptions) or split is None:
        return result
    spared = spared_scheme(arguments)
    if spared == "float" or has_schemes(arguments):
        return result
    fit = FitOptions(config=options.config, spared=spared, seed=options.seed)
    return with_integers(result, model, split.learned, fit, track)


def _finish(
    result: Result,
    kind: Kind | None,
    model: Model,
    split: Split | None,
    arguments: argparse.Namespace,
    begun: float,
    metric: Metric | None = None,
) -> int:
    """Write the file that its bytes prove, the report and the ranges, and tell people, also how
    long it took since it was ``begun``.
    """
    from luciole.comparing import enter_smaller_and_closer
    from luciole.files import write_file
    from luciole.ir.passes.strip_names import strip_names

    if arguments.strip_names:
        strip_names(result.model)
    judges = None if split is None else split.judges
    code = write_proved(result, model, judges, arguments.output, arguments, metric)
    if split is not None:
        names = arguments.strip_names
        enter_smaller_and_closer(result, model, split.learned, split.judges, metric, strips=names)
    result.report.seconds = perf_counter() - begun
    if arguments.report:
        write_file(arguments.report, console.to_json(result.report.to_json()))
    if arguments.save_ranges and result.ranges is not None:
        result.ranges.save(arguments.save_ranges)
    show(result.report, kind, arguments.output, arguments.json)
    return code


def _convert(arguments: argparse.Namespace, model: Model) -> int:
    """Change a network that has integers already."""
    from luciole import lquantizer
    from luciole.quantizing import note_sizes

    begun = perf_counter()
    if arguments.simulate:
        result = lquantizer.simulate(model)
    else:
        result = lquantizer.requantize(model, arguments.requantize)
    note_sizes(result, model)
    return _finish(result, None, model, None, arguments, begun)


def _show_sensitivity(
    model: Model, split: Split | None, options: Options, arguments: argparse.Namespace
) -> int:
    """Print, and write where that is asked for, what each layer loses."""
    from luciole import api
    from luciole.files import write_file
    from luciole.lquantizer import UniformOptions
    from luciole.lquantizer.search.sensitivity import TITLE

    assert isinstance(options, UniformOptions), "check_sensitivity refuses the others"
    records = None if split is None else split.learned
    with console.tracked(arguments.json) as track:
        losses = api.sensitivity(model, records, options, track=track)
    if arguments.report:
        write_file(arguments.report, console.to_json(losses.to_json()))
    if arguments.json:
        console.print_json(losses.to_json())
        return FINE
    console.print_table(console.fitted(losses.rows()), TITLE)
    for line in losses.lines():
        console.show(line)
    return FINE
