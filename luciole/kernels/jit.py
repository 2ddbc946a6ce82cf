"""The only module that imports numba: how kernels are compiled, cached and called.

Every kernel is a function of one argument, a pointer to a record of int64 numbers (addresses,
sizes, parameters). It is compiled when its address is first asked for and kept on disk; nothing is
compiled by importing.
"""

from __future__ import annotations

import functools
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _numba_types
from numba.extending import intrinsic, models, register_model

import luciole

CACHE_VERSION = "2"
"""Part of the cache's path. Raise it when an intrinsic changes: numba does not notice that by
itself.
"""

Pointer = Any
"""A C pointer while a kernel is compiled: what ``floats`` and ``words`` make of an address."""

Record = Pointer
"""A kernel's argument while it is compiled: a C pointer to int64."""

types: Any = _numba_types
_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic
_literal_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic(
    prefer_literal=True
)

_SIGNATURE = types.void(types.CPointer(types.int64))


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``LUCIOLE_CACHE``, else the user's cache, else a temporary
    folder.
    """
    name = f"{luciole.__version__}-{CACHE_VERSION}"
    given = os.environ.get("LUCIOLE_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    for root in (
        Path(given) if given else user / "luciole",
        Path(tempfile.gettempdir()) / f"luciole-{os.getuid()}",
    ):
        folder = root / "kernels" / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="luciole-"))


class Kernel:
    """A kernel that is compiled, or read from the cache, when its address is first needed."""

    def __init__(self, function: Callable[[Record], None]) -> None:
        self.function = function
        self._compiled: Any = None

    @property
    def address(self) -> int:
        """The address of the compiled ``void(int64*)`` function."""
        if self._compiled is None:
            self._compiled = _compile(
                numba.cfunc(_SIGNATURE, cache=True, error_model="numpy"), self.function
            )
        return int(self._compiled.address)


def kernel(function: Callable[[Record], None]) -> Kernel:
    """Declare a kernel. Its body sees one argument ``r``: ``r[0]``, ``r[1]``, ... are the record's
    numbers.
    """
    return Kernel(function)


def inline(function: Callable[..., Any]) -> Any:
    """A helper that kernels call; compiled into them."""
    return numba.njit(inline="never", error_model="numpy")(function)


def merged(function: Callable[..., Any]) -> Any:
    """A helper whose body becomes part of its caller: for what keeps tiles in registers."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # nobody else calls it
    return numba.njit(forceinline=True, error_model="numpy", **options)(function)


def _compile(decorator: Callable[[Any], Any], function: Callable[..., Any]) -> Any:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return decorator(function)
    finally:
        numba.config.CACHE_DIR = previous


_I64 = ir.IntType(64)


@_intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits of an unsigned word, as the same type."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@_intrinsic
def floats(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.int64), generate


@_intrinsic
def words(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to uint32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(32).as_pointer())

    return types.CPointer(types.uint32)(types.int64), generate


@_intrinsic
def longs(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], _I64.as_pointer())

    return types.CPointer(types.int64)(types.int64), generate


@_intrinsic
def _call(typing_context: Any, address: Any, record: Any) -> Any:
    """Call the kernel at an address on the record at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_I64.as_pointer()])
        target = builder.inttoptr(args[0], function.as_pointer())
        builder.call(target, [builder.inttoptr(args[1], _I64.as_pointer())])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _run_steps(steps: Any) -> None:
    for i in range(steps.shape[0]):
        _call(steps[i, 0], steps[i, 1])


_driver: Any = None


def run(steps: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    """Run kernels one after the other: rows of (address of the kernel, address of its record)."""
    global _driver
    if _driver is None:
        _driver = _compile(numba.njit("void(int64[:,::1])", cache=True, nogil=True), _run_steps)
    _driver(steps)


# ------------------------------------------------------------------------------- vector registers
# Plain LLVM vectors of 16 lanes: one register with AVX-512, two with AVX2, and right everywhere.
LANES = 16
"""Elements of one vector."""

_I32, _F32 = ir.IntType(32), ir.FloatType()
_INTS, _FLOATS = ir.VectorType(_I32, LANES), ir.VectorType(_F32, LANES)


class _Tile(types.Type):  # type: ignore[misc]  # numba is not typed
    """The type of a group of vectors that stay in registers, indexed as its shape says."""

    def __init__(self, element: Any, *shape: int) -> None:
        self.element, self.shape, self.count = element, shape, math.prod(shape)
        super().__init__(name=f"Tile({element}, {shape})")


@register_model(_Tile)
class _TileModel(models.PrimitiveModel):  # type: ignore[misc]  # numba is not typed
    def __init__(self, manager: Any, tile: _Tile) -> None:
        vector = _FLOATS if tile.element is types.float32 else _INTS
        super().__init__(manager, tile, ir.ArrayType(vector, tile.count))


def _splat(builder: Any, scalar: Any) -> Any:
    """A scalar in every lane."""
    empty = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, empty, ir.Constant(_INTS, [0] * LANES))


def _pointer(builder: Any, address: Any, kind: Any, offset: int = 0) -> Any:
    return builder.inttoptr(builder.add(address, ir.Constant(_I64, offset)), kind.as_pointer())


def _load(builder: Any, kind: Any, address: Any, offset: int = 0) -> Any:
    loaded = builder.load(_pointer(builder, address, kind, offset))
    loaded.align = 4
    return loaded


def _store(builder: Any, value: Any, address: Any, offset: int = 0) -> None:
    builder.store(value, _pointer(builder, address, value.type, offset)).align = 4


def _gather(builder: Any, vectors: Sequence[Any]) -> Any:
    """Vectors as one value of a tile's LLVM type."""
    tile = ir.Constant(ir.ArrayType(vectors[0].type, len(vectors)), ir.Undefined)
    for place, vector in enumerate(vectors):
        tile = builder.insert_value(tile, vector, place)
    return tile


