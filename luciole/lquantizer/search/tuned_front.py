"""Fine-tune the networks of a front; none becomes worse than the full fit left it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from luciole.lquantizer.search.finishing import Finish
from luciole.lquantizer.search.networks import Found, Searched, candidate_of
from luciole.lquantizer.search.runners import Outcome, Runner
from luciole.lquantizer.search.search import Search
from luciole.lquantizer.search.tasks import evaluate


def finish_front(search: Search, runner: Runner, searched: Searched, finish: Finish) -> Searched:
    """Fine-tune a front's networks that are not yet, and keep of them those that none beats; their
    figures before are ``Found.before``.
    """
    stage, start = finish.stage, {one.candidate: one for one in searched.front}
    known = {candidate for candidate, _ in search.storage.found(stage)}
    missing = [candidate for candidate in start if candidate not in known]
    step = search.track("fine-tuning the front", len(missing))

    def ended(key: str, outcome: Outcome) -> None:
        _keep_better(search, stage, start[candidate_of(key)], outcome)
        step(1)

    evaluate(search.storage, runner, stage, missing, ended)
    tuned = _tuned(search, stage, list(start.values()))
    return replace(searched, front=search.front_of(tuned))


def _tuned(search: Search, stage: str, start: Sequence[Found]) -> list[Found]:
    figures = dict(search.storage.found(stage))
    return [
        replace(before, **figures[before.candidate], before=before)
        for before in start
        if before.candidate in figures
    ]


def _keep_better(search: Search, stage: str, before: Found, outcome: Outcome) -> None:
    """Store the trained network, or where training made it no better or failed, the fit."""
    result: dict[str, Any] | None = outcome.result
    if result is None or not result["figures"]["loss"] < before.loss:
        why = "no better" if outcome.error is None else outcome.error
        search.say(f"{' '.join(before.candidate)}: stays as it was fitted: {why}")
        figures = {"bytes": before.bytes, "loss": before.loss, "agreement": before.agreement}
        result = {"figures": figures, "model": search.storage.model("fitted", before.candidate)}
    search.storage.done(
        stage,
        before.candidate,
        result["figures"],
        outcome.seconds,
        outcome.worker,
        result["model"],
    )
