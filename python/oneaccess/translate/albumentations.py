# SPDX-License-Identifier: Apache-2.0
"""A pipeline of albumentations (1.4, 2.0) or AlbumentationsX, translated; or which transform cannot be, and why.

The objects are read, not run, and the library is not imported. What is random there stays so, from the daemon's draws.
"""

import itertools

from .. import transforms as oa
from ..errors import TransformError
from .torchvision import CHANCES, whole, written

_FILTERS = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "box", 4: "lanczos", 5: "bilinear", 6: "nearest"}
_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}
_MOST_CHOICES = 6


def _only(wanted, *fields):
    """fields: (name, value, what it must be). The first that is not is said."""
    for name, value, must in fields:
        if value != must:
            raise TransformError(f"{name}={value!r} is not there: give {name}={must!r}{wanted}")


def _pair(value):
    return (value, value) if isinstance(value, (int, float)) else tuple(value)


def _fixed(name, value):
    low, high = _pair(value)
    if low != high:
        raise TransformError(f"{name}={value!r} is drawn for each image, and here is one number: give ({low}, {low})")
    return low


def _color(fill):
    return whole(fill) if isinstance(fill, (int, float)) else [whole(each) for each in fill]


def _fill(transform):
    fill = getattr(transform, "fill", getattr(transform, "value", 0))
    return None if fill is None else _color(fill)


def _border(transform, *known):
    mode = getattr(transform, "border_mode", getattr(transform, "mode", 0))
    word = _BORDERS.get(mode)
    if word not in known:
        raise TransformError(f"border_mode={mode} is not there: give cv2.BORDER_CONSTANT")
    return word


def _outside(transform):
    """None: constant, which is the default."""
    word = _border(transform, *_BORDERS.values())
    return None if word == "constant" else word


def _filter(transform, translation):
    """Of what resizes."""
    word = _FILTERS.get(transform.interpolation)
    if word is None:
        raise TransformError(f"interpolation={transform.interpolation} is not there: give cv2.INTER_AREA")
    if getattr(transform, "area_for_downscale", None):
        raise TransformError("area_for_downscale is not there: give interpolation=cv2.INTER_AREA")
    if word not in ("nearest", "box") and not translation.antialias:
        raise TransformError("OpenCV leaves pixels out where it makes an image smaller, and here all count, as Pillow has it: say"
                             " from_albumentations(..., antialias=True), or give interpolation=cv2.INTER_AREA")
    return word


def _warp(transform):
    word = _FILTERS.get(transform.interpolation)
    if word not in ("nearest", "bilinear", "bicubic"):
        raise TransformError("its interpolation is not there: give cv2.INTER_NEAREST, INTER_LINEAR or INTER_CUBIC")
    return word


def _sides(transform):
    """Of both signatures."""
    size = getattr(transform, "size", None)
    return [transform.height, transform.width] if size is None else list(size)


def _resize(transform, translation):
    return oa.Resize([transform.height, transform.width], _filter(transform, translation))


def _max_size(fit):
    def translate(transform, translation):
        word, sides = _filter(transform, translation), getattr(transform, "max_size_hw", None)
        if sides is not None:
            if None in sides:
                raise TransformError(f"max_size_hw={sides!r} bounds one side alone: give both")
            return oa.Resize(list(sides), word, fit=fit)
        sizes = [transform.max_size] if isinstance(transform.max_size, int) else list(transform.max_size)
        return oa.RandomChoice([oa.Resize([size, size], word, fit=fit) for size in sizes])
    return translate


def _random_crop(transform, translation):
    _only(", or PadIfNeeded behind LongestMaxSize", ("pad_if_needed", getattr(transform, "pad_if_needed", False), False))
    return oa.RandomCrop([transform.height, transform.width])


def _center_crop(transform, translation):
    """Images that are smaller are padded, where albumentations fails."""
    fill = None
    if getattr(transform, "pad_if_needed", False):
        _only("", ("pad_position", transform.pad_position, "center"))
        _border(transform, "constant")
        fill = _fill(transform)
    return oa.CenterCrop([transform.height, transform.width], fill=fill, half="down")


