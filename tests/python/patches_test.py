# SPDX-License-Identifier: Apache-2.0
"""Images as sequences of patches, of folders and of rows with texts beside them: held against Pillow's resize and NumPy, and against
transformers' image processors where they are installed (recorded: tests/pipeline/golden_patches.tsv)."""

import io
import json
import os
import pathlib
import re
import sys
import unittest

os.environ.setdefault("USE_TF", "0")  # transformers would look for TensorFlow

try:
    import numpy as np
    import torch
    from PIL import Image
except ImportError as missing:
    print(f"patches_test: skipped: {missing}")
    sys.exit(77)
try:
    import transformers
    REAL = hasattr(transformers, "Qwen2VLImageProcessorPil")
except ImportError:
    REAL = False

import oneaccess as oa
from oneaccess import ending
from oneaccess.errors import ArgumentError, SampleError, TransformError
from oneaccess.transforms import CLIP_MEAN, CLIP_STD, Compose, Normalize, Patches, RandomHorizontalFlip, ToTensor, naflex, qwen_vl
from processors_test import likeness
from support import PoolCase

GOLDEN = pathlib.Path(os.environ["top_srcdir"]) / "tests/pipeline/golden_grids.tsv"
SIZES = [(1, 1), (9, 300), (300, 9), (14, 14), (15, 17), (28, 28), (64, 48), (333, 77), (77, 333), (120, 121), (500, 400), (31, 200)]


QWEN = qwen_vl(40000)


