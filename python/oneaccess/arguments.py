# SPDX-License-Identifier: Apache-2.0
"""What a Loader's arguments mean."""

import json

from . import _core, choices, columns, errors, paths, wrapped
from .errors import ArgumentError, TransformError
from .transforms import Compose, Op, Pipeline

ORDERS = {"usual": 0, "carousel": 1, "any": 2, "seeded": 3, "sequential": 4, "replay": 5}
BAD = {"error": 0, "skip": 1, "substitute": 2}
COPY, DROP_LAST, KEEP, WRITABLE, SPREAD, RESAMPLE = 1, 2, 8, 16, 32, 64
SPREADS = {None: 0, "step": SPREAD}
HELD = {"copy": KEEP, "error": WRITABLE}
REFRESHES = {None: False, "epoch": True}

# Orders that one daemon decides as it goes: the ranks of one node alone can share them.
DECIDED = (ORDERS["usual"], ORDERS["carousel"], ORDERS["any"])

# What torch.utils.data.DataLoader takes and nobody needs here.
_IGNORED = {
    "num_workers": "the daemon decodes for all jobs; a loader has no processes of its own",
    "pin_memory": "batches are views of shared memory, which the device reads directly with"
                  " device=\"cuda\"",
    "prefetch_factor": "the daemon keeps slots filled as far as its memory allows",
    "persistent_workers": "there are no workers in this process",
    "pin_memory_device": "see pin_memory",
    "worker_init_fn": "there are no workers in this process",
    "multiprocessing_context": "there are no workers in this process",
    "in_order": "batches come in the order of the epoch, whoever has made them",
    "snapshot_every_n_steps": "state_dict() is exact at each step, and nothing is kept for it",
}
_REFUSED = {
    "transform": "the second argument is the pipeline",
}


def sort_out(others):
    for name in others:
        if name in _REFUSED:
            raise TransformError(f"{name} is not there: {_REFUSED[name]}")
        if name not in _IGNORED:
            raise TypeError(f"Loader() got an unexpected keyword argument '{name}'")
    return {name: _IGNORED[name] for name in others}


def choose(what, word, words):
    if word not in words:
        raise ArgumentError(f"{what} is {word!r}; there are: {', '.join(word or 'None' for word in words)}")
    return words[word]


def parted(split):
    """The bounds and the seed. The library takes 0 and 0 for no split."""
    try:
        first, last, *key = split
        first, last, (key,) = float(first), float(last), key or (0,)
        key = choices.counted("the seed of split", key, 0)
    except ArgumentError:
        raise
    except (TypeError, ValueError):
        raise ArgumentError(f"split is {split!r}: (from, to) or (from, to, seed)") from None
    if not (0 <= first <= 1 and 0 <= last <= 1 and first != last):
        raise ArgumentError(f"split is {first:g} and {last:g}, must be 0 to 1, and differ")
    return first, last, key


def order_of(shuffle, order, replay, seed, weights):
    if isinstance(shuffle, str):
        raise ArgumentError(f"shuffle is {shuffle!r}; there are: True, False, \"blocks\"")
    if order is None:
        if replay is not None:
            order = "replay"
        elif shuffle is not False and (seed is not None or weights is not None):
            order = "seeded"
            _tell_seeded(seed)
        elif shuffle is not None:
            order = "usual" if shuffle else "sequential"
        else:
            order = "usual"
    elif shuffle is not None:
        raise ArgumentError("shuffle and order say the same: give one of them")
    return choose("order", order, ORDERS)


def _tell_seeded(seed):
    if seed is not None:
        errors.warn(f"seed={seed} without an order means order=\"seeded\": the same batches in each run. Name the"
                    " order to say so, or leave the seed out: jobs share most in the order that accessd chooses", UserWarning)


def blocks_of(dataset, shuffle, order):
    """Those by which the order is to be."""
    blocks = columns.blocks_of(dataset.dataset) if isinstance(dataset, wrapped.Wrapped) else None
    if shuffle == "blocks":
        if order is not None:
            raise ArgumentError("shuffle and order say the same: give one of them")
        if blocks is None:
            raise ArgumentError("shuffle=\"blocks\" is for data sets that are read by blocks, and this one is not, or all of it is"
                                " kept in memory: leave shuffle out for a uniformly random order")
        return blocks
    if blocks is None or shuffle is False or order in ("sequential", "replay"):
        return None
    if order is not None:
        raise ArgumentError(
            f"order=\"{order}\" over {len(blocks.starts):,} row groups or chunks, of which {blocks.window} at a time are kept: each sample would cost one"
            " of them. shuffle=\"blocks\" is a random order of these (the default), shuffle=False that of the files;"
            f" cache=\"{-(-blocks.largest * (len(blocks.starts) + 1) >> 20)}M\" keeps all of them, in each process of the pool")
    return blocks


def text_of(pipeline):
    if isinstance(pipeline, str):
        return pipeline
    if isinstance(pipeline, Pipeline):
        return pipeline.json
    if isinstance(pipeline, (list, tuple, Op)):
        return Compose([pipeline] if isinstance(pipeline, Op) else pipeline).json
    if type(pipeline).__module__.split(".")[0] in ("torchvision", "torch"):
        raise TransformError("a pipeline of torchvision is translated by"
                             " oneaccess.from_torchvision()")
    how = "make one with oneaccess.transforms"
    if isinstance(pipeline, int):
        how += f". A batch's size is batch_size={pipeline}"
    elif callable(pipeline) and getattr(pipeline, "__module__", "").startswith(__package__ + "."):
        how = f"call it, as {pipeline.__name__}()"
    elif callable(pipeline):
        how += ". A function of your own runs in the __getitem__ of a data set that oneaccess.wrap() is given"
    raise TransformError(f"{pipeline!r} is no pipeline: {how}")


def usual_pipeline(dataset, socket):
    """What an administrator has set for jobs of a named data set that bring none; "" or None: nothing."""
    if not paths.is_named(dataset):
        return None
    sets = json.loads(_core.Client(socket).status()).get("datasets", [])
    return next((one.get("pipeline") for one in sets if paths.NAMED + one["name"] == dataset), None)
