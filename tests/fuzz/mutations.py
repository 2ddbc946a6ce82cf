"""Damage to a file: to its tables, so that it stays readable, and to its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from luciole.ir.dtypes import NUMPY, byte_count
from luciole.schema import tables as t
from luciole.schema.dialect import CIRCLE
from luciole.schema.enums import BuiltinOperator, TensorType
from luciole.schema.reader import read
from luciole.schema.table import SCALARS, TABLES, UNIONS, Field, Table
from luciole.schema.writer import write
from tests.fuzz.lies import LIES
from tests.samples import content

Rng = np.random.Generator
_EXTREMES = (-1, 0, 1, 2, 3, 4, 5, 7, 31, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
_LARGE = (-(2**31), -(2**63), 2**62, 2**63 - 1, 2**64 - 1)
_FLOATS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 3e38, 1e-45, 1e-30, 1e9)


# ------------------------------------------------------------------------------------- bytes
def damaged_bytes(rng: Rng, content: bytes) -> bytes:
    """Bits flipped, words overwritten, stretches copied, the end cut off."""
    data = bytearray(content)
    kind = int(rng.integers(10))
    if kind == 0:
        return bytes(data[: int(rng.integers(len(data)))])
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(data)))
        if kind < 4:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind < 8:
            number = int(rng.choice([*_EXTREMES, len(data)])) % 2**32
            data[at // 4 * 4 : at // 4 * 4 + 4] = number.to_bytes(4, "little")
        else:
            length, other = int(rng.integers(1, 64)), int(rng.integers(len(data)))
            data[at : at + length] = content[other : other + length]
    return bytes(data)


def unaligned(content: bytes) -> bytes:
    """The same model with every constant behind the tables, at an odd byte."""
    root, _ = read(content)
    moved = [b for b in root.buffers or [] if b.data is not None and len(b.data)]
    contents = [np.array(b.data).tobytes() for b in moved]
    end = 16
    for _ in range(2):  # the first writing tells where the tables end
        place = end
        for buffer, data in zip(moved, contents, strict=True):
            buffer.data, buffer.offset, buffer.size = None, place + 1 - place % 2, len(data)
            place = buffer.offset + buffer.size
        tables_alone = write(root, CIRCLE)
        end = len(tables_alone)
    file = bytearray(tables_alone)
    for buffer, data in zip(moved, contents, strict=True):
        file += bytes(buffer.offset - len(file)) + data
    return bytes(file)


# ------------------------------------------------------------------------------------ tables
def damage_tables(rng: Rng, root: t.Model) -> str:
    """Change a few things in the tables of a file; says what."""
    done = []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if rng.random() < 0.55:
            action = _AIMED[int(rng.integers(len(_AIMED)))]
            action(rng, root)
            done.append(action.__name__)
        else:
            done.append(_any_field(rng, root))
    return ", ".join(done)


def _any_field(rng: Rng, root: t.Model) -> str:
    """Another content for one field of one table, given or not."""
    found = list(_tables(root))
    if rng.random() < 0.6:  # options decide most
        found = [x for x in found if type(x).__name__.endswith("Options")] or found
    table = found[int(rng.integers(len(found)))]
    fields = table.fields
    if not fields:
        return "nothing"
    field = fields[int(rng.integers(len(fields)))]
    setattr(table, field.name, _other(rng, field, getattr(table, field.name)))
    return f"{type(table).__name__}.{field.name}"


def _tables(table: Table) -> Iterator[Table]:
    yield table
    for field in table.fields:
        value = getattr(table, field.name)
        if isinstance(value, Table):
            yield from _tables(value)
        elif field.kind == "tables" and value:
            for item in value:
                yield from _tables(item)


def _other(rng: Rng, field: Field, value: Any) -> Any:
    if field.kind == "scalar":
        return _number(rng, field.of, value)
    if field.kind == "vector":
        return _vector(rng, SCALARS[field.of], value)
    if field.kind == "tables":
        return _list(rng, field, value)
    if rng.random() < 0.4:
        return None
    if field.kind == "union":
        kinds = [tag.name for tag in UNIONS[field.of] if tag]
        cls = TABLES[kinds[int(rng.integers(len(kinds)))]]
        return cls(
            **{f.name: content(f, int(rng.integers(6))) for f in cls.fields if rng.random() < 0.5}
        )
    return content(field, int(rng.integers(6)))


def _number(rng: Rng, of: str, value: Any) -> Any:
    """A number that fits the field's type, often one that hurts."""
    if of in ("float", "double"):
        number = float(rng.choice(_FLOATS))
        return number if of == "double" else float(np.float32(number))
    if of == "bool":
        return not value
    limits = np.iinfo(SCALARS[of])
    near = [int(value) + 1, int(value) - 1, -int(value)]
    number = [*_EXTREMES, *_LARGE, *near, *near][
        int(rng.integers(len(_EXTREMES) + len(_LARGE) + 6))
    ]
    return min(max(number, int(limits.min)), int(limits.max))


