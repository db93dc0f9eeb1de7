#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole-slide images: windows where tissue is learn their slide's class; then each slide gets a map of what was said of its windows.

What changes where a data set of windows was, here one that reads what CLAM's patches have:

    -class Windows(Dataset):
    -    def __getitem__(self, index):
    -        name, place = self.rows[index]
    -        slide = self.slides.setdefault(name, openslide.OpenSlide(f"slides/{name}.svs"))     # in each worker of each job
    -        image = slide.read_region(place, self.level, (256, 256)).convert("RGB")
    -        return self.transform(image), self.labels[name]
    -loader = DataLoader(Windows(...), batch_size=64, shuffle=True, num_workers=8)
    +data = oa.from_slides("slides/*.svs", at="patches", labels="labels.csv")
    +loader = oa.Loader(data, pipeline, batch_size=64)

Without patches (at=), windows lie on a grid, where tissue is found. Jobs that share slides read and augment each window once.
"""
import argparse
import pathlib

import numpy as np
import torch
from PIL import Image
from torch import nn

import oneaccess as oa
from oneaccess import transforms as t


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slides", help="a folder, or a pattern, as \"slides/*.svs\"")
    parser.add_argument("--labels", default="folders", help="a table with columns slide and label; else slides lie in folders of classes")
    parser.add_argument("--at", help="CLAM's folder patches, or a table with columns slide, x and y")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--mpp", type=float, help="micrometres of a pixel; else the finest level, or what the patches say")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--maps", type=pathlib.Path, default=pathlib.Path("maps"), help="the folder that gets a map of each slide")
    options = parser.parse_args()
    torch.manual_seed(1)

    data = oa.from_slides(options.slides, options.size, mpp=options.mpp, at=options.at, labels=options.labels)
    classes = data.classes or sorted({*map(str, data.dataset.labels)})
    augmented = t.Compose([t.CenterCrop(options.size), t.RandomHorizontalFlip(), t.RandomVerticalFlip(), t.ColorJitter(0.2, 0.2, 0.2, 0.05), t.ToTensor()])
    loader = oa.Loader(data, augmented, options.batch_size, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 16, 7, 4), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, len(classes)))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["label"])
            loss_sum += loss.item() * len(batch["label"])
        print(f"epoch {epoch + 1}: {samples} samples, loss {loss_sum / samples:.4f}", flush=True)

    # What is said of each window goes back to its place: a pixel of the map for each of the grid's.
    windows, said = data.windows, np.zeros(len(data))
    with torch.no_grad():
        for batch in oa.Loader(data, t.Compose([t.CenterCrop(options.size), t.ToTensor()]), options.batch_size, epochs=1):
            said[batch.ids] = model(batch["image"]).softmax(1)[:, -1]
    options.maps.mkdir(exist_ok=True)
    for number, path in enumerate(data.files):
        of = windows[:, 0] == number
        places = windows[of, 1:] // data.sides[number]
        drawn = np.zeros(places.max(0)[::-1] + 1, np.uint8)
        drawn[places[:, 1], places[:, 0]] = np.round(said[of] * 255)
        Image.fromarray(drawn).save(options.maps / f"{pathlib.Path(path).stem}.png")
        print(f"{path}: {of.sum()} windows, {said[of].mean():.1%} {classes[-1]}", flush=True)


if __name__ == "__main__":
    main()
