# SPDX-License-Identifier: Apache-2.0
"""HDF5, Zarr and LMDB as data sets for the pool (wrap()): files that each of its processes opens for itself, since no library may go on
with what was opened before a fork."""

import array
import glob
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import urls
from ..columns import Blocks, Pad
from ..errors import ArgumentError, DatasetError, Error, not_there
from ..wrapped import Wrapped, wrap
from .tables import Kept, files_of, needs, size_of, stamp_of, unchanged

_CACHE = 64 << 20           # decoded chunks, of a process and an array
_LARGE = 1 << 30            # chunks of the same rows beyond this need a word
_METADATA = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
# What h5py, zarr and xarray raise where bytes are damaged, and what is done with something else than was meant.
BROKEN = (OSError, ValueError, LookupError, RuntimeError, TypeError, AttributeError, ArithmeticError, ImportError, zipfile.BadZipFile)


def broken(why: Exception, what: str) -> Exception:
    """What is raised in place of one of BROKEN: an error of ours as it is."""
    return why if isinstance(why, Error) else DatasetError(f"{what}: {type(why).__name__}: {why}")


def _found(path):
    path = urls.local(path, "this function")
    if not os.path.exists(path):
        raise not_there(f"there is no {path}", path)
    return path


def is_zarr(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in _METADATA)


def stores_of(paths: Any, suffixes: tuple[str, ...], what: str, who: str) -> list[str]:
    """The files that are meant, as of files_of(), where a store of Zarr is one."""
    return files_of(paths, suffixes, what, who, is_zarr)


def stamps_of(path: str, parts: Iterable[str]) -> list[tuple[str, tuple[int, int]]]:
    """What tells a file from one that was written in its place; of a store of Zarr, the metadata of these arrays."""
    if not os.path.isdir(path):
        return [(path, stamp_of(path))]
    files = {os.path.join(path, part, name) for part in ("", *parts) for name in _METADATA}
    files |= {found for part in parts for name in _METADATA for found in glob.glob(os.path.join(glob.escape(os.path.join(path, part)), "*", name))}
    return [(file, stamp_of(file)) for file in sorted(files) if os.path.exists(file)]


def all_unchanged(stamps: Iterable[tuple[str, tuple[int, int]]]) -> None:
    for file, stamp in stamps:
        unchanged(file, stamp)


def arrays_of(group) -> list[str]:
    """The names of the arrays in a group of HDF5 or Zarr and below it, but for single numbers. Links to other files are not followed."""
    if hasattr(group, "groups"):        # of zarr
        return [name for name, found in group.arrays() if found.ndim] + [f"{above}/{name}" for above, found in group.groups() for name in arrays_of(found)]
    names = []
    if hasattr(group, "visititems"):
        group.visititems(lambda name, found: names.append(name) if getattr(found, "ndim", 0) else None)
    return names


class PerProcess:
    """What each process opens for itself, at its first sample: self.opened()."""

    _at = None

    def opened(self):
        if self._at is None or self._at[0] != os.getpid():
            self._at = os.getpid(), self.open()
        return self._at[1]

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_at"}


# ---- arrays ----


