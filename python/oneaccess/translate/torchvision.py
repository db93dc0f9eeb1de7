# SPDX-License-Identifier: Apache-2.0
"""A pipeline of torchvision's transforms (v1 or v2), timm's or transformers', translated; or which of them cannot be,
and why.

The objects are read, not run: what is random in torchvision stays random here, from the daemon's draws.
None of these libraries is imported.
"""

import difflib
import struct

from .. import transforms as oa
from ..errors import TransformError
from . import processors, timm


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
    """v2 has a dict of fills by type of input, too, of which that of images counts: masks have oneaccess.Mask's."""
    fill = transform.fill
    if isinstance(fill, dict):
        named = {getattr(kind, "__name__", kind): value for kind, value in fill.items()}
        rest = fill.default_factory() if getattr(fill, "default_factory", None) else None
        found = named.get("Image", named.get("others", rest))
        if found is None and len(named) != 1:
            raise TransformError("has several fills, by type of input, and none of images")
        fill = next(iter(named.values())) if found is None else found
    if fill is None or isinstance(fill, (int, float)):
        return whole(fill)
    return [whole(value) for value in fill]


def whole(number):
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _filled(function, *names):
    def translate(transform):
        return function(fill=_fill(transform), **{name: getattr(transform, name) for name in names})
    return translate


def _jitter(transform):
    def span(value):
        return None if value is None else [float(bound) for bound in value]
    return oa.ColorJitter(span(transform.brightness), span(transform.contrast),
                          span(transform.saturation), span(transform.hue))


def _elastic(transform):
    """v1 has a list of a fill for all bands."""
    fill = _fill(transform)
    if isinstance(fill, list) and len(fill) == 1:
        fill = fill[0]
    return oa.ElasticTransform([float(value) for value in transform.alpha], [float(value) for value in transform.sigma],
                               transform.interpolation, fill)


def _erasing(transform):
    if transform.inplace:
        raise TransformError("inplace=True is not there: leave it out")
    value = transform.value
    if value is None:
        value = "random"
    if isinstance(value, (list, tuple)):
        value = value[0] if len(value) == 1 else list(value)
    return oa.RandomErasing(transform.p, transform.scale, transform.ratio, value)


def written(value):
    """A number as people write it: of a float32's the shortest that is the same float32, so that jobs share."""
    number = float(value)
    if not isinstance(value, float):
        for digits in range(1, 9):
            short = float(f"{number:.{digits}g}")
            if struct.pack("f", short) == struct.pack("f", number):
                return short
    return number


def _normalize(transform):
    if getattr(transform, "inplace", False):
        raise TransformError("inplace=True is not there: leave it out")
    return oa.Normalize([written(value) for value in transform.mean], [written(value) for value in transform.std])


def _to_dtype(transform):
    dtype = transform.dtype
    if isinstance(dtype, dict):
        raise TransformError("has several dtypes, by type of input")
    if not getattr(transform, "scale", True):
        raise TransformError("scale=False is not there: floats are value / 255")
    return oa.Cast(dtype)


def _classification(transform):
    """The preset of torchvision's weights for classification."""
    antialias = getattr(transform, "antialias", None)
    return [oa.Resize(list(transform.resize_size), transform.interpolation, None,
                      antialias if isinstance(antialias, bool) else None),  # "warn" of some versions
            oa.CenterCrop(list(transform.crop_size)), oa.ToTensor(), _normalize(transform)]


# What an op does where its p is left out.
CHANCES = {"color_jitter": 1, "gaussian_blur": 1, "gaussian_noise": 1, "hflip": 0.5, "vflip": 0.5, "random_grayscale": 0.1,
            "autocontrast": 0.5, "equalize": 0.5, "invert": 0.5, "posterize": 0.5, "solarize": 0.5, "sharpness": 0.5,
            "random_erasing": 0.5, "random_perspective": 0.5, "random_zoom_out": 0.5}


def _apply(transform):
    """One op with a probability of its own, so that it is told and shared as such; or a group."""
    chance = float(transform.p)
    ops = _held(transform)
    op = ops[0] if len(ops) == 1 else None
    if op is not None and op.op == "grayscale" and op.parameters.get("num_output_channels") == 3:
        return oa.RandomGrayscale(chance)
    if op is not None and op.op in CHANCES:
        return oa.Op(op.op, **{**op.parameters, "p": chance * op.parameters.get("p", CHANCES[op.op])})
    return oa.RandomApply(ops, chance)


def _choice(transform):
    choices = [oa.Pipeline(_ops_of(each, f"transforms[{number}]")) for number, each in enumerate(transform.transforms)]
    return oa.RandomChoice(choices, None if transform.p is None else [float(weight) for weight in transform.p])


def _order(transform):
    return oa.RandomOrder([oa.Pipeline(_ops_of(each, f"transforms[{number}]")) for number, each in enumerate(transform.transforms)])


