# SPDX-License-Identifier: Apache-2.0
"""A table of Iceberg, as pyiceberg reads its metadata: its files, and in which columns of them its own are. Columns are told by their numbers
(field ids), so they may have been renamed, moved, made wider or added after a file was written."""

import re
from typing import Any

from . import urls
from .errors import ArgumentError, DatasetError
from .tables import Files, Part

ID = b"PARQUET:field_id"
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
        self.tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path)
        if any(task.delete_files for task in self.tasks):
            raise DatasetError(f"{self.name} has delete files: rows of its files are deleted. Have them written anew, as by the procedure"
                               " rewrite_data_files, and give the snapshot that comes of it")
        if other := next((task.file for task in self.tasks if task.file.file_format != "PARQUET"), None):
            raise DatasetError(f"{other.file_path} is no Parquet file, and others are not read")
        self.version = str(scan.snapshot().snapshot_id) if self.tasks else ""
        self.schema, self._mapping = scan.projection().as_arrow(), table.name_mapping()
        self._defaults = {field.field_id: field.initial_default for field in scan.projection().fields}

    def paths(self) -> list[str]:
        return [path_of(task.file.file_path) for task in self.tasks]

    def part(self, at: int, file: str, opened: Any) -> Part:
        own, names, same = self._own(opened.schema_arrow, file), {}, {}
        for field in self.schema:
            number = id_of(field)
            if number in own:
                names[field.name] = own[number]
            else:
                same[field.name] = self._same(field, number, self.tasks[at].file)
        return Part(names, same)

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
        for at, part in enumerate(self.table.specs()[file.spec_id].fields):
            if part.source_id == number and str(part.transform) == "identity" and file.partition[at] is not None:
                value = file.partition[at]
        try:
            return pa.scalar(value, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as why:
            raise DatasetError(f"column {field.name} of {self.name} is {value!r} in {file.file_path}, which is no {field.type}: {why}") from None
