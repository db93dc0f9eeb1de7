#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classes of meshes: a small PointNet over points that are drawn anew on the faces in each epoch.

What changes where PyTorch Geometric's data set was:

    -data = ModelNet(root, "40", train=True, pre_transform=NormalizeScale(), transform=SamplePoints(1024))
    -loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=8)
    +data = oa.from_folders({"points": "ModelNet40/*/train/*.off"}, label=1)
    +loader = oa.Loader(data, shapes, batch_size=32)
"""
import argparse
import os

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t


class PointNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.of_point = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU())
        self.of_shape = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, points):
        return self.of_shape(self.of_point(points).amax(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="the folder of the classes")
    parser.add_argument("--pattern", default="*/train/*.off", help="of the meshes below it, OFF, OBJ or PLY; its first star is the class")
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_folders({"points": os.path.join(options.root, options.pattern)}, label=1)
    shapes = oa.Compose([oa.point_clouds(options.points, 6, normals=3, surface=True), t.PointUnit(), t.PointRotation(axis="z"), t.PointJitter()])
    loader = oa.Loader(data, shapes, options.batch_size)
    model = PointNet(len(data.classes))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, right, loss_sum = 0, 0, 0.0
        for batch in loader:
            said = model(batch["points"])
            loss = nn.functional.cross_entropy(said, batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(said)
            right += int((said.argmax(1) == batch["label"]).sum())
            loss_sum += loss.item() * len(said)
        print(f"epoch {epoch + 1}: {samples} samples, {right / samples:.1%} right, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
