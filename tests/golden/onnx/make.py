# mypy: disable-error-code="misc,import-not-found"
# (torch is not installed where types are checked)
"""Writes the files beside this one: small networks of torch.nn modules as PyTorch exports them.

    python3 tests/golden/onnx/make.py        # needs torch and onnxscript, which no test does

``cnn.onnx`` has an open batch size. ``lstm.onnx`` is what the exporter before torch.export writes.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import torch
from torch import nn

HERE = Path(__file__).parent
TRACE = "pkg.torch.onnx.stack_trace"
"""What PyTorch notes of the lines that made a node: places of the machine."""


class InvertedResidual(nn.Module):
    """A block of MobileNetV2 (Sandler et al., arXiv:1801.04381, figure 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(8, 24, 1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU6(),
            nn.Conv2d(24, 24, 3, padding=1, groups=24, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU6(),
            nn.Conv2d(24, 8, 1, bias=False),
            nn.BatchNorm2d(8),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class UNet(nn.Module):
    """One step down and up again (Ronneberger et al., arXiv:1505.04597)."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.inner = nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.relu(self.down(x))
        second = torch.relu(self.inner(self.pool(first)))
        return self.last(torch.cat([first, self.up(second)], 1))


class Sequence(nn.Module):
    """An LSTM of 20 steps and a dense layer on its last one."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 12, batch_first=True)
        self.dense = nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.lstm(x)[0][:, -1])


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
        nn.Softmax(-1),
    )


def settled(model: nn.Module) -> nn.Module:
    """Give batch normalizations other numbers than ones and zeros."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    return model.eval()


def write(name: str, model: nn.Module, shape: tuple[int, ...], **options: object) -> None:
    torch.onnx.export(
        settled(model),
        (torch.randn(shape),),
        HERE / f"{name}.onnx",
        input_names=["x"],
        output_names=["y"],
        **options,
    )
    leave_traces_out(HERE / f"{name}.onnx")


def leave_traces_out(path: Path) -> None:
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key != TRACE]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def main() -> None:
    torch.manual_seed(0)
    new = {"dynamo": True, "external_data": False, "verbose": False}
    batch = torch.export.Dim("batch", min=2, max=512)
    write("cnn", cnn(), (4, 3, 32, 32), dynamic_shapes=({0: batch},), **new)
    write("mobilenet_v2_block", InvertedResidual(), (1, 8, 14, 14), **new)
    write("unet", UNet(), (1, 3, 16, 16), **new)
    encoder = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
    write("transformer", encoder, (2, 9, 16), **new)
    write("lstm", Sequence(), (1, 20, 6), dynamo=False, opset_version=17)
    write("gru", nn.Sequential(nn.GRU(6, 8), First()), (5, 2, 6), dynamo=False, opset_version=17)


class First(nn.Module):
    """Takes the first of several results."""

    def forward(self, results: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return results[0]


if __name__ == "__main__":
    main()
