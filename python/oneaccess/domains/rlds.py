# SPDX-License-Identifier: Apache-2.0
"""Data sets of robots in RLDS, as TensorFlow Datasets wrote them (Open X-Embodiment, DROID, Bridge, LIBERO), read without it: a record is an
episode, and a sample one of its steps. rlds_files.py knows where everything is, so a sample costs only what it has in it."""

import os
import zlib
from collections.abc import Callable, Mapping, Sequence

from .. import urls
from ..columns import named
from ..errors import ArgumentError, DatasetError, TransformError
from ..masks import Image
from ..record import PictureFile, pixels_of
from ..sources.noted import folder_of
from ..sources.tfds import Info, TFDSRows
from .rlds_files import Column, Index, IndexStats, why_not
from .steps import Form, Robots, StepRows, windows


def _columns(info):
    """{name: Column}, and why others have no place: those of steps, then those of their episodes."""
    if not info.steps:
        raise ArgumentError(f"{info.path} has no steps of episodes (a Dataset within features.json), so it is no data set in RLDS: oneaccess.from_tfds() opens"
                            " others")
    within = {leaf.name.removesuffix(f"/{name}") for name, leaf in info.steps.items()}
    leaves = {feature.name: (feature, False) for feature in info.features if feature.name not in within}
    leaves.update((name, (leaf, True)) for name, leaf in info.steps.items())
    left = {name: why for name, (feature, _) in leaves.items() if (why := why_not(feature))}
    columns = {name: Column(*found) for name, found in leaves.items() if name not in left}
    if not any(column.is_step for column in columns.values()):
        raise TransformError(f"no feature of the steps of {info.path} has a place in a batch: {'; '.join(f'{name} {why}' for name, why in left.items())}")
    return dict(sorted(columns.items(), key=lambda item: (item[1].feature.kind != "picture", not item[1].is_step))), left


class RLDSRows(StepRows):
    """Steps of the episodes of a split, as dicts."""

    def __init__(self, info, split, names, delta_steps, form, folder):
        columns, left = _columns(info)
        self.columns = columns
        super().__init__(names, columns, left, windows(delta_steps, columns, self._why_no_window),
                         [name for name, column in columns.items() if column.feature.kind == "picture"], form)
        episodes = TFDSRows(info, split, [])
        if episodes.format != "tfrecord":
            raise DatasetError(f"{info.path} has episodes in files of the format {episodes.format}, of which nothing can be read alone: prepare it with"
                               " file_format=\"tfrecord\"")
        self.ranges = episodes.ranges
        self.index = Index(episodes.files, list(columns.values()), folder)
        self._begin()

    def _why_no_window(self, name):
        column = self.columns[name]
        return "of the episode" if not column.is_step else "a text" if column.feature.kind == "text" else None

    def _begin(self):
        import numpy as np
        firsts = [0, *(int(count) for count in self.index.ends)]
        self._episodes = np.concatenate([np.arange(firsts[at] + first, firsts[at] + end) for at, first, end in self.ranges])
        self._set_lengths(self.index.steps[self._episodes])

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_episodes", "lengths", "starts")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()

    @property
    def bytes_of_texts(self):
        """The most that a text has, so that the pool need not guess by the first sample."""
        texts = [name for name in self.names if name in self.columns and self.columns[name].feature.kind == "text"]
        return {name: max(1, self.index.longest_of(self.columns[name])) for name in texts}

    def stats(self):
        return IndexStats(self.index, self.columns, self._episodes)

    def _sample(self, at, step):
        try:
            return super()._sample(at, step)
        except (DatasetError, TransformError):
            raise
        except (ValueError, IndexError, KeyError, TypeError, zlib.error) as why:
            raise DatasetError(f"step {step} of {self.index.called(int(self._episodes[at]))} is not as features.json says: {type(why).__name__}: {why}") from None

    def _value(self, name, at, steps, is_window):
        import numpy as np
        column, episode = self.columns[name], int(self._episodes[at])
        if column.feature.kind == "text":
            return self.index.text(column, episode, steps[0])
        if column.feature.kind == "picture":
            return self._frames(name, episode, steps, is_window)
        values = self.index.values(column, episode, steps if column.is_step else [0])
        kind = "b" if column.feature.dtype == "bool" else values.dtype.kind
        values = values.astype({"f": np.float32, "b": bool}.get(kind, np.int64), copy=False)
        return values if is_window else values[0]

    def _frames(self, name, episode, steps, is_window):
        import numpy as np
        if not is_window and self.form.is_plain(name):
            return PictureFile(self.index.part(self.columns[name], episode, steps[0]))
        frames = {step: pixels_of(self.index.part(self.columns[name], episode, step), f"step {step} of {self.index.called(episode)}, {name},")
                  for step in {*steps}}
        return self.form.finished(np.stack([frames[step] for step in steps]) if is_window else frames[steps[0]], name)


