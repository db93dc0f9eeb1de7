#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small language model on packed documents: each sequence has several of them, and none looks at another.

    -dataset = GPTDataset("corpus", ...)            # Megatron-LM's corpus.bin and corpus.idx
    -train = DataLoader(dataset, 16, sampler=...)
    +train = oa.Loader(oa.tokens("corpus.bin", 256, pack=True), batch_size=16, order="any")

Where there is no such file it makes one: sentences, as bytes.
"""
import argparse
import pathlib
import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import oneaccess as oa


def write_corpus(path):
    """Documents of words, as bytes."""
    words, draw = "the cat sat on a mat and saw one dog run".split(), random.Random(1)
    oa.tokenize((" ".join(draw.choices(words, k=draw.randrange(2, 60))) + "." for _ in range(150)), "bytes", path)


class Model(nn.Module):
    def __init__(self, vocabulary, length, width=64):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, input_ids, position_ids, doc_ids):
        length = input_ids.shape[1]
        other = doc_ids[:, :, None] != doc_ids[:, None, :]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        mask = (other | future).repeat_interleave(4, 0)  # of each head
        return self.head(self.layer(self.tokens(input_ids) + self.places(position_ids), src_mask=mask))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path, help="CORPUS.bin with its .idx; made if it is not there")
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    if not options.corpus.exists():
        write_corpus(options.corpus)

    torch.manual_seed(1)
    train = oa.Loader(oa.tokens(options.corpus, options.seq_len, pack=True), batch_size=options.batch_size, order="any")
    model = Model(257, options.seq_len)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(options.epochs):
        loss_sum = tokens = padding = 0
        for batch in train:
            logits = model(batch["input_ids"], batch["position_ids"], batch["doc_ids"])
            loss = cross_entropy(logits.flatten(0, 1), batch["labels"].reshape(-1), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            real = int((batch["doc_ids"] >= 0).sum())
            tokens, padding = tokens + real, padding + batch["doc_ids"].numel() - real
            loss_sum += float(loss) * real
        print(f"epoch {epoch}: {tokens} tokens, {100 * padding / (tokens + padding):.2f} % padding, loss {loss_sum / tokens:.3f}",
              flush=True)


if __name__ == "__main__":
    main()
