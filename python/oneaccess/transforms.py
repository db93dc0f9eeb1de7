# SPDX-License-Identifier: Apache-2.0
"""Transforms by torchvision's names and with its defaults, as text for the daemon.

Nothing here touches a picture: a transform is an op of a pipeline (oneaccess-pipeline(5)), which the
daemon compiles, runs once for all jobs and gives exactly the pixels of Pillow and torchvision.
"""

import json

from .errors import TransformError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_DTYPES = {"uint8": "u8", "float16": "f16", "half": "f16", "bfloat16": "bf16", "float32": "f32",
           "float": "f32", "u8": "u8", "f16": "f16", "bf16": "bf16", "f32": "f32"}


class Op:
    """One op with its parameters; those left at None have the daemon's default."""

    def __init__(self, op: str, **parameters):
        self.op = op
        self.parameters = {name: value for name, value in parameters.items() if value is not None}

    def spec(self) -> dict:
        return {"op": self.op, **self.parameters}

    def __repr__(self):
        return f"{self.op}({', '.join(f'{n}={v!r}' for n, v in self.parameters.items())})"

    def __eq__(self, other):
        return isinstance(other, Op) and self.spec() == other.spec()

    def __hash__(self):
        return hash(json.dumps(self.spec(), sort_keys=True))


# What stands behind cast and layout.
_BEHIND = ("random_erasing", "filter", "map", "one_hot", "smooth", "mixup", "cutmix")


class Pipeline:
    """What a job asks to be done with each sample. ``json`` is the text that the daemon gets."""

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
        if not ops or ops[0].op != "decode":
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
    size = [int(extent) for extent in size]
    return size[0] if len(size) == 1 else size


def _list(values):
    return values if values is None or isinstance(values, (int, float, str)) else list(values)


def _interpolation(value):
    """A word, or torchvision's InterpolationMode."""
    return value if value is None or isinstance(value, str) else value.value


def Compose(transforms) -> Pipeline:
    """The transforms one after another."""
    return Pipeline(_settle(_flat(transforms)))


_OF_LABELS = ("filter", "map", "one_hot", "smooth", "mixup", "cutmix")


def views(first: Pipeline, *others: Pipeline, **named) -> Pipeline:
    """Several pictures of each sample, decoded once, each with draws of its own:

        loader = oa.Loader(path, oa.views(augmented, augmented), batch_size=256)     # SimCLR, MoCo
        for batch in loader: batch["image"], batch["image2"]
        oa.views(large, large, local=(small, 6))                                      # DINO: image, image2, local1 ... local6

    Each argument is a Pipeline. first makes "image", others "image2" and so on; of named ones the name is that of the field, and
    (pipeline, n) are n fields, NAME1 to NAMEn. What works on labels stands in the first one. A batch is a dict then."""
    ops = [op for op in first.ops if op.op not in _OF_LABELS]
    decode = [op for op in ops if op.op == "decode"]
    for name, view in [*((f"image{at}", view) for at, view in enumerate(others, 2)), *named.items()]:
        view, count = view if isinstance(view, tuple) else (view, None)
        if not isinstance(view, Pipeline):
            raise TransformError(f"view {name} is {view!r}: a view is a Pipeline, as Compose() makes them, or (Pipeline, how many)")
        wrong = [op.op for op in view.ops if op.op in _OF_LABELS]
        if wrong:
            raise TransformError(f"view {name} has {wrong[0]}, which works on the sample: put it into the first pipeline")
        own = [op for op in view.ops if op.op == "decode"]
        if own and own != (decode or [Op("decode")]):
            raise TransformError(f"view {name} has {own[0]}, and each picture is decoded once, as the first pipeline says: put it there")
        names = [name] if count is None else [f"{name}{number}" for number in range(1, count + 1)]
        ops += [Op("view", names=names), *(op for op in view.ops if op.op != "decode")]
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
    """fit "cover" or "contain" keeps the proportion of a picture that is to cover (height, width), or to lie
    in it, as timm's ResizeKeepRatio does."""
    return Op("resize", size=_size(size), interpolation=_interpolation(interpolation),
              max_size=max_size, antialias=antialias, fit=fit)


def CenterCrop(size, *, fill=None, half=None) -> Op:
    """fill is the colour around a picture that is smaller; half="down" is the middle of Hugging Face's
    image processors, which begins at the lower pixel where torchvision's begins at the even one."""
    return Op("center_crop", size=_size(size), fill=_list(fill), half=half)


