"""``random:N``: records out of nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.ir import TensorType
from luciole.tools.data import DataError, load_data
from tests.tools.data.stores import graph_of


def test_floats_are_as_ones_and_the_same_each_time(tmp_path: Path) -> None:
    graph = graph_of((1, 40, 50))
    graph.add_input("other", (None, None, 3))
    data = load_data("random:7", graph)
    first, second = data.records.values()
    assert (first.shape, second.shape) == ((7, 40, 50), (7, 1, 3))
    assert -5 <= first.min() < -4.9
    assert 4.9 < first.max() <= 5
    np.save(tmp_path / "y.npy", np.arange(7))
    labelled = load_data("random:7", graph, labels=str(tmp_path / "y.npy"))
    np.testing.assert_array_equal(labelled.labels, np.arange(7))
    again = load_data("random:7", graph, limit=2, preprocess="x/5")
    np.testing.assert_array_equal(next(iter(again.records.values())), first[:2] / np.float32(5))


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(TensorType.INT32, 0, 100), (TensorType.UINT8, 0, 100), (TensorType.BOOL, False, True)],
)
def test_integers_count_and_booleans_are_both(dtype: TensorType, least: int, most: int) -> None:
    graph = graph_of((1, 60, 60))
    graph.inputs[0].dtype = dtype
    records = next(iter(load_data("random:3", graph).records.values()))
    assert (records.min(), records.max()) == (least, most)


def test_a_file_of_that_name_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "random", np.zeros((2, 4), np.float32))
    (tmp_path / "random.npy").rename("random:5")
    assert load_data("random:5", graph_of((1, 4))).count == 2


def test_random_records_refuses_none_and_texts() -> None:
    with pytest.raises(DataError, match="random:0: at least 1 record is needed"):
        load_data("random:0", graph_of((1, 4)))
    for name in ("random:", "random:-1", "random:many"):
        with pytest.raises(DataError, match=f"{name}: random:N makes N records"):
            load_data(name, graph_of((1, 4)))
    graph = graph_of((1, 4))
    graph.inputs[0].dtype = TensorType.STRING
    with pytest.raises(DataError, match="takes texts: there are no random ones"):
        load_data("random:1", graph)
