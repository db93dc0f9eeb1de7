# SPDX-License-Identifier: Apache-2.0
"""Data sets that TensorFlow Datasets prepared on disk, read without it: features.json says what a sample has and how it is written in a tf.Example,
dataset_info.json which splits there are, of which shards of TFRecord or ArrayRecord.

A feature below others is called "objects/bbox", as in the files. What is in one Sequence is a list in a row; in two it is flat beside the lengths of
its lists. Pictures are files, boxes parts of the picture from the top left corner, as top, left, bottom and right."""

import array
import bisect
import io
import json
import os
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .. import urls
from ..columns import Pad, named
from ..errors import ArgumentError, DatasetError, TransformError, not_there, warn
from ..masks import Image, Mask, Measured, following
from ..record import size_of_picture
from ..wrapped import Wrapped, wrap
from .array_record import reader_of
from .stores import PerProcess
from .tables import Kept, stamp_of, unchanged
from .tfrecord import LOOKS, MOST_RECORD, example_of

_MOST_OPEN = 16
_HEAD, _AROUND = 12, 16     # bytes of a record before its content, and all that are not content
_PART = re.compile(r"([^\[\]+]+)(?:\[(-?[0-9_]+%?)?:(-?[0-9_]+%?)?\])?")
_BOXES = {"YXYX": (1, 0, 3, 2), "XYXY": (0, 1, 2, 3)}
_FORMATS = {"tfrecord": "tfrecord", "array_record": "array_record"}
_MOST = 1 << 40             # of anything that is counted
_USUAL = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


# ---- features ----


class Feature(NamedTuple):
    """What becomes a field. kind: "picture", "text", "number", "class", "box"; None: why it has no place. depth: in so many sequences, whose
    lengths are not said; shape: of what is in them; None in it is an extent that differs."""

    name: str
    kind: str | None
    depth: int = 0
    shape: tuple = ()
    dtype: str = "int64"
    encoding: str = "none"
    why: str = ""

    @property
    def is_ragged(self):
        return self.depth > 0 or None in self.shape


def _count(text):
    if int(text) > _MOST:
        raise ValueError(f"{text} is too large")
    return int(text)


def _word(text):
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no word")
    return text


def _shape(told):
    extents = [_count(extent) for extent in (told.get("shape") or {}).get("dimensions", ())]
    return tuple(None if extent < 0 else extent for extent in extents)


def _coded(told):
    return str(told.get("encoding", "none")).lower()


def features_of(told, name=(), depth=0):
    """The leaves of features.json."""
    full, what = "/".join(name), told.get("pythonClassName", "?").rpartition(".")[2]
    if what == "Dataset":
        return [Feature(full, None, why="is the steps of an episode (RLDS), many samples in one record: oneaccess.from_rlds() opens it")]
    if "featuresDict" in told:
        return [leaf for key, inner in told["featuresDict"]["features"].items() for leaf in features_of(inner, (*name, key), depth)]
    if "translation" in told:
        return [Feature(f"{full}/{language}", "text", depth) for language in told["translation"].get("languages", ())]
    if "sequence" in told:
        length, inner = _count(told["sequence"].get("length", -1)), told["sequence"]["feature"]
        if length < 0:
            return features_of(inner, name, depth + 1)
        return [leaf._replace(shape=(length, *leaf.shape)) if leaf.kind in ("number", "class", "box") and leaf.depth == depth
                else leaf._replace(kind=None, why="is in a sequence of fixed length") for leaf in features_of(inner, name, depth)]
    return [_leaf(full, told, what, depth)]


def steps_of(told):
    """Of an episode (RLDS), the leaves of its steps, called as they are within one; {}: there are none."""
    for name, inner in (told.get("featuresDict") or {}).get("features", {}).items():
        if inner.get("pythonClassName", "").rpartition(".")[2] == "Dataset":
            return {leaf.name.removeprefix(f"{name}/"): leaf for leaf in features_of(inner["sequence"]["feature"], (name,))}
    return {}


def _leaf(name, told, what, depth):
    if "image" in told:
        if told["image"].get("dtype", "uint8") not in ("uint8", "uint16") or depth:
            return Feature(name, None, why="is a list of pictures" if depth else "is a picture of floats, which TFDS writes as other colours")
        return Feature(name, "picture", dtype=told["image"].get("dtype", "uint8"))
    if "classLabel" in told:
        return Feature(name, "class", depth)
    if "text" in told:
        return Feature(name, "text", depth) if depth < 2 else Feature(name, None, why="is lists of lists of texts")
    if "boundingBox" in told:
        form = told["boundingBox"].get("bboxFormat") or "REL_YXYX"
        if form.removeprefix("REL_") not in _BOXES or depth > 1:
            return Feature(name, None, why=f"is boxes of the format {form}" if depth < 2 else "is lists of lists of boxes")
        return Feature(name, "box", depth, (4,), "float32", form)
    for key in "tensor", "audio":
        if key in told:
            return _tensor(name, told[key], depth)
    return Feature(name, None, why=f"is a feature of the class {what}")


