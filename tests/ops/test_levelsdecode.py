"""LevelsDecode against NumPy, and what of it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from luciole import Interpreter
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Model, ShapeError
from luciole.ir.analysis.decoded import decoded
from luciole.ir.minifloat import pack_codes
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.verify import verify
from tests.support import one_op, run_reference

RNG = np.random.default_rng(4)


def arrays(shape: tuple[int, ...], bits: int, rows: int, scales: int) -> list[Array]:
    """Codes with their operands, for a shape."""
    codes = RNG.integers(0, 2**bits, shape)
    found: list[Array] = [pack_codes(codes, bits), np.array(shape, np.int32)]
    found.append(RNG.normal(size=(rows, bits)).astype(np.float32))
    return found + ([RNG.normal(size=scales).astype(np.float32)] if scales else [])


def wanted(given: list[Array], axis: int) -> Array:
    """The definition, element by element."""
    packed, shape, basis, *scales = given
    bits, result = basis.shape[1], np.empty(tuple(shape), np.float32)
    for place, at in enumerate(np.ndindex(*shape)):
        first = place * bits
        signs = [packed[b // 8] >> (b % 8) & 1 for b in range(first, first + bits)]
        row = basis[at[axis] % len(basis)].astype(np.float64)
        row = row * scales[0][at[axis]] if scales else row
        result[at] = sum(a if sign else -a for a, sign in zip(row, signs, strict=True))
    return result


SHAPES = [
    ((1, 3, 3, 5), 2, 1, 5, 3),
    ((4, 2, 7), 3, 4, 0, 0),
    ((6,), 1, 6, 6, 0),
    ((0, 3), 4, 1, 0, 0),
]


@pytest.mark.parametrize(("shape", "bits", "rows", "scales", "axis"), SHAPES)
def test_codes_are_levels(
    shape: tuple[int, ...], bits: int, rows: int, scales: int, axis: int
) -> None:
    given = arrays(shape, bits, rows, scales)
    (found,) = run_reference(LevelsDecode, given, tuple(range(len(given))), axis=axis)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted(given, axis), rtol=1e-6, atol=1e-7)


def model_of(given: list[Array], axis: int) -> Model:
    return one_op(LevelsDecode, given, tuple(range(len(given))), axis=axis)


def test_files_hold_codes_and_say_so() -> None:
    given = arrays((1, 3, 3, 5), 2, 1, 5)
    model = from_bytes(to_bytes(model_of(given, 3)))
    (op,) = model.graph.ops
    assert isinstance(op, LevelsDecode)
    assert list(verify(model)) == []
    (result,) = Interpreter(model).run({}).values()
    np.testing.assert_allclose(result, wanted(given, 3), rtol=1e-6, atol=1e-7)
    found = decoded(op.output)
    assert found is not None
    assert (found.format.bits, found.codes.shape) == (2, (5, 1, 3, 3))
    np.testing.assert_array_equal(found.values(), result)


REFUSED = [
    (0, np.zeros(4, np.uint8), "codes has 4 bytes, dims .1, 3, 3, 5. take 12"),
    (2, np.zeros((2, 2), np.float32), "basis has 2 rows, axis 3 has 5 entries"),
    (2, np.zeros((1, 5), np.float32), "codes have 5 bits, 1 to 4 are possible"),
    (3, np.zeros(4, np.float32), "scales are .4., axis 3 has 5 entries"),
    (1, np.array([-1, 5], np.int32), "nothing below 0"),
]


@pytest.mark.parametrize(("slot", "array", "message"), REFUSED)
@pytest.mark.parametrize("constant", [True, False])
def test_levels_decode_refuses_what_does_not_fit(
    slot: int, array: Array, message: str, constant: bool
) -> None:
    given = arrays((1, 3, 3, 5), 2, 1, 5)
    given[slot] = array
    places = tuple(range(len(given))) if constant else ()
    with pytest.raises(ShapeError, match=message):
        run_reference(LevelsDecode, given, places, axis=3)


def integers(basis: list[int], offset: int) -> list[Array | None]:
    """Codes of 2 bits for 4 numbers of 1 entry, as integers."""
    codes = pack_codes(np.arange(4), 2)
    whole = np.array([basis], np.int8), None, np.array([offset], np.int8)
    return [codes, np.array([1, 4], np.int32), *whole]


def test_integers_are_decoded_exactly() -> None:
    (result,) = run_reference(LevelsDecode, integers([100, 20], 5), (0, 1, 2, 4), axis=0)
    assert result.dtype == np.int8
    np.testing.assert_array_equal(result, [[-115, 85, -75, 125]])


@pytest.mark.parametrize(("basis", "offset"), [([100, 28], 0), ([100, 20], 8), ([-128, 0], 1)])
def test_integers_beyond_a_byte_are_refused(basis: list[int], offset: int) -> None:
    with pytest.raises(ShapeError, match="are no INT8"):
        run_reference(LevelsDecode, integers(basis, offset), (0, 1, 2, 4), axis=0)


def test_integers_have_no_scales_beside_those_of_the_result() -> None:
    operands = integers([100, 20], 5)
    operands[3] = np.ones(1, np.float32)
    with pytest.raises(ShapeError, match="INT8 without scales"):
        run_reference(LevelsDecode, operands, tuple(range(5)), axis=0)


def test_levels_decode_refuses_an_axis_that_there_is_not() -> None:
    with pytest.raises(ShapeError, match="axis is 4, dims has 4 extents"):
        run_reference(LevelsDecode, arrays((1, 3, 3, 5), 2, 1, 5), axis=4)
