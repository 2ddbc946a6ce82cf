"""Write figures and notes of a model for other viewers: Netron's attachments, Model Explorer's node
data.
"""

from __future__ import annotations

from typing import Any

from luciole.ir import LucioleError

Json = dict[str, Any]

_GRADIENT = [{"stop": 0, "bgColor": "#f3f6fa"}, {"stop": 1, "bgColor": "#c2410c"}]
_PREFERRED = ("mse", "latency_us", "weights_mse", "bytes")


def netron_attachment(document: Json) -> Json:
    """Return a file that adds to the sidebars of a model that is open in Netron, when dropped on
    it.
    """
    metadata, metrics = [], []
    for node in _main_operators(document):
        where = {"kind": "node", "identifier": str(node["index"])}
        for name, value in _facts(node).items():
            metadata.append({**where, "name": name, "value": value})
        for name, value in node.get("measures", {}).items():
            metrics.append({**where, "name": name, "value": value})
    return {"signature": "netron:attachment", "metadata": metadata, "metrics": metrics}


def _facts(node: Json) -> Json:
    facts: Json = {}
    if "bits" in node:
        facts["weight_bits"] = node["bits"][0]
        if node["bits"][1] is not None:
            facts["input_bits"] = node["bits"][1]
    if "input" in node.get("levels", {}):
        facts["input_levels"] = ", ".join(f"{x:.4g}" for x in node["levels"]["input"]["levels"])
    return facts


def model_explorer_data(document: Json) -> Json:
    """Write node data for Model Explorer: one figure for each result, by tensor name, and a
    gradient.

    Equalized tensors are there by their original name too: what Model Explorer opens is the float
    .tflite. Raises LucioleError when no operator has any figure.
    """
    key, nodes = model_explorer_figure(document), _main_operators(document)
    results = {
        name: {"value": node["measures"][key]}
        for node in nodes
        if key in node.get("measures", {})
        for name in (node["name"], node.get("original", node["name"]))
    }
    return {"results": results, "gradient": _GRADIENT}


def model_explorer_figure(document: Json) -> str:
    """Choose the key of the figure: the output error where it is known, else the latency, the
    weights' error, or the size. Raises LucioleError when no operator has any of them.
    """
    nodes = _main_operators(document)
    present = {key for node in nodes for key in node.get("measures", {})}
    for key in _PREFERRED:
        if key in present:
            return key
    raise LucioleError("nothing to write for Model Explorer: no operator has constants or figures")


def _main_operators(document: Json) -> list[Json]:
    """Return the operators of the last model's main graph: of two models, the second is spoken
    of.
    """
    nodes = document["models"][-1]["graphs"][0]["nodes"]
    return [node for node in nodes if node["what"] == "op"]
