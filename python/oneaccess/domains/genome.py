# SPDX-License-Identifier: Apache-2.0
"""Samples of FASTA files, many at once: windows of a genome and records, as arrays that are the columns of a batch."""

import contextlib
from typing import Any

import numpy as np

from .. import record
from ..errors import ArgumentError
from ..sources.stores import PerProcess
from ..sources.tables import stamp_of, unchanged
from .coverage import Tracks
from .fasta import Bgzip, Plain, Records, check, header_of, letters_of, opened, places_of
from .intervals import Genome, read, windows_of
from .letters import Letters, complement

_N = ord("N")


class Rows(PerProcess):
    """Samples as dicts, and as records (__getrecords__) of the pool. words: uint64 [samples, 4], random numbers of each."""

    most: dict[str, int]
    is_random = False
    _sheet = None               # of a process

    def __init__(self, source: Plain | Bgzip, letters: Letters):
        self.path, self.stamp, self.letters = source.path, stamp_of(source.path), letters
        self.bgzip = None if isinstance(source, Plain) else source.blocks
        self.made_by = [Letters, Tracks, letters_of, letters.function]       # whose code is told apart (wrap())

    def open(self):
        unchanged(self.path, self.stamp)
        return opened(self.path, self.bgzip)

    def source(self):
        unchanged(self.path, self.stamp)
        return self.opened()

    def columns(self, indices: Any, words: Any, out: Any = None) -> dict[str, Any]:
        """{field: array [samples, ...], or (values, offsets)}. out: where the sequences go, if they are of one length."""
        raise NotImplementedError

    def __getitem__(self, index):
        return self.__getitems__([range(len(self))[index]])[0]

    def __getitems__(self, indices):
        words = np.random.randint(0, 1 << 63, (len(indices), 4), np.uint64) if self.is_random else None
        return self._samples(self.columns(np.asarray(indices), words))

    def _samples(self, columns):
        first = next(iter(columns.values()))
        count = len(first[1]) - 1 if isinstance(first, tuple) else len(first)
        return [{name: self._value(name, column, at) for name, column in columns.items()} for at in range(count)]

    def _value(self, name, column, at):
        if not isinstance(column, tuple):
            return column[at]
        value = column[0][column[1][at]:column[1][at + 1]]
        return value.tobytes().decode("utf-8", "replace") if self._is_text(name) else value

    def _is_text(self, name):
        return name != "sequence" or self.letters.is_text

    def __getrecords__(self, indices, layout, words=None):
        if not self.most:
            return self._of_one_size(np.asarray(indices), layout, words)
        return record.records(self.columns(np.asarray(indices), words), layout)

    def _of_one_size(self, indices, layout, words):
        count = len(indices)
        if self._sheet is None or self._sheet.most < count:
            self._sheet = record.Sheet(layout, count)
        arrays = self._sheet.arrays
        for name, values in self.columns(indices, words, arrays["sequence"][:count]).items():
            if name != "sequence":
                arrays[name][:count] = values
        return self._sheet.records(count)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_sheet"}


# ---- windows ----


