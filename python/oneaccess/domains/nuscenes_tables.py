# SPDX-License-Identifier: Apache-2.0
"""What nuScenes' tables (JSON files of up to a gigabyte) say of all key frames: read once, and kept as arrays for later jobs."""

import array
import collections
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from ..errors import DatasetError, not_there
from ..sources.noted import Noted
from ..sources.tables import stamp_of

_TABLES = ("attribute", "calibrated_sensor", "category", "ego_pose", "instance", "sample", "sample_annotation", "sample_data", "scene", "sensor")
_FORMAT = 1             # of what is kept
_BLOCK = 8 << 20
_BETWEEN = re.compile(r"[\s,]*")
LIDAR = "LIDAR_TOP"
_MOST_SECONDS = 1.5     # between two annotations that a velocity is computed of, as in the devkit
_MICRO = 1e-6


# ---- tables ----


def _records(path) -> Iterator[dict]:
    """The objects of a list, one after another."""
    decode = json.JSONDecoder().raw_decode
    with open(path, encoding="utf-8") as file:
        text, at = file.read(_BLOCK).lstrip(), 1
        if not text.startswith("["):
            raise DatasetError(f"{path} is no table of nuScenes: it begins with no list")
        while True:
            at = _BETWEEN.match(text, at).end()
            if text[at:at + 1] == "]":
                return
            try:
                record, at = decode(text, at)
            except json.JSONDecodeError as why:
                more = file.read(_BLOCK)
                if not more:
                    raise DatasetError(f"{path} is no table of nuScenes, or was cut off: {why}") from None
                text, at = text[at:] + more, 0
                continue
            yield record


class _Tables:
    """Those of a version."""

    def __init__(self, folder):
        self.folder = folder

    def rows(self, table, *names) -> Iterator[tuple]:
        """Of each record what it has under these names."""
        path = os.path.join(self.folder, f"{table}.json")
        for number, record in enumerate(_records(path)):
            try:
                yield tuple(record[name] for name in names)
            except (KeyError, TypeError, IndexError) as why:
                raise DatasetError(f"{path}: record {number} has no {why}") from None

    def numbers(self, table):
        """{token: number of the record}."""
        return {token: number for number, (token,) in enumerate(self.rows(table, "token"))}


# ---- places ----


def rotations(quaternions: Any) -> Any:
    """[..., 4] (w, x, y, z) as matrices [..., 3, 3]."""
    import numpy as np
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ValueError("a rotation is no quaternion")
    w, x, y, z = np.moveaxis(quaternions / lengths, -1, 0)
    return np.stack([np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
                     np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
                     np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1)], -2)


def matrices(poses: Any) -> Any:
    """[..., 7], a translation and a quaternion, as matrices [..., 4, 4]."""
    import numpy as np
    if not np.isfinite(poses).all():
        raise ValueError("a place has something else than numbers")
    made = np.zeros((*poses.shape[:-1], 4, 4))
    made[..., :3, :3], made[..., :3, 3], made[..., 3, 3] = rotations(poses[..., 3:]), poses[..., :3], 1
    return made


def _boxes(global_boxes, velocities, from_global):
    """[n, 9] of the lidar's coordinates. global_boxes: [n, 10], middle, width, length, height, quaternion; from_global: [n, 4, 4]."""
    import numpy as np
    turn = from_global[:, :3, :3]
    if not (np.abs(global_boxes[:, :6]) < 1e30).all():      # NaN is not, either
        raise ValueError("a box has a place or a size that is no number")
    front = np.einsum("nij,nj->ni", turn, rotations(global_boxes[:, 6:])[:, :, 0])
    return np.concatenate([np.einsum("nij,nj->ni", turn, global_boxes[:, :3]) + from_global[:, :3, 3], global_boxes[:, [4, 3, 5]],
                           np.arctan2(front[:, 1], front[:, 0])[:, None], np.einsum("nij,nj->ni", turn, velocities)[:, :2]], 1)


