# SPDX-License-Identifier: Apache-2.0
"""Lengths of sounds and videos, which workers read from the files' heads: durations(). Windows of long recordings as samples: from_recordings()."""

import glob
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import choices, urls
from ..errors import ArgumentError, DatasetError, not_there
from ..loader import Loader
from ..segments import Segment, head_of, most_of, wave_of
from ..sources.folders import Files
from ..wrapped import Wrapped, wrap

_BATCH = 4096   # of lengths: 32 bytes each
_SOUNDS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a")
_VIDEOS = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi", ".ogv", ".m2ts", ".mts")
_LEAST_ROOM = 1 << 20
_SLACK = 1e-6   # of a window, by which a recording may be too short: times are rounded


def durations(dataset: Any, *, video: bool = False, source: Mapping[str, object] | None = None, socket: str | None = None) -> Any:
    """How long each sound or video of a data set is, by the samples' numbers: a float64 array [n, 3] of seconds, frames and frames a second.

        lengths = oa.durations("/data/speech")          # once; numpy.save() keeps it
        loader = oa.Loader("/data/speech", pipeline, 32, order=oa.orders.by_length(lengths[:, 0], 32))

    accessd's workers look into the head of each file, of every format and kind of data set, and decode no sound; of a video they look for the
    times of its frames, and decode the first one. It takes as long as reading the files. What cannot be read has zeros. Of a sample that is a
    part of a file (Segment, from_jsonl(start=)) it is the part's. Of from_lhotse() and from_kaldi() no file is read where their manifests say it.

    dataset, source, socket: as of Loader; also of wrap() and the from_...() functions, of which the first field is the file.
    video: True: of videos their frames; else their sound. A video's rate is that of its frames on the average.
    Any process: ranks that need it ask each for themselves.
    """
    import numpy as np
    known = getattr(dataset, "durations", None)
    if known is not None and not video:
        return known.copy()
    text = json.dumps({"ops": [{"op": "duration", "of": "video" if video else "sound"}]})
    with Loader(dataset, text, _BATCH, shuffle=False, epochs=1, bad="skip", bad_budget=(1 << 62), as_="numpy", rank=0, world_size=1, source=source,
                socket=socket, job="durations") as loader:
        found = np.zeros((len(loader.dataset), 3))
        for batch in loader:
            ids = np.asarray(batch.ids)
            first = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
            length = batch["length"] if isinstance(batch, dict) else batch[-1]
            found[ids, 0], found[ids, 1], found[ids, 2] = np.asarray(first)[:, 0], np.asarray(length), np.asarray(first)[:, 1]
        return found


# ---- the files ----


def _below(folder):
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(place, name) for name in sorted(names) if not name.startswith(".") and name.lower().endswith(_SOUNDS + _VIDEOS))


def _found(path):
    path = urls.local(path, "from_recordings()")
    found = list(_below(path)) if os.path.isdir(path) else [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not found:
        raise not_there(f"no sound and no video is at {path}", path)
    return [os.path.abspath(each) for each in found]


def _files(paths):
    found = [each for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths) for each in _found(path)]
    if not found:
        raise ArgumentError("paths is an empty list: name a file, a folder or a pattern")
    are_videos = {path.lower().endswith(_VIDEOS) for path in found}
    return found, are_videos


class _Whole:
    """Files as they are, to measure them."""

    def __init__(self, files: Files):
        self.files = files

    def __len__(self):
        return len(self.files.paths)

    def __getitem__(self, at):
        return self.files.read(at)


def _seconds(files, is_video, socket):
    """Of each file. WAV files need not be read, as they may be longer than what a worker can take."""
    import numpy as np
    seconds, others = np.zeros(len(files.paths)), []
    for at, path in enumerate(files.paths):
        with open(path, "rb") as file:
            wave = None if is_video else wave_of(file)
        if wave is None:
            others.append(at)
        else:
            seconds[at] = wave.frames / wave.rate
    if others:
        some = Files([files.paths[at] for at in others])
        seconds[others] = durations(wrap(_Whole(some), random=False, room=_room(some)), video=is_video, socket=socket)[:, 0]
    return seconds


def _room(files):
    return files.largest + _LEAST_ROOM


def _most(files, seconds):
    """The same for windows."""
    most = (min(size, most_of(seconds, *head_of(path)) or size) for path, size in zip(files.paths, files.sizes))
    return max(most, default=0) + _LEAST_ROOM


def read_part(files: Files, at: int, start: float, seconds: float, channel: int | None = None) -> Segment:
    """Of the file of that number; errors name it."""
    path = files.paths[at]
    try:
        files.check(at)
        return Segment.read(path, start, seconds, channel)
    except OSError as why:
        raise DatasetError(f"{path}: {why.strerror}") from None
    except DatasetError as why:
        raise DatasetError(f"{os.path.basename(path)}: {why}: {path}") from None


