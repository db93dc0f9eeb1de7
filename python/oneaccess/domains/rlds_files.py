# SPDX-License-Identifier: Apache-2.0
"""Where each step of an episode lies in the TFRecord files of a data set in RLDS: found once, by reading the files from end to end, and kept.

A record is an episode; each of its features is one list, with what all its steps have in a row. Numbers of a fixed shape are found there by
arithmetic. Texts and pictures differ in size, so of each its place is kept, and a picture is read without the rest of its episode."""

import array
import contextlib
import hashlib
import json
import os
import tempfile

from ..errors import DatasetError, Error
from ..sources.noted import Noted
from ..sources.stores import PerProcess
from ..sources.tables import Kept, unchanged
from ..sources.tfds import TFRecords, text_of, unpacked
from ..sources.tfrecord import MOST_RECORD, places, whole_numbers
from .steps import MOST_NUMBERS, Stats, statistics

_BYTES, _FLOATS, _WHOLE = 1, 2, 3           # the lists of a tf.Example
_MOST_OPEN = 64
_STATS = ("mean", "std", "min", "max", "q01", "q99")
_ARRAYS = {"steps": ("<i8", 1), "places": ("<i8", 3), "parts": ("<u4", 2), "longest": ("<i8", 1)}


class Column:
    """A feature of a step, or of an episode. at: its place among those of the index, or among those whose parts differ in size."""

    def __init__(self, feature, is_step):
        self.feature, self.is_step, self.shape = feature, is_step, feature.shape
        self.in_bytes = feature.kind in ("text", "picture") or feature.encoding != "none"
        self.each = 1
        for extent in self.shape:
            self.each *= extent
        self.kind = _BYTES if self.in_bytes else _FLOATS if feature.kind != "class" and _is_float(feature.dtype) else _WHOLE


def _is_float(dtype):
    import numpy as np
    return np.dtype(dtype).kind == "f"


def why_not(feature):
    """Why it has no place in a step; None: it has."""
    if feature.kind is None:
        return feature.why
    if feature.is_ragged or 0 in feature.shape:
        return "differs in length"
    if feature.kind == "box":
        return "is boxes"
    return "is a picture of 16 bits" if feature.kind == "picture" and feature.dtype != "uint8" else None


# ---- finding ----


def _lists(data):
    """{name: (kind, begin, end)} of the lists of a tf.Example."""
    found = {}
    for _, _, begin, end in places(data, 0, len(data)):
        for _, _, first, last in places(data, begin, end):
            pair = {number: (at, to) for number, _, at, to in places(data, first, last)}
            of = [(number, at, to) for number, _, at, to in places(data, *pair.get(2, (0, 0)))]
            if len(of) > 1:
                raise ValueError("a feature has several lists")
            found[data[slice(*pair[1])].decode()] = of[0] if of else (0, 0, 0)
    return found


def _packed(data, begin, end):
    """Where the numbers of a list lie."""
    of = [(at, to) for number, kind, at, to in places(data, begin, end) if (number, kind) == (1, 2)]
    if len(of) > 1 or not of and end > begin:
        raise ValueError("a list of numbers is not packed")
    return of[0] if of else (begin, begin)


