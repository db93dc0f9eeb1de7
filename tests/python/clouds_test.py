# SPDX-License-Identifier: Apache-2.0
"""Point clouds of folders, archives, shards, lists and wrapped data sets, against NumPy. What files of each kind give, and what each op does
and draws, is tests/pipeline/cloud_test.c's."""

import io
import json
import sys
import tarfile
import unittest
import zipfile

try:
    import numpy as np
except ImportError as missing:
    print(f"clouds_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import ArgumentError, PipelineError, SampleError
from support import PoolCase

COUNT, COLUMNS = 20, 5


def points_of(index):
    """float32 [n, 5], another n for each sample; the first number says which point of which sample it is."""
    n = 60 + 7 * (index % 5)
    at = np.arange(n, dtype=np.float32)[:, None]
    return np.hstack([at + 1000 * index, at % 13 - 6, at % 7 / 4, at / 64, 255 - at]).astype(np.float32)


def raw(points):
    return points.tobytes()


def npy(points):
    file = io.BytesIO()
    np.save(file, points.astype(np.float64))
    return file.getvalue()


def ply(points):
    head = "".join(f"property float {name}\n" for name in ("intensity", "x", "y", "z", "ring"))
    return f"ply\nformat binary_big_endian 1.0\nelement vertex {len(points)}\n{head}end_header\n".encode() + points[:, [3, 0, 1, 2, 4]].astype(">f4").tobytes()


def text(points):
    return "".join(" ".join(map(repr, row)) + "\n" for row in points.tolist()).encode()


def boxes_of(index):
    """float32 [n, 10], of which the last column stays."""
    row = np.arange(index % 4 + 1, dtype=np.float32)[:, None]
    return np.hstack([row + index, 2 * row - 3, row + .25, 4 + row, 2 + 0 * row, 1.5 + 0 * row, row - index / 8, row, 1 - row, 0 * row + index]).astype(np.float32)


def classes_of(index):
    return np.arange(index % 4 + 1) + index


class Driven:
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"points": ply(points_of(index)), "boxes": boxes_of(index), "classes": classes_of(index)}


KINDS = {"bin": raw, "npy": npy, "ply": ply, "xyz": text}


