"""One network through every scheme, simulation, C, ONNX and ``optimize``; what must not be."""

from __future__ import annotations

import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import LucioleError, Model, Op, TensorType
from luciole.ir.passes.split_quantization import computes_with_integers
from luciole.ir.quantization import ACTIVATIONS
from luciole.lquantizer.proving.simulation import simulation_of
from luciole.optimizing import optimize
from tests.fuzz.networks_in_c import may_overflow
from tests.fuzz.rewriting import forms, judging, networks, plainly, schemes
from tests.fuzz.rewriting.forms import Outputs
from tests.fuzz.rewriting.networks import Network
from tests.fuzz.rewriting.schemes import Scheme

JOBS = ("simulate", "C", "ONNX", "optimize", "NaN")
NAMES = (*schemes.NAMES, *JOBS)
UNLIKE = ("SUM", "DIV")
"""Operators whose integers LiteRT's reference kernels compute in another way than its others: they
shift quotients of small numbers too far.
"""
UNSIMULATED = ("LEAKY_RELU", "SQRT")
"""Operators whose integers LiteRT's kernels, and ours, round to one side: twice, away from 0
mostly, and toward 0.
"""
_TIPPED = 4
"""How many times a simulation's tensors are tipped, and plain grids are moved."""
UNPROMISED = ("one", "mixed")
"""Schemes without a floor: ONE's numbers are what they are, and answers are all that ``mixed``
keeps.
"""
UNSAID = ("MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR")
"""Operators of ONNX of which nothing says what they give of NaN; onnxruntime's do one or the
other by the place where it stands, or multiply a neighbour that has no share by 0.
"""
_PEER = 4
"""Records that other runtimes compute."""
_LONGEST = 1000
"""Characters of a sentence."""
_INFINITE = "becomes NaN or infinite"
"""What is said of a tensor that holds no numbers."""
_FLOAT = 0.3
"""How often C, ONNX and ``optimize`` are given the float network."""

Ends = Counter[tuple[str, str]]
Job = tuple[str, str]
"""A scheme or a job by its name in the table, and with all that was asked of it."""
File = tuple[Job, Model]
"""What was written, and by which job."""


@dataclass(frozen=True)
class Finding:
    """What must not be: of which network, by which job, of which kind."""

    number: int
    job: Job
    kind: str
    said: str

    def __str__(self) -> str:
        return f"{self.job[1]}: {self.kind}: {self.said}"


