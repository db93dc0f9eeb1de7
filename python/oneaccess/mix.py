# SPDX-License-Identifier: Apache-2.0
"""Several data sets as one, in exact shares: oa_mix_open(3)."""

import array
import base64
import os
import threading
from collections.abc import Iterable, Iterator, Sequence

from . import _core, choices, tfdata, trees, waiting
from .arguments import DROP_LAST
from .batches import Batch, DictBatch
from .errors import ArgumentError, Error, StateError, TransformError
from .loader import Loader

_ENDS = {"first": 0, "all": 1, "longest": 2}
_UNITS = {"samples": 0, "batches": 1}
_SAMPLES = _UNITS["samples"]
_STATE_VERSION = 1


def mix(parts: Sequence[Loader], weights: Sequence[int] | None = None, batch_size: int | None = None, *,
        unit: str = "samples", end: str = "first", epochs: int | None = None, seed: int = 0,
        drop_last: bool = False, timeout: float | None = None, state: dict | None = None) -> "Mix":
    """Batches from several data sets, in exact shares.

        for batch in oa.mix([oa.Loader(a, p), oa.Loader(b, p)], weights=[7, 3], batch_size=256): batch.parts

    parts: up to 64 Loaders, which say what each part is: data set, pipeline, order, samples, ranks, bad. They share with
        other jobs as usual. Their batch_size, drop_last and epochs are replaced by the mix's. The mix has streams of its
        own: iterating over a part by itself is another job.
    weights: integers from 1 on, in lowest terms at most 1,000,000 in all; default: equal. Of the first h samples of an
        epoch, a part has h * weight / sum, to within less than one.
    batch_size: samples in a batch; default: that of the parts, if it is the same.
    unit: "samples" (default): each batch has samples of all parts, copied together; the parts have the same fields, types
        and shapes. "batches": whole batches of the parts take turns, as views.
    end: when an epoch ends: "first" (default): before a part would begin its own data again; "all": when each part was at
        its end once; "longest": when the part with the most samples was. Parts do not begin again with an epoch: each gives
        all of its samples once before it gives one again.
    epochs: the number of epochs; default: no end.
    seed: of the samples' places in a batch.
    drop_last: leave out an epoch's last batch if it is short.
    timeout: seconds to wait for a batch, as of Loader.
    state: of state_dict().

    Ranks: those of the parts, which need order="seeded" or "sequential"; also if the parts find them when the first loop
        begins. Errors: ArgumentError, or what Loader raises, with the number of the part.
    """
    return Mix(parts, weights, batch_size, unit, end, epochs, seed, drop_last, timeout, state)


def _chosen(what, word, words):
    if word not in words:
        raise ArgumentError(f"{what} is {word!r}; there are: {', '.join(words)}")
    return words[word]


def _checked(parts):
    parts = list(parts)
    for number, part in enumerate(parts):
        if not isinstance(part, Loader):
            raise ArgumentError(f"part {number} of the mix is a {type(part).__name__}: give Loaders")
        if part.device is not None:
            raise ArgumentError(f"part {number} of the mix has a device: leave it out, and bring the mix's batches there")
        if part._refresh:
            raise ArgumentError(f"part {number} of the mix has refresh=: a mix keeps the versions that it opened; leave it out")
        if part._asked is not None:
            raise ArgumentError(f"part {number} of the mix has order=function: a mix goes on from part to part, and knows the samples of all epochs; give"
                                " the part ids=")
        if part._to_come is not None:
            raise ArgumentError(f"part {number} of the mix is in the middle of an epoch, and has other samples from the next one on, by choose(): make"
                                " the mix of another Loader")
        if part._collate is not None:
            raise ArgumentError(f"part {number} of the mix has a collate_fn: leave it out, and collate the mix's batches")
    if not parts:
        raise ArgumentError("a mix of no parts: give Loaders")
    return parts


