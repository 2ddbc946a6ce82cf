"""What holds for every operator class without a word from the class itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import luciole.ir.ops  # registers every operator class
from luciole.exporters import to_bytes
from luciole.importers import import_model
from luciole.ir import CUSTOM_OPS, OPS, Model, Op, Shape, ShapeError, TensorType, Value
from luciole.ir.errors import DefinitionError
from luciole.ir.fields import REQUIRED, attr, dtype_of, for_graphs, like, operand, operands
from luciole.ir.quant import Like, Quant
from luciole.ir.text.listing import show
from luciole.kernels.core import registry
from luciole.schema import enums
from luciole.schema.dialect import CIRCLE
from luciole.schema.enums import BuiltinOperator
from luciole.schema.reader import read
from luciole.schema.table import TABLES
from luciole.schema.table import Field as Column
from luciole.schema.writer import write
from tests.lone_operators import alone

TYPED = sorted(OPS.values(), key=lambda cls: cls.code)
CUSTOM = [cls for cls in CUSTOM_OPS.values() if cls.code == BuiltinOperator.CUSTOM]
CLASSES = [*TYPED, *CUSTOM]
WITH_ATTRIBUTES = [cls for cls in TYPED if cls.attr_fields()]
WITH_CUSTOM_CODE = [cls for cls in TYPED if cls.custom_code]
MODULES = Counter(cls.__module__.rpartition(".")[2] for cls in CLASSES)
HERE = Path(__file__).parent

every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def columns(cls: type[Op]) -> dict[str, Column]:
    """The fields of an operator's options table."""
    return {f.name: f for f in TABLES[cls.options].fields} if cls.options else {}


def another(default: Any) -> Any:
    """A value of an attribute's type that is not its default."""
    if isinstance(default, IntEnum):
        return next((member for member in type(default) if member != default), default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, tuple):
        return (*default, 2, 3)
    return f"{default or ''}text" if isinstance(default, str | None) else type(default)(default + 3)


def changed(cls: type[Op]) -> dict[str, Any]:
    """Attributes that are not their defaults; graphs are those of ``alone``."""
    return {f.name: another(f.default) for f in cls.attr_fields() if not f.is_graph}


def stored(cls: type[Op]) -> dict[str, Any]:
    """What a file holds of ``changed`` by the schema's names, graphs by their numbers."""
    graphs = {(): (1, 1), None: 1}
    return {
        f.schema_name: graphs[f.default] if f.is_graph else another(f.default)
        for f in cls.attr_fields()
    }


def plain(op: Op, model: Model) -> dict[str, Any]:
    """Attributes with numbers for graphs: those of two models are never the same."""
    return {
        field.name: for_graphs(getattr(op, field.name), model.graphs.index)
        if field.is_graph
        else getattr(op, field.name)
        for field in op.attr_fields()
    }


def read_back(content: bytes) -> Model:
    return import_model(content)[0]


# ------------------------------------------------------------------------------------ declarations
def test_there_are_operators() -> None:
    assert len(CLASSES) > 40
    assert {cls.code: cls for cls in TYPED} == OPS
    assert {cls.custom_code: cls for cls in CUSTOM + WITH_CUSTOM_CODE} == CUSTOM_OPS


@pytest.mark.parametrize("cls", TYPED, ids=lambda cls: cls.__name__)
def test_attributes_are_the_fields_of_the_options_table(cls: type[Op]) -> None:
    names = [f.schema_name for f in cls.attr_fields()]
    assert sorted(names) == sorted(columns(cls))


@pytest.mark.parametrize("cls", WITH_ATTRIBUTES, ids=lambda cls: cls.__name__)
def test_defaults_are_those_of_the_schema(cls: type[Op]) -> None:
    table = columns(cls)
    for field in cls.attr_fields():
        column = table[field.schema_name]
        if field.is_graph and field.default is None:  # 0 in the file: there is always a graph
            assert (field.default, column.default) == (None, 0)
            continue
        expected = () if column.kind == "vector" else column.default
        assert field.default == expected, field.name
        assert type(field.default) is type(expected), field.name


def test_options_are_in_one_of_the_unions() -> None:
    unions = (enums.BuiltinOptions.__members__, enums.BuiltinOptions2.__members__)
    for cls in CLASSES:
        assert cls.options is None or sum(cls.options in union for union in unions) == 1, cls


def test_a_class_has_a_docstring_of_its_own() -> None:
    for cls in CLASSES:
        text = vars(cls).get("__doc__")
        assert text, cls
        assert text.strip().split("\n")[0].endswith((".", ":", ",")), cls
        assert text.strip() != cls.__name__


