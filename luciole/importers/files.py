"""Files and folders to models, each by the reader that recognises it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from luciole.importers.extents import Settled
from luciole.importers.imported import Imported
from luciole.importers.reader import Example, named, reader_of, reader_of_bytes, reader_of_live
from luciole.ir import LucioleError, Model
from luciole.ir.checked import checked
from luciole.ir.errors import FormatError
from luciole.ir.findings import Finding

Path_ = str | os.PathLike[str]


@checked
def load(
    source: Path_ | bytes | object,
    example_inputs: object = None,
    *,
    dynamic_shapes: object = None,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    unroll: bool = False,
) -> Model:
    """Load a model from a file or folder of any kind that ``luciole.importers`` reads, from the
    bytes of a file whose constants are all inside, or from a live torch module or Keras model.

    The content of files decides. A torch module is traced by ``torch.export`` with example inputs:
    a tensor, a tuple, or a dict by names of parameters; ``dynamic_shapes`` says, as torch takes it,
    which extents stay open: ``{0: "batch"}`` of one tensor, else of each.

    Inputs whose first extent is open get that of ``batch``; ``shapes`` settle open extents by input
    (None for one that stays open), ``dims`` by the names that ONNX files and torch give extents,
    and ``constants`` take the places of inputs; graphs of ONNX and torch have all that before they
    are imported. ``unroll`` has recurrent layers of a Keras file step by step, so that they can be
    quantized and trained.
    Constants of circle and TFLite files are views of the file's bytes: of a copy, or from 64 MB on
    of the mapped file, which nobody may write to meanwhile. Raises FormatError when
    no reader recognises it, it is damaged or cannot be unrolled or traced, LucioleError when it
    cannot be read or an extra is missing, and ShapeError for extents that the model has already and
    where operators do not take them.
    """
    settled = Settled(batch, shapes or {}, dims or {}, constants or {})
    example = Example(example_inputs, dynamic_shapes)
    if not isinstance(source, str | os.PathLike | bytes | bytearray | memoryview):
        live = reader_of_live(source)
        _refuse_unroll(unroll)
        return live.read_live(source, example, settled).sound()
    if example:
        raise LucioleError("a file has its shapes: no example goes with it")
    if isinstance(source, bytes | bytearray | memoryview):
        return _of_bytes(bytes(source), settled, unroll).sound()
    if not os.fspath(source):
        raise LucioleError("source: the path of a model is needed, found ''")
    imported = read(source, settled, unroll=unroll)
    with named(Path(source)):
        return imported.sound()


def _of_bytes(data: bytes, settled: Settled, unroll: bool) -> Imported:
    """Read a file's bytes. Raises what ``load`` does, and FormatError for kinds that are only read
    from files.
    """
    reader = reader_of_bytes(data, "these bytes")
    _refuse_unroll(unroll)
    return reader.read_bytes_for(data, settled)


def _refuse_unroll(unroll: bool) -> None:
    if unroll:
        raise FormatError("only recurrent layers of Keras files can be unrolled")


def as_model(model: Path_ | bytes | Model) -> Model:
    """Return a model as it is, or load that of a path or of a file's bytes."""
    return model if isinstance(model, Model) else load(model)


def load_with_findings(path: Path_) -> tuple[Model, list[Finding]]:
    """Load a model as ``load`` does and list its faults instead of refusing it."""
    imported = read(path)
    return imported.model, imported.findings


def read(path: Path_, settled: Settled | None = None, *, unroll: bool = False) -> Imported:
    """Read a file or folder, with everything that is wrong with it. Raises what ``load`` does but
    for a model that has errors.
    """
    reader = reader_of(Path(path))
    if unroll:
        return reader.read_unrolled(Path(path), settled or Settled())
    return reader.read_for(Path(path), settled) if settled else reader.read(Path(path))
