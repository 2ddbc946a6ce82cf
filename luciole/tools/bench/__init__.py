"""``circle-bench``: how long a model takes, operator by operator, beside other runtimes."""

from luciole.tools.bench.program import main

__all__ = ["main"]
