# SPDX-License-Identifier: Apache-2.0
"""XXH64 of many values at once, as the xxHash specification has it (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md, 0.2.0): what
xxhash.xxh64_intdigest(bytes, seed) says of each."""

from typing import Any

import numpy as np

_P1, _P2, _P3, _P4, _P5 = (np.uint64(prime) for prime in (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5))
_STRIPE = 32
_AT_ONCE = 1 << 14      # so that what lies between stays in the processor's cache


def _turned(x, bits):
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _round(acc, lane):
    return _turned(acc + lane * _P2, 31) * _P1


def _merged(acc, lane):
    return (acc ^ _round(np.uint64(0), lane)) * _P1 + _P4


def _word(acc, lane):
    return _turned(acc ^ _round(np.uint64(0), lane), 27) * _P1 + _P4


def _mixed(x):
    x = (x ^ (x >> np.uint64(33))) * _P2
    x = (x ^ (x >> np.uint64(29))) * _P3
    return x ^ (x >> np.uint64(32))


def _stripes(seed, lane, count):
    """Of so many stripes of 32 bytes; lane(i): the i-th words of all."""
    with np.errstate(over="ignore"):
        acc = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for at in range(0, 4 * count, 4):
        acc = [_round(one, lane(at + i)) for i, one in enumerate(acc)]
    made = _turned(acc[0], 1) + _turned(acc[1], 7) + _turned(acc[2], 12) + _turned(acc[3], 18)
    for one in acc:
        made = _merged(made, one)
    return made


def of_words(words: Any, seed: int = 0) -> Any:
    """Of each row of uint64 [n, words], as 8 bytes each, the lowest first: uint64 [n]."""
    made = np.empty(len(words), np.uint64)
    for at in range(0, len(words), _AT_ONCE):
        made[at:at + _AT_ONCE] = _of_words(words[at:at + _AT_ONCE], np.uint64(seed))
    return made


def _of_words(words, seed):
    count = words.shape[1]
    with np.errstate(over="ignore"):
        first = _stripes(seed, lambda i: words[:, i], count // 4) if count >= 4 else seed + _P5
        made = np.full(len(words), 0, np.uint64) + first + np.uint64(8 * count)
        for i in range(count // 4 * 4, count):
            made = _word(made, words[:, i])
        return _mixed(made)


def of_bytes(data: Any, begins: Any, lengths: Any, seed: int = 0) -> Any:
    """Of texts that lie in uint8 data: uint64 [n]. All of one length are hashed at once."""
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))        # that begin at each byte
    made = np.empty(len(lengths), np.uint64)
    order = np.argsort(lengths, kind="stable")
    sizes, firsts = np.unique(lengths[order], return_index=True)
    for size, rows in zip(sizes.tolist(), np.split(order, firsts[1:])):
        for at in range(0, len(rows), _AT_ONCE):
            some = rows[at:at + _AT_ONCE]
            made[some] = _of_size(padded, words, begins[some], size, np.uint64(seed))
    return made


def _of_size(data, words, begins, size, seed):
    with np.errstate(over="ignore"):
        stripes = size // _STRIPE
        first = _stripes(seed, lambda i: words[begins + 8 * i], stripes) if stripes else seed + _P5
        made = np.full(len(begins), 0, np.uint64) + first + np.uint64(size)
        for at in range(stripes * _STRIPE, size - 7, 8):
            made = _word(made, words[begins + at])
        at = size // 8 * 8
        if size - at >= 4:
            made = _turned(made ^ (words[begins + at] & np.uint64(0xFFFFFFFF)) * _P1, 23) * _P2 + _P3
            at += 4
        for at in range(at, size):
            made = _turned(made ^ data[begins + at].astype(np.uint64) * _P5, 11) * _P1
        return _mixed(made)
