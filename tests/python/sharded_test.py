# SPDX-License-Identifier: Apache-2.0
"""Batches as global arrays of JAX, over eight devices of one process and of two."""

import gc
import importlib.util
import os
import socket
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"sharded_test: skipped: {missing}")
    sys.exit(77)
if not importlib.util.find_spec("jax"):
    print("sharded_test: skipped: no JAX")
    sys.exit(77)
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

import oneaccess as oa
from support import SAMPLES, PoolCase

PROCESS = """
import os, sys
count, rank, port, data, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
import jax
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
import numpy as np
import oneaccess as oa
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
devices = np.array(jax.devices()).reshape(2, 4)
def opened(spec, *names, batch=8, **kwargs):
    return oa.Loader(data, oa.imagenet_eval(32), batch, drop_last=True, socket=where, timeout=600,
                     sharding=NamedSharding(Mesh(devices, names), spec), **kwargs)
loader = opened(P(("a", "b")), "a", "b", order="seeded", seed=3)
assert (loader.rank, loader.world_size, loader._ranks.local_world_size, loader._ranks.is_known) == (rank, 2, 2, True), loader._ranks
mean = jax.jit(lambda images, labels: (images.mean(), labels.sum()))
seen = []
for images, labels in loader:
    assert images.shape == (16, 3, 32, 32) and labels.shape == (16,), images.shape
    assert not images.is_fully_addressable
    numbers = mean(images, labels)
    mine = np.concatenate([np.asarray(shard.data) for shard in sorted(labels.addressable_shards, key=lambda shard: shard.index[0].start)])
    seen.append([float(numbers[0]), int(numbers[1]), int(mine.sum())])
print("SEEN", seen)
ids = sorted(int(number) for batch in opened(P("a"), "a", "b") for number in batch.ids)
print("IDS", ids)
for spec, names, words in ((P("b"), ("a", "b"), "no two processes share"), (P(), ("a", "b"), "no two processes share")):
    try:
        opened(spec, *names)
    except oa.errors.ArgumentError as why:
        assert words in str(why), why
    else:
        raise AssertionError(spec)
try:
    opened(P("a"), "a", "b", rank=0, world_size=1)
except oa.errors.ArgumentError as why:
    assert "leave rank= and world_size= out" in str(why), why
"""


