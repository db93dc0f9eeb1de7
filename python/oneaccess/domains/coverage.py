# SPDX-License-Identifier: Apache-2.0
"""Tracks over a genome for from_fasta(): BigWig files, by pyBigWig, and BED files, which cover a letter or do not; of windows, in bins."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import urls
from ..errors import ArgumentError, DatasetError, needs
from ..sources.stores import PerProcess
from ..sources.tables import Kept, files_of, stamp_of, unchanged
from . import intervals
from .intervals import Genome, Regions

_BIGWIG, _BED = (".bw", ".bigwig"), (".bed", ".bed.gz", ".narrowpeak", ".narrowpeak.gz", ".broadpeak", ".broadpeak.gz")
_MOST_OPEN = 256


def _library():
    return needs("pyBigWig", "tracks= of BigWig files", "pyBigWig (Debian: apt-get install python3-pybigwig)")


def _files(tracks):
    """{name: path}"""
    if isinstance(tracks, Mapping):
        found = {str(name): urls.local(path, "tracks=") for name, path in tracks.items()}
    else:
        found = {}
        for path in files_of(tracks, _BIGWIG + _BED, "track", "from_fasta()"):
            name = os.path.basename(path).split(".")[0]
            if name in found:
                raise ArgumentError(f"tracks= has {found[name]} and {path}, which have one name: {{name: file}}")
            found[name] = path
    if not found:
        raise ArgumentError("tracks={} names none: {name: BigWig or BED file}")
    for path in found.values():
        if not path.lower().endswith(_BIGWIG + _BED):
            raise ArgumentError(f"tracks= has {path}: BigWig files ({', '.join(_BIGWIG)}) or BED files ({', '.join(_BED[::2])}, also .gz)")
    return found


class Tracks(PerProcess):
    """[windows, tracks, bins] of float32, of numbers that are summed in float64."""

    def __init__(self, tracks: Any, genome: Genome, bin_: int, length: int, is_mean: bool, pairs: Any):
        self.files, self.genome, self.bin, self.length, self.is_mean = _files(tracks), genome, bin_, length, is_mean
        self.names, self.count = [*self.files], length // bin_
        self.stamps = {path: stamp_of(path) for path in self.files.values()}
        self.regions, self.has, self.order = {}, {}, self._order(pairs)
        for name, path in self.files.items():
            if path.lower().endswith(_BED):
                self.regions[name] = Regions(genome, intervals.read(path, genome, what="tracks=", may_differ=True))
            else:
                self.has[name] = self._look(path)

    def _order(self, pairs):
        """Which track a track is on the other strand."""
        order = np.arange(len(self.names))
        for pair in pairs or ():
            if isinstance(pair, str) or len(pair) != 2 or any(name not in self.names for name in pair):
                raise ArgumentError(f"strand_pairs= has {pair!r}: pairs of names of tracks=, which are {', '.join(self.names)}")
            one, other = map(self.names.index, pair)
            if order[one] != one or order[other] != other:
                raise ArgumentError(f"strand_pairs= names a track of {pair!r} twice")
            order[one], order[other] = other, one
        return order

    def _open(self, path):
        unchanged(path, self.stamps[path])
        try:
            return _library().open(path)
        except RuntimeError:
            raise DatasetError(f"{path} is no BigWig file that pyBigWig can read") from None

    def _look(self, path):
        """Which chromosomes it has: their lengths are the genome's."""
        file = self._open(path)
        try:
            if not file.isBigWig():
                raise DatasetError(f"{path} is a BigBed file: tracks= takes BigWig and BED files")
            chromosomes = file.chroms()
        finally:
            file.close()
        has = np.zeros(len(self.genome.names), bool)
        for name, length in chromosomes.items():
            number = self.genome.find(name)
            if number is not None and length != self.genome.lengths[number]:
                raise DatasetError(f"{path}: {name} has {length:,} letters, and {self.genome.lengths[number]:,} in {self.genome.path}: it is of another assembly")
            if number is not None:
                has[number] = True
        if not has.any():
            raise DatasetError(f"{path} has no chromosome of {self.genome.path}: {', '.join([*chromosomes][:3])}, ...; it has {', '.join(self.genome.names[:3])}, ...")
        return has

    def open(self):
        return Kept(_MOST_OPEN, lambda name: self._open(self.files[name]), lambda file: file.close())

    def read(self, chromosome: Any, start: Any) -> Any:
        """Of windows that begin there; what is beyond a chromosome is 0."""
        made = np.zeros((len(start), len(self.names), self.count), np.float32)
        for at, name in enumerate(self.names):
            if name in self.regions:
                edges = np.clip(start[:, None] + np.arange(self.count + 1) * self.bin, 0, self.genome.lengths[chromosome][:, None]) + self.genome.begins[chromosome][:, None]
                sums = np.diff(self.regions[name].covered(edges)).astype(np.float64)
                made[:, at] = sums / self.bin if self.is_mean else sums
                continue
            for row, (number, begin) in enumerate(zip(chromosome.tolist(), start.tolist())):
                if self.has[name][number]:
                    made[row, at] = self._binned(name, number, begin)
        return made

    def _binned(self, name, number, begin):
        first, last = max(begin, 0), min(begin + self.length, int(self.genome.lengths[number]))
        if first >= last:
            return 0
        try:
            values = self.opened().get(name).values(self.genome.names[number], first, last, **({"numpy": True} if _library().numpy else {}))
        except RuntimeError as why:
            self.opened().forget(name)
            raise DatasetError(f"{self.files[name]}, {self.genome.names[number]}:{first:,}-{last:,}: {why}") from None
        values = np.asarray(values, np.float32)
        values = np.where(np.isnan(values), np.float32(0), values)
        if last - first < self.length:
            whole = np.zeros(self.length, np.float32)
            whole[first - begin:last - begin] = values
            values = whole
        if self.bin == 1:
            return values
        sums = np.add.reduceat(values, np.arange(0, self.length, self.bin), dtype=np.float64)
        return sums / self.bin if self.is_mean else sums