def _tensor(name, told, depth):
    dtype, encoding, shape = told.get("dtype", "int64"), _coded(told), _shape(told)
    if dtype in ("string", "object"):
        return Feature(name, "text", depth) if not shape and depth < 2 else Feature(name, None, why="is texts in several dimensions")
    if not _is_number(dtype):
        return Feature(name, None, why=f"is of the dtype {dtype}")
    if encoding not in ("none", "zlib", "bytes") or (encoding != "none" and depth):
        return Feature(name, None, why=f"is encoded as {encoding}" + (" in a sequence" if depth else ""))
    if depth + len([extent for extent in shape if extent is None]) > (2 if shape == () else 1) and encoding == "none":
        return Feature(name, None, why="has several extents that differ")
    if None in shape[1:] or (depth and None in shape):
        return Feature(name, None, why="has an extent that differs beyond the first")
    return Feature(name, "number", depth, shape, dtype, encoding)


def _is_number(dtype):
    import numpy as np
    try:
        return isinstance(dtype, str) and np.dtype(dtype).kind in "biuf"
    except (TypeError, ValueError, SyntaxError):
        return False


def _inflated(data):
    inflate = zlib.decompressobj()
    whole = inflate.decompress(data, MOST_RECORD)
    if not inflate.eof:
        raise DatasetError(f"a feature's zlib is cut off, or has more than {MOST_RECORD >> 30} GiB in it")
    return whole


def unpacked(feature, data):
    """The numbers of a tensor that is written as bytes."""
    import numpy as np
    whole = np.frombuffer(_inflated(data) if feature.encoding == "zlib" else data, feature.dtype)
    return whole.reshape(tuple(-1 if extent is None else extent for extent in feature.shape))


def _value(feature, example, size):
    """A field of a tf.Example. size(): height and width of the picture that boxes are on."""
    import numpy as np
    if feature.depth == 2:
        flat, lengths = (_there(feature, example, f"{feature.name}/{part}") for part in ("ragged_flat_values", "ragged_row_lengths_0"))
        return np.split(_numbers(flat, feature), np.cumsum(np.array(lengths, np.int64))[:-1]) if len(lengths) else []
    values = _there(feature, example, feature.name)
    if feature.kind == "text":
        texts = [text_of(value) for value in values]
        return texts if feature.depth else _one(feature, texts)
    if feature.kind == "picture":
        return _one(feature, values)
    if feature.encoding in ("zlib", "bytes"):
        return unpacked(feature, _one(feature, values))
    numbers = _numbers(values, feature)
    if feature.kind == "box":
        return _box(feature, numbers, size)
    return numbers


def _there(feature, example, name):
    """An empty list of any type is written as one of none."""
    if name not in example:
        if feature.is_ragged:
            return []
        raise DatasetError(f"the record has no feature {name!r}, which features.json says; there are: {', '.join(sorted(example))}")
    return example[name]


def _one(feature, values):
    if len(values) != 1:
        raise DatasetError(f"feature {feature.name} has {len(values)} values, and features.json says one")
    return values[0]


def text_of(value):
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _numbers(values, feature):
    import numpy as np
    numbers = np.array(values).astype(feature.dtype) if len(values) else np.zeros(0, feature.dtype)
    shape = (-1, *feature.shape) if feature.depth else tuple(-1 if extent is None else extent for extent in feature.shape)
    try:
        return numbers.reshape(shape)[()] if shape else numbers.reshape(())[()]
    except ValueError:
        raise DatasetError(f"feature {feature.name} has {len(numbers)} numbers, and features.json says the shape {feature.shape}") from None


def _box(feature, boxes, size):
    """left, top, right, bottom in pixels."""
    import numpy as np
    boxes = boxes[..., list(_BOXES[feature.encoding.removeprefix("REL_")])]
    if feature.encoding.startswith("REL_"):
        height, width = size()
        boxes = boxes * np.array([width, height, width, height], np.float32)
    return boxes


# ---- splits ----


def _bound(text, count, otherwise):
    """As TFDS: percents to the closest sample, from the end where negative."""
    if not text:
        return otherwise
    if text.endswith("%"):
        number, most = round(int(text[:-1]) * count / 100.0), 100
    else:
        number, most = int(text), count
    if abs(int(text.rstrip("%"))) > most:
        raise ArgumentError(f"a split's bound is {text}, and it has {count:,} samples")
    return number + count if number < 0 else number


