"""The parts of the site that are made from the code."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import pytest

from docs.generate import chart, graph, passes, programs, quantization, rooms, times
from docs.generate.hooks import (
    PARTS,
    PROGRAMS,
    first_page,
    on_config,
    on_page_content,
    on_page_markdown,
)
from luciole.tools.main import PROGRAMS as LISTED
from luciole.tools.main import main
from luciole.tools.one.table import ALIASES
from tests.test_layers import MAY_IMPORT

TRIANGLE = {"roof": {"wall", "floor"}, "wall": {"floor"}, "floor": set()}
SVG = "{http://www.w3.org/2000/svg}"


def parsed(drawing: str) -> ElementTree.Element:
    """A drawing as a browser reads it inside of a page."""
    return ElementTree.fromstring(drawing.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1))


@pytest.mark.parametrize("name", LISTED)
def test_a_programs_page_has_every_option_of_its_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    options = set(re.findall(r"^  (?:-\w.*, )?(--[\w-]+)", capsys.readouterr().out, re.M))
    page = programs.pages()[name]
    assert "--json" in options
    assert {o for o in options if not re.search(rf"^\|.*`{o}[ `]", page, re.M)} == set()


def test_a_programs_page_shows_values_choices_and_other_spellings() -> None:
    page = programs.pages()["lquantizer"]
    assert "| `--method {fit,published}` | keep each layer" in page
    assert "| `--input-model FILE` | the same" in page
    assert "The same program: `lquantizer`." in page
    assert "`-h`<br>`--help`" in page
    assert page.index("\n## Learned levels") < page.index("\n## Options")


def test_the_list_of_programs_links_to_pages() -> None:
    assert "| [`luciole bench`](bench.md) | `circle-bench` | time a model" in programs.table()
    assert programs.table().count("\n| [") == len(LISTED)


def test_the_navigation_gets_the_programs_pages() -> None:
    named = [f"{PROGRAMS}/index.md"]
    config: Any = SimpleNamespace(nav=["index.md", {"Reference": [{"Programs": named}, "a.md"]}])
    on_config(config)
    assert named == [f"{PROGRAMS}/index.md", *(f"{PROGRAMS}/{name}.md" for name in LISTED)]


def test_parts_take_the_place_of_their_comments() -> None:
    page = on_page_markdown("# Rooms\n\n<!-- generated: rooms-table -->\n")
    assert page == f"# Rooms\n\n{rooms.table()}\n"
    with pytest.raises(KeyError, match="cellar"):
        on_page_markdown("<!-- generated: cellar -->")


def test_options_do_not_break_at_their_hyphens_nor_numbers_before_their_units() -> None:
    long = "benchmarks/of-a-very-long-name.py"
    block = "<pre><code>luciole view --limit 4</code></pre>"
    page = f"<p><code>--limit 4</code> <code>{long}</code></p>{block}"
    kept = '<code><span class="unbroken">--limit</span> 4</code>'
    figures = '<p title="1 KB">36.3 KB, 9 % of 5 boxes</p>'
    shown = '<p title="1 KB">36.3&nbsp;KB, 9&nbsp;% of 5 boxes</p>'
    assert on_page_content(figures) == shown
    assert on_page_content(page) == f"<p>{kept} <code>{long}</code></p>{block}"


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_not_empty(name: str) -> None:
    assert PARTS[name]().count("\n") > 3


def test_arrows_that_others_stand_for_are_left_out() -> None:
    assert graph.reduced(TRIANGLE) == {"roof": {"wall"}, "wall": {"floor"}, "floor": set()}


def test_a_drawing_has_boxes_and_arrows_downwards() -> None:
    drawing = parsed(graph.svg({name: (name, "<1>") for name in TRIANGLE}, TRIANGLE, "A house"))
    texts = [t.text for t in drawing.findall(f"{SVG}text")]
    assert sorted(filter(None, texts)) == ["<1>"] * 3 + ["floor", "roof", "wall"]
    tops = [float(r.attrib["y"]) for r in drawing.findall(f"{SVG}rect")]
    assert tops == sorted(tops)
    assert len(set(tops)) == 3
    arrows = [a.attrib["d"] for a in drawing.findall(f"{SVG}path")]
    ends = [[float(n) for n in re.findall(r"-?[\d.]+", a)] for a in arrows]
    assert len(ends) == 3
    assert all(end[1] < end[-1] for end in ends)
    left, top, width, height = map(float, drawing.attrib["viewBox"].split())
    assert all(left <= x <= left + width for end in ends for x in end[::2])
    assert all(top <= y <= top + height for end in ends for y in end[1::2])


def test_a_drawing_refuses_circles() -> None:
    with pytest.raises(ValueError, match="the graph has a cycle"):
        graph.svg({n: (n,) for n in "ab"}, {"a": {"b"}, "b": {"a"}}, "A knot")


def test_every_room_is_drawn_and_listed() -> None:
    picture, table = rooms.picture(), rooms.table()
    for room in [*MAY_IMPORT, rooms.FACE]:
        assert f">{room}</text>" in picture
        assert f"\n| `{room}` |" in table


def test_the_table_says_what_the_imports_say() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", rooms.table(), re.M))
    assert rows["schema"] == "no other room"
    assert rows["interpreter"] == "`ir`, `kernels`"
    assert "`tools`" not in "".join(rows.values())


def test_folders_that_import_each_other_share_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = {
        "tools": {"tools/data"},
        "tools/data": {"tools/common"},
        "tools/common": {"tools"},
        "tools/bench": {"tools/data", "ir"},
        "tools/proving": {"tools/common"},
        "tools/quantizing": {"tools/common"},
        "tools/search": {"tools/common"},
        "tools/view": {"tools"},
        "tools/view/model_explorer": {"tools/view"},
    }
    monkeypatch.setattr(rooms, "folder_imports", lambda: imports)
    text = rooms.folders()
    (drawing,) = re.findall(r"<svg[^>]*folder of tools .*?</svg>", text, re.S)
    assert len(parsed(drawing).findall(f"{SVG}rect")) == 10
    assert len(parsed(drawing).findall(f"{SVG}path")) == 6
    assert "The folders of tools. Those in one box import each other." in text


def test_every_option_of_ones_programs_is_on_the_page() -> None:
    page = PARTS["one-options"]()
    for alias in ALIASES:
        assert f"### `{f'{alias.name} {alias.when}'.strip()}`" in page
        assert f"| `{alias.name}` | `luciole {alias.program}` |" in PARTS["one-programs"]()
        for option in alias.all_options():
            assert f"`{option.name}`" in page
    assert "| `-d`, `--input_data` DATA | `--data` | without it 3 random records |" in page
    assert "| `--fuse_bcq` | refused | BCQ operators are read" in page


def test_every_pass_is_in_the_reference() -> None:
    assert (
        "## fuse_batch_norm\n\n::: luciole.ir.passes.folding.fuse_batch_norm\n"
        in passes.directives()
    )
    assert "__init__" not in passes.directives()
    assert "| TRANSPOSE(<wbr>TRANSPOSE(x)) -> " in passes.table(), (
        "operators in operators may break"
    )


def test_the_chart_shows_its_figures() -> None:
    """``python3 -m docs.generate.pictures`` draws it anew."""
    figures = chart.figures()
    assert chart.DRAWING.read_text("utf-8") == chart.chart(figures)
    titles = {t.text for t in ElementTree.fromstring(chart.chart(figures)).iter(f"{SVG}title")}
    points = [point for network in figures["networks"] for point in network["points"]]
    assert len(titles) == len(points)
    assert "AI Edge Quantizer, weights 4: 86.3 % in 36.1 KB" in titles
    assert "onnxruntime 1.32" in figures["source"]


def test_the_drawing_of_levels_has_one_line_for_each() -> None:
    drawing = parsed(quantization.levels())
    kinds = [path.get("class") for path in drawing.findall(f"{SVG}path")]
    assert (kinds.count("level"), kinds.count("threshold")) == (4, 3)


def test_the_first_page_is_readme_with_links_from_docs() -> None:
    readme = (
        '# name\n\nA [page](docs/a.md), a [file](NOTICE), "docs/assets/b.png".\n\n## Reading on\n'
    )
    assert first_page(readme) == '\nA [page](a.md), a file, "assets/b.png".\n'


def test_the_chart_of_times_shows_what_the_table_of_figures_says() -> None:
    figures = times.figures()
    assert times.DRAWING.read_text("utf-8") == times.times(figures)
    page = (chart.ASSETS.parent / "reference" / "figures.md").read_text("utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ")]
    for network in figures["networks"]:
        (row,) = [row for row in rows if row.startswith(f"| {network['name']} |")]
        cells = [float(cell.split()[0]) for cell in row.strip("| ").split(" | ")[1:8]]
        assert cells == [*network["luciole"], network["int8"], cells[5], network["float32"]]
