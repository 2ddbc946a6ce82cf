"""What the documents show is what the repository holds, and what they say to type works."""

from __future__ import annotations

import pkgutil
import re
import shlex
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.generate.hooks import PARTS
from docs.generate.programs import own_name
from luciole.importers.reader import readers
from luciole.tools.common.command import with_dashes
from luciole.tools.main import PROGRAMS, parser_of
from luciole.tools.one.command import translated
from luciole.tools.one.table import names
from tests.compiler_support import needs_compiler
from tests.docs_run import blocks, run_page

ROOT = Path(__file__).parent.parent
PAGES = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))
EXAMPLE = (
    "luciole/ir/ops/expand_dims.py",
    "luciole/kernels/expand_dims.py",
    "tests/ops/test_expand_dims.py",
    "luciole/kernels/leaky_relu.py",
    "tests/ops/test_leaky_relu.py",
)
MOST_WORDS = 600
"""Words of a how-to, those of its code among them."""

INSTALLED = ("mkdocs", "mypy", "pip", "ruff", "venv")
"""Modules of other packages than those that the tests need."""

NAMES = {own_name(name): name for name in PROGRAMS} | {f"luciole {n}": n for n in PROGRAMS}
"""Programs by what people type."""

every_document = pytest.mark.parametrize("document", ["README.md", "examples/README.md", *PAGES])


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """Every command line of a page, from fenced and from indented blocks."""
    typed = [body for language, _, body, *_ in blocks(text) if language == "sh"]
    starts = "|".join({name.partition(" ")[0] for name in NAMES})
    typed += re.findall(rf"^ {{4}}((?:{starts}) (?:.*\\\n)*.*)$", text, re.M)
    lines = "\n".join(typed).replace("\\\n", " ").splitlines()
    return [line.partition(" || ")[0] for line in lines if line.strip()]


def test_the_example_operator_is_shown_as_it_is() -> None:
    pages = [text_of(f"docs/how-to/{name}-an-operator.md") for name in ("add", "compile")]
    shown = [b.body.rstrip("\n") for page in pages for b in blocks(page) if b.language == "python"]
    sources = [text_of(name) for name in EXAMPLE]
    assert len(shown) == 5
    for block in shown:
        assert any(block in source for source in sources), block


@every_document
def test_links_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(document)):
        path = (ROOT / document).parent / target
        generated = path.parent.name == "programs" and path.stem in PROGRAMS
        assert generated or path.exists(), target