class _Finder:
    """Goes through episodes."""

    def __init__(self, columns):
        self.columns = columns
        self.found = {name: array.array("I" if kind == "<u4" else "q") for name, (kind, _) in _ARRAYS.items()}
        self.found["longest"].extend([0] * len(columns))

    def episode(self, data, offset):
        """A record's content, which begins at that byte of its file."""
        lists, steps = _lists(data), None
        for at, column in enumerate(self.columns):
            kind, begin, end = lists.get(column.feature.name, (0, 0, 0))
            if kind not in (0, column.kind):
                raise ValueError(f"feature {column.feature.name} is a list of another type")
            begin, end, count = self._list(data, at, column, begin, end)
            want = 1 if not column.is_step else int(count) if steps is None else steps
            if count != want:
                raise ValueError(f"feature {column.feature.name} has values for {count:g} steps, and not for {want}")
            steps = want if column.is_step else steps
            self.found["places"].extend((offset + begin, end - begin))
        self.found["steps"].append(steps)

    def _list(self, data, at, column, begin, end):
        """Where its content is, and for how many steps there is some."""
        if column.kind == _BYTES:
            parts = [(first, last) for _, _, first, last in places(data, begin, end)]
            if column.is_step:
                self.found["parts"].extend(each - base for part in parts for each, base in zip((part[0], part[1]), (begin, part[0])))
            elif parts:
                begin, end = parts[0]
            self.found["longest"][at] = max([self.found["longest"][at], *(last - first for first, last in parts)])
            return begin, end, len(parts)
        begin, end = _packed(data, begin, end)
        if column.kind == _FLOATS:
            return begin, end, (end - begin) / 4 / column.each
        import numpy as np
        return begin, end, np.count_nonzero(np.frombuffer(data, np.uint8, end - begin, begin) < 128) / column.each


def _find(files, columns):
    import numpy as np
    finder = _Finder(columns)
    for path, stamp, count in files:
        unchanged(path, stamp)
        records = TFRecords(path, count)
        for number in range(count):
            try:
                finder.episode(records.record(number), records.begin(number))
            except (ValueError, IndexError, KeyError, UnicodeDecodeError) as why:
                raise DatasetError(f"{path}: record {number} is no episode as features.json says: {why}") from None
    shapes = {"places": (-1, len(columns), 2), "parts": (-1, 2)}
    return {name: np.array(values, _ARRAYS[name][0]).reshape(shapes.get(name, -1)) for name, values in finder.found.items()}


# ---- where it is ----


class Index(PerProcess):
    """Of files of a split: where the columns of each step are. Each process opens the files for itself."""

    def __init__(self, files, columns, folder):
        self.files, self.columns = files, columns
        self._noted = Noted(folder, repr((files, [(*column.feature, column.is_step) for column in columns])), _ARRAYS, "the episodes")
        self._load()

    @property
    def folder(self):
        return self._noted.folder

    def _load(self):
        import numpy as np
        self.ends = np.cumsum([count for _, _, count in self.files])
        found = self._noted.found(lambda: _find(self.files, self.columns), self._fits)
        self.steps, self._places, self._parts, self.longest = (found[name] for name in _ARRAYS)
        wide = [at for at, column in enumerate(self.columns) if column.is_step and column.in_bytes]
        self._wide, self._number = {at: place for place, at in enumerate(wide)}, {column.feature.name: at for at, column in enumerate(self.columns)}
        self._starts = np.concatenate([[0], np.cumsum(self.steps)]) * len(wide)

    def _fits(self, found):
        wide = sum(column.is_step and column.in_bytes for column in self.columns)
        steps, episodes, count = found["steps"], int(self.ends[-1]), len(self.columns)
        return (steps >= 0).all() and len(steps) == episodes and found["places"].shape == (episodes, count, 2) \
            and found["parts"].shape == (int(steps.sum()) * wide, 2) and found["longest"].shape == (count,)

    def __getstate__(self):
        return {"files": self.files, "columns": self.columns, "_noted": self._noted}

    def __setstate__(self, state):
        vars(self).update(state)
        self._load()

    # ---- reading ----

    def _read(self, episode, begin, size):
        import numpy as np
        at = int(np.searchsorted(self.ends, episode, "right"))
        if begin < 0 or not 0 <= size <= MOST_RECORD:
            raise DatasetError(f"{self.folder} is damaged: remove it, and it is made anew")
        data = os.pread(self.opened().get(at), size, begin)
        if len(data) != size:
            raise DatasetError(f"{self.files[at][0]} was cut off since it was opened, or {self.folder} is damaged: remove that, and it is made anew")
        return data

    def open(self):
        return Kept(_MOST_OPEN, self._open, os.close)

    def _open(self, at):
        path, stamp, _ = self.files[at]
        unchanged(path, stamp)
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def numbers(self, column, episode, steps):
        """[len(steps), ...] of a column of numbers, of these steps; of all for None."""
        import numpy as np
        at = self._number[column.feature.name]
        begin, size = map(int, self._places[episode, at])
        first = 0
        if column.kind == _FLOATS and steps is not None:
            first = min(steps)
            begin, size = begin + first * column.each * 4, (max(steps) - first + 1) * column.each * 4
        data = self._read(episode, begin, size)
        values = np.frombuffer(data, "<f4") if column.kind == _FLOATS else whole_numbers(data)
        values = values.reshape(-1, *column.shape)
        return values if steps is None else values[[step - first for step in steps]]

    def part(self, column, episode, step):
        """The bytes of a text, a picture or a tensor of a step."""
        at = self._number[column.feature.name]
        begin, size = map(int, self._places[episode, at])
        if column.is_step:
            place = int(self._starts[episode]) + self._wide[at] * int(self.steps[episode]) + step
            ahead, size = map(int, self._parts[place])
            begin += ahead
        return self._read(episode, begin, size)

    def values(self, column, episode, steps):
        """[len(steps), ...] of a column that becomes numbers; a picture has a way of its own."""
        import numpy as np
        if column.in_bytes:
            return np.stack([unpacked(column.feature, self.part(column, episode, step)) for step in steps])
        return self.numbers(column, episode, steps)

    def text(self, column, episode, step):
        text = text_of(self.part(column, episode, step))
        if isinstance(text, bytes):
            raise DatasetError(f"{column.feature.name} of step {step} of {self.called(episode)} is no UTF-8")
        return text

    def longest_of(self, column):
        """Bytes of a text."""
        return int(self.longest[self._number[column.feature.name]])

    def called(self, episode):
        import numpy as np
        at = int(np.searchsorted(self.ends, episode, "right"))
        return f"record {episode - int(self.ends[at]) + self.files[at][2]} of {os.path.basename(self.files[at][0])}"


