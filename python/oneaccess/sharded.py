# SPDX-License-Identifier: Apache-2.0
"""Batches as global arrays of JAX, in shards over a mesh: sharding= of a Loader. Each process is a rank of its job and has the samples of its own devices; together
these are the batch. A device gets its part from the view of shared memory, which JAX holds until it is there."""

import hashlib
from typing import Any

from . import ranks as ranks_of
from .errors import ArgumentError, needs


class Sharded:
    """How a Loader's batches lie on devices."""

    def __init__(self, sharding: Any, beside: dict[str, Any]):
        self._jax = needs("jax", "sharding=")
        if not isinstance(sharding, self._jax.sharding.Sharding):
            raise ArgumentError(f"sharding is {sharding!r}: give one of jax.sharding, as NamedSharding(mesh, PartitionSpec(\"data\"))")
        self.sharding, self._of = sharding, {}
        if beside["as_"] not in (None, "jax"):
            raise ArgumentError(f"sharding= makes arrays of JAX, and as_ is \"{beside['as_']}\": leave as_ out")
        for name, instead in (("device", "the sharding has the devices"), ("collate_fn", "it would take apart what lies on several devices")):
            if beside[name] is not None:
                raise ArgumentError(f"{name}= beside sharding=: leave it out; {instead}")
        if not beside["drop_last"]:
            raise ArgumentError("sharding= cuts each batch into equal parts, and an epoch's last batch may be smaller: give drop_last=True")

    # ---- ranks ----

    def ranks(self, rank, world_size, local_rank, local_world_size, socket):
        """As given, else the processes of JAX."""
        if rank is not None or self._jax.process_count() == 1:
            return rank, world_size, local_rank, local_world_size
        rank, world_size = self._jax.process_index(), self._jax.process_count()
        if local_rank is None:
            local_rank, local_world_size = self._near(rank, socket)
        return rank, world_size, local_rank, local_world_size

    def _near(self, rank, socket):
        """All processes say where they are."""
        import numpy as np
        from jax.experimental import multihost_utils
        node = np.frombuffer(hashlib.sha256(repr(ranks_of.node(socket)).encode()).digest(), np.uint32)
        everybody = np.asarray(multihost_utils.process_allgather(node)).reshape(self._jax.process_count(), -1)
        here = [other for other, theirs in enumerate(everybody) if (theirs == node).all()]
        if here != list(range(here[0], here[0] + len(here))):
            raise ArgumentError(f"processes {', '.join(map(str, here))} of JAX are on this node: {ranks_of.IN_ORDER}")
        return here.index(rank), len(here)

    # ---- arrays ----

    def check(self, batch_size: int, rank: int, world_size: int) -> None:
        """Before there is any: does it cut such batches, and has each process a part of its own?"""
        count, here = batch_size * world_size, set()
        try:
            parts = self._fit(1).devices_indices_map((count,))
        except ValueError as why:
            raise ArgumentError(f"a batch of {count:,} samples cannot be cut by {self.sharding}: {why}") from None
        several = self._jax.process_count() > 1
        for device, (part,) in parts.items():
            if not several or device.process_index == self._jax.process_index():
                here.update(range(*part.indices(count)))
        if not several and world_size > 1:
            raise ArgumentError(f"rank {rank} of {world_size} beside sharding=, and this is JAX's only process, whose batches are whole: call jax.distributed.initialize()"
                                " in each, or give rank=0, world_size=1")
        if several and (world_size, rank) != (self._jax.process_count(), self._jax.process_index()):
            raise ArgumentError(f"rank {rank} of {world_size} beside sharding=, and this is process {self._jax.process_index()} of {self._jax.process_count()} of JAX:"
                                " they must be the same, so leave rank= and world_size= out")
        if len(here) != batch_size:
            raise ArgumentError(f"the devices of process {rank} have {len(here):,} of the {count:,} samples of a batch by {self.sharding}, and each process reads its own"
                                f" {batch_size:,}: cut the first dimension by an axis of the mesh that no two processes share")

    def _fit(self, dimensions):
        """Labels have fewer dimensions than images."""
        if dimensions not in self._of:
            sharding, named = self.sharding, self._jax.sharding.NamedSharding
            if isinstance(sharding, named) and len(sharding.spec) > dimensions:
                sharding = named(sharding.mesh, self._jax.sharding.PartitionSpec(*sharding.spec[:dimensions]), memory_kind=sharding.memory_kind)
            self._of[dimensions] = sharding
        return self._of[dimensions]

    def way(self, to_numpy):
        """As those of convert.py. Ragged fields stay as NumPy has them."""
        def convert(field, own):
            array = to_numpy(field, own)
            if field.lengths is not None:
                return array
            sharding = self._fit(array.ndim)
            if self._jax.process_count() == 1:
                return self._jax.device_put(array, sharding)
            count = len(array) * self._jax.process_count()
            return self._jax.make_array_from_process_local_data(sharding, array, (count, *array.shape[1:]))

        return convert
