# SPDX-License-Identifier: Apache-2.0
"""FFCV's files whose samples have more than a picture and a label, for the pool (wrap()). What is in a file: storage/source/scan/scan_beton.c."""

import json
import os
import struct
from collections.abc import Mapping, Sequence

from ..errors import ArgumentError, DatasetError
from ..masks import Image, Mask, Measured, following
from ..wrapped import Wrapped, wrap
from .members import shards_of
from .stores import PerProcess
from .tables import stamp_of, unchanged

_VERSION, _HEAD, _FIELD, _MOST_FIELDS = 2, 24, 1041, 64
_FLOAT, _INT, _IMAGE, _BYTES, _ARRAY, _JSON, _TENSOR, _OWN = 0, 1, 2, 3, 4, 5, 6, 255
_IN_ROW = {_FLOAT: "<f8", _INT: "<i8", _IMAGE: [("mode", "u1"), ("width", "<u2"), ("height", "<u2"), ("at", "<u8")], _BYTES: [("at", "<u8"), ("size", "<u8")],
           _ARRAY: "<u8", _JSON: [("at", "<u8"), ("size", "<u8")], _TENSOR: "<u8"}
_JPEG, _RAW = 0, 1      # modes of an image
_SHAPE = struct.Struct("<32QQ")


def _array_of(arguments):
    """Type and shape of an array's samples; not of objects."""
    import numpy as np
    *shape, size = _SHAPE.unpack_from(arguments)
    described, = json.loads(arguments[_SHAPE.size:_SHAPE.size + size])
    dtype, shape = np.dtype(described[1]), tuple(extent for extent in shape if extent)
    if dtype.hasobject or dtype.itemsize == 0:
        raise ValueError(f"an array of {dtype}")
    return dtype, shape


class _File:
    """One of them, open. Not mapped: of a file that is cut while it is read, a page that is gone kills who reads it."""

    def __init__(self, path):
        import numpy as np
        self.file = open(path, "rb", buffering=0)
        self.end = size = os.fstat(self.file.fileno()).st_size
        if size < _HEAD + _FIELD:
            raise ValueError("it is too short")
        version, count, _, self.samples, table = struct.unpack("<HHIQQ", self._read(0, _HEAD))
        if version != _VERSION or not 1 <= count <= _MOST_FIELDS or table < _HEAD + count * _FIELD or table > size or (size - table) % 24:
            raise ValueError("it is no file of FFCV's of version 2, was not written to its end, or is cut off")
        described = [self._read(at, _FIELD).tobytes() for at in range(_HEAD, _HEAD + count * _FIELD, _FIELD)]
        own = [number for number, field in enumerate(described) if field[0] not in _IN_ROW]
        if own:
            raise ValueError(f"field {own[0]} is of a class of its own, whose size nobody knows")
        self.types = {field[1:17].split(b"\0")[0].decode(): (field[0], *(_array_of(field[17:]) if field[0] in (_ARRAY, _TENSOR) else ())) for field in described}
        if len(self.types) != count:
            raise ValueError("two fields have one name")
        self.row = np.dtype([("", np.dtype(_IN_ROW[kind])) for kind, *_ in self.types.values()], align=True)
        if self.samples > (table - _HEAD - count * _FIELD) // self.row.itemsize:
            raise ValueError("its head tells of more samples than there are")
        self.first = _HEAD + count * _FIELD
        places = self._read(table, size - table).view("<u8").reshape(-1, 3)
        order = np.argsort(places[:, 1], kind="stable")
        self.at, self.size = places[order, 1], places[order, 2]

    def _read(self, at, size):
        import numpy as np
        at, size, done = int(at), int(size), 0
        if at > self.end or size > self.end - at:
            raise ValueError("it lies beyond the file's end")
        data = np.empty(size, "u1")
        while done < size:
            got = os.preadv(self.file.fileno(), [data[done:]], at + done)
            if got == 0:
                raise ValueError("the file was cut off since it was opened")
            done += got
        return data

    def bytes(self, at, size=None):
        """At that place; of so many, or of as many as the table says."""
        if size is None:
            number = self.at.searchsorted(at, "right") - 1     # of those at one place, all but the last are empty
            if number < 0 or self.at[number] != at:
                raise ValueError("the table of places has none of it")
            size = self.size[number]
        return self._read(at, size)

    def value(self, number, name):
        kind, *array = self.types[name]
        value = self._read(self.first + number * self.row.itemsize, self.row.itemsize).view(self.row)[0][list(self.types).index(name)]
        if kind == _IMAGE:
            width, height = int(value["width"]), int(value["height"])
            if value["mode"] not in (_JPEG, _RAW):
                raise ValueError(f"a picture of mode {value['mode']}, which is none of FFCV's")
            return self.bytes(value["at"]).tobytes() if value["mode"] == _JPEG else self.bytes(value["at"], 3 * width * height).reshape(height, width, 3)
        if kind in (_BYTES, _JSON):
            data = self.bytes(value["at"], value["size"])
            return data if kind == _BYTES else data.tobytes().partition(b"\0")[0].decode()
        if kind in (_ARRAY, _TENSOR):
            dtype, shape = array
            count = 1
            for extent in shape:
                count *= extent
            return self.bytes(value, count * dtype.itemsize).view(dtype).reshape(shape)
        return value


