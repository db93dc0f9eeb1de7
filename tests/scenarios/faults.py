# SPDX-License-Identifier: Apache-2.0
"""faults.py BUILD FOLDER KILLS SEED: faults of a cluster, in a network namespace of its own.

Three nodes, a network namespace each, on one bridge. On each a job after the other goes through a data set all the time; each
must get every sample exactly once, and none may fail. Beside them: a link that is down, a network that swallows all, a link
that comes and goes, KILLS kills (-9) of any of a node's processes, drawn from SEED, bytes that are changed on their way, and a
name server that dies. Under each fault new data, which nobody has prepared, are gone through on all nodes, and each byte of each
batch is what a node alone makes of the files; after it all nodes are connected again. Nothing here decides by time.
"""

import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from nodes import NET, PORT, Node, make_net, of_name, real_programs, run, wait_until, write_key  # noqa: E402

HOST = f"{NET}.254"
KILLED = ("access-gate", "access-carrier", "access-reader", "access-worker", "accessd")
SAMPLES = 96
UNHARMED = 16384  # bytes of a connection in which the gates meet
PIPELINE = ("--pipeline", "imagenet-eval-u8", "--verify")  # without random ops: the same bytes each time


def exactly_once(path):
    """What access-bench says of its jobs. Returns the digest of all that the first one got."""
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    assert said["exactly_once"] and not any(job["error"] for job in said["jobs"]), f"{path}: {said}"
    return said["jobs"][0]["digest"]


def digest_alone(build, pictures, folder):
    """Of an accessd that has nobody."""
    result = os.path.join(folder, "alone.json")
    run(f"{build}/tools/access-bench", "--private", "--workers", "1", "--dataset", pictures, *PIPELINE, "--quiet", "--json", result)
    return exactly_once(result)


class Jobs(threading.Thread):
    """On a node, one after the other."""

    def __init__(self, node, dataset, folder):
        super().__init__(daemon=True)
        self.node, self.dataset, self.result = node, dataset, os.path.join(folder, f"{node.name}-rides.json")
        self.ends, self.failed, self.done = threading.Event(), None, 0
        self.beginning = threading.Lock()  # nobody may kill accessd: a job that begins then is refused
        self.start()

    def has_begun(self, job):
        """Is it given batches, or at its end?"""
        return job.poll() is not None or any(
            one["name"] == "bench-0" and one["delivered"] for one in self.node.status().get("jobs", []))

    def one(self):
        with self.beginning:
            if os.path.exists(self.result):
                os.unlink(self.result)
            job = self.node.start_job(self.dataset, self.result, "--verify", "--epochs", "30", "--batch", "16", "--step-ms", "4")
            wait_until(f"the job on {self.node.name} does not begin", lambda: self.has_begun(job))
        job.wait()  # 1, too, where there was no accessd that it could ask for the status at its end
        exactly_once(self.result)

    def run(self):
        while not self.ends.is_set() and not self.failed:
            try:
                self.one()
            except (AssertionError, OSError, ValueError, TimeoutError) as error:
                self.failed = f"{self.node.name}: {error}"
            self.done += 1


