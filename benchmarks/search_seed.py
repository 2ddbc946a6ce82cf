"""``python -m benchmarks.search_seed``: the claims of the published search, on a small network.

A network like MobileNet (a convolution, two depthwise and two pointwise ones, a dense layer) is
trained on the bundled digits of 8x8 pixels, its batch normalizations left unfolded. Widths are
searched as published, on training images alone; uniform ones get the same final training. All are
judged on the test images, which nothing saw before. Printed is whether a mixed front dominates
uniform widths, whether small layers in front get more bits, and where training gains most.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.answers import answers_of
from luciole.interpreter.records import first_output
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer.search.nsga2 import hypervolume
from luciole.lquantizer.search.published.begin import materials
from luciole.lquantizer.search.published.evaluate import FINAL, SeedEvaluator
from luciole.lquantizer.search.published.genes import WIDTHS, uniform
from luciole.lquantizer.search.published.options import SeedOptions
from luciole.lquantizer.search.result import SearchResult
from luciole.schema.enums import Padding

SIDE = 8
BLOCKS = ((8, 1), (16, 2), (32, 2))
"""Outputs and strides: of the first convolution, then of depthwise and pointwise ones."""
EPOCHS = 60


def digits() -> tuple[Array, Array, Array, Array]:
    """Read images [n, 8, 8, 1] from -1 to 1 and labels, for training and for the test."""
    with np.load(Path(luciole.__file__).parent / "demo_data" / "digits.npz") as data:
        images = [data[name].reshape(-1, SIDE, SIDE, 1) for name in ("x_train", "x_test")]
        labels = [data[name].astype(np.int64) for name in ("y_train", "y_test")]
    one, two = (i.astype(np.float32) / 8 - 1 for i in images)
    return one, labels[0], two, labels[1]


def trained(images: Array, labels: Array, seed: int) -> Any:
    """Train the network with Keras."""
    import tensorflow as tf

    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(seed)
    model = tf.keras.Sequential([tf.keras.Input((SIDE, SIDE, 1))])
    for place, (outputs, stride) in enumerate(BLOCKS):
        if place:
            how = {"strides": stride, "padding": "same", "use_bias": False}
            model.add(layers.DepthwiseConv2D(3, **how))
            model.add(layers.BatchNormalization())
            model.add(layers.ReLU())
        side = 1 if place else 3
        model.add(layers.Conv2D(outputs, side, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(10, activation="softmax"))
    rate = tf.keras.optimizers.schedules.CosineDecay(5e-3, EPOCHS * (len(images) // 64 + 1))
    model.compile(tf.keras.optimizers.Adam(rate), "sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=64, epochs=EPOCHS, verbose=0)
    return model


def unfolded(network: Any) -> Model:
    """Write a Keras network down as it is, a MUL and an ADD for each batch normalization."""
    model = Model(description="digits, batch normalizations unfolded")
    graph = model.add_graph(Graph("main"))
    x, strides = graph.add_input("x", (1, SIDE, SIDE, 1)), iter(_strides())
    for layer in network.layers:
        x = _appended(graph, x, layer, strides)
    softmax = Softmax(x)
    softmax.beta = 1.0
    graph.append(softmax, "softmax")
    graph.outputs = [softmax.output]
    return model


def _strides() -> list[int]:
    return [1, *(s for _, stride in BLOCKS[1:] for s in (stride, 1))]


def _appended(graph: Graph, x: Value, layer: Any, strides: Any) -> Value:
    """Append what a Keras layer does."""
    kind, name = type(layer).__name__, layer.name
    arrays = layer.get_weights()
    if kind == "BatchNormalization":
        gamma, beta, mean, variance = arrays
        scale = gamma / np.sqrt(variance + layer.epsilon)
        graph.append(Mul(x, graph.add_constant(f"{name}/scale", scale)), f"{name}/mul")
        shift = graph.add_constant(f"{name}/shift", beta - scale * mean)
        graph.append(Add(graph.values[-2], shift), f"{name}/add")
    elif kind in ("Conv2D", "DepthwiseConv2D"):
        array = np.ascontiguousarray(arrays[0].transpose(3, 0, 1, 2))  # of [h, w, c, o or 1]
        filter_ = graph.add_constant(f"{name}/filter", array)
        conv = (Conv2D if kind == "Conv2D" else DepthwiseConv2D)(x, filter_, None)
        conv.stride_h = conv.stride_w = next(strides)
        if isinstance(conv, DepthwiseConv2D):
            conv.depth_multiplier = 1
        graph.append(conv, name)
    elif kind == "ReLU":
        graph.append(Relu(x), name)
    elif kind == "GlobalAveragePooling2D":
        pool = AveragePool2D(x)
        pool.stride_h = pool.stride_w = 1
        pool.padding = Padding.VALID
        pool.filter_height, pool.filter_width = x.dims[1:3]
        graph.append(pool, name)
    elif kind == "Dense":
        constants = [graph.add_constant(f"{name}/{i}", a) for i, a in enumerate(arrays)]
        constants[0].make_constant(np.ascontiguousarray(arrays[0].T))
        graph.append(FullyConnected(x, constants[0], constants[1]), name)
    return graph.ops[-1].results[0]


def accuracy(model: Model, images: Array, labels: Array) -> float:
    """Percent of right answers."""
    answers = answers_of(first_output(model, {model.graph.inputs[0].name: images}))
    return 100 * float(np.mean(answers == labels))


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Correlate ranks, ties in the middle of their places."""

    def ranks(values: Sequence[float]) -> Array:
        array = np.array(values)
        return np.array([np.mean(np.flatnonzero(np.sort(array) == v)) for v in array])

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def dominated(files: Sequence[tuple[int, float]], size: int, right: float) -> bool:
    """Tell whether a file is no larger and no worse, and better in one of both."""
    return any(s <= size and r >= right and (s, r) != (size, right) for s, r in files)


