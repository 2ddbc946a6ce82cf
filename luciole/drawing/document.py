"""A model as the JSON document that the page and the SVG file are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from luciole.drawing import palette
from luciole.drawing.blobs import Blobs
from luciole.drawing.flow import Flow, drawn, flat, group_box, nested
from luciole.drawing.groups import Group, grouped
from luciole.drawing.layout import Box
from luciole.drawing.levels import InputHistogram, Original, layer_name, levels_json
from luciole.drawing.nodes import (
    BAND,
    HEADER,
    LABEL,
    MARGIN,
    ROW,
    box_of,
    end_json,
    op_json,
)
from luciole.drawing.notes import set_findings, set_origins, set_short_names
from luciole.drawing.tensors import tensor_json
from luciole.drawing.text import shown_name
from luciole.ir import Graph, Model, Op, UnknownOp, Value
from luciole.ir.analysis.origins import SourceNode
from luciole.ir.equalization import equalized
from luciole.ir.findings import Finding, refusal
from luciole.ir.graph import Signature
from luciole.ir.text.common import Numbering, one_line, utf8
from luciole.ir.text.options import options_by_name

Json = dict[str, Any]
Figures = dict[str, dict[str, float]]
"""Measures by key, by operator name."""

FEWEST, COLLAPSE_ABOVE = 24, 400
"""Operators from which on a graph has groups, and above which they are closed at first."""


@dataclass
class Subject:
    """A model to show, with what is known of it: what is wrong with its file, the float operators
    that its own replaced, by operator name histograms of layers' inputs, figures, and what the
    quantizer says, the nodes of a file in another format, and lines of the proof.
    """

    model: Model
    title: str
    format: str = "circle"
    file_bytes: int | None = None
    findings: Sequence[Finding] = ()
    originals: Mapping[Op, Original] = field(default_factory=dict)
    histograms: Mapping[str, InputHistogram] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    nodes: Sequence[SourceNode] = ()
    proof: Sequence[str] = ()


def document(subjects: Sequence[Subject], blobs: Blobs) -> Json:
    """Describe one model, or two to compare: graphs, tensors, drawings, colours. Arrays go to
    ``blobs``.
    """
    with np.errstate(all="ignore"):  # constants of a file may hold anything
        models = [model_json(s, f"{m}", blobs) for m, s in enumerate(subjects)]
    return {
        "title": " and ".join(one_line(s.title, 200) for s in subjects) or "luciole",
        "models": models,
        "measures": [],
        "differences": [],
        "served": False,
        "most_opened": 0,
        "direction": "vertical",
        "mode": "bits",
        "sizes": _SIZES,
        "palette": _PALETTE,
    }


_SIZES = {"header": HEADER, "row": ROW, "band": BAND, "margin": MARGIN, "label": LABEL}
_PALETTE = {
    "bits": {str(k): v for k, v in palette.BITS.items()},
    "categories": palette.CATEGORIES,
    "plain": palette.PLAIN,
}


def model_json(subject: Subject, identity: str, blobs: Blobs) -> Json:
    """Describe a model's own facts and its graphs."""
    model, numbers = subject.model, Numbering(subject.model)
    wrong = refusal(subject.findings)
    made: Json = {
        "title": one_line(subject.title, 200),
        "format": subject.format,
        "bytes": subject.file_bytes,
        "description": one_line(model.description or "", 2000),
        "wrong": None if wrong is None else one_line(wrong, 1000),
        "proof": [one_line(line, 400) for line in subject.proof],
        "metadata": [[shown_name(name), len(buffer)] for name, buffer in model.metadata],
        "signatures": [_signature_json(s, numbers) for s in model.signatures],
        "graphs": [
            _GraphWriter(graph, f"{identity}:{g}", subject, blobs).json()
            for g, graph in enumerate(model.graphs)
        ],
    }
    set_short_names(made)
    set_findings(made, subject.findings)
    set_origins(made, model.graph, subject.nodes)
    return made


def _signature_json(signature: Signature, numbers: Numbering) -> Json:
    return {
        "key": shown_name(signature.key),
        "graph": numbers.graph(signature.graph),
        "inputs": [[shown_name(n), numbers.tensor(v)] for n, v in signature.inputs],
        "outputs": [[shown_name(n), numbers.tensor(v)] for n, v in signature.outputs],
    }


