# SPDX-License-Identifier: Apache-2.0
"""What a program says to a DataLoader by objects of torch's, in the Loader's words: samplers, a generator, data sets.

Samplers are read, not run: an order that accessd knows beforehand is one that jobs share. PyTorch is not imported."""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from . import ranks as ranks_of
from .errors import ArgumentError, ForkedError, TransformError
from .samples import Samples

_SAID = ("sampler", "batch_sampler", "generator")
_OTHERWISE = ("give order=function, which returns the ids of the epoch whose number it is given, the same each time (oneaccess.orders has some: alike in"
              " length, classes in each batch), or give it a set_epoch(epoch) that its order follows from; ids=list(sampler) are the samples that it names"
              " now; ranks are found by themselves")


# ---- samplers: arguments of the Loader, and of how many samples one is, where they do not say it ----

def _random(sampler):
    if sampler.replacement or sampler._num_samples is not None:
        return {"weights": [1.0] * len(sampler.data_source), "samples": sampler.num_samples, "replacement": sampler.replacement,
                **_generator(sampler.generator)}
    return {"of": len(sampler.data_source), "shuffle": True, **_generator(sampler.generator)}


def _subset(sampler):
    return {"ids": sampler.indices, "shuffle": True, **_generator(sampler.generator)}


def _weighted(sampler):
    return {"weights": sampler.weights, "samples": sampler.num_samples, "replacement": sampler.replacement, **_generator(sampler.generator)}


def _distributed(sampler):
    """Which ranks are on this node only launchers say, so they are asked where they mean the same. Its seed, the same in all ranks, is 0
    where nobody said one."""
    said, found = {"of": len(sampler.dataset), "evens": "drops" if sampler.drop_last else "repeats", "shuffle": sampler.shuffle}, ranks_of.find()
    if sampler.seed:
        said.update(_seeded(sampler.seed))
    if (found.rank, found.world_size) != (sampler.rank, sampler.num_replicas):
        said.update(rank=sampler.rank, world_size=sampler.num_replicas)
    return said


def _seeded(seed):
    return {"order": "seeded", "seed": seed & (1 << 63) - 1}


def _generator(generator):
    """The seed that it was given."""
    return {} if generator is None else _seeded(generator.initial_seed())


_SAMPLERS = {
    "SequentialSampler": lambda sampler: {"of": len(sampler.data_source), "shuffle": False},
    "RandomSampler": _random,
    "SubsetRandomSampler": _subset,
    "WeightedRandomSampler": _weighted,
    "DistributedSampler": _distributed,
}


def _is_of_torch(sampler):
    return type(sampler).__module__.startswith("torch.utils.data.")


def _check_epochs(sampler, what):
    """A class of one's own is asked for each epoch, and must say of all ranks what it says of it."""
    name = type(sampler).__name__
    if not callable(getattr(sampler, "set_epoch", None)):
        raise TransformError(f"{what} is a {name}, of which nobody knows the next epochs: {_OTHERWISE}")
    if any(getattr(sampler, count, 1) != 1 for count in ("num_replicas", "world_size")):
        raise TransformError(f"{what} is a {name}, which names the samples of one rank: let it name those of all ranks, a step of all of them behind the"
                             " other, as a Loader gives each rank its part; or give order=function")


def _of_sampler(sampler, what):
    """A class that derives from one of torch's has an order of its own."""
    read = _SAMPLERS.get(type(sampler).__name__) if _is_of_torch(sampler) else None
    if read is not None:
        return read(sampler)
    _check_epochs(sampler, what)

    def order(epoch):
        sampler.set_epoch(epoch)
        return list(sampler)
    return {"order": order}


def _of_own_batches(batches):
    """What it calls a batch must be one of a Loader, which has batches of one size."""
    _check_epochs(batches, "batch_sampler")

    def batches_of(epoch):
        batches.set_epoch(epoch)
        return [list(batch) for batch in batches]
    size = max(map(len, batches_of(0)), default=0)

    def order(epoch):
        made = batches_of(epoch)
        at = next((at for at, batch in enumerate(made) if len(batch) != size and (at + 1 < len(made) or len(batch) > size)), None)
        if at is not None:
            raise TransformError(f"batch {at} of epoch {epoch} of batch_sampler, a {type(batches).__name__}, has {len(made[at])} samples, and others {size}:"
                                 " a Loader's batches have one size, but the last one of an epoch")
        return [number for batch in made for number in batch]
    return {"batch_size": size, "order": order}


def _of_batches(batches):
    if type(batches).__name__ != "BatchSampler" or not _is_of_torch(batches):
        return _of_own_batches(batches)
    return {"batch_size": batches.batch_size, "drop_last": batches.drop_last, **_of_sampler(batches.sampler, "the sampler of batch_sampler")}


