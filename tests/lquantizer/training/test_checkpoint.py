"""What a fine-tuning writes after each epoch, and how it goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.interpreter.records import digests
from luciole.ir import LucioleError
from luciole.lquantizer.training import FinetuneSettings, finetune
from luciole.lquantizer.training.parameters import trained_ops
from tests.lquantizer.training.models import (
    EPOCHS,
    FEW,
    constants,
    digits,
    plain,
    regression,
    tune,
)


class StoppedError(Exception):
    """Somebody pressed the button."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A checkpoint of a run that was stopped after an epoch and had none to go on from, and its
    lines.
    """
    path, lines = tmp_path_factory.mktemp("run") / "run.npz", list[str]()

    def report(line: str) -> None:
        lines.append(line)
        if line.startswith("epoch 1/"):
            raise StoppedError

    with pytest.raises(StoppedError):
        tune(checkpoint=path, resume=True, report=report)
    assert [p.name for p in path.parent.iterdir()] == ["run.npz"]
    return path, lines


def test_a_run_without_a_checkpoint_to_resume_starts_from_the_student(
    stopped: tuple[Path, list[str]],
) -> None:
    path, lines = stopped
    assert "there is no checkpoint yet" in lines[0]
    with np.load(path, allow_pickle=False) as file:
        assert any(name.startswith("now/first:") for name in file.files)


def test_a_resumed_run_is_equal_to_the_last_bit(
    stopped: tuple[Path, list[str]], tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(stopped[0].read_bytes())
    resumed = tune(checkpoint=path, resume=True)
    whole = plain().result
    assert constants(resumed.model) == constants(whole.model)
    figures = [
        [(e.epoch, e.loss, e.held_back_loss, e.agreement) for e in r.history]
        for r in (resumed, whole)
    ]
    assert figures[0] == figures[1]
    again = tune(checkpoint=path, resume=True)
    assert constants(again.model) == constants(whole.model)


def test_a_checkpoint_of_something_else_is_refused(stopped: tuple[Path, list[str]]) -> None:
    teacher, student, records, labels = digits()
    path, _ = stopped
    options: dict[str, Any] = {"epochs": EPOCHS, "checkpoint": path, "resume": True}
    settings = FinetuneSettings(**FEW)
    other = student.clone()
    trained_ops(other.graph)[0].input_scales.set_data(np.array([0.5], np.float32))
    with pytest.raises(LucioleError, match=r"run\.npz: it was made with other models"):
        finetune(other, teacher, records, settings=settings, **options)
    with pytest.raises(LucioleError, match="made with other records"):
        finetune(student, teacher, records, labels=labels, settings=settings, **options)
    with pytest.raises(LucioleError, match="made with other settings"):
        finetune(student, teacher, records, settings=FinetuneSettings(seed=1, **FEW), **options)
    options["learned_from"] = digests({name: array[:100] for name, array in records.items()})
    with pytest.raises(LucioleError, match="made with other records held back"):
        finetune(student, teacher, records, settings=settings, **options)


def test_a_file_that_is_no_checkpoint_is_refused(
    stopped: tuple[Path, list[str]], tmp_path: Path
) -> None:
    path, content = tmp_path / "run.npz", stopped[0].read_bytes()
    for wrong in (b"", b"hello", content[: len(content) // 2]):
        path.write_bytes(wrong)
        with pytest.raises(LucioleError, match=r"run\.npz: it was not written by a fine-tuning"):
            tune(checkpoint=path, resume=True)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(LucioleError, match="it was not written by"):
        tune(checkpoint=path, resume=True)


def test_a_checkpoint_in_no_folder_is_refused_before_an_epoch(tmp_path: Path) -> None:
    teacher, student, records = regression()
    few = {name: array[:100] for name, array in records.items()}
    place, lines = tmp_path / "nowhere" / "run.npz", list[str]()
    with pytest.raises(LucioleError, match="there is no folder"):
        finetune(student, teacher, few, epochs=1, checkpoint=place, report=lines.append)
    assert not any(line.startswith("epoch") for line in lines)
