# SPDX-License-Identifier: Apache-2.0
"""Data sets written sample by sample: Writer; written() opens one, as a Loader does that is given its folder.

Shards are MDS (MosaicML streaming), which accessd reads natively with all columns, and others, too. Beside them is fields.json: of which type and shape the
fields are, and how long the longest is.
"""

import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from .. import picked, urls
from ..errors import ArgumentError, DatasetError, StateError
from ..masks import Image, Mask, Measured, following
from .casting import cast

HEAD, INDEX, WRITING = "fields.json", "index.json", ".writing"
_DONE = "-done"
_FORMAT, _VERSION = "oneaccess-written", 1
_FILES = ("jpeg", "png", "bytes")
_NUMBERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64")
_AS_THEY_ARE = ("uint8", "uint64", "int64", "float16", "float32", "float64")
_MOST_SHARD = 1 << 31
_MOST_COLUMNS, _MOST_PARTS = 20, 10000


class _Column:
    """How values of a column are written, and what they are like: encoding of MDS, dtype and shape of numbers; the first extent -1: they differ in length."""

    def __init__(self, name, said):
        import numpy as np
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,22}", str(name)):
            raise ArgumentError(f"columns= names {name!r}: a name has up to 23 letters, digits and _")
        self.name, self.said, self.dtype, self.shape, self.size = name, said, None, (), None
        if said in _FILES or said == "text":
            self.encoding = "str" if said == "text" else said
            return
        try:
            dtype, shape = (said, ()) if isinstance(said, str) else said
            dtype, self.shape = str(getattr(dtype, "__name__", dtype)), tuple(int(extent) for extent in shape)
        except (TypeError, ValueError):
            dtype = ""
        if dtype not in _NUMBERS or len(self.shape) > 4 or any(extent < 1 for extent in self.shape[self.is_ragged:]):
            raise ArgumentError(f"columns={{{name!r}: {said!r}}}: give {', '.join(_FILES)}, text, a type of numbers ({', '.join(_NUMBERS)}) or (type, shape), as (\"float32\","
                                " [-1, 4]), with -1 as the first extent where it differs from sample to sample")
        self.said = [dtype, list(self.shape)] if self.shape else dtype
        self.dtype = dtype if not self.is_ragged or dtype in _AS_THEY_ARE else "int64"      # of bytes nobody says what numbers they are
        self.encoding = "bytes" if self.is_ragged else f"ndarray:{dtype}:{','.join(map(str, self.shape))}" if self.shape else dtype
        self.size = None if self.is_ragged else np.dtype(dtype).itemsize * int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_ragged(self):
        return self.shape[:1] == (-1,)

    def encoded(self, value):
        """Its bytes, and its length where that differs."""
        what = f"column {self.name}"
        if self.encoding == "str":
            if not isinstance(value, str):
                raise ArgumentError(f"{what} is text, and this is a {type(value).__name__}")
            data = value.encode()
            return data, len(data)
        if self.said in _FILES:
            data = self._file(value, what)
            return data, len(data)
        array = cast(value, self.dtype, what) if not self.is_ragged or len(value) else cast([], self.dtype, what).reshape(0, *self.shape[1:])
        if array.shape[self.is_ragged:] != self.shape[self.is_ragged:] or array.ndim != len(self.shape):
            raise ArgumentError(f"{what} has the shape {array.shape}, and is to have {self.shape}")
        return array.tobytes(), len(array) if self.is_ragged else 0

    def _file(self, value, what):
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if self.said == "bytes":
            raise ArgumentError(f"{what} is bytes, and this is a {type(value).__name__}")
        file = io.BytesIO()
        array = None if hasattr(value, "save") else cast(value, "uint8", what)
        try:
            if array is not None:
                from PIL import Image as pictures
                value = pictures.fromarray(array)
            value.save(file, self.said, **({"quality": 95} if self.said == "jpeg" else {}))
        except (OSError, TypeError, ValueError, KeyError) as why:      # Pillow's
            raise ArgumentError(f"{what} is {self.said}, and Pillow cannot write this image as one: {why}: give RGB or gray, arrays as [H, W, C]") from None
        return file.getvalue()

    def sample(self):
        """One as Python has it."""
        import numpy as np
        if self.encoding == "str":
            return ""
        if self.said in _FILES:
            return b"0"
        return np.zeros((1, *self.shape[1:]) if self.is_ragged else self.shape, self.dtype)


