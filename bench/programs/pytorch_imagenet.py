# SPDX-License-Identifier: Apache-2.0
"""In the manner of PyTorch's ImageNet example: a torchvision model by its name, ranks, meters, checkpoints."""
import argparse
import os
import shutil
import time

import torch
import torchvision
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms
from torchvision.datasets import ImageFolder


class Meter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, count=1):
        self.sum += float(value) * count
        self.count += count

    @property
    def average(self):
        return self.sum / max(self.count, 1)

    def reduce(self):
        both = torch.tensor([self.sum, self.count])
        torch.distributed.all_reduce(both)
        self.sum, self.count = both.tolist()


def right(output, target, most):
    """Percent of the targets that are among so many first guesses."""
    best = output.topk(min(most, output.shape[1]), dim=1).indices
    return 100 * best.eq(target.view(-1, 1)).any(dim=1).float().mean()


def train(loader, model, criterion, optimizer, epoch, args):
    waited, losses, top1 = Meter(), Meter(), Meter()
    model.train()
    end = time.time()
    for step, (images, target) in enumerate(loader):
        waited.update(time.time() - end)
        images = images.to("cpu", non_blocking=True)
        target = target.to("cpu", non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        top1.update(right(output, target, 1), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        end = time.time()
        if step % args.print_freq == 0:
            print(f"epoch {epoch} [{step + 1}/{len(loader)}] waited {waited.average:.3f} loss {losses.average:.4f}"
                  f" acc@1 {top1.average:.2f}")


def validate(loader, model, args):
    top1, top5 = Meter(), Meter()

    def run(batches):
        with torch.no_grad():
            for images, target in batches:
                output = model(images)
                top1.update(right(output, target, 1), images.size(0))
                top5.update(right(output, target, 5), images.size(0))
    model.eval()
    run(loader)
    if args.distributed:
        top1.reduce()
        top5.reduce()
        done = len(loader.sampler) * args.world_size
        if done < len(loader.dataset):
            run(DataLoader(Subset(loader.dataset, range(done, len(loader.dataset))), args.batch_size))
    print(f" * acc@1 {top1.average:.3f} acc@5 {top5.average:.3f}")
    return top1.average


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", metavar="DIR")
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=0.02, type=float)
    parser.add_argument("--print-freq", default=10, type=int)
    parser.add_argument("--resume", default="")
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    args.world_size = int(os.environ.get("WORLD_SIZE", 1))
    args.distributed = args.world_size > 1
    torch.manual_seed(args.seed)
    if args.distributed:
        torch.distributed.init_process_group("gloo")

    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_dataset = ImageFolder(os.path.join(args.data, "train"), transforms.Compose([
        transforms.RandomResizedCrop(args.size), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]))
    val_dataset = ImageFolder(os.path.join(args.data, "val"), transforms.Compose([
        transforms.Resize(args.size * 256 // 224), transforms.CenterCrop(args.size), transforms.ToTensor(), normalize]))

    model = torchvision.models.__dict__[args.arch](num_classes=len(train_dataset.classes))
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    first, best = 0, 0.0
    if args.resume and os.path.isfile(args.resume):
        saved = torch.load(args.resume)
        first, best = saved["epoch"], saved["best"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])

    if args.distributed:
        train_sampler = DistributedSampler(train_dataset)
        val_sampler = DistributedSampler(val_dataset, shuffle=False, drop_last=True)
    else:
        train_sampler = val_sampler = None
    train_loader = DataLoader(train_dataset, batch_size=args.batch_size, shuffle=train_sampler is None,
                              num_workers=args.workers, sampler=train_sampler)
    val_loader = DataLoader(val_dataset, batch_size=args.batch_size, shuffle=False, num_workers=args.workers,
                            sampler=val_sampler)

    accuracy = 0.0
    for epoch in range(first, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
        accuracy = validate(val_loader, model, args)
        scheduler.step()
        torch.save({"epoch": epoch + 1, "model": model.state_dict(), "best": max(best, accuracy),
                    "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, "checkpoint.pth.tar")
        if accuracy > best:
            shutil.copyfile("checkpoint.pth.tar", "model_best.pth.tar")
        best = max(best, accuracy)
    print(f"accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
