#!/usr/bin/env python3
"""Look for a numba or llvmlite beyond setup.cfg's bounds, test luciole with them, move the bounds.

Their versions are bounded because what they compile is not only luciole's own code. Run it when CI
says that there are newer ones: it installs them into a new environment, runs the tests of kernels
and operators, and where they pass writes the next bounds into setup.cfg and .ci/requirements.lock.
"""

from __future__ import annotations

import argparse
import configparser
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import lock

SETUP = lock.ROOT / "setup.cfg"
BOUNDED = ("llvmlite", "numba")
TESTS = ("tests/kernels", "tests/ops")


def bounds() -> dict[str, str]:
    """The first version of each package that setup.cfg does not admit."""
    config = configparser.ConfigParser()
    config.read(SETUP)
    lines = config["options"]["install_requires"].splitlines()
    found = (re.fullmatch(rf"({'|'.join(BOUNDED)})\b.*< ?([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def numbers(version: str) -> list[int]:
    """A version to compare: 0.68.1 is [0, 68, 1]."""
    return [int(number) for number in re.findall(r"\d+", version)]


def next_minor(version: str) -> str:
    """The bound above a version: 0.69 for 0.68.1."""
    major, minor, *_ = numbers(version)
    return f"{major}.{minor + 1}"


def newest() -> dict[str, str]:
    """The versions of numba and of the llvmlite that it takes, whatever luciole admits. Raises
    CalledProcessError where pip finds none.
    """
    found = (package["metadata"] for package in lock.report("numba"))
    return {each["name"]: each["version"] for each in found if each["name"] in BOUNDED}


def beyond(versions: dict[str, str], limits: dict[str, str]) -> dict[str, str]:
    """Those versions that setup.cfg does not admit."""
    return {n: v for n, v in versions.items() if numbers(v) >= numbers(limits[n])}


def passes(versions: dict[str, str], tests: list[str]) -> bool:
    """Whether the tests pass in a new environment with versions that setup.cfg does not admit."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "venv", "bin", "python")
        exact = [f"{name}=={version}" for name, version in versions.items()]
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
        for wanted in ([".[test]"], exact):  # the second in spite of the bounds
            subprocess.run(
                [python, "-m", "pip", "install", "-q", *wanted], cwd=lock.ROOT, check=True
            )
        done = subprocess.run([python, "-m", "pytest", *tests], cwd=lock.ROOT, check=False)
    return done.returncode == 0


def move(versions: dict[str, str], limits: dict[str, str]) -> None:
    """Write bounds that admit the versions, and a lock with them."""
    text = SETUP.read_text()
    for name, version in versions.items():
        text = re.sub(
            rf"(?m)^( *{name}\b.*< ?){re.escape(limits[name])}$",
            rf"\g<1>{next_minor(version)}",
            text,
        )
    SETUP.write_text(text)
    lock.main()


def main() -> int:
    """Look, and unless only asked, test and move."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ask", action="store_true", help="only say whether there are newer ones")
    parser.add_argument("tests", nargs="*", default=list(TESTS), help="what to test with them")
    arguments = parser.parse_args()
    try:
        versions, limits = newest(), bounds()
    except subprocess.CalledProcessError as error:
        print(f"newest: pip finds no numba: {error.stderr.strip()[-200:]}")
        return 0 if arguments.ask else 1
    found = beyond(versions, limits)
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    if not found:
        print(f"newest: {text}: within the bounds of setup.cfg")
        return 0
    if arguments.ask:
        print(f"newest: {text}: beyond the bounds of setup.cfg, which python3 .ci/newest.py moves")
        return 0
    if not passes(versions, arguments.tests):
        print(f"newest: {text}: tests fail, the bounds stay")
        return 1
    move(versions, limits)
    print(f"newest: {text}: tests pass, setup.cfg and the lock admit them now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
