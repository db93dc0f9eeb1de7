# SPDX-License-Identifier: Apache-2.0
"""Which files samples are: Loader.names(), Mix.names(), and loader.dataset.samples."""

import os
import shutil
import subprocess
import threading
import unittest
from pathlib import Path

import numpy
import oneaccess as oa
from support import BUILD, SAMPLES, DaemonCase

PIPELINE = oa.imagenet_eval(16, dtype="uint8")


class NamesTest(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = cls.files(cls.data)

    @staticmethod
    def files(folder):
        """In the order of ImageFolder."""
        return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.*"))

    def open(self, data=None, pipeline=PIPELINE, **options):
        loader = oa.Loader(data or self.data, pipeline, 16, **{"socket": self.socket, "timeout": 600, "as_": "numpy", **options})
        self.addCleanup(loader.close)
        return loader

    def check(self, loader, names=None):
        """An epoch: each batch's names are those of its labels, and each comes once."""
        seen = []
        for batch in loader:
            told = loader.names(batch.ids)
            self.assertEqual(told, [(names or self.names)[number] for number in batch.ids])
            self.assertEqual([loader.classes[label] for label in batch[1]], [name.partition("/")[0] for name in told])
            seen += told
        return sorted(seen)

    def test_of_batches(self):
        for order in ("carousel", "any", "sequential"):
            self.assertEqual(self.check(self.open(order=order)), self.names)
        self.assertEqual(self.check(self.open(order="seeded", seed=7)), self.names)

    def test_of_any_numbers(self):
        loader = self.open()
        numbers = [5, 0, SAMPLES - 1, 5]
        for ids in (numbers, tuple(numbers), numpy.array(numbers), numpy.array(numbers, "int32"), memoryview(numpy.array(numbers)), iter(numbers)):
            self.assertEqual(loader.names(ids), [self.names[number] for number in numbers])
        self.assertEqual(loader.names([]), [])
        self.assertEqual(loader.names(), self.names)
        more = list(range(SAMPLES)) * 5     # more than one page of an answer
        self.assertEqual(loader.names(more), self.names * 5)

    def test_what_is_no_number_of_a_sample(self):
        loader = self.open(split=(0, .5))
        for ids, words in (([0, SAMPLES], rf"ids\[1\] is {SAMPLES}: the data set has samples 0 to {SAMPLES - 1}"), ([-1], r"ids\[0\] is -1"), (7, "give a list"),
                           ([.5], "no list of whole numbers"), (numpy.ones(SAMPLES, bool), "flatnonzero")):
            with self.subTest(ids), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                loader.names(ids)
        loader.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            loader.names([0])

    def test_parts_of_a_data_set(self):
        """Numbers are those of the whole data set."""
        for part in ({"ids": range(100, 140)}, {"split": (.25, .75, 3)}, {"classes": [sorted(os.listdir(self.data))[1]]}):
            seen = self.check(self.open(**part))
            self.assertLess(len(seen), SAMPLES)
            self.assertEqual(len(set(seen)), len(seen))

    def test_chosen_anew(self):
        loader = self.open()
        self.check(loader)
        loader.choose(ids=range(10, 50))
        self.assertEqual(self.check(loader), self.names[10:50])

    def test_as_of_image_folder(self):
        loader = self.open(split=(.5, 1))
        classes = sorted(os.listdir(self.data))
        self.assertEqual(loader.dataset.samples, [(os.path.join(self.data, name), classes.index(name.partition("/")[0])) for name in self.names])
        self.assertEqual(loader.dataset.imgs, loader.dataset.samples)
        self.assertEqual([label for _, label in loader.dataset.samples], loader.dataset.targets)
        batch = next(iter(loader))
        self.assertEqual([loader.dataset.samples[number][1] for number in batch.ids], list(batch[1]))

    def test_ranks(self):
        def of(rank, found):
            found[rank] = self.check(self.open(rank=rank, world_size=2, job="names"))

        found = {}
        threads = [threading.Thread(target=of, args=(rank, found)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found[0] + found[1]), self.names)

    def test_a_mix(self):
        other = str(self.work / "other")
        subprocess.run([BUILD / "tests/scenarios/pictures", other, "40", "2", "64"], check=True, stdout=subprocess.DEVNULL)
        names = [self.names, self.files(other)]
        for unit in ("samples", "batches"):
            mixed = oa.mix([self.open(), self.open(other)], [2, 1], 16, unit=unit, timeout=600)
            self.addCleanup(mixed.close)
            for batch in mixed:
                self.assertEqual(mixed.names(batch.ids, batch.parts), [names[part][number] for part, number in zip(batch.parts, batch.ids)])
        for ids, parts, words in (([0], [2], "the mix has parts 0 to 1"), ([0], [-1], "part -1"), ([0, 1], [0], "give the part of each"),
                                  ([0, 40], [1, 1], r"part 1: ids\[1\] is 40: the data set has samples 0 to 39")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                mixed.names(ids, parts)
        mixed.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            mixed.names([0], [0])

    def test_a_version_that_grows(self):
        folder = shutil.copytree(self.data, self.work / "grows")
        loader = self.open(str(folder), refresh="epoch", shuffle=False)
        self.assertEqual(self.check(loader), self.names)
        first = folder / self.names[0]
        shutil.copy(first, first.parent / "!.jpg")  # which moves all others
        self.assertEqual(loader.names(), self.names)    # of the loop that is over
        newer = self.files(folder)
        self.assertEqual(self.check(loader, newer), newer)
        self.assertEqual([path for path, _ in loader.dataset.samples], [str(folder / name) for name in newer])

    def test_samples_of_a_version_that_has_gone(self):
        """Labels are those of now, so they are no other version's, however many there are."""
        folder = shutil.copytree(self.data, self.work / "gone")
        first = folder / self.names[0]
        before = first.parent / "!.jpg"
        for change, count in ((lambda: first.rename(before), SAMPLES), (before.unlink, SAMPLES - 1)):
            loader, known = self.open(str(folder)), self.open(str(folder))
            samples, names = known.dataset.samples, loader.names()
            change()
            self.assertEqual((known.dataset.samples, loader.names()), (samples, names))
            for ask in (lambda: loader.dataset.samples, lambda: loader.targets, lambda: loader.classes):
                with self.assertRaisesRegex(oa.errors.StateError, f"another version now, of {count} samples"):
                    ask()

    def test_an_accessd_that_was_killed(self):
        loader = self.open()
        batch = next(iter(loader))
        self.kill()
        self.start()
        self.assertEqual(loader.names(batch.ids), [self.names[number] for number in batch.ids])

    def test_bad_samples_end_a_job_and_have_names(self):
        folder = shutil.copytree(self.data, self.work / "odd")
        (folder / self.names[9]).write_bytes(b"no picture")
        loader = self.open(str(folder), shuffle=False)
        with self.assertRaises(oa.errors.SampleError):
            self.check(loader)
        self.assertEqual(loader.names([9]), [self.names[9]])
        self.assertEqual([bad.path for bad in loader.bad_samples], [loader.dataset.samples[9][0]])

    def test_names_that_are_no_text(self):
        folder = self.work / "letters"
        folder.mkdir()
        names = sorted([b"a\xff.jpg", "gr\u00fcn.jpg".encode(), b"line\nbreak.jpg", b" ,?.jpg"])
        for name in names:
            shutil.copy(Path(self.data) / self.names[0], os.path.join(os.fsencode(folder), name))
        loader = self.open(str(folder))
        self.assertEqual([os.fsencode(name) for name in loader.names()], names)
        for path, _ in loader.dataset.samples:
            self.assertTrue(os.path.exists(path))

    def test_a_flat_folder_and_a_list(self):
        flat = self.work / "flat"
        flat.mkdir()
        for number, name in enumerate(self.names[:5]):
            shutil.copy(Path(self.data) / name, flat / f"{number}.jpg")
        self.assertEqual(self.open(str(flat)).dataset.samples, [(str(flat / f"{number}.jpg"), 0) for number in range(5)])
        table = self.work / "some.csv"
        table.write_text("path,label\n" + "".join(f"{self.data}/{name},{number}\n" for number, name in enumerate(self.names[3:0:-1])))
        loader = self.open(str(table))
        self.assertEqual([(os.path.basename(path), label) for path, label in loader.dataset.samples],
                         [(os.path.basename(name), number) for number, name in enumerate(self.names[3:0:-1])])
        for path, _ in loader.dataset.samples:
            self.assertTrue(os.path.exists(path), path)

    def test_a_wrapped_data_set(self):
        loader = oa.Loader(oa.wrap(Squares()), None, 4, socket=self.socket, timeout=600, as_="numpy")
        self.addCleanup(loader.close)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "a wrapped data set have no names"):
            loader.names([0])
        self.assertEqual(loader.dataset.samples, "its own")


class Squares:
    samples = "its own"

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return numpy.float32(index * index)


if __name__ == "__main__":
    unittest.main(verbosity=2)
