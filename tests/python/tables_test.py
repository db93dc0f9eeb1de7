# SPDX-License-Identifier: Apache-2.0
"""Tables: row groups and their orders, Parquet, Hugging Face's datasets, HDF5 and LMDB, against a real daemon. What needs a
package is tried where that is installed."""

import json
import os
import sys
import types
import unittest
import warnings
from pathlib import Path
from unittest import mock

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"tables_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
import table_samples as samples
from oneaccess.sources import hf, tables
from support import CLASSES, SAMPLES, PoolCase, needs

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages


class TablesCase(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = sorted(Path(cls.data).glob("*/*"))
        names = sorted({file.parent.name for file in cls.files})
        cls.labels = [names.index(file.parent.name) for file in cls.files]

    def log(self):
        return self.work / self.id()

    def pictures(self):
        """The folder's as a pipeline makes them, by sample, and that pipeline."""
        if not hasattr(type(self), "_pictures"):
            pipeline = oa.imagenet_eval(32, dtype="uint8")
            type(self)._pictures = np.concatenate([made for made, _ in self.open(self.data, pipeline, shuffle=False, copy=True)])
        return self._pictures, oa.imagenet_eval(32, dtype="uint8")

    def check_pictures(self, dataset, epochs=1, **kwargs):
        """Rows of it are the folder's pictures, each once an epoch. Returns their order."""
        want, pipeline = self.pictures()
        loader, seen = self.open(dataset, pipeline, **kwargs), []
        for _ in range(epochs):
            now = []
            for batch in loader:
                pictures, labels = batch.values() if isinstance(batch, dict) else batch
                np.testing.assert_array_equal(pictures, want[np.array(batch.ids)])
                np.testing.assert_array_equal(labels, np.array(self.labels)[np.array(batch.ids)])
                now += list(batch.ids)
            self.assertEqual(sorted(now), list(range(SAMPLES)))
            seen += now
        loader.close()
        return seen


class Generator:
    """As torch's says its seed."""

    @staticmethod
    def initial_seed():
        return 4


class BlocksTest(TablesCase):
    """Orders of a data set that is read by blocks."""

    def blocked(self, window=3, **kwargs):
        return self.open(oa.wrap(samples.Blocks(self.log(), window), workers=1, keep=0.2, random=False), **kwargs)

    def ids(self, loader, epochs=1):
        return [number for _ in range(epochs) for batch in loader for number in batch.ids]

    def check_order(self, ids, window=3):
        """Each once, and no more than window blocks at a time, of which none comes again."""
        self.assertEqual(sorted(ids), list(range(samples.ROWS)))
        blocks = np.array(ids) // samples.A_BLOCK
        for at in range(0, samples.ROWS, window * samples.A_BLOCK):
            here = set(blocks[at:at + window * samples.A_BLOCK])
            self.assertLessEqual(len(here), window)
            self.assertFalse(here & set(blocks[at + window * samples.A_BLOCK:]))

    def test_a_random_order_of_blocks(self):
        ids = self.ids(self.blocked(), 2)
        first, second = ids[:samples.ROWS], ids[samples.ROWS:]
        self.check_order(first)
        self.check_order(second)
        self.assertNotEqual(first, second)
        self.assertNotEqual(first[:3 * samples.A_BLOCK], sorted(first[:3 * samples.A_BLOCK]))
        self.assertEqual(ids, self.ids(self.blocked(shuffle="blocks"), 2))
        other = self.ids(self.blocked(shuffle="blocks", seed=4))
        self.assertNotEqual(first, other)
        self.assertEqual(self.ids(self.blocked(shuffle=True, generator=Generator())), other)

    def test_each_block_is_read_once_an_epoch(self):
        self.ids(self.blocked(epochs=1))
        read = [int(line) for line in self.log().read_text().split()]
        # By its one process, beside those that looked at the first, the middle and the last sample before.
        self.assertEqual(sorted(read[3:]), list(range(samples.ROWS // samples.A_BLOCK)))

    def test_the_files_order(self):
        self.assertEqual(self.ids(self.blocked(shuffle=False)), list(range(samples.ROWS)))

    def test_parts_and_states(self):
        some = [0, 5, 77, 100, 101, 102, 255]
        self.assertEqual(sorted(self.ids(self.blocked(ids=some))), some)
        loader = self.blocked()
        seen = [number for _, batch in zip(range(3), loader) for number in batch.ids]
        state = loader.state_dict()
        loader.close()
        self.check_order(seen + self.ids(self.blocked(state=state)))

    def test_ranks(self):
        ranks = [self.blocked(rank=rank, world_size=2, job="ranks", epochs=1, copy=True) for rank in range(2)]
        seen = []
        for batches in zip(*ranks, strict=True):
            for batch in batches:
                seen += batch.ids
        self.check_order(seen)

    def test_orders_that_cost_a_block_a_sample_are_refused(self):
        for order in ("carousel", "any", "seeded", "usual"):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "each sample would cost one.*shuffle=\"blocks\".*cache="):
                self.blocked(order=order)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "give one of them"):
            self.blocked(order="seeded", shuffle="blocks")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "leave shuffle out"):
            self.open(self.data, shuffle="blocks")


class PackagesTest(TablesCase):
    def test_what_is_not_installed_is_named(self):
        for name, call in (("pyarrow", lambda: oa.from_parquet(__file__)), ("datasets", lambda: oa.from_hf([])),
                           ("h5py", lambda: oa.from_hdf5(__file__, {"a": "b"})), ("zarr", lambda: oa.from_zarr(__file__, {"a": "b"})),
                           ("pyarrow", lambda: oa.windows(__file__, 5, columns=["a"])),
                           ("lmdb", lambda: oa.from_lmdb(__file__, samples.decode))):
            with mock.patch.dict(sys.modules, {name: None, f"{name}.parquet": None}), \
                    self.assertRaisesRegex(oa.errors.ArgumentError, f"pip install {name}"):
                call()

    def test_files_are_found(self):
        folder = self.work / "found"
        (folder / "deep").mkdir(parents=True)
        made = [folder / "b.parquet", folder / "deep/a.parquet"]
        for file in (*made, folder / "README.md"):
            file.write_bytes(b"")
        want = [str(file) for file in made]
        self.assertEqual(tables.files_of(folder), want)
        self.assertEqual(tables.files_of(str(folder / "**/*.parquet")), want)
        self.assertEqual(tables.files_of([made[1], str(made[0])]), want[::-1])
        self.assertTrue(tables.is_meant(folder) and tables.is_meant(made) and tables.is_meant("x.parquet"))
        self.assertFalse(tables.is_meant(self.data) or tables.is_meant([]) or tables.is_meant(["a"]) or tables.is_meant(7))
        # What accessd reads itself is not taken from it by tables beside it.
        for name in ("00000.tar", "cats/1.JPG", "a.tfrecord"):
            beside = self.work / "beside" / name.replace("/", "-") / name
            beside.parent.mkdir(parents=True)
            for file in (beside, self.work / "beside" / name.replace("/", "-") / "labels.parquet"):
                file.write_bytes(b"")
            self.assertFalse(tables.is_meant(self.work / "beside" / name.replace("/", "-")), name)
        (folder / "left-over.zip").write_bytes(b"")
        self.assertTrue(tables.is_meant(folder))
        with self.assertRaisesRegex(FileNotFoundError, "no Parquet file is at .*/gone.parquet"):
            oa.from_parquet("gone.parquet")
        self.assertEqual([tables.size_of(text, "cache") for text in (7, "2K", "3M", "1G")], [7, 2048, 3 << 20, 1 << 30])
        for text in (0, -1, True, "", "1T", "G", 1.5):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "cache is .*512M"):
                tables.size_of(text, "cache")


