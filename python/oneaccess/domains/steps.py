# SPDX-License-Identifier: Apache-2.0
"""Steps of episodes as samples, as from_lerobot(), from_rlds() and from_episodes() have them: which fields there are, windows of steps, frames as a
batch has them, statistics, and the data set that Loader takes. What an episode is, and where its values are, each of these says for itself."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..columns import by_name
from ..errors import ArgumentError, TransformError, warn
from ..masks import following
from ..sources.series import ahead_of
from ..wrapped import Wrapped

PAD, COUNTED = "_is_pad", ("episode_index", "frame_index")
MOST_NUMBERS = 1024         # in a step: of wider values no statistics are made, and they are read when they are asked for
_DTYPES = ("uint8", "float32")


# ---- arguments ----


def windows(delta: Mapping[str, Sequence[int]] | None, there: Sequence[str], why_not: Callable[[str], str | None] = lambda name: None,
            what: str = "delta_steps") -> dict[str, tuple[str, list[int]]]:
    """{column: (key of delta, steps from the sample's own)}; a key with columns below it is of all these that have windows. why_not: what a column is
    that has none."""
    found = {}
    for key, ahead in sorted((by_name(what, delta, "[-1, 0]") or {}).items()):      # those within others come later, and are meant
        of = [name for name in there if name == key or name.startswith(f"{key}/")]
        if not of:
            raise ArgumentError(f"{what}= names {key!r}; the data set has: {', '.join(there)}")
        steps = ahead_of(key, ahead, what)
        for name in of:
            why = why_not(name)
            if why is None:
                found[name] = key, steps
            elif name == key:
                raise ArgumentError(f"{what}= names {name!r}, which is {why}, and has no windows")
    return found


def numbered(episodes: Sequence[int]) -> list[int]:
    """The numbers that episodes= names, ascending."""
    try:
        return sorted({operator.index(number) for number in episodes})
    except TypeError:
        raise ArgumentError(f"episodes is {episodes!r}: numbers of episodes, as [0, 2] or range(100)") from None


def _chosen(names, there, left, pads):
    """What columns= names; None: all that are there. pads: fields that come with others."""
    if names is None:
        if left:
            warn(f"left out: {'; '.join(f'{name} {why}' for name, why in left.items())}; columns=[...] says which a batch is to have", UserWarning)
        return list(there)
    known = [*there, *(name for name in COUNTED if name not in there)]
    for name in names:
        if name in left:
            raise TransformError(f"column {name} {left[name]}: it has no place in a batch; name others, of {', '.join(there)}")
        if name not in known and name not in pads:
            raise ArgumentError(f"columns= names {name!r}; the data set has: {', '.join(known)}")
    found = [name for name in dict.fromkeys(names) if name not in pads]
    if not found:
        raise ArgumentError(f"columns={list(names)} has no feature, and NAME_is_pad comes with NAME; the data set has: {', '.join(known)}")
    return found


class Form(NamedTuple):
    """What becomes of cameras' frames: pixels=, image_transforms= and dtype=."""

    pixels: Mapping[str, tuple[int, int]] | None
    transforms: Callable | None
    dtype: str

    def checked(self, cameras):
        if self.dtype not in _DTYPES:
            raise ArgumentError(f"dtype is {self.dtype!r}; there are: {', '.join(_DTYPES)}")
        if self.transforms is not None and not callable(self.transforms):
            raise ArgumentError(f"image_transforms is a {type(self.transforms).__name__}: give a function of a tensor [..., C, H, W]")
        pixels = by_name("pixels", self.pixels, "(height, width)") or {}
        for camera, size in pixels.items():
            if camera not in cameras:
                raise ArgumentError(f"pixels= names {camera!r}; cameras are: {', '.join(cameras) or 'none'}")
            if not isinstance(size, Sequence) or len(size) != 2 or not all(isinstance(side, int) and 1 <= side <= 65535 for side in size):
                raise ArgumentError(f"pixels={{{camera!r}: {size!r}}}: give (height, width)")
        return self._replace(pixels={camera: tuple(size) for camera, size in pixels.items()})

    def is_plain(self, camera):
        return camera not in self.pixels and self.transforms is None and self.dtype == "uint8"

    def finished(self, frames, camera):
        """One frame [H, W, C], or several, as a batch has them: resized, as floats, transformed."""
        import numpy as np
        size = self.pixels.get(camera)
        if size is not None:
            frames = np.stack([_resized(frame, size) for frame in frames]) if frames.ndim == 4 else _resized(frames, size)
        if self.dtype == "float32":
            frames = np.moveaxis(frames, -1, -3).astype(np.float32, order="C") / np.float32(255)
        if self.transforms is None:
            return frames
        import torch
        frames = frames if self.dtype == "float32" else np.moveaxis(frames, -1, -3)
        return self.transforms(torch.from_numpy(np.ascontiguousarray(frames)))


def _resized(frame, size):
    import numpy as np
    from PIL import Image
    image = Image.fromarray(frame[:, :, 0] if frame.shape[2] == 1 else frame)
    made = np.asarray(image.resize(size[::-1], Image.Resampling.BILINEAR))
    return made if made.ndim == 3 else made[:, :, None]


# ---- samples ----


class StepRows:
    """Steps of the episodes that are meant, as dicts. Who is one has lengths, of these episodes, and _value(name, at, steps, is_window): what a column
    has at some steps of the episode at that place; [len(steps), ...] of a window, else of the one step.

    columns: what columns= names; there: all that may be named; left: {name: why it has no place in a batch}; delta: windows()."""

    def __init__(self, columns, there, left, delta, cameras, form):
        self.names = _chosen(columns, there, left, {f"{key}{PAD}" for key, _ in delta.values()})
        self.windows, self.form, self._there = delta, form.checked(cameras), list(there)
        self.cameras = [name for name in self.names if name in cameras]

    def _set_lengths(self, lengths, dropped=0):
        """Samples, in the order of these episodes: all steps but the last ones of each."""
        import numpy as np
        self.lengths = np.asarray(lengths)
        self.starts = np.concatenate([[0], np.cumsum(np.maximum(self.lengths - dropped, 0))])

    def numbers(self):
        """Of the episodes."""
        return range(len(self.lengths))

    def about(self):
        return [{"episode_index": int(number), "length": int(length)} for number, length in zip(self.numbers(), self.lengths)]

    def __len__(self):
        return int(self.starts[-1])

    def __getitem__(self, index):
        import numpy as np
        index = range(len(self))[index]
        at = int(np.searchsorted(self.starts, index, "right")) - 1
        return self._sample(at, index - int(self.starts[at]))

    def _sample(self, at, step):
        import numpy as np
        sample, pads = {}, {}
        for name in self.names:
            if name not in self._there:
                sample[name] = int(self.numbers()[at]) if name == COUNTED[0] else step
                continue
            key, ahead = self.windows.get(name, (None, (0,)))
            count = self._count(name, at)
            sample[name] = self._value(name, at, [min(max(step + each, 0), count - 1) for each in ahead], key is not None)
            if key is not None:
                pads[f"{key}{PAD}"] = np.array([not 0 <= step + each < count for each in ahead])
        return {**sample, **pads}

    def _count(self, name, at):
        """For how many steps of the episode the column has values."""
        return int(self.lengths[at])


def in_order(rows: StepRows, indices: Sequence[int]) -> list[dict]:
    """Several samples, made in the order in which they lie in the files, so that decoders go on and what is kept of the files is of use."""
    made = {index: rows[index] for index in sorted({*indices})}
    return [made[index] for index in indices]


# ---- statistics ----


def statistics(values) -> dict:
    """Of [steps, ...]; as OpenVLA computes them."""
    import numpy as np
    q01, q99 = np.quantile(values, (0.01, 0.99), axis=0)
    return {"mean": values.mean(axis=0, dtype=np.float64), "std": values.std(axis=0, dtype=np.float64), "min": values.min(axis=0),
            "max": values.max(axis=0), "q01": q01, "q99": q99, "count": len(values)}


class Stats(Mapping):
    """{name: statistics()} of columns of numbers, each by made(name) at the first look at it."""

    def __init__(self, names: Sequence[str], made: Callable[[str], dict]):
        self._found, self._made = dict.fromkeys(names), made

    def __len__(self):
        return len(self._found)

    def __iter__(self):
        return iter(self._found)

    def __getitem__(self, name):
        import numpy as np
        if self._found[name] is None:
            self._found[name] = {kind: np.array(value) for kind, value in self._made(name).items()}
        return self._found[name]


# ---- for Loader ----


class Robots(Wrapped):
    """Of from_lerobot(), from_rlds() and from_episodes(), for Loader."""

    def __init__(self, rows, images=None, **options):
        super().__init__(rows, random=rows.form.transforms is not None, exact=True, masks=following(None, images), **options)
        self.cameras, self.episodes, self.stats = rows.cameras, rows.about(), rows.stats()
