"""Search a network and write the files of its front."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from luciole.files import filling
from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Array, Model
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.names import short_names
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError, check_points
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Judges, Split, evenly
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.search import latency
from luciole.lquantizer.search.cluster import Cluster
from luciole.lquantizer.search.device import Devices
from luciole.lquantizer.search.evaluate import Stage
from luciole.lquantizer.search.evaluator import Materials
from luciole.lquantizer.search.networks import Found, Searched
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import FrontFile, SearchResult, files_of
from luciole.lquantizer.search.runners import Begin, InProcess, Runner
from luciole.lquantizer.search.search import Search
from luciole.lquantizer.search.space import UNCHANGED, Space
from luciole.lquantizer.search.storage import Storage, opened
from luciole.lquantizer.search.tuned_front import finish_front
from luciole.lquantizer.search.workers import Workers

_FRONT = ("front-[0-9]*-*B.*", "front.csv", "report.html", "report.json")
"""Files of a front and of reports on it."""


def search_network(
    model: Model,
    records: Records,
    folder: Path,
    options: SearchOptions,
    read: Callable[[bytes], Model],
    write: Callable[[Model], bytes],
    say: Callable[[str], None] = print,
    track: Track | None = None,
    labels: Array | None = None,
    metric: Metric | None = None,
) -> SearchResult:
    """Search a float network, and write its front into a folder, where ``search.db`` keeps all that
    was found: the same search goes on from there.

    ``read`` and ``write`` turn files' bytes into models and back; ``labels`` or a ``metric`` judge
    whole networks where they are given. Raises QuantizeError for a network that is quantized
    already, data and metrics that cannot be used, a folder with another search, a ``max_size`` that
    no file keeps to, and when nothing can be evaluated.
    """
    model = real_network(model)
    space = Space.of(model.graph, options.options, options.tied, options.fixed)
    devices = Devices.of(options.read_devices, model.graph)
    costs = devices.floats(model.graph)
    space = devices.allowed(space, say)
    space.check_size(model.graph, "max_size", options.max_size)
    parted = split(model, records, options, labels)
    fitted, judges = evenly(parted.learned, options.calibration), parted.judges
    unit = _unit(model, judges, metric, options)
    content = write(model)
    finish = options.finishing
    training = parted.learned if finish.epochs else None
    materials = Materials(content, read, write, fitted, judges, space, options.goal.timed)
    materials = replace(
        materials, seed=options.seed, few=options.few, training=training, metric=metric
    )
    with closing(opened(folder, _identity(materials, options), space.choices)) as storage:
        us = storage.number("float_us", lambda: _float_us(model, judges, materials.timed))
        search = Search(space, options.goal, storage, len(content), us, options.seed)
        search.budget, search.say, search.track = options.budget, say, track or untracked
        search.devices, search.float_costs = devices, costs
        with closing(runner_for(options.workers, options.cluster, materials, say)) as runner:
            searched = search.run(runner)
            if finish.epochs:
                searched = finish_front(search, runner, searched, finish)
        searched = within_target(searched, options.target_drop, unit)
        files = files_of(folder, space, searched.front)
        _write(folder, files, storage, finish.stage if finish.epochs else "fitted")
    whole = Found((UNCHANGED,) * len(space.genes), len(content), 0.0, us, 1.0, 0.0, costs)
    is_asked = metric is not None or labels is not None or options.target_drop is not None
    result = _result(model, space, options, searched, files, whole)
    return replace(result, unit=unit if is_asked else "")


def _unit(model: Model, judges: Judges, metric: Metric | None, options: SearchOptions) -> str:
    """Name the unit of drops. Raises QuantizeError for a metric that fails on the float network or
    cannot be sent to workers, and for more points than there are.
    """
    if metric is None:
        check_points(options.target_drop)
    elif options.workers > 1 or options.cluster is not None:
        metric.check_sendable()
    return Judge(model, judges, metric).unit


def within_target(searched: Searched, target: float | None, unit: str) -> Searched:
    """Leave networks out of a front that lose more than the target. Raises QuantizeError where all
    do.
    """
    if target is None:
        return searched
    front = [one for one in searched.front if one.drop is not None and one.drop <= target]
    if not front:
        least = min(one.drop for one in searched.front if one.drop is not None)
        raise QuantizeError(f"no network keeps to the target: the best one has {least:.4g} {unit}")
    return replace(searched, front=front)


def split(
    model: Model, records: Records, options: SearchOptions, labels: Array | None = None
) -> Split:
    """Part records into those that teach and those that judge. Raises QuantizeError where there are
    fewer than two.
    """
    check_records(model.graph, records)
    check_finite(records)
    return Split.for_choices(records, labels, options.judges)


def _float_us(model: Model, judges: Judges, timed: bool) -> float:
    return latency.measured(model, judges.records).total if timed else 0.0


def _identity(materials: Materials, options: SearchOptions) -> dict[str, str]:
    records = [digest_of(part) for part in (materials.records, materials.judges.records)]
    return {
        "model": hashlib.sha256(materials.model).hexdigest(),
        "data": " ".join(records) + _judged_by(materials),
        "settings": json.dumps(options.settings(), sort_keys=True),
    }


def _judged_by(materials: Materials) -> str:
    """Make a digest of labels and metric, empty without them."""
    labels, metric = materials.judges.labels, materials.metric
    names = [] if labels is None else [digest_of({"labels": labels})]
    return "".join(f" {one}" for one in [*names, *([] if metric is None else [metric.identity])])


def digest_of(records: Records) -> str:
    """Compute a digest of records, input by input."""
    digest = hashlib.sha256()
    for name in sorted(records):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(records[name]).data)
    return digest.hexdigest()


def runner_for(
    workers: int, cluster: str | None, begin: Begin, say: Callable[[str], None]
) -> Runner:
    """Begin a cluster where there is an address, else ``workers`` processes, or this one alone."""
    if cluster is not None:
        return Cluster(cluster, begin)
    if workers > 1:
        return Workers(workers, begin, say)
    return InProcess(begin)


def _write(folder: Path, files: Iterable[FrontFile], storage: Storage, stage: Stage) -> None:
    """Write the models of a stage and configs."""
    models = ((file, storage.model(stage, file.found.candidate)) for file in files)
    write_front(folder, ((file, model, file.recipe()) for file, model in models))


def write_front(folder: Path, files: Iterable[tuple[FrontFile, bytes, Mapping[str, Any]]]) -> None:
    """Write models and configs, all of them or none, and remove the files of an earlier front."""
    names = set()
    with filling(folder) as fill:
        for file, model, config in files:
            fill(file.path.name, model)
            fill(file.config.name, json.dumps(config, indent=2) + "\n")
            names |= {file.path.name, file.config.name}
    for old in (path for pattern in _FRONT for path in folder.glob(pattern)):
        if old.name not in names:
            old.unlink()


def _result(
    model: Model,
    space: Space,
    options: SearchOptions,
    searched: Searched,
    files: list[FrontFile],
    whole: Found,
) -> SearchResult:
    sizes = {op.name: value.dims for op in model.graph.ops if (value := weight_constant(op))}
    short = short_names([name for gene in space.genes for name in gene.layers])
    return SearchResult(
        files,
        options.objectives,
        whole,
        [short[gene.layers[0]] for gene in space.genes],
        searched.evaluated,
        searched.uniform,
        searched.greedy,
        [sum(int(np.prod(sizes[name])) for name in gene.measured) for gene in space.genes],
        searched.failed,
        searched.unreached,
    )
