# SPDX-License-Identifier: Apache-2.0
"""What follows the picture of a sample: masks, which are pictures of labels, further pictures, and what was measured of its pixels."""

import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .errors import ArgumentError, TransformError

_DTYPES = {"uint8": 1, "uint16": 9, "int32": 8, "int64": 4}     # as record.py has them
_U8 = 1
_KINDS = {"torchvision": 5, "pillow": 6}
_IMAGE, _WITHOUT_COLORS, _OWN = 8, 9, 10
SIDE = _OWN, [_U8], None, None     # as Image.code() has it: a file that a view of the field's name decodes
_MEASURED, _F32 = 12, 3
_MOST_TIMES, _MOST_DIVISOR = 16, 1 << 30
_CHANNELS = (1, 2, 3)        # of what was measured


class Mask:
    """How a field of masks becomes labels, for masks= of wrap().

    fill: the label of what comes from outside of the image, where an op pads or rotates it; default 0. 255 is what losses
        usually ignore (ignore_index).
    dtype: "uint8" (default), "uint16", "int32" or "int64".
    nearest: "torchvision" (default) resizes as its v2 transforms do with a tv_tensors.Mask, and OpenCV does; "pillow" as
        Pillow's NEAREST.
    colors: for masks in colour, such as ADE20K's, CamVid's and VOC's that were saved as RGB: the colour of each label, [(0,
        0, 0), (128, 64, 128), ...], or {colour: label}. A pixel of another colour makes the sample bad. Two masks of a
        sample have one table.
    """

    def __init__(self, fill: int = 0, dtype: str = "uint8", nearest: str = "torchvision",
                 colors: Sequence[Sequence[int]] | Mapping[Sequence[int], int] | None = None):
        if dtype not in _DTYPES:
            raise ArgumentError(f"dtype is {dtype!r}; labels have: {', '.join(_DTYPES)}")
        if nearest not in _KINDS:
            raise ArgumentError(f"nearest is {nearest!r}; there are: {', '.join(_KINDS)}")
        most = 255 if dtype == "uint8" else 65535
        if not isinstance(fill, int) or not 0 <= fill <= most:
            raise ArgumentError(f"fill is {fill!r}: a label from 0 to {most}")
        self.fill, self.dtype, self.nearest, self.colors = fill, dtype, nearest, _colors(colors, most)

    def __repr__(self):
        return f"Mask(fill={self.fill}, dtype={self.dtype!r}, nearest={self.nearest!r}, colors={self.colors!r})"

    def code(self):
        """The number of its kind, what the pipeline is told of the field, and the table of colours."""
        return _KINDS[self.nearest], [_DTYPES[self.dtype], *([self.fill] if self.fill else [])], self.colors


class Image:
    """How a further image of a sample follows the first one, for images= of wrap().

    scale: how many times as high and wide as the first one it is, a whole number to 16: of a high resolution beside a low one.
        Crops, padding and sizes are multiplied by it. Default 1.
    colors: False: transforms that move nothing (ColorJitter, GaussianBlur, RandomErasing and their like) are done to the first
        image alone. Default True: to this one, too, with the same random numbers, as torchvision's v2 does with several images.
    normalize: True (default): as the pipeline normalizes the first one. False: value / 255. Or (mean, std).
    """

    def __init__(self, scale: int = 1, colors: bool = True, normalize: bool | tuple[Any, Any] = True):
        if isinstance(scale, bool) or not isinstance(scale, int) or not 1 <= scale <= _MOST_TIMES:
            raise ArgumentError(f"scale is {scale!r}: a whole number from 1 to {_MOST_TIMES}, of how many times as large as the first image it is")
        if not isinstance(normalize, bool) and not (isinstance(normalize, (tuple, list)) and len(normalize) == 2):
            raise ArgumentError(f"normalize is {normalize!r}: True, False or (mean, std)")
        self.scale, self.colors = scale, bool(colors)
        try:
            self.normalize = normalize if isinstance(normalize, bool) else tuple(_numbers(each) for each in normalize)
        except (TypeError, ValueError):
            raise ArgumentError(f"normalize is {normalize!r}: (mean, std), each a number, or one for each channel") from None

    def __repr__(self):
        return f"Image(scale={self.scale}, colors={self.colors}, normalize={self.normalize!r})"

    def code(self):
        """As that of a mask, and how it is normalized: None: as the first one, (): value / 255."""
        end = None if self.normalize is True else self.normalize or ()
        return _IMAGE if self.colors else _WITHOUT_COLORS, [_U8, *([self.scale] if self.scale > 1 else [])], None, end


class Measured:
    """How a field of what was measured of the image's pixels follows it: Flow, Disparity, Depth and Normals."""

    _what = 0

    def __init__(self, nearest: bool, divisor: int | None = None):
        if divisor is not None and (isinstance(divisor, bool) or not isinstance(divisor, int) or not 1 <= divisor <= _MOST_DIVISOR):
            raise ArgumentError(f"divisor is {divisor!r}: a whole number from 1 to {_MOST_DIVISOR}, which the file's numbers are divided by")
        self.nearest, self.divisor = bool(nearest), divisor

    def __repr__(self):
        return f"{type(self).__name__}(nearest={self.nearest}{'' if self.divisor is None else f', divisor={self.divisor}'})"

    def code(self):
        """As that of a mask."""
        return _MEASURED, [_F32, self._what, 2 if self.nearest else 1, *([self.divisor] if self.divisor else [])], None, None


def _numbers(value):
    return [float(each) for each in value] if hasattr(value, "__len__") else float(value)


def is_image(code) -> bool:
    """Is that what Image.code() gives, or SIDE?"""
    return code[0] in (_IMAGE, _WITHOUT_COLORS, _OWN)


