# SPDX-License-Identifier: Apache-2.0
"""Samplers, generators and data sets of torch's that a program has already: read as arguments, or told what to write instead."""

import os
import sys
import unittest
import warnings

try:
    import torch.utils.data as data
    from torch import Generator
except ImportError as missing:
    print(f"torchdata_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import SAMPLES, DaemonCase


class Own(data.RandomSampler):
    """A class that derives from one of torch's."""


class Stream(data.IterableDataset):
    """With a length, and torch's __getitem__, which raises."""

    def __iter__(self):
        return iter(range(4))

    def __len__(self):
        return 4


class Folder:
    """As ImageFolder is."""

    class_to_idx = {}
    samples = [("a.png", 0)] * 4

    def __init__(self, root, transform):
        self.root, self.transform = root, transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def seeded(seed):
    generator = Generator()
    generator.manual_seed(seed)
    return generator


class SamplersTest(DaemonCase):
    def ids(self, epochs=1, **kwargs):
        loader = self.loader(oa.imagenet_eval(32), kwargs.pop("batch_size", 16), **kwargs)
        return [[number for batch in loader for number in batch.ids] for _ in range(epochs)]

    def test_each_has_the_epochs_that_it_says(self):
        everything = range(SAMPLES)
        (ids,) = self.ids(sampler=data.SequentialSampler(everything), shuffle=False)
        self.assertEqual(ids, [*everything])
        (ids,) = self.ids(sampler=data.RandomSampler(everything), shuffle=False)    # as in shuffle=(sampler is None)
        self.assertNotEqual(ids, [*everything])
        self.assertEqual(sorted(ids), [*everything])
        (ids,) = self.ids(sampler=data.RandomSampler(everything, replacement=False, num_samples=50))
        self.assertEqual((len(ids), len({*ids})), (50, 50))
        (ids,) = self.ids(sampler=data.RandomSampler(everything, replacement=True))
        self.assertEqual(len(ids), SAMPLES)
        self.assertLess(len({*ids}), SAMPLES)
        (ids,) = self.ids(sampler=data.SubsetRandomSampler(range(0, SAMPLES, 5)))
        self.assertEqual(sorted(ids), [*range(0, SAMPLES, 5)])
        first, second = self.ids(2, sampler=data.WeightedRandomSampler([number % 2 for number in everything], 100))
        self.assertEqual({number % 2 for number in first}, {1})
        self.assertEqual((len(first), len(second)), (100, 100))
        self.assertNotEqual(first, second)

    def test_batches_of_a_sampler(self):
        loader = self.loader(oa.imagenet_eval(32), batch_sampler=data.BatchSampler(data.SequentialSampler(range(SAMPLES)), 7, True))
        self.assertEqual([len(batch.ids) for batch in loader], [7] * (SAMPLES // 7))

    def test_ranks_of_a_sampler(self):
        loader = self.loader(sampler=data.DistributedSampler(range(SAMPLES), 2, 1), job="sampler")
        self.assertEqual((loader.rank, loader.world_size), (1, 2))
        alone = self.loader(sampler=data.DistributedSampler(range(SAMPLES), 1, 0, shuffle=False))
        self.assertEqual([number for batch in alone for number in batch.ids], [*range(SAMPLES)])

    def test_a_sampler_of_a_part_is_refused(self):
        part = data.Subset(range(SAMPLES), range(0, SAMPLES, 4))
        for sampler in (data.SequentialSampler(part), data.RandomSampler(part), data.DistributedSampler(part, 1, 0)):
            with self.assertRaisesRegex(oa.errors.ArgumentError, f"sampler is of {len(part)} samples, and .* has {SAMPLES}: .*ids=subset.indices"):
                self.loader(sampler=sampler)
            (ids,) = self.ids(sampler=sampler, ids=part.indices)
            self.assertEqual(sorted(ids), [*part.indices])
        with self.assertRaisesRegex(oa.errors.ArgumentError, f"sampler is of {SAMPLES + 1} samples"):
            self.loader(oa.imagenet_eval(32), batch_sampler=data.BatchSampler(data.RandomSampler(range(SAMPLES + 1)), 4, False))
        rank = self.loader(sampler=data.DistributedSampler(part, 2, 1), job="part")
        with self.assertRaisesRegex(oa.errors.ArgumentError, f"sampler is of {len(part)} samples"):
            next(iter(rank))

    def test_the_seed_of_ranks(self):
        one, other = (self.ids(sampler=data.DistributedSampler(range(SAMPLES), 1, 0, seed=seed))[0] for seed in (7, 8))
        self.assertEqual(one, self.ids(order="seeded", seed=7)[0])
        self.assertNotEqual(one, other)
        (ids,) = self.ids(sampler=data.DistributedSampler(range(SAMPLES), 1, 0, shuffle=False, seed=7))
        self.assertEqual(ids, [*range(SAMPLES)])

    def test_ranks_that_are_not_even(self):
        """Of 240 samples 7 ranks have two left over after two steps of 17, and 16 after two of 16."""
        def told(batch_size, **kwargs):
            """Its batches, and what was warned of."""
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loader = self.loader(oa.imagenet_eval(32), batch_size, job=f"uneven {batch_size} {kwargs.keys()}", **kwargs)
                counts = [len(batch.ids) for batch in loader]
                loader.load_state_dict(loader.state_dict())
                self.assertEqual(len(counts), len(loader))      # which opens it once more
            return counts, [str(one.message) for one in caught]

        def sampler(rank=0, drop_last=False):
            return {"sampler": data.DistributedSampler(range(SAMPLES), 7, rank, shuffle=False, drop_last=drop_last)}
        counts, (text,) = told(17, **sampler())
        self.assertEqual(counts, [17, 17, 1])
        self.assertIn("ends with a step of 1 on ranks 0 to 1 and none on ranks 2 to 6, where the DistributedSampler repeats some", text)
        self.assertIn("the mean loss of none is NaN. drop_last=True leaves that step out", text)
        self.assertEqual(told(17, **sampler(6)), ([17, 17, 0], []))
        self.assertEqual(told(17, drop_last=True, **sampler()), ([17, 17], []))
        self.assertEqual(told(17, **sampler(drop_last=True)), ([17, 17], []))
        self.assertEqual(told(17, **sampler(6, drop_last=True)), ([17, 17], []))
        counts, (text,) = told(16, **sampler(drop_last=True))
        self.assertEqual(counts, [16, 16, 3])
        self.assertRegex(text, "a step of 3 on ranks 0 to 1 and 2 on ranks 2 to 6, where the DistributedSampler drops some so that .* equally many. drop_last")
        ranks = {"rank": 0, "world_size": 7, "order": "sequential"}
        self.assertEqual(told(16, **ranks), ([16, 16, 3], []))
        counts, (text,) = told(17, **ranks)
        self.assertIn("none on ranks 2 to 6; the mean loss of none is NaN", text)
        self.assertEqual(told(20, rank=0, world_size=2, order="sequential"), ([20] * 6, []))

    def test_a_generator_is_its_seed(self):
        (one,), (two,), (three,) = (self.ids(shuffle=True, generator=seeded(seed)) for seed in (7, 7, 8))
        self.assertEqual(one, two)
        self.assertNotEqual(one, three)
        self.assertEqual(one, self.ids(order="seeded", seed=7)[0])
        self.assertEqual(self.ids(shuffle=False, generator=seeded(7))[0], [*range(SAMPLES)])
        self.assertEqual(self.ids(sampler=data.RandomSampler(range(SAMPLES), generator=seeded(7)))[0], one)

    def test_what_says_nothing(self):
        self.assertEqual(len(self.ids(sampler=None, batch_sampler=None, generator=None, shuffle=True)[0]), SAMPLES)

    def test_what_cannot_be_read_is_refused(self):
        for sampler in (Own(range(SAMPLES)), [1, 2], iter([3])):
            with self.assertRaisesRegex(oa.errors.TransformError, f"sampler is a {type(sampler).__name__}.*ids="):
                self.loader(sampler=sampler)
            with self.assertRaisesRegex(oa.errors.TransformError, f"the sampler of batch_sampler is a {type(sampler).__name__}"):
                self.loader(batch_sampler=data.BatchSampler(sampler, 4, False))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "shuffle=True beside a sampler"):
            self.loader(sampler=data.SequentialSampler(range(SAMPLES)), shuffle=True)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "sampler beside samples=, weights="):
            self.loader(sampler=data.WeightedRandomSampler([1.0] * SAMPLES, 9), weights=[1.0] * SAMPLES, samples=7)


class DataSetsTest(DaemonCase):
    def refused(self, dataset):
        with self.assertRaises(oa.errors.TransformError) as caught:
            oa.Loader(dataset, batch_size=4, socket=self.socket)
        return str(caught.exception)

    def test_what_to_write_instead(self):
        root = os.path.abspath(self.data)
        folder = Folder(root, print)
        for dataset, line in ((folder, f"oneaccess.Loader({root!r}, oneaccess.from_torchvision(dataset.transform), batch_size=...)"),
                              (Folder(root, None), f"oneaccess.Loader({root!r}, oneaccess.imagenet_train(224), batch_size=...)"),
                              (data.Subset(folder, [1]), f"oneaccess.Loader({root!r}, oneaccess.from_torchvision(dataset.dataset.transform),"
                                                         " batch_size=..., ids=dataset.indices)"),
                              (data.Subset(data.Subset(folder, [1]), [0]), "oneaccess.Loader(oneaccess.wrap(dataset), batch_size=...)")):
            self.assertIn(line, self.refused(dataset))

    def test_a_part_of_a_loaders_samples(self):
        samples = self.loader().dataset
        part, _ = data.random_split(samples, [SAMPLES - 9, 9])
        self.assertIn(f"oneaccess.Loader({os.fspath(self.data)!r}, pipeline, batch_size=..., ids=dataset.indices)", self.refused(part))
        self.assertIn("split=(0, 0.8, 1)", self.refused(part))
        self.assertEqual(len(self.loader(ids=part.indices).dataset), SAMPLES - 9)
        with self.assertRaisesRegex(oa.errors.TransformError, "a part of them is a Loader with ids= or split="):
            next(iter(data.DataLoader(part)))

    def test_lists(self):
        self.assertIn("shards are named as", self.refused(["/data/a", "/data/b"]))
        self.assertIn("oneaccess.wrap(list(zip(images, labels)))", self.refused(([[1.0]] * 4, [0] * 4)))

    def test_samples_that_come_one_after_another(self):
        self.assertIn("Stream has no __getitem__ and __len__", self.refused(Stream()))
        with self.assertRaisesRegex(oa.errors.TransformError, "from_tar.*__len__"):
            oa.wrap(Stream())


if __name__ == "__main__":
    unittest.main(verbosity=2)
