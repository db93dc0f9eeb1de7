# SPDX-License-Identifier: Apache-2.0
"""Batches as arrays of TensorFlow and JAX: views of the slot, which live as long as the arrays do, and which
nothing that is computed of them writes to. Each test needs its library; ./check release has them all."""

import gc
import importlib.util
import os
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"arrays_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import SAMPLES, DaemonCase

LIBRARIES = [name for name in ("tensorflow", "jax") if importlib.util.find_spec(name)]
if not LIBRARIES:
    print("arrays_test: skipped: no TensorFlow, no JAX")
    sys.exit(77)

DTYPES = ("uint8", "float16", "float32")


DEVICES = """
import sys
import jax
import oneaccess as oa
other, loader = jax.devices()[1], oa.Loader(sys.argv[1], oa.imagenet_train(32), 16, as_="jax", socket=sys.argv[2], timeout=600)
step, halves, weight = jax.jit(lambda weight, batch: weight * batch[0].mean()), jax.pmap(lambda images: images.mean()), jax.device_put(2.0, other)
for batch in loader:
    images, labels = batch
    assert step(weight, batch).devices() == {other}
    assert len(halves(images.reshape(2, 8, *images.shape[1:]))) == 2
    start = images.unsafe_buffer_pointer()
    maps = [line.split() for line in open("/proc/self/maps")]
    (name,) = [line[-1] for line in maps for begin, end in [line[0].split("-")] if int(begin, 16) <= start < int(end, 16)]
    assert name == "(deleted)", name
assert loader.stats()["kept"] == 0
"""


class ArraysCase(DaemonCase):
    def seeded(self, dtype="float32", batch=16, **kwargs):
        return self.loader(oa.imagenet_train(32, dtype=dtype), batch, order="seeded", seed=5, **kwargs)

    def want(self, dtype, batch=16):
        return [(images, labels) for images, labels in self.seeded(dtype, batch, as_="numpy", copy=True)]

    def same(self, got, dtype, batch=16):
        """(images, labels) of an epoch as NumPy arrays are the daemon's."""
        count = 0
        for (images, labels), (want_images, want_labels) in zip(got, self.want(dtype, batch), strict=True):
            self.assertEqual((images.dtype, labels.dtype), (want_images.dtype, want_labels.dtype))
            np.testing.assert_array_equal(images, want_images)
            np.testing.assert_array_equal(labels, want_labels)
            count += len(labels)
        self.assertEqual(count, SAMPLES)