def _pad_if_needed(transform, translation):
    """Of an image that is not larger it is a crop's padding."""
    _only("", ("pad_height_divisor", transform.pad_height_divisor, None), ("pad_width_divisor", transform.pad_width_divisor, None))
    size = [transform.min_height, transform.min_width]
    if not translation.within or any(have > most for have, most in zip(translation.within, size)):
        raise TransformError("an image may be larger than it pads to: put LongestMaxSize, of no more than min_height and min_width, in"
                             " front of it, or CenterCrop(height, width, pad_if_needed=True) in its place")
    _border(transform, "constant")
    position = str(getattr(transform.position, "value", transform.position))
    if position == "top_left":
        return oa.FixedSizeCrop(size, _fill(transform))
    _only(" or \"top_left\"", ("position", position, "center"))
    return oa.CenterCrop(size, fill=_fill(transform))


def _pad(transform, translation):
    padding = transform.padding
    return oa.Pad(padding if isinstance(padding, int) else list(padding), _fill(transform), _border(transform, *_BORDERS.values()))


def _resized_crop(transform, translation):
    return oa.RandomResizedCrop(_sides(transform), transform.scale, transform.ratio, _filter(transform, translation))


def _quarter(p=1.0):
    return oa.RandomApply([oa.RandomRotation([90, 90], expand=True)], p)


def _turns(transform, translation):
    """All four are equally likely."""
    return oa.Compose([oa.RandomApply([oa.RandomRotation([180, 180])], 0.5), _quarter(0.5)])


def _symmetries(transform, translation):
    """All eight are equally likely."""
    return oa.Compose([oa.RandomHorizontalFlip(0.5), oa.RandomVerticalFlip(0.5), _quarter(0.5)])


def _transpose(transform, translation):
    return oa.Compose([_quarter(), oa.RandomVerticalFlip(1)])


def _rotate(transform, translation):
    _only("", ("crop_border", getattr(transform, "crop_border", False), False))
    low, high = _pair(transform.limit)
    return oa.RandomRotation([low, high], _warp(transform), fill=_fill(transform), padding_mode=_outside(transform))


def _axes(name, value):
    """(across, down), each [least, most]."""
    if isinstance(value, dict):
        return [list(_pair(value[axis])) for axis in ("x", "y")]
    return [list(_pair(value))] * 2


def _affine(transform, translation):
    """ShiftScaleRotate is one, too."""
    _only("", ("fit_output", transform.fit_output, False), ("balanced_scale", getattr(transform, "balanced_scale", False), False))
    if any(bound != 0 for span in _axes("shear", transform.shear) for bound in span):
        raise TransformError(f"shear={transform.shear!r} is not there: leave it out")
    pixels = getattr(transform, "translate_px", None)
    if pixels is not None and any(bound != 0 for span in _axes("translate_px", pixels) for bound in span):
        raise TransformError("translate_px is not there: give translate_percent")
    moved = [[0, 0]] * 2 if transform.translate_percent is None else _axes("translate_percent", transform.translate_percent)
    for low, high in moved:
        if low != -high:
            raise TransformError(f"an image is moved as far to the left as to the right: give translate_percent=({-high}, {high})")
    across, down = _axes("scale", transform.scale)
    # Turned clockwise here, and the other way there.
    low, high = _pair(transform.rotate)
    return oa.RandomAffine([0.0 - high, 0.0 - low], [moved[0][1], moved[1][1]] if moved != [[0, 0]] * 2 else None,
                           across if across != [1, 1] or down != [1, 1] else None, None, _warp(transform), _fill(transform),
                           scale_y=None if transform.keep_ratio or across == down and across[0] == across[1] else down,
                           padding_mode=_outside(transform))


def _brightness_contrast(transform, translation):
    _only("", ("brightness_by_max", transform.brightness_by_max, True), ("ensure_safe_range", getattr(transform, "ensure_safe_range", False), False))
    return oa.Levels(brightness=_pair(transform.brightness_limit), contrast=[1 + bound for bound in _pair(transform.contrast_limit)], p=1)


