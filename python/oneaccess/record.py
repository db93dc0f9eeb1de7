# SPDX-License-Identifier: Apache-2.0
"""Samples of a Python data set as records (pipeline/forms/packed.h): what they are made of, and the packing."""

import struct
import sys

from .errors import TransformError

MAGIC = 0x3144524352214f41
ALIGN = 64
MOST_FIELDS, MOST_DIMENSIONS = 4, 4
U8, F16, F32, I64, BF16 = 1, 2, 3, 4, 5
_HEAD, _PLACE = struct.Struct("<QQIIQ"), struct.Struct("<II4QQQ")
_HEAD_BYTES = 256
_CODES = {"uint8": U8, "float16": F16, "float32": F32, "int64": I64}
_NAMES = {U8: "uint8", F16: "float16", F32: "float32", I64: "int64", BF16: "bfloat16"}
# What has no type of its own in a batch, and the one that holds all its values.
_WIDER = {"bool": "uint8", "int8": "int64", "int16": "int64", "int32": "int64", "uint16": "int64",
          "uint32": "int64"}


class Misfit(Exception):
    """A sample that is not as the first one was."""


# ---- values ----


def _array(value, what):
    """A number, array, tensor or picture as (code, array in C order)."""
    import numpy as np
    torch = sys.modules.get("torch")
    code = None
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach()
        if value.device.type != "cpu":
            raise TransformError(f"{what} is a tensor on {value.device}: leave it on the CPU; the training"
                                 " loop moves batches")
        if value.dtype == torch.bfloat16:
            value, code = value.contiguous().view(torch.int16), BF16
        value = value.numpy()
    elif hasattr(value, "getbands") and hasattr(value, "convert"):   # Pillow's
        value = np.asarray(value if value.mode in ("L", "RGB", "RGBA") else value.convert("RGB"))
    elif isinstance(value, float):
        value = np.float32(value)
    elif isinstance(value, (list, tuple)):
        value = _list(value, what)
    elif not isinstance(value, (bool, int, np.ndarray, np.generic)):
        raise TransformError(f"{what} is a {type(value).__name__}; a field is a tensor, an array, a picture"
                             f" of Pillow, a number or a list of numbers: {_instead(value)}")
    array = np.asarray(value)
    name = _WIDER.get(array.dtype.name, array.dtype.name)
    if code is None and name not in _CODES:
        raise TransformError(f"{what} has dtype {array.dtype}; batches have uint8, int64, float16, bfloat16 and"
                             " float32: convert it in the data set")
    if array.ndim > MOST_DIMENSIONS:
        raise TransformError(f"{what} has {array.ndim} dimensions; at most {MOST_DIMENSIONS} have a place")
    if array.size == 0:
        raise TransformError(f"{what} has no value in it (shape {array.shape})")
    if code is None:
        code, array = _CODES[name], array.astype(name, copy=False)
    return code, array if array.flags.c_contiguous else array.copy(order="C")


def _instead(value):
    if isinstance(value, str):
        return ("leave it out, by columns=[...] of the others in wrap(), or have its UTF-8 bytes, by pad={name:"
                " oneaccess.Pad(length)}")
    if isinstance(value, bytes):
        return ("if it is a picture's file, give the Loader a pipeline, which decodes it; else have its bytes, by pad={name:"
                " oneaccess.Pad(length)}, or leave it out, by columns=[...] of the others")
    return "turn it into one in the data set, or leave it out, by columns=[...] of the others in wrap()"


def _list(value, what):
    import numpy as np
    try:
        array = np.asarray(value)
    except ValueError:
        array = None
    if array is None or array.dtype.kind not in "biuf":
        raise TransformError(f"{what} is a list, not of numbers alone or not of one shape: {_instead(value)}")
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _pnm(array, what):
    """An 8-bit picture, HWC or HW, as the bytes of a file."""
    if array.dtype.name != "uint8" or array.ndim not in (2, 3) or array.ndim == 3 and array.shape[2] not in (1, 3):
        raise TransformError(f"{what} is {array.dtype} of shape {array.shape}; a pipeline works on 8-bit pictures"
                             " of one or three channels: leave their normalizing to it, or leave the pipeline out")
    kind = b"P6" if array.ndim == 3 and array.shape[2] == 3 else b"P5"
    return b"%s\n%d %d\n255\n" % (kind, array.shape[1], array.shape[0]) + array.tobytes()


