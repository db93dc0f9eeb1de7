# SPDX-License-Identifier: Apache-2.0
"""Files of AnnData, as HDF5 (.h5ad) and as Zarr: the matrix of cells and genes, and the columns of obs and var, in the encodings of all versions
of anndata. Nothing here trusts a file: what it says of a cell is checked before it is used."""

import os
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, DatasetError
from ..sources.stores import BROKEN, stores_of
from ..sources.tables import Kept, needs

_SUFFIXES = (".h5ad", ".zarr")
_OF_A_FILE = 4 << 20        # decoded chunks, of an array of HDF5
_SHOWN = 20


def files_of(paths: Any) -> list[str]:
    """The files that are meant: of a file, a store of Zarr, a folder of these, a pattern, or a list."""
    return stores_of(paths, _SUFFIXES, "AnnData (.h5ad or .zarr)", "from_h5ad()")


def _shown(names):
    names = [*names]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _is_group(node):
    return hasattr(node, "keys")


def _said(node, *names):
    """An attribute, by the first of its names that is there."""
    for name in names:
        if name in node.attrs:
            found = node.attrs[name]
            return found.decode() if isinstance(found, bytes) else found
    return None


def _text(value):
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    raise DatasetError(f"a text is a {type(value).__name__}")


class _Slices:
    """An array of Zarr, whose library keeps no chunk: slices of those that were decoded last."""

    def __init__(self, found):
        self._found, self._rows = found, max(1, found.chunks[0])
        self.shape, self.dtype, self.chunks = found.shape, found.dtype, found.chunks
        self._kept = Kept(2, lambda at: self._found[at * self._rows:(at + 1) * self._rows])

    def __getitem__(self, rows):
        parts, first = [], rows.start
        while first < rows.stop:
            at = first // self._rows
            until = min(rows.stop, (at + 1) * self._rows)
            parts.append(self._kept.get(at)[first - at * self._rows:until - at * self._rows])
            first = until
        return np.concatenate(parts) if len(parts) != 1 else parts[0]


class _Member:
    """A column of an obs that is one array of structs, as anndata wrote it before 0.7."""

    def __init__(self, table, name):
        self._table, self._name = table, name
        self.shape, self.dtype, self.chunks = table.shape, table.dtype[name], table.chunks

    def __getitem__(self, rows):
        return self._table.fields(self._name)[rows]


# ---- columns ----


class Column:
    """One of obs or var. kind: "number", "text", "class", or None: it has no place. classes: the names of its categories."""

    def __init__(self, values: Any, classes: Any = None, mask: Any = None):
        self.values, self.mask, self.dtype = values, mask, np.dtype(values.dtype)
        kind = self.dtype.kind
        self.classes = None if classes is None else [value if isinstance(value, str) else _text(value) if isinstance(value, bytes) else str(value)
                                                     for value in classes[0:classes.shape[0]].tolist()]
        self.kind = ("class" if kind in "iu" else None) if classes is not None else "number" if kind in "biuf" else "text" if kind in "OSUT" else None

    def read(self, first: int, last: int) -> tuple[Any, Any]:
        """The values of these rows (of classes their numbers), and which have none: an array of bool, or None."""
        values = self.values[first:last]
        missing = None if self.mask is None else np.asarray(self.mask[first:last], bool)
        if self.kind == "text":
            return [_text(value) for value in values.tolist()], missing
        values = np.asarray(values)
        if self.kind == "class":
            values = values.astype(np.int64)
            missing = values < 0
        return values, missing if missing is not None and missing.any() else None


