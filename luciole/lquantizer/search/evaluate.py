"""Evaluate what a search asks for: one layer alone under an option, or a whole candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from luciole.interpreter.records import Records
from luciole.ir import Model, Op
from luciole.ir.analysis.weights import has_weights, is_layer, weight_constant
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.value import element_count
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.assignment.layer_format import Integers, Levels, levels_format, parse
from luciole.lquantizer.assignment.options import FitOptions
from luciole.lquantizer.assignment.schemes import FLOAT, LEARNED, UniformOptions
from luciole.lquantizer.calibration.rows import Dense
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Judges
from luciole.lquantizer.methods.coding import Coding
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.network.branches import Aim
from luciole.lquantizer.network.even_inputs import Disturbances
from luciole.lquantizer.network.layers import find_groups
from luciole.lquantizer.network.preparation import Preparation, prepare
from luciole.lquantizer.network.problem import LayerProblem, LearnedLayer
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.rewrite.learned_levels import finish
from luciole.lquantizer.search import latency, shortened
from luciole.lquantizer.search.space import UNCHANGED, is_between, is_learned, recipe
from luciole.lquantizer.whole.levels import quantize_records, replaced
from luciole.lquantizer.whole.mixed import quantize_mixed, with_integers

_SAVED = 3
"""Bytes that a number of 8 bits takes less than a float."""
Size = Callable[[Model], int]
"""The size of a model's file; exporters are not this room's, so the caller brings it."""
Clock = Callable[[Model, Records], latency.Times]
"""How long each operator of a model takes on the first of some records."""
Stage = str
"""How a candidate is evaluated: "shortened", "fitted", or as ``Finish.stage`` says."""


@dataclass(frozen=True)
class Alone:
    """One layer under an option, all else float: bytes and microseconds more than the float
    network takes, what it loses, and the way its weights were coded.
    """

    layer: str
    option: str
    bytes: int
    loss: float
    us: float = 0.0
    way: str = ""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Its costs beyond the float layer's on other devices, by their names."""


@dataclass(frozen=True)
class Figures:
    """A whole network: the bytes of its file, what it loses, the share of equal answers, and what
    is lost in the unit of who judges.
    """

    bytes: int
    loss: float
    agreement: float | None
    drop: float | None = None


