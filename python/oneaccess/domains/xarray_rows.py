# SPDX-License-Identifier: Apache-2.0
"""Windows over the time of gridded data, for from_xarray().

Windows that are neighbours share steps, and a chunk of a file often has several: steps that lie in chunks together are read as a block, once for
all processes of the pool (shelf.py), and windows are copied from blocks. A random order is one of runs of neighbours where not all blocks are
kept, as of tables (doc/decisions/230-tables.md)."""

import array
import contextlib
import hashlib
import itertools
import math
import os
import random
from typing import Any, NamedTuple

import numpy as np

from ..columns import Blocks
from ..errors import ArgumentError, DatasetError, warn
from ..shelf import Shelf
from ..sources.stores import BROKEN, broken
from ..sources.tables import MOST_PROCESSES, Kept
from . import scenes, xarray_files

_BLOCK = 1 << 20            # bytes of steps that are read together, where chunks are smaller
_LARGE = 1 << 30            # a block beyond this needs a word
_ROOM = 1 << 12             # of a block, for what is not numbers
_GAP = 1.5                  # times the usual step of time
_RUN = 4                    # times the steps of a window: samples in a row of a random order
TIME, CORNER = "time", "corner"


class Steps(NamedTuple):
    """Where the steps lie, one array for each: number of the file, of the trajectory in it, place along its time; seconds; and a number that is the
    same for steps in a row."""

    file: Any
    series: Any
    at: Any
    seconds: Any
    run: Any


class Parts(NamedTuple):
    """The fields of a sample: {field: steps from its own}; are they arrays of all channels; the type."""

    steps: dict[str, list[int]]
    is_stacked: bool
    dtype: str