class WindowRows(Rows):
    def __init__(self, path, folder, letters, intervals, length, stride, chromosomes, exclude, is_whole, columns, jitter, shift, turns, tracks, bin_, track_length, is_mean, pairs):
        with contextlib.closing(opened(path)) as source:
            super().__init__(source, letters)
            self.places = places_of(source, folder)
        self.genome = Genome(path, self.places.names, self.places.length)
        chosen = self.genome.chosen(chromosomes)
        found = None if intervals is None else read(intervals, self.genome, None if chromosomes is None else chosen, columns)
        if intervals is None and columns:
            raise ArgumentError("columns= is of intervals=, which are not there")
        if found is not None and found.label is not None and "label" in columns:
            raise ArgumentError("columns= makes a field 'label', and intervals= are those of classes, whose numbers it has: {another name: column}")
        left_out = None if exclude is None else read(exclude, self.genome, what="exclude=", may_differ=True)
        windows, self.length = windows_of(self.genome, found, chosen, length, stride, left_out, jitter, is_whole)
        self.chromosome, self.start, self.strand, self.fields, self.classes = windows
        self.chromosomes, self.is_whole, self.jitter, self.shift, self.turns = self.places.names, is_whole, jitter, shift, turns
        self.is_random = bool(jitter or shift or turns)
        self.track_length = self.length if track_length is None else track_length
        if tracks is not None and (self.track_length > self.length or self.track_length % bin_):
            raise ArgumentError(f"track_length={self.track_length:,}: a multiple of bin={bin_:,}, and at most length={self.length:,}")
        self.tracks = None if tracks is None else Tracks(tracks, self.genome, bin_, self.track_length, is_mean, pairs)
        self.most = {"sequence": self.length + letters.beside} if letters.is_ragged else {}

    def __len__(self):
        return len(self.start)

    def lengths(self):
        return np.full(len(self), self.length, np.int64)

    def _moved(self, start, most, size, word):
        """By up to most letters; one that may not leave the chromosome is drawn where it is in it."""
        low, high = start - most, start + most
        if self.is_whole:
            low, high = np.maximum(low, 0), np.minimum(high, size - self.length)
        return low + (word % (high - low + 1).astype(np.uint64)).astype(np.int64)

    def columns(self, indices, words, out=None):
        chromosome, start, strand = (values[indices].astype(np.int64) for values in (self.chromosome, self.start, self.strand))
        size = self.genome.lengths[chromosome]
        if self.jitter:
            start = self._moved(start, self.jitter, size, words[:, 0])
        begin = self._moved(start, self.shift, size, words[:, 1]) if self.shift else start
        if self.turns:
            strand = np.where(words[:, 2] & np.uint64(1), -strand, strand)
        letters, turned = self._letters(chromosome, begin), np.flatnonzero(strand < 0)
        letters[turned] = complement(letters[turned, ::-1])
        offsets = np.arange(len(indices) + 1) * self.length
        made = {"sequence": self.letters.made(letters.reshape(-1), offsets, lambda at: self._called(chromosome[at], begin[at]), self.letters.is_ragged, out)}
        made.update({name: values[indices] for name, values in self.fields.items()})
        if self.tracks is not None:
            values = self.tracks.read(chromosome, start + (self.length - self.track_length) // 2)
            values[turned] = values[turned][:, self.tracks.order, ::-1]
            made["tracks"] = values if self.letters.is_first else np.ascontiguousarray(values.transpose(0, 2, 1))
        return {**made, "chromosome": chromosome, "start": start, "strand": strand}

    def _letters(self, chromosome, begin):
        """uint8 [windows, length]"""
        source, made = self.source(), np.full((len(begin), self.length), _N, np.uint8)
        for row, number, first in zip(made, chromosome.tolist(), begin.tolist()):
            low, high = max(first, 0), min(first + self.length, int(self.places.length[number]))
            if low < high:
                row[low - first:high - first] = letters_of(source, self.places, number, low, high)
        if len(made):
            self._check(made, chromosome, begin)
        return made

    def _check(self, made, chromosome, begin):
        try:
            check(made.reshape(-1), "")
        except Exception:
            for row, number, first in zip(made, chromosome.tolist(), begin.tolist()):
                check(row, f"{self.path}, {self.chromosomes[number]}", first)
            raise

    def _called(self, number, begin):
        return f"{self.path}, {self.chromosomes[int(number)]}:{int(begin):,}-{int(begin) + self.length:,}"

    def __example__(self):
        """What samples are like, also where the first ones are bad."""
        made = {"sequence": self.letters.example(self.length, self.letters.is_ragged)}
        made.update({name: values.dtype.type(0) for name, values in self.fields.items()})
        if self.tracks is not None:
            shape = (len(self.tracks.names), self.tracks.count)
            made["tracks"] = np.zeros(shape if self.letters.is_first else shape[::-1], np.float32)
        return {**made, **dict.fromkeys(("chromosome", "start", "strand"), np.int64(0))}


# ---- records ----


class RecordRows(Rows):
    def __init__(self, path, folder, letters, fields, crop):
        with contextlib.closing(opened(path)) as source:
            super().__init__(source, letters)
            self.records = Records(source, folder)
        self.fields, self.crop = fields, crop
        longest, header = int(self.records.length.max()), int((self.records.offset - self.records.header).max())
        self.is_random = crop is not None and longest > crop
        self.longest = min(longest, crop or longest)
        self.most = {"sequence": max(1, self.longest) + letters.beside, **dict.fromkeys(fields, header)}

    def __len__(self):
        return len(self.records)

    def lengths(self):
        lengths = np.array(self.records.length)
        return lengths if self.crop is None else np.minimum(lengths, self.crop)

    def columns(self, indices, words, out=None):
        source, parts, texts = self.source(), [], []
        for at, index in enumerate(np.asarray(indices).tolist()):
            header, offset = int(self.records.header[index]), int(self.records.offset[index])
            end = int(self.records.header[index + 1]) if index + 1 < len(self) else self.records.size
            data = np.frombuffer(source.read(offset, end - offset), np.uint8)
            data = data[(data != 10) & (data != 13)]
            texts.append(header_of(source, header, offset))
            if self.crop is not None and len(data) > self.crop:
                first = int(words[at, 0] % np.uint64(len(data) - self.crop + 1))
                data = data[first:first + self.crop]
            check(data, f"{self.path}, {texts[-1][0]}")
            parts.append(data)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        made = {"sequence": self.letters.made(np.concatenate(parts), offsets, lambda at: f"{self.path}, {texts[at][0]}", True)}
        for name in self.fields:
            words_of = [text[name == "description"].encode() for text in texts]
            made[name] = np.frombuffer(b"".join(words_of), np.uint8), np.concatenate([[0], np.cumsum([len(word) for word in words_of])]).astype(np.int64)
        return made

    def __example__(self):
        return {"sequence": self.letters.example(0, True), **dict.fromkeys(self.fields, "")}
