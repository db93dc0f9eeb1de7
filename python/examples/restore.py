#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restoration: photographs with noise and the same ones without, in two folders with the same names.

What changes where a DataLoader was:

    -dataset = Pairs("noisy", "clean", v2.Compose([                                            # v2 gives two images the same crop
    -    v2.RandomCrop(64), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]))
    -loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=8, drop_last=True)
    -for noisy, clean in loader:
    +data = oa.from_folders({"image": "noisy", "clean": "clean"}, images="clean")
    +loader = oa.Loader(data, t.Compose([t.RandomCrop(64), t.RandomHorizontalFlip(), t.ToTensor()]), 16, drop_last=True)
    +for batch in loader: batch["image"], batch["clean"]

With --scale 2 the second folder has twice the resolution, as for super-resolution.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

SIZE = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("noisy", help="a folder of pictures, or a pattern")
    parser.add_argument("clean", help="the same without noise, of the same names, or a pattern with as many stars")
    parser.add_argument("--scale", type=int, default=1, help="how many times as large the clean ones are")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_folders({"image": options.noisy, "clean": options.clean}, images={"clean": oa.Image(scale=options.scale)})
    loader = oa.Loader(data, t.Compose([t.RandomCrop(SIZE), t.RandomHorizontalFlip(), t.ToTensor()]), options.batch_size, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3 * options.scale**2, 3, padding=1), nn.PixelShuffle(options.scale))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            loss = nn.functional.mse_loss(model(batch["image"]), batch["clean"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["image"])
            loss_sum += loss.item() * len(batch["image"])
        print(f"epoch {epoch + 1}: {samples} samples, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
