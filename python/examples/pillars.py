#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Detection in scans of a lidar: a small PointPillars, which finds the middles and sizes of boxes on a grid seen from above.

What changes where OpenPCDet's or mmdetection3d's data set was, with its infos (.pkl) made before and its augmentation in Python:

    -dataset = KittiDataset(config, class_names, root_path=root)             # kitti_infos_train.pkl, DATA_AUGMENTOR
    -loader = DataLoader(dataset, batch_size=4, num_workers=8, collate_fn=dataset.collate_batch)
    +data = oa.from_kitti(root, "train")
    +loader = oa.Loader(data, scans, batch_size=4)

Points and boxes are flipped, turned and scaled together, once for all jobs that share the data set.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

RANGE, CELL = (0.0, -40.0, -3.0, 70.4, 40.0, 1.0), 1.6     # metres
WIDE, HIGH = round((RANGE[3] - RANGE[0]) / CELL), round((RANGE[4] - RANGE[1]) / CELL)
NUMBERS = 8                                                # of a box: x and y in the cell, z, sizes as logarithms, sine and cosine of yaw


def cells(places):
    """The cell of each x and y, row by row, and where in it that is."""
    x, y = (places[:, 0] - RANGE[0]) / CELL, (places[:, 1] - RANGE[1]) / CELL
    return (y.long().clamp(0, HIGH - 1) * WIDE + x.long().clamp(0, WIDE - 1)), torch.stack([x - x.floor(), y - y.floor()], 1)


class Pillars(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.of_point = nn.Sequential(nn.Linear(4, width), nn.ReLU())
        self.of_grid = nn.Sequential(nn.Conv2d(width, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                                     nn.Conv2d(32, classes + NUMBERS, 1))

    def forward(self, points, begins):
        """[scans, classes + NUMBERS, HIGH * WIDE], of the points of all scans and where each scan begins."""
        scan = torch.repeat_interleave(torch.arange(len(begins) - 1), begins.diff())
        cell, inside = cells(points)
        features = self.of_point(torch.cat([inside, points[:, 2:4]], 1))
        grid = torch.zeros((len(begins) - 1) * HIGH * WIDE, features.shape[1])
        grid = grid.index_reduce(0, scan * HIGH * WIDE + cell, features, "amax")
        return self.of_grid(grid.view(-1, HIGH, WIDE, features.shape[1]).permute(0, 3, 1, 2)).flatten(2)


def loss_of(said, boxes, begins, classes):
    """Of the classes in all cells, and of the boxes in theirs."""
    scan = torch.repeat_interleave(torch.arange(len(begins) - 1), begins.diff())
    cell, inside = cells(boxes)
    kinds = said.shape[1] - NUMBERS
    wanted = torch.zeros(len(said), kinds, HIGH * WIDE)
    wanted[scan, classes, cell] = 1
    found = nn.functional.binary_cross_entropy_with_logits(said[:, :kinds], wanted, pos_weight=torch.tensor(50.0))
    numbers = torch.cat([inside, boxes[:, 2:3], boxes[:, 3:6].log(), boxes[:, 6:7].sin(), boxes[:, 6:7].cos()], 1)
    return found + (nn.functional.smooth_l1_loss(said[scan, kinds:, cell], numbers) if len(boxes) else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="with training/velodyne, calib, label_2 and image_2")
    parser.add_argument("--split", default="train")
    parser.add_argument("--all-around", action="store_true", help="all points, not those alone that the camera sees")
    parser.add_argument("--classes", nargs="+", default=["Car", "Pedestrian", "Cyclist"])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_kitti(options.root, options.split, classes=options.classes, fields=["boxes", "classes"], fov=not options.all_around)
    scans = oa.Compose([t.PointCloud(150000, 4, columns=4, padding="ragged"), t.PointFlip("y"), t.PointRotation(45), t.PointScale((0.95, 1.05)),
                        t.PointRange(RANGE), t.PointShuffle()])
    loader = oa.Loader(data, scans, options.batch_size)
    model = Pillars(len(data.classes))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, count, loss_sum = 0, 0, 0.0
        for batch in loader:
            points, begins = batch["points"].csr()
            boxes, box_begins = batch["boxes"].csr()
            loss = loss_of(model(points, begins), boxes, box_begins, batch["classes"].csr()[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(begins) - 1
            count += len(boxes)
            loss_sum += loss.item() * (len(begins) - 1)
        print(f"epoch {epoch + 1}: {samples} samples, {count} boxes, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
