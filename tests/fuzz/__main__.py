"""``python -m tests.fuzz``: run many cases, or a single one again."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fuzz import parent, subjects, worker
from tests.guard.memory import ENDS, watch


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--subject",
        choices=subjects.SUBJECTS,
        default="models",
        help="what is tried: model files (default), data, recipes, or what rewrites models",
    )
    parser.add_argument("--cases", type=int, default=5000, help="how many (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, help="where they start from (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="the first case (default: 0)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--guard", choices=ENDS, help="where the page lies that compiled kernels may not touch"
    )
    parser.add_argument("--only", type=int, metavar="CASE", help="run one case, in this process")
    parser.add_argument("--save", metavar="FILE", help="with --only: write the case's file")
    given = parser.parse_args(argv)
    if given.only is not None:
        if given.guard is not None:
            watch(given.guard)
        return _once(given.subject, given.seed, given.only, given.save)
    begin = time.perf_counter()
    work = parent.Work(given.seed, subjects.subject(given.subject), given.guard)
    result = parent.fuzz(work, given.first, given.first + given.cases, given.workers)
    seconds = time.perf_counter() - begin
    _print_findings(result.findings, f"--subject {given.subject} --seed {given.seed}")
    ends = ", ".join(f"{count} {end}" for end, count in result.ends.most_common())
    print(
        f"{given.cases} cases in {seconds:.0f} s ({given.cases / seconds:.0f} each second): {ends}"
    )
    print(f"{len(result.findings)} findings")
    return 1 if result.findings else 0


def _print_findings(findings: Sequence[dict[str, Any]], options: str) -> None:
    """Those that say the same but for numbers and names together, the first of them whole."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for found in sorted(findings, key=lambda f: int(f["case"])):
        said = re.sub(r"'[^']*'|[0-9]+", "", str(found["said"]))[:60]
        alike.setdefault(f"{found.get('where')} {said}", []).append(found)
    for group in alike.values():
        first = group[0]
        print(f"{options} --only {first['case']}: {first['what']} ({len(group)} alike)")
        print(f"    {first['said']}" + (f" ({first['where']})" if "where" in first else ""))


def _once(name: str, seed: int, number: int, path: str | None) -> int:
    worker.prepare()
    subject = subjects.subject(name)
    case = subject.make(seed, number)
    print(f"case {number}: {case.what}, {len(case.content)} bytes", flush=True)
    if path is not None:
        Path(path).write_bytes(case.content)
    print(subject.run(case, seed))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
