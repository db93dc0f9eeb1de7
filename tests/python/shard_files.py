# SPDX-License-Identifier: Apache-2.0
"""Writers of the shards that people have, from the formats' definitions: no library of theirs is needed."""

import json
import os
import struct
import tarfile

# ---- TFRecord ----

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _field(number, body):
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _feature(name, value):
    if isinstance(value, bytes):
        feature = _field(1, _field(1, value))
    elif value and isinstance(value[0], float):
        feature = _field(2, _field(1, struct.pack(f"<{len(value)}f", *value)))
    else:
        feature = _field(3, _field(1, b"".join(map(_varint, value))))
    return _field(1, _field(1, name.encode()) + _field(2, feature))


def example(features: dict) -> bytes:
    """tf.Example: bytes are a list of one, lists of int are int64, lists of float are float32."""
    return _field(1, b"".join(_feature(name, value) for name, value in features.items()))


def write_tfrecord(path, records):
    with open(path, "wb") as file:
        for record in records:
            length = struct.pack("<Q", len(record))
            file.write(length + _masked(length) + record + _masked(record))


# ---- Bagz ----


def zstd_frame(data):
    """Blocks of bytes as they are: a frame as any, that is no smaller."""
    blocks = [data[at:at + 131072] for at in range(0, len(data), 131072)]
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + b"".join(
        struct.pack("<I", len(block) << 3 | (at == len(blocks) - 1))[:3] + block for at, block in enumerate(blocks))


def write_bagz(path, records):
    """As a .bag is; as a .bagz with records that are frames."""
    limits, at = [], 0
    with open(path, "wb") as file:
        for record in records:
            at += file.write(record)
            limits.append(at)
        file.write(struct.pack(f"<{len(limits)}Q", *limits))


# ---- ArrayRecord ----

_64 = (1 << 64) - 1
_32 = (1 << 32) - 1
_RIEGELI = 0x2F696C6567656952, 0x0A7364726F636572
_MUL0 = 0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3
_MUL1 = 0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377
_BLOCK = 65536
_ROOM = _BLOCK - 24


def _zip(to, of):
    for i in 0, 2:
        a, b = of[i].to_bytes(8, "little"), of[i + 1].to_bytes(8, "little")
        to[i] = (to[i] + int.from_bytes(bytes((a[3], b[4], a[2], a[5], b[6], a[1], b[7], a[0])), "little")) & _64
        to[i + 1] = (to[i + 1] + int.from_bytes(bytes((b[3], a[4], b[2], b[5], b[1], a[6], b[0], a[7])), "little")) & _64


def _take(state, numbers):
    v0, v1, mul0, mul1 = state
    for i in range(4):
        v1[i] = (v1[i] + mul0[i] + numbers[i]) & _64
        mul0[i] ^= (v1[i] & _32) * (v0[i] >> 32)
        v0[i] = (v0[i] + mul1[i]) & _64
        mul1[i] ^= (v0[i] & _32) * (v1[i] >> 32)
    _zip(v0, v1)
    _zip(v1, v0)


def _swapped(number):
    return number >> 32 | (number & _32) << 32


def highway(data):
    """HighwayHash of 64 bits with the key of Riegeli files."""
    state = [[of ^ _RIEGELI[i & 1] for i, of in enumerate(_MUL0)], [of ^ _swapped(_RIEGELI[i & 1]) for i, of in enumerate(_MUL1)], list(_MUL0),
             list(_MUL1)]
    whole = len(data) - len(data) % 32
    for numbers in struct.iter_unpack("<4Q", data[:whole]):
        _take(state, numbers)
    rest, n = data[whole:], len(data) % 32
    if n:
        for i in range(4):
            state[0][i] = (state[0][i] + (n << 32) + n) & _64
            low, high = state[1][i] & _32, state[1][i] >> 32
            state[1][i] = ((high << n | high >> 32 - n) & _32) << 32 | ((low << n | low >> 32 - n) & _32)
        behind = n % 4
        packet = bytearray(rest[:n - behind].ljust(32, b"\0"))
        if n & 16:
            packet[28:] = rest[-4:]
        elif behind:
            packet[16:19] = rest[n - behind], rest[n - behind + (behind >> 1)], rest[-1]
        _take(state, struct.unpack("<4Q", packet))
    for _ in range(4):
        _take(state, [_swapped(state[0][i]) for i in (2, 3, 0, 1)])
    return sum(of[0] for of in state) & _64


def _chunk(kind, data, records, written):
    head = struct.pack("<QQQQ", len(data), highway(data), kind | records << 8, written)
    return struct.pack("<Q", highway(head)) + head + data


