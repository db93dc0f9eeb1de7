# SPDX-License-Identifier: Apache-2.0
"""rand_augment, trivial_augment and auto_augment as torchvision makes them of Pillow's images
(v2/_auto_augment.py), for parity.py. PIXELS drew which change and which magnitude; that the magnitude
is one that torchvision has is looked at, too."""
import math
import struct

from PIL import Image, ImageEnhance, ImageOps

import parity_geometry
from parity_colour import D, crop, op

KINDS = ('Identity', 'ShearX', 'ShearY', 'TranslateX', 'TranslateY', 'Rotate', 'Brightness', 'Color', 'Contrast', 'Sharpness',
         'Posterize', 'Solarize', 'AutoContrast', 'Equalize', 'Invert')
TRAIN = [D, op('random_resized_crop', size=[96, 128])]
SPECS = {
    **{'rand-%d' % m: TRAIN + [op('rand_augment', magnitude=m)] for m in (0, 4, 9, 15, 30)},
    'rand-bins': TRAIN + [op('rand_augment', num_ops=4, magnitude=5, num_magnitude_bins=10, fill=[20, 130, 240])],
    'rand-bilinear': TRAIN + [op('rand_augment', num_ops=8, magnitude=3, num_magnitude_bins=8, interpolation='bilinear')],
    'trivial': TRAIN + [op('trivial_augment')],
    'trivial-gray': [D, crop(90, 85), op('grayscale'), op('trivial_augment', interpolation='bicubic', fill=7)],
    'trivial-bins': [D, crop(90, 85), op('trivial_augment', num_magnitude_bins=5), op('trivial_augment', fill=255)],
    'auto': [D, crop(90, 85), op('auto_augment'), op('auto_augment'), op('auto_augment')],
    'auto-cifar10': [D, op('resize', size=32), crop(32), op('auto_augment', policy='cifar10', fill=128)],
    'auto-svhn': [D, op('resize', size=[48, 40]), op('auto_augment', policy='svhn', interpolation='bilinear')],
    'mix': TRAIN + [op('aug_mix')],
    'mix-hard': TRAIN + [op('aug_mix', severity=10, mixture_width=4, chain_depth=5, alpha=0.2, interpolation='nearest', fill=[9, 99, 0])],
    'mix-few': [D, crop(90, 85), op('aug_mix', all_ops=False, mixture_width=1, severity=7, interpolation='bicubic'), op('hflip')],
    'mix-gray': [D, crop(41, 60), op('grayscale'), op('aug_mix', alpha=3, chain_depth=1, mixture_width=10)],
}


def f32(x):
    return struct.unpack('f', struct.pack('f', x))[0]


