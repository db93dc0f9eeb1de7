# SPDX-License-Identifier: Apache-2.0
"""Data sets of robots in LeRobot's format, for the pool (wrap()): what LeRobotDataset gives for each frame.

Numbers are read once by the pool's first process, from which its workers are forked, so they are in memory once. Frames of cameras are decoded
when they are asked for, from MP4 files (frames.py) or, where they lie in Parquet, from row groups (tables.py)."""

import bisect
import hashlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence

from ..columns import Blocks, by_name, named
from ..errors import ArgumentError, DatasetError, MissingError, TransformError
from ..record import pixels_of
from ..sources.tables import ParquetRows, needs, size_of, stamp_of
from .frames import Videos
from .robot_files import Meta, found
from .steps import Form, Robots, StepRows, in_order, windows

_CACHE = 256 << 20
_TASK = "task"


# ---- numbers ----


def _values(column, shape, name):
    """All of a column, [rows, ...], of the types that torch.tensor() gives them."""
    import numpy as np
    array, count, is_list = column.combine_chunks(), len(column), False
    if hasattr(array, "chunks"):       # some versions of pyarrow
        array = array.chunk(0)
    while True:
        array = getattr(array, "storage", array)
        if array.null_count:
            raise DatasetError(f"column {name} has rows without a value")
        if not hasattr(array.type, "value_type"):
            break
        array, is_list = array.flatten(), True
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype == object and not is_list:
        return list(values)             # of texts
    if values.dtype.kind not in "fiub":
        raise TransformError(f"column {name} is {column.type}, which has no place in a batch: name others, by columns=[...]")
    values = values.astype({"f": np.float32, "b": bool}.get(values.dtype.kind, np.int64), copy=False)
    if not is_list:
        return values
    if values.size != count * np.prod(shape, dtype=np.int64):
        raise DatasetError(f"column {name} has other rows than of the shape {shape} that meta/info.json says")
    return values.reshape(count, *shape)


class _Numbers:
    """Columns of the Parquet files, whole."""

    def __init__(self, meta, files, episodes, columns):
        import numpy as np
        import pyarrow.parquet
        parts = {name: [] for name in columns}
        for file in files:
            try:
                with pyarrow.parquet.ParquetFile(meta.path(file), memory_map=True) as opened:
                    missing = [name for name in columns if name not in opened.schema_arrow.names]
                    if missing:
                        raise DatasetError(f"{meta.path(file)} has no column {missing[0]}")
                    table = opened.read(columns, use_threads=False)
            except (OSError, ValueError) as why:
                raise DatasetError(f"{meta.path(file)} cannot be read: {why}") from None
            for name in columns:
                parts[name].append(_values(table.column(name), meta.features[name]["shape"], name))
        self.columns = {name: [*itertools.chain(*part)] if isinstance(part[0], list) else np.concatenate(part) for name, part in parts.items()}
        want = np.repeat([episode.number for episode in episodes], [episode.length for episode in episodes])
        if not np.array_equal(self.columns["episode_index"], want):
            raise DatasetError(f"{meta.path('data')} has other episodes, or other lengths of them, than {meta.path('meta')} says")


# ---- samples ----


def _steps(delta_timestamps, fps, tolerance):
    """{feature: frames ahead}, as LeRobot rounds seconds."""
    steps = {}
    for name, deltas in (by_name("delta_timestamps", delta_timestamps, "[-0.1, 0.0]") or {}).items():
        steps[name] = [round(delta * fps) for delta in deltas]
        for delta, frames in zip(deltas, steps[name]):
            if abs(delta * fps - frames) / fps > tolerance:
                raise ArgumentError(f"delta_timestamps={{{name!r}: [... {delta} ...]}}: frames are 1/{fps} s apart, so it is n / {fps}, to tolerance_s={tolerance:g}")
        if not steps[name]:
            raise ArgumentError(f"delta_timestamps={{{name!r}: []}}: give seconds, as [-0.1, 0.0], or leave it out")
    return steps


