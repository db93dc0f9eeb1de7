#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hard-example mining: most epochs have only the samples that were learned worst, by the loss of each.

What changes where a DataLoader was:

    -class Numbered(Dataset):                              # so that a batch says which samples it has
    -    def __getitem__(self, index): return *self.dataset[index], index
    -for epoch in range(epochs):
    -    loader = DataLoader(Subset(numbered, hardest.tolist()), 32, shuffle=True, num_workers=8)    # processes anew each epoch
    +loader = oa.Loader("train", pipeline, 32)
    +for epoch in range(epochs):
    +    loader.choose(ids=hardest)                         # batch.ids are the samples' numbers
"""
import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import oneaccess as oa
from oneaccess import transforms as t


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder of pictures (CLASS/NAME.jpg)")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--share", type=float, default=0.5, help="of the samples that an epoch of hard ones has")
    parser.add_argument("--all-every", type=int, default=3, help="epochs, so that losses of the easy ones do not grow old")
    options = parser.parse_args()
    torch.manual_seed(1)

    pipeline = t.Compose([t.RandomResizedCrop(options.size, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
    loader = oa.Loader(options.data, pipeline, options.batch_size)
    count = len(loader.dataset)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(32, len(loader.classes)))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    losses = torch.zeros(count)     # of each sample, when it last came

    for epoch in range(options.epochs):
        if epoch % options.all_every == 0:
            hardest = torch.arange(count)
        else:
            hardest = losses.argsort(descending=True)[:int(count * options.share)]
        loader.choose(ids=hardest)
        easiest = set(range(count)) - set(hardest.tolist())
        said = f", of losses from {losses[hardest].min():.4f} on; the others to {losses[list(easiest)].max():.4f}" if easiest else ""
        samples, loss_sum = 0, 0.0
        for batch in loader:
            images, labels = batch
            loss = cross_entropy(model(images), labels, reduction="none")
            losses[batch.ids] = loss.detach()
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
            samples += len(labels)
            loss_sum += loss.sum().item()
        print(f"epoch {epoch + 1}: {samples} samples{said}, loss {loss_sum / samples:.4f}", flush=True)

    worst = losses.argsort(descending=True)[:3]     # to look at: a wrong label?
    for name, loss in zip(loader.names(worst), losses[worst].tolist()):
        print(f"learned worst: {name}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
