#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning on chats: packed into sequences, of which none looks at another, and only what the assistant says counts for the loss.

    -dataset = load_dataset("json", data_files="chats.jsonl", split="train")
    -trainer = SFTTrainer(model, SFTConfig(packing=True, assistant_only_loss=True), dataset)
    +chats = oa.tokenize("chats.jsonl", tokenizer, "chats", messages="messages")
    +train = oa.Loader(oa.tokens(chats, 256, pack=True, loss=True), batch_size=8, order="any")

Where there is no such file it makes one. Without --tokenizer its texts are bytes, and what a chat looks like is a function here.
"""
import argparse
import json
import pathlib
import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import oneaccess as oa

END, ROLES = 256, {"user": 257, "assistant": 258}  # tokens beside the bytes


def write_chats(path):
    draw = random.Random(1)
    with open(path, "w") as file:
        for _ in range(300):
            messages = []
            for _ in range(draw.randrange(1, 4)):
                word = draw.choice(["red", "green", "blue", "black"])
                messages += [{"role": "user", "content": f"{draw.choice(['Say', 'Please say', 'Now'])} {word}"}, {"role": "assistant", "content": word}]
            file.write(json.dumps({"messages": messages}) + "\n")


def render(row):
    """A chat's tokens, and of each whether it counts: all that the assistant is to say, and that it ends there."""
    ids, counts = [], []
    for message in row["messages"]:
        text = [*message["content"].encode(), END]
        ids += [ROLES[message["role"]], *text]
        counts += [False, *[message["role"] == "assistant"] * len(text)]
    return ids, counts


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
    parser.add_argument("chats", type=pathlib.Path, help="CHATS.jsonl, whose rows have \"messages\"; made if it is not there")
    parser.add_argument("--tokenizer", help="of transformers: a name or folder, with a chat template")
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    if not options.chats.exists():
        write_chats(options.chats)
    tokens = options.chats.with_suffix(".bin")
    tokenizer, vocabulary = None, 259
    if options.tokenizer:
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
        vocabulary = len(tokenizer)
    if not tokens.exists():
        how = {"messages": "messages"} if tokenizer else {"render": render, "vocabulary": vocabulary}
        oa.tokenize(options.chats, tokenizer, tokens, **how)

    torch.manual_seed(1)
    train = oa.Loader(oa.tokens(tokens, options.seq_len, pack=True, loss=True), batch_size=options.batch_size, order="any")
    model = Model(vocabulary, options.seq_len)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(options.epochs):
        loss_sum = seen = counted = 0
        for batch in train:
            logits = model(batch["input_ids"], batch["position_ids"], batch["doc_ids"])
            labels = batch["labels"].reshape(-1)
            loss = cross_entropy(logits.flatten(0, 1), labels, ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            real = int((labels != -100).sum())
            seen, counted = seen + int((batch["doc_ids"] >= 0).sum()), counted + real
            loss_sum += float(loss.detach()) * real
        print(f"epoch {epoch}: {seen} tokens, of which {counted} count, loss {loss_sum / counted:.3f}", flush=True)


if __name__ == "__main__":
    main()
