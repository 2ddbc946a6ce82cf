"""Build the compiled steps of LSTMs in integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array
from luciole.ir.value import shape_text
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.contract import Built
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.reasons import Declined
from luciole.kernels.fixed_point.functions_16 import BITS, logistic, table, tanh
from luciole.kernels.jit import LANES
from luciole.kernels.recurrent import integer_lstm_steps as steps
from luciole.kernels.recurrent.byte_products import Matrix, room_for_row
from luciole.kernels.recurrent.integer_lstm_cell import (
    GATE_BITS,
    NORM_BITS,
    Factor,
    Gate,
    IntegerCell,
    Norm,
    Product,
)
from luciole.kernels.recurrent.operands import Arrays


class IntegerLSTM:
    """Builder of one layer's step. ``x`` and ``y`` are [time, batch, ...]."""

    def __init__(self, cell: IntegerCell, arrays: Arrays, x: Array, y: Array) -> None:
        self.cell, self.x, self.y, self.memory = cell, x, y, Memory()
        self.output_state, self.cell_state = arrays["output_state"], arrays["cell_state"]
        kept = cell.forget if cell.input is None else cell.input
        self.gates = (kept, cell.forget, cell.candidate, cell.output)

    def step(self) -> Built:
        """Make the step; Declined where sums may be too large, None for diagonals of weights and
        where some gates are normalized and others are not.
        """
        if any(gate.recurrent.weights.ndim != 2 for gate in self.gates):
            return None
        if len({gate.norm is None for gate in self.gates}) > 1:
            return None
        self._check()
        matrices = {"projection": 0}
        for name, products in self._products().items():
            matrix = _joined(products)
            if isinstance(matrix, Declined):
                return matrix
            matrices[name] = matrix.keep(steps.GATES, self.memory)
        fields = matrices | self._tensors() | self._rooms() | self._cells()
        record = steps.LSTMRecord(**fields | self._results())
        return self.memory.step(steps.lstm_steps.address, record)

    def _products(self) -> dict[str, list[Product]]:
        """List the products whose weights are joined, by the names of the joined ones."""
        products = {
            "of_input": [gate.input for gate in self.gates],
            "of_output": [gate.recurrent for gate in self.gates],
        }
        return products | ({"projection": [self.cell.projection]} if self.cell.projection else {})

    def _check(self) -> None:
        """Raise ExecutionError for weights of other shapes than a kernel walks."""
        cells, outputs, inputs = self.cell_state.shape[1], self.y.shape[2], self.x.shape[2]
        shapes: list[tuple[Array, tuple[int, ...]]] = []
        shapes += [(gate.input.weights, (cells, inputs)) for gate in self.gates]
        shapes += [(gate.recurrent.weights, (cells, outputs)) for gate in self.gates]
        shapes += [(g.peephole[0], (cells,)) for g in self.gates if g.peephole is not None]
        norms = [g.norm for g in self.gates if g.norm is not None]
        shapes += [(n.coefficients, (cells,)) for n in norms] + [(n.bias, (cells,)) for n in norms]
        if self.cell.projection is not None:
            shapes.append((self.cell.projection.weights, (outputs, cells)))
        elif outputs != cells:
            raise ExecutionError(f"{cells} cells make {outputs} outputs without a projection")
        for weights, expected in shapes:
            if weights.shape != expected:
                shape, right = shape_text(weights.shape), shape_text(expected)
                raise ExecutionError(f"a compiled kernel would walk {right} of weights {shape}")

    def _tensors(self) -> dict[str, int]:
        (times, batches, inputs), outputs = self.x.shape, self.y.shape[2]
        cells, moves = self.cell_state.shape[1], {"x": self.x.strides, "y": self.y.strides}
        loops = {name: [turns(times, s[0]), turns(batches, s[1])] for name, s in moves.items()}
        walks = {f"{name}_time": s[0] for name, s in moves.items()}
        return {
            "batches": batches,
            "times": times,
            "inputs": inputs,
            "cells": cells,
            "outputs": outputs,
            "y": reach(self.y, outputs, *loops["y"]),
            "x": reach(self.x, inputs, *loops["x"]),
            "output_state": reach(self.output_state, outputs * batches),
            "cell_state": reach(self.cell_state, 2 * cells * batches),
            **walks,
            **{f"{name}_batch": s[1] for name, s in moves.items()},
        }

    def _rooms(self) -> dict[str, int]:
        cells, outputs = self.cell_state.shape[1], self.y.shape[2]
        lanes = steps.GATES * LANES
        return {
            "x_copy": room_for_row(self.x.shape[2], self.memory),
            "output_copy": room_for_row(outputs, self.memory),
            "hidden_copy": room_for_row(cells, self.memory),
            "gates": self.memory.scratch(-(-cells // LANES), lanes),
            "projected": self.memory.scratch(-(-outputs // lanes), lanes),
        }

    def _cells(self) -> dict[str, int]:
        bits, limits = self.cell.cell_bits, np.iinfo(np.int16)
        clip = self.cell.cell_clip
        return {
            "coupled": int(self.cell.input is None),
            "peepholes": self._peepholes(),
            "norms": self._norms(),
            "logistic": self._table(table(logistic)),
            "tanh_of_gate": self._table(table(tanh, GATE_BITS)),
            "tanh_of_cell": self._table(table(tanh, BITS + bits)),
            "cell_shift": 2 * BITS + bits,
            "cell_least": -clip if clip > 0 else limits.min,
            "cell_most": clip if clip > 0 else limits.max,
        }

    def _results(self) -> dict[str, int]:
        clip = self.cell.proj_clip
        return {
            "hidden": self.memory.record(steps.Factor(**_fields(self.cell.hidden_factor))),
            "hidden_zero": self.cell.hidden_zero,
            "zero": self.cell.zero,
            "least": -clip if clip > 0 else -128,
            "most": clip if clip > 0 else 127,
        }

    def _table(self, table: Array) -> int:
        """Share a table with other layers."""
        self.memory.arrays.append(table)
        return reach(table, table.nbytes)

    def _peepholes(self) -> int:
        """Keep the peepholes of input, forget and output gate, where there are some."""
        with_peepholes = (self.gates[0], self.gates[1], self.gates[3])
        rows = [row for row in map(self._peephole, with_peepholes) if row is not None]
        return self.memory.table(rows, steps.Peephole) if rows else 0

    def _peephole(self, gate: Gate) -> steps.Peephole | None:
        if gate.peephole is None:
            return None
        weights, factor = gate.peephole
        kept = placed(weights.astype(np.int16))
        self.memory.arrays.append(kept)
        cells = self.cell_state.shape[1]
        return steps.Peephole(weights=reach(kept, 2 * cells), **_fields(factor))

    def _norms(self) -> int:
        """Keep the constants that normalize gates, where there are some."""
        rows = [self._norm(gate.norm) for gate in self.gates if gate.norm is not None]
        return self.memory.table(rows, steps.Norm) if rows else 0

    def _norm(self, norm: Norm) -> steps.Norm:
        cells = self.cell_state.shape[1]
        return steps.Norm(
            coefficients=self.memory.keep(norm.coefficients.astype(np.int16), cells),
            biases=self.memory.keep(norm.bias.astype(np.int32), cells),
            multiplier=int(norm.factor.multiplier),
            shift=int(norm.factor.shift) + NORM_BITS,
            guard=norm.guard,
        )


def _fields(factor: Factor) -> dict[str, int]:
    return {"multiplier": int(factor.multiplier), "shift": int(factor.shift)}


def _joined(products: Sequence[Product]) -> Matrix | Declined:
    """Join the weights of gates: of each block of 16 cells, all gates one behind the other."""
    factors = [np.full(len(p.weights), p.factor.real) for p in products]
    return Matrix.of(
        _by_blocks([p.weights for p in products]),
        _by_blocks([p.bias for p in products]),
        products[0].zero,
        _by_blocks(factors),
    )


def _by_blocks(gates: Sequence[Array]) -> Array:
    """Interleave arrays [cells, ...] as [blocks gates 16, ...], filled up with zeros."""
    cells, *rest = gates[0].shape
    blocks = -(-cells // LANES)
    padded = np.zeros((len(gates), blocks * LANES, *rest), gates[0].dtype)
    padded[:, :cells] = np.stack(gates)
    return padded.reshape(len(gates), blocks, LANES, *rest).swapaxes(0, 1).reshape(-1, *rest)
