"""Keras models and SavedModels, through TensorFlow's own converter (extra ``tensorflow``).

SavedModels are programs, and Keras files can be: docs/what-guards-you.md says what is
refused.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from luciole.importers.circle.model import from_bytes
from luciole.importers.computing import computing
from luciole.importers.imported import Imported
from luciole.importers.keras.names import name_as_keras, name_by_signature
from luciole.importers.keras.nodes import layer_nodes
from luciole.importers.keras.order import order_as_keras
from luciole.importers.keras.programs import refuse_programs
from luciole.importers.reader import file_bytes
from luciole.importers.silence import quiet, silent
from luciole.ir import LucioleError, Model
from luciole.ir.errors import FormatError, missing_extra
from luciole.ir.findings import Finding, Severity
from luciole.ir.passes.registry import make_canonical

OLDEST_KERAS = (3, 15, 1)
"""The first without published ways past ``safe_mode`` or bounds: setup.cfg asks for it, too."""


def load(path: Path, batch: int | None = None, *, unroll: bool = False) -> Imported:
    """Import a .keras or .h5 file or a SavedModel folder, for a ``batch`` of one size or any.

    Where TensorFlow converts a Keras model for no open batch, as with recurrent layers, it is
    imported for a batch of 1, and a finding says so. ``unroll`` computes the recurrent layers of a
    Keras file step by step, without loops. Raises LucioleError when TensorFlow is not
    installed or its Keras is too old to be trusted with a file, FormatError when it cannot read or
    convert it, for Keras files that hold programs, and where there is nothing to unroll.
    """
    if path.is_dir() and unroll:
        raise FormatError(f"{path.name}: a SavedModel holds its loops: unroll a .keras or .h5 file")
    if path.is_dir() and not (path / "saved_model.pb").exists():
        raise FormatError(f"{path}: this folder is no SavedModel (it has no saved_model.pb)")
    framework = tensorflow(path.name)
    if not path.is_dir():
        _check(framework, path)
    try:
        with silent():
            if path.is_dir():
                return Imported(_from_saved_model(framework, path), [])
            model = _read(framework, path)
            if unroll:
                _unroll(framework, path, model)
            return _converted(framework, model, batch)
    except LucioleError:
        raise
    except (
        Exception
    ) as error:  # Keras raises whatever its layers do; all of it means: not convertible
        raise FormatError(f"{path.name}: TensorFlow cannot convert it: {_reason(error)}") from None


def _unroll(framework: ModuleType, path: Path, model: Any) -> None:
    """Make recurrent layers compute step by step. Raises FormatError where there are none."""
    recurrent = _recurrent(framework, model)
    if not recurrent:
        raise FormatError(f"{path.name}: there is no recurrent layer to unroll")
    for layer in recurrent:
        layer.unroll = True


def _recurrent(framework: ModuleType, model: Any) -> list[Any]:
    """List a model's recurrent layers, at any depth."""
    parts = model._flatten_layers(include_self=False)
    return [layer for layer in parts if isinstance(layer, framework.keras.layers.RNN)]


def keras_model(path: Path) -> Any:
    """Load a .keras or .h5 file as Keras has it. Raises what ``load`` does."""
    framework = tensorflow(path.name)
    _check(framework, path)
    try:
        with silent():
            return _read(framework, path)
    except Exception as error:  # as above
        raise FormatError(f"{path.name}: Keras cannot read it: {_reason(error)}") from None


def _check(framework: ModuleType, path: Path) -> None:
    """Refuse a Keras that is too old for files, and files that hold programs."""
    _check_version(path.name, framework.keras.__version__)
    refuse_programs(path, partial(_is_registered, framework))


def from_keras(keras_model: Any, batch: int | None = None) -> Model:
    """Import a live ``keras.Model`` as ``from_live`` does, without what is to be said of it."""
    return from_live(keras_model, batch).model


def from_live(keras_model: Any, batch: int | None = None) -> Imported:
    """Import a live ``keras.Model``; the batch size stays open where TensorFlow can convert that,
    else it is 1, unless ``batch`` says another. Raises FormatError where TensorFlow cannot convert
    it, as a model that was never given its inputs.
    """
    framework, name = tensorflow("a live model"), f"the Keras model {keras_model.name!r}"
    try:
        with silent():
            return _converted(framework, keras_model, batch)
    except LucioleError:
        raise
    except Exception as error:  # as of files
        if not hasattr(keras_model, "inputs"):
            needed = "begin it with keras.Input, or build a functional model around it"
            raise FormatError(f"{name} does not know its inputs: {needed}") from error
        raise FormatError(f"{name}: TensorFlow cannot convert it: {_reason(error)}") from error


def _converted(framework: ModuleType, keras_model: Any, batch: int | None) -> Imported:
    if batch is not None:
        return _from_layers(_with_batch(framework, keras_model, batch), keras_model)
    if _collects_open_steps(framework, keras_model):
        with suppress(Exception):  # the open batch size says why
            return _for_one(framework, keras_model)
        return _for_any(framework, keras_model)
    try:
        return _for_any(framework, keras_model)
    except Exception as error:
        if not _is_open(keras_model):
            raise
        try:
            return _for_one(framework, keras_model)
        except Exception:
            raise error from None


def _is_open(keras_model: Any) -> bool:
    """Return whether an input takes batches of any size."""
    return any(value.shape[0] is None for value in keras_model.inputs)


def _for_any(framework: ModuleType, keras_model: Any) -> Imported:
    """Convert a model for the batches that its inputs take."""
    converter = framework.lite.TFLiteConverter.from_keras_model(keras_model)
    return _from_layers(_ordered(converter, keras_model), keras_model)


