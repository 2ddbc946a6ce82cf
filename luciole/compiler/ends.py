"""Convert the inputs and outputs of callers: bytes for floats, fixed point or a class for
scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from luciole.compiler.lower import Network
from luciole.compiler.options import (
    BYTES,
    CLASS,
    FIXED,
    FLOAT,
    MODEL,
    QUANTIZED,
    CompileOptions,
    OptionError,
    Transform,
)
from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.errors import SLIPS
from luciole.ir.quantization import Affine
from luciole.ir.value import element_count, shape_text
from luciole.kernels.portable.calls import CCall, Field
from luciole.kernels.portable.moves import whole

RISING_TOGETHER = ("luc_softmax", "luc_tanh", "luc_logistic")
"""Functions that leave the largest number of a row where it is."""

_KINDS = {TensorType.INT32: 0, TensorType.FLOAT32: 1, TensorType.INT8: 2}
"""Types by their numbers in ``outputs.h``."""


@dataclass(frozen=True, eq=False)
class End:
    """An input or an output: the tensor in C, the graph's tensor that it stands for (what is
    compared), how many binary places fixed point has, a sentence for people, and what it is called
    in C where that is not the tensor's name.
    """

    value: Value
    original: Value
    form: str
    places: int | None = None
    note: str = ""
    name: str = ""

    def called(self, name: str) -> End:
        """Name the end as a signature does, and add its form where its numbers have another one."""
        form = f"_{self.form}" if self.form in (FIXED, CLASS) else ""
        return replace(self, name=f"{name}{form}") if name else self


def enter(network: Network, options: CompileOptions) -> list[End]:
    """Convert inputs from the forms that the options name. Raises OptionError where they cannot."""
    ends = []
    for place, value in enumerate(network.inputs):
        transform = options.preprocess[place] if place < len(options.preprocess) else None
        ends.append(_entered(network, value, transform, options))
    network.inputs = [end.value for end in ends]
    return ends


def _entered(
    network: Network, value: Value, transform: Transform | None, options: CompileOptions
) -> End:
    original = network.originals[value]
    is_float = value.dtype == TensorType.FLOAT32
    if options.input == BYTES:
        return _from_bytes(network, value, transform, options)
    if options.input == QUANTIZED and is_float:
        raise OptionError(f"input {value.name!r} is float: give bytes or float")
    if options.input == FLOAT and not is_float:
        raise OptionError(f"input {value.name!r} is {value.dtype.name}: give it as quantized")
    note = f'behind "{options.preprocess_text}"' if transform is not None and is_float else ""
    return End(value, original, MODEL, note=note)


def _from_bytes(
    network: Network, value: Value, transform: Transform | None, options: CompileOptions
) -> End:
    """Take an input as bytes: a table has the number that each stands for."""
    codes = Value(value.name, TensorType.UINT8, value.dims)
    function, table = _byte_table(value, _numbers_of_bytes(value, transform))
    fields: dict[str, Field] = {"count": element_count(value.dims), "table": table}
    network.calls.insert(0, CCall(function, fields, (codes,), (value,), note="bytes are given"))
    note = f'before "{options.preprocess_text}"' if transform is not None else ""
    return End(codes, network.originals[value], BYTES, note=note)


def _numbers_of_bytes(value: Value, transform: Transform | None) -> Array:
    """Compute the number that each byte stands for. Raises OptionError where a function fails, or
    gives other than a number for each.
    """
    octets = np.arange(256, dtype=np.float32)
    if transform is None:
        return octets
    try:
        numbers = np.asarray(transform(octets.copy()), np.float32)
    except SLIPS as error:
        text = " ".join(str(error).split())
        raise OptionError(
            f"input {value.name!r}: preprocess fails ({type(error).__name__}: {text})"
        ) from error
    if numbers.shape != octets.shape:
        raise OptionError(
            f"input {value.name!r}: preprocess makes {shape_text(numbers.shape)} of all bytes, "
            f"{shape_text(octets.shape)}: it is to take each number by itself"
        )
    return numbers


def _byte_table(value: Value, real: Array) -> tuple[str, Array]:
    if value.dtype == TensorType.FLOAT32:
        return "luc_floats_of_bytes", real
    if value.dtype not in (TensorType.INT8, TensorType.UINT8):
        raise UnsupportedError(f"input {value.name!r} is {value.dtype.name}, not float or bytes")
    codes = Affine.of_tensor(value, "the input").encode(real)
    return "luc_bytes_of_bytes", codes.view(np.uint8)


def leave(network: Network, options: CompileOptions) -> list[End]:
    """Convert outputs to the forms that the options name, each in a place of its own."""
    ends = [_left(network, value, options) for value in network.outputs]
    network.outputs = [end.value for end in ends]
    network.remove_unread()
    return [_own_place(network, place, end) for place, end in enumerate(ends)]


def _left(network: Network, value: Value, options: CompileOptions) -> End:
    fixed = _fixed_point(network, value)
    if options.output == CLASS:
        return _class(network, value)
    if options.output == FIXED and fixed is None:
        raise OptionError(f"output {value.name!r} is no learned layer's result: it is not fixed")
    if fixed is not None and (options.output == FIXED or _suits(options)):
        return fixed
    is_float = value.dtype == TensorType.FLOAT32
    if (options.output == FLOAT and not is_float) or (options.output == QUANTIZED and is_float):
        raise OptionError(f"output {value.name!r} is {value.dtype.name}")
    return End(value, _original(network, value), MODEL)


def _suits(options: CompileOptions) -> bool:
    """Return whether nobody asked for floats that the machine does not have."""
    return options.output == MODEL and not options.machine.has_floats


def _original(network: Network, value: Value) -> Value:
    """Find the graph's tensor behind one of its own or of a call."""
    original = network.originals.get(value)
    if original is None:
        raise UnsupportedError(f"output {value.name!r} is no tensor of the model")
    return original


