# SPDX-License-Identifier: Apache-2.0
"""Parts of FLAC files: the frames in which a part lies, found by the table of places that the file may have (SEEKTABLE) and by looking at some of its
frames' heads. What is read is a FLAC file with a gap: its head and its frames still say how long the whole is and which frames these are, so a decoder
that is asked for the part finds it as in the whole file (libsndfile, which seeks in FLAC by what frames say)."""

import struct
from typing import BinaryIO, NamedTuple

_HEAD, _POINT = 34, 18      # bytes of STREAMINFO, and of a place in the table
_MOST_BLOCKS = 1000
_MOST_TABLE = 1 << 20
_SAME = b"\xff\xff\x0f\x0f" # bits of a frame's head that are those of the first one's: the kind of blocks, the rate, the size of a number
_LOOK = 1 << 16             # bytes in which a frame's head is looked for
_MOST_LOOKS = 40


def _crc8_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte << 1 ^ 0x107) if byte & 0x80 else byte << 1
        table.append(byte)
    return bytes(table)


_CRC8 = _crc8_table()


def _crc8(data):
    crc = 0
    for byte in data:
        crc = _CRC8[crc ^ byte]
    return crc


class Flac(NamedTuple):
    """What the head of a file says."""

    info: bytes             # STREAMINFO
    at: int                 # of the first frame
    end: int                # the file's
    points: list            # (first frame of sound, place) of some frames
    first: bytes            # four bytes that the first frame begins with

    @property
    def block(self) -> int:
        """Frames of sound in one of the file's; 0: they differ."""
        least, most = struct.unpack_from(">HH", self.info)
        return most if least == most else 0

    @property
    def rate(self) -> int:
        return int.from_bytes(self.info[10:13], "big") >> 4

    @property
    def channels(self) -> int:
        return (self.info[12] >> 1 & 7) + 1

    @property
    def frames(self) -> int:
        """0: nobody says it."""
        return int.from_bytes(self.info[13:18], "big") & (1 << 36) - 1

    @property
    def is_long(self) -> bool:
        """Else it is as well read whole."""
        return self.end > 4 * _LOOK

    def _number(self, data, at):
        """Which frame of sound is the first one of what may be a frame's head; None: it is none."""
        head = data[at:at + 16]
        if len(head) < 16 or any((a ^ b) & mask for a, b, mask in zip(head, self.first, _SAME)) or head[2] < 0x10 or head[3] >> 4 > 10:
            return None
        ones = 8 - (head[4] ^ 0xff).bit_length()        # as UTF-8 counts its bytes
        if ones in (1, 8):
            return None
        size = max(ones, 1)
        number = head[4] & 0x7f >> ones
        for byte in head[5:4 + size]:
            if byte >> 6 != 2:
                return None
            number = number << 6 | byte & 0x3f
        size += 4 + {6: 1, 7: 2}.get(head[2] >> 4, 0) + {12: 1, 13: 2, 14: 2}.get(head[2] & 15, 0)
        if _crc8(head[:size]) != head[size]:
            return None
        return number if head[1] & 1 else number * self.block if self.block else None

    def _next(self, file, at, low, high):
        """(first frame of sound, place) of the first frame of the file from there on, which is one between these; None: none was found."""
        file.seek(at)
        data, found = file.read(min(_LOOK, self.end - at)), -1
        while (found := data.find(self.first[:2], found + 1)) >= 0:
            number = self._number(data, found)
            if number is not None and low < number < high:
                return number, at + found
        return None

    def _bounds(self, file, frame):
        """Places before and behind the one where that frame of sound is, as near as it takes little to find them."""
        low, high = (0, self.at), (self.frames, self.end)
        for point in self.points:
            if point[0] <= frame and point > low:
                low = point
            elif frame < point[0] and point < high:
                high = point
        for look in range(_MOST_LOOKS):
            if high[1] - low[1] <= 2 * _LOOK:
                break
            share = (frame - low[0]) / max(high[0] - low[0], 1) if look % 3 < 2 else 0.5   # where it may be: before that, behind it, and in the middle
            at = low[1] + int(share * (high[1] - low[1])) + (-_LOOK, _LOOK // 2, 0)[look % 3]
            at = min(max(at, low[1] + 1), high[1] - _LOOK)
            found = self._next(file, at, low[0], high[0])
            if found is None:
                break
            low, high = (found, high) if found[0] <= frame else (low, found)
        return low, high

    def cut(self, file: BinaryIO, first: int, count: int) -> bytes:
        """A FLAC file in which these frames of sound are, with a gap before them."""
        begin, _ = self._bounds(file, first)
        _, end = self._bounds(file, min(first + count, self.frames - 1))
        file.seek(begin[1])
        return b"fLaC" + struct.pack(">I", 0x80 << 24 | _HEAD) + self.info + file.read(end[1] - begin[1])


def flac_of(file: BinaryIO) -> Flac | None:
    """By the head of a file; None: it is no FLAC file, or one that does not say how long it is."""
    whole = file.seek(0, 2)
    file.seek(0)
    if file.read(4) != b"fLaC":
        return None
    info, table, at = b"", b"", 4
    for _ in range(_MOST_BLOCKS):
        file.seek(at)
        head = file.read(4)
        if len(head) < 4:
            return None
        kind, size = head[0] & 0x7f, int.from_bytes(head[1:], "big")
        if kind == 0 and size == _HEAD and not info:
            info = file.read(size)
        elif kind == 3 and size <= _MOST_TABLE:
            table = file.read(size)
        at += 4 + size
        if head[0] & 0x80:
            break
    file.seek(at)
    first = file.read(4)
    points = [(number, at + place) for number, place, _ in struct.iter_unpack(">QQH", table[:len(table) // _POINT * _POINT]) if number < 1 << 63]
    found = Flac(info, at, whole, [(number, place) for number, place in points if at <= place < whole], first)
    return found if len(info) == _HEAD and found.frames and found.rate and first[:2] in (b"\xff\xf8", b"\xff\xf9") else None
