# SPDX-License-Identifier: Apache-2.0
"""Bagz files of tf.Example whose samples have more than a picture and a label: accessd takes them apart. Here only the first records are
looked at (tfrecord.py), to know of which types and lengths features are."""

import os
import re
import struct
from collections.abc import Mapping, Sequence

from ..masks import Image, Mask, Measured, following
from ..picked import Picked
from .tables import needs
from .tfrecord import LOOKS, MOST_RECORD, first_file, of_examples

_FILE = re.compile(r"(?!\.).*\.bagz?\Z", re.IGNORECASE)
_FRAME = b"\x28\xb5\x2f\xfd"


def _is_compressed(path):
    with open(path, "rb") as file:
        return file.read(len(_FRAME)) == _FRAME


def _records(path):
    """Compressed ones are unpacked by the package that wrote them."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        file.seek(size - 8 if size >= 8 else 0)
        limits_at, = struct.unpack("<Q", file.read(8))
        if limits_at > size - 8 or (size - limits_at) % 8:
            raise ValueError("it does not end in the limits of its records")
        file.seek(limits_at)
        limits = file.read(8 * min((size - limits_at) // 8, LOOKS))
        limits = struct.unpack(f"<{len(limits) // 8}Q", limits)
        reader = None
        for at, (begin, end) in enumerate(zip((0, *limits), limits)):
            if not begin <= end <= limits_at or end - begin > MOST_RECORD:
                raise ValueError(f"record {at} is from {begin} to {end}")
            file.seek(begin)
            data = file.read(end - begin)
            if data.startswith(_FRAME):
                reader = reader or needs("bagz", "from_bagz() of compressed records").Reader(path)
                data = reader[at]
            yield data


def from_bagz(path: str | os.PathLike, features: Mapping[str, str | tuple[str, Sequence[int | None]]], *, ragged: dict[str, int] | None = None,
              boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
              images: str | Sequence[str] | Mapping[str, Image] | None = None) -> Picked:
    """Features of tf.Example in Bagz files, for Loader: as from_tfrecord(), with the same arguments.

        data = oa.from_bagz("/data/train-{00000..00127}-of-00128.bagz", {"image": "image/encoded", "label": "image/class/label"})
        loader = oa.Loader(data, pipeline, batch_size=64)

    path: a folder, a file, or a list with braces. Records of a .bagz are compressed: accessd's workers unpack them, and the first ones
        are looked at here with the package bagz (pip install bagz).
    """
    return of_examples(path, features, lambda path: first_file(path, "Bagz", _FILE, ".bag or .bagz"), _records, ragged, boxes, following(masks, images),
                       lambda file: not _is_compressed(file))
