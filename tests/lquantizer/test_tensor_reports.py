"""What a report says of tensors that became integers: measured on the tensors themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import luciole
from luciole.ir import Array
from luciole.ir.quantization import Affine
from luciole.lquantizer.report import TensorReport
from tests.lquantizer.networks import images
from tests.lquantizer.runs import records


@cache
def every_tensor(scheme: str) -> tuple[dict[str, TensorReport], dict[str, Array], luciole.Model]:
    model = images()
    x = records(model)
    result = luciole.quantize(model, x, scheme=scheme, rescale="none", proof=False)
    reports: dict[str, TensorReport] = {}
    for report in result.report.tensors:
        reports.setdefault(report.name, report)
    floats = luciole.Interpreter(model, keep_tensors=True)
    held: dict[str, list[Array]] = {name: [] for name in reports}
    for row in x["x"]:
        floats.run({"x": row[None]})
        for value in floats.graph.values:
            if value.name in held:
                index = floats.graph.values.index(value)
                held[value.name].append(floats.get_tensor(index))
    return reports, {name: np.stack(arrays) for name, arrays in held.items()}, result.model


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_figures_are_those_of_the_tensors(scheme: str) -> None:
    reports, held, _ = every_tensor(scheme)
    assert {"x", "t5", "t10", "t13", "t14", "t21", "t36"} <= reports.keys()
    for name, report in reports.items():
        x = held[name].astype(np.float64)
        assert (report.low, report.high) == pytest.approx((x.min(), x.max()), rel=1e-6)
        kept = np.clip(x, report.least, report.most)
        rounded = report.least + np.rint((kept - report.least) / report.step) * report.step
        ratio = 10 * np.log10(np.square(x).sum() / np.square(rounded - x).sum())
        # of steps finer than a bin only their mean error is known
        assert report.snr_db == pytest.approx(ratio, abs=1.0 if scheme == "int8" else 2.0)
        beyond = np.mean((x < report.least - report.step / 2) | (x > report.most + report.step / 2))
        assert report.clipped == pytest.approx(beyond, abs=2e-3)


def test_steps_and_rules_are_those_of_the_file() -> None:
    reports, _, model = every_tensor("int8")
    for op in model.graph.ops:
        if op.name in reports and op.results[0].dtype.name == "INT8":
            (step, *_), _ = Affine.of(op.results[0], "it").parameters
            assert reports[op.name].step == pytest.approx(float(step))
    assert reports["t5"].rule == "mse"
    assert reports["t36"].rule == "fixed by SOFTMAX"
    assert reports["t24"].rule == "mse, shared with 4 more"
