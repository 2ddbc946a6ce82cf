"""Split records, and prove a network: judge the bytes of its file on records that taught it
nothing.

Every figure of a proof is of the network as it was read back from the bytes that are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.answers import Reference
from luciole.interpreter.compare import paired_outputs, real_numbers, second_inputs
from luciole.interpreter.errors import InputError
from luciole.interpreter.records import Records, batch_size, digest, digests, run_records
from luciole.ir import Array, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.names import called
from luciole.ir.quantization import affine_of
from luciole.ir.value import shape_text
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.proof import Fidelity, OutputProof, Proof
from luciole.lquantizer.report import error_of
from luciole.lquantizer.uniform.simulate import simulate

HELD_BACK, SAME, MADE_UP = "held back", "that it was learned from", "made up"
"""Where the records of a proof come from: "on 100 records held back"."""
_SHARE, _FEWEST, _MOST = 10, 8, 256
"""One record in so many is held back, of at least and at most this number."""
_MADE_UP = 16
"""Records that are made up where there are none."""
_SAME_DB = 60.0
"""What a file that computes the same but for rounding keeps at least: sums in another order leave
100 dB and more, networks that magnify them less."""
Run = Callable[[Sequence[Array]], list[Array]]
"""Runs all records of a file's inputs, in their order, and returns its outputs in their order, the
first axis counting records; raises LucioleError for a file that it refuses or that crashes it.
"""


@dataclass(frozen=True)
class Runtime:
    """What else runs a file; ``caveat`` says why its results may be far from ours although the file
    is right, where there is such a reason.
    """

    run: Run
    caveat: str = ""


@dataclass(frozen=True)
class Judges:
    """Records by the name of the float network's inputs, and where they come from."""

    records: Records
    origin: str = HELD_BACK

    @property
    def count(self) -> int:
        """Number of records."""
        return len(next(iter(self.records.values())))

    @classmethod
    def made_up(cls, model: Model, seed: int = 0) -> Self:
        """Make records for a network without any: normal numbers, within the range of an input that
        states one, and zeros or ones for an input that counts or tells.
        """
        generator = np.random.default_rng(seed)
        inputs = model.graph.inputs
        return cls({v.name: _made_up(v, generator) for v in inputs}, MADE_UP)


def _made_up(value: Value, generator: np.random.Generator) -> Array:
    """Make records [_MADE_UP, ...] of an input."""
    dims = [1 if extent is None else extent for extent in value.shape]
    shape = (_MADE_UP, *(dims[1:] if dims[:1] == [1] else dims))
    affine, dtype = affine_of(value), NUMPY.get(value.dtype)
    if affine is not None:
        low, high = affine.range
        return affine.encode(generator.uniform(low[0], high[0], shape))
    if dtype is None or dtype.kind not in "fiub":
        raise QuantizeError(f"input {value.name!r} is {value.dtype.name}: no records are made up")
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


