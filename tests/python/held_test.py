# SPDX-License-Identifier: Apache-2.0
"""Programs that hold batches, or write to them, as with any other loader: what comes is right, nobody else sees it, and
the usual loop copies nothing. With NumPy; with PyTorch and JAX where they are."""

import collections
import ctypes
import gc
import importlib.util
import itertools
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import threading
import unittest
import warnings

try:
    import numpy as np
except ImportError as missing:
    print(f"held_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import SAMPLES, DaemonCase

warnings.simplefilter("error")
SIDE = 30  # samples share pages: 10,800 bytes each
BATCH = 8
LEN = SAMPLES // BATCH
TORCH = importlib.util.find_spec("torch")


class HeldCase(DaemonCase):
    def open(self, **kwargs):
        """Bit-identical batches in each Loader."""
        return self.loader(oa.imagenet_train(SIDE), BATCH, **{"as_": "numpy", "order": "seeded", "seed": 1, **kwargs})

    def want(self, epochs=1):
        """What comes, as copies."""
        loader = self.open(copy=True)
        return [images for _ in range(epochs) for images, _ in loader]

    def same(self, got, want):
        self.assertEqual(len(got), len(want))
        for images, others in zip(got, want):
            np.testing.assert_array_equal(np.asarray(images), np.asarray(others))


class Hold:
    """A file that whoever opens it waits for, until this is closed: the kernel asks us (fanotify), and we say nothing. Needs root."""

    INIT, MARK = 0x4 | 0x1, 0x1  # FAN_CLASS_CONTENT | FAN_CLOEXEC, FAN_MARK_ADD
    OPENING, HERE = 0x10000, -100  # FAN_OPEN_PERM, AT_FDCWD

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.file = libc.fanotify_init(self.INIT, os.O_RDONLY | os.O_CLOEXEC)
        if self.file < 0 or libc.fanotify_mark(self.file, self.MARK, ctypes.c_uint64(self.OPENING), self.HERE, os.fsencode(path)) != 0:
            self.close()
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self):
        if self.file >= 0:
            os.close(self.file)
        self.file = -1


