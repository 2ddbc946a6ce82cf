"""``--custom FILE``: programs run models with CUSTOM operators that a user computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Graph, Model, UnknownOp
from luciole.ir.value import Value
from luciole.kernels.core import custom
from luciole.schema.enums import BuiltinOperator, TensorType
from luciole.tools import diff, evaluate
from luciole.tools.bench import program as bench


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "FUNCTIONS", {})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with one CUSTOM operator."""
    made = Model()
    graph = made.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 3))
    op = UnknownOp(int(BuiltinOperator.CUSTOM), [x], custom_code="Mine")
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (1, 3)))])
    graph.outputs = list(op.results)
    path = tmp_path / "mine.tflite"
    luciole.save(made, path)
    return path


def written(folder: Path, text: str) -> str:
    path = folder / "operators.py"
    path.write_text(text)
    return str(path)


GOOD = """
import luciole
import numpy as np

def twice(x):
    return np.add(x, x)

luciole.custom_operator("Mine")(lambda x: twice(x))
"""


def test_bench_runs_a_custom_operator(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    few = ["--num-runs=2", "--min-secs=0", "--warmup-runs=1", "--warmup-min-secs=0"]
    code = bench.main([str(model), "--custom", written(tmp_path, GOOD), "--json", *few])
    out = capsys.readouterr()
    assert code == 0, out.err
    assert json.loads(out.out)["operators"][0]["kind"] == "CUSTOM(Mine)"


def test_diff_and_eval_run_a_custom_operator(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data.npz"
    np.savez(data, x=np.ones((4, 3), np.float32), y=np.zeros(4, np.int64))
    file = written(tmp_path, GOOD)
    assert diff.main([str(model), str(model), "--data", str(data), "--custom", file]) == 0
    assert evaluate.main([str(model), "--data", str(data), "--custom", file]) == 0
    assert "100" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("raise KeyError('x')", "operators.py: KeyError: 'x'"),
        ("import no_such_module", "operators.py: ModuleNotFoundError: No module named"),
        ("def", "operators.py: SyntaxError: invalid syntax"),
    ],
)
def test_a_file_that_fails_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, text: str, sentence: str
) -> None:
    assert bench.main([str(model), "--custom", written(tmp_path, text)]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1


def test_bench_refuses_a_custom_file_that_is_not_there(
    capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    assert bench.main([str(model), "--custom", "nowhere.py"]) == 2
    assert "nowhere.py: FileNotFoundError" in capsys.readouterr().err
