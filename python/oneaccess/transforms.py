# SPDX-License-Identifier: Apache-2.0
"""Transforms with torchvision's names and defaults.

Each function returns an Op, or a Pipeline of several; Compose() joins them. Nothing here touches an image: an op is a line
of the pipeline (oneaccess-pipeline(5)) that accessd runs, once for all jobs, with the pixels of Pillow and torchvision.

A parameter that is None has the default of oneaccess-pipeline(5), where the ranges are, too. Sizes are pixels, one number
or (height, width); fill is one number from 0 to 255 or (red, green, blue); interpolation is a word such as "bilinear", or
torchvision's InterpolationMode; p is the probability for a sample.
"""

import itertools
import json
import math
import numbers

from .errors import TransformError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)     # and Qwen2-VL's
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
KINETICS_MEAN = (0.43216, 0.394666, 0.37645)    # of torchvision's r3d_18, mc3_18, r2plus1d_18 and s3d
KINETICS_STD = (0.22803, 0.22145, 0.216989)

_DTYPES = {"uint8": "u8", "float16": "f16", "half": "f16", "bfloat16": "bf16", "float32": "f32",
           "float": "f32", "u8": "u8", "f16": "f16", "bf16": "bf16", "f32": "f32"}


class Op:
    """One op of a pipeline with its parameters. Those that are None have the defaults of oneaccess-pipeline(5)."""

    def __init__(self, op: str, **parameters):
        for name, value in parameters.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise TransformError(f"{op}: {name} is {value}; give a number")
        self.op = op
        self.parameters = {name: value for name, value in parameters.items() if value is not None}

    def spec(self) -> dict:
        """The op as a dict, as it is in the JSON."""
        return {"op": self.op, **self.parameters}

    def __repr__(self):
        return f"{self.op}({', '.join(f'{n}={v!r}' for n, v in self.parameters.items())})"

    def __eq__(self, other):
        return isinstance(other, Op) and self.spec() == other.spec()

    def __hash__(self):
        return hash(json.dumps(self.spec(), sort_keys=True))


# What makes of a file's bytes what the other ops work on.
FIRST = ("decode", "audio", "cloud", "video", "bands", "volume", "duration")
# The first field of those that give a length behind the label.
FIRST_FIELD = {"audio": "audio", "cloud": "points", "video": "video", "duration": "duration"}
# Those of which one file gives several views.
_PICTURES = ("decode", "video", "bands")
# What stands behind cast and layout.
_BEHIND = ("random_erasing", "filter", "map", "one_hot", "smooth", "mixup", "cutmix", "mosaic")


class Pipeline:
    """A list of ops. ``json`` is the text that accessd gets. TransformError: an element is no Op."""

    def __init__(self, ops):
        self.ops = tuple(ops)
        for op in self.ops:
            if not isinstance(op, Op):
                raise TransformError(
                    f"{op!r} is no transform of oneaccess.transforms; translate torchvision's with"
                    " oneaccess.from_torchvision()")

    @property
    def json(self) -> str:
        ops = list(self.ops)
        if not ops or ops[0].op not in FIRST:
            ops.insert(0, Op("decode"))
        return json.dumps({"ops": [op.spec() for op in ops]}, separators=(",", ":"))

    def __repr__(self):
        return f"Compose([{', '.join(map(repr, self.ops))}])"

    def __eq__(self, other):
        return isinstance(other, Pipeline) and self.json == other.json

    def __hash__(self):
        return hash(self.json)


def _size(size):
    """torchvision takes (n,) for n, too."""
    if size is None or isinstance(size, int):
        return size
    try:
        given = [size] if isinstance(size, (str, numbers.Real)) else [*size]
        whole = [int(side) for side in given if not isinstance(side, str)]
    except (TypeError, ValueError, OverflowError):
        given, whole = size, None
    if whole != given:
        raise TransformError(f"size is {size!r}: a whole number of pixels, or (height, width)")
    return whole[0] if len(whole) == 1 else whole


def _list(values):
    return values if values is None or isinstance(values, (int, float, str)) else list(values)


def _interpolation(value):
    """A word, or torchvision's InterpolationMode."""
    return value if value is None or isinstance(value, str) else value.value


def ops_of(text) -> list:
    """Those of a pipeline's text, of which the first is one; [] of a name, and where the daemon says what is wrong."""
    try:
        spec = json.loads(text)
        ops = spec["ops"] if isinstance(spec, dict) else spec
        return ops if isinstance(ops[0]["op"], str) else []
    except (ValueError, KeyError, IndexError, TypeError):
        return []


def sides_of(ops) -> dict[str, str]:
    """Of a pipeline's ops, {name: first op} of the views that begin with one of their own."""
    try:
        return {name: behind["op"] for op, behind in zip(ops, ops[1:]) if op["op"] == "view" and behind["op"] in FIRST for name in op["names"]}
    except (KeyError, TypeError):
        return {}       # accessd says what is wrong


def Compose(transforms) -> Pipeline:
    """A Pipeline of transforms, one after another: ops, or pipelines of several.

        pipeline = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(), Normalize(IMAGENET_MEAN, IMAGENET_STD)])
    """
    return Pipeline(_settle(_flat(transforms)))


_OF_LABELS = ("filter", "map", "one_hot", "smooth", "mixup", "cutmix", "mosaic")


def views(first: Pipeline, *others: Pipeline, **named) -> Pipeline:
    """A pipeline of several views of each sample, which is decoded once; each view has its own draws.

        loader = oa.Loader(path, oa.views(augmented, augmented), batch_size=256)     # SimCLR, MoCo
        for batch in loader: batch["image"], batch["image2"]
        oa.views(large, large, local=(small, 6))                    # DINO: image, image2, local1 ... local6

    first: the Pipeline of the field "image". It alone may have transforms of labels.
    others: the pipelines of "image2", "image3" and so on.
    named: the pipelines of fields with these names; (pipeline, n) makes n fields, NAME1 to NAMEn. Of a field that images= of wrap() names it is the pipeline of that
        field's own image.

    Of clips (video()) the fields are "video", "video2" and so on, of the same frames. Beside a clip stands the sound that belongs to it:

        loader = oa.Loader(path, oa.views(oa.video(16, 224, fps=8), oa.audio(16000, 2.0)), batch_size=8)
        for batch in loader: batch["video"], batch["audio"], batch["audio_length"]

    It begins when the clip's first frame is shown, by the times in the file, and is as long as asked; audio() is without crop, and
    what may stand behind it may here. Where nothing sounds are zeros: before a sound that begins later, behind its end, and everywhere in a
    video without sound, whose audio_length is 0. Else audio_length is where the sound ends, of its own frames or of a spectrogram's.

    A view of another medium, or of numbers beside pictures, is of a file of its own: the field of the sample that has the view's name.

        data = oa.from_tar("clips-{000..099}.tar", {"image": "jpg", "sound": "flac", "points": "ply"})
        loader = oa.Loader(data, oa.views(oa.imagenet_train(224), sound=oa.audio(16000, 4.0), points=oa.point_clouds(20000)), batch_size=64)
        for batch in loader: batch["image"], batch["sound"], batch["sound_length"], batch["points"], batch["points_length"]

    Beside sounds, points and volumes all views are, of whichever medium. NAME_length of a sound, points or a clip is what `length` is of a first one.

    A batch is a dict then. At most 15 views besides the first.
    """
    ops = [op for op in first.ops if op.op not in _OF_LABELS]
    decode = next((op for op in ops if op.op in FIRST), Op("decode"))
    what = FIRST_FIELD.get(decode.op, "image")
    heard = [view for view in others if decode.op == "video" and isinstance(view, Pipeline) and view.ops and view.ops[0].op == "audio"]
    seen = [view for view in others if view not in heard]
    for name, view in [*((f"{what}{at}", view) for at, view in enumerate(seen, 2)), *(("audio", view) for view in heard), *named.items()]:
        view, count = view if isinstance(view, tuple) else (view, None)
        if not isinstance(view, Pipeline):
            raise TransformError(f"view {name} is {view!r}: a view is a Pipeline, as Compose() makes them, or (Pipeline, how many)")
        wrong = [op.op for op in view.ops if op.op in _OF_LABELS]
        if wrong:
            raise TransformError(f"view {name} has {wrong[0]}, which works on the sample: put it into the first pipeline")
        own = [op for op in view.ops if op.op in FIRST] or [Op("decode")] * (decode.op not in _PICTURES)
        if own == [decode] and decode.op in _PICTURES:
            own = []
        if own and own[0].op == decode.op == "decode":
            raise TransformError(f"view {name} has {own[0]}, and each picture is decoded once, as the first pipeline says: put it there")
        if own and name not in named and view not in heard:
            raise TransformError(f"view {name} begins with {own[0].op}, and is of a file of its own: name it as its field, views(first, sound=...)")
        names = [name] if count is None else [f"{name}{number}" for number in range(1, count + 1)]
        ops += [Op("view", names=names), *own, *(op for op in view.ops if op.op not in FIRST)]
    return Pipeline([*ops, *(op for op in first.ops if op.op in _OF_LABELS)])


