"""The calls that people make from Python: quantize, search, fine-tune and compile models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from luciole import lquantizer
from luciole.compiler import CompileOptions, Program, compile_model
from luciole.compiler.host import library_of
from luciole.compiler.options import BYTES, MODEL, STATIC, OptionError, Transform
from luciole.compiler.targets import NATIVE, PORTABLE
from luciole.exporters import save, to_bytes
from luciole.files import write_folder
from luciole.implanting import read_ranges
from luciole.importers import as_model, from_bytes, load
from luciole.interpreter.records import Data, Records, Track, records_of
from luciole.ir import Array, Model
from luciole.ir.checked import checked
from luciole.ir.errors import expect
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm, whole_lstms
from luciole.lquantizer import FitOptions, Result, Rounded, Settings, UniformOptions
from luciole.lquantizer.assignment.choosing import Options, options_for
from luciole.lquantizer.assignment.options import ConfigSource, MethodName, RangesSource
from luciole.lquantizer.assignment.schemes import Granularity, Rescale, Rounding
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.metric import Source as MetricSource
from luciole.lquantizer.judging.records import labels_of
from luciole.lquantizer.rewrite.batch_norm import BatchNorm, Normalized
from luciole.lquantizer.search.begin import search_network
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.published.begin import search_published
from luciole.lquantizer.search.published.options import SeedOptions
from luciole.lquantizer.search.result import SearchResult
from luciole.lquantizer.search.sensitivity import Sensitivity
from luciole.lquantizer.search.sensitivity import sensitivity as measure_layers
from luciole.optimizing import canonical
from luciole.quantizing import Task, check_widths, converted, parted, proved_training, quantized

if TYPE_CHECKING:
    from luciole.lquantizer.training import FinetuneResult, FinetuneSettings, UniformSettings

__all__ = [
    "Result",
    "compile",
    "finetune",
    "load",
    "quantize",
    "requantize",
    "save",
    "search",
    "sensitivity",
    "simulate",
]

Path_ = str | os.PathLike[str]


@checked
def compile(  # what the program is called
    model: Path_ | Model,
    folder: Path_,
    name: str,
    *,
    input: str = MODEL,  # as the program's option
    output: str = MODEL,
    preprocess: Transform | None = None,
    target: str | None = None,
    arena: str = STATIC,
    library: bool = False,
) -> Program:
    """Write a network as C99: ``NAME.h`` and ``NAME.c`` in a folder, which is made; with
    ``library`` also ``NAME.so`` with this machine's compiler, for ``luciole.Compiled``.

    ``target`` is any machine, with ``library`` this one, unless it is named. ``input``: "bytes"
    (before ``preprocess``), "float" or "quantized"; ``output``: "float", "quantized", "fixed" or
    "class". Raises UnsupportedError that lists operators without a C form, and LucioleError for
    choices that do not suit the model.
    """
    if preprocess is not None and input != BYTES:
        raise OptionError(f"preprocess is of bytes: give input='bytes', not {input!r}")
    opened = as_model(model)
    transforms = [preprocess] * len(opened.graph.inputs)
    target = target or (NATIVE if library else PORTABLE)
    options = CompileOptions(name, input, output, transforms, "", target, arena)
    program = compile_model(opened, options)
    contents: dict[str, bytes | str] = {**program.files}
    if library:
        contents[f"{name}.so"] = library_of(program)
    write_folder(Path(folder), contents, OptionError)
    return program


@checked
def quantize(
    model: Path_ | Model,
    data: Data | None = None,
    options: Options | None = None,
    *,
    scheme: str | None = None,
    encode_bits: int | str | None = None,
    input_bits: int | None = None,
    weight_bits: int | None = None,
    uniform: bool = False,
    weights_only: bool = False,
    all_layers: bool = False,
    spared: str | None = None,
    unroll_lstms: bool = False,
    method: MethodName | None = None,
    settings: Settings | None = None,
    target_size: int | None = None,
    target_drop: float | None = None,
    least_bits: int | None = None,
    levels_only: bool = False,
    config: ConfigSource | None = None,
    recipe: ConfigSource | None = None,
    compatible: Literal["one"] | None = None,
    granularity: Granularity | Literal["layer"] | None = None,
    ranges: str | None = None,
    ranges_from: RangesSource | None = None,
    rounding: Rounding | None = None,
    rescale: Rescale | None = None,
    symmetric: bool = False,
    input_type: str | None = None,
    output_type: str | None = None,
    exponent: int | None = None,
    mantissa: int | None = None,
    scaled: bool = False,
    layers_only: bool = False,
    per_layer: bool = False,
    seed: int | None = None,
    labels: Array | None = None,
    metric: MetricSource | None = None,
    judges: Data | None = None,
    proof: bool = True,
    track: Track | None = None,
) -> Result:
    """Quantize a model: to integers of 4 bits for weights and 8 between operators ("int:w4a8"),
    unless a ``scheme`` or a choice asks for another format.

    ``scheme`` is the word of a format that layers get: "int:w4a8", "int:w8a8" (or "int8"),
    "uint:w8a8" ("uint8"), "int:w8a16" ("int16x8"), "int:w4a16", "dynamic:int8" ("dynamic"),
    "dynamic:int4" ("dynamic4"), "weights:int8" ("weights"), "weights:int4" ("weights4"),
    "float16", "even:w4a4", "levels:w2a4", "minifloat:4,4". "mixed" chooses layer by layer,
    "from_fake_quant" reads the file's FAKE_QUANT operators. Integers between operators learn from
    data, unless there are ``ranges_from`` and ``rounding="nearest"``.

    What else there is to choose goes with some of them:

    - learned levels, which any of these asks for where there is no ``scheme``: ``encode_bits`` (3
      or "levels:w2a4"), ``input_bits`` and ``weight_bits``, ``uniform`` (evenly spaced),
      ``weights_only``, ``all_layers``, ``spared``, ``unroll_lstms``, ``method``, ``settings``,
      ``target_size`` or ``target_drop`` with ``levels_only``: fields of FitOptions,
      PublishedOptions
    - integers: ``granularity``, ``ranges``, ``ranges_from``, ``rounding``, ``rescale``,
      ``symmetric``, ``input_type``, ``output_type``, ``target_drop`` and ``least_bits`` of
      "mixed": fields of UniformOptions
    - minifloats: ``exponent``, ``mantissa``, ``scaled``, ``layers_only``, ``target_drop``,
      ``per_layer``: fields of MinifloatOptions
    - all: ``config`` (once ``recipe``) for single layers, also a recipe of AI Edge Quantizer or a
      configuration of Samsung ONE, whose numbers ``compatible="one"`` asks for; ``seed``

    ``options`` are such fields as an object. ``data`` are unlabelled samples: arrays by input name
    (one array alone for a model with one input) whose first axis counts them; uint8 and float64
    will do for float32.

    With a ``target_drop`` as few bits are chosen as lose no more: points of the answers that
    change, with ``labels`` [records, ...] of right ones, and percent of the variance where outputs
    score no classes. A ``metric``, a function of answers and labels (without labels of answers and
    the float network's) that returns a number, or ``"FILE.py:function"``, is measured by the proof,
    and ``target_drop`` is in its unit; larger is better.

    The bytes of the new model's file are judged (``result.proof``) by ``judges``, samples like the
    data, or by a tenth of the data, which is then not learned from; by all where there are fewer
    than 8, and by made-up ones where there are none. With ``proof=False`` all samples are learned
    from, and nothing is judged.

    ``track``, here and in other functions, shows how far long work is: ``track(what, total)`` is
    called as a stage of ``total`` steps begins, and the function that it returns with the number of
    steps done since its last call.

    Returns the new model and a report. Raises QuantizeError when nothing qualifies, the data cannot
    be used or choices do not go together, InputError for data whose names, types or shapes the
    model does not take.
    """
    chosen = _options(options, locals())
    return _quantized(model, data, chosen, labels, _metric(metric), judges, proof, track)


def _quantized(
    model: Path_ | Model,
    data: Data | None,
    options: Options,
    labels: Array | None,
    metric: Metric | None,
    judges: Data | None,
    proof: bool,
    track: Track | None,
) -> Result:
    model = as_model(model)
    result = quantized(_task(model, data, labels, metric, judges, proof, track), options)
    _warn(result, model, options)
    return result


def _task(
    model: Model,
    data: Data | None,
    labels: Array | None,
    metric: Metric | None,
    judges: Data | None,
    proof: bool,
    track: Track | None,
) -> Task:
    """Read samples, labels and judges for a model, which is quantized or trained."""
    samples, others = _given(model, data), _judging(model, judges, proof)
    return Task(model, samples, labels_of(labels), track, others, proof, metric)


_NO_CHOICES = ("model", "data", "options", "labels", "metric", "judges", "proof", "track")
"""Parameters that say nothing of the format."""


def _options(options: Options | None, parameters: Mapping[str, Any]) -> Options:
    """Take options, or what the choices among a call's parameters stand for. Raises TypeError for
    both at once.
    """
    kinds = (*get_args(Options), type(None))
    expect(options, kinds, "options: a class of options (right answers go to labels=)")
    choices = {n: c for n, c in parameters.items() if n not in _NO_CHOICES}
    choices = {n: c for n, c in choices.items() if c is not None and c is not False}
    if "ranges_from" in choices:
        choices["ranges_from"] = read_ranges(choices["ranges_from"])
    if options is not None and choices:
        raise TypeError(f"give options or keywords, not both: {', '.join(sorted(choices))}")
    check_widths(choices)
    return options or options_for(choices)


def _warn(result: Result, model: Model, options: Options) -> None:
    """Warn of LSTMs that stay whole against the options, and where the new file is not smaller."""
    report = result.report
    unrolled = isinstance(options, FitOptions) and options.unroll_lstms
    if unrolled:
        report.warnings += whole_lstms(model.graph)
    if report.bytes_after >= report.bytes_before:
        why = ": an unrolled LSTM has operators for each step" if unrolled else ""
        report.warnings.append(
            f"the file is not smaller, {report.bytes_after:,} bytes instead of "
            f"{report.bytes_before:,}{why}"
        )


@checked
def sensitivity(
    model: Path_ | Model,
    data: Data | None = None,
    options: UniformOptions | None = None,
    *,
    scheme: str | None = None,
    config: ConfigSource | None = None,
    granularity: Granularity | None = None,
    ranges: str | None = None,
    ranges_from: RangesSource | None = None,
    rounding: Rounding | None = None,
    rescale: Rescale | None = None,
    symmetric: bool = False,
    seed: int | None = None,
    track: Track | None = None,
) -> Sensitivity:
    """Measure the loss of each layer of a float model in a scheme of uniform integers ("int8"
    unless another is given): alone, by its weights and by its tensors alone, and of all others
    without it, the worst layer first.

    ``data`` are samples as ``quantize`` takes them, ``options`` a UniformOptions or its fields as
    keywords. Raises what ``quantize`` does, and QuantizeError for a scheme that learns nothing
    from data.
    """
    choices = dict(locals())
    if options is None and scheme is None:
        choices["scheme"] = "int8"
    chosen, model = _options(options, choices), canonical(as_model(model))
    if not isinstance(chosen, UniformOptions):
        raise lquantizer.QuantizeError("sensitivity is of uniform integers: give their scheme")
    if data is None and chosen.takes_data:
        raise lquantizer.QuantizeError("what layers lose is seen on data: give some")
    records = {} if data is None else records_of(model.graph, data)
    return measure_layers(model, records, chosen, track)


@checked
def search(
    model: Path_ | Model,
    data: Data,
    output: Path_,
    options: SearchOptions | SeedOptions | None = None,
    *,
    labels: Array | None = None,
    metric: MetricSource | None = None,
    finish: str | None = None,
    say: Callable[[str], None] = print,
    track: Track | None = None,
) -> SearchResult:
    """Search for the best networks of every size: which learned levels, integers or floats each
    layer should have. Writes the Pareto front as files into the folder ``output``, beside
    ``search.db``, which keeps all that was evaluated: the same call goes on from there.

    ``data`` are unlabelled samples as ``quantize`` takes them: some are learned from, others judge.
    ``finish`` is how the front is finished, in place of the options' own ("finetune:4").
    SeedOptions ask for the published search, which trains to ``labels`` [records, ...]; else these,
    or a ``metric`` as ``quantize`` takes it, judge whole networks. ``say`` is told in a line how it
    goes. Raises QuantizeError when nothing qualifies, the data cannot be
    used, and for a folder with another search, InputError as ``quantize`` does.
    """
    kinds = (SearchOptions, SeedOptions, type(None))
    expect(options, kinds, "options: SearchOptions or SeedOptions")
    opened, chosen = canonical(as_model(model)), _finished(options, finish)
    records, right = records_of(opened.graph, data), labels_of(labels)
    folder = Path(output)
    if not isinstance(chosen, SeedOptions):
        judge = _metric(metric)
        return search_network(
            opened, records, folder, chosen, from_bytes, to_bytes, say, track, right, judge
        )
    if metric is not None:
        raise lquantizer.QuantizeError("metric does not go with the published search")
    norms = _folded(model)
    return search_published(
        opened, records, right, folder, chosen, from_bytes, to_bytes, say, track, norms
    )


def _finished(
    options: SearchOptions | SeedOptions | None, finish: str | None
) -> SearchOptions | SeedOptions:
    """Replace the options' way to finish by another. Raises QuantizeError for the published search,
    which has none.
    """
    if finish is None:
        return options or SearchOptions()
    if isinstance(options, SeedOptions):
        raise lquantizer.QuantizeError("finish does not go with the published search")
    return replace(options or SearchOptions(), finish=finish)


def _folded(source: Path_ | Model) -> list[Normalized]:
    """Read the batch normalizations of a Keras file, which the converter folds."""
    if isinstance(source, Model) or Path(source).suffix not in (".keras", ".h5"):
        return []
    from luciole.importers.keras.batch_norms import keras_batch_norms

    return [
        Normalized(
            np.asarray(n.weights, np.float32),
            BatchNorm(*_floats(n.gamma, n.beta, n.mean - n.bias, n.variance), n.epsilon),
        )
        for n in keras_batch_norms(Path(source))
    ]


def _floats(*arrays: Array) -> tuple[Array, Array, Array, Array]:
    one, two, three, four = (np.asarray(array, np.float32) for array in arrays)
    return one, two, three, four


def simulate(model: Path_ | Model) -> Result:
    """Make a network of integers compute with floats between QUANTIZE and DEQUANTIZE, every tensor
    rounded as before: training needs this form, and other tools take it.

    Raises QuantizeError where no operator computes with integers.
    """
    model = as_model(model)
    return converted(lquantizer.simulate(model), model)


@checked
def requantize(model: Path_ | Model, to: str) -> Result:
    """Give a network of 8-bit integers the other ones: "uint8" or "int8", 128 codes apart.

    The report's warnings say which weights had to be rounded again, and which operators stay as
    they are between two QUANTIZE. Raises QuantizeError where there is nothing to change.
    """
    model = as_model(model)
    return converted(lquantizer.requantize(model, to), model)


@checked
def finetune(
    student: Path_ | Model | Result,
    teacher: Path_ | Model,
    data: Data,
    *,
    epochs: int,
    labels: Array | None = None,
    labelled_output: str | None = None,
    metric: MetricSource | None = None,
    settings: FinetuneSettings | UniformSettings | None = None,
    latents: Mapping[str, Array] | None = None,
    checkpoint: Path_ | None = None,
    resume: bool = False,
    judges: Data | None = None,
    proof: bool = True,
    report: Callable[[str], None] | None = None,
    track: Track | None = None,
) -> FinetuneResult:
    """Fine-tune a quantized model so that it does what the float model does, without labels.

    The student is what ``quantize`` gave: its Result, or a model of learned levels. ``data`` are
    samples as ``quantize`` takes them, ``latents`` its result's (a Result has them); ``labels``, of
    the only output or of the ``labelled_output``, are used only where given. Of uniform integers
    the thresholds are trained, and what UniformSettings ask for besides. A ``metric``, as
    ``quantize`` takes it, judges the epochs, by the labels or else the float model's outputs;
    labels that are no class numbers are for it alone. A ``checkpoint`` file is written after each
    epoch, and ``resume`` goes on from it. ``report`` is given a line for each epoch.

    The bytes of the result's file are judged (its ``proof``) by ``judges``, samples like the data,
    or by some of the data, those first that the student was not learned from, which then do not
    train; ``proof=False`` leaves that out. Returns the best model by held-back records and the
    history. Raises what ``luciole.lquantizer.training.finetune`` does; needs TensorFlow.
    """
    from luciole.lquantizer import training

    begun, known, learned_from = _trained(student)
    model = begun.model if isinstance(begun, Rounded) else begun
    original = as_model(teacher)
    task = _task(model, data, labels, _metric(metric), judges, proof, track)
    split = parted(task, learned_from)
    tuned = training.finetune(
        begun,
        _unrolled(original),
        split.learned,
        epochs=epochs,
        labels=split.labels,
        labelled_output=labelled_output,
        metric=task.metric,
        settings=_settings(settings),
        latents=known if latents is None else latents,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        resume=resume,
        learned_from=learned_from,
        track=track,
        report=report,
    )
    if proof:
        tuned.proof = proved_training(task, tuned.model, original, split.judges)
    return tuned


def _unrolled(model: Model) -> Model:
    """Copy a network in the form that was quantized, with its LSTMs unrolled: they have no
    differentiable form of their own.
    """
    copy = canonical(model)
    unroll_unidirseqlstm(copy.graph)
    return copy


def _metric(source: MetricSource | None) -> Metric | None:
    """Take a function of the user's own, or load it."""
    return None if source is None else Metric.of(source)


def _given(model: Model, data: Data | None) -> Records | None:
    return None if data is None else records_of(model.graph, data)


def _judging(model: Model, judges: Data | None, proof: bool) -> Records | None:
    """Take samples that judge a file. Raises QuantizeError where it is not to be judged."""
    if judges is not None and not proof:
        raise lquantizer.QuantizeError("judges prove the file: leave them out, or proof=False")
    return _given(model, judges)


def _settings(
    settings: FinetuneSettings | UniformSettings | None,
) -> FinetuneSettings | UniformSettings | None:
    """Check the class of a training's settings. Raises LucioleError for another one."""
    from luciole.lquantizer import training

    kinds = (training.FinetuneSettings, training.UniformSettings, type(None))
    expect(settings, kinds, "settings: FinetuneSettings or UniformSettings")
    return settings


def _trained(
    student: Path_ | Model | Result,
) -> tuple[Model | Rounded, Mapping[str, Array] | None, frozenset[bytes]]:
    """Find the network to train, a result's rounded network where it has one; a result's float
    weights, and the digests of what it was learned from.
    """
    if isinstance(student, Result):
        return student.rounded or student.model, student.latents, student.learned_from
    return as_model(student), None, frozenset()