def _vector(rng: Rng, dtype: np.dtype[Any], value: Any) -> Any:
    kind = int(rng.integers(6))
    numbers = np.zeros(0, dtype) if value is None else np.array(value, dtype)
    if kind == 0 or (kind < 4 and not len(numbers)):
        return None if kind == 0 else np.array([1], dtype)
    if kind == 1:
        return numbers[: int(rng.integers(len(numbers)))]
    if kind == 2:
        return np.concatenate([numbers, numbers[: int(rng.integers(1, len(numbers) + 1))]])
    if kind == 3:
        return rng.permutation(numbers)
    number = _number(rng, next(k for k, d in SCALARS.items() if d == dtype and k != "bool"), 0)
    at = int(rng.integers(len(numbers) + 1))
    return np.concatenate([numbers[:at], np.array([number], dtype), numbers[at + (kind == 4) :]])


def _list(rng: Rng, field: Field, value: Any) -> Any:
    items = list(value or [])
    kind = int(rng.integers(5))
    if kind == 0:
        return None
    if kind == 1 and items:
        items.pop(int(rng.integers(len(items))))
    elif kind == 2 and items:
        items.append(items[int(rng.integers(len(items)))])
    elif kind == 3 and len(items) > 1:
        items = [items[i] for i in rng.permutation(len(items))]
    else:
        items.append(content(Field(0, "table", field.of), 1))
    return items


# ------------------------------------------------- damage that leaves a file sound otherwise
def _tensor(rng: Rng, root: t.Model) -> t.Tensor:
    graphs = [g for g in root.subgraphs or [] if g.tensors]
    if not graphs:
        return t.Tensor()
    tensors = graphs[int(rng.integers(len(graphs)))].tensors or []
    return tensors[int(rng.integers(len(tensors)))]


def _operator(rng: Rng, root: t.Model) -> t.Operator:
    graphs = [g for g in root.subgraphs or [] if g.operators]
    operators = graphs[int(rng.integers(len(graphs)))].operators or [] if graphs else [t.Operator()]
    return operators[int(rng.integers(len(operators)))]


def _fill(root: t.Model, tensor: t.Tensor, rng: Rng) -> None:
    """Give a constant as many bytes as its shape and type take, where that is a modest number."""
    buffers = root.buffers or []
    if not 0 < tensor.buffer < len(buffers) or tensor.type not in set(TensorType):
        return
    extents = [] if tensor.shape is None else [int(n) for n in tensor.shape]
    size = byte_count(
        TensorType(tensor.type), int(np.prod(extents, dtype=object)) if extents else 1
    )
    old = buffers[tensor.buffer].data
    if size is None or not 0 <= size < 1 << 16 or old is None:
        return
    data = np.resize(old, size) if len(old) else rng.integers(0, 3, size)
    buffers[tensor.buffer] = t.Buffer(data=data.astype(np.uint8))


def _another_shape(rng: Rng, root: t.Model) -> None:
    tensor = _tensor(rng, root)
    shape = list(tensor.shape) if tensor.shape is not None else []
    kind = int(rng.integers(5))
    if kind == 0 or not shape:
        shape.insert(int(rng.integers(len(shape) + 1)), int(rng.choice([0, 1, 2])))
    elif kind == 1:
        shape.pop(int(rng.integers(len(shape))))
    else:
        extents = [0, 1, 2, 3, 5, 17, 33, 100, 2**16, 2**31 - 1]
        shape[int(rng.integers(len(shape)))] = int(rng.choice(extents))
    tensor.shape, tensor.shape_signature = np.array(shape, np.int32), None
    _fill(root, tensor, rng)


def _open_shape(rng: Rng, root: t.Model) -> None:
    tensor = _tensor(rng, root)
    if tensor.shape is not None:
        signature = np.where(rng.random(len(tensor.shape)) < 0.5, -1, tensor.shape)
        tensor.shape_signature = signature.astype(np.int32)
        tensor.shape = np.where(signature < 0, 1, tensor.shape).astype(np.int32)


def _another_type(rng: Rng, root: t.Model) -> None:
    tensor = _tensor(rng, root)
    kinds = list(TensorType) if rng.random() < 0.3 else list(NUMPY)
    tensor.type = kinds[int(rng.integers(len(kinds)))]
    _fill(root, tensor, rng)