class LeRobotRows(StepRows):
    """Frames of the episodes that are meant, as dicts."""

    def __init__(self, meta, episodes, columns, delta_timestamps, tolerance, form, cache):
        self.meta, self.tolerance = meta, tolerance
        there = [*meta.cameras, *(name for name in meta.features if name not in meta.cameras and name not in meta.left), _TASK]
        delta = windows(_steps(delta_timestamps, meta.fps, tolerance), there, self._why_no_window, "delta_timestamps")
        super().__init__(columns, there, meta.left, delta, meta.cameras, form)
        self.episodes = meta.chosen(episodes)
        self._set_lengths([episode.length for episode in self.episodes])
        # A file may have episodes that are not meant. Rows are those of all files that are read.
        self.files = list(dict.fromkeys(episode.data for episode in self.episodes))
        there = set(self.files)
        of_files = {file: [] for file in self.files}
        for episode in meta.episodes:
            if episode.data in there:
                of_files[episode.data].append(episode)
        self.all = [episode for file in self.files for episode in of_files[file]]
        rows = dict(zip((episode.number for episode in self.all), itertools.accumulate((episode.length for episode in self.all), initial=0)))
        self.rows = [rows[episode.number] for episode in self.episodes]
        self.stamp = self._stamp()
        in_tables = [name for name in self.cameras if meta.features[name]["dtype"] == "image"]
        self.images = ParquetRows([meta.path(file) for file in self.files], in_tables, cache) if in_tables else None
        self.blocks = self._blocks()
        self._begin()

    def _why_no_window(self, name):
        return "a text" if name == _TASK or self.meta.features[name]["dtype"] == "string" else None

    def numbers(self):
        return [episode.number for episode in self.episodes]

    def about(self):
        return [{**about, "tasks": list(episode.tasks)} for about, episode in zip(super().about(), self.episodes)]

    def stats(self):
        return self.meta.stats(self.episodes)

    def _stamp(self):
        """Of all files that samples are made of."""
        stamps = hashlib.blake2b(digest_size=16)
        videos = {file for episode in self.episodes for name, (file, _) in episode.videos.items() if name in self.cameras}
        for file in [*self.files, *sorted(videos)]:
            try:
                stamps.update(repr((file, stamp_of(self.meta.path(file)))).encode())
            except FileNotFoundError:
                raise MissingError(f"{self.meta.path(file)} is not there: fetch the whole data set, or name episodes=, or cameras by columns=, that are") from None
        return stamps.digest()

    def _blocks(self):
        """Row groups, where images lie in them and not all are kept."""
        if self.images is None or self.images.blocks is None:
            return None
        starts = set()
        for row in self.images.starts:
            at = max(0, bisect.bisect_right(self.rows, row) - 1)
            starts.add(int(self.starts[at]) + min(max(0, row - self.rows[at]), self.episodes[at].length))
        starts = sorted({0, *starts} - {len(self)})
        window = self.images.window
        return Blocks(starts, window, self.images.blocks.largest) if len(starts) > window else None

    # ---- in the pool ----

    def _begin(self):
        self._numbers, self._videos = None, Videos()

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_numbers", "_videos")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()
        self._import()
        if self._stamp() != self.stamp:
            raise DatasetError(f"{self.meta.root} was written to since the data set was opened")
        self._column("episode_index")

    def _import(self):
        needs("pyarrow.parquet", "oneaccess.from_lerobot()")
        if any(self.meta.features[name]["dtype"] == "video" for name in self.cameras):
            needs("av", "a data set of robots with videos")

    def _column(self, name):
        if self._numbers is None:
            columns = {"episode_index", "timestamp", *(["task_index"] if _TASK in self.names else []),
                       *(name for name in self.names if name in self.meta.features and name not in self.meta.cameras)}
            self._numbers = _Numbers(self.meta, self.files, self.all, sorted(columns)).columns
        return self._numbers[name]

    @property
    def bytes_of_texts(self):
        """The most that a text has, so that the pool need not guess by the first sample."""
        found = {name: max((len(text.encode()) for text in self._column(name)), default=0) for name in self.names
                 if name in self.meta.features and name not in self.meta.cameras and isinstance(self._column(name), list)}
        if _TASK in self.names:
            found[_TASK] = max((len(text.encode()) for text in self.meta.tasks.values()), default=0)
        return {name: max(1, most) for name, most in found.items()}

    # ---- a sample ----

    def __getitems__(self, indices):
        return in_order(self, indices)

    def _value(self, name, at, steps, is_window):
        rows = [self.rows[at] + step for step in steps]
        if name == _TASK:
            return self._task(int(self._column("task_index")[rows[0]]))
        if name in self.meta.cameras:
            return self.form.finished(self._frames(name, self.episodes[at], rows, is_window), name)
        values = self._column(name)
        return values[rows] if is_window else values[rows[0]]

    def _task(self, number):
        if number not in self.meta.tasks:
            raise DatasetError(f"a row has task {number}, which {self.meta.path('meta')} has not")
        return self.meta.tasks[number]

    def _frames(self, name, episode, rows, is_window):
        """[H, W, 3], or of a window [T, H, W, 3]."""
        import numpy as np
        if name not in episode.videos:
            return np.stack([self._image(name, row) for row in rows]) if is_window else self._image(name, rows[0])
        file, begin = episode.videos[name]
        frames = self._videos.pixels(self.meta.path(file), [begin + float(self._column("timestamp")[row]) for row in rows], self.tolerance)
        return frames[0] if len(rows) == 1 else frames      # LeRobot gives one frame of a video without the window's dimension

    def _image(self, name, row):
        data = self.images[row][name]
        if data is None:
            raise DatasetError(f"column {name} has no image in row {row}")
        return pixels_of(data, f"column {name}, row {row},")


