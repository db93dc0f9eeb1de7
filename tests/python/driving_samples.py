# SPDX-License-Identifier: Apache-2.0
"""A small data set as KITTI has them on disk; the calibration is one of its own."""

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