def _other_contents(rng: Rng, root: t.Model) -> None:
    """Other numbers in a constant: indices, axes, extents that hurt."""
    tensor = _tensor(rng, root)
    buffers = root.buffers or []
    old = buffers[tensor.buffer].data if 0 < tensor.buffer < len(buffers) else None
    is_text = tensor.type == TensorType.STRING  # whose buffer begins with offsets
    dtype = np.dtype(np.uint8) if is_text else NUMPY.get(tensor.type)
    if is_text and old is not None and len(old) % 4 == 0:
        dtype = np.dtype(np.int32)
    if old is None or dtype is None or not len(old) or len(old) % dtype.itemsize:
        return
    numbers = np.array(old).view(dtype)
    at = int(rng.integers(len(numbers)))
    numbers[at] = hurting(rng, dtype)
    buffers[tensor.buffer] = t.Buffer(data=numbers.view(np.uint8))


def hurting(rng: Rng, dtype: np.dtype[Any]) -> Any:
    """One number of a type that kernels may not like."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        number = int([*_EXTREMES, *_LARGE][int(rng.integers(len(_EXTREMES) + len(_LARGE)))])
        return min(max(number, int(limits.min)), int(limits.max))
    if dtype.kind == "O":
        return [b"", b"\0", b" ", b"\xff" * 1000][int(rng.integers(4))]
    if dtype.kind == "b":
        return bool(rng.integers(2))
    with np.errstate(all="ignore"):
        return np.asarray(rng.choice(_FLOATS)).astype(dtype)


def _constant_to_input(rng: Rng, root: t.Model) -> None:
    """What was known when the model was loaded is known only when it runs."""
    for graph in (root.subgraphs or [])[:1]:
        number = int(rng.integers(len(graph.tensors or []) or 1))
        if graph.tensors and graph.tensors[number].buffer:
            graph.tensors[number].buffer = 0
            given = [] if graph.inputs is None else list(graph.inputs)
            graph.inputs = np.array([*given, number], np.int32)


def _input_to_constant(rng: Rng, root: t.Model) -> None:
    for graph in (root.subgraphs or [])[:1]:
        if graph.inputs is None or not len(graph.inputs) or not graph.tensors:
            continue
        at = int(rng.integers(len(graph.inputs)))
        number = int(graph.inputs[at])
        if 0 <= number < len(graph.tensors) and root.buffers:
            root.buffers.append(t.Buffer(data=np.ones(1, np.uint8)))
            graph.tensors[number].buffer = len(root.buffers) - 1
            graph.inputs = np.delete(graph.inputs, at)
            _fill(root, graph.tensors[number], rng)


def _other_operands(rng: Rng, root: t.Model) -> None:
    operator = _operator(rng, root)
    numbers = [] if operator.inputs is None else list(operator.inputs)
    kind = int(rng.integers(4))
    if kind == 0 or not numbers:
        numbers.append(int(rng.integers(-1, 5)))
    elif kind == 1:
        numbers.pop()
    elif kind == 2:
        numbers[int(rng.integers(len(numbers)))] = int(rng.integers(-1, 5))
    else:
        numbers = list(rng.permutation(numbers))
    operator.inputs = np.array(numbers, np.int32)


def _another_operator(rng: Rng, root: t.Model) -> None:
    codes = root.operator_codes or []
    numbers = list(BuiltinOperator)
    if codes:
        number = numbers[int(rng.integers(len(numbers)))]
        codes[0].builtin_code = number
        codes[0].deprecated_builtin_code = max(min(int(number), 127), -128)


def _other_quantization(rng: Rng, root: t.Model) -> None:
    tensor = _tensor(rng, root)
    found = tensor.quantization or t.QuantizationParameters()
    if rng.random() < 0.2:
        tensor.quantization = None
        return
    count = int(rng.choice([1, 1, 2, 3, 8]))
    scales = rng.choice([0.1, 1.0, 0.0, -1.0, np.nan, np.inf, 1e-45, 3e38], count)
    if rng.random() < 0.5:
        found.scale = scales.astype(np.float32)
    else:
        points = rng.choice([0, 0, 5, -128, 255, 2**31, -(2**63)], count)
        found.zero_point = points.astype(np.int64)
    if rng.random() < 0.3:
        found.quantized_dimension = int(rng.choice([-1, 0, 1, 2, 3, 4, 2**31 - 1]))
    tensor.quantization = found


def _data_behind_the_tables(rng: Rng, root: t.Model) -> None:
    buffers = root.buffers or []
    if buffers:
        number = int(rng.integers(len(buffers)))
        offset, size = (int(rng.choice([0, 1, 2, 16, 100, 2**31, 2**62])) for _ in range(2))
        buffers[number] = t.Buffer(offset=offset, size=size)


_AIMED: tuple[Callable[[Rng, t.Model], None], ...] = (
    *(_another_shape, _another_shape, _open_shape, _another_type, _other_contents),
    *(_other_contents, _constant_to_input, _input_to_constant, _other_operands),
    *(_another_operator, _other_quantization, _data_behind_the_tables, *LIES),
)
