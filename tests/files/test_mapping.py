"""Models whose file is cut or written to while they are in use."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.files import contents_of, mapping
from luciole.importers import load
from tests.networks import network, random

CUT = """
import os, sys
import numpy as np
import luciole
path, x, y = sys.argv[1:]
model = luciole.load(path)
os.truncate(path, 100)
(found,) = luciole.Interpreter(model).run(np.load(x)).values()
np.save(y, found)
"""


def test_a_model_whose_file_is_cut_computes_what_it_did(tmp_path: Path) -> None:
    model, x = network((2000, 500, 10)), random(0, 1, 2000)
    paths = [tmp_path / name for name in ("m.circle", "x.npy", "y.npy")]
    luciole.save(model, paths[0])
    np.save(paths[1], x)
    assert paths[0].stat().st_size > 1 << 20  # many pages
    subprocess.run([sys.executable, "-c", CUT, *paths], check=True)
    (wanted,) = luciole.Interpreter(model).run(x).values()
    np.testing.assert_array_equal(np.load(paths[2]), wanted)


@pytest.mark.parametrize("most", [0, mapping.MOST_COPIED])
def test_constants_are_views_of_a_copy_or_of_the_mapped_file(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "MOST_COPIED", most)
    path = tmp_path / "m.circle"
    luciole.save(network(), path)
    assert isinstance(contents_of(path), bytes if most else mmap.mmap)
    data = next(value.data for value in load(path).graph.values if value.is_constant)
    assert data is not None
    assert not data.flags.writeable
    assert not data.flags.owndata
