# SPDX-License-Identifier: Apache-2.0
"""Cells of AnnData files for from_h5ad().

A cell's values are few, and cells that are neighbours in a file lie beside each other: they are read as a block, checked, matched to the genes that
are meant and normalised, once for all processes of the pool (shelf.py). A random order is one of blocks, as of tables (doc/decisions/230-tables.md)."""

import array
import contextlib
import os
from typing import Any, NamedTuple

import numpy as np

from ..columns import Blocks
from ..errors import ArgumentError, DatasetError, TransformError
from ..shelf import Shelf
from ..sources.folders import twice
from ..sources.stores import BROKEN, PerProcess, all_unchanged, stamps_of
from ..sources.tables import MOST_PROCESSES, Kept
from ..sources.where import ROWS, Chosen, Where, numbers_of
from .h5ad import Store, ordered

_BLOCK = 1 << 20            # bytes of cells that are read together
_MOST_ROWS = 4096           # of them
_LARGE = 1 << 30            # a block beyond this needs a word
_ROOM = 1 << 16             # of a block, for what is not numbers
_TEXT = 64                  # bytes of a text, as they are guessed
_MOST_OPEN = 16


class Block(NamedTuple):
    """Cells in a row, of the genes that are meant: values [cells, genes], or where those of each begin, their genes and they. columns: [values] of
    obs. wrong: {row: why}."""

    starts: Any
    genes: Any
    values: Any
    columns: list[Any]
    wrong: dict[int, str]


class Genes:
    """The genes of a data set, and which of them a file's are."""

    def __init__(self, names, files):
        """names: those that are meant; None: those that all files have, in the first one's order. files: [(path, its genes)]."""
        if names is None:
            names = files[0][1]
            for path, others in files[1:]:
                if others is not names and others != names:
                    there = {*others}
                    names = [name for name in names if name in there]
            if not names:
                raise DatasetError(f"{files[0][0]} and {len(files) - 1} more have no gene in common: var= is the column of var that names them alike")
        elif isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise ArgumentError("genes= is the names of genes, a list of str")
        self.names, self._known = [*names], {}
        if not self.names:
            raise ArgumentError("genes=[]: name one at least")
        self._at = {name: at for at, name in enumerate(self.names)}
        self._is_own = len(self._at) < len(self.names)      # one file's, some of which have one name
        if self._is_own and any(others != self.names for _, others in files):
            raise ArgumentError(f"genes have one name, as {twice(self.names)!r}, and are matched by names: adata.var_names_make_unique(), or name each once")
        self.maps = [self._map(path, others) for path, others in files]
        if all(found is not None and (found < 0).all() for found in self.maps):
            raise ArgumentError(f"none of genes= is in {files[0][0]}, whose genes are {', '.join(files[0][1][:3])}, ...: var= is the column of var that has such names")

    def _map(self, path, others):
        """The place of each of a file's genes, -1 for none; None: they are the same. Files of the same genes have one."""
        if others == self.names:
            return None
        key = tuple(others)
        if key not in self._known:
            found = np.array([self._at.get(name, -1) for name in others], np.int32)
            places = found[found >= 0]
            if len(np.unique(places)) < len(places):
                raise ArgumentError(f"{path} has the gene {twice([name for name in others if name in self._at])!r} twice: adata.var_names_make_unique()")
            self._known[key] = found
        return self._known[key]


