# SPDX-License-Identifier: Apache-2.0
"""Which samples the epochs of a Loader have, chosen anew between epochs (Loader.choose()): what is right, what a state has of it."""

import array
import base64
import hashlib
import math
import operator
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .errors import ArgumentError, StateError

OPTIONS = ("ids", "weights", "samples", "sampler_flags")  # of a stream
REPLACEMENT = 1
_SEEDED, _SEQUENTIAL = 3, 4     # a token's order


def counted(what: str, number: Any, least: int = 1, end: float = 1 << 64) -> int:
    """A whole number, NumPy's, too, below `end`; how many there may be is the library's to say."""
    try:
        count = operator.index(number)
    except TypeError:
        count = -1
    if not least <= count < end:
        raise ArgumentError(f"{what} is {number!r}: a whole number from {least} on" + (", below 2^64" if count >= least else ""))
    return count


def numbers(values: Any, letter: str) -> Any:
    """int64 ('q') or double ('d') as memory of one's own: what it was made of may change, as weights do."""
    if values is None:
        return None
    what = "ids" if letter == "q" else "weights"
    try:
        memory = memoryview(values)
    except TypeError:
        pass
    else:
        if memory.ndim == 1 and memory.c_contiguous and memory.format in (letter, "l" if letter == "q" else letter):
            return array.array(letter, memory.tobytes())
    tolist = getattr(values, "tolist", None)
    try:
        values = list(tolist() if tolist else values)
    except TypeError:
        raise ArgumentError(f"{what} is {str(values)[:60]}: give a list or an array of numbers, one for each sample") from None
    if letter == "q" and any(type(value).__name__ in ("bool", "bool_") for value in values):
        raise ArgumentError(f"ids has booleans: of a mask of {len(values):,} samples give the numbers, as numpy.flatnonzero(mask)")
    try:
        return array.array(letter, values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{what} is no list of {'whole ' if letter == 'q' else ''}numbers, which has one dimension: {error}") from None


class Place(NamedTuple):
    """What the head of a token says (plan/token.h)."""

    n: int          # samples of the data set
    order: int
    epoch: int
    delivered: int  # of the epoch


def place_of(token: bytes) -> Place:
    n, _, order, _, _, epoch, _, delivered = struct.unpack_from("<QII32sQQQQ", token, 16)
    return Place(n, order, epoch, delivered)


def version_of(token: bytes) -> bytes:
    """Of the data set."""
    return token[32:64]


# ---- is it right? ----

def _check_ids(ids, place):
    if not ids:
        raise ArgumentError("ids is empty, and an epoch has a sample at least: leave ids out for all samples")
    if min(ids) < 0 or max(ids) >= place.n:
        at = next(at for at, number in enumerate(ids) if not 0 <= number < place.n)
        raise ArgumentError(f"ids[{at}] is {ids[at]}: the data set has samples 0 to {place.n - 1}")
    if place.order not in (_SEEDED, _SEQUENTIAL) and len(set(ids)) < len(ids):
        seen = set()
        at = next(at for at, number in enumerate(ids) if number in seen or seen.add(number))
        raise ArgumentError(f"ids[{at}] is {ids[at]}, which came before: in the default order ids are a set; a Loader with order=\"seeded\" or"
                            " shuffle=False repeats samples")


def _check_weights(choice, place):
    weights, ids, samples = choice["weights"], choice["ids"], choice["samples"]
    if place.order != _SEEDED:
        raise ArgumentError("weights beside an order in which nothing can be drawn by them: make the Loader with order=\"seeded\", and a seed=")
    count, what = (place.n, f"the data set has {place.n:,} samples") if ids is None else (len(ids), f"there are {len(ids):,} ids")
    if len(weights) != count:
        raise ArgumentError(f"there are {len(weights):,} weights, and {what}: give one for each")
    at = next((at for at, weight in enumerate(weights) if not 0 <= weight < math.inf), None)
    if at is not None:
        raise ArgumentError(f"weights[{at}] is {weights[at]}: weights are finite and not negative")
    drawable = count - weights.count(0)
    if not drawable:
        raise ArgumentError(f"all {count:,} weights are 0: nothing can be drawn")
    if samples is not None and samples > drawable and not choice["sampler_flags"]:
        raise ArgumentError(f"samples={samples:,} of {drawable:,} that have a weight above 0: draw fewer, or with replacement=True")


def made(ids: Iterable[int] | None, weights: Iterable[float] | None, samples: int | None, replacement: bool) -> dict[str, Any]:
    """Options of a stream."""
    if replacement not in (True, False):
        raise ArgumentError(f"replacement is {replacement!r}: True or False")
    if weights is None and (samples is not None or replacement):
        raise ArgumentError(f"{'replacement' if samples is None else 'samples'}= goes with weights=, by which is drawn")
    return {"ids": numbers(ids, "q"), "weights": numbers(weights, "d"), "samples": samples, "sampler_flags": REPLACEMENT if replacement else None}


def _count(choice, place):
    """Samples of an epoch, at most: a part of the data set has fewer."""
    weights = choice["weights"]
    if weights is None:
        return place.n if choice["ids"] is None else len(choice["ids"])
    return choice["samples"] or (len(weights) if choice["sampler_flags"] else len(weights) - weights.count(0))


def check(choice: Mapping[str, Any], place: Place, least: int) -> None:
    """By the data set and the order that the Loader has. least: samples that an epoch must have."""
    if choice["ids"] is not None:
        _check_ids(choice["ids"], place)
    if choice["weights"] is not None:
        _check_weights(choice, place)
    count = _count(choice, place)
    if count < least:
        raise ArgumentError(f"an epoch has {count:,} samples, fewer than one batch of {least:,}, and drop_last=True leaves it out: choose more")


# ---- for others ----

def digest(choice: Mapping[str, Any]) -> str:
    """Equal where choices are."""
    whole = hashlib.sha256()
    for name in OPTIONS:
        value = choice[name]
        whole.update(f"{name} {len(value) if isinstance(value, array.array) else value} ".encode())
        if isinstance(value, array.array):
            whole.update(value)
    return whole.hexdigest()


def said(choice: Mapping[str, Any]) -> dict[str, Any]:
    """For a state: what JSON can write."""
    return {name: base64.b64encode(value).decode("ascii") if isinstance(value, array.array) else value
            for name, value in choice.items() if value is not None}


def _read(said, name, letter):
    text = said.get(name)
    try:
        return None if text is None else array.array(letter, base64.b64decode(text, validate=True))
    except (ValueError, TypeError):
        raise StateError(f"the state is damaged: the {name} that it says were chosen are none") from None


def read(said: Any) -> dict[str, Any] | None:
    """The choice of a state."""
    if said is None:
        return None
    samples, flags = (said.get(name) for name in ("samples", "sampler_flags")) if isinstance(said, dict) else (0, 0)
    if not (samples is None or type(samples) is int and 0 < samples < 1 << 63) or flags not in (None, REPLACEMENT):
        raise StateError("the state is damaged: what it says was chosen is no choice")
    return {"ids": _read(said, "ids", "q"), "weights": _read(said, "weights", "d"), "samples": samples, "sampler_flags": flags}
