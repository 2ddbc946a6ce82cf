"""Find out which layers of a network lose what when they become integers.

The network is learned once; then it is put together again and again with some of its layers as
integers and all else float. What a layer does alone tells layers apart, what all others do without
it hardly does, because the others' errors hide its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, Track, batch_size, untracked
from luciole.ir import Graph, Model, Op
from luciole.ir.analysis.floats import is_float
from luciole.ir.analysis.weights import has_weights
from luciole.ir.names import short_names
from luciole.ir.text.table import aligned
from luciole.lquantizer.assignment.schemes import Scheme, UniformOptions
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import FEW_JUDGES, Split
from luciole.lquantizer.network.float_network import float_network
from luciole.lquantizer.network.places import integers_of
from luciole.lquantizer.report import snr_db
from luciole.lquantizer.whole.integer_layers import Known, assemble, walk
from luciole.lquantizer.whole.integers import known_of, prepare, schemes_everywhere

TITLE = "signal/noise of the output, and answers that stay, with integers in"
_SPARED = 4
"""How many of the worst layers are left float at once, at the most."""
_BAR = 24
"""Characters of the longest bar."""


@dataclass(frozen=True)
class Lost:
    """How far a network's first output is from the float one's: noise over signal, and the percent
    of answers that stay, None where it scores no classes.
    """

    noise: float
    agree: float | None

    @classmethod
    def by(cls, judge: Judge, model: Model) -> Lost:
        """Judge a network."""
        far = judge.distance(model)
        return cls(far.noise, None if far.agreement is None else 100 * far.agreement)

    @property
    def snr_db(self) -> float | None:
        """The same as a signal-to-noise ratio in dB."""
        return snr_db(1.0, self.noise)


@dataclass(frozen=True)
class LayerSensitivity:
    """Losses with only one layer on integers, with only its weights, with only its operands and
    results, and with all layers but it.
    """

    name: str
    short: str
    only: Lost
    weights: Lost
    activations: Lost
    others: Lost


@dataclass
class Sensitivity:
    """Layers from the one that alone loses most; what the whole network loses, by all, by weights
    and by tensors between operators alone; and what is left with the worst layers float.
    """

    scheme: str
    whole: Lost
    weights: Lost
    activations: Lost
    layers: list[LayerSensitivity] = field(default_factory=list)
    spared: list[Lost] = field(default_factory=list)
    """With the worst one float, with the worst two, and so on."""
    between: Lost | None = None
    """With integers in operators without weights alone, None where there are none."""

    def __str__(self) -> str:
        return "\n".join([TITLE, *aligned(self.rows()), *self.lines()])

    def to_json(self) -> dict[str, Any]:
        """Turn it into plain JSON values."""
        return asdict(self)

    def rows(self) -> list[tuple[str, ...]]:
        """List the layers as a table: a row of headings, then one for each, the worst first. A bar
        is as long as what the layer alone loses, against the worst one.
        """
        most = max((layer.only.noise for layer in self.layers), default=0.0)
        head = ("layer", "", "only it", "its weights", "its tensors", "all but it")
        rows: list[tuple[str, ...]] = [head]
        for layer in self.layers:
            length = round(_BAR * layer.only.noise / most) if most > 0 else 0
            losses = (layer.only, layer.weights, layer.activations, layer.others)
            texts = [_text(loss) for loss in losses]
            rows.append((layer.short, "\u2588" * length, *texts))
        return rows

    def lines(self) -> list[str]:
        """Write the losses of the whole network, and without its worst layers."""
        whole = f"the whole network: {_text(self.whole)}; weights alone {_text(self.weights)}"
        lines = [f"{whole}, tensors alone {_text(self.activations)}"]
        if self.between is not None:
            lines.append(f"operators without weights alone: {_text(self.between)}")
        for count, loss in enumerate(self.spared, 1):
            names = ", ".join(layer.short for layer in self.layers[:count])
            lines.append(f"with {names} float: {_text(loss)}")
        return lines


def _text(loss: Lost) -> str:
    ratio = "no error" if loss.snr_db is None else f"{loss.snr_db:.1f} dB"
    return ratio if loss.agree is None else f"{ratio} {loss.agree:.1f} %"


@dataclass
class Trials:
    """A float network ready to be quantized, the records that teach and judge it, and its known
    ranges and integers.
    """

    work: Model
    records: Records
    options: UniformOptions
    judge: Judge
    known: Known

    @classmethod
    def begin(
        cls,
        model: Model,
        split: Split,
        options: UniformOptions,
        track: Track,
        metric: Metric | None = None,
    ) -> Trials:
        """Prepare a network as ``quantize_uniform`` does, and watch all its tensors. Raises what
        that does.
        """
        records = split.learned
        known, work = known_of(options), float_network(model)
        prepare(work, records, options, known, dict.fromkeys(work.graph.ops, options.types))
        batch, count = batch_size(Interpreter(work), records), len(next(iter(records.values())))
        values = [v for v in work.graph.values if is_float(v) and (v.producer or v.is_input)]
        known.limits.watch(work, values, records, batch, track("ranges", count))
        return cls(work, records, options, Judge(work, split.judges, metric), known)

    def learn(self, types: Scheme, track: Track) -> list[str]:
        """Learn all layers in a scheme, and give the names of the operators that have integers.

        Raises QuantizeError where there are none.
        """
        return self.learn_each(dict.fromkeys((op.name for op in self.work.graph.ops), types), track)

    def learn_each(self, types: Mapping[str, Scheme], track: Track) -> list[str]:
        """Learn operators, by their names, in a scheme each; as ``learn``."""
        work = self.work.clone()
        schemes = integers_of({op: types[op.name] for op in work.graph.ops if op.name in types})
        if not schemes:
            raise QuantizeError("nothing to quantize: no operator has a form on integers")
        names = {op: op.name for op in schemes}
        walked = walk(work, self.records, schemes, self.options, track, self.known)
        return [name for op, name in names.items() if op in walked.integers]

    def network(self, schemes: Mapping[str, Scheme], weights: Mapping[str, Scheme]) -> Model:
        """Put the network together with the tensors around some operators, and the weights of some
        layers, rounded; both by name. What integers would ruin stays float.
        """
        work = self.work.clone()
        graph = work.graph
        rounded = integers_of(self._named(graph, schemes))
        layers = {op: t for op, t in self._named(graph, weights).items() if has_weights(op)}
        fitting = {op: rounded.get(op) or integers_of({op: t})[op] for op, t in layers.items()}
        assemble(work, rounded, fitting, self.known)
        return work

    def _named(self, graph: Graph, schemes: Mapping[str, Scheme]) -> dict[Op, Scheme]:
        """Find the operators that have schemes, by their names."""
        possible = [op for op in graph.ops if self.known.why_float(op) is None]
        return {op: schemes[op.name] for op in possible if op.name in schemes}


def sensitivity(
    model: Model, records: Records, options: UniformOptions, track: Track | None = None
) -> Sensitivity:
    """Measure the loss by each layer of a float network in a scheme; the model stays as it is.

    ``records`` are unlabelled samples by input name, the first axis counting them. Raises
    QuantizeError for schemes that learn nothing from them, and as ``quantize_uniform`` does.
    """
    is_mixed = options.config is not None or options.per_operator is not None
    if not options.takes_data or is_mixed:
        what = "a config" if is_mixed else f"the scheme {options.scheme}"
        raise QuantizeError(f"sensitivity is of one scheme that learns from data: not of {what}")
    track = track or untracked
    split = Split.for_choices(records, most=FEW_JUDGES) if records else Split.same(records)
    trials = Trials.begin(model, split, options, track)
    chosen = schemes_everywhere(trials.work.graph, options)
    types = {op.name: scheme for op, scheme in chosen.items()}
    names = trials.learn_each(types, track)
    layers = [op.name for op in trials.work.graph.ops if has_weights(op) and op.name in names]
    return _measured(trials, {name: types[name] for name in names}, layers, options.word, track)


def _measured(
    trials: Trials,
    types: Mapping[str, Scheme],
    layers: Collection[str],
    scheme: str,
    track: Track,
) -> Sensitivity:
    step = track("measuring layers", len(layers))

    def lost(rounded: Collection[str], weights: Collection[str]) -> Lost:
        schemes, stored = ({name: types[name] for name in names} for names in (rounded, weights))
        return Lost.by(trials.judge, trials.network(schemes, stored))

    names = [*types]
    result = Sensitivity(scheme, lost(names, layers), lost([], layers), lost(names, []))
    between = [name for name in names if name not in layers]
    result.between = lost(between, []) if between else None
    short = short_names(layers)
    for name in layers:
        rest = [other for other in names if other != name]
        only, weights, tensors = lost([name], [name]), lost([], [name]), lost([name], [])
        others = lost(rest, rest)
        result.layers.append(LayerSensitivity(name, short[name], only, weights, tensors, others))
        step(1)
    result.layers.sort(key=lambda layer: -layer.only.noise)
    for count in range(1, min(_SPARED, len(layers) - 1) + 1):
        worst = {layer.name for layer in result.layers[:count]}
        rest = [other for other in names if other not in worst]
        result.spared.append(lost(rest, rest))
    return result
