# SPDX-License-Identifier: Apache-2.0
"""In the manner of Hugging Face's image classification with its Trainer: a folder by datasets, transforms by set_transform(),
a collator, metrics, checkpoints."""
import argparse

import numpy as np
import torch
from datasets import load_dataset
from torchvision.transforms import CenterCrop, Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize, ToTensor
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments, set_seed


def collate_fn(examples):
    return {"pixel_values": torch.stack([example["pixel_values"] for example in examples]),
            "labels": torch.tensor([example["label"] for example in examples])}


def compute_metrics(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=1) == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=3e-3, type=float)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    set_seed(args.seed)

    dataset = load_dataset("imagefolder", data_dir=args.data)
    labels = dataset["train"].features["label"].names
    normalize = Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_transforms = Compose([RandomResizedCrop(args.size), RandomHorizontalFlip(), ToTensor(), normalize])
    val_transforms = Compose([Resize(args.size), CenterCrop(args.size), ToTensor(), normalize])

    def preprocess_train(batch):
        batch["pixel_values"] = [train_transforms(picture.convert("RGB")) for picture in batch["image"]]
        return batch

    def preprocess_val(batch):
        batch["pixel_values"] = [val_transforms(picture.convert("RGB")) for picture in batch["image"]]
        return batch

    dataset["train"].set_transform(preprocess_train)
    dataset["validation"].set_transform(preprocess_val)

    model = ResNetForImageClassification(ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 64], depths=[1, 1, 1], layer_type="basic", num_labels=len(labels),
        id2label=dict(enumerate(labels)), label2id={name: index for index, name in enumerate(labels)}))
    trainer = Trainer(
        model,
        TrainingArguments(
            output_dir="trainer", num_train_epochs=args.epochs, per_device_train_batch_size=args.batch_size,
            per_device_eval_batch_size=args.batch_size, learning_rate=args.lr, remove_unused_columns=False, use_cpu=True,
            report_to=[], disable_tqdm=True, seed=args.seed, eval_strategy="epoch", save_strategy="epoch",
            load_best_model_at_end=False, dataloader_num_workers=args.workers),
        train_dataset=dataset["train"], eval_dataset=dataset["validation"], compute_metrics=compute_metrics,
        data_collator=collate_fn)
    trainer.train()
    trainer.save_model()
    metrics = trainer.evaluate()
    trainer.save_metrics("eval", metrics)
    print(f"accuracy {100 * metrics['eval_accuracy']:.2f}")


if __name__ == "__main__":
    main()
