"""Records for networks, what is quantized with them, and what it computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import Array, Model, TensorType, Value
from luciole.ir.analysis.weights import weight_constant
from tests.networks import random, value_named

QUICK: dict[str, Any] = {"ranges": "min_max", "proof": False}
"""Choices of tests that look at other things than how close numbers are: learning the ranges of
small networks takes longer than all that follows.
"""


def records(model: Model, count: int = 40, seed: int = 5) -> dict[str, Array]:
    return {v.name: random(seed, count, *v.dims[1:]) for v in model.graph.inputs}


def quantized(model: Model, **choices: Any) -> Model:
    data = None if choices["scheme"] in ("dynamic", "weights", "float16") else records(model)
    return luciole.quantize(model, data, proof=False, **choices).model


def answers(model: Model, x: dict[str, Array]) -> Array:
    interpreter = luciole.Interpreter(model)
    outputs = [interpreter.run({n: a[k : k + 1] for n, a in x.items()}) for k in range(8)]
    return np.concatenate([next(iter(found.values())) for found in outputs])


def integers_of_litert(path: Path, x: Array) -> dict[str, Array]:
    """Every integer tensor of LiteRT's reference kernels, by name."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    peer = Interpreter(
        str(path),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    peer.allocate_tensors()
    peer.set_tensor(peer.get_input_details()[0]["index"], x)
    peer.invoke()
    details = [d for d in peer.get_tensor_details() if d["dtype"] in (np.int8, np.int16, np.uint8)]
    return {d["name"]: peer.get_tensor(d["index"]) for d in details}


def is_float(value: Value | None) -> bool:
    return value is not None and value.dtype == TensorType.FLOAT32


VECTORS = random(50, 300, 20)
IMAGES = random(51, 40, 8, 6, 3)


def seen(model: Model, name: str, x: Array) -> Array:
    interpreter = Interpreter(model)
    interpreter.run({"x": x})
    return interpreter.get_tensor(model.graph.values.index(value_named(model, name)))


def error(model: Model, other: Model, name: str, x: Array) -> float:
    """Mean squared difference of a tensor, relative to its mean square."""
    wanted, found = (seen(m, name, x).astype(np.float64) for m in (model, other))
    return float(np.mean((wanted - found) ** 2) / np.mean(wanted**2))


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.graph.ops]


def weights_by_kind(model: Model) -> dict[str, set[TensorType]]:
    found: dict[str, set[TensorType]] = {}
    for op in model.graph.ops:
        value = weight_constant(op) if op.quant is not None else None
        if value is not None:
            found.setdefault(op.kind, set()).add(value.dtype)
    return found


COARSE: dict[str, Any] = {
    "scheme": "w4a8",
    "ranges": "min_max",
    "rounding": "nearest",
    "rescale": "none",
}
