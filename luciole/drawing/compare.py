"""Two models side by side: which operators answer to each other, and how they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from luciole.drawing.levels import Original, layer_name
from luciole.ir import Model, Op, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.analysis.widths import bits_of
from luciole.ir.equalization import Equalized, equalized, original_name
from luciole.ir.graph import all_ops
from luciole.ir.text.common import scalar

Json = dict[str, Any]

WORDS = {
    "added": "only in the second model",
    "removed": "only in the first model",
}


def twins(first: Model, second: Model) -> dict[Op, Op]:
    """Find, for operators of the second model, the one of the first that they took the place of:
    the one with the layer's name, else the one with the same result, by the name that it had
    before it was equalized. A name taken twice is nobody's.
    """
    one, two = _by_name(first), _by_name(second)
    pairs: dict[Op, Op] = {}
    for name, op in two.items():
        twin = one.get(layer_name(op), one.get(name))
        if twin is not None and twin not in pairs.values():
            pairs[op] = twin
    return pairs


def originals(first: Model, second: Model) -> dict[Op, Original]:
    """Find the operators that those of the second model took the place of, and how both are
    scaled.
    """
    factors = {value: note.factors for value, note in notes_of(first, second).items()}
    return {op: Original(twin, factors) for op, twin in twins(first, second).items()}


def notes_of(*models: Model) -> dict[Value, Equalized]:
    """Find the notes on how tensors of models were equalized."""
    return {v: note for m in models for graph in m.graphs for v, note in equalized(graph).items()}


def _by_name(model: Model) -> dict[str, Op]:
    """Index operators by the name of their first result before it was equalized, where only one has
    it.
    """
    known = notes_of(model)
    names = {op: original_name(op.output, known) for op in all_ops(model.graphs) if op.results}
    counts = Counter(names.values())
    return {name: op for op, name in names.items() if name and counts[name] == 1}


def mark_differences(document: Json, first: Model, second: Model) -> None:
    """Give every node of a document of two models its ``twin`` and ``status``, and list the
    differences.
    """
    partners, known = twins(first, second), notes_of(first, second)
    answers = {a: b for b, a in partners.items()}
    names = _by_name(second)
    places = [_places(document["models"][i], m) for i, m in enumerate((first, second))]
    for op in all_ops(first.graphs):
        _mark(document, op, answers.get(op), places, known)
        taken = names.get(op.name)
        if op not in answers and taken is not None:
            node = places[0][op]
            node["difference"].append(f"part of {taken.kind} now")
    for op in all_ops(second.graphs):
        if op not in partners:
            _mark(document, None, op, places, known)


def _places(model: Json, source: Model) -> dict[Op, Json]:
    """Return the node of each operator."""
    nodes = [n for graph in model["graphs"] for n in graph["nodes"] if n["what"] == "op"]
    return dict(zip(all_ops(source.graphs), nodes, strict=True))


def _mark(
    document: Json,
    a: Op | None,
    b: Op | None,
    places: list[dict[Op, Json]],
    known: Mapping[Value, Equalized],
) -> None:
    left = None if a is None else places[0][a]
    right = None if b is None else places[1][b]
    if left and right:
        left["twin"], right["twin"] = right["id"], left["id"]
    status, words = _difference(a, b, known)
    if status is None:
        return
    for node in (left, right):
        if node is not None:
            node |= {"status": status, "difference": words}
    ids, sizes = ([None if n is None else n[k] for n in (left, right)] for k in ("id", "bytes"))
    shown = left or right or {}
    name = shown.get("short", shown.get("name", ""))
    difference = {"name": name, "status": status, "words": words, "nodes": ids, "bytes": sizes}
    document["differences"].append(difference)


def _difference(
    a: Op | None, b: Op | None, known: Mapping[Value, Equalized]
) -> tuple[str | None, list[str]]:
    if a is None or b is None:
        status = "added" if a is None else "removed"
        return status, [WORDS[status]]
    words = []
    if a.kind != b.kind:
        words.append(f"{a.kind} became {b.kind}")
    words += [f"{what}: {x} became {y}" for what, x, y in _pairs(a, b) if x != y]
    words += _equalization(b, known)
    if a.kind != b.kind:
        return "replaced", words
    if any(word.startswith(("result", "weights", "input")) for word in words):
        return "dtype", words
    words += _attributes(a, b)
    if not words and not _same_constants(a, b):
        words.append("constants differ")
    return ("changed" if words else None), words


def _equalization(op: Op, known: Mapping[Value, Equalized]) -> list[str]:
    """Return the divisors of an operator's outputs, in words."""
    note = known.get(op.results[0]) if op.results else None
    return [] if note is None else [note.text()]


def _pairs(a: Op, b: Op) -> list[tuple[str, str, str]]:
    """List the parts that have a type in both: result, first input, weights."""
    pairs = []
    if a.results and b.results:
        pairs.append(("result", a.output.dtype.name.lower(), b.output.dtype.name.lower()))
    first, second = (op.operands[0] if op.operands else None for op in (a, b))
    if first is not None and second is not None:
        pairs.append(("input", first.dtype.name.lower(), second.dtype.name.lower()))
    if weight_constant(a) is not None and weight_constant(b) is not None:
        bits = [bits_of(op) for op in (a, b)]
        widths = [f"{w.weights} bit" if w else "?" for w in bits]
        pairs.append(("weights", widths[0], widths[1]))
    return pairs


def _attributes(a: Op, b: Op) -> list[str]:
    other = b.attributes()
    graphs = {field.name for field in a.attr_fields() if field.is_graph}
    return [
        f"{name}: {_text(value)} became {_text(other[name])}"
        for name, value in a.attributes().items()
        if name in other and name not in graphs and _text(value) != _text(other[name])
    ]


def _text(value: object) -> str:
    return scalar(value) if isinstance(value, int | float) else str(value)


def _same_constants(a: Op, b: Op) -> bool:
    """Return whether the constant operands hold the same bytes."""
    return _bytes(a) == _bytes(b)


def _bytes(op: Op) -> list[bytes | None]:
    contents: list[bytes | None] = []
    for value in op.operands:
        buffer = None if value is None or not value.is_constant else value.buffer
        data = None if buffer is None else buffer.data
        contents.append(None if data is None else data.tobytes())
    return contents
