# SPDX-License-Identifier: Apache-2.0
"""Fields of a batch whose samples differ in length: texts, boxes, tokens."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import ArgumentError

WAYS = ("padded", "list", "nested", "strings")


class Ragged:
    """A field of a batch whose samples differ in length along their first dimension.

    values: all samples, [samples, most, ...], with zeros behind each: a view of shared memory.
    lengths: the length of each sample, int64; private. counts: the same, always an array of NumPy.
    inner: of a list of lists, the lists' lengths, [samples, most]; values are then [samples, most, most in a list, ...].

    ``ragged[i]`` is the array of a sample, a view; its str where the field is text; or a list of arrays or texts for a list
    of lists.
    """

    def __init__(self, values: Any, lengths: Any, is_text: bool, inner: Any = None):
        import numpy as np
        self.values, self.is_text = values, is_text
        self.counts = np.frombuffer(lengths, np.int64).copy() if isinstance(lengths, bytes) else _host(lengths)
        self.inner = None if inner is None else np.minimum(np.maximum(_host(inner), 0), values.shape[2])

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def starts(self) -> Any:
        """Where each sample begins in values, seen as one row: with lengths a ListView of Arrow."""
        return self._like([at * self.values.shape[1] for at in range(len(self))])

    @property
    def lengths(self) -> Any:
        return self._like(self.counts)

    def _like(self, numbers):
        return like(numbers, self.values)

    def __repr__(self):
        return f"<Ragged of {len(self)}, {self.dtype}, lengths {self.counts.tolist()}>"

    def __getitem__(self, at: int) -> Any:
        at = range(len(self))[at]
        return self._string(at) if self.is_text else self._view(at)

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def _view(self, at):
        self._refuse_whole()
        view = self.values[at, :int(self.counts[at])]
        if self.inner is None:
            return view
        return [view[row, :int(self.inner[at, row])] for row in range(len(view))]

    def _string(self, at):
        view = self._view(at)
        return _text(view) if self.inner is None else [_text(row) for row in view]

    def _refuse_whole(self):
        if not hasattr(type(self.values), "__getitem__"):
            raise ArgumentError("as_=\"dlpack\" gives a ragged field as a whole: take .values and .lengths, of lists of lists .inner, too, or another as_")

    def padded(self, fill: float = 0, to: int | None = None) -> Any:
        """[samples, length, ...], with fill behind each sample.

        length is that of the longest sample, or to; longer samples are cut off. It is a view, unless fill is not 0 or to is
        more than the field's bound: then a tensor with as_="torch", else an array of NumPy, also with as_="jax".
        """
        self._refuse_whole()
        if self.inner is not None:
            return self._padded_lists(fill, to)
        longest = int(self.counts.max()) if to is None and len(self) else to or 0
        view = self.values[:, :longest]
        if fill == 0 and longest <= self.values.shape[1]:
            return view
        torch = sys.modules.get("torch")
        shape = (len(self), longest, *self.values.shape[2:])
        if torch is not None and isinstance(view, torch.Tensor):
            made = torch.full(shape, fill, dtype=view.dtype, device=view.device)
        else:
            import numpy as np
            made = np.full(shape, fill, view.dtype)
        for at, count in enumerate(self.counts.tolist()):
            made[at, :count] = view[at, :count]
        return made

    def mask(self) -> Any:
        """bool [samples, most]: whether a value of values is there, as models take it of padded values."""
        import numpy as np
        there = np.arange(self.values.shape[1]) < self.counts[:, None]
        torch = sys.modules.get("torch")
        return torch.from_numpy(there).to(self.values.device) if torch is not None and isinstance(self.values, torch.Tensor) else there

    def _padded_lists(self, fill, to):
        """[samples, lists, length, ...]; the longest of both."""
        import numpy as np
        there = np.arange(self.values.shape[1]) < self.counts[:, None]
        most, longest = int(self.counts.max(initial=0)), int(np.where(there, self.inner, 0).max(initial=0))
        if to is not None or fill != 0:
            raise ArgumentError("padded() of lists of lists has zeros behind them, up to the longest: give neither fill nor to")
        return self.values[:, :most, :longest]

    def csr(self) -> tuple:
        """(values, offsets) as in Arrow: the values of all samples in a row, a copy, and where each sample begins and the last
        one ends.

        Of lists of lists: (values, offsets of lists, offsets of samples in lists).
        """
        import numpy as np
        self._refuse_whole()
        offsets = self._like(np.concatenate([[0], np.cumsum(self.counts)]))
        if self.inner is None:
            return self._row(), offsets
        rows = [row for of in self.list() for row in of]
        lists = self._like(np.concatenate([[0], np.cumsum([len(row) for row in rows])]))
        return _concatenated(rows, self.values[0, 0, :0] if len(self) else self.values), lists, offsets

    def _row(self):
        """The values of all samples in a row."""
        import numpy as np
        most, torch = self.values.shape[1], sys.modules.get("torch")
        numbers = places(np.arange(len(self)) * most, self.counts)
        if torch is not None and isinstance(self.values, torch.Tensor):
            return self.values.flatten(0, 1).index_select(0, like(numbers, self.values))
        values = np.asarray(self.values)
        return values.reshape(-1, *values.shape[2:]).take(numbers, 0)

    def nested(self) -> Any:
        """A nested tensor of PyTorch, a copy."""
        if self.inner is not None:
            raise ArgumentError("nested() has one level: padded(), list() and csr() are for lists of lists")
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(self.values, torch.Tensor):
            raise ArgumentError("nested() makes a nested tensor of PyTorch: open the Loader with as_=\"torch\"")
        return torch.nested.nested_tensor(self.list())

    def strings(self) -> list:
        """The texts, a list of str."""
        if not self.is_text:
            raise ArgumentError("strings() is of texts, and this field has numbers: padded(), list() and nested() are for these")
        return [self._string(at) for at in range(len(self))]

    def list(self) -> list:
        """A list with a view of each sample."""
        return [self._view(at) for at in range(len(self))]


def like(numbers: Any, values: Any) -> Any:
    """int64 of NumPy, or a tensor on the device of values, where these are one."""
    import numpy as np
    numbers = np.asarray(numbers, np.int64)
    torch = sys.modules.get("torch")
    return torch.from_numpy(numbers).to(values.device) if torch is not None and isinstance(values, torch.Tensor) else numbers


def places(starts: Any, counts: Any) -> Any:
    """The numbers of rows, int64: of each sample those from its start on, as many as it has."""
    import numpy as np
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def _host(numbers):
    """int64, the job's own."""
    import numpy as np
    return np.array(numbers.cpu() if hasattr(numbers, "cpu") else numbers, np.int64)


