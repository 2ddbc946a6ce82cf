#!/usr/bin/env python3
"""Make a wheel of kernels that are compiled ahead for classes of processors, in the folder given.

    python3 .ci/kernels.py dist [--class CLASS ...] [--only] [MODEL ...]

It holds what the networks of benchmarks.kinds need, those of Keras among them in int8, too, what
``luciole warmup`` makes up, and what the models given need (these alone with --only). It fits the
Python and the versions of numba and llvmlite that run this, so it is made once for each Python of
setup.cfg, by the versions of .ci/runtime.lock, on a machine of each architecture. Classes whose
instructions the machine lacks are left out.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import luciole  # noqa: E402  # this checkout's
from luciole.kernels.jit import ahead, classes  # noqa: E402

RECORDS = 4
"""Random records that a network is quantized by."""

NAME = "luciole_kernels"


def networks(folder: Path) -> Iterator[Path]:
    """Write files of representative networks."""
    from benchmarks.kinds import content_of, kinds

    for number, (name, model) in enumerate(kinds()):
        path = folder / f"{number}.tflite"
        path.write_bytes(content_of(model))
        yield path
        if name.startswith("Keras"):
            yield from quantized(path)


def quantized(path: Path) -> Iterator[Path]:
    """Write a network in int8, where it can be quantized so."""
    import numpy as np

    model, rng = luciole.load(path), np.random.default_rng(0)
    records = {
        value.name: rng.normal(size=(RECORDS, *value.dims[1:])).astype(np.float32)
        for value in model.graph.inputs
    }
    target = path.with_suffix(".int8.tflite")
    try:
        luciole.save(luciole.quantize(model, records, scheme="int8").model, target)
    except luciole.LucioleError as error:
        print(f"kernels: {path.name} has no form in int8: {error}", file=sys.stderr)
        return
    yield target


def compiled(text: str, models: Sequence[Sequence[Path]], cache: Path) -> bool:
    """Compile for a class; returns whether the machine has its instructions."""
    environment = {**os.environ, "LUCIOLE_CPU": text, "LUCIOLE_CACHE": str(cache)}
    environment.pop(ahead.VARIABLE, None)
    for words in models:
        command = [sys.executable, "-m", "luciole", "warmup", *map(str, words)]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        if "this machine" in done.stderr:
            print(f"kernels: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return False
        done.check_returncode()
    return True


def tags() -> tuple[str, str, str]:
    """The wheel's: this Python, no binary interface, this system with any C library of its kind."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"cp{sys.version_info[0]}{sys.version_info[1]}", "none", platform


def wheel_of(cache: Path, target: Path) -> Path:
    """Write the wheel of a cache's files, the same bytes each time."""
    version, tag = luciole.__version__, "-".join(tags())
    facts = f"{NAME}-{version}.dist-info"
    needs = [f"luciole=={version}", *(f"{p}=={metadata.version(p)}" for p in ("llvmlite", "numba"))]
    about = ["Metadata-Version: 2.1", f"Name: {NAME.replace('_', '-')}", f"Version: {version}"]
    about += ["Summary: Kernels of luciole, compiled ahead", "License: Apache-2.0"]
    about += [f"Requires-Dist: {need}" for need in needs]
    made = ["Wheel-Version: 1.0", "Generator: luciole", "Root-Is-Purelib: true", f"Tag: {tag}"]
    files = {
        f"{NAME}/{path.relative_to(cache)}": path.read_bytes()
        for path in sorted(cache.rglob("*.o"))
    }
    files |= {f"{facts}/METADATA": _lines(about), f"{facts}/WHEEL": _lines(made)}
    files[f"{facts}/RECORD"] = _record(files, f"{facts}/RECORD")
    target.mkdir(parents=True, exist_ok=True)
    wheel = target / f"{NAME}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, content)
    return wheel


def _lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _record(files: Mapping[str, bytes], own: str) -> bytes:
    """The list of a wheel's files, with their digests."""
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}")
    return _lines([*rows, f"{own},,"])


def main(arguments: Sequence[str]) -> int:
    """Print the wheel and its classes; fail where the machine is of none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="the folder that gets the wheel")
    parser.add_argument("models", type=Path, nargs="*", help="further models")
    parser.add_argument("--class", dest="texts", action="append", help="instead of all")
    parser.add_argument("--only", action="store_true", help="no networks but these models")
    given = parser.parse_intermixed_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place, "cache")
        own = [path.resolve() for path in given.models]
        models = [own] if given.only else [[*networks(Path(place)), *own], []]
        made = [t for t in given.texts or classes.CLASSES if compiled(t, models, cache)]
        if not made:
            return 1
        wheel = wheel_of(cache, given.target)
    print(f"kernels: {wheel} {wheel.stat().st_size} B, for {' and '.join(made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
