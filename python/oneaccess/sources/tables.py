# SPDX-License-Identifier: Apache-2.0
"""Tables: Parquet files as data sets for the pool (wrap()).

A row of a Parquet file cannot be read alone, but only its row group. Each process of the pool keeps some that it has
decoded, and a random order is made of these (shuffle="blocks"): row groups in random order, and the rows of as many as
are kept permuted together. So each process reads each row group once an epoch; in a uniform order each row would cost
one (doc/decisions/230-tables.md)."""

import array
import bisect
import collections
import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import urls
from ..columns import Blocks, Pad, named
from ..errors import ArgumentError, DatasetError, TransformError, needs, not_there
from ..masks import Image, Mask, Measured
from ..wrapped import Wrapped, wrap
from .where import Where, mask_of, numbers_in, numbers_of, versioned

SUFFIX = ".parquet"
# Files of data sets that accessd reads itself: tables beside them are about them.
_READ = (".tar", ".tfrecord", ".tfrecords", ".mds", ".rec", ".bag", ".bagz", ".array_record", ".arecord", ".beton", ".npy", ".oads", ".jpg", ".jpeg", ".png", ".webp", ".avif", ".jp2", ".j2k", ".jpx", ".jxl", ".heic", ".heif", ".tif", ".tiff", ".gif",
         ".bmp", ".ppm", ".pgm", ".dcm", ".dicom", ".nii", ".nii.gz")
CACHE = 256 << 20          # decoded row groups, of a process
_LARGE = 1 << 30            # a row group beyond this needs a word
MOST_PROCESSES = 4         # each decodes for itself
_MOST_OPEN = 16
_MOST_TOGETHER = 65536      # rows in a sample
_LABELS = ("label", "labels", "cls", "class", "target", "fine_label")


def size_of(text: int | str, what: str) -> int:
    """Bytes: a number, or with K, M or G behind it."""
    if isinstance(text, str) and text[-1:] in "KMG" and text[:-1].isdigit():
        return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]
    if isinstance(text, bool) or not isinstance(text, int) or text < 1:
        raise ArgumentError(f"{what} is {text!r}: bytes, as a number or as \"512M\"")
    return text


def stamp_of(path: str) -> tuple[int, int]:
    """What tells a file from one that was written in its place."""
    if urls.is_url(path):
        return urls.stamp_of(path)
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def unchanged(path: str, stamp: tuple[int, int]) -> None:
    if stamp_of(path) != tuple(stamp):
        raise DatasetError(f"{path} was written to since the data set was opened")


class Kept:
    """What was used last, at most count of them."""

    def __init__(self, count: int, make, end=lambda value: None):
        self._count, self._make, self._end, self._kept = count, make, end, collections.OrderedDict()

    def get(self, key):
        if key in self._kept:
            self._kept.move_to_end(key)
        else:
            while len(self._kept) >= self._count:
                self._end(self._kept.popitem(last=False)[1])
            self._kept[key] = self._make(key)
        return self._kept[key]

    def forget(self, key):
        if key in self._kept:
            self._end(self._kept.pop(key))


# ---- which files ----


def files_of(paths: str | os.PathLike | Sequence, suffixes: tuple[str, ...] = (SUFFIX,), what: str = "Parquet", who: str = "from_parquet()",
             is_one: Callable[[str], bool] = lambda path: False) -> list[str]:
    """The files that are meant: of a file, a folder, a pattern, or a list of these. what, who: in errors, the files and the call. is_one: is a folder
    what others have as a file?"""
    if isinstance(paths, (bytes, bytearray)) or not isinstance(paths, (str, os.PathLike, Iterable)):
        raise ArgumentError(f"a path is {paths!r}: give a str or a pathlib.Path")
    if not isinstance(paths, (str, os.PathLike)):
        found = [file for path in paths for file in files_of(path, suffixes, what, who, is_one)]
        if not found:
            raise ArgumentError(f"{who} has an empty list of files: name one at least")
        return found
    if what == "Parquet" and urls.is_url(paths):
        needs("pyarrow.fs", "a Parquet file in an object store")
        return urls.files(paths, suffixes, what)
    path = urls.local(paths, who)
    if what == "Parquet":
        _refuse_tables(path)
    if os.path.isdir(path) and not is_one(path):
        found = sorted(_below(path, suffixes, is_one))
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file) or is_one(file))
    if not found:
        raise not_there(f"no {what} file is at {path}", path)
    return found


