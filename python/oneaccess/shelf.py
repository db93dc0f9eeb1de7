# SPDX-License-Identifier: Apache-2.0
"""What processes of one pool make once and all of them read: a piece of memory in places of one size, for whatever pickle makes of it.

A place is locked by the process that writes it, alone, and by those that read it, together; a lock of the table is held while one is
chosen. The locks are those of fcntl, so they end with the process that has them: what it had not finished is made anew. Nobody waits for a
place while he has the table.
"""

import contextlib
import fcntl
import mmap
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_EACH = 64              # arrays begin at a multiple of this
_KEY, _TURN, _USED, _SIZE = range(4)    # of a place: what it holds (from 1 on, 0: nothing), how often it was written, when it was used, its bytes
_COLUMNS = 4


class Shelf:
    """Of what make() makes of a key; it is there before the processes are forked that share it."""

    def __init__(self, places: int, size: int, make: Callable[[int], Any], keys: int):
        self._keys, self._before = keys, -1
        self._make, self._own, self._size = make, (-1, None), -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._file = os.memfd_create("oneaccess-shelf")
        begin = -(-8 * (_COLUMNS * places + 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(self._file, begin + places * self._size)
        self._memory = memoryview(mmap.mmap(self._file, 0))
        words = np.frombuffer(self._memory[:begin], np.int64)
        self._clock, self._table = words[:1], words[1:1 + _COLUMNS * places].reshape(places, _COLUMNS)
        self._data, self._read = self._memory[begin:], {}

    def _lock(self, how, place=-1):
        """The table's is the first byte's."""
        fcntl.lockf(self._file, how, 1, place + 1)

    def _try(self, place, how=fcntl.LOCK_EX):
        try:
            self._lock(how | fcntl.LOCK_NB, place)
        except OSError:
            return False
        return True

    @contextlib.contextmanager
    def get(self, key: int) -> Iterator[Any]:
        """What was made of it, in this process or another one; its arrays are there until the block ends."""
        place = None if key == self._own[0] else self._found(key)
        self._before = key
        try:
            if place is None and key != self._own[0]:
                self._own = key, self._make(key)
            yield self._own[1] if place is None else self._object(place)
        finally:
            if place is not None:
                self._lock(fcntl.LOCK_UN, place)

    def _found(self, key):
        """Its place, locked for reading; None: all are in use, or it does not fit."""
        while True:
            place, is_new = self._chosen(key)
            if place is None or is_new:
                return place if place is not None and self._write(key, place) else None
            if not self._try(place, fcntl.LOCK_SH):
                if key == self._before + 1:             # in a row: rather than to wait, to make the next one
                    self._make_ahead(key + 1)
                self._lock(fcntl.LOCK_SH, place)
            if self._table[place, _KEY] == key + 1:
                if self._table[place, _SIZE]:
                    self._table[place, _USED] = self._clock[0]
                    return place
                self._forget(key, place)
            self._lock(fcntl.LOCK_UN, place)

    def _chosen(self, key):
        """Where it is; or a place for it, locked for writing, and True."""
        self._lock(fcntl.LOCK_EX)
        try:
            self._clock[0] += 1
            found = np.flatnonzero(self._table[:, _KEY] == key + 1)
            return (int(found[0]), False) if len(found) else (self._free(key), True)
        finally:
            self._lock(fcntl.LOCK_UN)

    def _make_ahead(self, key):
        if key < self._keys and not (self._table[:, _KEY] == key + 1).any():
            place, is_new = self._chosen(key)
            with contextlib.suppress(Exception):        # it is for who needs it
                if is_new and place is not None and self._write(key, place):
                    self._lock(fcntl.LOCK_UN, place)

    def _forget(self, key, place):
        """Of one that has died, what it had begun to write."""
        self._lock(fcntl.LOCK_UN, place)
        self._lock(fcntl.LOCK_EX)
        try:
            if self._try(place) and self._table[place, _KEY] == key + 1 and not self._table[place, _SIZE]:
                self._table[place, _KEY] = 0
        finally:
            self._lock(fcntl.LOCK_UN)

    def _free(self, key):
        """The place that nobody reads and that was used longest ago, locked for writing."""
        for place in np.argsort(self._table[:, _USED], kind="stable").tolist():
            if self._try(place):
                self._table[place, _SIZE] = 0       # first: who dies here leaves nothing that is read under another key
                self._table[place] = key + 1, self._table[place, _TURN] + 1, self._clock[0], 0
                return place
        return None

    def _write(self, key, place):
        """True, and the place is locked for reading; or what was made does not fit, and it is not: it is this process' own."""
        size = 0
        try:
            buffers: list[pickle.PickleBuffer] = []
            made = self._make(key)
            data = pickle.dumps(made, 5, buffer_callback=buffers.append)
            parts = [data, *(buffer.raw() for buffer in buffers)]
            head = pickle.dumps([len(part) for part in parts])
            parts = [len(head).to_bytes(8, "little") + head, *parts]
            size = sum(-(-len(part) // _EACH) * _EACH for part in parts)
            if size > self._size:
                self._own, size = (key, made), 0
                return False
            at = place * self._size
            for part in parts:
                self._data[at:at + len(part)] = part
                at += -(-len(part) // _EACH) * _EACH
            return True
        finally:
            if not size:
                self._table[place, _KEY] = 0
            self._table[place, _SIZE] = size
            self._lock(fcntl.LOCK_SH if size else fcntl.LOCK_UN, place)

    def _object(self, place):
        turn = int(self._table[place, _TURN])
        if self._read.get(place, (None,))[0] != turn:
            at = place * self._size
            length = int.from_bytes(self._data[at:at + 8], "little")
            sizes = pickle.loads(self._data[at + 8:at + 8 + length])
            at += -(-(8 + length) // _EACH) * _EACH
            parts = []
            for size in sizes:
                parts.append(self._data[at:at + size].toreadonly())
                at += -(-size // _EACH) * _EACH
            self._read[place] = turn, pickle.loads(parts[0], buffers=parts[1:])
        return self._read[place][1]
