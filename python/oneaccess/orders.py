# SPDX-License-Identifier: Apache-2.0
"""Orders for order= of a Loader: functions of an epoch's number that return the ids of that epoch, in their order.

    lengths = [...]                                                             # of each sample of the data set
    loader = oa.Loader(data, batch_size=32, order=oa.orders.by_length(lengths, 32, seed=1))

Each is the same on every machine: a function of what it was made with and of the epoch alone. Batches are cut from the order,
so those of several ranks are made for a step of all of them, batch_size * world_size, unless it says otherwise.
"""

import heapq
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import choices
from .errors import ArgumentError, StateError

_MEGABATCH = 50     # batches that are sorted together, as transformers' group_by_length does


# ---- of a Loader ----

class Asked:
    """A function that a program gave, asked once for an epoch as long as no other one is wanted."""

    def __init__(self, function: Callable[[int], Iterable[int]]):
        self._function = function
        self._epoch, self._ids = None, None

    def __call__(self, epoch: int) -> Any:
        if self._epoch != epoch:
            made = self._function(epoch)
            if made is None:
                raise ArgumentError(f"order=function returned None for epoch {epoch}: it returns the ids of that epoch, a list or an array")
            try:
                ids = choices.numbers(made, "q")
            except ArgumentError as error:
                raise ArgumentError(f"order=function, epoch {epoch}: {error}") from None
            if not ids:
                raise ArgumentError(f"order=function returned no id for epoch {epoch}, and an epoch has a sample at least; epochs=N ends the Loader behind N")
            self._epoch, self._ids = epoch, ids
        return self._ids


def refuse_beside(given: Mapping[str, Any]) -> None:
    """What says which samples there are, too, or in which order."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise ArgumentError(f"{name}= beside order=function, which says itself which samples an epoch has, in which order: leave one of them out")


def epoch_of(state: Mapping[str, Any], token: bytes, is_asked: bool) -> int | None:
    """Of which epoch the ids are whose hash is in a state's token."""
    ordered = state.get("ordered")
    if (ordered is not None) != is_asked:
        raise StateError("the state is of a Loader with order=function: make this one with the same" if ordered is not None else
                         "the state is of a Loader without order=function: leave it out, too")
    if ordered is None:
        return None
    try:
        place = choices.place_of(token)
    except struct.error:
        place = None
    if place is None or type(ordered) is not int or place.epoch != ordered and (place.epoch, place.delivered) != (ordered + 1, 0):
        raise StateError(f"the state is damaged: it has the order of epoch {ordered!r}, and is not of that epoch")
    return ordered


# ---- for programs ----

def _random(seed, epoch):
    """PCG64 and what is drawn below: integers alone, which NumPy promises for a bit generator, but not for a Generator."""
    import numpy as np
    return np.random.PCG64(np.random.SeedSequence([seed, epoch]))


def _permutation(bits, count):
    """Of 0 to count - 1."""
    import numpy as np
    return np.argsort(bits.random_raw(count), kind="stable")


def _count(what, number, least=1):
    return choices.counted(what, number, least, math.inf)


def _of_samples(what, values, ids, dtype=None):
    """One value for each sample that is to come, and the samples' numbers."""
    import numpy as np
    try:
        values = np.asarray(values, dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what} are no numbers, one for each sample of the data set: {error}") from None
    if values.ndim != 1 or not len(values):
        raise ArgumentError(f"{what} has the shape {values.shape}: give one for each sample of the data set")
    if ids is None:
        return values, np.arange(len(values), dtype=np.int64)
    ids = np.asarray(choices.numbers(ids, "q"), np.int64)
    if not len(ids) or ids.min() < 0 or ids.max() >= len(values):
        raise ArgumentError(f"ids names samples that are none of the {len(values):,} of {what}")
    return values[ids], ids