class Frame:
    """obs or var. index: what it calls the names of its rows."""

    def __init__(self, root: Any, name: str, wrapped: Any):
        self._root, self._node, self._wrapped = root, root[name], wrapped
        if _is_group(self._node):
            self.index = _said(self._node, "_index") or "_index"
            self.names = [key for key in self._node.keys() if key != "__categories"]
        else:
            self.names = list(self._node.dtype.names or ())
            self.index = "index" if "index" in self.names else "_index"

    def column(self, name: str) -> Column | None:
        """None: it is none that has a place in a batch."""
        if not _is_group(self._node):
            categories = f"uns/{name}_categories"
            return Column(_Member(self._node, name), self._root[categories] if categories in self._root else None)
        found = self._node[name]
        if _is_group(found):
            parts = next((pair for pair in (("codes", "categories"), ("values", "mask")) if all(part in found for part in pair)), None)
            if parts is None:
                return None
            values, beside = self._array(found[parts[0]]), found[parts[1]]
            return None if values is None else Column(values, beside) if parts[0] == "codes" else Column(values, mask=self._array(beside))
        categories = _said(found, "categories")
        if categories is not None:
            categories = self._node[categories] if isinstance(categories, str) else self._root[categories]
        values = self._array(found)
        return None if values is None else Column(values, categories)

    def _array(self, found):
        return self._wrapped(found) if len(found.shape) == 1 else None

    def texts(self, name: str) -> list[str]:
        """All of a column, as genes' names are."""
        column = self.column(name)
        if column is None or column.kind not in ("text", "class"):
            raise ArgumentError(f"column {name} has no texts")
        values, missing = column.read(0, column.values.shape[0])
        if missing is not None and missing.any():
            raise ArgumentError(f"column {name} has rows without a value")
        return values if column.kind == "text" else [column.classes[value] for value in values.tolist()]


# ---- a file ----


class Matrix(NamedTuple):
    """Cells in a row, by the file's genes: of a sparse one where the values of each begin, their genes in ascending order, and they; of a dense one
    genes is None. wrong: {row: why}."""

    starts: Any
    genes: Any
    values: Any
    wrong: dict[int, str]


