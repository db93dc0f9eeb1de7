# SPDX-License-Identifier: Apache-2.0
"""In the manner of Ignite's image classification: engines, metrics and handlers, data by its distributed helpers."""
import argparse
import os

import ignite.distributed as idist
import torch
import torchvision
from ignite.contrib.handlers import ProgressBar
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver
from ignite.metrics import Accuracy, Loss
from ignite.utils import manual_seed
from torchvision import transforms
from torchvision.datasets import ImageFolder


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
    manual_seed(args.seed)

    end = [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    train_dataset = ImageFolder(os.path.join(args.data, "train"), transforms.Compose(
        [transforms.RandomResizedCrop(args.size), transforms.RandomHorizontalFlip(), *end]))
    test_dataset = ImageFolder(os.path.join(args.data, "val"), transforms.Compose(
        [transforms.Resize(args.size * 256 // 224), transforms.CenterCrop(args.size), *end]))
    train_loader = idist.auto_dataloader(train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    test_loader = idist.auto_dataloader(test_dataset, batch_size=args.batch_size, num_workers=args.workers)

    model = idist.auto_model(torchvision.models.get_model(args.arch, num_classes=len(train_dataset.classes)))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4))
    criterion = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, criterion)
    evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(criterion)})
    ProgressBar().attach(trainer)

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(test_loader)
        print(f"epoch {engine.state.epoch} of {engine.state.epoch_length} steps: {evaluator.state.metrics}")

    saver = Checkpoint({"trainer": trainer, "model": model, "optimizer": optimizer},
                       DiskSaver("ignite", require_empty=False), n_saved=1)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
    trainer.run(train_loader, max_epochs=args.epochs)
    print(f"accuracy {100 * evaluator.state.metrics['accuracy']:.2f}")


if __name__ == "__main__":
    main()
