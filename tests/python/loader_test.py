# SPDX-License-Identifier: Apache-2.0
"""What a training loop does with a Loader, with NumPy, against a real daemon."""

import gc
import importlib.util
import io
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import warnings

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"loader_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import BUILD, SAMPLES, DaemonCase

warnings.simplefilter("error")


def epoch_of(loader):
    """The ids of one whole epoch."""
    return [number for batch in loader for number in batch.ids.tolist()]


class LoaderTest(DaemonCase):
    def test_epochs_are_whole_and_differ(self):
        loader = self.loader()
        first, second = epoch_of(loader), epoch_of(loader)
        self.assertEqual(sorted(first), list(range(SAMPLES)))
        self.assertEqual(sorted(second), list(range(SAMPLES)))
        self.assertNotEqual(first, second)
        self.assertEqual(loader.stats()["samples"], 2 * SAMPLES)

    def test_len_is_what_comes(self):
        for batch, drop_last, want in ((16, False, 15), (7, False, 35), (7, True, 34)):
            loader = self.loader(oa.imagenet_train(32), batch, drop_last=drop_last)
            self.assertEqual(len(loader), want)
            self.assertEqual(sum(1 for _ in loader), want)

    def test_batches_are_views(self):
        loader = self.loader()
        images, labels = batch = next(iter(loader))
        self.assertEqual((images.shape, images.dtype), ((16, 3, 32, 32), np.float32))
        self.assertEqual((labels.shape, labels.dtype), ((16,), np.int64))
        self.assertFalse(images.flags.writeable)
        self.assertFalse(images.flags.owndata)
        self.assertTrue(labels.flags.writeable)
        self.assertEqual((batch.epoch, batch.step, batch.is_last), (0, 0, False))
        with self.assertRaises(ValueError):
            images[0] = 0
        expected = images.copy()
        del batch
        loader.close()
        np.testing.assert_array_equal(images, expected)

    def test_labels_are_the_folders(self):
        by_folder = sorted(os.listdir(self.data))
        files = [(folder, name) for folder in by_folder
                 for name in sorted(os.listdir(os.path.join(self.data, folder)))]
        for batch in self.loader():
            for number, label in zip(batch.ids, batch[1]):
                self.assertEqual(by_folder[label], files[number][0])

    def test_pixels_are_pillows(self):
        pipeline = oa.Compose([oa.transforms.Resize((64, 64)), oa.transforms.PILToTensor()])
        loader = self.loader(pipeline, 16, shuffle=False)
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.data)
                       for name in names)
        at = 0
        for images, _ in loader:
            for image in images:
                picture = Image.open(files[at]).convert("RGB").resize((64, 64), Image.BILINEAR)
                want = np.asarray(picture).transpose(2, 0, 1)
                np.testing.assert_array_equal(image, want)
                at += 1
        self.assertEqual(at, SAMPLES)

    def test_dtypes(self):
        for dtype in ("uint8", "float16", "float32"):
            images, _ = next(iter(self.loader(oa.imagenet_train(32, dtype=dtype), 4)))
            self.assertEqual(images.dtype, np.dtype(dtype))
        with unittest.mock.patch.dict(sys.modules, ml_dtypes=None), \
                self.assertRaisesRegex(oa.errors.ArgumentError, "bfloat16.*ml_dtypes"):
            next(iter(self.loader(oa.imagenet_train(32, dtype="bfloat16"), 4)))

    @unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "no ml_dtypes")
    def test_bfloat16_is_that_of_ml_dtypes(self):
        images, _ = next(iter(self.loader(oa.imagenet_train(32, dtype="bfloat16"), 4)))
        self.assertEqual((images.dtype.name, images.shape), ("bfloat16", (4, 3, 32, 32)))
        self.assertFalse(images.flags.writeable)

    def test_early_break_leaves_the_epoch(self):
        loader = self.loader()
        for batch in loader:
            if batch.step == 3:
                break
        self.assertEqual(sorted(epoch_of(loader)), list(range(SAMPLES)))
        self.assertEqual(next(iter(loader)).epoch, 2)

    def test_seeded_epochs_go_on_after_a_break(self):
        def three(leaves):
            loader = self.loader(oa.imagenet_train(32), 16, order="seeded", seed=7)
            if leaves:
                next(iter(loader))
            else:
                epoch_of(loader)
            return epoch_of(loader)
        self.assertEqual(three(False), three(True))

    def test_a_second_loop_ends_the_first(self):
        loader = self.loader()
        first = iter(loader)
        next(first)
        second = iter(loader)
        next(second)
        with self.assertRaisesRegex(oa.Error, "another loop"):
            next(first)

    def test_train_and_validation_together(self):
        train = self.loader(oa.imagenet_train(32), 16, split=(0, 0.8, 1))
        valid = self.loader(oa.imagenet_eval(32), 16, split=(0.8, 1, 1), shuffle=False)
        for _ in range(2):
            ids = epoch_of(train)
            held_out = epoch_of(valid)
            self.assertEqual(sorted(ids + held_out), list(range(SAMPLES)))
            self.assertEqual((len(train), len(valid)), (SAMPLES * 4 // 5 // 16, SAMPLES // 5 // 16))

    def test_state_is_exact(self):
        loader = self.loader()
        taken = []
        for batch in loader:
            taken += batch.ids.tolist()
            if batch.step == 6:
                state = loader.state_dict()
                break
        other = self.loader(oa.imagenet_train(32), 5, state=pickle.loads(pickle.dumps(state)))
        rest = epoch_of(other)
        self.assertEqual(sorted(taken + rest), list(range(SAMPLES)))
        self.assertEqual(sorted(epoch_of(other)), list(range(SAMPLES)))
        loader.load_state_dict(state)
        self.assertEqual(sorted(taken + epoch_of(loader)), list(range(SAMPLES)))

    def test_state_of_seeded_batches_is_bit_exact(self):
        loader = self.loader(oa.imagenet_train(32), 16, order="seeded", seed=3, copy=True)
        batches = [(images, labels) for images, labels in loader]
        again = self.loader(oa.imagenet_train(32), 16, order="seeded", seed=3)
        loop = iter(again)
        for _ in range(5):
            next(loop)
        state = again.state_dict()
        resumed = self.loader(oa.imagenet_train(32), 16, copy=True, state=state)
        for (images, labels), (want_images, want_labels) in zip(resumed, batches[5:], strict=True):
            np.testing.assert_array_equal(images, want_images)
            np.testing.assert_array_equal(labels, want_labels)

    def test_damaged_states_are_refused(self):
        state = self.loader().state_dict()
        for wrong, text in (({}, "no state"), ({**state, "oneaccess": 9}, "upgrade"),
                            ({**state, "token": "%"}, "base64"),
                            ({**state, "token": state["token"][:40]}, "damaged|short|token")):
            with self.assertRaisesRegex(oa.errors.StateError, text):
                self.loader(state=wrong)

    @unittest.skipUnless(importlib.util.find_spec("tqdm"), "no tqdm")
    def test_a_progress_bar(self):
        from tqdm import tqdm
        with tqdm(self.loader(oa.imagenet_train(32), 16), file=io.StringIO()) as bar:
            for _ in bar:
                pass
        self.assertEqual((bar.total, bar.n), (15, 15))

    def test_own_samples(self):
        for ids in ([5, 3, 9], np.array([5, 3, 9]), np.array([5, 3, 9], np.int32), range(5, 8)):
            taken = epoch_of(self.loader(oa.imagenet_train(32), 2, shuffle=False, ids=ids))
            self.assertEqual(taken, [int(number) for number in ids])
        weights = np.zeros(SAMPLES)
        weights[[7, 8]] = 1
        loader = self.loader(oa.imagenet_train(32), 16, order="seeded", seed=1, weights=weights,
                             samples=50, replacement=True)
        self.assertEqual(len(loader), 4)
        taken = epoch_of(loader)
        self.assertEqual((len(taken), set(taken)), (50, {7, 8}))

    def test_ranks_split_each_epoch(self):
        def rank(number, taken):
            loader = self.loader(oa.imagenet_train(32), 8, rank=number, world_size=3, job="ranks")
            taken[number] = [(len(loader), epoch_of(loader)) for _ in range(2)]
            for batch in loader:
                break
            taken[number].append((len(loader), epoch_of(loader)))
        taken = [None] * 3
        threads = [threading.Thread(target=rank, args=(number, taken)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for epoch in range(3):
            self.assertEqual(sorted(sum((taken[number][epoch][1] for number in range(3)), [])),
                             list(range(SAMPLES)))
            self.assertEqual([taken[number][epoch][0] for number in range(3)], [10] * 3)

    def test_ranks_come_from_the_environment(self):
        os.environ.update(RANK="1", WORLD_SIZE="2")
        try:
            loader = self.loader(oa.imagenet_train(32), 8, order="seeded", seed=1)
        finally:
            del os.environ["RANK"], os.environ["WORLD_SIZE"]
        self.assertEqual((loader.rank, loader.world_size, len(loader)), (1, 2, SAMPLES // 16))

    def test_ranks_on_other_nodes_need_a_plan(self):
        launchers = (({"LOCAL_WORLD_SIZE": "2"}, True), ({"LOCAL_WORLD_SIZE": "4"}, False),
                     ({"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, True), ({"MPI_LOCALNRANKS": "3"}, True),
                     ({"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "4"}, True),
                     ({"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "2"}, False),
                     ({"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": "4"}, False), ({}, False))
        for launcher, are_several in launchers:
            with unittest.mock.patch.dict(os.environ, RANK="0", WORLD_SIZE="4", **launcher):
                for order in (None, "carousel", "any"):
                    if not are_several:
                        self.loader(oa.imagenet_eval(32), 8, order=order)
                        continue
                    with self.assertRaisesRegex(oa.errors.ArgumentError, "other nodes.*order=\"seeded\""):
                        self.loader(oa.imagenet_eval(32), 8, order=order)
                for order in ("seeded", "sequential"):
                    self.assertEqual(self.loader(oa.imagenet_eval(32), 8, order=order).world_size, 4)
        with unittest.mock.patch.dict(os.environ, LOCAL_WORLD_SIZE="2"):
            self.loader()  # one rank is on one node

    def test_holding_too_much_says_so(self):
        loader = self.loader(held="error")
        held = []
        with self.assertRaisesRegex(oa.errors.HeldError, "you hold [0-9]+ batches.*copy=True"):
            for _ in range(3):
                held += list(loader)
        held.clear()
        gc.collect()
        self.assertEqual(len(list(self.loader(copy=True))), 15)

    def test_copies_are_the_jobs_own(self):
        for images, _ in self.loader(copy=True):
            images[:] = 7

    def test_dlpack_keeps_the_slot(self):
        loader = self.loader(as_="dlpack")
        batch = next(iter(loader))
        image = np.from_dlpack(batch[0])
        expected = image.copy()
        self.assertFalse(image.flags.writeable)
        del batch
        loader.close()
        gc.collect()
        np.testing.assert_array_equal(image, expected)
        capsule = next(iter(self.loader(as_="dlpack")))[0].__dlpack__()
        del capsule  # one that nobody takes
        gc.collect()

    def test_threads_share_a_loop(self):
        loader = self.loader()
        loop, taken = iter(loader), []

        def take():
            for batch in loop:
                taken.extend(batch.ids.tolist())
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(taken), list(range(SAMPLES)))

    def test_close_ends_a_wait(self):
        loader = self.loader(timeout=None)
        words = []

        def take():
            try:
                while True:
                    for _ in loader:
                        pass
            except ValueError as closed:
                words.append(str(closed))
        thread = threading.Thread(target=take)
        thread.start()
        while loader.stats()["batches"] < 3:
            time.sleep(0.01)
        loader.close()
        thread.join(600)
        self.assertRegex(words[0], "the (stream|Loader) was closed")
        with self.assertRaisesRegex(ValueError, "Loader was closed"):
            loader.stats()

    def test_children_are_refused(self):
        loader = self.loader()
        next(iter(loader))
        pid = os.fork()
        if pid == 0:
            try:
                loader.state_dict()
            except oa.errors.ForkedError:
                os._exit(7)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
        with self.assertRaisesRegex(oa.errors.TransformError, "each process"):
            pickle.dumps(loader)

    def test_bad_arguments_are_named(self):
        for kwargs, error, text in (
                ({"batch_sampler": len}, oa.errors.TransformError, "batch_sampler is a builtin"),
                ({"nonsense": 1}, TypeError, "nonsense"),
                ({"as_": "tensor"}, oa.errors.ArgumentError, "as_ is"),
                ({"order": "random"}, oa.errors.ArgumentError, "order is"),
                ({"bad": "ignore"}, oa.errors.ArgumentError, "bad is"),
                ({"seed": -1}, oa.errors.ArgumentError, "seed"),
                ({"ids": [1, SAMPLES]}, oa.errors.ArgumentError, "240"),
                ({"classes": ["no such"]}, oa.errors.ArgumentError, "no such"),
                ({"rank": 1}, oa.errors.ArgumentError, "world_size")):
            with self.assertRaisesRegex(error, text, msg=str(kwargs)):
                self.loader(**kwargs)
        with self.assertRaisesRegex(oa.errors.PipelineError, "resiz"):
            self.loader('{"ops":[{"op":"decode"},{"op":"resiz"}]}', 8)
        with self.assertRaisesRegex(oa.errors.DatasetError, "/nowhere"):
            oa.Loader("/nowhere", socket=self.socket)
        with self.assertRaisesRegex(oa.errors.TransformError, "list is no folder"):
            oa.Loader([1, 2], socket=self.socket)

    def test_what_a_dataloader_takes_is_ignored_with_a_reason(self):
        loader = self.loader(num_workers=8, pin_memory=True)
        self.assertEqual(set(loader.ignored), {"num_workers", "pin_memory"})
        self.assertIn("num_workers ignored", repr(loader))

    def test_interrupt_ends_a_wait_at_once(self):
        program = (
            "import os, signal, sys, threading, time, oneaccess as oa\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background ignores it
            f"loader = oa.Loader({self.data!r}, oa.imagenet_train(32), 16, socket={self.socket!r})\n"
            "os.kill(int(sys.argv[1]), signal.SIGSTOP)\n"
            "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try:\n"
            "    while True:\n"
            "        for batch in loader: pass\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', flush=True)\n"
            "    os._exit(0)\n")
        try:
            run = subprocess.run([sys.executable, "-c", program, str(self.daemon.pid)], timeout=600,
                                 stdout=subprocess.PIPE, text=True, check=False)
        finally:
            self.daemon.send_signal(signal.SIGCONT)
        self.assertEqual(run.stdout, "interrupted\n")

    def test_a_timeout_names_the_stage(self):
        loader = self.loader(timeout=0.5)
        self.daemon.send_signal(signal.SIGSTOP)
        try:
            with self.assertRaisesRegex(oa.errors.BatchTimeout, "no batch within 0.5 s: .*accessd"):
                while True:
                    epoch_of(loader)
        finally:
            self.daemon.send_signal(signal.SIGCONT)
        loader._timeout = 600
        epoch_of(loader)

    def test_progress_bars_know_the_length(self):
        loop = iter(self.loader())
        self.assertEqual(len(loop), 15)

    def test_classes_are_the_folders(self):
        loader = self.loader()
        names = sorted(os.listdir(self.data))
        self.assertEqual(loader.classes, names)
        self.assertEqual(loader.class_to_idx, {name: label for label, name in enumerate(names)})
        self.assertEqual(len(loader.targets), SAMPLES)
        for batch in loader:
            self.assertEqual([loader.targets[number] for number in batch.ids], batch[1].tolist())
            break

    def doctor(self, *arguments, **variables):
        return subprocess.run([sys.executable, "-m", "oneaccess.doctor", *arguments], text=True,
                              env={**os.environ, "ACCESS_SOCKET": self.socket, **variables},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)

    def test_the_doctor_finds_what_is_there(self):
        run = self.doctor(self.data)
        self.assertIn(f"data set: {self.data}: 240 samples of 3 classes", run.stdout)
        self.assertIn(f"pid {self.daemon.pid}", run.stdout)
        self.assertIn("kept: nothing: cache_size is 0", run.stdout)
        self.assertIn("numpy: " + np.__version__.split("+")[0][:4], run.stdout)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_doctor_looks_at_jobs(self):
        loader = self.loader(job="patient")
        next(iter(loader))
        run = self.doctor(PATH=f"{BUILD / 'tools'}:{os.environ['PATH']}")
        self.assertRegex(run.stdout, r"(ok   |slow |note ) job patient: \d+ samples a second: ")
        self.assertIn("slow  kept: nothing: cache_size is 0\n      mend: mkdir -p ~/.config/oneaccess && echo 'cache_size = 50G' >> ~/.config", run.stdout)
        self.assertIn("note  of no account: slots are accessd's memory", run.stdout)
        self.assertRegex(run.stdout, "slots: .* MiB for slots")
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_doctor_says_what_to_mend(self):
        run = self.doctor("/nowhere", ACCESS_DAEMON="/nowhere/accessd")
        self.assertIn("BAD   program: ACCESS_DAEMON is /nowhere/accessd", run.stdout)
        self.assertIn("BAD   data set: ", run.stdout)
        self.assertEqual(run.returncode, 1)
        run = self.doctor(ACCESS_SOCKET="/nowhere/socket")
        self.assertRegex(run.stdout, "BAD   daemon: OA_E_UNREACHABLE: .*/nowhere/socket")
        self.assertEqual(run.returncode, 1)

    def test_epochs_end(self):
        loader = self.loader(oa.imagenet_train(32), 16, epochs=2)
        epoch_of(loader)
        epoch_of(loader)
        with self.assertRaisesRegex(oa.Error, "all 2 epochs"):
            epoch_of(loader)


class BadSamplesTest(DaemonCase):
    BAD = sorted({*range(3, SAMPLES, 7), SAMPLES - 1})

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.paths = sorted(str(path) for path in pathlib.Path(cls.data).rglob("*.jpg"))
        for number in cls.BAD:
            pathlib.Path(cls.paths[number]).write_text("no picture")

    def tolerant(self, bad="skip", **kwargs):
        kwargs.setdefault("bad_budget", 100)
        return self.loader(oa.imagenet_train(32), 16, bad=bad, **kwargs)

    def check(self, loader, unknown=False):
        listed = loader.bad_samples
        self.assertEqual([sample.index for sample in listed], self.BAD)
        for index, path, stage, error in listed:
            self.assertEqual(path, self.paths[index])
            self.assertIn(stage, ("decode", "unknown") if unknown else ("decode",))
            self.assertTrue(error)

    def test_each_policy_lists_them(self):
        for bad, come in (("skip", SAMPLES - len(self.BAD)), ("substitute", SAMPLES)):
            loader = self.tolerant(bad)
            for epoch in range(1, 4):
                self.assertEqual(len(epoch_of(loader)), come)
                stats = loader.stats()
                self.assertEqual(stats["skipped"] + stats["substituted"], epoch * len(self.BAD))
                self.check(loader)

    def test_an_epoch_may_end_with_a_chunk_of_bad_samples(self):
        data = shutil.copytree(self.data, self.work / "last")
        bad = {*self.BAD, *range(SAMPLES - SAMPLES % 32, SAMPLES)}
        for number in bad:
            (data / os.path.relpath(self.paths[number], self.data)).write_text("no picture")
        good = [number for number in range(SAMPLES) if number not in bad]
        for batch_size in (16, 7):
            options = {"bad": "skip", "bad_budget": 100, "order": "sequential", "socket": self.socket, "timeout": 600}
            loader = oa.Loader(data, oa.imagenet_train(32), batch_size, **options)
            self.addCleanup(loader.close)
            self.assertEqual(epoch_of(loader), good)
            self.assertGreaterEqual(loader.stats()["skipped"], len(bad))
            self.assertEqual([sample.index for sample in loader.bad_samples], sorted(bad))
            again = oa.Loader(data, oa.imagenet_train(32), batch_size, state=loader.state_dict(), **options)
            self.addCleanup(again.close)
            self.assertEqual(epoch_of(again), good)
            self.assertEqual(epoch_of(loader), good)
            iter(loader)
            self.assertEqual(epoch_of(loader), good)

    def test_in_order_the_counts_are_whole_at_the_end(self):
        loader = self.tolerant(order="sequential")
        for epoch in range(1, 4):
            epoch_of(loader)
            self.assertEqual(loader.stats()["skipped"], epoch * len(self.BAD))

    def test_they_stay_when_an_epoch_is_left_and_behind_the_end(self):
        loader = self.tolerant(order="sequential")
        self.assertIsInstance(loader.bad_samples, list)
        for batch in loader:
            if batch.step == 5:
                break
        iter(loader)  # another stream
        self.assertLessEqual({3, 10, 17}, {sample.index for sample in loader.bad_samples})
        epoch_of(loader)
        self.check(loader)
        loader.close()
        self.check(loader)

    def test_errors_say_how_to_get_them(self):
        self.stop()  # with what it knows already it would refuse the job
        self.start()
        loader = self.tolerant(bad_budget=4)
        with self.assertRaisesRegex(oa.errors.SampleError, r"more than the budget of 4 .*Loader\.bad_samples"):
            epoch_of(loader)
        self.assertGreater(len(loader.bad_samples), 4)
        self.assertLessEqual({sample.index for sample in loader.bad_samples}, {*self.BAD})
        loader.close()
        self.assertGreater(len(loader.bad_samples), 4)
        with self.assertRaisesRegex(oa.errors.SampleError, r"more than the budget of 2: .*Loader\.bad_samples"):
            self.tolerant(bad_budget=2)
        loader = self.tolerant("error", order="sequential")
        with self.assertRaises(oa.errors.SampleError):
            epoch_of(loader)
        self.assertEqual(loader.bad_samples[0][:2], (3, self.paths[3]))

    def test_none_are_an_empty_list(self):
        loader = self.loader(oa.imagenet_train(32), 16, ids=[0, 1, 2])
        epoch_of(loader)
        self.assertEqual(loader.bad_samples, [])

    def test_they_outlive_the_daemon(self):
        loader = self.tolerant(order="sequential", epochs=2)
        for batch in loader:
            if batch.step == 7:
                self.kill()
                self.start()
        self.assertEqual(loader.stats()["skipped"], len(self.BAD))
        self.check(loader, unknown=True)
        epoch_of(loader)
        self.check(loader)


class RestartTest(DaemonCase):
    def test_jobs_outlive_the_daemon(self):
        loader = self.loader()
        taken = []
        for batch in loader:
            taken += batch.ids.tolist()
            if batch.step == 4:
                self.kill()
                self.start()
        self.assertEqual(sorted(taken), list(range(SAMPLES)))
        self.assertEqual(loader.stats()["reconnects"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
