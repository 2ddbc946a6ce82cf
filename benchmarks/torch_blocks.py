"""Small torch networks, in the forms that torch's users write: for ``benchmarks.torch_networks``
and the tests of the importer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as f
from torchvision.models import MobileNetV3, VisionTransformer, efficientnet
from torchvision.models.efficientnet import MBConvConfig
from torchvision.models.mobilenetv3 import InvertedResidualConfig

CLASSES = 10
TOKENS = 64


def _unit(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    """Make a convolution, batch normalization and RELU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def cnn() -> nn.Module:
    """Make two convolutions, each with a pool behind it, and a dense layer for any size."""
    return nn.Sequential(
        _unit(3, 16),
        nn.MaxPool2d(2),
        _unit(16, 32),
        nn.AvgPool2d(2),
        _unit(32, 32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, CLASSES),
    )


class _Squeezed(nn.Module):
    """A residual block whose channels are weighed by their means (squeeze and excitation)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _unit(inputs, outputs, stride=stride),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.weigh = nn.Sequential(
            nn.Linear(outputs, outputs // 4),
            nn.ReLU(),
            nn.Linear(outputs // 4, outputs),
            nn.Sigmoid(),
        )
        self.short = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        weights = self.weigh(y.mean((2, 3)))
        return torch.relu(y * weights[:, :, None, None] + self.short(x))


def resnet_se() -> nn.Module:
    """Make a residual network with squeeze and excitation."""
    return nn.Sequential(
        _unit(3, 16),
        _Squeezed(16, 16, 1),
        _Squeezed(16, 32, 2),
        _Squeezed(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, CLASSES),
    )


def vit() -> nn.Module:
    """Make torchvision's vision transformer, small."""
    network = VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=CLASSES)
    nn.init.normal_(network.heads.head.weight, std=0.1)  # they begin at 0: all answers would be 0
    return network


class _Decoder(nn.Module):
    """A block of GPT: attention to what came before, then a dense part, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.between = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.dense = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.attend(self.before(x)).split(width, dim=2)
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in parts
        )
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.dense(self.between(x))


class GPT(nn.Module):
    """Embeddings of tokens and places, two decoder blocks, and scores of the next token."""

    def __init__(self, width: int = 64, heads: int = 4, longest: int = 64) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, width)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.Sequential(_Decoder(width, heads), _Decoder(width, heads))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, TOKENS, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Score the next token behind each."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))


class UNet(nn.Module):
    """Two halvings, two doublings by transposed convolutions, and what was before each halving."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Sequential(_unit(3, width), _unit(width, width))
        self.second = nn.Sequential(_unit(width, 2 * width), _unit(2 * width, 2 * width))
        self.middle = nn.Sequential(_unit(2 * width, 4 * width), _unit(4 * width, 4 * width))
        self.up_second = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.after_second = _unit(4 * width, 2 * width)
        self.up_first = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.after_first = _unit(2 * width, width)
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        """Score two classes for each pixel."""
        first = self.first(image)
        second = self.second(f.max_pool2d(first, 2))
        middle = self.middle(f.max_pool2d(second, 2))
        second = self.after_second(torch.cat([self.up_second(middle), second], 1))
        first = self.after_first(torch.cat([self.up_first(second), first], 1))
        return self.last(first)


class _Attention(nn.Module):
    """Attention of all steps to all steps, by its formula."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        return self.project((weights @ v).transpose(1, 2).flatten(2))


class _Convolve(nn.Module):
    """Conformer's convolution over time: a gated dense part, depthwise over 15 steps, SILU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, 15, padding=7, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.project = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = f.glu(self.gate(self.norm(x).transpose(1, 2)), dim=1)
        y = f.silu(self.batch_norm(self.depthwise(y)))
        return x + self.project(y).transpose(1, 2)


class Conformer(nn.Module):
    """A block of Conformer: half a dense part, attention, convolution, half a dense part."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.begin, self.end = self._dense(width), self._dense(width)
        self.norm = nn.LayerNorm(width)
        self.attention = _Attention(width, heads)
        self.convolve = _Convolve(width)
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    @staticmethod
    def _dense(width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, sound: Tensor) -> Tensor:
        """Score the classes of each step."""
        x = sound + 0.5 * self.begin(sound)
        x = x + self.attention(self.norm(x))
        x = self.convolve(x)
        return self.head(self.last(x + 0.5 * self.end(x)))


class Recurrent(nn.Module):
    """A bidirectional LSTM, a GRU that reads it, and a dense layer for each step."""

    def __init__(self, features: int = 16, width: int = 24) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, width, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, sequence: Tensor) -> Tensor:
        """Score the classes of each step."""
        return self.head(self.gru(self.lstm(sequence)[0])[0])


def mobilenet_v3() -> nn.Module:
    """Make torchvision's MobileNetV3 of four blocks."""
    blocks = [
        InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1),
        InvertedResidualConfig(16, 3, 72, 24, False, "RE", 2, 1, 1),
        InvertedResidualConfig(24, 5, 96, 40, True, "HS", 2, 1, 1),
        InvertedResidualConfig(40, 5, 120, 40, True, "HS", 1, 1, 1),
    ]
    return MobileNetV3(blocks, 128, num_classes=CLASSES)


def efficientnet_small() -> nn.Module:
    """Make torchvision's EfficientNet of four stages."""
    stages = [
        MBConvConfig(1, 3, 1, 32, 16, 1),
        MBConvConfig(6, 3, 2, 16, 24, 2),
        MBConvConfig(6, 5, 2, 24, 40, 1),
        MBConvConfig(6, 3, 2, 40, 80, 1),
    ]
    return efficientnet.EfficientNet(stages, 0.0, num_classes=CLASSES, last_channel=128)
