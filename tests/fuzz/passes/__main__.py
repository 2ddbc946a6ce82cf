"""``python -m tests.fuzz.passes``: passes on random graphs, floats within 1e-5 of the range,
integers exactly.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.fuzz.passes.trying import names, try_passes


def main(argv: Sequence[str] | None = None) -> int:
    """Print how often each pass changed a graph, and every graph that differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.passes", description=__doc__)
    parser.add_argument(
        "--graphs",
        type=int,
        default=500,
        help="graphs, more where a pass changes none (default: 500)",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    given = parser.parse_args(argv)
    result = try_passes(range(given.seed, given.seed + given.graphs))
    for name in names():
        print(f"{name:44} {result.fired[name]:5}")
    for line in result.wrong:
        print(line)
    print(f"{result.graphs} graphs ({result.quantized} of integers), {len(result.wrong)} differ")
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
