"""The forms of every element-wise operator beside each other, on numbers of every kind.

Operators, their attributes and their forms are those that are registered: an operator is
element-wise where it computes parts of its operands as it computes the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.exporters.onnx.rules import rules
from luciole.ir import Array, LucioleError, Model, Op, TensorType, UnsupportedError
from luciole.ir.fields import REQUIRED
from luciole.ir.ops.activations import APPLIED, Elu, HardSwish, Logistic
from luciole.ir.ops.add_n import AddN
from luciole.ir.ops.elementwise_binary import Arithmetic, Maximum, Minimum
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.kernels.core import registry
from luciole.kernels.portable.calls import portable_kinds
from luciole.lquantizer.training import tf_table
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding
from tests.compiler_support import built, needs_compiler, program_of
from tests.native_support import built as compiled_step
from tests.native_support import run_compiled, run_steps
from tests.support import litert, one_op, run_reference

LIMITS = np.finfo(np.float32)
SPECIAL = (
    *(np.nan, np.inf, 0.0, 1.4e-45, 1e-40, float(LIMITS.tiny), float(LIMITS.max)),
    *(1e-20, 0.3, 1, 2.5, 6, 7, 40, 1e20),
)
"""Not a number, infinity, zero, denormals, the smallest and the largest normal number, and ordinary
ones.
"""

F32 = (TensorType.FLOAT32,)

WITHIN = 1e-5
"""How far two forms of a function may be apart, of the result."""

DENORMALS_WITHIN = 2e-43
"""Denormals have fewer digits than that."""

ALSO_WITHIN = {Gelu: 3e-7, Logistic: 1e-7, Elu: 1e-7}
"""What they may be apart besides: where nearly nothing is left of a number, some forms say 0."""


@dataclass(frozen=True, eq=False)
class Case:
    """An operator class with attributes, and the element types of its operands."""

    cls: type[Op]
    types: tuple[type, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [getattr(value, "name", str(value)) for value in self.attributes.values()]
        return " ".join([self.cls.__name__, *said])

    @property
    def operands(self) -> list[Array]:
        """Every pair of special numbers of both signs, one record."""
        numbers = np.array([*SPECIAL, *(-x for x in SPECIAL)], np.float32)
        each = [numbers if kind == np.float32 else np.array([False, True]) for kind in self.types]
        return [grid.reshape(1, -1) for grid in np.meshgrid(*each)]

    @property
    def model(self) -> Model:
        """The operator alone, all operands given."""
        return one_op(self.cls, self.operands, **self.attributes)

    @property
    def is_element_wise(self) -> bool:
        """Whether every third of some numbers, backwards, gives every third result."""
        rng = np.random.default_rng(0)
        whole: list[Array] = [
            rng.uniform(0.5, 1.5, (1, 24)).round(3).astype(kind) for kind in self.types
        ]
        try:
            results = self.computed(whole)
            parts = self.computed([array[:, ::-3] for array in whole])
        except (LucioleError, TypeError):
            return False
        alone = len(results) == 1 and results[0].shape == whole[0].shape
        return alone and np.array_equal(results[0][:, ::-3], parts[0])

    def computed(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """What NumPy computes."""
        return run_reference(self.cls, operands, **self.attributes)


def _types(cls: type[Op]) -> tuple[type, ...] | None:
    """The element types of an operator's operands where its data is float; two for any number of
    operands, None where there are others.
    """
    kinds: list[type] = []
    for slot in cls.operand_fields():
        if slot.dtypes and TensorType.BOOL not in slot.dtypes:
            return None
        if slot.kind == "operands" or slot.default is REQUIRED:
            kind = bool if slot.dtypes else np.float32
            kinds += [kind] * (2 if slot.kind == "operands" else 1)
    return tuple(kinds)


def _choices(cls: type[Op]) -> Iterator[dict[str, Any]]:
    """Every choice of fused activations and of flags."""
    each: list[list[tuple[str, Any]]] = []
    for one in cls.attr_fields():
        if isinstance(one.default, ActivationFunctionType):
            each.append([(one.name, activation) for activation in APPLIED])
        elif isinstance(one.default, bool) and one.name != "pot_scale_int16":
            each.append([(one.name, flag) for flag in (False, True)])
    return (dict(choice) for choice in product(*each))


def _cases() -> Iterator[Case]:
    for kind, cls, signature in registry.registered():
        is_in_files = getattr(cls, "code", None) not in (None, BuiltinOperator.CUSTOM)
        if kind == "reference" and signature == F32 and is_in_files:
            types = _types(cls)
            cases = (Case(cls, types, choice) for choice in _choices(cls)) if types else ()
            yield from (case for case in cases if case.is_element_wise)


CASES = list(_cases())


def each_of(classes: Collection[type[Op]]) -> pytest.MarkDecorator:
    """Let a test have the cases of those classes that have a form."""
    return pytest.mark.parametrize("case", [c for c in CASES if c.cls in classes], ids=str)


COMPILED = {cls for kind, cls, types in registry.registered() if kind == "native" and types == F32}
IN_C = {cls for cls, types in portable_kinds() if types == F32}


def agree(case: Case, result: Array, wanted: Array, ignored: Array | None = None) -> None:
    """Check a form's result: NaN where NaN is expected, the same infinities, numbers within
    tolerance; ``ignored`` marks what the form is known to do in another way.
    """
    found = np.asarray(result).reshape(wanted.shape)
    if ignored is not None:
        found = np.where(ignored, wanted, found)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    within = ALSO_WITHIN.get(case.cls, DENORMALS_WITHIN)
    np.testing.assert_allclose(found, wanted, rtol=WITHIN, atol=within)


def signs_agree(case: Case, result: Array, wanted: Array) -> None:
    """Check the signs of zeros."""
    if wanted.dtype.kind == "f" and case.cls not in ALSO_WITHIN:
        zeros = wanted == 0
        found = np.asarray(result).reshape(wanted.shape)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


def test_element_wise_operators_are_found() -> None:
    assert len({case.cls for case in CASES}) >= 45
    assert {case.cls for case in CASES} >= {Arithmetic.__subclasses__()[0], AddN, Gelu}


@each_of(COMPILED)
def test_compiled(case: Case) -> None:
    operands = case.operands
    step, context = compiled_step(case.model.graph.ops[0], operands)
    if step is None:
        pytest.skip("its compiled form is for other types")
    run_steps(step, [step.record])
    wanted = case.computed(operands)[0]
    agree(case, context.results[0], wanted)
    signs_agree(case, context.results[0], wanted)


@needs_compiler
@each_of(IN_C)
def test_in_c(case: Case, tmp_path: Path) -> None:
    model, operands = case.model, case.operands
    try:
        program = program_of(model)
    except UnsupportedError:
        pytest.skip("it has no C form with this activation")
    names = [value.name for value in model.graph.inputs]
    (result,) = built(program, tmp_path).run(dict(zip(names, operands, strict=True)))
    wanted = case.computed(operands)[0]
    agree(case, result, wanted)
    signs_agree(case, result, wanted)


@each_of(rules())
def test_in_onnx(case: Case) -> None:
    """Signs of zeros are left out: onnxruntime's Where adds what it takes to 0."""
    from tests.exporters.onnx_support import by_onnxruntime

    try:
        content = to_bytes(case.model, "onnx")
    except LucioleError:
        pytest.skip("ONNX cannot say it")
    operands = case.operands
    (result,) = by_onnxruntime(content, operands)
    wanted = case.computed(operands)[0]
    overflows = operands[0] == LIMITS.max  # times 6 before it is divided by 6, but in onnxruntime
    agree(case, result, wanted, overflows if case.cls is HardSwish else None)


