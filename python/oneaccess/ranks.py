# SPDX-License-Identifier: Apache-2.0
"""Which rank of its job a process is, and which of the job's ranks are on its node.

Launchers say it in the environment; the first of them that says which rank this is, is believed, since one that
was started by another knows more (torchrun under Slurm). What they say of the node is used where they mean the same ranks.

A wrong word about the node costs work, never samples: what a rank reads follows from its number alone.
"""

import os
import re
import secrets
import socket as sockets
import sys
import threading
from typing import NamedTuple

from . import _core
from .errors import ArgumentError, DatasetError, warn

# rank, ranks, rank on the node, ranks on the node. Slurm's last is computed: _of_slurm().
_LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                 "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "Hydra": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", None),
}
_SLURM_TASKS = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE")
_GIVEN = "rank= and world_size="
NOBODY = "nobody"  # says it
_EXPLICIT = "give local_rank= and local_world_size="
IN_ORDER = ("a node makes what its ranks read, so they must follow each other: start them node by node (srun -m block,"
             " mpirun --map-by core), or give order=\"seeded\" with rank= and world_size= alone, and every node makes all")

_COMPARES = True  # ranks say it to each other: they compare their data sets, too, in whatever order
_PATIENCE_S = 10  # until a rank says that it waits for the others


class Ranks(NamedTuple):
    rank: int
    world_size: int
    local_rank: int        # on this node
    local_world_size: int  # of these; the world's where it is not known
    is_known: bool         # does anything say which ranks are here?
    why: str | None        # what says that some are on other nodes; None: nothing does
    source: str            # who says which rank this is

    @property
    def first(self):
        """Of the node's ranks."""
        return self.rank - self.local_rank


class _Said(NamedTuple):
    """By one launcher; None: nothing."""
    launcher: str
    rank: int | None
    world_size: int | None
    local_rank: int | None
    local_world_size: int | None
    names: tuple  # of variables that are there
    other_nodes: bool  # are there any?

    def __str__(self):
        return ", ".join(f"{name}={os.environ[name]}" for name in self.names)


def _distributed():
    """torch.distributed, where it is initialized."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


# ---- what launchers say ----

def _number(name):
    text = os.environ.get(name or "")
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text.strip()):
        raise ArgumentError(f"{name}={text}: this is no number of ranks; unset it, or give rank=, world_size=,"
                            " local_rank= and local_world_size=")
    return int(text)


def _tasks_of(name):
    """"4(x2),3": 4, 4 and 3 on three nodes."""
    tasks = []
    for part in os.environ[name].split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,6})\))?", part.strip())
        if not match:
            raise ArgumentError(f"{name}={os.environ[name]}: this is no list of tasks a node, as 4(x2),3; {_EXPLICIT}")
        tasks += [int(match[1])] * int(match[2] or 1)
    return tasks


def _of_slurm(rank, world_size, local_rank):
    """Ranks on this node and the variable that says so, of a step with several tasks."""
    name = next((name for name in _SLURM_TASKS if name in os.environ), None)
    if name is None or rank is None or local_rank is None:
        return None, None
    tasks = _tasks_of(name)
    if name == "SLURM_NTASKS_PER_NODE":
        tasks *= -(-world_size // tasks[0]) if tasks[0] else 1
    if sum(tasks) != world_size:
        raise ArgumentError(f"{name}={os.environ[name]} and SLURM_STEP_NUM_TASKS={world_size} contradict each other;"
                            f" {_EXPLICIT}")
    first = 0
    for count in tasks:
        if first == rank - local_rank and local_rank < count:
            return count, name
        first += count
    raise ArgumentError(f"SLURM_PROCID={rank} has SLURM_LOCALID={local_rank}, and {name}={os.environ[name]}: {IN_ORDER}")


def _said_by(launcher):
    names = _LAUNCHERS[launcher]
    rank, world_size, local_rank, local_world_size = (_number(name) for name in names)
    names = [name for name in names if name and name in os.environ]
    is_elsewhere = False
    if launcher == "Slurm" and world_size is not None and world_size > 1:
        nodes = _number("SLURM_STEP_NUM_NODES")
        local_world_size, tasks = _of_slurm(rank, world_size, local_rank)
        if nodes == 1 and local_world_size is None:
            local_rank, local_world_size = rank, world_size
        is_elsewhere = nodes is not None and nodes > 1
        names += [tasks] if tasks else ["SLURM_STEP_NUM_NODES"] if nodes is not None else []
    return _Said(launcher, rank, world_size, local_rank, local_world_size, tuple(names), is_elsewhere)


def _all_said():
    """One after the other: who is not asked cannot be wrong."""
    return (said for said in map(_said_by, _LAUNCHERS) if said.names)


# ---- which of it counts ----

def _which(rank, world_size):
    """This process's rank, of how many, and who says so."""
    if rank is not None:
        return rank, world_size, _GIVEN
    distributed = _distributed()
    if distributed is not None:
        return distributed.get_rank(), distributed.get_world_size(), "torch.distributed"
    for launcher, (rank, world_size, *_) in _LAUNCHERS.items():
        if rank in os.environ and world_size in os.environ:
            return _number(rank), _number(world_size), launcher
    return 0, 1, NOBODY


