#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accelerate: a Loader in the place of the DataLoader, with gradients over three batches, and a checkpoint.

    -train = DataLoader(ImageFolder(data, transforms), batch_size=64, shuffle=True, num_workers=8)
    +train = oa.Loader(data, oa.imagenet_train(224), 64, device=accelerator.device)
     model, optimizer, train = accelerator.prepare(model, optimizer, train)
    +accelerator.register_for_checkpointing(train)  # in the place of skip_first_batches(), and exact

Ranks are found as by Accelerate, and each has its own samples; epochs end in a step, also where the last batches are fewer.
"""
import argparse
import os

import torchvision
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.optim import SGD

import oneaccess as oa


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--checkpoint", help="folder: saved to after each epoch, and gone on from if it is there")
    options = parser.parse_args()

    accelerator = Accelerator(cpu=options.cpu, gradient_accumulation_steps=3)
    train = oa.Loader(options.data, oa.imagenet_train(options.size), options.batch_size, device=accelerator.device)
    model = torchvision.models.resnet18(num_classes=len(train.classes))
    model, optimizer, train = accelerator.prepare(model, SGD(model.parameters(), 0.05, momentum=0.9), train)
    accelerator.register_for_checkpointing(train)
    if options.checkpoint and os.path.exists(options.checkpoint):
        accelerator.load_state(options.checkpoint)

    for _ in range(options.epochs):
        samples = steps = 0
        for images, labels in train:
            with accelerator.accumulate(model):
                accelerator.backward(cross_entropy(model(images), labels))
                optimizer.step()
                optimizer.zero_grad()
            samples += len(accelerator.gather_for_metrics(labels))
            steps += accelerator.sync_gradients
        accelerator.print(f"{samples} samples, {steps} steps")
        if options.checkpoint:
            accelerator.save_state(options.checkpoint)


if __name__ == "__main__":
    main()