@needs("pyarrow")
class ParquetTest(TablesCase):
    def table(self):
        import pyarrow
        return pyarrow.table({
            "image": [{"bytes": file.read_bytes(), "path": file.name} for file in self.files], "label": self.labels,
            "name": [file.name for file in self.files], "box": [[1.5, 2, float(i)] for i in range(SAMPLES)],
            "flag": [i % 2 == 0 for i in range(SAMPLES)], "raw": [file.read_bytes() for file in self.files],
            "when": pyarrow.array([0] * SAMPLES, pyarrow.timestamp("ms"))})

    def write(self, name="x.parquet", table=None, **kwargs):
        from pyarrow import parquet
        file = self.work / f"{self.id()}.{name}"
        parquet.write_table(self.table() if table is None else table, file, **{"row_group_size": 20, **kwargs})
        return file

    def test_pictures(self):
        file = self.write()
        for path in (file, [file], str(file)):
            self.check_pictures(path)
        self.check_pictures(oa.from_parquet(file, ["raw", "label"], keep=0.2))
        with self.assertRaisesRegex(oa.errors.DatasetError, "field image of the sample is a bytes.*give the Loader a pipeline"):
            self.open(file)

    def test_orders(self):
        file = self.write()
        kept = oa.from_parquet(file, keep=0.2)
        self.assertIsNone(kept.dataset.blocks)
        self.check_pictures(kept, order="carousel")
        few = oa.from_parquet(file, keep=0.2, cache="50K")
        self.assertEqual(list(few.dataset.blocks.starts), list(range(0, SAMPLES, 20)))
        self.assertEqual(self.check_pictures(few, shuffle=False), list(range(SAMPLES)))
        order = self.check_pictures(few, epochs=2)
        self.assertNotEqual(order[:SAMPLES], order[SAMPLES:])
        window = few.dataset.window
        self.assertLessEqual(len({number // 20 for number in order[:20 * window]}), window)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "row groups"):
            self.open(few, order="carousel")

    def test_fields(self):
        file = self.write()
        columns = ["label", "box", "name", "flag"]
        for batch in self.open(oa.from_parquet(file, ["label", "box", "flag"], keep=0.2), shuffle=False):
            numbers = np.array(batch.ids)
            self.assertEqual(list(batch), ["label", "box", "flag"])
            np.testing.assert_array_equal(batch["label"], np.array(self.labels)[numbers])
            np.testing.assert_array_equal(batch["box"], np.stack([[1.5, 2, i] for i in numbers]).astype(np.float32))
            np.testing.assert_array_equal(batch["flag"], numbers % 2 == 0)
        rows = oa.from_parquet(file, ["name"], pad={"name": oa.Pad(64)}, keep=0.2)
        for batch in self.open(rows, shuffle=False):
            for text, length, number in zip(batch["name"], batch["name_length"], batch.ids, strict=True):
                self.assertEqual(bytes(text[:length]).decode(), self.files[number].name)
        self.assertEqual(oa.from_parquet(file, columns).dataset.columns, dict(zip(columns, ("number", "list", "text", "number"))))

    def test_several_files_are_one(self):
        table = self.table()
        files = [self.write("a", table.slice(0, 70)), self.write("b", table.slice(70, 0)), self.write("c", table.slice(70))]
        self.check_pictures(oa.from_parquet(files, keep=0.2))
        self.check_pictures(oa.from_parquet(files, keep=0.2, cache="50K"))
        other = self.write("d", table.select(["label"]))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "has no column 'image'"):
            oa.from_parquet([files[0], other], ["image"])
        with self.assertRaisesRegex(oa.errors.DatasetError, "other columns"):
            oa.from_parquet([files[0], other])

    def test_what_has_no_place_is_refused(self):
        file = self.write()
        with self.assertRaisesRegex(oa.errors.TransformError, r"column when .* timestamp\[ms\].*columns="):
            oa.from_parquet(file, ["when"])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no column 'x'; there are: image, label"):
            oa.from_parquet(file, ["x"])
        damaged = self.work / "damaged.parquet"
        damaged.write_bytes(file.read_bytes()[:-9])
        with self.assertRaisesRegex(oa.errors.DatasetError, "is no Parquet file that can be read"):
            oa.from_parquet(damaged)
        with mock.patch.object(tables, "_LARGE", 1), self.assertRaisesRegex(oa.errors.DatasetError, "row_group_size"):
            oa.from_parquet(file, cache=1)

    def test_a_file_that_changes_is_told(self):
        file = self.write()
        rows = oa.from_parquet(file, keep=0.2)
        os.utime(file, (1, 1))
        with self.assertRaisesRegex(oa.errors.DatasetError, "was written to since"):
            self.open(rows, batch_size=1)
        again = oa.from_parquet(file, keep=0.2)
        self.assertNotEqual(rows.identity(False), again.identity(False))
        self.assertEqual(again.identity(False), oa.from_parquet(file).identity(False))

    def test_a_missing_value_is_a_bad_sample(self):
        import pyarrow
        file = self.write(table=pyarrow.table({"x": [1, 2, None, 4, 5, 6, 7, 8, 9]}))
        loader = self.open(oa.from_parquet(file, keep=0.2), bad="skip", batch_size=4)
        self.assertEqual(sorted(number for batch in loader for number in batch["x"].tolist()), [1, 2, 4, 5, 6, 7, 8, 9])
        self.assertEqual([bad.index for bad in loader.bad_samples], [2])


@needs("datasets")
class HuggingFaceTest(TablesCase):
    def made(self):
        import datasets
        datasets.disable_progress_bars()
        features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=[str(i) for i in range(CLASSES)]),
                                      "text": datasets.Value("string")})
        return datasets.Dataset.from_dict({"image": [str(file) for file in self.files], "label": self.labels,
                                           "text": [file.name for file in self.files]}, features=features)

    def saved(self):
        import datasets
        folder = str(self.work / self.id())
        self.made().save_to_disk(folder)        # with the pictures' bytes in it
        return datasets.load_from_disk(folder)

    def test_pictures(self):
        two = ["image", "label"]
        self.check_pictures(oa.from_hf(self.made().select_columns(two), keep=0.2))
        self.check_pictures(oa.from_hf(self.saved().select_columns(two), keep=0.2), epochs=2)
        self.check_pictures(oa.from_hf(self.saved(), ["image", "label"], keep=0.2), shuffle=False)

    def test_selections_are_rows(self):
        data = self.saved().select([7, 3, 5, 3])
        for batch in self.open(oa.from_hf(data, ["label"], keep=0.2), shuffle=False, batch_size=4):
            self.assertEqual(batch["label"].tolist(), [self.labels[i] for i in (7, 3, 5, 3)])

    def test_texts(self):
        for batch in self.open(oa.from_hf(self.saved(), ["text"], pad={"text": oa.Pad(64)}, keep=0.2)):
            for text, length, number in zip(batch["text"], batch["text_length"], batch.ids, strict=True):
                self.assertEqual(bytes(text[:length]).decode(), self.files[number].name)

    def test_its_parquet_is_read_the_same(self):
        file = str(self.work / "hf.parquet")
        self.saved().to_parquet(file, batch_size=30)
        self.check_pictures(file)

    def test_transforms_stay(self):
        def seen():
            loader = self.open(oa.from_hf(self.saved().with_transform(samples.noise), keep=0.2), order="seeded", seed=1)
            return np.concatenate([batch["x"].copy() for batch in loader])
        first = seen()
        np.testing.assert_array_equal(first, seen())
        self.assertEqual(len(np.unique(first[:, 0])), SAMPLES)
        self.assertEqual(sorted(first[:, 1]), sorted(self.labels))

    def many(self):
        """A data set of all that columns may be, and its rows."""
        import datasets
        number, of_boxes = datasets.Value("int32"), datasets.List(datasets.Value("float32"), length=4)
        features = datasets.Features({
            "when": datasets.Value("timestamp[ms]"), "text": datasets.Value("string"), "image": datasets.Image(), "score": datasets.Value("float64"),
            "small": datasets.Value("int8"), "flag": datasets.Value("bool"), "label": datasets.ClassLabel(names=[str(i) for i in range(CLASSES)]),
            "box": of_boxes, "even": datasets.List(number), "tokens": datasets.List(number),
            "objects": {"bbox": datasets.List(of_boxes), "category": datasets.List(datasets.ClassLabel(names=["a", "b"]))},
            "parts": datasets.List({"point": datasets.List(datasets.Value("float64")), "word": datasets.Value("string")}),
            "grid": datasets.Array2D((2, 3), "int16"), "deep": datasets.List(datasets.List(datasets.Value("int64"))), "raw": datasets.Value("binary"),
            "right": datasets.Image(), "shots": datasets.List(datasets.Image()), "gaps": number, "nothing": datasets.List(number)})
        rows = []
        for i, file in enumerate(self.files):
            count = i % 4
            rows.append({
                "when": i, "text": None if i % 7 == 3 else "\u00fc" * (i % 5) + file.name, "image": str(file), "score": i / 2, "small": i % 100, "flag": i % 2,
                "label": self.labels[i], "box": [i, 1, 2, 3], "even": [i, i + 1], "tokens": None if i == 9 else list(range(i % 6)),
                "objects": {"bbox": [[i, at, 10, 20] for at in range(count)], "category": [at % 2 for at in range(count)]},
                "parts": [{"point": [i, at / 2], "word": f"{at}" * at} for at in range(count)], "grid": [[i, 1, 2], [3, 4, 5]],
                "deep": [list(range(at)) for at in range(i % 3)], "raw": bytes([i % 256]) * (i % 3), "right": str(self.files[-1 - i]),
                "shots": [str(file)] * (i % 2), "gaps": None if i == 5 else i, "nothing": []})
        return datasets.Dataset.from_list(rows, features=features), rows

    def want(self, row):
        """What becomes of a row, by field."""
        def in_corners(boxes):
            return [[left, top, left + width, top + height] for left, top, width, height in boxes]
        return {**row, "text": row["text"] or "", "tokens": row["tokens"] or [], "objects.bbox": in_corners(row["objects"]["bbox"]),
                "objects.category": row["objects"]["category"], "parts.point": [part["point"] for part in row["parts"]],
                "parts.word": [part["word"] for part in row["parts"]], "raw": list(row["raw"]),
                "right": samples.pixels(row["right"]), "shots": [samples.pixels(shot) for shot in row["shots"]]}

    def check_rows(self, data, rows, names, *args, **options):
        def plain(value):
            return [plain(each) for each in value] if isinstance(value, list) else value.tolist() if hasattr(value, "tolist") else value
        seen = []
        dataset = oa.from_hf(data, [*options.pop("first", []), *names], keep=0.2, **options)
        for batch in self.open(dataset, *args, shuffle=False, as_="numpy"):
            for at, number in enumerate(batch.ids):
                seen.append(number)
                want = self.want(rows[number])
                self.assertEqual({name: plain(batch[name][at]) for name in names}, {name: want[name] for name in names})
        self.assertEqual(seen, list(range(len(rows))))

    def test_each_column_that_has_a_place(self):
        data, rows = self.many()
        boxes, pixels = {"boxes": ["objects.bbox", "objects.category"], "box_format": "xywh"}, {"pixels": {"right": samples.SIZE}}
        names = ["label", "text", "score", "small", "flag", "box", "even", "tokens", "objects.bbox", "objects.category", "right"]
        still = json.dumps([{"op": "decode"}, {"op": "center_crop", "size": 16}])
        for some, of in ((data, rows), (data.select([9, 3, 1, 5]), [rows[i] for i in (9, 3, 1, 5)])):
            self.check_rows(some, of, names, **boxes, **pixels)
            self.check_rows(some, of, ["parts.point", "parts.word", "deep", "raw", "grid"])
            self.check_rows(some, of, ["label", "deep", "text", "right"], still, first=["image"], **pixels)
        self.check_rows(data, rows, ["shots"], pixels={"shots": samples.SIZE})
        self.assertEqual(oa.from_hf(data, ["right"]).ragged, {})        # the pipeline's
        self.assertEqual(oa.from_hf(data, ["image", "right"]).ragged, {"right": max(os.stat(file).st_size for file in self.files)})
        self.assertEqual(oa.from_hf(data, ["text", "even"], ragged={"text": 9}).ragged, {"text": 9})
        self.assertEqual(oa.from_hf(data.select([1, 7]), ["tokens", "text"]).ragged, {"text": 4 + len(self.files[0].name)})

    def test_columns_that_nobody_names(self):
        data, rows = self.many()
        with self.assertWarnsRegex(UserWarning, "left out: when is timestamp.*gaps has no value in 1 rows.*nothing has nothing in any row.*columns="):
            chosen = oa.from_hf(data.remove_columns(["deep", "shots", "raw"]), keep=0.2, ragged={"right": 60000})
        want = ["image", "label", "right", "text", "score", "small", "flag", "box", "even", "tokens", "objects.bbox", "objects.category", "parts.point", "grid"]
        batch = next(iter(self.open(chosen, oa.imagenet_eval(16, dtype="uint8"), shuffle=False)))
        self.assertEqual(list(batch), want)
        self.assertEqual(bytes(batch["right"][0]), self.files[-1].read_bytes())
        with self.assertWarnsRegex(UserWarning, "deep is one more than the 23 fields"):
            oa.from_hf(data)
        import datasets
        with self.assertWarnsRegex(UserWarning, "left out: text has a value of 0.3 MiB.*ragged=.\"text\": most"):
            self.assertEqual(oa.from_hf(datasets.Dataset.from_dict({"x": [1], "text": ["a" * 300000]})).ragged, {})
        with self.assertRaisesRegex(oa.errors.TransformError, "no column of the data set has a place in a batch: x is timestamp"):
            oa.from_hf(data.select_columns("when").rename_column("when", "x"))

    def test_columns_that_cannot_be_had(self):
        data, _ = self.many()
        for columns, options, why in (
                (["when"], {}, r"column when is timestamp\[ms\].*no place in a batch.*dataset.map.*of when, text, image"),
                (["nothing"], {}, "column nothing has nothing in any row"),
                (["objects.x"], {}, "no column 'objects.x'; there are: .*objects.bbox, objects.category"),
                (["text"], {"pixels": {"text": (2, 2)}}, "pixels= names column text, which has no pictures"),
                (["text"], {"pixels": {"right": (2, 2)}}, "names 'right', which is not among the columns that a batch has: text"),
                (["right"], {"pixels": {"right": 7}}, r"give \(height, width\)"),
                (["text"], {"box_format": "cxcywh"}, "box_format is 'cxcywh'; there are: xyxy, xywh"),
                (["objects"], {"boxes": "objects.category"}, "boxes= names column objects.category first, which has no lists of four"),
                (None, {"boxes": "objects.box"}, "no column 'objects.box'")):
            with self.assertRaisesRegex(oa.Error, why):
                oa.from_hf(data, columns, **options)
        with self.assertRaisesRegex(oa.errors.SampleError, "box of column objects.bbox ends before.*box_format=.*xywh"):
            list(self.open(oa.from_hf(data, ["objects"], boxes=["objects.bbox"], keep=0.2), shuffle=False))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "has a format or a transform of its own"):
            oa.from_hf(data.with_format("numpy"), box_format="xywh")
        loader = self.open(oa.from_hf(data, ["gaps"], keep=0.2), bad="skip")
        self.assertEqual(sorted(number for batch in loader for number in batch["gaps"].tolist()), sorted({*range(SAMPLES)} - {5}))

    def test_columns_of_odd_shapes(self):
        import datasets
        import pyarrow
        uneven = datasets.Dataset.from_dict({"deep": [[[[1, 2], [3]]], [[[4], [5, 6], [7]]]]})
        for options in ({}, {"ragged": {"deep": (4, 4)}}, {"pad": {"deep": oa.Pad(4)}}):
            with self.assertRaisesRegex(oa.errors.TransformError, "column deep is lists in lists"):
                oa.from_hf(uneven, ["deep"], **options)
        shots = datasets.Dataset.from_dict({"shots": [[[str(self.files[0])]]]}, datasets.Features(shots=datasets.List(datasets.List(datasets.Image()))))
        for options in ({}, {"pixels": {"shots": (8, 8)}}):
            with self.assertRaisesRegex(oa.errors.TransformError, "column shots is lists of lists of pictures"):
                oa.from_hf(shots, ["shots"], **options)
        twice = datasets.Dataset.from_dict({"a": [{"b": 1}], "a.b": [2]})
        with self.assertWarnsRegex(UserWarning, "left out: a.b has the name of another one"):
            oa.from_hf(twice)
        with self.assertRaisesRegex(oa.errors.TransformError, "column a.b has the name of another one"):
            oa.from_hf(twice, ["a.b"])
        # As datasets before 4 have Sequence({"image": Image()}).
        picture = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
        sequence = types.SimpleNamespace(feature={"image": datasets.Image()})
        self.assertEqual([(leaf.name, leaf.kind, leaf.depth) for leaf in
                          hf._leaves(("of",), pyarrow.struct({"image": pyarrow.list_(picture)}), sequence)], [("of.image", "picture", 1)])
        array = pyarrow.array([{"bytes": b"four", "path": None}, None, {"bytes": None, "path": str(self.files[0])}], picture)
        self.assertEqual(hf._sizes("picture")(array).to_pylist(), [4, 0, self.files[0].stat().st_size])

    def test_what_is_none_is_told(self):
        import datasets
        with self.assertRaisesRegex(oa.errors.ArgumentError, "one split.*train"):
            oa.from_hf(datasets.DatasetDict(train=self.made()))
        with self.assertRaisesRegex(oa.errors.TransformError, "streaming"):
            oa.from_hf(self.made().to_iterable_dataset())
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no column 'x'; there are: image, label, text"):
            oa.from_hf(self.made(), ["x"])
        with self.assertRaisesRegex(oa.errors.TransformError, "from_hf"):
            oa.Loader(self.made())


