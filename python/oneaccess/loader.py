# SPDX-License-Identifier: Apache-2.0
"""The loader: what a training loop iterates over."""

import array
import base64
import hashlib
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from . import _core, arguments, batches, choices, convert, ending, errors, flat, nested, orders, paths, picked, ragged as ragged_of, ranks as ranks_of, \
    rows, samples as samples_of, settings, sharded, tfdata, torchdata, trees, urls, waiting, wrapped
from .arguments import DECIDED, ORDERS
from .bad import BadSample, BadSamples
from .batches import Batch, DictBatch
from .errors import ArgumentError, DatasetError, Error, SampleError, StateError, TransformError, UnreachableError
from .loops import Lease, Loop
from .sources import tables
from .transforms import Op, Pipeline, ops_of, sides_of
from .writing import writer

_MOST_VERSIONS = 5      # that come while one is opened
_IS_OTHER = "resume with the dataset it was saved with"     # of another version than the token (plan/token.c)
_STATE_VERSION = 1

# What a Loader knows of its ranks.
_OF_RANKS = ("_ranks", "rank", "world_size", "_job", "_options", "_agreed")


def _numbered(what, begin, end):
    return f"{what} {begin}" if end - begin == 1 else f"{what}s {begin} to {end - 1}"


class Loader:
    """Iterates over batches of a data set, which accessd prepares once for all jobs of the node.

    Each loop is one epoch, the next one each time; leaving a loop early ends its epoch. Batches are a ``Batch``, a tuple of
    arrays, or a dict where samples are dicts.

        loader = oa.Loader("/data/imagenet/train", oa.imagenet_train(224), batch_size=256)
        for images, labels in loader:
            ...

    Threads: any thread may take batches. Processes: a Loader belongs to the process that made it; make one in each process.
    Errors: ``oneaccess.Error`` and its subclasses in ``oneaccess.errors``. len(loader) is the number of batches in an epoch
    of this rank.

    Data:
        dataset: a path (oneaccess-sources(7)): a folder of images, sounds, videos or point clouds, with a folder for each class or not; shards (tar of
            WebDataset, TFRecord, MDS, LitData, RecordIO, Bagz, ArrayRecord, FFCV) or zip archives of folders, as a folder, a file, or
            "/data/train-{000000..000123}.tar";
            a table of images' paths and labels (.csv, .tsv, .jsonl, StyleGAN's dataset.json); a .npy, whose rows are samples; a file of access-ctl
            convert; Parquet files; "name:NAME" for a named data set. Or the URL of any of these in an object store: s3://,
            gs://, az://, abfs://, hf://, https:// (access-bucket(8)). Or the result of wrap(), tokens(), windows(), from_parquet(),
            from_delta(), from_iceberg(), from_lance(), from_jsonl(), from_csv(), from_hf(), from_hdf5(), from_zarr(), from_lmdb(), from_h5ad(), from_folders(),
            from_decathlon(), from_coco(), from_voc(), from_yolo(), from_lhotse(), from_kaldi(), from_tfds(), from_tar(), from_mds(), from_tfrecord(), from_bagz() or from_array_record().
        source: a dict of options of that kind of data set, such as {"label": "none"}, and with a URL of its store, such as
            {"endpoint": "http://minio:9000"}.
        pipeline: a Pipeline of oneaccess.transforms, a list of its transforms, JSON, or a name (oneaccess-pipeline(5)).
            Default: that of a named data set, else "imagenet-train"; samples of a wrapped data set stay as they are. Rows of
            numbers and tokens take none.
        batch_size: samples in a batch of this rank; default 1, at most 65536.
        refresh: "epoch": each loop reads the data set as it is when the loop begins, with files and shards that were added or
            removed. Epochs are counted on, stats() counts from there, and bad_samples are those of that version. A state of
            an epoch's beginning or end goes on with a newer version, too; a state of its middle needs its own version. Not
            with ids, weights, split, record or replay, which name samples by number, nor with several ranks or wrap().
            Default: the version that was opened, until the Loader is closed.

    Arrays:
        as_: "torch", "numpy", "jax" or "dlpack". Default: "torch" if torch is imported, else "numpy". JAX's arrays are made by
            jnp.asarray() on its default device. "dlpack" is for other libraries, such as TensorFlow's
            tf.experimental.dlpack.from_dlpack(images.__dlpack__()).
        copy: True: batches are private, writable copies; any number can be held. Default False: images are views of shared
            memory, and labels and numbers are private. A slot is given back when its last view is gone, and a job has two slots.
            NumPy's views are read-only. Writing to another view, such as images.div_(255), copies the pages that are
            written to; nobody else sees it, and the other batches of that slot are copied, too. System calls, such as
            readinto() or gloo's broadcast() and recv(), cannot write into a view: give them a clone().
        held: what happens if more batches are held than two slots have. "copy" (default): those held longest become private
            copies, at the same addresses, with one warning. "error": errors.HeldError; the next call works once a batch is
            released. stats()["kept"] counts the samples that were copied: 0 if a loop releases each batch, unless samples are
            late. With a device nothing is held.
        collate_fn: a function of a list of samples, tuples or dicts of views of the batch, whose result the loop gets, such
            as torch's default_collate. It runs in this process and copies what it combines. The result has no ids, epoch or
            step.
        ragged: how ragged fields appear in a batch: "padded", "list", "nested" or "strings", for all of them or as
            {name: ...}. Default: a Ragged, which has these as methods.
        device: "cuda", "cuda:1" or a torch.device: batches are private tensors there. "cuda" is the current device, or that of
            LOCAL_RANK. Images are transferred as bytes and converted on the device, bit for bit as accessd would. The
            next batch is copied while the loop works, on a CUDA stream of its own. ids stay on the host.
            Default, and "cpu": no device.
        sharding: one of jax.sharding, such as NamedSharding(mesh, PartitionSpec("data")): each field is an array of JAX in shards over
            that mesh; each device's part is taken from the view of shared memory. It needs drop_last=True, and a batch_size that the first
            axis divides. With several processes (jax.distributed) each is a rank by itself, batch_size is its part, and the arrays
            are global; on several nodes give order="seeded" and seed=. Fields with fewer dimensions take the first axes. Padded fields (pad=) are not cut to the longest;
            ragged fields stay NumPy's, of this process's samples, as ids do.
        normalize_on: "host": accessd normalizes, not the device. It also does if mixup or an erasing works on the values.

    Order and selection (oa_open(3)):
        shuffle: True (default): random. False: the files' order. "blocks": random order of the data set's blocks, some of
            which are mixed at a time, for Parquet files and chunks of HDF5.
        order: "carousel", "any", "seeded", "sequential" or "replay", in place of shuffle. Default: "carousel", or "any" without
            random ops. Or a function of an epoch's number, from 0, that returns the ids of that epoch, in their order: some, all,
            or some repeatedly. It says the same each time that it is asked for an epoch, in all ranks. oneaccess.orders has some.
        seed: the seed of "seeded", which it implies if there is no order, and of the random ops of "sequential".
        ids: the numbers of the samples of an epoch; classes: names of classes. split: (from, to, seed), a random part, such as
            (0, .9, 1) and (.9, 1, 1), which have no sample in common; (.4, .2, 1) is all that (.2, .4, 1) leaves. oa.fold()
            has those of cross-validation.
        weights: a weight for each sample; each epoch is drawn by them, and the order is "seeded". samples: how many are drawn;
            replacement: True: a sample may come several times in an epoch. choose() says all of these anew between epochs.
        drop_last: leave out an epoch's last batch if it is short; with ranks, its last step.
        reuse: how many epochs may see the same augmentation of a sample; default 1, at most 100.
        sampler, batch_sampler, generator: torch's SequentialSampler, RandomSampler, SubsetRandomSampler,
            WeightedRandomSampler, DistributedSampler, a BatchSampler of one of these, and the seed of a torch.Generator. They
            are read as the arguments above and not run; set_epoch() has no effect. A class of your own with a set_epoch() is an
            order= function: for each epoch set_epoch() is called, and it is iterated over.
        record: a file into which the plan is recorded; replay: such a file, whose batches come again.
        state: of state_dict(): go on from there.
        epochs: the number of epochs, if it is known: nothing is prepared after the last. Default: no end.

    Ranks (doc/cluster.md):
        rank, world_size: default: those of torch.distributed, else of torchrun, Open MPI, Hydra or srun; if nothing is set yet,
            those of torch.distributed when the first loop begins, as with Lightning. Give rank=0, world_size=1 for a Loader
            that one rank alone uses, such as for evaluation: otherwise it reads a share, and may wait for the other ranks.
        local_rank, local_world_size: which of the node's ranks this is; default: from the same launchers. A node makes the
            samples of its own ranks.
        spread: "step": samples are assigned to nodes so that a node gets mostly the same samples in each epoch.
        job: the job's name, for people. All ranks of a job have the same; default: from the script and the launcher.

        Several ranks open the data set at the first use. If it is not known which ranks are on this node, or some are on other
        nodes, the ranks meet when they make their Loaders. Over several nodes the order is "seeded", "sequential" or "replay";
        without an order it is "seeded" with a seed that rank 0 draws, if torch.distributed is initialized, else give seed=.

    Errors and waiting:
        bad: "error" (default), "skip" or "substitute": the policy for samples that cannot be decoded, or whose files have
            changed. bad_samples lists them.
        bad_budget: bad samples that an epoch may have; default 10, or 1 % of the samples if that is more; negative: no bad sample.
        timeout: seconds to wait for a batch, then errors.BatchTimeout. Default, and 0, as in torch: no limit; stderr says what it waits for.
        chunk: samples in a slot, if this job is the stream's first; default: some whole batches (accessd.conf(5)). Fewer take less memory,
            and jobs share less.
        socket: the path of accessd's socket, or "private" for a private accessd. Default: as oa_connect(3) finds it.

    Other arguments of torch's DataLoader, such as num_workers and pin_memory, are accepted and ignored; ``ignored`` says why.
    If torch is imported, a Loader is an instance of torch.utils.data.DataLoader, so that libraries accept it
    (doc/libraries.md); len(loader.dataset) is the number of samples. to_tf_dataset() gives a tf.data.Dataset.
    """

    _sampled = None          # samples of the data set that a sampler of torch's was made for, until it is compared
    _has_read_order = False  # such a one, or a generator, has a seed, and the program no order
    _evens = None            # what a DistributedSampler does so that all ranks have equally many: "repeats" or "drops"

    _wrapped = _pool = _direct = None
    _stream = _client = _dataset = _sharded = _feed = None
    _asked = None            # a function that says each epoch's ids
    _agreed = None           # by ranks on several nodes: the order and its seed
    _chosen = _to_come = None   # by choose(): for the stream that there is, for the next epoch's
    _of_epoch = 0            # of a function's ids: the epoch that the stream has, and no other
    _token = None
    _begins = 0              # the epoch that the token is the beginning of; None: its middle
    _left = 0                # epochs that were left early: ranks then are a job of another name
    _loop = None
    _epoch = None            # the one that the last batch was of
    _early = None            # the next epoch's first batch, by which this one's end was known
    _first = None            # when the first batch was asked for
    _kept = 0                # samples that became private copies as they were held, as far as it was looked at
    _held = None             # bytes of a sample, where the program is to be told of it
    _why = None              # the host normalizes, with a device
    _is_closed = _is_of_mix = False
    _has_warned = _has_told = _is_unlabelled_told = _is_rest_told = False   # of no direct way, what is held, no labels, ranks' last step

    def __new__(cls, *unused, **also_unused):
        if hasattr(sys.modules.get("torch.utils.data"), "DataLoader"):
            from . import torchloader
            cls = torchloader.class_of(cls)
        return object.__new__(cls)

    @torchdata.translated
    def __init__(self, dataset: str | os.PathLike | Sequence[str | os.PathLike] | wrapped.Wrapped | rows.Rows | picked.Picked,
                 pipeline: Pipeline | Sequence[Op | Pipeline] | Op | str | None = None,
                 batch_size: int = 1, *, as_: str | None = None, copy: bool = False, held: str = "copy",
                 shuffle: bool | str | None = None, order: str | Callable[[int], Iterable[int]] | None = None, seed: int | None = None,
                 drop_last: bool = False, ids: Iterable[int] | None = None,
                 classes: Sequence[str] | None = None, split: tuple | None = None,
                 weights: Iterable[float] | None = None, samples: int | None = None,
                 replacement: bool = False, reuse: int | None = None, rank: int | None = None,
                 world_size: int | None = None, local_rank: int | None = None,
                 local_world_size: int | None = None, spread: str | None = None, job: str | None = None, bad: str = "error",
                 bad_budget: int | None = None, timeout: float | None = None, epochs: int | None = None,
                 device: object = None, normalize_on: str | None = None, state: dict | None = None,
                 record: str | None = None, replay: str | None = None, socket: str | None = None,
                 collate_fn: Callable[[list], object] | None = None, source: Mapping[str, object] | None = None,
                 ragged: str | Mapping[str, str] | None = None, refresh: str | None = None, chunk: int | None = None,
                 sharding: object = None, **others):
        self.ignored = arguments.sort_out(others)
        torchdata.refuse_worker()
        dataset, source = self._meant(dataset, source)
        if callable(order):
            orders.refuse_beside({"shuffle": shuffle, "ids": ids, "classes": classes, "split": split, "weights": weights, "samples": samples,
                                  "replay": replay, "refresh": refresh})
            self._asked, order = orders.Asked(order), "sequential"
            ids = self._asked(0)
        named = None if self._has_read_order else order
        blocks = arguments.blocks_of(dataset, shuffle, named or ("replay" if replay is not None else None))
        source, parts, objective = self._take_dataset(dataset, pipeline, classes, source)
        if self._pool is not None and bad == "error":
            self._refuse_different(self._pool.layout["differs"])
        made = self._direct or self._pool
        plain, said = paths.said_behind(self._folder)
        if source and said:
            self._folder, source = plain, {**said, **source}
        self._layout = rows.layout_of(plain, source or said, parts, objective) if made is None else made.layout
        self._ragged = ragged_of.choice(ragged, self._layout, [nested.lengths_of(name) for name in self._wrapped.nested] if self._wrapped is not None else (),
                                        as_)
        if self._is_rows():
            rows.refuse_pipeline(pipeline, self._folder)
        elif self._layout is None and pipeline is None:
            pipeline = arguments.usual_pipeline(self._folder, socket) or "imagenet-train"
        if source:
            self._folder = paths.with_source(self._folder, source)
        self.pipeline = pipeline
        self.batch_size = choices.counted("batch_size", batch_size)
        epochs, samples = (None if number is None else choices.counted(what, number) for what, number in (("epochs", epochs), ("samples", samples)))
        seed = None if seed is None else choices.counted("seed", seed, 0)
        self._job_asked = job
        if sharding is not None:
            self._sharded = sharded.Sharded(sharding, {"as_": as_, "device": device, "collate_fn": collate_fn, "drop_last": drop_last})
            rank, world_size, local_rank, local_world_size = self._sharded.ranks(rank, world_size, local_rank, local_world_size, socket)
        self._be_of(ranks_of.find(rank, world_size, local_rank, local_world_size))
        text = self._request(pipeline)
        self._shape = batches.Shape(ops_of(text), self._layout, self._wrapped, self._ragged)
        self.device = None
        if device is not None:
            text = self._feed_device(device, as_, normalize_on, text)
            as_, copy = "torch" if self._feed else as_, copy and not self._feed
        elif normalize_on is not None:
            raise ArgumentError("normalize_on is about a device: give device=, too")
        if collate_fn is not None and self._feed is not None:
            raise ArgumentError("collate_fn makes batches in this process, and device= brings them to a device before:"
                                " leave one of them out")
        self._collate = collate_fn
        if self._sharded is not None:
            self._sharded.check(self.batch_size, self.rank, self.world_size)
        self.as_, self._convert = convert.way(as_) if self._sharded is None else ("jax", self._sharded.way(convert.numpy()))
        convert.refuse(self.as_, self._layout)
        drop_last = drop_last or self._drops_rest()
        self.copy, self.drop_last, self._timeout, self.epochs = copy, drop_last, waiting.patience(timeout), epochs
        if blocks is not None:
            shuffle, order = None, "seeded"
        chosen = arguments.order_of(shuffle, order, replay, seed, weights)
        self._refresh = arguments.choose("refresh", refresh, arguments.REFRESHES)
        if self._refresh:
            self._refuse_numbers({"ids": ids, "weights": weights, "split": split, "record": record, "replay": replay})
        self._check_nodes(chosen, state)
        self._options = {
            "dataset": self._folder,
            "pipeline": text,
            "batch": batch_size,
            "chunk": None if chunk is None else choices.counted("chunk", chunk),
            "flags": self._flags(copy, drop_last, arguments.choose("held", held, arguments.HELD))
                     | arguments.choose("spread", spread, arguments.SPREADS),
            "epochs": epochs if self._asked is None else 1,
            "bad": arguments.choose("bad", bad, arguments.BAD),
            "bad_budget": bad_budget,
            **self._of_ranks(),
            "order": chosen,
            "seed": seed,
            "record": None if record is None else paths.expanded(record),
            "replay": None if replay is None else paths.expanded(replay),
            "reuse": reuse,
            "ids": choices.numbers(ids, "q"),
            "classes": classes,
            "weights": choices.numbers(weights, "d"),
            "samples": samples,
            "sampler_flags": choices.REPLACEMENT if replacement else None,
            "blocks": None if blocks is None else choices.numbers(blocks.starts, "q"),
            "window": None if blocks is None else blocks.window,
            "objective": None if objective is None else objective.request(),
        }
        if split is not None:
            first, last, key = arguments.parted(split)
            self._options.update(split_from=first, split_to=last, split_seed=key)
        self._made_with = {name: self._options[name] for name in (*choices.OPTIONS, "order")}
        self._socket, self._spread = socket, spread
        self._lock = threading.RLock()
        self._bad = BadSamples(self._folder if self._pool is None else None)
        if state is not None:
            self._take_state(state)
        if self.world_size == 1:  # ranks may get a state first, which all must begin from
            self._open()
        else:  # here, where all ranks are, and not where one of them asks something
            self._agree()

    # ---- arguments ----

    @staticmethod
    def _meant(dataset, source):
        """What a path stands for: Parquet files, what a Writer has written, or a folder of compute()."""
        if paths.is_named(dataset):
            return dataset, source
        if tables.is_meant(dataset):
            path, source = (urls.for_arrow(dataset, source), None) if urls.is_url(dataset) else (dataset, source)
            return tables.from_parquet(path), source
        if source is None and writer.is_meant(dataset):
            return writer.written(dataset), None
        from .writing import outputs       # which open a Loader themselves
        return outputs.beside(None, dataset, images=False) if source is None and outputs.is_meant(dataset) else dataset, source

    def _take_dataset(self, dataset, pipeline, classes, source):
        """What is asked of accessd: the path, self._folder, and its options; of rows also their parts and objective."""
        parts = objective = None
        if isinstance(dataset, (wrapped.Wrapped, picked.Picked)) and pipeline is not None and (sides := sides_of(ops_of(arguments.text_of(pipeline)))):
            dataset = dataset.beside(sides)
        if isinstance(dataset, wrapped.Wrapped):
            self._wrapped = dataset
            self._direct = None if classes is not None else dataset.direct(pipeline is not None)
            if source is not None:
                raise ArgumentError("source= is about files: a wrapped data set has none")
            if self._direct is None:
                dataset = self._pool_of(dataset, pipeline, classes)
        elif isinstance(dataset, picked.Picked):
            self._direct = dataset.direct(pipeline is not None)
        elif isinstance(dataset, rows.Rows):
            source, parts, objective = {**dataset.options, **(source or {})}, dataset.parts, dataset.objective
        elif not isinstance(dataset, (str, os.PathLike)):
            torchdata.refuse(dataset)
        if self._direct is not None:
            dataset, source = self._direct.path, {**self._direct.source, **(source or {})}
        self._folder = urls.path_of(dataset)
        if source and paths.is_named(self._folder):
            raise ArgumentError(f"source= is about files, and {self._folder!r} is a name: who runs accessd has set what"
                                " stands behind its path")
        return source, parts, objective

    def _flags(self, copy, drop_last, held):
        if self._feed is not None:  # what a device has registered must stay what it is
            held = 0
        return (arguments.COPY if copy else held) | (arguments.DROP_LAST if drop_last else 0)

    # ---- ranks, nodes ----

    def _be_of(self, ranks):
        self._ranks = ranks
        self.rank, self.world_size = ranks.rank, ranks.world_size
        self._job = ranks_of.job_name(self._job_asked, self.world_size)

    def _of_ranks(self):
        return {"ranks": self.world_size, "rank": self.rank, "local_ranks": self._ranks.local_world_size,
                "local_first": self._ranks.first}

    def _join(self):
        """Lightning starts its ranks when the Loader is made: those of torch.distributed are this job's then, until a loop begins. Were they
        taken over?"""
        if self._loop is not None or self._ranks.source != ranks_of.NOBODY or not ranks_of.are_several():
            return False
        with self._lock:
            before = {name: getattr(self, name) for name in _OF_RANKS}
            self._drop()
            try:
                self._options = dict(self._options)
                self._be_of(ranks_of.find())
                self._refuse_ranks()
                self._check_nodes(self._options["order"], self._token)
                self._options.update(self._of_ranks())
                self._agreed = None
                self._agree()
            except BaseException:  # the next loop asks once more, and is none of one rank that reads all
                vars(self).update(before)
                raise
        return True

    def _refuse_numbers(self, given):
        """What would mean other samples in a version that has others."""
        name = next((name for name, value in given.items() if value is not None), None)
        if name is not None:
            raise ArgumentError(f"refresh=\"epoch\" beside {name}=, which is about samples by their numbers, and these are others in each version of"
                                " the data set: leave one of them out")
        if self._pool is not None:
            raise ArgumentError("refresh=\"epoch\" is about files, and a wrapped data set is what it was when it was wrapped: wrap it anew, and make"
                                " another Loader")
        self._refuse_ranks()

    def _refuse_ranks(self):
        if self._refresh and self.world_size > 1:
            raise ArgumentError(f"refresh=\"epoch\" of one of {self.world_size} ranks, which would not all see a change at one epoch: close the Loaders at"
                                " an epoch's end and open others, in all ranks")

    def _check_nodes(self, order, state):
        """What cannot come right is refused at once."""
        if self._ranks.why is None or order not in DECIDED:
            return
        if order != ORDERS["usual"] or not (state is not None or ranks_of.can_meet(self.world_size)):
            ranks_of.refuse_nodes(self._ranks)

    def _agree(self):
        """Ranks that may be on several nodes say where they are, once; where a node's accessd would deal, all have rank 0's seed then. A
        token has one."""
        if self._agreed is None:
            self._agreed = {}
            if self.world_size > 1:
                self._meet()
                if self._asked is not None:
                    self._ask(self._of_epoch)
        return {} if self._token is not None else self._agreed

    def _meet(self):
        is_on_one_node = self._ranks.is_known and self._ranks.why is None
        if is_on_one_node or not ranks_of.can_meet(self.world_size):
            return
        is_fixed = not self._spread and self._options["order"] not in DECIDED
        self._ranks, seed = ranks_of.meet(self._ranks, self._socket, self._spread, is_fixed)
        if self._ranks.why is None:
            return
        self._options.update(self._of_ranks())
        if self._options["order"] == ORDERS["usual"]:
            self._agreed = {"order": ORDERS["seeded"], "seed": seed}
        elif self._options["order"] in DECIDED:
            ranks_of.refuse_nodes(self._ranks)
        try:
            ranks_of.compare(self._ranks, self._version)
        except BaseException:
            self._drop()
            raise

    def _version(self):
        """Of the data set, as a state has it (plan/token.c), and of the way through it, which is all that a state has, and the size of a step."""
        state = self._open().state()
        return f"{choices.version_of(state).hex()} {self.batch_size} {self.drop_last} {hashlib.sha256(state).hexdigest()}"

    # ---- a data set that is a program ----

    def _pool_of(self, dataset, pipeline, classes):
        """Its folder; the pool runs then."""
        if classes is not None:
            raise TransformError("classes: those of a wrapped data set are not known before its samples are made:"
                                 " name the samples by ids=")
        self._pool = dataset.attach(pipeline is not None, waiting.Voice(f"opening {dataset!r}"))
        weakref.finalize(self, self._pool.close)
        return self._pool.folder

    @staticmethod
    def _refuse_different(differs):
        if differs is not None:
            raise TransformError(
                f"the samples of the wrapped data set are not alike, {differs}: fields of varied length come by ragged={{name: the most"
                " of one} of wrap(), or by pad={name: oneaccess.Pad(length)}, lists of lists by ragged={name: (most lists, most in one)}, pictures of varied"
                " size are resized in the data set or by a pipeline; bad=\"skip\" goes on without those that differ from sample 0")

    def _request(self, pipeline):
        """The text of the pipeline for the daemon."""
        if self._layout is None:
            return arguments.text_of(pipeline)
        text = None if pipeline is None else arguments.text_of(pipeline)
        if self._direct is not None:
            return self._direct.text(text)
        return wrapped.pipeline_of(text, self._layout, self._wrapped is not None and self._wrapped.random,
                                   () if self._wrapped is None else self._wrapped.boxes)

    def _is_rows(self):
        return self._layout is not None and self._wrapped is None and self._direct is None

    def _explained(self, error):
        """With what the sample's own code said."""
        number = re.search(r"\bsample (\d+)\b", str(error))
        why = number and self._pool.why(int(number[1]))
        if not why:
            return error
        more = SampleError(f"{error}\n\ndataset[{number[1]}], in its pool:\n{why.rstrip()}")
        more.code, more.name = error.code, error.name
        return more

    # ---- which samples ----

    def choose(self, ids: Iterable[int] | None = None, weights: Iterable[float] | None = None, *, samples: int | None = None,
               replacement: bool = False) -> None:
        """Which samples the next epoch has, and those after it, until another choice: by losses, scores or a curriculum.

            losses[batch.ids] = ...                                 # in the loop, of NumPy or torch: by the samples' numbers
            loader.choose(ids=losses.argsort()[-100_000:])          # between epochs
            loader.choose(weights=losses, samples=100_000)          # drawn by weight; the Loader's order is "seeded"
            loader.choose()                                         # all samples again

        The arguments are those of Loader, and stand in the place of all four of them, also where they are left out. What
        classes= and split= say remains. Order, seed and the numbers of epochs go on.

        An epoch that has begun is not changed: the choice is for the one that begins next, also if that one is left early.
        Arrays are copied. len(loader) counts the new choice as soon as no epoch is running. stats() counts from there.
        A state has the choice, and a choice that is made for the next epoch: load_state_dict() needs nothing beside it. Each
        of the ids and weights that were chosen makes it 11 bytes larger.

        Ranks: all of them choose the same, at the same epoch. With torch.distributed they compare it, so each waits there for
        the others. Errors: ArgumentError, also beside replay= and refresh=, and for a part of a mix; the epochs' samples then
        stay as they were.
        """
        self._join()
        with self._lock:
            self._refuse_choice()
            failed = None
            try:
                samples = None if samples is None else choices.counted("samples", samples)
                choice = choices.made(ids, weights, samples, replacement)
                place = choices.place_of(self._open().state())
                choices.check(choice, place, self.batch_size * self.world_size if self.drop_last else 1)
                said = f"{self._first_chosen()} {choices.digest(choice)}"
            except Exception as error:  # others that wait are told
                failed = error
            if self.world_size > 1 and ranks_of.can_meet(self.world_size):
                ranks_of.compare_choices(self._ranks, str(failed) if failed else said, failed)
            if failed is not None:
                raise failed
            before, self._to_come = self._to_come, choice
            if all(choice[name] == self._options[name] for name in choices.OPTIONS):
                self._to_come = None    # they have it
                return
            try:
                self._begin_chosen()
            except BaseException:
                self._to_come = before
                raise

    def _ask(self, epoch):
        """A function's choice for an epoch, which all ranks compare."""
        failed = choice = None
        try:
            choice = choices.made(self._asked(epoch), None, None, False)
            if epoch != self._of_epoch:
                choices.check(choice, choices.place_of(self._open().state()), self.batch_size * self.world_size if self.drop_last else 1)
        except Exception as error:  # others that wait are told
            failed = error
        if self.world_size > 1 and ranks_of.can_meet(self.world_size):
            ranks_of.compare_orders(self._ranks, str(failed) if failed else f"{epoch} {choices.digest(choice)}", failed)
        if failed is not None:
            raise failed
        return choice

    def _ask_next(self, is_left):
        """When an epoch begins: of a function what it has. accessd was told of the one before alone, and has prepared nothing behind it."""
        if self._asked is None or not is_left and self._is_running():
            return
        begins = self._first_chosen()
        if begins != self._of_epoch and (self.epochs is None or begins < self.epochs):
            self._to_come = self._ask(begins)

    def _refuse_choice(self):
        if self._asked is not None:
            raise ArgumentError("choose() beside order=function, which says itself which samples each epoch has")
        if self._options["replay"] is not None:
            raise ArgumentError("choose() beside replay=: a recorded plan says itself which samples there are")
        if self._refresh:
            raise ArgumentError("choose() beside refresh=\"epoch\": it is about samples by their numbers, and these are others in each version of the"
                                " data set")
        if self._is_of_mix:
            raise ArgumentError("choose() of a part of a mix, whose epochs go on from part to part: choose before the mix is made")

    def _first_chosen(self):
        """The epoch that has what is chosen now."""
        if self._loop is not None and self._loop.count > 0:
            return self._epoch + 1
        if self._begins is not None:
            return self._begins
        place = choices.place_of(self._open().state())     # of a state, which may be of an epoch's middle
        return place.epoch + (place.delivered > 0)

    def _is_running(self):
        """Some of an epoch is delivered, and not all; also of a state that was loaded."""
        if self._loop is not None and self._loop.count > 0:
            return not self._loop.has_ended
        return self._begins is None and choices.place_of(self._open().state()).delivered > 0

    def _begin_chosen(self, is_left=False):
        """The next epoch is of the samples that were chosen for it, once the one before has ended or is left. Was there a choice?"""
        if self._to_come is None:
            return False
        begins = self._first_chosen()
        if self.epochs is not None and begins >= self.epochs:
            self._to_come = None    # there is no such epoch
            return False
        if not is_left and self._is_running():
            return False
        before = self._options
        token = None if self._token is None and begins == 0 else self._open().state(begins)
        after = self._with(before, self._to_come)
        if self._asked is not None:
            after["epochs"] = begins + 1
        self._drop()
        self._token, self._begins = token, begins
        self._options = {**after, "flags": after["flags"] | arguments.RESAMPLE}
        self._left += 1     # of ranks, a job of another name
        try:
            newest = self._open().state(begins)
        except BaseException as error:  # the choice before, at the same place
            self._drop()
            self._options = before
            self._left -= 1
            if isinstance(error, ArgumentError):
                self._to_come = None    # it would be refused each time
            raise
        self._options, self._token = after, token and newest
        self._chosen, self._to_come = None if self._asked else self._to_come, None
        self._of_epoch = begins
        return True

    @staticmethod
    def _with(options, choice):
        """Where nothing says the order, one with weights is seeded; a token says so, too."""
        usual = choice.get("weights") is not None and options["order"] == ORDERS["usual"]
        return {**options, **choice, **({"order": ORDERS["seeded"]} if usual else {})}

    # ---- a device ----

    def _feed_device(self, device, as_, normalize_on, text):
        """What the daemon is asked for then."""
        if as_ not in (None, "torch"):
            raise ArgumentError(f"as_=\"{as_}\" has no device: leave as_ out for torch's tensors, or take the"
                                " batches as they are and copy them")
        if normalize_on not in (None, "device", "host"):
            raise ArgumentError(f"normalize_on is {normalize_on!r}; there are: device, host")
        try:
            from . import cuda
            from .device import Feed
        except ImportError:
            raise ArgumentError("device is of PyTorch, which is not installed: pip install torch") from None
        self.device = cuda.choose(device)
        if self.device is None:
            return text
        rest = None
        if normalize_on == "host":
            self._why = "as asked"
        else:
            text, rest, self._why = ending.take_off(text)
        self._feed = Feed(cuda.Cuda(self.device), rest, self.batch_size)
        weakref.finalize(self, self._feed.close)
        return text

    def _settle(self):
        """Nothing that the loop had is held any more."""
        if self._lock.acquire(blocking=False):  # else somebody goes on taking
            try:
                self._feed.settle()
            finally:
                self._lock.release()

    def _warn(self):
        if self._feed.refusal is None or self._has_warned:
            return
        self._has_warned = True
        errors.warn(f"{self.device} cannot read shared memory directly ({self._feed.refusal}): each batch is"
                    " copied once more, in this process, on its way there", RuntimeWarning)

    # ---- the stream ----

    def _open(self):
        if self._stream is not None:
            return self._stream
        if self._is_closed:
            raise ValueError("the Loader was closed")
        voice = waiting.Voice(f"opening {self._folder}")
        if self._client is None:
            try:
                self._client = _core.Client(self._socket)
            except UnreachableError as error:
                settings.forget_unknown(error)
                raise
        job = self._job
        if self._left and self.world_size > 1:
            job = f"{job} ({self._left + 1})"
        try:
            self._stream = self._begun(job, voice)
        except DatasetError as error:
            raise errors.of_path(error, self._folder) from None
        settings.check(self._client)
        self._compare()
        if not self._is_unlabelled_told and self.rank == 0 and self._layout is None:    # one rank says it, once
            self._is_unlabelled_told = True
            for words in paths.untold_labels(self._folder):
                errors.warn(words, UserWarning)
        return self._stream

    def _compare(self):
        """A sampler of a part of the data set, or of another one, is no sampler of all of it; weights accessd compares."""
        sampled, count = self._sampled, self._stream.stats()["n_samples"]
        if sampled not in (None, count) and self._options["weights"] is None and self._options["replay"] is None:
            self.close()
            raise ArgumentError(f"the sampler is of {sampled:,} samples, and {self._folder} has {count:,}: a sampler says an order, and not which"
                                " samples its data set has. Of a Subset say it by ids=subset.indices, too; else make the sampler of this"
                                " data set, or leave it out")
        self._sampled = None
        self._tell_uneven(count)

    def _drops_rest(self):
        """Does a DistributedSampler drop all that is left of an epoch after its last full step?"""
        return self._evens == "drops" and self._sampled % (self.batch_size * self.world_size) < self.world_size

    def _tell_uneven(self, count):
        """Where a step has no sample for some rank, or not equally many for all, which a sampler would have seen to. One rank says it."""
        least, more = divmod(count % (self.batch_size * self.world_size), self.world_size)
        if self._is_rest_told or self.rank != 0 or self.drop_last or more == 0 or (least > 0 and self._evens is None):
            return
        self._is_rest_told = True
        sampler = "" if self._evens is None else f", where the DistributedSampler {self._evens} some so that all ranks have equally many"
        errors.warn(f"an epoch of {count:,} samples ends with a step of {least + 1} on {_numbered('rank', 0, more)} and {least or 'none'} on"
                    f" {_numbered('rank', more, self.world_size)}{sampler}{'' if least else '; the mean loss of none is NaN'}."
                    " drop_last=True leaves that step out; without it each sample comes once", UserWarning)

    def _begun(self, job, voice):
        options = {**self._options, **self._agree()}

        def stream(token):
            return _core.Stream(self._client, job=job, token=token, progress=voice, **options)
        for left in reversed(range(_MOST_VERSIONS)):
            try:
                return stream(self._token)
            except StateError as error:
                if not left or not self._refresh or self._begins is None or _IS_OTHER not in str(error):
                    raise
            # Another version, of which the same epoch begins; what is known of samples is of the old one.
            newest = stream(None)
            try:
                token, count = newest.state(self._begins), newest.stats()["n_samples"]
            finally:
                newest.close()
            self._token, self._dataset = token, None
            self._bad.forget()
            print(f"oneaccess: {self._folder} has another version since it was opened: epoch {self._begins} is of its {count:,} samples",
                  file=sys.stderr, flush=True)

    def _drop(self):
        stream, self._stream, self._early, self._first = self._stream, None, None, None
        if stream is not None:
            self._bad.remember(stream)
            stream.close()
        if self._feed is not None:
            with self._lock:
                (self._feed.close if self._is_closed else self._feed.reset)()

    def close(self) -> None:
        """Closes the Loader for good.

        Arrays that are held stay valid. A thread that waits for a batch stops waiting.
        """
        self._is_closed = True
        self._drop()
        if self._pool is not None:
            self._pool.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _leave_epoch(self):
        """The next batch is the next epoch's first."""
        self._begins = self._epoch + 1
        self._token = self._open().state(self._begins)
        self._drop()
        self._left += 1

    # ---- iteration ----

    def __len__(self) -> int:
        """The number of batches in an epoch, of this rank."""
        whole, rest = divmod(self._n_samples(), self.batch_size * self.world_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Batch]:
        self._join()
        with self._lock:
            is_left = self._loop is not None and self._loop.is_within()
            self._ask_next(is_left)
            if self._begin_chosen(is_left):
                pass
            elif self._loop is not None and (is_left or self._is_to_refresh()):
                self._leave_epoch()
            elif self._loop is not None and self._loop.has_ended:
                self._begins = self._epoch + 1
            self._loop = Loop(self)
            _core.guard()
            trees.register(Batch, DictBatch)
            return self._loop if self._feed is None else Lease(self._loop, self._settle)

    to_tf_dataset = tfdata.to_tf_dataset

    def _is_to_refresh(self):
        return self._refresh and self._loop.has_ended and (self.epochs is None or self._epoch + 1 < self.epochs)

    def _take(self, loop):
        """The next batch of the epoch, or None behind its last."""
        with self._lock:
            if loop is not self._loop:
                raise Error("another loop over this Loader has begun since: two at a time need two"
                            " Loaders, which share their work")
            if self._held is not None:
                self._tell_kept()
            if loop.has_ended:
                return None
            stream = self._open()
            if self._first is None:  # torch's DataLoader has a __setattr__ in Python
                self._first = time.monotonic()
            try:
                sent = self._early or self._next(stream)
            except SampleError as error:
                self._bad.has_met = True
                if self._pool is None:
                    raise
                raise self._explained(error) from None
            if self._early is not None:
                self._early = None
            batch = sent if self._feed is None or sent is None else sent.batch
            if batch is None:
                if loop.count == 0:
                    raise Error(f"all {self.epochs} epochs are delivered: open the Loader with more,"
                                " or without epochs")
                loop.has_ended = True
                return None
            if loop.count > 0 and batch.epoch != self._epoch:
                # The samples behind the last batch were all bad, which was not known by then.
                self._early = sent
                loop.has_ended = True
                return None
            loop.count += 1
            if self._epoch != batch.epoch:
                self._epoch = batch.epoch
            loop.has_ended = batch.is_last
            if self._feed is not None:
                return self._delivered(stream, sent)
            if batch.kept and batch.kept != self._kept and not self._has_told:
                self._note_kept(stream, batch)
        return self._made(batch)

    def _note_kept(self, stream, batch):
        """Who holds this one and the one before, as a loop does, is not meant: what was copied then made room for a chunk that overtakes
        one with a late sample."""
        self._kept = batch.kept
        if stream.stats()["outstanding"] > 2:
            self._held = sum(field.nbytes for field in batch.fields) // max(1, batch.count)

    def _tell_kept(self):
        """With no batch in hand: where warnings are errors none is lost."""
        size, self._held, self._has_told = self._held, None, True
        errors.warn("more batches are held than two slots of shared memory have (in a list, a queue or a"
                    " graph?): those that were held longest are copies in this process' own memory now,"
                    f" {size / 2**20:.2g} MiB a sample for as long as they are held. This is said once;"
                    " stats()[\"kept\"] counts such samples. Let go of batches earlier, or, to find out where they"
                    " are held, open the Loader with held=\"error\"", RuntimeWarning)

    def _next(self, stream):
        if self._feed is None:
            return self._await(stream)
        return self._feed.next(lambda: self._await(stream))

    def _delivered(self, stream, sent):
        """While it is used, the next one of the epoch is on its way; behind the last no pin is held."""
        arrays = self._feed.deliver(sent)
        if sent.about is not None:
            arrays = [batches.as_ragged(array, *about) for array, about in zip(arrays, sent.about)]
        made = batches.named(self._shaped(arrays), sent.batch, sent.ids)
        if sent.batch.is_last:
            self._feed.settle()
        else:
            self._feed.look_ahead(stream)
        self._warn()
        return made

    def _await(self, stream):
        if self._timeout is not None:
            return stream.next(int(self._timeout * 1000))
        return waiting.patiently(stream.next)

    def _made(self, batch, is_private=False):
        """is_private: all of it is the job's own."""
        arrays = [batches.as_ragged(self._convert(field, not (self.copy or is_private) and self._shape.is_own(field)),
                                    field.lengths, field.kind)
                  for field in batch.fields if field.name != "index"]
        made = batches.named(self._shaped(arrays), batch, batch.ids)
        return made if self._collate is None else self._collate([flat.at(made, number) for number in range(batch.count)])

    def _shaped(self, arrays):
        return self._shape.made(arrays, self.as_, self.as_ != "dlpack" and self._sharded is None, self._is_rows())

    # ---- state ----

    def state_dict(self) -> dict:
        """The state of the job, for load_state_dict() or Loader(state=...).

        Exactly the batches that the loop got count as delivered. A Loader with this state continues with the rest of the
        epoch, also with another batch size or number of ranks. It is a small dict that json and torch.save() can write; what
        was chosen by choose() is in it. Of order=function it has a hash of the epoch's ids, and the function is asked again.
        """
        with self._lock:
            stream = self._open()
            if self._early is not None:
                token = stream.state((self._early if self._feed is None else self._early.batch).epoch)
            else:
                token = (self._feed and self._feed.state) or stream.state()
            begins = self._beginning() if self._refresh else None
        state = {"oneaccess": _STATE_VERSION, "token": base64.b64encode(token).decode("ascii")}
        for name, choice in (("chosen", self._chosen), ("next", self._to_come)):
            if choice is not None:
                state[name] = choices.said(choice)
        if self._asked is not None:
            state["ordered"] = self._of_epoch
        return state if begins is None else {**state, "begins": begins}

    def _beginning(self):
        """The epoch of which nothing is delivered; None: some is."""
        if self._loop is None or self._loop.count == 0:
            return self._begins
        return self._epoch + 1 if self._loop.has_ended else None

    def load_state_dict(self, state: dict) -> None:
        """Continues from a state of state_dict(), with the next loop. StateError: it does not fit."""
        with self._lock:
            self._take_state(state)
            if self.world_size == 1:
                self._open()

    def _take_state(self, state):
        if not isinstance(state, dict) or "token" not in state or "oneaccess" not in state:
            raise StateError("this is no state of a oneaccess.Loader: it comes from state_dict()")
        if state["oneaccess"] != _STATE_VERSION:
            raise StateError(f"the state is of version {state['oneaccess']}, this package knows"
                             f" {_STATE_VERSION}: upgrade oneaccess")
        try:
            token = base64.b64decode(state["token"], validate=True)
        except (ValueError, TypeError):
            raise StateError("the state is damaged: its token is no base64") from None
        begins = state.get("begins")
        if not (begins is None or isinstance(begins, int) and 0 <= begins < 1 << 63):
            raise StateError(f"the state is damaged: it begins with epoch {begins!r}")
        chosen, to_come = choices.read(state.get("chosen")), choices.read(state.get("next"))
        if chosen or to_come:
            self._refuse_choice()
        ordered = orders.epoch_of(state, token, self._asked is not None)
        if ordered is not None:
            chosen = {**choices.made(self._asked(ordered), None, None, False), "epochs": ordered + 1}
        self._drop()    # what is refused changes nothing
        self._token, self._begins, self._to_come = token, begins, to_come
        self._chosen, self._of_epoch = (chosen, 0) if ordered is None else (None, ordered)
        self._options = self._with({**self._options, **self._made_with}, chosen or {})
        self._loop = None

    # ---- the data set ----

    def _catalog(self):
        if self._pool is not None:
            raise AttributeError("a wrapped data set's classes are its own: ask the data set")
        if self._dataset is None:
            stream = self._open()
            dataset = _core.Dataset(self._client, self._folder)
            if dataset.version != choices.version_of(stream.state()):
                raise StateError(f"{self._folder} has another version now, of {dataset.count:,} samples, than this Loader has open, so its labels are those"
                                 " of other numbers: open another Loader, or this one with refresh=\"epoch\"")
            self._dataset = dataset
        return self._dataset

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by label, as of ImageFolder. Not for wrap()."""
        return self._catalog().classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class, by name, as of ImageFolder. Not for wrap()."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def targets(self) -> list[int]:
        """The label of each sample of the data set, by number. Not for wrap()."""
        return memoryview(self._catalog().labels()).cast("q").tolist()

    # ---- names ----

    def names(self, ids: Iterable[int] | None = None) -> list[str]:
        """The names of samples by their numbers, as ``batch.ids`` has them, in that order. Default: of all samples of the data set.

            for name, guess in zip(loader.names(batch.ids), model(images).argmax(1)):
                ...

        A name is the file's path relative to the data set, SHARD:KEY in shards, ARCHIVE:PATH in zip archives, and the URL in an
        object store, as in errors; oa_sample_names(3) has more. Numbers are those of the whole data set, also with ids=, classes=
        or split=, of the version that is open: with refresh= that of the loop that began last. Of a mix ask the mix.

        Any thread. It asks accessd, some 200,000 names a second. Errors: ArgumentError: a number is not of the data set, or it
        is wrapped; else what a loop would raise.
        """
        self._refuse_nameless()
        return self._shown(self._open().names(self._all_ids() if ids is None else choices.numbers(ids, "q")))

    def _refuse_nameless(self):
        if self._pool is not None:
            raise ArgumentError("samples of a wrapped data set have no names: batch.ids are the numbers of its own items, so ask it, as by"
                                " loader.dataset")

    def _all_ids(self):
        return array.array("q", range(choices.place_of(self._open().state()).n))

    def _shown(self, names):
        """For people: of an object store URLs."""
        return [urls.below(self._folder, name) for name in names] if urls.is_url(self._folder) else names

    def _samples(self):
        """(path, label) of each sample of the data set, as of ImageFolder."""
        names, labels = self._open().names(self._all_ids()), self.targets
        return [(paths.of_sample(self._folder, name), label) for name, label in zip(names, labels)]

    # ---- bad samples ----

    @property
    def bad_samples(self) -> list[BadSample]:
        """The bad samples of this Loader's epochs, whatever ``bad`` says: a new list, ordered by index, each sample once.

        It has all that this Loader met since it was made, also before accessd was restarted, and those that accessd met ahead
        of it or for jobs that share its work. It works after an error, too, and after close(), which keeps what was known.
        The stage "unknown" means that accessd was restarted since: the reason is known again when the sample is met again.
        Any thread. It asks accessd, and raises what a loop would if accessd cannot be reached.
        """
        stream = self._stream
        if stream is not None:
            self._bad.learn(stream, 0)
        return self._bad.all()

    # ---- what it says of itself ----

    def stats(self) -> dict:
        """Counts since the stream was opened, as a dict.

        samples, batches, epochs: delivered. skipped, substituted: bad samples; complete at the end of an epoch.
        samples_per_second, waiting: the rate, and the share of the time spent waiting, since the first batch was requested.
        shares: what is shared with other jobs, and what is not and why. kept: samples copied because batches were held.
        The others are those of oa_stream_stats(3), such as n_samples, copied, wait_ns and late_ns.

        If an epoch ends with a chunk of bad samples alone, the first batch of the next epoch counts already. With a device a
        batch under way counts, and there are device_bytes (transferred), registered_bytes (of slots, which the device reads
        directly) and staged (batches that went through a buffer).
        """
        stats = self._open().stats()
        seconds = time.monotonic() - self._first if self._first else 0.0
        stats["seconds"] = seconds
        stats["samples_per_second"] = stats["samples"] / seconds if seconds else 0.0
        stats["waiting"] = stats["wait_ns"] / 1e9 / seconds if seconds else 0.0
        if self._feed is not None:
            stats.update(device_bytes=self._feed.bytes, registered_bytes=self._feed.registered,
                         staged=self._feed.staged)
        return stats

    def __repr__(self):
        parts = [repr(self._folder if self._wrapped is None else self._wrapped), repr(self.pipeline), f"batch_size={self.batch_size}",
                 f"as_={self.as_!r}"]
        if self.device is not None:
            parts.append(f"device='{self.device}'" + (f", normalized on the host: {self._why}" if self._why
                                                      else ""))
        if self.world_size > 1:
            parts.append(f"rank {self.rank} of {self.world_size}" +
                         (f", {self._ranks.local_world_size} of them on this node" if self._ranks.is_known else ""))
        if self._stream is not None:
            stats = self._stream.stats()
            parts.append(f"{stats['n_samples']:,} samples")
            if stats["shares"]:
                parts.append(stats["shares"])
        parts += [f"{name} ignored: {why}" for name, why in self.ignored.items()]
        return f"<oneaccess.Loader {', '.join(parts)}>"

    @property
    def dataset(self) -> samples_of.Samples:
        """The data set. Its len() is the number of samples in an epoch of all ranks.

        Of files it has root, classes, class_to_idx, targets and samples, a list of (path, label), as ImageFolder, and os.fspath() is
        its path. These are of the whole data set, so batch.ids are their places, also with ids=, classes= or split=. Of wrap() it has
        the attributes of the wrapped data set.
        """
        return samples_of.of(self, self._wrapped)

    def _n_samples(self):
        if self._to_come is not None:
            with self._lock:
                self._begin_chosen()
        if self._asked is not None and not self._is_running():
            begins = self._first_chosen()
            if begins != self._of_epoch and (self.epochs is None or begins < self.epochs):
                return len(self._asked(begins))
        return self._open().stats()["n_samples"]

    def _is_sequential(self):
        return self._options["order"] == ORDERS["sequential"]

    def __getitem__(self, index):
        raise TransformError("a Loader is no Dataset: iterate over it in the place of the DataLoader")

    def __reduce__(self):
        raise TransformError("a Loader belongs to the process that made it: make one in each process;"
                             " they share their work")


