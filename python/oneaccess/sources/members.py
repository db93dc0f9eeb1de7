# SPDX-License-Identifier: Apache-2.0
"""Shards whose samples have several parts, pictures with captions, boxes, numbers: tar shards and MDS.

accessd reads them itself, as any shards, where the first op of a pipeline can say what a field is; else a pool does (wrap()). The first
sample says of which type and shape fields are, in both."""

import array
import bisect
import contextlib
import functools
import glob
import io
import itertools
import json
import os
import re
import struct
import tarfile
from collections.abc import Mapping, Sequence

from .. import record, urls
from ..errors import ArgumentError, DatasetError, MissingError, not_there
from ..masks import Image, Mask, Measured, following
from ..picked import Direct
from ..points import boxes_of, points_of
from ..wrapped import Wrapped
from .tables import Kept, stamp_of, unchanged

_MOST_OPEN = 32
_LEAST_3D = 7       # numbers of a box in space
_TEXTS = ("txt", "text", "caption")
_RANGES = re.compile(r"[^{}?*,\[\]]*(\{\d+\.\.\d+\}[^{}?*,\[\]]*)+")
_NPY = {"|u1": record.U8, "|b1": record.U8, "<f2": record.F16, "<f4": record.F32, "<f8": 12, "<u8": 11}   # all else becomes int64
_MOST_PATH, _MOST_COLUMNS, _MOST_LOOKS = 4000, 2048, 64
_META = re.compile(r"__[^/]*__(/|\Z)")     # names of webdataset's own


def _braced(path):
    """shard-{000..012}.tar is thirteen of them."""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", path)
    if not found:
        return [path]
    first, last = found.groups()
    return [each for number in range(int(first), int(last) + 1)
            for each in _braced(f"{path[:found.start()]}{number:0{len(first)}}{path[found.end():]}")]


def shards_of(paths, suffix=".tar", what="tar shard", who="from_tar()"):
    """The files of a path, a folder, a pattern, or a list of these, in order; absolute, as a job may go elsewhere."""
    if not isinstance(paths, (str, os.PathLike)):
        return [file for path in paths for file in shards_of(path, suffix, what, who)]
    return [file for each in _braced(urls.local(paths, who)) for file in _found_at(each, suffix, what)]


def _found_at(path, suffix, what):
    """Never none: a shard that is named is to be there."""
    if os.path.isdir(path):
        found = sorted(glob.glob(os.path.join(glob.escape(path), "*" + suffix)))
    else:
        found = [path] if os.path.exists(path) else sorted(glob.glob(path))
    if not found:
        raise not_there(f"no {what} is at {path}", path)
    return found


def _within(value, path, make):
    """What is there in a JSON value."""
    for key in path:
        value = value[int(key) if isinstance(value, list) else key]
    return make(value) if make else value


def _points(points):
    import numpy as np
    return np.array(points, np.float32) if len(points) else points


def _boxes(value):
    """Those of COCO have a width and a height where these have the other corner."""
    import numpy as np
    boxes = np.array(value, np.float32)
    if boxes.ndim == 2 and boxes.shape[1] >= _LEAST_3D:
        return boxes
    boxes = boxes.reshape(-1, 4)
    for left, top, right, bottom in boxes:
        if right < left or bottom < top:
            raise ValueError(f"box {left:g}, {top:g}, {right:g}, {bottom:g} ends before it begins: boxes are left, top, right, bottom,"
                             " not left, top, width, height")
    return boxes


class Shards(Wrapped):
    """Of from_tar() and from_mds(). Their samples are counted where a pool is needed, and only then."""

    _is_counted = False

    def direct(self, pictures):
        """None: a pool is needed."""
        path = None if self.nested or self.room is not None else self.dataset.path()
        layout = path and self._described(pictures)
        if not layout:
            return None
        names = layout["names"]
        first = len(names) - layout["beside"] if pictures else 0
        if first == 2 and not self.dataset.is_label(names[1]):
            return None
        for name, (code, *_), kind in list(zip(names, layout["fields"], layout["kinds"]))[first:]:
            if name not in layout["masks"] and not self.dataset.fits(name, code, kind):
                return None
        members = [self.dataset.texts[name] for at, name in enumerate(names) if at >= first or at == 0]
        return Direct(path, self.dataset.source(names[1] if first == 2 else None), layout,
                      {"members": members, **self.dataset.op}, self.boxes)

    def attach(self, pictures, voice):
        len(self)       # what goes to the pool has places
        return super().attach(pictures, voice)

    def _described(self, pictures):
        """By the first sample, or, where a list in that is empty, by a next one; None: none of them says it."""
        for sample in self.dataset.first():
            with contextlib.suppress(record.Unknown):
                return record.describe(sample, pictures, self.ragged, self.exact, self.masks, self.sides)
        return None


