#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types of cells from their genes: a classifier over an .h5ad that is larger than memory.

What changes where AnnData's loader was:

    -adata = anndata.read_h5ad("atlas.h5ad", backed="r")
    -loader = AnnLoader(adata, batch_size=256, shuffle=True)
    +data = oa.from_h5ad("atlas.h5ad", ["cell_type"], target_sum=1e4, log1p=True)
    +loader = oa.Loader(data, batch_size=256)
     for batch in loader: batch["X"], batch["cell_type"]

Cells are read in runs of neighbours, and normalised, once for all jobs that train on the file.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="an .h5ad, a store of Zarr, or a folder of these")
    parser.add_argument("--column", default="cell_type", help="of obs, with categories")
    parser.add_argument("--layer", help="with counts, where X has none; raw: of raw.X")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=256)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_h5ad(options.data, [options.column], layer=options.layer, target_sum=1e4, log1p=True)
    names = data.classes[options.column]
    print(f"{len(data)} cells, {len(data.genes)} genes, {len(names)} types", flush=True)
    loader = oa.Loader(data, batch_size=options.batch_size)
    model = nn.Sequential(nn.Linear(len(data.genes), 64), nn.ReLU(), nn.Linear(64, len(names)))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, loss_sum, right = 0, 0.0, 0
        for batch in loader:
            said = model(batch["X"])
            loss = nn.functional.cross_entropy(said, batch[options.column])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(said)
            loss_sum += loss.item() * len(said)
            right += int((said.argmax(1) == batch[options.column]).sum())
        print(f"epoch {epoch + 1}: {samples} samples, {right / samples:.1%} right, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