class CellRows(Chosen, PerProcess):
    """Cells as dicts. blocks: cells that are read together, where not all of them are kept. where: which cells; the others are not there."""

    chosen = None

    def __init__(self, paths, columns, genes, layer, var, sparse, target_sum, log1p, where, cache):
        self.layer, self.sparse, self.target_sum, self.log1p = layer, sparse, target_sum, log1p
        self.columns, self.files = columns, []
        where, chosen, known, counts, sizes = None if where is None else Where(where), [], [], [], []
        self.kinds, self.classes, self._codes = {}, {name: [] for name in columns}, []
        parts = [*(("X",) if layer is None else (f"layers/{layer}", "raw/X")), "obs", "var", *(f"obs/{name}" for name in columns)]
        for path in paths:
            self.files.append((path, stamps_of(path, parts)))
            store = Store(path, layer)
            try:
                names = self._genes_of(store, var)
                known.append((path, next((before for _, before in known[-1:] if before == names), names)))
                self._codes.append({name: self._look(store, name) for name in columns})
                rows = min(store.in_a_row(_BLOCK), max(_MOST_ROWS, store.data.chunks[0] if store.indptr is None and store.data.chunks else 0))
                counts.append(store.count)
                sizes.append((rows, *store.lengths(rows), store.indptr is None))
                if where is not None:
                    chosen.append(self._chosen(store, where) + sum(counts[:-1]))
            except BROKEN as why:
                if isinstance(why, (ArgumentError, DatasetError, TransformError)):
                    raise
                raise DatasetError(f"{path} cannot be read: {why}") from None
            finally:
                store.close()
        self.classes = {name: names for name, names in self.classes.items() if self.kinds[name][0] == "class"}
        self.genes = (found := Genes(genes, known)).names
        self.maps, self.widths = found.maps, [len(names) for _, names in known]
        self.firsts = np.concatenate([[0], np.cumsum(counts)])
        self.count = int(self.firsts[-1])
        if where is not None:
            self.chosen, self.count = np.concatenate(chosen), sum(map(len, chosen))
            if not self.count:
                raise where.nothing(int(self.firsts[-1]), paths[0])
        self.longest = max(1, min(len(self.genes), max(longest for _, longest, _, _ in sizes)))
        self._divide(counts, sizes, cache)

    # ---- at the beginning ----

    def _genes_of(self, store, var):
        try:
            return store.var.texts(var or store.var.index)
        except (ArgumentError, KeyError) as why:
            raise ArgumentError(f"var= of {store.path}: {why}; there are: {', '.join(store.var.names)}") from None

    def _look(self, store, name):
        """At a column of obs: what it is like; and the number of each of its classes among those of all files."""
        if name not in store.obs.names:
            raise ArgumentError(f"obs of {store.path} has no column {name!r}; there are: {', '.join(store.obs.names)}")
        column = store.obs.column(name)
        if column is None or column.kind is None:
            raise ArgumentError(f"column {name} of obs of {store.path} has no place in a batch: name columns of numbers, texts or categories")
        if column.values.shape[0] != store.count:
            raise DatasetError(f"column {name} of obs of {store.path} has {column.values.shape[0]:,} values of {store.count:,} cells")
        dtype = column.dtype if column.kind == "number" else None
        kind = self.kinds.setdefault(name, (column.kind, dtype))
        if kind[0] != column.kind:
            raise DatasetError(f"column {name} of obs is a {column.kind} in {store.path} and a {kind[0]} in {self.files[0][0]}: write both alike, as by"
                               " adata.strings_to_categoricals()")
        if column.kind == "number":
            self.kinds[name] = "number", np.result_type(kind[1], dtype)
        if column.kind != "class":
            return None
        names = self.classes[name]
        there = {each: at for at, each in enumerate(names)}
        for each in column.classes:
            if each not in there:
                there[each] = len(names)
                names.append(each)
        return np.array([there[each] for each in column.classes], np.int64)

    def _chosen(self, store, where):
        """The numbers of a file's cells that are meant."""
        import pyarrow as pa
        columns = {name: store.obs.column(name) for name in store.obs.names}
        columns = {name: column for name, column in columns.items() if column is not None and column.kind is not None and column.values.shape[0] == store.count}
        schema = pa.table({name: _of_arrow(column, 0, 0) for name, column in columns.items()}).schema
        used, found = where.used(schema, store.path) or schema.names[:1], [np.zeros(0, np.int64)]
        for first in range(0, store.count, ROWS):
            table = pa.table({name: _of_arrow(columns[name], first, min(store.count, first + ROWS)) for name in used})
            found.append(numbers_of(where.mask(table, store.path), first))
        return np.concatenate(found)

    def _divide(self, counts, sizes, cache):
        """Into blocks, none of which is of two files; what is not meant at their ends is not read."""
        begins = np.concatenate([np.arange(first, first + count, rows) for first, count, (rows, *_) in zip(self.firsts, counts, sizes)])
        ends = np.append(begins[1:], self.firsts[-1])
        starts = begins
        if self.chosen is not None:
            starts = np.searchsorted(self.chosen, begins)
            some = np.flatnonzero(np.diff(np.append(starts, self.count)))
            starts = starts[some]
            begins, ends = self.chosen[starts], self.chosen[np.append(starts[1:], self.count) - 1] + 1
        self.begins, self.ends, self.starts = begins, ends, starts
        beside = sum(_TEXT if kind == "text" else 8 for kind, _ in self.kinds.values()) + 8
        rows = max(rows for rows, *_ in sizes)
        is_dense = [dense and not self.sparse for *_, dense in sizes]
        self.largest = max((4 * len(self.genes) * rows if here else 8 * most) + beside * rows for (rows, _, most, _), here in zip(sizes, is_dense))
        if self.largest > max(cache, _LARGE):
            raise DatasetError(f"{rows:,} cells in a row of {self.files[0][0]}, which its chunks make one read of, have {self.largest / 2**30:.1f} GiB: write it with"
                               " smaller chunks, or say that there is room, by cache=\"...\"")
        self.window = max(1, cache // self.largest)
        self.blocks = Blocks(array.array("q", starts.tolist()), self.window, self.largest) if len(starts) > self.window else None
        self._begin()

    # ---- in the pool ----

    def _begin(self):
        self._decoded, self._shelf = Kept(min(len(self.starts), self.window + 1), self._read), None

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name not in ("_decoded", "_shelf")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()
        if os.environ.get("ACCESS_POOL"):       # whose processes are forked
            self._shelf = Shelf(min(len(self.starts), self.window + MOST_PROCESSES), self.largest + self.largest // 8 + _ROOM, self._read, len(self.starts))

    def open(self):
        return Kept(_MOST_OPEN, self._store, Store.close)

    def _store(self, at):
        path, stamps = self.files[at]
        all_unchanged(stamps)
        store = Store(path, self.layer)
        if store.count != self.firsts[at + 1] - self.firsts[at] or store.width != self.widths[at]:
            raise DatasetError(f"{path} was written to since the data set was opened")
        return store

    def _read(self, number):
        """A block."""
        at, first, last = self._place(number)
        path, stamps = self.files[at]
        store = self.opened().get(at)
        try:
            made = self._made(store.read(first, last), self.maps[at], store.width, last - first)
            columns = [self._column(store.obs.column(name), name, at, first, last, made.wrong) for name in self.columns]
        except BROKEN as why:
            if isinstance(why, (DatasetError, TransformError)):
                raise
            raise DatasetError(f"cells {first} to {last - 1} of {path} cannot be read: {why}") from None
        all_unchanged(stamps)
        return made._replace(columns=columns)

    def _place(self, number):
        """The file of a block, and its rows there."""
        at = int(np.searchsorted(self.firsts, self.begins[number], "right")) - 1
        return at, int(self.begins[number] - self.firsts[at]), int(self.ends[number] - self.firsts[at])

    def _made(self, found, places, width, count):
        """Normalised, of the genes that are meant."""
        starts, genes, values, wrong = found
        if genes is None:
            return Block(*self._of_dense(values, places), [], wrong)
        cells = np.repeat(np.arange(count), np.diff(starts))
        if self.target_sum is not None:
            values = values / _shares(np.bincount(cells, values, count), self.target_sum)[cells]
        if places is not None:
            genes = places[genes]
            there = genes >= 0
            starts, genes, values = ordered(cells[there], genes[there].astype(np.int64), values[there], count, len(self.genes))
        return Block(starts, genes, np.log1p(values) if self.log1p else values, [], wrong)

    def _of_dense(self, values, places):
        if self.target_sum is not None:
            values = values / _shares(values.sum(1, dtype=np.float64), self.target_sum)[:, None]
        if self.log1p:
            values = np.log1p(values)
        if places is not None:
            made = np.zeros((len(values), len(self.genes)), np.float32)
            made[:, places[places >= 0]] = values[:, places >= 0]
            values = made
        if not self.sparse:
            return None, None, np.ascontiguousarray(values)
        cells, genes = np.nonzero(values)
        return np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=len(values)))]), genes.astype(np.int32), values[cells, genes]

    def _column(self, column, name, at, first, last, wrong):
        values, missing = column.read(first, last)
        lacks = {} if missing is None else dict.fromkeys(np.flatnonzero(missing).tolist(), f"column {name} of obs has no value: leave such cells out, by where=")
        if column.kind == "class":
            numbers = self._codes[at][name]
            lacks |= dict.fromkeys(np.flatnonzero(values >= len(numbers)).tolist(), f"column {name} of obs has no such category")
            values = np.append(numbers, 0)[np.clip(values, -1, len(numbers) - 1)]
        elif column.kind == "number":
            values = values.astype(self.kinds[name][1], copy=False)
        wrong.update(lacks)
        return values

    # ---- samples ----

    def __example__(self):
        """What samples are like, also where the first ones are bad."""
        kinds = {"text": lambda dtype: "", "class": lambda dtype: 0, "number": lambda dtype: dtype.type(0)}
        sample = {"genes": np.zeros(0, np.int64), "values": np.zeros(0, np.float32)} if self.sparse else {"X": np.zeros(len(self.genes), np.float32)}
        return sample | {name: kinds[kind](dtype) for name, (kind, dtype) in self.kinds.items()}

    def _kept(self, number):
        return contextlib.nullcontext(self._decoded.get(number)) if self._shelf is None else self._shelf.get(number)

    def __getitem__(self, index):
        return self.__getitems__([range(self.count)[index]])[0]

    def __getitems__(self, indices):
        rows = np.asarray(indices) if self.chosen is None else self.chosen[np.asarray(indices)]
        numbers = np.searchsorted(self.starts, indices, "right") - 1
        made = [None] * len(indices)
        for number in np.unique(numbers).tolist():
            with self._kept(number) as block:
                for place in np.flatnonzero(numbers == number).tolist():
                    made[place] = self._sample(block, number, int(rows[place] - self.begins[number]))
        return made

    def _sample(self, block, number, row):
        if row in block.wrong:
            raise DatasetError(self._named(number, row) + block.wrong[row])
        beside = {name: values[row] for name, values in zip(self.columns, block.columns)}
        if block.genes is None:
            return {"X": block.values[row].copy(), **beside}
        begin, end = block.starts[row:row + 2]
        genes, values = block.genes[begin:end], block.values[begin:end]
        if self.sparse:
            there = values != 0
            return {"genes": genes[there].astype(np.int64), "values": values[there], **beside}
        dense = np.zeros(len(self.genes), np.float32)
        dense[genes] = values
        return {"X": dense, **beside}

    def _named(self, number, row):
        at, first, _ = self._place(number)
        return f"cell {self.opened().get(at).name_of(first + row)!r} (number {first + row} of {self.files[at][0]}): "


def _shares(totals, target_sum):
    """What a cell's values are divided by, so that they sum to target_sum; a cell without any stays."""
    totals = totals.astype(np.float32)
    return np.where(totals == 0, np.float32(1), totals) / np.float32(target_sum)


def _of_arrow(column, first, last):
    import pyarrow as pa
    values, missing = column.read(first, last)
    if column.kind != "class":
        return pa.array(values, mask=missing)
    return pa.array(column.classes, pa.string()).take(pa.array(np.maximum(values, 0), mask=missing))
