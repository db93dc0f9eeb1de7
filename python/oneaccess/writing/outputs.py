# SPDX-License-Identifier: Apache-2.0
"""What a model or a program computed of a data set's samples, kept beside it by their numbers: store() and compute() write it, beside() reads it.

The folder is that of access-outputs(5): a .npy for each field, whose row i is sample i's, so that any process may write any samples at any time, and
others read them by numpy.load(). What is not written to the disk yet is not marked as written, so what is marked is whole, whoever was killed.
"""

import contextlib
import copy
import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core, flat, paths, picked, ranks as ranks_of, record, urls
from ..columns import Over
from ..errors import ArgumentError, DatasetError, StateError, TransformError, not_there
from ..loader import Loader
from ..ragged import Ragged
from ..wrapped import Wrapped
from .casting import array_of, cast

HEAD, WRITTEN = "outputs.json", "written.npy"
_FORMAT, _VERSION = "oneaccess-outputs", 1
_DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64")
_TAKEN = ("index", "image", "label", "length", "written")
_NPY_HEAD = 128
_MOST_FIELDS, _MOST_DIMENSIONS = 20, 4
_MOST_KEPT, _MOST_SECONDS = 64 << 20, 30.0     # of what is not marked yet: bytes, and how long


class Field(NamedTuple):
    """shape: of a sample's; the first number -1: it differs in length. is_text: its bytes are UTF-8."""

    dtype: str
    shape: tuple[int, ...]
    is_text: bool

    @property
    def is_ragged(self) -> bool:
        return self.shape[:1] == (-1,)

    @property
    def row(self) -> tuple[int, ...]:
        return self.shape[1:] if self.is_ragged else self.shape


def _field(name, said):
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,22}", str(name)) or name in _TAKEN:
        raise ArgumentError(f"fields= names {name!r}: a name has up to 23 letters, digits and _, and is none of {', '.join(_TAKEN)}")
    if said == "text":
        return Field("uint8", (-1,), True)
    try:
        shape, dtype = said
        shape, dtype = tuple(int(extent) for extent in shape), str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]
    except (TypeError, ValueError):
        raise ArgumentError(f"fields={{{name!r}: {said!r}}}: give (shape, dtype), as ((4, 64, 64), \"float16\"), with -1 as the first extent where it differs from"
                            " sample to sample, or \"text\"") from None
    if dtype not in _DTYPES:
        raise ArgumentError(f"fields={{{name!r}: {said!r}}}: dtype is one of {', '.join(_DTYPES)}" +
                            ("; bfloat16 is stored as float32, or as float16 where that has room for it" if dtype == "bfloat16" else ""))
    if len(shape) > _MOST_DIMENSIONS or any(extent < 1 for extent in (shape[1:] if shape[:1] == (-1,) else shape)):
        raise ArgumentError(f"fields={{{name!r}: {said!r}}}: a shape has at most four extents, from 1 on, of which the first may be -1")
    return Field(dtype, shape, False)


def _fields(said):
    if not isinstance(said, Mapping) or not said or len(said) > _MOST_FIELDS:
        raise ArgumentError(f"fields is {said!r}: {{name: (shape, dtype)}}, of 1 to {_MOST_FIELDS} fields")
    return {name: _field(name, each) for name, each in said.items()}


def _fields_of(values):
    """What store() would be told of the fields of a batch."""
    if not isinstance(values, Mapping):
        raise ArgumentError("compute() without fields= keeps what its function returns by name: a dict, or a batch of samples that are dicts")
    made = {}
    for name, value in values.items():
        if isinstance(value, Ragged):
            made[name] = "text" if value.is_text else ((-1, *value.shape[2:]), value.dtype)
        elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            made[name] = "text"
        elif hasattr(value, "shape") and len(value.shape):
            made[name] = tuple(value.shape[1:]), value.dtype
        else:
            raise ArgumentError(f"{name} is a {type(value).__name__}: say what it is, by fields= of compute()")
    return made


# ---- whose outputs they are ----


class _Of(NamedTuple):
    count: int
    version: str        # "": only the count is known


