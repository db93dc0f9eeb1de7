# SPDX-License-Identifier: Apache-2.0
"""where= of tables: which rows there are is what pyarrow itself says of the same filter."""

import csv
import json
import pickle
import sys
import unittest
import warnings
from unittest import mock

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as missing:
    print(f"where_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.sources import tables
from support import PoolCase, needs

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

COUNT = 1000
FILTERS = [
    [("score", ">", 5)],
    [("score", ">", 5), ("width", ">=", 512), ("lang", "==", "en")],
    [[("score", "<", 2)], [("lang", "in", ["de", "fr"]), ("width", "<", 400)]],
    [("lang", "!=", "en")],
    [("lang", "not in", ["en"])],
    [("id", ">=", 995)],
    pc.field("score") > 5,
    pc.field("score").is_null(),
    ~(pc.field("score") > 5) | (pc.field("id") == 0),
    (pc.field("width") * 2 > pc.field("id")) & pc.field("lang").isin(["en", "fr"]),
    pc.field("at", "x") > 900,
    pc.match_substring(pc.field("lang"), "e"),
]


def twice(rows):
    return {"twice": [2 * number for number in rows["id"]]}


def table(count=COUNT):
    rng = np.random.default_rng(3)
    scores = rng.uniform(0, 10, count)
    return pa.table({
        "id": np.arange(count),
        "score": pa.array(scores, mask=scores < 1),
        "width": rng.integers(64, 1024, count).astype("int32"),
        "lang": pa.array([["en", "de", "fr", None][number] for number in rng.integers(0, 4, count)]),
        "at": pa.array([{"x": number} for number in range(count)]),
    })


class WhereCase(PoolCase):
    def ids(self, dataset, name="id", **options):
        loader = self.open(dataset, as_="numpy", copy=True, **{"shuffle": False, **options})
        found = [(batch[name].tolist(), list(batch.ids)) for batch in loader]
        self.assertEqual(sorted(each for _, ids in found for each in ids), list(range(len(dataset))))
        return [each for values, _ in found for each in values]

    def refused(self, words, call, *args, error=oa.errors.ArgumentError, **options):
        with self.assertRaisesRegex(error, words):
            call(*args, **options)


class ParquetTest(WhereCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.work / "parts"
        cls.folder.mkdir()
        for part in range(3):
            pq.write_table(table().slice(part * 400, 400), cls.folder / f"{part}.parquet", row_group_size=64)

    def test_rows_are_those_of_pyarrow(self):
        for where in FILTERS:
            with self.subTest(where=str(where)):
                want = pq.read_table(self.folder, filters=where, columns=["id"]).column("id").to_pylist()
                rows = tables.ParquetRows(tables.files_of(self.folder), ["id"], 1 << 20, where=where)
                self.assertEqual([row["id"] for row in rows.__getitems__(range(len(rows)))], want)
                self.assertEqual(rows.rows_of(range(len(rows))).tolist(), want)
                self.assertEqual(rows[-1]["id"], want[-1])
                again = pickle.loads(pickle.dumps(rows))
                self.assertEqual([row["id"] for row in again.__getitems__(range(len(rows)))], want)

    def test_batches(self):
        where = [("score", ">", 5), ("lang", "in", ["en", "de"])]
        want = pq.read_table(self.folder, filters=where).column("id").to_pylist()
        dataset = oa.from_parquet(self.folder, ["id", "width"], where=where, keep=0.2)
        self.assertEqual(self.ids(dataset), want)
        small = oa.from_parquet(self.folder, ["id"], where=where, cache=300, keep=0.2)
        self.assertLess(small.dataset.blocks.window, len(small.dataset.blocks.starts))
        order = self.ids(small, shuffle="blocks", seed=4)
        self.assertNotEqual(order, want)
        self.assertEqual(sorted(order), want)

    def test_a_state(self):
        dataset = oa.from_parquet(self.folder, ["id"], where=[("width", ">", 512)], cache=300, keep=0.2)
        loader = self.open(dataset, as_="numpy", copy=True, shuffle="blocks", seed=4)
        batches = iter(loader)
        first = [next(batches)["id"].tolist() for _ in range(3)]
        again = self.open(dataset, as_="numpy", copy=True, shuffle="blocks", seed=4, state=loader.state_dict())
        rest = [batch["id"].tolist() for batch in again]
        self.assertEqual(rest, [batch["id"].tolist() for batch in batches])
        self.assertEqual(sorted(sum(first + rest, [])), pq.read_table(self.folder, filters=[("width", ">", 512)]).column("id").to_pylist())
        self.assertEqual(loader.dataset.rows_of([0, 1]).tolist(), sorted(sum(first + rest, []))[:2])

    def test_other_filters_share_nothing(self):
        """Also where a name tells data sets from others; and the same rows are the same data set."""
        for options in {}, {"name": "laion", "version": "7"}:
            one, same, other, whole = (oa.from_parquet(self.folder, ["id"], where=where, **options).identity(False)
                                       for where in ([("id", "<", 500)], pc.field("id") < 500, [("id", ">=", 500)], None))
            self.assertEqual(one, same)
            self.assertEqual(len({one, other, whole}), 3)
            groups = [oa.from_parquet(self.folder, ["id"], where=[("id", "==", number)], **options).identity(False) for number in (0, 64, 128, 192)]
            self.assertEqual(len({*groups}), 4)     # the first row of each row group

    def test_what_is_not_read(self):
        """Row groups that the statistics exclude, and columns that the filter is not about."""
        read, cleanup = [], self.addCleanup

        class Spied:
            def __init__(self, path):
                self._file, self.closed = open(path, "rb"), False
                self.close = self._file.close
                cleanup(self.close)

            def read(self, size=-1):
                read.append((self._file.tell(), size))
                return self._file.read(size)

            def __getattr__(self, name):
                return getattr(self._file, name)

        path = self.work / "large.parquet"
        pq.write_table(pa.table({"id": np.arange(8000), "picture": [np.random.default_rng(1).bytes(500)] * 8000}), path, row_group_size=1000, use_dictionary=False,
                       compression="none")
        with mock.patch.object(tables.urls, "opened", Spied):
            rows = tables.ParquetRows([str(path)], ["id", "picture"], 1 << 20, where=[("id", ">=", 7990)])
        self.assertEqual((len(rows), rows.groups), (10, [(0, 7)]))
        self.assertLess(sum(size for _, size in read), 200_000)     # of 4 MB
        self.assertEqual([row["id"] for row in rows.__getitems__(range(10))], [*range(7990, 8000)])

    def test_refused(self):
        for words, where in (("No match for FieldRef.Name\\(nope\\).*Its columns: id \\(int64\\), score", [("nope", ">", 5)]),
                             ("does not fit .*0.parquet: .*string", pc.field("lang") > 5),
                             ("chooses none of the 1,000 rows of .*0.parquet and 2 more", [("id", ">", 5000)]),
                             ("chooses none", [("score", ">", 10)]),
                             ("list of tuples", [("id", ">")]),
                             ("list of tuples", "id > 5"),
                             ("list of tuples", []),
                             ("list of tuples", [("id", "about", 5)]),
                             ("is int64 of each row, and must be true or false", pc.field("id") + 1)):
            self.refused(words, oa.from_parquet, self.folder, ["id"], where=where)


class LakeTest(WhereCase):
    def test_columns_in_the_names_of_delta(self):
        folder = self.work / self.id()
        (folder / "_delta_log").mkdir(parents=True)
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in (("n", "long"), ("day", "string"), ("shop", "integer"))]
        log = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["day", "shop"]}}]
        for number, day in enumerate(("monday", "tuesday", None)):
            rows = {"n": np.arange(100 * number, 100 * number + 50), **({"shop": np.full(50, 7 + number)} if number == 2 else {})}   # the log's is the right one
            pq.write_table(pa.table(rows), folder / f"{number}.parquet", row_group_size=16)
            log.append({"add": {"path": f"{number}.parquet", "partitionValues": {"day": day, "shop": str(number)}}})
        (folder / "_delta_log" / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in log))
        for where, want in (([("day", "==", "tuesday")], range(100, 150)),
                            ([("shop", ">=", 1), ("n", "<", 210)], [*range(100, 150), *range(200, 210)]),
                            ([("shop", "==", 2)], range(200, 250)),
                            (pc.field("day").is_null() & (pc.field("n") > 240), range(241, 250)),
                            ([("day", "!=", "monday"), ("n", ">", 120)], range(121, 150))):
            with self.subTest(where=str(where)):
                self.assertEqual(self.ids(oa.from_delta(folder, ["n"], where=where, keep=0.2), "n"), [*want])
        self.refused("No match for FieldRef.Name\\(month\\).*day \\(string\\)", oa.from_delta, folder, ["n"], where=[("month", "==", 1)])

    @needs("lance")
    def test_lance(self):
        import lance
        path = str(self.work / "rows.lance")
        data = table().drop(["at"])
        lance.write_dataset(data, path, max_rows_per_file=300)
        lance.dataset(path).delete("id % 10 = 3")
        left = data.filter(pc.field("id").isin([number for number in range(COUNT) if number % 10 != 3]))
        for where in FILTERS[:10]:
            with self.subTest(where=str(where)):
                expression = pq.filters_to_expression(where)
                want = left.filter(expression).column("id").to_pylist()
                self.assertEqual(self.ids(oa.from_lance(path, ["id"], where=where, keep=0.2)), want)
        self.refused("FieldRef.Name\\(nope\\)", oa.from_lance, path, ["id"], where=[("nope", ">", 5)])
        self.refused("chooses none of the 900 rows", oa.from_lance, path, ["id"], where=[("id", ">", 5000)])

    @needs("datasets")
    def test_hugging_face(self):
        import datasets
        whole = datasets.Dataset.from_list(table().to_pylist())
        for dataset in whole, whole.shuffle(seed=2).select(range(700)):
            for where in FILTERS:
                with self.subTest(where=str(where)):
                    want = dataset.with_format("arrow")[:].filter(pq.filters_to_expression(where)).column("id").to_pylist()
                    self.assertEqual(oa.from_hf(dataset, ["id"], where=where).dataset.dataset[:].column("id").to_pylist(), want)
        self.assertEqual(self.ids(oa.from_hf(whole, ["id"], where=[("id", "<", 40)], keep=0.2)), [*range(40)])
        whole.set_transform(twice)
        self.assertEqual(self.ids(oa.from_hf(whole, where=[("id", ">", 970)], keep=0.2), "twice"), [*range(1942, 2000, 2)])
        self.refused("FieldRef.Name\\(nope\\)", oa.from_hf, whole, ["id"], where=[("nope", ">", 5)])