def _sized(function, *names):
    """Of those that draw a size."""
    def translate(transform):
        antialias = transform.antialias
        return function(interpolation=transform.interpolation, antialias=antialias if isinstance(antialias, bool) else None,
                        **{name: getattr(transform, name) for name in names})
    return translate


def _iou_crop(transform):
    return oa.RandomIoUCrop(transform.min_scale, transform.max_scale, transform.min_aspect_ratio, transform.max_aspect_ratio,
                            transform.options, transform.trials)


def _fixed(transform):
    """torchvision.prototype's."""
    return oa.FixedSizeCrop((transform.crop_height, transform.crop_width), _fill(transform), transform.padding_mode)


def _sanitize(transform):
    """Boxes do that by themselves, at the end."""
    if transform.min_size != 1 or getattr(transform, "min_area", 1) > 1:
        raise TransformError("boxes with a side of less than 1 pixel are removed: leave min_size and min_area out, and remove more"
                             " from the finished batches")
    return []


def _clamp(transform):
    if getattr(transform, "clamping_mode", "auto") is None:
        raise TransformError("boxes are always cut off at the image's edges: leave clamping_mode out")
    return []


def _convert(transform):
    if str(getattr(transform.format, "name", transform.format)).upper() != "XYXY":
        raise TransformError("boxes are left, top, right, bottom (XYXY)")
    return []


def _held(transform):
    """The ops of the transforms that another one holds."""
    return [op for number, each in enumerate(transform.transforms) for op in _ops_of(each, f"transforms[{number}]")]


def _ops_of(transform, place):
    """The ops of a transform, whatever it holds. TransformError names what has no counterpart."""
    ops = []
    for where, each in _flatten(transform, place):
        made = _translate(where, each)
        ops += made if isinstance(made, list) else made.ops if isinstance(made, oa.Pipeline) else [made]
    return ops


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
    "TenCrop": _of(oa.TenCrop, "size", "vertical_flip"),
    "RandomCrop": _filled(oa.RandomCrop, "size", "padding", "pad_if_needed", "padding_mode"),
    "Pad": _filled(oa.Pad, "padding", "padding_mode"),
    "RandomHorizontalFlip": _of(oa.RandomHorizontalFlip, "p"),
    "RandomVerticalFlip": _of(oa.RandomVerticalFlip, "p"),
    "RandomRotation": _filled(oa.RandomRotation, "degrees", "interpolation", "expand", "center"),
    "RandomAffine": _filled(oa.RandomAffine, "degrees", "translate", "scale", "shear",
                            "interpolation", "center"),
    "RandomPerspective": _filled(oa.RandomPerspective, "distortion_scale", "p", "interpolation"),
    "ColorJitter": _jitter,
    "Grayscale": _of(oa.Grayscale, "num_output_channels"),
    "ScaleJitter": _sized(oa.ScaleJitter, "target_size", "scale_range"),
    "RandomShortestSize": _sized(oa.RandomShortestSize, "min_size", "max_size"),
    "RandomResize": _sized(oa.RandomResize, "min_size", "max_size"),
    "FixedSizeCrop": _fixed,
    "RandomZoomOut": _filled(oa.RandomZoomOut, "side_range", "p"),
    "RandomIoUCrop": _iou_crop,
    "SanitizeBoundingBoxes": _sanitize,
    "ClampBoundingBoxes": _clamp,
    "ConvertBoundingBoxFormat": _convert,
    "RandomPhotometricDistort": _of(oa.RandomPhotometricDistort, "brightness", "contrast", "saturation", "hue", "p"),
    "RandomChannelPermutation": _of(oa.RandomChannelPermutation),
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
    "AugMix": _filled(oa.AugMix, "severity", "mixture_width", "chain_depth", "alpha", "all_ops", "interpolation"),
    "ElasticTransform": _elastic,
    "JPEG": _of(oa.JPEG, "quality"),
    "GaussianNoise": _of(oa.GaussianNoise, "mean", "sigma", "clip"),
    "RandomErasing": _erasing,
    "ImageClassification": _classification,
    "RandomApply": _apply,
    "RandomChoice": _choice,
    "RandomOrder": _order,
}
_WHY = {
    "MixUp": "it works on batches: Compose([..., oneaccess.transforms.MixUp(alpha=, num_classes=)]) with what is translated of the others",
    "CutMix": "it works on batches: Compose([..., oneaccess.transforms.CutMix(alpha=, num_classes=)]) with what is translated of the others",
    "Lambda": "it is a function of Python",
    "LinearTransformation": "it is a matrix over all pixels",
    "ClampKeyPoints": "key points keep their places outside of the image, with visibility 0",
    "SanitizeKeyPoints": "key points outside of the image stay, with visibility 0",
    "UniformTemporalSubsample": "it is of videos, whose frames the Loader chooses: video(frames=, clip=\"spread\")",
}


