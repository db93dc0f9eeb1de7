# SPDX-License-Identifier: Apache-2.0
"""Data sets that are programs: wrap(), and a job's side of the pool that runs them (pool.py)."""

import ast
import contextlib
import copy
import fcntl
import functools
import hashlib
import importlib
import inspect
import json
import os
import pickle
import pickletools
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from . import torchdata
from .columns import Columns, Pad, by_name, named
from .errors import ArgumentError, DatasetError, DeniedError, TransformError
from .masks import SIDE, Image, Mask, Measured, codes, following, is_image
from .nested import Nested, lengths_of
from .points import boxes_of, points_of
from .transforms import FIRST, FIRST_FIELD, Op, Pipeline, imagenet_eval, imagenet_train, ops_of

_MOST_WORKERS, _MOST_SECONDS, _MOST_ROOM = 64, 86400, 1 << 30
_MOST_SAMPLES = 1 << 32     # of an index (storage/index.h)
_MOST_KEPT = 16 << 20
_MOST_PARTS = 64        # of a data set, whose code is looked at
_MOST_STARTS = 5        # of a pool that ends again and again, in a minute
_NAMED = {
    "imagenet-train": lambda: imagenet_train(224),
    "imagenet-train-u8": lambda: imagenet_train(224, dtype="uint8"),
    "imagenet-eval": lambda: imagenet_eval(224),
    "imagenet-eval-u8": lambda: imagenet_eval(224, dtype="uint8"),
}