class LinesTest(WhereCase):
    """As pyarrow has the same rows in a table."""

    def write(self, write, suffix):
        folder, data = self.work / self.id(), table()
        folder.mkdir()
        for part in range(3):
            write(data.slice(part * 400, 400).to_pylist(), folder / f"{part}{suffix}")
        return folder, data

    def check(self, call, folder, data, filters):
        for where in filters:
            with self.subTest(where=str(where)):
                want = data.filter(pq.filters_to_expression(where)).column("id").to_pylist()
                dataset = call(folder, ["id"], where=where, keep=0.2)
                self.assertEqual(dataset.dataset.dataset.rows_of(range(len(dataset))).tolist(), want)
                self.assertEqual([dataset.dataset[index]["id"] for index in range(len(dataset))], want)
                again = pickle.loads(pickle.dumps(dataset.dataset))
                self.assertEqual([again[index]["id"] for index in range(len(dataset))], want)
        self.assertEqual(self.ids(call(folder, ["id"], where=[("id", ">", 390)], keep=0.2)), [*range(391, COUNT)])
        self.refused("FieldRef.Name\\(nope\\)", call, folder, where=[("nope", ">", 5)])
        self.refused("chooses none of the 1,000 rows", call, folder, where=[("id", ">", 5000)])
        one, other = (call(folder, ["id"], where=[("id", sign, 500)], name="rows").identity(False) for sign in ("<", ">="))
        self.assertNotEqual(one, other)

    def test_json_lines(self):
        folder, data = self.write(lambda rows, path: path.write_text("".join(
            json.dumps({name: value for name, value in row.items() if value is not None}) + "\n\n" for row in rows)), ".jsonl")
        self.check(oa.from_jsonl, folder, data, FILTERS)

    def test_csv(self):
        def write(rows, path):
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["id", "score", "width", "lang"])
                writer.writerows([row["id"], row["score"], row["width"], row["lang"] or "(none)"] for row in rows)
        folder, data = self.write(write, ".csv")
        data = data.set_column(3, "lang", pc.fill_null(data.column("lang"), "(none)"))
        self.check(oa.from_csv, folder, data, [where for where in FILTERS if "at" not in str(where)])

    def test_rows_that_cannot_be_read_stay(self):
        path = self.work / "broken.jsonl"
        path.write_text("".join('{"id": 3,\n' if number in (13, 16) else json.dumps({"id": number}) + "\n" for number in range(20)))
        dataset = oa.from_jsonl(path, where=[("id", ">=", 10)], keep=0.2)
        self.assertEqual(len(dataset), 10)      # of those that are broken nobody knows
        loader = self.open(dataset, as_="numpy", copy=True, shuffle=False, bad="skip")
        self.assertEqual([each for batch in loader for each in batch["id"].tolist()], [10, 11, 12, 14, 15, 17, 18, 19])
        self.assertEqual([bad.index for bad in loader.bad_samples], [3, 6])

    def test_types_that_differ(self):
        path = self.work / "differ.jsonl"
        path.write_text("".join(json.dumps({"id": number if number < 1500 else str(number)}) + "\n" for number in range(2000)))
        self.refused("differ.jsonl, of its rows from 1000 on: id has values of different types", oa.from_jsonl, path, where=[("id", ">=", 10)])


if __name__ == "__main__":
    unittest.main()