class Store:
    """A file, opened by the process that reads it."""

    def __init__(self, path: str, layer: str | None = None):
        self.path, self._is_zarr = path, os.path.isdir(path)
        try:
            self.root = self._opened()
            self._key = self._found(layer)
            self.obs, self.var = (Frame(self.root, name, self._wrapped) for name in ("obs", "raw/var" if self._key == "raw/X" else "var"))
            self._look()
        except BROKEN as why:
            if isinstance(why, (ArgumentError, DatasetError)):
                raise
            raise DatasetError(f"{path} is no file of AnnData that can be read: {why}") from None

    def _opened(self):
        if self._is_zarr:
            return needs("zarr", "AnnData in Zarr").open_group(self.path, mode="r")
        return needs("h5py", "a .h5ad").File(self.path, "r", rdcc_nbytes=_OF_A_FILE)

    def close(self) -> None:
        if not self._is_zarr:
            self.root.close()

    def _wrapped(self, found):
        return _Slices(found) if self._is_zarr else found

    def _found(self, layer):
        layers = [*self.root["layers"].keys()] if "layers" in self.root else []
        key = "X" if layer is None else f"layers/{layer}" if layer in layers else "raw/X" if layer == "raw" else None
        if key is None or key not in self.root:
            layers += ["raw"] * ("raw/X" in self.root and "raw" not in layers)
            raise ArgumentError(f"{self.path} has no {'X' if layer is None else f'layer {layer!r}'}; layers are: {_shown(layers) or 'none'}")
        return key

    def _look(self):
        """At the matrix: sparse, or dense, and of as many cells and genes as obs and var have."""
        node = self.root[self._key]
        self.count, self.width = (frame.column(frame.index).values.shape[0] for frame in (self.obs, self.var))
        if _is_group(node):
            kind = str(_said(node, "encoding-type", "h5sparse_format"))
            if kind.startswith("csc"):
                raise ArgumentError(f"{self._key} of {self.path} is sparse by genes (CSC), so each cell would cost all of it: write it by cells (CSR), as by"
                                    f" adata = anndata.read_h5ad(path); {self._by_cells()}; adata.write_h5ad(new_path)")
            if not kind.startswith("csr"):
                raise DatasetError(f"{self._key} of {self.path} is {kind}: it is to be sparse by cells (csr_matrix), or dense")
            shape = tuple(int(size) for size in _said(node, "shape", "h5sparse_shape"))
            self.indptr, self.indices, self.data = self._wrapped(node["indptr"]), node["indices"], node["data"]
            if any(len(part.shape) != 1 for part in (self.indptr, self.indices, self.data)) or self.indices.shape != self.data.shape \
                    or self.indptr.shape != (self.count + 1,) or self.indptr.dtype.kind not in "iu" or self.indices.dtype.kind not in "iu":
                raise DatasetError(f"{self._key} of {self.path} is damaged: its indptr, indices and data do not fit each other and the {self.count:,} cells of obs")
        else:
            shape, self.indptr, self.data = tuple(node.shape), None, node
        if shape != (self.count, self.width):
            raise DatasetError(f"{self._key} of {self.path} has the shape {shape}, and obs and var have {self.count:,} cells and {self.width:,} genes")
        if self.data.dtype.kind not in "biuf":
            raise DatasetError(f"{self._key} of {self.path} has values of {self.data.dtype}, which are no numbers")

    def _by_cells(self):
        if self._key == "X":
            return "adata.X = adata.X.tocsr()"
        if self._key == "raw/X":
            return "raw = adata.raw.to_adata(); raw.X = raw.X.tocsr(); adata.raw = raw"
        layer = f"adata.layers[{self._key.partition('/')[2]!r}]"
        return f"{layer} = {layer}.tocsr()"

    # ---- cells ----

    def in_a_row(self, room: int) -> int:
        """How many cells are read together, so that they have about so many bytes and few chunks are decoded twice."""
        if self.indptr is None:
            rows = max(1, room // max(1, 4 * self.width))
            of_chunk = self.data.chunks[0] if self.data.chunks else 1
            return -(-rows // of_chunk) * of_chunk
        each = max(1, self.data.shape[0] // max(1, self.count))
        chunks = max((part.chunks[0] for part in (self.data, self.indices) if part.chunks), default=0)
        return max(1, max(room // 8, 2 * chunks) // each)

    def lengths(self, rows: int) -> tuple[int, int]:
        """Of the longest cell, and of the longest of so many in a row: how many values they have, as far as the file is right."""
        if self.indptr is None:
            return self.width, min(rows, self.count) * self.width
        longest, most, step = 0, 0, max(1, (1 << 20) // rows) * rows
        for first in range(0, self.count, step):
            at, good = self._places(first, min(self.count, first + step))
            sizes = np.where(good, at[1:] - at[:-1], 0)
            longest, most = max(longest, int(sizes.max())), max(most, int(np.add.reduceat(sizes, np.arange(0, len(sizes), rows)).max()))
        return longest, most

    def _places(self, first, last):
        """Where the values of these cells begin and the last one's end; and of which cells that is true."""
        at = np.asarray(self.indptr[first:last + 1]).astype(np.int64)
        inside = (at >= 0) & (at <= self.data.shape[0])
        return at, inside[:-1] & inside[1:] & (at[1:] >= at[:-1]) & (at[1:] - at[:-1] <= self.width)

    def read(self, first: int, last: int) -> Matrix:
        if self.indptr is None:
            return Matrix(None, None, _floats(np.asarray(self.data[first:last])), {})
        at, good = self._places(first, last)
        sizes, wrong = np.where(good, at[1:] - at[:-1], 0), {}
        if good.all():
            genes, values = self._values(at[0], at[-1])
        else:
            wrong = {row: f"its values are {at[row]:,} to {at[row + 1]:,} by indptr, of {self.data.shape[0]:,} that there are, and it has at most {self.width:,}"
                     for row in np.flatnonzero(~good).tolist()}
            parts = [self._values(at[row], at[row + 1]) for row in np.flatnonzero(good).tolist()]
            genes, values = (np.concatenate(each) for each in zip(*parts)) if parts else self._values(0, 0)
        outside = np.flatnonzero((genes < 0) | (genes >= self.width))
        cells = np.repeat(np.arange(last - first), sizes)
        for place in outside.tolist():
            wrong.setdefault(int(cells[place]), f"it has a value of gene {genes[place]}, and the file has genes 0 to {self.width - 1}")
        genes = genes.astype(np.int64)
        genes[outside] = 0
        return Matrix(*ordered(cells, genes, _floats(values), last - first, self.width), wrong)

    def _values(self, begin, end):
        return np.asarray(self.indices[begin:end]), np.asarray(self.data[begin:end])

    def name_of(self, row: int) -> str:
        """Of a cell, as obs has it; no name where that cannot be read."""
        try:
            (name,), _ = self.obs.column(self.obs.index).read(row, row + 1)
            return str(name)
        except BROKEN:
            return ""


def _floats(values):
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)


def ordered(cells: Any, genes: Any, values: Any, count: int, width: int) -> tuple[Any, Any, Any]:
    """(starts, genes, values) of count cells: each has a gene once, in ascending order; what it has several times is summed, as scipy does."""
    keys = cells * width + genes
    if len(keys) > 1 and not (np.diff(keys) > 0).all():
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        firsts = np.flatnonzero(np.concatenate([[True], np.diff(keys) > 0]))
        keys, values = keys[firsts], np.add.reduceat(values[order], firsts)
        cells, genes = keys // width, keys % width
    return np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=count))]), genes.astype(np.int32), values
