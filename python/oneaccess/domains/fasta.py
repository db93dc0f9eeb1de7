# SPDX-License-Identifier: Apache-2.0
"""FASTA files, plain or bgzip: where the records of one lie, by its .fai or by one pass over it, and letters of them by place. A process reads what
it is asked for, and no more (pread)."""

import os
import re
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from ..errors import DatasetError, not_there
from ..sources.folders import twice
from ..sources.noted import Noted
from ..sources.tables import Kept, stamp_of

_PIECE = 16 << 20           # that a pass reads at once
_MOST_HEADER = 1 << 16      # bytes of a record's first line
_BLOCK = 1 << 16            # bytes of a bgzip block, packed or not
_BLOCKS = 64                # that a process keeps unpacked
_HEAD = struct.Struct("<4s6xH")
_ARRAYS = {name: ("<i8", 1) for name in ("header", "offset", "length", "bases", "width", "differs")}
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*-"


class Places(NamedTuple):
    """Of each record: its name, how many letters it has, where the first is, and how many letters and bytes its lines have."""

    names: list[str]
    length: Any
    offset: Any
    bases: Any
    width: Any


# ---- bytes ----


class Plain:
    def __init__(self, path: str):
        self.path, self._file = path, os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._file).st_size

    def read(self, at: int, count: int) -> bytes:
        """Less at the file's end."""
        data = os.pread(self._file, count, at)
        while len(data) < count and (more := os.pread(self._file, count - len(data), at + len(data))):
            data += more
        return data

    def close(self):
        os.close(self._file)


def _block_size(head: bytes) -> int | None:
    """Bytes of the bgzip block that begins so; None: it is none (RFC 1952, and its subfield BC)."""
    if len(head) < 18 or head[:4] != b"\x1f\x8b\x08\x04":
        return None
    at, end = 12, 12 + _HEAD.unpack_from(head)[1]
    while at + 4 <= min(end, len(head)):
        size = int.from_bytes(head[at + 2:at + 4], "little")
        if head[at:at + 2] == b"BC" and size == 2 and at + 6 <= len(head):
            return int.from_bytes(head[at + 4:at + 6], "little") + 1
        at += 4 + size
    return None


