# SPDX-License-Identifier: Apache-2.0
"""parity.py's geometric ops: specs, and what torchvision's transforms of Pillow's pictures do with the
numbers that PIXELS drew (torchvision.transforms.v2.functional._geometry, the functions _*_image_pil)."""
import fractions
import math
import struct

from PIL import Image, ImageOps

FILTERS = {f: getattr(Image.Resampling, f.upper()) for f in ('nearest', 'bilinear', 'bicubic')}
DECODE = {'op': 'decode'}
CHW = {'op': 'layout'}
NORMALIZE = {'op': 'normalize', 'mean': [0.485, 0.456, 0.406], 'std': [0.229, 0.224, 0.225]}
ERASE = {'op': 'random_erasing', 'p': 1, 'value': [7, 8, 9]}
ERASE_ONE = {'op': 'random_erasing', 'p': 1, 'value': -0.5}
MODES = ('constant', 'edge', 'reflect', 'symmetric')
OP = 9  # enum pipeline_fail


def crop(size, *rest):
    return [DECODE, {'op': 'random_resized_crop', 'size': size}, *rest]


def turn(name, size, degrees, **more):
    return crop(size, dict({'op': name, 'degrees': degrees}, **more))


def seen(size, **more):
    return crop(size, dict({'op': 'random_perspective'}, **more))


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
    **{'pad-' + m: [DECODE, {'op': 'center_crop', 'size': [30, 41]}, {'op': 'pad', 'padding': [3, 100, 50, 7],
                                                                        'padding_mode': m, 'fill': [250, 3, 99]}]
       for m in MODES},
    'pad-sides': [DECODE, {'op': 'resize', 'size': [50, 40]}, {'op': 'pad', 'padding': [2, 5], 'padding_mode': 'reflect'}],
    'pad-one-pixel': [DECODE, {'op': 'center_crop', 'size': 1}, {'op': 'pad', 'padding': 9, 'padding_mode': 'reflect'}],
    'crop-plain': [DECODE, {'op': 'random_crop', 'size': [32, 48]}],
    **{'crop-' + m: [DECODE, {'op': 'random_crop', 'size': 160, 'padding': [20, 40], 'pad_if_needed': True,
                              'padding_mode': m, 'fill': 128}] for m in MODES},
    'crop-cifar': [DECODE, {'op': 'resize', 'size': [32, 32]}, {'op': 'random_crop', 'size': 32, 'padding': 4}, {'op': 'hflip'}],
    'crop-wide': [DECODE, {'op': 'random_crop', 'size': [40, 700], 'padding': [1, 2, 3, 4], 'pad_if_needed': True}],
    'five': [DECODE, {'op': 'resize', 'size': 100}, {'op': 'five_crop', 'size': [60, 90]}, CHW],
    'five-f32': [DECODE, {'op': 'five_crop', 'size': 33}, NORMALIZE, ERASE],
    'resize-max': [DECODE, {'op': 'resize', 'size': 96, 'max_size': 110}, {'op': 'center_crop', 'size': 110}],
    'resize-longest': [DECODE, {'op': 'resize', 'size': None, 'max_size': 64, 'antialias': True}, {'op': 'center_crop', 'size': 64}],
    'erase-u8': crop(64, ERASE, CHW),
    'erase-u8-planes': crop([60, 40], CHW, {'op': 'random_erasing', 'p': 0.9, 'value': 255}),
    'erase-f32': crop(64, NORMALIZE, ERASE, CHW, {'op': 'random_erasing', 'ratio': [1, 1], 'value': -1.5}),
    'erase-f16': crop([30, 60], CHW, NORMALIZE, {'op': 'cast', 'dtype': 'f16'}, ERASE),
    'erase-bf16': crop([30, 60], NORMALIZE, ERASE, {'op': 'cast', 'dtype': 'bf16'}),
    'erase-before': crop([30, 60], {'op': 'random_erasing', 'p': 1, 'scale': [0.5, 1], 'value': [1, 2, 3]}, {'op': 'cast'}),
    'gray': [DECODE, {'op': 'grayscale'}, {'op': 'random_crop', 'size': [60, 50], 'pad_if_needed': True, 'fill': 9},
             {'op': 'rotate', 'degrees': 20, 'fill': 200}, {'op': 'normalize', 'mean': 0.5, 'std': 0.25}, ERASE_ONE, CHW],
    'affine-shear': turn('affine', 96, 0, shear=45, center=[0, 0]),
    'perspective': seen(96),
    **{'perspective-' + f: seen([90, 113], p=1, interpolation=f, fill=[1, 2, 3]) for f in FILTERS},
    'perspective-far': seen([50, 71], p=1, distortion_scale=1, interpolation='bicubic', fill=77),
    'perspective-small': [DECODE, {'op': 'resize', 'size': [3, 4]}, {'op': 'random_perspective', 'p': 1, 'distortion_scale': 1}],
    'perspective-none': seen(30, p=1, distortion_scale=0),
    'perspective-gray': [DECODE, {'op': 'grayscale'}, {'op': 'random_perspective', 'p': 1, 'fill': 9},
                         {'op': 'center_crop', 'size': [120, 130]}],
    'jitter-lsj': [DECODE, {'op': 'scale_jitter', 'target_size': [160, 140]},
                   {'op': 'fixed_size_crop', 'size': [160, 140], 'fill': [123, 117, 104]}, {'op': 'hflip'}, CHW],
    'jitter-bicubic': [DECODE, {'op': 'scale_jitter', 'target_size': 100, 'scale_range': [0.8, 1.25], 'interpolation': 'bicubic'},
                       {'op': 'fixed_size_crop', 'size': 100}],
    'shortest': [DECODE, {'op': 'random_shortest_size', 'min_size': [48, 56, 64, 72, 80], 'max_size': 90}, {'op': 'hflip'},
                 {'op': 'fixed_size_crop', 'size': 90, 'fill': 7}],
    'shortest-one': [DECODE, {'op': 'random_shortest_size', 'min_size': 70, 'interpolation': 'lanczos'}, {'op': 'center_crop', 'size': 70}],
    'random-resize': [DECODE, {'op': 'random_resize', 'min_size': 40, 'max_size': 140}, {'op': 'random_crop', 'size': 40}],
    **{'fixed-' + m: [DECODE, {'op': 'fixed_size_crop', 'size': [170, 99], 'padding_mode': m, 'fill': 9}] for m in MODES},
    'zoom': [DECODE, {'op': 'resize', 'size': [30, 41]}, {'op': 'random_zoom_out', 'fill': [123, 117, 104]},
             {'op': 'resize', 'size': [64, 64]}],
    'zoom-always': [DECODE, {'op': 'random_zoom_out', 'p': 1, 'side_range': [1.5, 2.5]}, {'op': 'center_crop', 'size': [90, 80]}],
    'ssd': [DECODE, {'op': 'random_photometric_distort'}, {'op': 'random_zoom_out', 'fill': [123, 117, 104]}, {'op': 'hflip'},
            {'op': 'resize', 'size': [300, 300]}, NORMALIZE, CHW],
    'ten': [DECODE, {'op': 'resize', 'size': 100}, {'op': 'ten_crop', 'size': [60, 90]}, CHW],
    'ten-vertical': [DECODE, {'op': 'ten_crop', 'size': 33, 'vertical_flip': True}, NORMALIZE, ERASE],
    **{'rotate-quarter%d' % degrees: [DECODE, {'op': 'center_crop', 'size': [50, 71]}, {'op': 'rotate', 'degrees': [degrees, degrees], 'expand': True}]
       for degrees in (-90, 90, 180)},
    'rotate-quarter-seldom': [DECODE, {'op': 'center_crop', 'size': 64}, {'op': 'random_apply'},
                              {'op': 'rotate', 'degrees': [90, 90], 'expand': True}],
    'affine-scale-y': turn('affine', [90, 113], 30, scale=[0.7, 1.4], scale_y=[0.5, 2], shear=[-5, 5, -5, 5], interpolation='bilinear'),
    'affine-scale-y-alone': turn('affine', 96, 0, scale_y=[0.4, 0.9], fill=7),
    'rotate-reflect': turn('rotate', [60, 77], [-40, 70], interpolation='bilinear', padding_mode='reflect'),
    'rotate-edge': turn('rotate', [60, 77], [100, 170], interpolation='bicubic', center=[9, 70], padding_mode='edge'),
    'affine-symmetric': turn('affine', [40, 61], 30, translate=[0.5, 0.5], scale=[0.2, 2], padding_mode='symmetric'),
    'affine-reflect-gray': [DECODE, {'op': 'resize', 'size': [3, 2]}, {'op': 'grayscale'},
                            {'op': 'affine', 'degrees': 90, 'scale': [0.2, 1], 'interpolation': 'bilinear', 'padding_mode': 'reflect'}],
}


