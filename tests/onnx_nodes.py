"""Run ONNX's own tests: which pass, which are refused and why, and which are wrong.

    python3 -m tests.onnx_nodes              # of nodes: by operator; exit code 1 where one is wrong
    python3 -m tests.onnx_nodes --update     # and write docs/reference/onnx.md
    python3 -m tests.onnx_nodes Conv         # those of operators with this in their names
    python3 -m tests.onnx_nodes --models     # the models in the package: pytorch-operator, ...
    python3 -m tests.onnx_nodes --networks   # nine known networks against onnxruntime

Onnx makes the tests of nodes itself (``onnx.backend.test``): models of a node each, inputs, and
results by its NumPy definitions. Inputs that say shapes, axes and the like are given as constants,
as files have them.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import luciole
from luciole.importers.onnx.model import from_proto
from luciole.importers.onnx.rules import ruled
from luciole.ir import Array, LucioleError, UnsupportedError

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "onnx.md"

CONSTANT = {
    "AffineGrid": [1],
    "CenterCropPad": [1],
    "Clip": [1, 2],
    "ConstantOfShape": [0],
    "ConvTranspose": [1],
    "CumProd": [1],
    "CumSum": [1],
    "DFT": [1, 2],
    "Dropout": [1, 2],
    "Expand": [1],
    "GRU": [1, 2, 3],
    "If": [0],
    "LSTM": [1, 2, 3, 4, 7],
    "Loop": [0, 1],
    "NonMaxSuppression": [2, 3, 4],
    "OneHot": [1, 2],
    "Pad": [1, 2, 3],
    "RNN": [1, 2, 3],
    "Range": [0, 1, 2],
    "Reshape": [1],
    "Resize": [1, 2, 3],
    "Slice": [1, 2, 3, 4],
    "STFT": [1, 3],
    "Split": [1],
    "Squeeze": [1],
    "Tile": [1],
    "TopK": [1],
    "Trilu": [1],
    "Unsqueeze": [1],
    "Upsample": [1],
}
"""Operands that are constant in files: those that say extents, axes, counts, or are weights."""
REDUCTION = "Reduce"
PASSED, REFUSED, WRONG = "passed", "refused", "wrong"
HELD = {"int": np.int8, "uint": np.uint8, "float": np.float32, "bfloat": np.float32}
"""The arrays that hold numbers of types that NumPy lacks: of BFLOAT16, FLOAT8, INT4, ..."""
FRACTION = 7
"""Bits of BFLOAT16's fraction."""
SPACINGS = 2
"""Of float16, that results of two right ways may be apart: ONNX's definitions round to it behind
every step, luciole as onnxruntime computes with float32 between them.
"""

IN_SINGLE = ("test_dft_inverse", "test_dft_inverse_opset19")
"""Tests whose results are those of NumPy's transform along axis 1 in single precision, whose noise
of 1.5e-6 is more than they allow: they are held to the transform in double precision.
"""