def _columns(said):
    if not isinstance(said, Mapping) or not 1 <= len(said) <= _MOST_COLUMNS:
        raise ArgumentError(f"columns is {said!r}: {{name: type}}, of 1 to {_MOST_COLUMNS} columns")
    return [_Column(name, each) for name, each in said.items()]


def _replace(path, text):
    """At once, and on the disk."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


class Writer:
    """Writes a data set into a folder.

        with oa.Writer("out", {"image": "jpeg", "label": "int64", "caption": "text", "boxes": ("float32", [-1, 4])}) as out:
            for ...:
                out.write({"image": data, "label": 3, "caption": "a cat", "boxes": boxes})
        loader = oa.Loader("out", pipeline, batch_size=64)

    path: a folder that is not there, or is empty.
    columns: {name: type}, in the order of a batch: the image first, and a label behind it. "jpeg", "png": the bytes of a file, or an image of Pillow or an array [H, W, C] of
        uint8, which Pillow writes (JPEG with quality 95); "bytes": any file's; "text": str; a type of numbers; or (type, shape), whose first extent is -1 where it differs
        from sample to sample. Of these, whole numbers of 8 to 32 bits but uint8 become int64.
    shard_size: bytes of a shard, as a rule.
    part, parts: several processes write parts of one data set, each with a number from 0 to parts - 1; samples have the order of the parts. Default: one.

    close() ends a part, and the last part's makes the data set, at once. Until then nobody opens it; a Loader says which parts are missing. A part that was not closed, as
    its process was killed or an exception left the with statement, is written anew from its begin, by another Writer with its number.
    """

    def __init__(self, path: str | os.PathLike, columns: Mapping[str, Any], *, shard_size: int = 1 << 26, part: int = 0, parts: int = 1):
        self._columns = _columns(columns)
        self._sorted = sorted(self._columns, key=lambda column: column.name)
        if not 0 <= part < parts <= _MOST_PARTS:
            raise ArgumentError(f"part={part}, parts={parts}: parts are 0 to parts - 1, at most {_MOST_PARTS:,}")
        if not 1 <= shard_size <= _MOST_SHARD:
            raise ArgumentError(f"shard_size={shard_size}: bytes, at most {_MOST_SHARD:,}")
        self.path, self._size, self._part, self._parts = urls.local(path, "Writer()"), shard_size, part, parts
        self._about = {"columns": {column.name: column.said for column in self._columns}, "parts": parts}
        self._samples, self._bytes, self._shards, self._most, self._lock = [], 0, [], {}, None
        self._here = os.path.join(self.path, WRITING, f"{part:05}")
        try:
            self._begin()
        except BaseException as why:
            if self._lock is not None:
                self._lock.close()
            if isinstance(why, OSError):
                raise DatasetError(f"{self.path} cannot be written: {why}") from None
            raise

    def _begin(self):
        work = os.path.join(self.path, WRITING)
        if os.path.isdir(self.path) and not os.path.isdir(work) and os.listdir(self.path):
            raise StateError(f"{self.path} has files already: give a folder that is not there, or is empty")
        os.makedirs(work, exist_ok=True)
        self._lock = open(self._here + ".lock", "a")       # noqa: SIM115
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(f"part {self._part} of {self.path} is being written by another process: each has a number of its own, by part=") from None
        if os.path.exists(self._here + ".json"):
            self._finish()
            raise StateError(f"part {self._part} of {self.path} is written already")
        shutil.rmtree(self._here, ignore_errors=True)       # of one who was killed
        os.mkdir(self._here)

    def write(self, sample: Mapping[str, Any]) -> None:
        """One more sample: {column: value}. One that does not fit is an ArgumentError, and is not written."""
        if self._lock is None:
            raise StateError(f"the Writer of {self.path} is closed")
        if sample.keys() != self._about["columns"].keys():
            raise ArgumentError(f"the sample has {', '.join(sample)}, and the columns are {', '.join(self._about['columns'])}")
        made = {column.name: column.encoded(sample[column.name]) for column in self._columns}
        for name, (_, length) in made.items():
            self._most[name] = max(self._most.get(name, 0), length)
        parts = [made[column.name][0] for column in self._sorted]
        sizes = [len(data) for data, column in zip(parts, self._sorted) if column.size is None]
        text = struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(parts)
        if self._samples and self._bytes + len(text) > self._size:
            self._shard()
        self._samples.append(text)
        self._bytes += len(text)

    def _shard(self):
        about = {"column_encodings": [column.encoding for column in self._sorted], "column_names": [column.name for column in self._sorted],
                 "column_sizes": [column.size for column in self._sorted], "compression": None, "format": "mds", "hashes": [], "size_limit": self._size, "version": 2}
        config, starts = json.dumps(about, sort_keys=True).encode(), [0]
        starts[0] = 4 + 4 * (len(self._samples) + 1) + len(config)
        for text in self._samples:
            starts.append(starts[-1] + len(text))
        if starts[-1] > 0xFFFFFFFF:
            raise DatasetError(f"a shard of {self.path} would have {starts[-1]:,} bytes, and shards have up to 4 GiB: write smaller samples")
        name = f"shard.{self._part:05}.{len(self._shards):05}.mds"
        try:
            with open(os.path.join(self._here, name), "wb") as file:
                file.write(struct.pack(f"<I{len(starts)}I", len(self._samples), *starts) + config)
                file.writelines(self._samples)
                file.flush()
                os.fsync(file.fileno())
        except OSError as why:
            raise DatasetError(f"{self.path} cannot be written: {why}") from None
        self._shards.append({**about, "raw_data": {"basename": name, "bytes": starts[-1], "hashes": {}}, "samples": len(self._samples), "zip_data": None})
        self._samples, self._bytes = [], 0

    def _finish(self):
        """If all parts are closed, makes the data set. Who is killed here leaves one that is refused, until somebody goes on."""
        work = os.path.join(self.path, WRITING)
        with open(os.path.join(work, "lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            files = [os.path.join(work, f"{part:05}.json") for part in range(self._parts)]
            if not all(map(os.path.exists, files)):
                return
            parts = []
            for file in files:
                with open(file, encoding="utf-8") as text:
                    parts.append(json.load(text))
            if any(part["about"] != self._about for part in parts):
                raise StateError(f"the parts of {self.path} have other columns, or another number of parts: remove the folder and write all of them anew")
            shards = [shard for part in parts for shard in part["shards"]]
            if not shards:
                raise DatasetError(f"{self.path} has no sample: remove it, and write some before close()")
            most = {column.name: max(part["most"].get(column.name, 0) for part in parts) for column in self._columns}
            _replace(os.path.join(self.path, HEAD), json.dumps({"format": _FORMAT, "version": _VERSION, "columns": self._about["columns"], "most": most}, indent=1))
            _replace(os.path.join(self.path, INDEX), json.dumps({"shards": shards, "version": 2}, sort_keys=True))
            for shard in shards:
                name = shard["raw_data"]["basename"]
                with contextlib.suppress(FileNotFoundError):    # it is there already
                    os.rename(os.path.join(work, name.split(".")[1], name), os.path.join(self.path, name))
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(work, work + _DONE)
            shutil.rmtree(work + _DONE, ignore_errors=True)     # it has open files, which not every file system removes

    def close(self) -> None:
        """Ends the part. The last part's makes the data set."""
        if self._lock is None:
            return
        if self._samples:
            self._shard()
        try:
            _replace(self._here + ".json", json.dumps({"about": self._about, "shards": self._shards, "most": self._most}))
            self._finish()
        except OSError as why:
            raise DatasetError(f"{self.path} cannot be written: {why}") from None
        finally:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        elif self._lock is not None:        # a part that is not whole
            self._lock.close()
            self._lock = None


