"""BCQ_FULLY_CONNECTED: reference and compiled kernel against plain loops, and what is refused.

The reference multiplies in float64 and differs from the loops by at most 1e-6 of the largest sum of
magnitudes, the compiled kernel in float32 by at most 1e-5 of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter, compile_graph
from luciole.ir import Array, LucioleError, Model, ShapeError, TensorType
from luciole.ir.errors import UnsupportedError
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected, decoded
from luciole.kernels.core import registry
from luciole.kernels.core.contract import Context
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.reader import read
from tests.ops.bcq_support import (
    ACTIVATE,
    CONSTANT,
    Clusters,
    Layer,
    magnitude,
    oracle,
    random_input,
    random_layer,
    weights_of,
)
from tests.support import make_sparse, one_op, run_native, run_reference


def check(layer: Layer, x: Array) -> None:
    wanted, scale = oracle(layer, x), magnitude(layer, x)
    for found, tolerance in ((layer.reference(x), 1e-6), (layer.native(x), 1e-5)):
        assert found.dtype == np.float32
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale)


# ------------------------------------------------------------------------------------------ numbers
@pytest.mark.parametrize("hidden", [32, 64, 96, 224])
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("clusters", [[(1, 1)], [(3, 7)], [(2, 3), (1, 5), (4, 2)], [(1, 1)] * 3])
def test_any_size_gives_what_loops_give(hidden: int, batch: int, clusters: Clusters) -> None:
    check(random_layer(hidden, clusters), random_input(hidden, batch))


def test_random_sizes_give_what_loops_give() -> None:
    rng = np.random.default_rng(5)
    for seed in range(25):
        hidden = 32 * int(rng.integers(1, 5))
        clusters = [(int(b), int(n)) for b, n in rng.integers(1, 6, (rng.integers(1, 5), 2))]
        layer = random_layer(hidden, clusters, bias=bool(seed % 2), seed=seed)
        check(layer, random_input(hidden, int(rng.integers(1, 8)), seed))


def test_planes_come_one_after_the_other_inside_a_cluster() -> None:
    """Two clusters, all bits set: the scales alone tell which planes make a row."""
    layer = Layer(
        np.array([1, 2, 10, 20, 100, 1000], np.float32),
        np.ones((6, 32), np.bool_),
        [(2, 2), (1, 2)],
    )
    x = np.zeros((32, 1), np.float32)
    x[4] = 1
    for y in (layer.reference(x), layer.native(x)):
        assert y[:, 0].tolist() == [11, 22, 100, 1000]


@pytest.mark.parametrize("place", [0, 7, 8, 15, 16, 24, 31, 32, 63])
def test_bits_are_counted_from_the_least_significant(place: int) -> None:
    word = np.zeros((1, 2), np.int64)
    word[0, place // 32] = 1 << place % 32
    operands = [
        np.eye(64, dtype=np.float32)[:, [place, (place + 1) % 64]],
        np.array([2.5], np.float32),
        word.astype(np.uint32).view(np.int32),
        None,
        np.array([[1, 1]], np.int32),
    ]
    (y,) = run_reference(BCQFullyConnected, operands, CONSTANT, weights_hidden_size=64)
    assert y.tolist() == [[2.5, -2.5]]
    model = one_op(BCQFullyConnected, operands, CONSTANT, weights_hidden_size=64)
    assert Interpreter(model).run(operands[0])["y0"].tolist() == [[2.5, -2.5]]


@pytest.mark.parametrize("activation", list(ACTIVATE))
@pytest.mark.parametrize("bias", [False, True])
def test_every_activation_comes_after_the_bias(activation: Act, bias: bool) -> None:
    layer = random_layer(64, [(2, 9), (3, 8)], bias)
    x = random_input(64, 3)
    raw = oracle(layer, x)
    assert raw.min() < -1  # there is something to cut off on both sides
    assert raw.max() > 6
    check(replace(layer, activation=activation), x)


@pytest.mark.parametrize("clusters", [[], [(3, 0)], [(2, 0), (1, 2), (4, 0)]])
def test_clusters_may_be_empty(clusters: Clusters) -> None:
    check(random_layer(32, clusters, bias=False), random_input(32, 2))


def test_no_columns_give_no_results() -> None:
    check(random_layer(32, [(2, 3)]), random_input(32, 0))


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, -1e-40, 3e36, -3e36])
def test_inputs_that_are_all_one_extreme(value: float) -> None:
    check(random_layer(64, [(2, 5), (1, 4)]), np.full((64, 2), value, np.float32))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities_of_both_signs_are_no_number(value: float) -> None:
    layer = random_layer(64, [(2, 5), (1, 4)])
    x = np.full((64, 2), value, np.float32)
    for y in (layer.reference(x), layer.native(x)):
        assert np.isnan(y).all()


def test_an_infinity_between_ordinary_inputs_keeps_its_sign() -> None:
    layer = random_layer(64, [(1, 12)])
    x = random_input(64)
    x[19] = np.inf
    wanted = oracle(layer, x)
    assert set(wanted[:, 0]) == {np.inf, -np.inf}
    for y in (layer.reference(x), layer.native(x)):
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("activation", list(ACTIVATE))
def test_a_nan_reaches_its_own_column_only(activation: Act) -> None:
    layer = replace(random_layer(64, [(2, 6)]), activation=activation)
    x = random_input(64, 3)
    x[40, 1] = np.nan
    for y in (layer.reference(x), layer.native(x)):
        np.testing.assert_array_equal(np.isnan(y), np.broadcast_to([False, True, False], y.shape))


def test_decoded_weights_are_those_of_the_loops() -> None:
    layer = random_layer(96, [(2, 3), (1, 5), (4, 2)])
    _, scales, binary, _, clusters = layer.operands(random_input(96))
    assert scales is not None
    assert binary is not None
    assert clusters is not None
    np.testing.assert_allclose(
        decoded(scales, binary, clusters, 96), weights_of(layer), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("computed", [1, 2, 3, 4])
def test_constants_that_are_computed_are_read_at_every_run(computed: int) -> None:
    layer = random_layer(32, [(2, 4)])
    x = random_input(32, 2)
    constant = tuple(i for i in CONSTANT if i != computed)
    model = layer.model(x, constant)
    plan = compile_graph(model.graph, {v: v.dims for v in model.graph.inputs})
    array = plan.array(model.graph.outputs[0])
    assert array is not None
    assert array.dtype == np.float32
    interpreter = Interpreter(model)
    for other in (layer, random_layer(32, [(2, 4)], seed=1)):
        changed = layer.operands(x)
        changed[computed] = other.operands(x)[computed]
        y = interpreter.run({"x0": x, f"x{computed}": changed[computed]})["y0"]
        (wanted,) = run_reference(BCQFullyConnected, changed, CONSTANT, **layer.attributes())
        np.testing.assert_array_equal(y, wanted)


def test_a_result_that_a_file_calls_another_type_gets_the_type_that_is_computed() -> None:
    x = random_input(32, 2)
    model = random_layer(32, [(2, 4)]).model(x)
    model.graph.outputs[0].dtype = TensorType.INT8
    plan = compile_graph(model.graph, {v: v.dims for v in model.graph.inputs})
    array = plan.array(model.graph.outputs[0])
    assert array is not None
    assert array.dtype == np.float32


# ------------------------------------------------------------------------------------------- shapes
def test_rows_are_unknown_while_clusters_are_computed() -> None:
    layer = random_layer(32, [(2, 4)], bias=False)
    assert layer.model(random_input(32, 3), (1, 2)).graph.outputs[0].shape == (None, 3)
    with_bias = random_layer(32, [(2, 4)]).model(random_input(32, 3), (1, 2, 3))
    assert with_bias.graph.outputs[0].shape == (4, 3)
    model = layer.model(random_input(32))
    model.graph.inputs[0].shape = (32, None)
    assert model.graph.ops[0].infer_shape() == (4, None)


def changed(place: int, array: Array | None) -> list[Array | None]:
    """The operands of a layer of 8 rows and 12 rows of planes on 64 inputs, one replaced."""
    operands = random_layer(64, [(2, 4), (1, 4)]).operands(random_input(64))
    operands[place] = array
    return operands


def pairs(*clusters: tuple[int, int]) -> Array:
    return np.array(clusters, np.int32)


@pytest.mark.parametrize(
    ("place", "array", "sentence"),
    [
        (0, np.ones((32, 1), np.float32), "hidden axis: input has 32, weights_hidden_size has 64"),
        (0, np.ones(64, np.float32), r"input has shape \[64\], rank 2 is needed"),
        (1, np.ones(11, np.float32), "rows of planes: weights_binary has 12, weights_scales has"),
        (1, np.ones((12, 1), np.float32), r"weights_scales has shape \[12,1\], rank 1"),
        (2, np.ones((12, 3), np.int32), "words: weights_binary has 3, weights_hidden_size 64 has"),
        (2, np.ones(24, np.int32), r"weights_binary has shape \[24\], rank 2"),
        (3, np.ones(7, np.float32), "rows: bias has 7, weights_clusters has 8"),
        (3, np.ones((8, 1), np.float32), r"bias has shape \[8,1\], rank 1"),
        (4, pairs((2, 4)), "the clusters take 8 rows of planes, weights_binary has 12"),
        (4, pairs((2, 4), (1, 5)), "the clusters take 13 rows of planes, weights_binary has 12"),
        (4, pairs((2, 8), (-1, 4)), "cluster 1 has 4 rows of -1 bits"),
        (4, pairs((0, 4), (2, 6)), "cluster 0 has 4 rows of 0 bits"),
        (4, pairs((4, 4), (1, -4)), "cluster 1 has -4 rows of 1 bits, at least 0 of at least 1"),
        (4, np.ones((2, 3), np.int32), "numbers per cluster: one has 3, a pair has 2"),
        (4, np.ones(2, np.int32), r"weights_clusters has shape \[2\], rank 2"),
        (4, np.ones((2, 2), np.float32), r"weights_clusters is float32 \[2,2\], integers \[n,2\]"),
        (4, np.ones((65537, 2), np.int32), "there are 65537 clusters, at most 65536 are possible"),
    ],
)
def test_bcq_fully_connected_refuses_operands_that_do_not_fit(
    place: int, array: Array, sentence: str
) -> None:
    with pytest.raises(ShapeError, match=sentence):
        one_op(BCQFullyConnected, changed(place, array), CONSTANT, weights_hidden_size=64)


@pytest.mark.parametrize("hidden", [0, -32, 33, 784])
def test_bcq_fully_connected_refuses_rows_that_are_not_whole_words(hidden: int) -> None:
    sentence = f"weights_hidden_size is {hidden}, a row must be one or more whole words of 32"
    operands = changed(0, np.ones((max(hidden, 0), 1), np.float32))
    with pytest.raises(ShapeError, match=sentence):
        one_op(BCQFullyConnected, operands, CONSTANT, weights_hidden_size=hidden)
    op = one_op(BCQFullyConnected, changed(3, None), CONSTANT, weights_hidden_size=64).graph.ops[0]
    assert list(op.verify()) == []
    op.weights_hidden_size = hidden  # type: ignore[attr-defined]  # the operator's own attribute
    assert list(op.verify()) == [sentence]


@pytest.mark.parametrize("clusters", [pairs((2, 4), (1, 5)), pairs((4, 4), (1, -4))])
def test_running_refuses_computed_clusters_that_do_not_fit(clusters: Array) -> None:
    model = one_op(BCQFullyConnected, changed(3, None), (1, 2), weights_hidden_size=64)
    with pytest.raises(ShapeError, match=r"BCQFullyConnected 'y0': .*cluster"):
        Interpreter(model).run({"x0": random_input(64), "x4": clusters})


def test_running_refuses_computed_clusters_with_other_rows_than_the_bias() -> None:
    operands = changed(0, random_input(64))
    model = one_op(BCQFullyConnected, operands, (1, 2, 3), weights_hidden_size=64)
    with pytest.raises(ShapeError, match="rows: bias has 8, weights_clusters has 12"):
        Interpreter(model).run({"x0": random_input(64), "x4": pairs((1, 12))})


def sparse_clusters(rows: int) -> Model:
    """One plane for each of 8 rows, in clusters that are sparse; the bias speaks of ``rows``."""
    layer = random_layer(32, [(1, 8)])
    assert layer.bias is not None
    op = layer.model(random_input(32)).graph.ops[0]
    clusters, bias = op.operands[4], op.operands[3]
    assert clusters is not None
    assert bias is not None
    make_sparse(clusters)
    bias.make_constant(layer.bias[:rows])
    op.results[0].shape = (rows, 1)
    assert op.graph is not None
    assert op.graph.model is not None
    return op.graph.model


def test_sparse_clusters_tell_rows_as_others_do() -> None:
    x = random_input(32)
    found = run_native(sparse_clusters(8), x)
    np.testing.assert_array_equal(found, random_layer(32, [(1, 8)]).native(x))


def test_a_plan_refuses_sparse_clusters_of_more_rows_than_the_bias_has() -> None:
    """The file's own shapes fit: the operator would write 8 rows into a result of one."""
    model = from_bytes(to_bytes(sparse_clusters(1)))
    with pytest.raises(ShapeError, match="rows: bias has 1, weights_clusters has 8"):
        Interpreter(model).allocate_tensors()


