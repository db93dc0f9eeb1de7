# SPDX-License-Identifier: Apache-2.0
"""Which rank a process is and which ranks are on its node: what launchers set, and a job over two nodes."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest
import unittest.mock
import warnings

import oneaccess as oa
from oneaccess import _core, ranks

from support import SAMPLES, DaemonCase

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
SRUN = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "11", "SLURM_NTASKS": "11", "SLURM_LOCALID": "1",
        "SLURM_STEP_NUM_NODES": "3", "SLURM_STEP_TASKS_PER_NODE": "4(x2),3"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "6", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "2",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
ONE_NODE = {"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": "11", "SLURM_LOCALID": "5"}

# What is set; what is given; rank, of how many, the node's first, of how many on it.
FOUND = (
    ({}, {}, (0, 1, 0, 1)),
    (TORCHRUN, {}, (5, 8, 4, 2)),
    (SRUN, {}, (5, 11, 4, 4)),
    ({**SRUN, "SLURM_PROCID": "10", "SLURM_LOCALID": "2"}, {}, (10, 11, 8, 3)),
    ({**SRUN, **ONE_NODE}, {}, (5, 11, 0, 11)),
    (OPEN_MPI, {}, (6, 8, 4, 4)),
    (HYDRA, {}, (2, 4, 2, 2)),
    # One launcher under another: who says which rank this is knows more.
    ({**TORCHRUN, "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0",
      "SLURM_STEP_TASKS_PER_NODE": "1(x4)"}, {}, (5, 8, 4, 2)),
    ({**HYDRA, "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0",
      "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}, {}, (2, 4, 2, 2)),
    # PMI by srun says nothing of nodes, Slurm does.
    ({**SRUN, "PMI_RANK": "5", "PMI_SIZE": "11"}, {}, (5, 11, 4, 4)),
    # A program that takes MPI's numbers for torch.
    ({**OPEN_MPI, "RANK": "6", "WORLD_SIZE": "8"}, {}, (6, 8, 4, 4)),
    # A script of sbatch is one process, whatever --ntasks says.
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0", "SLURM_TASKS_PER_NODE": "4(x2)"}, {}, (0, 1, 0, 1)),
    # Older ways to say how many tasks a node has.
    ({**{k: v for k, v in SRUN.items() if k != "SLURM_STEP_TASKS_PER_NODE"}, "SLURM_TASKS_PER_NODE": "4(x2), 3"}, {},
     (5, 11, 4, 4)),
    ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_NTASKS_PER_NODE": "4"}, {},
     (5, 8, 4, 4)),
    # What is given counts.
    (TORCHRUN, {"rank": 0, "world_size": 1}, (0, 1, 0, 1)),
    (SRUN, {"rank": 0, "world_size": 1}, (0, 1, 0, 1)),
    (TORCHRUN, {"rank": 5, "world_size": 8}, (5, 8, 4, 2)),
    (TORCHRUN, {"rank": 1, "world_size": 2}, (1, 2, 0, 2)),  # the ranks of this node are a job
    (TORCHRUN, {"local_rank": 3, "local_world_size": 4}, (5, 8, 2, 4)),
    ({}, {"rank": 3, "world_size": 5, "local_rank": 0, "local_world_size": 2}, (3, 5, 3, 2)),
    ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}, {}, (3, 4, 0, 4)),
    ({"RANK": "x"}, {"rank": 0, "world_size": 2, "local_rank": 0, "local_world_size": 2}, (0, 2, 0, 2)),
)
# What cannot be, and what the error says: the names and values.
REFUSED = (
    ({**TORCHRUN, "LOCAL_RANK": "2"}, {}, "LOCAL_RANK=2, LOCAL_WORLD_SIZE=2"),
    ({**TORCHRUN, "LOCAL_WORLD_SIZE": "9"}, {}, "WORLD_SIZE=8.*LOCAL_WORLD_SIZE=9"),
    ({**TORCHRUN, "RANK": "0"}, {}, "RANK=0.*LOCAL_RANK=1.*follow each other"),
    ({**TORCHRUN, "RANK": "two"}, {}, "RANK=two.*no number"),
    ({**TORCHRUN, "LOCAL_RANK": "-1"}, {}, "LOCAL_RANK=-1.*no number"),
    ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "4(x3)"}, {}, r"SLURM_STEP_TASKS_PER_NODE=4\(x3\).*SLURM_STEP_NUM_TASKS=11"),
    ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "4(x2,3"}, {}, r"SLURM_STEP_TASKS_PER_NODE=4\(x2,3: this is no list"),
    ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "0"}, {}, "SLURM_STEP_TASKS_PER_NODE=0"),
    # srun -m cyclic
    ({**SRUN, "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, {}, "SLURM_PROCID=3.*SLURM_LOCALID=1.*follow each other.*-m block"),
    # mpirun --map-by node
    ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, {},
     "OMPI_COMM_WORLD_RANK=3.*OMPI_COMM_WORLD_LOCAL_RANK=1.*--map-by"),
    (TORCHRUN, {"local_rank": 2, "local_world_size": 2}, "local_rank=2, local_world_size=2"),
    (TORCHRUN, {"local_rank": 2}, "go together"),
    ({}, {"rank": 2}, "go together"),
)


def environment(**variables):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("SLURM_", "OMPI_", "PMI_", "MPI_LOCAL", "LOCAL_")) and k not in ("RANK", "WORLD_SIZE")}
    return unittest.mock.patch.dict(os.environ, {**kept, **variables}, clear=True)


class Distributed:
    """Of torch.distributed what is asked for."""

    def __init__(self, rank, world_size):
        self.get_rank, self.get_world_size = lambda: rank, lambda: world_size

    is_available = is_initialized = staticmethod(lambda: True)


class FindTest(unittest.TestCase):
    def setUp(self):
        # torch may be there and initialized by nobody
        patch = unittest.mock.patch.dict(sys.modules)
        patch.start()
        self.addCleanup(patch.stop)
        sys.modules.pop("torch.distributed", None)

    def find(self, variables, given):
        with environment(**variables), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ranks.find(**given)

    def test_found(self):
        for variables, given, expected in FOUND:
            with self.subTest(variables=variables, given=given):
                found = self.find(variables, given)
                self.assertEqual((found.rank, found.world_size, found.first, found.local_world_size), expected)
                self.assertTrue(found.is_known)
                self.assertEqual(found.why is None, found.local_world_size == found.world_size)

    def test_refused(self):
        for variables, given, says in REFUSED:
            with self.subTest(variables=variables, given=given), self.assertRaisesRegex(oa.errors.ArgumentError, says):
                self.find(variables, given)

    def test_not_known(self):
        # Processes of models that are cut in parts, 4 ranks of data; and half of what a launcher says.
        for variables, given in ((TORCHRUN, {"rank": 2, "world_size": 4}), ({**TORCHRUN, "LOCAL_RANK": ""}, {}),
                                 ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, {})):
            variables = {k: v for k, v in variables.items() if v}
            found = self.find(variables, given)
            self.assertFalse(found.is_known)
            self.assertIn("LOCAL_WORLD_SIZE=2", found.why)
            self.assertEqual((found.first, found.local_world_size), (0, found.world_size))
        found = self.find({}, {"rank": 2, "world_size": 4})
        self.assertEqual((found.is_known, found.why), (False, None))
        # Given ranks count, whatever a launcher says: round the nodes, or of others.
        for variables in ({**SRUN, "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, {**TORCHRUN, "LOCAL_RANK": "-1"},
                          {**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}):
            found = self.find(variables, {"rank": 3, "world_size": 8})
            self.assertEqual((found.rank, found.world_size, found.first, found.local_world_size), (3, 8, 0, 8))
            self.assertFalse(found.is_known)
            self.assertTrue(found.why)

    def test_the_error_says_who_says_what(self):
        for said, words in (((0, 1, 1, 3), "process 1 and 2 say rank 1; nobody says rank 2"),
                            ((0, 0, 0, 0), "process 0 and 1 and 2 and 3 all say rank 0; nobody says rank 1, 2, 3"),
                            ((0, 1, 2, 4), "process 3 says rank 4, of which there is none; nobody says rank 3")):
            everybody = [(rank, "node", 7, "no spread", True) for rank in said]
            mine = ranks.Ranks(0, 4, 0, 4, False, None, "rank= and world_size=")
            with unittest.mock.patch.object(ranks, "_gather", lambda *_: everybody), \
                    self.assertRaisesRegex(oa.errors.ArgumentError, f"not the 4 ranks.*\\({words}\\).*seed="):
                ranks.meet(mine, None)

    def test_a_spread_is_of_one_version(self):
        known = ranks.Ranks(2, 4, 0, 2, True, "RANK=2", "torchrun")
        for versions, words in ((("1", "1", "2", "2"), 'rank 0 has spread="step" of OneAccess 1, and rank 2, 3 spread="step" of OneAccess 2: .*'
                                                       "install one version of OneAccess on all nodes"),
                                (("1", None, "1", "1"), 'rank 0 has spread="step" of OneAccess 1, and rank 1 no spread: .*give it to all ranks or to none'),
                                (("1", "1", "1", "1"), None), ((None, None, None, None), None)):
            ways = []

            def gather(mine, _):
                ways.append(mine[3])
                return [(rank, "node", 7, way, True) for rank, way in enumerate(ways)]

            with unittest.mock.patch.object(ranks, "_gather", gather), unittest.mock.patch.object(ranks, "_core") as core:
                for rank, version in enumerate(versions):
                    core.version = version
                    spread = version and "step"
                    if rank < 3:
                        with self.subTest(versions=versions), self.assertRaises(oa.errors.ArgumentError):
                            ranks.meet(known._replace(rank=rank), None, spread)  # not all are there yet
                    elif words:
                        with self.subTest(versions=versions), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                            ranks.meet(known, None, spread)
                    else:
                        self.assertEqual(ranks.meet(known, None, spread), (known, 7))

    def test_ranks_of_other_versions_are_named(self):
        mine = ranks.Ranks(0, 3, 0, 3, True, None, "torchrun")
        for said, words in (((1, "node", 7), f"process 1, 2 .*an older OneAccess than {re.escape(_core.version)}.* install {re.escape(_core.version)} on all nodes"),
                            ((1, "node", 7, "no spread", True, "news"), "process 1, 2 .*a newer OneAccess.* install that on all nodes")):
            with unittest.mock.patch.object(ranks, "_gather", lambda own, _, said=said: [own, said, said]), \
                    self.subTest(said=said), self.assertRaisesRegex(oa.errors.ArgumentError, words):
                ranks.meet(mine, None)

    def test_nodes_must_have_one_data_set(self):
        mine = ranks.Ranks(0, 3, 0, 1, True, "RANK=0", "torchrun")

        def unreadable():
            raise oa.errors.DatasetError("it is gone")

        for said, version_of, words in (([(1, True, "a"), (2, True, "b")], lambda: "a", "rank 0 and rank 2 have data sets that differ.*rsync -a.*name="),
                                        ([(1, False, "no such folder"), (2, True, "a")], lambda: "a", "rank 1 cannot open its data set: no such folder"),
                                        ([(1, True, "a"), (2, True, "a")], unreadable, "^it is gone"),
                                        ([(1, True, "a 10"), (2, True, "b 9")], lambda: "a 10", "rank 0 and rank 2 have data sets that differ"),
                                        ([(1, True, "a 10"), (2, True, "a 9")], lambda: "a 10", "rank 0 and rank 2 go through the data set in different ways.*state="),
                                        ([(1, True, "a"), (2, True, "a")], lambda: "a", None)):
            with unittest.mock.patch.object(ranks, "_gather", lambda own, _, said=said: [*said, own]), self.subTest(said=said):
                if words is None:
                    ranks.compare(mine, version_of)
                else:
                    self.assertRaisesRegex(oa.Error, words, ranks.compare, mine, version_of)

    def test_torch_distributed(self):
        sys.modules["torch.distributed"] = Distributed(5, 8)
        self.assertEqual(self.find(TORCHRUN, {})[:4], (5, 8, 1, 2))
        self.assertEqual(self.find({}, {})[:5], (5, 8, 5, 8, False))
        self.assertEqual(self.find({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, {})[:4],
                         (5, 8, 1, 4))
        with self.assertRaisesRegex(oa.errors.ArgumentError,
                                    "torch.distributed says rank 5 of 8.*OMPI_COMM_WORLD_RANK=6.*local_rank="):
            self.find(OPEN_MPI, {})
        self.assertEqual(self.find(OPEN_MPI, {"local_rank": 0, "local_world_size": 1})[:4], (5, 8, 0, 1))
        # Ranks of data that are fewer than processes do not meet: not all processes would come.
        self.assertEqual([ranks.can_meet(8), ranks.can_meet(4), ranks.can_meet(1)], [True, False, False])

    def test_who_starts_many_at_once_is_told(self):
        for variables, is_told in ((SRUN, True), (OPEN_MPI, True), (TORCHRUN, False), ({}, False)):
            with environment(**variables), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                ranks.find()
            self.assertEqual(len(told), is_told)
            if told:
                self.assertIn("rank=0, world_size=1", str(told[0].message))


RANK = """
import os, sys
import oneaccess as oa
train = lambda: None

