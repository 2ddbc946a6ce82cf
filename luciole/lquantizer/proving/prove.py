"""Prove a network: read its file back from the bytes, run it, compare it with the float network.

Every figure of a proof is of the network as it was read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.answers import Reference
from luciole.interpreter.compare import paired_outputs, real_numbers, second_inputs
from luciole.interpreter.errors import InputError
from luciole.interpreter.records import BATCH, run_records
from luciole.ir import Array, LucioleError, Model, UnsupportedError, Value
from luciole.ir.names import called
from luciole.ir.value import shape_text
from luciole.lquantizer.calibration.watch import batch_for
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import MADE_UP, Judges
from luciole.lquantizer.proof import Fidelity, OutputProof, Proof
from luciole.lquantizer.proving.sameness import are_same_networks
from luciole.lquantizer.proving.simulation import simulated
from luciole.lquantizer.report import error_of

_SAME_DB = 60.0
"""What a file that computes the same but for rounding keeps at least: sums in another order leave
100 dB and more, networks that magnify them less."""

Run = Callable[[Sequence[Array]], list[Array]]
"""Runs all records of a file's inputs, in their order, and returns its outputs in their order, the
first axis counting records; raises LucioleError for a file that it refuses or that crashes it.
"""


@dataclass(frozen=True)
class Runtime:
    """Another runtime for files; ``caveat`` gives the reason, if there is one, why its results may
    be far from ours although the file is right.
    """

    run: Run
    caveat: str = ""


def prove(
    reference: Model,
    read: Callable[[], Model],
    judges: Judges | None = None,
    simulation: Model | None = None,
    runtimes: Mapping[str, Runtime] | None = None,
    *,
    same: bool = False,
    metric: Metric | None = None,
) -> Proof:
    """Judge a file, which ``read`` loads from its bytes, by the float network that it stands for,
    beside its simulation in memory, if there is one, and beside what other runtimes make of it.
    With ``same`` it has to compute what the float network does, but for rounding. A ``metric``
    measures both.

    Without ``judges`` records are made up; a float network that does not run on them proves
    nothing, which is noted. Raises LucioleError where it does not run on those that are given.
    """
    begun = time.perf_counter()
    least_db = _SAME_DB if same else None
    if judges is not None:
        trial = _Trial(reference, judges, least_db)
    else:
        try:
            trial = _Trial(reference, Judges.made_up(reference), least_db)
        except LucioleError as error:
            note = f"none, the float network does not run on records made up: {error}"
            return Proof(0, MADE_UP, notes=[note])
    try:
        written = read()
        trial.judge(written, simulation, runtimes or {})
        if metric is not None and judges is not None:
            trial.proof.metric = Judge(reference, judges, metric).measured(written)
    except LucioleError as error:
        trial.proof.faults.append(f"it cannot be read or run: {error}")
    trial.proof.seconds = time.perf_counter() - begun
    return trial.proof


class _Trial:
    """The float network's outputs, and a proof that is being filled."""

    def __init__(self, model: Model, judges: Judges, least_db: float | None) -> None:
        self.proof = Proof(judges.count, judges.origin)
        self._graph, self._records, self._least_db = model.graph, judges.records, least_db
        results = self._results(model)
        outputs = [value for value, _ in paired_outputs(model.graph, model.graph)]
        self._outputs = [value for value in outputs if value in results]
        self._references = [Reference.of(v, real_numbers(v, results[v])) for v in self._outputs]
        for value in outputs:
            if value not in results:
                note = f"output {called(value)!r} is not judged: its shape depends on the record"
                self.proof.notes.append(note)

    def judge(
        self, written: Model, simulation: Model | None, runtimes: Mapping[str, Runtime]
    ) -> None:
        """Enter the figures of the file, of its simulation and of runtimes, and all faults. Raises
        LucioleError where the file does not run.
        """
        file = self._judged(self._of_file(written), "")
        simulated = None if simulation is None else self._of_simulation(simulation, written, file)
        elsewhere = dict(self._in_runtimes(written, runtimes))
        for place, name in enumerate(map(called, self._outputs)):
            others = {kind: fidelities[place] for kind, fidelities in elsewhere.items()}
            beside = None if simulated is None else simulated[place]
            output = OutputProof(name, file[place], beside, others)
            self.proof.outputs.append(output)
            self._enter_faults(output, _count_answers(self._references[place]), runtimes)

    def _of_simulation(
        self, simulation: Model, written: Model, file: list[Fidelity]
    ) -> list[Fidelity]:
        """Measure a simulation; one that the file holds as it is was measured with the file."""
        if are_same_networks(simulation, written):
            return file
        return self._fidelities(self._numbers(simulation))

    def _enter_faults(
        self, output: OutputProof, answers: int, runtimes: Mapping[str, Runtime]
    ) -> None:
        """Enter the runtimes that are far from each other in one output of ``answers`` answers."""
        name, file, simulation = f"output {output.name!r} keeps", output.file, output.simulation
        if simulation is not None and file.is_far_from(simulation, answers):
            self.proof.faults.append(f"{name} {file} where its simulation keeps {simulation}")
        if self._least_db is not None and file.snr_db is not None and file.snr_db < self._least_db:
            self.proof.faults.append(f"{name} {file} where nothing but rounding may differ")
        for kind, other in output.runtimes.items():
            caveat, far = runtimes[kind].caveat, f"{name} {other} in {kind} where luciole keeps"
            if other.is_far_from(file, answers) and caveat:
                self.proof.notes.append(f"{far} {file}: {caveat}")
            elif other.is_far_from(file, answers):
                self.proof.faults.append(f"{far} {file}")

    def _in_runtimes(
        self, written: Model, runtimes: Mapping[str, Runtime]
    ) -> Iterator[tuple[str, list[Fidelity]]]:
        """Run the file elsewhere; a runtime that refuses it is noted."""
        fed = second_inputs(self._graph, written.graph, self._records)
        for kind, runtime in runtimes.items():
            try:
                arrays = runtime.run([np.asarray(fed[v.name]) for v in written.graph.inputs])
            except LucioleError as error:
                self.proof.notes.append(f"{kind} does not run the file: {error}")
                continue
            results = dict(zip(written.graph.outputs, arrays, strict=True))
            yield kind, self._judged(self._paired(written, results), f" in {kind}")

    def _of_file(self, written: Model) -> list[Array]:
        """Compute a file's outputs; those of its own simulation where a kernel is missing here."""
        try:
            return self._numbers(written)
        except UnsupportedError as error:
            simulation = simulated(written)
            if simulation is written:
                raise
            self.proof.notes.append(f"the file's simulation was judged, not the file: {error}")
            return self._numbers(simulation)

    def _numbers(self, model: Model) -> list[Array]:
        """Compute a network's outputs as real numbers, in the order of the float network's."""
        return self._paired(model, self._results(model))

    def _results(self, model: Model) -> dict[Value, Array]:
        """Compute the outputs [records, ...] of a network whose shapes do not depend on the
        record.
        """
        interpreter = Interpreter(model)
        fed = second_inputs(self._graph, model.graph, self._records)
        few = len(next(iter(fed.values()), ())) <= BATCH  # plans for batches take longer
        size = 1 if few else batch_for(interpreter, fed)
        parts = list(run_records(interpreter, fed, batch=size))
        arrays = {v: [part[v.name] for part in parts] for v in model.graph.outputs}
        return {v: np.concatenate(parts) for v, parts in arrays.items() if _are_alike(parts)}

    def _paired(self, model: Model, arrays: Mapping[Value, Array]) -> list[Array]:
        """Decode the outputs [records, ...] of a network, in the order of the float network's.
        Raises InputError for an output whose shape depends on the record only here.
        """
        others = dict(paired_outputs(self._graph, model.graph))
        for value in self._outputs:
            if others[value] not in arrays:
                raise InputError(f"the shape of output {called(value)!r} depends on the record")
        return [real_numbers(others[value], arrays[others[value]]) for value in self._outputs]

    def _judged(self, numbers: Sequence[Array], where: str) -> list[Fidelity]:
        """Measure outputs, and enter a fault where one is not finite although the float network's
        is.
        """
        for value, reference, array in zip(self._outputs, self._references, numbers, strict=True):
            lost = np.isfinite(reference.numbers) & ~np.isfinite(_alike(array, reference))
            if count := int(lost.reshape(len(lost), -1).any(1).sum()):
                fault = (
                    f"output {called(value)!r}{where} becomes NaN or infinite for {count} records"
                )
                self.proof.faults.append(fault)
        return self._fidelities(numbers)

    def _fidelities(self, numbers: Sequence[Array]) -> list[Fidelity]:
        pairs = zip(self._references, numbers, strict=True)
        return [fidelity(reference, array) for reference, array in pairs]


def _are_alike(parts: Sequence[Array]) -> bool:
    """Return whether batches of an output have one shape behind their first axis."""
    return len({part.shape[1:] for part in parts}) == 1


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
