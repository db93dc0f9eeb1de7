# SPDX-License-Identifier: Apache-2.0
"""Data sets that grow while jobs read them: each epoch is whole, of one version, and refresh="epoch" goes on with the newest."""

import contextlib
import io
import shutil
import tarfile
import unittest
import unittest.mock
from pathlib import Path

import oneaccess as oa
from oneaccess import _core
from support import CLASSES, SAMPLES, DaemonCase

PIPELINE = oa.imagenet_eval(16, dtype="uint8")
MORE = 30


class Growing(DaemonCase):
    """What a data set is, and how it grows, is the class'."""

    def setUp(self):
        self.folder = self.work / self.id()
        self.begin(sorted(Path(self.data).glob("*/*")))

    def begin(self, files):
        shutil.copytree(self.data, self.folder)
        self.files = files

    def grow(self, number=0):
        """MORE samples more, of those that are there."""
        for at, file in enumerate(self.files[:MORE]):
            shutil.copy(file, self.folder / file.parent.name / f"{number}-{at}{file.suffix}")

    def shrink(self):
        for file in sorted(self.folder.glob("*/0-*")):
            file.unlink()

    def open(self, **options):
        loader = oa.Loader(str(self.folder), PIPELINE, 16, **{"socket": self.socket, "timeout": 600, "as_": "numpy", **options})
        self.addCleanup(loader.close)
        return loader

    @staticmethod
    def epoch(loader, during=None):
        """ids of an epoch, and its number; during() is done behind the first batch."""
        ids, numbers = [], set()
        for batch in loader:
            ids += batch.ids
            numbers.add(batch.epoch)
            if during is not None:
                during()
                during = None
        number, = numbers
        return ids, number

    def check(self, epoch, number, count):
        ids, of = epoch
        self.assertEqual((sorted(ids), of), (list(range(count)), number))

    def test_each_epoch_is_of_one_version(self):
        for options in ({}, {"order": "seeded", "seed": 5}, {"shuffle": False}):
            with self.subTest(**options):
                shutil.rmtree(self.folder)
                self.setUp()
                moving, still = self.open(refresh="epoch", **options), self.open(**options)
                first = self.epoch(moving, self.grow)
                self.check(first, 0, SAMPLES)
                self.check(self.epoch(still), 0, SAMPLES)
                said = io.StringIO()
                with contextlib.redirect_stderr(said):
                    self.check(self.epoch(moving), 1, SAMPLES + MORE)
                self.assertRegex(said.getvalue(), f"another version.*epoch 1 is of its {SAMPLES + MORE} samples")
                self.assertEqual(len(moving), -(-(SAMPLES + MORE) // 16))
                self.check(self.epoch(still), 1, SAMPLES)       # whoever asks for nothing keeps what it has
                self.check(self.epoch(self.open(**options)), 0, SAMPLES + MORE)
                with contextlib.redirect_stderr(said):
                    self.check(self.epoch(moving, lambda: self.grow(1)), 2, SAMPLES + MORE)
                    next(iter(moving))                          # the fourth epoch, left early
                    self.check(self.epoch(moving), 4, SAMPLES + 2 * MORE)
                moving.close()
                still.close()

    def test_nothing_changes_where_nothing_grows(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            orders = [[self.epoch(loader)[0] for _ in range(3)] for loader in
                      (self.open(order="seeded", seed=3, epochs=3, refresh=refresh) for refresh in (None, "epoch"))]
        self.assertEqual(orders[0], orders[1])
        self.assertNotIn("another version", said.getvalue())
        loader = self.open(refresh="epoch", epochs=2)
        self.check(self.epoch(loader, self.grow), 0, SAMPLES)
        with contextlib.redirect_stderr(said):
            self.check(self.epoch(loader), 1, SAMPLES + MORE)
        again = iter(loader)
        self.assertEqual(loader.state_dict()["begins"], 2)
        with self.assertRaisesRegex(oa.Error, "all 2 epochs are delivered"):
            next(again)

    def test_states(self):
        loader = self.open(refresh="epoch")
        states = [loader.state_dict()]
        for at, _ in enumerate(loader):
            if at == 0:
                states.append(loader.state_dict())
        states.append(loader.state_dict())
        loader.close()
        with contextlib.redirect_stderr(io.StringIO()):
            self.check(self.epoch(self.open(refresh="epoch", state=states[2])), 1, SAMPLES)     # nothing has come yet
            self.grow()
            for state, number in ((states[0], 0), (states[2], 1)):
                self.check(self.epoch(self.open(refresh="epoch", state=state)), number, SAMPLES + MORE)
                with self.assertRaisesRegex(oa.errors.StateError, f"a dataset of {SAMPLES} samples, this one has {SAMPLES + MORE}"):
                    self.open(state=state)
        with self.assertRaisesRegex(oa.errors.StateError, "resume with the dataset it was saved with"):
            self.open(refresh="epoch", state=states[1])
        for begins in (-1, "1", 1 << 63):
            with self.assertRaisesRegex(oa.errors.StateError, "damaged"):
                self.open(refresh="epoch", state={**states[0], "begins": begins})

    def test_an_epoch_begins_again_where_opening_failed(self):
        stream, news = _core.Stream, []

        def refused(*args, token, **options):
            if token is None:
                news.append(token)
                if len(news) == 1:
                    raise oa.Error("nobody is there")
            return stream(*args, token=token, **options)
        loader = self.open(refresh="epoch")
        self.check(self.epoch(loader, self.grow), 0, SAMPLES)
        with unittest.mock.patch.object(_core, "Stream", refused), contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaisesRegex(oa.Error, "nobody is there"):
                self.epoch(loader)
            self.check(self.epoch(loader), 1, SAMPLES + MORE)
        self.assertEqual(len(news), 2)

    def test_what_has_no_meaning_is_refused(self):
        for options, words in (({"ids": [1]}, "beside ids="), ({"weights": [1.0] * SAMPLES}, "beside weights="), ({"split": (0, 0.5)}, "beside split="),
                               ({"record": "x"}, "beside record="), ({"rank": 0, "world_size": 2}, "one of 2 ranks")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                self.open(refresh="epoch", **options)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "refresh is 'batch'; there are: None, epoch"):
            self.open(refresh="batch")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "part 0 of the mix has refresh="):
            oa.mix([self.open(refresh="epoch")])


class Folder(Growing):
    def test_classes_come_and_files_go(self):
        loader = self.open(refresh="epoch")
        self.grow()
        with contextlib.redirect_stderr(io.StringIO()):
            self.check(self.epoch(loader), 0, SAMPLES)
            shutil.copytree(self.folder / Path(self.files[0]).parent.name, self.folder / "zz")
            self.shrink()
            count = SAMPLES + len(list(self.folder.glob("zz/*")))
            self.check(self.epoch(loader), 1, count)
        self.assertEqual(len(loader.classes), CLASSES + 1)
        self.assertEqual(len(loader.targets), count)


class Shards(Growing):
    """Tar shards of a folder, to which others come."""

    def begin(self, files):
        self.files = files
        self.folder.mkdir()
        for number in range(3):
            self.shard(f"{number:05}", files[number * SAMPLES // 3:(number + 1) * SAMPLES // 3])

    def shard(self, name, files):
        with tarfile.open(self.folder / f"{name}.part", "w") as tar:
            for at, file in enumerate(files):
                tar.add(file, f"{at:05}.jpg")
        (self.folder / f"{name}.part").rename(self.folder / f"{name}.tar")

    def grow(self, number=0):
        self.shard(f"1{number:04}", self.files[:MORE])


del Growing
if __name__ == "__main__":
    unittest.main(verbosity=2)
