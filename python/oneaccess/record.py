# SPDX-License-Identifier: Apache-2.0
"""Samples of a Python data set as records (pipeline/forms/packed.h): what they are made of, and the packing."""

import io
import struct
import sys
from collections.abc import Collection

from . import flat
from .errors import DatasetError, TransformError
from .masks import SIDE, file_of, is_image, is_measured, is_side, npy, numbers_of
from .segments import Segment

MAGIC, WIDE_MAGIC = 0x3144524352214f41, 0x3244524352214f41
ALIGN = 64
FIRST_FIELDS, MOST_FIELDS, MOST_DIMENSIONS = 4, 23, 4
U8, F16, F32, I64, BF16 = 1, 2, 3, 4, 5
DENSE, RAGGED, TEXT = 0, 1, 2
_HEAD, _PLACE = struct.Struct("<QQIIQ"), struct.Struct("<II4QQQ")
_LEAST_TEXT = 256
_ORIENTATION = 0x112        # of EXIF
_MODES = ("L", "RGB", "RGBA")
_HEAD_BYTES = 256           # of at most four fields; else that of a wide one, and as many for each field
_WIDE_BYTES = 64
_PART = struct.Struct("<Iddd")   # behind a wide head's number of fields
_PART_AT = 20
_CODES = {"uint8": U8, "float16": F16, "float32": F32, "int64": I64, "int8": 6, "int16": 7, "int32": 8, "uint16": 9, "uint32": 10,
          "uint64": 11, "float64": 12, "bool": 13}
NAMES = {**{code: name for name, code in _CODES.items()}, BF16: "bfloat16"}
# What becomes another type in a batch, if its own is not asked for (exact=True), and the one that holds all its values.
_WIDER = {"bool": "uint8", "int8": "int64", "int16": "int64", "int32": "int64", "uint16": "int64",
          "uint32": "int64"}


def wider(name: str) -> str:
    """The dtype that a batch has of this one, unless exact=True."""
    return _WIDER.get(name, name)


class Misfit(Exception):
    """A sample that is not as the first one was."""


class Unknown(TransformError):
    """A sample that does not say what samples are like: a list in it is empty."""


def unknown(name: str) -> Unknown:
    return Unknown(f"field {name} is an empty list in each of the first samples, and nobody knows what it would hold: give"
                   " arrays with a type and a shape, as np.zeros((0, 4), np.float32)")


# ---- values ----


class PictureFile(bytes):
    """A picture's file, which a pipeline decodes. Without one it is its pixels."""


def size_of_picture(file, path):
    """Height and width. Of a picture that EXIF turns, readers disagree which way is up."""
    from PIL import Image, UnidentifiedImageError
    try:
        with Image.open(file) as picture:
            (width, height), orientation = picture.size, picture.getexif().get(_ORIENTATION, 1)
    except (UnidentifiedImageError, OSError, ValueError) as why:
        raise DatasetError(f"{path}: its size cannot be read: {why}") from None
    if orientation not in (0, 1):
        raise DatasetError(f"{path}: EXIF turns it (orientation {orientation}), so that its labels may be of either way: turn the file itself"
                           " (jpegtran, exiftran -a)")
    return height, width


