# SPDX-License-Identifier: Apache-2.0
"""Texts to be tokenized: what a source has, cut into pieces that another process parses. A piece is small, pickled soon, and knows
where its rows come from; JSON and Arrow are parsed where the tokenizer runs, so that the process that reads does little else."""

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import ArgumentError, DatasetError, TransformError
from ..sources.lines import parsed_json
from ..sources.tables import files_of, needs

_JSON = (".jsonl", ".ndjson", ".json")
_PLAIN = (".txt",)
_TABLES = (".parquet",)
_PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": None}
_PIECE_BYTES, _PIECE_ROWS = 1 << 20, 1000
_CHUNK = 1 << 20
_MARK = b"\xef\xbb\xbf"     # that a file of UTF-8 may begin with


class Piece(NamedTuple):
    """Rows of one source: lines of JSON, lines or files of text, a table of Arrow, or values of an iterable."""

    kind: str
    name: str       # of the file; "": an iterable
    first: int      # the first row's number, as people count
    rows: Any

    def where(self, at: int) -> str:
        """What people call row `at` of it."""
        number = self.first + at
        if self.kind == "file":
            return self.name
        return f"{self.name}:{number}" if self.kind in ("json", "line") else f"{self.name}: row {number}" if self.name else f"row {number}"

    def each(self) -> Iterator[tuple[int, Any]]:
        """Its rows, each with its place in the piece: a dict or a text."""
        if self.kind == "values":
            yield from enumerate(self.rows)
        elif self.kind == "table":
            yield from enumerate(_read_table(self.rows))
        else:
            for at, line in enumerate(self.rows):
                text = self._decoded(at, line)
                if text.strip():
                    yield at, self._parsed(at, text) if self.kind == "json" else text

    def _parsed(self, at, text):
        try:
            return parsed_json(text, self.where(at))
        except TransformError as why:
            raise DatasetError(str(why)) from None

    def _decoded(self, at, line):
        try:
            return line.decode()
        except UnicodeDecodeError as why:
            raise DatasetError(f"{self.where(at)}: no UTF-8: {why}") from None


def _read_table(data):
    import pyarrow
    with pyarrow.ipc.open_stream(data) as table:
        return table.read_all().to_pylist()


# ---- bytes of files ----


def suffixes_of(path):
    """The suffix, and that of the compression behind it, or ""."""
    stem, last = os.path.splitext(path.lower())
    return (os.path.splitext(stem)[1], last) if last in _PACKED else (last, "")


def _begin_zst():
    try:
        from compression.zstd import ZstdDecompressor  # of Python 3.14
    except ImportError:
        return needs("zstandard", "a .zst file").ZstdDecompressor(max_window_size=1 << 31).decompressobj
    return ZstdDecompressor


def _zst_chunks(file):
    """Of all frames, one behind the other; the last one must be whole."""
    begin, frame = _begin_zst(), None
    while data := file.read(_CHUNK):
        while data:
            frame = frame or begin()
            yield frame.decompress(data)
            data = b""
            if frame.eof:
                frame, data = None, frame.unused_data
    if frame is not None:
        raise EOFError("the last frame is cut off")


def _chunks(path, packed):
    try:
        with open(path, "rb") as file:
            if packed == ".zst":
                yield from _zst_chunks(file)
                return
            with _PACKED[packed](file) if packed else file as unpacked:
                while chunk := unpacked.read(_CHUNK):
                    yield chunk
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as why:
        raise DatasetError(f"{path} cannot be read: {getattr(why, 'strerror', None) or why}") from None
    except Exception as why:
        if type(why).__name__ != "ZstdError":       # of either module
            raise
        raise DatasetError(f"{path} cannot be read: {why}") from None


def lines_of(path, packed, most=None):
    """Of a file that is packed so, or "". most: bytes of one, perhaps."""
    rest, size, is_first = [], 0, True
    for chunk in _chunks(path, packed):
        if is_first and chunk:
            chunk, is_first = chunk.removeprefix(_MARK), False
        begin, *lines = chunk.split(b"\n")
        rest.append(begin)
        size = len(lines[-1]) if lines else size + len(begin)
        if most is not None and size > most:
            raise DatasetError(f"{path} has a line of more than {most:,} bytes")
        if lines:
            yield b"".join(rest)
            yield from lines[:-1]
            rest = [lines[-1]]
    if any(rest):
        yield b"".join(rest)


