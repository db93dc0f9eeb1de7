#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small weather model: the next steps of all channels from the last two, on ERA5 or another gridded data set that xarray opens.

What changes where xbatcher and dask were:

    -dataset = xarray.open_zarr("era5.zarr")[variables].sel(time=slice("1979", "2015"))
    -loader = DataLoader(MapDataset(xbatcher.BatchGenerator(dataset, {"time": 6})), batch_size=16, num_workers=8)
    +data = oa.from_xarray("era5.zarr", variables, {"input": [-1, 0], "target": range(1, 5)}, time=slice("1979", "2015"), normalize=True)
    +loader = oa.Loader(data, batch_size=16)
     for batch in loader: batch["input"], batch["target"], batch["time"]

The model says how the field changes; with --steps above 1 it goes on from what it said, and the loss is that of all steps.
"""
import argparse
import math

import torch
from torch import nn

import oneaccess as oa

DAY = 86400


class Model(nn.Module):
    """Convolutions around the globe; what it is told beside the fields does not change with time, or is the time of day."""

    def __init__(self, channels, statics, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2 * channels + statics + 2, width, 3, padding=1, padding_mode="circular"), nn.GELU(),
                                    nn.Conv2d(width, channels, 3, padding=1, padding_mode="circular"))

    def forward(self, fields, static, seconds):
        """fields: [batch, 2, channels, H, W]. Returns how the last of them changes, [batch, channels, H, W]."""
        angle = (2 * math.pi / DAY * (seconds % DAY))[:, None, None, None].float()
        clock = torch.cat([angle.sin(), angle.cos()], 1).expand(-1, -1, *static.shape[-2:])
        return self.layers(torch.cat([fields.flatten(1, 2), static.expand(len(fields), -1, -1, -1), clock], 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder of Zarr, or NetCDF files")
    parser.add_argument("variables", nargs="+")
    parser.add_argument("--static", nargs="*", default=[], help="variables without time")
    parser.add_argument("--until", help="the last time to train on, as 2015")
    parser.add_argument("--validate-from", help="the first time for validation, as 2016")
    parser.add_argument("--steps", type=int, default=2, help="that are forecast")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    torch.manual_seed(1)

    window = {"input": [-1, 0], "target": range(1, options.steps + 1)}
    data = oa.from_xarray(options.data, options.variables, window, static=options.static, time=slice(None, options.until), normalize=True)
    print(f"{len(data)} samples of {len(data.channels)} channels: {', '.join(data.channels)}", flush=True)
    loader = oa.Loader(data, batch_size=options.batch_size)
    static = torch.from_numpy(data.static)
    static = (static - static.mean((1, 2), keepdim=True)) / (static.std((1, 2), keepdim=True) + 1e-6)
    change = torch.from_numpy(data.stats["diff_std"] / data.stats["std"]).float()[:, None, None]      # of a step, where fields have a deviation of 1
    seconds = int(data.times[1] - data.times[0])            # from step to step
    model = Model(len(data.channels), len(static), 32)
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    def loss_of(batch):
        fields, loss = batch["input"], 0.0
        for step in range(options.steps):
            said = fields[:, 1] + change * model(fields, static, batch["time"] + step * seconds)
            loss = loss + (((said - batch["target"][:, step]) / change) ** 2).mean() / options.steps
            fields = torch.stack([fields[:, 1], said], 1)
        return loss

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["time"])
            loss_sum += loss.item() * len(batch["time"])
        print(f"epoch {epoch + 1}: {samples} samples, loss {loss_sum / samples:.4f}", flush=True)

    if options.validate_from is not None:
        rest = oa.from_xarray(options.data, options.variables, window, static=options.static, time=slice(options.validate_from, None), normalize=data.stats)
        with torch.no_grad():
            losses = [loss_of(batch).item() for batch in oa.Loader(rest, batch_size=options.batch_size, epochs=1)]
        print(f"validation: {len(rest)} samples, loss {sum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
