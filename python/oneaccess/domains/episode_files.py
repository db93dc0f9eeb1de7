# SPDX-License-Identifier: Apache-2.0
"""Files of episodes, told by what is in them, and of them where each episode's arrays lie:

    data/demo_N/...     HDF5 of robomimic, MimicGen, LIBERO: a group for each episode; mask/NAME: episodes by name
    episode_N/...       HDF5 of Minari: the same, with one observation more than there are actions
    meta/episode_ends   Zarr, as a folder or zipped, of Diffusion Policy, UMI: data/... has all episodes in a row
    observations, ...   HDF5 of D4RL: the same, where terminals and timeouts say where an episode ends; of ALOHA, without these: one episode

Nothing here trusts a file: what it says of an array is checked before memory is taken for it."""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import ArgumentError, DatasetError, warn
from ..sources.stores import BROKEN, PerProcess, all_unchanged, arrays_of, broken, stamps_of, stores_of
from ..sources.tables import Kept, needs
from .steps import MOST_NUMBERS

_SUFFIXES = (".hdf5", ".h5", ".hdf", ".zarr", ".zarr.zip")
_ENDS = ("terminals", "timeouts")
_COUNTED = ("num_samples", "total_steps")           # attributes of an episode
_RULERS = ("actions", "action", "rewards")          # arrays that have a value for each step
_MOST_STEPS = 1 << 28
_MOST_TEXT = 1 << 16                                # bytes of a text of fixed length
_MOST_OPEN, _MOST_ARRAYS = 128, 1024                # of a process, and of each file
_MAGICS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")   # of JPEG and PNG
_LARGE = 1 << 30                                    # a chunk, or a step, beyond this is refused


def paths_of(path: Any) -> list[str]:
    """The files that are meant: of a file, a Zarr, a folder or pattern of these, or a list."""
    return stores_of(path, _SUFFIXES, "episode", "from_episodes()")


def _root(path):
    if path.endswith(".zip"):
        zarr = needs("zarr", "episodes in Zarr")
        return zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    if os.path.isdir(path):
        return needs("zarr", "episodes in Zarr").open_group(path, mode="r")
    return needs("h5py", "episodes in HDF5").File(path, "r", rdcc_nbytes=0)     # chunks are kept here


def _close(root):
    close = getattr(root, "close", None) or getattr(root.store, "close", None)
    if close is not None:
        close()


@contextlib.contextmanager
def reading(path: str) -> Iterator[Any]:
    """Its root, in an h5py or zarr that tells in our words what is wrong with it."""
    try:
        root = _root(path)
        try:
            yield root
        finally:
            _close(root)
    except BROKEN as why:
        raise broken(why, f"{path} has no episodes that can be read") from None


# ---- episodes ----


class Episode(NamedTuple):
    """group: where its arrays are; of those it has length steps from begin on, where they have rows steps. text: its task."""

    file: int
    group: str
    begin: int
    length: int
    rows: int
    text: str | None = None


def _text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _task(told):
    """LIBERO's problem_info of a file, RoboCasa's ep_meta of an episode: JSON, each with a text under a name of its own."""
    for name, key in (("ep_meta", "lang"), ("problem_info", "language_instruction")):
        with contextlib.suppress(KeyError, ValueError, TypeError, RecursionError):
            return "".join(json.loads(_text(told[name]))[key]).strip('"')       # which LIBERO has as a list
    return None


def _steps(group, where):
    """How many an episode has."""
    told = [group.attrs[name] for name in _COUNTED if name in group.attrs]
    told += [group[name].shape[0] for name in _RULERS if not told and name in group and getattr(group[name], "ndim", 0)]
    if not told or not 0 <= int(told[0]) < _MOST_STEPS:
        raise DatasetError(f"{where} does not say how many steps it has: {told[0] if told else 'it has none of ' + ', '.join((*_COUNTED, *_RULERS))}")
    return int(told[0])


def _numbered(group, prefix):
    """Names of its groups, by number."""
    found = [(int(name[len(prefix):]), name) for name in group.keys() if re.fullmatch(f"{prefix}[0-9]{{1,18}}", name)]
    return [name for _, name in sorted(found)]


