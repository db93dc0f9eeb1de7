# SPDX-License-Identifier: Apache-2.0
"""In the manner of Lightning's ImageNet example: a LightningModule with its loaders, torchmetrics, checkpoints, a progress bar."""
import argparse
import os

import torch
import torch.nn.functional as F
import torchvision
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar
from torch.utils.data import DataLoader
from torchmetrics import Accuracy
from torchvision import transforms
from torchvision.datasets import ImageFolder


class Classifier(LightningModule):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.train_dataset = self.val_dataset = None
        classes = len(os.listdir(os.path.join(args.data, "train")))
        self.model = torchvision.models.get_model(args.arch, num_classes=classes)
        self.train_accuracy = Accuracy(task="multiclass", num_classes=classes)
        self.val_accuracy = Accuracy(task="multiclass", num_classes=classes)

    def setup(self, stage):
        size, end = self.args.size, [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
        self.train_dataset = ImageFolder(os.path.join(self.args.data, "train"), transforms.Compose(
            [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), *end]))
        self.val_dataset = ImageFolder(os.path.join(self.args.data, "val"), transforms.Compose(
            [transforms.Resize(size * 256 // 224), transforms.CenterCrop(size), *end]))

    def train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=self.args.batch_size, shuffle=True, num_workers=self.args.workers)

    def val_dataloader(self):
        return DataLoader(self.val_dataset, batch_size=self.args.batch_size, num_workers=self.args.workers)

    def training_step(self, batch, batch_idx):
        images, target = batch
        output = self.model(images)
        loss = F.cross_entropy(output, target)
        self.train_accuracy(output, target)
        self.log("train_loss", loss)
        self.log("train_acc1", self.train_accuracy, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        images, target = batch
        output = self.model(images)
        self.val_accuracy(output, target)
        self.log("val_loss", F.cross_entropy(output, target))
        self.log("val_acc1", self.val_accuracy, prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.args.lr, momentum=0.9, weight_decay=1e-4)
        return [optimizer], [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.1 ** (epoch // 30))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=0.02, type=float)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    seed_everything(args.seed)
    trainer = Trainer(max_epochs=args.epochs, accelerator="cpu", devices=1, logger=False, benchmark=True, default_root_dir=".",
                      callbacks=[TQDMProgressBar(refresh_rate=10), ModelCheckpoint(monitor="val_acc1", mode="max")])
    trainer.fit(Classifier(args))
    print(f"\naccuracy {100 * float(trainer.callback_metrics['val_acc1']):.2f}")


if __name__ == "__main__":
    main()
