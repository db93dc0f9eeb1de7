# SPDX-License-Identifier: Apache-2.0
"""What the doctor says of a daemon and of jobs, from statuses that are written down here."""

import os
import sys
import tempfile
import unittest

try:
    import numpy  # noqa: F401, the package's
except ImportError as missing:
    print(f"advice_test: skipped: {missing}")
    sys.exit(77)

from oneaccess import advice

MOUNTS = """21 1 254:0 / / rw - ext4 /dev/vda rw
40 21 0:40 / /data rw,relatime shared:5 - nfs4 filer:/export rw
41 40 254:1 / /data/local rw - xfs /dev/vdb rw
42 21 0:41 / /mnt/two\\040words rw - fuse.sshfs host: rw
a line that is none""".splitlines()


def status(**changes):
    node = {"machine": {"cpus": 4, "cpus_from": ""}, "workers": 4, "memory_budget": 8 << 30, "memory_used": 1 << 30,
            "memory_source": "a quarter of RAM", "worker_restarts": 0, "reader_restarts": 0, "parent_restarts": 0, "refused": 0}
    return {"node": {**node, **changes}, "streams": [], "jobs": [], "draining": False}


def kinds(findings):
    return [finding.kind for finding in findings]


class FolderTest(unittest.TestCase):
    def test_the_deepest_mount_counts(self):
        self.assertEqual(advice.mount_of("/data/local/x", MOUNTS), ("/data/local", "xfs", "/dev/vdb"))
        self.assertEqual(advice.mount_of("/data2", MOUNTS)[0], "/")
        self.assertEqual(advice.mount_of("/data", MOUNTS)[1], "nfs4")
        self.assertIsNone(advice.mount_of("/data", []))

    def test_files_on_a_network_are_told(self):
        with tempfile.TemporaryDirectory() as root:
            mounts = [line.replace("/data", f"{root}/data").replace("/mnt", f"{root}/mnt") for line in MOUNTS]
            for name in ("data/it's", "mnt/two words/x", "data/local/x", "home"):
                os.makedirs(os.path.join(root, name))
            finding, = advice.folder(f"{root}/data/it's", mounts)
            self.assertEqual(finding.kind, "slow")
            self.assertIn("nfs4 (filer:/export)", finding.text)
            self.assertIn(f"""access-ctl convert '{root}/data/it'"'"'s' /LOCAL""", finding.mend)
            self.assertEqual(kinds(advice.folder(f"{root}/mnt/two words/x", mounts)), ["slow"])
            self.assertEqual(advice.folder(f"{root}/data/local/x", mounts), [])
            self.assertEqual(advice.folder(f"{root}/home", mounts), [])
            open(f"{root}/data/one.oads", "wb").close()
            self.assertEqual(advice.folder(f"{root}/data/one.oads", mounts), [])    # it is one already


class NodeTest(unittest.TestCase):
    def test_all_is_well(self):
        self.assertEqual(kinds(advice.node(status(), 4, "never")), ["ok", "ok"])

    def test_fewer_processors_and_workers(self):
        quota = {"cpus": 2, "cpus_from": "/sys/fs/cgroup/a/cpu.max"}
        found = advice.node(status(machine=quota, workers=2), 16, "")[0]
        self.assertEqual((found.kind, found.text), ("slow", "accessd may use 2 of 16, by /sys/fs/cgroup/a/cpu.max"))
        self.assertIn("CPUQuota=1600%", found.mend)
        found = advice.node({**status(machine=quota, workers=2), "parameters": {}}, 16, "")[0]
        self.assertEqual((found.kind, found.mend), ("note", None))
        found = advice.node(status(workers=1), 4, "")[0]
        self.assertEqual((found.kind, found.text[:18]), ("note", "1, of 4 processors"))

    def test_memory_that_is_taken(self):
        full = status(memory_used=8 << 30)
        found = advice.node(full, 4, "")[1]
        self.assertEqual(found.kind, "slow")
        self.assertEqual(found.mend, "echo 'memory = 16.0G' | sudo tee -a /etc/accessd.conf && sudo systemctl restart accessd")
        self.assertIn("~/.config/oneaccess/accessd.conf", advice.node({**full, "parameters": {}}, 4, "")[1].mend)

    def test_small_pages_by_the_kernels_setting(self):
        one = status()
        one["streams"] = [{"variants": [{"slot_bytes": 64 << 20, "huge_pages": False}]}]
        self.assertEqual(kinds(advice.node(one, 4, "always [never] deny")), ["ok", "ok"])
        self.assertIn("64.0 MiB", advice.node(one, 4, "always never [deny]")[2].text)

    def test_what_went_wrong(self):
        found = advice.node({**status(worker_restarts=2, refused=3), "draining": True}, 4, "")
        self.assertEqual([finding.what for finding in found[2:]], ["restarts", "refused", "draining"])
        self.assertIn("2 workers died", found[2].text)