def color(im, op):
    fill = op.get('fill', 0)
    return tuple(fill) if isinstance(fill, list) else (fill,) * len(im.getbands())


def affine_matrix(center, angle, translate, scale, shear, scale_y=None):
    """torchvision's _get_inverse_affine_matrix, operation by operation; of heights with a scale of their own."""
    rot, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    (cx, cy), (tx, ty) = center, translate
    a = math.cos(rot - sy) / math.cos(sy)
    b = -(a * math.tan(sx) + math.sin(rot))
    c = math.sin(rot - sy) / math.cos(sy)
    d = math.cos(rot) - c * math.tan(sx)
    scale_y = scale_y or scale
    m = [d / scale, -b / scale, 0.0, -c / scale_y, a / scale_y, 0.0]
    m[2] += cx - m[0] * (cx + tx) - m[1] * (cy + ty)
    m[5] += cy - m[3] * (cx + tx) - m[4] * (cy + ty)
    return m


def warped(im, m, op):
    """Of a picture with as much around it as is seen."""
    (w, h), m = im.size, list(m)
    if op.get('padding_mode', 'constant') != 'constant':
        places = [(m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]) for x in (0, w) for y in (0, h)]
        left, top = (-min(math.floor(min(at)) - 2, 0) for at in zip(*places))
        right, bottom = (max(math.ceil(max(at)) + 2 - size, 0) for at, size in zip(zip(*places), (w, h)))
        im = padded(im, left, top, right, bottom, op)
        m[2], m[5] = m[2] + left, m[5] + top
    return im.transform((w, h), Image.Transform.AFFINE, m, FILTERS[op.get('interpolation', 'nearest')], fillcolor=color(im, op))


