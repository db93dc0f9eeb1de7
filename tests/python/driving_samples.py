# SPDX-License-Identifier: Apache-2.0
"""Small data sets as KITTI and nuScenes have them on disk; calibrations are ones of their own."""

import hashlib
import json

import numpy as np

SIZE = (1242, 375)
LABELS = (
    "Car 0.00 0 -1.58 587.01 173.33 614.12 220.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\n"
    "Cyclist 0.10 1 -2.46 665.45 160.00 717.93 190.10 1.72 0.47 1.65 2.45 1.35 22.10 -2.35\n"
    "Pedestrian 0.40 2 0.21 423.17 173.67 433.17 200.00 1.60 0.38 0.30 -5.87 1.63 23.11 -0.03\n"
    "Van 0.00 0 0.00 1.00 1.00 2.00 9.00 2.00 2.00 5.00 3.00 1.60 30.00 0.10\n"
    "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10\n",
    "Car 0.80 0 1.55 700.00 150.00 900.00 180.00 1.45 1.60 3.90 4.20 1.60 12.00 3.10\n",
    "",
)


def calibration(index):
    return ("P0: 7.215377e+02 0 6.095593e+02 0 0 7.215377e+02 1.728540e+02 0 0 0 1 0\n"
            "P1: 7.215377e+02 0 6.095593e+02 -3.875744e+02 0 7.215377e+02 1.728540e+02 0 0 0 1 0\n"
            f"P2: 7.215377e+02 0 6.095593e+02 {44.85728 + index} 0 7.215377e+02 1.728540e+02 2.163791e-01 0 0 1 2.745884e-03\n"
            "P3: 7.215377e+02 0 6.095593e+02 -3.395242e+02 0 7.215377e+02 1.728540e+02 2.199936e+00 0 0 1 2.729905e-03\n"
            "R0_rect: 9.999239e-01 9.837760e-03 -7.445048e-03 -9.869795e-03 9.999421e-01 -4.278459e-03 7.402527e-03 4.351614e-03 9.999631e-01\n"
            "Tr_velo_to_cam: 7.533745e-03 -9.999714e-01 -6.166020e-04 -4.069766e-03 1.480249e-02 7.280733e-04 -9.998902e-01 -7.631618e-02"
            " 9.998621e-01 7.523790e-03 1.480755e-02 -2.717806e-01\n"
            "Tr_imu_to_velo: 1 0 0 0 0 1 0 0 0 0 1 0\n\n")


def scan(index):
    """float32 [n, 4], all around."""
    at = np.arange(400 + 20 * index, dtype=np.float64)
    return np.stack([at * 37 % 101 - 40, at * 53 % 67 - 33, at * 29 % 23 / 4 - 3, at % 50 / 50], 1).astype(np.float32)