def _of(data, source, socket):
    """How many samples the data set has, and which version it is."""
    if isinstance(data, Loader):
        if data._wrapped is not None and data._direct is None:
            return _of(data._wrapped, source, socket)
        if data._direct is not None and "fields" in data._direct.source:
            said = data._direct.source
            return _Of(data._catalog().count, said.get("of", "") if "beside" in said else _head(data._direct.path)["data_version"])
        catalog = data._catalog()
        return _Of(catalog.count, catalog.version.hex() if data._direct is None else "")
    if isinstance(data, Beside):
        head = _head(data.folder)
        return _Of(head["samples"], head["data_version"])
    if isinstance(data, Wrapped):
        return _Of(len(data), f"{data.name}:{data.version}" if data.name is not None else "")
    if isinstance(data, (str, os.PathLike)):
        folder = urls.path_of(data)
        if source:
            folder = paths.with_source(folder, source)
        found = _core.Dataset(_core.Client(socket), folder)
        return _Of(found.count, found.version.hex())
    raise ArgumentError(f"data is {data!r}: a Loader, its data set, as a path or of wrap() and the like, of whose samples these are")


def _refuse_other(folder, head, of):
    if head["samples"] != of.count:
        raise StateError(f"{folder} is of {head['samples']:,} samples, and the data set has {of.count:,}: it is of another data set, or of another version")
    if head["data_version"] and of.version and head["data_version"] != of.version:
        raise StateError(f"{folder} is of version {head['data_version'][:16]}, and the data set has version {of.version[:16]} now: files were added, removed or"
                         " written anew since, or it is another one. Compute it again, into another folder; any_version=True takes it all the same")


# ---- the folder ----


def _head(folder):
    """What outputs.json says, checked."""
    path = os.path.join(folder, HEAD)
    try:
        with open(path, encoding="utf-8") as file:
            head = json.load(file)
    except FileNotFoundError:
        raise not_there(f"{folder} has no {HEAD}: it is no folder of store() or compute()" if os.path.isdir(folder) else
                        f"there is no folder {folder}: store() and compute() make one", path) from None
    except (OSError, ValueError) as why:
        raise DatasetError(f"{path} cannot be read: {why}") from None
    try:
        if head["format"] != _FORMAT or not isinstance(head["samples"], int) or not isinstance(head["data_version"], str):
            raise ValueError("it is of another format")
        if head["version"] != _VERSION:
            raise ValueError(f"it is of version {head['version']}, and this package knows {_VERSION}: upgrade it")
        head["fields"] = {name: Field(str(each["dtype"]), tuple(map(int, each["shape"])), bool(each.get("text", False))) for name, each in head["fields"].items()}
        for name, field in head["fields"].items():
            _field(name, "text" if field.is_text else (field.shape, field.dtype))
    except (KeyError, TypeError, ValueError, AttributeError, ArgumentError) as why:
        raise DatasetError(f"{path} is no head of outputs: {why}") from None
    return head


def _file(folder, name):
    return os.path.join(folder, f"{name}.npy")


def _places(name):
    return f"{name}.places"


def _npy_head(dtype, shape):
    """Of one size whatever the shape, so that rows may be added."""
    import numpy as np
    text = repr({"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape})
    return b"\x93NUMPY\x01\x00" + (_NPY_HEAD - 10).to_bytes(2, "little") + text.encode().ljust(_NPY_HEAD - 11) + b"\n"


def _new_npy(folder, name, dtype, shape):
    """Zeros, which take no place on the disk."""
    import numpy as np
    with open(_file(folder, name), "wb") as file:
        file.write(_npy_head(dtype, shape))
        file.truncate(_NPY_HEAD + np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)))
        file.flush()
        os.fsync(file.fileno())


