"""Other runtimes to measure beside luciole; each is imported only where it is asked for, in a
process of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from luciole.ir import Array, LucioleError
from luciole.ir.errors import missing_extra
from luciole.tools.bench.process import RemoteRuntime
from luciole.tools.bench.runtime import BenchError, Port, Runtime, Shape, filled
from luciole.tools.bench.tensors import TensorRuntime
from luciole.tools.common.command import UsageError


class LiteRT(TensorRuntime):
    """LiteRT (TensorFlow Lite) with its default delegate, XNNPACK."""

    kind = "litert"

    def __init__(self, path: Path, threads: int, shapes: Sequence[Shape]) -> None:
        super().__init__(path)
        litert = _imported("ai_edge_litert.interpreter", self.kind, "litert", "ai-edge-litert")
        with self.phases.timed("load"):
            self.start(litert.Interpreter(model_path=str(path), num_threads=threads), shapes)


class OnnxRuntime(Runtime):
    """ONNX Runtime's CPU provider. Inputs and outputs are bound, so that ``invoke`` copies nothing;
    with copies it is ``InferenceSession.run``.
    """

    kind = "onnxruntime"

    def __init__(self, path: Path, threads: int, shapes: Sequence[Shape]) -> None:
        super().__init__(path)
        self.ort = _imported("onnxruntime", self.kind, "onnx", "onnxruntime")
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        with self.phases.timed("load"):
            providers = ["CPUExecutionProvider"]
            self.session = self.ort.InferenceSession(str(path), options, providers=providers)
        own_shapes = list(shapes) + [()] * len(self.session.get_inputs())
        self.inputs = [
            Port.of(i.name, _onnx_dtype(i.type), filled(i.shape, shape))
            for i, shape in zip(self.session.get_inputs(), own_shapes, strict=False)
        ]
        self.outputs = [
            Port.of(o.name, _onnx_dtype(o.type), filled(o.shape, ()))
            for o in self.session.get_outputs()
        ]
        self._bind()

    def _bind(self) -> None:
        binding = self.session.io_binding()
        self._values = []
        for port in self.inputs:
            value = self.ort.OrtValue.ortvalue_from_numpy(np.zeros(port.shape, port.dtype))
            binding.bind_ortvalue_input(port.name, value)
            self._values.append(value)
        for port in self.outputs:
            binding.bind_output(port.name)
        self._binding = binding
        self.invoke = lambda: self.session.run_with_iobinding(binding)

    def feed(self, arrays: Sequence[Array]) -> None:
        """Copy arrays into the bound ones."""
        for value, array in zip(self._values, arrays, strict=True):
            value.update_inplace(array)

    def fetch(self) -> list[Array]:
        """Return copies of the arrays bound to the outputs."""
        return list(self._binding.copy_outputs_to_cpu())

    def with_copies(self, arrays: Sequence[Array]) -> list[Array]:
        """Call ``run``, as users call it."""
        names = (port.name for port in self.inputs)
        return list(self.session.run(None, dict(zip(names, arrays, strict=True))))


class Onert(Runtime):
    """Samsung's onert on its cpu backend. Its number of threads is set by the environment alone."""

    kind = "onert"

    def __init__(self, path: Path, threads: int, shapes: Sequence[Shape]) -> None:
        super().__init__(path)
        onert = _imported("onert.infer", self.kind, "onert", "onert")
        with self.phases.timed("load"):
            self.session = onert.session(str(path))
            infos = self.session.get_inputs_tensorinfo()
            own_shapes = list(shapes) + [()] * len(infos)
            self.inputs = [
                Port.of(f"input {i}", info.dtype, filled(info.dims[: info.rank], shape))
                for i, (info, shape) in enumerate(zip(infos, own_shapes, strict=False))
            ]
            results = self.session.infer([np.zeros(p.shape, p.dtype) for p in self.inputs])
        self.outputs = [
            Port.of(f"output {i}", result.dtype, result.shape) for i, result in enumerate(results)
        ]
        self.invoke = self.session.session.run

    def feed(self, arrays: Sequence[Array]) -> None:
        """Call ``set_inputs``, which copies."""
        self.session.set_inputs(len(arrays), arrays)

    def fetch(self) -> list[Array]:
        """Return copies of the outputs."""
        results = [self.session.session.get_output(i) for i in range(len(self.outputs))]
        return [np.array(array) for array in results]


Open = Callable[[Path, int, Sequence[Shape]], Runtime]
PEERS: dict[str, Open] = {"litert": LiteRT, "onnxruntime": OnnxRuntime, "onert": Onert}


def open_peer(spec: str, threads: int, shapes: Sequence[Shape]) -> Runtime:
    """Open the runtime of ``RUNTIME:FILE``, or luciole for a file alone.

    ``shapes`` are the inputs' shapes where the file leaves them open. Raises UsageError for a
    runtime that there is not, BenchError when the file is missing or the runtime refuses it,
    CrashError when that ends its process, and LucioleError when the runtime's package is missing.
    """
    kind, colon, file = spec.partition(":")
    if not colon or kind not in PEERS:
        if colon and not Path(spec).exists():
            raise UsageError(f"{kind!r} is no runtime to compare with: there is {', '.join(PEERS)}")
        from luciole.tools.bench.ours import LuciolePeer  # not in the processes of other runtimes

        return LuciolePeer(Path(spec), threads, shapes)
    path = Path(file)
    if not path.is_file():
        raise BenchError(f"{spec}: there is no file {file!r}")
    return RemoteRuntime(kind, path, threads, shapes)


def open_here(kind: str, path: Path, threads: int, shapes: Sequence[Shape]) -> Runtime:
    """Open a runtime of another project in this process. Raises BenchError when its package is
    missing, or when it refuses the file.
    """
    try:
        return PEERS[kind](path, threads, shapes)
    except LucioleError:
        raise
    except Exception as error:  # whatever another project raises
        raise BenchError(f"{kind} cannot run {path.name}: {_first_line(error)}") from error


def _imported(module: str, kind: str, extra: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        why = "" if isinstance(error, ModuleNotFoundError) else f" ({_first_line(error)})"
        need = f"comparing with {kind} needs the package {package}{why}"
        raise missing_extra(need, extra) from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _onnx_dtype(text: str) -> str:
    """Turn ``tensor(float)`` into NumPy's name."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(inner, inner)