def _of_llvm(builder: Any, name: str, *args: Any) -> Any:
    """Call one of LLVM's own functions whose result has the type of its arguments."""
    kind = ir.FunctionType(args[0].type, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


_FMA = "llvm.fmuladd.v16f32"  # one rounding where the machine can, and never a call


def _steps(builder: Any, address: Any, step: Any, count: int) -> list[Any]:
    """The addresses ``address + i * step``."""
    return [builder.add(address, builder.mul(step, ir.Constant(_I64, i))) for i in range(count)]


@_literal_intrinsic
def counters(context: Any, pixels: Any, planes: Any, weight_planes: Any, vectors: Any) -> Any:
    """A tile of zeros [pixels, input planes, weight planes, vectors of outputs]; its shape is
    known when a kernel is compiled.
    """
    given = (pixels, planes, weight_planes, vectors)
    if not all(isinstance(n, types.IntegerLiteral) for n in given):
        return None
    tile = _Tile(types.int32, *(n.literal_value for n in given))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.ArrayType(_INTS, tile.count), None)

    return tile(*given), generate


@_intrinsic
def fill(typing_context: Any, tile: Any, start: Any) -> Any:
    """A tile of the same shape with a number in every counter."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = _splat(builder, builder.trunc(args[1], _I32))
        return _gather(builder, [vector] * tile.count)

    return tile(tile, types.int64), generate


@_intrinsic
def count(typing_context: Any, tile: Any, x: Any, step: Any, weights: Any) -> Any:
    """Add the bits in which words differ: pixel p's word of plane i at ``x + p step + 4 i``
    against the words [weight planes, outputs] at ``weights``.
    """
    pixels, planes, weight_planes, vectors = tile.shape

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, x, step, weights = args
        size = weight_planes * vectors
        words = [_load(builder, _INTS, weights, 4 * LANES * k) for k in range(size)]
        added: list[Any] = []
        for address in _steps(builder, x, step, pixels):
            for i in range(planes):
                word = _splat(builder, _load(builder, _I32, address, 4 * i))
                for weight in words:
                    bits = _of_llvm(builder, "llvm.ctpop.v16i32", builder.xor(word, weight))
                    before = builder.extract_value(tile_value, len(added))
                    added.append(builder.add(before, bits))
        return _gather(builder, added)

    return tile(tile, types.int64, types.int64, types.int64), generate


@_intrinsic
def weigh(typing_context: Any, tile: Any, factors: Any, start: Any, step: Any) -> Any:
    """Counters as results [pixels, vectors of outputs]: start + sum_ij factor_ij counter_ij.

    ``factors`` is the address of [input planes, weight planes, outputs]; pixel p's start stands at
    ``start + p step``.
    """
    pixels, planes, weight_planes, vectors = tile.shape
    products = planes * weight_planes

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, factors, start, step = args
        results = []
        for p, address in enumerate(_steps(builder, start, step, pixels)):
            for v in range(vectors):
                chains = [_load(builder, _FLOATS, address, 4 * LANES * v)]
                chains += [ir.Constant(_FLOATS, None)] * (weight_planes - 1)
                for k in range(products):
                    counter = builder.extract_value(tile_value, (p * products + k) * vectors + v)
                    factor = _load(builder, _FLOATS, factors, 4 * LANES * (k * vectors + v))
                    number, chain = builder.sitofp(counter, _FLOATS), k % weight_planes
                    chains[chain] = _of_llvm(builder, _FMA, number, factor, chains[chain])
                results.append(functools.reduce(builder.fadd, chains))
        return _gather(builder, results)

    rows = _Tile(types.float32, pixels, vectors)
    return rows(tile, types.int64, types.int64, types.int64), generate


@_intrinsic
def add_products(typing_context: Any, rows: Any, x: Any, step: Any, weights: Any) -> Any:
    """Add to results [pixels, vectors] the product of pixel p's float at ``x + p step`` with the
    floats [outputs] at ``weights``.
    """
    pixels, vectors = rows.shape

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_value, x, step, weights = args
        factors = [_load(builder, _FLOATS, weights, 4 * LANES * v) for v in range(vectors)]
        results: list[Any] = []
        for address in _steps(builder, x, step, pixels):
            number = _splat(builder, _load(builder, _F32, address))
            for factor in factors:
                before = builder.extract_value(rows_value, len(results))
                results.append(_of_llvm(builder, _FMA, number, factor, before))
        return _gather(builder, results)

    return rows(rows, types.int64, types.int64, types.int64), generate


@_intrinsic
def store_between(typing_context: Any, rows: Any, low: Any, high: Any, y: Any, step: Any) -> Any:
    """Write results [pixels, vectors], cut off at two limits, pixel p's to ``y + p step``; NaN
    stays NaN.
    """
    pixels, vectors = rows.shape

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_value, low, high, y, step = args
        low, high = _splat(builder, low), _splat(builder, high)
        for p, address in enumerate(_steps(builder, y, step, pixels)):
            for v in range(vectors):
                value = builder.extract_value(rows_value, p * vectors + v)
                value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
                value = builder.select(builder.fcmp_ordered(">", value, high), high, value)
                _store(builder, value, address, 4 * LANES * v)
        return context.get_dummy_value()

    limits = (types.float32, types.float32)
    return types.void(rows, *limits, types.int64, types.int64), generate


_WORD = _Tile(types.int32, 2)
_WORD_FLOATS = _Tile(types.float32, 2)


@_intrinsic
def word_floats(typing_context: Any, address: Any) -> Any:
    """The 32 floats at an address as a tile."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _gather(builder, [_load(builder, _FLOATS, args[0], 4 * LANES * h) for h in range(2)])

    return _WORD_FLOATS(types.int64), generate


