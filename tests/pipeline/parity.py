#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parity.py [--golden=[FAMILY]] PIXELS FILE...

Holds what the program PIXELS (pixels.c) makes of pictures against Pillow and torchvision's
arithmetic, sample by sample: outcome and every byte. The random parts are told by PIXELS and then
cut, resized and flipped by Pillow. Float32 arithmetic is done here in Python, rounded after each
operation, so that neither NumPy nor PyTorch is needed.

With --golden= it prints, for each spec of the family, a line "spec<TAB>nonce<TAB>text" and a line for each picture,
"name<TAB>first 16 digits of the SHA-256 of the image's bytes" (or the stage of the error), computed
by Pillow: tests/pipeline/golden.tsv (no family) and golden_FAMILY.tsv, which run_test.c holds against
the pipeline without Pillow.
"""
import array
import collections
import functools
import hashlib
import json
import math
import os
import struct
import subprocess
import sys
import warnings

import PIL
from PIL import Image, ImageOps

import parity_augment
import parity_colour
import parity_geometry
import parity_noise
import parity_translated

PINNED = '13.0.0'  # the version whose order of passes resize.c follows
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NORMALIZE = {'op': 'normalize', 'mean': MEAN, 'std': STD}
FILTERS = {f: getattr(Image.Resampling, f.upper()) for f in
           ('nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos')}
DECODE, REFUSED, OP = 4, 5, 9  # enum pipeline_fail
SCANS = 100
SEED = 20261121
DRAWN = 64  # OP_MAX_DRAWN
DAMAGED = ('early-rows.png', 'wrong-data.png')  # which Pillow shows and libspng refuses
FORMATS = ['JPEG', 'PNG', 'WEBP', 'GIF', 'BMP', 'PPM', 'TIFF', 'AVIF', 'JPEG2000']


def train(size=224, *rest, **more):
    return [{'op': 'decode'}, dict({'op': 'random_resized_crop', 'size': size}, **more), {'op': 'hflip'}, *rest]


def evaluate(*rest, resize=256, crop=224, **more):
    return [{'op': 'decode'}, dict({'op': 'resize', 'size': resize}, **more), {'op': 'center_crop', 'size': crop}, *rest]


CHW = {'op': 'layout', 'order': 'CHW'}
SPECS = {
    'train-u8': train(224, CHW),
    'train-f32': train(224, NORMALIZE, {'op': 'cast'}, CHW),
    'train-f16': train([160, 192], NORMALIZE, {'op': 'cast', 'dtype': 'f16'}),
    'train-plain-f32': train(64, {'op': 'cast'}, CHW),
    'eval-u8': evaluate(CHW),
    'eval-f32': evaluate(NORMALIZE, CHW),
    'eval-small': evaluate(resize=96, crop=128),
    'eval-upscale': evaluate(CHW, resize=700, crop=640),
    'crop-first': [{'op': 'decode'}, {'op': 'center_crop', 'size': [300, 420]}, {'op': 'resize', 'size': [131, 77]}],
    'crop-plain': [{'op': 'decode'}, {'op': 'center_crop', 'size': [333, 251]}],
    **{'train-' + f: train(128, interpolation=f) for f in FILTERS},
    **{'eval-' + f: evaluate(resize=[190, 211], crop=[180, 200], interpolation=f) for f in FILTERS},
    'train-bf16': train(96, NORMALIZE, {'op': 'cast', 'dtype': 'bf16'}),
}


FORMAT_SPECS = {
    'formats-plain': [{'op': 'decode'}, {'op': 'center_crop', 'size': [31, 43]}],
    'formats-train': train(48, NORMALIZE, CHW),
    'formats-eval': evaluate(resize=36, crop=32),
}
EXIF = [{'op': 'decode', 'exif_transpose': True}]
EXIF_SPECS = {
    'exif-plain': [*EXIF, {'op': 'center_crop', 'size': [31, 43]}],
    'exif-train': [*EXIF, *train(48, NORMALIZE, CHW)[1:]],
    'exif-eval': [*EXIF, *evaluate(resize=36, crop=32)[1:]],
    'exif-turned': [*EXIF, {'op': 'rotate', 'degrees': 90, 'expand': True}, {'op': 'resize', 'size': [20, 30]}],
    'exif-ignored': [{'op': 'decode'}, {'op': 'center_crop', 'size': [20, 30]}],
    'exif-fast-train': [dict(EXIF[0], fast=True), *train([5, 7], CHW)[1:]],
    'exif-fast-eval': [dict(EXIF[0], fast=True), *evaluate(resize=7, crop=6, interpolation='bicubic')[1:]],
}
MODERN_SPECS = {  # AVIF and the like
    'modern-plain': FORMAT_SPECS['formats-plain'],
    'modern-train': EXIF_SPECS['exif-train'],
    'modern-eval': EXIF_SPECS['exif-eval'],
}
FAST = [{'op': 'decode', 'fast': True}]
FAST_SPECS = {
    'fast-train': [*FAST, *train(20, NORMALIZE, CHW)[1:]],
    'fast-train-4': [*FAST, *train([9, 14], CHW, interpolation='lanczos')[1:]],
    'fast-train-8': [*FAST, *train(4, interpolation='box')[1:]],
    'fast-eval': [*FAST, *evaluate(resize=40, crop=36)[1:]],
    'fast-eval-4': [*FAST, *evaluate(resize=17, crop=16, interpolation='bicubic')[1:]],
    'fast-eval-8': [*FAST, *evaluate(resize=[8, 13], crop=8, interpolation='hamming')[1:]],
    'fast-eval-even': [*FAST, {'op': 'resize', 'size': [45, 30]}],
    'fast-not': [*FAST, {'op': 'center_crop', 'size': 80}, {'op': 'resize', 'size': 12}, {'op': 'center_crop', 'size': 12}],
    'fast-nearest': [*FAST, *train(9, interpolation='nearest')[1:]],
}
# What golden files are made of, each from its specs: golden.tsv and golden_NAME.tsv.
FAMILIES = {'': SPECS, 'formats': FORMAT_SPECS, 'exif': EXIF_SPECS, 'modern': MODERN_SPECS, 'fast': FAST_SPECS, 'augment': parity_augment.SPECS, 'colour': parity_colour.SPECS,
            'geometry': parity_geometry.SPECS, 'noise': parity_noise.SPECS, 'translated': parity_translated.SPECS}
# Ops that are one function of (picture, what the spec says, what was drawn).
PICTURE_OPS = {**parity_augment.PICTURE_OPS, **parity_colour.PICTURE_OPS, **parity_geometry.PICTURE_OPS,
               **parity_noise.PICTURE_OPS, **parity_translated.PICTURE_OPS}


def f32(x):
    return struct.unpack('f', struct.pack('f', x))[0]


def bf16(x):
    """The upper half of the float32's bits, rounded to the nearest, ties to even."""
    upper, lower = divmod(struct.unpack('<I', struct.pack('<f', x))[0], 65536)
    return upper + (lower > 0x8000 or (lower == 0x8000 and upper % 2))


