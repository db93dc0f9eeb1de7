# SPDX-License-Identifier: Apache-2.0
"""Which fields of a wrapped data set's samples go to a batch, and how those of varied length do."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import flat
from .errors import ArgumentError, TransformError

_SIDES = ("right", "left")


class Pad:
    """A field of varied length that is padded, for pad= of wrap().

    It is numbers in a list, an array or a tensor of one dimension or more, bytes, or a text, as its UTF-8 bytes. float64
    becomes float32. The sample's own length is another field, NAME_length, int64. Batches are cut to their longest sample,
    without a copy.

    length: the greatest length, along the first dimension (a text: in bytes). A longer sample is a bad sample.
    value: what is added. side: "right" or "left", where it is added.
    multiple_of: batches are cut to a multiple of it.
    """

    def __init__(self, length: int, value: float = 0, side: str = "right", multiple_of: int = 1):
        for what, number in (("length", length), ("multiple_of", multiple_of)):
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 1 << 30:
                raise ArgumentError(f"Pad({what}={number!r}): a whole number from 1 on")
        if side not in _SIDES:
            raise ArgumentError(f"Pad(side={side!r}); there are: {', '.join(_SIDES)}")
        self.length, self.value, self.side, self.multiple_of = length, value, side, multiple_of

    def __repr__(self):
        return f"Pad({self.length}, value={self.value}, side={self.side!r}, multiple_of={self.multiple_of})"

    def __eq__(self, other):
        return isinstance(other, Pad) and vars(self) == vars(other)

    def __hash__(self):
        return hash(repr(self))

    def filled(self, value: Any, what: str):
        """The value as an array of that length, and its own."""
        import numpy as np
        if isinstance(value, (str, bytes)):
            value = np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
        elif hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        array = np.asarray(value)
        if array.dtype == object or array.ndim < 1:
            raise TransformError(f"{what} is a {type(value).__name__}, which has no length: pad= is for lists, arrays and"
                                 " texts")
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        count = len(array)
        if count > self.length:
            raise TransformError(f"{what} has length {count}, and pad= has place for {self.length}: cut it off in the data"
                                 " set, or give Pad a larger length")
        made = np.full((self.length, *array.shape[1:]), self.value, array.dtype if count else np.int64)
        made[slice(count) if self.side == "right" else slice(self.length - count, None)] = array
        return made, count

    def cut(self, array: Any, lengths: Any):
        """A batch's array without what all its samples lack."""
        longest = max(1, int(lengths.max()))
        longest = min(self.length, -(-longest // self.multiple_of) * self.multiple_of)
        return array[:, :longest] if self.side == "right" else array[:, self.length - longest:]


class Blocks(NamedTuple):
    """Samples that are read together: the attribute ``blocks`` of a data set. Its random order is shuffle="blocks" of Loader.

    The first sample of each block, from 0 on; how many blocks a process of the pool keeps; and the bytes of the largest.
    """

    starts: Sequence[int]
    window: int
    largest: int


def blocks_of(dataset) -> Blocks | None:
    """Those of a data set; None: it has none. Others have attributes of that name, too."""
    blocks = getattr(dataset, "blocks", None)
    return blocks if isinstance(blocks, Blocks) else None


def _name(field):
    """A tuple's fields are "0", "1", ...; who says 0 means that."""
    return str(field) if isinstance(field, int) else field


def named(columns: str | int | Sequence[str | int] | None) -> list | None:
    """The fields that columns= names."""
    return None if columns is None else [_name(field) for field in ([columns] if isinstance(columns, (str, int)) else columns)]


def by_name(what: str, given: Mapping | None, example: str) -> dict | None:
    """What an argument says of fields."""
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentError(f"{what}={given!r}: say of which field, as {what}={{\"name\": {example}}}; a tuple's fields are 0, 1, ...")
    return given and {_name(field): value for field, value in given.items()}


class Over:
    """A data set of Python's of whose samples something is made, by made(sample, index): one by one or many at once, as the data set has it."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getattr__(self, name):
        if name == "__getitems__" and "dataset" in vars(self) and callable(getattr(self.dataset, name, None)):
            return self._many
        if name.startswith("__") or name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitem__(self, index):
        return self.made(self.dataset[index], index)

    def _many(self, indices):
        samples = list(self.dataset.__getitems__(indices))
        if len(samples) != len(indices):
            return samples      # which the pool does not take
        return [self.made(sample, index) for sample, index in zip(samples, indices)]

    def made(self, sample, index: int):
        raise NotImplementedError


class Columns(Over):
    """The data set, of whose samples just these fields are there, padded where that was said."""

    def __init__(self, dataset, columns, pads):
        super().__init__(dataset)
        self.columns = None if columns is None else list(columns)
        self.pads = dict(pads or {})
        for name, pad in self.pads.items():
            if not isinstance(pad, Pad):
                raise ArgumentError(f"pad={{{name!r}: {pad!r}}}: give oneaccess.Pad(length)")
            if self.columns is not None and name not in self.columns:
                raise ArgumentError(f"pad= names {name!r}, which is not among columns={self.columns}")

    def made(self, sample, index):
        kind, names, values, form = flat.parts(sample)
        values = dict(zip(names, values))
        for name in self.columns or self.pads:
            if name not in values:
                raise TransformError(f"the sample has no field {name!r}; there are: {', '.join(names)}")
        chosen = {name: values[name] for name in self.columns or names}
        lengths = {}
        for name, pad in self.pads.items():
            chosen[name], lengths[f"{name}_length"] = pad.filled(chosen[name], f"field {name} of the sample")
        chosen.update(lengths)
        return chosen if kind == "dict" or form else tuple(chosen.values())


def cut(batch, names, pads):
    """The fields of a batch by name, padded ones cut to the longest of the batch."""
    values = dict(zip(names, batch))
    for name, pad in pads.items():
        length = f"{name}_length" if f"{name}_length" in values else str(len(names) - len(pads) + list(pads).index(name))
        values[name] = pad.cut(values[name], values[length])
    return values.values()
