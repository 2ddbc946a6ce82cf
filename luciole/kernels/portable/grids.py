"""C functions of two codes on a common grid, printed for bytes: what they do with numbers is an
expression, the loop around it the same for all.
"""

from __future__ import annotations

import re

from luciole.kernels.portable.plain import PAIRS, TESTS

_SCALED = (
    "luc_stored_int8(luc_scaled({}, op->multiplier, op->shift),\n"
    "                               op->result_zero, op->least, op->most)"
)
_SUMS = {
    "luc_add_int8": "a + b",
    "luc_sub_int8": "a - b",
    "luc_squared_difference_scaled_int8": "(a - b) * (a - b)",
}


def test_name(test: str) -> str:
    """Name the function that compares integers of two grids, without their kind."""
    return f"luc_{test}_scaled"


_TESTED = {f"{test_name(test)}_int8": PAIRS[test].format(x="a", y="b") for test in TESTS}


_KINDS = "(int8|uint8|int16)"


def text_of(name: str) -> str | None:
    """Print the C function of a name; None where it is none of these."""
    if kinds := re.fullmatch(f"luc_{_KINDS}_scaled_from_{_KINDS}", name):
        return _scaling(name, *kinds.groups())
    if name in _SUMS:
        return _loop(name, "luc_code_int8", _SCALED.format(_SUMS[name]))
    return _loop(name, "uint8_t", _TESTED[name]) if name in _TESTED else None


def _scaling(name: str, to: str, source: str) -> str:
    """Print the function that brings integers of one kind to another grid."""
    return (
        f"static void {name}(const struct luc_scaling *op, const luc_code_{source} *x,\n"
        f"{' ' * (len(name) + 13)}luc_code_{to} *y)\n{{\n"
        "    for (uint32_t k = 0; k < op->count; k++) {\n"
        "        int32_t steps = x[k] - op->zero;\n"
        "        if (steps >= 0) {\n"
        "            steps = luc_scaled(steps, op->above_multiplier, op->above_shift);\n"
        "        } else {\n"
        "            steps *= op->before;\n"
        "            steps = luc_scaled(steps, op->below_multiplier, op->below_shift);\n"
        "            if (op->after < 0) { steps = (int32_t)(0u - (uint32_t)steps); }\n"
        "        }\n"
        f"        y[k] = luc_stored_{to}(steps, op->to_zero, op->least, op->most);\n    }}\n}}"
    )


def _loop(name: str, result: str, expression: str) -> str:
    operands = (
        f"            int32_t {n} = luc_on_grid({x}[k] - op->{x}_zero, op->finer, "
        f"op->{x}_multiplier, op->{x}_shift);\n"
        for n, x in (("a", "x"), ("b", "y"))
    )
    return (
        f"static void {name}(const struct luc_add_int8 *op, const luc_code_int8 *x,\n"
        f"{' ' * (len(name) + 13)}const luc_code_int8 *y, {result} *z)\n{{\n"
        "    for (uint32_t k = 0; k < op->count; k++) {\n"
        f"{''.join(operands).replace('            ', '        ')}"
        f"        z[k] = {expression};\n    }}\n}}"
    )
