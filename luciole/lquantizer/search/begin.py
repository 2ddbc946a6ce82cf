"""Search a network and write the files of its front."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.files import filling
from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Model
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.names import short_names
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.search import latency
from luciole.lquantizer.search.cluster import Cluster
from luciole.lquantizer.search.device import Devices
from luciole.lquantizer.search.evaluate import Stage
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import FrontFile, SearchResult, files_of
from luciole.lquantizer.search.runners import Begin, InProcess, Runner
from luciole.lquantizer.search.search import Found, Materials, Search, Searched
from luciole.lquantizer.search.space import UNCHANGED, Space
from luciole.lquantizer.search.storage import Storage, opened
from luciole.lquantizer.search.tuned_front import finish_front
from luciole.lquantizer.search.workers import Workers

_SHARE = 3
"""Of few records, one in so many judges."""
_SHUFFLE = 7
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
) -> SearchResult:
    """Search a float network, and write its front into a folder, where ``search.db`` keeps all that
    was found: the same search goes on from there.

    ``read`` and ``write`` turn files' bytes into models and back. Raises QuantizeError for a
    network that is quantized already, data that cannot be used, a folder with another search, and
    when nothing can be evaluated.
    """
    model = real_network(model)
    space = Space.of(model.graph, options.options, options.tied, options.fixed)
    devices = Devices.of(options.read_devices, model.graph)
    costs = devices.floats(model.graph)
    space = devices.allowed(space, say)
    fitted, judges = split(model, records, options)
    content = write(model)
    timed = options.goal.timed
    finish = options.finishing
    training = rest(records, options) if finish.epochs else None
    seeded = (options.seed, options.few)
    given = Materials(content, read, write, fitted, judges, space, timed, *seeded, training)
    with closing(opened(folder, _identity(given, options), space.choices)) as storage:
        us = storage.number("float_us", lambda: _float_us(model, judges, timed))
        how = (options.seed, options.budget, say, track or untracked, devices, costs)
        search = Search(space, options.goal, storage, len(content), us, *how)
        with closing(runner_for(options.workers, options.cluster, given, say)) as runner:
            found = search.run(runner)
            if finish.epochs:
                found = finish_front(search, runner, found, finish)
        files = files_of(folder, space, found.front)
        _write(folder, files, storage, finish.stage if finish.epochs else "fitted")
    whole = Found((UNCHANGED,) * len(space.genes), len(content), 0.0, us, 1.0, costs)
    return _result(model, space, options, found, files, whole)


def split(model: Model, records: Records, options: SearchOptions) -> tuple[Records, Records]:
    """Take records that layers are fitted to and others that judge, at random but always the same.

    Raises QuantizeError where there are fewer than two.
    """
    count = check_records(model.graph, records)
    check_finite(records)
    if count < 2:
        raise QuantizeError("a search needs at least 2 records: some judge what others taught")
    judging, others = order_of(count, options.judges)
    return taken(records, others[: options.calibration]), taken(records, judging)


def order_of(count: int, judges: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number at most so many of ``count`` records that judge, and all others."""
    order = np.random.default_rng(_SHUFFLE).permutation(count)
    judging = max(1, min(judges, count // _SHARE))
    return order[:judging], order[judging:]


def taken(records: Records, numbers: NDArray[np.intp]) -> Records:
    """Take some of the records."""
    return {name: array[numbers] for name, array in records.items()}


def rest(records: Records, options: SearchOptions) -> Records:
    """Take all records that do not judge."""
    count = len(next(iter(records.values())))
    return taken(records, order_of(count, options.judges)[1])


def _float_us(model: Model, judges: Records, timed: bool) -> float:
    return latency.measured(model, judges).total if timed else 0.0


def _identity(given: Materials, options: SearchOptions) -> dict[str, str]:
    return {
        "model": hashlib.sha256(given.model).hexdigest(),
        "data": f"{digest_of(given.records)} {digest_of(given.judges)}",
        "settings": json.dumps(options.settings(), sort_keys=True),
    }


def digest_of(records: Records) -> str:
    """Compute a digest of records, input by input."""
    digest = hashlib.sha256()
    for name in sorted(records):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(records[name]).data)
    return digest.hexdigest()


def runner_for(
    workers: int, cluster: str | None, given: Begin, say: Callable[[str], None]
) -> Runner:
    """Begin a cluster where there is an address, else so many processes, or none but this one."""
    if cluster is not None:
        return Cluster(cluster, given)
    if workers > 1:
        return Workers(workers, given, say)
    return InProcess(given)


def _write(folder: Path, files: Iterable[FrontFile], storage: Storage, stage: Stage) -> None:
    """Write the models of a stage and configs."""
    models = ((file, storage.model(stage, file.found.candidate)) for file in files)
    write_front(folder, ((file, model, file.recipe()) for file, model in models))


def write_front(folder: Path, files: Iterable[tuple[FrontFile, bytes, Mapping[str, Any]]]) -> None:
    """Write models and configs, all of them or none, and remove what is of a front before."""
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
    found: Searched,
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
        found.evaluated,
        found.uniform,
        found.greedy,
        [sum(int(np.prod(sizes[name])) for name in gene.measured) for gene in space.genes],
        found.failed,
        found.unreached,
    )
