"""One benchmark from its arguments to its report."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from luciole.interpreter.records import Track
from luciole.kernels.core import discovery
from luciole.tools.bench.compare import Batch, Contender, first_run, numbers, surviving
from luciole.tools.bench.inputs import data_inputs, random_inputs
from luciole.tools.bench.judging import Judge, check_classes
from luciole.tools.bench.memory import peak_rss_bytes
from luciole.tools.bench.operators import profile
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.peers import open_peer
from luciole.tools.bench.report import Report
from luciole.tools.bench.runtime import CrashError, Phase, Runtime, Shape
from luciole.tools.common.machine import PACKAGES, machine_facts
from luciole.tools.common.timing import Limits
from luciole.tools.data import Data, asked_data


def benchmark(arguments: argparse.Namespace, begun: int, track: Track) -> Report:
    """Measure the models that the arguments name. ``begun`` is the time at which importing began,
    in nanoseconds.
    """
    discovery.load_kernels()
    imported = Phase("import", begun, time.perf_counter_ns())
    ours = _opened(arguments)
    data = _data(arguments, ours)
    batches = data_inputs(ours, data) if data else random_inputs(ours.inputs, arguments.seed)
    outputs = first_run(ours, batches[0])
    peak = peak_rss_bytes()
    if data:
        check_classes(numbers(ours, outputs), ours.graph, data, arguments.ignore_label)
    lost: list[str] = []
    peers = _peers(arguments, [port.shape for port in ours.inputs], lost)
    limits = limits_of(arguments)
    contenders = surviving(ours, peers, batches, limits, lost)
    if data:
        judge = Judge(contenders, ours, data, arguments.ignore_label)
        lost += judge.run(track("comparing outputs", judge.count))
    timed = profile(ours, limits) if arguments.enable_op_profiling == "true" else None
    return Report(
        ours,
        contenders,
        timed,
        machine_facts(_packages(contenders)),
        arguments.num_threads,
        peak,
        _inputs_text(ours, batches, arguments),
        {"import": imported, **ours.phases},
        lost,
    )


def _peers(arguments: argparse.Namespace, shapes: list[Shape], lost: list[str]) -> list[Runtime]:
    """Open the runtimes to measure beside luciole, except those that crash at that."""
    peers = []
    for spec in arguments.against:
        try:
            peers.append(open_peer(spec, arguments.num_threads, shapes))
        except CrashError as crash:
            lost.append(str(crash))
    return peers


def limits_of(arguments: argparse.Namespace) -> Limits:
    """Read from the arguments when to end."""
    return Limits(
        arguments.num_runs,
        arguments.min_secs,
        arguments.max_secs,
        arguments.warmup_runs,
        arguments.warmup_min_secs,
    )


def _opened(arguments: argparse.Namespace) -> Luciole:
    model = Path(arguments.model or arguments.graph)
    return Luciole(model, arguments.num_threads, arguments.input_shape)


def _data(arguments: argparse.Namespace, ours: Luciole) -> Data | None:
    if arguments.data is None:
        return None
    return asked_data(
        arguments, ours.graph, arguments.data, limit=arguments.limit, labels=arguments.labels
    )


def _packages(contenders: Sequence[Contender]) -> list[str]:
    """List the packages whose versions belong to the figures."""
    kinds = {contender.runtime.kind for contender in contenders}
    used = {"litert": "ai-edge-litert", "onnxruntime": "onnxruntime", "onert": "onert"}
    return [*PACKAGES, *(package for kind, package in used.items() if kind in kinds)]


def _inputs_text(
    ours: Luciole, batches: Sequence[Batch], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Describe the inputs that the model was run on: names, types, shapes and the source of the
    contents.
    """
    source = arguments.data or f"random, seed {arguments.seed}"
    return [
        {"name": p.name, "dtype": str(p.dtype), "shape": p.shape, "source": source}
        | {"records": len(batches)}
        for p in ours.inputs
    ]
