"""784-690(tanh)-10(softmax) trained on MNIST, and with learned levels of 1 to 3 bits: what
``benchmarks.compiled`` and ``benchmarks.boards`` run where inputs matter.

  python3 -m benchmarks.mnist_dense FOLDER

Trains by NumPy alone (Adam, 5 epochs, always the same numbers), quantizes with 1,000 images, and
writes FOLDER/mnist-fp32.circle, mnist-int1.circle, ... Inputs are (bytes / 255 - 0.1307) / 0.3081.
The images are LUCIOLE_DATA/mnist.npz. Prints accuracy on the 10,000 test images.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import luciole
from luciole.ir import Graph, Model
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.softmax import Softmax
from luciole.schema.enums import ActivationFunctionType as Activation

SIZES = (784, 690, 10)
MEAN, DEVIATION = 0.1307, 0.3081
BATCH, EPOCHS, RATE = 128, 5, 1e-3

Floats = NDArray[np.float32]


def images(name: str) -> tuple[Floats, NDArray[np.uint8]]:
    """Read images ``[n, 784]`` as the network takes them, and labels; ``name``: train or test."""
    data = np.load(Path(os.environ.get("LUCIOLE_DATA", "data")) / "mnist.npz")
    pixels = data[f"x_{name}"].reshape(-1, SIZES[0])
    return ((pixels / 255 - MEAN) / DEVIATION).astype(np.float32), data[f"y_{name}"]


def trained(x: Floats, labels: NDArray[np.uint8]) -> list[Floats]:
    """Train weights ``[n, o]`` and biases by Adam (Kingma and Ba, algorithm 1)."""
    rng = np.random.default_rng(0)
    numbers: list[Floats] = []
    for n, o in pairwise(SIZES):
        reach = np.sqrt(6 / (n + o))
        numbers += [rng.uniform(-reach, reach, (n, o)).astype(np.float32), np.zeros(o, np.float32)]
    first = [np.zeros_like(array) for array in numbers]
    second = [np.zeros_like(array) for array in numbers]
    batches = [
        rows
        for _ in range(EPOCHS)
        for rows in np.array_split(rng.permutation(len(x)), -(-len(x) // BATCH))
    ]
    for step, rows in enumerate(batches, 1):
        gradients = _gradients(numbers, x[rows], labels[rows])
        for w, m, v, g in zip(numbers, first, second, gradients, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            w -= RATE * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-7)
    return numbers


def _gradients(numbers: list[Floats], x: Floats, labels: NDArray[np.uint8]) -> list[Floats]:
    """Differentiate the mean cross entropy of a batch."""
    w1, b1, w2, b2 = numbers
    hidden = np.tanh(x @ w1 + b1)
    scores = hidden @ w2 + b2
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(x)), labels] -= 1
    shares /= len(x)
    back = (shares @ w2.T) * (1 - hidden * hidden)
    return [x.T @ back, back.sum(0), hidden.T @ shares, shares.sum(0)]


def network(numbers: list[Floats]) -> Model:
    """Make the network of trained numbers."""
    graph, model = Graph("mnist"), Model()
    model.add_graph(graph)
    x = graph.add_input("image", (1, SIZES[0]))
    for k, activation in enumerate((Activation.TANH, Activation.NONE)):
        weights = graph.add_constant(f"weights{k}", np.ascontiguousarray(numbers[2 * k].T))
        bias = graph.add_constant(f"bias{k}", numbers[2 * k + 1])
        layer = FullyConnected(x, weights, bias, activation=activation)
        x = graph.append(layer, ("hidden", "digit")[k]).results[0]
    graph.outputs = [graph.append(Softmax(x, beta=1.0), "scores").results[0]]
    return model


def accuracy(model: Model) -> float:
    """Percent of the test images that a network tells."""
    interpreter, (x, labels) = luciole.Interpreter(model), images("test")
    found = [next(iter(interpreter.run({"image": row[None]}).values())).argmax() for row in x]
    return 100 * float(np.mean(np.array(found) == labels))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the networks and print how often they are right."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.mnist_dense", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    x, labels = images("train")
    model = network(trained(x, labels))
    found = {"fp32": model}
    for bits in (1, 2, 3):
        made = luciole.quantize(model, {"image": x[:1000]}, encode_bits=bits, proof=False).model
        found[f"int{bits}"] = made
    for name, one in found.items():
        luciole.save(one, folder / f"mnist-{name}.circle")
        print(f"mnist-{name}.circle  {accuracy(one):.2f} % of 10,000 test images", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
