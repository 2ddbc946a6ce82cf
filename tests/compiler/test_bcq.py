"""BCQ_FULLY_CONNECTED in C, whatever the clusters and the number of samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from luciole.compiler.self_test import random_records, self_test
from luciole.schema.enums import ActivationFunctionType as Act
from tests.compiler_support import COMPILERS, built, needs_compiler, program_of, run_sound
from tests.ops.bcq_support import Layer, magnitude, oracle, random_input, random_layer

pytestmark = needs_compiler
CLUSTERS = [[(1, 1)], [(3, 7)], [(2, 3), (1, 5), (4, 2)]]


def check(layer: Layer, batch: int, folder: Path) -> None:
    x = random_input(layer.hidden, batch)
    model = layer.model(x)
    (found,) = built(program_of(model), folder).run({model.graph.inputs[0].name: x})
    within = 1e-5 * magnitude(layer, x)
    np.testing.assert_allclose(found, oracle(layer, x), rtol=0, atol=within)


@pytest.mark.parametrize("clusters", CLUSTERS)
@pytest.mark.parametrize(("hidden", "batch"), [(32, 1), (96, 5)])
def test_any_size_gives_what_loops_give(
    hidden: int, batch: int, clusters: list[tuple[int, int]], tmp_path: Path
) -> None:
    check(random_layer(hidden, clusters), batch, tmp_path)


@pytest.mark.parametrize("activation", [Act.RELU6, Act.TANH])
def test_activations_come_after_the_bias(activation: Act, tmp_path: Path) -> None:
    layer = random_layer(64, [(2, 9)], bias=activation == Act.TANH)
    check(replace(layer, activation=activation), 2, tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_is_clean_and_passes_its_own_test(compiler: str, tmp_path: Path) -> None:
    program = program_of(random_layer(64, [(2, 3), (3, 4)]).model(random_input(64, 2)))
    test = self_test(program, built(program, tmp_path), random_records(program))
    assert run_sound(program, tmp_path, test, compiler) == 0