class LateTest(HeldCase):
    def test_a_loop_beside_a_late_sample_is_not_blamed(self):
        """What is ready comes first, with one batch in the loop's hand, which may be copied for that."""
        kept, tries = 0, 0
        while kept == 0:  # where its chunk is the epoch's last nothing overtakes it
            tries += 1
            self.assertLess(tries, 20)
            data = shutil.copytree(self.data, self.work / f"late-{tries}", copy_function=shutil.copyfile)  # nothing of it is in memory
            late = sorted(data.glob("*/*"))[SAMPLES // 2]
            try:
                hold = Hold(late)
            except OSError as missing:
                print(f"held_test: not tested: a late sample: files cannot be held here (fanotify: {missing})")
                return
            self.addCleanup(hold.close)
            loader, ids = oa.Loader(data, oa.imagenet_train(SIDE), BATCH, as_="numpy", socket=self.socket, timeout=600), []
            self.addCleanup(loader.close)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for batch in loader:
                    ids += batch.ids
                    if len(ids) >= SAMPLES - 32:  # a chunk has no more
                        hold.close()
            self.assertEqual(sorted(ids), [*range(SAMPLES)])
            kept = loader.stats()["kept"]


class HeldTest(HeldCase):
    def test_the_usual_loop_copies_nothing(self):
        loader = self.open()
        before = None
        for _ in range(3):
            for images, _ in loader:
                self.assertFalse(images.flags.owndata)
                before = images  # as a loop does
        stats = loader.stats()
        self.assertIsNotNone(before)
        self.assertEqual((stats["kept"], stats["written"]), (0, 0))
        self.assertEqual(stats["samples"], 3 * SAMPLES)

    def test_a_list_of_all(self):
        loader = self.open()
        with self.assertWarnsRegex(RuntimeWarning, "more batches are held.*MiB a sample.*held=\"error\"") as told:
            batches = list(loader)
        self.assertEqual(told.filename, __file__)
        batches += list(loader)  # and says nothing more
        self.same([images for images, _ in batches], self.want(2))
        self.assertEqual(len({number for batch in batches[:LEN] for number in batch.ids}), SAMPLES)
        stats = loader.stats()
        self.assertLessEqual(stats["pins"], 2)
        self.assertGreaterEqual(stats["kept"] + stats["copied"], 2 * SAMPLES - stats["pins"] * stats["chunk"])
        loader.close()
        self.same([images for images, _ in batches], self.want(2))

    def test_warnings_as_errors_lose_no_batch(self):
        loader, held, told = self.open(), [], 0
        loop = iter(loader)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            while len(held) < LEN:
                try:
                    held.append(next(loop))
                except RuntimeWarning:
                    told += 1
        self.assertEqual(told, 1)
        self.same([images for images, _ in held], self.want())

    def test_the_first_is_kept(self):
        loader = self.open()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            loop = iter(loader)
            first = next(loop)
            got = [first[0].copy()] + [images.copy() for images, _ in loop]
            for _ in range(3):
                got += [images.copy() for images, _ in loader]
        want = self.want(4)
        self.same(got, want)
        self.same([first[0]], want[:1])
        self.assertEqual([warning.category for warning in told], [RuntimeWarning])
        before = loader.stats()["kept"]
        self.assertGreater(before, 0)
        del first, loop
        got = [images.copy() for images, _ in loader]  # its slot may be in use by a chunk that was copied
        self.same(got, self.want(5)[4 * LEN:])
        before = loader.stats()["kept"]
        self.same([images.copy() for images, _ in loader], self.want(6)[5 * LEN:])
        self.assertEqual(loader.stats()["kept"], before)

    def test_four_threads_share_a_loop(self):
        loader = self.open()
        loop, taken = iter(loader), []

        def take():
            held = collections.deque(maxlen=6)
            for batch in loop:
                held.append(batch)
                taken.append((batch.step, batch.ids.tolist(), batch[0].copy()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            threads = [threading.Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        taken.sort(key=lambda each: each[0])
        self.same([images for _, _, images in taken], self.want())
        self.assertEqual(sorted(number for _, ids, _ in taken for number in ids), list(range(SAMPLES)))

    def test_a_thread_with_a_queue(self):
        loader, ahead, got = self.open(), queue.Queue(4), []

        def fill():
            for batch in loader:
                ahead.put(batch)
            ahead.put(None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thread = threading.Thread(target=fill)
            thread.start()
            while (batch := ahead.get()) is not None:
                got.append(batch[0].copy())
            thread.join()
        self.same(got, self.want())

    def test_cycle(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = [images for images, _ in itertools.islice(itertools.cycle(self.open()), 2 * LEN)]
        self.same(got, 2 * self.want())

    def test_two_loaders_of_one_stream(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pairs = list(zip(self.open(), self.open()))
        self.same([one[0] for one, _ in pairs], self.want())
        self.same([two[0] for _, two in pairs], self.want())

    def test_the_strict_way(self):
        loader = self.open(held="error")
        loop, held, got = iter(loader), [], []
        with self.assertRaisesRegex(oa.errors.HeldError, "you hold [0-9]+ batches.*held=\"copy\".*copy=True"):
            for batch in loop:
                held.append(batch)
        got += [images.copy() for images, _ in held]
        held.clear()
        del batch
        gc.collect()
        got += [images.copy() for images, _ in loop]
        self.same(got, self.want())
        self.assertEqual(loader.stats()["kept"], 0)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "held is 'never'; there are: copy, error"):
            self.open(held="never")

    def test_what_is_held_outlives_the_daemon(self):
        loader, held = self.open(), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for batch in loader:
                held.append(batch)
                if batch.step == LEN // 2:
                    self.kill()
                    self.start()
        self.same([images for images, _ in held], self.want())


@unittest.skipUnless(TORCH, "no torch")
class WriteTest(HeldCase):
    def check(self, write, **kwargs):
        """Writes to each batch, beside one who does not; each sees what it should."""
        loader, other = self.open(as_="torch", **kwargs), self.open(as_="torch")
        want = self.want(3)
        for at, others in enumerate(itertools.chain(other, other, other)):
            if at % LEN == 0:
                loop = iter(loader)
            mine = next(loop)
            self.same([mine[0], others[0]], [want[at]] * 2)
            write(mine[0])
            self.same([others[0]], [want[at]])
        self.assertEqual(other.stats()["written"], 0)
        return loader.stats()

    def test_in_place(self):
        def write(images):
            before = images.clone()
            images.sub_(1).mul_(2)
            self.assertTrue((images == (before - 1) * 2).all())
        for held in ("copy", "error"):
            stats = self.check(write, held=held)
            self.assertGreater(stats["written"], 0)
            self.assertEqual(stats["kept"], 0)

    def test_one_value_of_some(self):
        counter = itertools.count()

        def write(images):
            if next(counter) % 5 == 0:
                images[3, 1, 2, 2] = 1e9
        self.check(write)

    def test_relu(self):
        import torch
        relu = torch.nn.ReLU(inplace=True)
        self.check(lambda images: self.assertGreaterEqual(float(relu(images).min()), 0))

    def test_past_torch(self):
        """What no counter of PyTorch sees."""
        def through_numpy(images):
            array = images.numpy()
            self.assertTrue(array.flags.writeable)
            array[:] = 7
            self.assertEqual(float(images.sum()), 7 * images.numel())
        self.check(through_numpy)
        self.check(lambda images: ctypes.memset(images.data_ptr() + 4 * 999, 0xff, 4321))

    def test_what_was_written_is_kept(self):
        loader, held, want = self.open(as_="torch"), [], self.want()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for images, _ in loader:
                held.append(images.add_(len(held)))
        self.same(held, [images + np.float32(at) for at, images in enumerate(want)])
        for images in held:
            images.zero_()
        del held, images
        gc.collect()
        self.same([images.clone() for images, _ in loader], self.want(2)[LEN:])

    def test_losses_with_their_graph(self):
        import torch
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 3))
        losses = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for images, labels in self.open(as_="torch"):
                losses.append(torch.nn.functional.cross_entropy(model(images), labels))
        want = [torch.nn.functional.cross_entropy(model(images), labels)
                for images, labels in self.open(as_="torch", copy=True)]
        sum(losses).backward()
        got = model[1].weight.grad.clone()
        model.zero_grad()
        sum(want).backward()
        self.assertTrue(torch.equal(got, model[1].weight.grad))

    def test_a_child_writes_for_itself(self):
        loader = self.open(as_="torch")
        loop = iter(loader)
        images, _ = next(loop)
        before = np.array(images)
        pid = os.fork()
        if pid == 0:
            ctypes.memset(images.data_ptr(), 0, 4 * images.numel())
            os._exit(0 if ctypes.string_at(images.data_ptr(), 4 * images.numel()).count(0) == before.nbytes else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.same([images], [before])
        del images
        self.same([images.clone() for images, _ in loop], self.want()[1:])

    def run_program(self, *lines):
        program = ["import faulthandler, torch, oneaccess as oa", "from oneaccess import _core",
                   f"data, socket = {self.data!r}, {self.socket!r}",
                   f"loader = oa.Loader(data, oa.imagenet_train({SIDE}), {BATCH}, socket=socket)", *lines]
        return subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, timeout=600,
                              check=False)

    def test_other_handlers_of_faults(self):
        run = self.run_program("faulthandler.enable()", "for images, _ in loader:", "    images.mul_(2)",
                               "print('all', flush=True)", "faulthandler._sigsegv()")
        self.assertEqual((run.returncode, run.stdout), (-signal.SIGSEGV, "all\n"))
        self.assertRegex(run.stderr, "Fatal Python error: Segmentation fault")
        self.assertNotIn("wrote to a batch", run.stderr)

    def test_what_a_device_reads_is_not_written_to(self):
        run = self.run_program("stream = _core.Stream(_core.Client(socket), dataset=data, pipeline='imagenet-eval', batch=4)",
                               "batch = stream.next()",
                               "torch.utils.dlpack.from_dlpack(batch.fields[0].__dlpack__()).mul_(2)")
        self.assertEqual(run.returncode, -signal.SIGSEGV)
        self.assertRegex(run.stderr, "wrote to a batch.*copy=True")

    def test_system_calls_say_so(self):
        images, _ = next(iter(self.open(as_="torch")))
        with open("/dev/zero", "rb", buffering=0) as zeros, self.assertRaises(OSError):
            zeros.readinto(memoryview(images.numpy()).cast("B"))


@unittest.skipUnless(importlib.util.find_spec("jax"), "no jax")
class JaxTest(HeldCase):
    def test_dispatch_that_does_not_wait(self):
        import jax
        import jax.numpy as jnp
        step = jax.jit(lambda images: jnp.tanh(images).sum() + images.max())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = [step(images) for images, _ in self.open(as_="jax")]
        for value, images in zip(got, self.want()):
            self.assertEqual(float(value), float(step(jnp.asarray(images))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
