# SPDX-License-Identifier: Apache-2.0
"""What features are made by: means and vocabularies of columns of Parquet files, measured once and written into the program."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..columns import named
from ..errors import ArgumentError, TransformError
from ..features import Stack, Values, fields_of, values_of
from .tables import CACHE, ParquetRows, files_of


class Stats(NamedTuple):
    """Of a field: how many values there are and how many are missing (null or NaN), their mean, standard deviation (that of all, divided by
    count), least and greatest. Of a Stack each is a list with one for each column; of lists they are of all values. Without a value they are
    NaN."""

    count: int | list[int]
    missing: int | list[int]
    mean: float | list[float]
    std: float | list[float]
    min: float | list[float]
    max: float | list[float]


class _Sum:
    """Of values a row group at a time, as Chan, Golub and LeVeque combine means and squares (1983, Algorithms for computing the sample variance)."""

    def __init__(self):
        self.count, self.missing, self.mean, self.squares, self.min, self.max = 0, 0, 0.0, 0.0, float("inf"), float("-inf")

    def add(self, values: Values) -> None:
        import numpy as np
        if values.words is not None:
            raise TransformError("it is text: column_values() counts texts")
        for _, why in values.wrong:
            raise TransformError(why)
        data = values.data.astype(np.float64).reshape(-1)
        there = ~np.isnan(data) if values.missing is None else ~np.isnan(data) & ~values.missing.reshape(-1)
        data, self.missing = data[there], self.missing + int(len(data) - there.sum())
        if not len(data):
            return
        mean, count = data.mean(), self.count + len(data)
        away = mean - self.mean
        self.squares += float(((data - mean) ** 2).sum()) + away ** 2 * self.count * len(data) / count
        self.mean += away * len(data) / count
        self.count, self.min, self.max = count, min(self.min, float(data.min())), max(self.max, float(data.max()))

    def stats(self) -> Stats:
        if not self.count:
            return Stats(0, self.missing, *[float("nan")] * 4)
        return Stats(self.count, self.missing, float(self.mean), (self.squares / self.count) ** 0.5, self.min, self.max)


def _rows_of(paths, names, where):
    return ParquetRows(files_of(paths), list(dict.fromkeys(names)), CACHE, where=where)


def column_stats(paths: str | os.PathLike | Sequence, columns: Sequence[str] | Mapping[str, Any], *, where: Any = None) -> dict[str, Stats]:
    """{field: Stats} of columns of Parquet files, for Standardize(): of the values that the ops before it make. Needs pyarrow.

        dense = f.Stack(names, f.Fill(0), f.Clamp(min=0), f.Log1p())
        stats = oa.column_stats("criteo/", {"dense": dense})["dense"]
        columns = {"dense": f.Stack(names, *dense.ops, f.Standardize(stats.mean, stats.std)), ...}

    paths, where: as of from_parquet(): measure the rows that are trained on.
    columns: names, or {field: what it is made of}, as of from_parquet().

    All rows are read, in this process. Missing values are left out.
    """
    fields = fields_of(columns if isinstance(columns, Mapping) else {name: name for name in named(columns)})
    sums = {name: [_Sum() for _ in range(len(field.columns) if isinstance(field, Stack) else 1)] for name, field in fields.items()}
    rows = _rows_of(paths, [name for field in fields.values() for name in field.names()], where)
    for group in range(len(rows.groups)):
        table = rows.table(group)
        for name, field in fields.items():
            for total, values in zip(sums[name], field.made(table)):
                try:
                    total.add(values)
                except TransformError as why:
                    raise TransformError(f"field {name}: column {values.name}: {why}") from None
    found = {name: [total.stats() for total in each] for name, each in sums.items()}
    return {name: Stats(*map(list, zip(*each))) if isinstance(fields[name], Stack) else each[0] for name, each in found.items()}


def column_values(paths: str | os.PathLike | Sequence, columns: str | Sequence[str], *, least: int = 1, most: int | None = None,
                  where: Any = None) -> dict[str, list]:
    """{column: its values}, texts or whole numbers, for Vocabulary(): the most frequent ones first, those of one frequency in their own order.
    Needs pyarrow.

        words = oa.column_values("criteo/", sparse, least=10)
        columns = {"sparse": f.Stack(sparse, f.Vocabulary(words)), ...}

    paths, where: as of from_parquet(). Of lists their values are counted; missing ones are no values.
    least: how often a value occurs at least. most: how many values there are at most, of a column.

    All rows are read, in this process, and the different values of all columns are in its memory.
    """
    import pyarrow as pa
    names = named(columns)
    rows, found = _rows_of(paths, names, where), {}
    for group in range(len(rows.groups)):
        table = rows.table(group)
        for name in names:
            try:
                found[name] = _counted(values_of(table.column(name)), found.get(name))
            except TransformError as why:
                raise TransformError(f"column {name}: {why}") from None
    made = {}
    for name, table in found.items():
        table = table.filter(pa.compute.greater_equal(table.column("count"), least)).sort_by([("count", "descending"), ("value", "ascending")])
        column = table.column("value").slice(0, most)
        made[name] = column.cast(pa.large_string()).to_pylist() if pa.types.is_large_binary(column.type) else column.to_pylist()
        if not made[name]:
            raise ArgumentError(f"column {name} has no value that occurs {least} times: give a smaller least")
    return made


def _counted(values, before):
    """A table of values and how often each occurs, with those of before."""
    import numpy as np
    import pyarrow as pa
    data = values.data if values.missing is None else values.data[~values.missing]
    if values.words is None:
        if data.dtype.kind == "f":
            raise TransformError(f"it has {data.dtype}: a vocabulary is of texts and whole numbers")
        each, counts = np.unique(data.astype(np.int64, copy=False), return_counts=True)
        each = pa.array(each)
    else:
        counts = np.bincount(data, minlength=len(values.words))
        each, counts = values.words.cast(pa.large_binary()).filter(pa.array(counts > 0)), counts[counts > 0]
    table = pa.table({"value": each, "count": pa.array(counts, pa.int64())})
    table = table if before is None else pa.concat_tables([before, table])
    return table.group_by("value").aggregate([("count", "sum")]).rename_columns(["value", "count"]).select(["value", "count"])
