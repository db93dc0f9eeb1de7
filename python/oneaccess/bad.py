# SPDX-License-Identifier: Apache-2.0
"""Bad samples of a Loader."""

import threading
from typing import NamedTuple

from . import _core, paths
from .errors import Error

_LAST_MS = 5000  # to ask for bad samples before a stream is given back


class BadSample(NamedTuple):
    """A sample that could not be read, decoded or preprocessed (oa_bad_samples(3))."""

    index: int  # its number in the data set, as in Batch.ids
    path: str   # of its file; "dataset[index]" for wrap()
    stage: str  # "open", "read", "decode", "pipeline", "worker", "memory", "unknown"
    error: str  # one line


class BadSamples:
    """What a Loader met of them since it was made. Any thread."""

    def __init__(self, folder: str | None):
        """None: of a wrapped data set, whose samples have no paths."""
        self._folder = folder
        self._known: dict[int, BadSample] = {}
        self._lock = threading.Lock()
        self.has_met = False    # one ended a stream

    def learn(self, stream: "_core.Stream", timeout_ms: int) -> None:
        """What a stream knows of."""
        told = stream.bad_samples(timeout_ms)
        with self._lock:
            for index, name, stage, error in told:
                if stage != "unknown" or index not in self._known:
                    path = f"dataset[{index}]" if self._folder is None else paths.of_sample(self._folder, name)
                    self._known[index] = BadSample(index, path, stage, error)

    def remember(self, stream: "_core.Stream") -> None:
        """Of a stream that goes: a later one does not know what this one has met."""
        try:
            stats = stream.stats()
            if self.has_met or stats["skipped"] or stats["substituted"]:
                self.learn(stream, _LAST_MS)
        except (Error, OSError, ValueError):
            pass  # the stream goes in any case, or has gone
        self.has_met = False

    def forget(self) -> None:
        """They are of another version of the data set."""
        with self._lock:
            self._known.clear()

    def all(self) -> list[BadSample]:
        with self._lock:
            return [self._known[index] for index in sorted(self._known)]
