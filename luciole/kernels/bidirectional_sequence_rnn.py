"""BIDIRECTIONAL_SEQUENCE_RNN kernels."""

from __future__ import annotations

from luciole.ir import Array, TensorType
from luciole.ir.ops.bidirectional_sequence_rnn import BidirectionalSequenceRNN
from luciole.ir.recurrent import directed
from luciole.kernels.core.registry import reference
from luciole.kernels.recurrent.both_ways import run_both
from luciole.kernels.recurrent.operands import named, named_weights
from luciole.kernels.recurrent.rnn_cell import Cell


@reference(BidirectionalSequenceRNN, TensorType.FLOAT32)
def bidirectional_rnn(op: BidirectionalSequenceRNN, *operands: Array | None) -> tuple[Array, ...]:
    """Run both directions; the two state operands are overwritten with the states of their last
    steps.
    """
    arrays = named(op, operands)
    weights = named_weights(op, arrays, op.asymmetric_quantize_inputs)

    def run(direction: str, steps: Array, others: Array | None) -> Array:
        own = directed(arrays, direction)
        return Cell(op.activation, own, directed(weights, direction)).run(
            steps, own["hidden_state"], others
        )

    return run_both(
        run,
        arrays["input"],
        arrays.get("aux_input"),
        meets="fw_aux_weights" in arrays,
        time_major=op.time_major,
        merged=op.merge_outputs,
    )
