"""Recipes whose words, numbers and nesting are changed, and what they are cooked into."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from luciole.exporters.recipe.text import to_recipe
from luciole.importers.recipe.cook import import_recipe
from luciole.ir import LucioleError
from luciole.ir.text.listing import dump_lines
from luciole.ir.verify import verify
from tests.fuzz.data.common import DataCase, check_refusal, choose, promised
from tests.fuzz.models import kinds, random_model
from tests.fuzz.mutations import Rng, damaged_bytes

PER_MODEL = 16
CONSTANTS_LIMIT = 64 << 20
_TOKEN = re.compile(r"\s+|\"[^\"\n]*\"|[A-Za-z_]\w*|[\d.+-]+(?:e[+-]?\d+)?|.")
_HAND = """
operand { name: "x" type: FLOAT32 shape { dim: 1 dim: 4 } }
operand { name: "w" type: FLOAT32 shape { dim: 3 dim: 4 }
  filler { tag: "gaussian" arg: "0" arg: "1" } }
operand { name: "s" type: INT8 shape { dim: 8 dim: 4 } make_sparse: true
  filler { tag: "explicit" arg: "1" arg: "0" arg: "5" }
  quant { min: -1 max: 1 scale: 0.1 zero_point: 3 } }
operand { name: "t" type: STRING shape { dim: 2 } filler { tag: "explicit" arg: "a" arg: "b" } }
operand { name: "p" type: INT4 shape { dim: 7 } filler { tag: "constant" arg: "3" } }
operand { name: "y" type: FLOAT32 shape { dim: 1 dim: 3 } shape_signature { dim: -1 dim: 3 } }
operation { type: "FullyConnected" input: "x" input: "w" input: "" output: "y"
  fullyconnected_options { activation: RELU } }
input: "x" output: "y" name: "net" version: 1
signature_def { signature_key: "f" inputs { name: "a" tensor: "x" }
  outputs { name: "b" tensor_index: 5 } }
"""
_WORDS = (
    "{", "}", "[", "]", "<", ">", ":", ",", ";", "-", '"', "'", "#", "\n", "\\", "\0", "{ a",
    '""', "'x'", '"gaussian"', '"constant"', '"explicit"', '"\\377\\u00e9\\n"', '"\\q"', '"\ud7ff"',
    "operand { }", "graph { }", "operation", "filler", "shape { dim: 3 }", "dim: 1 " * 40, "true",
    "FLOAT32", "INT4", "STRING", "VARIANT", "RESOURCE", "BOOL", "COMPLEX64", "UINT64", "RELU",
    "nan",
    "make_sparse: true", "sparsity { dim_metadata { dense_size: 3 } }", "is_variable: true",
    "quant { scale: 1e39 }", "mx_quant { }", '"' + "q" * 20_000 + '"', "z" * 20_000, "{" * 50,
    '""' * 5000, "a {" * 40, "dim: 2147483647 " * 30,
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "2", "7", "255", "256", "4096", "1000000", "100000000", "2147483647",
    "2147483648", "-2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "9" * 400, "9" * 1000, "9" * 1001, "1e308", "1e400", "-1e400", "1e-400", "0x7f", "0xffffffff",
    "017", "1.5", ".5", "2.", "1.5f", "-0", "1e5", "0x" + "f" * 900, "inf", "-nan",
)  # fmt: skip


def make(seed: int, number: int) -> DataCase:
    """The case of that number."""
    rng = np.random.default_rng([seed, 9, number])
    text = _HAND if rng.random() < 0.5 else _base(seed, number // PER_MODEL)
    if rng.random() < 0.15:
        return DataCase(number, damaged_bytes(rng, text.encode()), "damaged bytes")
    return DataCase(number, _changed(rng, text).encode("utf-8", "surrogateescape"), "other words")


@lru_cache(2)
def _base(seed: int, block: int) -> str:
    """The recipe of a random model."""
    rng = np.random.default_rng([seed, 10, block])
    for _ in range(20):
        cls, signature = choose(rng, kinds())
        try:
            return to_recipe(random_model(rng, cls, signature)[0], 100).text
        except LucioleError:
            continue
    return _HAND


def _changed(rng: Rng, text: str) -> str:
    tokens = _TOKEN.findall(text)
    for _ in range(int(choose(rng, [1, 1, 2, 3, 6]))):
        at = int(rng.integers(len(tokens)))
        kind = int(rng.integers(7))
        if kind == 0:
            del tokens[at : at + int(rng.integers(1, 4))]
        elif kind == 1:
            tokens[at:at] = tokens[at : at + int(rng.integers(1, 12))]
        elif kind == 2:
            other = int(rng.integers(len(tokens)))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = choose(rng, _WORDS)
        else:
            _renumber(rng, tokens)
        tokens = tokens or [" "]
    return "".join(tokens)


def _renumber(rng: Rng, tokens: list[str]) -> None:
    """Another number, in quotes where it stood in some, and maybe another word beside it."""
    places = [n for n, token in enumerate(tokens) if token.strip('"-')[:1].isdigit()]
    if places:
        at = int(choose(rng, places))
        number = choose(rng, _NUMBERS)
        tokens[at] = f'"{number}"' if tokens[at].startswith('"') else number


def run(case: DataCase, seed: int) -> str:
    """Cook, look at and print the model."""
    text = case.content.decode("utf-8", "surrogateescape")
    with promised(CONSTANTS_LIMIT):
        try:
            model = import_recipe(text, seed, CONSTANTS_LIMIT)
        except LucioleError as error:
            check_refusal(error)
            return type(error).__name__
        findings = verify(model)
        for line in dump_lines(model, "case"):
            assert "\n" not in line
    return "cooked" if not findings else "cooked with findings"