class HuggingFaceWithoutTest(unittest.TestCase):
    """What needs no package."""

    def test_bounds(self):
        for extents, has_sizes, must, bound in (
                ([], False, False, None), ([(3, 3)], False, False, None), ([(3, 3)], False, True, 3), ([(0, 7)], False, False, 7),
                ([(0, 7), (4, 4)], False, False, 7), ([(7, 7), (4, 4)], False, False, None), ([(7, 7), (0, 4)], False, False, (7, 4)),
                ([(1, 7), (2, 4), (3, 3)], False, False, (7, 4)), ([(5, 5)], True, False, 5), ([(0, 5), (2, 9)], True, False, (5, 9)),
                ([(2, 2), (9, 9)], True, False, (2, 9))):
            self.assertEqual(hf._bound(extents, has_sizes, must), bound, extents)
        for extents, has_sizes in (([(1, 1), (1, 1), (1, 2)], False), ([(1, 1)] * 5, False), ([(1, 1)] * 3, True)):
            with self.assertRaisesRegex(oa.errors.TransformError, "too many levels"):
                hf._bound(extents, has_sizes, False)

    def test_boxes(self):
        np.testing.assert_array_equal(hf._corners(np.array([[1, 2, 3, 4], [0, 0, 0, 0]]), "x", "xywh"), np.float32([[1, 2, 4, 6], [0, 0, 0, 0]]))
        self.assertEqual(hf._corners(np.zeros((0, 4)), "x", "xyxy").shape, (0, 4))
        with self.assertRaisesRegex(oa.errors.DatasetError, "column x ends before"):
            hf._corners(np.array([[1, 2, 0, 4]]), "x", "xyxy")

    def test_order(self):
        leaves = [hf.Leaf(name, (name,), kind, 0, "", name == "class") for name, kind in (("a", "number"), ("mask", "picture"), ("left", "picture"), ("class", "number"))]
        self.assertEqual([leaf.name for leaf in hf._in_order(leaves, hf._Given({}, [], "xyxy", ["mask"], {"mask"}))], ["left", "class", "mask", "a"])
        self.assertEqual([leaf.name for leaf in hf._in_order(leaves, hf._Given({}, [], "xyxy", [], set()))], ["mask", "class", "a", "left"])


