"""The document of one model, or of two to compare, with every figure that is known of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from luciole.tools.view import compare, measures
from luciole.tools.view.blobs import Blobs
from luciole.tools.view.document import Subject, document
from luciole.tools.view.measures import Figures

Json = dict[str, Any]


class Look(NamedTuple):
    """How a graph is drawn at first: ``vertical`` or ``horizontal``, and what colours it."""

    direction: str = "vertical"
    mode: str = "bits"


def described(
    subjects: list[Subject], blobs: Blobs, look: Look, figures: Figures | None = None
) -> Json:
    """Describe models for the page: of two, also which operators answer to each other."""
    models = [subject.model for subject in subjects]
    if len(models) == 2:
        subjects[1].originals = compare.originals(*models)
    made = document(subjects, blobs) | look._asdict()
    if len(models) == 2:
        compare.mark_differences(made, *models)
    measures.set_measures(made, figures or {})
    if len(models) == 2:
        measures.set_bytes_before(made)
    return made
