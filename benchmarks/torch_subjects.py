"""The torch networks that ``benchmarks.torch_networks`` exports, and made-up records for them."""
# torch has no types here: it is in no environment that is checked

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import torch_blocks as blocks
from luciole.ir import Array

IMAGES, TOKENS, SEQUENCES = "image", "tokens", "sequence"
_NORMALIZING = 8
"""Batches from which batch normalizations learn their means and variances."""


@dataclass(frozen=True)
class Subject:
    """A torch network with one input, called after its kind of records: an example, another size
    that open axes take, and names of these.
    """

    name: str
    make: Callable[[], nn.Module]
    kind: str
    example: tuple[int, ...]
    other: tuple[int, ...]
    axes: Mapping[int, str]
    dynamo_fixes: int | None = None
    """An axis whose extent torch's newer exporter writes into the file as a number."""

    def open_axes(self, dynamo: bool) -> dict[int, str]:
        """Name the axes that an exporter leaves open."""
        return {n: name for n, name in self.axes.items() if not dynamo or n != self.dynamo_fixes}

    @cached_property
    def module(self) -> nn.Module:
        """The network, drawn by a seed, its batch normalizations fitted to records."""
        torch.manual_seed(1)
        module = self.make()
        module.train()
        with torch.no_grad():
            for seed in range(_NORMALIZING):
                module(self.records(16, 100 + seed))
        return module.eval()

    def records(self, count: int, seed: int, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw records of the example's size, or of another one."""
        rng = np.random.default_rng(seed)
        extents = shape or self.example
        return torch.from_numpy(_DRAW[self.kind](rng, (count, *extents[1:])))

    def inputs(self, axes: Mapping[int, str] | None = None) -> Tensor:
        """Draw the example's batch; with axes one that is of the other size there."""
        sizes = enumerate(zip(self.example, self.other, strict=True))
        shape = tuple(m if n in (axes or {}) else size for n, (size, m) in sizes)
        return self.records(shape[0], 1 + (axes is not None), shape)

    def answers(self, inputs: Tensor) -> Array:
        """Compute what torch answers."""
        with torch.no_grad():
            answers: Array = self.module(inputs).numpy()
        return answers


def _images(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw sums of waves over a plane, of a direction, length and colour each, and a little
    noise.
    """
    count, channels, height, width = shape
    y, x = np.mgrid[:height, :width] / 32
    images = np.zeros(shape)
    for _ in range(4):
        turn, pitch = rng.uniform(0, np.pi, count), rng.uniform(1, 8, count)
        phase = rng.uniform(0, 6.3, (count, channels, 1, 1))
        strength = rng.normal(0, 0.5, (count, channels, 1, 1))
        along = np.cos(turn)[:, None, None] * x + np.sin(turn)[:, None, None] * y
        images += strength * np.sin(6.3 * (pitch[:, None, None] * along)[:, None] / 2 + phase)
    return (images + rng.normal(0, 0.05, shape)).astype(np.float32)


def _tokens(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw chains of tokens, each near a multiple of the one before."""
    count, length = shape
    chain = np.zeros((count, length), np.int64)
    chain[:, 0] = rng.integers(0, blocks.TOKENS, count)
    for step in range(1, length):
        chain[:, step] = (3 * chain[:, step - 1] + rng.integers(0, 5, count)) % blocks.TOKENS
    return chain


def _sequences(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw walks whose features go together."""
    count, length, features = shape
    mixed = np.random.default_rng(0).normal(0, 1, (4, features))
    hidden = np.zeros((count, length, 4))
    for step in range(length):
        before = hidden[:, step - 1] if step else 0.0
        hidden[:, step] = 0.8 * before + rng.normal(0, 0.6, (count, 4))
    return (hidden @ mixed / 2 + rng.normal(0, 0.05, shape)).astype(np.float32)


_DRAW = {IMAGES: _images, TOKENS: _tokens, SEQUENCES: _sequences}
_SIZES = ((2, 3, 32, 32), (3, 3, 64, 48))
_ALL_AXES = {0: "batch", 2: "height", 3: "width"}
_STEPS = {0: "batch", 1: "steps"}

SUBJECTS = (
    Subject("CNN", blocks.cnn, IMAGES, *_SIZES, _ALL_AXES),
    Subject("ResNet with SE", blocks.resnet_se, IMAGES, *_SIZES, _ALL_AXES),
    Subject("ViT", blocks.vit, IMAGES, (2, 3, 32, 32), (5, 3, 32, 32), {0: "batch"}),
    Subject("GPT", blocks.GPT, TOKENS, (2, 16), (3, 27), _STEPS),
    Subject("U-Net", blocks.UNet, IMAGES, *_SIZES, _ALL_AXES),
    Subject("Conformer", blocks.Conformer, SEQUENCES, (2, 20, 64), (3, 33, 64), _STEPS),
    Subject("LSTM and GRU", blocks.Recurrent, SEQUENCES, (2, 12, 16), (3, 19, 16), _STEPS, 1),
    Subject("MobileNetV3", blocks.mobilenet_v3, IMAGES, *_SIZES, _ALL_AXES),
    Subject("EfficientNet", blocks.efficientnet_small, IMAGES, *_SIZES, _ALL_AXES),
)
