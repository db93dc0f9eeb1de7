# SPDX-License-Identifier: Apache-2.0
"""Tables of Delta Lake that tests write by its protocol, and deletion vectors by the format of RoaringBitmap."""

import json
import struct
import zlib

import numpy as np
import pyarrow
import pyarrow.parquet

from support import PoolCase

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
SCHEMA = {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}
                                       for name, kind in (("x", "double"), ("n", "long"), ("day", "date"), ("shop", "integer"))]}


# ---- deletion vectors ----


def _container(values, may_run):
    """How many values, is it runs, bytes."""
    begins = [value for at, value in enumerate(values) if at == 0 or values[at - 1] != value - 1]
    ends = [value for at, value in enumerate(values) if at == len(values) - 1 or values[at + 1] != value + 1]
    if may_run and 2 + 4 * len(begins) < min(8192, 2 * len(values)):
        return True, struct.pack("<H", len(begins)) + b"".join(struct.pack("<HH", begin, end - begin) for begin, end in zip(begins, ends))
    if len(values) <= 4096:
        return False, np.array(values, "<u2").tobytes()
    mask = np.zeros(65536, np.uint8)
    mask[values] = 1
    return False, np.packbits(mask, bitorder="little").tobytes()


def _bitmap(values, may_run):
    """Of 32 bits."""
    keys = sorted({value >> 16 for value in values})
    lists = [sorted(value & 0xffff for value in values if value >> 16 == key) for key in keys]
    made = [_container(each, may_run) for each in lists]
    heads = b"".join(struct.pack("<HH", key, len(each) - 1) for key, each in zip(keys, lists))
    if runs := any(is_run for is_run, _ in made):
        mask = np.packbits([is_run for is_run, _ in made], bitorder="little").tobytes()
        head = struct.pack("<I", 12347 | (len(keys) - 1) << 16) + mask + heads
    else:
        head = struct.pack("<II", 12346, len(keys)) + heads
    if not runs or len(keys) >= 4:
        at = len(head) + 4 * len(keys)
        for _, data in made:
            head += struct.pack("<I", at)
            at += len(data)
    return head + b"".join(data for _, data in made)


def vector(rows, may_run=True):
    """Of rows' numbers."""
    keys = sorted({row >> 32 for row in rows})
    return struct.pack("<IQ", 1681511377, len(keys)) + b"".join(
        struct.pack("<I", key) + _bitmap([row & 0xffffffff for row in rows if row >> 32 == key], may_run) for key in keys)


def framed(data):
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def z85(data):
    made = ""
    data += bytes(-len(data) % 4)
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at:at + 4], "big")
        made += "".join(Z85[number // 85 ** place % 85] for place in (4, 3, 2, 1, 0))
    return made


# ---- tables ----


class LakehouseCase(PoolCase):
    def rows(self, dataset, **options):
        """All of it, in order."""
        found = [{name: value if isinstance(value, list) else value.tolist() for name, value in batch.items()}
                 for batch in self.open(dataset, shuffle=False, as_="numpy", copy=True, **options)]
        return {name: [value for batch in found for value in batch[name]] for name in found[0]}

    def table(self, begin, count):
        return pyarrow.table({"x": np.arange(begin, begin + count) / 2, "n": np.arange(begin, begin + count)})


class DeltaCase(LakehouseCase):
    def setUp(self):
        self.folder = self.work / self.id()
        (self.folder / "_delta_log").mkdir(parents=True)
        self.last = -1

    def file(self, name, begin, count):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        pyarrow.parquet.write_table(self.table(begin, count), path, row_group_size=16)
        return {"add": {"path": name.replace("%", "%25").replace(" ", "%20"), "partitionValues": {"day": name[4:14], "shop": name[-9]}, "size": path.stat().st_size,
                        "modificationTime": 0, "dataChange": True}}

    def commit(self, *actions):
        self.last += 1
        (self.folder / f"_delta_log/{self.last:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))

    def begin(self, configuration=None, schema=SCHEMA, partitioned=("day", "shop"), **protocol):
        self.commit({"commitInfo": {}}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2, **protocol}},
                    {"metaData": {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
                                  "partitionColumns": list(partitioned), "configuration": configuration or {}}})

    def inline(self, rows, may_run=True):
        """A deletion vector in the log."""
        data = vector(rows, may_run)
        return {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(rows)}
