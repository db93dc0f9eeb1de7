# SPDX-License-Identifier: Apache-2.0
"""Masks: labels of pixels that go where the picture's ops put the pixels, against Pillow, PyTorch and torchvision."""

import importlib.util
import io
import json
import os
import re
import struct
import subprocess
import sys
import unittest
import zlib

try:
    import numpy as np
    import PIL.Image
    import PIL.ImageOps
except ImportError as missing:
    print(f"masks_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import ArgumentError, DatasetError, MissingError, SampleError
from support import PoolCase

COUNT, BATCH = 24, 8
NEAREST = "nearest"
HAS_TORCH = unittest.skipUnless(importlib.util.find_spec("torch"), "no torch")
HAS_TORCHVISION = unittest.skipUnless(importlib.util.find_spec("torchvision") and
                                      importlib.util.find_spec("torchvision.tv_tensors"), "not tested: no torchvision of v2")


def labels_of(index, most=251):
    """No two neighbours alike, and another size for each sample."""
    height, width = 40 + index % 7, 61 - index % 5
    return ((np.arange(height)[:, None] * 7 + np.arange(width) * 13 + index) % most).astype(np.uint16 if most > 256 else np.uint8)


def file_of(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


ADAM7 = ((0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1))     # y from, step; x from, step


def png(values, bits, colour=0, adam7=False):
    """Grey (0) or indices (3) of so many bits, as no library writes them."""
    height, width = values.shape
    data = b""
    for top, down, left, across in ADAM7 if adam7 else ((0, 1, 0, 1),):
        part = values[top::down, left::across]
        if bits == 16:
            rows = np.ascontiguousarray(part, ">u2").view(np.uint8)
        else:
            rows = np.packbits((part[..., None] >> np.arange(bits)[::-1] & 1).astype(np.uint8).reshape(len(part), -1), axis=1)
        data += b"".join(b"\0" + row.tobytes() for row in rows)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, adam7))]
    chunks += [(b"PLTE", bytes(range(3)) * 2 ** min(bits, 8))] if colour == 3 else []
    chunks += [(b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
                                            for name, body in chunks)


class Twins:
    """The picture has in each channel what the mask has."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        labels = labels_of(index)
        return {"image": PIL.Image.fromarray(labels).convert("RGB"), "label": index, "mask": file_of(PIL.Image.fromarray(labels))}


class Boxed(Twins):
    """With boxes."""

    def __getitem__(self, index):
        return {**super().__getitem__(index), "boxes": np.float32([[5, 5, 20, 25], [30, 10, 50, 35]])}


class Given(Twins):
    """Masks that are these, on a black picture of their size, or of another."""

    def __init__(self, masks, size=None):
        self.masks, self.size = masks, size

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, index):
        height, width = self.size or labels_of(0).shape
        return {"image": np.zeros((height, width, 3), np.uint8), "mask": self.masks[index]}


class MasksTest(PoolCase):
    loader = None

    def tearDown(self):
        self.close()

    def made(self, dataset, ops, masks="mask", **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, "batch_size": BATCH, "as_": "numpy", "shuffle": False, **kwargs}
        if not isinstance(dataset, oa.wrapped.Wrapped):
            dataset = oa.wrap(dataset, keep=5, masks=masks)
        self.close()
        self.loader = oa.Loader(dataset, oa.Compose([*ops, oa.transforms.PILToTensor()]), **kwargs)
        return self.loader

    def close(self):
        """One at a time: the daemon has little memory."""
        if isinstance(self.loader, oa.Loader):
            self.loader.close()

    def test_the_draws_are_the_pictures(self):
        """By nearest the picture is the mask, byte for byte, whatever was drawn. Other ops change colours alone."""
        t = oa.transforms
        for ops in ([t.RandomResizedCrop((32, 40), scale=(0.3, 1), interpolation=NEAREST), t.RandomHorizontalFlip()],
                    [t.Resize(70, interpolation=NEAREST), t.RandomCrop((50, 60), padding=9, padding_mode="reflect"), t.RandomVerticalFlip()],
                    [t.RandomRotation(40), t.Resize((33, 77), interpolation=NEAREST)],
                    [t.RandomAffine(30, (0.1, 0.2), (0.7, 1.5), 10), t.CenterCrop((60, 30))],
                    [t.RandomPerspective(0.6, 0.8, NEAREST), t.CenterCrop((60, 30))],
                    [t.RandomApply([t.RandomHorizontalFlip(1)], p=0.5), t.RandomRotation(90, expand=True), t.CenterCrop(48)],
                    [t.RandomCrop(90, pad_if_needed=True)], [t.ScaleJitter(50, (0.5, 1.5), NEAREST), t.FixedSizeCrop(48)],
                    [t.RandomZoomOut(), t.RandomShortestSize([30, 40, 50], 70, NEAREST), t.FixedSizeCrop((60, 70))]):
            loader = self.made(Twins(), ops, {"mask": oa.Mask(nearest="pillow")}, shuffle=None, order="seeded", seed=5)
            seen, different = [], set()
            for _ in range(2):
                for batch in loader:
                    self.assertEqual((list(batch), batch["mask"].dtype), (["image", "label", "mask"], np.uint8))
                    np.testing.assert_array_equal(batch["image"], np.repeat(batch["mask"][:, None], 3, 1))
                    seen += batch["label"].tolist()
                    different.update(mask.tobytes() for mask in batch["mask"])
            self.assertEqual(sorted(seen), sorted([*range(COUNT)] * 2))
            self.assertGreater(len(different), COUNT)
        loader = self.made(Twins(), [t.ColorJitter(0.9, 0.9), t.GaussianBlur(5), t.RandomErasing(1), t.CoarseDropout(p=1), t.CenterCrop((38, 50))])
        for batch in loader:
            for index, mask in zip(batch.ids, batch["mask"]):
                labels = labels_of(index)
                top, left = round((labels.shape[0] - 38) / 2), round((labels.shape[1] - 50) / 2)
                np.testing.assert_array_equal(mask, labels[top:top + 38, left:left + 50])

    def test_crops_by_boxes(self):
        """Whoever chooses the part: the mask has the picture's."""
        t = oa.transforms
        dataset = oa.wrap(Boxed(), keep=5, masks={"mask": oa.Mask(nearest="pillow")}, ragged={"boxes": 2}, boxes="boxes")
        different, removed = set(), 0
        for _ in range(2):
            for batch in self.made(dataset, [t.RandomIoUCrop(), t.RandomHorizontalFlip(), t.Resize((40, 50), NEAREST)], shuffle=None,
                                   order="seeded", seed=5):
                np.testing.assert_array_equal(batch["image"], np.repeat(batch["mask"][:, None], 3, 1))
                different.update(mask.tobytes() for mask in batch["mask"])
                removed += sum(len(boxes) < 2 for boxes in batch["boxes"])
        self.assertGreater(len(different), COUNT // 2)
        self.assertGreater(removed, 0)

    def test_pillows_nearest(self):
        t, nearest = oa.transforms, PIL.Image.Resampling.NEAREST
        for ops, by_pillow in (([t.Resize((120, 33))], lambda mask: mask.resize((33, 120), nearest)),
                               ([t.Resize((17, 90))], lambda mask: mask.resize((90, 17), nearest)),
                               ([t.RandomHorizontalFlip(1), t.Pad((3, 4, 5, 6)), t.Resize((50, 60))],
                                lambda mask: PIL.ImageOps.expand(PIL.ImageOps.mirror(mask), (3, 4, 5, 6), 255).resize((60, 50), nearest)),
                               ([t.RandomRotation((33, 33)), t.Resize((50, 60))],
                                lambda mask: mask.rotate(33, nearest, fillcolor=255).resize((60, 50), nearest))):
            for batch in self.made(Twins(), ops, {"mask": oa.Mask(255, "int64", "pillow")}):
                self.assertEqual(batch["mask"].dtype, np.int64)
                for index, mask in zip(batch.ids, batch["mask"]):
                    want = by_pillow(PIL.Image.fromarray(labels_of(index)))
                    np.testing.assert_array_equal(mask, np.asarray(want))

    @HAS_TORCH
    def test_pytorchs_nearest(self):
        import torch
        t = oa.transforms
        for size in ((120, 33), (17, 90), (41, 60), (80, 122), (299, 7), (1, 1)):
            for batch in self.made(Twins(), [t.Resize(size)], {"mask": oa.Mask(dtype="uint16")}):
                for index, mask in zip(batch.ids, batch["mask"]):
                    want = torch.nn.functional.interpolate(torch.from_numpy(labels_of(index))[None, None].float(), size, mode="nearest")[0, 0]
                    np.testing.assert_array_equal(mask, want.numpy())

    @HAS_TORCHVISION
    def test_torchvisions(self):
        import torch
        from torchvision import tv_tensors
        from torchvision.transforms import v2
        t = oa.transforms
        fill = {tv_tensors.Mask: 255, "others": 0}
        for ours, theirs, least in (
                ([t.Resize((120, 45))], [v2.Resize((120, 45))], 1), ([t.Resize(37), t.CenterCrop((30, 36))], [v2.Resize(37), v2.CenterCrop((30, 36))], 1),
                ([t.RandomHorizontalFlip(1), t.Pad((3, 4, 5, 6)), t.Resize((48, 48))],
                 [v2.RandomHorizontalFlip(1), v2.Pad((3, 4, 5, 6), fill), v2.Resize((48, 48))], 1),
                ([t.RandomVerticalFlip(1), t.CenterCrop((30, 31)), t.Resize((77, 33))],
                 [v2.RandomVerticalFlip(1), v2.CenterCrop((30, 31)), v2.Resize((77, 33))], 1),
                ([t.RandomRotation((30, 30)), t.CenterCrop(36)], [v2.RandomRotation((30, 30), fill=fill), v2.CenterCrop(36)], 0.98)):
            for batch in self.made(Twins(), ours, {"mask": oa.Mask(255)}):
                for index, mask in zip(batch.ids, batch["mask"]):
                    want = v2.Compose(theirs)(tv_tensors.Mask(torch.from_numpy(labels_of(index))[None]))[0].numpy()
                    self.assertGreaterEqual((mask == want).mean(), least, (ours, index))

    def test_files_and_values(self):
        """What a mask may be: as Pillow reads it, an index for a palette."""
        labels = labels_of(0)
        deep = labels_of(0, 60000) * 1
        palette = PIL.Image.fromarray(labels, "P")
        palette.putpalette(bytes(range(256)) * 3)
        masks = [(labels, labels), (PIL.Image.fromarray(labels), labels), (palette, labels), (file_of(palette), labels), (file_of(palette, "PNG", transparency=0), labels),
                 (png(labels, 8), labels), (png(labels, 8, 3), labels), (png(labels & 1, 1), labels & 1), (png(labels & 1, 1, 3), labels & 1),
                 (png(labels & 3, 2), (labels & 3) * 85), (png(labels & 3, 2, 3), labels & 3), (png(labels & 15, 4), (labels & 15) * 17),
                 (png(labels & 15, 4, 3), labels & 15), (png(deep, 16), deep), (deep, deep), (deep.astype(np.int64), deep), (labels > 9, labels > 9)]
        for number in (7, 8, 9, 11, 12, 5, 6):
            if isinstance(masks[number][0], bytes):
                np.testing.assert_array_equal(np.asarray(PIL.Image.open(io.BytesIO(masks[number][0]))), masks[number][1])
        got = [mask for batch in self.made(Given([mask for mask, _ in masks]), [oa.transforms.CenterCrop(labels.shape)],
                                           {"mask": oa.Mask(dtype="int32")}) for mask in np.array(batch["mask"])]
        for mask, (_, want) in zip(got, masks):
            np.testing.assert_array_equal(mask, want)

    def test_colours(self):
        """Each becomes its label before any op, whatever the file is; labels of a colour need not be in order."""
        labels, t = labels_of(0) % 5, oa.transforms
        colors = [(0, 0, 0), (128, 64, 128), (255, 255, 255), (0, 0, 142), (142, 0, 0)]
        shown = np.array(colors, np.uint8)[labels]
        picture = PIL.Image.fromarray(shown)
        palette = picture.convert("P", palette=PIL.Image.Palette.ADAPTIVE)
        masks = [shown, picture, file_of(picture), file_of(picture, "PPM"), file_of(picture, "BMP"), palette, file_of(palette), shown.transpose(2, 0, 1),
                 file_of(picture.convert("RGBA"))]
        many = {color: 300 + 7 * label for label, color in enumerate(colors)}
        for mask, want in ((oa.Mask(colors=colors), labels), (oa.Mask(colors=many, dtype="uint16"), 300 + 7 * labels.astype(np.uint16))):
            for batch in self.made(Given(masks), [t.RandomHorizontalFlip(1)] + [t.CenterCrop(labels.shape)], {"mask": mask}):
                for got in batch["mask"]:
                    np.testing.assert_array_equal(got, want[:, ::-1])
        with self.assertRaisesRegex(SampleError, "mask: colour 142, 0, 0 has no label"):
            list(self.made(Given(masks[:1]), [t.CenterCrop(labels.shape)], {"mask": oa.Mask(colors=colors[:4])}))
        with self.assertRaisesRegex(SampleError, "mask 60 x 41, picture 61 x 40"):
            list(self.made(Given([np.zeros((41, 60, 3), np.uint8)], labels.shape), [t.CenterCrop(labels.shape)], {"mask": oa.Mask(colors=colors)}))
        for wrong in ([(0, 0)], [(0, 0, 256)], [(0, 0, 0), (0, 0, 0)], {(0, 0, 0): 256}, []):
            with self.assertRaisesRegex(ArgumentError, "colors"):
                oa.Mask(colors=wrong)
        with self.assertRaisesRegex(ArgumentError, "one table"):
            oa.wrap(Twins(), masks={"mask": oa.Mask(colors=colors), "other": oa.Mask()})

    def test_interlaced(self):
        """Nothing shows of the mask before, whose bits are all set."""
        labels, masks = labels_of(0), []
        for bits in (1, 2, 4, 8):
            for colour, times in ((3, 1), (0, {2: 85, 4: 17}.get(bits, 1))):
                file, want = png(labels & (1 << bits) - 1, bits, colour, True), (labels & (1 << bits) - 1) * times
                np.testing.assert_array_equal(np.asarray(PIL.Image.open(io.BytesIO(file))), want)
                masks += (np.full_like(labels, 255), np.full_like(labels, 255)), (file, want)
        for batch in self.made(Given([mask for mask, _ in masks]), [oa.transforms.CenterCrop(labels.shape)]):
            for index, mask in zip(batch.ids, batch["mask"]):
                np.testing.assert_array_equal(mask, masks[index][1])

    def test_wrong_masks(self):
        """Each is a bad sample by its name, and the others come."""
        good = labels_of(0)
        colours = PIL.Image.fromarray(np.zeros((*good.shape, 3), np.uint8))
        wrong = ((labels_of(1), "mask 60 x 41, picture 61 x 40"), (file_of(colours), "mask of colours: their labels are for"), (file_of(colours, "JPEG"), "PNG, PGM or TIFF.*JPEG"),
                 (file_of(colours, "PPM"), "raw PGM"), (png(good, 8)[:-60], "ends before"), (b"", "not JPEG, PNG"),
                 (png(labels_of(0, 60000), 16), r"label \d+ of a uint8"), (png(good, 8)[:40] + b"x" * 50, "PNG"))
        loader = self.made(Given([each for mask, _ in wrong for each in (good, mask)]), [oa.transforms.CenterCrop(good.shape)], bad="skip")
        for batch in loader:
            self.assertEqual(batch.ids.tolist(), [*range(0, 2 * len(wrong), 2)])
            np.testing.assert_array_equal(batch["mask"], np.stack([good] * len(wrong)))
        self.assertEqual([bad.path for bad in loader.bad_samples], [f"dataset[{2 * at + 1}]" for at in range(len(wrong))])
        for bad, (_, why) in zip(loader.bad_samples, wrong):
            self.assertRegex(bad.error, why)
        loader = self.made(Given([good, labels_of(1), good]), [oa.transforms.CenterCrop(good.shape)])
        with self.assertRaisesRegex(SampleError, r"sample 1\b.*mask 60 x 41"):
            list(loader)

    def test_what_is_refused(self):
        t = oa.transforms
        for ops in ([t.TrivialAugmentWide(), t.CenterCrop(32)], [t.FiveCrop(20)]):
            with self.assertRaisesRegex(oa.Error, "masks cannot follow"):
                self.made(Twins(), ops)
        with self.assertRaisesRegex(oa.Error, "behind the picture the sample has: label, mask"):
            self.made(Twins(), [t.CenterCrop(32)], "other")
        with self.assertRaisesRegex(oa.Error, "give the Loader a pipeline"):
            oa.Loader(oa.wrap(Twins(), masks="mask", ragged={"mask": 9000}, keep=5), socket=self.socket)
        for options in ({"dtype": "float32"}, {"fill": 256}, {"fill": -1}, {"nearest": "linear"}):
            with self.assertRaises(ArgumentError):
                oa.Mask(**options)

    @HAS_TORCHVISION
    def test_what_torchvision_refuses(self):
        """Its auto-augment family does not follow either."""
        import torch
        from torchvision import tv_tensors
        from torchvision.transforms import v2
        for op in (v2.RandAugment(), v2.TrivialAugmentWide(), v2.AutoAugment(), v2.AugMix()):
            for beside in (tv_tensors.Mask(torch.zeros(1, 8, 8)), tv_tensors.BoundingBoxes([[0, 0, 4, 4]], format="XYXY", canvas_size=(8, 8))):
                with self.assertRaisesRegex(TypeError, "not supported"):
                    op(tv_tensors.Image(torch.zeros(3, 8, 8, dtype=torch.uint8)), beside)

    def folders(self, name):
        root = self.work / name
        for index in range(COUNT):
            city = f"city{index % 2}"
            for folder in ("images", "masks", "left/" + city, "fine/" + city):
                (root / folder).mkdir(parents=True, exist_ok=True)
            labels = PIL.Image.fromarray(labels_of(index))
            labels.convert("RGB").save(root / f"images/{index:03}.png")
            labels.save(root / f"masks/{index:03}.png")
            labels.convert("RGB").save(root / f"left/{city}/{index:03}_left.png")
            labels.save(root / f"fine/{city}/{index:03}_fine_ids.png")
        return root

    def test_folders(self):
        root, t = self.folders("pairs"), oa.transforms
        (root / "some.txt").write_text("005 1\n\n021\n")
        every = [*range(COUNT)]
        cities = sorted(every, key=lambda index: (index % 2, index))
        for places, names, want in (({"image": root / "images", "mask": root / "masks"}, None, every),
                                    ({"image": root / "images", "mask": root / "masks"}, root / "some.txt", [5, 21]),
                                    ({"image": root / "images/*.png", "mask": root / "masks/*.png"}, ["009", "002"], [9, 2]),
                                    ({"image": root / "left/*/*_left.png", "mask": root / "fine/*/*_fine_ids.png"}, None, cities)):
            data = oa.from_folders(places, names=names, masks={"mask": oa.Mask(nearest="pillow")}, keep=5)
            self.assertEqual(len(data), len(want))
            made = []
            for batch in self.made(data, [t.RandomResizedCrop(32, scale=(0.4, 1), interpolation=NEAREST)]):
                np.testing.assert_array_equal(batch["image"][:, 1], batch["mask"])
                made += batch.ids.tolist()
            self.assertEqual(made, [*range(len(want))])
            for at, index in enumerate(want):
                np.testing.assert_array_equal(np.asarray(PIL.Image.open(io.BytesIO(data.dataset[at]["mask"]))), labels_of(index))

    def test_folders_packed(self):
        """As doc/c.md packs them for programs in C."""
        root, t = self.folders("packed"), oa.transforms
        for folder in ("images", "masks"):
            (root / folder / "003.png").rename(root / folder / "003 of a b.png")
        with open(os.path.join(os.environ["top_srcdir"], "doc/c.md"), encoding="utf-8") as page:
            line, = re.findall("^    (find images masks .*\n.*)$", page.read(), re.MULTILINE)
        subprocess.run(line, shell=True, cwd=root, check=True)
        op = {"op": "decode", "members": ["jpg;png", "mask.png"], "fields": [[1]], "kinds": [6], "names": ["mask"]}
        tail = [{"op": "random_resized_crop", "size": 32, "scale": [0.4, 1], "interpolation": "nearest"}]
        data = oa.from_folders({"image": root / "images", "mask": root / "masks"}, masks={"mask": oa.Mask(nearest="pillow")}, keep=5)
        more = {"socket": self.socket, "timeout": 600, "as_": "numpy", "order": "sequential", "seed": 3}
        with oa.Loader(root / "voc.tar", json.dumps([op, *tail]), BATCH, source={"members": "all"}, **more) as packed, \
                oa.Loader(data, json.dumps([{"op": "decode"}, *tail]), BATCH, **more) as folders:
            for (image, _, mask), want in zip(packed, folders, strict=True):
                np.testing.assert_array_equal(image, want["image"])
                np.testing.assert_array_equal(mask, want["mask"])
                np.testing.assert_array_equal(image[..., 0] if image.shape[-1] == 3 else image[:, 0], mask)

    def test_a_pattern_has_stars_alone(self):
        """Other marks of shells are letters of a name; folders that a star matches are none of the samples."""
        root = self.folders("odd [1] really?")
        (root / "images/kept.png").mkdir()
        data = oa.from_folders({"image": root / "images/*.png", "mask": root / "masks/*.png"})
        self.assertEqual(data.dataset.names, [f"{index:03}" for index in range(COUNT)])

    def test_folders_that_are_wrong(self):
        root = self.folders("wrong")
        places = {"image": root / "images", "mask": root / "masks"}
        rows = oa.from_folders(places).dataset
        (root / "masks/003.png").unlink()
        (root / "masks/007.png").write_bytes(b"another")
        with self.assertRaisesRegex(DatasetError, "masks has no file for 003, of 24 samples: names="):
            oa.from_folders(places)
        with self.assertRaisesRegex(DatasetError, "007.png has changed"):
            rows[7]
        (root / "images/004.jpg").write_bytes(b"twice")
        with self.assertRaisesRegex(DatasetError, "both of sample 004"):
            oa.from_folders(places)
        with self.assertRaises(MissingError):
            oa.from_folders({"image": root / "nowhere"})
        with self.assertRaisesRegex(MissingError, "by names=: a file with one name a line"):
            oa.from_folders({"image": root / "masks"}, names=root / "nowhere.txt")
        with self.assertRaises(ArgumentError):
            oa.from_folders({})


if __name__ == "__main__":
    unittest.main(verbosity=2)
