#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distillation: a teacher's logits are computed once and kept beside the data set; students learn from them, without the teacher.

What changes where a DataLoader was:

    -with torch.no_grad():
    -    target = teacher(images)                          # in each step, of each student
    +oa.compute("logits", "train", logits_of_teacher, pipeline, fields={"logits": ((10,), "float16")})    # once; killed, it goes on
    +loader = oa.Loader(oa.beside("train", "logits"), pipeline, 32)
    +target = batch["logits"]
"""
import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax

import oneaccess as oa
from oneaccess import transforms as t


def network(classes, width):
    return nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(2 * width, classes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder of pictures (CLASS/NAME.jpg)")
    parser.add_argument("logits", help="the folder of the teacher's logits, which is made")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=2)
    options = parser.parse_args()
    torch.manual_seed(1)

    evaluation = t.Compose([t.Resize((options.size, options.size)), t.ToTensor()])
    with oa.Loader(options.data, evaluation, options.batch_size) as loader:
        classes = len(loader.classes)
        teacher = network(classes, 32)
        optimizer = torch.optim.Adam(teacher.parameters(), 0.003)
        for _ in range(options.epochs):
            for images, labels in loader:
                loss = cross_entropy(teacher(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    calls = []

    def logits_of_teacher(batch):
        calls.append(len(batch.ids))
        return {"logits": teacher(batch[0])}

    oa.compute(options.logits, options.data, logits_of_teacher, evaluation, fields={"logits": ((classes,), "float16")}, batch_size=options.batch_size)
    print(f"the teacher has seen {sum(calls)} samples", flush=True)

    student = network(classes, 8)
    optimizer = torch.optim.Adam(student.parameters(), 0.003)
    training = t.Compose([t.RandomResizedCrop(options.size, scale=(0.5, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
    loader = oa.Loader(oa.beside(options.data, options.logits), training, options.batch_size)
    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            guesses, target = student(batch["image"]) / options.temperature, batch["logits"].float() / options.temperature
            loss = kl_div(log_softmax(guesses, 1), softmax(target, 1), reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["label"])
            loss_sum += loss.item() * len(batch["label"])
        print(f"epoch {epoch + 1}: {samples} samples, divergence {loss_sum / samples:.5f}", flush=True)


if __name__ == "__main__":
    main()
