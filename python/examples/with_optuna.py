#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Optuna: trials run side by side, and what they read, decode and augment is done once for all of them.

    -    train = DataLoader(ImageFolder(data, transforms), batch_size=64, shuffle=True, num_workers=8)
    +    train = oa.Loader(data, oa.imagenet_train(96), 64, epochs=epochs)
    -study.optimize(objective, n_trials=20)
    +study.optimize(objective, n_trials=20, n_jobs=4)

Each trial has a Loader of its own; they share by themselves, also where the trials are processes or containers.
"""
import argparse

import optuna
import torch
import torchvision
from torch.nn.functional import cross_entropy

import oneaccess as oa


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=4, help="trials at a time")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    options = parser.parse_args()

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-4, 0.3, log=True)
        with oa.Loader(options.data, oa.imagenet_train(options.size), options.batch_size, as_="torch",
                       epochs=options.epochs) as train:
            model = torchvision.models.resnet18(num_classes=len(train.classes))
            optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
            for epoch in range(options.epochs):
                losses = []
                for images, labels in train:
                    optimizer.zero_grad()
                    loss = cross_entropy(model(images), labels)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                trial.report(sum(losses) / len(losses), epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return sum(losses) / len(losses)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    study.optimize(objective, n_trials=options.trials, n_jobs=options.jobs)
    print(f"{len(study.trials)} trials, the best rate is {study.best_params['rate']:.3g}")


if __name__ == "__main__":
    main()