def test_a_file_is_named_after_its_operator_or_holds_a_family() -> None:
    for cls in CLASSES:
        module = cls.__module__.rpartition(".")[2]
        assert cls.__module__ == f"luciole.ir.ops.{module}"
        if MODULES[module] == 1:
            is_custom = cls.code == BuiltinOperator.CUSTOM
            assert module == ((is_custom and cls.custom_code) or cls.code.name).lower()
        elif module.upper() in BuiltinOperator.__members__:
            assert OPS[BuiltinOperator[module.upper()]].__module__ == cls.__module__


def test_kernels_and_tests_have_the_same_file_name() -> None:
    kernels = Path(registry.__file__).parents[1]
    files = [kernels / f"{module}.py" for module in MODULES]
    files += [HERE / "ops" / f"test_{module}.py" for module in MODULES]
    assert [file for file in files if not file.exists()] == []


def test_every_operator_has_a_reference_kernel() -> None:
    computed = {cls for kind, cls, _ in registry.registered() if kind != "native"}
    assert [cls for cls in CLASSES if cls not in computed] == []


def test_every_native_kernel_has_its_reference() -> None:
    kernels = {kind: set[tuple[type[Op], Any]]() for kind in ("reference", "native", "stateful")}
    for kind, cls, signature in registry.registered():
        kernels[kind].add((cls, signature))
    assert kernels["native"]
    assert kernels["native"] <= kernels["reference"]


# -------------------------------------------------------------------------------------- round trip
@every_class
def test_export_import_export_is_the_identity(cls: type[Op]) -> None:
    """With required operands or all, and with attributes' defaults or others."""
    for attributes in ({}, changed(cls)):
        for optional in (False, True):
            check_round_trip(alone(cls, attributes, optional))


def check_round_trip(model: Model) -> None:
    content = to_bytes(model, check=False)
    again = read_back(content)
    before, after = model.graph.ops[0], again.graph.ops[0]
    assert type(after) is type(before)
    assert plain(after, again) == plain(before, model)
    assert [type(v) for v in after.attributes().values()] == [
        type(v) for v in before.attributes().values()
    ]
    assert after.version == 5
    assert show(again.graph) == show(model.graph)
    assert to_bytes(again, check=False) == content


@pytest.mark.parametrize("cls", WITH_ATTRIBUTES, ids=lambda cls: cls.__name__)
def test_the_file_holds_what_the_schema_calls_the_attributes(cls: type[Op]) -> None:
    root, unknown = read(to_bytes(alone(cls, changed(cls), True), check=False))
    operator = (root.subgraphs or [])[0].operators[0]  # type: ignore[index]  # there is one
    table = operator.builtin_options or operator.builtin_options_2
    assert unknown == []
    assert type(table).__name__ == cls.options
    for field in cls.attr_fields():
        found = getattr(table, field.schema_name)
        found = tuple(found) if isinstance(found, np.ndarray) else found
        assert found == stored(cls)[field.schema_name], field.name


@pytest.mark.parametrize("cls", WITH_ATTRIBUTES, ids=lambda cls: cls.__name__)
def test_options_that_a_file_leaves_out_stay_out(cls: type[Op]) -> None:
    model = alone(cls, {}, True, called=0)
    for has_options in (False, True):
        model.graph.ops[0].has_options = has_options
        content = to_bytes(model, check=False)
        operator = (read(content)[0].subgraphs or [])[0].operators[0]  # type: ignore[index]  # there is one
        written = operator.builtin_options is not None or operator.builtin_options_2 is not None
        assert written == has_options
        assert to_bytes(read_back(content), check=False) == content


@pytest.mark.parametrize("cls", WITH_CUSTOM_CODE, ids=lambda cls: cls.__name__)
def test_operators_of_our_own_are_custom_to_others(cls: type[Op]) -> None:
    root, _ = read(to_bytes(alone(cls, changed(cls), True), check=False))
    code, operator = root.operator_codes[0], root.subgraphs[0].operators[0]  # type: ignore[index]  # there is one
    assert code.deprecated_builtin_code == BuiltinOperator.CUSTOM
    assert int(code.builtin_code) == int(cls.code) <= -64
    assert code.custom_code == cls.custom_code
    assert operator.custom_options is not None
    assert flexbuffers.Loads(operator.custom_options.tobytes()) == stored(cls)


@pytest.mark.parametrize("cls", WITH_CUSTOM_CODE, ids=lambda cls: cls.__name__)
def test_operators_of_our_own_are_read_from_what_others_keep(cls: type[Op]) -> None:
    root, _ = read(to_bytes(alone(cls, changed(cls), True), check=False))
    code, operator = root.operator_codes[0], root.subgraphs[0].operators[0]  # type: ignore[index]  # there is one
    code.builtin_code = BuiltinOperator.CUSTOM
    operator.builtin_options = None
    op = read_back(write(root, CIRCLE)).graph.ops[0]
    assert type(op) is cls
    assert op.attributes() == changed(cls)