def linspace(start, end, bins):
    start, end = f32(start), f32(end)
    step = f32(f32(end - start) / (bins - 1))
    return [f32(start + step * i if i < bins // 2 else end - step * (bins - 1 - i)) for i in range(bins)]


def bits(lost, bins):
    return [round(f32(8 - f32(i / f32((bins - 1) / lost)))) for i in range(bins)]


def magnitudes(kind, bins, wide, size):
    """(the bins, has it a sign), as in _AUGMENTATION_SPACE."""
    if kind in ('Identity', 'AutoContrast', 'Equalize', 'Invert'):
        return [0.0], False
    if kind == 'Posterize':
        return bits(6 if wide else 4, bins), False
    if kind == 'Solarize':
        return linspace(1, 0, bins), False
    end = 0.99 if wide else 0.9
    if kind in ('ShearX', 'ShearY'):
        end = 0.99 if wide else 0.3
    elif kind in ('TranslateX', 'TranslateY'):
        end = 32.0 if wide else 150.0 / 331.0 * size[kind == 'TranslateY']
    elif kind == 'Rotate':
        end = 135.0 if wide else 30.0
    return linspace(0, end, bins), True


def move(im, op, angle=0.0, translate=(0, 0), shear=(0.0, 0.0), center=None):
    m = parity_geometry.affine_matrix(center or [im.size[0] * 0.5, im.size[1] * 0.5], angle, translate, 1.0, shear)
    return im.transform(im.size, Image.Transform.AFFINE, m, filter_of(op), fillcolor=fill(im, op))


def filter_of(op):
    return parity_geometry.FILTERS[op.get('interpolation', 'nearest')]


def fill(im, op):
    color = op.get('fill') or 0
    return color if isinstance(color, int) and im.mode == 'L' else parity_geometry.color(im, {'fill': color})


def change(im, op, kind, m):
    if kind in ('ShearX', 'ShearY'):
        angle = math.degrees(math.atan(m))
        return move(im, op, shear=(angle, 0.0) if kind == 'ShearX' else (0.0, angle), center=[0, 0])
    if kind in ('TranslateX', 'TranslateY'):
        return move(im, op, translate=(int(m), 0) if kind == 'TranslateX' else (0, int(m)))
    if kind == 'Rotate':
        return im.rotate(m, filter_of(op), False, None, fillcolor=fill(im, op))
    if kind in ('Brightness', 'Color', 'Contrast', 'Sharpness'):
        return getattr(ImageEnhance, kind)(im).enhance(1.0 + m)
    return {'Identity': lambda: im, 'Posterize': lambda: ImageOps.posterize(im, int(m)),
            'Solarize': lambda: ImageOps.solarize(im, 255.0 * m), 'AutoContrast': lambda: ImageOps.autocontrast(im),
            'Equalize': lambda: ImageOps.equalize(im), 'Invert': lambda: ImageOps.invert(im)}[kind]()


def augment(im, op, drawn):
    wide, auto = op['op'] == 'trivial_augment', op['op'] == 'auto_augment'
    bins = 10 if auto else op.get('num_magnitude_bins', 31)
    size = im.size
    for number, m in list(zip(drawn[::2], drawn[1::2])):
        kind = KINDS[int(number)]
        known, signed = magnitudes(kind, bins, wide, size)
        if op['op'] == 'rand_augment' and len(known) > 1:
            known = [known[op.get('magnitude', 9)]]
        if (abs(m) if signed else m) not in known:
            raise ValueError('%s has no magnitude %r' % (kind, m))
        im = change(im, op, kind, m)
    return im


MIXED = KINDS[1:14]
SMALL = tuple(k for k in MIXED if k not in ('Brightness', 'Color', 'Contrast', 'Sharpness'))


def mixed_magnitudes(kind, size):
    if kind in ('TranslateX', 'TranslateY'):
        return linspace(0, size[kind == 'TranslateY'] / 3.0, 10), True
    if kind == 'Posterize':
        return [round(f32(4 - f32(i / f32(9 / 4)))) for i in range(10)], False
    return magnitudes(kind, 10, False, size)


def sums(images, weights):
    """Of float32, one after the other, cut to whole numbers."""
    totals = [0.0] * len(images[0].tobytes())
    for im, weight in zip(images, weights):
        part = [f32(weight * v) for v in range(256)]
        totals = [f32(t + part[v]) for t, v in zip(totals, im.tobytes())]
    return Image.frombytes(images[0].mode, images[0].size, bytes(min(int(t), 255) for t in totals))


def chains(im, op, drawn, width, depth, numbers, change):
    """The results of each chain; the most that depth can be is 3, if it is drawn."""
    most, made = depth if depth > 0 else 3, []
    for chain in range(width):
        aug, n = im, 0
        for i in range(most):
            at = 1 + width + (chain * most + i) * numbers
            if drawn[at]:
                aug, n = change(aug, *drawn[at:at + numbers]), n + 1
        if n < 1 or (depth > 0 and n != depth):
            raise ValueError('%r makes %d changes' % (op, n))
        made.append(aug)
    return made


def aug_mix(im, op, drawn):
    width, severity = op.get('mixture_width', 3), op.get('severity', 3)
    if abs(sum(drawn[:1 + width]) - 1) > 1e-6:
        raise ValueError('weights of %r are not one' % op)

    def one(aug, number, m):
        kind = KINDS[int(number)]
        known, signed = mixed_magnitudes(kind, im.size)
        if kind not in (MIXED if op.get('all_ops', True) else SMALL) or (abs(m) if signed else m) not in known[:severity]:
            raise ValueError('%s has no magnitude %r' % (kind, m))
        if kind == 'Posterize' and m == 0:  # which Pillow refuses and torchvision's tensors have
            return aug.point(lambda _: 0)
        return change(aug, dict({'interpolation': 'bilinear'}, **op), kind, m)
    return sums([im, *chains(im, op, drawn, width, op.get('chain_depth', -1), 2, one)], drawn[:1 + width])


PICTURE_OPS = {'aug_mix': aug_mix, 'rand_augment': augment, 'trivial_augment': augment, 'auto_augment': augment}
