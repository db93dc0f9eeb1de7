#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clips and captions out of WebDataset shards (KEY.mp4, KEY.txt), as video2dataset writes them: which text belongs to which clip is
learned, as CLIP does for pictures.

    data = oa.from_tar("clips-{000..331}.tar", {"video": "mp4;webm", "caption": "txt"}, ragged={"caption": 200})
    loader = oa.Loader(data, oa.video(8, 112, fps=4), batch_size=16)
    for batch in loader: batch["video"], batch["caption"].strings(), batch["length"]

Each frame goes through the same small network, and the mean of the frames that are no repetition is the clip's. The text's model
reads bytes, as that of clip.py.
"""
import argparse

import torch
from clip import Text
from torch import nn

import oneaccess as oa

SIZE, FRAMES, MOST = 48, 4, 200


class Clips(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.frame = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                   nn.Linear(64, width))

    def forward(self, clips, lengths):
        each = self.frame(clips.flatten(0, 1)).unflatten(0, clips.shape[:2])
        there = (torch.arange(clips.shape[1]) < lengths[:, None])[..., None]
        return (each * there).sum(1) / there.sum(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", help="a tar file of KEY.mp4 and KEY.txt, or \"NAME-{000..123}.tar\"")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_tar(options.shards, {"video": "mp4;webm", "caption": "txt"}, ragged={"caption": MOST})
    loader = oa.Loader(data, oa.video(FRAMES, SIZE, fps=4), options.batch_size, drop_last=True)
    clips, texts = Clips(32), Text(32)
    optimizer = torch.optim.Adam([*clips.parameters(), *texts.parameters()], 0.01)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            near = 5 * nn.functional.normalize(clips(batch["video"], batch["length"])) @ nn.functional.normalize(texts(batch["caption"])).T
            own = torch.arange(len(near))
            loss = (nn.functional.cross_entropy(near, own) + nn.functional.cross_entropy(near.T, own)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(near)
            loss_sum += loss.item() * len(near)
        print(f"epoch {epoch + 1}: {samples} samples, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
