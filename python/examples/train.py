#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a ResNet-18 on a folder of pictures (CLASS/NAME.jpg), with OneAccess or with PyTorch's own loader.

    train.py DATA --loader oneaccess --checkpoint model.pt      # start it again: it goes on where it was
    train.py DATA --loader torch                                # torchvision's transforms on Pillow's pictures
    train.py DATA --loader torch-io                             # on tensors of torchvision's own decoder

Start several at once, with other learning rates or seeds: with OneAccess they share the decoding. A line an
epoch says what it cost; --json FILE has the same for programs. Needs torch and torchvision.
"""
import argparse
import json
import os
import resource
import time

import torch
import torchvision
from torch.nn.functional import cross_entropy

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def loaders_of_oneaccess(options, state):
    """Nine tenths to train on, one to validate with; the node decodes each picture once for all jobs."""
    import oneaccess as oa
    train = oa.Loader(options.data, oa.imagenet_train(options.size), options.batch_size, drop_last=True,
                      split=(0, 0.9, options.split_seed), state=state, device=options.device)
    valid = oa.Loader(options.data, oa.imagenet_eval(options.size), options.batch_size, shuffle=False,
                      split=(0.9, 1, options.split_seed), device=options.device)
    return train, valid, len(train.classes)


def loaders_of_torch(options, state):
    """The same of PyTorch and torchvision. Its loader has no state: a run goes on at an epoch's beginning."""
    from torchvision import transforms as t
    from torchvision.datasets import ImageFolder
    train = ImageFolder(options.data, t.Compose([t.RandomResizedCrop(options.size), t.RandomHorizontalFlip(),
                                                 t.ToTensor(), t.Normalize(MEAN, STD)]))
    valid = ImageFolder(options.data, t.Compose([t.Resize(options.size * 256 // 224), t.CenterCrop(options.size),
                                                 t.ToTensor(), t.Normalize(MEAN, STD)]))
    return split_of_torch(options, train, valid)


def split_of_torch(options, train, valid):
    from torch.utils.data import DataLoader, Subset
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(options.split_seed)).tolist()
    cut = len(order) * 9 // 10
    common = {"batch_size": options.batch_size, "num_workers": options.workers,
              "persistent_workers": options.workers > 0, "pin_memory": options.device.startswith("cuda")}
    return (DataLoader(Subset(train, order[:cut]), shuffle=True, drop_last=True, **common),
            DataLoader(Subset(valid, order[cut:]), **common), len(train.classes))


class Normalized:
    """Batches of bytes, a quarter of what floats are, which become floats where the model computes."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device
        self.mean, self.std = (torch.tensor(three, device=device).view(3, 1, 1) * 255 for three in (MEAN, STD))

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for images, labels in self.loader:
            yield images.to(self.device, non_blocking=True).float().sub_(self.mean).div_(self.std), labels


def decoded(path):
    from torchvision.io import ImageReadMode, decode_image, read_file
    return decode_image(read_file(path), ImageReadMode.RGB)


def loaders_of_torch_io(options, state):
    """PyTorch's loader at its fastest: libjpeg-turbo decodes into tensors, and they travel as bytes."""
    from torchvision.datasets import ImageFolder
    try:
        from torchvision.transforms import v2 as t
    except ImportError:  # before torchvision 0.15
        from torchvision import transforms as t
    train = ImageFolder(options.data, t.Compose([t.RandomResizedCrop(options.size, antialias=True), t.RandomHorizontalFlip()]),
                        loader=decoded)
    valid = ImageFolder(options.data, t.Compose([t.Resize(options.size * 256 // 224, antialias=True), t.CenterCrop(options.size)]),
                        loader=decoded)
    train, valid, classes = split_of_torch(options, train, valid)
    return Normalized(train, options.device), Normalized(valid, options.device), classes


LOADERS = {"oneaccess": loaders_of_oneaccess, "torch": loaders_of_torch, "torch-io": loaders_of_torch_io}


def save(options, model, optimizer, train, place):
    """Whole, or not at all."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "place": place,
             "loader": train.state_dict() if hasattr(train, "state_dict") else None}
    torch.save(state, options.checkpoint + ".new")
    os.replace(options.checkpoint + ".new", options.checkpoint)


def train_epoch(options, model, optimizer, train, place):
    """Ends early at --steps. Returns the mean loss of the batches."""
    model.train()
    losses = []
    for images, labels in train:
        loss = cross_entropy(model(images.to(options.device)), labels.to(options.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        place["step"] += 1
        place["samples"] += len(labels)
        if options.checkpoint and place["step"] % options.save_every == 0:
            save(options, model, optimizer, train, place)
        if options.steps and place["step"] >= options.steps:
            break
    return sum(losses) / max(1, len(losses))


@torch.no_grad()
def accuracy(options, model, valid):
    model.eval()
    right = total = 0
    for images, labels in valid:
        right += int((model(images.to(options.device)).argmax(1) == labels.to(options.device)).sum())
        total += len(labels)
    return right / max(1, total)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--loader", choices=LOADERS, default="oneaccess")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, help="end after so many, whatever the epoch")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96, help="pixels of a side")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the model's weights")
    parser.add_argument("--split-seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="of PyTorch's loader")
    parser.add_argument("--device", default="cpu", help="that computes: cpu, cuda")
    parser.add_argument("--threads", type=int, default=1, help="that compute")
    parser.add_argument("--checkpoint", help="file: saved to, and gone on from if it is there")
    parser.add_argument("--save-every", type=int, default=20, help="steps")
    parser.add_argument("--json", help="file for the result")
    return parser.parse_args()


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    saved = None
    if options.checkpoint and os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint, map_location=options.device)
    train, valid, classes = LOADERS[options.loader](options, saved and saved["loader"])
    model = torchvision.models.resnet18(num_classes=classes).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9, weight_decay=1e-4)
    place = {"epoch": 0, "step": 0, "samples": 0}
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        place = saved["place"]
    begin, result = time.monotonic(), {"epochs": []}
    while place["epoch"] < options.epochs and not (options.steps and place["step"] >= options.steps):
        loss = train_epoch(options, model, optimizer, train, place)
        place["epoch"] += 1
        right = accuracy(options, model, valid)
        result["epochs"].append({"loss": loss, "accuracy": right, "seconds": time.monotonic() - begin})
        print(f"epoch {place['epoch']}: loss {loss:.3f}, {right:.1%} right, {place['samples']:,} samples, "
              f"{time.monotonic() - begin:.1f} s", flush=True)
    children, self = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    result.update(place, cpu_seconds=sum(u.ru_utime + u.ru_stime for u in (children, self)))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
