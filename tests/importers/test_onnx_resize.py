"""ONNX's Resize of images whose extents are open, by any factor and to computed sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers.onnx.model import from_proto
from luciole.ir import LucioleError, UnsupportedError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper, FLOAT = onnx.helper, 1
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("floor", "round_prefer_floor", "round_prefer_ceil", "ceil")
MODES = [("linear", c, "floor") for c in COORDINATES]
MODES += [("nearest", *pair) for pair in zip(COORDINATES, ROUNDINGS, strict=True)]
EXTENTS = ((5, 7, 8, 9), (6, 4, 3, 2), (3, 3, 1, 1))


def network(target: str, mode: str, coordinates: str, rounding: str, **choices: Any) -> Any:
    """A network that gives x another size: by factors, to a constant size, or to that of o."""
    x, o = (
        helper.make_tensor_value_info(name, FLOAT, ["n", 3, *sides])
        for name, sides in (("x", ["h", "w"]), ("o", ["h2", "w2"]))
    )
    choices |= {"mode": mode, "coordinate_transformation_mode": coordinates}
    choices |= {"nearest_mode": rounding} if mode == "nearest" else {}
    constants = {"s": np.array([1, 1, 1.5, 0.7], np.float32), "z": np.array([9, 4], np.int64)}
    operands, nodes = ["x", "", "s"], []
    if target == "size":
        operands, choices["axes"] = ["x", "", "", "z"], [2, 3]
    if target == "image":
        nodes, operands = [helper.make_node("Shape", ["o"], ["e"])], ["x", "", "", "e"]
    nodes.append(helper.make_node("Resize", operands, ["y"], **choices))
    y = helper.make_tensor_value_info("y", FLOAT, None)
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", [x, o] if target == "image" else [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("target", ["factors", "size", "image"])
@pytest.mark.parametrize(("mode", "coordinates", "rounding"), MODES)
def test_open_images_get_the_pixels_of_onnxruntime(
    mode: str, coordinates: str, rounding: str, target: str
) -> None:
    model = network(target, mode, coordinates, rounding)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    interpreter = luciole.Interpreter(from_proto(model))
    for height, width, *others in EXTENTS:
        x = np.random.default_rng(height).standard_normal((2, 3, height, width))
        feeds = {"x": x.astype(np.float32)}
        feeds |= {"o": np.zeros((2, 3, *others), np.float32)} if target == "image" else {}
        (expected,) = session.run(None, feeds)
        # RESIZE_BILINEAR multiplies by a quotient where onnxruntime divides
        most = 0 if mode == "nearest" else 3e-6
        np.testing.assert_allclose(interpreter.run(feeds)["y"], expected, rtol=0, atol=most)


def test_a_size_of_another_batch_is_refused_when_it_runs() -> None:
    interpreter = luciole.Interpreter(from_proto(network("image", "linear", "half_pixel", "floor")))
    feeds = {"x": np.ones((2, 3, 4, 4), np.float32), "o": np.ones((1, 3, 8, 8), np.float32)}
    with pytest.raises(LucioleError, match="does not reshape to"):
        interpreter.run(feeds)


@pytest.mark.parametrize(
    ("mode", "choices", "sentence"),
    [
        ("cubic", {}, "its mode is cubic"),
        ("linear", {"antialias": 1}, "is not known"),
        ("linear", {"coordinate_transformation_mode": "half_pixel_symmetric"}, "its coordinates"),
    ],
)
def test_open_images_refuse_weights_of_extents(
    mode: str, choices: dict[str, Any], sentence: str
) -> None:
    coordinates = choices.pop("coordinate_transformation_mode", "half_pixel")
    with pytest.raises(UnsupportedError, match=sentence):
        from_proto(network("factors", mode, coordinates, "floor", **choices))
