# SPDX-License-Identifier: Apache-2.0
"""How many patches an image will have, for texts that have a place for each: the same arithmetic as accessd's (pipeline/ops/patches.c)."""

import math

from .errors import ArgumentError

_NARROW, _CLOSE = 200, 1e-5


def patch_grid(pipeline, height: int, width: int) -> tuple[int, int]:
    """(rows, columns) of the patches that an image of height x width pixels gets from a pipeline with transforms.Patches().

        pipeline = oa.transforms.qwen_vl(max_pixels=28 * 28 * 256)
        def sample(row):                                # a transform of from_jsonl(..., files="image")
            width, height = Image.open(io.BytesIO(row["image"])).size
            rows, columns = oa.patch_grid(pipeline, height, width)
            return {"image": row["image"], "ids": [IMAGE] * (rows * columns // 4) + tokenizer(row["text"])["input_ids"]}

    height, width: as the image comes to Patches(). pipeline: a Pipeline, or Patches() itself. ArgumentError: there are no patches in it, or the
    image is over 200 times as long as narrow, which accessd refuses, too.
    """
    op = next((each.spec() for each in getattr(pipeline, "ops", [pipeline]) if getattr(each, "op", None) == "patches"), None)
    if op is None:
        raise ArgumentError(f"patch_grid() is of a pipeline with transforms.Patches(), and {pipeline!r} has none")
    if height < 1 or width < 1:
        raise ArgumentError(f"an image of {height} x {width} pixels has no patches")
    patch = op.get("patch_size", 16)
    down, across = _by_pixels(op, patch, height, width) if "max_pixels" in op else _by_count(op["max_patches"], patch, height, width)
    return down // patch, across // patch


def _by_count(most, patch, height, width):
    def sides(scale):
        return [max(patch, math.ceil(side * scale / patch) * patch) for side in (height, width)]
    low, high = _CLOSE / 10, 100.0
    while high - low >= _CLOSE:
        scale = (low + high) / 2
        down, across = sides(scale)
        if (down // patch) * (across // patch) <= most:
            low = scale
        else:
            high = scale
    return sides(low)


def _by_pixels(op, patch, height, width):
    if max(height, width) / min(height, width) > _NARROW:
        raise ArgumentError(f"an image of {height} x {width} pixels is over {_NARROW} times as long as narrow: leave it out")
    block = patch * op.get("merge_size", 1)
    down, across = (round(side / block) * block for side in (height, width))
    if down * across > op["max_pixels"]:
        ratio = math.sqrt(height * width / op["max_pixels"])
        down, across = (max(block, math.floor(side / ratio / block) * block) for side in (height, width))
    elif down * across < op.get("min_pixels", 3136):
        ratio = math.sqrt(op.get("min_pixels", 3136) / (height * width))
        down, across = (math.ceil(side * ratio / block) * block for side in (height, width))
    return down, across
