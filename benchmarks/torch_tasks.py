"""Tasks that the networks of ``benchmarks.torch_subjects`` are trained for in about a minute each:
images of CIFAR-10, the next character of this project's pages, states behind made-up walks.
"""
# torch has no types here: it is in no environment that is checked

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as f

from benchmarks import torch_blocks as blocks
from benchmarks.torch_subjects import SEQUENCES, TOKENS, Subject
from luciole.ir import Array

DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
PAGES = Path(__file__).parents[1] / "docs"
_WALKS, _HELD = 10_000, 1_000
_SMOOTH = 5
"""Steps, or pixels a side, over which what is asked for is a mean."""
_BATCH = 64
_STEPS = 400
_RATE = 2e-3


@dataclass(frozen=True)
class Task:
    """Records and the classes that are right for them, the training's and those held back."""

    train: Array
    labels: Array
    test: Array
    judge: Array


def task(subject: Subject) -> Task:
    """Make a network's task."""
    if subject.kind == TOKENS:
        return _characters(subject.example[1])
    if subject.kind == SEQUENCES:
        return _walks(subject)
    images = _images()
    if subject.name != "U-Net":
        return images
    return Task(images.train, bright(images.train), images.test, bright(images.test))


@cache
def _images() -> Task:
    """Read CIFAR-10's images, -1 to 1: [records, 3, 32, 32]."""
    arrays = np.load(DATA / "cifar10_subset.npz")
    train, test = (
        (arrays[name].astype(np.float32) / np.float32(127.5) - 1).transpose(0, 3, 1, 2).copy()
        for name in ("x_train", "x_test")
    )
    labels, judge = (arrays[name].reshape(-1).astype(np.int64) for name in ("y_train", "y_test"))
    return Task(train, labels, test, judge)


def bright(images: Array) -> Array:
    """Mark the pixels around which an image is brighter than on the whole: [records, rows,
    columns].
    """
    grey = torch.from_numpy(images).mean(1, keepdim=True)
    near = f.avg_pool2d(grey, _SMOOTH, 1, _SMOOTH // 2, count_include_pad=False)
    marks: Array = (near > grey.mean((2, 3), keepdim=True))[:, 0].long().numpy()
    return marks


def _characters(length: int) -> Task:
    """Cut the pages into records of characters, 64 kinds: every eighth record is held back."""
    text = "".join(page.read_text("utf-8") for page in sorted(PAGES.rglob("*.md")))
    codes = np.frombuffer(text.upper().encode("ascii", "replace"), np.uint8).astype(np.int64)
    kinds = np.clip(codes - ord(" "), 0, blocks.TOKENS - 1)
    rows = kinds[: len(kinds) // (length + 1) * (length + 1)].reshape(-1, length + 1)
    held = np.arange(len(rows)) % 8 == 7
    train, test = rows[~held], rows[held]
    return Task(train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])


def _walks(subject: Subject) -> Task:
    """Draw walks; of each step is asked which of three sums of features, each a mean over steps,
    are above 0: eight classes.
    """
    walks = subject.records(_WALKS, 11).numpy()
    sums = walks @ np.random.default_rng(12).normal(0, 1, (walks.shape[-1], 3))
    wide = np.pad(sums, ((0, 0), (_SMOOTH // 2, _SMOOTH // 2), (0, 0)), "edge")
    means = np.lib.stride_tricks.sliding_window_view(wide, _SMOOTH, axis=1).mean(-1)
    labels = (means > 0) @ np.array([1, 2, 4])
    return Task(walks[_HELD:], labels[_HELD:], walks[:_HELD], labels[:_HELD])


def trained(subject: Subject, folder: Path) -> nn.Module:
    """Train a network, or read the one that a folder keeps."""
    path = folder / f"{subject.name.replace(' ', '_')}.pt"
    if path.exists():
        subject.module.load_state_dict(torch.load(path))
        return subject.module.eval()
    own = task(subject)
    module = _train(subject.module, torch.from_numpy(own.train), torch.from_numpy(own.labels))
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), path)
    return module


def class_axis(labels: Array | Tensor) -> int:
    """Find the axis of scores that counts classes: that of pixels' is the second."""
    return 1 if labels.ndim == 3 else -1


def _train(module: nn.Module, records: Tensor, labels: Tensor) -> nn.Module:
    """Train by Adam, the rate falling to 0. What batch normalizations keep follows in tens of
    steps, also where a network is made for many thousands.
    """
    torch.manual_seed(2)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 0.1
    axis = class_axis(labels)
    optimizer = torch.optim.Adam(module.parameters(), _RATE)
    falling = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, _STEPS)
    module.train()
    for _ in range(_STEPS):
        some = torch.randint(len(records), (_BATCH,))
        scores = module(records[some])
        loss = f.cross_entropy(scores.movedim(axis, 1), labels[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    return module.eval()