HEAD = """\
# ONNX's operators

`.onnx` files are read like any other ([from PyTorch to 2 bits](../how-to/from-pytorch.md)):
operator sets 6 to the newest, constants in files below the model's folder, functions of the model
and of ONNX itself, If, Loop and Scan, open extents, nodes in any order.

What cannot be imported is listed with its reason and exit code 3.

LSTM, GRU and RNN of up to {long} steps become operators step by step, longer ones a WHILE; no state
is kept from run to run. Loop and Scan of more steps become a WHILE, too, and so do those whose
number of steps or condition is computed: values that they carry keep their shapes, and results of
steps are collected where a count bounds the steps.

double is computed as float32, uint64 as int64, element types that an operator lacks as wider ones.
bfloat16 is float32 throughout. FLOAT8 and FLOAT4 are held in float32, integers of 2 and 4 bits in
bytes, and no result is rounded to them.

## Quantized networks of other tools

- QDQ and QLinear operators (`quantize_static`): operators on integers, with the file's scales and
  zero points.
- DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast and Mul (`quantize_dynamic`): TFLite's
  hybrid layer, of float inputs and INT8 weights, which have the file's numbers; what zero points
  put beyond 8 bits is a second sum. Each row or image has a grid of its own, where onnxruntime has
  one for the tensor: of one row the results are onnxruntime's, else about as far from the float
  network's.
- DynamicQuantizeLSTM: LSTM with the same weights as floats.
- QAttention: attention whose weights are read as that of dynamic inputs, or as QDQ layers.
- MatMulNBits of 2 and 4 bits: FULLY_CONNECTED with blockwise INT4 weights, whose scales have 16
  bits, as TFLite's; zero points are a second layer on the sums of blocks. Of 8 bits: floats.
- What onnxruntime's optimizer writes (Attention, MultiHeadAttention without earlier keys,
  SkipLayerNormalization, EmbedLayerNormalization, BiasGelu, FusedConv, ...): what it was made of.
- float16 files (`convert_float_to_float16`): computed with 32 bits, as onnxruntime does on
  processors; constants keep 16, behind DEQUANTIZE, and inputs and outputs what the file says.
- MatMulInteger and ConvInteger elsewhere: exact sums of floats, added as INT32.

## Tests of nodes

ONNX's own tests of nodes: {total} in onnx {version}, of which {passed} pass, {refused} are refused
and {wrong} wrong. Printed by `python -m tests.onnx_nodes`.

"""


class Outcome(NamedTuple):
    """What came of one test."""

    name: str
    operators: tuple[str, ...]
    state: str
    reason: str


def cases() -> list[Any]:
    """Make the tests of nodes, as the installed onnx has them."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind="node"))


def some_cases(*modules: str) -> list[Any]:
    """Make the tests of a few of onnx's files, which is much faster than all."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules:
            importlib.import_module(f"{node.__name__}.{module}")
    return list(node._NodeTestCases)


def model_cases() -> Iterator[Any]:
    """Yield the tests of models whose files are in the package."""
    import onnx
    from onnx.backend.test.loader import load_model_tests

    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            folder = Path(case.model_dir or "")
            model = onnx.load(folder / "model.onnx")
            sides = (sorted(folder.glob(f"test_data_set_0/{n}_*.pb")) for n in ("input", "output"))
            first, second = ([_proto(path) for path in side] for side in sides)
            yield replace(case, model=model, data_sets=[(first, second)])


def _proto(path: Path) -> Any:
    """Read a tensor; what is none is given as bytes, which nothing takes."""
    from onnx import TensorProto, numpy_helper

    try:
        return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))
    except Exception:
        return path.read_bytes()


def constants(model: Any, feeds: dict[str, Any]) -> set[str]:
    """The inputs that are constant in files."""
    found = set()
    for node in model.graph.node:
        slots = [1] if node.op_type.startswith(REDUCTION) else CONSTANT.get(node.op_type, [])
        found |= {node.input[i] for i in slots if i < len(node.input)}
    return found & set(feeds)


