# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's datasets as data sets for the pool (wrap()): each column that has a place in a batch.

A column is taken apart as Arrow has it. What is below the names of a dict or of a list of dicts is a leaf, a field of a batch, called
"objects.bbox" as Dataset.flatten() calls it. How long its values are at most is read from Arrow's offsets alone when the data
set is opened: so nobody has to say what ragged= would, and a column whose values all have one length is no ragged field."""

import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..columns import Pad, named
from ..errors import ArgumentError, DatasetError, TransformError, warn
from ..masks import Image, Mask, Measured, following
from ..points import boxes_of, points_of
from ..record import MOST_FIELDS
from ..wrapped import Wrapped, wrap
from .tables import needs
from .where import ROWS, Where, numbers_of, versioned

_LARGE = 256 << 10      # bytes of a column's longest value that nobody asked for by name
_FORMATS = ("xyxy", "xywh")


class Leaf(NamedTuple):
    """What becomes a field: a column, or what is below names in it. kind: "picture" (a video and a sound are some here), "text", "bytes", "number";
    None: why it has no place. depth: in so many lists."""

    name: str
    path: tuple[str, ...]
    kind: str | None
    depth: int
    why: str = ""
    is_class: bool = False


# ---- which columns there are ----


def _is_list(type_):
    from pyarrow import types
    return types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)


def _plain(array):
    """Without what datasets makes of an array of several dimensions, which are lists."""
    return getattr(array, "storage", array)


def _below(feature, name=None):
    """The feature of a list's items, or below a name: a dict's, or a list's of dicts that Arrow has as a dict of lists (datasets before 4)."""
    if name is not None and isinstance(feature, dict):
        return feature.get(name)
    if isinstance(feature, (list, tuple)):
        inner = feature[0] if feature else None
    else:
        inner = getattr(feature, "feature", None)
    return [_below(inner, name)] if name is not None and inner is not None else inner


def _leaves(path, type_, feature, depth=0):
    """Those of a column, which of them have no place, too."""
    import datasets
    from pyarrow import types
    name, type_ = ".".join(path), getattr(type_, "storage_type", type_)
    if isinstance(feature, (datasets.Image, datasets.Audio, getattr(datasets, "Video", datasets.Image))):
        return [Leaf(name, path, "picture", depth)]
    if hasattr(feature, "decode_example"):
        return [Leaf(name, path, None, depth, f"datasets.{type(feature).__name__}, which nothing here decodes")]
    if types.is_struct(type_):
        return [leaf for field in type_ for leaf in _leaves((*path, field.name), field.type, _below(feature, field.name), depth)]
    if _is_list(type_):
        return _leaves(path, type_.value_type, _below(feature), depth + 1)
    if types.is_string(type_) or types.is_large_string(type_):
        kind = "text"
    elif types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_):
        kind = "bytes"
    elif types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_):
        kind = "number"
    else:
        return [Leaf(name, path, None, depth, f"{type_}, of which a batch has none")]
    return [Leaf(name, path, kind, depth, "", isinstance(feature, datasets.ClassLabel))]


def _asked(leaves, columns):
    """Those of the names, in their order; a dict's name is all that is in it."""
    chosen = []
    for column in columns:
        found = [leaf for leaf in leaves if leaf.name == column or leaf.name.startswith(f"{column}.")]
        if not found:
            raise ArgumentError(f"the data set has no column {column!r}; there are: {', '.join(leaf.name for leaf in leaves)}")
        chosen += [leaf for leaf in found if leaf not in chosen]
    return chosen


def _in_order(leaves, given):
    """Pictures first, as a pipeline works on the first field; a class behind that is the label; then what arguments name, which is to be there."""
    pictures = [leaf for leaf in leaves if leaf.kind == "picture" and leaf.depth == 0 and leaf.name not in given.masks]
    first = pictures[:1] + [leaf for leaf in leaves if leaf.is_class and leaf.depth == 0]
    first += [leaf for leaf in leaves if leaf.name in given.named and leaf not in first]
    return first + [leaf for leaf in leaves if leaf not in first]


# ---- Arrow's arrays ----


def _at(array, path, leaf=lambda array: array):
    """What is below the names, in as many lists as there are above it, none of them missing; of what is in the lists as leaf() makes it."""
    import pyarrow as pa
    import pyarrow.compute as pc
    array = _plain(array)
    if _is_list(array.type):
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        ends = pc.cumulative_sum(pc.cast(lengths, pa.int64()))
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        return pa.LargeListArray.from_arrays(offsets, _at(pc.list_flatten(array), path, leaf))
    return _at(pc.struct_field(array, path[0]), path[1:], leaf) if path else leaf(array)


