"""The forms of every element-wise operator beside each other, on numbers of every kind.

Operators, their attributes and their forms are those that are registered: an operator is
element-wise where it computes parts of its operands as it computes the whole.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.compiler.headers import needed
from luciole.exporters import to_bytes
from luciole.exporters.onnx.rules import rules
from luciole.ir import Array, LucioleError, Model, Op, TensorType, UnsupportedError
from luciole.ir.fields import REQUIRED
from luciole.ir.ops import activations, elementwise_binary, elementwise_unary
from luciole.ir.ops.activations import APPLIED, Elu, HardSwish, Logistic
from luciole.ir.ops.add_n import AddN
from luciole.ir.ops.elementwise_binary import Arithmetic, Maximum, Minimum
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.kernels.core import registry
from luciole.kernels.elements import binary, unary
from luciole.kernels.formulas.elementwise import BINARY, NAMES, UNARY, Applied, Unary
from luciole.kernels.jit.processor import features
from luciole.kernels.portable import printed
from luciole.kernels.portable.calls import portable_kinds
from luciole.lquantizer.training import tf_table
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator
from tests.compiler_support import built, needs_compiler, program_of
from tests.native_support import built as compiled_step
from tests.native_support import run_steps
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


def test_what_has_a_formula_has_a_form_in_c() -> None:
    kinds = (elementwise_unary, elementwise_binary, activations)
    compiled = {cls for cls in COMPILED if cls.__module__ in {kind.__name__ for kind in kinds}}
    assert len(compiled) > 20
    assert compiled | {LeakyRelu, PRelu, Gelu} <= IN_C


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


FORMULAS = [f for f in NAMES if f not in printed.BY_HAND]
PARAMETERS = (0.5, 1.5)
"""a and b."""

TIMES_PLUS = "return x * y + z;"


def _called(function: int) -> str:
    """Return C that applies a formula, whatever its struct holds."""
    name = printed.loop_name(function)
    fields = printed.parameters_of(function) if function in UNARY else []
    numbers = dict(zip("ab", PARAMETERS, strict=True))
    settings = "".join(f"op.{field} = {numbers[field]}f; " for field in fields)
    return (
        f"void run_{name}(uint32_t count, const float *x, const float *y, float *z)\n"
        f"{{ struct {name} op = {{0}}; op.count = count; {settings}(void)y;\n"
        f"{name}(&op, x, {'y, ' if function in BINARY else ''}z); }}"
    )


def _library(folder: Path, fused: bool) -> ctypes.CDLL:
    """Compile all formulas as C: with one rounding of x y + z, as compiled kernels have, or two."""
    names = map(printed.loop_name, FORMULAS)
    text = "\n\n".join(piece.text for piece in needed(names))
    assert text.count(TIMES_PLUS) == 1
    if fused:
        text = text.replace(TIMES_PLUS, "return __builtin_fmaf(x, y, z);")
    source, library = folder / "formulas.c", folder / "formulas.so"
    includes = "#include <stdint.h>\n#include <string.h>\n"
    source.write_text("\n\n".join([includes, text, *map(_called, FORMULAS)]))
    flags = ["-std=c99", "-O1", "-shared", "-fPIC"]
    if not fused:
        flags += ["-U__SSE__", "-U__aarch64__"]  # roots bit by bit
    elif "fma" in features():
        flags.append("-mfma")
    subprocess.run(["cc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, ctypes.CDLL]:
    """Return libraries of all formulas, by whether they round once."""
    return {fused: _library(tmp_path_factory.mktemp("formulas"), fused) for fused in (False, True)}


def _in_c(library: ctypes.CDLL, function: int, x: Array, y: Array) -> Array:
    z = np.empty_like(x)
    run = getattr(library, f"run_{printed.loop_name(function)}")
    run(x.size, *(ctypes.c_void_p(array.ctypes.data) for array in (x, y, z)))
    return z


def _compiled(function: int, x: Array, y: Array) -> Array:
    z = np.empty_like(x)
    if function in BINARY:
        step = binary.step(function, x, y, z)
        assert step is not None
    else:
        step = unary.step(Applied(function, *PARAMETERS), x, z)
    run_steps(step, [step.record])
    return z


def _numbers() -> tuple[Array, Array]:
    """Return special numbers of both signs, each with each, and 4,000 others."""
    special = np.array([*SPECIAL, *(-x for x in SPECIAL)], np.float32)
    pairs = [grid.ravel() for grid in np.meshgrid(special, special)]
    rng = np.random.default_rng(0)
    x, y = (np.append(pair, rng.normal(0, 9, 4000)).astype(np.float32) for pair in pairs)
    return x, y


@needs_compiler
@pytest.mark.parametrize("function", FORMULAS, ids=printed.loop_name)
def test_every_formula_has_the_same_bits_compiled_and_in_c(
    function: int, libraries: dict[bool, ctypes.CDLL]
) -> None:
    x, y = _numbers()
    if function == Unary.SCALED_EXP:
        x = np.where(x > PARAMETERS[0], PARAMETERS[0], x).astype(np.float32)  # what it is for
    result, wanted = _in_c(libraries[True], function, x, y), _compiled(function, x, y)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(result.view(np.int32)[numbers], wanted.view(np.int32)[numbers])


TWO_ROUNDINGS: dict[int, tuple[Callable[[Array], Array], float]] = {
    Unary.EXP: (np.exp, 1.25),
    Unary.LOG: (np.log, 1),
    Unary.TANH: (np.tanh, 6),
    Unary.LOGISTIC: (lambda x: 1 / (1 + np.exp(-x)), 2.5),
    Unary.ELU: (lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x), 2),
    Unary.SQRT: (np.sqrt, 0.5),
}
"""Functions, and the largest error in units of the last place where x y + z is rounded twice."""


@needs_compiler
@pytest.mark.parametrize("function", TWO_ROUNDINGS, ids=printed.loop_name)
def test_functions_in_c_are_within_units_of_the_last_place_without_fused_arithmetic(
    function: int, libraries: dict[bool, ctypes.CDLL]
) -> None:
    each = np.arange(0, 2**32, 36007, dtype=np.int64).astype(np.uint32).view(np.float32)
    x = np.concatenate([each, np.linspace(-105, 89, 400_000, dtype=np.float32)])
    function_of, units = TWO_ROUNDINGS[function]
    with np.errstate(all="ignore"):
        exact = function_of(x.astype(np.float64))
        single = exact.astype(np.float32)
    result = _in_c(libraries[False], function, x, x)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    np.testing.assert_array_equal(result[np.isinf(single)], single[np.isinf(single)])
    finite = np.isfinite(single)
    unit = np.spacing(np.abs(single[finite])).astype(np.float64)
    assert np.max(np.abs(result[finite] - exact[finite]) / unit) <= units


OWN = """
import sys
import numpy as np
import luciole
from luciole.ir.fields import dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import unary
from luciole.schema.enums import BuiltinOperator, TensorType
from tests.support import one_op

