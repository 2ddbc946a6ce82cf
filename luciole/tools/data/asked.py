"""The records that a program's options ask for."""

from __future__ import annotations

import argparse

from luciole.ir.graph import Graph
from luciole.tools.common import console
from luciole.tools.data.bounds import Bounds
from luciole.tools.data.load import Data, load_data


def asked_data(
    arguments: argparse.Namespace,
    graph: Graph,
    path: str,
    *,
    limit: int | None = None,
    labels: str | None = None,
    note: str = "",
) -> Data:
    """Read records as ``--preprocess`` and the bounds among the options say, and print how many
    were read, with a note behind it. Raises what ``load_data`` does.
    """
    data = load_data(
        path,
        graph,
        limit=limit,
        preprocess=arguments.preprocess,
        labels=labels,
        bounds=Bounds.of(arguments),
    )
    for line in data.summary():
        console.say(f"data: {line}{note}")
    return data
