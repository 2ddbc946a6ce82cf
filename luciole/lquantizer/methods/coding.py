"""Code the weights of a layer by one of several codings, whose names reports and searches keep."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.formats.coded import Coded, Matrix
from luciole.lquantizer.methods.weight_codes import fit_codes, plain_codes
from luciole.lquantizer.network.problem import LayerProblem

DAMPING = 0.2
"""Added to the diagonal of the second moments, as a share of its mean: border pixels never vary.
With 1,000 records 0.1 to 0.3 gave 0.1 points more than 0.01 (MNIST, 1 and 2 bits)."""


@dataclass(frozen=True)
class Coding:
    """The aims of codes: outputs of the layer (``aware``); float weights that are ``refit`` to the
    quantized inputs with some strength, for a RELU behind them (``rectified``: these may be larger,
    which may cost more than it gains); an ``offset`` for each output.
    """

    aware: bool = True
    refit: float | None = None
    rectified: bool = False
    offset: bool = False

    def __str__(self) -> str:
        if not self.aware:
            return "plain"
        refit = "" if self.refit is None else f"refit {self.refit}"
        parts = ("output-aware", refit, "rectified" * self.rectified, "offset" * self.offset)
        return ", ".join(filter(None, parts))

    @classmethod
    def parse(cls, name: str) -> Coding:
        """Read a coding's name, such as "output-aware, refit 0.5, rectified"."""
        refit = re.search(r"refit ([0-9.]+)", name)
        strength = None if refit is None else float(refit[1])
        return cls(name != "plain", strength, "rectified" in name, "offset" in name)


@dataclass(frozen=True)
class Coder:
    """Codes a layer's weights in some bits, by any coding, for some or all (``whole``) of its
    rows.
    """

    problem: LayerProblem
    bits: int
    whole: Part
    even: bool = False
    _starts: dict[bool, Coded] = field(default_factory=dict)

    def coded(self, coding: Coding, part: Part, rounds: int) -> Coded:
        """Learn codes on some rows, in ``rounds`` alternations."""
        if not coding.aware:
            return self.plain
        target, start = self._weights, self._start(coding.offset)
        if coding.refit is not None:
            rectified = coding.rectified and part.floors is not None
            target = part.refitted(target, coding.refit, rectified)
        h = part.moments.damped(DAMPING)
        return fit_codes(h, target, start, coding.offset, rounds, self.even)

    @cached_property
    def plain(self) -> Coded:
        """The codes closest to the weights themselves."""
        return plain_codes(self._weights, self.bits, False, None, self.problem.seed, self.even)

    @cached_property
    def _weights(self) -> Matrix:
        """The float weights, input by output: [n, o]."""
        return np.ascontiguousarray(self.problem.weights.T, np.float32)

    def _start(self, offset: bool) -> Coded:
        """Return the codes that aware codings begin with, inputs counting by how much they vary."""
        if offset not in self._starts:
            moments, seed = self.whole.moments, self.problem.seed
            spread = np.maximum(moments.h.diagonal, 1e-3 * float(moments.size))
            start = plain_codes(self._weights, self.bits, offset, spread, seed, self.even)
            self._starts[offset] = start
        return self._starts[offset]