def rotate(im, op, drawn):
    if op.get('padding_mode', 'constant') != 'constant':    # Image.rotate()'s matrix
        x, y = op.get('center') or (side / 2.0 for side in im.size)
        turned = -math.radians(drawn[0] % 360)
        across, down = [round(math.cos(turned), 15), round(math.sin(turned), 15)], [round(-math.sin(turned), 15), round(math.cos(turned), 15)]
        return warped(im, [*across, across[0] * -x + across[1] * -y + 0.0 + x, *down, down[0] * -x + down[1] * -y + 0.0 + y], op)
    return im.rotate(drawn[0], FILTERS[op.get('interpolation', 'nearest')], op.get('expand', False),
                     op.get('center'), fillcolor=color(im, op))


def affine(im, op, drawn):
    center = op.get('center') or [im.size[0] * 0.5, im.size[1] * 0.5]
    m = affine_matrix(center, drawn[0], (int(drawn[1]), int(drawn[2])), drawn[3], (drawn[4], drawn[5]), drawn[6])
    return warped(im, m, op)


def solved(rows):
    """The numbers that as many linear equations (each its factors and its sum) are right for, exactly; None: there are none."""
    rows = [[fractions.Fraction(v) for v in row] for row in rows]
    for i in range(len(rows)):
        first = next((row for row in rows[i:] if row[i]), None)
        if first is None:
            return None
        rows.remove(first)
        rows.insert(i, [v / first[i] for v in first])
        rows = [row if k == i else [v - row[i] * w for v, w in zip(row, rows[i])] for k, row in enumerate(rows)]
    return [row[-1] for row in rows]


def corners(size, drawn):
    """Those of the picture, and where they go."""
    w, h = size[0] - 1, size[1] - 1
    return [[0, 0], [w, 0], [w, h], [0, h]], [[int(drawn[i]), int(drawn[i + 1])] for i in (1, 3, 5, 7)]


def perspective_coefficients(start, end):
    """torchvision's _get_perspective_coeffs, but exactly solved; None: they cannot be."""
    rows = []
    for (x, y), (a, b) in zip(end, start):
        rows += [[x, y, 1, 0, 0, 0, -a * x, -a * y, a], [0, 0, 0, x, y, 1, -b * x, -b * y, b]]
    exact = solved(rows)
    return exact and [struct.unpack('f', struct.pack('f', v))[0] for v in exact]


def perspective(im, op, drawn):
    m = drawn[0] and perspective_coefficients(*corners(im.size, drawn))
    return im.transform(im.size, Image.Transform.PERSPECTIVE, m, FILTERS[op.get('interpolation', 'bilinear')],
                        fillcolor=color(im, op)) if m else im


def vflip(im, op, drawn):
    return im.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if drawn[0] else im


def place(at, n, mode):
    """Index at of an axis of n pixels that goes on as numpy.pad makes it; None: filled."""
    if 0 <= at < n:
        return at
    if mode == 'constant':
        return None
    if mode == 'edge' or n == 1:
        return 0 if at < 0 else n - 1
    period = 2 * n - 2 if mode == 'reflect' else 2 * n
    at %= period
    return at if at < n else period - at if mode == 'reflect' else period - 1 - at


