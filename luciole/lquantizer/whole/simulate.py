"""Let a network of integers compute with floats, every tensor rounded as before."""

from __future__ import annotations

from luciole.ir import Model, TensorType
from luciole.ir.graph import all_ops
from luciole.ir.passes.split_quantization import computes_with_integers, split_quantization
from luciole.ir.quantization import Affine, is_affine
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import Report, shown
from luciole.lquantizer.rewrite.integers import runs


def simulate(model: Model) -> Result:
    """Copy a network of integers as one of floats between QUANTIZE and DEQUANTIZE, weights and
    biases being real numbers. Operators without a form on floats stay, and a warning names them.

    Raises QuantizeError where no operator computes with integers, and LucioleError for scales in
    which numbers cannot be stored.
    """
    work, report = model.clone(), Report()
    for value in [v for graph in work.graphs for v in graph.values if v.producer is not None]:
        if value.dtype != TensorType.FLOAT32 and is_affine(value):
            Affine.of(value, f"tensor {shown(value.name)!r}")
    changed = [split_quantization(graph, runs) for graph in work.graphs]
    if not any(changed):
        raise QuantizeError("nothing to simulate: no operator computes with integers")
    stay = [op for op in all_ops(work.graphs) if computes_with_integers(op)]
    report.warnings += [f"{op.kind} {shown(op.name)!r} stays on integers" for op in stay]
    return Result(work, report)