def fold(number: int, count: int, *, seed: int = 0) -> tuple[tuple, tuple]:
    """Two values of split= of a Loader, for cross-validation: to train on, and to validate with.

        for number in range(5):
            train, validate = oa.fold(number, 5, seed=1)
            loader = oa.Loader(data, oa.imagenet_train(224), 256, split=train)
            test = oa.Loader(data, oa.imagenet_eval(224), 256, split=validate, epochs=1)

    number: from 0 to count - 1. Each sample is in one validation of the count, and is trained on in all other folds: the same on all
    machines with the same files.
    """
    number, count, seed = _count("number", number, 0), _count("count", count, 2), _count("seed", seed, 0)
    if number >= count:
        raise ArgumentError(f"fold {number} of {count}: folds are 0 to {count - 1}")
    first, last = number / count, (number + 1) / count
    return (last % 1, first or 1.0, seed), (first, last, seed)


def by_length(lengths: Sequence[float], batch_size: int, *, seed: int = 0, ids: Iterable[int] | None = None) -> Callable[[int], Any]:
    """Random, but with samples of similar length in a batch, so that little of it is padding.

        oa.Loader(data, batch_size=32, order=oa.orders.by_length(lengths, 32, seed=1))

    As group_by_length of transformers: each epoch is permuted, 50 batches at a time (fewer of a small data set) are sorted,
    and cut into batches. These come in random order, the one with the longest sample first: what does not fit into memory
    shows at once. Each sample comes once an epoch.

    lengths: of each sample of the data set: tokens, frames, seconds, pixels. batch_size: that of the Loader; of several ranks
    batch_size * world_size. ids: only these samples.
    """
    import numpy as np
    batch_size, seed = _count("batch_size", batch_size), _count("seed", seed, 0)
    lengths, ids = _of_samples("lengths", lengths, ids, np.float64)
    if np.isnan(lengths).any():
        raise ArgumentError(f"lengths has NaN, of sample {ids[np.flatnonzero(np.isnan(lengths))[0]]}: give a number, or leave such samples out by ids=")
    longest, whole = int(np.argmax(lengths)), len(ids) // batch_size
    mega = batch_size * max(1, min(_MEGABATCH, whole // 4))

    def order(epoch):
        bits = _random(seed, epoch)
        places = _permutation(bits, len(ids))
        group = np.arange(len(ids)) // mega
        places = places[np.lexsort((-lengths[places], group))]
        batches = _permutation(bits, whole)
        at = int(np.flatnonzero(places == longest)[0]) // batch_size
        if at < whole:
            batches = np.concatenate(([at], batches[batches != at]))
        cut = places[:whole * batch_size].reshape(whole, batch_size)[batches]
        return ids[np.concatenate((cut.reshape(-1), places[whole * batch_size:]))]
    return order


def balanced(sizes: Sequence[float], batch_size: int, *, seed: int = 0, ids: Iterable[int] | None = None) -> Callable[[int], Any]:
    """Random, but with batches whose samples' sizes sum to nearly the same: atoms of graphs, points, tokens that are not padded.

        oa.Loader(data, batch_size=128, order=oa.orders.balanced(nodes, 128, seed=1))

    So memory and time of a step are nearly the same each time, and pad= of graphs() needs little more than the mean. Each epoch is permuted;
    50 batches at a time have their samples dealt out, the largest first, each round to the batches with the least. Each sample comes once an epoch;
    those that fill no batch are the last one.

    sizes: of each sample of the data set. batch_size: that of the Loader, with several ranks, too: each has whole batches. ids: only these samples.
    """
    import numpy as np
    batch_size, seed = _count("batch_size", batch_size), _count("seed", seed, 0)
    sizes, ids = _of_samples("sizes", sizes, ids, np.float64)
    if len(wrong := np.flatnonzero(~np.isfinite(sizes))):
        raise ArgumentError(f"sizes has {sizes[wrong[0]]}, of sample {ids[wrong[0]]}: give a number, or leave such samples out by ids=")
    whole = len(ids) // batch_size

    def order(epoch):
        bits = _random(seed, epoch)
        places = _permutation(bits, len(ids))
        first, rest = np.split(places, [whole // _MEGABATCH * _MEGABATCH * batch_size])
        rest, last = np.split(rest, [whole % _MEGABATCH * batch_size])
        dealt = [_dealt(some.reshape(-1, batch_size, batches), sizes) for some, batches in ((first, _MEGABATCH), (rest, whole % _MEGABATCH)) if len(some)]
        cut = np.concatenate(dealt)[_permutation(bits, whole)] if dealt else last[:0]
        return ids[np.concatenate((cut.reshape(-1), last))]
    return order


def _dealt(members, sizes):
    """Groups of so many batches, [groups, samples in a batch, batches], with members dealt out so that the sums of sizes are nearly the same: [batches of all, samples]."""
    import numpy as np
    groups, each, batches = members.shape
    members = members.reshape(groups, -1)
    members = np.take_along_axis(members, np.argsort(-sizes[members], 1, kind="stable"), 1).reshape(groups, each, batches)
    sums, made = np.zeros((groups, batches)), np.empty((groups, batches, each), np.int64)
    for turn in range(each):
        into = np.argsort(sums, 1, kind="stable")
        np.put_along_axis(made[:, :, turn], into, members[:, turn], 1)
        np.put_along_axis(sums, into, np.take_along_axis(sums, into, 1) + sizes[members[:, turn]], 1)
    return made.reshape(-1, each)


def _groups(labels, samples, bits):
    """Of each class its samples in random order, `samples` at a time: those left over wait for another epoch, and a class with fewer repeats its own."""
    import numpy as np
    mixed = _permutation(bits, len(labels))
    mixed = mixed[np.argsort(labels[mixed], kind="stable")]
    _, begins = np.unique(labels[mixed], return_index=True)
    groups = []
    for members in np.split(mixed, begins[1:]):
        members = np.resize(members, max(samples, len(members) // samples * samples))
        groups.append(members.reshape(-1, samples))
    return groups


def classes(labels: Sequence[int], *, classes: int, samples: int, seed: int = 0, ids: Iterable[int] | None = None) -> Callable[[int], Any]:
    """Batches of some classes, with as many samples of each: for metric learning, triplets, prototypes.

        order = oa.orders.classes(oa.Loader(data, pipeline).dataset.targets, classes=16, samples=4, seed=1)
        loader = oa.Loader(data, pipeline, batch_size=64, order=order)

    classes in each batch, and samples of each: batch_size is their product, of several ranks batch_size * world_size. In an epoch a
    sample comes once at most. Left out of an epoch, others each time, are the rest of a class that fills no group of `samples`,
    and groups for which there are not enough other classes. A class with fewer samples than that repeats them in its group.

    labels: of each sample of the data set. ids: only these samples.
    """
    import numpy as np
    each, samples, seed = _count("classes", classes), _count("samples", samples), _count("seed", seed, 0)
    labels, ids = _of_samples("labels", labels, ids)
    there = len(np.unique(labels))
    if there < each:
        raise ArgumentError(f"classes={each}: the samples are of {there} classes, and no batch has so many")

    def order(epoch):
        bits = _random(seed, epoch)
        groups = _groups(labels, samples, bits)
        draws = iter(bits.random_raw(sum(map(len, groups))).tolist())
        left = [(-len(group), next(draws), number) for number, group in enumerate(groups)]
        heapq.heapify(left)
        batches = []
        while len(left) >= each:    # of those that have most left, so that few are left out
            taken = [heapq.heappop(left) for _ in range(each)]
            batches.append([groups[number][count] for count, _, number in taken])
            for count, _, number in taken:
                if count + 1 < 0:
                    heapq.heappush(left, (count + 1, next(draws), number))
        made = np.array(batches).reshape(len(batches), each * samples)
        return ids[made[_permutation(bits, len(batches))].reshape(-1)]
    return order
