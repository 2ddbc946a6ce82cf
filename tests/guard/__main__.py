"""``python -m tests.guard``: every compiled kernel on guarded memory, as often as you like."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from tests.fuzz import parent
from tests.guard import cases


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.guard", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="of each kernel (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="where they start from (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="the first case (default: 0)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--only", type=int, metavar="CASE", help="run one case, in this process")
    given = parser.parse_args(argv)
    if given.only is not None:
        return _once(given.seed, given.only)
    return int(_run(given) > 0)


def _run(given: argparse.Namespace) -> int:
    """Print how cases ended; the number of findings."""
    last = given.first + cases.PER_MODEL * given.rounds * len(cases.kinds())
    work = parent.Work(given.seed, cases, seconds=cases.SECONDS)
    result = parent.fuzz(work, given.first, last, given.workers)
    for found in result.findings:
        print(f"--seed {given.seed} --only {found['case']}: {found['what']}")
        print(f"    {found['said']}" + (f" ({found['where']})" if "where" in found else ""))
    ends = Counter[str]()
    for how, count in result.ends.items():
        ends[how.split()[0]] += count
    kernels = {how.split(" ", 2)[2] for how in result.ends if how.startswith("compiled")}
    told = ", ".join(f"{count} {how}" for how, count in ends.most_common())
    print(f"{told}; {len(kernels)} of {len(cases.kinds())} kernels")
    print(f"{len(result.findings)} findings", flush=True)
    return len(result.findings)


def _once(seed: int, number: int) -> int:
    case = cases.make(seed, number)
    print(case.what, flush=True)
    print(cases.run(case, seed))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
