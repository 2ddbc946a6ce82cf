"""The network and the digits that the other examples work on: both come with luciole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import luciole

BUNDLED = Path(luciole.__file__).parent / "demo_data"
MODEL = BUNDLED / "digits.circle"


def images(part: str) -> NDArray[np.float32]:
    """Read the images [records, 64] of ``train`` or ``test``, scaled as the network wants them."""
    pixels = np.load(BUNDLED / "digits.npz")[f"x_{part}"]
    scaled: NDArray[np.float32] = ((pixels - 4.884) / 6.017).astype(np.float32)
    return scaled


def labels(part: str) -> NDArray[np.uint8]:
    """Read the digits [records] that the images of ``train`` or ``test`` show."""
    found: NDArray[np.uint8] = np.load(BUNDLED / "digits.npz")[f"y_{part}"]
    return found
