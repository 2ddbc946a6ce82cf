"""``luciole pack``: put a model into an nnpackage, which ONE's runtime loads.

An nnpackage is a folder, or a zip archive, of the model and metadata/MANIFEST, which names it.

  luciole pack model.circle -o packages        # packages/model, as ONE's one-pack
  luciole pack model.circle -o model.zip
"""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import FINE, UsageError, add_common, parser_for, run_program

_TYPES = (".circle", ".tflite")
"""Models that ONE's runtime loads."""
_VERSION = {"major-version": "1", "minor-version": "2", "patch-version": "0"}
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of everything in an archive: the same model gives the same bytes."""


def main(argv: Sequence[str] | None = None, program: str = "luciole pack") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help="a .circle or .tflite file")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Output,
        metavar="PLACE",
        help="the folder that gets a folder of the package's name, or the .zip file to write",
    )
    parser.add_argument("--name", help="the package's name (default: that of the model's file)")
    parser.add_argument("--config", metavar="FILE", help="a configuration of ONE's runtime")
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    contents = _contents(Path(arguments.model), arguments.config)
    output, name = Path(arguments.output), _name(arguments)
    if output.suffix == ".zip":
        _write_archive(output, contents)
        place = output
    else:
        place = output / name
        _write_folder(place, contents)
    files = sorted(contents)
    if arguments.json:
        console.print_json({"package": str(place), "files": files})
    else:
        console.show(f"{place}: {', '.join(files)}")
    return FINE


def _name(arguments: argparse.Namespace) -> str:
    name: str = Path(arguments.model).stem if arguments.name is None else arguments.name
    if not name or Path(name).name != name:
        raise UsageError(f"--name is {name!r}: a name without folders is needed")
    return name


def _contents(model: Path, config: str | None) -> dict[str, bytes]:
    """Collect the files of a package by their names in it. Raises UsageError for a file of another
    kind, and FormatError for one that holds no model.
    """
    from luciole.importers import load

    if model.suffix not in _TYPES:
        raise UsageError(f"{model}: an nnpackage holds a {' or '.join(_TYPES)} file")
    load(model)
    files = {model.name: model.read_bytes()}
    if config is not None:
        files[f"metadata/{Path(config).name}"] = _bytes_of(config)
    manifest = {
        **_VERSION,
        "configs": [] if config is None else [Path(config).name],
        "models": [model.name],
        "model-types": [model.suffix[1:]],
    }
    return {**files, "metadata/MANIFEST": (json.dumps(manifest, indent=2) + "\n").encode()}


def _bytes_of(config: str) -> bytes:
    try:
        return Path(config).read_bytes()
    except OSError as error:
        raise UsageError(f"--config {config}: {error.strerror or error}") from None


def _write_archive(path: Path, contents: Mapping[str, bytes]) -> None:
    from luciole.files import write_file

    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _WHEN)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    write_file(path, memory.getvalue())


def _write_folder(place: Path, contents: Mapping[str, bytes]) -> None:
    from luciole.files import write_files
    from luciole.files.writing import refused

    with refused(place):
        (place / "metadata").mkdir(parents=True, exist_ok=True)
    write_files({place / name: content for name, content in contents.items()})
