"""``luciole compile``, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.compiler import Measured, Program, Stack
from luciole.ir import Array, Graph, LucioleError, Model, Value
from luciole.ir.ops.elementwise_binary import Pow
from luciole.tools.random_models import lq_dense
from tests.compiler_support import QUICK, interpreted, needs_compiler
from tests.tools.running import call


@pytest.fixture
def model(tmp_path: Path) -> Path:
    luciole.save(lq_dense((16, 12, 4), 2), tmp_path / "small net.circle")
    return tmp_path / "small net.circle"


class References:
    """Runs reference kernels, for which nothing has to be compiled."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def computed(self, given: dict[str, Array], wanted: list[Value]) -> list[Array]:
        assert wanted
        copy = self._model.clone()
        places = [self._model.graph.values.index(value) for value in wanted]
        copy.graph.outputs = [copy.graph.values[place] for place in places]
        return interpreted(copy, given)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luciole.compiler.check.Interpreter", References)
    monkeypatch.setattr("luciole.compiler.host.FLAGS", QUICK)


def test_two_files_are_written(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "compile", model, "-o", tmp_path / "c")
    assert done.code == 0
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == ["small_net.c", "small_net.h"]
    assert "small_net_run" in (tmp_path / "c" / "small_net.h").read_text()
    assert done.out.startswith("small_net: ")


