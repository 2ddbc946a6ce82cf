"""What a pass is: a function on a graph, the operators that it makes, and when it is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op

P = ParamSpec("P")

Evaluate = Callable[[Op], Sequence[Array]]
"""Computes an operator whose operands are all constant. Kernels are not this room's: the caller
brings them.
"""


Visit = Callable[[Graph, Any], bool]
"""Rewrites one operator, of kinds that it names, and returns whether it changed anything."""


class Pass(Generic[P]):
    """A function ``(graph) -> whether it changed anything``, perhaps with an ``evaluate`` behind
    the graph, whose docstring begins with what it rewrites to what: ``SUB(x, c) -> ADD(x, -c)``.

    ``makes`` are operator classes that it puts into graphs, which a file's format must have. One
    ``on_request`` is in no preset: it is for some targets only, or the user has to vouch for it.
    One that runs ``at_last`` does so once, when all others have come to rest, which would undo it;
    ``meanwhile`` another pass runs among these.
    """

    def __init__(
        self,
        run: Callable[P, bool],
        makes: Sequence[type[Op]] = (),
        *,
        on_request: bool = False,
        at_last: bool = False,
        meanwhile: Callable[[Graph], bool] | None = None,
    ) -> None:
        self.run, self.makes, self.on_request = run, tuple(makes), on_request
        self.at_last, self.meanwhile = at_last, meanwhile
        self.__doc__ = run.__doc__
        self.__name__: str = run.__name__
        self.__module__ = run.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Run the pass on a graph."""
        return self.run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Pass {self.__name__}>"


def graph_pass(
    *makes: type[Op],
    on_request: bool = False,
    at_last: bool = False,
    meanwhile: Callable[[Graph], bool] | None = None,
) -> Callable[[Callable[P, bool]], Pass[P]]:
    """Make a pass of a function on a whole graph."""

    def decorate(run: Callable[P, bool]) -> Pass[P]:
        return Pass(run, makes, on_request=on_request, at_last=at_last, meanwhile=meanwhile)

    return decorate


def rewrite(
    *kinds: type[Op],
    makes: Sequence[type[Op]] = (),
    on_request: bool = False,
    last_first: bool = False,
) -> Callable[[Visit], Pass[[Graph]]]:
    """Make a pass of a function on one operator, which is called for every operator of some
    ``kinds``, in the order in which they run, or the ``last_first``, where part of what is looked
    for is such a thing itself.
    """

    def decorate(visit: Visit) -> Pass[[Graph]]:
        def run(graph: Graph) -> bool:
            changed = False
            for op in list(reversed(graph.ops) if last_first else graph.ops):
                if isinstance(op, kinds) and op.graph is graph:
                    changed |= visit(graph, op)
            return changed

        run.__doc__, run.__name__, run.__module__ = (
            visit.__doc__,
            visit.__name__,
            visit.__module__,
        )
        return Pass(run, makes, on_request=on_request)

    return decorate
