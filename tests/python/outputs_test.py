# SPDX-License-Identifier: Apache-2.0
"""What a model computed, kept beside a data set: written in any order, by several processes, through a kill, and read with the samples and without."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

import numpy as np

import oneaccess as oa
from oneaccess.writing import outputs
from oneaccess.errors import ArgumentError, DatasetError, Error, MissingError, StateError, TransformError
from support import SAMPLES, PoolCase

FIELDS = {"latent": ((4, 3, 2), "float16"), "steps": ((-1, 5), "float32"), "caption": "text", "score": ((), "float64"), "codes": ((3,), "int16")}
WHERE = os.path.dirname(os.path.abspath(__file__))


def latent(number):
    return (number + np.arange(24).reshape(4, 3, 2) / 64).astype(np.float16)


def steps(number):
    return number + np.arange(5 * (number % 4)).reshape(-1, 5).astype(np.float32) / 8


def caption(number):
    return "ä" * (number % 7) + str(number)


def codes(number):
    return np.array([number, -number, 7], np.int16)


def values(ids):
    """Of each sample what its number says."""
    return {"latent": np.stack([latent(number) for number in ids]), "steps": [steps(number) for number in ids], "caption": [caption(number) for number in ids],
            "score": np.array([number / 3 for number in ids]), "codes": np.stack([codes(number) for number in ids])}


def pipeline():
    return oa.Compose([oa.transforms.Resize((8, 8)), oa.transforms.PILToTensor()])


class Numbers:
    """A data set of Python's."""

    def __len__(self):
        return 50

    def __getitem__(self, index):
        return {"number": index, "half": np.float32(index / 2)}


class Case(PoolCase):
    def setUp(self):
        self.folder = str(self.work / self.id().rpartition(".")[2])

    def loader(self, *args, **kwargs):
        return super().loader(*args, **{"as_": "numpy", **kwargs})

    def store(self, **said):
        return oa.store(self.folder, self.data, FIELDS, socket=self.socket, **said)

    def whole(self, ids=range(SAMPLES)):
        with self.store() as out:
            for at in range(0, len(ids), 33):
                out.write(ids[at:at + 33], **values(ids[at:at + 33]))

    def check(self, batch, fields=FIELDS):
        """All of a batch, by its ids."""
        for at, number in enumerate(batch.ids):
            wanted = {"latent": latent(number), "steps": steps(number), "caption": caption(number), "score": number / 3, "codes": codes(number)}
            for name in fields:
                np.testing.assert_array_equal(batch[name][at], wanted[name], name)

    def ids_of(self, dataset, *args, fields=FIELDS, **kwargs):
        """Of one epoch, in its order."""
        ids = []
        for batch in self.open(dataset, *args, **{"as_": "numpy", "epochs": 1, **kwargs}):
            self.check(batch, fields)
            ids += batch.ids
        return ids


