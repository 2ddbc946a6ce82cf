"""Every way to quantize asks the same first: is the network quantized already, and by what; files
whose constants alone are smaller are taken for the real numbers that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Model, TensorType
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.search import auto_bits
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.published.options import SeedOptions
from tests.lquantizer.runs import QUICK
from tests.networks import network, random

X = random(50, 60, 20)
SCHEMES = {"int8": X, "w4a4": X, "from_fake_quant": X, "mixed": X, "dynamic": None, "float16": None}
CONFIG = {"layers": [{"pattern": "*", "scheme": "int8"}]}
ENDS = {"input_type": "float32", "output_type": "float32"}
INTO = Path("unused")


def scheme_of(scheme: str, data: Array | None) -> Callable[[Model], object]:
    return lambda model: luciole.quantize(model, data, scheme=scheme, proof=False)


def of_choices(choices: Mapping[str, object], data: Array | None = X) -> Callable[[Model], object]:
    return lambda model: luciole.quantize(model, data, proof=False, **choices)  # type: ignore[arg-type]


def finetuned(model: Model) -> object:
    return luciole.finetune(luciole.quantize(network(), X), model, X, epochs=1)


DOORS: dict[str, Callable[[Model], object]] = {
    **{scheme: scheme_of(scheme, data) for scheme, data in SCHEMES.items()},
    "learned": of_choices({"encode_bits": 2}),
    "published": of_choices({"encode_bits": 2, "method": "published"}),
    "auto_bits": of_choices({"target_drop": 5.0}),
    "weights only": of_choices({"encode_bits": 2, "weights_only": True}),
    "config": of_choices({"config": CONFIG}),
    "minifloat": of_choices({"scheme": "minifloat", "exponent": 4, "mantissa": 3}, None),
    "one": of_choices({"compatible": "one", "scheme": "uint8", **ENDS}),
    "sensitivity": lambda model: luciole.sensitivity(model, X),
    "search": lambda model: luciole.search(model, X, INTO, SearchOptions()),
    "seed": lambda model: luciole.search(model, X, INTO, SeedOptions()),
    "teacher": finetuned,
}


def of_integers() -> Model:
    return luciole.quantize(network(), X, scheme="int8", **QUICK).model


def of_levels() -> Model:
    return luciole.quantize(network(), X, encode_bits=2, proof=False).model


def of_bcq() -> Model:
    return luciole.quantize(network(), X, encode_bits=2, weights_only=True, proof=False).model


def of_minifloats() -> Model:
    return luciole.quantize(
        network(), scheme="minifloat", exponent=4, mantissa=3, proof=False
    ).model


CAUSES = {
    of_integers: r"tensor '.*' is INT8: .* with what luciole quantize --simulate makes of this one",
    of_levels: r"LQ_FULLY_CONNECTED '.*' has learned levels: begin with the float network",
    of_bcq: r"BCQ_FULLY_CONNECTED '.*' has learned levels: begin with the float network",
    of_minifloats: r"\(Minifloat.*\) '.*' is of minifloats: begin with the float network",
}


@cache
def content_of(made: Callable[[], Model]) -> bytes:
    """A quantized network's file, made once: a door that changes what it reads changes no other."""
    return to_bytes(made())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("made", CAUSES, ids=lambda made: made.__name__)
def test_every_door_refuses_what_is_quantized_already(
    door: str, made: Callable[[], Model], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QuantizeError, match=rf"is quantized already: .*{CAUSES[made]}"):
        DOORS[door](from_bytes(content_of(made)))
    assert not list(tmp_path.iterdir())


def constants(model: Model) -> dict[str, bytes]:
    """Contents of all constants by what reads them: names tell where they came from."""
    return {
        f"{number} {op.kind} {slot}": value.data.tobytes()
        for number, op in enumerate(model.graph.ops)
        for slot, value in enumerate(op.operands)
        if value is not None and value.data is not None
    }


def halved() -> Model:
    """The network with its weights rounded to half precision by NumPy."""
    model = network()
    for value in model.graph.values:
        if value.data is not None and value.dtype == TensorType.FLOAT32 and len(value.dims) > 1:
            value.set_data(value.data.astype(np.float16).astype(np.float32))
    return model


@pytest.fixture
def few_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave some of the options that widths are chosen among."""
    monkeypatch.setattr(auto_bits, "OPTIONS", ("levels:w2a8", "int:w4a8", auto_bits.BYTES))


LEARNED = ("learned", "published", "auto_bits", "weights only", "minifloat", "one")


@pytest.mark.usefixtures("few_options")
@pytest.mark.parametrize("door", LEARNED)
def test_half_precision_is_taken_for_the_real_numbers(door: str) -> None:
    half = luciole.quantize(network(), scheme="float16").model
    assert "DEQUANTIZE" in {op.kind for op in half.graph.ops}
    found, wanted = DOORS[door](half), DOORS[door](halved())
    assert isinstance(found, luciole.api.Result)
    assert isinstance(wanted, luciole.api.Result)
    assert constants(found.model) == constants(wanted.model)


@pytest.mark.usefixtures("few_options")
@pytest.mark.parametrize("door", LEARNED)
def test_what_simulate_makes_is_taken(door: str) -> None:
    """The way out that the sentence names: weights are those of the integers."""
    found = DOORS[door](luciole.simulate(of_integers()).model)
    assert isinstance(found, luciole.api.Result)
    (y,) = luciole.Interpreter(found.model).run({"x": X[:1]}).values()
    (wanted,) = luciole.Interpreter(network()).run({"x": X[:1]}).values()
    assert np.abs(y - wanted).max() < 0.5
