"""Names and defaults of recipes, with ONE's .proto files as the oracle."""

from __future__ import annotations

import re
from enum import IntEnum

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import OPS
from luciole.schema import recipe
from luciole.schema.enums import BuiltinOperator
from luciole.schema.table import TABLES
from luciole.schema.textproto import parse
from tests.schema.recipes import plain, recipes
from tests.support import data_path

PACKAGES = ("tflchef", "circlechef")
_FIELD = r"(optional|repeated) (\w+) (\w+) *= *\d+(?: *\[ *default *= *([\w.+-]+) *\])?;"


def proto(package: str) -> str:
    return data_path(f"recipes/proto/{package}.proto").read_text()


def test_options_tables_are_those_of_the_operator_classes() -> None:
    for code, cls in OPS.items():
        table = recipe.table_of(code)
        assert (None if table is None else table.__name__) == cls.options, code


def test_every_options_message_of_one_has_a_name() -> None:
    ours = {recipe.message_of(code) for code in BuiltinOperator}
    ours |= {recipe.custom_message_of(name) for name in recipe.CUSTOM}
    for package in PACKAGES:
        theirs = re.findall(r"optional \w+ (\w+_options) = ", proto(package))
        assert len(theirs) == {"tflchef": 97, "circlechef": 4}[package]
        assert set(theirs) - ours == set()


def test_fields_and_defaults_are_those_of_one() -> None:
    checked = 0
    for package in PACKAGES:
        for name, body in re.findall(r"message (\w+Options)\s*\{(.*?)\}", proto(package), re.S):
            if name not in TABLES:
                assert name in ("MatMulOptions", "MaxPoolWithArgMaxOptions")
                continue
            fields = {f.name: f for f in TABLES[name].fields}
            for _, _, field, default in re.findall(_FIELD, body):
                schema = field if field in fields else recipe.FIELDS[field]
                found = recipe.default_of(TABLES[name], schema)
                shown = found.name if isinstance(found, IntEnum) else str(found).lower()
                if default:
                    assert shown == default or abs(float(shown) - float(default)) < 1e-8, name
                    checked += 1
    assert checked > 60


def test_types_are_spelled_as_in_ones_recipes() -> None:
    types: set[str] = set()
    for path in [*recipes("tflite"), *recipes("circle")]:
        types |= {op["type"][0] for op in plain(parse(path.read_text())).get("operation", [])}
    assert len(types) > 100
    custom = {t for t in types if recipe.builtin_of(t) is None}
    assert custom == set(recipe.CUSTOM) & types
    assert {recipe.type_of(recipe.builtin_of(t)) for t in types - custom} == types - custom  # type: ignore[arg-type]  # custom ones are left out


def test_every_operator_has_a_type_of_its_own() -> None:
    for code in BuiltinOperator:
        assert recipe.builtin_of(recipe.type_of(code)) is code
