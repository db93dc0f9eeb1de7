# SPDX-License-Identifier: Apache-2.0
"""Tables that are many files and a record of which of them are theirs: Delta Lake, Iceberg and Lance. Delta's log is read here; the other
two by their packages. Files of Delta Lake and Iceberg are then read as any Parquet."""

import json
import os
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from .. import urls
from ..columns import named
from ..errors import ArgumentError, DatasetError, not_there
from ..wrapped import Wrapped
from . import deleted
from .iceberg import IcebergTable, id_of
from .stores import PerProcess
from .tables import CACHE, Files, Part, chosen_of, files_of, needs, of_parquet, rows_of, size_of, values_of
from .where import ROWS, Chosen, Where, numbers_of

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})\.parquet|\.([0-9A-Fa-f-]{36})\.(?:parquet|json)|\.parquet)")
_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck"}
_NUMBERS = {**dict.fromkeys(("byte", "short", "integer", "long"), int), **dict.fromkeys(("float", "double"), float),
            "boolean": lambda text: text == "true"}
_TYPES = {"string": "string", "long": "int64", "integer": "int32", "short": "int16", "byte": "int8", "float": "float32", "double": "float64",
          "boolean": "bool", "binary": "binary", "date": "date32"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ACTIONS = ["add", "remove", "metaData", "protocol", "sidecar"]
_MAPS = (("add", "partitionValues"), ("metaData", "configuration"))    # which Parquet has as pairs


# ---- Delta Lake ----


class DeltaLog(Files):
    """A version of a table: its files, each with the values of the columns that stand in its name and its deletion vector."""

    def __init__(self, table, version=None):
        self.table = table if urls.is_url(table) else urls.local(table, "from_delta()")
        commits, compacted, checkpoints = self._list()
        if not commits and not checkpoints:
            raise not_there(f"{self.table} is no table of Delta Lake: there is no log in its _delta_log", self.table)
        last = max([*commits, *checkpoints, *(end for files in compacted.values() for end, _ in files)])
        self.version = last if version is None else version
        if isinstance(self.version, bool) or not isinstance(self.version, int) or not 0 <= self.version <= last:
            raise ArgumentError(f"version={version!r}: {self.table} has versions up to {last}")
        try:
            self._read(self._actions(commits, compacted, checkpoints))
        except (KeyError, TypeError, AttributeError) as why:
            raise DatasetError(f"the log of {self.table} is damaged: {why!r}") from None
        self.schema = self._schema()

    def _read(self, actions):
        files, self.metadata, protocol = {}, None, None    # a file with another deletion vector is another one
        for action in actions:
            if add := action.get("add"):
                files[_key(add)] = add.get("partitionValues") or {}, add.get("deletionVector")
            elif remove := action.get("remove"):
                files.pop(_key(remove), None)
            self.metadata, protocol = action.get("metaData") or self.metadata, action.get("protocol") or protocol
        self._refuse(protocol or {})
        if len({path for path, _ in files}) < len(files):
            raise DatasetError(f"the log of {self.table} is damaged: a file is in it twice, with other rows deleted")
        self.files = [(path, *more) for (path, _), more in sorted(files.items(), key=lambda file: file[0][0])]

    def _list(self):
        """{version: file} of commits, {version: [(last version, file)]} of such that are many commits, {version: files} of whole checkpoints."""
        plain, mark, query = self.table.partition("?") if urls.is_url(self.table) else (self.table, "", "")
        log, commits, compacted, checkpoints = f"{plain.rstrip('/')}/_delta_log{mark}{query}", {}, {}, {}
        if not urls.is_url(log) and not os.path.isdir(log):
            return {}, {}, {}
        for file in (urls.files if urls.is_url(log) else files_of)(log, (".json", ".parquet"), "Delta Lake"):
            name = file.removesuffix(mark + query).rpartition("/")[2]
            if found := _COMMIT.fullmatch(name):
                commits[int(found[1])] = file
            elif found := _COMPACTED.fullmatch(name):
                compacted.setdefault(int(found[1]), []).append((int(found[2]), file))
            elif found := _CHECKPOINT.fullmatch(name):
                checkpoints.setdefault((int(found[1]), int(found[3] or 1), found[4] or ""), []).append(file)
        return commits, compacted, {version: sorted(checkpoints[version, parts, uuid]) for version, parts, uuid in sorted(checkpoints)
                                    if len(checkpoints[version, parts, uuid]) == parts}

    def _actions(self, commits, compacted, checkpoints):
        """From the last checkpoint on, in order."""
        version = max((version for version in checkpoints if version <= self.version), default=-1)
        for file in checkpoints.get(version, ()):
            for action in self._lines(file) if urls.suffixed(file, ".json") else self._rows(file):
                # Its files lie in one folder, also where the log names them as a whole.
                yield from [action] if not action.get("sidecar") else self._rows(self._path(f"_delta_log/_sidecars/{action['sidecar']['path'].rpartition('/')[2]}"))
        while (version := version + 1) <= self.version:
            end, file = max(((end, file) for end, file in compacted.get(version, ()) if version <= end <= self.version), default=(version, commits.get(version)))
            if file is None:
                raise DatasetError(f"the log of {self.table} lacks version {version}, and no checkpoint has it: version {self.version} cannot be had any more")
            yield from self._lines(file)
            version = end

    @staticmethod
    def _lines(file):
        for line in _bytes_of(file).splitlines():
            try:
                action = json.loads(line)
            except (ValueError, RecursionError) as why:
                raise DatasetError(f"{file} is damaged: {why}") from None
            if isinstance(action, dict):
                yield action

    @staticmethod
    def _rows(file):
        import pyarrow.parquet
        try:
            with pyarrow.parquet.ParquetFile(urls.opened(file)) as opened:
                for batch in opened.iter_batches(columns=[name for name in _ACTIONS if name in opened.schema_arrow.names]):
                    for action in batch.to_pylist():
                        for part, pairs in _MAPS:
                            if action.get(part):
                                action[part][pairs] = dict(action[part].get(pairs) or ())
                        yield action
        except (OSError, ValueError) as why:
            raise DatasetError(f"{file}, of a checkpoint, cannot be read: {why}") from None

    def _refuse(self, protocol):
        """What would be read wrongly."""
        if self.metadata is None:
            raise DatasetError(f"the log of {self.table} has no schema: it is damaged")
        unknown = set(protocol.get("readerFeatures") or ()) - _FEATURES
        if unknown or (protocol.get("minReaderVersion") or 1) > 3:
            raise DatasetError(f"{self.table} needs what is not read here: {', '.join(sorted(unknown)) or 'a newer reader'}; write a copy without it")
        self.mode = (self.metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")
        if self.mode not in ("none", "name", "id"):
            raise DatasetError(f"{self.table} has column mapping of an unknown mode, {self.mode}")

    def paths(self):
        """Of its files, in the order of their names, so that a checkpoint changes nothing."""
        return [self._path(path) for path, _, _ in self.files]

    def _path(self, path):
        """They are written as in URLs, and relative, or not."""
        if urls.is_url(path):
            return path
        if urls.is_url(self.table) and not path.startswith(("/", "file:")):
            plain, mark, query = self.table.partition("?")
            return f"{plain.rstrip('/')}/{path}{mark}{query}"
        name = urllib.parse.unquote(path)
        return os.path.join(self.table, urls.path_of(name) if name.startswith("file://") else name.removeprefix("file:"))

    def _schema(self):
        """As Arrow has it. Columns by which the table is partitioned are numbers or texts."""
        import pyarrow as pa
        try:
            fields = json.loads(self.metadata["schemaString"])["fields"]
            types = {field["name"]: field["type"] for field in fields}
            if len(types) < len(fields):
                raise ValueError("two columns have one name")
            self.partitioned = {name: _NUMBERS.get(types[name], str) for name in self.metadata.get("partitionColumns") or ()}
            return pa.schema([field.with_type(pa.string()) if self.partitioned.get(field.name) is str else field
                              for field in (_field(field, self.mode) for field in fields)])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as why:
            raise DatasetError(f"the schema in the log of {self.table} is damaged: {why!r}") from None

    def _own(self, fields):
        """{key: name} of a file's columns."""
        return {str(id_of(field)).encode() if self.mode == "id" else field.name.encode(): field.name for field in fields if self.mode != "id" or id_of(field) is not None}

    def inner(self, opened, name, column):
        return self._own(opened.schema_arrow.field(name).type).get(self.schema.field(column).type.field("bytes").metadata[b"key"], "bytes")

    def part(self, at, file, opened):
        """Columns that it lacks were added later, and are null."""
        import pyarrow as pa
        _, values, vector = self.files[at]
        own = self._own(opened.schema_arrow)
        if not own:
            raise DatasetError(f"{file} does not say which columns of {self.table} its own are (no field ids): have it written anew")
        names = {field.name: own[field.metadata[b"key"]] for field in self.schema if field.metadata[b"key"] in own and field.name not in self.partitioned}
        try:
            same = {field.name: pa.scalar(self._value(field, values), field.type) for field in self.schema if field.name not in names}
        except (ValueError, TypeError, OverflowError, AttributeError, pa.ArrowException) as why:
            raise DatasetError(f"the log of {self.table} is damaged: of {file} it says {values} ({why})") from None
        return Part(names, same, deleted.of_delta(vector, self._path, opened.metadata.num_rows, file) if vector else None)

    def _value(self, field, values):
        """In the files' names."""
        make, text = self.partitioned.get(field.name), values.get(field.metadata[b"physical"].decode())
        return make(text) if make and text else None


def _field(field, mode):
    """A column as Arrow's. physical: what it is called in files; key: what tells it there from others, which may be its number."""
    import pyarrow as pa
    told = {} if mode == "none" else field["metadata"]
    physical = told.get("delta.columnMapping.physicalName", field["name"])
    return pa.field(field["name"], _arrow(field["type"], mode), metadata={"physical": physical, "key": str(told["delta.columnMapping.id"]) if mode == "id" else physical})


def _arrow(kind, mode):
    """A type of Delta Lake as Arrow's; null: another one, which has no place in a batch."""
    import pyarrow as pa
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            return pa.struct([_field(field, mode) for field in kind["fields"]])
        return pa.list_(_arrow(kind["elementType"], mode)) if kind["type"] == "array" else pa.map_(_arrow(kind["keyType"], mode), _arrow(kind["valueType"], mode))
    if kind in ("timestamp", "timestamp_ntz"):
        return pa.timestamp("us", "UTC" if kind == "timestamp" else None)
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    return pa.type_for_alias(_TYPES[kind]) if kind in _TYPES else pa.null()


def _key(action):
    """What tells a file of the log from others: its path, and which rows are deleted."""
    path, vector = action["path"], action.get("deletionVector")
    if not isinstance(path, str):
        raise TypeError(f"a path is {path!r}")
    return path, vector and tuple(vector.get(key) for key in ("storageType", "pathOrInlineDv", "offset"))


def _bytes_of(file):
    with urls.binary(file) as opened:
        return opened.read()


def from_delta(table: str | os.PathLike, columns: Sequence[str] | Mapping[str, Any] | None = None, version: int | None = None, *, cache: int | str = CACHE,
               where: Any = None, rows: int = 1, **options: Any) -> Wrapped:
    """Rows of a table of Delta Lake, for Loader. Needs pyarrow, and no other package.

        loader = oa.Loader(oa.from_delta("/data/sales", ["amount", "store", "day"]), batch_size=256)

    table: its folder, or a URL that pyarrow opens; see from_parquet().
    columns: the columns of a batch, also those by which the table is partitioned. Default: as of from_parquet().
    version: the table's version; default: the newest one, which the data set then keeps.
    where, rows, cache and options: see from_parquet(); where may be about columns by which the table is partitioned, too. Rows come in the
        order of the files' names.

    Rows that deletion vectors delete are not there, as rows that where leaves out: len(), batch.ids, orders and states are of the others. A vector
    that is damaged is a DatasetError. Columns are the table's, whatever files call them (column mapping); one that was added after a file was
    written is null there, and a null makes a bad sample. Numbers are as wide as the table's (type widening). Tables that need other features, such as
    variants, are refused.
    """
    needs("pyarrow.parquet", "oneaccess.from_delta()")
    log = DeltaLog(urls.path_of(table), version)
    return _of_files(log.table, log.paths(), columns, cache, {**options, "version": str(log.version)}, where, log, rows)


def _of_files(name, files, columns, cache, options, where, table, rows):
    if not files:
        raise DatasetError(f"{name} has no row")
    return of_parquet(rows_of(files, columns, size_of(cache, "cache"), where=where, table=table, rows=rows), **options)


# ---- Iceberg ----


def from_iceberg(table: Any, columns: Sequence[str] | Mapping[str, Any] | None = None, snapshot: int | None = None, *, cache: int | str = CACHE,
                 where: Any = None, rows: int = 1, **options: Any) -> Wrapped:
    """Rows of a table of Iceberg, for Loader. Needs pyiceberg and pyarrow.

        loader = oa.Loader(oa.from_iceberg(catalog.load_table("shop.sales"), ["amount", "store"]), batch_size=256)
        loader = oa.Loader(oa.from_iceberg("/data/sales/metadata/00004-....metadata.json"), batch_size=256)     # the same

    table: a Table of pyiceberg, or the path or URL of a metadata.json.
    columns: the columns of a batch. Default: as of from_parquet().
    snapshot: the number of one; default: the current one, which the data set then keeps.
    where, rows, cache and options: see from_parquet(). The files are read by pyarrow with its own credentials, not those of a catalog; rows come in the
        order of the files' names.

    Rows that are deleted (positional and equality deletes, deletion vectors) are not there, as rows that where leaves out: len(), batch.ids, orders
    and states are of the others. A delete file that is damaged is a DatasetError. Columns are told by their numbers (field ids), so they may have
    been renamed or moved, or have become wider. One that was added after a file was written has its default there, or what the table is
    partitioned by, or is null, and a null makes a bad sample.
    """
    needs("pyiceberg", "oneaccess.from_iceberg()", "pyiceberg pyarrow")
    if isinstance(table, (str, os.PathLike)):
        from pyiceberg.table import StaticTable
        try:
            table = StaticTable.from_metadata(urls.path_of(table))
        except (OSError, ValueError) as why:
            raise DatasetError(f"{os.fspath(table)} is no metadata.json of Iceberg that can be read: {why}") from None
    found = IcebergTable(table, snapshot)
    return _of_files(found.name, found.paths(), columns, cache, {**options, "version": found.version}, where, found, rows)


# ---- Lance ----


class LanceRows(Chosen, PerProcess):
    """Rows of a data set of Lance as dicts; any row can be read alone. where: which rows; the others are not there."""

    chosen = None

    def __init__(self, path, columns, version, where=None):
        self.path, self.version = path, version
        opened = self.open()
        self.columns, self.version, self.count = chosen_of(opened.schema, columns, path), opened.version, opened.count_rows()
        if where is not None:
            self._choose(opened, Where(where))

    def _choose(self, opened, where):
        import pyarrow as pa
        import numpy as np
        rows, at = [], 0
        for batch in opened.to_batches(columns=where.used(opened.schema, self.path), batch_size=ROWS, scan_in_order=True):
            rows.append(numbers_of(where.mask(pa.Table.from_batches([batch]), self.path), at))
            at += batch.num_rows
        self.chosen = np.concatenate([np.zeros(0, np.int64), *rows])
        self.count = len(self.chosen)
        if not self.count:
            raise where.nothing(at, self.path)

    def open(self):
        lance = needs("lance", "oneaccess.from_lance()", "pylance")
        try:
            return lance.dataset(self.path, version=self.version)
        except (OSError, ValueError) as why:
            raise DatasetError(f"{self.path} is no data set of Lance that can be read: {why}") from None

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        table = self.opened().take(list(indices) if self.chosen is None else self.rows_of(indices).tolist(), columns=list(self.columns))
        columns = {name: values_of(table.column(name), kind) for name, kind in self.columns.items()}
        return [{name: values(row) for name, values in columns.items()} for row in range(len(indices))]


def from_lance(path: str | os.PathLike, columns: Sequence[str] | None = None, version: int | None = None, *, where: Any = None,
               **options: Any) -> Wrapped:
    """Rows of a data set of Lance, for Loader. Needs pylance.

        loader = oa.Loader(oa.from_lance("/data/train.lance", ["image", "label"]), oa.imagenet_train(224), batch_size=256)

    path: its folder, or a URL that lance opens.
    columns: the columns of a batch; see from_parquet(). Images are bytes, in a column of binary.
    version: the data set's version; default: the newest one, which the data set then keeps.
    where: which rows; see from_parquet().
    options: pad, ragged, boxes, masks, images, exact, workers, name, timeout, room and keep, as of wrap().

    A row is read alone, so any order works.
    """
    needs("lance", "oneaccess.from_lance()", "pylance")
    path = urls.path_of(path)
    rows = LanceRows(path if urls.is_url(path) else os.path.abspath(path), named(columns), version, where)
    return of_parquet(rows, **{**options, "version": str(rows.version)})
