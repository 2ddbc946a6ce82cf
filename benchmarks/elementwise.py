"""Compiled operators that are not matrix products against LiteRT on one thread: prints a ratio
table.

    python3 -m benchmarks.elementwise [--rounds N] [--json FILE] [NAME ...]

Medians of interleaved calls of both interpreters' ``invoke`` on models of one float operator, with
about 1000 and about 100000 elements of input; both runtimes need 0.3 to 0.5 us for a call of
nothing. NAME picks rows by a part of their name.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from luciole.exporters import to_bytes
from luciole.files import write_file
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.ops import activations, elementwise_binary, elementwise_unary, pool_2d, reduce
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.ops.split import Split
from luciole.ir.ops.transpose import Transpose
from luciole.tools.common.timing import interleaved_medians

SIZES = (1000, 100_000)
PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert")
Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One operator on float inputs, with index operands before or behind them as it has them."""

    name: str
    cls: type[Op]
    operands: tuple[Array, ...]
    attributes: dict[str, Any]

    def model(self) -> Model:
        """Float operands are inputs, integers are constants."""
        model = Model()
        graph = model.add_graph(Graph("main"))
        values = [_value(graph, f"x{i}", array) for i, array in enumerate(self.operands)]
        op = self.cls.from_operands(values, self.attributes)
        graph.append(op, *[f"y{i}" for i in range(len(op.result_shapes()))])
        graph.outputs = list(op.results)
        return model

    @property
    def inputs(self) -> list[Array]:
        """What is fed."""
        return [a for a in self.operands if a.dtype.kind == "f"]


def _value(graph: Graph, name: str, array: Array) -> Value:
    return (
        graph.add_input(name, array.shape)
        if array.dtype.kind == "f"
        else graph.add_constant(name, array)
    )


def floats(*shape: int) -> Array:
    """Positive numbers around 1, so that roots and logarithms have something to do."""
    return np.random.default_rng(1).uniform(0.1, 4, shape).astype(np.float32)


def ints(*entries: Any) -> Array:
    """A constant operand."""
    return np.array(entries, np.int32)


def element_by_element(n: int) -> Iterator[Case]:
    """Functions of one tensor and of two."""
    for cls in (
        *(activations.Tanh, activations.Logistic, activations.Relu, activations.Elu),
        *(activations.HardSwish, elementwise_unary.Exp, elementwise_unary.Log),
        *(elementwise_unary.Sqrt, elementwise_unary.Rsqrt, elementwise_unary.Abs),
    ):
        yield Case(cls.code.name, cls, (floats(1, n),), {})
    yield Case("LEAKY_RELU", LeakyRelu, (floats(1, n),), {"alpha": 0.1})
    yield Case("GELU", Gelu, (floats(1, n),), {})
    for pair in (elementwise_binary.Add, elementwise_binary.Mul, elementwise_binary.Div):
        yield Case(pair.code.name, pair, (floats(1, n), floats(1, n)), {})
    add, rows = elementwise_binary.Add, floats(n // 10, 10)
    yield Case("ADD one number", add, (floats(1, n), floats(1)), {})
    yield Case("ADD [n, 10] + [10]", add, (rows, floats(10)), {})
    yield Case("ADD [n, 10] + [n, 1]", add, (rows, floats(n // 10, 1)), {})


def many_to_one(n: int) -> Iterator[Case]:
    """Softmax, pools and reductions; images have 16 channels."""
    for width in (10, 1000):
        rows = floats(n // width, width)
        yield Case(f"SOFTMAX [n, {width}]", Softmax, (rows,), {"beta": 1.0})
    yield Case("LOG_SOFTMAX [n, 100]", LogSoftmax, (floats(n // 100, 100),), {})
    image = _image(n)
    side = image.shape[1]
    for name, cls, size, stride in (
        ("AVERAGE_POOL_2D 2x2", pool_2d.AveragePool2D, 2, 2),
        ("AVERAGE_POOL_2D all", pool_2d.AveragePool2D, side, side),
        ("MAX_POOL_2D 2x2", pool_2d.MaxPool2D, 2, 2),
        ("MAX_POOL_2D 3x3", pool_2d.MaxPool2D, 3, 1),
    ):
        strides = {"stride_h": stride, "stride_w": stride}
        window = {"filter_height": size, "filter_width": size}
        yield Case(name, cls, (image,), strides | window)
    yield Case("MEAN of images", reduce.Mean, (image, ints(1, 2)), {})
    yield Case("SUM of rows of 100", reduce.Sum, (floats(n // 100, 100), ints(1)), {})
    yield Case("REDUCE_MAX of all", reduce.ReduceMax, (floats(1, n), ints(1)), {})


def moves(n: int) -> Iterator[Case]:
    """What only moves elements."""
    image = _image(n)
    side, channels = image.shape[1], image.shape[3]
    yield Case("PAD by 1", Pad, (image, ints((0, 0), (1, 1), (1, 1), (0, 0))), {})
    halves = (floats(1, side, side, 8),) * 2
    yield Case("CONCATENATION channels", Concatenation, halves, {"axis": 3})
    yield Case("SPLIT channels", Split, (ints(3), image), {"num_splits": 2})
    yield Case("PACK", Pack, (floats(n // 2), floats(n // 2)), {"axis": 0, "values_count": 2})
    inner = ints(0, 1, 1, 0), ints(1, side - 2, side - 2, channels)
    yield Case("SLICE", Slice, (image, *inner), {})
    square = floats(*(round(n**0.5),) * 2)
    yield Case("TRANSPOSE square", Transpose, (square, ints(1, 0)), {})
    yield Case("TRANSPOSE to NCHW", Transpose, (image, ints(0, 3, 1, 2)), {})
    yield Case("TRANSPOSE rows, columns", Transpose, (image, ints(0, 2, 1, 3)), {})


def _image(n: int) -> Array:
    side = round((n / 16) ** 0.5)
    return floats(1, side, side, 16)


def calls(case: Case) -> list[Call]:
    """LiteRT's ``invoke`` and luciole's."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    content = to_bytes(case.model(), "tflite")
    found: list[Call] = []
    for runtime in (LiteRT(model_content=content, num_threads=1), Interpreter(case.model())):
        runtime.allocate_tensors()
        for detail, array in zip(runtime.get_input_details(), case.inputs, strict=True):
            runtime.set_tensor(detail["index"], array)
        found.append(runtime.invoke)
    return found


def measured(wanted: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
    """Rows of the table: operator, elements, both medians in us and their ratio."""
    for n in SIZES:
        for case in (*element_by_element(n), *many_to_one(n), *moves(n)):
            if wanted and not any(part in case.name for part in wanted):
                continue
            peer, ours = interleaved_medians(calls(case), rounds)
            times = {"litert_us": peer, "luciole_us": ours, "ratio": peer / ours}
            yield {"operator": case.name, "elements": n, **times}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of operators' names")
    parser.add_argument("--rounds", type=int, default=50, help="samples of each (default 50)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    options = parser.parse_args()
    print("operator | elements | LiteRT us | luciole us | ratio |\n---|---|---|---|---|")
    rows = []
    for row in measured(options.names, options.rounds):
        rows.append(row)
        times = f"{row['litert_us']:.2f} | {row['luciole_us']:.2f} | {row['ratio']:.2f}x"
        print(f"{row['operator']} | {row['elements']} | {times} |", flush=True)
    print(f"\n{machine(PACKAGES)}")
    if options.json is not None:
        write_file(options.json, json.dumps({"machine": machine(PACKAGES), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
