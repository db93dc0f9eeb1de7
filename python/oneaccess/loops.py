# SPDX-License-Identifier: Apache-2.0
"""Loops over a Loader: each is one epoch."""

import sys


class Loop:
    """One epoch, or what is left of it."""

    def __init__(self, loader):
        self._loader = loader
        self.count = 0
        self.has_ended = False

    def is_within(self):
        """Some batches of the epoch were taken, not all."""
        return self.count > 0 and not self.has_ended

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader)

    def __next__(self):
        batch = self._loader._take(self)
        if batch is None:
            raise StopIteration
        return batch


class Lease:
    """A loop with a device: when it is left, the copies that are under way end, and no pin is held."""

    def __init__(self, loop, settle):
        self._loop, self._settle = loop, settle

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loop)

    def __next__(self):
        return next(self._loop)

    def __del__(self, _is_finalizing=sys.is_finalizing):
        """At the interpreter's end the feed is closed already, and modules may be gone."""
        if not _is_finalizing():
            self._settle()
