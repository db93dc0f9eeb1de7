# SPDX-License-Identifier: Apache-2.0
"""Batches on their way to a device.

    slot --copy, on a stream beside the training's--> room on the device --finish--> the loop's tensors

A room has the fields of one batch as the daemon gives them, pictures as bytes; there are a few, made once. A copy
into one waits, on the device, until what was in it is finished; finishing runs on the caller's stream, so
that the tensors are like any others made there. The host waits for nothing but what it could not do without:
a pin lives until its batch's copy is done, and at most _FLYING are under way.

Copies are made directly from the slots, which are registered with the device as they are met, through
mappings of our own (core/pytwin.c). What is no slot's memory (batches put together from two chunks, mixup,
cutmix, mosaic), and all where the driver refuses, goes through a staging buffer, which costs a copy in memory.
"""

import collections
import itertools
import os

import torch

from . import _core
from .convert import tensor_of
from .ending import Ending
from .errors import BatchTimeout, Error

_ROOMS = 3
_FLYING = 2

# ---- normalize and cast ----


def _table(ending):
    """What each byte becomes, [channels or 1, 256], by the daemon's arithmetic: float32 throughout, each
    operation by itself."""
    bytes_ = torch.arange(256, dtype=torch.float32, device="cpu")
    values = bytes_.div(torch.full_like(bytes_, 255.0)).reshape(1, 256)
    if ending.mean is not None:
        channels = max(len(ending.mean), len(ending.std))
        mean, std = (torch.tensor(each, dtype=torch.float32, device="cpu").reshape(-1, 1)
                     .expand(channels, 256).contiguous() for each in (ending.mean, ending.std))
        values = values.expand(channels, 256).contiguous().sub(mean).div(std)
    return values.to(getattr(torch, ending.dtype))


def _constant(values, ending, device):
    """Of the channels, to be spread over images."""
    shape = (-1,) + (1,) * (-1 - ending.axis)
    return torch.tensor(values, dtype=torch.float32, device=device).reshape(shape)


class Arithmetic:
    """(value / 255 - mean) / std in one or two passes over memory."""

    def __init__(self, ending, device):
        self._dtype = getattr(torch, ending.dtype)
        self._range = torch.tensor(255.0, dtype=torch.float32, device=device)
        self._less = self._std = None
        if ending.mean is not None:
            self._less = _constant([-each for each in ending.mean], ending, device)
            self._std = _constant(ending.std, ending, device)

    def __call__(self, image):
        if self._less is None:
            value = torch.div(image, self._range)
            return value if self._dtype == torch.float32 else value.to(self._dtype)
        value = torch.addcdiv(self._less, image, self._range)
        if self._dtype == torch.float32:
            return value.div_(self._std)
        return torch.div(value, self._std, out=torch.empty_like(value, dtype=self._dtype))


class Lookup:
    """The same from the table, whatever the device's arithmetic is."""

    def __init__(self, ending, device):
        table = _table(ending)
        shape = (-1,) + (1,) * (-1 - ending.axis)
        self._first = torch.arange(0, table.numel(), 256, dtype=torch.int32, device=device).reshape(shape)
        self._table = table.flatten().to(device)

    def __call__(self, image):
        places = image + self._first
        return self._table.index_select(0, places.flatten()).reshape(places.shape)


def _bits(tensor):
    return tensor.contiguous().view(torch.int32 if tensor.dtype == torch.float32 else torch.int16)


def finisher(ending: Ending, device, ways=(Arithmetic, Lookup)):
    """The first way that gives the daemon's values, to the last bit, for all that a byte may be."""
    table = _table(ending)
    bytes_ = torch.arange(256, dtype=torch.uint8, device="cpu").repeat(3).reshape(3, 256)
    shape = (3, 16, 16) if ending.axis == -3 else (16, 16, 3)
    image = (bytes_.reshape(shape) if ending.axis == -3 else bytes_.T.reshape(shape)).to(device)
    for way in ways:
        finish = way(ending, device)
        got = finish(image).cpu()
        got = got.reshape(3, 256) if ending.axis == -3 else got.reshape(256, 3).T
        if torch.equal(_bits(got), _bits(table.expand(3, 256))):
            return finish
    raise RuntimeError(f"{device} computes neither {ending} nor a lookup; this is a bug of OneAccess")