@dataclass
class Bench:
    """A float network, the records layers are fitted to, others that judge, and how files are
    weighed and operators timed.

    Candidates are told apart on ``few`` of the records. ``clock`` is None where time is no matter.
    """

    model: Model
    records: Records
    judges: Judges
    size: Size
    clock: Clock | None = None
    seed: int = 0
    few: int = 100
    metric: Metric | None = None

    def __post_init__(self) -> None:
        """Run the float network on the judges."""
        self.judge = Judge(self.model, self.judges, self.metric)
        self.float_times = (
            None if self.clock is None else self.clock(self.model, self.judges.records)
        )
        self._layers: _Layers | None = None
        self._problem: tuple[str, LayerProblem] | None = None
        self._disturbed: Disturbances = {}
        self._sizes: dict[tuple[str, tuple[str, ...]], int] = {}

    @property
    def few_records(self) -> Records:
        """The records by which candidates are compared."""
        return {name: array[: self.few] for name, array in self.records.items()}

    def alone(self, layer: str, options: Sequence[str]) -> list[Alone]:
        """Measure one layer under options with as wide weights, or in one scheme."""
        learned = [option for option in options if is_learned(option)]
        rest = [option for option in options if not is_learned(option)]
        return [*self._learned(layer, learned), *(self._scheme(layer, one) for one in rest)]

    def fit(self, chosen: Mapping[str, str], ways: Mapping[str, str] | None = None) -> Result:
        """Quantize the network with an option for each layer, as its config does; with ``ways``,
        those that won when layers were alone, by the shortened fit on few records.
        """
        options = FitOptions(config=recipe(chosen), seed=self.seed, spared=str(FLOAT))
        learned = [name for name, option in chosen.items() if is_learned(option)]
        if ways is None or not learned:
            uniform = UniformOptions(seed=self.seed)
            return quantize_mixed(self.model, self.records, options, uniform, LEARNED)
        few = self.few_records
        method = shortened.Shortened([ways[name] for name in self._first(learned)], self.seed)
        result = quantize_records(self.model, few, method, config_of(chosen), known=self._disturbed)
        return with_integers(result, self.model, few, options)

    def figures(self, file: Model, size: int) -> Figures:
        """Judge a quantized network as it was read back from a file of so many bytes. Where labels
        or a metric judge, the loss is theirs: single layers are told apart by outputs alone, for
        what one of them loses is too little to be seen in answers.
        """
        lost = self.judge.judge(file)
        return Figures(size, self.judge.share_lost(lost), lost.agreement, lost.drop)

    def _first(self, learned: Sequence[str]) -> list[str]:
        """List the first layer of each group that shares its weights, in execution order."""
        config = config_of(dict.fromkeys(learned, str(Levels(1, 1))))
        return [group.name for group in find_groups(self.model.graph, config)[0]]

    def _learned(self, layer: str, options: Sequence[str]) -> list[Alone]:
        """Measure a layer in all widths of inputs, by the coding that wins in their middle."""
        if not options:
            return []
        layers, middle = self._prepared(), options[len(options) // 2]
        problem = self._problem_of(layers, layer)
        whole = OutputAware(self.seed).learn(problem, _choice(middle))
        coding = Coding.parse(whole.way)

        def measured(option: str) -> Alone:
            learned = whole
            if option != middle:
                learned = shortened.learn(problem, _choice(option), coding)
            model = layers.with_one(layer, problem, learned)
            return replace(self._weighed(layer, option, model, layers), way=whole.way)

        return list(map(measured, options))

    def _scheme(self, layer: str, option: str) -> Alone:
        if option == UNCHANGED:
            return Alone(layer, option, 0, 0.0)
        model = self._made({layer: option}, self.few_records, UniformOptions(seed=self.seed))
        alone, whole = self._weighed(layer, option, model), _whole_bytes(option)
        if whole is None:
            return alone
        size = self.size(self.model) + alone.bytes - self._plain_size(whole, layer)
        return replace(alone, bytes=size + self._share(layer, whole))

    def _made(self, chosen: Mapping[str, str], records: Records, uniform: UniformOptions) -> Model:
        """Quantize the layers that options are ``chosen`` for, all else float."""
        layers = [op.name for op in self.model.graph.ops if is_layer(op)]
        config = recipe({**dict.fromkeys(layers, UNCHANGED), **chosen})
        fit = FitOptions(config=config, seed=self.seed, spared=str(FLOAT))
        return quantize_mixed(self.model, records, fit, uniform, LEARNED).model

    def _plain_size(self, option: str, *layers: str) -> int:
        """Weigh a network of some layers in an option, made by the quickest rules."""
        if (option, layers) not in self._sizes:
            options = UniformOptions(ranges="min_max", rounding="nearest", rescale="none")
            records = {name: array[:2] for name, array in self.records.items()}
            model = self._made(dict.fromkeys(layers, option), records, options)
            self._sizes[option, layers] = self.size(model)
        return self._sizes[option, layers]

    def _share(self, layer: str, option: str) -> int:
        """Return the share that a layer has in what the network of an option of bytes between
        integers takes beyond the float one: conversions around each layer alone are not in it.
        """
        weights = {
            op.name: value
            for op in self.model.graph.ops
            if has_weights(op) and (value := weight_constant(op)) is not None
        }
        counts = {value: element_count(value.dims) for value in weights.values()}
        beyond = self._plain_size(option, *weights) - self.size(self.model)
        saved = _SAVED * (sum(counts.values()) / len(counts) - counts[weights[layer]])
        return round(beyond / len(counts) + saved)

    def _weighed(
        self, layer: str, option: str, model: Model, layers: _Layers | None = None
    ) -> Alone:
        """Compare a network of one quantized layer with the float one, or with it rescaled."""
        base = self.size(self.model) if layers is None else layers.size
        us = 0.0
        if self.clock is not None and self.float_times is not None:
            us = self.clock(model, self.judges.records).beside(self.float_times)
        loss = self.judge.distance(model).loss
        return Alone(layer, option, self.size(model) - base, loss, us)

    def _prepared(self) -> _Layers:
        if self._layers is None:
            self._layers = _Layers.of(self)
        return self._layers

    def _problem_of(self, layers: _Layers, layer: str) -> LayerProblem:
        """State a layer's problem; that of the last one asked for is kept."""
        if self._problem is None or self._problem[0] != layer:
            self._problem = None
            self._problem = (layer, layers.problem(layer))
        return self._problem[1]


@dataclass
class _Layers:
    """The float network prepared for the fit, and the targets of its layers."""

    prepared: Preparation
    aims: Mapping[Op, Aim]
    size: int

    @classmethod
    def of(cls, bench: Bench) -> _Layers:
        config = Config(Choice(4, 4), all_layers=True)
        prepared = prepare(bench.model, bench.records, config, OutputAware(bench.seed), False)
        finished = prepared.work.clone()
        finish(finished)
        return cls(prepared, prepared.network.aims(prepared.jobs), bench.size(finished))

    def problem(self, layer: str) -> LayerProblem:
        """State the problem of one layer in the float network."""
        prepared, job = self.prepared, self.prepared.jobs[self._number(layer)]
        return prepared.network.alone(job, self.aims, prepared.jobs)

    def with_one(self, layer: str, problem: LayerProblem, learned: LearnedLayer) -> Model:
        """Copy the network with one layer learned."""
        graph, job = self.prepared.work.graph, self.prepared.jobs[self._number(layer)]
        places: dict[Op, int] = {op: place for place, op in enumerate(graph.ops)}
        work = self.prepared.work.clone()
        twins = list(work.graph.ops)
        replaced([_dense(twins[places[op]]) for op in job.ops], problem, learned)
        finish(work)
        return work

    def _number(self, layer: str) -> int:
        for number, job in enumerate(self.prepared.jobs):
            if layer in self.prepared.groups[job.name].names:
                return number
        raise QuantizeError(f"layer {layer!r} has no form with learned levels")


def _whole_bytes(option: str) -> str | None:
    """Return the format of whole bytes under weights, beside the same integers between operators;
    None for options without these.
    """
    format = parse(option)
    return (
        str(replace(format, weights=8))
        if isinstance(format, Integers) and is_between(option)
        else None
    )


def _dense(op: Op) -> Dense:
    assert isinstance(op, FullyConnected | Conv2D), "a copy keeps the order of operators"
    return op


def _choice(option: str) -> Choice:
    levels = levels_format(option)
    return Choice(levels.inputs or levels.weights, levels.weights)


def config_of(chosen: Mapping[str, str]) -> Config:
    """Make the config that gives layers their learned levels, and leaves all others alone."""
    learned = {name: _choice(option) for name, option in chosen.items() if is_learned(option)}
    config = Config(Choice(skip=True), all_layers=True)
    return config.with_choices(learned)
