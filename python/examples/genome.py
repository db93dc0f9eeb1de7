#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peaks of a genome against background: a small convolutional network over one-hot sequences, as DeepSEA and Basset.

What changes where a Dataset read the genome by pyfaidx:

    -class Peaks(torch.utils.data.Dataset): ...             # fetch, one-hot, shift, reverse complement
    -loader = DataLoader(Peaks("hg38.fa", "peaks.bed", "background.bed"), batch_size=64, shuffle=True, num_workers=8)
    +data = oa.from_fasta("hg38.fa", {"background": "background.bed", "peak": "peaks.bed"}, 1000, jitter=50, reverse_complement=True)
    +loader = oa.Loader(data, batch_size=64)
     for batch in loader: batch["sequence"], batch["label"]

Each epoch moves the windows and turns half of them anew. Whole chromosomes are held out.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa


def network(classes):
    return nn.Sequential(nn.Conv1d(4, 32, 11, padding=5), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(32, 32, 7, padding=3), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
                         nn.Flatten(), nn.Linear(32, classes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("genome", help="a FASTA file, plain or by bgzip")
    parser.add_argument("peaks", help="a BED file")
    parser.add_argument("background", help="another one")
    parser.add_argument("--held-out", nargs="+", default=["chr8", "chr9"], help="chromosomes to validate on")
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--jitter", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)

    intervals = {"background": options.background, "peak": options.peaks}
    test = oa.from_fasta(options.genome, intervals, options.length, chromosomes=options.held_out)
    others = [name for name in test.chromosomes if name not in options.held_out]
    train = oa.from_fasta(options.genome, intervals, options.length, chromosomes=others, jitter=options.jitter, reverse_complement=True)
    print(f"{len(train)} windows to train on, {len(test)} to validate on, {len(train.classes['label'])} classes", flush=True)
    loader, held_out = oa.Loader(train, batch_size=options.batch_size), oa.Loader(test, batch_size=options.batch_size)
    model = network(len(train.classes["label"]))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["sequence"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["label"])
            loss_sum += loss.item() * len(batch["label"])
        with torch.no_grad():
            right = sum(int((model(batch["sequence"]).argmax(1) == batch["label"]).sum()) for batch in held_out)
        print(f"epoch {epoch + 1}: {samples} samples, {right / len(test):.1%} of those held out right, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
