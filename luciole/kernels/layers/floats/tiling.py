"""Choose the pixels and outputs of a float kernel's tile, by a rough count of cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from luciole.kernels.jit import LANES
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.layers.geometry.pixel_tiles import Case

MAX_PIXELS = 12
"""Pixels in one tile: each takes a register that holds its address. Sums and the weights that they
share leave fewer where there are more outputs: tiles of 9 times 32 or 6 times 64 still fit.
"""

DEPTHWISE_PIXELS = 8
"""Most pixels of a tile where nothing is shared."""

SMALL = 2
"""Pixels in the tiles for pixels that are left over."""

TILE_CYCLES = 30
"""Cycles of a tile besides its products."""

DEPTHWISE_CYCLES = 60
"""Cycles of a tile besides its products where every channel has its own weights."""

LATENCY = 4
"""Cycles until a sum can be added to again: no step of a tile takes fewer."""

NEAR_BYTES = 24 << 10
"""Weights of a block beyond this, or used once, come from the second cache, some 32 bytes in a
cycle.
"""

Sizes = tuple[tuple[tuple[int, int], int], ...]
"""Of windows that are alike: how many pixels have them and their products, and how many there are
of such windows.
"""


@dataclass(frozen=True)
class Tiling:
    """Tiles of ``pixels`` pixels and ``vectors`` times 16 outputs."""

    pixels: int
    vectors: int

    @classmethod
    def of(
        cls, windows: Sequence[Case], outputs: int, depth: int, most: int | None = None
    ) -> Tiling:
        """Choose the quickest tiles for windows over ``depth`` channels, by a rough count of
        cycles, of at most ``most`` vectors.
        """
        return _quickest(_sizes(windows), outputs, depth, most)

    @classmethod
    def of_depthwise(cls, windows: Sequence[Case], vectors: int) -> Tiling:
        """Choose the quickest tiles for windows over each of ``vectors`` vectors of channels."""
        each = [v for v in (1, 2, 3, 4, 8, 16) if vectors % v == 0]
        candidates = _fitting(product(range(DEPTHWISE_PIXELS, 0, -1), each))
        return min(candidates, key=lambda t: t.depthwise_cycles(windows, vectors))

    def with_more(self) -> Tiling:
        """Choose as many pixels as leave room for one more vector of each."""
        most = vector_registers() * 3 // 4 // (self.vectors + 1)
        return Tiling(max(1, min(self.pixels, most)), self.vectors)

    @property
    def keeps_weights(self) -> bool:
        """Whether registers hold the weights that pixels share, and an input, beside the sums."""
        return self.pixels == 1 or (self.pixels + 1) * self.vectors < vector_registers()

    @property
    def lanes(self) -> int:
        """Outputs in one block."""
        return self.vectors * LANES

    @property
    def few(self) -> int:
        """Pixels left over that are quicker in small tiles than in another full one."""
        small, full = (self.step(pixels, near=True) for pixels in (SMALL, self.pixels))
        return max(n for n in range(self.pixels) if n == 0 or -(-n // SMALL) * small < full)

    def step(self, pixels: int, *, near: bool) -> float:
        """Estimate the cycles for the products of one channel of one tap."""
        loads = (pixels + self.vectors) / 2
        memory = 0 if near else 2 * self.vectors
        return max(pixels * self.vectors / 2, loads, LATENCY, memory)

    def cycles(self, windows: Sequence[Case], outputs: int, depth: int) -> float:
        """Estimate the cycles for all pixels of a group of outputs."""
        return self.cycles_of(_sizes(windows), outputs, depth)

    def cycles_of(self, sizes: Sizes, outputs: int, depth: int) -> float:
        """Estimate the cycles for a group of outputs, given the pixels and the products of each
        kind of window.
        """
        total, few = 0.0, self.few
        for (pixels, each), count in sizes:
            products = each * depth
            near = products * self.lanes * 4 <= NEAR_BYTES and pixels > self.pixels
            whole, left = divmod(pixels, self.pixels)
            small = -(-left // SMALL) if left <= few else 0
            whole += left > few
            cycles = whole * (products * self.step(self.pixels, near=near) + TILE_CYCLES)
            cycles += small * (products * self.step(SMALL, near=near) + TILE_CYCLES)
            total += count * cycles
        return total * -(-outputs // self.lanes)

    def depthwise_cycles(self, windows: Sequence[Case], vectors: int) -> float:
        """Estimate the cycles for all pixels where each channel has its own weights: loads alone
        count.
        """
        loads = (self.pixels * self.vectors + self.vectors) / 2
        each = [
            -(-len(case.y) // self.pixels) * (case.products * loads + DEPTHWISE_CYCLES)
            for case in windows
        ]
        return sum(each) * vectors / self.vectors


@lru_cache(4096)  # a search quantizes, and compiles, the same layers again and again
def _quickest(sizes_of_windows: Sizes, outputs: int, depth: int, most: int | None) -> Tiling:
    sizes = [(p, v) for v in (4, 3, 2, 1) for p in range(MAX_PIXELS, 0, -1) if v == 1 or p < 10]
    shared = [t for t in _fitting(sizes, most) if t.keeps_weights]
    return min(shared, key=lambda t: t.cycles_of(sizes_of_windows, outputs, depth))


def _sizes(windows: Sequence[Case]) -> Sizes:
    return tuple(Counter((len(case.y), case.products) for case in windows).items())


def _fitting(sizes: Iterable[tuple[int, int]], most: int | None = None) -> list[Tiling]:
    """Return tiles of at most ``most`` sums; else those whose sums leave a quarter of the registers
    to weights and inputs.
    """
    most = vector_registers() * 3 // 4 if most is None else most
    return [Tiling(pixels, vectors) for pixels, vectors in sizes if pixels * vectors <= most]