def _ranges(text, counts, path):
    """[(split, from, to)] of "train[:80%]+test"."""
    made = []
    for part in text.split("+") if isinstance(text, str) else [""]:
        found = _PART.fullmatch(part.strip())
        names = list(counts) if found and found[1] == "all" and "all" not in counts else [found[1]] if found else [""]
        for name in names:
            if name not in counts:
                raise ArgumentError(f"split={text!r}: {path} has the splits {', '.join(counts)}; a part of one is \"train[:80%]\", \"train[100:200]\" or \"train[-10%:]\","
                                    " several are \"train+test\"")
            begin, end = _bound(found[2], counts[name], 0), _bound(found[3], counts[name], counts[name])
            made.append((name, begin, max(begin, end)))
    return made


class Info:
    """What a folder says of itself."""

    def __init__(self, path):
        self.path = path
        self.told, told = (self._read(name) for name in ("dataset_info.json", "features.json"))
        try:
            self.features, self.steps = features_of(told), steps_of(told)
            self.format = _word(self.told.get("fileFormat", "tfrecord"))
            self.lengths = {_word(split["name"]): [_count(length) for length in split.get("shardLengths", ())] for split in self.told["splits"]}
            if any(length < 0 for lengths in self.lengths.values() for length in lengths):
                raise ValueError("a shard has less than no sample")
            self.templates = {split["name"]: split.get("filepathTemplate") or _USUAL for split in self.told["splits"]}
            keys = (self.told.get("supervisedKeys") or {}).get("tuple", {}).get("items", [])
            self.supervised = [key.get("featureKey") for key in keys]
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as why:
            raise DatasetError(f"dataset_info.json or features.json of {path} is damaged: {why!r}") from None
        if self.format not in _FORMATS:
            raise DatasetError(f"{path} has files of the format {self.format}, which are not read here: prepare it with file_format=\"array_record\" or \"tfrecord\"")

    def _read(self, name):
        file = os.path.join(self.path, name)
        try:
            with open(file, encoding="utf-8") as opened:
                return json.load(opened)
        except OSError as why:
            below = [entry for entry in sorted(os.listdir(self.path)) if re.fullmatch(r"\d+\.\d+\.\d+", entry)] if os.path.isdir(self.path) else []
            more = f": give the folder of a version, as {os.path.join(self.path, below[-1])}" if below else ": it is no data set that TFDS prepared (tfds build)"
            raise not_there(f"{file} cannot be read: {why.strerror}{more}", self.path) from None
        except (ValueError, RecursionError) as why:
            raise DatasetError(f"{file} is damaged: {why}") from None

    def files(self, split):
        """Of its shards, which are in the folder."""
        count = len(self.lengths[split])
        return [os.path.join(self.path, self._file(split, at, count)) for at in range(count)]

    def _file(self, split, at, count):
        words = {"DATASET": self.told.get("name"), "SPLIT": split, "FILEFORMAT": _FORMATS[self.format], "SHARD_X_OF_Y": f"{at:05}-of-{count:05}",
                 "SHARD_INDEX": f"{at:05}", "NUM_SHARDS": f"{count:05}"}
        try:
            name = re.sub(r"\{([^{}]*)\}", lambda found: words[found[1]], self.templates[split])
        except (KeyError, TypeError) as why:
            raise DatasetError(f"dataset_info.json of {self.path} is damaged: the split {split} has files called {self.templates[split]!r} ({why!r})") from None
        if os.path.isabs(name) or ".." in name.split("/") or "\0" in name:
            raise DatasetError(f"dataset_info.json of {self.path} says that {name!r} is a file of the split {split}, which is not in the folder: move it there")
        return name

    def classes(self, name):
        """Those that are written down; else none."""
        try:
            with open(os.path.join(self.path, f"{self._labels(name)}.labels.txt"), encoding="utf-8") as file:
                return file.read().strip("\n").split("\n")
        except OSError:
            return []
        except ValueError as why:
            raise DatasetError(f"the names of the classes of {name} in {self.path} cannot be read: {why}") from None

    def _labels(self, name):
        """A "/" in a key is a point there, one between keys a "-"; which it is, the file that is there says."""
        names = [name.replace("/", "-"), name.replace("/", ".")]
        return next((each for each in names if os.path.exists(os.path.join(self.path, f"{each}.labels.txt"))), names[0])


# ---- rows ----


