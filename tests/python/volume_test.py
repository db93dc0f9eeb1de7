# SPDX-License-Identifier: Apache-2.0
"""Volumes and labels beside them: of folders, lists, shards and arrays. What each op does is tests/pipeline/volume_test.c's."""

import gzip
import io
import json
import struct
import sys
import tarfile
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"volume_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import DatasetError, SampleError, TransformError
from support import PoolCase

COUNT, DEPTH, HEIGHT, WIDTH = 8, 12, 20, 17
FILL = -3


def volume_of(index, channels=1):
    """Each number says where it is, and of which sample."""
    c, z, y, x = np.ogrid[:channels, :DEPTH, :HEIGHT, :WIDTH]
    return (c * 8000 + z * 600 + y * 25 + x + index % 2 * 4).astype(np.int16)


def labels_of(index):
    labels = np.zeros((DEPTH, HEIGHT, WIDTH), np.uint8)
    labels[3:6, 10:14, 9:12] = 1 + index
    labels[5, 12, 10] = 200
    return labels


def nifti(array):
    """array: [D, H, W] or [C, D, H, W], of int16 or uint8."""
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, array.ndim, *array.shape[::-1], *[1] * (7 - array.ndim))
    struct.pack_into("<2h", head, 70, 4 if array.dtype == np.int16 else 2, 8 * array.itemsize)
    struct.pack_into("<3f", head, 108, 352, 0, 0)
    head[344:348] = b"n+1\0"
    return bytes(head) + array.tobytes()