def _settle(ops):
    """ToTensor() and its like stand anywhere in torchvision; the daemon casts and lays out at the end.
    Of several the last one counts, as it does there."""
    last = {op.op: op for op in ops if isinstance(op, Op) and op.op in ("cast", "layout")}
    rest = [op for op in ops if not (isinstance(op, Op) and op.op in ("cast", "layout"))]
    at = len(rest)
    while at > _grouped(rest) and isinstance(rest[at - 1], Op) and rest[at - 1].op in _BEHIND:
        at -= 1
    end = [last[name] for name in ("cast", "layout") if name in last]
    return rest[:at] + end + rest[at:]


def _grouped(ops):
    """Where the last group of a random_apply ends: nothing may be put into it."""
    ends = (at + 1 + op.parameters.get("ops", 1) + op.parameters.get("otherwise", 0)
            for at, op in enumerate(ops) if isinstance(op, Op) and op.op == "random_apply")
    return max(ends, default=0)


# ---- geometry ----


def Resize(size, interpolation=None, max_size=None, antialias=None, *, fit=None) -> Op:
    """Resizes: size is the shorter side, or (height, width).

    max_size bounds the longer side. fit "cover" or "contain" keeps the proportion: the smallest image that covers (height,
    width), or the largest within it, like timm's ResizeKeepRatio.
    """
    return Op("resize", size=_size(size), interpolation=_interpolation(interpolation),
              max_size=max_size, antialias=antialias, fit=fit)


def _drawn(op, antialias, **parameters):
    """Of an op that resizes to a drawn size."""
    if antialias is False:
        raise TransformError(f"{op}: antialias=False is not there: pictures are always antialiased, as Pillow's are")
    return Op(op, **parameters)


def ScaleJitter(target_size, scale_range=None, interpolation=None, antialias=None) -> Op:
    """Resizes, the proportion kept, to what fits target_size times a factor drawn from scale_range, default (0.1, 2).

    Sizes differ then, so a crop must follow: FixedSizeCrop(target_size). Of a target that is no square torchvision compares
    the first side with the width, and so does this.
    """
    return _drawn("scale_jitter", antialias, target_size=_size(target_size), scale_range=_list(scale_range),
                  interpolation=_interpolation(interpolation))


def RandomShortestSize(min_size, max_size=None, interpolation=None, antialias=None) -> Op:
    """Resizes: the shorter side is one of min_size, a number or up to 16. max_size bounds the longer side.

    Sizes differ then: FixedSizeCrop((height, width)) must follow, max_size wide and high if nothing may be cut off.
    """
    return _drawn("random_shortest_size", antialias, min_size=_size(min_size), max_size=max_size,
                  interpolation=_interpolation(interpolation))


def RandomResize(min_size: int, max_size: int, interpolation=None, antialias=None) -> Op:
    """Resizes: the shorter side is drawn from min_size to max_size - 1. A crop must follow, as RandomCrop(min_size)."""
    return _drawn("random_resize", antialias, min_size=min_size, max_size=max_size, interpolation=_interpolation(interpolation))


def CenterCrop(size, *, fill=None, half=None) -> Op:
    """Crops the center. fill is the colour around a smaller image.

    half: where a center at half a pixel begins: "even" (default), as in torchvision, or "down", as in Hugging Face's
        processors.
    """
    return Op("center_crop", size=_size(size), fill=_list(fill), half=half)


def RandomCrop(size, padding=None, pad_if_needed=None, fill=None, padding_mode=None) -> Op:
    """Crops a part at a random place, after padding. pad_if_needed: also pad an image that is too small."""
    return Op("random_crop", size=_size(size), padding=_list(padding),
              pad_if_needed=pad_if_needed, fill=_list(fill), padding_mode=padding_mode)


def FixedSizeCrop(size, fill=None, padding_mode=None) -> Op:
    """Crops a part at a random place, and adds what is missing at the bottom and at the right: that of torchvision's references
    for detection. Of an image that is not larger it is a padding to this size alone."""
    return Op("fixed_size_crop", size=_size(size), fill=_list(fill), padding_mode=padding_mode)


def RandomIoUCrop(min_scale=None, max_scale=None, min_aspect_ratio=None, max_aspect_ratio=None, sampler_options=None,
                  trials=None) -> Op:
    """SSD's crop: a part that has a box's center and overlaps a box by a drawn share, or the image as it is.

    Boxes whose center is outside are removed. Sizes differ then: Resize((height, width)) or FixedSizeCrop() must follow.
    Samples must have boxes: oneaccess.from_coco() and others, or boxes=.
    """
    return Op("random_iou_crop", min_scale=min_scale, max_scale=max_scale, min_aspect_ratio=min_aspect_ratio,
              max_aspect_ratio=max_aspect_ratio, sampler_options=_list(sampler_options), trials=trials)


def RandomResizedCrop(size, scale=None, ratio=None, interpolation=None, antialias=None, *,
                      or_interpolation=None) -> Op:
    """Crops a random part and resizes it.

    scale: (least, most) share of the area; ratio: (least, most) width to height. or_interpolation: a second filter, used
        for half of the samples.
    """
    if antialias is False:
        raise TransformError("RandomResizedCrop: antialias=False is not there: pictures are always"
                             " antialiased, as Pillow's are")
    return Op("random_resized_crop", size=_size(size), scale=_list(scale), ratio=_list(ratio),
              interpolation=_interpolation(interpolation),
              or_interpolation=_interpolation(or_interpolation))


def FiveCrop(size) -> Op:
    """Crops the four corners and the center: the image gets a first dimension of 5."""
    return Op("five_crop", size=_size(size))


def TenCrop(size, vertical_flip=None) -> Op:
    """FiveCrop() of the image and of the flipped one: the image gets a first dimension of 10."""
    return Op("ten_crop", size=_size(size), vertical_flip=vertical_flip)


def RandomHorizontalFlip(p=None) -> Op:
    """Flips left and right."""
    return Op("hflip", p=p)


def RandomVerticalFlip(p=None) -> Op:
    """Flips top and bottom."""
    return Op("vflip", p=p)


def RandomRotation(degrees, interpolation=None, expand=None, center=None, fill=None, *, padding_mode=None) -> Op:
    """Rotates counter-clockwise by an angle from degrees: (least, most), or x for (-x, x).

    padding_mode: what is outside of the image, as Pad has it: "constant" (fill), "edge", "reflect" or "symmetric".
    """
    return Op("rotate", degrees=_list(degrees), interpolation=_interpolation(interpolation),
              expand=expand, center=_list(center), fill=_list(fill), padding_mode=padding_mode)


def RandomAffine(degrees, translate=None, scale=None, shear=None, interpolation=None, fill=None,
                 center=None, *, scale_y=None, padding_mode=None) -> Op:
    """Rotates, moves, scales and shears. A part that is None is not done, but degrees is required.

    scale_y: (least, most) of heights, drawn for themselves; scale is of widths then. padding_mode: as RandomRotation has it.
    """
    return Op("affine", degrees=_list(degrees), translate=_list(translate), scale=_list(scale),
              shear=_list(shear), interpolation=_interpolation(interpolation), fill=_list(fill),
              center=_list(center), scale_y=_list(scale_y), padding_mode=padding_mode)


def RandomPerspective(distortion_scale=None, p=None, interpolation=None, fill=None) -> Op:
    return Op("random_perspective", distortion_scale=distortion_scale, p=p, interpolation=_interpolation(interpolation),
              fill=_list(fill))


