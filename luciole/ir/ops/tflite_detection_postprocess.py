"""TFLite_Detection_PostProcess: the end of an object detector, a CUSTOM operator of TFLite."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, operand
from luciole.ir.op import Op
from luciole.ir.ops.non_max_suppression import CORNERS
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class TFLiteDetectionPostProcess(
    Op, code=BuiltinOperator.CUSTOM, custom_code="TFLite_Detection_PostProcess"
):
    """Boxes from a network's encodings of each anchor, the best of overlapping ones.

    ``box_encodings`` [1, n, 4 or more] are center y, center x, height and width, relative to the
    ``anchors`` [n, 4]: y / y_scale height + y, e^(h / h_scale) height, x and width alike.
    ``class_predictions`` [1, n, classes] are scores, with one class more in front if there is a
    background. A box of a score below ``nms_score_threshold`` does not count, nor does one that has
    more than ``nms_iou_threshold`` of the union in common with a better one: of the same class with
    ``use_regular_nms``, else of any, and then a box comes with its ``max_classes_per_detection``
    best classes. Results have ``max_detections`` boxes, of which ``num_detections`` count.
    """

    box_encodings: Value = operand()
    class_predictions: Value = operand()
    anchors: Value = operand()

    max_detections: int = attr(default=0, dump="max_detections")
    max_classes_per_detection: int = attr(default=0, dump="max_classes_per_detection")
    detections_per_class: int = attr(default=100, dump="detections_per_class")
    nms_score_threshold: float = attr(default=0.0, dump="nms_score_threshold")
    nms_iou_threshold: float = attr(default=0.0, dump="nms_iou_threshold")
    num_classes: int = attr(default=0, dump="num_classes")
    y_scale: float = attr(default=0.0, dump="y_scale")
    x_scale: float = attr(default=0.0, dump="x_scale")
    h_scale: float = attr(default=0.0, dump="h_scale")
    w_scale: float = attr(default=0.0, dump="w_scale")
    use_regular_nms: bool = attr(default=False, dump="use_regular_nms")

    result_names = (
        "detection_boxes",
        "detection_classes",
        "detection_scores",
        "num_detections",
    )

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32

    def infer_shape(self, /) -> tuple[Shape, ...]:
        one, count, numbers = rank(self.box_encodings, "box_encodings", 3)
        batch, boxes, classes = rank(self.class_predictions, "class_predictions", 3)
        anchors, corners = rank(self.anchors, "anchors", 2)
        agree("batch", one, 1, "box_encodings", "what is possible")
        agree("batch", batch, 1, "class_predictions", "what is possible")
        agree("boxes", boxes, count, "class_predictions", "box_encodings")
        agree("boxes", anchors, count, "anchors", "box_encodings")
        agree("numbers of an anchor", corners, CORNERS, "anchors", "a box")
        if numbers is not None and numbers < CORNERS:
            raise ShapeError(f"box_encodings has {numbers} numbers for a box, 4 are needed")
        if classes is not None:
            background(self, classes)
        for fault in self.verify():
            raise ShapeError(fault)
        most = self.max_detections * self.max_classes_per_detection
        return (1, most, CORNERS), (1, most), (1, most), (1,)

    def verify(self, /) -> Iterator[str]:
        if self.max_detections < 0:
            yield f"max_detections is {self.max_detections}, it must be at least 0"
        least_one = {
            "max_classes_per_detection": self.max_classes_per_detection,
            "num_classes": self.num_classes,
        }
        for name, number in least_one.items():
            if number < 1:
                yield f"{name} is {number}, it must be at least 1"


def background(op: TFLiteDetectionPostProcess, classes: int) -> int:
    """Count the classes in front that are no object: 0 or 1. Raises ShapeError for another
    number.
    """
    extra = classes - op.num_classes
    if extra not in (0, 1):
        raise ShapeError(
            f"class_predictions has {classes} classes, {op.num_classes} or {op.num_classes + 1} fit"
        )
    return extra
