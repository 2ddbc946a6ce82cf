"""Plans of graphs with variables by name: their steps are compiled once they ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.observe import Observer
from luciole.interpreter.plan import Plan
from luciole.interpreter.steps import Step
from luciole.ir import Op
from luciole.ir.calls import reachable
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.ops.variables import AssignVariable
from luciole.kernels.core import building
from luciole.kernels.core.allocation import side_by_side
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import find_stateful_native
from luciole.kernels.core.state import State


class StatefulPlan(Plan):
    """A plan whose first run finds out the contents of variables; from then on their steps are
    compiled, all or none. A variable that has moved sends them back to the references for a run.
    """

    def __init__(self, *args: Any, state: State) -> None:
        super().__init__(*args)
        self._state = state
        self._stateful = [step for step in self.steps if find_stateful_native(step.op)]
        self._tries = not any(map(_assigns_elsewhere, self._settled.ops))
        self._moves: int | None = None

    @property
    def call(self) -> Callable[[], object]:
        """Function that runs every step: the steps may change from run to run."""
        return self.run

    def run(self) -> None:
        """Run every step, and compile steps that could not be before."""
        self._follow_variables()
        super().run()
        if self._moves is None and self._tries:
            self._compile()

    def run_observed(self, observers: Sequence[Observer]) -> None:
        """Run the steps one at a time, and notify observers."""
        self._follow_variables()
        super().run_observed(observers)

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step and return the nanoseconds that each took."""
        self._follow_variables()
        return super().run_timed()

    def _follow_variables(self) -> None:
        """Leave the steps with state to their references where a variable has moved."""
        if self._moves not in (None, self._state.moves):
            for step in self._stateful:
                step.native = None
            self._moves = None
            self._arrange()

    def _compile(self) -> None:
        """Compile the steps with state; where one cannot be, none is, and that stays so."""
        with self._meter, np.errstate(all="ignore"), side_by_side():
            natives = [self._built(step) for step in self._stateful]
        self._tries = all(native is not None for native in natives)
        if self._tries:
            for step, native in zip(self._stateful, natives, strict=True):
                step.native = native
            self._moves = self._state.moves
            self._arrange()

    def _built(self, step: Step) -> NativeStep | None:
        if step.context is None:
            return None
        made = accepted(building.build_after_run, step.op, self._state, step.context)
        step.reason = made.reason if isinstance(made, Declined) else ""
        return made if isinstance(made, NativeStep) else None


def _assigns_elsewhere(op: Op) -> bool:
    """Return whether an operator calls graphs that may assign anything to a variable in each
    run.
    """
    if isinstance(op, CallOnce):
        return False
    called = [inner for graph in op.called_graphs() for g in reachable(graph) for inner in g.ops]
    return any(isinstance(inner, AssignVariable) for inner in called)