def outcome(case: Any, *, as_files: bool = True, compiled: bool = True) -> Outcome:
    """Import and run one test, and compare what it gives."""
    model = case.model
    operators = tuple(sorted({_called(node) for node in model.graph.node}))
    inputs, wanted = case.data_sets[0]
    wanted = [_inverse(_array(inputs[0]))] if case.name in IN_SINGLE else wanted
    given = {v.name for v in model.graph.initializer}
    names = [v.name for v in model.graph.input if v.name not in given]
    feeds = dict(zip(names, map(_array, inputs), strict=False))
    fixed = constants(model, feeds) if as_files else set()
    try:
        got = answers(model, feeds, fixed, compiled=compiled)
    except UnsupportedError as error:
        return Outcome(case.name, operators, REFUSED, "; ".join(error.missing))
    except LucioleError as error:
        return Outcome(case.name, operators, REFUSED, f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(case.name, operators, WRONG, f"{type(error).__name__}: {error}")
    reason = difference(list(got.values()), wanted, case.rtol or 1e-3, case.atol or 1e-6)
    if list(got) != [output.name for output in model.graph.output]:
        reason = f"results have the names {', '.join(got)}"
    return Outcome(case.name, operators, WRONG if reason else PASSED, reason)


def _inverse(parts: Array) -> Array:
    """Transform real and imaginary parts [..., 2] back along axis 1."""
    found = np.fft.ifft(parts.astype(np.float64).view(np.complex128)[..., 0], axis=1)
    return np.stack([found.real, found.imag], -1).astype(parts.dtype)


def answers(
    model: Any, feeds: dict[str, Any], fixed: set[str], *, compiled: bool = True
) -> dict[str, Array]:
    """Import a model, ``fixed`` inputs as constants, and run it; results by their names."""
    arrays = {n: np.asarray(a) for n, a in feeds.items() if isinstance(a, np.ndarray | np.generic)}
    imported = from_proto(model, {n: arrays[n] for n in fixed if n in arrays})
    given = {name: a for name, a in arrays.items() if name not in fixed}
    return dict(luciole.Interpreter(imported, compiled=compiled).run(given))


def _array(given: Any) -> Any:
    """Inputs may be protos; lists and optionals stay as they are."""
    return _held(_read(given))


def _read(given: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(given) if isinstance(given, TensorProto) else given


def _held(given: Any) -> Any:
    """Hold numbers of a type that NumPy lacks in one that it has."""
    if not isinstance(given, np.ndarray | np.generic) or given.dtype.isbuiltin == 1:
        return given
    (kind,) = re.findall("^[a-z]+", given.dtype.name)
    return given.astype(HELD[kind]) if kind in HELD else given


def _called(node: Any) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)


def difference(got: Sequence[Array], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """Say how results differ, nothing where they do not."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for found, source in zip(got, wanted, strict=True):
        right = np.asarray(_array(source))
        if (found.dtype, found.shape) != (right.dtype, right.shape):
            return f"{found.dtype}{list(found.shape)}, not {right.dtype}{list(right.shape)}"
        if not (_same(found, right, rtol, atol) or _is_near(found, right, source)):
            return "other numbers"
    return ""


def _same(found: Array, right: Array, rtol: float, atol: float) -> bool:
    if found.dtype.kind in "OUS":
        return bool(found.tolist() == right.tolist())
    if np.allclose(found, right, rtol, atol, equal_nan=True):
        return True
    if found.dtype != np.float16:
        return False
    apart = np.abs(found.astype(np.float64) - right.astype(np.float64))
    return bool((apart <= SPACINGS * np.spacing(np.abs(right)).astype(np.float64)).all())


def _is_near(found: Array, right: Array, source: Any) -> bool:
    """Whether numbers are those of BFLOAT16 but for the rounding behind each step."""
    kind = getattr(_read(source), "dtype", None)
    if kind is None or np.dtype(kind).name != "bfloat16":
        return False
    finite = np.isfinite(right)
    if not np.array_equal(found[~finite], right[~finite], equal_nan=True):
        return False
    exact = right[finite].astype(np.float64)
    with np.errstate(divide="ignore"):
        spacing = np.exp2(np.floor(np.log2(np.abs(exact))) - FRACTION)
    return bool((np.abs(found[finite] - exact) <= SPACINGS * spacing).all())


def run(wanted: str = "") -> Iterator[Outcome]:
    """Run the tests of operators with this in their names."""
    for case in cases():
        if not wanted or any(wanted in node.op_type for node in case.model.graph.node):
            yield outcome(case)


def page(outcomes: Sequence[Outcome]) -> str:
    """The page of docs: how many pass, and a line for each operator."""
    import onnx

    from luciole.importers.onnx.operators.control_flow import MOST_STEPS

    states = Counter(found.state for found in outcomes)
    counts = {state: states[state] for state in (PASSED, REFUSED, WRONG)}
    head = HEAD.format(total=len(outcomes), version=onnx.__version__, long=MOST_STEPS, **counts)
    return head + table(outcomes) + "\n\n" + rules_text()


def rules_text() -> str:
    """List the operators with a rule of their own: all others go by their functions' bodies."""
    names = [f"{domain}.{kind}" if domain else kind for domain, kind in ruled()]
    return (
        f"{len(names)} operators have a rule of their own: {', '.join(names)}. "
        "Others are imported by the function bodies that ONNX defines.\n"
    )


def table(outcomes: Iterable[Outcome]) -> str:
    """A line for each operator: passed, refused, wrong, and a reason of what is refused."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, str] = {}
    for found in outcomes:
        for name in found.operators:
            counts[name][found.state] += 1
            if found.state == REFUSED:
                reasons.setdefault(name, found.reason.partition("; ")[0])
    lines = [
        "| operator | passed | refused | wrong | refused, for example |",
        "|---|---|---|---|---|",
    ]
    for name, states in sorted(counts.items()):
        numbers = " | ".join(str(states[s] or "") for s in (PASSED, REFUSED, WRONG))
        reason = " ".join(reasons.get(name, "").replace("|", "/").split())[:120]
        lines.append(f"| {name} | {numbers} | {reason} |")
    return "\n".join(lines)


def networks(wanted: str) -> int:
    """Print how far the package's networks, with random weights, are from onnxruntime's results."""
    import onnx
    import onnxruntime  # type: ignore[import-untyped]  # it has no types

    worst, options = 0.0, onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    for path in (p for p in light_networks() if wanted in p.name):
        model = without_softmax(with_weights(onnx.load(path)))
        oracle = onnxruntime.InferenceSession(model.SerializeToString(), options)
        feeds = {v.name: RANDOM.random(v.shape, np.float32) for v in oracle.get_inputs()}
        imported = from_proto(model)
        (got,) = luciole.Interpreter(imported).run(feeds).values()
        (want,) = oracle.run(None, feeds)
        apart = float(np.abs(got - want).max() / np.abs(want).max())
        turned = sum(op.kind == "TRANSPOSE" for op in imported.graph.ops)
        sizes = f"{len(model.graph.node)} nodes, {len(imported.graph.ops)} operators"
        print(f"{path.stem}: {sizes}, {turned} TRANSPOSE, {apart:.1e} apart", flush=True)
        worst = max(worst, apart)
    return 0 if worst <= 1e-5 else 1


RANDOM = np.random.default_rng(0)


def light_networks() -> list[Path]:
    """List the files of the package's networks."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return sorted(folder.glob("*.onnx"))


def without_softmax(model: Any) -> Any:
    """Let a network give what its last softmax reads: of random weights that is tens, and a softmax
    makes relative differences of absolute ones.
    """
    (output,) = model.graph.output
    for node in [n for n in model.graph.node if n.op_type == "Softmax"]:
        if list(node.output) == [output.name] and len(output.type.tensor_type.shape.dim) == 2:
            output.name = node.input[0]
            model.graph.node.remove(node)
    return model


def with_weights(model: Any) -> Any:
    """Give a network random weights: the package has them as constants of one number."""
    from onnx import numpy_helper

    shapes = {t.name: numpy_helper.to_array(t).tolist() for t in model.graph.initializer}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type != "ConstantOfShape":
            model.graph.node.append(node)
            continue
        shape = shapes[node.input[0]]
        spread = (2 / max(1, int(np.prod(shape[1:])))) ** 0.5
        array = RANDOM.standard_normal(shape, np.float32) * np.float32(spread)
        array = array if len(shape) > 1 else RANDOM.uniform(0.2, 0.6, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
    return model


def main() -> int:
    """Print the table, and what is refused and wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="?", default="")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--networks", action="store_true")
    arguments = parser.parse_args()
    if arguments.networks:
        return networks(arguments.wanted)
    if arguments.models:
        outcomes = [outcome(case, as_files=False) for case in model_cases()]
    else:
        outcomes = list(run(arguments.wanted))
        print(table(outcomes))
    for found in outcomes:
        if found.state != PASSED:
            print(f"{found.state} {found.name}: {found.reason[:200]}")
    states = Counter(found.state for found in outcomes)
    print(f"{len(outcomes)} tests: {dict(states)}")
    if arguments.update and not arguments.wanted and not arguments.models:
        PAGE.write_text(page(outcomes))
    return 1 if states[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