def _below(folder, suffixes, is_one):
    """In it and in folders there, but for what is hidden."""
    for place, folders, files in os.walk(folder, followlinks=True):
        ones = [name for name in folders if is_one(os.path.join(place, name))]
        folders[:] = [name for name in folders if name not in ones and not name.startswith(".")]
        for name in (*files, *ones):
            path = os.path.join(place, name)
            if name.lower().endswith(suffixes) and not name.startswith(".") and (name in ones or os.path.isfile(path)):
                yield path


def _refuse_tables(folder):
    """Folders in which not each file is of the table as it is now."""
    if os.path.isdir(os.path.join(folder, "_delta_log")):
        raise ArgumentError(f"{folder} is a table of Delta Lake, and which of its files are still of it, its log says: oneaccess.from_delta(path, columns)")
    if glob.glob(os.path.join(glob.escape(folder), "metadata", "*.metadata.json")):
        raise ArgumentError(f"{folder} is a table of Iceberg, and which of its files are still of it, its metadata say: oneaccess.from_iceberg(metadata.json, columns)")


def _has_tables(folder, depth=4):
    """Parquet files, there or below, and nothing beside them that accessd reads."""
    has_some = False
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.name == "_delta_log":      # which is refused in words
                return True
            if entry.name.lower().endswith(_READ) or (entry.is_dir() and not (depth and _has_tables(entry.path, depth - 1))):
                return False
            has_some = has_some or entry.is_dir() or entry.name.endswith(SUFFIX)
    return has_some


def is_meant(dataset) -> bool:
    """Does a Loader's first argument name Parquet files?"""
    if isinstance(dataset, (list, tuple)):
        return bool(dataset) and all(isinstance(path, (str, os.PathLike)) and is_meant(path) for path in dataset)
    if not isinstance(dataset, (str, os.PathLike)):
        return False
    path = os.fspath(dataset)
    if not isinstance(path, str):
        return False
    if urls.is_url(path):
        return urls.suffixed(path, SUFFIX)
    if path.endswith(SUFFIX):
        return True
    try:
        return _has_tables(os.path.expanduser(path))
    except OSError:
        return False


# ---- columns ----


def _kind(type_):
    """How values of an Arrow type are made: "picture" (or a video, a sound), "bytes", "text", "number", "list"; None: they have no place."""
    from pyarrow import types
    if types.is_struct(type_):
        return "picture" if any(type_.field(i).name == "bytes" for i in range(type_.num_fields)) else None
    if types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_):
        return "bytes"
    if types.is_string(type_) or types.is_large_string(type_):
        return "text"
    if types.is_dictionary(type_):      # as of categories of pandas
        return "text" if _kind(type_.value_type) == "text" else None
    if types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_):
        return "number"
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return "list" if _kind(type_.value_type) in ("number", "list") else None
    return None


def _features(schema):
    """The types that Hugging Face's datasets wrote down, by column."""
    try:
        told = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {name: feature.get("_type") for name, feature in told.items()}
    except (KeyError, ValueError, AttributeError, TypeError):
        return {}


def chosen_of(schema, columns, path):
    """{name: kind} of the columns that a sample is to have, in order."""
    kinds = {field.name: _kind(field.type) for field in schema}
    if columns is None:
        columns = _obvious(schema, kinds) or [name for name in kinds]
    chosen = {}
    for name in columns:
        if name not in kinds:
            raise ArgumentError(f"{path} has no column {name!r}; there are: {', '.join(kinds)}")
        if kinds[name] is None:
            raise TransformError(f"column {name} of {path} is {schema.field(name).type}, which has no place in a batch: name"
                                 f" others, by columns=[...]; there are: {', '.join(kinds)}")
        chosen[name] = kinds[name]
    return chosen


