#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parity_patches.py FILE... >golden_patches.tsv
parity_patches.py --grids >golden_grids.tsv

What the image processors of transformers (backend "pil") make of pictures, for the op patches. The first file is as those of parity.py
--golden, for run_test.c: the hash is of the patches with zeros behind them. The second one is for patches_test.c: a line for each picture's
size with the parameters of the op, the size, and the rows and columns of patches. Needs PyPI's transformers and torchvision; recorded with
transformers 5.24.0 and Pillow 13.0.0.
"""

import hashlib
import json
import os
import random
import sys

import numpy as np
import parity
import PIL
from transformers import Qwen2VLImageProcessorPil, Siglip2ImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
from transformers.models.siglip2.image_processing_pil_siglip2 import get_image_size_for_max_num_patches

QWEN = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
HALF = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


def spec(numbers, order, **patches):
    return [{"op": "decode"}, {"op": "patches", **patches}, {"op": "normalize", **numbers}, {"op": "cast"}, {"op": "layout", "order": order}]


SPECS = [
    (Siglip2ImageProcessorPil(), spec(HALF, "HWC", max_patches=256)),
    (Siglip2ImageProcessorPil(patch_size=14, max_num_patches=30), spec(HALF, "HWC", patch_size=14, max_patches=30)),
    (Siglip2ImageProcessorPil(patch_size=32, max_num_patches=7, resample=3), spec(HALF, "HWC", patch_size=32, max_patches=7, interpolation="bicubic")),
    (Qwen2VLImageProcessorPil(max_pixels=50000),
     spec(QWEN, "CHW", patch_size=14, merge_size=2, temporal_patch_size=2, max_pixels=50000, interpolation="bicubic")),
    (Qwen2VLImageProcessorPil(patch_size=16, min_pixels=9000, max_pixels=20000),
     spec(QWEN, "CHW", patch_size=16, merge_size=2, temporal_patch_size=2, min_pixels=9000, max_pixels=20000, interpolation="bicubic")),
    (Qwen2VLImageProcessorPil(patch_size=8, merge_size=1, temporal_patch_size=1, min_pixels=64, max_pixels=5000),
     spec(QWEN, "CHW", patch_size=8, temporal_patch_size=1, min_pixels=64, max_pixels=5000, interpolation="bicubic")),
]
MOST = [256, 30, 7, None, None, None]
GRIDS = [{"patch_size": 16, "max_patches": 256}, {"patch_size": 14, "max_patches": 729}, {"patch_size": 32, "max_patches": 64},
         {"patch_size": 16, "max_patches": 1}, {"patch_size": 14, "merge_size": 2, "max_pixels": 1003520},
         {"patch_size": 16, "merge_size": 2, "min_pixels": 65536, "max_pixels": 16777216},
         {"patch_size": 14, "merge_size": 1, "min_pixels": 196, "max_pixels": 40000},
         {"patch_size": 14, "merge_size": 2, "min_pixels": 3136, "max_pixels": 3136}]


def room(ops):
    """Of a picture that has the most patches, as pipeline/ops/patches.c has it."""
    op = ops[1]
    block = op["patch_size"] * op.get("merge_size", 1)
    least, most = op.get("min_pixels", 3136), op["max_pixels"]
    pixels = max(most, block * (200 * most) ** 0.5, least + block * least ** 0.5 * (200 ** 0.5 + 200 ** -0.5) + block * block)
    return int(pixels / (block * block)) * op.get("merge_size", 1) ** 2


def values(processor, ops, picture, most):
    made = processor(picture, return_tensors="np")["pixel_values"]
    if most is not None:
        return made[0]
    return np.concatenate([made, np.zeros((room(ops) - len(made), made.shape[1]), np.float32)])


def pictures(files):
    print(f"# Pillow {PIL.__version__}; made by parity_patches.py")
    for nonce, ((processor, ops), most) in enumerate(zip(SPECS, MOST)):
        print("spec", nonce, json.dumps(ops, separators=(",", ":")), sep="\t")
        for path in files:
            plain = parity.expected(path, [{"op": "decode"}, {"op": "center_crop", "size": 1}], [[0] * parity.DRAWN] * 2)
            what = plain
            if not isinstance(plain, int):
                what = hashlib.sha256(values(processor, ops, parity.decoded(path, False), most).tobytes()).hexdigest()[:16]
            print(os.path.basename(path), what, sep="\t")


def grids():
    draws = random.Random(4)
    sizes = [(1, 1), (1, 200), (201, 1), (200, 1), (14, 14), (15, 13), (41, 42), (42, 42), (43, 42), (4000, 3000), (3000, 4000), (16384, 90), (65, 12000)]
    sizes += [(int(2 ** draws.uniform(0, 13)), int(2 ** draws.uniform(0, 13))) for _ in range(60)]
    print("# made by parity_patches.py --grids")
    for op in GRIDS:
        patch, block = op["patch_size"], op["patch_size"] * op.get("merge_size", 1)
        for height, width in sizes:
            if "max_patches" in op:
                down, across = get_image_size_for_max_num_patches(height, width, patch, op["max_patches"])
            else:
                try:
                    down, across = smart_resize(height, width, block, op.get("min_pixels", 3136), op["max_pixels"])
                except ValueError:
                    down = across = 0
            print(json.dumps(op, separators=(",", ":"))[1:-1], height, width, down // patch, across // patch, sep="\t")


if __name__ == "__main__":
    grids() if sys.argv[1:] == ["--grids"] else pictures(sys.argv[1:])
