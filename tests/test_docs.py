"""What the documents show is what the repository holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLE = (
    "luciole/ir/ops/expand_dims.py",
    "luciole/kernels/expand_dims.py",
    "tests/ops/test_expand_dims.py",
)


def test_the_example_operator_is_shown_as_it_is() -> None:
    document = (ROOT / "docs/how-to/add-an-operator.md").read_text()
    blocks = re.findall(r"```python\n(.*?)\n```", document, re.DOTALL)
    sources = [(ROOT / name).read_text() for name in EXAMPLE]
    assert len(blocks) == 4
    for block in blocks:
        assert any(block in source for source in sources), block


@pytest.mark.parametrize(
    "document", ["README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
)
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert ((ROOT / document).parent / target).exists(), target


def test_readme_names_every_program() -> None:
    from luciole.tools.main import PROGRAMS

    text = (ROOT / "README.md").read_text()
    for name in PROGRAMS:
        assert (
            f"luciole {name}" in text
            or {"quantize": "lquantizer", "dump": "circle-dump"}[name] in text
        )
