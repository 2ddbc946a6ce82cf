"""Arguments of another kind than the one needed are refused in one line, whichever call gets
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers.extents import Settled, constant_of
from luciole.interpreter.errors import InputError
from luciole.ir import LucioleError, Model, TensorType
from luciole.lquantizer import FitOptions, UniformOptions
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.search.cluster import Cluster
from luciole.lquantizer.search.options import SearchOptions
from luciole.tools.random_models import dense
from tests.support import refusal_of

X = np.zeros((4, 6), np.float32)
NAN = np.full((4, 6), np.nan, np.float32)
RAGGED: Any = [[1], [2, 3]]


def wrong(argument: object) -> Any:
    """Pass an argument of another type than the one that is declared."""
    return argument


class NeedsGradient:
    """Refuses to become an array as a tensor of torch does that requires a gradient."""

    def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
        raise RuntimeError("call detach() first")


@pytest.fixture
def model() -> Model:
    return dense((6, 5, 3))


def ready(model: Model) -> luciole.Interpreter:
    interpreter = luciole.Interpreter(model, compiled=False)
    interpreter.allocate_tensors()
    return interpreter


def implanted(model: Model, **entry: object) -> Model:
    return luciole.implant(model, {"x": {"dtype": "uint8", "scale": [1.0], "zerop": [0], **entry}})


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda m: luciole.load("x.circle", shapes={"x": wrong(6)}), "shape of x: a list of exten"),
        (lambda m: luciole.load("x.circle", shapes={"x": wrong("1,6")}), "list of extents is need"),
        (lambda m: constant_of("x", RAGGED, (2,), TensorType.FLOAT32), "for the input 'x' is no a"),
        (lambda m: luciole.load("a\0b.circle"), "null"),
        (lambda m: luciole.load(""), "source: the path of a model is needed, found ''"),
        (lambda m: luciole.run(m, wrong(NeedsGradient())), "is no array: call detach() first"),
        (lambda m: ready(m).run(NeedsGradient()), "input 'x': call detach() first"),
        (lambda m: ready(m).set_tensor(0, RAGGED), "Cannot set tensor 'x': "),
        (lambda m: ready(m).set_tensor(0, NeedsGradient()), "tensor 'x': call detach() first"),
        (lambda m: ready(m).set_tensor(wrong([0]), X), "there is no tensor [0], they are numbered"),
        (lambda m: ready(m).set_tensor(False, X[:1]), "there is no tensor False, they are numb"),
        (lambda m: ready(m).get_tensor(wrong([0])), "there is no tensor [0], they are numbered"),
        (lambda m: ready(m).get_tensor(wrong({})), "there is no tensor {}, they are numbered"),
        (lambda m: ready(m).get_tensor(wrong(np.arange(2))), "there is no tensor array([0, 1])"),
        (lambda m: ready(m).get_signature_runner(wrong([])), "signature_key: a text is needed"),
        (
            lambda m: ready(m).attach_observer(wrong(3)),
            "derives from Observer is needed",
        ),
        (lambda m: luciole.Interpreter(m, loop_limit=-1), "loop_limit is -1, it must be 1 or m"),
        (lambda m: luciole.Interpreter(m, loop_limit=wrong("a")), "loop_limit: a whole number is"),
        (lambda m: luciole.quantize(m, X, scheme="int8", ranges_from=wrong(3)), "a file's path, R"),
        (
            lambda m: luciole.quantize(m, X, scheme="int8", ranges_from=[wrong(3)]),
            "s path, Ranges",
        ),
        (lambda m: luciole.quantize(m, X, labels=RAGGED), "labels are no array"),
        (lambda m: luciole.quantize(m, X, labels=wrong(3)), "labels are an array whose first axis"),
        (lambda m: luciole.finetune(m, m, X, epochs=1, labels=wrong(3)), "array whose first axis"),
        (lambda m: luciole.search(m, X, "out", labels=RAGGED), "labels are no array"),
        (lambda m: UniformOptions(wrong(3)), "scheme: a text is needed, found int"),
        (
            lambda m: UniformOptions(granularity=wrong(3)),
            "granularity: a text is needed",
        ),
        (lambda m: UniformOptions(input_type=wrong(["int8"])), "input_type: a text is needed, fou"),
        (lambda m: UniformOptions("mixed", least_bits=wrong("a")), "least_bits: a whole number is"),
        (lambda m: UniformOptions(seed=wrong("a")), "seed: a whole number is needed, found str"),
        (lambda m: FitOptions(seed=wrong(0.5)), "seed: a whole number is needed, found float"),
        (lambda m: SearchOptions(evaluations=wrong("a")), "evaluations: a whole number is needed"),
        (lambda m: SearchOptions(seed=wrong("a")), "seed: a whole number is needed, found str"),
        (lambda m: SearchOptions(minutes=wrong("a")), "minutes: a number is needed, found str"),
        (
            lambda m: luciole.evaluate(m, X, np.eye(4, 3)),
            "(one-hot labels: give labels.argmax(-1))",
        ),
        (lambda m: SearchOptions(workers=99_999), "workers is 99999, this machine takes "),
        (lambda m: luciole.quantize(m, X, scheme="int8", judges=NAN), "of record 0 is nan"),
        (lambda m: luciole.quantize(m, scheme="weights", judges=NAN), "of record 0 is nan"),
        (lambda m: luciole.custom_operator(wrong(3)), "custom_operator: the code as a text"),
        (lambda m: luciole.custom_operator(wrong(print)), '@custom_operator("Swish"), is needed'),
        (lambda m: luciole.custom_operator(""), "custom_operator: the code is an empty text"),
        (lambda m: luciole.custom_operator("Odd")(wrong(3)), "('Odd'): a function is needed"),
        (lambda m: Metric.of(wrong(3)), "a function or FILE.py:function is needed, found int"),
        (lambda m: luciole.implant(m, {"x": wrong(3)}), "tensor 'x': a dictionary is needed, fou"),
        (lambda m: implanted(m, scale=RAGGED), "tensor 'x': scale is no array"),
        (lambda m: implanted(m, value=RAGGED), "tensor 'x': value is no array"),
        (lambda m: luciole.Compiled(wrong(3)), "path: the path of a library is needed, found int"),
        (lambda m: luciole.Compiled(wrong(m)), "the path of a library is needed, found Model"),
    ],
)
def test_another_kind_of_argument_is_refused(
    model: Model, use: Callable[[Model], object], sentence: str
) -> None:
    assert sentence in refusal_of(use, model)


def test_a_quantized_input_takes_no_nan(model: Model) -> None:
    quantized = luciole.quantize(model, X + 1, scheme="int8", input_type="int8", proof=False).model
    for inputs in (NAN, {"x": NAN[:1].tolist()}):
        with pytest.raises(InputError, match="input 'x' is quantized: NaN has no code"):
            luciole.Interpreter(quantized, compiled=False).run(inputs)
    with pytest.raises(InputError, match="input 'x' is quantized: NaN has no code"):
        luciole.run(quantized, NAN, compiled=False)


def test_settled_shapes_are_lists_tuples_and_arrays() -> None:
    assert Settled(shapes={"x": [1, None], "y": (2,), "z": wrong(np.array([3]))})


def test_observers_are_attached_once(model: Model) -> None:
    interpreter, observer = ready(model), luciole.interpreter.Observer()
    interpreter.attach_observer(observer)
    with pytest.raises(InputError, match="attached already"):
        interpreter.attach_observer(observer)
    interpreter.detach_observer(observer)
    with pytest.raises(InputError, match="is not attached"):
        interpreter.detach_observer(observer)


def test_a_file_is_no_folder_for_c_sources(model: Model, tmp_path: Path) -> None:
    (tmp_path / "net.circle").write_bytes(b"")
    with pytest.raises(LucioleError, match=r"net\.circle cannot be made a folder: File exists"):
        luciole.compile(model, tmp_path / "net.circle", "net")


def test_the_address_of_a_cluster_has_a_port() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(LucioleError, match="no Dask scheduler with a worker: missing port"):
        Cluster("nowhere", lambda: lambda task: task)


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"labelled_output": "fc1"}, "labelled_output goes with labels"),
        ({"resume": True}, "resume goes with a checkpoint"),
    ],
)
def test_choices_of_a_training_need_their_companions(
    model: Model, choices: dict[str, Any], sentence: str
) -> None:
    pytest.importorskip("tensorflow")
    with pytest.raises(LucioleError, match=sentence):
        luciole.finetune(model, model, X, epochs=1, proof=False, **choices)