def wrap(dataset, *, name: str | None = None, version: str = "", workers: int | None = None,
         timeout: int = 60, random: bool = True, room: int | None = None, keep: float = 30.0,
         columns: Sequence[str] | None = None, pad: dict[str, Pad] | None = None, ragged: dict[str, int | tuple[int, int]] | None = None,
         boxes: Sequence[str] | str | None = None, exact: bool = False,
         masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
         images: str | Sequence[str] | Mapping[str, Image] | None = None) -> "Wrapped":
    """A Python data set with ``__getitem__`` and ``__len__``, for Loader. It runs once for all jobs of the user.

        loader = oa.Loader(oa.wrap(dataset), batch_size=64)                             # samples as they are
        loader = oa.Loader(oa.wrap(images), oa.imagenet_train(224), batch_size=64)      # images, by a pipeline

    Samples without a pipeline: a tensor, an array, an image of Pillow, a number, a list of numbers, a text, or a tuple or
        dict of at most 23 of these, also with dicts inside. A batch has the same form. Where an argument names fields,
        those of (image, mask, {"id": 3}) are "0", "1" and "2.id". Hugging Face's datasets are such data sets.

    Types and shapes are those of dataset[0]. A sample that differs is a bad sample (bad= of Loader). If the one in the
    middle or the last one differs, Loader raises an error at once, unless bad is "skip" or "substitute". uint8, int64,
    uint64, float16, bfloat16, float32 and float64 stay, bool becomes uint8, smaller integers become int64, Python's float
    becomes float32.

    Samples with a pipeline: an image of any size, or an image and its label, as a tuple or dict. The image is one of
        Pillow, an array (H, W, C) or a tensor (C, H, W) of 8 bits, or the bytes of an image file, which accessd's workers
        then decode. Other fields (a caption, boxes) go to the batch as they are. With oneaccess.video() it is the bytes of a
        video's file, and a batch has `length` behind its fields.

    Arguments:

    columns: the fields that a batch has, in this order; "0", "1", ... for a tuple. Default: all.
    exact: True: bool and smaller integers keep their types, too.
    ragged: {name: most}: fields whose samples differ in length along the first dimension, and the greatest length: texts
        (str; in UTF-8 bytes), bytes, lists, arrays [n, ...]. A longer sample is a bad sample. A batch has a Ragged (ragged=
        of Loader). In samples that are dicts, {name: (most lists, most in one)} is a list of lists or of texts, such as a
        text for each box; the Ragged has a list for each sample. Each sample has room for the longest. Texts need no entry:
        they become lists of str, with room for four times the first sample's, at least 256 bytes.
    pad: {name: Pad(length)}: fields of varied length, texts too, that are padded.
    boxes: with a pipeline: the name of a ragged field of boxes, float32 [n, 4], left, top, right and bottom in pixels, or a
        list of it and of ragged fields with a row for each box, such as ["boxes", "classes"]. They follow the pipeline's
        crops, flips, resizes and padding and are clipped to the image, as by torchvision's v2 transforms. Boxes with a side
        of less than a pixel are then removed, with their rows. Ops that boxes cannot follow (automatic augmentation) are
        refused. oa.Points("keypoints", flip_indices) in the list is a field of key points, which follow, too, also without
        boxes: x, y and visibility of each, which is 0 once a point has left the image; its x and y go on.
        With oa.point_clouds() boxes are float32 [n, 7]: x, y and z of the middle, dx, dy, dz and yaw, or [n, 9], with vx and
        vy; what is in columns behind these stays. They turn, flip, scale and move with the points, as in OpenPCDet, and
        PointRange() removes those whose middle lies outside, with their rows.
    masks: with a pipeline: the names of fields that are masks, images of labels of the image's size: the bytes of a PNG or TIFF
        file (gray of 8 or 16 bits, or a palette's indices), an image of Pillow, or an array or tensor of integers. A mask
        follows the same ops with the same draws, resized by nearest, and is [H, W] of uint8 in a batch; {name:
        Mask(fill=255, dtype="int64")} changes that. A mask of another size than its image makes a bad sample. {name: Flow()}, Disparity(),
        Depth() and Normals() name what was measured of the image's pixels; see there.
    images: with a pipeline: the names of fields that are further images of the sample, of the first one's size, given as that one is.
        They go through the pipeline as the first image does, with the same draws, as images do that are given to torchvision's v2
        together; {"target": Image(scale=4)} is of one four times as high and wide, whose crop is the first one's, times 4; see Image.
        With views(first, target=pipeline) the field "target" has that pipeline, with draws of its own, and may have any size.
    random: False: nothing in the data set is random, so epochs may share samples. Default True.
    workers: processes of the pool. Default: as many as this process may use processors.
    timeout: seconds that a sample may take; then its process is replaced.
    keep: seconds that the pool lives after its last job.
    room: the most bytes that a sample may need. Default: with a pipeline four times the first one, at least 1 MiB; without,
        what the first one has.
    name, version: name the data set, in place of its content; see Sharing.

    The pool: the first job starts its processes, with its environment, without a terminal, and with less priority than the
        jobs. If it dies, a job starts another. One ``__getitem__`` serves all jobs that share the chunk; dataset[0] is
        called once more at the start. An exception makes a bad sample, with the traceback in its error. If a process ends,
        its sample is tried once more first. Open files, such as of h5py, in the first ``__getitem__``: the pool's processes
        are forked. If the data set has ``__getitems__`` (a list of indices, as in torch), up to 64 samples are requested in
        one call. If such a call draws random numbers, samples are requested one by one from then on; if it raises, too, and
        only the sample that raises again is bad.

    Randomness: before each ``__getitem__`` random, numpy.random and torch are seeded from the stream's seed, the sample and
        the nonce. So augmentation differs between epochs, and is the same for all jobs that share and in a replayed plan.
        Generators of the data set's own are not covered.

    Sharing: two jobs share if their data sets are equal by pickle (and the source files of their classes and of what these
        call, such as a transform), and random and room are equal; workers, timeout and keep are those of the job that started
        the pool. Two runs of one script share. They do not if something differs that samples do not depend on, or a set's order, which changes from run to
        run: then give a name, and a version that you change with the data set. What pickle cannot do (a lambda, a class in
        a notebook) needs cloudpickle, which pip installs with this package, or dill. If the data set's classes are those of
        the script itself, the pool imports the script, if its work is below ``if __name__ == "__main__":``; otherwise it
        gets them by one of these packages. Wrapped data sets are private to their user.
    """
    columns, pad, ragged = named(columns), by_name("pad", pad, "oneaccess.Pad(512)"), by_name("ragged", ragged, "100")
    if columns is not None or pad:
        dataset = Columns(dataset.dataset if isinstance(dataset, Wrapped) else dataset, columns, pad)
    return Wrapped(dataset, name, version, workers, timeout, random, room, keep, ragged, exact, boxes, following(masks, images))


