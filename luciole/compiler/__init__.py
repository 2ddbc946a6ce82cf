"""Write networks as C99: one header and one source file, which need neither Python nor a
library.
"""

from luciole.compiler.compiled import Compiled
from luciole.compiler.options import CompileOptions
from luciole.compiler.program import Program, compile_model

__all__ = ["CompileOptions", "Compiled", "Program", "compile_model"]
