#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clips of videos, of class folders, as action recognition trains on them.

What changes where a DataLoader was:

    -class Clips(Dataset):                                 # each worker of each job decodes all that it needs for itself
    -    def __getitem__(self, index):
    -        decoder = torchcodec.decoders.VideoDecoder(self.paths[index])
    -        start = random.randrange(max(1, len(decoder) - 8 * 4 + 1))
    -        return augment(decoder.get_frames_in_range(start, start + 8 * 4, 4).data), self.labels[index]
    -loader = DataLoader(Clips("train"), batch_size=8, shuffle=True, num_workers=8)
    -for clips, labels in loader:
    +loader = oa.Loader("train", oa.video(8, 112, step=4), batch_size=8)
    +for clips, labels, lengths in loader:

All frames of a clip are cropped and flipped alike. Evaluation takes the middle of each video.
"""
import argparse
import os

import torch
from torch import nn

import oneaccess as oa

SIZE, FRAMES, STEP = 56, 8, 2


class Network(nn.Module):
    """What changes from frame to frame, and what does not."""

    def __init__(self, classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv3d(3, 16, (3, 5, 5), (1, 2, 2), (1, 2, 2)), nn.BatchNorm3d(16), nn.ReLU(), nn.Conv3d(16, 32, 3, 2, 1),
                                    nn.BatchNorm3d(32), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, classes))

    def forward(self, clips):       # [batch, frames, 3, height, width]
        return self.layers(clips.transpose(1, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder with a folder of videos for each class")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(1)

    train = oa.Loader(options.data, oa.video(FRAMES, SIZE, step=STEP), options.batch_size)
    test = oa.Loader(options.data, oa.video(FRAMES, SIZE, step=STEP, train=False), options.batch_size)
    model = Network(sum(entry.is_dir() for entry in os.scandir(options.data)))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        model.train()
        for clips, labels, _ in train:
            loss = nn.functional.cross_entropy(model(clips), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(labels)
            loss_sum += loss.item() * len(labels)
        model.eval()
        with torch.no_grad():
            right = sum((model(clips).argmax(1) == labels).sum().item() for clips, labels, _ in test)
        print(f"epoch {epoch + 1}: {samples} samples, {right} right, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
