# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord files of tf.Example whose samples have more than a picture and a label: accessd takes them apart. Here only the first records
are looked at (tfrecord.py), by the package that wrote them, to know of which types and lengths features are."""

import os
import re
from collections.abc import Mapping, Sequence

from ..masks import Image, Mask, Measured, following
from ..picked import Picked
from .tables import needs
from .tfrecord import LOOKS, first_file, of_examples

_FILE = re.compile(r"(?!\.).*\.(array_record|arecord)(-\d+-of-\d+)?\Z", re.IGNORECASE)


def reader_of(path):
    module = needs("array_record.python.array_record_module", "from_array_record()", "array_record")
    return module.ArrayRecordReader(os.fspath(path), "readahead_buffer_size:0,max_parallelism:0")


def _records(path):
    try:
        reader = reader_of(path)
        yield from reader.read(list(range(min(reader.num_records(), LOOKS))))
    except RuntimeError as why:
        raise ValueError(why) from None


def from_array_record(path: str | os.PathLike, features: Mapping[str, str | tuple[str, Sequence[int | None]]], *, ragged: dict[str, int] | None = None,
                      boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
                      images: str | Sequence[str] | Mapping[str, Image] | None = None) -> Picked:
    """Features of tf.Example in ArrayRecord files, for Loader: as from_tfrecord(), with the same arguments.

        data = oa.from_array_record("/data/coco/2014/coco-train.array_record-{00000..00031}-of-00032",
                                    {"image": "image", "objects": "objects/label"}, ragged={"objects": 100})
        loader = oa.Loader(data, pipeline, batch_size=64)

    path: a folder, a file, or a list with braces; written with group_size:1. Their records are compressed by default: accessd's workers
        unpack them, and the first ones are looked at here with the package array_record (pip install array_record).
    """
    return of_examples(path, features, lambda path: first_file(path, "ArrayRecord", _FILE, "NAME.array_record or NAME.array_record-00000-of-00128"),
                       _records, ragged, boxes, following(masks, images), lambda file: "uncompressed" in (reader_of(file).writer_options_string() or ""))
