#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small BERT: masked language modelling of packed documents, whose masks are drawn anew in each epoch.

    -collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    -train = DataLoader(dataset, 32, shuffle=True, collate_fn=collator)
    +masked = oa.MaskedLM(tokenizer.mask_token_id, len(tokenizer), special_ids=tokenizer.all_special_ids)
    +train = oa.Loader(oa.tokens("corpus.bin", 128, pack=True, objective=masked), batch_size=32)

Where there is no such file it makes one: sentences, as bytes.
"""
import argparse
import pathlib
import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import oneaccess as oa

END, MASK, TOKENS = 256, 257, 258   # behind the bytes


def write_corpus(path):
    """Documents of words, as bytes."""
    words, draw = "the cat sat on a mat and saw one dog run".split(), random.Random(1)
    oa.tokenize((" ".join(draw.choices(words, k=draw.randrange(2, 60))) + "." for _ in range(150)), "bytes", path)


class Bert(nn.Module):
    def __init__(self, length, width=64):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, width), nn.Embedding(length, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, TOKENS)

    def forward(self, input_ids, position_ids, doc_ids):
        other = (doc_ids[:, :, None] != doc_ids[:, None, :]).repeat_interleave(4, 0)     # of each head
        return self.head(self.layer(self.tokens(input_ids) + self.places(position_ids), src_mask=other))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path, help="CORPUS.bin with its .idx; made if it is not there")
    parser.add_argument("--seq-len", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    if not options.corpus.exists():
        write_corpus(options.corpus)

    torch.manual_seed(1)
    masked = oa.MaskedLM(MASK, TOKENS, special_ids=[END])
    train = oa.Loader(oa.tokens(options.corpus, options.seq_len, pack=True, objective=masked), batch_size=options.batch_size, order="seeded", seed=1)
    model = Bert(options.seq_len)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(options.epochs):
        loss_sum = tokens = chosen = 0
        for batch in train:
            logits = model(batch["input_ids"], batch["position_ids"], batch["doc_ids"])
            loss = cross_entropy(logits.flatten(0, 1), batch["labels"].reshape(-1), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count = int((batch["labels"] >= 0).sum())
            tokens, chosen = tokens + int((batch["doc_ids"] >= 0).sum()), chosen + count
            loss_sum += float(loss.detach()) * count
        print(f"epoch {epoch}: {tokens} tokens, {chosen} chosen, loss {loss_sum / chosen:.3f}", flush=True)


if __name__ == "__main__":
    main()
