# SPDX-License-Identifier: Apache-2.0
"""Databases of ASE: from_ase(). Structures of atoms in SQLite (.db), and in LMDB as fairchem writes them (.aselmdb), are read without ASE."""

import contextlib
import json
import os
import sqlite3
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence

from ..columns import Over
from ..errors import ArgumentError, DatasetError, Error, TransformError, needs
from ..sources.stores import PerProcess
from ..sources.tables import files_of, stamp_of, unchanged
from ..wrapped import Wrapped, wrap

_SUFFIXES = (".db", ".aselmdb", ".lmdb")
_SQLITE = b"SQLite format 3\0"
# Of each structure, and of each atom: what is behind the structures or atoms.
_FIXED = {"cell": (3, 3), "pbc": (3,), "energy": (), "free_energy": (), "charge": (), "magmom": (), "stress": (6,), "dipole": (3,)}
_OF_ATOMS = {"numbers": (), "tags": (), "positions": (3,), "forces": (3,), "momenta": (3,), "masses": (), "charges": (), "magmoms": (), "initial_charges": (),
             "initial_magmoms": ()}
_WHOLE = ("numbers", "tags")
_USUAL, _IF_THERE = ("numbers", "positions", "cell", "pbc"), ("energy", "forces")
_MOST_TEXT = 64 << 20       # bytes of a structure, unpacked


def _array_of(value, dtype=None):
    """Numbers of JSON: nested lists, or as ase.io.jsonio writes an array."""
    import numpy as np
    if isinstance(value, dict) and isinstance(value.get("__ndarray__"), list) and len(value["__ndarray__"]) == 3:
        shape, kind, numbers = value["__ndarray__"]
        array = np.asarray(numbers, dtype or np.dtype(str(kind))).reshape(shape)
    else:
        array = np.asarray(value, dtype)
    if array.dtype.kind not in "biuf":
        raise ValueError("no numbers")
    return array


@contextlib.contextmanager
def _read(what):
    """Where values are made of what a file has: whatever else that is than ASE writes."""
    try:
        yield
    except Error:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, zlib.error) as why:
        raise DatasetError(f"{what} is damaged: {type(why).__name__}: {why}") from None


def _below(value, path):
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


# ---- SQLite ----


class SQLiteFile:
    """Structures of a .db, by their numbers in it."""

    def __init__(self, path):
        self.path = path
        self._connection = sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1", uri=True, check_same_thread=False)

    def close(self):
        self._connection.close()

    def sizes(self, most):
        """The structures' numbers, and how many atoms one has at most."""
        ids, lengths = [], 0
        for number, length in self._asked("SELECT id, length(numbers) FROM systems ORDER BY id"):     # of a blob the length is in the head of its row
            if not isinstance(number, int):
                raise DatasetError(f"{self.path} is no database of ASE that can be read: a structure has the id {number!r}")
            ids.append(number)
            lengths = max(lengths, length or 0)
        return ids, lengths // 4 if most is None else most

    def _asked(self, query, values=()):
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as why:
            raise DatasetError(f"{self.path} is no database of ASE that can be read: {why}") from None

    def rows(self, ids, names):
        """{number: {column: value}}, as they are stored."""
        columns = [name for name in dict.fromkeys(name.partition(".")[0] for name in ("numbers", *names)) if name in _FIXED or name in _OF_ATOMS or name == "data"]
        if any(_is_pair(name) for name in names):
            columns.append("key_value_pairs")
        found = self._asked(f"SELECT id, {', '.join(columns)} FROM systems WHERE id IN ({', '.join('?' * len(ids))})", ids)
        return {number: dict(zip(columns, values)) for number, *values in found}

    def value(self, row, name):
        """An array, or a number or text; None: it is not there."""
        import numpy as np
        if _is_pair(name):
            return json.loads(row["key_value_pairs"] or "{}").get(name)
        if name.startswith("data."):
            return self._of_data(row["data"], name.split(".")[1:])
        value = row[name]
        if value is None or not isinstance(value, bytes):
            return value if name != "pbc" or value is None else np.array([value >> axis & 1 for axis in range(3)], bool)
        array = np.frombuffer(value, "<i4" if name in _WHOLE else "<f8")
        return array.reshape(_FIXED[name]) if name in _FIXED else array.reshape(-1, *_OF_ATOMS[name])

    @staticmethod
    def _of_data(data, path):
        """Of the column data: JSON, or JSON behind the arrays that it names."""
        import numpy as np
        if not isinstance(data, bytes):
            return _below(json.loads(data), path) if data else None
        begin = int.from_bytes(data[:8], "little")
        value = _below(json.loads(data[begin:]), path)
        if not isinstance(value, dict) or "__ndarray__" not in value:
            return value
        shape, kind, at = value["__ndarray__"]
        return np.frombuffer(data[:begin], np.dtype(str(kind)).newbyteorder("<"), int(np.prod(shape, dtype=np.int64)), at).reshape(shape)


