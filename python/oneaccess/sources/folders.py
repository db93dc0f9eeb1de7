# SPDX-License-Identifier: Apache-2.0
"""Samples of several files each, in folders beside each other: pictures and masks, as VOC, ADE20K, Cityscapes have them, and pairs of pictures."""

import array
import glob
import os
import stat
import re
from collections.abc import Mapping, Sequence

from .. import urls
from ..errors import ArgumentError, DatasetError, not_there
from ..masks import Image, Mask, Measured, following
from ..wrapped import Wrapped
from .members import Field, makers_of

_SHOWN = 3


def _below(folder):
    """{name without suffix: path} of all files below it."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            if not file.startswith("."):
                path = os.path.join(place, file)
                _add(found, os.path.splitext(os.path.relpath(path, folder).removesuffix(".gz"))[0], path)    # .nii.gz is one
    return found


def _matching(pattern):
    """{what stands for its stars: path}."""
    parts = re.compile("([^/]*)".join(map(re.escape, pattern.split("*"))))
    found = {}
    for path in sorted(glob.glob("*".join(map(glob.escape, pattern.split("*"))))):
        if not os.path.isdir(path):
            _add(found, "/".join(parts.fullmatch(path).groups()), path)
    return found


def _add(found, key, path):
    if key in found:
        raise DatasetError(f"{found[key]} and {path} are both of sample {key}: name one of them, by a pattern as \"images/*.jpg\"")
    found[key] = path


def found_at(place, caller):
    """{name: path} of the files of a folder or a pattern."""
    place = urls.local(place, caller)
    found = _matching(place) if "*" in place else _below(place)
    if not found:
        raise not_there(f"no file is at {place}", place)
    return found


def names_of(names):
    """Those of a list, or of the lines of a file."""
    if not isinstance(names, (str, os.PathLike)):
        return list(names)
    path = urls.local(names, "names=")
    try:
        with open(path, encoding="utf-8") as file:
            return [line.split()[0] for line in file if line.strip()]
    except FileNotFoundError:
        raise not_there(f"there is no {path}, by names=: a file with one name a line, or a list of names", path) from None


class Files:
    """Files that are read sample by sample, and may not have changed by then."""

    def __init__(self, paths):
        found = [os.stat(path) for path in paths]
        other = next((path for path, each in zip(paths, found) if not stat.S_ISREG(each.st_mode)), None)
        if other is not None:
            raise DatasetError(f"{other} is no file, but a folder, a pipe or a device")
        self.paths, self.stamps = paths, array.array("q", (each.st_mtime_ns for each in found))
        self.sizes = array.array("q", (each.st_size for each in found))
        self.largest = max(self.sizes, default=0)

    @classmethod
    def there(cls, paths: list[str], otherwise: str = "") -> "Files":
        """Those that must all be there. otherwise: what to do if they are not."""
        missing = [path for path in paths if not os.path.exists(path)]
        if missing:
            raise not_there(f"{len(missing):,} of {len(paths):,} files are not there: {shown(missing)}{otherwise}", missing[0])
        return cls(paths)

    def check(self, at):
        if os.stat(self.paths[at]).st_mtime_ns != self.stamps[at]:
            raise DatasetError(f"{self.paths[at]} has changed since the data set was opened")

    def read(self, at):
        with open(self.paths[at], "rb", 0) as file:
            if os.fstat(file.fileno()).st_mtime_ns != self.stamps[at]:
                raise DatasetError(f"{self.paths[at]} has changed since the data set was opened")
            return file.read()


def twice(names):
    """The first name that is there twice; None: there is none."""
    seen = set()
    return next((name for name in names if name in seen or seen.add(name)), None)


def shown(names):
    """The first of them, and how many more there are."""
    return ", ".join(names[:_SHOWN]) + ("" if len(names) <= _SHOWN else f" and {len(names) - _SHOWN:,} others")


def refuse_missing(found, names):
    """found: places, and what is there by name."""
    for place, of in found:
        missing = [name for name in names if name not in of]
        if missing:
            raise DatasetError(f"{place} has no file for {shown(missing)}, of {len(names):,} samples: names= is a list of"
                               " those that are meant, or a file with one a line")


def _labels(there, names, part):
    """Of each sample the number of the part of its name that is its class, and the classes: those of all files that are there."""
    parts = [name.split("/") for name in there]
    most = min(map(len, parts))
    if isinstance(part, bool) or not isinstance(part, int) or not 1 <= part <= most:
        raise ArgumentError(f"label is {part!r}: which part of a name such as {there[0]} is the class, from 1 to {most}")
    classes = sorted({each[part - 1] for each in parts})
    number = {name: at for at, name in enumerate(classes)}
    return [number[name.split("/")[part - 1]] for name in names], classes


class FolderRows:
    """A sample's files, by their common name."""

    labels, classes = None, None        # with label=

    def __init__(self, places, names, boxes, label):
        self.makers, self.fields, found = makers_of(boxes), [], []
        for name, place in places.items():
            place, colon, key = os.fspath(place).partition(".json:")
            self.fields.append(Field(name, f"json:{key}" if colon else "*"))
            found.append(found_at(place + ".json" if colon else place, "from_folders()"))
        self.names = names_of(names) if names is not None else list(found[0])
        refuse_missing(zip(places.values(), found), self.names)
        if not self.names:
            raise DatasetError("names= names no sample")
        if label is not None:
            self.labels, self.classes = _labels(list(found[0]), self.names, label)
        self.files = [Files([of[name] for name in self.names]) for of in found]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        index, sample = range(len(self))[index], {}
        for files, field in zip(self.files, self.fields):
            path, data = files.paths[index], files.read(index)
            try:
                sample[field.name] = field.value(os.path.splitext(path)[1][1:].lower(), data, self.makers.get(field.name))
            except (ValueError, KeyError, IndexError, TypeError) as why:
                raise DatasetError(f"{path}: field {field.name} cannot be made of this: {type(why).__name__}: {why}") from None
        if self.labels is None:
            return sample
        first = self.fields[0].name             # the label behind it, which pipelines know by its place
        return {first: sample.pop(first), "label": self.labels[index], **sample}


