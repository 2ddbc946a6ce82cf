"""Fine-tune one candidate of a search without labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from luciole.interpreter.records import Records
from luciole.ir import Model
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.lquantizer.assignment.options import FitOptions
from luciole.lquantizer.assignment.schemes import FLOAT
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.search.evaluate import Bench, config_of
from luciole.lquantizer.search.space import is_learned, recipe
from luciole.lquantizer.whole.levels import quantize_records
from luciole.lquantizer.whole.mixed import with_integers

FIT = "fit"
_TUNE = re.compile(r"finetune:([1-9][0-9]{0,5})(,mirror)?")


@dataclass(frozen=True)
class Finish:
    """How a front is finished: by the full fit alone, or by so many epochs of fine-tuning behind
    it, with images ``mirror`` turned left to right at random.
    """

    epochs: int = 0
    mirror: bool = False

    @classmethod
    def parse(cls, text: str) -> Finish:
        """Read "fit", "finetune:4" or "finetune:4,mirror". Raises QuantizeError for another."""
        if text == FIT:
            return cls()
        match = _TUNE.fullmatch(text)
        if match is None:
            raise QuantizeError(
                f"finish {text!r}: fit, finetune:EPOCHS and finetune:EPOCHS,mirror are possible"
            )
        return cls(int(match[1]), match[2] is not None)

    @property
    def stage(self) -> str:
        """Its name in a storage; ``parse`` reads it."""
        return f"finetune:{self.epochs}{',mirror' if self.mirror else ''}" if self.epochs else FIT


def is_finish(stage: str) -> bool:
    """Check whether a stage is the word of a fine-tuning."""
    return _TUNE.fullmatch(stage) is not None


def finished(bench: Bench, chosen: Mapping[str, str], training: Records, finish: Finish) -> Model:
    """Fit a network in full with an option for each layer, and fine-tune it to the float network.

    Layers with other than learned levels are float while learned ones are trained, and get their
    integers then; without any, thresholds of integers between layers are trained. Raises
    QuantizeError where nothing can be trained, UnsupportedError that lists operators without a
    differentiable form.
    """
    options = FitOptions(config=recipe(chosen), seed=bench.seed, spared=str(FLOAT))
    if not any(is_learned(option) for option in chosen.values()):
        fitted = bench.fit(chosen)
        if fitted.rounded is None:
            raise QuantizeError("integers of weights alone are not trained")
        return _tuned(bench, fitted, training, finish)
    method = OutputAware(bench.seed)
    learned = quantize_records(bench.model, bench.records, method, config_of(chosen))
    trained = replace(learned, model=_tuned(bench, learned, training, finish))
    return with_integers(trained, bench.model, bench.records, options).model


def _tuned(bench: Bench, fitted: Result, training: Records, finish: Finish) -> Model:
    from luciole.lquantizer.training import FinetuneSettings, finetune
    from luciole.lquantizer.training.uniform_settings import UniformSettings

    teacher = bench.model.clone()
    unroll_unidirseqlstm(teacher.graph)
    kind = FinetuneSettings if fitted.rounded is None else UniformSettings
    return finetune(
        fitted.rounded or fitted.model,
        teacher,
        training,
        epochs=finish.epochs,
        settings=kind(seed=bench.seed, mirror=finish.mirror),
        latents=fitted.latents,
        learned_from=fitted.learned_from,
    ).model
