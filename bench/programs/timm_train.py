# SPDX-License-Identifier: Apache-2.0
"""In the manner of timm's train.py: its data sets, loaders, augmentation, mixup (which writes to the batch), optimizer,
schedule by updates, gradient accumulation and average of the weights."""
import argparse

import timm
import torch
from timm.data import Mixup, create_dataset, create_loader, resolve_data_config
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, ModelEmaV3, accuracy, random_seed


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, scheduler, mixup_fn, ema, args):
    model.train()
    losses = AverageMeter()
    updates = (len(loader) + args.grad_accum_steps - 1) // args.grad_accum_steps
    last = len(loader) - 1
    optimizer.zero_grad()
    for index, (input, target) in enumerate(loader):
        if args.mixup_off_epoch and epoch >= args.mixup_off_epoch:
            mixup_fn.mixup_enabled = False
        input, target = mixup_fn(input, target)
        loss = loss_fn(model(input), target) / args.grad_accum_steps
        loss.backward()
        losses.update(loss.item() * args.grad_accum_steps, input.size(0))
        if (index + 1) % args.grad_accum_steps and index != last:
            continue
        optimizer.step()
        optimizer.zero_grad()
        ema.update(model)
        scheduler.step_update(num_updates=epoch * updates + index // args.grad_accum_steps, metric=losses.avg)
    print(f"epoch {epoch}: loss {losses.avg:.4f}")


def validate(model, loader):
    model.eval()
    top1 = AverageMeter()
    with torch.inference_mode():
        for input, target in loader:
            acc1, = accuracy(model(input), target, topk=(1,))
            top1.update(acc1.item(), input.size(0))
    return top1.avg


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=0.02, type=float)
    parser.add_argument("--grad-accum-steps", default=2, type=int)
    parser.add_argument("--mixup-off-epoch", default=1, type=int)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    random_seed(args.seed, 0)

    dataset_train = create_dataset("", root=args.data, split="train", is_training=True)
    dataset_eval = create_dataset("", root=args.data, split="val")
    classes = len(dataset_train.reader.class_to_idx)
    model = timm.create_model(args.model, num_classes=classes)
    config = resolve_data_config({"img_size": args.size}, model=model)
    loader_train = create_loader(
        dataset_train, input_size=config["input_size"], batch_size=args.batch_size, is_training=True, use_prefetcher=False,
        auto_augment="rand-m9-mstd0.5", re_prob=0.25, re_mode="pixel", mean=config["mean"], std=config["std"],
        interpolation="random", num_workers=args.workers, persistent_workers=False)
    loader_eval = create_loader(
        dataset_eval, input_size=config["input_size"], batch_size=args.batch_size, is_training=False, use_prefetcher=False,
        interpolation=config["interpolation"], mean=config["mean"], std=config["std"], crop_pct=config["crop_pct"],
        num_workers=args.workers, persistent_workers=False)

    mixup_fn = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=classes)
    optimizer = create_optimizer_v2(model, opt="sgd", lr=args.lr, momentum=0.9)
    updates = (len(loader_train) + args.grad_accum_steps - 1) // args.grad_accum_steps
    scheduler, epochs = create_scheduler_v2(optimizer, sched="cosine", num_epochs=args.epochs, warmup_epochs=0,
                                            step_on_epochs=False, updates_per_epoch=updates)
    ema = ModelEmaV3(model, decay=0.9)
    best = 0.0
    for epoch in range(epochs):
        if hasattr(dataset_train, "set_epoch"):
            dataset_train.set_epoch(epoch)
        elif hasattr(loader_train.sampler, "set_epoch"):
            loader_train.sampler.set_epoch(epoch)
        train_one_epoch(epoch, model, loader_train, optimizer, SoftTargetCrossEntropy(), scheduler, mixup_fn, ema, args)
        best = validate(model, loader_eval)
        print(f"epoch {epoch}: acc@1 {best:.3f}, of the average {validate(ema.module, loader_eval):.3f}")
    print(f"accuracy {best:.2f}")


if __name__ == "__main__":
    main()
