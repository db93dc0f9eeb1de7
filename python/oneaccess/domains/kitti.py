# SPDX-License-Identifier: Apache-2.0
"""KITTI's 3-D object detection: scans of the lidar, and boxes in its coordinates. Labels and calibrations are read when the data set is
made, scans by the pool (wrapped.py)."""

import os
from collections.abc import Sequence

from .. import urls
from ..errors import ArgumentError, DatasetError, needs
from ..sources.folders import Files
from ..wrapped import Wrapped

_FOLDERS = {"train": "training", "val": "training", "trainval": "training", "training": "training", "test": "testing", "testing": "testing"}
_OBJECTS = ("boxes", "classes", "difficulty")
_FIELDS = (*_OBJECTS, "frame")
# Height of the box on the image in pixels, truncation and occlusion of easy, moderate and hard objects, as the benchmark has them.
_LEVELS = ((40, .15, 0), (25, .3, 1), (25, .5, 2))
_PNG = b"\x89PNG\r\n\x1a\n"
_SLACK, _OBJECT_BYTES = 8192, 64    # what a sample has beside its points, and of each box


class _Calibration:
    """Of a frame: P2, R0_rect and Tr_velo_to_cam, as float32."""

    def __init__(self, path):
        import numpy as np
        found = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                name, _, numbers = line.partition(":")
                found[name.strip()] = numbers.split()
        try:
            self.projection, self.rectify, self.to_camera = (np.array(found[name], np.float32).reshape(shape) for name, shape in
                                                             (("P2", (3, 4)), ("R0_rect", (3, 3)), ("Tr_velo_to_cam", (3, 4))))
            whole = self.rectify.astype(np.float64) @ self.to_camera
            self.to_lidar = np.linalg.inv(np.vstack([whole, (0, 0, 0, 1)]))
        except (KeyError, ValueError, np.linalg.LinAlgError) as why:
            raise DatasetError(f"{path} is no calibration of KITTI, of P2, R0_rect and Tr_velo_to_cam: {why}") from None

    def lidar(self, places):
        """Of places of the camera."""
        return places @ self.to_lidar[:3, :3].T + self.to_lidar[:3, 3]

    def is_seen(self, points, size):
        """Which of [n, 3] are on the picture of that (width, height)."""
        import numpy as np
        seen = (points @ self.to_camera[:, :3].T + self.to_camera[:, 3]) @ self.rectify.T
        x, y, scale = (seen @ self.projection[:, :3].T + self.projection[:, 3]).T
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = x / seen[:, 2], y / seen[:, 2]
        return (x >= 0) & (x < size[0]) & (y >= 0) & (y < size[1]) & (scale - self.projection[2, 3] >= 0)


def _difficulty(height, truncation, occlusion):
    return next((level for level, (least, cut, hidden) in enumerate(_LEVELS) if height >= least and truncation <= cut and occlusion <= hidden), -1)


def _objects(path, calibration, number):
    """{field: array} of the classes that are meant."""
    import numpy as np
    boxes, classes, levels = [], [], []
    with open(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            kind, *words = line.split() or [""]
            if kind not in number:
                continue
            try:
                cut, hidden, _, _, top, _, bottom, height, width, length, x, y, z, turn = map(float, words[:14])
            except ValueError:
                raise DatasetError(f"{path}, line {at}: not 14 numbers behind the class {kind}") from None
            place = calibration.lidar(np.array((x, y, z), np.float32))
            boxes.append([place[0], place[1], place[2] + height / 2, length, width, height, -(turn + np.pi / 2)])
            classes.append(number[kind])
            levels.append(_difficulty(bottom - top + 1, cut, hidden))
    return {"boxes": np.array(boxes, np.float32).reshape(-1, 7), "classes": np.array(classes, np.int64), "difficulty": np.array(levels, np.int64)}


def _size_of(path):
    """Width and height of a PNG."""
    with open(path, "rb") as file:
        head = file.read(24)
    if len(head) < 24 or not head.startswith(_PNG):
        raise DatasetError(f"{path} is no PNG")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:], "big")


def _frames(root, split):
    """The folder of a split's frames, and their names; of a list those that it has."""
    if not isinstance(split, (str, os.PathLike)):
        return "training", [str(name) for name in split]
    split = os.fspath(split)
    listed = split if os.path.isfile(split) else os.path.join(root, "ImageSets", split + ".txt")
    folder = _FOLDERS.get(os.path.splitext(os.path.basename(split))[0])
    if os.path.isfile(listed):
        with open(listed, encoding="utf-8") as file:
            return folder or "training", file.read().split()
    if split not in ("training", "testing"):
        raise ArgumentError(f"split is {split!r}, and {listed} is not there: give \"training\" or \"testing\", all that is there, a file of frames, or a list"
                            " of them")
    return split, sorted(os.path.splitext(name)[0] for name in os.listdir(os.path.join(root, split, "velodyne")) if name.endswith(".bin"))