def middle(have, want, half='even'):
    """(first, count, fill before): torchvision's center_crop along one axis, or with "down" Hugging Face's."""
    if have < want:
        return 0, have, (want - have) // 2
    return (have - want) // 2 if half == 'down' else int(round((have - want) / 2.0)), want, 0


def center_crop(im, op):
    size = op['size']
    h, w = size if isinstance(size, list) else (size, size)
    top, rows, above = middle(im.size[1], h, op.get('half'))
    left, columns, before = middle(im.size[0], w, op.get('half'))
    out = Image.new(im.mode, (w, h), parity_geometry.color(im, op) if im.mode == 'RGB' else op.get('fill', 0))
    out.paste(im.crop((left, top, left + columns, top + rows)), (before, above))
    return out


def resized(w, h, size, most=None, fit='exact'):
    """(width, height) of a picture behind resize."""
    if fit != 'exact':  # timm's ResizeKeepRatio
        ratio = (min if fit == 'cover' else max)(h / size[0], w / size[1])
        return round(w / ratio), round(h / ratio)
    if isinstance(size, list):
        return size[1], size[0]
    short, long = (w, h) if w <= h else (h, w)
    if size is None:
        new = int(most * short / long), most
    else:
        new = size, int(size * long / short)
        if most is not None and new[1] > most:
            new = int(most * new[0] / new[1]), most
    return new if w <= h else new[::-1]


def crop_filter(op, drawn):
    """Of random_resized_crop, which may draw one of two."""
    return list(FILTERS)[int(drawn[4])] if op.get('or_interpolation') else op.get('interpolation', 'bilinear')


def resize(im, size, interpolation='bilinear', most=None, fit='exact'):
    new = resized(*im.size, size, most, fit)
    return OP if min(new) < 1 else im.resize(new, FILTERS[interpolation])


