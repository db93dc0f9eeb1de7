#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Energies of molecules from their atoms: a network that passes messages between atoms that are near each other, over a database of ASE.

What changes where PyTorch Geometric's loader was:

    -loader = torch_geometric.loader.DataLoader(dataset, batch_size=64, shuffle=True)
    -for graph in loader:
    +loader = oa.Loader(oa.from_pyg(dataset), batch_size=64)
    +for batch in loader:
    +    graph = oa.graphs(batch)
         model(graph)

Here the structures are ASE's, and which atoms are near each other is found once for all jobs that train on them. It needs neither ASE nor PyTorch Geometric.
"""
import argparse

import numpy
import torch
from torch import nn

import oneaccess as oa

RADIUS = 3.0        # ångström


def near(sample):
    """The pairs of atoms within the radius, [edges, 2]. Of crystals, ase.neighborlist or matscipy find those of neighbour cells, too."""
    apart = numpy.linalg.norm(sample["pos"][:, None] - sample["pos"][None], axis=-1)
    return {**sample, "edge_index": numpy.argwhere((apart < RADIUS) & (apart > 0))}


class Network(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.atoms = nn.Embedding(100, width)
        self.messages = nn.ModuleList(nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(2))
        self.energy = nn.Linear(width, 1)

    def forward(self, graph):
        source, target = graph["edge_index"]
        apart = (graph["pos"][source] - graph["pos"][target]).norm(dim=1, keepdim=True)
        atoms = self.atoms(graph["z"])
        for message in self.messages:
            atoms = atoms.index_add(0, target, message(torch.cat([atoms[source], atoms[target], apart], 1)))
        return torch.zeros(len(graph["y"])).index_add(0, graph["batch"], self.energy(atoms)[:, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a .db of ASE or an .aselmdb, with energies; or a folder of these")
    parser.add_argument("--edges", type=int, default=1000, help="the most that a structure has")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_ase(options.data, {"z": "numbers", "pos": "positions", "y": "energy"}, dtype="float32", transform=near, random=False,
                       ragged={"edge_index": options.edges})
    loader = oa.Loader(data, batch_size=options.batch_size)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            graph = oa.graphs(batch, "dict")
            loss = nn.functional.l1_loss(model(graph), graph["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(graph["y"])
            loss_sum += loss.item() * len(graph["y"])
        print(f"epoch {epoch + 1}: {samples} samples, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
