# SPDX-License-Identifier: Apache-2.0
"""Sizes of pictures from their heads, batches of one aspect ratio each, and folds."""

import collections
import io
import json
import subprocess
import sys
import tarfile
import unittest
import warnings

import numpy as np
from PIL import Image

import oneaccess as oa
from oneaccess import ratios
from oneaccess.errors import ArgumentError, Error
from support import SAMPLES, DaemonCase, PoolCase

SIZES = [(16, 16), (16, 32), (32, 16), (16, 64)]
COUNTS = {(20, 20): 50, (20, 41): 33, (40, 19): 7}
TURNED = 6      # EXIF's orientation: by 90 degrees


def pipeline(height, width):
    return oa.Compose([oa.transforms.Resize((height, width))])


def pictures_of(shapes):
    """Files of many formats, some of which EXIF turns: (name, bytes, height, width, is turned)."""
    draw = np.random.RandomState(0)
    for number, (height, width) in enumerate(shapes):
        ext, file, said = ("jpg", "png", "webp", "bmp", "tif", "ppm")[number % 6], io.BytesIO(), {}
        if ext == "jpg" and number % 4 == 0:
            exif = Image.Exif()
            exif[0x0112] = TURNED
            said["exif"] = exif
        picture = Image.fromarray(draw.randint(0, 255, (height, width, 3), dtype=np.uint8))
        picture.save(file, {"jpg": "jpeg", "tif": "tiff"}.get(ext, ext), **said)
        yield f"{number:04}.{ext}", file.getvalue(), height, width, bool(said)


