# SPDX-License-Identifier: Apache-2.0
"""Samples of several media: views of files of their own, from shards, tables and wrapped data sets. What each view gives is what a Loader of that
medium alone gives; draws, and which pipelines meet, are tests/pipeline/side_test.c's."""

import io
import json
import sys
import tarfile
import unittest
import wave

try:
    import numpy as np
except ImportError as missing:
    print(f"media_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import PipelineError, SampleError, TransformError
from shard_files import write_mds
from support import PoolCase

COUNT, RATE = 24, 8000


def picture(index, side=20):
    pixels = (np.arange(side * (side + 2) * 3) * 7 + 31 * index) % 256
    return b"P6\n%d %d\n255\n" % (side + 2, side) + pixels.astype(np.uint8).tobytes()


def sound(index):
    file = io.BytesIO()
    with wave.open(file, "wb") as to:
        to.setparams((1, 2, RATE, 0, "NONE", ""))
        to.writeframes((np.arange(300 + 40 * (index % 5)) * 17 + 1000 * index).astype("<i2").tobytes())
    return file.getvalue()


def cloud(index):
    at = np.arange(30 + 3 * (index % 4), dtype=np.float32)[:, None]
    return np.hstack([at + 100 * index, at % 13 - 6, at / 64])


def points(index):
    return "".join(" ".join(map(repr, row)) + "\n" for row in cloud(index).tolist()).encode()


def text(index):
    return f"what {index} says"


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def cube(index, which):
    return ((np.arange(8 * 9 * 10) * (which + 3) + index) % 200).astype(np.float32).reshape(8, 9, 10)


FILES = {"ppm": picture, "wav": sound, "xyz": points, "txt": lambda index: text(index).encode(), "cls": lambda index: b"%d" % (index % 3)}
FIELDS = {"image": "ppm", "label": "cls", "sound": "wav", "points": "xyz", "text": "txt"}
SEEN = oa.Compose([t.CenterCrop(12), t.ToTensor()])
HEARD, FELT = oa.audio(RATE, frames=200, crop="center"), oa.point_clouds(16, train=False)
ALL = oa.views(SEEN, sound=HEARD, points=FELT)


class Samples:
    """A wrapped data set; arrays and bytes are files."""

    def __init__(self, of_arrays=False):
        self.of_arrays = of_arrays

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"image": picture(index), "label": index % 3, "sound": sound(index), "points": cloud(index) if self.of_arrays else points(index),
                "text": text(index)}


