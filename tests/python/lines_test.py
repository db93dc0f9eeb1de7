# SPDX-License-Identifier: Apache-2.0
"""Rows of JSON Lines and CSV against a real daemon, held against Python's own json and csv, and Hugging Face's datasets where they
are installed."""

import csv
import importlib.util
import json
import pickle
import random
import sys
import types
import unittest
import unittest.mock
import warnings

try:
    import numpy as np
except ImportError as missing:
    print(f"lines_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.sources import lines
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

TEXTS = ("", "a", "two\nlines", 'a "quote", and more', "übermäßig 日本", "tab\there", "\r", " blanks ", "x" * 500)


def made(count, seed):
    """Rows: a text, a class, a number."""
    draws = random.Random(seed)
    return [{"text": draws.choice(TEXTS) + str(i), "label": i % 7, "score": draws.randrange(1000) / 8} for i in range(count)]


def tokens(row):
    return {"ids": list(row["text"].encode())[:32], "label": row["label"]}


class LinesCase(PoolCase):
    def path(self, name):
        folder = self.work / self.id()
        folder.mkdir(exist_ok=True)
        return folder / name

    def written(self, name, text, **kwargs):
        path = self.path(name)
        with open(path, "w", encoding="utf-8", newline="", **kwargs) as file:
            file.write(text)
        return path

    def csv(self, name, rows, **kwargs):
        path = self.path(name)
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), **kwargs)
            writer.writeheader()
            writer.writerows(rows)
        return path

    def got(self, rows, epochs=1, **kwargs):
        """What a Loader delivers, by sample; each once an epoch."""
        loader, seen = self.open(rows, epochs=epochs, **kwargs), {}
        count = 0
        for batch in loader:
            values = {name: value.strings() if isinstance(value, oa.Ragged) else value for name, value in batch.items()}
            for at, number in enumerate(batch.ids):
                row = {name: value[at] for name, value in values.items()}
                self.assertEqual(seen.setdefault(number, row), row)
                count += 1
        self.assertEqual(sorted(seen), list(range(len(rows.dataset))))
        self.assertEqual(count, epochs * len(seen))
        return [seen[number] for number in sorted(seen)]

    def check(self, rows, want):
        """Of a text, a label and a score."""
        got = self.got(rows)
        self.assertEqual(len(got), len(want))
        for one, other in zip(got, want, strict=True):
            self.assertEqual(one["text"], other["text"])
            self.assertEqual(one["label"], other["label"])
            self.assertEqual(one["score"], np.float32(other["score"]))