def _velocities(middles, seconds, before, behind):
    """[n, 3] in metres a second; NaN where there is nothing to compute them of. before, behind: numbers of the same object's annotations, or -1."""
    import numpy as np
    own = np.arange(len(middles))
    first, last = np.where(before < 0, own, before), np.where(behind < 0, own, behind)
    between = seconds[last] - seconds[first]
    most = np.where((before >= 0) & (behind >= 0), 2, 1) * _MOST_SECONDS
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (middles[last] - middles[first]) / between[:, None]
    found[(first == last) | (between > most)] = np.nan
    return found


# ---- all that is known of a version ----


def _texts(values):
    import numpy as np
    return np.array([value.encode() for value in values] or [b""], "S")


def _files(tables, scene_of_sample, sample_numbers):
    """The sensors, and of the lidar all files, of cameras those of key frames: [sensor, scene, time, sample, is it a key frame, name, pose's
    token, calibration, its own token], by sensor, scene and time."""
    channels = dict(tables.rows("sensor", "token", "channel"))
    sensors = [LIDAR, *sorted(name for name in channels.values() if name.startswith("CAM"))]
    calibrations = {token: (number, channels[sensor]) for number, (token, sensor) in enumerate(tables.rows("calibrated_sensor", "token", "sensor_token"))}
    numbers, found = {name: number for number, name in enumerate(sensors)}, []
    for own, sample, is_key, time, name, pose, token in tables.rows("sample_data", "token", "sample_token", "is_key_frame", "timestamp", "filename",
                                                                    "ego_pose_token", "calibrated_sensor_token"):
        calibration, channel = calibrations[token]
        if channel == LIDAR or is_key and channel in numbers:
            if name.startswith("/") or ".." in name.split("/") or "/" in own:
                raise DatasetError(f"{tables.folder}/sample_data.json: record {own} names {name}, which is not below the data set's folder")
            number = sample_numbers[sample]
            found.append((numbers[channel], scene_of_sample[number], time, number, is_key, name, pose, calibration, own))
    return sensors, sorted(found)


def _poses(tables, tokens):
    """[n, 7] of these tokens. The table has those of all other sensors, too."""
    import numpy as np
    wanted, made = collections.defaultdict(list), np.full((len(tokens), 7), np.nan)
    for number, token in enumerate(tokens):
        wanted[token].append(number)
    for token, where, turn in tables.rows("ego_pose", "token", "translation", "rotation"):
        if token in wanted:
            made[wanted[token]] = *where, *turn
    if np.isnan(made).any():
        raise DatasetError(f"{tables.folder}/ego_pose.json lacks poses of sample_data.json, or has some that are no numbers")
    return made


def _objects(tables, sample_numbers, sample_times, to_lidar):
    """Of boxes what a job needs, sorted by their samples. to_lidar: of each sample, from global coordinates."""
    import numpy as np
    categories = tables.numbers("category")
    category_of = {token: categories[category] for token, category in tables.rows("instance", "token", "category_token")}
    attributes = tables.numbers("attribute")
    tokens, links, whole, boxes = {}, [], array.array("q"), array.array("d")
    for token, sample, instance, attribute, where, size, turn, before, behind, points in tables.rows(
            "sample_annotation", "token", "sample_token", "instance_token", "attribute_tokens", "translation", "size", "rotation", "prev", "next",
            "num_lidar_pts"):
        tokens[token] = len(links)
        links.append((before, behind))
        whole.extend((sample_numbers[sample], category_of[instance], attributes[attribute[0]] if attribute else -1, points))
        boxes.extend((*where, *size, *turn))
    whole, boxes = np.array(whole, np.int64).reshape(-1, 4), np.array(boxes, np.float64).reshape(-1, 10)
    before, behind = np.array([[tokens[each] if each else -1 for each in link] for link in links], np.int64).reshape(-1, 2).T
    samples = whole[:, 0]
    velocities = _velocities(boxes[:, :3], _MICRO * sample_times[samples], before, behind)
    order = np.argsort(samples, kind="stable")
    return {"boxes": _boxes(boxes, velocities, to_lidar[samples])[order].astype(np.float32), "box_categories": whole[order, 1],
            "box_attributes": whole[order, 2], "box_points": whole[order, 3],
            "box_begins": np.searchsorted(samples[order], np.arange(len(sample_times) + 1))}


