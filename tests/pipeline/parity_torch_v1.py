# SPDX-License-Identifier: Apache-2.0
"""What parity_torch.py uses of torchvision.transforms.v2, for a torchvision that has none yet (Debian 12's
0.14): the same names, made of the functions and classes that came before and do the same to Pillow's images."""
import types

import torch
from torchvision import transforms as T
from torchvision.transforms import autoaugment
from torchvision.transforms import functional as F1

import parity_geometry


def resize(im, size, interpolation, max_size=None):
    if size is None:  # the longer side alone
        width, height = im.size
        longer = max(width, height)
        size, max_size = [int(max_size * height / longer), int(max_size * width / longer)], None
    return F1.resize(im, size, interpolation, max_size)


def pad(im, padding, fill=0, padding_mode='constant'):
    sides = [padding] if isinstance(padding, int) else padding
    if padding_mode in ('reflect', 'symmetric') and max(sides) >= min(im.size):
        # NumPy before 2 reflects otherwise on the second time where sides differ
        return parity_geometry.pad(im, {'padding': padding, 'fill': fill, 'padding_mode': padding_mode}, ())
    return F1.pad(im, padding, fill, padding_mode)


def erase(im, top, left, height, width, value):
    if not hasattr(im, 'getbands'):
        return F1.erase(im, top, left, height, width, value)
    return F1.to_pil_image(F1.erase(F1.pil_to_tensor(im), top, left, height, width, value))


def permute_channels(im, permutation):
    return F1.to_pil_image(F1.pil_to_tensor(im)[permutation])


def get_size(im):
    return F1.get_dimensions(im)[1:]


class RandomCrop(T.RandomCrop):
    def make_params(self, images):
        """Padding at the left, the top, the right and the bottom, as v2 has it."""
        width, height = images[0].size
        given = [0] if self.padding is None else [self.padding] if isinstance(self.padding, int) else list(self.padding)
        padding = given * (4 // len(given))
        for place, (size, asked) in enumerate(((width, self.size[1]), (height, self.size[0]))):
            missing = asked - (size + padding[place] + padding[place + 2])
            if missing > 0 and not self.pad_if_needed:
                raise ValueError('the crop is larger than the picture')
            for side in (place, place + 2):
                padding[side] += max(missing, 0)
        return {'padding': padding}

    def transform(self, im, params):
        padded = pad(im, params['padding'], self.fill, self.padding_mode)
        return F1.crop(padded, params['top'], params['left'], *self.size)


class ColorJitter(T.ColorJitter):
    def __init__(self, **given):
        super().__init__(**{name: value for name, value in given.items() if value is not None})

    def transform(self, im, params):
        for number in params['fn_idx']:
            name = ('brightness', 'contrast', 'saturation', 'hue')[number]
            if params[name + '_factor'] is not None:
                im = getattr(F1, 'adjust_' + name)(im, params[name + '_factor'])
        return im


class RandomPhotometricDistort:
    def transform(self, im, params):
        for name in ('brightness', 'contrast', 'saturation', 'hue') if params['contrast_before'] else ('brightness', 'saturation', 'hue', 'contrast'):
            if params[name + '_factor'] is not None:
                im = getattr(F1, 'adjust_' + name)(im, params[name + '_factor'])
        return im if params['channel_permutation'] is None else permute_channels(im, params['channel_permutation'])


class Spaces:
    """_AUGMENTATION_SPACE of the class, and what applies one change."""

    @property
    def _AUGMENTATION_SPACE(self):
        def bins(kind):
            return lambda number, height, width: self._space(number, (height, width)).get(kind, (None,))[0]
        space = {kind: (bins(kind), signed) for kind, (_, signed) in self._space(10, (224, 224)).items()}
        for kind in {'Identity', 'AutoContrast', 'Equalize', 'Invert'} & set(space):
            space[kind] = (self._none, False)
        if 'Solarize' in space:  # v2 counts to 1
            space['Solarize'] = (lambda number, height, width: torch.linspace(1, 0, number), False)
        return space

    @staticmethod
    def _none(*_):
        return None

    def _apply_image_or_video_transform(self, im, kind, magnitude, interpolation, fill):
        if kind == 'Solarize':
            magnitude = 255 * magnitude
        return autoaugment._apply_op(im, kind, magnitude, interpolation=interpolation, fill=fill)

    @property
    def _fill(self):
        return self.fill


class RandAugment(Spaces, T.RandAugment):
    def _space(self, bins, size):
        return self._augmentation_space(bins, size)


class AutoAugment(Spaces, T.AutoAugment):
    def _space(self, bins, size):
        return self._augmentation_space(bins, size)


class TrivialAugmentWide(Spaces, T.TrivialAugmentWide):
    def _space(self, bins, size):
        return self._augmentation_space(bins)


# Solved in float32 there, by later ones in double.
F1._get_perspective_coeffs = parity_geometry.perspective_coefficients
names = {name: getattr(F1, name) for name in (
    'adjust_sharpness', 'affine', 'autocontrast', 'center_crop', 'equalize', 'gaussian_blur', 'invert', 'normalize',
    'perspective', 'pil_to_tensor', 'posterize', 'resized_crop', 'rgb_to_grayscale', 'rotate', 'solarize')}
F = types.SimpleNamespace(resize=resize, pad=pad, erase=erase, permute_channels=permute_channels, get_size=get_size, horizontal_flip=F1.hflip, vertical_flip=F1.vflip, **names)
v2 = types.SimpleNamespace(
    AutoAugment=AutoAugment, ColorJitter=ColorJitter, FiveCrop=T.FiveCrop, Grayscale=T.Grayscale, RandAugment=RandAugment,
    RandomCrop=RandomCrop, TenCrop=T.TenCrop, RandomPhotometricDistort=RandomPhotometricDistort, TrivialAugmentWide=TrivialAugmentWide)
