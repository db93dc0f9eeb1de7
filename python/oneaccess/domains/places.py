# SPDX-License-Identifier: Apache-2.0
"""What tables and folders say of large images (scenes.py): where windows are, as CLAM's and TRIDENT's HDF5 files, CSV or JSON Lines have it,
and labels."""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import urls
from ..errors import ArgumentError, DatasetError, needs, not_there, warn
from ..sources.folders import shown
from ..sources.lines import parsed_json

_FILE, _LABEL = ("slide", "slide_id", "raster", "image", "scene", "file", "path", "name"), ("label", "class", "target", "y")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_MOST_AT = 1 << 31


class Place(NamedTuple):
    """The windows of a file, as somebody else chose them."""

    coords: Any                     # int64 [n, 2]: x and y of the upper left pixel, of the finest level
    labels: list | None = None
    size: int | None = None         # their side in pixels of their level
    level: int | None = None
    extent: int | None = None       # their side in pixels of the finest level


class Names:
    """Which of the files a table means by a name: the file's own, with or without folder and suffix."""

    def __init__(self, files: Sequence[str], noun: str):
        self._noun, self._found = noun, {}
        folder = os.path.dirname(files[0]) if len(files) == 1 else os.path.commonpath(files)
        for at, file in enumerate(files):
            below = os.path.relpath(file, folder)
            for name in {file, below, os.path.splitext(below)[0], os.path.basename(file), os.path.splitext(os.path.basename(file))[0]}:
                self._found.setdefault(name, []).append(at)

    def find(self, name: Any, where: str) -> int | None:
        found = self._found.get(str(name), [])
        if len(found) > 1:
            raise DatasetError(f"{where} names {name!r}, and {len(found)} {self._noun}s have that name: name them with their folder, as FOLDER/{name}")
        return found[0] if found else None

    def by_file(self, given: Mapping, count: int, where: str) -> list:
        """What is said of each file; None: nothing."""
        made, strange = [None] * count, []
        for name, value in given.items():
            at = self.find(name, where)
            if at is None:
                strange.append(name)
            else:
                made[at] = value
        if len(strange) == len(given):
            raise DatasetError(f"{where} names none of the {count:,} {self._noun}s; it has {shown(strange)}")
        if strange:
            warn(f"{where} names {len(strange):,} {self._noun}s that are not there: {shown(strange)}", UserWarning)
        return made


# ---- tables ----


def rows_of_table(path) -> Iterator[tuple[str, dict]]:
    """Each row, and where it is."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            if path.lower().endswith((".csv", ".tsv")):
                for row in (reader := csv.DictReader(file, delimiter="\t" if path.lower().endswith(".tsv") else ",", strict=True)):
                    yield f"{path}:{reader.line_num}", row
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", parsed_json(line, f"{path}:{number}")
    except FileNotFoundError:
        raise not_there(f"there is no {path}", path) from None
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        raise DatasetError(f"{path} cannot be read: {why}") from None


def _column(row, names, what, where):
    found = next((name for name in names if name in row), None)
    if found is None:
        raise DatasetError(f"{where}: no column of the {what}: it is {' or '.join(names)}; there are {', '.join(map(str, row))}")
    return found


def _number(value, where):
    """A CSV's numbers are texts, and pandas writes some as 12.0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < _MOST_AT or number != int(number):
        raise DatasetError(f"{where}: {value!r} is no place: whole numbers of pixels from the upper left corner, of the finest level")
    return int(number)


def _labelled(row, label, where, name):
    if row.get(label) in (None, ""):        # which would be a class of its own
        raise DatasetError(f"{where}: {name} has no label")
    return row[label]


def _of_table(path):
    """{name: Place}"""
    import numpy as np
    coords, labels, file, label = {}, {}, None, None
    for where, row in rows_of_table(path):
        file = file or _column(row, _FILE, "file's name", where)
        label = label or next((name for name in _LABEL if name in row and name != "y"), "")
        _column(row, ("x",), "place", where), _column(row, ("y",), "place", where)
        coords.setdefault(row.get(file), []).append((_number(row["x"], where), _number(row["y"], where)))
        if label:
            labels.setdefault(row.get(file), []).append(_labelled(row, label, where, "this window"))
    if not coords:
        raise DatasetError(f"{path} has no row")
    return {name: Place(np.array(some, np.int64), labels.get(name)) for name, some in coords.items()}


def labels_of_table(path: str) -> dict:
    """{name: label}"""
    made, file, label = {}, None, None
    for where, row in rows_of_table(path):
        file, label = file or _column(row, _FILE, "file's name", where), label or _column(row, _LABEL, "label", where)
        name = row.get(file)
        value = _labelled(row, label, where, name)
        if made.setdefault(name, value) != value:
            raise DatasetError(f"{where}: {name} has the labels {made[name]!r} and {value!r}")
    return made


# ---- HDF5 ----


