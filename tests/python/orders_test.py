# SPDX-License-Identifier: Apache-2.0
"""Orders that a program says itself, as order=function: which samples come, in which batches, and what a state says of it; and oneaccess.orders."""

import collections
import importlib.util
import json
import math
import os
import subprocess
import sys
import unittest

import numpy as np

import oneaccess as oa
from oneaccess import _core
from oneaccess.errors import ArgumentError, StateError, TransformError
from support import SAMPLES, DaemonCase

PIPELINE = oa.imagenet_train(16, dtype="uint8")


def shuffled(epoch):
    """Another number of samples each epoch, some twice."""
    ids = np.random.RandomState(epoch).permutation(SAMPLES)[:100 + 7 * epoch]
    return np.concatenate((ids, ids[:5]))


def batch_of(batch):
    images, labels = batch
    return batch.epoch, batch.step, batch.is_last, tuple(batch.ids), np.asarray(images).tobytes(), np.asarray(labels).tobytes()


class Case(DaemonCase):
    def open(self, order=shuffled, **options):
        return self.loader(PIPELINE, 16, **{"as_": "numpy", "order": order, **options})


class LoaderTest(Case):
    def test_each_epoch_has_what_the_function_says(self):
        loader = self.open(epochs=4)
        for epoch in range(4):
            count = len(loader)
            batches = list(loader)
            self.assertEqual([each for batch in batches for each in batch.ids], shuffled(epoch).tolist())
            self.assertEqual([batch.epoch for batch in batches], [epoch] * count)
            self.assertEqual([batch.is_last for batch in batches], [False] * (count - 1) + [True])
        with self.assertRaisesRegex(oa.Error, "all 4 epochs are delivered"):
            next(iter(loader))

    def test_it_is_asked_once_an_epoch_when_that_begins(self):
        asked = []

        def order(epoch):
            asked.append(epoch)
            return shuffled(epoch)
        loader = self.open(order)
        self.assertEqual(asked, [0])
        loop = iter(loader)
        self.assertEqual(len(loader), 7)
        while not next(loop).is_last:
            self.assertEqual(len(loader), 7)
        self.assertEqual(asked, [0])
        self.assertEqual(len(loader), 7)    # of the next one
        self.assertEqual(len(loader.dataset), 112)
        next(iter(loader))
        self.assertEqual(asked, [0, 1])
        self.assertEqual(list(next(iter(loader)).ids), shuffled(2)[:16].tolist())     # epoch 1 was left
        self.assertEqual(asked, [0, 1, 2])

    def test_accessd_prepares_nothing_of_another_epoch(self):
        """Each sample is read once for each time that it comes. (A Loader of choose() reads of the epoch before once more.)"""
        def read():
            return json.loads(_core.Client(self.socket).status())["node"]["samples_read"]
        begun = read()
        loader = self.open(lambda epoch: range(32 * epoch, 32 * epoch + 32), epochs=3)
        for epoch in range(3):
            self.assertEqual(sum(len(batch.ids) for batch in loader), 32)
        loader.close()
        self.assertEqual(read() - begun, 96)

    def test_each_state_goes_on_in_equal_bytes(self):
        loader, came, states = self.open(epochs=3, seed=5), [], []
        states.append((0, json.dumps(loader.state_dict())))
        for _ in range(3):
            for batch in loader:
                came.append(batch_of(batch))
                states.append((len(came), json.dumps(loader.state_dict())))
        self.assertLess(max(len(state) for _, state in states), 400)    # no ids in it
        for at, state in states:
            for way in ("state", "load"):
                again = self.open(epochs=3, seed=5, **({"state": json.loads(state)} if way == "state" else {}))
                if way == "load":
                    again.load_state_dict(json.loads(state))
                rest = []
                while len(rest) < len(came) - at:
                    rest += map(batch_of, again)
                self.assertEqual(rest, came[at:], at)
                again.close()

    def test_a_state_goes_on_with_another_batch_size(self):
        loader = self.open()
        loop = iter(loader)
        seen = [*next(loop).ids, *next(loop).ids]
        again = self.loader(PIPELINE, 10, as_="numpy", order=shuffled, state=loader.state_dict())
        self.assertEqual(seen + [each for batch in again for each in batch.ids], shuffled(0).tolist())
        self.assertEqual([each for batch in again for each in batch.ids], shuffled(1).tolist())

    def test_accessd_is_killed_between(self):
        loader, came = self.open(), []
        for epoch in range(3):
            for batch in loader:
                came += batch.ids
                if batch.step == epoch:
                    self.kill()
                    self.start()
        self.assertEqual(came, [each for epoch in range(3) for each in shuffled(epoch)])

    def test_a_state_of_another_function_is_refused(self):
        loader = self.open()
        middle, end = iter(loader), None
        next(middle)
        middle = loader.state_dict()
        list(loader)
        end = loader.state_dict()
        for state in (middle, end):
            with self.assertRaisesRegex(StateError, "of a job with"):
                self.open(lambda epoch: shuffled(epoch)[::-1], state=state)
            with self.assertRaisesRegex(StateError, "of a Loader with order=function: make this one with the same"):
                self.open(None, shuffle=False, state=state)
            for damaged in ({"ordered": -1}, {"ordered": 7}, {"ordered": "0"}, {"token": "QUJD"}):
                with self.assertRaisesRegex(StateError, "the state is damaged"):
                    self.open(state={**state, **damaged})
        with self.assertRaisesRegex(StateError, "of a Loader without order=function"):
            self.open(state=self.open(None).state_dict())
        with self.assertRaises(StateError):
            loader.load_state_dict({**middle, "ordered": 3})
        self.assertEqual([each for batch in loader for each in batch.ids], shuffled(2).tolist())    # what is refused changes nothing

    def test_what_is_wrong_is_said(self):
        for order, words in ((lambda epoch: None, "returned None for epoch 0"),
                             (lambda epoch: [], "returned no id for epoch 0"),
                             (lambda epoch: [True, False], "order=function, epoch 0: ids has booleans"),
                             (lambda epoch: ["a"], "order=function, epoch 0: ids is no list of whole numbers"),
                             (lambda epoch: [SAMPLES], r"ids\[0\] is"),
                             (lambda epoch: [-1], r"ids\[0\] is -1")):
            with self.subTest(words), self.assertRaisesRegex(ArgumentError, words):
                self.open(order)
        for name, value in {"shuffle": True, "ids": [1], "classes": ["class_0000"], "split": (0, .5), "weights": [1.0] * SAMPLES, "samples": 3,
                            "refresh": "epoch", "replay": "x"}.items():
            with self.subTest(name), self.assertRaisesRegex(ArgumentError, f"{name}= beside order=function"):
                self.open(**{name: value})
        loader = self.open()
        with self.assertRaisesRegex(ArgumentError, r"choose\(\) beside order=function"):
            loader.choose(ids=[1])
        with self.assertRaisesRegex(ArgumentError, "part 1 of the mix has order=function"):
            oa.mix([self.open(None), loader])

    def test_what_is_wrong_later_changes_nothing(self):
        wrong = [True]

        def order(epoch):
            if epoch == 1 and wrong:
                wrong.pop()
                return [SAMPLES]
            return range(20)
        loader = self.open(order, drop_last=True)
        self.assertEqual(len(list(loader)), 1)
        with self.assertRaisesRegex(ArgumentError, f"ids.0. is {SAMPLES}"):
            iter(loader)
        loader._asked._epoch = None     # as a program that mends its function and asks again
        self.assertEqual([batch.epoch for batch in loader], [1])
        few = self.open(lambda epoch: range(20 - 10 * epoch), drop_last=True)
        list(few)
        with self.assertRaisesRegex(ArgumentError, "fewer than one batch of 16"):
            iter(few)

    def test_a_recording_has_it(self):
        path = os.path.join(self.work, "plan")
        loader = self.open(record=path)
        for _ in range(2):
            list(loader)
        loader.close()
        again = self.open(None, replay=path)
        for epoch in range(2):
            self.assertEqual([each for batch in again for each in batch.ids], shuffled(epoch).tolist())