def _sizes_of_pictures(array):
    """Of their files, which may lie beside the data set."""
    import pyarrow as pa
    import pyarrow.compute as pc
    sizes = pc.cast(pc.binary_length(pc.struct_field(array, "bytes")), pa.int64())
    is_beside = pc.is_null(sizes)
    beside = pc.struct_field(array, "path").filter(is_beside).to_pylist()
    return pc.replace_with_mask(sizes, is_beside, pa.array([0 if path is None else os.stat(path).st_size for path in beside], pa.int64()))


def _sizes(kind):
    """An array's function: bytes of each of its values. Of a kind that has no such: nothing, for which no memory is needed."""
    import pyarrow as pa
    import pyarrow.compute as pc
    if kind in ("text", "bytes"):
        return lambda array: pc.fill_null(pc.cast(pc.binary_length(array), pa.int64()), 0)
    if kind == "picture":
        return _sizes_of_pictures
    return lambda array: pa.nulls(len(array))


def _arrays(dataset, leaf, of_each):
    """Of the rows that the data set has: some may have been selected, shuffled or filtered."""
    import pyarrow as pa
    arrays = [_at(chunk, leaf.path[1:], of_each) for chunk in dataset.data.column(leaf.path[0]).chunks]
    if dataset._indices is None or not arrays:
        return arrays
    return pa.chunked_array(arrays).take(dataset._indices.column(0)).chunks


def _extents(dataset, leaf, has_sizes):
    """(least, most) of each list that it is in, from the outermost on, and of the bytes in these; (None, None) where there is nothing."""
    import pyarrow.compute as pc
    arrays, extents = _arrays(dataset, leaf, _sizes(leaf.kind if has_sizes else None)), []
    for _ in range(leaf.depth):
        extents.append(_least_and_most(map(pc.list_value_length, arrays)))
        arrays = [pc.list_flatten(array) for array in arrays]
    return [*extents, _least_and_most(arrays)] if has_sizes else extents


def _least_and_most(arrays):
    import pyarrow.compute as pc
    found = [(each["min"], each["max"]) for each in (pc.min_max(array).as_py() for array in arrays) if each["min"] is not None]
    return (min(least for least, _ in found), max(most for _, most in found)) if found else (None, None)


# ---- how long its values are ----


def _bound(extents, has_sizes, must_be_ragged):
    """As ragged= says it; None: all have one length."""
    varies = [least != most for least, most in extents]
    if any(varies[2:]) or len(extents) > (2 if has_sizes else 4):
        raise TransformError("is lists in lists, of too many levels or of lengths that differ beyond the second")
    most = [max(1, most) for _, most in extents]
    if len(most) > 1 and (has_sizes or varies[1]):
        return tuple(most[:2])
    return most[0] if most and (has_sizes or varies[0] or must_be_ragged) else None


# ---- samples ----


def _bytes_of_picture(picture):
    """Of its file."""
    if picture is None or picture["bytes"] is not None:
        return picture and picture["bytes"]
    with open(picture["path"], "rb") as file:
        return file.read()


class _Pixels:
    """A picture of a size that is given, [height, width, 3], by Pillow."""

    def __init__(self, size):
        self.height, self.width = size

    def __call__(self, picture):
        import numpy as np
        from PIL import Image
        data = _bytes_of_picture(picture)
        if data is None:
            return None
        with Image.open(io.BytesIO(data)) as opened:
            return np.asarray(opened.convert("RGB").resize((self.width, self.height), Image.Resampling.BILINEAR))


def _corners(boxes, name, form):
    """left, top, right, bottom; COCO's have a width and a height behind the first two."""
    boxes = boxes.reshape(-1, 4).astype("float32")
    if form == "xywh":
        boxes[:, 2:] += boxes[:, :2]
    if (boxes[:, 2:] < boxes[:, :2]).any():
        raise DatasetError(f"a box of column {name} ends before it begins: boxes are left, top, right, bottom; those that are left, top, width,"
                           " height need box_format=\"xywh\"")
    return boxes


def _filled(array):
    import pyarrow as pa
    return array.fill_null(pa.scalar(0).cast(array.type)) if array.null_count else array