def _check(rank, world_size, local_rank, local_world_size, words):
    if not 0 <= local_rank < local_world_size <= world_size:
        raise ArgumentError(f"{words}: rank {local_rank} of {local_world_size} on this node, of {world_size} in all,"
                            " cannot be")
    first = rank - local_rank
    if first < 0 or first + local_world_size > world_size:
        raise ArgumentError(f"{words}: rank {rank} of {world_size} is number {local_rank} of {local_world_size} on this"
                            f" node; {IN_ORDER}")


def _is_uneven(rank, world_size, one):
    """Of nodes with equally many ranks, which follow each other? Slurm was asked, torchrun does it so."""
    first = rank - one.local_rank
    return one.launcher in ("Open MPI", "Hydra") and world_size % one.local_world_size == 0 and \
        first % one.local_world_size != 0


def _is_of(one, rank, world_size, source):
    """Does the launcher mean these ranks?"""
    if one.world_size not in (None, world_size):
        return False
    if one.rank is None or one.world_size is None:
        return True
    if one.rank != rank and source == "torch.distributed":
        raise ArgumentError(f"torch.distributed says rank {rank} of {world_size}, and {one}: which ranks are on this"
                            f" node? {_EXPLICIT}")
    return one.rank == rank


def _near(rank, world_size, source):
    """By launchers that mean the same ranks. Others are about something else, as the processes of a model that is
    cut; a group of the ranks of one node is all here."""
    why = None
    for one in _all_said():
        count = one.local_world_size
        if not _is_of(one, rank, world_size, source):
            if (rank, world_size) == (one.local_rank, count):
                return Ranks(rank, world_size, rank, world_size, True, None, source)
            is_spread = count is not None and one.world_size is not None and count < one.world_size
            why = why or (str(one) if is_spread else None)
        elif count is not None and one.local_rank is not None:
            _check(rank, world_size, one.local_rank, count, str(one))
            if _is_uneven(rank, world_size, one):
                raise ArgumentError(f"{one}: nodes have different numbers of ranks, or ranks go round the nodes; "
                                    f"{IN_ORDER}; else {_EXPLICIT}")
            return Ranks(rank, world_size, one.local_rank, count, True, str(one) if count < world_size else None, source)
        elif count == world_size:
            return Ranks(rank, world_size, rank, world_size, True, None, source)
        elif one.other_nodes or (count is not None and count < world_size):
            why = why or str(one)
    return Ranks(rank, world_size, rank, world_size, False, why, source)


