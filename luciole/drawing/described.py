"""The document of one model, or of two to compare, with every figure that is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from luciole.drawing import compare, measures
from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Figures, Subject, document

Json = dict[str, Any]


class Look(NamedTuple):
    """How a graph is drawn at first: ``vertical`` or ``horizontal``, and what colours it."""

    direction: str = "vertical"
    mode: str = "bits"


def described(subjects: Sequence[Subject], blobs: Blobs, look: Look, version: str = "") -> Json:
    """Describe models for the page: of two, also which operators answer to each other. What is
    known of either by name is shown in both. ``version`` is luciole's, which the page names.
    """
    models = [subject.model for subject in subjects]
    if len(models) == 2:
        subjects[1].originals = compare.originals(*models)
    made = {"luciole": version} | document(subjects, blobs) | look._asdict()
    if len(models) == 2:
        compare.mark_differences(made, *models)
    figures: Figures = {}
    for subject in subjects:
        measures.add(figures, subject.figures)
        measures.set_notes(made, subject.notes)
    measures.set_measures(made, figures)
    if len(models) == 2:
        measures.set_bytes_before(made)
    return made
