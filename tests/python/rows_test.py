# SPDX-License-Identifier: Apache-2.0
"""Data sets of rows: .npy files, tokens and fixed-size records, against NumPy on the very same files."""

import os
import struct
import unittest

import numpy
import oneaccess as oa
import support


def read(dataset, socket, **options):
    """Each sample once, in order."""
    options = {"order": "sequential", "epochs": 1, "as_": "numpy", **options}
    with oa.Loader(dataset, batch_size=7, socket=socket, **options) as loader:
        return [batch.copy() if isinstance(batch, dict) else [array.copy() for array in batch] for batch in loader]


def column(batches, name):
    return numpy.concatenate([batch[name] for batch in batches])


class RowsCase(support.DaemonCase):
    def refused(self, dataset, *words, **options):
        with self.assertRaises(oa.errors.DatasetError) as caught:
            oa.Loader(dataset, batch_size=7, socket=self.socket, **options)
        for word in words:
            self.assertIn(word, str(caught.exception))


class Arrays(RowsCase):
    def test_dtypes_and_shapes(self):
        random = numpy.random.default_rng(1)
        for number, (dtype, shape) in enumerate([("u1", (50, 3, 5)), ("?", (20, 4)), ("i1", (20, 9)), ("<u2", (30, 7)),
                                                 ("<i2", (30,)), ("<u4", (9, 2, 3, 4)), ("<i4", (33, 65)),
                                                 ("<i8", (12, 1)), ("<f2", (40, 6)), ("<f4", (100, 17, 2)), ("<f8", (30, 5)), ("<u8", (30, 5))]):
            path = self.work / f"array{number}.npy"
            array = random.integers(0, 256, (*shape, numpy.dtype(dtype).itemsize), "u1")
            array = (array & 1).view("?")[..., 0] if dtype == "?" else array.view(dtype)[..., 0]
            numpy.save(path, array)
            found = numpy.concatenate([batch[0] for batch in read(path, self.socket)])
            self.assertEqual(found.dtype, numpy.dtype({"?": "u1", "u1": "u1", "<f2": "f2", "<f4": "f4", "<f8": "f8", "<u8": "u8"}.get(dtype, "i8")))
            numpy.testing.assert_array_equal(found, array)

    def test_any_order_once(self):
        path = self.work / "order.npy"
        numpy.save(path, numpy.arange(1000, dtype="i4").reshape(500, 2))
        found = numpy.concatenate([batch[0] for batch in read(path, self.socket, order="any")])
        self.assertEqual(sorted(found[:, 0]), list(range(0, 1000, 2)))

    def test_refused(self):
        def path(name, array):
            numpy.save(self.work / name, array)
            return self.work / name
        self.refused(path("c8.npy", numpy.zeros(3, "c8")), "of type <c8")
        self.refused(path("fortran.npy", numpy.asfortranarray(numpy.zeros((3, 4), "f4"))), "Fortran's order")
        cut = path("cut.npy", numpy.zeros((3, 4), "f4"))
        os.truncate(cut, cut.stat().st_size - 1)
        self.refused(cut, "cut off")
        with self.assertRaisesRegex(oa.Error, "leave out the pipeline"):
            oa.Loader(path("good.npy", numpy.zeros((3, 4), "f4")), oa.imagenet_eval(64), 2, socket=self.socket)
        with self.assertRaisesRegex(oa.Error, "leave out the pipeline, and say the batch's size by batch_size=2"):
            oa.Loader(path("good.npy", numpy.zeros((3, 4), "f4")), 2, socket=self.socket)

    def test_changed(self):
        path = self.work / "changed.npy"
        numpy.save(path, numpy.zeros((100, 4), "f4"))
        with oa.Loader(path, batch_size=1, socket=self.socket, order="sequential", as_="numpy") as loader:
            batches = iter(loader)
            next(batches)
            os.utime(path, (1, 1))
            with self.assertRaisesRegex(oa.Error, "changed"):
                for _ in range(200):
                    next(batches)


