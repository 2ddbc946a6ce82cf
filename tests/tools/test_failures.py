"""Whatever goes wrong: one line, an exit code, no traceback, and nothing half-written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from luciole import load
from luciole.exporters import to_bytes
from luciole.ir import Op
from luciole.ir.passes import split_quantization
from luciole.tools import lquantizer
from luciole.tools.common.slips import place_of
from luciole.tools.data import write_hdf5
from tests.networks import network, random
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]
X = random(50, 60, 20)


def argv(**changes: str) -> list[str]:
    """Arguments of ``lquantizer`` with some of them changed or added."""
    given = {
        "input_model": "model.circle",
        "output_model": "answer.circle",
        "input_data": "train.npy",
    } | changes
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def nan_data() -> None:
    bad = X.copy()
    bad[17, 3] = np.nan
    write_hdf5("bad.hdf5", {"x": bad})


def wrong_shape() -> None:
    write_hdf5("bad.hdf5", {"x": X[:, :19]})


def two_arrays() -> None:
    write_hdf5("bad.hdf5", {"x": X, "y": X})


def no_hdf5() -> None:
    Path("bad.hdf5").write_text("not really")


def empty() -> None:
    Path("bad.hdf5").write_bytes(b"")


def cut_short() -> None:
    Path("bad.hdf5").write_bytes(Path("train.hdf5").read_bytes()[:5000])


def missing() -> None:
    pass


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (nan_data, "bad.hdf5: input 'x': element [3] of record 17 is nan: not finite"),
        (wrong_shape, "bad.hdf5: input 'x' takes records of shape [20], found [1,19]"),
        (two_arrays, "bad.hdf5: record 0 has 2 inputs, the model 1: 'x'"),
        (no_hdf5, "bad.hdf5: is damaged or no HDF5 file, whatever its name"),
        (empty, "bad.hdf5: the file is empty"),
        (cut_short, "bad.hdf5: "),
        (missing, "bad.hdf5: no such file or folder"),
    ],
)
def test_lquantizer_refuses_data_and_writes_nothing(
    capsys: Capture, folder: Path, damage: Callable[[], None], sentence: str
) -> None:
    damage()
    before = left_behind(folder)
    text = call(capsys, *argv(input_data="bad.hdf5"), main=lquantizer.main).error(1)
    assert text.startswith(sentence)
    assert left_behind(folder) == before


@pytest.mark.parametrize("share", [0, 3, 8, 40, 300, 1000, 2500])
@pytest.mark.parametrize("program", ["quantize", "eval", "import"])
def test_programs_refuse_a_model_that_is_cut_short(
    capsys: Capture, folder: Path, program: str, share: int
) -> None:
    Path("short.circle").write_bytes(Path("model.circle").read_bytes()[:share])
    before = left_behind(folder)
    words = {
        "quantize": argv(input_model="short.circle"),
        "eval": ["short.circle", "--data", "train.npy"],
        "import": ["short.circle", "-o", "answer.circle"],
    }[program]
    text = call(capsys, program, *words).error(1)
    starts = ("not a .circle", "damaged file: ", "error [BYTES] ")
    assert text.startswith(tuple(f"short.circle: {start}" for start in starts)), text
    assert left_behind(folder) == before


@pytest.mark.parametrize("share", [0, 3, 8, 40])
@pytest.mark.parametrize("program", ["dump", "verify", "view"])
def test_programs_that_look_refuse_what_gives_no_model(
    capsys: Capture, folder: Path, program: str, share: int
) -> None:
    Path("short.circle").write_bytes(Path("model.circle").read_bytes()[:share])
    words = ["-o", "short.html"] if program == "view" else []
    text = call(capsys, program, "short.circle", *words).error(1)
    assert text.startswith(("short.circle: not a .circle", "short.circle: damaged file: ")), text
    assert not Path("short.html").exists()


@pytest.mark.parametrize("share", [300, 1000, 2500])
def test_programs_that_look_show_what_is_left_of_a_model(
    capsys: Capture, folder: Path, share: int
) -> None:
    Path("short.circle").write_bytes(Path("model.circle").read_bytes()[:share])
    listed = call(capsys, "verify", "short.circle")
    assert (listed.code, listed.err) == (1, "")
    assert listed.out.startswith("error [BYTES] ")
    shown = call(capsys, "dump", "short.circle")
    assert shown.code == 1
    assert listed.out.splitlines()[0] in shown.out
    assert shown.err.startswith(f"luciole: error: short.circle: {listed.out.splitlines()[0]}")
    drawn = call(capsys, "view", "short.circle", "-o", "short.html")
    assert (drawn.code, drawn.err) == (1, shown.err)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"text, no model at all",
            "model.txt: not a .circle, .tflite, .recipe, .onnx, .keras, .h5, SavedModel or .pt2 ",
        ),
        (b"", "model.txt: not a .circle, .tflite, .recipe, .onnx, .keras, .h5, SavedModel or .pt2"),
        (None, "model.txt: No such file or directory"),
    ],
)
def test_programs_refuse_what_is_no_model(
    capsys: Capture, folder: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        Path("model.txt").write_bytes(content)
    assert call(capsys, "dump", "model.txt").error(1).startswith(sentence)
    assert call(capsys, "verify", "model.txt").error(1).startswith(sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"encode_bits": "0"}, "argument --encode-bits: 0: 1 to 4 are possible"),
        ({"encode_bits": "5"}, "argument --encode-bits: 5: 1 to 4 are possible"),
        ({"input_bits": "9"}, "argument --input-bits: 9: 1 to 8 are possible"),
        ({"weight_bits": "0"}, "argument --weight-bits: 0: 1 to 4 are possible"),
        ({"output_model": "answer.pt"}, "answer.pt: can write .circle, .tflite and .onnx, not .pt"),
        (
            {"output_model": "answer.tflite", "encode_bits": "3"},
            "answer.tflite: only .circle holds layers",
        ),
        ({"calibration": "0"}, "--calibration is 0: at least 1 record is needed"),
        ({"preprocess": "y/255"}, "preprocess "),
        ({"preprocess": "x/"}, "preprocess 'x/' is not an expression"),
        ({"preprocess": "__import__('os')"}, "preprocess "),
    ],
)
def test_lquantizer_refuses_wrong_usage(
    capsys: Capture, folder: Path, changes: dict[str, str], sentence: str
) -> None:
    text = call(capsys, *argv(**changes), main=lquantizer.main).error(2)
    assert text.startswith(sentence)
    assert not Path("answer.circle").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"output_model": "nowhere/answer.circle"}, "cannot write nowhere/answer.circle: there is"),
        ({"output_model": "train.hdf5/answer.circle"}, "cannot write train.hdf5/answer.circle: "),
        ({"output_model": "."}, "cannot write .: it is a folder"),
        ({"report": "nowhere/report.json"}, "cannot write nowhere/report.json: "),
        ({"report": "."}, "cannot write .: "),
        ({"config": "missing.json"}, "config missing.json: No such file or directory"),
        ({"config": "train.hdf5"}, "config train.hdf5: not JSON"),
        ({"input_data": "train.hdf5:x"}, "train.hdf5: array 'x' is asked for, but only .npz files"),
    ],
)
def test_lquantizer_refuses_arguments_and_writes_nothing(
    capsys: Capture, folder: Path, changes: dict[str, str], sentence: str
) -> None:
    before = left_behind(folder)
    assert call(capsys, *argv(**changes), main=lquantizer.main).error(1).startswith(sentence)
    assert left_behind(folder) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"output_model": "nowhere/a.circle"},
        {"output_model": "a.tflite", "encode_bits": "3"},
        {"report": "nowhere/r.json"},
        {"encode_bits": "9"},
    ],
)
def test_lquantizer_refuses_before_the_long_work(
    capsys: Capture, folder: Path, changes: dict[str, str]
) -> None:
    outcome = call(capsys, *argv(**changes), main=lquantizer.main)
    assert len(outcome.err.splitlines()) == 1  # the data was not even read


def test_lquantizer_refuses_a_folder_that_is_read_only(capsys: Capture, folder: Path) -> None:
    Path("locked").mkdir(mode=0o555)
    if os.access("locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    for changes in ({"output_model": "locked/answer.circle"}, {"report": "locked/report.json"}):
        text = call(capsys, *argv(**changes), main=lquantizer.main).error(1)
        assert text.startswith("cannot write locked/")
    assert left_behind(Path("locked")) == set()


def test_lquantizer_refuses_a_place_that_takes_no_files(capsys: Capture, folder: Path) -> None:
    """A folder that looks writable to its owner and is not: found when the file is made."""
    if not Path("/proc/self").exists():
        pytest.skip("needs Linux's /proc")
    text = call(capsys, *argv(output_model="/proc/answer.circle"), main=lquantizer.main).error(1)
    assert text.startswith("cannot write /proc/answer.circle: ")


def test_an_answer_that_is_there_already_stays_when_something_fails(
    capsys: Capture, folder: Path
) -> None:
    Path("answer.circle").write_bytes(b"precious")
    nan_data()
    call(capsys, *argv(input_data="bad.hdf5"), main=lquantizer.main).error(1)
    assert Path("answer.circle").read_bytes() == b"precious"


def test_lquantizer_refuses_a_model_with_nothing_to_quantize(capsys: Capture, folder: Path) -> None:
    Path("skip.json").write_text(json.dumps({"layers": [{"pattern": "*", "skip": True}]}))
    text = call(capsys, *argv(config="skip.json"), main=lquantizer.main).error(1)
    assert text == "nothing to quantize: fc1: skipped by the config; fc2: skipped by the config"
    assert not Path("answer.circle").exists()


def test_lquantizer_refuses_a_config_for_other_layers(capsys: Capture, folder: Path) -> None:
    Path("other.json").write_text(json.dumps({"layers": [{"name": "conv9", "skip": True}]}))
    text = call(capsys, *argv(config="other.json"), main=lquantizer.main).error(1)
    assert text == "config: 'conv9' matches no layer; the layers are fc1, fc2"


def test_lquantizer_refuses_a_model_it_cannot_run(capsys: Capture, folder: Path) -> None:
    """A dense layer behind an operator without a kernel: found before anything is fitted."""
    from luciole.ir import TensorType, UnknownOp, Value

    model = network()
    graph, op = model.graph, model.graph.ops[2]
    hidden = op.operands[0]
    result = graph.add_value(Value("odd", TensorType.FLOAT32, (1, 16)))
    graph.append(UnknownOp(32, [hidden], custom_code="Mystery"), results=[result])
    graph.ops[2:] = [graph.ops[3], graph.ops[2]]
    op.set_operand(0, result)
    Path("odd.circle").write_bytes(to_bytes(model))
    text = call(capsys, *argv(input_model="odd.circle"), main=lquantizer.main).error(3)
    assert text.startswith("cannot run CUSTOM(Mystery) (1x): ")
    assert not Path("answer.circle").exists()


def test_an_error_that_nobody_meant_names_operator_and_pass(
    capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line; ``--debug`` still raises it."""

    def slipping(op: Op, *_: object) -> bool:
        assert op.graph is not None
        raise IndexError(f"tuple index out of range in {op.graph.name!r}")

    monkeypatch.setattr(split_quantization, "splits", slipping)
    words = ("quantize", "model.circle", "-o", "answer.circle", "--simulate")
    text = call(capsys, *words).error(1)
    (op, *_) = load("model.circle").graph.ops
    assert text.startswith(f"{op}: luciole.ir.passes.split_quantization does not take it (IndexErr")
    assert text.endswith("tuple index out of range in 'main'; --debug shows where)")
    with pytest.raises(IndexError):
        call(capsys, *words, "--debug")


def test_an_error_of_the_machine_blames_no_operator() -> None:
    def hungry(op: Op) -> None:
        raise MemoryError(op.name)

    with pytest.raises(MemoryError) as found:
        hungry(network().graph.ops[0])
    assert isinstance(found.value, Exception)
    assert place_of(found.value) == ""
