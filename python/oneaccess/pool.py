# SPDX-License-Identifier: Apache-2.0
"""The pool: processes of a user's that make the samples of his wrapped data set, for all his jobs.

    python -m oneaccess.pool FOLDER ORDER       (of oneaccess.wrap(); ORDER: descriptor of what to do)

The first process listens at the folder's socket and never runs a sample: it loads the data set, forks a
worker for each connection of the user's access-reader, hands it over and keeps a copy, so that it can say
there what became of a worker that died or was ended for being too slow. Jobs connect, too, and say
nothing: while one of them is there, the pool is. storage/wrapped.h has the words of the reader.
"""

import bisect
import collections
import ctypes
import fcntl
import hashlib
import importlib
import itertools
import json
import mmap
import os
import pickle
import random
import resource
import selectors
import shutil
import signal
import socket
import struct
import sys
import time
import traceback
import warnings

from . import record
from .errors import DatasetError, TransformError
from .nested import Nested

MAGIC = 0x3150525721214f41
MORE_MAGIC = 0x3250525721214f41
HELLO, READ, READ_MANY = 1, 2, 3
GOOD, FAILED, DIED, HUNG, LATER = 0, 1, 2, 3, 4
BATCH = 64              # samples that one question may be about
ASK, ANSWER = struct.Struct("<QIIQQQQQQ"), struct.Struct("<IIQ48s")
NOTE, MORE = struct.Struct("<QQIIII32s"), struct.Struct("<QII48x")
NOTE_NAME, SOCKET_NAME, LOG_NAME = "oneaccess-wrapped", "socket", "log"
MOST_MESSAGE = 65536
_MOST_LOOKS = 64        # at samples, to know what lists hold
PATIENCE = 0.25        # seconds between two looks at the workers
_BUSY = struct.Struct("<QQ")     # when what is in work began (0: nothing), how many samples there were
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


def _traced(error):
    """The traceback; a debugger ends so where it has no terminal."""
    text = traceback.format_exc(limit=-8)
    if type(error).__name__ != "BdbQuit":
        return text
    return (f"{text.rstrip()}: a debugger has no terminal in the pool of a wrapped data set. Call dataset[...] of this sample in the program itself, or"
            " loop over a DataLoader(dataset, num_workers=0)")


def answer(status: int, size: int = 0, text: str = "") -> bytes:
    short = text.encode("utf-8", "replace")[:47].decode("utf-8", "ignore").encode()
    return ANSWER.pack(status, 0, size, short)


def _prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _name(text):
    _prctl(_PR_SET_NAME, ctypes.c_char_p(text.encode()))


# ---- a worker ----


def seed(*key: int) -> None:
    """The generators that augmentation uses, from the sample's key alone."""
    digest = hashlib.blake2b(struct.pack("<%dQ" % len(key), *key), digest_size=32).digest()
    random.seed(digest)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(struct.unpack("<8I", digest))
    if torch is not None:
        torch.default_generator.manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def words_of(keys):
    """Random numbers for data sets that make many samples at once: uint64 [samples, 4], of each sample by its key alone."""
    import numpy
    digests = [hashlib.blake2b(struct.pack("<%dQ" % len(key), *key), digest_size=32).digest() for key in keys]
    return numpy.frombuffer(b"".join(digests), "<u8").reshape(-1, 4)


