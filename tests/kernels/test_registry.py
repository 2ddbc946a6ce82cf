"""Where kernels are looked for: in the file with the name of their operator's."""

from __future__ import annotations

import subprocess
import sys

LATE = """
import luciole.ir.ops
from luciole.ir import CUSTOM_OPS, OPS
from luciole.kernels.core import registry
from luciole.kernels.portable import calls

def found():
    return {*registry.registered_now(), *(("C", *kind) for kind in calls.portable_now())}

early = set()
for cls in (*OPS.values(), *CUSTOM_OPS.values()):
    registry.load_kernels_of(cls)
    early |= {kernel for kernel in found() if kernel[1] is cls}
registry.load_kernels()
late = sorted(f"{kind} {cls.__name__} {signature}" for kind, cls, signature in found() - early)
print(len(early), *late, sep="\\n")
"""
"""Prints how many kernels their operators' own files hold, and those that other files hold."""


def python(source: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    return run.stdout.split("\n")[:-1]


def test_the_file_named_as_an_operators_registers_all_kernels_of_it() -> None:
    count, *late = python(LATE)
    assert late == []
    assert int(count) > 1000


def test_running_one_operator_imports_neither_other_kernels_nor_what_quantizes() -> None:
    source = """
import sys, numpy, luciole
from luciole.ir import Graph, Model
from luciole.ir.ops.activations import Relu
model = Model()
graph = model.add_graph(Graph("main"))
x = graph.add_input("x", (1, 4))
graph.append(Relu(x), "y")
graph.outputs = [graph.values[-1]]
luciole.Interpreter(model).run({"x": numpy.ones((1, 4), numpy.float32)})
print(*sys.modules, sep="\\n")
"""
    modules = python(source)
    assert "luciole.kernels.activations" in modules
    rooms = ("luciole.lquantizer", "luciole.compiler", "luciole.tools")
    assert not [name for name in modules if name.startswith((*rooms, "luciole.kernels.conv_2d"))]
