# SPDX-License-Identifier: Apache-2.0
"""What files of others may have in place of what should be there: for tests of parsers, the same at each run."""

import random

# Of each type one; numbers that others have no room for, and names that lead elsewhere.
_ODD = (None, True, 3, -1, 1e300, float("inf"), "", "-1", "9" * 30, "\0", "../x", [], ["1", "-2"], {}, [{}] * 3)


def of_json(value):
    """The value with one of its parts as another one, each in turn; and without it."""
    for odd in _ODD:
        yield odd
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, inner in items:
        for odd in of_json(inner):
            made = value.copy()
            made[key] = odd
            yield made
        made = value.copy()
        del made[key]
        yield made


def of_bytes(data, count, seed=1):
    """So many damaged ones: a bit or a byte that is another, one cut off, a part twice or not there, runs of one byte."""
    draw = random.Random(seed)
    for _ in range(count):
        made, kind = bytearray(data), draw.randrange(6)
        at, size = draw.randrange(len(made)), draw.choice((1, 2, 8, 64))
        if kind == 0:
            made[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            made[at] = draw.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del made[at:]
        elif kind == 3:
            del made[at:at + size]
        elif kind == 4:
            made[at:at] = made[at:at + size]
        else:
            made[at:at + size] = bytes([draw.choice((0, 128, 255))]) * len(made[at:at + size])
        yield bytes(made)
