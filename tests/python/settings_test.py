# SPDX-License-Identifier: Apache-2.0
"""Parameters of the accessd that a program starts: by configure(), the environment and the user's file."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

try:
    import numpy  # noqa: F401, the batches'
except ImportError as missing:
    print(f"settings_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import settings
from support import BUILD, DaemonCase

# Says what the daemon has, and warns as it warns; then waits until it is told to end.
PROGRAM = """
import json, sys, warnings
import oneaccess as oa
from oneaccess import _core
arguments = json.loads(sys.argv[2])
if arguments:
    oa.configure(**arguments)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    loader = oa.Loader(sys.argv[1], oa.imagenet_eval(32), 16)
status = json.loads(_core.Client().status())
print(json.dumps({"pid": status["pid"], "node": status["node"], "parameters": status["parameters"],
                  "told": [str(each.message) for each in told]}), flush=True)
sys.stdin.read()
"""


class SettingsTest(DaemonCase):
    def setUp(self):
        home = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        for name in ("run", "config", "cache"):
            (home / name).mkdir(mode=0o700)
        self.file = home / "config/oneaccess/accessd.conf"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ACCESSD_")},
            "XDG_RUNTIME_DIR": str(home / "run"), "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_CACHE_HOME": str(home / "cache")}

    def begin(self, variables=None, **arguments):
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, self.data, json.dumps(arguments)],
                                   env={**self.environment, **(variables or {})}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        return program

    def told(self, variables=None, **arguments):
        """What a program says whose accessd is the first; the accessd is ended at the test's end."""
        program = self.begin(variables, **arguments)
        said = program.stdout.readline()
        self.assertTrue(said, said or program.stderr.read())
        said = json.loads(said)
        self.addCleanup(self.end, said["pid"])
        return said

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_a_program_configures(self):
        said = self.told(memory="300M", workers=1, cache_size=0)
        self.assertEqual((said["node"]["memory_budget"], said["node"]["workers"]), (300 << 20, 1))
        self.assertEqual((said["parameters"]["cache_size"], said["told"]), (0, []))

    def test_the_environment_counts_more_than_the_file(self):
        self.file.parent.mkdir()
        self.file.write_text("# mine\nmemory = 200M\nchunk = 48\n")
        said = self.told({"ACCESSD_MEMORY": "256M"})
        self.assertEqual((said["parameters"]["memory"], said["parameters"]["chunk"]), (256 << 20, 48))

    def test_a_private_one_by_name(self):
        """As root has it, whom the system's accessd refuses."""
        said = self.told({"ACCESS_SOCKET": "private"}, memory="300M")
        self.assertEqual(said["parameters"]["memory"], 300 << 20)
        environment = {**self.environment, "ACCESS_SOCKET": "private"}
        ctl = subprocess.run([BUILD / "tools/access-ctl", "--json", "status"], env=environment, stdout=subprocess.PIPE,
                             check=True)
        self.assertEqual(json.loads(ctl.stdout)["pid"], said["pid"])

    def test_who_comes_too_late_is_told(self):
        first = self.told(memory="300M")
        late = self.told(memory="1.5G", workers=first["parameters"]["workers"])
        self.assertEqual(late["pid"], first["pid"])
        self.assertEqual(len(late["told"]), 1)
        self.assertRegex(late["told"][0], rf"pid {first['pid']}\), with memory={300 << 20}\. It ends 60 s after")
        same = self.told(memory="300M")
        self.assertEqual(same["told"], [])

    def refused(self, *texts, **how):
        program = self.begin(**how)
        _, error = program.communicate()
        self.assertNotEqual(program.returncode, 0)
        for text in texts:
            self.assertIn(text, error)

    def test_what_accessd_does_not_know_is_named(self):
        self.refused("ACCESSD_MEMROY in the environment: no parameter is called \"memroy\"", memroy="8G")
        self.refused("ACCESSD_MEMORY in the environment: parameter memory: \"much\" is not a size (write 4096, 64M",
                     variables={"ACCESSD_MEMORY": "much"})
        self.file.parent.mkdir()
        self.file.write_text("memory = 200M\nspeed = high\n")
        self.refused(f"{self.file}:2: no parameter is called \"speed\"")

    def test_a_file_is_checked_before_it_is_used(self):
        """No daemon is started, so nothing comes into its folder."""
        def check(*options):
            run = subprocess.run([BUILD / "daemon/accessd", "--check", "--config", file, *options], env=self.environment, stderr=subprocess.PIPE, check=False,
                                 timeout=600)
            return run.returncode, run.stderr.decode()
        file, folder = self.file.parent.parent / "new.conf", self.file.parent.parent / "folder"
        folder.mkdir(mode=0o700)
        for text, options, told in (("memory = 200M\n", (), ""), ("memory = 200M\n", ("--private", "--dir", folder), ""),
                                    ("workers = 2\nspeed = high\n", (), f"accessd: {file}:2: no parameter is called \"speed\": `accessd --help` lists them\n"),
                                    ("workers = 2\n", ("--set", "memory=much"), "accessd: parameter memory: \"much\" is not a size (write 4096, 64M or 1.5G)\n"),
                                    ("peers = dns:nodes:7411\n", (), ""),
                                    ("peers = node1,node2\n", (),
                                     "accessd: parameter peers: write static:HOST[:PORT],..., dns:NAME[:PORT], slurm or etcd:URL\n"),
                                    ("dataset.pets.path = /pets\n", (), "accessd: data set \"pets\" has no owner: write dataset.pets.owner = ...\n")):
            file.write_text(text)
            self.assertEqual(check(*options), (1 if told else 0, told))
        self.assertEqual([*folder.iterdir()], [])

    def test_a_wrong_name_is_said_once(self):
        """In a notebook the next cell has the right one."""
        with mock.patch.dict(os.environ, self.environment, clear=True):
            oa.configure(memroy="8G", chunk=48)
            with self.assertRaisesRegex(oa.errors.UnreachableError, 'called "memroy"'):
                oa.Loader(self.data, socket="private")
            self.assertNotIn("ACCESSD_MEMROY", os.environ)
            oa.configure(memory="much")
            with self.assertRaisesRegex(oa.errors.UnreachableError, '"much" is not a size'):
                oa.Loader(self.data, socket="private")
            self.assertEqual((os.environ["ACCESSD_CHUNK"], os.environ["ACCESSD_MEMORY"]), ("48", "much"))
            oa.configure(memory=None, chunk=None)

    def test_what_is_no_value_is_refused(self):
        for value in (True, 1.5, ["8G"]):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "configure\\(memory=.*\"8G\""):
                oa.configure(memory=value)
        oa.configure(memory="8G")
        oa.configure(memory=None)
        self.assertNotIn("ACCESSD_MEMORY", os.environ)

    def test_an_accessd_of_the_system_is_not_the_programs(self):
        class Client:
            def status(self):
                return json.dumps({"pid": 1})
        oa.configure(memory="8G")
        self.addCleanup(oa.configure, memory=None)
        with self.assertWarnsRegex(RuntimeWarning, "configure\\(memory\\) has no effect.*administrator"):
            settings.check(Client())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            settings.check(Client())  # it is said once


