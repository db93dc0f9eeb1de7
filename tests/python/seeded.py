# SPDX-License-Identifier: Apache-2.0
"""seeded.py PROGRAM ARGUMENT...: runs a program that learns so that each run learns the same: its Loaders have the same
batches and draws each time, and PyTorch the same numbers, added up in one order. What a program without a seed learns of a
few samples is a matter of luck."""

import os
import runpy
import sys

import torch

import oneaccess as oa

USUAL = oa.Loader


def seeded(*arguments, **options):
    return USUAL(*arguments, **{**options, "order": "seeded", "seed": 1})


if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = os.path.dirname(sys.argv[0])
    oa.Loader = seeded
    torch.set_num_threads(1)
    torch.manual_seed(1)
    runpy.run_path(sys.argv[0], run_name="__main__")
