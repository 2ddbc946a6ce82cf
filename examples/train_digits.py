"""Train the demo's network and write it with its data: ``python examples/train_digits.py``.

The data are the 1,797 handwritten digits of the UCI machine learning repository (8 x 8 pixels of 0
to 16), as scikit-learn ships them; scikit-learn is needed to run this, NumPy does the training. The
result is what ``luciole demo`` bundles, so this is run only when the network should change.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import luciole
from luciole.ir import Graph, Model
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.softmax import Softmax

Floats = NDArray[np.float32]
Weights = list[Floats]

HIDDEN, EPOCHS, BATCH, RATE, DECAY = 320, 60, 32, 2e-3, 1e-4
MEAN, STD = 4.884, 6.017
"""Of all training pixels: the demo feeds (x - MEAN) / STD."""
TARGET = Path(luciole.__file__).parent / "demo_data"


def forward(weights: Weights, x: Floats) -> tuple[Floats, Floats]:
    """Hidden activations and class probabilities."""
    w1, b1, w2, b2 = weights
    hidden = np.tanh(x @ w1.T + b1)
    logits = hidden @ w2.T + b2
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return hidden, shifted / shifted.sum(1, keepdims=True)


def gradients(weights: Weights, x: Floats, labels: NDArray[np.int64]) -> Weights:
    """Of the mean cross-entropy."""
    hidden, slope = forward(weights, x)
    slope[np.arange(len(x)), labels] -= 1
    slope /= len(x)
    back = (slope @ weights[2]) * (1 - hidden**2)
    return [back.T @ x, back.sum(0), slope.T @ hidden, slope.sum(0)]


def train(x: Floats, labels: NDArray[np.int64]) -> Weights:
    """Adam with decoupled weight decay and a cosine schedule."""
    generator = np.random.default_rng(0)
    weights: Weights = [
        generator.normal(0, 0.1, (HIDDEN, 64)).astype(np.float32),
        np.zeros(HIDDEN, np.float32),
        generator.normal(0, 0.05, (10, HIDDEN)).astype(np.float32),
        np.zeros(10, np.float32),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    steps = EPOCHS * (len(x) // BATCH)
    for step in range(1, steps + 1):
        batch = generator.integers(0, len(x), BATCH)
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
        for i, g in enumerate(gradients(weights, x[batch], labels[batch])):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g * g
            move = first[i] / (1 - 0.9**step) / (np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8)
            weights[i] = (weights[i] - rate * (move + DECAY * weights[i])).astype(np.float32)
    return weights


def standardised(weights: Weights) -> Weights:
    """The same network for inputs (x - MEAN) / STD instead of x / 16."""
    w1, b1, w2, b2 = weights
    return [w1 * np.float32(STD / 16), b1 + w1.sum(1) * np.float32(MEAN / 16), w2, b2]


def as_model(weights: Weights) -> Model:
    """The network as a graph with an open batch size."""
    graph = Graph("main")
    model = Model(description="64-320(tanh)-10(softmax), UCI handwritten digits")
    model.add_graph(graph)
    names = ("hidden/weights", "hidden/bias", "digit/weights", "digit/bias")
    w1, b1, w2, b2 = (graph.add_constant(n, w) for n, w in zip(names, weights, strict=True))
    image = graph.add_input("image", (None, 64))
    hidden = graph.append(FullyConnected(image, w1, b1), "hidden").output
    bent = graph.append(Tanh(hidden), "hidden/tanh").output
    digit = graph.append(FullyConnected(bent, w2, b2), "digit").output
    graph.outputs = [graph.append(Softmax(digit, beta=1.0), "probabilities").output]
    return model


def main() -> None:
    """Train, say how good it is, write model and data."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = digits.data[order].astype(np.uint8)
    labels = digits.target[order].astype(np.int64)
    x = (images / 16).astype(np.float32)
    weights = train(x[:1200], labels[:1200])
    share = float((forward(weights, x[1200:])[1].argmax(1) == labels[1200:]).mean())
    print(
        f"pixels: mean {images[:1200].mean():.3f}, std {images[:1200].std():.3f}; "
        f"test accuracy {share:.4f}"
    )
    luciole.save(as_model(standardised(weights)), TARGET / "digits.circle")
    np.savez_compressed(
        TARGET / "digits.npz",
        x_train=images[:1200],
        y_train=labels[:1200].astype(np.uint8),
        x_test=images[1200:],
        y_test=labels[1200:].astype(np.uint8),
    )


if __name__ == "__main__":
    main()
