# SPDX-License-Identifier: Apache-2.0
"""Intervals of a genome: of BED files, tables, or all that there is; and which windows they make."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import ragged, urls
from ..errors import ArgumentError, DatasetError, not_there
from ..sources.folders import shown
from ..writing.texts import lines_of
from .places import classed, rows_of_table

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_MOST_LINE = 1 << 20
_MOST = 1 << 31             # windows
_BED = ("chrom", "start", "end", "name", "score", "strand", "thickStart", "thickEnd", "itemRgb", "blockCount", "blockSizes", "blockStarts")
_PEAK = (*_BED[:6], "signalValue", "pValue", "qValue", "peak")
_NAMES = {"chrom": ("chrom", "chromosome", "chr", "seqnames", "contig"), "start": ("start", "chromStart", "chrom_start"), "end": ("end", "stop", "chromEnd", "chrom_end"),
          "strand": ("strand",)}
_STRANDS = {"+": 1, "-": -1, ".": 1, "": 1, "*": 1, "1": 1, "-1": -1}


class Genome:
    """Chromosomes by name, one behind the other, so that a place in any is one number."""

    def __init__(self, path: str, names: Sequence[str], lengths: Any):
        self.path, self.names, self.lengths = path, list(names), np.asarray(lengths, np.int64)
        self.begins = np.concatenate([[0], np.cumsum(self.lengths)])
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def find(self, name: str) -> int | None:
        return self._numbers.get(name)

    def chosen(self, names: Sequence[str] | str | None) -> set[int]:
        """The numbers of those that are meant."""
        if names is None:
            return {*range(len(self.names))}
        names = [names] if isinstance(names, str) else [*names]
        missing = [str(name) for name in names if self.find(name) is None]
        if missing or not names:
            raise ArgumentError(f"chromosomes= names {shown(missing) or 'none'}; {self.path} has {shown(self.names)}")
        return {self.find(name) for name in names}


class Intervals(NamedTuple):
    """Of each its chromosome, begin, end and strand (1 or -1); {column: values}; and the class of each, if there are some."""

    chromosome: Any
    start: Any
    end: Any
    strand: Any
    columns: dict[str, list]
    label: list | None = None


def _whole(value):
    """A CSV's numbers are texts, and pandas writes some as 12.0."""
    number = float(value)
    if not number.is_integer():
        raise ValueError
    return int(number)


class _Builder:
    """Checks each interval."""

    def __init__(self, genome, chosen, columns, may_differ):
        self.genome, self.chosen, self.columns, self.may_differ = genome, chosen, columns, may_differ
        self.rows, self.values, self.strange = [], {name: [] for name in columns}, []

    def add(self, where, chromosome, start, end, strand, values):
        number = self.genome.find(chromosome)
        if number is None and (self.may_differ or self.chosen is not None):
            self.strange.append((where, chromosome))
            return
        if number is None:
            raise DatasetError(f"{where}: {self.genome.path} has no chromosome {chromosome!r}; it has {shown(self.genome.names)}")
        try:
            start, end = map(_whole, (start, end))
        except (TypeError, ValueError, OverflowError):
            raise DatasetError(f"{where}: start {start!r} and end {end!r}: whole numbers, the first letter being 0") from None
        if not 0 <= start < end <= self.genome.lengths[number]:
            raise DatasetError(f"{where}: {start:,} to {end:,} is no part of {chromosome}, which has {self.genome.lengths[number]:,} letters in {self.genome.path}:"
                               " start is counted from 0, end is behind the last; is it of another assembly?")
        if self.chosen is not None and number not in self.chosen:
            return
        way = _STRANDS.get(str(strand))
        if way is None:
            raise DatasetError(f"{where}: strand {strand!r}: it is +, - or .")
        self.rows.append((number, start, end, way))
        for name, value in zip(self.columns, values):
            self.values[name].append(value)

    def made(self, what):
        if not self.rows and self.strange:
            where, name = self.strange[0]
            raise DatasetError(f"{where}: {self.genome.path} has no chromosome {name!r}, nor any of {what}; it has {shown(self.genome.names)}")
        return Intervals(*np.array(self.rows, np.int64).reshape(-1, 4).T, self.values)


