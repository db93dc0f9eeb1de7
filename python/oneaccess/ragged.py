# SPDX-License-Identifier: Apache-2.0
"""Fields of a batch whose samples differ in length: texts, boxes, tokens."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ArgumentError

WAYS = ("padded", "list", "nested", "strings")


class Ragged:
    """Of each sample of a batch an array that is as long as the sample is, along the first dimension. values: all of them as the
    daemon gives them, [samples, most, ...], zeros behind each; a view of shared memory, like other fields. lengths: one a sample,
    int64, the job's own. ``ragged[i]`` is a sample's array (a view), or its str where the field is text."""

    def __init__(self, values: Any, lengths: bytes, is_text: bool):
        import numpy as np
        self.values, self.is_text = values, is_text
        self._counts = np.frombuffer(lengths, np.int64).copy()

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def lengths(self) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(self.values, torch.Tensor):
            return torch.from_numpy(self._counts).to(self.values.device)
        return self._counts

    def __repr__(self):
        return f"<Ragged of {len(self)}, {self.dtype}, lengths {self._counts.tolist()}>"

    def __getitem__(self, at: int) -> Any:
        at = range(len(self))[at]
        return self._string(at) if self.is_text else self._view(at)

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def _view(self, at):
        self._refuse_whole()
        return self.values[at, :int(self._counts[at])]

    def _string(self, at):
        view = self._view(at)
        view = view.cpu().numpy() if hasattr(view, "cpu") else view
        return bytes(memoryview(view) if view.size else b"").decode()

    def _refuse_whole(self):
        if not hasattr(type(self.values), "__getitem__"):
            raise ArgumentError("as_=\"dlpack\" gives a ragged field as a whole: take .values and .lengths, or another as_")

    def padded(self, fill: float = 0, to: int | None = None) -> Any:
        """[samples, length, ...], with fill behind each sample. length: that of the longest one; or `to`, and what is longer is
        cut off. A view of the batch, unless fill is not 0, or `to` is more than the field's bound: then a tensor with as_="torch", else an
        array of NumPy, with as_="jax", too."""
        self._refuse_whole()
        longest = int(self._counts.max()) if to is None and len(self) else to or 0
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
        for at, count in enumerate(self._counts.tolist()):
            made[at, :count] = view[at, :count]
        return made

    def nested(self) -> Any:
        """A nested tensor of PyTorch, which is a copy."""
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(self.values, torch.Tensor):
            raise ArgumentError("nested() makes a nested tensor of PyTorch: open the Loader with as_=\"torch\"")
        return torch.nested.nested_tensor(self.list())

    def strings(self) -> list[str]:
        """The texts."""
        if not self.is_text:
            raise ArgumentError("strings() is of texts, and this field has numbers: padded(), list() and nested() are for these")
        return [self._string(at) for at in range(len(self))]

    def list(self) -> list:
        """A view of each sample."""
        return [self._view(at) for at in range(len(self))]


def choice(ragged: str | Mapping[str, str] | None, layout: dict | None) -> dict[str, str]:
    """{name: way} of the fields that are to become something at once."""
    kinds = dict(zip(layout["names"], layout["kinds"])) if layout and any(layout.get("kinds", ())) else {}
    names = [name for name, kind in kinds.items() if kind]
    if ragged is None:
        return {}
    chosen = {name: ragged for name in names} if isinstance(ragged, str) else dict(ragged)
    if not names:
        raise ArgumentError("ragged= says what becomes of ragged fields, and the data set has none: name them by ragged={name: most}"
                            " of wrap()")
    for name, way in chosen.items():
        if name not in names:
            raise ArgumentError(f"ragged= names {name!r}; ragged fields are: {', '.join(names)}")
        if way not in WAYS:
            raise ArgumentError(f"ragged is {way!r}; there are: {', '.join(WAYS)}")
        if way == "strings" and kinds[name] != 2:
            raise ArgumentError(f"field {name} has numbers, and no texts: give ragged={{name: \"strings\"}} of texts alone")
    return chosen