class Field:
    """How a leaf's values are made of Arrow's."""

    def __init__(self, leaf, extents, exact, pixels=None, box_format=None):
        self.name, self.path, self.kind, self.depth, self.exact = leaf.name, leaf.path, leaf.kind, leaf.depth, exact
        self.inner = [most for _, most in extents[1:leaf.depth]] if leaf.kind == "number" else []
        self.is_nested = any(least != most for least, most in extents[1:2]) and leaf.kind == "number"
        self.picture = _Pixels(pixels) if pixels else _bytes_of_picture
        self.box_format, self.are_points = box_format, False

    def values(self, column):
        """row -> value, of a few rows."""
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        array = _at(array, self.path[1:])
        if self.kind != "number" or self.depth:
            return lambda row: self._value(array[row])
        numbers, is_there = self._fitted(_filled(array).to_numpy(zero_copy_only=False)), array.is_valid()
        return lambda row: numbers[row] if is_there[row].as_py() else None

    def _value(self, scalar):
        if self.kind == "number":
            return self._numbers(scalar)
        value = scalar.as_py()
        if self.kind == "picture":
            return self._pictures(value)
        missing = "" if self.kind == "text" else b""
        return [missing if each is None else each for each in value] if self.depth else missing if value is None else value

    def _pictures(self, value):
        if self.depth == 0:
            return self.picture(value)
        made = [self.picture(each) for each in value]
        if isinstance(self.picture, _Pixels):
            import numpy as np
            return np.stack(made) if made else np.zeros((0, self.picture.height, self.picture.width, 3), np.uint8)
        return made

    def _numbers(self, scalar):
        if self.is_nested:
            return [self._array(row.values, self.inner[1:]) for row in scalar]
        array = self._array(scalar.values, self.inner)
        if self.are_points:
            return array.astype("float32")
        return array if self.box_format is None else _corners(array, self.name, self.box_format)

    def _array(self, values, shape):
        while _is_list(values.type):
            values = values.flatten()
        if values.null_count:
            raise DatasetError(f"column {self.name} has a list in which a value is missing")
        return self._fitted(values.to_numpy(zero_copy_only=False)).reshape(-1, *shape)

    def _fitted(self, numbers):
        return numbers.astype("float32") if numbers.dtype == "float64" and not self.exact else numbers


class HuggingFaceRows:
    """Rows of a datasets.Dataset as dicts of its leaves. Pictures are the bytes of their files, or pixels."""

    def __init__(self, dataset, fields):
        tops = list(dict.fromkeys(field.path[0] for field in fields))
        self.dataset, self.fields = dataset.select_columns(tops).with_format("arrow"), fields

    def __len__(self):
        return len(self.dataset)

    def __getattr__(self, name):
        if name.startswith("__") or name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        table = self.dataset[list(indices)]
        values = [(field.name, field.values(table.column(field.path[0]))) for field in self.fields]
        return [{name: value(row) for name, value in values} for row in range(table.num_rows)]


