# SPDX-License-Identifier: Apache-2.0
"""nuScenes: key frames of the lidar with boxes in its coordinates, the scans before them, labels of points, and cameras. What its tables say is
in nuscenes_tables.py; files are read by the pool (wrapped.py)."""

import os
from collections.abc import Mapping, Sequence

from .. import ragged, urls
from ..columns import named
from ..errors import ArgumentError, DatasetError, needs
from ..sources.folders import Files
from ..sources.noted import folder_of
from ..wrapped import Wrapped
from .nuscenes_tables import matrices, tables_of
from .semantickitti import table_of

_KINDS = {
    "movable_object.barrier": "barrier", "vehicle.bicycle": "bicycle", "vehicle.bus.bendy": "bus", "vehicle.bus.rigid": "bus", "vehicle.car": "car",
    "vehicle.construction": "construction_vehicle", "vehicle.motorcycle": "motorcycle", "human.pedestrian.adult": "pedestrian",
    "human.pedestrian.child": "pedestrian", "human.pedestrian.construction_worker": "pedestrian", "human.pedestrian.police_officer": "pedestrian",
    "movable_object.trafficcone": "traffic_cone", "vehicle.trailer": "trailer", "vehicle.truck": "truck",
}
CLASSES = ("car", "truck", "bus", "trailer", "construction_vehicle", "pedestrian", "motorcycle", "bicycle", "traffic_cone", "barrier")
# LidarsegClassMapper of the devkit: 1 barrier to 16 vegetation; all others are 0.
_LEARNED = {2: 7, 3: 7, 4: 7, 6: 7, 9: 1, 12: 8, 14: 2, 15: 3, 16: 3, 17: 4, 18: 5, 21: 6, 22: 9, 23: 10, 24: 11, 25: 12, 26: 13, 27: 14, 28: 15, 30: 16}
_OBJECTS = ("boxes", "classes", "num_lidar_pts", "attributes")
_FIELDS = (*_OBJECTS, "token", "timestamp", "lidar_to_ego", "ego_to_global")
_CAMERA_FIELDS = ("intrinsics", "lidar_to_camera")
_COLUMNS = 5
_CLOSE = 1.0            # metres: nearer points of earlier scans are those of the car itself
_SLACK, _OBJECT_BYTES = 8192, 96
_MOST_SWEEPS = 100

# The devkit's scenes of "val" in v1.0-trainval, from the first to the last of each row, and of "mini_val" in v1.0-mini; "train" has all others.
_VALIDATED = ((3, 3), (12, 18), (35, 36), (38, 39), (92, 110), (221, 221), (268, 278), (329, 332), (344, 346), (519, 524), (552, 565), (625, 627),
              (629, 630), (632, 638), (770, 771), (775, 775), (777, 778), (780, 784), (794, 800), (802, 802), (904, 917), (919, 931), (962, 963),
              (966, 969), (971, 972), (1059, 1073))
_VALIDATED_MINI = ((103, 103), (916, 916))


def _versions(split, version):
    """The version, and of "mini_val" what it is a part of."""
    if not isinstance(split, str):
        return version or "v1.0-trainval", split
    return version or ("v1.0-mini" if split.startswith("mini") else "v1.0-test" if split == "test" else "v1.0-trainval"), split.removeprefix("mini_")


def _scenes(split, version, names):
    """Which scenes are meant, by their numbers."""
    if not isinstance(split, str):
        chosen = named(split) or []
        missing = [name for name in chosen if name not in names]
        if missing:
            raise ArgumentError(f"split names {missing[0]!r}, which is no scene of {version}: it has {', '.join(names[:3])} and others")
        return [names.index(name) for name in chosen]
    held = {f"scene-{number:04}" for first, last in (_VALIDATED_MINI if version == "v1.0-mini" else _VALIDATED) for number in range(first, last + 1)}
    if split in ("train", "val"):
        return [number for number, name in enumerate(names) if (name in held) == (split == "val")]
    if split in ("trainval", "test", "mini"):
        return list(range(len(names)))
    raise ArgumentError(f"split is {split!r}: \"train\", \"val\", \"trainval\", \"test\", \"mini_train\", \"mini_val\", \"mini\", or a list of scenes")


def _kind_numbers(categories, classes):
    """Of each category its class' number, or -1. A class is one of the ten of detection, or a category."""
    numbers = {name: number for number, name in enumerate(classes)}
    found = [numbers.get(name, numbers.get(_KINDS.get(name), -1)) for name in categories]
    unknown = [name for name in classes if name not in categories and name not in _KINDS.values()]
    if unknown:
        raise ArgumentError(f"classes= names {unknown[0]!r}; there are: {', '.join(CLASSES)}, and categories such as \"vehicle.car\"")
    return found


