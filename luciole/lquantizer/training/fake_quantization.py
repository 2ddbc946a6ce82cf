"""Numbers rounded to integers of a scale and back, with gradients that pass straight through.

Forward it is what QUANTIZE and DEQUANTIZE compute. Backward the slope passes to what is not cut
off; limits get it from what they cut off and, where rounding counts, from what it adds (Esser et
al. 2020, "Learned Step Size Quantization", equation 3; Jain et al. 2020, "Trained Quantization
Thresholds", equation 6; with a zero point as Bhalgat et al. 2020, "LSQ+", equation 4, has it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow


class Codes(NamedTuple):
    """How many integers there are: of so many bits, the lowest left out where they are narrow."""

    bits: int
    narrow: bool = False


def rounded_tensor(
    tf: TensorFlow, x: Tensor, low: Tensor, high: Tensor, codes: Codes, steps: bool
) -> Tensor:
    """Round a tensor with one scale for integers from ``low`` to ``high`` (both []), 0 among them.

    The zero point is rounded. With ``steps`` the limits' slopes count rounding.
    """
    keywords = {"num_bits": codes.bits, "narrow_range": codes.narrow}

    @tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def straight_through(
        x: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
        y = tf.quantization.fake_quant_with_min_max_vars(x, low, high, **keywords)

        def gradient(slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            backward = tf.quantization.fake_quant_with_min_max_vars_gradient
            to_x, to_low, to_high = backward(slope, x, low, high, **keywords)
            if not steps:
                return to_x, to_low, to_high
            rounding = tf.reduce_sum(to_x * (y - x)) / (high - low)
            return to_x, to_low - rounding, to_high + rounding

        return y, gradient

    return straight_through(x, low, high)


def rounded_rows(tf: TensorFlow, w: Tensor, high: Tensor, codes: Codes, steps: bool) -> Tensor:
    """Round weights [n, o], a scale for each of o outputs, so that integers reach from minus
    ``high`` [o] to ``high``.
    """
    keywords = {"num_bits": codes.bits, "narrow_range": True}

    @tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def straight_through(
        w: Tensor, high: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]]:
        y = tf.quantization.fake_quant_with_min_max_vars_per_channel(w, -high, high, **keywords)

        def gradient(slope: Tensor) -> tuple[Tensor, Tensor]:
            backward = tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient
            to_w, to_low, to_high = backward(slope, w, -high, high, **keywords)
            to_limit = to_high - to_low
            if steps:
                to_limit += tf.reduce_sum(to_w * (y - w), 0) / high
            return to_w, to_limit

        return y, gradient

    return straight_through(w, high)
