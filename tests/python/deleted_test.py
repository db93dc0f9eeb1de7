# SPDX-License-Identifier: Apache-2.0
"""Deletion vectors: what Delta Lake's own kernel and RoaringBitmap say of the same bytes, and what damaged ones do."""

import json
import pathlib
import random
import struct
import sys
import tempfile
import tracemalloc
import unittest
import urllib.parse
import uuid
import warnings
from unittest import mock

try:
    import numpy as np
    import pyarrow.compute as pc
    import pyarrow.fs
except ImportError as missing:
    print(f"deleted_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from lake_tables import DeltaCase, framed, vector, z85
from oneaccess import urls
from support import needs
from oneaccess.sources import deleted
from oneaccess.errors import DatasetError

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

COUNT = 400_000
MAGIC = struct.pack("<I", 1681511377)
SETS = [
    [], [0], [COUNT - 1], [*range(COUNT)], [*range(0, COUNT, 2)], [*range(5, 70_000)], [*range(65_530, 65_540)], [7, 65_536 * 5, 65_536 * 5 + 3],
    [*range(0, COUNT, 17)], [*range(0, 4096 * 2, 2)], [*range(0, 4097 * 2, 2)], sorted(random.Random(3).sample(range(COUNT), 30_000)),
    [*range(100, 9000), *range(140_000, 140_500, 3), *range(200_000, 300_000)],
]


class VectorTest(unittest.TestCase):
    def test_rows(self):
        for rows in SETS:
            for may_run in True, False:
                self.assertEqual(deleted.rows_in(vector(rows, may_run), COUNT, "it").tolist(), rows)
        far = [1, 5 << 32, (5 << 32) + 65_536]
        self.assertEqual(deleted.rows_in(vector(far), 1 << 40, "it").tolist(), far)

    @needs("pyroaring")
    def test_rows_that_the_library_wrote(self):
        import pyroaring
        for rows in SETS:
            bitmap = pyroaring.BitMap(rows)
            for _ in range(2):
                data = MAGIC + struct.pack("<QI", 1, 0) + bitmap.serialize()
                self.assertEqual(deleted.rows_in(data, COUNT, "it").tolist(), rows)
                bitmap.run_optimize()

    def refused(self, data, words, count=COUNT):
        with self.assertRaisesRegex(DatasetError, f"it is damaged: .*{words}"):
            deleted.rows_in(data, count, "it")

    def test_what_is_damaged_is_told(self):
        def of(head, rest=b""):
            return MAGIC + struct.pack("<QI", 1, 0) + head + rest
        self.refused(b"", "ends at byte 0")
        self.refused(b"\0" * 12, "begins with 0, not with 1681511377")
        self.refused(MAGIC + struct.pack("<Q", 1 << 63), "ends at byte 12")
        self.refused(MAGIC + struct.pack("<Q", 2) + 2 * (struct.pack("<III", 3, 12346, 0)), "bitmap 3 comes after bitmap 3")
        self.refused(vector([1]) + b"\0", "1 bytes are behind its end")
        self.refused(vector([1, COUNT]), f"row {COUNT}, of a file with {COUNT} rows")
        self.refused(vector([5 << 32]), "has row 21474836480 or a later one")
        self.refused(of(struct.pack("<I", 99)), "begins with 99")
        self.refused(of(struct.pack("<II", 12346, 65_537)), "65537 containers")
        self.refused(of(struct.pack("<II", 12346, 65_536)), "ends at byte 24")
        self.refused(of(struct.pack("<IIHHHHIIHH", 12346, 2, 1, 0, 1, 0, 0, 0, 5, 5)), "containers are not in order")
        self.refused(of(struct.pack("<IIHHIHH", 12346, 1, 0, 1, 0, 5, 5)), "numbers of a container are not in order")
        self.refused(of(struct.pack("<IIHHI", 12346, 1, 0, 4096, 0), bytes(8192)), "has 0 numbers, and 4097 by its head")
        for runs in [], [(7, 2), (9, 1)], [(7, 65_529)], [(9, 1), (7, 0)]:
            data = struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)
            self.refused(of(struct.pack("<IBHH", 12347, 1, 0, 9), data), "runs of a container are not in order")
        self.refused(of(struct.pack("<IBHHHHH", 12347, 1, 0, 9, 1, 7, 10)), "has 11 numbers, and 10 by its head")
        self.refused(vector([]) + bytes(300_000), "300012 bytes, of a file with 10 rows", count=10)

    def damage(self, draw, turns, whole, read):
        """How many of the damaged ones are rows all the same, and how many an error in words."""
        ends = {"rows": 0, "error": 0}
        for turn in range(turns):
            data = bytearray(whole[turn % len(whole)])
            for _ in range(draw.randint(1, 2)):
                how, at = draw.randrange(4), draw.randrange(len(data))
                if how == 0:
                    data[at] = draw.randrange(256)
                elif how == 1:
                    data[min(at, draw.randrange(64)) % len(data)] ^= 1 << draw.randrange(8)
                elif how == 2:
                    del data[at:at + draw.randint(1, 9)]
                    data = data or bytearray(1)
                else:
                    data[at:at] = draw.randbytes(draw.randint(1, 9))
            try:
                rows = read(bytes(data))
            except DatasetError:
                ends["error"] += 1
            else:
                ends["rows"] += 1
                self.assertTrue((np.diff(rows) > 0).all() and not (len(rows) and (rows[0] < 0 or rows[-1] >= COUNT)))
        return ends

    def test_damaged_puffin_files(self):
        """What is read of one is what was written, by its checksum."""
        rows = [*range(7, 300, 3)]
        part = framed(vector(rows))
        told = json.dumps({"blobs": [{"type": "deletion-vector-v1", "fields": [1], "offset": 4, "length": len(part), "properties": {"referenced-data-file": "a"}}]}).encode()
        with tempfile.TemporaryDirectory(prefix="access-python.") as folder:
            path = pathlib.Path(folder, "x.puffin")

            def read(data):
                path.write_bytes(data)
                found = deleted.of_puffin(str(path), {"a": COUNT}.get).get("a", np.zeros(0, np.int64))
                self.assertIn(found.tolist(), ([], rows))
                return found
            whole = b"PFA1" + part + b"PFA1" + told + len(told).to_bytes(4, "little") + bytes(4) + b"PFA1"
            self.assertEqual(read(whole).tolist(), rows)
            ends = self.damage(random.Random(5), 1000, [whole], read)
        self.assertGreater(ends["rows"], 20)
        self.assertGreater(ends["error"], 500)

    def test_any_damage_is_an_error_or_rows(self):
        """Within the memory that the rows of the file need."""
        draw = random.Random(11)
        vectors = [vector(rows[:3000], may_run) for rows in SETS for may_run in (True, False)]
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        ends = self.damage(draw, 2000, vectors, lambda data: deleted.rows_in(data, COUNT, "it"))
        self.assertGreater(ends["rows"], 20)
        self.assertGreater(ends["error"], 1000)
        self.assertLess(tracemalloc.get_traced_memory()[1], 16 * COUNT + (4 << 20))

    def test_z85(self):
        self.assertEqual(deleted.z85("HelloWorld"), bytes.fromhex("864fd26fb559f75b"))    # of its specification
        for data in b"", bytes(4), b"\xff" * 20, random.Random(2).randbytes(400):
            self.assertEqual(deleted.z85(z85(data)), data)
        for text in "1234", "12 45", "#####", "1234\xe9":
            with self.assertRaisesRegex(ValueError, "not Z85"):
                deleted.z85(text)


