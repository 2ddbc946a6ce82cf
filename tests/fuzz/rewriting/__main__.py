"""``python -m tests.fuzz.rewriting``: random sound networks through every scheme, simulation, C,
ONNX and ``optimize``.

Each ends in one sentence, or in a file whose outputs lie as close to the float network as the
simulation does and as plain rounding does at the least; that is finite, twice the same, and equal
to LiteRT where LiteRT runs it. A line a finding, a table at the end.

python -m tests.fuzz.rewriting --count 3000 --seed 0
python -m tests.fuzz.rewriting --case 17 --only int8
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from tests.fuzz.rewriting import put_back
from tests.fuzz.rewriting.cases import NAMES, Case
from tests.fuzz.rewriting.running import Work, run

_ENDS = ("ran", "refused", "raised", "in LiteRT", "not in LiteRT")
_MOST_REFUSALS = 12


def main(argv: Sequence[str] | None = None) -> int:
    """Run networks; 1 where something was found."""
    arguments = _parser().parse_args(argv)
    only = arguments.only.split(",") if arguments.only else NAMES
    unknown = set(only) - set(NAMES)
    if unknown:
        print(f"--only {', '.join(sorted(unknown))}: {', '.join(NAMES)} are possible")
        return 2
    work = Work(arguments.seed, tuple(only), arguments.share, arguments.put_back)
    if arguments.case is not None:
        return _once(work, arguments.case)
    begun = time.perf_counter()
    numbers = range(arguments.first, arguments.first + arguments.count)
    result = run(work, numbers, arguments.workers, print)
    seconds = time.perf_counter() - begun
    _print_table(result.ends, Counter((f.job[0], f.kind) for f in result.findings))
    _print_refusals(result.ends)
    _print_seconds(result.seconds)
    share = "all schemes" if work.share == 1 else f"a share of {work.share:g} of the schemes each"
    print(f"{arguments.count} networks, {share}, in {seconds:.0f} s: ", end="")
    print(f"{len(result.findings)} findings in {len({f.number for f in result.findings})} networks")
    return 1 if result.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.rewriting", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=300, help="networks (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="where they start from (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="the first network (default: 0)")
    parser.add_argument("--case", type=int, help="run one network, in this process")
    parser.add_argument("--only", help=f"schemes and jobs among {', '.join(NAMES)}")
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the schemes of each network (default: all)"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--put-back", type=int, choices=put_back.FAULTS, help="a repaired fault to put back"
    )
    return parser


def _once(work: Work, number: int) -> int:
    with put_back.fault(work.fault):
        case = Case(work.seed, number, work.only, work.share)
        print(f"{number}: {case.network.what}", flush=True)
        case.run()
    for finding in case.findings:
        print(finding)
    for (name, end), count in sorted(case.ends.items()):
        print(f"    {name} {end}" + (f" ({count})" if count > 1 else ""))
    return 1 if case.findings else 0


def _print_table(ends: Counter[tuple[str, str]], findings: Counter[tuple[str, str]]) -> None:
    """How often each scheme and job ended how, and what was found of it."""
    kinds = sorted({kind for _, kind in findings})
    columns = [*(end for end in _ENDS if any(e == end for _, e in ends)), *kinds]
    rows = [["", *columns]]
    for name in NAMES:
        cells = [ends[name, column] + findings[name, column] for column in columns]
        rows.append([name, *(str(cell or "") for cell in cells)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _print_seconds(seconds: Counter[str]) -> None:
    """The seconds of computing that each scheme and job took."""
    said = [f"{name} {spent:.0f}" for name, spent in seconds.most_common()]
    print(f"seconds of computing: {', '.join(said)}")


def _print_refusals(ends: Counter[tuple[str, str]]) -> None:
    """The sentences that were said most often."""
    said = {key: count for key, count in ends.items() if key[1].startswith("refused: ")}
    for (name, end), count in Counter(said).most_common(_MOST_REFUSALS):
        print(f"{name} {end} ({count})")


if __name__ == "__main__":
    raise SystemExit(main())
