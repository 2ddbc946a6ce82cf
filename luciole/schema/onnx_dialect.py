"""Name the things of ONNX files: element types, operators that circle has under other names, and
what luciole adds, a domain of operators and entries of the metadata.
"""

from __future__ import annotations

from luciole.schema.enums import BuiltinOperator, TensorType

OPSET, IR_VERSION = 18, 8
"""Versions of files that are written unless something newer is asked for."""

PRODUCER = DOMAIN = "luciole"
"""Operators with learned levels: their bodies of standard operators are in the file."""

SIGNATURES = "luciole.signatures"
"""Metadata: JSON, a list of {"key", "inputs": {name: number of the graph's input}, "outputs"}."""

METADATA = "luciole.metadata."
"""Metadata: what begins so is an entry of the model's own metadata, its bytes in base64."""

ELEMENT_TYPES = {
    1: TensorType.FLOAT32,
    2: TensorType.UINT8,
    3: TensorType.INT8,
    4: TensorType.UINT16,
    5: TensorType.INT16,
    6: TensorType.INT32,
    7: TensorType.INT64,
    8: TensorType.STRING,
    9: TensorType.BOOL,
    10: TensorType.FLOAT16,
    11: TensorType.FLOAT64,
    12: TensorType.UINT32,
    13: TensorType.UINT64,
    14: TensorType.COMPLEX64,
    15: TensorType.COMPLEX128,
    21: TensorType.UINT4,
    22: TensorType.INT4,
}
"""Circle's element types by the numbers of onnx.proto's ``TensorProto.DataType``."""

NUMBERS = {dtype: number for number, dtype in ELEMENT_TYPES.items()}
"""ONNX's numbers of circle's element types."""

NODES = {
    BuiltinOperator.ABS: "Abs",
    BuiltinOperator.ADD: "Add",
    BuiltinOperator.BITWISE_XOR: "BitwiseXor",
    BuiltinOperator.CEIL: "Ceil",
    BuiltinOperator.COS: "Cos",
    BuiltinOperator.DIV: "Div",
    BuiltinOperator.EQUAL: "Equal",
    BuiltinOperator.EXP: "Exp",
    BuiltinOperator.FLOOR: "Floor",
    BuiltinOperator.GREATER: "Greater",
    BuiltinOperator.GREATER_EQUAL: "GreaterOrEqual",
    BuiltinOperator.LESS: "Less",
    BuiltinOperator.LESS_EQUAL: "LessOrEqual",
    BuiltinOperator.LOG: "Log",
    BuiltinOperator.LOGICAL_AND: "And",
    BuiltinOperator.LOGICAL_NOT: "Not",
    BuiltinOperator.LOGICAL_OR: "Or",
    BuiltinOperator.LOGISTIC: "Sigmoid",
    BuiltinOperator.MUL: "Mul",
    BuiltinOperator.NEG: "Neg",
    BuiltinOperator.ROUND: "Round",
    BuiltinOperator.SIGN: "Sign",
    BuiltinOperator.SIN: "Sin",
    BuiltinOperator.SQRT: "Sqrt",
    BuiltinOperator.SUB: "Sub",
    BuiltinOperator.TANH: "Tanh",
}
"""Operators on elements that both have, on the same operands."""

REDUCTIONS = {
    BuiltinOperator.MEAN: "ReduceMean",
    BuiltinOperator.REDUCE_MAX: "ReduceMax",
    BuiltinOperator.REDUCE_MIN: "ReduceMin",
    BuiltinOperator.REDUCE_PROD: "ReduceProd",
    BuiltinOperator.SUM: "ReduceSum",
}
"""Reductions that both have: of the first operand, along the axes that the second one lists."""
