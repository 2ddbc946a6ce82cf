"""Readers: found by their folders, told apart by what files are, named in every sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import luciole
from luciole.importers import load_with_findings
from luciole.importers.reader import ModelReader, readable, reader_of, reader_of_bytes, readers
from luciole.ir.errors import FormatError
from tests.tools.running import spawn

RECIPE = b'operand { name: "x" type: FLOAT32 shape { dim: 1 } }\ninput: "x"\noutput: "x"\n'
SKETCH = '''"""Sketches of models."""

from luciole.importers.reader import ModelReader


class SketchReader(ModelReader):
    """Reads sketches: a name each."""

    name = "sketch"
    extensions = (".sketch",)

    def recognises(self, start):
        """Look at the first word."""
        return start.startswith(b"sketch ")

    def read(self, path):
        """Draw what the file names."""
        from luciole.importers.imported import Imported
        from luciole.ir import Graph, Model

        model = Model()
        model.add_graph(Graph(path.read_text().split()[1]))
        return Imported(model, [])
'''


def kinds_of(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def test_each_folder_of_importers_has_a_reader() -> None:
    (root,) = luciole.importers.__path__
    assert {type(r).__module__.split(".")[-1] for r in readers()} == kinds_of(Path(root))


def test_what_needs_no_extra_is_listed_first() -> None:
    assert readable() == ".circle, .tflite, .recipe, .onnx, .keras, .h5, SavedModel or .pt2"


@pytest.mark.parametrize(
    ("start", "form"),
    [
        (b"\x1c\x00\x00\x00CIR0", ".circle"),
        (b"\x1c\x00\x00\x00TFL3", ".tflite"),
        (RECIPE, ".recipe"),
        (b"### TFL3 was its format\n" + RECIPE, ".recipe"),
        (b"PK\x03\x04 and so on", ".keras"),
        (b"PK\x03\x04" + bytes(22) + b"\x0d\0\0\0metadata.json", ".keras"),
        (b"PK\x03\x04" + bytes(22) + b"\x0f\0\0\0net/data/weights", ".pt2"),
        (b"\x89HDF\r\n\x1a\n and so on", ".h5"),
    ],
)
def test_contents_decide(tmp_path: Path, start: bytes, form: str) -> None:
    path = tmp_path / "model.txt"
    path.write_bytes(start)
    assert form in reader_of(path).forms
    assert [form in reader.forms for reader in readers() if reader.recognises(start)] == [True]


def test_a_recipe_may_begin_with_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "x.recipe"
    path.write_bytes(b"### CIR0\n" + RECIPE)
    assert load_with_findings(path)[0].graph.inputs[0].name == "x"


def test_standard_input_refuses_what_no_reader_takes() -> None:
    text = r"standard input: not a \.circle, .* or \.pt2 \(it starts with b'nothing '\)$"
    with pytest.raises(FormatError, match=text):
        reader_of_bytes(b"nothing known")


@pytest.mark.parametrize(
    "start",
    [
        b"\x93NUMPY\x01\0",
        b"PK\x03\x04" + bytes(22) + b"\x05\0\0\0x.npy",
        b"PK\x03\x04" + bytes(22) + b"\x07\0\0\0a/x.npy",
    ],
)
def test_readers_refuse_arrays_of_numpy(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(start)
    text = r"data\.txt: NumPy arrays, not a model: a \.circle, .* or \.pt2 is needed$"
    with pytest.raises(FormatError, match=text):
        reader_of(path)


def test_standard_input_refuses_what_only_files_hold() -> None:
    text = ".keras, .h5 or SavedModel is read by its path, not from bytes"
    with pytest.raises(FormatError) as refusal:
        reader_of_bytes(b"PK\x03\x04 and so on").read_bytes(b"")
    assert str(refusal.value) == text
    assert spawn("dump", "-", stdin=b"PK\x03\x04 and so on").error(1) == f"standard input: {text}"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "reader Odd: a name and extensions or folders are needed"),
        ({"name": "odd"}, "reader Odd: a name and extensions or folders are needed"),
        ({"name": "odd", "extensions": ("odd",)}, "reader Odd: 'odd' is not like '.circle'"),
        ({"name": "odd", "extensions": (".ODD",)}, "reader Odd: '.ODD' is not like '.circle'"),
    ],
)
def test_readers_refuse_classes_that_help_cannot_name(
    fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(TypeError) as refusal:
        type("Odd", (ModelReader,), fields)
    assert str(refusal.value) == sentence


def test_another_kind_of_file_takes_another_folder_and_nothing_else(tmp_path: Path) -> None:
    """The package as it is, by links, with one folder more."""
    (source,) = map(Path, luciole.__path__)
    package = tmp_path / "luciole"
    for folder, target in ((source, package), (source / "importers", package / "importers")):
        target.mkdir()
        for entry in os.listdir(folder):
            if entry != "importers":
                (target / entry).symlink_to(folder / entry)
    (package / "importers" / "sketch").mkdir()
    (package / "importers" / "sketch" / "__init__.py").write_text(SKETCH)
    (tmp_path / "house.txt").write_text("sketch house\n")
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    tell = f"import luciole; print(luciole.load({str(tmp_path / 'house.txt')!r}).graph.name)"
    assert spawn(program=["-c", start + tell]).out == "house\n"
    run = "from luciole.tools.main import main; main(sys.argv[1:])"
    shown = spawn("import", "--help", program=["-c", start + run]).out
    assert "a .circle, .tflite, .recipe, .sketch, .onnx, .keras, .h5," in " ".join(shown.split())
    refused = spawn(
        "dump",
        os.devnull,
        program=["-c", start + "from luciole.tools.main import main; sys.exit(main(sys.argv[1:]))"],
    )
    assert refused.error(1).startswith("null: not a .circle, .tflite, .recipe, .sketch, .onnx, ")
