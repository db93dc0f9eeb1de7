# SPDX-License-Identifier: Apache-2.0
"""Manifests of Lhotse and folders of Kaldi: which frames of which files samples are, their texts and other fields, lengths without a look at the files,
and what is refused, by name. That these are Lhotse's own numbers was compared with Lhotse (doc/python/sounds.md)."""

import gzip
import json
import math
import unittest

import audio_test       # which skips where there is no libsndfile
import numpy as np

import oneaccess as oa
from audio_test import FLAC, FLOAT, PCM_16, WAV, sound
from support import PoolCase

RATE = 16000
FILES = {"a.wav": (WAV | PCM_16, 1), "b.flac": (FLAC | PCM_16, 2), "c.wav": (WAV | FLOAT, 2)}
# recording, channel, start, duration, text, speaker, snr, tokens
CUTS = [("a", 0, 0.0, 1.0, "one", "x", 1, [1]), ("b", 1, 0.5, 0.25, "zwei ä", "y", 2.5, [2, 3]), ("b", [0, 1], 1.0, 1.0, "three", "x", 3, []),
        ("c", 0, 0.1, 0.2, None, "y", 4, [4]), ("c", 1, 0.00003125, 0.10003125, "five", "z", 5, [5])]


def recording(name, **more):
    file = next(file for file in FILES if file.startswith(name))
    return {"id": name, "sources": [{"type": "file", "channels": list(range(FILES[file][1])), "source": f"sounds/{file}"}], "sampling_rate": RATE,
            "num_samples": 2 * RATE, "duration": 2.0, **more}


def supervision(number, start=0.0):
    name, channel, _, duration, text, speaker, snr, tokens = CUTS[number]
    return {"id": f"s{number}", "recording_id": name, "start": start, "duration": duration, "channel": channel, **({} if text is None else {"text": text}),
            "speaker": speaker, "custom": {"snr": snr, "tokens": tokens}}


def cut(number, **more):
    name, channel, start, duration = CUTS[number][:4]
    return {"id": f"c{number}", "start": start, "duration": duration, "channel": channel, "supervisions": [supervision(number)], "recording": recording(name),
            "type": "MultiCut" if isinstance(channel, list) else "MonoCut", **more}


