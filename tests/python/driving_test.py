# SPDX-License-Identifier: Apache-2.0
"""Scans and boxes of KITTI and nuScenes on disk, against what OpenPCDet and nuscenes-devkit compute of the same files, a detector's loop over
them, and labels of points (SemanticKITTI). nuscenes.json is what nuscenes-devkit 1.2.0 says of write_nuscenes(): get_sample_data(),
box_velocity() in the lidar's coordinates, quaternion_yaw(), the matrices from the lidar to a camera, and of from_file_multisweep(nsweeps=4)
the number of points and the sums of x, y, z, intensity and time."""

import io
import json
import pathlib
import shutil
import sys
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"driving_test: skipped: {missing}")
    sys.exit(77)

import driving_samples as samples
import oneaccess as oa
import shard_files
from oneaccess import transforms as t
from oneaccess.errors import ArgumentError, DatasetError, MissingError, SampleError
from support import PoolCase

# By OpenPCDet's Calibration, Object3d and get_infos(), as float32: gt_boxes_lidar, and the levels.
BOXES = ([[46.98807, 0.6718691, -0.4621549, 3.64, 1.67, 1.65, 0.01920367], [22.38638, -2.434821, -0.3570435, 1.65, 0.47, 1.72, 0.7792037],
          [23.39729, 5.887798, -0.5985685, 0.3, 0.38, 1.6, -1.540796]],
         [[12.28995, -4.183338, -0.8660601, 3.9, 1.6, 1.45, -4.670796]], [])
LEVELS = ([0, 1, 2], [-1], [])
CLASSES = ([0, 2, 1], [0], [])
SEEN = ((155, 30606), (164, 34287))     # by get_fov_flag(): how many points, and the sum of their numbers
DEVKIT = json.loads(pathlib.Path(__file__).with_name("nuscenes.json").read_text(encoding="utf-8"))
SCANS = [t.PointCloud(500, 4, columns=4, padding="ragged")]