@dataclass
class Case:
    """A network and what was seen of it: findings, how often each job ended how, and how many
    seconds of computing it took; of the schemes a share is drawn by the number.
    """

    seed: int
    number: int
    only: Collection[str] = NAMES
    share: float = 1.0
    findings: list[Finding] = field(default_factory=list)
    ends: Ends = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    @cached_property
    def network(self) -> Network:
        """The float network."""
        return networks.network(self.seed, self.number)

    @cached_property
    def floats(self) -> Outputs:
        """The float network's outputs."""
        return forms.of_model(self.network.model, self.network.records)

    @cached_property
    def twin(self) -> tuple[Network, Outputs]:
        """The same function with even channels, and its outputs."""
        twin = networks.network(self.seed, self.number, even=True)
        return twin, forms.of_model(twin.model, twin.records)

    @cached_property
    def floor(self) -> plainly.Floor | None:
        """The network that is rounded plainly, None for one with state."""
        net = self.network
        try:
            return plainly.Floor(net.model, forms.each(net.records, net.model.graph))
        except LucioleError:
            return None

    def run(self) -> None:
        """Rewrite the network in every way."""
        files: list[File] = []
        for scheme in schemes.schemes_of(self.seed, self.number, self.share):
            if scheme.name in self.only:
                with self._watched((scheme.name, str(scheme))):
                    files += self._scheme(scheme)
        self._rewritings(files)

    # ------------------------------------------------------------------------------- bookkeeping
    def _see(self, job: Job, kind: str, said: Iterable[str]) -> None:
        """Note a finding of one kind, if there is any."""
        sentences = list(said)
        if sentences:
            self.findings.append(Finding(self.number, job, kind, "; ".join(sentences)))

    @contextmanager
    def _watched(self, job: Job) -> Iterator[None]:
        """Run a job: a sentence ends it, whatever else is raised is a finding."""
        end, begun = "ran", time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                yield
        except LucioleError as error:
            end = "refused"
            self._see(job, "no sentence", _no_sentence(str(error)))
            self._see(job, "refused for nothing", self._without_reason(job, str(error)))
            self.ends[job[0], f"refused: {_short(str(error))}"] += 1
        except Exception as error:
            end = "raised"
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            self._see(job, "exception", [f"{type(error).__name__}: {error} ({where})"[:300]])
        self.ends[job[0], end] += 1
        self.seconds[job[0]] += time.process_time() - begun  # type: ignore[assignment]  # a sum

    def _without_reason(self, job: Job, text: str) -> Iterator[str]:
        """Say that a network is refused for NaN that it never has: infinities that constants bring
        are masks, but not for Samsung ONE's numbers, which keep every operator.
        """
        if _INFINITE not in text or self.floor is None:
            return
        if not (self.floor.has_nan or (job[0] == "one" and not self.floor.is_finite)):
            yield text

    # ----------------------------------------------------------------------------------- schemes
    def _scheme(self, scheme: Scheme) -> list[File]:
        """Quantize, write and judge; the file's network, where it runs."""
        net, job = self.network, (scheme.name, str(scheme))
        result = self._quantized(net, scheme)
        try:
            file = forms.written(result.model)
            outputs = self._twice(job, file)
        except LucioleError as error:  # what was written must load and run
            if scheme.name == "one":  # which writes what kernels elsewhere run
                raise
            self._see(job, "does not run", [str(error)[:300]])
            return []
        self._see(job, "not finite", judging.infinite(outputs, self.floats))
        if result.rounded is None:
            memory = forms.of_model(result.model, net.records)
            self._see(job, "file is not the model", judging.unequal(outputs, memory))
        else:
            self._as_simulated(job, file, outputs, simulation_of(result))
        self._above_floor(job, file, outputs, scheme)
        self._as_even(job, file, outputs, scheme)
        self._as_litert(job, file, outputs)
        return [(job, file)]

    def _quantized(self, net: Network, scheme: Scheme) -> luciole.Result:
        records = dict(net.records) if scheme.has_data else None
        return luciole.quantize(net.model, records, proof=False, **scheme.choices)

    def _twice(self, job: Job, file: Model) -> Outputs:
        """Run a file twice: the outputs are the same."""
        interpreter = Interpreter(file)
        interpreter.allocate_tensors()
        first, again = (forms.interpreted(interpreter, self.network.records) for _ in range(2))
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again, strict=True))
        self._see(job, "not twice the same", [] if same else ["the second run differs"])
        return first

    def _as_simulated(self, job: Job, file: Model, outputs: Outputs, simulation: Model) -> None:
        """The file lies as close to the float network as the simulation does, or as one does whose
        tensors are tipped by an eighth of a step: kernels round their sums in integers, and what
        lies between two steps all over an image falls on the other side.
        """
        if any(op.kind in UNSIMULATED and _on_integers(op) for op in file.graph.ops):
            return
        records, floats, steps = self.network.records, self.floats, forms.steps(file.graph)
        own = judging.powers(outputs, floats)
        others = judging.powers(forms.of_model(simulation, records), floats)
        if any(judging.beyond(own, others, judging.AS_SIMULATED, floats, steps)):
            tipped = (forms.tipped(simulation, seed) for seed in range(_TIPPED))
            powers = [judging.powers(forms.of_model(one, records), floats) for one in tipped]
            others = [max(several) for several in zip(others, *powers, strict=True)]
        far = judging.beyond(own, others, judging.AS_SIMULATED, floats, steps)
        self._see(job, "far from simulation", far)

    def _above_floor(self, job: Job, file: Model, outputs: Outputs, scheme: Scheme) -> None:
        """The file lies as close to the float network as one that is rounded plainly, on grids that
        are moved a little where the first does better by luck.
        """
        unseen = self.network.uneven and not scheme.has_data  # what rescaling by weights costs
        if self.floor is None or scheme.name in UNPROMISED or unseen:
            return
        floats, mine = self.floor.floats, [a[-plainly.RECORDS :] for a in outputs]
        own, steps = judging.powers(mine, floats), forms.steps(file.graph)
        below: list[str] = []
        for seed in (None, *range(_TIPPED)):  # the worst of several, where the first is much better
            plain = judging.powers(self.floor.outputs(scheme.plain, seed), floats)
            enough = judging.enough(plain, floats, scheme.plain)
            below = list(judging.beyond(own, enough, judging.AS_PLAIN, floats, steps))
            if not below:
                return
        self._see(job, "below floor", below)

    def _as_even(self, job: Job, file: Model, outputs: Outputs, scheme: Scheme) -> None:
        """Uneven channels lose hardly more than even ones."""
        unseen = self.network.cut_off and not scheme.has_data
        kept = scheme.choices.get("rescale") == "none"
        if not self.network.uneven or scheme.name not in schemes.TWINS or unseen or kept:
            return
        twin, floats = self.twin
        if any(judging.unequal(floats, self.floats)):
            return  # a RELU6 cuts other numbers off
        others = forms.of_model(self._quantized(twin, scheme).model, twin.records)
        even = judging.enough(judging.powers(others, floats), floats, scheme.plain)
        errors = judging.powers(outputs, self.floats), even
        far = judging.beyond(*errors, judging.AS_EVEN, floats, forms.steps(file.graph))
        self._see(job, "worse than even channels", far)

    def _as_litert(self, job: Job, file: Model, outputs: Outputs) -> None:
        """LiteRT computes the same where it takes the file, but for files of Samsung ONE's numbers
        with weights of 16 bits, or that no kernel here computes on integers: LiteRT takes their
        codes for others.
        """
        if job[0] == "one" and (_has_words(file) or _is_simulated(file)):
            return
        content = forms.tflite(file)
        if content is None:
            return
        is_own = any(op.kind == "CUSTOM(LevelsDecode)" for op in file.graph.ops)
        if job[0] in (*schemes.UNIFORM, *schemes.ALONE) and not is_own:  # which are for LiteRT
            self._see(job, "LiteRT refuses it", forms.refused_by_litert(content))
        if any(op.kind in UNLIKE and _on_integers(op) for op in file.graph.ops):
            return
        peer = forms.litert(content, file.graph, self.network.records, _PEER)
        self.ends[job[0], "in LiteRT" if peer is not None else "not in LiteRT"] += 1
        if peer is not None:
            mine = [a[:_PEER] for a in outputs]
            itself = any(forms.rounds_itself(op) for op in file.graph.ops)
            floats = judging.ROUNDED if itself else judging.FLOATS
            apart = list(judging.unequal(mine, peer, forms.steps(file.graph), floats))
            if apart:
                steps = self._tipped_steps(file, mine)
                apart = list(judging.unequal(mine, peer, steps, floats))
            self._see(job, "LiteRT differs", apart)

    def _tipped_steps(self, file: Model, mine: Outputs) -> list[float]:
        """How far outputs go, beyond a step of each, where floats inside are a little other ones:
        one that is rounded to the next step may be multiplied by large numbers.
        """
        apart = [0.0] * len(mine)
        for seed in range(_TIPPED):
            tipped = forms.tipped(file, seed, forms.INSIDE)
            others = forms.of_model(tipped, self.network.records, _PEER)
            rows = zip(apart, mine, others, strict=True)
            apart = [max(most, float(np.nanmax(np.abs(a - b)))) for most, a, b in rows]
        return [step + most for step, most in zip(forms.steps(file.graph), apart, strict=True)]

    # ---------------------------------------------------------------------------------- rewriting
    def _rewritings(self, files: list[File]) -> None:
        """Simulate files of integers, and give some at random to C, ONNX and ``optimize``."""
        rng = np.random.default_rng((self.seed, self.number, 3))
        for (name, words), file in files:
            if "simulate" in self.only and name in schemes.UNIFORM:
                with self._watched(("simulate", f"simulate {words}")):
                    self._simulate(("simulate", f"simulate {words}"), file)
        jobs = {"C": self._in_c, "ONNX": self._in_onnx, "optimize": self._optimized}
        for name, rewrite in jobs.items():
            words, file = self._drawn(files, rng)
            if name in self.only:
                with self._watched((name, f"{name} of {words}")):
                    rewrite((name, f"{name} of {words}"), file)
        if "NaN" in self.only and self._is_broken:
            self._broken()

    def _drawn(self, files: list[File], rng: np.random.Generator) -> tuple[str, Model]:
        """Draw a file, or the float network."""
        as_float, place = rng.random() < _FLOAT, rng.random()
        if as_float or not files:
            return "float", self.network.model
        (_, words), file = files[int(place * len(files))]
        return words, file

    def _simulate(self, job: Job, file: Model) -> None:
        """The file lies as close to the float network as its simulation does."""
        net = self.network
        simulation = luciole.simulate(file).model
        self._as_simulated(job, file, forms.of_model(file, net.records), simulation)

    def _in_c(self, job: Job, file: Model) -> None:
        """The program in C computes the same."""
        with TemporaryDirectory() as folder:
            compiled = forms.in_c(file, self.network.records, Path(folder), _PEER)
        mine = forms.of_model(file, self.network.records, _PEER)
        self._see(job, "differs", judging.unequal(compiled, mine))

    def _in_onnx(self, job: Job, file: Model) -> None:
        """The file in ONNX computes the same, or what integers are lies as close to the float
        network.
        """
        content = to_bytes(file, "onnx", exact=True)
        exported = forms.in_onnx(content, file.graph, self.network.records, _PEER)
        mine = forms.of_model(file, self.network.records, _PEER)
        if not any(computes_with_integers(op) for op in file.graph.ops):
            self._see(job, "differs", judging.unequal(exported, mine))
            return
        floats, steps = [a[:_PEER] for a in self.floats], forms.steps(file.graph)
        errors = judging.powers(exported, floats), judging.powers(mine, floats)
        far = judging.beyond(*errors, judging.AS_SIMULATED, floats, steps)
        self._see(job, "far from the file", far)

    def _optimized(self, job: Job, file: Model) -> None:
        """The simpler network computes the same."""
        simpler = optimize(file)
        made = forms.of_model(forms.written(simpler), self.network.records, _PEER)
        mine = forms.of_model(file, self.network.records, _PEER)
        self._see(job, "differs", judging.unequal(made, mine))

    @property
    def _is_broken(self) -> bool:
        """Whether there are records with elements that are no numbers, and reference kernels that
        compute them.
        """
        arrays = self.network.broken.values()
        broken = any(np.isnan(a).any() for a in arrays if a.dtype.kind == "f")
        return broken and self.floor is not None

    def _broken(self) -> None:
        """Every form of the float network has NaN where the reference kernels have it, for records
        whose sums stay within floats: a window of NaN alone has the lowest float for its largest.
        """
        model, every = self.network.model, self.network.broken
        graph, records = model.graph, forms.each(every, model.graph)
        kept = [k for k, record in enumerate(records) if not may_overflow(model, record)]
        broken, count = {name: array[kept] for name, array in every.items()}, len(kept)
        if not kept:
            return
        plain = forms.reference(model, forms.each(broken, graph))
        simpler = optimize(model)
        with TemporaryDirectory() as folder:
            made: dict[str, Callable[[], Outputs]] = {
                "interpreter": lambda: forms.of_model(model, broken),
                "C": lambda: forms.in_c(model, broken, Path(folder), count),
                "ONNX": lambda: forms.in_onnx(to_bytes(model, "onnx"), graph, broken, count),
                "optimize": lambda: forms.of_model(simpler, broken),
            }
            if any(op.kind in UNSAID for op in graph.ops):
                del made["ONNX"]
            for name, form in made.items():
                job = ("NaN", f"NaN in {name}")
                with self._watched(job):
                    self._see(job, "differs", judging.unequal(form(), plain))


def _has_words(file: Model) -> bool:
    """Return whether tensors of a file are integers of 16 bits."""
    return any(value.dtype == TensorType.INT16 for value in file.graph.values)


def _is_simulated(file: Model) -> bool:
    """Return whether operators of a file are computed in floats in place of its integers."""
    interpreter = Interpreter(file)
    interpreter.allocate_tensors()
    return bool(interpreter.plan.simulated)


def _on_integers(op: Op) -> bool:
    return any(v is not None and v.dtype in ACTIVATIONS for v in op.operands)


def _no_sentence(text: str) -> Iterator[str]:
    """Say what is wrong with a refusal."""
    own_fault = "what is to be saved could not be loaded" in text
    if not text or "\n" in text or len(text) > _LONGEST or "Error:" in text or own_fault:
        yield repr(text[:300])


def _short(text: str) -> str:
    """Take the names and numbers out of a sentence."""
    return re.sub(r"'[^']*'|[0-9]+", "_", text)[:70]
