"""Other runtimes: inputs translated for them, answers like ours, and what is refused."""

from __future__ import annotations

import gc
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Graph, Model
from luciole.ir.ops import Relu, Relu6
from luciole.tools import bench
from luciole.tools.bench.compare import largest_difference
from luciole.tools.bench.inputs import random_inputs
from luciole.tools.bench.peers import open_peer
from luciole.tools.bench.process import RemoteRuntime
from luciole.tools.bench.runtime import BenchError, Port, Runtime, translated
from luciole.tools.common.timing import measured
from tests.networks import network, random, two_inputs
from tests.tools.bench_support import NOW, QUICK, report, run
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]


class Fake(Runtime):
    """A runtime that keeps what it is fed."""

    kind = "fake"

    def __init__(self, *ports: Port) -> None:
        super().__init__(Path("fake.model"))
        self.inputs = list(ports)
        self.outputs = []
        self.invoke = lambda: None

    def feed(self, arrays: Sequence[Array]) -> None:
        raise NotImplementedError

    def fetch(self) -> list[Array]:
        raise NotImplementedError


def port(dtype: str, *shape: int, scale: float = 0.0, zero: int = 0) -> Port:
    return Port.of("x", dtype, shape, scale, zero)


def test_quantized_inputs_are_translated() -> None:
    x = np.array([[-1.0, 0.0, 0.26, 100.0]], np.float32)
    ours, theirs = Fake(port("float32", 1, 4)), Fake(port("int8", 1, 4, scale=0.5, zero=3))
    (found,) = translated([x], ours, theirs)
    assert found.dtype == np.int8
    assert found.tolist() == [[1, 3, 4, 127]]
    (halves,) = translated([np.array([[-0.25, 0.25, 0.75, -0.75]], np.float32)], ours, theirs)
    assert halves.tolist() == [[2, 4, 5, 1]], "away from zero, as luciole and TFLite quantize"
    (back,) = translated([found], theirs, ours)
    assert back.dtype == np.float32
    assert back.tolist() == [[-1.0, 0.0, 0.5, 62.0]]
    (same,) = translated([found], theirs, theirs)
    assert same.tolist() == found.tolist()


def test_numbers_without_axes_stay_so() -> None:
    x = np.array(2.5, np.float32)
    for theirs in (port("float32"), port("int8", scale=0.5)):
        (found,) = translated([x], Fake(port("float32")), Fake(theirs))
        assert found.shape == ()


def test_shapes_are_translated() -> None:
    x = random(1, 1, 2, 3, 4)
    ours = Fake(port("float32", 1, 2, 3, 4))
    for shape, wanted in (
        ((1, 2, 3, 4), x),
        ((2, 3, 4), x[0]),
        ((1, 24), x.reshape(1, 24)),
        ((1, 4, 2, 3), np.moveaxis(x, 3, 1)),
    ):
        (found,) = translated([x], ours, Fake(port("float32", *shape)))
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("ports", "sentence"),
    [
        ([], "fake fake.model has 0 inputs, fake fake.model has 1"),
        ([port("float32", 1, 25)], "fake fake.model takes 'x' as [1,25], the model 'x' as"),
        ([port("float32", 1, 3, 2, 4)], "fake fake.model takes 'x' as [1,3,2,4]"),
    ],
)
def test_translated_refuses_inputs_that_do_not_fit(ports: list[Port], sentence: str) -> None:
    ours = Fake(port("float32", 1, 2, 3, 4))
    with pytest.raises(BenchError) as refusal:
        translated([random(1, 1, 2, 3, 4)], ours, Fake(*ports))
    assert str(refusal.value).startswith(sentence)


def test_random_inputs_follow_the_types() -> None:
    ports = [port("float32", 500), port("int8", 5000), port("int64", 5000), port("bool", 500)]
    ((floats, octets, longs, truths),) = random_inputs(ports, seed=1)
    assert (floats.dtype, octets.dtype, longs.dtype, truths.dtype) == tuple(p.dtype for p in ports)
    assert abs(floats.mean()) < 0.2
    assert (octets.min(), octets.max()) == (-128, 127)
    assert (longs.min(), longs.max()) == (0, 99)
    assert 0.3 < truths.mean() < 0.7
    assert not np.array_equal(floats, random_inputs(ports, seed=2)[0][0])


