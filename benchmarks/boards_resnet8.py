"""ResNet-8 of 2-bit learned levels beside its int8 form, both in C, on boards that QEMU has.

  python -m benchmarks.boards_resnet8 --boards m4,m3,m0plus [--records 2] [--model w2a2.circle]

LUCIOLE_DATA has models/resnet8_fp32.tflite, resnet8_int8.tflite and cifar10_subset.npz. The learned
network is fitted to 1,000 training images, its ends become int8; ``--model`` takes one that was
made before (``lquantizer --encode_bits 2 --spared int8``). Images are CIFAR-10's of the test set.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import luciole
from benchmarks import boards

DATA = Path(os.environ.get("LUCIOLE_DATA", "../shared/data"))
CALIBRATION = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each network and board; 1 where a board gives other bits."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.boards_resnet8", description=__doc__
    )
    parser.add_argument("--boards", default="m4")
    parser.add_argument("--records", type=int, default=2)
    parser.add_argument("--optimize", default="-O3", help="the compiler's flag (default: -O3)")
    parser.add_argument("--model", help="the learned network, made before")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        learned = given.model or learned_network(Path(folder) / "resnet8_w2a2.circle")
        words = [str(learned), str(DATA / "models" / "resnet8_int8.tflite")]
        words += ["--boards", given.boards, "--records", str(given.records)]
        words += ["--data", f"{DATA / 'cifar10_subset.npz'}:x_test", "--preprocess", "x"]
        return boards.main([*words, f"--optimize={given.optimize}"])


def learned_network(path: Path) -> Path:
    """Fit the network to training images, and save it."""
    images = np.load(DATA / "cifar10_subset.npz")["x_train"][:CALIBRATION].astype(np.float32)
    source = luciole.load(DATA / "models" / "resnet8_fp32.tflite")
    made = luciole.quantize(source, images, encode_bits=2, spared="int8", proof=False)
    luciole.save(made.model, path)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