def _simple(records, compressed=False):
    """A chunk of these records."""
    sizes = b"".join(_varint(len(record)) for record in records)
    values = b"".join(records)
    if compressed:
        packed = _varint(len(sizes)) + zstd_frame(sizes)
        return _chunk(ord("r"), b"z" + _varint(len(packed)) + packed + _varint(len(values)) + zstd_frame(values), len(records), len(values))
    return _chunk(ord("r"), b"\0" + _varint(len(sizes)) + sizes + values, len(records), len(values))


def _blocks(chunks):
    """The file, of which each item is chunks that end a block."""
    stream, ends = b"", [0]
    for chunk in chunks:
        stream += chunk
        ends.append(len(stream))
    places = [0 if end == 0 else end // _ROOM * _BLOCK + (end % _ROOM and end % _ROOM + 24) for end in ends]
    blocks = []
    for at in range(0, len(stream), _ROOM):
        begin = at // _ROOM * _BLOCK
        chunk = max(i for i, place in enumerate(places[:-1]) if place <= begin)
        head = struct.pack("<QQ", begin - places[chunk], places[chunk + 1] - begin)
        blocks.append(struct.pack("<Q", highway(head)) + head + stream[at:at + _ROOM])
    return b"".join(blocks), places


def _filled(used):
    """Of padding, to the end of a block."""
    left = -used % _ROOM
    if 0 < left < 40:
        left += _ROOM
    return [_chunk(ord("p"), bytes(left - 40), 0, 0)] if left else []


def write_array_record(path, records, compressed=False, group=1):
    """As ArrayRecordWriter does with uncompressed, or with zstd."""
    chunks = [_chunk(ord("s"), b"", 0, 0)]
    chunks += [_simple(records[at:at + group], compressed) for at in range(0, len(records), group)]
    _, places = _blocks(chunks)
    parts = [records[at:at + group] for at in range(0, len(records), group)]
    about = b"\x08\x01\x10" + _varint(len(parts)) + b"\x18" + _varint(len(records))
    chunks.append(_simple([_field(1, about)] + [
        b"\x08" + _varint(place) + b"\x10" + _varint(sum(map(len, part))) + b"\x18" + _varint(len(part))
        for place, part in zip(places[1:-1], parts)]))
    chunks += _filled(sum(len(chunk) for chunk in chunks))
    end = b"\x08" + _varint(places[-1]) + b"\x10" + _varint(0x71930E704FDAE05E)
    chunks.append(_simple([end] * 3))
    chunks += _filled(len(chunks[-1]))
    with open(path, "wb") as file:
        file.write(_blocks(chunks)[0])


# ---- DALI's indexes ----


def write_records_idx(path, records):
    at = 0
    with open(path, "w", encoding="ascii") as file:
        for record in records:
            file.write(f"{at} {len(record) + 16}\n")
            at += len(record) + 16


def write_files_idx(path, tar):
    """As of a whole archive: "v1.2 SAMPLES", a line each."""
    samples = {}
    with tarfile.open(tar) as archive:
        for member in archive:
            key, _, suffix = member.name.partition(".")
            samples.setdefault(key, []).append(f"{suffix} {member.offset_data} {member.size} {member.name}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([f"v1.2 {len(samples)}", *(" ".join(sample) for sample in samples.values()), ""]))


# ---- RecordIO ----

MAGIC = struct.pack("<I", 0xCED7230A)


def write_recordio(path, records):
    """(label, picture): a number is the label in the head, a list stands behind it. Cut up where the magic is at a multiple of four."""
    with open(path, "wb") as file:
        for number, (label, picture) in enumerate(records):
            several = label if isinstance(label, list) else []
            record = struct.pack("<IfQQ", len(several), 0 if several else label, number, 0) + struct.pack(f"<{len(several)}f", *several) + picture
            cuts = [at for at in range(0, len(record) - 3, 4) if record[at:at + 4] == MAGIC]
            parts = [record[begin:end] for begin, end in zip([0, *(at + 4 for at in cuts)], [*cuts, len(record)])]
            for at, part in enumerate(parts):
                cut = 0 if len(parts) == 1 else 1 if at == 0 else 3 if at == len(parts) - 1 else 2
                file.write(MAGIC + struct.pack("<I", cut << 29 | len(part)) + part + bytes(-len(part) % 4))


# ---- FFCV ----

_BETON = {"float": (0, 8, 8), "int": (1, 8, 8), "image": (2, 13, 1), "bytes": (3, 16, 1), "array": (4, 8, 8), "json": (5, 16, 1), "own": (255, 13, 1)}


def _beton_field(name, type_, arguments):
    return struct.pack("<B16s1024s", _BETON[type_][0], name.encode(), arguments)


def write_beton(path, fields: dict, rows, processes=1, page=1 << 21):
    """As DatasetWriter does with so many processes, each of which took three samples in turn, but that pages are not filled up. fields: name to type, or
    to ("array", dtype.descr in JSON, shape); an image is a JPEG or (width, height, pixels), what else is no number bytes."""
    types = {name: type_ if isinstance(type_, tuple) else (type_,) for name, type_ in fields.items()}
    arguments = [struct.pack("<32QQ", *of[2], *[0] * (32 - len(of[2])), len(of[1])) + of[1].encode() if len(of) > 1 else b"" for of in types.values()]
    kinds = [_BETON[of[0]] for of in types.values()]
    align, size, places = max(of[2] for of in kinds), 0, []
    for _, bytes_, aligned in kinds:
        places.append(-(-size // aligned) * aligned)
        size = places[-1] + bytes_
    size, begin = -(-size // align) * align, 24 + 1041 * len(fields)
    table, pages, described, at = [[] for _ in range(processes)], [], bytearray(size * len(rows)), begin + size * len(rows)
    for number, row in enumerate(rows):
        for (_, type_), place, value in zip(((name, of[0]) for name, of in types.items()), places, row):
            if type_ in ("int", "float"):
                struct.pack_into("<q" if type_ == "int" else "<d", described, number * size + place, value)
                continue
            width, height, data = value if isinstance(value, tuple) else (1, 1, value)
            if type_ in ("image", "own"):
                struct.pack_into("<BHHQ", described, number * size + place, isinstance(value, tuple), width, height, at)
            elif type_ == "array":
                struct.pack_into("<Q", described, number * size + place, at)
            else:
                struct.pack_into("<QQ", described, number * size + place, at, len(data))
            table[number // 3 % processes].append(struct.pack("<QQQ", number, at, len(data)))
            pages.append(data)
            at += len(data)
    with open(path, "wb") as file:
        file.write(struct.pack("<HHIQQ", 2, len(fields), page, len(rows), at))
        file.write(b"".join(_beton_field(name, of[0], args) for (name, of), args in zip(types.items(), arguments)))
        file.write(described + b"".join(pages) + b"".join(b"".join(of) for of in table))


# ---- LitData ----

def write_litdata(folder, formats: dict, chunks, old=False):
    """formats: leaf to data format; chunks: lists of samples, dicts of encoded leaves (bytes). old: sizes as before litdata 0.2.40."""
    listed, leaf = [], {"type": None, "context": None, "children_spec": []}
    os.makedirs(folder, exist_ok=True)
    for number, samples in enumerate(chunks):
        texts = [struct.pack(f"<{len(formats)}I", *(len(sample[name]) for name in formats)) + b"".join(sample[name] for name in formats) for sample in samples]
        starts = [4 + 4 * (len(texts) + 1)]
        for text in texts:
            starts.append(starts[-1] + len(text))
        name = f"chunk-0-{number}.bin"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack(f"<{1 + len(starts)}I", len(texts), *starts) + b"".join(texts))
        listed.append({"chunk_bytes": starts[-1] - (starts[0] if old else 0), "chunk_size": len(texts), "dim": None, "filename": name})
    spec = [1, {"type": "builtins.dict", "context": json.dumps(list(formats)), "children_spec": [leaf] * len(formats)}]
    config = {"chunk_bytes": 1 << 26, "chunk_size": None, "compression": None, "data_format": list(formats.values()), "data_spec": json.dumps(spec),
              "encryption": None, "item_loader": "PyTreeLoader"}
    with open(os.path.join(folder, "index.json"), "w", encoding="ascii") as file:
        json.dump({"chunks": listed, "config": config, "updated_at": "1.5"}, file, sort_keys=True)


# ---- MDS ----

_SIZES = {"int": 8, "int32": 4, "uint8": 1, "float64": 8, "ndarray:int16:2,2": 8}


def write_mds(folder, columns: dict, shards):
    """shards: lists of samples, dicts of encoded columns (bytes)."""
    names = sorted(columns)
    about = {"column_encodings": [columns[name] for name in names], "column_names": names,
             "column_sizes": [_SIZES.get(columns[name]) for name in names], "compression": None, "format": "mds",
             "hashes": [], "size_limit": 1 << 26, "version": 2}
    config = json.dumps(about, sort_keys=True).encode()
    listed = []
    os.makedirs(folder, exist_ok=True)
    for number, samples in enumerate(shards):
        texts = []
        for sample in samples:
            sizes = [len(sample[name]) for name in names if columns[name] not in _SIZES]
            texts.append(struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(sample[name] for name in names))
        starts = [4 + 4 * (len(texts) + 1) + len(config)]
        for text in texts:
            starts.append(starts[-1] + len(text))
        name = f"shard.{number:05}.mds"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack("<I", len(texts)) + struct.pack(f"<{len(starts)}I", *starts) + config
                       + b"".join(texts))
        listed.append({**about, "raw_data": {"basename": name, "bytes": starts[-1], "hashes": {}},
                       "samples": len(texts), "zip_data": None})
    with open(os.path.join(folder, "index.json"), "w", encoding="ascii") as file:
        json.dump({"shards": listed, "version": 2}, file, sort_keys=True)