def _is_pair(name):
    return name not in _FIXED and name not in _OF_ATOMS and not name.startswith("data.")


# ---- LMDB ----


class LMDBFile:
    """Structures of an .aselmdb: under each number deflated JSON."""

    def __init__(self, path):
        lmdb = needs("lmdb", "oneaccess.from_ase()")
        self.path = path
        try:
            self._environment = lmdb.open(path, subdir=False, readonly=True, lock=False, readahead=False)
        except lmdb.Error as why:
            raise DatasetError(f"{path} is no LMDB environment that can be read: {why}") from None

    def close(self):
        self._environment.close()

    def sizes(self, most):
        with self._environment.begin() as transaction:
            ids = sorted(int(key) for key in transaction.cursor().iternext(keys=True, values=False) if key.isdigit() and len(key) < 19)
        most = _most_of(os.path.join(os.path.dirname(self.path), "metadata.npz")) if most is None else most
        if most is None:
            most = max((self._atoms(number, data) for number, data in self._values(ids)), default=0)
        return ids, most

    def _atoms(self, number, data):
        with _read(f"structure {number} of {self.path}"):
            return len(_array_of(self._row(number, data)["numbers"]))

    def _values(self, ids):
        for number in ids:
            with self._environment.begin() as transaction:
                data = transaction.get(b"%d" % number)
            if data is not None:
                yield number, data

    def _row(self, number, data):
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(data, _MOST_TEXT)
        row = json.loads(text) if unpacking.eof else None
        if not isinstance(row, dict):
            raise DatasetError(f"structure {number} of {self.path} is damaged, or has more than {_MOST_TEXT >> 20} MiB")
        return row

    def rows(self, ids, names):
        made = {}
        for number, data in self._values(ids):
            with _read(f"structure {number} of {self.path}"):
                made[number] = self._row(number, data)
        return made

    @staticmethod
    def value(row, name):
        import numpy as np
        if name.startswith("data."):
            value = _below(row, name.split("."))
            return _array_of(value) if isinstance(value, (list, dict)) else value
        if _is_pair(name):
            return _below(row, ["key_value_pairs", name])
        value = row.get(name)
        if value is None or name in _FIXED and not _FIXED[name]:
            return value
        return _array_of(value, bool if name == "pbc" else np.int64 if name in _WHOLE else np.float64)


def _most_of(path):
    """By what fairchem keeps beside the files; None: it says nothing."""
    import numpy as np
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
            return int(found["natoms"].max())
    except (OSError, ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError, zipfile.BadZipFile, zlib.error):
        return None


# ---- samples ----


class Structures(PerProcess):
    """Structures of several files as dicts. most: atoms that one has."""

    def __init__(self, files, columns, atoms, dtype):
        import numpy as np
        self.files = [(file, stamp_of(file)) for file in files]
        self.dtype = dtype
        opened = self.opened()
        try:
            ids, most = zip(*(file.sizes(atoms) for file in opened))
            self.ids, self.starts = np.concatenate([np.asarray(each, np.int64) for each in ids]), np.concatenate([[0], np.cumsum([len(each) for each in ids])])
            self.most, self.fields = max(1, *most), columns or self._usual()
        finally:
            self._at = None     # an environment of LMDB is open but once in a process
            for file in opened:
                file.close()

    def open(self):
        made = []
        for file, stamp in self.files:
            unchanged(file, stamp)
            made.append(_opened(file))
        return made

    def _usual(self):
        """What the first structure has."""
        names = [*_USUAL, *_IF_THERE]
        if not len(self.ids):
            return {name: name for name in _USUAL}
        number, file, row = self._rows([0], names)[0]
        with _read(f"structure {number} of {file.path}"):
            return {name: name for name in names if name in _USUAL or file.value(row, name) is not None}

    def __len__(self):
        return len(self.ids)

    def _rows(self, indices, names):
        """(number, file, row) of each sample."""
        import numpy as np
        at, made = np.searchsorted(self.starts, indices, "right") - 1, [None] * len(indices)
        for number in np.unique(at).tolist():
            file, which = self.opened()[number], np.flatnonzero(at == number).tolist()
            ids = [int(self.ids[indices[place]]) for place in which]
            rows = file.rows(ids, names)
            for place, each in zip(which, ids):
                if each not in rows:
                    raise DatasetError(f"structure {each} of {file.path} is not there any more")
                made[place] = each, file, rows[each]
        return made

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        return [self._sample(*row) for row in self._rows(indices, [*self.fields.values()])]

    def _sample(self, number, file, row):
        where, sample = f"structure {number} of {file.path}", {}
        with _read(where):
            count = len(file.value(row, "numbers"))
            for field, name in self.fields.items():
                value = file.value(row, name)
                if value is None:
                    raise TransformError(f"{where} has no {name}: leave it out by columns=, or such structures by ids= of the Loader")
                sample[field] = self._checked(where, name, value, count)
        return sample

    def _checked(self, where, name, value, count):
        import numpy as np
        if isinstance(value, (str, bool, int)) and not (name in _FIXED):
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TransformError(f"{where}: {name} is no array of numbers: leave it out, by columns=")
        if name in _OF_ATOMS and array.shape != (count, *_OF_ATOMS[name]) or name in _FIXED and array.shape != _FIXED[name]:
            raise DatasetError(f"{where} is damaged: {name} has the shape {array.shape}, of {count} atoms")
        return array.astype(self.dtype if array.dtype.kind == "f" or name in ("energy", "free_energy", "charge", "magmom") else np.int64 if array.dtype.kind in "iu" else np.uint8)


