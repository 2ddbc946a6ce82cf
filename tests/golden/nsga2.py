"""``python -m tests.golden.nsga2``: what pymoo says of random objectives, for ``nsga2.json``.

Needs pymoo (0.6.2 made the file), which luciole itself does not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = ((12, 2), (30, 2), (25, 3), (40, 4), (7, 1))
TIED = 5
"""Objectives of every other case are rounded to so many steps, so that many are equal."""


def cases() -> list[dict[str, Any]]:
    """Objectives, and pymoo's fronts, crowding distances (null: infinite) and hypervolume."""
    from pymoo.indicators.hv import HV  # type: ignore[import-not-found]
    from pymoo.operators.survival.rank_and_crowding.metrics import (  # type: ignore[import-not-found]
        calc_crowding_distance,
    )
    from pymoo.util.nds.non_dominated_sorting import (  # type: ignore[import-not-found]
        NonDominatedSorting,
    )

    found = []
    for number, (count, objectives) in enumerate(s for s in SHAPES for _ in range(2)):
        values = np.random.default_rng(number).random((count, objectives))
        values = np.round(values * TIED) / TIED if number % 2 else np.round(values, 6)
        fronts = NonDominatedSorting().do(values)
        alone = calc_crowding_distance(values) * objectives  # it gives the mean
        found.append(
            {
                "objectives": values.tolist(),
                "fronts": [sorted(map(int, front)) for front in fronts],
                "crowding": [float(c) if np.isfinite(c) else None for c in alone],
                "hypervolume": float(HV(ref_point=np.full(objectives, 0.9)).do(values)),
            }
        )
    return found


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(json.dumps(cases()) + "\n")