def windows_of(array, length, stride=1):
    count = max(0, (len(array) - length) // stride + 1)
    return numpy.stack([array[at * stride:at * stride + length] for at in range(count)]) if count else array[:0].reshape(0, length, *array.shape[1:])


class Windows(RowsCase):
    def array(self, name, dtype="f4", shape=(200, 3)):
        array = numpy.random.default_rng(len(name)).integers(0, 250, shape).astype(dtype)
        (self.work / name).parent.mkdir(exist_ok=True)
        numpy.save(self.work / name, array)
        return self.work / name, array

    def check(self, windows, wanted, **options):
        found = column(read(windows, self.socket, **options), "window")
        self.assertEqual(found.shape, wanted.shape)
        numpy.testing.assert_array_equal(found, wanted)

    def test_one_series(self):
        for number, (dtype, shape, length, stride) in enumerate([
                ("f4", (200, 3), 20, 1), ("f4", (200, 3), 20, 7), ("<f8", (100,), 99, 1), ("<i2", (100, 2), 10, 30), ("?", (50, 2), 50, 1), ("<u8", (40, 2, 3, 2), 5, 5)]):
            path, array = self.array(f"one{number}.npy", dtype, shape)
            self.check(oa.windows(path, length, stride), windows_of(array, length, stride))
            with oa.Loader(oa.windows(path, length, stride), batch_size=4, socket=self.socket, epochs=1, as_="numpy") as loader:
                seen = {index: window.copy() for batch in loader for index, window in zip(batch.ids, batch["window"], strict=True)}
            numpy.testing.assert_array_equal(numpy.stack([seen[index] for index in sorted(seen)]), windows_of(array, length, stride))

    def test_by_source(self):
        path, array = self.array("source.npy")
        self.check(path, windows_of(array, 8, 2), source={"window": 8, "stride": 2})
        self.check(f"{path}?window=8", windows_of(array, 8))

    def test_parts(self):
        path, array = self.array("parts.npy")
        with oa.Loader(oa.windows(path, parts={"past": 12, "future": 5}), batch_size=7, socket=self.socket, order="sequential", epochs=1, as_="numpy") as loader:
            for batch in loader:
                self.assertEqual(list(batch), ["past", "future"])
                self.assertIs(batch["past"].base, batch["future"].base)         # views
                wanted = windows_of(array, 17)[list(batch.ids)]
                numpy.testing.assert_array_equal(batch["past"], wanted[:, :12])
                numpy.testing.assert_array_equal(batch["future"], wanted[:, 12:])

    def test_several_files(self):
        """No window is of two files, and a short one has none."""
        made = [self.array(f"several/{name}.npy", shape=(rows, 3)) for name, rows in (("a", 30), ("b", 9), ("c", 10), ("d", 57))]
        for stride in 1, 4:
            wanted = numpy.concatenate([windows_of(array, 10, stride) for _, array in made])
            for path in ([path for path, _ in made], self.work / "several", f"{self.work}/several/{{a,b,c,d}}.npy"):
                self.check(oa.windows(path, 10, stride), wanted)
        self.check(oa.windows([made[3][0]], 10), windows_of(made[3][1], 10))
        with self.assertRaisesRegex(oa.Error, "in braces"):
            oa.windows([made[0][0], "/nowhere/a,b.npy"], 10)
        self.refused(oa.windows(self.work / "several", 58), "none of its series has the 58 rows")
        self.array("several/e.npy", shape=(30, 4))
        self.refused(oa.windows(self.work / "several", 10), "another type or shape", '"e.npy"', '"a.npy"')
        numpy.save(self.work / "several/e.npy", numpy.zeros((30, 3), "f8"))
        self.refused(oa.windows(self.work / "several", 10), "another type or shape")
        (self.work / "several/e.npy").write_bytes(b"no array")
        self.refused(oa.windows(self.work / "several", 10), '"e.npy": it is no .npy')

    def test_a_file_of_several_changes(self):
        made = [self.array(f"changes/{name}.npy") for name in "ab"]
        with oa.Loader(oa.windows(self.work / "changes", 10), batch_size=1, socket=self.socket, order="sequential", as_="numpy") as loader:
            batches = iter(loader)
            next(batches)
            os.utime(made[1][0], (1, 1))
            with self.assertRaisesRegex(oa.Error, "changed"):
                for _ in range(400):
                    next(batches)

    def test_starts(self):
        path, array = self.array("starts.npy", shape=(10000, 2))
        edges = numpy.cumsum([0, *numpy.random.default_rng(1).integers(0, 40, 9000)])
        edges = edges[edges < 10000]
        for dtype in "i8", "u4":
            numpy.save(self.work / "where.npy", edges.astype(dtype))
            wanted = numpy.concatenate([windows_of(part, 12, 3) for part in numpy.split(array, edges[1:])])
            self.check(oa.windows(path, 12, 3, starts="where.npy"), wanted)
        self.check(oa.windows(path, 12, 3, starts=self.work / "where.npy"), wanted)
        for numbers, words in (([0, 5, 4], "number 2 of its starts is 4"), ([1, 2], "number 0 of its starts is 1"), ([0, 10001], "it has 10000 rows"),
                               ([0, -1], "number 1 of its starts is -1"), ([], "no array of one dimension"), ([0.0], "no array of one dimension of whole numbers"), ([[0]], "one dimension")):
            numpy.save(self.work / "where.npy", numpy.array(numbers, None if numbers else "i8"))
            self.refused(oa.windows(path, 12, starts="where.npy"), words)
        self.refused(oa.windows(path, 12, starts="nowhere.npy"), '"nowhere.npy": No such file')
        self.refused(str(path), "no path", source={"window": 2, "starts": "../x.npy"})
        with self.assertRaisesRegex(oa.Error, "is to lie beside"):
            oa.windows(path, 12, starts="/elsewhere/where.npy")

    def test_refused(self):
        path, _ = self.array("refused.npy")
        self.refused(oa.windows(path, 201), "none of its series has the 201 rows of a window")
        self.refused(path, "no numbers of rows", source={"window": "x"})
        self.refused(path, "no numbers of rows", source={"window": 5, "stride": 0})
        self.refused(path, "stride and starts are of windows", source={"stride": 2})
        self.refused(path, "leave window or seq_len out", source={"window": 5, "seq_len": 2})
        with self.assertRaisesRegex(oa.Error, "up to 4: save it with fewer"):
            oa.Loader(oa.windows(self.array("five.npy", shape=(20, 1, 2, 1, 2))[0], 5), socket=self.socket)
        (self.work / "plain.bin").write_bytes(bytes(100))
        self.refused(str(self.work / "plain.bin"), "windows are of rows of a .npy", source={"window": 5, "record": 10})
        for arguments, words in ((((path, 0), {}), "length is 0"), (((path, 5, 0), {}), "stride is 0"), (((path, 5), {"parts": {"a": 3}}), "3 rows, and a window has 5"),
                                 (((path,), {"parts": {"a": 0}}), "'a'"), (((path, 5), {"group": "x"}), "about Parquet files"), (((path, 5), {"workers": 2}), "about Parquet files"),
                                 (((path,), {}), "length is None"), (((path, 5), {"strid": 2}), "windows.. has no argument strid"),
                                 (((path,), {"parts": ["a"]}), "field of a batch: rows"), (((path,), {"parts": {"": 2}}), "field of a batch: rows"),
                                 (((None, 5), {}), "path is None"), (((b"a.npy", 5), {}), "path is b'a.npy'"), ((("a.parquet", 5), {}), "columns=, too")):
            with self.assertRaisesRegex(oa.Error, words):
                oa.windows(*arguments[0], **arguments[1])


class Tokens(RowsCase):
    def check(self, dataset, tokens, seq_len):
        batches = read(dataset, self.socket)
        inputs, labels = column(batches, "input_ids"), column(batches, "labels")
        count = (len(tokens) - 1) // seq_len
        tokens = tokens.astype("i8")
        self.assertEqual(inputs.dtype, numpy.int64)
        numpy.testing.assert_array_equal(inputs, tokens[:count * seq_len].reshape(count, seq_len))
        numpy.testing.assert_array_equal(labels, tokens[1:count * seq_len + 1].reshape(count, seq_len))

    def test_bin(self):
        path = self.work / "train.bin"
        for dtype, most in (("uint16", 65536), ("uint32", 1 << 32), ("int32", 1 << 31)):
            for length in (2049, 10000, 4097):
                tokens = numpy.random.default_rng(2).integers(0, most, length).astype(dtype)
                tokens.tofile(path)
                self.check(oa.tokens(path, 64, dtype), tokens, 64)

    def test_by_source(self):
        path = self.work / "by-source.bin"
        tokens = numpy.arange(1000, dtype="u2")
        tokens.tofile(path)
        batches = read(str(path), self.socket, source={"seq_len": 10, "dtype": "uint16"})
        numpy.testing.assert_array_equal(column(batches, "labels")[5], range(51, 61))

    def test_npy(self):
        path = self.work / "tokens.npy"
        tokens = numpy.arange(5000, dtype="u2")[::-1].copy()
        numpy.save(path, tokens)
        self.check(oa.tokens(path, 100), tokens, 100)

    def megatron(self, name, dtype, code, sizes, tokens):
        tokens.astype(dtype).tofile(self.work / f"{name}.bin")
        starts = numpy.cumsum([0, *sizes[:-1]]) * numpy.dtype(dtype).itemsize
        with open(self.work / f"{name}.idx", "wb") as file:
            file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sizes), len(sizes) + 1))
            file.write(numpy.array(sizes, "i4").tobytes() + starts.astype("i8").tobytes()
                       + numpy.arange(len(sizes) + 1, dtype="i8").tobytes())
        return self.work / f"{name}.bin"

    def test_megatron(self):
        tokens = numpy.random.default_rng(3).integers(0, 50000, 3000)
        path = self.megatron("u2", "u2", 8, [1000, 1, 1999], tokens)
        self.check(oa.tokens(path, 33), tokens, 33)
        path = self.megatron("i4", "i4", 4, [1000, 1, 1999], tokens)
        self.check(oa.tokens(path, 33), tokens, 33)
        self.refused(oa.tokens(path, 33, "uint16"), "not of dtype uint16")
        os.truncate(path, path.stat().st_size - 4)
        self.refused(oa.tokens(path, 33), "do not belong together")
        os.truncate(self.work / "i4.idx", 60)
        self.refused(oa.tokens(path, 33), "cut off or damaged")

    def test_files_of_megatron(self):
        """What Megatron's own builder wrote, and what its IndexedDataset reads of it and of ours."""
        try:
            import torch
            from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
        except ImportError:
            self.skipTest("megatron-core is not installed: not tested: its own files")
        documents = [numpy.arange(start, start + 1 + start % 90, dtype="i8") * 7 % 60000 for start in range(200)]
        for dtype in (numpy.uint16, numpy.int32):
            path = self.work / f"megatron-{numpy.dtype(dtype)}.bin"
            builder = IndexedDatasetBuilder(str(path), dtype=dtype)
            for document in documents:
                builder.add_document(torch.from_numpy(document), [len(document)])
            builder.finalize(str(path.with_suffix(".idx")))
            theirs = IndexedDataset(str(path.with_suffix("")))
            self.assertEqual(len(theirs), len(documents))
            self.check(oa.tokens(path, 33), numpy.concatenate([theirs[number] for number in range(len(theirs))]), 33)
            batches = read(oa.tokens(path, 64, pack=True, pad=9), self.socket)
            names = ("input_ids", "labels", "position_ids", "doc_ids")
            self.assert_packed([theirs[number].astype("i8") for number in range(len(theirs))], {name: column(batches, name) for name in names}, 64)
        ours = IndexedDataset(str(self.megatron("of-ours", "u2", 8, [len(document) for document in documents], numpy.concatenate(documents)).with_suffix("")))
        for document, one in zip(documents, (ours[number] for number in range(len(documents))), strict=True):
            numpy.testing.assert_array_equal(document, one)

    def packed(self, name, sizes, length, dtype="u2", code=8, **options):
        """Each document's tokens say which it is; and all batches of one epoch, column by column."""
        tokens = numpy.concatenate([(numpy.arange(size) * 31 + number * 7) % 60000 for number, size in enumerate(sizes)])
        path = self.megatron(name, dtype, code, sizes, tokens)
        batches = read(oa.tokens(path, length, pack=True, pad=9), self.socket, **options)
        names = ("input_ids", "labels", "position_ids", "doc_ids")
        self.assertEqual(tuple(batches[0]), names)
        return numpy.split(tokens.astype("i8"), numpy.cumsum(sizes)[:-1]), {name: column(batches, name) for name in names}, batches

    def assert_packed(self, documents, found, length):
        """Of each document each token is there once, with the next one as label, and all else is padding."""
        seen = [numpy.zeros(len(document), int) for document in documents]
        for ids, labels, places, numbers in zip(*(found[name] for name in ("input_ids", "labels", "position_ids", "doc_ids"))):
            self.assertEqual(len(ids), length)
            real = int((numbers >= 0).sum())
            self.assertTrue((numbers[real:] == -1).all() and (ids[real:] == 9).all() and (labels[real:] == -100).all())
            starts = [*numpy.flatnonzero(places[:real] == 0), real]
            self.assertEqual(len(set(numbers[:real].tolist())), len(starts) - 1)    # no document twice
            for begin, end in zip(starts, starts[1:]):
                document, count = documents[numbers[begin]], end - begin
                self.assertEqual(set(numbers[begin:end].tolist()), {numbers[begin]})
                numpy.testing.assert_array_equal(places[begin:end], numpy.arange(count))
                at = 0 if seen[numbers[begin]][0] == 0 and count < length and len(document) < length else None
                for at in range(0, len(document), length) if at is None else [at]:
                    if numpy.array_equal(document[at:at + length], ids[begin:end]):
                        break
                else:
                    self.fail(f"document {numbers[begin]} has no such part")
                seen[numbers[begin]][at:at + count] += 1
                wanted = numpy.append(document, -100)[at + 1:at + 1 + count]
                numpy.testing.assert_array_equal(labels[begin:end], wanted)
        for document in seen:
            numpy.testing.assert_array_equal(document, 1)

    def test_packed(self):
        random = numpy.random.default_rng(5)
        for number, (dtype, code, length) in enumerate((("u2", 8, 64), ("i4", 4, 100), ("i8", 5, 7))):
            sizes = [int(size) for size in random.integers(0, 3 * length, 300)]     # not as long as numbers repeat
            documents, found, _ = self.packed(f"packed{number}", sizes, length, dtype, code)
            self.assert_packed(documents, found, length)
            documents, found, _ = self.packed(f"packed{number}", sizes, length, dtype, code, order="carousel")
            self.assert_packed(documents, found, length)

    def test_packed_of_several_groups(self):
        sizes = [int(size) for size in numpy.random.default_rng(6).integers(1, 40, 10000)]
        _, found, batches = self.packed("groups", sizes, 64)
        real = found["doc_ids"] >= 0
        self.assertEqual(int(real.sum()), sum(sizes))
        self.assertLess(1 - real.mean(), 0.002)
        numpy.testing.assert_array_equal(numpy.bincount(found["doc_ids"][real]), sizes)
        flat = oa.varlen(batches[0])
        self.assertEqual(flat["cu_seqlens"].dtype, numpy.int32)
        self.assertEqual(int(flat["cu_seqlens"][-1]), len(flat["input_ids"]))
        parts = numpy.diff(flat["cu_seqlens"])
        self.assertEqual(int(parts.max()), flat["max_seqlen"])
        numpy.testing.assert_array_equal(parts, [sizes[number] for number in flat["doc_ids"][flat["cu_seqlens"][:-1]]])

    def test_packed_is_the_same_for_all(self):
        sizes = [int(size) for size in numpy.random.default_rng(7).integers(1, 200, 200)]
        _, found, _ = self.packed("same", sizes, 64)
        path = self.work / "same.bin"
        dealt = [row.tobytes() for rank in range(2)
                 for batch in read(oa.tokens(path, 64, pack=True, pad=9), self.socket, rank=rank, world_size=2)
                 for row in batch["input_ids"]]
        self.assertEqual(sorted(dealt), sorted(row.tobytes() for row in found["input_ids"]))
        with oa.Loader(oa.tokens(path, 64, pack=True, pad=9), batch_size=4, socket=self.socket, as_="numpy",
                       order="sequential") as loader:
            batches = iter(loader)
            next(batches)
            os.utime(self.work / "same.idx", (1, 1))
            with self.assertRaisesRegex(oa.Error, "changed"):
                for _ in range(200):
                    next(batches)
                    batches = iter(loader)

    def counted(self, name, sizes, dtype="u2", code=8):
        """Documents, of whose tokens some count."""
        tokens = numpy.concatenate([(numpy.arange(size) * 31 + number * 7) % 60000 for number, size in enumerate(sizes)])
        counts = numpy.random.default_rng(8).integers(0, 3, len(tokens)).astype("u1")       # all but 0 mean yes
        path = self.megatron(name, dtype, code, sizes, tokens)
        counts.tofile(path.with_suffix(".loss"))
        return path, tokens.astype("i8"), counts > 0

    def test_windows_of_tokens_that_count(self):
        for dtype, code in (("u2", 8), ("i4", 4), ("i8", 5)):
            path, tokens, counts = self.counted(f"counted-{dtype}", [700, 1, 2000], dtype, code)
            for length in (33, 1):
                batches = read(oa.tokens(path, length, loss=True), self.socket)
                self.assertEqual(tuple(batches[0]), ("input_ids", "labels"))
                count = (len(tokens) - 1) // length * length
                numpy.testing.assert_array_equal(column(batches, "input_ids").ravel(), tokens[:count])
                numpy.testing.assert_array_equal(column(batches, "labels").ravel(), numpy.where(counts, tokens, -100)[1:count + 1])
            self.check(oa.tokens(path, 33), tokens, 33)         # as if there were none

    def test_plain_tokens_that_count(self):
        path = self.work / "plain.bin"
        numpy.arange(100, dtype="u4").tofile(path)
        (self.work / "plain.loss").write_bytes(bytes(number % 2 for number in range(100)))
        batches = read(oa.tokens(path, 9, "uint32", loss=True), self.socket)
        numpy.testing.assert_array_equal(column(batches, "labels").ravel(), [number if number % 2 else -100 for number in range(1, 100)])

    def test_packed_tokens_that_count(self):
        for dtype, code, length in (("u2", 8, 64), ("i4", 4, 7)):
            sizes = [int(size) for size in numpy.random.default_rng(9).integers(0, 3 * length, 300)]
            path, tokens, counts = self.counted(f"packed-{dtype}", sizes, dtype, code)
            all_, some = ({name: column(batches, name) for name in batches[0]}
                          for batches in (read(oa.tokens(path, length, pack=True, loss=loss), self.socket) for loss in (False, True)))
            for name in ("input_ids", "position_ids", "doc_ids"):
                numpy.testing.assert_array_equal(some[name], all_[name])
            starts = numpy.cumsum([0, *sizes])
            seen = 0
            for ids, labels, wanted, numbers in zip(*(found.ravel() for found in (all_["input_ids"], some["labels"], all_["labels"], all_["doc_ids"]))):
                if numbers < 0 or wanted == -100:
                    self.assertEqual(labels, -100)
                    continue
                place = starts[numbers] + int(numpy.flatnonzero(tokens[starts[numbers]:starts[numbers + 1]] == ids)[0])
                self.assertEqual(labels, wanted if counts[place + 1] else -100)
                seen += labels != -100
            inside = numpy.delete(counts, starts[:-1][numpy.array(sizes) > 0])          # all but each document's first
            self.assertEqual(seen, int(inside.sum()))

    def test_tokens_that_count_go_on(self):
        """Exactly once, over a saved state and two ranks; and a .loss that is written anew is another data set."""
        path, _, _ = self.counted("resumed", [5] * 400)
        whole = column(read(oa.tokens(path, 10, pack=True, loss=True), self.socket), "labels")
        with oa.Loader(oa.tokens(path, 10, pack=True, loss=True), batch_size=7, socket=self.socket, order="carousel", epochs=1, as_="numpy") as loader:
            batches = iter(loader)
            parts = [next(batches)["labels"].copy() for _ in range(5)]
            state = loader.state_dict()
        with oa.Loader(oa.tokens(path, 10, pack=True, loss=True), batch_size=7, socket=self.socket, order="carousel", epochs=1, as_="numpy") as loader:
            loader.load_state_dict(state)
            parts += [batch["labels"].copy() for batch in loader]
        dealt = [batch["labels"].copy() for rank in range(2)
                 for batch in read(oa.tokens(path, 10, pack=True, loss=True), self.socket, rank=rank, world_size=2)]
        for rows in (parts, dealt):
            self.assertEqual(sorted(map(bytes, numpy.concatenate(rows))), sorted(map(bytes, whole)))
        with oa.Loader(oa.tokens(path, 10, pack=True, loss=True), batch_size=4, socket=self.socket, as_="numpy") as loader:
            batches = iter(loader)
            next(batches)
            os.utime(path.with_suffix(".loss"), (1, 1))
            with self.assertRaisesRegex(oa.Error, "changed"):
                for _ in range(200):
                    next(batches)
                    batches = iter(loader)

    def test_loss_refused(self):
        path, tokens, _ = self.counted("bad", [50, 50])
        loss = path.with_suffix(".loss")
        for size in (99, 101, 0):
            os.truncate(loss, size)
            self.refused(oa.tokens(path, 9, loss=True), "its .loss is no file of 100 bytes")
            self.refused(oa.tokens(path, 9, pack=True, loss=True), "its .loss is no file of 100 bytes")
        loss.unlink()
        self.refused(oa.tokens(path, 9, loss=True), "there is no .loss beside it")
        loss.mkdir()
        self.refused(oa.tokens(path, 9, loss=True), ".loss")
        self.refused(path, "loss=2: it is 1", source={"seq_len": 9, "loss": 2})
        self.refused(path, "loss is of tokens", source={"loss": 1})
        numpy.save(self.work / "array.npy", tokens)
        self.refused(oa.tokens(self.work / "array.npy", 9, loss=True), "loss is of a .bin")

    def test_packed_refused(self):
        sizes, path = [5, 6, 7], self.work / "odd.bin"
        self.megatron("odd", "u2", 8, sizes, numpy.arange(18))
        idx = bytearray((self.work / "odd.idx").read_bytes())
        for at, value in ((34, 4), (34 + 12 + 8, 8), (34 + 12, 2)):     # sizes, starts
            (self.work / "odd.idx").write_bytes(idx[:at] + bytes([value]) + idx[at + 1:])
            self.refused(oa.tokens(path, 4, pack=True), "does not say where each document lies")
        (self.work / "odd.idx").unlink()
        self.refused(oa.tokens(path, 4, "uint16", pack=True), "and there is none")
        self.refused(path, "pack=2", source={"seq_len": 4, "dtype": "uint16", "pack": 2})
        self.refused(path, "pad=x is no token", source={"seq_len": 4, "dtype": "uint16", "pack": 1, "pad": "x"})
        self.refused(path, "give pack=1, or leave pad out", source={"seq_len": 4, "dtype": "uint16", "pad": 3})
        for pad in (-1, "9", 1.5):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "a token is a whole number from 0"):
                oa.tokens(path, 4, pack=True, pad=pad)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "give pack=True, or leave pad out"):
            oa.tokens(path, 4, "uint16", pad=0)
        self.assertEqual(oa.tokens(path, 4, pack=True, pad=numpy.int32(9)).options["pad"], 9)

    def test_refused(self):
        path = self.work / "refused.bin"
        numpy.arange(64, dtype="u2").tofile(path)
        self.refused(path, "seq_len=", "oneaccess.tokens()", source={"x": 1})
        self.refused(oa.tokens(path, 16), "dtype=uint16")
        self.refused(oa.tokens(path, 64, "uint16"), "64 tokens", "takes 65")
        self.refused(oa.tokens(path, 16, "float32"), "whole numbers")
        self.refused(oa.tokens(path, 16, "words"), "not of dtype words")
        os.truncate(path, 127)
        self.refused(oa.tokens(path, 16, "uint16"), "no whole number of tokens")
        with self.assertRaises(oa.errors.ArgumentError):
            oa.tokens(path, 0)

    def test_two_windows_at_once(self):
        """Of one file, with other options, two data sets."""
        path = self.work / "two.bin"
        numpy.arange(1001, dtype="u2").tofile(path)
        with oa.Loader(oa.tokens(path, 10, "uint16"), batch_size=4, socket=self.socket, as_="numpy") as ten, \
                oa.Loader(oa.tokens(path, 20, "uint16"), batch_size=4, socket=self.socket, as_="numpy") as twenty:
            self.assertEqual(len(ten.dataset), 100)
            self.assertEqual(len(twenty.dataset), 50)
            self.assertEqual(next(iter(ten))["input_ids"].shape, (4, 10))
            self.assertEqual(next(iter(twenty))["input_ids"].shape, (4, 20))


