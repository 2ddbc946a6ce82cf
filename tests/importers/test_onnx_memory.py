"""What few bytes of an ONNX file may ask for: the memory of the whole process is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.importers.onnx.model import SPARE_BYTES
from luciole.ir import Array

onnx = pytest.importorskip("onnx")
helper = onnx.helper

PROGRAM = r"""
import re, sys, luciole
from pathlib import Path
try:
    luciole.load(sys.argv[1])
except luciole.LucioleError as error:
    print(error)
else:
    print("imported")
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024)
"""
PROCESS = 200 << 20
"""Bytes of a process that has imported a file: 120 MB, and some room."""


def network(nodes: list[Any], **constants: Array) -> bytes:
    tensors = [onnx.numpy_helper.from_array(a, name) for name, a in constants.items()]
    given = [helper.make_tensor_value_info("x", 1, [1, 1, 4, 4])]
    graph = helper.make_graph(
        nodes, "g", given, [helper.make_empty_tensor_value_info("y")], tensors
    )
    opsets = [helper.make_opsetid("", 18)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def tiled(count: int) -> bytes:
    node = helper.make_node("Tile", ["c", "r"], ["y"])
    return network([node], c=np.ones(4, np.float32), r=np.array([count]))


def filled() -> bytes:
    nodes = [helper.make_node("ConstantOfShape", ["s"], [f"a{n}"]) for n in range(8)]
    nodes.append(helper.make_node("Relu", ["a0"], ["y"]))
    return network(nodes, s=np.array([225_000_000]))


def stretched() -> bytes:
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="cubic")
    return network([node], s=np.array([1, 1, 20_000_000, 4]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (tiled(50_000_000), "not imported: Tile (computing it: "),
        (filled(), "not imported: ConstantOfShape (computing it: "),
        (stretched(), "not imported: Resize (computing it: "),
        (tiled(10_000_000), "imported"),
    ],
    ids=["tiled", "filled", "stretched", "smaller"],
)
def test_import_refuses_what_takes_more_than_is_promised_before_it_takes_it(
    data: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said in told[0]
    assert int(told[1]) <= SPARE_BYTES + 5 * len(data) + PROCESS