def _for_one(framework: ModuleType, keras_model: Any) -> Imported:
    """Convert a model for a batch of 1, and say so."""
    return _from_layers(_with_batch(framework, keras_model, 1), keras_model, _FIXED)


def _from_layers(model: Model, keras_model: Any, *findings: Finding) -> Imported:
    """Put a model beside the Keras layers that its operators came from."""
    return Imported(model, [*findings], nodes=layer_nodes(model.graph, keras_model))


def _collects_open_steps(framework: ModuleType, keras_model: Any) -> bool:
    """Return whether a loop collects steps of an open batch, which TensorFlow's converter refuses:
    tracing a model takes a small part of the time of converting it in vain.
    """
    if not _recurrent(framework, keras_model):
        return False
    try:
        if not _is_open(keras_model):
            return False
        traced = framework.function(lambda arguments: keras_model(arguments))
        graph = traced.get_concrete_function(_signature(framework, keras_model)).graph
    except Exception:  # converting it says why
        return False
    lists = [op for op in graph.get_operations() if op.type == "TensorListReserve"]
    shapes = [framework.get_static_value(op.inputs[0]) for op in lists]
    return any(shape is not None and shape.ndim and -1 in shape for shape in shapes)


_FIXED = Finding(
    Severity.WARNING,
    "BATCH",
    "the inputs",
    "TensorFlow converts it for no open batch size, so it takes 1: --batch N (or batch=N) for N",
)


def _with_batch(framework: ModuleType, keras_model: Any, batch: int) -> Model:
    """Convert a model that takes batches of one size."""
    name, signature = "serving_default", _signature(framework, keras_model, batch)
    archive = framework.keras.export.ExportArchive()
    archive.track(keras_model)
    archive.add_endpoint(
        name,
        framework.function(lambda arguments: keras_model(arguments), input_signature=[signature]),
    )
    with tempfile.TemporaryDirectory() as folder:
        archive.write_out(folder, verbose=False)
        converter = framework.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[name])
        return _ordered(converter, keras_model)


def _signature(framework: ModuleType, keras_model: Any, batch: int | None = None) -> Any:
    """Make a ``tf.TensorSpec`` of each input, for a ``batch`` of one size or as the inputs say."""

    def spec(value: Any) -> Any:
        first = value.shape[:1] if batch is None else (batch,)
        return framework.TensorSpec((*first, *value.shape[1:]), value.dtype, name=value.name)

    inputs = getattr(keras_model, "input", None)  # a Sequential model that was loaded has none
    inputs = keras_model.inputs[0] if inputs is None else inputs
    return framework.keras.tree.map_structure(spec, inputs)


def _ordered(converter: Any, keras_model: Any) -> Model:
    model = _canonical(converter)
    order_as_keras(model, keras_model)
    name_as_keras(model, keras_model)
    return model


def _from_saved_model(framework: ModuleType, path: Path) -> Model:
    model = _canonical(framework.lite.TFLiteConverter.from_saved_model(str(path)))
    name_by_signature(model)
    return model


def _canonical(converter: Any) -> Model:
    """Convert a model, and bring it into the form that all importers give."""
    model = from_bytes(converter.convert())
    make_canonical(model, computing().evaluate)
    return model


def _reason(error: Exception) -> str:
    """Return the reason of a failure in the user's words where these are known, else in
    TensorFlow's first.
    """
    if "TensorListReserve" in str(error):
        return (
            "its recurrent layers have an open batch size: import the Keras file instead, or "
            "export it with a fixed one (keras.Input(..., batch_size=1))"
        )
    return _first_line(error)


def _read(framework: ModuleType, path: Path) -> Any:
    """Read a file under the right extension: Keras looks at it, and the file may be called
    anything.
    """
    suffix = ".keras" if file_bytes(path, 2) == b"PK" else ".h5"
    if path.suffix == suffix:
        return framework.keras.models.load_model(path, compile=False, safe_mode=True)
    with tempfile.TemporaryDirectory() as folder:
        named = Path(folder) / f"model{suffix}"
        named.symlink_to(path.resolve())
        return framework.keras.models.load_model(named, compile=False, safe_mode=True)


def _check_version(what: str, version: str) -> None:
    """Raise LucioleError for a Keras that runs programs in files (CVE-2025-9905 and others)."""
    numbers = tuple(int(number) for number in re.findall("[0-9]+", version)[:3])
    if numbers < OLDEST_KERAS:
        oldest = ".".join(map(str, OLDEST_KERAS))
        raise LucioleError(
            f"{what}: Keras {version} may run programs in files that it loads: "
            f"pip install 'keras>={oldest}'"
        )


def _is_registered(framework: ModuleType, name: str) -> bool:
    """Return whether this process registered a class or function of its own with Keras."""
    return framework.keras.utils.get_registered_object(name) is not None


def tensorflow(what: str) -> ModuleType:
    """Import TensorFlow without its messages. Raises LucioleError, saying what needs it, when it is
    missing.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with quiet():
            import tensorflow

            tensorflow.get_logger()  # made now, so that it keeps the streams of the user
    except ImportError:
        raise missing_extra(f"{what}: this needs TensorFlow", "tensorflow") from None
    module: ModuleType = tensorflow
    return module


def _first_line(error: Exception) -> str:
    text = str(error)
    _, _, inner = text.partition("Exception encountered: ")  # Keras puts the cause behind a config
    lines = (inner or text).strip().splitlines()
    return lines[0] if lines else type(error).__name__
