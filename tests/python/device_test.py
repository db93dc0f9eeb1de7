# SPDX-License-Identifier: Apache-2.0
"""Batches on a device, with one that is none: memory of the processor, to which copies are made as late as
they can be. So what is let go of too early, or used again, shows. Needs PyTorch, no GPU."""

import ctypes
import gc
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
    print(f"device_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import _core, cuda, device, ending
from support import SAMPLES, DaemonCase

warnings.simplefilter("error")
MEAN, STD = oa.transforms.IMAGENET_MEAN, oa.transforms.IMAGENET_STD


class Event:
    def __init__(self, fake):
        self._fake, self.place = fake, 0

    def record(self, stream):
        self.place = 0  # the caller's stream is where the caller is

    def query(self):
        return self._fake.done >= self.place

    def synchronize(self):
        self._fake.run(self.place)

    def wait(self, stream):
        self.synchronize()


class Fake:
    """A device's side stream that does nothing before it has to."""

    all = []
    refuses = False

    def __init__(self, chosen):
        self.device = chosen
        self.todo, self.done = [], 0
        self.registered, self.staged, self.registrations = {}, [], 0
        Fake.all.append(self)

    def event(self):
        return Event(self)

    def current(self):
        return self

    def run(self, place):
        while self.done < place:
            for target, source, nbytes in self.todo[self.done]:
                ctypes.memmove(target, source, nbytes)
            self.todo[self.done] = None
            self.done += 1

    def _can_read(self, start, nbytes):
        ranges = [*self.registered.items(), *((each.data_ptr(), each.numel()) for each in self.staged)]
        return any(first <= start and start + nbytes <= first + size for first, size in ranges)

    def copy(self, triples, after, done):
        triples = list(triples)
        assert all(self._can_read(source, nbytes) for _, source, nbytes in triples)
        assert after.query()
        self.todo.append(triples)
        done.place = len(self.todo)

    def staging(self, nbytes):
        self.staged.append(torch.empty(nbytes, dtype=torch.uint8))
        return self.staged[-1]

    def register(self, address, nbytes):
        if Fake.refuses:
            raise OSError(801, "not supported")
        assert not any(first < address + nbytes and address < first + size
                       for first, size in self.registered.items())
        self.registered[address] = nbytes
        self.registrations += 1

    def unregister(self, address):
        assert self.done == len(self.todo), "a copy is under way"
        del self.registered[address]


class FakeCase(DaemonCase):
    """A daemon, and Loaders whose device is Fake."""

    def setUp(self):
        Fake.all, Fake.refuses = [], False
        for name, stand_in in (("choose", lambda _: torch.device("cpu")), ("Cuda", Fake)):
            patch = unittest.mock.patch.object(cuda, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def there(self, *args, **kwargs):
        return self.loader(*args, device="cuda", **kwargs)

    def same(self, pipeline, batch=16, **kwargs):
        """A seeded epoch that comes to the device is the daemon's own, bit for bit."""
        kwargs = {"order": "seeded", "seed": 5, **kwargs}
        where = {"normalize_on": kwargs.pop("normalize_on")} if "normalize_on" in kwargs else {}
        want = [(images, labels, list(batch.ids), batch.is_last) for batch in
                self.loader(pipeline, batch, as_="torch", copy=True, **kwargs) for images, labels in [batch]]
        loader = self.there(pipeline, batch, **kwargs, **where)
        got = [(images, labels, list(batch.ids), batch.is_last) for batch in loader
               for images, labels in [batch]]
        self.assertEqual(len(got), len(want))
        for ours, theirs in zip(got, want):
            for tensor, other in zip(ours[:2], theirs[:2]):
                self.assertEqual((tensor.dtype, tensor.shape), (other.dtype, other.shape))
                self.assertTrue(torch.equal(tensor, other))
            self.assertEqual(ours[2:], theirs[2:])
        return loader


class DeviceTest(FakeCase):
    # ---- what arrives ----

    def test_values_are_the_daemons(self):
        t = oa.transforms
        crop = [t.RandomResizedCrop(32), t.RandomHorizontalFlip()]
        for dtype in ("float32", "float16", "bfloat16"):
            self.assertIn("device='cpu'", repr(self.same(oa.imagenet_train(32, dtype=dtype))))
        for pipeline in (
                oa.Compose([*crop, t.ToTensor()]), oa.Compose([*crop, t.Normalize(0.4, 0.3)]),
                oa.Compose([*crop, t.Normalize(0.4, STD), t.Layout("CHW")]),
                oa.Compose([*crop, t.Grayscale(), t.Normalize(0.1, 0.7), t.Cast("float32"), t.Layout()]),
                oa.Compose([t.Resize(40), t.FiveCrop(24), t.Normalize(MEAN, STD), t.Layout("CHW")]),
                oa.Compose([*crop, t.ToTensor(), t.Normalize(MEAN, STD), t.CutMix(num_classes=3)]),
                oa.Compose([*crop, t.ToTensor(), t.Normalize(MEAN, STD), t.Mosaic(center=(0, 2), scale=1)]),
                oa.Compose([*crop, t.ToTensor(), t.Normalize(MEAN, STD), t.OneHot(3)])):
            with self.subTest(pipeline=repr(pipeline)):
                loader = self.same(pipeline)
                self.assertNotIn("on the host", repr(loader))
                image, label = next(iter(loader))  # a byte for each value, and labels as they are
                stats = loader.stats()
                self.assertEqual(stats["device_bytes"], stats["samples"] * (
                    image[0].numel() + label[0].numel() * label.element_size()))

    def test_what_stays_with_the_daemon(self):
        t = oa.transforms
        crop = t.RandomResizedCrop(32)
        for end, word in (([t.ToTensor(), t.Normalize(MEAN, STD), t.RandomErasing()], "random_erasing"),
                          ([t.GaussianNoise(), t.Normalize(MEAN, STD), t.ToTensor()], "gaussian_noise"),
                          ([t.ToTensor(), t.Normalize(MEAN, STD), t.MixUp(num_classes=3)], "mixup"),
                          ([t.ToTensor(), t.Normalize(MEAN, STD), t.Mosaic()], "mosaic")):
            loader = self.same(oa.Compose([crop, *end]))
            self.assertIn(f"normalized on the host: {word}", repr(loader))
        loader = self.same(oa.imagenet_train(32), normalize_on="host")
        self.assertEqual(loader.stats()["device_bytes"], SAMPLES * (3 * 32 * 32 * 4 + 8))
        self.assertIn("on the host: as asked", repr(loader))
        images, _ = next(iter(self.there(oa.imagenet_train(32, dtype="uint8"), 16)))
        self.assertEqual(images.dtype, torch.uint8)
        self.same(oa.imagenet_train(32, dtype="uint8"))

    def test_wrapped_data_sets(self):
        numbers = [{"place": torch.full((2, 3), i / 7), "number": i} for i in range(20)]
        with self.wrapped(numbers) as loader:
            for batch in loader:
                self.assertEqual(batch["number"].tolist(), list(batch.ids))
                self.assertTrue(torch.equal(batch["place"], torch.stack([numbers[i]["place"] for i in batch.ids])))
        self.assertEqual(loader._feed._engine.registered, {})
        pictures = [(torch.full((3, 40, 40), i, dtype=torch.uint8), i) for i in range(20)]
        with self.wrapped(pictures, oa.Compose([oa.transforms.CenterCrop(32), oa.transforms.Normalize(MEAN, STD),
                                                oa.transforms.Layout("CHW")])) as loader:
            for batch in loader:
                images, labels = batch
                self.assertEqual(labels.tolist(), list(batch.ids))
                want = (labels.float()[:, None] / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
                self.assertTrue(torch.equal(images, want[:, :, None, None].expand(-1, 3, 32, 32)))
            self.assertEqual(loader.stats()["device_bytes"], 20 * (3 * 32 * 32 + 8))

    def test_further_images(self):
        """Each is normalized there, too, as the first one or in its own way, between other fields."""
        t = oa.transforms
        samples = [{"image": torch.full((3, 40, 40), i, dtype=torch.uint8), "own": torch.full((3, 40, 40), 2 * i, dtype=torch.uint8), "number": i,
                    "high": torch.full((3, 80, 80), 3 * i, dtype=torch.uint8)} for i in range(20)]
        images = {"own": oa.Image(normalize=(0.25, [0.5, 0.5, 1])), "high": oa.Image(scale=2)}
        for end in ([t.Normalize(MEAN, STD), t.Cast("float16"), t.Layout("CHW")], [t.ToTensor(), t.Normalize(MEAN, STD)]):
            pipeline = oa.Compose([t.CenterCrop(32), t.RandomHorizontalFlip(), *end])
            found = []
            for where in ({"as_": "torch", "copy": True}, {"device": "cuda"}):
                data = oa.wrap(samples, workers=1, keep=0.1, images=images)
                with oa.Loader(data, pipeline, batch_size=8, socket=self.socket, timeout=300, shuffle=False, **where) as loader:
                    found.append([[batch[name].clone() for name in samples[0]] for batch in loader])
                    sent, said = loader.stats(), repr(loader)
            for batch, wanted in zip(*found, strict=True):
                for tensor, want in zip(batch, wanted):
                    self.assertEqual(tensor.dtype, want.dtype)
                    self.assertTrue(torch.equal(tensor, want))
            self.assertEqual(sent["device_bytes"], 20 * (6 * 32 * 32 + 3 * 64 * 64 + 16))       # and a label
            self.assertNotIn("on the host", said)

    def test_fields_that_differ_in_length(self):
        numbers = [{"tokens": torch.arange(i % 5), "number": i} for i in range(20)]
        wrapped = oa.wrap(numbers, workers=1, keep=0.1, ragged={"tokens": 4})
        with oa.Loader(wrapped, batch_size=8, socket=self.socket, device="cuda", timeout=300) as loader:
            for batch in loader:
                self.assertEqual(batch["number"].tolist(), list(batch.ids))
                self.assertEqual([sample.tolist() for sample in batch["tokens"]],
                                 [list(range(i % 5)) for i in batch.ids])

    def wrapped(self, samples, *pipeline):
        return oa.Loader(oa.wrap(samples, workers=1, keep=0.1), *pipeline, batch_size=8, socket=self.socket,
                         device="cuda", timeout=300)

    def test_both_ways_of_finishing_are_exact(self):
        for mean, std in ((list(MEAN), list(STD)), ([0.1], [7.3]), ([0.3, 0.2, 0.1], [0.9]), (None, None)):
            for dtype in ("float32", "float16", "bfloat16"):
                for axis in (-3, -1):
                    end = ending.Ending(dtype, mean, std, axis)
                    for way in (device.Arithmetic, device.Lookup):
                        self.assertIsInstance(device.finisher(end, torch.device("cpu"), (way,)), way)

    def test_a_device_that_computes_otherwise_looks_up(self):
        class Otherwise(device.Arithmetic):
            def __call__(self, image):
                return super().__call__(image) * (1 + 2.0**-23)
        end = ending.Ending("float32", list(MEAN), list(STD), -3)
        found = device.finisher(end, torch.device("cpu"), (Otherwise, device.Lookup))
        self.assertIsInstance(found, device.Lookup)
        with self.assertRaisesRegex(RuntimeError, "bug of OneAccess"):
            device.finisher(end, torch.device("cpu"), (Otherwise,))

    def test_tensors_are_the_jobs_own(self):
        loader = self.there()
        batches = list(loader)
        before = [images.clone() for images, _ in batches]
        batches[0][0].mul_(0)
        list(loader)
        for (images, _), kept in list(zip(batches, before))[1:]:
            self.assertTrue(torch.equal(images, kept))

    def test_modes_of_torch(self):
        """A loader that is met first in a mode goes on outside of it, and knows no default."""
        loader = self.there(oa.imagenet_train(32), 16, order="seeded", seed=5)
        try:
            torch.set_default_dtype(torch.float64)
            with torch.inference_mode():
                for images, _ in loader:
                    pass
            for images, _ in loader:
                images.mul_(2)
            self.assertEqual(images.dtype, torch.float32)
        finally:
            torch.set_default_dtype(torch.float32)
        self.same(oa.imagenet_train(32))

    # ---- pins, slots, states ----

    def test_slots_are_registered_once(self):
        loader = self.there(oa.imagenet_train(32), 16)
        for _ in range(3):
            ids = [number for batch in loader for number in batch.ids]
            self.assertEqual(sorted(ids), list(range(SAMPLES)))
            self.assertEqual(loader.stats()["outstanding"], 0)
        fake, = Fake.all
        self.assertGreater(fake.registrations, 0)
        self.assertEqual(len(fake.registered), fake.registrations)
        self.assertEqual(loader.stats()["registered_bytes"], sum(fake.registered.values()))
        loader.close()
        self.assertEqual(fake.registered, {})

    def test_pins_live_as_long_as_copies(self):
        loader, most = self.there(oa.imagenet_train(32), 16), 0
        for batch in loader:
            fake, = Fake.all
            under_way = len(fake.todo) - fake.done
            self.assertEqual(loader.stats()["outstanding"], under_way, batch.step)
            most = max(most, under_way)
        self.assertEqual((most, loader.stats()["outstanding"]), (1, 0))

    def test_batches_of_a_whole_slot(self):
        """Of which no job has more than two."""
        loader = self.same(oa.imagenet_train(32), 32)
        self.assertEqual(loader.stats()["staged"], 0)

    def test_batches_of_two_chunks_are_staged(self):
        loader = self.same(oa.imagenet_train(32), 12)
        self.assertGreater(loader.stats()["staged"], 0)
        self.assertGreater(loader.stats()["registered_bytes"], 0)

    def test_empty_batches_of_a_rank(self):
        loader = self.same(oa.imagenet_train(32), 17, rank=6, world_size=7)
        counts = [len(labels) for _, labels in loader]
        self.assertEqual(counts, [17, 17, 0])

    def test_a_refusal_is_told_once(self):
        Fake.refuses = True
        loader = self.there(oa.imagenet_train(32), 16)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(2):
                for _ in loader:
                    pass
        self.assertEqual(len(told), 1)
        self.assertRegex(str(told[0].message), "cannot read shared memory.*not supported.*copied once more")
        self.assertEqual(told[0].filename, __file__)
        stats = loader.stats()
        self.assertEqual((stats["staged"], stats["registered_bytes"]), (stats["batches"], 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.same(oa.imagenet_train(32))

    def test_a_loop_that_is_left_holds_nothing(self):
        loader = self.there(oa.imagenet_train(32), 16)
        for batch in loader:
            if batch.step == 3:
                break
        self.assertEqual(loader.stats()["outstanding"], 0)
        ids = [number for batch in loader for number in batch.ids]
        self.assertEqual(sorted(ids), list(range(SAMPLES)))
        with self.assertRaises(KeyError):
            for batch in loader:
                raise KeyError(batch.step)
        gc.collect()
        self.assertEqual(loader.stats()["outstanding"], 0)

    def test_states_do_not_count_what_is_ahead(self):
        for order in ("seeded", "usual"):
            kwargs = {"order": "seeded", "seed": 3} if order == "seeded" else {}
            loader = self.there(oa.imagenet_train(32), 16, **kwargs)
            taken = []
            for batch in loader:
                taken += batch.ids.tolist()
                if batch.step == 6:
                    state = loader.state_dict()
                    break
            rest = [number for batch in self.there(oa.imagenet_train(32), 16, state=state)
                    for number in batch.ids]
            self.assertEqual(sorted(taken + rest), list(range(SAMPLES)))
            other = self.loader(oa.imagenet_train(32), 16, state=state, as_="torch")  # without a device
            self.assertEqual(sorted(taken + [n for batch in other for n in batch.ids]),
                             list(range(SAMPLES)))

    def test_samples_chosen_anew(self):
        """Behind an epoch, and in the middle of one that is left while a copy is under way."""
        def train(loader):
            taken = []
            for number, ids in enumerate((range(SAMPLES), range(50), range(30, 100), range(7))):
                if number:
                    loader.choose(ids=ids)
                for images, labels in loader:
                    taken.append((images.clone(), labels.clone()))
                    if len(taken) == 18:
                        loader.choose(ids=range(3))
                        break
            return taken, loader.state_dict()
        ways = [train(self.there(oa.imagenet_train(32), 16, order="seeded", seed=3)),
                train(self.loader(oa.imagenet_train(32), 16, order="seeded", seed=3, as_="torch"))]
        (there, state), (here, same) = ways
        self.assertEqual((len(there), state), (15 + 3 + 5 + 1, same))
        for one, other in zip(there, here):
            self.assertTrue(all(torch.equal(mine, theirs) for mine, theirs in zip(one, other)))

    def test_threads_share_a_loop(self):
        loader = self.there()
        loop, taken = iter(loader), []

        def take():
            for batch in loop:
                taken.extend(zip(batch.ids.tolist(), batch[1].tolist()))
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        targets = loader.targets
        self.assertEqual(sorted(taken), list(enumerate(targets)))

    def test_children_end_nothing(self):
        loader = self.there()
        loop = iter(loader)
        next(loop)
        fake, = Fake.all
        before = (dict(fake.registered), fake.done)
        pid = os.fork()
        if pid == 0:
            del loop
            loader._feed.close()
            os._exit(7 if (fake.registered, fake.done) == before else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)

    def test_a_device_that_failed_is_left(self):
        """After a device's error everything it is asked raises; a close says nothing of it again."""
        loader = self.there()
        next(iter(loader))
        with unittest.mock.patch.object(Event, "synchronize", side_effect=RuntimeError("CUDA error")):
            loader._feed.close()
        self.assertEqual(loader.stats()["outstanding"], 0)

    def test_an_error_ahead_waits_for_its_turn(self):
        loader = self.there(oa.imagenet_train(32), 16)
        loop = iter(loader)
        next(loop)
        stream = unittest.mock.Mock()
        stream.next.side_effect = oa.errors.SampleError("bad.jpg")
        loader._feed.next(lambda: None)
        loader._feed.look_ahead(stream)
        self.assertIsNone(loader._feed.state)
        with self.assertRaisesRegex(oa.errors.SampleError, "bad.jpg"):
            next(loop)

    def test_what_is_under_way_at_the_end_is_ended(self):
        """By close(), by the last reference, by the interpreter's end: in order, and silently."""
        for last in ("loader.close()", "del loader, loop", "pass", "import sys; sys.kept = loop"):  # longer than modules are there
            program = (
                "import atexit, gc\n"
                "@atexit.register\n"  # the first: it runs last
                "def look():\n"
                "    gc.collect()\n"
                "    fake, = device_test.Fake.all\n"
                "    print(fake.registrations > 0, len(fake.registered), len(fake.todo) - fake.done)\n"
                "import device_test, torch, oneaccess as oa\n"
                "from oneaccess import cuda\n"
                "cuda.choose, cuda.Cuda = lambda _: torch.device('cpu'), device_test.Fake\n"
                f"loader = oa.Loader({self.data!r}, oa.imagenet_train(32), 16, socket={self.socket!r},\n"
                "                   device='cuda', timeout=120)\n"
                "for _ in loader:\n"  # until there is something to register, and something ahead
                "    if device_test.Fake.all[0].registrations and loader._feed.state: break\n"
                "loop = iter(loader)\n"
                "next(loop)\n"
                f"{last}\n")
            places = [os.path.dirname(os.path.abspath(__file__)), os.environ["PYTHONPATH"]]
            run = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                                 env={**os.environ, "PYTHONPATH": os.pathsep.join(places)}, timeout=120,
                                 check=False)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "True 0 0\n", ""), last)


class RestartTest(FakeCase):
    def test_slots_of_a_new_session_are_registered_anew(self):
        loader = self.there()
        for _ in loader:
            pass
        fake, = Fake.all
        before, taken = fake.registrations, []
        for batch in loader:
            taken += batch.ids.tolist()
            if batch.step == 4:
                self.kill()
                self.start()
        self.assertEqual(sorted(taken), list(range(SAMPLES)))
        self.assertEqual(loader.stats()["reconnects"], 1)
        self.assertGreater(fake.registrations, before)
        self.assertEqual({session for session, _ in loader._feed._slots._twin}, {1})
        targets = loader.targets
        for batch in loader:
            self.assertEqual(batch[1].tolist(), [targets[number] for number in batch.ids])


class ArgumentsTest(DaemonCase):
    def test_bad_arguments_are_named(self):
        for kwargs, text in (
                ({"device": "cuda", "as_": "numpy"}, "as_=\"numpy\" has no device"),
                ({"device": "cuda", "normalize_on": "gpu"}, "normalize_on is 'gpu'; there are: device, host"),
                ({"normalize_on": "host"}, "give device="),
                ({"device": "gpu"}, "device is 'gpu': "),
                ({"device": 1.5}, "device is 1.5: "),
                ({"device": "meta"}, "device is \"meta\"; there are: cpu, cuda, cuda:N")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, text):
                self.loader(**kwargs)

    def test_no_gpu_is_said_not_worked_around(self):
        with unittest.mock.patch.object(torch.cuda, "is_available", lambda: False):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "finds no GPU.*leave device out"):
                self.loader(device="cuda")
            for version, visible, text in ((None, None, "one without CUDA: install"),
                                           ("13.0", "7", "CUDA_VISIBLE_DEVICES is \"7\""),
                                           ("13.0", None, "nvidia-smi")):
                environment = {**os.environ, **({"CUDA_VISIBLE_DEVICES": visible} if visible else {})}
                with unittest.mock.patch.dict(os.environ, environment), \
                        unittest.mock.patch.object(torch.version, "cuda", version), \
                        self.assertRaisesRegex(oa.errors.ArgumentError, text):
                    cuda.choose("cuda:1")

    def test_which_gpu(self):
        for device_, current, rank, want in (("cuda", 0, None, 0), ("cuda", 0, "2", 2), ("cuda", 1, "2", 1),
                                             ("cuda", 0, "4", 0), ("cuda", 0, "x", 0), ("cuda:3", 0, "2", 3)):
            environment = {key: value for key, value in os.environ.items() if key != "LOCAL_RANK"}
            environment.update({"LOCAL_RANK": rank} if rank else {})
            with unittest.mock.patch.dict(os.environ, environment, clear=True), \
                    unittest.mock.patch.object(torch.version, "cuda", "13.0"), \
                    unittest.mock.patch.multiple(torch.cuda, is_available=lambda: True,
                                                 device_count=lambda: 4,
                                                 current_device=lambda current=current: current):
                self.assertEqual(cuda.choose(device_), torch.device("cuda", want))
                with self.assertRaisesRegex(oa.errors.ArgumentError, "cuda:4.*there are 4"):
                    cuda.choose("cuda:4")

    def test_the_processor_is_no_device(self):
        loader = self.loader(device="cpu")
        self.assertIsNone(loader.device)
        images, labels = next(iter(loader))
        self.assertEqual((images.dtype, images.device.type), (torch.float32, "cpu"))

    def test_a_wrong_pipeline_is_the_daemons_to_refuse(self):
        for text in ('{"ops":[{"op":"decode"},{"op":"normalize","mean":[1,2],"std":[1,1,1]}]}',
                     '{"ops":[{"op":"decode"},{"op":"cast"},{"op":"cast"}]}', '{"ops":[7]}', "[]", "{", "no-such",
                     '{"ops":[{"op":"decode"},{"op":"normalize","mean":0,"std":0}]}',
                     '{"ops":[{"op":"decode"},{"op":"cast","dtype":"f64"}]}',
                     '{"ops":[{"op":"decode"},{"op":"normalize","mean":[true],"std":1}]}'):
            self.assertEqual(ending.take_off(text), (text, None, None))
            with self.assertRaises(oa.errors.PipelineError, msg=text):
                self.loader(text, 8)

    def test_twins(self):
        """A mapping of a slot of one's own shows what the batch shows, after the stream, too."""
        loader = self.loader(oa.imagenet_train(32), 16)
        stream = _core.Stream(loader._client, **{**loader._options, "flags": 0})  # as with a device: no view
        batch = stream.next(120000)
        image, label, *_ = batch.fields
        twin = _core.Twin(batch)
        self.assertEqual(batch.slot[0], 0)
        places = twin.places(batch)
        self.assertEqual([place is None for place in places],
                         [field.name == "index" for field in batch.fields])
        for place, field in zip(places, (image, label)):
            self.assertTrue(twin.address <= place <= twin.address + twin.nbytes - field.nbytes)
            self.assertEqual(ctypes.string_at(place, field.nbytes), bytes(memoryview(field).cast("B")))
        for call, wrong, text in ((twin.places, image, "no Batch"), (_core.Twin, 7, "no Batch")):
            with self.assertRaisesRegex(TypeError, text):
                call(wrong)
        before = bytes(memoryview(image).cast("B"))
        stream.close()
        self.assertEqual(ctypes.string_at(places[0], len(before)), before)
        del image, label, field
        batch.release()
        gc.collect()
        ctypes.string_at(places[0], twin.nbytes - (places[0] - twin.address))  # mapped still
        for _ in range(2):
            twin.close()
        self.assertEqual(twin.address, 0)
        with self.assertRaisesRegex(ValueError, "released"):
            twin.places(batch)
        copies = self.loader(oa.imagenet_train(32), 16, copy=True)
        batch = copies._open().next(120000)
        self.assertIsNone(batch.slot)
        with self.assertRaisesRegex(ValueError, "private memory"):
            _core.Twin(batch)
        with self.assertRaisesRegex(ValueError, "twin was closed"):
            twin.places(batch)

    def test_names_are_what_they_stand_for(self):
        for name in ("imagenet-train", "imagenet-eval"):
            text, end, why = ending.take_off(name)
            self.assertEqual((text, end.dtype, end.axis, why), (f"{name}-u8", "float32", -3, None))
            self.assertEqual((tuple(end.mean), tuple(end.std)), (MEAN, STD))
        for name in ("imagenet-train-u8", "imagenet-eval-u8"):
            self.assertEqual(ending.take_off(name), (name, None, None))


if __name__ == "__main__":
    unittest.main(verbosity=2)
