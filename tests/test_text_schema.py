"""The JSON form and its schema say the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luciole.importers import from_bytes, load_with_findings
from luciole.ir.text.listing import describe
from luciole.schema.dialect import CIRCLE
from luciole.schema.writer import write
from tests.samples import whole_model
from tests.support import data_path
from tests.text_support import conv_model, custom, every_kind, op_table, source_table, with_metadata

jsonschema = pytest.importorskip("jsonschema")
SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "docs" / "reference" / "dump.schema.json").read_text()
)
OPEN = ("record", "options")
"""Parts whose keys depend on the operator."""


def strict(schema: Any, name: str = "") -> Any:
    """The schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [strict(part, name) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(part, key) for key, part in schema.items()}
    if schema.get("type") == "object" and name not in OPEN:
        closed["additionalProperties"] = False
    return closed


VALIDATOR = jsonschema.Draft202012Validator(strict(SCHEMA))
OPEN_VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def described(model: Any) -> Any:
    return json.loads(json.dumps(describe(model, "m"), allow_nan=False))


def everything() -> Any:
    """A model with every field of the file format, as far as a graph may have them."""
    return from_bytes(write(whole_model(), CIRCLE))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "model",
    [
        conv_model,
        everything,
        lambda: custom(every_kind()),
        lambda: custom(b"\x07\xff"),
        lambda: with_metadata(
            ONE_source_table=source_table({3: b"conv"}), ONE_op_table=op_table({0: [1, 2]})
        ),
    ],
)
def test_everything_that_a_model_can_hold_is_described(model: Callable[[], Any]) -> None:
    VALIDATOR.validate(described(model()))


@pytest.mark.parametrize("name", ["kws_int8", "mnist_lstm_fp32", "resnet8_fp32"])
def test_real_models_are_described(name: str) -> None:
    VALIDATOR.validate(described(load_with_findings(data_path(f"models/{name}.tflite"))[0]))


def _rename(content: Any, path: list[Any], key: str) -> None:
    for step in path:
        content = content[step]
    content[f"{key}_"] = content.pop(key)


@pytest.mark.parametrize(
    "path",
    [
        [],
        ["operator_codes", 0],
        ["signatures", 0],
        ["subgraphs", 0],
        ["subgraphs", 0, "tensors", 0],
        ["subgraphs", 0, "tensors", 0, "quantization"],
        ["subgraphs", 0, "operators", 0],
    ],
)
def test_a_key_that_goes_away_is_noticed(path: list[Any]) -> None:
    whole = described(conv_model())
    part: Any = whole
    for step in path:
        part = part[step]
    for key in list(part):
        changed = json.loads(json.dumps(whole))
        _rename(changed, path, key)
        assert not OPEN_VALIDATOR.is_valid(changed), key
    assert OPEN_VALIDATOR.is_valid(whole)
