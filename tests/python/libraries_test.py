# SPDX-License-Identifier: Apache-2.0
"""Training libraries count a Loader's steps as a DataLoader's. Each needs its package (doc/libraries.md)."""

import concurrent.futures
import importlib.util
import os
import subprocess
import sys
import unittest
from unittest import mock

try:
    import torch
    from torch.utils.data import DataLoader, TensorDataset
except ImportError as missing:
    print(f"libraries_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import SAMPLES, DaemonCase, needs

BATCH, STEPS = 12, 20


def model():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))


class LibraryCase(DaemonCase):
    def ours(self, batch=BATCH, **kwargs):
        return self.loader(oa.imagenet_eval(32), batch, **kwargs)

    def theirs(self, batch=BATCH, **kwargs):
        """A DataLoader of as many batches."""
        return DataLoader(TensorDataset(torch.zeros(SAMPLES, 3, 32, 32), torch.zeros(SAMPLES, dtype=torch.int64)),
                          batch, **kwargs)


@needs("accelerate")
class AccelerateTest(LibraryCase):
    def steps(self, loader, epochs=2, prepare=True, **kwargs):
        """(steps of the optimizer, batches) for each epoch, as a training program counts them."""
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True, **kwargs)
        net = model()
        net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=1e-3))
        loader = accelerator.prepare(loader) if prepare else loader
        counts = []
        for _ in range(epochs):
            steps = batches = 0
            for images, labels in loader:
                with accelerator.accumulate(net):
                    accelerator.backward(torch.nn.functional.cross_entropy(net(images), labels))
                    optimizer.step()
                    optimizer.zero_grad()
                steps += accelerator.sync_gradients
                batches += 1
            self.assertFalse(accelerator.gradient_state.in_dataloader)
            counts.append((steps, batches))
        return counts

    def test_accumulation_ends_with_the_epoch(self):
        self.assertEqual(self.steps(self.ours(), gradient_accumulation_steps=3), [(7, STEPS)] * 2)
        self.assertEqual(self.steps(self.theirs(), gradient_accumulation_steps=3), [(7, STEPS)] * 2)

    def test_accumulation_astride_epochs_as_asked(self):
        from accelerate.utils import GradientAccumulationPlugin

        def plugin():
            return GradientAccumulationPlugin(num_steps=3, sync_with_dataloader=False)
        ours = self.steps(self.ours(), gradient_accumulation_plugin=plugin())
        self.assertEqual(ours, [(6, STEPS), (7, STEPS)])
        self.assertEqual(ours, self.steps(self.theirs(), gradient_accumulation_plugin=plugin()))

    def test_the_function_alone(self):
        from accelerate.data_loader import prepare_data_loader
        for loader in (self.ours(), self.theirs()):
            prepared = prepare_data_loader(loader)
            self.assertEqual(self.steps(prepared, prepare=False, gradient_accumulation_steps=3), [(7, STEPS)] * 2)

    def test_skipped_batches(self):
        from accelerate import skip_first_batches
        for loader in (self.ours(), self.theirs()):
            first = self.steps(skip_first_batches(loader, 13), 1, gradient_accumulation_steps=3)
            self.assertEqual(first, [(3, 7)])
            self.assertEqual(self.steps(loader, 1, gradient_accumulation_steps=3), [(7, STEPS)])

    def test_skipped_of_a_prepared_one(self):
        from accelerate import Accelerator, skip_first_batches
        for loader in (self.ours(), self.theirs()):
            prepared = Accelerator(cpu=True).prepare(loader)
            skipped = skip_first_batches(prepared, 13)
            self.assertEqual(self.steps(skipped, 1, prepare=False, gradient_accumulation_steps=3), [(3, 7)])

    def test_end_and_remainder(self):
        from accelerate import Accelerator
        for drop_last in (False, True):
            seen = []
            for loader in (self.ours(25, drop_last=drop_last), self.theirs(25, drop_last=drop_last)):
                accelerator = Accelerator(cpu=True)
                prepared = accelerator.prepare(loader)
                state = accelerator.gradient_state
                seen.append([(state.end_of_dataloader, state.remainder, len(accelerator.gather_for_metrics(labels)),
                              prepared.end_of_dataloader, prepared.total_batch_size) for _, labels in prepared])
            self.assertEqual(seen[0], seen[1])
            self.assertTrue(seen[0][-1][0])
            self.assertFalse(any(end for end, *_ in seen[0][:-1]))

    def test_a_loop_that_is_left_is_forgotten(self):
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        loader = accelerator.prepare(self.ours())
        for _ in loader:
            break
        self.assertFalse(accelerator.gradient_state.in_dataloader)
        self.assertEqual(len(list(loader)), STEPS)

    def test_one_that_is_not_prepared_counts_for_nothing(self):
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        for _ in self.ours():
            self.assertFalse(accelerator.gradient_state.in_dataloader)

    def test_batches_are_on_the_device(self):
        from accelerate import Accelerator
        from accelerate.state import PartialState
        loader = Accelerator(cpu=True).prepare(self.ours())
        with mock.patch.object(PartialState(), "device", torch.device("meta")):
            batch = next(iter(loader))
        self.assertEqual([array.device.type for array in batch.arrays()], ["meta", "meta"])
        self.assertEqual((len(batch.ids), batch.step), (BATCH, 0))

    def test_the_state_is_exact(self):
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        loader = accelerator.prepare(self.ours(order="seeded", seed=3))
        accelerator.register_for_checkpointing(loader)
        ids, folder = [], str(self.work / "saved")
        for number, batch in enumerate(loader):
            if number < 8:
                ids += batch.ids
            if number == 7:
                accelerator.save_state(folder)
        again = Accelerator(cpu=True)
        loader = again.prepare(self.ours(order="seeded", seed=3))
        again.register_for_checkpointing(loader)
        again.load_state(folder)
        for batch in loader:
            ids += batch.ids
        self.assertEqual(sorted(ids), [*range(SAMPLES)])


