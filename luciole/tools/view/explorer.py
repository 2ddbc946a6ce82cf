"""Describe a model's graphs for Model Explorer, which reads them as JSON: its own adapters know
neither circle's operators nor learned levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from luciole.drawing.measures import MEASURES
from luciole.drawing.palette import bits_colour

Json = dict[str, Any]
Pair = dict[str, str]


def explorer_graphs(document: Json) -> Json:
    """Return the graphs of the last model, of two the quantized one, as the collection that Model
    Explorer opens: nodes in groups, their options, formats and levels, and what each reads.
    """
    model = document["models"][-1]
    names = [f"{i}: {graph['name']}" for i, graph in enumerate(model["graphs"])]
    return {
        "label": model["title"],
        "graphs": [
            {"id": names[i], "nodes": [*_nodes(graph, names)]}
            for i, graph in enumerate(model["graphs"])
        ],
    }


def _nodes(graph: Json, names: list[str]) -> Iterator[Json]:
    folders = _folders(graph)
    for number, node in enumerate(graph["nodes"]):
        made: Json = {
            "id": str(number),
            "label": node["title"],
            "namespace": folders.get(number, ""),
            "subgraphIds": [names[i] for i in node.get("graphs", ())],
            "attrs": [_pair(name, value) for name, value in _facts(node)],
            "incomingEdges": [*_edges(graph, number)],
            "inputsMetadata": [*_ends(graph, node["operands"], "__tensor_tag")],
            "outputsMetadata": [*_ends(graph, node["results"], "tensor_name")],
        }
        if "bits" in node:
            made["style"] = {"backgroundColor": bits_colour(node["bits"][0])}
        yield made


def _folders(graph: Json) -> dict[int, str]:
    """Find the path of groups that each node is in: outer groups come first."""
    paths: dict[int, str] = {}
    for group in graph["groups"].values():
        for number in group.get("nodes", ()):
            before = f"{paths[number]}/" if number in paths else ""
            paths[number] = before + group["title"]
    return paths


def _facts(node: Json) -> Iterator[tuple[str, Any]]:
    """List a node's facts for the sidebar."""
    yield "name", node["name"]
    if "badge" in node:
        yield "format", node["badge"]
    yield from node["rows"]
    for name, value, is_default in node["attributes"]:
        if not is_default:
            yield name, value
    levels = node.get("levels", {})
    if "input" in levels:
        yield "levels of its input", ", ".join(f"{x:.4g}" for x in levels["input"]["levels"])
    for key, value in node.get("measures", {}).items():
        title, unit, _ = MEASURES[key]
        yield f"{title} [{unit}]" if unit else title, value
    if "mark" in node:
        yield "verify says", node["mark"]


def _edges(graph: Json, number: int) -> Iterator[Pair]:
    """List the edges to a node from others; its constants are no nodes."""
    for slot, (_, tensor) in enumerate(graph["nodes"][number]["operands"]):
        producer = graph["tensors"][tensor]["producer"] if tensor >= 0 else None
        if producer is None:
            continue
        made = [result for _, result in graph["nodes"][producer]["results"]]
        yield {
            "sourceNodeId": str(producer),
            "sourceNodeOutputId": str(made.index(tensor)),
            "targetNodeInputId": str(slot),
        }


def _ends(graph: Json, ends: list[list[Any]], name: str) -> Iterator[Json]:
    """Describe the tensors that a node reads or makes, by their places."""
    for slot, (_, tensor) in enumerate(ends):
        if tensor < 0:
            continue
        facts = graph["tensors"][tensor]
        pairs = [(name, facts["name"]), ("shape", f"{facts['dtype']} {facts['text']}")]
        if "quantization" in facts:
            pairs.append(("quantization", facts["quantization"]["words"]))
        yield {"id": str(slot), "attrs": [_pair(key, value) for key, value in pairs]}


def _pair(name: str, value: Any) -> Pair:
    return {"key": name, "value": f"{value:.6g}" if isinstance(value, float) else str(value)}
