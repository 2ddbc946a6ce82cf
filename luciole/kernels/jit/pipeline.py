"""How numba compiles our functions: by those of its passes that they need.

Helpers become bitcode that kernels are linked with, and no machine code: nobody calls them.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

NEEDLESS = {
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.AnnotateTypes,
    typed_passes.DumpParforDiagnostics,
}
"""Passes for what no function of ours has: closures, contexts, exceptions, arrays, literals."""


class KernelCompiler(CompilerBase):  # type: ignore[misc]  # numba is not typed
    """Compiles kernels."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes without the needless ones."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(kind, text) for kind, text in manager.passes if kind not in NEEDLESS]
        return [manager]


class HelperCompiler(KernelCompiler):
    """Compiles functions that kernels call."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of kernels, which write to a library without machine code."""
        state = self.state
        state.library = _Bitcode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.targetctx.get_executable = _standing_for  # of a context for this function alone
        return super().define_pipelines()


class _Bitcode(JITCodeLibrary):  # type: ignore[misc]  # numba is not typed
    """What others are linked with."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


def _standing_for(library: Any, lowered: Any, environment: Any) -> Any:
    """Make the object by which numba knows a function; Python cannot call it."""
    library.finalize()
    module, name = lowered.lookup_module(), lowered.qualname
    return _dynfunc.make_function(module, name, "", 0, environment, (library,))
