# SPDX-License-Identifier: Apache-2.0
"""The Loader as a torch.utils.data.DataLoader, for libraries that look for one (doc/decisions/220-libraries.md).

None of DataLoader's machinery runs: its fields are answered, and who makes another DataLoader of them, as
Accelerate's skip_first_batches() does, gets this Loader's batches, in order."""

import functools
import weakref

from torch.utils.data import BatchSampler, DataLoader, Sampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from . import samples as samples_of
from .errors import TransformError
from .samples import Asked, Turn


class _Positions:
    """Places in the epoch of this rank; which samples are there the daemon decides."""

    def __init__(self, loader):
        self._loader = loader
        self.num_replicas, self.rank = loader.world_size, loader.rank
        self.shuffle = not loader._is_sequential()
        self.drop_last = loader.drop_last

    def __len__(self):
        whole, rest = divmod(self._loader._n_samples(), self._loader.batch_size * self.num_replicas)
        share = 0 if self.drop_last else -(-rest // self.num_replicas)
        return whole * self._loader.batch_size + share

    def __iter__(self):
        return iter(range(len(self)))

    def set_epoch(self, epoch):
        """Each loop is a new epoch by itself."""


class _Dealt(_Positions, DistributedSampler):
    """Libraries deal out no more where they find a DistributedSampler."""


class _InOrder(_Positions, SequentialSampler):
    pass


class _Shuffled(_Positions, Sampler):
    """No RandomSampler: Accelerate would put one of its own there."""


class _Plan(BatchSampler):
    """Its lists are what Samples.__getitems__ takes."""

    even_batches = False  # of Accelerate's join_uneven_inputs()

    def __init__(self, sampler, batch_size, drop_last):
        """Libraries that give a loader another sampler make another one of it, as of any BatchSampler."""
        if not isinstance(sampler, _Positions):
            raise TransformError(
                f"a library gives the Loader a {type(sampler).__name__} of its own, by which it would deal out samples that"
                " the daemon deals: say it to the Loader instead, order and ranks (shuffle=False, e.g. for Lightning's"
                " overfit_batches; rank= and world_size=)")
        super().__init__(sampler, batch_size, drop_last)
        self._loader = sampler._loader

    def __len__(self):
        return len(self._loader)

    def __iter__(self):
        turn, size, end = Turn(iter(self._loader)), self.batch_size, len(self.sampler)
        for number in range(len(self)):
            if turn.has_ended():
                return
            yield Asked(range(number * size, min((number + 1) * size, end)), turn, number)


class _Counted:
    """A loop of which Accelerate knows where it is."""

    def __init__(self, loop, steps):
        self._loop, self._steps = loop, steps

    @property
    def has_ended(self):
        return self._loop.has_ended

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loop)

    def __next__(self):
        return next(self._steps)


_COPIED = ("num_workers", "prefetch_factor", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
           "persistent_workers")


class _Fields:
    """DataLoader's, as of one without workers."""

    num_workers, persistent_workers = 0, False
    prefetch_factor = DataLoader([None]).prefetch_factor  # None, or what an old PyTorch insists on
    pin_memory, pin_memory_device, in_order = False, "", True
    timeout = 0  # of workers
    worker_init_fn = multiprocessing_context = generator = None
    end_of_dataloader, remainder = False, -1  # Accelerate's
    _is_prepared = False
    _iterator = None  # Composer refuses a DataLoader that is in mid-epoch: a Loader's loops are each their own

    def __init__(self, *args, **kwargs):
        """Ray's loader copies what a DataLoader has in its __dict__, and keeps the DataLoader beside it."""
        super().__init__(*args, **kwargs)
        beside = weakref.proxy(self)
        vars(self).update({name: getattr(self, name) for name in _COPIED}, dataset=samples_of.of(beside, self._wrapped),
                          sampler=self._sampler_of(beside))

    @staticmethod
    def collate_fn(batch):
        """Batches are made."""
        return batch

    @property
    def sampler(self) -> Sampler:
        self._join()
        return self._sampler_of(self)

    def _sampler_of(self, loader):
        if self.world_size > 1:
            return _Dealt(loader)
        return (_InOrder if self._is_sequential() else _Shuffled)(loader)

    @property
    def batch_sampler(self) -> BatchSampler:
        return _Plan(self.sampler, self.batch_size, self.drop_last)

    @property
    def total_batch_size(self) -> int:
        """Of all ranks."""
        return self.batch_size * self.world_size

    def set_epoch(self, epoch: int) -> None:
        """Does nothing: each loop is a new epoch by itself."""

    @property
    def _is_accelerate_prepared(self):
        """Accelerator.prepare() asks this, and leaves as it is what says yes; from then on loops are counted."""
        self._is_prepared = True
        return True

    @_is_accelerate_prepared.setter
    def _is_accelerate_prepared(self, is_prepared):
        self._is_prepared = is_prepared

    def __iter__(self):
        loop = super().__iter__()
        return _Counted(loop, self._steps(loop)) if self._is_prepared else loop

    def _steps(self, loop):
        """What accelerate.data_loader.DataLoaderShard does, without its batch of look-ahead."""
        from accelerate.state import GradientState, PartialState
        from accelerate.utils import send_to_device
        device, state = PartialState().device, GradientState()
        is_there = self.device is not None or device.type == "cpu"
        self.end_of_dataloader = False
        self.remainder = -1 if self.drop_last else self._n_samples() % self.total_batch_size
        state._add_dataloader(self)
        try:
            for batch in loop:
                self.end_of_dataloader = loop.has_ended
                if not is_there:
                    facts = getattr(batch, "__dict__", {})
                    batch = send_to_device(batch, device)
                    for name, fact in facts.items():
                        setattr(batch, name, fact)
                yield batch
        finally:
            state._remove_dataloader(self)


@functools.cache
def _made(cls):
    return type(cls.__name__, (_Fields, cls, DataLoader),
                {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__})


def class_of(cls: type) -> type:
    """The subclass of a Loader's class that is a DataLoader, too."""
    return cls if issubclass(cls, DataLoader) else _made(cls)
