# SPDX-License-Identifier: Apache-2.0
"""torchaudio's transforms and transformers' feature extractors for sounds, translated. Without these libraries what is translated is a
likeness, whose attributes are those of the real classes (torchaudio 2.8, transformers 5.24)."""

import json
import math
import types
import unittest

try:
    import torchaudio
    from torch.nn import Sequential
    T = torchaudio.transforms
except (ImportError, OSError) as missing:
    print(f"torchaudio_test: the real classes of torchaudio: not tested: {missing}")
    T = None
try:
    import transformers
except ImportError as missing:
    print(f"torchaudio_test: the real classes of transformers: not tested: {missing}")
    transformers = None

import oneaccess as oa
from oneaccess.errors import TransformError

t = oa.transforms


def likeness(name, module="torchaudio.transforms", bases=(), **attributes):
    made = type(name, bases, {"__module__": module})(*([attributes.pop("held")] if bases else []))
    vars(made).update(attributes)
    return made


def alike(name, names, **defaults):
    """A class whose constructor keeps its arguments."""
    return lambda *args, **given: likeness(name, **{**defaults, **dict(zip(names.split(), args)), **given})


def spectrogram(n_fft=400, win_length=None, hop_length=None, power=2.0, center=True, **rest):
    win_length = win_length or n_fft
    window = [0.5 - 0.5 * math.cos(2 * math.pi * at / win_length) for at in range(win_length)]
    return likeness("Spectrogram", n_fft=n_fft, win_length=win_length, hop_length=hop_length or win_length // 2, power=power, center=center,
                    **{"pad": 0, "normalized": False, "pad_mode": "reflect", "onesided": True, "window": window, **rest})