class LeRobot(Robots):
    """Of from_lerobot(), for Loader."""

    def __init__(self, rows, **options):
        super().__init__(rows, **options)
        meta = rows.meta
        self.root, self.fps, self.features, self.tasks, self.cameras = meta.root, meta.fps, meta.features, meta.tasks, meta.cameras


def from_lerobot(root: str | os.PathLike, columns: Sequence[str] | None = None, *, delta_timestamps: Mapping[str, Sequence[float]] | None = None,
                 episodes: Sequence[int] | None = None, image_transforms: Callable | None = None, pixels: Mapping[str, tuple[int, int]] | None = None,
                 dtype: str = "uint8", tolerance_s: float = 1e-4, revision: str | None = None, cache: int | str = _CACHE, workers: int | None = None,
                 name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> LeRobot:
    """A data set of robots in LeRobot's format (2.0, 2.1 and 3.0), for Loader. Needs pyarrow and, for videos, av (PyAV).

        data = oa.from_lerobot("/data/pusht", delta_timestamps={"observation.image": [-0.1, 0.0], "action": [n / 10 for n in range(16)]})
        for batch in oa.Loader(data, batch_size=64):
            batch["observation.image"], batch["observation.state"], batch["action"], batch["action_is_pad"], batch["task"]

    A sample is a frame, with what LeRobotDataset(...)[i] has: all features of meta/info.json, for each feature of delta_timestamps NAME_is_pad
    (bool), and the text "task". Float64 becomes float32, whole numbers int64.

    root: the data set's folder; or its name on the Hub ("lerobot/pusht"), from where huggingface_hub fetches it if it is installed.
    columns: the fields of a batch, in this order; a camera that is not named is not decoded. NAME_is_pad comes with NAME. Default: all,
        cameras first; a warning says what is left out (depth maps, and types of which a batch has none).
    delta_timestamps: {feature: seconds from the frame}: windows, as of LeRobot: [T, ...], multiples of 1 / fps. What would lie outside of the
        episode is its first or last frame, and is_pad there.
    episodes: the numbers of those that are meant; samples are in the data set's order. data.episodes has all, or these.
    dtype: of cameras: "uint8": [H, W, 3]; "float32": [3, H, W] in 0 ... 1, as LeRobot's.
    pixels: {camera: (height, width)}: frames are resized to that (bilinear, by Pillow) before anything else.
    image_transforms: as of LeRobot: a function of a camera's tensor [..., 3, H, W] of dtype, such as one of torchvision.transforms.v2, for each
        camera. random and torch are seeded for each sample.
    tolerance_s: a frame of a video is at most so far from its timestamp, or the sample is bad.
    revision: of the Hub.
    cache: bytes of row groups that each process keeps where images lie in Parquet files; as of from_parquet(), with shuffle="blocks" where
        not all fit.

    With a pipeline of the Loader, the first camera of columns follows it, if it has no window, and others come as they are.

    data.stats: {feature: {"mean", "std", "min", "max", "count"}} as arrays, of version 2.1 of the episodes that are meant. data.fps, data.tasks
    ({task_index: text}), data.episodes, data.features, data.cameras.

    The other arguments are those of wrap().
    """
    needs("pyarrow.parquet", "oneaccess.from_lerobot()")
    rows = LeRobotRows(Meta(found(root, revision)), episodes, named(columns), delta_timestamps, tolerance_s, Form(pixels, image_transforms, dtype),
                       size_of(cache, "cache"))
    rows._import()
    return LeRobot(rows, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep)