class ArraysCase(TablesCase):
    FIELDS = {"image": "images", "label": "of/labels"}

    def check(self, dataset, pixels, pipeline=None, **kwargs):
        seen = []
        for batch in self.open(dataset, pipeline, **kwargs):
            numbers = np.array(batch.ids)
            if pipeline is None:
                np.testing.assert_array_equal(batch["image"], pixels[numbers])
            np.testing.assert_array_equal(batch["label"], np.array(self.labels)[numbers])
            seen += list(batch.ids)
        self.assertEqual(sorted(seen), list(range(SAMPLES)))

    def pixels(self):
        return np.stack([np.asarray(Image.open(name).convert("RGB").resize((24, 20))) for name in self.files])


@needs("h5py")
class HDF5Test(ArraysCase):
    def write(self, **kwargs):
        import h5py
        file = self.work / f"{self.id()}.h5"
        pixels = self.pixels()
        with h5py.File(file, "w") as opened:
            opened.create_dataset("images", data=pixels, **kwargs)
            opened["of/labels"] = np.array(self.labels, np.int32)
            opened["short"] = np.zeros(3)
        return file, pixels

    def test_rows(self):
        file, pixels = self.write()
        self.check(oa.from_hdf5(file, self.FIELDS, keep=0.2), pixels, order="carousel")
        self.check(oa.from_hdf5(file, self.FIELDS, keep=0.2), pixels, oa.imagenet_eval(16, dtype="uint8"))

    def test_chunks(self):
        file, pixels = self.write(chunks=(16, 20, 24, 3), compression="gzip")
        kept = oa.from_hdf5(file, self.FIELDS, keep=0.2)
        self.assertIsNone(kept.dataset.blocks)
        self.check(kept, pixels, order="carousel")
        few = oa.from_hdf5(file, self.FIELDS, keep=0.2, cache="100K")
        self.assertEqual(list(few.dataset.blocks.starts), list(range(0, SAMPLES, 16)))
        self.check(few, pixels)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "chunks.*cache="):
            self.open(few, order="carousel")

    def test_what_is_wrong_is_told(self):
        file, _ = self.write()
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no array 'imags'; there are: images, of/labels, short"):
            oa.from_hdf5(file, {"image": "imags"})
        with self.assertRaisesRegex(oa.errors.DatasetError, "different lengths: .*240.*3"):
            oa.from_hdf5(file, {"image": "images", "x": "short"})
        with self.assertRaisesRegex(oa.errors.ArgumentError, "field of a batch: array of the file"):
            oa.from_hdf5(file, {})
        with self.assertRaisesRegex(oa.errors.DatasetError, "no HDF5 file"):
            oa.from_hdf5(__file__, self.FIELDS)
        with self.assertRaises(FileNotFoundError):
            oa.from_hdf5("gone.h5", self.FIELDS)