def _fixed_point(network: Network, value: Value) -> End | None:
    """Find the fixed point behind scores, before a SOFTMAX."""
    maker = network.maker(value)
    if maker is not None and maker.function == "luc_softmax":
        value = maker.reads[0]
        maker = network.maker(value)
    if maker is None or maker.fixed is None or maker.function != "luc_floats_of_fixed":
        return None
    places = maker.fixed.places
    note = f"number times 2^{places}"
    return End(maker.reads[0], _original(network, value), FIXED, places, note)


def _class(network: Network, value: Value) -> End:
    """Give the number of the largest score in each row."""
    original = _original(network, value)
    maker = network.maker(value)
    while maker is not None and maker.function in (*RISING_TOGETHER, "luc_floats_of_fixed"):
        value = maker.reads[0]
        maker = network.maker(value)
    if value.dtype not in _KINDS or not value.dims or not value.dims[-1]:
        raise UnsupportedError(f"output {value.name!r} is {value.dtype.name}: it has no class")
    depth = value.dims[-1]
    classes = Value(f"{original.name}_class", TensorType.INT32, value.dims[:-1])
    fields: dict[str, Field] = {"rows": element_count(value.dims) // depth, "depth": depth}
    fields["kind"] = _KINDS[value.dtype]
    network.calls.append(CCall("luc_class_of", fields, (value,), (classes,)))
    return End(classes, original, CLASS, note="the number of the largest score")


def _own_place(network: Network, place: int, end: End) -> End:
    """Copy an output that is an input, a constant or an earlier output, too."""
    value = end.value
    if network.maker(value) is not None and value not in network.outputs[:place]:
        return end
    copy = Value(f"{value.name}_copy", value.dtype, value.dims)
    network.calls.append(whole(value, copy))
    network.outputs[place] = copy
    return replace(end, value=copy)
