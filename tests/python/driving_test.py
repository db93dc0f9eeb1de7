# SPDX-License-Identifier: Apache-2.0
"""Scans and boxes of KITTI on disk, against what OpenPCDet computes of the same files, and a detector's loop over them."""

import shutil
import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"driving_test: skipped: {missing}")
    sys.exit(77)

import driving_samples as samples
import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import ArgumentError, DatasetError, MissingError
from support import PoolCase

# By OpenPCDet's Calibration, Object3d and get_infos(), as float32: gt_boxes_lidar, and the levels.
BOXES = ([[46.98807, 0.6718691, -0.4621549, 3.64, 1.67, 1.65, 0.01920367], [22.38638, -2.434821, -0.3570435, 1.65, 0.47, 1.72, 0.7792037],
          [23.39729, 5.887798, -0.5985685, 0.3, 0.38, 1.6, -1.540796]],
         [[12.28995, -4.183338, -0.8660601, 3.9, 1.6, 1.45, -4.670796]], [])
LEVELS = ([0, 1, 2], [-1], [])
CLASSES = ([0, 2, 1], [0], [])
SEEN = ((155, 30606), (164, 34287))     # by get_fov_flag(): how many points, and the sum of their numbers
SCANS = [t.PointCloud(500, 4, columns=4, padding="ragged")]


class DrivingTest(PoolCase):
    settings = {"memory": "1G"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        samples.write_kitti(cls.work / "kitti")

    def batches(self, data, pipeline, **options):
        loader = self.open(data, pipeline, **{"batch_size": 2, "as_": "numpy", "shuffle": False, "epochs": 1, **options})
        yield from loader
        loader.close()

    def kitti(self, *args, **options):
        return oa.from_kitti(self.work / "kitti", *args, keep=3, **options)

    def test_kitti(self):
        data, seen = self.kitti("training"), []
        self.assertEqual((data.classes, data.frames), (("Car", "Pedestrian", "Cyclist"), ["000007", "000008", "000009"]))
        for batch in self.batches(data, oa.Compose(SCANS)):
            self.assertEqual(batch["classes"].values.dtype, np.int64)
            for row, number in enumerate(batch.ids):
                wanted = np.array(BOXES[number], np.float64).reshape(-1, 7)
                wanted[:, 6] -= np.floor(wanted[:, 6] / (2 * np.pi) + .5) * 2 * np.pi
                np.testing.assert_allclose(batch["boxes"].list()[row], wanted, atol=1e-5)
                self.assertEqual(batch["classes"].list()[row].tolist(), CLASSES[number])
                self.assertEqual(batch["difficulty"].list()[row].tolist(), LEVELS[number])
                self.assertEqual(batch["frame"][row], number + 7)
                points, scan = batch["points"].list()[row], samples.scan(number)
                which = [at for at in range(len(scan)) if (points == scan[at]).all(1).any()]
                if number < 2:
                    self.assertEqual((len(points), sum(which)), SEEN[number])
                seen.append(number)
        self.assertEqual(sorted(seen), [0, 1, 2])

    def test_parts(self):
        data = self.kitti("val", classes=["Pedestrian"], fields=["frame", "classes", "boxes"], fov=False)
        for batch in self.batches(data, oa.Compose(SCANS)):
            self.assertEqual(batch["frame"].tolist(), [9, 7])
            self.assertEqual([each.tolist() for each in batch["classes"].list()], [[], [0]])
            np.testing.assert_array_equal(np.sort(batch["points"].list()[1], 0), np.sort(samples.scan(0), 0))
        self.assertEqual(len(self.kitti(["000008"])), 1)
        self.assertEqual(len(self.kitti(self.work / "kitti" / "ImageSets" / "val.txt")), 2)

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(ArgumentError, "train.txt is not there"):
            self.kitti("train")
        with self.assertRaisesRegex(MissingError, "000077"):
            self.kitti(["000077"])
        with self.assertRaisesRegex(ArgumentError, "\"boxes\" must be among them"):
            self.kitti("val", fields="classes")
        with self.assertRaisesRegex(ArgumentError, "there are: boxes"):
            self.kitti("val", fields=["boxes", "boxs"])
        broken = self.work / "broken"
        shutil.copytree(self.work / "kitti", broken)
        shutil.rmtree(broken / "training/image_2")
        with self.assertRaisesRegex(MissingError, "give fov=False"):
            oa.from_kitti(broken, "val")
        (broken / "training/label_2/000007.txt").write_text("Car 0 0 1 2 3\n")
        with self.assertRaisesRegex(DatasetError, "line 1: not 14 numbers"):
            oa.from_kitti(broken, "val", fov=False)
        (broken / "training/calib/000009.txt").write_text("P2: 1 2 3\n")
        with self.assertRaisesRegex(DatasetError, "000009.txt is no calibration"):
            oa.from_kitti(broken, "val", fov=False)

    def test_a_detector(self):
        """Augmented as in training: what is in a box stays in it."""
        ops = [*SCANS, t.PointFlip("y"), t.PointRotation(45), t.PointScale((0.95, 1.05)), t.PointRange((0, -40, -3, 70.4, 40, 1)), t.PointShuffle()]
        for batch in self.batches(self.kitti("training"), oa.Compose(ops), order="seeded", seed=2, shuffle=None):
            for points, boxes, classes, number in zip(batch["points"].list(), batch["boxes"].list(), batch["classes"].list(), batch.ids):
                self.assertEqual(len(boxes), len(classes))
                was = np.array(BOXES[number]).reshape(-1, 7)
                for box, kind in zip(boxes, classes):
                    one = was[CLASSES[number].index(kind)]
                    times = box[3] / one[3]
                    np.testing.assert_allclose(box[3:6], one[3:6] * times, rtol=1e-5)
                    self.assertTrue(.95 - 1e-6 <= times <= 1.05 + 1e-6)
                    np.testing.assert_allclose(np.hypot(*box[:2]), np.hypot(*one[:2]) * times, rtol=1e-5)
                self.assertTrue((points[:, 0] >= 0).all())


if __name__ == "__main__":
    unittest.main()
