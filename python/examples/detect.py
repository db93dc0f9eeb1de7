#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Detection: pictures, boxes, a class for each box and a caption, out of a WebDataset shard.

    loader = oa.Loader(oa.wrap(Shard("train.tar"), ragged={"boxes": 50, "classes": 50, "caption": 500},
                               boxes=["boxes", "classes"]), pipeline, batch_size=64)
    for batch in loader: batch["image"], batch["boxes"][i], batch["classes"][i], batch["caption"][i]

A sample of the shard is KEY.jpg (or .png), KEY.json with {"boxes": [[left, top, right, bottom], ...], "classes": [...]}, and
KEY.txt. accessd's workers decode the pictures, and boxes go where crops and flips put what is in them. What is trained
says for each part of a picture whether the middle of a box is there: the beginning of a detector, not a good one.
"""
import argparse
import json
import tarfile

import numpy as np
import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

SIZE, PART = 96, 8


class Shard:
    """Samples by number, read at their places in the file."""

    def __init__(self, path):
        self.path, members = path, {}
        with tarfile.open(path) as tar:
            for member in tar:
                key, _, kind = member.name.rpartition(".")
                members.setdefault(key, {})[{"jpg": "image", "png": "image"}.get(kind, kind)] = (member.offset_data, member.size)
        self.samples = [members[key] for key in sorted(members)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        with open(self.path, "rb") as file:
            parts = {}
            for kind, (at, size) in self.samples[index].items():
                file.seek(at)
                parts[kind] = file.read(size)
        about = json.loads(parts["json"])
        return {"image": parts["image"], "boxes": np.array(about["boxes"], np.float32).reshape(-1, 4),
                "classes": np.array(about["classes"], np.int64), "caption": parts["txt"].decode()}


def middles(boxes, classes, kinds):
    """[samples, kinds, parts, parts]: 1 where the middle of a box of that class is."""
    target = torch.zeros(len(boxes), kinds, SIZE // PART, SIZE // PART)
    for at, (those, theirs) in enumerate(zip(boxes, classes)):
        x, y = ((those[:, :2] + those[:, 2:]) / 2 / PART).long().clamp(max=SIZE // PART - 1).T
        target[at, theirs, y, x] = 1
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard", help="a tar file of such samples")
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()

    augmented = t.Compose([t.RandomResizedCrop(SIZE, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
    data = oa.wrap(Shard(options.shard), ragged={"boxes": 50, "classes": 50, "caption": 500}, boxes=["boxes", "classes"], random=False)
    loader = oa.Loader(data, augmented, options.batch_size, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                          nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, options.classes, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples = boxes = letters = 0
        loss_sum = 0.0
        for batch in loader:
            target = middles(batch["boxes"], batch["classes"], options.classes)
            loss = nn.functional.binary_cross_entropy_with_logits(model(batch["image"]), target, pos_weight=torch.tensor(20.0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(target)
            boxes += int(batch["boxes"].lengths.sum())
            letters += sum(map(len, batch["caption"].strings()))
            loss_sum += loss.item() * len(target)
        print(f"epoch {epoch + 1}: {samples} samples, {boxes} boxes, captions of {letters} letters, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
