"""The made-up sounds of the accuracy benchmark, and their spectra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.machine_sound import (
    FFT,
    MELS,
    RATE,
    Machine,
    band_edges,
    log_mel,
    mel_filters,
    records,
    stacks,
)


def test_bands_are_slaney_s() -> None:
    """Known points of the scale: 15 mel are 1000 Hz, 66.7 Hz to a mel below."""
    edges = band_edges()
    assert edges.shape == (MELS + 2,)
    assert edges[0] == 0
    assert edges[-1] == pytest.approx(RATE / 2)
    assert np.allclose(np.diff(edges[:40]), edges[1])
    assert np.allclose(edges[60:] / edges[59:-1], edges[60] / edges[59])


def test_filters_have_equal_areas_and_cover_their_band() -> None:
    filters, hertz = mel_filters(), np.linspace(0, RATE / 2, FFT // 2 + 1)
    areas = filters[60:].sum(1) * (hertz[1] - hertz[0])
    np.testing.assert_allclose(areas, 1, rtol=0.05)
    edges = band_edges()
    for band in (0, 50, MELS - 1):
        inside = hertz[filters[band] > 0]
        assert edges[band] <= inside.min() <= inside.max() <= edges[band + 2]


@pytest.mark.parametrize("hertz", [440.0, 1000.0, 5000.0])
def test_a_tone_is_loudest_in_its_band_and_as_loud_as_it_should_be(hertz: float) -> None:
    """A tone of amplitude a gives (a sum(window) / 2)^2 at its frequency; 20 dB for a factor 10."""
    tone = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)
    quiet, loud = log_mel(tone).mean(0), log_mel(10 * tone).mean(0)
    band, edges = int(loud.argmax()), band_edges()
    assert edges[band] < hertz < edges[band + 2]
    assert loud[band] - quiet[band] == pytest.approx(20, abs=0.1)
    total = 10 ** (quiet / 10) @ (edges[2:] - edges[:-2]) / 2  # the bands' overlap undone
    assert total == pytest.approx(1.5 * (FFT / 4) ** 2, rel=0.1)  # a Hann window spreads it by 1.5


def test_silence_is_finite() -> None:
    assert np.isfinite(log_mel(np.zeros(FFT * 2))).all()


def test_stacks_hold_five_spectra_that_follow_each_other() -> None:
    spectra = np.arange(7 * MELS, dtype=np.float64).reshape(7, MELS)
    found = stacks(spectra)
    assert found.shape == (3, 5 * MELS)
    np.testing.assert_array_equal(found[1].reshape(5, MELS), spectra[1:6])


def test_records_differ_by_seed_and_machine_only() -> None:
    machines = [Machine.number(number) for number in (0, 1)]
    first, again, other = (records(machines, 60, seed) for seed in (1, 1, 2))
    assert first.shape == (60, 5 * MELS)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).mean() > 1
    assert np.abs(first[:25].mean(0) - first[25:50].mean(0)).mean() > 1


def test_a_familiar_machine_has_the_noise_that_the_network_makes_of_it() -> None:
    """A network that answers with the same spectrum always."""
    answer = np.linspace(-10, -40, MELS)
    silent = replace(Machine.number(0), harmonics=np.zeros(1))
    machine = silent.familiar(lambda rows: np.tile(answer, (len(rows), 5)))
    found = log_mel(machine.clip(np.random.default_rng(3), 6.0)).mean(0)
    assert np.abs(found - answer)[5:-5].mean() < 1.5