@_intrinsic
def word_codes(typing_context: Any, code: Any) -> Any:
    """A tile with the same code number 32 times."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _gather(builder, [_splat(builder, builder.trunc(args[0], _I32))] * 2)

    return _WORD(types.int64), generate


@_intrinsic
def toggled(typing_context: Any, codes: Any, x: Any, threshold: Any, bits: Any) -> Any:
    """Code numbers, with ``bits`` toggled where ``x`` lies above a threshold; NaN lies above
    none.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes, x, threshold, bits = args
        limit, toggle = _splat(builder, threshold), _splat(builder, bits)
        after = []
        for half in range(2):
            above = builder.fcmp_ordered(">", builder.extract_value(x, half), limit)
            change = builder.select(above, toggle, ir.Constant(_INTS, None))
            after.append(builder.xor(builder.extract_value(codes, half), change))
        return _gather(builder, after)

    return _WORD(_WORD, _WORD_FLOATS, types.float32, types.uint32), generate


@_intrinsic
def plane(typing_context: Any, codes: Any, bit: Any) -> Any:
    """The word that holds one bit of each of 32 code numbers, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mask = _splat(builder, builder.trunc(builder.shl(ir.Constant(_I64, 1), args[1]), _I32))
        masked = [builder.and_(builder.extract_value(args[0], half), mask) for half in range(2)]
        zero = ir.Constant(_INTS, None)
        return _word(builder, [builder.icmp_unsigned("!=", m, zero) for m in masked])

    return types.uint32(_WORD, types.int64), generate


def _word(builder: Any, halves: Sequence[Any]) -> Any:
    """Two vectors of truth values as one word, the first value lowest."""
    low, high = (builder.zext(builder.bitcast(h, ir.IntType(LANES)), _I32) for h in halves)
    return builder.or_(low, builder.shl(high, ir.Constant(_I32, LANES)))


@_intrinsic
def search(typing_context: Any, tile: Any, x: Any, thresholds: Any, mask: Any, to: Any) -> Any:
    """Find the level of 32 floats by binary search and write its number as one word per bit.

    There are as many bits as ``tile`` has input planes. ``x`` is a tile of floats, ``thresholds``
    and ``to`` are addresses; words are cut off by ``mask``.
    """
    count = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, x, thresholds, mask, to = args
        limits = [
            _splat(builder, _load(builder, _F32, thresholds, 4 * i)) for i in range(2**count - 1)
        ]
        halves = [_searched(builder, builder.extract_value(x, half), limits) for half in range(2)]
        for bit, pair in enumerate(zip(*halves, strict=True)):
            word = builder.and_(_word(builder, pair), builder.trunc(mask, _I32))
            _store(builder, word, to, 4 * (count - 1 - bit))
        return context.get_dummy_value()

    return types.void(tile, _WORD_FLOATS, types.int64, types.int64, types.int64), generate


def _searched(builder: Any, x: Any, limits: Sequence[Any]) -> list[Any]:
    """The bits of the number of limits (2^n - 1, rising) that lie below ``x``, highest first."""
    found: list[Any] = []
    while limits:
        middle = len(limits) // 2
        above = builder.fcmp_ordered(">", x, limits[middle])
        pairs = zip(limits[:middle], limits[middle + 1 :], strict=True)
        limits = [builder.select(above, upper, lower) for lower, upper in pairs]
        found.append(above)
    return found