# ---- statistics ----


class IndexStats(Stats):
    """Of columns of numbers over the steps of some episodes, kept beside the index."""

    def __init__(self, index, columns, episodes):
        self._index, self._episodes = index, episodes
        self._columns = {name: column for name, column in columns.items() if column.is_step and not column.in_bytes and column.feature.kind == "number"
                         and column.feature.dtype != "bool" and column.each <= MOST_NUMBERS}
        super().__init__(self._columns, self._kept)

    @staticmethod
    def _loaded(path, column):
        """What was kept there; None: nothing that can be believed."""
        import numpy as np
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            shapes = {kind: np.array(value, np.float64).shape for kind, value in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return None
        return found if shapes == {**dict.fromkeys(_STATS, column.shape), "count": ()} else None

    def _kept(self, name):
        column = self._columns[name]
        facts = name.encode() + b"\0" + self._episodes.astype("<i8").tobytes()
        path = os.path.join(self._index.folder, f"stats-{hashlib.blake2b(facts, digest_size=16).hexdigest()}.json")
        found = self._loaded(path, column)
        if found is not None:
            return found
        found = self._computed(column)
        with contextlib.suppress(OSError), tempfile.NamedTemporaryFile("w", dir=self._index.folder, delete=False) as file:
            json.dump(found, file)
            os.rename(file.name, path)
        return found

    def _computed(self, column):
        import numpy as np
        values = np.concatenate([self._of(column, int(episode)) for episode in self._episodes])
        return {kind: np.asarray(value).tolist() for kind, value in statistics(values).items()}

    def _of(self, column, episode):
        try:
            values, steps = self._index.numbers(column, episode, None), int(self._index.steps[episode])
            if len(values) != steps:
                raise ValueError(f"there are values for {len(values)} steps, and not for {steps}")
            return values
        except (ValueError, IndexError) as why:
            if isinstance(why, Error):
                raise
            raise DatasetError(f"{column.feature.name} of {self._index.called(episode)} is not as features.json says: {why}; or {self._index.folder} is"
                               " damaged: remove it, and it is made anew") from None
