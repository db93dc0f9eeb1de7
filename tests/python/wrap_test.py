# SPDX-License-Identifier: Apache-2.0
"""Python data sets in a pool of their own, shared by jobs, with NumPy, against a real daemon."""

import importlib.util
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock
import warnings

try:
    import numpy as np
    import PIL  # noqa: F401, the samples'
except ImportError as missing:
    print(f"wrap_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
import wrap_samples as samples
from oneaccess import _core, pool
from oneaccess.wrapped import pools
from support import PoolCase
from wrap_samples import SAMPLES

warnings.simplefilter("error")


def until(true, what):
    end = time.monotonic() + 600
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within ten minutes: {what}")
        time.sleep(0.02)


def labels_of(loader):
    """Of one epoch, one after another."""
    return [label for _, labels in loader for label in labels.tolist()]


class WrapTest(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(until, lambda: not pools(), "no pool is left")

    def log(self):
        return self.work / self.id()

    def calls(self):
        return self.log().stat().st_size

    def wrapped(self, dataset, *args, batch_size=16, wrap=None, **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, **kwargs}
        loader = oa.Loader(oa.wrap(dataset, **{"workers": 2, "keep": 0.2, **(wrap or {})}), *args,
                           batch_size=batch_size, **kwargs)
        self.addCleanup(loader.close)
        return loader

    def counted(self, **kwargs):
        return self.wrapped(samples.Counted(self.log()), **kwargs)

    def made(self):
        return json.loads(_core.Client(self.socket).status())["node"]["samples_preprocessed"]

    # ---- samples ----

    def test_samples_come_as_they_are(self):
        loader = self.counted()
        self.assertEqual(len(loader), SAMPLES // 16)
        epochs = []
        for _ in range(2):
            seen = []
            for images, labels in loader:
                self.assertEqual((images.shape, images.dtype), ((16, 3, 8, 8), np.float32))
                self.assertFalse(images.flags.writeable or images.flags.owndata)
                np.testing.assert_array_equal(images, np.broadcast_to(labels[:, None, None, None], images.shape))
                seen += labels.tolist()
            self.assertEqual(sorted(seen), list(range(SAMPLES)))
            epochs.append(seen)
        self.assertNotEqual(*epochs)

    def test_samples_of_other_kinds(self):
        for batch in self.wrapped(samples.Odd(self.log(), "dict"), batch_size=4, shuffle=False):
            self.assertEqual(list(batch), ["x", "flag", "share"])
            np.testing.assert_array_equal(batch["x"], np.stack([batch.ids, np.int64(batch.ids) + 1], 1))
            self.assertEqual((batch["x"].dtype, batch["flag"].dtype), (np.int64, np.uint8))
            np.testing.assert_array_equal(batch["share"], np.float32(batch.ids) / 2)
            self.assertRegex(repr(batch), r"\(4, 2\), \(4,\), \(4,\)")
        for batch in self.wrapped(samples.Odd(self.log(), "one"), batch_size=4, shuffle=False):
            self.assertEqual((len(batch), batch[0].shape, batch[0].dtype), (1, (4, 1, 1), np.float16))
        for number, _, picture, last in self.wrapped(samples.Odd(self.log(), "four"), batch_size=1):
            self.assertEqual(picture.shape, (1, 3, 4, 3))
            self.assertEqual([number[0], last[0]], [picture[0, 0, 0, 0]] * 2)

    def test_samples_with_dicts_in_them(self):
        for values, info in self.wrapped(samples.Odd(self.log(), "nested"), batch_size=4, shuffle=False):
            self.assertEqual([*info], ["id", "name", "more"])
            self.assertEqual(info["name"], [f"{number}.png" for number in info["id"]])
            np.testing.assert_array_equal(info["more"]["size"], np.stack([info["id"], 2 * info["id"]], 1))
            np.testing.assert_array_equal(values[:, 0], info["id"])
        lists = self.wrapped(samples.Odd(self.log(), "nested"), batch_size=4, shuffle=False, collate_fn=lambda some: some)
        self.assertEqual([info["name"] for batch in lists for _, info in batch], [f"{number}.png" for number in range(8)])
        chosen = self.wrapped(samples.Odd(self.log(), "nested"), batch_size=4, wrap={"columns": ["0", "1.more.size"]})
        self.assertEqual([*next(iter(chosen))], ["0", "1.more.size"])
        bound = self.wrapped(samples.Odd(self.log(), "nested"), batch_size=4, shuffle=False, wrap={"ragged": {"1.name": 16}})
        _, info = next(iter(bound))
        self.assertEqual((type(info["name"]), info["name"].strings()[3]), (oa.Ragged, "3.png"))
        for word, why in (("alike", "have one name.*a.b, a.b"), ("uneven", "1.number.*sample 0: .*1.id")):
            with self.assertRaisesRegex(oa.Error, why):
                self.wrapped(samples.Odd(self.log(), word))

    def test_texts_are_lists(self):
        texts, numbers = next(iter(self.wrapped(samples.Odd(self.log(), "text"), batch_size=8, shuffle=False)))
        self.assertEqual((texts, numbers.tolist()), (["a" * number for number in range(8)], [*range(8)]))

    def test_a_debugger_has_no_terminal(self):
        with self.assertRaisesRegex(oa.errors.DatasetError, "BdbQuit.*no terminal.*DataLoader"):
            self.wrapped(samples.Odd(self.log(), "stop"))

    def test_what_has_no_place_is_refused(self):
        for word, why in (("complex", "complex128.*convert it"), ("many", "24 fields")):
            with self.assertRaisesRegex(oa.errors.DatasetError, why):
                self.wrapped(samples.Odd(self.log(), word))
        with self.assertRaises(oa.errors.DatasetError) as caught:
            self.wrapped(samples.Odd(self.log(), "complex"))
        self.assertNotIn("Traceback", str(caught.exception))  # what is wrong is a field of the sample
        with self.assertRaisesRegex(oa.errors.TransformError, "no __getitem__"):
            oa.wrap(iter([1, 2]))
        with self.assertRaisesRegex(oa.errors.TransformError, "oneaccess.wrap"):
            oa.Loader(samples.Odd(self.log(), "one"))
        with self.assertRaisesRegex(oa.errors.TransformError, "ids="):
            self.counted(classes=["a"])
        with self.assertRaisesRegex(AttributeError, "ask the data set"):
            self.counted().classes
        with self.assertRaisesRegex(oa.errors.ArgumentError, "workers is 65"):
            oa.wrap([1], workers=65)
        for name, value in (("ragged", 7), ("pad", oa.Pad(7))):
            with self.assertRaisesRegex(oa.errors.ArgumentError, name + "=.*say of which field"):
                oa.wrap([1], **{name: value})

    def test_numbers_too_large(self):
        """Such as become infinite as float32, where the data set's are not."""
        for large in (1e39, [1.0, -1e39]):
            with self.subTest(large=large), self.assertRaisesRegex(oa.errors.DatasetError, "field 1 of the sample has a number.*float32.*an array"):
                self.wrapped([(1, large)])
        for edge in (3.4e38, float("inf"), [1e-50, float("-inf"), float("nan")]):
            (field, _), = self.wrapped([(edge, 1)])
            np.testing.assert_array_equal(field[0], np.float32(edge))
        (field, _), = self.wrapped([(np.array([1e39]), 1)])
        self.assertEqual(field[0, 0], 1e39)
        loader = self.wrapped([(1.0,), (1e39,), (2.0,)], bad="skip", batch_size=3)
        self.assertEqual(sorted(next(iter(loader))[0].tolist()), [1, 2])

    def test_more_samples_than_have_numbers(self):
        class Endless:
            def __len__(self):
                return sys.maxsize

            def __getitem__(self, index):
                return index
        with self.assertRaisesRegex(oa.errors.DatasetError, "has 9,223,372,036,854,775,807 samples, at most 4,294,967,296.*__len__"):
            self.wrapped(Endless())

    def test_fields_of_varied_length(self):
        """What to do is said when the Loader is made; a tuple's fields have numbers, and one column needs no list."""
        lists = [(list(range(1 + i % 3)), i) for i in range(8)]
        with self.assertRaisesRegex(oa.errors.TransformError, r"field 0: shape 2, sample 0: 1: .*ragged={name: the most of one}.*Pad"):
            self.wrapped(lists)
        with self.assertRaisesRegex(oa.errors.TransformError, "field 0: length 2, at most 1 by ragged="):
            self.wrapped(lists, wrap={"ragged": {0: 1}})
        with self.assertRaisesRegex(oa.errors.DatasetError, "field 0 of the sample has no value in it.*ragged="):
            self.wrapped([(np.zeros((0, 4), np.float32),)])
        for wrap in ({"ragged": {0: 3}, "columns": 0}, {"ragged": {"0": 3}, "columns": ["0"]}):
            (field,), = self.wrapped(lists[:3], batch_size=3, shuffle=False, wrap=wrap)
            self.assertEqual([list(one) for one in field.list()], [[0], [0, 1], [0, 1, 2]])

    def test_what_cannot_be_pickled_is_refused(self):
        dataset = samples.Counted(self.log())
        dataset.transform = (lambda x: x)
        if not importlib.util.find_spec("cloudpickle") and not importlib.util.find_spec("dill"):
            with self.assertRaisesRegex(oa.errors.TransformError, "pickle.*cloudpickle"):
                self.wrapped(dataset)
        else:
            self.assertEqual(len(list(self.wrapped(dataset))), SAMPLES // 16)

    def test_what_no_package_can_pickle_is_named(self):
        """As an open file, which works in forks of a DataLoader."""
        dataset, package = samples.Counted(self.log()), types.SimpleNamespace(dumps=pickle.dumps, Pickler=pickle.Pickler)
        with open(os.devnull, "rb") as file, unittest.mock.patch.dict(sys.modules, cloudpickle=package):
            dataset.source = file
            with self.assertRaisesRegex(oa.errors.TransformError, "with its attribute source: TypeError: .*let __getitem__ open it"):
                self.wrapped(dataset)

    def run_script(self, *lines):
        script = self.work / "script.py"
        script.write_text("\n".join(("import oneaccess as oa", *lines)) + "\n")
        return subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)

    def test_a_script_needs_no_guard(self):
        """Where its data set is a module's; else its classes go to the pool as they are, by a package that can."""
        show = (f"for numbers, in oa.Loader(oa.wrap(DATA, keep=0.2), batch_size=3, shuffle=False, socket={self.socket!r}):"
                " print(numbers.tolist())")
        run = self.run_script("import collections", show.replace("DATA", "collections.UserList([1, 2, 3])"))
        self.assertEqual((run.stdout, run.returncode), ("[1, 2, 3]\n", 0), run.stderr)
        run = self.run_script("class Mine(list):", "    pass", show.replace("DATA", "Mine([4, 5, 6])"))
        if importlib.util.find_spec("cloudpickle") or importlib.util.find_spec("dill"):
            self.assertEqual((run.stdout, run.returncode), ("[4, 5, 6]\n", 0), run.stderr)
        else:
            self.assertRegex(run.stderr, "script.py would be imported again.*if __name__ == \"__main__\":.*cloudpickle")
        run = self.run_script("class Mine(list):", "    pass", "if __name__ == '__main__':",
                              "    " + show.replace("DATA", "Mine([7, 8, 9])"))
        self.assertEqual((run.stdout, run.returncode), ("[7, 8, 9]\n", 0), run.stderr)

    def test_what_is_typed_has_no_file(self):
        """Also where it is read from stdin, whose name looks like one."""
        lines = ("import oneaccess as oa\nclass Mine(list):\n    pass\n"
                 f"for numbers, in oa.Loader(oa.wrap(Mine([4, 5, 6]), keep=0.2), batch_size=3, shuffle=False, socket={self.socket!r}):\n"
                 "    print(numbers.tolist())\n")
        for words, text in ((("-",), lines), (("-c", lines), None)):
            run = subprocess.run([sys.executable, *words], input=text, capture_output=True, text=True, timeout=600, check=False)
            if importlib.util.find_spec("cloudpickle") or importlib.util.find_spec("dill"):
                self.assertEqual((run.stdout, run.returncode), ("[4, 5, 6]\n", 0), run.stderr)
            else:
                self.assertRegex(run.stderr, "classes of a notebook or of typed lines.*cloudpickle")

    # ---- pictures ----

    def test_pictures_go_through_a_pipeline(self):
        pipeline = oa.Compose([oa.transforms.Resize((40, 50)), oa.transforms.PILToTensor()])
        want = self.loader(pipeline, 16, shuffle=False, copy=True)
        decoded = self.wrapped(samples.Files(self.data, True), pipeline, shuffle=False, wrap={"random": False})
        raw = self.wrapped(samples.Files(self.data, False), pipeline, shuffle=False)
        for theirs, ours, bytes_ in zip(want, decoded, raw, strict=True):
            for i in range(2):
                np.testing.assert_array_equal(theirs[i], ours[i])
                np.testing.assert_array_equal(theirs[i], bytes_[i])
        with self.assertRaisesRegex(oa.errors.DatasetError, "leave the pipeline out"):
            self.wrapped(samples.Odd(self.log(), "four"), "imagenet-eval")

    # ---- sharing, orders ----

    def test_a_call_serves_all_jobs(self):
        before = self.made()
        one, two = self.counted(epochs=1), self.counted(epochs=1)
        seen = [[], []]
        for batches in zip(one, two, strict=True):
            for i in range(2):
                seen[i] += batches[i][1].tolist()
        self.assertEqual(sorted(seen[0]), list(range(SAMPLES)))
        self.assertEqual(sorted(seen[1]), list(range(SAMPLES)))
        made = self.made() - before
        self.assertEqual(self.calls(), made + 3)  # the first, the middle and the last one are looked at
        self.assertLess(made, 2 * SAMPLES)

    def test_random_numbers_follow_the_plan(self):
        def epochs(loader, n):
            return [np.concatenate([np.c_[values, labels] for values, labels in loader]) for _ in range(n)]

        first, second = epochs(self.wrapped(samples.Noisy(self.log()), order="seeded", seed=3), 2)
        again = epochs(self.wrapped(samples.Noisy(self.log()), order="seeded", seed=3), 1)[0]
        np.testing.assert_array_equal(first, again)
        first, second = first[first[:, 2].argsort()], second[second[:, 2].argsort()]
        np.testing.assert_array_equal(first[:, 2], second[:, 2])
        self.assertFalse((first[:, :2] == second[:, :2]).any())
        self.assertEqual(len(np.unique(first[:, 0])), SAMPLES)

    def test_torch_is_seeded_too(self):
        try:
            import torch
        except ImportError as missing:
            self.skipTest(str(missing))

        def values():
            loader = self.wrapped(samples.Tensors(self.log()), order="seeded", seed=3, as_="torch", copy=True)
            return torch.cat([numbers for numbers, _ in loader])

        first, again = values(), values()
        self.assertEqual((first.dtype, first.shape), (torch.float32, (SAMPLES, 2)))
        self.assertTrue(torch.equal(first, again))
        self.assertEqual(len(first.unique()), 2 * SAMPLES)

    def test_tensors_are_told_by_their_content(self):
        """PyTorch pickles where in memory they lie, too."""
        program = ("import sys\n"
                   "try:\n"
                   "    import torch\n"
                   "except ImportError:\n"
                   "    sys.exit(77)\n"
                   "import oneaccess as oa\n"
                   "from torch.utils.data import TensorDataset\n"
                   "before = torch.zeros(int(sys.argv[2]))\n"
                   "data = TensorDataset(torch.arange(12.0).reshape(4, 3), torch.arange(4) + int(sys.argv[1]))\n"
                   "print(oa.wrap(data).identity(False))\n")
        runs = [subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
                for words in (("0", "10"), ("0", "1000000"), ("1", "10"))]
        if runs[0].returncode == 77:
            self.skipTest("PyTorch is not installed")
        self.assertEqual([run.returncode for run in runs], [0, 0, 0], runs[0].stderr)
        self.assertEqual(runs[0].stdout, runs[1].stdout)
        self.assertNotEqual(runs[0].stdout, runs[2].stdout)

    # ---- several at a time ----

    def asked_for(self):
        """The lengths of the lists that __getitems__ got."""
        return [int(line) for line in self.log().read_text().split()] if self.log().exists() else []

    def seen_of(self, dataset, epochs=1, **kwargs):
        loader = self.wrapped(dataset, **kwargs)
        return np.concatenate([np.c_[values, labels] for _ in range(epochs) for values, labels in loader])

    def until_several(self, dataset, **kwargs):
        """An epoch's samples, once some were asked for together: on a busy machine answers may be late for a while."""
        loader = self.wrapped(dataset, **kwargs)
        for _ in range(200):
            seen = np.concatenate([np.c_[values, labels] for values, labels in loader])
            if any(count > 1 for count in self.asked_for()):
                return seen
        raise AssertionError("none were asked for together")

    def test_several_are_asked_for_together(self):
        seen = self.until_several(samples.Many(self.log()))
        self.assertEqual(sorted(seen[:, 2]), list(range(512)))
        np.testing.assert_array_equal(seen[:, 0], seen[:, 2])
        self.assertLessEqual(max(self.asked_for()), pool.BATCH)

    def test_columns_of_several(self):
        dataset = samples.Many(self.log())
        loader = self.wrapped(dataset, wrap={"columns": ["1", "0"]})
        for _ in range(200):
            for labels, values in loader:
                np.testing.assert_array_equal(values[:, 0], labels)
            if any(count > 1 for count in self.asked_for()):
                break
        self.assertGreater(max(self.asked_for()), 1)

    def test_random_numbers_of_several_are_each_samples_own(self):
        first = self.seen_of(samples.Many(self.log(), "noise"), order="seeded", seed=3)
        again = self.seen_of(samples.Many(self.log(), "noise"), order="seeded", seed=3, wrap={"workers": 1})
        np.testing.assert_array_equal(first, again)
        self.assertEqual(len(np.unique(first[:, 0])), 512)

    def test_one_of_several_fails_alone(self):
        seen = self.seen_of(samples.Many(self.log(), "raise"), bad="skip", epochs=2)
        self.assertEqual(sorted(seen[:, 2]), sorted(2 * [i for i in range(512) if i != 5]))
        with self.assertRaisesRegex(oa.errors.SampleError, r"nothing good about 5[^$]*dataset\[5\], in its pool"):
            self.seen_of(samples.Many(self.log(), "raise"))

    def test_a_death_of_several_is_nobodys_end(self):
        seen = self.seen_of(samples.Many(self.log(), "exit"), epochs=3)
        self.assertEqual(sorted(seen[:, 2]), sorted(3 * list(range(512))))
        seen = self.seen_of(samples.Many(self.log(), "hang"), wrap={"timeout": 15})
        self.assertEqual(sorted(seen[:, 2]), list(range(512)))

    def test_too_few_of_several_are_made_one_by_one(self):
        seen = self.until_several(samples.Many(self.log(), "short"))
        self.assertEqual(sorted(seen[:, 2]), list(range(512)))

    def test_a_state_goes_on(self):
        loader = self.counted()
        seen = []
        for _, (_, labels) in zip(range(3), loader):
            seen += labels.tolist()
        state = loader.state_dict()
        loader.close()
        self.kill()
        self.start()
        for _, labels in self.counted(state=state):
            seen += labels.tolist()
        self.assertEqual(sorted(seen), list(range(SAMPLES)))

    def test_ranks(self):
        ranks = [self.counted(rank=rank, world_size=2, job="ranks", batch_size=8, epochs=1) for rank in range(2)]
        seen = []
        for batches in zip(*ranks, strict=True):
            for _, labels in batches:
                seen += labels.tolist()
        self.assertEqual(sorted(seen), list(range(SAMPLES)))

    # ---- faults ----

    def faulty(self, word, **kwargs):
        return self.wrapped(samples.Faulty(self.log(), word), **kwargs)

    def skipped(self, loader):
        """All samples but number 5 come."""
        seen = labels_of(loader)
        self.assertEqual(sorted(seen), [i for i in range(SAMPLES) if i != 5])
        self.assertEqual(loader.stats()["skipped"], 1)

    def test_an_exception_is_a_bad_sample(self):
        self.skipped(self.faulty("raise", bad="skip", epochs=1))
        with self.assertRaisesRegex(oa.errors.SampleError, r"sample 5,[^$]*stage read: ValueError: nothing good"
                                    r"[^$]*wrap_samples.py[^$]*raise ValueError") as caught:
            labels_of(self.faulty("raise"))
        self.assertEqual(caught.exception.name, "OA_E_SAMPLE")

    def test_another_shape_is_a_bad_sample(self):
        with self.assertRaisesRegex(oa.errors.SampleError, "shape 3x8x9, sample 0: 3x8x8"):
            labels_of(self.faulty("shape"))

    def test_a_process_that_ends_is_replaced(self):
        self.skipped(self.faulty("exit", bad="skip", epochs=1))
        with self.assertRaisesRegex(oa.errors.SampleError, "its process exited with 3"):
            labels_of(self.faulty("exit"))
        seen = labels_of(self.faulty("die once"))
        self.assertEqual(sorted(seen), list(range(SAMPLES)))

    def test_a_process_that_hangs_is_replaced(self):
        self.skipped(self.faulty("hang", bad="skip", epochs=1, wrap={"timeout": 15}))

    def test_a_pool_that_dies_is_started_again(self):
        loader = self.counted()
        loop = iter(loader)
        seen = next(loop)[1].tolist()
        before = loader._pool.pid
        os.kill(before, signal.SIGKILL)
        for _, labels in loop:
            seen += labels.tolist()
        self.assertEqual(sorted(seen), list(range(SAMPLES)))
        for _ in range(100):  # what it had read before that needs no other
            if loader._pool.pid != before:
                break
            self.assertEqual(sorted(labels_of(loader)), list(range(SAMPLES)))
        self.assertNotEqual(loader._pool.pid, before)

    def test_a_pool_outlives_the_job_that_started_it(self):
        program = ("import sys, oneaccess as oa, wrap_samples as samples\n"
                   f"dataset = samples.Counted({str(self.log())!r})\n"
                   f"loader = oa.Loader(oa.wrap(dataset, workers=2, keep=0.2), batch_size=16, socket={self.socket!r})\n"
                   "next(iter(loader))\n"
                   "print('there', flush=True)\n"
                   "sys.stdin.read()\n")
        path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ["PYTHONPATH"]])
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": path}, text=True) as first:
            self.addCleanup(first.kill)
            self.assertEqual(first.stdout.readline(), "there\n")
            loader = self.counted()
            pool = loader._pool.pid
            seen = labels_of(loader)
            first.kill()
            first.wait(600)
            seen += labels_of(loader)
        self.assertEqual(sorted(seen), sorted([*range(SAMPLES)] * 2))
        self.assertEqual(loader._pool.pid, pool)
        os.kill(pool, 0)
        loader.close()
        until(lambda: not os.path.exists(loader._folder), "the pool's end")


class PoolTest(unittest.TestCase):
    def test_a_message_that_was_drained_is_not_waited_for(self):
        """As when a watcher's question comes with it, in one turn of the loop."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        served = pool.Pool.__new__(pool.Pool)
        served.workers = {ours: pool.Hand(os.getpid(), ours, None)}
        turn = threading.Thread(target=served.on_worker, args=(ours,), daemon=True)
        turn.start()
        turn.join(60)
        self.assertFalse(turn.is_alive())
        self.assertIn(ours, served.workers)


if __name__ == "__main__":
    unittest.main(verbosity=2)
