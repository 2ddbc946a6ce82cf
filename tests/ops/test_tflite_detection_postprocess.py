"""TFLite_Detection_PostProcess: numbers against LiteRT, and options as files have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from luciole.exporters import to_bytes
from luciole.importers import import_model
from luciole.ir import Array, Graph, LucioleError, Model, ShapeError, UnknownOp, Value
from luciole.ir.ops.tflite_detection_postprocess import TFLiteDetectionPostProcess
from luciole.schema.enums import BuiltinOperator
from luciole.schema.reader import read
from tests.native_support import declines, run_compiled
from tests.ops.detection_support import BASE, INTEGERS, operands
from tests.support import Affine, one_op, run_litert, run_reference


def check(given: list[Array], affine: list[Affine | None] | None = None, **options: Any) -> int:
    """The number of detections. LiteRT leaves what no detection fills as it was: not compared."""
    attributes = BASE | options
    ours, theirs = (
        run(TFLiteDetectionPostProcess, given, (2,), affine=affine or [], **attributes)
        for run in (run_reference, run_litert)
    )
    count, step = int(ours[3][0]), attributes["max_classes_per_detection"]
    filled = min(step, attributes["num_classes"])
    if attributes.get("use_regular_nms"):
        step = filled = 1
    compiled = run_compiled(
        TFLiteDetectionPostProcess, given, (2,), affine=affine or [], **attributes
    )
    for a, b in zip(ours, compiled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert theirs[3].tolist() == [count]
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        assert a.shape == b.shape
        for i in range(count):
            row = np.s_[0, i * step : i * step + filled]
            np.testing.assert_allclose(a[row], b[row], rtol=1e-6, atol=1e-6)
        assert not a[0, count * step :].any()
    return count


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("classes", [5, 6])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_classes_per_detection": 3},
        {"max_classes_per_detection": 8},
        {"max_detections": 1},
        {"max_detections": 60, "nms_score_threshold": 0.8},
        {"nms_iou_threshold": 0.1, "nms_score_threshold": 0.0, "max_detections": 60},
        {"detections_per_class": 2, "max_detections": 60},
    ],
)
def test_detections_are_those_of_litert(
    regular: bool, classes: int, options: dict[str, Any]
) -> None:
    assert check(operands(classes=classes), use_regular_nms=regular, **options)


@pytest.mark.parametrize("regular", [False, True])
def test_detections_of_integers_are_those_of_litert(regular: bool) -> None:
    rng = np.random.default_rng(5)
    shapes = ((1, 30, 4), (1, 30, 6), (30, 4))
    given = [rng.integers(30, 256, s).astype(np.uint8) for s in shapes]
    assert check(given, [*INTEGERS], use_regular_nms=regular)
    if regular:
        mixed, affine = [given[0], operands(30)[1], given[2]], [INTEGERS[0], None, INTEGERS[2]]
    else:
        mixed, affine = [operands(30)[0], given[1], operands(30)[2]], [None, INTEGERS[1], None]
    assert check(mixed, affine, use_regular_nms=regular)


def test_a_box_may_have_more_numbers_and_no_score_be_enough() -> None:
    assert check(operands(numbers=7))
    assert check(operands(), nms_score_threshold=2.0) == 0
    assert check(operands(), max_detections=0) == 0


def test_many_boxes_of_few_scores_are_those_of_litert() -> None:
    """Equal scores are taken from the first on."""
    given = operands(400, 8)
    given[1] = np.round(given[1], 1)
    for regular in (False, True):
        assert check(given, use_regular_nms=regular, max_detections=30, num_classes=8) == 30


def test_scores_that_are_no_numbers_are_not_taken() -> None:
    given = operands()
    given[1][0, :20, :] = np.nan
    given[1][0, 20:30, 2] = np.nan
    assert check(given)
    assert check(given, use_regular_nms=True)


def test_anchors_that_may_make_wrong_boxes_are_left_to_the_reference() -> None:
    cls, given = TFLiteDetectionPostProcess, operands()
    assert declines(cls, given, (), **BASE)
    assert declines(cls, given, (2,), **BASE | {"nms_iou_threshold": 0.0})
    no_class = {"use_regular_nms": True, "detections_per_class": 0}
    assert declines(cls, given, (2,), **BASE | no_class)
    given[2][7, 3] = -0.5
    assert declines(cls, given, (2,), **BASE)


# ------------------------------------------------------------------------------------------ options
def model_with(options: Any) -> Model:
    """A file whose custom options are those, read again."""
    model = one_op(TFLiteDetectionPostProcess, operands(), (2,), **BASE)
    graph, op = model.graph, model.graph.ops[0]
    raw = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options))
    unknown = UnknownOp(
        BuiltinOperator.CUSTOM,
        op.operands,
        custom_code="TFLite_Detection_PostProcess",
        custom_options=np.frombuffer(raw, np.uint8),
    )
    results = [graph.add_value(Value(v.name, v.dtype, v.shape)) for v in op.results]
    graph.outputs = results
    graph.remove(op)
    graph.append(unknown, results=results)
    return import_model(to_bytes(model, "tflite"))[0]


def stored(model: Model) -> bytes:
    root, _ = read(to_bytes(model, "tflite"))
    options = root.subgraphs[0].operators[0].custom_options  # type: ignore[index]  # there is one
    assert options is not None
    return options.tobytes()


def test_options_are_read_and_left_out_ones_are_defaults() -> None:
    op = model_with(BASE | {"y_scale": 7}).graph.ops[0]
    assert isinstance(op, TFLiteDetectionPostProcess)
    assert op.attributes() == BASE | {
        "y_scale": 7.0,
        "detections_per_class": 100,
        "use_regular_nms": False,
    }
    assert op.kind == "CUSTOM(TFLite_Detection_PostProcess)"


def test_bytes_of_options_stay_while_attributes_do() -> None:
    """The bytes of a small map in 8 bytes per entry, which nobody writes today."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in (BASE | {"_output_quantized": True}).items():
            builder.Key(name)
            builder.Float(value, 8) if isinstance(value, float) else builder.Int(int(value), 8)
    raw = bytes(builder.Finish())
    model = model_with(raw)
    assert stored(model) == raw
    op = model.graph.ops[0]
    assert isinstance(op, TFLiteDetectionPostProcess)
    assert op.clone(op.operands).file_options == op.file_options
    op.max_detections, op.use_regular_nms = 20, True
    assert flexbuffers.Loads(stored(model)) == BASE | {
        "_output_quantized": 1,
        "max_detections": 20,
        "use_regular_nms": True,
        "detections_per_class": 100,
    }
    op.max_detections, op.use_regular_nms = BASE["max_detections"], False
    assert stored(model) == raw


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (b"\x00\x01", "custom options are no FlexBuffer"),
        ([1, 2], "custom options are no FlexBuffer map"),
        (BASE | {"num_classes": "five"}, "num_classes is 'five', expected a number"),
    ],
)
def test_options_of_another_kind_are_kept_but_not_understood(options: Any, reason: str) -> None:
    model = model_with(options)
    op = model.graph.ops[0]
    assert isinstance(op, UnknownOp)
    assert reason in (op.reason or "")
    raw = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options))
    assert stored(model) == raw


