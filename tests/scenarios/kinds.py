# SPDX-License-Identifier: Apache-2.0
"""kinds.py FOLDER: the samples of FOLDER/data, a folder of pictures, beside it in each kind of data set that access-ctl convert does not
write; rows of numbers; and tables, if their packages are there."""

import importlib.util
import os
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from shard_files import example, write_array_record, write_bagz, write_beton, write_litdata, write_mds, write_recordio, write_tfrecord  # noqa: E402

work = sys.argv[1]
classes = sorted(os.listdir(work + "/data"))
names = [(os.path.join("data", name, file), label) for label, name in enumerate(classes) for file in sorted(os.listdir(os.path.join(work, "data", name)))]
samples = []
for picture, number in names:
    with open(os.path.join(work, picture), "rb") as opened:
        samples.append((opened.read(), number))
shards = [samples[:40], samples[40:90], samples[90:]]
for kind in "tfrecord", "recordio", "bagz", "arrayrecord", "beton", "zip":
    os.mkdir(os.path.join(work, kind))
for number, part in enumerate(shards):
    write_tfrecord(f"{work}/tfrecord/{number}.tfrecord", [example({"image/encoded": picture, "image/class/label": [label]}) for picture, label in part])
    write_bagz(f"{work}/bagz/{number}.bag", [example({"image/encoded": picture, "image/class/label": [label]}) for picture, label in part])
    write_array_record(f"{work}/arrayrecord/{number}.array_record", [example({"image/encoded": picture, "image/class/label": [label]}) for picture, label in part])
    write_beton(f"{work}/beton/{number}.beton", {"image": "image", "label": "int"}, part, processes=2)
    write_recordio(f"{work}/recordio/{number}.rec", [(float(label), picture) for picture, label in part])
for number, part in enumerate((names[:40], names[40:90], names[90:])):
    with zipfile.ZipFile(f"{work}/zip/{number}.zip", "w", zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED) as archive:
        for name, label in part:
            archive.write(os.path.join(work, name), name)
write_mds(work + "/mds", {"image": "jpeg", "label": "int"}, [[{"image": picture, "label": struct.pack("<q", label)} for picture, label in part] for part in shards])
write_litdata(work + "/litdata", {"image": "jpeg", "label": "int"}, [[{"image": picture, "label": struct.pack("<q", label)} for picture, label in part] for part in shards])
with open(work + "/rows.csv", "w", encoding="utf-8") as rows:
    rows.write("file_name,label\n" + "".join(f"{name},{label}\n" for name, label in names))
sizes = [7 * i % 90 for i in range(400)]
with open(work + "/tokens.bin", "wb") as tokens:
    tokens.write(struct.pack(f"<{sum(sizes)}H", *(i % 5000 for i in range(sum(sizes)))))
with open(work + "/tokens.idx", "wb") as index:
    starts = [2 * sum(sizes[:i]) for i in range(len(sizes))]
    index.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(sizes), len(sizes) + 1) + struct.pack(f"<{len(sizes)}i", *sizes)
                + struct.pack(f"<{len(sizes)}q", *starts) + struct.pack(f"<{len(sizes) + 1}q", *range(len(sizes) + 1)))
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (300, 8), }"
with open(work + "/array.npy", "wb") as array:
    array.write(b"\x93NUMPY\x01\0" + struct.pack("<H", 118) + head.ljust(117) + b"\n" + struct.pack("<2400f", *range(2400)))
if importlib.util.find_spec("h5py"):
    import h5py
    import numpy
    with h5py.File(work + "/rows.h5", "w") as table:
        table["x"] = numpy.arange(150 * 6, dtype="float32").reshape(150, 6)
if importlib.util.find_spec("pyarrow"):
    import pyarrow
    from pyarrow import parquet
    parquet.write_table(pyarrow.Table.from_pylist([{"image": picture, "label": label} for picture, label in samples]), work + "/rows.parquet", row_group_size=20)