class NuScenesRows:
    """A key frame's scan, boxes, and pictures."""

    def __init__(self, root, split, version, classes, fields, min_points, sweeps, labels, cameras, index):
        import numpy as np
        version, split = _versions(split, version)
        known = tables_of(os.path.join(root, version), index)
        texts = {name: [text.decode() for text in known[name].tolist()] for name in ("scenes", "sensors", "categories", "attributes", "sample_tokens")}
        scenes = _scenes(split, version, texts["scenes"])
        chosen = np.concatenate([np.flatnonzero(known["sample_scenes"] == scene) for scene in scenes] or [np.zeros(0, np.int64)])
        if not len(chosen):
            raise DatasetError(f"{root} has no key frame of {split!r} in {version}")
        self.root, self.fields, self.cameras, self.attributes = root, fields, cameras, texts["attributes"]
        self.tokens, self.times = [texts["sample_tokens"][at] for at in chosen], None
        self._set_files(known, texts["sensors"], chosen, sweeps)
        self.table = table_of(labels, _LEARNED, 256)
        self.labels = None if labels is None else Files.there(
            [os.path.join(root, "lidarseg", version, f"{token.decode()}_lidarseg.bin") for token in known["sample_scans"][chosen].tolist()],
            ": give labels=None without nuScenes-lidarseg")
        self._set_objects(known, chosen, np.array(_kind_numbers(texts["categories"], classes), np.int64), min_points)

    def _set_files(self, known, sensors, chosen, sweeps):
        """Of those that samples are made of: key frames, the scans before them, and pictures."""
        import numpy as np
        unknown = [name for name in self.cameras if name not in sensors[1:]]
        if unknown:
            raise ArgumentError(f"cameras= names {unknown[0]!r}; there are: {', '.join(sensors[1:])}")
        of_sensor = known["sample_files"][chosen][:, [0, *(sensors.index(name) for name in self.cameras)]]
        if (of_sensor < 0).any():
            at, camera = np.argwhere(of_sensor < 0)[0]
            raise DatasetError(f"sample {self.tokens[at]} has no picture of {self.cameras[camera - 1]}")
        names = [os.path.join(self.root, name.decode()) for name in known["file_names"][of_sensor.ravel()].tolist()]
        self.files = Files.there(names)
        key = of_sensor[:, 0]
        poses = matrices(known["file_poses"][of_sensor])
        sensed = known["calibrations"][known["file_calibrations"][of_sensor]]
        to_global = poses @ matrices(sensed)
        self.times, self.poses, self.mounts = known["file_times"][key], poses[:, 0], matrices(sensed[:, 0])
        self.intrinsics = known["intrinsics"][known["file_calibrations"][of_sensor[:, 1:]]]
        self.to_cameras = np.linalg.inv(to_global[:, 1:]) @ to_global[:, :1]
        self.before = None if sweeps is None else _Before(known, key, sweeps, np.linalg.inv(to_global[:, 0]))

    def _set_objects(self, known, chosen, number_of, min_points):
        """The boxes of each sample: those of classes that are meant, in which the lidar saw something."""
        import numpy as np
        begins = known["box_begins"]
        counts = (begins[1:] - begins[:-1])[chosen]
        at = ragged.places(begins[chosen], counts)
        classes = number_of[known["box_categories"][at]]
        is_meant = (classes >= 0) & (known["box_points"][at] >= min_points)
        self.begins = np.concatenate([[0], np.cumsum(is_meant)])[np.concatenate([[0], np.cumsum(counts)])]
        at = at[is_meant]
        boxes = known["boxes"][at]
        self.objects = {"boxes": np.where(np.isfinite(boxes), boxes, np.float32(0)), "classes": classes[is_meant], "num_lidar_pts": known["box_points"][at],
                        "attributes": known["box_attributes"][at]}
        self.most = int(np.diff(self.begins).max())

    @property
    def room(self):
        parts = 1 + len(self.cameras) + (self.before.most + 1 if self.before else 0)
        return self.files.largest * parts * (2 if self.labels else 1) + _SLACK + self.most * _OBJECT_BYTES

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        index = range(len(self))[index]
        first = index * (1 + len(self.cameras))
        data = self.files.read(first)
        if self.before or self.labels:
            points = _points(data, self.files.paths[first])
            count = len(points)
            points = points if self.before is None else self.before.joined(index, self.root, points)
            data = (points if self.labels is None else self._labeled(index, points, count)).tobytes()
        pictures = {camera: self.files.read(first + 1 + at) for at, camera in enumerate(self.cameras)}
        return {"points": data, **pictures, **{name: self._field(name, index) for name in self.fields}}

    def _labeled(self, index, points, count):
        """With a column of labels, 0 of points of the scans before the key frame, which has so many."""
        import numpy as np
        labels = np.frombuffer(self.labels.read(index), np.uint8)
        if len(labels) != count:
            raise DatasetError(f"{self.labels.paths[index]} has {len(labels)} labels, and the scan {count} points")
        return np.column_stack([points, np.pad(self.table[labels], (0, len(points) - count))])

    def _field(self, name, index):
        import numpy as np
        if name in self.objects:
            return self.objects[name][self.begins[index]:self.begins[index + 1]]
        return {"token": lambda: self.tokens[index], "timestamp": lambda: np.int64(self.times[index]), "lidar_to_ego": lambda: self.mounts[index],
                "ego_to_global": lambda: self.poses[index], "intrinsics": lambda: self.intrinsics[index],
                "lidar_to_camera": lambda: self.to_cameras[index]}[name]()