class DrivingTest(PoolCase):
    settings = {"memory": "1G"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        samples.write_kitti(cls.work / "kitti")
        picture = io.BytesIO()
        PIL.Image.new("RGB", (32, 24), (200, 100, 0)).save(picture, "JPEG")
        samples.write_nuscenes(cls.work / "nuscenes", picture.getvalue())

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
        with self.assertRaisesRegex(ArgumentError, "has None for a path"):
            oa.from_nuscenes(None)
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

    def nuscenes(self, *args, **options):
        return oa.from_nuscenes(self.work / "nuscenes", *args, keep=3, **{"index": self.work / "index", "version": "v1.0-mini", **options})

    def test_nuscenes(self):
        """Key frames with the scans before them, boxes, and a camera, as the devkit has them."""
        data = self.nuscenes("mini", sweeps=4, cameras="CAM_FRONT")
        pipeline = oa.views(oa.Compose([t.PointCloud(500, 5, columns=5, padding="ragged")]), CAM_FRONT=oa.Compose([t.Resize((12, 16)), t.ToTensor()]))
        seen = []
        for batch in self.batches(data, pipeline):
            self.assertEqual(batch["CAM_FRONT"].shape[1:], (3, 12, 16))
            for row, token in enumerate(batch["token"]):
                seen.append(token)
                wanted = DEVKIT[token]
                kinds, counts, attributes = ([box[at] for box in wanted["boxes"]] for at in range(3))
                np.testing.assert_allclose(batch["boxes"].list()[row], np.array([box[3:] for box in wanted["boxes"]]), atol=1e-5)
                self.assertEqual([data.classes[number] for number in batch["classes"].list()[row]], kinds)
                self.assertEqual(batch["num_lidar_pts"].list()[row].tolist(), counts)
                self.assertEqual([data.attributes[number] if number >= 0 else "" for number in batch["attributes"].list()[row]], attributes)
                np.testing.assert_allclose(batch["lidar_to_camera"][row, 0], wanted["CAM_FRONT"], atol=1e-6)
                self.assertEqual(batch["intrinsics"][row, 0, 0].tolist(), [1266.4, 0, 816.2])
                points = batch["points"].list()[row].astype(np.float64)
                points = points[(points[:, 4] > 0) | (np.abs(points[:, :2]) >= 1).any(1)]   # the devkit has none of the car itself in key frames, too
                np.testing.assert_allclose([len(points), *points.sum(0)], wanted["points"], rtol=1e-5, atol=1e-3)
                self.assertEqual(len(np.unique(points[:, 4])), 1 if batch["timestamp"][row] % 10 ** 6 == 0 else 4)
        self.assertEqual(sorted(seen), sorted(DEVKIT))
        self.assertEqual(data.tokens, list(DEVKIT))

    def test_parts_of_nuscenes(self):
        self.assertEqual([len(self.nuscenes(split)) for split in ("mini_train", "mini_val", ["scene-0103"], "mini")], [3, 3, 3, 6])
        data = self.nuscenes(["scene-0061"], classes=["animal", "pedestrian"], fields=["boxes", "classes", "ego_to_global"], min_points=8)
        for batch in self.batches(data, oa.Compose([t.PointCloud(500, 5, columns=5, padding="ragged")])):
            for row, number in enumerate(batch.ids):
                np.testing.assert_array_equal(batch["points"].list()[row], samples.sweep(0, 4 * number))
                self.assertEqual(batch["classes"].list()[row].tolist(), [[], [0], [0]][number])
                np.testing.assert_allclose(batch["ego_to_global"][row, :3, 3], [411.3 + 3.2 * number, 1180.9 - .96 * number, .1])

    def test_labels_of_nuscenes(self):
        """nuScenes-lidarseg: classes are those of the devkit's mapper, such as 17, vehicle.car, which is 4."""
        learned = np.array([0, 0, 7, 7, 7, 0, 7, 0, 0, 1, 0, 0, 8, 0, 2, 3, 3, 4, 5, 0, 0, 6, 9, 10, 11, 12, 13, 14, 15, 0, 16, 0])
        ops = oa.Compose([t.PointCloud(500, 6, columns=6, padding="ragged"), t.PointShuffle()])
        for labels, sweeps, numbers in (("classes", None, learned), ("raw", 2, np.arange(32)), ({17: 1}, None, np.arange(32) == 17)):
            for batch in self.batches(self.nuscenes(["scene-0061"], labels=labels, sweeps=sweeps, fields=["boxes"]), ops):
                for points, number in zip(batch["points"].list(), batch.ids):
                    was, wanted = samples.sweep(0, 4 * number), numbers[samples.labels_of_sweep(0, 4 * number)]
                    own = points if sweeps is None else points[points[:, 4] == 0]
                    self.assertTrue(sweeps is None or not points[points[:, 4] > 0, 5].any())
                    key = [np.lexsort(rows[:, 3::-1].T) for rows in (own, was)]
                    np.testing.assert_array_equal(own[key[0], :4], was[key[1], :4])
                    np.testing.assert_array_equal(own[key[0], 5], wanted[key[1]])
        (path,) = (self.work / "nuscenes").rglob(f"{samples._token('LIDAR_TOP', 1, 8)}_lidarseg.bin")
        was = path.read_bytes()
        path.unlink()
        with self.assertRaisesRegex(MissingError, "give labels=None without nuScenes-lidarseg"):
            self.nuscenes("mini", labels="raw")
        path.write_bytes(was[1:])
        with self.assertRaisesRegex(SampleError, "has 76 labels, and the scan 77 points"):
            next(self.batches(self.nuscenes(["scene-0103"], labels="raw"), ops, batch_size=3))
        path.write_bytes(was)

    def test_tables_of_nuscenes(self):
        """Read once, and again when they were written to, or what was kept is damaged."""
        root, index = self.work / "other", self.work / "other_index"
        shutil.copytree(self.work / "nuscenes", root)
        table = root / "v1.0-mini/category.json"

        def classes(**options):
            return oa.from_nuscenes(root, "mini_val", index=index, **options).dataset.objects["classes"].tolist()

        before = classes()
        (kept,) = index.glob("*/boxes.npy")
        kept.write_bytes(kept.read_bytes()[:150])
        self.assertEqual(classes(), before)
        table.write_text(table.read_text().replace("vehicle.car", "vehicle.truck"))
        self.assertEqual(classes(classes=["truck"]), [0, 0, 0])
        self.assertEqual(len(list(index.glob("*/boxes.npy"))), 2)
        def numbered(name, **numbers):
            return json.dumps([{**record, **numbers} for record in json.loads((root / f"v1.0-mini/{name}.json").read_text())])

        files = (root / "v1.0-mini/sample_data.json").read_text()
        for name, text, why in (("sample_data", files.replace("samples/LIDAR_TOP/", "samples/../../"), "not below the data set's folder"),
                                ("sample_data", files.replace("samples/LIDAR_TOP/", "/"), "not below the data set's folder"), ("category", "[{\"token\": \"a\"}]", "record 0 has no 'name'"), ("category", "[", "was cut off"), ("category", "{}", "begins with no list"), ("category", "[" * 100000, "RecursionError"),
                                ("category", "[]", "which its table does not have"), ("ego_pose", "[]", "lacks poses"),
                                *((name, numbered(name, rotation=[0, 0, 0, 0]), "a rotation is no quaternion") for name in ("calibrated_sensor", "ego_pose", "sample_annotation")),
                                ("calibrated_sensor", numbered("calibrated_sensor", translation=[0, 0, float("nan")]), "something else than numbers"),
                                ("sample_annotation", numbered("sample_annotation", size=[1, 2, 1e300]), "a size that is no number"),
                                ("scene", json.dumps([{"token": samples._token("scene", 0), "name": 3}, {"token": samples._token("scene", 1), "name": 4}]),
                                 "something else than nuScenes'")):
            with self.subTest(why):
                was = (root / f"v1.0-mini/{name}.json").read_text()
                (root / f"v1.0-mini/{name}.json").write_text(text)
                with self.assertRaisesRegex(DatasetError, why):
                    classes()
                (root / f"v1.0-mini/{name}.json").write_text(was)

    def test_what_is_wrong_with_nuscenes(self):
        for arguments, options, why in ((["train"], {"version": None}, "v1.0-trainval/attribute.json is not there"), (["valid"], {}, "split is 'valid'"),
                                        ([["scene-9"]], {}, "no scene of v1.0-mini"), (["mini"], {"classes": ["cars"]}, "names 'cars'"),
                                        (["mini"], {"cameras": "front"}, "there are: CAM_BACK, CAM_FRONT"), (["mini"], {"sweeps": 0}, "sweeps is 0"), ([5], {}, "split names '5'"), (["mini"], {"min_points": "1"}, "min_points is '1'"),
                                        (["mini"], {"fields": ["boxes", "intrinsics"]}, "with cameras= more"), (["mini"], {"fields": ["classes"]}, "must be among them")):
            with self.subTest(why), self.assertRaisesRegex((ArgumentError, MissingError), why):
                self.nuscenes(*arguments, **options)

    def test_records(self):
        """Points and boxes of tf.Example, without a pool."""
        root, boxes = self.work / "records", [np.array(each, np.float32).reshape(-1, 7) for each in BOXES]
        root.mkdir()
        shard_files.write_tfrecord(root / "scans-00000-of-00001.tfrecord", [shard_files.example(
            {"scan": samples.scan(at).tobytes(), "boxes": boxes[at].ravel().tolist(), "kinds": CLASSES[at]}) for at in range(3)])
        data = oa.from_tfrecord(root, {"points": "scan", "boxes": ("boxes", (None, 7)), "classes": "kinds"}, ragged={"boxes": 9, "classes": 9},
                                boxes=["boxes", "classes"])
        for batch in self.batches(data, oa.Compose([*SCANS, t.PointFlip("y", p=1)])):
            for row, number in enumerate(batch.ids):
                np.testing.assert_array_equal(batch["points"].list()[row], samples.scan(number) * np.float32([1, -1, 1, 1]))
                np.testing.assert_allclose(batch["boxes"].list()[row][:, :6], boxes[number][:, :6] * np.float32([1, -1, 1, 1, 1, 1]))
                self.assertEqual(batch["classes"].list()[row].tolist(), CLASSES[number])

    def test_labels_of_points(self):
        root, of_points = self.work / "semantic", {}
        for sequence, frame in (("00", 0), ("00", 1), ("08", 0)):
            points = samples.scan(frame)
            points[:, 3] = np.arange(len(points)) / 1024
            labels = np.array([0, 10, 252, 99, 40, 1234], np.uint32)[np.arange(len(points)) * 7 % 6]
            of_points[sequence, f"{frame:06}"] = points, labels
            for part, suffix, data in (("velodyne", "bin", points), ("labels", "label", labels | 5 << 16)):
                (root / "sequences" / sequence / part).mkdir(parents=True, exist_ok=True)
                (root / "sequences" / sequence / part / f"{frame:06}.{suffix}").write_bytes(data.tobytes())
        ops = oa.Compose([t.PointCloud(300, 5, columns=5), t.PointFlip("x"), t.PointRotation(), t.PointShuffle()])
        learned = {0: 0, 10: 1, 252: 1, 99: 0, 40: 9, 1234: 0}
        for labels, numbers in (("classes", learned), ("raw", {label: label for label in learned}), ({10: 3}, {**dict.fromkeys(learned, 0), 10: 3})):
            seen = []
            for batch in self.batches(oa.from_semantickitti(root, ["00", "08"], labels=labels, keep=3), ops):
                for points, name in zip(batch["points"], zip(batch["sequence"], batch["frame"])):
                    seen.append(name)
                    at = np.rint(points[:, 3] * 1024).astype(int)
                    self.assertEqual(len(set(at)), 300)
                    np.testing.assert_array_equal(points[:, 4], [numbers[label] for label in of_points[name][1][at]])
            self.assertEqual(sorted(seen), sorted(of_points))
        self.assertEqual(len(oa.from_semantickitti(root, "val")), 1)
        (root / "sequences/08/labels/000000.label").unlink()
        with self.assertRaisesRegex(MissingError, "give labels=None"):
            oa.from_semantickitti(root, "val")
        for batch in self.batches(oa.from_semantickitti(root, "val", labels=None, keep=3), oa.Compose([t.PointCloud(500, 4, columns=4, padding="ragged")])):
            np.testing.assert_array_equal(batch["points"].list()[0], of_points["08", "000000"][0])
        for split, labels, why in (("train", None, "there is no .*01"), ("valid", None, "split is 'valid'"), ("val", "some", "labels is 'some'"), ("val", {-1: 1}, "labels is {-1: 1}"),
                                   (8, "raw", "split is 8")):
            with self.assertRaisesRegex((ArgumentError, DatasetError), why):
                oa.from_semantickitti(root, split, labels=labels)

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