def _tell(ranks):
    """Whoever starts many jobs at once by one srun finds out that they are one."""
    one = next(one for one in _all_said() if one.launcher == ranks.source)
    warn(f"this is rank {ranks.rank} of the {ranks.world_size} of one job, by {one}, and reads its share of each"
         " epoch; jobs that have nothing to do with each other give rank=0, world_size=1", UserWarning)


def find(rank=None, world_size=None, local_rank=None, local_world_size=None):
    """As given, else torch.distributed's, else a launcher's."""
    if (rank is None) != (world_size is None):
        raise ArgumentError("rank and world_size go together")
    if (local_rank is None) != (local_world_size is None):
        raise ArgumentError("local_rank and local_world_size go together")
    if rank is not None and not 0 <= rank < world_size:
        raise ArgumentError(f"rank={rank}, world_size={world_size}: ranks are 0 to world_size - 1")
    if world_size == 1 and local_rank is None:
        return Ranks(0 if rank is None else rank, 1, 0, 1, True, None, _GIVEN)
    rank, world_size, source = _which(rank, world_size)
    if local_rank is not None:
        words = f"local_rank={local_rank}, local_world_size={local_world_size}"
        _check(rank, world_size, local_rank, local_world_size, words)
        why = words if local_world_size < world_size else None
        return Ranks(rank, world_size, local_rank, local_world_size, True, why, source)
    if world_size == 1:
        return Ranks(rank, 1, 0, 1, True, None, source)
    try:
        ranks = _near(rank, world_size, source)
    except ArgumentError as error:
        if source != _GIVEN:
            raise
        ranks = Ranks(rank, world_size, rank, world_size, False, str(error), source)  # what launchers say may be of others
    if source in _LAUNCHERS and source != "torchrun":
        _tell(ranks)
    return ranks


# ---- what ranks say to each other ----

def are_several():
    """By torch.distributed."""
    distributed = _distributed()
    return distributed is not None and distributed.get_world_size() > 1


def can_meet(world_size):
    """Either all processes of torch.distributed are these ranks, or none of them asks the others."""
    distributed = _distributed()
    return distributed is not None and distributed.get_world_size() == world_size


def node(socket):
    """The same for all who surely have one accessd: of one machine, and of one container there."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            machine = boot.read().strip()
    except OSError:
        machine = sockets.gethostname()
    try:
        mounts = os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        mounts = 0
    return (machine, mounts, os.environ.get("XDG_RUNTIME_DIR", ""),
            os.fspath(socket or os.environ.get("ACCESS_SOCKET") or ""))


_MADE = ("have made it", "where they are and what they read", "make the Loader")
_ORDERED = ("have begun its next epoch", "which samples that has", "begin it")
_CHOSEN = ("have called its choose()", "what they choose", "call choose()")


def _tell_waiting(what):
    print(f"oneaccess: a Loader waits until all ranks {what}; one of this rank alone gives rank=0, world_size=1",
          file=sys.stderr, flush=True)


def _gather(mine, world_size, words=_MADE):
    distributed = _distributed()
    everybody = [None] * world_size
    done, what, how = words
    voice = threading.Timer(_PATIENCE_S, _tell_waiting, [done])
    voice.daemon = True
    voice.start()
    try:
        distributed.all_gather_object(everybody, mine)
    except Exception as error:  # of whatever backend
        raise ArgumentError(f"ranks could not tell each other by torch.distributed {what}"
                            f" ({error}): {how} in all of them, where their process group works (of NCCL: behind"
                            " torch.cuda.set_device())") from error
    finally:
        voice.cancel()
    return everybody


def _who_says_what(said):
    """Of the ranks that processes say: which ones several say, or nobody, or that there are not."""
    by_rank = {}
    for process, rank in enumerate(said):
        by_rank.setdefault(rank, []).append(str(process))
    parts = [f"{' and '.join(processes)} {'all ' if len(processes) > 2 else ''}say rank {rank}" if len(processes) > 1 else
             f"{processes[0]} says rank {rank}, of which there is none" for rank, processes in sorted(by_rank.items())
             if len(processes) > 1 or not 0 <= rank < len(said)]
    none = [str(rank) for rank in range(len(said)) if rank not in by_rank]
    return "; ".join(f"process {part}" for part in parts) + f"; nobody says rank {', '.join(none)}"


def _check_versions(everybody, mine):
    """What ranks say has grown with versions: one that says less is older."""
    for others, what, needed in (([process for process, said in enumerate(everybody) if len(said) < len(mine)], "an older", _core.version),
                                 ([process for process, said in enumerate(everybody) if len(said) > len(mine)], "a newer", "that")):
        if others:
            raise ArgumentError(f"process {', '.join(map(str, others))} of torch.distributed: {what} OneAccess than {_core.version}, which this one has;"
                                f" they cannot agree on a seed: install {needed} on all nodes of the job")


def _check_ways(way_of):
    """Of each rank how its node reckons which samples are whose. It must be rank 0's: else some would come twice and others not at all."""
    others = [rank for rank, way in sorted(way_of.items()) if way != way_of[0]]
    if others:
        raise ArgumentError(f"rank 0 has {way_of[0]}, and rank {', '.join(map(str, others))} {way_of[others[0]]}: with spread=\"step\" each node"
                            " reckons by itself which samples are its own, so give it to all ranks or to none, and install one version of OneAccess on all"
                            " nodes of the job")


