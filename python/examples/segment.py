#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Semantic segmentation: pictures and masks of labels, in folders as VOC, ADE20K and Cityscapes have them.

What changes where a DataLoader was:

    -dataset = VOCSegmentation("VOC2012", image_set="train", transforms=v2.Compose([                     # v2 moves a tv_tensors.Mask
    -    v2.RandomResizedCrop(96, scale=(0.5, 1)), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]))
    -loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=8, drop_last=True)
    -for images, masks in loader:
    +data = oa.from_folders({"image": "VOC2012/JPEGImages", "mask": "VOC2012/SegmentationClass"}, masks={"mask": oa.Mask(fill=255)},
    +                       names="VOC2012/ImageSets/Segmentation/train.txt")
    +loader = oa.Loader(data, t.Compose([t.RandomResizedCrop(96, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()]), 16, drop_last=True)
    +for batch in loader: batch["image"], batch["mask"]

accessd's workers decode pictures and masks; a mask goes where the crop and the flip put its picture, by nearest. 255 is no label, as in VOC.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t

SIZE, NO_LABEL = 96, 255


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", help="a folder of pictures, or a pattern, as \"leftImg8bit/train/*/*_leftImg8bit.png\"")
    parser.add_argument("masks", help="the same of masks, PNG files of the same names, or a pattern with as many stars")
    parser.add_argument("--names", help="a file with one name a line, as VOC's ImageSets; else all of images")
    parser.add_argument("--classes", type=int, default=21)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_folders({"image": options.images, "mask": options.masks}, masks={"mask": oa.Mask(fill=NO_LABEL)}, names=options.names)
    augmented = t.Compose([t.RandomResizedCrop(SIZE, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
    loader = oa.Loader(data, augmented, options.batch_size, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, options.classes, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, right, labelled, loss_sum = 0, 0, 0, 0.0
        for batch in loader:
            masks = batch["mask"].long()
            scores = model(batch["image"])
            loss = nn.functional.cross_entropy(scores, masks, ignore_index=NO_LABEL)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            there = masks != NO_LABEL
            right += int((scores.argmax(1) == masks)[there].sum())
            labelled += int(there.sum())
            samples += len(masks)
            loss_sum += loss.item() * len(masks)
        print(f"epoch {epoch + 1}: {samples} samples, {right / labelled:.1%} of the pixels are right, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