class WriteTest(Case):
    def test_in_any_order_and_as_numpy_reads_it(self):
        with self.store() as out:
            for batch in self.loader(epochs=1):
                out.write(batch.ids, **values(list(batch.ids)))
            self.assertEqual(len(out.missing()), 0)
        stored = {name: np.load(f"{self.folder}/{name}.npy", mmap_mode="r") for name in FIELDS}
        places = {name: np.load(f"{self.folder}/{name}.places.npy") for name in ("steps", "caption")}
        for number in range(SAMPLES):
            np.testing.assert_array_equal(stored["latent"][number], latent(number))
            self.assertEqual(stored["score"][number], number / 3)
            begin, count = places["steps"][number]
            np.testing.assert_array_equal(stored["steps"][begin:begin + count], steps(number))
            begin, count = places["caption"][number]
            self.assertEqual(bytes(stored["caption"][begin:begin + count]).decode(), caption(number))
        self.assertEqual(np.load(f"{self.folder}/written.npy").tolist(), [1] * SAMPLES)

    def test_what_is_written_twice_is_the_last(self):
        self.whole()
        with self.store() as out:
            wrong = values([5, 7, 5])
            wrong["latent"][:] = 0
            out.write([5, 7, 5], **wrong)
            right = values([7, 5, 9, 7, 5])
            for name, at in (("latent", 0), ("codes", 1)):
                right[name][at] = 0     # another one of that id follows
            right["steps"][0], right["caption"][1] = np.zeros((9, 5), np.float32), "other"
            out.write([7, 5, 9, 7, 5], **right)
        self.assertEqual(sorted(self.ids_of(oa.beside(None, self.folder, images=False))), list(range(SAMPLES)))

    def test_what_does_not_fit_is_refused_and_nothing_written(self):
        with self.store() as out:
            good = values([3, 4])
            for change, text in (({"latent": good["latent"][:1]}, "of 2 ids it is (2, 4, 3, 2)"), ({"latent": good["latent"] * np.float32(1e6)}, "float16 has no room for"),
                                 ({"codes": good["codes"].astype(np.int64) + 40000}, "int16 has no room for"), ({"codes": good["codes"] + 0.5}, "int16 has no room for"),
                                 ({"steps": [np.zeros((2, 4)), np.zeros((2, 5))]}, "it is (-1, 5) by fields="), ({"steps": [steps(3)]}, "a list of 2 values"),
                                 ({"caption": "ab"}, "a list of 2 values"), ({"caption": [b"a", "b"]}, "and is text"), ({"score": np.array(["a", "b"])}, "numbers are stored")):
                with self.assertRaises(ArgumentError) as caught:
                    out.write([3, 4], **{**good, **change})
                self.assertIn(text, str(caught.exception))
            for ids, change, text in (([3, SAMPLES], {}, f"id {SAMPLES}"), ([-1, 3], {}, "id -1"), ([3, 4], {"more": [1, 2]}, "there are: latent")):
                with self.assertRaises(ArgumentError) as caught:
                    out.write(ids, **{**good, **change})
                self.assertIn(text, str(caught.exception))
            self.assertEqual(len(out.missing()), SAMPLES)
        with self.assertRaises(StateError):
            out.write([3, 4], **good)

    def test_fields_that_cannot_be_are_refused(self):
        for fields, text in (({}, "1 to 20 fields"), ({"image": ((), "float32")}, "none of index, image"), ({"a b": ((), "float32")}, "a name has"),
                             ({"x": ((2, -1), "float32")}, "at most four"), ({"x": ((1,) * 5, "float32")}, "at most four"), ({"x": ((2,), "bfloat16")}, "stored as float32"),
                             ({"x": ((2,), "complex64")}, "dtype is one of"), ({"x": "float32"}, "give (shape, dtype)")):
            with self.assertRaises(ArgumentError) as caught:
                oa.store(self.folder, self.data, fields, socket=self.socket)
            self.assertIn(text, str(caught.exception))
        self.assertFalse(os.path.exists(self.folder))

    def test_another_data_set_or_other_fields_are_refused(self):
        self.whole()
        with self.assertRaises(StateError) as caught:
            oa.store(self.folder, self.data, {"latent": FIELDS["latent"]}, socket=self.socket)
        self.assertIn("has the fields", str(caught.exception))
        with self.assertRaises(StateError) as caught:
            oa.store(self.folder, oa.wrap(Numbers()))
        self.assertIn(f"is of {SAMPLES} samples, and the data set has 50", str(caught.exception))
        with self.assertRaises(MissingError):
            oa.store(self.folder + "-none")

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no torch")
        with oa.store(self.folder, self.data, {"x": ((2,), "float32"), "text": "text"}, socket=self.socket) as out:
            for batch in self.loader(epochs=1, as_="torch"):
                ids = torch.tensor(list(batch.ids))
                out.write(ids, x=torch.stack([ids, ids * 2], 1).to(torch.bfloat16).requires_grad_(), text=[str(number) for number in ids.tolist()])
        for batch in self.open(oa.beside(self.data, self.folder, images=False, socket=self.socket), epochs=1, as_="torch"):
            ids = torch.tensor(list(batch.ids))
            self.assertTrue(torch.equal(batch["x"], torch.stack([ids, ids * 2], 1).to(torch.bfloat16).float()))
            self.assertEqual(batch["text"].strings(), [str(number) for number in ids.tolist()])