class JSONTest(LinesCase):
    def test_rows_are_those_of_the_files(self):
        want = made(300, 1)
        for number, end in enumerate(("\n", "\r\n", "\n\n", "\r\n\r\n")):
            with self.subTest(end=end):
                text = end.join(json.dumps(row, ensure_ascii=number % 2 == 0) for row in want)
                path = self.written(f"{number}.jsonl", ("\ufeff" if number == 1 else "") + text + end * (number < 3))
                self.check(oa.from_jsonl(path, ragged={"text": 2048}), want)

    def test_several_files_and_any_order(self):
        want = made(100, 2)
        for at in range(0, 100, 20):
            self.written(f"part-{at:03}.ndjson" if at == 20 else f"part-{at:03}.jsonl",
                         "".join(json.dumps(row) + "\n" for row in want[at:at + 20]))
        by_name = sorted(self.path("").iterdir(), key=lambda path: (path.name))
        self.check(oa.from_jsonl(by_name, ragged={"text": 2048}), want)
        self.check(oa.from_jsonl(str(self.path("*")), ragged={"text": 2048}), want)
        rows = oa.from_jsonl(self.path(""), ["label"])
        orders = [[int(i) for batch in self.open(rows, shuffle=shuffle, epochs=1) for i in batch.ids] for shuffle in (False, True)]
        self.assertEqual(orders[0], list(range(100)))
        self.assertEqual(sorted(orders[1]), orders[0])
        self.assertNotEqual(orders[1], orders[0])

    def test_a_transform_makes_the_samples(self):
        want = made(64, 3)
        path = self.written("rows.jsonl", "".join(json.dumps(row) + "\n" for row in want))
        loader = self.open(oa.from_jsonl(path, transform=tokens, random=False, pad={"ids": oa.Pad(32)}), shuffle=False, epochs=1)
        for batch in loader:
            for at, number in enumerate(batch.ids):
                text = list(want[number]["text"].encode())[:32]
                self.assertEqual(batch["ids_length"][at], len(text))
                self.assertEqual(list(batch["ids"][at][:len(text)]), text)

    def test_a_bad_row_is_a_bad_sample(self):
        rows = [json.dumps(row) for row in made(60, 4)]
        rows[17], rows[23], rows[41] = '{"text": ', "[1, 2]", '{"text": "no more"}'
        path = self.written("rows.jsonl", "\n".join(rows))
        loader = self.open(oa.from_jsonl(path, ["text", "label"], ragged={"text": 2048}), bad="skip", epochs=1)
        self.assertEqual(sorted(i for batch in loader for i in batch.ids), sorted(set(range(60)) - {17, 23, 41}))
        why = {bad.index: bad.error for bad in loader.bad_samples}
        self.assertEqual(sorted(why), [17, 23, 41])
        self.assertIn(f"rows.jsonl:{len(chr(10).join(rows[:17]).encode()) + 1}: no JSON", why[17])
        self.assertIn("no JSON object: [1, 2]", why[23])
        self.assertIn("no field 'label'", why[41])

    def test_files_that_are_none(self):
        with self.assertRaisesRegex(oa.errors.MissingError, "no JSON Lines file is at"):
            oa.from_jsonl(self.path("none.jsonl"))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "is compressed.*unpack it"):
            oa.from_jsonl(self.written("rows.jsonl.gz", ""))
        with self.assertRaisesRegex(oa.errors.DatasetError, "has no row"):
            oa.from_jsonl(self.written("empty.jsonl", "\n\r\n"))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "is compressed"):
            oa.from_jsonl(self.path(""))
        for wrong in ([], b"rows.jsonl"):
            with self.assertRaises(oa.errors.ArgumentError):
                oa.from_jsonl(wrong)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "transform is 3"):
            oa.from_jsonl(self.written("one.jsonl", "{}"), transform=3)

    def test_numbers_that_are_none(self):
        """As Python's json and Hugging Face's datasets read them."""
        path = self.written("rows.jsonl", "".join(f'{{"x": {x}, "n": {n}}}\n' for x, n in (("1.5", 1), ("NaN", 2), ("Infinity", 3), ("-Infinity", 4), ("2.5", "NaN"))))
        loader = self.open(oa.from_jsonl(path), bad="skip", epochs=1, shuffle=False, as_="numpy")
        got = np.concatenate([np.array(batch["x"]) for batch in loader])
        np.testing.assert_array_equal(got, np.array([1.5, np.nan, np.inf, -np.inf], "f4"))
        self.assertEqual([bad.index for bad in loader.bad_samples], [4])   # no whole number

    def test_it_is_small_and_knows_its_files(self):
        path = self.written("rows.jsonl", "".join(json.dumps(row) + "\n" for row in made(5000, 5)))
        rows = lines.JSONRows([str(path)], None)
        self.assertLess(len(pickle.dumps(rows)), 1000)
        self.assertEqual(len(pickle.loads(pickle.dumps(rows))), 5000)
        with open(path, "a", encoding="utf-8") as file:
            file.write("{}\n")
        with self.assertRaisesRegex(oa.errors.DatasetError, "was written to"):
            rows[0]

    def test_the_transforms_code_is_part_of_it(self):
        path, ids = self.written("rows.jsonl", '{"x": 1}\n'), []
        for text in ("def made(row):\n    return row\n", "def made(row):\n    return {'x': row['x'] + 1}\n"):
            module = types.ModuleType("made_by")
            module.__file__ = str(self.written("made_by.py", text))
            exec(compile(text, module.__file__, "exec"), vars(module))
            with unittest.mock.patch.dict(sys.modules, made_by=module):
                ids += [oa.from_jsonl(path, transform=module.made, columns=columns).identity(False) for columns in (None, ["x"])]
        self.assertEqual(len(set(ids)), 4)

    def test_pieces_meet_anywhere(self):
        want = made(50, 6)
        path = str(self.csv("rows.csv", want))
        whole = lines._rows_of(path, True)
        for piece in (1, 2, 3, 7, 64):
            with unittest.mock.patch.object(lines, "_PIECE", piece):
                np.testing.assert_array_equal(lines._rows_of(path, True), whole)
        self.assertEqual(len(whole[0]), 51)


