#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of timm with the transforms that it is trained and evaluated with.

    -config = timm.data.resolve_model_data_config(model)
    -train = timm.data.create_loader(timm.data.create_dataset("", data), config["input_size"], 64, is_training=True)
    +train = oa.Loader(data, oa.pipeline_for("timm/resnet18.a1_in1k", train=True), 64, drop_last=True)

Transforms of your own, with auto_augment="rand-m9-mstd0.5" and so on, go the same way:
oa.from_torchvision(timm.data.create_transform(...)).
"""
import argparse

import timm
import torch
from torch.nn.functional import cross_entropy

import oneaccess as oa


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--model", default="resnet18.a1_in1k", help="of timm.list_pretrained()")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    options = parser.parse_args()

    augmented = oa.from_torchvision(timm.data.create_transform(
        options.size, is_training=True, auto_augment="rand-m9-mstd0.5", re_prob=0.25, re_mode="pixel"))
    plain = oa.pipeline_for(f"timm/{options.model}", size=options.size)
    train = oa.Loader(options.data, augmented, options.batch_size, drop_last=True)
    test = oa.Loader(options.data, plain, options.batch_size, shuffle=False)
    model = timm.create_model(options.model, num_classes=len(train.classes))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    for epoch in range(options.epochs):
        samples = right = 0
        model.train()
        for images, labels in train:
            optimizer.zero_grad()
            cross_entropy(model(images), labels).backward()
            optimizer.step()
            samples += len(labels)
        model.eval()
        with torch.inference_mode():
            for images, labels in test:
                right += int((model(images).argmax(1) == labels).sum())
        print(f"epoch {epoch + 1}: {samples} samples, {right / len(test.dataset):.1%} right")


if __name__ == "__main__":
    main()