class _Choice:
    """Which leaves a batch has, and how long their values are."""

    def __init__(self, dataset, columns, given, exact):
        self.leaves = [leaf for name, feature in dataset.features.items()
                       for leaf in _leaves((name,), dataset.data.schema.field(name).type, feature)]
        self.dataset, self.is_asked, self.given, self.exact = dataset, columns is not None, given, exact
        self.ragged, self.fields, self.left, self.count = {}, [], {}, 0
        _asked(self.leaves, given.named)
        for leaf in _asked(self.leaves, columns) if self.is_asked else _in_order(self.leaves, given):
            self._take(leaf)
        if not self.fields:
            raise TransformError(f"no column of the data set has a place in a batch: {self._why()}")
        there = [field.name for field in self.fields]
        for name in given.named:
            if name not in there:
                raise ArgumentError(f"an argument names {name!r}, which is not among the columns that a batch has: {', '.join(there)}")
        if self.left:
            warn(f"left out: {self._why()}; columns=[...] says which a batch is to have", UserWarning)

    def _why(self):
        return "; ".join(f"{name} {why}" for name, why in self.left.items())

    def _take(self, leaf):
        try:
            self._add(leaf)
        except TransformError as why:
            if self.is_asked or leaf.name in self.given.named:
                raise TransformError(f"column {leaf.name} {why}: it has no place in a batch; turn it into numbers, texts or lists of them, by"
                                     f" dataset.map(), or name others, by columns=[...], of {', '.join(each.name for each in self.leaves)}") from None
            self.left[leaf.name] = str(why)

    def _add(self, leaf):
        if leaf.kind is None:
            raise TransformError(f"is {leaf.why}")
        if any(field.name == leaf.name for field in self.fields):
            raise TransformError("has the name of another one, which is in a dict or beside it")
        if leaf.kind == "picture" and leaf.depth > 1:
            raise TransformError("is lists of lists of pictures")
        size = self.given.pixels.get(leaf.name)
        if size is not None and leaf.kind != "picture":
            raise ArgumentError(f"pixels= names column {leaf.name}, which has no pictures")
        # The first picture is the pipeline's, and its size needs no room in a batch; nor do a mask's, and who gives a bound says it.
        is_first = leaf.kind == "picture" and leaf.depth == 0 and not self.fields
        has_sizes = leaf.kind != "number" and size is None and not is_first and leaf.name not in self.given.bounded
        extents = _extents(self.dataset, leaf, has_sizes)
        if not all(most for _, most in extents):
            raise TransformError("has nothing in any row")
        self._refuse_missing(leaf)
        bound = _bound(extents, has_sizes, leaf.name in self.given.boxes)
        if leaf.name in self.given.bounded:
            bound = None
        else:
            self._refuse_large(leaf, extents)
        self._count(bound, leaf)
        self.ragged.update({} if bound is None else {leaf.name: bound})
        field = Field(leaf, extents, self.exact, size, self.given.box_format if leaf.name == boxes_of(self.given.boxes) else None)
        field.are_points = leaf.name == points_of(self.given.boxes)
        if field.box_format is not None and field.inner != [4]:
            raise ArgumentError(f"boxes= names column {leaf.name} first, which has no lists of four numbers")
        self.fields.append(field)

    def _count(self, bound, leaf):
        """A ragged field is two, of lists of lists four (record.py)."""
        count = self.count + (4 if isinstance(bound, tuple) else 2 if bound or leaf.name in self.given.bounded else 1)
        if count >= MOST_FIELDS and not self.is_asked:
            raise TransformError(f"is one more than the {MOST_FIELDS} fields that a batch has, those whose lengths differ counted twice")
        self.count = count

    def _refuse_missing(self, leaf):
        """Of numbers that nobody asked for: each would be a bad sample."""
        if self.is_asked or leaf.is_class or leaf.kind != "number" or leaf.depth:
            return
        count = sum(array.null_count for array in _arrays(self.dataset, leaf, lambda array: array))
        if count:
            raise TransformError(f"has no value in {count:,} rows, which columns=[...] makes bad samples")

    def _refuse_large(self, leaf, extents):
        size = math.prod([8 if leaf.kind == "number" else 1, *(max(1, most) for _, most in extents)])
        if size > _LARGE and not self.is_asked:
            raise TransformError(f"has a value of {size / 2**20:.1f} MiB, for which each sample of a batch would have room; name it, or give it"
                                 f" a bound, ragged={{\"{leaf.name}\": most}}")


class _Given(NamedTuple):
    """What is said of columns beside which there are."""

    pixels: dict[str, tuple[int, int]]
    boxes: list[str]
    box_format: str
    masks: list[str]
    bounded: set[str]       # by ragged= and pad=, or as masks and images that follow

    @property
    def named(self):
        return [*dict.fromkeys((*self.pixels, *self.boxes, *sorted(self.bounded)))]


