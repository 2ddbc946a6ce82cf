"""Files that the programs work on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Graph, Model, TensorType, UnknownOp, Value
from luciole.lquantizer.search.evaluate import Alone, Bench
from luciole.tools.data import write_hdf5
from tests.networks import network, random


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, calibration data, labelled data and a config, to be copied."""
    made = tmp_path_factory.mktemp("files")
    x = random(50, 60, 20)
    model = network()
    luciole.save(model, made / "model.circle")
    write_hdf5(str(made / "train.hdf5"), {"x": x})
    np.save(made / "train.npy", x)
    answers = luciole.Interpreter(model).run(x)["fc2"].argmax(1)
    answers[:15] = (answers[:15] + 1) % 4
    np.savez(made / "test.npz", x_test=x, y_test=answers)
    (made / "config.json").write_text(json.dumps({"layers": [{"name": "fc2", "skip": True}]}))
    return made


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a copy of these files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def layers_measured_once() -> Iterator[None]:
    """Keep what a network's layers lose alone, which is the same for all targets of a search."""
    kept: dict[object, list[Alone]] = {}
    alone = Bench.alone

    def kept_or_measured(bench: Bench, layer: str, options: Sequence[str]) -> list[Alone]:
        parts = (bench.records, bench.judges.records)
        records = [np.asarray(array).tobytes() for part in parts for array in part.values()]
        key = (to_bytes(bench.model), *records, bench.seed, layer, *options)
        if key not in kept:
            kept[key] = alone(bench, layer, options)
        return kept[key]

    with pytest.MonkeyPatch.context() as context:
        context.setattr(Bench, "alone", kept_or_measured)
        yield


@pytest.fixture
def unsupported(folder: Path) -> Path:
    """A file with operators that nothing here can run."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 20))
    for name in ("a", "b"):
        result = graph.add_value(Value(name, TensorType.FLOAT32, (1, 20)))
        graph.append(UnknownOp(32, [x], custom_code="Mystery"), results=[result])
        x = result
    graph.outputs = [x]
    path = folder / "unsupported.circle"
    path.write_bytes(to_bytes(model))
    return path
