# SPDX-License-Identifier: Apache-2.0
"""Data sets written by Writer: read back equal, with and without images, of several processes, after kills."""

import io
import json
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np
from PIL import Image

import oneaccess as oa
from oneaccess.errors import ArgumentError, DatasetError, StateError
from support import PoolCase

COLUMNS = {"image": "png", "label": "int64", "caption": "text", "boxes": ("float32", [-1, 4]), "latent": ("float16", [2, 3]), "score": "float64", "tags": ("int32", [-1]),
           "small": "int16", "file": "bytes"}
WHERE = os.path.dirname(os.path.abspath(__file__))


def picture(number):
    return np.random.RandomState(number).randint(0, 255, (9 + number % 3, 8, 3), dtype=np.uint8)


def sample(number):
    return {"image": picture(number), "label": number % 5, "caption": "ü" * (number % 4), "boxes": np.array([[at, at, at + 3, at + 4.5] for at in range(number % 3)], np.float32).reshape(-1, 4),
            "latent": np.full((2, 3), number / 2, np.float16), "score": number / 3, "tags": list(range(number % 6)), "small": -number, "file": b"x" * (1 + number % 9)}


def write(folder, numbers, **said):
    with oa.Writer(folder, COLUMNS, shard_size=2000, **said) as out:
        for number in numbers:
            out.write(sample(number))


def pipeline():
    return oa.Compose([oa.transforms.CenterCrop(8), oa.transforms.PILToTensor()])


