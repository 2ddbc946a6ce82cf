"""Archives of torch.export are copied without the programs that they may hold, or refused: torch
itself is not needed for that.
"""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

from luciole.importers.torch.programs import checked
from luciole.ir.errors import FormatError

SYMBOL = "Symbol('s77', positive=True, integer=True)"


def graph(target: str = "torch.ops.aten.add.Tensor", extent: str = SYMBOL) -> bytes:
    size = {"as_expr": {"expr_str": extent}}
    return json.dumps({"graph": {"nodes": [{"target": target, "sizes": [size]}]}}).encode()


def listed(path: str = "weight_0", pickled: bool = False) -> bytes:
    entry = {"path_name": path, "use_pickle": pickled}
    return json.dumps({"config": {"0.weight": entry}}).encode()


def written(folder: Path, member: str = "archive_version", content: bytes = b"0") -> Path:
    """Write an archive, with one member more or another one."""
    members = {
        "models/model.json": graph(),
        "data/weights/model_weights_config.json": listed(),
        "data/weights/weight_0": bytes(8),
        "data/sample_inputs/model.pt": pickle.dumps(print),
        "archive_format": b"pt2",
    }
    members[member] = content
    path = folder / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"net/{name}", content)
    return path


@pytest.mark.parametrize(
    "extent",
    [SYMBOL, f"Add({SYMBOL}, Integer(-1))", "s77", "2*s77 + 1", "FloorDiv(s0, 2)", "s0 >= 2", "7"],
)
def test_a_copy_has_graphs_and_tensors_and_no_pickle(tmp_path: Path, extent: str) -> None:
    path = written(tmp_path, "models/model.json", graph(extent=extent))
    with zipfile.ZipFile(checked(path)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert members["model/data/weights/weight_0"] == bytes(8)
    assert members["model/models/model.json"] == graph(extent=extent)
    assert members["model/data/sample_inputs/model.pt"] == b""


@pytest.mark.parametrize(
    ("member", "content", "sentence"),
    [
        ("data/weights/model.pt", b"", "would run 'data/weights/model.pt'"),
        ("data/constants/custom_obj_0", b"", "would run 'data/constants/custom_obj_0'"),
        ("data/aotinductor/model/m.so", b"", "would run 'data/aotinductor/model/m.so'"),
        ("models/other.json", graph(), "would run 'models/other.json'"),
        ("data/weights/model_weights_config.json", listed(pickled=True), "would run a pickle"),
        ("data/weights/model_weights_config.json", listed("opaque_0"), "would run 'opaque_0'"),
        ("models/model.json", graph("torch.os.system"), "would call 'torch.os.system'"),
        ("models/model.json", graph("torch.ops.load_library"), "call 'torch.ops.load_library'"),
        ("models/model.json", graph("torch.ops.aten.__class__"), "'torch.ops.aten.__class__'"),
        ("models/model.json", graph("_operator.methodcaller"), "'_operator.methodcaller'"),
        ("models/model.json", graph("builtins.eval"), "would call 'builtins.eval'"),
        ("models/model.json", graph(extent="__import__('os')"), "run the extent"),
        ("models/model.json", graph(extent="S('1')"), "run the extent"),
        ("models/model.json", graph(extent="eval('s1')"), "run the extent"),
        ("models/model.json", graph(extent="s0.__class__"), "run the extent"),
        ("models/model.json", graph(extent="Add(*s0)"), "run the extent"),
        ("models/model.json", graph(extent="(lambda: 1)()"), "run the extent"),
        ("models/model.json", graph(extent="Symbol('x.y')"), "run the extent"),
        ("models/model.json", graph(extent="(" * 5000), "run the extent"),
        ("models/model.json", b"{", "'models/model.json' is damaged"),
        ("models/model.json", b"[" * 100_000, "'models/model.json' is damaged"),
    ],
)
def test_an_archive_refuses_to_hold_programs(
    tmp_path: Path, member: str, content: bytes, sentence: str
) -> None:
    with pytest.raises(FormatError) as refusal:
        checked(written(tmp_path, member, content))
    assert str(refusal.value).startswith("net.pt2: ")
    assert sentence in str(refusal.value)


def _packed(archive: zipfile.ZipFile) -> None:
    archive.writestr("net/models/model.json", graph(), zipfile.ZIP_DEFLATED)


def _twice(archive: zipfile.ZipFile) -> None:
    for folder in "ab":
        archive.writestr(f"{folder}/models/model.json", graph())


def _weights(archive: zipfile.ZipFile) -> None:
    archive.writestr("net/data.pkl", b"")


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (_packed, "the archive is damaged: torch packs nothing, and this is packed"),
        (_twice, "the archive is damaged: two of its members have one name"),
        (_weights, "weights alone, TorchScript or a program of torch 2.7 and older"),
    ],
)
def test_other_archives_are_refused(tmp_path: Path, write: Any, sentence: str) -> None:
    path = tmp_path / "odd.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        write(archive)
    with pytest.raises(FormatError, match=f"^odd.pt2: {sentence}"):
        checked(path)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FormatError, match=r"^net\.pt2: the archive is damaged: "):
        checked(path)