class JobTest(unittest.TestCase):
    ROWS = [("workers", None, "2 more workers", "workers=4", 0.38), ("kept", "packed", "all kept as packed", "cache warm ...", 1.1, True, 1 << 20),
            ("source", None, "source twice as fast", "faster storage", 0.0), ("job", None, "a step twice as fast", "its code", 3.0)]

    def explained(self, limit, rows):
        keys = "change", "form", "words", "how", "gain", "fits", "bytes"
        return {"name": "vit", "stream": 1, "rate": 812.4, "limit": limit, "dataset": "/data/a b", "what_if": [dict(zip(keys, row)) for row in rows]}

    def job(self, status, explained, processors=16):
        return advice.job({**status, "streams": [{"id": 1, "pipeline": '[{"op":"decode"}]'}]}, explained, processors)

    def test_its_own_pace_is_well(self):
        found = self.job(status(), self.explained("job", self.ROWS))
        self.assertEqual(found, ("ok", "job vit", "812 samples a second: its own steps, or its GPU, are its pace", None))

    def test_the_change_that_brings_most(self):
        found = self.job(status(), self.explained("decode", self.ROWS))
        self.assertEqual(found.text, "812 samples a second: decoding is its limit. all kept as packed: +110 %")
        self.assertEqual(found.mend, """access-ctl cache warm '/data/a b' --pipeline '[{"op":"decode"}]' --form packed""")
        found = self.job(status(), self.explained("decode", self.ROWS[:1]))
        self.assertIn("'workers=4' | sudo tee -a /etc/accessd.conf", found.mend)
        room = ("kept", "decoded+2", "all kept as decoded+2", "cache_size over 1 GiB (12 % fit)", 0.5, False, 1 << 30)
        self.assertIn("'cache_size = 4506M' | sudo tee", self.job(status(), self.explained("cache", [room])).mend)
        found = self.job({**status(), "parameters": {}}, self.explained("cache", [room]))
        self.assertIn("'cache_size = 1127M' >> ~/.config", found.mend)
        deep = ("kept", "decoded+2", "all kept as decoded+2", "cache warm ...", 0.5, True, 1 << 20)
        self.assertTrue(self.job(status(), self.explained("read", [deep])).mend.endswith("--form deepest"))

    def test_more_processors(self):
        rows = [("processors", None, "4 more processors", "a CPU quota or cpuset of 8", 0.9), self.ROWS[0]]
        self.assertIn("CPUQuota=", self.job(status(), self.explained("decode", rows)).mend)
        found = self.job({**status(), "parameters": {}}, self.explained("decode", rows))
        self.assertEqual((found.kind, found.mend), ("note", None))
        self.assertIn("+90 %, by a CPU quota or cpuset of 8 where its daemon is started", found.text)
        self.assertIn("2 more workers", self.job(status(), self.explained("decode", rows), 4).text)

    def test_nothing_helps(self):
        found = self.job(status(), self.explained("accessd", self.ROWS[2:]))
        self.assertEqual(found.kind, "note")
        self.assertIn("no change that was measured would help", found.text)
        self.assertIn("a newer word", self.job(status(), self.explained("a newer word", [])).text)

    def test_bad_samples_of_ones_own_jobs(self):
        one = status()
        one["streams"] = [{"id": 1, "bad_samples": 3}, {"id": 2, "bad_samples": 0}]
        one["jobs"] = [{"id": 7, "name": "a", "uid": 5, "stream": 1}, {"id": 8, "name": "b", "uid": 5, "stream": 1},
                       {"id": 9, "name": "c", "uid": 5, "stream": 2}]
        self.assertEqual([found.text for found in advice.bad_samples(one, 5)], ["3 samples are bad: access-ctl bad 7"])
        self.assertEqual(list(advice.bad_samples(one, 6)), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
