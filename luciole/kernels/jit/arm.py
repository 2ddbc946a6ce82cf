"""Extensions of 64-bit Arm that LLVM uses and does not name."""

from __future__ import annotations

import llvmlite.binding as llvm

_DOT = """
define i32 @{extend}(<16 x i8> %x, <16 x i8> %y) {{
  %a = {extend} <16 x i8> %x to <16 x i32>
  %b = sext <16 x i8> %y to <16 x i32>
  %products = mul <16 x i32> %a, %b
  %sum = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %products)
  ret i32 %sum
}}
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)
"""
"""A sum of products of bytes, in words of LLVM's."""

_DOTS = {"dotprod": ("sext", "\tsdot\t"), "i8mm": ("zext", "\tusdot\t")}
"""Extensions of Arm's, how their dot products see the first bytes, and their instructions."""


def is_arm() -> bool:
    """Return whether the process is one of 64-bit Arm."""
    return llvm.get_process_triple().startswith(("aarch64", "arm64"))


def dot_products(triple: str, processor: str, listed: str) -> frozenset[str]:
    """Return which of ``dotprod`` and ``i8mm`` LLVM has instructions of when it compiles for a
    64-bit Arm processor with the features ``listed``.

    LLVM does not name them among the features of a machine with Linux, but takes them from the
    processor's name. Code for one without them cannot be made, so LLVM itself is asked: by a sum
    that it writes in any case.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, features=listed)
    written = {
        feature: machine.emit_assembly(llvm.parse_assembly(_DOT.format(extend=extend)))
        for feature, (extend, _) in _DOTS.items()
    }
    return frozenset(f for f, (_, instruction) in _DOTS.items() if instruction in written[f])