def is_side(code) -> bool:
    """Is that SIDE?"""
    return code[0] == _OWN


def is_measured(code) -> bool:
    """Is that what Measured.code() gives?"""
    return code[0] == _MEASURED


def following(masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None,
              images: str | Sequence[str] | Mapping[str, Image] | None) -> dict[str, Mask | Measured | Image]:
    """What follows, of masks= and images=."""
    made = {}
    for what, given, kind in (("masks", masks, Mask), ("images", images, Image)):
        given = [given] if isinstance(given, str) else given or ()
        if not isinstance(given, Iterable):
            raise ArgumentError(f"{what} is {given!r}: the name of a field, or several")
        for name, each in (given if isinstance(given, Mapping) else {name: kind() for name in given}).items():
            if name in made:
                raise ArgumentError(f"masks= and images= both name {name!r}")
            if not isinstance(each, (Mask, Image, Measured) if what == "masks" else kind):
                raise ArgumentError(f"{what}[{name!r}] is {each!r}: give oneaccess.{kind.__name__}({'fill=..., dtype=...' if kind is Mask else 'scale=..., colors=...'})"
                                    + (", Flow(), Disparity(), Depth() or Normals()" if kind is Mask else ""))
            made[name] = each
    return made


def _colors(colors, most):
    """[red, green, blue, label] of each."""
    if colors is None:
        return None
    pairs = colors.items() if isinstance(colors, Mapping) else ((color, label) for label, color in enumerate(colors))
    made = [[*map(int, color), int(label)] for color, label in pairs]
    for *color, label in made:
        if len(color) != 3 or not all(0 <= part <= 255 for part in color) or not 0 <= label <= most:
            raise ArgumentError(f"colors has {tuple(color)} for label {label}: a colour is (red, green, blue), each to 255, a label one from 0 to {most}")
    if not made or len({tuple(color[:3]) for color in made}) < len(made):
        raise ArgumentError("colors names no colour, or one of them twice")
    return made


def codes(given: Mapping[str, Mask | Measured | Image]) -> dict[str, tuple]:
    """What following() gave, as a pool and a pipeline are told of it."""
    masks = {name: mask for name, mask in given.items() if isinstance(mask, Mask)}
    for name, mask in masks.items():
        if mask.colors != next(iter(masks.values())).colors:
            raise ArgumentError(f"masks[{name!r}] has other colors than {next(iter(masks))!r}: masks of a sample have one table of them")
    return {name: each.code() for name, each in given.items()}


def npy(array) -> bytes:
    """The array's file, of a volume."""
    import numpy as np
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(array))
    return file.getvalue()


def numbers_of(value, what: str):
    """The bytes of a file of what was measured: as they are, or of an array, a tensor or a picture of Pillow's with one number."""
    import numpy as np
    torch = sys.modules.get("torch")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _U8, np.frombuffer(bytes(value) or b"\0", np.uint8)
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "getbands") and hasattr(value, "convert"):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray) or value.ndim not in (2, 3) or value.size == 0 or value.dtype.kind not in "iuf":
        raise TransformError(f"{what} is {f'{value.dtype} of shape {value.shape}' if isinstance(value, np.ndarray) else f'a {type(value).__name__}'}; what was measured of"
                             " pixels is the bytes of a file, or an array or tensor of numbers, [H, W], [C, H, W] or [H, W, C]")
    if value.ndim == 3 and value.shape[0] not in _CHANNELS and value.shape[2] in _CHANNELS:
        value = value.transpose(2, 0, 1)
    return _U8, np.frombuffer(npy(value.astype(np.float32)), np.uint8)


def file_of(value, what: str, of_colors: bool):
    """The bytes of a mask's file: as they are, or of a picture of Pillow's, an array or a tensor of labels, or of colours."""
    import numpy as np
    torch = sys.modules.get("torch")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _U8, np.frombuffer(bytes(value) or b"\0", np.uint8)
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "getbands") and hasattr(value, "convert"):
        value = np.asarray(value.convert("RGB") if of_colors else value)
    if not isinstance(value, np.ndarray):
        raise TransformError(f"{what} is a {type(value).__name__}; a mask is the bytes of a PNG or TIFF file, a picture of Pillow's, an array or a"
                             " tensor of labels")
    if of_colors and value.ndim == 3 and value.dtype == np.uint8 and 3 in (value.shape[0], value.shape[2]):
        value = value if value.shape[2] == 3 else value.transpose(1, 2, 0)
        return _U8, np.frombuffer(b"P6\n%d %d\n255\n" % (value.shape[1], value.shape[0]) + value.tobytes(), np.uint8)
    if value.ndim == 3 and 1 in (value.shape[0], value.shape[2]):
        value = value.reshape(value.shape[1:] if value.shape[0] == 1 else value.shape[:2])
    if value.ndim == 3 and value.dtype.kind in "biu" and value.size > 0:
        return _U8, np.frombuffer(npy(value), np.uint8)
    if value.ndim != 2 or value.size == 0 or value.dtype.kind not in "biu":
        raise TransformError(f"{what} is {value.dtype} of shape {value.shape}; a mask has one whole number for each pixel of its picture")
    if value.min() < 0 or value.max() > 65535:
        raise TransformError(f"{what} has labels from {value.min()} to {value.max()}; those of a mask are from 0 to 65535")
    most, kind = (255, np.uint8) if value.max() <= 255 else (65535, ">u2")
    head = b"P5\n%d %d\n%d\n" % (value.shape[1], value.shape[0], most)
    return _U8, np.frombuffer(head + value.astype(kind).tobytes(), np.uint8)
