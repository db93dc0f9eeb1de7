# SPDX-License-Identifier: Apache-2.0
"""Warnings are errors, from the import on: a program for each framework that is here, in a fresh interpreter. What a
framework warns of while it is imported itself is its own; whatever comes after that is ours."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy  # noqa: F401, the daemon's data need it
except ImportError as missing:
    print(f"warnings_test: skipped: {missing}")
    sys.exit(77)

from support import DaemonCase

# Each runs behind BEGIN, with `data`, `loader(**)` and what it needs imported before.
BEGIN = """
import os, sys, warnings
data, socket, told, *modules = sys.argv[1:]
for name in modules:
    __import__(name)
sys.stderr.flush()
os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 2)
warnings.resetwarnings()
warnings.simplefilter("error")

import oneaccess as oa
import oneaccess.convert, oneaccess.doctor, oneaccess.errors, oneaccess.pool, oneaccess.record
import oneaccess.transforms, oneaccess.wrapped

def loader(pipeline=None, **kwargs):
    return oa.Loader(data, pipeline or oa.imagenet_train(32), 16, socket=socket, timeout=600, **kwargs)

def epochs(*args, **kwargs):
    with loader(*args, **kwargs) as each:
        for _ in range(2):
            yield from each
        each.state_dict()
        each.stats()
        repr(each)
"""
PROGRAMS = {
    "numpy": """
import numpy as np
for way in ({}, {"as_": "numpy"}, {"copy": True}):
    for images, labels in epochs(**way):
        assert isinstance(images, np.ndarray) and images.astype(np.float64).mean() < 1e3 and labels.sum() >= 0
for images, labels in epochs(as_="dlpack"):
    np.from_dlpack(images), memoryview(images)
""",
    "torch": """
import torch
for way in ({}, {"as_": "torch"}, {"copy": True}):
    for images, labels in epochs(**way):
        assert images.to("cpu", torch.float64, copy=True).mean() < 1e3
        images.to("meta"), images.contiguous(), torch.utils.data.default_collate([images, images])
for images, labels in epochs(as_="dlpack"):
    torch.from_dlpack(images.__dlpack__())
import oneaccess.translate.torchvision
from oneaccess import cuda, device
if not torch.cuda.is_available():  # a device that is none: device_test.py
    import device_test
    cuda.choose, cuda.Cuda = lambda _: torch.device("cpu"), device_test.Fake
for dtype in ("float32", "bfloat16"):
    for images, labels in epochs(oa.imagenet_train(32, dtype=dtype), device="cuda"):
        assert images.float().mean() < 1e3
""",
    "jax": """
import jax
for way in ({"as_": "jax"}, {"as_": "jax", "copy": True}):
    for images, labels in epochs(**way):
        assert jax.device_put(images, jax.devices()[0]).mean() < 1e3 and labels.sum() >= 0
        images.block_until_ready()
""",
    "tensorflow": """
import tensorflow as tf
for images, labels in epochs(as_="dlpack"):
    tensor = tf.experimental.dlpack.from_dlpack(images.__dlpack__())
    with tf.device("/CPU:0"):
        assert tf.reduce_mean(tf.identity(tensor)) < 1e3
""",
}
BESIDE = {"torch": ["torchvision"]}


class WarningsTest(DaemonCase):
    def run_program(self, framework):
        if importlib.util.find_spec(framework) is None:
            self.skipTest(f"{framework} is not here")
        modules = [name for name in [framework, *BESIDE.get(framework, [])] if importlib.util.find_spec(name)]
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(pathlib.Path(__file__).parent)])
        told = pathlib.Path(tempfile.mkdtemp(dir=self.work)) / "told"
        done = subprocess.run([sys.executable, "-X", "dev", "-W", "default", "-c", BEGIN + PROGRAMS[framework], self.data, self.socket,
                               told, *modules], env=dict(os.environ, PYTHONPATH=path), timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = told.read_text() if told.exists() else done.stdout
        self.assertEqual(done.returncode, 0, said)
        self.assertNotIn("Warning", said)  # also of what ends with the program, and of threads

    def test_numpy(self):
        self.run_program("numpy")

    def test_torch(self):
        self.run_program("torch")

    def test_jax(self):
        self.run_program("jax")

    def test_tensorflow(self):
        self.run_program("tensorflow")


if __name__ == "__main__":
    unittest.main(verbosity=2)
