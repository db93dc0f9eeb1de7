# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet files whose columns are made as features.py says: a row group at once, and its samples as the records that the pool
answers with, so that a sample costs the pool a copy."""

import array
import bisect
import contextlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import record, urls
from .. import hashes
from ..columns import Blocks
from ..errors import ArgumentError, TransformError
from ..features import Call, Column, FeatureOp, Stack, Values, fields_of
from ..shelf import Shelf
from .tables import MOST_PROCESSES, ParquetRows, unchanged
from .where import numbers_in

_ROOM = 1 << 16         # of a row group, for what is not numbers


def _functions(fields):
    """Whose source is told apart, too: this package's and the user's own."""
    def ops_of(field):
        return [*field.ops, *(op for column in getattr(field, "columns", ()) for op in ops_of(column))]

    ops = [op for field in fields.values() for op in ops_of(field)]
    return [FeatureOp, hashes.of_words, *(op.function for op in ops if isinstance(op, Call))]


# ---- a row group ----


def _finished(values: Values):
    """The array that a batch has of it, or (values, offsets, the longest list that there may be)."""
    if values.words is not None:
        raise TransformError("it is text: Hash(buckets) or Vocabulary(values) makes numbers of it")
    if values.offsets is not None and values.most is None:
        raise TransformError("it has lists of any length: First(count) or Pad(count) ends them")
    missing, values.missing = values.missing, None
    if missing is not None:
        values.refuse(missing, "it has no value (null): Fill(value) before the other ops, or leave such rows out, by where=")
    data = np.ascontiguousarray(_narrowed(values) if values.data.dtype.kind == "f" else values.whole())
    return data if values.offsets is None else (data, values.offsets, values.most)


def _narrowed(values):
    """As float32. A number that it has no room for is bad; the column's own infinities stay."""
    try:
        with np.errstate(over="raise"):
            return values.data.astype(np.float32, copy=False)
    except FloatingPointError:
        with np.errstate(over="ignore"):
            data = values.data.astype(np.float32)
        values.refuse(np.isinf(data) & ~np.isinf(values.data), f"float32, which ends at {np.finfo(np.float32).max:.2g}, has no room for it: Clamp(min, max)")
        return data


def _stacked(parts):
    if any(isinstance(part, tuple) or part.shape[1:] != parts[0].shape[1:] for part in parts):
        raise TransformError("a Stack is of columns with one value in a row, or lists of one length, by Pad(count): lists of any length are fields of their own")
    return np.stack(parts, 1, dtype=np.float32 if any(part.dtype == np.float32 for part in parts) else np.int64, casting="unsafe")


