# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: a daemon of their own and a data set of small pictures."""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["top_builddir"])
SAMPLES, CLASSES = 240, 3


def needs(name, version=1):
    """A test of what a library makes, of this major version or a later one."""
    found = importlib.util.find_spec(name) is not None
    is_old = found and version > 1 and int(importlib.metadata.version(name).split(".")[0]) < version
    return unittest.skipUnless(found and not is_old, f"no package {name}{f' {version}' if version > 1 else ''}")


class DaemonCase(unittest.TestCase):
    """One daemon and one data set for all tests of the class."""

    settings: dict = {}  # of its own

    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="access-python."))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.data = str(cls.work / "data")
        subprocess.run([BUILD / "tests/scenarios/pictures", cls.data, str(SAMPLES), str(CLASSES), "64"],
                       check=True, stdout=subprocess.DEVNULL)
        (cls.work / "node").mkdir(mode=0o700)
        cls.socket = str(cls.work / "node/socket")
        cls.start()
        cls.addClassCleanup(cls.stop)

    @classmethod
    def start(cls):
        settings = {"cache_dir": cls.work / "cache", "workers": 2, "memory": "512M", "chunk": 32,
                    "cache_size": 0, "idle_exit_s": 3600, **cls.settings}  # on a busy machine, programs import for more than a minute
        command = [os.environ["ACCESS_DAEMON"], "--private", "--dir", cls.work / "node"]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        with open(cls.work / "accessd.log", "ab") as log:
            cls.daemon = subprocess.Popen(command, stderr=log)
        end = time.monotonic() + 600
        while not cls._answers():
            if time.monotonic() > end or cls.daemon.poll() is not None:
                raise RuntimeError(f"no accessd: {(cls.work / 'accessd.log').read_text()}")
            time.sleep(0.05)

    @classmethod
    def _answers(cls):
        import oneaccess
        from oneaccess import _core
        try:
            json.loads(_core.Client(cls.socket).status())
        except oneaccess.Error:
            return False
        return True

    @classmethod
    def stop(cls):
        cls.daemon.send_signal(signal.SIGTERM)
        cls.daemon.wait(600)

    @classmethod
    def kill(cls):
        cls.daemon.kill()
        cls.daemon.wait(600)

    def loader(self, *args, **kwargs):
        import oneaccess as oa
        kwargs.setdefault("socket", self.socket)
        kwargs.setdefault("timeout", 600)
        loader = oa.Loader(self.data, *(args or (oa.imagenet_train(32), 16)), **kwargs)
        self.addCleanup(loader.close)
        return loader


class PoolCase(DaemonCase):
    """The same, with folders of their own for the pools of wrap() and for what packages keep."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.work / "run").mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(cls.work / "run")
        os.environ["HF_HOME"] = str(cls.work / "hf")

    def open(self, dataset, *args, **kwargs):
        import oneaccess as oa
        loader = oa.Loader(dataset, *args, **{"socket": self.socket, "timeout": 600, "batch_size": 16, **kwargs})
        self.addCleanup(loader.close)
        return loader
