"""LSH_PROJECTION against LiteRT, and its hash against TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.lsh_projection import LshProjection
from luciole.ir.strings import array_of
from luciole.kernels.arrays.fingerprint import fingerprint64
from luciole.schema.enums import LSHProjectionType
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference

DENSE, SPARSE = LSHProjectionType.DENSE, LSHProjectionType.SPARSE
LENGTHS = [4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 1000]


def seeds(functions: int, bits: int) -> Array:
    return np.random.default_rng(bits).normal(size=(functions, bits)).astype(np.float32)


@pytest.mark.parametrize("kind", [DENSE, SPARSE])
@pytest.mark.parametrize("weighed", [True, False])
@pytest.mark.parametrize("shape", [(5,), (1,), (3, 2), (4, 3, 5), (2, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.int64])
def test_bits_are_those_of_litert(
    kind: LSHProjectionType, weighed: bool, shape: tuple[int, ...], dtype: type
) -> None:
    x = counted(*shape, dtype=dtype)
    weights = [np.linspace(-1, 2, shape[0]).astype(np.float32)] if weighed else []
    (found,) = check_same(LshProjection, [seeds(4, 9), x, *weights], type=kind)
    assert len(set(found.tolist())) > 1


@pytest.mark.parametrize("size", LENGTHS)
def test_keys_of_all_lengths_are_hashed_as_in_litert(size: int) -> None:
    """One item alone: each bit is the sign of one hash."""
    x = np.random.default_rng(size).integers(0, 256, (1, size - 4)).astype(np.uint8)
    if size > 4:
        check_same(LshProjection, [seeds(20, 20), x], type=DENSE)


@pytest.mark.parametrize("kind", [DENSE, SPARSE])
@pytest.mark.parametrize("constant", [(), (1,)])
def test_texts_are_hashed_as_litert_does(kind: LSHProjectionType, constant: tuple[int]) -> None:
    x = array_of([b"abc", b"", b"defgh\xff"], (3,))
    check_same(LshProjection, [seeds(4, 9), x], constant, type=kind)


def test_31_bits_make_a_number() -> None:
    check_same(LshProjection, [seeds(2, 31), ints(1, 2, 3)], type=SPARSE)


def test_fingerprints_are_those_of_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow", reason="needs the extra tensorflow")
    for size in LENGTHS:
        keys = np.random.default_rng(size).integers(0, 256, (5, size)).astype(np.uint8)
        wanted = tf.fingerprint(tf.constant(keys), "farmhash64").numpy().view("<u8")[:, 0]
        np.testing.assert_array_equal(fingerprint64(keys), wanted, strict=True)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    hash, x = graph.add_input("h", (None, 3)), graph.add_input("x", (None, 2), TensorType.INT8)
    assert LshProjection(hash, x, type=DENSE).infer_shape() == (None,)
    assert LshProjection(hash, x, type=SPARSE).infer_shape() == (None,)
    assert LshProjection(hash, x, type=SPARSE).infer_dtype() == TensorType.INT32


@pytest.mark.parametrize(
    ("operands", "kind", "message"),
    [
        ([seeds(1, 2), ints()], DENSE, "input has no items: its first axis counts them"),
        ([seeds(1, 2), np.array(1, np.int32)], DENSE, "input has no items"),
        ([seeds(1, 2)[0], ints(1)], DENSE, r"hash has shape \[2\], rank 2 is needed"),
        ([seeds(1, 2), ints(1, 2), seeds(1, 3)[0]], DENSE, "items: input has 2, weight has 3"),
        ([seeds(1, 32), ints(1)], SPARSE, "hash has 32 bits for a number, at most 31"),
        ([seeds(1, 2), ints(1)], LSHProjectionType.UNKNOWN, "UNKNOWN, DENSE or SPARSE is needed"),
    ],
)
def test_lsh_projection_refuses_other_operands(
    operands: list[Array], kind: LSHProjectionType, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(LshProjection, operands, type=kind)


def test_lsh_projection_refuses_what_turns_out_to_have_no_items() -> None:
    graph = Graph()
    hash, x = graph.add_input("h", (1, 2)), graph.add_input("x", (None,), TensorType.INT32)
    op = LshProjection(hash, x, type=DENSE)
    assert op.infer_shape() == (2,)
    (found,) = run_reference(LshProjection, [seeds(1, 2), ints(1)], type=DENSE)
    assert found.shape == (2,)
