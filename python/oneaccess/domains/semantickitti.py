# SPDX-License-Identifier: Apache-2.0
"""SemanticKITTI: scans of the lidar and a label of each point, which is a column of it, so that it goes where the point goes. Files are read by
the pool (wrapped.py)."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import urls
from ..errors import ArgumentError, DatasetError, needs
from ..sources.folders import Files
from ..wrapped import Wrapped

_SEQUENCES = {"train": (0, 1, 2, 3, 4, 5, 6, 7, 9, 10), "val": (8,), "trainval": range(11), "test": range(11, 22)}
CLASSES = ("unlabeled", "car", "bicycle", "motorcycle", "truck", "other-vehicle", "person", "bicyclist", "motorcyclist", "road", "parking", "sidewalk",
           "other-ground", "building", "fence", "vegetation", "trunk", "terrain", "pole", "traffic-sign")
# learning_map of semantic-kitti.yaml; all others are 0.
_LEARNED = {10: 1, 11: 2, 13: 5, 15: 3, 16: 5, 18: 4, 20: 5, 30: 6, 31: 7, 32: 8, 40: 9, 44: 10, 48: 11, 49: 12, 50: 13, 51: 14, 60: 9, 70: 15, 71: 16,
            72: 17, 80: 18, 81: 19, 252: 1, 253: 7, 254: 6, 255: 8, 256: 5, 257: 5, 258: 4, 259: 5}
_SLACK = 8192


def table_of(labels: str | Mapping[int, int] | None, learned: Mapping[int, int], count: int = 1 << 16) -> Any:
    """float32 [count]: of each label of a file what a batch has. None: there are no labels. learned: what "classes" are."""
    import numpy as np
    if labels is None:
        return None
    if labels == "raw":
        return np.arange(count, dtype=np.float32)
    found = np.zeros(count, np.float32)
    try:
        for raw, number in (learned if labels == "classes" else labels).items():
            if raw < 0:
                raise IndexError(raw)
            found[raw] = number
    except (AttributeError, IndexError, TypeError, ValueError):
        raise ArgumentError(f"labels is {labels!r}: \"classes\", \"raw\", {{label of the files: number}}, or None") from None
    return found


class SemanticKittiRows:
    """Scans with labels, sequence by sequence."""

    def __init__(self, root, split, labels):
        names = [f"{number:02}" for number in _SEQUENCES[split]] if isinstance(split, str) and split in _SEQUENCES else split
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ArgumentError(f"split is {split!r}: {', '.join(_SEQUENCES)}, or a list of sequences")
        scans = []
        for name in names:
            folder = os.path.join(root, "sequences", str(name), "velodyne")
            if not os.path.isdir(folder):
                raise DatasetError(f"there is no {folder}: root is the folder with sequences, and split=[...] names those that are there")
            scans += [os.path.join(folder, file) for file in sorted(os.listdir(folder)) if file.endswith(".bin")]
        if not scans:
            raise DatasetError(f"{root} has no scan of {split!r}")
        self.table, self.scans = table_of(labels, _LEARNED), Files.there(scans)
        self.labels = None if labels is None else Files.there(
            [os.path.join(os.path.dirname(os.path.dirname(path)), "labels", os.path.basename(path)[:-4] + ".label") for path in scans],
            ": give labels=None for scans without labels, such as those of \"test\"")

    def __len__(self):
        return len(self.scans.paths)

    def __getitem__(self, index):
        import numpy as np
        index = range(len(self))[index]
        data, path = self.scans.read(index), self.scans.paths[index]
        if self.labels is not None:
            labels = self.labels.read(index)
            if len(data) % 16 or len(labels) * 4 != len(data):
                raise DatasetError(f"{path} has {len(data)} bytes, and {self.labels.paths[index]} {len(labels)}: not 16 and 4 for each point")
            found = self.table[np.frombuffer(labels, np.uint32) & 0xffff]
            data = np.column_stack([np.frombuffer(data, np.float32).reshape(-1, 4), found]).tobytes()
        sequence, frame = path.split(os.sep)[-3], os.path.basename(path)[:-4]
        return {"points": data, "sequence": sequence, "frame": frame}


def from_semantickitti(root: str | os.PathLike, split: str | Sequence[str] = "train", *, labels: str | Mapping[int, int] | None = "classes",
                       workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None,
                       keep: float = 30.0) -> Wrapped:
    """Scans of SemanticKITTI, for Loader with a pipeline of points: x, y, z, remission and the label of each point.

        data = oa.from_semantickitti("/data/semantickitti", "train")
        scans = oa.Compose([t.PointCloud(80000, 5, columns=5), t.PointRotation(), t.PointFlip("y"), t.PointScale((0.95, 1.05))])
        for batch in oa.Loader(data, scans, batch_size=4): batch["points"][..., :4], batch["points"][..., 4].long()

    root: the folder with sequences.
    split: "train" (00 to 07, 09, 10), "val" (08), "trainval", "test" (11 to 21), or a list of sequences, such as ["00", "08"].
    labels: "classes": 0 to 19 by learning_map of semantic-kitti.yaml, 0 is what does not count; "raw": the lower 16 bits of the files' labels;
        {label of the files: number}, of all others 0; None: points have four columns, as of scans that have no labels.

    A batch has "points", float32 [points, 5], and the texts sequence and frame. A label is a column, so it stays with its point through all
    ops. The other arguments are those of wrap().
    """
    needs("numpy", "SemanticKITTI")
    rows = SemanticKittiRows(urls.local(root, "from_semantickitti()"), split, labels)
    room = room or rows.scans.largest // 4 * 5 + _SLACK
    return Wrapped(rows, name, version, workers, timeout, False, room, keep)