# ------------------------------------------------------------------------------ class creation
def test_a_definition_refuses_an_unknown_hook() -> None:
    with pytest.raises(DefinitionError, match=r"Bad\.infer_shapes is not one of the hooks"):

        class Bad(Op):
            def infer_shapes(self) -> None: ...


def test_a_definition_refuses_a_code_that_is_taken() -> None:
    owner = OPS[BuiltinOperator.ADD]
    with pytest.raises(DefinitionError, match="ADD is declared twice: Add and Bad"):

        class Bad(Op, code=BuiltinOperator.ADD):
            pass

    assert OPS[BuiltinOperator.ADD] is owner


def test_a_definition_refuses_a_custom_code_that_is_taken_or_missing() -> None:
    name, owner = next(iter(CUSTOM_OPS.items()))
    with pytest.raises(DefinitionError, match=f"{name} is declared twice: {owner.__name__} and"):

        class Bad(Op, code=BuiltinOperator.CUSTOM, custom_code=name):
            pass

    with pytest.raises(DefinitionError, match="Worse is CUSTOM and has no custom_code"):

        class Worse(Op, code=BuiltinOperator.CUSTOM):
            pass

    assert CUSTOM_OPS[name] is owner


@pytest.mark.parametrize("rule", [dtype_of("y"), like("y")])
def test_a_definition_refuses_a_rule_that_names_no_operand(rule: Any) -> None:
    with pytest.raises(
        DefinitionError, match=r"Bad\.infer_\w+ speaks of 'y'; the operands are \['x'\]"
    ):

        class Bad(Op):
            x: Value = operand()
            infer_shape = infer_dtype = rule


@pytest.mark.parametrize(
    "fact",
    [Quant(weight="w"), Quant(weight="x", bias="w"), Quant(result=Like("x", "w"))],
    ids=["weight", "bias", "result"],
)
def test_a_definition_refuses_quantization_facts_that_name_no_operand(fact: Quant) -> None:
    with pytest.raises(
        DefinitionError, match=r"Bad\.quant speaks of 'w'; the operands are \['x'\]"
    ):

        class Bad(Op):
            x: Value = operand()
            quant = fact


@pytest.mark.parametrize(
    "name",
    [
        *("operands", "results", "graph", "version", "intermediates", "file_options"),
        *("name", "kind", "output", "attributes", "clone", "set_operand"),
        *("code", "custom_code", "options", "fields", "quant", "stateful", "result_names"),
        *("infer_shape", "verify", "macs", "weight_shape", "reshapes"),
    ],
)
@pytest.mark.parametrize("specifier", [operand, attr], ids=["operand", "attr"])
def test_a_definition_refuses_a_name_with_a_meaning(name: str, specifier: Any) -> None:
    field = specifier(default=None)
    with pytest.raises(DefinitionError, match=rf"Bad\.{name}: that name has a meaning"):
        type("Bad", (Op,), {name: field})


def test_a_definition_refuses_a_variadic_operand_that_is_not_last() -> None:
    with pytest.raises(
        DefinitionError, match=r"Bad\.many takes all remaining operands: it comes last"
    ):

        class Bad(Op):
            many: tuple[Value, ...] = operands()
            last: Value = operand(default=REQUIRED)


def test_a_definition_refuses_two_variadic_operands() -> None:
    with pytest.raises(DefinitionError, match=r"Bad\.a takes all remaining operands"):

        class Bad(Op):
            a: tuple[Value, ...] = operands()
            b: tuple[Value, ...] = operands()


def test_refused_definitions_leave_nothing_behind() -> None:
    assert not {"Bad", "Worse"} & {cls.__name__ for cls in [*OPS.values(), *CUSTOM_OPS.values()]}
    assert all(cls.__module__.startswith(luciole.ir.ops.__name__) for cls in OPS.values())


class Careless(Op):
    """An operator whose rules do not look at what they are given."""

    input: Value = operand()

    def verify(self, /) -> Iterator[str]:
        yield "the first rule is broken"
        yield str(dict[str, int]()["axis"])

    def infer_shape(self, /) -> Shape:
        return (self.input.shape[7],)

    def infer_dtype(self, /) -> TensorType:
        return TensorType(int(self.input.name))


def test_an_operator_refuses_what_its_rules_did_not_think_of() -> None:
    op = Careless(Value("x", TensorType.FLOAT32, (1,)))
    begin = "its rule does not take these operands"
    with pytest.raises(ShapeError, match=rf"^Careless '': {begin} \(IndexError: tuple index"):
        op.result_shapes()
    with pytest.raises(ShapeError, match=rf"^Careless '': {begin} \(ValueError: invalid literal"):
        op.result_dtypes()
    assert list(op.broken_rules()) == ["the first rule is broken", f"{begin} (KeyError: 'axis')"]
