"""The wheel of kernels that are compiled ahead: installed beside luciole, nothing is compiled."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from luciole.exporters import save
from luciole.kernels.jit import classes
from luciole.tools.random_models import dense

ROOT = Path(__file__).parents[1]


def printed(folder: Path, *command: str | Path, **variables: str) -> str:
    """What a command prints in a folder, which Python looks into first."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_that_are_installed_beside_luciole_are_used(tmp_path: Path) -> None:
    if not classes.names():
        pytest.skip("this machine is of no class")
    model, site = tmp_path / "net.tflite", tmp_path / "site"
    save(dense((8, 4)), model)
    words = ["--only", "--class", classes.names()[0], str(model)]
    program = runpy.run_path(str(ROOT / ".ci" / "kernels.py"))
    for folder in ("dist", "again"):
        assert program["main"]([str(tmp_path / folder), *words]) == 0
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.read_bytes() == (tmp_path / "again" / wheel.name).read_bytes()
    install: list[str | Path] = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        site,
    ]
    printed(tmp_path, sys.executable, *install, wheel)
    shutil.copytree(ROOT / "luciole", site / "luciole")  # with what Python compiled of it
    variables = {"PYTHONPATH": str(site), "LUCIOLE_CACHE": str(tmp_path / "cache")}
    warmed = json.loads(
        printed(tmp_path, sys.executable, "-m", "luciole", "warmup", model, "--json", **variables)
    )
    assert (warmed["compiled"], warmed["kernels"]) == (0, 0)
    shown = json.loads(
        printed(tmp_path, sys.executable, "-m", "luciole", "cache", "--json", **variables)
    )
    (folder,) = shown["ahead"]
    assert folder["kernels"] > 1
    assert Path(folder["folder"]).is_relative_to(site / "luciole_kernels")