def _gamma(transform, translation):
    return oa.Levels(gamma=[bound / 100 for bound in _pair(transform.gamma_limit)], p=1)


def _rgb_shift(transform, translation):
    """Limits of at most 1 are parts of 255."""
    spans = [_pair(getattr(transform, f"{name}_shift_limit")) for name in "rgb"]
    spans = [[bound if max(map(abs, span)) > 1 else bound * 255 for bound in span] for span in spans]
    return oa.Levels(red=spans[0], green=spans[1], blue=spans[2], p=1)


def _hue_saturation_value(transform, translation):
    return oa.HueSaturationValue(*(list(_pair(getattr(transform, f"{name}_shift_limit"))) for name in ("hue", "sat", "val")), 1)


def _color_jitter(transform, translation):
    return oa.ColorJitter(*([float(bound) for bound in _pair(getattr(transform, name))]
                            for name in ("brightness", "contrast", "saturation", "hue")))


def _to_gray(transform, translation):
    _only("", ("method", getattr(transform, "method", "weighted_average"), "weighted_average"))
    channels = getattr(transform, "num_output_channels", 3)
    if channels not in (1, 3):
        raise TransformError(f"num_output_channels={channels}: give 1 or 3")
    return oa.Grayscale(channels)


def _posterize(transform, translation):
    bits = transform.num_bits
    if isinstance(bits, list):
        raise TransformError("its num_bits are of each channel: give one, or (least, most)")
    low, high = _pair(bits)
    return oa.RandomChoice([oa.RandomPosterize(each, 1) for each in range(low, high + 1)])


def _solarize(transform, translation):
    if hasattr(transform, "threshold_range"):
        return oa.RandomSolarize(_fixed("threshold_range", transform.threshold_range) * 255, 1)
    return oa.RandomSolarize(_fixed("threshold", transform.threshold), 1)


def _equalize(transform, translation):
    _only("", ("by_channels", transform.by_channels, True), ("mask", transform.mask, None))
    return oa.RandomEqualize(1)


def _gaussian_blur(transform, translation):
    """Of blur_limit 0 the kernel is as large as the most sigma needs: what that adds is below what a byte shows."""
    sigma = [max(bound, 0.001) for bound in _pair(transform.sigma_limit)]
    low, high = _pair(transform.blur_limit)
    if high == 0:
        return oa.GaussianBlur(2 * int(sigma[1] * 3.5) + 1, sigma)
    if low == 0:
        raise TransformError(f"blur_limit={transform.blur_limit!r}: give 0, or (least, most) from 3 on")
    # An even one is made odd by one more.
    sizes = [each + 1 if each % 2 == 0 else each for each in range(low, high + 1)]
    odd = sorted(set(sizes))
    return oa.RandomChoice([oa.GaussianBlur(each, sigma) for each in odd], [sizes.count(each) for each in odd])


def _sizes(transform, most=99):
    """[least, most] of a square's side."""
    sizes = [max(3, int(each) + (int(each) % 2 == 0)) for each in _pair(transform.blur_limit)]
    if max(sizes) > most:
        raise TransformError(f"blur_limit={transform.blur_limit!r}: sizes are up to {most}")
    return [sizes[0], max(sizes)]


def _motion_blur(transform, translation):
    return oa.MotionBlur(_sizes(transform), list(transform.angle_range), list(transform.direction_range), bool(transform.allow_shifted), 1)


def _sharpen(transform, translation):
    _only("", ("method", getattr(transform, "method", "kernel"), "kernel"))
    return oa.Sharpen(list(_pair(transform.alpha)), list(_pair(transform.lightness)), 1)


def _noise(transform, translation):
    _only("", ("per_channel", transform.per_channel, True), ("noise_scale_factor", getattr(transform, "noise_scale_factor", 1), 1))
    if not hasattr(transform, "std_range"):
        raise TransformError("var_limit is of older versions: give std_range")
    return oa.GaussianNoise(_fixed("mean_range", transform.mean_range), list(_pair(transform.std_range)))


