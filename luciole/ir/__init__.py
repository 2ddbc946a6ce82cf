"""Hold a model as a graph of pointers: values, operators, graphs, rules, checks and passes."""

from luciole.ir.dtypes import Array
from luciole.ir.errors import GraphError, LucioleError, ShapeError, UnsupportedError
from luciole.ir.graph import Graph, Model, Signature
from luciole.ir.op import CUSTOM_OPS, OPS, Op
from luciole.ir.quant import Quant
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Buffer, Shape, Use, Value
from luciole.schema.enums import TensorType

__all__ = [
    "CUSTOM_OPS",
    "OPS",
    "Array",
    "Buffer",
    "Graph",
    "GraphError",
    "LucioleError",
    "Model",
    "Op",
    "Quant",
    "Shape",
    "ShapeError",
    "Signature",
    "TensorType",
    "UnknownOp",
    "UnsupportedError",
    "Use",
    "Value",
]
