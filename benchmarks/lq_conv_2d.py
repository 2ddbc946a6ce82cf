"""LQ_CONV_2D against LiteRT's full integer CONV_2D (XNNPACK) on one thread: prints a ratio table.

    python3 -m benchmarks.lq_conv_2d [--rounds N] [--even]

Needs tensorflow, which makes the peer's models. Medians of interleaved calls of both interpreters'
``invoke``, on a model of one layer and on a stack of DEPTH equal ones, as in a network, where the
call from Python hardly counts; both are given per layer. Results are float32 on our side and int8
on the peer's. LQ bases are powers of two, as learned ones nearly are: where codes do not rise with
their levels (3 bits and more), quantizing the input takes two to three times as long.
With ``--even`` weights have evenly spaced levels, too: such layers are multiplied as bytes from 3
bits on.

What a processor without AVX-512 runs is measured on one that has it by naming what kernels may use:

    LUCIOLE_CPU=x86-64-v3 ...

(the name alone leaves numba the machine's own features). LiteRT takes no such setting: it asks the
processor itself.

"Bound" is the time to count every pair of bits that meets inside the image at the rate of exclusive
or, count and add from the nearest cache, which a layer cannot beat (its weights are a few KB, which
stay near); its share is that of a layer in a stack.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

import numpy as np

from benchmarks import limits
from benchmarks.machine import machine
from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, Value, learned_levels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.schema.enums import ActivationFunctionType
from luciole.tools.common.timing import interleaved_medians

DEPTH = 10
"""Layers in a stack."""

WIDTHS = (1, 2, 3, 4)
PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert", "tensorflow-cpu")
Call = Callable[[], object]


@dataclass(frozen=True)
class Layer:
    """A layer on a square image of one batch, as many outputs as channels, stride 1, SAME, RELU."""

    size: int
    channels: int
    kernel: int

    def __str__(self) -> str:
        image = f"{self.size}x{self.size}x{self.channels}"
        return f"{self.kernel}x{self.kernel} {image}->{self.channels}"

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        """NHWC."""
        return (1, self.size, self.size, self.channels)

    @property
    def products(self) -> int:
        """Products of a channel's input and a weight, taps outside of the image left out."""
        before, last = self.kernel // 2, self.size - 1
        taps = sum(min(p + before, last) - max(p - before, 0) + 1 for p in range(self.size))
        return (taps * self.channels) ** 2


LAYERS = (Layer(16, 32, 3), Layer(8, 64, 3), Layer(12, 64, 1))


def lq_model(layer: Layer, bits: int, depth: int, even: bool) -> Model:
    """Layers with as many bits for inputs as for weights, random signs."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.add_input("x", layer.input_shape)
    for place in range(depth):
        value = add_layer(graph, value, layer, bits, place, even)
    graph.outputs = [value]
    return model


def add_layer(graph: Graph, x: Value, layer: Layer, bits: int, place: int, even: bool) -> Value:
    """One more layer behind ``x``; gives its result."""
    rng = np.random.default_rng(place)
    n = layer.kernel**2 * layer.channels
    shape = (layer.channels, bits, layer.kernel, layer.kernel, layer.channels)
    scales = rng.uniform(0.5, 1.5, (layer.channels, bits)) / np.sqrt(n)
    if even:
        scales = scales[:, :1] * 2.0 ** (np.arange(bits) - bits / 2)
    constants = {
        "input_scales": (0.4 * 2.0 ** np.arange(bits)).astype(np.float32),
        "weights_scales": scales.astype(np.float32),
        "weights_binary": learned_levels.pack(rng.integers(0, 2, shape) == 1),
        "bias": rng.normal(size=layer.channels).astype(np.float32),
    }
    operands = [graph.add_constant(f"{name}/{place}", a) for name, a in constants.items()]
    ax, aw, binary, bias = operands
    op = LQConv2D(x, ax, aw, binary, bias)
    op.stride_h = op.stride_w = 1
    op.input_channels = layer.channels
    op.activation = ActivationFunctionType.RELU
    graph.append(op, f"y/{place}")
    return op.results[0]


def lq_call(layer: Layer, bits: int, depth: int, even: bool) -> Call:
    """luciole's ``invoke`` of a stack."""
    x = np.random.default_rng(1).normal(size=layer.input_shape).astype(np.float32)
    interpreter = Interpreter(lq_model(layer, bits, depth, even))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter.invoke


def integer_peer(layer: Layer, depth: int) -> bytes:
    """The same convolutions as a full integer .tflite file, converted by TensorFlow."""
    import tensorflow as tf

    rng = np.random.default_rng(2)
    given = value = tf.keras.Input(layer.input_shape[1:], batch_size=1)
    for _ in range(depth):
        shape = (layer.channels, layer.kernel)
        value = tf.keras.layers.Conv2D(*shape, padding="same", activation="relu")(value)
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(given, value))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: (
        [rng.normal(size=layer.input_shape).astype(np.float32)] for _ in range(20)
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    with redirect_stdout(StringIO()):  # it describes what it saved
        return bytes(converter.convert())


def peer_call(layer: Layer, depth: int) -> Call:
    """LiteRT's ``invoke`` of a stack on one thread."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    interpreter = LiteRT(model_content=integer_peer(layer, depth), num_threads=1)
    interpreter.allocate_tensors()
    detail = interpreter.get_input_details()[0]
    x = np.random.default_rng(3).integers(-128, 128, detail["shape"], dtype=np.int8)
    interpreter.set_tensor(detail["index"], x)
    invoke: Call = interpreter.invoke
    return invoke


def measured(
    layer: Layer, rounds: int, even: bool
) -> Iterator[tuple[int, list[float], list[float]]]:
    """For each width: its number of bits, LiteRT's and luciole's time per layer in us, alone and in
    a stack.
    """
    depths = (1, DEPTH)
    calls = [peer_call(layer, depth) for depth in depths]
    calls += [lq_call(layer, bits, depth, even) for bits in WIDTHS for depth in depths]
    alone, stacked = np.array(interleaved_medians(calls, rounds)).reshape(-1, 2).T
    times = np.stack([alone, stacked / DEPTH], 1).tolist()
    for bits, ours in zip(WIDTHS, times[1:], strict=True):
        yield bits, times[0], ours


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="calls of each (default 300)")
    parser.add_argument("--even", action="store_true", help="evenly spaced levels of weights")
    arguments = parser.parse_args()
    counted = limits.counted_per_us()
    print(f"us per layer | | alone | | | in a stack of {DEPTH} | | | bound | |")
    print(
        "layer | K | LiteRT int8 | luciole | ratio | LiteRT int8 | luciole | ratio | us | share |"
    )
    print("---|---|---|---|---|---|---|---|---|---|")
    for layer in LAYERS:
        for bits, peer, ours in measured(layer, arguments.rounds, arguments.even):
            pairs = zip(peer, ours, strict=True)
            cells = " | ".join(f"{p:.2f} | {t:.2f} | {p / t:.2f}x" for p, t in pairs)
            bound = layer.products * bits**2 / counted
            print(f"{layer} | {bits} | {cells} | {bound:.2f} | {bound / ours[1]:.0%} |", flush=True)
    print(f"\n{counted / 1e6:.2f} T pairs of bits/s counted from the nearest cache")
    print(machine(PACKAGES))


if __name__ == "__main__":
    main()
