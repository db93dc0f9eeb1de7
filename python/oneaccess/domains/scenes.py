# SPDX-License-Identifier: Apache-2.0
"""Windows of very large images, for the pool (wrap()): what slides (slides.py) and rasters (rasters.py) have in common. A window is read
alone; a file is never read whole for it. Where windows are is found once, by each job, and numbered: file by file, row by row."""

import base64
import concurrent.futures
import hashlib
import json
import math
import os
import random
import tempfile
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import ArgumentError, DatasetError
from ..sources.noted import folder_of
from ..sources.stores import PerProcess
from ..sources.tables import Kept, stamp_of, unchanged
from ..wrapped import Wrapped
from .places import Place, classed, labels_of, named, places_of

_MOST_OPEN = 16         # files, of a process of the pool
_MOST_SIDE = 16384
MOST_LOOK = 2048        # pixels of a side of the small copy in which tissue and data are looked for
_SIZE = 256


class Unreadable(Exception):
    """What a library says of a file that it cannot read."""


class Scene(NamedTuple):
    """What is known of a file before its windows are read."""

    width: int                      # of its finest level
    height: int
    downsamples: list[float]        # of its levels, 1 first
    mpp: float | None               # micrometres of a pixel of the finest level
    magnification: float | None
    bands: int
    dtype: str
    share: bytes | None             # with mask_size: which pixels of a small copy count, packed bits, deflated; None: all do
    mask_size: tuple[int, int]      # (height, width)

    def mask(self):
        import numpy as np
        height, width = self.mask_size
        return np.unpackbits(np.frombuffer(zlib.decompress(self.share), np.uint8), count=height * width).reshape(height, width)

    @staticmethod
    def packed(mask) -> tuple[bytes, tuple[int, int]]:
        import numpy as np
        return zlib.compress(np.packbits(mask).tobytes()), mask.shape


class Cut(NamedTuple):
    """How the windows of one file are read: side pixels of a level, which are so many of the finest one, made size x size ones."""

    level: int
    side: int
    extent: int


class Reader:
    """A kind of files: a library, and how it is asked. It goes to the pool."""

    noun = ""                       # a file of them, and the field that has its number
    errors: tuple[type[BaseException], ...] = (OSError,)

    def load(self) -> Any:
        """The library, or an error that says what to install."""
        raise NotImplementedError

    def scene(self, path: str, is_masked: bool) -> Scene:
        raise NotImplementedError

    def facts(self) -> list:
        """What scene() depends on, besides the file."""
        return []

    def open(self, path: str) -> Any:
        """What reads the windows of the file; it has close()."""
        raise NotImplementedError

    def fields(self, opened: Any, x: int, y: int, cut: Cut, size: int) -> dict[str, Any]:
        """The fields of a window whose upper left pixel of the finest level is (x, y), the picture first."""
        raise NotImplementedError

    def example(self, size: int) -> dict[str, Any]:
        """The same of no file."""
        raise NotImplementedError


# ---- what is known of files, and kept ----


def whole(what: str, value: Any, least: int, most: int = _MOST_SIDE) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ArgumentError(f"{what} is {value!r}: a whole number from {least} to {most}")
    return value


