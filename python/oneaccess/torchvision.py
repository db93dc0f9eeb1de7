# SPDX-License-Identifier: Apache-2.0
"""A pipeline of torchvision's transforms (v1 or v2), translated; or which of them cannot be, and why.

The objects are read, not run: what is random in torchvision stays random here, from the daemon's draws.
torchvision is not imported.
"""

from . import transforms as oa
from .errors import TransformError


def _of(function, *names):
    """A translation: attributes that have the names of the parameters."""
    def translate(transform):
        return function(**{name: getattr(transform, name, None) for name in names})
    return translate


def _crop(transform):
    return oa.RandomResizedCrop(transform.size, transform.scale, transform.ratio,
                                transform.interpolation, getattr(transform, "antialias", None))


def _resize(transform):
    antialias = getattr(transform, "antialias", None)
    return oa.Resize(transform.size, transform.interpolation, transform.max_size,
                     antialias if isinstance(antialias, bool) else None)  # "warn" of some versions


def _fill(transform):
    """v2 keeps a dict of fills by type of input; images are under one key."""
    fill = transform.fill
    if isinstance(fill, dict):
        if len(fill) != 1:
            raise TransformError("has several fills, by type of input")
        fill = next(iter(fill.values()))
    return fill if fill is None or isinstance(fill, (int, float)) else list(fill)


def _filled(function, *names):
    def translate(transform):
        return function(fill=_fill(transform), **{name: getattr(transform, name) for name in names})
    return translate


def _jitter(transform):
    def span(value):
        return None if value is None else [float(bound) for bound in value]
    return oa.ColorJitter(span(transform.brightness), span(transform.contrast),
                          span(transform.saturation), span(transform.hue))


def _erasing(transform):
    if transform.inplace:
        raise TransformError("inplace=True is not there: leave it out")
    value = transform.value
    if value is None:
        value = "random"
    if isinstance(value, (list, tuple)):
        value = value[0] if len(value) == 1 else list(value)
    return oa.RandomErasing(transform.p, transform.scale, transform.ratio, value)


def _normalize(transform):
    if getattr(transform, "inplace", False):
        raise TransformError("inplace=True is not there: leave it out")
    return oa.Normalize([float(value) for value in transform.mean],
                        [float(value) for value in transform.std])


def _to_dtype(transform):
    dtype = transform.dtype
    if isinstance(dtype, dict):
        raise TransformError("has several dtypes, by type of input")
    if not getattr(transform, "scale", True):
        raise TransformError("scale=False is not there: floats are value / 255")
    return oa.Cast(dtype)


_NOTHING = ("ToPILImage", "ToPureTensor", "Identity", "ToImageTensor", "RGB")
_KNOWN = {
    "ToTensor": lambda transform: oa.ToTensor(),
    "PILToTensor": lambda transform: oa.PILToTensor(),
    "ToImage": lambda transform: oa.PILToTensor(),
    "ConvertImageDtype": _of(oa.Cast, "dtype"),
    "ToDtype": _to_dtype,
    "Normalize": _normalize,
    "RandomResizedCrop": _crop,
    "Resize": _resize,
    "CenterCrop": _of(oa.CenterCrop, "size"),
    "FiveCrop": _of(oa.FiveCrop, "size"),
    "RandomCrop": _filled(oa.RandomCrop, "size", "padding", "pad_if_needed", "padding_mode"),
    "Pad": _filled(oa.Pad, "padding", "padding_mode"),
    "RandomHorizontalFlip": _of(oa.RandomHorizontalFlip, "p"),
    "RandomVerticalFlip": _of(oa.RandomVerticalFlip, "p"),
    "RandomRotation": _filled(oa.RandomRotation, "degrees", "interpolation", "expand", "center"),
    "RandomAffine": _filled(oa.RandomAffine, "degrees", "translate", "scale", "shear",
                            "interpolation", "center"),
    "ColorJitter": _jitter,
    "Grayscale": _of(oa.Grayscale, "num_output_channels"),
    "RandomGrayscale": _of(oa.RandomGrayscale, "p"),
    "GaussianBlur": _of(oa.GaussianBlur, "kernel_size", "sigma"),
    "RandomAutocontrast": _of(oa.RandomAutocontrast, "p"),
    "RandomEqualize": _of(oa.RandomEqualize, "p"),
    "RandomInvert": _of(oa.RandomInvert, "p"),
    "RandomPosterize": _of(oa.RandomPosterize, "bits", "p"),
    "RandomSolarize": _of(oa.RandomSolarize, "threshold", "p"),
    "RandomAdjustSharpness": _of(oa.RandomAdjustSharpness, "sharpness_factor", "p"),
    "RandAugment": _filled(oa.RandAugment, "num_ops", "magnitude", "num_magnitude_bins",
                           "interpolation"),
    "TrivialAugmentWide": _filled(oa.TrivialAugmentWide, "num_magnitude_bins", "interpolation"),
    "AutoAugment": _filled(oa.AutoAugment, "policy", "interpolation"),
    "RandomErasing": _erasing,
}
_WHY = {
    "Lambda": "it is a function of Python",
    "LinearTransformation": "it is a matrix over all pixels",
    "RandomApply": "its transforms are made with one draw together",
    "RandomChoice": "it draws one of several transforms",
    "RandomOrder": "it draws an order",
    "TenCrop": "use FiveCrop",
    "RandomPerspective": "there is rotate and affine",
    "ElasticTransform": "there is rotate and affine",
    "AugMix": "there is RandAugment, TrivialAugmentWide and AutoAugment",
}


def _flatten(transform, place):
    """(where, transform) one after another."""
    inner = getattr(transform, "transforms", None)
    if type(transform).__name__ == "Compose" and inner is not None:
        for number, each in enumerate(inner):
            yield from _flatten(each, f"{place}[{number}]")
    elif type(transform).__name__ == "Sequential":
        for number, each in enumerate(transform):
            yield from _flatten(each, f"{place}[{number}]")
    else:
        yield place, transform


def _translate(place, transform):
    name = type(transform).__name__
    is_theirs = type(transform).__module__.split(".")[0] in ("torchvision", "torch")
    try:
        if not is_theirs or name in _WHY:
            raise TransformError(_WHY.get(name, "it is no transform of torchvision") if is_theirs
                                 else "it is Python of your own")
        if name in _KNOWN:
            return _KNOWN[name](transform)
        if name in _NOTHING:
            return None
        raise TransformError("there is no op like it")
    except TransformError as why:
        raise TransformError(
            f"{place}, {name}, cannot be translated: {why}. Leave it out here and do it to the"
            " finished batches, or keep all of it and give Loader the data set by oneaccess.wrap()") from None


def from_torchvision(transform) -> oa.Pipeline:
    """torchvision's Compose, or a single transform, as a pipeline for Loader. TransformError names the
    first transform that has no counterpart, and what to do. A pipeline without ToTensor() or its like
    gives uint8 images, [height, width, channels]. Pixels are those of torchvision on Pillow's pictures, wherever
    the pipeline turns them into tensors: on tensors torchvision rounds otherwise, here and there by one."""
    translated = [_translate(place, each) for place, each in _flatten(transform, "transforms")]
    return oa.Compose([each for each in translated if each is not None])