def _lines(path) -> Iterator[tuple[str, str]]:
    """Those of a BED file that are none about how a browser shows it."""
    if not os.path.exists(path):
        raise not_there(f"there is no {path}", path)
    for number, line in enumerate(lines_of(path, ".gz" if path.lower().endswith((".gz", ".bgz")) else "", _MOST_LINE), 1):
        text = line.decode("utf-8", "replace").strip("\r\n")
        if text.strip() and not text.startswith(("#", "track", "browser")):
            yield f"{path}:{number}", text


def _place_in_bed(path, column):
    """Which of a line's parts a column is: a name, or a number from 1 on, as of cut and awk."""
    plain = path.lower().removesuffix(".gz")
    names = _PEAK if plain.endswith(".narrowpeak") else _PEAK[:9] if plain.endswith(".broadpeak") else _BED
    if isinstance(column, int) and not isinstance(column, bool) and 1 <= column <= 1000:
        return column - 1
    if column not in names:
        raise ArgumentError(f"columns= names {column!r}; {path} has {', '.join(names)}, or numbers, of which 1 is the first column")
    return names.index(column)


def _of_bed(path, builder):
    places = [_place_in_bed(path, column) for column in builder.columns.values()]
    for where, text in _lines(path):
        parts = text.split("\t") if "\t" in text else text.split()
        if len(parts) < 3:
            raise DatasetError(f"{where}: {len(parts)} columns; a line of BED has chromosome, start and end, with tabs between them")
        if places and len(parts) <= max(places):
            raise DatasetError(f"{where}: {len(parts)} columns, and columns= names number {max(places) + 1}")
        builder.add(where, *parts[:3], parts[5] if len(parts) > 5 else ".", [parts[place] for place in places])


def _column(names, what, where):
    found = next((name for name in _NAMES[what] if name in names), None)
    if found is None and what != "strand":
        raise DatasetError(f"{where}: no column {' or '.join(_NAMES[what][:3])}; there are: {', '.join(map(str, names))}")
    return found


def _of_rows(rows, builder):
    """rows: (where, {column: value})"""
    for where, row in rows:
        missing = next((column for column in builder.columns.values() if column not in row), None)
        if missing is not None:
            raise ArgumentError(f"columns= names {missing!r}; {where} has {', '.join(map(str, row))}")
        chromosome, start, end, strand = (row.get(_column(row, what, where), ".") for what in _NAMES)
        builder.add(where, str(chromosome), start, end, strand, [row[column] for column in builder.columns.values()])


def _of_table(table, builder):
    """Of pandas, polars, or a dict of arrays."""
    names = [*(table.keys() if isinstance(table, Mapping) else table.columns)]
    columns = [np.asarray(table[name]).tolist() for name in names]
    if len({len(column) for column in columns}) > 1:
        raise ArgumentError(f"intervals= has columns of different lengths: {', '.join(f'{name}: {len(column)}' for name, column in zip(names, columns))}")
    _of_rows(((f"intervals, row {number}", dict(zip(names, row))) for number, row in enumerate(zip(*columns))), builder)


def _is_path(given):
    return isinstance(given, (str, os.PathLike))


def read(given: Any, genome: Genome, chosen: set[int] | None = None, columns: Mapping[str, str | int] | None = None, *, what: str = "intervals=",
         may_differ: bool = False) -> Intervals:
    """The intervals of a BED file, a table, a list of these, or {class: file}. chosen: of these chromosomes. may_differ: those of chromosomes that the genome
    has not are left out."""
    if isinstance(given, Mapping) and given and all(_is_path(path) or isinstance(path, (list, tuple)) and all(map(_is_path, path)) for path in given.values()):
        parts = {name: read(path, genome, chosen, columns, what=what, may_differ=may_differ) for name, path in given.items()}
        return _joined([*parts.values()])._replace(label=[name for name, part in parts.items() for _ in part.start])
    if isinstance(given, (list, tuple)) and given:
        return _joined([read(each, genome, chosen, columns, what=what, may_differ=may_differ) for each in given])
    builder = _Builder(genome, chosen, dict(columns or {}), may_differ)
    if _is_path(given):
        path = urls.local(given, what)
        (_of_rows(rows_of_table(path), builder) if path.lower().endswith(_TABLES) else _of_bed(path, builder))
        return builder.made(path)
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        raise ArgumentError(f"{what} is {given!r}: a BED file, a table with columns chrom, start and end, a list of these, or {{class: file}}")
    _of_table(given, builder)
    return builder.made(what)


