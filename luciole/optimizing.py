"""Rewrite models by passes that are chosen by their names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from luciole.importers import load
from luciole.ir import LucioleError, Model
from luciole.ir.checked import checked
from luciole.ir.passes.registry import (
    O1,
    Change,
    NamedPass,
    chosen,
    make_canonical,
    run_on_model,
)
from luciole.kernels.core.evaluation import evaluate

TARGETS = ("tflite", "circle")


@checked
def optimize(
    model: str | os.PathLike[str] | Model,
    passes: str | Iterable[str] | None = None,
    *,
    preset: str = O1,
    without: Iterable[str] = (),
    target: str = "tflite",
) -> Model:
    """Make a model simpler without changing what it computes but for rounding; the model itself
    stays as it is. Inputs and outputs keep their names.

    ``passes``, a name or several, are run until none changes anything, those of a ``preset`` ("o1",
    "canonical", "none"; such a name may stand among passes) where none are named, ``without`` some;
    `luciole optimize --list` shows them. For the ``target`` "circle" they may make operators that
    only .circle files have (INSTANCE_NORM, RMS_NORM, ROPE). Raises LucioleError for names that no
    pass has, and ShapeError, naming the operator, where operands do not fit together.
    """
    if target not in TARGETS:
        raise LucioleError(f"target is {target!r}: {' or '.join(TARGETS)} is needed")
    named = chosen(preset, passes, without, circle=target == "circle")
    work = model.clone() if isinstance(model, Model) else load(model)
    rewrite_model(work, named)
    return work


def rewrite_model(model: Model, passes: Sequence[NamedPass]) -> dict[str, Change]:
    """Run passes on a model itself, and return what each changed."""
    return run_on_model(model, passes, evaluate)


def canonical(model: Model) -> Model:
    """Copy a model in the form that quantizers begin with, which importers give."""
    copy = model.clone()
    make_canonical(copy, evaluate)
    return copy
