#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures and captions of Hugging Face's datasets.

    -dataset.set_transform(augment)
    -train = DataLoader(dataset, 64, shuffle=True, num_workers=8, collate_fn=collate)
    +train = oa.Loader(oa.from_hf(dataset, ["image"]), oa.imagenet_train(224), 64, drop_last=True)
    +captions = dataset.select_columns("caption")                  # of a batch: captions[list(batch.ids)]["caption"]

batch.ids are rows of the data set, by which the job finds texts of any length where datasets has them. The same of Parquet files without
datasets: oa.Loader("train.parquet", ...).
"""
import argparse
import os

import datasets
import torch
from torch.nn.functional import cross_entropy, normalize

import oneaccess as oa


class Towers(torch.nn.Module):
    """A picture's and a text's vector, as small as can be."""

    def __init__(self):
        super().__init__()
        self.picture = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                           torch.nn.Flatten(), torch.nn.Linear(16, 32))
        self.text = torch.nn.EmbeddingBag(257, 32, padding_idx=256)

    def forward(self, pictures, captions):
        texts = [torch.tensor(list(caption.encode())) for caption in captions]
        texts = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=256)
        return normalize(self.picture(pictures)) @ normalize(self.text(texts)).T * 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    options = parser.parse_args()

    files = sorted(os.path.join(top, name) for top, _, names in os.walk(options.data) for name in names)
    captions = [f"a photograph of {os.path.basename(os.path.dirname(file))}" for file in files]
    dataset = datasets.Dataset.from_dict({"image": files, "caption": captions}).cast_column("image", datasets.Image())

    train = oa.Loader(oa.from_hf(dataset, ["image"]), oa.imagenet_train(options.size), options.batch_size, drop_last=True)
    captions = dataset.select_columns("caption")
    model = Towers()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    for epoch in range(options.epochs):
        samples, total = 0, 0.0
        for batch in train:
            scores = model(batch["image"], captions[list(batch.ids)]["caption"])
            loss = cross_entropy(scores, torch.arange(len(scores)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(scores)
            total += loss.item() * len(scores)
        print(f"epoch {epoch + 1}: {samples} samples, loss {total / samples:.3f}")


if __name__ == "__main__":
    main()