class Tanh(Op, code=BuiltinOperator.CUSTOM, custom_code="Tanh"):
    x: Value = operand()
    infer_dtype = dtype_of("x")

    def infer_shape(self, /) -> Shape:
        return self.x.shape

reference(Tanh, TensorType.FLOAT32)(lambda op, x: x / (1 + abs(x)))
unary.define(Tanh, lambda x: x / (1.0 + abs(x)))
x = np.array([[np.nan, np.inf, -0.0, 1e-40, -2.5]], np.float32)
luciole.compile(one_op(Tanh, [x]), sys.argv[1], "net", library=True)
(result,) = luciole.Compiled(sys.argv[1] + "/net.so").run({"x0": x})
with np.errstate(all="ignore"):
    np.testing.assert_array_equal(result, x / (1 + abs(x)))
assert np.signbit(result[0, 2])
"""
"""A function under the name of another operator's."""


@needs_compiler
def test_a_formula_of_an_operator_from_elsewhere_has_a_form_in_c(tmp_path: Path) -> None:
    """In a process of its own: classes stay known."""
    subprocess.run([sys.executable, "-c", OWN, str(tmp_path)], check=True)


@pytest.mark.parametrize("cls", [Maximum, Minimum])
def test_extremes_come_back_from_onnx(cls: type[Op]) -> None:
    pytest.importorskip("onnx")
    x = np.ones((1, 3), np.float32)
    from tests.exporters.onnx_support import back

    again = back(to_bytes(one_op(cls, [x, x]), "onnx"))
    assert [type(op) for op in again.graph.ops] == [cls]