def _of_h5(path):
    """As CLAM and TRIDENT write them: the array coords, whose attributes say how large windows are."""
    import numpy as np
    h5py = needs("h5py", "at= of HDF5 files")
    try:
        with h5py.File(path, "r") as file:
            found = file.get("coords")
            if not isinstance(found, h5py.Dataset) or found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
                raise DatasetError(f"{path} has no array \"coords\" of whole numbers [n, 2], as CLAM writes it; it has: {', '.join(file)}")
            coords = found[:].astype(np.int64)
            said = {name: int(found.attrs[name]) for name in ("patch_size", "patch_level", "patch_size_level0") if name in found.attrs}
    except (OSError, ValueError, TypeError) as why:
        raise DatasetError(f"{path} is no HDF5 file that can be read: {why}") from None
    if any(not 0 <= value <= _MOST_AT for value in said.values()) or 0 in (said.get("patch_size"), said.get("patch_size_level0")):
        raise DatasetError(f"{path}: the attributes of coords are {said}")
    return Place(coords, None, said.get("patch_size"), said.get("patch_level"), said.get("patch_size_level0"))


def _of_folder(folder):
    found = {os.path.splitext(name)[0]: os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.lower().endswith((".h5", ".hdf5"))}
    if not found:
        raise not_there(f"{folder} has no .h5 file, one for each image, as CLAM's folder patches", folder)
    return {name.removesuffix("_patches"): path for name, path in found.items()}       # TRIDENT's


# ---- at= and labels= ----


def _checked(coords, where):
    import numpy as np
    array = np.asarray(coords)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ArgumentError(f"{where}: {array.dtype} of shape {array.shape}; places are whole numbers [n, 2]: x and y of upper left pixels, of the finest level")
    return array.astype(np.int64)


def places_of(at: Any, files: Sequence[str], noun: str) -> list[Place | None]:
    """What at= says of each file."""
    names, by_file = Names(files, noun), {}
    if isinstance(at, Mapping):
        by_file = names.by_file({name: Place(_checked(coords, f"at[{name!r}]")) for name, coords in at.items()}, len(files), "at=")
    elif isinstance(at, (str, os.PathLike)):
        path = urls.local(at, "at=")
        if os.path.isdir(path):
            by_file = [found and _of_h5(found) for found in names.by_file(_of_folder(path), len(files), path)]
        elif path.lower().endswith(_TABLES):
            by_file = names.by_file(_of_table(path), len(files), path)
        elif len(files) == 1:
            by_file = [_of_h5(path)]
        else:
            raise ArgumentError(f"at={path!r}, and there are {len(files)} {noun}s: a folder of .h5 files, one for each, or a table ({', '.join(_TABLES)})")
    elif len(files) == 1:
        by_file = [Place(_checked(at, "at="))]
    else:
        raise ArgumentError(f"at= is an array, and there are {len(files)} {noun}s: give {{name: array}}, a table or a folder of .h5 files")
    for file, place in zip(files, by_file):
        if place is not None and len(place.coords) and not 0 <= place.coords.min() <= place.coords.max() < _MOST_AT:
            raise DatasetError(f"at= has places of {file} from {place.coords.min()} to {place.coords.max()}: they are pixels of its finest level")
    return by_file


def labels_of(labels: Any, files: Sequence[str], noun: str) -> list:
    """What labels= says of each file; None: nothing."""
    if labels == "folders":
        folder = os.path.commonpath(files)
        below = [os.path.relpath(file, folder).split(os.sep) for file in files]
        if any(len(parts) < 2 for parts in below):
            raise ArgumentError(f"labels=\"folders\", and {folder if len(files) > 1 else os.path.dirname(folder)} has {noun}s that are in no folder of a class below it")
        return [parts[0] for parts in below]
    if isinstance(labels, (str, os.PathLike)):
        path = urls.local(labels, "labels=")
        if not path.lower().endswith(_TABLES):
            raise ArgumentError(f"labels={path!r}: a table ({', '.join(_TABLES)}) with columns as {noun} and label, {{name: label}}, or \"folders\"")
        return Names(files, noun).by_file(labels_of_table(path), len(files), path)
    if not isinstance(labels, Mapping) or not labels:
        raise ArgumentError(f"labels is {labels!r}: a table ({', '.join(_TABLES)}) with columns as {noun} and label, {{name: label}}, or \"folders\"")
    return Names(files, noun).by_file(labels, len(files), "labels=")


def named(said: Sequence, files: Sequence[str], noun: str, what: str) -> list[int]:
    """The numbers of the files of which something is said; the others are left out."""
    left = [os.path.basename(file) for file, each in zip(files, said) if each is None]
    if left:
        warn(f"{what} says nothing of {len(left):,} of {len(files):,} {noun}s, which are left out: {shown(left)}", UserWarning)
    return [at for at, each in enumerate(said) if each is not None]


def classed(labels: Sequence) -> tuple[Any, list[str] | None]:
    """Numbers as they are, and words as the numbers of their classes, which are sorted."""
    import numpy as np
    for type_, dtype in ((int, np.int64), (float, np.float32)):
        try:
            if type_ is int and any(isinstance(label, float) for label in labels):
                continue
            return np.array([type_(label) for label in labels], dtype), None
        except (TypeError, ValueError, OverflowError):
            continue
    words = [str(label) for label in labels]
    classes = sorted(set(words))
    numbers = {word: number for number, word in enumerate(classes)}
    return np.array([numbers[word] for word in words], np.int64), classes