# ---- memory that the device reads ----


class _Slots:
    """Slots of the stream's session that are registered."""

    def __init__(self, engine):
        self._engine = engine
        self._twin = {}
        self._session = None
        self.refusal = None
        self.nbytes = 0

    def twin(self, batch, slot):
        """slot: the batch's. None: it lies in no memory that the device reads."""
        if slot is None or self.refusal is not None:
            return None
        return self._twin.get(slot) or self._register(batch, slot)

    def is_new(self, slot):
        """Has the stream connected again since the last one? Then the others end, when they are idle."""
        return slot is not None and self._session not in (None, slot[0])

    def _register(self, batch, slot):
        twin = None
        try:
            twin = _core.Twin(batch)
            self._engine.register(twin.address, twin.nbytes)
        except OSError as refused:
            if twin is not None:
                twin.close()
            self.refusal = refused.strerror
            return None
        self._session = slot[0]
        self._twin[slot] = twin
        self.nbytes += twin.nbytes
        return twin

    def close(self):
        """Nothing may be under way."""
        while self._twin:
            _, twin = self._twin.popitem()
            self._engine.unregister(twin.address)
            twin.close()
        self._session, self.nbytes = None, 0


class _Stage:
    """Where a batch waits that the device cannot read."""

    def __init__(self, engine):
        self._engine = engine
        self._memory = None
        self.free = engine.event()  # when the device has read what is in it

    def places(self, fields):
        """Addresses of copies of them."""
        self.free.synchronize()
        needed = [-(-field.nbytes // 64) * 64 for field in fields]
        if self._memory is None or self._memory.numel() < sum(needed):
            with torch.inference_mode(False):  # tensors that last must not be of a mode
                self._memory = self._engine.staging(sum(needed))
        made, at = [], 0
        for field, size in zip(fields, needed):
            tensor = tensor_of(field)
            part = self._memory[at:at + field.nbytes].view(tensor.dtype).view(tensor.shape)
            made.append(part.copy_(tensor).data_ptr())
            at += size
        return made


# ---- batches ----


class _Room:
    """Of one batch on the device."""

    def __init__(self, engine, tensors, capacity):
        self.fields = [torch.empty((capacity, *tensor.shape[1:]), dtype=tensor.dtype,
                                   device=engine.device) for tensor in tensors]
        self.places = [field.data_ptr() for field in self.fields]
        self.sizes = [field[0].numel() * field.element_size() for field in self.fields]  # of a sample
        self.is_copied, self.is_finished = engine.event(), engine.event()


def _about(batch):
    """Of each field its lengths and its kind."""
    return [(field.lengths, field.kind) for field in batch.fields if field.name != "index"]


class Sent:
    """A batch that is on its way, or there. about: _about() of it, None where no field has lengths."""

    __slots__ = ("batch", "ids", "about", "room", "fields")

    def __init__(self, batch, room, fields, about):
        self.batch, self.ids = batch, batch.ids  # which go with the pin
        self.room, self.fields, self.about = room, fields, about


class Feed:
    """The way of one loader's batches to a device. One thread at a time."""

    def __init__(self, engine, ending: Ending | None, batch_size: int):
        self._engine, self._batch_size = engine, batch_size
        with torch.inference_mode(False):
            self._finish = {at: finisher(each, engine.device) for at, each in ({} if ending is None else {0: ending, **ending.others}).items()}
        self._slots = _Slots(engine)
        self._stages = [_Stage(engine) for _ in range(_FLYING)]
        self._rooms = []
        self._flying = collections.deque()  # (event, batch whose pin it needs or None)
        self._turn = 0
        self._ahead = self._state = None
        self._pid = os.getpid()
        self.bytes = self.staged = 0

    # ---- what it says of itself ----

    @property
    def refusal(self) -> str | None:
        """What the driver said when it was to register memory."""
        return self._slots.refusal

    @property
    def registered(self) -> int:
        """Bytes of slots that the device reads directly."""
        return self._slots.nbytes

    # ---- there ----

    def _land(self, most):
        """Lets go of batches whose copy is done, and waits until at most so many are under way."""
        flying = self._flying
        while flying and (len(flying) > most or flying[0][0].query()):
            flying[0][0].synchronize()
            _, batch = flying.popleft()
            if batch is not None:
                batch.release()

    def _make_rooms(self, batch):
        """The first batch says what batches have."""
        self._is_field = [field.name != "index" for field in batch.fields]
        self._is_ragged = any(lengths is not None for lengths, _ in _about(batch))
        tensors = [tensor_of(field) for field in itertools.compress(batch.fields, self._is_field)]
        with torch.inference_mode(False):
            self._rooms = [_Room(self._engine, tensors, self._batch_size) for _ in range(_ROOMS)]

    def _places(self, batch, slot):
        """Where the device finds the fields, and the batch if that is its own memory."""
        twin = self._slots.twin(batch, slot)
        if twin is not None:
            places = list(itertools.compress(twin.places(batch), self._is_field))
            if None not in places:
                return places, batch
        self.staged += 1
        stage = self._stages[self._turn % _FLYING]
        return stage.places(list(itertools.compress(batch.fields, self._is_field))), None

    def send(self, batch) -> Sent:
        """Begins to copy; the batch is released when that is done."""
        slot = batch.slot
        if self._slots.is_new(slot):
            self._land(0)
            self._slots.close()
        if not self._rooms:
            self._make_rooms(batch)
        room, count = self._rooms[self._turn % _ROOMS], batch.count
        places, lent = self._places(batch, slot)
        sizes = [size * count for size in room.sizes]
        sent = Sent(batch, room, room.fields if count == self._batch_size else
                    [field[:count] for field in room.fields], _about(batch) if self._is_ragged else None)
        self._flying.append((room.is_copied, lent))
        self._engine.copy(zip(room.places, places, sizes) if count else (), room.is_finished, room.is_copied)
        if lent is None:
            self._stages[self._turn % _FLYING].free = room.is_copied
            batch.release()
        self._turn += 1
        self.bytes += sum(sizes)
        return sent

    def deliver(self, sent: Sent) -> list[torch.Tensor]:
        """The tensors, for use on the caller's stream: images, labels, ..."""
        stream, room = self._engine.current(), sent.room
        room.is_copied.wait(stream)
        tensors = [self._finish.get(at, torch.clone)(field) for at, field in enumerate(sent.fields)]
        room.is_finished.record(stream)
        return tensors

    # ---- one ahead ----

    def next(self, take) -> Sent | None:
        """The batch that was sent ahead, else the one that take() waits for."""
        ahead, self._ahead, self._state = self._ahead, None, None
        if isinstance(ahead, Error):
            raise ahead
        if ahead is not None:
            return ahead
        self._land(_FLYING - 1)
        batch = take()
        return None if batch is None else self.send(batch)

    def look_ahead(self, stream):
        """Sends the next batch if it is there. What goes wrong is told when it is asked for."""
        self._land(_FLYING - 1)
        state = stream.state()
        try:
            batch = stream.next(0)
        except BatchTimeout:
            return
        except Error as wrong:
            self._ahead = wrong
            return
        if batch is not None:
            self._ahead, self._state = self.send(batch), state

    @property
    def state(self) -> bytes | None:
        """Where the job stands while a batch is ahead of it."""
        return self._state

    # ---- the end ----

    def settle(self):
        """Waits until no copy is under way: all pins are given back. A forked child has none."""
        if self._pid == os.getpid():
            self._land(0)

    def reset(self):
        """The stream ends."""
        self._ahead = self._state = None
        if self._pid == os.getpid():
            self._land(0)
            self._slots.close()

    def close(self):
        """The last thing, also at the interpreter's end."""
        try:
            self.reset()
        except (RuntimeError, OSError):  # the device has failed, and copies nothing any more
            self._flying.clear()
