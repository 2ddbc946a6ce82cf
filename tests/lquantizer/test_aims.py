"""Aims of layers: the same however few of them are kept at once, from rows that are bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from luciole.ir import Graph
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.rows import Sampling
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.network.aims import Aims
from luciole.lquantizer.network.preparation import prepare
from tests.lquantizer.networks import residual
from tests.networks import random


def test_aims_are_the_same_when_those_of_one_layer_are_kept_at_once() -> None:
    """Targets, and the branches that are added to them."""
    model = residual()
    (image,) = model.graph.inputs
    records = {image.name: random(3, 12, *image.dims[1:])}
    prepared = prepare(model, records, Config(Choice(4, 4), all_layers=True), OutputAware(0), False)
    together = prepared.network.aims(prepared.jobs)
    assert isinstance(together, Aims)
    front = Front(together.front.model, records, together.front.batch)
    apart = replace(together, front=front, most=1)
    ops = list(together)
    assert len(ops) > 2
    assert any(together[op].other is not None for op in ops)
    for op in (*ops, ops[0]):  # the first again, which was forgotten
        assert apart[op].own.any()
        np.testing.assert_array_equal(apart[op].own, together[op].own)
        if together[op].other is not None:
            np.testing.assert_array_equal(apart[op].other, together[op].other)


def test_rows_have_a_bounded_number_of_elements() -> None:
    """30,000 rows, and fewer where all groups of them have more than 16 million elements."""
    graph = Graph()
    x = graph.add_input("x", (None, 56, 56, 960))
    taps = graph.add_constant("taps", np.zeros((1, 3, 3, 960), np.float32))
    few = graph.add_input("few", (None, 56, 56, 64))
    filter = graph.add_constant("filter", np.zeros((8, 1, 1, 64), np.float32))
    depthwise = DepthwiseConv2D(x, taps, stride_w=1, stride_h=1, depth_multiplier=1)
    dense = Conv2D(few, filter, stride_w=1, stride_h=1)
    assert Sampling.of(100, 0, dense).positions == 300
    assert Sampling.of(100, 0, depthwise).positions == 16_000_000 // (9 * 960) // 100
    assert Sampling.of(10**6, 0, depthwise).positions == 1