def _obvious(schema, kinds):
    """The picture and its label, where there is one of each and no doubt; else None."""
    features = _features(schema)
    pictures = [name for name, kind in kinds.items() if kind == "picture" or features.get(name) in ("Image", "Video", "Audio")]
    pictures = pictures or [name for name, kind in kinds.items() if kind == "bytes"]
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    labels = [name for name in numbers if features.get(name) == "ClassLabel"]
    labels = labels or [name for name in numbers if name in _LABELS]
    return [pictures[0], labels[0]] if len(pictures) == len(labels) == 1 else None


# ---- Parquet ----


class Part(NamedTuple):
    """A file of a table: which of its columns are the table's, {column: its own name for it}; {column: pyarrow.Scalar} of the table's columns that
    have one value in all its rows; the numbers of its rows that are deleted, ascending, if any are."""

    names: dict[str, str]
    same: dict[str, Any]
    gone: Any = None


class Files:
    """A table that is its files, as those of from_parquet(). Other tables have a schema, and parts of their own."""

    schema = None

    def part(self, at: int, file: str, opened: Any) -> Part:
        return Part({name: name for name in opened.schema_arrow.names}, {})

    def inner(self, opened: Any, name: str, column: str) -> str:
        """What a file calls the bytes in a picture."""
        return "bytes"


