#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with two processes on one machine, by gloo. The Loader finds the ranks by itself:
each gets its part of every step, and both the same number of steps.

    ddp.py DATA [--epochs N] [--size PIXELS]
"""
import argparse
import os
import socket

import torch
import torch.distributed
import torch.multiprocessing
import torchvision
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import oneaccess as oa

RANKS = 2


def work(rank, port, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    train = oa.Loader(options.data, oa.imagenet_train(options.size), options.batch_size, drop_last=True)
    model = DistributedDataParallel(torchvision.models.resnet18(num_classes=len(train.classes)))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for epoch in range(options.epochs):
        samples = 0
        for images, labels in train:
            optimizer.zero_grad()
            cross_entropy(model(images), labels).backward()
            optimizer.step()
            samples += len(labels)
        total = torch.tensor([samples, len(train)])
        torch.distributed.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch + 1}: {int(total[0])} samples in {len(train)} steps of {RANKS} ranks", flush=True)
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--size", type=int, default=96)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (port, options), nprocs=RANKS)


if __name__ == "__main__":
    main()
