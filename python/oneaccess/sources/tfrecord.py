# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of tf.Example whose samples have more than a picture and a label: accessd takes them apart (picked.py). Here only the first
records are looked at, to know of which types and lengths features are."""

import json
import os
import re
import struct
from collections.abc import Mapping, Sequence

from .. import urls
from ..errors import ArgumentError, DatasetError, not_there
from ..masks import Image, Mask, Measured, following
from ..picked import Picked
from ..points import boxes_of

LOOKS, MOST_RECORD = 64, 1 << 30
_FILE = re.compile(r"(?!\.).*(\.tfrecords?|-\d{5}-of-\d{5}(\..*)?)\Z")


# ---- the first records of a file ----


def first_file(path, what, names, called):
    """Of a folder, a file, or "train-{00000..00127}-of-00128"."""
    if os.path.isdir(path):
        path, folder = next((os.path.join(path, name) for name in sorted(os.listdir(path)) if names.match(name)), None), path
        if path is None:
            raise DatasetError(f"{folder} has no {what} files: they are called {called}")
    elif not os.path.exists(path):
        path = re.sub(r"\{([^{},.]*)(\.\.|,)[^{}]*\}", r"\1", path)
    if not os.path.exists(path):
        raise not_there(f"no {what} file is at {path}: give their folder, one of them, or \"train-{{00000..00127}}-of-00128\"", path)
    return path


def records_of(path):
    """Their checksums are accessd's affair."""
    with open(path, "rb") as file:
        for _ in range(LOOKS):
            head = file.read(12)
            if not head:
                return
            length, = struct.unpack("<Q", head[:8])
            if length > MOST_RECORD:
                raise ValueError(f"a record of {length} bytes")
            data = file.read(length + 4)
            if len(data) != length + 4:
                raise ValueError("it is cut off")
            yield data[:-4]


def _varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at
        if shift > 63:
            raise ValueError("a whole number is longer than 10 bytes")


def places(data, at: int, end: int):
    """(number, kind, begin, end) of the content of each field of a message: 0: a whole number, 2: bytes, 1 and 5: 8 and 4 bytes."""
    while at < end:
        key, at = _varint(data, at)
        kind, begin = key & 7, at
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, begin = _varint(data, at)
            at = begin + size
        else:
            at += {1: 8, 5: 4}[kind]
        if at > end:
            raise IndexError("a field is cut off")
        yield key >> 3, kind, begin, at


def _message(data):
    """(number, value) of each field: bytes, or a whole number."""
    for number, kind, begin, end in places(data, 0, len(data)):
        yield number, data[begin:end] if kind else _varint(data, begin)[0]


def whole_numbers(data):
    """Those that lie packed in bytes, as int64."""
    import numpy as np
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes < 128) + 1
    if not len(codes):
        return np.zeros(0, np.int64)
    if not len(ends) or ends[-1] != len(codes):
        raise IndexError("a whole number is cut off")
    begins = np.concatenate([[0], ends[:-1]])
    lengths = ends - begins
    if lengths.max() > 10:
        raise ValueError("a whole number is longer than 10 bytes")
    shifts = (np.arange(len(codes)) - np.repeat(begins, lengths)) * 7
    return np.bitwise_or.reduceat((codes & 127).astype(np.uint64) << shifts.astype(np.uint64), begins).astype(np.int64)


def _feature(data):
    """A list of bytes, or an array of int64 or float32."""
    import numpy as np
    (kind, data), = _message(data)
    values = [value for _, value in _message(data)]
    if kind == 1:
        return values
    if kind == 2:
        return np.frombuffer(b"".join(values), "<f4")
    parts = [whole_numbers(value) if isinstance(value, bytes) else np.array([value & (1 << 64) - 1], np.uint64).astype(np.int64)
             for value in values]        # packed ones, or one by one
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def example_of(data):
    """{feature: values} of a tf.Example."""
    found = {}
    for _, features in _message(data):
        for _, entry in _message(features):
            pair = dict(_message(entry))
            found[pair[1].decode()] = _feature(pair.get(2, b"")) if pair.get(2) else []
    return found


# ---- what fields are ----


class _Field:
    """A field of a batch: its feature, with a key in JSON or not, and the shape of its numbers, where that is given."""

    def __init__(self, name, given, boxes):
        self.name, self.shape = name, None
        if isinstance(given, (tuple, list)) and len(given) == 2:
            given, self.shape = given
            self.shape = tuple(self.shape)
        elif name == boxes:
            self.shape = (None, 4)
        if not isinstance(given, str) or not given:
            raise ArgumentError(f"features={{{name!r}: {given!r}}}: give a feature's name, or (name, shape), as (\"image/boxes\", (None, 4))")
        self.member = given
        self.feature, _, path = given.partition(":")
        self.path = [key for key in path.split("/") if key]

    def value(self, example):
        values = example.get(self.feature)
        if values is None:
            raise ArgumentError(f"features={{{self.name!r}: {self.member!r}}}: the first record has no feature {self.feature!r}; there are:"
                                f" {', '.join(sorted(example))}")
        if not isinstance(values, list) or not values:
            import numpy as np
            return self._shaped(np.array(values if len(values) else np.zeros(0, np.int64)))
        if len(values) != 1:
            raise DatasetError(f"feature {self.feature} of the first records has {len(values)} values of bytes: a field is made of one")
        if not self.path:
            return values[0]
        value = json.loads(values[0])
        for key in self.path:
            value = value[int(key) if isinstance(value, list) else key]
        return value

    def _shaped(self, values):
        if self.shape is None:
            return values
        shape = tuple(-1 if extent is None else extent for extent in self.shape)
        try:
            return values.reshape(shape)
        except (ValueError, TypeError):
            raise ArgumentError(f"features={{{self.name!r}: ({self.member!r}, {self.shape})}}: the feature has {len(values)} values") from None


