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
    given = named(op, operands)
    weights = named_weights(op, given, op.asymmetric_quantize_inputs)
    settings = Settings(op.activation, op.cell_clip, op.proj_clip)

    def run(way: str, steps: Array, others: Array | None) -> Array:
        own = directed(given, way)
        cell = Cell(settings, own, directed(weights, way))
        return lstm_cell.run(cell.step, steps, own["output_state"], own["cell_state"], others)

    return run_both(
        run,
        given["input"],
        given.get("auxillary_input"),
        meets="fw_auxillary_input_to_forget_weights" in given,
        time_major=op.time_major,
        merged=op.merge_outputs,
    )