def Pad(padding, fill=None, padding_mode=None) -> Op:
    """Adds pixels: one number, (left and right, top and bottom), or (left, top, right, bottom)."""
    return Op("pad", padding=_list(padding), fill=_list(fill), padding_mode=padding_mode)


def RandomZoomOut(fill=None, side_range=None, p=None) -> Op:
    """Puts the image at a random place of a larger one; its sides are drawn from side_range, default (1, 4), times the image's.

    Sizes differ then: Resize((height, width)) or FixedSizeCrop() must follow.
    """
    return Op("random_zoom_out", fill=_list(fill), side_range=_list(side_range), p=p)


# ---- colours ----


def ColorJitter(brightness=None, contrast=None, saturation=None, hue=None, p=None) -> Op:
    """Changes brightness, contrast, saturation and hue in random order.

    Each is a range (least, most) of the factor, or x for (1 - x, 1 + x); hue: (-x, x). p is that of
    RandomApply([ColorJitter(...)], p).
    """
    return Op("color_jitter", brightness=_list(brightness), contrast=_list(contrast),
              saturation=_list(saturation), hue=_list(hue), p=p)


def RandomPhotometricDistort(brightness=None, contrast=None, saturation=None, hue=None, p=None) -> Op:
    """SSD's: changes brightness, contrast, saturation, hue and the channels' order, each with probability p. Each is (least, most)."""
    return Op("random_photometric_distort", brightness=_list(brightness), contrast=_list(contrast),
              saturation=_list(saturation), hue=_list(hue), p=p)


def Levels(gamma=None, contrast=None, brightness=None, red=None, green=None, blue=None, p=None) -> Op:
    """Values by a table: albumentations' RandomGamma, RandomBrightnessContrast and RGBShift, in this order, with their pixels.

        Levels(contrast=(0.8, 1.2), brightness=(-0.2, 0.2))

    Each is a number, or (least, most) of what is drawn for an image. gamma is the power of value / 255; values are multiplied by
    contrast; 255 * brightness is added, then red, green and blue to each channel. p: default 0.5.
    """
    return Op("levels", p=p, gamma=_list(gamma), contrast=_list(contrast), brightness=_list(brightness), red=_list(red),
              green=_list(green), blue=_list(blue))


def HueSaturationValue(hue=None, saturation=None, value=None, p=None) -> Op:
    """Adds to hue, saturation and value: albumentations' HueSaturationValue, with its pixels.

    Each is a number, or (least, most) of what is drawn for an image; default (-20, 20), (-30, 30) and (-20, 20). They are of 8 bits,
    as OpenCV has them: a whole turn of hue is 180. p: default 0.5.
    """
    return Op("hue_saturation_value", p=p, hue=_list(hue), saturation=_list(saturation), value=_list(value))


def Grayscale(num_output_channels=None) -> Op:
    """Converts to gray, with 1 channel or 3 equal ones."""
    return Op("grayscale", num_output_channels=num_output_channels)


def RandomGrayscale(p=None) -> Op:
    """Converts to gray; the number of channels stays."""
    return Op("random_grayscale", p=p)


def RandomChannelPermutation() -> Op:
    return Op("random_channel_permutation")


def GaussianBlur(kernel_size, sigma=None, p=None) -> Op:
    """Blurs. kernel_size: odd, one number or (across, down). sigma: a number or (least, most).

    Sums are added in another order than in torch, so about one value in 50,000 differs from torchvision's by one. p is that
    of RandomApply([GaussianBlur(...)], p).
    """
    return Op("gaussian_blur", kernel_size=_list(kernel_size), sigma=_list(sigma), p=p)


def Blur(size=None, p=None) -> Op:
    """Means of squares of pixels: albumentations' Blur, with its pixels. size: odd, 3 to 99, or (least, most); default (3, 7)."""
    return Op("box_blur", p=p, size=_list(size))


def MedianBlur(size=None, p=None) -> Op:
    """Medians of squares of pixels: albumentations' MedianBlur, with its pixels. size: odd, 3 to 15, or (least, most); default (3, 7)."""
    return Op("median_blur", p=p, size=_list(size))


def MotionBlur(size=None, angle=None, direction=None, shift=None, p=None) -> Op:
    """Means along a line: albumentations' MotionBlur, with its pixels where size is below 11.

    size: odd, 3 to 99, or (least, most); default (3, 7). angle: in degrees clockwise; default (0, 360). direction: -1 to 1, to which side
    the line is longer; default (-1, 1). shift: is the line moved away from the middle? Default True. p: default 0.5.
    """
    return Op("motion_blur", p=p, size=_list(size), angle=_list(angle), direction=_list(direction), shift=shift)


def Sharpen(alpha=None, lightness=None, p=None) -> Op:
    """Mixes with a sharper image: albumentations' Sharpen of method="kernel", with its pixels.

    alpha: its share, a number or (least, most); default (0.2, 0.5). lightness: what it is multiplied by; default (0.5, 1). p: default 0.5.
    """
    return Op("sharpen", p=p, alpha=_list(alpha), lightness=_list(lightness))


def GaussianNoise(mean=None, sigma=None, clip=None, p=None) -> Op:
    """torchvision's GaussianNoise of float images: behind all transforms of images, in front of Normalize() or behind it.

    sigma: a number, or (least, most) of what is drawn for each image. p: the probability.
    """
    return Op("gaussian_noise", mean=mean, sigma=_list(sigma), clip=clip, p=p)


def JPEG(quality) -> Op:
    """The image as a JPEG file of that quality gives it back. quality: 1 to 100, or (least, most), both among what is drawn."""
    return Op("jpeg", quality=_list(quality))


def ElasticTransform(alpha=None, sigma=None, interpolation=None, fill=0) -> Op:
    """Moves each pixel by smooth noise. alpha, sigma: a number, or (across, down). interpolation: "bilinear" or "nearest".

    Given the same noise, about one value in 100,000 differs from torchvision's by one, as torch adds in another order.
    """
    made = Op("elastic_transform", alpha=_both(alpha), sigma=_both(sigma), interpolation=_interpolation(interpolation), fill=_list(fill))
    if fill is None:
        made.parameters["fill"] = None
    return made


def _both(value):
    return [value, value] if isinstance(value, (int, float)) else _list(value)


def RandomAutocontrast(p=None) -> Op:
    """Stretches each channel to 0 to 255."""
    return Op("autocontrast", p=p)


def RandomEqualize(p=None) -> Op:
    """Equalizes each channel's histogram."""
    return Op("equalize", p=p)


def RandomInvert(p=None) -> Op:
    """255 - value."""
    return Op("invert", p=p)


def RandomPosterize(bits, p=None) -> Op:
    """Keeps the highest bits of each value."""
    return Op("posterize", bits=bits, p=p)


def RandomSolarize(threshold, p=None) -> Op:
    """Inverts values from threshold on."""
    return Op("solarize", threshold=threshold, p=p)


def RandomAdjustSharpness(sharpness_factor, p=None) -> Op:
    """Sharpens, or smooths with a factor below 1."""
    return Op("sharpness", sharpness_factor=sharpness_factor, p=p)


def RandAugment(num_ops=None, magnitude=None, num_magnitude_bins=None, interpolation=None,
                fill=None) -> Op:
    """torchvision's RandAugment: num_ops random changes of one magnitude."""
    return Op("rand_augment", num_ops=num_ops, magnitude=magnitude,
              num_magnitude_bins=num_magnitude_bins, interpolation=_interpolation(interpolation),
              fill=_list(fill))


def TrivialAugmentWide(num_magnitude_bins=None, interpolation=None, fill=None) -> Op:
    """torchvision's TrivialAugmentWide: one random change of a random magnitude."""
    return Op("trivial_augment", num_magnitude_bins=num_magnitude_bins,
              interpolation=_interpolation(interpolation), fill=_list(fill))


def AutoAugment(policy=None, interpolation=None, fill=None) -> Op:
    """torchvision's AutoAugment. policy: "imagenet", "cifar10" or "svhn", or torchvision's AutoAugmentPolicy."""
    policy = policy if policy is None or isinstance(policy, str) else policy.value
    return Op("auto_augment", policy=policy, interpolation=_interpolation(interpolation),
              fill=_list(fill))


