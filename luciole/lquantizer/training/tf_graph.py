"""A graph as a TensorFlow function, so that gradients pass through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from luciole.ir import Array, Graph, LucioleError, Op, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import has_batch_axis, shape_text
from luciole.kernels.core import evaluation
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training import tf_layout, tf_math, tf_windows  # noqa: F401  # fill the table
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow, tensorflow
from luciole.lquantizer.training.tf_table import find_function, is_constant, refuse_unsupported

Forward = Callable[..., Tensor]
"""``forward(x)``, which stands for an operator whose parameters are trained."""


class TensorGraph:
    """A graph that TensorFlow can run and differentiate; the first axis of inputs stays open.

    ``layers`` replace operators, ``variables`` constants; ``before_pass`` is called before each
    pass through the graph. Raises UnsupportedError that lists every
    operator without a TensorFlow form, QuantizeError for inputs or outputs that do not count
    records.
    """

    def __init__(
        self,
        graph: Graph,
        layers: Mapping[Any, Forward] | None = None,
        variables: Mapping[Value, Tensor] | None = None,
        before_pass: Callable[[], None] | None = None,
    ) -> None:
        self.graph, self._before_pass = graph, before_pass
        self.tf: TensorFlow = tensorflow()
        self._layers: dict[Op, Forward] = dict(layers or {})
        self._variables = dict(variables or {})
        _check_batch_axes(graph)
        self._constants: dict[Value, Array] = {
            v: v.data for v in graph.values if v.data is not None and v not in self._variables
        }
        self._ops = [op for op in graph.ops if not self._fold(op)]
        refuse_unsupported(self._ops, self._layers)

    def _fold(self, op: Op) -> bool:
        """Compute an operator once and for all where nothing that it reads ever changes."""
        if not op.operands or not all(is_constant(v, self._constants) for v in op.operands):
            return False
        arrays = [None if v is None else self._constants[v] for v in op.operands]
        results = evaluation.computed(op, arrays)
        self._constants.update(zip(op.results, results, strict=True))
        return True

    def __call__(self, inputs: Sequence[Tensor]) -> dict[Value, Tensor]:
        """Compute every tensor of the graph from its inputs, in the graph's order.

        Call it inside of a ``tf.function`` with the ``signature``: constant shapes that say 1
        record are understood as any number only where the number is open.
        """
        if self._before_pass is not None:
            self._before_pass()
        contents: dict[Value, Any] = {**self._constants, **self._variables}
        contents.update(zip(self.graph.inputs, inputs, strict=True))
        for op in self._ops:
            operands = [None if v is None else contents[v] for v in op.operands]
            results = self._run(op, operands)
            contents.update(zip(op.results, results, strict=True))
        return contents

    def _run(self, op: Op, operands: list[Any]) -> Sequence[Tensor]:
        layer = self._layers.get(op)
        try:
            if layer is not None:
                result = layer(operands[0])
            else:
                result = find_function(op)(self.tf, op, *op.arguments(operands))
        except LucioleError as error:
            raise type(error)(f"{op}: {error}") from None
        except (ValueError, TypeError, IndexError, self.tf.errors.OpError) as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise QuantizeError(f"{op}: TensorFlow cannot compute it: {line}") from error
        return result if isinstance(result, list | tuple) else [result]

    def signature(self) -> list[Any]:
        """Make a ``tf.TensorSpec`` for each input, with an open first axis."""
        return [self.tf.TensorSpec((None, *v.shape[1:]), NUMPY[v.dtype]) for v in self.graph.inputs]

    def function(self, outputs: Sequence[Value]) -> Callable[..., list[Tensor]]:
        """Compile a function from the inputs to the wanted tensors."""

        def run(*inputs: Tensor) -> list[Tensor]:
            contents = self(inputs)
            return [self.tf.convert_to_tensor(contents[v]) for v in outputs]

        compiled: Callable[..., list[Tensor]] = self.tf.function(
            run, input_signature=self.signature(), autograph=False
        )
        return compiled


def _check_batch_axes(graph: Graph) -> None:
    for value in (*graph.inputs, *graph.outputs):
        if not has_batch_axis(value):
            raise QuantizeError(
                f"tensor {value.name!r} is {shape_text(value.shape)}: fine-tuning needs inputs and "
                "outputs whose first axis counts records (1 or unknown)"
            )