def _tensor(value):
    """How to make a tensor of its content alone; None: it is none that has such."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    try:
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return tuple, ((str(value.dtype), tuple(value.shape), flat.numpy().tobytes()),)
    except (RuntimeError, TypeError):
        return None


def _fingerprint(dataset, pickler, facts):
    """What the pickler makes of it goes to a hash, but for tensors: of those PyTorch also writes down where in
    memory they lie, which differs from run to run."""
    class Pickler(pickler):
        def reducer_override(self, value):
            made = _tensor(value)
            if made is not None:
                return made
            override = getattr(super(), "reducer_override", None)
            return NotImplemented if override is None else override(value)

    class Sink:
        write = staticmethod(facts.update)

    Pickler(Sink(), 4).dump(dataset)


def _names_main(data):
    return any(value == "__main__" for _, value, _ in pickletools.genops(data))


def _has_file(main):
    """Not where its lines are typed, of a notebook, or read from stdin."""
    return getattr(main, "__spec__", None) is not None or os.path.isfile(getattr(main, "__file__", None) or "")


def _has_guard(main):
    """Does the program's file say what is its work alone, and not for who imports it? Also where that cannot be read."""
    try:
        with open(main.__file__, "rb") as file:
            lines = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError, AttributeError, TypeError):
        return True
    return any(isinstance(line, ast.If) and "'__name__'" in ast.dump(line.test) for line in lines)


def _count(what, value, most):
    if not isinstance(value, int) or not 1 <= value <= most:
        raise ArgumentError(f"{what} is {value!r}: a whole number from 1 to {most}")
    return value


def _is_code(part):
    return isinstance(part, type) or inspect.isroutine(part)


def _parts_of(part):
    """What an object has that samples may be made by: what it calls, and data sets within it; in lists, too."""
    if isinstance(part, functools.partial):
        held = [part.func, *part.args, *part.keywords.values()]
    else:
        held = [] if _is_code(part) else getattr(part, "__dict__", {}).values()
    for value in held:
        for each in value if isinstance(value, (list, tuple)) and len(value) <= _MOST_PARTS else [value]:
            if callable(each) or (hasattr(each, "__dict__") and callable(getattr(each, "__getitem__", None))):
                yield each