def pixels_of(data, what):
    """[H, W, C] of 8 bits: what is in a picture's file, by Pillow."""
    import numpy as np
    from PIL import Image, UnidentifiedImageError
    try:
        with Image.open(io.BytesIO(data)) as opened:
            if opened.mode not in (*_MODES, "P", "CMYK", "YCbCr"):
                raise DatasetError(f"{what} has an image of mode {opened.mode}, which is no picture of 8 bits")
            array = np.asarray(opened if opened.mode in _MODES else opened.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as why:
        if isinstance(why, DatasetError):
            raise
        about = "its format is none that Pillow knows" if isinstance(why, UnidentifiedImageError) else why
        raise DatasetError(f"{what} has no picture that can be decoded: {about}") from None
    return array if array.ndim == 3 else array[:, :, None]


def _array(value, what, exact=False, may_be_empty=False):
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
        value = np.asarray(value if value.mode in _MODES else value.convert("RGB"))
    elif isinstance(value, PictureFile):
        value = pixels_of(value, what)
    elif isinstance(value, float) and not isinstance(value, np.generic):   # np.float64 is both
        value = _narrowed(np.asarray(value), what)
    elif isinstance(value, (list, tuple)):
        value = _list(value, what)
    elif not isinstance(value, (bool, int, np.ndarray, np.generic)):
        raise TransformError(f"{what} is a {type(value).__name__}; a field is a tensor, an array, a picture"
                             f" of Pillow, a number or a list of numbers: {_instead(value)}")
    array = np.asarray(value)
    name = array.dtype.name if exact else wider(array.dtype.name)
    if code is None and name not in _CODES:
        raise TransformError(f"{what} has dtype {array.dtype}; batches have {', '.join(NAMES.values())}: convert it in the data"
                             " set")
    if array.ndim > MOST_DIMENSIONS:
        raise TransformError(f"{what} has {array.ndim} dimensions; at most {MOST_DIMENSIONS} have a place")
    if array.size == 0 and not may_be_empty:
        raise TransformError(f"{what} has no value in it (shape {array.shape}): where samples differ in length, give"
                             " ragged={name: the most of one} to wrap()")
    if code is None:
        code, array = _CODES[name], array.astype(name, copy=False)
    return code, array if array.flags.c_contiguous else array.copy(order="C")


def _instead(value):
    if isinstance(value, str):
        return ("give ragged={name: the most bytes of one} to wrap(), have its UTF-8 bytes, by pad={name:"
                " oneaccess.Pad(length)}, or leave it out, by columns=[...] of the others")
    if isinstance(value, bytes):
        return ("if it is a picture's file, give the Loader a pipeline, which decodes it, and if it is another file beside one, a view of the field's name; else have its bytes, by ragged={name: the most"
                " of one} of wrap(), or leave it out, by columns=[...] of the others")
    if value is None:
        return "leave such samples out (rows of a table by where=), put a value in their place (there by Fill of oneaccess.features), or leave the field out, by columns=[...] of the others"
    return "turn it into one in the data set, or leave it out, by columns=[...] of the others in wrap()"


def _list(value, what):
    import numpy as np
    try:
        array = np.asarray(value)
    except ValueError:
        array = None
    if array is None or array.dtype.kind not in "biuf":
        raise TransformError(f"{what} is a list, not of numbers alone or not of one shape: of lists or texts give ragged={{name: (most, most in one)}} to"
                             f" wrap(), else {_instead(value)}")
    return _narrowed(array, what) if array.dtype == np.float64 else array


def _narrowed(array, what):
    """As float32, which infinities of the data set's stay, and no other number becomes."""
    import numpy as np
    try:
        with np.errstate(over="raise"):
            return array.astype(np.float32)
    except FloatingPointError:
        raise TransformError(f"{what} has a number that float32 has no room for, which ends at {np.finfo(np.float32).max:.2g}: scale it in the data set, or"
                             " have an array there, whose float64 stays") from None


def _pnm(array, what):
    """An 8-bit picture, HWC or HW, as the bytes of a file."""
    if array.dtype.name != "uint8" or array.ndim not in (2, 3) or array.ndim == 3 and array.shape[2] not in (1, 3):
        raise TransformError(f"{what} is {array.dtype} of shape {array.shape}; a pipeline works on 8-bit pictures"
                             " of one or three channels: leave their normalizing to it, or leave the pipeline out; Bands() takes the bytes that numpy.save()"
                             " writes of numbers")
    kind = b"P6" if array.ndim == 3 and array.shape[2] == 3 else b"P5"
    return b"%s\n%d %d\n255\n" % (kind, array.shape[1], array.shape[0]) + array.tobytes()


def _are_numbers(array):
    """[C, H, W], [D, H, W] or [C, D, H, W], for Bands() and Volume(), and no picture in colours."""
    return array.dtype.kind in "biuf" and (array.ndim == 4 or array.ndim == 3 and array.shape[2] not in (1, 3))


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
        data = npy(value) if _are_numbers(value) else _pnm(value, what)
    else:
        raise TransformError(f"{what} is a {type(value).__name__}; a pipeline works on pictures: of Pillow, arrays"
                             " (H, W, C), tensors (C, H, W), or the bytes of a file. It is the first field, by columns=[...] of wrap();"
                             " or leave the pipeline out to get fields as they are" +
                             ("; for the name of a file give its bytes, or a table of files (.csv, .jsonl) to Loader itself" if isinstance(value, str) else ""))
    return U8, np.frombuffer(data or b"\0", np.uint8)


def _own(value, what):
    """The same of a field that a view of its own decodes: numbers that are no picture are an .npy."""
    import numpy as np
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and (value.dtype != np.uint8 or value.ndim != 3):
        return U8, np.frombuffer(npy(value), np.uint8)
    if isinstance(value, str):
        raise TransformError(f"{what} is a text, and a view of the pipeline is to decode it as a file: have the file's bytes there, or give the view another name")
    return _picture(value, what)


# ---- samples ----


def _ragged(value, what, exact):
    """The same of one whose length is its own; and its kind."""
    import numpy as np
    if isinstance(value, str):
        return U8, np.frombuffer(value.encode(), np.uint8), TEXT
    if isinstance(value, (bytes, bytearray, memoryview)):
        return U8, np.frombuffer(value, np.uint8), RAGGED
    code, array = _array(value, what, exact, may_be_empty=True)
    if array.ndim < 1:
        raise TransformError(f"{what} is one number, and has no length: leave it out of ragged=")
    if len(array) == 0 and isinstance(value, (list, tuple)):
        code = None         # of nothing
    elif 0 in array.shape[1:]:
        raise TransformError(f"{what} has no value in it (shape {array.shape})")
    return code, array, RAGGED


def bounds_of_texts(sample, pictures: bool) -> dict[str, int]:
    """The most bytes that texts may have where nobody says it: with room for longer ones than this sample's."""
    _, names, values, _ = flat.parts(sample)
    fields = [*zip(names, values)][pictures:]
    return {name: max(_LEAST_TEXT, 4 * len(value.encode())) for name, value in fields if isinstance(value, str)}


def _check_masks(masks, names, pictures):
    for name in masks:
        if name not in names[1:]:
            raise TransformError(f"masks= or images= names {name!r}; behind the picture the sample has: {', '.join(names[1:])}")
        if is_measured(masks[name]) and f"{name}_valid" in names:
            raise TransformError(f"the sample has a field {name}_valid, which a batch has of what was measured of pixels, {name!r}: give one of the two another name")
        if not pictures:
            raise TransformError("masks= and images= are about what follows a picture: give the Loader a pipeline, whose first field is the picture")


def _values(sample, pictures, ragged, exact, masks=()):
    """kind, names, form, [(code, array, kind of field)]"""
    kind, names, values, form = flat.parts(sample)
    count = len(values) + sum(name in ragged or name in masks and is_measured(masks[name]) for name in names)
    if not 1 <= count <= MOST_FIELDS - pictures:
        raise TransformError(f"the sample has {len(values)} fields, {', '.join(names)}; one to {MOST_FIELDS - pictures} have a"
                             " place, each ragged one and each that was measured counted twice: name those that a batch is to have, by columns=[...] of wrap()")
    for name in ragged:
        if name not in names:
            raise TransformError(f"ragged= names {name!r}; the sample has: {', '.join(names)}")
    _check_masks(masks, names, pictures)
    made = []
    for i, (name, value) in enumerate(zip(names, values)):
        what = f"field {name} of the sample" if kind != "one" else "the sample"
        if name in masks and is_side(masks[name]):
            made.append((*_own(value, what), DENSE))
        elif pictures and i == 0 or name in masks and is_image(masks[name]):
            made.append((*_picture(value, what), DENSE))
        elif name in masks and is_measured(masks[name]):
            made.append((*numbers_of(value, what), DENSE))
        elif name in masks:
            made.append((*file_of(value, what, masks[name][2] is not None), DENSE))
        elif name in ragged:
            made.append(_ragged(value, what, exact))
        else:
            made.append((*_array(value, what, exact), DENSE))
    return kind, names, form, made


def _first(sample):
    while isinstance(sample, (dict, tuple, list)) and sample:
        sample = next(iter(sample.values() if isinstance(sample, dict) else sample))
    return sample


def _segment(sample, pictures):
    """Of the file in the first field a part; None: it is all."""
    first = _first(sample)
    if not isinstance(first, Segment) or first.is_whole:
        return None
    if not pictures:
        raise TransformError("the first field is a part of a file, which a pipeline takes: give the Loader oneaccess.audio() or oneaccess.video()")
    return first


def _bytes_of(made, is_wide):
    at = _WIDE_BYTES * (1 + len(made)) if is_wide else _HEAD_BYTES
    for _, array, _ in made:
        at = -(-at // ALIGN) * ALIGN + array.nbytes
    return at


def _has_label(made):
    """Is the field behind the picture the label that a pipeline's ops work on? One whole number is."""
    return len(made) > 1 and made[1][0] == I64 and made[1][1].ndim == 0 and made[1][2] == DENSE


def describe(sample, pictures: bool, ragged: dict[str, int] | None = None, exact: bool = False, masks: dict | None = None,
             sides: Collection[str] = ()) -> dict:
    """What all samples are to be like. places: which fields of a batch theirs are. sides: names of views that decode the field of that name."""
    ragged = ragged or {}
    masks = {**(masks or {}), **{name: SIDE for name in flat.parts(sample)[1][1:] if pictures and name in sides}}
    _segment(sample, pictures)
    kind, names, form, made = _values(sample, pictures, ragged, exact, masks)
    fields = []
    for name, (code, array, field) in zip(names, made):
        if code is None:
            raise unknown(name)
        shape = [ragged[name], *array.shape[1:]] if field else list(array.shape)
        fields.append(masks[name][1] if name in masks else [code, *shape])
    has_label = pictures and _has_label(made)
    beside = len(made) - 1 - has_label if pictures else 0
    is_wide = len(made) > FIRST_FIELDS or any(field or code > BF16 for code, _, field in made) or isinstance(_first(sample), Segment)
    first = 1 + has_label if pictures else 0
    return {"kind": kind, "names": names, "form": form, "bytes": _bytes_of(made, is_wide) + _more(fields, made), "fields": fields,
            "kinds": [masks[name][0] if name in masks else field for name, (_, _, field) in zip(names, made)], "wide": is_wide, "beside": beside,
            "places": [at if at < first or not pictures else 2 + at - first for at in range(len(made))],
            "ragged": ragged, "exact": exact, "masks": masks}


def _more(fields, made):
    """Bytes that the longest sample has more than this one has, each field's place rounded up."""
    more = 0
    for (_, *shape), (_, array, field) in zip(fields, made):
        room = array.itemsize
        for extent in shape:
            room *= extent
        more += max(0, room - array.nbytes) + ALIGN if field else 0
    return more


def _fitted(code, array, field, want, shape, name):
    """The sample's array, of nothing where that has no type."""
    import numpy as np
    if code is None or field and array.size == 0:
        return want, np.empty((0, *shape[1:]), np.int16 if want == BF16 else NAMES[want])
    if field and len(array) > shape[0]:
        raise Misfit(f"field {name}: length {len(array)}, at most {shape[0]} by ragged=")
    return code, array


def _check(names, made, layout, pictures):
    """Also makes that of empty ones which a sample is to have."""
    if len(made) != len(layout["fields"]) or names != layout["names"]:
        raise Misfit(f"fields {names}, sample 0: {layout['names']}")
    for i, (code, array, field) in enumerate(made):
        want, *shape = layout["fields"][i]
        if pictures and i == 0 or names[i] in layout["masks"]:
            continue
        if field != layout["kinds"][i]:
            raise Misfit(f"field {names[i]}: no {'text' if field == RAGGED else 'numbers'}, as in sample 0")
        if field:
            code, array = _fitted(code, array, field, want, shape, names[i])
            made[i], shape = (code, array, field), [len(array), *shape[1:]]
        if list(array.shape) != shape:
            raise Misfit(f"field {names[i]}: shape {_shape(array.shape)}, sample 0: {_shape(shape)}{_turned(array.shape, shape)}")
        if code != want:
            raise Misfit(f"field {names[i]}: {NAMES[code]}, sample 0: {NAMES[want]}")


def differs(sample, layout: dict, pictures: bool) -> str | None:
    """What of the sample is not as it is in sample 0."""
    try:
        _, names, _, made = _values(sample, pictures, layout["ragged"], layout["exact"], layout["masks"])
        _check(names, made, layout, pictures)
    except Misfit as why:
        return str(why)
    return None


def _turned(shape, first):
    """Ragged fields differ in their first dimension alone, and sounds and spectrograms in their second."""
    if len(shape) != 2 or len(first) != 2 or shape[0] != first[0]:
        return ""
    return ", which differ in the second dimension, and only the first may: have the data set give sound[0] of [1, n], or the transpose"


def _shape(shape):
    return "x".join(map(str, shape)) or "()"


class Record:
    """A sample as it goes to a batch: size bytes."""

    def __init__(self, sample, layout: dict, pictures: bool):
        _, names, _, self._made = _values(sample, pictures, layout["ragged"], layout["exact"], layout["masks"])
        _check(names, self._made, layout, pictures)
        self._is_wide, self._part = layout["wide"], _segment(sample, pictures)
        if self._part is not None and not self._is_wide:
            raise Misfit("the file is a part of one, and sample 0 was none")
        self.size = _bytes_of(self._made, self._is_wide)

    def write(self, memory) -> None:
        """To memory of so many bytes."""
        count = len(self._made)
        at = _WIDE_BYTES * (1 + count) if self._is_wide else _HEAD_BYTES
        memory[:at] = bytes(at)
        for i, (code, array, _) in enumerate(self._made):
            place = _WIDE_BYTES * (1 + i) if self._is_wide else _HEAD.size + i * _PLACE.size
            begin = -(-at // ALIGN) * ALIGN
            memory[at:begin], at = bytes(begin - at), begin
            shape = list(array.shape) + [0] * (MOST_DIMENSIONS - array.ndim)
            _PLACE.pack_into(memory, place, code, array.ndim, *shape, at, array.nbytes)
            if array.nbytes:
                memory[at:at + array.nbytes] = array.reshape(-1).view("uint8").data
            at += array.nbytes
        _HEAD.pack_into(memory, 0, WIDE_MAGIC if self._is_wide else MAGIC, self.size, count, 0, 0)
        if self._part is not None:
            channel = self._part.channel
            _PART.pack_into(memory, _PART_AT, 1 if channel is None else 2, self._part.start, self._part.duration, 0 if channel is None else channel)


# ---- many at once ----


class Packed:
    """A record that is there: its bytes, and in a list how many of them it has."""

    def __init__(self, data, sizes):
        self.size, = sizes
        self._data = data[:self.size]

    def write(self, memory) -> None:
        memory[:] = self._data


def _up(at):
    return -(-at // ALIGN) * ALIGN


def room_of(sizes, is_wide: bool) -> int:
    """Bytes that the record of a sample with fields of these sizes takes in a row of them."""
    is_wide = is_wide or len(sizes) > FIRST_FIELDS
    return (_WIDE_BYTES * (1 + len(sizes)) if is_wide else _HEAD_BYTES) + sum(_up(size) for size in sizes)


def packed(columns, layout: dict):
    """The records of many samples, as Record makes each, in a row, each at a multiple of ALIGN: (bytes, where each begins and ends). columns: of each field of the layout the samples'
    values [samples, ...], or of a ragged one (values of all in a row, where each sample's begin and the last one's end)."""
    import numpy as np
    count = len(columns)
    head = _WIDE_BYTES * (1 + count) if layout["wide"] else _HEAD_BYTES
    first = columns[0]
    ends, places = np.full(len(first[1]) - 1 if isinstance(first, tuple) else len(first), head, np.int64), []
    for column in columns:
        begins = _up(ends)
        values, offsets = column if isinstance(column, tuple) else (column, None)
        sizes = np.diff(offsets) * values.itemsize * int(np.prod(values.shape[1:])) if offsets is not None else values[:1].nbytes
        ends = begins + sizes
        places.append((begins, sizes))
    starts = np.concatenate([[0], np.cumsum(_up(ends))])
    data = np.zeros(starts[-1], np.uint8)
    words, starts = data.view("<u8"), starts[:-1]
    words[starts // 8], words[starts // 8 + 1], words[starts // 8 + 2] = WIDE_MAGIC if layout["wide"] else MAGIC, ends, count
    for at, (column, (begins, sizes), (code, *shape)) in enumerate(zip(columns, places, layout["fields"])):
        place = (starts + (_WIDE_BYTES * (1 + at) if layout["wide"] else _HEAD.size + at * _PLACE.size)) // 8
        values, offsets = column if isinstance(column, tuple) else (column, None)
        own = np.diff(offsets) if offsets is not None else shape[0] if shape else 0
        for i, word in enumerate([code | len(shape) << 32, own, *shape[1:], *[0] * (4 - max(1, len(shape))), begins, sizes]):
            words[place + i] = word
        spread(data, starts + begins, values, offsets)
    return data, starts, starts + ends


def records(columns: dict, layout: dict):
    """What __getrecords__ answers: the records of packed(), and how many bytes each has. columns: by the fields' names."""
    import numpy as np
    for name, most in layout["ragged"].items():
        longest = int(np.diff(columns[name][1]).max())
        if longest > most:
            raise Misfit(f"field {name}: length {longest}, at most {most}")
    data, begins, ends = packed([columns[name] for name in layout["names"]], layout)
    return memoryview(data), (ends - begins).tolist()


class Sheet:
    """The records of so many samples of a layout without ragged fields, in memory that is used again: heads are there, and arrays, {field: [samples, ...]},
    are where its values go. It costs no copy of them, and no new pages of the kernel's, which cost more than the values."""

    def __init__(self, layout: dict, most: int):
        import numpy as np
        fields = [(NAMES[code], tuple(shape)) for code, *shape in layout["fields"]]
        self.data, begins, ends = packed([np.zeros((most, *shape), dtype) for dtype, shape in fields], layout)
        self.most, self._size, self._each = most, int(ends[0]), len(self.data) // most
        self.arrays = {}
        for at, (name, (dtype, shape)) in enumerate(zip(layout["names"], fields)):
            place = _PLACE.unpack_from(self.data, _WIDE_BYTES * (1 + at) if layout["wide"] else _HEAD.size + at * _PLACE.size)[6]
            self.arrays[name] = np.ndarray((most, *shape), dtype, self.data, place, (self._each, *np.empty(shape, dtype).strides))

    def records(self, count: int):
        """The first ones, as __getrecords__ gives them, until they are written again."""
        return memoryview(self.data)[:count * self._each], [self._size] * count


def spread(data, begins, values, offsets=None) -> None:
    """Writes values into data: those of each sample behind its begin, which is a multiple of ALIGN."""
    import numpy as np
    flat, into = values.reshape(-1), data.view(values.dtype)
    if offsets is None:
        if len(values):
            into[(begins // values.itemsize)[:, None] + np.arange(flat.size // len(values))] = values.reshape(len(values), -1)
        return
    each = int(np.prod(values.shape[1:]))
    counts = np.diff(offsets) * each
    into[np.repeat(begins // values.itemsize - offsets[:-1] * each, counts) + np.arange(offsets[-1] * each)] = flat
