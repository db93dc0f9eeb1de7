# SPDX-License-Identifier: Apache-2.0
"""Fields that are lists of lists, as a text for each box: ragged={name: (most lists, most in one)} of wrap()."""

from typing import Any

from . import record
from .columns import Columns
from .errors import TransformError
from .ragged import Ragged


class Nested(Columns):
    """The data set, whose lists of lists are an array [lists, most, ...], zeros behind each, and beside it the lengths of the lists, so
    that both are ragged fields, and may have a row for each box."""

    def __init__(self, dataset, most: dict[str, tuple[int, int]]):
        super().__init__(dataset, None, getattr(dataset, "pads", None) if isinstance(dataset, Columns) else None)
        self.most, self.texts, self._known = dict(most), [], {}

    def learn(self, layout: dict) -> None:
        """What the others hold, for samples that do not say it."""
        fields = dict(zip(layout["names"], layout["fields"]))
        self.texts = list(layout["texts"])
        self._known = {name: (record.NAMES[fields[name][0]], tuple(fields[name][3:])) for name in self.most}

    def made(self, sample, index):
        if not isinstance(sample, dict):
            raise TransformError(f"the sample is a {type(sample).__name__}, and lists of lists (ragged= of {', '.join(self.most)}) have a field of their"
                                 " lengths beside them: make the sample a dict")
        values = dict(sample)
        for name, (_, most) in self.most.items():
            if name not in values:
                raise TransformError(f"ragged= names {name!r}; the sample has: {', '.join(values)}")
            values[name], values[lengths_of(name)] = self._made(name, values[name], most)
        return values

    def _made(self, name, lists, most):
        import numpy as np
        if isinstance(lists, (str, bytes)) or not hasattr(lists, "__len__"):
            raise TransformError(f"field {name} of the sample is a {type(lists).__name__}; ragged={{{name!r}: (most, most)}} is for a list of lists or texts")
        rows = [self._row(name, row) for row in lists]
        if not rows:
            return [], np.zeros(0, np.int64)
        longest = max(map(len, rows))
        if longest > most:
            raise TransformError(f"field {name} of the sample has a list of length {longest}, at most {most}")
        dtype, shape = self._type(name, lists, rows)
        made = np.zeros((len(rows), most, *shape), dtype)
        for at, row in enumerate(rows):
            if row.size and row.shape[1:] != shape:
                raise TransformError(f"field {name} of the sample has lists of shapes {row.shape[1:]} and {shape}")
            made[at, :len(row)] = row.reshape(-1, *shape)
        return made, np.array([*map(len, rows)], np.int64)

    def _type(self, name, lists, rows):
        """Of the values; where there are none, that of the other samples, or of what is empty and yet has one."""
        import numpy as np
        typed = [row for row in rows if row.size]
        if not typed and name in self._known:
            return self._known[name]
        typed = typed or [row for row in rows if row.ndim > 1] or [row for of, row in zip(lists, rows) if not isinstance(of, (list, tuple))]
        if not typed:
            raise record.unknown(name)
        dtype, shape = np.result_type(*typed), typed[0].shape[1:]
        if dtype == np.float64 or dtype == np.int64 and self._is_real(name, lists):
            dtype = np.float32
        return dtype, shape

    def _is_real(self, name, lists):
        """Whole numbers in lists of Python's, where the other samples have floats: [1, 2] beside [0.5, 2]."""
        return self._known.get(name, ("",))[0] == "float32" and all(isinstance(one, (list, tuple)) for one in lists)

    def _row(self, name, row):
        import numpy as np
        if isinstance(row, str):
            if name not in self.texts:
                self.texts.append(name)
            return np.frombuffer(row.encode(), np.uint8)
        if isinstance(row, bytes):
            return np.frombuffer(row, np.uint8)
        array = np.asarray(row.detach().cpu() if hasattr(row, "detach") else row)
        if array.ndim < 1 or array.dtype.kind not in "biuf":
            raise TransformError(f"field {name} of the sample has a {type(row).__name__} in its list; ragged={{{name!r}: (most, most)}} is for lists of"
                                 " numbers of one shape each, and for texts")
        return array.astype(np.float32) if array.dtype == np.float64 else array


def lengths_of(name: str) -> str:
    return f"{name}_lengths"


def joined(names: list[str], arrays: list, most: dict[str, tuple[int, int]], texts: list[str]) -> tuple[list[str], list[Any]]:
    """The fields of a batch, in which both of a list of lists are one."""
    values = dict(zip(names, arrays))
    for name in most:
        inner = values.pop(lengths_of(name)).values
        values[name] = Ragged(values[name].values, values[name].lengths, name in texts, inner)
    return list(values), list(values.values())