class Wrapped:
    """The result of wrap(), for Loader."""

    _is_counted = True      # at once
    durations: Any = None   # of its sounds, as durations() has them, where the data set itself says it

    def __init__(self, dataset, name, version, workers, timeout, random, room, keep, ragged=None, exact=False, boxes=None, masks=None):
        if isinstance(dataset, Wrapped):
            dataset = dataset.dataset
        torchdata.refuse_iterable(dataset)
        if os.environ.get("ACCESS_POOL"):
            raise TransformError("the program is imported again in the pool of a wrapped data set: put its work"
                                 " below  if __name__ == \"__main__\":")
        self.nested = {name: tuple(_count(f"ragged[{name!r}]", each, _MOST_ROOM) for each in most)
                       for name, most in (ragged or {}).items() if isinstance(most, (tuple, list)) and len(most) == 2}
        if self.nested:
            dataset = Nested(dataset, self.nested)
            ragged = {**ragged, **{each: most for name, (most, _) in self.nested.items() for each in (name, lengths_of(name))}}
        self.dataset = dataset
        if self._is_counted and self.count < 1:
            raise DatasetError("the data set has no samples")
        self.name, self.version = name, version
        self.workers = _count("workers", workers or min(len(os.sched_getaffinity(0)), _MOST_WORKERS), _MOST_WORKERS)
        self.timeout = _count("timeout", timeout, _MOST_SECONDS)
        self.room = None if room is None else _count("room", room, _MOST_ROOM)
        self.random, self.keep, self.exact = bool(random), float(keep), bool(exact)
        self.ragged = {name: _count(f"ragged[{name!r}]", most, _MOST_ROOM) for name, most in (ragged or {}).items()}
        self.boxes = [boxes] if isinstance(boxes, str) else list(boxes or ())
        self.boxes += [lengths_of(name) for name in self.boxes if name in self.nested]
        points_of(self.boxes)       # of these there is one
        for name in self.boxes:
            if name not in self.ragged:
                raise ArgumentError(f"boxes= names {name!r}, which is not among ragged={self.ragged}: boxes differ in number")
        self.masks, self.sides = codes(masks or {}), ()
        self._packed, self._identities, self._pickler = None, {}, pickle.Pickler

    @functools.cached_property
    def count(self) -> int:
        count = len(self.dataset)
        if count > _MOST_SAMPLES:
            raise DatasetError(f"the data set has {count:,} samples, at most {_MOST_SAMPLES:,} have numbers: give it a __len__ of those that an epoch is to have")
        return count

    def __len__(self):
        return self.count

    def __bool__(self):
        return True     # nobody counts for that

    def beside(self, sides: Collection[str]) -> "Wrapped":
        """The same, whose fields of these names a pipeline's views decode."""
        made = copy.copy(self)
        made.sides, made._identities = tuple(sides), {}
        return made

    def direct(self, pictures: bool):
        """What a Loader needs that reads without a pool (picked.Direct); None: there is none but by a pool."""

    def __repr__(self):
        count = f", {self.count:,} samples" if "count" in vars(self) else ""
        return f"wrap({self.name or type(self.dataset).__name__}{count})"

    # ---- what goes to the pool ----

    def _pickled(self):
        try:
            return pickle.dumps(self.dataset, 4)
        except Exception as why:
            return self._by_another(
                f"the data set cannot be sent to its pool: {type(why).__name__}: {why}. Define what it needs at"
                " the top of a module (no lambda, no class or function inside a function, no open file), or"
                " pip install cloudpickle")

    def _by_another(self, otherwise):
        """By a package that writes functions and classes down; Hugging Face's datasets bring dill."""
        for name in ("cloudpickle", "dill"):
            try:
                package = importlib.import_module(name)
            except ImportError:
                continue
            self._pickler = package.Pickler
            try:
                return package.dumps(self.dataset, 4)
            except Exception as why:
                raise TransformError(
                    f"the data set cannot be sent to its pool{self._blamed(package)}: {type(why).__name__}: {why}. An open file, a database"
                    " or a connection belongs to this process: let __getitem__ open it, at its first call in each process") from None
        raise TransformError(otherwise) from None

    def _blamed(self, package):
        """The attribute that cannot be sent, if it is one by itself."""
        for name, value in getattr(self.dataset, "__dict__", {}).items():
            try:
                package.dumps(value, 4)
            except Exception:
                return f" with its attribute {name}"
        return ""

    def forget(self):
        """A large data set is not kept twice: should another pool be needed, it is packed anew."""
        if self._packed is not None and len(self._packed[1]) > _MOST_KEPT:
            self._packed = None

    def packet(self):
        """The program and its data set, as they were at first."""
        if self._packed is None:
            from multiprocessing import spawn
            main = sys.modules["__main__"]
            program = spawn.get_preparation_data("oneaccess")
            for key in ("authkey", "log_level", "log_to_stderr"):
                program.pop(key, None)
            data = self._pickled()
            names_main, has_file = _names_main(data), _has_file(main)
            if names_main and not has_file:
                data = self._by_another("classes of a notebook or of typed lines have no file that a pool could import:"
                                        " put the data set into a module, or pip install cloudpickle")
            elif names_main and not _has_guard(main):
                data = self._by_another(
                    f"{main.__file__} would be imported again in the data set's pool, and do its work there: put that below"
                    "  if __name__ == \"__main__\":  or the data set into a module, or pip install cloudpickle")
            if not (names_main and has_file and _has_guard(main)):  # the pool has no need of the program, or no way to it
                for key in ("init_main_from_name", "init_main_from_path"):
                    program.pop(key, None)
            self._packed = program, data
        return self._packed

    def identity(self, pictures: bool) -> str:
        """SHA-256 of what samples depend on."""
        if pictures not in self._identities:
            self._identities[pictures] = self._identify(pictures)
        return self._identities[pictures]

    def _identify(self, pictures):
        facts = hashlib.sha256()
        if self.name is None:
            self.packet()
            _fingerprint(self.dataset, self._pickler, facts)
            for file in self._sources():
                with contextlib.suppress(OSError), open(file, "rb") as source:
                    facts.update(hashlib.sha256(source.read()).digest())
        text = [self.name, self.version, self.count, bool(pictures), self.random, self.room, sys.version_info[:2]]
        if self.ragged or self.exact:
            text += [sorted(self.ragged.items()), self.exact]
        if self.masks:
            text.append(sorted(self.masks.items()))
        if self.sides:
            text.append(sorted(self.sides))
        if self.nested:
            text.append(sorted(self.nested.items()))
        facts.update(repr(text).encode())
        return facts.hexdigest()

    def _sources(self):
        """The files of the classes and functions that samples are made by: the data set's, those of what it wraps, and of what these call."""
        files, seen, todo = [], [], [self.dataset]
        while todo and len(seen) < _MOST_PARTS:
            part = todo.pop(0)
            if any(part is each for each in seen):
                continue
            seen.append(part)
            todo += _parts_of(part)
            for each in (part,) if _is_code(part) else type(part).__mro__:
                with contextlib.suppress(TypeError, OSError):
                    file = inspect.getsourcefile(each)
                    if file and file not in files:
                        files.append(file)
        return files

    def attach(self, pictures, voice):
        return Pool(self, pictures, voice)


