# SPDX-License-Identifier: Apache-2.0
"""elastic_transform and gaussian_noise as torchvision makes them (v2/_geometry.py, v2/_misc.py), for parity.py: float32 that is
rounded after each operation; and albumentations' coarse_dropout (dropout/coarse_dropout.py, functional.py). PIXELS says where an op's random numbers begin (draw_tell() of pipeline/ops/draw.h); philox is here
once more, so that all of a pixel is."""
import math
import struct

from PIL import Image

from parity_colour import D, crop, op

NORMALIZE = op('normalize', mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
CHW = op('layout')
RESIZE = op('resize', size=[24, 31])
SPECS = {
    'elastic': [D, RESIZE, op('elastic_transform', alpha=[60, 40], sigma=[1, 1])],
    'elastic-fill': [D, op('resize', size=[30, 21]), op('elastic_transform', alpha=[300, 300], sigma=[1.2, 2.3], fill=[250, 9, 128]), CHW],
    'elastic-null': [D, RESIZE, op('elastic_transform', alpha=[150, 90], sigma=[1, 0.7], fill=None), op('hflip')],
    'elastic-rough': [D, RESIZE, op('elastic_transform', alpha=[9, 30], sigma=[0, 0], fill=77)],
    'elastic-nearest': [D, RESIZE, op('elastic_transform', alpha=[150, 90], sigma=[1, 1], fill=77, interpolation='nearest')],
    'elastic-gray': [D, RESIZE, op('grayscale'), op('elastic_transform', alpha=[150, 0], sigma=[1, 1])],
    'noise': [D, RESIZE, op('hflip'), op('gaussian_noise'), NORMALIZE, op('cast'), CHW],
    'noise-pixels': [D, RESIZE, op('gaussian_noise', mean=0.1, sigma=0.3, clip=False), NORMALIZE],
    'noise-f16': [D, RESIZE, op('gaussian_noise', sigma=[0, 0.5], p=0.6), NORMALIZE, op('cast', dtype='f16'), CHW],
    'noise-bf16': [D, crop(20), op('gaussian_noise', sigma=0.05), op('cast', dtype='bf16'), CHW],
    'noise-behind': [D, crop(20), NORMALIZE, op('gaussian_noise', mean=-0.5, sigma=1, clip=False), CHW],
    'noise-behind-gray': [D, crop(20), op('grayscale'), op('normalize', mean=0.5, std=0.5), op('gaussian_noise')],
    'holes': [D, crop(70, 91), op('coarse_dropout', holes=[1, 8], p=0.8), CHW],
    'holes-pixels': [D, crop(40, 51), op('coarse_dropout', holes=3, height=[1, 60], width=[10, 20], value=[255, 9, 128], p=1), op('hflip')],
    'holes-random': [D, crop(40, 51), op('coarse_dropout', holes=[2, 4], value='random', p=1)],
    'holes-uniform': [D, crop(51, 40), op('coarse_dropout', holes=256, height=[0, 0.2], width=0.05, value='random_uniform', p=1), CHW],
    'holes-gray': [D, crop(51, 40), op('grayscale'), op('coarse_dropout', value=77, p=1)],
}


def f32(x):
    return struct.unpack('f', struct.pack('f', x))[0]


def philox(key, a, b):
    k0, k1 = key & 0xffffffff, key >> 32
    x = [a & 0xffffffff, a >> 32, b & 0xffffffff, b >> 32]
    for _ in range(10):
        p0, p1 = 0xd2511f53 * x[0], 0xcd9e8d57 * x[2]
        x = [p1 >> 32 ^ x[1] ^ k0, p1 & 0xffffffff, p0 >> 32 ^ x[3] ^ k1, p0 & 0xffffffff]
        k0, k1 = (k0 + 0x9e3779b9) & 0xffffffff, (k1 + 0xbb67ae85) & 0xffffffff
    return x


def words(told, n):
    """The next n of an op's random numbers."""
    key_low, key_high, a_low, a_high, stream, used = (int(v) for v in told)
    key, a = key_high << 32 | key_low, a_high << 32 | a_low
    blocks = range(used // 4, (used + n + 3) // 4)
    return [w for b in blocks for w in philox(key, a, stream << 32 | b)][used % 4:][:n]


# ---- elastic_transform ----


def kernel(taps, sigma):
    reach = (taps - 1) / (2 * math.sqrt(2))
    weights = [math.exp(-(reach * (2.0 * i / (taps - 1) - 1) / sigma) ** 2) if taps > 1 else 1.0 for i in range(taps)]
    return [f32(w / sum(weights)) for w in weights]


def reflect(at, size):
    return -at if at < 0 else 2 * (size - 1) - at if at >= size else at


def weighted(rows, weights):
    """The sum of rows, each by its weight."""
    total = [0.0] * len(rows[0])
    for row, w in zip(rows, weights):
        total = [f32(t + f32(w * v)) for t, v in zip(total, row)]
    return total


def blurred(field, taps, sigma):
    height, width, reach = len(field), len(field[0]), taps // 2
    across, down = (kernel(taps, s or 1) for s in sigma)
    lines = [[row[reflect(x, width)] for x in range(-reach, width + reach)] for row in field]
    lines = [weighted([line[t:t + width] for t in range(taps)], across) for line in lines]
    return [weighted([lines[reflect(y + t - reach, height)] for t in range(taps)], down) for y in range(height)]


def pair(value, default):
    return value if isinstance(value, list) else [default if value is None else value] * 2


def noise(size, told):
    """Across, then down, row by row."""
    return [f32(f32((w >> 8) * 2.0 ** -24 * 2) - 1) for w in words(told, 2 * size[0] * size[1])]


def displacement(size, op, told):
    """Of each pixel across and down, in halves of the width and of the height."""
    width, height = size
    alpha, sigma = pair(op.get('alpha'), 50), pair(op.get('sigma'), 5)
    values, planes = noise(size, told), []
    for plane in range(2):
        field = [values[(plane * height + y) * width:][:width] for y in range(height)]
        field = blurred(field, int(8 * sigma[plane] + 1) | 1 if sigma[plane] else 1, sigma)
        planes.append([[f32(f32(v * f32(alpha[plane])) / (width if plane else height)) for v in row] for row in field])
    return planes


def middles(size):
    start, end = f32((1 - size) / size), f32((size - 1) / size)
    step = f32(f32(end - start) / (size - 1))
    return [f32(start + f32(step * i)) if i < size // 2 else f32(end - f32(step * (size - 1 - i))) for i in range(size)]


def pixel(place, size):
    return f32(f32(f32(place + 1) * (size / 2)) - 0.5)


def sampled(values, size, x, y, fill, nearest):
    """Of one band; values are its bytes."""
    width, height = size
    if nearest:
        x, y = round(x), round(y)
        return values[y * width + x] if 0 <= x < width and 0 <= y < height else fill or 0
    left, above = math.floor(x), math.floor(y)
    right, lower = f32(x - left), f32(y - above)
    total = inside = 0.0
    for k, part in enumerate((f32(f32(1 - right) * f32(1 - lower)), f32(right * f32(1 - lower)), f32(f32(1 - right) * lower), f32(right * lower))):
        i, j = left + (k & 1), above + (k >> 1)
        if 0 <= i < width and 0 <= j < height:
            total, inside = f32(total + f32(values[j * width + i] * part)), f32(inside + part)
    if fill is not None:
        total = f32(f32(f32(total - fill) * inside) + fill)
    return round(min(max(total, 0), 255))


def elastic(im, op, drawn):
    size, fill = im.size, op.get('fill', 0)
    fill = fill if isinstance(fill, list) else [fill] * 3
    across, down = displacement(size, op, drawn[:6])
    xs, ys = middles(size[0]), middles(size[1])
    places = [(pixel(f32(xs[x] + across[y][x]), size[0]), pixel(f32(ys[y] + down[y][x]), size[1]))
              for y in range(size[1]) for x in range(size[0])]
    nearest, bands = op.get('interpolation') == 'nearest', []
    for band, color in zip(im.split(), fill):
        values = band.tobytes()
        band.putdata([sampled(values, size, x, y, color, nearest) for x, y in places])
        bands.append(band)
    return Image.merge(im.mode, bands)


# ---- gaussian_noise ----


def quantile(unit):
    q = unit - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return (q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179)
                / (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1))
    r = math.sqrt(-math.log(unit if q < 0 else 1 - unit)) - 1.6
    value = ((((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777)
             / ((0.12021132975 * r + 0.73700164250) * r + 1))
    return -value if q < 0 else value


def normals(told, n):
    return [f32(quantile((w + 0.5) * 2.0 ** -32)) for w in words(told, n)]


def noisy(planes, op, drawn):
    """Lists of floats, one for each channel."""
    if not drawn[0]:
        return planes
    mean, sigma = f32(op.get('mean', 0)), f32(drawn[1])
    noise = normals(drawn[2:8], sum(map(len, planes)))
    made = []
    for plane in planes:
        plane = [f32(v + f32(mean + f32(z * sigma))) for v, z in zip(plane, noise)]
        made.append([min(max(v, 0.0), 1.0) for v in plane] if op.get('clip', True) else plane)
        noise = noise[len(plane):]
    return made




# ---- coarse_dropout ----


def numbers(told):
    """The random numbers, one after another."""
    key_low, key_high, a_low, a_high, stream, used = (int(v) for v in told)
    while True:
        yield from words((key_low, key_high, a_low, a_high, stream, used), 4)
        used += 4


def below(seq, bound):
    while True:
        product = next(seq) * bound
        if product % 2 ** 32 >= 2 ** 32 % bound:
            return product >> 32


def side(seq, span, size):
    low, high = pair(span, 0)
    if high >= 1:
        low, high = (min(int(v), size) for v in (low, high))
        return low + below(seq, high - low + 1)
    return int(size * (low + (high - low) * (((next(seq) | next(seq) << 32) >> 11) * 2.0 ** -53)))


def holes(im, op, drawn):
    seq, places = numbers(drawn[1:7]), []
    for _ in range(int(drawn[0])):
        h, w = (side(seq, op.get(name, [0.1, 0.2]), size) for name, size in (('height', im.size[1]), ('width', im.size[0])))
        top = below(seq, im.size[1] - h + 1)
        places.append((below(seq, im.size[0] - w + 1), top, w, h))
    im, value = im.copy(), op.get('value', 0)
    for left, top, w, h in places:
        n = 0 if not isinstance(value, str) else 1 if value == 'random_uniform' else w * h
        colours = [tuple(word >> 8 * c & 255 for c in range(3)) for word in (next(seq) for _ in range(n))]
        if n == 0:
            colours = [tuple(value) if isinstance(value, list) else (value,) * 3]
        if len(im.getbands()) == 1:
            colours = [colour[0] for colour in colours]
        if w and h:
            hole = Image.new(im.mode, (w, h))
            hole.putdata(colours * (w * h // len(colours)))
            im.paste(hole, (left, top))
    return im


PICTURE_OPS = {'elastic_transform': elastic, 'coarse_dropout': holes}