def _opened(path):
    with open(path, "rb") as file:
        head = file.read(len(_SQLITE))
    return SQLiteFile(path) if head == _SQLITE else LMDBFile(path)


class Transformed(Over):
    """Samples as a function makes them of others."""

    def __init__(self, dataset, function):
        super().__init__(dataset)
        self.function = function

    def made(self, sample, index):
        return self.function(sample)


def from_ase(paths: str | os.PathLike | Sequence, columns: Sequence[str] | Mapping[str, str] | None = None, *, atoms: int | None = None, dtype: str = "float64",
             transform: Callable[[dict], dict] | None = None, random: bool | None = None, ragged: dict[str, int] | None = None, workers: int | None = None,
             name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Structures of atoms in databases of ASE, for Loader: SQLite (``.db``), and LMDB as fairchem's data sets have it (``.aselmdb``; needs lmdb). ASE is not needed.

        data = oa.from_ase("train.db", {"z": "numbers", "pos": "positions", "y": "energy", "forces": "forces"}, dtype="float32")
        for batch in oa.Loader(data, batch_size=32):
            graph = oa.graphs(batch)            # z [atoms], pos [atoms, 3], y [32], forces [atoms, 3], batch, ptr

    paths: a file, a folder of files, a pattern, or a list. Structures come in the order of their ids in a file.
    columns: names, or {field of a batch: name}. Of each atom, ragged: numbers, positions, forces, tags, momenta, masses, charges, magmoms, initial_charges,
        initial_magmoms. Of each structure: cell [3, 3], pbc [3] (uint8), energy, free_energy, charge, magmom, stress [6], dipole [3]; a key of key_value_pairs, a number or
        text; and "data.NAME", an array or number, as NAME. Default: numbers, positions, cell and pbc, and energy and forces if the first structure has them. A structure that has
        no such value is a bad sample.
    atoms: the most atoms that a structure has. Default: what there is in the files. A .db says it at once; of .aselmdb files each structure is read once for it, unless
        fairchem's metadata.npz lies beside them.
    dtype: of what is not whole: "float64", as ASE has it, or "float32". Whole numbers are int64.
    transform: a function that makes a dict of arrays of one, in the pool's processes, such as one that adds edge_index [edges, 2] by a radius.
    random: whether that draws random numbers. Default: False without transform, else True.
    ragged: {field: most}: of what transform adds, and of "data.NAME" that differ in length, as in wrap().

    The other arguments are those of wrap().
    """
    needs("numpy", "oneaccess.from_ase()")
    if dtype not in ("float32", "float64"):
        raise ArgumentError(f"dtype is {dtype!r}: \"float64\" or \"float32\"")
    if atoms is not None and (isinstance(atoms, bool) or not isinstance(atoms, int) or atoms < 1):
        raise ArgumentError(f"atoms is {atoms!r}: the most atoms that a structure has")
    if transform is not None and not callable(transform):
        raise ArgumentError(f"transform is a {type(transform).__name__}: give a function of a sample")
    columns = dict(columns) if isinstance(columns, Mapping) else None if columns is None else {each.removeprefix("data."): each for each in ([columns] if isinstance(columns, str) else columns)}
    rows = Structures(files_of(paths, _SUFFIXES, "ASE", "from_ase()"), columns, atoms, dtype)
    most = {field: rows.most for field, column in rows.fields.items() if column in _OF_ATOMS}
    return wrap(rows if transform is None else Transformed(rows, transform), name=name, version=version, workers=workers, timeout=timeout,
                random=transform is not None if random is None else random, room=room, keep=keep, ragged={**most, **(ragged or {})})
