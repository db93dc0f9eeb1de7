# SPDX-License-Identifier: Apache-2.0
"""Parts of long recordings: of rows that name a part of a file, of oa.Segment, and windows of recordings, the frames that libsndfile reads there;
their lengths; and what is refused, by name."""

import ctypes
import json
import math
import os
import pathlib
import pickle
import shutil
import struct
import tempfile
import unittest

import audio_test       # which skips where there is no libsndfile
import numpy as np

import oneaccess as oa
from oneaccess import flac
from oneaccess.segments import head_of
from audio_test import FLAC, FLOAT, OGG, PCM_16, PCM_24, VORBIS, WAV, sound
from support import PoolCase

SEEK = audio_test.SNDFILE.sf_seek
SEEK.restype, SEEK.argtypes = ctypes.c_int64, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int)
RATE, FRAMES = 16000, 4000
NIST = 0x70000
ALAW, ULAW, MS_ADPCM, WAVEX, RF64 = 0x11, 0x10, 0x13, 0x130000, 0x220000
KINDS = {"a.wav": WAV | PCM_16, "b.flac": FLAC | PCM_24, "c.ogg": OGG | VORBIS, "d.wav": WAV | FLOAT}


def read_part(path, first, count):
    """As soundfile.read(start=, frames=): by a seek, which libsndfile 1.2 takes 128 frames too far on the last page of some Ogg files."""
    info = audio_test.Info()
    file = audio_test.SNDFILE.sf_open(os.fsencode(path), 0x10, ctypes.byref(info))
    data = np.zeros((count, info.channels), np.float32)
    assert SEEK(file, first, 0) == first
    got = audio_test.SNDFILE.sf_readf_float(file, data.ctypes.data, count)
    audio_test.SNDFILE.sf_close(file)
    return data[:got]


