# SPDX-License-Identifier: Apache-2.0
"""The colour ops as torchvision computes them on Pillow's images (transforms/_functional_pil.py and
v2/_color.py), for parity.py."""
import functools
import io
import math
import struct

from PIL import Image, ImageEnhance, ImageOps

D = {'op': 'decode'}
JITTER = ('brightness', 'contrast', 'saturation', 'hue')


def op(name, **params):
    return dict({'op': name}, **params)


def crop(h, w=None):
    return op('center_crop', size=[h, w or h])


SPECS = {
    'jitter': [D, op('random_resized_crop', size=224), op('hflip'),
               op('color_jitter', brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1), op('layout')],
    'jitter-far': [D, crop(131, 97), op('color_jitter', brightness=[0, 3], contrast=[2, 5], saturation=[0, 9], hue=0.5)],
    'jitter-hue': [D, crop(120), op('color_jitter', hue=[-0.5, 0.5], saturation=[1, 1])],
    'jitter-contrast': [D, crop(97, 160), op('color_jitter', contrast=[0.5, 0.5])],
    'jitter-ends': [D, crop(65, 33), op('color_jitter', brightness=[1, 1], saturation=[0, 0], hue=[0, 0])],
    'gray-1': [D, crop(90, 85), op('grayscale'), op('color_jitter', brightness=0.5, contrast=0.5, saturation=0.5, hue=0.2),
               op('normalize', mean=0.45, std=[0.225]), op('layout')],
    'gray-1-u8': [D, crop(90, 85), op('grayscale', num_output_channels=1), op('sharpness', sharpness_factor=0.3),
                  op('equalize'), op('autocontrast')],
    'gray-3': [D, crop(90, 85), op('grayscale', num_output_channels=3), op('normalize', mean=0.5, std=0.5)],
    'chances': [D, op('resize', size=[70, 91]), op('random_grayscale', p=0.3), op('autocontrast'), op('posterize', bits=5),
                op('sharpness', sharpness_factor=2.5), op('equalize', p=0.7), op('solarize', threshold=100.5), op('invert')],
    'stretched': [D, crop(77, 80), op('solarize', threshold=0, p=1), op('posterize', bits=1, p=0.5), op('autocontrast', p=1)],
    'sharp': [D, op('resize', size=[100, 101]), op('sharpness', sharpness_factor=0, p=1), op('sharpness', sharpness_factor=4, p=1)],
    'small': [D, op('resize', size=[2, 41]), op('sharpness', sharpness_factor=3, p=1), op('equalize', p=1), op('layout')],
    'smallest': [D, op('resize', size=[3, 3]), op('sharpness', sharpness_factor=3, p=1), op('autocontrast', p=1)],
    'jitter-seldom': [D, crop(80), op('color_jitter', brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, p=0.4)],
    'permuted': [D, crop(40, 51), op('random_channel_permutation'), op('layout')],
    'permuted-gray': [D, crop(40, 51), op('grayscale'), op('random_channel_permutation')],
    'distort': [D, crop(90, 70), op('random_photometric_distort')],
    'distort-all': [D, crop(70, 90), op('random_photometric_distort', brightness=[0.2, 2], hue=[-0.5, 0.5], p=1), op('layout')],
    'distort-gray': [D, crop(60), op('grayscale'), op('random_photometric_distort', p=1)],
    'jpeg': [D, crop(90, 85), op('jpeg', quality=[1, 100]), op('layout')],
    'jpeg-worst': [D, op('resize', size=[33, 47]), op('jpeg', quality=1), op('hflip')],
    'jpeg-best': [D, op('resize', size=[1, 3]), op('jpeg', quality=100)],
    'jpeg-usual': [D, op('random_resized_crop', size=224), op('jpeg', quality=[40, 95]), op('jpeg', quality=75)],
    'jpeg-gray': [D, crop(77, 80), op('grayscale'), op('jpeg', quality=[5, 60]), op('invert', p=1)],
    'levels': [D, crop(60, 71), op('levels', gamma=[0.5, 2], contrast=[0.5, 1.5], brightness=[-0.3, 0.3], red=[-30, 30],
                                   green=[-255, 255], blue=-7.9, p=0.8), op('hflip'), op('layout')],
    'levels-fixed': [D, crop(51, 40), op('levels', gamma=0.7, contrast=1.2, brightness=-0.1, p=1)],
    'levels-gray': [D, crop(40, 51), op('grayscale'), op('levels', contrast=[0, 3], brightness=[-1, 1], p=1)],
    'hsv': [D, crop(61, 70), op('hue_saturation_value', hue=[-180, 180], saturation=[-90, 90], value=[-60, 60], p=0.8), op('hflip'), op('layout')],
    'hsv-ends': [D, crop(70, 61), op('hue_saturation_value', hue=-360, saturation=255, value=0.5, p=1)],
    'hsv-gray': [D, crop(40, 51), op('grayscale'), op('hue_saturation_value', p=1)],
    'box': [D, crop(30, 41), op('box_blur', size=[3, 9], p=0.8), op('layout')],
    'box-small': [D, op('resize', size=[3, 2]), op('box_blur', size=15, p=1)],
    'median': [D, crop(23, 31), op('median_blur', p=0.8), op('hflip')],
    'median-gray': [D, op('resize', size=[3, 2]), op('grayscale'), op('median_blur', size=15, p=1)],
    'motion': [D, crop(30, 41), op('motion_blur', p=0.8), op('layout')],
    'motion-far': [D, crop(20, 31), op('motion_blur', size=[21, 33], angle=[-360, 90], direction=[0.5, 1], shift=False, p=1)],
    'sharpen': [D, crop(30, 41), op('sharpen', p=0.8), op('layout')],
    'sharpen-far': [D, crop(20, 31), op('sharpen', alpha=[0, 1], lightness=[0, 9], p=1)],
}


