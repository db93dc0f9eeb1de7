# SPDX-License-Identifier: Apache-2.0
"""What oneaccess.translate needs beyond torchvision's ops, for parity.py: timm's ResizeKeepRatio, CenterCropOrPad, its random
interpolation and its RandAugment (timm/data/transforms.py, auto_augment.py), Hugging Face's middle, and ops that are
done at random (random_apply), all as those programs do them to Pillow's images."""
from PIL import Image, ImageEnhance, ImageOps

import parity_augment
import parity_geometry
from parity_colour import D, crop, op

KINDS = ('AutoContrast', 'Equalize', 'Invert', 'Rotate', 'Posterize', 'Solarize', 'SolarizeAdd', 'Color', 'Contrast', 'Brightness',
         'Sharpness', 'ShearX', 'ShearY', 'TranslateXRel', 'TranslateYRel')
WARPS = ('nearest', 'bilinear', 'bicubic')
CHW = op('layout')
TRAIN = [D, op('random_resized_crop', size=[96, 128])]
TIMM = dict(num_ops=5, p=1)
SPECS = {
    'or-interpolation': [D, op('random_resized_crop', size=64, or_interpolation='bicubic'), op('hflip'), CHW],
    'or-interpolation-fast': [op('decode', fast=True), op('random_resized_crop', size=20, interpolation='lanczos',
                                                          or_interpolation='nearest')],
    'fit-cover': [D, op('resize', size=[70, 91], fit='cover', interpolation='bicubic'), crop(70, 91), CHW],
    'fit-contain': [D, op('resize', size=[70, 90], fit='contain'), op('center_crop', size=[64, 80], fill=[124, 116, 104])],
    'fit-contain-exact': [D, op('resize', size=[50, 40]), op('resize', size=[31, 31], fit='contain')],
    'half-down': [D, op('resize', size=67), op('center_crop', size=[64, 50], half='down'), op('hflip'), CHW],
    'fill-hflip': [D, op('center_crop', size=[301, 200], fill=77), op('hflip'), op('resize', size=[40, 33])],
    'fill-gray': [D, op('grayscale'), op('center_crop', size=[301, 200], fill=77)],
    'apply': [*TRAIN, op('random_apply', p=0.7, ops=2), op('invert', p=1), op('vflip'), op('hflip')],
    'apply-otherwise': [D, op('random_apply', ops=2, otherwise=1), op('resize', size=100), op('center_crop', size=[60, 50]),
                        op('random_resized_crop', size=[60, 50]), op('grayscale', num_output_channels=3)],
    'apply-in-apply': [*TRAIN, op('random_apply', p=0.3, ops=1, otherwise=4), op('invert', p=1),
                       op('random_apply', p=0.5, ops=1, otherwise=1), op('equalize', p=1),
                       op('solarize', threshold=100, p=1), op('posterize', bits=2, p=1), op('hflip', p=1), CHW],
    'apply-to-a-size': [D, op('random_apply', p=0.5), op('resize', size=[40, 50]), op('center_crop', size=44)],
    **{'timm-%d' % m: TRAIN + [op('timm_rand_augment', magnitude=m, magnitude_std=0.5, **TIMM)] for m in (0, 3, 9)},
    **{'timm-increasing-%d' % m: TRAIN + [op('timm_rand_augment', magnitude=m, increasing=True, fill=[124, 116, 104],
                                             interpolation='bicubic', **TIMM)] for m in (2, 7, 10)},
    'timm-usual': TRAIN + [op('timm_rand_augment', magnitude=9, magnitude_std=0.5, increasing=True)],
    'timm-uniform': TRAIN + [op('timm_rand_augment', uniform=True, interpolation='nearest', translate=0.2, **TIMM)],
    'timm-large': TRAIN + [op('timm_rand_augment', magnitude=28, magnitude_max=30, increasing=True, interpolation='bilinear', **TIMM)],
    'timm-gray': [D, crop(90, 85), op('grayscale'), op('timm_rand_augment', magnitude=6, fill=9, **TIMM)],
    'timm-mix': TRAIN + [op('timm_aug_mix')],
    'timm-mix-m5-w4-d2': TRAIN + [op('timm_aug_mix', magnitude=5, width=4, depth=2, fill=[124, 116, 104], interpolation='bicubic')],
    'timm-mix-far': [D, crop(90, 85), op('timm_aug_mix', magnitude=10, uniform=False, depth=6, width=2, alpha=0.1), op('hflip')],
    'timm-mix-gray': [D, crop(40, 50), op('grayscale'), op('timm_aug_mix', magnitude=9, magnitude_std=2, uniform=False, width=1)],
}


def level(argument, op):
    """Is there a level that timm makes this argument of?"""
    return 0 <= argument <= op.get('magnitude_max', 10) / 10 + 1e-12


