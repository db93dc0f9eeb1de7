#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures and captions out of WebDataset shards, as CLIP trains on them.

What changes where webdataset and a DataLoader were:

    -dataset = wds.WebDataset("cc3m-{000..331}.tar", shardshuffle=100).shuffle(1000).decode("pil").to_tuple("jpg;png", "txt").map_tuple(augment, str)
    -loader = wds.WebLoader(dataset.batched(64), batch_size=None, num_workers=8)
    -for images, captions in loader:
    +data = oa.from_tar("cc3m-{000..331}.tar", {"image": "jpg;png", "caption": "txt"}, ragged={"caption": 200})
    +loader = oa.Loader(data, augment, 64, drop_last=True)
    +for batch in loader: batch["image"], batch["caption"].strings()

Each sample comes once an epoch, in a random order of all shards. The text's model here reads bytes, which batch["caption"] has as a
tensor already, with their number in its lengths; who has a tokenizer gives it batch["caption"].strings().
"""
import argparse

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

SIZE, MOST = 64, 200


class Text(nn.Module):
    """The mean of what bytes and pairs of them mean."""

    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Embedding(256, width), nn.Embedding(4096, width)

    def forward(self, captions):
        values = captions.values.long()
        there = (torch.arange(values.shape[1]) < captions.lengths[:, None])[..., None]
        pairs = (values * 31 + values.roll(-1, 1)) % 4096
        return ((self.one(values) + self.two(pairs)) * there).sum(1) / there.sum(1).clamp(min=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", help="a tar file of KEY.jpg (or .png) and KEY.txt, or \"NAME-{000..123}.tar\"")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_tar(options.shards, {"image": "jpg;png", "caption": "txt"}, ragged={"caption": MOST})
    loader = oa.Loader(data, t.Compose([t.RandomResizedCrop(SIZE, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()]), options.batch_size,
                       drop_last=True)
    pictures = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(64, 32))
    texts = Text(32)
    optimizer = torch.optim.Adam([*pictures.parameters(), *texts.parameters()], 0.01)

    for epoch in range(options.epochs):
        samples, letters, loss_sum = 0, 0, 0.0
        for batch in loader:
            near = 5 * nn.functional.normalize(pictures(batch["image"])) @ nn.functional.normalize(texts(batch["caption"])).T
            own = torch.arange(len(near))
            loss = (nn.functional.cross_entropy(near, own) + nn.functional.cross_entropy(near.T, own)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(near)
            letters += sum(map(len, batch["caption"].strings()))
            loss_sum += loss.item() * len(near)
        print(f"epoch {epoch + 1}: {samples} samples, captions of {letters} letters, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