class _File:
    """Open as long as somebody has it."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self):
        if "fd" in vars(self):
            os.close(self.fd)


class _Shards:
    """Files that are opened as they are needed, by each process for itself."""

    def __init__(self, files, boxes):
        self.files, self.makers = [(file, stamp_of(file)) for file in files], makers_of(boxes)
        self._begin()

    def _begin(self):
        self._opened = Kept(_MOST_OPEN, self._open)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_opened", "given")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()

    def _open(self, shard):
        unchanged(*self.files[shard])
        return _File(self.files[shard][0])

    def first(self):
        """Of the first samples those that are good; raises what is wrong with the first one, where none is."""
        wrong, is_one_good = None, False
        for made in itertools.islice(self._looks(), _MOST_LOOKS):
            try:
                sample = made()
            except DatasetError as why:
                wrong = wrong or why
                continue
            is_one_good = True
            yield sample
        if wrong is not None and not is_one_good:
            raise wrong

    def _read(self, shard, at, size):
        file, (whole, _) = self.files[shard]
        data = os.pread(self._opened.get(shard).fd, size, at) if at + size <= whole else b""
        if len(data) != size:
            raise DatasetError(f"{file}:{at}: the shard ends before {size} bytes that are to be there")
        return data

    def _bad(self, shard, at, field, of, why):
        return DatasetError(f"{self.files[shard][0]}:{at}: field {field} cannot be made of this {of}: {type(why).__name__}: {why}")


# ---- tar ----


class Field:
    """What a field is made of: a member by its suffix, and what is in its JSON."""

    def __init__(self, name, source):
        suffixes, _, path = source.partition(":")
        self.name, self.suffixes, self.path = name, suffixes.lower().split(";"), [key for key in path.split("/") if key]
        if not all(self.suffixes) or self.path and self.suffixes != ["json"]:
            raise ArgumentError(f"fields={{{name!r}: {source!r}}}: give suffixes, as \"jpg;png\" or \"txt\", or \"json:key\"")

    def value(self, suffix, data, make):
        import numpy as np
        kind = suffix.rpartition(".")[2]
        if kind == "json":
            return _within(json.loads(data), self.path, make)
        if kind in _TEXTS:
            return data.decode()
        if kind == "npy":
            return np.load(io.BytesIO(data), allow_pickle=False)
        return int(data) if kind == "cls" else data


class TarRows(_Shards):
    """Samples of tar shards, as webdataset groups them: files in a row whose names are the same up to the first dot. Names without
    a key (no dot, or one in front) and those of __NAME__ are passed over, as the daemon's own scan does."""

    op = {}

    def __init__(self, files, fields, boxes, given=None):
        super().__init__(files, boxes)
        self.given, self.texts = given, fields
        self.fields = {name: Field(name, source) for name, source in fields.items()}
        self.starts, self.places, self.suffixes = [], array.array("Q"), []
        next(self.first(), None)

    def _scanned(self):
        """Where each sample is, once."""
        if not self.starts:
            self.starts.append(0)
            for shard, (file, _) in enumerate(self.files):
                for key, members in self._scan(file):
                    self.places.extend(self._found(file, key, members))
                self.starts.append(len(self.places) // (3 * len(self.fields)))
        return self

    def _scan(self, file):
        """Each sample's key and members."""
        try:
            with tarfile.open(file, "r:") as tar:
                key, members = None, {}
                for member in tar:
                    if not member.isreg():
                        continue
                    folder, name = os.path.split(member.name)
                    stem, dot, suffix = name.partition(".")
                    if not stem or not dot or _META.match(member.name):
                        continue
                    if (folder, stem) != key:
                        if members:
                            yield key, members
                        key, members = (folder, stem), {}
                    suffix = suffix.lower()
                    if suffix in members:
                        raise DatasetError(f"{file}:{member.offset} ({'/'.join(filter(None, key))}): the sample has two files"
                                           f" .{suffix}")
                    members[suffix] = member.offset_data, member.size
                if members:
                    yield key, members
        except (tarfile.TarError, OSError) as why:
            raise DatasetError(f"{file} is no tar shard that can be read: {why}; a compressed one is to be unpacked first") from None

    def _found(self, file, key, members):
        found = []
        for field in self.fields.values():
            suffix = next((suffix for suffix in field.suffixes if suffix in members), None)
            if suffix is None:
                first = min(at for at, _ in members.values())
                raise DatasetError(f"{file}:{first} ({'/'.join(filter(None, key))}): no file for field {field.name}, of"
                                   f" {', '.join(field.suffixes)}; there are: {', '.join(members)}")
            if suffix not in self.suffixes:
                self.suffixes.append(suffix)
            found += *members[suffix], self.suffixes.index(suffix)
        return found

    def __len__(self):
        return self._scanned().starts[-1]

    def __getitem__(self, index):
        index = range(len(self))[index]
        place = 3 * len(self.fields) * index
        return self._made(bisect.bisect_right(self.starts, index) - 1, self.places[place:place + 3 * len(self.fields)])

    def _made(self, shard, places):
        sample = {}
        for number, (name, field) in enumerate(self.fields.items()):
            at, size, suffix = places[3 * number:3 * number + 3]
            data = self._read(shard, at, size)
            try:
                sample[name] = field.value(self.suffixes[suffix], data, self.makers.get(name))
            except (ValueError, KeyError, IndexError, TypeError) as why:
                raise self._bad(shard, at, name, self.suffixes[suffix], why) from None
        return sample

    # ---- for accessd ----

    def _looks(self):
        """Of the first shard."""
        file = self.files[0][0]
        return (lambda key=key, members=members: self._made(0, self._found(file, key, members)) for key, members in self._scan(file))

    def path(self):
        """The shards as accessd takes them, where it has them in this order; None: it does not."""
        names = [file for file, _ in self.files]
        if re.search("[{}?,]", "".join(names)) or not all(name.endswith(".tar") for name in names) or names != sorted(set(names)):
            return None
        if len(names) == 1:
            return names[0]
        if self.given and (os.path.isdir(self.given) and _is_of_shards(self.given, names) or _RANGES.fullmatch(self.given)):
            return self.given
        folders = {os.path.dirname(name) for name in names}
        path = f"{folders.pop()}/{{{','.join(map(os.path.basename, names))}}}"
        return None if folders or len(os.fsencode(path)) > _MOST_PATH else path

    @staticmethod
    def source(_):
        return {"members": "all"}

    def is_label(self, name):
        return self.texts[name].lower() == "cls"

    def fits(self, name, code, kind):
        """Does accessd make the same of it?"""
        kinds = {suffix.rpartition(".")[2] for suffix in self.fields[name].suffixes}
        if len(kinds) > 1 and kinds & {"json", "npy", "cls", *_TEXTS}:
            return False
        if kinds == {"json"}:
            return _fits_json(code, kind, self.fields[name].path)
        if kinds == {"npy"}:
            value = next(self.first())[name]
            return code == _NPY.get(value.dtype.str, record.I64) and value.dtype.kind in "iufb"
        return kinds != {"cls"} or code == record.I64 and kind == record.DENSE


def _is_of_shards(folder, names):
    """Are they all that is there, but for indexes?"""
    return not any(os.path.join(folder, name) not in names and not name.startswith(".") and not name.endswith((".json", ".idx"))
                   for name in os.listdir(folder))


def _fits_json(code, kind, path):
    """A whole text is what it says for accessd, quotes and all."""
    return code in (record.I64, record.F32) or kind == record.TEXT and bool(path)


def makers_of(boxes):
    """What boxes and key points are made by of JSON."""
    makers = {boxes_of(boxes): _boxes, points_of(boxes): _points}
    makers.pop(None, None)
    return makers


def from_tar(paths: str | os.PathLike | Sequence, fields: dict[str, str], *, ragged: dict[str, int] | None = None,
             boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
             images: str | Sequence[str] | Mapping[str, Image] | None = None, exact: bool = False,
             workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None,
             keep: float = 30.0) -> Wrapped:
    """Samples of several files each, from tar shards of WebDataset, for Loader.

        data = oa.from_tar("street-{000..099}.tar", {"image": "jpg;png", "boxes": "json:boxes", "classes": "json:classes"},
                           ragged={"boxes": 100, "classes": 100}, boxes=["boxes", "classes"])
        loader = oa.Loader(data, pipeline, batch_size=64)

    paths: a file, a folder, a pattern, "train-{000000..000123}.tar", or a list of these. All shards that are named must
        exist.
    fields: {field: suffixes of its file}, in the order of a batch. "jpg;jpeg;png" is the first of these that a sample has,
        "json:objects/boxes" a key of its JSON.

    .txt is text, .cls an integer, .npy an array, .json its content. All others are bytes, which a pipeline decodes if they
    are the first field. JSON's numbers in boxes become float32: left, top, right and bottom in pixels, not COCO's width and
    height. A sample that lacks a file of a field is refused, with its place. Files without a key, such as README or
    ._0001.jpg, and those of __meta__ are ignored.

    accessd reads the shards itself, in any order; the first sample gives the types and shapes. A pool, as of wrap(), reads
    them where accessd cannot give the same result: lists of lists, exact types of .npy files, a label that is no .cls,
    shards that are not those of one folder in the order of their names, and if room is given. The other arguments are those
    of wrap(); workers, timeout, keep, name and version are for that pool.
    """
    if not isinstance(fields, dict) or not fields:
        raise ArgumentError(f"fields is {fields!r}: {{field of a batch: suffix of its file}}")
    given = urls.local(paths, "from_tar()") if isinstance(paths, (str, os.PathLike)) else None
    return Shards(TarRows(shards_of(paths), fields, boxes, given), name, version, workers, timeout, False, room, keep, ragged, exact, boxes,
                  following(masks, images))


# ---- MDS ----

_NUMBERS = {"int": "<i8", **{f"{kind}{bits}": f"<{kind[0]}{bits // 8}" for kind in ("uint", "int", "float") for bits in (8, 16, 32, 64)
                             if (kind, bits) != ("float", 8)}}
_ENCODINGS = ("str", "bytes", "jpeg", "png", "json", *_NUMBERS)


class MdsRows(_Shards):
    """Samples of raw MDS shards, by the index.json of their folder."""

    def __init__(self, folder, fields, boxes):
        path = os.path.join(folder, "index.json")
        try:
            with open(path, "rb") as file:
                shards = json.load(file)["shards"]
            super().__init__([os.path.join(folder, os.path.basename(shard["raw_data"]["basename"])) for shard in shards], boxes)
            self.columns = list(zip(shards[0]["column_names"], shards[0]["column_encodings"]))
            self._refuse_unknown(path, shards[0].get("column_sizes") or [])
            self.starts = [0]
            for (file, (size, _)), shard in zip(self.files, shards):
                if size != shard["raw_data"]["bytes"]:
                    raise DatasetError(f"{file} has {size} bytes, and {shard['raw_data']['bytes']} by index.json: the copy is not whole")
                if list(zip(shard["column_names"], shard["column_encodings"])) != self.columns:
                    raise DatasetError(f"{file} has other columns than the first shard")
                self.starts.append(self.starts[-1] + shard["samples"])
        except FileNotFoundError as missing:
            raise MissingError(f"{missing.filename} is not there: from_mds() takes a folder of raw shards with their index.json; compressed"
                               " ones are to be unpacked first") from None
        except (ValueError, KeyError, IndexError, TypeError) as why:
            raise DatasetError(f"{path} is no index of MDS shards: {type(why).__name__}: {why}") from None
        self.folder, self.texts = folder, fields
        self.fields = {name: self._column(name, source) for name, source in fields.items()}

    def _refuse_unknown(self, path, sizes):
        """A column of a length of its own can be passed over; of another only its encoding says what it takes."""
        for at, (column, encoding) in enumerate(self.columns):
            if encoding not in _ENCODINGS and (at >= len(sizes) or sizes[at] is not None):
                raise DatasetError(f"{path}: column {column} has encoding {encoding}, whose size is not known: write the shards without"
                                   f" it; known are: {', '.join(_ENCODINGS)}")

    def _column(self, name, source):
        column, _, path = source.partition(":")
        encoding = dict(self.columns).get(column)
        if encoding is None:
            raise ArgumentError(f"fields={{{name!r}: {source!r}}}: there is no column {column!r}; there are: {', '.join(dict(self.columns))}")
        if encoding not in _ENCODINGS or path and encoding != "json":
            raise ArgumentError(f"column {column} has encoding {encoding}, which has no place in a batch; these have: {', '.join(_ENCODINGS)}"
                                " (of json, also column:key)")
        return column, [key for key in path.split("/") if key]

    def __len__(self):
        return self.starts[-1]

    def _split(self, shard, sample):
        """{column: bytes}, and where the sample is."""
        import numpy as np
        begin, end = struct.unpack("<II", self._read(shard, 4 + 4 * sample, 8))
        fixed = [np.dtype(_NUMBERS[encoding]).itemsize if encoding in _NUMBERS else None for _, encoding in self.columns]
        data, at = self._read(shard, begin, max(0, end - begin)), 4 * fixed.count(None)
        sizes, parts = iter(struct.unpack_from(f"<{fixed.count(None)}I", data)), {}
        for (column, _), size in zip(self.columns, fixed):
            size = next(sizes) if size is None else size
            parts[column], at = data[at:at + size], at + size
        if at != len(data):
            raise ValueError(f"its columns have {at} bytes, and it has {len(data)}")
        return parts, begin

    # ---- for accessd ----

    def _looks(self):
        return (functools.partial(self.__getitem__, index) for index in range(len(self)))

    def path(self):
        """None: accessd takes the folder's shards in another order, or not at all, or there is no place for the names of their columns."""
        names = [os.path.basename(file) for file, _ in self.files]
        listed = self.op["columns"]
        is_all = names == sorted(set(names)) == sorted(name for name in os.listdir(self.folder) if name.endswith(".mds"))
        is_plain = not any(set(":;,") & set(name) for name, _ in self.columns) and len(os.fsencode(";".join(listed))) < _MOST_COLUMNS
        return self.folder if is_all and is_plain and "?" not in self.folder + "".join(listed) else None

    @property
    def op(self):
        return {"columns": [f"{name}:{encoding}" for name, encoding in self.columns]}

    def source(self, label):
        columns = {"columns": ";".join(self.op["columns"]).replace(",", "x")}
        return columns if label is None else {**columns, "label": self.fields[label][0]}

    def is_label(self, name):
        column, path = self.fields[name]
        return column in ("label", "class", "y") and not path

    def fits(self, name, code, kind):
        """Does accessd make the same of it?"""
        import numpy as np
        column, path = self.fields[name]
        encoding = dict(self.columns)[column]
        if encoding in _NUMBERS:
            dtype = np.dtype(_NUMBERS[encoding])
            return kind == record.DENSE and (record.NAMES[code] == dtype.name or code == record.I64 and dtype.kind in "iu" and encoding != "uint8")
        return _fits_json(code, kind, path) if encoding == "json" else kind in (record.RAGGED, record.TEXT)

    def __getitem__(self, index):
        index = range(len(self))[index]
        shard = bisect.bisect_right(self.starts, index) - 1
        at, name, encodings, sample = 0, "", dict(self.columns), {}
        try:
            parts, at = self._split(shard, index - self.starts[shard])
            for name, (column, path) in self.fields.items():
                sample[name] = self._value(encodings[column], parts[column], path, self.makers.get(name))
        except (ValueError, KeyError, IndexError, TypeError, struct.error) as why:
            raise self._bad(shard, at, name or "of any name", f"sample {index - self.starts[shard]} of it", why) from None
        return sample

    @staticmethod
    def _value(encoding, data, path, make):
        import numpy as np
        if encoding in _NUMBERS:
            return np.frombuffer(data, _NUMBERS[encoding])[0]
        if encoding == "json":
            return _within(json.loads(data), path, make)
        return data.decode() if encoding == "str" else data


def from_mds(folder: str | os.PathLike, fields: dict[str, str], *, ragged: dict[str, int] | None = None,
             boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
             images: str | Sequence[str] | Mapping[str, Image] | None = None, exact: bool = False,
             workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None,
             keep: float = 30.0) -> Wrapped:
    """Samples of several columns, from a folder of raw MDS shards (MosaicML streaming), for Loader.

        data = oa.from_mds("/data/mds", {"image": "photo", "caption": "text", "boxes": "about:boxes"}, ragged={"caption": 300, "boxes": 100})

    folder: the folder with index.json.
    fields: {field: column}, in the order of a batch; "about:objects/boxes" is a key of a column's JSON. Columns may be str,
        bytes, jpeg, png, json or numbers. Boxes are left, top, right and bottom, not COCO's width and height.

    The other arguments are those of wrap(). See from_tar() for when a pool is used.
    """
    if not isinstance(fields, dict) or not fields:
        raise ArgumentError(f"fields is {fields!r}: {{field of a batch: column}}")
    rows = MdsRows(urls.local(folder, "from_mds()"), fields, boxes)
    return Shards(rows, name, version, workers, timeout, False, room, keep, ragged, exact, boxes, following(masks, images))