class SpeechTest(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.work / "sounds").mkdir()
        cls.whole = {}
        for seed, (file, (kind, channels)) in enumerate(FILES.items()):
            audio_test.write(cls.work / "sounds" / file, sound(seed, 2.0, RATE, channels), RATE, kind)
            cls.whole[file[0]] = audio_test.read(cls.work / "sounds" / file)[0]

    def write(self, name, rows):
        path = self.work / name
        path.parent.mkdir(exist_ok=True)
        with gzip.open(path, "wt") if name.endswith(".gz") else open(path, "w") as file:
            file.writelines(row + "\n" if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
        return path

    def lhotse(self, rows, name="cuts.jsonl", **more):
        return oa.from_lhotse(self.write(name, rows), root=self.work, **more)

    def check(self, data, parts):
        """parts: recording, channel (a list: all), first frame, frames"""
        found = {}
        with oa.Loader(data, oa.audio(RATE, 2.0, crop="begin"), 3, socket=self.socket, epochs=1, timeout=600) as loader:
            for batch in loader:
                for at, number in enumerate(batch.ids):
                    found[number] = np.array(batch["audio"][at]), int(batch["length"][at]), {
                        name: batch[name].strings()[at] for name in ("text", "speaker", "id") if name in batch}
        for number, (name, channel, first, frames) in enumerate(parts):
            wave = self.whole[name][first:first + frames]
            wave = (wave[:, 0] + wave[:, 1]) / np.float32(2) if isinstance(channel, list) else wave[:, channel]
            self.assertEqual(found[number][1], len(wave))
            np.testing.assert_array_equal(found[number][0][:len(wave)], wave, str(number))
        return [found[number][2] for number in range(len(parts))]

    PARTS = [(name, channel, math.floor(start * RATE + 0.5), math.floor(duration * RATE + 0.5)) for name, channel, start, duration, *_ in CUTS]

    def test_cuts(self):
        self.write("cuts.000.jsonl.gz", [cut(0), cut(1)])
        self.write("cuts.001.jsonl.gz", [cut(2), cut(3), cut(4)])
        data = oa.from_lhotse(str(self.work / "cuts.{000..001}.jsonl.gz"), root=self.work)
        fields = self.check(data, self.PARTS)
        self.assertEqual(fields, [{"text": each[4] or "", "speaker": each[5], "id": f"c{number}"} for number, each in enumerate(CUTS)])
        np.testing.assert_array_equal(oa.durations(data, socket="/nowhere"), [[frames / RATE, frames, RATE] for *_, frames in self.PARTS])

    def test_manifests_without_cuts(self):
        recordings = self.write("recordings.jsonl", [recording(name) for name in "abc"])
        supervisions = self.write("supervisions.jsonl", [supervision(number, CUTS[number][2]) for number in range(len(CUTS))])
        data = oa.from_lhotse(recordings=recordings, supervisions=supervisions, root=self.work)
        self.assertEqual([each["id"] for each in self.check(data, self.PARTS)], [f"s{number}" for number in range(len(CUTS))])
        data = oa.from_lhotse(recordings=recordings, root=self.work)
        self.assertEqual([(row["id"], row["audio"].channel) for row in data.dataset], [(name, None) for name in "abc"])

    def test_fields(self):
        data = self.lhotse([cut(number, custom={"grade": number / 2}) for number in range(len(CUTS))], fields=["id", "snr", "tokens", "grade"])
        rows = list(data.dataset)
        self.assertEqual([(row["id"], float(row["snr"]), row["tokens"].tolist(), float(row["grade"])) for row in rows],
                         [(f"c{number}", each[6], each[7], number / 2) for number, each in enumerate(CUTS)])
        self.assertEqual((rows[0]["snr"].dtype, rows[0]["tokens"].dtype, data.ragged["tokens"]), ("float32", "int64", 2))
        data = self.lhotse([cut(0)], transform=_made, ragged={"letters": 9})
        self.assertEqual(list(data.dataset[0]), ["audio", "letters"])

    def test_several_supervisions(self):
        row = cut(0, duration=2.0, supervisions=[supervision(0, 0.0), {**supervision(1, 0.5), "channel": 0}, {**supervision(3, 1.9), "channel": 0}])
        self.assertEqual(self.lhotse([row], fields="text").dataset[0]["text"], "one zwei ä")
        with self.assertRaisesRegex(oa.errors.DatasetError, "cuts.jsonl:1: cut c0 has supervisions with several values of 'speaker', such as 'x' and 'y': give trim=True"):
            self.lhotse([row])
        self.check(self.lhotse([row], trim=True), [("a", 0, 0, RATE), ("a", 0, 8000, 4000), ("a", 0, 30400, 1600)])

    def test_resampled(self):
        resampled = recording("a", sampling_rate=8000, num_samples=RATE, transforms=[{"name": "Resample", "kwargs": {"source_sampling_rate": RATE, "target_sampling_rate": 8000}}])
        self.check(self.lhotse([cut(0, start=0.25, recording=resampled)]), [("a", 0, 4000, RATE)])

    def test_what_is_refused(self):
        other = recording("b")
        for row, words in ((cut(0, type="MixedCut"), "cuts.jsonl:1: cut c0 is a MixedCut.*save_audios"),
                           (cut(0, recording=recording("a", transforms=[{"name": "Speed", "kwargs": {"factor": 0.9}}])), r"is made by Speed.*speeds=\(0.9"),
                           (cut(0, recording=recording("a", transforms=[{"name": "Tempo", "kwargs": {}}])), "is made by Tempo.*save_audios"),
                           *((cut(0, recording=recording("a", sources=[{"type": kind, "channels": [0], "source": "x"}])), f"a source of the type '{kind}': {why}")
                             for kind, why in (("command", "commands are never run"), ("url", "URLs are not"), ("shar", "its sound is in Lhotse Shar"))),
                           (cut(2, recording={**other, "sources": [{**other["sources"][0], "channels": [0]}, {**other["sources"][0], "channels": [1]}]}), "are in 2 files"),
                           (cut(2, recording={**other, "sources": [{**other["sources"][0], "channels": [0, 1, 2]}]}), "2 channels of the 3"),
                           ({key: value for key, value in cut(0, features={}).items() if key != "recording"}, "has no recording, but features"),
                           (recording("a"), "cuts.jsonl:1: a is a recording: give the file as recordings="), (supervision(0), "s0 is a supervision"),
                           (cut(0, start=-1), "cut c0: it begins at second -1 and has 1"), (cut(0, duration="x"), "cuts.jsonl:1: cut c0: duration is 'x'"), (cut(0, channel={}), "is none of Lhotse's"),
                           ("[1]", "cuts.jsonl:1: no JSON object"), ("{", "cuts.jsonl:1: no JSON"), (cut(0, recording=recording("a", sampling_rate=0)), "sampling_rate is 0"),
                           ({**cut(0), "supervisions": [{**supervision(0), "text": 3}]}, "text of a supervision is no text"),
                           *((cut(0, recording=recording("a", sources=[{"type": "file", "channels": [0], "source": path}])), words)
                             for path, words in (("a\0", "c0 is of 'a.x00', which is no name of a file"), ("", "is no file, but a folder, a pipe or a device")))):
            with self.subTest(words), self.assertRaisesRegex(oa.errors.DatasetError, words):
                self.lhotse([row])
        with self.assertRaisesRegex(oa.errors.DatasetError, "cuts.jsonl:1: cut c0 is none of Lhotse's: .*division"):
            none = recording("a", sampling_rate=0, transforms=[{"name": "Resample", "kwargs": {"source_sampling_rate": RATE}}])
            self.lhotse([{**cut(0, recording=none), "supervisions": [supervision(0)]}], trim=True)
        for value in (1e300, [1, 1e300], 10 ** 400, [0.5, 10 ** 400]):
            with self.subTest(value), self.assertRaisesRegex(oa.errors.DatasetError, "field x has a number that int64, or float32"):
                self.lhotse([cut(0, custom={"x": value})], fields="x")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "fields= names 'audio', which is the sound"):
            self.lhotse([cut(0, custom={"audio": "x"})], fields=["audio"])
        for fields, words in ((["nothing"], "field nothing of c0 is not there"), (["tags"], "field tags of c0 is \"{'a': 1}\"")):
            with self.subTest(fields), self.assertRaisesRegex(oa.errors.DatasetError, words):
                self.lhotse([cut(0, custom={"tags": {"a": 1}})], fields=fields)
        with self.assertRaisesRegex(oa.errors.MissingError, "sounds/a.wav cannot be read: .*It is the sound of c0; relative paths are relative to root="):
            oa.from_lhotse(self.write("cuts.jsonl", [cut(0)]), root=self.work / "elsewhere")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "manifests are read from .jsonl"):
            oa.from_lhotse(self.write("cuts.yaml", [cut(0)]))

    def kaldi(self, name, **files):
        for file, text in {"wav.scp": "".join(f"{file[0]} sounds/{file}\n" for file in FILES), **files}.items():
            self.write(f"{name}/{file}", [text[:-1]])
        return self.work / name

    def test_kaldi(self):
        segments = [("u0", "a", 0.5, 0.75, None), ("u1", "b", 0.25, 1.5, 1), ("u2", "c", 1.0, -1, 0), ("u3", "c", 0.1, 0.2, None)]
        folder = self.kaldi("parts", segments="".join(f"{name} {of} {start} {end}{'' if channel is None else ' AB'[:1] + 'AB'[channel]}\n" for name, of, start, end, channel in segments),
                            text="u0 one\nu1 zwei ä  b\nu2\nu3 vier\n", utt2spk="".join(f"{name} {of}\n" for name, of, *_ in segments), utt2category="u3 C\nu2 B\nu1 A\nu0 A\n")
        data = oa.from_kaldi(folder, root=self.work)
        fields = self.check(data, [("a", 0, 8000, 4000), ("b", 1, 4000, 20000), ("c", 0, 16000, 16000), ("c", [0, 1], 1600, 1600)])
        self.assertEqual(fields, [{"text": text, "speaker": of, "id": name} for text, (name, of, *_) in zip(("one", "zwei ä  b", "", "vier"), segments)])
        self.assertIsNone(data.durations)      # u2 has no end
        self.assertEqual([row["utt2category"] for row in oa.from_kaldi(folder, root=self.work, fields="utt2category").dataset], list("AABC"))
        folder = self.kaldi("whole", utt2dur="a 2.0\nb 2.0\nc 1.5\n")
        data = oa.from_kaldi(folder, root=self.work)
        self.assertEqual(oa.durations(data, socket="/nowhere")[:, 0].tolist(), [2, 2, 1.5])
        self.check(data, [("a", 0, 0, 32000), ("b", [0, 1], 0, 32000), ("c", [0, 1], 0, 32000)])

    def test_wenet(self):
        path = self.write("data.list", [{"key": "k0", "wav": "sounds/a.wav", "txt": "one"}, {"key": "k1", "wav": "sounds/b.flac", "txt": "two", "start": 0.5, "end": 1.0}])
        fields = self.check(oa.from_kaldi(path, root=self.work), [("a", 0, 0, 32000), ("b", [0, 1], 8000, 8000)])
        self.assertEqual(fields, [{"text": "one", "id": "k0"}, {"text": "two", "id": "k1"}])

    def test_what_is_refused_of_kaldi(self):
        for number, (files, words) in enumerate((({"wav.scp": "a sph2pipe -f wav a.sph |\n"}, "wav.scp, a: 'sph2pipe -f wav a.sph |' is a pipe, and commands are never run"),
                             ({"wav.scp": "a x.ark:17\n"}, "a place in an archive"), ({"wav.scp": "a s3://b/a.wav\n"}, "is a URL"), ({"wav.scp": "a x\na y\n"}, "wav.scp:2: a is there twice"),
                             ({"wav.scp": "a\n"}, "wav.scp, a names no file"), ({"wav.scp": "a x\0y\n"}, "a is of 'x.x00y', which is no name"), ({"utt2dur": "a -4\nb 1\nc 1\n"}, "a has a duration of -4 s"), ({"segments": "u a 1 2\nv d 1 2\n"}, "segments:2: wav.scp has no recording d"),
                             ({"segments": "u a 2 1\n"}, "segments:1: a part from second 2 to 1"), ({"segments": "u a nan 1\n"}, "segments:1: start is 'nan'"),
                             ({"segments": "u a 0 1e308\nv a 1e308\n"}, "is not utterance, recording, start and end"), ({"text": "a x\n"}, "text has no utterance b: .*fix_data_dir.sh"))):
            with self.subTest(words), self.assertRaisesRegex(oa.errors.DatasetError, words):
                oa.from_kaldi(self.kaldi(f"bad{number}", **files), root=self.work)
        for rows, words in ((["shard_000.tar"], "data.list:1: no JSON object, but 'shard_000.tar': a list of shards is read by from_tar"), ([{"key": "a"}], "has no key and wav"),
                            ([{"key": "a", "wav": "x", "start": 2, "end": 1}], "data.list:1: a part from second 2 to 1"),
                            ([{"key": "a", "wav": "x", "start": 10 ** 400}], "data.list:1: start is 10*: a number of seconds")):
            with self.subTest(words), self.assertRaisesRegex(oa.errors.DatasetError, words):
                oa.from_kaldi(self.write("data.list", rows), root=self.work)
        with self.assertRaisesRegex(oa.errors.MissingError, "has no wav.scp"):
            oa.from_kaldi(self.work / "sounds")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "fields= names '../x'"):
            oa.from_kaldi(self.kaldi("out"), root=self.work, fields=["../x"])


def _made(sample):
    return {"audio": sample["audio"], "letters": sorted(sample["text"].encode())}


if __name__ == "__main__":
    unittest.main()