class Scans:
    """A wrapped data set: bytes of files, and a field beside them."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"points": ply(points_of(index)), "label": index % 3, "pose": np.full((4, 4), index, np.float32)}


class CloudsTest(PoolCase):
    settings = {"memory": "1G"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.order = [*range(0, COUNT, 2), *range(1, COUNT, 2)]      # of the folder
        for suffix, write in KINDS.items():
            for index in range(COUNT):
                folder = cls.work / suffix / ("chair", "desk")[index % 2]
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{index:02}.{suffix}").write_bytes(write(points_of(index)))

    def batches(self, dataset, pipeline, **options):
        loader = self.open(dataset, pipeline, **{"batch_size": 6, "as_": "numpy", "shuffle": False, "epochs": 1, **options})
        yield from loader
        loader.close()

    def check(self, dataset, pipeline, expected, order=range(COUNT), **options):
        """expected: of a sample's number its rows, without those behind; the labels of all in their order."""
        seen = {}
        for batch in self.batches(dataset, pipeline, **options):
            points, labels, lengths = (batch[name] for name in ("points", "label", "length")) if isinstance(batch, dict) else batch
            self.assertEqual((points.dtype, labels.dtype, lengths.dtype), (np.float32, np.int64, np.int64))
            for number, one, label, length in zip(batch.ids, points, labels, lengths):
                index, wanted = order[number], expected(points_of(order[number]))
                self.assertEqual(length, len(wanted))
                np.testing.assert_array_equal(one, np.resize(wanted, (len(one), wanted.shape[1])))     # the same again behind it
                seen[index] = int(label)
        self.assertEqual(sorted(seen), list(range(COUNT)))
        return [seen[index] for index in range(COUNT)]

    def test_class_folders(self):
        for suffix in KINDS:
            options = {"bin": {"columns": COLUMNS}, "ply": {"properties": ("x", "y", "z", "intensity")}}.get(suffix, {})
            pipeline = oa.point_clouds(80, 4, train=False, **options)
            labels = self.check(self.work / suffix, pipeline, lambda points: points[np.arange(80) * len(points) // 80 if len(points) > 80 else slice(None), :4],
                                self.order)
            self.assertEqual(labels, [index % 2 for index in range(COUNT)])

    def test_archives_shards_and_lists(self):
        pipeline = oa.Compose([oa.point_clouds(100, 3, columns=COLUMNS), t.PointFlip("y", 1)])

        named = oa.Compose([oa.point_clouds(100, properties=("x", "y", "z")), t.PointFlip("y", 1)])

        def flipped(points):
            return points[:, :3] * np.float32([1, -1, 1])

        with zipfile.ZipFile(self.work / "scans.zip", "w") as archive:
            for path in sorted((self.work / "bin").glob("*/*.bin")):
                archive.write(path, path.relative_to(self.work / "bin"))
        self.assertEqual(self.check(self.work / "scans.zip", pipeline, flipped, self.order), [index % 2 for index in range(COUNT)])
        with tarfile.open(self.work / "scans.tar", "w") as archive:
            for index in range(COUNT):
                for suffix, data in (("ply", ply(points_of(index))), ("cls", b"%d" % (index + 1)), ("json", b'{"speed": %d}' % index)):
                    member = tarfile.TarInfo(f"{index:04}.{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        self.assertEqual(self.check(self.work / "scans.tar", named, flipped), list(range(1, COUNT + 1)))
        data = oa.from_tar(self.work / "scans.tar", {"points": "ply", "label": "cls", "speed": "json:speed"})
        for batch in self.batches(data, named):
            np.testing.assert_array_equal(batch["speed"], batch["label"] - 1)
            np.testing.assert_array_equal(batch["points"][:, 0, 0], 1000 * batch["speed"])
        with open(self.work / "scans.jsonl", "w") as file:
            for index in range(COUNT):
                file.write(json.dumps({"path": f"bin/{('chair', 'desk')[index % 2]}/{index:02}.bin", "label": f"{index % 4}"}) + "\n")
        self.assertEqual(self.check(self.work / "scans.jsonl", pipeline, flipped), [index % 4 for index in range(COUNT)])
        with open(self.work / "boxes.jsonl", "w") as file:
            for index in range(COUNT):
                boxes = [[index, 0, 0, 1, 2, 3, row / 8] for row in range(index % 4)]
                file.write(json.dumps({"points": f"bin/{('chair', 'desk')[index % 2]}/{index:02}.bin", "boxes": boxes}) + "\n")
        data = oa.from_jsonl(self.work / "boxes.jsonl", ["points", "boxes"], files="points", ragged={"boxes": 4})
        for batch in self.batches(data, pipeline):
            for number, points, boxes in zip(batch.ids, batch["points"], batch["boxes"].list()):
                np.testing.assert_array_equal(points[:60], flipped(points_of(number))[:60])
                np.testing.assert_array_equal(boxes, np.array([[number, 0, 0, 1, 2, 3, row / 8] for row in range(number % 4)]).reshape(-1, 7))

        data = oa.from_jsonl(self.work / "boxes.jsonl", ["points", "boxes"], files="points", ragged={"boxes": 4}, boxes="boxes")
        for batch in self.batches(data, oa.Compose([pipeline, t.PointRange((-1e6, -1e6, -1, 1e6, 1e6, 1))])):
            for number, boxes in zip(batch.ids, batch["boxes"].list()):
                wanted = np.array([[number, 0, 0, 1, 2, 3, -row / 8] for row in range(number % 4)]).reshape(-1, 7)
                np.testing.assert_array_equal(boxes, wanted)

    def test_boxes_follow(self):
        """Those of a wrapped data set and of a shard, with a row beside each; other shapes do not."""
        ops = [t.PointCloud(100, properties=("x", "y", "z"), padding="ragged"), t.PointFlip("x", 1), t.PointRotation((90, 90)), t.PointScale((2, 2)),
               t.PointRange((-1e6, -1e6, -5, 1e6, 1e6, 5))]
        names = ["boxes", "classes"]
        with tarfile.open(self.work / "driven.tar", "w") as archive:
            for index in range(COUNT):
                about = json.dumps({"boxes": boxes_of(index).tolist(), "classes": classes_of(index).tolist()}).encode()
                for suffix, data in (("ply", ply(points_of(index))), ("json", about)):
                    member = tarfile.TarInfo(f"{index:04}.{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        most = dict.fromkeys(names, 6)
        for data in (oa.wrap(Driven(), ragged=most, boxes=names, keep=3),
                     oa.from_tar(self.work / "driven.tar", {"points": "ply", "boxes": "json:boxes", "classes": "json:classes"}, ragged=most, boxes=names)):
            seen = 0
            for batch in self.batches(data, oa.Compose(ops)):
                for number, boxes, classes in zip(batch.ids, batch["boxes"].list(), batch["classes"].list()):
                    was, stays = boxes_of(number), np.abs(2 * boxes_of(number)[:, 2]) <= 5
                    wanted = np.column_stack([-2 * was[:, 1], -2 * was[:, 0], 2 * was[:, 2:6], -(was[:, 6] + np.pi) + np.pi / 2,
                                              -2 * was[:, 8], -2 * was[:, 7], was[:, 9]])[stays]
                    wanted[:, 6] -= np.floor(wanted[:, 6] / (2 * np.pi) + .5) * 2 * np.pi
                    np.testing.assert_allclose(boxes, wanted, atol=1e-5)
                    np.testing.assert_array_equal(classes, classes_of(number)[stays])
                    seen += 1
            self.assertEqual(seen, COUNT)
        with self.assertRaisesRegex(PipelineError, "boxes turn about z alone"):
            next(self.batches(data, oa.Compose([ops[0], t.PointRotation(axis="any")])))

    def test_meshes(self):
        """Class folders of OFF files, as ModelNet40 has them: uniform on the faces, other points in each epoch, the same for evaluation."""
        for index in range(COUNT):
            folder = self.work / "off" / ("chair", "desk")[index % 2]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{index:02}.off").write_text(f"OFF6 2 0\n0 0 {index}\n2 0 {index}\n2 2 {index}\n0 2 {index}\n5 0 0\n5 1 0\n4 0 1 2 3\n3 4 5 4\n")
        seen = {True: [], False: []}
        for train in seen:
            loader = self.open(self.work / "off", oa.point_clouds(256, 6, normals=3, surface=True, train=train), batch_size=5, as_="numpy",
                               **({"order": "seeded", "seed": 3} if train else {"shuffle": False}), epochs=2)
            for _ in range(2):
                seen[train].append({int(number): points for batch in loader for number, points in zip(batch.ids, batch[0])})
            loader.close()
            for epoch in seen[train]:
                self.assertEqual(len(epoch), COUNT)
                for number, points in epoch.items():
                    self.assertTrue((points[:, 2] == self.order[number]).all() and (points[:, 3:] == (0, 0, 1)).all())
                    self.assertTrue(((points[:, :2] >= 0) & (points[:, :2] <= 2)).all())
                    np.testing.assert_allclose(points[:, :2].mean(0), 1, atol=.2)       # five deviations
            for number in range(COUNT):
                self.assertEqual(np.array_equal(seen[train][0][number], seen[train][1][number]), not train)
        for index in range(COUNT):      # as ModelNet40 is unpacked
            folder = self.work / "modelnet" / ("chair", "desk", "bed")[index % 3] / ("train", "test")[index > 11]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{index:02}.off").write_bytes((self.work / "off" / ("chair", "desk")[index % 2] / f"{index:02}.off").read_bytes())
        data = oa.from_folders({"points": self.work / "modelnet/*/train/*.off"}, label=1, keep=3)
        self.assertEqual((len(data), data.classes), (12, ["bed", "chair", "desk"]))
        for batch in self.batches(data, oa.point_clouds(16, surface=True)):
            for points, label, number in zip(batch["points"], batch["label"], batch.ids):
                name, index = data.names[number].split("/")
                self.assertEqual((data.classes[label], set(points[:, 2])), (name, {int(index)}))
        with self.assertRaisesRegex(ArgumentError, "label is 3: .* from 1 to 2"):
            oa.from_folders({"points": self.work / "modelnet/*/train/*.off"}, label=3)
        with self.assertRaisesRegex(SampleError, "text has no faces"):
            next(self.batches(self.work / "xyz", oa.point_clouds(10, surface=True)))

    def test_wrapped(self):
        pipeline = oa.Compose([t.PointCloud(100, properties=("x", "y", "z", "ring")), t.Normalize((0, 0, 0, 5), (1, 2, 1, 10))])
        labels = self.check(oa.wrap(Scans(), keep=3), pipeline,
                            lambda points: (points[:, [0, 1, 2, 4]] - np.float32([0, 0, 0, 5])) / np.float32([1, 2, 1, 10]))
        self.assertEqual(labels, [index % 3 for index in range(COUNT)])
        ragged = oa.Compose([t.PointCloud(100, properties=("x", "y", "z"), padding="ragged")])
        for batch in self.batches(oa.wrap(Scans(), keep=3), ragged):
            for index, points, length in zip(batch["pose"][:, 0, 0].astype(int), batch["points"].list(), batch["length"]):
                self.assertEqual(length, len(points))
                np.testing.assert_array_equal(points, points_of(index)[:, :3])
        for batch in self.batches(oa.wrap(Scans(), keep=3), pipeline):
            np.testing.assert_array_equal(batch["pose"][:, 0, 0] * 1000, batch["points"][:, 0, 0])

    def test_random_parts(self):
        """Rows of the file, none twice, others in the next epoch, and the same of the same seed."""
        seen = []
        for _ in range(2):
            loader = self.open(self.work / "bin", oa.point_clouds(30, COLUMNS, columns=COLUMNS), batch_size=5, as_="numpy", order="seeded", seed=3, epochs=2)
            epochs = [{int(id): rows for batch in loader for id, rows in zip(batch.ids, batch[0])} for _ in range(2)]
            loader.close()
            for epoch in epochs:
                for number, rows in epoch.items():
                    points = points_of(self.order[number])
                    which = (rows[:, 0] - points[0, 0]).astype(int)
                    self.assertEqual(len(set(which)), 30)
                    np.testing.assert_array_equal(rows, points[which])
            self.assertFalse(any(np.array_equal(epochs[0][number], epochs[1][number]) for number in range(COUNT)))
            seen.append(epochs)
        for one, other in zip(*seen):
            for number in range(COUNT):
                np.testing.assert_array_equal(one[number], other[number])

    def test_what_ops_leave_out(self):
        """A range, and a part of that, of all the points; zeros behind it, or nothing."""
        def inside(points):
            return points[np.all((points[:, 1:3] >= (-3, 0)) & (points[:, 1:3] <= (3, 1)), 1), :3]

        box = t.PointRange((-1e6, -3, 0, 1e6, 3, 1))
        for batch in self.batches(self.work / "bin", oa.Compose([t.PointCloud(200, columns=COLUMNS, padding="zero"), box, t.PointSample(25, "first")])):
            self.assertEqual(batch[0].shape[1:], (25, 3))
            for number, one, length in zip(batch.ids, batch[0], batch[2]):
                wanted = inside(points_of(self.order[number]))[:25]
                self.assertEqual(length, len(wanted))
                np.testing.assert_array_equal(one, np.pad(wanted, ((0, 25 - len(wanted)), (0, 0))))
        for batch in self.batches(self.work / "bin", oa.Compose([t.PointCloud(200, columns=COLUMNS, padding="ragged"), box])):
            ragged, _, lengths = batch
            self.assertEqual(ragged.lengths.tolist(), lengths.tolist())
            for number, one in zip(batch.ids, ragged.list()):
                np.testing.assert_array_equal(one, inside(points_of(self.order[number])))

    def test_augmentations(self):
        """What they promise together: centred, within the unit sphere, distances as they were."""
        ops = [t.PointCloud(64, columns=COLUMNS, pick="first"), t.PointCenter(), t.PointRotation(axis="any"), t.PointShuffle(), t.PointUnit()]
        for batch in self.batches(self.work / "bin", oa.Compose(ops), order="seeded", seed=1, shuffle=None):
            for number, one in zip(batch.ids, batch[0].astype(np.float64)):
                points = points_of(self.order[number])[:64, :3].astype(np.float64)
                length = len(points)
                points -= points.mean(0)
                points /= np.linalg.norm(points, axis=1).max()
                np.testing.assert_allclose(one[:length].mean(0), 0, atol=1e-6)
                np.testing.assert_allclose(np.sort(np.linalg.norm(one[:length], axis=1)), np.sort(np.linalg.norm(points, axis=1)), atol=1e-6)
                np.testing.assert_allclose(np.linalg.svd(one[:length])[1], np.linalg.svd(points)[1], atol=1e-5)

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(PipelineError, "behind cloud there are points"):
            next(self.batches(self.work / "bin", oa.Compose([oa.point_clouds(10), t.RandomHorizontalFlip()])))
        with self.assertRaisesRegex(PipelineError, "begin with cloud"):
            next(self.batches(self.work / "bin", oa.Compose([t.PointShuffle()])))
        with self.assertRaisesRegex(SampleError, "raw numbers need the op's raw_columns"):
            next(self.batches(self.work / "bin", oa.point_clouds(10)))
        with self.assertRaisesRegex(SampleError, "the file has no property nx"):
            next(self.batches(self.work / "ply", oa.point_clouds(10, properties=("x", "y", "z", "nx", "ny", "nz"), normals=3)))

    def test_jobs_share_the_reading(self):
        first, other = oa.point_clouds(50, columns=COLUMNS), oa.Compose([oa.point_clouds(50, columns=COLUMNS), t.PointUnit(), t.PointJitter()])
        one = self.open(self.work / "bin", first, batch_size=5, as_="numpy", epochs=1)
        two = self.open(self.work / "bin", other, batch_size=5, as_="numpy", epochs=1)
        ids = [sorted(number for batch in loader for number in batch.ids.tolist()) for loader in (one, two)]
        self.assertEqual(ids, [list(range(COUNT))] * 2)


if __name__ == "__main__":
    unittest.main()