class Cluster:
    """Nodes on places, with one setting of `peers`; jobs ride on them all the time."""

    def __init__(self, build, folder, name, places, peers, **settings):
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        write_key(self.folder)
        self.pictures = os.path.join(folder, "pictures")
        with open(os.path.join(folder, "alone.json"), encoding="utf-8") as file:
            self.digest = json.load(file)["jobs"][0]["digest"]
        self.build, self.peers, self.fresh, self.settings = build, peers, 0, settings
        self.nodes, self.places, self.jobs = [], [], []
        for place in places:
            self.add(place)

    def add(self, place):
        self.places.append(place)
        number = int(place.address.rsplit(".", 1)[1]) - 1
        self.nodes.append(Node(self.build, self.folder, number, [PORT] * 3, inside=place.inside, workers=1, chunk=16, cache_size="64M",
                               linger_s=0, peers=self.peers, peer_listen=f"{place.address}:{PORT}", **self.settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for jobs in self.jobs:
            jobs.ends.set()
        for node in self.nodes:
            node.process.terminate()
        for node in self.nodes:
            node.process.wait()

    def ride(self):
        self.jobs = [Jobs(node, self.pictures, self.folder) for node in self.nodes]

    def rides_well(self):
        for jobs in self.jobs:
            assert not jobs.failed, jobs.failed

    def rides_end(self):
        for jobs in self.jobs:
            jobs.ends.set()
        for jobs in self.jobs:
            jobs.join()
        self.rides_well()

    def wait(self, what, is_so):
        def looks():
            self.rides_well()
            return is_so()
        wait_until(what, looks)

    def channels(self, node):
        return node.status().get("cluster", {}).get("channels", [])

    def train(self, nodes=None):
        """New data, that nobody has prepared, on all these nodes at once."""
        self.fresh += 1
        dataset = os.path.join(self.folder, f"fresh-{self.fresh}")
        shutil.copytree(self.pictures, dataset)
        for folder, _, files in os.walk(dataset):  # names, sizes and times say what is new
            for file in files:
                os.utime(os.path.join(folder, file), (10 ** 9 + self.fresh,) * 2)
        jobs = []
        for node in nodes or self.nodes:
            result = os.path.join(self.folder, f"{node.name}-{self.fresh}.json")
            jobs.append((result, node.start_job(dataset, result, *PIPELINE, "--batch", "16")))
        for result, job in jobs:
            assert job.wait() == 0, f"a job on new data fails: {result}"
            assert exactly_once(result) == self.digest, f"a job got other bytes than the files say: {result}"
        shutil.rmtree(dataset)
        self.rides_well()

    def is_whole(self):
        """Is each node connected to all others, and asks them? Breakers close by questions, so some are asked."""
        for node in self.nodes:
            if len(self.channels(node)) < len(self.nodes) - 1:
                return False
        if all(channel["open"] for node in self.nodes for channel in self.channels(node)):
            return True
        self.train()
        return False

    def wait_whole(self, after):
        self.wait(f"after {after} the nodes are not connected again", self.is_whole)
        self.rides_well()


def has_shut(cluster, node):
    """Has it given up on somebody? It does so by asking."""
    cluster.train()
    return any(not channel["open"] for channel in cluster.channels(node)) or \
        len(cluster.channels(node)) < len(cluster.nodes) - 1


# ---- faults of the network ----


def links(cluster):
    """A partition, a black hole, a link that flaps."""
    first, place = cluster.nodes[0], cluster.places[0]
    place.set_link("down")
    cluster.wait("a link is down, and nobody notices", lambda: has_shut(cluster, first))
    place.set_link("up")
    cluster.wait_whole("a link was down")
    place.swallow(True)
    cluster.wait("a network swallows all, and nobody notices", lambda: has_shut(cluster, cluster.nodes[1]))
    place.swallow(False)
    cluster.wait_whole("a network swallowed all")
    for _ in range(3):
        place.set_link("down")
        cluster.train(cluster.nodes[:1])
        place.set_link("up")
        cluster.train(cluster.nodes[1:])
    cluster.wait_whole("a link came and went")


# ---- bytes that are changed on their way ----

class Relay(threading.Thread):
    """Listens at HOST for one node, and gives on what comes: of each connection the two ends are nodes, and what it changes has
    right checksums of TCP, as what a bad memory on the way changes has."""

    harmed = None  # the address to which bytes come changed
    changed = 0

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.port = place, PORT + int(place.address.rsplit(".", 1)[1])
        self.random = random.Random(self.port)
        self.socket = socket.create_server((HOST, self.port), reuse_port=True)
        self.start()

    def run(self):
        while True:
            try:
                caller, _ = self.socket.accept()
            except OSError:
                return
            try:
                called = socket.create_connection((self.place.address, PORT))
            except OSError:
                caller.close()
                continue
            for ends in ((caller, called), (called, caller)):
                threading.Thread(target=self.give_on, args=ends, daemon=True).start()

    def harm(self, data):
        """One bit of it."""
        at = self.random.randrange(len(data))
        Relay.changed += 1
        return data[:at] + bytes([data[at] ^ 1 << self.random.randrange(8)]) + data[at + 1:]

    def give_on(self, from_, to):
        passed = 0
        try:
            target = to.getpeername()[0]
            while data := from_.recv(65536):
                passed += len(data)
                to.sendall(self.harm(data) if target == Relay.harmed and passed > UNHARMED else data)
        except OSError:
            pass
        for end in (from_, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def shows_changed(cluster, node):
    """Does access-ctl peers tell of it? What comes is found by training."""
    cluster.train()
    said = run(f"{cluster.build}/tools/access-ctl", "--socket", node.socket, "peers")
    said = " ".join(said.split())
    return "not as it was sent" in said or "a frame was not whole" in said  # its length was changed


def changed_bytes(build, folder, places, crypt):
    """Nodes that reach each other through relays alone. Each must see that others' bytes are changed, and none may give a wrong one."""
    relays = [Relay(place) for place in places]
    for place in places:
        run("ip", "link", "set", place.link, "type", "bridge_slave", "isolated", "on")
    peers = "static:" + ",".join(f"{HOST}:{relay.port}" for relay in relays)
    with Cluster(build, folder, f"changed-{crypt}", places, peers, peer_crypt=crypt) as cluster:
        cluster.wait_whole("they began")
        cluster.ride()
        for node, place in zip(cluster.nodes, places):
            Relay.harmed = place.address
            cluster.wait(f"bytes are changed, and {node.name} shows nothing", lambda node=node: shows_changed(cluster, node))
            Relay.harmed = None
            cluster.wait_whole("bytes were changed")
        cluster.rides_end()
        print(f"peer_crypt={crypt}: {Relay.changed} bytes were changed so far, {sum(jobs.done for jobs in cluster.jobs)} jobs rode, "
              f"{cluster.fresh} times new data")
    for relay in relays:
        relay.socket.close()
    for place in places:
        run("ip", "link", "set", place.link, "type", "bridge_slave", "isolated", "off")


# ---- kill -9 ----


def kill_one(cluster, random_, node, name):
    """And waits until there is another one in its place."""
    if name == "accessd":
        with next(jobs.beginning for jobs in cluster.jobs if jobs.node is node):
            node.kill()
            node.start()
            cluster.wait(f"{node.name} does not begin again", node.status)
        return
    before = set()  # one that is about to be replaced may be there now and not be there when it is asked for again
    cluster.wait(f"{node.name} has no {name}", lambda: before.update(of_name(node, name)) or before)
    victim = random_.choice(sorted(before))
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    cluster.wait(f"{node.name} has no other {name}", lambda: of_name(node, name) - before)


def kills(cluster, number, seed):
    random_ = random.Random(seed)
    for i in range(number):
        node, name = random_.choice(cluster.nodes), random_.choice(KILLED)
        print(f"kill {i + 1}: {name} of {node.name}", flush=True)
        kill_one(cluster, random_, node, name)
        if i % 5 == 4:
            cluster.train()
    cluster.wait_whole("kills")


# ---- who is there ----

class Names(threading.Thread):
    """A name server: every name has these addresses."""

    def __init__(self, addresses):
        super().__init__(daemon=True)
        self.addresses = addresses
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HOST, 53))
        self.start()

    def run(self):
        while True:
            try:
                asked, who = self.socket.recvfrom(512)
            except OSError:
                return
            end = asked.index(b"\0", 12) + 5
            kind = struct.unpack(">H", asked[end - 4:end - 2])[0]
            answers = self.addresses if kind == 1 else []
            head = asked[:2] + struct.pack(">HHHHH", 0x8180, 1, len(answers), 0, 0)
            said = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(address) for address in answers]
            self.socket.sendto(head + asked[12:end] + b"".join(said), who)

    def end(self):
        """Its machine is gone: nothing answers."""
        run("ip", "address", "del", f"{HOST}/24", "dev", "cell")