def AugMix(severity=None, mixture_width=None, chain_depth=None, alpha=None, all_ops=None, interpolation=None, fill=None) -> Op:
    """torchvision's AugMix: chains of changes, mixed with the image. The changes are RandAugment's, of Pillow's images; torchvision's own
    are of tensors, so that about one value in 100 differs by more than one with interpolation "bilinear"."""
    return Op("aug_mix", severity=severity, mixture_width=mixture_width, chain_depth=chain_depth, alpha=alpha, all_ops=all_ops,
              interpolation=_interpolation(interpolation), fill=_list(fill))


def TimmAugMix(width=None, depth=None, magnitude=None, magnitude_std=None, uniform=None, magnitude_max=None, increasing=None,
               interpolation=None, fill=None, translate=None, alpha=None) -> Op:
    """timm's AugMix. See timm_aug_mix in oneaccess-pipeline(5)."""
    return Op("timm_aug_mix", width=width, depth=depth, magnitude=magnitude, magnitude_std=magnitude_std, uniform=uniform,
              magnitude_max=magnitude_max, increasing=increasing, interpolation=interpolation, fill=_list(fill), translate=translate,
              alpha=alpha)


def TimmRandAugment(num_ops=None, p=None, magnitude=None, magnitude_std=None, uniform=None, magnitude_max=None,
                    increasing=None, interpolation=None, fill=None, translate=None) -> Op:
    """timm's RandAugment. "rand-m9-mstd0.5-inc1" is TimmRandAugment(magnitude=9, magnitude_std=0.5, increasing=True)."""
    return Op("timm_rand_augment", num_ops=num_ops, p=p, magnitude=magnitude, magnitude_std=magnitude_std,
              uniform=uniform, magnitude_max=magnitude_max, increasing=increasing,
              interpolation=_interpolation(interpolation), fill=_list(fill), translate=translate)


def RandomErasing(p=None, scale=None, ratio=None, value=None) -> Op:
    """Erases a random rectangle. value: one number, (red, green, blue), or "random"."""
    return Op("random_erasing", p=p, scale=_list(scale), ratio=_list(ratio), value=_list(value))


def CoarseDropout(holes=None, height=None, width=None, value=None, p=None) -> Op:
    """Several rectangles become one colour: albumentations' CoarseDropout.

        CoarseDropout(holes=(1, 8), height=(0.05, 0.15), width=(0.05, 0.15), p=0.5)

    holes: how many, or (least, most), up to 256; default (1, 2). height, width: of each, (least, most), as shares of the image's below 1,
    or in pixels from 1 on; default (0.1, 0.2). value: a number, (red, green, blue), "random" for each pixel its own colour, or
    "random_uniform" for each rectangle. p: default 0.5.

    Masks and key points stay. Boxes shrink to what is around their pixels that are still seen.
    """
    return Op("coarse_dropout", p=p, holes=_list(holes), height=_list(height), width=_list(width), value=_list(value))


# ---- the end ----


def Normalize(mean, std) -> Op:
    """(value / 255 - mean) / std. mean, std: three numbers, or one for all channels. Behind Bands() nothing is divided by 255, and
    of spectrograms it is (value - mean) / std, one number each."""
    return Op("normalize", mean=_list(mean), std=_list(std))


def Cast(dtype) -> Op:
    """The image's type: "uint8", "float16", "bfloat16" or "float32", or torch's or NumPy's dtype of that name.

    Without Normalize() a float is value / 255.
    """
    word = getattr(dtype, "__name__", None) or str(dtype).rsplit(".", 1)[-1]
    if word not in _DTYPES:
        raise TransformError(f"Cast: images are uint8, float16, bfloat16 or float32, not {dtype}")
    return Op("cast", dtype=_DTYPES[word])


def Layout(order="CHW") -> Op:
    """The order of dimensions: "CHW" or "HWC"."""
    return Op("layout", order=order)


def ToTensor() -> Pipeline:
    """float32 from 0 to 1, [channels, height, width]."""
    return Pipeline([Cast("float32"), Layout("CHW")])


def PILToTensor() -> Op:
    """uint8, [channels, height, width]."""
    return Layout("CHW")


# ---- at random ----


def RandomApply(transforms, p=0.5) -> Pipeline:
    """All of the transforms with probability p, else none.

    They are transforms of images: put Normalize(), ToTensor() and what follows them behind the group.
    """
    return _either(p, Pipeline(_flat(transforms)), Pipeline([]))


def RandomChoice(transforms, p=None) -> Pipeline:
    """One of the transforms, each of which may be a Compose(). p: a weight for each; None: all equally likely."""
    choices = [Pipeline(_flat([each])) for each in transforms]
    weights = [1] * len(choices) if p is None else list(p)
    if len(weights) != len(choices) or min(weights, default=0) < 0 or not sum(weights) > 0:
        raise TransformError(f"RandomChoice: p={p!r} has no weight for each of {len(choices)} transforms; give"
                             " as many numbers, from 0 on and not all 0")
    left = [(choice, weight) for choice, weight in zip(choices, weights) if weight > 0]
    chosen = left.pop()
    total, made = chosen[1], chosen[0]
    while left:
        choice, weight = left.pop()
        total += weight
        made = _either(weight / total, choice, made)
    return made


def RandomOrder(transforms) -> Pipeline:
    """All of the transforms in a random order. A pipeline has 32 ops, and each order takes its own: of three at most."""
    transforms = [Pipeline(_flat([each])) for each in transforms]
    if len(transforms) > 3:
        raise TransformError(f"RandomOrder: {len(transforms)} transforms have too many orders for one pipeline: give three, or some"
                             " orders as RandomChoice([Compose([...]), ...])")
    return RandomChoice([Pipeline(_flat(order)) for order in itertools.permutations(transforms)])


def _flat(transforms):
    flat = []
    for transform in transforms:
        flat.extend(transform.ops if isinstance(transform, Pipeline) else [transform])
    return flat


def _either(p, first, second):
    """The ops of first with probability p, else those of second."""
    for op in first.ops + second.ops:
        if op.op in ("normalize", "cast", "layout", "filter", "map", "one_hot", "smooth", "mixup", "cutmix", "mosaic",
                     "five_crop", "ten_crop", "patches", "gaussian_noise"):
            raise TransformError(f"{op.op} cannot be done at random: leave it out of the group, and put it behind")
    if not first.ops:
        p, first, second = 1 - p, second, first
    if p >= 1 or not first.ops:
        return first
    if p <= 0:
        return second
    group = Op("random_apply", p=p, ops=len(first.ops), otherwise=len(second.ops) or None)
    return Pipeline([group, *first.ops, *second.ops])


# ---- labels and batches ----


def OneHot(num_classes) -> Op:
    """The label becomes a float32 for each class: 1 for its own, else 0."""
    return Op("one_hot", num_classes=num_classes)


def LabelMap(labels=None, table=None, default=None) -> Op:
    """Replaces class numbers: labels = [new number of class 0, of class 1, ...], or table = [[class, new number], ...].

    A class without an entry gets default; without a default its samples are bad.
    """
    return Op("map", labels=_list(labels), table=table, default=default)


def LabelSmoothing(epsilon=None, num_classes=None) -> Op:
    """Label smoothing, as of torch.nn.CrossEntropyLoss. Without OneHot() it needs num_classes."""
    return Op("smooth", epsilon=epsilon, num_classes=num_classes)


def Filter(keep=None, drop=None, min_width=None, max_width=None, min_height=None,
           max_height=None) -> Op:
    """Leaves samples out.

    keep, drop: lists of class numbers. The others are inclusive bounds in pixels for the decoded image.
    """
    return Op("filter", keep=_list(keep), drop=_list(drop), min_width=min_width,
              max_width=max_width, min_height=min_height, max_height=max_height)


def MixUp(*, alpha=None, num_classes=None, p=None) -> Op:
    """torchvision's v2.MixUp, on whole batches. It copies each batch. The image must be a float."""
    return Op("mixup", alpha=alpha, num_classes=num_classes, p=p)


def CutMix(*, alpha=None, num_classes=None, p=None) -> Op:
    """torchvision's v2.CutMix, on whole batches. It copies each batch."""
    return Op("cutmix", alpha=alpha, num_classes=num_classes, p=p)


