# SPDX-License-Identifier: Apache-2.0
"""An image processor of Hugging Face's transformers as ops, where the pixels are the same.

Those of backend "pil" resize with Pillow and compute as torchvision's ToTensor and Normalize do. Those of backend
"torchvision" resize tensors and multiply where others divide, so their pixels are others. A processor is read, not
run, so one whose class computes something of its own is refused; but for those whose ways are written here.
transformers is not imported.
"""

from .. import transforms as oa
from ..errors import TransformError

_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # Pillow's numbers
_STEPS = ("__call__", "preprocess", "_preprocess_image_like_inputs", "_prepare_image_like_inputs", "process_image",
          "convert_to_rgb", "_preprocess", "resize", "center_crop", "rescale", "normalize")
# Classes whose own steps do to pictures what is written here: ConvNeXT's resize, BEiT's way past its label maps, and patches.
_READ = {"ConvNextImageProcessorPil": ("resize", "_preprocess"),
         "BeitImageProcessorPil": ("preprocess", "_preprocess_image_like_inputs", "_preprocess"),
         "Siglip2ImageProcessorPil": ("preprocess", "_preprocess"), "Qwen2VLImageProcessorPil": ("preprocess", "_preprocess", "resize")}
_CONVNEXT_WHOLE = 384  # from this size on it crops nothing


def ops_of(processor) -> list:
    """The ops of an image processor: float32 (uint8 where it neither rescales nor normalizes), [channels, height,
    width], or patches. TransformError says what of it has no counterpart, and what to do."""
    _check_class(processor)
    patches = next((_PATCHES[each.__name__] for each in type(processor).__mro__ if each.__name__ in _PATCHES), None)
    if patches is not None:
        if not _get(processor, "do_resize"):
            raise TransformError("do_resize=False: pictures would not have whole patches")
        return patches(processor)
    if getattr(processor, "do_pad", False):
        raise TransformError("do_pad=True pads pictures of a batch: give do_pad=False and a size of height and width")
    ops, least, is_known = _resize(processor) if _get(processor, "do_resize") else ([], (1, 1), False)
    if _get(processor, "do_center_crop"):
        crop = _extents(processor.crop_size)
        if crop is None:
            raise TransformError(f"crop_size={_dict(processor.crop_size)} has no height and width")
        ops.append(_crop(crop, least, is_known))
    return ops + _values(processor)


def _check_class(processor):
    classes = type(processor).__mro__
    base = next((at for at, each in enumerate(classes) if each.__name__ == "PilBackend"), None)
    if base is None:
        raise TransformError("it resizes tensors, whose pixels are not Pillow's: make it by"
                             " AutoImageProcessor.from_pretrained(..., backend=\"pil\") (transformers 5 or newer)")
    for each in classes[:base]:
        for step in _STEPS:
            if step in vars(each) and step not in _READ.get(each.__name__, ()):
                raise TransformError(f"its {step}() is {each.__name__}'s own: give Resize, CenterCrop, ToTensor and"
                                     " Normalize of torchvision, as far as they do the same")


def _get(processor, name):
    return getattr(processor, name, None)


def _dict(size):
    """transformers' SizeDict, or a dict; without what is None."""
    return {name: value for name, value in dict(size or {}).items() if value is not None}


def _extents(size):
    """(height, width) of a size that gives just these."""
    size = _dict(size)
    return (size["height"], size["width"]) if set(size) == {"height", "width"} else None


def _filter(processor):
    resample = _get(processor, "resample")
    resample = getattr(resample, "value", resample)
    if resample is None:
        return "bilinear"
    name = resample if isinstance(resample, str) else _FILTERS.get(resample)
    if name not in _FILTERS.values():
        raise TransformError(f"resample={resample!r} is no filter of Pillow's: give one of {_FILTERS}")
    return name


def _resize(processor):
    """(its ops, the least height and width behind them, whether these are just what it is then)"""
    size, interpolation = _dict(processor.size), _filter(processor)
    exact = _extents(size)
    shortest = size.get("shortest_edge")
    if any(each.__name__ == "ConvNextImageProcessorPil" for each in type(processor).__mro__):
        if not shortest:
            raise TransformError(f"size={size} has no shortest_edge, which it needs")
        exact = (shortest, shortest)
        if shortest < _CONVNEXT_WHOLE:
            before = int(shortest / processor.crop_pct)
            return [oa.Resize(before, interpolation), _crop(exact, (before, before), False)], exact, True
    if exact:
        return [oa.Resize(exact, interpolation)], exact, True
    if set(size) != {"shortest_edge"}:
        raise TransformError(f"size={size} is made otherwise here: give {{\"height\": …, \"width\": …}} or"
                             " {\"shortest_edge\": …}")
    return [oa.Resize(shortest, interpolation)], (shortest, shortest), False


def _naflex(processor):
    """As of SigLIP 2: the channels are the last dimension."""
    *end, _ = _values(processor)
    return [oa.Patches(processor.patch_size, processor.max_num_patches, interpolation=_filter(processor)), *end,
            *([oa.Cast("float32")] if _get(processor, "do_rescale") else [])]


def _qwen(processor):
    size = _dict(processor.size)
    if set(size) != {"shortest_edge", "longest_edge"}:
        raise TransformError(f"size={size}: the least and the most pixels are called shortest_edge and longest_edge there")
    return [oa.Patches(processor.patch_size, max_pixels=size["longest_edge"], min_pixels=size["shortest_edge"],
                       merge_size=processor.merge_size, temporal_patch_size=processor.temporal_patch_size,
                       interpolation=_filter(processor)), *_values(processor)]


_PATCHES = {"Siglip2ImageProcessorPil": _naflex, "Qwen2VLImageProcessorPil": _qwen}


def _crop(crop, least, is_known):
    """Half of what is cut off is rounded down, where torchvision rounds to even. TransformError: the picture may be
    smaller, and is then padded at other sides than ours."""
    over = [extent - part for extent, part in zip(least, crop)]
    if any(each < 0 and (each % 2 or not is_known) for each in over):
        raise TransformError(f"its crop of {crop} is larger than its pictures may be, which are then padded by half a"
                             " pixel more on other sides: give a size of no less than crop_size")
    is_alike = is_known and not any(each % 4 == 3 for each in over)
    return oa.CenterCrop(crop, half=None if is_alike else "down")


def _numbers(value):
    return float(value) if isinstance(value, (int, float)) else [float(each) for each in value]


def _values(processor):
    """From pixels to what the model gets."""
    rescales, normalizes = _get(processor, "do_rescale"), _get(processor, "do_normalize")
    if rescales and processor.rescale_factor != 1 / 255:
        raise TransformError(f"rescale_factor={processor.rescale_factor}: floats are value / 255 here, give 1 / 255")
    if normalizes and not rescales:
        raise TransformError("do_normalize=True without do_rescale: mean and std are those of value / 255 here")
    if not rescales:
        return [oa.PILToTensor()]
    end = [oa.Normalize(_numbers(processor.image_mean), _numbers(processor.image_std))] if normalizes else []
    return [*end, oa.ToTensor()]