# ---- windows ----


def _starts(length, seconds, every, clips, rest):
    """When the windows of a recording begin."""
    if length <= 0:
        return []
    if clips is not None:
        free = max(length - seconds, 0.0)
        return [free / 2] if clips == 1 else [free * at / (clips - 1) for at in range(clips)]
    count = math.floor((length - seconds) / every + _SLACK) + 1 if length >= seconds else 1
    starts = [at * every for at in range(count)]
    if rest and count * every < length and starts[-1] + seconds < length:
        starts.append(count * every)
    return starts


class Windows:
    """A sample is a window of a recording."""

    def __init__(self, files, of, starts, seconds, field, labels):
        self.files, self.of, self.starts, self.seconds, self.field, self.labels = files, of, starts, seconds, field, labels

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        index = range(len(self))[index]
        at, start = int(self.of[index]), float(self.starts[index])
        segment = read_part(self.files, at, start, self.seconds)
        label = {} if self.labels is None else {"label": self.labels[at]}
        return {self.field: segment, **label, "start": self.starts[index], "recording": at}


def _checked(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ArgumentError(f"{name} is {value!r}: a number of seconds above 0")
    return float(value)


def from_recordings(paths: str | os.PathLike | Sequence, seconds: float, *, every: float | None = None, clips: int | None = None, rest: bool = False,
                    labels: Callable[[str], int] | None = None, durations: Sequence[float] | None = None, workers: int | None = None,
                    name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0,
                    socket: str | None = None) -> Wrapped:
    """Windows of long sounds or videos as samples, for Loader: every so many seconds of each recording one begins.

        data = oa.from_recordings("/data/forest", 10.0, every=5.0)
        for batch in oa.Loader(data, oa.audio(32000, 10.0, crop="begin"), 64): batch["audio"], batch["recording"], batch["start"]

        test = oa.from_recordings("/data/kinetics/val", 2.56, clips=10)          # ten clips of each video, spread evenly over it
        for batch in oa.Loader(test, oa.video(16, 224, fps=6.25, train=False), 8): batch["video"], batch["recording"]

    paths: a folder (its sounds, or its videos, and those in folders below), a file, a pattern, or a list of these. They are sounds or videos, and not
        both. data.dataset.files.paths has them, in order.
    seconds: the length of a window; the pipeline takes its part of it, all of it where it takes as much.
    every: from one window's begin to the next; default seconds, so that they adjoin. Windows lie in the recording, but that of one which is
        shorter than a window. rest=True: one more has what is behind the last one.
    clips: in place of every: so many windows of each recording, the first at its begin and the last at its end; 1: in its middle.
    labels: a function of a file's path that returns its class; it is called here, once for each.
    durations: of each file, in seconds, as durations() has found them; default: they are measured here. Recordings that cannot be read have
        no window.

    A sample has the field "audio" or "video", "label" where labels says it, "start" (float64, seconds) and "recording" (int64, the number of
    the file). Of WAV files just the window's bytes are read, of long FLAC files those around it. Others are read whole for each window, so they must fit into accessd's arena.

    The other arguments are those of wrap() and Loader.
    """
    import numpy as np
    seconds = _checked("seconds", seconds)
    if clips is not None and (every is not None or rest):
        raise ArgumentError("clips= says where windows are, and so do every= and rest=: give one of them")
    clips = None if clips is None else choices.counted("clips", clips)
    every = seconds if every is None else _checked("every", every)
    found, are_videos = _files(paths)
    if len(are_videos) > 1:
        raise ArgumentError("paths has sounds and videos: make a data set of each, and mix() of them")
    is_video, files = are_videos.pop(), Files(found)
    lengths = _seconds(files, is_video, socket) if durations is None else np.asarray(durations, np.float64)
    if lengths.shape != (len(found),) or not np.isfinite(lengths).all():
        raise ArgumentError(f"durations has the shape {lengths.shape}, or numbers that are none: give the seconds of each of {len(found):,} files")
    made = [_starts(float(length), seconds, every, clips, rest) for length in lengths]
    starts = np.array([start for each in made for start in each])
    if not len(starts):
        raise DatasetError(f"none of {len(found):,} recordings can be read, such as {found[0]}")
    of = np.repeat(np.arange(len(found), dtype=np.int32), [len(each) for each in made])
    windows = Windows(files, of, starts, seconds, "video" if is_video else "audio", None if labels is None else [int(labels(path)) for path in found])
    return wrap(windows, random=False, name=name, version=version, workers=workers, timeout=timeout, room=_most(files, seconds) if room is None else room,
                keep=keep)
