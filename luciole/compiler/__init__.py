"""Write networks as C99: one header and one source file, which need neither Python nor a
library.
"""

from luciole.compiler.compiled import Compiled
from luciole.compiler.options import CompileOptions
from luciole.compiler.program import Program, compile_model
from luciole.compiler.sizes import Measured, Stack, measure

__all__ = [
    "CompileOptions",
    "Compiled",
    "Measured",
    "Program",
    "Stack",
    "compile_model",
    "measure",
]
