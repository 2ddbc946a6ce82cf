"""The same images stored in every way that the loader reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from luciole.ir import Array, Graph, Shape, TensorType

RNG = np.random.default_rng(7)
IMAGES = RNG.random((12, 28, 28), np.float32)


def graph_of(shape: Shape, dtype: TensorType = TensorType.FLOAT32) -> Graph:
    graph = Graph("main")
    graph.add_input("image", shape, dtype)
    return graph


def as_typed_hdf5(folder: Path, images: Array) -> str:
    with h5py.File(folder / "typed.h5", "w") as file:
        for i, image in enumerate(images):
            file[f"value/{i}/0"] = image[None]
    return str(folder / "typed.h5")


def as_raw_hdf5(folder: Path, images: Array) -> str:
    with h5py.File(folder / "raw.h5", "w") as file:
        file.create_group("value").attrs["rawData"] = "1"
        for i, image in enumerate(images):
            file[f"value/{i}/0"] = np.frombuffer(image.tobytes(), np.uint8)
    return str(folder / "raw.h5")


def as_npz(folder: Path, images: Array) -> str:
    np.savez(folder / "data.npz", x=images)
    return str(folder / "data.npz")


def as_npy(folder: Path, images: Array) -> str:
    np.save(folder / "data.npy", images)
    return str(folder / "data.npy")


def as_folder_of_npy(folder: Path, images: Array) -> str:
    (folder / "npy").mkdir()
    for i, image in enumerate(images):
        np.save(folder / "npy" / f"{i}.npy", image)
    return str(folder / "npy")


def as_folder_of_raw(folder: Path, images: Array) -> str:
    (folder / "raw").mkdir()
    for i, image in enumerate(images):
        image.tofile(folder / "raw" / f"{i}.bin")
    return str(folder / "raw")


def as_list(folder: Path, images: Array) -> str:
    as_folder_of_raw(folder, images)
    lines = [f"raw/{i}.bin" for i in range(len(images))]
    (folder / "files.txt").write_text("\n".join(lines) + "\n")
    return str(folder / "files.txt")


SOURCES = [
    as_typed_hdf5,
    as_raw_hdf5,
    as_npz,
    as_npy,
    as_folder_of_npy,
    as_folder_of_raw,
    as_list,
]
every_source = pytest.mark.parametrize("store", SOURCES)
Store = Callable[[Path, Array], str]
