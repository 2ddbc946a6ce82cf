"""Read how much memory this process took."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_rss_bytes() -> int:
    """Measure the most resident memory that this process had so far, Python and all libraries
    included.
    """
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage also counts what the parent had before this program replaced it
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
