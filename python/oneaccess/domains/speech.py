# SPDX-License-Identifier: Apache-2.0
"""Utterances: parts of sound files with texts and other values beside each, as the manifests of speech recognition have them (lhotse.py,
kaldi.py). A manifest is read once, when a data set is made; what samples need of it is kept in a few large pieces, for there may be
millions of them."""

import array
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, DatasetError, not_there
from ..segments import ALONE, most_of
from ..sources.folders import Files
from ..wrapped import Wrapped, wrap
from .recordings import read_part

FIELD = "audio"
_SLACK, _EACH = 8192, 256   # what a record has beside its fields' values, and for each field
_RESULT = 1 << 20       # room for what a transform makes


class Texts(Sequence):
    """Texts in the memory of their UTF-8 alone."""

    def __init__(self, texts=()):
        self._data, self._ends, self.longest = bytearray(), array.array("Q"), 0
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        data = text.encode()
        self._data += data
        self._ends.append(len(self._data))
        self.longest = max(self.longest, len(data))

    def __len__(self):
        return len(self._ends)

    def __getitem__(self, index):
        index = range(len(self._ends))[index]
        return self._data[self._ends[index - 1] if index else 0:self._ends[index]].decode()


def _numbers(values):
    import numpy as np
    with np.errstate(over="raise"):
        return np.array(values, np.int64 if all(isinstance(value, int) for value in values) else np.float32)


class _Lists:
    """Lists of numbers, of any length each."""

    def __init__(self, lists):
        import numpy as np
        self._ends, self._values = np.cumsum([0, *map(len, lists)]), _numbers([value for each in lists for value in each])
        self.longest = max(map(len, lists))

    def __getitem__(self, index):
        return self._values[self._ends[index]:self._ends[index + 1]]


def _is_number(value):
    return isinstance(value, (int, float))


def column_of(name: str, values: list, ids: Texts) -> Any:
    """Of values as JSON has them: texts, numbers, or lists of numbers. A text may be missing; it is empty then."""
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, str) for value in there):
        return Texts(value or "" for value in values)
    kinds = (_is_number, lambda value: isinstance(value, list) and all(map(_is_number, value)))
    kind = next((kind for kind in kinds if there and kind(there[0])), lambda value: False)
    wrong = next((at for at, value in enumerate(values) if not kind(value)), None)
    if wrong is not None:
        value = values[wrong]
        what = "is not there" if value is None else f"is {str(value)[:60]!r}"
        raise DatasetError(f"field {name} of {ids[wrong]} {what}; a field is a text, a number or a list of numbers in each sample: name others by fields=")
    try:
        return _numbers(values) if kind is _is_number else _Lists(values)
    except ArithmeticError:
        raise DatasetError(f"field {name} has a number that int64, or float32 where there are fractions, has no room for: name others by fields=") from None


class Parts:
    """Which part of which file each utterance is, as they are added."""

    def __init__(self, root: str | os.PathLike | None):
        self._root, self._numbers = os.path.abspath(os.path.expanduser(os.fspath(root or "."))), {}
        self.ids, self.paths = Texts(), Texts()
        self.of, self.channels = array.array("I"), array.array("h")     # which channel; -1: all
        self.starts, self.durations = array.array("d"), array.array("d")
        self.seconds, self.rates = array.array("d"), array.array("d")       # infinite, and 0, where nobody says it
        self.most = array.array("Q")    # bytes of a part that is read alone; 0: nobody knows

    def __len__(self):
        return len(self.of)

    def add(self, name: str, path: str, start: float = 0.0, duration: float = math.inf, channel: int = -1, rate: int = 0, channels: int = 0,
            seconds: float = math.inf) -> None:
        """start, duration: seconds. rate, channels: of the file, 0 where nobody says it. seconds: of a whole file, where that is known."""
        if "\0" in path or seconds < 0:
            raise DatasetError(f"{name} is of {path!r}, which is no name of a file" if "\0" in path else f"{name} has a duration of {seconds:g} s")
        path = os.path.join(self._root, path)
        number = self._numbers.setdefault(path, len(self._numbers))
        if number == len(self.paths):
            self.paths.append(path)
        self.ids.append(name)
        self.of.append(number)
        self.starts.append(start)
        self.durations.append(duration)
        self.channels.append(channel)
        self.seconds.append(min(duration, seconds))
        self.rates.append(rate)
        self.most.append(most_of(duration, rate, channels))


class Utterances:
    """Of these each is a sample; columns: {field: its values}."""

    def __init__(self, parts: Parts, columns: Mapping[str, Any], transform: Callable[[dict], Any] | None = None):
        if transform is not None and not callable(transform):
            raise ArgumentError(f"transform is {transform!r}: a function of a sample, which is a dict")
        self.ids, self.of, self.starts, self.durations, self.channels = parts.ids, parts.of, parts.starts, parts.durations, parts.channels
        self.columns, self.transform = dict(columns), transform
        if FIELD in self.columns:
            raise ArgumentError(f"fields= names {FIELD!r}, which is the sound: a batch has it anyway")
        try:
            self.files = Files(parts.paths)
        except OSError as why:
            raise not_there(f"{why.filename} cannot be read: {why.strerror}. It is the sound of {self._first(parts, why.filename)}; relative paths are relative"
                            " to root=, which is the current folder where it is not given", why.filename) from None

    @staticmethod
    def _first(parts, path):
        return parts.ids[parts.of.index(list(parts.paths).index(path))]

    def __len__(self):
        return len(self.of)

    def __getitem__(self, index):
        index = range(len(self))[index]
        sample = {FIELD: self._part(index), **{name: values[index] for name, values in self.columns.items()}}
        return sample if self.transform is None else self.transform(sample)

    def _part(self, index):
        try:
            channel = self.channels[index]
            return read_part(self.files, self.of[index], self.starts[index], self.durations[index], None if channel < 0 else channel)
        except DatasetError as why:
            raise DatasetError(f"{self.ids[index]}: {why}") from None

    def longest(self) -> dict[str, int]:
        """Of fields that differ in length."""
        return {name: max(values.longest, 1) for name, values in self.columns.items() if isinstance(values, (Texts, _Lists))}

    def room(self, most: Sequence[int]) -> int:
        """Bytes that a sample may need. most: of each part, where it is read alone."""
        import numpy as np
        sizes, alone = np.array(self.files.sizes)[self.of], np.array([path.lower().endswith(ALONE) for path in self.files.paths])[self.of]
        most = np.array(most)
        part = np.where(alone & (most > 0), np.minimum(sizes, most), sizes).max()
        return int(part) + 8 * sum(self.longest().values()) + _SLACK + _EACH * len(self.columns) + (_RESULT if self.transform else 0)


def data_of(parts: Parts, columns: Mapping[str, Any], *, transform: Callable[[dict], Any] | None, random: bool | None, ragged: Mapping[str, Any] | None,
            room: int | None, **more: Any) -> Wrapped:
    """For a Loader; the other arguments are those of wrap()."""
    import numpy as np
    rows = Utterances(parts, columns, transform)
    most = {**(rows.longest() if transform is None else {}), **(ragged or {})}
    data = wrap(rows, random=transform is not None if random is None else random, ragged=most, room=rows.room(parts.most) if room is None else room, **more)
    seconds, rates = np.array(parts.seconds), np.array(parts.rates)
    if np.isfinite(seconds).all():
        data.durations = np.stack([seconds, np.rint(seconds * rates), rates], 1)
    return data
