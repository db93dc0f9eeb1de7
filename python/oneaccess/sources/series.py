# SPDX-License-Identifier: Apache-2.0
"""Windows over series: of .npy files, which accessd reads, and of columns of Parquet files, for the pool, each of whose processes
keeps the columns."""

import bisect
import itertools
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import urls
from ..errors import ArgumentError, DatasetError
from ..rows import Rows
from ..wrapped import Wrapped, wrap
from .stores import PerProcess
from .tables import files_of, is_meant, needs, stamp_of, unchanged

_MOST_AHEAD = 1 << 20
_OPTIONS = {"workers", "name", "version", "timeout", "keep"}    # of wrap()


class SeriesRows(PerProcess):
    """Window i as a dict of its parts. first: the number of the first window of each series."""

    def __init__(self, files, columns, group, length, stride, parts):
        needs("pyarrow.parquet", "a Parquet file")
        self.files, self.columns, self.group, self.stride, self.parts = [(file, stamp_of(file)) for file in files], columns, group, stride, parts
        types = self._read(columns, is_empty=True).schema
        from pyarrow import types as are
        for name in columns:
            kind = types.field(name).type
            if not (are.is_integer(kind) or are.is_floating(kind) or are.is_boolean(kind)):
                raise ArgumentError(f"column {name} of {files[0]} is {kind}: windows are of columns of numbers")
        self.dtype = "float32" if any(are.is_floating(field.type) for field in types) else "int64"
        counts = [max(0, (count - length) // stride + 1) for count in self._series()[1]]
        self.first = [0, *itertools.accumulate(counts)]
        if not self.first[-1]:
            raise DatasetError(f"none of the series of {files[0]} has the {length} rows of a window")

    def _read(self, columns, is_empty=False):
        """Of all files, or of the first one the types alone."""
        import pyarrow
        import pyarrow.parquet
        tables = []
        for file, stamp in self.files[:1] if is_empty else self.files:
            unchanged(file, stamp)
            try:
                with pyarrow.parquet.ParquetFile(urls.opened(file)) as opened:
                    missing = [name for name in columns if name not in opened.schema_arrow.names]
                    if missing:
                        raise ArgumentError(f"{file} has no column {missing[0]!r}; there are: {', '.join(opened.schema_arrow.names)}")
                    types = pyarrow.schema([opened.schema_arrow.field(name) for name in columns])
                    tables.append(types.empty_table() if is_empty else opened.read(columns=columns, use_threads=False).select(columns))
            except (OSError, pyarrow.ArrowException) as why:
                raise DatasetError(f"{file} is no Parquet file that can be read: {why}") from None
        return pyarrow.concat_tables(tables)

    def _series(self):
        """The rows' places, series by series (None: as they are), and how many rows each series has."""
        import numpy as np
        import pyarrow.compute
        if self.group is None:
            import pyarrow.parquet
            counts = []
            for file, _ in self.files:
                with pyarrow.parquet.ParquetFile(urls.opened(file)) as opened:
                    counts.append(opened.metadata.num_rows)
            return None, [sum(counts)]
        column = self._read([self.group]).column(0).combine_chunks()
        codes = pyarrow.compute.dictionary_encode(column, null_encoding="encode")
        codes = (codes.combine_chunks() if hasattr(codes, "num_chunks") else codes).indices.to_numpy(zero_copy_only=False)
        return np.argsort(codes, kind="stable"), np.bincount(codes).tolist() if len(codes) else []

    def open(self):
        """The numbers [rows, columns], series by series, and where each series begins."""
        import numpy as np
        table = self._read(self.columns)
        made = np.empty((table.num_rows, len(self.columns)), self.dtype)
        for at, name in enumerate(self.columns):
            column = table.column(name)
            if column.null_count and self.dtype == "int64":
                raise DatasetError(f"column {name} of {self.files[0][0]} has rows without a value, and all columns are of whole numbers: fill them")
            made[:, at] = column.to_numpy()
        order, counts = self._series()
        return made if order is None else made[order], [0, *itertools.accumulate(counts)]

    def __len__(self):
        return self.first[-1]

    def __getitem__(self, index):
        rows, starts = self.opened()
        series = bisect.bisect_right(self.first, index) - 1
        at, sample = starts[series] + (index - self.first[series]) * self.stride, {}
        for name, count in self.parts.items():
            sample[name] = rows[at:at + count]
            at += count
        return sample


def _of_tables(paths, columns, group, length, stride, parts, options):
    if not columns:
        raise ArgumentError("columns=[]: name the columns of numbers")
    rows = SeriesRows(files_of(paths), columns, group, length, stride, parts)
    options.setdefault("workers", min(len(os.sched_getaffinity(0)), 4))
    return wrap(rows, random=False, **options)


def ahead_of(name: str, ahead: Any, what: str = "delta_steps") -> list[int]:
    """What delta_steps= says of a field: steps from the sample's own. what: the argument's name."""
    try:
        steps = [operator.index(each) for each in ahead]
    except TypeError:
        steps = []
    if not steps or max(map(abs, steps)) > _MOST_AHEAD:
        raise ArgumentError(f"{what}={{{name!r}: {ahead!r}}}: give whole numbers, to {_MOST_AHEAD:,}, as [-1, 0] or range(16)")
    return steps


def _rows(number: Any, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ArgumentError(f"{what} is {number!r}: a number of rows, from 1 on")
    return number


def _one_path(paths: Any) -> str:
    """Several files as accessd takes them: "FOLDER/{a,b}.npy"."""
    if isinstance(paths, (str, os.PathLike)):
        return urls.path_of(paths)
    names = [urls.path_of(path) for path in paths]
    if not names or not all(isinstance(name, str) and name.endswith(".npy") for name in names):
        raise ArgumentError(f"windows() of {paths!r}: a .npy, or several, each of which is a series")
    if len(names) == 1:
        return names[0]
    folder = os.path.commonpath(names) if not urls.is_url(names[0]) else ""
    stems = [os.path.relpath(name, folder)[:-len(".npy")] for name in names] if folder else []
    if not folder or re.search("[{}?,]", "".join(names)):
        raise ArgumentError("windows() takes files of one folder, of absolute paths or of relative ones, whose names have none of {}?,: give the folder, or"
                            " a list in braces, as \"/data/series-{000..031}.npy\"")
    return f"{folder}/{{{','.join(stems)}}}.npy"


def windows(path: str | os.PathLike | Sequence, length: int | None = None, stride: int = 1, *, parts: Mapping[str, int] | None = None,
            starts: str | os.PathLike | None = None, columns: Sequence[str] | None = None, group: str | None = None,
            **options: Any) -> Rows | Wrapped:
    """Windows over series: consecutive rows of an array [T, ...], for Loader. It takes no pipeline.

        loader = oa.Loader(oa.windows("/data/sensors.npy", 608), batch_size=64)
        for batch in loader: batch["window"]                    # [64, 608, ...]
        loader = oa.Loader(oa.windows("/data/sensors.npy", parts={"past": 512, "future": 96}), batch_size=64)
        for batch in loader: batch["past"], batch["future"]     # [64, 512, ...], [64, 96, ...]: views, without a copy

    Sample i of a series is its rows from i * stride on, length of them; what remains behind the last window is left out, and a
    series that is shorter has none. No window crosses from one series to another.

    path: a .npy, also a URL; or several files of this machine, each a series: a list, a folder, or a pattern as "/data/series-{000..031}.npy" (in
        the order of their names). Their numbers come as those of any .npy: floats, uint8 and uint64 as they are, other whole numbers as int64. Or Parquet files,
        with columns=.
    length: rows of a window; default: all of parts.
    parts: {field: rows}: the window's rows by name, one behind the other.
    starts: where one .npy has several series: the .npy beside it with the rows with which they begin, the first one 0, ascending.

    Of Parquet files, a batch has float32 [batch, length, columns], or int64 if all columns are whole numbers. A pool makes the windows; each
    of its processes keeps these columns in memory. What does not fit there is to be a .npy.
    columns: the columns of numbers.
    group: the column that tells the series apart, a row of each being where it is in the order of the files. Default: one series.
    The other arguments are then those of wrap(): workers, name, version, timeout, keep.
    """
    if unknown := options.keys() - _OPTIONS:
        raise ArgumentError(f"windows() has no argument {sorted(unknown)[0]}")
    if isinstance(path, bytes) or not isinstance(path, (str, os.PathLike, Iterable)):
        raise ArgumentError(f"path is {path!r}: a .npy, several, or Parquet files")
    if parts is not None and (not isinstance(parts, Mapping) or not all(isinstance(name, str) and name for name in parts)):
        raise ArgumentError(f"parts is {parts!r}: {{field of a batch: rows}}")
    stride, parts = _rows(stride, "stride"), dict(parts or {})
    rows = sum(_rows(number, f"parts[{name!r}]") for name, number in parts.items())
    length = _rows(length if length is not None or not parts else rows, "length")
    if parts and rows != length:
        raise ArgumentError(f"parts={parts} are {rows} rows, and a window has {length}")
    parts = parts or {"window": length}
    if columns is not None:
        if starts is not None:
            raise ArgumentError("starts is of a .npy: of Parquet files group names the column that tells series apart")
        return _of_tables(path, [columns] if isinstance(columns, str) else list(columns), group, length, stride, parts, options)
    if is_meant(path):
        raise ArgumentError(f"{path} is Parquet files: give columns=, too, their columns of numbers")
    if group is not None or options:
        raise ArgumentError(f"{', '.join([*['group'] * (group is not None), *options])}: this is about Parquet files: give columns=, too, their columns of numbers")
    path, said = _one_path(path), {"window": length, "stride": stride}
    if urls.is_url(path) and (starts is not None or "{" in path or not urls.suffixed(path, ".npy")):
        raise ArgumentError(f"{path}: of an object store windows() reads one .npy that is one series; several are read from files of this machine: copy them, or mount"
                            " the store")
    if starts is not None:
        folder, said["starts"] = os.path.split(urls.path_of(starts))
        if folder and folder != os.path.dirname(path):
            raise ArgumentError(f"starts={os.fspath(starts)!r} is to lie beside {path}")
    return Rows(path, said, parts)
