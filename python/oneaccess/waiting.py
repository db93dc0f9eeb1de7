# SPDX-License-Identifier: Apache-2.0
"""Waiting: for how long, and what people are told meanwhile."""

import math
import sys
import time

from .errors import ArgumentError

_QUIET_SECONDS = 2.0
_MOST_SECONDS = 2_000_000  # of a timeout, so that it has room in an int of ms


class Voice:
    """Tells people on stderr what takes long: first after two seconds, then more and more rarely."""

    def __init__(self, what):
        self._what = what
        self._next = time.monotonic() + _QUIET_SECONDS
        self._pause = _QUIET_SECONDS

    def __call__(self, text, done=0, total=0):
        now = time.monotonic()
        if now < self._next:
            return
        self._pause *= 2
        self._next = now + self._pause
        share = f" ({done:,} of {total:,})" if total else f" ({done:,})" if done else ""
        print(f"oneaccess: {self._what}: {text}{share}", file=sys.stderr, flush=True)


def patience(timeout: float | None) -> float | None:
    """Seconds; None: no limit, which is torch's 0, too."""
    try:
        if timeout is None or (0 <= timeout and timeout in (0, math.inf)):
            return None
        if 0 < timeout:
            return min(float(timeout), _MOST_SECONDS)
    except TypeError:
        pass
    raise ArgumentError(f"timeout is {timeout!r}: a number of seconds, or None for no limit")


def patiently(take):
    """take(milliseconds) until there is a batch; people are told what it waits for."""
    voice = None
    while True:
        try:
            return take(int(_QUIET_SECONDS * 1000))
        except TimeoutError as late:
            voice = voice or Voice("no batch yet")
            voice(str(late).partition(": ")[2])
