# SPDX-License-Identifier: Apache-2.0
"""Tables of Delta Lake, Iceberg and Lance. Delta's log is written here by hand, and where a table's own package is installed, by that."""

import functools
import importlib.util
import json
import pathlib
import random
import shutil
import sys
import unittest
import warnings
from unittest import mock

try:
    import numpy as np
    import pyarrow
    import pyarrow.compute as pc
    import pyarrow.parquet
    from pyarrow import fs
except ImportError as missing:
    print(f"lakehouse_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from lake_tables import SCHEMA, DeltaCase, LakehouseCase, framed, vector
from oneaccess import features as f
from oneaccess import urls
from support import needs
from oneaccess.sources import iceberg

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

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

    def sidecars(self, adds, kind, whole):
        """A checkpoint of the last version whose files stand in two other ones; its commits go."""
        folder = self.folder / "_delta_log/_sidecars"
        folder.mkdir(exist_ok=True)
        types = pyarrow.schema([("add", pyarrow.struct([
            ("path", pyarrow.string()), ("partitionValues", pyarrow.map_(pyarrow.string(), pyarrow.string())), ("size", pyarrow.int64()),
            ("modificationTime", pyarrow.int64()), ("dataChange", pyarrow.bool_()),
            ("deletionVector", pyarrow.struct([("storageType", pyarrow.string()), ("pathOrInlineDv", pyarrow.string()), ("offset", pyarrow.int32()),
                                               ("sizeInBytes", pyarrow.int32()), ("cardinality", pyarrow.int64())]))]))])
        first = (self.folder / f"_delta_log/{0:020}.json").read_text().splitlines()
        actions = [{"checkpointMetadata": {"version": self.last}}, *map(json.loads, first[1:])]
        for part in range(2):
            path = folder / f"{part}.parquet"
            rows = [{"add": {**one["add"], "partitionValues": list(one["add"]["partitionValues"].items())}} for one in adds[part::2]]
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, types), path)
            actions.append({"sidecar": {"path": path.as_uri() if whole else path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 0}})
        name = self.folder / f"_delta_log/{self.last:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
        if kind == "json":
            name.write_text("".join(json.dumps(action) + "\n" for action in actions))
        else:
            for action in actions:      # whose maps Parquet has as such
                if "metaData" in action:
                    action["metaData"] = {key: action["metaData"][key] for key in ("id", "schemaString", "partitionColumns")}
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{**dict.fromkeys(key for one in actions for key in one), **action} for action in actions]), name)
        for version in range(self.last + 1):
            (self.folder / f"_delta_log/{version:020}.json").unlink(missing_ok=True)

    def test_checkpoints_with_sidecars(self):
        for kind, whole in ("json", False), ("parquet", False), ("json", True):
            with self.subTest(kind=kind, whole=whole):
                self.begin(minReaderVersion=3, minWriterVersion=7, readerFeatures=["v2Checkpoint", "deletionVectors"], writerFeatures=["v2Checkpoint", "deletionVectors"])
                adds = [self.file(f"day=2024-01-0{number} {letter}-{number}.parquet", 100 * number, 20 + number) for number, letter in enumerate("abcd", 1)]
                adds[2]["add"]["deletionVector"] = self.inline([0, 1, 22])
                self.commit(*adds)
                self.sidecars(adds, kind, whole)
                wanted = [n for number in range(1, 5) for n in range(100 * number, 100 * number + 20 + number) if n not in (300, 301, 322)]
                self.assertEqual(self.rows(oa.from_delta(self.folder, ["n"], keep=0.2))["n"], wanted)
                if importlib.util.find_spec("delta_kernel_rust_sharing_wrapper") and kind == "json" and not whole:
                    self.assertEqual(sorted(self.kernel().column("n").to_pylist()), wanted)
                self.commit({"remove": {"path": adds[0]["add"]["path"], "dataChange": True}})
                self.assertEqual(self.rows(oa.from_delta(self.folder, ["n"], keep=0.2))["n"], wanted[21:])
                file = self.folder / "_delta_log/_sidecars/1.parquet"
                file.write_bytes(file.read_bytes()[:-9])
                with self.assertRaisesRegex(oa.errors.DatasetError, "_sidecars/1.parquet, of a checkpoint, cannot be read"):
                    oa.from_delta(self.folder)
                file.unlink()
                with self.assertRaisesRegex(oa.errors.DatasetError, "_sidecars/1.parquet, of a checkpoint, cannot be read"):
                    oa.from_delta(self.folder)
            shutil.rmtree(self.folder)
            self.setUp()

    def test_compacted_commits(self):
        self.write()
        log = self.folder / "_delta_log"
        self.commit(self.file("day=2024-01-04 e-4.parquet", 400, 24))
        # What is left of versions 1 to 3: c and d are there, a and b are gone.
        left = [*({"remove": {"path": one["add"]["path"], "dataChange": True}} for one in self.adds[:2]), *self.adds[2:]]
        (log / f"{1:020}.{3:020}.compacted.json").write_text("".join(json.dumps(action) + "\n" for action in left))
        for _ in range(2):
            self.check([2, 3, 4])
            self.check([2, 3], version=3)
            for version in 2, 3:        # which the other one has, too
                (log / f"{version:020}.json").unlink(missing_ok=True)
        self.check([0], version=1)
        with self.assertRaisesRegex(oa.errors.DatasetError, "lacks version 2"):
            oa.from_delta(self.folder, version=2)

    def test_what_is_refused(self):
        cases = [({"minReaderVersion": 3, "readerFeatures": ["variantType", "deletionVectors"]}, {}, "needs what is not read here: variantType; "),
                 ({"minReaderVersion": 4}, {}, "a newer reader"),
                 ({"minReaderVersion": 2, "configuration": {"delta.columnMapping.mode": "names"}}, {}, "column mapping of an unknown mode, names"),
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
        (self.folder / f"_delta_log/{self.last:020}.json").write_text("{")
        with self.assertRaisesRegex(oa.errors.DatasetError, "is damaged"):
            oa.from_delta(self.folder)
        with self.assertRaisesRegex(oa.errors.Error, "no table of Delta Lake"):
            oa.from_delta(self.work)

    def kernel(self):
        """All rows, as Delta's own kernel reads them."""
        import delta_kernel_rust_sharing_wrapper as kernel
        url = f"{self.folder.as_uri()}/"
        reader = kernel.PythonInterface(url)
        return kernel.ScanBuilder(kernel.Table(url).snapshot(reader)).build().execute(reader).read_all()

    def mapped(self, mode):
        """A table whose columns were renamed, dropped, added, and made anew under a name that another one had."""
        def schema(**columns):
            return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True,
                                                  "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}}
                                                 for name, (number, kind) in columns.items()]}
        picture = {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True,
                                                 "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}}
                                                for name, number, kind in (("bytes", 8, "binary"), ("path", 9, "string"))]}
        self.begin({"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"}, partitioned=["shop"], minReaderVersion=2, minWriterVersion=5,
                   schema=schema(n=(1, "long"), was=(2, "double"), shop=(3, "integer"), photo=(7, picture)))
        for number, columns in enumerate(([1, 2, 7], [1, 2, 4, 5, 7])):
            values = {1: np.arange(10) + 100 * number, 2: np.arange(10) / 4, 4: [f"t{n}" for n in range(10)], 5: np.arange(10, dtype="float32"),
                      7: pyarrow.StructArray.from_arrays([[b"%d" % n for n in range(10)], ["p"] * 10],
                                                         fields=[pyarrow.field(f"col-{n}", kind, metadata={"PARQUET:field_id": str(n)})
                                                                 for n, kind in ((8, pyarrow.binary()), (9, pyarrow.string()))])}
            arrays = [pyarrow.array(values[column]) if column != 7 else values[7] for column in columns]
            # By numbers, names in the files are any; by names, numbers are.
            fields = [pyarrow.field(f"col-{column}" if mode == "name" else f"any {column}", array.type, metadata={"PARQUET:field_id": str(column)} if mode == "id" else None)
                      for column, array in zip(columns, arrays)]
            pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields)), self.folder / f"{number}.parquet", row_group_size=4)
            add = {"path": f"{number}.parquet", "partitionValues": {"col-3": str(number + 5)}, "dataChange": True, "modificationTime": 0,
                   "size": (self.folder / f"{number}.parquet").stat().st_size, "deletionVector": self.inline([3, 4]) if number else None}
            self.commit({"add": add})
        self.commit({"metaData": {"id": "1", "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["store"],
                                  "configuration": {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"},
                                  "schemaString": json.dumps(schema(text=(4, "string"), number=(1, "long"), store=(3, "integer"), n=(5, "float"), photo=(7, picture)))}},
                    {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping", "deletionVectors"],
                                  "writerFeatures": ["columnMapping", "deletionVectors"]}})

    def test_column_mapping(self):
        for mode in "name", "id":
            self.mapped(mode)
            number = [*range(10), *(100 + n for n in range(10) if n not in (3, 4))]
            found = self.rows(oa.from_delta(self.folder, ["number", "store"], keep=0.2))
            self.assertEqual(found, {"number": number, "store": [5 + n // 100 for n in number]})
            some = [n for n in number if n > 104]
            for where in [("number", ">", 104)], [("number", ">", 4), ("store", "=", 6), ("text", "not in", ["t0", "t1", "t2"])], [("n", ">", 4.)]:
                found = self.rows(oa.from_delta(self.folder, ["text", "n"], where=where, keep=0.2))
                self.assertEqual(found["text"], [f"t{n - 100}" for n in some])
                self.assertEqual(found["n"], [n - 100 for n in some])
            table = oa.from_delta(self.folder, keep=0.2).dataset
            rows = table.__getitems__(range(len(table)))
            self.assertEqual([row["photo"] for row in rows], [b"%d" % (n % 100) for n in number])
            self.assertEqual([(row["text"], row["n"]) for row in rows], [(f"t{n - 100}", n - 100) if n >= 100 else (None, None) for n in number])
            self.assertEqual(list(rows[0]), ["text", "number", "store", "n", "photo"])
            if importlib.util.find_spec("delta_kernel_rust_sharing_wrapper") and mode == "name":     # which reads only its own names by numbers
                read = self.kernel().select(["text", "number", "store", "n"]).to_pylist()
                self.assertEqual([{name: row[name] for name in read[0]} for row in rows], sorted(read, key=lambda row: row["number"]))
            shutil.rmtree(self.folder)
            self.setUp()

    def test_features(self):
        """Of columns that have other names in files, came later or are those of the partitions, without deleted rows."""
        columns = {"both": f.Stack(["number", "store"]), "text": f.Column("text", f.Fill("none"), f.Vocabulary([f"t{n}" for n in range(10)])), "n": f.Column("n", f.Fill(-1))}
        for mode in "name", "id":
            self.mapped(mode)
            number = [*range(10), *(100 + n for n in range(10) if n not in (3, 4))]
            wanted = {"both": [[n, 5 + n // 100] for n in number], "text": [n - 99 if n >= 100 else 0 for n in number], "n": [n - 100. if n >= 100 else -1. for n in number]}
            for options in {}, {"cache": 1000}:
                self.assertEqual(self.rows(oa.from_delta(self.folder, columns, keep=0.2, **options)), wanted)
            for where in [("number", ">", 104)], [("store", "=", 6), ("text", "not in", ["t0", "t1", "t2"])], [("n", ">", 4.)]:
                data = oa.from_delta(self.folder, columns, where=where, keep=0.2)
                self.assertEqual(self.rows(data), {name: values[-5:] for name, values in wanted.items()})
                self.assertEqual(data.dataset.rows_of([0, 4]).tolist(), [15, 19])
            alone = {name: columns[name] for name in ("text", "n")}      # of which the first file has none
            self.assertEqual(self.rows(oa.from_delta(self.folder, {**alone, "store": "store"}, keep=0.2)),
                             {**{name: wanted[name] for name in alone}, "store": [each[1] for each in wanted["both"]]})
            data = oa.from_delta(self.folder, columns, rows=4, keep=0.2)
            self.assertEqual(self.rows(data), {name: values[:16] for name, values in wanted.items()})
            self.assertEqual(data.dataset.rows_of([3]).tolist(), [[12, 15, 16, 17]])
            self.assertNotEqual(data.identity(False), oa.from_delta(self.folder, columns, rows=3, keep=0.2).identity(False))
            rows = oa.from_delta(self.folder, {"n": "n"}).dataset
            self.assertEqual([rows[at]["n"] for at in range(10, 18)], wanted["n"][10:])
            with self.assertRaisesRegex(oa.errors.TransformError, "0.parquet, row group 2, row 1: column n: it has no value"):
                rows[9]
            shutil.rmtree(self.folder)
            self.setUp()

    def test_types_that_became_wider(self):
        def schema(*kinds):
            return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in zip("abcd", kinds)]}
        types = [("byte", "float", "integer", {"type": "array", "elementType": "short", "containsNull": True}),
                 ("long", "double", "double", {"type": "array", "elementType": "long", "containsNull": True})]
        features = ["typeWidening"]
        for number, (kinds, arrow) in enumerate(zip(types, (("int8", "float32", "int32", "int16"), ("int64", "float64", "float64", "int64")))):
            self.begin(schema=schema(*kinds), partitioned=[], minReaderVersion=3, minWriterVersion=7, readerFeatures=features, writerFeatures=features)
            values = [pyarrow.array([number + 1, 100 + number], kind) for kind in arrow[:3]]
            lists = pyarrow.array([[number, 5], [7, 9]], pyarrow.list_(pyarrow.type_for_alias(arrow[3])))
            pyarrow.parquet.write_table(pyarrow.Table.from_arrays([*values, lists], ["a", "b", "c", "d"]), self.folder / f"{number}.parquet")
            self.commit({"add": {"path": f"{number}.parquet", "partitionValues": {}, "size": (self.folder / f"{number}.parquet").stat().st_size,
                                 "modificationTime": 0, "dataChange": True}})
        rows = oa.from_delta(self.folder).dataset
        found = rows.__getitems__(range(len(rows)))
        self.assertEqual({tuple(value.dtype.name for value in row.values()) for row in found}, {("int64", "float64", "float64", "int64")})
        self.assertEqual([tuple(value.tolist() for value in row.values()) for row in found],
                         [(1, 1., 1., [0, 5]), (100, 100., 100., [7, 9]), (2, 2., 2., [1, 5]), (101, 101., 101., [7, 9])])
        for where, wanted in ([("a", "<", 1 << 40)], 4), ([("a", ">", 100)], 1), ([("c", "<", 1.5)], 1), ([("b", "<", 1e300), ("c", ">", 1.5)], 3):
            self.assertEqual(len(oa.from_delta(self.folder, ["a"], where=where)), wanted, where)

    def test_a_damaged_log(self):
        """Whatever stands where in it, is the table or an error in words."""
        def places(value, path=()):
            for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
                yield (*path, key)
                yield from places(value[key], (*path, key))
        self.mapped("name")
        good = [json.loads(line) for file in sorted((self.folder / "_delta_log").iterdir()) for line in file.read_text().splitlines()]
        for action in good:
            if "metaData" in action:
                action["metaData"]["schemaString"] = json.loads(action["metaData"]["schemaString"])
        draw, ends = random.Random(6), {"rows": 0, "error": 0}
        for _ in range(600):
            actions = json.loads(json.dumps(good))
            *path, last = draw.choice([*places(actions)])
            place = functools.reduce(lambda value, key: value[key], path, actions)
            if draw.random() < .3:
                del place[last]
            else:
                place[last] = draw.choice([None, True, -1, 1 << 70, 1.5, "", "x", "id", [], {}, [1], {"a": 1}, "\ud800"])
            for action in actions:
                if isinstance(action, dict) and isinstance(action.get("metaData"), dict) and "schemaString" in action["metaData"]:
                    action["metaData"]["schemaString"] = json.dumps(action["metaData"]["schemaString"])
            self.last = -1
            for file in (self.folder / "_delta_log").iterdir():
                file.unlink()
            self.commit(*actions)
            try:
                ends["rows"] += len(oa.from_delta(self.folder, ["number", "store"])) > 0
            except oa.errors.Error:
                ends["error"] += 1
        self.assertGreater(min(ends.values()), 100)

    def test_a_file_that_is_gone(self):
        """As VACUUM leaves older versions."""
        self.write()
        (self.folder / "day=2024-01-00 a-0.parquet").unlink()
        with self.assertRaisesRegex(oa.errors.DatasetError, "a-0.parquet is no Parquet file that can be read: .*No such file"):
            oa.from_delta(self.folder, version=1)
        self.check([2, 3])

    def test_a_file_without_numbers(self):
        self.mapped("id")
        pyarrow.parquet.write_table(self.table(0, 4), self.folder / "0.parquet")
        with self.assertRaisesRegex(oa.errors.DatasetError, r"0.parquet does not say which columns of .* \(no field ids\)"):
            oa.from_delta(self.folder, ["n"])

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
    def create(self, schema, **options):
        from pyiceberg.catalog.sql import SqlCatalog
        folder = self.work / self.id()
        folder.mkdir()
        catalog = SqlCatalog("here", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("shop")
        return catalog.create_table("shop.sales", schema=schema, **options)

    def same(self, table, columns, where=None, **options):
        """As pyiceberg reads them, but for their order."""
        wanted = table.scan(**options).to_arrow().select(columns).to_pylist()
        rows = oa.from_iceberg(table, columns, where=where, keep=0.2).dataset
        found = [{name: value if value is None or isinstance(value, str) else value.item() for name, value in row.items()} for row in rows.__getitems__(range(len(rows)))]
        self.assertEqual(*(sorted(each, key=repr) for each in (found, wanted)))
        return found

    def test_tables(self):
        table = self.create(self.table(0, 1).schema)
        for number in range(3):
            table.append(self.table(100 * number, 30))
        first = table.metadata.snapshots[0].snapshot_id
        with self.assertRaisesRegex(oa.errors.ArgumentError, "oneaccess.from_iceberg"):
            oa.from_parquet(table.location().removeprefix("file://"))
        for given, snapshot in ((table, None), (table.metadata_location, None), (table, first)):
            found = self.rows(oa.from_iceberg(given, ["n", "x"], snapshot, keep=0.2))
            wanted = table.scan(snapshot_id=snapshot).to_arrow().select(["n", "x"]).to_pydict()
            self.assertEqual(sorted(zip(*found.values())), sorted(zip(*wanted.values())))
        some = self.rows(oa.from_iceberg(table, ["x"], where=[("n", ">", 120), ("x", "<", 110)], keep=0.2))
        self.assertEqual(sorted(some["x"]), [n / 2 for n in (*range(121, 130), *range(200, 220))])
        manifest = pathlib.Path(table.metadata.snapshots[0].manifests(table.io)[0].manifest_path.removeprefix("file://"))
        data = manifest.read_bytes()
        for damaged in b"", data[:-20], data[:len(data) // 2]:
            manifest.write_bytes(damaged)
            with self.assertRaisesRegex(oa.errors.DatasetError, "the manifests of .* cannot be read"):
                oa.from_iceberg(table.metadata_location, snapshot=first)
        manifest.write_bytes(data)
        with self.assertRaisesRegex(oa.errors.ArgumentError, f"snapshot=7: .*{first}"):
            oa.from_iceberg(table, snapshot=7)
        with self.assertRaisesRegex(oa.errors.DatasetError, "no metadata.json"):
            oa.from_iceberg(self.work / "gone.metadata.json")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no column 'y'; there are: x, n"):
            oa.from_iceberg(table, ["y"])

    def test_columns_that_changed(self):
        """Renamed, moved, added, made wider, and made anew under a name that another one had."""
        from pyiceberg.types import DoubleType, LongType, StringType
        table = self.create(pyarrow.schema([("x", pyarrow.float32()), ("n", pyarrow.int32()), ("gone", pyarrow.string())]))
        table.append(pyarrow.table({"x": pyarrow.array([1, 2, 3.5], "float32"), "n": pyarrow.array([1, 2, 3], "int32"), "gone": ["a", "b", "c"]}))
        with table.update_schema() as update:
            update.rename_column("n", "number").update_column("x", DoubleType()).delete_column("gone")
        with table.update_schema() as update:
            update.update_column("number", LongType()).add_column("gone", DoubleType()).add_column("text", StringType()).move_first("text")
        self.same(table, ["number", "x", "gone", "text"])
        table.append(pyarrow.table({"text": ["d", None], "x": [4., 5.], "number": [1 << 40, 5], "gone": [.5, .25]}))
        self.same(table, ["number", "x", "gone", "text"])
        for where, rows in (([("number", ">", 2)], "number > 2"), ([("gone", ">", .3)], "gone > 0.3"), (pc.field("text").is_null() & (pc.field("x") > 2.0), "text is null and x > 2.0")):
            self.same(table, ["number", "x", "gone", "text"], where, row_filter=rows)
        rows = oa.from_iceberg(table, ["x", "number"]).dataset
        self.assertEqual({(row["x"].dtype.name, row["number"].dtype.name) for row in rows.__getitems__(range(len(rows)))}, {("float64", "int64")})
        for value in 1, 1 << 40:
            self.same(table, ["x"], [("number", "=", value)], row_filter=f"number = {value}")
        found = self.rows(oa.from_iceberg(table, ["gone", "number"], where=pc.field("gone").is_valid(), keep=0.2))
        self.assertEqual(found, {"gone": [.5, .25], "number": [1 << 40, 5]})
        with self.assertRaisesRegex(oa.errors.Error, "field gone of the sample is a NoneType"):
            list(self.open(oa.from_iceberg(table, ["gone"], keep=0.2), as_="numpy"))

    def test_features(self):
        """Of columns that were renamed, made wider and added, without rows that were deleted."""
        from pyiceberg.types import DoubleType, LongType, StringType
        table = self.create(pyarrow.schema([("x", pyarrow.float32()), ("n", pyarrow.int32())]), properties={"format-version": "2"})
        table.append(pyarrow.table({"x": pyarrow.array([n / 2 for n in range(30)], "float32"), "n": pyarrow.array(range(30), "int32")}))
        first = self.paths(table)[0]
        with table.update_schema() as update:
            update.rename_column("n", "number").update_column("x", DoubleType())
        with table.update_schema() as update:
            update.update_column("number", LongType()).add_column("text", StringType()).add_column("much", DoubleType())
        table.append(pyarrow.table({"x": [4., 5.], "number": [1 << 40, 5], "text": ["d", None], "much": [.5, .25]}))
        numbers = self.file("numbers.parquet", file_path=pyarrow.array([first] * 2), pos=pyarrow.array([0, 29]))
        values = self.file("values.parquet", n=pyarrow.array([7, 9, 1 << 40]))
        self.deletes(table, [(numbers, 1, (), None, "PARQUET"), (values, 2, (), [2], "PARQUET")])
        table.append(pyarrow.table({"x": [6.], "number": [7], "text": ["e"], "much": [1.]}))
        columns = {"number": "number", "x": f.Column("x", f.Fill(0)), "text": f.Column("text", f.Fill("none"), f.Vocabulary(["d", "e", "none"])), "much": f.Column("much", f.Fill(-1))}
        wanted = [(n, n / 2, 3, -1) for n in range(30) if n not in (0, 7, 9, 29)] + [(5, 5, 3, .25), (7, 6, 2, 1)]
        data = oa.from_iceberg(table, columns, keep=0.2)
        self.assertEqual(sorted(zip(*self.rows(data).values())), sorted(wanted))
        self.assertEqual({name: value.dtype.name for name, value in data.dataset[0].items()}, {"number": "int64", "x": "float32", "text": "int64", "much": "float32"})
        for where, is_it in ([("number", ">", 20)], lambda row: row[0] > 20), ([("much", ">", 0)], lambda row: row[3] > 0), ([("text", "=", "e")], lambda row: row[2] == 2):
            found = self.rows(oa.from_iceberg(table, columns, where=where, keep=0.2))
            self.assertEqual(sorted(zip(*found.values())), sorted(filter(is_it, wanted)), where)
        self.assertEqual(sorted(zip(*self.rows(oa.from_iceberg(table, columns, rows=14, keep=0.2)).values())), sorted(wanted))

    def version_3(self, table, change):
        """Whose metadata pyiceberg reads and does not write."""
        told = json.loads(pathlib.Path(table.metadata_location.removeprefix("file://")).read_text())
        told.update({"format-version": 3, "next-row-id": 0})
        for snapshot in told["snapshots"]:
            snapshot.update({"first-row-id": 0, "added-rows": 0})
        change(told)
        path = self.work / self.id() / "v3.metadata.json"
        path.write_text(json.dumps(told))
        return path

    def test_defaults(self):
        table = self.create(self.table(0, 1).schema)
        table.append(self.table(0, 3))
        fields = [(3, "much", "long", 7), (4, "text", "string", "none"), (5, "ratio", "double", .5), (6, "nothing", "long", None)]

        def change(told):
            for schema in told["schemas"]:
                schema["fields"] += [{"id": number, "name": name, "type": kind, "required": False, **({} if value is None else {"initial-default": value})}
                                     for number, name, kind, value in fields]
        path = self.version_3(table, change)
        found = self.rows(oa.from_iceberg(path, ["n", "much", "text", "ratio"], where=[("much", ">", 6), ("text", "=", "none"), ("n", ">", 0)], keep=0.2))
        self.assertEqual(found, {"n": [1, 2], "much": [7, 7], "text": ["none"] * 2, "ratio": [.5] * 2})
        with self.assertRaisesRegex(oa.errors.ArgumentError, "chooses none of the 3 rows"):
            oa.from_iceberg(path, where=[("nothing", ">", 0)])
        self.assertEqual(len(oa.from_iceberg(path, ["n"], where=pc.field("nothing").is_null())), 3)

    def test_files_that_others_wrote(self):
        """Without numbers of columns, told by names, and without the columns that are in the names of folders."""
        schema = pyarrow.schema([("shop", pyarrow.int32()), ("n", pyarrow.int64()), ("x", pyarrow.float64())])
        table = self.create(schema)
        with table.update_spec() as update:
            update.add_identity("shop")
        table.append(pyarrow.table({"shop": [7, 8], "n": [70, 80], "x": [.7, .8]}, schema))
        path = f"{table.location().removeprefix('file://')}/data/other.parquet"
        pyarrow.parquet.write_table(self.table(0, 5).append_column("shop", pyarrow.array([9] * 5, "int32")), path)
        table.add_files([f"file://{path}"])
        self.same(table, ["shop", "n", "x"])
        pyarrow.parquet.write_table(self.table(0, 5), path)
        self.assertEqual({row["shop"] for row in self.same(table, ["n", "shop", "x"])}, {7, 8, 9})
        self.same(table, ["n", "x"], [("shop", "=", 9)], row_filter="shop = 9")
        with table.transaction() as change:
            change.remove_properties("schema.name-mapping.default")
        with self.assertRaisesRegex(oa.errors.DatasetError, r"other.parquet does not say .*no field ids"):
            oa.from_iceberg(table, ["n"])

    def deletes(self, table, files):
        """A snapshot with files of rows or of deletes: (path, content, partition, equality ids, format); pyiceberg writes none of deletes itself."""
        from pyiceberg import manifest
        from pyiceberg.table.snapshots import Operation
        from pyiceberg.table.update.snapshot import _FastAppendFiles

        class Writer(manifest.ManifestWriterV2):
            def content(self):
                return manifest.ManifestContent.DELETES

            @property
            def _meta(self):
                return {**super()._meta, "content": "deletes"}

        class Append(_FastAppendFiles):
            def _manifests(self):
                used, made = self._transaction.table_metadata.spec(), []
                for path, content, partition, ids, kind in files:
                    write = manifest.ManifestWriterV2 if content == 0 else Writer
                    with write(used, self.schema(), self.new_manifest_output(), self._snapshot_id, "deflate") as writer:
                        file = manifest.DataFile.from_args(content=manifest.DataFileContent(content), file_path=f"file://{path}", file_format=manifest.FileFormat(kind),
                                                           partition=manifest.Record(*partition), record_count=5, file_size_in_bytes=path.stat().st_size, equality_ids=ids)
                        file.spec_id = used.spec_id
                        writer.add(manifest.ManifestEntry.from_args(status=manifest.ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, data_file=file))
                    made.append(writer.to_manifest_file())
                return made + self._existing_manifests()

        with table.transaction() as change:
            Append(Operation.OVERWRITE, change, table.io).commit()
        table.refresh()

    def file(self, name, **columns):
        path = self.work / self.id() / name
        numbers = {"file_path": 2147483546, "pos": 2147483545, "x": 1, "n": 2}
        fields = [pyarrow.field(key, value.type, metadata={"PARQUET:field_id": str(numbers[key])}) for key, value in columns.items()]
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays([*columns.values()], schema=pyarrow.schema(fields)), path)
        return path

    def paths(self, table):
        return sorted(task.file.file_path for task in table.scan().plan_files())

    def numbers(self, table, **options):
        return sorted(self.rows(oa.from_iceberg(table, ["n"], keep=0.2, **options))["n"])

    def test_rows_deleted_by_number(self):
        table = self.create(self.table(0, 1).schema, properties={"format-version": "2"})
        table.append(self.table(0, 30))
        first = self.paths(table)[0]
        table.append(self.table(100, 30))
        second = next(path for path in self.paths(table) if path != first)
        before = oa.from_iceberg(table, ["n"], name="sales", keep=0.2)
        one = self.file("one.parquet", file_path=pyarrow.array([first] * 3 + [second] * 2 + ["file:///elsewhere"]), pos=pyarrow.array([0, 7, 29, 3, 4, 99]))
        two = self.file("two.parquet", file_path=pyarrow.array([first] * 2), pos=pyarrow.array([7, 8]))
        self.deletes(table, [(one, 1, (), None, "PARQUET"), (two, 1, (), None, "PARQUET")])
        after = oa.from_iceberg(table, ["n"], name="sales", keep=0.2)
        self.assertNotEqual(before.identity(False), after.identity(False))
        table.append(self.table(200, 30))
        left = [n for n in (*range(30), *range(100, 130), *range(200, 230)) if n not in (0, 7, 8, 29, 103, 104)]
        self.assertEqual(self.numbers(table), left)
        self.assertEqual(sorted(row["n"] for row in self.same(table, ["n", "x"])), left)
        self.assertEqual(self.numbers(table, where=[("n", ">", 20), ("x", "<", 55)]), [n for n in left if 20 < n < 110])
        self.assertEqual(self.numbers(table, snapshot=table.metadata.snapshots[1].snapshot_id), [*range(30), *range(100, 130)])
        bad = self.file("bad.parquet", file_path=pyarrow.array([first]), pos=pyarrow.array([30]))
        self.deletes(table, [(bad, 1, (), None, "PARQUET")])
        with self.assertRaisesRegex(oa.errors.DatasetError, "delete files of .* are damaged: of its 30 rows they delete 0 to 30"):
            oa.from_iceberg(table, ["n"])
        bad.write_bytes(bad.read_bytes()[:-7])
        with self.assertRaisesRegex(oa.errors.DatasetError, "bad.parquet, which deletes rows of .*, cannot be read"):
            oa.from_iceberg(table, ["n"])
        bad.unlink()
        with self.assertRaisesRegex(oa.errors.DatasetError, "bad.parquet, which deletes rows of .*, cannot be read"):
            oa.from_iceberg(table, ["n"])

    def test_rows_deleted_by_value(self):
        table = self.create(self.table(0, 1).schema, properties={"format-version": "2"})
        table.append(self.table(0, 30))
        table.append(pyarrow.table({"x": pyarrow.array([None, None, 2.]), "n": pyarrow.array([50, 51, None], "int64")}))
        one = self.file("one.parquet", n=pyarrow.array([3, 4, 77]))
        two = self.file("two.parquet", x=pyarrow.array([None, 5.]), n=pyarrow.array([50, 10]))
        three = self.file("three.parquet", n=pyarrow.array([None], "int64"))
        self.deletes(table, [(one, 2, (), [2], "PARQUET"), (two, 2, (), [1, 2], "PARQUET"), (three, 2, (), [2], "PARQUET")])
        left = [n for n in range(30) if n not in (3, 4, 10)] + [51]
        self.assertEqual(self.numbers(table), left)
        table.append(self.table(0, 5))      # later, so they stay
        self.assertEqual(self.numbers(table), sorted([*left, *range(5)]))
        self.assertEqual(self.numbers(table, where=[("x", "<", 3)]), sorted([*(n for n in left if n < 6), *range(5)]))
        with table.update_schema() as update:
            update.delete_column("n")       # by which rows were deleted
        self.assertEqual(len(oa.from_iceberg(table, ["x"])), len(left) + 5)

    def test_rows_deleted_as_they_came(self):
        """Of one snapshot: by number they are gone, by value not."""
        table = self.create(self.table(0, 1).schema, properties={"format-version": "2"})
        table.append(self.table(40, 3))
        data = self.file("data.parquet", x=pyarrow.array([.5] * 5), n=pyarrow.array([*range(40, 45)]))
        numbers = self.file("numbers.parquet", file_path=pyarrow.array([f"file://{data}"]), pos=pyarrow.array([4]))
        values = self.file("values.parquet", n=pyarrow.array([40, 41]))
        self.deletes(table, [(data, 0, (), None, "PARQUET"), (numbers, 1, (), None, "PARQUET"), (values, 2, (), [2], "PARQUET")])
        self.assertEqual(self.numbers(table), [40, 41, 42, 42, 43])

    def test_rows_deleted_in_partitions(self):
        """Delete files are about their own partition, by values without a partition about all; the table's partitions change."""
        table = self.create(self.table(0, 1).schema, properties={"format-version": "2"})
        with table.update_spec() as update:
            update.add_identity("x")
        table.append(pyarrow.table({"x": [1., 1., 2., 2.], "n": [1, 2, 1, 2]}))
        self.deletes(table, [(self.file("one.parquet", n=pyarrow.array([1])), 2, (2.,), [2], "PARQUET")])
        self.assertEqual(self.numbers(table), [1, 2, 2])
        with table.update_spec() as update:
            update.remove_field("x")
        table.append(pyarrow.table({"x": [1.], "n": [7]}))
        self.assertEqual(self.numbers(table), [1, 2, 2, 7])
        whole = table.spec()
        self.assertEqual(whole.fields, ())
        self.deletes(table, [(self.file("two.parquet", n=pyarrow.array([7, 2])), 2, (), [2], "PARQUET")])
        self.assertEqual(self.numbers(table), [1])

    def puffin(self, name, *blobs, more=b"", **properties):
        data, told = b"PFA1", []
        for path, rows in blobs:
            part = framed(vector(rows))
            told.append({"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": len(data), "length": len(part),
                         "properties": {"referenced-data-file": path, "cardinality": str(len(rows))}, **properties})
            data += part
        footer = json.dumps({"blobs": told}).encode()
        path = self.work / self.id() / name
        path.write_bytes(data + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1" + more)
        return path

    def test_deletion_vectors(self):
        table = self.create(self.table(0, 1).schema, properties={"format-version": "2"})
        table.append(self.table(0, 30))
        first = self.paths(table)[0]
        table.append(self.table(100, 30))
        second = next(path for path in self.paths(table) if path != first)
        path = self.puffin("x.puffin", (first, [0, *range(5, 25)]), ("file:///elsewhere", [99]), (second, [29]))
        self.deletes(table, [(path, 1, (), None, "PUFFIN"), (path, 1, (), None, "PUFFIN")])
        metadata = self.version_3(table, lambda told: None)
        left = [*range(1, 5), *range(25, 30), *range(100, 129)]
        self.assertEqual(self.numbers(metadata), left)
        self.assertEqual(self.numbers(metadata, where=[("n", ">", 3)]), [n for n in left if n > 3])
        self.assertEqual(sorted(table.scan().to_arrow().column("n").to_pylist()), left)
        for words, blobs, options in (("has row 30 or a later one|row 30, of a file with 30 rows", [(first, [30])], {}), ("a deletion vector is compressed", [(first, [1])], {"compression-codec": "zstd"}),
                                      ("does not end as one", [(first, [1])], {"more": b"1"}), ("would be at 0 to 9999", [(first, [1])], {"length": 9999, "offset": 0}),
                                      ("begin with another size", [(first, [1])], {"offset": 5}), ("not", [(first, [1])], {"offset": "4"}),
                                      ("bytes, of a file with 30 rows", [(first, [1])], {"length": 1 << 40})):
            self.puffin("x.puffin", *blobs, **options)
            with self.subTest(words=words), self.assertRaisesRegex(oa.errors.DatasetError, f"the Puffin file .*x.puffin is damaged: .*(?:{words})"):
                oa.from_iceberg(metadata, ["n"])
        path.write_bytes(b"PFA1")
        with self.assertRaisesRegex(oa.errors.DatasetError, "x.puffin is damaged"):
            oa.from_iceberg(metadata, ["n"])

    def test_stores(self):
        """By the names that other programs give them."""
        self.assertEqual([iceberg.path_of(path) for path in ("s3a://b/x y", "s3://b/x", "file:/x", "file:///x", "gs://b/x", "/x")],
                         ["s3://b/x y", "s3://b/x", "/x", "/x", "gs://b/x", "/x"])


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


class EqualTest(unittest.TestCase):
    def test_rows_that_have_the_values_of_others(self):
        """As Python compares them; null is null, and NaN is NaN."""
        draw, nan = random.Random(1), float("nan")
        kinds = [([None, 1, 2, 3], pyarrow.int64()), ([None, 1., nan, 2.5], pyarrow.float64()), (["a", None, "b"], pyarrow.string())]
        for _ in range(300):
            counts, cut = (draw.randint(0, 30), draw.randint(0, 9)), draw.randint(0, 30)
            some = kinds[:draw.randint(1, 3)]
            drawn = [[[draw.choice(values) for _ in range(count)] for values, _ in some] for count in counts]
            made = [[pyarrow.chunked_array([pyarrow.array(column[:cut], kind), pyarrow.array(column[cut:], kind)]) for column, (_, kind) in zip(columns, some)]
                    for columns in drawn]
            rows, keys = ([tuple("nan" if value != value else value for value in row) for row in zip(*columns)] for columns in drawn)
            self.assertEqual(iceberg._is_in(*made).tolist(), [row in keys for row in rows])


class PackagesTest(unittest.TestCase):
    def test_what_is_not_installed_is_named(self):
        for name, call, package in (("pyarrow.parquet", oa.from_delta, "pyarrow"), ("pyiceberg", oa.from_iceberg, "pyiceberg pyarrow"), ("lance", oa.from_lance, "pylance")):
            with mock.patch.dict(sys.modules, {name: None}), self.assertRaisesRegex(oa.errors.ArgumentError, f"pip install {package}"):
                call(__file__)


if __name__ == "__main__":
    unittest.main(verbosity=2)