class DeltaTest(DeltaCase):
    def stored(self, rows, kind="u", prefix="", before=b""):
        """A deletion vector in a file of its own."""
        name, data = uuid.UUID(int=random.Random(str((rows, kind, prefix))).getrandbits(128)), vector(rows)
        path = self.folder / prefix / f"deletion_vector_{name}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\1" + before + framed(data))
        return {"storageType": kind, "pathOrInlineDv": prefix + z85(name.bytes) if kind == "u" else path.as_uri(), "offset": 1 + len(before),
                "sizeInBytes": len(data), "cardinality": len(rows)}

    def write(self, *vectors):
        """A file for each, of 40 rows; and one without."""
        self.begin(minReaderVersion=3, minWriterVersion=7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"],
                   configuration={"delta.enableDeletionVectors": "true"})
        self.adds = [self.file(f"day=2024-01-0{number + 1} a-{number}.parquet", 100 * number, 40) for number in range(len(vectors) + 1)]
        for add, each in zip(self.adds, vectors):
            add["add"]["deletionVector"] = each
        self.commit(*self.adds)

    def numbers(self, **options):
        return self.rows(oa.from_delta(self.folder, ["n"], keep=0.2, **options))["n"]

    GONE = [0, 3, *range(10, 38)], [39], [*range(16, 32)], [*range(40)]

    def write_all(self):
        first, second, third, all_ = self.GONE
        self.write(self.inline(first), self.stored(second), self.stored(third, prefix="ab", before=b"12345"), self.stored(all_, "p"))
        return [100 * number + row for number, gone in enumerate([*self.GONE, []]) for row in range(40) if row not in gone]

    def test_rows_that_are_deleted_are_not_there(self):
        wanted = self.write_all()
        self.assertEqual(self.numbers(), wanted)
        self.assertEqual(self.numbers(where=pc.field("n").isin(wanted[::3])), wanted[::3])
        self.assertEqual(self.numbers(where=[("shop", ">=", 2)]), [n for n in wanted if n >= 200])
        self.assertEqual(sorted(self.numbers(cache=200)), wanted)
        data = oa.from_delta(self.folder, ["n"], keep=0.2)
        loader = self.open(data, as_="numpy", copy=True, order="seeded", seed=3)
        found = [(n, row) for batch in loader for n, row in zip(batch["n"].tolist(), data.dataset.rows_of(batch.ids).tolist())]
        self.assertEqual(sorted(found), [(n, n // 100 * 40 + n % 100) for n in wanted])

    @needs("delta_kernel_rust_sharing_wrapper")
    def test_the_kernel_has_the_same_rows(self):
        import delta_kernel_rust_sharing_wrapper as kernel
        wanted, url = self.write_all(), f"{self.folder.as_uri()}/"
        reader = kernel.PythonInterface(url)
        read = kernel.ScanBuilder(kernel.Table(url).snapshot(reader)).build().execute(reader).read_all()
        self.assertEqual(sorted(read.column("n").to_pylist()), wanted)

    def test_more_deleted_rows_are_another_data_set(self):
        """Also where a name tells it from others; a log may say what is new before what is old."""
        self.write(self.inline([0]), self.inline([5]))
        before = oa.from_delta(self.folder, ["n"], keep=0.2)
        loader = self.open(before, as_="numpy", shuffle=False)
        next(iter(loader))
        add = {"add": {**self.adds[0]["add"], "deletionVector": self.inline([0, 1])}}
        remove = {"remove": {"path": add["add"]["path"], "deletionVector": self.adds[0]["add"]["deletionVector"], "dataChange": True}}
        self.commit(add, remove)
        after = oa.from_delta(self.folder, ["n"], keep=0.2)
        self.assertEqual((len(before), len(after)), (118, 117))
        self.assertNotEqual(before.identity(False), after.identity(False))
        named = [oa.from_delta(self.folder, ["n"], version, name="sales", keep=0.2).identity(False) for version in (1, 2)]
        self.assertNotEqual(*named)
        with self.assertRaises(oa.errors.StateError):
            self.open(after, as_="numpy", shuffle=False, state=loader.state_dict())
        self.assertEqual(self.numbers(version=1)[:2], [1, 2])
        self.assertEqual(self.numbers()[:2], [2, 3])
        self.commit({"remove": {"path": add["add"]["path"], "deletionVector": add["add"]["deletionVector"]}})
        self.assertEqual(self.numbers()[0], 100)

    def test_a_store(self):
        """Whose files pyarrow opens, by URLs."""
        wanted = self.write_all()
        with mock.patch.object(urls, "_system", lambda url: (pyarrow.fs.LocalFileSystem(), urllib.parse.unquote(url.removeprefix("s3://").partition("?")[0]))):
            rows = oa.from_delta(f"s3://{self.folder}?region=here", ["n"], where=[("n", ">", 20)]).dataset
            self.assertEqual([row["n"] for row in rows.__getitems__(range(len(rows)))], [n for n in wanted if n > 20])

    def test_what_is_damaged_is_told(self):
        good = self.stored([1, 2, 30])
        file = next(self.folder.glob("*.bin"))
        cases = [({"storageType": "x"}, "its storage type is 'x'"), ({"cardinality": 4}, "deletes 3 rows, and 4 by the log"),
                 ({"sizeInBytes": good["sizeInBytes"] + 1}, "and it would be at 1 to"), ({"sizeInBytes": 1 << 40}, "1099511627776 bytes, of a file with 40 rows"),
                 ({"sizeInBytes": good["sizeInBytes"] - 1}, "begin with another size"), ({"offset": 1 << 60}, "would be at"),
                 ({"offset": -1}, "its offset -1"), ({"sizeInBytes": "9"}, "its size is '9'"), ({"pathOrInlineDv": "ab"}, "not Z85"),
                 ({"pathOrInlineDv": None}, "is damaged"), ({"pathOrInlineDv": z85(bytes(16))}, "has deleted rows, and cannot be read"),
                 ({**self.inline([40]), "offset": None}, "has row 40, of a file with 40 rows"),
                 ({**self.inline([4]), "sizeInBytes": 9}, "bytes, and 9 by the log"), ({**self.inline([4]), "sizeInBytes": 99}, "and 99 by the log")]
        for change, words in cases:
            with self.subTest(**change):
                self.write({**good, **change})
                with self.assertRaisesRegex(DatasetError, f"deletion vector of .*{words}|{words}"):
                    oa.from_delta(self.folder, ["n"])
                self.commit(*({"remove": {"path": one["add"]["path"], **({"deletionVector": one["add"]["deletionVector"]} if at == 0 else {})}}
                              for at, one in enumerate(self.adds)))
        self.write(good)
        data = bytearray(file.read_bytes())
        data[-6] ^= 1
        file.write_bytes(data)
        with self.assertRaisesRegex(DatasetError, "its checksum is another one"):
            oa.from_delta(self.folder, ["n"])
        self.commit({"add": {**self.adds[0]["add"], "deletionVector": self.inline([1])}})
        with self.assertRaisesRegex(DatasetError, "a file is in it twice"):
            oa.from_delta(self.folder, ["n"])
        one = self.folder / "_delta_log/00000000000000000000.json"
        actions = [json.loads(line) for line in one.read_text().splitlines()]
        for log in (self.folder / "_delta_log").iterdir():
            log.unlink()
        self.last = -1
        self.commit(*actions, {"add": {**self.adds[0]["add"], "deletionVector": self.inline(range(40))}})
        with self.assertRaisesRegex(DatasetError, "all 40 rows of .* are deleted"):
            oa.from_delta(self.folder, ["n"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