class TFRecords:
    """A file of which any record can be read."""

    def __init__(self, path, count):
        self._fd, self._path = os.open(path, os.O_RDONLY | os.O_CLOEXEC), path
        self._places, at = array.array("q"), 0
        size = os.fstat(self._fd).st_size
        while at < size:
            head = os.pread(self._fd, _HEAD, at)
            length = struct.unpack_from("<Q", head)[0] if len(head) == _HEAD else MOST_RECORD + 1
            self._places.append(at)
            at += length + _AROUND
            if length > MOST_RECORD or at > size:
                raise DatasetError(f"{path} is damaged or cut off at byte {self._places[-1]}")
        if len(self._places) != count:
            raise DatasetError(f"{path} has {len(self._places)} records, and dataset_info.json says {count}")
        self._places.append(at)

    def __del__(self):
        os.close(self._fd)

    def begin(self, at):
        """Of a record's content, in the file."""
        return self._places[at] + _HEAD

    def record(self, at):
        begin, end = self._places[at:at + 2]
        data = os.pread(self._fd, end - begin - _AROUND, begin + _HEAD)
        if len(data) != end - begin - _AROUND:
            raise DatasetError(f"{self._path} was cut off since it was opened")
        return data


class _ArrayRecords:
    def __init__(self, path, count):
        self._reader = reader_of(path)
        if self._reader.num_records() != count:
            raise DatasetError(f"{path} has {self._reader.num_records()} records, and dataset_info.json says {count}")

    def record(self, at):
        return self._reader.read([at])[0]


class TFDSRows(PerProcess):
    """Samples of a split, or of parts of some, as dicts."""

    def __init__(self, info, split, features):
        self.features, self.format, self.files, self.ranges = features, info.format, [], []
        self.class_names = {feature.name: info.classes(feature.name) for feature in features if feature.kind == "class"}
        self.classes = next(iter(self.class_names.values()), [])
        self.picture = next((feature for feature in info.features if feature.kind == "picture"), None)
        counts = {name: sum(lengths) for name, lengths in info.lengths.items()}
        for name, begin, end in _ranges(split, counts, info.path):
            self._add(zip(info.files(name), info.lengths[name]), begin, end)
        self.starts = array.array("q", [0])
        for _, first, end in self.ranges:
            self.starts.append(self.starts[-1] + end - first)
        if not len(self):
            raise DatasetError(f"split={split!r} of {info.path} has no sample")

    def _add(self, files, begin, end):
        at = 0
        for file, length in files:
            first, last = max(begin - at, 0), min(end - at, length)
            if first < last:
                try:
                    self.files.append((file, stamp_of(file), length))
                except OSError as why:
                    raise not_there(f"{file}, of which dataset_info.json tells, cannot be read: {why.strerror}", file) from None
                self.ranges.append((len(self.files) - 1, first, last))
            at += length

    def open(self):
        return Kept(_MOST_OPEN, self._open)

    def _open(self, at):
        file, stamp, count = self.files[at]
        unchanged(file, stamp)
        return (TFRecords if self.format == "tfrecord" else _ArrayRecords)(file, count)

    def __len__(self):
        return self.starts[-1]

    def __getitem__(self, index):
        index = range(len(self))[index]
        part = bisect.bisect_right(self.starts, index) - 1
        at, first, _ = self.ranges[part]
        number = first + index - self.starts[part]
        place = f"{os.path.basename(self.files[at][0])}: record {number}"
        try:
            example = example_of(self.opened().get(at).record(number))
            return {feature.name: _value(feature, example, lambda: self._size(example, place)) for feature in self.features}
        except (DatasetError, TransformError):
            raise
        except (ValueError, IndexError, KeyError, TypeError, RuntimeError, zlib.error) as why:
            raise DatasetError(f"{place} is no tf.Example as features.json says: {type(why).__name__}: {why}") from None

    def _size(self, example, place):
        """Of the picture, of which boxes are parts."""
        return size_of_picture(io.BytesIO(_one(self.picture, example.get(self.picture.name, []))), place)


def _chosen(info, columns):
    """In their order. Default: the picture, the class and all else that has a place."""
    there = {feature.name: feature for feature in info.features}
    if columns is None:
        good = [feature for feature in info.features if feature.kind is not None]
        if not good:
            raise TransformError(f"no feature of {info.path} has a place in a batch: {'; '.join(f'{each.name} {each.why}' for each in info.features)}")
        if left := [f"{each.name} {each.why}" for each in info.features if each.kind is None]:
            warn(f"left out: {'; '.join(left)}; columns=[...] says which features a batch is to have", UserWarning)
        rank = {"picture": 0, "class": 1}
        return sorted(good, key=lambda each: (rank.get(each.kind, 2) if not each.depth else 2, each.name not in info.supervised, 0))
    chosen = []
    for name in columns:
        if name not in there:
            raise ArgumentError(f"{info.path} has no feature {name!r}; there are: {', '.join(there)}")
        if there[name].kind is None:
            raise TransformError(f"feature {name} of {info.path} {there[name].why}; name others, by columns=[...], of {', '.join(there)}")
        chosen.append(there[name])
    return chosen


