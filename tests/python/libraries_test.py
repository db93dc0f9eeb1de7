# SPDX-License-Identifier: Apache-2.0
"""A Loader in the place of a DataLoader within libraries of training. Those that are not installed are skipped."""

import importlib.util
import itertools
import os
import sys
import types
import unittest
import weakref

import oneaccess as oa
from support import CLASSES, SAMPLES, DaemonCase

try:
    import torch
except ImportError:
    torch = None

BATCH = 12
BATCHES = SAMPLES // BATCH  # 20


def has(name):
    return unittest.skipUnless(torch and importlib.util.find_spec(name), f"no {name}")


class GradientState:
    """Accelerate's, as far as a loader knows it: accelerate/state.py of 1.15."""

    _shared_state = {"there is": "an Accelerator"}
    references = [None]

    def _add_dataloader(self, loader):
        GradientState.references += [weakref.ref(loader)]

    def _remove_dataloader(self, loader):
        GradientState.references = [one for one in self.references if one is None or one() is not loader]

    @property
    def end_of_dataloader(self):
        active = self.references[-1]
        return active is not None and active().end_of_dataloader


class LoaderTest(DaemonCase):
    def ours(self, **more):
        return self.loader(oa.imagenet_train(32), BATCH, **more)

    def test_what_is_asked_of_a_loader(self):
        loader = self.ours()
        self.assertEqual((len(loader), loader.batch_size, loader.num_workers), (BATCHES, BATCH, 0))
        self.assertEqual((loader.drop_last, loader.pin_memory), (False, False))
        self.assertEqual(len(loader.dataset), SAMPLES)
        self.assertEqual(len(loader.dataset.classes), CLASSES)
        self.assertEqual(loader.dataset.root, self.data)
        self.assertEqual(os.fspath(loader.dataset), str(loader.dataset))
        self.assertEqual(len(loader.dataset.targets), SAMPLES)

    def test_a_part_is_as_long_as_it_is(self):
        self.assertEqual(len(self.ours(ids=range(30)).dataset), 30)

    def test_what_there_is_not_is_named_with_what_there_is(self):
        loader = self.ours()
        for name in ("sampler", "batch_sampler", "generator", "collate_fn", "nonsense"):
            self.assertFalse(hasattr(loader, name))
        with self.assertRaisesRegex(AttributeError, "load_state_dict"):
            loader.sampler

    def state(self):
        """A process that has an Accelerator."""
        sys.modules.pop("accelerate.state", None)
        module = types.ModuleType("accelerate.state")
        module.GradientState = GradientState
        GradientState.references = [None]
        before = sys.modules.get("accelerate.state")
        sys.modules["accelerate.state"] = module
        self.addCleanup(sys.modules.pop, "accelerate.state")
        if before is not None:
            self.addCleanup(sys.modules.__setitem__, "accelerate.state", before)
        return GradientState()

    def test_the_last_batch_of_each_epoch_is_told(self):
        loader, state = self.ours(), self.state()
        for _ in range(2):
            told = [state.end_of_dataloader for _ in loader]
            self.assertEqual(told, [False] * (BATCHES - 1) + [True])
            self.assertEqual(len(state.references), 1)
            self.assertFalse(state.end_of_dataloader)

    def test_loops_in_loops_and_loops_that_are_left(self):
        train, test, state = self.ours(), self.ours(shuffle=False), self.state()
        for number, _ in enumerate(train):
            if number == 3:
                told = [state.end_of_dataloader for _ in test]
                self.assertEqual(told, [False] * (BATCHES - 1) + [True])
            self.assertEqual(len(state.references), 2)  # train's again
            if number == 5:
                break
        self.assertEqual([state.end_of_dataloader for _ in train], [False] * (BATCHES - 1) + [True])
        next(iter(train))
        train.close()
        self.assertEqual(len(state.references), 1)

    @has("accelerate")
    def test_accelerate_steps_as_with_a_data_loader(self):
        from accelerate import Accelerator
        from torch.utils.data import DataLoader, TensorDataset
        theirs = DataLoader(TensorDataset(torch.zeros(SAMPLES + 5, 3), torch.zeros(SAMPLES + 5)), batch_size=BATCH)
        ours = self.ours(ids=list(range(SAMPLES - 7)))

        def steps(loader):
            accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
            model = torch.nn.Linear(1, 1)
            model, loader = accelerator.prepare(model, loader)
            synced, gathered = [], []
            for _ in range(2):
                count = 0
                for batch in loader:
                    with accelerator.accumulate(model):
                        synced.append(accelerator.sync_gradients)
                    count += len(accelerator.gather_for_metrics(batch[1]))
                gathered.append(count)
            return synced, gathered

        shorter = DataLoader(TensorDataset(torch.zeros(SAMPLES - 7, 3), torch.zeros(SAMPLES - 7)), batch_size=BATCH)
        self.assertEqual(steps(ours), steps(shorter))
        self.assertEqual(steps(self.ours())[0], steps(theirs)[0][:BATCHES - 1] + [True]
                         + steps(theirs)[0][:BATCHES - 1] + [True])

    @has("accelerate")
    def test_accelerate_leaves_it_as_it_is_and_keeps_its_state(self):
        from accelerate import Accelerator, skip_first_batches
        loader, accelerator = self.ours(order="seeded", seed=3), Accelerator(cpu=True)
        self.assertIs(accelerator.prepare(loader), loader)
        accelerator.register_for_checkpointing(loader)
        taken = [batch.ids.tolist() for batch in itertools.islice(loader, 8)]
        folder = str(self.work / "checkpoint")
        accelerator.save_state(folder)
        rest = [batch.ids.tolist() for batch in loader._loop]
        accelerator.load_state(folder)
        self.assertEqual([batch.ids.tolist() for batch in loader], rest)
        self.assertEqual(len(taken) + len(rest), BATCHES)
        with self.assertRaisesRegex(AttributeError, "load_state_dict"):
            skip_first_batches(loader, 3)

    @has("ignite")
    def test_ignite(self):
        from ignite.engine import Engine, Events
        seen, ends = [], []
        engine = Engine(lambda engine, batch: seen.append(len(batch.ids)))
        engine.add_event_handler(Events.EPOCH_COMPLETED, lambda: ends.append(len(seen)))
        engine.run(self.ours(), max_epochs=2)
        self.assertEqual(ends, [BATCHES, 2 * BATCHES])
        self.assertEqual(engine.state.epoch_length, BATCHES)

    @has("transformers")
    def test_trainer(self):
        from transformers import Trainer, TrainingArguments
        loader = self.ours()
        seen = []

        class Ours(Trainer):
            def get_train_dataloader(self):
                return loader

            def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
                images, labels = inputs
                seen.append(len(labels))
                return torch.nn.functional.cross_entropy(model(images.mean((2, 3))), labels)

        arguments = TrainingArguments(output_dir=str(self.work / "trainer"), num_train_epochs=2, use_cpu=True,
                                      gradient_accumulation_steps=3, report_to=[], save_strategy="no",
                                      disable_tqdm=True, logging_strategy="no")
        trainer = Ours(model=torch.nn.Linear(3, CLASSES), args=arguments)
        self.assertEqual(trainer.num_examples(loader), SAMPLES)
        result = trainer.train()
        self.assertEqual(sum(seen), 2 * SAMPLES)
        self.assertEqual(result.global_step, 2 * -(-BATCHES // 3))

    @has("fastai")
    def test_fastai(self):
        from fastai.data.core import DataLoaders
        from fastai.learner import Learner
        seen = []

        class Model(torch.nn.Linear):
            def forward(self, images):
                if self.training:
                    seen.append(len(images))
                return super().forward(images.mean((2, 3)))

        learner = Learner(DataLoaders(self.ours(), self.ours(shuffle=False)), Model(3, CLASSES),
                          loss_func=torch.nn.functional.cross_entropy)
        learner.remove_cbs([callback for callback in learner.cbs if type(callback).__name__ == "ProgressCallback"])
        learner.fit(2)
        self.assertEqual(sum(seen), 2 * SAMPLES)

    @has("lightning")
    def test_lightning(self):
        import lightning
        seen, checked = [], []

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, CLASSES)

            def training_step(self, batch, number):
                images, labels = batch
                seen.append(len(labels))
                return torch.nn.functional.cross_entropy(self.layer(images.mean((2, 3))), labels)

            def validation_step(self, batch, number):
                checked.append(len(batch[1]))

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        options = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
                   "enable_model_summary": False}
        trainer = lightning.Trainer(max_epochs=2, accumulate_grad_batches=3, num_sanity_val_steps=0, **options)
        trainer.fit(Module(), self.ours(), self.ours(shuffle=False))
        self.assertEqual((sum(seen), sum(checked)), (2 * SAMPLES, 2 * SAMPLES))
        self.assertEqual(trainer.global_step, 2 * -(-BATCHES // 3))
        del seen[:]
        lightning.Trainer(max_epochs=1, limit_train_batches=4, **options).fit(Module(), self.ours())
        self.assertEqual(len(seen), 4)


if __name__ == "__main__":
    unittest.main()