# ---- a pipeline for records ----


def _kinds(layout, boxes, first_op):
    """3: boxes that follow the picture, 11: the points; 4: a row for each box; 7: key points."""
    roles = {**dict.fromkeys(boxes, 4), boxes_of(boxes): 11 if first_op == "cloud" else 3, points_of(boxes): 7}
    return [roles.get(name, kind) for name, kind in zip(layout["names"], layout["kinds"])]


def _more(layout, first, taken, boxes=(), first_op="decode"):
    """What is said of fields beside their types and shapes; nothing, where all are as they ever were."""
    if not layout.get("wide") and not first:
        return {}
    names = layout["names"][first:]
    are_good = all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,22}", name) and name not in taken for name in names)
    colors, flips = next((mask[2] for mask in layout["masks"].values() if mask[2]), None), getattr(points_of(boxes), "flip_indices", ())
    return {"kinds": _kinds(layout, boxes, first_op)[first:], **({"names": names} if are_good else {}), **({"colors": colors} if colors else {}),
            **({"flip_indices": list(flips)} if flips else {})}


def _ops_of(pipeline) -> list[dict]:
    """A job's pipeline, whose first op decodes the picture, the video, the sound or the numbers."""
    if isinstance(pipeline, str) and pipeline in _NAMED:
        pipeline = _NAMED[pipeline]()
    ops = ops_of(pipeline.json if isinstance(pipeline, Pipeline) else pipeline)
    if not ops or ops[0]["op"] not in FIRST:
        raise TransformError("the pipeline of a wrapped data set, or of shards' fields, begins with decode, video, audio, cloud, bands or volume, or is of oneaccess.transforms")
    return list(ops)


def pipeline_of(pipeline, layout: dict, is_random: bool, boxes: Sequence[str] = ()) -> str:
    """The text for accessd: of the job's pipeline, or of none."""
    if pipeline is None:
        op = Op("record", fields=layout["fields"], random=is_random, **_more(layout, 0, ("index",)))
        return json.dumps({"ops": [op.spec()]}, separators=(",", ":"))
    ops = _ops_of(pipeline)
    ops[0] = {**ops[0], "source": "random_record" if is_random else "record"}
    if layout.get("beside"):
        first = len(layout["fields"]) - layout["beside"]
        field = FIRST_FIELD.get(ops[0]["op"])
        taken = ("index", "image", "label") if field is None else ("index", field, "label", "length")
        ops[0].update(fields=layout["fields"][first:], **_more(layout, first, taken, boxes, ops[0]["op"]))
        ops = _sided(_normalized(ops, layout, first, len(taken) - 1), layout)
    return json.dumps({"ops": ops}, separators=(",", ":"))


