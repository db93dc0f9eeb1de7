# SPDX-License-Identifier: Apache-2.0
"""Sounds: a Loader over folders, shards and manifests of them gives what libsndfile and libsoxr, called here by ctypes, make of the
files; each sample once an epoch; with a seed the same bytes again."""

import contextlib
import ctypes
import io
import itertools
import json
import os
import pathlib
import shutil
import sys
import tarfile
import unittest
import wave

try:
    import numpy as np
except ImportError as missing:
    print(f"audio_test: skipped: {missing}")
    sys.exit(77)
try:
    SNDFILE, SOXR = ctypes.CDLL("libsndfile.so.1"), ctypes.CDLL("libsoxr.so.0")
except OSError as missing:
    print(f"audio_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import _core
from support import PoolCase

WAV, FLAC, OGG, MPEG = 0x010000, 0x170000, 0x200000, 0x230000
PCM_16, PCM_24, FLOAT, VORBIS, OPUS, LAYER_III = 0x2, 0x3, 0x6, 0x60, 0x64, 0x82
WORDS = ("go", "no", "stop", "yes")
RATE, FRAMES = 16000, 12000
SOUNDS = pathlib.Path(__file__).resolve().parents[1] / "pipeline/sounds"


class Info(ctypes.Structure):
    _fields_ = [("frames", ctypes.c_int64), ("samplerate", ctypes.c_int), ("channels", ctypes.c_int), ("format", ctypes.c_int),
                ("sections", ctypes.c_int), ("seekable", ctypes.c_int)]


class Quality(ctypes.Structure):
    _fields_ = [("precision", ctypes.c_double), ("phase", ctypes.c_double), ("passband", ctypes.c_double), ("stopband", ctypes.c_double),
                ("e", ctypes.c_void_p), ("flags", ctypes.c_ulong)]


SNDFILE.sf_open.restype = ctypes.c_void_p
SNDFILE.sf_open.argtypes = ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(Info)
for call in (SNDFILE.sf_readf_float, SNDFILE.sf_writef_float):
    call.restype, call.argtypes = ctypes.c_int64, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
SNDFILE.sf_close.argtypes = ctypes.c_void_p,
SOXR.soxr_quality_spec.restype = Quality
SOXR.soxr_quality_spec.argtypes = ctypes.c_ulong, ctypes.c_ulong
SOXR.soxr_oneshot.restype = ctypes.c_char_p
SOXR.soxr_oneshot.argtypes = (ctypes.c_double, ctypes.c_double, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                              ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def write(path, data, rate, kind):
    """By libsndfile. data: [frames, channels]."""
    data = np.ascontiguousarray(data, np.float32)
    info = Info(samplerate=rate, channels=data.shape[1], format=kind)
    file = SNDFILE.sf_open(os.fsencode(path), 0x20, ctypes.byref(info))
    if not file:
        raise unittest.SkipTest(f"this libsndfile writes no {kind:#x}")
    assert SNDFILE.sf_writef_float(file, data.ctypes.data, len(data)) == len(data)
    SNDFILE.sf_close(file)


def read(path):
    """[frames, channels] and the rate, as soundfile.read(dtype="float32", always_2d=True) gives them."""
    info = Info()
    file = SNDFILE.sf_open(os.fsencode(path), 0x10, ctypes.byref(info))
    data = np.zeros((info.frames, info.channels), np.float32)
    got = SNDFILE.sf_readf_float(file, data.ctypes.data, info.frames)
    SNDFILE.sf_close(file)
    return data[:got], info.samplerate


def resampled(data, from_rate, to_rate, room):
    """One channel by SOXR_HQ (4), as soxr.resample() and librosa have it."""
    data, out, n = np.ascontiguousarray(data), np.zeros(room, np.float32), ctypes.c_size_t()
    quality = SOXR.soxr_quality_spec(4, 0)
    assert SOXR.soxr_oneshot(from_rate, to_rate, 1, data.ctypes.data, len(data), None, out.ctypes.data, room, ctypes.byref(n),
                             None, ctypes.byref(quality), None) is None
    return out[:n.value]


def expected(path, start=None, rate=RATE, frames=FRAMES, channels=None):
    """Of the part from start on (None: the middle), resampled: [channels, frames], and its length."""
    data, own = read(path)
    wanted = -(-frames * own // rate)
    start = max(len(data) - wanted, 0) // 2 if start is None else start
    data = data[start:start + wanted]
    if channels is None or channels == 1:
        sums = data[:, 0].copy()
        for channel in range(1, data.shape[1]):
            sums += data[:, channel]
        data = (sums / np.float32(data.shape[1]))[:, None]
    elif data.shape[1] == 1:
        data = np.repeat(data, channels, 1)
    parts = [data[:frames, c] if own == rate else resampled(data[:, c], own, rate, frames) for c in range(data.shape[1])]
    return np.stack([np.pad(part, (0, frames - len(part))) for part in parts]), len(parts[0])


def sound(seed, seconds, rate, channels):
    """A few tones and some noise."""
    random, at = np.random.default_rng(seed), np.arange(int(seconds * rate)) / rate
    tones = sum(0.2 * np.sin(2 * np.pi * random.uniform(80, 3000) * at + random.uniform(0, 6)) for _ in range(3))
    return np.stack([tones * random.uniform(0.5, 1) + 0.05 * random.standard_normal(len(at)) for _ in range(channels)], 1)


def spectrogram(wave, n_fft=400, hop_length=None, n_mels=128, norm=None, mel_scale="htk", log=None):
    """[n_mels, frames] in double, before the logarithm: as the formulas have it."""
    hop, slaney = hop_length or n_fft // 2, mel_scale == "slaney"
    wave = np.pad(np.asarray(wave, float), n_fft // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    power = np.abs(np.fft.rfft([wave[at:at + n_fft] * window for at in range(0, len(wave) - n_fft + 1, hop)])) ** 2
    if slaney:
        top = 15 + np.log(RATE / 2 / 1000) * 27 / np.log(6.4)
        points = [at * 200 / 3 if at < 15 else 1000 * np.exp((at - 15) * np.log(6.4) / 27) for at in np.linspace(0, top, n_mels + 2)]
    else:
        points = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), n_mels + 2) / 2595) - 1)
    at, left, middle, right = np.linspace(0, RATE / 2, n_fft // 2 + 1), *(np.array(points)[i:n_mels + i, None] for i in range(3))
    bands = np.maximum(0, np.minimum((at - left) / (middle - left), (right - at) / (right - middle))) * (2 / (right - left) if norm else 1)
    return bands @ power.T


class AudioTest(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.speech, cls.files, cls.labels = cls.work / "speech", [], []
        kinds = [("wav", WAV | PCM_16), ("flac", FLAC | PCM_16), ("wav", WAV | FLOAT), ("flac", FLAC | PCM_24), ("ogg", OGG | VORBIS)]
        for label, word in enumerate(WORDS):
            (cls.speech / word).mkdir(parents=True)
            for number in range(10):
                suffix, kind = kinds[number % len(kinds)]
                path = cls.speech / word / f"{number:02}.{suffix}"
                seed = 100 * label + number
                data = sound(seed, 0.2 + 0.17 * number, (16000, 44100, 8000, 22050)[(number + label) % 4], 1 + number % 2)
                if kind == WAV | PCM_16:
                    cls.write_wave(path, data, (16000, 44100, 8000, 22050)[(number + label) % 4])
                else:
                    write(path, data, (16000, 44100, 8000, 22050)[(number + label) % 4], kind)
                cls.files.append(path)
                cls.labels.append(label)
        cls.eval = oa.audio(RATE, frames=FRAMES, crop="center")
        try:
            oa.Loader(str(cls.speech), cls.eval, batch_size=7, socket=cls.socket).close()
        except oa.Error as error:
            if "decodes no sounds" not in str(error):
                raise
            raise unittest.SkipTest(str(error)) from error
        cls.train = oa.audio(sample_rate=RATE, seconds=FRAMES / RATE)

    @staticmethod
    def write_wave(path, data, rate):
        with contextlib.closing(wave.open(str(path), "wb")) as file:
            file.setnchannels(data.shape[1])
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes((np.clip(data, -1, 1) * 32767).astype("<i2").tobytes())

    def loader(self, path, pipeline, **options):
        return oa.Loader(str(path), pipeline, batch_size=7, socket=self.socket, **{"epochs": 1, **options})

    def epoch(self, loader):
        """{id: (waves, label, length)}; each id once."""
        found = {}
        for batch in loader:
            waves, labels, lengths = (np.asarray(array) for array in batch)
            self.assertEqual(waves.dtype, np.float32)
            for at, number in enumerate(batch.ids):
                self.assertNotIn(number, found)
                found[number] = waves[at].copy(), int(labels[at]), int(lengths[at])
        return found

    def check(self, found, files, labels=None, atol=0, **how):
        self.assertEqual(sorted(found), list(range(len(files))))
        for number, (waves, label, length) in found.items():
            wanted, frames = expected(files[number], **how)
            np.testing.assert_allclose(waves if waves.ndim == 2 else waves[None], wanted, rtol=0, atol=atol, err_msg=str(files[number]))
            self.assertEqual(length, frames)
            self.assertEqual(label, labels[number] if labels else 0)

    def test_folder(self):
        with self.loader(self.speech, self.eval) as loader:
            self.assertEqual(len(loader), -(-len(self.files) // 7))
            self.check(self.epoch(loader), self.files, self.labels)

    def test_every_part_of_the_frames(self):
        for channels, crop in ((1, "begin"), (2, "center")):
            files = [path for path in self.files if channels == 1 or read(path)[0].shape[1] <= 2]
            with self.loader(self.speech, oa.audio(RATE, frames=FRAMES, channels=channels, crop=crop)) as loader:
                found = self.epoch(loader)
            self.assertEqual(found[0][0].shape, (channels, FRAMES))
            self.check(found, files, self.labels, channels=channels, start=0 if crop == "begin" else None)

    def test_random_parts(self):
        """Each is a part of its file; a seed gives the same ones again; another epoch, and another seed, others."""
        path = self.work / "long"
        path.mkdir()
        data = sound(1, 5, RATE, 1)
        data[:, 0] = np.arange(len(data)) / 2**18  # a number says where it is
        for number in range(20):
            write(path / f"{number}.flac", data, RATE, FLAC | PCM_24)
        starts = []
        for seed in (3, 3, 4):
            with self.loader(path, oa.audio(RATE, frames=1000), order="seeded", seed=seed, epochs=2) as loader:
                epochs = [{}, {}]
                for batch in itertools.chain(loader, loader):
                    waves = np.asarray(batch[0])
                    starts_here = np.round(waves[:, 0] * 2**18).astype(int)
                    np.testing.assert_allclose(waves, (starts_here[:, None] + np.arange(1000)) / 2**18, atol=2**-22)
                    epochs[batch.epoch].update(zip(batch.ids, starts_here.tolist()))
            self.assertEqual([len(epoch) for epoch in epochs], [20, 20])
            starts.append(epochs)
        self.assertEqual(starts[0], starts[1])
        self.assertNotEqual(starts[0], starts[2])
        self.assertNotEqual(starts[0][0], starts[0][1])
        drawn = sorted({start for epochs in starts for epoch in epochs for start in epoch.values()})
        self.assertGreater(len(drawn), 70)
        self.assertTrue(0 <= drawn[0] < 10000 < 70000 < drawn[-1] <= 5 * RATE - 1000)

    def test_shards(self):
        """WebDataset's: a sample's sound stands beside its label and its text; a picture goes before it."""
        os.makedirs(self.work / "shards")
        for shard in range(2):
            with tarfile.open(self.work / f"shards/{shard:03}.tar", "w") as tar:
                for number in range(shard * 20, shard * 20 + 20):
                    path = self.files[number]
                    for suffix, data in (("txt", b"a word"), (path.suffix[1:], path.read_bytes()), ("cls", b"%d" % self.labels[number])):
                        member = tarfile.TarInfo(f"{number:05}.{suffix}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
        with self.loader(self.work / "shards", self.eval) as loader:
            self.check(self.epoch(loader), self.files, self.labels)

    def epoch_of_dicts(self, data, pipeline, name):
        """{id: (waves, 0, length)} and {id: text}."""
        sounds, texts = {}, {}
        with oa.Loader(data, pipeline, 7, socket=self.socket, epochs=1, timeout=600) as loader:
            for batch in loader:
                for at, number in enumerate(batch.ids):
                    self.assertNotIn(number, sounds)
                    sounds[number] = np.array(batch[name][at]), 0, int(batch["length"][at])
                    texts[number] = batch["text"].strings()[at]
        return sounds, texts

    def test_transcripts_in_shards(self):
        """A text, and numbers of a JSON, beside the sound."""
        with tarfile.open(self.work / "spoken.tar", "w") as tar:
            for number, path in enumerate(self.files):
                for suffix, data in ((path.suffix[1:], path.read_bytes()), ("txt", f"the word {number}".encode()), ("json", b'{"speaker": %d}' % (number % 3))):
                    member = tarfile.TarInfo(f"{number:05}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        data = oa.from_tar(self.work / "spoken.tar", {"audio": "wav;flac;ogg", "text": "txt", "speaker": "json:speaker"}, ragged={"text": 40})
        sounds, texts = self.epoch_of_dicts(data, self.eval, "audio")
        self.check(sounds, self.files)
        self.assertEqual(texts, {number: f"the word {number}" for number in range(40)})
        bands = oa.Compose([self.eval, oa.transforms.MelSpectrogram(n_mels=40)])
        with oa.Loader(data, bands, 7, socket=self.socket, epochs=1) as loader, self.loader(self.speech, bands) as plain:
            wanted = self.epoch(plain)
            for batch in loader:
                for at, number in enumerate(batch.ids):
                    np.testing.assert_array_equal(np.asarray(batch["audio"][at]), wanted[number][0])
                    self.assertEqual((int(batch["length"][at]), int(batch["speaker"][at])), (wanted[number][2], number % 3))

    def test_transcripts_in_manifests(self):
        """files= of from_jsonl() and from_csv(): what a row names is read, and comes first."""
        order = [self.files[number * 7 % 40] for number in range(40)]
        rows = [{"text": f"the word {number}", "audio_filepath": f"speech/{path.parent.name}/{path.name}"} for number, path in enumerate(order)]
        (self.work / "spoken.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.work / "spoken.csv").write_text("text,audio_filepath\n" + "".join(f"{row['text']},{row['audio_filepath']}\n" for row in rows))
        for make, name in ((oa.from_jsonl, "spoken.jsonl"), (oa.from_csv, "spoken.csv")):
            with self.subTest(name):
                sounds, texts = self.epoch_of_dicts(make(self.work / name, files="audio_filepath", ragged={"text": 40}), self.eval, "audio_filepath")
                self.check(sounds, order)
                self.assertEqual(texts, {number: row["text"] for number, row in enumerate(rows)})
        with self.assertRaisesRegex(oa.Error, "files= names 'path', and .*spoken.csv has the columns text, audio_filepath"):
            oa.from_csv(self.work / "spoken.csv", files="path")
        (self.work / "gone.jsonl").write_text(json.dumps({"path": "nowhere.wav"}) + "\n")
        with self.assertRaisesRegex(oa.Error, "gone.jsonl:0: .*/nowhere.wav: No such file") as caught:
            oa.Loader(oa.from_jsonl(self.work / "gone.jsonl", files="path"), self.eval, socket=self.socket)
        self.assertNotIn("Traceback", str(caught.exception))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "files is 3"):
            oa.from_csv(self.work / "spoken.csv", files=3)

    def test_hugging_face(self):
        try:
            import datasets
        except ImportError as missing:
            print(f"audio_test: datasets: not tested: {missing}")
            return
        datasets.disable_progress_bars()
        features = datasets.Features({"text": datasets.Value("string"), "audio": datasets.Audio()})
        rows = {"text": [f"the word {number}" for number in range(40)], "audio": [{"bytes": path.read_bytes(), "path": None} for path in self.files]}
        sounds, texts = self.epoch_of_dicts(oa.from_hf(datasets.Dataset.from_dict(rows).cast(features)), self.eval, "audio")
        self.check(sounds, self.files)
        self.assertEqual([texts[number] for number in range(40)], rows["text"])

    def test_wrapped(self):
        """The bytes of a file as first field; its label stays, and boxes have no place beside a sound."""
        data = oa.wrap([(path.read_bytes(), label) for path, label in zip(self.files, self.labels)], random=False)
        with oa.Loader(data, self.eval, 7, socket=self.socket, epochs=1) as loader:
            found = {number: (np.array(waves), int(label), int(length)) for batch in loader for number, waves, label, length in zip(batch.ids, *batch)}
        self.check(found, self.files, self.labels)
        boxes = oa.wrap([{"sound": self.files[0].read_bytes(), "boxes": np.zeros((1, 4), np.float32)}], random=False, ragged={"boxes": 2}, boxes="boxes")
        with self.assertRaisesRegex(oa.Error, "what follows a picture is beside one alone"):
            oa.Loader(boxes, self.eval, socket=self.socket)

    def test_manifests(self):
        order = [self.files[number * 7 % 40] for number in range(40)]
        labels = [self.labels[number * 7 % 40] for number in range(40)]
        (self.work / "list.csv").write_text("path,label\n" + "".join(f"speech/{path.parent.name}/{path.name},{label}\n"
                                                                     for path, label in zip(order, labels)))
        (self.work / "nemo.jsonl").write_text("".join(
            json.dumps({"audio_filepath": f"speech/{path.parent.name}/{path.name}", "duration": 1.5, "text": "a word", "label": label}) + "\n"
            for path, label in zip(order, labels)))
        for name in ("list.csv", "nemo.jsonl"):
            with self.subTest(name), self.loader(self.work / name, self.eval) as loader:
                self.check(self.epoch(loader), order, labels)

    def test_jobs_beside_each_other(self):
        """Two jobs of one pipeline: each has every sample, and labels may be of its own kind."""
        with self.loader(self.speech, self.train) as one, self.loader(self.speech, self.train) as other:
            self.assertEqual([len(self.epoch(loader)) for loader in (one, other)], [40, 40])
        with self.loader(self.speech, oa.Compose([self.eval, oa.transforms.OneHot(4)])) as loader:
            batch = next(iter(loader))
            np.testing.assert_array_equal(np.asarray(batch[1]).argmax(1), [self.labels[number] for number in batch.ids])

    def test_spectrograms(self):
        """Of two jobs beside one with waveforms: what NumPy makes of each waveform in double; the length in its frames."""
        t, plain, slaney = oa.transforms, {"n_mels": 40, "hop_length": 160}, {"n_fft": 512, "norm": "slaney", "mel_scale": "slaney", "log": "ln"}
        loaders = [self.loader(self.speech, oa.Compose([self.eval, *ops])) for ops in (
            [], [t.MelSpectrogram(**plain)], [t.MelSpectrogram(**slaney), t.Normalize(-4.25, 2 * 4.5)])]
        with loaders[0], loaders[1], loaders[2]:
            waves, found, logs = map(self.epoch, loaders)
        for number, (wave, label, length) in waves.items():
            power = spectrogram(wave, **plain)
            self.assertEqual(found[number][0].shape, (40, 1 + FRAMES // 160))
            np.testing.assert_allclose(found[number][0], power, rtol=0, atol=1e-5 * power.max())
            self.assertEqual(found[number][1:], (label, 1 + length // 160))
            power = np.exp(logs[number][0].astype(float) * 9 - 4.25)
            wanted = np.maximum(spectrogram(wave, **slaney), 1e-10)
            np.testing.assert_allclose(power, wanted, rtol=1e-4, atol=1e-5 * wanted.max())
            self.assertEqual(logs[number][2], 1 + length // 256)

    def test_waveform_ops(self):
        """Beside a job that has the waveforms as they are, of both channels: each works on the sound's own frames, and what is drawn is
        once for both channels and drawn anew for each epoch."""
        t, both = oa.transforms, oa.audio(RATE, frames=FRAMES, channels=2, crop="begin")
        lists = [[t.Vol((-9, 9), "db", clamp=False)], [t.AddNoise((0, 20))], [t.Preemphasis(), t.Standardize()], [t.PolarityInversion(), t.MuLawEncoding()],
                 [t.Vol(0.5), t.MFCC(13, melkwargs={"n_mels": 40})]]
        made = []
        for ops in lists:
            with self.loader(self.speech, both, order="seeded", seed=7, epochs=2) as plain, \
                    self.loader(self.speech, oa.Compose([both, *ops]), order="seeded", seed=7, epochs=2) as loader:
                waves, found = zip(*((self.whole_epoch(plain), self.whole_epoch(loader)) for _ in range(2)))
                made.append(found)
        louder, noisy, flat, codes, cepstra = made
        drawn = {"gain": [], "snr": [], "signs": []}
        for epoch, number in itertools.product(range(2), range(40)):
            wave, length = waves[epoch][number]
            self.assertEqual({found[epoch][number][1] for found in (waves, louder, noisy, flat, codes)}, {length})
            own = wave[:, :length]
            gain = float((louder[epoch][number][0][:, :length] * own).sum() / (own * own).sum())
            np.testing.assert_allclose(louder[epoch][number][0], wave * np.float32(gain), rtol=0, atol=1e-6 * np.abs(wave).max() * max(gain, 1))
            drawn["gain"].append(20 * np.log10(gain))
            noise = noisy[epoch][number][0].astype(float) - wave
            snr = 10 * np.log10((own.astype(float) ** 2).sum(1) / (noise ** 2).sum(1))
            self.assertAlmostEqual(snr[0], snr[1], delta=1e-3)
            self.assertLess(abs(np.corrcoef(noise[:, :length])[0, 1]), 0.2)
            self.assertFalse(noise[:, length:].any())
            drawn["snr"].append(snr[0])
            wanted = np.concatenate([own[:, :1], own[:, 1:] - np.float32(0.97) * own[:, :-1]], 1).astype(float)
            wanted = (wanted - wanted.mean(1, keepdims=True)) / np.sqrt(wanted.var(1, keepdims=True) + 1e-7)
            np.testing.assert_allclose(flat[epoch][number][0], np.pad(wanted, ((0, 0), (0, FRAMES - length))), rtol=0, atol=1e-4)
            found = codes[epoch][number][0]
            self.assertEqual(found.dtype, np.int64)
            signs = [np.abs(np.floor((np.sign(sign * wave) * np.log1p(255 * np.abs(wave.astype(float))) / np.log(256) + 1) / 2 * 255 + 0.5) - found).max()
                     for sign in (1, -1)]
            self.assertEqual(min(signs), 0)
            drawn["signs"].append(signs[1] == 0)
            self.assertEqual(cepstra[epoch][number][0].shape, (2, 13, 61))
        for name, low, high in (("gain", -9, 9), ("snr", 0, 20)):
            self.assertTrue(low <= min(drawn[name]) + 1e-4 and max(drawn[name]) <= high + 1e-4)
            self.assertEqual(len(set(drawn[name])), 80)
            self.assertGreater(max(drawn[name]) - min(drawn[name]), 0.8 * (high - low))
        self.assertTrue(20 < sum(drawn["signs"]) < 60)
        with self.loader(self.speech, oa.Compose([both, *lists[1]]), order="seeded", seed=7, epochs=2) as loader:  # alone, the same
            for epoch in range(2):
                for number, (wave, _) in self.whole_epoch(loader).items():
                    np.testing.assert_array_equal(wave, noisy[epoch][number][0])

    @staticmethod
    def whole_epoch(loader):
        """{id: (what came, length)} of the next epoch."""
        return {number: (np.array(sounds[at]), int(lengths[at])) for batch in loader for sounds, _, lengths in [[np.asarray(each) for each in batch]]
                for at, number in enumerate(batch.ids)}

    def test_speeds(self):
        """One of them is drawn, and its part is resampled once, by the ratio of both."""
        speeds, drawn = (0.9, 1.0, 1.1), []
        with self.loader(self.speech, oa.audio(RATE, frames=FRAMES, crop="center", speeds=speeds)) as loader:
            found = self.epoch(loader)
        for number, path in enumerate(self.files):
            data, own = read(path)
            sums = sum((data[:, channel] for channel in range(1, data.shape[1])), data[:, 0].copy()) / np.float32(data.shape[1])
            fits = []
            for speed in speeds:
                ratio = own * int(speed * RATE), RATE * RATE
                wanted = -(-FRAMES * ratio[0] // ratio[1])
                start = max(len(sums) - wanted, 0) // 2
                part = sums[start:start + wanted]
                part = part[:FRAMES] if ratio[0] == ratio[1] else resampled(part, *((own, RATE) if speed == 1 else ratio), FRAMES)
                fits.append(len(part) == found[number][2] and bool((np.pad(part, (0, FRAMES - len(part))) == found[number][0]).all()))
            self.assertEqual(sum(fits), 1, path)
            drawn.append(fits.index(True))
        self.assertTrue(all(4 < drawn.count(each) < 25 for each in range(3)), drawn)

    def test_whisper(self):
        with self.loader(self.speech, oa.transforms.whisper(1.0)) as loader, self.loader(self.speech, oa.audio(RATE, 1.0, crop="begin")) as other:
            found, waves = self.epoch(loader), self.epoch(other)
        for number, (features, _, length) in found.items():
            wanted = np.log10(np.maximum(spectrogram(waves[number][0], n_mels=80, hop_length=160, norm="slaney", mel_scale="slaney")[:, :-1], 1e-10))
            wanted = (np.maximum(wanted, wanted.max() - 8) + 4) / 4
            self.assertEqual(features.shape, (80, 100))
            np.testing.assert_allclose(features, wanted, rtol=0, atol=1e-3)
            self.assertEqual(length, min(100, 1 + waves[number][2] // 160))

    def test_like_torchaudio(self):
        """And transformers: its extractor's features of the same waveforms."""
        try:
            import torch
            import torchaudio
            from transformers import WhisperFeatureExtractor
        except (ImportError, OSError) as missing:
            print(f"audio_test: torchaudio and transformers: not tested: {missing}")
            return
        t, waves = oa.transforms, {}
        with self.loader(self.speech, oa.audio(RATE, 1.0, crop="begin")) as loader:
            waves = {number: found[0] for number, found in self.epoch(loader).items()}
        for parameters in ({}, {"n_fft": 512, "win_length": 400, "hop_length": 160, "f_min": 60.0, "f_max": 7600.0, "n_mels": 64, "power": 1.0},
                           {"norm": "slaney", "mel_scale": "slaney", "n_mels": 80}, {"center": False, "norm": "slaney", "n_mels": 40}):
            theirs = torchaudio.transforms.MelSpectrogram(RATE, **parameters)
            with self.subTest(**parameters), self.loader(self.speech, oa.Compose([oa.audio(RATE, 1.0, crop="begin"),
                                                                                 t.MelSpectrogram(**parameters)])) as loader:
                for number, (found, *_) in self.epoch(loader).items():
                    wanted = theirs(torch.from_numpy(waves[number])).numpy()
                    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * wanted.max())
        extractor = WhisperFeatureExtractor(chunk_length=1)
        with self.loader(self.speech, t.whisper(1.0)) as loader:
            for number, (found, *_) in self.epoch(loader).items():
                wanted = extractor(waves[number], sampling_rate=RATE, return_tensors="np")["input_features"][0]
                np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3)
        self.like_theirs(torch, torchaudio)

    def like_theirs(self, torch, torchaudio):
        """What from_torchaudio() makes of their transforms, against these, and of their extractor; the noise, as they would add it."""
        from transformers import Wav2Vec2FeatureExtractor
        T, both = torchaudio.transforms, oa.audio(RATE, 1.0, crop="begin", channels=2)
        with self.loader(self.speech, both) as loader:
            waves = {number: (torch.from_numpy(found), length) for number, (found, _, length) in self.epoch(loader).items()}
        for first, then in (([T.Preemphasis(), T.Vol(0.5)], [T.MelSpectrogram(RATE, n_mels=40), T.AmplitudeToDB(top_db=60)]),
                            ([], [T.MFCC(RATE, 20, melkwargs={"n_mels": 30})]), ([T.Fade(800, 80)], [T.Spectrogram(512, hop_length=160)]),
                            ([T.Vol(6, "db")], [T.MuLawEncoding()])):
            with self.subTest(first=first, then=then), self.loader(self.speech, oa.from_torchaudio(
                    torch.nn.Sequential(*first, *then), 1.0, crop="begin", channels=2, sample_rate=RATE)) as loader:
                for number, (found, _) in self.whole_epoch(loader).items():
                    wave, length = waves[number]
                    wave = torch.nn.functional.pad(torch.nn.Sequential(*first)(wave[:, :length]), (0, RATE - length))
                    wanted = torch.nn.Sequential(*then)(wave).numpy()
                    if found.dtype == np.int64:
                        self.assertLess((found != wanted).mean(), 1e-4)
                        self.assertLessEqual(np.abs(found - wanted).max(), 1)
                    else:
                        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())
        with self.loader(self.speech, oa.Compose([both, oa.transforms.AddNoise((5, 20))])) as loader:
            for number, (found, *_) in self.epoch(loader).items():
                wave, length = waves[number]
                noise = torch.from_numpy(found) - wave
                snr = 10 * torch.log10((wave ** 2).sum(1) / (noise ** 2).sum(1))
                wanted = torchaudio.functional.add_noise(wave, 3 * noise, snr.mean().expand(2), torch.tensor([length] * 2))
                np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=1e-5)
        extractor = Wav2Vec2FeatureExtractor(do_normalize=True, return_attention_mask=True)
        with self.loader(self.speech, oa.audio(RATE, 1.0, crop="begin")) as loader, \
                self.loader(self.speech, oa.from_torchaudio(extractor, 1.0, crop="begin")) as other:
            waves, found = self.epoch(loader), self.epoch(other)
        for number, (wave, _, length) in waves.items():
            wanted = extractor(wave[:length], sampling_rate=RATE, padding="max_length", max_length=RATE, return_tensors="np")["input_values"][0]
            np.testing.assert_allclose(found[number][0], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())

    def test_masks(self):
        """SpecAugment's: whole frames and bands, others in each epoch, and the same ones again with the seed."""
        t = oa.transforms
        pipeline = oa.Compose([self.eval, t.MelSpectrogram(n_mels=32, log="ln"), t.TimeMasking(20, p=0.1, mask_value=77),
                               t.FrequencyMasking(8, mask_value=77)])
        drawn = []
        for seed in (3, 3, 4):
            with self.loader(self.speech, pipeline, order="seeded", seed=seed, epochs=2) as loader:
                epochs = [{}, {}]
                for batch in itertools.chain(loader, loader):
                    for number, found in zip(batch.ids, np.asarray(batch[0]) == 77):
                        times, bands = found.all(0), found.all(1)
                        np.testing.assert_array_equal(found, times[None] | bands[:, None])
                        self.assertTrue(times.sum() < 7 and bands.sum() < 8)
                        epochs[batch.epoch][number] = tuple(np.flatnonzero(times)), tuple(np.flatnonzero(bands))
            drawn.append(epochs)
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertNotEqual(drawn[0][0], drawn[0][1])

    def test_one_decoding(self):
        """Of jobs that begin with the same audio, whatever they make of it: they are variants of one stream."""
        t, folder = oa.transforms, self.work / "decoded-once"
        shutil.copytree(self.speech, folder)
        with self.loader(folder, oa.Compose([self.train, t.MelSpectrogram(n_mels=40)]), epochs=3) as one:
            next(iter(one))
            with self.loader(folder, oa.Compose([self.train, t.MelSpectrogram(n_mels=64, log="db")])) as other, \
                    self.loader(folder, oa.Compose([oa.audio(8000, 1.0), t.MelSpectrogram(n_mels=40)])) as apart:
                streams = json.loads(_core.Client(self.socket).status())["streams"]
                self.assertEqual(sorted(len(stream["variants"]) for stream in streams if stream["dataset"] == str(folder)), [1, 2])
                self.assertEqual([len(self.epoch(loader)) for loader in (other, apart)], [40, 40])

    def test_opus(self):
        """Opus: what libsndfile says of the whole file, from the beginning."""
        folder = self.work / "opus"
        folder.mkdir()
        write(folder / "a.opus", sound(9, 2, 48000, 2), 48000, OGG | OPUS)
        for crop, start in (("begin", 0), ("center", None)):
            with self.loader(folder, oa.audio(48000, frames=20000, crop=crop)) as loader:
                found = self.epoch(loader)
            wanted, frames = expected(folder / "a.opus", start, 48000, 20000)
            self.assertEqual(found[0][2], frames)
            np.testing.assert_allclose(found[0][0][None], wanted, atol=0 if crop == "begin" else 0.02)

    def test_mp3(self):
        """What libsndfile says of the whole file, of each part; with tags and without, of every rate and mode that it writes."""
        folder = self.work / "mp3"
        folder.mkdir()
        shutil.copy(SOUNDS / "mono.mp3", folder / "mono.mp3")  # stereo.mp3 has no tag, and libsndfile guesses its length
        for number, rate in enumerate((8000, 16000, 22050, 24000, 32000, 44100, 48000)):
            write(folder / f"{rate}.mp3", sound(number, 3, rate, 1 + number % 2), rate, MPEG | LAYER_III)
        files = sorted(folder.iterdir())
        for how in ({"crop": "begin", "start": 0}, {"crop": "center"}, {"crop": "center", "rate": 44100}):
            crop, start, rate = how["crop"], how.get("start"), how.get("rate", RATE)
            with self.subTest(**how), self.loader(folder, oa.audio(rate, frames=FRAMES, crop=crop)) as loader:
                self.check(self.epoch(loader), files, start=start, rate=rate, atol=1e-6)

    def test_damaged_mp3(self):
        """Whatever libmpg123 makes of it, it is silent: a word on stderr would kill the worker."""
        folder, random = self.work / "damaged", np.random.default_rng(5)
        folder.mkdir()
        for number in range(40):
            data = np.frombuffer((SOUNDS / ("mono.mp3", "stereo.mp3")[number % 2]).read_bytes(), np.uint8).copy()
            places = random.integers(300, len(data), 1 + number)
            data[places] = random.integers(0, 256, len(places))
            (folder / f"{number:03}.mp3").write_bytes(data.tobytes()[:len(data) if number % 3 else random.integers(600, len(data))])
        with self.loader(folder, self.train, bad="skip") as loader:
            found = self.epoch(loader)
            errors = [bad.error for bad in loader.bad_samples]
        self.assertGreater(len(found), 20)
        for error in errors:
            self.assertNotRegex(error, "worker|signal|killed|died")

    def test_bad_files(self):
        folder = self.work / "bad"
        folder.mkdir()
        good = self.files[1].read_bytes()  # FLAC
        (folder / "a-good.flac").write_bytes(good)
        (folder / "b-cut.flac").write_bytes(good[:len(good) // 2])
        (folder / "c-text.wav").write_bytes(b"this is no sound at all")
        self.write_wave(folder / "d-empty.wav", np.zeros((0, 1)), RATE)
        write(folder / "e-six.wav", np.zeros((100, 6)), RATE, WAV | FLOAT)
        self.write_wave(folder / "f-mpeg.wav", sound(3, 0.5, RATE, 1), RATE)
        mpeg = bytearray((folder / "f-mpeg.wav").read_bytes())
        mpeg[20] = 0x55     # what libsndfile gives to a libmpg123 that writes to stderr
        (folder / "f-mpeg.wav").write_bytes(mpeg)
        with self.loader(folder, oa.audio(RATE, frames=FRAMES, channels=2, crop="begin"), bad="skip") as loader:
            self.assertEqual(list(self.epoch(loader)), [0])
            errors = {os.path.basename(bad.path): bad.error for bad in loader.bad_samples}
        for name, text in (("b-cut.flac", "the file ends before the sound does"), ("c-text.wav", "no WAV, FLAC or Ogg"),
                           ("d-empty.wav", "the sound is empty"), ("e-six.wav", "6 channels, not 2"), ("f-mpeg.wav", "MP3 in WAV")):
            self.assertIn(text, errors[name])
        with self.loader(self.speech, oa.imagenet_eval(64)) as loader, self.assertRaisesRegex(oa.Error, "which the op audio decodes"):
            list(loader)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(oa.errors.TransformError, "give seconds or frames"):
            oa.audio(16000)
        for ops, words in (([oa.transforms.RandomHorizontalFlip()], "op 2 .hflip. works on pictures"),
                           ([oa.transforms.MixUp(num_classes=4)], "mixup and cutmix are of pictures"),
                           ([oa.transforms.Filter(min_width=4)], "width and height are of pictures")):
            with self.assertRaisesRegex(oa.Error, words):
                self.loader(self.speech, oa.Compose([self.eval, *ops]))
        with self.assertRaisesRegex(oa.Error, "sample_rate .* give frames a second"):
            self.loader(self.speech, oa.audio(10, frames=5))
        os.makedirs(self.work / "half/a")
        os.makedirs(self.work / "half/b")
        write(self.work / "half/a/x.wav", np.zeros((10, 1)), RATE, WAV | FLOAT)
        with self.assertRaisesRegex(oa.Error, "found no sound for the class folder \"b\""):
            self.loader(self.work / "half", self.eval)

    def test_pictures_go_first(self):
        """Where there are pictures, sounds beside them are no samples."""
        folder = self.work / "mixed"
        os.makedirs(folder)
        picture = next(path for path in sorted((self.work / "data").rglob("*.jpg")))
        (folder / "a.jpg").write_bytes(picture.read_bytes())
        (folder / "b.wav").write_bytes(self.files[0].read_bytes())
        with self.loader(folder, oa.imagenet_eval(64)) as loader:
            self.assertEqual([tuple(batch.ids) for batch in loader], [(0,)])


if __name__ == "__main__":
    unittest.main()