def RandomCrop(size, padding=None, pad_if_needed=None, fill=None, padding_mode=None) -> Op:
    return Op("random_crop", size=_size(size), padding=_list(padding),
              pad_if_needed=pad_if_needed, fill=_list(fill), padding_mode=padding_mode)


def RandomResizedCrop(size, scale=None, ratio=None, interpolation=None, antialias=None, *,
                      or_interpolation=None) -> Op:
    """With or_interpolation each sample takes that filter or interpolation, each half of the time."""
    if antialias is False:
        raise TransformError("RandomResizedCrop: antialias=False is not there: pictures are always"
                             " antialiased, as Pillow's are")
    return Op("random_resized_crop", size=_size(size), scale=_list(scale), ratio=_list(ratio),
              interpolation=_interpolation(interpolation),
              or_interpolation=_interpolation(or_interpolation))


def FiveCrop(size) -> Op:
    return Op("five_crop", size=_size(size))


def RandomHorizontalFlip(p=None) -> Op:
    return Op("hflip", p=p)


def RandomVerticalFlip(p=None) -> Op:
    return Op("vflip", p=p)


def RandomRotation(degrees, interpolation=None, expand=None, center=None, fill=None) -> Op:
    return Op("rotate", degrees=_list(degrees), interpolation=_interpolation(interpolation),
              expand=expand, center=_list(center), fill=_list(fill))


def RandomAffine(degrees, translate=None, scale=None, shear=None, interpolation=None, fill=None,
                 center=None) -> Op:
    return Op("affine", degrees=_list(degrees), translate=_list(translate), scale=_list(scale),
              shear=_list(shear), interpolation=_interpolation(interpolation), fill=_list(fill),
              center=_list(center))


def Pad(padding, fill=None, padding_mode=None) -> Op:
    return Op("pad", padding=_list(padding), fill=_list(fill), padding_mode=padding_mode)


# ---- colours ----


def ColorJitter(brightness=None, contrast=None, saturation=None, hue=None, p=None) -> Op:
    """p: the probability, as of RandomApply([ColorJitter(...)], p)."""
    return Op("color_jitter", brightness=_list(brightness), contrast=_list(contrast),
              saturation=_list(saturation), hue=_list(hue), p=p)


def Grayscale(num_output_channels=None) -> Op:
    return Op("grayscale", num_output_channels=num_output_channels)


def RandomGrayscale(p=None) -> Op:
    return Op("random_grayscale", p=p)


def GaussianBlur(kernel_size, sigma=None, p=None) -> Op:
    """Sums are added up in another order than torch's: a value in about 50,000 differs from torchvision's by one. p:
    the probability, as of RandomApply([GaussianBlur(...)], p)."""
    return Op("gaussian_blur", kernel_size=_list(kernel_size), sigma=_list(sigma), p=p)


def RandomAutocontrast(p=None) -> Op:
    return Op("autocontrast", p=p)


def RandomEqualize(p=None) -> Op:
    return Op("equalize", p=p)


def RandomInvert(p=None) -> Op:
    return Op("invert", p=p)


def RandomPosterize(bits, p=None) -> Op:
    return Op("posterize", bits=bits, p=p)


def RandomSolarize(threshold, p=None) -> Op:
    return Op("solarize", threshold=threshold, p=p)


def RandomAdjustSharpness(sharpness_factor, p=None) -> Op:
    return Op("sharpness", sharpness_factor=sharpness_factor, p=p)


def RandAugment(num_ops=None, magnitude=None, num_magnitude_bins=None, interpolation=None,
                fill=None) -> Op:
    return Op("rand_augment", num_ops=num_ops, magnitude=magnitude,
              num_magnitude_bins=num_magnitude_bins, interpolation=_interpolation(interpolation),
              fill=_list(fill))


def TrivialAugmentWide(num_magnitude_bins=None, interpolation=None, fill=None) -> Op:
    return Op("trivial_augment", num_magnitude_bins=num_magnitude_bins,
              interpolation=_interpolation(interpolation), fill=_list(fill))


def AutoAugment(policy=None, interpolation=None, fill=None) -> Op:
    policy = policy if policy is None or isinstance(policy, str) else policy.value
    return Op("auto_augment", policy=policy, interpolation=_interpolation(interpolation),
              fill=_list(fill))