def meet(ranks, socket, spread=None, is_fixed=False):
    """All ranks say where they are, and how they spread samples. The ranks as they are then, and a seed for all of them: rank 0's draw.
    is_fixed: is the order one in which a node may make all?"""
    way = f"spread=\"{spread}\" of OneAccess {_core.version}" if spread else "no spread"
    mine = (ranks.rank, node(socket), secrets.randbelow((1 << 63) - 1) + 1, way, _COMPARES)
    everybody = _gather(mine, ranks.world_size)
    _check_versions(everybody, mine)
    by_rank = {rank: (node, seed) for rank, node, seed, *_ in everybody}
    if sorted(by_rank) != list(range(ranks.world_size)):
        raise ArgumentError(f"the {ranks.world_size} processes of torch.distributed are not the {ranks.world_size} ranks"
                            f" that rank= and world_size= say ({_who_says_what([rank for rank, *_ in everybody])}):"
                            " they can agree on no seed=, and samples would be lost and repeated: give each of them a rank= of its own")
    _check_ways({rank: way for rank, _, _, way, _ in everybody})
    seed = by_rank[0][1]
    if ranks.is_known:
        return ranks, seed
    here = [rank for rank, (node, _) in sorted(by_rank.items()) if node == by_rank[ranks.rank][0]]
    if here != list(range(here[0], here[0] + len(here))):
        why = f"ranks {', '.join(map(str, here))} are on this node"
        if is_fixed:
            return ranks._replace(why=why), seed
        raise ArgumentError(f"{why}: {IN_ORDER}")
    why = f"torch.distributed has ranks {here[0]} to {here[-1]} on this node"
    return ranks._replace(local_rank=ranks.rank - here[0], local_world_size=len(here), is_known=True,
                          why=why if len(here) < ranks.world_size else None), seed