def pixel_ops(im, spec, draws):
    """The picture behind the ops that work on 8 bits; a list of several; or the stage of the error."""
    for op, drawn in parity_translated.done(spec, draws):
        if isinstance(im, int) or op['op'] in ('normalize', 'cast', 'layout', 'gaussian_noise'):
            break
        if op['op'] in PICTURE_OPS:
            im = PICTURE_OPS[op['op']](im, op, drawn)
        elif op['op'] == 'random_resized_crop':
            size = op['size'] if isinstance(op['size'], list) else [op['size']] * 2
            top, left, h, w = (int(v) for v in drawn[:4])
            im = resize(im.crop((left, top, left + w, top + h)), size, crop_filter(op, drawn))
        elif op['op'] == 'resize':
            im = resize(im, op['size'], op.get('interpolation', 'bilinear'), op.get('max_size'), op.get('fit', 'exact'))
        elif op['op'] == 'center_crop':
            im = center_crop(im, op)
        elif op['op'] == 'hflip' and drawn[0]:
            im = im.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return im


def channel(numbers, c):
    """The number of channel c; one stands for all."""
    if not isinstance(numbers, (list, tuple)):
        return numbers
    return numbers[c if c < len(numbers) else 0]


def finish_noisy(im, spec, draws, code):
    """finish() where noise makes each value another one."""
    planes = [[f32(v / 255) for v in plane.tobytes()] for plane in im.split()]
    for op, drawn in zip(spec, draws):
        if op['op'] == 'gaussian_noise':
            planes = parity_noise.noisy(planes, op, drawn)
        elif op['op'] == 'normalize':
            pairs = [(f32(channel(op['mean'], c)), f32(channel(op['std'], c))) for c in range(len(planes))]
            planes = [[f32(f32(v - mean) / std) for v in plane] for plane, (mean, std) in zip(planes, pairs)]
    planes = [[struct.pack('<' + code, bf16(v) if code == 'H' else v) for v in plane] for plane in planes]
    flat = planes if any(op['op'] == 'layout' for op in spec) else zip(*planes)
    return b''.join(b''.join(p) for p in flat)


def finish(im, spec, draws):
    """The image's bytes; one after the other where five_crop or ten_crop made several of it."""
    if isinstance(im, list):
        return b''.join(finish(one, spec, draws) for one in im)
    ops = {op['op']: op for op in spec}
    dtype = ops['cast'].get('dtype', 'f32') if 'cast' in ops else 'f32' if 'normalize' in ops else 'u8'
    code = {'u8': 'B', 'f16': 'e', 'f32': 'f', 'bf16': 'H'}[dtype]
    if 'gaussian_noise' in ops:
        return finish_noisy(im, spec, draws, code)
    planes = []
    for c, plane in enumerate(im.split()):
        table = range(256)
        if code != 'B':
            table = [f32(v / 255) for v in table]
            if 'normalize' in ops:
                mean, std = (channel(ops['normalize'][name], c) for name in ('mean', 'std'))
                table = [f32(f32(v - f32(mean)) / f32(std)) for v in table]
        if code == 'H':
            table = [bf16(v) for v in table]
        table = [struct.pack('<' + code, v) for v in table]
        planes.append([table[v] for v in plane.tobytes()])
    seen = False
    for op, drawn in zip(spec, draws):
        if seen and op['op'] == 'random_erasing' and drawn[0]:
            parity_geometry.erase_planes(planes, im.size[0], op, drawn,
                                         lambda v: struct.pack('<' + code, bf16(f32(v)) if code == 'H' else v))
        seen = seen or op['op'] in ('normalize', 'cast', 'layout')
    if 'layout' in ops:
        return b''.join(b''.join(p) for p in planes)
    return b''.join(b''.join(p) for p in zip(*planes))


def upright(im):
    """As its EXIF says; where Pillow cannot read that, as it is."""
    try:
        return ImageOps.exif_transpose(im)
    except (SyntaxError, struct.error):
        return im