class KittiRows:
    """Scans and their boxes."""

    def __init__(self, root, split, classes, fields, fov):
        folder, self.frames = _frames(root, split)
        if not self.frames:
            raise DatasetError(f"{root} has no frame of {split!r}")
        self.classes, self.fields, number = classes, fields, {name: at for at, name in enumerate(classes)}

        def files(part, suffix, otherwise=""):
            return Files.there([os.path.join(root, folder, part, frame + suffix) for frame in self.frames], otherwise)

        self.files = files("velodyne", ".bin")
        has_objects = bool(set(fields) & set(_OBJECTS))
        self.calibrations = [_Calibration(path) for path in files("calib", ".txt").paths] if has_objects or fov else []
        self.sizes = [_size_of(path) for path in files("image_2", ".png", ": give fov=False for all points of a scan").paths] if fov else []
        self.objects = [_objects(path, calibration, number) for path, calibration in zip(files("label_2", ".txt").paths, self.calibrations)] if has_objects else []
        self.most = max((len(each["classes"]) for each in self.objects), default=0)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        import numpy as np
        index = range(len(self))[index]
        data = self.files.read(index)
        if self.sizes:
            points = np.frombuffer(data, np.float32).reshape(-1, 4)
            data = points[self.calibrations[index].is_seen(points[:, :3], self.sizes[index])].tobytes()
        return {"points": data, **{name: self._frame(index) if name == "frame" else self.objects[index][name] for name in self.fields}}

    def _frame(self, index):
        try:
            return int(self.frames[index])
        except ValueError:
            raise DatasetError(f"frame {self.frames[index]!r} is no number: leave \"frame\" out of fields=") from None


class Kitti(Wrapped):
    """Of from_kitti(). classes: the names, in the order of their numbers; frames: the names, in the order of the samples."""

    def __init__(self, rows, *, name, version, workers, timeout, room, keep):
        names = sorted(set(rows.fields) & set(_OBJECTS), key=lambda each: each != "boxes")
        room = room or rows.files.largest + _SLACK + rows.most * _OBJECT_BYTES
        super().__init__(rows, name, version, workers, timeout, False, room, keep, dict.fromkeys(names, max(rows.most, 1)), boxes=names)
        self.classes, self.frames = rows.classes, rows.frames


def from_kitti(root: str | os.PathLike, split: str | os.PathLike | Sequence[str] = "train", *, classes: Sequence[str] = ("Car", "Pedestrian", "Cyclist"),
               fields: Sequence[str] | None = None, fov: bool = True, workers: int | None = None, name: str | None = None, version: str = "",
               timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Kitti:
    """Scans and boxes of KITTI's 3-D object detection, for Loader with a pipeline of points.

        data = oa.from_kitti("/data/kitti", "train")
        scans = oa.Compose([t.PointCloud(150000, 4, columns=4, padding="ragged"), t.PointFlip("y"), t.PointRotation(45), t.PointScale((0.95, 1.05)),
                            t.PointRange((0, -40, -3, 70.4, 40, 1)), t.PointShuffle()])
        for batch in oa.Loader(data, scans, batch_size=4): batch["points"].csr(), batch["boxes"].list(), batch["classes"].list()

    root: the folder with training/velodyne, calib, label_2 and image_2.
    split: a list of root/ImageSets, such as "train", "val" and "test"; a file of that kind; a list of frames, such as "000012"; or
        "training" and "testing", all scans that are there.
    classes: those that are meant, in the order of their numbers; others, DontCare too, are left out.
    fields: what a batch has beside "points", in this order. Default: all four; of testing, which has no labels, frame:
        boxes       ragged float32 [n, 7] in the lidar's coordinates: x, y and z of the middle, length, width, height, yaw
        classes     ragged int64 [n]: numbers of classes
        difficulty  ragged int64 [n]: 0 easy, 1 moderate, 2 hard, as the benchmark has them, or -1
        frame       int64: the frame's number
    fov: True: of the points those on the left colour camera's picture alone, where there are labels; its size is that of image_2.

    Formulas are those of OpenPCDet (FOV_POINTS_ONLY, gt_boxes_lidar). Boxes follow the pipeline as wrap() says. The other arguments
    are those of wrap().
    """
    needs("numpy", "KITTI")
    root = urls.local(root, "from_kitti()")
    classes = tuple([classes] if isinstance(classes, str) else classes)
    is_test = isinstance(split, (str, os.PathLike)) and _FOLDERS.get(os.path.splitext(os.path.basename(os.fspath(split)))[0]) == "testing"
    fields = (("frame",) if is_test else _FIELDS) if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
    for each in fields:
        if each not in _FIELDS:
            raise ArgumentError(f"fields= names {each!r}; there are: {', '.join(_FIELDS)}")
    if set(fields) & set(_OBJECTS) and "boxes" not in fields:
        raise ArgumentError(f"fields={fields!r}: \"boxes\" must be among them, which the others have a row for")
    return Kitti(KittiRows(root, split, classes, fields, fov), workers=workers, name=name, version=version, timeout=timeout, room=room, keep=keep)
