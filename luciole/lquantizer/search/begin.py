"""Search a network and write the files of its front."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from luciole.files import write_file
from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Model
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.names import short_names
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.schemes import FLOAT
from luciole.lquantizer.search import latency
from luciole.lquantizer.search.cluster import Cluster
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import FrontFile, SearchResult, files_of
from luciole.lquantizer.search.runners import InProcess, Runner
from luciole.lquantizer.search.search import Found, Materials, Search, Searched
from luciole.lquantizer.search.space import Space
from luciole.lquantizer.search.storage import Storage
from luciole.lquantizer.search.workers import Workers

_SHARE = 3
"""Of few records, one in so many judges."""
_SHUFFLE = 7


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

    ``read`` and ``write`` turn files' bytes into models and back. Raises QuantizeError for data
    that cannot be used, a folder with another search, and when nothing can be evaluated.
    """
    space = Space.of(model.graph, options.options, options.tied, options.fixed)
    fitted, judges = split(model, records, options)
    content = write(model)
    timed = options.goal.timed
    given = Materials(content, read, write, fitted, judges, space, timed, options.seed, options.few)
    folder.mkdir(parents=True, exist_ok=True)
    storage = Storage(folder / "search.db", _identity(given, options))
    us = float(storage.kept("float_us", lambda: str(_float_us(model, judges, timed))))
    how = (options.seed, options.budget, say, track or untracked)
    search = Search(space, options.goal, storage, len(content), us, *how)
    runner = _runner(options, given, say)
    try:
        found = search.run(runner)
    finally:
        runner.close()
    files = _write(folder, space, found, storage)
    whole = Found((FLOAT,) * len(space.genes), len(content), 0.0, us, 1.0)
    return _result(model, space, options, found, files, whole)


def split(model: Model, records: Records, options: SearchOptions) -> tuple[Records, Records]:
    """Take records that layers are fitted to and others that judge, at random but always the same.

    Raises QuantizeError where there are fewer than two.
    """
    count = check_records(model.graph, records)
    check_finite(records)
    if count < 2:
        raise QuantizeError("a search needs at least 2 records: some judge what others taught")
    order = np.random.default_rng(_SHUFFLE).permutation(count)
    judging = max(1, min(options.judges, count // _SHARE))
    fitting = min(options.calibration, count - judging)
    parts = order[judging : judging + fitting], order[:judging]
    one, two = ({name: array[part] for name, array in records.items()} for part in parts)
    return one, two


def _float_us(model: Model, judges: Records, timed: bool) -> float:
    return latency.measured(model, judges).total if timed else 0.0


def _identity(given: Materials, options: SearchOptions) -> dict[str, str]:
    return {
        "model": hashlib.sha256(given.model).hexdigest(),
        "data": f"{_digest(given.records)} {_digest(given.judges)}",
        "settings": json.dumps(options.settings(), sort_keys=True),
    }


def _digest(records: Records) -> str:
    digest = hashlib.sha256()
    for name in sorted(records):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(records[name]).data)
    return digest.hexdigest()


def _runner(options: SearchOptions, given: Materials, say: Callable[[str], None]) -> Runner:
    if options.cluster is not None:
        return Cluster(options.cluster, given)
    if options.workers > 1:
        return Workers(options.workers, given, say)
    return InProcess(given)


def _write(folder: Path, space: Space, found: Searched, storage: Storage) -> list[FrontFile]:
    """Write models and configs, and remove those of a front before."""
    files = files_of(folder, space, found.front)
    for old in folder.glob("front-[0-9][0-9]-*B.*"):
        old.unlink()
    for file in files:
        write_file(file.path, storage.model("fitted", file.found.candidate))
        write_file(file.config, json.dumps(file.recipe(), indent=2) + "\n")
    storage.close()
    return files


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
    )
