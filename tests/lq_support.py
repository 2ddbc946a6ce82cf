"""One LQ_FULLY_CONNECTED layer as plain arrays, and the formula of the file format as an oracle.

The oracle counts differing signs with plain NumPy and shares no code with the package.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.interpreter import compile_graph
from luciole.ir import Array, Model
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.kernels import jit
from luciole.schema.enums import ActivationFunctionType as Act
from tests.support import one_op, run_native, run_reference

ACTIVATE: dict[Act, Callable[[Array], Array]] = {
    Act.NONE: lambda y: y,
    Act.RELU: lambda y: np.where(y > 0, y, 0),
    Act.RELU_N1_TO_1: lambda y: np.minimum(np.maximum(y, -1), 1),
    Act.RELU6: lambda y: np.minimum(np.maximum(y, 0), 6),
    Act.TANH: np.tanh,
}


@dataclass
class Layer:
    """One layer as plain arrays; ``signs`` [o, kw, n] of True (+1) and False (-1)."""

    input_scales: Array
    weights_scales: Array
    signs: Array
    bias: Array | None = None
    weights_offsets: Array | None = None
    input_offset: float = 0.0
    activation: Act = Act.NONE

    def operands(self, x: Array) -> list[Array | None]:
        binary = packed(self.signs)
        basis = [self.input_scales, self.weights_scales, binary]
        return [x, *basis, self.bias, self.weights_offsets]

    def attributes(self) -> dict[str, Any]:
        return {
            "hidden_size": self.signs.shape[-1],
            "input_offset": self.input_offset,
            "activation": self.activation,
        }

    def model(self, x: Array) -> Model:
        return one_op(LQFullyConnected, self.operands(x), (1, 2, 3, 4, 5), **self.attributes())

    def reference(self, x: Array) -> Array:
        (y,) = run_reference(
            LQFullyConnected, self.operands(x), (1, 2, 3, 4, 5), **self.attributes()
        )
        return y

    def native(self, x: Array) -> Array:
        """The compiled kernel's result; fails where the reference would have run instead."""
        return run_native(self.model(x), x)


def packed(signs: Array) -> Array:
    """Sign k is bit k mod 32 of word k div 32, by Python's own integers."""
    o, kw, n = signs.shape
    words = [
        [sum(1 << k for k in range(w, min(w + 32, n)) if row[k]) >> w for w in range(0, n, 32)]
        for row in signs.reshape(-1, n)
    ]
    return np.array(words, np.uint32).view(np.int32).reshape(o, kw, -(-n // 32))


def input_signs(x: Array, scales: Array, offset: float) -> Array:
    """[rows, kx, n]: the signs of each input's nearest level, the lower one at a tie."""
    kx = len(scales)
    signs = [[bool(code >> i & 1) for i in range(kx)] for code in range(2**kx)]
    values = [
        offset + sum(float(a) if s else -float(a) for a, s in zip(scales, row, strict=True))
        for row in signs
    ]
    order = sorted(range(2**kx), key=lambda code: values[code])
    rising = [values[code] for code in order]
    between = np.array([(a + b) / 2 for a, b in pairwise(rising)], np.float32)
    level = (x[..., None] > between).sum(-1)  # NaN is above nothing
    chosen: Array = np.array(signs)[np.array(order)[level]]
    return chosen.transpose(0, 2, 1)


def oracle(layer: Layer, x: Array) -> Array:
    """The formula of the file format, in float64.

    y_o = act(sum_ij ax_i aw_oj (n - 2 differing) + input_offset sum_k w_ok
              + weights_offset_o sum_i ax_i (2 ones - n) + bias_o)
    """
    n = layer.signs.shape[-1]
    ax, aw = layer.input_scales.astype(np.float64), layer.weights_scales.astype(np.float64)
    xb = input_signs(x.reshape(-1, n), layer.input_scales, layer.input_offset)
    offsets = np.zeros(len(aw)) if layer.weights_offsets is None else layer.weights_offsets
    y = np.zeros((len(xb), len(aw)))
    for i in range(len(ax)):
        for j in range(aw.shape[1]):
            differing = (xb[:, None, i, :] != layer.signs[None, :, j, :]).sum(-1)
            y += ax[i] * aw[:, j] * (n - 2 * differing)
        y += ax[i] * (2 * xb[:, i].sum(-1) - n)[:, None] * offsets
    weights = np.where(layer.signs, aw[:, :, None], -aw[:, :, None]).sum(1) + offsets[:, None]
    y += layer.input_offset * weights.sum(-1)
    y += 0.0 if layer.bias is None else layer.bias
    return ACTIVATE[layer.activation](y).reshape(*x.shape[:-1], len(aw))


def random_layer(n: int, o: int, kx: int, kw: int, seed: int = 0) -> Layer:
    """Results of about -4 to 4, so that every activation has something to cut off."""
    rng = np.random.default_rng([n, o, kx, kw, seed])
    scales = rng.uniform(0.2, 1.0, (o, kw)) * rng.choice([-1, 1], (o, kw)) * 3 / np.sqrt(n * kx)
    return Layer(
        (rng.uniform(0.2, 1.0, kx) * rng.choice([-1, 1], kx)).astype(np.float32),
        scales.astype(np.float32),
        rng.integers(0, 2, (o, kw, n)).astype(np.bool_),
    )


def random_input(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1.5, shape).astype(np.float32)


def with_offsets(layer: Layer, bias: bool = True) -> Layer:
    rng = np.random.default_rng(99)
    o = len(layer.signs)
    return replace(
        layer,
        bias=rng.normal(size=o).astype(np.float32) if bias else None,
        weights_offsets=(rng.normal(size=o) * 0.05).astype(np.float32),
        input_offset=0.75,
    )


def check_parts(model: Model, x: Array, threads: int) -> None:
    """The records for threads write together what one thread writes, and each its own results;
    what they all read, if anything, is written before.
    """
    plan = compile_graph(model.graph, {model.graph.inputs[0]: x.shape})
    given, result = (plan.array(v[0]) for v in (model.graph.inputs, model.graph.outputs))
    assert given is not None
    assert result is not None
    given[...] = x
    plan.run()
    wanted = result.copy()
    given[...] = -x
    plan.run()
    given[...] = x
    step = plan.steps[0].native
    assert step is not None
    assert step.split is not None
    *before, parts = step.split(threads)
    assert len(parts) == threads
    result[...] = np.nan
    for part in (part for stage in before for part in stage):
        jit.caller(np.array([[step.address, part.ctypes.data]], np.int64))()
    for done, part in enumerate(parts, 1):
        jit.caller(np.array([[step.address, part.ctypes.data]], np.int64))()
        assert np.isnan(result).any() == (done < threads)
    np.testing.assert_array_equal(result, wanted)


def computed_on(processor: str, program: str, folder: Path) -> tuple[Array, str]:
    """Run a program for another x86-64 processor; what it keeps in the file that it is given, and
    what it prints.
    """
    if os.uname().machine != "x86_64":
        pytest.skip("needs an x86-64 processor")
    path = folder / "y.npy"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=os.environ | {"LUCIOLE_CPU": processor},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return np.load(path), done.stdout