def Mosaic(*, p=None, center=None, scale=None, fill=None, min_size=None, min_visibility=None, epochs=None) -> Op:
    """YOLO's mosaic, on whole batches: each image becomes four of the batch, itself and three others, which meet at a drawn point.

        Compose([RandomIoUCrop(), Resize((640, 640)), RandomHorizontalFlip(), ToTensor(), Mosaic(epochs=290)])     # of 300 epochs

    The canvas has twice the image's sides; the result is as much of it as an image has, around its middle, larger or smaller by a
    drawn scale. Boxes, key points and masks follow, and fields that are parallel to boxes have theirs. Labels and other fields are
    the first image's. Ragged fields have room for four times as many rows.

    p: the probability for an image, default 1.
    center: where they meet, of the image's sides: (least, most), 0 to 2, default (0.5, 1.5).
    scale: how much larger the canvas is seen: (least, most) or a number, 0.1 to 10, default (0.5, 1.5). 1 copies pixels alone, and
        0.5 shows the whole canvas.
    fill: the color where no image is: 0 to 255, or one each for red, green and blue, default 114.
    min_size: boxes with a shorter side are removed, in pixels, default 1.
    min_visibility: boxes are removed of whose area a smaller share is left, 0 to 1, default 0.1.
    epochs: the first so many have it, the others none (Ultralytics' close_mosaic). None: all.

    It copies each batch.
    """
    return Op("mosaic", p=p, center=_list(center), scale=_list(scale), fill=_list(fill), min_size=min_size,
              min_visibility=min_visibility, epochs=epochs)


# ---- sounds ----


def audio(sample_rate: int, seconds: float | None = None, *, frames: int | None = None, channels: int | None = None,
          crop: str | None = None, speeds=None) -> Pipeline:
    """Waveforms of one rate and length, of WAV, FLAC, Ogg (Vorbis, Opus) and MP3, and of videos and M4A: float32.

    Whole numbers of a file become -1 to 1; floats stay as they are, and resampling may pass that a little.

        loader = oa.Loader("/data/speech", oa.audio(sample_rate=16000, seconds=4.0), batch_size=64)
        for waves, labels, lengths in loader: ...   # [64, 64000], [64], [64]: frames that are not padding

    sample_rate: frames a second; sounds of another rate are resampled by libsoxr, as by librosa.
    seconds, or frames: the length of each. Of a longer sound a part is taken, behind a shorter one are zeros.
    channels: None is the mean of all channels, [batch, frames]. A number gives [batch, channels, frames]: with 1 the mean;
        else sounds must have as many channels, or one, which is repeated.
    crop: which part of a longer sound, "random" (default), "center" or "begin"; of evaluation "begin" or "center".
    speeds: how fast sounds are played, such as (0.9, 1, 1.1), of which one is drawn for each, as torchaudio's SpeedPerturbation
        does; the pitch changes, too. The part is one of the sound that comes out.

    The sound of videos (those of video(), and M4A) needs access-video.so, which the package oneaccess-video brings.

    Behind it may stand what works on waveforms, in any order and number: Vol(), PolarityInversion(), AddNoise(), Fade(),
    LowPass(), HighPass(), Preemphasis(), Standardize(), and MuLawEncoding() as the last one. Then MelSpectrogram() or
    Spectrogram(), and behind that AmplitudeToDB(), Normalize() with one number each, TimeMasking() and FrequencyMasking(), or
    MFCC() in their place; then LabelMap(), OneHot(), LabelSmoothing() and Filter(keep, drop):
    Compose([oa.audio(16000, 4.0), AddNoise((5, 30), p=0.5), OneHot(35)]).
    """
    if (seconds is None) == (frames is None):
        raise TransformError("audio(): give seconds or frames, the length of each sound: audio(16000, seconds=4.0)")
    frames = round(seconds * sample_rate) if frames is None else frames
    return Pipeline([Op("audio", sample_rate=sample_rate, frames=frames, channels=channels, crop=crop, speeds=_list(speeds))])


def Vol(gain, gain_type: str | None = None, *, p=None, clamp: bool | None = None) -> Op:
    """The waveform times a number, as of torchaudio. gain: it, or (least, most) of what is drawn; gain_type "amplitude" (default),
    "power" or "db". clamp (default True): what is beyond -1 and 1 is cut off there.

        Vol((-12, 6), "db", p=0.5)
    """
    return Op("vol", gain=_list(gain), gain_type=gain_type, p=p, clamp=clamp)


def PolarityInversion(p=None) -> Op:
    """The waveform upside down, with the probability p (0.5)."""
    return Op("polarity_inversion", p=p)


def AddNoise(snr, *, p=None) -> Op:
    """White Gaussian noise, drawn for each sample and epoch. snr: the energy of the sound over that of the noise in decibels, or (least,
    most); they have just this ratio, as of torchaudio's AddNoise. Silence, and the zeros behind a sound, stay as they are."""
    return Op("add_noise", snr=_list(snr), p=p)


def Fade(fade_in_len: int | None = None, fade_out_len: int | None = None, fade_shape: str | None = None) -> Op:
    """torchaudio's Fade: frames at the sound's begin and end. fade_shape "linear" (default), "exponential", "logarithmic",
    "quarter_sine" or "half_sine"."""
    return Op("fade", fade_in_len=fade_in_len, fade_out_len=fade_out_len, fade_shape=fade_shape)


def LowPass(cutoff_freq, Q=None, *, p=None) -> Op:
    """High frequencies are weakened, as of torchaudio.functional.lowpass_biquad. cutoff_freq: Hz, or (least, most); Q=0.707."""
    return Op("low_pass", cutoff_freq=_list(cutoff_freq), Q=Q, p=p)


def HighPass(cutoff_freq, Q=None, *, p=None) -> Op:
    """Low frequencies are weakened, as of torchaudio.functional.highpass_biquad."""
    return Op("high_pass", cutoff_freq=_list(cutoff_freq), Q=Q, p=p)


def Preemphasis(coeff=None) -> Op:
    """torchaudio's Preemphasis: from each frame coeff (0.97) times the one before is taken."""
    return Op("preemphasis", coeff=coeff)


def Standardize(eps=None) -> Op:
    """The mean 0 and the variance 1 for each sound (and channel), of its own frames: what wav2vec2, HuBERT and WavLM take in, as of
    transformers' Wav2Vec2FeatureExtractor with do_normalize=True. eps (1e-7) is added to the variance."""
    return Op("standardize", eps=eps)


def MuLawEncoding(quantization_channels: int | None = None) -> Op:
    """torchaudio's: int64 codes from 0 to quantization_channels - 1 (255). The last op on a sound."""
    return Op("mu_law_encoding", quantization_channels=quantization_channels)


def Spectrogram(n_fft: int | None = None, win_length: int | None = None, hop_length: int | None = None, power=None,
                center: bool | None = None) -> Op:
    """A sound's spectrogram, float32 [n_fft / 2 + 1, frames], as of torchaudio.transforms.Spectrogram: power 2 (default) or 1. lengths
    are in its frames, as of MelSpectrogram()."""
    return Op("spectrogram", n_fft=n_fft, win_length=win_length, hop_length=hop_length, power=_whole_power(power), center=center)


def _whole_power(power):
    return int(power) if isinstance(power, float) and power.is_integer() else power


def AmplitudeToDB(stype: str | None = None, top_db=None) -> Op:
    """torchaudio's, behind a spectrogram: 10 log10 of a "power" (default), 20 log10 of a "magnitude", of what is at least 1e-10, and no
    less than top_db below the most of the sample."""
    return Op("amplitude_to_db", stype=stype, top_db=top_db)


def MFCC(n_mfcc: int | None = None, dct_type: int = 2, norm: str | None = "ortho", log_mels: bool | None = None,
         melkwargs: dict | None = None) -> Pipeline:
    """Mel-frequency cepstral coefficients, float32 [n_mfcc, frames], as of torchaudio.transforms.MFCC: n_mfcc=40, norm="ortho" or None.

        Compose([audio(16000, 1.0), MFCC(13, melkwargs={"n_fft": 400, "hop_length": 160, "n_mels": 23})])

    melkwargs: parameters of MelSpectrogram().
    """
    if dct_type != 2:
        raise TransformError(f"MFCC(): dct_type is {dct_type!r}, and only 2 is there")
    cepstra = Op("mfcc", n_mfcc=n_mfcc, log_mels=log_mels)
    if norm != "ortho":
        cepstra.parameters["norm"] = norm
    return Pipeline([MelSpectrogram(**(melkwargs or {})), cepstra])


