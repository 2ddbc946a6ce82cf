"""Run a model: the calls and dictionaries of LiteRT's interpreter, and ``run`` for the rest."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT, Caller
from luciole.interpreter.compile import DEFAULT_MEMORY_LIMIT, compile_graph
from luciole.interpreter.crew import Crew
from luciole.interpreter.details import TensorDetails, details_of
from luciole.interpreter.ends import Ends, ends_by_name, ends_text, lasting_arrays
from luciole.interpreter.errors import NO_ARRAY, InputError
from luciole.interpreter.inputs import (
    as_array,
    as_numbers,
    call_by_names,
    check_fits,
    inputs_by_name,
    resized,
    wrong_shapes,
)
from luciole.interpreter.observe import Observer
from luciole.interpreter.plan import Plan
from luciole.interpreter.signature_runner import SignatureRunner
from luciole.interpreter.turn import Turn
from luciole.interpreter.uncopied import Uncopied
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.calls import reachable
from luciole.ir.errors import ShapeError, expect
from luciole.ir.names import ways
from luciole.kernels.core.meter import SLACK

MOST_THREADS = max(64, 16 * (os.cpu_count() or 1))
"""Threads of an interpreter: more than cores gain nothing, and thousands stop a machine."""


class Interpreter(Uncopied):
    """Runs the main graph of a model, or another ``graph`` of it.

    Every tensor can be read after a run: when one is asked for that made room for others, the model
    runs again on the same inputs, and from then on in memory that keeps everything, as it does from
    the beginning with ``keep_tensors``.

    ``num_threads`` above 1 lets threads share operators, worth it where a core is free for each of
    them; the first runs, and some again after 2,000 others, measure whether one thread is quicker,
    which then does all. ``loop_limit`` is how many steps all WHILE of a run may do together.

    Signatures of other graphs of the model run with the same variables.

    An interpreter runs for one caller at a time, whichever thread it is called from: another call
    meanwhile is refused with a BusyError. Interpreters of one model know nothing of each other. See
    docs/how-to/untrusted-files.md.

    Unless kernels are to be ``compiled``, NumPy computes everything: slower by far, but a first
    result of a network that nothing is cached of does not wait for a compiler. Only compiled
    kernels share work among threads.

    Raises UnsupportedError, listing what is missing, when the model holds operators without a
    kernel, and MemoryLimitError when it asks for more than ``memory_limit`` bytes.
    """

    def __init__(
        self,
        model: Model,
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        keep_tensors: bool = False,
        num_threads: int = 1,
        loop_limit: int = DEFAULT_LOOP_LIMIT,
        graph: Graph | None = None,
        compiled: bool = True,
    ) -> None:
        expect(num_threads, (int, np.integer), "num_threads: a whole number")
        if num_threads < 1:
            raise InputError(f"num_threads is {num_threads}, it must be 1 or more")
        if num_threads > MOST_THREADS:
            raise InputError(f"num_threads is {num_threads}, this machine takes {MOST_THREADS}")
        if num_threads > 1 and not compiled:
            raise InputError(f"num_threads is {num_threads}: only compiled kernels share work")
        expect(loop_limit, (int, np.integer), "loop_limit: a whole number")
        if loop_limit < 1:
            raise InputError(f"loop_limit is {loop_limit}, it must be 1 or more")
        self.model = model
        self._compiled = compiled
        self._memory_limit = memory_limit
        self._keep_always = keep_tensors
        self._crew = Crew(num_threads) if num_threads > 1 else None
        self._caller = Caller(loop_limit, memory_limit)
        self._turn = Turn()
        self._begin(model.graph if graph is None else graph)

    def __repr__(self) -> str:
        ends = (ends_text(side) for side in (self.graph.inputs, self.graph.outputs))
        return f"<{type(self).__name__} of {self.graph!r}: {' -> '.join(ends)}>"

    def _begin(self, graph: Graph) -> None:
        """Take a graph of the model to run, of which nothing is settled yet."""
        self.graph = graph
        # a second run would move the state on, so a graph with state keeps everything
        self._keep = self._keep_always or _has_state(graph)
        self._ran = False
        self._siblings: dict[Graph, Interpreter] = {}
        self._shapes: dict[Value, tuple[int, ...]] = {v: v.dims for v in graph.inputs}
        numbers = {value: number for number, value in enumerate(graph.values)}
        self._inputs = [numbers[value] for value in graph.inputs]
        self._calls = ways(graph)
        self._plan: Plan | None = None
        self._call: Callable[[], object] | None = None
        self._ends: dict[str | None, Ends] = {}
        self._places: dict[int, Array] = {}
        self._observers: list[Observer] = []

    # ---------------------------------------------------------------------- observing
    def attach_observer(self, observer: Observer) -> None:
        """Add an observer, one of several. Raises InputError for one that watches already."""
        expect(observer, Observer, "observer: an object of a class that derives from Observer")
        if observer in self._observers:
            raise InputError("this observer is attached already")
        self._observers.append(observer)

    def detach_observer(self, observer: Observer) -> None:
        """Remove an observer. Raises InputError for one that does not watch."""
        if observer not in self._observers:
            raise InputError("this observer is not attached")
        self._observers.remove(observer)

    # ------------------------------------------------------------------- LiteRT's calls
    def allocate_tensors(self) -> None:
        """Settle shapes, choose kernels and take memory. Needed once, and again after a resize."""
        if self._plan is None:
            with self._turn:
                self._allocate()

    def _allocate(self) -> None:
        if self._plan is None:
            if self._caller.meter.taken > SLACK:
                gc.collect()  # graphs are cycles: what those of former plans hold is found so
            plan = compile_graph(
                self.graph,
                self._shapes,
                self._memory_limit,
                self._keep,
                self._crew,
                self._caller,
                self._compiled,
            )
            plan.reset_variables()
            self._plan, self._places = plan, lasting_arrays(plan, self.graph)
            self._call = plan.call
            self._ends = ends_by_name(plan, self.graph.inputs, self._calls)
            self._ran = False

    def _drop_plan(self) -> None:
        """Give back its memory, before the next one takes some."""
        self._plan, self._call, self._places, self._ends = None, None, {}, {}

    @property
    def plan(self) -> Plan:
        """The plan that runs. Raises InputError before allocate_tensors and after a resize."""
        if self._plan is None:
            raise InputError("call allocate_tensors() first")
        return self._plan

    @property
    def arena_bytes(self) -> int:
        """Bytes of the block that holds inputs, outputs and everything between."""
        return self.plan.arena_bytes

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants in use, as the file holds them."""
        return self.plan.constant_bytes

    def resize_tensor_input(
        self, input_index: int, tensor_size: Iterable[SupportsIndex], strict: bool = False
    ) -> None:
        """Give an input another shape; ``strict`` allows it only for extents that the model leaves
        open.
        """
        with self._turn:
            self._resize(input_index, tensor_size, strict)

    def _resize(self, input_index: int, tensor_size: Iterable[SupportsIndex], strict: bool) -> None:
        value = self._value(input_index)
        if value not in self._shapes:
            raise InputError(
                f"tensor {input_index} {value.name!r} is no input: only inputs are resized"
            )
        shape = resized(value, tensor_size, strict=strict)
        if self._shapes[value] != shape:
            self._shapes[value] = shape
            self._drop_plan()

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy an array into a tensor, for STRING one of bytes and str in any of NumPy's types.
        Raises InputError when type or shape differ.
        """
        if self._turn.taken:
            self._turn.check_inside()
        self._set(tensor_index, value)

    def _place(self, tensor_index: int) -> Array | None:
        """Return the memory of a tensor that is known; None for others, and for what is no number,
        which ``_value`` refuses.
        """
        try:
            return None if tensor_index.__class__ is bool else self._places.get(tensor_index)
        except TypeError:  # a list
            return None

    def _set(self, tensor_index: int, value: Any) -> None:
        place = self._place(tensor_index)
        if place is None:
            tensor = self._value(tensor_index)
            array = as_array(tensor, value)
            self._check_fits(tensor_index, array)
            self.plan.give(tensor, array)
            return
        try:
            array = np.asarray(value)
        except NO_ARRAY:
            array = as_array(self._value(tensor_index), value)  # which says what is wrong
        if array.dtype != place.dtype or array.shape != place.shape:
            self._check_fits(tensor_index, array)
        place[...] = array

    def _check_fits(self, tensor_index: int, array: Array) -> None:
        tensor = self._value(tensor_index)
        check_fits(tensor_index, tensor, array, self._array(tensor))

    def invoke(self) -> None:
        """Run the model on the contents of the inputs. Raises BusyError while it runs already."""
        turn = self._turn
        if turn.taken:
            raise turn.refusal()
        turn.taken = True  # in all 20 ns, where ``with turn`` takes 250
        try:
            call = self._call
            if call is None or self._observers:
                self._run()
            else:
                call()
                self._ran = True
        finally:
            turn.taken = False

    def _run(self) -> None:
        """Run the model for who has the turn."""
        if self._observers:
            with self._turn.watched():
                self.plan.run_observed(tuple(self._observers))
        else:
            self.plan.run()
        self._ran = True

    def get_tensor(self, tensor_index: int) -> Array:
        """Copy any tensor's contents."""
        if self._turn.taken:
            self._turn.check_inside()
        place = self._place(tensor_index)
        return (self._array(self._value(tensor_index)) if place is None else place).copy()

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that gives a view of a tensor's contents, without a copy. Views show
        what runs write, also those of other threads.
        """
        value = self._value(tensor_index)
        return lambda: self._array(value)

    def get_input_details(self) -> list[TensorDetails]:
        """Return LiteRT's dictionaries of the inputs."""
        return [self._details(v) for v in self.graph.inputs]

    def get_output_details(self) -> list[TensorDetails]:
        """Return LiteRT's dictionaries of the outputs."""
        return [self._details(v) for v in self.graph.outputs]

    def get_tensor_details(self) -> list[TensorDetails]:
        """Return LiteRT's dictionaries of all tensors."""
        return [self._details(v) for v in self.graph.values]

    def reset_all_variables(self) -> None:
        """Set every variable tensor (the state of an LSTM, ...) to its initial contents.

        What ASSIGN_VARIABLE has written stays, as in LiteRT.
        """
        if self._turn.taken:
            self._turn.check_inside()
        self.plan.reset_variables()
        self._caller.reset_variables()

    def reset_before_run(self) -> None:
        """Give the next run fresh variables, also before memory was taken."""
        if self._plan is not None:
            self.reset_all_variables()

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return argument and result names of every signature, in alphabetical order as LiteRT."""
        return {
            s.key: {"inputs": sorted(dict(s.inputs)), "outputs": sorted(dict(s.outputs))}
            for s in self.model.signatures
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a function that takes a signature's arguments by name and returns its results by
        name.
        """
        expect(signature_key, (str, type(None)), "signature_key: a text")
        signatures = {s.key: s for s in self.model.signatures}
        if signature_key is None and len(signatures) == 1:
            signature_key = next(iter(signatures))
        if signature_key not in signatures:
            raise InputError(f"there is no signature {signature_key!r}, only {sorted(signatures)}")
        signature = signatures[signature_key]
        return SignatureRunner(self._of(signature.graph), signature)

    def _of(self, graph: Graph) -> Interpreter:
        """Make an interpreter of a graph of the model, with this one's variables and settings."""
        if graph is self.graph:
            return self
        if graph not in self._siblings:
            sibling = object.__new__(type(self))
            vars(sibling).update(vars(self))  # the same variables, threads, limits and turn
            sibling._begin(graph)
            self._siblings[graph] = sibling
        return self._siblings[graph]

    # ----------------------------------------------------------------------- one call
    def run(self, inputs: Mapping[str, Any] | Any) -> dict[str, Array]:
        """Run the model on arrays by input name (one array alone for a model with one input).

        Lists, numbers and float64 will do: real numbers become what an input stores, quantized
        where it is, as ``luciole.run`` and the programs have it. Inputs are resized where their
        shapes differ from the last run. Returns the outputs by name: by a signature's names where
        the inputs came by those, else by the tensors' own. Raises InputError for names, types or
        shapes that the model does not take, and BusyError
        while it runs already.
        """
        named = inputs_by_name(inputs, self.graph)
        results = self._run_as_it_is(named) if type(named) is dict else None
        if results is None:
            outputs = call_by_names(named, self._calls).outputs
            arrays = self.computed(named, [value for _, value in outputs])
            results = {name: array for (name, _), array in zip(outputs, arrays, strict=True)}
        return results

    def _run_as_it_is(self, inputs: dict[str, Any]) -> dict[str, Array] | None:
        """Run where arrays of the present types and shapes are given for all inputs, else None.

        It takes 1 us beside the run, where looking at all that may be otherwise takes 4.
        """
        ends = self._ends.get(next(iter(inputs), None))
        if ends is None or len(inputs) != len(ends.inputs) or self._observers:
            return None
        for name, place in ends.inputs:
            array = inputs.get(name)
            if array.__class__ is not np.ndarray:
                return None
            if array.dtype != place.dtype or array.shape != place.shape:
                return None
        turn = self._turn
        if turn.taken:
            raise turn.refusal()
        turn.taken = True  # see ``invoke``
        try:
            for name, place in ends.inputs:
                place[...] = inputs[name]
            ends.run()
            self._ran = True
            return {name: array.copy() for name, array in ends.outputs}
        finally:
            turn.taken = False

    def computed(self, inputs: Mapping[str, Any] | Any, values: Sequence[Value]) -> list[Array]:
        """Run the model as ``run`` does; return copies of the tensors of ``values``."""
        with self._turn:
            self._take(inputs)
            self._run()
            plan = self.plan
            arrays = [array for v in values if (array := plan.array(v)) is not None]
            if len(arrays) < len(values):
                arrays = self._arrays(values)
            return [array.copy() for array in arrays]

    def _arrays(self, values: Sequence[Value]) -> list[Array]:
        """Return tensors of which some make room for others during a run."""
        if any(self.plan.is_overwritten(value) for value in values):
            self._keep_tensors()
        return [self._array(value) for value in values]

    def _take(self, inputs: Mapping[str, Any] | Any) -> None:
        """Set the inputs to a caller's arrays."""
        by_name = inputs_by_name(inputs, self.graph)
        named = zip(call_by_names(by_name, self._calls).inputs, self.graph.inputs, strict=True)
        arrays = [as_numbers(value, by_name[name]) for name, value in named]
        for number, array in zip(self._inputs, arrays, strict=True):
            place = self._places.get(number)
            if place is None or place.shape != array.shape:
                self._resize(number, array.shape, strict=False)
        try:
            self._allocate()
        except ShapeError as error:
            raise wrong_shapes(self._shapes, error) from error
        for number, array in zip(self._inputs, arrays, strict=True):
            self._set(number, array)

    # ---------------------------------------------------------------------- privately
    def _value(self, number: int) -> Value:
        count = len(self.graph.values)
        is_number = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not is_number or number not in range(count):
            raise InputError(f"there is no tensor {number!r}, they are numbered 0 to {count - 1}")
        return self.graph.values[int(number)]

    def _array(self, value: Value) -> Array:
        if self.plan.is_overwritten(value):
            self._compute_again(value)
        array = self.plan.array(value)
        if array is None:
            raise InputError(f"tensor {value.name!r} has no contents: nothing computed it yet")
        return array

    def _compute_again(self, value: Value) -> None:
        if self._turn.taken:
            raise InputError(
                f"tensor {value.name!r} makes room for others during a run: read it afterwards, "
                "or give keep_tensors"
            )
        with self._turn:
            self._keep_tensors()

    def _keep_tensors(self) -> None:
        """Take memory in which every tensor has a place of its own, and compute them again."""
        arrays, ran = {v: self.plan.array(v) for v in self.graph.inputs}, self._ran
        contents = {v: array.copy() for v, array in arrays.items() if array is not None}
        arrays.clear()
        self._drop_plan()
        self._keep = True
        self._allocate()
        for value, array in contents.items():
            self.plan.give(value, array)
        if ran:
            self.plan.run()
            self._ran = True

    def _details(self, value: Value) -> TensorDetails:
        settled = self._plan.shape(value) if self._plan else None
        shape = self._shapes.get(value, value.dims) if settled is None else settled
        return details_of(value, self.graph.values.index(value), shape)


def _has_state(graph: Graph) -> bool:
    """Return whether a run leaves something behind for the next one."""
    graphs = reachable(graph)
    return any(v.is_variable for g in graphs for v in g.values) or any(
        op.stateful for g in graphs for op in g.ops
    )
