"""Where kernels are looked for: in the file with the name of their operator's."""

from __future__ import annotations

import subprocess
import sys

STRAY = """
import sys
import luciole.ir.ops
from luciole.kernels.core import discovery, registry
from luciole.kernels.portable import calls

registered = set()

def home():
    frame = sys._getframe(2)
    def inside(name): return name.startswith("luciole.kernels")
    while frame.f_code.co_name != "<module>" or not inside(frame.f_globals["__name__"]):
        frame = frame.f_back
    return frame.f_globals["__name__"]

def noting(register):
    def noted(table, cls, *rest):
        registered.add((cls, home()))
        return register(table, cls, *rest)
    return noted

registry._register = noting(registry._register)
registry._register_once = noting(registry._register_once)
discovery.load_kernels()
stray = []
for cls, module in registered:
    loaded = set()
    discovery.importlib = type("Recorder", (), {"import_module": loaded.add})
    discovery._load_named.cache_clear()
    discovery.load_kernels_of(cls)
    if cls.__module__.startswith(discovery.OPERATORS) and module not in loaded:
        stray.append(f"{cls.__name__} in {module}")
print(len(registered), *sorted(stray), sep="\\n")
"""
"""Prints how many operators register in how many files, and files that would not be imported."""


def python(source: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    return run.stdout.split("\n")[:-1]


def test_no_kernel_is_in_a_file_that_its_operator_does_not_import() -> None:
    count, *stray = python(STRAY)
    assert stray == []
    assert int(count) > 200


def test_kernels_of_families_are_found_first_of_all() -> None:
    source = """
from luciole.ir import TensorType
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.kernels.core import discovery, registry
discovery.load_kernels_of(LeakyRelu)
print((LeakyRelu, (TensorType.INT16,)) in registry._NATIVE)
"""
    assert python(source) == ["True"]


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
