# SPDX-License-Identifier: Apache-2.0
"""Data sets in TFRecord files and MDS shards: the same pictures and labels as of a folder."""

import io
import json
import os
import re
import shutil
import struct
import subprocess
import tarfile
import unittest
import zipfile

import numpy
import oneaccess as oa
import PIL.Image
import shard_files
import support

PIPELINE = '[{"op": "decode"}, {"op": "random_resized_crop", "size": 32}]'
ORDER = {"order": "sequential", "seed": 3, "epochs": 1, "as_": "numpy"}


def parts(items, count):
    """In pieces of about one size."""
    return [items[len(items) * i // count:len(items) * (i + 1) // count] for i in range(count)]


class ShardsCase(support.DaemonCase):
    """The pictures of a folder in its order, with their labels."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.samples = []
        for label, name in enumerate(sorted(os.listdir(cls.data))):
            for file in sorted(os.listdir(os.path.join(cls.data, name))):
                with open(os.path.join(cls.data, name, file), "rb") as picture:
                    cls.samples.append((picture.read(), label))

    def batches(self, dataset, **options):
        with oa.Loader(dataset, PIPELINE, 32, socket=self.socket, **{**ORDER, **options}) as loader:
            return [(batch[0].copy(), batch[1].copy()) for batch in loader]

    def assert_same(self, dataset, **options):
        mine, folder = self.batches(dataset, **options), self.batches(self.data)
        self.assertEqual(len(mine), len(folder))
        self.assertEqual(sum(len(labels) for _, labels in mine), len(self.samples))
        for (pictures, labels), (of_folder, labels_of_folder) in zip(mine, folder):
            numpy.testing.assert_array_equal(pictures, of_folder)
            numpy.testing.assert_array_equal(labels, labels_of_folder)
        self.assert_named(dataset, **options)

    def assert_named(self, dataset, **options):
        """Each sample has a name of its own, SHARD:KEY, whose shard is there; of a converted data set that of the one it was made of."""
        with oa.Loader(dataset, PIPELINE, 32, socket=self.socket, **{**ORDER, **options}) as loader:
            names, samples = loader.names(), loader.dataset.samples
        self.assertEqual((len(set(names)), len(samples)), (len(self.samples), len(self.samples)))
        self.assertEqual([label for _, label in samples], [label for _, label in self.samples])
        for name, (path, _) in zip(names, samples):
            self.assertTrue(path.endswith("/" + name), path)
            self.assertTrue(any(map(os.path.exists, (path, path.rpartition(":")[0]))) or str(dataset).endswith(".oads"), path)

    def assert_same_fields(self, data):
        with oa.Loader(data, PIPELINE, 32, socket=self.socket, **ORDER) as loader:
            found = [(batch["image"].copy(), batch["label"].copy()) for batch in loader]
        for (pictures, labels), (of_folder, of_classes) in zip(found, self.batches(self.data), strict=True):
            numpy.testing.assert_array_equal(pictures, of_folder)
            numpy.testing.assert_array_equal(numpy.ravel(labels), of_classes)

    def whole(self, dataset, op, **options):
        """Batches of what an op with members makes: dicts of the fields."""
        with oa.Loader(dataset, json.dumps(op), 8, socket=self.socket, order="sequential", epochs=1, as_="numpy", **options) as loader:
            for batch in loader:
                yield from zip(*map(list, batch))

    def set_aside(self, dataset, *words, count=1):
        """It is opened all the same, and one line of the log says why its indexes were not taken; none of words: no line does."""
        before = os.stat(self.work / "accessd.log").st_size
        self.assert_same(dataset)
        with open(self.work / "accessd.log", encoding="utf-8") as log:
            log.seek(before)
            told = [line for line in log if " index-aside " in line]
        self.assertEqual(len(told), bool(words), told)
        for word in (*words, f" indexes={count} ") if words else ():
            self.assertIn(word, told[0])

    def refused(self, dataset, *words):
        with self.assertRaises(oa.errors.DatasetError) as caught:
            oa.Loader(dataset, PIPELINE, 32, socket=self.socket)
        for word in words:
            self.assertIn(word, str(caught.exception))


class TFRecord(ShardsCase):
    def write(self, name, count=3, form="train-{0:05}-of-{1:05}"):
        folder = self.work / name
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, count)):
            shard_files.write_tfrecord(folder / form.format(number, count), [
                shard_files.example({"image/class/label": [label], "image/encoded": picture,
                                     "image/class/text": b"a text"}) for picture, label in part])
        return folder

    def test_the_same_as_a_folder(self):
        folder = self.write("tfrecord")
        self.assert_same(str(folder))
        self.assert_same(f"{folder}/train-{{00000..00002}}-of-00003")

    def test_left_out(self):
        """All samples of the last class are left out: the others are as they were, and so are their labels and the classes."""
        folder = self.work / "tfrecord-left"
        folder.mkdir()
        last = max(label for _, label in self.samples) + 1
        labels = [label for _, label in self.samples[:30]]
        labels[3] = labels[17] = last
        shard_files.write_tfrecord(folder / "a.tfrecord", [shard_files.example({"image/class/label": [label], "image/encoded": picture})
                                                           for (picture, _), label in zip(self.samples, labels)])
        source = {"leave_out": "a.tfrecord:[3];a.tfrecord:[17]"}
        whole, = self.batches(str(folder))
        left, = self.batches(str(folder), source=source)
        stays = whole[1] != last
        self.assertEqual((list(whole[1]), len(left[1])), (labels, 28))
        numpy.testing.assert_array_equal(left[0], whole[0][stays])
        numpy.testing.assert_array_equal(left[1], whole[1][stays])
        with oa.Loader(str(folder), PIPELINE, 8, socket=self.socket) as all_of, oa.Loader(str(folder), PIPELINE, 8, socket=self.socket, source=source) as rest:
            self.assertEqual(all_of.classes, rest.classes)
        for names, wrong in (("a.tfrecord:[3];a.tfrecord:[30]", "a.tfrecord:[30]"), ("a.tfrecord:[3];", None), ("a.tfrecord:[3];;a.tfrecord:[4]", ""), (";", "")):
            if wrong is None:
                self.assertEqual(len(self.batches(str(folder), source={"leave_out": names})[0][1]), 29)
                continue
            with self.assertRaisesRegex(oa.errors.DatasetError, re.escape(f'leave_out: there is no sample "{wrong}"')):
                self.batches(str(folder), source={"leave_out": names})

    def test_one_file_by_suffix_or_content(self):
        folder = self.write("tfrecord-one", 1, "data.tfrecord")
        self.assert_same(str(folder / "data.tfrecord"))
        os.rename(folder / "data.tfrecord", folder / "data")
        self.assert_same(str(folder / "data"))

    def test_each_once_in_any_order(self):
        folder = self.write("tfrecord-any", 5, "part{0}.tfrecords")
        labels = numpy.concatenate([labels for _, labels in self.batches(str(folder), order="carousel", seed=None)])
        self.assertEqual(sorted(labels), sorted(label for _, label in self.samples))

    def test_damaged(self):
        folder = self.write("tfrecord-damaged", 2)
        file = folder / "train-00001-of-00002"
        data = bytearray(file.read_bytes())
        length, = struct.unpack_from("<Q", data)
        data[16 + length + 12 + 100] ^= 1
        file.write_bytes(data)
        self.refused(str(folder), f"train-00001-of-00002:{16 + length + 12}: record 1: its checksum is wrong")

    def test_an_archive_beside_files(self):
        folder = self.write("tfrecord-beside")
        (folder / "code.tgz").write_bytes(b"anything")
        self.assert_same(str(folder))

    def test_cut_off(self):
        folder = self.write("tfrecord-cut", 1)
        file = folder / "train-00000-of-00001"
        os.truncate(file, file.stat().st_size - 1)
        self.refused(str(folder), "train-00000-of-00001:", "cut off")

    def test_index_of_dali(self):
        records = [shard_files.example({"image/class/label": [label], "image/encoded": picture}) for picture, label in self.samples]
        for name, form in (("suffix", "a.tfrecord"), ("number", "a.x-00000-of-00001")):
            folder = self.work / f"tfrecord-idx-{name}"
            folder.mkdir()
            index = folder / f"{form.removesuffix('.tfrecord')}.idx"
            shard_files.write_tfrecord(folder / form, records)
            shard_files.write_records_idx(index, records)
            self.assert_same(str(folder))
            for wrong, why in (([records[0] + b"x", *records[1:]], f"{index.name}:{len(records)} is not where a record is in {form}"), (records[:-1], f"{index.name} has not all records of {form}"),
                               (records * 2, f"{index.name}:{len(records) + 1} is not where")):
                shard_files.write_records_idx(index, wrong)
                os.utime(folder / form)
                self.set_aside(str(folder), why, "tfrecord2idx")
            index.write_text("no index\n")
            os.utime(folder / form)
            self.set_aside(str(folder), f'{index.name}:1 is no', f"in {form}")

    def test_compressed(self):
        folder = self.work / "tfrecord-gz"
        folder.mkdir()
        (folder / "a.tfrecord.gz").write_bytes(b"\x1f\x8b")
        self.refused(str(folder), "compressed", "access-ctl convert")

    def test_no_picture(self):
        folder = self.work / "tfrecord-text"
        folder.mkdir()
        shard_files.write_tfrecord(folder / "a.tfrecord", [shard_files.example({"text": b"no picture"})])
        self.refused(str(folder), "a.tfrecord:12: record 0: no feature of bytes is the picture")

    def test_features_by_name(self):
        folder = self.work / "tfrecord-names"
        folder.mkdir()
        other = b"\xff\xd8\xff another picture"
        shard_files.write_tfrecord(folder / "a.tfrecord", [
            shard_files.example({"label": [0], "kind": [label], "image/encoded": other, "photo": picture})
            for picture, label in self.samples])
        source = {"image": "photo", "label": "kind"}
        self.assert_same(str(folder), source=source)
        plain = self.batches(str(folder), source={"image": "photo"})
        self.assertEqual({int(label) for _, labels in plain for label in labels}, {0})
        with self.assertRaisesRegex(oa.errors.DatasetError, "no feature of whole numbers is the label"):
            self.batches(str(folder), source={**source, "label": "sort"})

    def test_features_are_fields(self):
        """Numbers, raw bytes, texts and JSON, dense and ragged, with a picture and without one."""
        folder = self.work / "tfrecord-features"
        folder.mkdir()
        for number, part in enumerate(parts(list(enumerate(self.samples)), 2)):
            shard_files.write_tfrecord(folder / f"{number}.tfrecord", [
                shard_files.example({"image/encoded": picture, "tokens": list(range(index % 5)), "boxes": [0.5, 1.5, 2.5, 3.5] * (index % 3),
                                     "raw": struct.pack("<2h", index, -index), "text": f"caption {index}".encode(), "n": [-index],
                                     "about": json.dumps({"deep": [index, 7]}).encode()}) for index, (picture, _) in part])
        members = ["tokens", "boxes", "raw", "text", "n", "about:deep"]
        fields = {"fields": [[8, 4], [3, 2, 4], [7, 2], [1, 20], [4], [4, 2]], "kinds": [1, 1, 0, 2, 0, 0]}
        seen = 0
        for index, got in enumerate(self.whole(str(folder), [{"op": "record", "members": members, **fields}], source={"members": "all"})):
            tokens, boxes, raw, text, n, deep = got[:6]
            self.assertEqual(tokens.tolist(), list(range(index % 5)))
            self.assertEqual(boxes.tolist(), [[0.5, 1.5, 2.5, 3.5]] * (index % 3))
            self.assertEqual((raw.tolist(), text, int(n), deep.tolist()), ([index, -index], f"caption {index}", -index, [index, 7]))
            self.assertEqual((tokens.dtype, raw.dtype), (numpy.int32, numpy.int16))
            seen += 1
        self.assertEqual(seen, len(self.samples))
        op = [{"op": "decode", "members": ["image/encoded", *members], **fields}, {"op": "center_crop", "size": 32}]
        crop = json.dumps([{"op": "decode"}, {"op": "center_crop", "size": 32}])
        with oa.Loader(self.data, crop, 8, socket=self.socket, order="sequential", epochs=1, as_="numpy") as loader:
            pictures = [picture.copy() for images, _ in loader for picture in images]
        for index, got in enumerate(self.whole(str(folder), op, source={"members": "all"})):
            numpy.testing.assert_array_equal(got[0], pictures[index])
            self.assertEqual(got[5], f"caption {index}")
        for op, why in (({"members": ["nobody"], "fields": [[4]]}, "no feature nobody"),
                        ({"members": ["n"], "fields": [[3]]}, r"n: of another type; it is \[4\]"),
                        ({"members": ["tokens"], "fields": [[4, 3]], "kinds": [1]}, "more values than 3")):
            with self.assertRaisesRegex(oa.errors.SampleError, why):
                list(self.whole(str(folder), [{"op": "record", **op}], source={"members": "all"}))
        with self.assertRaisesRegex(oa.errors.DatasetError, "the option members is all"):
            list(self.whole(str(folder), [{"op": "record", "members": ["n"], "fields": [[4]]}], source={"members": "n"}))

    def test_fields_by_name(self):
        """from_tfrecord(): what wrap() would give of the same samples, without a pool."""
        folder = self.work / "tfrecord-by-name"
        folder.mkdir()
        pictures = [picture for picture, _ in self.samples]

        def sample(index):
            return {"image/encoded": pictures[index], "image/class/label": [self.samples[index][1]], "id": [1 << 40 | index], "tokens": list(range(index % 5)),
                    "boxes": [1.0, 2.0, 30.0, 40.0] * (index % 3), "kinds": [index] * (index % 3), "text": f"BM gr\u00fcn {index}".encode(), "raw": bytes([0, index % 256]),
                    "grid": [index, 1, 2, 3, 4, 5], "one": [0.5 * index], "about": json.dumps({"deep": [index, 7], "class": 7}).encode()}

        for number, part in enumerate(parts(range(len(self.samples)), 2)):
            shard_files.write_tfrecord(folder / f"train-{number:05}-of-00002", [shard_files.example(sample(index)) for index in part])
        features = {"label": "image/class/label", "id": "id", "tokens": "tokens", "boxes": "boxes", "kinds": "kinds", "text": "text", "raw": "raw", "grid": ("grid", (2, 3)),
                    "one": "one", "deep": "about:deep"}
        most = {"tokens": 4, "boxes": 2, "kinds": 2, "text": 20, "raw": 9}

        def check(batch, without=()):
            for at, index in enumerate(batch.ids):
                of = sample(index)
                want = {"label": of["image/class/label"][0], "id": of["id"][0], "tokens": of["tokens"], "boxes": [[1, 2, 30, 40]] * (index % 3), "kinds": of["kinds"],
                        "text": of["text"].decode(), "raw": list(of["raw"]), "grid": [of["grid"][:3], of["grid"][3:]], "one": of["one"][0], "deep": [index, 7]}
                got = {name: batch[name][at] for name in features if name not in without}
                self.assertEqual({name: value if isinstance(value, str) else value.tolist() for name, value in got.items()}, {name: want[name] for name in got})

        for path in (folder, str(folder / "train-{00000..00001}-of-00002")):
            data = oa.from_tfrecord(path, features, ragged=most, boxes=["boxes", "kinds"])
            with oa.Loader(data, None, 16, socket=self.socket, **{**ORDER, "order": "carousel", "seed": None}) as loader:
                seen = []
                for batch in loader:
                    self.assertEqual(list(batch), list(features))
                    check(batch)
                    seen += batch.ids
                self.assertEqual(sorted(seen), list(range(len(pictures))))
        crop, seen = json.dumps([{"op": "decode"}, {"op": "center_crop", "size": 32}]), []
        data = oa.from_tfrecord(folder, {"image": "image/encoded", **features}, ragged=most, boxes=["boxes", "kinds"])
        with oa.Loader(data, crop, 16, socket=self.socket, ragged={"text": "strings"}, **ORDER) as loader, \
                oa.Loader(self.data, crop, 16, socket=self.socket, **ORDER) as of_folder:
            for batch, (images, _) in zip(loader, of_folder, strict=True):
                self.assertEqual(list(batch), ["image", *features])
                numpy.testing.assert_array_equal(batch["image"], images)
                check(batch, ["boxes", "kinds"])            # which are cropped
                self.assertLessEqual(max(len(boxes) for boxes in batch["boxes"].list()), 2)
                seen += batch.ids
        self.assertEqual(seen, list(range(len(pictures))))
        of_json = oa.from_tfrecord(folder, {"image": "image/encoded", "label": "about:class"})
        with oa.Loader(of_json, crop, 16, socket=self.socket, **ORDER) as loader:
            self.assertEqual({int(label) for batch in loader for label in batch["label"]}, {7})
        two = oa.from_tfrecord(folder, {"image": "image/encoded", "label": "image/class/label"})
        with oa.Loader(two, "imagenet-eval-u8", 16, socket=self.socket, order="any", epochs=1) as loader, \
                oa.Loader(data, "imagenet-eval-u8", 16, socket=self.socket, order="any", epochs=1) as other:
            self.assertEqual([len(loader), loader.classes], [len(other), [str(label) for label in range(support.CLASSES)]])
            self.assertEqual(len(oa.mix([loader, oa.Loader(two, "imagenet-eval-u8", 16, socket=self.socket)], batch_size=4).parts), 2)

    def test_fields_that_cannot_be_had(self):
        folder = self.write("tfrecord-refused", 1)
        for features, options, why in (
                ({}, {}, "{field of a batch: feature}"), ({"x": 7}, {}, r"features=\{'x': 7\}: give a feature's name"),
                ({"x": "image"}, {}, "no feature 'image'; there are: image/class/label, image/class/text, image/encoded"),
                ({"x": "image/class/text"}, {}, "is a text: say the most of one, as ragged=.'x': 24.*has 6"),
                ({"x": ("image/class/label", (2,))}, {}, "the feature has 1 values"),
                ({"x": "image/class/label"}, {"boxes": "x"}, "the feature has 1 values|not among ragged")):
            with self.assertRaisesRegex(oa.Error, why):
                oa.from_tfrecord(folder, features, **options)
        with self.assertRaises(FileNotFoundError):
            oa.from_tfrecord(folder / "gone", {"x": "y"})
        with self.assertRaisesRegex(oa.errors.DatasetError, "no TFRecord files"):
            oa.from_tfrecord(self.data, {"x": "y"})
        for name, data, why in (("empty", b"", "has no records"), ("cut", bytes(8), "error: unpack|cut off"), ("huge", struct.pack("<Q4x", 1 << 40), "a record of"),
                                ("other", struct.pack("<Q4x", 4) + b"\xff\xff\xff\xff" + bytes(4), "no records of tf.Example")):
            (self.work / f"{name}.tfrecord").write_bytes(data)
            with self.assertRaisesRegex(oa.errors.DatasetError, why):
                oa.from_tfrecord(self.work / f"{name}.tfrecord", {"x": "y"})
        with self.assertRaisesRegex(oa.errors.TransformError, "picture's file, give the Loader a pipeline"):
            oa.Loader(oa.from_tfrecord(folder, {"x": "image/encoded"}), socket=self.socket)

    def test_features_of_tensorflow(self):
        """What parse_single_example() makes of them."""
        try:
            import tensorflow as tf
        except ImportError:
            self.skipTest("tensorflow is not installed: not tested: features of its own files")
        folder = self.work / "tensorflow-features"
        folder.mkdir()
        with tf.io.TFRecordWriter(str(folder / "a.tfrecord")) as writer:
            for index in range(40):
                feature = {"ints": tf.train.Feature(int64_list=tf.train.Int64List(value=[index, -index, 1 << 40])),
                           "ragged": tf.train.Feature(int64_list=tf.train.Int64List(value=range(index % 7))),
                           "floats": tf.train.Feature(float_list=tf.train.FloatList(value=[index / 3] * 4)),
                           "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"gr\u00fcn {index}".encode()]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        wanted = {"ints": tf.io.FixedLenFeature([3], tf.int64), "ragged": tf.io.RaggedFeature(tf.int64), "floats": tf.io.FixedLenFeature([2, 2], tf.float32),
                  "text": tf.io.FixedLenFeature([], tf.string)}
        op = [{"op": "record", "members": list(wanted), "fields": [[4, 3], [4, 7], [3, 2, 2], [1, 20]], "kinds": [0, 1, 0, 2]}]
        theirs = [tf.io.parse_single_example(record, wanted) for record in tf.data.TFRecordDataset([str(folder / "a.tfrecord")])]
        for got, one in zip(self.whole(str(folder), op, source={"members": "all"}), theirs, strict=True):
            for name, value in zip(list(wanted)[:3], got):
                numpy.testing.assert_array_equal(value, one[name].numpy())
            self.assertEqual(got[3], one["text"].numpy().decode())
        named = oa.from_tfrecord(folder, {"ints": "ints", "ragged": "ragged", "floats": ("floats", (2, 2)), "text": "text"}, ragged={"ragged": 7, "text": 20})
        with oa.Loader(named, None, 8, socket=self.socket, **ORDER) as loader:
            for batch in loader:
                for at, index in enumerate(batch.ids):
                    for name in ("ints", "ragged", "floats"):
                        numpy.testing.assert_array_equal(batch[name][at], theirs[index][name].numpy())
                    self.assertEqual(batch["text"][at], theirs[index]["text"].numpy().decode())

    def test_files_of_tensorflow(self):
        try:
            import tensorflow as tf
        except ImportError:
            self.skipTest("tensorflow is not installed: not tested: its own files")
        folder = self.work / "tensorflow"
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, 2)):
            with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as writer:
                for picture, label in part:
                    writer.write(tf.train.Example(features=tf.train.Features(feature={
                        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture])),
                        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                        "image/object/bbox/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1])),
                    })).SerializeToString())
        self.assert_same(str(folder))
        files = sorted(map(str, self.write("of-ours").iterdir()))
        wanted = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
                  "image/class/label": tf.io.FixedLenFeature([], tf.int64)}
        read = [tf.io.parse_single_example(record, wanted) for record in tf.data.TFRecordDataset(files)]
        self.assertEqual([(one["image/encoded"].numpy(), int(one["image/class/label"])) for one in read], self.samples)

    def test_changed(self):
        folder = self.write("tfrecord-changed")
        with oa.Loader(str(folder), PIPELINE, 1, socket=self.socket, order="sequential", as_="numpy") as loader:
            batches = iter(loader)
            next(batches)
            for file in folder.iterdir():
                os.utime(file, (1, 1))
            with self.assertRaises(oa.Error) as caught:
                for _ in range(2 * len(self.samples)):
                    next(batches)
        self.assertIn("changed", str(caught.exception))


class Tar(ShardsCase):
    def test_index_of_dali(self):
        folder = self.work / "tar-idx"
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, 2)):
            with tarfile.open(folder / f"{number}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
                for at, (picture, label) in enumerate(part):
                    for suffix, data in (("jpg", picture), ("cls", b"%d" % label), ("json", b"{}")):
                        member = tarfile.TarInfo(f"{at:04}.{suffix}")
                        member.size, member.mtime = len(data), 1.5
                        tar.addfile(member, io.BytesIO(data))
            shard_files.write_files_idx(folder / f"{number}.idx", folder / f"{number}.tar")
        self.assert_same(str(folder))
        loader = oa.Loader(str(folder), json.dumps([{"op": "record", "members": ["cls", "json"], "fields": [[4], [1, 2]], "kinds": [0, 2]}]), 8,
                           socket=self.socket, source={"members": "all"}, as_="numpy", shuffle=False)
        with loader:
            self.assertEqual([label for batch in loader for label in batch[0].tolist()], [label for _, label in self.samples])
        os.rename(folder / "0.idx", folder / "2.idx")
        os.rename(folder / "1.idx", folder / "0.idx")
        os.utime(folder / "0.tar")
        self.set_aside(str(folder), "0.idx", "0.tar", "wds2idx")
        lines = (folder / "2.idx").read_text().splitlines()
        for wrong, why in ((["v1.3 1"], "0.idx:1 is no"), (lines[:-1], "0.idx has not all samples of 0.tar"),
                           ([*lines[:3], "jpg 0"], "0.idx:4 is no line of files"), ([*lines[:2], "jpg 0 999999999 a"], "0.idx:3 has a file beyond")):
            (folder / "0.idx").write_text("\n".join(wrong) + "\n")
            os.utime(folder / "0.tar")
            self.set_aside(str(folder), why)
        (folder / "0.idx").write_text("\n".join([f"v1.1 {len(lines) - 1}", *(re.sub(r" \d{4}\.\w+", "", line) for line in lines[1:])]))
        os.utime(folder / "0.tar")
        self.set_aside(str(folder))
        for name in ("0.idx", "1.idx"):
            (folder / name).write_text("two of them\n")
        os.utime(folder / "0.tar")
        self.set_aside(str(folder), "0.idx:1 ", count=2)

    def test_index_of_wids(self):
        folder = self.work / "tar-wids"
        folder.mkdir()
        shards = []
        for number, part in enumerate(parts(self.samples, 2)):
            with tarfile.open(folder / f"{number}.tar", "w") as tar:
                for at, (picture, label) in enumerate(part):
                    for suffix, data in (("jpg", picture), ("cls", b"%d" % label)):
                        member = tarfile.TarInfo(f"{at:04}.{suffix}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
            shards.append({"url": f"https://example.org/{number}.tar?x", "nsamples": len(part), "filesize": os.stat(folder / f"{number}.tar").st_size})
        half = len(parts(self.samples, 2)[1])

        def write(text):
            (folder / "shards.json").write_text(text)
            os.utime(folder / "1.tar")

        for right in ({"shardlist": shards}, {"datasets": [{"shardlist": shards[:1]}, {"source_url": "other.json"}]}, {"shardlist": [{**shards[0], "nsamples": 9999}]}):
            write(json.dumps({"wids_version": 1, **right}))
            self.set_aside(str(folder))
        for other in ("no JSON", "[1]", '{"shardlist": [1]}'):
            write(other)
            self.set_aside(str(folder))
        for wrong, why in ((shards[1] | {"nsamples": half - 1}, f"shards.json says {half - 1} samples of 1.tar, which has {half}"),
                           (shards[1] | {"filesize": 512}, "shards.json says 512 bytes of 1.tar, which has "), (shards[1] | {"url": "2.tar"}, "shards.json names 2.tar, which is not there"),
                           ({"url": "1.tar"}, "shards.json has a shard without")):
            write(json.dumps({"wids_version": 1, "shardlist": [shards[0], wrong]}))
            self.set_aside(str(folder), why, "widsindex")


class RecordIO(ShardsCase):
    """As MXNet's im2rec writes them: the first record is none of a picture, and each picture has the magic within, so that it is cut up."""

    def write(self, name, count=1, label=float, first=((0.0, b""),)):
        folder, comment = self.work / name, b"x".join([shard_files.MAGIC] * 9)      # at a multiple of four twice, wherever it begins
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, count)):
            records = [(label(of), picture[:2] + b"\xff\xfe" + struct.pack(">H", 2 + len(comment)) + comment + picture[2:]) for picture, of in part]
            shard_files.write_recordio(folder / f"train-{number}.rec", [*first, *records])
        return folder

    def test_the_same_as_a_folder(self):
        folder = self.write("recordio")
        (folder / "train-0.idx").write_text("0\t0\n")
        self.assert_same(str(folder))
        os.rename(folder / "train-0.rec", folder / "train.records")
        self.assert_same(str(folder / "train.records"))
        self.assert_same(str(self.write("recordio-parts", 3)))

    def test_converted(self):
        folder = self.write("recordio-convert", 2)
        subprocess.run([support.BUILD / "tools/access-ctl", "convert", folder, self.work / "recordio.oads"], check=True, capture_output=True)
        self.assert_same(str(self.work / "recordio.oads"))

    def test_labels_of_several(self):
        folder = self.write("recordio-labels", label=lambda of: [0.5, float(of), 7.0])
        self.refused(folder, "train-0.rec", "record 1", "its label is no class", "label=none")
        self.assert_same(str(folder), source={"label": "1"})
        self.refused(f"{folder}?label=3", "not so many labels")
        self.refused(f"{folder}?label=most", "option label")
        self.refused(f"{folder}?image=1", "label")
        self.assertEqual({int(label) for _, labels in self.batches(f"{folder}?label=none") for label in labels}, {0})

    def test_damaged(self):
        folder = self.write("recordio-damaged")
        with open(folder / "train-0.rec", "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.truncate()
        self.refused(folder, "train-0.rec", f"record {len(self.samples)}", "cut off")
        (folder / "train-0.rec").write_bytes(b"")
        self.refused(folder, "no record with a picture")


class Bagz(ShardsCase):
    """Of tf.Examples, and of pictures alone."""

    def write(self, name, count=3, form="train-{0:05}-of-{1:05}.bag"):
        folder = self.work / name
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, count)):
            shard_files.write_bagz(folder / form.format(number, count), [
                shard_files.example({"image/class/label": [label], "image/encoded": picture}) for picture, label in part])
        return folder

    def test_the_same_as_a_folder(self):
        folder = self.write("bagz")
        self.assert_same(str(folder))
        self.assert_same(f"{folder}/train-{{00000..00002}}-of-00003.bag")
        self.assert_same(str(self.write("bagz-one", 1) / "train-00000-of-00001.bag"))

    def test_pictures_alone(self):
        shard_files.write_bagz(self.work / "pictures.bag", [picture for picture, _ in self.samples])
        pictures, labels = (numpy.concatenate(of) for of in zip(*self.batches(str(self.work / "pictures.bag"))))
        numpy.testing.assert_array_equal(pictures, numpy.concatenate([of for of, _ in self.batches(self.data)]))
        self.assertEqual(set(labels), {0})

    def test_converted(self):
        folder = self.write("bagz-convert", 2)
        subprocess.run([support.BUILD / "tools/access-ctl", "convert", folder, self.work / "bagz.oads"], check=True, capture_output=True)
        self.assert_same(str(self.work / "bagz.oads"))

    def test_fields(self):
        features = {"image/class/label": [7, 8], "image/class/text": b"a text"}
        shard_files.write_bagz(self.work / "fields.bag", [shard_files.example({**features, "number": [number]}) for number in range(20)])
        op = [{"op": "record", "fields": [[4], [4, 2]], "members": ["number", "image/class/label"]}]
        rows = list(self.whole(f"{self.work}/fields.bag?members=all", op))
        self.assertEqual([int(number) for number, _ in rows], list(range(20)))
        self.assertTrue(all(list(labels) == [7, 8] for _, labels in rows))

    def test_compressed(self):
        """Workers unpack them; one that is damaged is a bad sample."""
        frames = [shard_files.zstd_frame(picture) for picture, _ in self.samples]
        shard_files.write_bagz(self.work / "frames.bagz", frames)
        pictures = numpy.concatenate([of for of, _ in self.batches(str(self.work / "frames.bagz"))])
        numpy.testing.assert_array_equal(pictures, numpy.concatenate([of for of, _ in self.batches(self.data)]))
        convert = subprocess.run([support.BUILD / "tools/access-ctl", "convert", self.work / "frames.bagz", self.work / "frames.oads"],
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual(convert.returncode, 1, convert.stderr)
        self.assertIn("write its records to a .bag", convert.stderr)
        self.assertFalse((self.work / "frames.oads").exists())
        frames[7] = frames[7][:-9]
        shard_files.write_bagz(self.work / "cut.bagz", frames)
        with self.assertRaises(oa.Error) as caught:
            self.batches(str(self.work / "cut.bagz"))
        self.assertIn("cut.bagz:[7]", str(caught.exception))
        self.assertIn("zstd", str(caught.exception))

    def test_compressed_examples(self):
        shard_files.write_bagz(self.work / "examples.bagz", [
            shard_files.zstd_frame(shard_files.example({"image/class/label": [label], "image/encoded": picture})) for picture, label in self.samples])
        with self.assertRaises(oa.Error) as caught:
            self.batches(str(self.work / "examples.bagz"))
        self.assertIn("a compressed tf.Example: decode needs", str(caught.exception))
        self.refused(f"{self.work}/examples.bagz?label=kind", "from_bagz()")
        op = [{"op": "record", "fields": [[4]], "members": ["image/class/label"]}]
        self.assertEqual([int(label) for label, in self.whole(f"{self.work}/examples.bagz?members=all", op)], [label for _, label in self.samples])

    def test_fields_by_name(self):
        folder = self.write("bagz-fields")
        data = oa.from_bagz(folder, {"image": "image/encoded", "label": "image/class/label"})
        self.assert_same_fields(data)
        with self.assertRaisesRegex(oa.errors.DatasetError, "has no Bagz files"):
            oa.from_bagz(self.data, {"x": "y"})

    def test_files_of_bagz(self):
        """What its writer writes, compressed and not."""
        try:
            import bagz
        except ImportError:
            self.skipTest("bagz is not installed: not tested: files of its own")
        for suffix in "bag", "bagz":
            folder = self.work / f"of-bagz-{suffix}"
            folder.mkdir()
            for number, part in enumerate(parts(self.samples, 2)):
                with bagz.Writer(folder / f"data-{number:05}-of-00002.{suffix}") as writer:
                    for picture, label in part:
                        writer.write(shard_files.example({"image/class/label": [label], "image/encoded": picture, "text": b"again " * 100}))
            self.assert_same_fields(oa.from_bagz(folder, {"image": "image/encoded", "label": "image/class/label"}))
        self.assert_same(str(self.work / "of-bagz-bag"))

    def test_damaged(self):
        folder = self.write("bagz-damaged")
        file = folder / "train-00001-of-00003.bag"
        file.write_bytes(file.read_bytes()[:-8])
        self.refused(str(folder), file.name, "does not end in the limits of its records", "LimitsPlacement.TAIL")
        for name, records, words in (("other", [b"some text"], ("record 0", "neither a picture nor a tf.Example", "bagz.Reader")), ("none", [], ("no record",))):
            shard_files.write_bagz(self.work / f"{name}.bag", records)
            self.refused(str(self.work / f"{name}.bag"), *words)


class ArrayRecord(ShardsCase):
    """Of tf.Examples, and of pictures alone, as they are and compressed; over many blocks."""

    OF_TFDS = "train.array_record-{0:05}-of-{1:05}"

    def examples(self, part):
        return [shard_files.example({"image/class/label": [label], "image/encoded": picture}) for picture, label in part]

    def write(self, name, count=3, form="train-{0:05}.array_record", compressed=False):
        folder = self.work / name
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, count)):
            shard_files.write_array_record(folder / form.format(number, count), self.examples(part), compressed)
        return folder

    def test_the_same_as_a_folder(self):
        folder = self.write("array", form=self.OF_TFDS)
        self.assert_same(str(folder))
        self.assert_same(f"{folder}/train.array_record-{{00000..00002}}-of-00003")
        one = self.write("array-one", 1) / "train-00000.array_record"
        self.assert_same(str(one))
        one.rename(one.with_name("any name"))
        self.assert_same(str(one.with_name("any name")))

    def test_pictures_alone(self):
        for compressed in False, True:
            shard_files.write_array_record(self.work / "pictures.arecord", [picture for picture, _ in self.samples], compressed)
            found, labels = (numpy.concatenate(of) for of in zip(*self.batches(str(self.work / "pictures.arecord"))))
            numpy.testing.assert_array_equal(found, numpy.concatenate([of for of, _ in self.batches(self.data)]))
            self.assertEqual(set(labels), {0})

    def convert(self, dataset, name="array.oads", code=0):
        convert = subprocess.run([support.BUILD / "tools/access-ctl", "convert", "--force", dataset, self.work / name], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual(convert.returncode, code, convert.stderr)
        self.assertFalse([name for name in os.listdir(self.work) if name.startswith(".access-convert")])
        return convert.stderr

    def test_converted(self):
        """Compressed records, and several in a chunk, are unpacked for that; files beside them that are plain are not."""
        self.convert(self.write("array-convert", 2))
        self.assert_same(str(self.work / "array.oads"))
        folder = self.write("array-mixed", compressed=True, form=self.OF_TFDS)
        part = parts(self.samples, 3)
        shard_files.write_array_record(folder / self.OF_TFDS.format(1, 3), self.examples(part[1]))
        for compressed in False, True:
            shard_files.write_array_record(folder / self.OF_TFDS.format(2, 3), self.examples(part[2]), compressed, group=7)
            self.refused(str(folder), "7 records are in one chunk", "access-ctl convert")
            for dataset in folder, f"{folder}/train.array_record-{{00000..00002}}-of-00003":
                self.convert(dataset)
                self.assert_same(str(self.work / "array.oads"))
        left = f"{folder}?leave_out={self.OF_TFDS.format(0, 3)}:[1];{self.OF_TFDS.format(2, 3)}:[2]"
        self.convert(left, "array.tar")
        with tarfile.open(self.work / "array.tar") as archive:
            self.assertEqual(len({name.partition(".")[0] for name in archive.getnames()}), len(self.samples) - 2)
        for form in "one.array_record", "any name":
            one = self.work / form
            for options in ({}, {"compressed": True}, {"group": 64}):
                shard_files.write_array_record(one, self.examples(self.samples), **options)
                self.convert(one)
                self.assert_same(str(self.work / "array.oads"))
        whole = one.read_bytes()
        for damaged, words in ((whole[:len(whole) // 2], "cut"), (whole[:9000] + b"~" + whole[9001:], "damaged"), (whole[:64], "cut")):
            one.write_bytes(damaged)
            self.assertIn(words, self.convert(one, code=1))

    def test_whole_examples(self):
        """Heads of blocks lie in every tenth of them."""
        records = [shard_files.example({"number": [number], "text": b"some text " * 650, "image/class/label": [7, 8]}) for number in range(120)]
        op = [{"op": "record", "fields": [[4], [4, 2]], "members": ["number", "image/class/label"]}]
        for compressed in False, True:
            shard_files.write_array_record(self.work / "whole.array_record", records, compressed)
            rows = list(self.whole(f"{self.work}/whole.array_record?members=all", op))
            self.assertEqual([int(number) for number, _ in rows], list(range(120)))
            self.assertTrue(all(list(labels) == [7, 8] for _, labels in rows))

    def test_compressed_examples(self):
        folder = self.write("array-frames", compressed=True)
        with self.assertRaises(oa.Error) as caught:
            self.batches(str(folder))
        self.assertIn("a compressed tf.Example: decode needs", str(caught.exception))
        self.refused(f"{folder}?label=kind", "from_array_record()")

    def test_files_of_array_record(self):
        """What its writer writes by default, as TensorFlow Datasets and Grain have it, and otherwise."""
        try:
            from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter
        except ImportError:
            self.skipTest("array_record is not installed: not tested: files of its own")

        def write(path, options, records):
            writer = ArrayRecordWriter(str(path), options)
            for record in records:
                writer.write(record)
            writer.close()

        for at, options in enumerate(("", "group_size:1", "group_size:1,zstd:19,pad_to_block_boundary:true", "group_size:1,uncompressed")):
            folder = self.work / f"of-array-record-{at}"
            folder.mkdir()
            for number, part in enumerate(parts(self.samples, 2)):
                write(folder / self.OF_TFDS.format(number, 2), options,
                      [shard_files.example({"image/class/label": [label], "image/encoded": picture, "text": b"again " * 5000}) for picture, label in part])
            self.assert_same_fields(oa.from_array_record(folder, {"image": "image/encoded", "label": "image/class/label"}))
        self.assert_same(str(folder))
        for options, words in ("group_size:7", ("7 records are in one chunk", "group_size:1")), ("group_size:1,transpose:true", ("transpose:false",)), \
                ("group_size:1,brotli", ("its compression is not read",)), ("group_size:1,snappy", ("its compression is not read",)):
            write(self.work / "other.array_record", options, self.examples(self.samples[:20]))
            self.refused(str(self.work / "other.array_record"), "other.array_record", "record 0", *words)
        for options in "", "group_size:7", "group_size:1000,zstd:9", "group_size:7,uncompressed,pad_to_block_boundary:true":
            write(self.work / "other.array_record", options, self.examples(self.samples))
            self.convert(self.work / "other.array_record")
            self.assert_same(str(self.work / "array.oads"))
        for options in "group_size:1,transpose:true", "group_size:7,brotli", "group_size:1,snappy":
            write(self.work / "other.array_record", options, self.examples(self.samples))
            self.assertIn("by another way than zstd", self.convert(self.work / "other.array_record", code=1))
        # And it reads what tests write.
        records = self.examples(self.samples)
        for compressed in False, True:
            shard_files.write_array_record(self.work / "ours.array_record", records, compressed, group=1 + 4 * compressed)
            self.assertEqual(ArrayRecordReader(str(self.work / "ours.array_record")).read_all(), records)

    def test_damaged(self):
        file = self.write("array-damaged") / "train-00001.array_record"
        whole = file.read_bytes()
        for bytes_, words in ((whole[:-1], ("whole blocks of 64 KiB", "ArrayRecordWriter")), (whole + bytes(65536), ("does not end as ArrayRecord files do",)),
                              (whole[:300] + b"~" + whole[301:], ("record 0", "its checksum is wrong",)), (whole[:70] + b"~" + whole[71:], ("record 0", "of its head"))):
            file.write_bytes(bytes_)
            self.refused(str(file.parent), file.name, *words)
        for name, records, words in (("other", [b"some text"], ("record 0", "neither a picture nor a tf.Example", "ArrayRecordDataSource")), ("none", [], ("no record",))):
            shard_files.write_array_record(self.work / f"{name}.array_record", records)
            self.refused(str(self.work / f"{name}.array_record"), *words)
        with self.assertRaisesRegex(oa.errors.DatasetError, "has no ArrayRecord files"):
            oa.from_array_record(self.data, {"x": "y"})


class Zip(ShardsCase):
    """What is the tree of an archive is the folder's, where it is unpacked."""

    # Folders whose order as texts is another than as paths, one below a class, others' files, and one file beside all folders.
    TREE = {"b/2.jpg": 0, "a b/1.jpg": 1, "a/x/1.JPEG": 2, "a/x y/1.jpg": 3, "a/0.png": 4, "a/x.jpg": 5, "B/1.webp": 6, "é/1.jpg": 7, "10/1.jpg": 8,
            "9/1.jpg": 9, "b/10.jpg": 10, "b/.hidden.jpg": 11}
    OTHERS = ("labels.csv", "b/.DS_Store", "a/notes.txt", "b/sound.wav", "dataset.json", "beside.jpg")

    def tree(self, name):
        """The folder, with its files in the order in which they are here."""
        folder = self.work / name
        for path, number in self.TREE.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(self.samples[number][0])
        for path in self.OTHERS:
            (folder / path).write_bytes(self.samples[0][0] if path == "beside.jpg" else b"no picture")
        return folder

    def archive(self, name, folder, above="", method=zipfile.ZIP_STORED, paths=None, **options):
        file = self.work / name
        with zipfile.ZipFile(file, "w", method, **options) as archive:
            archive.writestr(f"__MACOSX/{above}b/._2.jpg", b"no picture")
            for path in paths or (*self.TREE, *self.OTHERS):
                archive.write(folder / path, above + path)
        return file

    def of_data(self, name, method=zipfile.ZIP_STORED):
        """All that is in the folder of the other kinds."""
        paths = [f"{label}/{file}" for label in sorted(os.listdir(self.data), reverse=True) for file in sorted(os.listdir(os.path.join(self.data, label)))]
        file = self.work / name
        with zipfile.ZipFile(file, "w", method) as archive:
            for path in paths:
                archive.write(os.path.join(self.data, path), f"train/{path}")
        return file

    def assert_as_folder(self, dataset, folder):
        with oa.Loader(dataset, PIPELINE, 5, socket=self.socket, **ORDER) as mine, oa.Loader(folder, PIPELINE, 5, socket=self.socket, **ORDER) as theirs:
            self.assertEqual(mine.classes, theirs.classes)
            for (pictures, labels), (of_folder, of_classes) in zip(mine, theirs, strict=True):
                numpy.testing.assert_array_equal(pictures, of_folder)
                numpy.testing.assert_array_equal(labels, of_classes)

    def test_the_same_as_a_folder(self):
        for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
            file = self.of_data(f"data-{method}.zip", method)
            self.assert_same(str(file))
            self.assert_same(f"{file}?folder=train")

    def test_the_same_as_the_tree_unpacked(self):
        """Also of other order, with folders above it, and of what zip(1) writes."""
        folder = self.tree("tree")
        for number, (above, method) in enumerate((("", zipfile.ZIP_STORED), ("train/", zipfile.ZIP_DEFLATED), ("./a//b/./c/", zipfile.ZIP_DEFLATED))):
            self.assert_as_folder(self.archive(f"tree-{number}.zip", folder, above, method), folder)
        if not shutil.which("zip"):
            self.skipTest("zip is not installed: not tested: archives of its own")
        for options in ["-0"], ["-9"], ["-fz"], ["-fd"]:
            file = self.work / f"of-zip{options[0]}.zip"
            subprocess.run(["zip", "-q", "-r", *options, file, "."], cwd=folder, check=True)
            self.assert_as_folder(file, folder)
        with open(self.work / "piped.zip", "wb") as piped:
            subprocess.run(["zip", "-q", "-r", "-", "."], cwd=folder, check=True, stdout=piped)
        self.assert_as_folder(self.work / "piped.zip", folder)

    def test_zip64_and_descriptors(self):
        folder = self.tree("large")
        file = self.work / "large.zip"
        with zipfile.ZipFile(file, "w") as archive:
            for path in self.TREE:
                with archive.open(path, "w", force_zip64=True) as to:
                    to.write((folder / path).read_bytes())
        (folder / "beside.jpg").unlink()
        self.assert_as_folder(file, folder)

        class Pipe(io.RawIOBase):  # nobody can seek in it
            def __init__(self, to):
                self.to = to

            def writable(self):
                return True

            def write(self, data):
                return self.to.write(data)
        for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
            with open(self.work / "stream.zip", "wb") as to, zipfile.ZipFile(Pipe(to), "w", method) as archive:
                for path in self.TREE:
                    archive.write(folder / path, path)
                archive.comment = b"a comment"
            self.assert_as_folder(self.work / "stream.zip", folder)

    def test_one_of_its_folders(self):
        folder = self.tree("one")
        with zipfile.ZipFile(self.work / "sets.zip", "w") as archive:
            for path in self.TREE:
                archive.write(folder / path, f"ILSVRC/Data/train/{path}")
            for number in range(3):
                archive.writestr(f"ILSVRC/Data/test/{number}.jpg", self.samples[number][0])
        with oa.Loader(self.work / "sets.zip", PIPELINE, 5, socket=self.socket, **ORDER) as loader:
            self.assertEqual(loader.classes, ["test", "train"])
        for top in ".", "./":
            with oa.Loader(self.work / "sets.zip", PIPELINE, 5, socket=self.socket, source={"folder": top}, **ORDER) as loader:
                self.assertEqual(loader.classes, ["ILSVRC"])
        with zipfile.ZipFile(self.work / "class.zip", "w") as archive:
            archive.write(folder / "b/2.jpg", "train/b/2.jpg")
        with oa.Loader(self.work / "class.zip", PIPELINE, 1, socket=self.socket, **ORDER) as loader:
            self.assertEqual(loader.classes, ["b"])
        for below in "ILSVRC/Data/train", "/ILSVRC//Data/./train/":
            with oa.Loader(self.work / "sets.zip", PIPELINE, 5, socket=self.socket, source={"folder": below}, **ORDER) as loader:
                self.assertEqual(loader.classes, sorted({path.partition("/")[0] for path in self.TREE}))
        (pictures, labels), = self.batches(f"{self.work}/sets.zip?folder=ILSVRC/Data/test")
        self.assertEqual(list(labels), [0, 0, 0])
        self.refused(f"{self.work}/sets.zip?folder=ILSVRC/Data/tes", "no sample found in the zip archives", "below the option folder")

    def test_several_archives(self):
        """Classes are those of all; samples come archive by archive."""
        folder = self.tree("several")
        paths = list(self.TREE)
        for number, part in enumerate(parts(paths, 3)):
            self.archive(f"part-{number:03}.zip", folder, "train/", zipfile.ZIP_DEFLATED, part)
        classes = sorted({path.partition("/")[0] for path in paths})
        batches = self.batches(f"{self.work}/part-{{000..002}}.zip")
        found = [int(label) for _, labels in batches for label in labels]
        wanted = [classes.index(name) for part in parts(paths, 3) for name in sorted(path.partition("/")[0] for path in part)]
        self.assertEqual(found, wanted)

    def test_left_over(self):
        """An archive beside another data set is none."""
        archive = self.of_data("download.zip").read_bytes()
        picture = self.work / "one.png"
        picture.write_bytes(self.samples[0][0])
        with tarfile.open(self.work / "one.tar", "w") as tar:
            tar.add(picture, "one.png")
        for name, data in (("1.tar", (self.work / "one.tar").read_bytes()), ("1.png", self.samples[0][0])):
            folder = self.work / f"left-{name}"
            folder.mkdir()
            (folder / name).write_bytes(data)
            (folder / "download.zip").write_bytes(archive)
            self.assertEqual([len(labels) for _, labels in self.batches(folder)], [1], name)
        for name in "1.wav", "1.mp4", "1.csv":
            folder = self.work / f"left-{name}"
            folder.mkdir()
            (folder / name).write_bytes(b"what it is tells its name")
            (folder / "download.zip").write_bytes(archive)
            with self.assertRaises(oa.Error, msg=name) as caught:
                self.batches(folder)
            self.assertNotIn("zip", str(caught.exception), name)
        (self.work / "left-packed").mkdir()
        (self.work / "left-packed/1.tar.gz").write_bytes(b"")
        (self.work / "left-packed/download.zip").write_bytes(archive)
        self.refused(self.work / "left-packed", "is compressed")

    def test_converted(self):
        """Deflated files are unpacked first; a folder of archives, of which one is stored, is as one."""
        for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
            target = self.work / f"converted-{method}.oads"
            subprocess.run([support.BUILD / "tools/access-ctl", "convert", self.of_data(f"convert-{method}.zip", method), target], check=True, capture_output=True)
            self.assert_same(str(target))
        folder, archives = self.tree("to-convert"), self.work / "archives"
        archives.mkdir()
        for number, part in enumerate(parts(list(self.TREE), 3)):
            self.archive(f"archives/{number}.zip", folder, "set/train/", zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED, part)
        subprocess.run([support.BUILD / "tools/access-ctl", "convert", f"{archives}?folder=set/train", self.work / "archives.tar"], check=True, capture_output=True)
        for (pictures, labels), (of_tar, of_classes) in zip(self.batches(f"{archives}?folder=set/train"), self.batches(self.work / "archives.tar"), strict=True):
            numpy.testing.assert_array_equal(pictures, of_tar)
            numpy.testing.assert_array_equal(labels, of_classes)

    def test_what_is_damaged_is_not_converted(self):
        """A wrong CRC-32, a wrong size, an archive by a picture's name, of which its first file is not taken for the picture, and files that
        are one, of which more would be written than there is."""
        file = self.of_data("convert-cut.zip", zipfile.ZIP_DEFLATED)
        good = file.read_bytes()
        within = self.archive("within.zip", self.tree("within"), method=zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(self.work / "of-zip.zip", "w") as archive:
            archive.writestr("a/1.jpg", within.read_bytes())
        with zipfile.ZipFile(self.work / "over.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/1.jpg", self.samples[0][0])
            archive.filelist += 100 * [archive.filelist[0]]
        first = "train/" + "/".join(sorted((label, sorted(os.listdir(os.path.join(self.data, label)))[0]) for label in os.listdir(self.data))[-1])
        for at, data, name in ((14, good, first), (22, good, first), (None, (self.work / "of-zip.zip").read_bytes(), "a/1.jpg"),
                               (None, (self.work / "over.zip").read_bytes(), "")):
            data = bytearray(data)
            if at:
                data[at] ^= 1
            file.write_bytes(data)
            convert = subprocess.run([support.BUILD / "tools/access-ctl", "convert", file, self.work / "cut.oads"], stderr=subprocess.PIPE, text=True)
            self.assertEqual(convert.returncode, 1, (at, convert.stderr))
            self.assertIn('"convert-cut.zip" is damaged', convert.stderr)
            self.assertEqual(f'its file "{name}"; leave_out' in convert.stderr, bool(name), convert.stderr)

    def test_converted_without_what_is_damaged(self):
        """Files outside the folder are not looked at, and what is left out is not unpacked."""
        folder = self.tree("to-mend")
        file = self.work / "mend.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in self.TREE:
                archive.write(folder / path, f"train/{path}")
            archive.writestr("test/damaged.jpg", self.samples[0][0])
            archive.writestr("test/lzma.jpg", self.samples[0][0], zipfile.ZIP_LZMA)
        with zipfile.ZipFile(file) as archive:
            damaged = [archive.getinfo(path).header_offset + 14 for path in ("test/damaged.jpg", "train/a/0.png")]
        data = bytearray(file.read_bytes())
        data[damaged[0]] ^= 1
        file.write_bytes(data)
        source = f"{file}?folder=train"
        (folder / "beside.jpg").unlink()
        self.convert(source, "mended.oads")
        self.assert_as_folder(self.work / "mended.oads", folder)
        data[damaged[1]] ^= 1
        file.write_bytes(data)
        self.assertIn('its file "train/a/0.png"; leave_out', self.convert(source, "mended.oads", 1))
        self.convert(f"{source},leave_out=mend.zip:train/a/0.png", "mended.oads")
        (folder / "a/0.png").unlink()
        self.assert_as_folder(self.work / "mended.oads", folder)

    def test_converted_of_several_folders(self):
        """Samples keep their names, by which they are left out."""
        folder = self.tree("to-gather")
        for number, part in enumerate(parts(list(self.TREE), 3)):
            (self.work / f"gather/{number}").mkdir(parents=True)
            self.archive(f"gather/{number}/of.zip", folder, "", zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED, part)
        source = f"{self.work}/gather/{{0..2}}/of.zip"
        left = source + "?leave_out=0/of.zip:b/2.jpg;1/of.zip:a/0.png;2/of.zip:b/10.jpg"
        for dataset, count in (source, len(self.TREE)), (left, len(self.TREE) - 3):
            self.convert(dataset, "gathered.oads")
            with oa.Loader(dataset, PIPELINE, 5, socket=self.socket, **ORDER) as plain, \
                    oa.Loader(self.work / "gathered.oads", PIPELINE, 5, socket=self.socket, **ORDER) as loader:
                self.assertEqual((plain.names(), plain.dataset.targets, plain.classes), (loader.names(), loader.dataset.targets, loader.classes))
                self.assertEqual(len(loader.names()), count)
                for (pictures, _), (of_shards, _) in zip(loader, plain, strict=True):
                    numpy.testing.assert_array_equal(pictures, of_shards)
        self.assertIn('there is no sample "3/of.zip:b/2.jpg"', self.convert(source + "?leave_out=3/of.zip:b/2.jpg", "gathered.oads", 1))

    def convert(self, dataset, name, code=0):
        run = subprocess.run([support.BUILD / "tools/access-ctl", "convert", "--force", dataset, self.work / name], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertFalse([name for name in os.listdir(self.work) if name.startswith(".access-convert")])
        return run.stderr

    def test_bad_samples(self):
        """One that is damaged is named."""
        folder = self.tree("bad")
        file = self.archive("bad.zip", folder, "train/", zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo("train/a/0.png")
        data = bytearray(file.read_bytes())
        data[info.header_offset + 14] ^= 1
        file.write_bytes(data)
        with self.assertRaises(oa.Error) as caught:
            self.batches(file)
        self.assertIn("bad.zip:train/a/0.png", str(caught.exception))
        self.assertIn("CRC-32", str(caught.exception))
        left = self.batches(file, source={"leave_out": "bad.zip:train/a/0.png"})
        self.assertEqual(sum(len(labels) for _, labels in left), len(self.TREE) - 1)
        with zipfile.ZipFile(self.work / "empty-file.zip", "w") as archive:
            archive.writestr("a/1.jpg", b"")
            archive.writestr("a/2.jpg", self.samples[0][0])
        with self.assertRaises(oa.Error) as caught:
            self.batches(self.work / "empty-file.zip")
        self.assertIn("nothing is in it", str(caught.exception))

    def test_refused(self):
        picture = self.samples[0][0]

        def write(name, method=zipfile.ZIP_STORED, path="a/1.jpg", edit=None, twice=False):
            file = self.work / f"{name}.zip"
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr(path, picture, method)
                if twice:
                    archive.writestr(f"{path[:1]}//{path[2:]}", picture, method)
            if edit:
                data = bytearray(file.read_bytes())
                edit(data)
                file.write_bytes(data)
            return str(file)

        def in_directory(offset, value):
            def edit(data):
                data[data.rindex(b"PK\1\2") + offset] = value
            return edit
        self.refused(write("lzma", zipfile.ZIP_LZMA), "lzma.zip", "file a/1.jpg is compressed by LZMA", "zip -0")
        self.refused(write("bzip2", zipfile.ZIP_BZIP2), "file a/1.jpg is compressed by bzip2")
        self.refused(write("secret", edit=in_directory(8, 1)), "file a/1.jpg is encrypted", "without a password")
        self.refused(write("up", path="a/../1.jpg"), "leads upwards")
        self.refused(write("twice", twice=True), 'has two files "a/1.jpg"')
        self.refused(write("name", edit=in_directory(46, ord("b"))), "another header than the directory says")
        self.refused(write("cut", edit=lambda data: data.__delitem__(slice(-9, None))), "cut off")
        self.refused(write("split", edit=lambda data: data.__setitem__(data.rindex(b"PK\5\6") + 4, 2)), "split archive", "zip -s 0")
        self.refused(write("none", path="a/1.txt"), "no sample found in the zip archives", ".jpg")
        info = zipfile.ZipInfo("a/1.jpg")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        with zipfile.ZipFile(self.work / "link.zip", "w") as archive:
            archive.writestr(info, "../b/1.jpg")
        self.refused(str(self.work / "link.zip"), "is a symbolic link")
class Beton(ShardsCase):
    """FFCV's files: of JPEGs, of pixels, and of both."""

    FIELDS = {"image": "image", "label": "int"}

    def write(self, name, count=1, processes=1):
        folder = self.work / name
        folder.mkdir()
        for number, part in enumerate(parts(self.samples, count)):
            shard_files.write_beton(folder / f"train-{number}.beton", self.FIELDS, part, processes)
        return folder

    def pixels(self):
        """Of all samples: (width, height, pixels); and a folder of the same."""
        found, folder = [], self.work / "pixels"
        for number, (picture, label) in enumerate(self.samples):
            image = PIL.Image.open(io.BytesIO(picture)).convert("RGB")
            found.append((*image.size, image.tobytes()))
            (folder / f"{label:03}").mkdir(parents=True, exist_ok=True)
            image.save(folder / f"{label:03}/{number:05}.ppm")
        return found, folder

    def test_the_same_as_a_folder(self):
        folder = self.write("beton")
        self.assert_same(str(folder))
        self.assert_same(str(folder / "train-0.beton"))
        os.rename(folder / "train-0.beton", folder / "train")
        self.assert_same(str(folder / "train"))
        folder = self.write("beton-parts", 3, processes=4)
        self.assert_same(str(folder))
        self.assert_same(f"{folder}/train-{{0..2}}.beton")

    def test_pixels(self):
        found, folder = self.pixels()
        rows = [(of, label) for of, (_, label) in zip(found, self.samples)]
        shard_files.write_beton(self.work / "pixels.beton", self.FIELDS, rows, processes=3)
        shard_files.write_beton(self.work / "both.beton", self.FIELDS, [row if at % 3 else self.samples[at] for at, row in enumerate(rows)])
        of_pixels, of_files, of_both = (self.batches(str(dataset)) for dataset in (folder, self.data, self.work / "both.beton"))
        for batch, other in zip(self.batches(str(self.work / "pixels.beton")), of_pixels, strict=True):
            numpy.testing.assert_array_equal(batch[0], other[0])
            numpy.testing.assert_array_equal(batch[1], other[1])
        pictures, pixels, both = (numpy.concatenate([of for of, _ in batches]) for batches in (of_files, of_pixels, of_both))
        is_pixels = numpy.arange(len(both)) % 3 > 0
        numpy.testing.assert_array_equal(both[is_pixels], pixels[is_pixels])
        numpy.testing.assert_array_equal(both[~is_pixels], pictures[~is_pixels])
        for target in "both.oads", "both.tar":
            subprocess.run([support.BUILD / "tools/access-ctl", "convert", self.work / "both.beton", self.work / target], check=True, capture_output=True)
            numpy.testing.assert_array_equal(numpy.concatenate([of for of, _ in self.batches(str(self.work / target))]), both)

    def test_fields_of_other_names(self):
        fields = {"note": "bytes", "weight": "float", "photo": "own", "kind": "int", "small": "image"}
        shard_files.write_beton(self.work / "fields.beton", fields, [(b"a note", float(label), picture, 7, (1, 1, b"abc")) for picture, label in self.samples])
        self.refused(f"{self.work}/fields.beton", "fields.beton:", "field 2", "derived from RGBImageField")
        self.assert_same(str(self.work / "fields.beton"), source={"image": "photo", "label": "weight"})
        self.refused(f"{self.work}/fields.beton?image=photo,label=note", "option label")
        for option, labels in ("", {7}), (",label=none", {0}):
            self.assertEqual({int(label) for _, batch in self.batches(f"{self.work}/fields.beton?image=photo{option}") for label in batch}, labels)

    def test_fields(self):
        """Whatever there is, through the pool; the same from several files."""
        fields = {"image": "image", "label": "int", "weight": "float", "text": "bytes", "grid": ("array", '[["", "<i2"]]', (2, 3)), "small": "image", "a_long_name_of_it": "json"}
        grid = numpy.arange(6, dtype=numpy.int16).reshape(2, 3)
        rows = [(picture, label, label + 0.5, b"t" * (at % 5), (grid + at).tobytes(), (1, 1, b"abc"), json.dumps({"boxes": [[0, 0, 1 + at % 3, 2]], "n": at}).encode() + b"\0")
                for at, (picture, label) in enumerate(self.samples)]
        for number, part in enumerate(parts(rows, 2)):
            shard_files.write_beton(self.work / f"all-{number}.beton", fields, part, processes=2)
        data = oa.from_beton(self.work / "all-*.beton", {"image": "image", "label": "label", "weight": "weight", "text": "text", "grid": "grid",
                                                         "n": "a_long_name_of_it:n", "boxes": "a_long_name_of_it:boxes"}, ragged={"text": 8, "boxes": 3})
        self.assertEqual(len(data), len(rows))
        self.assert_same_fields(data)
        with oa.Loader(data, PIPELINE, 32, socket=self.socket, **ORDER) as loader:
            numbers = [(batch["weight"].copy(), batch["grid"].copy(), batch["n"].copy(), [len(text) for text in batch["text"].list()]) for batch in loader]
        weight, grids, n = (numpy.concatenate([batch[at] for batch in numbers]) for at in range(3))
        numpy.testing.assert_array_equal(numpy.ravel(weight), [label + 0.5 for _, label in self.samples])
        numpy.testing.assert_array_equal(grids, grid + numpy.arange(len(rows))[:, None, None])
        numpy.testing.assert_array_equal(numpy.ravel(n), numpy.arange(len(rows)))
        self.assertEqual([length for batch in numbers for length in batch[3]], [at % 5 for at in range(len(rows))])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no such field; there are: image, label, weight, text, grid, small, a_long_name_of_i"):
            oa.from_beton(self.work / "all-0.beton", {"image": "photo"})
        (self.work / "cut.beton").write_bytes((self.work / "all-0.beton").read_bytes()[:-5])
        with self.assertRaisesRegex(oa.errors.DatasetError, "cut.beton cannot be read: .*cut off"):
            oa.from_beton(self.work / "cut.beton")

    def test_braces(self):
        folder = self.write("beton-braces", 3)
        self.assert_same_fields(oa.from_beton(f"{folder}/train-{{0..2}}.beton"))
        with self.assertRaisesRegex(FileNotFoundError, "no .beton file is at .*train-3.beton"):
            oa.from_beton(f"{folder}/train-{{0..3}}.beton")

    def test_cut_while_it_is_read(self):
        """What is gone is an error, and ends no process."""
        file = self.write("beton-cut") / "train-0.beton"
        rows = oa.from_beton(file).dataset
        self.assertEqual(rows[0]["image"], self.samples[0][0])
        os.truncate(file, 4096)
        for number in 0, len(rows) - 1:
            with self.assertRaisesRegex(oa.errors.DatasetError, "train-0.beton was written to since"):
                rows[number]

    def test_samples_that_lie(self):
        fields = {"image": "image", "deep": "json"}
        file = self.work / "lies.beton"
        shard_files.write_beton(file, fields, [(self.samples[0][0], b"[" * 200000 + b"\0")])
        with self.assertRaisesRegex(oa.errors.DatasetError, "lies.beton, sample 0, field deep: RecursionError"):
            oa.from_beton(file, {"deep": "deep:x"}, ragged={"deep": 1}).dataset[0]
        shard_files.write_beton(file, {"image": "image", "label": "int"}, [(self.samples[0][0], 7)])
        data = bytearray(file.read_bytes())
        data[24 + 2 * 1041] = 2
        file.write_bytes(data)
        with self.assertRaisesRegex(oa.errors.DatasetError, "sample 0, field image: .*mode 2"):
            oa.from_beton(file).dataset[0]

    def test_files_of_ffcv(self):
        try:
            from ffcv.fields import IntField, RGBImageField
            from ffcv.writer import DatasetWriter
        except ImportError:
            self.skipTest("ffcv is not installed: not tested: files of its own")
        pixels, folder = self.pixels()
        rows = [(numpy.frombuffer(data, numpy.uint8).reshape(height, width, 3), label) for (width, height, data), (_, label) in zip(pixels, self.samples)]
        DatasetWriter(str(self.work / "ffcv.beton"), {"image": RGBImageField("raw"), "label": IntField()}, num_workers=1).from_indexed_dataset(rows)
        for batch, other in zip(self.batches(str(self.work / "ffcv.beton")), self.batches(str(folder)), strict=True):
            numpy.testing.assert_array_equal(batch[0], other[0])
            numpy.testing.assert_array_equal(batch[1], other[1])

    def test_damaged(self):
        file = self.write("beton-damaged") / "train-0.beton"
        whole = file.read_bytes()
        for data, *words in ((whole[:-1], "cut off"), (whole[:16] + bytes(8) + whole[24:], ":16:", "not written to its end"),
                             (whole[:-24], f"sample {len(self.samples) - 1}: ", "damaged")):
            file.write_bytes(data)
            self.refused(str(file), "train-0.beton", *words)


class LitData(ShardsCase):
    """As litdata.optimize() writes them: each leaf has its size in the sample."""

    def write(self, name, count=3, formats=None, **options):
        shard_files.write_litdata(self.work / name, formats or {"index": "int", "image": "jpeg", "label": "int"}, [
            [{"index": struct.pack("<q", index), "image": picture, "label": struct.pack("<q", label)} for index, (picture, label) in part]
            for part in parts(list(enumerate(self.samples)), count)], **options)
        return self.work / name

    def test_the_same_as_a_folder(self):
        self.assert_same(str(self.write("litdata")))
        self.assert_same(str(self.write("litdata-bytes", 1, {"index": "int", "image": "bytes", "label": "int"})), source={"image": "image", "label": "label"})
        self.refused(f"{self.work / 'litdata'}?label=image", "no leaf of whole numbers")
        self.refused(f"{self.work / 'litdata'}?columns=image", "image, label")

    def test_sizes_as_they_were(self):
        folder = self.write("litdata-old", old=True)
        self.assert_same(str(folder))
        with open(folder / "chunk-0-1.bin", "ab") as file:
            file.write(b"x")
        self.refused(folder, "chunk-0-1.bin", "size that index.json says")

    def test_what_else_has_an_index(self):
        """A folder of classes is one, whatever its index.json is."""
        folder = self.work / "litdata-no"
        shutil.copytree(self.data, folder)
        for text in (b"{", b'{"chunks": [], "config": {"data_format": []}}'):
            (folder / "index.json").write_bytes(text)
            self.assert_same(str(folder))
        os.truncate(folder / "index.json", 65 << 20)
        self.assert_same(str(folder))

    def test_converted(self):
        folder = self.write("litdata-convert", 2)
        subprocess.run([support.BUILD / "tools/access-ctl", "convert", folder, self.work / "litdata.oads"], check=True, capture_output=True)
        self.assert_same(str(self.work / "litdata.oads"))

    def test_damaged(self):
        folder = self.write("litdata-damaged")
        index = json.loads((folder / "index.json").read_text())

        def with_index(**changes):
            (folder / "index.json").write_text(json.dumps({**index, **changes}))

        with_index(config={**index["config"], "compression": "zstd"})
        self.refused(folder, "compressed", "oneaccess.wrap")
        with_index(chunks=index["chunks"] + index["chunks"][:1])
        self.refused(folder, "chunk-0-0.bin", "named twice")
        with_index()
        os.rename(folder / "chunk-0-1.bin", folder / "other.bin")
        self.refused(folder, "chunk-0-1.bin", "is not there", "index.json")
        os.rename(folder / "other.bin", folder / "chunk-0-1.bin")
        with open(folder / "chunk-0-1.bin", "ab") as file:
            file.write(b"x")
        self.refused(folder, "chunk-0-1.bin", "size that index.json says")

    def test_litdata_itself(self):
        """What litdata's own writer makes, with its own StreamingDataset beside."""
        try:
            import litdata
        except ImportError:
            self.skipTest("litdata is not installed: not tested")
        folder = self.work / "litdata-itself"
        paths = []
        for number, (picture, label) in enumerate(self.samples):
            paths.append((self.work / f"litdata-{number}.jpg", label))
            paths[-1][0].write_bytes(picture)
        litdata.optimize(fn=litdata_sample, inputs=paths, output_dir=str(folder), chunk_size=len(self.samples) // 5 + 1, num_workers=1)
        self.assert_same(str(folder))
        theirs = litdata.StreamingDataset(str(folder), shuffle=False)
        self.assertEqual(sorted(int(sample["label"]) for sample in theirs), sorted(label for _, label in self.samples))


def litdata_sample(of):
    """A picture as ImageFolder opens it: what was its file becomes the sample's."""
    import PIL.Image
    path, label = of
    return {"image": PIL.Image.open(path), "label": label}


class MDS(ShardsCase):
    def write(self, name, count=3, columns=None):
        folder = self.work / name
        columns = columns or {"image": "jpeg", "label": "int"}
        shard_files.write_mds(folder, columns, [
            [{"image": picture, "label": struct.pack("<q", label)} for picture, label in part]
            for part in parts(self.samples, count)])
        return folder

    def test_the_same_as_a_folder(self):
        folder = self.write("mds")
        self.assert_same(str(folder))
        os.remove(folder / "index.json")
        self.assert_same(str(folder))
        self.assert_same(str(self.write("mds-bytes", 1, {"image": "bytes", "label": "int"}) / "shard.00000.mds"))

    COLUMNS = {"about": "json", "array": "ndarray:uint32", "image": "jpeg", "label": "int", "other": "pkl", "pair": "ndarray:int16:2,2", "real": "float64",
               "text": "str", "tokens": "bytes"}

    def columns(self, name):
        """Samples of many columns in two shards; their values."""
        shards, values = [], []
        for part in parts(list(enumerate(self.samples)), 2):
            shards.append([])
            for index, (picture, label) in part:
                array = list(range(index % 9 + 1))
                values.append((f"gr\u00fcn {index}", [label * 3] * (index % 4), index / 7, [[index, 2], [-index, 4]], array, [index, 5]))
                shards[-1].append({
                    "about": json.dumps({"deep": {"n": [index, 5]}}).encode(), "image": picture, "label": struct.pack("<q", label), "other": b"any" * index,
                    "array": bytes([4, len(array)]) + struct.pack(f"<{len(array)}I", *array), "real": struct.pack("<d", index / 7),
                    "pair": struct.pack("<4h", index, 2, -index, 4), "text": f"gr\u00fcn {index}".encode(),
                    "tokens": struct.pack(f"<{index % 4}H", *[label * 3] * (index % 4))})
        shard_files.write_mds(self.work / name, self.COLUMNS, shards)
        return str(self.work / name), values

    def test_columns_are_fields(self):
        """Numbers, arrays, raw bytes, texts and JSON, dense and ragged, with a picture and without one."""
        folder, values = self.columns("mds-columns")
        columns = [f"{name}:{encoding}" for name, encoding in self.COLUMNS.items()]
        source = {"columns": ";".join(columns).replace(",", "x")}
        about = {"columns": columns, "fields": [[1, 20], [9, 3], [12], [7, 2, 2], [4, 9], [4, 2]], "kinds": [2, 1, 0, 0, 1, 0]}
        members = ["text", "tokens", "real", "pair", "array", "about:deep/n"]

        def told(got):
            return got[0], *(value.tolist() for value in got[1:])

        got = list(self.whole(folder, [{"op": "record", "members": members, **about}], source=source))
        self.assertEqual([told(one[:6]) for one in got], values)
        self.assertEqual([got[0][at].dtype for at in range(1, 6)], [numpy.uint16, numpy.float64, numpy.int16, numpy.int64, numpy.int64])
        op = [{"op": "decode", "members": ["image", *members], **about}, {"op": "center_crop", "size": 32}]
        crop = json.dumps([{"op": "decode"}, {"op": "center_crop", "size": 32}])
        with oa.Loader(self.data, crop, 8, socket=self.socket, order="sequential", epochs=1, as_="numpy") as loader:
            pictures = [(picture.copy(), label) for images, labels in loader for picture, label in zip(images, labels)]
        got = list(self.whole(folder, op, source=source))
        self.assertEqual([told(one[2:8]) for one in got], values)
        for one, (picture, label) in zip(got, pictures, strict=True):
            numpy.testing.assert_array_equal(one[0], picture)
            self.assertEqual(one[1], label)
        with self.assertRaisesRegex(oa.errors.DatasetError, r"shard.0000\d.mds:.*its columns are not those of the option: columns=about:json;array"):
            list(self.whole(folder, op, source={"columns": "image:jpeg"}))
        op[0]["columns"] = columns[::-1]
        with self.assertRaisesRegex(oa.Error, '"columns" are tokens:bytes;text.*data set.s are about:json;array'):
            list(self.whole(folder, op, source=source))
        with self.assertRaisesRegex(oa.Error, "open these with .columns=tokens:bytes;text"):
            list(self.whole(folder, op))
        with self.assertRaisesRegex(oa.Error, '"columns" are none'):
            list(self.whole(folder, [{"op": "decode"}, {"op": "center_crop", "size": 32}], source=source))

    def test_files_of_streaming(self):
        """What MosaicML's own writer wrote, and what its reader makes of it and of ours."""
        try:
            from streaming import LocalDataset, MDSWriter
        except ImportError:
            self.skipTest("mosaicml-streaming is not installed: not tested: its own files")
        columns = {"about": "json", "array": "ndarray:uint32", "image": "bytes", "label": "int", "pair": "ndarray:int16:2,2", "real": "float64", "text": "str"}
        folder = str(self.work / "mds-streaming")
        with MDSWriter(out=folder, columns=columns, compression=None, size_limit=1 << 17) as writer:
            for index, (picture, label) in enumerate(self.samples):
                writer.write({"about": {"n": [index, 5]}, "array": numpy.arange(index % 9 + 1, dtype="u4"), "image": picture, "label": label,
                              "pair": numpy.array([[index, 2], [-index, 4]], "i2"), "real": index / 7, "text": f"gr\u00fcn {index}"})
        self.assertGreater(len([name for name in os.listdir(folder) if name.endswith(".mds")]), 1)
        self.assert_same(folder)
        columns = [f"{name}:{encoding}" for name, encoding in columns.items()]
        op = [{"op": "record", "members": ["array", "pair", "real", "text", "about:n"], "columns": columns,
               "fields": [[4, 9], [7, 2, 2], [12], [1, 20], [4, 2]], "kinds": [1, 0, 0, 2, 0]}]
        source = {"columns": ";".join(columns).replace(",", "x")}
        for got, one in zip(self.whole(folder, op, source=source), LocalDataset(folder), strict=True):
            for name, value in zip(("array", "pair", "real"), got):
                numpy.testing.assert_array_equal(value, one[name])
            self.assertEqual((got[3], got[4].tolist()), (one["text"], one["about"]["n"]))
        ours = LocalDataset(str(self.write("mds-of-ours", columns={"image": "bytes", "label": "int"})))
        self.assertEqual([(one["image"], one["label"]) for one in ours], self.samples)

    def test_the_example_in_c(self):
        """Of MDS and of tf.Example: columns of every kind, and boxes that follow the picture to its new size."""
        file, mds, records = io.BytesIO(), [], []
        PIL.Image.new("RGB", (48, 48)).save(file, "JPEG")
        for index in range(12):
            about = json.dumps({"boxes": [[0, 12, 48, 24]] * (index % 3)}).encode()
            text, array = f"gr\u00fcn {index}".encode(), list(range(index + 1))
            mds.append({"about": about, "photo": file.getvalue(), "text": text,
                        "tokens": bytes([4, len(array)]) + struct.pack(f"<{len(array)}I", *array)})
            records.append(shard_files.example({"about": about, "photo": file.getvalue(), "text": text, "tokens": array}))
        shard_files.write_mds(self.work / "c-mds", {"about": "json", "photo": "jpeg", "text": "str", "tokens": "ndarray:uint32"}, [mds[:5], mds[5:]])
        shard_files.write_tfrecord(self.work / "c.tfrecord", records)
        want = {f'{index}: "gr\u00fcn {index}", tokens' + "".join(f" {token}" for token in range(index + 1)) + ", box 0.0 24.0 96.0 48.0" * (index % 3)
                for index in range(12)}
        for shards in ("c-mds", "c.tfrecord"):
            run = subprocess.run([support.BUILD / "doc/examples/columns", self.work / shards], timeout=600, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, "ACCESS_SOCKET": self.socket})
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertEqual(set(run.stdout.splitlines()), want)

    def test_an_archive_beside_shards(self):
        for name in ("code.tar.gz", "more.tgz"):
            folder = self.write("mds-" + name)
            (folder / name).write_bytes(b"anything")
            self.assert_same(str(folder))
        os.rename(folder / "shard.00000.mds", folder / "shard.00000.mds.zstd")
        self.refused(str(folder), "shard.00000.mds.zstd", "compressed")

    def test_shards_that_are_not_as_listed(self):
        folder = self.write("mds-listed", 2)
        shard = folder / "shard.00001.mds"
        data = shard.read_bytes()
        shard.write_bytes(data + b"x")
        self.refused(str(folder), "shard.00001.mds", "size", "index.json")
        os.rename(shard, folder / "shard.00002.mds")
        self.refused(str(folder), "shard.00001.mds", "is not there")
        shard.write_bytes(data)
        self.refused(str(folder), "shard.00002.mds", "does not name it")
        os.remove(folder / "shard.00002.mds")
        self.assert_same(str(folder))

    def test_damaged(self):
        folder = self.write("mds-damaged", 1)
        shard = folder / "shard.00000.mds"
        data = bytearray(shard.read_bytes())
        first, = struct.unpack_from("<I", data, 4)
        data[first] ^= 1
        shard.write_bytes(data)
        self.refused(str(folder), f"shard.00000.mds:{first}: sample 0: its columns do not fill it")

    def test_compressed(self):
        folder = self.write("mds-zstd", 1)
        os.rename(folder / "shard.00000.mds", folder / "shard.00000.mds.zstd")
        self.refused(str(folder), "compressed")

    def test_no_picture(self):
        folder = self.work / "mds-text"
        shard_files.write_mds(folder, {"text": "str"}, [[{"text": b"no picture"}]])
        self.refused(str(folder), "none of its columns is a picture")


del ShardsCase  # has no test of its own

if __name__ == "__main__":
    unittest.main(verbosity=2)
