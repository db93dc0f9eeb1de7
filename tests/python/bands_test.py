# SPDX-License-Identifier: Apache-2.0
"""Images of numbers: TIFF of many bands, 16-bit PNG and .npy of folders, shards, archives, lists and wrapped data sets, with masks beside
them, against NumPy and torchvision. What files of each kind give is tests/pipeline/bands_test.c's."""

import importlib.util
import io
import struct
import sys
import tarfile
import unittest
import zipfile
import zlib

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"bands_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import PipelineError, SampleError
from support import PoolCase

COUNT, BANDS = 20, 5
HAS_TORCHVISION = unittest.skipUnless(importlib.util.find_spec("torchvision"), "no torchvision")


def numbers_of(index):
    """uint16 [bands, height, width], no two neighbours alike, another size for each sample; band 0 has the labels of the mask."""
    band, row, column = np.ogrid[:BANDS, :40 + index % 7, :61 - index % 5]
    return ((row * 7 + column * 13 + index) % 200 + 997 * band).astype(np.uint16)


def labels_of(index):
    return numbers_of(index)[0].astype(np.uint8)


def tiff(array):
    """[C, H, W], little-endian, one strip with the bands of a pixel together, deflated."""
    channels, height, width = array.shape
    data = zlib.compress(np.ascontiguousarray(array.transpose(1, 2, 0)).tobytes())
    kind = {"u": 1, "i": 2, "f": 3}[array.dtype.kind]
    bits = struct.pack(f"<{channels}H", *[8 * array.itemsize] * channels)
    tags, behind = [], 8
    for tag, type_, count, value in ((256, 4, 1, width), (257, 4, 1, height), (258, 3, channels, bits), (259, 3, 1, 8), (262, 3, 1, 1),
                                     (273, 4, 1, None), (277, 3, 1, channels), (278, 4, 1, height), (279, 4, 1, len(data)),
                                     (338, 3, channels - 1, b"\0\0" * (channels - 1)), (339, 3, channels, struct.pack(f"<{channels}H", *[kind] * channels))):
        tags.append((tag, type_, count, value))
    tags = [tag for tag in tags if tag[2]]
    behind, extra, entries = 8 + 2 + 12 * len(tags) + 4, b"", b""
    for tag, type_, count, value in tags:
        if isinstance(value, bytes) and len(value) > 4:
            value, extra = struct.pack("<I", behind + len(extra)), extra + value + b"\0" * (len(value) % 2)
        elif not isinstance(value, bytes):
            value = struct.pack("<I", 0xfffffff0 if value is None else value)
        entries += struct.pack("<HHI", tag, type_, count) + value.ljust(4, b"\0")
    entries = entries.replace(struct.pack("<I", 0xfffffff0), struct.pack("<I", behind + len(extra)))
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + b"\0\0\0\0" + extra + data


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def png(array):
    file = io.BytesIO()
    PIL.Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


class Land:
    """A wrapped data set: bytes of files."""

    def __init__(self, file=tiff):
        self.file = file

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"image": self.file(numbers_of(index)), "label": index, "mask": png(labels_of(index))}


