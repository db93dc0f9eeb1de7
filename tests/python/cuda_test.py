# SPDX-License-Identifier: Apache-2.0
"""Batches on a GPU. Needs one, and PyTorch; device_test.py has what does not."""

import os
import subprocess
import sys
import threading
import unittest
import unittest.mock
import warnings

try:
    import torch
except ImportError as missing:
    print(f"cuda_test: skipped: {missing}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("cuda_test: skipped: PyTorch finds no GPU")
    sys.exit(77)

import oneaccess as oa
from oneaccess import cuda, device, ending
from support import SAMPLES, DaemonCase

warnings.simplefilter("error")
LATE = 20_000_000  # cycles: some 10 ms


class CudaTest(DaemonCase):
    def there(self, *args, **kwargs):
        return self.loader(*args, **{"device": "cuda", **kwargs})

    def want(self, pipeline, batch, **kwargs):
        return [(batch[0].clone(), batch[1].clone(), list(batch.ids)) for batch in
                self.loader(pipeline, batch, as_="torch", order="seeded", seed=5, **kwargs)]

    def check(self, loader, want):
        count = 0
        for batch, (images, labels, ids) in zip(loader, want, strict=True):
            self.assertEqual(batch[0].device.type, "cuda")
            self.assertTrue(torch.equal(batch[0].cpu(), images))
            self.assertTrue(torch.equal(batch[1].cpu(), labels))
            self.assertEqual(list(batch.ids), ids)
            count += 1
        self.assertEqual(count, len(want))

    def test_values_are_the_daemons(self):
        t = oa.transforms
        hwc = oa.Compose([t.RandomResizedCrop(32), t.Normalize(t.IMAGENET_MEAN, t.IMAGENET_STD)])
        for pipeline in (*(oa.imagenet_train(32, dtype=dtype) for dtype in
                           ("uint8", "float32", "float16", "bfloat16")), hwc,
                         oa.Compose([t.RandomResizedCrop(32), t.ToTensor(), t.OneHot(3)])):
            with self.subTest(pipeline=repr(pipeline)):
                want = self.want(pipeline, 16)
                self.check(self.there(pipeline, 16, order="seeded", seed=5), want)
                self.check(self.there(pipeline, 16, order="seeded", seed=5, normalize_on="host"), want)

    def test_both_ways_of_finishing_are_exact(self):
        here = torch.device("cuda")
        for mean, std in ((list(oa.transforms.IMAGENET_MEAN), list(oa.transforms.IMAGENET_STD)),
                          ([0.1], [7.3]), ([0.3, 0.2, 0.1], [0.9]), (None, None)):
            for dtype in ("float32", "float16", "bfloat16"):
                for axis in (-3, -1):
                    end = ending.Ending(dtype, mean, std, axis)
                    for way in (device.Arithmetic, device.Lookup):
                        self.assertIsInstance(device.finisher(end, here, (way,)), way)

    def test_modes_of_torch(self):
        want = self.want(oa.imagenet_train(32), 16)
        with torch.autocast("cuda", dtype=torch.float16), torch.inference_mode():
            loader = self.there(oa.imagenet_train(32), 16, order="seeded", seed=5)
            self.check(loader, want)
        for images, _ in loader:
            images.mul_(2)

    def test_slow_copies_and_slow_training(self):
        """The device does each of its parts late, in turn, and the host does not wait for it: bytes are
        what they are, for tensors that are kept, too."""
        pipeline = oa.imagenet_train(32)
        want = self.want(pipeline, 16)
        late_copy = cuda.Cuda.copy

        def copy(engine, triples, after, done):
            with torch.cuda.stream(engine._side):
                torch.cuda._sleep(LATE)
            late_copy(engine, triples, after, done)
        for copies_late, trains_late, twice in ((1, 0, 0), (0, 1, 0), (1, 1, 1)):
            with unittest.mock.patch.object(cuda.Cuda, "copy", copy if copies_late else late_copy):
                loader, kept = self.there(pipeline, 16, order="seeded", seed=5), []
                for batch in loader:
                    if trains_late:
                        torch.cuda._sleep(LATE)
                    kept.append((batch[0] * 1, batch[1]) if twice else (batch[0], batch[1]))
                self.assertEqual(loader.stats()["outstanding"], 0)
                for (images, labels), (want_images, want_labels, _) in zip(kept, want, strict=True):
                    self.assertTrue(torch.equal(images.cpu(), want_images))
                    self.assertTrue(torch.equal(labels.cpu(), want_labels))

    def test_tensors_are_for_the_callers_stream(self):
        want = self.want(oa.imagenet_train(32), 16)
        with torch.cuda.stream(torch.cuda.Stream()):
            self.check(self.there(oa.imagenet_train(32), 16, order="seeded", seed=5), want)

    def test_slots_are_read_directly(self):
        """Or the warning says why not; the driver is asked for memory that is mapped read-only."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            loader = self.there(oa.imagenet_train(32), 16)
            for _ in range(3):
                self.assertEqual(sorted(n for batch in loader for n in batch.ids), list(range(SAMPLES)))
        stats = loader.stats()
        print(f"registered {stats['registered_bytes']}, staged {stats['staged']} of {stats['batches']}:"
              f" {[str(each.message) for each in told]}")
        if told:
            self.assertEqual(stats["staged"], stats["batches"])
        else:
            self.assertGreater(stats["registered_bytes"], 0)
            self.assertEqual(stats["staged"], 0)
        loader.close()

    def test_a_refusal_is_told_once(self):
        def refuse(engine, address, nbytes):
            raise OSError(801, "CUDA_ERROR_NOT_SUPPORTED")
        want = self.want(oa.imagenet_train(32), 16)
        with unittest.mock.patch.object(cuda.Cuda, "register", refuse), \
                self.assertWarnsRegex(RuntimeWarning, "NOT_SUPPORTED.*copied once more"):
            loader = self.there(oa.imagenet_train(32), 16, order="seeded", seed=5)
            self.check(loader, want)
        stats = loader.stats()
        self.assertEqual((stats["staged"], stats["registered_bytes"]), (stats["batches"], 0))

    def test_a_real_refusal_leaves_no_error_behind(self):
        engine = cuda.Cuda(torch.device("cuda", 0))
        with self.assertRaisesRegex(OSError, "CUDA_ERROR"):
            engine.register(4096, 4096)
        torch.zeros(8, device="cuda").add_(1).sum().item()

    def test_threads_and_epochs(self):
        loader = self.there(oa.imagenet_train(32), 16)
        loop, taken = iter(loader), []

        def take():
            for batch in loop:
                taken.extend(zip(batch.ids.tolist(), batch[1].tolist()))
        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(number for number, _ in taken), list(range(SAMPLES)))
        targets = loader.targets
        self.assertEqual([label for _, label in taken], [targets[number] for number, _ in taken])

    def test_programs_end(self):
        """Left in the middle, by an exception, without a close, with late copies: silently and in order."""
        program = (
            "import sys, torch, oneaccess as oa\n"
            f"loader = oa.Loader({self.data!r}, oa.imagenet_train(32), 16, socket={self.socket!r},\n"
            "                   device='cuda', timeout=120)\n"
            "for epoch in range(3):\n"
            "    for images, labels in loader:\n"
            f"        torch.cuda._sleep({LATE})\n"
            "        if epoch == 2: break\n"
            "loop = iter(loader)\n"
            "next(loop)\n"
            "if sys.argv[1] == 'raise': raise SystemExit(5)\n"
            "print('end')\n")
        for word, code, text in (("end", 0, "end\n"), ("raise", 5, "")):
            run = subprocess.run([sys.executable, "-W", "error", "-c", program, word], text=True,
                                 capture_output=True, timeout=300, check=False)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (code, text, ""))

    def test_which_device(self):
        count, here = torch.cuda.device_count(), torch.cuda.current_device()
        self.assertEqual(cuda.choose("cuda"), torch.device("cuda", here))
        self.assertEqual(cuda.choose(torch.device("cuda:0")), torch.device("cuda:0"))
        self.assertIsNone(cuda.choose("cpu"))
        with self.assertRaisesRegex(oa.errors.ArgumentError, f"cuda:{count}.*there are {count}"):
            cuda.choose(f"cuda:{count}")
        with unittest.mock.patch.dict(os.environ, LOCAL_RANK=str(count - 1)):
            self.assertEqual(cuda.choose("cuda").index, count - 1)
        with unittest.mock.patch.dict(os.environ, LOCAL_RANK=str(count)):  # of a node with one GPU a process
            self.assertEqual(cuda.choose("cuda").index, here)


class RestartTest(DaemonCase):
    def test_slots_of_a_new_session_are_registered_anew(self):
        loader = self.loader(device="cuda")
        for _ in loader:
            pass
        taken = []
        for batch in loader:
            taken += batch.ids.tolist()
            if batch.step == 4:
                self.kill()
                self.start()
        self.assertEqual(sorted(taken), list(range(SAMPLES)))
        targets = loader.targets
        for batch in loader:
            self.assertEqual(batch[1].tolist(), [targets[number] for number in batch.ids])


if __name__ == "__main__":
    unittest.main(verbosity=2)
