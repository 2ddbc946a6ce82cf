"""Preprocessing expressions against the same arithmetic in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.ir import Array
from luciole.tools.data import DataError
from luciole.tools.data.errors import AskedError
from luciole.tools.data.preprocess import ALLOWED, parse_preprocess, transforms_of
from tests.networks import two_inputs

X = np.random.default_rng(3).uniform(0, 255, (5, 7)).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x", lambda x: x),
        ("x/255", lambda x: x / 255),
        (" x / 255 ", lambda x: x / 255),
        ("(x/255 - 0.1307)/0.3081", lambda x: (x / 255 - 0.1307) / 0.3081),
        ("x*2-1", lambda x: x * 2 - 1),
        ("-x", lambda x: -x),
        ("1 - -x", lambda x: 1 - -x),
        ("x*(1/255)", lambda x: x * (1 / 255)),
        ("x*x + 1e-3", lambda x: x * x + 1e-3),
        ("(x - 127.5)/-127.5", lambda x: (x - 127.5) / -127.5),
        ("1_000/(x+1)", lambda x: 1000 / (x + 1)),
    ],
)
def test_expressions_compute_what_numpy_computes(
    text: str, wanted: Callable[[Array], Array]
) -> None:
    transform = parse_preprocess(text)
    assert transform is not None
    before = X.copy()
    result = transform(X)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, wanted(X))
    np.testing.assert_array_equal(X, before)


def test_expressions_are_for_single_inputs_by_name() -> None:
    graph = two_inputs().graph
    left, right = transforms_of("left=x/2; x+1", graph)
    assert left is not None
    assert right is not None
    np.testing.assert_array_equal(left(X), X / 2)
    np.testing.assert_array_equal(right(X), X + 1)
    assert transforms_of("left=none", graph) == [None, None]
    with pytest.raises(AskedError, match="preprocess: 'lft' is no input, there is 'left', 'right'"):
        transforms_of("lft=x/2", graph)


@pytest.mark.parametrize("text", ["none", " none "])
def test_none_is_no_preprocessing(text: str) -> None:
    assert parse_preprocess(text) is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x**2", "x**2"),
        ("x//2", "x//2"),
        ("x%2", "x%2"),
        ("x@x", "x@x"),
        ("+x", "+x"),
        ("~x", "~x"),
        ("not x", "not x"),
        ("y/255", "y"),
        ("X/255", "X"),
        ("none + x", "none"),
        ("x + True", "True"),
        ("x + 1j", "1j"),
        ("x + 'a'", "'a'"),
        ("abs(x)", "abs(x)"),
        ("x.real", "x.real"),
        ("x[0]", "x[0]"),
        ("[x]", "[x]"),
        ("x if x else 1", "x if x else 1"),
        ("x > 1", "x > 1"),
        ("(lambda: x)()", "(lambda: x)()"),
        ("(x := 1)", "x := 1"),
        ("x, 1", "x, 1"),
        ("f'{x}'", "f'{x}'"),
        ("__import__('os').system('true')", "__import__('os').system('true')"),
    ],
)
def test_parse_preprocess_refuses_what_is_not_arithmetic(text: str, part: str) -> None:
    with pytest.raises(DataError) as refusal:
        parse_preprocess(text)
    assert str(refusal.value) == f"preprocess {text!r}: {part!r} is not understood; {ALLOWED}"


@pytest.mark.parametrize("text", ["", "x/", "(x", "x = 1", "x 1", "import os", "x\n1", "\0", "1x"])
def test_parse_preprocess_refuses_what_is_not_an_expression(text: str) -> None:
    with pytest.raises(DataError) as refusal:
        parse_preprocess(text)
    assert str(refusal.value) == f"preprocess {text!r} is not an expression: {ALLOWED}"


@pytest.mark.parametrize("text", ["1/255", "-3", "(2)"])
def test_parse_preprocess_refuses_expressions_without_x(text: str) -> None:
    with pytest.raises(DataError, match=r"does not use x, e\.g\. x/255$"):
        parse_preprocess(text)


@pytest.mark.parametrize("text", ["x/0", "x/(1-1)", "x + 1/0", "x/-0.0"])
def test_parse_preprocess_refuses_division_by_zero(text: str) -> None:
    with pytest.raises(DataError, match=r"divides by zero$"):
        parse_preprocess(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x/1e39", "1e39"),
        ("x/1e999", "1e999"),
        ("x*" + "9" * 150, "9" * 150),
        ("x/(1e30*1e30)", "1e30*1e30"),
        ("x*(1/1e-45/1e-45)", "1/1e-45"),
    ],
)
def test_parse_preprocess_refuses_numbers_beyond_float32(text: str, part: str) -> None:
    with pytest.raises(DataError) as refusal:
        parse_preprocess(text)
    assert str(refusal.value) == f"preprocess {text!r}: {part!r} is too large for float32"


@pytest.mark.parametrize("text", ["-" * 5000 + "x", "(" * 5000 + "x" + ")" * 5000])
def test_parse_preprocess_refuses_very_long_expressions(text: str) -> None:
    with pytest.raises(DataError, match=rf"has {len(text)} characters, at most 200 are allowed$"):
        parse_preprocess(text)


def test_deep_nesting_is_computed_or_refused() -> None:
    transform = parse_preprocess("-" * 199 + "x")
    assert transform is not None
    np.testing.assert_array_equal(transform(X), -X)