def mel_spectrogram(sample_rate=16000, n_mels=128, f_min=0.0, f_max=None, norm=None, mel_scale="htk", **rest):
    scale = likeness("MelScale", sample_rate=sample_rate, n_mels=n_mels, f_min=f_min, f_max=f_max or float(sample_rate // 2), norm=norm,
                     mel_scale=mel_scale)
    return likeness("MelSpectrogram", sample_rate=sample_rate, spectrogram=spectrogram(**rest), mel_scale=scale)


def mfcc(sample_rate=16000, n_mfcc=40, dct_type=2, norm="ortho", log_mels=False, melkwargs=None):
    return likeness("MFCC", sample_rate=sample_rate, n_mfcc=n_mfcc, dct_type=dct_type, norm=norm, log_mels=log_mels,
                    MelSpectrogram=mel_spectrogram(sample_rate, **(melkwargs or {})))


if T is None:
    def Sequential(*held):
        return likeness("Sequential", "torch.nn.modules", (list,), held=held)

    speed = alike("Speed", "orig_freq factor")
    T = types.SimpleNamespace(
        Resample=alike("Resample", "orig_freq new_freq"), Vol=alike("Vol", "gain gain_type", gain_type="amplitude"), Spectrogram=spectrogram,
        Fade=alike("Fade", "fade_in_len fade_out_len fade_shape", fade_shape="linear"), Preemphasis=alike("Preemphasis", "coeff", coeff=0.97),
        MuLawEncoding=alike("MuLawEncoding", "quantization_channels", quantization_channels=256), MelSpectrogram=mel_spectrogram, MFCC=mfcc,
        MelScale=lambda n_mels, sample_rate, n_stft: mel_spectrogram(sample_rate, n_mels).mel_scale, AddNoise=alike("AddNoise", ""), Speed=speed,
        AmplitudeToDB=alike("AmplitudeToDB", "stype top_db", stype="power", top_db=None), Vad=alike("Vad", "sample_rate"),
        TimeMasking=alike("TimeMasking", "mask_param", p=1.0), FrequencyMasking=alike("FrequencyMasking", "mask_param"),
        SpecAugment=alike("SpecAugment", "n_time_masks time_mask_param n_freq_masks freq_mask_param", iid_masks=True, p=1.0, zero_masking=False),
        SpeedPerturbation=lambda orig_freq, factors: likeness("SpeedPerturbation", speeders=[speed(orig_freq, factor) for factor in factors]))


def extractor(name, **attributes):
    if transformers is not None:
        made = getattr(transformers, name)()
        vars(made).update(attributes)
        return made
    given = {"sampling_rate": 16000, "feature_size": 1, "padding_value": 0.0, "do_normalize": True}
    if name == "WhisperFeatureExtractor":
        given = {**given, "feature_size": 80, "n_fft": 400, "hop_length": 160, "chunk_length": 30, "n_samples": 480000, "dither": 0.0}
    return likeness(name, "transformers.models", **{**given, **attributes})


def settled(pipeline):
    """What is asked for, without the parameters that have their defaults."""
    usual = {"win_length": None, "f_min": 0, "power": 2, "center": True, "norm": None, "mel_scale": "htk", "stype": "power", "fade_shape": "linear",
             "gain_type": "amplitude", "coeff": 0.97, "quantization_channels": 256, "n_mfcc": 40, "p": 1}
    ops = json.loads(pipeline.json)["ops"]
    for op in ops:
        op.update({"win_length": None} if op.get("win_length") == op.get("n_fft", 400) else {})
        op.update({"hop_length": None} if op.get("hop_length") == op.get("n_fft", 400) // 2 else {})
        op.update({"f_max": None} if op.get("f_max") == ops[0]["sample_rate"] // 2 else {})
        op.update({"n_fft": None} if op.get("n_fft") == 400 else {})
        op.update({"n_mels": None} if op.get("n_mels") == 128 else {})
    return [{name: value for name, value in op.items() if value is not None and (name not in usual or value != usual[name])} for op in ops]


class TorchaudioTest(unittest.TestCase):
    def test_what_is_translated(self):
        for theirs, ours, how in (
                (T.MelSpectrogram(16000, n_mels=80, hop_length=160, norm="slaney"), [t.MelSpectrogram(hop_length=160, n_mels=80, norm="slaney")], {}),
                (T.MelSpectrogram(22050, n_fft=1024, power=1.0, f_min=20.0, f_max=8000.0, center=False, mel_scale="slaney"),
                 [t.MelSpectrogram(1024, power=1, f_min=20, f_max=8000, center=False, mel_scale="slaney")], {"rate": 22050}),
                (Sequential(T.Resample(44100, 8000), T.Vol(0.5), T.Fade(10, 20, "half_sine"), T.Preemphasis(0.9), T.MuLawEncoding(64)),
                 [t.Vol(0.5), t.Fade(10, 20, "half_sine"), t.Preemphasis(0.9), t.MuLawEncoding(64)], {"rate": 8000}),
                ([T.SpeedPerturbation(16000, [0.9, 1.0, 1.1]), T.Vol(6.0, "db")], [t.Vol(6.0, "db")], {"speeds": [0.9, 1.0, 1.1]}),
                (T.Speed(16000, 0.5), [], {"speeds": [0.5]}),
                (Sequential(T.MelSpectrogram(16000), Sequential(T.AmplitudeToDB("power", 80), T.FrequencyMasking(27)), T.TimeMasking(100, p=0.2)),
                 [t.MelSpectrogram(), t.AmplitudeToDB(top_db=80), t.FrequencyMasking(27), t.TimeMasking(100, 0.2)], {}),
                ([T.Spectrogram(512, hop_length=128, power=2.0), T.MelScale(64, 16000, n_stft=257)], [t.MelSpectrogram(512, hop_length=128, n_mels=64)], {}),
                (T.MFCC(16000, 13, melkwargs={"n_fft": 480, "n_mels": 23}), t.MFCC(13, melkwargs={"n_fft": 480, "n_mels": 23}).ops, {}),
                (T.MFCC(16000, norm=None, log_mels=True), t.MFCC(norm=None, log_mels=True).ops, {}),
                ([T.MelSpectrogram(16000), T.SpecAugment(2, 40, 1, 20, zero_masking=True)],
                 [t.MelSpectrogram(), t.TimeMasking(40), t.TimeMasking(40), t.FrequencyMasking(20)], {})):
            with self.subTest(ours=ours):
                found = oa.from_torchaudio(theirs, 2.0, crop="begin", channels=1)
                rate = how.pop("rate", 16000)
                self.assertEqual(settled(found), settled(oa.Compose([oa.audio(rate, 2.0, crop="begin", channels=1, **how), *ours])))

    def test_norm_of_no_transform(self):
        self.assertIn('"norm":null', oa.Compose([oa.audio(16000, 1.0), t.MFCC(norm=None)]).json)

    def test_what_is_not(self):
        class Mine:
            pass

        for theirs, text in (
                ([T.Preemphasis(), T.AddNoise()], r"transforms\[1\], AddNoise, cannot be translated: .*AddNoise\(snr\) has white noise"),
                (T.Vad(16000), "sounds of other lengths"),
                ([T.Vol(0.5), T.Resample(8000, 16000)], "put it first"),
                ([T.Vol(0.5), T.Speed(16000, 0.5)], "put it first"),
                ([T.Resample(44100, 16000), T.MelSpectrogram(22050)], r"sample_rate is 22050, where sounds have the rate 16000"),
                ([T.Resample(44100, 8000), T.SpeedPerturbation(16000, [1.0])], "orig_freq is 16000, where sounds have the rate 8000"),
                (T.MelScale(64, 16000, n_stft=257), "behind a Spectrogram"),
                (T.Spectrogram(power=None), "power is None: give 2"),
                (T.Spectrogram(normalized=True), "normalized is True, and only False"),
                (T.Spectrogram(pad=3), "pad is 3"),
                (T.SpecAugment(1, 40, 1, 20), "zero_masking=True"),
                (T.SpecAugment(1, 40, 1, 20, p=0.5, zero_masking=True), r"give TimeMasking\(p=\)"),
                (T.Preemphasis(), "give sample_rate"),
                (Mine(), "Mine, cannot be translated: it is Python of your own"),
                (len, "Python of your own")):
            with self.subTest(text=text), self.assertRaisesRegex(TransformError, text):
                oa.from_torchaudio(theirs, 1.0)
        window = T.Spectrogram(100)
        window.window[0] = 1.0
        for given, how, text in ((window, {"seconds": 1.0, "sample_rate": 16000}, "hann_window"), (T.MFCC(), {}, "give seconds or frames"),
                                 (T.MFCC(), {"seconds": 1.0, "frames": 16000}, "give seconds or frames")):
            with self.subTest(text=text), self.assertRaisesRegex(TransformError, text):
                oa.from_torchaudio(given, **how)
        with self.assertRaisesRegex(TransformError, r"from_torchaudio\(\)"):
            oa.from_torchvision(T.Preemphasis())

    def test_extractors(self):
        whisper, wave = extractor("WhisperFeatureExtractor"), extractor("Wav2Vec2FeatureExtractor")
        self.assertEqual(settled(oa.from_torchaudio(whisper)), settled(t.whisper()))
        self.assertEqual(settled(oa.from_torchaudio(extractor("WhisperFeatureExtractor", feature_size=128), 10.0, crop="center")),
                         settled(t.whisper(10.0, n_mels=128, crop="center")))
        for given in (extractor("Wav2Vec2FeatureExtractor", do_normalize=True), types.SimpleNamespace(
                feature_extractor=extractor("Wav2Vec2FeatureExtractor", do_normalize=True))):
            self.assertEqual(oa.from_torchaudio(given, 4.0), t.wav2vec2(4.0))
        self.assertEqual(oa.from_torchaudio(extractor("Wav2Vec2FeatureExtractor", do_normalize=False), frames=64000), oa.audio(16000, 4.0))
        vars(whisper).update(dither=0.1)
        for given, text in ((wave, "any length: give seconds or frames"), (whisper, "dither is 0.1"),
                            (extractor("ASTFeatureExtractor"), "ASTFeatureExtractor has no counterpart; there are Whisper")):
            with self.subTest(text=text), self.assertRaisesRegex(TransformError, text):
                oa.from_torchaudio(given)


if __name__ == "__main__":
    unittest.main()
