# SPDX-License-Identifier: Apache-2.0
"""When a model is to be trained again, as its data set grows: by new samples, time, drift, a score, or cost.

    from oneaccess import retrain

    for due in retrain.watch("/data/photos", [retrain.amount(10_000), retrain.every(hours=24)], state="photos.npz"):
        print(due.why)              # 10,240 new samples: 10,000 are a reason to train
        train(ids=due.new)          # numbers of the new samples, for ids= of a Loader; or of all

python -m oneaccess.retrain DATASET --amount 10000 --every 24h --state FILE -- COMMAND ... runs a command so. What has been trained on is in
the state's file, which is written when the loop's body, or the command, has ended well: after an error the same is due again.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import choices, transforms
from .errors import ArgumentError, Error
from .loader import Loader
from .rows import Rows
from .wrapped import Wrapped

_FIRST, _KINDS = "nothing was trained yet", {"names": "u8", "trained": "f8", "looked": "f8", "waited": "f8"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Due:
    """What is there, and what has been trained on. Triggers are given one, and watch() yields one."""

    why: str            # the trigger's reason
    count: int          # samples of the data set
    new: np.ndarray     # int64: numbers of those that were not there at the last training, in the data set's order
    known: np.ndarray   # int64: numbers of the others
    removed: int        # how many of the last training are gone
    seconds: float      # since the last training began
    waited: float       # sample-hours: how long new samples have waited since then, all together
    names: list[str]    # of all samples by number, as Loader.names(); empty for a wrapped data set

    def __init__(self, watched: "_Watched", state: dict[str, Any] | None):
        self._watched, self.why, self.at = watched, "", time.time()
        self.count, self.names = watched.listed()
        keys = _keys(self.names) if self.names else np.arange(self.count, dtype=np.uint64)
        before = np.empty(0, np.uint64) if state is None else state["names"]
        is_known = np.isin(keys, before)
        self.keys, self.new, self.known = np.unique(keys), np.flatnonzero(~is_known), np.flatnonzero(is_known)
        self.removed = int(len(before) - np.isin(before, self.keys).sum())
        self.seconds = 0.0 if state is None else max(0.0, self.at - state["trained"])
        self.waited = 0.0 if state is None else state["waited"] + len(self.new) * max(0.0, self.at - state["looked"]) / 3600

    def loader(self, pipeline, batch_size: int = 32, **options) -> Loader:
        """A Loader of this data set; ids=due.new is of the new samples alone. Close it, or use it by ``with``."""
        return self._watched.loader(pipeline, batch_size, **options)


class _Watched:
    def __init__(self, source, pipeline, options):
        self._source, self._pipeline, self._options = source, pipeline, options

    def _made(self):
        return self._source() if callable(self._source) else self._source

    def loader(self, pipeline, batch_size, **options):
        return Loader(self._made(), pipeline, batch_size, **{**self._options, **options})

    def listed(self):
        """How many samples, and their names."""
        made = self._made()
        if isinstance(made, Wrapped):
            return made.count, []
        pipeline = self._pipeline
        if pipeline is None and not isinstance(made, Rows):
            pipeline = transforms.imagenet_eval(8, dtype="uint8")
        with Loader(made, pipeline, 1, **self._options) as loader:
            names = loader.names()
        return len(names), names


def _keys(names):
    """64 bits of each name: with a million names one in 37 million pairs of data sets has two that are alike (birthdays)."""
    return np.frombuffer(b"".join(hashlib.blake2b(os.fsencode(name), digest_size=8).digest() for name in names), np.uint64)


# ---- triggers: each is given a Due, and returns a reason, or None ----

def amount(samples: int | None = None, *, share: float | None = None) -> Callable[[Due], str | None]:
    """So many new samples, or a share of those that were trained on (0.1: a tenth as many)."""
    if (samples is None) == (share is None):
        raise ArgumentError("amount() wants samples, or share=: one of them")
    if samples is not None:
        samples = choices.counted("samples", samples)
    elif not 0 < share < float("inf"):
        raise ArgumentError(f"share is {share!r}: a number above 0, as 0.1 for a tenth")

    def trigger(due):
        least = samples if share is None else max(1, round(share * (len(due.known) + due.removed)))
        return f"{len(due.new):,} new samples: {least:,} are a reason to train" if len(due.new) >= least else None
    return trigger


def every(*, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0, unchanged: bool = False) -> Callable[[Due], str | None]:
    """So long after the last training began, if samples came or went since then; unchanged: in any case."""
    span = seconds + 60 * minutes + 3600 * hours + 86400 * days
    if not 0 < span < float("inf"):
        raise ArgumentError(f"every() of {span!r} seconds: give hours=24, or another time above 0")

    def trigger(due):
        is_other = unchanged or len(due.new) or due.removed
        return f"{due.seconds / 3600:.4g} hours since the last training: {span / 3600:.4g} are a reason to train" if is_other and due.seconds >= span else None
    return trigger


def drift(features: Callable[[Any], Any], pipeline=None, *, p: float = 0.01, samples: int = 500, least: int = 50, seed: int = 0,
          **options) -> Callable[[Due], str | None]:
    """New samples that are distributed otherwise than those trained on: a test by the maximum mean discrepancy.

        retrain.drift(lambda batch: model.embed(batch[0]), oa.imagenet_eval(224))

    features is given a batch of a Loader with this pipeline (options: others of the Loader), and returns [samples, numbers]. Of both
    kinds at most `samples` are drawn; with fewer than `least` new ones nothing is tested. It is tested once for each set of new samples.
    The kernel is Gaussian with the median distance, and 1,000 permutations give the probability, of which p or less is a reason
    (Gretton, Borgwardt, Rasch, Schoelkopf, Smola: A Kernel Two-Sample Test, JMLR 13, 2012). Where nothing has drifted, a test in 1 / p says that it has.
    """
    choices.counted("samples", samples, 2)
    choices.counted("least", least, 2)
    if not 1 / 1001 <= p < 1:
        raise ArgumentError(f"p is {p!r}: a probability from 0.001 up, below 1")
    last: dict[bytes, str | None] = {}

    def trigger(due):
        if len(due.new) < least or len(due.known) < least:
            return None
        key = hashlib.sha256(due.keys.tobytes() + due.new.tobytes()).digest()
        if key not in last:
            draw = np.random.default_rng(seed)
            values = [_features(due, np.sort(draw.permutation(ids)[:samples]), features, pipeline, options) for ids in (due.new, due.known)]
            found = _discrepancy(*values, draw)
            last.clear()
            last[key] = f"new samples differ from those trained on (p = {found:.3g}): {p:g} is a reason to train" if found <= p else None
        return last[key]
    return trigger


def _features(due, ids, features, pipeline, options):
    with due.loader(pipeline, **{"ids": ids, "order": "sequential", "epochs": 1, **options}) as loader:
        rows = [np.asarray(getattr(values, "cpu", lambda: values)(), np.float64) for values in (features(batch) for batch in loader)]
    if any(row.ndim != 2 or not np.isfinite(row).all() for row in rows):
        raise ArgumentError(f"features() returned an array of {' x '.join(map(str, rows[0].shape)) or 'no dimension'}, or with NaN: [samples, numbers] is wanted")
    return np.concatenate(rows)


def _discrepancy(new, known, draw, permutations=1000):
    """The probability of a discrepancy as large by chance: biased statistic, Gaussian kernel of the median distance, permutations."""
    values = np.concatenate([new, known])
    values = (values - values.mean(0)) / np.where(values.std(0) > 0, values.std(0), 1)
    squares = (values ** 2).sum(1)
    distances = np.maximum(0, squares[:, None] + squares - 2 * values @ values.T)
    apart = distances[np.triu_indices(len(values), 1)]
    kernel = np.exp(-distances / max(float(np.median(apart)), 1e-12))
    weights = np.concatenate([np.full(len(new), 1 / len(new)), np.full(len(known), -1 / len(known))])
    drawn = np.stack([weights] + [draw.permutation(weights) for _ in range(permutations)])
    statistics = np.einsum("ij,ij->i", drawn @ kernel, drawn)
    return float((statistics >= statistics[0] * (1 - 1e-12)).mean())


def score(measure: Callable[[Due], float], *, below: float) -> Callable[[Due], str | None]:
    """A model that does worse on what is new: measure(due) is a score, as its accuracy on ids=due.new. It is asked once for each set of new samples."""
    last: dict[bytes, float] = {}

    def trigger(due):
        if not len(due.new):
            return None
        key = hashlib.sha256(due.keys.tobytes() + due.new.tobytes()).digest()
        if key not in last:
            last.clear()
            last[key] = float(measure(due))
        return f"a score of {last[key]:.4g}: less than {below:g} is a reason to train" if not last[key] >= below else None
    return trigger


def cost(training: float, waiting: float) -> Callable[[Due], str | None]:
    """When not to train has cost as much as to train: a training costs `training`, and a new sample that waits an hour `waiting`."""
    if not (0 < training < float("inf") and 0 < waiting < float("inf")):
        raise ArgumentError(f"cost() of {training!r} and {waiting!r}: two numbers above 0, of one currency")

    def trigger(due):
        lost = due.waited * waiting
        return f"new samples have waited for {lost:.4g}: a training costs {training:g}" if lost >= training else None
    return trigger


def all_of(*triggers: Callable[[Due], str | None]) -> Callable[[Due], str | None]:
    """When all have a reason. They are asked in their order until one has none: the dearest goes last."""
    def trigger(due):
        reasons = []
        for each in triggers:
            reason = each(due)
            if reason is None:
                return None
            reasons.append(reason)
        return "; ".join(reasons)
    return trigger


# ---- the state ----

def _read(path):
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            state = {name: file[name].astype(kind, casting="safe") for name, kind in _KINDS.items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{path} is no state of oneaccess.retrain ({error}): give another file, or remove it to begin anew") from error
    if state["names"].ndim != 1 or any(state[name].shape for name in _KINDS if name != "names"):
        raise ArgumentError(f"{path} is no state of oneaccess.retrain: give another file, or remove it to begin anew")
    return {name: values if name == "names" else values.item() for name, values in state.items()}


def _write(path, **state):
    """All of it, or what was there."""
    half = f"{path}.{os.getpid()}"
    try:
        with open(half, "wb") as file:
            np.savez(file, **state)
            file.flush()
            os.fsync(file.fileno())
        os.replace(half, path)
    except BaseException:
        if os.path.exists(half):
            os.unlink(half)
        raise


@contextlib.contextmanager
def _alone(path):
    """From a look to the end of the training that it was a reason for, at most one process looks. The lock's file stays."""
    with open(f"{path}.lock", "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            try:
                yield True
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)    # forked processes have the file, too


