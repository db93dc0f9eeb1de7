# SPDX-License-Identifier: Apache-2.0
"""Parts of long recordings as samples: Segment, and what reads one from a file. Of a WAV file its own bytes are read and no others, and of a long FLAC file
those around it (flac.py); a part of another kind of file goes to accessd's workers as the whole file, and the part's place beside it
(pipeline/forms/packed.h)."""

import contextlib
import math
import os
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from .errors import ArgumentError, DatasetError
from .flac import flac_of

ALONE = (".wav", ".flac", ".sph")   # names of files of which a part may be read alone
_NUMBER = 8                 # bytes of one, the most
_AROUND = 1 << 19           # bytes that may be read beside a part
_MOST_CHUNKS = 1000
_MOST_FORMAT = 4096
_SPHERE, _MOST_SPHERE = b"NIST_1A\n", 1 << 16
_BLOCKS = (1, 3, 6, 7)      # PCM, floats, A-law, mu-law: a frame is where its number says
_EXTENSIBLE = 0xfffe
_LARGE = 0xffffffff         # a size that RF64 has elsewhere
_MOST_WAV = (1 << 32) - (1 << 16)
_MOST_CHANNELS = 64         # of a file (pipeline/sound/sound_file.c)


def number(value: Any, what: str, otherwise: float) -> float:
    """Seconds, as a row has them. Nothing is `otherwise`."""
    if value is None:
        return otherwise
    try:
        if isinstance(value, bool):
            raise ValueError
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DatasetError(f"{what} is {value!r:.60}: a number of seconds") from None
    if math.isnan(seconds):
        raise DatasetError(f"{what} is NaN, or missing: a number of seconds")
    return seconds


class Segment(bytes):
    """A sound's or a video's file of which a part is the sample, for oa.audio() and oa.video(); the first field of a wrapped data set.

        def __getitem__(self, index):
            return {"audio": oa.Segment.read("day.flac", start=3600.5, duration=10.0), "species": 7}

    start, duration: seconds. The sample is [start, start + duration), each to the nearest frame, as of soundfile.read(start=, frames=); of a
        video those frames that are shown first in that time, counted from its first one. crop= and clip= then are about this part. One that
        goes beyond the file's end is cut off there. One that begins there is a bad sample, as are negative numbers and NaN.
    channel: of a sound with several the one that is meant, from 0 on, as of a call whose sides have a channel each. Default: all of them.
    """

    start: float
    duration: float
    channel: int | None

    def __new__(cls, data: bytes, start: float = 0.0, duration: float = math.inf, channel: int | None = None):
        self = super().__new__(cls, data)
        self.start, self.duration, self.channel = number(start, "start", 0.0), number(duration, "duration", math.inf), channel
        _check(self.start, self.duration, channel)
        return self

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.duration == math.inf and self.channel is None

    @classmethod
    def read(cls, path: str | os.PathLike, start: float = 0.0, duration: float = math.inf, channel: int | None = None) -> "Segment":
        """Of a file. A part of a WAV file is read alone, and is a WAV file, as is one of a NIST SPHERE file (.sph: PCM of 16 bits, A-law, mu-law), or all of it;
        of a long FLAC file the frames around the part are read, which a decoder finds that seeks to start; others are read whole."""
        start, duration = number(start, "start", 0.0), number(duration, "duration", math.inf)
        _check(start, duration, channel)
        with open(path, "rb") as file:
            is_all = start == 0 and duration == math.inf and channel is None
            wave = None if is_all and file.read(len(_SPHERE)) != _SPHERE else wave_of(file)
            if wave is not None:
                first, count = _frames(start, duration, wave)
                if count * wave.align < _MOST_WAV:
                    return cls(wave.cut(file, first, count, channel))
            flac = None if start == 0 and duration == math.inf else flac_of(file)
            if flac is not None and flac.is_long:
                return cls(flac.cut(file, *_frames(start, duration, flac)), start, duration, channel)
            file.seek(0)
            return cls(file.read(), start, duration, channel)