# ---- opening ----


def is_meant(dataset: Any) -> bool:
    """Is it the folder of a Writer, finished or not?"""
    if not isinstance(dataset, (str, os.PathLike)) or urls.is_url(dataset):
        return False
    path = os.fsdecode(urls.path_of(dataset))
    return os.path.isfile(os.path.join(path, HEAD)) or os.path.isdir(os.path.join(path, WRITING))


class _Written(picked.Picked):
    """Without a pipeline the image's file is bytes as any others."""

    def __init__(self, *args, columns, most, **said):
        super().__init__(*args, **said)
        self._columns, self._most = columns, most

    def direct(self, pictures):
        first = next(iter(self.members))
        if first in self._most:
            self.ragged = {name: most for name, most in self._most.items() if name != first or not pictures}
        made = super().direct(pictures)
        return made._replace(op={**made.op, "columns": self._columns})


def written(path: str | os.PathLike, fields: Sequence[str] | None = None, *, boxes: str | Sequence[str] | None = None,
            masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None, images: str | Sequence[str] | Mapping[str, Image] | None = None) -> picked.Picked:
    """The data set in a folder of a Writer, for Loader. oa.Loader("out", ...) is that of written("out").

    fields: which columns, in this order. Default: all. boxes, masks, images: as of wrap().
    """
    folder = urls.local(path, "written()")
    if os.path.isdir(os.path.join(folder, WRITING)):
        raise DatasetError(f"{folder} is not written to its end: {_unfinished(folder)}")
    try:
        with open(os.path.join(folder, HEAD), encoding="utf-8") as file:
            head = json.load(file)
        if (head["format"], head["version"]) != (_FORMAT, _VERSION):
            raise ValueError(f"it is {head['format']} of version {head['version']}, and this package knows {_FORMAT} of version {_VERSION}")
        columns, most = {column.name: column for column in _columns(head["columns"])}, {name: int(length) for name, length in head["most"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as why:
        raise DatasetError(f"{os.path.join(folder, HEAD)} does not say what is in the data set: {why}") from None
    names = list(columns) if fields is None else [fields] if isinstance(fields, str) else list(fields)
    if unknown := [name for name in names if name not in columns]:
        raise ArgumentError(f"fields= names {unknown[0]!r}; {folder} has: {', '.join(columns)}")
    encodings = [f"{name}:{columns[name].encoding}" for name in sorted(columns)]
    follow = following(masks, images) or {}
    longest = {name: max(1, most.get(name, 0)) for name in names if columns[name].size is None and name not in follow}
    return _Written(folder, {"columns": ";".join(encodings).replace(",", "x")}, {name: name for name in names}, {name: columns[name].sample() for name in names}, ragged=longest, columns=encodings, most=longest,
                    boxes=boxes, masks=follow)


def _unfinished(folder):
    work = os.path.join(folder, WRITING)
    known = sorted({int(name[:5]) for name in os.listdir(work) if name[:5].isdigit()})
    open_ones = [str(part) for part in known if not os.path.exists(os.path.join(work, f"{part:05}.json"))]
    if open_ones:
        return f"part {', '.join(open_ones)} was not closed; while no process writes it, it is written anew by Writer(..., part={open_ones[0]})"
    return f"{len(known):,} parts are closed, and others were not begun; write them, or one of these again, which then finishes it"
