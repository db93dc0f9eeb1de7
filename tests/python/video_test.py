# SPDX-License-Identifier: Apache-2.0
"""Videos: a Loader over folders, shards and lists of them gives the frames that the pipeline names, each clip once an epoch, with
FFmpeg's pixels, also as PyAV and torchcodec have them where these are; all frames of a clip with one draw; with a seed the same ones again.

Files are made by the program ffmpeg. Each of their frames has its own number in it, in 4 x 3 squares; the first row's begin white
and end black, so that a flipped one is told, too."""

import importlib.util
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"video_test: skipped: {missing}")
    sys.exit(77)
if shutil.which("ffmpeg") is None:
    print("video_test: skipped: no ffmpeg")
    sys.exit(77)
if not os.path.exists(os.path.join(os.environ["ACCESS_LIBEXEC"], "access-video.so")):
    print("video_test: skipped: this build decodes no videos")
    sys.exit(77)

try:
    from torchcodec.decoders import VideoDecoder as CODEC
except (ImportError, RuntimeError, OSError):    # also without a FFmpeg that it takes
    CODEC = None

import oneaccess as oa
from oneaccess import transforms as t
from support import PoolCase

WIDTH, HEIGHT, SQUARE = 128, 96, 32
WORDS = ("run", "swim", "walk")
SIZE = t.CenterCrop((HEIGHT, WIDTH)), t.PILToTensor()
CODECS = {"mp4": ["libx264", "-g", "9"], "mov": ["libx264", "-g", "250", "-bf", "0"], "mkv": ["libx264", "-bf", "3"], "webm": ["libvpx-vp9", "-g", "20"],
          "avi": ["mpeg4", "-q:v", "4"], "ogv": ["libtheora", "-q:v", "8"], "m4v": ["mpeg4", "-q:v", "4", "-bf", "2"]}


def picture(number):
    """[height, width]"""
    bits = [number >> bit & 1 for bit in range(10)]
    squares = np.array([1, *bits[:2], 0, *bits[2:]], np.uint8).reshape(3, 4)
    return 16 + 200 * np.kron(squares, np.ones((SQUARE, SQUARE), np.uint8))


def numbers(clip):
    """Of its frames, [frames, 3, height, width], and whether they are flipped, which all are or none is."""
    squares = clip.astype(np.float32).mean(1).reshape(len(clip), 3, SQUARE, 4, SQUARE).mean((2, 4)) > 116
    is_flipped = bool(squares[0, 0, 3])
    found = []
    for square in squares[:, :, ::-1] if is_flipped else squares:
        white, *low, black = square[0]
        assert white and not black, squares
        found.append(sum(int(bit) << place for place, bit in enumerate([*low, *square[1], *square[2]])))
    return found, is_flipped


def write(path, count, rate="25", first=0):
    """A file of so many frames, from number `first` on."""
    codec, *options = CODECS[path.suffix[1:]]
    run = subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{HEIGHT}", "-r", rate, "-i", "-", "-pix_fmt",
                          "yuv420p", "-c:v", codec, *options, "-threads", "1", path], check=False, stderr=subprocess.PIPE,
                         input=b"".join(picture(first + number).tobytes() for number in range(count)))
    if run.returncode:
        raise unittest.SkipTest(f"this ffmpeg writes no {path.suffix}: {run.stderr.decode()[-200:]}")


def frames_of(path):
    """All frames by ffmpeg, [frames, height, width, 3]."""
    run = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-vsync", "passthrough", "-sws_flags", "bilinear+accurate_rnd+full_chroma_int+bitexact",
                          "-pix_fmt", "rgb24", "-f", "rawvideo", "-"], check=True, stdout=subprocess.PIPE)
    return np.frombuffer(run.stdout, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def sound_of(path):
    """All of it by ffmpeg, [frames, 2]."""
    run = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "f32le", "-"], check=True, stdout=subprocess.PIPE)
    return np.frombuffer(run.stdout, np.float32).reshape(-1, 2)


def expected(count, frames, step=1, start=None):
    """Numbers of a clip's frames (start None: the middle), and how many are no repetition."""
    start = max(count - ((frames - 1) * step + 1), 0) // 2 if start is None else start
    wanted = [start + step * place for place in range(frames)]
    return [min(number, count - 1) for number in wanted], sum(number < count for number in wanted)


