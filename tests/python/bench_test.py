# SPDX-License-Identifier: Apache-2.0
"""bench/cuda, without a GPU: all its ways to a device give the daemon's values. Needs PyTorch."""

import os
import pathlib
import subprocess
import sys
import unittest

try:
    import torch  # noqa: F401
except ImportError as missing:
    print(f"bench_test: skipped: {missing}")
    sys.exit(77)

from support import DaemonCase

CUDA = pathlib.Path(os.environ["top_srcdir"]) / "bench/cuda"


class BenchTest(DaemonCase):
    def test_cuda_without_a_gpu(self):
        run = subprocess.run([sys.executable, CUDA, self.data, "--device", "cpu", "--side", "32", "--batch", "16",
                              "--seconds", "0.1", "--memory", "512M", "--build", os.environ["top_builddir"]],
                             timeout=600, stdout=subprocess.PIPE, text=True, check=True)
        said = run.stdout.splitlines()
        self.assertEqual(sum(line.startswith("same, ") and ": 0 of " in line for line in said), 4, said)
        self.assertEqual((sum(line.startswith("host, ") for line in said), sum(line.startswith("rate, ") for line in said)),
                         (4, 4), said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