@needs_compiler
def test_a_full_disk_leaves_the_files_of_one_network(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("compile", model, "-o", tmp_path / "c", "--name", "net", "--library", "--self-test")
    assert call(capsys, *words).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    assert sorted(before) == ["net.c", "net.h", "net.so", "net_test.c"]
    luciole.save(lq_dense((16, 4), 2), model)
    (tmp_path / "c" / "net_test.c").unlink()
    (tmp_path / "c" / "net_test.c").mkdir()
    done = call(capsys, *words)
    assert done.code != 0
    assert "net_test.c: it is a folder" in done.err
    for name in ("net.c", "net.h", "net.so"):
        assert (tmp_path / "c" / name).read_bytes() == before[name]


def test_the_stack_is_told_with_what_measured_it(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = Measured("some-gcc 12.2.0 -Os", 9000, Stack(344, ["memset"]))
    monkeypatch.setattr("luciole.compiler.sizes.measure", lambda _: measured)
    done = call(capsys, "compile", model, "-o", tmp_path / "c")
    assert " bytes arena + 344 bytes stack, and that of memset\n" in done.out
    assert "  by     some-gcc 12.2.0 -Os\n" in done.out
    found = json.loads(call(capsys, "compile", model, "-o", tmp_path / "c", "--json").out)
    assert (found["stack_bytes"], found["stack_outside"]) == (344, ["memset"])
    assert found["compiler"] == "some-gcc 12.2.0 -Os"
    assert found["code_bytes"] == 9000 - found["table_bytes"]


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (None, "stack (not known: cc is missing or fails)"),
        (Measured("cc -O2", None, None), "stack (GCC tells how much, from version 10 on)"),
        (Measured("cc -O2", None, Stack(None, [])), "stack without a bound"),
        (Measured("cc -O2", None, Stack(90, list("abcd"))), "90 bytes stack, and that of 4 "),
    ],
)
def test_a_stack_that_is_not_known_is_no_number(
    measured: Measured | None,
    said: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("luciole.compiler.sizes.measure", lambda _: measured)
    done = call(capsys, "compile", model, "-o", tmp_path / "c")
    assert f" bytes arena + {said}" in done.out


def test_a_compiler_that_fails_spoils_nothing(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(_: Program) -> None:
        raise LucioleError("cc failed: no stdint.h")

    monkeypatch.setattr("luciole.compiler.sizes.measure", failing)
    done = call(capsys, "compile", model, "-o", tmp_path / "c")
    assert done.code == 0
    assert "not measured: cc failed: no stdint.h" in done.err


@needs_compiler
def test_bytes_are_checked_against_the_interpreter(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).integers(0, 256, (20, 16), np.uint8)
    np.save(tmp_path / "x.npy", x)
    words = ["--input", "bytes", "--preprocess", "(x - 100) / 70", "--check", f"{tmp_path}/x.npy"]
    target = ["--target", "cortex-m0plus", "--self-test", "--library", "--name", "net", "--json"]
    done = call(capsys, "compile", model, "-o", tmp_path / "c", *words, *target)
    assert done.code == 0
    found = json.loads(done.out)
    assert found["check"]["records"] == found["check"]["same"] == 20
    assert 0 < found["check"]["largest_difference"] < 1e-4
    names = sorted(p.name for p in (tmp_path / "c").iterdir())
    assert names == ["net.c", "net.h", "net.so", "net_test.c"]
    compiled = luciole.Compiled(tmp_path / "c" / "net.so")
    assert compiled.input_shapes == {"x": (1, 16)}


@needs_compiler
def test_a_wrong_answer_fails(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 16), np.float32))
    real = luciole.Compiled.run

    def reversed_(self: luciole.Compiled, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return [y[..., ::-1] for y in real(self, inputs)]

    monkeypatch.setattr(luciole.Compiled, "run", reversed_)
    words = ("compile", model, "-o", tmp_path / "c", "--name", "net", "--self-test")
    done = call(capsys, *words, "--check", tmp_path / "x.npy")
    assert done.code == 1
    assert "WRONG: 0 of 3 equal" in done.out
    assert "were\n * compared: WRONG: 0 of 3 equal" in (tmp_path / "c" / "net_test.c").read_text()


@needs_compiler
def test_another_class_is_shown_with_its_record_and_the_scores_margin(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.random.default_rng(3).normal(size=(3, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    scores = interpreted(luciole.load(model), {"x": x[1:2]})[0][0]
    real, least = luciole.Compiled.run, int(scores.argmin())
    runs: list[int] = []

    def once_wrong(self: luciole.Compiled, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        runs.append(len(runs))
        results = real(self, inputs)
        return [np.full_like(y, least) for y in results] if runs[-1] == 1 else results

    monkeypatch.setattr(luciole.Compiled, "run", once_wrong)
    words = ("compile", model, "-o", tmp_path / "c", "--output", "class")
    done = call(capsys, *words, "--check", tmp_path / "x.npy")
    margin = f"{float(scores.max()) - float(scores.min()):.1e}"
    text = f"record 1: class {least}, the interpreter's {scores.argmax()} scores {margin} more"
    assert "WRONG: 2 of 3 equal" in done.out
    assert text in done.out


def test_an_operator_without_a_c_form_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = Model()
    graph = odd.add_graph(Graph("main"))
    x = graph.add_input("x", (4, 3))
    op = graph.append(Pow(x, graph.add_constant("i", np.ones(3, np.float32))), "raised")
    graph.outputs = [op.results[0]]
    luciole.save(odd, tmp_path / "odd.tflite")
    done = call(capsys, "compile", tmp_path / "odd.tflite", "-o", tmp_path / "c")
    assert done.error(3).startswith("cannot compile POW (1x): ")
    assert not (tmp_path / "c").exists()


def test_choices_that_do_not_suit_the_model_are_wrong_usage(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "compile", model, "-o", tmp_path / "c", "--input", "quantized")
    assert done.error(2) == "input 'x' is float: give bytes or float"
    done = call(capsys, "compile", model, "-o", tmp_path / "c", "--name", "a b")
    assert done.error(2).startswith("name 'a b': ")
    done = call(capsys, "compile", model, "-o", tmp_path / "c", "--name", "")
    assert done.error(2).startswith("name '': ")
    done = call(capsys, "compile", model, "-o", tmp_path / "c", "--preprocess", "x/2")
    assert done.error(2) == "--preprocess goes with --input bytes or --check DATA"
    done = call(capsys, "compile", model, "-o", tmp_path / "c", "--limit", "3")
    assert done.error(2) == "--limit goes with --check DATA"


@needs_compiler
def test_records_that_are_no_bytes_are_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.full((3, 16), 0.5, np.float32))
    words = ["--input", "bytes", "--check", f"{tmp_path}/x.npy"]
    done = call(capsys, "compile", model, "-o", tmp_path / "c", *words)
    assert done.error(2) == "--input bytes: 'x' has more than whole numbers from 0 to 255"


@needs_compiler
def test_from_python(model: Path, tmp_path: Path) -> None:
    program = luciole.compile(model, tmp_path / "c", "net", library=True)
    assert program.table_bytes > 100
    x = np.ones((1, 16), np.float32)
    (found,) = luciole.Compiled(tmp_path / "c" / "net.so").run({"x": x})
    (wanted,) = interpreted(luciole.load(model), {"x": x})
    np.testing.assert_allclose(found, wanted, atol=1e-5)