class UsualPipelineTest(DaemonCase):
    """Of a named data set, for a Loader that is given none."""

    USUAL = '{"ops": [{"op": "decode"}, {"op": "resize", "size": [24, 40]}]}'

    @classmethod
    def start(cls):
        cls.settings = {f"dataset.{name}.{what}": value for name in ("pets", "plain")
                        for what, value in (("path", cls.data), ("owner", os.getuid()))}
        cls.settings["dataset.pets.pipeline"] = cls.USUAL
        super().start()

    def first(self, *pipeline, name="name:pets"):
        with oa.Loader(name, *pipeline, batch_size=16, socket=self.socket, timeout=600) as loader:
            return loader, next(iter(loader))[0].shape[1:3]

    def test_it_is_taken(self):
        loader, shape = self.first()
        self.assertEqual((loader.pipeline, tuple(shape)), (self.USUAL, (24, 40)))

    def test_a_job_may_have_its_own(self):
        _, shape = self.first([oa.transforms.Resize((12, 12))])
        self.assertEqual(tuple(shape), (12, 12))

    def test_without_one_it_is_that_of_a_path(self):
        loader, _ = self.first(name="name:plain")
        self.assertEqual(loader.pipeline, "imagenet-train")

    def tool(self, *words):
        return subprocess.run([BUILD / f"tools/{words[0]}", "--socket", self.socket, *words[1:]],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def bench(self, *words):
        """What access-bench ran: of a recording of its plan, the pipeline's hash."""
        plan = self.work / "plan"
        run = self.tool("access-bench", "--batch", "16", "--record", plan, "--dataset", *words)
        self.assertEqual(run.returncode, 0, run.stdout)
        return re.search("^pipeline ([0-9a-f]{64})$", self.tool("access-ctl", "plan", "show", f"{plan}.0").stdout, re.M)[1]

    def test_programs_in_c_take_it(self):
        taken = self.bench("name:pets")
        self.assertEqual(taken, self.bench("name:plain", "--pipeline", self.USUAL))
        self.assertNotEqual(taken, self.bench(self.data))
        # It has one, and gets as far as what this accessd lacks.
        self.assertIn("cache_size is 0", self.tool("access-ctl", "cache", "warm", "name:pets").stdout)

    def test_programs_in_c_are_told_that_there_is_none(self):
        for words in (["access-bench", "--dataset", "name:plain"], ["access-ctl", "cache", "warm", "name:plain"]):
            run = self.tool(*words)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("name:plain has no usual one here", run.stdout)

    def test_it_is_shown(self):
        shown = {}
        for words in (["datasets"], ["--json", "datasets"]):
            shown[len(words)] = subprocess.run([BUILD / "tools/access-ctl", "--socket", self.socket, *words],
                                               stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertEqual({each["name"]: each["pipeline"] for each in json.loads(shown[2])}, {"pets": self.USUAL, "plain": ""})
        self.assertRegex(shown[1], r"name:pets .* JSON .*data\nname:plain .* - ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