def _points(data, path):
    """[n, 5] of a scan."""
    import numpy as np
    if len(data) % (4 * _COLUMNS):
        raise DatasetError(f"{path} has {len(data)} bytes: no points of {_COLUMNS} float32")
    return np.frombuffer(data, np.float32).reshape(-1, _COLUMNS)


class _Before:
    """The scans before key frames, in the coordinates of these. All of one scene lie one behind the other."""

    def __init__(self, known, key, sweeps, from_global):
        import numpy as np
        scenes, starts = np.unique(known["file_scenes"], return_index=True)      # of the lidar, whose files are first
        self.counts = np.minimum(key - starts[np.searchsorted(scenes, known["file_scenes"][key])], sweeps - 1)
        needed = np.unique(np.concatenate([np.arange(at - count, at + 1) for at, count in zip(key.tolist(), self.counts.tolist())]))
        self.places, self.most, self.from_global = np.searchsorted(needed, key), sweeps, from_global
        self.names, self.times = known["file_names"][needed], known["file_times"][needed]
        self.to_global = matrices(known["file_poses"][needed]) @ matrices(known["calibrations"][known["file_calibrations"][needed]])

    def joined(self, index, root, points):
        """[n, 5]: x, y, z, intensity and how many seconds before the key frame; of that, then of the last scan before it, and so on."""
        import numpy as np
        place, parts = int(self.places[index]), [np.column_stack([points[:, :4], np.zeros(len(points), np.float32)])]
        for at in range(place - 1, place - 1 - int(self.counts[index]), -1):
            path = os.path.join(root, self.names[at].decode())
            with open(path, "rb") as file:
                scan = _points(file.read(), path)
            scan = scan[(np.abs(scan[:, :2]) >= _CLOSE).any(1)]
            turn = self.from_global[index] @ self.to_global[at]
            seconds = np.full(len(scan), 1e-6 * (self.times[place] - self.times[at]))
            parts.append(np.column_stack([scan[:, :3] @ turn[:3, :3].T + turn[:3, 3], scan[:, 3], seconds]).astype(np.float32))
        return np.concatenate(parts)


class NuScenes(Wrapped):
    """Of from_nuscenes(). classes and attributes: the names, in the order of their numbers; tokens: of the samples, in their order."""

    def __init__(self, rows, classes, *, name, version, workers, timeout, room, keep):
        names = sorted(set(rows.fields) & set(_OBJECTS), key=lambda each: each != "boxes")
        super().__init__(rows, name, version, workers, timeout, False, room or rows.room, keep, dict.fromkeys(names, max(rows.most, 1)), boxes=names)
        self.classes, self.attributes, self.tokens = classes, rows.attributes, rows.tokens