RANK = """
import os, sys
import torch, accelerate
import oneaccess as oa
accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=3)
loader = oa.Loader(sys.argv[1], oa.imagenet_eval(32), 25, socket=sys.argv[2], timeout=600)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=1e-3), loader)
ids, steps = [], 0
for batch in loader:
    with accelerator.accumulate(net):
        accelerator.backward(torch.nn.functional.cross_entropy(net(batch[0]), batch[1]))
        optimizer.step()
        optimizer.zero_grad()
    steps += accelerator.sync_gradients
    ids += accelerator.gather_for_metrics(torch.tensor(list(batch.ids))).tolist()
assert loader.total_batch_size == 50
accelerator.print(len(loader), steps, sorted(ids) == list(range(240)))
loader.close()
accelerator.end_training()
"""


@needs("accelerate")
class RanksTest(LibraryCase):
    def test_two_ranks_are_dealt_once(self):
        program = self.work / "rank.py"
        program.write_text(RANK)
        run = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                              program, self.data, self.socket], timeout=600, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("5 2 True", run.stdout.splitlines())


@needs("transformers")
@needs("accelerate")
class TrainerTest(LibraryCase):
    def trained(self, loader, epochs, resume=None):
        from transformers import Trainer, TrainingArguments

        class Ours(Trainer):
            def get_train_dataloader(self):
                return loader

            def compute_loss(self, net, inputs, return_outputs=False, num_items_in_batch=None):
                images, labels = inputs
                batches.append(len(labels))
                return torch.nn.functional.cross_entropy(net(images), labels)
        batches = []
        arguments = TrainingArguments(
            output_dir=str(self.work / type(loader).__module__), num_train_epochs=epochs, use_cpu=True, report_to=[],
            gradient_accumulation_steps=3, save_strategy="steps", save_steps=4, disable_tqdm=True)
        result = Ours(model(), arguments).train(resume_from_checkpoint=resume)
        return result.global_step, len(batches)

    def test_steps_and_resuming(self):
        from transformers.trainer_utils import get_last_checkpoint
        for loader in (self.ours(held="error", copy=True), self.theirs()):
            self.assertEqual(self.trained(loader, 1), (7, STEPS))
            last = get_last_checkpoint(str(self.work / type(loader).__module__))
            self.assertEqual(self.trained(loader, 2, last), (14, STEPS))
            self.assertEqual(self.trained(loader, 2, last.rpartition("-")[0] + "-4"), (14, 2 * STEPS - 12))


LIT = """
import hashlib, os, sys
import lightning, torch
import oneaccess as oa

class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.seen = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3)), []

    def training_step(self, batch, _):
        self.seen += [hashlib.md5(image.numpy().tobytes()).hexdigest() for image in batch[0]]
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def on_train_end(self):
        with open(os.path.join(sys.argv[3], f"lit-{self.global_rank}"), "w") as out:
            out.write(" ".join(self.seen))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)

loader = oa.Loader(sys.argv[1], oa.imagenet_eval(32), 10, socket=sys.argv[2], timeout=600)
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Lit(), loader)
assert len(loader) == 12
"""