class Records(RowsCase):
    def test_records(self):
        path = self.work / "data_batch_1.bin"
        records = numpy.random.default_rng(4).integers(0, 256, (100, 3073), "u1")
        records.tofile(path)
        found = numpy.concatenate([batch[0] for batch in read(str(path), self.socket, source={"record": 3073})])
        numpy.testing.assert_array_equal(found, records)
        self.refused(str(path), "no whole number of records", source={"record": 3072})
        self.refused(str(path), "record=x is no number of bytes", source={"record": "x"})

    def test_options_behind_the_path(self):
        """As accessd and the tools take them."""
        path = self.work / "behind?.bin"
        records = numpy.random.default_rng(5).integers(0, 256, (100, 64), "u1")
        records.tofile(path)
        found = numpy.concatenate([batch[0] for batch in read(f"{path}?record=64", self.socket)])
        numpy.testing.assert_array_equal(found, records)
        with self.assertRaisesRegex(oa.Error, "leave out the pipeline"):
            oa.Loader(f"{path}?record=64", oa.imagenet_eval(64), 2, socket=self.socket)
        tokens = records.view("<u2").ravel()
        for dataset, options in ((f"{path}?seq_len=8,dtype=uint16", {}), (f"{path}?seq_len=8", {"source": {"dtype": "uint16"}})):
            batches = read(dataset, self.socket, **options)
            numpy.testing.assert_array_equal(column(batches, "input_ids").ravel(), tokens[:(len(tokens) - 1) // 8 * 8])
        self.refused(f"{path}?record=x", "record=x is no number of bytes")


del RowsCase  # has no test of its own

if __name__ == "__main__":
    unittest.main(verbosity=2)