def padded(im, left, top, right, bottom, op):
    """torchvision's pad: ImageOps.expand, or numpy.pad's modes, by pixel."""
    mode = op.get('padding_mode', 'constant')
    if mode == 'constant':
        return ImageOps.expand(im, (left, top, right, bottom), color(im, op))
    w, h = im.size
    rows = Image.new(im.mode, (w, h + top + bottom))
    for y in range(rows.size[1]):
        at = place(y - top, h, mode)
        rows.paste(im.crop((0, at, w, at + 1)), (0, y))
    out = Image.new(im.mode, (w + left + right, rows.size[1]))
    for x in range(out.size[0]):
        at = place(x - left, w, mode)
        out.paste(rows.crop((at, 0, at + 1, rows.size[1])), (x, 0))
    return out


def sides(padding):
    """left, top, right, bottom."""
    padding = [padding] if isinstance(padding, int) else padding or [0]
    return padding if len(padding) == 4 else [padding[0], padding[-1]] * 2


def pad(im, op, drawn):
    return padded(im, *sides(op['padding']), op)


def random_crop(im, op, drawn):
    h, w = op['size'] if isinstance(op['size'], list) else [op['size']] * 2
    left, top, right, bottom = sides(op.get('padding'))
    if op.get('pad_if_needed'):
        lack = max(0, h - (im.size[1] + top + bottom))
        top, bottom = top + lack, bottom + lack
        lack = max(0, w - (im.size[0] + left + right))
        left, right = left + lack, right + lack
    if im.size[1] + top + bottom < h or im.size[0] + left + right < w:
        return OP
    im = padded(im, left, top, right, bottom, op)
    y, x = int(drawn[0]) + top, int(drawn[1]) + left
    return im.crop((x, y, x + w, y + h))


def fixed_size_crop(im, op, drawn):
    """FixedSizeCrop of torchvision's references/detection/transforms.py."""
    h, w = op['size'] if isinstance(op['size'], list) else [op['size']] * 2
    y, x = int(drawn[0]), int(drawn[1])
    im = im.crop((x, y, x + min(w, im.size[0]), y + min(h, im.size[1])))
    return padded(im, 0, 0, w - im.size[0], h - im.size[1], op)


def drawn_size(im, op, drawn):
    return im.resize((int(drawn[1]), int(drawn[0])), Image.Resampling[op.get('interpolation', 'bilinear').upper()])


def zoom_out(im, op, drawn):
    h, w, top, left = (int(v) for v in drawn[:4])
    return padded(im, left, top, w - left - im.size[0], h - top - im.size[1], op) if h else im


def five_crop(im, op, drawn):
    h, w = op['size'] if isinstance(op['size'], list) else [op['size']] * 2
    bottom, right = im.size[1] - h, im.size[0] - w
    if bottom < 0 or right < 0:
        return OP
    corners = (0, 0), (0, right), (bottom, 0), (bottom, right), (int(round(bottom / 2.0)), int(round(right / 2.0)))
    return [im.crop((x, y, x + w, y + h)) for y, x in corners]


def ten_crop(im, op, drawn):
    flip = Image.Transpose.FLIP_TOP_BOTTOM if op.get('vertical_flip') else Image.Transpose.FLIP_LEFT_RIGHT
    first = five_crop(im, op, drawn)
    return first if first == OP else first + five_crop(im.transpose(flip), op, drawn)


def values(op):
    value = op.get('value', 0)
    return value if isinstance(value, list) else [value] * 3


def erase_picture(im, op, drawn):
    top, left, h, w = (int(v) for v in drawn[1:5])
    im = im.copy()
    if drawn[0]:
        im.paste(tuple(values(op)), (left, top, left + w, top + h))
    return im


def erase_planes(planes, width, op, drawn, pack):
    """The same on finished values, lists of each channel's packed ones."""
    top, left, h, w = (int(v) for v in drawn[1:5])
    for plane, value in zip(planes, values(op)):
        for y in range(top, top + h):
            plane[y * width + left:y * width + left + w] = [pack(value)] * w


PICTURE_OPS = {'vflip': vflip, 'rotate': rotate, 'affine': affine, 'random_perspective': perspective, 'pad': pad,
               'scale_jitter': drawn_size, 'random_shortest_size': drawn_size, 'random_resize': drawn_size,
               'fixed_size_crop': fixed_size_crop, 'random_zoom_out': zoom_out, 'random_crop': random_crop, 'five_crop': five_crop, 'ten_crop': ten_crop, 'random_erasing': erase_picture}
