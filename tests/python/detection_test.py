# SPDX-License-Identifier: Apache-2.0
"""Annotations of COCO, Pascal VOC and YOLO: batches are those of the same pictures and boxes by wrap(), and what is wrong is named."""

import io
import json
import sys
import tarfile
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"detection_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import ArgumentError, DatasetError, MissingError, SampleError
from support import PoolCase

COUNT, BATCH = 12, 4
NAMES = ["cat", "dog", "owl"]
IDS = {"cat": 3, "dog": 17, "owl": 90}      # not dense, as COCO's


def size_of(index):
    return 60 + index % 5, 48 + index % 3


def boxes_of(index):
    """[(name, left, top, right, bottom)]: whole pixels, none for each fourth picture."""
    return [(NAMES[(index + at) % 3], 3 + 2 * at, 2 + at, 20 + 5 * at + index, 18 + 6 * at) for at in range(index % 4)]


class Rows:
    """What the functions are to give."""

    def __init__(self, folder, numbers, classes):
        self.folder, self.numbers, self.classes = folder, numbers, classes

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, at):
        index = self.numbers[at]
        boxes = [box for box in boxes_of(index) if box[0] in self.classes]
        return {"image": (self.folder / f"{index:03}.png").read_bytes(), "boxes": np.array([box[1:] for box in boxes], np.float32).reshape(-1, 4),
                "classes": np.array([self.classes.index(box[0]) for box in boxes], np.int64)}


class MaskRows(Rows):
    """With masks: boxes are the outlines, and of two the smaller one is seen, of equal ones the first."""

    def __getitem__(self, at):
        beside, index = super().__getitem__(at), self.numbers[at]
        width, height = size_of(index)
        boxes = [(left, top, min(right, width), bottom) for left, top, right, bottom in beside["boxes"].astype(int).tolist()]
        masks = np.zeros((2, height, width), np.uint8)
        for box in sorted(range(len(boxes)), key=lambda box: ((boxes[box][2] - boxes[box][0]) * (boxes[box][3] - boxes[box][1]), box), reverse=True):
            left, top, right, bottom = boxes[box]
            masks[:, top:bottom, left:right] = np.array([box + 1, beside["classes"][box] + 1])[:, None, None]
        return {**beside, "mask": masks[0], "mask_id": np.arange(1, 1 + len(boxes)), "class_mask": masks[1]}


MASK_FIELDS = ["boxes", "classes", "mask", "mask_id", "class_mask"]


