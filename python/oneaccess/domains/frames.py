# SPDX-License-Identifier: Apache-2.0
"""Frames of videos at given times, as RGB, by PyAV: which frame is meant, and how few are decoded to have it."""

import math

from ..errors import DatasetError
from ..sources.tables import Kept

_MOST_OPEN = 16
_SEEK = 2           # frames that could be decoded while a key frame is looked for
_BACK = (0, 2, math.inf)    # seconds before the time at which a key frame is looked for, as some containers' tables are not exact


class _Video:
    """A file that is open, and where its decoder stands: behind `last`."""

    def __init__(self, path):
        import av
        try:
            self.container = av.open(path)
            self.stream = self.container.streams.video[0]
        except (av.error.FFmpegError, OSError, IndexError) as why:
            raise DatasetError(f"{path} is no video that can be read: {why}") from None
        self.path, self.base = path, float(self.stream.time_base)
        self.interval = 1 / float(self.stream.average_rate or 30)
        self.stream.codec_context.thread_count = 1          # the pool has a process for each processor
        self.to_rgb, self.decoded, self.last = av.video.reformatter.VideoReformatter(), None, None
        self.key, self.longest = None, 0                    # the last key frame; the most seconds from one to a frame before the next, as seen so far

    def close(self):
        self.container.close()

    def _time(self, frame):
        return frame.pts * self.base

    def _next(self):
        for frame in self.decoded:
            if frame.pts is not None:
                time = self._time(frame)
                if frame.key_frame or self.key is None:
                    self.key = time
                self.longest = max(self.longest, time - self.key)
                return frame
        return None

    def _near(self):
        """So many seconds ahead it is decoded on, and no key frame looked for: from that one, half their distance is decoded on the average."""
        return self.longest / 2 + (_SEEK + 0.1) * self.interval

    def _seek(self, time):
        """To a frame that is not behind that time, if there is one."""
        for back in _BACK:
            self.container.seek(max(0, math.floor((time - min(back, time)) / self.base)), stream=self.stream)
            self.decoded, self.key = self.container.decode(self.stream), None
            self.last = self._next()
            if self.last is not None and self._time(self.last) <= time:
                return

    def at(self, time, tolerance):
        """The nearest frame; as LeRobot, of two that are as near the earlier one."""
        early = min(tolerance, 0.1 * self.interval)         # what is so little before the time is the nearest one
        if self.last is None or not -early <= time - self._time(self.last) <= self._near():
            self._seek(time + early)
        before = None
        while self.last is not None and self._time(self.last) < time - early:
            frame = self._next()
            if frame is None:
                break
            before, self.last = self.last, frame
        near = [frame for frame in (before, self.last) if frame is not None]
        found = min(near, key=lambda frame: abs(self._time(frame) - time), default=None)
        if found is None or not abs(self._time(found) - time) < tolerance:
            raise DatasetError(f"{self.path} has no frame within {tolerance:g} s of {time:.6f} s"
                               + (f", the nearest is at {self._time(found):.6f} s" if found else "") + ": tolerance_s= allows more")
        return found

    def pixels(self, times, tolerance):
        """[len(times), H, W, 3]. In the order of time, for which a decoder goes on."""
        import numpy as np
        made = [None] * len(times)
        for place in sorted(range(len(times)), key=times.__getitem__):
            made[place] = self.to_rgb.reformat(self.at(times[place], tolerance), format="rgb24").to_ndarray()
        return np.stack(made)


class Videos:
    """Those that a process has open."""

    def __init__(self):
        self._open = Kept(_MOST_OPEN, _Video, _Video.close)

    def pixels(self, path, times, tolerance):
        import av
        video = self._open.get(path)
        try:
            return video.pixels(times, tolerance)
        except (av.error.FFmpegError, OSError, ValueError) as why:
            video.last = None       # the next one seeks
            raise DatasetError(f"{path} cannot be decoded: {why}") from None
