"""What a release is made of: one version, one place of addresses, reproducible archives."""

from __future__ import annotations

import configparser
import hashlib
import importlib
import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import luciole
from luciole.ir.errors import missing_extra

ROOT = Path(__file__).parent.parent
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg", encoding="utf-8")
RECIPE = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
ADDRESS = "https://example.org/someone/luciole"
WHEEL = "file:///home/someone/luciole-1.0.0-py3-none-any.whl"
LONGEST = 140


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    return importlib.import_module("release")


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What setup.py hands to setuptools, and its functions."""
    given: dict[str, Any] = {}
    monkeypatch.setattr("setuptools.setup", lambda **facts: given.update(facts))
    return runpy.run_path(str(ROOT / "setup.py")) | {"given": given}


def parts(text: str) -> list[tuple[str, str]]:
    """The headings of CHANGELOG's second level, and what is below them."""
    return re.findall(r"(?ms)^## (.+?)$(.*?)(?=^## |\Z)", text)


def test_the_changelog_names_versions_and_what_each_added_changed_and_fixed() -> None:
    (first, _), *released = parts(CHANGELOG)
    assert first == "Unreleased"
    assert released[0][0].startswith(f"{luciole.__version__} - 20")
    for _, body in released:
        assert set(re.findall(r"(?m)^### (.+)$", body)) <= {"Added", "Changed", "Fixed"}
        lines = re.findall(r"(?m)^- .*$", body)
        assert lines
        assert [line for line in lines if len(line) > LONGEST] == []
        assert "\n  " not in body


def test_a_release_refuses_lines_without_a_version_and_another_one(release: ModuleType) -> None:
    package, head = '__version__ = "1.0.0"\n', "# Changelog\n\n## Unreleased\n"
    assert release.version(f"{head}\n## 1.0.0 - 2026-11-28\n", package) == "1.0.0"
    with pytest.raises(ValueError, match="lines below Unreleased belong to no version yet"):
        release.version(f"{head}\n- This.\n\n## 1.0.0 - 2026-11-28\n", package)
    with pytest.raises(ValueError, match=r"luciole is 1\.0\.0, the newest version in .* 0\.9\.0"):
        release.version(f"{head}\n## 0.9.0 - 2026-11-28\n", package)
    assert release.main(["nowhere", "--tag", "v9.9.9"]) == 1


def test_the_conda_recipe_asks_for_what_setup_cfg_does() -> None:
    named = {"flatbuffers": "python-flatbuffers"}
    lines = [line for line in CONFIG["options"]["install_requires"].splitlines() if line]
    wanted = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    run = {f"{named.get(name, name)} {bounds.replace(' ', '')}" for name, bounds in wanted}
    python = f"python {CONFIG['options']['python_requires']}"
    assert set(RECIPE["requirements"]["run"]) == run | {python}
    assert RECIPE["context"]["version"] == luciole.__version__
    programs = CONFIG["options.entry_points"]["console_scripts"].splitlines()
    entries = RECIPE["build"]["python"]["entry_points"]
    assert entries == [line for line in programs if line and not line.startswith("#")]


# ------------------------------------------------------------------------------------ the addresses


def test_nothing_prints_a_command_that_takes_luciole_from_an_index_until_it_is_there() -> None:
    if CONFIG["addresses"]["index"]:
        return
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("luciole/**/*.py")]
    files += [*ROOT.glob("docs/**/*.ipynb"), *ROOT.glob("examples/*.*")]
    found = (
        r"(?:pipx? (?:install|run)|uvx?(?: pip install| tool \w+)?) [\"'`-]*luciole(?![\w/{-]|\[\{)"
    )
    assert len(files) > 300
    assert [f.name for f in files if re.search(found, f.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("facts", "origin", "wanted"),
    [
        ({}, None, '".[onnx]" in the folder of luciole\'s sources'),
        ({}, {"url": "file:///src", "dir_info": {}}, '".[onnx]" in the folder of'),
        ({}, {"url": WHEEL, "archive_info": {}}, f'"luciole[onnx] @ {WHEEL}"'),
        ({"Download-URL": ADDRESS}, None, '"luciole[onnx]"'),
    ],
)
def test_an_extra_is_installed_from_where_luciole_came(
    facts: Mapping[str, str],
    origin: object,
    wanted: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["Metadata-Version: 2.1", "Name: luciole", "Version: 1.0.0"]
    lines += [f"{name}: {value}" for name, value in facts.items()]
    (tmp_path / "METADATA").write_text("\n".join(lines) + "\n")
    if origin is not None:
        (tmp_path / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(tmp_path))
    assert f"x needs onnx: pip install {wanted}" in str(missing_extra("x needs onnx", "onnx"))


def test_the_index_shows_no_links_that_lead_nowhere(packed: Any) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    bare, linked = packed["readme"](text, ""), packed["readme"](text, ADDRESS)
    assert "](docs/" not in bare
    assert "<picture>" not in bare
    assert "![" not in bare
    assert f"]({ADDRESS}/blob/main/docs/index.md)" in linked
    assert f"({ADDRESS}/raw/main/docs/assets/accuracy.svg)" in linked
    assert not re.search(r'\]\((?!https?:)|="docs/', linked)
    assert packed["addresses"]("", "") == {}
    assert packed["addresses"](ADDRESS, "")["project_urls"]["Issues"] == f"{ADDRESS}/issues"


# ------------------------------------------------------------------------------------- the archives


def sdist(folder: Path, mode: int) -> str:
    """The hash of an sdist of a few files, which lie there with other times and rights."""
    package = folder / "luciole"
    package.mkdir(parents=True)
    for name in ("setup.py", "setup.cfg", "README.md", "LICENSE", "NOTICE"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    shutil.copy(ROOT / "luciole" / "__init__.py", package)
    (folder / "README.md").chmod(mode)
    command = [sys.executable, "setup.py", "-q", "sdist"]
    environment = {"SOURCE_DATE_EPOCH": "1795824000", "PYTHONWARNINGS": "ignore"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (archive,) = (folder / "dist").glob("*.tar.gz")
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def test_an_sdist_is_the_same_bytes_wherever_and_whenever_it_is_built(tmp_path: Path) -> None:
    """Wheels: .ci/wheel.py builds both twice."""
    assert sdist(tmp_path / "one", 0o640) == sdist(tmp_path / "another", 0o664)