class Case(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shapes = [shape for shape, count in COUNTS.items() for _ in range(count)]
        np.random.RandomState(1).shuffle(shapes)
        folder = cls.work / "shapes" / "all"
        folder.mkdir(parents=True)
        cls.pictures = list(pictures_of(shapes))
        for name, data, *_ in cls.pictures:
            (folder / name).write_bytes(data)
        cls.shapes = str(folder.parent)
        cls.wanted = np.array([(height, width) for _, _, height, width, _ in cls.pictures], np.int32)


class SizesTest(Case):
    def test_heads_say_them(self):
        sizes = oa.image_sizes(self.shapes, socket=self.socket)
        self.assertEqual(sizes.dtype, np.int32)
        np.testing.assert_array_equal(sizes, self.wanted)
        turned = [(width, height) if is_turned else (height, width) for _, _, height, width, is_turned in self.pictures]
        self.assertNotEqual(turned, self.wanted.tolist())
        np.testing.assert_array_equal(oa.image_sizes(self.shapes, exif=True, socket=self.socket), turned)

    def test_no_pixel_is_decoded(self):
        """A file that ends behind its head has a size, and no picture."""
        folder = self.work / "cut" / "all"
        folder.mkdir(parents=True)
        cut = [picture for picture in self.pictures if picture[0].endswith(("bmp", "ppm", "png"))][:9]
        for name, data, *_ in cut:
            (folder / name).write_bytes(data[:len(data) // 2])
        np.testing.assert_array_equal(oa.image_sizes(folder.parent, socket=self.socket), [(height, width) for _, _, height, width, _ in cut])
        with self.assertRaises(Error):
            list(oa.Loader(folder.parent, pipeline(8, 8), 9, socket=self.socket, as_="numpy"))

    def test_bad_ones_have_none(self):
        folder = self.work / "bad" / "all"
        folder.mkdir(parents=True)
        for name, data, *_ in self.pictures[:4]:
            (folder / name).write_bytes(data)
        for name in ("0001b.jpg", "9999.png"):
            (folder / name).write_bytes(b"no picture")
        sizes = oa.image_sizes(folder.parent, socket=self.socket).tolist()
        wanted = self.wanted[:4].tolist()
        self.assertEqual(sizes, [*wanted[:2], [0, 0], *wanted[2:], [0, 0]])
        with self.assertWarnsRegex(UserWarning, "2 of 6 pictures cannot be read, and are left out"):
            mixed = oa.buckets(folder.parent, SIZES, pipeline, 4, image_sizes=sizes, socket=self.socket, as_="numpy", epochs=1)
        self.assertEqual(sorted(each for batch in mixed for each in batch.ids), [0, 1, 3, 4])
        mixed.close()

    def test_of_shards(self):
        with tarfile.open(self.work / "shapes.tar", "w") as tar:
            for number, (name, data, *_) in enumerate(self.pictures):
                for suffix, what in ((name.rpartition(".")[2], data), ("json", json.dumps({"n": number}).encode())):
                    member = tarfile.TarInfo(f"{number:04}.{suffix}")
                    member.size = len(what)
                    tar.addfile(member, io.BytesIO(what))
        np.testing.assert_array_equal(oa.image_sizes(self.work / "shapes.tar", socket=self.socket), self.wanted)

    def test_what_pixels_want_is_refused(self):
        for rest, words in (([{"op": "hflip"}], r"op 2 \(hflip\): decode gives the picture's size and no pixels"),
                            ([{"op": "normalize", "mean": [0], "std": [1]}], "op 2 .normalize.: decode gives the picture's size"),
                            ([{"op": "cutmix", "num_classes": 3}], "views, mixup and cutmix are of pixels")):
            with self.subTest(words), self.assertRaisesRegex(Error, words):
                oa.Loader(self.shapes, json.dumps({"ops": [{"op": "decode", "only_size": True}, *rest]}), 4, socket=self.socket)

    def test_a_filter_and_labels_stay(self):
        text = json.dumps({"ops": [{"op": "decode", "only_size": True}, {"op": "filter", "min_width": 40}, {"op": "one_hot", "num_classes": 2}]})
        with oa.Loader(self.shapes, text, 8, socket=self.socket, as_="numpy", epochs=1, shuffle=False) as loader:
            came = [(each, size.tolist(), label.tolist()) for batch in loader for each, size, label in zip(batch.ids, *batch.arrays())]
        self.assertEqual(came, [(each, size, [1, 0]) for each, size in enumerate(self.wanted.tolist()) if size[1] >= 40])


class WrappedTest(PoolCase):
    def test_the_first_field_is_the_picture(self):
        shapes = np.random.RandomState(3).randint(9, 60, (20, 2))
        samples = [(Image.fromarray(np.zeros((height, width, 3), np.uint8)), number, np.float32(number)) for number, (height, width) in enumerate(shapes)]
        np.testing.assert_array_equal(oa.image_sizes(oa.wrap(samples), socket=self.socket), shapes)


class BucketsTest(Case):
    def open(self, batch_size=16, **options):
        mixed = oa.buckets(self.shapes, SIZES, pipeline, batch_size, image_sizes=self.wanted, **{"socket": self.socket, "as_": "numpy", **options})
        self.addCleanup(mixed.close)
        return mixed

    def test_each_sample_comes_once_an_epoch_in_batches_of_one_shape(self):
        mixed = oa.buckets(self.shapes, SIZES, pipeline, 16, socket=self.socket, as_="numpy")      # asks for the sizes itself
        self.addCleanup(mixed.close)
        orders = []
        for epoch in range(3):
            batches = [(batch.epoch, list(batch.ids), batch[0].shape) for batch in mixed]
            self.assertEqual({number for number, _, _ in batches}, {epoch})
            orders.append([each for _, ids, _ in batches for each in ids])
            self.assertEqual(sorted(orders[-1]), list(range(90)))
            for _, ids, shape in batches:
                bucket = {(20, 20): (16, 16), (20, 41): (16, 32), (40, 19): (32, 16)}
                self.assertEqual({bucket[tuple(self.wanted[each])] for each in ids}, {shape[1:3]})
            self.assertEqual(collections.Counter(shape for _, _, shape in batches)[16, 16, 16, 3], 3)
        self.assertNotEqual(orders[0], orders[1])

    def test_short_batches_are_dropped(self):
        mixed, seen = self.open(drop_last=True), set()
        for _ in range(8):
            batches = [list(batch.ids) for batch in mixed]
            self.assertEqual([len(ids) for ids in batches], [16] * 5)
            came = [each for ids in batches for each in ids]
            self.assertEqual(len(set(came)), len(came))
            seen |= set(came)
        self.assertGreater(len(seen), 80)   # others are left out each time; 7 fill no batch

    def test_a_state_goes_on(self):
        mixed, came, states = self.open(epochs=2), [], []
        for _ in range(2):
            for batch in mixed:
                came.append((list(batch.ids), np.asarray(batch[0]).tobytes()))
                states.append(json.dumps(mixed.state_dict()))
        for at in range(0, len(states) - 1, 3):
            again, rest = self.open(epochs=2, state=json.loads(states[at])), []
            while len(rest) < len(came) - at - 1:
                rest += [(list(batch.ids), np.asarray(batch[0]).tobytes()) for batch in again]
            self.assertEqual(rest, came[at + 1:])
            again.close()

    def test_ranks_have_parts(self):
        program = ("import json, sys\nimport numpy as np\nimport oneaccess as oa\n"
                   "data, sizes, socket, rank = json.loads(sys.argv[1])\n"
                   "def pipeline(height, width):\n    return oa.Compose([oa.transforms.Resize((height, width))])\n"
                   "mixed = oa.buckets(data, [(16, 16), (16, 32), (32, 16)], pipeline, 4, image_sizes=sizes, socket=socket, as_='numpy', epochs=2,\n"
                   "                   rank=rank, world_size=2, job='ranks')\n"
                   "print(json.dumps([[[list(batch.ids), batch[0].shape] for batch in mixed] for _ in range(2)]))\n")
        ranks = [subprocess.Popen([sys.executable, "-c", program, json.dumps([self.shapes, self.wanted.tolist(), self.socket, rank])],
                                  stdout=subprocess.PIPE, text=True) for rank in range(2)]
        one, two = [json.loads(rank.communicate()[0]) for rank in ranks]
        for mine, theirs in zip(one, two):
            self.assertEqual([shape[1:] for _, shape in mine], [shape[1:] for _, shape in theirs])      # in step
            self.assertEqual(sorted(each for batches in (mine, theirs) for ids, _ in batches for each in ids), list(range(90)))

    def test_what_is_wrong_is_said(self):
        for said, words in (({"sizes": []}, "sizes is .*: a list of .height, width."), ({"sizes": [(8, 8), (8, 8)]}, "a bucket twice"),
                            ({"sizes": [(8, 8 + at) for at in range(65)]}, "65 buckets, and a mix at most 64"),
                            ({"image_sizes": [1, 2]}, "image_sizes has the shape"), ({"ids": [90]}, "none of the 90 of image_sizes"),
                            ({"batch_size": 0}, "batch_size is 0"),
                            ({"pipeline": oa.imagenet_train(32)}, "pipeline is a Pipeline: give a function"),
                            ({"shuffle": False}, r"shuffle= is not of buckets\(\)"), ({"ids": [], "drop_last": True}, "no bucket has a whole batch")):
            with self.subTest(words), self.assertRaisesRegex(ArgumentError, words), warnings.catch_warnings():
                oa.buckets(self.shapes, **{"pipeline": pipeline, "batch_size": 8, "sizes": SIZES, "image_sizes": self.wanted, "socket": self.socket, **said})

    def test_what_follows_a_picture_has_no_sizes(self):
        with self.assertRaisesRegex(ArgumentError, "give the same without them"):
            oa.image_sizes(oa.wrap([{"image": b"", "mask": b""}], masks="mask"), socket=self.socket)

    def test_nearest(self):
        wide = [(512, 512), (1024, 1024), (512, 1024), (1024, 512)]
        pictures = [(500, 500), (3000, 3000), (600, 500), (10, 19), (19, 10), (0, 0), (700, 700)]
        self.assertEqual(ratios.nearest(pictures, wide).tolist(), [0, 1, 0, 2, 3, -1, 0])

    def test_samples_of_several_shapes_are_no_one_batch(self):
        parts = [oa.Loader(self.shapes, pipeline(8, width), 4, socket=self.socket, as_="numpy") for width in (8, 9)]
        for part in parts:
            self.addCleanup(part.close)
        with self.assertRaisesRegex(ArgumentError, "give both pipelines the same size, layout and type"):
            oa.mix(parts)
        other = oa.Loader(self.shapes, oa.Compose([oa.transforms.Resize((8, 8)), oa.transforms.ToTensor()]), 4, socket=self.socket, as_="numpy")
        self.addCleanup(other.close)
        with self.assertRaisesRegex(ArgumentError, "part 1 has \"image\" f32 of 3 dimensions: give both pipelines the same layout and type"):
            oa.mix([parts[0], other], unit="batches")


class FoldsTest(Case):
    def ids(self, **options):
        with self.loader(oa.imagenet_train(16, dtype="uint8"), 16, as_="numpy", epochs=1, **options) as loader:
            return sorted(each for batch in loader for each in batch.ids)

    def test_each_sample_is_validated_once(self):
        validated = []
        for number in range(5):
            train, validate = oa.fold(number, 5, seed=3)
            with self.subTest(number):
                mine = self.ids(split=validate)
                self.assertEqual(len(mine), SAMPLES // 5)
                self.assertEqual(sorted(mine + self.ids(split=train)), list(range(SAMPLES)))
                self.assertEqual(self.ids(split=train), self.ids(split=train, order="seeded", seed=1))
                validated += mine
        self.assertEqual(sorted(validated), list(range(SAMPLES)))
        self.assertNotEqual(self.ids(split=oa.fold(0, 5, seed=4)[1]), self.ids(split=oa.fold(0, 5, seed=3)[1]))

    def test_a_state_of_a_fold_goes_on(self):
        train, other = oa.fold(2, 5)[0], oa.fold(3, 5)[0]
        loader = self.loader(oa.imagenet_train(16, dtype="uint8"), 16, as_="numpy", order="seeded", seed=1, split=train)
        loop = iter(loader)
        seen = list(next(loop).ids)
        with self.loader(oa.imagenet_train(16, dtype="uint8"), 16, as_="numpy", order="seeded", seed=1, split=train, state=loader.state_dict()) as again:
            self.assertEqual(sorted(seen + [each for batch in again for each in batch.ids]), self.ids(split=train))
        with self.assertRaisesRegex(oa.errors.StateError, "of a job with"):
            self.loader(oa.imagenet_train(16, dtype="uint8"), 16, order="seeded", seed=1, split=other, state=loader.state_dict())

    def test_what_is_wrong_is_said(self):
        for said, words in (((5, 5), "fold 5 of 5: folds are 0 to 4"), ((0, 1), "count is 1"), ((-1, 5), "number is -1")):
            with self.assertRaisesRegex(ArgumentError, words):
                oa.fold(*said)


if __name__ == "__main__":
    unittest.main()
