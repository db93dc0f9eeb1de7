# SPDX-License-Identifier: Apache-2.0
"""In the manner of Hugging Face's image classification without a Trainer: Accelerate prepares everything, accumulates
gradients, gathers for metrics, saves its state."""
import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from datasets import load_dataset
from torch.utils.data import DataLoader
from torchvision.transforms import CenterCrop, Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize, ToTensor
from transformers import ResNetConfig, ResNetForImageClassification, get_scheduler


def collate_fn(examples):
    return {"pixel_values": torch.stack([example["pixel_values"] for example in examples]),
            "labels": torch.tensor([example["label"] for example in examples])}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=3e-3, type=float)
    parser.add_argument("--gradient-accumulation-steps", default=2, type=int)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(args.seed)

    dataset = load_dataset("imagefolder", data_dir=args.data)
    normalize = Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_transforms = Compose([RandomResizedCrop(args.size), RandomHorizontalFlip(), ToTensor(), normalize])
    val_transforms = Compose([Resize(args.size), CenterCrop(args.size), ToTensor(), normalize])

    def preprocess_train(batch):
        batch["pixel_values"] = [train_transforms(picture.convert("RGB")) for picture in batch["image"]]
        return batch

    def preprocess_val(batch):
        batch["pixel_values"] = [val_transforms(picture.convert("RGB")) for picture in batch["image"]]
        return batch

    with accelerator.main_process_first():
        train_dataset = dataset["train"].with_transform(preprocess_train)
        eval_dataset = dataset["validation"].with_transform(preprocess_val)

    train_dataloader = DataLoader(train_dataset, shuffle=True, collate_fn=collate_fn, batch_size=args.batch_size,
                                  num_workers=args.workers)
    eval_dataloader = DataLoader(eval_dataset, collate_fn=collate_fn, batch_size=args.batch_size, num_workers=args.workers)

    model = ResNetForImageClassification(ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 64], depths=[1, 1, 1], layer_type="basic",
        num_labels=len(dataset["train"].features["label"].names)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    updates = -(-len(train_dataloader) // args.gradient_accumulation_steps)
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=args.epochs * updates)
    model, optimizer, train_dataloader, eval_dataloader, scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, scheduler)

    steps, accuracy = 0, 0.0
    for epoch in range(args.epochs):
        model.train()
        for batch in train_dataloader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch).loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            steps += accelerator.sync_gradients
        model.eval()
        right = seen = 0
        for batch in eval_dataloader:
            with torch.no_grad():
                guesses = model(**batch).logits.argmax(dim=-1)
            guesses, labels = accelerator.gather_for_metrics((guesses, batch["labels"]))
            right += int((guesses == labels).sum())
            seen += len(labels)
        accuracy = 100 * right / seen
        accelerator.print(f"epoch {epoch}: {steps} steps, accuracy {accuracy:.2f} of {seen}")
        accelerator.save_state(os.path.join("accelerate", f"epoch_{epoch}"))
    assert steps == args.epochs * updates
    accelerator.end_training()
    print(f"accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
