#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A vision-language model on photographs of any proportion and what is said of them, as Qwen2-VL is trained: rows of a JSON Lines file,
{"image": "photos/1.jpg", "text": "..."}.

    -processor = AutoProcessor.from_pretrained("Qwen/Qwen2.5-VL-3B-Instruct")
    -batch = processor(text=texts, images=images, padding=True, return_tensors="pt")        # for each batch, in each job
    -model(input_ids=batch["input_ids"], pixel_values=batch["pixel_values"], image_grid_thw=batch["image_grid_thw"])
    +for batch in oa.Loader(rows, oa.transforms.qwen_vl(28 * 28 * 256), batch_size=8):
    +    model(input_ids=batch["ids"].padded(PAD), pixel_values=batch["image"].csr()[0], image_grid_thw=batch["grid"])

Texts are bytes here, with a place for each block of 2 x 2 patches before them, and the model is a small one of its own.
"""
import argparse
import io

import torch
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy

import oneaccess as oa

IMAGE, END, PAD = 256, 257, 258  # tokens beside the bytes
MERGED = 4                       # patches in a place of the text
PIPELINE = oa.transforms.qwen_vl(max_pixels=28 * 28 * 16, min_pixels=28 * 28 * 4)
MOST = 200                       # tokens of a sample


def sample(row):
    """In the pool's processes, once for all jobs: how many places the image takes follows from its size."""
    width, height = Image.open(io.BytesIO(row["image"])).size
    rows, columns = oa.patch_grid(PIPELINE, height, width)
    return {"image": row["image"], "ids": [IMAGE] * (rows * columns // MERGED) + list(row["text"].encode())[:100] + [END]}


class Model(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.patches = nn.Linear(1176, width)
        self.merge = nn.Linear(MERGED * width, width)
        self.tokens, self.places = nn.Embedding(PAD + 1, width), nn.Embedding(MOST, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, PAD + 1)

    def forward(self, input_ids, pixel_values, image_grid_thw):
        seen = self.merge(self.patches(pixel_values).relu().unflatten(0, (-1, MERGED)).flatten(1))
        assert len(seen) == int(image_grid_thw.prod(1).sum()) // MERGED
        made = self.tokens(input_ids)
        made = made.masked_scatter((input_ids == IMAGE)[..., None], seen) + self.places.weight[:input_ids.shape[1]]
        future = torch.ones(input_ids.shape[1], input_ids.shape[1], dtype=torch.bool).triu(1)
        return self.head(self.layer(made, src_mask=future, src_key_padding_mask=input_ids == PAD))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", help="ROWS.jsonl, of {\"image\": FILE, \"text\": ...}")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()

    torch.manual_seed(1)
    rows = oa.from_jsonl(options.rows, files="image", transform=sample, random=False, ragged={"ids": MOST})
    loader = oa.Loader(rows, PIPELINE, options.batch_size)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(options.epochs):
        samples = patches = loss_sum = 0
        for batch in loader:
            ids, values = batch["ids"].padded(PAD).long(), batch["image"].csr()[0]
            logits = model(ids, values, batch["grid"])
            labels = ids[:, 1:].masked_fill((ids[:, 1:] == IMAGE) | (ids[:, 1:] == PAD), -100)
            loss = cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten(), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples, patches = samples + len(ids), patches + len(values)
            loss_sum += loss.item() * len(ids)
        print(f"epoch {epoch + 1}: {samples} samples, {patches} patches, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