def MelSpectrogram(n_fft: int | None = None, win_length: int | None = None, hop_length: int | None = None, f_min=None, f_max=None,
                   n_mels: int | None = None, power=None, center: bool | None = None, norm: str | None = None,
                   mel_scale: str | None = None, *, log: str | None = None) -> Op:
    """A sound's mel spectrogram, float32 [n_mels, frames], as of torchaudio.transforms.MelSpectrogram, made once for all jobs.

        pipeline = Compose([audio(16000, 4.0), MelSpectrogram(400, hop_length=160, n_mels=80, log="ln")])   # [80, 401]
        for spectrograms, labels, lengths in oa.Loader("/data/speech", pipeline, batch_size=64): ...

    Names and defaults are torchaudio's: n_fft=400, win_length=n_fft, hop_length=win_length // 2, f_min=0, f_max of half the rate,
    n_mels=128, power=2, center=True, norm=None or "slaney", mel_scale="htk" or "slaney". n_fft: an even product of 2, 3 and 5.
    log: of what is at least 1e-10 "ln", "log10", "db" (as AmplitudeToDB without top_db), or "whisper", which is Whisper's: log10,
        no less than the sound's most - 8, (x + 4) / 4, without the last frame (whisper() has all of it).

    lengths are in frames of the spectrogram: as many as the sound has without the zeros behind it, 1 + length // hop_length.
    """
    return Op("mel_spectrogram", n_fft=n_fft, win_length=win_length, hop_length=hop_length, f_min=f_min, f_max=f_max, n_mels=n_mels,
              power=_whole_power(power), center=center, norm=norm, mel_scale=mel_scale, log=log)


def TimeMasking(time_mask_param: int, p=None, *, mask_value=None) -> Op:
    """SpecAugment's, as of torchaudio: frames in a row of a spectrogram become mask_value (0), fewer than time_mask_param, and at most
    p of all. Which ones is drawn for each sample anew."""
    return Op("time_masking", time_mask_param=time_mask_param, p=p, mask_value=mask_value)


def FrequencyMasking(freq_mask_param: int, *, mask_value=None) -> Op:
    """SpecAugment's, as of torchaudio: bands side by side become mask_value (0), fewer than freq_mask_param."""
    return Op("frequency_masking", freq_mask_param=freq_mask_param, mask_value=mask_value)


def whisper(seconds: float = 30.0, *, n_mels: int = 80, crop: str = "begin") -> Pipeline:
    """What Whisper takes in, as of transformers' WhisperFeatureExtractor: float32 [n_mels, 100 x seconds], of 16 kHz.

        loader = oa.Loader("/data/speech", oa.transforms.whisper(), batch_size=16)
        for features, labels, lengths in loader: ...    # [16, 80, 3000]

    n_mels: 80, of large-v3 128. crop: which part of a longer sound, as of audio().
    """
    return Compose([audio(16000, seconds, crop=crop),
                    MelSpectrogram(400, hop_length=160, n_mels=n_mels, norm="slaney", mel_scale="slaney", log="whisper")])


def wav2vec2(seconds: float, *, crop: str | None = None) -> Pipeline:
    """What wav2vec2, HuBERT and WavLM take in, as of transformers' Wav2Vec2FeatureExtractor with do_normalize=True: float32 of 16 kHz,
    each sound with the mean 0 and the variance 1, zeros behind it. lengths say what attention_mask does."""
    return Compose([audio(16000, seconds, crop=crop), Standardize()])


# ---- patches ----


def Patches(patch_size: int = 16, max_patches: int | None = None, *, max_pixels: int | None = None, min_pixels: int | None = None,
            merge_size: int | None = None, temporal_patch_size: int | None = None, interpolation=None) -> Op:
    """An image near its own proportion as a sequence of square patches, for models that take images of any size.

        Compose([RandomHorizontalFlip(), Patches(16, 256), Normalize(mean, std), Cast("float32")])      # NaFlex
        Compose([Patches(14, max_pixels=1003520, merge_size=2, temporal_patch_size=2, interpolation="bicubic"), ToTensor()])    # Qwen2-VL

    A batch has patches, labels and grids. patches is a Ragged: values [batch, most, patch_size * patch_size * 3] with zeros behind
    each image's patches, lengths, mask(), and csr() for all of them in a row. grids is int64 [batch, 2], rows and columns.

    patch_size: pixels of a side, 1 to 64.
    max_patches: the most that an image gets, and the largest size that has no more is taken: as of Siglip2ImageProcessor and of
        timm's ResizeToSequence. Default 256, unless max_pixels is given; most is just that.
    max_pixels, min_pixels (3136): the image keeps its size, rounded to whole blocks, unless it has more or fewer pixels: the smart_resize
        of Qwen2-VL. An image that is over 200 times as long as narrow is a bad sample. most follows from both.
    merge_size: with max_pixels, patches come in blocks of so many by so many, 1 (default) to 16, all of a block in a row.
    temporal_patch_size: a patch has the image so often, as so many frames, and grids is int64 [batch, 3], of which the first is 1.

    The values of a patch are [patch_size, patch_size, 3], with Layout("CHW") or ToTensor() behind [3, temporal_patch_size, patch_size,
    patch_size]. What changes an image's size stands before it; flips and changes of colours may stand before or behind it.
    """
    if max_patches is None and max_pixels is None:
        max_patches = 256
    return Op("patches", patch_size=patch_size, max_patches=max_patches, max_pixels=max_pixels, min_pixels=min_pixels, merge_size=merge_size,
              temporal_patch_size=temporal_patch_size, interpolation=_interpolation(interpolation))


def naflex(max_patches: int = 256, patch_size: int = 16, *, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), dtype="float32",
           interpolation=None) -> Pipeline:
    """What NaFlex models take in, SigLIP 2's values as of its image processor: patches of images at their own proportion.

        loader = oa.Loader("/data/photos", oa.transforms.naflex(256), batch_size=64)
        for patches, labels, grids in loader:
            model(pixel_values=patches.values, pixel_attention_mask=patches.mask(), spatial_shapes=grids)

    For training Compose([RandomHorizontalFlip(), naflex(256)]). dtype "uint8" does not normalize.
    """
    end = [] if str(dtype).endswith("uint8") else [Normalize(mean, std)]
    return Compose([Patches(patch_size, max_patches, interpolation=interpolation), *end, Cast(dtype)])


def qwen_vl(max_pixels: int = 28 * 28 * 1280, min_pixels: int = 56 * 56, *, patch_size: int = 14, merge_size: int = 2,
            temporal_patch_size: int = 2, mean=CLIP_MEAN, std=CLIP_STD, dtype="float32") -> Pipeline:
    """What Qwen2-VL and Qwen2.5-VL take in, as of their image processor. Qwen3-VL: patch_size=16, mean and std 0.5.

        loader = oa.Loader("/data/photos", oa.transforms.qwen_vl(max_pixels=28 * 28 * 256), batch_size=8)
        for patches, labels, grids in loader:
            model.visual(patches.csr()[0], grid_thw=grids)

    max_pixels bounds the memory of each image: 4.7 MB with 28 * 28 * 256 pixels, 24 MB by default, half of it with dtype "bfloat16".
    """
    patches = Patches(patch_size, max_pixels=max_pixels, min_pixels=min_pixels, merge_size=merge_size,
                      temporal_patch_size=temporal_patch_size, interpolation="bicubic")
    return _finished([patches], mean, std, dtype)


# ---- point clouds ----


