"""The page and the picture as files: what is in them, and what cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import luciole
from luciole.drawing import page
from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Subject, document
from luciole.drawing.svg import svg
from tests.tools.view.conftest import View
from tests.tools.view.graphs import HOSTILE, hostile, nested, odd

FOLDER = Path(page.__file__).parent / "page"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_is_made_of_every_module_and_holds_them_in_order() -> None:
    assert {p.stem for p in FOLDER.glob("*.js")} == set(page.MODULES)
    seen: set[str] = set()
    for name in page.MODULES:
        text = (FOLDER / f"{name}.js").read_text()
        imports = set(re.findall(r'from "\./(\w+)\.js"', text))
        assert imports <= seen, name
        seen.add(name)


def test_every_import_is_exported_and_used() -> None:
    for name in page.MODULES:
        text = (FOLDER / f"{name}.js").read_text()
        for names, source in re.findall(r'import \{(.*?)\} from "\./(\w+)\.js"', text, re.DOTALL):
            there = (FOLDER / f"{source}.js").read_text()
            for word in (n.strip() for n in names.split(",") if n.strip()):
                assert re.search(rf"^export .*\b{word}\b", there, re.MULTILINE), (name, word)
                assert len(re.findall(rf"\b{word}\b", text)) > 1, (name, word)


def test_every_module_and_class_says_what_it_is_for_and_nothing_writes_markup() -> None:
    for name in page.MODULES:
        text = (FOLDER / f"{name}.js").read_text()
        assert text.startswith("// "), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_the_page_names_no_address_but_that_of_the_svg_vocabulary(view: View) -> None:
    path = view(Path(luciole.__path__[0]) / "demo_data/digits.circle")
    text = path.read_text()
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "connect-src 'none'" in text
    assert len(text) < 400_000


def test_nothing_in_a_model_ends_the_element_that_holds_it() -> None:
    text = page.html(document([Subject(hostile(), HOSTILE[1])], Blobs()), {})
    assert text.count("<script") == text.count("</script>") == 3
    assert "<img" not in text
    assert text.count("{{") == 0 or "{{DOCUMENT}}" in text
    inside = re.search(r'id="document">(.*?)</script>', text, re.DOTALL)
    assert inside is not None
    names = {t["name"] for t in json.loads(inside[1])["models"][0]["graphs"][0]["tensors"]}
    assert HOSTILE[0] in names


def test_a_served_page_may_ask_its_own_server_only() -> None:
    made = document([Subject(nested(), "m")], Blobs())
    made["served"] = True
    assert "connect-src 'self';" in page.html(made, {})


def test_an_odd_model_becomes_json_that_every_reader_takes() -> None:
    made = document([Subject(odd(), "m")], Blobs())
    graph = made["models"][0]["graphs"][0]
    json.dumps(made, allow_nan=False)
    assert [n["title"] for n in graph["nodes"]] == [
        "x", "Relu", "Relu", "CUSTOM(Odd)", "LQFullyConnected", "x", "later"
    ]  # fmt: skip
    drawn = {(a, b) for a, b, *_ in graph["flat"]["vertical"]["edges"]}
    assert all(a < b for a, b in drawn)
    assert "levels" not in graph["nodes"][4]


def picture(model: luciole.Model, direction: str = "vertical") -> ElementTree.Element:
    graph = document([Subject(model, "m")], Blobs())["models"][0]["graphs"][0]
    return ElementTree.fromstring(svg(graph, direction, "a <title> & more"))


def test_the_picture_is_well_formed_and_shows_hostile_names_as_text() -> None:
    root = picture(hostile())
    assert not list(root.iter(f"{SVG}script"))
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert titles[0] == "a <title> & more"
    assert HOSTILE[0] in titles
    assert not [a for element in root.iter() for a in element.attrib if a.startswith("on")]


def test_the_picture_of_a_damaged_file_has_the_whole_error_above_it() -> None:
    wrong = (
        "error [DTYPE] subgraphs[0].operators[3]: FullyConnected 'net/"
        + "block/" * 40
        + "op' is odd"
    )
    graph = document([Subject(nested(20), "m")], Blobs())["models"][0]["graphs"][0]
    plain, root = (
        ElementTree.fromstring(svg(graph, "vertical", "m", wrong=w)) for w in (None, wrong)
    )
    lines = [t for t in root.iter(f"{SVG}text") if t.get("fill") == "#b3261e"]
    assert "".join(t.text or "" for t in lines).replace(" ", "") == wrong.replace(" ", "")
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    for t in lines:
        x, wide = (float(t.attrib[name]) for name in ("x", "textLength"))
        assert left < x
        assert x + wide < left + width
    heights = [float(t.attrib["y"]) for t in lines]
    assert top + 10 < heights[0]
    assert np.diff(heights).tolist() == [16] * (len(lines) - 1)
    assert height - float(plain.attrib["height"]) == 16 * (len(lines) - 1) > 0


def test_the_picture_has_every_operator_and_edge() -> None:
    for direction in ("vertical", "horizontal"):
        root = picture(nested(60), direction)
        words = [t.text for t in root.iter(f"{SVG}text")]
        assert words.count("Relu") + words.count("FullyConnected") + words.count("AddN") == 60
        (edges,) = [g for g in root.iter(f"{SVG}g") if g.get("fill") == "none"]
        assert len(edges) == len(nested_edges(60))


def nested_edges(nodes: int) -> set[tuple[str, str]]:
    """Who gives to whom, inputs and outputs included."""
    graph = nested(nodes).graph
    edges = {(v.name, use.op.name) for v in graph.values if not v.is_constant for use in v.users}
    return edges | {(v.name, "out") for v in graph.outputs}


def test_the_picture_of_a_large_model_has_its_groups_closed() -> None:
    root = picture(nested(450))
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert "stage3" in words
    assert "40 operators" in words
    assert "AddN" not in words
