"""Find every pass by its name, and run several until none changes anything."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, partial

from luciole.ir.errors import DefinitionError, LucioleError
from luciole.ir.graph import Graph, Model
from luciole.ir.passes import Pass as GraphPass
from luciole.ir.passes import run_passes
from luciole.ir.passes.cleaning.remove_dead import remove_dead_buffers
from luciole.ir.rewriting.passes import Evaluate, Pass

FOLDERS = ("cleaning", "canonical", "composites", "folding", "layout")
"""Where passes stand, in the order in which a round runs them."""

O1, CANONICAL, NONE = "o1", "canonical", "none"
PRESETS = {O1: FOLDERS, CANONICAL: FOLDERS[:3], NONE: ()}
"""Folders of the passes that a preset runs, but for those that are run on request alone."""

_FOR_SIZE = ("remove_duplicate_const",)
"""Passes that make files smaller and graphs no simpler, which are not canonical: what is done to a
constant is done to all that share it.
"""

Kinds = Counter[str]


@dataclass(frozen=True)
class NamedPass:
    """A pass with its name, which is that of its file, and the folder that this stands in."""

    name: str
    folder: str
    call: Pass[...]

    @property
    def summary(self) -> str:
        """The first sentence of its docstring: what it rewrites to what."""
        text = inspect.cleandoc(self.call.__doc__ or "").partition("\n\n")[0]
        return re.sub(r"\s+", " ", text)

    @property
    def needs_circle(self) -> bool:
        """Whether it makes operators that only circle has: their codes are below 0."""
        return any(kind.code < 0 for kind in self.call.makes)

    def run(self, graph: Graph, evaluate: Evaluate) -> bool:
        """Run it on a graph, with ``evaluate`` where it computes constants."""
        if "evaluate" in inspect.signature(self.call.run).parameters:
            return self.call(graph, evaluate)
        return self.call(graph)


@dataclass
class Change:
    """What all runs of a pass changed together: operators by kind that went and that came."""

    times: int = 0
    gone: Kinds = field(default_factory=Counter)
    added: Kinds = field(default_factory=Counter)


@cache
def all_passes() -> dict[str, NamedPass]:
    """Find the passes, by name, in the order in which they run. Raises DefinitionError for a file
    without a pass of its name, and for a docstring that does not begin with before and after.
    """
    named = [_named(folder, name) for folder in FOLDERS for name in _modules(folder)]
    return {one.name: one for one in named}


def _modules(folder: str) -> list[str]:
    package = importlib.import_module(f"{__package__}.{folder}")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def _named(folder: str, name: str) -> NamedPass:
    module = importlib.import_module(f"{__package__}.{folder}.{name}")
    run = vars(module).get(name)
    if not callable(run):
        raise DefinitionError(f"{module.__name__} has no pass {name!r}: it is to be named so")
    one = NamedPass(name, folder, run if isinstance(run, Pass) else Pass(run))
    if "->" not in one.summary:
        raise DefinitionError(f"pass {name!r}: its docstring does not begin with before -> after")
    return one


def chosen(
    preset: str = O1,
    passes: Iterable[str] | None = None,
    without: Iterable[str] = (),
    *,
    circle: bool = True,
) -> list[NamedPass]:
    """Choose the passes of a preset, or those that are named, where a preset's name stands for its
    passes, ``without`` some; for a format that is not ``circle``'s only those that make nothing but
    operators of TFLite.

    Raises LucioleError for names that no pass and no preset has, and for a named pass that makes
    operators which the format does not have.
    """
    left_out = {_known(name).name for name in without}
    if passes is not None:
        chains = [_of_name(name, circle=circle) for name in passes]
        named = list({one.name: one for chain in chains for one in chain}.values())
        for one in named:
            if one.needs_circle and not circle:
                kinds = ", ".join(kind.code.name for kind in one.call.makes)
                raise LucioleError(f"pass {one.name} makes {kinds}, which only .circle files have")
        return [one for one in named if one.name not in left_out]
    if preset not in PRESETS:
        raise LucioleError(f"no preset is called {preset!r}: there are {', '.join(PRESETS)}")
    return [one for one in _of_preset(preset, circle=circle) if one.name not in left_out]


def _of_name(name: str, *, circle: bool) -> list[NamedPass]:
    """Return the passes of a preset, or the one of that name."""
    return _of_preset(name, circle=circle) if name in PRESETS else [_known(name)]


def _of_preset(preset: str, *, circle: bool) -> list[NamedPass]:
    folders = PRESETS[preset]
    left_out = _FOR_SIZE if preset == CANONICAL else ()
    known = all_passes().values()
    usual = [one for one in known if not one.call.on_request and one.name not in left_out]
    return [one for one in usual if one.folder in folders and (circle or not one.needs_circle)]


def _known(name: str) -> NamedPass:
    known = all_passes()
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "luciole optimize --list shows them all"
        raise LucioleError(f"no pass is called {name!r}: {hint}")
    return known[name]


def run_on_model(
    model: Model, passes: Sequence[NamedPass], evaluate: Evaluate
) -> dict[str, Change]:
    """Run passes on every graph of a model, round after round until none changes anything, and then
    those that run at last, in the order in which they are listed; return what each changed.

    Raises ShapeError, naming the operator, where operands do not fit together, and GraphError for
    passes that undo each other.
    """
    changes = {one.name: Change() for one in passes}
    often = [one for one in passes if not one.call.at_last]
    once = [one for one in all_passes().values() if one in passes and one.call.at_last]
    meanwhile = [one.call.meanwhile for one in once if one.call.meanwhile is not None]
    for graph in model.graphs:
        rounds = [partial(_watched, one, evaluate, changes[one.name]) for one in often]
        run_passes(graph, [*rounds, *meanwhile])
        for one in once:
            _watched(one, evaluate, changes[one.name], graph)
    if passes:
        remove_dead_buffers(model)
    return {name: change for name, change in changes.items() if change.times}


def canonical_passes(evaluate: Evaluate) -> list[GraphPass]:
    """Return the passes that bring a graph into the one form that importers give and quantizers
    begin with, whose operators all are TFLite's.
    """
    return [partial(one.run, evaluate=evaluate) for one in chosen(CANONICAL, circle=False)]


def make_canonical(model: Model, evaluate: Evaluate) -> None:
    """Bring a model into that form. Raises what ``run_on_model`` does."""
    run_on_model(model, chosen(CANONICAL, circle=False), evaluate)


def _watched(one: NamedPass, evaluate: Evaluate, change: Change, graph: Graph) -> bool:
    before = _kinds(graph)
    if not one.run(graph, evaluate):
        return False
    after = _kinds(graph)
    change.times += 1
    change.gone += before - after
    change.added += after - before
    return True


def _kinds(graph: Graph) -> Kinds:
    return Counter(op.kind for op in graph.ops)
