"""Every scheme that a network is rewritten by, and how finely it rounds at least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Plain:
    """How finely a scheme rounds at the least: bits of weights (0: half precision), bits of all
    tensors between operators, and bits of what layers read, None where these stay float.
    ``minifloat`` are bits of exponent and mantissa of everything instead. Tensors on both sides of
    0 may be ``symmetric``, and weights have one scale ``by_tensor``.
    """

    weights: int = 8
    tensors: int | None = None
    inputs: int | None = None
    minifloat: tuple[int, int] | None = None
    symmetric: bool = False
    by_tensor: bool = False


@dataclass(frozen=True)
class Scheme:
    """A scheme by its name in the table, the words for ``luciole.quantize``, and its plain
    rounding; whether records are given.
    """

    name: str
    choices: dict[str, Any]
    plain: Plain
    has_data: bool = True
    needs_data: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        words = " ".join(f"{k}={v}" for k, v in self.choices.items() if k != "scheme")
        said = str(self.choices.get("scheme", "learned"))
        data = "" if self.has_data or self.needs_data else " without data"
        return f"{said} {words}".strip() + data


UNIFORM = {
    "int8": Plain(8, 8),
    "uint8": Plain(8, 8, by_tensor=True),
    "w4a8": Plain(4, 8),
    "int16x8": Plain(8, 16),
    "w4a16": Plain(4, 16),
    "mixed": Plain(3, 8, 4),
}
"""Schemes that learn from records; ``mixed`` may lose answers."""
ALONE = {
    "dynamic": Plain(8, None, 8),
    "dynamic4": Plain(4, None, 8),
    "weights": Plain(8),
    "weights4": Plain(4),
    "float16": Plain(0),
}
"""Schemes that need none."""
NAMES = (*UNIFORM, *ALONE, "learned", "even", "minifloat", "one")
TWINS = ("int8", "w4a8", "int16x8", "w4a16", "dynamic", "dynamic4", "weights", "weights4")
"""Schemes that rescale uneven channels."""

_QUICK: dict[str, Any] = {"ranges": "min_max", "rounding": "nearest"}
_WAYS: tuple[dict[str, Any], ...] = (
    *({}, {}, _QUICK, _QUICK, _QUICK, _QUICK),
    *({"rounding": "nearest"}, {"ranges": "min_max", "symmetric": True}),
    *(_QUICK | {"rescale": "none"}, _QUICK | {"input_type": "own"}),
    _QUICK | {"output_type": "own"},
)
"""What may be asked of uniform integers besides."""
_OWN = {"int8": "int8", "uint8": "uint8", "w4a8": "int8", "int16x8": "int16", "w4a16": "int16"}


def schemes_of(seed: int, number: int, share: float = 1.0) -> list[Scheme]:
    """List a share of all schemes for the network of a number, what is free of each drawn."""
    rng = np.random.default_rng((seed, number, 2))
    made = [_uniform(rng, name, plain) for name, plain in UNIFORM.items()]
    made += [
        Scheme(name, {"scheme": name}, plain, bool(rng.random() < 0.5), needs_data=False)
        for name, plain in ALONE.items()
    ]
    made += [_learned(rng), _even(rng), _minifloat(rng), _as_one(rng)]
    return [scheme for scheme in made if rng.random() < share]


def _uniform(rng: np.random.Generator, name: str, plain: Plain) -> Scheme:
    way = dict(_one_of(rng, _WAYS))
    if name == "mixed":
        drop = int(rng.integers(1, 4))
        least = 1 if drop == 2 else 4  # with fewer than 4 bits files are for luciole alone
        return Scheme(
            name, {"scheme": name, "target_drop": float(drop), "least_bits": least}, plain
        )
    way = {k: _OWN[name] if v == "own" else v for k, v in way.items()}
    symmetric = bool(way.get("symmetric"))
    return Scheme(name, {"scheme": name, **way}, replace(plain, symmetric=symmetric))


def _learned(rng: np.random.Generator) -> Scheme:
    weights, inputs = int(rng.integers(1, 5)), int(rng.integers(1, 9))
    choices: dict[str, Any] = {"encode_bits": f"w{weights}a{inputs}"}
    if rng.random() < 0.2:
        choices["all_layers"] = True
    return Scheme("learned", choices, Plain(weights, None, inputs))


def _even(rng: np.random.Generator) -> Scheme:
    word = str(_one_of(rng, ("w4a4", "w2a2", "w1a1", "w3a5", "w4a7", "w1a4")))
    return Scheme("even", {"scheme": word}, Plain(int(word[1]), 8, int(word[3])))


def _minifloat(rng: np.random.Generator) -> Scheme:
    exponent, mantissa = int(rng.integers(3, 6)), int(rng.integers(2, 8))
    choices = {"scheme": "minifloat", "exponent": exponent, "mantissa": mantissa}
    scaled = bool(rng.random() < 0.5)
    if scaled:
        choices["scaled"] = True
    return Scheme("minifloat", choices, Plain(minifloat=(exponent, mantissa)), has_data=scaled)


def _as_one(rng: np.random.Generator) -> Scheme:
    scheme, bits = _one_of(rng, (("uint8", 8), ("int16", 16)))
    choices = {"compatible": "one", "scheme": scheme}
    if rng.random() < 0.5:
        choices |= {"input_type": "float32", "output_type": "float32"}
    return Scheme("one", choices, Plain(bits, bits))


def _one_of(rng: np.random.Generator, several: Sequence[Any]) -> Any:
    return several[int(rng.integers(len(several)))]
