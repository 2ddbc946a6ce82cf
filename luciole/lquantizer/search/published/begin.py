"""Begin the published search, and write its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Array, Model
from luciole.ir.names import short_names
from luciole.lquantizer.assignment.layer_format import Integers
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.records import Split, evenly
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.rewrite.batch_norm import Normalized
from luciole.lquantizer.search.begin import digest_of, runner_for, write_front
from luciole.lquantizer.search.networks import Found, Searched
from luciole.lquantizer.search.published.evaluate import FINAL, SeedMaterials
from luciole.lquantizer.search.published.genes import MASKED, space_of, widths_of
from luciole.lquantizer.search.published.network import Network
from luciole.lquantizer.search.published.options import SeedOptions
from luciole.lquantizer.search.published.search import SeedSearch
from luciole.lquantizer.search.published.size import (
    FORMULA,
    OPERATIONS,
    cost_names,
    float_bytes,
    float_operations,
    objectives_of,
)
from luciole.lquantizer.search.result import FrontFile, SearchResult, files_of
from luciole.lquantizer.search.space import Space
from luciole.lquantizer.search.storage import Storage, opened
from luciole.lquantizer.training.labels import Labels

_LEAST = 10
"""Records: some judge, some are held back, the others are trained on."""


def search_published(
    model: Model,
    records: Records,
    labels: Array | None,
    folder: Path,
    options: SeedOptions,
    read: Callable[[bytes], Model],
    write: Callable[[Model], bytes],
    say: Callable[[str], None] = print,
    track: Track | None = None,
    folded: Sequence[Normalized] = (),
) -> SearchResult:
    """Search a float network as published, and write its front into a folder, where ``search.db``
    keeps all that was found: the same search goes on from there.

    ``labels`` [records] are trained to, and judge, where given; ``folded`` are batch normalizations
    that were folded into the model's layers. Raises QuantizeError for data that
    cannot be used, a folder with another search, and when nothing can be evaluated.
    """
    given_materials, network = materials(model, records, labels, options, read, write, folded)
    costs = cost_names(options.inputs)
    with closing(
        opened(folder, _identity(given_materials), given_materials.space.choices, costs)
    ) as storage:
        with closing(runner_for(options.workers, options.cluster, given_materials, say)) as runner:
            search = SeedSearch(
                given_materials.space, options, storage, runner, say, track or untracked
            )
            searched = search.run()
        files = _write(folder, given_materials.space, searched, storage)
    return _result(given_materials, network, searched, files)


def materials(
    model: Model,
    records: Records,
    labels: Array | None,
    options: SeedOptions,
    read: Callable[[bytes], Model],
    write: Callable[[Model], bytes],
    folded: Sequence[Normalized] = (),
) -> tuple[SeedMaterials, Network]:
    """Divide records into what is trained on and what judges, and find the network's groups.

    Raises QuantizeError for a network that is quantized already, and for records and labels that
    cannot be used.
    """
    model = real_network(model)
    count = check_records(model.graph, records)
    check_finite(records)
    if count < _LEAST:
        raise QuantizeError(f"the published search needs at least {_LEAST} records, found {count}")
    if labels is None and options.labelled_output is not None:
        raise QuantizeError("labelled_output goes with labels")
    known = None if labels is None else Labels.of(model, records, labels, options.labelled_output)
    split = Split.for_choices(records, None if known is None else known.numbers, options.judges)
    network = Network.of(model, evenly(split.learned, options.calibration), folded)
    space = space_of(network.groups, options.tied, options.fixed, options.inputs)
    content = write(model)
    taught = None
    if known is not None and split.labels is not None:
        taught = replace(known, numbers=split.labels)
    seed_materials = SeedMaterials(
        content, read, write, split.learned, taught, split.judges, space, options, folded
    )
    return seed_materials, network


def _identity(materials: SeedMaterials) -> dict[str, str]:
    labels = (
        ""
        if materials.labels is None
        else hashlib.sha256(materials.labels.numbers.tobytes()).hexdigest()
    )
    return {
        "model": hashlib.sha256(materials.model).hexdigest(),
        "data": f"{digest_of(materials.training)} {digest_of(materials.judges.records)} {labels}",
        "settings": json.dumps({"preset": "seed", **materials.options.settings()}, sort_keys=True),
    }


def _write(folder: Path, space: Space, searched: Searched, storage: Storage) -> list[FrontFile]:
    """Write models and their widths."""
    files = [_widths(file, space) for file in files_of(folder, space, searched.front)]
    models = ((file, storage.model(FINAL, file.found.candidate)) for file in files)
    write_front(
        folder, ((f, model, {"preset": "seed", "layers": f.options}) for f, model in models)
    )
    return files


def _widths(file: FrontFile, space: Space) -> FrontFile:
    """Write the format of each layer: its weights, and the tensor that it gives."""
    widths = widths_of(space, file.found.candidate)
    results = widths.results
    options = {n: str(Integers(w, results.get(n, MASKED))) for n, w in widths.weights.items()}
    return replace(file, options=options)


def _result(
    materials: SeedMaterials, network: Network, searched: Searched, files: list[FrontFile]
) -> SearchResult:
    layers, space = network.layers(), materials.space
    costs: dict[str, float] = {FORMULA: float_bytes(list(layers.values()))}
    if materials.options.inputs:
        costs[OPERATIONS] = float_operations(network.model.graph)
    short = short_names([name for gene in space.genes for name in gene.layers])
    names = [short[g.layers[0]] + (" out" if g.options[0][0] == "a" else "") for g in space.genes]
    whole = Found(("float",) * len(space.genes), len(materials.model), 0.0, 0.0, 1.0, costs=costs)
    weights = [sum(layers[name].weights for name in gene.layers) for gene in space.genes]
    return SearchResult(
        files,
        objectives_of(costs),
        whole,
        names,
        searched.evaluated,
        searched.uniform,
        searched.greedy,
        weights,
        searched.failed,
    )