def drawn():
    """Where these generators stand."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    state = [random.getstate()]
    if numpy is not None:
        _, values, *rest = numpy.random.get_state()
        state += [values.tobytes(), rest]
    if torch is not None:
        state.append(torch.default_generator.get_state().numpy().tobytes())
    return state


class Worker:
    """In a process of its own: one connection after another."""

    def __init__(self, dataset, layout, order, room, control, busy):
        self.dataset, self.layout, self.pictures, self.room = dataset, layout, order["pictures"], room
        self.control, self.busy, self.count = control, busy, 0
        many = getattr(dataset, "__getitems__", None)
        self.many, self.is_random = many if callable(many) else None, order["random"]
        self.packs = getattr(dataset, "__getrecords__", None)
        if isinstance(dataset, Nested):
            dataset.learn(layout)

    def run(self):
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.control, 64, 2)
            if not data or len(descriptors) != 2:
                return
            with socket.socket(fileno=descriptors[0]) as connection, \
                    mmap.mmap(descriptors[1], 0) as memory:
                os.close(descriptors[1])
                self.serve(connection, memory)
            self.control.send(b'{"free": true}')

    def serve(self, connection, memory):
        while True:
            try:
                data = connection.recv(BATCH * ASK.size)
            except ConnectionError:
                return
            if not data or len(data) % ASK.size:
                return
            asked = list(ASK.iter_unpack(data))
            kind = READ if len(asked) == 1 and asked[0][1] == READ else READ_MANY
            if any(ask[:2] != (MAGIC, kind) for ask in asked):
                return
            with memoryview(memory) as view:
                reply = self.make([(sample, (key, nonce, random_id, sample))
                                   for _, _, _, _, sample, random_id, key, nonce, _ in asked], view)
            _BUSY.pack_into(self.busy, 0, 0, self.count)
            try:
                connection.send(reply)
            except ConnectionError:
                return

    def begin(self, count):
        """What takes too long from now on is ended (Pool.end_the_slow). Several that are made at once have no more time than
        one: they are only asked for together where they come soon, and one by one after that."""
        self.count += count
        _BUSY.pack_into(self.busy, 0, time.monotonic_ns(), self.count)

    def make(self, asked, memory):
        """The answers to all, with the records in a row in memory as far as that goes."""
        if self.packs is not None and len(asked) > 1 and (reply := self.packed(asked, memory)) is not None:
            return reply
        values = self.values(asked) if self.many and self.packs is None and len(asked) > 1 else None
        answers, at = [], 0
        for i, (sample, key) in enumerate(asked):
            try:
                if values is None:
                    self.begin(1)
                    if self.is_random and self.packs is None:
                        seed(*key)
                if self.packs is None:
                    made = record.Record(self.dataset[sample] if values is None else values[i], self.layout, self.pictures)
                else:
                    made = record.Packed(*self.records([(sample, key)]))
                if made.size > self.room:
                    raise record.Misfit(f"{made.size} bytes, room={self.room} in wrap()")
                if made.size > len(memory) - at:        # nor is anything behind it
                    answers += [answer(LATER)] * (len(asked) - i)
                    break
                made.write(memory[at:at + made.size])
                at = -(-(at + made.size) // record.ALIGN) * record.ALIGN
                answers.append(answer(GOOD, made.size))
            except (record.Misfit, TransformError) as error:
                answers.append(self.complain(sample, str(error), f"{error} (dataset[{sample}])"))
            except (Exception, SystemExit) as error:
                text = f"{type(error).__name__}: {error}".rstrip(": ")
                answers.append(self.complain(sample, text, _traced(error)))
        return b"".join(answers)

    def records(self, asked):
        """What the data set's __getrecords__ makes; of one that is random, by random numbers that it is given."""
        return self.packs([sample for sample, _ in asked], self.layout, words_of([key for _, key in asked]) if self.is_random else None)

    def packed(self, asked, memory):
        """The same where the data set has records (__getrecords__); None: they are to be asked for one by one, as one is bad."""
        self.begin(len(asked))
        try:
            data, sizes = self.records(asked)
        except (Exception, SystemExit):
            return None
        if max(sizes) > self.room:
            return None
        ends = list(itertools.accumulate(-(-size // record.ALIGN) * record.ALIGN for size in sizes))
        count = bisect.bisect_right(ends, len(memory))
        if count:
            memory[:ends[count - 1]] = data[:ends[count - 1]]
        good = {size: answer(GOOD, size) for size in {*sizes}}
        return b"".join([good[size] for size in sizes[:count]]) + answer(LATER) * (len(sizes) - count)

    def values(self, asked):
        """What the data set's __getitems__ makes of all at once; None: they are to be made one by one. Each sample's random
        numbers are its own (seed()), so a data set that draws some is asked for one after another."""
        self.begin(len(asked))
        samples = [sample for sample, _ in asked]
        try:
            if self.is_random:
                seed(*asked[0][1])
                before = drawn()
            values = list(self.many(samples))
            if self.is_random and drawn() != before:
                self.many = None
                return None
        except (Exception, SystemExit):
            return None             # which of them it is shows when they are made one by one
        if len(values) != len(samples):
            print(f"oneaccess: __getitems__ made {len(values)} samples of {len(samples)}: it is not asked any more", file=sys.stderr,
                  flush=True)
            self.many = None
            return None
        return values

    def complain(self, sample, text, whole):
        self.control.send(json.dumps({"sample": sample, "why": whole[-MOST_MESSAGE // 8:]}).encode())
        return answer(FAILED, 0, text)


class Hand:
    """The first process' side of a worker."""

    def __init__(self, pid, control, busy):
        self.pid, self.control, self.busy = pid, control, busy
        self.connection = None      # a copy of the one it serves
        self.is_hung = False

    def count(self):
        return _BUSY.unpack_from(self.busy, 0)[1]

    def seconds(self):
        began = _BUSY.unpack_from(self.busy, 0)[0]
        return (time.monotonic_ns() - began) / 1e9 if began else 0.0


# ---- the first process ----


class Pool:
    def __init__(self, folder, order, listener):
        self.folder, self.order, self.listener = folder, order, listener
        self.selector = selectors.DefaultSelector()
        self.watchers, self.workers, self.idle = set(), {}, []
        self.why = collections.OrderedDict()
        self.layout = self.failed = self.dataset = None
        self.last, self.done = time.monotonic(), 0

    # ---- loading ----

    def load(self):
        """The data set, and what its first sample is like; or why not."""
        from multiprocessing import spawn
        try:
            spawn.prepare(self.order["program"])
            self.dataset = pickle.loads(self.order.pop("dataset"))
            self.layout = self._in_child(self._look)
            if "error" in self.layout:
                self.failed = self.layout["error"]
            else:
                # Those whose generators are seeded are there before the first sample.
                for name in self.layout.pop("modules"):
                    importlib.import_module(name)
                self._write_note()
        except (Exception, SystemExit):
            self.failed = traceback.format_exc(limit=-8)

    def _look(self):
        try:
            layout = self._described()
            layout["differs"] = self._differs(layout)
            return {**layout, "modules": [name for name in ("numpy", "torch") if name in sys.modules]}
        except (DatasetError, TransformError) as error:     # it says which file or field, and of this package's own lines nobody learns more
            return {"error": str(error)}
        except (Exception, SystemExit) as error:
            return {"error": _traced(error)}

    def _described(self):
        """By the first sample, or, where a list in that is empty, by the next one."""
        for index in range(last := min(self.order["count"], _MOST_LOOKS)):
            seed(0, 0, 0, index)
            order = self.order
            try:
                like = getattr(self.dataset, "__example__", None)
                sample = self.dataset[index] if like is None else like()
                texts = record.bounds_of_texts(sample, order["pictures"]) | getattr(self.dataset, "bytes_of_texts", {})
                layout = record.describe(sample, order["pictures"], {**texts, **order["ragged"]}, order["exact"], order["masks"],
                                         order["sides"])
            except record.Unknown:
                if index == last - 1:
                    raise
                continue
            layout["strings"] = [name for name in texts if name not in order["ragged"]]
            if isinstance(self.dataset, Nested):
                layout["texts"] = self.dataset.texts
                self.dataset.learn(layout)
            return layout

    def _differs(self, layout):
        """How the sample in the middle, or the last one, is not as the first one; None: they are alike. What they raise
        is for who asks for them."""
        count = self.order["count"]
        for index in sorted({count // 2, count - 1} - {0}):
            try:
                seed(0, 0, 0, index)
                why = record.differs(self.dataset[index], layout, self.order["pictures"])
            except (Exception, SystemExit):
                continue
            if why is not None:
                return f"sample {index}: {why}"
        return None

    def _in_child(self, function):
        """What it opens and starts stays out of the process that all workers are forked from."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            theirs.send(json.dumps(function()).encode())
            os._exit(0)
        theirs.close()
        with ours:
            ours.settimeout(self.order["seconds"])
            try:
                data = ours.recv(2 * MOST_MESSAGE)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                data = json.dumps({"error": f"dataset[0] took longer than {self.order['seconds']} s"})
        status = os.waitpid(pid, 0)[1]
        return json.loads(data) if data else {"error": f"the process of dataset[0] {_end_of(status)}"}

    def room(self):
        if self.order["room"] is not None:
            return self.order["room"]
        size = self.layout["bytes"]
        return max(4 * size, 1 << 20) if self.order["pictures"] else size

    def _write_note(self):
        order = self.order
        data = NOTE.pack(MAGIC, order["count"], self.room(), order["workers"], order["seconds"], 0,
                         bytes.fromhex(order["id"])) + MORE.pack(MORE_MAGIC, BATCH, 0)
        path = os.path.join(self.folder, NOTE_NAME)
        with open(path + ".new", "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
        os.rename(path + ".new", path)

    # ---- workers ----

    def start_worker(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        busy = mmap.mmap(-1, mmap.PAGESIZE)
        pid = os.fork()
        if pid == 0:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            self.forget_all(ours)
            _name("oa-pool-worker")
            run_worker(Worker(self.dataset, self.layout, self.order, self.room(), theirs, busy))
        theirs.close()
        hand = Hand(pid, ours, busy)
        self.workers[ours] = hand
        self.selector.register(ours, selectors.EVENT_READ, self.on_worker)
        return hand

    def forget_all(self, *others):
        """Of a child: what is the first process'."""
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        for hand in self.workers.values():
            if hand.connection is not None:
                hand.connection.close()
        for other in others:
            other.close()
        self.selector.close()

    def on_worker(self, control):
        hand = self.workers.get(control)
        if hand is None:
            return
        try:
            data = control.recv(MOST_MESSAGE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return              # it was drained after it had been selected
        except ConnectionError:
            data = b""
        if not data:
            self.bury(hand)
            return
        message = json.loads(data)
        if "why" in message:
            self.remember(message["sample"], message["why"])
        else:
            hand.connection.close()
            hand.connection = None
            self.idle.append(hand)
            self.last = time.monotonic()

    def remember(self, sample, text):
        self.why[sample] = text
        self.why.move_to_end(sample)
        while len(self.why) > 256:
            self.why.popitem(last=False)

    def bury(self, hand):
        status = os.waitpid(hand.pid, 0)[1]
        self.selector.unregister(hand.control)
        del self.workers[hand.control]
        hand.control.close()
        if hand in self.idle:
            self.idle.remove(hand)
        if hand.connection is None:
            return
        if hand.is_hung:
            text = f"took longer than {self.order['seconds']} s"
        else:
            text = "its process " + _end_of(status)
        try:
            hand.connection.send(answer(HUNG if hand.is_hung else DIED, 0, text))
        except ConnectionError:
            pass
        hand.connection.close()

    def end_the_slow(self):
        for hand in self.workers.values():
            if not hand.is_hung and hand.seconds() > self.order["seconds"]:
                hand.is_hung = True
                os.kill(hand.pid, signal.SIGKILL)

    # ---- connections ----

    def on_listener(self, listener):
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", peer)[1] != os.getuid():
            connection.close()
            return
        connection.setblocking(False)
        self.selector.register(connection, selectors.EVENT_READ, self.on_stranger)

    def on_stranger(self, connection):
        """Its first message says what it is; who says nothing only looked."""
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, MOST_MESSAGE, 1)
        except (BlockingIOError, ConnectionError):
            data, descriptors = b"", []
        self.selector.unregister(connection)
        hello = len(data) == ASK.size and ASK.unpack(data)[:2] == (MAGIC, HELLO)
        if data == b"watch":
            self.last = time.monotonic()
            self.watch(connection)
        elif hello and descriptors and self.failed is None:
            self.last = time.monotonic()
            self.hand_over(connection, descriptors.pop())
        else:
            connection.close()
        for descriptor in descriptors:
            os.close(descriptor)

    def watch(self, connection):
        ready = {"failed": self.failed} if self.failed else {
            "layout": self.layout, "room": self.room(), "workers": self.order["workers"], "pid": os.getpid()}
        try:
            connection.send(json.dumps(ready).encode())
        except OSError:
            connection.close()
            return
        self.watchers.add(connection)
        self.selector.register(connection, selectors.EVENT_READ, self.on_watcher)

    def on_watcher(self, connection):
        try:
            data = connection.recv(MOST_MESSAGE)
            if data:
                for control in list(self.workers):
                    self._drain(control)
                connection.send(json.dumps({"why": self.why.get(int(data))}).encode())
        except (OSError, ValueError):
            data = b""
        if not data:
            self.selector.unregister(connection)
            self.watchers.discard(connection)
            connection.close()
            self.last = time.monotonic()

    def _drain(self, control):
        """What a worker said before somebody asks about it."""
        with selectors.DefaultSelector() as look:
            look.register(control, selectors.EVENT_READ)
            while control in self.workers and look.select(0):
                self.on_worker(control)

    def hand_over(self, connection, memory):
        hand = self.idle.pop() if self.idle else self.start_worker()
        connection.setblocking(True)
        hand.connection = connection
        try:
            socket.send_fds(hand.control, [b"serve"], [connection.fileno(), memory])
        except OSError:
            pass            # it died; its end is read next
        os.close(memory)

    # ---- the loop ----

    def run(self):
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self.on_listener)
        while not self.is_over():
            for key, _ in self.selector.select(PATIENCE):
                if key.fileobj.fileno() >= 0:       # not closed by one before it
                    key.data(key.fileobj)
            self.end_the_slow()

    def is_over(self):
        """Nobody is there, nobody came for a while, and nobody is coming just now."""
        done = sum(hand.count() for hand in self.workers.values())
        if done != self.done:
            self.done, self.last = done, time.monotonic()
        busy = any(hand.seconds() for hand in self.workers.values())
        keep = 1.0 if self.failed else self.order["keep"]
        if self.watchers or busy or time.monotonic() - self.last < keep:
            return False
        if not os.path.isdir(self.folder):
            return True         # somebody cleaned up
        with open(os.path.join(os.path.dirname(self.folder), "lock"), "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if self.selector.select(0):
                return False
            shutil.rmtree(self.folder, ignore_errors=True)
        return True


def _end_of(status):
    if os.WIFSIGNALED(status):
        return f"died ({signal.Signals(os.WTERMSIG(status)).name})"
    return f"exited with {os.WEXITSTATUS(status)}"


def run_worker(worker):
    """A forked process' life; nothing of the first one's comes after it."""
    try:
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(1)
        worker.run()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _listen(folder):
    """The address of a socket is short; a path below the folder's descriptor always is."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        os.unlink(SOCKET_NAME, dir_fd=descriptor)
    except FileNotFoundError:
        pass
    listener.bind(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}")
    os.close(descriptor)
    listener.listen(128)
    return listener


def _settle(folder):
    """No terminal's, no core files, behind whatever trains."""
    log = os.open(os.path.join(folder, LOG_NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    os.nice(1)
    _name("oa-pool")


def main(folder: str, order: int) -> None:
    with open(order, "rb") as file:
        what = pickle.load(file)
    listener = _listen(folder)
    if os.fork() != 0:
        os._exit(0)         # whoever started it may connect now
    _settle(folder)
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    pool = Pool(folder, what, listener)
    pool.load()
    pool.run()
    os._exit(0)


if __name__ == "__main__":
    from oneaccess import pool as this      # the one that others import, too
    this.main(sys.argv[1], int(sys.argv[2]))