class Files(unittest.TestCase):
    """Segment.read(), without a daemon."""

    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="access-python."))
        cls.addClassCleanup(shutil.rmtree, cls.work)

    def check(self, name, kind, channels, is_cut=True):
        path = self.work / name
        audio_test.write(path, sound(1, 2.0, RATE, channels), RATE, kind)
        whole, _ = audio_test.read(path)
        for start, duration, first, end in ((0.5, 0.25, 8000, 12000), (0, 0.1, 0, 1600), (1.9, 5.0, 30400, 32000), (1.9, math.inf, 30400, 32000),
                                            (0.50003, 0.00006, 8000, 8001), (0.50004, 0.25, 8001, 12001)):
            with self.subTest(name, start=start, duration=duration):
                part = oa.Segment.read(path, start, duration)
                self.assertEqual(part.is_whole, is_cut)
                if is_cut:
                    (self.work / "part.wav").write_bytes(part)
                    self.assertLess(len(part), 200 + (end - first) * 4 * channels)
                    found, rate = audio_test.read(self.work / "part.wav")
                    self.assertEqual(rate, RATE)
                    np.testing.assert_array_equal(found, whole[first:end])
                else:
                    self.assertEqual((bytes(part), part.start, part.duration), (path.read_bytes(), start, duration))

    def test_parts_of_wav_are_read_alone(self):
        for name, kind in {"sphere": NIST | PCM_16, "big": NIST | PCM_16 | 0x20000000, "sphere_ulaw": NIST | ULAW, "pcm": WAV | PCM_16, "pcm24": WAV | PCM_24, "float": WAV | FLOAT, "ulaw": WAV | ULAW, "alaw": WAV | ALAW,
                           "extensible": WAVEX | PCM_24, "rf64": RF64 | PCM_16}.items():
            self.check(name + ".wav", kind, 2)

    def test_sphere(self):
        """Whole ones are WAV files, too; what is shortened is refused."""
        path = self.work / "whole.sph"
        audio_test.write(path, sound(1, 1.0, RATE, 2), RATE, NIST | PCM_16 | 0x20000000)
        (self.work / "part.wav").write_bytes(oa.Segment.read(path))
        np.testing.assert_array_equal(audio_test.read(self.work / "part.wav")[0], audio_test.read(path)[0])
        good, random = path.read_bytes(), np.random.default_rng(6)
        for _ in range(200):
            bad = bytearray(good)
            for at in random.integers(8, 300, 3).tolist():
                bad[at] = random.integers(256)
            path.write_bytes(bad)
            try:
                self.assertLessEqual(len(oa.Segment.read(path, 0.1, 0.5)), len(good))
            except oa.Error:
                continue
        path.write_bytes(good.replace(b"sample_coding -s3 pcm", b"sample_coding -s26 pcm,embedded-shorten-v2.00"))
        with self.assertRaisesRegex(oa.Error, "NIST SPHERE with embedded-shorten-v2.00, which is not read: unpack it once"):
            oa.Segment.read(path)
        self.assertEqual(head_of(path), (0, 0))
        for name, wrong in ((b"1024", b"9" * 5000), (b"sample_rate -i %d" % RATE, "sample_rate -i ²".encode("latin-1"))):
            self.assertIn(name, good)
            path.write_bytes(good.replace(name, wrong, 1))
            self.assertEqual(head_of(path), (0, 0))
        os.mkfifo(self.work / "waits.wav")
        self.assertEqual(head_of(self.work / "waits.wav"), (0, 0))

    def test_others_are_read_whole(self):
        self.check("adpcm.wav", WAV | MS_ADPCM, 1, is_cut=False)
        self.check("a.flac", FLAC | PCM_16, 2, is_cut=False)

    def test_parts_of_long_flac(self):
        """Their frames alone, found with a table of places and without; of a damaged file what its bytes have, or it is refused."""
        path, random = self.work / "long.flac", np.random.default_rng(5)
        audio_test.write(path, np.concatenate([sound(number, 20.0, RATE, 1) * np.float32(0.01 + 0.3 * number) for number in range(4)]), RATE, FLAC | PCM_16)
        good, (whole, _) = path.read_bytes(), audio_test.read(path)
        with open(path, "rb") as file:
            found = flac.flac_of(file)
            points = [found._next(file, at, 0, found.frames) for at in range(found.at + 1000, found.end - (1 << 16), 200000)]
        table = b"".join(struct.pack(">QQH", number, place - found.at, 4096) for number, place in points)
        block = bytes([3]) + len(table).to_bytes(3, "big") + table
        for data in (good, good[:42] + block + good[42:]):
            path.write_bytes(data)
            for start, duration in ((0, 1.0), (79.5, 9.0), (0.256, 0.256), (40.1, math.inf), *((float(random.uniform(0, 79)), 0.5) for _ in range(20))):
                part = oa.Segment.read(path, start, duration)
                (self.work / "part.flac").write_bytes(part)
                first = round(start * RATE)
                count = min(len(whole) - first, round(min(duration, 99) * RATE))
                np.testing.assert_array_equal(read_part(self.work / "part.flac", first, count), whole[first:first + count])
                self.assertLess(len(part), (1 << 18) + 3 * count)
        for _ in range(100):
            bad = bytearray(data)
            for at in random.integers(4, len(bad), 500).tolist() + random.integers(4, 60, 2).tolist():
                bad[at] = random.integers(256)
            path.write_bytes(bad)
            try:
                self.assertLessEqual(len(oa.Segment.read(path, 33.0, 1.0)), len(bad) + 42)
            except oa.Error:
                continue

    def test_what_is_no_part(self):
        path = self.work / "short.wav"
        audio_test.write(path, sound(2, 1.0, RATE, 1), RATE, WAV | PCM_16)
        for start, duration, words in ((1, 1, "second 1 of a sound of 1"), (9, 1, "second 9 of a sound of 1"), (-1, 1, "start is -1"),
                                       (math.nan, 1, "start is NaN"), (math.inf, 1, "start is inf"), (0, 0, "a duration of 0 s"),
                                       (0, -2, "a duration of -2 s"), (0, math.nan, "duration is NaN"), ("x", 1, "start is 'x'"), (1e308, 1, "second 1e.308 of"), (10 ** 400, 1, "start is 10*: a number"), (True, 1, "start is True"),
                                       (0, 1e-9, "a part of 1e-09 s has no frame")):
            with self.subTest(start=start, duration=duration), self.assertRaisesRegex(oa.Error, words):
                oa.Segment.read(path, start, duration)
        self.assertEqual(bytes(oa.Segment.read(path)), path.read_bytes())

    def test_hostile_heads(self):
        """Whatever a head claims, a part is of the file's own bytes, or the file is given as it is."""
        path = self.work / "hostile.wav"
        audio_test.write(path, sound(3, 0.1, RATE, 1), RATE, WAV | PCM_16)
        good, random = path.read_bytes(), np.random.default_rng(4)
        for _ in range(400):
            data = bytearray(good[:random.integers(12, len(good))] if random.random() < 0.3 else good)
            for _ in range(random.integers(1, 4)):
                data[random.integers(12, min(60, len(data)))] = random.integers(256)
            path.write_bytes(data)
            try:
                part = oa.Segment.read(path, 0.01, 0.02)
            except oa.Error:
                continue
            self.assertTrue(len(part) <= len(data) + 64)
        path.write_bytes(good[:40] + struct.pack("<I", 1 << 30) + good[44:])     # more than there is, as of a stream that was cut off
        self.assertEqual(len(oa.Segment.read(path, 0.05, 9.0)), 44 + 2 * 800)

    def test_samples_keep_their_place(self):
        part = pickle.loads(pickle.dumps(oa.Segment(b"abc", 1.5, 2.0)))
        self.assertEqual((bytes(part), part.start, part.duration, part.is_whole), (b"abc", 1.5, 2.0, False))
        self.assertTrue(oa.Segment(b"abc").is_whole)