class ShardedTest(PoolCase):
    def sharding(self, *spec, shape=(8,), names=("data",)):
        return NamedSharding(Mesh(np.array(jax.devices()).reshape(shape), names), P(*spec))

    def seeded(self, **kwargs):
        return self.open(self.data, oa.imagenet_train(32), order="seeded", seed=5, drop_last=True, **kwargs)

    def test_values_are_the_daemons(self):
        for sharding in (self.sharding("data"), self.sharding("data", shape=(4, 2), names=("data", "model")), self.sharding(),
                         self.sharding(("x", "y"), None, "z", shape=(2, 2, 2), names=("x", "y", "z")), SingleDeviceSharding(jax.devices()[5])):
            with self.subTest(sharding=str(sharding)):
                count = 0
                for batch, (want, want_labels) in zip(self.seeded(sharding=sharding), self.seeded(as_="numpy", copy=True), strict=True):
                    images, labels = batch
                    self.assertEqual(images.sharding, sharding)
                    self.assertEqual(images.devices(), labels.devices())
                    np.testing.assert_array_equal(np.asarray(images), want)
                    np.testing.assert_array_equal(np.asarray(labels), want_labels)
                    for shard in images.addressable_shards:
                        np.testing.assert_array_equal(np.asarray(shard.data), want[shard.index])
                    count += len(batch.ids)
                self.assertEqual(count, SAMPLES)

    def test_a_shard_keeps_the_slot(self):
        loader = self.seeded(sharding=self.sharding("data"))
        images, _ = next(iter(loader))
        shard, want = images.addressable_shards[3].data, np.array(images)[6:8]
        del images
        loader.close()
        del loader
        gc.collect()
        np.testing.assert_array_equal(np.asarray(shard), want)

    def test_slots_go_back(self):
        """Also of batches that are still computed with when the loop goes on."""
        step = jax.jit(lambda images: (images * 2).sum(axis=(1, 2, 3)))
        loader = self.seeded(sharding=self.sharding("data"))
        for epoch in range(3):
            got = [step(images) for images, _ in loader]
            self.assertEqual(len(got), SAMPLES // 16)
        want = [step(images) for images, _ in self.seeded(as_="jax")]
        got = [step(images) for images, _ in self.seeded(sharding=self.sharding("data"))]
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)

    def test_a_step_in_shards(self):
        sharding = self.sharding("data")
        weights = jax.device_put(np.ones((3,), "f4"), NamedSharding(sharding.mesh, P()))
        step = jax.jit(lambda weights, images: weights + images.mean((0, 2, 3)))
        for (images, _), (want, _) in zip(self.seeded(sharding=sharding), self.seeded(as_="numpy", copy=True), strict=True):
            np.testing.assert_allclose(np.asarray(step(weights, images)), 1 + want.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)

    def test_fields(self):
        samples = [{"x": np.full((4,), number, np.float32), "n": number, "words": np.arange(number % 5), "text": "a" * number, "padded": np.arange(number % 7)}
                   for number in range(24)]
        loader = self.open(oa.wrap(samples, ragged={"words": 5}, pad={"padded": oa.Pad(9)}), batch_size=8, shuffle=False, drop_last=True, sharding=self.sharding("data"))
        for step, batch in enumerate(loader):
            numbers = np.arange(8 * step, 8 * step + 8)
            for name in ("x", "n", "padded", "padded_length"):
                self.assertIsInstance(batch[name], jax.Array)
                self.assertEqual(len(batch[name].devices()), 8)
            np.testing.assert_array_equal(np.asarray(batch["n"]), numbers)
            self.assertEqual(batch["padded"].shape, (8, 9))     # one shape in all batches
            self.assertIsInstance(batch["words"].padded(), np.ndarray)
            self.assertEqual([len(row) for row in batch["words"].list()], (numbers % 5).tolist())
            self.assertEqual(batch["text"], ["a" * number for number in numbers])
        tokens = self.work / "tokens.bin"
        np.arange(16 * 8 + 1, dtype=np.uint16).tofile(tokens)
        batch = next(iter(self.open(oa.tokens(tokens, 8, dtype="uint16"), shuffle=False, drop_last=True, sharding=self.sharding("data"))))
        np.testing.assert_array_equal(np.asarray(batch["labels"]), np.arange(1, 16 * 8 + 1).reshape(16, 8))
        self.assertEqual(len(batch["labels"].devices()), 8)

    def test_refused(self):
        data = self.sharding("data")
        for words, options in (("give drop_last=True", {"sharding": data, "drop_last": False}),
                               ("give one of jax.sharding", {"sharding": "data"}),
                               ("leave as_ out", {"sharding": data, "as_": "torch"}),
                               ("device= beside sharding=", {"sharding": data, "device": "cuda"}),
                               ("collate_fn= beside sharding=", {"sharding": data, "collate_fn": list}),
                               ("a batch of 12 samples cannot be cut by", {"sharding": data, "batch_size": 12}),
                               ("JAX's only process", {"sharding": data, "rank": 0, "world_size": 2})):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                self.open(self.data, oa.imagenet_train(32), **{"drop_last": True, **options})

    def test_two_processes(self):
        held = socket.socket()      # to the end, so that nobody else gets the port; JAX shares it
        self.addCleanup(held.close)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
        running = [subprocess.Popen([sys.executable, "-c", PROCESS, "2", str(rank), str(port), self.data, self.socket], env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for rank in range(2)]
        for process in running:
            self.addCleanup(process.kill)
        said = [process.communicate(timeout=600)[0] for process in running]
        self.assertEqual([process.returncode for process in running], [0, 0], "\n".join(said))
        seen, ids = ([eval(line.partition(" ")[2]) for text in said for line in text.splitlines() if line.startswith(word)] for word in ("SEEN", "IDS"))
        self.assertEqual(len(seen[0]), SAMPLES // 16)
        for one, other in zip(*seen, strict=True):     # what all computed, and what each gave to it
            self.assertEqual(one[:2], other[:2])
            self.assertEqual(one[1], one[2] + other[2])
        self.assertEqual(sorted(ids[0] + ids[1]), [*range(SAMPLES)])


if __name__ == "__main__":
    unittest.main()
