#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same ResNet-18 in PyTorch Lightning: a Loader is given to the Trainer in the place of a DataLoader.
Its bar knows the number of batches, and a checkpoint has the Loader's place in it, also in mid-epoch:
started again, the run goes on with the batch that was next.

    lit.py DATA --checkpoint model.ckpt
"""
import argparse
import os

import lightning
import torch
import torchvision
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.nn.functional import cross_entropy

import oneaccess as oa


class Net(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.model = torchvision.models.resnet18(num_classes=classes)
        self.samples = 0

    def training_step(self, batch, _):
        images, labels = batch
        self.samples += len(labels)
        return cross_entropy(self.model(images), labels)

    def validation_step(self, batch, _):
        images, labels = batch
        right = (self.model(images).argmax(1) == labels).float().mean()
        self.log("right", right, batch_size=len(labels), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--accelerator", default="auto", help="cpu, gpu, ...")
    parser.add_argument("--checkpoint", help="file: saved to, and gone on from if it is there")
    parser.add_argument("--save-every", type=int, default=20, help="steps")
    options = parser.parse_args()
    train = oa.Loader(options.data, oa.imagenet_train(options.size), options.batch_size, split=(0, 0.9), drop_last=True)
    valid = oa.Loader(options.data, oa.imagenet_eval(options.size), options.batch_size, split=(0.9, 1), shuffle=False)
    net = Net(len(train.classes))
    callbacks, saved = [], None
    if options.checkpoint:
        folder, name = os.path.split(os.path.abspath(options.checkpoint))
        callbacks.append(ModelCheckpoint(folder, os.path.splitext(name)[0], every_n_train_steps=options.save_every,
                                         enable_version_counter=False))
        saved = options.checkpoint if os.path.exists(options.checkpoint) else None
    trainer = lightning.Trainer(max_epochs=options.epochs, accelerator=options.accelerator, logger=False,
                                callbacks=callbacks, enable_checkpointing=bool(callbacks))
    trainer.fit(net, train, valid, ckpt_path=saved)
    print(f"{net.samples} samples, {trainer.global_step} steps with those before")


if __name__ == "__main__":
    main()
