# SPDX-License-Identifier: Apache-2.0
"""Deletion vectors of Delta Lake and Iceberg: the numbers of a file's rows that are deleted, as Roaring bitmaps of 32 bits in an array. Where
one is: Delta Lake's protocol (Deletion Vectors), Iceberg's Puffin (deletion-vector-v1); its bytes: the format of RoaringBitmap. They come from
others, so sizes and numbers are checked before they are believed: what comes out is never larger than the file has rows."""

import json
import zlib
from typing import Any

from .. import urls
from ..errors import DatasetError

_MAGIC = 1681511377
_PUFFIN, _MOST_FOOTER = b"PFA1", 1 << 28
_NO_RUNS, _RUNS = 12346, 12347
_MOST = 1 << 16         # values of a container
_LIST = 4096            # values up to which they are listed
_Z85 = {char: number for number, char in enumerate("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")}


class _Damaged(ValueError):
    """What is wrong with the bytes."""


class _Bytes:
    """What is left to read."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise _Damaged(f"it ends at byte {len(self.data)} and would go on to {self.at + count}")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def shorts(self, count):
        import numpy as np
        return np.frombuffer(self.take(2 * count), "<u2")


def rows_in(data: bytes, count: int, what: str) -> Any:
    """The numbers that a vector has, int64 and ascending, of a file with so many rows."""
    import numpy as np
    try:
        _sized(len(data), count)
        left, made, last = _Bytes(data), [np.zeros(0, np.int64)], -1
        if (magic := left.number(4)) != _MAGIC:
            raise _Damaged(f"it begins with {magic}, not with {_MAGIC}")
        for _ in range(left.number(8)):
            key = left.number(4)
            if key <= last:
                raise _Damaged(f"bitmap {key} comes after bitmap {last}")
            made += _bitmap(left, key << 32, count)
            last = key
        if left.at < len(data):
            raise _Damaged(f"{len(data) - left.at} bytes are behind its end")
    except _Damaged as why:
        raise DatasetError(f"{what} is damaged: {why}") from None
    return np.concatenate(made)


def _sized(size, count):
    """No vector of a file with so many rows is larger, however it is written."""
    if size > 4096 + (count // _MOST + 1) * (1 << 18):
        raise _Damaged(f"it has {size} bytes, of a file with {count} rows")


def _bitmap(left, first, count):
    """Of 32 bits: a list of arrays."""
    import numpy as np
    cookie = left.number(4)
    if cookie & 0xffff == _RUNS:
        size = (cookie >> 16) + 1
        runs = np.unpackbits(np.frombuffer(left.take(-(-size // 8)), np.uint8), bitorder="little")[:size]
    elif cookie == _NO_RUNS:
        size = left.number(4)
        if size > _MOST:
            raise _Damaged(f"a bitmap has {size} containers")
        runs = np.zeros(size, np.uint8)
    else:
        raise _Damaged(f"a bitmap begins with {cookie}")
    heads = left.shorts(2 * size).reshape(size, 2).astype(np.int64)
    if (np.diff(heads[:, 0]) <= 0).any():
        raise _Damaged("its containers are not in order")
    if cookie == _NO_RUNS or size >= 4:
        left.take(4 * size)         # where each is, which follows from their sizes
    made = []
    for (key, fewer), is_run in zip(heads.tolist(), runs):
        if first + key * _MOST >= count:
            raise _Damaged(f"it has row {first + key * _MOST} or a later one, of a file with {count} rows")
        values = (_run(left) if is_run else _list(left, fewer + 1) if fewer < _LIST else _bits(left)).astype(np.int64)
        if len(values) != fewer + 1:
            raise _Damaged(f"a container has {len(values)} numbers, and {fewer + 1} by its head")
        values += first + key * _MOST
        if values[-1] >= count:
            raise _Damaged(f"it has row {values[-1]}, of a file with {count} rows")
        made.append(values)
    return made


def _list(left, size):
    import numpy as np
    values = left.shorts(size)
    if (np.diff(values.astype(np.int32)) <= 0).any():
        raise _Damaged("numbers of a container are not in order")
    return values


def _bits(left):
    import numpy as np
    return np.flatnonzero(np.unpackbits(np.frombuffer(left.take(_MOST // 8), np.uint8), bitorder="little"))


def _run(left):
    import numpy as np
    runs = left.shorts(2 * left.number(2)).reshape(-1, 2).astype(np.int64)
    ends = runs.sum(axis=1)
    if not len(runs) or ends[-1] >= _MOST or (runs[1:, 0] <= ends[:-1]).any():
        raise _Damaged("runs of a container are not in order")
    mask = np.zeros(_MOST + 1, np.int8)
    mask[runs[:, 0]] += 1
    mask[ends + 1] -= 1
    return np.flatnonzero(mask.cumsum(dtype=np.int8)[:_MOST])


# ---- where they are ----


def framed(data: bytes, what: str) -> bytes:
    """What stands between its size and its CRC-32, which are of 4 bytes, the greatest first."""
    if len(data) < 8 or int.from_bytes(data[:4], "big") != len(data) - 8:
        raise DatasetError(f"{what} is damaged: its {len(data)} bytes begin with another size")
    if zlib.crc32(data[4:-4]) != int.from_bytes(data[-4:], "big"):
        raise DatasetError(f"{what} is damaged: its checksum is another one")
    return data[4:-4]


def of_delta(vector: dict, path_of: Any, count: int, file: str) -> Any:
    """The rows of a file that are deleted. vector: what the log says; path_of: how a path in the log is opened; count: the file's rows."""
    what = f"the deletion vector of {file}"
    try:
        kind, text, size, cardinality = vector["storageType"], vector["pathOrInlineDv"], vector["sizeInBytes"], vector["cardinality"]
        offset = vector.get("offset") or 0
        if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in (size, cardinality, offset)):
            raise _Damaged(f"its size is {size!r}, its offset {offset!r}, and it deletes {cardinality!r} rows")
        _sized(size, count)
        if kind == "i":
            data = z85(text)
            if not 0 <= len(data) - size < 4:
                raise _Damaged(f"it has {len(data)} bytes, and {size} by the log")
            data = data[:size]
        elif kind in ("u", "p"):
            path = text if kind == "p" else _of_uuid(text)
            data = framed(_part(path_of(path), offset, size + 8), what)
        else:
            raise _Damaged(f"its storage type is {kind!r}")
    except (KeyError, TypeError, AttributeError) as why:
        raise DatasetError(f"{what} is damaged: {why!r}") from None
    except _Damaged as why:
        raise DatasetError(f"{what} is damaged: {why}") from None
    rows = rows_in(data, count, what)
    if len(rows) != cardinality:
        raise DatasetError(f"{what} is damaged: it deletes {len(rows)} rows, and {cardinality} by the log")
    return rows