def _sided(ops, layout):
    """Of clips, what images= names and a view is of is a video of its own, opened as the first one is."""
    names, made = ops[0].get("names", ()), []
    if ops[0]["op"] != "video":
        return ops
    begin = {key: value for key, value in ops[0].items() if key not in ("source", "fields", "kinds", "names", "members", "columns")}
    for op, behind in zip(ops, [*ops[1:], {"op": ""}]):
        made.append(op)
        if op["op"] == "view" and behind["op"] not in FIRST and all(name in names and name in layout["masks"] for name in op["names"]):
            made.append(begin)
            for name in op["names"]:
                ops[0]["kinds"][names.index(name)] = SIDE[0]
    return made


def _normalized(ops, layout, first, before):
    """With a normalize for each further image that has one of its own, behind that of the first."""
    at = next((at for at, op in enumerate(ops) if op["op"] == "normalize"), None)
    made = []
    for place, name in enumerate(layout["names"][first:]):
        end = layout["masks"][name][3] if name in layout["masks"] and is_image(layout["masks"][name]) else None
        if end is None or at is None and not end:
            continue
        if at is None:
            raise TransformError(f"images= normalizes {name!r}, and the pipeline does not normalize the first image: give it Normalize(), of mean 0 and std 1"
                                 " for values as they are")
        mean, std = end or (0, 1)
        made.append({"op": "normalize", "mean": mean, "std": std, "of": [ops[0]["names"][place] if "names" in ops[0] else f"field{before + place}"]})
    return ops if at is None else ops[:at + 1] + made + ops[at + 1:]


# ---- the pool, seen by a job ----


def _base():
    """Where this user's pools are: in the folder that a daemon of his own has, too (accessd(8))."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    base = os.path.join(runtime, "oneaccess") if runtime.startswith("/") else f"/tmp/oneaccess-{os.geteuid()}"
    for folder in (base, os.path.join(base, "wrapped")):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise DeniedError(f"{folder} must be a folder of uid {os.geteuid()} alone: remove it or set"
                              " XDG_RUNTIME_DIR")
    return folder


def pools() -> list[tuple[str, bool]]:
    """The folders of this user's pools, and whether one listens there."""
    base = _base()
    found = []
    for name in sorted(os.listdir(base)):
        folder = os.path.join(base, name)
        if os.path.isdir(folder):
            try:
                _connect(folder).close()
                found.append((folder, True))
            except OSError:
                found.append((folder, False))
    return found


def _connect(folder):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = -1
    try:
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        connection.connect(f"/proc/self/fd/{descriptor}/socket")
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", peer)[1] != os.geteuid():
            raise PermissionError(f"{folder} is served by another user")
    except BaseException:
        connection.close()
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return connection