@unittest.skipUnless("tensorflow" in LIBRARIES, "no TensorFlow")
class TensorFlowTest(ArraysCase):
    @staticmethod
    def taken(batch):
        import tensorflow as tf
        return tuple(tf.experimental.dlpack.from_dlpack(field.__dlpack__()) for field in batch)

    def test_values_are_the_daemons(self):
        for dtype, batch in ((dtype, batch) for dtype in DTYPES for batch in (16, 7)):
            with self.subTest(dtype=dtype, batch=batch):
                epoch = self.seeded(dtype, batch, as_="dlpack")
                self.same(((images.numpy(), labels.numpy()) for images, labels in map(self.taken, epoch)), dtype, batch)

    def test_a_tensor_keeps_its_slot(self):
        loader = self.seeded(as_="dlpack")
        batch = next(iter(loader))
        images, _ = self.taken(batch)
        expected = images.numpy().copy()
        del batch
        loader.close()
        gc.collect()
        np.testing.assert_array_equal(images.numpy(), expected)

    def test_slots_go_back(self):
        """More batches than a job may hold, each let go of."""
        loader = self.seeded(as_="dlpack")
        for _ in range(3):
            self.assertEqual(sum(int(labels.shape[0]) for _, labels in map(self.taken, loader)), SAMPLES)

    def test_nothing_writes_to_a_slot(self):
        """TensorFlow may compute in the memory of an operand that nobody else has; that of a slot would end the program."""
        import tensorflow as tf

        @tf.function
        def step(images):
            return tf.nn.relu(-(images + 1.0) * 2.0)
        for batch, (want, _) in zip(self.seeded(as_="dlpack"), self.want("float32"), strict=True):
            one = np.float32(1)
            np.testing.assert_array_equal(tf.add(self.taken(batch)[0], one).numpy(), want + one)
            np.testing.assert_array_equal(step(self.taken(batch)[0]).numpy(), np.maximum(-(want + one) * np.float32(2), 0))

    def test_a_dataset_of_a_loader(self):
        import tensorflow as tf
        spec = (tf.TensorSpec((None, 3, 32, 32), tf.float32), tf.TensorSpec((None,), tf.int64))
        for signature in None, spec:
            loader = self.seeded(as_="numpy")
            data = loader.to_tf_dataset(signature)
            self.assertEqual(data.element_spec, spec)
            theirs = self.seeded(as_="numpy", copy=True)
            for _ in range(2):
                for got, want in zip(data, theirs, strict=True):
                    for one, other in zip(got, want, strict=True):
                        np.testing.assert_array_equal(one.numpy(), other)

    def test_a_dataset_of_a_mix(self):
        mixed = oa.mix([self.seeded(as_="numpy"), self.seeded(as_="numpy")], weights=[3, 1])
        self.addCleanup(mixed.close)
        data = mixed.to_tf_dataset()
        for _ in range(2):
            self.assertEqual(sum(len(labels) for _, labels in data), sum(len(labels) for _, labels in mixed))

    def test_a_dataset_of_dicts(self):
        import tensorflow as tf
        samples = [{"image": np.full((4, 2), number, np.uint8), "of": {"number": number, "name": f"n{number}"}, "words": np.arange(number % 5)}
                   for number in range(20)]
        wrapped = oa.wrap(samples, ragged={"words": 5})
        loader = oa.Loader(wrapped, None, 8, shuffle=False, ragged={"words": "padded"}, as_="numpy", socket=self.socket)
        self.addCleanup(loader.close)
        data = loader.to_tf_dataset({"image": tf.TensorSpec((None, 4, 2), tf.uint8), "words": tf.TensorSpec((None, None), tf.int64),
                                     "of": {"number": tf.TensorSpec((None,), tf.int64), "name": tf.TensorSpec((None,), tf.string)}})
        got = [*data]
        self.assertEqual([int(number) for batch in got for number in batch["of"]["number"]], [*range(20)])
        self.assertEqual(got[2]["of"]["name"].numpy().tolist(), [b"n16", b"n17", b"n18", b"n19"])
        self.assertEqual(got[2]["words"].numpy().tolist(), [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]])
        for ragged in None, {"words": "list"}:
            with self.assertRaisesRegex(oa.Error, r"batch\['words'\] is no tensor.* ragged=\"padded\", and say output_signature"):
                oa.Loader(wrapped, None, 8, ragged=ragged, as_="numpy", socket=self.socket).to_tf_dataset()


@unittest.skipUnless("jax" in LIBRARIES, "no JAX")
class JaxTest(ArraysCase):
    def test_values_are_the_daemons(self):
        import jax
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
            for dtype, batch in ((dtype, batch) for dtype in DTYPES for batch in (16, 7)):
                with self.subTest(dtype=dtype, batch=batch):
                    epoch = self.seeded(dtype, batch, as_="jax")
                    self.same(((np.array(images), np.array(labels)) for images, labels in epoch), dtype, batch)

    def test_an_array_keeps_its_slot(self):
        loader = self.seeded(as_="jax")
        images, _ = next(iter(loader))
        expected = np.array(images)
        loader.close()
        gc.collect()
        np.testing.assert_array_equal(np.array(images), expected)

    def test_nothing_writes_to_a_slot(self):
        import jax

        @jax.jit
        def step(images):
            return (images + 1.0) * 2.0
        for (images, _), (want, _) in zip(self.seeded(as_="jax"), self.want("float32"), strict=True):
            np.testing.assert_array_equal(np.array(step(images)), (want + np.float32(1)) * np.float32(2))
            np.testing.assert_array_equal(np.array(images.at[0].set(0))[1:], want[1:])
            np.testing.assert_array_equal(np.array(images), want)

    def test_a_step_runs_where_its_other_arrays_are(self):
        """Batches are bound to no device, as NumPy's arrays are to none, and are views all the same."""
        done = subprocess.run([sys.executable, "-c", DEVICES, self.data, self.socket], timeout=600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_batch_is_a_tree(self):
        """It goes into a compiled function as a whole, which is compiled once, and to a device."""
        import jax
        compiled = []

        @jax.jit
        def step(batch):
            compiled.append(repr(batch))
            images, labels = batch
            return type(batch)([images * 2, labels])
        loader = self.seeded(as_="jax", batch=12)
        doubled = [step(jax.device_put(batch)) for batch in loader]
        self.same(((np.array(images) / 2, np.array(labels, np.int64)) for images, labels in doubled), "float32", 12)
        self.assertEqual({type(batch) for batch in doubled}, {oa.Batch})
        self.assertEqual(compiled, ["<Batch: (12, 3, 32, 32), (12,)>"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