class CSVTest(LinesCase):
    def test_rows_are_those_of_the_files(self):
        want = made(300, 7)
        for name, more in (("a.csv", {}), ("b.tsv", {"delimiter": "\t"}), ("c.csv", {"lineterminator": "\n", "quoting": csv.QUOTE_NONNUMERIC}),
                           ("d.csv", {"quoting": csv.QUOTE_ALL})):
            with self.subTest(name=name):
                self.check(oa.from_csv(self.csv(name, want, **more), ragged={"text": 2048}), want)
        self.check(oa.from_csv(self.csv("e.txt", want, delimiter=";"), separator=";", ragged={"text": 2048}), want)
        self.check(oa.from_csv([self.csv("f.csv", want[:100]), self.csv("g.csv", want[100:])], ragged={"text": 2048}), want)

    def test_types(self):
        rows = [{"zip": f"0{i}", "n": i, "id": 20000000 + i if i else "", "x": i / 4 if i % 3 else "", "w": "1_2", "word": "a" if i else "b", "none": ""} for i in range(40)]
        path = self.csv("rows.csv", rows)
        loaded = lines.CSVRows([str(path)], None, None, None, True)
        self.assertEqual(loaded.types, {"zip": str, "n": int, "id": str, "x": float, "w": str, "word": str, "none": str})
        self.assertEqual(loaded[5], {"zip": "05", "n": 5, "id": "20000005", "x": 1.25, "w": "1_2", "word": "a", "none": ""})
        self.assertTrue(np.isnan(loaded[3]["x"]))
        self.assertEqual(lines.CSVRows([str(path)], None, None, {"n": float, "zip": int}, True)[5]["zip"], 5)
        got = self.got(oa.from_csv(path, ["n", "x", "zip"], types={"zip": int}))
        self.assertEqual([row["n"] for row in got], list(range(40)))
        self.assertEqual([row["zip"] for row in got], list(range(40)))

    def test_numbers_that_are_none(self):
        """As pandas and Hugging Face's datasets read them."""
        words = ("nan", "NaN", "-nan", "NA", "N/A", "n/a", "null", "NULL", "None", "")
        whole = ("inf", "-inf", "+Inf", "Infinity", "-infinity")
        rows = [{"x": x, "land": "NA", "i": i} for x, i in (("1.5", 1), *((x, 2) for x in words + whole), ("-2e3", 3))]
        path = self.csv("rows.csv", rows)
        loaded = lines.CSVRows([str(path)], None, None, None, True)
        self.assertEqual(loaded.types, {"x": float, "land": str, "i": int})
        np.testing.assert_array_equal([row["x"] for row in loaded], [1.5, *[np.nan] * len(words), *(float(x) for x in whole), -2000])
        # A number of 20,000,001 things would be another one as float32: such a column is text.
        for word in ("nan", "NA", "inf"):
            path = self.csv("whole.csv", [{"n": 20000001}, {"n": word}])
            self.assertEqual(lines.CSVRows([str(path)], None, None, None, True).types, {"n": str})
        asked = lines.CSVRows([str(self.csv("asked.csv", [{"n": 1}, {"n": "NA"}]))], None, None, {"n": float}, True)
        np.testing.assert_array_equal([row["n"] for row in asked], [1, np.nan])
        loader = self.open(oa.from_csv(self.csv("later.csv", [{"n": i} for i in range(1000)] + [{"n": "NaN"}, {"n": "NA"}])), bad="skip", epochs=1)
        self.assertEqual(sum(len(batch.ids) for batch in loader), 1000)
        self.assertEqual(sorted(bad.index for bad in loader.bad_samples), [1000, 1001])

    def test_a_bad_row_is_a_bad_sample(self):
        text = "text,label\n" + "".join(f"t{i},{i}\n" for i in range(1200)) + "u,many\nv\nw,007\n"
        path = self.written("rows.csv", text)
        loader = self.open(oa.from_csv(path), bad="skip", epochs=1)
        self.assertEqual(sorted(i for batch in loader for i in batch.ids), list(range(1200)))
        why = {bad.index: bad.error for bad in loader.bad_samples}
        self.assertIn(f"rows.csv:{text.index('u,many')}: label 'many' is no int: mend it", why[1200])
        self.assertIn("1 fields, and 2 columns", why[1201])
        self.assertIn("label '007' is no int", why[1202])

    def test_a_bad_row_among_the_first(self):
        loader = self.open(oa.from_csv(self.written("rows.csv", "a,b\n1,2\n3\n4,5\n")), bad="skip", bad_budget=2, epochs=1)
        self.assertEqual(sorted(i for batch in loader for i in batch.ids), [0, 2])

    def test_a_name_in_the_place_of_a_picture(self):
        path = self.csv("files.csv", [{"image": "a.jpg", "cat": 0, "dog": 1}, {"image": "b.jpg", "cat": 1, "dog": 0}])
        with self.assertRaisesRegex(oa.errors.DatasetError, r"field image .* is a str; .*for the name of a file give its bytes, or a table of files"):
            oa.Loader(oa.from_csv(path, ["image", "cat"]), oa.imagenet_train(32), 2, socket=self.socket)

    def test_long_fields_and_quotes_that_are_text(self):
        want = [{"text": "x" * 200000, "n": 1}, {"text": "y", "n": 2}]
        self.assertEqual(lines.CSVRows([str(self.csv("long.csv", want))], None, None, None, True)[0], want[0])
        path = self.written("rows.tsv", 'text\tn\n"Hello\t1\n5" pipe\t2\n')
        with self.assertRaisesRegex(oa.errors.DatasetError, "the last one is at byte 19.*quotes=False"):
            oa.from_csv(self.written("open.tsv", 'text\tn\n"Hello\t1\n5" "pipe\t2\n'))
        self.assertEqual([row["text"] for row in self.got(oa.from_csv(path, quotes=False, ragged={"text": 100}))], ['"Hello', '5" pipe'])

    def test_files_that_are_none(self):
        for text, why in (("", "is empty"), ("a,a\n1,2\n", "each differently"), ("a,\n1,2\n", "each differently"),
                          ("a,b\n", "has no row"), ('a,b\n1,"2\n', "never closed"), ("a,b\xff\n", None)):
            with self.subTest(text=text):
                path = self.path("rows.csv")
                path.write_bytes(text.encode("latin-1"))
                with self.assertRaisesRegex(oa.errors.DatasetError, why or "names no columns"):
                    oa.from_csv(path)
        good = self.written("good.csv", "a,b\n1,2\n")
        with self.assertRaisesRegex(oa.errors.DatasetError, "has other columns than .*good.csv: b, a; there: a, b"):
            oa.from_csv([good, self.written("other.csv", "b,a\n1,2\n")])
        for wrong in ({"separator": ", "}, {"types": {"c": int}}, {"types": {"a": bool}}, {"types": [int]}):
            with self.subTest(wrong=wrong), self.assertRaises(oa.errors.ArgumentError):
                oa.from_csv(good, **wrong)


@unittest.skipUnless(importlib.util.find_spec("datasets"), "no package datasets")
class DatasetsTest(LinesCase):
    def test_as_they_read_them(self):
        import datasets
        want = made(200, 8)
        path = self.written("rows.jsonl", "".join(json.dumps(row) + "\n" for row in want))
        theirs = datasets.load_dataset("json", data_files=str(path), split="train")
        self.check(oa.from_jsonl(path, ragged={"text": 2048}), list(theirs))
        path = self.csv("rows.csv", want)
        theirs = datasets.load_dataset("csv", data_files=str(path), split="train", keep_default_na=False)
        self.check(oa.from_csv(path, ragged={"text": 2048}), list(theirs))


if __name__ == "__main__":
    unittest.main()
