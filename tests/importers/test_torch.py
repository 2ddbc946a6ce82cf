"""torch modules, and files of torch.export, give what torch computes.

Tolerance: 1e-5, with outputs of about 1. All but the refusals need torch, which is in an extra of
its own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers.reader import Example
from luciole.importers.torch.convert import from_live
from luciole.ir import Array, LucioleError
from luciole.ir.analysis.origins import origins
from luciole.ir.analysis.weights import has_weights
from luciole.ir.errors import FormatError
from luciole.schema.enums import BuiltinOperator
from tests.tools.running import call

SHAPE = (2, 3, 8, 6)


@pytest.fixture(scope="module")
def torch() -> Any:
    pytest.importorskip("onnxscript")
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def module(torch: Any) -> Any:
    """A network with two named outputs, in training as modules are when they are made."""
    nn = torch.nn

    class Network(nn.Module):  # type: ignore[misc, name-defined]  # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.convolve = nn.Conv2d(3, 5, 3, padding=1)
            self.norm = nn.BatchNorm2d(5)
            self.drop = nn.Dropout(0.5)
            self.head = nn.Linear(5, 4)

        def forward(self, image: Any) -> Any:
            y = torch.relu(self.norm(self.convolve(image))).mean((2, 3))
            logits = self.head(self.drop(y))
            return {"logits": logits, "chances": torch.softmax(logits, -1)}

    torch.manual_seed(1)
    made = Network()
    made.norm.running_mean.uniform_(-0.2, 0.2)
    made.norm.running_var.uniform_(0.5, 1.5)
    return made


def image(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def check(
    torch: Any, module: Any, model: luciole.Model, x: Array, order: tuple[int, ...] = (0, 1, 2, 3)
) -> None:
    """Compare all outputs; ``order`` is that of the axes which the model reads."""
    module.eval()
    with torch.no_grad():
        exact = {name: y.numpy() for name, y in module(torch.from_numpy(x)).items()}
    module.train()
    results = luciole.Interpreter(model).run({"image": x.transpose(order)})
    assert results.keys() == exact.keys()
    for name, y in exact.items():
        np.testing.assert_allclose(results[name], y, rtol=0, atol=1e-5)


def test_a_module_gives_what_torch_computes_and_stays_as_it_was(torch: Any, module: Any) -> None:
    model = luciole.load(module, torch.zeros(SHAPE))
    assert [v.shape for v in model.graph.inputs] == [SHAPE]
    assert module.training
    assert module.norm.training
    check(torch, module, model, image(*SHAPE))


def test_layers_are_called_after_their_modules(torch: Any) -> None:
    nn = torch.nn
    network = nn.Sequential()
    network.add_module("block", nn.Sequential(nn.Linear(4, 5), nn.Tanh()))
    network.add_module("head", nn.Linear(5, 3))
    graph = luciole.load(network, torch.zeros(1, 4)).graph
    assert [op.results[0].name for op in graph.ops] == ["block/0", "block/1", "head"]
    assert [v.name for v in (*graph.inputs, *graph.outputs)] == ["input", "head"]


def test_fused_activations_leave_layers_the_names_of_their_modules(torch: Any) -> None:
    nn = torch.nn
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    network.append(nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU6()))
    network.extend([nn.Flatten(), nn.Linear(16, 2), nn.ReLU()])
    graph = luciole.load(network, torch.zeros(1, 3, 6, 6)).graph
    names = [op.name for op in graph.ops if has_weights(op)]
    assert names == ["0", "3/0", "6"], "the last one is the output of the network"
    imported = from_live(network, Example(torch.zeros(1, 3, 6, 6)))
    nodes, behind = imported.nodes, origins(imported.model.graph, imported.nodes)
    came = {op.name: [nodes[n].name for n in numbers] for op, numbers in behind.items()}
    assert came["0"] == ["1", "2"], "torch folds the normalization, whose name it keeps"
    assert came["3/0"][0] == "3/0"
    assert came["6"][-2:] == ["5", "6"]
    assert set().union(*behind.values()) == set(range(len(nodes)))


def test_named_extents_stay_open(torch: Any, module: Any) -> None:
    shapes = {"image": {0: "batch", 2: "height"}}
    model = luciole.load(module, {"image": image(*SHAPE)}, dynamic_shapes=shapes)
    assert model.graph.inputs[0].shape == (None, 3, None, 6)
    check(torch, module, model, image(3, 3, 7, 6))


def test_named_extents_are_settled(torch: Any, module: Any) -> None:
    """Those of the only input need not say its name."""
    shapes = {0: "batch", 2: "height"}
    settled = luciole.load(
        module, image(*SHAPE), dynamic_shapes=shapes, batch=4, dims={"height": 9}
    )
    assert settled.graph.inputs[0].shape == (4, 3, 9, 6)
    check(torch, module, settled, image(4, 3, 9, 6))


def test_a_program_and_its_file_give_what_torch_computes(
    torch: Any, module: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shapes = ({0: torch.export.Dim.DYNAMIC},)
    module.eval()
    program = torch.export.export(module, (torch.zeros(SHAPE),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "net.pt2")
    check(torch, module, luciole.load(program), image(3, 3, 8, 6))
    words = ("import", tmp_path / "net.pt2", "-o", tmp_path / "net.circle", "--nhwc")
    outcome = call(capfd, *words, "--batch", "3")
    assert (outcome.code, outcome.err) == (0, "")
    model = luciole.load(tmp_path / "net.circle")
    assert model.graph.inputs[0].shape == (3, 8, 6, 3)
    kinds = [op.kind for op in model.graph.ops]
    assert BuiltinOperator.TRANSPOSE.name not in kinds
    check(torch, module, model, image(3, 3, 8, 6), (0, 2, 3, 1))


def test_a_file_refuses_what_torch_would_run(torch: Any, module: Any, tmp_path: Path) -> None:
    """A program calls an operator of its own library, as torch.export saves it."""
    torch.library.define("luciole_test::own", "(Tensor x) -> Tensor")
    torch.library.impl("luciole_test::own", "CPU")(lambda x: x + 1)
    torch.library.register_fake("luciole_test::own")(lambda x: x + 1)

    class Own(torch.nn.Module):  # type: ignore[misc]  # as above
        def forward(self, x: Any) -> Any:
            return torch.ops.luciole_test.own(x)

    path = tmp_path / "own.pt2"
    torch.export.save(torch.export.export(Own(), (torch.zeros(2),)), path)
    with pytest.raises(FormatError, match=r"own\.pt2: torch would call 'torch.ops.luciole_test"):
        luciole.load(path)


def test_modules_refuse_what_torch_cannot_trace_or_write(torch: Any, module: Any) -> None:
    class Chooses(torch.nn.Module):  # type: ignore[misc]  # as above
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    class Decomposes(torch.nn.Module):  # type: ignore[misc]  # as above
        def forward(self, x: Any) -> Any:
            return torch.linalg.eigvals(x)

    one, square = torch.zeros(1, 3, 8, 6), torch.zeros(3, 3)
    cases: list[tuple[Any, Any, Any, str]] = [
        (Chooses(), square, None, "Chooses: torch.export cannot trace it: Could not guard"),
        (Decomposes(), square, None, "as ONNX: there is no ONNX form of aten.linalg_eig"),
        (module, one, {0: "batch"}, "is 1 in the example: torch needs 2 or more there"),
        (module, square, None, "cannot trace it: "),
        (module, one, "batch", "dynamic_shapes: a dictionary by axis, .* is needed, found str"),
        (module, None, None, r"Network: a module needs example inputs: load\(module, example"),
    ]
    for live, example, shapes, sentence in cases:
        with pytest.raises(LucioleError, match=sentence) as refusal:
            luciole.load(live, example, dynamic_shapes=shapes)
        assert "\n" not in str(refusal.value)


def test_an_archive_without_torch_refuses_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"PK\x03\x04" + bytes(22) + b"\x0b\x00\x00\x00net/data/w0")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(LucioleError, match=r"needs torch, onnx and onnxscript: pip .*\[torch\]"):
        luciole.load(path)


def test_load_refuses_objects_that_nothing_reads() -> None:
    with pytest.raises(LucioleError, match=r"^int is not read: the path of a model, .* is$"):
        luciole.load(3)
    with pytest.raises(LucioleError, match=r"^a file has its shapes: no example goes"):
        luciole.load("x.onnx", np.zeros(3))
