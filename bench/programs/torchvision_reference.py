# SPDX-License-Identifier: Apache-2.0
"""In the manner of torchvision's reference training of classifiers: transforms v2, TrivialAugment, random erasing, MixUp and
CutMix in collate_fn, label smoothing, warm-up, an average of the weights."""
import argparse
import os
import warnings

import torch
import torchvision
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import default_collate
from torchvision.transforms import v2


class TrainPreset:
    def __init__(self, size):
        self.transforms = v2.Compose([
            v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(), v2.TrivialAugmentWide(),
            v2.PILToTensor(), v2.ToDtype(torch.float, scale=True),
            v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)), v2.RandomErasing(p=0.1), v2.ToPureTensor()])

    def __call__(self, picture):
        return self.transforms(picture)


class EvalPreset:
    def __init__(self, size):
        self.transforms = v2.Compose([
            v2.Resize(size * 256 // 224, antialias=True), v2.CenterCrop(size), v2.PILToTensor(),
            v2.ToDtype(torch.float, scale=True),
            v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)), v2.ToPureTensor()])

    def __call__(self, picture):
        return self.transforms(picture)


def train_one_epoch(model, criterion, optimizer, loader, epoch, average, args):
    model.train()
    for step, (image, target) in enumerate(loader):
        output = model(image)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            average.update_parameters(model)
            if epoch < args.warmup:
                average.n_averaged.fill_(0)
    print(f"epoch {epoch}: loss {loss.item():.4f}")


def evaluate(model, loader):
    model.eval()
    right = seen = 0
    with torch.inference_mode():
        for image, target in loader:
            right += int((model(image).argmax(dim=1) == target).sum())
            seen += image.shape[0]
    if hasattr(loader.dataset, "__len__") and len(loader.dataset) != seen:
        warnings.warn(f"the data set has {len(loader.dataset)} samples, {seen} were evaluated")
    return 100 * right / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--warmup", default=1, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=0.02, type=float)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    dataset = torchvision.datasets.ImageFolder(os.path.join(args.data, "train"), TrainPreset(args.size))
    dataset_test = torchvision.datasets.ImageFolder(os.path.join(args.data, "val"), EvalPreset(args.size))
    classes = len(dataset.classes)
    mix = v2.RandomChoice([v2.MixUp(num_classes=classes, alpha=0.2), v2.CutMix(num_classes=classes, alpha=1.0)])

    def collate_fn(batch):
        return mix(*default_collate(batch))

    data_loader = DataLoader(dataset, batch_size=args.batch_size, sampler=RandomSampler(dataset),
                             num_workers=args.workers, pin_memory=torch.cuda.is_available(), collate_fn=collate_fn)
    data_loader_test = DataLoader(dataset_test, batch_size=args.batch_size, sampler=SequentialSampler(dataset_test),
                                  num_workers=args.workers)

    model = torchvision.models.get_model(args.model, num_classes=classes)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler
    scheduler = schedule.SequentialLR(optimizer, [
        schedule.LinearLR(optimizer, start_factor=0.1, total_iters=args.warmup),
        schedule.CosineAnnealingLR(optimizer, T_max=max(1, args.epochs - args.warmup))], milestones=[args.warmup])
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9),
                                                  use_buffers=True)
    accuracy = 0.0
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, optimizer, data_loader, epoch, average, args)
        scheduler.step()
        accuracy = evaluate(model, data_loader_test)
        print(f"epoch {epoch}: acc@1 {accuracy:.3f}, of the average {evaluate(average, data_loader_test):.3f}")
    print(f"accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