def hue(im, factor):
    if im.mode == 'L':
        return im
    h, s, v = im.convert('HSV').split()
    h = h.point([(i + int(factor * 255)) % 256 for i in range(256)])
    return Image.merge('HSV', (h, s, v)).convert('RGB')


def adjust(im, name, factor):
    return {'brightness': ImageEnhance.Brightness(im).enhance, 'contrast': ImageEnhance.Contrast(im).enhance,
            'saturation': ImageEnhance.Color(im).enhance, 'hue': lambda f: hue(im, f)}[name](factor)


def jitter(im, op, drawn):
    if not drawn[8]:
        return im
    for i in (int(v) for v in drawn[:4]):
        name, factor = JITTER[i], drawn[4 + i]
        value = op.get(name)
        if value is None or value in ([0, 0] if name == 'hue' else [1, 1], 0):
            continue
        im = adjust(im, name, factor)
    return im


def distort(im, op, drawn):
    for i in (0, 2, 3, 1) if drawn[8] else (0, 1, 2, 3):
        if drawn[4 + i]:
            im = adjust(im, JITTER[i], drawn[i])
    return permute(im, op, drawn[10:]) if drawn[9] else im


def gray(im, channels):
    im = im.convert('L')
    return im if channels == 1 else Image.merge('RGB', (im, im, im))


def permute(im, op, drawn):
    bands = im.split()
    return Image.merge(im.mode, [bands[int(drawn[i])] for i in range(3)]) if len(bands) == 3 else im


def chance(change):
    return lambda im, op, drawn: change(im, op) if drawn[0] else im


def jpeg(im, op, drawn):
    with io.BytesIO() as file:
        im.save(file, 'JPEG', quality=int(drawn[0]))
        return Image.open(file).copy()


def f32(x):
    return struct.unpack('f', struct.pack('f', x))[0]


def levels(im, op, drawn):
    """albumentations' tables, one after another (pixel/functional.py: gamma_transform, multiply_add, add_vector)."""
    if not drawn[0]:
        return im
    gamma, contrast, brightness = drawn[1:4]

    def level(v):
        if gamma != 1:
            v = int((v * (1.0 / 255)) ** gamma * 255)
        return math.floor(min(max(f32(f32(v * f32(contrast)) + f32(brightness * 255)), 0), 255))
    bands = im.split()
    return Image.merge(im.mode, [band.point([min(max(level(v) + int(shift), 0), 255) for v in range(256)])
                                 for band, shift in zip(bands, drawn[4:7])])