def test_random_inputs_refuses_strings() -> None:
    with pytest.raises(BenchError, match="input 'x' is object: no random numbers for it"):
        random_inputs([port("object", 3)], seed=0)


def test_the_largest_difference() -> None:
    a, b = [np.array([[1.0, 2.0]]), np.array([3])], [np.array([1.5, 2.0]), np.array([5])]
    assert largest_difference(a, b) == 2
    assert largest_difference(a[:1], b) is None
    assert largest_difference([np.zeros(3)], [np.zeros(2)]) is None


def test_a_difference_in_the_last_record_is_seen(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for cls, name in ((Relu, "relu.circle"), (Relu6, "relu6.circle")):
        model = Model()
        graph = model.add_graph(Graph("main"))
        graph.outputs = [graph.append(cls(graph.add_input("x", (None, 3))), "y").output]
        luciole.save(model, name)
    records = np.ones((70, 3), np.float32)
    records[-1, 2] = 8
    np.save("records.npy", records)
    argv = ("relu.circle", "--data", "records.npy", "--against", "relu6.circle")
    (peer,) = report(capsys, *argv)["peers"]
    found = [peer[key] for key in ("largest_difference", "unequal_runs", "compared_runs")]
    assert found == [2.0, 1, 70]
    assert "2, 1 of 70 runs" in run(capsys, *argv).out


def test_litert_gives_the_same_answers(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    luciole.save(luciole.load("model.circle"), "model.tflite")
    argv = ("model.circle", "--data", "test.npz", "--against", "litert:model.tflite")
    found = report(capsys, *argv)
    (peer,) = found["peers"]
    assert (peer["name"], peer["runtime"]) == ("litert model.tflite", "litert")
    assert peer["largest_difference"] < 1e-5
    assert peer["top1"] == found["top1"] == 0.75
    assert peer["load_ms"] > 0
    assert found["machine"]["versions"]["ai-edge-litert"]


def test_peers_take_the_batch_of_ours(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    for name in ("open.circle", "open.tflite"):
        luciole.save(network(shape=(None, 20)), name)
    argv = ["open.circle", "--input_shape=6,20", "--against", "open.tflite"]
    ours, litert = report(capsys, *argv, "--against", "litert:open.tflite")["peers"]
    assert ours["largest_difference"] == 0
    assert litert["largest_difference"] < 1e-5


def test_onert_gives_the_same_answers(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("onert")
    luciole.save(two_inputs(), "two.circle")
    found = report(capsys, "two.circle", "--against", "onert:two.circle")
    assert found["peers"][0]["largest_difference"] < 1e-5


def test_onnxruntime_gives_the_same_answers(capsys: Capture, folder: Path) -> None:
    onnx: Any = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = random(3, 20, 4)
    graph = make.make_graph(
        [make.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [make.make_tensor_value_info("x", kind, ["records", 20])],
        [make.make_tensor_value_info("y", kind, ["records", 4])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    opset = [make.make_opsetid("", 13)]
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=8), "m.onnx")
    peer = open_peer("onnxruntime:m.onnx", 1, [(3, 20)])
    x = random(4, 3, 20)
    peer.feed([x])
    peer.invoke()
    np.testing.assert_allclose(peer.fetch()[0], x @ weights, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(peer.with_copies([2 * x])[0], 2 * x @ weights, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "module", "sentence"),
    [
        (
            "litert:x.tflite",
            "ai_edge_litert",
            "litert needs the package ai-edge-litert",
        ),
        ("onnxruntime:x.onnx", "onnxruntime", "onnxruntime needs the package onnxruntime"),
        ("onert:x.circle", "onert", "onert needs the package onert"),
    ],
)
def test_bench_refuses_a_runtime_that_is_not_installed(
    capsys: Capture,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    spec: str,
    module: str,
    sentence: str,
) -> None:
    package = folder / "shadow" / module
    package.mkdir(parents=True)
    raises = "raise ModuleNotFoundError('it is not installed')"
    package.joinpath("__init__.py").write_text(raises)
    monkeypatch.syspath_prepend(folder / "shadow")
    Path(spec.partition(":")[2]).write_bytes(b"")
    text = call(capsys, "model.circle", "--against", spec, main=bench.main).error(1)
    assert text.startswith(f"comparing with {sentence}")
    extra = {"onnxruntime": "onnx"}.get(spec.partition(":")[0], spec.partition(":")[0])
    assert text.endswith(f'pip install ".[{extra}]" in the folder of luciole\'s sources')


@pytest.mark.parametrize(
    ("spec", "code", "sentence"),
    [
        ("tensorrt:x.plan", 2, "'tensorrt' is no runtime to compare with: there is litert,"),
        ("litert:nowhere.tflite", 1, "litert:nowhere.tflite: there is no file 'nowhere.tflite'"),
    ],
)
def test_bench_refuses_unknown_runtimes_and_missing_files(
    capsys: Capture, folder: Path, spec: str, code: int, sentence: str
) -> None:
    text = call(capsys, "model.circle", *QUICK, "--against", spec, main=bench.main).error(code)
    assert text.startswith(sentence)


def test_bench_refuses_what_a_runtime_refuses(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    argv = ("model.circle", *QUICK, "--against", "litert:test.npz")
    text = call(capsys, *argv, main=bench.main).error(1)
    assert text.startswith("litert cannot run test.npz: ")


FAKE = """
import os, signal
import numpy as np

class Info:
    dtype, dims, rank = "float32", (1, 20), 2

class Inner:
    runs = 0

    def run(self):
        self.runs += 1
        if self.runs == {runs}:
            print("a library prints what it likes")
            os.kill(os.getpid(), signal.SIGSEGV)

    def get_output(self, index):
        return np.zeros((1, 4), np.float32)

class session:
    def __init__(self, path):
        self.session = Inner()

    def get_inputs_tensorinfo(self):
        if {runs} == 0:
            os.kill(os.getpid(), signal.SIGABRT)
        return [Info()]

    def infer(self, arrays):
        return [np.zeros((1, 4), np.float32)]

    def set_inputs(self, count, arrays):
        assert count == 1
"""


def fake_onert(folder: Path, monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """Let what is imported as onert crash at its n-th run (0: while it loads)."""
    package = folder / "shadow" / "onert"
    package.mkdir(parents=True, exist_ok=True)
    package.joinpath("__init__.py").write_text("")
    package.joinpath("infer.py").write_text(FAKE.format(runs=runs))
    monkeypatch.syspath_prepend(folder / "shadow")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("runs", "line"),
    [
        (0, "crashed (aborted) while loading it"),
        (1, "crashed (segmentation fault) while running"),
        (40, "crashed (segmentation fault) while running"),
    ],
)
def test_a_peer_that_crashes_is_a_line_and_the_table_goes_on(
    capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch, runs: int, line: str
) -> None:
    fake_onert(folder, monkeypatch, runs)
    against = ("--against", "onert:model.circle", "--against", "model.circle")
    argv = ("model.circle", *QUICK, "--data", "test.npz", *against)
    outcome = call(capsys, *argv, main=bench.main)
    assert outcome.code == 0
    warnings = [text for text in outcome.err.splitlines() if "warning" in text]
    assert warnings == [f"luciole: warning: onert model.circle {line}"]
    assert "time, medians of interleaved samples" in outcome.out
    assert "a library prints" not in outcome.out
    found = json.loads(call(capsys, *argv, "--json", main=bench.main).out)
    assert [peer["runtime"] for peer in found["peers"]] == ["luciole"]
    assert found["crashed"] == [f"onert model.circle {line}"]


def test_a_peer_is_timed_in_a_process_of_its_own_that_ends_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_onert(folder, monkeypatch, -1)
    peer = open_peer("onert:model.circle", 1, [(1, 20)])
    invoke, copies = peer.timed([])
    peer.feed([random(1, 1, 20)])
    first, second = measured([invoke, copies], NOW, rounds=2)
    assert 0 < first.median_us < second.median_us
    assert peer.fetch()[0].shape == (1, 4)
    assert isinstance(peer, RemoteRuntime)
    process = peer._process
    assert process.poll() is None
    del peer, invoke, copies
    gc.collect()
    assert isinstance(process, subprocess.Popen)
    assert process.poll() is not None


def test_json_stays_alone_on_standard_output(capsys: Capture, folder: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    luciole.save(network(), "model.tflite")
    argv = ("model.circle", *QUICK, "--against", "litert:model.tflite", "--json")
    json.loads(call(capsys, *argv, main=bench.main).out)
