#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parity_wave.py >golden_wave.tsv

What torchaudio and transformers make of a waveform, for wave_test.c: a line for each spec with the ops behind audio, the rate, the channels,
the frames and how many of them are no zeros, the largest number that comes out, how far others may be away from these, as a share of it, how many
numbers there are, and COUNT of them, evenly spaced. Needs PyPI's torchaudio and transformers; recorded with torchaudio 2.8.0, torch 2.8.0 and
transformers 5.24.0.
"""

import json

import numpy as np
import torch
import torchaudio
from torchaudio import functional as F
from torchaudio import transforms as T
from transformers import Wav2Vec2FeatureExtractor

from parity_mel import COUNT, wave

MFCC = {"n_fft": 400, "hop_length": 160, "n_mels": 23}
# ops, rate, channels, frames, how many of them are no zeros, tolerance
SPECS = [
    ([("vol", {"gain": 0.3})], 16000, 1, 3000, 3000, 1e-6),
    ([("vol", {"gain": 7, "gain_type": "db", "clamp": False})], 16000, 1, 3000, 2000, 1e-6),
    ([("vol", {"gain": 9, "gain_type": "db"})], 16000, 1, 3000, 2000, 1e-6),
    ([("vol", {"gain": 2.5, "gain_type": "power"})], 16000, 1, 3000, 3000, 1e-6),
    ([("polarity_inversion", {"p": 1})], 16000, 1, 3000, 3000, 1e-8),
    ([("preemphasis", {})], 16000, 1, 3000, 2500, 1e-6),
    ([("preemphasis", {"coeff": 0.5}), ("vol", {"gain": 2})], 16000, 2, 3000, 2500, 1e-6),
    *[([("fade", {"fade_in_len": 700, "fade_out_len": 900, "fade_shape": shape})], 8000, 1, 3000, 2500, 1e-6)
      for shape in ("linear", "exponential", "logarithmic", "quarter_sine", "half_sine")],
    ([("low_pass", {"cutoff_freq": 900})], 16000, 1, 6000, 5000, 1e-5),
    ([("high_pass", {"cutoff_freq": 300, "Q": 1.5})], 16000, 1, 6000, 6000, 1e-5),
    ([("standardize", {})], 16000, 1, 6000, 4500, 1e-5),
    ([("standardize", {}), ("vol", {"gain": 0.25})], 16000, 1, 6000, 6000, 1e-5),
    ([("mu_law_encoding", {})], 16000, 1, 6000, 4000, 0),
    ([("mu_law_encoding", {"quantization_channels": 1000})], 16000, 2, 6000, 6000, 0),
    ([("spectrogram", {})], 16000, 1, 6000, 6000, 1e-5),
    ([("spectrogram", {"n_fft": 512, "win_length": 400, "hop_length": 160, "power": 1, "center": False})], 16000, 1, 6000, 3500, 1e-5),
    ([("preemphasis", {}), ("spectrogram", {"n_fft": 60, "hop_length": 30})], 8000, 2, 3000, 2900, 1e-5),
    ([("spectrogram", {}), ("amplitude_to_db", {})], 16000, 1, 6000, 6000, 1e-4),
    ([("spectrogram", {"power": 1}), ("amplitude_to_db", {"stype": "magnitude", "top_db": 40})], 16000, 2, 6000, 3000, 1e-4),
    ([("mel_spectrogram", {"n_mels": 40}), ("amplitude_to_db", {"top_db": 80})], 16000, 2, 6000, 3000, 1e-4),
    ([("mel_spectrogram", MFCC), ("mfcc", {"n_mfcc": 13})], 16000, 1, 6000, 5000, 1e-4),
    ([("mel_spectrogram", MFCC), ("mfcc", {"n_mfcc": 23, "norm": None})], 16000, 2, 6000, 6000, 1e-4),
    ([("mel_spectrogram", {"n_mels": 128}), ("mfcc", {"log_mels": True})], 16000, 1, 16000, 16000, 1e-4),
]


def waveform(op, x, rate):
    """What an op makes of the frames that a sound has: [channels, frames]."""
    name, given = op
    if name == "vol" and not given.get("clamp", True):
        return F.gain(x, given["gain"])
    if name == "standardize":
        extractor = Wav2Vec2FeatureExtractor(feature_size=1, sampling_rate=rate, padding_value=0.0, do_normalize=True)
        return torch.from_numpy(np.stack([extractor(one.numpy(), sampling_rate=rate)["input_values"][0] for one in x]))
    if name in ("low_pass", "high_pass"):
        return (F.lowpass_biquad if name == "low_pass" else F.highpass_biquad)(x, rate, **given)
    return {"vol": lambda: T.Vol(given["gain"], given.get("gain_type", "amplitude"))(x), "polarity_inversion": lambda: -x,
            "preemphasis": lambda: T.Preemphasis(**given)(x), "fade": lambda: T.Fade(**given)(x)}[name]()


def behind(op, x, rate, before):
    """What an op makes of all of it."""
    name, given = op
    if name == "mfcc":
        given = {"norm": "ortho", **given}
        return T.MFCC(rate, given.get("n_mfcc", 40), norm=given["norm"], log_mels=given.get("log_mels", False), melkwargs=before[1])(before[2])
    return {"mu_law_encoding": lambda: T.MuLawEncoding(**given)(x), "spectrogram": lambda: T.Spectrogram(**given)(x),
            "mel_spectrogram": lambda: T.MelSpectrogram(rate, **given)(x),
            "amplitude_to_db": lambda: T.AmplitudeToDB(given.get("stype", "power"), given.get("top_db"))(x)}[name]()


def main():
    for ops, rate, channels, frames, has, tolerance in SPECS:
        x, before = torch.stack([torch.from_numpy(wave(frames, has)) / (c + 1) for c in range(channels)]), None
        for op in ops:
            if op[0] in ("mu_law_encoding", "spectrogram", "mel_spectrogram", "amplitude_to_db", "mfcc"):
                before, x = (*op, x), behind(op, x, rate, before)
            else:
                x = torch.nn.functional.pad(waveform(op, x[:, :has], rate), (0, frames - has))
        made = x.numpy()
        places = np.arange(COUNT) * (made.size - 1) // (COUNT - 1)
        text = json.dumps([{"op": name, **given} for name, given in ops])
        print(text, rate, channels, frames, has, "%.9g" % np.abs(made).max(), tolerance, made.size, *("%.9g" % value for value in made.ravel()[places]), sep="\t")


if __name__ == "__main__":
    main()
