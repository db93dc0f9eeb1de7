# SPDX-License-Identifier: Apache-2.0
"""Tables that are many files and a record of which of them are theirs: Delta Lake, Iceberg and Lance. Delta's log is read here; the other
two by their packages. Files of Delta Lake and Iceberg are then read as any Parquet."""

import json
import os
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any

from . import urls
from .columns import named
from .errors import ArgumentError, DatasetError, not_there
from .stores import PerProcess
from .tables import CACHE, ParquetRows, chosen_of, files_of, needs, of_parquet, size_of, values_of
from .where import ROWS, Where, numbers_in, numbers_of
from .wrapped import Wrapped

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"}   # which say by themselves where they are in use
_NUMBERS = {**dict.fromkeys(("byte", "short", "integer", "long"), int), **dict.fromkeys(("float", "double"), float),
            "boolean": lambda text: text == "true"}
_ACTIONS = ["add", "remove", "metaData", "protocol", "sidecar"]


# ---- Delta Lake ----


class DeltaLog:
    """A version of a table: its files, and the values of the columns that stand in their names."""

    def __init__(self, table, version=None):
        self.table = table if urls.is_url(table) else urls.local(table, "from_delta()")
        commits, checkpoints = self._list()
        if not commits and not checkpoints:
            raise not_there(f"{self.table} is no table of Delta Lake: there is no log in its _delta_log", self.table)
        last = max([*commits, *checkpoints])
        self.version = last if version is None else version
        if isinstance(self.version, bool) or not isinstance(self.version, int) or not 0 <= self.version <= last:
            raise ArgumentError(f"version={version!r}: {self.table} has versions up to {last}")
        files, self.metadata, protocol = {}, None, None    # a file with other deletion vectors is another one
        for action in self._actions(commits, checkpoints):
            if action.get("sidecar"):
                raise DatasetError(f"{self.table} has a checkpoint with sidecars, which are not read: write the table without the feature v2Checkpoint")
            if add := action.get("add"):
                files[add["path"], _vector_of(add)] = add.get("partitionValues") or {}
            elif remove := action.get("remove"):
                files.pop((remove["path"], _vector_of(remove)), None)
            self.metadata, protocol = action.get("metaData") or self.metadata, action.get("protocol") or protocol
        self._refuse(protocol or {}, any(vector for _, vector in files))
        self.files = {path: values for (path, _), values in files.items()}

    def _list(self):
        """{version: file} of commits, {version: files} of whole checkpoints."""
        plain, mark, query = self.table.partition("?") if urls.is_url(self.table) else (self.table, "", "")
        log, commits, checkpoints = f"{plain.rstrip('/')}/_delta_log{mark}{query}", {}, {}
        if not urls.is_url(log) and not os.path.isdir(log):
            return {}, {}
        for file in (urls.files if urls.is_url(log) else files_of)(log, (".json", ".parquet"), "Delta Lake"):
            name = file.removesuffix(mark + query).rpartition("/")[2]
            if found := _COMMIT.fullmatch(name):
                commits[int(found[1])] = file
            elif found := _CHECKPOINT.fullmatch(name):
                checkpoints.setdefault((int(found[1]), int(found[3] or 1)), []).append(file)
        return commits, {version: sorted(files) for (version, parts), files in checkpoints.items() if len(files) == parts}

    def _actions(self, commits, checkpoints):
        """From the last checkpoint on, in order."""
        from_ = max((version for version in checkpoints if version <= self.version), default=-1)
        for file in checkpoints.get(from_, ()):
            import pyarrow.parquet
            with pyarrow.parquet.ParquetFile(urls.opened(file)) as opened:
                for batch in opened.iter_batches(columns=[name for name in _ACTIONS if name in opened.schema_arrow.names]):
                    yield from batch.to_pylist(maps_as_pydicts="lossy")
        for version in range(from_ + 1, self.version + 1):
            if version not in commits:
                raise DatasetError(f"the log of {self.table} lacks version {version}, and no checkpoint has it: version {self.version} cannot be had any more")
            for line in _bytes_of(commits[version]).splitlines():
                try:
                    action = json.loads(line)
                except ValueError as why:
                    raise DatasetError(f"{commits[version]} is damaged: {why}") from None
                if isinstance(action, dict):
                    yield action

    def _refuse(self, protocol, has_deleted):
        """What would be read wrongly."""
        if self.metadata is None:
            raise DatasetError(f"the log of {self.table} has no schema: it is damaged")
        unknown = set(protocol.get("readerFeatures") or ()) - _FEATURES
        if unknown or (protocol.get("minReaderVersion") or 1) > 3:
            raise DatasetError(f"{self.table} needs what is not read here: {', '.join(sorted(unknown)) or 'a newer reader'}; write a copy without it")
        if (mode := (self.metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")) != "none":
            raise DatasetError(f"{self.table} has column mapping (mode {mode}): its files have other names of columns than the table, which is not read here;"
                               " write a copy without it")
        if has_deleted:
            raise DatasetError(f"{self.table} has deletion vectors: rows of its files are deleted. Have them written anew, as by"
                               " REORG TABLE ... APPLY (PURGE), or by a compaction, and give the version that comes of it")

    def paths(self):
        """Of its files, in the order of their names, so that a checkpoint changes nothing."""
        return [self._path(path) for path in sorted(self.files)]

    def _path(self, path):
        """They are written as in URLs, and relative, or not."""
        if urls.is_url(path):
            return path
        if urls.is_url(self.table) and not path.startswith(("/", "file:")):
            plain, mark, query = self.table.partition("?")
            return f"{plain.rstrip('/')}/{path}{mark}{query}"
        name = urllib.parse.unquote(path)
        return os.path.join(self.table, urls.path_of(name) if name.startswith("file://") else name.removeprefix("file:"))

    def beside(self):
        """{column: (kind, the value of each file)} of those that stand in the files' names."""
        try:
            types = {field["name"]: field["type"] for field in json.loads(self.metadata["schemaString"])["fields"]}
            made = {}
            for name in self.metadata.get("partitionColumns") or ():
                make = _NUMBERS.get(types[name], str)
                texts = [self.files[path].get(name) for path in sorted(self.files)]
                made[name] = "text" if make is str else "number", [make(text) if text else None for text in texts]
            return made
        except (ValueError, KeyError, TypeError) as why:
            raise DatasetError(f"the schema in the log of {self.table} is damaged: {why!r}") from None


def _vector_of(action):
    vector = action.get("deletionVector") or {}
    return tuple(vector.get(key) for key in ("storageType", "pathOrInlineDv", "offset")) if vector else None


def _bytes_of(file):
    with urls.opened(file) if urls.is_url(file) else open(file, "rb") as opened:
        return opened.read()


def from_delta(table: str | os.PathLike, columns: Sequence[str] | None = None, version: int | None = None, *, cache: int | str = CACHE,
               where: Any = None, **options: Any) -> Wrapped:
    """Rows of a table of Delta Lake, for Loader. Needs pyarrow, and no other package.

        loader = oa.Loader(oa.from_delta("/data/sales", ["amount", "store", "day"]), batch_size=256)

    table: its folder, or a URL that pyarrow opens; see from_parquet().
    columns: the columns of a batch, also those by which the table is partitioned. Default: as of from_parquet().
    version: the table's version; default: the newest one, which the data set then keeps.
    where, cache and options: see from_parquet(); where may be about columns by which the table is partitioned, too. Rows come in the
        order of the files' names.

    Tables with deletion vectors or column mapping are refused, and files that lack a column which was added later.
    """
    needs("pyarrow.parquet", "oneaccess.from_delta()")
    log = DeltaLog(urls.path_of(table), version)
    return _of_files(log.table, log.paths(), columns, cache, {**options, "version": str(log.version)}, beside=log.beside(), where=where)


def _of_files(table, files, columns, cache, options, **more):
    if not files:
        raise DatasetError(f"{table} has no row")
    return of_parquet(ParquetRows(files, named(columns), size_of(cache, "cache"), **more), **options)


# ---- Iceberg ----


def from_iceberg(table: Any, columns: Sequence[str] | None = None, snapshot: int | None = None, *, cache: int | str = CACHE,
                 where: Any = None, **options: Any) -> Wrapped:
    """Rows of a table of Iceberg, for Loader. Needs pyiceberg and pyarrow.

        loader = oa.Loader(oa.from_iceberg(catalog.load_table("shop.sales"), ["amount", "store"]), batch_size=256)
        loader = oa.Loader(oa.from_iceberg("/data/sales/metadata/00004-....metadata.json"), batch_size=256)     # the same

    table: a Table of pyiceberg, or the path or URL of a metadata.json.
    columns: the columns of a batch. Default: as of from_parquet().
    snapshot: the number of one; default: the current one, which the data set then keeps.
    where, cache and options: see from_parquet(). The files are read by pyarrow with its own credentials, not those of a catalog; rows come in the
        order of the files' names.

    Tables with delete files are refused, and columns that were renamed or added after a file was written.
    """
    needs("pyiceberg", "oneaccess.from_iceberg()", "pyiceberg pyarrow")
    if isinstance(table, (str, os.PathLike)):
        from pyiceberg.table import StaticTable
        try:
            table = StaticTable.from_metadata(urls.path_of(table))
        except (OSError, ValueError) as why:
            raise DatasetError(f"{os.fspath(table)} is no metadata.json of Iceberg that can be read: {why}") from None
    name = table.metadata.location
    if snapshot is not None and table.snapshot_by_id(snapshot) is None:
        raise ArgumentError(f"snapshot={snapshot!r}: {name} has {', '.join(str(one.snapshot_id) for one in table.metadata.snapshots) or 'none'}")
    scan = table.scan(snapshot_id=snapshot)
    tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path)
    if any(task.delete_files for task in tasks):
        raise DatasetError(f"{name} has delete files: rows of its files are deleted. Have them written anew, as by the procedure"
                           " rewrite_data_files, and give the snapshot that comes of it")
    if other := next((task.file for task in tasks if task.file.file_format != "PARQUET"), None):
        raise DatasetError(f"{other.file_path} is no Parquet file, and others are not read")
    ids = {field.name: field.field_id for field in scan.projection().fields}
    options["version"] = str(scan.snapshot().snapshot_id) if tasks else ""
    return _of_files(name, [urls.path_of(task.file.file_path) for task in tasks], columns, cache, options, ids=ids, where=where)


# ---- Lance ----


class LanceRows(PerProcess):
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

    def __len__(self):
        return self.count

    def placed(self):
        """The numbers in the whole data set of the rows that are there; None: all."""
        return self.chosen

    def rows_of(self, ids):
        """The numbers in the whole data set of samples by their numbers, as batch.ids has them: an array of int64."""
        return numbers_in(self.chosen, self.count, ids)

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