class VideoTest(PoolCase):
    settings = {"memory": "1G", "chunk": 8}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sports, cls.files, cls.labels, cls.counts = cls.work / "sports", [], [], []
        for label, word in enumerate(WORDS):
            (cls.sports / word).mkdir(parents=True)
            for number, suffix in enumerate(("mp4", "mov", "mkv", "avi")):
                count = (60, 9, 33, 100)[(number + label) % 4]
                cls.add(cls.sports / word / f"{number}.{suffix}", label, count)
        cls.eval = t.Compose([t.Video(8, step=4, clip="center"), *SIZE])

    @classmethod
    def add(cls, path, label, count):
        write(path, count)
        cls.files.append(path)
        cls.labels.append(label)
        cls.counts.append(count)

    def loader(self, path, pipeline, **options):
        return oa.Loader(path, pipeline, **{"batch_size": 5, "socket": self.socket, "timeout": 600, "epochs": 1, **options})

    def epoch(self, loader):
        """{id: (frames' numbers, flipped, label, length)}; each id once."""
        found = {}
        for batch in loader:
            clips, labels, lengths = (np.asarray(array) for array in (batch.values() if isinstance(batch, dict) else batch))
            self.assertEqual((clips.ndim, clips.dtype, labels.dtype, lengths.dtype), (5, np.uint8, np.int64, np.int64))
            for at, number in enumerate(batch.ids):
                self.assertNotIn(number, found)
                found[number] = *numbers(clips[at]), int(labels[at]), int(lengths[at])
        return found

    def check(self, found, counts=None, labels=None, **how):
        counts, labels = counts or self.counts, labels or self.labels
        self.assertEqual(sorted(found), list(range(len(counts))))
        for number, (frames, is_flipped, label, length) in found.items():
            self.assertEqual((frames, length), expected(counts[number], **{"frames": 8, "step": 4, **how}), number)
            self.assertEqual((label, is_flipped), (labels[number], False))

    def test_folder(self):
        with self.loader(self.sports, self.eval) as loader:
            self.assertEqual(len(loader), -(-len(self.files) // 5))
            self.check(self.epoch(loader))
        with self.loader(self.sports, t.Compose([t.Video(5, clip="begin"), *SIZE])) as loader:
            self.check(self.epoch(loader), frames=5, step=1, start=0)

    def test_pixels(self):
        """Of all frames, as ffmpeg has them, but for roundings."""
        for path, count in zip(self.files[:4], self.counts):
            with self.subTest(path.suffix), self.loader(self.alone(path), t.Compose([t.Video(count, clip="begin"), *SIZE])) as loader:
                (clips, _, lengths), = loader
                self.assertEqual(np.asarray(lengths).tolist(), [count])
                theirs = frames_of(path).transpose(0, 3, 1, 2).astype(int)
                self.assertEqual(len(theirs), count)
                self.assertLessEqual(np.abs(np.asarray(clips)[0] - theirs).max(), 2)

    def others(self, read, most):
        """What another library has at the same numbers: no pixel is further away than that."""
        folder = self.work / "kinds-of-others"
        if not folder.exists():
            folder.mkdir()
            for suffix in CODECS:
                write(folder / f"a.{suffix}", 50)
        wanted = expected(50, 8, 6)[0]
        with self.loader(folder, t.Compose([t.Video(8, step=6, clip="center"), *SIZE]), shuffle=False, batch_size=1) as loader:
            for path, (clips, *_) in zip(sorted(folder.iterdir()), loader):
                with self.subTest(path.suffix):
                    self.assertEqual(numbers(np.asarray(clips)[0])[0], wanted)
                    self.assertLessEqual(np.abs(np.asarray(clips)[0].astype(int) - read(path, wanted)).max(), most)

    @unittest.skipUnless(importlib.util.find_spec("av"), "no PyAV")
    def test_as_pyav(self):
        import av

        def read(path, wanted):
            with av.open(str(path)) as file:
                frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
            return np.stack([frames[number] for number in wanted]).transpose(0, 3, 1, 2).astype(int)
        self.others(read, 1)

    @unittest.skipUnless(CODEC, "no torchcodec")
    def test_as_torchcodec(self):
        self.others(lambda path, wanted: CODEC(str(path)).get_frames_at(wanted).data.numpy().astype(int), 1)

    def alone(self, path):
        """A folder of it alone."""
        folder = self.work / f"alone-{path.suffix[1:]}"
        folder.mkdir(exist_ok=True)
        shutil.copy(path, folder)
        return folder

    def test_containers(self):
        """Of all kinds: the frames that are asked for, whatever stands between key frames."""
        folder = self.work / "kinds"
        folder.mkdir()
        for suffix in CODECS:
            write(folder / f"a.{suffix}", 50)
        for clip, start in (("begin", 0), ("center", None)):
            with self.loader(folder, t.Compose([t.Video(6, step=3, clip=clip), *SIZE])) as loader:
                self.check(self.epoch(loader), [50] * len(CODECS), [0] * len(CODECS), frames=6, step=3, start=start)

    def test_random(self):
        """Each clip lies in its file; one draw flips all of it; a seed gives the same ones again, another epoch others."""
        folder, drawn = self.work / "long", []
        folder.mkdir()
        for number in range(12):
            write(folder / f"{number:02}.mp4", 200)
        pipeline = t.Compose([t.Video(8, step=5), t.RandomHorizontalFlip(), *SIZE])
        for seed in (3, 3, 4):
            with self.loader(folder, pipeline, order="seeded", seed=seed, epochs=2) as loader:
                drawn.append([self.epoch(loader), self.epoch(loader)])
        for epochs in drawn:
            for found in epochs:
                self.assertEqual(sorted(found), list(range(12)))
                for frames, _, _, length in found.values():
                    self.assertEqual(frames, list(range(frames[0], frames[0] + 40, 5)))
                    self.assertTrue(0 <= frames[0] <= 200 - 36 and length == 8)
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertNotEqual(drawn[0][0], drawn[0][1])
        clips = [clip for epochs in drawn[1:] for found in epochs for clip in found.values()]
        self.assertGreater(len({frames[0] for frames, *_ in clips}), 25)
        self.assertTrue(8 < sum(is_flipped for _, is_flipped, *_ in clips) < 40)

    def test_seconds(self):
        """By fps, files of other rates give the frames that are shown at the same moments."""
        folder, rates = self.work / "rates", ("10", "25", "30000/1001", "60")
        folder.mkdir()
        for number, rate in enumerate(rates):
            write(folder / f"{number}.mp4", 90, rate)
        with self.loader(folder, t.Compose([t.Video(8, fps=10, clip="begin"), *SIZE])) as loader:
            found = self.epoch(loader)
        for number, rate in enumerate((10, 25, 30000 / 1001, 60)):
            wanted = [int(place / 10 * rate + 1e-3) for place in range(8)]
            self.assertEqual(found[number], (wanted, False, 0, 8), rate)

    def test_spread(self):
        with self.loader(self.sports, t.Compose([t.Video(4, clip="spread"), *SIZE])) as loader:
            found = self.epoch(loader)
        for number, count in enumerate(self.counts):
            self.assertEqual(found[number][0], [int((place + 0.5) * count / 4) for place in range(4)])

    def test_parts(self):
        """Frames that are shown first in [start, end), as PyAV's with such times; at the end of a part as of a video."""
        parts = [(path, count, start, end) for path, count in zip(self.files, self.counts) for start, end in ((0, 0.2), (0.12, 1.0), (0.3, 99)) if start < count / 25]
        (self.work / "parts.csv").write_text("path,start,end\n" + "".join(f"{path},{start},{end}\n" for path, _, start, end in parts))
        data = oa.from_csv(self.work / "parts.csv", ["path"], files="path", start="start", end="end")
        with self.loader(data, t.Compose([t.Video(8, step=2, clip="begin"), *SIZE])) as loader:
            found = {number: (*numbers(np.asarray(batch["path"][at])), int(batch["length"][at])) for batch in loader for at, number in enumerate(batch.ids)}
        self.assertEqual(sorted(found), list(range(len(parts))))
        for number, (path, count, start, end) in enumerate(parts):
            there = [frame for frame in range(count) if start - 1e-6 <= frame / 25 < end - 1e-6]
            self.assertEqual(found[number], ([there[min(2 * at, len(there) - 1)] for at in range(8)], False, min(8, -(-len(there) // 2))), (path, start, end))

    def test_recordings(self):
        """Clips that are spread over each video, and how long videos are."""
        lengths = oa.durations(str(self.sports), video=True, socket=self.socket)
        self.assertEqual(lengths[:, 1].tolist(), self.counts)
        np.testing.assert_allclose(lengths[:, [0, 2]], [[count / 25, 25] for count in self.counts], rtol=1e-3)
        data = oa.from_recordings(str(self.sports), 0.32, clips=3, durations=[count / 25 for count in self.counts], socket=self.socket)
        with self.loader(data, t.Compose([t.Video(4, step=2, clip="center"), *SIZE])) as loader:
            found = {}
            for batch in loader:
                for at, number in enumerate(batch.ids):
                    frames, is_flipped = numbers(np.asarray(batch["video"][at]))
                    self.assertEqual((int(batch["recording"][at]), is_flipped, int(batch["length"][at])), (number // 3, False, 4))
                    found[number] = frames[0], float(batch["start"][at])
        self.assertEqual(sorted(found), list(range(3 * len(self.files))))
        for number, (first, start) in found.items():
            free = self.counts[number // 3] / 25 - 0.32
            self.assertAlmostEqual(start, free * (number % 3) / 2)
            self.assertIn(first - int(np.ceil(start * 25 - 1e-4)), (0, 1))      # a window of 0.32 s has eight frames, of which the clip takes seven

    def test_presets(self):
        """What oa.video() gives, of both kinds, and where its numbers lie."""
        for pipeline, shape in ((oa.video(4, 64, step=2), (4, 3, 64, 64)), (oa.video(4, 56, fps=10, resize=(64, 86)), (4, 3, 56, 56)),
                                (oa.video(4, (48, 64), train=False, dtype="float16"), (4, 3, 48, 64))):
            with self.loader(self.sports, pipeline) as loader:
                for clips, labels, lengths in loader:
                    self.assertEqual(np.asarray(clips).shape[1:], shape)
                    self.assertEqual(len(labels), len(lengths))
                    self.assertGreater(np.asarray(clips, np.float32).max(), 1.5)
        with self.loader(self.sports, oa.video(4, 64, train=False, dtype="uint8"), shuffle=False) as loader, \
                self.loader(self.sports, oa.video(4, 64, train=False), shuffle=False) as other:
            for (raw, *_), (clips, *_) in zip(loader, other):
                mean, std = (np.array(each, np.float32)[:, None, None] for each in (t.IMAGENET_MEAN, t.IMAGENET_STD))
                np.testing.assert_allclose(np.asarray(clips), (np.asarray(raw) / np.float32(255) - mean) / std, atol=1e-5)

    def shard(self, name, *more):
        """WebDataset's: a sample's video beside its label and its text."""
        folder = self.work / name
        folder.mkdir()
        for shard in range(2):
            with tarfile.open(folder / f"{shard:03}.tar", "w") as tar:
                for number in range(shard * 6, shard * 6 + 6):
                    path = self.files[number]
                    for suffix, data in (("txt", f"words of {number}".encode()), (path.suffix[1:], path.read_bytes()), ("cls", b"%d" % self.labels[number]), *more):
                        member = tarfile.TarInfo(f"{number:05}.{suffix}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
        return folder

    def test_shards(self):
        with self.loader(self.shard("shards", ("json", b"{}")), self.eval) as loader:
            self.check(self.epoch(loader))

    def test_captions(self):
        """Text beside the clip, and the class."""
        folder, found = self.shard("captions"), {}
        data = oa.from_tar(str(folder / "{000..001}.tar"), {"video": "mp4;mov;mkv;avi", "cls": "cls", "text": "txt"}, ragged={"text": 40})
        with self.loader(data, self.eval) as loader:
            for batch in loader:
                self.assertEqual(list(batch), ["video", "cls", "text", "length"])
                for at, number in enumerate(batch.ids):
                    found[number] = *numbers(np.asarray(batch["video"][at])), int(batch["cls"][at]), int(batch["length"][at])
                    self.assertEqual(batch["text"].strings()[at], f"words of {number}")
        self.check(found)

    def test_wrapped(self):
        """Of a data set that is a program: tuples have the lengths behind them."""
        data = [(path.read_bytes(), label) for path, label in zip(self.files, self.labels)]
        with self.loader(oa.wrap(data, name="clips", room=1 << 20), self.eval) as loader:
            self.check(self.epoch(loader))

    @unittest.skipUnless(importlib.util.find_spec("datasets"), "no datasets")
    def test_hugging_face(self):
        """Files by their paths, and a Parquet file that has them."""
        import datasets
        features = datasets.Features({"clip": datasets.Video(), "label": datasets.ClassLabel(names=WORDS), "text": datasets.Value("string")})
        rows = {"clip": [str(path) for path in self.files], "label": self.labels, "text": [f"words of {number}" for number in range(12)]}
        dataset = datasets.Dataset.from_dict(rows, features)
        with self.loader(oa.from_hf(dataset, ["clip", "label"]), self.eval) as loader:
            self.check(self.epoch(loader))
        with self.loader(oa.from_hf(dataset), self.eval) as loader:
            batch = next(iter(loader))
            self.assertEqual(list(batch), ["clip", "label", "text", "length"])
            self.assertEqual(batch["text"].strings(), [f"words of {number}" for number in batch.ids])

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "no pyarrow")
    def test_parquet(self):
        import pyarrow as pa
        import pyarrow.parquet
        pa.parquet.write_table(pa.table({"video": [path.read_bytes() for path in self.files], "label": self.labels}), self.work / "clips.parquet",
                               row_group_size=4)
        with self.loader(self.work / "clips.parquet", self.eval) as loader:
            self.check(self.epoch(loader))

    def test_lists(self):
        order = [number * 5 % 12 for number in range(12)]
        names = [f"sports/{WORDS[self.labels[number]]}/{self.files[number].name}" for number in order]
        (self.work / "list.csv").write_text("path,label\n" + "".join(f"{name},{self.labels[number]}\n" for name, number in zip(names, order)))
        (self.work / "list.jsonl").write_text("".join(json.dumps({"video": name, "text": "words", "label": self.labels[number]}) + "\n"
                                                     for name, number in zip(names, order)))
        for name in ("list.csv", "list.jsonl"):
            with self.subTest(name), self.loader(self.work / name, self.eval) as loader:
                self.check(self.epoch(loader), [self.counts[number] for number in order], [self.labels[number] for number in order])

    def test_jobs_beside_each_other(self):
        """Two jobs of one pipeline, and one of another, have all; a state goes on where it was."""
        with self.loader(self.sports, oa.video(4, 64, step=2)) as one, self.loader(self.sports, oa.video(4, 64, step=2)) as other, \
                self.loader(self.sports, oa.video(4, 32, step=2)) as small:
            for loader in (one, other, small):
                self.assertEqual(sorted(number for batch in loader for number in batch.ids), list(range(12)))
        with self.loader(self.sports, self.eval) as loader:
            first = next(iter(loader))
            state = loader.state_dict()
        with self.loader(self.sports, self.eval, state=state) as loader:
            rest = self.epoch(loader)
        self.assertEqual(sorted([*first.ids, *rest]), list(range(12)))

    def test_views(self):
        """Two views of the same frames, each with draws of its own."""
        views = oa.views(t.Compose([t.Video(4, step=3), t.RandomHorizontalFlip(), *SIZE]), t.Compose([t.RandomHorizontalFlip(), *SIZE]))
        with self.loader(self.sports, views) as loader:
            both = []
            for batch in loader:
                self.assertEqual(list(batch), ["video", "label", "length", "video2"])
                for one, other in zip(np.asarray(batch["video"]), np.asarray(batch["video2"])):
                    self.assertEqual(numbers(one)[0], numbers(other)[0])
                    both.append((numbers(one)[1], numbers(other)[1]))
        self.assertEqual(len(both), 12)
        with self.loader(self.sports, oa.views(oa.video(4, 64), oa.video(4, 32))) as loader:
            batch = next(iter(loader))
            self.assertEqual([np.asarray(batch[name]).shape[1:] for name in ("video", "video2")], [(4, 3, 64, 64), (4, 3, 32, 32)])

    def test_bad_files(self):
        folder = self.work / "bad"
        folder.mkdir()
        good = self.files[0].read_bytes()
        damaged, at = bytearray(good), good.index(b"mdat") + 1000     # behind what x264 says of itself
        damaged[at:at + 400] = bytes(400)
        (folder / "a-good.mp4").write_bytes(good)
        (folder / "b-cut.mp4").write_bytes(good[:len(good) // 3])
        (folder / "c-text.mkv").write_bytes(b"this is no video at all")
        (folder / "d-damaged.mp4").write_bytes(damaged)
        (folder / "e-empty.webm").write_bytes(b"")
        with self.loader(folder, t.Compose([t.Video(8, step=4, clip="begin"), *SIZE]), bad="skip") as loader:
            self.assertEqual(list(self.epoch(loader)), [0])
            errors = {os.path.basename(bad.path): bad.error for bad in loader.bad_samples}
        self.assertEqual(sorted(errors), ["b-cut.mp4", "c-text.mkv", "d-damaged.mp4", "e-empty.webm"])
        for name, error in errors.items():
            self.assertNotRegex(error, "worker|signal|killed|died|code", name)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(oa.errors.TransformError, "give one of them"):
            oa.video(8, step=2, fps=5)
        for fps in (float("nan"), float("inf"), np.float64("nan")):
            with self.assertRaisesRegex(oa.errors.TransformError, "video: fps is (nan|inf)"):
                t.Video(8, fps=fps)
        for pipeline, words in ((t.Compose([t.Video(8), t.PILToTensor()]), "add .*center_crop|resize"),
                                (t.Compose([t.Video(8, step=2, fps=5), *SIZE]), "give one of them"),
                                (t.Compose([t.Video(8, clip="spread", step=2), *SIZE]), "spread is of the whole video"),
                                (t.Compose([t.Video(5000), *SIZE]), "frames .*1 to 1024"),
                                (t.Compose([t.Video(8), t.CenterCrop(32), t.ToTensor(), t.MixUp(num_classes=3)]), "mixup")):
            with self.assertRaisesRegex(oa.Error, words):
                self.loader(self.sports, pipeline)

    def test_one_for_the_other(self):
        """A video that is taken for a picture or a sound, and a picture for a video."""
        with self.loader(self.sports, oa.imagenet_eval(64)) as loader, self.assertRaisesRegex(oa.Error, r"a video \(.*\), which the op video decodes: oa.video\("):
            list(loader)
        with self.loader(self.data, self.eval) as loader, self.assertRaisesRegex(oa.Error, "sample .*decode: a picture, which the op decode decodes: oa.imagenet_train\\("):
            list(loader)
        with self.loader(self.sports, oa.audio(16000, 1.0)) as loader, self.assertRaisesRegex(oa.Error, "sample .*: a video without sound"):
            list(loader)

    def test_sounds(self):
        """What oa.audio() gives of class folders of videos is what ffmpeg decodes of them, all of it and from the middle."""
        folder, expected = self.work / "talks", []
        for number, (suffix, rate, codec) in enumerate([("mp4", 16000, "aac -aac_pns 0"), ("mkv", 16000, "libmp3lame"), ("webm", 48000, "libopus"),
                                                        ("mov", 16000, "pcm_s16le"), ("avi", 16000, "libmp3lame"), ("ogv", 16000, "libvorbis")]):
            path = folder / WORDS[number % 3] / f"{number}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            silent = self.work / f"silent.{suffix}"
            write(silent, 40)
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", silent, "-f", "lavfi", "-i", f"aevalsrc=0.3*sin(2000*t*t)|0.3*sin({number + 3}00*t):s={rate}:d=1.5",
                            "-c:v", "copy", "-c:a", *codec.split(), path], check=True)
            expected.append(sound_of(path))
        order = sorted(range(6), key=lambda number: (WORDS[number % 3], number))
        for crop in ("begin", "center"):
            with self.loader(folder, oa.audio(16000, 1.0, channels=2, crop=crop)) as loader:
                found = {number: (np.array(batch[0][at]), int(batch[2][at])) for batch in loader for at, number in enumerate(batch.ids)}
            self.assertEqual(sorted(found), list(range(6)))
            for number, (wave, length) in found.items():
                whole = expected[order[number]]
                if order[number] == 2:      # of another rate: what is resampled is the part
                    self.assertLess(abs(length - 16000), 2)
                    continue
                start = (len(whole) - 16000) // 2 if crop == "center" else 0
                self.assertEqual(length, 16000)
                np.testing.assert_allclose(wave.T, whole[start:start + 16000], atol=1e-6 if crop == "begin" else 1e-4)

    def test_sounds_beside_clips(self):
        """Frames and their sound: a picture's number is its time, so where the sound must begin is known."""
        folder, whole = self.work / "spoken", []
        (folder / "run").mkdir(parents=True)
        for number in range(4):
            path, silent = folder / "run" / f"{number}.mp4", self.work / "unspoken.mp4"
            write(silent, 100)
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", silent, "-f", "lavfi", "-i", f"aevalsrc=0.3*sin(2000*t*t)|0.3*sin({number + 3}00*t):s=16000:d=4",
                            "-c:v", "copy", *(["-an"] if number == 3 else ["-c:a", "aac", "-aac_pns", "0"]), path], check=True)
            whole.append(sound_of(path).mean(1) if number < 3 else np.zeros(64000, np.float32))
        pipeline = oa.views(t.Compose([t.Video(5, fps=5), *SIZE]), oa.audio(16000, 1.0))
        with self.loader(folder, pipeline, epochs=2, batch_size=2) as loader:
            for batch in loader:
                self.assertEqual(list(batch), ["video", "label", "length", "audio", "audio_length"])
                for at, number in enumerate(batch.ids):
                    first = numbers(np.asarray(batch["video"][at]))[0][0]
                    wave = whole[number][first * 640:first * 640 + 16000]
                    self.assertEqual(int(batch["audio_length"][at]), 0 if number == 3 else len(wave))
                    np.testing.assert_allclose(batch["audio"][at], np.pad(wave, (0, 16000 - len(wave))), atol=1e-4)
        with self.loader(folder, oa.views(oa.video(4, 32, fps=8), oa.video(4, 16, fps=8), t.Compose([oa.audio(16000, 0.5), t.MelSpectrogram(400, n_mels=20)]))) as loader:
            batch = next(iter(loader))
            self.assertEqual([np.asarray(batch[name]).shape for name in ("video2", "audio", "audio_length")], [(4, 4, 3, 16, 16), (4, 20, 41), (4,)])
        with self.assertRaisesRegex(oa.Error, "the sound begins when the clip does"):
            self.loader(folder, oa.views(oa.video(4, 32), oa.audio(16000, 0.5, crop="center")))

    def test_others_go_first(self):
        """Where there are pictures or sounds, videos beside them are no samples."""
        folder = self.work / "mixed"
        folder.mkdir()
        shutil.copy(next(pathlib.Path(self.data).rglob("*.jpg")), folder / "a.jpg")
        shutil.copy(self.files[0], folder / "b.mp4")
        with self.loader(folder, oa.imagenet_eval(64)) as loader:
            self.assertEqual([tuple(batch.ids) for batch in loader], [(0,)])

    def test_large_files(self):
        """Of 64 MB each, more of them than there is room at once; one that has no room is told so."""
        folder = self.work / "large"
        folder.mkdir()
        good = self.files[0].read_bytes()
        for number, bytes_ in enumerate([64 << 20] * 8 + [400 << 20]):
            with open(folder / f"{number}.mp4", "wb") as file:
                file.write(good + struct.pack(">I4s", bytes_ - len(good), b"free"))
                file.truncate(bytes_)
        with self.loader(folder, self.eval, bad="skip") as loader:
            self.check(self.epoch(loader), [self.counts[0]] * 8, [0] * 8)
            bad, = loader.bad_samples
            self.assertEqual(os.path.basename(bad.path), "8.mp4")
            self.assertRegex(bad.error, "419430400 bytes, the arena has [0-9]+; raise arena")


if __name__ == "__main__":
    unittest.main()