def _in_groups(at, path, root, above, names, mask):
    parent = root[above] if above else root
    known = None if mask is None else _masked(path, root, mask, len(names))
    task, found = _task(parent.attrs), []
    for name in names:
        group = parent[name]
        count = _steps(group, f"{path}, {name},")
        text = _task(group.attrs) or task
        found.append((Episode(at, f"{above}/{name}".lstrip("/"), 0, count, count, text), known is None or name in known))
    return found


def _masked(path, root, mask, most):
    there = list(root["mask"].keys()) if "mask" in root else []
    if mask not in there:
        raise ArgumentError(f"{path} has no filter key {mask!r}; {'there are: ' + ', '.join(there) if there else 'there are none: split= is of those in mask/'}")
    names = root["mask"][mask]
    if names.size > most or names.dtype.itemsize > _MOST_TEXT:
        raise DatasetError(f"{path}: mask/{mask} names {names.size:,} episodes, by texts of {names.dtype.itemsize:,} bytes, and there are {most:,}")
    return {_text(name) for name in names[:]}


def _in_a_row(at, path, group, ends):
    """Episodes that lie one behind the other, until ends."""
    import numpy as np
    ends = np.asarray(ends).astype(np.int64).ravel()
    starts = np.concatenate([[0], ends[:-1]])
    if not len(ends) or (ends < starts).any() or not 0 <= ends[-1] < _MOST_STEPS:
        raise DatasetError(f"{path}: its episodes do not end one behind the other")
    return [(Episode(at, group, int(begin), int(end - begin), int(ends[-1])), True) for begin, end in zip(starts, ends)]


def _ends(path, root, rows):
    import numpy as np
    told = [name for name in _ENDS if name in root]
    if "terminals" not in told:
        return [rows]
    if "timeouts" not in told:
        warn(f"{path} has no timeouts, so an episode that was cut off and the next one are taken for one", UserWarning)
    is_end = np.zeros(rows, bool)
    for name in told:
        if root[name].shape not in ((rows,), (rows, 1)):
            raise DatasetError(f"{path}: {name} has the shape {root[name].shape}, and there are {rows:,} steps")
        is_end |= np.asarray(root[name][:]).reshape(rows).astype(bool)
    ends = np.flatnonzero(is_end) + 1
    return [*ends, rows] if rows and (not len(ends) or ends[-1] < rows) else ends


def episodes_of(at: int, path: str, root: Any, mask: str | None) -> list[tuple[Episode, bool]]:
    """All of a file, and which of them are of the split."""
    demos = _numbered(root["data"], "demo_") if "data" in root and hasattr(root["data"], "keys") else []
    numbered = _numbered(root, "episode_")
    if demos or numbered:
        return _in_groups(at, path, root, "data" if demos else "", demos or numbered, mask)
    if mask is not None:
        raise ArgumentError(f"split={mask!r} is of files of robomimic's kind, with filter keys, and {path} is none: name episodes=")
    if "data" in root and "meta/episode_ends" in root:
        ends = root["meta/episode_ends"]
        return _in_a_row(at, path, "data", ends[:] if ends.size < _MOST_STEPS else [])
    if any(name in root for name in _RULERS):
        return _in_a_row(at, path, "", _ends(path, root, _steps(root, path)))
    raise ArgumentError(f"{path} has no episodes: neither data/demo_N (robomimic, LIBERO), episode_N (Minari), data and meta/episode_ends (Diffusion"
                        " Policy) nor actions (D4RL, ALOHA); oneaccess.from_hdf5() and from_zarr() read arrays of any names")


# ---- columns ----