class Rooms:
    """A photograph, and its depth in 16 bits."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"image": np.repeat(labels_of(index)[..., None], 3, 2), "depth": png(numbers_of(index)[3])}


WHOLE = t.CenterCrop((38, 50))


def whole(array):
    """What WHOLE leaves of it."""
    top, left = round((array.shape[-2] - 38) / 2), round((array.shape[-1] - 50) / 2)
    return array[..., top:top + 38, left:left + 50]


class BandsTest(PoolCase):
    settings = {"memory": "1G"}
    loader = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.land = cls.work / "land"
        for index in range(COUNT):
            folder = cls.land / ("field", "wood")[index % 2]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{index:02}.tif").write_bytes(tiff(numbers_of(index)))
        cls.order = [*range(0, COUNT, 2), *range(1, COUNT, 2)]     # of the folder

    def made(self, dataset, ops, **options):
        if self.loader is not None:     # one at a time: the daemon has little memory
            self.loader.close()
        self.loader = self.open(dataset, oa.Compose(ops), **{"batch_size": 6, "as_": "numpy", "shuffle": False, "epochs": 1, **options})
        return self.loader

    def check(self, loader, order, pick=slice(None)):
        seen = []
        for batch in loader:
            image, label = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
            self.assertEqual((image.dtype, image.shape[1:]), (np.float32, (len(range(BANDS)[pick]) if isinstance(pick, slice) else len(pick), 38, 50)))
            for number, one, its in zip(batch.ids, image, label):
                np.testing.assert_array_equal(one, whole(numbers_of(order[number]))[pick])
                seen.append((order[number], int(its)))
        self.assertEqual([index for index, _ in sorted(seen)], list(range(COUNT)))
        return [label for _, label in sorted(seen)]

    def test_class_folders_archives_and_shards(self):
        ops = [t.Bands(BANDS), WHOLE]
        self.assertEqual(self.check(self.made(self.land, ops), self.order), [index % 2 for index in range(COUNT)])
        self.check(self.made(self.land, [t.Bands(bands=(3, 2, 1)), WHOLE], shuffle=True), self.order, [3, 2, 1])
        with zipfile.ZipFile(self.work / "land.zip", "w") as archive:
            for path in sorted(self.land.glob("*/*.tif")):
                archive.write(path, path.relative_to(self.land))
        self.assertEqual(self.check(self.made(self.work / "land.zip", ops), self.order), [index % 2 for index in range(COUNT)])
        with tarfile.open(self.work / "land.tar", "w") as archive:
            for index in range(COUNT):
                for suffix, data in (("tif", tiff(numbers_of(index))), ("cls", b"%d" % (index + 1)), ("mask.png", png(labels_of(index)))):
                    member = tarfile.TarInfo(f"{index:04}.{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        self.assertEqual(self.check(self.made(self.work / "land.tar", ops), range(COUNT)), list(range(1, COUNT + 1)))
        data = oa.from_tar(self.work / "land.tar", {"image": "tif", "label": "cls", "mask": "mask.png"}, masks="mask")
        for batch in self.made(data, [t.Bands(BANDS), t.RandomCrop(24), t.RandomHorizontalFlip()]):
            np.testing.assert_array_equal(batch["image"][:, 0], batch["mask"])

    def test_masks_follow(self):
        """The first band is the mask: what moves one moves the other, by the same nearest."""
        for ops in ([t.RandomResizedCrop((32, 40), scale=(0.3, 1), interpolation="nearest"), t.RandomHorizontalFlip()],
                    [t.Resize(70, interpolation="nearest"), t.RandomCrop((50, 60), padding=9, padding_mode="reflect"), t.RandomVerticalFlip()],
                    [t.Pad(4), t.RandomRotation(40), t.CenterCrop(48)], [t.RandomCrop(90, pad_if_needed=True)]):
            for file in (tiff, npy):
                loader = self.made(oa.wrap(Land(file), keep=3, masks="mask"), [t.Bands(BANDS), *ops], shuffle=None, order="seeded", seed=5)
                seen = []
                for batch in loader:
                    np.testing.assert_array_equal(batch["image"][:, 0], batch["mask"])
                    seen += batch["label"].tolist()
                self.assertEqual(sorted(seen), list(range(COUNT)))

    def test_key_points_follow(self):
        """Two whose labels in the mask are their own, and which exchange their places in a mirror."""
        class Posed(Land):
            def __getitem__(self, index):
                height, width = labels_of(index).shape
                top, left = round((height - 38) / 2), round((width - 50) / 2)
                return {**super().__getitem__(index), "points": np.array([[[left + 3.5, top + 4.5, 2], [left + 46.5, top + 33.5, 1]]], np.float32)}

        data = [Posed(tiff)[index] for index in range(COUNT)]
        for flips in (), (1, 0):
            seen = 0
            wrapped = oa.wrap(data, keep=3, ragged={"points": 1}, boxes=oa.Points("points", flips), masks="mask")
            for batch in self.made(wrapped, [t.Bands(BANDS), WHOLE, t.RandomHorizontalFlip(1)]):
                for mask, (pair,), label in zip(batch["mask"], batch["points"].list(), batch["label"]):
                    labels = whole(labels_of(label))
                    self.assertEqual(pair[:, 2].tolist(), [1, 2] if flips else [2, 1])
                    for (x, y, _), (row, column) in zip(pair[::-1] if flips else pair, ((4, 3), (-5, -4))):
                        self.assertEqual(mask[int(y), int(x)], labels[row, column])
                    seen += 1
            self.assertEqual(seen, COUNT)

    def test_folders_beside_each_other(self):
        """Masks in TIFF, too."""
        for index in range(COUNT):
            mask = labels_of(index) if index % 3 else numbers_of(index)[0]       # of 8 and of 16 bits
            for folder, name, data in (("images", f"{index:02}.tif", tiff(numbers_of(index))), ("masks", f"{index:02}.tif", tiff(mask[None]))):
                (self.work / "pairs" / folder).mkdir(parents=True, exist_ok=True)
                (self.work / "pairs" / folder / name).write_bytes(data)
        data = oa.from_folders({"image": self.work / "pairs/images", "mask": self.work / "pairs/masks"}, masks="mask")
        for batch in self.made(data, [t.Bands(BANDS, scale=1 / 10000), t.RandomCrop(24), t.Normalize([0] * BANDS, [0.5] * BANDS)]):
            np.testing.assert_array_equal(batch["image"][:, 0], batch["mask"].astype(np.float32) * np.float32(1e-4) / np.float32(0.5))

    def test_views_and_jobs_that_share(self):
        crops = [oa.Compose([t.Bands(BANDS), t.RandomCrop(size), *end]) for size, end in ((24, []), (16, [t.Cast("float16")]))]
        for batch in self.open(self.land, oa.views(*crops), batch_size=6, as_="numpy"):
            self.assertEqual((batch["image"].shape[1:], batch["image2"].shape[1:], batch["image2"].dtype), ((BANDS, 24, 24), (BANDS, 16, 16), np.float16))
            for name in ("image", "image2"):
                np.testing.assert_array_equal(batch[name][:, 1].astype(np.float32) - batch[name][:, 0], 997)
            break
        jobs = [iter(self.open(self.land, crop, batch_size=5, as_="numpy", epochs=1)) for crop in crops]
        self.assertEqual([sum(len(batch.ids) for batch in job) for job in jobs], [COUNT, COUNT])

    def test_the_same_draws_as_of_pictures(self):
        """A 16-bit PNG whose numbers 8 bits can show, by bands and as a picture: one seed, the same places."""
        (self.work / "deep").mkdir()
        for index in range(COUNT):
            (self.work / "deep" / f"{index:02}.png").write_bytes(png(labels_of(index).astype(np.uint16)))
        ops = [t.RandomCrop(20), t.RandomHorizontalFlip(), t.RandomVerticalFlip()]
        deep, flat = ([*self.open(self.work / "deep", oa.Compose(ends), batch_size=6, as_="numpy", order="seeded", seed=3, epochs=1, copy=True)]
                      for ends in ([t.Bands(1), *ops], [*ops, t.PILToTensor()]))
        self.assertEqual(sum(len(batch.ids) for batch in deep), COUNT)
        for one, other in zip(deep, flat):
            self.assertEqual(one.ids.tolist(), other.ids.tolist())
            np.testing.assert_array_equal(one[0][:, 0], other[0][:, 0])

    def test_wrapped_arrays(self):
        """Of one band and of three, too, which are no picture [H, W, 3]."""
        for channels, dtype in ((1, np.uint16), (3, np.uint8), (3, np.float32), (5, np.int16)):
            arrays = [(np.arange(channels * 42).reshape(channels, 6, 7) + index).astype(dtype) for index in range(4)]
            for batch in self.made(oa.wrap(list(zip(arrays, range(4))), keep=3), [t.Bands(channels), t.CenterCrop((6, 7))]):
                for image, index in zip(batch[0], batch[1]):
                    np.testing.assert_array_equal(image, arrays[index])

    def test_depth_beside_a_photograph(self):
        """As a mask of 16 bits."""
        for batch in self.made(oa.wrap(Rooms(), keep=3, masks={"depth": oa.Mask(fill=0, dtype="uint16")}), [t.RandomCrop(30), t.RandomHorizontalFlip(), t.PILToTensor()]):
            self.assertEqual(batch["depth"].dtype, np.uint16)
            np.testing.assert_array_equal(batch["image"][:, 0] + np.uint16(3 * 997), batch["depth"])

    @HAS_TORCHVISION
    def test_torchvisions_resize(self):
        import torch
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms import functional as F
        mean, std = [100.0 + 900 * band for band in range(BANDS)], [50.0 + band for band in range(BANDS)]
        for size, word in (((17, 23), "bilinear"), ((90, 77), "bilinear"), ((25, 80), "bicubic"), ((33, 20), "nearest"), (24, "bilinear")):
            for batch in self.made(self.land, [t.Bands(BANDS), t.Resize(size, word), t.CenterCrop(16), t.Normalize(mean, std)]):
                for number, one in zip(batch.ids, batch[0]):
                    numbers = torch.from_numpy(numbers_of(self.order[number]).astype(np.float32))
                    options = {} if word == "nearest" else {"antialias": True}
                    want = F.normalize(F.center_crop(F.resize(numbers, size, InterpolationMode(word), **options), 16), mean, std)
                    np.testing.assert_allclose(one, want.numpy(), rtol=1e-5, atol=1e-5 * 4000 / 50)

    def test_what_is_refused(self):
        for ops, wanted in (([t.Bands(3), t.ColorJitter(0.5), t.CenterCrop(8)], "color_jitter.*works on 8-bit pictures"),
                            ([t.Bands(3), t.TrivialAugmentWide(), t.CenterCrop(8)], "trivial_augment"),
                            ([t.Bands(3), t.CenterCrop(8), t.Normalize([1, 2], 1)], "3 channels, and 2 numbers"),
                            ([t.Bands(), t.CenterCrop(8)], "neither \"channels\" nor \"bands\""),
                            ([t.CenterCrop(8), t.Bands(3)], "put it first")):
            with self.assertRaisesRegex(PipelineError, wanted):
                self.made(self.land, ops)
        with self.assertRaisesRegex(SampleError, "5 channels, and not 3"):
            next(iter(self.made(self.land, [t.Bands(3), t.CenterCrop(8)])))
        with self.assertRaisesRegex(SampleError, "NPY: no picture; the op bands takes it"):
            next(iter(self.made(oa.wrap(Land(npy), keep=3, masks="mask"), [t.CenterCrop(8), t.PILToTensor()])))


if __name__ == "__main__":
    unittest.main()