@needs("zarr", 3)
class ZarrTest(ArraysCase):
    def write(self, version=3, chunks=(16, 20, 12, 3), **kwargs):
        import zarr
        path, pixels = self.work / f"{self.id()}{version}.zarr", self.pixels()
        root = zarr.open_group(str(path), mode="w", zarr_format=version)
        for name, values, sizes, more in (("images", pixels, chunks, kwargs), ("of/labels", np.array(self.labels, np.int32), (32,), {}), ("short", np.zeros(3), (3,), {})):
            root.create_array(name, shape=values.shape, dtype=values.dtype, chunks=sizes, **more)[...] = values
        return path, pixels

    def test_rows(self):
        for version in 2, 3:
            path, pixels = self.write(version, (1, 20, 24, 3))
            self.check(oa.from_zarr(path, self.FIELDS, keep=0.2), pixels, order="carousel")
        self.check(oa.from_zarr(path, self.FIELDS, keep=0.2), pixels, oa.imagenet_eval(16, dtype="uint8"))
        (batch,) = self.open(oa.from_zarr(path / "images", {"image": ""}, keep=0.2), shuffle=False, batch_size=SAMPLES)
        np.testing.assert_array_equal(batch["image"], pixels)

    def test_chunks(self):
        for version, more in ((2, {}), (3, {}), (3, {"shards": (48, 20, 24, 3)})):
            path, pixels = self.write(version, **more)
            kept = oa.from_zarr(path, self.FIELDS, keep=0.2)
            self.assertIsNone(kept.dataset.blocks)
            self.check(kept, pixels, order="carousel")
            few = oa.from_zarr(path, self.FIELDS, keep=0.2, cache="100K")
            self.assertEqual(list(few.dataset.blocks.starts), list(range(0, SAMPLES, 16)))
            self.check(few, pixels)

    def test_what_is_wrong_is_told(self):
        path, _ = self.write()
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no array 'imags'; there are: images, short, of/labels|no array 'imags'; there are: short, images, of/labels"):
            oa.from_zarr(path, {"image": "imags"})
        with self.assertRaisesRegex(oa.errors.DatasetError, "different lengths: .*240.*3"):
            oa.from_zarr(path, {"image": "images", "x": "short"})
        with self.assertRaisesRegex(oa.errors.DatasetError, "is no Zarr that can be read"):
            oa.from_zarr(self.work, self.FIELDS)
        with mock.patch("oneaccess.sources.stores._LARGE", 1000), self.assertRaisesRegex(oa.errors.DatasetError, "chunks of fewer rows"):
            oa.from_zarr(path, self.FIELDS, cache=1000)
        with self.assertRaises(FileNotFoundError):
            oa.from_zarr("gone.zarr", self.FIELDS)


