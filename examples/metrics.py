"""Metrics for ``--metric examples/metrics.py:FUNCTION``: the larger, the better."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float32]


def negative_rmse(answers: Numbers, labels: Numbers) -> float:
    """Compute the root mean squared error of a regression, below 0 so that more is better."""
    return -float(np.sqrt(np.mean(np.square(answers - labels.reshape(answers.shape)))))


def mean_iou(answers: Numbers, labels: NDArray[np.generic]) -> float:
    """Compute the mean over classes of intersection over union: ``answers`` are scores
    [records, height, width, classes], ``labels`` class numbers [records, height, width], or where
    there are no labels the float network's scores.
    """
    found = answers.argmax(-1)
    right = labels.argmax(-1) if labels.ndim == answers.ndim else labels
    shares = []
    for number in range(answers.shape[-1]):
        either = np.sum((found == number) | (right == number))
        if either:
            shares.append(np.sum((found == number) & (right == number)) / either)
    return float(np.mean(shares))
