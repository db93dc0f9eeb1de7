# SPDX-License-Identifier: Apache-2.0
"""Episodes of robots and of offline reinforcement learning in HDF5 and Zarr, as robomimic, LIBERO, Diffusion Policy, Minari and D4RL write them.

One function opens all of them: they differ in where an episode's arrays lie, which a file says for itself (episode_files.py), and in nothing that a
sample shows. Numbers are read once by the pool's first process, from which its workers are forked; frames, and whatever else is large, when a sample
asks for them."""

import os
from collections.abc import Callable, Mapping, Sequence

from ..columns import Blocks, named
from ..errors import ArgumentError, DatasetError
from ..masks import Image
from ..record import PictureFile, pixels_of
from ..sources.tables import size_of
from .episode_files import Column, Files, columns_of, episodes_of, numbers_of, paths_of, reading
from .steps import Form, Robots, Stats, StepRows, in_order, numbered, statistics, windows

_CACHE = 256 << 20
_TASK = "language_instruction"


class EpisodeRows(StepRows):
    """Steps of the episodes that are meant, as dicts."""

    def __init__(self, paths, names, delta_steps, split, numbers, dropped, form, cache):
        self.episodes, self._meant, left = [], [], {}
        self.columns: dict[str, Column] = {}
        for at, path in enumerate(paths):
            with reading(path) as root:
                for episode, is_meant in episodes_of(at, path, root, split):
                    self._meant += [len(self.episodes)] * is_meant
                    self.episodes.append(episode)
                first = next((episode for episode in self.episodes if episode.length and episode.file == at), None)
                if not self.columns and first is not None:
                    self.columns, left = columns_of(root, first, f"{path}, {first.group}," if first.group else path)
        if not self.columns:
            raise DatasetError(f"{', '.join(paths)}: there is no step of an episode")
        if any(episode.text is not None for episode in self.episodes):
            self.columns[_TASK] = Column("task", "object")
        self._meant = self._of_these(numbers)
        self.episodes = [self.episodes[number] for number in self._meant]
        if not self.episodes:
            raise DatasetError(f"{', '.join(paths)}: no episode is meant")
        super().__init__(names, self.columns, left, windows(delta_steps, self.columns, self._why_no_window),
                         [name for name, column in self.columns.items() if column.is_camera], form)
        self._set_lengths([episode.length for episode in self.episodes], dropped)
        self.columns = {name: self.columns[name] for name in self.names if name in self.columns}
        self._look(paths, cache)
        self._kept = None

    def _of_these(self, numbers):
        if numbers is None:
            return self._meant
        wanted = {*numbered(numbers)}
        for number in sorted(wanted):
            if not 0 <= number < len(self.episodes):
                raise ArgumentError(f"episodes= names {number}: the data set has {len(self.episodes):,}, from 0 on")
        return [number for number in self._meant if number in wanted]

    def _look(self, paths, cache):
        """At what is read when it is asked for, and in which blocks, if its chunks have several steps and not all are kept."""
        chunked = [column for column in self.columns.values() if column.chunk > 1 and not column.is_kept]
        largest = max((column.chunk * column.bytes for column in chunked), default=1)
        steps = max((column.chunk for column in chunked), default=1)
        together = sum(-(-steps // column.chunk) for column in chunked)         # chunks that a block costs
        self.blocks, pieces = None, max(2 * len(chunked), cache // largest)
        self.files = Files(paths, ["meta/episode_ends", *(f"{self.episodes[0].group}/{name}" for name in self.columns)], pieces, cache)
        starts, window, before = [], max(1, pieces // max(1, together) - 1), None
        for at, episode in enumerate(self.episodes if chunked else ()):
            end = episode.begin + int(self.starts[at + 1] - self.starts[at])
            for row in (episode.begin, *range((episode.begin // steps + 1) * steps, end, steps)):
                block = episode.file, episode.group, row // steps
                if row < end and block != before:
                    starts.append(int(self.starts[at]) + row - episode.begin)
                    before = block
        if len(starts) > window:
            self.blocks = Blocks(starts, window, together * largest)

    def _why_no_window(self, name):
        return {"text": "a text", "task": "of the episode"}.get(self.columns[name].kind)

    def numbers(self):
        return self._meant

    def about(self):
        return [{**about, "file": self.files.paths[episode.file], "group": episode.group, **({_TASK: episode.text} if episode.text is not None else {})}
                for about, episode in zip(super().about(), self.episodes)]

    def stats(self):
        return Stats([name for name, column in self.columns.items() if column.kind == "number" and column.is_kept and column.dtype != "bool"], self._statistics)

    def _statistics(self, name):
        """Over the steps of the episodes; what they have beyond these is no step."""
        import numpy as np
        values, first = self._numbers(name)
        return statistics(np.concatenate([values[begin:begin + length] for begin, length in zip(first, self.lengths)]))

    # ---- in the pool ----

    def __getstate__(self):
        return {**vars(self), "_kept": None}

    def __setstate__(self, state):
        vars(self).update(state)
        self.files.unchanged()
        self._numbers(None)

    def _numbers(self, name):
        if self._kept is None:
            kept = {each: column for each, column in self.columns.items() if column.kind != "task" and column.is_kept}
            self._kept = numbers_of(self.files, self.episodes, kept)
        return None if name is None else (self._kept[0][name], self._kept[1][name])

    @property
    def bytes_of_texts(self):
        """The most that a text has, so that the pool need not guess by the first sample."""
        texts = {name: [episode.text or "" for episode in self.episodes] if column.kind == "task" else self._numbers(name)[0]
                 for name, column in self.columns.items() if column.kind in ("text", "task")}
        return {name: max(1, *(len(text.encode()) for text in each)) for name, each in texts.items()}

    # ---- a sample ----

    def __getitems__(self, indices):
        return in_order(self, indices)

    def _count(self, name, at):
        return int(self.lengths[at]) + self.columns[name].more

    def _value(self, name, at, steps, is_window):
        import numpy as np
        column, episode = self.columns[name], self.episodes[at]
        if column.kind == "task":
            return episode.text or ""
        if column.is_kept:
            values, first = self._numbers(name)
            return values[[int(first[at]) + step for step in steps]] if is_window else values[int(first[at]) + steps[0]]
        values = self.files.values(episode, name, column, steps)
        if column.kind == "picture":
            if not is_window and self.form.is_plain(name):
                return PictureFile(values[0])
            values = [pixels_of(value, f"step {step} of {episode.group}, {name},") for step, value in zip(steps, values)]
        made = np.stack(values) if is_window else values[0]
        return self.form.finished(made, name) if column.is_camera else made


def from_episodes(path: str | os.PathLike | Sequence, columns: Sequence[str] | None = None, *, delta_steps: Mapping[str, Sequence[int]] | None = None,
                  split: str | None = None, episodes: Sequence[int] | None = None, drop_n_last_frames: int = 0,
                  images: str | Sequence[str] | Mapping[str, Image] | None = None, image_transforms: Callable | None = None,
                  pixels: Mapping[str, tuple[int, int]] | None = None, dtype: str = "uint8", cache: int | str = _CACHE, workers: int | None = None,
                  name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Robots:
    """Episodes of robots, or of offline reinforcement learning, in HDF5 or Zarr, for Loader. Needs h5py or zarr.

        data = oa.from_episodes("/data/libero_90", ["obs/agentview_rgb", "actions", "language_instruction"], delta_steps={"actions": range(16)})
        for batch in oa.Loader(data, oa.imagenet_train(224), batch_size=256):
            batch["obs/agentview_rgb"], batch["actions"], batch["actions_is_pad"], batch["language_instruction"]

    A sample is a step of an episode, with the arrays of the episode's group, called as "obs/agentview_rgb". Floats become float32, whole numbers int64.
    Which kind of files it is, they say themselves:

        robomimic, MimicGen, LIBERO     HDF5: data/demo_N/..., mask/NAME
        Diffusion Policy, UMI           Zarr: data/..., meta/episode_ends
        Minari                          HDF5: episode_N/...
        D4RL                            HDF5: actions, observations, ..., terminals, timeouts
        ALOHA                           HDF5, a file for each episode: action, observations/...

    path: a file, a Zarr (a folder, or .zarr.zip), a folder with such files in it or below (LIBERO's suites; Minari's folder of a data set), a pattern, or a
        list of these. Arrays are those of the first episode, and all episodes have them.
    columns: the fields of a batch, in this order; what is not named is not read. "language_instruction" is the text of LIBERO's problem_info or
        RoboCasa's ep_meta. "episode_index" and "frame_index" (of the step in its episode), int64, may be named, too. NAME_is_pad comes with NAME.
        Default: all, cameras first; a warning says what is left out.
    delta_steps: {array: steps from the sample's own}: windows [T, ...]. A name with arrays below it, as "obs", is of all of these. What would lie outside
        of the episode is its first or last step, and KEY_is_pad (bool, [T]) there. {"observations": [0, 1]} has the next observation of a transition,
        with Minari also that behind the last action, which is no padding.
    split: a filter key of robomimic's (mask/NAME), as "train" or "valid".
    episodes: the numbers of those that are meant, of all episodes of all files in their order (by name, and by N). data.episodes has all, or these.
    drop_n_last_frames: steps at the end of each episode that are no samples, but in windows, as of LeRobot.
    images: with a pipeline: cameras beside the first, of its size, that go through it with the same draws, as in wrap().
    pixels, image_transforms, dtype: of cameras, as of from_rlds(). Cameras are arrays of uint8, [T, H, W, C] with 1, 3 or 4 channels; of floats with
        whole numbers from 0 to 255, [T, H, W, 3], which become uint8; and of the bytes of JPEG or PNG files.
    cache: bytes of decoded chunks that each process of the pool keeps, of arrays with over 1,024 values in a step, and of cameras. If chunks have
        several steps and it does not hold all of them, a random order is shuffle="blocks"; see from_parquet().

    The first of columns, a camera, follows the Loader's pipeline, if it has no window. Others come as they are.

    data.stats["actions"]: {"mean", "std", "min", "max", "q01", "q99": array, "count": steps} over all steps of the episodes that are meant, each computed
    at the first look at it. data.episodes: [{"episode_index", "length", "file", "group", "language_instruction"}]. data.cameras.

    All other arrays are in the pool's memory, once. A file that was written since, and an array that is not as the first episode's, is an error; a step
    that cannot be read is a bad sample.

    The other arguments are those of wrap().
    """
    if isinstance(drop_n_last_frames, bool) or not isinstance(drop_n_last_frames, int) or drop_n_last_frames < 0:
        raise ArgumentError(f"drop_n_last_frames is {drop_n_last_frames!r}: a number of steps, from 0 on")
    rows = EpisodeRows(paths_of(path), named(columns), delta_steps, split, episodes, drop_n_last_frames, Form(pixels, image_transforms, dtype),
                       size_of(cache, "cache"))
    return Robots(rows, images, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep)
