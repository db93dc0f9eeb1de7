# SPDX-License-Identifier: Apache-2.0
"""Means and standard deviations of the channels of gridded data, for normalization: computed once, and kept."""

import hashlib
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..sources.noted import Noted, folder_of

_KINDS = ("mean", "std", "min", "max", "count", "diff_mean", "diff_std")


class _Sum:
    """Of each channel, of values some steps at a time, as Chan, Golub and LeVeque combine means and squares (1983, Algorithms for computing the
    sample variance). NaN is no value."""

    def __init__(self, channels):
        self.count, self.mean, self.squares = (np.zeros(channels) for _ in range(3))
        self.min, self.max = np.full(channels, np.inf), np.full(channels, -np.inf)

    def add(self, values):
        """[channels, values]"""
        data = values.astype(np.float64)
        there = ~np.isnan(data)
        count = there.sum(1)
        self.min, self.max = np.minimum(self.min, np.where(there, data, np.inf).min(1)), np.maximum(self.max, np.where(there, data, -np.inf).max(1))
        mean = np.where(there, data, 0).sum(1) / np.maximum(count, 1)
        squares = (np.where(there, data - mean[:, None], 0) ** 2).sum(1)
        away, both = mean - self.mean, np.maximum(self.count + count, 1)
        self.squares += squares + away ** 2 * self.count * count / both
        self.mean += away * count / both
        self.count += count

    def std(self):
        return np.sqrt(self.squares / np.maximum(self.count, 1))


def computed(rows: Any) -> dict[str, Any]:
    """Of all steps that windows have, and of the differences between two as far apart as the greatest common divisor of delta_steps says."""
    ahead = math.gcd(*rows.offsets.tolist()) or 1
    whole, changes, before, number, block = _Sum(len(rows.channels)), _Sum(len(rows.channels)), {}, -1, None
    for row in np.flatnonzero(rows.block_of >= 0).tolist():
        if rows.block_of[row] != number:
            number = int(rows.block_of[row])
            block = rows.values(number).reshape(-1, len(rows.channels), math.prod(rows.sizes))
        values = block[rows.within[row]]
        whole.add(values)
        last = before.get(row - ahead)
        if last is not None and rows.runs[row] == rows.runs[row - ahead]:
            changes.add(values.astype(np.float64) - last)
        before = {each: kept for each, kept in before.items() if each > row - ahead} | {row: values}
    rows.files.release()
    return {"mean": whole.mean, "std": whole.std(), "min": whole.min, "max": whole.max, "count": whole.count, "diff_mean": changes.mean, "diff_std": changes.std()}


def stats_of(rows: Any, index: str | os.PathLike | None) -> dict[str, Any]:
    """As computed() has them. They are kept of files of this machine, as these are."""
    files = rows.files
    if files.dataset is not None or files.preprocess is not None or not all(files.stamps):
        return computed(rows)
    facts = hashlib.blake2b(repr((files.stamps, sorted(files.options.items()), rows.variables, rows.axes)).encode(), digest_size=16)
    for each in (rows.block_of, rows.within, rows.begins, rows.place, rows.runs, np.unique(rows.offsets)):
        facts.update(np.ascontiguousarray(each, "<i8").tobytes())
    noted = Noted(folder_of("xarray", index), facts.hexdigest(), dict.fromkeys(_KINDS, ("float64", 1)), "gridded data")
    return noted.found(lambda: computed(rows), lambda found: all(len(each) == len(rows.channels) for each in found.values()))


def scale_of(normalize: Any, channels: list[str]) -> tuple[Any, Any]:
    """float32 mean and standard deviation of each channel, of which those that are 0 count as 1."""
    if not isinstance(normalize, Mapping) or not {"mean", "std"} <= {*normalize}:
        raise ArgumentError(f"normalize is {normalize!r}: True, or {{\"mean\": [...], \"std\": [...]}} with a number for each of data.channels, as data.stats of another data set")
    made = []
    for kind in ("mean", "std"):
        try:
            each = np.broadcast_to(np.asarray(normalize[kind], np.float32), len(channels)).copy()
        except (ValueError, TypeError):
            raise ArgumentError(f"normalize[{kind!r}] has the shape {np.shape(normalize[kind])}, and there are {len(channels)} channels: {', '.join(channels)}") from None
        if not np.isfinite(each).all():
            raise ArgumentError(f"normalize[{kind!r}] of {channels[int(np.flatnonzero(~np.isfinite(each))[0])]} is no number: has the channel any value?")
        made.append(each)
    mean, std = made
    std[std == 0] = 1
    return mean, std
