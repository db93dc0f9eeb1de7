# SPDX-License-Identifier: Apache-2.0
"""The Loader as a DataLoader, with PyTorch alone: what libraries look at, and what they make of it."""

import copy
import inspect
import os
import pickle
import sys
import types
import unittest
import weakref
from unittest import mock

try:
    import torch.utils.data
    from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler
except ImportError as missing:
    print(f"dataloader_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import samples, trees
from support import SAMPLES, DaemonCase

BATCH = 25
STEPS = 10  # the last one is short


class Skipping(BatchSampler):
    """As Accelerate's, Lightning's and others' are made."""

    def __init__(self, inner, choose):
        self.inner, self.choose = inner, choose

    def __len__(self):
        return sum(map(self.choose, range(len(self.inner))))

    def __iter__(self):
        return (asked for number, asked in enumerate(self.inner) if self.choose(number))


class GradientState:
    """Accelerate's, as far as a loader knows it: accelerate/state.py of 1.15."""

    references = [None]

    def _add_dataloader(self, loader):
        GradientState.references += [weakref.ref(loader)]

    def _remove_dataloader(self, loader):
        GradientState.references = [one for one in self.references if one is None or one() is not loader]

    @property
    def end_of_dataloader(self):
        active = self.references[-1]
        return active is not None and active().end_of_dataloader


def accelerate():
    """The modules of an Accelerate on the CPU."""
    state, utils = types.ModuleType("accelerate.state"), types.ModuleType("accelerate.utils")
    state.GradientState = GradientState
    state.PartialState = lambda: types.SimpleNamespace(device=torch.device("cpu"))
    utils.send_to_device = lambda batch, device: batch
    return mock.patch.dict(sys.modules, {"accelerate": types.ModuleType("accelerate"), "accelerate.state": state,
                                         "accelerate.utils": utils})


def ids_of(loop):
    return [list(batch.ids) for batch in loop]


class DataLoaderTest(DaemonCase):
    def made(self, **kwargs):
        return self.loader(oa.imagenet_eval(32), BATCH, **kwargs)

    def rewrapped(self, loader, choose):
        """What libraries do: another DataLoader with each of this one's fields."""
        names = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
                 "generator", "prefetch_factor", "persistent_workers")
        fields = {name: getattr(loader, name) for name in names}
        return DataLoader(loader.dataset, batch_sampler=Skipping(loader.batch_sampler, choose), **fields)

    def test_it_is_one(self):
        loader = self.made()
        self.assertIsInstance(loader, DataLoader)
        self.assertIsInstance(loader, oa.Loader)
        self.assertEqual((type(loader).__name__, loader.batch_size, loader.drop_last), ("Loader", BATCH, False))

    def test_it_takes_what_a_dataloader_takes(self):
        """Each argument of this PyTorch's, as who gives all of them does."""
        parameters = inspect.signature(DataLoader.__init__).parameters
        given = {name: parameter.default for name, parameter in parameters.items() if name not in ("self", "dataset", "batch_size", "timeout")}
        self.assertEqual(len(self.made(**given)), STEPS)
        self.assertIn("snapshot_every_n_steps", self.made(snapshot_every_n_steps=5).ignored)     # of torchdata's StatefulDataLoader

    def test_a_subclass_is_one(self):
        class Mine(oa.Loader):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                self.more = 1
        mine = Mine(self.data, oa.imagenet_eval(32), BATCH, socket=self.socket)
        self.addCleanup(mine.close)
        self.assertIsInstance(mine, DataLoader)
        self.assertIsInstance(mine, Mine)
        self.assertEqual(mine.more, 1)

    def test_warnings_name_the_programs_line(self):
        with self.assertWarnsRegex(UserWarning, 'seed=7 .* order="seeded"') as caught:
            oa.Loader(self.data, oa.imagenet_train(32), BATCH, socket=self.socket, seed=7).close()
        self.assertEqual(caught.filename, __file__)

    def test_a_batch_is_a_tree(self):
        """As a list or dict of a DataLoader's is to what walks trees of tensors."""
        from torch.utils import _pytree
        for pipeline in (oa.imagenet_eval(32), oa.views(oa.imagenet_eval(32), other=oa.imagenet_eval(32))):
            batch = next(iter(self.loader(pipeline, BATCH)))
            doubles = _pytree.tree_map(torch.Tensor.double, batch)
            self.assertIs(type(doubles), type(batch))
            self.assertEqual(list(doubles), list(batch)) if isinstance(batch, dict) else None
            self.assertEqual([array.dtype for array in doubles.arrays()], [torch.float64] * len(batch))
            self.assertTrue(all(torch.equal(double.float(), array.float()) for double, array in zip(doubles.arrays(), batch.arrays())))
            self.assertRegex(repr(doubles), r"^<Batch: \(25, ")

    def test_a_tree_that_the_program_registered(self):
        def again(*args, **options):
            calls.append(args[0])
            raise ValueError("Duplicate custom PyTreeDef")
        calls, theirs = [], types.ModuleType("jax.tree_util")
        theirs.register_pytree_node = again
        with mock.patch.dict(sys.modules, {"jax.tree_util": theirs}), mock.patch.object(trees, "_known", {*trees._WAYS} - {"jax.tree_util"}):
            trees.register(oa.Batch, dict)
        self.assertEqual(calls, [oa.Batch, dict])

    def test_a_batch_is_pickled_and_copied(self):
        batch = next(iter(self.made()))
        for again in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
            self.assertIs(type(again), oa.Batch)
            self.assertEqual((list(again.ids), again.epoch, again.step), (list(batch.ids), 0, 0))
            self.assertTrue(all(map(torch.equal, again, batch)))
            self.assertEqual(again[0].add_(1).data_ptr() == batch[0].data_ptr(), False)

    def test_the_samples(self):
        loader = self.made(ids=range(60))
        self.assertEqual(len(loader.dataset), 60)
        self.assertEqual(os.fspath(loader.dataset), self.data)
        self.assertEqual(loader.dataset.classes, loader.classes)
        self.assertEqual((loader.dataset.root, str(loader.dataset)), (self.data, self.data))
        self.assertEqual(len(loader.dataset.targets), SAMPLES)

    def test_the_samples_of_a_wrapped_one(self):
        """They are what the data set is, beside the batches."""
        class Numbers:
            unit = "m"

            def __len__(self):
                return 40

            def __getitem__(self, index):
                return torch.full((2,), float(index)), index
        numbers = Numbers()
        dataset = samples.of(self.made(), types.SimpleNamespace(dataset=numbers))
        self.assertEqual((dataset.unit, len(dataset)), ("m", SAMPLES))
        self.assertFalse(hasattr(dataset, "classes"))

    def test_samplers_have_the_lengths(self):
        for drop_last, steps, samples in ((False, STEPS, SAMPLES), (True, STEPS - 1, BATCH * (STEPS - 1))):
            loader = self.made(drop_last=drop_last)
            self.assertEqual((len(loader), len(loader.batch_sampler), len(loader.sampler)), (steps, steps, samples))
            self.assertEqual([position for asked in loader.batch_sampler for position in asked], [*range(samples)])

    def test_the_kind_of_sampler(self):
        self.assertIsInstance(self.made(shuffle=False).sampler, SequentialSampler)
        self.assertNotIsInstance(self.made().sampler, SequentialSampler)
        self.assertNotIsInstance(self.made().sampler, DistributedSampler)

    def test_ranks_are_dealt_already(self):
        sampler = self.made(order="seeded", seed=1, rank=1, world_size=2, job="dealt").sampler
        self.assertIsInstance(sampler, DistributedSampler)
        self.assertEqual((sampler.num_replicas, sampler.rank), (2, 1))

    def test_rewrapped_it_delivers_the_same(self):
        loader = self.made(shuffle=False)
        expected = ids_of(loader)
        self.assertEqual(ids_of(self.rewrapped(loader, lambda number: True)), expected)
        self.assertEqual(ids_of(loader), expected)

    def test_rewrapped_it_skips(self):
        loader = self.made(shuffle=False)
        expected = ids_of(loader)
        self.assertEqual(ids_of(self.rewrapped(loader, lambda number: number >= 4)), expected[4:])
        self.assertEqual(ids_of(loader), expected)

    def test_dealt_again_it_refuses(self):
        for rank in (0, 1):
            with self.assertRaisesRegex(oa.errors.TransformError, "this rank's already"):
                ids_of(self.rewrapped(self.made(), lambda number, rank=rank: number % 2 == rank))

    def test_another_sampler_is_refused(self):
        """As Lightning gives one for overfit_batches, or for its ranks."""
        loader = self.made()
        for sampler in (SequentialSampler(loader.dataset), DistributedSampler(loader.dataset, 2, 0)):
            with self.assertRaisesRegex(oa.errors.TransformError, "shuffle=False"):
                type(loader.batch_sampler)(sampler, batch_size=BATCH, drop_last=False)

    def test_a_prepared_one_tells_its_ends(self):
        """What Accelerate counts steps by."""
        with accelerate():
            loader, state = self.made(), GradientState()
            self.assertEqual([state.end_of_dataloader for _ in loader], [False] * STEPS)
            self.assertTrue(loader._is_accelerate_prepared)
            for _ in range(2):
                told = [(state.end_of_dataloader, loader.remainder) for _ in loader]
                self.assertEqual(told, [(number == STEPS - 1, SAMPLES % BATCH) for number in range(STEPS)])
                self.assertFalse(state.end_of_dataloader)

    def test_prepared_loops_in_loops_and_loops_that_are_left(self):
        with accelerate():
            train, test, state = self.made(), self.made(shuffle=False), GradientState()
            self.assertTrue(train._is_accelerate_prepared and test._is_accelerate_prepared)
            loop = iter(train)
            for number, _ in enumerate(loop):
                if number == 3:
                    self.assertEqual([state.end_of_dataloader for _ in test], [False] * (STEPS - 1) + [True])
                self.assertEqual(len(state.references), 2)  # train's again
                if number == 5:
                    break
            del loop
            self.assertEqual(len(state.references), 1)
            self.assertEqual([state.end_of_dataloader for _ in train], [False] * (STEPS - 1) + [True])

    def test_its_samples_make_no_other_loader(self):
        with self.assertRaisesRegex(oa.errors.TransformError, "iterate over it"):
            next(iter(DataLoader(self.made().dataset, batch_size=4)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