# ----------------------------------------------------------------------------------------- refusals
def test_detection_postprocess_keeps_unknown_dimensions() -> None:
    graph = Graph()
    shapes = ((1, None, 4), (None, None, None), (None, 4))
    values = [graph.add_input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    op = TFLiteDetectionPostProcess.from_operands(values, BASE)
    assert op.infer_shape() == ((1, 10, 4), (1, 10), (1, 10), (1,))


@pytest.mark.parametrize(
    ("slot", "shape", "message"),
    [
        (0, (1, 50, 3), "box_encodings has 3 numbers for a box, 4 are needed"),
        (0, (2, 50, 4), "batch: box_encodings has 2, what is possible has 1"),
        (1, (1, 49, 6), "boxes: class_predictions has 49, box_encodings has 50"),
        (1, (1, 50, 7), "class_predictions has 7 classes, 5 or 6 fit"),
        (1, (50, 6), r"class_predictions has shape \[50,6\], rank 3 is needed"),
        (2, (49, 4), "boxes: anchors has 49, box_encodings has 50"),
        (2, (50, 5), "numbers of an anchor: anchors has 5, a box has 4"),
    ],
)
def test_detection_postprocess_refuses_operands_that_do_not_fit(
    slot: int, shape: tuple[int, ...], message: str
) -> None:
    given = operands()
    given[slot] = np.ones(shape, np.float32)
    with pytest.raises(ShapeError, match=message):
        one_op(TFLiteDetectionPostProcess, given, (2,), **BASE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_detections": -1}, "max_detections is -1, it must be at least 0"),
        ({"max_classes_per_detection": 0}, "max_classes_per_detection is 0, it must be at least 1"),
        ({"num_classes": 0}, "class_predictions has 6 classes, 0 or 1 fit"),
    ],
)
def test_detection_postprocess_refuses_options_without_meaning(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(TFLiteDetectionPostProcess, operands(), (2,), **BASE | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"detections_per_class": 0}, "detections_per_class is 0, 1 is the least"),
        ({"nms_iou_threshold": 0.0}, "nms_iou_threshold is 0.0, it must be above 0 and at most 1"),
        ({"nms_iou_threshold": float("nan")}, "nms_iou_threshold is nan, it must be above 0"),
    ],
)
def test_detection_postprocess_refuses_to_compare_by_such_options(
    options: dict[str, Any], message: str
) -> None:
    attributes = BASE | {"use_regular_nms": True} | options
    with pytest.raises(LucioleError, match=message):
        run_reference(TFLiteDetectionPostProcess, operands(), (2,), **attributes)


def test_detection_postprocess_refuses_boxes_of_negative_size() -> None:
    given = operands()
    given[2][7, 3] = -0.5
    with pytest.raises(LucioleError, match="box 7 has a height or width below 0"):
        run_reference(TFLiteDetectionPostProcess, given, (2,), **BASE)


def test_detection_postprocess_refuses_integers_without_a_scale() -> None:
    given = [a.astype(np.uint8) for a in operands()]
    with pytest.raises(LucioleError, match="class_predictions has no scale"):
        run_reference(TFLiteDetectionPostProcess, given, (2,), **BASE)