def _check(start, duration, channel):
    if channel is not None and (isinstance(channel, bool) or not isinstance(channel, int) or not 0 <= channel < _MOST_CHANNELS):
        raise DatasetError(f"channel is {channel!r}: a whole number from 0 to {_MOST_CHANNELS - 1}, or None for all")
    if not 0 <= start < math.inf:
        raise DatasetError(f"start is {start:g}: seconds from the file's begin, 0 or more")
    if not duration > 0:
        raise DatasetError(f"a part from second {start:g} on has a duration of {duration:g} s: give more than 0")


def _frames(start, duration, of):
    """The first frame, and how many, as sound_part() of pipeline/sound/sound.c has them. of: a Wave or Flac."""
    first = min(round(min(start * of.rate, float(of.frames))), of.frames)
    if first == of.frames:
        raise DatasetError(f"second {start:.6g} of a sound of {of.frames / of.rate:.6g}")
    count = min(round(min(duration * of.rate, float(of.frames))), of.frames - first)
    if count == 0:
        raise DatasetError(f"a part of {duration:.6g} s has no frame")
    return first, count


def head_of(path: str) -> tuple[int, int]:
    """Rate and channels of a file of which parts may be read alone; of another one, or one that cannot be read, 0 and 0."""
    if not os.path.isfile(path):        # a pipe would wait
        return 0, 0
    with contextlib.suppress(OSError, DatasetError), open(path, "rb") as file:
        found = wave_of(file) or flac_of(file)
        if found is not None:
            return found.rate, found.channels
    return 0, 0


def most_of(seconds: float, rate: int, channels: int) -> int:
    """Bytes that are read of a part, where it is read alone, at most; 0: nobody knows."""
    return int(min(seconds * rate * channels * _NUMBER, 1 << 62)) + _AROUND if rate and seconds < math.inf else 0


# ---- WAV ----


class Wave(NamedTuple):
    """Where a WAV file's frames are."""

    format: bytes
    rate: int
    align: int      # bytes of a frame
    at: int
    frames: int
    is_big: bool = False    # endian, which no WAV file is

    @property
    def channels(self) -> int:
        return struct.unpack_from("<H", self.format, 2)[0]

    def cut(self, file: BinaryIO, first: int, count: int, channel: int | None = None) -> bytes:
        """A WAV file of these, or of one of their channels."""
        file.seek(self.at + first * self.align)
        data, format_ = file.read(count * self.align), self.format
        if len(data) < count * self.align:
            raise DatasetError("the file ends before the sound does")
        if self.is_big:
            data = _turned(data, self.align // self.channels)
        if channel is not None:
            data, format_ = self._channel(data, channel)
        parts = b"".join(name + struct.pack("<I", len(chunk)) + chunk + bytes(len(chunk) % 2) for name, chunk in ((b"fmt ", format_), (b"data", data)))
        return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts

    def _channel(self, data, channel):
        """Its frames, and what is then said of them."""
        import numpy as np
        kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", self.format)
        if channel >= channels:
            raise DatasetError(f"channel {channel} of a sound of {channels}, whose first one is 0")
        each = self.align // channels
        format_ = bytearray(self.format)
        struct.pack_into("<HHIIHH", format_, 0, kind, 1, rate, rate * each, each, bits)
        if kind == _EXTENSIBLE:
            struct.pack_into("<I", format_, 20, 0)      # which loudspeaker a channel is for
        return np.frombuffer(data, np.uint8).reshape(-1, channels, each)[:, channel].tobytes(), bytes(format_)


def _turned(data, size):
    """Numbers of so many bytes, in the other order."""
    import numpy as np
    return np.frombuffer(data, np.uint8).reshape(-1, size)[:, ::-1].tobytes()


def _sphere(file, whole):
    """Of a NIST SPHERE file, which has a head of lines of text; None: it says too little."""
    file.seek(0)
    lines = file.read(_MOST_SPHERE).split(b"\n")
    size = lines[1].strip().decode("latin-1") if len(lines) > 1 else ""
    words = (line.split(None, 2) for line in lines[2:lines.index(b"end_head") if b"end_head" in lines else 0])
    said = {each[0].decode("latin-1"): each[2].strip().decode("latin-1") for each in words if len(each) == 3}
    coding = said.get("sample_coding", "pcm")
    if "," in coding:
        raise DatasetError(f"NIST SPHERE with {coding.partition(',')[2]}, which is not read: unpack it once, as by sph2pipe -p -f wav")
    kind, each = {"pcm": (1, 2), "ulaw": (7, 1), "mu-law": (7, 1), "alaw": (6, 1)}.get(coding, (0, 0))
    numbers = [size, *(said.get(name, "") for name in ("channel_count", "sample_rate", "sample_count", "sample_n_bytes"))]
    if not each or not all(text.isascii() and text.isdigit() and len(text) < 12 for text in numbers) or said.get("sample_byte_format") not in ("01", "10", "1", None):
        return None
    at, channels, rate, count, bytes_ = map(int, numbers)
    if bytes_ != each or not 0 < channels <= _MOST_CHANNELS or not 0 < rate < 1 << 31:
        return None
    found = _wave(struct.pack("<HHIIHH", kind, channels, rate, rate * each * channels & 0xffffffff, each * channels, 8 * each), at, count * each * channels, whole)
    return found and found._replace(is_big=said.get("sample_byte_format") == "10")


def wave_of(file: BinaryIO) -> Wave | None:
    """By the head of a file; None: it is no WAV or NIST SPHERE file, or one of which libsndfile must tell more."""
    file.seek(0)
    whole, head = os.fstat(file.fileno()).st_size, file.read(12)
    if head.startswith(_SPHERE):
        return _sphere(file, whole)
    if head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
        return None
    at, large, format_ = 12, None, None
    for _ in range(_MOST_CHUNKS):
        file.seek(at)
        chunk = file.read(8)
        if len(chunk) < 8:
            return None
        name, size = struct.unpack("<4sI", chunk)
        at += 8
        if name == b"data":
            size = large if size == _LARGE and large is not None else size
            return _wave(format_, at, size, whole)
        if name == b"ds64" and size >= 16:
            large = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))[0]
        elif name == b"fmt ":
            if format_ is not None or not 16 <= size <= _MOST_FORMAT:
                return None
            format_ = file.read(size)
        at += size + size % 2
    return None