class Column(NamedTuple):
    """kind: "camera", or "picture" where its frames are files; "number", "text", or "task", which is the episode's. shape: of a step; more: values of an
    episode beyond its steps; chunk: steps that lie in one chunk. is_kept: in memory, all of it."""

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    more: int = 0
    chunk: int = 1

    @property
    def each(self):
        made = 1
        for extent in self.shape:
            made *= extent
        return made

    @property
    def is_camera(self):
        return self.kind in ("camera", "picture")

    @property
    def is_kept(self):
        return self.kind in ("number", "text") and self.each <= MOST_NUMBERS

    @property
    def bytes(self):
        """Of a step, as it is in the file; of frames, as they are kept."""
        import numpy as np
        return self.each * (1 if self.kind == "camera" else np.dtype(self.dtype).itemsize)

    def checked(self, found: Any, rows: int, where: str) -> Any:
        """The array, of an episode or of some, if it is as those of the first one."""
        if getattr(found, "external", None):
            raise DatasetError(f"{where} has its values in files of another kind, {found.external[0][0]}, which are not read: copy them into it")
        if self.kind == "text" and found.dtype.itemsize > _MOST_TEXT:
            raise DatasetError(f"{where} has texts of {found.dtype.itemsize:,} bytes, of {_MOST_TEXT:,} at most")
        if self.kind == "picture" and _are_files(found) and found.shape[0] == rows + self.more:
            return found
        if tuple(found.shape) != (rows + self.more, *self.shape) or _family(found.dtype) != _family(self.dtype):
            raise DatasetError(f"{where} has the shape {tuple(found.shape)} and the type {found.dtype}, where by the first episode and its {rows:,} steps it is"
                               f" {(rows + self.more, *self.shape)} of {self.dtype}")
        return found

    def made(self, values: Any, where: str) -> Any:
        """As a batch has them: pixels uint8, floats float32, whole numbers int64; texts as a list."""
        import numpy as np
        if self.kind == "text":
            return [_text(value) for value in values]
        if self.kind == "picture":      # those of one size lie in rows, as long as the longest
            return [value.tobytes().rstrip(b"\0") for value in values]
        values = np.asarray(values)
        kind = values.dtype.kind
        if kind == "f" and self.kind == "camera":
            with np.errstate(invalid="ignore"):
                made = values.astype(np.uint8)
            if not np.array_equal(made, values):
                raise DatasetError(f"{where} has pixels that are no whole numbers from 0 to 255")
            return made
        if values.dtype == np.uint8 and not self.is_kept:
            return values
        return values.astype({"f": np.float32, "b": bool}.get(kind, np.int64), copy=False)


def _family(dtype):
    import numpy as np
    kind = np.dtype(dtype).kind
    return "u1" if np.dtype(dtype) == np.uint8 else {"u": "i", "S": "O", "U": "O", "T": "O"}.get(kind, kind)       # texts are objects


def _are_files(found):
    """Bytes of files: lists of varied length, or rows of one length."""
    import numpy as np
    return found.ndim == 1 and (found.dtype.metadata or {}).get("vlen") == np.uint8 or found.ndim == 2 and found.dtype == np.uint8


def _column(found, more):
    """A column, or why it has no place in a batch."""
    import numpy as np
    dtype, shape = np.dtype(found.dtype), tuple(int(extent) for extent in found.shape[1:])
    if getattr(found, "external", None):
        return "has its values in files of another kind"
    if _are_files(found) and sum(shape) < _LARGE and np.asarray(found[0]).tobytes().startswith(_MAGICS):
        return Column("picture", "uint8", (), more)
    if (dtype.metadata or {}).get("vlen") in (str, bytes) or dtype.kind in "SUT":
        return "is lists of texts" if shape else Column("text", "object", (), more) if dtype.itemsize <= _MOST_TEXT else f"has texts of {dtype.itemsize:,} bytes"
    if dtype.kind not in "biuf" or dtype == np.uint64:
        return f"has values of {dtype}"
    column = Column("number", dtype.name, shape, more, int(found.chunks[0]) if found.chunks else 1)
    if 0 in shape or column.bytes > _LARGE:
        return f"has {column.bytes:,} bytes in a step"
    is_camera = len(shape) == 3 and shape[2] in (1, 3, 4) and dtype == np.uint8
    if not is_camera and len(shape) == 3 and shape[2] == 3 and dtype.kind == "f" and column.each > MOST_NUMBERS:     # as of Diffusion Policy's PushT
        first = np.asarray(found[:1], np.float64)
        is_camera = bool(first.max() > 1 and first.min() >= 0 and first.max() <= 255 and (first == np.floor(first)).all())
    return column._replace(kind="camera") if is_camera else column


def columns_of(root: Any, episode: Episode, where: str) -> tuple[dict[str, Column], dict[str, str]]:
    """{name: Column} of an episode, and why others have no place in a batch."""
    group, found, left = root[episode.group] if episode.group else root, {}, {}
    is_own = episode.begin == 0 and episode.length == episode.rows      # arrays of this episode alone
    for name in arrays_of(group):
        array = group[name]
        more = int(array.shape[0]) - episode.rows
        if name.startswith("metadata/"):        # of D4RL: about the policy
            continue
        made = "has not a value for each step" if more not in (0, 1) or more and not is_own else _column(array, more)
        if isinstance(made, str):
            left[name] = made
        else:
            found[name] = made
    if not found:
        raise DatasetError(f"{where} has no array with a value for each of its {episode.rows:,} steps")
    return dict(sorted(found.items(), key=lambda item: not item[1].is_camera)), left


