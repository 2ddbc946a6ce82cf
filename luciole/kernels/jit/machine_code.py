"""Machine code that stands alone: an object file that asks for nothing but the C library.

Numba's own callbacks hold what reports Python's exceptions. A process that reads them without
having started numba lacks those functions, and where LLVM finds one symbol missing it leaves *all*
of them zero, ``memset`` among them. Kernels raise nothing, so they are entered by a plain call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core.ccallback import _CFuncCompiler  # type: ignore[attr-defined]  # not in the stubs
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from luciole.kernels.jit.objects import in_c_library
from luciole.kernels.jit.pipeline import KernelCompiler


class _BodyOnly(_CFuncCompiler):  # type: ignore[misc]  # numba is not typed
    """Lowers a callback to a library that is still open, without numba's entry to it."""

    def _customize_flags(self, flags: Any) -> Any:
        flags = super()._customize_flags(flags)
        flags.no_cfunc_wrapper = True
        return flags


def machine_code(function: Callable[..., Any], signature: Any) -> tuple[str, bytes]:
    """Compile a function; return the name of its entry, as C calls it, and the object file that
    holds it.

    Raises RuntimeError where it calls a function that the C library lacks.
    """
    options = {"error_model": "numpy"}
    lowering = _BodyOnly(function, cpu_target, options, {}, KernelCompiler)
    with global_compiler_lock:
        lowered = lowering.compile(signature.args, signature.return_type)
        module, name = _entry(lowered.target_context, lowered.fndesc)
        lowered.library.add_ir_module(module)
        lowered.library.finalize()
        _, _, (code, _) = lowered.library.serialize_using_object_code()
    for called in lowered.library._final_module.functions:
        if called.is_declaration and not called.name.startswith("llvm."):
            _require(called.name, name)
    return name, code


def _entry(context: Any, lowered: Any) -> tuple[Any, str]:
    """Make a module with a function that calls another as numba's functions call each other."""
    module = context.create_module("entry")
    kind = context.call_conv.get_function_type(lowered.restype, lowered.argtypes)
    body = ir.Function(module, kind, lowered.llvm_func_name)
    arguments = [context.get_value_type(kind) for kind in lowered.argtypes]
    plain = ir.FunctionType(context.get_value_type(lowered.restype), arguments)
    entry = ir.Function(module, plain, lowered.llvm_cfunc_wrapper_name)
    builder = ir.IRBuilder(entry.append_basic_block())
    _, result = context.call_conv.call_function(
        builder, body, lowered.restype, lowered.argtypes, entry.args
    )
    builder.ret(result)
    return module, entry.name


def _require(called: str, by: str) -> None:
    try:
        in_c_library(called)
    except AttributeError:
        raise RuntimeError(f"{by} calls {called}, which the C library lacks") from None