def look(source, triggers: Sequence[Callable[[Due], str | None]], state: str | os.PathLike, *, pipeline=None, **options) -> Due | None:
    """Looks once, as for cron: a Due if one of the triggers has a reason, else None. After the training call trained(due, state).
    Of one state one process may look at a time, and none while another trains: watch() and the command line see to that."""
    triggers = [triggers] if callable(triggers) else list(triggers)
    if not triggers:
        raise ArgumentError("triggers is empty: give amount(), every(), drift(), score(), cost(), or a function of your own")
    before = _read(state)
    due = Due(_Watched(source, pipeline, options), before)
    if before is None:
        due.why = _FIRST
        return due
    for trigger in triggers:
        reason = trigger(due)
        if reason is not None:
            due.why = reason
            return due
    _write(state, **{**before, "trained": min(before["trained"], due.at), "looked": due.at, "waited": due.waited})     # a clock may go back
    return None


def trained(due: Due, state: str | os.PathLike):
    """Writes down that what `due` saw has been trained on."""
    _write(state, names=due.keys, trained=due.at, looked=due.at, waited=0.0)


def watch(source, triggers: Sequence[Callable[[Due], str | None]], state: str | os.PathLike, *, poll: float = 60.0, **options) -> Iterator[Due]:
    """Yields a Due whenever one of the triggers has a reason, and at first where the state's file is not there yet. It never ends.

    source: what a Loader takes as its data set, by a path or URL; or a function that makes one, as lambda: oa.from_parquet(...), which is
        called at each look; its samples have no names, so new are those behind the last number that was trained on.
    triggers: functions of a Due that return a reason, a str, or None; any of them is enough (all_of() wants all). The cheapest goes first.
    state: a file, which is made; 8 bytes a sample. One process at a time looks and trains by it, which a lock on FILE.lock sees to; others
        wait. poll: seconds between two looks.
    options: those of a Loader, as source= or socket=; with sounds and videos also pipeline=, which says what files are samples.

    A sample is known by its name: a file that was written anew under its name is not new. Errors: those of a Loader, such as DatasetError
    where the data set is gone; ArgumentError for a file that is no state.
    """
    while True:
        with _alone(state) as is_alone:
            due = look(source, triggers, state, **options) if is_alone else None
            if due is not None:
                yield due
                trained(due, state)
        if due is None:
            time.sleep(poll)