class ParquetRows:
    """Rows of Parquet files as dicts. blocks: row groups, where not all of them are kept. table: whose files these are. where: which rows; the
    others are not there, nor are those that the table has deleted."""

    chosen = firsts = None      # of each row group the rows that are there, None for all; and the number of its first row in all files

    def __init__(self, files, columns, cache, where=None, table=None):
        parquet = needs("pyarrow.parquet", "a Parquet file")
        where, table, found, sizes = None if where is None else Where(where), table or Files(), [], [(0, 0)]
        self.files, self.groups, self.parts, self.columns, self.whole = [], [], [], None, 0
        self.count, self.starts = 0, array.array("q")
        for at, file in enumerate(files):
            try:
                self.files.append((file, stamp_of(file)))
                opened = parquet.ParquetFile(urls.opened(file))
            except (OSError, ValueError) as why:
                raise DatasetError(f"{file} is no Parquet file that can be read: {why}") from None
            with opened:
                part, first = table.part(at, file, opened), 0
                self._add(table, part, opened, columns, file)
                some = None if where is None else where.of_parquet(file, urls.opened(file), opened, part)
                for number in range(opened.metadata.num_row_groups):
                    group = opened.metadata.row_group(number)
                    rows = _rows_there(some, part.gone, number, first, group.num_rows)
                    here = group.num_rows if rows is None else len(rows)
                    if here:
                        self.groups.append((at, number))
                        self.starts.append(self.count)
                        found.append((rows, self.whole + first))
                        sizes.append((self._bytes(group, at, group.num_rows), self._bytes(group, at, here)))
                    self.count += here
                    first += group.num_rows
                self.whole += first
        what = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        if where is not None and not self.count:
            raise where.nothing(self.whole, what)
        if self.whole and not self.count:
            raise DatasetError(f"all {self.whole:,} rows of {what} are deleted: a data set has a row at least")
        self.total = self.count
        if where is not None or any(rows is not None for rows, _ in found):
            self.chosen, self.firsts = [rows for rows, _ in found], array.array("q", [first for _, first in found])
        self._fit(*map(max, zip(*sizes)), cache)

    def _add(self, table, part, opened, columns, file):
        """For each column how a file has it: what it calls it, and the part of that which is read; or the value of all its rows."""
        schema, chosen = table.schema or opened.schema_arrow, self.columns
        if chosen is None or table.schema is None:
            chosen = chosen_of(schema, columns, file)
        if self.columns is None:
            self.columns, self._types = chosen, table.schema and {name: schema.field(name).type for name in chosen}
            self._look(schema)
        elif chosen != self.columns:
            raise DatasetError(f"{file} has other columns than {self.files[0][0]}: {chosen}, {self.columns}")
        made = []
        for name, kind in chosen.items():
            own = part.names.get(name)
            if own is None:
                made.append((None, None, _constant(part.same[name], kind)))
                continue
            type_ = opened.schema_arrow.field(own).type
            inner = table.inner(opened, own, name) if kind == "picture" and hasattr(type_, "get_field_index") else None
            if _kind(type_) != kind and (inner is None or type_.get_field_index(inner) < 0):
                raise DatasetError(f"column {name} of {file} is {type_}, and {schema.field(name).type} in the table")
            made.append((own, f"{own}.{inner}" if inner else own, None))
        self.parts.append(self.parts[-1] if self.parts and self.parts[-1] == made else made)

    def _fit(self, whole, largest, cache):
        """How many row groups are kept, of which the largest has so many bytes as a whole, and so many of rows that are there."""
        if whole > max(cache, _LARGE):
            raise DatasetError(
                f"a row group of {self.files[0][0]} has {whole / 2**30:.1f} GiB, which each process of the pool would keep in memory:"
                " write the file with smaller ones, as by pyarrow.parquet.write_table(table, file, row_group_size=100), or"
                " say that there is room, by cache=\"...\"")
        self.largest, self.window = largest, max(1, cache // max(1, largest))
        self.blocks = Blocks(self.starts, self.window, largest) if len(self.starts) > self.window else None
        self._begin()

    def _numbers(self, group):
        """Of the rows of a row group that are there, in all files."""
        import numpy as np
        end = self.starts[group + 1] if group + 1 < len(self.starts) else self.total
        rows = np.arange(end - self.starts[group]) if self.chosen[group] is None else self.chosen[group].astype("int64")
        return rows + self.firsts[group]

    def _look(self, schema):
        """At the columns, before row groups are."""

    def rows_of(self, ids):
        """The numbers in the whole table of samples by their numbers, as batch.ids has them: of where= an array of int64."""
        return self.rows_at(numbers_in(None, self.count, ids))

    def rows_at(self, ids):
        """Of rows that are there."""
        import numpy as np
        if self.chosen is None:
            return ids
        groups = np.searchsorted(np.asarray(self.starts), ids, "right") - 1
        at = (index - self.starts[group] for index, group in zip(ids, groups))
        return np.array([self.firsts[group] + (index if self.chosen[group] is None else int(self.chosen[group][index])) for index, group in zip(at, groups)], np.int64)

    def placed(self):
        """The numbers in the whole table of the rows that are there, a row group at a time; None: all."""
        return None if self.chosen is None else (self._numbers(group) for group in range(len(self.groups)))

    def _bytes(self, group, at, count):
        """That so many rows of a row group have."""
        leaves = tuple(f"{leaf}." for _, leaf, _ in self.parts[at] if leaf)
        size = sum(group.column(i).total_uncompressed_size for i in range(group.num_columns) if f"{group.column(i).path_in_schema}.".startswith(leaves))
        return -(-size * count // group.num_rows)

    def _begin(self):
        self._opened, self._decoded = Kept(_MOST_OPEN, self._open), Kept(self.window + 1, self._decode)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_opened", "_decoded")}

    def __setstate__(self, state):
        vars(self).update(state)
        needs("pyarrow.parquet", "a Parquet file")      # once for all processes that are forked
        self._begin()

    def __len__(self):
        return self.count

    def _open(self, at):
        import pyarrow.parquet
        file, stamp = self.files[at]
        unchanged(file, stamp)
        return pyarrow.parquet.ParquetFile(urls.opened(file))

    def table(self, group):
        """The rows of a row group that are there, as pyarrow has them: columns have the file's own names."""
        at, number = self.groups[group]
        table = self._opened.get(at).read_row_group(number, columns=[leaf for _, leaf, _ in self.parts[at] if leaf], use_threads=False)
        if self.chosen is not None and self.chosen[group] is not None and len(self.chosen[group]) < table.num_rows:
            table = table.filter(mask_of(self.chosen[group], table.num_rows))
        unchanged(*self.files[at])
        return table

    def _decode(self, group):
        table, parts = self.table(group), self.parts[self.groups[group][0]]
        return {name: _always(value) if own is None else values_of(self._typed(table.column(own), name, kind), kind)
                for (name, kind), (own, _, value) in zip(self.columns.items(), parts)}

    def _typed(self, column, name, kind):
        """Numbers as the table has them, whose types may have become wider."""
        if self._types is None or kind not in ("number", "list") or _number(column.type) == _number(self._types[name]):
            return column
        return column.cast(self._types[name])

    def __getitem__(self, index):
        return self.__getitems__([range(self.count)[index]])[0]

    def __getitems__(self, indices):
        """Row group by row group, in the order that they come in: the last ones are those that are wanted next."""
        groups = collections.defaultdict(list)
        for place, index in enumerate(indices):
            groups[bisect.bisect_right(self.starts, index) - 1].append((place, index))
        made = [None] * len(indices)
        for group, rows in groups.items():
            columns = self._decoded.get(group)
            for place, index in rows:
                made[place] = {name: values(index - self.starts[group]) for name, values in columns.items()}
        return made


def _rows_there(some, gone, number, first, count):
    """The rows of a row group that are meant ({row group: mask}; None: all) and not deleted; None: all."""
    import numpy as np
    mask = None if some is None else some.get(number, np.zeros(count, bool))
    if gone is not None:
        begin, end = np.searchsorted(gone, (first, first + count))
        if begin < end:
            mask = np.ones(count, bool) if mask is None else mask
            mask[gone[begin:end] - first] = False
    return None if mask is None else numbers_of(mask).astype("uint32")


def _constant(scalar, kind):
    """As the rows of a file would have it."""
    import pyarrow as pa
    return values_of(pa.chunked_array([pa.array([scalar.as_py()], scalar.type)]), kind)(0) if scalar.is_valid else None


def _number(type_):
    """Of which lists are."""
    while hasattr(type_, "value_type"):
        type_ = type_.value_type
    return type_


def _always(value):
    return lambda row: value


def values_of(column, kind):
    """row -> value of a column of a row group."""
    import numpy as np
    if kind == "number":
        numbers, lacks = (column if column.null_count == 0 else column.fill_null(0)).to_numpy(), column.is_null().to_numpy() if column.null_count else None
        return (lambda row: numbers[row]) if lacks is None else lambda row: None if lacks[row] else numbers[row]
    if kind == "picture":
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        column = column.field("bytes" if column.type.num_fields > 1 else 0)
    if kind != "list":
        return lambda row: column[row].as_py()

    def values(row):
        found = column[row].values
        found = found.to_numpy(zero_copy_only=False) if found is not None else None
        return found.astype(np.float32) if found is not None and found.dtype == np.float64 else found
    nested = _kind(column.type.value_type) == "list"
    return (lambda row: column[row].as_py()) if nested else values


def from_parquet(paths: str | os.PathLike | Sequence, columns: Sequence[str] | Mapping[str, Any] | None = None, *,
                 pad: dict[str, Pad] | None = None, ragged: dict[str, int] | None = None,
                 boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
                 images: str | Sequence[str] | Mapping[str, Image] | None = None, exact: bool = False,
                 where: Any = None, rows: int = 1, cache: int | str = CACHE, workers: int | None = None, name: str | None = None,
                 version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Rows of Parquet files, for Loader. Needs pyarrow.

        loader = oa.Loader(oa.from_parquet("train.parquet", ["image", "label"]), oa.imagenet_train(224), batch_size=256)
        loader = oa.Loader("train.parquet", oa.imagenet_train(224), batch_size=256)         # the same

    paths: a file, a folder, a pattern, or a list of these; a file or folder also as a URL that pyarrow opens (s3://, gs://,
        abfs://), with its own credentials and options, such as "s3://bucket/a.parquet?endpoint_override=minio:9000".
    columns: the columns of a batch, in this order; no others are read. Default: an image and its label, if the files have
        one of each by the metadata of Hugging Face's datasets or by their names, else all. {field: what it is made of} has
        columns filled, clamped, hashed, looked up, cut or stacked, as oneaccess.features says.
    where: which rows, as an expression of pyarrow, pc.field("score") > 5 (pc is pyarrow.compute), or as filters= of
        pyarrow.parquet.read_table(): [("score", ">", 5), ("lang", "in", ["en", "de"])] are conditions that all hold; of a list of such lists
        one holds. Its columns need not be in columns. The other rows are not there: len(), batch.ids, orders and states are of the
        chosen ones. As in pyarrow, a comparison with a missing value (null) holds for no row. Each job finds the rows when it opens the data set. It reads
        just the columns of where, and of these no row group whose statistics exclude it. loader.dataset.rows_of(batch.ids) says which
        rows of the whole table samples are. An unknown column, a value of another type or no row at all is an ArgumentError.
    rows: with columns={field: ...}: so many rows in a row are one sample, which costs what one row costs. batch_size of Loader, len(),
        batch.ids and orders are of these samples; a batch's fields are [batch_size * rows, ...]. Rows at the end that make no whole
        sample are left out, and a bad row makes its whole sample a bad one.
    cache: bytes of decoded row groups (of these columns) that each process of the pool keeps, a number or "1G"; with columns={field: ...}
        that all of them keep together, with one more row group for each.
    workers: processes of the pool; default: at most four, as each decodes for itself.

    Numbers, texts, lists of numbers and bytes are fields, as in wrap(); texts and lists of varied length need ragged or
    pad. Lists of double become float32. With a pipeline the first column is an image file, or a video's with video(), as
    bytes or as the struct of Hugging Face's Image, Video and Audio.

    If cache holds all row groups, any order works. Otherwise a random order is shuffle="blocks": row groups in random
    order, with the rows of those that are kept permuted together, as a function of the files, the seed and the epoch, as
    order="seeded". Uniform orders are refused, since each row would cost its row group. shuffle=False is the files' order.

    The other arguments are those of wrap().
    """
    return of_parquet(rows_of(files_of(paths), columns, size_of(cache, "cache"), rows, where=where), pad=pad, ragged=ragged, boxes=boxes, masks=masks, images=images, exact=exact,
                      workers=workers, name=name, version=version, timeout=timeout, room=room, keep=keep)


def rows_of(files, columns, cache, rows=1, **more) -> ParquetRows:
    """As columns= says: a list of names, or {field: what it is made of}."""
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_TOGETHER:
        raise ArgumentError(f"rows={rows!r}: how many rows are a sample together, 1 to {_MOST_TOGETHER}")
    if not isinstance(columns, Mapping):
        if rows != 1:
            raise ArgumentError(f"rows={rows} is for columns={{field: what it is made of}}, as oneaccess.features says")
        return ParquetRows(files, named(columns), cache, **more)
    needs("pyarrow.parquet", "a Parquet file")
    from .feature_rows import FeatureBlocks, FeatureRows
    return FeatureRows(files, columns, cache, **more) if rows == 1 else FeatureBlocks(files, columns, cache, rows, **more)


def of_parquet(rows, *, pad=None, ragged=None, workers=None, version="", **options) -> Wrapped:
    """For a Loader: rows with columns, of which each process of the pool decodes for itself."""
    most = getattr(rows, "most", None)      # of FeatureRows, in which samples differ by what fields are made of, too
    if most is not None:
        version = f"{version} fields {hashlib.sha256(repr(rows.fields).encode()).hexdigest()}"
        if pad or ragged:
            raise ArgumentError("pad= and ragged= are not for columns={field: ...}, where the ops Pad(count) and First(count) say how long a list is")
    workers = workers or min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
    return wrap(rows, workers=workers, random=False, columns=list(rows.columns) if pad else None, pad=pad, ragged=most or ragged,
                version=versioned(version, rows.placed()), **options)