class Folders(Wrapped):
    """Of from_folders(). names: of the samples, in their order; classes: the labels' words, in the order of their numbers, with label=."""

    def __init__(self, rows, **options):
        super().__init__(rows, **options)
        self.names, self.classes = rows.names, rows.classes


def from_folders(places: Mapping[str, str | os.PathLike], *, names: str | os.PathLike | Sequence[str] | None = None, label: int | None = None,
                 masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
                 images: str | Sequence[str] | Mapping[str, Image] | None = None, ragged: dict[str, int] | None = None,
                 boxes: Sequence[str] | str | None = None, exact: bool = False, workers: int | None = None, name: str | None = None,
                 version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Folders:
    """Samples of one file in each of several folders, for Loader: files with the same name, without suffix, are one sample.

        data = oa.from_folders({"image": "VOC2012/JPEGImages", "mask": "VOC2012/SegmentationClass"}, masks="mask",
                               names="VOC2012/ImageSets/Segmentation/train.txt")
        loader = oa.Loader(data, pipeline, batch_size=16)
        for batch in loader: batch["image"], batch["mask"]

    places: {field: folder}, in the order of a batch. Folders are read with those below them. Or a pattern whose stars are
        the name: "leftImg8bit/train/*/*_leftImg8bit.png" and "gtFine/train/*/*_gtFine_labelIds.png".
    names: the samples, in this order: a list, or a file with one name in each line (the rest after a blank is ignored).
        Default: all of the first field; each must have all fields.
    label: which part of a sample's name is its class, from 1: a star of the pattern, or of a folder a folder below it. The number of the class,
        by the order of their names, is the field "label" behind the first; .classes has the names. ModelNet40 as it is unpacked:
        oa.from_folders({"points": "ModelNet40/*/train/*.off"}, label=1). Default: there is none.

    .txt is text, .cls an integer, .npy an array, .json its content or that of a key ("labels/*.json:objects/boxes"). All
    others are bytes, which a pipeline decodes if they are the first field, a mask, or named by images=.

    Each job that opens the data set lists the folders; the pool reads the files. A file that has changed since is a bad
    sample. The other arguments are those of wrap().
    """
    if not isinstance(places, Mapping) or not places:
        raise ArgumentError(f"places is {places!r}: {{field of a batch: its folder}}")
    return Folders(FolderRows(places, names, boxes, label), name=name, version=version, workers=workers, timeout=timeout, random=False, room=room,
                   keep=keep, ragged=ragged, boxes=boxes, exact=exact, masks=following(masks, images))
