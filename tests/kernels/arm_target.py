"""Makes numba compile for 64-bit Arm in a process that can run none of it."""

from __future__ import annotations

import llvmlite.binding as llvm

TRIPLE = "aarch64-unknown-linux-gnu"


def pretend() -> None:
    """Say that this process is one of Linux on Arm; to be called before luciole is imported."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.get_process_triple = lambda: TRIPLE
