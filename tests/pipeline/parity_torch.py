#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parity_torch.py PIXELS FILE...

As parity.py, but what is compared with is torchvision itself, on Pillow's images: the functions of
torchvision.transforms.v2.functional, the changes of RandAugment, TrivialAugmentWide and AutoAugment as
those classes make them, to_tensor and normalize. Only what was drawn comes from PIXELS. Ops without
an entry here are held against parity.py's version of them.

to_tensor divides by 255, as the pipeline does; v2's to_dtype(scale=True) multiplies by 1/255, which
gives another last bit for 126 of the 256 values.
"""
import sys
import warnings

import torch
import torchvision
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F1

from PIL import Image

import parity

try:
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as F
except ImportError:
    from parity_torch_v1 import F, v2

DTYPES = {'u8': torch.uint8, 'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32}


def mode(op, default='nearest'):
    return InterpolationMode(op.get('interpolation', default))


def numbers(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def resized_crop(im, op, drawn):
    size = op['size'] if isinstance(op['size'], list) else [op['size']] * 2
    return F.resized_crop(im, *(int(v) for v in drawn[:4]), size, InterpolationMode(parity.crop_filter(op, drawn)))


def rotate(im, op, drawn):
    if 'padding_mode' in op:  # torchvision has none: Pillow's matrix, as for both scales of affine
        return parity.parity_geometry.rotate(im, op, drawn)
    return F.rotate(im, drawn[0], mode(op), op.get('expand', False), op.get('center'), op.get('fill', 0))


def affine(im, op, drawn):
    if 'scale_y' in op or 'padding_mode' in op:  # torchvision has one scale, and one colour outside: Pillow's matrix
        return parity.parity_geometry.affine(im, op, drawn)
    return F.affine(im, drawn[0], [int(drawn[1]), int(drawn[2])], drawn[3], list(drawn[4:6]), mode(op), op.get('fill', 0),
                    op.get('center'))


def perspective(im, op, drawn):
    """Where there are no coefficients, torch fails or has any; one that is 0 is some 1e-17 there, which may cut a value off by one."""
    start, end = parity.parity_geometry.corners(im.size, drawn)
    exact = parity.parity_geometry.perspective_coefficients(start, end)
    if not drawn[0] or not exact or 0 in exact:
        return parity.parity_geometry.perspective(im, op, drawn)
    return F.perspective(im, start, end, mode(op, 'bilinear'), op.get('fill', 0))


def random_crop(im, op, drawn):
    """The class itself, with our place for its own."""
    transform = v2.RandomCrop(op['size'], op.get('padding'), op.get('pad_if_needed', False), op.get('fill', 0),
                              op.get('padding_mode', 'constant'))
    try:
        params = transform.make_params([im])
    except ValueError:
        return parity.OP
    left, top = params['padding'][:2]
    return transform.transform(im, dict(params, needs_crop=True, top=int(drawn[0]) + top, left=int(drawn[1]) + left))


def five_crop(im, op, drawn):
    try:
        return list(v2.FiveCrop(op['size'])(im))
    except ValueError:
        return parity.OP


def ten_crop(im, op, drawn):
    try:
        return list(v2.TenCrop(op['size'], op.get('vertical_flip', False))(im))
    except ValueError:
        return parity.OP


def center_crop(im, op, drawn):
    """torchvision's; what it has not, timm's fill and Hugging Face's middle, is parity.py's."""
    return parity.center_crop(im, op) if 'fill' in op or 'half' in op else F.center_crop(im, op['size'])


def resize(im, op, drawn):
    if 'fit' in op:
        return parity.resize(im, op['size'], op.get('interpolation', 'bilinear'), fit=op['fit'])
    size = None if op['size'] is None else numbers(op['size'])
    try:
        return F.resize(im, size, mode(op, 'bilinear'), op.get('max_size'))
    except ValueError:  # nothing would be left
        return parity.OP


def erase(im, op, drawn):
    """Of a Pillow picture or a tensor."""
    if not drawn[0]:
        return im
    value = torch.tensor([float(v) for v in numbers(op.get('value', 0))])[:, None, None]
    return F.erase(im, *(int(v) for v in drawn[1:5]), value)


def jitter(im, op, drawn):
    """The class itself, with our numbers for its own."""
    if not drawn[8]:
        return im
    given = {k: op.get(k) for k in ('brightness', 'contrast', 'saturation', 'hue')}
    transform = v2.ColorJitter(**given)
    params = {k + '_factor': drawn[4 + i] if getattr(transform, k) is not None else None for i, k in enumerate(given)}
    return transform.transform(im, dict(params, fn_idx=[int(v) for v in drawn[:4]]))


def distort(im, op, drawn):
    """The class itself, with our numbers for its own."""
    names = ('brightness', 'contrast', 'saturation', 'hue')
    params = {k + '_factor': drawn[i] if drawn[4 + i] else None for i, k in enumerate(names)}
    order = [int(v) for v in drawn[10:13]] if drawn[9] and len(im.getbands()) == 3 else None
    return v2.RandomPhotometricDistort().transform(im, dict(params, contrast_before=not drawn[8], channel_permutation=order))


def drawn_size(im, op, drawn):
    return F.resize(im, [int(drawn[0]), int(drawn[1])], mode(op, 'bilinear'))


def zoom_out(im, op, drawn):
    h, w, top, left = (int(v) for v in drawn[:4])
    return F.pad(im, [left, top, w - left - im.size[0], h - top - im.size[1]], op.get('fill', 0)) if h else im


def permute(im, op, drawn):
    return F.permute_channels(im, [int(v) for v in drawn[:len(im.getbands())]]) if len(im.getbands()) == 3 else im


def chance(function, *names):
    return lambda im, op, drawn: function(im, *(op[n] for n in names)) if drawn[0] else im


def augment(transform):
    def run(im, op, drawn):
        more = {k: op[k] for k in ('num_magnitude_bins',) if k in op}
        t = transform(interpolation=mode(op), fill=op.get('fill'), **more)
        height, width = F.get_size(im)
        for number, magnitude in zip(drawn[::2], drawn[1::2]):
            kind = parity.parity_augment.KINDS[int(number)]
            # the space of AutoAugment has no Identity, that of the others no Invert
            bins, signed = t._AUGMENTATION_SPACE.get(kind, (lambda *_: None, False))
            values = bins(getattr(t, 'num_magnitude_bins', 10), height, width)
            known = [0.0] if values is None else [float(v) for v in values]
            if (abs(magnitude) if signed else magnitude) not in known:
                raise ValueError('%s has no magnitude %r' % (kind, magnitude))
            im = t._apply_image_or_video_transform(im, kind, magnitude, t.interpolation, t._fill)
        return im
    return run


PICTURE_OPS = {
    'random_resized_crop': resized_crop,
    'resize': resize,
    'center_crop': center_crop,
    'hflip': chance(F.horizontal_flip),
    'vflip': chance(F.vertical_flip),
    'rotate': rotate,
    'affine': affine,
    'random_perspective': perspective,
    'pad': lambda im, op, drawn: F.pad(im, op['padding'], op.get('fill', 0), op.get('padding_mode', 'constant')),
    'random_crop': random_crop,
    'scale_jitter': drawn_size,
    'random_shortest_size': drawn_size,
    'random_resize': drawn_size,
    'random_zoom_out': zoom_out,
    'five_crop': five_crop,
    'ten_crop': ten_crop,
    'random_erasing': erase,
    'color_jitter': jitter,
    'random_photometric_distort': distort,
    'grayscale': lambda im, op, drawn: v2.Grayscale(op.get('num_output_channels', 1))(im),
    'random_channel_permutation': permute,
    'random_grayscale': chance(lambda im: F.rgb_to_grayscale(im, len(im.getbands()))),
    'autocontrast': chance(F.autocontrast),
    'equalize': chance(F.equalize),
    'invert': chance(F.invert),
    'posterize': chance(F.posterize, 'bits'),
    'solarize': chance(F.solarize, 'threshold'),
    'sharpness': chance(F.adjust_sharpness, 'sharpness_factor'),
    'rand_augment': augment(v2.RandAugment),
    'trivial_augment': augment(v2.TrivialAugmentWide),
    'auto_augment': augment(v2.AutoAugment),
}
if hasattr(F, 'jpeg'):
    PICTURE_OPS['jpeg'] = lambda im, op, drawn: F.jpeg(im, int(drawn[0]))


def finish(im, spec, draws):
    """The tensor's bytes, or those of several."""
    if isinstance(im, list):
        return b''.join(finish(one, spec, draws) for one in im)
    ops = {op['op']: op for op in spec}
    default = 'f32' if 'normalize' in ops else 'u8'
    dtype = DTYPES[ops['cast'].get('dtype', 'f32') if 'cast' in ops else default]
    image = F.pil_to_tensor(im)
    if dtype != torch.uint8:
        image = F1.to_tensor(im)
    if 'gaussian_noise' in ops:
        return parity.finish_noisy(im, spec, draws, {torch.float32: 'f', torch.float16: 'e', torch.bfloat16: 'H'}[dtype])
    if 'normalize' in ops:
        image = F.normalize(image, numbers(ops['normalize']['mean']), numbers(ops['normalize']['std']))
    behind = [op['op'] in ('normalize', 'cast', 'layout') for op in spec]
    for i, (op, drawn) in enumerate(zip(spec, draws)):
        if op['op'] == 'random_erasing' and any(behind[:i]):
            image = erase(image, op, drawn)
    image = image.to(dtype)
    if ops.get('layout', {'order': 'HWC'}).get('order', 'CHW') == 'HWC':
        image = image.permute(1, 2, 0)
    return bytes(image.contiguous().flatten().view(torch.uint8).numpy())