def sample(row):
    width, height = Image.open(io.BytesIO(row["image"])).size
    rows, columns = oa.patch_grid(QWEN, height, width)
    return {"image": row["image"], "ids": [7] * (rows * columns // 4), "text": row["text"]}


def picture(height, width):
    draws = np.random.default_rng(height * 1000 + width)
    small = draws.integers(0, 256, (max(1, height // 9), max(1, width // 9), 3), np.uint8)
    return Image.fromarray(small).resize((width, height), Image.BICUBIC)


def normalized(image, mean, std):
    values = np.asarray(image).astype(np.float32) / np.float32(255)
    return (values - np.float32(mean)) / np.float32(std)


def resized(image, height, width, how):
    """As Pillow 13 resizes it, whatever is installed: which side comes first is by what each loses."""
    down_first = image.height - height > 2 * max(image.width - width, 0)
    between = (image.width, height) if down_first else (width, image.height)
    return image.resize(between, how).resize((width, height), how)


def by_naflex(image, pipeline, patch):
    rows, columns = oa.patch_grid(pipeline, image.height, image.width)
    values = normalized(resized(image, rows * patch, columns * patch, Image.BILINEAR), 0.5, 0.5)
    return values.reshape(rows, patch, columns, patch, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)


def by_qwen(image, pipeline, patch=14, merge=2, times=2):
    rows, columns = oa.patch_grid(pipeline, image.height, image.width)
    values = normalized(resized(image, rows * patch, columns * patch, Image.BICUBIC), CLIP_MEAN, CLIP_STD)
    values = values.reshape(rows // merge, merge, patch, columns // merge, merge, patch, 3).transpose(0, 3, 1, 4, 6, 2, 5)
    values = np.repeat(values[:, :, :, :, :, None], times, 5)
    return values.reshape(rows * columns, -1)


class PatchesTest(PoolCase):
    settings = {"memory": "1G"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.work / "photographs"
        (cls.folder / "a").mkdir(parents=True)
        for at, size in enumerate(SIZES):
            picture(*size).save(cls.folder / f"a/{at:02}.png")
        cls.rows = cls.work / "rows.jsonl"
        cls.rows.write_text("".join(json.dumps({"image": f"photographs/a/{at:02}.png", "text": "x" * at}) + "\n" for at in range(len(SIZES))))

    def batches(self, pipeline, data=None, **options):
        options = {"order": "sequential", "socket": self.socket, "timeout": 600, **options}
        with oa.Loader(data or self.folder, pipeline, options.pop("batch_size", 5), **options) as loader:
            yield from loader

    def test_naflex(self):
        pipeline = naflex(60, 16)
        seen = 0
        for patches, labels, grids in self.batches(pipeline):
            self.assertEqual((tuple(patches.shape[1:]), patches.dtype, grids.dtype), ((60, 768), torch.float32, torch.int64))
            self.assertEqual(labels.tolist(), [0] * len(grids))
            self.assertEqual(patches.mask().sum(1).tolist(), patches.lengths.tolist())
            for at in range(len(grids)):
                want = by_naflex(picture(*SIZES[seen]), pipeline, 16)
                self.assertTrue(np.array_equal(patches[at].numpy(), want), SIZES[seen])
                self.assertFalse(patches.values[at, len(want):].any())
                self.assertEqual(tuple(grids[at].tolist()), oa.patch_grid(pipeline, *SIZES[seen]))
                seen += 1
        self.assertEqual(seen, len(SIZES))

    def test_qwen(self):
        pipeline = qwen_vl(50000)
        seen = 0
        for patches, _, grids in self.batches(pipeline):
            values, starts = patches.csr()
            self.assertEqual((tuple(values.shape), starts[-1]), ((int(grids.prod(1).sum()), 1176), len(values)))
            want = [by_qwen(picture(*size), pipeline) for size in SIZES[seen:seen + len(grids)]]
            self.assertTrue(np.array_equal(values.numpy(), np.concatenate(want)), seen)
            self.assertEqual(grids[:, 0].tolist(), [1] * len(grids))
            seen += len(grids)
        self.assertEqual(seen, len(SIZES))

    def test_other_arrays(self):
        """NumPy's, and values of two bytes."""
        pipeline = qwen_vl(50000, dtype="float16")
        first = next(self.batches(pipeline, as_="numpy"))
        want = by_qwen(picture(*SIZES[0]), pipeline).astype(np.float16)
        self.assertTrue(np.array_equal(first[0][0], want))
        self.assertEqual(first[0].mask()[0].sum(), len(want))
        self.assertEqual(type(first[2]), np.ndarray)

    def test_rows_with_texts(self):
        """A transform knows how many patches there will be."""
        for transform, names in ((None, ["image", "text"]), (sample, ["image", "ids", "text"])):
            rows = oa.from_jsonl(self.rows, files="image", transform=transform, random=False if transform else None,
                                 ragged={"text": 40, **({"ids": 200} if transform else {})})
            seen = 0
            for batch in self.batches(QWEN, rows, batch_size=4):
                self.assertEqual(list(batch.keys()), [*names, "grid"])
                for at in range(len(batch["grid"])):
                    self.assertTrue(np.array_equal(batch["image"][at].numpy(), by_qwen(picture(*SIZES[seen]), QWEN)), seen)
                    self.assertEqual(batch["text"][at], "x" * seen)
                    self.assertEqual(int(batch["grid"][at].prod()), int(batch["image"].lengths[at]))
                    if transform:
                        self.assertEqual(int(batch["ids"].lengths[at]) * 4, int(batch["image"].lengths[at]))
                    seen += 1
            self.assertEqual(seen, len(SIZES))

    def test_random_ops(self):
        """Flips before and behind are the same picture, and one job's draws are another's."""
        first = [batch for batch in self.batches(Compose([RandomHorizontalFlip(1.0), naflex(30)]))]
        second = [batch for batch in self.batches(naflex(30))]
        for one, other, (height, width) in zip(first[0][0], second[0][0], SIZES):
            columns = oa.patch_grid(naflex(30), height, width)[1]
            mirrored = other.reshape(-1, columns, 16, 16, 3).flip(1, 3).reshape(other.shape)
            self.assertLess(float((one - mirrored).abs().max()), 0.05)
        drawn = Compose([oa.transforms.RandomResizedCrop((70, 130)), RandomHorizontalFlip(), oa.transforms.ColorJitter(0.4), naflex(30)])
        a, b = ([batch for batch in self.batches(drawn, order="seeded", seed=3)] for _ in range(2))
        for one, other in zip(a, b):
            self.assertTrue(torch.equal(one[0].values, other[0].values))
            self.assertTrue(bool((one[2] == torch.tensor(oa.patch_grid(naflex(30), 70, 130))).all()))

    def test_a_narrow_image_is_a_bad_sample(self):
        folder = self.work / "narrow"
        folder.mkdir()
        picture(3, 700).save(folder / "a.png")
        picture(3, 600).save(folder / "b.png")
        with self.assertRaisesRegex(SampleError, "patches: over 200 times as long as wide"):
            list(self.batches(qwen_vl(50000), folder))
        skipped = [batch.ids.tolist() for batch in self.batches(qwen_vl(50000), folder, bad="skip")]
        self.assertEqual(skipped, [[1]])
        self.assertEqual(len(list(self.batches(naflex(20), folder))[0][0]), 2)

    def test_grids_are_those_of_transformers(self):
        for line in GOLDEN.read_text().splitlines():
            if line.startswith("#"):
                continue
            op, height, width, rows, columns = line.split("\t")
            patches = oa.transforms.Op("patches", **json.loads(f"{{{op}}}"))
            if rows == "0":
                with self.assertRaisesRegex(ArgumentError, "as long as narrow"):
                    oa.patch_grid(patches, int(height), int(width))
            else:
                self.assertEqual(oa.patch_grid(patches, int(height), int(width)), (int(rows), int(columns)), line)

    def test_what_is_no_grid(self):
        with self.assertRaisesRegex(ArgumentError, "has none"):
            oa.patch_grid(oa.imagenet_eval(), 3, 4)
        with self.assertRaisesRegex(ArgumentError, "has no patches"):
            oa.patch_grid(naflex(), 0, 4)

    def test_a_device_does_not_normalize_them(self):
        text = naflex(64).json
        self.assertEqual(ending.take_off(text), (text, None, "the zeros behind patches are no values to normalize"))

    def test_processors_are_translated(self):
        base = type(likeness("PilBackend", ("_preprocess", "resize", "rescale", "normalize")))
        same = {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
        half = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
        siglip = likeness("Siglip2ImageProcessorPil", ("preprocess", "_preprocess"), (base,), resample=2, patch_size=16, max_num_patches=64, **same, **half)
        self.assertEqual(oa.from_torchvision(siglip), naflex(64, interpolation="bilinear"))
        qwen = likeness("Qwen2VLImageProcessorPil", ("preprocess", "_preprocess", "resize"), (base,), resample=3, patch_size=14, merge_size=2,
                        temporal_patch_size=2, size={"shortest_edge": 3136, "longest_edge": 50000}, image_mean=CLIP_MEAN, image_std=CLIP_STD, **same)
        self.assertEqual(oa.from_torchvision(qwen), qwen_vl(50000))
        for processor, name, value, text in ((siglip, "do_resize", False, "whole patches"), (qwen, "size", {"height": 3, "width": 4}, "shortest_edge"),
                                             (siglip, "rescale_factor", 1.0, "rescale_factor")):
            before = getattr(processor, name)
            setattr(processor, name, value)
            with self.assertRaisesRegex(TransformError, text):
                oa.from_torchvision(processor)
            setattr(processor, name, before)
        vars(siglip).update(do_normalize=False, do_rescale=False)
        self.assertEqual(oa.from_torchvision(siglip).ops, (Patches(16, 64, interpolation="bilinear"),))
        self.assertEqual(Compose([Patches(), Normalize(0.5, 0.5), ToTensor()]).ops[0], Patches(16, 256))
        own = likeness("OwnImageProcessorPil", ("resize",), (type(qwen),), **vars(qwen))
        with self.assertRaisesRegex(TransformError, re.escape("resize() is OwnImageProcessorPil's own")):
            oa.from_torchvision(own)

    @unittest.skipUnless(REAL, "no transformers 5")
    def test_values_are_those_of_transformers(self):
        for name, settings in (("Siglip2", {}), ("Siglip2", {"patch_size": 14, "max_num_patches": 50, "do_normalize": False}),
                               ("Siglip2", {"resample": 3, "max_num_patches": 9}), ("Qwen2VL", {"max_pixels": 60000}),
                               ("Qwen2VL", {"patch_size": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "max_pixels": 40000}),
                               ("Qwen2VL", {"merge_size": 1, "temporal_patch_size": 1, "min_pixels": 200, "max_pixels": 9000})):
            processor, seen = getattr(transformers, f"{name}ImageProcessorPil")(**settings), 0
            with self.subTest(name=name, settings=settings):
                for patches, _, grids in self.batches(oa.from_torchvision(processor)):
                    theirs = processor([picture(*size) for size in SIZES[seen:seen + len(grids)]], return_tensors="pt")
                    seen += len(grids)
                    if name == "Siglip2":
                        self.assertTrue(torch.equal(theirs["pixel_values"], patches.values))
                        self.assertTrue(torch.equal(theirs["pixel_attention_mask"], patches.mask().int()))
                        self.assertTrue(torch.equal(theirs["spatial_shapes"], grids))
                    else:
                        self.assertTrue(torch.equal(theirs["pixel_values"], patches.csr()[0]))
                        self.assertTrue(torch.equal(theirs["image_grid_thw"], grids))
                self.assertEqual(seen, len(SIZES))


if __name__ == "__main__":
    unittest.main(verbosity=2)