def _same_kind(parts):
    """Samples are dicts of the same names in all parts, or tuples in all, have their fields at the same places of a batch, and ragged
    ones become the same: all batches are made as those of part 0."""
    def kind_of(part):
        layout = {"kind": "tuple"} if part._layout is None or part._is_rows() else part._layout
        words = f"dicts of {', '.join(layout['names'])}" if layout["kind"] == "dict" else "tuples"
        if len(layout.get("places", "")) > 1 and 1 not in layout["places"]:
            words += " without a label"
        if part._layout is not None and "objective" in part._layout:
            words = f"tokens for {part._layout['objective']}"
        return words + "".join(f", {name} as {way}" for name, way in sorted(part._ragged.items()))
    kinds = [kind_of(part) for part in parts]
    for number, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ArgumentError(f"the samples of part 0 of the mix are {kinds[0]}, those of part {number} are {kind}: give"
                                " data sets whose samples are alike")


def _weighed(weights, parts):
    weights = [1] * len(parts) if weights is None else list(weights)
    if len(weights) != len(parts):
        raise ArgumentError(f"{len(weights)} weights for {len(parts)} parts: give one for each")
    for number, weight in enumerate(weights):
        if not isinstance(weight, int) or not 1 <= weight < 1 << 32:
            raise ArgumentError(f"weight {number} is {weight!r}: give whole numbers from 1 on; shares of 0.7 and 0.3 are"
                                " 7 and 3")
    return weights


def _sized(batch_size, parts):
    if batch_size is not None:
        return batch_size
    sizes = sorted({part.batch_size for part in parts})
    if len(sizes) != 1:
        raise ArgumentError(f"the parts have batches of {', '.join(map(str, sizes))}: give the mix its batch_size=")
    return sizes[0]


