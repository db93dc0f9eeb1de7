#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer: a subclass of it gives Loaders, and puts names to what they bring.

    -trainer = Trainer(model, arguments, train_dataset=train, data_collator=collate)
    +class OneAccessTrainer(Trainer):
    +    def get_train_dataloader(self):
    +        return oa.Loader(data, oa.imagenet_train(224), self._train_batch_size)
    +    def _prepare_inputs(self, inputs):
    +        images, labels = inputs
    +        return super()._prepare_inputs({"pixel_values": images, "labels": labels})
    +trainer = OneAccessTrainer(model, arguments)

A resumed run takes the batches of its epoch that were trained on and drops them, as with a DataLoader; the Loader's
state_dict() goes on exactly.
"""
import argparse

from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

import oneaccess as oa


class OneAccessTrainer(Trainer):
    def __init__(self, data, size, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.data, self.size, self.samples = data, size, 0

    def get_train_dataloader(self):
        return oa.Loader(self.data, oa.imagenet_train(self.size), self._train_batch_size)

    def get_eval_dataloader(self, eval_dataset=None):
        return oa.Loader(self.data, oa.imagenet_eval(self.size), self.args.eval_batch_size, shuffle=False)

    def _prepare_inputs(self, inputs):
        images, labels = inputs
        self.samples += len(labels)
        return super()._prepare_inputs({"pixel_values": images, "labels": labels})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--output", default="trainer-output", help="folder of the Trainer's")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()

    with oa.Loader(options.data, oa.imagenet_eval(options.size), 1) as loader:
        classes = len(loader.classes)
    model = ResNetForImageClassification(ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=classes))
    arguments = TrainingArguments(
        output_dir=options.output, num_train_epochs=options.epochs, per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=3, use_cpu=options.cpu, save_strategy="no", report_to=[], disable_tqdm=True)
    trainer = OneAccessTrainer(options.data, options.size, model, arguments)
    result = trainer.train()
    print(f"{trainer.samples} samples, {result.global_step} steps")


if __name__ == "__main__":
    main()