def _said(sampler=None, batch_sampler=None, generator=None, shuffle=None):
    """What these mean. Programs write shuffle=(sampler is None), which says nothing of what the sampler does."""
    if sampler is None and batch_sampler is None:
        said = {} if shuffle is None else {"shuffle": shuffle}
    elif shuffle:
        raise ArgumentError("shuffle=True beside a sampler, which says itself whether it shuffles: leave one of them out")
    else:
        said = _of_sampler(sampler, "sampler") if batch_sampler is None else _of_batches(batch_sampler)
    said = {**_generator(generator), **said}
    if "order" in said:     # in that of the files the seed is that of random ops
        said.pop("order" if said.get("shuffle") is False else "shuffle", None)
    return said


_Init = TypeVar("_Init", bound=Callable[..., None])


def translated(init: _Init) -> _Init:
    """Of a Loader: sampler=, batch_sampler= and generator= as the arguments that mean the same."""
    @functools.wraps(init)
    def made(self, *args, **kwargs):
        given = {name: kwargs.pop(name) for name in _SAID if name in kwargs}
        if any(value is not None for value in given.values()):
            said = _said(**given, shuffle=kwargs.pop("shuffle", None))
            self._sampled, self._evens, self._has_read_order = said.pop("of", None), said.pop("evens", None), isinstance(said.get("order"), str)
            twice = said.keys() & kwargs.keys()
            if twice:
                raise ArgumentError(f"{' and '.join(given)} beside {'=, '.join(sorted(twice))}=, which it says itself: leave one of them out")
            kwargs.update(said)
        init(self, *args, **kwargs)
    return made


# ---- data sets ----

def _is_iterable(dataset):
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(dataset, data.IterableDataset)


def refuse_iterable(dataset: Any) -> None:
    """One that yields samples; what derives from torch's has a __getitem__ that raises."""
    if _is_iterable(dataset) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise TransformError(
            f"{type(dataset).__name__} has no __getitem__ and __len__: samples that come one after another have no numbers by which jobs share"
            " them. If it reads shards or tables, name these: oneaccess.Loader(\"/data/train-{000000..000123}.tar\", ...), from_tar(),"
            " from_tfrecord(), from_bagz(), from_array_record(), from_beton(), from_mds(), from_parquet(); else give it __len__(self) and __getitem__(self, index)")


def _read_folder(dataset):
    """Does it read a folder as ImageFolder does, with its own classes?"""
    return all(hasattr(dataset, name) for name in ("root", "samples", "class_to_idx", "transform")) and os.path.isdir(dataset.root)


def _line(dataset, rest=""):
    pipeline = f"oneaccess.from_torchvision({rest or 'dataset'}.transform), " if dataset.transform is not None else "oneaccess.imagenet_train(224), "
    ids = ", ids=dataset.indices" if rest else ""
    return f"oneaccess.Loader({os.fspath(dataset.root)!r}, {pipeline}batch_size=...{ids})"


def refuse(dataset: Any) -> None:
    """A data set that is none of a Loader's; what to write instead."""
    name = type(dataset).__name__
    inner = getattr(dataset, "dataset", None)
    if _read_folder(dataset):
        how = f"it reads a folder, which accessd does itself: {_line(dataset)}"
    elif hasattr(dataset, "indices") and _read_folder(inner):
        how = f"it is a part of a folder, which accessd reads itself: {_line(inner, 'dataset.dataset')}"
    elif hasattr(dataset, "indices") and isinstance(inner, Samples):
        how = (f"it is a part of a Loader's samples: oneaccess.Loader({inner.named()}, pipeline, batch_size=..., ids=dataset.indices); for a"
               " random part in the place of random_split() there is split=(0, 0.8, 1), and split=(0.8, 1, 1) for the rest")
    elif isinstance(dataset, (list, tuple)) and dataset and all(isinstance(part, (str, os.PathLike)) for part in dataset):
        how = ("shards are named as \"/data/train-{000000..000123}.tar\", files of pictures by a table (.csv, .jsonl), and several folders are one"
               " data set by oneaccess.mix([oneaccess.Loader(folder, pipeline), ...], ...)")
    elif isinstance(dataset, (list, tuple)):
        how = "samples that Python has: oneaccess.wrap(list_of_samples); of arrays beside each other oneaccess.wrap(list(zip(images, labels)))"
    elif not hasattr(dataset, "__getitem__"):
        how = "name the folder that the data set reads"
    else:
        refuse_iterable(dataset)
        how = "oneaccess.Loader(oneaccess.wrap(dataset), batch_size=...), or of Hugging Face's oneaccess.from_hf(dataset)"
    raise TransformError(f"{name} is no folder, shards or table: a Loader reads the files itself; {how}")


def refuse_worker() -> None:
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        raise ForkedError("a Loader was made in a worker process of torch's DataLoader: iterate over the"
                          " Loader itself in the main process, it needs no workers")