def _is_text(values):
    try:
        return all(value.decode() is not None and b"\0" not in value for value in values)
    except UnicodeDecodeError:
        return False


def _sample(field, values, ragged, is_file):
    """Of the first records' values, the one that says what all are like."""
    first = next((value for value in values if not hasattr(value, "__len__") or len(value)), values[0])    # an empty list may be of any type
    if isinstance(first, bytes):
        if is_file:
            return first
        first = first.decode() if _is_text(values) else first
    lengths = sorted({len(value) for value in values if hasattr(value, "__len__")})
    if field.name not in ragged and (isinstance(first, (str, bytes)) or len(lengths) > 1):
        what = "a text" if isinstance(first, str) else "bytes" if isinstance(first, bytes) else "a list whose length differs"
        raise ArgumentError(f"feature {field.member} is {what}: say the most of one, as ragged={{{field.name!r}: {4 * max(lengths)}}}; the longest of the first"
                            f" {len(values)} records has {max(lengths)}")
    is_one = field.name not in ragged and field.shape is None and getattr(first, "shape", None) == (1,)
    return first[0] if is_one else first


def from_tfrecord(path: str | os.PathLike, features: Mapping[str, str | tuple[str, Sequence[int | None]]], *, ragged: dict[str, int] | None = None,
                  boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
                  images: str | Sequence[str] | Mapping[str, Image] | None = None) -> Picked:
    """Features of tf.Example in TFRecord files, for Loader.

        data = oa.from_tfrecord("/data/coco", {"image": "image/encoded", "label": "image/class/label", "caption": "image/caption",
                                               "boxes": "image/object/boxes"}, ragged={"caption": 300, "boxes": 100}, boxes="boxes")
        loader = oa.Loader(data, pipeline, batch_size=64)
        for batch in loader: batch["image"], batch["caption"]

    path: a folder, a file, or "train-{00000..00127}-of-00128".
    features: {field: feature}, in the order of a batch. "about:objects/boxes" is a key of JSON in a feature; (feature,
        shape), such as ("grid", (2, 3)), sets a shape.
    ragged: {field: most}: fields whose samples differ in length, texts and bytes, and the greatest length (of texts and
        bytes: in bytes). A batch has a Ragged.
    boxes, masks, images: as in wrap(); boxes are left, top, right and bottom, in one feature of floats; beside points they
        have their shape, as {"points": "scan", "boxes": ("boxes", (None, 7))}.

    Integers are int64, others float32, as many as the first record has; one is a number. With a pipeline the first field is
    the file of an image, points or a sound, and the others go to the batch as they are; a number after it that is called "label" is the class for
    the pipeline's mixup and filters. Without a pipeline the fields may be anything, such as tokens alone.

    accessd reads the files and compares checksums; no Python runs for a sample. Orders, resuming, ranks and caches work as
    for a folder. The first records say what features are; a sample that differs is a bad sample.
    """
    return of_examples(path, features, lambda path: first_file(path, "TFRecord", _FILE, ".tfrecord, .tfrecords or name-00000-of-00128"), records_of,
                       ragged, boxes, following(masks, images))


def of_examples(path, features, first, records, ragged, boxes, masks, own_labels=lambda file: True):
    """first: the file of a path that is looked at; records: its first ones; own_labels: of Picked."""
    if not isinstance(features, Mapping) or not features:
        raise ArgumentError(f"features is {features!r}: {{field of a batch: feature}}")
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"path is {path!r}: give the files' folder, one of them, or \"train-{{00000..00127}}-of-00128\"")
    path = urls.local(path, "from_tfrecord(), from_bagz() or from_array_record()")
    fields, file = [_Field(name, given, boxes_of(boxes)) for name, given in features.items()], first(path)
    try:
        examples = [example_of(data) for data in records(file)]
        values = [[field.value(example) for at, example in enumerate(examples) if at == 0 or field.feature in example] for field in fields]
    except (ValueError, IndexError, KeyError, TypeError, struct.error) as why:
        if isinstance(why, (ArgumentError, DatasetError)):
            raise
        raise DatasetError(f"{file} has no records of tf.Example at its beginning: {type(why).__name__}: {why}") from None
    if not examples:
        raise DatasetError(f"{file} has no records")
    sample = {field.name: _sample(field, of, ragged or {}, field.name in masks or field.name not in (ragged or {}) and _is_file(of, field is fields[0]))
              for field, of in zip(fields, values)}
    return Picked(path, {"members": "all"}, {field.name: field.member for field in fields}, sample, ragged=ragged, boxes=boxes, masks=masks,
                  own_labels=own_labels(file))


def _is_file(values, is_first):
    """Of a picture; or of what a pipeline decodes, a cloud of points or a sound, if the field is the first."""
    return _is_picture(values[0]) or is_first and isinstance(values[0], bytes) and not _is_text(values)


def _is_picture(value):
    return isinstance(value, bytes) and value.startswith((b"\xff\xd8\xff", b"\x89PNG", b"RIFF", b"II*\0", b"MM\0*", b"GIF8", b"BM", b"P5", b"P6"))
