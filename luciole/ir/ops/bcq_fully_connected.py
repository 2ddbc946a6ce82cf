"""BCQ_FULLY_CONNECTED: a dense layer whose weights are sums of scaled signs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import learned_levels
from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import REQUIRED, attr, dtype_of, operand
from luciole.ir.learned_levels import WORD
from luciole.ir.op import Op
from luciole.ir.rules import MOST_PARTS, agree, known, rank
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType


class Cluster(NamedTuple):
    """Rows of the weight matrix that follow each other and have equally many bits."""

    bits: int
    size: int


class BCQFullyConnected(
    Op, code=BuiltinOperator.BCQ_FULLY_CONNECTED, options="BCQFullyConnectedOptions"
):
    """y = activation(W x + b) with samples in columns; a weight is sum_k (+-a_k), each sign a bit.

    Input [hidden, batch], bias [rows], result [rows, batch]. ``weights_clusters`` [n, 2] are pairs
    of bits and size for rows that follow each other; ``weights_binary`` [p, hidden / 32] holds
    their signs and ``weights_scales`` [p] their a_k: cluster after cluster, in each one plane 0 of
    all rows, then plane 1 of all rows, ... While clusters are computed, the bias alone tells rows.
    """

    input: Value = operand()
    weights_scales: Value = operand()
    weights_binary: Value = operand(dtype=(TensorType.INT32,))
    bias: Value | None = operand(default=None)
    # REQUIRED is spelled out because type checkers let nothing without a default follow a default.
    weights_clusters: Value = operand(default=REQUIRED, dtype=(TensorType.INT32,))

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    weights_hidden_size: int = attr(default=0, dump="weights_hidden_size")

    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        if not is_whole(self.weights_hidden_size):
            yield not_whole("weights_hidden_size", self.weights_hidden_size)

    def weight_shape(self, /) -> tuple[int, ...]:
        return (*self.output.dims[:1], self.weights_hidden_size)

    def infer_shape(self, /) -> Shape:
        hidden = self.weights_hidden_size
        if not is_whole(hidden):
            raise ShapeError(not_whole("weights_hidden_size", hidden))
        n, batch = rank(self.input, "input", 2)
        agree("hidden axis", n, hidden, "input", "weights_hidden_size")
        planes, words = rank(self.weights_binary, "weights_binary", 2)
        agree("words", words, hidden // WORD, "weights_binary", f"weights_hidden_size {hidden}")
        (scales,) = rank(self.weights_scales, "weights_scales", 1)
        planes = agree("rows of planes", planes, scales, "weights_binary", "weights_scales")
        rows = known_rows(self.weights_clusters, planes)
        if self.bias is not None:
            biases = rank(self.bias, "bias", 1)[0]
            rows = agree("rows", biases, rows, "bias", "weights_clusters")
        return (rows, batch)


def is_whole(hidden: int) -> bool:
    """Return whether rows of ``hidden`` signs fill words."""
    return hidden > 0 and hidden % WORD == 0


def not_whole(name: str, hidden: int) -> str:
    """Return a sentence on rows that do not fill words."""
    return f"{name} is {hidden}, a row must be one or more whole words of {WORD}"


def known_rows(clusters: Value, planes: int | None) -> int | None:
    """Count the rows of the weight matrix, None while the clusters are unknown."""
    agree("numbers per cluster", rank(clusters, "weights_clusters", 2)[1], 2, "one", "a pair")
    array = known(clusters)
    return None if array is None else sum(c.size for c in clusters_of(array, planes))


def clusters_of(array: Array, planes: int | None) -> list[Cluster]:
    """Read the contents of ``weights_clusters``.

    Raises ShapeError for what can be no cluster or too many, and when all of them together do not
    take exactly ``planes`` rows of ``weights_binary`` (None: not known yet).
    """
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2:
        other = f"{array.dtype} {shape_text(array.shape)}"
        raise ShapeError(f"weights_clusters is {other}, integers [n,2] are needed")
    if len(array) > MOST_PARTS:
        raise ShapeError(f"there are {len(array)} clusters, at most {MOST_PARTS} are possible")
    clusters = [Cluster(int(bits), int(size)) for bits, size in array]
    for i, (bits, size) in enumerate(clusters):
        if bits < 1 or size < 0:
            raise ShapeError(
                f"cluster {i} has {size} rows of {bits} bits, at least 0 of at least 1 are needed"
            )
    taken = sum(bits * size for bits, size in clusters)
    if planes not in (None, taken):
        raise ShapeError(f"the clusters take {taken} rows of planes, weights_binary has {planes}")
    return clusters


def matrix_rows(clusters: Sequence[Cluster]) -> NDArray[np.intp]:
    """Find, for each row of ``weights_binary``, the row of the weight matrix that it is a plane
    of.
    """
    parts, first = [np.zeros(0, np.intp)], 0
    for bits, size in clusters:
        parts.append(np.tile(np.arange(first, first + size), bits))
        first += size
    return np.concatenate(parts)


def signs(binary: Array, hidden: int) -> NDArray[np.float64]:
    """Unpack the bits of ``weights_binary`` [p, hidden / 32] as -1 and +1 [p, hidden]."""
    return np.asarray(learned_levels.unpack(binary, hidden) * 2.0 - 1.0, np.float64)


def decoded(scales: Array, binary: Array, clusters: Array, hidden: int) -> NDArray[np.float64]:
    """Decode the weight matrix [rows, hidden] behind the constants of the operator.

    Raises ShapeError when the clusters do not fit the planes.
    """
    groups = clusters_of(clusters, len(binary))
    weights = np.zeros((sum(c.size for c in groups), hidden))
    np.add.at(weights, matrix_rows(groups), scales[:, None] * signs(binary, hidden))
    return weights