class Pool:
    """A job's hold on the pool of its data set, which lives as long as some job has one. A thread waits for
    the pool's end and starts another then."""

    def __init__(self, wrapped, pictures, voice):
        self._wrapped, self._pictures = wrapped, pictures
        self._id = wrapped.identity(pictures)
        label = re.sub(r"[^A-Za-z0-9_-]", "-", wrapped.name or type(wrapped.dataset).__name__)[:40]
        self.folder = os.path.join(_base(), f"{label}-{self._id[:16]}")
        self._lock = threading.Lock()
        self._connection, ready = self._reached(voice)
        self.layout, self.pid = ready["layout"], ready["pid"]
        wrapped.forget()
        self._is_closed = False
        self._starts = []
        self._reply, self._has_reply = None, threading.Condition(self._lock)
        threading.Thread(target=self._watch, name="oneaccess-pool", daemon=True).start()

    # ---- reaching it ----

    @contextlib.contextmanager
    def _election(self, voice):
        with open(os.path.join(os.path.dirname(self.folder), "lock"), "ab") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    voice("another job is starting the pool of the wrapped data set")
                    time.sleep(0.02)
            yield

    def _reached(self, voice):
        """A connection to the pool that is there, else to one of ours; and what it says of itself. One that is
        just dying may still take a connection."""
        for _ in range(_MOST_STARTS):
            connection = self._elected(voice)
            with contextlib.suppress(ConnectionError):
                ready = self._greet(connection, voice)
                if ready is not None:
                    return connection, ready
            connection.close()
        raise DatasetError(f"the pool of the wrapped data set ends while it loads it; its log is {self.folder}/log")

    def _elected(self, voice):
        with self._election(voice):
            try:
                return _connect(self.folder)
            except (FileNotFoundError, ConnectionError):
                self._sweep()
                self._start()
                return _connect(self.folder)

    def _sweep(self):
        """What pools left that were killed."""
        for folder, is_there in pools():
            if not is_there and folder != self.folder:
                shutil.rmtree(folder, ignore_errors=True)

    def _start(self):
        program, data = self._wrapped.packet()
        wrapped = self._wrapped
        order = {"program": program, "dataset": data, "count": wrapped.count, "id": self._id,
                 "workers": wrapped.workers, "seconds": wrapped.timeout, "room": wrapped.room,
                 "keep": wrapped.keep, "pictures": self._pictures, "random": wrapped.random, "ragged": wrapped.ragged,
                 "exact": wrapped.exact, "masks": wrapped.masks, "sides": wrapped.sides}
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.folder, 0o700)
        descriptor = os.memfd_create("oneaccess-pool")
        with open(descriptor, "wb") as file:
            pickle.dump(order, file, 4)
            file.flush()
            os.lseek(descriptor, 0, os.SEEK_SET)
            self._run(descriptor)

    def _run(self, descriptor):
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join(part for part in (package, os.environ.get("PYTHONPATH")) if part)
        environment = {**os.environ, "PYTHONPATH": path, "ACCESS_POOL": "1"}
        environment.setdefault("OMP_NUM_THREADS", "1")
        done = subprocess.run([sys.executable, "-m", "oneaccess.pool", self.folder, str(descriptor)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              pass_fds=(descriptor,), start_new_session=True, env=environment, check=False)
        if done.returncode != 0:
            raise DatasetError("the pool of the wrapped data set cannot be started: "
                               + done.stderr.decode("utf-8", "replace").strip()[-2000:])

    def _greet(self, connection, voice):
        """Waits until it has loaded the data set; its answer, or None if it ends meanwhile."""
        connection.send(b"watch")
        connection.settimeout(0.5)
        while True:
            try:
                data = connection.recv(1 << 20)
                break
            except TimeoutError:
                voice("the pool of the wrapped data set is loading it")
        connection.settimeout(None)
        if not data:
            return None
        ready = json.loads(data)
        if "failed" in ready:
            connection.close()
            failed = ready["failed"].rstrip()
            raise DatasetError(f"the wrapped data set cannot be used in its pool:{chr(10) if chr(10) in failed else ' '}{failed}")
        return ready

    # ---- the thread ----

    def _watch(self):
        while True:
            try:
                data = self._connection.recv(1 << 20)
            except OSError:
                data = b""
            with self._lock:
                self._reply = json.loads(data) if data else {}
                self._has_reply.notify_all()
                if self._is_closed:
                    self._connection.close()
                    return
            if not data and not self._start_again():
                self._connection.close()
                return

    def _start_again(self):
        now = time.monotonic()
        self._starts = [start for start in self._starts if now - start < 60] + [now]
        if len(self._starts) > _MOST_STARTS:
            return False
        try:
            connection, ready = self._reached(lambda text: None)
        except (DatasetError, OSError, ValueError) as why:
            print(f"oneaccess: the pool of {self._wrapped!r} is gone: {why}", file=sys.stderr, flush=True)
            return False
        with self._lock:
            self._connection.close()
            self._connection, self.pid = connection, ready["pid"]
            if self._is_closed:
                connection.close()
        return not self._is_closed

    # ---- what a Loader asks ----

    def why(self, sample: int, timeout: float = 5.0) -> str | None:
        """What the sample's __getitem__ said last, if the pool still knows."""
        with self._lock:
            if self._is_closed:
                return None
            self._reply = None
            try:
                self._connection.send(str(sample).encode())
            except OSError:
                return None
            self._has_reply.wait_for(lambda: self._reply is not None, timeout)
            return (self._reply or {}).get("why")

    def close(self):
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