def use_names(folder):
    """Of HOST, and nobody else's: with a /run of our own, where /etc/resolv.conf may lead, and others may be asked."""
    place = os.path.realpath("/etc/resolv.conf")
    run("mount", "-t", "tmpfs", "names", "/run")
    if place.startswith("/run/"):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "x", encoding="ascii"):
            pass
    resolv = os.path.join(folder, "resolv.conf")
    with open(resolv, "w", encoding="ascii") as file:
        file.write(f"nameserver {HOST}\noptions timeout:1 attempts:1\n")
    run("mount", "--bind", resolv, place)


def name_servers(build, folder, places):
    """A name has an address for each node, one more when one comes, and who was found stays found when nobody answers any more."""
    use_names(folder)
    names = Names([place.address for place in places[:2]])
    with Cluster(build, folder, "by-dns", places[:2], f"dns:cell.test:{PORT}") as cluster:
        cluster.wait_whole("they began")
        names.addresses = [place.address for place in places]
        cluster.add(places[2])
        cluster.wait_whole("a third one came")
        names.end()
        cluster.train()
        kill_one(cluster, random.Random(1), cluster.nodes[1], "access-carrier")
        cluster.wait_whole("a carrier died while there is no name server")


def main(build, folder, number, seed):
    places = make_net()
    run(f"{build}/tests/scenarios/pictures", os.path.join(folder, "pictures"), str(SAMPLES), "4", "60")
    build = real_programs(build, folder)
    digest_alone(build, os.path.join(folder, "pictures"), folder)
    peers = "static:" + ",".join(place.address for place in places)
    with Cluster(build, folder, "by-list", places, peers) as cluster:
        cluster.wait_whole("they began")
        cluster.ride()
        links(cluster)
        kills(cluster, number, seed)
        cluster.rides_end()
        print(f"{sum(jobs.done for jobs in cluster.jobs)} jobs rode, {cluster.fresh} times new data")
    for crypt in ("on", "off"):
        changed_bytes(build, folder, places[:2], crypt)
    name_servers(build, folder, places)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
