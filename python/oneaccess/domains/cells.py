# SPDX-License-Identifier: Apache-2.0
"""Single cells: files of AnnData as a data set for the pool (wrap())."""

import os
from collections.abc import Sequence
from typing import Any

from ..columns import named
from ..errors import ArgumentError, needs
from ..sources.tables import CACHE, MOST_PROCESSES, size_of
from ..sources.where import versioned
from ..wrapped import Wrapped

_DENSE, _SPARSE = ("X",), ("genes", "values")


class Cells(Wrapped):
    """Of from_h5ad(), for Loader. genes: their names; classes: {column: the names of its categories}."""

    def __init__(self, rows, *, name=None, version="", workers=None, timeout=60, room=None, keep=30.0, ragged=None, exact=False):
        most = dict.fromkeys(_SPARSE, rows.longest) if rows.sparse else {}
        super().__init__(rows, name, versioned(version, rows.placed()), workers or min(len(os.sched_getaffinity(0)), MOST_PROCESSES), timeout, False, room, keep,
                         {**most, **(ragged or {})}, exact)
        self.genes, self.classes = rows.genes, rows.classes


def from_h5ad(paths: str | os.PathLike | Sequence, columns: Sequence[str] | str = (), *, genes: Sequence[str] | None = None, layer: str | None = None,
              var: str | None = None, sparse: bool = False, target_sum: float | None = None, log1p: bool = False, where: Any = None,
              ragged: dict[str, int] | None = None, exact: bool = False, cache: int | str = CACHE, workers: int | None = None,
              name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Cells:
    """Cells of AnnData files (.h5ad, or the same in Zarr), for Loader: a cell is a sample. Needs h5py, or zarr.

        data = oa.from_h5ad("atlas.h5ad", ["cell_type"], target_sum=1e4, log1p=True)
        for batch in oa.Loader(data, batch_size=1024): batch["X"], batch["cell_type"]           # [1024, genes], [1024]
        data = oa.from_h5ad("tahoe/*.h5ad", ["drug"], genes=vocabulary, sparse=True)
        for batch in oa.Loader(data, batch_size=64): batch["genes"], batch["values"]            # a Ragged each

    paths: a file, a store of Zarr, a folder of these, a pattern, or a list. Cells of several files come one file behind the other.
    columns: columns of obs. Categories become int64, the places of their names in data.classes[column], of all files; numbers
        stay as in wrap(); a text has at most 256 bytes, or ragged={column: most}. A cell without a value is a bad sample.
    genes: names of genes, in the order of a batch; of a gene that a file has not, its cells have 0. Default: those that all files
        have, in the order of the first one. data.genes has the names.
    var: the column of var that names genes, as "feature_name". Default: its index.
    layer: a layer in place of X; "raw" is raw.X, where no layer has that name.
    sparse: True: in place of "X", float32 [genes], a batch has "genes", the places in data.genes (int64, ascending), and "values"
        (float32) of those whose value is not 0, each ragged.
    target_sum, log1p: as of scanpy.pp.normalize_total() and log1p(): a cell's values are divided so that all those of its file,
        also of genes that are not meant, sum to target_sum; then x becomes log(1 + x).
    where: which cells, by columns of obs, as of from_parquet(): [("tissue", "==", "lung")], or an expression of pyarrow. The
        others are not there. It needs pyarrow. loader.dataset.rows_of(batch.ids) says which cells of all files samples are.
    cache: bytes of cells in a row that the pool's processes keep together. If it does not hold all, a random order is
        shuffle="blocks", of some dozens to thousands of cells that are neighbours in a file; see from_parquet().

    The matrix is sparse by cells (CSR) or dense; one that is sparse by genes (CSC) is refused, with how to write it anew. Several
    values of one gene are summed, as by scipy. A cell whose indptr or indices are damaged is a bad sample, whose error has its name.
    An .h5ad that was written to since is noticed; of Zarr the metadata are looked at, chunks are not.

    The other arguments are those of wrap().
    """
    columns = named(columns)
    taken = [each for each in columns if each in (_SPARSE if sparse else _DENSE)]
    if taken or len({*columns}) < len(columns):
        raise ArgumentError(f"columns={columns!r}: {f'{taken[0]!r} is the matrix in a batch' if taken else 'one is named twice'}")
    if target_sum is not None and not (isinstance(target_sum, (int, float)) and 0 < target_sum < float("inf")):
        raise ArgumentError(f"target_sum is {target_sum!r}: what a cell's values are to sum to, as 1e4")
    if genes is not None and not isinstance(genes, str):
        genes = [*genes]
    needs("numpy", "oneaccess.from_h5ad()")
    from .cell_rows import CellRows
    from .h5ad import files_of
    rows = CellRows(files_of(paths), columns, genes, layer, var, bool(sparse), target_sum, bool(log1p), where, size_of(cache, "cache"))
    return Cells(rows, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep, ragged=ragged, exact=exact)