class SamplersTest(Case):
    """Of a class of the program's own."""

    class Own:
        epoch = None

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __iter__(self):
            return iter(shuffled(self.epoch).tolist())

        def __len__(self):
            return len(shuffled(self.epoch))

    class Batches(Own):
        def __init__(self, sizes=None):
            self.sizes = sizes

        def __iter__(self):
            ids = shuffled(self.epoch).tolist()
            sizes = iter(self.sizes or [10] * (len(ids) // 10))
            return (ids[at:at + next(sizes, 10)] for at in range(0, len(ids), 10))

    def test_with_epochs_it_is_asked(self):
        for said in ({"sampler": self.Own(), "batch_size": 10}, {"batch_sampler": self.Batches()}):
            loader = oa.Loader(self.data, PIPELINE, socket=self.socket, as_="numpy", **said)
            self.addCleanup(loader.close)
            self.assertEqual(loader.batch_size, 10)
            self.assertEqual([list(batch.ids) for batch in loader][1], shuffled(0)[10:20].tolist())
            self.assertEqual([each for batch in loader for each in batch.ids], shuffled(1).tolist())
            again = oa.Loader(self.data, PIPELINE, socket=self.socket, as_="numpy", state=loader.state_dict(), **said)
            self.addCleanup(again.close)
            self.assertEqual([each for batch in again for each in batch.ids], shuffled(2).tolist())

    def test_what_is_not_exact_is_refused(self):
        class Without:
            def __iter__(self):
                return iter(range(5))
        replica = self.Own()
        replica.num_replicas = 2
        for said, words in (({"sampler": Without()}, "nobody knows the next epochs: give order=function"),
                            ({"batch_sampler": Without()}, "nobody knows the next epochs: give order=function"),
                            ({"sampler": replica}, "names the samples of one rank"),
                            ({"batch_sampler": self.Batches([10, 7])}, "batch 1 of epoch 0 .* has 7 samples, and others 10")):
            with self.subTest(words), self.assertRaisesRegex(TransformError, words):
                oa.Loader(self.data, PIPELINE, socket=self.socket, **said)
        with self.assertRaisesRegex(ArgumentError, "shuffle=True beside a sampler"):
            oa.Loader(self.data, PIPELINE, socket=self.socket, sampler=self.Own(), shuffle=True)


RANK = """
import json, sys
import numpy as np
import oneaccess as oa
import torch.distributed as dist
rank, data, socket, meet, wrong, state = json.loads(sys.argv[1])
dist.init_process_group("gloo", "file://" + meet, rank=rank, world_size=2)
def order(epoch):
    if epoch == wrong and rank == 1:
        return range(40)
    return np.random.RandomState(epoch).permutation(200)[:100]
said, saved = [], None
try:
    loader = oa.Loader(data, oa.imagenet_train(16, dtype="uint8"), 8, as_="numpy", order=order, epochs=3, socket=socket, job=meet, state=state)
    while len(said) < 3:
        part = []
        for batch in loader:
            part.append([batch.epoch, batch.step, list(batch.ids)])
            if saved is None and batch.epoch == 1 and batch.step == 2:
                saved = loader.state_dict()
        said.append(part)
        if part[-1][0] == 2:
            break
    print(json.dumps([said, saved]))
except oa.errors.ArgumentError as error:
    print(json.dumps(str(error)))
dist.destroy_process_group()
"""


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch")
class RanksTest(Case):
    runs = 0

    def run_ranks(self, wrong=None, state=None):
        RanksTest.runs += 1
        meet = str(self.work / f"meet{self.runs}")
        ranks = [subprocess.Popen([sys.executable, "-c", RANK, json.dumps([rank, self.data, self.socket, meet, wrong, state])],
                                  stdout=subprocess.PIPE, text=True) for rank in range(2)]
        outs = [rank.communicate()[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        return [json.loads(out) for out in outs]

    def joined(self, outs, epoch):
        """The ids of both ranks, as they lie in the order."""
        parts = [{step: ids for said in out[0] for number, step, ids in said if number == epoch} for out in outs]
        return [each for step in sorted(parts[0]) for part in parts for each in part[step]]

    def test_each_rank_has_its_part(self):
        outs = self.run_ranks()
        for epoch in range(3):
            want = np.random.RandomState(epoch).permutation(200)[:100].tolist()
            came = self.joined(outs, epoch)
            self.assertEqual((sorted(came), came[:96]), (sorted(want), want[:96]))
        again = self.run_ranks(state=outs[0][1])
        want = np.random.RandomState(1).permutation(200)[:100].tolist()
        self.assertEqual(self.joined(again, 1)[:48], want[48:96])
        self.assertEqual(self.joined(again, 2), self.joined(outs, 2))

    def test_ranks_that_differ_are_told(self):
        for wrong in (0, 1):
            for said in self.run_ranks(wrong):
                self.assertRegex(said, f"rank 0 and rank 1 have other ids for epoch {wrong} by order=function, so samples would be lost")


class LengthsTest(unittest.TestCase):
    LENGTHS = np.random.RandomState(1).randint(1, 1000, 1003)

    def test_batches_are_alike_and_each_sample_comes_once(self):
        order = oa.orders.by_length(self.LENGTHS.astype(np.uint16), 8, seed=3)
        epochs = [order(epoch) for epoch in range(3)]
        for ids in epochs:
            self.assertEqual(sorted(ids), list(range(1003)))
            self.assertEqual(self.LENGTHS[ids[:8]].max(), self.LENGTHS.max())   # first
            spread = [np.ptp(self.LENGTHS[ids[at:at + 8]]) for at in range(0, 1000, 8)]
            self.assertLess(np.mean(spread), 60)                                # at random 780
            first = [self.LENGTHS[ids[at]] for at in range(8, 1000, 8)]
            self.assertLess(abs(np.corrcoef(first[:-1], first[1:])[0, 1]), .4)  # no batch tells of the next one
        self.assertFalse(np.array_equal(epochs[0], epochs[1]))
        np.testing.assert_array_equal(oa.orders.by_length(self.LENGTHS.tolist(), 8, seed=3)(2), epochs[2])
        self.assertFalse(np.array_equal(oa.orders.by_length(self.LENGTHS, 8, seed=4)(2), epochs[2]))

    def test_a_part_and_few_samples(self):
        part = np.arange(5, 1003, 7)
        self.assertEqual(sorted(oa.orders.by_length(self.LENGTHS, 8, ids=part)(0)), part.tolist())
        for count in (1, 7, 8, 9, 40):
            self.assertEqual(sorted(oa.orders.by_length(self.LENGTHS[:count], 8)(4)), list(range(count)))

    def test_batches_of_one_sum(self):
        order = oa.orders.balanced(self.LENGTHS, 8, seed=3)
        epochs = [order(epoch) for epoch in range(3)]
        for ids in epochs:
            self.assertEqual(sorted(ids), list(range(1003)))
            sums = self.LENGTHS[ids[:1000]].reshape(-1, 8).sum(1)
            self.assertLess(sums.std() / sums.mean(), .05)                      # at random .2
        self.assertFalse(np.array_equal(epochs[0], epochs[1]))
        np.testing.assert_array_equal(oa.orders.balanced(self.LENGTHS.tolist(), 8, seed=3)(2), epochs[2])
        for count in (1, 7, 8, 9, 400, 401):
            self.assertEqual(sorted(oa.orders.balanced(self.LENGTHS[:count], 8)(4)), list(range(count)))
        self.assertEqual(sorted(oa.orders.balanced(self.LENGTHS, 8, ids=[9, 2, 5])(0)), [2, 5, 9])
        with self.assertRaisesRegex(ArgumentError, "sizes has inf, of sample 1"):
            oa.orders.balanced([1, math.inf], 2)

    def test_the_numbers_stay(self):
        """A state of another machine and another NumPy goes on."""
        self.assertEqual(oa.orders.by_length([3, 1, 4, 1, 5, 9, 2, 6], 2, seed=7)(1).tolist(), FROZEN_LENGTHS)
        self.assertEqual(oa.orders.balanced([3, 1, 4, 1, 5, 9, 2, 6], 2, seed=7)(1).tolist(), FROZEN_SUMS)
        self.assertEqual(oa.orders.classes([0, 0, 1, 1, 2, 2, 2, 2], classes=2, samples=2, seed=7)(1).tolist(), FROZEN_CLASSES)

    def test_what_is_wrong_is_said(self):
        for said, words in ((([], 8), "lengths has the shape"), (([[1]], 8), "lengths has the shape"), (([1], 0), "batch_size is 0"),
                            ((["a"], 1), "lengths are no numbers")):
            with self.assertRaisesRegex(ArgumentError, words):
                oa.orders.by_length(*said)
        with self.assertRaisesRegex(ArgumentError, "ids names samples that are none of the 3 of lengths"):
            oa.orders.by_length([1, 2, 3], 2, ids=[3])
        with self.assertRaisesRegex(ArgumentError, "seed is -1"):
            oa.orders.by_length([1, 2, 3], 2, seed=-1)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "lengths has NaN, of sample 2"):
            oa.orders.by_length([1, 2, float("nan")], 2)


class ClassesTest(unittest.TestCase):
    def test_each_batch_has_so_many_of_so_many(self):
        labels = np.random.RandomState(2).randint(0, 20, 2000)
        order, seen = oa.orders.classes(labels, classes=5, samples=4, seed=1), set()
        for epoch in range(12):
            ids = order(epoch)
            self.assertEqual(len(set(ids)), len(ids))
            self.assertGreater(len(ids), 1900)
            for at in range(0, len(ids), 20):
                self.assertEqual(sorted(collections.Counter(labels[ids[at:at + 20]]).values()), [4] * 5)
            seen |= set(ids.tolist())
        self.assertEqual(len(seen), 2000)       # what is left out is another each time

    def test_small_classes_repeat_and_large_ones_end(self):
        labels = np.array([0] * 3 + [1] * 40 + [2] * 8)
        ids = oa.orders.classes(labels, classes=2, samples=4)(0)
        counts = collections.Counter(labels[ids])
        self.assertEqual(counts[0], 4)
        self.assertEqual(len(ids) % 8, 0)
        self.assertEqual(counts, {0: 4, 1: 12, 2: 8})
        self.assertEqual(set(oa.orders.classes(labels, classes=2, samples=4, ids=range(3, 51))(0)) & {0, 1, 2}, set())
        with self.assertRaisesRegex(ArgumentError, "classes=4: the samples are of 3 classes"):
            oa.orders.classes(labels, classes=4, samples=4)
        with self.assertRaisesRegex(ArgumentError, "samples is 0"):
            oa.orders.classes(labels, classes=2, samples=0)


FROZEN_LENGTHS = [5, 4, 0, 6, 1, 3, 7, 2]
FROZEN_SUMS = [2, 0, 4, 6, 5, 3, 7, 1]
FROZEN_CLASSES = [7, 4, 1, 0, 5, 6, 3, 2]

if __name__ == "__main__":
    unittest.main()