def _within(text, path):
    import numpy as np
    value = json.loads(text)
    for key in path.split("/"):
        value = value[int(key) if isinstance(value, list) else key]
    return np.array(value) if isinstance(value, list) else value


class BetonRows(PerProcess):
    """Fields of samples, as a dict."""

    def __init__(self, paths, fields):
        self.paths, self.stamps, self.counts, types = shards_of(paths, ".beton", ".beton file", "from_beton()"), [], [], None
        for path in self.paths:
            self.stamps.append(stamp_of(path))
            file = self._read(path)
            self.counts.append(file.samples)
            if types not in (None, file.types):
                raise DatasetError(f"{path} has other fields than {self.paths[0]}")
            types = file.types
        self.fields = {}
        for name, given in (fields or {name: name for name in types}).items():
            field, _, path = given.partition(":")
            if field[:16] not in types or path and types[field[:16]][0] != _JSON:
                raise ArgumentError(f"fields={{{name!r}: {given!r}}}: there is no such field{' of JSON' if path else ''}; there are: {', '.join(types)}")
            self.fields[name] = field[:16], path

    @staticmethod
    def _read(path):
        try:
            return _File(path)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, SyntaxError, struct.error) as why:
            raise DatasetError(f"{path} cannot be read: {why}") from None

    def open(self):
        for path, stamp in zip(self.paths, self.stamps):
            unchanged(path, stamp)
        return [self._read(path) for path in self.paths]

    def __len__(self):
        return sum(self.counts)

    def __getitem__(self, index):
        number, files = range(len(self))[index], iter(self.opened())
        for path, stamp, count, file in zip(self.paths, self.stamps, self.counts, files):
            if number < count:
                break
            number -= count
        sample = {}
        for name, (field, key) in self.fields.items():
            try:
                value = file.value(number, field)
                sample[name] = _within(value, key) if key else value
            except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError, SyntaxError) as why:
                unchanged(path, stamp)
                raise DatasetError(f"{path}, sample {number}, field {field}: {type(why).__name__}: {why}") from None
        unchanged(path, stamp)
        return sample


def from_beton(paths: str | os.PathLike | Sequence, fields: Mapping[str, str] | None = None, *, ragged: dict[str, int] | None = None,
               boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
               images: str | Sequence[str] | Mapping[str, Image] | None = None, exact: bool = False,
               workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None,
               keep: float = 30.0) -> Wrapped:
    """Fields of FFCV's files (.beton), for Loader. Of a picture and a label alone the Loader reads the files itself: Loader("train.beton", ...).

        data = oa.from_beton("/data/coco.beton", {"image": "image", "boxes": "meta:boxes", "score": "score"}, ragged={"boxes": 100}, boxes="boxes")
        loader = oa.Loader(data, pipeline, batch_size=64)
        for batch in loader: batch["image"], batch["boxes"]

    paths: a file, a folder, a pattern, or a list of these.
    fields: {field of a batch: field of the file}, in the order of a batch; "meta:boxes" is a key of a JSONField. Default: all.
    ragged: {field: most}, of fields whose length differs: bytes, and JSON as a text or its lists.

    An RGBImageField is the picture of a pipeline if it is the first field; an IntField is a number, a FloatField too (float64 with
    exact=True), NDArrayField and TorchTensorField are arrays. Fields of classes of your own are refused. The other arguments are those of wrap().
    """
    if fields is not None and (not isinstance(fields, Mapping) or not fields or not all(isinstance(given, str) for given in fields.values())):
        raise ArgumentError(f"fields is {fields!r}: {{field of a batch: field of the file}}")
    return wrap(BetonRows(paths, fields), name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep, ragged=ragged, boxes=boxes,
                exact=exact, masks=following(masks, images))