def _compression(transform, translation):
    kind = str(getattr(transform.compression_type, "name", transform.compression_type)).lower()
    _only("", ("compression_type", kind, "jpeg"))
    return oa.JPEG(list(_pair(transform.quality_range)))


def _coarse_dropout(transform, translation):
    if not hasattr(transform, "num_holes_range"):
        raise TransformError("max_holes is of older versions: give num_holes_range, hole_height_range and hole_width_range")
    _only("", ("fill_mask", getattr(transform, "fill_mask", getattr(transform, "mask_fill_value", None)), None))
    fill = getattr(transform, "fill", getattr(transform, "fill_value", 0))
    if isinstance(fill, str) and fill not in ("random", "random_uniform"):
        raise TransformError(f"fill={fill!r} is not there: give a colour, \"random\" or \"random_uniform\"")
    return oa.CoarseDropout(*(list(_pair(getattr(transform, f"{name}_range"))) for name in ("num_holes", "hole_height", "hole_width")),
                            fill if isinstance(fill, str) else _color(fill), 1)


def _normalize(transform, translation):
    _only("", ("normalization", getattr(transform, "normalization", "standard"), "standard"))
    if transform.mean is None or transform.std is None:
        raise TransformError("its mean or std is None: give numbers")
    share = transform.max_pixel_value / 255
    return oa.Normalize(*([written(float(each)) * share for each in ([values] * 3 if isinstance(values, (int, float)) else values)]
                          for values in (transform.mean, transform.std)))


def _to_float(transform, translation):
    if transform.max_value not in (None, 255):
        raise TransformError(f"max_value={transform.max_value!r}: floats are value / 255; leave it out")
    return oa.Cast("float32")


def _to_tensor(transform, translation):
    _only("", ("transpose_mask", getattr(transform, "transpose_mask", False), False))
    return oa.Layout("CHW")


def _one_of(transform, translation):
    weights = [float(each.p) for each in transform.transforms]
    return oa.RandomChoice([translation.ops(each, f"transforms[{number}]", True)
                            for number, each in enumerate(transform.transforms)], weights)


def _some_of(transform, translation):
    """Which ones is one choice of all that there are."""
    ordered = type(transform).__name__ == "RandomOrder"
    each = [translation.ops(inner, f"transforms[{number}]") for number, inner in enumerate(transform.transforms)]
    choices = [*(itertools.permutations if ordered else itertools.combinations)(each, min(transform.n, len(each)))]
    if getattr(transform, "replace", False):
        raise TransformError("replace=True is not there: give replace=False")
    if len(choices) > _MOST_CHOICES:
        raise TransformError(f"it chooses from {len(choices)} combinations, and a pipeline has place for {_MOST_CHOICES}: give OneOf, or fewer"
                             " transforms")
    return oa.RandomChoice([oa.Compose(choice) for choice in choices])


def _one_or_other(transform, translation):
    first, *_, last = [translation.ops(each, f"transforms[{number}]", True) for number, each in enumerate(transform.transforms)]
    p = float(transform.p)
    return oa.RandomChoice([first, last], [p, 1 - p])


def _all_of(transform, translation):
    return oa.Compose([translation.ops(each, f"transforms[{number}]") for number, each in enumerate(transform.transforms)])