def write_kitti(root):
    for index, labels in enumerate(LABELS):
        name = f"{index + 7:06}"
        for part, suffix, data in (("velodyne", "bin", scan(index).tobytes()), ("calib", "txt", calibration(index).encode()),
                                   ("label_2", "txt", labels.encode()),
                                   ("image_2", "png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"".join(side.to_bytes(4, "big") for side in SIZE))):
            folder = root / "training" / part
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.{suffix}").write_bytes(data)
    (root / "ImageSets").mkdir()
    (root / "ImageSets" / "val.txt").write_text("000009\n000007\n")


def write_cars(root, count):
    """Scans as KITTI's, of 300 points on the ground and 60 on each of one or two cars, whose boxes are in the labels."""
    draw = np.random.default_rng(1)
    for index in range(count):
        points, lines = [draw.uniform((0, -40, -1.7, 0), (70, 40, -1.6, 1), (300, 4))], []
        for _ in range(1 + index % 2):
            x, y, yaw = draw.uniform(8, 50), draw.uniform(-15, 15), draw.uniform(-3, 3)
            at = draw.uniform(-1, 1, (60, 3)) * (2, .8, .75)
            at = np.column_stack([at[:, 0] * np.cos(yaw) - at[:, 1] * np.sin(yaw) + x, at[:, 0] * np.sin(yaw) + at[:, 1] * np.cos(yaw) + y, at[:, 2] - .9])
            points.append(np.column_stack([at, np.full(60, .9)]))
            lines.append(f"Car 0 0 0 0 0 50 50 1.5 1.6 4 {-y} {.9 + .75} {x} {-yaw - np.pi / 2}\n")
        camera = "P2: 700 0 600 0 0 700 170 0 0 0 1 0\nR0_rect: 1 0 0 0 1 0 0 0 1\nTr_velo_to_cam: 0 -1 0 0 0 0 -1 0 1 0 0 0\n"
        for part, suffix, data in (("velodyne", "bin", np.concatenate(points).astype(np.float32).tobytes()), ("calib", "txt", camera.encode()),
                                   ("label_2", "txt", "".join(lines).encode())):
            folder = root / "training" / part
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{index:06}.{suffix}").write_bytes(data)


# ---- nuScenes ----

SCENES = ("scene-0061", "scene-0103")
CAMERAS = ("CAM_BACK", "CAM_FRONT")
CATEGORIES = ("human.pedestrian.adult", "vehicle.car", "animal", "vehicle.bus.bendy", "movable_object.trafficcone")
ATTRIBUTES = ("vehicle.moving", "pedestrian.standing")
KEYS, BETWEEN = 3, 4        # key frames of a scene, and scans from one to the next


def _token(*words):
    return hashlib.md5(repr(words).encode()).hexdigest()


def _turn(yaw, pitch=0.0, roll=0.0):
    """As a quaternion: about z of about y of about x."""
    made = np.array([1.0, 0, 0, 0])
    for angle, axis in ((yaw, 3), (pitch, 2), (roll, 1)):
        w, x, y, z = made
        one = np.zeros(4)
        one[0], one[axis] = np.cos(angle / 2), np.sin(angle / 2)
        a, b, c, d = one
        made = np.array([w * a - x * b - y * c - z * d, w * b + x * a + y * d - z * c, w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a])
    return made.tolist()


def sweep(scene, number):
    """float32 [n, 5] around the car, some of it nearer than a metre."""
    at = np.arange(60 + 2 * number + scene, dtype=np.float64)
    return np.stack([at * 37 % 101 / 3 - 17, at * 53 % 67 / 3 - 11, at * 29 % 23 / 4 - 3, at % 50, at % 32], 1).astype(np.float32) * np.float32(.3 if number % 2 else 1)


def labels_of_sweep(scene, number):
    """uint8 [n]."""
    return (np.arange(len(sweep(scene, number))) * 7 % 32).astype(np.uint8)


def _sensors(tables):
    for number, channel in enumerate(("LIDAR_TOP", "RADAR_FRONT", "CAM_FRONT", "CAM_BACK")):
        camera = channel.startswith("CAM")
        tables["sensor"].append({"token": _token(channel), "channel": channel, "modality": "camera" if camera else "lidar"})
        tables["calibrated_sensor"].append({
            "token": _token(channel, "calibrated"), "sensor_token": _token(channel), "translation": [.9 - number, .1 * number, 1.8],
            "rotation": _turn(-1.5 + number, .02, .01), "camera_intrinsic": [[1266.4, 0, 816.2], [0, 1266.4, 491.5], [0, 0, 1]] if camera else []})


def _add_file(root, tables, channel, scene, number, sample, is_key, data, suffix):
    time = 1532402927000000 + scene * 10 ** 9 + number * 123456 + (17000 if channel.startswith("CAM") else 0)
    name = f"{'samples' if is_key else 'sweeps'}/{channel}/{scene}-{number:02}.{suffix}"
    token = _token(channel, scene, number)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)
    place = number * .8 + (.1 if channel.startswith("CAM") else 0)
    tables["ego_pose"].append({"token": token, "timestamp": time, "translation": [411.3 + place, 1180.9 - .3 * place, .1],
                               "rotation": _turn(2.6 + .1 * scene - .03 * place, .01 * scene, .013)})
    tables["sample_data"].append({
        "token": token, "sample_token": sample, "ego_pose_token": token, "calibrated_sensor_token": _token(channel, "calibrated"), "timestamp": time,
        "fileformat": suffix.split(".")[0], "is_key_frame": is_key, "height": 0, "width": 0, "filename": name, "prev": "", "next": ""})
    return time


def _chain(records):
    for before, behind in zip(records, records[1:]):
        before["next"], behind["prev"] = behind["token"], before["token"]


def _add_scene(root, tables, scene, picture):
    samples = [_token("sample", scene, key) for key in range(KEYS)]
    begin = len(tables["sample"])
    for number in range((KEYS - 1) * BETWEEN + 1):
        key, behind = divmod(number, BETWEEN)
        time = _add_file(root, tables, "LIDAR_TOP", scene, number, samples[key], behind == 0, sweep(scene, number).tobytes(), "pcd.bin")
        _add_file(root, tables, "RADAR_FRONT", scene, number, samples[key], behind == 0, b"", "pcd")
        if behind == 0:
            labels = root / "lidarseg/v1.0-mini" / f"{_token('LIDAR_TOP', scene, number)}_lidarseg.bin"
            labels.parent.mkdir(parents=True, exist_ok=True)
            labels.write_bytes(labels_of_sweep(scene, number).tobytes())
            tables["sample"].append({"token": samples[key], "timestamp": time, "prev": "", "next": "", "scene_token": _token("scene", scene)})
            for channel in CAMERAS:
                _add_file(root, tables, channel, scene, number, samples[key], True, picture, "jpg")
    _chain(tables["sample"][begin:])
    for channel in ("LIDAR_TOP", "CAM_FRONT", "CAM_BACK"):
        _chain([each for each in tables["sample_data"] if f"/{channel}/{scene}-" in each["filename"]])
    tables["scene"].append({"token": _token("scene", scene), "log_token": "", "nbr_samples": KEYS, "first_sample_token": samples[0],
                            "last_sample_token": samples[-1], "name": SCENES[scene], "description": ""})
    _add_objects(tables, scene, samples)


def _add_objects(tables, scene, samples):
    for number, category in enumerate(CATEGORIES):
        instance = _token("instance", scene, number)
        seen = [key for key in range(KEYS) if not (number == 3 and key != 1) and not (number == 0 and key == 0)]
        begin = len(tables["sample_annotation"])
        for key in seen:
            tables["sample_annotation"].append({
                "token": _token("annotation", scene, number, key), "sample_token": samples[key], "instance_token": instance, "visibility_token": "",
                "attribute_tokens": [_token(ATTRIBUTES[number % 2])] if number < 2 else [],
                "translation": [400.1 + 7 * number + .7 * key * number, 1190.4 - 5 * number + .4 * key, .9 + .05 * key], "size": [1.9 + number, 4.3, 1.7],
                "rotation": _turn(.4 + 1.3 * number + .02 * key, .03 * number), "prev": "", "next": "",
                "num_lidar_pts": 0 if number == 4 and key == 2 else 5 + number + key, "num_radar_pts": 0})
        made = tables["sample_annotation"][begin:]
        _chain(made)
        tables["instance"].append({"token": instance, "category_token": _token(category), "nbr_annotations": len(made),
                                   "first_annotation_token": made[0]["token"], "last_annotation_token": made[-1]["token"]})


def write_nuscenes(root, picture=b""):
    tables = {name: [] for name in ("sensor", "calibrated_sensor", "ego_pose", "scene", "sample", "sample_data", "sample_annotation", "instance", "log", "map",
                                    "visibility")}
    tables["category"] = [{"token": _token(name), "name": name, "description": ""} for name in CATEGORIES]
    tables["attribute"] = [{"token": _token(name), "name": name, "description": ""} for name in ATTRIBUTES]
    _sensors(tables)
    for scene in range(len(SCENES)):
        _add_scene(root, tables, scene, picture)
    folder = root / "v1.0-mini"
    folder.mkdir()
    for name, records in tables.items():
        (folder / f"{name}.json").write_text(json.dumps(records if name != "sample_annotation" else records[::-1], indent=0))
