# SPDX-License-Identifier: Apache-2.0
"""Samples of several images, of which the further ones follow the first one, or have a pipeline of their own: against Pillow, torchvision and a Loader of
that image alone."""

import importlib.util
import io
import json
import os
import sys
import tarfile
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"pairs_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import ArgumentError, SampleError, TransformError
from support import PoolCase

COUNT, BATCH = 8, 4
t = oa.transforms
HAS_TORCHVISION = unittest.skipUnless(importlib.util.find_spec("torchvision") and
                                      importlib.util.find_spec("torchvision.tv_tensors"), "not tested: no torchvision of v2")
WHOLE = [t.RandomResizedCrop((32, 40), scale=(0.3, 1)), t.RandomHorizontalFlip()]


def photo(index, which=0, times=1):
    """Something smooth, other for each sample and image; sizes differ."""
    height, width = (50 + index % 5) * times, (71 - index % 4) * times
    y, x = np.mgrid[:height, :width] / times
    return np.stack([127 + 120 * np.sin((y * (1 + which) + x * k) / 9 + index) for k in (1, 2, 3)], -1).astype(np.uint8)


def place(height, width):
    """Each pixel's own row and column."""
    y, x = np.mgrid[:height, :width]
    return np.stack([y % 256, x % 256, y // 256 * 16 + x // 256], -1).astype(np.uint8)


def file_of(array, kind="PNG", **options):
    file = io.BytesIO()
    PIL.Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


class Pairs:
    """times: as large as the first one the target is; first: the target alone, in the first one's place."""

    def __init__(self, times=1, alone=False):
        self.times, self.alone = times, alone

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        target = file_of(photo(index, 1, self.times), "JPEG", quality=90)
        if self.alone:
            return {"image": target, "label": index}
        return {"image": photo(index), "label": index, "target": target, "caption": f"a photograph {index}"}


class Places(Pairs):
    """Where each pixel was, of both; and two corners that follow."""

    def __getitem__(self, index):
        height, width = photo(index).shape[:2]
        points = np.array([[[0, 0, 1], [width, height, 1]]], np.float32)
        return {"image": place(height, width), "target": PIL.Image.fromarray(place(height * self.times, width * self.times)), "points": points}


class Floats(Pairs):
    def __getitem__(self, index):
        made = {}
        for which, name in enumerate(("image", "target")):
            file = io.BytesIO()
            np.save(file, (np.arange(2 * 30 * 40).reshape(2, 30, 40) + index + 5000 * which).astype(np.float32))
            made[name] = file.getvalue()
        return made


class Tuples(Pairs):
    def __getitem__(self, index):
        return photo(index), photo(index)


class Given(Pairs):
    def __init__(self, target):
        self.target = target

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return {"image": photo(0), "target": self.target}


class PairsTest(PoolCase):
    loader = None

    def tearDown(self):
        self.close()

    def close(self):
        """One at a time: the daemon has little memory."""
        if isinstance(self.loader, oa.Loader):
            self.loader.close()

    def made(self, data, pipeline, images="target", **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, "batch_size": BATCH, "as_": "numpy", "order": "seeded", "seed": 5, **kwargs}
        if not isinstance(data, oa.wrapped.Wrapped | oa.picked.Picked):
            more = {"ragged": {"points": 1}, "boxes": oa.Points("points")} if isinstance(data, Places) else {}
            data = oa.wrap(data, keep=30, random=False, images=() if getattr(data, "alone", False) else images, **more)
        self.close()
        self.loader = oa.Loader(data, pipeline if isinstance(pipeline, (oa.Pipeline, str)) else oa.Compose([*pipeline, t.PILToTensor()]), **kwargs)
        return self.loader

    def all_of(self, loader, name, epochs=2):
        """{(epoch, number): that field's value}"""
        return {(epoch, number): value.copy() for epoch in range(epochs) for batch in loader for number, value in zip(batch.ids.tolist(), batch[name])}

    def assert_same(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for key, value in got.items():
            self.assertEqual(value.dtype, want[key].dtype)
            np.testing.assert_array_equal(value, want[key], str(key))

    def test_follows_as_if_it_were_the_first(self):
        """Whatever is drawn: the target is what the same pipeline makes of it where it is the first image, in the same epoch."""
        for ops in (WHOLE, [t.Resize(44, "bicubic"), t.RandomCrop((40, 48), padding=9, padding_mode="reflect"), t.RandomVerticalFlip()],
                    [t.RandomRotation(40, "bilinear"), t.Resize((33, 77))], [t.RandomAffine(30, (0.1, 0.2), (0.7, 1.5), 10, "bilinear"), t.CenterCrop((60, 30))],
                    [t.RandomPerspective(0.6, 0.8), t.CenterCrop((60, 30))], [t.RandomCrop(90, pad_if_needed=True), t.RandomGrayscale(0.5)],
                    [t.RandomApply([t.RandomHorizontalFlip(1), t.GaussianBlur(3)], p=0.5), t.ColorJitter(0.5, 0.5, 0.5, 0.2), t.RandomErasing(0.7), *WHOLE],
                    [t.RandAugment(), *WHOLE], [t.CenterCrop(48), t.FiveCrop(20)], [t.CenterCrop(40), t.Grayscale()]):
            with self.subTest(ops=ops):
                loader = self.made(Pairs(), ops)
                got = self.all_of(loader, "target")
                self.assert_same(got, self.all_of(self.made(Pairs(alone=True), ops), "image"))

    def test_normalized_as_the_first_or_otherwise(self):
        mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]
        whole = oa.Compose([*WHOLE, t.ToTensor(), t.Normalize(mean, std), t.RandomErasing(1)])
        own = {False: [t.ToTensor(), t.Normalize(0, 1)], ((0.5, 0.5, 0.5), (0.5, 0.4, 0.3)): [t.ToTensor(), t.Normalize([0.5] * 3, [0.5, 0.4, 0.3])], (0.5, 0.5): [t.ToTensor(), t.Normalize(0.5, 0.5)],
               True: [t.ToTensor(), t.Normalize(mean, std)]}
        for normalize, end in own.items():
            got = self.all_of(self.made(Pairs(), whole, {"target": oa.Image(normalize=normalize)}), "target")
            self.assert_same(got, self.all_of(self.made(Pairs(alone=True), oa.Compose([*WHOLE, *end, t.RandomErasing(1)])), "image"))
        half = oa.Compose([*WHOLE, t.ToTensor(), t.Normalize(mean, std), t.Cast("float16")])
        batch = next(iter(self.made(Pairs(), half, {"target": oa.Image(normalize=False)})))
        self.assertEqual((batch["target"].dtype, batch["image"].dtype, batch["target"].shape), (np.float16, np.float16, (BATCH, 3, 32, 40)))
        with self.assertRaisesRegex(TransformError, "normalizes 'target', and the pipeline does not"):
            self.made(Pairs(), WHOLE, {"target": oa.Image(normalize=(0.5, 0.5))})

    def test_colors_of_the_first_alone(self):
        """Others keep their draws, as those have numbers of their own."""
        colours = [t.ColorJitter(0.8, 0.8, 0.8, 0.3), t.GaussianBlur(5), t.RandomGrayscale(0.5), t.RandomApply([t.RandomInvert(1)], p=0.5), t.RandomErasing(1)]
        loader = self.made(Pairs(), [*colours, *WHOLE], {"target": oa.Image(colors=False)})
        got, first = self.all_of(loader, "target"), self.all_of(loader, "image")
        # The same numbers of ops, and none of them does anything.
        idle = [t.RandomHorizontalFlip(0)] * 3 + [t.RandomApply([t.RandomHorizontalFlip(0)], p=0.5)] + [t.RandomHorizontalFlip(0)]
        self.assert_same(got, self.all_of(self.made(Pairs(alone=True), [*idle, *WHOLE]), "image"))
        self.assertTrue(any((first[key] != got[key]).any() for key in got))
        one = next(iter(self.made(Pairs(), [t.Grayscale(), t.CenterCrop(30)], {"target": oa.Image(colors=False)})))
        self.assertEqual((one["image"].shape[1], one["target"].shape[1]), (1, 3))

    @HAS_TORCHVISION
    def test_two_images_in_torchvision(self):
        import torch
        from torchvision import tv_tensors
        from torchvision.transforms import v2
        for ours, theirs in (([t.RandomHorizontalFlip(1), t.Pad((3, 4, 5, 6)), t.CenterCrop((47, 60))], [v2.RandomHorizontalFlip(1), v2.Pad((3, 4, 5, 6)), v2.CenterCrop((47, 60))]),
                             ([t.RandomVerticalFlip(1), t.RandomInvert(1), t.CenterCrop(30)], [v2.RandomVerticalFlip(1), v2.RandomInvert(1), v2.CenterCrop(30)]),
                             ([t.Resize((30, 90))], [v2.Resize((30, 90))])):
            for batch in self.made(Pairs(), ours):
                for index, image, target in zip(batch.ids.tolist(), batch["image"], batch["target"]):
                    decoded = [PIL.Image.fromarray(photo(index)), PIL.Image.open(io.BytesIO(Pairs()[index]["target"]))]
                    for got, want in zip((image, target), v2.Compose(theirs)(*decoded)):
                        np.testing.assert_array_equal(got.transpose(1, 2, 0), np.asarray(want))

    def test_scaled(self):
        """The target's crop is the first image's, times as large, to the pixel; also where middles lie between two pixels."""
        for times, ops in ((4, [t.RandomCrop(24), t.RandomHorizontalFlip(), t.RandomVerticalFlip()]), (2, [t.CenterCrop((23, 30))]), (3, [t.CenterCrop((64, 30))]),
                           (2, [t.Pad((3, 4, 5, 6)), t.RandomCrop((40, 31))]), (2, [t.RandomCrop((60, 80), padding=(2, 3), pad_if_needed=True)]),
                           (4, [t.RandomCrop(30, padding=6, padding_mode="symmetric"), t.RandomApply([t.RandomHorizontalFlip(1), t.CenterCrop(21)], p=1)])):
            for batch in self.made(Places(times), ops, {"target": oa.Image(scale=times)}):
                self.assertEqual([side * times for side in batch["image"].shape[2:]], list(batch["target"].shape[2:]))
                for image, target in zip(batch["image"], batch["target"]):
                    flips = [axis for axis in (1, 2) if (np.diff(image[axis - 1].astype(int), axis=axis - 1) == -1).sum() > (np.diff(image[axis - 1].astype(int), axis=axis - 1) == 1).sum()]
                    image, target = np.flip(image, flips).astype(int), np.flip(target, flips).astype(int)
                    rows, columns = (target[0] + target[2] // 16 * 256), (target[1] + target[2] % 16 * 256)
                    inside = np.ones(image.shape[1:], bool) if "symmetric" in repr(ops) else image.any(0) | (rows[::times, ::times] + columns[::times, ::times] > 0)
                    if "symmetric" in repr(ops):        # mirrored within a pixel, too: any of its parts
                        np.testing.assert_array_equal(rows[::times, ::times] // times, image[0])
                        np.testing.assert_array_equal(columns[times - 1::times, times - 1::times] // times, image[1])
                        continue
                    np.testing.assert_array_equal(rows[::times, ::times][inside], times * image[0][inside])
                    np.testing.assert_array_equal(columns[times - 1::times, times - 1::times][inside], (times * image[1] + times - 1)[inside])

    def test_scaled_and_resized_as_by_pillow(self):
        """Where the crop is, two key points say."""
        for times, ops in ((2, [t.RandomResizedCrop((32, 40), scale=(0.3, 1))]), (4, [t.Resize(37), t.CenterCrop((37, 40))])):
            resized = t.RandomResizedCrop.__name__ if "random_resized" in json.loads(oa.Compose(ops).json)["ops"][1]["op"] else ""
            for batch in self.made(Places(times), ops, {"target": oa.Image(scale=times)}):
                for at, index in enumerate(batch.ids.tolist()):
                    height, width = photo(index).shape[:2]
                    large = PIL.Image.fromarray(place(height * times, width * times))
                    (left, top, _), (right, bottom, _) = np.asarray(batch["points"][at])[0].astype(float)
                    down, across = (bottom - top) / height, (right - left) / width
                    if resized:
                        box = [round(-left / across), round(-top / down)]
                        box += [box[0] + round(40 / across), box[1] + round(32 / down)]
                        want = large.crop([times * side for side in box]).resize((40 * times, 32 * times), PIL.Image.Resampling.BILINEAR)
                    else:
                        small = [round(across * width), round(down * height)]
                        first = [times * round((have - side) / 2) for have, side in zip(small, (40, 37))]
                        want = large.resize((small[0] * times, small[1] * times), PIL.Image.Resampling.BILINEAR)
                        want = want.crop((*first, first[0] + 40 * times, first[1] + 37 * times))
                    np.testing.assert_array_equal(batch["target"][at].transpose(1, 2, 0), np.asarray(want), str(index))

    def test_own_pipeline(self):
        """By name, with draws of its own; whatever size it has."""
        whole = oa.views(oa.Compose([*WHOLE, t.ToTensor(), t.Normalize(0.5, 0.5)]), target=oa.Compose([t.RandomCrop(64), t.RandomVerticalFlip(), t.PILToTensor()]))
        loader = self.made(Pairs(3), whole, order="seeded")
        self.assertEqual([(name, value.dtype.name, value.shape[1:]) for name, value in ((name, next(iter(loader))[name]) for name in ("image", "target"))],
                         [("image", "float32", (3, 32, 40)), ("target", "uint8", (3, 64, 64))])
        got = self.all_of(loader, "target")
        for (_, index), target in got.items():
            decoded = np.asarray(PIL.Image.open(io.BytesIO(Pairs(3)[index]["target"]))).transpose(2, 0, 1)
            windows = np.lib.stride_tricks.sliding_window_view(decoded, (3, 64, 64))[0]
            self.assertTrue(any((windows == flipped).all((2, 3, 4)).any() for flipped in (target, target[:, ::-1])))
        self.assertGreater(len({target.tobytes() for target in got.values()}), COUNT)
        with self.assertRaisesRegex(oa.Error, "has ops of its own"):
            self.made(Pairs(3), whole, {"target": oa.Image(scale=3)})

    def test_numbers(self):
        for batch in self.made(Floats(), oa.Compose([t.Bands(2), t.RandomCrop(20), t.RandomHorizontalFlip()])):
            np.testing.assert_array_equal(batch["image"] + 5000, batch["target"])
        with self.assertRaisesRegex(oa.Error, "numbers of another size"):
            self.made(Floats(), oa.Compose([t.Bands(2), t.RandomCrop(20)]), {"target": oa.Image(scale=2)})

    def test_wherever_samples_come_from(self):
        """Folders, tar and Parquet: each gives what wrap() does, with a caption beside."""
        data = Pairs()
        want = self.all_of(self.made(data, WHOLE), "target", 1)
        for folder in ("image", "target"):
            os.makedirs(f"{self.work}/pairs/{folder}", exist_ok=True)
        with tarfile.open(f"{self.work}/pairs.tar", "w") as shard:
            for index in range(COUNT):
                sample = data[index]
                files = {"image.png": file_of(sample["image"]), "target.jpg": sample["target"], "txt": sample["caption"].encode()}
                for name, value in files.items():
                    member = tarfile.TarInfo(f"{index:03}.{name}")
                    member.size = len(value)
                    shard.addfile(member, io.BytesIO(value))
                for name, kind in (("image", "image.png"), ("target", "target.jpg")):
                    with open(f"{self.work}/pairs/{name}/{index:03}.{kind[-3:]}", "wb") as file:
                        file.write(files[kind])
        self.assert_same(self.all_of(self.made(oa.from_folders({"image": f"{self.work}/pairs/image", "target": f"{self.work}/pairs/target"}, images="target", keep=5), WHOLE), "target", 1), want)
        shards = oa.from_tar(f"{self.work}/pairs.tar", {"image": "image.png", "target": "target.jpg", "caption": "txt"}, images={"target": oa.Image()}, ragged={"caption": 60})
        loader = self.made(shards, WHOLE)
        self.assert_same(self.all_of(loader, "target", 1), want)
        for batch in loader:
            self.assertEqual(batch["caption"].strings(), [f"a photograph {index}" for index in batch.ids.tolist()])

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "not tested: no pyarrow")
    def test_parquet(self):
        import pyarrow
        import pyarrow.parquet
        data = Pairs()
        want = self.all_of(self.made(data, WHOLE), "target", 1)
        rows = [{"image": file_of(data[index]["image"]), "target": data[index]["target"]} for index in range(COUNT)]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), f"{self.work}/pairs.parquet")
        self.assert_same(self.all_of(self.made(oa.from_parquet(f"{self.work}/pairs.parquet", images="target", keep=5), WHOLE), "target", 1), want)

    def test_tuples(self):
        end = [t.ToTensor(), t.Normalize(0.5, 0.5)]
        with oa.Loader(oa.wrap(Tuples(), keep=5, images={"1": oa.Image(normalize=False)}), oa.Compose([*WHOLE, *end]), BATCH, socket=self.socket, as_="numpy") as loader:
            for image, other in loader:
                np.testing.assert_allclose(image * 0.5 + 0.5, other, atol=1e-6)

    def test_what_is_wrong(self):
        for target, why in ((photo(0, 1, 2), "target: 142 x 100, not 1 x \\(71 x 50\\)"), (b"nothing", "target: "), (file_of(photo(0))[:300], "target: ")):
            with self.assertRaisesRegex(SampleError, why):
                list(self.made(Given(target), WHOLE))
        with self.assertRaisesRegex(SampleError, "target: 71 x 50, not 4 x \\(71 x 50\\)"):
            list(self.made(Given(photo(0)), WHOLE, {"target": oa.Image(scale=4)}))
        with self.assertRaisesRegex(oa.Error, "random_rotation|rotate.*is larger than the first one"):
            self.made(Pairs(2), [t.RandomRotation(20), t.CenterCrop(30)], {"target": oa.Image(scale=2)})
        with self.assertRaisesRegex(oa.Error, "rand_augment.*without its colours"):
            self.made(Pairs(), [t.RandAugment(), t.CenterCrop(30)], {"target": oa.Image(colors=False)})
        with self.assertRaisesRegex(oa.Error, "mixup and cutmix"):
            self.made(Pairs(), oa.Compose([t.CenterCrop(30), t.PILToTensor(), t.CutMix(num_classes=COUNT)]))
        with self.assertRaisesRegex(oa.Error, "images= names 'other'"):
            self.made(Pairs(), WHOLE, "other")
        with self.assertRaisesRegex(oa.Error, "give the Loader a pipeline"):
            oa.Loader(oa.wrap(Pairs(), images="target", keep=5), socket=self.socket)
        for wrong in ({"scale": 0}, {"scale": 1.5}, {"scale": 17}, {"normalize": 3}, {"normalize": ("a", 1)}, {"normalize": (None, 1)}):
            with self.assertRaises(ArgumentError):
                oa.Image(**wrong)
        with self.assertRaisesRegex(ArgumentError, "both name 'target'"):
            oa.wrap(Pairs(), masks="target", images="target")
        with self.assertRaisesRegex(ArgumentError, "images is 3: the name of a field"):
            oa.wrap(Pairs(), images=3)
        with self.assertRaisesRegex(ArgumentError, "oneaccess.Image"):
            oa.wrap(Pairs(), images={"target": 4})


if __name__ == "__main__":
    unittest.main()