def _look(folder):
    """{name: array}. Files are numbered: of the lidar by scene and time, then of each camera those of key frames."""
    import numpy as np
    tables = _Tables(folder)
    scenes = [*tables.rows("scene", "token", "name")]
    scene_of = {token: number for number, (token, _) in enumerate(scenes)}
    samples = sorted((scene_of[scene], time, token) for token, time, scene in tables.rows("sample", "token", "timestamp", "scene_token"))
    numbers = {token: number for number, (_, _, token) in enumerate(samples)}
    sensors, files = _files(tables, [scene for scene, _, _ in samples], numbers)
    of_sample = np.full((len(samples), len(sensors)), -1, np.int64)
    for number, (sensor, _, _, sample, is_key, *_) in enumerate(files):
        if is_key:
            of_sample[sample, sensor] = number
    if not len(samples) or (of_sample[:, 0] < 0).any():
        raise DatasetError(f"{folder}: {(of_sample[:, 0] < 0).sum():,} of {len(samples):,} samples have no key frame of {LIDAR}")
    calibrations = [*tables.rows("calibrated_sensor", "translation", "rotation", "camera_intrinsic")]
    found = {"file_poses": _poses(tables, [file[6] for file in files]), "file_calibrations": np.array([file[7] for file in files], np.int64),
             "calibrations": np.array([(*where, *turn) for where, turn, _ in calibrations], np.float64).reshape(-1, 7)}
    key = of_sample[:, 0]
    to_global = matrices(found["file_poses"])[key] @ matrices(found["calibrations"])[found["file_calibrations"][key]]       # of all, which so are checked
    times = np.array([time for _, time, _ in samples], np.int64)
    return {**found, "scenes": _texts(name for _, name in scenes), "sensors": _texts(sensors), "sample_files": of_sample,
            "sample_tokens": _texts(token for _, _, token in samples), "sample_scans": _texts(files[number][8] for number in key), "sample_scenes": np.array([scene for scene, _, _ in samples], np.int64),
            "file_names": _texts(file[5] for file in files), "file_times": np.array([file[2] for file in files], np.int64),
            "file_scenes": np.array([file[1] for file in files], np.int64),
            "intrinsics": np.array([each or np.zeros((3, 3)) for _, _, each in calibrations], np.float64).reshape(-1, 3, 3),
            "categories": _texts(name for (name,) in tables.rows("category", "name")),
            "attributes": _texts(name for (name,) in tables.rows("attribute", "name")),
            **_objects(tables, numbers, times, np.linalg.inv(to_global))}


_ARRAYS = {**dict.fromkeys(("attributes", "categories", "file_names", "sample_scans", "sample_tokens", "scenes", "sensors"), ("S", 1)),
           **dict.fromkeys(("box_attributes", "box_begins", "box_categories", "box_points", "file_calibrations", "file_scenes", "file_times", "sample_scenes"), ("int64", 1)),
           "boxes": ("float32", 2), "calibrations": ("float64", 2), "file_poses": ("float64", 2), "intrinsics": ("float64", 3), "sample_files": ("int64", 2)}


def _made(folder):
    try:
        return _look(folder)
    except KeyError as why:
        raise DatasetError(f"{folder}: a record names {why}, which its table does not have") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as why:
        raise DatasetError(f"{folder}: a table has something else than nuScenes': {type(why).__name__}: {why}") from None


def tables_of(folder: str, index: str) -> dict[str, Any]:
    """What is known of the version whose tables are in the folder. index: where that is kept."""
    paths = [os.path.join(folder, f"{table}.json") for table in _TABLES]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        raise not_there(f"{missing[0]} is not there: root is the folder with maps, samples, sweeps and v1.0-trainval (or v1.0-mini)", missing[0])
    noted = Noted(index, repr([_FORMAT, folder, [stamp_of(path) for path in paths]]), _ARRAYS, "the tables of nuScenes")
    return noted.found(lambda: _made(folder), lambda found: True)