_KNOWN = {
    "Resize": _resize,
    "LongestMaxSize": _max_size("contain"),
    "SmallestMaxSize": _max_size("cover"),
    "PadIfNeeded": _pad_if_needed,
    "Pad": _pad,
    "RandomCrop": _random_crop,
    "CenterCrop": _center_crop,
    "RandomResizedCrop": _resized_crop,
    "HorizontalFlip": lambda transform, translation: oa.RandomHorizontalFlip(1),
    "VerticalFlip": lambda transform, translation: oa.RandomVerticalFlip(1),
    "Transpose": _transpose,
    "RandomRotate90": _turns,
    "D4": _symmetries,
    "SquareSymmetry": _symmetries,
    "Rotate": _rotate,
    "ShiftScaleRotate": _affine,
    "Affine": _affine,
    "RandomBrightnessContrast": _brightness_contrast,
    "RandomGamma": _gamma,
    "RGBShift": _rgb_shift,
    "HueSaturationValue": _hue_saturation_value,
    "ColorJitter": _color_jitter,
    "ToGray": _to_gray,
    "ChannelShuffle": lambda transform, translation: oa.RandomChannelPermutation(),
    "InvertImg": lambda transform, translation: oa.RandomInvert(1),
    "Posterize": _posterize,
    "Solarize": _solarize,
    "Equalize": _equalize,
    "GaussianBlur": _gaussian_blur,
    "Blur": lambda transform, translation: oa.Blur(_sizes(transform), 1),
    "MedianBlur": lambda transform, translation: oa.MedianBlur(_sizes(transform, 15), 1),
    "MotionBlur": _motion_blur,
    "Sharpen": _sharpen,
    "GaussNoise": _noise,
    "CoarseDropout": _coarse_dropout,
    "ImageCompression": _compression,
    "Normalize": _normalize,
    "ToFloat": _to_float,
    "ToTensorV2": _to_tensor,
    "OneOf": _one_of,
    "SomeOf": _some_of,
    "RandomOrder": _some_of,
    "OneOrOther": _one_or_other,
    "Sequential": _all_of,
    "Compose": _all_of,
    "NoOp": lambda transform, translation: [],
}
_CHANCES = ("levels", "hue_saturation_value", "coarse_dropout", "box_blur", "median_blur", "motion_blur", "sharpen")     # ops with a p that torchvision lacks
_WHY = {
    "CLAHE": "there is Equalize",
    "Erasing": "there is CoarseDropout; or oneaccess.transforms.RandomErasing(), whose ratio is drawn as torchvision does",
    "GridDropout": "there is CoarseDropout",
    "ElasticTransform": "its noise is another than that of op elastic_transform, which is torchvision's",
    "Perspective": "its corners are drawn from a normal distribution: there is oneaccess.transforms.RandomPerspective()",
    "GridDistortion": "there is Affine",
    "OpticalDistortion": "there is Affine",
    "Lambda": "it is a function of Python",
}


class _Translation:
    """What is known on the way."""

    def __init__(self, antialias):
        self.antialias = antialias
        self.within = None      # no image is higher or wider here; None: not known

    def ops(self, transform, place, forced=False):
        """A Pipeline. forced: its p does not count."""
        name = type(transform).__name__
        try:
            if type(transform).__module__.split(".")[0] not in ("albumentations", "albumentationsx"):
                raise TransformError("it is Python of your own")
            if name not in _KNOWN:
                raise TransformError(_WHY.get(name, "there is no op like it"))
            before = self.within
            made = oa.Compose(made if isinstance(made := _KNOWN[name](transform, self), list) else [made])
            p = 1.0 if forced or name == "OneOrOther" or getattr(transform, "always_apply", False) is True else float(transform.p)
            self._bound(name, made, before, p)
            return _perhaps(made, p)
        except AttributeError as missing:     # of another version
            raise TransformError(f"{place}, {name}, cannot be translated: {missing}, as in an older albumentations: install 2.0.8, or give Loader"
                                 " the data set by oneaccess.wrap()") from missing
        except TransformError as why:
            if why.args and getattr(why, "is_placed", False):
                where = TransformError(f"{place}.{why}")
            else:
                where = TransformError(f"{place}, {name}, cannot be translated: {why}. Leave it out here and do it to the finished batches, or"
                                       " keep all of it and give Loader the data set by oneaccess.wrap()")
            where.is_placed = True
            raise where from None

    def _bound(self, name, made, before, p):
        """After the transform. What holds others has told of them."""
        if name in ("Compose", "Sequential") and p == 1:
            return
        self.within = before
        if len(made.ops) == 1 and name in ("Resize", "LongestMaxSize", "RandomCrop", "CenterCrop", "RandomResizedCrop", "PadIfNeeded"):
            size = made.ops[0].parameters["size"]
            self.within = list(size) if p == 1 else None
        elif any(op.op in ("resize", "pad", "rotate", "random_resized_crop", "center_crop", "random_crop", "fixed_size_crop")
                 for op in made.ops) and name != "Rotate":
            self.within = None


