#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_data.py DIRECTORY: writes the small pictures of tests/pipeline/data with Pillow 13.0.0.

They are computed, not photographed: smooth waves, hard edges and noise, one of every kind that the
decoder tells apart, whole and damaged. The files are kept in the tree; this says where they came
from. golden.tsv is then made of them: parity.py --golden PIXELS data/*.jpg > golden.tsv
"""
import io
import math
import os
import random
import struct
import sys

from PIL import Image


def picture(w, h, seed):
    rng = random.Random(seed)
    waves = [(rng.uniform(.02, .6), rng.uniform(.02, .6), rng.uniform(0, 7)) for _ in range(6)]
    data = bytearray()
    for y in range(h):
        for x in range(w):
            edge = 60 if (x * 3 + y * 2) % 47 < 9 else 0
            for c in range(3):
                v = 128 - edge + rng.gauss(0, 6)
                for a, b, p in waves[2 * c:2 * c + 2]:
                    v += 45 * math.sin(a * x + b * y + p)
                data.append(max(0, min(255, int(v))))
    return Image.frombytes('RGB', (w, h), bytes(data))


def encode(im, **options):
    out = io.BytesIO()
    im.save(out, 'JPEG', **dict({'quality': 80, 'subsampling': 2}, **options))
    return out.getvalue()


def marker(jpg, codes):
    i = 2
    while jpg[i + 1] not in codes:
        i += 2 + struct.unpack('>H', jpg[i + 2:i + 4])[0]
    return i


def sized(jpg, w, h):
    at = marker(jpg, (0xc0, 0xc2))
    return jpg[:at + 5] + struct.pack('>HH', h, w) + jpg[at + 9:]


def many_scans(jpg, times):
    """A progressive file whose last scan comes again and again."""
    at = last = marker(jpg, (0xda,))
    while at < len(jpg) - 2:
        if jpg[at] == 0xff and jpg[at + 1] == 0xda:
            last = at
        at += 1
    return jpg[:-2] + jpg[last:-2] * times + jpg[-2:]


def files():
    im = picture(120, 90, 1)
    base = encode(im)
    scan = marker(base, (0xda,)) + 14
    yield '420.jpg', base
    yield '422.jpg', encode(im, subsampling=1)
    yield '444.jpg', encode(im, subsampling=0)
    yield 'gray.jpg', encode(im.convert('L'), subsampling=-1)
    yield 'cmyk.jpg', encode(im.convert('CMYK'), subsampling=0)
    yield 'progressive.jpg', encode(im, progressive=True)
    yield 'optimized.jpg', encode(im, optimize=True, quality=95)
    yield 'restarts.jpg', encode(im, restart_marker_blocks=3)
    yield 'low-quality.jpg', encode(im, quality=8)
    yield 'odd-size.jpg', encode(picture(83, 61, 2))
    yield 'tall.jpg', encode(picture(24, 150, 3))
    yield 'wide.jpg', encode(picture(170, 18, 4))
    yield 'one-pixel.jpg', encode(picture(1, 1, 5))
    exif = Image.Exif()
    exif[0x0112] = 6
    yield 'exif-turned.jpg', encode(im, exif=exif.tobytes())
    yield 'trailing-bytes.jpg', base + bytes(range(256))
    yield 'truncated.jpg', base[:scan + (len(base) - scan) * 6 // 10]
    yield 'no-end-marker.jpg', base[:-2]
    yield 'truncated-header.jpg', base[:marker(base, (0xc0,)) + 6]
    bad = bytearray(base)
    rng = random.Random(6)
    at = scan + (len(base) - scan) // 3
    bad[at:at + 24] = bytes(rng.randrange(255) for _ in range(12)) + b'\xff\xd0' + bytes(rng.randrange(255) for _ in range(10))
    yield 'corrupt-scan.jpg', bytes(bad)
    yield 'early-end.jpg', base[:scan + (len(base) - scan) // 2] + b'\xff\xd9'
    yield 'no-magic.jpg', b'\0\0' + base[2:]
    yield 'empty.jpg', b''
    out = io.BytesIO()
    picture(9, 7, 7).save(out, 'PNG')
    yield 'png.jpg', out.getvalue()
    yield 'huge-header.jpg', sized(base, 65500, 65500)
    yield 'zero-height.jpg', sized(base, 120, 0)
    yield 'many-scans.jpg', many_scans(encode(picture(16, 16, 8), progressive=True), 120)


def main(where):
    os.makedirs(where, exist_ok=True)
    for name, data in files():
        with open(os.path.join(where, name), 'wb') as f:
            f.write(data)


if __name__ == '__main__':
    main(sys.argv[1])