def _refuse_unbounded(rows, bounded):
    """What differs in length needs its most: it is not written down, so the first samples say which might do."""
    names = [feature.name for feature in rows.features if feature.name not in bounded and (feature.is_ragged and feature.kind != "picture")]
    if not names:
        return
    samples = [rows[index] for index in range(min(len(rows), LOOKS))]
    most = {name: _most([sample[name] for sample in samples]) for name in names}
    raise ArgumentError(f"features whose lengths differ need the most of one, as ragged={most} (four times what the first {len(samples)} samples have), or pad=;"
                        " or name the features of a batch, by columns=[...]")


def _most(values):
    """Of a field's values; of lists of lists and of texts (lists, in one)."""
    longest = 4 * max([1, *map(len, values)])
    if not any(isinstance(value, list) for value in values):
        return longest
    return longest, 4 * max([1, *(len(each.encode() if isinstance(each, str) else each) for value in values for each in value)])


def from_tfds(path: str | os.PathLike, split: str, columns: Sequence[str] | None = None, *, pad: dict[str, Pad] | None = None,
              ragged: dict[str, int | tuple[int, int]] | None = None, boxes: Sequence[str] | str | None = None,
              masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None, images: str | Sequence[str] | Mapping[str, Image] | None = None,
              exact: bool = False, workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
              room: int | None = None, keep: float = 30.0) -> Wrapped:
    """A data set that TensorFlow Datasets prepared on disk, for Loader; TensorFlow is not needed.

        data = oa.from_tfds("/data/tfds/oxford_flowers102/2.1.1", "train[:80%]", ["image", "label"])
        loader = oa.Loader(data, oa.imagenet_train(224), batch_size=256)
        for batch in loader: batch["image"], batch["label"]

        data = oa.from_tfds("/data/tfds/voc/2007/4.0.0", "train+validation", ["image", "objects/bbox", "objects/label"],
                            boxes=["objects/bbox", "objects/label"], ragged={"objects/bbox": 100, "objects/label": 100})

    path: the folder of a version, with dataset_info.json and features.json; its files are TFRecord, or ArrayRecord (which needs the package array_record).
    split: as TFDS has it: "train", "train[:80%]", "train[100:-100]", "train+test", "all". Percents are rounded to the closest sample.
    columns: the features of a batch, in this order; what is in a dict or a sequence of dicts is "objects/bbox". Default: pictures, classes, then all others that
        have a place; a warning says which are left out, and why.
    ragged, pad: the most of features whose lengths differ: sequences and shapes with None. A text needs none. Who gives none is told what the
        first samples have.
    boxes: as in wrap(); see there.

    Images are files, which the pipeline decodes, or masks= and images=. Classes are int64: their names are ``loader.dataset.classes``, of several
    ``loader.dataset.class_names["objects/label"]``. Boxes (BBoxFeature) are left, top, right and bottom in pixels of the first picture. Texts are str. Numbers have the dtypes
    of wrap(); a sequence is [n, ...], and a sequence of sequences a list of lists. Refused by name: videos, lists of pictures, steps of episodes (RLDS) and others that
    nothing here decodes.

    Samples are numbered in the order of the files. A sample that does not fit features.json is a bad sample. Records' checksums are not compared: accessd does so where it
    reads the shards itself, as by from_tfrecord(), which is quicker for whole splits of pictures and classes.

    The other arguments are those of wrap().
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"path is {path!r}: give the folder of a version of the data set")
    info = Info(os.path.abspath(urls.local(path, "from_tfds()")))
    features, of_masks = _chosen(info, named(columns)), following(masks, images)
    rows = TFDSRows(info, split, features)
    for feature in features:
        if feature.kind == "box" and feature.encoding.startswith("REL_") and rows.picture is None:
            raise TransformError(f"feature {feature.name} of {info.path} has boxes that are parts of a picture, and there is none: name others, by columns=[...]")
    _refuse_unbounded(rows, {*(ragged or ()), *(pad or ()), *(of_masks or ())})
    return wrap(rows, random=False, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep, columns=[feature.name for feature in features] if pad else None,
                pad=pad, ragged=ragged, boxes=boxes, masks=of_masks, exact=exact)