def compare(ranks, version_of):
    """All ranks of several nodes, which have met, must have one data set, of which each node computes which samples are whose, and one way through it.
    version_of() opens it, and says "VERSION PLAN"; who cannot tells the others, so that nobody waits for it."""
    failed = None
    try:
        version = version_of()
    except Exception as error:
        failed, version = error, str(error)
    everybody = sorted(_gather((ranks.rank, failed is None, version), ranks.world_size))
    if failed is not None:
        raise failed
    for rank, is_open, said in everybody:
        if not is_open:
            raise DatasetError(f"rank {rank} cannot open its data set: {said}")
    versions = [said.partition(" ")[0] for _, _, said in everybody]
    others = [str(rank) for rank, version in enumerate(versions) if version != versions[0]]
    if others:
        raise DatasetError(f"rank 0 and rank {', '.join(others)} have data sets that differ, so samples would be lost and repeated: names, sizes and"
                           " times of the files must be the same on all nodes, as rsync -a and cp -a keep them; of a program's data set its files' paths and"
                           " Python's version, too, or give all the same name=")
    others = [str(rank) for rank, _, said in everybody if said != everybody[0][2]]
    if others:
        raise ArgumentError(f"rank 0 and rank {', '.join(others)} go through the data set in different ways, so samples would be lost and repeated: give"
                            " all ranks the same batch_size, drop_last, order, seed=, state= and epochs=, and the same of what says which samples an epoch has, as ids=")


def _compared(ranks, said, failed, words):
    """What all ranks say, and which say another thing than rank 0; failed: why this one cannot, which the others are told so that nobody waits for it."""
    everybody = sorted(_gather((ranks.rank, failed is None, said), ranks.world_size, words))
    if failed is not None:
        raise failed
    for rank, is_right, text in everybody:
        if not is_right:
            raise ArgumentError(f"rank {rank} cannot choose, so no rank does: {text}")
    texts = [text for _, _, text in everybody]
    return texts, [str(rank) for rank, text in enumerate(texts) if text != texts[0]]


def _epochs_of(texts):
    return sorted({text.partition(" ")[0] for text in texts}, key=int)


def compare_orders(ranks, said, failed):
    """All ranks say which epoch they begin, and the ids that their order=function has for it."""
    texts, others = _compared(ranks, said, failed, _ORDERED)
    if others:
        epochs = _epochs_of(texts)
        what = f"begin epochs {' and '.join(epochs)}" if len(epochs) > 1 else f"have other ids for epoch {epochs[0]} by order=function"
        raise ArgumentError(f"rank 0 and rank {', '.join(others)} {what}, so samples would be lost and repeated: let it be a function of the epoch's number"
                            " alone, with a seed that is the same in all ranks, and begin the same epochs")


def compare_choices(ranks, said, failed):
    """All ranks say which epoch they choose for, and what."""
    texts, others = _compared(ranks, said, failed, _CHOSEN)
    if others:
        epochs = _epochs_of(texts)
        what = f"for epochs {' and '.join(epochs)}" if len(epochs) > 1 else "other ids, weights or samples"
        raise ArgumentError(f"rank 0 and rank {', '.join(others)} choose {what}, so samples would be lost and repeated: let each rank have the losses of"
                            " all (torch.distributed.all_reduce()), and choose the same at the same epoch")


def job_name(name: str | None, ranks: int) -> str | None:
    if name is not None or ranks == 1:
        return name
    # Ranks find each other by name: of one launch, so that two runs of a script do not meet.
    launch = (os.environ.get("TORCHELASTIC_RUN_ID") or os.environ.get("SLURM_JOB_ID") or "") + \
        os.environ.get("MASTER_ADDR", "") + os.environ.get("MASTER_PORT", "")
    launch += "".join(f" {os.environ[name]}" for name in ("SLURM_STEP_ID", "PMIX_NAMESPACE") if name in os.environ)
    return f"{os.path.basename(sys.argv[0]) or 'python'} {launch}".strip()


def refuse_nodes(ranks):
    """Each node's daemon would deal an epoch of its own, and samples would be lost and repeated."""
    raise ArgumentError(
        f"{ranks.world_size} ranks, and {ranks.why}: some are on other nodes, whose daemons know nothing of this one's"
        " order; give all ranks order=\"seeded\" and the same seed= (each epoch is another order then, too), which"
        " every node computes for itself; a job of this process alone gives rank=0, world_size=1")