def hsv(im, op, drawn):
    """albumentations' shift_hsv, with OpenCV's numbers of 8 bits."""
    if not drawn[0] or not any(drawn[1:4]):
        return im

    def add(value, more):
        return min(max(value + int(more), 0), 255)

    @functools.lru_cache(None)
    def pixel(r, g, b):
        most = max(r, g, b)
        span = most - min(r, g, b)
        s = span * round((255 << 12) / most) + 2048 >> 12 if most else 0
        h = g - b if most == r else b - r + 2 * span if most == g else r - g + 4 * span
        h = (h * round((180 << 12) / (6 * span)) + 2048 >> 12) % 180 if span else 0
        sixths = f32(int((h + drawn[1]) % 180) % 180 * f32(6 / 180))
        s, v = (f32(v * f32(1 / 255)) for v in (add(s, drawn[2]) if s else 0, add(most, drawn[3])))
        part = f32(sixths - int(sixths))
        up, down = (f32(1 - s * p) for p in (f32(1 - part), part))
        levels = [int(f32(f32(v * share) * 255)) for share in (1.0, f32(1 - s), down, up)]
        return [levels[k] for k in ((0, 3, 1), (2, 0, 1), (1, 0, 3), (1, 2, 0), (3, 1, 0), (0, 1, 2))[int(sixths)]]
    out = im.convert('RGB')
    out.putdata([tuple(pixel(*p)) for p in out.getdata()])
    return out if im.mode == 'RGB' else out.getchannel(0)


def around(im, size, value, edge=False):
    """Each band's values by those around them, row by row; of what is outside mirrored ones, or the last."""
    def at(k, n):
        if edge or n == 1:
            return min(max(k, 0), n - 1)
        k = abs(k) % (2 * n - 2)
        return min(k, 2 * n - 2 - k)
    w, h = im.size
    reach, bands = size // 2, []
    for band in im.split():
        data = band.tobytes()
        rows = [[data[y * w + at(x, w)] for x in range(-reach, w + reach)] for y in range(h)]
        rows = [rows[at(y, h)] for y in range(-reach, h + reach)]
        bands.append(Image.frombytes('L', im.size, bytes(value([row[x:x + size] for row in rows[y:y + size]]) for y in range(h) for x in range(w))))
    return Image.merge(im.mode, bands)


def taps(weights):
    """[(row, column, weight)]: sums in float32, each product and sum rounded once."""
    def value(rows):
        total = 0.0
        for y, x, weight in weights:
            total = f32(weight * rows[y][x] + total)
        return min(max(round(total), 0), 255)
    return value


def box(im, op, drawn):
    size = int(drawn[1])
    return around(im, size, lambda rows: round(sum(map(sum, rows)) / size ** 2)) if drawn[0] else im


def median(im, op, drawn):
    size = int(drawn[1])
    return around(im, size, lambda rows: sorted(sum(rows, []))[size ** 2 // 2], True) if drawn[0] else im


def motion(im, op, drawn):
    """albumentations' create_motion_kernel()."""
    if not drawn[0]:
        return im
    size, angle, direction = int(drawn[1]), drawn[2] * (math.pi / 180), drawn[3]
    reach = size // 2
    start = -reach * (1 - direction) if direction > 0 else float(-reach)
    end = reach * (1 - abs(direction)) if direction < 0 else float(reach)
    line = [i * ((end - start) / (size - 1)) + start for i in range(size - 1)] + [end]
    places = sorted({tuple(min(max(round(reach + turn(angle) * t + shift * reach / 2), 0), size - 1)
                           for turn, shift in ((math.sin, drawn[5]), (math.cos, drawn[4]))) for t in line})
    return around(im, size, taps([(y, x, f32(1 / len(places))) for y, x in places]))


def sharpen(im, op, drawn):
    if not drawn[0]:
        return im
    alpha, lightness = drawn[1:3]
    middle = f32(f32(1 - alpha) + f32(f32(alpha) * f32(8 + lightness)))
    return around(im, 3, taps([(i // 3, i % 3, middle if i == 4 else -f32(alpha)) for i in range(9)]))


PICTURE_OPS = {'jpeg': jpeg,
    'box_blur': box, 'median_blur': median, 'motion_blur': motion, 'sharpen': sharpen,
    'hue_saturation_value': hsv,
    'levels': levels,
    'color_jitter': jitter,
    'random_photometric_distort': distort,
    'grayscale': lambda im, op, drawn: gray(im, op.get('num_output_channels', 1)),
    'random_channel_permutation': permute,
    'random_grayscale': chance(lambda im, op: gray(im, len(im.getbands()))),
    'autocontrast': chance(lambda im, op: ImageOps.autocontrast(im)),
    'equalize': chance(lambda im, op: ImageOps.equalize(im)),
    'invert': chance(lambda im, op: ImageOps.invert(im)),
    'posterize': chance(lambda im, op: ImageOps.posterize(im, op['bits'])),
    'solarize': chance(lambda im, op: ImageOps.solarize(im, op['threshold'])),
    'sharpness': chance(lambda im, op: ImageEnhance.Sharpness(im).enhance(op['sharpness_factor'])),
}
