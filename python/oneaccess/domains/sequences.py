# SPDX-License-Identifier: Apache-2.0
"""Sequences of FASTA files for the pool (wrap()): windows of a genome, with tracks, or the records of a file, as of proteins. A window is read alone,
many at once are made by one call of NumPy each, and what is drawn for one depends on random numbers that are its own."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import urls
from ..columns import named
from ..errors import ArgumentError, DatasetError, needs
from ..sources.noted import folder_of
from ..wrapped import Wrapped
from .scenes import whole

_MOST_LENGTH = 1 << 26
_BORDERS = ("pad", "drop")
_REDUCE = ("mean", "sum")


class Sequences(Wrapped):
    """Of from_fasta(), for Loader.

    lengths: int64 [samples], letters of each, for orders.by_length(). classes: {field: names} of columns of words, and of label. Of windows also: windows,
    int64 [samples, 3] (chromosome, start, strand); chromosomes: their names, by number; tracks: the names of the tracks, in the order of a batch.
    """

    def __init__(self, rows, *, name, version, workers, timeout, room, keep):
        super().__init__(rows, name, version, workers, timeout, rows.is_random, room, keep, rows.most, exact=True)
        self.classes = getattr(rows, "classes", {})
        self.chromosomes, self.tracks = getattr(rows, "chromosomes", []), rows.tracks.names if getattr(rows, "tracks", None) else []

    @property
    def lengths(self):
        return self.dataset.lengths()

    @property
    def windows(self):
        import numpy as np
        rows = self.dataset
        if not hasattr(rows, "chromosome"):
            raise ArgumentError("samples are records, and no windows")
        return np.column_stack([rows.chromosome, rows.start, rows.strand]).astype(np.int64)


def _one_of(what, value, known):
    if value not in known:
        raise ArgumentError(f"{what} is {value!r}; there are: {', '.join(known)}")
    return value


def _columns_of(columns):
    """{field: column}"""
    made = dict(columns) if isinstance(columns, Mapping) else {f"column{column}" if isinstance(column, int) else column: column
                                                              for column in ([columns] if isinstance(columns, (str, int)) else columns)}
    taken = next((name for name in made if name in ("sequence", "tracks", "chromosome", "start", "strand")), None)
    if taken:
        raise ArgumentError(f"columns= makes a field {taken!r}, which a batch has of its own: {{another name: column}}")
    return made


def from_fasta(path: str | os.PathLike, intervals: Any = None, length: int | None = None, *, stride: int | None = None,
               chromosomes: Sequence[str] | str | None = None, exclude: Any = None, border: str = "pad", columns: Any = None, jitter: int = 0, shift: int = 0,
               reverse_complement: bool = False, encode: Any = None, channels: str = "first", unknown: float | None = None, dtype: str | None = None,
               bos: int | None = None, eos: int | None = None, tracks: Any = None, bin: int = 1, track_length: int | None = None, reduce: str = "mean",
               strand_pairs: Sequence[tuple[str, str]] | None = None, crop: int | None = None, index: str | os.PathLike | None = None,
               workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Sequences:
    """Sequences of a FASTA file, for Loader: windows of a genome, or each record of a file of proteins, genes or reads.

        data = oa.from_fasta("hg38.fa", {"peak": "peaks.bed", "background": "others.bed"}, 1000, jitter=50, reverse_complement=True)
        for batch in oa.Loader(data, batch_size=64): batch["sequence"], batch["label"]              # float32 [64, 4, 1000]; int64 [64]
        data = oa.from_fasta("hg38.fa", "regions.bed", 196608, channels="last", tracks={"CTCF": "ctcf.bw"}, bin=128, track_length=114688)
        for batch in oa.Loader(data, batch_size=2): batch["sequence"], batch["tracks"]              # [2, 196608, 4]; [2, 896, 1]
        data = oa.from_fasta("uniref50.fasta", encode=tokenizer.get_vocab(), bos=0, eos=2, unknown=3, crop=1022)
        for batch in oa.Loader(data, batch_size=32): batch["sequence"], batch["name"]               # Ragged of int64; a list of str

    A batch of windows has sequence; label and those of columns=; tracks; chromosome (a number: data.chromosomes has the names), start (from 0 on; before 0
    where the window begins before the chromosome) and strand (1 or -1), all int64. A batch of records has sequence, name and description.

    path: the file, plain or by bgzip; one by gzip is refused. Its .fai is used if it is not older than the file, and must be right; else the file is read once
        from end to end, and where records lie is kept (index=).

    Windows of a genome, where intervals= or length= is given:

    intervals: a BED file (.bed, .narrowPeak, .broadPeak, also .gz), a table (.csv, .tsv, .jsonl, a DataFrame, a dict of arrays) with columns chrom, start, end and
        maybe strand, or a list of these. {class: file}: label is the class's number, data.classes["label"] has the names. Default: all chromosomes are tiled.
    length: letters of a window about an interval's middle, (start + end) // 2. Default: the intervals', if they have one length.
    stride: from one window to the next: in each interval, as many as fit; of chromosomes, default length.
    chromosomes: only these.
    exclude: a BED file or table: windows with a letter in it, also where jitter may take them, are left out.
    border: "pad": beyond the ends of a chromosome a window has N, and tracks have 0; "drop": there are no such windows.
    columns: columns of the intervals that are fields, by name or number (1 is a BED file's first), or {field: column}. Words become the numbers of their classes,
        data.classes[field].
    jitter: each epoch moves a window, with its tracks, by up to so many letters to either side. With a tiling stride // 2 draws everywhere with equal chance.
    shift: the same of the sequence alone, as Basenji, Enformer and Borzoi are trained (3).
    reverse_complement: True: each epoch turns half of the windows, drawn anew. A window of strand - is turned in any case, or turned back.
    tracks: {name: file}, or a folder, a pattern or a list of files: BigWig, by pyBigWig, or BED, in which a letter is 1 where an interval is. float32
        [tracks, bins], or [bins, tracks] with channels="last"; turned where the sequence is. A letter without a value is 0.
    bin: letters of a bin, which has the mean of its values, or the sum (reduce="sum"), computed in float64.
    track_length: letters in the middle of the window that tracks are of; a multiple of bin. Default: length.
    strand_pairs: [(plus, minus)]: tracks that change places where a window is turned.

    Records, else:

    crop: of a longer record so many letters, from a place that each epoch draws anew.
    columns: default ["name", "description"].

    Both:

    encode: "onehot" (default of windows): [4, length] of A, C, G, T (or U), with channels="last" [length, 4]; "tokens": A, C, G, T, N are 0 to 4; "text"
        (default of records), in upper case; a vocabulary, as letters in the order of their tokens or {letter: token}, whose longer keys are ignored; or a
        tokenizer as oa.tokenize() takes them, such as a function of a text. Upper and lower case are the same, unless a vocabulary has both.
    unknown: what other letters are (N and all of IUPAC's): one-hot, each of the four numbers, 0 or 0.25; of a vocabulary their token. Default: 0; with "tokens"
        4; else a letter that is missing makes a bad sample.
    dtype: of one-hot float32, float16 or uint8; of tokens int64, int32, int16 or uint8.
    bos, eos: tokens before and behind those of a vocabulary.
    index: the folder that keeps where records lie. Default: $XDG_CACHE_HOME/oneaccess/fasta, else ~/.cache/oneaccess/fasta.

    Processes of the pool read windows by pread, so a genome is in the page cache alone. A file that was written to since makes bad samples. The other
    arguments are those of wrap().
    """
    needs("numpy", "oneaccess.from_fasta()")
    from .genome import RecordRows, WindowRows
    from .letters import Letters
    is_genome = intervals is not None or length is not None
    path, folder = urls.local(path, "from_fasta()"), folder_of("fasta", index)
    _one_of("channels", channels, ("first", "last")), _one_of("border", border, _BORDERS), _one_of("reduce", reduce, _REDUCE)
    letters = Letters(encode if encode is not None else "onehot" if is_genome else "text", dtype, unknown, channels == "first", bos, eos)
    options = {"name": name, "version": version, "workers": workers, "timeout": timeout, "room": room, "keep": keep}
    if not is_genome:
        given = {"stride": stride, "chromosomes": chromosomes, "exclude": exclude, "jitter": jitter, "shift": shift, "reverse_complement": reverse_complement,
                 "tracks": tracks, "track_length": track_length, "strand_pairs": strand_pairs}
        other = next((what for what, value in given.items() if value), None)
        if other:
            raise ArgumentError(f"{other}= is of windows: give intervals= or length=; without them each record of {path} is a sample")
        fields = named(("name", "description") if columns is None else columns)
        strange = next((each for each in fields if each not in ("name", "description")), None)
        if strange:
            raise ArgumentError(f"columns= names {strange!r}; a record has name and description")
        return Sequences(RecordRows(path, folder, letters, fields, None if crop is None else whole("crop", crop, 1, _MOST_LENGTH)), **options)
    if crop is not None:
        raise ArgumentError("crop= is of records, and windows have a length: jitter= moves them")
    for what, value, least in (("length", length, 1), ("stride", stride, 1), ("track_length", track_length, 1), ("jitter", jitter, 0), ("shift", shift, 0), ("bin", bin, 1)):
        if value is not None:
            whole(what, value, least, _MOST_LENGTH)
    if tracks is None and (track_length is not None or strand_pairs or bin != 1):
        raise ArgumentError("bin=, track_length= and strand_pairs= are about tracks=")
    rows = WindowRows(path, folder, letters, intervals, length, stride, chromosomes, exclude, border == "drop", _columns_of(columns or ()), jitter, shift,
                      bool(reverse_complement), tracks, bin, track_length, reduce == "mean", strand_pairs)
    if not len(rows):
        raise DatasetError(f"{path} has no such window: they are left out by border=\"drop\" or exclude=, or intervals are shorter than length= with stride=")
    return Sequences(rows, **options)
