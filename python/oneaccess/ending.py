# SPDX-License-Identifier: Apache-2.0
"""The end of a pipeline, normalize and cast, for whoever does it elsewhere: on a device, which then gets
a byte for each value instead of two or four.

That changes nothing but the place: the ops behind the pixels' are no part of what is drawn at random. Where
something stands behind them that works on the finished values, the daemon has to do it all.
"""

import json
import math

# The names of oneaccess-pipeline(5), whose normalize is transforms.IMAGENET_MEAN and _STD.
_MEAN, _STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
_NAMED = ("imagenet-train", "imagenet-eval")
_FLOATS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
_FINISHED = {
    "random_erasing": "random_erasing works on finished values: put it before normalize and cast",
    "gaussian_noise": "gaussian_noise is of floats: add it in the loop",
    "mixup": "mixup adds finished values up: cutmix does not",
    "mosaic": "mosaic scales finished values: Mosaic(scale=1) does not",
}


class Ending:
    """What is left to do: to dtype ("float32", "float16", "bfloat16"), with mean and std where they are
    not None; the channels are dimension axis (-3, -1) of the images. others: of further images that follow the
    first one, {place of the field in a batch: its Ending}."""

    def __init__(self, dtype: str, mean: list[float] | None, std: list[float] | None, axis: int):
        self.dtype, self.mean, self.std, self.axis = dtype, mean, std, axis
        self.others: dict[int, Ending] = {}

    def __repr__(self):
        what = f"normalize({self.mean}, {self.std}), " if self.mean else ""
        return f"{what}cast({self.dtype})"


def _numbers(value, least=-math.inf):
    """As a list, or None: the daemon says what is wrong with it."""
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, (int, float)) or not least < each < math.inf:
            return None
    return [float(each) for each in values] if len(values) in (1, 3) else None


def _read(ops):
    """The Ending of those ops (those that are there: "normalize", "cast", "layout"); None: something is
    wrong, or nothing is left to do."""
    normalize, cast = ops.get("normalize"), ops.get("cast")
    if normalize is None and cast is None:
        return None
    dtype = _FLOATS.get((cast or {}).get("dtype", "f32"))
    axis = -3 if ops.get("layout", {"order": "HWC"}).get("order", "CHW") == "CHW" else -1
    if dtype is None or not set(cast or ()) <= {"op", "dtype"}:
        return None
    if normalize is None:
        return Ending(dtype, None, None, axis)
    mean, std = _numbers(normalize.get("mean")), _numbers(normalize.get("std"), 0)
    if mean is None or std is None or set(normalize) != {"op", "mean", "std"}:
        return None
    return Ending(dtype, mean, std, axis)


_FOLLOWING = (8, 9)     # kinds of fields that are images
_BESIDE = 2             # fields before the first of those beside image and label


def _others(ops, owns, ending):
    """{place: Ending} of images that follow; None: something is wrong."""
    kinds, made = ops[0].get("kinds") or [], {}
    names = ops[0].get("names") or [f"field{_BESIDE + at}" for at in range(len(kinds))]
    for own in owns:
        mean, std = _numbers(own.get("mean")), _numbers(own.get("std"), 0)
        if mean is None or std is None or set(own) != {"op", "mean", "std", "of"} or not set(own["of"]) <= set(names):
            return None
        made.update({_BESIDE + names.index(name): Ending(ending.dtype, mean, std, ending.axis) for name in own["of"]})
    return {_BESIDE + at: made.get(_BESIDE + at, ending) for at, kind in enumerate(kinds) if kind in _FOLLOWING}


def _split(ops):
    """(ops without their end, Ending or None, why not, for people)."""
    owns = [op for op in ops if op["op"] == "normalize" and op.get("of")]
    ops, whole = [op for op in ops if op not in owns], ops
    ends = [at for at, op in enumerate(ops) if op["op"] in ("normalize", "cast", "layout")]
    found = {ops[at]["op"]: ops[at] for at in ends}
    if ops and ops[0]["op"] in ("bands", "cloud", "volume"):
        return ops, None, f"the numbers of {ops[0]['op']} are floats already"
    if any(op["op"] == "patches" for op in ops):
        return ops, None, "the zeros behind patches are no values to normalize"
    if any(op["op"] == "view" for op in ops):
        return ops, None, "each of several views has an end of its own"
    ending = _read(found) if len(found) == len(ends) else None
    others = _others(whole, owns, ending) if ending else None
    if others is None:
        return ops, None, None
    ending.others = others
    for at, op in enumerate(ops):
        if op["op"] in _FINISHED and (at > ends[0] or op["op"] == "gaussian_noise") and not (op["op"] == "mosaic" and op.get("scale") in (1, [1], [1, 1])):
            return ops, None, _FINISHED[op["op"]]
    return [op for op in ops if op["op"] not in ("normalize", "cast")], ending, None


def take_off(text: str) -> tuple[str, Ending | None, str | None]:
    """The pipeline as text, without normalize and cast; what they were; else None and, where they had
    to stay, why. A text that is wrong stays as it is: the daemon says what is wrong."""
    if text in _NAMED:
        return f"{text}-u8", Ending("float32", _MEAN, _STD, -3), None
    try:
        spec = json.loads(text)
        ops, ending, why = _split(spec["ops"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return text, None, None
    if ending is None:
        return text, None, why
    return json.dumps({**spec, "ops": ops}, separators=(",", ":")), ending, None
