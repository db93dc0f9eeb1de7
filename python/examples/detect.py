#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Detection: pictures, boxes, a class for each box and a caption, out of a WebDataset shard.

    data = oa.from_tar("train.tar", {"image": "jpg;png", "boxes": "json:boxes", "classes": "json:classes", "caption": "txt"},
                       ragged={"boxes": 50, "classes": 50, "caption": 500}, boxes=["boxes", "classes"])
    loader = oa.Loader(data, pipeline, batch_size=64)
    for batch in loader: batch["image"], batch["boxes"][i], batch["classes"][i], batch["caption"][i]

A sample of the shard is KEY.jpg (or .png), KEY.json with {"boxes": [[left, top, right, bottom], ...], "classes": [...]}, and
KEY.txt. accessd's workers decode the pictures, and boxes go where crops and flips put what is in them. What is trained
says for each part of a picture whether the middle of a box is there: the beginning of a detector, not a good one.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

SIZE, PART = 96, 8
FIELDS = {"image": "jpg;png", "boxes": "json:boxes", "classes": "json:classes", "caption": "txt"}


def middles(boxes, classes, kinds):
    """[samples, kinds, parts, parts]: 1 where the middle of a box of that class is."""
    target = torch.zeros(len(boxes), kinds, SIZE // PART, SIZE // PART)
    for at, (those, theirs) in enumerate(zip(boxes, classes)):
        x, y = ((those[:, :2] + those[:, 2:]) / 2 / PART).long().clamp(max=SIZE // PART - 1).T
        target[at, theirs, y, x] = 1
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard", help="a tar file of such samples, or \"NAME-{000..123}.tar\"")
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--mosaic", type=int, metavar="N", help="four pictures in each, as YOLO has it, in the first N epochs")
    options = parser.parse_args()

    augmented = t.Compose([t.RandomResizedCrop(SIZE, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
    if options.mosaic:
        augmented = t.Compose([augmented, t.Mosaic(epochs=options.mosaic)])
    data = oa.from_tar(options.shard, FIELDS, ragged={"boxes": 50, "classes": 50, "caption": 500}, boxes=["boxes", "classes"])
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