def blurred(pixels, files, seed=parity.SEED):
    """gaussian_blur adds up in another order than torch: (values, how many differ, by how much at most)."""
    before = [{'op': 'decode'}, {'op': 'resize', 'size': [120, 150]}]
    values = differ = most = 0
    for size, sigma in ((3, [0.1, 2]), ([5, 7], [0.1, 2]), ([23, 1], 3), (21, [0.5, 20])):
        spec = before + [{'op': 'gaussian_blur', 'kernel_size': size, 'sigma': sigma}]
        for (outcome, _, plain), (_, draws, ours) in zip(parity.run(pixels, before, 0, files, seed),
                                                         parity.run(pixels, spec, 0, files, seed)):
            if outcome == 0:
                im = Image.frombytes('RGB', (150, 120), plain)
                theirs = F.pil_to_tensor(F.gaussian_blur(im, size, [draws[2][0]] * 2)).permute(1, 2, 0)
                off = (torch.frombuffer(bytearray(ours), dtype=torch.uint8).view(120, 150, 3).int() - theirs.int()).abs()
                values, differ, most = values + off.numel(), differ + int((off > 0).sum()), max(most, int(off.max()))
    return values, differ, most


def elastic(pixels, files, seed=parity.SEED):
    """As blurred(), of elastic_transform with the same displacement; and by how much torch's displacement is another one at most."""
    before = [{'op': 'decode'}, {'op': 'resize', 'size': [60, 75]}]
    values = differ = most = far = 0
    for more in (dict(alpha=[150, 120], sigma=[2, 2]), dict(alpha=[500, 500], sigma=[3, 3], fill=[200, 3, 99]),
                 dict(alpha=[90, 70], sigma=[1, 1], interpolation='nearest')):
        spec = before + [dict(more, op='elastic_transform')]
        for (outcome, _, plain), (_, draws, ours) in zip(parity.run(pixels, before, 0, files, seed),
                                                         parity.run(pixels, spec, 0, files, seed)):
            if outcome:
                continue
            im = Image.frombytes('RGB', (75, 60), plain)
            moved = torch.tensor(parity.parity_noise.displacement(im.size, spec[2], draws[2][:6]))
            theirs = F.elastic(im, moved.permute(1, 2, 0)[None], mode(more, 'bilinear'), more.get('fill', 0))
            off = (torch.frombuffer(bytearray(ours), dtype=torch.uint8).view(60, 75, 3).int()
                   - F.pil_to_tensor(theirs).permute(1, 2, 0).int()).abs()
            values, differ, most = values + off.numel(), differ + int((off > 0).sum()), max(most, int(off.max()))
            taps = [int(8 * more['sigma'][0] + 1) | 1] * 2
            noise = torch.tensor(parity.parity_noise.noise(im.size, draws[2][:6])).view(2, 1, 1, 60, 75)
            for plane, side in enumerate((60, 75)):
                field = F.gaussian_blur(noise[plane], taps, more['sigma'])[0, 0] * more['alpha'][plane] / side
                far = max(far, float((field - moved[plane]).abs().max()))
    return values, differ, most, far


def prepare():
    """parity.py's own version of what torchvision does gives way."""
    torch.set_num_threads(1)
    warnings.simplefilter('ignore')
    parity.PICTURE_OPS.update(PICTURE_OPS)
    parity.finish = finish


def main(args):
    if len(args) < 2:
        sys.exit(__doc__)
    if parity.PIL.__version__ != parity.PINNED:
        print('parity_torch: needs Pillow %s, this is %s' % (parity.PINNED, parity.PIL.__version__), file=sys.stderr)
        return 77
    prepare()
    print('parity_torch: torch %s, torchvision %s' % (torch.__version__, torchvision.__version__))
    values, differ, most = blurred(args[0], args[1:])
    print('parity_torch: gaussian_blur: %d of %d values differ, by at most %d' % (differ, values, most))
    much = values == 0 or most > 1 or differ * 10000 > values
    if hasattr(F, 'elastic'):
        values, differ, most, far = elastic(args[0], args[1:])
        print('parity_torch: elastic_transform: %d of %d values differ, by at most %d; displacements by %g' % (differ, values, most, far))
        much = much or most > 1 or differ * 10000 > values or far > 1e-5
    return 1 if parity.compare(args[0], args[1:]) or much else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