def anchors(text: str) -> set[str]:
    """The fragments by which links find the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@every_document
def test_links_find_their_headings(document: str) -> None:
    """Those of the Python interface are made when the site is built."""
    for target, fragment in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text_of(document)):
        page = (ROOT / document).parent / target if target else ROOT / document
        if page.exists() and not fragment.startswith("luciole."):
            assert fragment in anchors(page.read_text("utf-8")), f"{target}#{fragment}"


@every_document
def test_named_files_are_there(document: str) -> None:
    rooms = "luciole|tests|docs|benchmarks|examples"
    for name in re.findall(rf"`((?:{rooms})/[\w./-]+)`", text_of(document)):
        assert "NAME" in name or (ROOT / name).exists(), name


@every_document
def test_commands_are_understood(document: str) -> None:
    for command in commands(text_of(document)):
        words = shlex.split(command, comments=True)
        name = next((n for n in NAMES if words[: len(n.split())] == n.split()), None)
        if name is not None:
            rest = words[len(name.split()) :]
            parser_of(NAMES[name]).parse_args(with_dashes(rest))
        elif words[0] in names():
            assert translated(words[0], words[1:])
        elif words[:2] == ["python3", "-m"] and words[2] not in INSTALLED:
            assert find_spec(words[2]) is not None, command


@pytest.mark.parametrize("document", [page for page in PAGES if "coming-from-one" not in page])
def test_options_are_printed_with_dashes(document: str) -> None:
    """As ``--help`` has them; underscores are only said to be accepted."""
    text = text_of(document).replace("`--input_model` is `--input-model`", "")
    underscored = re.findall(r"--[a-z]+(?:_[a-z]+)+", text)
    assert [option for option in underscored if option.replace("_", "-") in own_options()] == []


@cache
def own_options() -> set[str]:
    """The options of all programs."""
    actions = [action for name in PROGRAMS for action in parser_of(name)._actions]
    return {option for action in actions for option in action.option_strings}


@every_document
def test_the_bundled_network_is_fed_as_it_was_trained(document: str) -> None:
    """With pixels divided by 16 it is right for a third of the images."""
    text = text_of(document)
    if "digits.circle" in text:
        assert not re.search(r"\bx/16\b|/ (np\.float32\()?16\b", text)


def test_commands_are_found() -> None:
    text = "```sh\nluciole demo \\\n  --json\n```\nor\n\n    circle-view a.circle  # so\n"
    assert [c.split() for c in commands(text)] == [
        ["luciole", "demo", "--json"],
        ["circle-view", "a.circle", "#", "so"],
    ]


@pytest.mark.parametrize("document", PAGES)
def test_the_reference_names_what_there_is(document: str) -> None:
    for name in re.findall(r"^::: (\S+)$", text_of(document), re.M):
        parts = name.split(".")
        found = next(
            (m for n in range(len(parts), 0, -1) if find_module(m := ".".join(parts[:n]))), ""
        )
        assert pkgutil.resolve_name(f"{found}:{'.'.join(parts[len(found.split('.')) :])}")


def find_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what is below is a class
        return False


@pytest.mark.parametrize("document", [page for page in PAGES if "/how-to/" in page])
def test_how_tos_are_short(document: str) -> None:
    """Tables belong to docs/reference, reasons to the pages that explain."""
    assert len(text_of(document).split()) <= MOST_WORDS


@pytest.mark.parametrize("document", PAGES)
def test_generated_parts_are_known(document: str) -> None:
    assert set(re.findall(r"<!-- generated: (\S+) -->", text_of(document))) <= PARTS.keys()


def test_the_navigation_names_every_page_once() -> None:
    nav = text_of("mkdocs.yml").partition("\nnav:\n")[2].partition("\n\n")[0]
    named = re.findall(r"[\w/-]+\.md", nav)
    assert sorted(f"docs/{page}" for page in named) == PAGES


def test_a_page_says_what_every_program_is_for() -> None:
    text = text_of("docs/reference/programs/index.md")
    for name in PROGRAMS:
        assert f"luciole {name}" in text or own_name(name) in text


@pytest.mark.parametrize("document", ["docs/reference/api/index.md"])
def test_examples_name_all_that_is_read(document: str) -> None:
    forms = [form for reader in readers() for form in reader.forms]
    assert f'luciole.load("model.circle")  # {" ".join(forms)}\n' in text_of(document)


def test_a_page_names_all_that_is_read() -> None:
    forms = [f if f in r.folders else f"`{f}`" for r in readers() for f in r.forms]
    page = text_of("docs/reference/programs/index.md")
    assert f"turns what is read ({', '.join(forms)}) into" in page


AS_PRINTED = [
    ("docs/getting-started.md", "compare.html"),
    ("docs/how-to/build.md", "one.q8.circle"),
    ("docs/how-to/edit-a-graph.md", "edited.circle"),
    ("docs/how-to/run.md", "between.npz"),
    ("docs/how-to/surgery.md", "digit.tflite"),
    pytest.param(*("docs/how-to/from-keras-to-a-microbit.md", "digits_test"), marks=needs_compiler),
]
"""Pages, and a file that is there when they have run."""


@pytest.mark.parametrize(("document", "made"), AS_PRINTED)
def test_pages_work_as_printed(document: str, made: str, tmp_path: Path) -> None:
    for outcome in run_page(text_of(document), tmp_path, one_process=True):
        assert outcome.state != "failed", f"line {outcome.block.line}: {outcome.reason}"
    assert (tmp_path / made).exists()


@pytest.mark.parametrize("one_process", [False, True])
def test_a_page_fails_where_its_commands_do(tmp_path: Path, one_process: bool) -> None:
    page = """
```python title="say.py"
print("one 1")
```
```sh
python3 say.py
```
```text
one 2
```
```text
two
```
```python
x = 3
```
```python
print(x + y)
```
<!-- not run: no such machine -->
```sh
exit 3
```
```sh
exit 4
```
"""
    outcomes = [(o.state, o.reason) for o in run_page(page, tmp_path, one_process)]
    assert outcomes == [
        *[("ok", "")] * 3,
        ("failed", "not printed: two"),
        ("ok", ""),
        ("failed", "NameError: name 'y' is not defined"),
        ("not run", "no such machine"),
        ("failed", "exit code 4: "),
    ]
