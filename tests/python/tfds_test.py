# SPDX-License-Identifier: Apache-2.0
"""from_tfds() against what TensorFlow Datasets 4.9.10 itself read of the files that it wrote: tfds.json has the files, base64, and the samples and parts of
splits that it said."""

import base64
import importlib.util
import io
import json
import pathlib
import pickle
import struct
import sys
import unittest
import warnings

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"tfds_test: skipped: {missing}")
    sys.exit(77)

import damage
import oneaccess as oa
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

GOLDEN = json.loads((pathlib.Path(__file__).parent / "tfds.json").read_text(encoding="utf-8"))
RAGGED = {"objects/bbox": 8, "objects/label": 8, "objects/is_crowd": 8, "tokens": 16, "names": (4, 8), "free": 16, "nested": (4, 16), "sound": 8, "pairs": 4, "free2": 9}
TEXTS = ("image/filename", "caption/de", "caption/en", "names")


class TFDSTest(PoolCase):
    def setUp(self):
        self.folder = self.work / self.id() / "1.0.0"
        self.folder.mkdir(parents=True)
        for name, data in GOLDEN["files"].items():
            (self.folder / name).write_bytes(base64.b64decode(data))

    def wanted(self, name, sample):
        value = sample
        for key in (name,) if name in sample else name.split("/"):
            value = value[key]
        if name in ("image", "mask") or name in TEXTS:
            value = [base64.b64decode(each) for each in value] if isinstance(value, list) else base64.b64decode(value)
            return value if name in ("image", "mask") else [each.decode() for each in value] if isinstance(value, list) else value.decode()
        if name in ("objects/bbox", "one"):
            top, left, bottom, right = np.moveaxis(np.array(value, "f4").reshape((-1, 4) if name != "one" else 4), -1, 0)
            width, height = Image.open(io.BytesIO(base64.b64decode(sample["image"]))).size
            return np.stack([left * np.float32(width), top * np.float32(height), right * np.float32(width), bottom * np.float32(height)], -1)
        return value

    def columns(self):
        """All that have a place."""
        return ["image", "label", "mask", "image/filename", "objects/bbox", "objects/label", "objects/is_crowd", "vector", "number", "tokens", "names", "free", "nested", "u8", "f64",
                "zl", "sound", "opt", "one", "fixed", "pairs", "caption/de", "caption/en", "kind/sub"]

    def compare(self, rows, names, samples):
        self.assertEqual(len(rows), len(samples))
        for index, sample in enumerate(samples):
            found = rows[index]
            self.assertEqual(list(found), list(names))
            for name, value in found.items():
                with self.subTest(index=index, name=name):
                    want = self.wanted(name, sample)
                    if isinstance(want, (bytes, str)) or name == "names":
                        self.assertEqual(value, want)
                    elif name == "nested":
                        self.assertEqual([each.tolist() for each in value], want)
                    elif not np.size(want):     # JSON has no shape of it
                        self.assertEqual((value.size, value.shape[1:]), (0, {"free": (2,), "pairs": (2,), "objects/bbox": (4,)}.get(name, ())))
                    else:
                        np.testing.assert_array_equal(value, want)

    def unwrapped(self, dataset):
        rows = dataset.dataset
        while not hasattr(rows, "ranges") or not hasattr(rows, "class_names") or hasattr(rows, "dataset"):
            rows = rows.dataset
        return rows

    def rows(self, split="train", columns=None, **options):
        return self.unwrapped(oa.from_tfds(self.folder, split, self.columns() if columns is None else columns, ragged=RAGGED, **options))

    def test_samples_are_those_of_tfds(self):
        rows = self.rows()
        self.compare(rows, self.columns(), GOLDEN["samples"])
        self.compare(pickle.loads(pickle.dumps(rows)), self.columns(), GOLDEN["samples"])
        self.assertEqual([rows[0][name].dtype.name for name in ("vector", "number", "u8", "f64", "zl", "objects/is_crowd", "pairs", "tokens")],
                         ["float32", "int32", "uint8", "float64", "uint8", "bool", "int32", "int64"])
        self.assertEqual((rows.classes, rows.class_names), (["cat", "dog", "bird"], {"label": ["cat", "dog", "bird"], "objects/label": [], "kind/sub": ["x", "y"]}))

    def test_splits_are_those_of_tfds(self):
        for split, want in GOLDEN["splits"].items():
            with self.subTest(split=split):
                if want in ("ValueError", []):
                    with self.assertRaisesRegex(oa.Error, "bound is|has no sample"):
                        self.rows(split)
                    continue
                rows = self.rows(split)
                self.assertEqual([[pathlib.Path(rows.files[at][0]).name, first, last - first] for at, first, last in rows.ranges], want)
        self.compare(self.rows("train[2:9]"), self.columns(), GOLDEN["samples"][2:9])
        for split in "val", "train[", "train[5]", "train[:101%]", "", None, "train[:80%]test":
            with self.assertRaisesRegex(oa.errors.ArgumentError, "has the splits train, test|bound is 101%"):
                self.rows(split)

    def test_batches(self):
        data = oa.from_tfds(self.folder, "train[:10]", ["image", "label", "mask", "caption/de", "objects/bbox", "objects/label"], masks="mask", keep=0.2,
                            ragged={"objects/bbox": 8, "objects/label": 8}, boxes=["objects/bbox", "objects/label"])
        loader = self.open(data, oa.transforms.Compose([oa.transforms.Resize((40, 20))]), batch_size=5, shuffle=False, as_="numpy", copy=True)
        samples = GOLDEN["samples"]
        for batch in loader:
            self.assertEqual(batch["image"].shape, (5, 40, 20, 3))
            for place, index in enumerate(batch.ids):
                sample = samples[index]
                self.assertEqual(batch["label"][place], sample["label"])
                self.assertTrue((batch["mask"][place] == sample["number"]).all())
                self.assertEqual(batch["caption/de"][place], self.wanted("caption/de", sample))
                boxes = np.array(sample["objects"]["bbox"], "f4").reshape(-1, 4)[:, [1, 0, 3, 2]] * np.array([20, 40, 20, 40], "f4")
                np.testing.assert_allclose(batch["objects/bbox"].list()[place], boxes, rtol=1e-5)
                np.testing.assert_array_equal(batch["objects/label"].list()[place], sample["objects"]["label"])
        self.assertEqual(loader.dataset.classes, ["cat", "dog", "bird"])
        every = self.open(oa.from_tfds(self.folder, "train", ["names", "free", "nested", "vector", "caption/en"], ragged={name: RAGGED[name] for name in ("names", "free", "nested")},
                                        exact=True, keep=0.2), batch_size=4, shuffle=False, as_="numpy", copy=True)
        for batch in every:
            for place, index in enumerate(batch.ids):
                self.assertEqual(batch["names"][place], self.wanted("names", samples[index]))
                np.testing.assert_array_equal(batch["free"].list()[place], np.array(samples[index]["free"], "f4").reshape(-1, 2))
                self.assertEqual([row.tolist() for row in batch["nested"].list()[place]], samples[index]["nested"])
                np.testing.assert_array_equal(batch["vector"][place], samples[index]["vector"])

    @unittest.skipUnless(importlib.util.find_spec("array_record"), "no package array_record")
    def test_array_record(self):
        from array_record.python.array_record_module import ArrayRecordWriter
        for path in sorted(self.folder.glob("*.tfrecord-*")):
            writer, data = ArrayRecordWriter(str(path).replace("tfrecord", "array_record"), "group_size:1"), path.read_bytes()
            while data:
                length, = struct.unpack_from("<Q", data)
                writer.write(data[12:12 + length])
                data = data[16 + length:]
            writer.close()
            path.unlink()
        info = self.folder / "dataset_info.json"
        info.write_text(info.read_text().replace('"fileFormat":"tfrecord"', '"fileFormat":"array_record"'))
        self.compare(self.rows("train[2:9]"), self.columns(), GOLDEN["samples"][2:9])

    def test_what_has_no_place(self):
        for name, words in (("pics", "is a list of pictures"), ("floats", "is a picture of floats"), ("free2", "beyond the first"), ("nope", "has no feature 'nope'; there are: .*image/filename")):
            with self.assertRaisesRegex(oa.Error, words):
                self.rows(columns=["image", name])
        with self.assertRaisesRegex(oa.errors.ArgumentError, r"ragged=\{'names': \(8, 4\), 'tokens': 40\} \(four times what the first 11 samples have\)"):
            oa.from_tfds(self.folder, "train", ["image", "names", "tokens"])
        features = json.loads((self.folder / "features.json").read_text())
        inner = features["featuresDict"]["features"]
        inner["steps"] = {"pythonClassName": "tensorflow_datasets.core.features.dataset_feature.Dataset", "sequence": {"feature": inner["label"], "length": "-1"}}
        inner["film"] = {"pythonClassName": "tensorflow_datasets.core.features.video_feature.Video", "video": {}}
        (self.folder / "features.json").write_text(json.dumps(features))
        for name, words in (("steps", "steps of an episode .RLDS."), ("film", "is a feature of the class Video")):
            with self.assertRaisesRegex(oa.errors.TransformError, words):
                self.rows(columns=[name])
        self.assertEqual(set(self.rows(columns=[*self.columns()])[0]), set(self.columns()))
        with self.assertWarnsRegex(UserWarning, "left out: .*steps is the steps of an episode"):
            default = self.unwrapped(oa.from_tfds(self.folder, "train", ragged=RAGGED))
        self.assertEqual((list(default[0])[:3], {*default[0]}), (["image", "mask", "label"], {*self.columns()}))

    def test_damaged(self):
        for call, words, error in (
                (lambda: (self.folder / "thing-train.tfrecord-00001-of-00003").unlink(), "of which dataset_info.json tells", FileNotFoundError),
                (lambda: (self.folder / "features.json").write_text("{"), "features.json is damaged", oa.errors.DatasetError),
                (lambda: (self.folder / "features.json").write_text('{"featuresDict": 3}'), "features.json of .* is damaged", oa.errors.DatasetError),
                (lambda: (self.folder / "features.json").unlink(), "no data set that TFDS prepared", FileNotFoundError)):
            call()
            with self.assertRaisesRegex(error, words):
                self.rows()
        with self.assertRaisesRegex(FileNotFoundError, "give the folder of a version, as .*1.0.0"):
            oa.from_tfds(self.folder.parent, "train")

    def test_hostile(self):
        """What these files say is neither run, nor leads out of the folder."""
        file = self.folder / "dataset_info.json"
        whole = json.loads(file.read_text())
        for change, words in (({"filepathTemplate": "/etc/{SPLIT}"}, "'/etc/train' is a file of the split train, which is not in the folder"),
                              ({"filepathTemplate": "a/../../{SPLIT}"}, "which is not in the folder"),
                              ({"filepathTemplate": "{SPLIT}\0"}, "which is not in the folder"),
                              ({"filepathTemplate": "{SPLIT.__class__}"}, "is damaged: the split train has files called"),
                              ({"filepathTemplate": "{SPLIT:>9999999999}"}, "is damaged"), ({"filepathTemplate": 3}, "is damaged"),
                              ({"shardLengths": ["4", "-3", "4"]}, "less than no sample"), ({"shardLengths": [1e400]}, "is damaged"),
                              ({"shardLengths": [str(1 << 70)]}, "is too large")):
            file.write_text(json.dumps({**whole, "splits": [{**whole["splits"][0], **change}]}))
            with self.subTest(change=change), self.assertRaisesRegex(oa.errors.DatasetError, words):
                self.rows()
        file.write_text("[" * 100_000)
        with self.assertRaisesRegex(oa.errors.DatasetError, "is damaged"):
            self.rows()
        file.write_text(json.dumps(whole))
        features = json.loads((self.folder / "features.json").read_text())
        for dtype in "U999999999", "f8,f8", "O", "(", "bfloat16", [["a", "f8"]]:
            features["featuresDict"]["features"]["vector"]["tensor"]["dtype"] = dtype
            (self.folder / "features.json").write_text(json.dumps(features))
            with self.subTest(dtype=dtype), self.assertRaisesRegex(oa.errors.TransformError, "vector .*is of the dtype"):
                self.rows(columns=["vector"])
        (self.folder / "label.labels.txt").write_bytes(b"\xff\xfe")
        with self.assertRaisesRegex(oa.errors.DatasetError, "names of the classes of label"):
            self.rows(columns=["label"])

    def tried(self):
        """Whatever is in the files, it is told in words of ours."""
        try:
            rows = self.rows(columns=["image", "label", "objects/bbox", "tokens", "nested", "zl", "caption/de"])
            for index in range(min(4, len(rows))):
                rows[index]
        except oa.Error:
            return False
        return True

    def test_damaged_anywhere(self):
        path = self.folder / "dataset_info.json"
        whole, good = path.read_bytes(), 0
        for made in damage.of_json(json.loads(whole)):
            path.write_text(json.dumps(made))
            good += self.tried()
        path.write_bytes(whole)
        path = self.folder / "features.json"
        told = json.loads(path.read_bytes())
        features = told["featuresDict"]["features"]
        told["featuresDict"]["features"] = {name: features[name] for name in ("image", "label", "objects", "tokens", "nested", "zl", "caption")}
        for made in damage.of_json(told):
            path.write_text(json.dumps(made))
            good += self.tried()
        path.write_text(json.dumps(told))
        path = self.folder / "thing-train.tfrecord-00000-of-00003"
        for made in damage.of_bytes(path.read_bytes(), 300):
            path.write_bytes(made)
            good += self.tried()
        self.assertGreater(good, 0)

    def test_damaged_records(self):
        path = self.folder / "thing-train.tfrecord-00000-of-00003"
        whole = path.read_bytes()
        for data, words in ((whole[:-100], "is damaged or cut off"), (whole[:16 + struct.unpack_from("<Q", whole)[0]], "has 1 records, and dataset_info.json says 4"),
                            (b"\xff" * 40, "is damaged or cut off"), (whole[:12] + b"\xff" * 200 + whole[212:], "record 0 is no tf.Example")):
            path.write_bytes(data)
            rows = self.rows()
            with self.assertRaisesRegex(oa.errors.DatasetError, words):
                rows[0]


if __name__ == "__main__":
    unittest.main()