def _sync(folder):
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make(folder, fields, of):
    """All of it at once; who was first has made it."""
    parent, name = os.path.split(folder)
    made = os.path.join(parent, f".{name}.{secrets.token_hex(8)}")
    os.mkdir(made)
    try:
        for each, field in fields.items():
            _new_npy(made, each, field.dtype, (0, *field.row) if field.is_ragged else (of.count, *field.row))
            if field.is_ragged:
                _new_npy(made, _places(each), "int64", (of.count, 2))
        _new_npy(made, "written", "uint8", (of.count,))
        head = {"format": _FORMAT, "version": _VERSION, "samples": of.count, "data_version": of.version,
                "fields": {each: {"dtype": field.dtype, "shape": list(field.shape), **({"text": True} if field.is_text else {})} for each, field in fields.items()}}
        with open(os.path.join(made, HEAD), "w", encoding="utf-8") as file:
            json.dump(head, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _sync(made)
        with contextlib.suppress(FileExistsError):
            try:
                os.rename(made, folder)
            except OSError as why:
                if why.errno != errno.ENOTEMPTY:
                    raise
        _sync(parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _written(folder):
    import numpy as np
    try:
        return np.load(os.path.join(folder, WRITTEN), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as why:
        raise DatasetError(f"{os.path.join(folder, WRITTEN)} cannot be read: {why}") from None


# ---- values ----


def _ragged_values(value, count, field, what):
    """Of as many samples: their rows, one behind the other, and how many each has."""
    import numpy as np
    if isinstance(value, Ragged):
        value = value.strings() if field.is_text else value.list()
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != count:
        raise ArgumentError(f"{what} is to be a list of {count} values, one for each id, since they differ in length")
    rows = []
    for each in value:
        if field.is_text:
            if not isinstance(each, str):
                raise ArgumentError(f"{what} has a {type(each).__name__}, and is text")
            rows.append(np.frombuffer(each.encode(), np.uint8))
            continue
        made = cast(each, field.dtype, what) if len(each) else np.zeros((0, *field.row), field.dtype)
        if made.shape[1:] != field.row or made.ndim != 1 + len(field.row):
            raise ArgumentError(f"{what} has a value of shape {made.shape}: it is {field.shape} by fields=")
        rows.append(made)
    return np.concatenate(rows) if rows else np.zeros((0, *field.row), field.dtype), np.array([len(each) for each in rows], np.int64)


def _runs(ids):
    """Sorted ids: (the first, where it stands, how many follow one another)."""
    import numpy as np
    ends = np.flatnonzero(np.diff(ids) != 1) + 1
    starts = [0, *ends.tolist()]
    return [(int(ids[start]), start, end - start) for start, end in zip(starts, [*ends.tolist(), len(ids)])]


def _put(descriptor, data, at):
    view = memoryview(data).cast("B")
    while view:
        done = os.pwrite(descriptor, view, at)
        view, at = view[done:], at + done


# ---- writing ----


class Store:
    """The result of store(). A with statement closes it."""

    def __init__(self, folder: str, fields: dict[str, Field], samples: int):
        self.path, self._fields, self._samples = folder, fields, samples
        self._files: dict[str, int] = {}
        self._ids, self._kept, self._since = [], 0, time.monotonic()
        try:
            for name, field in fields.items():
                for each in (name, _places(name)) if field.is_ragged else (name,):
                    self._files[each] = os.open(_file(folder, each), os.O_RDWR | os.O_CLOEXEC)
                if field.is_ragged:
                    self._room(name, field, 0)      # who was killed there may have left it half done
            self._files["written"] = os.open(os.path.join(folder, WRITTEN), os.O_RDWR | os.O_CLOEXEC)
        except OSError as why:
            self._close_files()
            raise DatasetError(f"{folder} cannot be written: {why}") from None

    def __len__(self) -> int:
        return self._samples

    def __repr__(self) -> str:
        return f"<outputs {', '.join(self._fields)} in {self.path}, of {self._samples:,} samples>"

    @property
    def fields(self) -> list[str]:
        """Their names."""
        return list(self._fields)

    def missing(self) -> Any:
        """The numbers of the samples of which nothing is written, whoever writes: int64, ascending. For ids= of a Loader."""
        import numpy as np
        self.flush()
        return np.flatnonzero(_written(self.path) == 0)

    def write(self, ids: Any, **values: Any) -> None:
        """Values of some samples: of each field one for each id, in their order.

            for batch in loader:
                out.write(batch.ids, latent=encode(batch[0]), text=[...])

        ids: the samples' numbers, as batch.ids. values: tensors on any device or arrays [ids, ...], of a field that differs in length a list of these, a
            Ragged, or texts. Floats are rounded to the field's dtype; a number that does not fit is an ArgumentError, and then nothing is written. What was written
            before of a sample is replaced, in a field that differs in length with the old values' place left unused.
        """
        import numpy as np
        ids = np.array(array_of(ids), np.int64).reshape(-1)
        if "written" not in self._files:
            raise StateError(f"{self.path} is closed")
        if values.keys() != self._fields.keys():
            raise ArgumentError(f"write() was given {', '.join(values) or 'no field'}, and there are: {', '.join(self._fields)}")
        if len(ids) and not 0 <= ids.min() <= ids.max() < self._samples:
            raise ArgumentError(f"write() was given id {ids.min() if ids.min() < 0 else ids.max():,}, and the data set has {self._samples:,} samples: ids are batch.ids")
        made = {name: self._checked(name, field, values[name], len(ids)) for name, field in self._fields.items()}
        if not len(ids):
            return
        _, last = np.unique(ids[::-1], return_index=True)       # of an id that stands there twice the last one
        chosen = len(ids) - 1 - last
        try:
            for name, field in self._fields.items():
                self._kept += self._put_ragged(name, field, ids, chosen, *made[name]) if field.is_ragged else self._put_rows(name, ids, chosen, made[name])
        except OSError as why:
            raise DatasetError(f"{self.path} cannot be written: {why}") from None
        self._ids.append(ids)
        if self._kept > _MOST_KEPT or time.monotonic() - self._since > _MOST_SECONDS:
            self.flush()

    def _checked(self, name, field, value, count):
        what = f"{name} of write()"
        if field.is_ragged:
            return _ragged_values(value, count, field, what)
        made = cast(value, field.dtype, what)
        if made.shape != (count, *field.shape):
            raise ArgumentError(f"{what} has the shape {made.shape}: of {count} ids it is {(count, *field.shape)}")
        return made

    def _put_rows(self, name, ids, chosen, rows):
        """Those of ids[chosen], which ascend, at their places."""
        ids, rows = ids[chosen], rows[chosen]
        each = rows.nbytes // len(rows)
        for first, at, count in _runs(ids):
            _put(self._files[name], rows[at:at + count].reshape(-1).view("uint8"), _NPY_HEAD + first * each)
        return rows.nbytes

    def _put_ragged(self, name, field, ids, chosen, rows, lengths):
        import numpy as np
        each = np.dtype(field.dtype).itemsize * int(np.prod(field.row, dtype=np.int64))
        first = self._room(name, field, len(rows))
        if len(rows):
            _put(self._files[name], rows.reshape(-1).view("uint8"), _NPY_HEAD + first * each)
        places = np.stack([first + np.cumsum(lengths) - lengths, lengths], 1)
        return rows.nbytes + self._put_rows(_places(name), ids, chosen, places)

    def _room(self, name, field, rows):
        """Of so many rows behind all others, whichever process they are of: where they begin."""
        import numpy as np
        descriptor = self._files[name]
        each = np.dtype(field.dtype).itemsize * int(np.prod(field.row, dtype=np.int64))
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            first = -(-(os.fstat(descriptor).st_size - _NPY_HEAD) // each)
            os.ftruncate(descriptor, _NPY_HEAD + (first + rows) * each)
            _put(descriptor, _npy_head(field.dtype, (first + rows, *field.row)), 0)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        return first

    def flush(self) -> None:
        """Brings to the disk what was written, and then says of these samples that they are written. write() does it itself by and by, and close()."""
        import numpy as np
        if not self._ids:
            return
        ids = np.unique(np.concatenate(self._ids))
        try:
            for name, descriptor in self._files.items():
                if name != "written":
                    os.fdatasync(descriptor)
            for first, _, count in _runs(ids):
                _put(self._files["written"], b"\1" * count, _NPY_HEAD + first)
            os.fdatasync(self._files["written"])
        except OSError as why:
            raise DatasetError(f"{self.path} cannot be written: {why}") from None
        self._ids, self._kept, self._since = [], 0, time.monotonic()

    def _close_files(self):
        while self._files:
            os.close(self._files.popitem()[1])

    def close(self) -> None:
        """What was written is on the disk then. It may be closed twice."""
        try:
            self.flush()
        finally:
            self._close_files()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def store(path: str | os.PathLike, data: Any = None, fields: Mapping[str, Any] | None = None, *, source: Mapping[str, object] | None = None,
          any_version: bool = False, socket: str | None = None) -> Store:
    """A folder for what is computed of a data set's samples, or one that is there, to go on.

        with oa.store("latents", loader, {"latent": ((4, 64, 64), "float16"), "text": ((-1, 768), "float16"), "caption": "text"}) as out:
            for batch in loader:
                out.write(batch.ids, latent=encode(batch["image"]), text=[...], caption=[...])

    Samples may come in any order, from several processes and nodes at once (on a file system that they share), in several runs: out.missing() says which are still to
    be written, for ids= of a Loader. Who is killed loses what he wrote in the last half minute, at most 64 MiB of it; a sample is never half there.

    path: the folder. It is made as a whole if it is not there.
    data: whose samples these are: a Loader, a path, or what wrap() and the from_...() functions give. None: of a folder that is there, whatever the data set is now.
        The folder keeps how many samples there are, and the version of the data set: of files theirs, as of any data set (names, sizes, times);
        of wrap() its name= and version=, if it has a name. A data set that differs is a StateError.
    fields: {name: (shape of a sample's value, dtype)}; () is one number. The first extent -1: it differs from sample to sample. "text": str.
        Types: bool, whole numbers of 8 to 64 bits, float16, float32, float64. None: those of a folder that is there.
    source, socket: as of Loader, where data is a path.
    any_version: True: also of another version with as many samples.
    """
    folder = urls.local(path, "store()")
    wanted = None if fields is None else _fields(fields)
    of = None if data is None else _of(data, source, socket)
    if not os.path.lexists(folder) or (os.path.isdir(folder) and not os.listdir(folder)):
        if wanted is None or of is None:
            raise not_there(f"there is no folder {folder}: give data and fields to make one", folder)
        if of.count < 1:
            raise ArgumentError("the data set has no samples")
        try:
            _make(folder, wanted, of)
        except OSError as why:
            raise DatasetError(f"{folder} cannot be made: {why}") from None
    head = _head(folder)
    if of is not None:
        _refuse_other(folder, head, of if not any_version else _Of(of.count, ""))
    if wanted is not None and wanted != head["fields"]:
        raise StateError(f"{folder} has the fields {_shown(head['fields'])}, and fields= says {_shown(wanted)}: give another folder, or leave fields out")
    return Store(folder, head["fields"], head["samples"])


def _shown(fields):
    return ", ".join(f"{name} {field.dtype}{list(field.shape)}" for name, field in fields.items())


def compute(path: str | os.PathLike, data: Any, function: Callable[[Any], Mapping[str, Any]], pipeline: Any = None, *,
            fields: Mapping[str, Any] | None = None, batch_size: int = 1, rank: int | None = None, world_size: int | None = None,
            source: Mapping[str, object] | None = None, socket: str | None = None, **options: Any) -> Store:
    """store(), with a loop: computes a function of all samples of which nothing is written yet.

        oa.compute("logits", "/data/train", lambda batch: {"logits": teacher(batch[0].cuda())}, oa.imagenet_eval(224),
                   fields={"logits": ((1000,), "float16")}, batch_size=256)

    function: of a batch of the Loader {field: values}, as of Store.write(). It is called without gradients where torch is imported. dict keeps the batch itself: a data set
        that Python code reads, with ragged fields, too, is then read by accessd: oa.Loader(path).
    fields: as of store(). Default: as the function returns them of the first sample, for which it is called once more; ragged fields are what is a Ragged or text there.
    pipeline, batch_size, source, socket, options: as of Loader. bad="skip" leaves samples missing that cannot be read.
    rank, world_size: several processes share the work: each takes the samples whose number, modulo world_size, is its rank. Default: those of torch.distributed or of the
        launcher. They need not wait for each other, and may be others in the next run.

    Killed and run again it goes on. The result is closed, and says what is missing.
    """
    if refused := {"ids", "epochs", "shuffle", "order", "classes", "split", "weights", "samples", "state", "drop_last"} & options.keys():
        raise ArgumentError(f"compute() with {sorted(refused)[0]}=: it goes through all samples that are missing, once, in their order")
    found = ranks_of.find(rank, world_size, None, None)
    torch = sys.modules.get("torch")
    quietly = torch.inference_mode() if torch is not None else contextlib.nullcontext()
    if fields is None and not os.path.lexists(os.path.join(urls.local(path, "compute()"), HEAD)):
        with Loader(data, pipeline, 1, ids=[0], shuffle=False, epochs=1, rank=0, world_size=1, source=source, socket=socket, **options) as loader:
            with quietly:
                fields = _fields_of(function(next(iter(loader))))
    with store(path, data, fields, source=source, socket=socket) as out:
        ids = out.missing()
        ids = ids[ids % found.world_size == found.rank]
        if len(ids):
            with Loader(data, pipeline, batch_size, ids=ids, shuffle=False, epochs=1, rank=0, world_size=1, source=source, socket=socket, **options) as loader, quietly:
                for batch in loader:
                    out.write(batch.ids, **function(batch))
    return out


# ---- reading ----


class Beside(picked.Picked):
    """The result of beside(), for Loader."""

    def __init__(self, data: str | None, folder: str, head: dict, names: Sequence[str], source: Mapping[str, Any], any_version: bool):
        self.data, self.folder = data, folder
        self._head, self._names, self._source, self._any_version = head, list(names), dict(source), any_version
        self.boxes, self.masks = [], {}

    def __repr__(self) -> str:
        return f"<{', '.join(self._names)} in {self.folder}{'' if self.data is None else f', beside {self.data}'}>"

    def __len__(self) -> int:
        return self._head["samples"]

    def direct(self, pictures: bool) -> picked.Direct:
        if self.data is None and pictures:
            raise TransformError(f"{self.folder} has no images for the pipeline: leave it out, or give the data set to beside(), without images=False")
        if self.data is not None and not pictures:
            raise TransformError("give the Loader a pipeline, which makes the images, or beside() images=False, which leaves them out")
        most = {name: _longest(self.folder, name) for name in self._names if self._head["fields"][name].is_ragged}
        sample = {name: _sample(self._head["fields"][name]) for name in self._names}
        source = {"fields": ";".join(f"{name}:{most[name]}" if name in most else name for name in self._names)}
        if self.data is None:
            return picked.Direct(self.folder, source, record.describe(sample, False, most), {}, ())
        source.update(self._source, beside=self.folder)
        if self._head["data_version"] and not self._any_version:
            source["of"] = self._head["data_version"]
        return picked.Direct(self.data, source, record.describe({"image": b"0", "label": 0, **sample}, True, most), {"source": "record"}, ())


def _sample(field):
    """One as Python has it, which says what all are like."""
    import numpy as np
    return "" if field.is_text else np.zeros((1, *field.row) if field.is_ragged else field.shape, field.dtype)


def _load(folder, name):
    import numpy as np
    try:
        return np.load(_file(folder, name), mmap_mode="r", allow_pickle=False)
    except ValueError as why:
        if os.path.getsize(_file(folder, name)) == _NPY_HEAD:      # no memory can be mapped of nothing
            return np.load(_file(folder, name), allow_pickle=False)
        raise DatasetError(f"{_file(folder, name)} cannot be read: {why}") from None
    except OSError as why:
        raise DatasetError(f"{_file(folder, name)} cannot be read: {why}") from None


def _longest(folder, name):
    """Rows of the longest value."""
    return max(1, int(_load(folder, _places(name))[:, 1].max()))


class _Rows(Over):
    """A data set of Python's with stored fields, in its pool."""

    def __init__(self, dataset, folder, fields, stamps):
        super().__init__(dataset)
        self.folder, self.fields, self.stamps = folder, fields, stamps
        self._opened = None

    def __getstate__(self):
        return {**vars(self), "_opened": None}

    def made(self, sample, index):
        kind, names, _, _ = flat.parts(sample)
        if self._opened is None:
            if _stamps(self.folder, self.fields) != self.stamps:
                raise DatasetError(f"{self.folder} was written to since it was opened")
            self._opened = _written(self.folder), {name: (_load(self.folder, name), _load(self.folder, _places(name)) if field.is_ragged else None)
                                                   for name, field in self.fields.items()}
        written, opened = self._opened
        if not written[index]:
            raise DatasetError(f"{self.folder} has nothing of sample {index:,}")
        values = {}
        for name, field in self.fields.items():
            rows, places = opened[name]
            if places is not None:
                begin, count = places[index].tolist()
                if not 0 <= begin <= begin + count <= len(rows):
                    raise DatasetError(f"{self.folder} is damaged: rows {begin} to {begin + count} of {name} are not there")
                values[name] = bytes(rows[begin:begin + count]).decode() if field.is_text else rows[begin:begin + count]
            else:
                values[name] = rows[index]
        if kind == "dict":
            if clash := next((name for name in values if name in names), None):
                raise TransformError(f"the sample has a field {clash!r}, and so has {self.folder}: name some of its fields by fields=[...] of beside()")
            return {**sample, **values}
        return (*(sample if kind == "tuple" else (sample,)), *values.values())


def _stamps(folder, fields):
    files = [_file(folder, each) for name, field in fields.items() for each in ((name, _places(name)) if field.is_ragged else (name,))]
    return [(found.st_size, found.st_mtime_ns) for found in map(os.stat, [*files, os.path.join(folder, WRITTEN)])]


def _beside_wrapped(data, folder, fields):
    """The same data set, whose samples have more."""
    made = copy.copy(data)
    made.__class__ = Wrapped        # what accessd could read without a pool, it reads without these fields
    vars(made).pop("count", None)
    made.dataset = _Rows(data.dataset, folder, fields, _stamps(folder, fields))
    made.ragged = {**data.ragged, **{name: _longest(folder, name) for name, field in fields.items() if field.is_ragged}}
    if data.name is not None:
        made.name, made.version = f"{data.name}+{os.path.basename(folder)}", repr((data.version, folder, sorted(fields), made.dataset.stamps))
    made._packed, made._identities = None, {}
    return made


def is_meant(dataset: Any) -> bool:
    """Is it a folder of store() or compute()?"""
    return isinstance(dataset, (str, os.PathLike)) and not urls.is_url(dataset) and os.path.isfile(os.path.join(os.fsdecode(urls.path_of(dataset)), HEAD))


def beside(data: Any, path: str | os.PathLike, fields: Sequence[str] | None = None, *, images: bool = True, partial: bool = False,
           source: Mapping[str, object] | None = None, any_version: bool = False, socket: str | None = None) -> Beside | Wrapped:
    """A data set with what was computed of its samples, for Loader.

        loader = oa.Loader(oa.beside("/data/train", "logits"), pipeline, batch_size=256)
        for batch in loader: batch["image"], batch["label"], batch["logits"]
        loader = oa.Loader(oa.beside("/data/train", "latents", images=False), batch_size=256)
        for batch in loader: batch["latent"], batch["text"]

    ids, orders, subsets, ranks and states are those of the data set. All jobs that have the same data set and fields share their work.

    data: a path, whose images accessd reads; or what wrap() and the from_...() functions of Python code give, whose pool then reads the fields, too: they follow the
        sample's own, by name in a dict, else behind them. With images=False it only says of which version the fields are to be, and may be None.
    path: a folder of store() or compute().
    fields: which of them, in this order. Default: all.
    images: False: the stored fields alone; no image is read.
    partial: True: also where samples are missing. These are bad samples (bad= of Loader), so leave them out, by ids=.
    any_version: True: also of another version of the data set with as many samples.
    source, socket: as of Loader.

    Types are those of any .npy: floats, uint8 and uint64 as they are, bool as uint8, other whole numbers as int64. Who writes to the folder while a job reads it ends
    that job.
    """
    folder = urls.local(path, "beside()")
    if re.search("[,?]", folder):
        raise ArgumentError(f"{folder}: the path of what is beside a data set has no , and no ?")
    head = _head(folder)
    names = list(head["fields"]) if fields is None else [fields] if isinstance(fields, str) else list(fields)
    if unknown := next((name for name in names if name not in head["fields"]), None) or (not names and "nothing"):
        raise ArgumentError(f"fields= names {unknown!r}; {folder} has: {', '.join(head['fields'])}")
    if not partial and (missing := head["samples"] - int((_written(folder) != 0).sum())):
        raise StateError(f"{folder} lacks {missing:,} of {head['samples']:,} samples: store({os.fspath(path)!r}).missing() says which, to be written; or give partial=True, and"
                         " leave them out by ids= of the Loader")
    chosen = {name: head["fields"][name] for name in names}
    if isinstance(data, Beside):
        raise ArgumentError(f"{data!r} has fields beside it: store them in one folder")
    if isinstance(data, Wrapped):
        _refuse_other(folder, head, _Of(len(data), "") if any_version else _of(data, None, None))
        return _beside_wrapped(data, folder, chosen) if images else Beside(None, folder, head, names, {}, True)
    if data is not None and not isinstance(data, (str, os.PathLike)):
        raise ArgumentError(f"data is {data!r}: a path, or of wrap() or a from_...() function that runs Python code")
    if not images:
        if data is not None:
            of = _of(data, source, socket)
            _refuse_other(folder, head, of if not any_version else _Of(of.count, ""))
        return Beside(None, folder, head, names, {}, True)
    if data is None:
        raise ArgumentError("beside() without data: give the data set, or images=False")
    return Beside(urls.path_of(data), folder, head, names, source or {}, any_version)
