"""``python -m benchmarks.kinds``: each of its models gives what LiteRT gives; nothing is timed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import kinds, kinds_elements, kinds_keras, kinds_networks
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Model
from tests.support import litert

LISTED = [*kinds_elements.kinds(), *kinds_networks.kinds()]
MODELS: dict[str, Model | bytes] = {n: m for n, m in LISTED if not n.endswith(".tflite")}

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("name", MODELS)
def test_a_kind_gives_what_litert_gives(name: str) -> None:
    content = kinds.content_of(MODELS[name])
    ours = Interpreter(from_bytes(content))
    ours.allocate_tensors()
    given = []
    for detail in ours.get_input_details():
        given.append(kinds.random_input(detail["shape"], np.dtype(detail["dtype"])))
        ours.set_tensor(detail["index"], given[-1])
    ours.invoke()
    theirs = litert(content, given, "BUILTIN_REF")
    for detail, wanted in zip(ours.get_output_details(), theirs, strict=True):
        found = ours.get_tensor(detail["index"])
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_a_row_names_what_numpy_runs() -> None:
    row = kinds.measured(("some", MODELS["LayerNorm, SQUARED_DIFFERENCE float"]), rounds=1)
    assert (row.kind, row.numpy) == ("some", [])
    assert row.ratio == row.litert_us / row.luciole_us
    assert kinds.line(row).startswith("some | ")


def test_names_are_told_apart() -> None:
    assert len(dict(LISTED)) == len(LISTED)


def test_every_file_of_kinds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds_keras, "kinds", lambda: iter([("converted", b"")]))
    found = [name for name, _ in kinds.kinds()]
    assert {*dict(LISTED), "converted"} <= set(found)