def _joined(parts):
    return Intervals(*(np.concatenate([part[at] for part in parts]) for at in range(4)), {name: [value for part in parts for value in part.columns[name]]
                                                                                         for name in parts[0].columns})


class Regions:
    """Places of a genome that intervals cover, together: ascending, none of them touching another."""

    def __init__(self, genome: Genome, intervals: Intervals):
        starts, ends = (genome.begins[intervals.chromosome] + places for places in (intervals.start, intervals.end))
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        if len(starts):
            is_new = np.concatenate([[True], starts[1:] > ends[:-1]])
            starts, ends = starts[is_new], ends[np.append(np.flatnonzero(is_new)[1:] - 1, len(ends) - 1)]
        self.starts, self.ends, self._before = starts, ends, np.concatenate([[0], np.cumsum(ends - starts)])

    def covered(self, places: Any) -> Any:
        """How many of the letters before each place are in them."""
        number = np.searchsorted(self.ends, places, "right")
        begun = np.append(self.starts, np.iinfo(np.int64).max)[number]
        return self._before[number] + np.maximum(places - begun, 0)


# ---- windows ----


class Windows(NamedTuple):
    """chromosome, first letter (which may be before the chromosome's) and strand of each; {field: values}; {field: the names of its classes}."""

    chromosome: Any
    start: Any
    strand: Any
    columns: dict[str, Any]
    classes: dict[str, list[str]]


def _tiles(starts, ends, length, stride, is_whole):
    """Of each interval the windows in it: (which interval, where). The last ones of an interval go beyond its end, unless they are to be whole."""
    sizes = ends - starts
    counts = np.where(sizes >= length, (sizes - length) // stride + 1, 0) if is_whole else -(-np.maximum(sizes - length, 0) // stride) + 1
    if counts.sum() > _MOST:
        raise ArgumentError(f"stride={stride:,} makes {counts.sum():,} windows, at most {_MOST:,} are samples: give a longer stride")
    which = np.repeat(np.arange(len(starts)), counts)
    return which, starts[which] + ragged.places(np.zeros(len(counts), np.int64), counts) * stride


def windows_of(genome: Genome, intervals: Intervals | None, chosen: set[int], length: int | None, stride: int | None, exclude: Intervals | None, jitter: int,
               is_whole: bool) -> tuple[Windows, int]:
    """The windows, and how long they are."""
    if intervals is None:
        numbers = np.array(sorted(chosen), np.int64)
        numbers = numbers[genome.lengths[numbers] > 0]
        which, starts = _tiles(np.zeros(len(numbers), np.int64), genome.lengths[numbers], length, stride or length, is_whole)
        intervals = Intervals(numbers, None, None, np.ones(len(numbers), np.int64), {})
    elif stride is not None:
        which, starts = _tiles(intervals.start, intervals.end, length, stride, True)
    else:
        if length is None:
            lengths = np.unique(intervals.end - intervals.start)
            if len(lengths) > 1:
                raise ArgumentError(f"the intervals have {lengths[0]:,} to {lengths[-1]:,} letters: length= says how long windows about their middles are, or with stride=,"
                                    " in them")
            length = int(lengths[0]) if len(lengths) else 1
        which, starts = np.arange(len(intervals.start)), (intervals.start + intervals.end) // 2 - length // 2
    chromosome = intervals.chromosome[which]
    sizes, kept = genome.lengths[chromosome], np.ones(len(which), bool)
    if is_whole:
        kept &= (starts >= 0) & (starts + length <= sizes)
    if exclude is not None and len(exclude.start):
        regions = Regions(genome, exclude)
        first, last = (regions.covered(genome.begins[chromosome] + np.clip(places, 0, sizes)) for places in (starts - jitter, starts + length + jitter))
        kept &= first == last
    which = which[kept]
    columns, classes = {}, {}
    for name, values in {**({} if intervals.label is None else {"label": intervals.label}), **intervals.columns}.items():
        columns[name], words = classed([values[at] for at in which.tolist()])
        if words is not None:
            classes[name] = words
    return Windows(chromosome[kept].astype(np.int32), starts[kept], intervals.strand[which].astype(np.int8), columns, classes), length