def from_rlds(path: str | os.PathLike, split: str, columns: Sequence[str] | None = None, *, delta_steps: Mapping[str, Sequence[int]] | None = None,
              images: str | Sequence[str] | Mapping[str, Image] | None = None, image_transforms: Callable | None = None,
              pixels: Mapping[str, tuple[int, int]] | None = None, dtype: str = "uint8", index: str | os.PathLike | None = None,
              workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Robots:
    """A data set of robots in RLDS that TensorFlow Datasets prepared on disk (Open X-Embodiment, DROID, Bridge, LIBERO), for Loader; TensorFlow is not needed.

        data = oa.from_rlds("/data/bridge_orig/1.0.0", "train[:95%]", ["observation/image_0", "action", "language_instruction"],
                            delta_steps={"action": range(8)})
        for batch in oa.Loader(data, oa.imagenet_train(224), batch_size=256):
            batch["observation/image_0"], batch["action"], batch["action_is_pad"], batch["language_instruction"]

    A sample is a step of an episode, with the features of the step, called as "observation/image", and those of its episode, as
    "episode_metadata/file_path". Floats become float32, whole numbers int64; texts are str.

    path: the folder of a version, with dataset_info.json and features.json. Its files are TFRecord.
    split: as TFDS has it, of episodes: "train", "train[:95%]", "train+test", "all". Samples are numbered in the order of the files.
    columns: the fields of a batch, in this order; a camera that is not named is not read. "episode_index" (in the split) and "frame_index" (of the
        step in its episode), int64, may be named, too. NAME_is_pad comes with NAME. Default: all, cameras first; a warning says what is left out,
        and why: depth, what differs in length from step to step.
    delta_steps: {feature: steps from the sample's own}: windows [T, ...]. A name with features below it, as "observation", is of all of these but
        texts. What would lie outside of the episode is its first or last step, and KEY_is_pad (bool, [T]) there. Octo's and OpenVLA's
        window_size=w, future_action_window_size=f are {"observation": range(1 - w, 1), "action": range(1 - w, f + 1)}; Octo's pad masks are
        the other way round, True where there is a step.
    images: with a pipeline: cameras beside the first, of its size, that go through it with the same draws, as in wrap().
    pixels: {camera: (height, width)}: resized to that (bilinear, by Pillow) before anything else.
    image_transforms: as of from_lerobot(): a function of a camera's tensor [..., 3, H, W] of dtype, for each camera.
    dtype: of cameras: "uint8": [H, W, 3]; "float32": [3, H, W] in 0 ... 1.
    index: the folder that keeps where each step is. Default: $XDG_CACHE_HOME/oneaccess/rlds, else ~/.cache/oneaccess/rlds.

    The first of columns, a camera, follows the Loader's pipeline, decoded by accessd's workers, if it has no window and none of pixels=,
    image_transforms= and dtype= is given. Other cameras, and all where there is no pipeline, are decoded by the pool, and need one size.
    data.dataset[i] has the bytes of such a camera's file.

    data.stats["action"]: {"mean", "std", "min", "max", "q01", "q99": array, "count": steps} over all steps of the split, as OpenVLA computes them
    (of its own split, "all"); each is computed at the first look at it, and kept. data.episodes: [{"episode_index", "length"}]. data.cameras.

    The first time, all files of the split are read from end to end, to find where steps and pictures are; a job that comes later reads only what
    was kept: 8 bytes for each text and picture, 16 for each feature of an episode. A file that was written anew is found by its size and time.
    A step that does not fit features.json is a bad sample, and an episode that does not an error. Records' checksums are not compared.

    The other arguments are those of wrap().
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"path is {path!r}: give the folder of a version of the data set")
    info = Info(os.path.abspath(urls.local(path, "from_rlds()")))
    rows = RLDSRows(info, split, named(columns), delta_steps, Form(pixels, image_transforms, dtype), folder_of("rlds", index))
    return Robots(rows, images, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep)