@each_of(tf_table.registered())
def test_in_tensorflow(case: Case) -> None:
    """TensorFlow takes denormals for 0, and does not keep the signs of zeros."""
    pytest.importorskip("tensorflow")
    model, operands = case.model, case.operands
    contents = TensorGraph(model.graph)(operands)
    wanted = case.computed(operands)[0]
    tiny = [np.asarray((abs(x) < LIMITS.tiny) & (x != 0)) for x in (*operands, wanted)]
    agree(case, contents[model.graph.outputs[0]], wanted, np.logical_or.reduce(tiny))


@each_of({case.cls for case in CASES})
def test_in_litert(case: Case) -> None:
    """LiteRT's reference kernels cut arithmetic off at the largest float, and ignore TANH."""
    pytest.importorskip("ai_edge_litert")
    if case.attributes.get("activation") == ActivationFunctionType.TANH:
        pytest.skip("LiteRT does not apply TANH")
    operands = case.operands
    try:
        (result,) = litert(to_bytes(case.model, "tflite"), operands)
    except (ValueError, RuntimeError):
        pytest.skip("LiteRT does not run it")
    wanted = case.computed(operands)[0]
    if issubclass(case.cls, (Arithmetic, AddN)):
        wanted = np.clip(wanted, -LIMITS.max, LIMITS.max)
    agree(case, result, wanted)
    signs_agree(case, result, wanted)


NAN = np.nan
LINES = np.array(
    [[NAN, 1, 2], [1, NAN, 2], [1, 2, NAN], [NAN] * 3, [-np.inf] * 3, [-0.0, 0, 0], [3, -1, 2]],
    np.float32,
)
LARGEST = np.array([2, 2, 2, LIMITS.min, LIMITS.min, 0, 3], np.float32)


@needs_compiler
def test_the_largest_of_a_window_skips_nan_in_every_form(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    from tests.exporters.onnx_support import by_onnxruntime

    images = LINES.reshape(1, *LINES.shape, 1)
    window: dict[str, Any] = {"filter_height": 1, "filter_width": 3, "stride_h": 1, "stride_w": 3}
    model = one_op(MaxPool2D, [images], padding=Padding.VALID, **window)
    forms = {
        "NumPy": run_reference(MaxPool2D, [images], padding=Padding.VALID, **window)[0],
        "compiled": run_compiled(MaxPool2D, [images], padding=Padding.VALID, **window)[0],
        "C": built(program_of(model), tmp_path).run({"x0": images})[0],
        "ONNX": by_onnxruntime(to_bytes(model, "onnx"), [images])[0],
        "TensorFlow": TensorGraph(model.graph)([images])[model.graph.outputs[0]],
        "LiteRT": litert(to_bytes(model, "tflite"), [images])[0],
    }
    for form, result in forms.items():
        np.testing.assert_array_equal(np.ravel(result), LARGEST, form)


@pytest.mark.parametrize("cls", [Maximum, Minimum])
def test_extremes_come_back_from_onnx(cls: type[Op]) -> None:
    pytest.importorskip("onnx")
    x = np.ones((1, 3), np.float32)
    from tests.exporters.onnx_support import back

    again = back(to_bytes(one_op(cls, [x, x]), "onnx"))
    assert [type(op) for op in again.graph.ops] == [cls]