class Scans:
    """Two volumes of one patient, labels, and numbers of a table."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"flair": npy(cube(index, 0)), "t2": npy(cube(index, 1)), "labels": cube(index, 2).astype(np.uint8), "age": np.float32(index)}


class MediaTest(PoolCase):
    settings = {"memory": "1G"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tars = cls.write("all", FILES)
        folder = cls.work / "files"
        folder.mkdir()
        rows = []
        for index in range(COUNT):
            for suffix in ("ppm", "wav", "xyz"):
                (folder / f"{index}.{suffix}").write_bytes(FILES[suffix](index))
            rows.append({"image": f"{index}.ppm", "sound": f"{index}.wav", "points": f"{index}.xyz", "text": text(index), "label": index % 3})
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        cls.rows = folder / "rows.jsonl"
        cls.alone = {name: cls.alone_of(suffix, pipeline) for name, suffix, pipeline in
                     (("image", "ppm", SEEN), ("sound", "wav", HEARD), ("points", "xyz", FELT))}

    @classmethod
    def write(cls, name, files, per=8):
        folder = cls.work / name
        folder.mkdir()
        for shard in range(COUNT // per):
            with tarfile.open(folder / f"x-{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for index in range(shard * per, shard * per + per):
                    for suffix, make in files.items():
                        member = tarfile.TarInfo(f"{index:04}.{suffix}")
                        data = make(index)
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
        return f"{folder}/x-{{0..{COUNT // per - 1}}}.tar"

    @classmethod
    def alone_of(cls, suffix, pipeline):
        """{id: what a Loader of that medium alone gives, without labels}."""
        folder = cls.work / f"alone-{suffix}" / "all"
        folder.mkdir(parents=True)
        for index in range(COUNT):
            (folder / f"{index:04}.{suffix}").write_bytes(FILES[suffix](index))
        made = {}
        with oa.Loader(str(folder.parent), pipeline, batch_size=5, as_="numpy", shuffle=False, epochs=1, socket=cls.socket, timeout=600) as loader:
            for batch in loader:
                values = list(batch.values()) if isinstance(batch, dict) else list(batch)
                del values[1]
                for number, *sample in zip(batch.ids, *values):
                    made[number] = [np.array(value) for value in sample]
        return made

    def check(self, dataset, pipeline=ALL, texts=True, **options):
        seen = []
        with self.open(dataset, pipeline, **{"batch_size": 5, "as_": "numpy", "epochs": 1, **options}) as loader:
            for batch in loader:
                seen += batch.ids.tolist()
                for place, index in enumerate(batch.ids):
                    self.same(batch, place, index, texts)
        self.assertEqual(sorted(seen), list(range(COUNT)))
        return seen

    def same(self, batch, place, index, texts=True):
        for name, wanted in self.alone.items():
            got = [batch[field][place] for field in (name, f"{name}_length")[:len(wanted[index])]]
            for one, other in zip(got, wanted[index]):
                np.testing.assert_array_equal(one, other)
                self.assertEqual(np.asarray(one).dtype, other.dtype)
        if texts:
            self.assertEqual(batch["text"].strings()[place], text(index))
            self.assertEqual(batch["label"][place], index % 3)

    def tar(self, **options):
        return oa.from_tar(self.tars, FIELDS, ragged={"text": 40}, **options)

    def test_tar_shards(self):
        data = self.tar()
        self.assertIsNotNone(data.beside({"sound": "audio", "points": "cloud"}).direct(True))      # accessd reads them itself
        self.check(data)
        self.assertEqual(self.check(data, shuffle=False), list(range(COUNT)))

    def test_a_pool(self):
        self.check(self.tar(room=1 << 20, workers=2))

    def test_wrapped(self):
        for of_arrays in False, True:
            self.check(oa.wrap(Samples(of_arrays), ragged={"text": 40}, workers=2, random=False))

    def test_jsonl(self):
        self.check(oa.from_jsonl(self.rows, ["image", "label", "sound", "points", "text"], files=["image", "sound", "points"], ragged={"text": 40}, workers=2))

    def test_mds(self):
        folder = self.work / "mds"
        write_mds(folder, {"image": "bytes", "label": "int", "points": "bytes", "sound": "bytes", "text": "str"},
                  [[{"image": picture(index), "label": (index % 3).to_bytes(8, "little"), "points": points(index), "sound": sound(index),
                     "text": text(index).encode()} for index in range(first, first + 12)] for first in (0, 12)])
        self.check(oa.from_mds(folder, {name: name for name in FIELDS}, ragged={"text": 40}))

    def test_parquet(self):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as missing:
            self.skipTest(str(missing))
        path = self.work / "rows.parquet"
        parquet.write_table(pyarrow.table({"image": [picture(index) for index in range(COUNT)], "label": [index % 3 for index in range(COUNT)],
                                           "sound": [sound(index) for index in range(COUNT)], "points": [points(index) for index in range(COUNT)],
                                           "text": [text(index) for index in range(COUNT)]}), path, row_group_size=8)
        self.check(oa.from_parquet(path, list(FIELDS), ragged={"text": 40}, workers=2))

    def test_another_medium_first(self):
        fields = {"sound": "wav", "image": "ppm", "points": "xyz"}
        data = oa.from_tar(self.tars, fields)
        pipeline = oa.views(HEARD, image=SEEN, points=FELT)
        with self.open(data, pipeline, batch_size=5, as_="numpy", epochs=1) as loader:
            for batch in loader:
                self.assertEqual(set(batch), {"sound", "length", "image", "points", "points_length"})
                for place, index in enumerate(batch.ids):
                    np.testing.assert_array_equal(batch["sound"][place], self.alone["sound"][index][0])
                    np.testing.assert_array_equal(batch["image"][place], self.alone["image"][index][0])
                    np.testing.assert_array_equal(batch["points"][place], self.alone["points"][index][0])

    def test_views_of_the_picture_too(self):
        with self.assertRaisesRegex(TransformError, "field points.* a view of the field's name"):       # bytes that no view is of
            self.open(self.tar(), oa.views(SEEN, SEEN, sound=HEARD), epochs=1)
        data = oa.from_tar(self.tars, {"image": "ppm", "sound": "wav"})
        with self.open(data, oa.views(SEEN, SEEN, sound=HEARD, small=oa.Compose([t.CenterCrop(4), t.ToTensor()])), batch_size=5, as_="numpy", epochs=1) as loader:
            for batch in loader:
                for place, index in enumerate(batch.ids):
                    np.testing.assert_array_equal(batch["image2"][place], self.alone["image"][index][0])
                    np.testing.assert_array_equal(batch["small"][place], self.alone["image"][index][0][:, 4:8, 4:8])
                    np.testing.assert_array_equal(batch["sound"][place], self.alone["sound"][index][0])

    def test_volumes(self):
        crop = oa.Compose([t.Volume(), t.RandomCrop3d(6), t.RandomFlip3d(axes=(0, 1, 2))])
        data = oa.wrap(Scans(), images="t2", masks="labels", random=False, workers=2)
        for batch in self.open(data, crop, batch_size=4, as_="numpy", epochs=1):
            for place, index in enumerate(batch.ids):
                flair, t2, labels = (batch[name][place].reshape(6, 6, 6) for name in ("flair", "t2", "labels"))
                whole = cube(index, 0)
                found = [place for place in np.ndindex(3, 4, 5) for axes in np.ndindex(2, 2, 2)
                         if np.array_equal(np.flip(whole[tuple(slice(at, at + 6) for at in place)], [a for a in range(3) if axes[a]]), flair)
                         and np.array_equal(np.flip(cube(index, 1)[tuple(slice(at, at + 6) for at in place)], [a for a in range(3) if axes[a]]), t2)
                         and np.array_equal(np.flip(cube(index, 2)[tuple(slice(at, at + 6) for at in place)], [a for a in range(3) if axes[a]]), labels)]
                self.assertTrue(found)
                self.assertEqual(batch["age"][place], index)
        other = oa.Compose([t.Volume(), t.CenterCrop3d(4)])
        data = oa.wrap(Scans(), masks="labels", random=False, workers=2)
        for batch in self.open(data, oa.views(crop, t2=other), batch_size=4, as_="numpy", epochs=1):
            for place, index in enumerate(batch.ids):
                np.testing.assert_array_equal(batch["t2"][place], cube(index, 1)[None, 2:6, 2:6, 3:7])

    def test_resumed(self):
        pipeline = oa.views(oa.Compose([t.RandomCrop(8), t.ToTensor()]), sound=oa.audio(RATE, frames=100), points=oa.point_clouds(10))
        options = {"batch_size": 5, "as_": "numpy", "order": "seeded", "seed": 3}
        with self.open(self.tar(), pipeline, epochs=1, **options) as loader:
            whole = [{name: np.array(batch[name]) for name in ("image", "sound", "points")} for batch in loader]
        with self.open(self.tar(), pipeline, **options) as loader:
            batches = iter(loader)
            for _ in range(2):
                next(batches)
            state = loader.state_dict()
            del batches
        with self.open(self.tar(), pipeline, state=state, epochs=1, **options) as loader:
            rest = [{name: np.array(batch[name]) for name in ("image", "sound", "points")} for batch in loader]
        self.assertEqual(len(rest), len(whole) - 2)
        for one, other in zip(rest, whole[2:]):
            for name, values in one.items():
                np.testing.assert_array_equal(values, other[name])

    def test_jobs_with_other_ops_share(self):
        first, other = self.tar(), self.tar()
        louder = oa.views(SEEN, sound=oa.Compose([HEARD, t.PolarityInversion(1)]), points=FELT)
        one = self.open(first, ALL, batch_size=4, as_="numpy", epochs=1)
        two = self.open(other, louder, batch_size=4, as_="numpy", epochs=1)
        seen = [[], []]
        for batch in one:
            seen[0] += batch.ids.tolist()
        for batch in two:
            seen[1] += batch.ids.tolist()
            for place, index in enumerate(batch.ids):
                np.testing.assert_array_equal(batch["sound"][place], -self.alone["sound"][index][0])
                np.testing.assert_array_equal(batch["image"][place], self.alone["image"][index][0])
        self.assertEqual([sorted(ids) for ids in seen], [list(range(COUNT))] * 2)

    def test_bad_samples(self):
        tars = self.write("bad", {**FILES, "wav": lambda index: b"no sound" if index == 5 else sound(index)})
        data = oa.from_tar(tars, FIELDS, ragged={"text": 40})
        with self.open(data, ALL, batch_size=4, as_="numpy", epochs=1, bad="skip") as loader:
            ids = sorted(number for batch in loader for number in batch.ids.tolist())
            self.assertEqual(ids, [index for index in range(COUNT) if index != 5])
            self.assertIn("sound: ", str(loader.bad_samples))
        with self.open(data, ALL, batch_size=4, as_="numpy", epochs=1) as loader, self.assertRaisesRegex(SampleError, "sound: "):
            list(loader)

    def test_a_sample_without_a_file(self):
        folder = self.work / "lacking"
        folder.mkdir()
        with tarfile.open(folder / "x-0.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for index in range(6):
                for suffix, make in FILES.items():
                    if index == 3 and suffix == "xyz":
                        continue
                    member = tarfile.TarInfo(f"{index:04}.{suffix}")
                    member.size = len(make(index))
                    tar.addfile(member, io.BytesIO(make(index)))
        data = oa.from_tar(folder / "x-0.tar", FIELDS, ragged={"text": 40})
        with self.open(data, ALL, batch_size=2, as_="numpy", epochs=1) as loader, self.assertRaisesRegex(SampleError, "no file for xyz"):
            list(loader)

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(TransformError, "name it as its field"):
            oa.views(SEEN, HEARD)
        with self.assertRaisesRegex(PipelineError, "first op must be video"):
            self.open(self.tar(), oa.views(SEEN, points=FELT, sound=HEARD, noise=HEARD), epochs=1)
        with self.assertRaisesRegex(TransformError, "field text of the sample is a text"):
            self.open(self.tar(), oa.views(SEEN, points=FELT, sound=HEARD, text=HEARD), epochs=1)


if __name__ == "__main__":
    unittest.main()
