"""Sounds of machines that do not exist, and what MLPerf Tiny's anomaly detection makes of sounds.

A stand-in where the recordings (ToyADMOS, 16 kHz) are not at hand: a motor's harmonics with
changing speed in coloured noise whose level swells and fades, for several machines. A network that
was trained on other sounds reproduces their noise badly; ``familiar`` gives a machine the noise
that the network makes of it. MLPerf's ``ad01`` then has an error of about 13 dB^2, and of 9.5 to
10.5 on normal recordings by the scores published with it; the noise's own variance is 8.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RATE, FFT, HOP, MELS, FRAMES = 16_000, 1024, 512, 128, 5
"""Samples per second, and how MLPerf Tiny's reference computes and stacks its spectra."""
_SECONDS, _PER_CLIP, _PASSES = 3.0, 25, 3
"""Length of a clip, stacks taken from each, and passes through a network that it is made familiar
by."""
_KNOTS = np.array([23.0, 94.0, 250.0, 750.0, 2514.0, 6286.0, 7623.0, 7809.0])
_LEVELS = np.array([-57.0, -18.0, -23.0, -31.0, -37.0, -41.0, -42.0, -58.0])
"""Spectrum of the noise at frequencies in Hz, in dB of white noise with variance 1."""
_WHITE = 12.7
"""Mean level of such noise in the mel bands, in dB."""


@dataclass(frozen=True)
class Machine:
    """A motor: shaft speed in Hz and how far it sways, amplitudes of its harmonics, the spectrum of
    its noise in dB for each mel band, and the beat of the noise in Hz.
    """

    shaft: float
    sway: float
    harmonics: Floats
    colour: Floats
    beat: float

    @classmethod
    def number(cls, number: int) -> Machine:
        """One of the machines; the same number is the same machine."""
        generator = np.random.default_rng((number, 7))
        shaft, count = generator.uniform(20, 60), int(generator.integers(10, 40))
        levels = _LEVELS + generator.normal(0, 2, len(_KNOTS))
        loudness = np.interp(shaft * np.arange(1, count + 1), _KNOTS, levels)
        loudness += generator.normal(-23, 5, count)
        sway, beat = generator.uniform(0.005, 0.03), generator.uniform(0.5, 8)
        colour = np.interp(band_edges()[1:-1], _KNOTS, levels)
        return cls(shaft, sway, 10 ** (loudness / 20), colour, beat)

    def familiar(self, network: Callable[[Floats], Floats]) -> Machine:
        """The machine with the noise that a network, rows in and rows out, makes of its mean."""
        row = stacks(log_mel(self.clip(np.random.default_rng(0)))).mean(0, keepdims=True)
        for _ in range(_PASSES):
            row = network(row)
        return replace(self, colour=row.reshape(FRAMES, MELS).mean(0) - _WHITE)

    def clip(self, generator: np.random.Generator, seconds: float = _SECONDS) -> Floats:
        """A recording: samples [seconds * RATE]."""
        t = np.arange(int(seconds * RATE)) / RATE
        slow = np.sin(2 * np.pi * generator.uniform(0.2, 2) * t + generator.uniform(0, 2 * np.pi))
        phase = np.cumsum(self.shaft * generator.uniform(0.9, 1.1) * (1 + self.sway * slow)) / RATE
        tone = np.zeros(len(t))
        for harmonic, amplitude in enumerate(self.harmonics, 1):
            start = generator.uniform(0, 2 * np.pi)
            tone += amplitude * np.sin(2 * np.pi * harmonic * phase + start)
        noise = _coloured(generator, len(t), self.colour)
        noise *= 1 + 0.15 * np.sin(2 * np.pi * self.beat * t)
        return np.asarray((tone + noise) * 10 ** (generator.normal(0, 1) / 20))


def _coloured(generator: np.random.Generator, count: int, colour: Floats) -> Floats:
    spectrum = np.fft.rfft(generator.standard_normal(count))
    decibels = np.interp(np.fft.rfftfreq(count, 1 / RATE), band_edges()[1:-1], colour)
    return np.asarray(np.fft.irfft(spectrum * 10 ** (decibels / 20), count))


def band_edges() -> Floats:
    """Frequencies in Hz between which the mel bands lie, [MELS + 2]: band i from edge i to i + 2.

    Slaney's mel scale (Auditory Toolbox, 1998), which librosa uses: linear below 1 kHz, then 27
    steps for each factor of 6.4.
    """
    mels = np.linspace(0, 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4), MELS + 2)
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))


def mel_filters() -> Floats:
    """Triangles of equal area over the bands: [MELS, FFT / 2 + 1]."""
    edges, frequencies = band_edges(), np.linspace(0, RATE / 2, FFT // 2 + 1)
    widths = np.diff(edges)[:, None]
    rising = (frequencies - edges[:-2, None]) / widths[:-1]
    falling = (edges[2:, None] - frequencies) / widths[1:]
    area = (edges[2:] - edges[:-2])[:, None] / 2
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) / area)


def log_mel(samples: Floats) -> Floats:
    """Power in mel bands, in dB: [frames, MELS]. A frame is FFT samples under a Hann window."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, FFT)[::HOP]
    window = np.hanning(FFT + 1)[:-1]
    power = np.abs(np.fft.rfft(frames * window)) ** 2
    return np.asarray(10 * np.log10(power @ mel_filters().T + np.finfo(np.float64).eps))


def stacks(spectra: Floats) -> Floats:
    """FRAMES spectra that follow each other as one row: [frames - FRAMES + 1, FRAMES * MELS]."""
    count = len(spectra) - FRAMES + 1
    return np.concatenate([spectra[t : t + count] for t in range(FRAMES)], axis=1)


def records(machines: Sequence[Machine], count: int, seed: int) -> NDArray[np.float32]:
    """What the network is fed, from clips of the machines in turn: [count, FRAMES * MELS]."""
    generator, parts = np.random.default_rng(seed), list[Floats]()
    for clip in range(-(-count // _PER_CLIP)):
        rows = stacks(log_mel(machines[clip % len(machines)].clip(generator)))
        parts.append(rows[generator.permutation(len(rows))[:_PER_CLIP]])
    return np.concatenate(parts)[:count].astype(np.float32)
