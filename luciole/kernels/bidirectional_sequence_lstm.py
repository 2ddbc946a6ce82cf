"""BIDIRECTIONAL_SEQUENCE_LSTM kernels."""

from __future__ import annotations

from luciole.ir import Array, TensorType
from luciole.ir.ops.bidirectional_sequence_lstm import BidirectionalSequenceLSTM
from luciole.ir.recurrent import directed
from luciole.kernels.core.registry import reference
from luciole.kernels.recurrent import lstm_cell
from luciole.kernels.recurrent.both_ways import run_both
from luciole.kernels.recurrent.lstm_cell import Cell, Settings
from luciole.kernels.recurrent.operands import named, named_weights


@reference(BidirectionalSequenceLSTM, TensorType.FLOAT32)
def bidirectional_lstm(op: BidirectionalSequenceLSTM, *operands: Array | None) -> tuple[Array, ...]:
    """Run both directions; the four state operands are overwritten with the states of their last
    steps.
    """
    arrays = named(op, operands)
    weights = named_weights(op, arrays, op.asymmetric_quantize_inputs)
    settings = Settings(op.activation, op.cell_clip, op.proj_clip)

    def run(direction: str, steps: Array, others: Array | None) -> Array:
        own = directed(arrays, direction)
        cell = Cell(settings, own, directed(weights, direction))
        return lstm_cell.run(cell.step, steps, own["output_state"], own["cell_state"], others)

    return run_both(
        run,
        arrays["input"],
        arrays.get("auxillary_input"),
        meets="fw_auxillary_input_to_forget_weights" in arrays,
        time_major=op.time_major,
        merged=op.merge_outputs,
    )