def TimmRandAugment(num_ops=None, p=None, magnitude=None, magnitude_std=None, uniform=None, magnitude_max=None,
                    increasing=None, interpolation=None, fill=None, translate=None) -> Op:
    """timm's RandAugment: "rand-m9-mstd0.5-inc1" is TimmRandAugment(magnitude=9, magnitude_std=0.5,
    increasing=True)."""
    return Op("timm_rand_augment", num_ops=num_ops, p=p, magnitude=magnitude, magnitude_std=magnitude_std,
              uniform=uniform, magnitude_max=magnitude_max, increasing=increasing,
              interpolation=_interpolation(interpolation), fill=_list(fill), translate=translate)


def RandomErasing(p=None, scale=None, ratio=None, value=None) -> Op:
    return Op("random_erasing", p=p, scale=_list(scale), ratio=_list(ratio), value=_list(value))


# ---- the end ----


def Normalize(mean, std) -> Op:
    return Op("normalize", mean=_list(mean), std=_list(std))


def Cast(dtype) -> Op:
    """"uint8", "float16", "bfloat16" or "float32", or torch's or NumPy's dtype of that name."""
    word = getattr(dtype, "__name__", None) or str(dtype).rsplit(".", 1)[-1]
    if word not in _DTYPES:
        raise TransformError(f"Cast: images are uint8, float16, bfloat16 or float32, not {dtype}")
    return Op("cast", dtype=_DTYPES[word])


def Layout(order="CHW") -> Op:
    return Op("layout", order=order)


def ToTensor() -> Pipeline:
    """float32 of 0 to 1, [channels, height, width]."""
    return Pipeline([Cast("float32"), Layout("CHW")])


def PILToTensor() -> Op:
    """uint8, [channels, height, width]."""
    return Layout("CHW")


# ---- at random ----


def RandomApply(transforms, p=0.5) -> Pipeline:
    """All of the transforms with probability p, else none. They work on pictures: what makes tensors of them,
    and what comes behind that, is not among them."""
    return _either(p, Pipeline(_flat(transforms)), Pipeline([]))


def RandomChoice(transforms, p=None) -> Pipeline:
    """One of the transforms, each of which may be a Compose. p: a weight for each; None: all alike."""
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


def _flat(transforms):
    flat = []
    for transform in transforms:
        flat.extend(transform.ops if isinstance(transform, Pipeline) else [transform])
    return flat


def _either(p, first, second):
    """The ops of first with probability p, else those of second."""
    for op in first.ops + second.ops:
        if op.op in ("normalize", "cast", "layout", "filter", "map", "one_hot", "smooth", "mixup", "cutmix",
                     "five_crop"):
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
    return Op("one_hot", num_classes=num_classes)


def LabelMap(labels=None, table=None, default=None) -> Op:
    return Op("map", labels=_list(labels), table=table, default=default)


def LabelSmoothing(epsilon=None, num_classes=None) -> Op:
    return Op("smooth", epsilon=epsilon, num_classes=num_classes)


def Filter(keep=None, drop=None, min_width=None, max_width=None, min_height=None,
           max_height=None) -> Op:
    """Leaves samples out by class number or by size."""
    return Op("filter", keep=_list(keep), drop=_list(drop), min_width=min_width,
              max_width=max_width, min_height=min_height, max_height=max_height)


def MixUp(*, alpha=None, num_classes=None, p=None) -> Op:
    return Op("mixup", alpha=alpha, num_classes=num_classes, p=p)


def CutMix(*, alpha=None, num_classes=None, p=None) -> Op:
    return Op("cutmix", alpha=alpha, num_classes=num_classes, p=p)


# ---- what most people want ----


def imagenet_train(size=224, *, mean=IMAGENET_MEAN, std=IMAGENET_STD, dtype="float32") -> Pipeline:
    """RandomResizedCrop(size), RandomHorizontalFlip(), Normalize, [3, size, size]. dtype "uint8" leaves
    the pixels as they are, for normalising on the device."""
    return _imagenet([RandomResizedCrop(size), RandomHorizontalFlip()], mean, std, dtype)


def imagenet_eval(size=224, *, resize=None, mean=IMAGENET_MEAN, std=IMAGENET_STD,
                  dtype="float32") -> Pipeline:
    """Resize(resize: 256 for 224), CenterCrop(size), Normalize, [3, size, size]."""
    resize = resize if resize is not None else size * 256 // 224
    return _imagenet([Resize(resize), CenterCrop(size)], mean, std, dtype)


def _imagenet(ops, mean, std, dtype):
    end = [] if str(dtype).endswith("uint8") else [Normalize(mean, std)]
    return Compose([*ops, *end, Cast(dtype), Layout("CHW")])