def test_the_kernel_declines_clusters_of_more_rows_than_the_result_has() -> None:
    layer, x = random_layer(32, [(1, 8)]), random_input(32)
    op = layer.model(x).graph.ops[0]
    build = registry.find_native(op)
    assert build is not None
    operands = tuple(layer.operands(x))
    assert build(op, Context(operands, (np.zeros((8, 1), np.float32),))) is not None
    assert build(op, Context(operands, (np.zeros((1, 1), np.float32),))) is None


def test_running_refuses_an_activation_without_kernel() -> None:
    layer = replace(random_layer(32, [(1, 2)]), activation=Act.SIGN_BIT)
    x = random_input(32)
    with pytest.raises(LucioleError, match=r"BCQFullyConnected 'y0': .*SIGN_BIT is not supported"):
        Interpreter(layer.model(x)).run(x)


# -------------------------------------------------------------------------------------------- files
@pytest.mark.parametrize("bias", [False, True])
def test_a_file_keeps_the_operator(bias: bool) -> None:
    layer = replace(random_layer(64, [(2, 3), (1, 5)], bias), activation=Act.RELU)
    x = random_input(64, 2)
    content = to_bytes(layer.model(x))
    model = from_bytes(content)
    (op,) = model.graph.ops
    assert isinstance(op, BCQFullyConnected)
    assert (op.weights_hidden_size, op.activation) == (64, Act.RELU)
    assert (op.bias is not None) == bias
    assert to_bytes(model) == content
    np.testing.assert_array_equal(
        Interpreter(model).run(x)["y0"], Interpreter(layer.model(x)).run(x)["y0"]
    )


def test_the_code_is_that_of_one_in_both_fields() -> None:
    root, _ = read(to_bytes(random_layer(32, [(1, 2)]).model(random_input(32))))
    assert root.operator_codes is not None
    (code,) = root.operator_codes
    assert (code.deprecated_builtin_code, int(code.builtin_code)) == (-3, -3)


def test_tflite_refuses_the_operator() -> None:
    with pytest.raises(UnsupportedError, match="tflite has no operator"):
        to_bytes(random_layer(32, [(1, 2)]).model(random_input(32)), "tflite")
