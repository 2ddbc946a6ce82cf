"""C functions of two bytes on a common grid, printed: what they do with numbers is an expression,
the loop around it the same for all.
"""

from __future__ import annotations

from luciole.kernels.portable.plain import PAIRS, TESTS

_SCALED = (
    "luc_byte(luc_scaled({}, op->multiplier, op->shift), op->result_zero, op->least, op->most)"
)
_SUMS = {
    "luc_add_int8": "a + b",
    "luc_sub_int8": "a - b",
    "luc_squared_difference_scaled_int8": "(a - b) * (a - b)",
}


def test_name(test: str) -> str:
    """Name the function that compares bytes of two grids."""
    return f"luc_{test}_scaled_int8"


_TESTED = {test_name(test): PAIRS[test].format(x="a", y="b") for test in TESTS}


def text_of(name: str) -> str | None:
    """Print the C function of a name; None where it is none of these."""
    if name in _SUMS:
        return _loop(name, "int8_t", _SCALED.format(_SUMS[name]))
    return _loop(name, "uint8_t", _TESTED[name]) if name in _TESTED else None


def _loop(name: str, result: str, expression: str) -> str:
    operands = (
        f"            int32_t {n} = luc_on_grid({x}[k] - op->{x}_zero, op->finer, "
        f"op->{x}_multiplier, op->{x}_shift);\n"
        for n, x in (("a", "x"), ("b", "y"))
    )
    return (
        f"static void {name}(const struct luc_add_int8 *op, const int8_t *x, const int8_t *y,\n"
        f"{' ' * (len(name) + 13)}{result} *z)\n{{\n"
        "    for (uint32_t k = 0; k < op->count; k++) {\n"
        f"{''.join(operands).replace('            ', '        ')}"
        f"        z[k] = {expression};\n    }}\n}}"
    )
