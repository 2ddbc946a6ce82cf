"""Random and damaged models given to what rewrites them: quantizers, passes, compiler, ONNX."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import luciole
from luciole.compiler import CompileOptions, compile_model
from luciole.exporters import to_bytes
from luciole.exporters.onnx import OnnxWriter
from luciole.importers.circle.model import import_model
from luciole.importers.imported import Imported
from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records
from luciole.ir import LucioleError, Model
from luciole.ir.findings import refusal
from luciole.ir.value import has_batch_axis
from luciole.optimizing import optimize
from tests.fuzz import cases
from tests.fuzz.cases import LOOP_LIMIT, MEMORY_LIMIT, Case
from tests.fuzz.data.common import check_refusal
from tests.fuzz.models import contents
from tests.fuzz.mutations import Rng
from tests.fuzz.programs import BrokenPromiseError

_RECORDS = 4
_PLACES = (0, 4)
"""Cases of each model of the fuzzer of models that are taken: as it is, and with other tables."""


def _uniform(scheme: str) -> Callable[[Model, Records], Model]:
    return lambda model, records: luciole.quantize(model, records, scheme=scheme).model


def _alone(scheme: str) -> Callable[[Model, Records], Model]:
    return lambda model, _: luciole.quantize(model, scheme=scheme).model


def _minifloats(model: Model, _: Records) -> Model:
    return luciole.quantize(model, scheme="minifloat", exponent=4, mantissa=3).model


def _learned(model: Model, records: Records) -> Model:
    return luciole.quantize(model, records, encode_bits="w2a4").model


def _as_one(model: Model, records: Records) -> Model:
    return luciole.quantize(model, records, compatible="one", scheme="uint8").model


def _simulated(model: Model, _: Records) -> Model:
    return luciole.simulate(model).model


def _requantized(model: Model, _: Records) -> Model:
    return luciole.requantize(model, "uint8").model


def _optimized(model: Model, _: Records) -> Model:
    return optimize(model)


def _compiled(model: Model, _: Records) -> None:
    compile_model(model, CompileOptions("case"))


def _exported(model: Model, _: Records) -> None:
    list(OnnxWriter().parts(model))


JOBS: dict[str, Callable[[Model, Records], Model | None]] = {
    **{scheme: _uniform(scheme) for scheme in ("int8", "uint8", "w4a8", "int16x8")},
    **{scheme: _alone(scheme) for scheme in ("dynamic", "weights4", "float16")},
    "minifloat": _minifloats,
    "learned": _learned,
    "one": _as_one,
    "simulate": _simulated,
    "requantize": _requantized,
    "optimize": _optimized,
    "compile": _compiled,
    "onnx": _exported,
}
"""What rewrites a model, and gives another one that is to be sound."""
PER_MODEL = len(_PLACES) * len(JOBS)
"""Cases that start from the same model."""


def make(seed: int, number: int) -> Case:
    """The case of that number: models of the fuzzer of models, each for every job."""
    block, place = divmod(number // len(JOBS), len(_PLACES))
    found = cases.make(seed, block * cases.PER_MODEL + _PLACES[place])
    job = list(JOBS)[number % len(JOBS)]
    return Case(number, found.content, f"{job} of {found.what}")


def run(case: Case, seed: int) -> str:
    """Rewrite, write and read again what runs. Returns how it ended: "done" or the class of the
    refusal. Raises whatever goes wrong otherwise.
    """
    job = list(JOBS)[case.number % len(JOBS)]
    try:
        return _run(job, case.content, np.random.default_rng([seed, 3, case.number]))
    except LucioleError as error:
        check_refusal(error)
        return type(error).__name__


def _run(job: str, content: bytes, rng: Rng) -> str:
    model, findings = import_model(content)
    Imported(model, findings).sound()
    interpreter = Interpreter(model, memory_limit=MEMORY_LIMIT, loop_limit=LOOP_LIMIT)
    interpreter.allocate_tensors()
    result = JOBS[job](model, _records(rng, interpreter))
    if result is not None:
        written = Imported(*import_model(to_bytes(result)))
        refused = refusal(written.findings)
        if refused is not None:
            raise BrokenPromiseError(f"a model is written that is refused: {refused}")
    return "done"


def _records(rng: Rng, interpreter: Interpreter) -> Records:
    """Ordinary numbers for each input, and texts."""
    found = {}
    for number, value in enumerate(interpreter.graph.values):
        if value.is_input and not value.is_variable:
            array = interpreter.tensor(number)()
            shape = array.shape[1:] if has_batch_axis(value) else array.shape
            found[value.name] = contents(rng, (_RECORDS, *shape), array.dtype)
    return found