# ---- values ----


class Files(PerProcess):
    """Arrays of the files, which each process opens for itself; of chunks it keeps those that it decoded last."""

    def __init__(self, paths: Sequence[str], parts: Sequence[str], pieces: int, most: int):
        """pieces: how many chunks are kept; most: bytes that one may have."""
        self.paths, self.pieces, self.most = list(paths), pieces, max(most, _LARGE)
        self.stamps = [stamps_of(path, parts) for path in paths]

    def unchanged(self) -> None:
        for stamps in self.stamps:
            all_unchanged(stamps)

    def open(self):
        return Kept(_MOST_OPEN, self._open, lambda opened: _close(opened[0])), Kept(self.pieces, self._piece)

    def _open(self, file):
        all_unchanged(self.stamps[file])
        root = _root(self.paths[file])
        return root, Kept(_MOST_ARRAYS, lambda key: root[key])

    def _array(self, episode, name, column):
        return column.checked(self.opened()[0].get(episode.file)[1].get(f"{episode.group}/{name}"), episode.rows, self._where(episode, name))

    def _where(self, episode, name):
        return f"{self.paths[episode.file]}: {episode.group}/{name}"

    def _piece(self, key):
        episode, name, column, at = key
        found = self._array(episode, name, column)
        count = min(_of_a_chunk(found), found.shape[0])
        size = count * column.each * found.dtype.itemsize
        if size > self.most:
            raise DatasetError(f"{self._where(episode, name)} has chunks of {size / 2**30:.1f} GiB, which each process of the pool would keep in memory: write it"
                               " with chunks of fewer steps, or say that there is room, by cache=\"...\"")
        return column.made(found[at * count:(at + 1) * count], self._where(episode, name))

    def values(self, episode: Episode, name: str, column: Column, steps: Sequence[int]) -> list:
        """Of one episode: of each step what a batch has, of pictures their files."""
        try:
            found, rows = self._array(episode, name, column), [episode.begin + step for step in steps]
            count, first, last = _of_a_chunk(found), min(rows), max(rows)
            if count > 1 and column.kind != "picture":
                kept, of_all = self.opened()[1], episode._replace(begin=0, length=episode.rows)
                return [kept.get((of_all, name, column, row // count))[row % count] for row in rows]
            if last - first < 2 * len(rows):
                made = column.made(found[first:last + 1], self._where(episode, name))
                return [made[row - first] for row in rows]
            return [column.made(found[row:row + 1], self._where(episode, name))[0] for row in rows]
        except BROKEN as why:
            raise broken(why, f"{self._where(episode, name)}, step {steps[0]}, cannot be read") from None


def _of_a_chunk(found):
    return int(found.chunks[0]) if found.chunks else 1


def numbers_of(files: Files, episodes: Sequence[Episode], columns: dict[str, Column]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of columns that are kept: all their values in a row, and where each episode's begin."""
    import numpy as np
    groups = {(episode.file, episode.group): episode.rows for episode in episodes}
    size = sum((rows + column.more) * column.bytes for rows in groups.values() for column in columns.values())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise DatasetError(f"{', '.join(columns)} have {size / 2**30:,.1f} GiB, and this machine's memory is {memory / 2**30:,.1f} GiB: name fewer, by columns=")
    parts: dict[str, list] = {name: [] for name in columns}
    for file in dict.fromkeys(file for file, _ in groups):
        with reading(files.paths[file]) as root:
            for (_, group), rows in ((key, rows) for key, rows in groups.items() if key[0] == file):
                for name, column in columns.items():
                    where = f"{files.paths[file]}: {group}/{name}"
                    parts[name].append(column.made(column.checked(root[f"{group}/{name}"], rows, where)[:], where))
    order = {key: at for at, key in enumerate(groups)}
    before = np.concatenate([[0], np.cumsum([*groups.values()])])
    at = [order[episode.file, episode.group] for episode in episodes]
    first = before[at] + [episode.begin for episode in episodes]
    return ({name: [value for part in each for value in part] if columns[name].kind == "text" else np.concatenate(each) for name, each in parts.items()},
            {name: first + np.array(at) * column.more for name, column in columns.items()})