# ---- the command line ----

def _span(text):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: a number and s, m, h or d, as 24h")
    return float(found[1]) * _UNITS[found[2]]


def _asked(text):
    try:
        return amount(share=float(text[:-1]) / 100) if text.endswith("%") else amount(int(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of samples, or a share as 10%") from None


def _costs(text):
    try:
        training, waiting = map(float, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: what a training costs, and what a sample that waits an hour costs, as 40:0.001") from None
    return cost(training, waiting)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m oneaccess.retrain", description=(
        "Runs a command, as a training, when there is a reason: any of --amount, --every and --cost is one. Its environment has ONEACCESS_WHY, and"
        " ONEACCESS_NEW, the number of new samples. Where it ends with 0 they count as trained on; else all is due again at the next look."))
    parser.add_argument("dataset", help="a path or URL, as of oneaccess.Loader")
    parser.add_argument("--amount", metavar="N", type=_asked, help="so many new samples; 10%%: of those trained on")
    parser.add_argument("--every", metavar="TIME", type=_span, help="after so long, where samples came or went: 24h")
    parser.add_argument("--cost", metavar="A:B", type=_costs, help="a training costs A, a new sample that waits an hour B")
    parser.add_argument("--state", metavar="FILE", required=True, help="what was trained on; made at the first training")
    parser.add_argument("--new", metavar="FILE", help="a file for the names of new samples, each ended by a zero byte")
    parser.add_argument("--poll", metavar="TIME", type=_span, default=60.0, help="between two looks (1m)")
    parser.add_argument("--once", action="store_true", help="look once, as for cron: 3 says that nothing was due, or that another process with this state trains")
    parser.add_argument("--socket", help="accessd's socket; default: as of oneaccess.Loader")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="behind --")
    given = parser.parse_args(arguments)
    triggers = [trigger for trigger in (given.amount, given.every and every(seconds=given.every), given.cost) if trigger]
    if not triggers:
        parser.error("--amount, --every or --cost: at least one")
    options = {"socket": given.socket} if given.socket else {}
    try:
        while True:
            with _alone(given.state) as is_alone:
                due = look(given.dataset, triggers, given.state, **options) if is_alone else None
                code = 3 if due is None else _train(due, given)
            if given.once:
                return code
            if code:
                time.sleep(given.poll)
    except (Error, OSError) as error:
        print(f"retrain: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _train(due, given):
    print(f"retrain: {due.why}", flush=True)
    if given.new:
        with open(given.new, "wb") as file:
            file.writelines(os.fsencode(due.names[index]) + b"\0" for index in due.new)
    code = subprocess.run(given.command, env={**os.environ, "ONEACCESS_WHY": due.why, "ONEACCESS_NEW": str(len(due.new))}).returncode
    if code:
        print(f"retrain: {given.command[0]} ended with {code}: it is due again", file=sys.stderr)
        return code if 0 < code < 256 else 1
    trained(due, given.state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