def _picture(value, what):
    """The bytes of a picture's file: as they are, or of pixels."""
    import numpy as np
    torch = sys.modules.get("torch")
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
    elif torch is not None and isinstance(value, torch.Tensor):
        array = value.detach().cpu().numpy()
        data = _pnm(array.transpose(1, 2, 0) if array.ndim == 3 else array, what)
    elif hasattr(value, "getbands") and hasattr(value, "convert"):
        data = _pnm(np.asarray(value if value.mode in ("L", "RGB") else value.convert("RGB")), what)
    elif isinstance(value, np.ndarray):
        data = _pnm(value, what)
    else:
        raise TransformError(f"{what} is a {type(value).__name__}; a pipeline works on pictures: of Pillow, arrays"
                             " (H, W, C), tensors (C, H, W), or the bytes of a file")
    return U8, np.frombuffer(data or b"\0", np.uint8)


# ---- samples ----


def _parts(sample):
    """kind, names, values."""
    if isinstance(sample, dict):
        for name in sample:
            if not isinstance(name, str):
                raise TransformError(f"the sample has the key {name!r}; keys are strings")
        return "dict", list(sample), list(sample.values())
    if isinstance(sample, (tuple, list)):
        names = list(getattr(sample, "_fields", ())) or [str(i) for i in range(len(sample))]
        return "tuple", names, list(sample)
    return "one", ["0"], [sample]


def _values(sample, pictures):
    kind, names, values = _parts(sample)
    if not 1 <= len(values) <= MOST_FIELDS:
        raise TransformError(f"the sample has {len(values)} fields, {', '.join(names)}; one to {MOST_FIELDS} have a"
                             " place: name those that a batch is to have, by columns=[...] of wrap()")
    if pictures and len(values) > 2:
        raise TransformError(f"the sample has the fields {', '.join(names)}; with a pipeline it is a picture, or"
                             " a picture and its label: name these, by columns=[...] of wrap(), or leave the pipeline"
                             " out to get fields as they are")
    made = []
    for i, value in enumerate(values):
        what = f"field {names[i]} of the sample" if kind != "one" else "the sample"
        made.append(_picture(value, what) if pictures and i == 0 else _array(value, what))
    if pictures and len(made) > 1 and (made[1][0] != I64 or made[1][1].ndim != 0):
        raise TransformError(f"the sample's label is {_NAMES[made[1][0]]} of shape {made[1][1].shape}; with a"
                             " pipeline it is a whole number")
    return kind, names, made


def _bytes_of(made):
    at = _HEAD_BYTES
    for _, array in made:
        at = -(-at // ALIGN) * ALIGN + array.nbytes
    return at


def describe(sample, pictures: bool) -> dict:
    """What all samples are to be like."""
    kind, names, made = _values(sample, pictures)
    return {"kind": kind, "names": names, "bytes": _bytes_of(made),
            "fields": [[code, *array.shape] for code, array in made]}


def _check(names, made, layout, pictures):
    if len(made) != len(layout["fields"]) or names != layout["names"]:
        raise Misfit(f"fields {names}, sample 0: {layout['names']}")
    for i, (code, array) in enumerate(made):
        want, *shape = layout["fields"][i]
        if pictures and i == 0:
            continue
        if list(array.shape) != shape:
            raise Misfit(f"field {names[i]}: shape {_shape(array.shape)}, sample 0: {_shape(shape)}")
        if code != want:
            raise Misfit(f"field {names[i]}: {_NAMES[code]}, sample 0: {_NAMES[want]}")


def differs(sample, layout: dict, pictures: bool) -> str | None:
    """What of the sample is not as it is in sample 0."""
    try:
        _, names, made = _values(sample, pictures)
        _check(names, made, layout, pictures)
    except Misfit as why:
        return str(why)
    return None


def _shape(shape):
    return "x".join(map(str, shape)) or "()"


class Record:
    """A sample as it goes to a batch: size bytes."""

    def __init__(self, sample, layout: dict, pictures: bool):
        _, names, self._made = _values(sample, pictures)
        _check(names, self._made, layout, pictures)
        self.size = _bytes_of(self._made)

    def write(self, memory) -> None:
        """To memory of so many bytes."""
        at = _HEAD_BYTES
        memory[:at] = bytes(at)
        for i, (code, array) in enumerate(self._made):
            begin = -(-at // ALIGN) * ALIGN
            memory[at:begin], at = bytes(begin - at), begin
            shape = list(array.shape) + [0] * (MOST_DIMENSIONS - array.ndim)
            _PLACE.pack_into(memory, _HEAD.size + i * _PLACE.size, code, array.ndim, *shape, at, array.nbytes)
            memory[at:at + array.nbytes] = array.reshape(-1).view("uint8").data
            at += array.nbytes
        _HEAD.pack_into(memory, 0, MAGIC, self.size, len(self._made), 0, 0)