class Mix:
    """The result of mix(). Each loop is one epoch; a loop after one that was left early continues the same epoch.

    Any thread may take batches. The number of batches in an epoch follows from the parts and is not known before.
    """

    def __init__(self, parts, weights, batch_size, unit, end, epochs, seed, drop_last, timeout, state):
        self.parts = _checked(parts)
        self.weights = _weighed(weights, self.parts)
        self.batch_size = _sized(batch_size, self.parts)
        self.unit, self.end, self.epochs, self.drop_last = unit, end, epochs, drop_last
        self._timeout = waiting.patience(timeout)
        self._options = {"unit": _chosen("unit", unit, _UNITS), "end": _chosen("end", end, _ENDS), "seed": seed,
                         "epochs": epochs or 0, "flags": DROP_LAST if drop_last else 0}
        _same_kind(self.parts)
        self._lock = threading.RLock()
        self._stream = self._early = self._token = self._loop = None
        self._is_closed = False
        for part in self.parts:
            part._drop()  # the mix has streams of its own
        if state is not None:
            self._take_state(state)
        if self.parts[0].world_size == 1:
            self._open()
        for part in self.parts:
            part._is_of_mix = True

    def _part(self, number):
        part = self.parts[number]
        agreed = part._agree()
        options = {**part._options, **(agreed if self._token is None else {}), "batch": 0, "epochs": None,
                   "flags": 0 if self._options["unit"] == _SAMPLES else part._options["flags"] & ~DROP_LAST}
        if part._job is not None:  # by it ranks find each other, those of each part
            options["job"] = f"{part._job} (part {number} of a mix)"
        return options, self.weights[number]

    def _open(self):
        if self._is_closed:
            raise ValueError("the mix was closed")
        if self._stream is None:
            client = _core.Client(self.parts[0]._socket)
            parts = tuple(self._part(number) for number in range(len(self.parts)))
            self._stream = _core.Mix(client, parts, self.batch_size, token=self._token, **self._options)
        return self._stream

    def _join(self):
        """The parts take over ranks that came up behind them; the stream was of one rank then."""
        for part in self.parts:
            if part._join() and self._stream is not None:
                self._stream.close()
                self._stream = None

    def __iter__(self) -> Iterator[Batch]:
        with self._lock:
            if self._loop is None:
                self._join()
            self._loop = _Epoch(self)
            _core.guard()
            trees.register(Batch, DictBatch)
            return self._loop

    to_tf_dataset = tfdata.to_tf_dataset

    def _take(self, loop):
        """The next batch of the loop's epoch, or None behind its last."""
        with self._lock:
            if loop is not self._loop:
                raise Error("another loop over this mix has begun since: two at a time need two mixes, which share"
                            " their work")
            if loop.has_ended:
                return None
            batch, self._early = self._early or self._await(), None
            if batch is None:
                if loop.count == 0:
                    raise Error(f"all {self.epochs} epochs are delivered: make the mix with more, or without epochs")
                loop.has_ended = True
                return None
            if loop.count > 0 and batch.epoch != loop.epoch:
                self._early = batch
                loop.has_ended = True
                return None
            loop.count, loop.epoch, loop.has_ended = loop.count + 1, batch.epoch, batch.is_last
            return self._made(batch)

    def _await(self):
        if self._timeout is not None:
            return self._open().next(int(self._timeout * 1000))
        return waiting.patiently(self._open().next)

    def _made(self, batch):
        first, is_private = self.parts[0], self._options["unit"] == _SAMPLES
        made = first._made(batch, is_private)
        made.parts = memoryview(batch.parts).cast("I")
        return made

    def names(self, ids: Iterable[int], parts: Iterable[int]) -> list[str]:
        """The names of samples, as Loader.names(): ``mix.names(batch.ids, batch.parts)``. Any thread."""
        ids, parts = choices.numbers(ids, "q"), choices.numbers(parts, "q")
        if len(ids) != len(parts):
            raise ArgumentError(f"{len(ids):,} ids and {len(parts):,} parts: give the part of each, as batch.parts has it")
        names = [""] * len(ids)
        for number in set(parts):
            if not 0 <= number < len(self.parts):
                raise ArgumentError(f"part {number}: the mix has parts 0 to {len(self.parts) - 1}")
            part, places = self.parts[number], [at for at, other in enumerate(parts) if other == number]
            part._refuse_nameless()
            for at, name in zip(places, part._shown(self._open().names(number, array.array("q", (ids[at] for at in places))))):
                names[at] = name
        return names

    def state_dict(self) -> dict:
        """The state of the mix, exactly: its parts, and what remains of the epoch."""
        with self._lock:
            if self._early is not None:
                raise StateError("an epoch ended with nothing but bad samples, and the next one's first batch is taken"
                                 " already: save behind that batch")
            token = self._open().state()
        return {"oneaccess-mix": _STATE_VERSION, "token": base64.b64encode(token).decode("ascii")}

    def load_state_dict(self, state: dict) -> None:
        """Continues from a state of state_dict(), with the next loop."""
        with self._lock:
            self._take_state(state)
            if self._stream is not None:
                self._stream.close()
            self._stream = self._early = self._loop = None
            if self.parts[0].world_size == 1:
                self._open()

    def _take_state(self, state):
        if not isinstance(state, dict) or "token" not in state or "oneaccess-mix" not in state:
            raise StateError("this is no state of a mix: it comes from its state_dict()")
        if state["oneaccess-mix"] != _STATE_VERSION:
            raise StateError(f"the state is of version {state['oneaccess-mix']}, this package knows {_STATE_VERSION}:"
                             " upgrade oneaccess")
        try:
            self._token = base64.b64decode(state["token"], validate=True)
        except (ValueError, TypeError):
            raise StateError("the state is damaged: its token is no base64") from None

    def close(self) -> None:
        """Closes the parts for good.

        Arrays that are held stay valid. A thread that waits stops waiting.
        """
        self._is_closed = True
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        for part in self.parts:
            part.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __repr__(self):
        shares = ", ".join(f"{weight} of {os.path.basename(part._folder.rstrip('/')) if part._wrapped is None else part._wrapped}"
                           for weight, part in zip(self.weights, self.parts))
        return f"<oneaccess.Mix of {self.unit}: {shares}; batch_size={self.batch_size}>"

    def __getitem__(self, index):
        raise TransformError("a mix is no Dataset: iterate over it in the place of the DataLoader")

    def __reduce__(self):
        raise TransformError("a mix belongs to the process that made it: make one in each process; they share their work")


class _Epoch:
    """One epoch, or what is left of it."""

    def __init__(self, mixed):
        self._mix = mixed
        self.count, self.epoch, self.has_ended = 0, None, False

    def __iter__(self):
        return self

    def __next__(self):
        batch = self._mix._take(self)
        if batch is None:
            raise StopIteration
        return batch