class Arrays:
    """A data set of arrays: two volumes of float32 each, and labels."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"image": volume_of(index, 2).astype(np.float32), "label": index, "mask": labels_of(index)}


class VolumeTest(PoolCase):
    settings = {"memory": "1G"}
    loader = None

    def setUp(self):
        super().setUp()
        self.root = self.work / self.id()
        self.root.mkdir()

    def made(self, dataset, ops, **options):
        if self.loader is not None:
            self.loader.close()
        self.loader = self.open(dataset, oa.Compose(ops), **{"batch_size": 4, "as_": "numpy", "shuffle": False, "epochs": 1, **options})
        return self.loader

    def check(self, loader, channels=1):
        """Each sample is a part of its volume, its labels the same part: how many labels stand in the middle."""
        seen, middles = [], []
        for batch in loader:
            for number, image, mask in zip(batch.ids, batch["image"], batch["mask"]):
                volume, labels = volume_of(number, channels), labels_of(number)
                self.assertEqual((image.dtype, mask.dtype, image.shape[1:]), (np.float32, np.uint8, mask.shape))
                first = int(image.max() - number % 2 * 4) - (channels - 1) * 8000
                z, y, x = first // 600 + 1 - image.shape[1], first % 600 // 25 + 1 - image.shape[2], first % 600 % 25 + 1 - image.shape[3]
                np.testing.assert_array_equal(image, volume[:, z:z + image.shape[1], y:y + image.shape[2], x:x + image.shape[3]])
                np.testing.assert_array_equal(mask, labels[z:z + image.shape[1], y:y + image.shape[2], x:x + image.shape[3]])
                seen.append(int(number))
                middles.append(int(mask[tuple(side // 2 for side in mask.shape)]))
        self.assertEqual(sorted(seen), list(range(COUNT)))
        return middles

    def write(self, images, labels):
        for folder, make in ((images, volume_of), (labels, labels_of)):
            (self.root / folder).mkdir()
            for index in range(COUNT):
                array = make(index)
                (self.root / folder / f"case_{index:03}.nii.gz").write_bytes(gzip.compress(nifti(array[0] if array.ndim == 4 else array)))

    def test_folders_of_volumes_and_labels(self):
        self.write("imagesTr", "labelsTr")
        data = oa.from_folders({"image": self.root / "imagesTr", "mask": self.root / "labelsTr"}, masks="mask")
        self.check(self.made(data, [t.Volume(), t.RandomCrop3d((5, 9, 8))]))
        middles = self.check(self.made(data, [t.Volume(), t.RandomCropByLabel((4, 6, 6), pos=1, neg=0)], seed=3))
        self.assertTrue(all(middles))
        self.assertFalse(any(self.check(self.made(data, [t.Volume(), t.RandomCropByLabel((4, 6, 6), pos=0)]))))
        # Flipped and turned, the labels with it: what they are of says where they were.
        ops = [t.Volume(fill=FILL), t.CenterCrop3d(20), t.RandomFlip3d((0, 2)), t.RandomRotate90(), t.RandomScaleIntensity((0.5, 0.5))]
        for batch in self.made(data, ops):
            for number, image, mask in zip(batch.ids, batch["image"][:, 0], batch["mask"]):
                outside = image == np.float32(FILL * 1.5)
                self.assertEqual(outside.sum(), 20 ** 3 - DEPTH * HEIGHT * WIDTH)
                place = np.where(outside, 0, image / 1.5 - number % 2 * 4).astype(int)
                np.testing.assert_array_equal(mask, np.where(outside, 0, labels_of(number)[place // 600, place % 600 // 25, place % 600 % 25]))

    def test_a_folder_without_labels(self):
        self.write("images", "labels")
        for batch in self.made(self.root / "images", [t.Volume(scale=0.5, clamp=(0, 2000)), t.CenterCrop3d((2, 4, 6)), t.Normalize(100, 4), t.Cast("float16")]):
            for number, image in zip(batch.ids, batch[0]):
                wanted = (np.minimum(volume_of(number)[:, 5:7, 8:12, 5:11] * np.float32(0.5), 2000) - 100) / 4
                np.testing.assert_array_equal(image, wanted.astype(np.float16))

    def test_arrays(self):
        data = oa.wrap(Arrays(), masks="mask", columns=["image", "label", "mask"])
        self.check(self.made(data, [t.Volume(2), t.RandomCropByLabel((5, 5, 5))]), 2)

    def test_shards_and_lists(self):
        with tarfile.open(self.root / "volumes.tar", "w") as archive:
            for index in range(COUNT):
                for suffix, data in (("image.nii.gz", gzip.compress(nifti(volume_of(index)[0]))), ("mask.nii", nifti(labels_of(index)))):
                    member = tarfile.TarInfo(f"{index:04}.{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        data = oa.from_tar(self.root / "volumes.tar", {"image": "image.nii.gz", "mask": "mask.nii"}, masks="mask")
        self.check(self.made(data, [t.Volume(), t.RandomCrop3d(6)]))
        self.write("images", "labels")
        rows = "".join(f"images/case_{index:03}.nii.gz,labels/case_{index:03}.nii.gz\n" for index in range(COUNT))
        (self.root / "volumes.csv").write_text("image,mask\n" + rows)
        data = oa.from_csv(self.root / "volumes.csv", ["image", "mask"], files=["image", "mask"], masks="mask")
        self.check(self.made(data, [t.Volume(), t.RandomCrop3d(6)]))

    def test_a_list_of_the_decathlon(self):
        self.write("imagesTr", "labelsTr")
        cases = [{"image": f"./imagesTr/case_{index:03}.nii.gz", "label": f"./labelsTr/case_{index:03}.nii.gz"} for index in range(COUNT)]
        lists = {"name": "Spleen", "labels": {"0": "background", "1": "spleen"}, "training": cases, "test": [case["image"] for case in cases[:3]], "validation": []}
        (self.root / "dataset.json").write_text(json.dumps(lists))
        data = oa.from_decathlon(self.root)
        self.check(self.made(data, [t.Volume(), t.RandomCropByLabel(5)]))
        self.assertEqual(data.dataset.names[1], "imagesTr/case_001.nii.gz")
        data = oa.from_decathlon(self.root / "dataset.json", "test")
        self.assertEqual(sum(len(batch.ids) for batch in self.made(data, [t.Volume(), t.CenterCrop3d(5)])), 3)
        for part, change, why in (("training", {"training": [*cases, "./imagesTr/case_000.nii.gz"]}, "all of one kind"), ("validation", {}, "its lists are: training, test"),
                                  ("training", {"training": [{"image": ["a", "b"], "label": "c"}]}, "to be a file"), ("test", {"test": ["nowhere.nii.gz"]}, "names .*nowhere.nii.gz"),
                                  ("training", {"training": [5]}, "to be a file")):
            (self.root / "dataset.json").write_text(json.dumps({**lists, **change}))
            with self.assertRaisesRegex(DatasetError, why):
                oa.from_decathlon(self.root, part)
        (self.root / "dataset.json").write_text("{")
        with self.assertRaisesRegex(DatasetError, "is no JSON"):
            oa.from_decathlon(self.root)

    def test_jobs_draw_alike(self):
        """By seed and sample."""
        self.write("images", "labels")
        data = oa.from_folders({"image": self.root / "images", "mask": self.root / "labels"}, masks="mask")
        ops = [t.Volume(), t.RandomCropByLabel(4), t.RandomFlip3d(0), t.RandomShiftIntensity(100), t.GaussianNoise(0, (0, 5), clip=False)]
        one, other = ({int(number): image.copy() for batch in self.made(data, ops, seed=seed) for number, image in zip(batch.ids, batch["image"])} for seed in (9, 9))
        for number, image in one.items():
            np.testing.assert_array_equal(image, other[number])

    def test_what_is_wrong_is_said(self):
        self.write("images", "labels")
        (self.root / "labels" / "case_000.nii.gz").write_bytes(gzip.compress(nifti(labels_of(0)[1:])))
        data = oa.from_folders({"image": self.root / "images", "mask": self.root / "labels"}, masks="mask")
        with self.assertRaisesRegex(SampleError, "labels 1 x 11 x 20 x 17, not 12 x 20 x 17"):
            self.check(self.made(data, [t.Volume(), t.RandomCrop3d(4)]))
        with self.assertRaisesRegex(SampleError, "it has 1 volumes, and not 2"):
            list(self.made(self.root / "images", [t.Volume(2), t.RandomCrop3d(4)]))
        for ops, why in (([t.Volume()], "random_crop_3d"), ([t.Volume(), t.RandomCropByLabel(4)], "volume of labels"),
                         ([t.RandomCrop3d(4)], "works on volumes"), ([t.Volume(), t.Resize(8)], "op of volumes")):
            with self.assertRaisesRegex((TransformError, oa.errors.Error), why):
                self.made(self.root / "images", ops)


if __name__ == "__main__":
    unittest.main()