class Rows(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files, cls.whole = [], {}
        for number, (name, kind) in enumerate(KINDS.items()):
            path = cls.work / name
            audio_test.write(path, sound(number, 3.0, RATE, 1 + number % 2), RATE, kind)
            cls.files.append(path)
            cls.whole[name] = audio_test.read(path)[0]
        cls.begin = oa.audio(RATE, frames=FRAMES, crop="begin")

    def wanted(self, name, start, duration, frames=FRAMES):
        """As soundfile.read(start=, frames=) has it, the mean of the channels, and zeros."""
        first = round(start * RATE)
        count = len(self.whole[name]) - first if duration is None else round(duration * RATE)
        part = read_part(self.work / name, first, min(count, frames))
        sums = part[:, 0].copy()
        for channel in range(1, part.shape[1]):
            sums += part[:, channel]
        mean = sums / np.float32(part.shape[1])
        return np.pad(mean, (0, frames - len(mean))), len(mean)

    def epoch(self, data, field="audio_filepath", pipeline=None, **more):
        found = {}
        with oa.Loader(data, pipeline or self.begin, 5, socket=self.socket, epochs=1, timeout=600, **more) as loader:
            for batch in loader:
                for at, number in enumerate(batch.ids):
                    found[number] = np.array(batch[field][at]), int(batch["length"][at])
            self.bad = {each.index: each for each in loader.bad_samples}
        return found

    def check(self, found, rows):
        self.assertEqual(sorted(found), list(range(len(rows))))
        for number, row in enumerate(rows):
            wave, length = self.wanted(*row)
            self.assertEqual(found[number][1], length, row)
            np.testing.assert_array_equal(found[number][0], wave, str(row))

    def table(self, name, rows):
        (self.work / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.work / name

    PARTS = [(name, start, duration) for name in KINDS for start, duration in ((0, 0.2), (0.5, 0.1), (0.61803, 1.0), (2.9, 5.0), (1.0, None))]

    def test_nemo(self):
        """offset and duration without a word of it; both may be missing or null."""
        rows = [{"audio_filepath": name, "offset": start, **({} if duration is None else {"duration": duration}), "text": f"{name} {start}"}
                for name, start, duration in self.PARTS]
        rows[0].pop("offset")
        rows[5]["offset"] = None
        path = self.table("nemo.jsonl", rows)
        data = oa.from_jsonl(path, ["audio_filepath", "text"], files="audio_filepath", ragged={"text": 40})
        self.check(self.epoch(data), self.PARTS)
        self.assertEqual(self.bad, {})
        with self.assertRaisesRegex(oa.Error, "nemo.jsonl:2: it has an offset, and files are read whole here"):
            oa.Loader(str(path), self.begin, 5, socket=self.socket)
        path = self.table("flac.jsonl", [{"audio_filepath": "b.flac", "offset": 1.0}])
        with self.assertRaisesRegex(oa.Error, "a part of a file, which a pipeline takes"):
            oa.Loader(oa.from_jsonl(path, ["audio_filepath"], files="audio_filepath", ragged={"audio_filepath": 1 << 20}), None, 5, socket=self.socket)

        path = self.table("second.jsonl", [{"image": "a.wav", "audio_filepath": "b.flac", "offset": offset} for offset in (0, 1.0)])
        rows = oa.from_jsonl(path, files=["image", "audio_filepath"]).dataset
        self.assertEqual(rows[0]["audio_filepath"], (self.work / "b.flac").read_bytes())
        with self.assertRaisesRegex(oa.Error, "second.jsonl:[0-9]+: it has an offset, and a part is taken of the first one of files=: name 'audio_filepath' first"):
            rows[1]

    def test_columns_of_any_name(self):
        rows = [row for row in self.PARTS if row[2] is not None]
        (self.work / "parts.csv").write_text("path,from,to,label\n" + "".join(f"{name},{start},{start + duration!r},{len(name)}\n" for name, start, duration in rows))
        data = oa.from_csv(self.work / "parts.csv", ["path", "label"], files="path", start="from", end="to")
        self.check(self.epoch(data, "path"), rows)
        path = self.table("parts.jsonl", [{"file": name, "begin": start, "seconds": duration} for name, start, duration in self.PARTS])
        self.check(self.epoch(oa.from_jsonl(path, ["file"], files="file", start="begin", duration="seconds"), "file"), self.PARTS)
        for arguments, words in (({"start": "begin", "files": "path"}, "'begin' is to say where a sample's part is, and .*parts.csv has the columns path"),
                                 ({"start": "from"}, "name its column by files="), ({"files": "path", "end": "to", "duration": "to"}, "give one of them"),
                                 ({"files": "path", "start": 3}, "start is 3: the name of the column")):
            with self.subTest(arguments), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                oa.from_csv(self.work / "parts.csv", **arguments)

    def test_random_parts_lie_within(self):
        path = self.table("random.jsonl", [{"file": name, "begin": 0.5, "seconds": 0.3} for name in KINDS] * 5)
        data = oa.from_jsonl(path, ["file"], files="file", start="begin", duration="seconds")
        found = self.epoch(data, "file", oa.audio(RATE, frames=1600))
        starts = set()
        for number, (wave, length) in found.items():
            name = list(KINDS)[number % len(KINDS)]
            part = self.wanted(name, 0.5, 0.3, 4800)[0]
            self.assertEqual(length, 1600)
            at = next(at for at in range(3201) if np.array_equal(part[at:at + 1600], wave))
            starts.add(at)
        self.assertGreater(len(starts), 10)

    def test_bad_rows_have_names(self):
        rows = [{"audio_filepath": name, "offset": offset, "duration": duration} for name, offset, duration in (
            ("a.wav", 0, 1), ("a.wav", 3.0, 1), ("b.flac", 7.5, 1), ("b.flac", -1, 1), ("c.ogg", math.nan, 1), ("c.ogg", 0, "long"), ("d.wav", 0, -1),
            ("b.flac", 1, 1e-9))]
        path = self.table("bad.jsonl", rows)
        data = oa.from_jsonl(path, ["audio_filepath"], files="audio_filepath")
        found = self.epoch(data, bad="skip")
        self.assertEqual(sorted(found), [0])
        for number, words in {1: "bad.jsonl:[0-9]+: second 3 of a soun", 2: "second 7.5 of a sound of 3", 3: "bad.jsonl:[0-9]+: start is -1", 4: "offset is NaN", 5: "duration is 'lo",
                              6: "bad.jsonl:[0-9]+: a part from", 7: "a part of 1e-09 s has no frame"}.items():
            self.assertRegex(self.bad[number].error, words)

    def test_transforms_get_whole_files(self):
        path = self.table("transformed.jsonl", [{"audio_filepath": name, "offset": 0.5, "duration": 0.1} for name in KINDS])
        data = oa.from_jsonl(path, files="audio_filepath", transform=_same, random=False)
        self.check(self.epoch(data), [(name, 0.5, 0.1) for name in KINDS])

    def test_wrapped(self):
        for make in (oa.Segment.read, _segment):
            parts = [row for row in self.PARTS if row[2] is not None]
            data = oa.wrap([{"sound": make(self.work / name, start, duration), "label": 3} for name, start, duration in parts], random=False)
            self.check(self.epoch(data, "sound"), parts)

    def test_channels(self):
        """Of a part that is read alone, and of a file that the worker gets."""
        for name in ("b.flac", "d.wav"):
            data = oa.wrap([{"sound": oa.Segment.read(self.work / name, 0.5, 0.2, channel)} for channel in (0, 1)], random=False)
            for number, (wave, length) in self.epoch(data, "sound").items():
                self.assertEqual(length, 3200)
                np.testing.assert_array_equal(wave[:3200], self.whole[name][8000:11200, number])
        part = oa.Segment.read(self.work / "d.wav", channel=1)
        self.assertTrue(part.is_whole)
        data = oa.wrap([oa.Segment(self.files[1].read_bytes(), channel=2)], random=False)
        with self.assertRaisesRegex(oa.Error, "channel 2 of 2"):
            self.epoch(data)
        for make, words in ((lambda: oa.Segment.read(self.work / "d.wav", channel=5), "channel 5 of a sound of 2"), (lambda: oa.Segment(b"", channel=-1), "channel is -1")):
            with self.assertRaisesRegex(oa.Error, words):
                make()

    def test_durations(self):
        found = oa.durations(oa.wrap([path.read_bytes() for path in self.files], random=False, room=1 << 21), socket=self.socket)
        np.testing.assert_array_equal(found, [[len(self.whole[name]) / RATE, len(self.whole[name]), RATE] for name in KINDS])
        path = self.table("measured.jsonl", [{"audio_filepath": name, "offset": 0.5, "duration": 0.1 * (1 + at)} for at, name in enumerate(KINDS)]
                          + [{"audio_filepath": "a.wav", "offset": 99, "duration": 1}])
        lengths = oa.durations(oa.from_jsonl(path, ["audio_filepath"], files="audio_filepath"), socket=self.socket)
        np.testing.assert_array_equal(lengths[:, 1], [1600, 3200, 4800, 6400, 0])
        np.testing.assert_allclose(lengths[:, 0], [0.1, 0.2, 0.3, 0.4, 0])
        self.assertEqual(max(oa.orders.by_length(lengths[:4, 0], 2, seed=1)(0)[:2]), 3)      # the longest one comes first

    def test_windows(self):
        """They adjoin, so all of them are the recordings; the same with rest of what is left."""
        data = oa.from_recordings([self.files[0], self.files[1]], 0.25, socket=self.socket)
        self.assertEqual(len(data), 24)
        with oa.Loader(data, self.begin, 5, socket=self.socket, epochs=1, timeout=600, shuffle=False) as loader:
            batches = [{name: np.array(batch[name]) for name in ("audio", "start", "recording", "length")} for batch in loader]
        waves, starts, of, lengths = (np.concatenate([batch[name] for batch in batches]) for name in ("audio", "start", "recording", "length"))
        self.assertEqual((starts.tolist(), of.tolist()), ([0.25 * at for at in range(12)] * 2, [0] * 12 + [1] * 12))
        self.assertEqual(lengths.tolist(), [FRAMES] * 24)
        for number, name in enumerate(list(KINDS)[:2]):
            np.testing.assert_array_equal(waves[of == number].reshape(-1), self.wanted(name, 0, None, 48000)[0])

    def test_where_windows_are(self):
        first, flac = str(self.files[0]), str(self.files[1])
        def starts(*paths, **more):
            return oa.from_recordings(list(paths), more.pop("seconds", 1.0), socket=self.socket, **more).dataset.starts.tolist()
        self.assertEqual(starts(first), [0, 1, 2])
        self.assertEqual(starts(first, every=0.75), [0, 0.75, 1.5])
        self.assertEqual(starts(first, every=0.75, rest=True), [0, 0.75, 1.5, 2.25])
        self.assertEqual(starts(first, rest=True), [0, 1, 2])
        self.assertEqual(starts(first, seconds=5.0), [0])
        self.assertEqual(starts(flac, clips=5), [0, 0.5, 1, 1.5, 2])
        self.assertEqual(starts(flac, clips=1), [1])
        self.assertEqual(starts(flac, seconds=9.0, clips=2), [0, 0])
        self.assertEqual(starts(first, flac, durations=[1.5, 0]), [0])
        for more, words in (({"clips": 2, "every": 1.0}, "give one of them"), ({"seconds": 0}, "seconds is 0"), ({"every": math.nan}, "every is nan"),
                            ({"durations": [1.0, 2.0]}, "give the seconds of each of 1 files"), ({"durations": [math.nan]}, "numbers that are none")):
            with self.subTest(more), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                starts(first, **more)
        with self.assertRaisesRegex(oa.Error, "no sound and no video is at"):
            starts(str(self.work / "nowhere"))

    def test_labels_of_recordings(self):
        data = oa.from_recordings(str(self.work / "*.wav"), 1.0, labels=lambda path: len(os.path.basename(path)) + path.count("d.wav"), socket=self.socket)
        with oa.Loader(data, self.begin, 6, socket=self.socket, epochs=1, timeout=600, shuffle=False) as loader:
            batch = next(iter(loader))
            self.assertEqual((np.array(batch["label"]).tolist(), np.array(batch["recording"]).tolist()), ([5] * 3 + [6] * 3, [0] * 3 + [1] * 3))


def _same(row):
    return {"audio_filepath": row["audio_filepath"]}


def _segment(path, start, duration):
    return oa.Segment(path.read_bytes(), start, duration)


if __name__ == "__main__":
    unittest.main()