class WriterTest(PoolCase):
    def setUp(self):
        self.folder = str(self.work / self.id().rpartition(".")[2])

    def numbers(self, dataset, *args, **kwargs):
        """Of one epoch, all of whose samples are what was written."""
        numbers = []
        for batch in self.open(dataset, *args, **{"as_": "numpy", "epochs": 1, **kwargs}):
            for at, score in enumerate(batch["score"]):
                number = round(3 * score)
                wanted = sample(number)
                for name in ("label", "boxes", "latent", "score", "small"):
                    np.testing.assert_array_equal(batch[name][at], wanted[name], name)
                self.assertEqual(batch["caption"][at], wanted["caption"])
                self.assertEqual(list(batch["tags"][at]), wanted["tags"])
                self.assertEqual(bytes(batch["file"][at]), wanted["file"])
                self.check_image(batch["image"][at], wanted["image"], bool(args))
                numbers.append(number)
        return numbers

    def check_image(self, image, wanted, is_decoded):
        if not is_decoded:
            image = np.asarray(Image.open(io.BytesIO(bytes(image))))
            np.testing.assert_array_equal(image, wanted)
            return
        top = int(round((len(wanted) - 8) / 2.0))
        np.testing.assert_array_equal(image, wanted[top:top + 8].transpose(2, 0, 1))

    def test_read_back(self):
        write(self.folder, range(100))
        self.assertGreater(len([name for name in os.listdir(self.folder) if name.endswith(".mds")]), 5)
        self.assertEqual(self.numbers(self.folder, shuffle=False), list(range(100)))
        self.assertEqual(self.numbers(self.folder, pipeline(), shuffle=False), list(range(100)))
        self.assertEqual(sorted(self.numbers(self.folder, pipeline())), list(range(100)))
        for batch in self.open(oa.written(self.folder, ["image", "label", "boxes"], boxes="boxes"), pipeline(), as_="numpy", epochs=1):
            self.assertEqual(list(batch), ["image", "label", "boxes"])
            for number, boxes in zip(batch.ids, batch["boxes"]):
                wanted = sample(number)["boxes"] - [0, top := int(round((number % 3 + 1) / 2.0)), 0, top]
                np.testing.assert_array_equal(boxes, np.clip(wanted, 0, 8).astype(np.float32))

    def test_several_processes(self):
        program = f"import sys; sys.path.insert(0, {WHERE!r}); import writer_test as w; part = int(sys.argv[1]); w.write({self.folder!r}, range(30 * part, 30 * part + 30), part=part, parts=3)"
        several = [subprocess.Popen([sys.executable, "-c", program, str(part)]) for part in range(3)]
        self.assertEqual([one.wait() for one in several], [0, 0, 0])
        self.assertFalse(os.path.exists(f"{self.folder}/.writing"))
        self.assertEqual(self.numbers(self.folder, shuffle=False), list(range(90)))

    def test_a_kill(self):
        program = (f"import sys; sys.path.insert(0, {WHERE!r}); import writer_test as w, oneaccess as oa; out = oa.Writer({self.folder!r}, w.COLUMNS, shard_size=2000, part=1, parts=2)\n"
                   "for number in range(30): out.write(w.sample(number))\n"
                   "print('there', flush=True); sys.stdin.read()")
        one = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(one.stdin.close)
        self.addCleanup(one.stdout.close)
        self.assertEqual(one.stdout.readline(), "there\n")
        with self.assertRaises(StateError) as caught:
            oa.Writer(self.folder, COLUMNS, part=1, parts=2)
        self.assertIn("by another process", str(caught.exception))
        one.kill()
        one.wait()
        write(self.folder, range(20), part=0, parts=2)
        with self.assertRaises(DatasetError) as caught:
            self.open(self.folder, pipeline())
        self.assertIn("part 1 was not closed", str(caught.exception))
        write(self.folder, range(20, 50), part=1, parts=2)
        self.assertEqual(self.numbers(self.folder, pipeline(), shuffle=False), list(range(50)))

    def test_a_kill_while_parts_become_one(self):
        write(self.folder, range(20), part=0, parts=2)
        held = os.rename
        moved = []

        def dies(*args):
            if len(moved) == 2:
                raise KeyboardInterrupt
            moved.append(args)
            held(*args)
        os.rename = dies
        try:
            with self.assertRaises(KeyboardInterrupt):
                write(self.folder, range(20, 40), part=1, parts=2)
        finally:
            os.rename = held
        with self.assertRaises(DatasetError):
            self.open(self.folder, pipeline())
        with self.assertRaises(StateError) as caught:
            oa.Writer(self.folder, COLUMNS, part=0, parts=2)        # which finishes it
        self.assertIn("is written already", str(caught.exception))
        self.assertEqual(self.numbers(self.folder, pipeline(), shuffle=False), list(range(40)))

    def test_what_was_the_work_is_left_where_it_cannot_be_removed(self):
        """As by NFS, on which a file that is open stays."""
        held = shutil.rmtree
        shutil.rmtree = lambda *args, **kwargs: None
        self.addCleanup(setattr, shutil, "rmtree", held)
        write(self.folder, range(20))
        self.assertEqual(self.numbers(self.folder, pipeline(), shuffle=False), list(range(20)))
        with self.assertRaises(StateError):
            oa.Writer(self.folder, COLUMNS)

    def test_images_that_have_no_place_in_a_file(self):
        for columns, image in (({"image": "jpeg"}, Image.new("RGBA", (8, 8))), ({"image": "png"}, np.zeros((3, 8, 8), np.uint8)), ({"image": "png"}, np.zeros((8, 8, 2, 2), np.uint8))):
            with self.assertRaises(ArgumentError) as caught, oa.Writer(self.folder, columns) as out:
                out.write({"image": image})
            self.assertIn("arrays as [H, W, C]", str(caught.exception))

    def test_what_cannot_be_is_refused(self):
        for columns, text in (({}, "1 to 20 columns"), ({"a b": "text"}, "a name has"), ({"x": "bool"}, "a type of numbers"), ({"x": ("float32", [2, -1])}, "a type of numbers")):
            with self.assertRaises(ArgumentError) as caught:
                oa.Writer(self.folder, columns)
            self.assertIn(text, str(caught.exception))
        out = oa.Writer(self.folder, COLUMNS)
        for change, text in (({"label": 1.5}, "int64 has no room for"), ({"small": 1 << 15}, "int16 has no room for"), ({"caption": b"x"}, "is text"), ({"file": "x"}, "is bytes"),
                             ({"boxes": np.zeros((2, 3))}, "is to have (-1, 4)"), ({"latent": np.zeros((3, 2))}, "is to have (2, 3)"), ({"more": 1}, "the columns are image")):
            with self.assertRaises(ArgumentError) as caught:
                out.write({**sample(1), **change})
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(DatasetError) as caught:
            out.close()
        self.assertIn("has no sample", str(caught.exception))
        with self.assertRaises(StateError):
            out.write(sample(1))
        with self.assertRaises(StateError) as caught:
            oa.Writer(self.data, COLUMNS)
        self.assertIn("has files already", str(caught.exception))
        whole = self.folder + "-whole"
        write(whole, range(3))
        with open(f"{whole}/fields.json", "r+", encoding="utf-8") as file:
            head = json.load(file)
            file.seek(0)
            json.dump({**head, "version": 9}, file)
            file.truncate()
        with self.assertRaises(DatasetError) as caught:
            oa.Loader(whole)
        self.assertIn("of version 9", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
