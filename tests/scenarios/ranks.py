# SPDX-License-Identifier: Apache-2.0
"""ranks.py WORK NODE RUN FOLDER "KINDS" FIRST COUNT RANKS BATCH STEPS [BEFORE]: of a job of RANKS ranks those from FIRST on, COUNT of
them, on the node whose accessd is in WORK/NODE, over each of the kinds of data sets in FOLDER, one after the other. Each sample is a
line of WORK/RUN.KIND.RANK, its epoch, number and a digest of all that a batch has of it. STEPS 0: to the end; else where the ranks are
then is in WORK/RUN.KIND.state, with which another run goes on as its BEFORE.

Where the environment has PAUSES=step it makes WORK/RUN.KIND.paused after the third step of each kind, and waits for WORK/RUN.KIND.goes.
With PAUSES=peers it does so once a sample came from another node; WORK/RUN.KIND.cache is then what the status says of the kind's cache
in the end."""

import hashlib
import json
import os
import sys
import time

import numpy
import oneaccess as oa
from oneaccess import _core

EPOCHS = 2
work, node, run, folder, kinds, *numbers = sys.argv[1:]
first, count, ranks, batch_size, steps = map(int, numbers[:5])
before = numbers[5] if len(numbers) > 5 else None
socket, pauses = f"{work}/{node}/socket", os.environ.get("PAUSES")

# What a program writes for such data. Of a program's samples a name says which they are, as their files' paths differ between nodes.
DATA = {
    **{kind: lambda at, kind=kind: at + kind for kind in ("tar", "tfrecord", "mds", "litdata", "recordio", "bagz", "arrayrecord", "beton", "zip")},
    "converted": lambda at: at + "one.oads",
    "manifest": lambda at: at + "rows.csv",
    "columns": lambda at: oa.from_mds(at + "mds", {"image": "image", "label": "label"}),
    "beside": lambda at: oa.from_mds(at + "mds", {"image": "image", "label": "label", "number": "label"}),
    "parquet": lambda at: oa.from_parquet(at + "rows.parquet", ["image", "label"], name="parquet", cache="20K", workers=1, keep=1),
    "windows": lambda at: oa.tokens(at + "tokens.bin", 32),
    "packed": lambda at: oa.tokens(at + "tokens.bin", 64, pack=True),
    "records": lambda at: at + "tokens.bin",
    "array": lambda at: at + "array.npy",
    "hdf5": lambda at: oa.from_hdf5(at + "rows.h5", {"x": "x"}, name="hdf5", workers=1, keep=1),
}
WITHOUT_PICTURES = ("windows", "packed", "records", "array", "hdf5")


def open_rank(kind, rank, state):
    pipeline = None if kind in WITHOUT_PICTURES else oa.imagenet_train(32, dtype="uint8")
    # Of a table whose row groups are not all kept the order is one of these.
    more = {"shuffle": "blocks"} if kind == "parquet" else {"order": "seeded"}
    more["source"] = {"record": 100} if kind == "records" else None
    return oa.Loader(DATA[kind](folder + "/"), pipeline, batch_size, socket=socket, job=kind, epochs=EPOCHS, as_="numpy", seed=7, rank=rank,
                     world_size=ranks, local_rank=rank - first, local_world_size=count, state=state, timeout=1000, **more)


def batches(loader):
    epoch = -1
    while epoch < EPOCHS - 1:
        for batch in loader:
            epoch = batch.epoch
            yield batch


def lines(batch):
    arrays = list(batch.values()) if isinstance(batch, dict) else batch
    for at, sample in enumerate(batch.ids):
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(numpy.asarray(array[at]).tobytes())
        yield f"{batch.epoch} {sample} {digest.hexdigest()[:16]}\n"


def cache_of(kind):
    status = json.loads(_core.Client(socket).status())
    stream = next(job["stream"] for job in status["jobs"] if job["name"] == kind)
    return next(each["cache"] for each in status["streams"] if each["id"] == stream)


def pause(kind):
    """While somebody does something to a node."""
    with open(f"{work}/{run}.{kind}.paused", "x", encoding="ascii"):
        pass
    while not os.path.exists(f"{work}/{run}.{kind}.goes"):
        time.sleep(.02)


def is_due(kind, step, epoch):
    """Is it time to pause? What came from a peer in the first epoch the peer has made."""
    if pauses != "peers" or step < 3 or epoch > 0:
        return pauses == "step" and step >= 3
    cache = cache_of(kind)
    if cache["on"] and cache["peer_hits"] == 0:
        time.sleep(.1)  # who was slow to answer is asked again a second later
    return cache["peer_hits"] > 0


def ride(kind):
    state, step, epoch, is_over, has_paused = None, 0, 0, False, False
    if before:
        with open(f"{work}/{before}.{kind}.state", encoding="ascii") as file:
            state = json.load(file)
    loaders = [open_rank(kind, rank, state) for rank in range(first, first + count)]
    taking = [batches(loader) for loader in loaders]
    said = [[] for _ in loaders]
    while not is_over and step != (steps or None):
        for number, taken in enumerate(taking):
            batch = next(taken, None)
            is_over = batch is None
            if batch is not None:
                epoch = batch.epoch
                said[number] += lines(batch)
        step += not is_over
        if not is_over and not has_paused and is_due(kind, step, epoch):
            pause(kind)
            has_paused = True
    if pauses == "peers":
        with open(f"{work}/{run}.{kind}.cache", "x", encoding="ascii") as file:
            json.dump(cache_of(kind), file)
    for rank, text in enumerate(said, first):
        with open(f"{work}/{run}.{kind}.{rank}", "x", encoding="ascii") as file:
            file.writelines(text)
    if steps and first == 0:
        with open(f"{work}/{run}.{kind}.state", "x", encoding="ascii") as file:
            json.dump(loaders[-1].state_dict(), file)
    for loader in loaders:
        loader.close()


for each in kinds.split():
    ride(each)