class _GraphWriter:
    """Turns one graph into JSON: nodes are its inputs, operators and outputs, in this order."""

    def __init__(self, graph: Graph, identity: str, subject: Subject, blobs: Blobs) -> None:
        self.graph, self.identity, self.subject, self.blobs = graph, identity, subject, blobs
        self.tensors = {value: i for i, value in enumerate(graph.values)}
        self.notes = equalized(graph)
        self.first = len(graph.inputs)
        self.after = self.first + len(graph.ops)
        self.numbers = {id(op): self.first + i for i, op in enumerate(graph.ops)}
        self.graphs = {id(g): i for i, g in enumerate(subject.model.graphs)}
        self.given = {value: i for i, value in reversed([*enumerate(graph.inputs)])}
        self.returned: dict[Value, list[int]] = {}
        for i, value in enumerate(graph.outputs):
            self.returned.setdefault(value, []).append(self.after + i)

    def json(self) -> Json:
        """Describe everything of the graph."""
        nodes = self._nodes()
        tensors = [
            tensor_json(value, f"{self.identity}:t{i}", self.blobs)
            | self._place(value)
            | self._equalized(value)
            for value, i in self.tensors.items()
        ]
        boxes = [box_of(node, self._label(node, tensors)) for node in nodes]
        return {
            "name": shown_name(self.graph.name or "main"),
            "nodes": nodes,
            "tensors": tensors,
            "inputs": [self.tensors[v] for v in self.graph.inputs],
            "outputs": [self.tensors[v] for v in self.graph.outputs],
            **self._drawings(boxes),
        }

    def _nodes(self) -> list[Json]:
        nodes = []
        for i, value in enumerate(self.graph.inputs):
            node = end_json(value, "input", i)
            nodes.append(node | {"operands": [], "results": [["", self.tensors[value]]]})
        for i, op in enumerate(self.graph.ops):
            nodes.append(self._op(op, i))
        for i, value in enumerate(self.graph.outputs):
            node = end_json(value, "output", i)
            nodes.append(node | {"operands": [["", self.tensors[value]]], "results": []})
        for i, node in enumerate(nodes):
            node["id"] = f"{self.identity}:{i}"
        return nodes

    def _op(self, op: Op, index: int) -> Json:
        node = op_json(op, index)
        node["operands"] = [[n, self._number(v)] for n, v in op.named_operands()]
        node["results"] = self._results(op)
        if layer_name(op) != op.name:
            node["layer"] = shown_name(layer_name(op))
        if op.results and op.results[0] in self.notes:
            node["original"] = shown_name(self.notes[op.results[0]].original)
        levels = levels_json(
            op, self.subject.originals.get(op), self.subject.histograms, self.blobs
        )
        if levels is not None:
            node["levels"] = levels
        graphs = self._called(op)
        if graphs:
            node["graphs"] = graphs
        return node

    def _results(self, op: Op) -> list[list[Any]]:
        names = op.result_names
        return [
            [names[i] if i < len(names) else str(i), self._number(v)]
            for i, v in enumerate(op.results)
        ]

    def _called(self, op: Op) -> list[int]:
        """Return the numbers of the graphs that an operator runs (IF, WHILE, CALL)."""
        known = self.graphs
        numbers = [known[id(g)] for g in op.called_graphs() if id(g) in known]
        if isinstance(op, UnknownOp):
            numbers += [
                int(value)
                for name, value in options_by_name(op).items()
                if "subgraph" in name and isinstance(value, int) and 0 <= value < len(known)
            ]
        return numbers

    def _number(self, value: Value | None) -> int:
        return -1 if value is None else self.tensors.get(value, -1)

    def _place(self, value: Value) -> Json:
        """Find who makes a tensor and who uses it, as numbers of nodes."""
        producer = None if value.producer is None else self.numbers.get(id(value.producer.op))
        if value in self.given:
            producer = self.given[value]
        users = [self.numbers[id(u.op)] for u in value.users if id(u.op) in self.numbers]
        users += self.returned.get(value, [])
        return {"producer": producer, "users": list(dict.fromkeys(users))}

    def _equalized(self, value: Value) -> Json:
        """Return the tensor whose contents an equalized one holds, and its divisors."""
        note = self.notes.get(value)
        if note is None:
            return {}
        return {"equalized": [shown_name(note.original), note.text()]}

    def _label(self, node: Json, tensors: list[Json]) -> str:
        """Return the shapes of what a node makes, as its edges are labelled."""
        if not node["results"]:
            return ""
        first = node["results"][0][1]
        return str(tensors[first]["text"]) if first >= 0 else ""

    def _flows(self) -> list[Flow]:
        """Find which tensor goes from where to where. What goes back to an earlier operator, as
        damaged files have it, is left out: no layer could be drawn.
        """
        flows = []
        for value, tensor in self.tensors.items():
            place = self._place(value)
            source = place["producer"]
            if source is not None:
                flows += [Flow(source, user, tensor) for user in place["users"] if user > source]
        return flows

    def _drawings(self, boxes: list[Box]) -> Json:
        flows = self._flows()
        tree = _shifted(grouped([utf8(op.name) for op in self.graph.ops]), self.first)
        ends = [*range(self.first), *range(self.after, self.after + len(self.graph.outputs))]
        groups = list(tree.groups()) if len(self.graph.ops) >= FEWEST else []
        names = {group: f"g{i}" for i, group in enumerate(groups)}
        down, across = drawn(flat(len(boxes), flows), boxes, names)
        facts: Json = {
            "flat": {"vertical": down, "horizontal": across},
            "groups": {},
            "closed": bool(groups) and len(self.graph.ops) > COLLAPSE_ABOVE,
        }
        if groups:
            for group, level in nested(tree, ends, flows).items():
                down, across = drawn(level, boxes, names)
                name = names.get(group, "root")
                facts["groups"][name] = {"vertical": down, "horizontal": across}
                if group is not tree:
                    facts["groups"][name] |= _group_json(group)
        return facts


def _group_json(group: Group) -> Json:
    box, title, line = group_box(group)
    return {
        "title": shown_name(group.title),
        "shown": shown_name(title),
        "line": line,
        "box": [box.width, box.height],
        "nodes": list(group.operators()),
    }


def _shifted(group: Group, by: int) -> Group:
    """Return a tree with numbers of nodes instead of operators."""
    members = [_shifted(m, by) if isinstance(m, Group) else m + by for m in group.members]
    return Group(group.title, members)
