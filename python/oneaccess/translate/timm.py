# SPDX-License-Identifier: Apache-2.0
"""timm's own transforms, translated for torchvision.py, or why one cannot be. timm is not imported."""

import math

from .. import transforms as oa
from ..errors import TransformError

# timm/data/auto_augment.py's two sets, in its order, without the endings that both have: the op draws a number.
_CHANGES = ("AutoContrast", "Equalize", "Invert", "Rotate", "Posterize", "Solarize", "SolarizeAdd", "Color", "Contrast",
            "Brightness", "Sharpness", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel")
_SHRINK = ("Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness")
_GROWING = tuple(name + "Increasing" if name in _SHRINK else name for name in _CHANGES)
_MIXED = ("AutoContrast", "ColorIncreasing", "ContrastIncreasing", "BrightnessIncreasing", "SharpnessIncreasing", "Equalize", "Rotate",
          "PosterizeIncreasing", "SolarizeIncreasing", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel")
_WARPS = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers
_MOST_CHANGES = 5


def _filter_names(interpolation):
    """One or several filters, of torchvision's names or Pillow's numbers, by name."""
    several = interpolation if isinstance(interpolation, (tuple, list)) else (interpolation,)
    return [_WARPS.get(getattr(each, "value", each), getattr(each, "value", each)) for each in several]


def _crop(transform):
    names = _filter_names(transform.interpolation)
    if len(names) > 2:
        raise TransformError(f"it draws one of {len(names)} filters: give interpolation=\"random\", or one")
    return oa.RandomResizedCrop(transform.size, transform.scale, transform.ratio, names[0], True,
                                or_interpolation=names[1] if len(names) == 2 else None)


def _center(transform):
    if transform.padding_mode != "constant":
        raise TransformError("it pads with the picture's own pixels: there is CenterCrop of torchvision behind Pad")
    black = transform.fill in (0, (0, 0, 0), [0, 0, 0])
    return oa.CenterCrop(transform.size, fill=None if black else transform.fill)


def _keep_ratio(transform):
    if transform.random_scale_prob > 0 or transform.random_aspect_prob > 0:
        raise TransformError("it draws a scale and a ratio: give train_crop_mode=\"rrc\"")
    names = _filter_names(transform.interpolation)
    if len(names) != 1 or transform.longest not in (0, 1):
        raise TransformError("it mixes filters or sides: give one interpolation, and longest=0 or 1")
    return oa.Resize(list(transform.size), names[0], fit="contain" if transform.longest else "cover")


def _erasing(transform):
    """The rectangle of torchvision's, drawn alike: sides from area and ratio, ten attempts to fit."""
    if transform.min_count != 1 or transform.max_count != 1:
        raise TransformError("it erases several rectangles: give re_count=1")
    if transform.rand_color:
        raise TransformError("its mode \"rand\" draws a colour for each rectangle: give re_mode=\"pixel\" or"
                             " \"const\"")
    if transform.num_splits > 1:
        raise TransformError("it leaves a part of the batch as it is: give re_num_splits=0")
    ratio = [math.exp(bound) for bound in transform.log_aspect_ratio]
    return oa.RandomErasing(transform.probability, [transform.min_area, transform.max_area], ratio,
                            "random" if transform.per_pixel else 0)


def _warp(change):
    """How a change of geometry is interpolated."""
    names = _filter_names(change.kwargs["resample"])
    if names == ["bilinear", "bicubic"]:
        return "random"
    if len(names) != 1 or names[0] not in _WARPS.values():
        raise TransformError(f"its pictures are turned with {names}: give interpolation=\"bicubic\" or \"bilinear\"")
    return names[0]


def _rand_augment(transform):
    names = tuple(change.name for change in transform.ops)
    if transform.choice_weights is not None or names not in (_CHANGES, _GROWING):
        raise TransformError("it draws from other changes than timm's usual ones: leave \"t…\" out of auto_augment")
    if transform.num_layers > _MOST_CHANGES:
        raise TransformError(f"it makes {transform.num_layers} changes: give n{_MOST_CHANGES} or less in auto_augment")
    return oa.TimmRandAugment(transform.num_layers, float(transform.ops[0].prob), increasing=names == _GROWING,
                              **_settings(transform.ops, 0.45))


def _settings(changes, translate):
    """What all of the changes have in common: magnitudes, filter, fill, and how far magnitude 10 moves."""
    first = changes[0]
    for change in changes:
        if (change.prob, change.magnitude, change.hparams, change.kwargs) != (
                first.prob, first.magnitude, first.hparams, first.kwargs):
            raise TransformError("its changes have settings of their own: make it by timm's function for it")
    fill, deviation = first.kwargs["fillcolor"], float(first.magnitude_std)
    is_uniform = math.isinf(deviation)
    return {"magnitude": float(first.magnitude), "magnitude_std": None if is_uniform else deviation, "uniform": is_uniform,
            "magnitude_max": float(first.magnitude_max or 10), "interpolation": _warp(first),
            "fill": fill if isinstance(fill, int) else list(fill), "translate": first.hparams.get("translate_pct", translate)}


def _aug_mix(transform):
    if transform.blended:
        raise TransformError("it blends chain by chain: leave \"b1\" out of auto_augment")
    if tuple(change.name for change in transform.ops) != _MIXED or transform.ops[0].prob != 1:
        raise TransformError("it draws from other changes than timm's usual ones: make it by augment_and_mix_transform()")
    return oa.TimmAugMix(transform.width, transform.depth if transform.depth > 0 else -1, alpha=float(transform.alpha), increasing=True,
                         **_settings(transform.ops, 0.45))


KNOWN = {
    "RandomResizedCropAndInterpolation": _crop,
    "MaybeToTensor": lambda transform: oa.ToTensor(),
    "MaybePILToTensor": lambda transform: oa.PILToTensor(),
    "ToNumpy": lambda transform: oa.PILToTensor(),
    "CenterCropOrPad": _center,
    "ResizeKeepRatio": _keep_ratio,
    "RandAugment": _rand_augment,
    "AugMixAugment": _aug_mix,
    "RandomErasing": _erasing,
}
WHY = {
    "AutoAugment": "its magnitudes are timm's own: give auto_augment=\"rand-m9\", or put AutoAugment of torchvision in"
                   " its place",
    "RandomCropOrPad": "there is RandomCrop of torchvision, with pad_if_needed=True",
    "ToTensor": "it does not scale to [0, 1]: there is ToTensor of torchvision",
}
