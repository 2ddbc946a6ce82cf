"""Print the report of a quantized network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.proving.files import show_judged
from luciole.tools.quantizing.arguments import Kind

if TYPE_CHECKING:
    from luciole.lquantizer import Report

_LONGEST_NAME = 48
"""Characters of the name of a layer that was left alone: converters write names of hundreds."""
_MOST_NAMES = 5
"""Operators with floats that are named."""


def show(report: Report, kind: Kind | None, output: str, as_json: bool) -> None:
    """Print the report of a network and its file, as tables or as JSON. ``kind`` is that of the
    scheme, None where a network of integers was changed.
    """
    for warning in report.warnings:
        console.say(f"luciole: warning: {warning}")
    if as_json:
        console.print_json(report.to_json())
        return
    _show_options(report)
    _show_layers(report, kind)
    for rule in report.rules:
        console.show(rule)
    _show_floats(report.floats)
    if not show_judged(report):
        return
    before, after = console.size_text(report.bytes_before), console.size_text(report.bytes_after)
    console.show(f"{output}: {before} -> {after} in {report.seconds:.1f} s")


def _show_floats(operators: list[str]) -> None:
    """Print the operators that compute with floats, the first ones of each reason by name."""
    from luciole.ir.text.common import first_named

    by_reason: dict[str, list[str]] = {}
    for text in operators:
        operator, _, reason = text.rpartition(": ")
        by_reason.setdefault(reason, []).append(operator)
    for reason, names in by_reason.items():
        console.show(f"computed with floats ({reason}): {first_named(names, _MOST_NAMES)}")


def _show_options(report: Report) -> None:
    """Print the formats that a search for bits tried."""
    if not report.options:
        return
    if "exponent" in report.options[0]:
        unit = "" if report.judged is None else report.judged.unit
        console.print_table(_grid(report), f"lost: {unit}")
        return
    title = "what each layer alone loses under each option, and the bytes it adds"
    console.print_table(console.fitted(_option_rows(report)), title)


def _show_layers(report: Report, kind: Kind | None) -> None:
    """Print the layers, and for learned levels the operators that stay float beside them."""
    if kind is Kind.MINIFLOATS:
        rows = [(layer.short, layer.format, f"{layer.bytes_after:,}") for layer in report.layers]
        console.print_table(console.fitted([("layer", "format", "bytes of constants"), *rows]))
    elif report.layers:
        title = "signal/noise of each layer's output in dB"
        console.print_table(console.fitted(report.rows()), title)
    if kind is not Kind.LEVELS:
        return
    for reason, names in report.left_alone().items():
        shown = [console.shortened(name, _LONGEST_NAME) for name in names]
        console.show(f"left alone, {reason}: {', '.join(shown)}")
    for line in report.beside_levels():
        console.show(line)
    console.show(_float_line(report))


def _float_line(report: Report) -> str:
    """List the operators that stay float, the largest by name, with their bytes of the file."""
    from luciole.ir.names import short_names

    left = report.stays_float
    if not left:
        return "stays float: nothing"
    total, file = sum(left.values()), report.bytes_after
    short = short_names({*left, *(layer.name for layer in report.layers)})
    shown = [f"{short[n]} {console.size_text(left[n])}" for n in list(left)[:_MOST_NAMES]]
    rest = list(left.values())[_MOST_NAMES:]
    others = [f"{len(rest)} more {console.size_text(sum(rest))}"] if rest else []
    return (
        f"stays float: {console.size_text(total)} of the file's {console.size_text(file)} "
        f"({100 * total / max(file, 1):.0f} %): {', '.join(shown + others)}"
    )


def _option_rows(report: Report) -> list[tuple[str, ...]]:
    """Lay out what each layer alone loses, also one that stays float: a row for each option."""
    from luciole.ir.names import short_names

    measured = {str(option["layer"]) for option in report.options}
    short = short_names(measured | {layer.name for layer in report.layers})
    rows = [
        (short[str(o["layer"])], str(o["option"]), f"{o['bytes']:,}", f"{o['error']:.3g}")
        for o in report.options
    ]
    return [("layer", "option", "bytes", "loss"), *rows]


def _grid(report: Report) -> list[tuple[str, ...]]:
    """Lay out which minifloats were tried: a row for each number of bits of the exponent."""
    drops = {(int(o["exponent"]), int(o["mantissa"])): float(o["drop"]) for o in report.options}
    exponents, mantissas = (sorted({pair[i] for pair in drops}, reverse=True) for i in (0, 1))
    head = ("exponent", *(f"mantissa {m}" for m in mantissas))
    return [head, *(_grid_row(drops, exponent, mantissas) for exponent in exponents)]


def _grid_row(
    drops: dict[tuple[int, int], float], exponent: int, mantissas: list[int]
) -> tuple[str, ...]:
    cells = [
        f"{1 + exponent + m} bits {drops[exponent, m]:.2f}" if (exponent, m) in drops else ""
        for m in mantissas
    ]
    return (str(exponent), *cells)
