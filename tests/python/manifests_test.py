# SPDX-License-Identifier: Apache-2.0
"""Manifests: tables whose rows name pictures, against the folder that has them."""

import csv
import json
import os
import unittest
import warnings

import numpy
import oneaccess as oa
import support

PIPELINE = '[{"op": "decode"}, {"op": "random_resized_crop", "size": 32}]'
ORDER = {"order": "sequential", "seed": 3, "epochs": 1, "as_": "numpy"}


class ManifestsTest(support.DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.classes = sorted(os.listdir(cls.data))
        cls.rows = [(os.path.join(name, file), name) for name in cls.classes
                    for file in sorted(os.listdir(os.path.join(cls.data, name)))]
        cls.folder = cls.batches(cls.data)

    @classmethod
    def batches(cls, dataset, **options):
        with oa.Loader(dataset, PIPELINE, 32, socket=cls.socket, **{**ORDER, **options}) as loader:
            return [(batch[0].copy(), batch[1].copy()) for batch in loader]

    def assert_same(self, dataset, **options):
        mine = self.batches(str(dataset), **options)
        self.assertEqual(len(mine), len(self.folder))
        for (pictures, labels), (of_folder, labels_of_folder) in zip(mine, self.folder):
            numpy.testing.assert_array_equal(pictures, of_folder)
            numpy.testing.assert_array_equal(labels, labels_of_folder)

    def refused(self, dataset, words, **options):
        with self.assertRaises(oa.errors.DatasetError) as caught:
            self.batches(str(dataset), **options)
        self.assertIn(words, str(caught.exception))

    def write(self, name, rows, header=("file_name", "label"), **dialect):
        path = self.work / name
        path.parent.mkdir(exist_ok=True)
        with open(path, "w", newline="", encoding=dialect.pop("encoding", "utf-8")) as file:
            writer = csv.writer(file, **dialect)
            if header:
                writer.writerow(header)
            writer.writerows(rows)
        return path

    def below(self):
        """As they lie below the folder that manifests of this test are in."""
        return [("data/" + path, name) for path, name in self.rows]

    def test_csv_with_words_for_classes(self):
        path = self.write("words.csv", self.below())
        for _ in range(2):  # the second time by the stored index
            self.assert_same(path)
        with oa.Loader(str(path), PIPELINE, 32, socket=self.socket, **ORDER) as loader:
            self.assertEqual(loader.classes, self.classes)

    def test_numbers_for_classes(self):
        numbers = {name: label for label, name in enumerate(self.classes)}
        path = self.write("numbers.csv", [(path, numbers[name]) for path, name in self.below()])
        self.assert_same(path)
        self.assertEqual(sum(len(labels) for _, labels in self.batches(str(path), classes=["1"])), support.SAMPLES // 3)

    def test_other_columns_whole_paths_tabs_and_a_mark(self):
        rows = [(3.5, name, "a \"b\"\r\nc,\td", os.path.join(self.data, path)) for path, name in self.rows]
        for name, dialect in (("other.tsv", {"delimiter": "\t"}), ("other.CSV", {}), ("bom.csv", {"encoding": "utf-8-sig"}),
                              ("quoted.csv", {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"})):
            path = self.write(name, rows, ("score", "kind", "text", "photo"), **dialect)
            self.assert_same(path, source={"path": "photo", "label": "kind"})
            self.refused(path, f"{name}:1: no column is called file_name or path: name the pictures' by ?path=COLUMN, or read rows without by oneaccess.from_csv(); there"
                               " are: score, kind, text, photo")
            self.refused(path, f"{name}:1: no column is called sort; there are: score", source={"path": "photo", "label": "sort"})

    def test_jsonl(self):
        path = self.work / "metadata.jsonl"
        path.write_text("".join(json.dumps({"file_name": file, "text": "a\n", "label": name, "more": {"a": [1.5, None]}}) + "\r\n"
                                for file, name in self.below()) + "\n")
        self.assert_same(path)
        path.write_text('{"file_name": "data/x.jpg"}\n{"file_name": 3}\n')
        self.refused(path, "metadata.jsonl:2: (file_name) is empty")
        path.write_text('{"file_name": "data/x.jpg"}\n{"file_name": \n')
        self.refused(path, "metadata.jsonl:2: ")

    def test_dataset_json_of_stylegan(self):
        folder = self.work / "stylegan"
        numbers = {name: label for label, name in enumerate(self.classes)}
        pairs = []
        for at, (path, name) in enumerate(self.rows):    # as dataset_tool.py has them
            file = f"{at // 10:05}/img{at:08}.png"
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            os.link(os.path.join(self.data, path), folder / file)
            pairs.append([file, numbers[name]])
        (folder / "dataset.json").write_text(json.dumps({"labels": pairs}))
        self.assert_same(folder / "dataset.json")
        with self.assertWarnsRegex(UserWarning, "dataset.json has labels, and a folder's labels are the folders in it: .*give Loader.. its path"):
            self.batches(str(folder))
        for change, words in ((lambda: pairs[7].append(3), "dataset.json:1: it is no pair of a file"),
                              (lambda: pairs.__setitem__(7, ["00000/none.png", 1]), 'dataset.json:1: "00000/none.png" is not there')):
            change()
            (folder / "dataset.json").write_text(json.dumps({"labels": pairs}))
            self.refused(folder / "dataset.json", words)
        (folder / "dataset.json").write_text('{"labels": null}')
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.batches(str(folder))
        self.refused(folder / "dataset.json", "it does not begin with")

    def test_several_each_beside_its_pictures(self):
        for number, name in enumerate(self.classes):
            with open(os.path.join(self.data, name, "list.csv"), "w") as file:
                file.write("path,label\n" + "".join(f"{os.path.basename(path)},{number}\n"
                                                    for path, of in self.rows if of == name))
        self.assert_same(f"{self.data}/{{{','.join(self.classes)}}}/list.csv")
        self.assertEqual(len(self.batches(os.path.join(self.data, self.classes[1], "list.csv"))[0][0]), 32)

    def test_an_order_of_its_own_and_a_picture_twice(self):
        rows = list(reversed(self.below())) + self.below()[:5]
        found = self.batches(str(self.write("twice.csv", rows)))
        labels = numpy.concatenate([labels for _, labels in found])
        self.assertEqual([self.classes[label] for label in labels], [name for _, name in rows])

    def test_each_once_in_any_order(self):
        path = self.write("any.csv", self.below())
        with oa.Loader(str(path), PIPELINE, 16, socket=self.socket, order="carousel") as loader:
            for _ in range(2):
                ids = [number for batch in loader for number in batch.ids.tolist()]
                self.assertEqual(sorted(ids), list(range(support.SAMPLES)))

    def test_labels_by_another_name(self):
        """Who has other columns is told that none is taken for the label, once."""
        rows = [(path, name, 7) for path, name in self.below()]
        kinds = (("other.csv", self.write("other.csv", rows, ("file_name", "species", "age"))),
                 ("other.tsv", self.write("other.tsv", rows, ("file_name", "species", "age"), delimiter="\t")), ("other.jsonl", self.work / "other.jsonl"))
        kinds[2][1].write_text("".join(json.dumps({"file_name": path, "species": name, "age": 7}) + "\n" for path, name, _ in rows))
        for name, path in kinds:
            with self.subTest(name), self.assertWarnsRegex(UserWarning, "so all labels are 0; it has file_name, species, age: ") as caught:
                self.batches(str(path))
            self.assertEqual((len(caught.warnings), caught.filename), (1, __file__))
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("error")
                self.batches(str(path), source={"label": "species"})
                self.batches(f"{path}?label=age")
        for name, columns in ("bare.csv", ("file_name",)), ("with.csv", ("file_name", " class ")):
            with self.subTest(columns), warnings.catch_warnings():
                warnings.simplefilter("error")
                self.batches(str(self.write(name, [row[:len(columns)] for row in rows], columns)))

    def test_without_labels(self):
        path = self.write("bare.csv", [(path,) for path, _ in self.below()], ("file_name",))
        self.assertEqual({int(label) for _, labels in self.batches(str(path)) for label in labels}, {0})

    def test_labels_that_are_no_classes(self):
        rows = [list(row) for row in self.below()]
        for value, words in (("3.0", "labels.csv:3: (label) is no class: classes are whole numbers"),
                             ("-2", "labels.csv:3: (label) is no class"), ("0.25", "several labels of a row, come by oneaccess.from_csv()"),
                             ("99999999", "is beyond 16777215"),
                             ("x" * 256, "labels.csv:3: (label) is longer than 255 bytes"),
                             ("", f"sample labels.csv:3 ({rows[1][0]}) has no label, and labels.csv:2 ({rows[0][0]}) has one")):
            rows[1][1] = value
            self.refused(self.write("labels.csv", rows), words)

    def test_rows_that_are_wrong(self):
        path = self.work / "rows.csv"
        first = self.below()[0][0]
        for text, words in (("", "no row but the columns' names"), ("file_name,label\n", "no row but the columns' names"),
                            (f"file_name\n{first}\ndata/no.jpg\n", 'rows.csv:3: "data/no.jpg" is not there'),
                            (f"file_name\n\n{first}\n\"da\nta\"\nno\n", 'rows.csv:4: "da\\x0ata" is not there'),
                            ("file_name\ndata\n", 'rows.csv:2: "data" is no regular file'),
                            ("file_name,label\na,b,c\n", "rows.csv:2: it has 3 fields, and the first row names 2 columns"),
                            ("file_name,label\n\"a,b\n", "rows.csv:2: a quote is opened here and never closed"),
                            ("file_name,label\n\"a\"b,c\n", "rows.csv:2: something follows a closing quote"),
                            ("file_name,file_name\na,b\n", "rows.csv:1: (file_name) two columns have this name")):
            path.write_text(text)
            self.refused(path, words)
        path.write_bytes("file_name\na\n".encode("utf-16"))
        self.refused(path, "rows.csv:1: it is UTF-16: save it as UTF-8")
        path.write_bytes(b"file_name,label\na,\xe4\n")
        self.refused(path, "rows.csv:2: (label) is no UTF-8")

    def test_the_first_row_that_is_wrong(self):
        """Of 20 blocks of rows, which several threads look at: the last row of the first one, the first ones of all others."""
        rows = [("data/no.jpg" if row % 256 == 0 and row else self.below()[row % 200][0],) for row in range(20 * 256)]
        rows[255] = ("data/first.jpg",)
        path = self.write("first.csv", rows, ("file_name",))
        for _ in range(3):
            self.refused(path, 'first.csv:257: "data/first.jpg" is not there')

    def test_pictures_and_manifests_that_change(self):
        folder = self.work / "changing"
        folder.mkdir()
        for file, _ in self.rows[:64]:
            with open(os.path.join(self.data, file), "rb") as picture:
                (folder / os.path.basename(file)).write_bytes(picture.read())
        names = sorted(os.listdir(folder))
        path = self.write("changing/list.csv", [(name, 1) for name in names])
        self.assertEqual(sum(len(labels) for _, labels in self.batches(str(path))), len(names))
        os.utime(folder / names[5], ns=(1, 1))
        with self.assertRaisesRegex(oa.errors.Error, f"{names[5]}.*was written to since it was listed"):
            self.batches(str(path), order="seeded")
        self.assertEqual(sum(len(labels) for _, labels in self.batches(str(path))), len(names))
        self.write("changing/list.csv", [(name, 1) for name in names[:40]])
        self.assertEqual(sum(len(labels) for _, labels in self.batches(str(path))), 40)

    def test_path_of_a_bad_sample(self):
        odd = self.work / "odd.jpg"
        odd.write_bytes(b"no picture")
        for name in ("odd.jpg", str(odd)):
            path = self.write("odd.csv", [(name, 0)] + [(file, 1) for file, _ in self.below()])
            with oa.Loader(str(path), PIPELINE, 32, socket=self.socket, bad="skip", **ORDER) as loader:
                self.assertEqual(sum(len(batch[1]) for batch in loader), support.SAMPLES)
                self.assertEqual([bad.path for bad in loader.bad_samples], [str(odd)])
            for options in ({}, {"source": {"path": "file_name"}}):
                with self.assertRaises(oa.errors.SampleError) as caught:
                    self.batches(str(path), **options)
                self.assertIn(f"sample 0, {odd}, stage decode", str(caught.exception))

    def test_compressed(self):
        path = self.work / "a.csv.gz"
        path.write_bytes(b"\x1f\x8b")
        self.refused(path, "compressed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