class DetectionTest(PoolCase):
    def setUp(self):
        self.root = self.work / self.id().rsplit(".", 1)[-1]
        self.images = self.root / "images"
        self.images.mkdir(parents=True)
        rng = np.random.default_rng(7)
        for index in range(COUNT):
            width, height = size_of(index)
            PIL.Image.fromarray(rng.integers(0, 255, (height, width, 3), np.uint8)).save(self.images / f"{index:03}.png")

    def batches(self, data, ops=(), **kwargs):
        ops = [t.RandomResizedCrop(32, scale=(0.3, 1)), t.RandomHorizontalFlip()] if ops == () else ops
        with oa.Loader(data, oa.Compose([*ops, t.PILToTensor()]), BATCH, **{"socket": self.socket, "timeout": 600, "as_": "numpy", "order": "sequential",
                                                                            "seed": 5, **kwargs}) as loader:
            return [{name: value.list() if isinstance(value, oa.Ragged) else value.copy() for name, value in batch.items()} for batch in loader]

    def assert_same(self, data, numbers, classes):
        """As the same samples by wrap(), pixel by pixel and box by box."""
        want = oa.wrap(Rows(self.images, numbers, classes), random=False, keep=5, ragged={"boxes": 9, "classes": 9}, boxes=["boxes", "classes"])
        made, wanted = self.batches(data), self.batches(want)
        self.assertEqual(len(made), len(wanted))
        count = 0
        for one, other in zip(made, wanted):
            np.testing.assert_array_equal(one["image"], other["image"])
            for name in ("boxes", "classes"):
                for ours, theirs in zip(one[name], other[name], strict=True):
                    np.testing.assert_allclose(ours, theirs, atol=1e-4)
                    self.assertEqual(ours.dtype, theirs.dtype)
                    count += len(ours)
        self.assertGreater(count, 0)
        return made

    # ---- COCO ----

    def coco(self, change=lambda found: None):
        """Pictures in another order than their ids, 100, 101, ...; the first annotation of each is of a crowd, too."""
        found = {"images": [{"id": 100 + index, "file_name": f"{index:03}.png", "width": 1, "height": 1} for index in reversed(range(COUNT))],
                 "annotations": [], "categories": [{"id": IDS[name], "name": name} for name in ("owl", "cat", "dog")]}
        for index in range(COUNT):
            for name, left, top, right, bottom in boxes_of(index):
                found["annotations"].append({"id": len(found["annotations"]), "image_id": 100 + index, "category_id": IDS[name], "iscrowd": 0,
                                             "bbox": [left, top, right - left, bottom - top], "area": 7.5, "segmentation": [[1, 2, 3, 4, 5, 6]]})
        found["annotations"].append({"id": 5000, "image_id": 104, "category_id": 3, "iscrowd": 1, "bbox": [1, 1, 40, 40],
                                     "segmentation": {"size": [1, 1], "counts": [1]}})
        change(found)
        path = self.root / "instances.json"
        path.write_text(json.dumps(found))
        return path

    def test_coco(self):
        data = oa.from_coco(self.coco(), self.images, keep=5)
        self.assertEqual((data.classes, data.category_ids), (NAMES, [3, 17, 90]))
        made = self.assert_same(data, range(COUNT), NAMES)
        self.assertEqual([number for batch in made for number in batch["image_id"].tolist()], [*range(100, 100 + COUNT)])
        self.assertEqual(list(made[0]), ["image", "boxes", "classes", "image_id"])

    def test_coco_of_some_classes(self):
        path = self.coco()
        data = oa.from_coco(str(path), str(self.images), classes=["owl", "cat"], empty=False, keep=5)
        self.assertEqual(data.category_ids, [90, 3])
        some = [index for index in range(COUNT) if any(box[0] != "dog" for box in boxes_of(index))]
        self.assertLess(len(some), COUNT)
        self.assert_same(data, some, ["owl", "cat"])
        with oa.Loader(data, oa.Compose([t.Resize((8, 8)), t.PILToTensor()]), 2, socket=self.socket, timeout=600, as_="numpy") as loader:
            self.assertEqual(loader.dataset.classes, ["owl", "cat"])

    def test_coco_without_annotations(self):
        """As image_info_test2017.json; and areas that are no numbers are those of boxes."""
        data = oa.from_coco(self.coco(lambda found: found.pop("annotations")), self.images, keep=5)
        self.assertEqual([sum(map(len, batch["boxes"])) for batch in self.batches(data, [t.Resize((32, 32))])], [0] * (COUNT // BATCH))
        self.assertEqual(len(oa.from_coco(self.coco(lambda found: found["annotations"][0].update(area=None)), self.images)), COUNT)

    def test_coco_with_crowds(self):
        data = oa.from_coco(self.coco(), self.images, fields=["image_id", "crowd", "area", "classes", "boxes"], keep=5)
        made = self.batches(data, [t.Resize((32, 32))])
        self.assertEqual(list(made[0]), ["image", "image_id", "crowd", "area", "classes", "boxes"])
        crowds = {int(number): crowd.tolist() for batch in made for number, crowd in zip(batch["image_id"], batch["crowd"]) if crowd.any()}
        self.assertEqual(crowds, {104: [1]})
        areas = {area for batch in made for each in batch["area"] for area in each.tolist()}
        self.assertEqual(areas, {7.5, 1600.0})      # the crowd has none in the file: that of its box

    def with_outlines(self, found):
        """Each box as a polygon, or as runs; of real sizes."""
        for picture in found["images"]:
            picture["width"], picture["height"] = size_of(picture["id"] - 100)
        for each in found["annotations"]:
            width, height = size_of(each["image_id"] - 100)
            left, top, right, bottom = each["bbox"][0], each["bbox"][1], min(width, each["bbox"][0] + each["bbox"][2]), each["bbox"][1] + each["bbox"][3]
            each["segmentation"] = [[left, top, right, top, right, bottom, left, bottom]]
            if each["id"] % 2:
                column = [top, bottom - top, height - bottom]
                each["segmentation"] = {"size": [height, width], "counts": [left * height, 0, *(run for _ in range(right - left) for run in (*column, 0)),
                                                                            (width - right) * height]}

    def assert_masks(self, data, numbers):
        want = oa.wrap(MaskRows(self.images, numbers, NAMES), random=False, keep=5, ragged={"boxes": 9, "classes": 9, "mask_id": 9},
                       boxes=["boxes", "classes", "mask_id"], masks=["mask", "class_mask"])
        seen = set()
        for ops in ((), [t.Pad(3), t.RandomRotation(40), t.Resize((50, 40))]):
            for one, other in zip(self.batches(data, ops), self.batches(want, ops), strict=True):
                self.assertEqual(list(one), list(other))
                for name in ("image", "mask", "class_mask"):
                    np.testing.assert_array_equal(one[name], other[name])
                    self.assertEqual(one[name].dtype, np.uint8)
                for ours, theirs in zip(one["mask_id"], other["mask_id"], strict=True):
                    self.assertEqual(ours.tolist(), theirs.tolist())
                for mask, ids in zip(one["mask"], one["mask_id"]):
                    seen |= {(int(number), bool((mask == number).any())) for number in ids}
        self.assertEqual({number for number, is_there in seen if is_there}, {1, 2, 3})

    def test_coco_with_masks(self):
        self.assert_masks(oa.from_coco(self.coco(self.with_outlines), self.images, fields=MASK_FIELDS, keep=5), range(COUNT))

    def test_coco_with_masks_of_classes_alone(self):
        data = oa.from_coco(self.coco(self.with_outlines), self.images, fields="class_mask", classes=["owl"], keep=5)
        made = self.batches(data, [t.CenterCrop(90)])
        self.assertEqual(list(made[0]), ["image", "class_mask"])
        self.assertEqual({int(number) for batch in made for number in np.unique(batch["class_mask"])}, {0, 1})

    def test_coco_with_masks_that_are_wrong(self):
        def outline(value):
            def change(found):
                self.with_outlines(found)
                found["annotations"][1]["segmentation"] = value
            return change

        def sizes(**size):
            return lambda found: found["images"][0].update(size)

        for change, what in ((outline([]), r"annotations\[1\]: it has no segmentation.*fields= has a mask"), (outline([[1, 2]]), r"annotations\[1\]: a polygon of 2"),
                             (outline({"size": [1, 1], "counts": [1]}), r"annotations\[1\]: the size of its runs is 1 x 1, and its picture's"),
                             (lambda found: [each.pop("segmentation") for each in found["annotations"]], "no segmentation"),
                             (lambda found: (self.with_outlines(found), found["annotations"][1].pop("bbox")), r"annotations\[1\] is .*it must have .*bbox"),
                             (sizes(height="9"), r"images\[0\] is .*height"), (sizes(width=-4), "the width -4, and fields= has a mask")):
            with self.assertRaisesRegex(DatasetError, what):
                oa.from_coco(self.coco(change), self.images, fields=MASK_FIELDS)
        with self.assertRaisesRegex(ArgumentError, "mask_id of boxes"):
            oa.from_coco(self.coco(self.with_outlines), self.images, fields=["mask", "mask_id"])
        data = oa.from_coco(self.coco(lambda found: (self.with_outlines(found), found["images"][-1].update(width=61))), self.images, fields=["mask"], keep=5)
        with self.assertRaisesRegex(SampleError, "mask 61 x 48, picture 60 x 48"):
            self.batches(data)

    # ---- key points ----

    def with_points(self, found):
        """The corners of each box, but of dogs, which have none."""
        found["annotations"].pop()      # the crowd
        for each in found["annotations"]:
            left, top, width, height = each["bbox"]
            if each["category_id"] != IDS["dog"]:
                each["keypoints"] = [left, top, 2, left + width, top + height, 1]
            elif each["id"] % 2:
                each["keypoints"] = []
        for each in found["categories"]:
            each["keypoints"] = ["left_end", "right_end"]

    def assert_corners(self, data, low=2):
        """Points are where their boxes' corners are, unless these were cut off."""
        kinds = {"inside": 0, "outside": 0, "none": 0}
        upright, over = self.batches(data), self.batches(data, [t.CenterCrop(30), t.RandomVerticalFlip(1), t.Resize((32, 32))])
        for batch, order in [(batch, 1) for batch in upright] + [(batch, -1) for batch in over]:    # turned over is a mirror image, too
            self.assertEqual((batch["keypoints"][0].dtype, batch["keypoints"][0].shape[1:]), (np.float32, (2, 3)))
            for boxes, points in zip(batch["boxes"], batch["keypoints"], strict=True):
                for (left, top, right, bottom), pair in zip(boxes, points[:, ::order], strict=True):
                    if not pair[:, 2].any() and (pair[0, :2] == pair[1, :2]).all():
                        kinds["none"] += 1
                        continue
                    self.assertLess(pair[0, 0], pair[1, 0])         # the left one is left
                    at_top = pair[np.argmin(pair[:, 1]), 1], pair[np.argmax(pair[:, 1]), 1]
                    for x, side in zip(pair[:, 0], (left, right)):
                        self.assertAlmostEqual(float(np.clip(x, 0, 32)), float(side), places=3)
                    for y, side in zip(at_top, (top, bottom)):
                        self.assertAlmostEqual(float(np.clip(y, 0, 32)), float(side), places=3)
                    for x, y, seen in pair:
                        is_inside = 0 <= x <= 32 and 0 <= y <= 32
                        self.assertIn(seen, (1, low) if is_inside else (0,))
                        kinds["inside" if is_inside else "outside"] += 1
        self.assertGreater(min(kinds["inside"], kinds["outside"]), 5)
        return kinds["none"]

    def test_coco_with_key_points(self):
        data = oa.from_coco(self.coco(self.with_points), self.images, fields=["keypoints", "classes", "boxes"], keep=5)
        self.assertEqual(data.boxes[1:], ["keypoints", "classes"])
        self.assertEqual(data.boxes[1].flip_indices, (1, 0))
        self.assertGreater(self.assert_corners(data), 2)
        some = oa.from_coco(self.coco(self.with_points), self.images, fields=["boxes", "keypoints"], classes=["owl", "cat"], keep=5)
        self.assertEqual(self.assert_corners(some), 0)

    def test_flips_of_names(self):
        """Two of one name are nobody's mirror image."""
        for names, flips in ((["Nose", "Left_Eye", "Right_Eye", "leftear", "RIGHTEAR"], [0, 2, 1, 4, 3]), (["left", "left", "right"], [0, 1, 2]),
                             (["left_a", "tail", "right_b"], [0, 1, 2])):
            def named(found, names=names):
                self.with_points(found)
                for each in found["annotations"]:
                    each.pop("keypoints", None)
                for each in found["categories"]:
                    each["keypoints"] = names
            data = oa.from_coco(self.coco(named), self.images, fields=["boxes", "keypoints"])
            self.assertEqual(list(data.boxes[1].flip_indices), flips)

    def test_one_field_of_key_points(self):
        """A second one would stay where the picture was."""
        rows = [{"image": (self.images / "001.png").read_bytes(), **{name: np.zeros((1, width), np.float32) for name, width in (("boxes", 4), ("a", 6), ("b", 6))}}]
        with self.assertRaisesRegex(ArgumentError, "'a', 'b': a sample has one field"):
            oa.wrap(rows, ragged={"boxes": 1, "a": 1, "b": 1}, boxes=["boxes", oa.Points("a"), oa.Points("b")])

    def test_coco_with_key_points_that_are_wrong(self):
        def points(value):
            return lambda found: (self.with_points(found), found["annotations"][0].update(keypoints=value))

        def names(first):
            return lambda found: (self.with_points(found), found["categories"][0].update(keypoints=first))

        fields = ["boxes", "keypoints"]
        for change, what in ((points([1, 2, 2]), r"annotations\[0\] has the key points \[1, 2, 2\]: they are 6 numbers"), (points([1, 2, "2", 3, 4, 5]), "6 numbers"),
                             (points([1, 2, True, 3, 4, 5]), "6 numbers"), (points([1, 2, 1e300, 3, 4, 5]), "6 numbers"), (names(["nose"]), "different key points"),
                             (lambda found: None, "no class that is meant has key points")):
            with self.assertRaisesRegex(DatasetError, what):
                oa.from_coco(self.coco(change), self.images, fields=fields)
        for more, what in (({"flip_indices": [0]}, "flip_indices has 1 numbers, and there are 2"), ({"fields": ["keypoints", "image_id", "class_mask"]}, "keypoints of boxes")):
            with self.assertRaisesRegex(ArgumentError, what):
                oa.from_coco(self.coco(lambda found: (self.with_outlines(found), self.with_points(found))), self.images, **{"fields": fields, **more})
        for flips in [1, 2, 0], [0.5], "ab", None, 5:
            with self.assertRaisesRegex(ArgumentError, "two become each other"):
                oa.Points("points", flips)

    def poses(self, each):
        labels = self.root / f"poses{each}"
        labels.mkdir()
        for index in range(COUNT):
            width, height = size_of(index)
            rows = []
            for name, left, top, right, bottom in boxes_of(index):
                right = min(right, width)
                numbers = [(left + right) / 2 / width, (top + bottom) / 2 / height, (right - left) / width, (bottom - top) / height]
                for x, y, seen in ((left, top, 2), (right, bottom, 1)):
                    numbers += [x / width, y / height, seen][:each]
                rows.append(f"{NAMES.index(name)} " + " ".join(f"{number:.9f}" for number in numbers) + "\n")
            (labels / f"{index:03}.txt").write_text("".join(rows))
        return labels

    def test_yolo_with_key_points(self):
        for each in 2, 3:
            data = oa.from_yolo(self.poses(each), self.images, NAMES, keypoints=(2, each), flip_indices=[1, 0], keep=5)
            self.assertEqual(self.assert_corners(data, each - 1), 0)

    def test_yolo_with_key_points_that_are_wrong(self):
        labels = self.poses(3)
        for row, what in (("0 .5 .5 .1 .1 .5 .5 2", "002.txt:1: a row is a class.*2 key points of 3 numbers, by keypoints=; this has 8 numbers"),
                          ("0 .5 .5 .1 .1 .5 .5 2 .5 .5 3", "002.txt:1: key points are x and y"), ("0 .5 .5 .1 .1 .5 7 2 .5 .5 2", "key points are x and y"),
                          ("0 .5 .5 .1 .1 .5 x 2 .5 .5 2", "key points are x and y")):
            (labels / "002.txt").write_text(row + "\n")
            with self.assertRaisesRegex(DatasetError, what):
                oa.from_yolo(labels, self.images, NAMES, keypoints=(2, 3))
        for more, what in (({"keypoints": (2, 4)}, "kpt_shape"), ({"keypoints": 2}, "kpt_shape"), ({"fields": ["boxes", "keypoints"]}, "names 'keypoints'"),
                           ({"keypoints": (2, 3), "flip_indices": [0, 1, 2]}, "3 numbers, and there are 2")):
            with self.assertRaisesRegex(ArgumentError, what):
                oa.from_yolo(labels, self.images, NAMES, **more)

    def test_shards_with_key_points(self):
        """accessd takes them of JSON's numbers, whole ones too; so does a pool, which exact=True asks for."""
        path = self.root / "points.tar"
        with tarfile.open(path, "w") as tar:
            for index in range(1, COUNT):
                boxes = [box for box in boxes_of(index) if box[3] <= size_of(index)[0]]
                about = {"boxes": [box[1:] for box in boxes], "points": [[left, top, 2, right, bottom, 1] for _, left, top, right, bottom in boxes]}
                for suffix, data in (("png", (self.images / f"{index:03}.png").read_bytes()), ("json", json.dumps(about).encode())):
                    member = tarfile.TarInfo(f"{index:03}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        made = []
        for exact in False, True:
            data = oa.from_tar(str(path), {"image": "png", "boxes": "json:boxes", "points": "json:points"}, ragged={"boxes": 4, "points": 4},
                               boxes=["boxes", oa.Points("points", [1, 0])], exact=exact, keep=5)
            made.append(self.batches(data))
        for one, other in zip(*made, strict=True):
            for name in "boxes", "points":
                for ours, theirs in zip(one[name], other[name], strict=True):
                    np.testing.assert_array_equal(ours, theirs)
            for boxes, points in zip(one["boxes"], one["points"], strict=True):
                np.testing.assert_allclose(np.clip(points[:, [0, 3]], 0, 32), boxes[:, [0, 2]], atol=1e-3)
                self.assertEqual(points.shape[1:], (6,))
        alone = oa.from_tar(str(path), {"image": "png", "points": "json:points"}, ragged={"points": 4}, boxes=oa.Points("points"), keep=5)
        self.assertEqual([len(each) for batch in self.batches(alone) for each in batch["points"]][0], 1)

    def test_coco_captions(self):
        path = self.root / "captions.json"
        path.write_text(json.dumps({"images": [{"id": index, "file_name": f"{index:03}.png"} for index in range(4)],
                                    "annotations": [{"image_id": index, "caption": f"the {at}. of {index} é"} for index in range(3) for at in range(index + 1)]}))
        data = oa.from_coco(path, self.images, keep=5)
        with oa.Loader(data, oa.Compose([t.Resize((8, 8)), t.PILToTensor()]), 4, socket=self.socket, timeout=600, as_="numpy", order="sequential") as loader:
            batch, = loader
            self.assertEqual(batch["captions"].strings(), [[f"the {at}. of {index} é" for at in range(index + 1)] for index in range(3)] + [[]])
            self.assertEqual(batch["image_id"].tolist(), [0, 1, 2, 3])
        with self.assertRaisesRegex(DatasetError, "captions.json has captions, and fields="):
            oa.from_coco(path, self.images, fields="boxes")

    def test_coco_that_is_wrong(self):
        for change, what in ((lambda found: found["annotations"][2].update(bbox=[1, 2, -3, 4]), r"annotations\[2\]: box 1, 2, -2, 6 .*ends before"),
                             (lambda found: found["annotations"][2].update(bbox=[1, 2, 3]), r"annotations\[2\] has the bbox \[1, 2, 3\]"),
                             (lambda found: found["annotations"][2].update(bbox=[1, 2, float("nan"), 4]), r"annotations\[2\]: box"),
                             (lambda found: found["annotations"][1].update(category_id=4), r"annotations\[1\] has the category 4, which"),
                             (lambda found: found["annotations"][1].pop("image_id"), r"annotations\[1\] is .*must have image_id \(a whole number\), bbox \(a list\), category_id"),
                             (lambda found: found["images"].append(found["images"][0]), rf"images\[{COUNT}\] has the id 111, which another has"),
                             (lambda found: found["images"][1].update(id=True), r"images\[1\] is .*must have id \(a whole number\), file_name \(a text\)"),
                             (lambda found: found["images"][1].update(id=1 << 64), r"images\[1\] has the id .* 64 bits"),
                             (lambda found: found["categories"][0].update(name="cat"), "two categories of one name"),
                             (lambda found: found.pop("images"), "has no list of images"),
                             (lambda found: found.update(categories=None), "categories is no list"),
                             (lambda found: found["images"].clear(), "has no picture")):
            with self.subTest(what), self.assertRaisesRegex(DatasetError, what):
                oa.from_coco(self.coco(change), self.images)
        path = self.coco()
        for more, what in (({"classes": ["cow"]}, "'cow', and .* has: cat, dog, owl"), ({"fields": ["boxes", "masks"]}, "'masks'; there are: boxes"),
                           ({"classes": ["cat", "cat"]}, "one twice"), ({"fields": ["classes"]}, "must be among them")):
            with self.subTest(what), self.assertRaisesRegex(ArgumentError, what):
                oa.from_coco(path, self.images, **more)
        with self.assertRaisesRegex(DatasetError, "has no captions, and fields="):
            oa.from_coco(path, self.images, fields="captions")
        with self.assertRaisesRegex(MissingError, "12 of 12 pictures are not there: .*000.png.* and 9 others: images= is the folder"):
            oa.from_coco(path, self.root)
        with self.assertRaisesRegex(MissingError, "no file of annotations"):
            oa.from_coco(self.root / "none.json", self.images)
        path.write_text("{")
        with self.assertRaisesRegex(DatasetError, "instances.json is no JSON"):
            oa.from_coco(path, self.images)

    def test_a_picture_that_changes_is_a_bad_sample(self):
        data = oa.from_coco(self.coco(), self.images, keep=5)
        (self.images / "002.png").write_bytes(b"another")
        with self.assertRaisesRegex(SampleError, "002.png has changed"):
            self.batches(data)

    def test_a_large_picture_has_room(self):
        """The first one is small, so that room is not four times of it."""
        noise = np.random.default_rng(1).integers(0, 255, (900, 900, 3), np.uint8)
        PIL.Image.fromarray(noise).save(self.images / "007.png")
        self.assertGreater((self.images / "007.png").stat().st_size, 2 << 20)
        batches = self.batches(oa.from_coco(self.coco(), self.images, keep=5), [t.CenterCrop(32)])
        np.testing.assert_array_equal(batches[7 // BATCH]["image"][7 % BATCH], noise[434:466, 434:466].transpose(2, 0, 1))

    # ---- VOC ----

    def voc(self):
        folder = self.root / "annotations"
        folder.mkdir()
        for index in range(COUNT):
            objects = "".join(f"<object><part><name>head</name><bndbox><xmin>1</xmin></bndbox></part><name>{name}</name><difficult>{at == 1:d}</difficult>"
                              f"<bndbox><xmax>{right}</xmax><xmin>{left + 1}.0</xmin><ymin>{top + 1}</ymin><ymax>{bottom}</ymax></bndbox></object>"
                              for at, (name, left, top, right, bottom) in enumerate(boxes_of(index)))
            (folder / f"{index:03}.xml").write_text(f"<annotation><size><width>1</width></size>{objects}</annotation>")
        return folder

    def test_voc(self):
        folder = self.voc()
        data = oa.from_voc(folder, self.images, difficult=True, keep=5)
        self.assertEqual(data.classes, NAMES)
        self.assert_same(data, range(COUNT), NAMES)
        (self.root / "train.txt").write_text("007 1\n003 -1\n")
        self.assert_same(oa.from_voc(folder, self.images, names=self.root / "train.txt", classes=["owl", "dog", "cat"], difficult=True, keep=5), [7, 3],
                         ["owl", "dog", "cat"])

    def test_voc_difficult(self):
        folder = self.voc()
        without = oa.from_voc(folder, self.images, empty=False, keep=5)
        self.assertEqual(len(without), sum(len(boxes_of(index)) > 0 for index in range(COUNT)))
        self.assertEqual(sum(map(len, (each for batch in self.batches(without, [t.Resize((32, 32))]) for each in batch["boxes"]))),
                         sum(len(boxes_of(index)) - (len(boxes_of(index)) > 1) for index in range(COUNT)))
        marked = oa.from_voc(folder, self.images, fields=["boxes", "difficult"], difficult=True, keep=5)
        marks = [each.tolist() for batch in self.batches(marked, [t.Resize((32, 32))]) for each in batch["difficult"]]
        self.assertEqual(marks, [[at == 1 for at in range(len(boxes_of(index)))] for index in range(COUNT)])

    def test_voc_that_is_wrong(self):
        folder = self.voc()
        with self.assertRaisesRegex(DatasetError, "annotations has no file for 100, of 2 samples"):
            oa.from_voc(folder, self.images, names=["001", "100"])
        (folder / "005.xml").write_text("<annotation><object><name>cat</name></object></annotation>")
        with self.assertRaisesRegex(DatasetError, "005.xml: an object cat has no bndbox"):
            oa.from_voc(folder, self.images)
        (folder / "classes.txt").write_text("cat")
        for classes, what in ((["Cat"], r"\['Cat'\]: none of them is annotated; there are: cat, dog, owl"), ("cat", "a list of names")):
            with self.assertRaisesRegex(ArgumentError, what):
                oa.from_voc(folder, self.images, names=["001", "002", "003"], classes=classes)
        (folder / "005.xml").write_text("<annotation>")
        with self.assertRaisesRegex(DatasetError, "005.xml is no XML"):
            oa.from_voc(folder, self.images)

    # ---- YOLO ----

    def yolo(self):
        """A box with its corners is an outline, too; pictures without boxes have no file, or an empty one."""
        folder = self.root / "labels"
        folder.mkdir()
        for index in range(COUNT):
            width, height = size_of(index)
            rows = []
            for at, (name, left, top, right, bottom) in enumerate(boxes_of(index)):
                left, top, right, bottom = left / width, top / height, right / width, bottom / height
                rows.append(f"{NAMES.index(name)} {(left + right) / 2} {(top + bottom) / 2} {right - left} {bottom - top}" if at != 1 else
                            f"{NAMES.index(name)} {left} {top} {right} {top} {right} {bottom}")
            if rows or index == 4:
                (folder / f"{index:03}.txt").write_text("\n".join(rows) + "\n\n")
        (folder / "classes.txt").write_text("\n".join(NAMES))
        return folder

    def test_yolo(self):
        folder = self.yolo()
        self.assert_same(oa.from_yolo(folder, self.images, NAMES, keep=5), range(COUNT), NAMES)
        data = oa.from_yolo(folder, self.images, dict(enumerate(NAMES)), empty=False, keep=5)
        self.assert_same(data, [index for index in range(COUNT) if boxes_of(index)], NAMES)

    def outlined(self):
        labels = self.root / "labels"
        labels.mkdir()
        for index in range(COUNT):
            width, height = size_of(index)
            rows = []
            for name, left, top, right, bottom in boxes_of(index):
                corners = [left, top, min(right, width), top, min(right, width), bottom, left, bottom]
                rows.append(f"{NAMES.index(name)} " + " ".join(f"{value / (height if at % 2 else width):.9f}" for at, value in enumerate(corners)) + "\n")
            (labels / f"{index:03}.txt").write_text("".join(rows))
        return labels

    def test_yolo_with_masks(self):
        data = oa.from_yolo(self.outlined(), self.images, NAMES, fields=MASK_FIELDS, keep=5)
        self.assertEqual(len(data), COUNT)
        with oa.Loader(data, oa.Compose([t.CenterCrop(70), t.PILToTensor()]), COUNT, socket=self.socket, timeout=600, as_="numpy", order="sequential") as loader:
            batch, = loader
            for index, (mask, ids, boxes) in enumerate(zip(batch["mask"], batch["mask_id"], batch["boxes"])):
                self.assertEqual(ids.tolist(), [*range(1, 1 + len(boxes_of(index)))])
                for number, (left, top, right, bottom) in zip(ids, boxes.round().astype(int)):
                    rows, columns = np.nonzero(mask == number)
                    if len(boxes_of(index)) == 1:
                        self.assertEqual((columns.min(), rows.min(), columns.max() + 1, rows.max() + 1), (left, top, right, bottom))
        self.assert_masks(data, range(COUNT))

    def test_yolo_with_masks_that_are_wrong(self):
        labels = self.outlined()
        (labels / "002.txt").write_text("0 0.5 0.5 0.1 0.1\n")
        with self.assertRaisesRegex(DatasetError, "002.txt:1: this row is a box and no outline; fields= has a mask"):
            oa.from_yolo(labels, self.images, NAMES, fields=MASK_FIELDS)
        with self.assertRaisesRegex(ArgumentError, "names 'area'; there are: boxes, classes, mask"):
            oa.from_yolo(labels, self.images, NAMES, fields=["boxes", "area"])

    def test_yolo_that_is_wrong(self):
        folder = self.yolo()
        for row, what in (("0 0.5 0.5 0.1", "002.txt:2: a row is a class"), ("7 0.5 0.5 0.1 0.1", "002.txt:2: class 7, and classes= has 3, from 0"),
                          ("cat 0.5 0.5 0.1 0.1", "002.txt:2: a row is"), ("0 0.5 0.5 -0.1 0.1", "002.txt:2: .*from 0 to 1"),
                          ("0 0.5 0.5 inf 0.1", "002.txt:2: .*from 0 to 1"), ("0 30 20 10 10", "002.txt:2: 0 30 20 10 10 is in pixels")):
            (folder / "002.txt").write_text(f"1 0.5 0.5 0.25 0.25\n{row}\n")
            with self.subTest(row), self.assertRaisesRegex(DatasetError, what):
                oa.from_yolo(folder, self.images, NAMES)
        (folder / "002.txt").write_text("1 0.5 0.5 0.25 0.25\n")
        turned, exif = PIL.Image.new("RGB", (64, 32)), PIL.Image.Exif()
        exif[0x112] = 6
        turned.save(self.images / "002.png", exif=exif)
        with self.assertRaisesRegex(SampleError, "002.png: EXIF turns it .orientation 6."):
            self.batches(oa.from_yolo(folder, self.images, NAMES, keep=5))
        with self.assertRaisesRegex(ArgumentError, "numbers go from 0 to 0"):
            oa.from_yolo(folder, self.images, {1: "cat"})
        with self.assertRaisesRegex(DatasetError, "no file of .* has the name of one of"):
            oa.from_yolo(self.images, self.images, NAMES)


if __name__ == "__main__":
    unittest.main(verbosity=2)
