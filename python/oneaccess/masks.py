# SPDX-License-Identifier: Apache-2.0
"""Masks: pictures of labels that follow the picture beside them."""

import sys
from collections.abc import Mapping, Sequence

from .errors import ArgumentError, TransformError

_DTYPES = {"uint8": 1, "uint16": 9, "int32": 8, "int64": 4}     # as record.py has them
_U8 = 1
_KINDS = {"torchvision": 5, "pillow": 6}


class Mask:
    """Of wrap()'s masks=: how a field of masks becomes labels, one for each pixel of the picture.

    fill: the label of what comes from outside of the picture, where an op pads or turns it; 255 is what losses usually pass over
    (ignore_index). dtype: "uint8", "uint16", "int32" or "int64". nearest: "torchvision" resizes as its v2 transforms do with a
    tv_tensors.Mask (and OpenCV does), "pillow" as Pillow's NEAREST."""

    def __init__(self, fill: int = 0, dtype: str = "uint8", nearest: str = "torchvision"):
        if dtype not in _DTYPES:
            raise ArgumentError(f"dtype is {dtype!r}; labels have: {', '.join(_DTYPES)}")
        if nearest not in _KINDS:
            raise ArgumentError(f"nearest is {nearest!r}; there are: {', '.join(_KINDS)}")
        most = 255 if dtype == "uint8" else 65535
        if not isinstance(fill, int) or not 0 <= fill <= most:
            raise ArgumentError(f"fill is {fill!r}: a label from 0 to {most}")
        self.fill, self.dtype, self.nearest = fill, dtype, nearest

    def __repr__(self):
        return f"Mask(fill={self.fill}, dtype={self.dtype!r}, nearest={self.nearest!r})"

    def code(self):
        """The number of its kind, and what the pipeline is told of the field."""
        return _KINDS[self.nearest], [_DTYPES[self.dtype], *([self.fill] if self.fill else [])]


def codes(masks: str | Sequence[str] | Mapping[str, Mask] | None) -> dict[str, tuple[int, list[int]]]:
    """What wrap() was given, as a pool and a pipeline are told of it."""
    if isinstance(masks, str):
        masks = [masks]
    if not isinstance(masks, Mapping):
        masks = {name: Mask() for name in masks or ()}
    for name, mask in masks.items():
        if not isinstance(mask, Mask):
            raise ArgumentError(f"masks[{name!r}] is {mask!r}: give oneaccess.Mask(fill=..., dtype=...)")
    return {name: mask.code() for name, mask in masks.items()}


def file_of(value, what: str):
    """The bytes of a mask's file: as they are, or of a picture of Pillow's, an array or a tensor of labels."""
    import numpy as np
    torch = sys.modules.get("torch")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _U8, np.frombuffer(bytes(value) or b"\0", np.uint8)
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "getbands") and hasattr(value, "convert"):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise TransformError(f"{what} is a {type(value).__name__}; a mask is the bytes of a PNG file, a picture of Pillow's, an array or a"
                             " tensor of labels")
    if value.ndim == 3 and 1 in (value.shape[0], value.shape[2]):
        value = value.reshape(value.shape[1:] if value.shape[0] == 1 else value.shape[:2])
    if value.ndim != 2 or value.size == 0 or value.dtype.kind not in "biu":
        raise TransformError(f"{what} is {value.dtype} of shape {value.shape}; a mask has one whole number for each pixel of its picture")
    if value.min() < 0 or value.max() > 65535:
        raise TransformError(f"{what} has labels from {value.min()} to {value.max()}; those of a mask are from 0 to 65535")
    most, kind = (255, np.uint8) if value.max() <= 255 else (65535, ">u2")
    head = b"P5\n%d %d\n%d\n" % (value.shape[1], value.shape[0], most)
    return _U8, np.frombuffer(head + value.astype(kind).tobytes(), np.uint8)
