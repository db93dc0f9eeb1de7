#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_data.py DIRECTORY: writes the small pictures of tests/pipeline/data, formats, exif, modern and near with Pillow 13.0.0;
what Pillow does not write of the last two, with avifenc, opj_compress and cjxl (Debian's libavif-bin, libopenjp2-tools, libjxl-tools),
and pillow-heif 1.8.1.

They are computed, not photographed: smooth waves, hard edges and noise, one of every kind that the
decoder tells apart, whole and damaged. The files are kept in the tree; this says where they came
from. golden.tsv is then made of them: parity.py --golden= PIXELS data/*.jpg > golden.tsv, and
parity.py --golden=formats PIXELS formats/*.* > golden_formats.tsv, and the same for exif and modern. What versions of
a library make different pixels of is in near, beside which run_test knows what they are near to.
"""
import io
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import pillow_heif
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


def other(im, kind, **options):
    out = io.BytesIO()
    im.save(out, kind, **options)
    return out.getvalue()


# ---- PNG, of kinds that Pillow does not write ----

def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def png_pass(rng, w, h, bits, step):
    """One pass: every `step` = (left, top, across, down) pixel, each row with another filter."""
    left, top, across, down = step
    columns, rows = (w + across - 1 - left) // across, (h + down - 1 - top) // down
    if columns <= 0:
        return b''
    return b''.join(bytes([y % 5]) + bytes(rng.randrange(256) for _ in range((columns * bits + 7) // 8))
                    for y in range(rows))


def png(seed, w, h, depth, colour, interlaced=False, palette=b'', after=b'', chunks=b''):
    rng = random.Random(seed)
    steps = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = b''.join(png_pass(rng, w, h, bits, step) for step in (steps if interlaced else ((0, 0, 1, 1),)))
    data = zlib.compress(rows)
    head = struct.pack('>IIBBBBB', w, h, depth, colour, 0, 0, interlaced)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunks + (chunk(b'PLTE', palette) if palette else b'')
            + chunk(b'IDAT', data[:len(data) // 2]) + chunk(b'IDAT', data[len(data) // 2:]) + after + chunk(b'IEND', b''))


def png_files():
    im = picture(31, 23, 9)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(0))
    yield 'gray.png', other(im.convert('L'), 'PNG')
    yield 'gray-alpha.png', other(alpha.convert('LA'), 'PNG')
    yield 'rgb.png', other(im, 'PNG')
    yield 'rgba.png', other(alpha, 'PNG')
    yield 'bits.png', other(im.convert('1'), 'PNG')
    yield 'palette.png', other(im.quantize(13), 'PNG')
    yield 'palette-alpha.png', other(im.quantize(200), 'PNG', transparency=bytes(range(0, 200, 2)))
    yield 'gray16.png', png(1, 19, 12, 16, 0, after=chunk(b'tEXt', b'Comment\0behind'))
    yield 'gray16-dark.png', other(im.convert('L').convert('I').point(lambda v: v * 2).convert('I;16'), 'PNG')
    yield 'rgb16.png', png(2, 9, 12, 16, 2)
    yield 'rgba16.png', png(3, 9, 7, 16, 6)
    yield 'gray-alpha16.png', png(4, 9, 7, 16, 4)
    yield 'gray2.png', png(5, 21, 7, 2, 0)
    yield 'interlaced.png', png(6, 21, 17, 8, 2, interlaced=True)
    yield 'interlaced-bits.png', png(7, 13, 19, 1, 0, interlaced=True)
    yield 'interlaced-palette.png', png(8, 3, 2, 4, 3, interlaced=True, palette=bytes(range(30)))
    whole = png(9, 20, 15, 8, 2)
    yield 'truncated.png', whole[:len(whole) * 2 // 3]
    yield 'no-end.png', whole[:-12]
    yield 'checksum.png', whole[:29] + bytes(4) + whole[33:]
    yield 'wrong-data.png', whole[:-16] + bytes(4) + whole[-12:]
    yield 'huge.png', png(10, 1, 1, 8, 2).replace(
        chunk(b'IHDR', struct.pack('>IIBBBBB', 1, 1, 8, 2, 0, 0, 0)),
        chunk(b'IHDR', struct.pack('>IIBBBBB', 65500, 65500, 8, 2, 0, 0, 0)))
    yield 'early-rows.png', png(11, 9, 5, 8, 2).replace(
        chunk(b'IHDR', struct.pack('>IIBBBBB', 9, 5, 8, 2, 0, 0, 0)),
        chunk(b'IHDR', struct.pack('>IIBBBBB', 9, 30, 8, 2, 0, 0, 0)))
    yield 'animated.png', other(im, 'PNG', save_all=True, append_images=[picture(31, 23, 10)])


# ---- the others ----

def bmp(w, h, bits, seed, compression=0, masks=(), palette=b'', data=None, colours=0):
    rng = random.Random(seed)
    if data is None:
        data = bytes(rng.randrange(256) for _ in range((w * bits + 31) // 32 * 4 * abs(h)))
    head = struct.pack('<IiiHHIIiiII', 40, w, h, 1, bits, compression, 0, 0, 0, colours, 0)
    head += struct.pack('<%dI' % len(masks), *masks) + palette
    return b'BM' + struct.pack('<IHHI', 14 + len(head) + len(data), 0, 0, 14 + len(head)) + head + data


def bmp_files():
    rng = random.Random(12)
    im = picture(23, 11, 11)
    colours = bytes(rng.randrange(256) for _ in range(64))
    whole = other(im, 'BMP')
    yield 'rgb.bmp', whole
    yield 'gray.bmp', other(im.convert('L'), 'BMP')
    yield 'palette.bmp', other(im.quantize(40), 'BMP')
    yield 'bits.bmp', other(im.convert('1'), 'BMP')
    yield 'nibbles.bmp', bmp(13, 7, 4, 13, palette=colours)
    yield 'top-down.bmp', bmp(7, -9, 32, 14)
    yield 'masks.bmp', bmp(9, 5, 16, 15, 3, (0xf800, 0x7e0, 0x1f))
    yield 'masks32.bmp', bmp(9, 5, 32, 16, 3, (0xff000000, 0xff0000, 0xff00))
    yield 'fives.bmp', bmp(9, 5, 16, 17)
    runs = b'\x05\x03\x00\x03abc\x00\x00\x00\x00\x02\x02\x01\x08\x07\x00\x00\x09\x01\x00\x00\x09\x02\x00\x01'
    yield 'runs.bmp', bmp(9, 4, 8, 18, 1, palette=colours, data=runs, colours=16)
    yield 'runs4.bmp', bmp(9, 3, 4, 19, 2, palette=colours, colours=16,
                           data=b'\x09\x12\x00\x00\x00\x05abc\x00\x04\x34\x00\x00\x09\x56\x00\x01')
    yield 'truncated.bmp', whole[:len(whole) // 2]


def gif_files():
    im = picture(27, 19, 13).quantize(30)
    whole = other(im, 'GIF', interlace=0)
    yield 'plain.gif', whole
    yield 'interlaced.gif', other(im, 'GIF', interlace=1)
    yield 'transparent.gif', other(im, 'GIF', transparency=4)
    yield 'gray.gif', other(picture(9, 8, 14).convert('L'), 'GIF')
    yield 'animated.gif', other(im, 'GIF', save_all=True, append_images=[im.rotate(180)])
    at = whole.index(b',', 13 + (3 << (whole[10] & 7) + 1))  # a larger screen, the frame in its middle
    yield 'offset.gif', (b'GIF89a' + struct.pack('<HH', 40, 30) + whole[10:at] + b'!\xf9\x04\x01\0\0\x07\0'
                         + b',' + struct.pack('<HH', 5, 6) + whole[at + 5:])
    yield 'truncated.gif', whole[:len(whole) * 2 // 3]


def other_files():
    jpg = encode(picture(40, 33, 18))
    scan = marker(jpg, (0xda,)) + 14  # a marker among the data that claims more than the file has
    yield 'marker-in-scan.jpg', jpg[:scan + 200] + b'\xff\xe3\xe0\xc3' + jpg[scan + 200:]
    im = picture(29, 21, 15)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(1))
    lossy = other(im, 'WEBP', quality=60)
    yield 'lossy.webp', lossy
    yield 'lossy-alpha.webp', other(alpha, 'WEBP', quality=60)
    yield 'lossless.webp', other(im, 'WEBP', lossless=True)
    yield 'lossless-alpha.webp', other(alpha, 'WEBP', lossless=True, exact=True)
    yield 'animated.webp', other(im, 'WEBP', save_all=True, append_images=[picture(29, 21, 16)], quality=50)
    yield 'truncated.webp', lossy[:len(lossy) * 2 // 3]
    small = picture(7, 5, 17)
    yield 'raw.ppm', other(small, 'PPM')
    yield 'raw.pgm', other(small.convert('L'), 'PPM')
    yield 'raw.pbm', other(small.convert('1'), 'PPM')
    yield 'deep.ppm', b'P6 3 4 # wide\n 65535\n' + bytes(range(72))
    yield 'deep.pgm', b'P5 5 2 1000\n' + bytes(range(0, 40, 2))
    yield 'deepest.pgm', b'P5\n4 3\n65535\n' + b'\0\x20\0\xff\1\0' * 4
    yield 'seven.ppm', b'P6 4 3 7\n' + bytes(i % 9 for i in range(36))
    yield 'plain.pbm', b'P1\n5 3\n10110 0#c\n1010 1 1 1 0 1'
    yield 'plain.pgm', b'P2\n4 2 # c\n15 0 1 2 3\n4 5 6 #c\n 15\n'
    yield 'plain.ppm', b'P3 2 2 300 ' + b' '.join(b'%d' % (i * 27) for i in range(12))
    yield 'truncated.ppm', other(small, 'PPM')[:-1]


# ---- TIFF, of kinds that Pillow does not write ----

def tiff_packed(rng, w, h, samples, bits):
    """Rows of one strip, tile or plane."""
    return bytes(rng.randrange(256) for _ in range((w * samples * bits + 7) // 8 * h))


def tiff_file(seed, w, h, photo, bits, samples=1, order='<', extra=(), planar=False, tile=None, compression=1,
              tags=(), big=False, rows=None):
    """One picture of random samples; strips of `rows` rows, or tiles of tile x tile."""
    rng = random.Random(seed)
    planes, each = (samples, 1) if planar else (1, samples)
    if tile:
        parts = [tiff_packed(rng, tile, tile, each, bits)
                 for _ in range(planes * (-(-w // tile)) * (-(-h // tile)))]
    else:
        rows = rows or h
        parts = [tiff_packed(rng, w, min(rows, h - y), each, bits) for _ in range(planes) for y in range(0, h, rows)]
    if compression == 8:
        parts = [zlib.compress(part) for part in parts]
    word, head = (8, 16) if big else (4, 8)
    entries = {256: (4, [w]), 257: (4, [h]), 258: (3, [bits] * samples), 259: (3, [compression]), 262: (3, [photo]),
               277: (3, [samples]), 284: (3, [2 if planar else 1])}
    if extra:
        entries[338] = (3, list(extra))
    if photo == 3:
        entries[320] = (3, [rng.randrange(65536) for _ in range(3 << bits)])
    starts, at = [], head
    for part in parts:
        starts.append(at)
        at += len(part)
    if tile:
        entries.update({322: (4, [tile]), 323: (4, [tile]), 324: (4, starts), 325: (4, [len(p) for p in parts])})
    else:
        entries.update({273: (4, starts), 278: (4, [rows]), 279: (4, [len(p) for p in parts])})
    entries.update(dict(tags))
    body = b''.join(parts)
    body += bytes(-len(body) % 2)
    fields, more, after = b'', b'', head + len(body) + (8 if big else 2) + len(entries) * (20 if big else 12) + word
    for tag, (kind, values) in sorted(entries.items()):
        value = values if kind == 1 else struct.pack(order + '%d%s' % (len(values), 'HI'[kind == 4]), *values)
        if len(value) > word:
            value, more = struct.pack(order + ('Q' if big else 'I'), after + len(more)), more + value + bytes(len(value) % 2)
        fields += struct.pack(order + 'HH' + ('Q' if big else 'I'), tag, kind, len(values)) + value.ljust(word, b'\0')
    magic = {'<': b'II', '>': b'MM'}[order]
    first = head + len(body)
    start = struct.pack(order + 'HHHQ', 43, 8, 0, first) if big else struct.pack(order + 'HI', 42, first)
    return magic + start + body + struct.pack(order + ('Q' if big else 'H'), len(entries)) + fields + bytes(word) + more


def tiff_files():
    im = picture(31, 23, 30)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(0))
    for name, compression in (('raw', None), ('lzw', 'tiff_lzw'), ('deflate', 'tiff_adobe_deflate'), ('packbits', 'packbits'),
                              ('lzma', 'lzma'), ('zstd', 'zstd')):
        yield name + '.tif', other(im, 'TIFF', compression=compression)
    whole = other(im, 'TIFF', compression='tiff_lzw')
    yield 'predictor.tif', other(im, 'TIFF', compression='tiff_lzw', tiffinfo={317: 2})
    yield 'jpeg.tif', other(im, 'TIFF', compression='jpeg', quality=70)
    yield 'jpeg-ycc.tif', other(im.convert('YCbCr'), 'TIFF', compression='jpeg', quality=70)
    yield 'jpeg-gray.tif', other(im.convert('L'), 'TIFF', compression='jpeg', quality=70)
    yield 'ycc.tif', other(im.convert('YCbCr'), 'TIFF')
    yield 'rgba.tif', other(alpha, 'TIFF')
    yield 'gray.tif', other(im.convert('L'), 'TIFF')
    yield 'gray-alpha.tif', other(alpha.convert('LA'), 'TIFF')
    yield 'bits.tif', other(im.convert('1'), 'TIFF')
    yield 'fax.tif', other(im.convert('1'), 'TIFF', compression='group4')
    yield 'fax3.tif', other(im.convert('1'), 'TIFF', compression='group3')
    yield 'palette.tif', other(im.quantize(100), 'TIFF', compression='tiff_lzw')
    yield 'cmyk.tif', other(im.convert('CMYK'), 'TIFF')
    yield 'lab.tif', tiff_file(31, 9, 7, 8, 8, 3)
    yield 'float.tif', other(im.convert('L').convert('F'), 'TIFF')
    yield 'pages.tif', other(im, 'TIFF', save_all=True, append_images=[picture(9, 8, 32)])
    for bits in (1, 2, 4, 8):
        yield 'white-%d.tif' % bits, tiff_file(40 + bits, 13, 9, 0, bits, order='<>'[bits % 4 == 0])
        yield 'black-%d.tif' % bits, tiff_file(50 + bits, 13, 9, 1, bits, rows=4)
        yield 'palette-%d.tif' % bits, tiff_file(60 + bits, 13, 9, 3, bits)
    yield 'tiles.tif', tiff_file(70, 37, 21, 2, 8, 3, tile=16)
    yield 'tiles-deflate.tif', tiff_file(71, 37, 21, 1, 8, tile=32, compression=8, order='>')
    yield 'tiles-bits.tif', tiff_file(72, 37, 21, 1, 1, tile=16)
    yield 'planes.tif', tiff_file(73, 19, 11, 2, 8, 3, planar=True, rows=5)
    yield 'planes-tiles.tif', tiff_file(74, 19, 11, 2, 8, 3, planar=True, tile=16, compression=8)
    yield 'planes-extra.tif', tiff_file(75, 19, 11, 2, 8, 5, planar=True, extra=(0, 0), compression=8)
    yield 'gray16.tif', tiff_file(76, 19, 11, 1, 16)
    yield 'gray16-big.tif', other(im.convert('L').convert('I').point(lambda v: v * 2).convert('I;16B'), 'TIFF')
    yield 'gray16-white.tif', tiff_file(77, 19, 11, 0, 16)
    yield 'gray16-signed.tif', tiff_file(78, 19, 11, 1, 16, tags=((339, (3, [2])),))
    yield 'rgb16.tif', tiff_file(79, 19, 11, 2, 16, 3)
    yield 'rgb16-big.tif', tiff_file(80, 19, 11, 2, 16, 3, order='>', compression=8)
    yield 'rgba16.tif', tiff_file(81, 19, 11, 2, 16, 4, extra=(2,), order='>')
    yield 'multiplied.tif', tiff_file(82, 19, 11, 2, 8, 4, extra=(1,))
    yield 'multiplied16.tif', tiff_file(83, 19, 11, 2, 16, 4, extra=(1,))
    yield 'more.tif', tiff_file(84, 19, 11, 2, 8, 6, extra=(0, 0, 0))
    yield 'unnamed.tif', tiff_file(85, 19, 11, 2, 8, 4)
    yield 'bands.tif', tiff_file(86, 19, 11, 1, 8, 7, extra=(0,) * 6)
    yield 'gray-extra.tif', tiff_file(87, 19, 11, 1, 8, 2, extra=(0,))
    yield 'gray-multiplied.tif', tiff_file(88, 19, 11, 1, 8, 2, extra=(1,))
    yield 'palette-extra.tif', tiff_file(89, 19, 11, 3, 8, 2, extra=(0,))
    yield 'cmyk16.tif', tiff_file(90, 19, 11, 5, 16, 4)
    yield 'cmyk-extra.tif', tiff_file(91, 19, 11, 5, 8, 5, extra=(0,))
    yield 'large.tif', tiff_file(92, 19, 11, 2, 8, 3, big=True)
    yield 'deep.tif', tiff_file(93, 19, 11, 1, 32)
    yield 'reversed.tif', tiff_file(94, 19, 11, 1, 1, tags=((266, (3, [2])),))
    for n in range(2, 9):
        yield 'turn-%d.tif' % n, tiff_file(100 + n, 19, 11, 2, 8, 3, tile=16 if n % 2 else None, tags=((274, (3, [n])),))
    yield 'huge.tif', tiff_file(95, 8, 8, 1, 8, tags=((256, (4, [65500])), (257, (4, [65500]))))
    yield 'tile-bomb.tif', tiff_file(96, 8, 8, 1, 8, tile=16, tags=((257, (4, [10000000])), (322, (4, [65536]))))
    yield 'truncated.tif', whole[:len(whole) * 2 // 3]
    yield 'cut.tif', tiff_file(97, 19, 11, 2, 8, 3)[:-20]


def format_files():
    yield from png_files()
    yield from tiff_files()
    yield from bmp_files()
    yield from gif_files()
    yield from other_files()


# ---- EXIF ----

TAG = 0x0112
SHORT = 3


def tiff(order, *entries, after=b'', at=8, cut=None):
    """A TIFF file of one directory with entries (tag, type, count, value)."""
    fields = b''.join(struct.pack(order + 'HHI', tag, kind, count)
                      + struct.pack(order + ('H' if kind == SHORT else 'I'), value).ljust(4, b'\0')
                      for tag, kind, count, value in entries)
    head = b'II*\0' if order == '<' else b'MM\0*'
    whole = head + struct.pack(order + 'I', at) + struct.pack(order + 'H', len(entries)) + fields + bytes(4) + after
    return whole[:cut]


def exif_files():
    im = picture(37, 26, 20)
    jpg = encode(im)
    first = marker(jpg, (0xdb,))

    def with_exif(*parts, jpg=jpg, between=b''):
        segments = b''.join(b'\xff\xe1' + struct.pack('>H', 8 + len(part)) + b'Exif\0\0' + part for part in parts)
        return jpg[:first] + segments + between + jpg[first:]

    def turn(n, kind=SHORT, order='>'):
        return tiff(order, (0x010f, 2, 8, 50), (TAG, kind, 1, n), (0x0128, SHORT, 1, 2), after=b'somebody')

    for n in range(1, 9):
        yield 'turn-%d.jpg' % n, with_exif(turn(n, order='<>'[n % 2]))
    yield 'progressive.jpg', with_exif(turn(6), jpg=encode(im, progressive=True))
    yield 'cmyk.jpg', with_exif(turn(8), jpg=jpg[:first] + encode(im.convert('CMYK'), subsampling=0)[2:])
    yield 'parts.jpg', with_exif(turn(7)[:25], turn(7)[25:])
    yield 'long.jpg', with_exif(turn(5, kind=4))
    yield 'byte.jpg', with_exif(turn(6, kind=1))
    yield 'nine.jpg', with_exif(turn(9))
    yield 'none.jpg', with_exif(tiff('<', (TAG, SHORT, 0, 6)))
    yield 'again.jpg', with_exif(tiff('<', (TAG, 14, 1, 6), (TAG, SHORT, 1, 3), (TAG, SHORT, 1, 8)))
    yield 'cut.jpg', with_exif(tiff('>', (TAG, SHORT, 1, 6), (0x0128, SHORT, 1, 2), cut=25))
    yield 'cut-before.jpg', with_exif(tiff('>', (TAG, SHORT, 1, 6), cut=20))
    yield 'lost-value.jpg', with_exif(tiff('>', (0x010f, 2, 9, 50), (TAG, SHORT, 1, 6), after=b'nobody'))
    yield 'large-value.jpg', with_exif(tiff('>', (0x010f, 2, 900, 50), (TAG, SHORT, 1, 6), after=b'nobody'))
    yield 'outside.jpg', with_exif(tiff('<', (TAG, SHORT, 3, 26), after=struct.pack('<HHH', 5, 6, 7)))
    yield 'nowhere.jpg', with_exif(tiff('>', (TAG, SHORT, 1, 6), at=0xfffffff0))
    yield 'no-tiff.jpg', with_exif(b'PNG!' + turn(6)[4:])
    yield 'empty.jpg', with_exif(b'')
    yield 'bytes-between.jpg', jpg[:first] + b'\0\1\xff\0' + with_exif(turn(6))[first:]
    other_segment = b'\xff\xe1' + struct.pack('>H', 20) + b'http://something\0\0'
    yield 'behind.jpg', jpg[:first] + other_segment + with_exif(turn(4))[first:]
    yield 'before.png', png(21, 17, 9, 8, 2, chunks=chunk(b'eXIf', turn(5)))
    yield 'late.png', png(22, 17, 9, 8, 2, chunks=chunk(b'eXIf', turn(3)), after=chunk(b'eXIf', turn(6)))
    yield 'interlaced.png', png(23, 13, 19, 8, 2, interlaced=True, chunks=chunk(b'eXIf', turn(8)))
    webp = other(im, 'WEBP', quality=60, exif=b'Exif\0\0' + turn(7, order='<'))
    yield 'lossy.webp', webp
    yield 'lossless.webp', other(im, 'WEBP', lossless=True, exif=turn(6))
    xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation=oops tiff:Orientation="%d"/></x:xmpmeta>'

    def packet(data):
        data = b'http://ns.adobe.com/xap/1.0/\0' + data
        return b'\xff\xe1' + struct.pack('>H', 2 + len(data)) + data

    def with_xmp(data, jpg=jpg):
        return jpg[:first] + packet(data) + jpg[first:]

    yield 'xmp.jpg', with_xmp(xmp % 6)
    yield 'xmp-element.jpg', with_xmp(b'<tiff:Orientation>3</tiff:Orientation>')
    yield 'xmp-nine.jpg', with_xmp(xmp % 9 + xmp % 6)
    yield 'xmp-last.jpg', with_xmp(xmp % 6, jpg=with_xmp(xmp % 8))
    yield 'xmp-and-exif.jpg', with_xmp(xmp % 6, jpg=with_exif(turn(3)))
    yield 'xmp-and-nine.jpg', with_xmp(xmp % 6, jpg=with_exif(turn(9)))
    yield 'xmp-and-other.jpg', with_xmp(xmp % 6, jpg=with_exif(tiff('<', (0x0128, SHORT, 1, 2))))
    yield 'xmp-and-empty.jpg', with_xmp(xmp % 5, jpg=with_exif(b''))
    yield 'xmp-and-no-tiff.jpg', with_xmp(xmp % 6, jpg=with_exif(b'PNG!' + turn(6)[4:]))
    text = b'XML:com.adobe.xmp\0'
    yield 'xmp.png', png(24, 17, 9, 8, 2, chunks=chunk(b'iTXt', text + b'\0\0en\0name\0' + xmp % 7))
    yield 'xmp-late.png', png(25, 17, 9, 8, 2, chunks=chunk(b'iTXt', text + b'\0\0\0\0' + xmp % 7),
                              after=chunk(b'tEXt', text + xmp % 5))
    yield 'xmp.webp', other(im, 'WEBP', quality=60, xmp=xmp % 8)
    yield 'xmp.tif', tiff_file(26, 19, 11, 2, 8, 3, tags=((700, (1, xmp % 6)),))
    yield 'xmp-and-tag.tif', tiff_file(27, 19, 11, 2, 8, 3, tags=((274, (3, [3])), (700, (1, xmp % 6))))
    yield 'no-flag.webp', webp[:20] + bytes([webp[20] & ~8]) + webp[21:]


# ---- formats of modern archives ----

def by_tool(im, suffix, command, *options):
    """The file that a program makes of it (or of these bytes of a file): command, options, a PNG, the file."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, 'in.png'), os.path.join(folder, 'out' + suffix)
        if isinstance(im, bytes):
            with open(ours, 'wb') as f:
                f.write(im)
        else:
            im.save(ours)
        subprocess.run([command, *options, ours, theirs], check=True, stdout=subprocess.DEVNULL)
        with open(theirs, 'rb') as f:
            return f.read()


def avif_files():
    im = picture(29, 21, 30)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(1))

    def avif(im=im, quality=70, **options):
        return other(im, 'AVIF', quality=quality, codec='aom', max_threads=1, **options)

    def avifenc(*options, im=im):
        return by_tool(im, '.avif', 'avifenc', '-j', '1', *options)

    whole = avif()
    yield '420.avif', whole
    yield '422.avif', avif(subsampling='4:2:2', range='limited')
    yield '444.avif', avif(subsampling='4:4:4', range='limited')
    yield 'best.avif', avif(subsampling='4:4:4', quality=100)
    yield 'gray.avif', avif(subsampling='4:0:0')
    yield 'gray-limited.avif', avif(subsampling='4:0:0', range='limited')
    yield 'gray-alpha.avif', avif(alpha, subsampling='4:0:0', range='limited')
    yield 'alpha.avif', avif(alpha)
    yield 'alpha-limited.avif', avif(alpha, range='limited')
    yield 'premultiplied.avif', avif(alpha, alpha_premultiplied=True)
    yield 'sequence.avif', avif(save_all=True, append_images=[picture(29, 21, 31)])
    yield 'one-pixel.avif', avif(picture(1, 1, 32))
    yield 'wide.avif', avif(picture(141, 3, 33))
    yield 'lossless.avif', avifenc('-l')
    yield 'ten.avif', avifenc('-d', '10', '-y', '420')
    yield 'ten-gray.avif', avifenc('-d', '10', '-y', '400', '-r', 'l')
    yield 'ten-gray-alpha.avif', avifenc('-d', '10', '-y', '400', im=alpha)
    yield 'ten-lossless.avif', avifenc('-d', '10', '-l')
    yield 'ten-2020.avif', avifenc('-d', '10', '-y', '422', '--cicp', '9/16/9')
    yield 'ten-derived.avif', avifenc('-d', '10', '-y', '420', '--cicp', '12/16/12')
    yield 'derived.avif', avifenc('-y', '420', '--cicp', '12/16/12')
    yield 'smpte.avif', avifenc('-y', '444', '--cicp', '1/13/7')
    yield 'twelve.avif', avifenc('-d', '12', '-y', '444', '-r', 'l')
    yield 'twelve-alpha.avif', avifenc('-d', '12', '-y', '422', im=alpha)
    for turn in range(4):
        rotate = ('--irot', str(turn)) if turn else ()
        for mirror in ((), ('--imir', '0'), ('--imir', '1')):
            if rotate or mirror:
                yield 'turn-%d%s.avif' % (turn, ''.join(mirror[1:])), avifenc('--min', '30', '--max', '40', *rotate, *mirror)
    yield 'exif.avif', avif(exif=exif_turned(6))
    yield 'truncated.avif', whole[:len(whole) * 2 // 3]
    data = whole.index(b'mdat') + 4
    yield 'damaged.avif', whole[:data] + b'\x7f' * 9 + whole[data + 9:]  # of which dav1d tells stderr
    size = whole.index(b'ispe') + 8
    yield 'huge.avif', whole[:size] + struct.pack('>II', 16000, 16000) + whole[size + 8:]
    yield 'no-pixels.avif', whole[:size] + bytes(8) + whole[size + 8:]


def jp2_files():
    im = picture(29, 21, 34)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(1))
    gray = im.convert('L')
    rng = random.Random(35)

    def jp2(im=im, **options):
        return other(im, 'JPEG2000', **options)

    def compressed(suffix, data, kind, *options):
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = os.path.join(folder, 'in' + kind), os.path.join(folder, 'out' + suffix)
            with open(ours, 'wb') as f:
                f.write(data)
            subprocess.run(['opj_compress', '-i', ours, '-o', theirs, '-n', '2', *options], check=True, stdout=subprocess.DEVNULL)
            with open(theirs, 'rb') as f:
                return f.read()

    def deep(bits, channels):  # no sample that Pillow's rounding makes black
        most = (1 << bits) - (1 << bits - 8)
        return b'P%d\n23 17\n%d\n' % (5 + (channels == 3), (1 << bits) - 1) + b''.join(
            struct.pack('>H', rng.randrange(most)) for _ in range(23 * 17 * channels))

    whole = jp2()
    yield 'rgb.jp2', whole
    yield 'rgb.j2k', jp2(no_jp2=True)
    yield 'lossy.jp2', jp2(irreversible=True, quality_layers=[20], mct=1)
    yield 'tiles.jp2', jp2(tile_size=(16, 16), mct=1)
    yield 'offset.j2k', jp2(no_jp2=True, offset=(5, 3), tile_offset=(2, 1), tile_size=(16, 16))
    yield 'signed.j2k', jp2(no_jp2=True, signed=True)
    yield 'rgba.jp2', jp2(alpha)
    yield 'gray.jp2', jp2(gray)
    yield 'gray-alpha.jp2', jp2(alpha.convert('LA'))
    yield 'gray-signed.j2k', jp2(gray, no_jp2=True, signed=True)
    yield 'ycc.jp2', jp2(im.convert('YCbCr'))
    yield 'gray16.jp2', compressed('.jp2', deep(16, 1), '.pgm')
    yield 'gray12.j2k', compressed('.j2k', deep(12, 1), '.pgm')
    yield 'gray9.jp2', compressed('.jp2', deep(9, 1), '.pgm')
    yield 'rgb16.jp2', compressed('.jp2', deep(16, 3), '.ppm')
    yield 'rgb12.jp2', compressed('.jp2', deep(12, 3), '.ppm')
    yield 'one-pixel.jp2', jp2(picture(1, 1, 36))
    yield 'wide.jpx', jp2(picture(141, 3, 37)).replace(b'ftypjp2 ', b'ftypjpx ', 1)
    yield 'subsampled.j2k', compressed('.j2k', im.tobytes()[:28 * 20 * 3 // 2], '.raw', '-F', '28,20,3,8,u@1x1:2x2:2x2', '-mct', '0')
    yield 'narrow.j2k', compressed('.j2k', im.tobytes()[:28 * 20 * 2], '.raw', '-F', '28,20,3,8,u@1x1:2x1:2x1', '-mct', '0')
    yield 'five.j2k', compressed('.j2k', bytes(7 * 5 * 5), '.raw', '-F', '7,5,5,8,u', '-mct', '0')
    yield 'truncated.jp2', whole[:len(whole) * 2 // 3]
    at = whole.index(b'\xff\x51') + 6
    for place in (at, at + 16):  # the picture, its one tile; and what the box says
        whole = whole[:place] + struct.pack('>II', 12000, 12000) + whole[place + 8:]
    place = whole.index(b'ihdr') + 4
    yield 'huge.jp2', whole[:place] + struct.pack('>II', 12000, 12000) + whole[place + 8:]


def bits(*fields):
    """(value, bits) each, the lowest bit first."""
    whole = at = 0
    for value, n in fields:
        whole, at = whole | value << at, at + n
    return whole.to_bytes(-(-at // 8), 'little')


def jxl_files():
    """What is coded without loss, of which every libjxl makes the same pixels."""
    im = picture(29, 21, 38)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(1))

    def jxl(im=im, *options):
        return by_tool(im, '.jxl', 'cjxl', '-d', '0', *options)

    whole = jxl()
    yield 'rgb.jxl', whole
    yield 'file.jxl', jxl(im, '--container=1')
    yield 'gray.jxl', jxl(im.convert('L'))
    yield 'gray-alpha.jxl', jxl(alpha.convert('LA'))
    yield 'alpha.jxl', jxl(alpha)
    yield 'one-pixel.jxl', jxl(picture(1, 1, 39))
    yield 'wide.jxl', jxl(picture(141, 3, 40))
    yield 'progressive.jxl', jxl(im, '-p', '-R', '1')
    out = io.BytesIO()
    im.save(out, 'PNG', save_all=True, append_images=[picture(29, 21, 41)])
    yield 'animation.jxl', by_tool(out.getvalue(), '.jxl', 'cjxl', '-d', '0')
    yield 'truncated.jxl', whole[:len(whole) * 2 // 3]
    yield 'damaged.jxl', whole[:40] + bytes(400) + whole[440:]


def heif(im, quality=90, chroma=444, **options):
    return other(im, 'HEIF', quality=quality, chroma=chroma, **options)


def heif_files():
    """Whose chroma is whole, as libheif's versions interpolate others apart."""
    pillow_heif.register_heif_opener()
    im = picture(64, 48, 42)
    alpha = im.copy()
    alpha.putalpha(im.getchannel(1))
    whole = heif(im)
    yield '444.heic', whole
    yield 'gray.heic', heif(im.convert('L'), chroma=420)
    yield 'alpha.heic', heif(alpha)
    yield 'lossless.heic', heif(im, quality=-1, matrix_coefficients=0)
    yield 'tiles.heic', heif(picture(100, 70, 43), quality=50, tile_size=64)
    yield 'odd.heic', heif(picture(29, 21, 44))
    yield 'several.heic', heif(im, save_all=True, append_images=[picture(64, 48, 45)], primary_index=1)
    deep = pillow_heif.from_bytes('RGB;16', im.size, bytes(b for v in im.tobytes() for b in struct.pack('<H', 257 * v)))
    out = io.BytesIO()
    deep.save(out, quality=90, chroma=444)
    yield 'deep.heic', out.getvalue()
    for turn in range(2, 9):
        yield 'turned-%d.heic' % turn, heif(im, exif=exif_turned(turn))
    yield 'brand.heif', whole[:8] + b'mif1' + whole[12:]
    yield 'truncated.heic', whole[:len(whole) * 2 // 3]
    size = whole.index(b'ispe') + 8
    yield 'no-pixels.heic', whole[:size] + bytes(8) + whole[size + 8:]


def near_files():
    """Pixels are near to those of modern's files, or of data's."""
    im = picture(29, 21, 38)
    yield 'rgb.ppm', other(im, 'PPM')
    yield 'lossy.jxl', by_tool(im, '.jxl', 'cjxl', '-q', '95')
    yield 'packed-jpeg.jxl', by_tool(encode(picture(120, 90, 1)), '.jxl', 'cjxl')
    deep = b'P6\n29 21\n65535\n' + b''.join(struct.pack('>H', 257 * v) for v in im.tobytes())
    yield 'deep.jxl', by_tool(deep, '.jxl', 'cjxl', '-d', '0')
    for turn in range(2, 9):
        turned = encode(im, quality=95, subsampling=0, exif=exif_turned(turn))
        yield 'upright-%d.jpg' % turn, turned
        yield 'upright-%d.jxl' % turn, by_tool(turned, '.jxl', 'cjxl')
    half = heif(im, chroma=420, quality=95)
    yield '420.heic', half
    size = half.index(b'ispe') + 8
    yield 'huge.heic', half[:size] + struct.pack('>II', 12000, 12000) + half[size + 8:]
    size = (0, 1), (3, 2), (9999, 30), (0, 3), (3, 2), (9999, 30)  # coded as all the same
    yield 'huge.jxl', b'\xff\x0a' + bits(*size, (1, 1), (1, 1)) + bytes(64)


def exif_turned(orientation):
    exif = Image.Exif()
    exif[TAG] = orientation
    return exif.tobytes()


def modern_files():
    yield from avif_files()
    yield from jp2_files()
    yield from jxl_files()
    yield from heif_files()


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
    yield 'png.jpg', out.getvalue()[:-100]
    yield 'huge-header.jpg', sized(base, 65500, 65500)
    yield 'zero-height.jpg', sized(base, 120, 0)
    yield 'many-scans.jpg', many_scans(encode(picture(16, 16, 8), progressive=True), 120)


def write(where, pictures):
    os.makedirs(where, exist_ok=True)
    for name, data in pictures:
        with open(os.path.join(where, name), 'wb') as f:
            f.write(data)


def main(where):
    write(os.path.join(where, 'data'), files())
    write(os.path.join(where, 'formats'), format_files())
    write(os.path.join(where, 'exif'), exif_files())
    write(os.path.join(where, 'modern'), modern_files())
    write(os.path.join(where, 'near'), near_files())


if __name__ == '__main__':
    main(sys.argv[1])