def from_hf(dataset, columns: Sequence[str] | None = None, *, pad: dict[str, Pad] | None = None,
            ragged: dict[str, int | tuple[int, int]] | None = None, boxes: Sequence[str] | str | None = None, box_format: str = "xyxy",
            masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
            images: str | Sequence[str] | Mapping[str, Image] | None = None, pixels: Mapping[str, tuple[int, int]] | None = None,
            exact: bool = False, where: Any = None, workers: int | None = None, name: str | None = None,
            version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Wrapped:
    """A datasets.Dataset of Hugging Face, for Loader.

        dataset = datasets.load_dataset("food101", split="train")
        loader = oa.Loader(oa.from_hf(dataset), oa.imagenet_train(224), batch_size=256)
        for batch in loader: batch["image"], batch["label"]

    columns: the columns of a batch, in this order; no others are read. A column in a dict or in a list of dicts is named
        "objects.bbox"; "objects" is all that are in it. Default: all that fit: the first image, the classes, then the
        others in the data set's order; a warning says which are left out, and why.
    pixels: {"right": (224, 224)}: images beside the first that are decoded and resized (bilinear, by Pillow) to uint8
        [height, width, 3]; lists of images, too.
    masks, images: as in wrap(), for images beside the first.
    ragged: {"text": 500}: another greatest length, for example where one text is far longer than all others. A longer
        sample is a bad sample.
    pad: {name: Pad(length)}, as in wrap().
    boxes: as in wrap(), such as ["objects.bbox", "objects.category"]: boxes that follow the pipeline's ops, and fields with
        a row for each.
    box_format: "xywh" for COCO's boxes: left, top, width and height. A batch has left, top, right and bottom.
    exact: True: float64 stays.
    where: which rows; see from_parquet(). It is about columns as they lie in the data set, before any transform; what is in a dict is
        pc.field("objects", "area"). loader.dataset is of the chosen rows.

    Images (datasets.Image), videos (datasets.Video) and sounds (datasets.Audio): the pipeline decodes the file of the first. Others are masks, images that follow it, pixels, or else the bytes of
    their files; so are all without a pipeline. Classes (ClassLabel) and numbers are numbers; float64 becomes float32.
    Texts, bytes and lists are ragged fields, with the greatest length of the data set, which is looked up; so are lists of
    texts and lists of lists. Lists of one length are dense. A missing text, bytes or list is an empty one; a missing number
    makes a bad sample.

    A data set with set_transform() or with_format() is used with it, as by wrap(): its samples are what it returns, and
    random, numpy.random and torch are seeded for each sample. An IterableDataset has no order to share: use load_dataset()
    without streaming=True.

    The other arguments are those of wrap().
    """
    datasets = needs("datasets", "oneaccess.from_hf()")
    if isinstance(dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        raise ArgumentError(f"from_hf() takes one split, of these: {', '.join(dataset)}; as dataset[\"{next(iter(dataset))}\"]")
    if not isinstance(dataset, datasets.Dataset):
        raise TransformError(f"from_hf() takes a datasets.Dataset, this is a {type(dataset).__name__}: load_dataset() without"
                             " streaming=True makes one; for other data sets there is oneaccess.wrap()")
    if box_format not in _FORMATS:
        raise ArgumentError(f"box_format is {box_format!r}; there are: {', '.join(_FORMATS)}")
    columns, pixels = named(columns), _pixels_of(pixels)
    if where is not None:
        rows = _meant(dataset, Where(where))
        dataset, version = dataset.select(rows), versioned(version, rows)
    options = {"name": name, "version": version, "workers": workers, "timeout": timeout, "room": room, "keep": keep,
               "columns": columns, "pad": pad, "ragged": ragged, "boxes": boxes, "masks": masks, "images": images, "exact": exact}
    if dataset.format["type"] is not None:
        if pixels or box_format != "xyxy":
            raise ArgumentError("pixels= and box_format= are about columns as they lie in the data set, and this one has a format or a transform of"
                                " its own, which makes its samples: do it there")
        return wrap(dataset, **options)
    of_masks = [*following(masks, images)]
    given = _Given(pixels, [boxes] if isinstance(boxes, str) else list(boxes or ()), box_format, of_masks,
                   {*(pad or ()), *(ragged or ()), *of_masks})
    choice = _Choice(dataset, columns, given, exact)
    options["columns"] = [field.name for field in choice.fields] if pad else None
    options["ragged"] = {**choice.ragged, **(ragged or {})} or None
    return wrap(HuggingFaceRows(dataset, choice.fields), random=False, **options)


def _meant(dataset, where):
    """The numbers of the rows."""
    import numpy as np
    names = where.used(dataset.data.schema, "the data set")
    plain, rows = dataset.with_format("arrow", columns=names), [np.zeros(0, np.int64)]
    for at in range(0, len(dataset), ROWS):
        rows.append(numbers_of(where.mask(plain[at:at + ROWS], "the data set"), at))
    rows = np.concatenate(rows)
    if not len(rows):
        raise where.nothing(len(dataset), "the data set")
    return rows


def _pixels_of(pixels):
    for name, size in (pixels or {}).items():
        if not isinstance(size, (tuple, list)) or len(size) != 2 or not all(isinstance(side, int) and 1 <= side <= 65535 for side in size):
            raise ArgumentError(f"pixels={{{name!r}: {size!r}}}: give (height, width)")
    return dict(pixels or {})
