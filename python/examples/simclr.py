#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two views of each picture, as SimCLR, MoCo and DINO train on them: decoded once, each with draws of its own.

What changes where a DataLoader was:

    -class Twice:                                          # each view decodes nothing, but each process decodes each picture
    -    def __call__(self, picture): return augment(picture), augment(picture)
    -loader = DataLoader(ImageFolder("train", Twice()), batch_size=64, shuffle=True, num_workers=8, drop_last=True)
    -for (one, other), _ in loader:
    +loader = oa.Loader("train", oa.views(augment, augment), 64, drop_last=True)
    +for batch in loader: batch["image"], batch["image2"]

oa.views(large, large, local=(small, 6)) is DINO's: image, image2 and local1 to local6.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

SIZE = 64


def alike(one, other, warmth=0.2):
    """SimCLR's loss: of all pictures of both views the other view of the same one is nearest."""
    both = nn.functional.normalize(torch.cat([one, other]), dim=1)
    near = (both @ both.T / warmth).masked_fill(torch.eye(len(both), dtype=torch.bool), float("-inf"))
    return nn.functional.cross_entropy(near, torch.arange(len(both)).roll(len(one)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder of pictures; classes are not looked at")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)

    augment = t.Compose([t.RandomResizedCrop(SIZE, scale=(0.2, 1)), t.RandomHorizontalFlip(), t.ColorJitter(0.4, 0.4, 0.4, 0.1),
                         t.RandomGrayscale(0.2), t.ToTensor()])
    loader = oa.Loader(options.data, oa.views(augment, augment), options.batch_size, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(64, 32))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            loss = alike(model(batch["image"]), model(batch["image2"]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["label"])
            loss_sum += loss.item() * len(batch["label"])
        print(f"epoch {epoch + 1}: {samples} samples, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
