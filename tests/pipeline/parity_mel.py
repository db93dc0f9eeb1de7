#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parity_mel.py >golden_mel.tsv

What torchaudio and transformers make of a waveform, for mel_test.c: a line for each spec with the parameters of mel_spectrogram, the rate,
the frames and how many of them are no zeros, the shape that comes out, and COUNT numbers of it, evenly spaced. Needs PyPI's torchaudio and
transformers; recorded with torchaudio 2.11.0, torch 2.11.0 and transformers 5.24.0.
"""

import json

import numpy as np
import torch
import torchaudio
from transformers import WhisperFeatureExtractor

COUNT = 97
# rate, frames, how many of them are no zeros, parameters of the op
SPECS = [
    (16000, 6000, 6000, {}),
    (16000, 6000, 3500, {"hop_length": 160, "n_mels": 80, "norm": "slaney", "mel_scale": "slaney"}),
    (16000, 6000, 6000, {"n_fft": 512, "win_length": 400, "hop_length": 160, "n_mels": 64, "power": 1, "center": False}),
    (22050, 9000, 8000, {"n_fft": 1024, "hop_length": 256, "f_min": 20, "f_max": 8000, "n_mels": 80, "log": "ln"}),
    (48000, 9000, 9000, {"n_fft": 960, "hop_length": 480, "n_mels": 64, "log": "log10"}),
    (44100, 9000, 9000, {"n_fft": 2048, "hop_length": 512, "power": 1, "log": "db"}),
    (8000, 3000, 2000, {"n_fft": 200, "hop_length": 80, "n_mels": 40, "log": "db"}),
    (8000, 3000, 2900, {"n_fft": 30, "hop_length": 7, "n_mels": 5, "mel_scale": "slaney"}),
    (8000, 3000, 3000, {"n_fft": 250, "win_length": 201, "n_mels": 20}),
    (16000, 16000, 9000, {"hop_length": 160, "n_mels": 80, "norm": "slaney", "mel_scale": "slaney", "log": "whisper"}),
    (16000, 32000, 32000, {"hop_length": 160, "n_mels": 128, "norm": "slaney", "mel_scale": "slaney", "log": "whisper"}),
]


def wave(frames, has):
    """As mel_test.c's."""
    i = np.arange(frames, dtype=np.int64)
    whole = (i * (i % 977) * 31 + (i >> 3) * 7919) & 0xffff
    return np.where(i < has, (whole - 32768).astype(np.float32) / np.float32(65536) / (1 + i // 4000).astype(np.float32), np.float32(0))


def by_torchaudio(sound, rate, log=None, **parameters):
    power = torchaudio.transforms.MelSpectrogram(rate, **parameters)(torch.from_numpy(sound))
    if log == "ln":
        return power.clamp(min=1e-10).log().numpy()
    if log == "log10":
        return power.clamp(min=1e-10).log10().numpy()
    if log == "db":
        return torchaudio.transforms.AmplitudeToDB("magnitude" if parameters.get("power") == 1 else "power")(power).numpy()
    return power.numpy()


def by_transformers(sound, rate, n_mels):
    extractor = WhisperFeatureExtractor(feature_size=n_mels, sampling_rate=rate, chunk_length=len(sound) // rate)
    return extractor(sound, sampling_rate=rate, return_tensors="np")["input_features"][0]


def main():
    for rate, frames, has, parameters in SPECS:
        sound = wave(frames, has)
        if parameters.get("log") == "whisper":
            made = by_transformers(sound, rate, parameters["n_mels"])
        else:
            made = by_torchaudio(sound, rate, **parameters)
        most = np.abs(made).max()
        places = np.arange(COUNT) * (made.size - 1) // (COUNT - 1)
        print(json.dumps(parameters), rate, frames, has, *made.shape, "%.9g" % most, *("%.9g" % value for value in made.ravel()[places]), sep="\t")


if __name__ == "__main__":
    main()