def share(files: Sequence[tuple[int, float]], corner: tuple[int, float]) -> float:
    """Measure the share of the box up to the size of 8 bits and down to 50 % that is dominated."""
    points = np.array([(size / corner[0], (corner[1] - right)) for size, right in files])
    return hypervolume(points, (1.0, corner[1] - 50)) / (corner[1] - 50)


def main() -> None:
    """Print what was found, claim by claim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--offspring", type=int, default=8)
    parser.add_argument("--partial", type=int, default=2)
    parser.add_argument("--final", type=int, default=8)
    parser.add_argument("--labels", action="store_true", help="train to labels as well")
    parser.add_argument("--granularity", default="channel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", help="a folder that keeps the search")
    given = parser.parse_args()
    images, labels, test, answers = digits()
    network = trained(images, labels, given.seed)
    model = unfolded(network)
    options = SeedOptions(
        generations=given.generations,
        parents=given.offspring,
        offspring=given.offspring,
        partial=given.partial,
        final=given.final,
        granularity=given.granularity,
        judges=100,
        seed=given.seed,
        files=6,
    )
    whole = accuracy(model, test, answers)
    print(f"float: {whole:.2f} % of {len(test)} test images", flush=True)
    known = labels if given.labels else None
    with tempfile.TemporaryDirectory() as folder:
        output = given.output or folder
        found = luciole.search(model, images, output, options, labels=known)
        evaluator = SeedEvaluator(
            materials(model, {"x": images}, known, options, from_bytes, to_bytes)[0]
        )
        _claims(found, evaluator, test, answers)


def _claims(found: SearchResult, evaluator: SeedEvaluator, test: Array, answers: Array) -> None:
    mixed = [
        (file.found.bytes, accuracy(luciole.load(file.path), test, answers)) for file in found.front
    ]
    print("\nsearched, after the final training")
    for (size, right), file in zip(mixed, found.front, strict=True):
        print(f"{size:6,} bytes  {right:.2f} %  {' '.join(file.found.candidate)}")
    same, gains = _uniform(evaluator, test, answers)
    corner = (max(size for size, _ in same), 100.0)
    beaten = sum(dominated(mixed, *one) for one in same)
    print(f"\n1. uniform widths that a searched file dominates: {beaten} of {len(same)}; searched")
    print(f"   files that a uniform one dominates: {sum(dominated(same, *m) for m in mixed)}")
    print(f"   share of the box: searched {share(mixed, corner):.3f}, uniform", end=" ")
    print(f"{share(same, corner):.3f}")
    bits = np.array([[int(option[1]) for option in f.found.candidate] for f in found.front])
    print("\n2. layer, weights, mean bits in the searched files")
    for name, weights, mean in zip(found.layers, found.weights, bits.mean(0), strict=True):
        print(f"   {name:24s} {weights:6,} {mean:5.2f}")
    print(f"   Spearman of weights and bits: {spearman(found.weights, bits.mean(0).tolist()):.2f}")
    sizes = [float(size) for size, _ in same]
    print(f"\n3. Spearman of size and what training gains: {spearman(sizes, gains):.2f}")


def _uniform(
    evaluator: SeedEvaluator, test: Array, answers: Array
) -> tuple[list[tuple[int, float]], list[float]]:
    """Train uniform widths in full; returns sizes and percent, and the points that this gained."""
    print("\nuniform: bytes, before training, after the final training")
    files, gains = [], []
    for bits in WIDTHS:
        candidate = uniform(evaluator.space, bits)
        before = accuracy(evaluator.untrained(candidate), test, answers)
        result = evaluator({"stage": FINAL, "candidate": candidate})
        right = accuracy(from_bytes(result["model"]), test, answers)
        size = result["figures"]["bytes"]
        files.append((size, right))
        gains.append(right - before)
        print(f"{bits} bits {size:6,}  {before:.2f} %  {right:.2f} %", flush=True)
    return files, gains


if __name__ == "__main__":
    main()
