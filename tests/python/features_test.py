# SPDX-License-Identifier: Apache-2.0
"""Columns as features: each op beside its formula in plain Python, and batches of a real daemon beside both."""

import functools
import importlib.util
import mmap
import random
import socket
import struct
import sys
import unittest
import warnings

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as missing:
    print(f"features_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import features as f
from oneaccess import pool, record
from oneaccess import hashes
from oneaccess.sources import feature_rows, tables
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

COUNT, NAN, MASK = 700, float("nan"), (1 << 64) - 1
DENSE, SPARSE = ["I1", "I2", "I3"], ["C1", "C2"]


def xxh64(data, seed=0):
    """The specification's steps for one text."""
    p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def turn(x, bits):
        return (x << bits | x >> 64 - bits) & MASK

    def step(acc, lane):
        return turn((acc + lane * p2) & MASK, 31) * p1 & MASK

    made, at = (seed + p5) & MASK, 0
    if len(data) >= 32:
        accs = [(seed + p1 + p2) & MASK, (seed + p2) & MASK, seed, (seed - p1) & MASK]
        while at + 32 <= len(data):
            accs = [step(acc, lane) for acc, lane in zip(accs, struct.unpack_from("<4Q", data, at))]
            at += 32
        made = sum(turn(acc, bits) for acc, bits in zip(accs, (1, 7, 12, 18))) & MASK
        for acc in accs:
            made = ((made ^ step(0, acc)) * p1 + p4) & MASK
    made = (made + len(data)) & MASK
    while at + 8 <= len(data):
        made = (turn(made ^ step(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & MASK
        at += 8
    if at + 4 <= len(data):
        made = (turn(made ^ struct.unpack_from("<I", data, at)[0] * p1 & MASK, 23) * p2 + p3) & MASK
        at += 4
    for byte in data[at:]:
        made = turn(made ^ byte * p5 & MASK, 11) * p1 & MASK
    made = (made ^ made >> 33) * p2 & MASK
    made = (made ^ made >> 29) * p3 & MASK
    return made ^ made >> 32


def word(value, seed=0):
    return xxh64(value.encode(), seed) if isinstance(value, str) else value & MASK


def bucket(value, buckets, seed=0):
    return xxh64(value.encode() if isinstance(value, str) else struct.pack("<q", value), seed) % buckets


def joined(values, buckets, seed=0):
    return xxh64(struct.pack(f"<{len(values)}Q", *(word(value, seed) for value in values)), seed) % buckets


def table(count=COUNT, seed=3):
    rng = np.random.default_rng(seed)
    words = [f"{number:08x}" for number in rng.integers(0, 1 << 32, 20)] + ["", "ö" * 50]
    lists = [rng.integers(0, 1000, size).tolist() for size in rng.integers(0, 9, count)]
    return pa.table({
        "label": rng.integers(0, 2, count),
        **{name: pa.array(rng.normal(2, 3, count), pa.float32(), mask=rng.random(count) < .2) for name in DENSE},
        "C1": pa.array([words[at] for at in rng.integers(0, len(words), count)], mask=rng.random(count) < .1),
        "C2": pa.array(rng.integers(-5, 50, count), pa.int32(), mask=rng.random(count) < .1),
        "clicks": pa.array([None if at % 11 == 3 else each for at, each in enumerate(lists)], pa.list_(pa.int64())),
    })


class HashTest(unittest.TestCase):
    def test_published(self):
        for text, want in ((b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)):
            self.assertEqual(xxh64(text), want)
            self.assertEqual(hashes.of_bytes(np.frombuffer(text, np.uint8), np.zeros(1, int), np.array([len(text)])).tolist(), [want])

    def test_texts_and_words(self):
        draw = random.Random(1)
        for seed in (0, 7, MASK):
            texts = [draw.randbytes(size) for size in [*range(80), 200, 255]]
            sizes = np.array([*map(len, texts)])
            made = hashes.of_bytes(np.frombuffer(b"".join(texts), np.uint8), np.cumsum(sizes) - sizes, sizes, seed)
            self.assertEqual(made.tolist(), [xxh64(text, seed) for text in texts])
            for count in range(1, 10):
                words = np.frombuffer(draw.randbytes(8 * 20 * count), np.uint64).reshape(20, count)
                self.assertEqual(hashes.of_words(words, seed).tolist(), [xxh64(row.tobytes(), seed) for row in words])

    def test_more_than_are_hashed_at_once(self):
        words = np.arange(hashes._AT_ONCE + 3, dtype=np.uint64)[:, None]
        made = hashes.of_words(words)
        self.assertEqual(made[-1], xxh64(struct.pack("<Q", len(words) - 1)))
        again = hashes.of_bytes(words.view(np.uint8).reshape(-1), np.arange(len(words)) * 8, np.full(len(words), 8))
        self.assertEqual(again.tolist(), made.tolist())


class OpsTest(unittest.TestCase):
    def made(self, array, *ops, **more):
        return feature_rows.Group({"x": f.Column("c", *ops, **more)}, pa.table({"c": array}))

    def check(self, array, ops, want, dtype):
        """The column, also in pieces, as part of another one, and with a dictionary."""
        whole = pa.array(array) if not isinstance(array, pa.Array) else array
        forms = [whole, pa.chunked_array([whole.slice(0, 1), whole.slice(1)]), pa.concat_arrays([whole.slice(0, 1), whole]).slice(1)]
        if not pa.types.is_nested(whole.type):
            forms.append(whole.dictionary_encode())
        for form in forms:
            made = self.made(form, *ops)
            self.assertIsNone(made.any_wrong)
            found = made.arrays["x"]
            self.assertEqual(found.dtype, dtype)
            np.testing.assert_array_equal(found, np.array(want, dtype))

    def test_fill(self):
        self.check([1.5, None, NAN], [f.Fill(7)], [1.5, 7, 7], "float32")
        self.check([1, None, 3], [f.Fill(7)], [1, 7, 3], "int64")
        self.check([1, None, 3], [f.Fill(.5)], [1, .5, 3], "float32")
        self.check([1, 2, 3], [f.Fill(.5)], [1, 2, 3], "float32")
        self.check(pa.array([1, None, 255], pa.uint8()), [f.Fill(-7)], [1, -7, 255], "int64")
        self.check([True, None, False], [f.Fill(1)], [1, 1, 0], "int64")
        self.check(["a", None], [f.Fill("zz"), f.Hash(1000)], [bucket("a", 1000), bucket("zz", 1000)], "int64")
        self.check(pa.array([None, None], pa.string()), [f.Fill(""), f.Hash(10)], [bucket("", 10)] * 2, "int64")

    def test_numbers(self):
        self.check([-3., 2., 9.], [f.Clamp(0, 5)], [0, 2, 5], "float32")
        self.check([-3, 2, 9], [f.Clamp(min=0)], [0, 2, 9], "int64")
        self.check([-3, 2, 9], [f.Clamp(max=2.5)], [-3, 2, 2.5], "float32")
        self.check([0, 5, 1 << 40], [f.Log1p()], np.log1p([0., 5, 1 << 40]), "float32")
        self.check([1., 2.], [f.Standardize(1.5, .25)], [-2, 2], "float32")
        self.check([1., 2.], [f.Standardize(1, 0)], [0, 0], "float32")
        self.check([0., 1, 1.5, 2, 3], [f.Bucketize([1, 2])], [0, 0, 1, 1, 2], "int64")
        self.check([1, 2], [np.sqrt], np.sqrt([1., 2]), "float32")

    def test_what_a_type_has_no_room_for(self):
        top, inf = (1 << 63) - 1, float("inf")
        large = pa.array([top, None, MASK], pa.uint64())
        for ops in (), (f.Fill(-1),), (f.Clamp(max=5),), (f.Fill(3), f.Clamp(min=0)), (f.Fill(3),):
            made = self.made(large, *ops)
            self.assertEqual(made.any_wrong.tolist(), [False, not (ops and isinstance(ops[0], f.Fill)), True])
            self.assertRegex(made.wrong_of(np.array([2]))[1], r"above 2\*\*63 - 1, .*Hash")
            self.assertEqual(made.arrays["x"][0], 5 if ops and ops[0].__class__ is f.Clamp else top)
        self.check(large, [f.Fill(7), f.Hash(1 << 60)], [bucket(top, 1 << 60), bucket(7, 1 << 60), bucket(-1, 1 << 60)], "int64")
        made = self.made([1e39, -1e39, inf, NAN, 3e38])
        self.assertEqual(made.any_wrong.tolist(), [True, True, False, False, False])
        self.assertRegex(made.wrong_of(np.array([1]))[1], "float32, which ends at 3.4e.38, has no room for it: Clamp")
        np.testing.assert_array_equal(made.arrays["x"][2:], np.float32([inf, NAN, 3e38]))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "a number, or one"):
            f.Fill(1 << 63)
        lists = self.made([[1., 2], [1e39], []], f.First(3))
        self.assertEqual(lists.any_wrong.tolist(), [False, True, False])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no package torch")
    def test_bucketize_is_torchs(self):
        import torch
        values, ends = torch.randn(100), torch.tensor([-1., 0, .5])
        self.check(values.numpy(), [f.Bucketize(ends.tolist())], torch.bucketize(values, ends).numpy(), "int64")

    def test_hash(self):
        texts, numbers = ["", "a", "ö" * 30, "a"], [0, -1, 1 << 40, 7]
        self.check(texts, [f.Hash(1 << 40, seed=5)], [bucket(text, 1 << 40, 5) for text in texts], "int64")
        self.check([text.encode() for text in texts], [f.Hash(1 << 40)], [bucket(text, 1 << 40) for text in texts], "int64")
        self.check(numbers, [f.Hash(1000)], [bucket(number, 1000) for number in numbers], "int64")
        self.check(pa.array([MASK], pa.uint64()), [f.Hash(1 << 60)], [bucket(-1, 1 << 60)], "int64")

    def test_vocabulary(self):
        self.check(["b", None, "x", "a"], [f.Vocabulary(["a", "b"])], [2, 0, 0, 1], "int64")
        self.check([5, None, 7], [f.Vocabulary([7, 5], first=2, unknown=1, missing=0)], [3, 0, 2], "int64")
        self.check(pa.array([None, None], pa.string()), [f.Vocabulary(["a"], missing=9)], [9, 9], "int64")

    def test_lists(self):
        lists = [[1, 2, 3], [], None, [4]]
        for last, want in ((False, [1, 2, 4]), (True, [2, 3, 4])):
            values, offsets = self.made(pa.array(lists), f.First(2, last)).arrays["x"]
            self.assertEqual((values.tolist(), offsets.tolist()), (want, [0, 2, 2, 2, 3]))
        self.check(lists, [f.Pad(2, -1)], [[1, 2], [-1, -1], [-1, -1], [4, -1]], "int64")
        self.check(lists, [f.Hash(100), f.Pad(2, 100)], [[bucket(1, 100), bucket(2, 100)], [100, 100], [100, 100], [bucket(4, 100), 100]], "int64")
        self.check(pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), [f.Pad(2)], [[1, 2], [3, 4]], "float32")
        self.check([[1, None], [None]], [f.Fill(9), f.Pad(2)], [[1, 9], [9, 0]], "int64")
        self.check([["a", "b", "c"], ["a"]], [f.NGram(2, 50, seed=3), f.Pad(2, -1)], [[joined("ab", 50, 3), joined("bc", 50, 3)], [-1, -1]], "int64")
        self.check([[1, 2, 3, 4]], [f.NGram(3, 50), f.Pad(2)], [[joined([1, 2, 3], 50), joined([2, 3, 4], 50)]], "int64")

    def test_crosses_and_stacks(self):
        one = pa.table({"a": ["x", "y", None], "b": [1, 2, 3], "c": [.5, 1, 2]})
        cross = f.Cross(["a", "b"], 1000, seed=4)
        made = feature_rows.Group({"x": f.Stack([f.Column("b", f.Hash(10)), f.Cross([f.Column("a", f.Fill("")), "b"], 1000)]), "cross": cross,
                                   "numbers": f.Stack(["b", "c"], f.Clamp([2, 0], [9, 1])), "sizes": f.Stack(["b", "b"], f.Hash([3, 5]))}, one)
        values = list(zip(["x", "y", ""], [1, 2, 3]))
        self.assertEqual(made.arrays["x"].tolist(), [[bucket(b, 10), joined([a, b], 1000)] for a, b in values])
        self.assertEqual(made.arrays["cross"].tolist()[:2], [joined(each, 1000, 4) for each in values[:2]])
        self.assertEqual(made.any_wrong.tolist(), [False, False, True])
        np.testing.assert_array_equal(made.arrays["numbers"], np.float32([[2, .5], [2, 1], [3, 1]]))
        self.assertEqual(made.arrays["sizes"].tolist(), [[bucket(b, 3), bucket(b, 5)] for b in (1, 2, 3)])

    def test_what_is_wrong_is_said(self):
        made = self.made(pa.array([1., None, -2]), f.Log1p())
        self.assertEqual(made.any_wrong.tolist(), [False, True, True])
        for row, words in ((1, "column c: it has no value .null.: Fill"), (2, "column c: Log1p.*less: Clamp")):
            found, why = made.wrong_of(np.array([0, row]))
            self.assertEqual(found, row)
            self.assertRegex(why, words)
        self.assertIsNone(made.wrong_of(np.array([0])))
        lists = self.made(pa.array([[1, 2], [], [None, 3], [None]]), f.First(1))
        self.assertEqual(lists.any_wrong.tolist(), [False, False, True, True])
        self.assertEqual(self.made(pa.array([[1, 2], [None]]), f.Pad(2)).any_wrong.tolist(), [False, True])
        for array, ops, words in ((["a"], (), "it is text: Hash"), (["a"], [f.Log1p()], "is of numbers, and this is text"),
                                  ([1.5], [f.Hash(3)], "Bucketize them first"), ([1.5], [f.Vocabulary([1])], "Bucketize them first"),
                                  ([1], [f.Fill("")], "these are numbers"), (["a"], [f.Fill(0)], "this is text"),
                                  ([1], [f.Vocabulary(["a"])], "these are numbers"), (["a"], [f.Vocabulary([1])], "this is text"),
                                  ([1], [f.First(2)], "is of lists"), ([[1]], (), "First.count. or Pad"), ([["a"]], [f.Pad(2)], "is of numbers"),
                                  ([[[1]]], [f.First(2)], "lists of lists"), ([1], [np.sum], "of that shape")):
            with self.subTest(words), self.assertRaisesRegex(oa.errors.TransformError, f"field x: column c: .*{words}"):
                self.made(pa.array(array), *ops)
        with self.assertRaisesRegex(oa.errors.TransformError, "field x: a Stack is of columns with one value"):
            feature_rows.Group({"x": f.Stack(["c", "c"], f.First(2))}, pa.table({"c": [[1]]}))

    def test_arguments(self):
        for words, call in (("Clamp.. has neither", f.Clamp), ("whole number from 1", lambda: f.Hash(0)), ("whole number", lambda: f.Hash(1.5)),
                            ("boundaries increase", lambda: f.Bucketize([2, 1])), ("boundaries increase", lambda: f.Bucketize([])),
                            ("differ from each other", lambda: f.Vocabulary(["a", "a"])), ("differ", lambda: f.Vocabulary([])),
                            ("texts or whole numbers", lambda: f.Vocabulary(["a", 1])), ("whole number from 1", lambda: f.First(0)),
                            ("a number, or one", lambda: f.Fill(NAN)), ("is no op", lambda: f.Column("a", 3)), ("the name of", lambda: f.Column(3)),
                            ("a list of columns", lambda: f.Stack("a")), ("a list of columns", lambda: f.Cross([], 3)),
                            ("columns={.x.: 3}", lambda: f.fields_of({"x": 3})), ("from 2 on", lambda: f.NGram(1, 5))):
            with self.subTest(words), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                call()
        with self.assertRaisesRegex(oa.errors.ArgumentError, "has 3 numbers, and the Stack 2 columns"):
            feature_rows.Group({"x": f.Stack(["c", "c"], f.Hash([1, 2, 3]))}, pa.table({"c": [1]}))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "and none of c"):
            feature_rows.Group({"x": f.Column("c", f.Vocabulary({"d": [1]}))}, pa.table({"c": [1]}))

    def test_records(self):
        """Many at once are those that are made one by one."""
        made = feature_rows.Group(f.fields_of({"a": f.Stack(["C2", "C2"], f.Fill(0)), "label": "label", "list": f.Column("clicks", f.First(5)),
                                  "x": f.Column("I1", f.Fill(0)), "pad": f.Column("clicks", f.Pad(3))}), table(50))
        arrays = made.arrays
        for names in (["label"], ["a", "x"], ["a", "label", "x", "pad"], ["label", "list"], ["list"], ["list", "a", "x", "label", "pad"]):
            with self.subTest(names):
                samples = [{name: made.sample(row)[name] for name in names} for row in range(50)]
                layout = record.describe(samples[0], False, {name: 5 for name in names if name == "list"})
                data, begins, ends = record.packed([arrays[name] for name in names], layout)
                for sample, begin, end in zip(samples, begins, ends):
                    one = record.Record(sample, layout, False)
                    memory = memoryview(bytearray(one.size))
                    one.write(memory)
                    self.assertEqual(bytes(data[begin:end]), bytes(memory))
                most = record.room_of([array[0][:0].nbytes if isinstance(array, tuple) else array[:1].nbytes for array in (arrays[name] for name in names)], "list" in names)
                self.assertLessEqual(int((ends - begins).max()), most + (5 * 8 if "list" in names else 0))


class Ready:
    """A data set that has records, of 100 bytes each; number 5 is bad."""

    words = None

    def __getrecords__(self, samples, layout, words):
        if 5 in samples:
            raise oa.errors.TransformError("five")
        self.words = words
        return memoryview(b"".join(bytes([sample]) * 100 + bytes(28) for sample in samples)), [100] * len(samples)


class AnswersTest(unittest.TestCase):
    """What a pool's worker answers with where a data set has records."""

    def answers(self, samples, size, room=100, dataset=None, random=False):
        ours, theirs = socket.socketpair()
        with ours, theirs, mmap.mmap(-1, mmap.PAGESIZE) as busy:
            worker = pool.Worker(dataset or Ready(), {}, {"pictures": False, "random": random}, room, theirs, busy)
            memory = memoryview(bytearray(size))
            made = worker.make([(sample, (0, 0, 0, sample)) for sample in samples], memory)
        return [status for status, _, _, _ in pool.ANSWER.iter_unpack(made)], bytes(memory)

    def test_answers(self):
        def record_of(sample):
            return bytes([sample]) * 100 + bytes(28)

        good, later, failed = pool.GOOD, pool.LATER, pool.FAILED
        self.assertEqual(self.answers([1, 2, 3], 384), ([good] * 3, record_of(1) + record_of(2) + record_of(3)))
        self.assertEqual(self.answers([1, 2, 3], 383), ([good, good, later], record_of(1) + record_of(2) + bytes(127)))
        self.assertEqual(self.answers([1, 2], 20), ([later, later], bytes(20)))
        self.assertEqual(self.answers([7], 128), ([good], record_of(7)))
        self.assertEqual(self.answers([1, 5, 3], 384), ([good, failed, good], record_of(1) + record_of(3) + bytes(128)))
        self.assertEqual(self.answers([1, 2], 384, room=99)[0], [failed, failed])

    def test_random_numbers(self):
        """Of each sample its own, whether it is made alone or with others; none, where nothing is random."""
        ready, alone = Ready(), Ready()
        self.answers([1, 2, 3], 384, dataset=ready)
        self.assertIsNone(ready.words)
        self.answers([1, 2, 3], 384, dataset=ready, random=True)
        self.answers([2], 128, dataset=alone, random=True)
        self.assertEqual((ready.words.shape, ready.words.dtype), ((3, 4), np.uint64))
        np.testing.assert_array_equal(alone.words, ready.words[1:2])
        self.assertEqual(len({*ready.words.reshape(-1).tolist()}), 12)


class LoaderTest(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.work / "a.parquet"
        pq.write_table(table(), cls.file, row_group_size=64)

    columns = {"dense": f.Stack(DENSE, f.Fill(0), f.Clamp(min=0), f.Log1p()), "sparse": f.Stack(["C1", f.Column("C2", f.Fill(-1))], f.Vocabulary(
        {"C1": ["", "nothing"], "C2": [3, -1, 4]}), f.Hash(1000)), "clicks": f.Column("clicks", f.First(5), f.Hash(1000)), "label": "label"}

    def want(self):
        rows = table().to_pylist()
        known = {name: {value: at + 1 for at, value in enumerate(values)} for name, values in (("C1", ["", "nothing"]), ("C2", [3, -1, 4]))}
        return {"dense": np.log1p([[max(0, row[name] or 0) for name in DENSE] for row in rows]).astype("float32"),
                "sparse": [[bucket(known["C1"].get(row["C1"], 0), 1000), bucket(known["C2"].get(-1 if row["C2"] is None else row["C2"], 0), 1000)] for row in rows],
                "clicks": [[bucket(value, 1000) for value in (row["clicks"] or [])[:5]] for row in rows], "label": [row["label"] for row in rows]}

    def check(self, dataset, **options):
        want, ids = self.want(), []
        for batch in self.open(dataset, as_="numpy", copy=True, batch_size=50, **options):
            for at, index in enumerate(dataset.dataset.rows_of(batch.ids)):
                for name, values in want.items():
                    np.testing.assert_array_equal(batch[name][at], values[index])
            ids += list(batch.ids)
        self.assertEqual(sorted(ids), list(range(len(dataset))))
        return ids

    def test_batches(self):
        dataset = oa.from_parquet(self.file, self.columns, keep=0.2)
        self.assertEqual(self.check(dataset, shuffle=False), list(range(COUNT)))
        self.assertNotEqual(self.check(dataset, shuffle=True), list(range(COUNT)))
        for row in (0, -1, 100):
            np.testing.assert_array_equal(dataset.dataset[row]["dense"], self.want()["dense"][row])
        self.assertEqual([field.dtype for field in dataset.dataset[0].values()], ["float32", "int64", "int64", "int64"])

    def test_blocks_and_where(self):
        dataset = oa.from_parquet(self.file, self.columns, where=[("C2", ">", 10)], cache=60000, keep=0.2)
        self.assertLess(dataset.dataset.blocks.window, len(dataset.dataset.blocks.starts))
        self.assertEqual(len(dataset), sum((row["C2"] or 0) > 10 for row in table().to_pylist()))
        self.assertNotEqual(self.check(dataset, shuffle="blocks", seed=2), list(range(len(dataset))))

    def test_columns_that_are_not_in_the_files(self):
        class Shops(tables.Files):
            schema = table().schema.append(pa.field("day", pa.int32())).append(pa.field("shop", pa.string()))

            def part(self, at, file, opened):
                return tables.Part({name: name for name in opened.schema_arrow.names}, {"day": pa.scalar([3, None][at], pa.int32()), "shop": pa.scalar("xy"[at])})

        rows = tables.rows_of([str(self.file)] * 2, {"both": f.Stack(["label", "day"], f.Fill(7)), "shop": f.Column("shop", f.Hash(9))}, 1 << 20, table=Shops())
        labels = table().column("label").to_pylist()
        for row, day, shop in ((5, 3, "x"), (COUNT + 5, 7, "y")):
            self.assertEqual({name: value.tolist() for name, value in rows[row].items()}, {"both": [labels[5], day], "shop": bucket(shop, 9)})

    def test_files_whose_types_differ(self):
        files = []
        for name, values in (("whole", [1, 2]), ("half", [1.5, None])):
            files.append(self.work / f"{name}.parquet")
            pq.write_table(pa.table({"x": values}), files[-1])
        rows = oa.from_parquet(files, {"x": "x"}).dataset
        self.assertEqual([rows[0]["x"], rows[1]["x"]], [1, 2])
        with self.assertRaisesRegex(oa.errors.TransformError, "half.parquet, row group 0: field x is float32 .. and int64 .. by the first file, .*Fill"):
            rows[2]
        rows = oa.from_parquet(files, {"x": f.Column("x", f.Fill(0.))}, keep=0.2)
        batch = next(iter(self.open(rows, as_="numpy", shuffle=False)))
        self.assertEqual((batch["x"].dtype.name, batch["x"].tolist()), ("float32", [1, 2, 1.5, 0]))

    def test_categories(self):
        """Columns that their file has as dictionaries, as those of pandas."""
        words = pa.array(["a", None, "ö", "a"])
        path = self.work / "categories.parquet"
        pq.write_table(pa.table({"word": words.dictionary_encode()}), path)
        rows = oa.from_parquet(path, {"x": f.Column("word", f.Fill(""), f.Hash(100))}).dataset
        self.assertEqual([rows[at]["x"] for at in range(4)], [bucket(word or "", 100) for word in words.to_pylist()])
        rows = oa.from_parquet(path, ["word"]).dataset
        self.assertEqual([rows[at]["word"] for at in range(4)], words.to_pylist())

    def test_long_lists_that_are_chosen(self):
        """There is room for them, however few rows they are in."""
        path = self.work / "long.parquet"
        pq.write_table(pa.table({"is": [at == 9 for at in range(100)], "list": [[7] * 50_000 if at == 9 else [] for at in range(100)]}), path)
        rows = oa.from_parquet(path, {"list": f.Column("list", f.First(50_000))}, where=[("is", "=", True)]).dataset
        self.assertLess(8 * 50_000, rows.largest)
        self.assertLess(rows.largest, 9 * 50_000)

    def test_names_and_lists_of_them(self):
        dataset = oa.from_parquet(self.file, {"both": ["label", "label"], "y": "label"}, keep=0.2)
        batch = next(iter(self.open(dataset, as_="numpy", shuffle=False)))
        self.assertEqual(batch["both"].tolist(), [[y, y] for y in table().column("label").to_pylist()[:16]])
        self.assertEqual(batch["y"].dtype, np.int64)

    def test_rows_together(self):
        columns = {name: field for name, field in self.columns.items() if name != "clicks"}
        want = self.want()
        for rows, options in ((7, {}), (100, {"shuffle": True}), (10, {"cache": 3000, "shuffle": "blocks", "seed": 1}), (150, {"shuffle": False})):
            with self.subTest(rows=rows):
                cache, found = options.pop("cache", 1 << 20), []
                dataset = oa.from_parquet(self.file, columns, rows=rows, cache=cache, keep=0.2)
                self.assertEqual(len(dataset), COUNT // rows)
                self.assertEqual(dataset.dataset.blocks is not None, cache < 1 << 20)
                for batch in self.open(dataset, as_="numpy", copy=True, batch_size=2, **options):
                    there = dataset.dataset.rows_of(batch.ids).reshape(-1)
                    np.testing.assert_array_equal(batch["dense"], want["dense"][there])
                    np.testing.assert_array_equal(batch["sparse"], np.array(want["sparse"])[there])
                    self.assertEqual(batch["label"].tolist(), [want["label"][row] for row in there])
                    found += there.tolist()
                self.assertEqual(sorted(found), list(range(COUNT // rows * rows)))
        some = oa.from_parquet(self.file, columns, rows=7, where=[("C2", ">", 10)])
        self.assertEqual(np.concatenate([*some.dataset.placed()]).tolist(), oa.from_parquet(self.file, columns, where=[("C2", ">", 10)]).dataset.rows_of(
            range(some.dataset.total)).tolist())
        whole = oa.from_parquet(self.file, columns, rows=7, where=[("label", ">=", 0)])
        self.assertEqual(np.concatenate([*whole.dataset.placed()]).tolist(), [*range(COUNT)])
        chosen = [at for at, row in enumerate(table().to_pylist()) if (row["C2"] or 0) > 10]
        self.assertEqual(some.dataset.rows_of([1]).tolist(), [chosen[7:14]])
        np.testing.assert_array_equal(some.dataset[1]["dense"], want["dense"][chosen[7:14]])
        bad = oa.from_parquet(self.file, {"x": "I1"}, rows=100)
        first = next(at for at in range(COUNT) if table().column("I1")[at].as_py() is None)
        with self.assertRaisesRegex(oa.errors.TransformError, f"a.parquet, row group {first // 64}, row {first % 64}: column I1: it has no value"):
            bad.dataset[first // 100]
        for words, given, rows in (("Pad.count. in place", self.columns, 3), ("less than a sample", columns, 701), ("is for columns=", ["label"], 3),
                                   ("how many rows", columns, 0), ("how many rows", columns, 1.5)):
            with self.subTest(words), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                oa.from_parquet(self.file, given, rows=rows)

    def test_a_missing_value(self):
        rows = table().to_pylist()
        bad = [at for at, row in enumerate(rows) if row["I1"] is None]
        dataset = oa.from_parquet(self.file, {"x": "I1", "label": "label"}, keep=0.2)
        self.assertNotIn(0, bad)
        loader = self.open(dataset, as_="numpy", shuffle=False, bad="skip", bad_budget=COUNT, copy=True)
        found = [index for batch in loader for index in batch.ids]
        self.assertEqual(found, [at for at in range(COUNT) if at not in bad])
        path = self.work / "late.parquet"
        pq.write_table(pa.table({"x": [None] * 100 + [*range(100, 180)], "list": [[n] for n in range(180)]}), path)
        for rows, columns in ((1, {"x": "x", "list": f.Column("list", f.First(2))}), (10, {"x": "x", "list": f.Column("list", f.Pad(1))})):
            late = self.open(oa.from_parquet(path, columns, rows=rows, keep=0.2), as_="numpy", shuffle=False, bad="skip", bad_budget=COUNT, copy=True)
            found = [[int(value) for each in batch["list"] for value in np.reshape(each, -1)] for batch in late]
            self.assertEqual(sum(found, []), [*range(100, 180)])
        with self.assertRaisesRegex(oa.errors.TransformError, "field I1 of the sample is a NoneType.* Fill of oneaccess.features"):
            record.describe(oa.from_parquet(self.file, ["I1"]).dataset[bad[0]], False)
        with self.assertRaisesRegex(oa.errors.Error, "column I1: it has no value"):
            list(self.open(dataset, shuffle=False))

    def test_who_shares(self):
        def identity(columns, **more):
            return oa.from_parquet(self.file, columns, **more).identity(False)

        def other(top):
            return {**self.columns, "dense": f.Stack(DENSE, f.Fill(0), f.Clamp(min=0, max=top), f.Log1p())}

        def words(*values):
            return {"x": f.Column("C1", f.Vocabulary(values))}

        self.assertEqual(identity(other(5)), identity(other(5)))
        self.assertEqual(identity(words("a", "b")), identity(words("a", "b")))
        self.assertEqual(identity({"x": f.Column("label", np.sqrt)}, name="x"), identity({"x": f.Column("label", np.sqrt)}, name="x"))
        for more in ({}, {"name": "clicks"}):
            found = [identity(columns, **more) for columns in (
                other(5), other(6), {"x": "label"}, {"y": "label"}, words("a", "b"), words("b", "a"), {"x": f.Column("label", f.Hash(9))},
                {"x": f.Column("label", f.Hash(9, seed=1))}, {"x": f.Column("label", np.sqrt)}, {"x": f.Column("label", np.cbrt)},
                *({"x": f.Column("label", functools.partial(np.clip, a_min=0, a_max=top))} for top in (5, 6)),
                *({"x": f.Cross(["label"], 9, *ops)} for ops in ((), (f.Clamp(max=5),), (f.Clamp(max=6),))))]
            self.assertEqual(len(set(found)), len(found))

    def test_refused(self):
        for words, columns, more in (("no column 'nothing'", {"x": "nothing"}, {}), ("field x: column C1: it is text", {"x": "C1"}, {}),
                                     ("First.count. or Pad", {"x": "clicks"}, {}), ("not for columns=.field", {"x": "label"}, {"ragged": {"x": 3}}),
                                     ("not for columns=.field", {"x": "label"}, {"pad": {"x": oa.Pad(3)}}), ("field of a batch: what", {}, {})):
            with self.subTest(words), self.assertRaisesRegex((oa.errors.ArgumentError, oa.errors.TransformError), words):
                oa.from_parquet(self.file, columns, **more)


class MeasuredTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import pathlib
        import tempfile
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for part in range(2):
            pq.write_table(table().slice(part * 400, 400), cls.folder / f"{part}.parquet", row_group_size=64)

    def test_stats(self):
        found = oa.column_stats(self.folder, {"dense": f.Stack(DENSE, f.Clamp(0)), "clicks": "clicks"})
        for at, name in enumerate(DENSE):
            values = np.array([max(0, value) for value in table().column(name).drop_null().to_pylist()])
            got = [each[at] for each in found["dense"]]
            np.testing.assert_allclose(got, [len(values), COUNT - len(values), values.mean(), values.std(), values.min(), values.max()], rtol=1e-9)
        clicks = np.concatenate([each or [] for each in table().column("clicks").to_pylist()])
        np.testing.assert_allclose(found["clicks"], [len(clicks), 0, clicks.mean(), clicks.std(), clicks.min(), clicks.max()], rtol=1e-9)
        self.assertEqual(oa.column_stats(self.folder, ["label"], where=[("label", "==", 1)])["label"].std, 0)
        with self.assertRaisesRegex(oa.errors.TransformError, "field C1: column C1: it is text: column_values"):
            oa.column_stats(self.folder, "C1")

    def test_values(self):
        found = oa.column_values(self.folder, ["C1", "C2", "clicks"], least=5)
        for name in found:
            counts = {}
            for value in table().column(name).to_pylist():
                for each in (value or []) if name == "clicks" else [value]:
                    if each is not None:
                        counts[each] = counts.get(each, 0) + 1
            want = sorted((value for value, count in counts.items() if count >= 5), key=lambda value: (-counts[value], value))
            self.assertEqual(found[name], want)
        self.assertEqual(oa.column_values(self.folder, "C1", most=3)["C1"], oa.column_values(self.folder, "C1")["C1"][:3])
        for words, name, least in (("vocabulary is of texts", "I1", 1), ("no value that occurs 9999", "C1", 9999)):
            with self.assertRaisesRegex(oa.errors.Error, words):
                oa.column_values(self.folder, name, least=least)


if __name__ == "__main__":
    unittest.main()
