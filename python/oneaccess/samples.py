# SPDX-License-Identifier: Apache-2.0
"""What a Loader shows as ``dataset``: how many samples, and the batches for who iterates in its place."""

import os

from .errors import TransformError


class Asked(list):
    """The positions of one batch in an epoch of this rank, and the loop that delivers it."""

    def __init__(self, positions, turn, number):
        super().__init__(positions)
        self.turn, self.number = turn, number


class Turn:
    """A loop over the Loader by somebody who asks for its batches by number, in order."""

    def __init__(self, loop):
        self._loop = loop
        self._next = 0

    def has_ended(self):
        return self._loop.has_ended

    def batch(self, number):
        """Those before the first that is asked for are skipped. Raises StopIteration behind the last."""
        if number < self._next or (self._next and number > self._next):
            raise TransformError(
                f"batch {number} of a Loader was asked for where batch {self._next} comes next: some library deals"
                " out batches that are this rank's already. Give it the Loader as it is (Accelerate:"
                " Accelerator.prepare(); others: without a distributed sampler of their own)")
        while self._next < number:
            self._next += 1
            next(self._loop)
        self._next += 1
        return next(self._loop)


class Samples:
    """The samples of an epoch of all ranks: ``len()`` is their number. They come in batches, from the Loader itself."""

    def __init__(self, loader):
        self._loader = loader

    def __len__(self) -> int:
        return self._loader._n_samples()

    def named(self) -> str:
        """As the first argument of a Loader is written."""
        raise NotImplementedError

    def __getitem__(self, index):
        raise TransformError("a Loader's samples come in batches, by the Loader itself: iterate over it in the place of"
                             " the DataLoader, and make no other DataLoader of its dataset; a part of them is a Loader with"
                             " ids= or split=")

    def __getitems__(self, asked):
        if not isinstance(asked, Asked):
            self[asked]
        return asked.turn.batch(asked.number)


class FolderSamples(Samples):
    """The samples of a folder, with the attributes of ImageFolder; ``os.fspath()`` and ``str()`` are its path."""

    def named(self) -> str:
        return repr(os.fspath(self))

    root = property(os.fspath)
    classes = property(lambda self: self._loader.classes)
    class_to_idx = property(lambda self: self._loader.class_to_idx)
    targets = property(lambda self: self._loader.targets)
    samples = imgs = property(lambda self: self._loader._samples())

    def __fspath__(self) -> str:
        return self._loader._folder

    __str__ = __fspath__

    def __repr__(self):
        return f"<oneaccess samples of {self._loader._folder}>"


class WrappedSamples(Samples):
    """The samples of a wrapped data set, with its attributes."""

    def __init__(self, loader, theirs):
        super().__init__(loader)
        self._theirs = theirs

    def named(self) -> str:
        return "oneaccess.wrap(...)"

    def __getattr__(self, name):
        if name.startswith("__") or name == "_theirs":
            raise AttributeError(name)
        return getattr(self._theirs, name)

    def __repr__(self):
        return f"<oneaccess samples of {self._theirs!r}>"


def of(loader, wrapped) -> Samples:
    """The samples of a Loader; wrapped: oneaccess.wrap()'s, or None."""
    return FolderSamples(loader) if wrapped is None else WrappedSamples(loader, wrapped.dataset)
