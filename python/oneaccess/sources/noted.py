# SPDX-License-Identifier: Apache-2.0
"""Arrays that were found of files once, by reading them from end to end, and are kept for other jobs: .npy files in a folder, which is named by what
they were found of."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tokenize
from collections.abc import Callable, Mapping
from typing import Any

from .. import urls
from ..errors import DatasetError


def folder_of(kind: str, index: str | os.PathLike | None = None) -> str:
    """Where what was found of such data sets is kept: index= of the function that opens them, else the user's cache."""
    if index is not None:
        return os.path.abspath(urls.local(index, "index="))
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "oneaccess", kind)


class Noted:
    """arrays: {name: (dtype, dimensions)}, "S" for texts of any length. found(make, fits) is {name: array}, of files, so that they are in no process' own memory."""

    def __init__(self, folder: str, facts: str, arrays: Mapping[str, tuple[str, int]], what: str):
        self.folder = os.path.join(folder, hashlib.blake2b(facts.encode(), digest_size=16).hexdigest())
        self._arrays, self._what = dict(arrays), what

    def found(self, make: Callable[[], Mapping[str, Any]], fits: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
        """What is kept, if it fits; else what is made, by one of several jobs that begin at once."""
        kept = self._loaded(fits)
        if kept is not None:
            return kept
        with self._keeping():
            os.makedirs(os.path.dirname(self.folder), exist_ok=True)
            lock = open(f"{self.folder}.lock", "ab")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = self._loaded(fits)
            if kept is None:
                self._keep(make())
        return kept or self._loaded(fits)

    def _loaded(self, fits):
        """None: nothing that can be believed."""
        import numpy as np
        try:
            found = {name: np.lib.format.open_memmap(os.path.join(self.folder, f"{name}.npy"), mode="r") for name in self._arrays}
        except (OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, tokenize.TokenError):     # the last, of a header that is cut off
            return None
        return found if all(np.issubdtype(found[name].dtype, kind) and found[name].ndim == of for name, (kind, of) in self._arrays.items()) and fits(found) else None

    def _keep(self, arrays):
        """With the lock. What a job left that was killed meanwhile goes; others may read as the umask says."""
        import numpy as np
        made = f"{self.folder}.new"
        with self._keeping(), contextlib.ExitStack() as otherwise:
            shutil.rmtree(made, ignore_errors=True)
            os.mkdir(made)
            otherwise.callback(shutil.rmtree, made)
            for name, values in arrays.items():
                np.save(os.path.join(made, name), values)
            shutil.rmtree(self.folder, ignore_errors=True)
            os.rename(made, self.folder)
            otherwise.pop_all()

    @contextlib.contextmanager
    def _keeping(self):
        try:
            yield
        except OSError as why:
            raise DatasetError(f"what was found of {self._what} cannot be kept in {os.path.dirname(self.folder)}: {why.strerror}: name another folder by"
                               " index=") from None