class CrashTest(Case):
    PROGRAM = """
import sys
sys.path.insert(0, {where!r})
import oneaccess as oa, outputs_test
out = oa.store({folder!r})
ids = {ids!r}
out.write(ids[::2], **outputs_test.values(ids[::2]))
if {flush!r}:
    out.flush()
out.write(ids[1::2], **outputs_test.values(ids[1::2]))
print("written", flush=True)
sys.stdin.read()
out.close()
"""

    def program(self, ids, flush=True):
        made = subprocess.Popen([sys.executable, "-c", self.PROGRAM.format(where=WHERE, folder=self.folder, ids=ids, flush=flush)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        self.addCleanup(made.stdin.close)
        self.addCleanup(made.stdout.close)
        self.addCleanup(made.wait)
        self.addCleanup(made.kill)
        self.assertEqual(made.stdout.readline(), "written\n")
        return made

    def test_a_kill_loses_what_was_not_flushed_and_no_more(self):
        self.store().close()
        ids = list(range(0, SAMPLES, 3))
        one = self.program(ids)
        one.kill()
        one.wait()
        with self.store() as out:
            missing = out.missing().tolist()
            self.assertEqual(missing, sorted(set(range(SAMPLES)) - set(ids[::2])))
            with self.assertRaises(StateError) as caught:
                oa.beside(self.data, self.folder)
            self.assertIn(f"lacks {len(missing)} of {SAMPLES} samples", str(caught.exception))
            for batch in self.loader(ids=missing, shuffle=False, epochs=1):
                out.write(batch.ids, **values(list(batch.ids)))
            self.assertEqual(len(out.missing()), 0)
        self.assertEqual(sorted(self.ids_of(oa.beside(None, self.folder, images=False))), list(range(SAMPLES)))

    def test_a_kill_while_room_is_made(self):
        self.whole(list(range(0, SAMPLES, 2)))
        path = f"{self.folder}/steps.npy"
        os.truncate(path, os.path.getsize(path) + 33)       # which the head does not say yet
        with self.store() as out:
            out.write(out.missing(), **values(out.missing().tolist()))
        self.assertEqual(sorted(self.ids_of(oa.beside(None, self.folder, images=False))), list(range(SAMPLES)))

    def test_several_processes_at_once(self):
        self.store().close()
        several = [self.program(list(range(rank, SAMPLES, 3)), flush=False) for rank in range(3)]
        self.assertEqual(len(oa.store(self.folder).missing()), SAMPLES)
        for one in several:
            one.communicate(timeout=600)
            self.assertEqual(one.returncode, 0)
        self.assertEqual(sorted(self.ids_of(oa.beside(None, self.folder, images=False))), list(range(SAMPLES)))

    def test_who_makes_the_folder_makes_all_of_it(self):
        stores, failed = [], []

        def make():
            try:
                stores.append(self.store())
            except BaseException as why:        # noqa: B902
                failed.append(why)
        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        for out in stores:
            out.close()
        self.assertEqual([name for name in os.listdir(self.work) if name.startswith(f".{os.path.basename(self.folder)}")], [])


class ReadTest(Case):
    def test_alone_in_all_orders(self):
        self.whole()
        fields = oa.beside(self.data, self.folder, images=False, socket=self.socket)
        self.assertEqual(self.ids_of(fields, shuffle=False), list(range(SAMPLES)))
        for said in ({}, {"order": "seeded", "seed": 3}, {"order": "any"}):
            self.assertEqual(sorted(self.ids_of(fields, **said)), list(range(SAMPLES)))
        self.assertEqual(self.ids_of(oa.beside(None, self.folder, ["score", "steps"], images=False), fields=("score", "steps"), ids=[9, 3, 200], shuffle=False),
                         [9, 3, 200])

    def test_beside_the_images(self):
        self.whole()
        plain = {}
        loader = self.loader(pipeline(), 16, epochs=1)
        for images, labels in loader:
            pass
        for batch in self.loader(pipeline(), 16, epochs=1):
            for at, number in enumerate(batch.ids):
                plain[number] = batch[0][at].copy(), int(batch[1][at])
        data = oa.beside(self.data, self.folder)
        with self.open(data, pipeline(), as_="numpy", epochs=2) as both:
            self.assertEqual(both.classes, loader.classes)
            self.assertEqual(both.names([0, 77]), loader.names([0, 77]))
            seen = []
            for _ in range(2):
                for batch in both:
                    self.check(batch)
                    seen += batch.ids
                    for at, number in enumerate(batch.ids):
                        np.testing.assert_array_equal(batch["image"][at], plain[number][0])
                        self.assertEqual(batch["label"][at], plain[number][1])
        self.assertEqual(sorted(seen), sorted(2 * list(range(SAMPLES))))
        self.assertEqual(self.ids_of(oa.beside(self.data, self.folder, ["latent"]), pipeline(), fields=["latent"], ids=[7, 0, 7], shuffle=False), [7, 0, 7])

    def test_jobs_share_one_reading(self):
        self.whole()
        fields = oa.beside(None, self.folder, images=False)
        one, two = (self.open(fields, as_="numpy", epochs=1, job=name) for name in "ab")
        ids = [[], []]
        for batches in zip(one, two):
            for which, batch in enumerate(batches):
                self.check(batch)
                ids[which] += batch.ids
        self.assertEqual([sorted(each) for each in ids], [list(range(SAMPLES))] * 2)

    def test_tar_and_zip_and_lists(self):
        import tarfile
        import zipfile
        files = sorted(pathlib.Path(self.data).rglob("*.*"))[:40]
        names = [f"{number:03}" for number in range(len(files))]
        with tarfile.open(self.work / "beside.tar", "w") as tar, zipfile.ZipFile(self.work / "beside.zip", "w") as archive, \
                open(self.work / "beside.csv", "w", encoding="utf-8") as table:
            table.write("path,label\n")
            for name, file in zip(names, files):
                tar.add(file, f"{name}.jpg")
                archive.write(file, f"all/{name}.jpg")
                table.write(f"{file},{int(name) % 3}\n")
        fields = {"score": ((), "float64")}
        for kind in ("tar", "zip", "csv"):
            path, folder = str(self.work / f"beside.{kind}"), f"{self.folder}.{kind}"
            with oa.store(folder, path, fields, socket=self.socket) as out:
                out.write(range(40), score=np.arange(40) / 3)
            self.assertEqual(self.ids_of(oa.beside(path, folder), pipeline(), fields=fields, shuffle=False), list(range(40)), kind)

    def test_another_version_is_refused(self):
        data = str(self.work / "changing")
        shutil.copytree(self.data, data)
        with oa.store(self.folder, data, {"score": FIELDS["score"]}, socket=self.socket) as out:
            out.write(range(SAMPLES), score=np.arange(SAMPLES) / 3)
        file = next(path for path in pathlib.Path(data).rglob("*.*") if path.is_file())
        (file.parent / ".new").write_bytes(file.read_bytes())
        os.replace(file.parent / ".new", file)
        for said in (lambda: oa.store(self.folder, data, socket=self.socket), lambda: oa.beside(data, self.folder, images=False, socket=self.socket)):
            with self.assertRaises(StateError) as caught:
                said()
            self.assertIn("the data set has version", str(caught.exception))
        with self.assertRaises(Error) as caught:
            self.open(oa.beside(data, self.folder), pipeline())
        self.assertIn("and the data set has version", str(caught.exception))
        self.assertEqual(len(self.ids_of(oa.beside(data, self.folder, any_version=True), pipeline(), fields=["score"])), SAMPLES)
        file.unlink()
        with self.assertRaises(Error) as caught:
            self.open(oa.beside(data, self.folder, any_version=True), pipeline())
        self.assertIn(f"has {SAMPLES} samples, and the data set {SAMPLES - 1}", str(caught.exception))

    def test_missing_ones_are_bad_samples(self):
        there = [number for number in range(SAMPLES) if number % 10]
        self.whole(there)
        for data, said in ((None, {"images": False}), (self.data, {})):
            fields = oa.beside(data, self.folder, partial=True, **said)
            args = () if data is None else (pipeline(),)
            self.assertEqual(sorted(self.ids_of(fields, *args, bad="skip", bad_budget=SAMPLES)), there)
            self.assertEqual(self.ids_of(fields, *args, ids=there, shuffle=False), there)
            loader = self.open(fields, *args, epochs=1)
            with self.assertRaises(Error) as caught:
                list(loader)
            self.assertIn("nothing was written of this sample", str(caught.exception))

    def test_a_writer_ends_readers(self):
        self.whole()
        loader = self.open(oa.beside(None, self.folder, images=False), as_="numpy", order="seeded", seed=1)
        self.check(next(iter(loader)))
        with self.store() as out:
            out.write([0], **values([0]))
        with self.assertRaises(Error) as caught:
            for batch in loader:
                pass
        self.assertRegex(str(caught.exception), "written to since it was opened|is of another version")

    def test_wrapped(self):
        folder = self.folder
        with oa.store(folder, oa.wrap(Numbers(), name="numbers", version="1"), FIELDS) as out:
            out.write(range(50), **values(range(50)))
        data = oa.beside(oa.wrap(Numbers(), name="numbers", version="1", random=False), folder)
        seen = []
        for batch in self.open(data, as_="numpy", epochs=1):
            self.check(batch)
            self.assertEqual(list(batch["number"]), list(batch.ids))
            seen += batch.ids
        self.assertEqual(sorted(seen), list(range(50)))
        self.assertEqual(sorted(self.ids_of(oa.beside(oa.wrap(Numbers(), name="numbers", version="1"), folder, images=False))), list(range(50)))
        with self.assertRaises(StateError):
            oa.beside(oa.wrap(Numbers(), name="numbers", version="2"), folder)

    def test_what_cannot_be_is_refused(self):
        self.whole()
        both, alone = oa.beside(self.data, self.folder), oa.beside(None, self.folder, images=False)
        for said, kind in ((lambda: self.open(both), TransformError), (lambda: self.open(alone, pipeline()), TransformError), (lambda: oa.beside(both, self.folder), ArgumentError),
                           (lambda: oa.beside(self.data, self.folder, ["nothing"]), ArgumentError), (lambda: oa.beside(None, self.folder), ArgumentError),
                           (lambda: oa.beside(self.data, self.data), MissingError), (lambda: oa.beside(3, self.folder), ArgumentError)):
            with self.assertRaises(kind):
                said()
        for head, text in (({"format": "other"}, "another format"), ({"version": 2}, "upgrade it"), ({"fields": {"a/b": {"dtype": "float32", "shape": []}}}, "a name has")):
            path = pathlib.Path(self.folder) / outputs.HEAD
            good = path.read_text()
            path.write_text(json.dumps({**json.loads(good), **head}))
            with self.assertRaises(DatasetError) as caught:
                oa.beside(self.data, self.folder)
            self.assertIn(text, str(caught.exception))
            path.write_text(good)


class CachedTest(Case):
    """What accessd would keep of pictures is not what it keeps of records."""

    settings = {"cache_size": "64M", "cache_point": "decoded"}

    def test_epochs_and_a_converted_file(self):
        subprocess.run([os.path.join(os.environ["ACCESS_LIBEXEC"], "access-convert"), self.data, str(self.work / "data.oads")], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        plain = {}
        for batch in self.loader(pipeline(), 16, epochs=1):
            for at, number in enumerate(batch.ids):
                plain[number] = batch[0][at].copy()
        for number, data in enumerate((self.data, str(self.work / "data.oads"))):
            folder, fields = f"{self.folder}.{number}", {"score": ((), "float64")}
            with oa.store(folder, data, fields, socket=self.socket) as out:
                out.write(range(SAMPLES), score=np.arange(SAMPLES) / 3)
            seen = []
            for batch in self.open(data, pipeline(), as_="numpy", epochs=1):    # which may leave something in the cache
                seen += batch.ids
            with self.open(oa.beside(data, folder), pipeline(), as_="numpy", epochs=4) as both:
                for _ in range(4):
                    for batch in both:
                        self.check(batch, fields)
                        seen += batch.ids
                        for at, each in enumerate(batch.ids):
                            np.testing.assert_array_equal(batch["image"][at], plain[each])
            self.assertEqual(sorted(seen), sorted(5 * list(range(SAMPLES))))

    def test_ranks(self):
        self.whole()
        ids = []
        said = {"as_": "numpy", "epochs": 1, "order": "seeded", "seed": 3, "world_size": 2, "local_world_size": 2, "job": "two ranks"}
        loaders = [self.open(oa.beside(self.data, self.folder), pipeline(), rank=rank, local_rank=rank, **said) for rank in range(2)]
        loops = [iter(loader) for loader in loaders]
        while loops:
            batch = next(loops[0], None)
            if batch is None:
                loops.pop(0)
                continue
            self.check(batch)
            ids += batch.ids
            del batch
            loops.append(loops.pop(0))
        self.assertEqual(sorted(ids), list(range(SAMPLES)))

    def test_a_state_goes_on(self):
        self.whole()
        data = oa.beside(None, self.folder, images=False)
        with self.open(data, as_="numpy", epochs=1) as loader:
            first = next(iter(loader))
            ids, state = list(first.ids), loader.state_dict()
        with self.open(data, as_="numpy", epochs=1, state=state) as loader:
            for batch in loader:
                self.check(batch)
                ids += batch.ids
        self.assertEqual(sorted(ids), list(range(SAMPLES)))


class ComputeTest(Case):
    def test_ranks_and_again(self):
        calls = []

        def mean(batch):
            calls.append(list(batch.ids))
            return {"mean": batch[0].reshape(len(batch.ids), -1).mean(1)}
        said = {"fields": {"mean": ((), "float32")}, "batch_size": 16, "socket": self.socket, "as_": "numpy"}
        out = oa.compute(self.folder, self.data, mean, pipeline(), rank=1, world_size=2, **said)
        self.assertEqual(sorted(sum(calls, [])), list(range(1, SAMPLES, 2)))
        self.assertEqual(out.missing().tolist(), list(range(0, SAMPLES, 2)))

        def fails(batch):
            if 100 in batch.ids:
                raise KeyboardInterrupt
            return mean(batch)
        with self.assertRaises(KeyboardInterrupt):
            oa.compute(self.folder, self.data, fails, pipeline(), **said)
        calls.clear()
        out = oa.compute(self.folder, self.data, mean, pipeline(), **said)
        self.assertEqual(len(out.missing()), 0)
        self.assertEqual(sum(calls, [])[-1], SAMPLES - 2)
        self.assertNotIn(0, sum(calls, []))
        means = np.load(f"{self.folder}/mean.npy")
        for batch in self.loader(pipeline(), 16, epochs=1):
            np.testing.assert_array_equal(means[list(batch.ids)], batch[0].reshape(len(batch.ids), -1).mean(1).astype(np.float32))


if __name__ == "__main__":
    unittest.main()
