"""Notes on the operators of a model that is described: the short names of layers, the findings of
``verify``, and the nodes of another format that they came from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from luciole.drawing.nodes import Json
from luciole.drawing.text import shown_name
from luciole.ir import Graph
from luciole.ir.analysis.origins import SourceNode, origins
from luciole.ir.findings import Finding, Severity
from luciole.ir.names import short_names
from luciole.ir.text.common import one_line

MOST_FINDINGS = 200
"""Findings that the page lists."""
_MARKED = (Severity.ERROR, Severity.WARNING)
"""Severities that mark an operator, the worst first."""
_PLACE = re.compile(r"subgraphs\[(\d+)\]\.operators\[(\d+)\]")


def set_short_names(model: Json) -> None:
    """Give layers the short names that reports have, where theirs are longer."""
    nodes = [node for graph in model["graphs"] for node in graph["nodes"]]
    layers = [node for node in nodes if node["category"] == "layer"]
    short = short_names(node.get("layer", node["name"]) for node in layers)
    for node in layers:
        name = short[node.get("layer", node["name"])]
        if name != node["name"]:
            node["short"] = name


def set_findings(model: Json, findings: Sequence[Finding]) -> None:
    """List findings in a model's description, and mark the operators that errors and warnings are
    of.
    """
    model["findings"] = [_finding_json(finding) for finding in findings[:MOST_FINDINGS]]
    model["more_findings"] = max(len(findings) - MOST_FINDINGS, 0)
    nodes = {
        (g, node["index"]): node
        for g, graph in enumerate(model["graphs"])
        for node in graph["nodes"]
        if node["what"] == "op"
    }
    for severity in reversed(_MARKED):
        for finding in findings:
            place = _PLACE.match(finding.path)
            key = (int(place[1]), int(place[2])) if place is not None else None
            if finding.severity == severity and key in nodes:
                nodes[key]["mark"] = severity.value


def _finding_json(finding: Finding) -> Json:
    return {key: one_line(text, 1000) for key, text in finding.as_json().items()}


def set_origins(model: Json, graph: Graph, nodes: Sequence[SourceNode]) -> None:
    """List the nodes of the file that a model was imported from, and for each operator of the main
    graph those that it came from, by their numbers. Files of our formats have none.
    """
    if not nodes:
        return
    model["source"] = [[one_line(n.kind, 80), shown_name(n.name)] for n in nodes]
    behind = list(origins(graph, nodes).values())
    for node in model["graphs"][0]["nodes"]:
        if node["what"] == "op" and behind[node["index"]]:
            node["origins"] = behind[node["index"]]