def of_puffin(path: str, count_of: Any) -> dict[str, Any]:
    """{data file: rows that are deleted} of a Puffin file. count_of: how many rows a data file has; None: it is not the table's any more."""
    what, made = f"the Puffin file {path}", {}
    try:
        tail = _part(path, -12, 12)
        size = int.from_bytes(tail[:4], "little")
        if tail[8:] != _PUFFIN or any(tail[4:8]) or size > _MOST_FOOTER:
            raise _Damaged("it does not end as one, or its footer is compressed or too large, which is not read")
        for blob in json.loads(_part(path, -12 - size, size))["blobs"]:
            file = blob["properties"].get("referenced-data-file") if blob["type"] == "deletion-vector-v1" else None
            if file is None or (count := count_of(file)) is None:
                continue
            if blob.get("compression-codec"):
                raise _Damaged("a deletion vector is compressed")
            _sized(blob["length"], count)
            made[file] = rows_in(framed(_part(path, blob["offset"], blob["length"]), what), count, what)
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as why:
        raise DatasetError(f"{what} is damaged: {why}") from None
    return made


def z85(text: str) -> bytes:
    """The bytes of such a text: four for each five characters."""
    if len(text) % 5 or not set(text) <= _Z85.keys():
        raise _Damaged("its text is not Z85")
    made = bytearray()
    for at in range(0, len(text), 5):
        number = 0
        for char in text[at:at + 5]:
            number = number * 85 + _Z85[char]
        if number >> 32:
            raise _Damaged("its text is not Z85")
        made += number.to_bytes(4, "big")
    return bytes(made)


def _of_uuid(text):
    """The name of a file in the table's folder: a prefix, and 20 characters of a UUID."""
    import uuid
    prefix, name = text[:-20], uuid.UUID(bytes=z85(text[-20:].rjust(20)))
    return f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"


def _part(path, offset, size):
    """Of a file; a negative offset is from its end."""
    try:
        with urls.binary(path) as opened:
            opened.seek(0, 2)
            begin = offset if offset >= 0 else opened.tell() + offset
            if begin < 0 or size < 0 or begin + size > opened.tell():
                raise _Damaged(f"{path} has {opened.tell()} bytes, and it would be at {begin} to {begin + size}")
            opened.seek(begin)
            return opened.read(size)
    except OSError as why:
        raise DatasetError(f"{path} has deleted rows, and cannot be read: {why}") from None
