# SPDX-License-Identifier: Apache-2.0
"""Sizes of pictures, which workers read from the files' heads, and batches of one aspect ratio each: image_sizes(), buckets()."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import choices, errors
from .errors import ArgumentError
from .loader import Loader
from .mix import Mix, mix

_BATCH = 4096   # of sizes: 16 bytes each
_MOST = 64      # parts of a mix
_LEAST = 8      # samples in a slot, so that memory is enough for slots of many buckets
# What a Loader of one bucket gets from here.
_OURS = ("ids", "order", "shuffle", "weights", "samples", "classes", "split", "drop_last", "epochs", "state", "replay", "record", "refresh", "device")


def image_sizes(dataset: Any, *, exif: bool = False, source: Mapping[str, object] | None = None, socket: str | None = None) -> Any:
    """The height and width of each picture of a data set, as an int32 array [n, 2], by the samples' numbers.

        sizes = oa.image_sizes("/data/photos")      # once; numpy.save() keeps it
        small = numpy.flatnonzero(sizes.min(1) < 256)

    accessd's workers look into the head of each file, of every format, and decode no pixel. It takes as long as reading the files. A
    picture that cannot be read has 0 and 0.

    dataset, source, socket: as of Loader; also of wrap() and the from_...() functions, of which the first field is the picture.
    Measure a data set with masks= or images= without these, or its files: samples have the same numbers there.
    exif: True: as the picture is turned by its EXIF orientation, where a pipeline does that ("exif_transpose" of decode).
    Any process: ranks that need it ask each for themselves.
    """
    import numpy as np
    if getattr(dataset, "masks", None):
        raise ArgumentError("image_sizes() decodes no pixel, and the data set has masks= or images=: give the same without them, or its files, and the sizes"
                            " to buckets() by image_sizes=")
    text = json.dumps({"ops": [{"op": "decode", "only_size": True, "exif_transpose": bool(exif)}]})
    with Loader(dataset, text, _BATCH, shuffle=False, epochs=1, bad="skip", bad_budget=(1 << 62), as_="numpy", rank=0, world_size=1, source=source,
                socket=socket, job="image_sizes") as loader:
        sizes = np.zeros((len(loader.dataset), 2), np.int32)
        for batch in loader:
            first = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
            sizes[np.asarray(batch.ids)] = first
        return sizes


_measured = image_sizes     # where an argument has that name


def _shapes(sizes):
    try:
        shapes = [(int(height), int(width)) for height, width in sizes]
    except (TypeError, ValueError):
        shapes = []
    if not shapes or any(min(shape) < 1 for shape in shapes):
        raise ArgumentError(f"sizes is {sizes!r}: a list of (height, width), one for each bucket")
    if len(set(shapes)) < len(shapes):
        raise ArgumentError("sizes has a bucket twice: leave one of them out")
    if len(shapes) > _MOST:
        raise ArgumentError(f"sizes has {len(shapes)} buckets, and a mix at most {_MOST} parts: give fewer")
    return shapes


def nearest(image_sizes: Any, sizes: Sequence[tuple[int, int]]) -> Any:
    """The bucket of each picture, by number: the nearest in its aspect ratio, of several the nearest in its area. -1: it has no size.

    image_sizes: of image_sizes(), [n, 2]. sizes: (height, width) of each bucket.
    """
    import numpy as np
    pictures, shapes = np.asarray(image_sizes, np.float64), np.log(np.asarray(_shapes(sizes), np.float64))
    if pictures.ndim != 2 or pictures.shape[1] != 2:
        raise ArgumentError(f"image_sizes has the shape {pictures.shape}: height and width of each sample, as image_sizes() has them")
    known = pictures.min(1, initial=1) > 0
    logs = np.log(np.where(known[:, None], pictures, 1))
    best, least = np.zeros(len(logs), np.int64), np.full((2, len(logs)), np.inf)
    for number, (height, width) in enumerate(shapes):   # one at a time, so that memory is that of the pictures
        ratio = np.round(np.abs(logs[:, 0] - logs[:, 1] - height + width), 9)
        area = np.abs(logs.sum(1) - height - width)
        better = (ratio < least[0]) | (ratio == least[0]) & (area < least[1])
        best[better] = number
        least[:, better] = ratio[better], area[better]
    return np.where(known, best, -1)


def buckets(dataset: Any, sizes: Sequence[tuple[int, int]], pipeline: Callable[[int, int], Any], batch_size: int, *, image_sizes: Any = None,
            ids: Iterable[int] | None = None, seed: int = 0, drop_last: bool = False, epochs: int | None = None, timeout: float | None = None,
            state: dict | None = None, **options: Any) -> Mix:
    """Batches of pictures of one size each, which is the one of `sizes` that is nearest to their aspect ratio.

        def pipeline(height, width):
            return oa.Compose([t.RandomResizedCrop((height, width), scale=(.8, 1), ratio=(width / height,) * 2), t.RandomHorizontalFlip()])

        sizes = oa.image_sizes("/data/photos")
        loader = oa.buckets("/data/photos", [(1024, 1024), (1216, 832), (832, 1216)], pipeline, 16, image_sizes=sizes)
        for images, labels in loader:
            height, width = images.shape[-2:]

    A mix() of a Loader for each bucket that has pictures: each sample comes once an epoch, in random order that is the same in each run,
    and batches of the buckets take turns, in shares of how many they have. The last batch of each bucket may be short.

    dataset: as of Loader. sizes: (height, width) of each bucket, at most 64. pipeline: a function of height and width of a bucket, which
    returns the Loader's pipeline for it; batches have what comes out of that. batch_size: samples in a batch of this rank.
    image_sizes: of image_sizes(); default: it is called here. Pictures that have none are left out, with a warning. ids: only these samples.
    seed: of the order. drop_last: leave out short batches, other samples each epoch, and buckets that fill no batch. epochs, timeout,
    state: of mix(). Others: of each Loader, such as as_, copy, bad, rank and world_size.

    Memory: each bucket has slots of its own (doc/python/images.md, Buckets of aspect ratios).
    """
    import numpy as np
    wrong = next((name for name in options if name in _OURS), None)
    if wrong is not None:
        raise ArgumentError(f"{wrong}= is not of buckets(), which says itself which samples each Loader has, and in which order")
    shapes, batch_size = _shapes(sizes), choices.counted("batch_size", batch_size)
    if not callable(pipeline):
        raise ArgumentError(f"pipeline is a {type(pipeline).__name__}: give a function of height and width of a bucket, which returns its pipeline")
    pipelines = [pipeline(height, width) for height, width in shapes]     # what is wrong in them shows before files are read
    if image_sizes is None:
        image_sizes = _measured(dataset, source=options.get("source"), socket=options.get("socket"))
    bucket_of = nearest(image_sizes, shapes)
    chosen = np.arange(len(bucket_of)) if ids is None else np.asarray(choices.numbers(ids, "q"), np.int64)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(bucket_of):
        raise ArgumentError(f"ids names samples that are none of the {len(bucket_of):,} of image_sizes")
    unknown = int((bucket_of[chosen] < 0).sum())
    if unknown:
        errors.warn(f"{unknown:,} of {len(chosen):,} pictures cannot be read, and are left out: numpy.flatnonzero(oneaccess.image_sizes(...)[:, 0] == 0)",
                    UserWarning)
    chunk = batch_size * -(-_LEAST // batch_size)
    parts, weights = [], []
    try:
        for number, made in enumerate(pipelines):
            members = chosen[bucket_of[chosen] == number]
            if not len(members):
                continue
            part = Loader(dataset, made, batch_size, ids=members, order="seeded", seed=seed, chunk=chunk, **options)
            part._drop()    # the mix opens it: until then its slots are others'
            whole, rest = divmod(len(members), batch_size * part.world_size)
            count = whole + (rest > 0 and not drop_last)
            if count:
                parts.append(part)
                weights.append(count)
            else:
                part.close()
        if not parts:
            raise ArgumentError(f"no bucket has {'a whole batch' if drop_last else 'a picture'}: {len(chosen):,} pictures, of which {unknown:,} cannot be read")
        return mix(parts, weights, batch_size, unit="batches", epochs=epochs, seed=seed, drop_last=drop_last, timeout=timeout, state=state)
    except BaseException:
        for part in parts:
            part.close()
        raise
