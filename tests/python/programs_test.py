# SPDX-License-Identifier: Apache-2.0
"""Programs in the manner of others' examples run whole once their loader line is changed (bench/dropin, bench/programs)."""

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

if not shutil.which("patch"):
    print("programs_test: skipped: no patch")
    sys.exit(77)
try:
    import torch  # noqa: F401
    import torchvision  # noqa: F401
except ImportError as missing:
    print(f"programs_test: skipped: {missing}")
    sys.exit(77)

from support import SAMPLES, DaemonCase


def bench():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("dropin", str(pathlib.Path(os.environ["top_srcdir"]) / "bench/dropin"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dropin", loader))
    loader.exec_module(module)
    return module


DROPIN = bench()
NEEDS = {"hf_accelerate": ("accelerate", "datasets", "transformers"), "hf_trainer": ("accelerate", "datasets", "transformers"),
         "ignite_train": ("ignite",), "jax_network": ("jax",), "lightning_imagenet": ("lightning",), "timm_train": ("timm",),
         "torchvision_reference": ("torchvision.transforms.v2",)}


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


class ProgramsTest(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.split = cls.work / "split"
        DROPIN.split(pathlib.Path(cls.data), cls.split, 3)

    def test_each(self):
        for name in DROPIN.NAMES:
            absent = [package for package in NEEDS.get(name, ()) if not is_there(package)]
            if absent:
                print(f"programs_test: not tested: {name}: no {', '.join(absent)}")
                continue
            with self.subTest(name):
                self.run_whole(name)

    def run_whole(self, name):
        run = self.work / name
        run.mkdir()
        program, less, more = DROPIN.changed(name, run)
        self.assertLess(less + more, 16)
        done = subprocess.run(
            [sys.executable, program, self.split, "--epochs", "2", "--size", "32"], timeout=1200, cwd=run, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "ACCESS_SOCKET": self.socket, "HF_HOME": str(run / "hf"), "HF_HUB_OFFLINE": "1",
                 "XDG_RUNTIME_DIR": str(self.runtime()), "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^accuracy \d+\.\d+$")
        evaluated = SAMPLES // DROPIN.HELD_OUT
        right = float(done.stdout.rpartition("accuracy ")[2]) * evaluated / 100
        self.assertAlmostEqual(right, round(right), delta=0.01, msg="not all pictures were evaluated")

    def test_a_daemon_that_has_ended(self):
        """Of it nothing is left to end, and what the program said is told."""
        run = self.work / "ended"
        (run / "oneaccess").mkdir(parents=True)
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            ended.wait()
        (run / "oneaccess/accessd.pid").write_text(f"{ended.pid}\n")
        DROPIN.end_daemon(run)

    def runtime(self):
        """Pools of wrapped data sets are there."""
        folder = self.work / "runtime"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder


if __name__ == "__main__":
    unittest.main(verbosity=2)
