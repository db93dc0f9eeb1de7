# SPDX-License-Identifier: Apache-2.0
"""parity.py's geometric ops: specs, and what torchvision's transforms of Pillow's pictures do with the
numbers that PIXELS drew (torchvision.transforms.v2.functional._geometry, the functions _*_image_pil)."""
import math

from PIL import Image

FILTERS = {f: getattr(Image.Resampling, f.upper()) for f in ('nearest', 'bilinear', 'bicubic')}
DECODE = {'op': 'decode'}


def crop(size, *rest):
    return [DECODE, {'op': 'random_resized_crop', 'size': size}, *rest]


def turn(name, size, degrees, **more):
    return crop(size, dict({'op': name, 'degrees': degrees}, **more))


SPECS = {
    'vflip': crop([40, 50], {'op': 'vflip'}),
    'rotate': turn('rotate', 96, 180),
    'rotate-bilinear': turn('rotate', [90, 113], [-40, 70], interpolation='bilinear', fill=[9, 128, 255]),
    'rotate-bicubic': turn('rotate', [90, 113], 30, interpolation='bicubic', center=[20, 30.5]),
    'rotate-expand': [DECODE, {'op': 'rotate', 'degrees': 180, 'expand': True, 'interpolation': 'bilinear', 'fill': 77},
                      {'op': 'resize', 'size': [120, 100]}],
    **{'rotate-%d-%d-%d' % (degrees, expand, center): [
        DECODE, dict({'op': 'rotate', 'degrees': [degrees, degrees], 'expand': bool(expand)},
                     **{'center': [31, 47]} if center else {}), {'op': 'center_crop', 'size': [200, 200]}]
       for degrees, expand, center in ((-90, 0, 0), (-90, 1, 0), (0, 0, 0), (0, 0, 1), (90, 1, 1), (180, 0, 0), (180, 1, 1))},
    'rotate-square': [DECODE, {'op': 'center_crop', 'size': 64}, {'op': 'rotate', 'degrees': [270, 270]}],
    **{'affine-' + f: turn('affine', [90, 113], 60, translate=[0.1, 0.3], scale=[0.4, 2.5], shear=[-20, 30, -10, 10],
                           interpolation=f, fill=[1, 2, 3]) for f in FILTERS},
    'affine-scale': turn('affine', 96, 0, scale=[0.5, 2], translate=[0.5, 0.5]),
    'affine-far': turn('affine', 96, 90, scale=[0.001, 0.01], fill=200),
    'affine-shear': turn('affine', 96, 0, shear=45, center=[0, 0]),
}


def color(op):
    fill = op.get('fill', 0)
    return tuple(fill) if isinstance(fill, list) else (fill,) * 3


def affine_matrix(center, angle, translate, scale, shear):
    """torchvision's _get_inverse_affine_matrix, operation by operation."""
    rot, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    (cx, cy), (tx, ty) = center, translate
    a = math.cos(rot - sy) / math.cos(sy)
    b = -(a * math.tan(sx) + math.sin(rot))
    c = math.sin(rot - sy) / math.cos(sy)
    d = math.cos(rot) - c * math.tan(sx)
    m = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    m[2] += cx - m[0] * (cx + tx) - m[1] * (cy + ty)
    m[5] += cy - m[3] * (cx + tx) - m[4] * (cy + ty)
    return m


def rotate(im, op, drawn):
    return im.rotate(drawn[0], FILTERS[op.get('interpolation', 'nearest')], op.get('expand', False),
                     op.get('center'), fillcolor=color(op))


def affine(im, op, drawn):
    center = op.get('center') or [im.size[0] * 0.5, im.size[1] * 0.5]
    m = affine_matrix(center, drawn[0], (int(drawn[1]), int(drawn[2])), drawn[3], (drawn[4], drawn[5]))
    return im.transform(im.size, Image.Transform.AFFINE, m, FILTERS[op.get('interpolation', 'nearest')],
                        fillcolor=color(op))


def vflip(im, op, drawn):
    return im.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if drawn[0] else im


PICTURE_OPS = {'vflip': vflip, 'rotate': rotate, 'affine': affine}
