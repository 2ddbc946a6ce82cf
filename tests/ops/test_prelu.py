"""PRELU: numbers against LiteRT, and the shapes of alpha."""

import numpy as np
import pytest

from luciole.ir import Graph, Shape, ShapeError, UnsupportedError
from luciole.ir.ops.prelu import PRelu
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

EXTREMES = np.array([0, -0.0, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("shape", [(5,), (4, 1), (1, 1, 5), (3, 4, 5), (2, 3, 4, 5), ()])
def test_numbers_are_those_of_litert(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(5)
    x = random.normal(0, 3, (2, 3, 4, 5)).astype(np.float32)
    alpha = np.asarray(random.normal(0, 1, shape), np.float32)
    ours, theirs = (run(PRelu, [x, alpha], (1,))[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs)


def test_extremes_are_those_of_litert() -> None:
    pair = [np.repeat(EXTREMES[:, None], 4, 1), np.array([0, 0.5, -2, np.inf], np.float32)]
    ours, theirs = (run(PRelu, pair)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs)
    zero = ours == 0
    np.testing.assert_array_equal(np.signbit(ours)[zero], np.signbit(theirs)[zero])


def test_unknown_extents() -> None:
    graph = Graph()
    op = PRelu(graph.add_input("x", (None, None, 5)), graph.add_input("a", (3, 1)))
    assert op.result_shapes() == ((None, 3, 5),)


@pytest.mark.parametrize("alpha", [(2, 5), (1, 1, 5), (3,), (None, 5, 5)])
def test_prelu_refuses_an_alpha_that_is_too_large(alpha: Shape) -> None:
    graph = Graph()
    op = PRelu(graph.add_input("x", (1, 5)), graph.add_input("a", alpha))
    with pytest.raises(ShapeError, match=r"does not stretch to the input's|do not broadcast"):
        op.result_shapes()


def test_prelu_refuses_two_types() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT32 x INT32; there is FLOAT32"):
        run_reference(PRelu, [np.ones(2, np.float32), np.ones(2, np.int32)])
