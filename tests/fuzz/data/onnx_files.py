"""ONNX files whose numbers, names, nodes and bytes are changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from luciole.exporters import to_bytes
from luciole.importers.onnx import model as importing
from luciole.ir import LucioleError
from luciole.ir.text.listing import dump_lines
from tests.fuzz.data.common import DataCase, check_refusal, choose, promised
from tests.fuzz.mutations import Rng, damaged_bytes, hurting
from tests.onnx_nodes import some_cases

PER_MODEL = 16
"""Cases that start from the same file."""
CONSTANTS_LIMIT = 16 << 20
"""Bytes that constants of a small file may take."""
_GOLDEN = Path(__file__).parents[2] / "golden" / "onnx"
_PYTORCH = "pytorch"
_MODULES = (
    "averagepool", "attention", "batch_normalization", "bitshift", "cast", "clip", "compress",
    "concat", "constantofshape", "conv", "convtranspose", "cumsum", "dequantizelinear", "einsum",
    "expand", "eyelike", "gather", "gatherelements", "gemm", "gridsample", "gru", "if_",
    "layernormalization", "loop", "lrn", "lstm", "matmul", "maxpool", "onehot", "pad",
    "qlinearconv", "qlinearmatmul", "quantizelinear", "rangeop", "reduce_log_sum_exp", "reshape",
    "resize", "reversesequence", "rnn", "scan", "scatternd", "shape", "slice", "softmax", "split",
    "squeeze", "tile", "topk", "trilu", "unsqueeze", "where",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2, 3, 7, 255, 2**16, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63))
_SMALL = (0, 1, 2, 3, 5, 64, 1000)
_NAMES = ("", "x", "y", "\n", "\u202e", "a" * 3000)


@cache
def _bases(module: str) -> tuple[bytes, ...]:
    """Files of PyTorch, or a module's of ONNX's nodes, their inputs as they are and constant."""
    from onnx import ModelProto, numpy_helper

    if module == _PYTORCH:
        return tuple(path.read_bytes() for path in sorted(_GOLDEN.glob("*.onnx")))
    made, found = len(some_cases()), list[bytes]()
    for case in some_cases(module)[made:]:
        found.append(case.model.SerializeToString())
        fixed, arrays = ModelProto(), case.data_sets[0][0]
        fixed.CopyFrom(case.model)
        for info, array in list(zip(fixed.graph.input, arrays, strict=False))[1:]:
            if isinstance(array, np.ndarray):
                fixed.graph.initializer.append(numpy_helper.from_array(array, info.name))
        found.append(fixed.SerializeToString())
    return tuple(found)


def make(seed: int, number: int) -> DataCase:
    """The case of that number."""
    rng = np.random.default_rng([seed, 14, number])
    of_block = np.random.default_rng([seed, 13, number // PER_MODEL])
    base = choose(of_block, _bases(choose(of_block, (_PYTORCH, *_MODULES))))
    if rng.random() < 0.25:
        return DataCase(number, damaged_bytes(rng, base), "damaged bytes")
    from onnx import ModelProto

    proto = ModelProto.FromString(base)
    kinds = [_change(rng, proto) for _ in range(int(choose(rng, [1, 1, 2, 4])))]
    return DataCase(number, proto.SerializeToString(), ", ".join(kinds))


def _change(rng: Rng, proto: Any) -> str:
    change = choose(rng, _CHANGES)
    try:
        change(rng, proto)
    except (ValueError, TypeError, IndexError):  # protobuf has no such number, or there is none
        return "nothing"
    return str(change.__name__).strip("_")


def _other_dims(rng: Rng, proto: Any) -> None:
    dim = choose(rng, choose(rng, proto.graph.input).type.tensor_type.shape.dim)
    if rng.random() < 0.3:
        dim.ClearField("dim_value")
    else:
        dim.dim_value = choose(rng, _NUMBERS + _SMALL * 2)


def _other_types(rng: Rng, proto: Any) -> None:
    things = [v.type.tensor_type for v in proto.graph.input]
    choose(rng, things).elem_type = int(rng.integers(0, 27))


def _other_tensors(rng: Rng, proto: Any) -> None:
    tensor = choose(rng, proto.graph.initializer)
    kind = int(rng.integers(4))
    if kind == 0:
        tensor.data_type = int(rng.integers(0, 27))
    elif kind == 1 and tensor.dims:
        tensor.dims[int(rng.integers(len(tensor.dims)))] = choose(rng, _NUMBERS + _SMALL)
    elif kind == 2:
        tensor.raw_data = tensor.raw_data[: int(rng.integers(1 + len(tensor.raw_data)))]
    else:
        tensor.external_data.add(key="location", value=choose(rng, ("../a", "/etc/passwd", "a")))
        tensor.data_location = 1


def _other_contents(rng: Rng, proto: Any) -> None:
    from onnx import numpy_helper

    tensor = choose(rng, [t for t in proto.graph.initializer if not t.data_location])
    array = numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[int(rng.integers(array.size))] = hurting(rng, array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _other_attributes(rng: Rng, proto: Any) -> None:
    node = choose(rng, _nodes(proto.graph))
    if rng.random() < 0.2:
        name = choose(rng, ("axis", "group", "k", "size", "kernel_shape", "hidden_size", "to"))
        node.attribute.add(name=name, type=2, i=choose(rng, _NUMBERS))
        return
    attribute = choose(rng, node.attribute)
    attribute.i = choose(rng, _NUMBERS)
    attribute.f = choose(rng, (0.0, -1.0, np.nan, np.inf, 1e30, 1e-30))
    if attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] = choose(rng, _NUMBERS)
    if rng.random() < 0.2:
        attribute.type = int(rng.integers(0, 15))


def _other_operands(rng: Rng, proto: Any) -> None:
    nodes = _nodes(proto.graph)
    names = [name for node in nodes for name in (*node.input, *node.output)]
    side = choose(rng, [(node := choose(rng, nodes)).input, node.input, node.output])
    kind = int(rng.integers(3))
    if kind == 0 and side:
        del side[-1]
    elif kind == 1 and side:
        side[int(rng.integers(len(side)))] = choose(rng, [*names, *_NAMES])
    else:
        side.append(choose(rng, [*names, *_NAMES]))


def _other_operators(rng: Rng, proto: Any) -> None:
    from onnx import defs

    names = sorted({schema.name for schema in defs.get_all_schemas()})
    choose(rng, _nodes(proto.graph)).op_type = choose(rng, names)


def _other_order(rng: Rng, proto: Any) -> None:
    nodes = proto.graph.node
    kept = [nodes[int(i)] for i in rng.integers(len(nodes), size=len(nodes))]
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del nodes[:]
    nodes.extend(copies)


def _other_graphs(rng: Rng, proto: Any) -> None:
    """A node's graph becomes the model's own, or the model's becomes the node's."""
    graphs = [a.g for node in proto.graph.node for a in node.attribute if a.HasField("g")]
    if not graphs:
        node = proto.graph.node.add(op_type=choose(rng, ("Loop", "Scan", "If")), output=["l"])
        graphs = [node.attribute.add(name=choose(rng, ("body", "then_branch")), type=5).g]
    choose(rng, graphs).ParseFromString(proto.graph.SerializeToString())


def _other_functions(rng: Rng, proto: Any) -> None:
    """Operators become functions, some of which call themselves."""
    node = choose(rng, proto.graph.node)
    function = proto.functions.add(name=node.op_type, domain=choose(rng, ("", "own")))
    function.input.extend(node.input)
    function.output.extend(node.output)
    function.node.append(node)
    function.opset_import.extend(proto.opset_import)
    node.domain = function.domain
    if rng.random() < 0.5:
        function.node[0].domain = function.domain
    proto.opset_import.add(domain=function.domain, version=1)


def _other_versions(rng: Rng, proto: Any) -> None:
    choose(rng, proto.opset_import).version = choose(rng, (*range(1, 30), *_NUMBERS))


def _nodes(graph: Any) -> list[Any]:
    """Those of graphs inside of nodes, too."""
    inner = [n for node in graph.node for a in node.attribute for n in _nodes(a.g)]
    return [*graph.node, *inner]


_CHANGES: Sequence[Callable[[Rng, Any], None]] = (
    *(_other_dims, _other_dims, _other_types, _other_tensors, _other_contents, _other_contents),
    *(_other_attributes, _other_attributes, _other_operands, _other_operators, _other_order),
    *(_other_graphs, _other_functions, _other_versions),
)


def run(case: DataCase, seed: int) -> str:
    """Import, look at and write the model."""
    importing.SPARE_BYTES = CONSTANTS_LIMIT
    with promised(CONSTANTS_LIMIT):
        try:
            model = importing.from_bytes(case.content).sound()
            for line in dump_lines(model, "case"):
                assert "\n" not in line
            for extension in ("circle", "onnx"):
                to_bytes(model, extension)
        except LucioleError as error:
            check_refusal(error)
            return type(error).__name__
    return "imported"