@needs("lightning")
class LightningTest(LibraryCase):
    def fitted(self, loader, val=None, **kwargs):
        import lightning

        class Lit(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net, self.trained, self.validated = model(), 0, 0

            def training_step(self, batch, _):
                self.trained += 1
                return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

            def validation_step(self, batch, _):
                self.validated += 1

            def train_dataloader(self):
                return loader

            def val_dataloader(self):
                return val or []

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=1e-3)
        lit = Lit()
        trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, max_epochs=2,
                                    enable_progress_bar=False, enable_model_summary=False, **kwargs)
        trainer.fit(lit)
        return trainer.global_step, lit.trained, lit.validated

    def test_steps_limits_and_validation(self):
        for kwargs in ({}, {"accumulate_grad_batches": 3}, {"limit_train_batches": 0.5}, {"limit_train_batches": 7},
                       {"val_check_interval": 0.25, "num_sanity_val_steps": 0}):
            ours = self.fitted(self.ours(), self.ours(24, shuffle=False), **kwargs)
            self.assertEqual(ours, self.fitted(self.theirs(), self.theirs(24), **kwargs), kwargs)
            self.assertGreater(ours[2], 0)

    def test_two_ranks_are_dealt_once(self):
        """Lightning starts the second rank when the first has made its Loader."""
        program = self.work / "lit.py"
        program.write_text(LIT)
        run = subprocess.run([sys.executable, program, self.data, self.socket, self.work], timeout=600, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        seen = [(self.work / f"lit-{rank}").read_text().split() for rank in range(2)]
        self.assertEqual([len(of) for of in seen], [2 * SAMPLES // 2] * 2)
        for epoch in (slice(0, SAMPLES // 2), slice(SAMPLES // 2, None)):
            self.assertEqual(len({picture for of in seen for picture in of[epoch]}), SAMPLES)

    def test_overfitting_asks_for_the_order_of_the_files(self):
        """Two epochs of three batches, the same ones as each time."""
        options = {"overfit_batches": 3, "num_sanity_val_steps": 0}
        self.assertEqual(self.fitted(self.ours(shuffle=False), **options)[:2], (6, 6))
        with self.assertRaisesRegex(oa.errors.TransformError, "shuffle=False"):
            self.fitted(self.ours(), **options)


@needs("ignite")
class IgniteTest(LibraryCase):
    def test_an_engine(self):
        from ignite.engine import Engine
        for loader in (self.ours(), self.theirs()):
            state = Engine(lambda engine, batch: len(batch[1])).run(loader, max_epochs=2)
            self.assertEqual((state.epoch_length, state.iteration, state.epoch), (STEPS, 2 * STEPS, 2))


@needs("fastai")
class FastaiTest(LibraryCase):
    def test_a_learner(self):
        import fastai.callback.progress  # noqa: F401  (has no_bar)
        from fastai.data.core import DataLoaders
        from fastai.learner import Learner
        for train, valid in ((self.ours(), self.ours(shuffle=False)), (self.theirs(), self.theirs())):
            learner = Learner(DataLoaders(train, valid), model(), loss_func=torch.nn.functional.cross_entropy)
            with learner.no_bar(), learner.no_logging():
                learner.fit(2, 1e-3)
            self.assertEqual((learner.train_iter, learner.n_iter), (2 * STEPS, STEPS))


KERAS = """
import sys
import keras
import oneaccess as oa
is_tf = sys.argv[3] == "tf.data"
if is_tf:
    import tensorflow as tf
else:
    import torch
    from torch.utils.data import DataLoader, TensorDataset
keras.backend.set_image_data_format("channels_first")
class Steps(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.train, self.test = [], 0
    def on_epoch_begin(self, epoch, logs=None):
        self.train.append(0)
    def on_train_batch_end(self, batch, logs=None):
        self.train[-1] += 1
    def on_test_batch_end(self, batch, logs=None):
        self.test += 1
def run(train, valid, **kwargs):
    net = keras.Sequential([keras.layers.Input((3, 32, 32)), keras.layers.Flatten(), keras.layers.Dense(3)])
    net.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    steps = Steps()
    net.fit(train, validation_data=valid, epochs=2, verbose=0, callbacks=[steps], **kwargs)
    return steps.train, steps.test, net.predict(valid, verbose=0).shape
def ours(**kwargs):
    loader = oa.Loader(sys.argv[1], oa.imagenet_eval(32), 25, socket=sys.argv[2], timeout=600, **kwargs)
    return loader.to_tf_dataset() if is_tf else loader
def theirs():
    if is_tf:
        return tf.data.Dataset.from_tensor_slices((tf.zeros((240, 3, 32, 32)), tf.zeros(240, tf.int64))).batch(25)
    return DataLoader(TensorDataset(torch.zeros(240, 3, 32, 32), torch.zeros(240, dtype=torch.int64)), 25)
for kwargs in {}, {"steps_per_epoch": 4}:
    want = run(theirs(), theirs(), **kwargs)
    got = run(ours(), ours(shuffle=False), **kwargs)
    assert got == want, (got, want)
assert "torch" not in sys.modules or not is_tf
print(keras.backend.backend(), want)
"""


@needs("keras")
class KerasTest(LibraryCase):
    def test_it_fits_as_often(self):
        for backend, way in ("torch", "Loader"), ("jax", "Loader"), ("tensorflow", "Loader"), ("tensorflow", "tf.data"):
            if importlib.util.find_spec(backend) is None:
                print(f"libraries_test: not tested: Keras with {backend}, which is not there")
                continue
            run = subprocess.run([sys.executable, "-c", KERAS, self.data, self.socket, way], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, check=False, timeout=1200, env={**os.environ, "KERAS_BACKEND": backend})
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertIn(f"{backend} ([4, 4], 20, (240, 3))", run.stdout)


@needs("skorch")
class SkorchTest(LibraryCase):
    def test_iterators_of_a_folder(self):
        """The data set stays the program's, and says what a Loader is to read."""
        from skorch import NeuralNetClassifier
        from skorch.helper import predefined_split
        from torchvision import transforms
        from torchvision.datasets import ImageFolder
        folder = ImageFolder(self.data, transforms.Compose([transforms.Resize(32), transforms.CenterCrop(32), transforms.ToTensor()]))

        def ours(dataset, batch_size, shuffle=False, **_):
            return oa.Loader(dataset.root, oa.from_torchvision(dataset.transform), batch_size, shuffle=shuffle, socket=self.socket, timeout=600)
        seen = []
        for iterators in ({"iterator_train": ours, "iterator_valid": ours}, {}):
            torch.manual_seed(1)
            net = NeuralNetClassifier(torch.nn.Sequential(model(), torch.nn.Softmax(-1)), max_epochs=2, batch_size=BATCH, classes=[0, 1, 2],
                                      iterator_train__shuffle=True, train_split=predefined_split(folder), verbose=0, **iterators)
            net.fit(folder, None)
            history = net.history[:, ("train_batch_count", "valid_batch_count")]
            seen.append((history, net.predict(folder).shape))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], ([(STEPS, STEPS)] * 2, (SAMPLES,)))


@unittest.skipUnless(hasattr(torch, "export") and hasattr(torch, "compile"), "torch before 2.1 has no export()")
class TracingTest(LibraryCase):
    def test_a_compiled_step_is_compiled_once(self):
        graphs, net = [], model()

        def backend(graph, _):
            graphs.append(graph)
            return graph.forward
        step = torch.compile(lambda batch: torch.nn.functional.cross_entropy(net(batch[0]), batch[1]), backend=backend, fullgraph=True)
        loader = self.ours()
        for _ in range(2):
            for batch in loader:
                self.assertTrue(torch.equal(step(batch), torch.nn.functional.cross_entropy(net(batch[0]), batch[1])))
        self.assertEqual((len(graphs), loader.stats()["kept"], loader.stats()["written"]), (1, 0, 0))

    def test_vmap_of_a_batch(self):
        for batch in self.ours():
            means = torch.func.vmap(lambda batch: batch[0].mean() + batch[1])(batch)
            self.assertTrue(torch.allclose(means, batch[0].mean((1, 2, 3)) + batch[1]))

    def test_a_batch_is_an_example_for_export(self):
        class Net(torch.nn.Module):
            def forward(self, batch):
                images, labels = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
                return images.sum() + labels.sum()
        saved = str(self.work / "saved.pt2")
        for loader in (self.ours(), self.loader(oa.views(oa.imagenet_eval(32), oa.imagenet_eval(32)), BATCH)):
            exported = torch.export.export(Net(), (next(iter(loader)),))
            torch.export.save(exported, saved)
            again = torch.export.load(saved)
            for batch in loader:
                for program in (exported, again):
                    self.assertTrue(torch.equal(program.module()(batch), Net()(batch)))


@needs("composer")
class ComposerTest(LibraryCase):
    def trained(self, loader, valid, **kwargs):
        """(batches, samples, evaluated) of two epochs, as Composer's own clock has them."""
        from composer import Trainer
        from composer.models import ComposerModel
        from torchmetrics.classification import MulticlassAccuracy

        class Net(ComposerModel):
            def __init__(self):
                super().__init__()
                self.net, self.evaluated = model(), 0

            def forward(self, batch):
                return self.net(batch[0])

            def loss(self, outputs, batch):
                return torch.nn.functional.cross_entropy(outputs, batch[1])

            def eval_forward(self, batch, outputs=None):
                self.evaluated += len(batch[1])
                return self(batch)

            def get_metrics(self, is_train=False):
                return {"accuracy": MulticlassAccuracy(3)}

            def update_metric(self, batch, outputs, metric):
                metric.update(outputs, batch[1])
        net = Net()
        trainer = Trainer(model=net, train_dataloader=loader, eval_dataloader=valid, device="cpu", progress_bar=False, seed=1,
                          optimizers=torch.optim.SGD(net.parameters(), lr=1e-3), **{"max_duration": "2ep", **kwargs})
        trainer.fit()
        time = trainer.state.timestamp
        trainer.close()
        return time.epoch.value, time.batch.value, time.sample.value, net.evaluated

    def test_its_clock_and_microbatches(self):
        for kwargs in ({}, {"device_train_microbatch_size": 5}, {"train_subset_num_batches": 7}):
            ours = self.trained(self.ours(), self.ours(24, shuffle=False), **kwargs)
            self.assertEqual(ours, self.trained(self.theirs(), self.theirs(24), **kwargs), kwargs)
            self.assertGreater(ours[3], 0)

    def test_resuming_in_mid_epoch(self):
        seen = []
        for name, of in (("ours", self.ours), ("theirs", self.theirs)):
            folder = str(self.work / f"composer-{name}")
            first = self.trained(of(), of(24), max_duration="13ba", save_folder=folder, save_interval="13ba")
            rest = self.trained(of(), of(24), load_path=f"{folder}/latest-rank0.pt")
            seen.append((first[:3], rest[:3]))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], ((0, 13, 13 * BATCH), (2, 2 * STEPS, 2 * SAMPLES)))


@needs("ray")
class RayTest(LibraryCase):
    def test_a_prepared_loader_without_a_cluster(self):
        """What Ray's loader copies of a DataLoader is there, as of a DataLoader; batches are as many."""
        import ray.train.torch.train_loop_utils as ray_loop
        for loader in (self.ours(), self.theirs(shuffle=True)):
            wrapped = ray_loop._WrappedDataLoader(loader, torch.device("cpu"), True)
            self.assertEqual((len(wrapped), wrapped.batch_size, wrapped.drop_last, len(wrapped.dataset), len(wrapped.sampler)),
                             (STEPS, BATCH, False, SAMPLES, SAMPLES))
            self.assertEqual([len(labels) for _ in range(2) for _, labels in wrapped], [BATCH] * 2 * STEPS)

    def test_two_workers_are_dealt_once(self):
        """A cluster of Ray's has limits of time of its own, so its workers are threads here, whose session says that they are two."""
        import ray.train.torch.train_loop_utils as ray_loop
        with (mock.patch.object(ray_loop, "get_torch_device_manager_by_context"),  # it would start a cluster
              mock.patch.object(ray_loop.session, "get_world_size", lambda: 2),
              mock.patch.object(ray_loop.session, "get_world_rank", lambda: 0),
              mock.patch.object(ray_loop, "get_device", lambda: torch.device("cpu"))):
            ours = [ray_loop._TorchAccelerator(False).prepare_data_loader(self.ours(10, rank=rank, world_size=2, job="ray"))
                    for rank in (0, 1)]

        def epochs(loader):
            counts = []
            for epoch in range(2):
                loader.sampler.set_epoch(epoch)
                counts.append([len(labels) for _, labels in loader])
            return counts
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual(list(pool.map(epochs, ours)), [[[10] * 12] * 2] * 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