class GridRows:
    """Window i as a dict. blocks: runs of windows, where not all of what they share is kept."""

    def __init__(self, files, names, axes, parts, levels, time, stride, cut, cache):
        """axes: dim=, series=, space=. cut: patch= and jitter=."""
        self.files, self.parts = files, parts
        self.offsets = np.array([*itertools.chain(*parts.steps.values())])
        self._look(names, axes, levels)
        steps = self._steps(time)
        self._own(steps, stride)
        self._divide(cut)
        self._block(steps, cache)
        self.scale = None           # mean and std of each channel
        self._begin()

    # ---- at the beginning ----

    def _look(self, names, axes, levels):
        """At the variables of all files, which are to be alike."""
        self.found, self.variables = [], None
        for at, path in enumerate(self.files.paths):
            dataset = self.files.get(at)
            if self.variables is None:
                self.axes = xarray_files.axes_of(dataset, names[0], path, *axes)
            variables = [xarray_files.look(dataset, name, path, self.axes, levels.get(name) if isinstance(levels, dict) else levels) for name in names]
            grid = {dim: xarray_files.coordinate(dataset, dim, dataset.variables[names[0]].sizes[dim]) for dim in self.axes.space}
            if self.variables is None:
                self.variables, self.coords = variables, grid
                self.chunk = self._chunk(dataset)
            if variables != self.variables:
                raise DatasetError(f"{path} has other levels than {self.files.paths[0]}: {variables} and {self.variables}")
            for dim, values in grid.items():
                if any(dataset.variables[name].sizes[dim] != len(values) for name in names) or not np.array_equal(values, self.coords[dim]):
                    raise DatasetError(f"{path} has other values along {dim} than {self.files.paths[0]}, or than another of its variables: files and variables have one grid")
            count = 1 if self.axes.series is None else dataset.sizes[self.axes.series]
            self.found.append((xarray_files.times_of(dataset, self.axes.time, path), count))
        self.channels = [name for variable in self.variables for name in variable.names]
        if len({*self.channels}) < len(self.channels):
            raise ArgumentError(f"variables= has a channel twice: {', '.join(self.channels)}")
        self.sizes = [len(values) for values in self.coords.values()]

    def _chunk(self, dataset):
        """Steps that lie together in chunks: of all variables, or of the one with the most."""
        chunks = [xarray_files.chunk_of(dataset.variables[variable.name], self.axes.time) for variable in self.variables]
        return both if (both := math.lcm(*chunks)) <= 4 * max(chunks) else max(chunks)

    def _steps(self, time):
        """Those of time=, in order. Each trajectory has a time of its own, in each file; files without are one time."""
        groups = [[at] for at in range(len(self.found))] if self.axes.series is not None else [[*range(len(self.found))]]
        made, gaps, run = [], [], 0
        for group in groups:
            times = np.concatenate([self.found[at][0] for at in group])
            file, at = (np.concatenate(each) for each in zip(*((np.full(len(self.found[one][0]), one), np.arange(len(self.found[one][0]))) for one in group)))
            seconds = xarray_files.seconds_of(times, self.files.paths[group[0]])
            order = np.argsort(seconds, kind="stable")
            times, file, at, seconds = times[order], file[order], at[order], seconds[order]
            between = np.diff(seconds)
            if (between == 0).any():
                twice = int(np.flatnonzero(between == 0)[0])
                raise DatasetError(f"{times[twice]} is a time of {self.files.paths[file[twice]]} and once more of {self.files.paths[file[twice + 1]]}: name each file once")
            is_gap = np.concatenate([[False], between > _GAP * np.median(between)]) if len(between) else np.zeros(len(seconds), bool)
            gaps += [(times[one - 1], times[one]) for one in np.flatnonzero(is_gap)]
            chosen = xarray_files.selected(times, self.axes.time, time)
            if not len(chosen):
                continue
            apart = np.concatenate([[0], np.cumsum((np.diff(chosen) != 1) | (np.diff(np.cumsum(is_gap)[chosen]) != 0))])
            for series in range(self.found[group[0]][1]):
                made.append((file[chosen], np.full(len(chosen), series), at[chosen], seconds[chosen], run + apart))
                run += int(apart[-1]) + 1
        if not made:
            raise ArgumentError(f"time={time!r} chooses none of the times of {self.files.paths[0]}")
        self.gaps = gaps
        if gaps:
            warn(f"time has {len(gaps):,} gaps, the first from {gaps[0][0]} to {gaps[0][1]}: no window spans one; data.gaps has all", UserWarning)
        return Steps(*(np.concatenate(each) for each in zip(*made)))

    def _own(self, steps, stride):
        """The step of each sample: those of a run where all of a window is, each stride-th."""
        low, high = min(0, *self.offsets.tolist()), max(0, *self.offsets.tolist())
        begins = np.concatenate([[0], np.flatnonzero(np.diff(steps.run)) + 1, [len(steps.run)]])
        self.own = np.concatenate([np.arange(begin - low, end - high, stride) for begin, end in zip(begins[:-1], begins[1:])])
        if not len(self.own):
            raise DatasetError(f"no window of {high - low + 1} steps fits into the {len(steps.run):,} of {self.files.paths[0]} that are chosen, whose longest part without a gap has"
                               f" {int(np.diff(begins).max())}")
        self.span = high - low
        self.times = steps.seconds[self.own]

    def _divide(self, cut):
        """The field into patches, the last ones of which end with it."""
        patch, self.is_drawn = cut
        if patch is None:
            self.patch, self.corners = None, np.zeros((1, len(self.sizes)), np.int64)
            return
        if len(patch) != len(self.sizes) or any(side > size for side, size in zip(patch, self.sizes)):
            raise ArgumentError(f"patch={tuple(patch)}: values along {', '.join(self.axes.space)}, of which there are {', '.join(map(str, self.sizes))}")
        self.patch = list(patch)
        starts = [scenes.starts(size, side, side, not self.is_drawn) for size, side in zip(self.sizes, self.patch)]
        self.corners = np.stack([each.reshape(-1) for each in np.meshgrid(*starts, indexing="ij")], 1)

    def _block(self, steps, cache):
        """Steps into blocks, none of which is of two files; what no window has is not read."""
        step = 4 * len(self.channels) * math.prod(self.sizes)
        rows = self.chunk * max(1, _BLOCK // (self.chunk * step))
        used = np.zeros(len(steps.at), bool)
        for ahead in {*self.offsets.tolist()}:
            used[self.own + ahead] = True
        used = np.flatnonzero(used)
        place = steps.at[used] // rows
        most = int(place.max()) + 1
        _, firsts, inverse = np.unique((steps.file[used] * (int(steps.series.max()) + 1) + steps.series[used]) * most + place, return_index=True, return_inverse=True)
        numbers = np.empty(len(firsts), np.int64)
        numbers[np.argsort(firsts)] = np.arange(len(firsts))        # in the order of time
        self.block_of = np.full(len(steps.at), -1, np.int64)
        self.block_of[used] = numbers[inverse.reshape(-1)]
        self.begins, self.ends = np.full(len(firsts), np.iinfo(np.int64).max), np.zeros(len(firsts), np.int64)
        np.minimum.at(self.begins, self.block_of[used], steps.at[used])
        np.maximum.at(self.ends, self.block_of[used], steps.at[used] + 1)
        self.within = np.full(len(steps.at), -1, np.int64)
        self.within[used] = steps.at[used] - self.begins[self.block_of[used]]
        first = used[np.sort(firsts)]
        self.place, self.runs = np.stack([steps.file[first], steps.series[first]], 1), steps.run
        self.largest = step * int((self.ends - self.begins).max())
        if self.largest > max(cache, _LARGE):
            raise DatasetError(f"{int((self.ends - self.begins).max()):,} steps of {self.files.paths[0]}, which its chunks make one read of, have {self.largest / 2**30:.1f} GiB: write it with"
                               " chunks of fewer steps, read fewer variables, or say that there is room, by cache=\"...\"")
        self._order(max(1, cache // self.largest), rows)

    def _order(self, kept, rows):
        """In runs of samples, if they share blocks and not so many are kept as there are."""
        total, self.blocks = len(self.begins), None
        first = before = self.block_of[self.own + self.offsets.min()]
        a_window = np.ones(len(first), np.int64)
        for ahead in np.unique(self.offsets)[1:].tolist():
            block = self.block_of[self.own + ahead]
            a_window += block != before
            before = block
        kept = max(kept, int(a_window.max()))
        self.kept = min(total, kept) + MOST_PROCESSES
        if total <= kept or int(a_window.sum()) * len(self.corners) <= total:
            return
        beside = -(-self.span // rows)
        run = max(1, min(_RUN * max(1, beside), kept - beside))
        starts = np.flatnonzero(np.concatenate([[True], np.diff(first // run) != 0])) * len(self.corners)
        window = max(1, kept // (run + beside))
        self.kept += run + beside
        if len(starts) > window:
            self.blocks = Blocks(array.array("q", starts.tolist()), window, self.largest * (run + beside))

    def digest(self) -> str:
        """What tells these windows from others of the same data."""
        facts = hashlib.sha256(repr((self.variables, self.axes, self.parts, self.patch, self.is_drawn)).encode())
        for each in (self.own, self.times, *(self.scale or ())):
            facts.update(each.tobytes())
        return facts.hexdigest()

    # ---- in the pool ----

    def _begin(self):
        self._decoded, self._shelf = Kept(self.kept, self._read), None

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_decoded", "_shelf", "found")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()
        if os.environ.get("ACCESS_POOL"):       # whose processes are forked
            self._shelf = Shelf(min(len(self.begins), self.kept), self.largest + _ROOM, self._read, len(self.begins))

    def values(self, number: int) -> Any:
        """Those of a block, float32 [steps, channels, ...]."""
        (file, series), begin, end = self.place[number].tolist(), int(self.begins[number]), int(self.ends[number])
        made, at = np.empty((end - begin, len(self.channels), *self.sizes), np.float32), 0
        try:
            dataset = self.files.get(file)
            for variable in self.variables:
                made[:, at:at + len(variable.names)] = xarray_files.values(dataset, self.axes, variable, series, begin, end)
                at += len(variable.names)
        except BROKEN as why:
            raise broken(why, f"{self.files.paths[file]}, steps {begin} to {end - 1}, cannot be read") from None
        self.files.unchanged(file)
        return made

    def _read(self, number):
        """A block as samples have it."""
        made = self.values(number)
        if self.scale is not None:
            mean, std = (each.reshape(-1, *[1] * len(self.sizes)) for each in self.scale)
            made -= mean
            made /= std
        return made.astype(self.parts.dtype, copy=False)

    def _at(self, number):
        return contextlib.nullcontext(self._decoded.get(number)) if self._shelf is None else self._shelf.get(number)

    # ---- a sample ----

    def __len__(self):
        return len(self.own) * len(self.corners)

    def _corner(self, number):
        corner = self.corners[number].tolist()
        if not self.is_drawn:
            return corner
        return [begin + random.randint(0, max(0, min(side - 1, size - side - begin))) for begin, side, size in zip(corner, self.patch, self.sizes)]

    def __getitem__(self, index):
        own, number = divmod(range(len(self))[index], len(self.corners))
        rows, corner = self.own[own] + self.offsets, self._corner(number)
        cut = tuple(slice(begin, begin + side) for begin, side in zip(corner, self.patch or self.sizes))
        made = np.empty((len(rows), len(self.channels), *(self.patch or self.sizes)), self.parts.dtype)
        blocks = self.block_of[rows]
        for block in np.unique(blocks).tolist():
            with self._at(block) as values:
                for place in np.flatnonzero(blocks == block).tolist():
                    made[place] = values[(int(self.within[rows[place]]), slice(None), *cut)]
        sample, at = {}, 0
        for name, steps in self.parts.steps.items():
            sample.update(self._fields(name, made[at:at + len(steps)]))
            at += len(steps)
        sample[TIME] = self.times[own]
        return sample if self.patch is None else {**sample, CORNER: np.array(corner, np.int64)}

    def _fields(self, name, values):
        """One of all channels, or one a variable."""
        if self.parts.is_stacked:
            return {name: values}
        made, at = {}, 0
        for variable in self.variables:
            made[f"{name}/{variable.name}"] = values[:, at] if variable.level is None else values[:, at:at + len(variable.names)]
            at += len(variable.names)
        return made
