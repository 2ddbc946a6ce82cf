"""What notebooks and interactive sessions show of models, results and interpreters."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import luciole
from luciole.drawing import notebook
from luciole.drawing.notebook import html_of
from luciole.ir import Graph, Model
from tests.networks import network, random
from tests.tools.view.graphs import HOSTILE, hostile


@pytest.fixture(scope="module")
def result() -> luciole.Result:
    """A network of 2 bits."""
    return luciole.quantize(network(), random(1, 60, 20), encode_bits=2)


def tree(shown: object) -> ElementTree.Element:
    """The HTML that is shown, which is well formed."""
    found = html_of(shown)
    assert found is not None
    return ElementTree.fromstring(f"<div>{found}</div>")


def words(shown: object) -> list[str]:
    return [text for text in tree(shown).itertext() if text.strip()]


def test_texts_are_short_and_say_what_it_is(result: luciole.Result) -> None:
    model = network()
    size = sum(v.data.nbytes for v in model.graph.values if v.data is not None)
    assert repr(model) == f"<Model: 1 graph, 3 operators, {size:,} bytes of constants>"
    assert repr(model.graph) == "<Graph 'main': 3 operators, 8 tensors>"
    assert repr(luciole.Interpreter(model)) == (
        f"<Interpreter of {model.graph!r}: <FLOAT32 [1,20] 'x'> -> <FLOAT32 [1,4] 'fc2'>>"
    )
    report = repr(result.report)
    assert report.startswith("<Report: 2 of 2 layers quantized, ")
    assert repr(result) == f"<Result: {result.model!r}, {report}>"


def test_texts_of_large_and_odd_models_stay_short() -> None:
    model = hostile()
    model.graph.name = "n" * 10_000
    for shown in (model, model.graph, luciole.Interpreter(network((20,) * 30))):
        assert len(repr(shown)) < 1000
        assert repr(shown).isprintable()
    assert repr(Model()) == "<Model: 0 graphs, 0 operators, 0 bytes of constants>"
    assert repr(Graph(None)) == "<Graph None: 0 operators, 0 tensors>"


def test_a_model_is_drawn() -> None:
    found = network()._repr_html_()
    assert found is not None
    said = words(network())
    assert said[0] == repr(network())
    assert said.count("FullyConnected") == 2
    assert "Tanh" in said


def test_a_result_has_the_reports_table_and_the_drawing(result: luciole.Result) -> None:
    said = words(result)
    assert said[0] == repr(result.report)
    rows = ["".join(row.itertext()) for row in tree(result).iter("tr")]
    assert rows == ["".join(row) for row in result.report.rows()]
    assert said.count("LQFullyConnected") == 2


def test_names_are_text() -> None:
    found = html_of(hostile())
    assert found is not None
    assert "<script" not in found
    assert "<img" not in found
    assert not [a for e in tree(hostile()).iter() for a in e.attrib if a.startswith("on")]
    assert HOSTILE[0] in words(hostile())


def test_what_cannot_be_drawn_shows_its_text(
    result: luciole.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert html_of(Model()) is None
    assert html_of(np.zeros(2)) is None
    monkeypatch.setattr(notebook, "MOST_DRAWN", 2)
    assert html_of(network()) is None
    assert html_of(result) is not None


def test_the_names_of_the_package_are_its_public_ones() -> None:
    assert dir(luciole) == sorted(luciole.__all__)
    for name in dir(luciole):
        assert getattr(luciole, name) is not None


def test_the_viewer_is_loaded_when_a_notebook_asks() -> None:
    program = (
        "import sys, luciole\n"
        "model = luciole.load(luciole.__path__[0] + '/demo_data/digits.circle')\n"
        "print('luciole.drawing.svg' in sys.modules, '<svg' in model._repr_html_())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr
