"""What luciole is made of: bundled data, bounds of versions, CI's lock and audit, the notice."""

from __future__ import annotations

import configparser
import hashlib
import json
import re
import runpy
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
BUNDLED = ROOT / "luciole" / "demo_data"
LOCK = (ROOT / ".ci" / "requirements.lock").read_text()
RUNTIME = (ROOT / ".ci" / "runtime.lock").read_text()
RELEASE = (ROOT / ".ci" / "release.lock").read_text()
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg")
BOUNDED = ("llvmlite", "numba")


def required(*sections: str) -> Iterator[Requirement]:
    """What setup.cfg asks for on this machine: always, and by extras."""
    always = CONFIG["options"]["install_requires"]
    texts = [always, *(CONFIG["options.extras_require"][name] for name in sections)]
    for line in "\n".join(texts).splitlines():
        if not line or line.startswith("#"):
            continue
        found = Requirement(line)
        if found.name == "luciole":
            yield from required(*found.extras)
        elif found.marker is None or found.marker.evaluate():
            yield found


def locked(text: str = LOCK) -> dict[str, str]:
    """Versions by name."""
    return dict(re.findall(r"^(\S+)==(\S+) \\$", text, re.MULTILINE))


# ------------------------------------------------------------------------------------- what we ship


def test_bundled_data_has_the_hashes_that_were_written_down() -> None:
    lines = (BUNDLED / "SHA256SUMS").read_text().splitlines()
    wanted = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {path.name: path for path in BUNDLED.iterdir() if path.name != "SHA256SUMS"}
    found = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert found == wanted


def test_the_notice_is_shipped_and_names_what_others_made() -> None:
    notice = (ROOT / "NOTICE").read_text()
    assert CONFIG["metadata"]["license_files"].splitlines() == ["", "LICENSE", "NOTICE"]
    for path in (*BUNDLED.glob("digits.*"), *(ROOT / "luciole").rglob("*.fbs")):
        assert str(path.relative_to(ROOT)) in notice


# --------------------------------------------------------------------------------- what we build on


@pytest.mark.parametrize("name", BOUNDED)
def test_the_compiler_has_an_upper_bound(name: str) -> None:
    """One minor version above what the tests run with: newer ones are admitted when they pass."""
    (found,) = (wanted for wanted in required() if wanted.name == name)
    major, minor, *_ = Version(locked()[name]).release
    assert found.specifier.contains(f"{major}.{minor}.99")
    assert not found.specifier.contains(f"{major}.{minor + 1}")
    assert found.specifier.contains(metadata.version(name))


def test_the_lock_has_all_that_is_asked_for() -> None:
    """Where not, setup.cfg changed: python3 .ci/lock.py makes a new one."""
    versions = locked()
    tools = (ROOT / ".ci" / "requirements.in").read_text().splitlines()
    wanted = [*required("test", "dev"), *map(Requirement, (t for t in tools if t[0] != "#"))]
    assert len(wanted) > 10
    for each in wanted:
        name = canonicalize_name(each.name)
        assert each.specifier.contains(versions.get(name, "none")), f"{each}: {versions.get(name)}"


def test_the_runtime_lock_has_what_luciole_needs_for_each_python_in_the_lock_s_versions() -> None:
    versions = locked(RUNTIME)
    assert versions.items() <= locked().items()
    assert {canonicalize_name(each.name) for each in required()} <= set(versions)
    head, stated = RUNTIME.partition("\n")[0], CONFIG["metadata"]["classifiers"]
    assert re.findall(r"3\.\d+", head) == re.findall(r"(?m):: (3\.\d+)$", stated)
    (numpy,) = re.findall(r"^numpy==((?:.*\\\n)+.*)$", RUNTIME, re.MULTILINE)
    assert numpy.count("sha256") == head.count("3.")


@pytest.mark.parametrize("text", [LOCK, RUNTIME, RELEASE])
def test_every_package_of_a_lock_has_hashes_and_none_an_address(text: str) -> None:
    package = re.compile(r"[a-z0-9-]+==[\w.]+( \\\n {4}--hash=sha256:[0-9a-f]{64})+\n")
    lines = re.sub(r"(?m)^#.*\n", "", text)
    assert len(package.findall(lines)) == len(locked(text)) > 5
    assert not package.sub("", lines)


def test_every_extra_that_needs_tensorflow_has_its_platforms_markers() -> None:
    """No tensorflow-cpu for macOS or for ARM, so only the extra of its own names it."""
    extras = CONFIG["options.extras_require"]
    assert [name for name, lines in extras.items() if "tensorflow-cpu" in lines] == ["tensorflow"]
    named = [line for line in extras["tensorflow"].splitlines() if "tensorflow" in line]
    arm = {"platform_machine": "arm64", "sys_platform": "darwin"}
    fitting = [r.name for r in map(Requirement, named) if r.marker and r.marker.evaluate(arm)]
    assert (len(named), fitting) == (2, ["tensorflow"])


# ----------------------------------------------------------------------------------- what CI audits


FINE = {"name": "numpy", "version": "2.4.6", "vulns": []}
SKIPPED = {"name": "onert", "skip_reason": "Dependency not found on PyPI"}
FAULTY = {
    "name": "rich",
    "version": "15.0.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["15.0.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}
NO_NETWORK = "Traceback ...\nrequests.exceptions.ConnectionError: Failed to resolve\n"
JUDGED = [
    ([FINE], "", 0, "audit: asked about 1 of 1 packages: no known vulnerabilities"),
    ([FINE, FAULTY], "", 1, "audit: rich 15.0.0: PYSEC-1, fixed in 15.0.1"),
    ([FAULTY], "", 1, "audit: rich 15.0.0: PYSEC-2, fixed in no version yet"),
    ([SKIPPED, FAULTY], "", 1, "audit: asked about 1 of 2 packages: known vulnerabilities"),
    ([FINE, SKIPPED], "", 0, "audit: no advisories to be had here for onert"),
    ([SKIPPED], "", 0, "audit: nothing was checked, no advisories to be had here (0 of 1"),
    (
        None,
        NO_NETWORK,
        0,
        "audit: nothing was checked, pip-audit ended with: requests.",
    ),
    (None, "No module named pip_audit\n", 1, "pip-audit ended with: No module named pip_audit"),
    (None, "", 1, "audit: nothing was checked"),
]


@pytest.mark.parametrize(("packages", "errors", "code", "text"), JUDGED)
def test_the_audit_refuses_known_vulnerabilities_and_says_when_nothing_was_asked(
    packages: list[dict[str, Any]] | None, errors: str, code: int, text: str
) -> None:
    judge: Callable[[str, str], Any] = runpy.run_path(str(ROOT / ".ci" / "audit.py"))["judge"]
    report = "" if packages is None else json.dumps({"dependencies": packages, "fixes": []})
    verdict = judge(report, errors)
    assert verdict.code == code
    assert text in verdict.text