def check(kind, v, op):
    """That what was drawn is what LEVEL_TO_ARG gives for some level from 0 to magnitude_max."""
    up = op.get('increasing', False)
    whole = v == int(v)
    span = {'Rotate': 30.0, 'ShearX': 0.3, 'ShearY': 0.3, 'TranslateXRel': op.get('translate', 0.45),
            'TranslateYRel': op.get('translate', 0.45)}.get(kind)
    if span:
        good = level(abs(v) / span, op)
    elif kind == 'Posterize':
        good = whole and (0 <= v <= 4 if up else 0 <= v <= 8)
    elif kind == 'Solarize':
        good = whole and 0 <= v <= 256
    elif kind == 'SolarizeAdd':
        good = whole and 0 <= v <= 128
    elif kind in ('Color', 'Contrast', 'Brightness', 'Sharpness'):
        good = v >= 0.1 and level(abs(v - 1) / 0.9 if up else (v - 0.1) / 1.8, op)
    else:
        good = v == 0
    if not good:
        raise ValueError('%s has no argument %r' % (kind, v))


def argument(kind, v, im, op):
    """Without any randomness but the sign: timm's own arithmetic from the magnitude."""
    if op.get('uniform') or op.get('magnitude_std'):
        return v
    part = min(op.get('magnitude', 10), op.get('magnitude_max', 10)) / 10.
    up, sign = op.get('increasing', False), -1 if v < 0 else 1
    if kind == 'Rotate':
        return sign * (part * 30.)
    if kind in ('ShearX', 'ShearY'):
        return sign * (part * 0.3)
    if kind.startswith('Translate'):
        return sign * (part * op.get('translate', 0.45))
    if kind == 'Posterize':
        return max(0, 4 - int(part * 4)) if up else min(8, int(part * 4))
    if kind == 'Solarize':
        return 256 - min(256, int(part * 256)) if up else min(256, int(part * 256))
    if kind == 'SolarizeAdd':
        return min(128, int(part * 110))
    if kind in ('Color', 'Contrast', 'Brightness', 'Sharpness'):
        return (part * 1.8 + 0.1) if not up else max(0.1, 1.0 + (part * .9 if v > 1 or part == 0 else -(part * .9)))
    return 0


def posterize(im, bits):
    """Pillow before 13 made a black picture with no bits; now it refuses them, and timm goes on asking for them."""
    return im if bits >= 8 else ImageOps.posterize(im, bits) if bits else im.point(lambda _: 0)


def change(im, kind, v, resample, fill):
    moved = {'ShearX': (1, v, 0, 0, 1, 0), 'ShearY': (1, 0, 0, v, 1, 0), 'TranslateXRel': (1, 0, v * im.size[0], 0, 1, 0),
             'TranslateYRel': (1, 0, 0, 0, 1, v * im.size[1])}.get(kind)
    if moved:
        return im.transform(im.size, Image.Transform.AFFINE, moved, resample=resample, fillcolor=fill)
    if kind in ('Color', 'Contrast', 'Brightness', 'Sharpness'):
        return getattr(ImageEnhance, kind)(im).enhance(v)
    return {'AutoContrast': lambda: ImageOps.autocontrast(im), 'Equalize': lambda: ImageOps.equalize(im),
            'Invert': lambda: ImageOps.invert(im), 'Rotate': lambda: im.rotate(v, resample=resample, fillcolor=fill),
            'Posterize': lambda: posterize(im, int(v)), 'Solarize': lambda: ImageOps.solarize(im, int(v)),
            'SolarizeAdd': lambda: im.point([min(255, i + int(v)) if i < 128 else i for i in range(256)] * len(im.getbands()))}[kind]()


def augment(im, op, drawn):
    fill = parity_geometry.color(im, {'fill': op.get('fill', 128)})
    for number, v, warp in zip(drawn[0:15:3], drawn[1:15:3], drawn[2:15:3]):
        if number:
            kind = KINDS[int(number) - 1]
            check(kind, v, op)
            if argument(kind, v, im, op) != v:
                raise ValueError('%s of %r is no %r' % (kind, op, v))
            im = change(im, kind, v, parity_geometry.FILTERS[WARPS[int(warp)]], fill)
    return im


def aug_mix(im, op, drawn):
    width = op.get('width', 3)
    op = dict({'increasing': True, 'uniform': True, 'translate': 0.3, 'magnitude': 3}, **op)
    fill = parity_geometry.color(im, {'fill': op.get('fill', 128)})

    def one(aug, number, v, warp):
        kind = KINDS[int(number) - 1]
        check(kind, v, op)
        if kind in ('Invert', 'SolarizeAdd') or argument(kind, v, aug, op) != v:
            raise ValueError('%s of %r is no %r' % (kind, op, v))
        return change(aug, kind, v, parity_geometry.FILTERS[WARPS[int(warp)]], fill)
    made = parity_augment.chains(im, op, drawn, width, op.get('depth', -1), 3, one)
    return Image.blend(im, parity_augment.sums(made, drawn[1:1 + width]), drawn[0])


def done(spec, draws):
    """The ops that are done, in order, each with its draws; what random_apply leaves out, nested or not, is not among them."""
    kept, at = [], 0
    while at < len(spec):
        one, first = spec[at], at + 1
        at += 1
        if one['op'] != 'random_apply':
            kept.append((one, draws[at - 1]))
            continue
        middle = first + one.get('ops', 1)
        end = middle + one.get('otherwise', 0)
        kept += done(spec[first:middle], draws[first:middle]) if draws[at - 1][0] else done(spec[middle:end], draws[middle:end])
        at = end
    return kept


PICTURE_OPS = {'timm_aug_mix': aug_mix, 'timm_rand_augment': augment}