@needs("pyarrow")
class SeriesTest(TablesCase):
    """Windows of columns."""

    def test_windows(self):
        import pyarrow
        import pyarrow.parquet
        random = np.random.default_rng(3)
        table = pyarrow.table({"who": [str(one) for one in random.integers(0, 7, 400)], "x": random.normal(size=400), "n": random.integers(0, 9, 400), "text": ["a"] * 400})
        files = [str(self.work / f"series{number}.parquet") for number in range(2)]
        for file, part in zip(files, (table[:150], table[150:])):
            pyarrow.parquet.write_table(part, file, row_group_size=60)
        for group, columns in ((None, ["x", "n"]), ("who", ["n", "x"]), ("who", ["n"])):
            values = np.stack([table[name].to_numpy() for name in columns], 1).astype("f4" if "x" in columns else "i8")
            names = np.array(table["who"].to_pylist())
            series = [values] if group is None else [values[names == name] for name in dict.fromkeys(names)]
            wanted = np.concatenate([np.lib.stride_tricks.sliding_window_view(part, 12, 0)[::5].transpose(0, 2, 1) for part in series])
            data = oa.windows(files, 12, 5, columns=columns, group=group, parts={"past": 8, "future": 4}, keep=0.2)
            found = [(batch["past"].copy(), batch["future"].copy()) for batch in self.open(data, shuffle=False, as_="numpy")]
            np.testing.assert_array_equal(np.concatenate([np.concatenate(parts) for parts in zip(*found)], 1), wanted)
            self.assertEqual(found[0][0].dtype, values.dtype)
        for columns, group, words in ((["text"], None, "column text of .* is string"), (["y"], None, "no column 'y'; there are: who, x, n, text"), (["x"], "y", "no column 'y'")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                oa.windows(files, 12, columns=columns, group=group)
        with self.assertRaisesRegex(oa.errors.DatasetError, "none of the series"):
            oa.windows(files, 120, columns=["x"], group="who")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no argument exact"):
            oa.windows(files, 12, columns=["x"], exact=True)


@needs("lmdb")
class LMDBTest(TablesCase):
    def write(self):
        import lmdb
        path = str(self.work / self.id())
        with lmdb.open(path, map_size=1 << 26) as environment, environment.begin(write=True) as transaction:
            for number, file in enumerate(self.files):
                transaction.put(b"%06d" % number, self.labels[number].to_bytes(8, "little") + file.read_bytes())
        return path

    def test_values(self):
        path = self.write()
        self.check_pictures(oa.from_lmdb(path, samples.decode, keep=0.2, random=False))
        self.check_pictures(oa.from_lmdb(path + "/data.mdb", samples.decode, keep=0.2), epochs=2)

    def test_keys(self):
        path = self.write()
        for batch in self.open(oa.from_lmdb(path, samples.number, keys=["000007", b"000003"], keep=0.2), shuffle=False, batch_size=2):
            self.assertEqual(batch[0].tolist(), [7, 3])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no key b'x'"):
            oa.from_lmdb(path, samples.decode, keys=["x"])
        with self.assertRaises(FileNotFoundError):
            oa.from_lmdb("gone.lmdb", samples.decode)
        with self.assertRaisesRegex(oa.errors.DatasetError, "no LMDB environment"):
            oa.from_lmdb(__file__, samples.decode)


if __name__ == "__main__":
    unittest.main(verbosity=2)