def begin(**options):
    import torch.distributed
    torch.distributed.init_process_group("gloo", **options)
    return torch.distributed.barrier  # as gradients do, it holds ranks together

if sys.argv[2] == "gloo":
    train = begin()
options = eval(sys.argv[3])
loader = oa.Loader(sys.argv[1], oa.imagenet_train(32), 10, timeout=600, epochs=2, as_="numpy", **options)
if sys.argv[2] == "late":
    assert (loader.world_size, len(loader)) == (1, 24)
    train = begin(rank=int(os.environ["NUMBER"]), world_size=4)
ids = []
for epoch in range(2):
    for batch in loader:
        ids.append(list(batch.ids))
        train()
print(ids, flush=True)
loader.close()
"""


HAS_TORCH = importlib.util.find_spec("torch") is not None

# What mpirun takes for a way to another node: it starts there what is to be there, beside that node's accessd.
AGENT = """#!/bin/sh -e
eval "ACCESS_SOCKET=\\$SOCKET_$1"
TMPDIR=$(dirname "$0")/$1 # both are one machine, on which their daemons of Open MPI make folders of one name
mkdir -p "$TMPDIR"
export ACCESS_SOCKET TMPDIR
shift
exec sh -c "$*"
"""


class NodesTest(DaemonCase):
    """Two daemons that know nothing of each other, two ranks each."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sockets, cls.daemons = [cls.socket], [cls.daemon]
        cls.node_work, cls.socket = cls.work, str(cls.work / "other/node/socket")
        cls.work = cls.work / "other"
        (cls.work / "node").mkdir(parents=True)
        (cls.work / "node").chmod(0o700)
        cls.start()
        cls.work = cls.node_work
        cls.sockets.append(cls.socket)
        cls.daemons.append(cls.daemon)
        cls.addClassCleanup(cls.stop_first)

    @classmethod
    def stop_first(cls):
        cls.daemons[0].terminate()
        cls.daemons[0].wait(600)

    def made(self):
        return sum(json.loads(_core.Client(path).status())["node"]["samples_preprocessed"] for path in self.sockets)

    def free_port(self):
        """Its socket stays, and never listens: nobody else gets it, and who listens with SO_REUSEADDR, as torch does, has it."""
        held = socket.socket()
        self.addCleanup(held.close)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        return str(held.getsockname()[1])

    def run_all(self, commands):
        """Of (which node, words, variables): lists that their programs print."""
        with environment():
            runs = [subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     env={**os.environ, "ACCESS_SOCKET": self.sockets[node], **variables})
                    for node, words, variables in commands]
        out = [run.communicate(timeout=600)[0] for run in runs]
        for run, text in zip(runs, out):
            self.assertEqual(run.returncode, 0, text)
        return [json.loads(ids) for text in out for ids in re.findall(r"\[\[.*\]\]$", text, re.MULTILINE)]

    def program(self, way, options):
        program = self.work / "rank.py"
        program.write_text(RANK)
        return str(program), self.data, way, options

    def run_ranks(self, way, options="{}", **says):
        port = self.free_port()
        return self.run_all([(rank // 2, self.program(way, options),
                              {"RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                               **{name: str(of(rank)) for name, of in says.items()}}) for rank in range(4)])

    def run_torchrun(self):
        """As doc/cluster.md says it."""
        page = pathlib.Path(os.environ["top_srcdir"], "doc/cluster.md").read_text(encoding="utf-8")
        (words,) = re.findall(r"^    torchrun (.*) train\.py$", page, re.MULTILINE)
        words = words.replace("=HOST", "=127.0.0.1").replace("=29500", "=" + self.free_port()).split()
        # redirects, tee: Debian's torch 1.13 with Python 3.11 has no way to leave the output as it is
        return self.run_all([(node, ["-m", "torch.distributed.run", "--redirects=1", "--tee=1",
                                     *(word.replace("=NODE", f"={node}") for word in words), *self.program("gloo", "{}")], {})
                             for node in range(2)])

    def mpirun(self, *words):
        """The exit status and the output of Open MPI's, over two nodes."""
        agent = self.work / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o700)
        with environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", SOCKET_n1=self.sockets[0],
                         SOCKET_n2=self.sockets[1]):
            run = subprocess.run(["mpirun", "--host", "n1:2,n2:2", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent,
                                  "--mca", "oob_tcp_if_include", "lo", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 timeout=600, check=False)
        return run.returncode, run.stdout

    def check(self, taken):
        for epoch in (slice(0, 6), slice(6, 12)):
            ids = sorted(id for batches in taken for batch in batches[epoch] for id in batch)
            self.assertEqual(ids, list(range(SAMPLES)))
        self.assertEqual([len(batches) for batches in taken], [12] * 4)

    @unittest.skipUnless(HAS_TORCH, "no torch")
    def test_ranks_agree_on_a_seed(self):
        taken = []
        for run in (self.run_torchrun, lambda: self.run_ranks("gloo")):  # the second: by which accessd they have
            before = self.made()
            taken.append(run())
            self.check(taken[-1])
            # Exactly once is for ranks in step (tests/scenarios/nodes_test.c); each node making all would be twice.
            self.assertLess(self.made() - before, 1.5 * 2 * SAMPLES)
        self.assertNotEqual(sorted(taken[0]), sorted(taken[1]))  # another draw

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun (Debian: openmpi-bin)")
    def test_ranks_of_mpirun(self):
        """As doc/cluster.md says it, of two nodes with two ranks each; and dealt round the nodes."""
        page = pathlib.Path(os.environ["top_srcdir"], "doc/cluster.md").read_text(encoding="utf-8")
        (words,) = re.findall(r"^    mpirun (.*) python train\.py$", page, re.MULTILINE)
        program = (sys.executable, *self.program("none", "{'seed': 3}"))
        before = self.made()
        status, said = self.mpirun(*words.replace("-n 32", "-n 4").replace("ppr:8:", "ppr:2:").split(), *program)
        self.assertEqual(status, 0, said)
        self.check([json.loads(ids) for ids in re.findall(r"\[\[.*\]\]$", said, re.MULTILINE)])
        self.assertLess(self.made() - before, 1.5 * 2 * SAMPLES)
        for rank in range(4):
            self.assertIn(f"rank {rank} of the 4 of one job, by OMPI_COMM_WORLD_RANK={rank}", said)
        status, said = self.mpirun("-n", "4", "--map-by", "node", *program)
        self.assertNotEqual(status, 0, said)
        self.assertRegex(said, "OMPI_COMM_WORLD_RANK=.*follow each other.*--map-by")

    @unittest.skipUnless(HAS_TORCH, "no torch")
    def test_ranks_that_come_up_later(self):
        """As Lightning's do: nobody says who they are when they make their Loader."""
        port = self.free_port()
        taken = self.run_all([(0, self.program("late", "{}"), {"NUMBER": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
                              for rank in range(4)])
        self.check(taken)

    def test_ranks_that_cannot_agree_come_up_again(self):
        """No loop begins as of one rank, and what came of the others is forgotten."""
        loader = self.loader(oa.imagenet_eval(32), 8)
        lost = Distributed(1, 2)
        lost.all_gather_object = unittest.mock.Mock(side_effect=RuntimeError("connection closed"))
        for _ in range(2):
            with unittest.mock.patch.dict(sys.modules, {"torch.distributed": lost}), \
                    self.assertRaisesRegex(oa.errors.ArgumentError, "connection closed"):
                iter(loader)
            self.assertEqual((loader.rank, loader.world_size), (0, 1))
        self.assertEqual(lost.all_gather_object.call_count, 2)
        self.assertEqual(sorted(id for batch in loader for id in batch.ids), list(range(SAMPLES)))

    def test_a_seed_needs_no_meeting(self):
        self.check(self.run_ranks("none", "{'order': 'seeded', 'seed': 3}", LOCAL_RANK=lambda rank: rank % 2,
                                  LOCAL_WORLD_SIZE=lambda rank: 2))

    @unittest.skipUnless(HAS_TORCH, "no torch")
    def test_ranks_of_a_spread_meet(self):
        """With a seed, too; and with one rank of another version none begins."""
        options = "{'order': 'seeded', 'seed': 3, 'spread': 'step'}"
        self.check(self.run_ranks("gloo", options))
        other = "exec('oa.ranks._core = type(\"\", (), {\"version\": os.environ[\"RANK\"] == \"3\" and \"9.9\" or \"9.8\"})') or " + options
        with self.assertRaisesRegex(AssertionError, "rank 0 has spread=.step. of OneAccess 9.8, and rank 3 .* of OneAccess 9.9"):
            self.run_ranks("gloo", other)

    @unittest.skipUnless(HAS_TORCH, "no torch")
    def test_nodes_whose_data_differ_are_told(self):
        """Copies without their times: each node would have an order of its own."""
        copy = self.work / "copy"
        shutil.copytree(self.data, copy, copy_function=shutil.copyfile)
        # In an order that no rank draws, too; with launchers that say nothing of nodes, and with those that do.
        for options, says in (({}, {}), ({"order": "seeded", "seed": 3}, {}),
                              ({"shuffle": False}, {"LOCAL_RANK": lambda rank: rank % 2, "LOCAL_WORLD_SIZE": lambda rank: 2})):
            other = f"os.environ['RANK'] == '3' and sys.argv.__setitem__(1, {str(copy)!r}) or {options}"
            with self.subTest(options=options), self.assertRaisesRegex(AssertionError, "rank 0 and rank 3 have data sets that differ"):
                self.run_ranks("gloo", other, **says)

    @unittest.skipUnless(HAS_TORCH, "no torch")
    def test_nodes_with_other_ways_are_told(self):
        """A state that one rank saved elsewhere, or a seed of its own."""
        alone = self.loader(oa.imagenet_train(32), 10, order="seeded", seed=3, epochs=2)
        begun = alone.state_dict()
        next(iter(alone))
        later = alone.state_dict()
        for options, other in (({"state": begun}, {"state": later}), ({"order": "seeded", "seed": 3}, {"order": "seeded", "seed": 4}),
                               ({"order": "seeded", "seed": 3}, {"copy": False})):
            text = f"os.environ['RANK'] == '3' and {other} or {options}"
            with self.subTest(other=other), self.assertRaisesRegex(AssertionError, "rank 0 and rank 3 go through the data set in different ways.*seed=, state="):
                self.run_ranks("gloo", text)
        self.check(self.run_ranks("gloo", f"{{'state': {begun}}}"))

    def test_what_nodes_cannot_agree_on_is_refused(self):
        with environment(RANK="2", WORLD_SIZE="4", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2"):
            for order in (None, "usual", "carousel", "any"):
                with self.assertRaisesRegex(oa.errors.ArgumentError,
                                            "4 ranks, and RANK=2.*LOCAL_WORLD_SIZE=2: some are on other nodes.*seed="):
                    self.loader(oa.imagenet_eval(32), 8, order=order)
            loader = self.loader(oa.imagenet_eval(32), 8, shuffle=False)
            self.assertEqual(list(next(iter(loader)).ids), list(range(16, 24)))
            self.assertIn("rank 2 of 4, 2 of them on this node", repr(loader))

    def test_any_state_goes_on_on_any_node(self):
        alone = self.loader(oa.imagenet_eval(32), 8, order="seeded", seed=4)
        seen = []
        for batch in alone:
            seen += batch.ids
            if len(seen) == 80:
                break
        state = alone.state_dict()
        for rank, (local_rank, count) in enumerate(((0, 2), (1, 2), (0, 1))):
            loader = self.loader(oa.imagenet_eval(32), 9, rank=rank, world_size=3, local_rank=local_rank,
                                 local_world_size=count, state=state, socket=self.sockets[rank // 2])
            seen += [id for batch in loader for id in batch.ids]
        self.assertEqual(sorted(seen), list(range(SAMPLES)))

    def test_a_spread_keeps_each_step(self):
        steps = {}
        for spread in (None, "step"):
            taken = [set() for _ in range(5)]
            for rank in range(4):
                loader = self.loader(oa.imagenet_eval(32), 12, rank=rank, world_size=4, local_rank=rank % 2,
                                     local_world_size=2, order="seeded", seed=4, spread=spread,
                                     socket=self.sockets[rank // 2], copy=True)
                for step, batch in enumerate(loader):
                    taken[step] |= {(rank // 2, id) for id in batch.ids}
                loader.close()
            steps[spread] = taken
        self.assertEqual(*([{id for _, id in step} for step in taken] for taken in steps.values()))
        self.assertEqual(sum(map(len, steps["step"])), SAMPLES)
        self.assertNotEqual(steps[None], steps["step"])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "equally many ranks"):
            self.loader(oa.imagenet_eval(32), 8, rank=0, world_size=3, local_rank=0, local_world_size=2,
                        order="seeded", seed=4, spread="step").state_dict()


if __name__ == "__main__":
    unittest.main(verbosity=2)