# ---- pieces ----


def _cut(rows: Iterable, size, kind: str, name: str, first: int) -> Iterator[Piece]:
    """So many rows of an iterable to a piece that it is of some size."""
    piece, bytes_ = [], 0
    for row in rows:
        piece.append(row)
        bytes_ += size(row)
        if bytes_ >= _PIECE_BYTES or len(piece) == _PIECE_ROWS:
            yield Piece(kind, name, first, piece)
            first, piece, bytes_ = first + len(piece), [], 0
    if piece:
        yield Piece(kind, name, first, piece)


def _tables(path, names):
    import pyarrow
    import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            columns = [name for name in names if name in there] if names else None
            if names and len(columns) < len(names):
                raise DatasetError(f"{path} has no column {next(name for name in names if name not in there)!r}; there are:"
                                   f" {', '.join(file.schema_arrow.names)}")
            first = 0
            for batch in file.iter_batches(256, columns=columns):
                sink = pyarrow.BufferOutputStream()
                with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
                    stream.write_batch(batch)
                yield Piece("table", path, first, sink.getvalue().to_pybytes())
                first += batch.num_rows
    except (OSError, pyarrow.ArrowException) as why:
        raise DatasetError(f"{path} cannot be read: {why}") from None


def _of_file(path, names, by_line):
    suffix, packed = suffixes_of(path)
    if suffix in _TABLES and not packed:
        yield from _tables(path, names)
    elif suffix in _JSON:
        yield from _cut(lines_of(path, packed), len, "json", path, 1)
    elif by_line:
        yield from _cut((line.removesuffix(b"\r") for line in lines_of(path, packed)), len, "line", path, 1)
    else:
        yield Piece("file", path, 1, [b"".join(_chunks(path, packed)).removeprefix(_MARK)])


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _files(source):
    suffixes = tuple(suffix + packed for suffix in (".jsonl", ".ndjson", *_PLAIN) for packed in ("", *_PACKED)) + _TABLES
    try:
        files = files_of(source, suffixes, "text", "tokenize()")
    except DatasetError as why:
        why.args = (f"{why}. A str names files; texts come as an iterator, such as iter(texts)",)
        raise
    for path in files:
        suffix, packed = suffixes_of(path)
        if suffix not in _JSON + _PLAIN + _TABLES or (packed and suffix in _TABLES):
            raise ArgumentError(f"{path}: texts are read from .jsonl, .ndjson, .json (an object a line), .txt and .parquet files, the first four"
                                f" also with {', '.join(_PACKED)} behind. Of others give an iterator of texts or dicts")
    for suffix, packed in {suffixes_of(path) for path in files}:      # now, not after hours
        if suffix in _TABLES:
            needs("pyarrow.parquet", "a Parquet file")
        if packed == ".zst":
            _begin_zst()
    return files


def _size_of(row):
    values = row.values() if isinstance(row, Mapping) else [row]
    return sum(len(value) for value in values if isinstance(value, (str, bytes)))


def _values(source, names):
    """What is needed of each."""
    for row in source:
        yield {name: row[name] for name in names} if names and isinstance(row, Mapping) and all(name in row for name in names) else row


def pieces_of(source: Any, names: tuple[str, ...] | None, by_line: bool) -> Iterator[Piece]:
    """All rows of a source in its order. names: the members of a row that are needed; None: all. Errors of arguments come at once."""
    if _is_path(source) or (isinstance(source, (list, tuple)) and source and all(map(_is_path, source))):
        return (piece for path in _files(source) for piece in _of_file(path, names, by_line))
    if isinstance(source, (Mapping, bytes, io.IOBase)) or not isinstance(source, Iterable) and not hasattr(source, "__getitem__"):
        raise ArgumentError(f"source is a {type(source).__name__}: give paths of files, a data set (one split of it), or an iterator of texts or"
                            " dicts")
    if names and callable(getattr(source, "select_columns", None)) and set(names) <= set(getattr(source, "column_names", None) or ()):
        source = source.select_columns(list(names))     # of Hugging Face's datasets: no picture beside them is decoded
    return _cut(_values(source, names), _size_of, "values", "", 0)