class Group:
    """A row group's fields: arrays [rows, ...], or (values, offsets) where they are ragged, whose bounds are in most. wrong: [(which rows, why)]."""

    def __init__(self, fields: Mapping[str, Column | Stack], table: Any):
        self.arrays, self.most, self.wrong = {}, {}, []
        for name, field in fields.items():
            try:
                made = [self._finished(values) for values in field.made(table)]
                self.arrays[name] = _stacked(made) if isinstance(field, Stack) else made[0]
            except TransformError as why:
                raise TransformError(f"field {name}: {why}") from None
            if isinstance(made[0], tuple):
                self.arrays[name], self.most[name] = made[0][:2], made[0][2]
        self.count = table.num_rows
        self.any_wrong = np.any([which for which, _ in self.wrong], 0) if self.wrong else None

    def _finished(self, values: Values):
        try:
            made = _finished(values)
        except TransformError as why:
            raise TransformError(f"column {values.name}: {why}") from None
        self.wrong += [(which, f"column {values.name}: {why}") for which, why in values.wrong]
        return made

    def kinds(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """{field: dtype and shape of a value}."""
        return {name: (values.dtype.name, values.shape[1:]) for name, made in self.arrays.items() for values in (made[0] if isinstance(made, tuple) else made,)}

    def sample(self, row: int) -> dict[str, Any]:
        return {name: made[0][made[1][row]:made[1][row + 1]] if isinstance(made, tuple) else made[row] for name, made in self.arrays.items()}

    def wrong_of(self, rows: Any) -> tuple[int, str] | None:
        """The first of these rows that is bad, and why."""
        if self.any_wrong is None or not self.any_wrong[rows].any():
            return None
        row = int(rows[self.any_wrong[rows].argmax()])
        return row, next(why for which, why in self.wrong if which[row])


class FeatureRows(ParquetRows):
    """Rows as dicts of arrays, and as records (__getrecords__)."""

    together = 1        # rows in a sample

    def __init__(self, files, columns, cache, where=None, table=None):
        self.fields = fields_of(columns)
        self.functions = _functions(self.fields)
        super().__init__(files, list(dict.fromkeys(name for field in self.fields.values() for name in field.names())), cache, where, table)

    def _look(self, schema):
        """What the fields are like, by a table of no rows."""
        import pyarrow as pa
        self.texts = [field.name for field in schema if field.name in self.columns and (pa.types.is_string(field.type) or pa.types.is_binary(field.type))]
        made = Group(self.fields, schema.empty_table().select(list(self.columns)))
        self.most, self._kinds = made.most, made.kinds()
        arrays = [each[0][:0] if isinstance(each, tuple) else each for each in made.arrays.values()]
        self._row = record.room_of([each.itemsize * int(np.prod(each.shape[1:])) for each in arrays], bool(made.most))
        self._lists = [name for field in self.fields.values() if isinstance(field, Column) for name in field.names()] if made.most else []

    def __example__(self):
        """What samples are like, also where the first ones are bad."""
        rows = (self.together,) if self.together > 1 else ()
        return {name: np.zeros((0,) if name in self.most else (*rows, *shape), kind) for name, (kind, shape) in self._kinds.items()}

    def _own(self, at, names):
        """What a file calls those of these columns that it has."""
        return [own for name, (own, _, _) in zip(self.columns, self.parts[at]) if own is not None and name in names]

    def _bytes(self, group, at, count):
        lists = tuple(f"{own}." for own in self._own(at, self._lists))
        values = sum(group.column(i).num_values for i in range(group.num_columns) if group.column(i).path_in_schema.startswith(lists)) if lists else 0
        return self._row * count + 8 * values       # which any of the rows may have

    def _begin(self):
        super()._begin()
        self._shelf = None

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_shelf"}

    def __setstate__(self, state):
        super().__setstate__(state)
        if os.environ.get("ACCESS_POOL"):       # whose processes are forked
            self._shelf = Shelf(min(len(self.groups), self.window + MOST_PROCESSES), self.largest + self.largest // 8 + _ROOM, self._shared, len(self.groups))

    def _shared(self, group):
        """What a row group's samples are made of in a pool."""
        return self._packed(group)

    def _open(self, at):
        import pyarrow.parquet
        file, stamp = self.files[at]
        unchanged(file, stamp)
        return pyarrow.parquet.ParquetFile(urls.opened(file), read_dictionary=self._own(at, self.texts))

    def _whole(self, table, at):
        """Columns by the table's names, with those that the file has not."""
        import pyarrow as pa
        return pa.table({name: pa.repeat(pa.scalar(value, self._types[name]), table.num_rows) if own is None else self._typed(table.column(own), name, kind)
                         for (name, kind), (own, _, value) in zip(self.columns.items(), self.parts[at])})

    def _decode(self, group):
        made = Group(self.fields, self._whole(self.table(group), self.groups[group][0]))
        for name, found in made.kinds().items():
            if found != self._kinds[name]:
                raise TransformError(f"{self._place(group)}: field {name} is {found[0]} {found[1]} and {' '.join(map(str, self._kinds[name]))} by the first file, as columns of files differ in"
                                     " type: Fill(0.0) makes floats of all")
        return made

    def _packed(self, group):
        made = self._decode(group)
        made.packed, made.arrays = record.packed(list(made.arrays.values()), self._layout), None
        return made

    def _place(self, group):
        at, number = self.groups[group]
        return f"{os.path.basename(self.files[at][0])}, row group {number}"

    def _where(self, group, row):
        return f"{self._place(group)}, row {row if self.chosen is None or self.chosen[group] is None else int(self.chosen[group][row])}"

    def _found(self, indices, kept, take):
        """Row group by row group: take(which of the samples, it, their rows there), where none of them is bad; kept: of a row group's number."""
        starts = np.asarray(self.starts)
        groups = np.searchsorted(starts, indices, "right") - 1
        rows = np.asarray(indices) - starts[groups]
        for group in np.unique(groups).tolist():
            which = np.flatnonzero(groups == group)
            with kept(group) as found:
                self._check(group, found, rows[which])
                take(which, found, rows[which])

    def _check(self, group, found, rows):
        wrong = found.wrong_of(rows)
        if wrong is not None:
            raise TransformError(f"{self._where(group, wrong[0])}: {wrong[1]}")

    def _alone(self, group):
        return contextlib.nullcontext(self._decoded.get(group))

    def __getitems__(self, indices):
        made = [None] * len(indices)

        def take(which, found, rows):
            for place, row in zip(which.tolist(), rows.tolist()):
                made[place] = found.sample(row)

        self._found(indices, self._alone, take)
        return made

    def __getrecords__(self, indices, layout, words=None):
        """In a pool, of these samples what Record would make of them: (bytes of all in a row, each at a multiple of ALIGN; their sizes)."""
        self._layout = layout
        sizes, parts = np.empty(len(indices), np.int64), [b""] * len(indices)

        def take(which, found, rows):
            data, begins, ends = found.packed
            sizes[which] = ends[rows] - begins[rows]
            if self.most:
                for place, row in zip(which.tolist(), rows.tolist()):
                    parts[place] = data[begins[row]:begins[row + 1] if row + 1 < len(begins) else None].tobytes()
                return
            some = data.reshape(len(begins), -1)[rows]
            parts[0] = parts[0] if len(parts[0]) else np.empty((len(indices), some.shape[1]), np.uint8)
            parts[0][which] = some

        self._found(indices, self._shelf.get, take)
        return b"".join(parts) if self.most else memoryview(parts[0].reshape(-1)), sizes.tolist()


class FeatureBlocks(FeatureRows):
    """Samples of so many rows in a row; those at the end that make no whole sample are left out."""

    __getrecords__ = None

    def __init__(self, files, columns, cache, rows, **more):
        super().__init__(files, columns, cache, **more)
        if self.most:
            raise ArgumentError(f"rows={rows}: field {next(iter(self.most))} has lists of any length, and rows that are a sample together have one: Pad(count)"
                                " in place of First(count)")
        self.together, self.count = rows, self.total // rows
        if not self.count:
            raise ArgumentError(f"rows={rows}: there are {self.total} rows, less than a sample is to have")
        firsts = np.unique(-(-np.asarray(self.starts) // rows))
        firsts = firsts[firsts < self.count]
        if self.blocks is not None:
            self.blocks = Blocks(array.array("q", firsts.tolist()), self.window, self.blocks.largest) if len(firsts) > self.window else None

    def rows_of(self, ids):
        """The numbers in the whole table of the rows of each sample, [samples, rows]."""
        rows = numbers_in(None, self.count, ids)[:, None] * self.together + np.arange(self.together)
        return self.rows_at(rows.reshape(-1)).reshape(rows.shape)

    def __getitems__(self, indices):
        return [self._sample(index * self.together) for index in indices]

    def _shared(self, group):
        return self._decode(group)

    def _sample(self, first):
        parts, end, kept = [], first + self.together, self._alone if self._shelf is None else self._shelf.get
        while first < end:
            group = bisect.bisect_right(self.starts, first) - 1
            begin = first - self.starts[group]
            with kept(group) as found:
                until = min(begin + end - first, found.count)
                self._check(group, found, np.arange(begin, until))
                parts.append([values[begin:until].copy() for values in found.arrays.values()])
            first += until - begin
        return {name: each[0] if len(each) == 1 else np.concatenate(each) for name, *each in zip(self.fields, *parts)}