def _blocks(file: Plain):
    """Where blocks begin, packed and unpacked, and where the last ends: by the .gzi beside the file, and from its last one on by the blocks' heads."""
    places, path = np.zeros((1, 2), np.int64), f"{file.path}.gzi"
    if os.path.exists(path) and os.stat(path).st_mtime_ns >= os.stat(file.path).st_mtime_ns:
        with open(path, "rb") as index:
            data = index.read(8 + 16 * (1 + file.size // 28))       # no block is smaller
        said, found = int.from_bytes(data[:8], "little"), np.frombuffer(data[8:len(data) - len(data) % 8], "<u8")
        if len(data) < 8 or len(data) != 8 + 16 * said or (found > 1 << 62).any():
            raise DatasetError(f"{path} is no index of bgzip for {file.path}: remove it, or make it anew: bgzip -r {file.path}")
        places = np.concatenate([places, found.astype(np.int64).reshape(-1, 2)])
        steps = np.diff(places, axis=0)
        wrong = np.flatnonzero((steps[:, 0] < 28) | (steps[:, 0] > _BLOCK) | (steps[:, 1] < 0) | (steps[:, 1] > _BLOCK))
        if len(wrong) or places[-1, 0] >= file.size:
            where = f"entry {wrong[0]}" if len(wrong) else "its last entry"
            raise DatasetError(f"{path}: {where} is none of a block of {file.path}: remove it, or make it anew: bgzip -r {file.path}")
    more, (at, whole) = [], places[-1].tolist()
    while at < file.size:
        size = _block_size(file.read(at, 64))
        tail = b"" if size is None else file.read(at + size - 4, 4)
        if len(tail) < 4 or int.from_bytes(tail, "little") > _BLOCK:
            raise DatasetError(f"{file.path}: no bgzip block begins at byte {at:,}: the file is cut off or damaged")
        at, whole = at + size, whole + int.from_bytes(tail, "little")
        more.append((at, whole))
    return np.concatenate([places, np.array(more, np.int64).reshape(-1, 2)])


class Bgzip:
    """The same of what bgzip packed. blocks: of _blocks()."""

    def __init__(self, path: str, blocks: Any = None):
        self.path, self._file = path, Plain(path)
        self.blocks = _blocks(self._file) if blocks is None else blocks
        self.size, self._kept = int(self.blocks[-1, 1]), Kept(_BLOCKS, self._unpacked)

    def _unpacked(self, number):
        (at, begin), (end, until) = self.blocks[number:number + 2].tolist()
        data, machine = self._file.read(at, end - at), zlib.decompressobj(31)
        try:
            made = machine.decompress(data, _BLOCK + 1) if _block_size(data[:64]) == end - at else b""
        except zlib.error:
            made = b""
        if len(made) != until - begin or not machine.eof and until > begin:
            raise DatasetError(f"{self.path}: the bgzip block at byte {at:,} is damaged, or {self.path}.gzi is of another file")
        return made

    def read(self, at: int, count: int) -> bytes:
        count = min(count, self.size - at)
        if count <= 0:
            return b""
        first, last = np.searchsorted(self.blocks[:, 1], (at, at + count - 1), "right") - 1
        begin = int(self.blocks[first, 1])
        return b"".join([self._kept.get(number) for number in range(first, last + 1)])[at - begin:at - begin + count]

    def close(self):
        self._file.close()


def opened(path: str, blocks: Any = None) -> Plain | Bgzip:
    """blocks: what Bgzip.blocks was of it before."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except FileNotFoundError:
        raise not_there(f"there is no {path}", path) from None
    if head[:2] != b"\x1f\x8b":
        return Plain(path)
    if _block_size(head) is None:
        raise DatasetError(f"{path} is gzip, of which no part can be read alone. bgzip (Debian: tabix; it comes with samtools) makes one of which parts can be, for all"
                           f" programs that read gzip: gunzip -c {path} | bgzip > NEW.fa.gz, or unpack it: gunzip {path}")
    return Bgzip(path, blocks)


# ---- one pass ----


class _Pass:
    """Over lines, a piece of the file at a time; a record may go on in the next piece, and so may a line."""

    def __init__(self, path: str):
        self.path, self.lines, self.begin = path, 0, 0      # of the line that is not at its end
        self._first, self._last = b"", b""                  # its first byte, and the byte before the piece
        self._odd, self._parts = 0, {name: [] for name in _ARRAYS}       # the record's line that differs from its first

    def add(self, at: int, data: bytes, is_end: bool) -> None:
        piece = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(piece == 10) + at
        if is_end and self.begin < at + len(data) and not (len(ends) and ends[-1] == at + len(data) - 1):
            ends = np.append(ends, at + len(data))          # a last line without an end
        self._first = self._first or data[:1]
        if len(ends):
            self._lines(at, piece, ends)
            self._first = data[self.begin - at:self.begin - at + 1]
        self._last = data[-1:]

    def _lines(self, at, piece, ends):
        begins = np.concatenate([[self.begin], ends[:-1] + 1])
        firsts = piece[np.clip(begins - at, 0, len(piece) - 1)]
        firsts[0] = self._first[0] if self._first else 10
        lasts = piece[np.clip(ends - 1 - at, 0, len(piece) - 1)]
        if ends[0] == at:
            lasts[0] = self._last[0] if self._last else 10
        letters = np.where(ends > begins, ends - begins - (lasts == 13), 0)
        is_header = (ends > begins) & (firsts == ord(">"))
        self._records(begins, ends + 1 - begins, letters, is_header)
        self.lines, self.begin = self.lines + len(ends), int(ends[-1]) + 1

    def _records(self, begins, widths, letters, is_header):
        headers = np.flatnonzero(is_header)
        self._go_on(widths, letters, headers[0] if len(headers) else len(letters))
        if not len(headers):
            return
        too_long = headers[letters[headers] > _MOST_HEADER]
        if len(too_long):
            raise DatasetError(f"{self.path}:{self.lines + too_long[0] + 1}: a record's first line has {letters[too_long[0]]:,} bytes, at most {_MOST_HEADER:,} are read")
        letters = np.where(is_header, 0, letters)
        record = np.cumsum(is_header) - 1
        follows = np.minimum(headers + 1, len(letters) - 1)
        has_line = (headers + 1 < len(letters)) & ~is_header[follows]
        bases, width = (np.where(has_line, column[follows], 0) for column in (letters, widths))
        lines = np.arange(len(letters))
        differs = ~is_header & (record >= 0) & ((letters != bases[record]) | (widths != width[record]))
        first = np.minimum.reduceat(np.where(differs, lines, len(letters)), headers)
        last = np.maximum.reduceat(np.where(letters > 0, lines, -1), headers)
        at_first = np.minimum(first, len(letters) - 1)
        wrong = (first < last) | (first == last) & (letters[at_first] > bases)
        made = {"header": begins[headers], "offset": begins[headers] + widths[headers], "length": np.add.reduceat(letters, headers), "bases": bases, "width": width,
                "differs": np.where(wrong, self.lines + first + 1, 0)}
        for name, values in made.items():
            self._parts[name].append(values.astype(np.int64))
        self._odd = int(self.lines + first[-1] + 1 if first[-1] < len(letters) else 0)

    def _go_on(self, widths, letters, until):
        """Lines of the record before the first header of the piece."""
        widths, letters = widths[:until], letters[:until]
        some = np.flatnonzero(letters)
        if not self._parts["header"]:
            if len(some):
                raise DatasetError(f"{self.path}:{self.lines + some[0] + 1}: no FASTA: a record begins with a line \">name\"")
            return
        length, bases, width, differs = (self._parts[name][-1] for name in ("length", "bases", "width", "differs"))
        if until and not width[-1]:
            bases[-1], width[-1] = letters[0], widths[0]
        length[-1] += letters.sum()
        strange = np.flatnonzero((letters != bases[-1]) | (widths != width[-1]))
        first = -1 if self._odd else strange[0] if len(strange) else until
        self._odd = self._odd or (self.lines + int(first) + 1 if len(strange) else 0)
        if not differs[-1] and len(some) and (first < some[-1] or first == some[-1] and letters[first] > bases[-1]):
            differs[-1] = self._odd

    def made(self) -> dict[str, Any]:
        if not self._parts["header"]:
            raise DatasetError(f"{self.path} has no record: one begins with a line \">name\"")
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}


def _passed(source):
    found, at = _Pass(source.path), 0
    while at < source.size:
        data = source.read(at, _PIECE)
        if not data:
            raise DatasetError(f"{source.path} was cut off while it was read")
        found.add(at, data, at + len(data) >= source.size)
        at += len(data)
    return found.made()


class Records:
    """Of all records where they lie, by one pass over the file that is kept: arrays header, offset, length, bases, width, and differs: 0, or the line that
    is not as long as the ones before it."""

    def __init__(self, source: Plain | Bgzip, folder: str):
        self.path, self.stamp, self.size = source.path, stamp_of(source.path), source.size
        self._noted = Noted(folder, repr((self.path, self.stamp)), _ARRAYS, self.path)
        self._load(source)

    def _load(self, source=None):
        vars(self).update(self._noted.found(lambda: _passed(source or opened(self.path)), self._fits))

    def _fits(self, found):
        header, offset, length = found["header"], found["offset"], found["length"]
        return len({len(values) for values in found.values()}) == 1 and len(header) and (length >= 0).all() and header[0] >= 0 and (header < offset).all() \
            and (offset[:-1] <= header[1:]).all() and offset[-1] <= self.size + 1 and (length <= np.append(header[1:], self.size) - offset + 1).all()

    def __len__(self):
        return len(self.header)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in _ARRAYS}

    def __setstate__(self, state):
        vars(self).update(state)
        self._load()


# ---- places ----


def _after(places, number):
    """Behind the last letter of a record."""
    length, bases = int(places.length[number]), int(places.bases[number])
    return int(places.offset[number]) + ((length - 1) // bases * int(places.width[number]) + (length - 1) % bases + 1 if length else 0)


def _of_fai(path, fai, source):
    """What a .fai says, if the file is as it says."""
    mend = f"make it anew: samtools faidx {path}, or remove it"
    names, numbers = [], []
    with open(fai, "rb") as file:
        for line, text in enumerate(iter(lambda: file.readline(_MOST_HEADER), b""), 1):
            parts = text.rstrip(b"\r\n").split(b"\t")
            try:
                length, offset, bases, width = map(int, parts[1:])
            except ValueError:
                raise DatasetError(f"{fai}:{line}: no index of FASTA, whose lines are a name and four numbers with tabs between them: {mend}") from None
            if not (0 <= length <= source.size and 0 <= offset <= source.size and 0 <= bases <= source.size and bases <= width <= bases + 2
                    and (not length or bases and (width > bases or length <= bases))):
                raise DatasetError(f"{fai}:{line}: {length:,} letters in lines of {bases:,} ({width:,} bytes) from byte {offset:,} on are in no file of {source.size:,} bytes:"
                                   f" {mend}")
            names.append(parts[0].decode("utf-8", "replace"))
            numbers.append((length, offset, bases, width))
    if not names:
        raise DatasetError(f"{fai} has no line: {mend}")
    places = Places(names, *np.array(numbers, np.int64).T)
    end = 0
    for number in np.argsort(places.offset, kind="stable").tolist():        # records that have a name twice are in the file alone
        offset, name = int(places.offset[number]), re.escape(names[number].encode("utf-8", "replace"))
        begin = max(end, offset - _MOST_HEADER)
        if not re.search(rb"(?:\A|\n)>" + name + rb"(?:[^\S\n][^\n]*)?\n\Z", source.read(begin, max(0, offset - begin))):
            raise DatasetError(f"{fai}:{number + 1}: {path} has no record {names[number]!r} whose letters begin at byte {offset:,}: {mend}")
        end = _after(places, number)
        follows = source.read(end, 64).lstrip(b"\r\n")
        if end > source.size or follows and not follows.startswith(b">"):
            raise DatasetError(f"{fai}:{number + 1}: {path} has {'more' if follows else 'fewer'} letters of {names[number]!r}: {mend}")
    return places


def _of_records(records, source):
    differs = np.flatnonzero(records.differs)
    if len(differs):
        raise DatasetError(f"{records.path}:{records.differs[differs[0]]}: lines of a record differ in length, so that no letter can be found by its place: samtools faidx says"
                           f" the same. Write them alike, as by seqtk seq -l 60 {records.path}")
    names = [header_of(source, int(begin), int(end))[0] for begin, end in zip(records.header, records.offset)]
    return Places(names, *(np.array(values) for values in (records.length, records.offset, records.bases, records.width)))


def header_of(source: Plain | Bgzip, begin: int, end: int) -> tuple[str, str]:
    """Name and description of a record."""
    name, _, rest = source.read(begin + 1, end - begin - 1).decode("utf-8", "replace").rstrip("\r\n").replace("\t", " ").partition(" ")
    return name, rest.strip()


def places_of(source: Plain | Bgzip, folder: str) -> Places:
    """By the .fai beside the file, if that was not written to since; else by a pass over it."""
    path, fai = source.path, f"{source.path}.fai"
    if os.path.exists(fai) and os.stat(fai).st_mtime_ns >= os.stat(path).st_mtime_ns:
        places = _of_fai(path, fai, source)
    else:
        places = _of_records(Records(source, folder), source)
    if (name := twice(places.names)) is not None:
        raise DatasetError(f"{path} has two records of the name {name!r}: intervals would be of either")
    return places


# ---- letters ----


def check(letters: Any, what: str, first: int = 0) -> None:
    """Each is one: A to Z in either case, * or -."""
    if letters.tobytes().translate(None, _LETTERS):
        at = int(np.argmin(np.isin(letters, np.frombuffer(_LETTERS, np.uint8))))
        raise DatasetError(f"{what}: byte {int(letters[at]):#04x} in place of letter {first + at:,}: the file is damaged, or is not as its index says")


def letters_of(source: Plain | Bgzip, places: Places, number: int, begin: int, end: int) -> Any:
    """uint8 [end - begin] of a record, 0 <= begin < end <= its length; not yet checked."""
    bases, width = int(places.bases[number]), int(places.width[number])
    row, column = divmod(begin, bases)
    rows = (end - 1) // bases - row + 1
    at, size = int(places.offset[number]) + row * width + column, end - begin + (rows - 1) * (width - bases)
    data = source.read(at, size)
    if len(data) != size:
        raise DatasetError(f"{source.path} was cut off since it was opened")
    data = np.frombuffer(data, np.uint8)
    if rows == 1:
        return data
    if rows == 2:
        return np.concatenate([data[:bases - column], data[bases - column + width - bases:]])
    lines = np.empty(rows * width, np.uint8)
    lines[column:column + size] = data
    return lines.reshape(rows, width)[:, :bases].reshape(-1)[column:column + end - begin]
