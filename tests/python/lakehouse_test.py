# SPDX-License-Identifier: Apache-2.0
"""Tables of Delta Lake, Iceberg and Lance. Delta's log is written here by hand, and where a table's own package is installed, by that."""

import importlib.util
import json
import shutil
import sys
import unittest
import warnings
from unittest import mock

try:
    import numpy as np
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    print(f"lakehouse_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from lake_tables import SCHEMA, DeltaCase, LakehouseCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

def needs(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"no package {name}")


class DeltaTest(DeltaCase):
    def checkpoint(self, *actions, parts=1):
        """Of the last version; its commits go."""
        types = pyarrow.schema([
            ("protocol", pyarrow.struct([("minReaderVersion", pyarrow.int32())])),
            ("metaData", pyarrow.struct([("schemaString", pyarrow.string()), ("partitionColumns", pyarrow.list_(pyarrow.string())),
                                         ("configuration", pyarrow.map_(pyarrow.string(), pyarrow.string()))])),
            ("add", pyarrow.struct([("path", pyarrow.string()), ("partitionValues", pyarrow.map_(pyarrow.string(), pyarrow.string()))])),
            ("remove", pyarrow.struct([("path", pyarrow.string())]))])
        actions = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"schemaString": json.dumps(SCHEMA), "partitionColumns": ["day", "shop"], "configuration": []}},
                   *({"add": {"path": one["add"]["path"], "partitionValues": list(one["add"]["partitionValues"].items())}} for one in actions)]
        for part in range(parts):
            name = f"{self.last:020}.checkpoint" + (f".{part + 1:010}.{parts:010}" if parts > 1 else "") + ".parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(actions[part::parts], types), self.folder / "_delta_log" / name)
        for version in range(self.last + 1):
            (self.folder / f"_delta_log/{version:020}.json").unlink(missing_ok=True)

    def write(self):
        """Three versions: the file a; a, b and c; c and d."""
        self.begin()
        self.adds = [self.file(f"day=2024-01-0{number} {letter}-{number}.parquet", 100 * number, 20 + number) for number, letter in enumerate("abcd")]
        self.commit(self.adds[0])
        self.commit(*self.adds[1:3])
        self.commit(*({"remove": {"path": one["add"]["path"], "dataChange": True}} for one in self.adds[:2]), self.adds[3])

    def check(self, numbers, **options):
        columns = ["n", "shop", "day", "x"]
        found = self.rows(oa.from_delta(self.folder, columns, keep=0.2, **options))
        wanted = [n for number in numbers for n in range(100 * number, 100 * number + 20 + number)]
        self.assertEqual(list(found), columns)
        self.assertEqual(found["n"], wanted)
        self.assertEqual(found["x"], [n / 2 for n in wanted])
        self.assertEqual(found["shop"], [n // 100 for n in wanted])
        self.assertEqual(found["day"], [f"2024-01-0{n // 100}" for n in wanted])

    def test_versions(self):
        self.write()
        for version, numbers in ((None, [2, 3]), (3, [2, 3]), (2, [0, 1, 2]), (1, [0])):
            self.check(numbers, version=version)
        self.check([2, 3], cache=100)
        for version in -1, 4, "1":
            with self.assertRaisesRegex(oa.errors.ArgumentError, "has versions up to 3"):
                oa.from_delta(self.folder, version=version)
        with self.assertRaisesRegex(oa.errors.DatasetError, "has no row"):
            oa.from_delta(self.folder, version=0)
        for call in oa.from_parquet, oa.Loader:     # would read what is not of it any more
            with self.assertRaisesRegex(oa.errors.ArgumentError, "oneaccess.from_delta"):
                call(self.folder)
        self.assertEqual(list(self.rows(oa.from_delta(f"file://{self.folder}", keep=0.2))), ["x", "n", "day", "shop"])

    def test_checkpoints(self):
        for parts in 1, 2:
            self.write()
            self.checkpoint(*self.adds[2:], parts=parts)
            self.check([2, 3])
            self.commit(self.file("day=2024-01-04 e-4.parquet", 400, 24))
            self.check([2, 3, 4])
            self.check([2, 3], version=3)
            with self.assertRaisesRegex(oa.errors.DatasetError, "lacks version 0, and no checkpoint has it: version 2 cannot be had"):
                oa.from_delta(self.folder, version=2)
            if parts == 2:
                next((self.folder / "_delta_log").glob("*.0000000001.0000000002.parquet")).unlink()
                with self.assertRaisesRegex(oa.errors.DatasetError, "lacks version 0"):
                    oa.from_delta(self.folder)
            shutil.rmtree(self.folder)
            self.setUp()

    def test_what_is_refused(self):
        cases = [({"minReaderVersion": 3, "readerFeatures": ["typeWidening-preview", "deletionVectors"]}, {}, "needs what is not read here: typeWidening-preview; "),
                 ({"minReaderVersion": 4}, {}, "a newer reader"),
                 ({"minReaderVersion": 2, "configuration": {"delta.columnMapping.mode": "name"}}, {}, r"column mapping \(mode name\)"),
                 ({}, {"columns": ["y"]}, "no column 'y'; there are: x, n, day, shop")]
        for protocol, options, words in cases:
            self.begin(**protocol)
            add = self.file("day=2024-01-01 a-1.parquet", 100, 21)
            self.commit(add)
            with self.assertRaisesRegex(oa.errors.Error, words):
                oa.from_delta(self.folder, **options)
            self.commit({"remove": {"path": add["add"]["path"]}})
        self.commit(self.file("day=2024-01-01 a-1.parquet", 100, 21))
        self.check([1])
        self.commit({"sidecar": {"path": "x"}})
        with self.assertRaisesRegex(oa.errors.DatasetError, "checkpoint with sidecars"):
            oa.from_delta(self.folder)
        (self.folder / f"_delta_log/{self.last:020}.json").write_text("{")
        with self.assertRaisesRegex(oa.errors.DatasetError, "is damaged"):
            oa.from_delta(self.folder)
        with self.assertRaisesRegex(oa.errors.Error, "no table of Delta Lake"):
            oa.from_delta(self.work)

    @needs("deltalake")
    def test_its_own(self):
        """Tables that the package writes, as the package reads them."""
        import deltalake
        path = str(self.work / "own")
        for number in range(12):
            table = self.table(50 * number, 50).append_column("part", pyarrow.array([f"p {n % 3}" for n in range(50)]))
            deltalake.write_deltalake(path, table, mode="append", partition_by=["part"])
            if number == 9:
                deltalake.DeltaTable(path).create_checkpoint()
        deltalake.DeltaTable(path).delete("part = 'p 1' and n < 100")
        for version in None, 4, 11:
            found = self.rows(oa.from_delta(path, ["n", "x", "part"], version, keep=0.2))
            wanted = deltalake.DeltaTable(path, version=version).to_pyarrow_table().select(["n", "x", "part"])
            self.assertEqual(sorted(zip(*found.values())), sorted(zip(*wanted.to_pydict().values())))


@needs("pyiceberg")
class IcebergTest(LakehouseCase):
    def test_tables(self):
        from pyiceberg.catalog.sql import SqlCatalog
        (self.work / "iceberg").mkdir()
        catalog = SqlCatalog("here", uri=f"sqlite:///{self.work}/iceberg/catalog.db", warehouse=f"file://{self.work}/iceberg")
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.sales", schema=self.table(0, 1).schema)
        for number in range(3):
            table.append(self.table(100 * number, 30))
        first = table.metadata.snapshots[0].snapshot_id
        with self.assertRaisesRegex(oa.errors.ArgumentError, "oneaccess.from_iceberg"):
            oa.from_parquet(table.location().removeprefix("file://"))
        for given, snapshot in ((table, None), (table.metadata_location, None), (table, first)):
            found = self.rows(oa.from_iceberg(given, ["n", "x"], snapshot, keep=0.2))
            wanted = table.scan(snapshot_id=snapshot).to_arrow().select(["n", "x"]).to_pydict()
            self.assertEqual(sorted(zip(*found.values())), sorted(zip(*wanted.values())))
        with self.assertRaisesRegex(oa.errors.ArgumentError, f"snapshot=7: .*{first}"):
            oa.from_iceberg(table, snapshot=7)
        with self.assertRaisesRegex(oa.errors.DatasetError, "no metadata.json"):
            oa.from_iceberg(self.work / "gone.metadata.json")
        task = mock.Mock(delete_files={1}, file=mock.Mock(file_path="a"))
        with mock.patch("pyiceberg.table.DataScan.plan_files", return_value=[task]), self.assertRaisesRegex(oa.errors.DatasetError, "delete files"):
            oa.from_iceberg(table)


@needs("lance")
class LanceTest(LakehouseCase):
    def test_rows(self):
        import lance
        path = str(self.work / "x.lance")
        table = self.table(0, 500).append_column("text", pyarrow.array([f"t{n}" for n in range(500)]))
        lance.write_dataset(table, path)
        lance.write_dataset(table[:30], path, mode="append")
        for version, rows in ((None, 530), (1, 500)):
            data = oa.from_lance(path, ["n", "text", "x"], version, keep=0.2)
            wanted = pyarrow.concat_tables([table, table[:30]])[:rows].select(["n", "text", "x"]).to_pydict()
            self.assertEqual(self.rows(data), wanted)
            seen = [n for batch in self.open(data, order="carousel") for n in batch["n"].tolist()]
            self.assertEqual(sorted(seen), sorted(wanted["n"]))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no column 'y'; there are: x, n, text"):
            oa.from_lance(path, ["y"])
        with self.assertRaisesRegex(oa.errors.DatasetError, "no data set of Lance"):
            oa.from_lance(self.work / "gone.lance")


class PackagesTest(unittest.TestCase):
    def test_what_is_not_installed_is_named(self):
        for name, call, package in (("pyarrow.parquet", oa.from_delta, "pyarrow"), ("pyiceberg", oa.from_iceberg, "pyiceberg pyarrow"), ("lance", oa.from_lance, "pylance")):
            with mock.patch.dict(sys.modules, {name: None}), self.assertRaisesRegex(oa.errors.ArgumentError, f"pip install {package}"):
                call(__file__)


if __name__ == "__main__":
    unittest.main(verbosity=2)