@functools.lru_cache(maxsize=64)
def decoded(path, turned):
    """The picture in RGB, upright if so wished; not to be changed."""
    with Image.open(path, formats=FORMATS) as im:
        if im.format == 'JPEG2000' and im.size[0] * im.size[1] > (1 << 20) + 1024 * os.path.getsize(path):
            raise Image.DecompressionBombError
        if os.path.basename(path) in DAMAGED:
            raise ValueError('not decoded by us')
        if im.format == 'TIFF' and (im.mode in ('F', 'LAB', 'YCbCr') or max(im.tag_v2.get(258, (1,))) > 16):
            raise ValueError('not decoded by us')
        if turned and im.format != 'JXL':  # which is upright
            im.load()
            im = upright(im)
        return im.convert('RGB')


def expected(path, spec, draws):
    """Pillow's bytes, or the stage of the error. Ours alone are the limit of scans, the TIFFs that have no 8 bits and DAMAGED."""
    with open(path, 'rb') as f:
        data = f.read()
    if data[:2] == b'\xff\xd8' and data.count(b'\xff\xda') > SCANS:
        return REFUSED
    try:
        smaller = fast(path, spec, draws)
        if smaller:
            return finish(pixel_ops(smaller, spec[2:], draws[2:]), spec, draws)
        im = decoded(path, spec[0].get('exif_transpose', False))
    except Image.DecompressionBombError:
        return REFUSED
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, AssertionError, RuntimeError, struct.error):
        return DECODE
    im = pixel_ops(im, spec, draws)
    return im if isinstance(im, int) else finish(im, spec, draws)


def reduced(im, orientation, op, drawn):
    """How decode's "fast" takes an open JPEG: (scale, what op 1 works on: left, top, right, bottom of the upright
    picture in its own size, what comes out), or None for as ever."""
    w, h = im.size if orientation < 5 else im.size[::-1]
    if op['op'] == 'random_resized_crop':
        top, left, bh, bw = (int(v) for v in drawn[:4])
        out = resized(bw, bh, op['size'] if isinstance(op['size'], list) else [op['size']] * 2)
    elif op['op'] == 'resize':
        top, left, bh, bw = 0, 0, h, w
        out = resized(w, h, op['size'], op.get('max_size'), op.get('fit', 'exact'))
    else:
        return None
    drawn_filter = crop_filter(op, drawn) if op['op'] == 'random_resized_crop' else op.get('interpolation')
    if drawn_filter == 'nearest' or min(out) < 1:
        return None
    for scale in (8, 4, 2):
        if bw // scale >= out[0] and bh // scale >= out[1]:
            return scale, (left, top, left + bw, top + bh), out
    return None


def fast(path, spec, draws):
    """The picture behind decode's "fast" and op 1, by Pillow's draft and its resize with a box, or None."""
    if not spec[0].get('fast'):
        return None
    with Image.open(path, formats=FORMATS) as im:
        return fast_of(im, spec, draws) if im.format == 'JPEG' else None


