# SPDX-License-Identifier: Apache-2.0
"""What the pools of tables_test.py import."""

import array
import random

import numpy as np
import oneaccess as oa
from PIL import Image

ROWS, A_BLOCK = 256, 16
SIZE = 8, 12     # of pictures as pixels


class Blocks:
    """Row i of a table that is read by blocks, of which it keeps window and one more; each read leaves a line in a file."""

    def __init__(self, log, window):
        self.log, self.window = str(log), window
        self.blocks = oa.Blocks(array.array("q", range(0, ROWS, A_BLOCK)), window, 1 << 20)
        self.kept = []

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        block = i // A_BLOCK
        if block not in self.kept:
            self.kept = self.kept[-self.window:] + [block]
            with open(self.log, "a") as log:
                log.write(f"{block}\n")
        return np.float32([i, block]), i

    def __getitems__(self, indices):
        return [self[i] for i in indices]


def noise(batch):
    """A transform of datasets."""
    return {"x": [np.float32([random.random(), label]) for label in batch["label"]]}


def decode(key, value):
    return value[8:], int.from_bytes(value[:8], "little")


def pixels(file):
    with Image.open(file) as opened:
        return np.asarray(opened.convert("RGB").resize(SIZE[::-1], Image.Resampling.BILINEAR)).tolist()


def number(key, value):
    return int(key)
