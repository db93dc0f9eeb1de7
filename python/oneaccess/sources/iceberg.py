# SPDX-License-Identifier: Apache-2.0
"""A table of Iceberg, as pyiceberg reads its metadata: its files, and in which columns of them its own are. Columns are told by their numbers
(field ids), so they may have been renamed, moved, made wider or added after a file was written."""

import re
from typing import Any

from .. import urls
from ..errors import ArgumentError, DatasetError
from . import deleted
from .tables import Files, Part

ID = b"PARQUET:field_id"
_DATA, _POSITIONS, _EQUALITY = 0, 1, 2      # what a file has
_ALIASES = re.compile(r"^s3[an]://")


def path_of(path: str) -> str:
    """As other programs write it."""
    return urls.path_of(_ALIASES.sub("s3://", re.sub(r"^file:/(?!/)", "file:///", path)))


def id_of(field: Any) -> int | None:
    """The number of a column, as Parquet has it."""
    number = (field.metadata or {}).get(ID, b"")
    return int(number) if number.isdigit() else None


class IcebergTable(Files):
    """A snapshot of a table: a pyiceberg.table.Table and the number of one, or None."""

    def __init__(self, table: Any, snapshot: int | None):
        self.table, self.name = table, table.metadata.location
        if snapshot is not None and table.snapshot_by_id(snapshot) is None:
            raise ArgumentError(f"snapshot={snapshot!r}: {self.name} has {', '.join(str(one.snapshot_id) for one in table.metadata.snapshots) or 'none'}")
        scan = table.scan(snapshot_id=snapshot)
        self.schema, self._mapping, self._deleted = scan.projection().as_arrow(), table.name_mapping(), {}
        self._defaults = {field.field_id: field.initial_default for schema in table.metadata.schemas for field in schema.fields}
        self._fields = {id_of(field): field for schema in table.metadata.schemas for field in schema.as_arrow()}
        self._specs = table.specs()
        self._plan(scan.snapshot())

    def _plan(self, snapshot):
        """The snapshot's files, in the order of their names, and by partition those that delete rows of them."""
        try:
            entries = [entry for manifest in (snapshot.manifests(self.table.io) if snapshot else ()) for entry in manifest.fetch_manifest_entry(self.table.io)]
        except Exception as why:        # whatever the package makes of damaged bytes
            raise DatasetError(f"the manifests of {self.name} cannot be read: {why!r}") from None
        self._counts = {entry.data_file.file_path: entry.data_file.record_count for entry in entries if entry.data_file.content == _DATA}
        self.entries, self.version, self._deletes = [], str(snapshot.snapshot_id) if snapshot else "", {}
        for entry in sorted(entries, key=lambda entry: entry.data_file.file_path):
            file = entry.data_file
            if file.content == _DATA:
                self.entries.append(entry)
            else:
                self._deletes.setdefault(self._place(file), {})[file.file_path] = entry
            if file.file_format not in (("PARQUET", "PUFFIN") if file.content == _POSITIONS else ("PARQUET",)):
                raise DatasetError(f"{file.file_path} is no Parquet file, and others are not read")

    def _place(self, file):
        """For what rows a file is: its partition; None: any, where it has equality deletes and no partition."""
        spec = self._specs[file.spec_id]
        is_whole = file.content == _EQUALITY and all(str(field.transform) == "void" for field in spec.fields)
        return None if is_whole else (file.spec_id, file.partition)

    def paths(self) -> list[str]:
        return [path_of(entry.data_file.file_path) for entry in self.entries]

    def part(self, at: int, file: str, opened: Any) -> Part:
        own, names, same = self._own(opened.schema_arrow, file), {}, {}
        for field in self.schema:
            number = id_of(field)
            if number in own:
                names[field.name] = own[number]
            else:
                same[field.name] = self._same(field, number, self.entries[at].data_file)
        return Part(names, same, self._gone(self.entries[at], file, opened, own))

    def inner(self, opened: Any, name: str, column: str) -> str:
        wanted = id_of(self.schema.field(column).type.field("bytes"))
        return next((one.name for one in opened.schema_arrow.field(name).type if id_of(one) == wanted), "bytes")

    def _own(self, schema, file):
        """{number: name in the file} of its columns."""
        own = {id_of(field): field.name for field in schema if id_of(field) is not None}
        if not own and self._mapping is None:
            raise DatasetError(f"{file} does not say which columns of {self.name} its own are (no field ids), nor does the table by their names"
                               " (schema.name-mapping.default): have one of them written")
        return own or {each.field_id: name for each in self._mapping for name in each.names if name in schema.names}

    def _same(self, field, number, file):
        """Of a column that the file lacks: what the table is partitioned by, what the schema says of older files, or null."""
        import pyarrow as pa
        value = self._defaults.get(number)
        for at, part in enumerate(self._specs[file.spec_id].fields):
            if part.source_id == number and str(part.transform) == "identity" and file.partition[at] is not None:
                value = file.partition[at]
        try:
            return pa.scalar(value, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as why:
            raise DatasetError(f"column {field.name} of {self.name} is {value!r} in {file.file_path}, which is no {field.type}: {why}") from None

    def _gone(self, entry, file, opened, own):
        """The numbers of the rows that are deleted: by their numbers at any later time or the same, by their values at a later one."""
        import numpy as np
        data, made = entry.data_file, []
        for other in [*self._deletes.get(self._place(data), {}).values(), *self._deletes.get(None, {}).values()]:
            what = other.data_file
            if what.content == _POSITIONS and (other.sequence_number or 0) >= (entry.sequence_number or 0):
                made.append(self._read(what).get(data.file_path, np.zeros(0, np.int64)))
            elif what.content == _EQUALITY and (other.sequence_number or 0) > (entry.sequence_number or 0):
                made.append(self._equal(what, data, opened, own))
        gone = np.unique(np.concatenate(made)) if made else np.zeros(0, np.int64)
        if len(gone) and not 0 <= gone[0] <= gone[-1] < opened.metadata.num_rows:
            raise DatasetError(f"the delete files of {file} are damaged: of its {opened.metadata.num_rows} rows they delete {gone[0]} to {gone[-1]}")
        return gone if len(gone) else None

    def _read(self, what):
        """Of a delete file, once: {path: rows' numbers}, or [{number: column}] of a table of values."""
        import pyarrow.parquet
        if what.file_path not in self._deleted:
            path = path_of(what.file_path)
            try:
                if what.file_format == "PUFFIN":
                    made = deleted.of_puffin(path, self._rows)
                else:
                    with pyarrow.parquet.ParquetFile(urls.opened(path)) as opened:
                        made = _positions(opened.read(columns=["file_path", "pos"])) if what.content == _POSITIONS else self._values(opened, what)
            except (OSError, KeyError, ValueError) as why:
                raise DatasetError(f"{path}, which deletes rows of {self.name}, cannot be read: {why}") from None
            self._deleted[what.file_path] = made
        return self._deleted[what.file_path]

    def _rows(self, path):
        """How many a file has by the manifests."""
        return self._counts.get(path)

    def _values(self, opened, what):
        own = {id_of(field): field.name for field in opened.schema_arrow}
        return {number: opened.read(columns=[own[number]]).column(0).cast(self._fields[number].type) for number in what.equality_ids}

    def _equal(self, what, data, opened, own):
        """Rows that have the values of one of a table's rows, where null is null."""
        import numpy as np
        import pyarrow as pa
        keys, made, first = self._read(what), [np.zeros(0, np.int64)], 0
        for group in range(opened.metadata.num_row_groups):
            count = opened.metadata.row_group(group).num_rows
            table = opened.read_row_group(group, columns=[own[number] for number in keys if number in own])
            values = [table.column(own[number]).cast(self._fields[number].type) if number in own
                      else pa.chunked_array([pa.repeat(self._same(self._fields[number], number, data), count)]) for number in keys]
            made.append(np.flatnonzero(_is_in(values, list(keys.values()))) + first)
            first += count
        return np.concatenate(made)


def _positions(table):
    """{path: numbers}."""
    import numpy as np
    paths, numbers = table.column("file_path").dictionary_encode().combine_chunks(), table.column("pos")
    if paths.null_count or numbers.null_count:
        raise ValueError("a path or a number of a row is missing")
    codes, numbers = paths.indices.to_numpy(), numbers.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(paths.dictionary)))
    return dict(zip(paths.dictionary.to_pylist(), np.split(numbers[order], ends[:-1]) if len(ends) else ()))


def _is_in(values, keys):
    """Which rows of some columns are among those of others, null as a value."""
    import numpy as np
    import pyarrow.compute as pc
    codes, some = np.zeros(len(keys[0]), np.int64), np.zeros(len(values[0]), np.int64)
    is_in = np.full(len(some), len(codes) > 0)
    if not len(codes):
        return is_in
    for value, key in zip(values, keys):
        known = key.unique()
        found = pc.fill_null(pc.index_in(value, value_set=known), -1).to_numpy()
        # Pairs of what was found so far and of this, numbered anew among those of the keys.
        pairs, codes = np.unique(codes * len(known) + pc.index_in(key, value_set=known).to_numpy(), return_inverse=True)
        some = some * len(known) + found
        at = np.searchsorted(pairs, some).clip(max=len(pairs) - 1)
        is_in &= (found >= 0) & (pairs[at] == some)
        codes, some = codes.reshape(-1), at
    return is_in
