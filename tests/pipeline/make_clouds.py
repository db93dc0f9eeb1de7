#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/pipeline/clouds: files of one point cloud as plyfile, NumPy, liblzf and laspy write them.

    make_clouds.py FOLDER              (needs numpy, plyfile, python-lzf, laspy 2.7.0)

Point i of 40 has x = i / 4 - 3, y = 7 i mod 13 / 2, z = -i / 8, intensity = i / 64, red = 5 i, green = i, blue = 255 - i. Files whose
name has "xyz" have x, y and z alone. cloud_test.c has the list, and computes the same.
"""

import datetime
import pathlib
import struct
import sys

import laspy
import lzf
import numpy as np
from plyfile import PlyData, PlyElement

COUNT = 40
NAMES = ("x", "y", "z", "intensity", "red", "green", "blue")


def points():
    i = np.arange(COUNT)
    return np.stack([i / 4 - 3, 7 * i % 13 / 2, -i / 8, i / 64, 5 * i, i, 255 - i], 1)


def ply(path, types, *, order=NAMES, text=False, swapped=False, before=()):
    """types: of each of NAMES. before: elements that stand before the points."""
    rows = np.zeros(COUNT, [(name, types[NAMES.index(name)]) for name in order])
    for name in order:
        rows[name] = points()[:, NAMES.index(name)]
    faces = np.zeros(3, [("vertex_indices", "O")])
    faces["vertex_indices"] = [np.array(face, np.int32) for face in ((0, 1, 2), (2, 1, 5, 6), (7, 8, 9))]
    elements = [*before, PlyElement.describe(rows, "vertex"), PlyElement.describe(faces, "face")]
    PlyData(elements, text=text, byte_order=">" if swapped else "<", comments=["of clouds"]).write(path)


def cameras():
    """Lists of different lengths, and numbers."""
    rows = np.zeros(4, [("view", "f4"), ("seen", "O"), ("id", "i2")])
    rows["view"], rows["id"] = (1, 2, 3, 4), (5, 6, 7, 8)
    rows["seen"] = [np.arange(n, dtype=np.float64) for n in (2, 1, 5, 3)]
    return PlyElement.describe(rows, "camera", len_types={"seen": "u2"}, val_types={"seen": "f8"})


def pcd(path, data, *, colours="packed"):
    """As PCL writes it, with a field of padding, and colours packed into one float."""
    all_ = points()
    names, sizes, types, counts = ["x", "y", "z", "_", "intensity"], [4, 4, 4, 1, 4], "FFFUF", [1, 1, 1, 4, 1]
    columns = [all_[:, k].astype("<f4") for k in range(3)] + [np.zeros((COUNT, 4), np.uint8), all_[:, 3].astype("<f4")]
    if colours == "packed":
        red, green, blue = all_[:, 4:].astype(np.uint32).T
        names, sizes, types, counts = names + ["rgb"], sizes + [4], types + "F", counts + [1]
        columns.append((red << 16 | green << 8 | blue).astype("<u4"))
    if data == "ascii":
        del names[3], sizes[3], counts[3], columns[3]
        types = types.replace("U", "")
    head = (f"# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS {' '.join(names)}\nSIZE {' '.join(map(str, sizes))}\n"
            f"TYPE {' '.join(types)}\nCOUNT {' '.join(map(str, counts))}\nWIDTH {COUNT}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {COUNT}\nDATA {data}\n")
    if data == "ascii":
        body = "".join(" ".join(f"{column[i]:g}" for column in columns) + "\n" for i in range(COUNT)).encode()
    elif data == "binary":
        body = b"".join(column[i].tobytes() for i in range(COUNT) for column in columns)
    else:
        whole = b"".join(column.tobytes() for column in columns)
        packed = lzf.compress(whole)
        body = struct.pack("<II", len(packed), len(whole)) + packed
    path.write_bytes(head.encode() + body)


def las(path, version, form):
    """In metres of UTM. Whole numbers are eighths."""
    header = laspy.LasHeader(version=version, point_format=form)
    header.scales, header.offsets = np.full(3, 1 / 8), np.array([500000, 5400000, 100])
    header.creation_date = datetime.date(2026, 1, 1)
    if version == "1.4":
        header.add_extra_dim(laspy.ExtraBytesParams("height", np.float64))
    file, all_ = laspy.LasData(header), points()
    file.x, file.y, file.z = (all_[:, :3] + header.offsets).T
    i = np.arange(COUNT)
    file.intensity, file.classification, file.user_data, file.point_source_id = 1500 * i, i % 32, 3 * i, 1000 * i
    file.return_number, file.number_of_returns = 1 + i % 5, 5 - i % 3
    file.red, file.green, file.blue = all_[:, 4:].T
    if version == "1.4":
        file.classification, file.scan_angle, file.nir = 6 * i, 100 * i - 2000, i
    else:
        file.scan_angle_rank = i - 20
    file.write(path)


def main():
    folder, all_ = pathlib.Path(sys.argv[1]), points()
    folder.mkdir(parents=True, exist_ok=True)
    floats, colours = ["f4"] * 4 + ["u1"] * 3, ("blue", "x", "y", "green", "z", "red", "intensity")
    ply(folder / "text.ply", floats, text=True)
    ply(folder / "little.ply", floats)
    ply(folder / "big.ply", floats, swapped=True)
    ply(folder / "f64-order.ply", ["f8"] * 3 + ["f4", "u2", "i4", "i2"], order=colours)
    ply(folder / "big-behind.ply", ["f8"] * 3 + ["f4", "u4", "i4", "i2"], swapped=True, before=[cameras()])
    ply(folder / "text-behind.ply", floats, text=True, before=[cameras()])
    for data in "ascii", "binary", "binary_compressed":
        pcd(folder / f"{data}.pcd", data, colours="none" if data == "ascii" else "packed")
    all_.astype("<f4").tofile(folder / "raw.bin")
    for dtype in "f2", "f4", "f8":
        np.save(folder / f"{dtype}.npy", all_.astype(f"<{dtype}"))
    np.save(folder / "i16-xyz.npy", (all_[:, :3] * 8).astype("<i2"))        # of eighths
    np.savetxt(folder / "commas.txt", all_, "%.6f", ",")
    np.savetxt(folder / "blanks.xyz", all_, "%.9e", " ", header="x y z intensity red green blue")
    np.savetxt(folder / "count.pts", all_, "%g", "\t", header=str(COUNT), comments="", newline="\r\n")
    las(folder / "old.las", "1.2", 3)
    las(folder / "new.las", "1.4", 8)
    (folder / "title-xyz.asc").write_text("X;Y;Z\n" + "".join(f"{x};{y};{z:+.4f}\n\n" for x, y, z in all_[:, :3]) + "  ")


if __name__ == "__main__":
    main()