class ArrayRows(PerProcess):
    """Row i of several arrays of one file, as a dict. blocks: chunks, where rows share them and not all are kept."""

    def _look(self, path, arrays, cache):
        """At the arrays by their fields' names: each has a shape, a dtype and chunks."""
        self.path, self.cache, self.blocks = path, cache, None
        counts = {self.fields[name]: found.shape[0] for name, found in arrays.items()}
        if len(set(counts.values())) != 1:
            raise DatasetError(f"the arrays of {path} have different lengths: {counts}")
        self.count = next(iter(counts.values()))
        for found in arrays.values():
            if found.chunks is not None and found.chunks[0] > 1:
                self._see(found)

    def _see(self, found):
        """The array's rows share chunks: a row costs as many bytes as all of these have."""
        rows, size = found.chunks[0], _bytes_of_chunks(found)
        if -(-self.count // rows) * size > self.cache and (self.blocks is None or size > self.blocks.largest):
            self.blocks = Blocks(array.array("q", range(0, self.count, rows)), max(1, self.cache // size - 1), size)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {name: found[index] for name, found in self.opened().items()}


def _bytes_of_chunks(found):
    """Of those that have the same rows."""
    return found.chunks[0] * found.dtype.itemsize * max(1, found.size // max(1, found.shape[0]))


def _of_arrays(rows, fields, pad, **more):
    return wrap(rows, random=False, columns=list(fields) if pad else None, pad=pad, **more)


def _fields(fields):
    if not fields or not isinstance(fields, dict):
        raise ArgumentError(f"fields is {fields!r}: {{field of a batch: array of the file}}")
    return dict(fields)


# ---- HDF5 ----


class HDF5Rows(ArrayRows):
    def __init__(self, path, fields, cache):
        h5py = needs("h5py", "oneaccess.from_hdf5()")
        self.fields, self.stamp = fields, stamp_of(path)
        try:
            opened = h5py.File(path, "r")
        except OSError as why:
            raise DatasetError(f"{path} is no HDF5 file that can be read: {why}") from None
        with opened as file:
            self._look(path, {name: self._array(h5py, path, file, key) for name, key in fields.items()}, cache)

    @staticmethod
    def _array(h5py, path, file, key):
        found = file.get(key)
        if not isinstance(found, h5py.Dataset) or found.ndim < 1:
            raise ArgumentError(f"{path} has no array {key!r}; there are: {', '.join(arrays_of(file))}")
        return found

    def open(self):
        import h5py
        unchanged(self.path, self.stamp)
        file = h5py.File(self.path, "r", rdcc_nbytes=max(self.cache, 2 * self.blocks.largest if self.blocks else 0), rdcc_nslots=20011)
        return {name: file[key] for name, key in self.fields.items()}


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
    rows = HDF5Rows(_found(path), _fields(fields), size_of(cache, "cache"))
    return _of_arrays(rows, fields, pad, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep, ragged=ragged, exact=exact)


# ---- Zarr ----


class ZarrRows(ArrayRows):
    def __init__(self, path, fields, cache):
        needs("zarr", "oneaccess.from_zarr()")
        self.fields = fields
        arrays = self._arrays(path)
        self.stamps = [(file, stamp_of(file)) for key in fields.values() for file in _metadata(path, key)]
        self._look(path, arrays, cache)
        largest = max(_bytes_of_chunks(found) for found in arrays.values())
        if largest > max(cache, _LARGE):
            raise DatasetError(
                f"the chunks of {path} that have the same rows have {largest / 2**30:.1f} GiB, which each process of the pool would keep in memory:"
                " write it with chunks of fewer rows, or say that there is room, by cache=\"...\"")

    def _arrays(self, path):
        import zarr
        try:
            root = zarr.open(path, mode="r")
        except (OSError, ValueError, KeyError, ImportError) as why:
            raise DatasetError(f"{path} is no Zarr that can be read: {why}") from None
        arrays = {}
        for name, key in self.fields.items():
            found = root if isinstance(root, zarr.Array) and key == "" else None if isinstance(root, zarr.Array) or key not in root else root[key]
            if not isinstance(found, zarr.Array) or not found.ndim:
                raise ArgumentError(f"{path} has no array {key!r}; there are: {', '.join(arrays_of(root) or ['one, which is named by an empty text'])}")
            arrays[name] = found
        return arrays

    def open(self):
        all_unchanged(self.stamps)
        return {name: _Chunks(found, self.cache) for name, found in self._arrays(self.path).items()}


def _metadata(path, key):
    """The files of this machine that say what the array is."""
    return [file for file in (os.path.join(path, key, name) for name in _METADATA) if not urls.is_url(path) and os.path.exists(file)]


class _Chunks:
    """Rows of an array, of which the chunks are kept that were decoded last."""

    def __init__(self, found, cache):
        self.found, self.rows = found, found.chunks[0]
        self.kept = Kept(max(2, cache // _bytes_of_chunks(found)), lambda block: found[block * self.rows:(block + 1) * self.rows])

    def __getitem__(self, index):
        return self.kept.get(index // self.rows)[index % self.rows]


def from_zarr(path: str | os.PathLike, fields: dict[str, str], *, pad: dict[str, Pad] | None = None,
              ragged: dict[str, int] | None = None, exact: bool = False, cache: int | str = _CACHE,
              workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
              room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Arrays of a Zarr (of version 2 or 3, also OME-Zarr), for Loader: sample i is row i of each. Needs zarr.

        dataset = oa.from_zarr("era5.zarr", {"wind": "10m_u_component_of_wind", "heat": "2m_temperature"})
        for batch in oa.Loader(dataset, batch_size=64): batch["wind"]

    path: the folder, or a URL that zarr opens (s3://, gs://, https://; it needs fsspec and its package for the store). The
        metadata of a folder's arrays are looked at for changes, chunks are not.
    fields: {field: array, as "labels/cells/0"; "" where path is an array itself}, in the order of a batch. Values are those
        that are stored: no scale, offset or time is applied. With a pipeline the first is an image of 8 bits, (H, W) or (H, W, C).
    cache: bytes of decoded chunks that each process of the pool keeps of an array, a number or "1G", and two rows of chunks at
        least. If rows share chunks and it does not hold all of them, a random order is shuffle="blocks"; see from_parquet().
        Chunks of one row have any order. A row costs all chunks that have a part of it.

    The other arguments are those of wrap().
    """
    path = urls.path_of(path)
    rows = ZarrRows(path if urls.is_url(path) else _found(path), _fields(fields), size_of(cache, "cache"))
    return _of_arrays(rows, fields, pad, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep, ragged=ragged, exact=exact)


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
