#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prunes as InfoBatch does (Qin et al., 2024): of the samples whose loss is below the mean a share is left out of the next epoch, drawn
anew each time, and the gradients of those that stay are made larger by as much, so that the mean gradient remains. The last epochs
have all samples.

What changes where a DataLoader was:

    -sampler = IBSampler(dataset)                          # with a data set that returns numbers and weights, too
    +loader.choose(ids=kept)                               # behind each epoch

With --checkpoint it goes on where it was, also in the middle of an epoch: the loader's state has the samples that were chosen.
"""
import argparse
import os

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import oneaccess as oa
from oneaccess import transforms as t


def prune(losses, share):
    """The samples that stay, by number; how much each counts; words for people."""
    below = (losses < losses.mean()).nonzero().squeeze(1)
    left_out = below[torch.rand(len(below)) < share]
    scale = torch.ones(len(losses))
    scale[below] = 1 / (1 - share)
    keep = torch.ones(len(losses), dtype=torch.bool)
    keep[left_out] = False
    words = f"{len(losses) - len(below)} above the mean and {len(below) - len(left_out)} of {len(below)} below it"
    return keep.nonzero().squeeze(1), scale, words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder of pictures (CLASS/NAME.jpg)")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--whole", type=int, default=1, help="last epochs that have all samples")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--share", type=float, default=0.5, help="of the samples below the mean that is left out")
    parser.add_argument("--checkpoint", help="a file")
    parser.add_argument("--steps", type=int, help="so many steps, then the checkpoint and the end, within an epoch")
    options = parser.parse_args()
    torch.manual_seed(1)

    pipeline = t.Compose([t.RandomResizedCrop(options.size, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
    loader = oa.Loader(options.data, pipeline, options.batch_size)
    count = len(loader.dataset)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(32, len(loader.classes)))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    losses, scale = torch.zeros(count), torch.ones(count)   # of each sample
    epoch = samples = steps = 0
    words = "all"

    def save():
        if options.checkpoint:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses, "scale": scale,
                        "place": (epoch, samples, words), "random": torch.get_rng_state(), "loader": loader.state_dict()}, options.checkpoint)

    if options.checkpoint and os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        losses, scale, (epoch, samples, words) = saved["losses"], saved["scale"], saved["place"]
        torch.set_rng_state(saved["random"])
        loader.load_state_dict(saved["loader"])

    while epoch < options.epochs:
        for batch in loader:
            images, labels = batch
            loss = cross_entropy(model(images), labels, reduction="none")
            losses[batch.ids] = loss.detach()
            optimizer.zero_grad()
            (loss * scale[batch.ids]).mean().backward()
            optimizer.step()
            samples += len(labels)
            steps += 1
            if options.steps and steps >= options.steps and not batch.is_last:
                save()
                return
        print(f"epoch {epoch + 1}: {samples} samples, {words}; mean loss of each sample's last one {losses.mean():.4f}", flush=True)
        epoch, samples = epoch + 1, 0
        if epoch < options.epochs - options.whole:
            kept, scale, words = prune(losses, options.share)
            loader.choose(ids=kept)
        else:
            scale, words = torch.ones(count), "all"
            loader.choose()
        save()


if __name__ == "__main__":
    main()
