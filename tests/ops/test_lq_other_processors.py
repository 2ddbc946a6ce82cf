"""Layers of learned levels on other x86-64 processors than the one at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from luciole.ir import Array
from luciole.kernels.layers.levels import even_layer
from luciole.schema.enums import ActivationFunctionType as Act
from tests import lq_conv_support
from tests.lq_conv_support import random_conv
from tests.lq_support import computed_on, random_input, random_layer, with_offsets
from tests.ops.test_lq_even import even_conv, even_dense


def counted() -> Array:
    """Results of layers of few and of many input bits, on one row for each way of counting, and of
    a convolution.
    """
    conv = lq_conv_support.with_offsets(random_conv((3, 3), 37, 18, 3, 3))
    results = [conv.native(random_input((1, 4, 6, 37))).ravel()]
    for outputs, kx, kw in ((300, 2, 2), (10, 6, 1)):
        layer = replace(with_offsets(random_layer(300, outputs, kx, kw)), activation=Act.TANH)
        x = random_input((2, 300))
        x[0, :250] = -9
        results.append(layer.native(x).ravel())
    return np.concatenate(results)


def multiplied() -> Array:
    """Results of a dense layer and of a convolution as products of bytes."""
    dense, conv = even_dense(300, 40, 3, 4), even_conv((3, 3), 20, 18, (4, 3))
    assert even_layer.pays(4 * 3, 20)
    parts = dense.native(random_input((18, 300))), conv.native(random_input((1, 9, 8, 20)))
    return np.concatenate([part.ravel() for part in parts])


PROGRAM = """
import sys
import numpy as np
from luciole.kernels.jit.vector import bit_lookups, bitsliced
from tests.ops.test_lq_other_processors import counted, multiplied
np.save(sys.argv[1], np.concatenate([counted(), multiplied()]))
print(bitsliced.WIDE, bit_lookups.LOOKS_UP)
"""


@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3"])
def test_other_processors_give_the_same(processor: str, tmp_path: Path) -> None:
    """Without AVX-512 rows have 256 bits, bits are looked up with AVX2 and counted in bytes without
    it, and SSE2 has no fused multiply-add: rounding differs. Sums of products of bytes are exact.
    """
    y, printed = computed_on(processor, PROGRAM, tmp_path)
    assert printed.split() == ["False", str(processor != "x86-64")]
    by_counting = counted()
    np.testing.assert_allclose(y[: len(by_counting)], by_counting, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(y[len(by_counting) :], multiplied())