def share_of(what: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ArgumentError(f"{what} is {value!r}: the least share of a window, from 0 to 1")
    return float(value)


def _kept(path):
    """What was kept there; None: nothing that can be believed."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        scene = Scene(**{**found, "share": found["share"] and base64.b64decode(found["share"]), "mask_size": tuple(found["mask_size"])})
        if scene.share is not None:
            scene.mask()
        return scene if scene.width > 0 and scene.height > 0 and scene.downsamples else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error):
        return None


def _keep(path, scene):
    """Other jobs need not look at the file again; without a place for it, they do."""
    text = json.dumps({**scene._asdict(), "share": scene.share and base64.b64encode(scene.share).decode()})
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False) as file:
            file.write(text)
        os.rename(file.name, path)
    except OSError:
        return


def scenes_of(reader: Reader, files: list[str], stamps: list[tuple[int, int]], is_masked: bool, index: str | os.PathLike | None) -> list[Scene | str]:
    """Of each file what is known, or why nothing is."""
    folder = folder_of("scenes", index)

    def found(path, stamp):
        facts = repr([path, stamp, is_masked, type(reader).__name__, reader.facts()]).encode()
        place = os.path.join(folder, f"{hashlib.blake2b(facts, digest_size=16).hexdigest()}.json")
        scene = _kept(place)
        if scene is None:
            try:
                scene = reader.scene(path, is_masked)
            except Unreadable as why:
                return str(why)
            except reader.errors as why:
                return f"{type(why).__name__}: {why}"
            _keep(place, scene)
        return scene

    with concurrent.futures.ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), 8)) as threads:
        return [*threads.map(found, files, stamps)]


# ---- where windows are ----


def starts(extent, side, step, is_flush):
    """Of windows in a row. The last one ends with the image, unless it is to be drawn where it lies."""
    import numpy as np
    if extent <= side:
        return np.zeros(1, np.int64)
    count = int((extent - side) // step) + 1
    starts = np.unique(np.floor(np.arange(count) * step + 0.5).astype(np.int64))
    starts = starts[starts <= extent - side]
    return np.append(starts, extent - side) if is_flush and starts[-1] < extent - side else starts


def grid(scene: Scene, extent: int, step: float, is_flush: bool):
    """[n, 2]: x and y of windows, row by row, that cover the image."""
    import numpy as np
    x, y = (starts(whole_side, extent, step, is_flush) for whole_side in (scene.width, scene.height))
    return np.stack([np.tile(x, len(y)), np.repeat(y, len(x))], 1)


def counting(scene: Scene, coords, extent: int, least: float):
    """Which of these windows have pixels that count, and the least share of them."""
    import numpy as np
    mask = scene.mask()
    sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), np.int64)
    sums[1:, 1:] = mask.cumsum(0, dtype=np.int64).cumsum(1)
    bounds = []
    for axis, (whole_side, small) in enumerate(((scene.width, mask.shape[1]), (scene.height, mask.shape[0]))):
        begin = np.minimum(coords[:, axis] * small // whole_side, small - 1)
        end = -(-np.minimum(coords[:, axis] + extent, whole_side) * small // whole_side)
        bounds.append((begin, np.maximum(end, begin + 1)))
    (left, right), (top, bottom) = bounds
    inside = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return (inside > 0) & (inside >= least * (right - left) * (bottom - top))


# ---- the data set ----


class SceneRows(PerProcess):
    """Window i as a dict. starts: the number of the first window of each file."""

    def __init__(self, reader, files, size, parts, labels, steps, broken):
        import numpy as np
        self.reader, self.files, self.size, self.steps, self.broken = reader, files, size, steps, broken
        self.stamps, self.sizes, self.cuts, coords = ([*column] for column in zip(*parts))
        self.starts = np.cumsum([0, *map(len, coords)])
        self.coords = np.concatenate(coords).astype(np.int32)
        self.labels, self.classes = (None, None) if labels is None else classed(labels)

    def __setstate__(self, state):
        vars(self).update(state)
        self.reader.load()              # once for all processes that are forked

    def __len__(self):
        return int(self.starts[-1])

    def open(self):
        return Kept(_MOST_OPEN, lambda at: self.reader.open(self.files[at]), lambda opened: opened.close())

    def _drawn(self, begin, at, side):
        """Where a window is that lies anywhere from its place to the next one's."""
        return begin + random.randint(0, max(0, min(self.steps[at] - 1, side - self.cuts[at].extent - begin)))

    def _sample(self, at, index, place, fields):
        """The picture, the label behind it, which pipelines know by its place, and the others."""
        import numpy as np
        (picture, pixels), *others = fields.items()
        label = {} if self.labels is None else {"label": self.labels[index].item()}
        return {picture: pixels, **label, **dict(others), "coords": np.array(place, np.int64), self.reader.noun: at}

    def __example__(self):
        return self._sample(0, 0, (0, 0), self.reader.example(self.size))

    def __getitem__(self, index):
        index = range(len(self))[index]
        at = int(self.starts.searchsorted(index, "right")) - 1
        path = self.files[at]
        if at in self.broken:
            raise DatasetError(f"{path}: {self.broken[at]}")
        unchanged(path, self.stamps[at])
        x, y = (int(value) for value in self.coords[index])
        if self.steps is not None:
            x, y = (self._drawn(begin, at, side) for begin, side in zip((x, y), self.sizes[at]))
        try:
            fields = self.reader.fields(self.opened().get(at), x, y, self.cuts[at], self.size)
        except (Unreadable, *self.reader.errors) as why:
            self.opened().forget(at)        # OpenSlide says nothing but that after an error
            raise DatasetError(f"{path}, window at {x}, {y}: {why}") from None
        return self._sample(at, index, (x, y), fields)

    def __getitems__(self, indices):
        """Several, in the order in which they lie in the files, whose tiles they share."""
        made = {index: self[index] for index in sorted({*indices})}
        return [made[index] for index in indices]


class Windows(Wrapped):
    """Of from_slides() and from_rasters(), for Loader.

    files: the paths, by the number that a batch has. windows: int64 [samples, 3], file, x and y of each. sides: of each file, how many pixels of its
    finest level a window is wide. classes: the labels' words, if they are words.
    """

    def __init__(self, rows, *, name, version, workers, timeout, room, keep, masks=None):
        super().__init__(rows, name, version, workers, timeout, rows.steps is not None, room, keep, exact=True, masks=masks)
        self.files, self.classes, self.sides = rows.files, rows.classes, [cut.extent for cut in rows.cuts]

    @property
    def windows(self):
        import numpy as np
        rows = self.dataset
        return np.column_stack([np.repeat(np.arange(len(rows.files)), np.diff(rows.starts)), rows.coords]).astype(np.int64)


def rows_of(reader: Reader, files: list[str], size: int | None, *, cut_of: Callable[[str, Scene, Place | None, int], Cut],
            step: Callable[[int], float], least: float | None, at: Any, labels: Any, jitter: bool, index: str | os.PathLike | None) -> SceneRows:
    """The windows of files. cut_of: how a file's are read. step: of windows of that size, the size's share from one to the next. least: the
    share of a window that must count; None: all count."""
    import numpy as np
    reader.load()
    places, of_file = [None] * len(files), None
    if at is not None:
        if jitter:
            raise ArgumentError("jitter= draws windows of a grid, and at= says where they are")
        places = places_of(at, files, reader.noun)
        some = named(places, files, reader.noun, "at=")
        files, places = [files[each] for each in some], [places[each] for each in some]
    if labels is not None:
        of_file = labels_of(labels, files, reader.noun)
        some = named(of_file, files, reader.noun, "labels=")
        files, places, of_file = ([column[each] for each in some] for column in (files, places, of_file))
    size = _size_of(size, places, files)
    stamps = [stamp_of(file) for file in files]
    scenes = scenes_of(reader, files, stamps, least is not None and at is None, index)
    broken = {number: why for number, why in enumerate(scenes) if isinstance(why, str)}
    if len(broken) == len(files):
        raise DatasetError(f"{files[0]}: {broken[0]}")
    parts, steps, by_window = [], [], []
    for number, (file, stamp, scene, place) in enumerate(zip(files, stamps, scenes, places)):
        cut, coords, sides = Cut(0, size, size), np.zeros((1, 2), np.int64), (size, size)
        if number not in broken:
            cut, sides = cut_of(file, scene, place, size), (scene.width, scene.height)
            coords = grid(scene, cut.extent, step(size) * cut.extent, not jitter) if place is None else coords
            if scene.share is not None and place is None:
                coords = coords[counting(scene, coords, cut.extent, least)]
        coords = coords if place is None else place.coords
        parts.append((stamp, sides, cut, coords))
        steps.append(max(1, math.floor(step(size) * cut.extent)))
        by_window += [of_file[number]] * len(coords) if of_file is not None else place.labels or [] if place is not None else []
    if not sum(len(coords) for *_, coords in parts):
        raise DatasetError(f"{files[0]}{f' and {len(files) - 1} more have' if len(files) > 1 else ' has'} no window"
                           + (" with enough to see: see tissue= or valid=" if least is not None else ""))
    return SceneRows(reader, files, size, parts, by_window or None, steps if jitter else None, broken)


def _size_of(size, places, files):
    """What is said, or what the files of places say."""
    if size is not None:
        return whole("size", size, 1)
    said = {place.size: file for file, place in zip(files, places) if place is not None and place.size}
    if len(said) > 1:
        (one, first), (other, second), *_ = said.items()
        raise DatasetError(f"the windows of {first} have {one} pixels, those of {second} {other}: give size=, to which they are resized")
    return next(iter(said), _SIZE)