def _wave(format_, at, size, whole):
    if format_ is None or len(format_) < 16:
        return None
    kind, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", format_)
    if kind == _EXTENSIBLE and len(format_) >= 26:
        kind = struct.unpack_from("<H", format_, 24)[0]
    size = min(size, whole - at)
    if kind not in _BLOCKS or not rate or not channels or bits % 8 or align != channels * bits // 8 or size < align:
        return None
    return Wave(format_, rate, align, at, size // align)


# ---- which fields of a row say where the part is ----


class Place(NamedTuple):
    """Names of columns, or None."""

    start: str | None
    duration: str | None
    end: str | None
    may_lack: bool      # they may be missing in rows

    def names(self) -> list[str]:
        return [name for name in (self.start, self.duration, self.end) if name is not None]

    def of(self, row: Mapping[str, Any]) -> tuple[float, float]:
        """start and duration."""
        missing = next((name for name in self.names() if name not in row), None)
        if missing is not None and not self.may_lack:
            raise DatasetError(f"no {missing!r}, which says where the sample's part is; there are: {', '.join(row)}")
        start = number(row.get(self.start), str(self.start), 0.0)
        if self.end is not None:
            end = number(row.get(self.end), self.end, math.inf)
            if not end > start:
                raise DatasetError(f"{self.end} is {end:g}, and the part begins at second {start:g}")
            return start, end - start
        return start, number(row.get(self.duration), str(self.duration), math.inf)


NEMO = "audio_filepath"     # the column that is known by its name
_NEMO = Place("offset", "duration", None, True)


def place_of(start: str | None, duration: str | None, end: str | None, files: list[str], knows_nemo: bool = False) -> Place | None:
    """Of the arguments of these names. None: samples are whole files."""
    for name, value in (("start", start), ("duration", duration), ("end", end)):
        if value is not None and not isinstance(value, str):
            raise ArgumentError(f"{name} is {value!r}: the name of the column that has it, in seconds")
    if start is None and duration is None and end is None:
        return _NEMO if knows_nemo and files[:1] == [NEMO] else None
    if duration is not None and end is not None:
        raise ArgumentError("duration= and end= say the same: give one of them")
    if not files:
        raise ArgumentError("start=, duration= and end= are about a file: name its column by files=")
    return Place(start, duration, end, False)
