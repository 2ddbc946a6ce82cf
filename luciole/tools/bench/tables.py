"""A benchmark's report for people."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from luciole.ir.names import short_names
from luciole.tools.bench.compare import FIRST, Contender
from luciole.tools.bench.operators import OperatorTime, by_kind
from luciole.tools.bench.report import Report
from luciole.tools.common.console import (
    columns,
    fitted,
    part_time_text,
    print_table,
    show,
    size_text,
    time_text,
)
from luciole.tools.common.declined import print_declined
from luciole.tools.common.machine import machine_text

TOP = 10
Rows = list[tuple[str, ...]]


def print_report(report: Report) -> None:
    """Print everything, in the order in which ``benchmark_model`` prints it, comparisons last."""
    _print_facts(report)
    show()
    print_table(_time_rows(report.ours), "time of a run")
    if report.operators:
        _print_operators(report.operators)
    if report.peers:
        _print_comparison(report)
    show()
    for line in textwrap.wrap(machine_text(report.machine, _threads(report)), columns()):
        show(line)


def _threads(report: Report) -> str:
    return f"{report.threads} thread{'s' if report.threads > 1 else ''}"


def _print_facts(report: Report) -> None:
    runtime, ours = report.runtime, report.ours
    operators = len(runtime.plan.steps)
    show(f"{runtime.name}: {size_text(ours.bytes)}, {operators} operators, {_threads(report)}")
    names = ("import", "load", "compile", FIRST)
    start = ", ".join(f"{name} {time_text(1000 * report.milliseconds(name))}" for name in names)
    show(f"start     {start}")
    show(f"kernels   {_kernels_text(runtime.kernels_compiled, runtime.keeps_kernels)}")
    arena = size_text(runtime.interpreter.arena_bytes)
    constants = size_text(runtime.interpreter.constant_bytes)
    peak = size_text(report.peak_rss_bytes)
    show(f"memory    arena {arena}, constants {constants}, whole process {peak} at most")
    show(f"checksum  {ours.checksum} (CRC-32 of the outputs of the first inputs)")


def _kernels_text(compiled: int, kept: bool) -> str:
    if not compiled:
        return "all cached"
    return f"{compiled} compiled, {'cached from now on' if kept else 'not kept'}"


def _time_rows(ours: Contender) -> Rows:
    rows: Rows = [("", "median", "p90", "p99", "min", "std", "runs")]
    for what, timing in (("invoke", ours.invoke), ("with copies", ours.copies)):
        high = (timing.percentile(90), timing.percentile(99))
        times = (timing.median_us, *high, timing.min_us, timing.std_us)
        rows.append((what, *map(time_text, times), str(timing.runs)))
    return rows


def _print_operators(operators: Sequence[OperatorTime]) -> None:
    show()
    short = short_names(operator.name for operator in operators)
    print_table(_operator_rows(operators, short), "operators in execution order")
    if len(operators) > TOP:
        slowest = sorted(operators, key=lambda operator: -operator.median_us)[:TOP]
        show()
        print_table(_operator_rows(slowest, short, running=True), f"the {TOP} that take longest")
    left = [(short[o.name], o.kind, o.reason) for o in operators if o.reason]
    if left:
        show()
        print_declined(left)
    show()
    print_table(_kind_rows(operators), "kinds of operators")


def _kind_rows(operators: Sequence[OperatorTime]) -> Rows:
    rows: Rows = [("kind", "count", "time", "%", "cdf %")]
    rows += [
        (
            k.kind,
            str(k.count),
            part_time_text(k.median_us),
            _percent(k.share),
            _percent(k.cumulative),
        )
        for k in by_kind(operators)
    ]
    return rows


def _operator_rows(
    operators: Sequence[OperatorTime], short: Mapping[str, str], running: bool = False
) -> Rows:
    """Write one row for each operator; with ``running`` percentages are summed up in the order
    given.
    """
    rows: Rows = [("operator", "#", "kind", "median", "%", "cdf %", "run by")]
    total = 0.0
    for operator in operators:
        total += operator.share
        rows.append(
            (
                short[operator.name],
                str(operator.index),
                operator.kind,
                part_time_text(operator.median_us),
                _percent(operator.share),
                _percent(total if running else operator.cumulative),
                "native" if operator.native else "NumPy",
            )
        )
    return fitted(rows)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _print_comparison(report: Report) -> None:
    """Print the three tables of a comparison: size, accuracy where there are labels, time."""
    ours = report.ours
    show()
    print_table(_size_rows(report.contenders, ours), "size")
    if ours.top1 is not None:
        show()
        print_table(_accuracy_rows(report.contenders), "accuracy")
    show()
    print_table(_ratio_rows(report.contenders, ours), "time, medians of interleaved samples")


def _size_rows(contenders: Sequence[Contender], ours: Contender) -> Rows:
    rows: Rows = [("", "file", "ratio")]
    return rows + [
        (c.runtime.name, size_text(c.bytes), f"{c.bytes / ours.bytes:.2f}x") for c in contenders
    ]


def _accuracy_rows(contenders: Sequence[Contender]) -> Rows:
    rows: Rows = [("", "top-1")]
    return rows + [
        (c.runtime.name, "crashed" if c.top1 is None else f"{100 * c.top1:.2f} %")
        for c in contenders
    ]


def _ratio_rows(contenders: Sequence[Contender], ours: Contender) -> Rows:
    rows: Rows = [("", "invoke", "ratio", "with copies", "ratio", "outputs differ by")]
    for c in contenders:
        rows.append(
            (
                c.runtime.name,
                time_text(c.invoke.median_us),
                f"{c.invoke.median_us / ours.invoke.median_us:.2f}x",
                time_text(c.copies.median_us),
                f"{c.copies.median_us / ours.copies.median_us:.2f}x",
                "" if c is ours else str(c.gaps),
            )
        )
    return rows