@dataclass(frozen=True)
class Split:
    """Records that a network is learned from, with their labels if there are any, and those that
    judge it.
    """

    learned: Records
    judges: Judges
    labels: Array | None = None

    @classmethod
    def of(
        cls,
        records: Records,
        most: int | None = None,
        labels: Array | None = None,
        known: Container[bytes] = (),
    ) -> Self:
        """Hold back a tenth of the records where there are at least 8, of those whose ``digest`` is
        not ``known`` where there are such; of fewer, all teach and judge.

        With ``most`` the first of them teach, and those behind judge where there are any.
        """
        count = len(next(iter(records.values())))
        places = np.arange(count)
        if most is not None and count > most:
            judging = spread(places[most:], _MOST)
            teachers = places[:most]
        elif count >= _FEWEST:
            new = places[[not known or digest(records, int(n)) not in known for n in places]]
            judging = spread(new if len(new) else places, min(_MOST, max(1, count // _SHARE)))
            teachers = np.delete(places, judging)
        else:
            return cls.same(records, labels)
        taught = None if labels is None else labels[teachers]
        return cls(_taken(records, teachers), Judges(_taken(records, judging)), taught)

    @classmethod
    def same(cls, records: Records, labels: Array | None = None) -> Self:
        """Let all records teach, and judge as well."""
        return cls(records, Judges(records, SAME), labels)

    @classmethod
    def judged_by(cls, records: Records, judges: Records, labels: Array | None = None) -> Self:
        """Let all records teach, and others judge."""
        is_new = digests(records).isdisjoint(digests(judges))
        return cls(records, Judges(judges, HELD_BACK if is_new else SAME), labels)


def judges_beside(learned: int) -> int:
    """Count the records to read behind those that are learned from, so that all of these teach."""
    return min(_MOST, max(_MADE_UP, learned // _SHARE))


def spread(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Choose at most so many places, evenly far apart, the last one among them."""
    count = min(most, len(places))
    return places[((np.arange(count) + 1) * len(places) // max(count, 1)) - 1]


def _taken(records: Records, places: NDArray[np.intp]) -> Records:
    return {name: array[places] for name, array in records.items()}


def simulation_of(result: Result) -> Model:
    """Return the network in memory that a report's figures are of."""
    return simulated(result.model) if result.rounded is None else result.rounded.model


def simulated(model: Model) -> Model:
    """Let a network of integers compute with floats; one without integers is returned itself."""
    try:
        return simulate(model).model
    except LucioleError:
        return model


def prove(
    reference: Model,
    read: Callable[[], Model],
    judges: Judges,
    simulation: Model | None = None,
    runtimes: Mapping[str, Runtime] | None = None,
    *,
    same: bool = False,
) -> Proof:
    """Judge a file, which ``read`` loads from its bytes, by the float network that it stands for,
    beside its simulation in memory, if there is one, and beside what other runtimes make of it.
    With ``same`` it has to compute what the float network does, but for rounding.

    Raises LucioleError where the float network does not run on records that were not made up.
    """
    begun = time.perf_counter()
    proof = Proof(judges.count, judges.origin)
    try:
        trial = _Trial(proof, reference, judges.records, _SAME_DB if same else None)
    except LucioleError as error:
        if judges.origin != MADE_UP:
            raise
        proof.notes.append(f"none, the float network does not run on records made up: {error}")
        return proof
    try:
        trial.judge(read(), simulation, runtimes or {})
    except LucioleError as error:
        proof.faults.append(f"it cannot be read or run: {error}")
    proof.seconds = time.perf_counter() - begun
    return proof


class _Trial:
    """The float network's outputs, and a proof that is being filled."""

    def __init__(
        self, proof: Proof, model: Model, records: Records, least_db: float | None
    ) -> None:
        self._proof, self._graph, self._records = proof, model.graph, records
        self._least_db = least_db
        outputs = [value for value, _ in paired_outputs(model.graph, model.graph)]
        self._names = [called(value) for value in outputs]
        numbers = self._numbers(model)
        self._references = [Reference.of(v, n) for v, n in zip(outputs, numbers, strict=True)]

    def judge(
        self, written: Model, simulation: Model | None, runtimes: Mapping[str, Runtime]
    ) -> None:
        """Enter the figures of the file, of its simulation and of runtimes, and all faults. Raises
        LucioleError where the file does not run.
        """
        file = self._judged(self._numbers(written), "")
        simulated = None if simulation is None else self._fidelities(self._numbers(simulation))
        elsewhere = dict(self._in_runtimes(written, runtimes))
        for place, name in enumerate(self._names):
            others = {kind: fidelities[place] for kind, fidelities in elsewhere.items()}
            beside = None if simulated is None else simulated[place]
            output = OutputProof(name, file[place], beside, others)
            self._proof.outputs.append(output)
            self._enter_faults(output, _count_answers(self._references[place]), runtimes)

    def _enter_faults(
        self, output: OutputProof, answers: int, runtimes: Mapping[str, Runtime]
    ) -> None:
        """Enter what is far from what, in one output of so many answers."""
        name, file, simulation = f"output {output.name!r} keeps", output.file, output.simulation
        if simulation is not None and file.is_far_from(simulation, answers):
            self._proof.faults.append(f"{name} {file} where its simulation keeps {simulation}")
        if self._least_db is not None and file.snr_db is not None and file.snr_db < self._least_db:
            self._proof.faults.append(f"{name} {file} where nothing but rounding may differ")
        for kind, other in output.runtimes.items():
            caveat, far = runtimes[kind].caveat, f"{name} {other} in {kind} where luciole keeps"
            if other.is_far_from(file, answers) and caveat:
                self._proof.notes.append(f"{far} {file}: {caveat}")
            elif other.is_far_from(file, answers):
                self._proof.faults.append(f"{far} {file}")

    def _in_runtimes(
        self, written: Model, runtimes: Mapping[str, Runtime]
    ) -> Iterator[tuple[str, list[Fidelity]]]:
        """Run the file elsewhere; a runtime that refuses it is noted."""
        fed = second_inputs(self._graph, written.graph, self._records)
        for kind, runtime in runtimes.items():
            try:
                arrays = runtime.run([fed[value.name] for value in written.graph.inputs])
            except LucioleError as error:
                self._proof.notes.append(f"{kind} does not run the file: {error}")
                continue
            results = dict(zip(written.graph.outputs, arrays, strict=True))
            yield kind, self._judged(self._paired(written, results), f" in {kind}")

    def _numbers(self, model: Model) -> list[Array]:
        """Compute a network's outputs as real numbers, in the order of the float network's."""
        interpreter = Interpreter(model)
        fed = second_inputs(self._graph, model.graph, self._records)
        parts = list(run_records(interpreter, fed, batch=batch_size(interpreter, fed)))
        arrays = {v: np.concatenate([part[v.name] for part in parts]) for v in model.graph.outputs}
        return self._paired(model, arrays)

    def _paired(self, model: Model, arrays: Mapping[Value, Array]) -> list[Array]:
        """Decode the outputs [records, ...] of a network, in the order of the float network's."""
        pairs = paired_outputs(self._graph, model.graph)
        return [real_numbers(second, arrays[second]) for _, second in pairs]

    def _judged(self, numbers: Sequence[Array], where: str) -> list[Fidelity]:
        """Measure outputs, and enter a fault where one is not finite although the float network's
        is.
        """
        outputs = zip(self._names, self._references, numbers, strict=True)
        for name, reference, array in outputs:
            lost = np.isfinite(reference.numbers) & ~np.isfinite(_alike(array, reference))
            if count := int(lost.reshape(len(lost), -1).any(1).sum()):
                fault = f"output {name!r}{where} becomes NaN or infinite for {count} records"
                self._proof.faults.append(fault)
        return self._fidelities(numbers)

    def _fidelities(self, numbers: Sequence[Array]) -> list[Fidelity]:
        pairs = zip(self._references, numbers, strict=True)
        return [fidelity(reference, array) for reference, array in pairs]


def fidelity(reference: Reference, numbers: Array) -> Fidelity:
    """Measure an output [records, ...] where the float network's is finite. Raises InputError for
    another number of elements.
    """
    numbers = _alike(numbers, reference)
    known = np.isfinite(reference.numbers)
    if not known.any():
        return Fidelity(None, None)
    _, snr_db = error_of(reference.numbers[known], np.nan_to_num(numbers[known]))
    return Fidelity(snr_db, reference.agreement(numbers))


def _alike(numbers: Array, reference: Reference) -> Array:
    """Give an output the float network's shape, which may differ by axes of extent 1."""
    if numbers.size != reference.numbers.size:
        shapes = f"{shape_text(numbers.shape)} where {shape_text(reference.numbers.shape)} is"
        raise InputError(f"an output is {shapes} in the float network")
    return numbers.reshape(reference.numbers.shape)


def _count_answers(reference: Reference) -> int:
    return reference.numbers.size // (reference.numbers.shape[-1] if reference.has_classes else 1)
