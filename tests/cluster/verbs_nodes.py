# SPDX-License-Identifier: Apache-2.0
"""verbs_nodes.py BUILD FOLDER: whole nodes whose values go by RDMA, in the machine of verbs.sh, which has two devices with a
wire between them.

Each of two nodes sees one of the devices. Two jobs on the first have all prepared; a job on the second gets values by the
wire, and exactly the bytes that a node alone makes. Then jobs ride on the second while the first one's carrier is killed, and
while the second one's device goes down: none fails, all samples come once, and TCP takes over, with the reason in words.
Nothing here decides by time.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from nodes import Node, free_ports, is_met, of_name, real_programs, stop_nodes, wait_until, write_key  # noqa: E402

DEVICES = ("uverbs0", "uverbs1")
SAMPLES = 96
JOB = ("--verify", "--pipeline", "imagenet-train-u8", "--batch", "16")
NODE = {"workers": 1, "chunk": 16, "cache_size": "64M", "linger_s": 0, "sample_timeout_ms": 600000}
BEGAN = time.monotonic()
SUM = """
import hashlib, sys, oneaccess as oa
sum_ = hashlib.sha256()
for images, labels in oa.Loader(sys.argv[1], oa.imagenet_train(32), 16, order="seeded", seed=7, epochs=1, as_="numpy"):
    sum_.update(images.tobytes() + labels.tobytes())
print(sum_.hexdigest())
"""


def say(text):
    print(f"verbs: nodes: {text} ({time.monotonic() - BEGAN:.0f} s)", flush=True)


def sees(device):
    """A command that starts a program without the other devices."""
    hidden = "; ".join(f"mount --bind /dev/null /dev/infiniband/{other}" for other in DEVICES if other != device)
    return ("unshare", "--mount", "sh", "-ec", f'{hidden}; exec "$0" "$@"')


def run_jobs(node, dataset, *options):
    """To their end; each sample once."""
    result = os.path.join(node.folder, "result.json")
    job = node.start_job(dataset, result, *JOB, *options)
    assert job.wait() == 0, f"a job on {node.name} fails"
    exactly_once(result)


def exactly_once(result):
    with open(result, encoding="utf-8") as file:
        said = json.load(file)
    assert said["exactly_once"] and not any(job["error"] for job in said["jobs"]), said


def sum_of(build, node, dataset):
    """Of all bytes of an epoch, crops and flips included, as a job on that node gets them."""
    paths = os.pathsep.join(filter(None, [f"{build}/python/package", os.environ.get("PYTHONPATH")]))
    return subprocess.run([sys.executable, "-c", SUM, dataset], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": paths, "ACCESS_SOCKET": node.socket}).stdout


def channel(node):
    channels = node.status().get("cluster", {}).get("channels", [])
    return channels[0] if len(channels) == 1 else {}


def goes_by(node, way):
    return channel(node).get("transport") == way


def peers(node):
    """What a person is shown."""
    return subprocess.run([f"{node.build}/tools/access-ctl", "--socket", node.socket, "peers"], check=True,
                          capture_output=True, text=True).stdout


def prepare(nodes, dataset):
    """Two jobs on the first one. Most samples have a form at some node then: on a machine that has no time for it, what is put at
    its owner may be dropped, and is made again."""
    run_jobs(nodes[0], dataset, "--jobs", "2")
    return sum(cache["values"] for node in nodes for cache in node.status().get("caches", [])) >= 3 * SAMPLES // 4


class Ride:
    """Jobs on a node while something is done; if they end before it is done, it was done to nobody."""

    def __init__(self, node, dataset):
        self.result = os.path.join(node.folder, "ride.json")
        self.job = node.start_job(dataset, self.result, *JOB, "--jobs", "2", "--epochs", "60000", "--step-ms", "20")
        wait_until("jobs do not begin", lambda: any(job["delivered"] for job in node.status().get("jobs", [])))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        assert kind or self.job.poll() is None, "a job has ended"
        self.job.terminate()
        self.job.wait()
        if not kind:
            exactly_once(self.result)


def by_wire(build, first, second, dataset):
    """What the first one has prepared comes to the second one by RDMA, and is what a job gets that has nobody."""
    wait_until("what was made is kept nowhere", lambda: prepare((first, second), dataset))
    say("all is prepared")
    run_jobs(second, dataset)
    wait_until("nothing came from the other node", lambda: channel(second).get("gots"))  # said once a second
    came, said = channel(second)["gots"], peers(second)
    assert re.search(r"^node-1 +connected +rdma +[1-9][0-9]* +[1-9]", said, re.MULTILINE), said
    sums = {sum_of(build, node, dataset) for node in (first, second)}
    assert len(sums) == 1, sums
    say(f"{came} of {SAMPLES} samples came by RDMA")
    return sums.pop()


def carrier_dies(first, second, dataset):
    with Ride(second, dataset):
        victim = of_name(first, "access-carrier").pop()
        os.kill(victim, signal.SIGKILL)
        wait_until("there is no other carrier", lambda: of_name(first, "access-carrier") - {victim})
        wait_until("the nodes do not meet again", lambda: asks(second, dataset) and channel(first) and channel(second))
    say("a carrier was killed, and nobody missed a sample")


def asks(node, dataset):
    """Whoever is asked nothing may fail and nobody knows: a job goes through new data, which nobody has prepared."""
    fresh = tempfile.mkdtemp(dir=os.path.dirname(dataset))
    shutil.copytree(dataset, fresh, dirs_exist_ok=True)
    for folder, _, files in os.walk(fresh):  # names, sizes and times say what is new
        for file in files:
            os.utime(os.path.join(folder, file), (time.time(),) * 2)
    run_jobs(node, fresh)
    return True


def device_fails(first, second, dataset):
    """What failed is not tried for a while, by who noticed and by who is told."""
    with Ride(second, dataset):
        subprocess.run(["ip", "link", "set", "net1", "down"], check=True)
        wait_until("the nodes do not go over to TCP",
                   lambda: asks(second, dataset) and goes_by(first, "tcp") and goes_by(second, "tcp"))
    for node in (first, second):
        said = peers(node)
        assert re.search(r"^by TCP: .*[a-z]{3}", said, re.MULTILINE), said
        say(channel(node)["way"])


def main(build, folder):
    ports, dataset = free_ports(2), os.path.join(folder, "pictures")
    subprocess.run([f"{build}/tests/scenarios/pictures", dataset, str(SAMPLES), "4", "100"], check=True)
    programs = real_programs(build, folder)
    write_key(folder)
    alone = Node(programs, folder, 2, [0, 0, 0], peers="", **NODE)
    nodes = []
    try:
        wait_until("a node alone does not begin", alone.status)
        nodes = [Node(programs, folder, i, ports, inside=sees(device), **NODE) for i, device in enumerate(DEVICES)]
        wait_until("the nodes do not meet", lambda: is_met(nodes))
        say("they have met")
        assert goes_by(nodes[0], "rdma") and goes_by(nodes[1], "rdma"), [channel(node) for node in nodes]
        assert by_wire(build, *nodes, dataset) == sum_of(build, alone, dataset), "other bytes than a node alone makes"
        carrier_dies(*nodes, dataset)
        device_fails(*nodes, dataset)
        assert sum_of(build, nodes[1], dataset) == sum_of(build, alone, dataset), "other bytes than before"
    finally:
        stop_nodes([alone, *nodes])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