def PointCloud(points: int, channels: int | None = None, *, properties=None, columns: int | None = None, normals: int | None = None,
               pick: str | None = None, padding: str | None = None, surface: bool | None = None) -> Op:
    """The points of a file, as float32 [points, channels], of which the first three are x, y and z. It stands first.

        Compose([PointCloud(16384, 4, columns=4), PointRotation(45), PointFlip("y")])                                   # KITTI
        Compose([PointCloud(1024, properties=("x", "y", "z", "nx", "ny", "nz"), normals=3), PointUnit(), PointJitter()])

    Files are PLY (text, binary), PCD (ascii, binary, binary_compressed), .npy arrays [points, columns], text (.xyz, .pts, .txt, .asc: a
    line for each point), meshes as OFF and OBJ, and raw float32 (.bin). The batch has "points", "label" and "length", how many of the rows are the file's
    points. Points with a coordinate that is no finite number are left out.

    points: how many there are in each sample, 1 to 1048576.
    channels: how many numbers a point has, 3 to 32: the file's first ones. None: as many as properties, or 3.
    properties: which ones, by their names in a PLY or PCD: ("x", "y", "z", "intensity"); ("red", "green", "blue") of a PCD's packed rgb, too.
    columns: of raw files, how many numbers each point has: 4 of KITTI and SemanticKITTI, 5 of nuScenes.
    normals: the channel, from 0, that is a normal's x, before its y and z: PointRotation() and PointFlip() turn it with its point.
    pick: which points of a larger file, "random" (default; in random order), "even" (evenly spread over the file's order) or "first".
        Of evaluation "even" or "first".
    padding: what is behind the points of a smaller one, and behind those that transforms leave: "repeat" (default; the same ones again
        from the first on), "zero", or "ragged": the field is ragged, as long as there are points.
    surface: True: of a mesh (OFF, OBJ, PLY) so many points are drawn uniformly on its faces, anew in each epoch, as by PyG's
        SamplePoints; with pick="even" they are always the same. channels=6 and normals=3 give each the normal of its face.
        Default: the points are the mesh's vertices.

    Behind it may stand PointRange(), PointSample(), PointRotation(), PointFlip(), PointScale(), PointTranslation(), PointJitter(),
    PointDropout(), PointShuffle(), PointCenter(), PointUnit() and Normalize() (number - mean) / std, one for each channel or for all, in
    any order and number; then LabelMap(), OneHot(), LabelSmoothing() and Filter(keep, drop).
    """
    return Op("cloud", points=points, channels=channels, properties=_list([properties] if isinstance(properties, str) else properties),
              raw_columns=columns, normals=normals, pick=pick, padding=padding, surface=surface)


def point_clouds(points: int, channels: int | None = None, *, train: bool = True, **options) -> Pipeline:
    """Point clouds of PLY, PCD, .npy, text and raw float32 files: float32 [points, channels] of each.

        loader = oa.Loader("/data/modelnet40/train", oa.point_clouds(1024), batch_size=32)
        for points, labels, lengths in loader: ...   # float32 [32, 1024, 3], int64 [32], int64 [32]

    points, channels: as of transforms.PointCloud(), and so are options: properties, columns, normals, pick, padding, surface.
    train: True: of a file with more points a random part, drawn anew in each epoch. False: an evenly spread one, the same always.

    Transforms follow in Compose([oa.point_clouds(1024), PointUnit(), PointRotation(axis="y"), PointJitter()]).
    """
    options.setdefault("pick", None if train else "even")
    return Pipeline([PointCloud(points, channels, **options)])


def PointRange(range) -> Op:
    """Leaves out points outside of a box, (x, y, z) of its least corner and then of its most, whose faces are in it: OpenPCDet's
    POINT_CLOUD_RANGE. np.all((low <= p) & (p <= high), 1)."""
    return Op("point_range", range=_list(range))


def PointSample(points: int, pick: str | None = None) -> Op:
    """Of more points so many are left, "random" (default), "even" or "first", and the batch has so many: behind PointRange(), for
    instance. PyG's FixedPoints(replace=False), OpenPCDet's sample_points."""
    return Op("point_sample", points=points, pick=pick)


def PointRotation(degrees=None, axis: str | None = None, *, p=None) -> Op:
    """Turns the points about the axis "z" (default), "x" or "y" through the origin, by an angle that is uniform in (least, most) degrees, or
    (-x, x) of a number, default 180. axis "any": each rotation of SO(3) alike, without degrees.

    OpenPCDet's random_world_rotation with WORLD_ROT_ANGLE [-0.785, 0.785] is PointRotation(45), PyG's RandomRotate(180, axis=2)
    PointRotation(180).
    """
    return Op("point_rotation", degrees=_list(degrees), axis=axis, p=p)


def PointFlip(axis: str, p=None) -> Op:
    """Negates "x", "y" or "z" of all points, with the probability p (0.5), as PyG's RandomFlip. OpenPCDet's random_world_flip "along x"
    negates y: PointFlip("y")."""
    return Op("point_flip", axis=axis, p=p)


def PointScale(scale=None, *, anisotropic: bool | None = None, p=None) -> Op:
    """x, y and z times a number that is uniform in scale, (0.95, 1.05) by default; with anisotropic one for each of the three. PyG's
    RandomScale, OpenPCDet's random_world_scaling. Normals stay."""
    return Op("point_scale", scale=_list(scale), anisotropic=anisotropic, p=p)


def PointTranslation(translate, *, p=None) -> Op:
    """Moves all points by what is uniform in (-translate, translate), drawn for each of x, y and z; translate is one number, or one for
    each. PointNet++'s shift_point_cloud is PointTranslation(0.1)."""
    return Op("point_translation", translate=_list(translate), p=p)


def PointJitter(sigma=None, clip=0.05, *, p=None) -> Op:
    """Adds normal noise to x, y and z of each point: np.clip(sigma * randn, -clip, clip), sigma 0.01, as PointNet's jitter_point_cloud.
    clip None: it is not cut off. PyG's RandomJitter is uniform."""
    op = Op("point_jitter", sigma=sigma, p=p)
    op.parameters.update({} if clip == 0.05 else {"clip": clip})
    return op


def PointDropout(ratio=None, *, p=None) -> Op:
    """Leaves out each point with a probability that is drawn for the sample, uniform in ratio, (0, 0.875) by default, or always that of one
    number: PointNet++'s random_point_dropout, with the points that are left repeated, and not the first alone."""
    return Op("point_dropout", ratio=_list(ratio), p=p)


def PointShuffle() -> Op:
    """The points in random order: OpenPCDet's shuffle_points."""
    return Op("point_shuffle")


def PointCenter(by: str | None = None) -> Op:
    """Subtracts the mean of the points (PyG's Center), or with "box" the middle between the least and the most of each of x, y and z."""
    return Op("point_center", by=by)


def PointUnit(to: str | None = None) -> Op:
    """Subtracts the mean of the points, and divides by the distance of the farthest one (PointNet's pc_normalize); to="cube": by the
    largest |x|, |y| or |z|, as PyG's NormalizeScale, which has 0.999999 in place of 1."""
    return Op("point_unit", to=to)


# ---- videos ----


def Video(frames: int, step: int | None = None, fps: float | None = None, clip: str | None = None) -> Op:
    """A clip of a video: `frames` images, which all ops behind it treat alike, with one draw for the clip. It stands first.

        Compose([Video(16, step=4), RandomResizedCrop(112), RandomHorizontalFlip(), ToTensor()])

    step: each so many-th frame of the file, default 1. Or fps: frames a second of the video's time, for files of
        different rates; each is the last one that is shown by then.
    clip: which part of a longer video, "random" (default), "center" or "begin"; or "spread": the middles of `frames` equal
        parts of all of it, without step and fps. Of a video that ends before the clip the last frame is repeated.

    Needs access-video.so, which the package oneaccess-video brings.
    """
    return Op("video", frames=frames, step=step, fps=fps, clip=clip)


def video(frames: int, size=224, *, step: int | None = None, fps: float | None = None, clip: str | None = None,
          train: bool = True, resize=None, mean=IMAGENET_MEAN, std=IMAGENET_STD, dtype="float32") -> Pipeline:
    """Clips of videos (MP4, MOV, WebM, Matroska, AVI, Ogg, MPEG-TS): `frames` images [3, size, size] of each.

        loader = oa.Loader("/data/kinetics/train", oa.video(16, 224, step=4), batch_size=8)
        for clips, labels, lengths in loader: ...   # float32 [8, 16, 3, 224, 224], int64 [8], int64 [8]

    Models of torchvision take [batch, 3, frames, height, width]: clips.transpose(1, 2). lengths: frames of each clip that
    lie in the video; behind its end the last one is repeated. With clip="spread" all do, of a short video too, whose
    frames are then there several times, as with fps above its rate.

    A folder's videos are its files that end in .mp4 .m4v .mov .webm .mkv .avi .ogv .m2ts or .mts, if it has no pictures
    and no sounds. .ts is TypeScript's, too, so such files are found by no scan: give a list of them (oneaccess-sources(7)).

    frames, step, fps, clip: as of transforms.Video(). clip: default "random" with train, else "center".
    size: pixels of each frame, one number or (height, width).
    train: True: RandomResizedCrop(size) and RandomHorizontalFlip(), drawn once for a clip. False: Resize(resize) and
        CenterCrop(size). resize: default 256 for a size of 224; with train, too: Resize(resize) and RandomCrop(size).
    mean, std: of Normalize(). dtype "uint8" does not normalize, for normalizing on the device.

    As torchvision's r3d_18 was trained: oa.video(16, 112, fps=15, resize=(128, 171), mean=oa.transforms.KINETICS_MEAN,
    std=oa.transforms.KINETICS_STD). Other ops: Compose([Video(16, step=4), ...]).
    """
    if step is not None and fps is not None:
        raise TransformError("video(): step counts a file's frames, and fps is of its time: give one of them")
    clip = clip if clip is not None or train else "center"
    if train and resize is None:
        ops = [RandomResizedCrop(size), RandomHorizontalFlip()]
    elif train:
        ops = [Resize(resize), RandomCrop(size), RandomHorizontalFlip()]
    else:
        ops = [Resize(_around(size) if resize is None else resize), CenterCrop(size)]
    return _finished([Video(frames, step, fps, clip), *ops], mean, std, dtype)