def _flatten(transform, place):
    """(where, transform) one after another."""
    inner = getattr(transform, "transforms", None)
    name = type(transform).__name__
    always = name == "Compose" or (name == "RandomApply" and transform.p == 1)
    if always and inner is not None:
        for number, each in enumerate(inner):
            yield from _flatten(each, f"{place}[{number}]")
    elif name == "Sequential":
        for number, each in enumerate(transform):
            yield from _flatten(each, f"{place}[{number}]")
    else:
        yield place, transform


def _translate(place, transform):
    name = type(transform).__name__
    library = type(transform).__module__.split(".")[0]
    known, why_not = (timm.KNOWN, timm.WHY) if library == "timm" else (_KNOWN, _WHY)
    try:
        if library == "transformers":
            return processors.ops_of(transform)
        if library == "torchaudio":
            raise TransformError("it is of sounds, for oneaccess.from_torchaudio()")
        if library not in ("torchvision", "torch", "timm"):
            raise TransformError("it is Python of your own")
        if name in known:
            return known[name](transform)
        if name in _NOTHING and library != "timm":
            return []
        raise TransformError(why_not.get(name, "there is no op like it"))
    except TransformError as why:
        raise TransformError(
            f"{place}, {name}, cannot be translated: {why}. Leave it out here and do it to the"
            " finished batches, or keep all of it and give Loader the data set by oneaccess.wrap()") from None


def from_torchvision(transform) -> oa.Pipeline:
    """Translates a pipeline of torchvision, timm or transformers into a Pipeline for Loader.

        pipeline = oa.from_torchvision(torchvision.models.ResNet50_Weights.DEFAULT.transforms())

    transform: torchvision's Compose (v1 or v2), a single transform, the transforms() of its weights for classification,
        what timm.data.create_transform() returns, or an image processor of transformers with backend="pil". It is read, not
        run.

    TransformError names the first transform that has no counterpart, and what to do.

    Without ToTensor() or its like, images are uint8, [height, width, channels]. Pixels are those of torchvision on Pillow's
    images, wherever the pipeline makes tensors. On tensors torchvision rounds differently, sometimes by one, and so does
    its GaussianBlur here. v2's ToDtype(scale=True) multiplies by 1 / 255, where ToTensor and accessd divide, so its last
    bit may differ. Random transforms have the same distribution, with draws of accessd.
    """
    return oa.Compose(_ops_of(transform, "transforms"))


def pipeline_for(model: str, train: bool = False, size: int | None = None) -> oa.Pipeline:
    """The pipeline that a published model was evaluated with.

        pipeline = oa.pipeline_for("timm/resnet50.a1_in1k")

    model: "timm/NAME" or "timm/NAME.TAG" (timm.list_pretrained()), or "torchvision/WEIGHTS", such as
        "torchvision/ResNet50_Weights.IMAGENET1K_V2". The library must be installed; nothing is downloaded.
    train: True: the pipeline for training; timm's only.
    size: the side in pixels, in place of the model's.

    TransformError: there is no such model, or its transforms have no counterpart.
    """
    library, _, name = model.partition("/")
    if library == "timm":
        return from_torchvision(_of_timm(name, train, size))
    if library != "torchvision":
        raise TransformError(f"{model!r} names no library: \"timm/NAME\" or \"torchvision/WEIGHTS\"")
    if train:
        raise TransformError("torchvision publishes what its weights are evaluated with, not how they are trained: see"
                             " oneaccess.imagenet_train()")
    try:
        from torchvision.models import get_weight
    except ImportError:
        raise TransformError("torchvision is not installed: pip install torchvision") from None
    try:
        weights = get_weight(name)
    except (KeyError, ValueError, AttributeError) as why:
        raise TransformError(f"torchvision has no weights {name!r} ({why}): as"
                             " \"torchvision/ResNet50_Weights.IMAGENET1K_V2\"") from None
    return from_torchvision(weights.transforms(**({"crop_size": size} if size else {})))


def _of_timm(name, train, size):
    try:
        import timm
    except ImportError:
        raise TransformError("timm is not installed: pip install timm") from None
    published = timm.get_pretrained_cfg(name, allow_unregistered=False) if timm.is_model(name) else None
    if published is None:
        near = difflib.get_close_matches(name, timm.list_models() + timm.list_pretrained(), 3)
        raise TransformError(f"timm has no model {name!r}; near are {', '.join(near) or 'none'}"
                             " (timm.list_pretrained())")
    config = timm.data.resolve_data_config({"input_size": (3, size, size)} if size else {},
                                           pretrained_cfg=published.to_dict(), use_test_size=not train)
    return timm.data.create_transform(**config, is_training=train)