def _perhaps(made, p):
    """One op with a probability of its own, so that it is told and shared as such; or a group."""
    op = made.ops[0] if len(made.ops) == 1 else None
    if p == 1 or not made.ops:
        return made
    if op is not None and op.op == "grayscale" and op.parameters["num_output_channels"] == 3:
        return oa.Compose([oa.RandomGrayscale(p)])
    if op is not None and op.op in (*CHANCES, *_CHANCES):
        return oa.Compose([oa.Op(op.op, **{**op.parameters, "p": p})])
    return oa.RandomApply([made], p)


def _check_params(transform):
    """What Compose says of boxes, key points and further targets."""
    processors = getattr(transform, "processors", {})
    boxes = getattr(processors.get("bboxes"), "params", None)
    if boxes is not None:
        form = getattr(boxes, "format", getattr(boxes, "coord_format", None))
        if form != "pascal_voc":
            raise TransformError(f"BboxParams: format={form!r}: boxes are pixels here, left, top, right, bottom: give \"pascal_voc\", and boxes"
                                 " such as oneaccess.from_coco() has them")
        for name, most in (("min_area", 1), ("min_width", 1), ("min_height", 1), ("min_visibility", 0)):
            if getattr(boxes, name, 0) > most:
                raise TransformError(f"BboxParams: {name}={getattr(boxes, name)}: boxes are removed of which a side has less than a pixel left:"
                                     f" leave it out, and remove more from the finished batches")
    points = getattr(processors.get("keypoints"), "params", None)
    if points is not None:
        form = getattr(points, "format", getattr(points, "coord_format", None))
        if form != "xy":
            raise TransformError(f"KeypointParams: format={form!r}: key points are x and y in pixels: give \"xy\"")
        if points.remove_invisible:
            raise TransformError("KeypointParams: key points outside of the image stay, with visibility 0: give remove_invisible=False")
    for name, kind in (getattr(transform, "additional_targets", None) or getattr(transform, "_additional_targets", None) or {}).items():
        if kind not in ("image", "mask", "masks"):
            raise TransformError(f"additional_targets: {name!r} is {kind!r}: further images and masks are there, by oneaccess.Image and Mask")


def from_albumentations(transform, *, antialias: bool = False) -> oa.Pipeline:
    """Translates a pipeline of albumentations (1.4 or 2.0) or AlbumentationsX into a Pipeline for Loader.

        pipeline = oa.from_albumentations(A.Compose([A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), A.Normalize(), ToTensorV2()]),
                                          antialias=True)

    transform: a Compose, or a single transform. It is read, not run.
    antialias: True says that pixels may be Pillow's where an image is resized. OpenCV's bilinear, bicubic and Lanczos leave pixels
        out where they make an image smaller, which is not there, and the images differ much. cv2.INTER_AREA needs no such word.

    Random transforms have the same distribution, with draws of accessd. Pixels are albumentations', bit for bit, of crops, flips,
    Transpose, RandomRotate90, D4, RandomBrightnessContrast, RandomGamma, RGBShift, HueSaturationValue, Sharpen, Blur, MedianBlur,
    MotionBlur, CoarseDropout, ChannelShuffle, InvertImg, Posterize and Solarize.
    Of the others doc/albumentations.md in the sources has how far they are off. Boxes, key points and masks follow as oneaccess has
    them: fill_mask and mask_interpolation are oneaccess.Mask's.

    TransformError names the first transform that has no counterpart, and what to do.
    """
    _check_params(transform)
    if type(transform).__name__ == "Compose" and float(transform.p) != 1:
        raise TransformError(f"Compose: p={transform.p} is of all transforms, also those that make tensors: put Sequential(..., p={transform.p})"
                             " around those of images")
    return oa.Compose([_Translation(antialias).ops(transform, "transforms")])