def _text(view):
    view = view.cpu().numpy() if hasattr(view, "cpu") else view
    return bytes(memoryview(view) if view.size else b"").decode()


def _concatenated(parts, none):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(none, torch.Tensor):
        return torch.cat(parts) if parts else none.clone()
    import numpy as np
    return np.concatenate(parts) if parts else np.array(none)


def choice(ragged: str | Mapping[str, str] | None, layout: dict | None, inner: Sequence[str] = (), as_: str | None = None) -> dict[str, str]:
    """{name: way} of the fields that are to become something at once, as texts are of which nobody said anything; inner: those that are
    others' lengths."""
    kinds = dict(zip(layout["names"], layout["kinds"])) if layout and any(layout.get("kinds", ())) else {}
    names = [name for name, kind in kinds.items() if kind and name not in inner]
    texts = {name: "strings" for name in (layout or {}).get("strings", ()) if as_ != "dlpack"}
    if ragged is None:
        return texts
    chosen = {name: ragged for name in names} if isinstance(ragged, str) else {**texts, **ragged}
    if not names:
        raise ArgumentError("ragged= says what becomes of ragged fields, and the data set has none: name them by ragged={name: most}"
                            " of wrap()")
    for name, way in chosen.items():
        if name not in names:
            raise ArgumentError(f"ragged= names {name!r}; ragged fields are: {', '.join(names)}")
        if way not in WAYS:
            raise ArgumentError(f"ragged is {way!r}; there are: {', '.join(WAYS)}")
        if way == "strings" and kinds[name] != 2 and name not in layout.get("texts", ()):
            raise ArgumentError(f"field {name} has numbers, and no texts: give ragged={{name: \"strings\"}} of texts alone")
    return chosen
