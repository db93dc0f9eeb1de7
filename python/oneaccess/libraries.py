# SPDX-License-Identifier: Apache-2.0
"""What libraries of training look for in a loader, beyond its batches (doc/libraries.md).

A Loader is no ``torch.utils.data.DataLoader``: who meets one makes another of its data set and its sampler, and would deal
samples to ranks that were dealt already.
"""

import os
import sys

# What a Loader lacks and somebody may ask for, and what there is in its place.
_LACKS = {
    "sampler": "which samples an epoch has, and of which rank they are, was said when the Loader was made"
               " (ids=, classes=, split=, weights=, rank=). To go on in the middle of an epoch, in the place of"
               " accelerate's skip_first_batches(): load_state_dict(state), of a state_dict(); it is exact",
    "batch_sampler": "batches come ready from the daemon, those of this rank: hand the Loader on as it is, not to"
                     " prepare_data_loader()",
    "collate_fn": "batches come ready from the daemon",
    "generator": "order=\"seeded\" with seed= has the same batches in each run",
}


class Dataset:
    """What a Loader's folder is for programs that ask a loader for its data set: the samples of an epoch by number, and
    what ImageFolder knows. Samples are not to be had one by one."""

    def __init__(self, loader):
        self._loader = loader

    root = property(os.fspath)
    classes = property(lambda self: self._loader.classes)
    class_to_idx = property(lambda self: self._loader.class_to_idx)
    targets = property(lambda self: self._loader.targets)

    def __len__(self):
        return self._loader._open().stats()["n_samples"]

    def __fspath__(self):
        return self._loader._folder

    def __repr__(self):
        return f"<oneaccess.Dataset {self._loader._folder!r}>"

    __str__ = __fspath__


def lacking(name: str) -> property:
    """An attribute that is not there, and says what is."""
    def tell(loader):
        raise AttributeError(f"'{type(loader).__name__}' object has no attribute '{name}': {_LACKS[name]}")
    return property(tell)


def _gradients():
    """Accelerate's state of the steps of gradients, where this process has an Accelerator."""
    module = sys.modules.get("accelerate.state")
    state = getattr(module, "GradientState", None)
    return state() if state is not None and state._shared_state else None


def begin(loader) -> None:
    """An epoch's first batch is about to be taken: by it Accelerate counts when to step and when a loop ends."""
    gradients = _gradients()
    if gradients is not None:
        end(loader)
        gradients._add_dataloader(loader)


def end(loader) -> None:
    """The loop is over, or was left."""
    loader.end_of_dataloader = False
    gradients = _gradients()
    if gradients is not None:
        gradients._remove_dataloader(loader)
