# SPDX-License-Identifier: Apache-2.0
"""HDF5 and LMDB as data sets for the pool (wrap()): files that each of its processes opens for itself, since neither library may go on
with what was opened before a fork."""

import array
import os
from collections.abc import Callable, Sequence

from . import urls
from .columns import Blocks, Pad
from .errors import ArgumentError, DatasetError, not_there
from .tables import needs, size_of, stamp_of, unchanged
from .wrapped import Wrapped, wrap

_CACHE = 64 << 20           # decoded chunks, of a process and an array


def _found(path):
    path = urls.local(path, "this function")
    if not os.path.exists(path):
        raise not_there(f"there is no {path}", path)
    return path


class PerProcess:
    """What each process opens for itself, at its first sample: self.opened()."""

    _at = None

    def opened(self):
        if self._at is None or self._at[0] != os.getpid():
            self._at = os.getpid(), self.open()
        return self._at[1]

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_at"}


# ---- HDF5 ----


class HDF5Rows(PerProcess):
    """Row i of several arrays of one file, as a dict. blocks: chunks, where rows share them and not all are kept."""

    def __init__(self, path, fields, cache):
        h5py = needs("h5py", "oneaccess.from_hdf5()")
        self.path, self.fields, self.cache, self.stamp = path, fields, cache, stamp_of(path)
        self.blocks = None
        try:
            opened = h5py.File(path, "r")
        except OSError as why:
            raise DatasetError(f"{path} is no HDF5 file that can be read: {why}") from None
        with opened as file:
            arrays = {name: self._array(h5py, file, key) for name, key in fields.items()}
            counts = {key: len(arrays[name]) for name, key in fields.items()}
            if len(set(counts.values())) != 1:
                raise DatasetError(f"the arrays of {path} have different lengths: {counts}")
            self.count = next(iter(counts.values()))
            for found in arrays.values():
                if found.chunks is not None and found.chunks[0] > 1:
                    self._see(found)

    def _array(self, h5py, file, key):
        found = file.get(key)
        if not isinstance(found, h5py.Dataset) or found.ndim < 1:
            names = []
            file.visititems(lambda name, one: names.append(name) if isinstance(one, h5py.Dataset) and one.ndim else None)
            raise ArgumentError(f"{self.path} has no array {key!r}; there are: {', '.join(names)}")
        return found

    def _see(self, found):
        """The array's rows share chunks: a row costs as many bytes as all of these have."""
        rows = found.chunks[0]
        size = rows * found.dtype.itemsize * max(1, found.size // max(1, len(found)))
        if -(-self.count // rows) * size > self.cache and (self.blocks is None or size > self.blocks.largest):
            self.blocks = Blocks(array.array("q", range(0, self.count, rows)), max(1, self.cache // size - 1), size)

    def open(self):
        import h5py
        unchanged(self.path, self.stamp)
        file = h5py.File(self.path, "r", rdcc_nbytes=max(self.cache, 2 * self.blocks.largest if self.blocks else 0), rdcc_nslots=20011)
        return {name: file[key] for name, key in self.fields.items()}

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {name: found[index] for name, found in self.opened().items()}


def from_hdf5(path: str | os.PathLike, fields: dict[str, str], *, pad: dict[str, Pad] | None = None,
              ragged: dict[str, int] | None = None, exact: bool = False, cache: int | str = _CACHE,
              workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
              room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Arrays of an HDF5 file, for Loader: sample i is row i of each. Needs h5py.

        dataset = oa.from_hdf5("galaxies.h5", {"image": "images", "label": "labels/class"})
        for batch in oa.Loader(dataset, batch_size=64): batch["image"]

    path: the file.
    fields: {field: array in the file}, in the order of a batch. With a pipeline the first is an image of 8 bits, (H, W) or
        (H, W, C).
    cache: bytes of decoded chunks that each process of the pool keeps of an array, a number or "1G". If rows share chunks
        and it does not hold all of them, a random order is shuffle="blocks"; see from_parquet(). Chunks of one row, or
        none, have any order.

    The other arguments are those of wrap().
    """
    if not fields or not isinstance(fields, dict):
        raise ArgumentError(f"fields is {fields!r}: {{field of a batch: array of the file}}")
    rows = HDF5Rows(_found(path), dict(fields), size_of(cache, "cache"))
    return wrap(rows, name=name, version=version, workers=workers, timeout=timeout, random=False, room=room, keep=keep,
                columns=list(fields) if pad else None, pad=pad, ragged=ragged, exact=exact)


# ---- LMDB ----


class LMDBRows(PerProcess):
    """Values of an LMDB environment, by key in order, as decode(key, value) makes them."""

    def __init__(self, path, decode, keys):
        self.path, self.decode = path, decode
        self.file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
        self.stamp = stamp_of(_found(self.file))
        with self.open() as environment, environment.begin() as transaction:
            if keys is None:
                self.keys = list(transaction.cursor().iternext(keys=True, values=False))
            else:
                self.keys = [key.encode() if isinstance(key, str) else bytes(key) for key in keys]
                for key in self.keys:
                    if transaction.get(key) is None:
                        raise ArgumentError(f"{path} has no key {key!r}")

    def open(self):
        lmdb = needs("lmdb", "oneaccess.from_lmdb()")
        unchanged(self.file, self.stamp)
        try:
            return lmdb.open(self.path, subdir=os.path.isdir(self.path), readonly=True, lock=False, readahead=False)
        except lmdb.Error as why:
            raise DatasetError(f"{self.path} is no LMDB environment that can be read: {why}") from None

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        """In one transaction."""
        with self.opened().begin() as transaction:
            return [self.decode(self.keys[index], transaction.get(self.keys[index])) for index in indices]


def from_lmdb(path: str | os.PathLike, decode: Callable[[bytes, bytes], object], *, keys: Sequence | None = None,
              columns: Sequence[str] | None = None, pad: dict[str, Pad] | None = None,
              ragged: dict[str, int] | None = None, exact: bool = False, random: bool = True,
              workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
              room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Values of an LMDB environment, a folder or a file, for Loader. Needs lmdb.

        def decode(key, value):                     # an image file and its label
            return value[8:], int.from_bytes(value[:8], "little")
        loader = oa.Loader(oa.from_lmdb("train.lmdb", decode), oa.imagenet_train(224), batch_size=256)

    path: the environment.
    decode: a function that makes a sample, as wrap() has them, of key and value (bytes). It runs in the pool's processes.
    keys: the keys that are samples, in this order. Default: all, in their order.

    The other arguments are those of wrap().
    """
    rows = LMDBRows(_found(path), decode, keys)
    return wrap(rows, name=name, version=version, workers=workers, timeout=timeout, random=random, room=room, keep=keep,
                columns=columns, pad=pad, ragged=ragged, exact=exact)
