# SPDX-License-Identifier: Apache-2.0
"""Which rows of a table are the data set: where= of from_parquet() and its like. A filter is an expression of pyarrow or the list of tuples
of pyarrow.parquet.read_table(filters=); pyarrow itself says which rows it means, with its types and its nulls."""

import hashlib
from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError, needs

ROWS = 1 << 16         # that are looked at together


class Where:
    """A filter of rows."""

    def __init__(self, where: Any):
        parquet = needs("pyarrow.parquet", "where=", "pyarrow")
        self._data = needs("pyarrow.dataset", "where=", "pyarrow")
        self.shown = str(where) if isinstance(where, self._data.Expression) else repr(where)
        self.shown = self.shown if len(self.shown) <= 200 else f"{self.shown[:200]}..."
        try:
            self.expression = parquet.filters_to_expression(where)
        except (TypeError, ValueError, AttributeError, IndexError, KeyError) as why:
            raise ArgumentError(f"where={self.shown}: {why}. It is an expression, as pyarrow.compute.field(\"score\") > 5, or a list of tuples"
                                " (column, operator, value), all of which hold, or a list of such lists, one of which holds") from None

    def used(self, schema, path: str) -> list[str]:
        """The columns that it is about."""
        self._bound(schema, path)
        return [name for name in dict.fromkeys(schema.names) if not self._binds(schema, name)]

    def _binds(self, schema, name):
        import pyarrow as pa
        try:
            self._bound(pa.schema([field for field in schema if field.name != name]), "")
        except ArgumentError:
            return False
        return True

    def _bound(self, schema, path):
        """Is it one of this schema's columns, and yes or no?"""
        import pyarrow as pa
        try:
            made = self._data.dataset(schema.empty_table()).to_table(columns={"is": self.expression}).schema.field("is").type
        except (pa.ArrowException, TypeError, ValueError) as why:
            raise self.misfit(schema, path, why) from None
        if not pa.types.is_boolean(made):
            raise ArgumentError(f"where={self.shown} is {made} of each row, and must be true or false: compare it with something")

    def misfit(self, schema, path: str, why: Exception) -> ArgumentError:
        said = str(why).partition("\n")[0]
        return ArgumentError(f"where={self.shown} does not fit {path}: {said}. Its columns: {', '.join(f'{field.name} ({field.type})' for field in schema)}")

    def mask(self, table, path: str):
        """True for each of the rows that it means; null is none of them."""
        import pyarrow as pa
        try:
            return _of_booleans(self._data.dataset(table).to_table(columns={"is": self.expression}, use_threads=False).column("is").chunks)
        except (pa.ArrowException, TypeError, ValueError) as why:
            raise self.misfit(table.schema, path, why) from None

    @staticmethod
    def schema(schema, part: Any):
        """Of a file, as the table calls its columns."""
        import pyarrow as pa
        fields = [schema.field(own).with_name(name) for name, own in part.names.items()]
        return pa.schema([*fields, *(pa.field(name, value.type) for name, value in part.same.items())], schema.metadata)

    def of_parquet(self, file: str, opened: Any, found, part: Any) -> dict[int, Any]:
        """{row group: mask} of those that may have such rows by the file's statistics. Nothing is read but the columns of the filter. found: the
        file as a ParquetFile, opened: for it once more. part: its columns, as the table has them."""
        import pyarrow as pa
        schema = self.schema(found.schema_arrow, part)
        self._bound(schema, file)
        try:
            if any(name != own for name, own in part.names.items()):
                return self._of_renamed(file, found, part, self.used(schema, file) or schema.names[:1])
            return self._of_same(schema, opened, found, part.same)
        except (pa.ArrowException, OSError, TypeError, ValueError) as why:
            raise self.misfit(schema, file, why) from None

    def _of_same(self, schema, opened, found, same):
        from pyarrow.fs import LocalFileSystem
        told = None
        for name, value in same.items():
            field = self._data.field(name)
            is_it = field == value if value.is_valid else field.is_null()
            told = is_it if told is None else told & is_it
        whole = self._data.ParquetFileFormat().make_fragment(opened, LocalFileSystem() if isinstance(opened, str) else None,
                                                             **({} if told is None else {"partition_expression": told}))
        some = whole.subset(filter=self.expression, schema=schema).row_groups
        if not some:
            return {}
        chosen = whole.subset(row_group_ids=[group.id for group in some])
        scanner = chosen.scanner(schema=schema, columns={"is": self.expression}, batch_size=ROWS, batch_readahead=2)
        mask, at, made = _of_booleans(batch.column(0) for batch in scanner.to_batches()), 0, {}
        for group in some:
            count = found.metadata.row_group(group.id).num_rows
            made[group.id], at = mask[at:at + count], at + count
        return made

    def _of_renamed(self, file, found, part, used):
        """Where pyarrow's statistics are of other names."""
        import pyarrow as pa
        made = {}
        for group in range(found.metadata.num_row_groups):
            own = [part.names[name] for name in used if name in part.names]
            table = found.read_row_group(group, columns=own, use_threads=False)
            columns = {name: table.column(part.names[name]) if name in part.names else pa.repeat(part.same[name], found.metadata.row_group(group).num_rows)
                       for name in used}
            made[group] = self.mask(pa.table(columns), file)
        return made

    def nothing(self, count: int, path: str) -> ArgumentError:
        return ArgumentError(f"where={self.shown} chooses none of the {count:,} rows of {path}: a data set has a row at least")


def _of_booleans(arrays: Iterable):
    import numpy as np
    import pyarrow.compute as pc
    made = [pc.fill_null(array, False).to_numpy(zero_copy_only=False) for array in arrays]
    return np.concatenate(made) if made else np.zeros(0, bool)


def numbers_of(mask, first: int = 0):
    """The numbers of the rows that are meant."""
    import numpy as np
    return np.flatnonzero(mask) + first


def mask_of(numbers, count: int):
    import numpy as np
    mask = np.zeros(count, bool)
    mask[numbers] = True
    return mask


def numbers_in(chosen, count: int, ids):
    """Of samples by their numbers; chosen: the rows' numbers, or None, where all are there."""
    import numpy as np
    ids = np.asarray(ids, np.int64).reshape(-1)
    if len(ids) and not (0 <= ids.min() and ids.max() < count):
        raise ArgumentError(f"the data set has samples 0 to {count - 1}, and these are {ids.min()} to {ids.max()}")
    return ids if chosen is None else chosen[ids]


class Chosen:
    """Rows of which some are there: count of them, those of the numbers in chosen, or all (None)."""

    count: int
    chosen: Any

    def __len__(self):
        return self.count

    def placed(self):
        """The numbers in the whole data set, of all its files, of the rows that are there; None: all."""
        return self.chosen

    def rows_of(self, ids):
        """The numbers in the whole data set of samples by their numbers, as batch.ids has them: an array of int64."""
        return numbers_in(self.chosen, self.count, ids)


def versioned(version: str, rows: Any) -> str:
    """With which rows there are, of which an array or several say it; None: all. So data sets that name= calls the same are told apart."""
    import numpy as np
    if rows is None:
        return version
    digest = hashlib.sha256()
    for some in [rows] if isinstance(rows, np.ndarray) else rows:
        digest.update(len(some).to_bytes(8, "little") + some.tobytes())
    return f"{version} rows {digest.hexdigest()}"
