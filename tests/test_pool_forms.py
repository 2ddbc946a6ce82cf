"""The forms of pools beside each other, on windows with NaN and infinities.

LiteRT's own kernels, reference and optimized ones, skip NaN in MAX_POOL_2D and keep it in
AVERAGE_POOL_2D, and cut infinities off at the largest float; XNNPACK, which users get, has NaN
where that is no window's first element, and cuts it off by an activation's limits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D, Pool2D
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.schema.enums import ActivationFunctionType as Activation
from luciole.schema.enums import Padding
from tests.compiler_support import built, needs_compiler, program_of
from tests.native_support import run_compiled
from tests.support import litert, one_op, run_reference

NAN, INF = np.nan, np.inf
LEAST, MOST = float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)
LINES = {
    (NAN, 1, 2): (2, NAN),
    (1, NAN, 2): (2, NAN),
    (1, 2, NAN): (2, NAN),
    (NAN, NAN, NAN): (LEAST, NAN),
    (-INF, -INF, -INF): (LEAST, -INF),
    (INF, 1, -2): (INF, INF),
    (INF, -INF, 1): (INF, NAN),
    (INF, NAN, 1): (INF, NAN),
    (-INF, -5, 2): (2, -INF),
    (-0.0, 0, 0): (0, 0),
    (3, -1, 1): (3, 1),
}
"""Windows, the largest of each, and its mean."""


def forms(cls: type[Pool2D], images: Array, folder: Path, **attributes: Any) -> dict[str, Array]:
    """Compute a pool in every form."""
    from tests.exporters.onnx_support import by_onnxruntime

    model = one_op(cls, [images], **attributes)
    content = to_bytes(model, "tflite")
    return {
        "NumPy": run_reference(cls, [images], **attributes)[0],
        "compiled": run_compiled(cls, [images], **attributes)[0],
        "C": built(program_of(model), folder).run({"x0": images})[0],
        "ONNX": by_onnxruntime(to_bytes(model, "onnx"), [images])[0],
        "TensorFlow": np.asarray(TensorGraph(model.graph)([images])[model.graph.outputs[0]]),
        "LiteRT's reference": litert(content, [images])[0],
        "LiteRT": litert(content, [images], "BUILTIN_WITHOUT_DEFAULT_DELEGATES")[0],
    }


@needs_compiler
@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU, Activation.RELU6])
@pytest.mark.parametrize("cls", [MaxPool2D, AveragePool2D])
def test_pools_of_nan_and_infinities_are_one_in_every_form(
    cls: type[Pool2D], activation: Activation, tmp_path: Path
) -> None:
    pytest.importorskip("tensorflow")
    lines = np.array(list(LINES), np.float32)
    images = np.repeat(lines.reshape(1, *lines.shape, 1), 17, 3)  # all lanes of vectors, and one
    window = {"filter_height": 1, "filter_width": 3, "stride_h": 1, "stride_w": 3}
    wanted = np.array([pair[cls is AveragePool2D] for pair in LINES.values()], np.float32)
    limits = {Activation.RELU: (0, INF), Activation.RELU6: (0, 6)}.get(activation, (-INF, INF))
    wanted = np.clip(wanted, *limits)
    found = forms(cls, images, tmp_path, padding=Padding.VALID, activation=activation, **window)
    for form, result in found.items():
        cut = np.clip(wanted, LEAST, MOST) if form.startswith("LiteRT") else wanted
        for channel in range(images.shape[3]):
            np.testing.assert_array_equal(np.ravel(result[..., channel]), cut, form)