# ---- images of numbers ----


def Bands(channels: int | None = None, bands=None, *, scale: float | None = None, clamp=None, invert: bool = False) -> Op:
    """The numbers of an image's file, as float32 [channels, height, width]. It stands first.

        Compose([Bands(13, scale=1 / 10000), RandomResizedCrop(224), RandomHorizontalFlip(), Normalize(mean, std)])
        Compose([Bands(bands=(3, 2, 1), scale=1 / 10000, clamp=(0, 1)), Resize(256), CenterCrop(224)])    # red, green, blue of Sentinel-2

        Compose([Bands(1, clamp=(-1000, 400)), Resize((512, 512)), Normalize(-1000, 1400)])               # a window of CT: 0 to 1

    Files are TIFF (8, 16 and 32 bits, floating point; GeoTIFF, BigTIFF; several pages of one channel are several channels), PNG and raw
    PGM or PPM (8 and 16 bits), JPEG 2000, .npy arrays [height, width] or [channels, height, width], DICOM (.dcm, .dicom; the numbers after
    rescale, as Hounsfield units; frames are channels), and NIfTI (.nii, .nii.gz; slices are channels).

    channels: how many each file has, 1 to 32; another number is a bad sample. None, with bands: as many as are needed.
    bands: which of them, counted from 0, in the order of the output; default all.
    scale: what each number is multiplied by. clamp: (least, most), what is beyond becomes that.
    invert: of DICOM files whose least number is white (MONOCHROME1) the stored numbers are turned round, as if they were MONOCHROME2.

    Behind it may stand Resize(), CenterCrop(), RandomCrop(), RandomResizedCrop(), Pad(), the flips, RandomRotation() and RandomAffine()
    with interpolation "nearest", RandomApply(), Normalize() and Cast() to float16 or bfloat16. Nothing is divided by 255: Normalize()
    is (number - mean) / std, with one number for each channel, or one for all.
    """
    return Op("bands", channels=channels, bands=None if bands is None else _list([bands] if isinstance(bands, int) else bands),
              scale=scale, clamp=_list(clamp), invert=invert or None)


# ---- volumes ----


def Volume(channels: int | None = None, *, scale: float | None = None, clamp=None, fill: float | None = None, invert: bool = False) -> Op:
    """The slices of a file of numbers as one volume, float32 [channels, depth, height, width]. It stands first.

        Compose([Volume(clamp=(-1000, 400), fill=-1000), RandomCropByLabel((96, 96, 96)), RandomFlip3d(2), RandomRotate90(),
                 RandomShiftIntensity(100), Normalize(-1000, 1400)])                            # CT: 0 to 1, with labels beside it
        Compose([Volume(4), CenterCrop3d((128, 160, 160)), Normalize(mean, std)])               # MR of four sequences [4, D, H, W]

    Files are those of Bands(): NIfTI, DICOM of several frames, TIFF of several pages, .npy [D, H, W] or [C, D, H, W]. The volume is
    nibabel's get_fdata() transposed: its axis 0 is z, 1 is y, 2 is x. Only the part that a crop takes becomes float32, and a file in gzip
    is inflated up to there.

    channels: how many volumes each file has (default 1): the fourth axis of a NIfTI file. Another number is a bad sample.
    scale: what each number is multiplied by. clamp: (least, most), what is beyond becomes that. fill: the number of what is outside, where
    a crop is larger than the volume (default 0), as it would come out of scale and clamp. invert: as of Bands().

    Behind it stand a crop, which all files need, and RandomFlip3d(), RandomRotate90(), RandomScaleIntensity(), RandomShiftIntensity(),
    GaussianNoise(clip=False), in any order; then Normalize(), (number - mean) / std, and Cast() to float16 or bfloat16. What is not about
    numbers happens first: outside is `fill` for all others. Label volumes (masks=) follow, [depth, height, width], with a label for what is
    outside of their own (oneaccess.Mask(fill=)).
    """
    return Op("volume", channels=channels, scale=scale, clamp=_list(clamp), fill=fill, invert=invert or None)


def RandomCrop3d(size) -> Op:
    """A part of that size, one number or (depth, height, width), at a random place; a smaller volume gets as much on both sides."""
    return Op("random_crop_3d", size=_list(size))


def CenterCrop3d(size) -> Op:
    """The middle, of one number or (depth, height, width), as MONAI's CenterSpatialCrop; a smaller volume gets as much on both sides."""
    return Op("center_crop_3d", size=_list(size))


def RandomCropByLabel(size, *, pos: float | None = None, neg: float | None = None) -> Op:
    """MONAI's RandCropByPosNegLabel: the middle is a random place with a label above 0, or one without, as near to the edge as fits.

    size: one number or (depth, height, width). pos, neg (default 1 each): pos / (pos + neg) of all crops are around a label. It looks at
    the first label volume of masks=, and stands right behind Volume().
    """
    return Op("random_crop_by_label", size=_list(size), pos=pos, neg=neg)


def RandomFlip3d(axes, p: float | None = None) -> Op:
    """Axes reversed, all of them or none: of 0 (depth), 1 (height) and 2 (width), one or several. p: default 0.5."""
    return Op("random_flip_3d", axes=_list(axes), p=p)


def RandomRotate90(axes=None, p: float | None = None) -> Op:
    """numpy.rot90 by one, two or three quarters in the plane of two axes (default (1, 2)), which are as long as each other. p: default 0.5."""
    return Op("random_rotate90", axes=_list(axes), p=p)


def RandomScaleIntensity(factors, p: float | None = None) -> Op:
    """MONAI's RandScaleIntensity: numbers times 1 + a factor drawn from (least, most), or of x from (-x, x). p: default 1."""
    return Op("random_scale_intensity", factors=_list(factors), p=p)


def RandomShiftIntensity(offsets, p: float | None = None) -> Op:
    """MONAI's RandShiftIntensity: a number drawn from (least, most), or of x from (-x, x), is added. p: default 1."""
    return Op("random_shift_intensity", offsets=_list(offsets), p=p)


# ---- what most people want ----


def imagenet_train(size=224, *, mean=IMAGENET_MEAN, std=IMAGENET_STD, dtype="float32") -> Pipeline:
    """RandomResizedCrop(size), RandomHorizontalFlip(), Normalize(mean, std), [3, size, size].

    dtype "uint8" does not normalize, for normalizing on the device.
    """
    return _finished([RandomResizedCrop(size), RandomHorizontalFlip()], mean, std, dtype)


def imagenet_eval(size=224, *, resize=None, mean=IMAGENET_MEAN, std=IMAGENET_STD,
                  dtype="float32") -> Pipeline:
    """Resize(resize), CenterCrop(size), Normalize(mean, std), [3, size, size]. resize: default 256 for a size of 224.

    dtype "uint8" does not normalize.
    """
    return _finished([Resize(_around(size) if resize is None else resize), CenterCrop(size)], mean, std, dtype)


def _around(size):
    """256 for 224."""
    size = _size(size)
    return size * 256 // 224 if isinstance(size, int) else [side * 256 // 224 for side in size]


def _finished(ops, mean, std, dtype):
    end = [] if str(dtype).endswith("uint8") else [Normalize(mean, std)]
    return Compose([*ops, *end, Cast(dtype), Layout("CHW")])