def from_nuscenes(root: str | os.PathLike, split: str | Sequence[str] = "train", *, version: str | None = None, classes: Sequence[str] = CLASSES,
                  fields: Sequence[str] | None = None, min_points: int = 1, sweeps: int | None = None,
                  labels: str | Mapping[int, int] | None = None, cameras: str | Sequence[str] = (),
                  index: str | os.PathLike | None = None, workers: int | None = None, name: str | None = None, timeout: int = 60,
                  room: int | None = None, keep: float = 30.0) -> NuScenes:
    """Key frames of nuScenes, for Loader with a pipeline of points: the lidar's scan and the boxes in its coordinates.

        data = oa.from_nuscenes("/data/nuscenes", "train", sweeps=10)
        scans = oa.Compose([t.PointCloud(400000, 5, columns=5, padding="ragged"), t.PointFlip("x"), t.PointFlip("y"), t.PointRotation(45),
                            t.PointScale((0.95, 1.05)), t.PointRange((-54, -54, -5, 54, 54, 3)), t.PointShuffle()])
        for batch in oa.Loader(data, scans, batch_size=4): batch["points"].csr(), batch["boxes"].list(), batch["classes"].list()

    root: the folder with samples, sweeps and v1.0-trainval.
    split: "train" and "val", the devkit's scenes; "mini_train", "mini_val", "test"; "trainval" and "mini", all scenes of these; or a list of
        scenes, such as "scene-0061".
    version: the folder of the tables. Default: v1.0-mini, v1.0-test or v1.0-trainval, as split says.
    classes: those that are meant, in the order of their numbers; others are left out. The ten of the detection benchmark (the default, in the
        devkit's order), or categories, such as "vehicle.emergency.police".
    min_points: boxes with fewer points of the lidar in the key frame are left out. 0: all are there.
    sweeps: None: a point is x, y, z, intensity and the number of its ring, as in the file. 1 to 100: the key frame and the scans before it, at most so
        many in all, in the key frame's coordinates; a point is x, y, z, intensity and how many seconds it was before the key frame. Points of
        scans before it nearer than 1 m along both x and y are left out, as in OpenPCDet. At the begin of a scene there are fewer.
    labels: nuScenes-lidarseg: the label of each point is its sixth column (columns=6), of points of earlier scans 0. "classes": 0 to 16, as the
        devkit's LidarsegClassMapper; "raw": those of the files; {label of the files: number}, of all others 0. Default: there are none.
    cameras: channels whose pictures are fields, such as "CAM_FRONT": oa.views(scans, CAM_FRONT=oa.Compose([t.Resize((448, 800)), t.ToTensor()])).
    fields: what a batch has beside "points" and cameras, in this order. Default: all.
        boxes            ragged float32 [n, 9] in the lidar's coordinates: x, y and z of the middle, length, width, height, yaw, and vx and vy in m/s,
                         which are 0 where the devkit's box_velocity() has none
        classes          ragged int64 [n]: numbers of classes
        num_lidar_pts    ragged int64 [n]
        attributes       ragged int64 [n]: numbers of attributes, as attribute.json has them, or -1
        token            str: the sample's
        timestamp        int64, in microseconds: the scan's
        lidar_to_ego, ego_to_global          float64 [4, 4] of the scan
        intrinsics       float64 [cameras, 3, 3], of the pictures as the files have them
        lidar_to_camera  float64 [cameras, 4, 4], from the scan's to the picture's time, as the car moves between them
    index: the folder that keeps what the tables say. Default: $XDG_CACHE_HOME/oneaccess/nuscenes, else ~/.cache/oneaccess/nuscenes. The first
        job reads the tables once; they have gigabytes. A folder that cannot be written is an error.

    Boxes follow the pipeline as wrap() says, pictures and matrices do not. The other arguments are those of wrap().
    """
    needs("numpy", "nuScenes")
    root = urls.local(root, "from_nuscenes()")
    classes, cameras = (tuple(named(names) or ()) for names in (classes, cameras))
    there = _FIELDS + (_CAMERA_FIELDS if cameras else ())
    fields = there if fields is None else tuple(named(fields))
    for each in fields:
        if each not in there:
            raise ArgumentError(f"fields= names {each!r}; there are: {', '.join(there)}" + ("" if cameras else "; with cameras= more"))
    if set(fields) & set(_OBJECTS) and "boxes" not in fields:
        raise ArgumentError(f"fields={fields!r}: \"boxes\" must be among them, which the others have a row for")
    if isinstance(min_points, bool) or not isinstance(min_points, int):
        raise ArgumentError(f"min_points is {min_points!r}: a whole number, 0 for all boxes")
    if sweeps is not None and (not isinstance(sweeps, int) or not 1 <= sweeps <= _MOST_SWEEPS):
        raise ArgumentError(f"sweeps is {sweeps!r}: a whole number from 1 to {_MOST_SWEEPS}, or None")
    rows = NuScenesRows(root, split, version, classes, fields, min_points, sweeps, labels, cameras, folder_of("nuscenes", index))
    return NuScenes(rows, classes, name=name, version=version or "", workers=workers, timeout=timeout, room=room, keep=keep)