def fast_of(im, spec, draws):
    try:
        orientation = im.getexif().get(0x112, 1) if spec[0].get('exif_transpose') else 1
    except (SyntaxError, struct.error):
        orientation = 1
    orientation = orientation if orientation in range(1, 9) else 1
    how = reduced(im, orientation, spec[1], draws[1])
    if not how:
        return None
    scale, box, out = how
    rows_back, columns_back = orientation in (3, 4, 7, 8), orientation in (2, 3, 6, 7)
    full = im.size if orientation < 5 else im.size[::-1]
    im.draft(None, (im.size[0] // scale, im.size[1] // scale))
    im.load()
    if spec[0].get('exif_transpose'):
        im = upright(im)
    # where the file's last column is the first one, what is missing of a block is missing there
    lead = -full[0] % scale if columns_back else 0, -full[1] % scale if rows_back else 0
    box = [(v + lead[i % 2]) / scale for i, v in enumerate(box)]
    around = [int(v) for v in box[:2]] + [math.ceil(v) for v in box[2:]]
    part = im.convert('RGB').crop(around)
    inside = [v - around[i % 2] for i, v in enumerate(box)]
    drawn_filter = crop_filter(spec[1], draws[1]) if spec[1]['op'] == 'random_resized_crop' else spec[1].get('interpolation', 'bilinear')
    return part.resize(out, FILTERS[drawn_filter], box=inside)


def value_bytes(spec):
    ops = {op['op']: op for op in spec}
    if 'cast' in ops:
        return {'u8': 1, 'f16': 2, 'bf16': 2, 'f32': 4}[ops['cast'].get('dtype', 'f32')]
    return 4 if 'normalize' in ops else 1


def differing(ours, theirs, spec):
    """Of how many values of an image the bytes differ; of all of them where it has another size."""
    size = value_bytes(spec)
    if len(ours) != len(theirs):
        return max(len(ours), len(theirs)) // size
    return sum(ours[at:at + size] != theirs[at:at + size] for at in range(0, len(ours), size)) if ours != theirs else 0


def run(pixels, spec, nonce, files, seed=SEED):
    """Yields (outcome, draws, bytes) of each file."""
    p = subprocess.Popen([pixels, json.dumps(spec), str(seed), str(nonce), *files],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for _ in files:
        head = p.stdout.read(8 + 8 * DRAWN * len(spec))
        if len(head) != 8 + 8 * DRAWN * len(spec):
            break
        (outcome, size), numbers = array.array('i', head[:8]), array.array('d', head[8:])
        draws = [numbers[DRAWN * i:DRAWN * (i + 1)] for i in range(len(spec))]
        yield outcome, draws, p.stdout.read(size)
    p.stdout.close()
    if p.wait():
        sys.exit('parity: %s failed on %s' % (pixels, json.dumps(spec)))


def files_of(family, files):
    """Pictures of other formats than JPEG and those with EXIF are in folders of their own, each for a family of its own."""
    own = ('formats', 'exif', 'modern', 'near')
    folders = [(f, os.path.basename(os.path.dirname(f))) for f in files]
    return [f for f, folder in folders if (folder == family if family in own else folder not in own)]


def specs():
    """(family, name, nonce, spec) of all of them."""
    return [(f, name, nonce, spec) for f in FAMILIES for nonce, (name, spec) in enumerate(FAMILIES[f].items())]


def tally(pixels, name, nonce, spec, files, seed=SEED):
    """Counts of one spec's samples: all, those that have errors, values, samples and values that differ (these are named, too)."""
    count = collections.Counter(samples=0, errors=0, values=0, wrong=0, differ=0)
    for path, (outcome, draws, ours) in zip(files, run(pixels, spec, nonce, files, seed)):
        theirs = expected(path, spec, draws)
        count['samples'] += 1
        if outcome or isinstance(theirs, int):
            count['errors'] += 1
            bad, differ = outcome != theirs, 0
        else:
            differ = differing(ours, theirs, spec)
            bad = differ > 0
            count['values'] += len(ours) // value_bytes(spec)
        if bad:
            count['wrong'] += 1
            count['differ'] += differ
            print('%s: %s: differs: ours %s, Pillow %s, %d values' % (name, os.path.basename(path), outcome,
                  theirs if isinstance(theirs, int) else 'pixels', differ))
    return count


def compare(pixels, every_file):
    sums, wanted = collections.Counter(), 0
    for family, *spec in specs():
        files = files_of(family, every_file)
        wanted += len(files)
        sums.update(tally(pixels, *spec, files))
    print('parity: Pillow %s: %d samples of %d specs (%d with an error), %d values: %d samples differ' %
          (PIL.__version__, sums['samples'], len(specs()), sums['errors'], sums['values'], sums['wrong']))
    return sums['wrong'] or sums['samples'] != wanted


def golden(pixels, family, files):
    print('# Pillow %s; made by parity.py --golden=%s' % (PIL.__version__, family))
    files = files_of(family, files)
    for nonce, spec in enumerate(FAMILIES[family].values()):
        print('spec\t%d\t%s' % (nonce, json.dumps(spec, separators=(',', ':'))))
        for path, (_, draws, _) in zip(files, run(pixels, spec, nonce, files)):
            theirs = expected(path, spec, draws)
            what = theirs if isinstance(theirs, int) else hashlib.sha256(theirs).hexdigest()[:16]
            print('%s\t%s' % (os.path.basename(path), what))
    return 0


def main(args):
    family = args.pop(0).partition('=')[2] if args and args[0].startswith('--golden') else None
    if len(args) < 2 or (family and family not in FAMILIES):
        sys.exit(__doc__)
    if PIL.__version__ != PINNED:
        print('parity: needs Pillow %s, this is %s' % (PINNED, PIL.__version__), file=sys.stderr)
        return 77
    import pillow_jxl  # noqa: F401, which Pillow then knows
    FORMATS.append('JXL')
    import pillow_heif
    FORMATS.append('HEIF')
    warnings.simplefilter('ignore')
    Image.init()
    pillow_heif.register_heif_opener()
    if family is not None:
        return golden(args[0], family, args[1:])
    return 1 if compare(args[0], args[1:]) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
