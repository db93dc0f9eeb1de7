# SPDX-License-Identifier: Apache-2.0
"""Several nodes on one machine, for show-cluster, bench/cluster and tests: each an accessd of its own with its cache, gate
and carrier, on an address of the loopback, in a network namespace, or inside what else a command enters."""

import json
import os
import secrets
import signal
import socket
import subprocess
import time

PATIENCE_S = 600
NET, PORT = "10.55.0", 7411

held = []  # sockets of ports


def run(*command):
    """Its output; what fails ends the caller."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Place:
    """A network namespace with one link to the bridge, on which all others are, too. It is there as long as this process."""

    def __init__(self, number):
        self.address, self.link = f"{NET}.{number}", f"to{number}"
        with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            first.stdin.write(b"it is made")
            first.stdin.flush()
            first.stdout.read(1)
            self.inside = ("nsenter", f"--net=/proc/{os.getpid()}/fd/{os.open(f'/proc/{first.pid}/ns/net', os.O_RDONLY)}")
            run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "net", "netns", str(first.pid))
            first.stdin.close()
        run("ip", "link", "set", self.link, "master", "cell", "up")
        run(*self.inside, "ip", "address", "add", f"{self.address}/24", "dev", "net")
        for device in ("net", "lo"):
            run(*self.inside, "ip", "link", "set", device, "up")

    def set_link(self, state):
        run("ip", "link", "set", self.link, state)

    def swallow(self, does):
        """The link looks well, and nothing comes out at its other end."""
        run("ip", "link", "set", self.link, *(("nomaster",) if does else ("master", "cell")))


def make_net(number=3):
    """Places on a bridge, which is at NET.254, in the namespace of this process. CalledProcessError where that cannot be."""
    run("ip", "link", "add", "cell", "type", "bridge")
    run("ip", "address", "add", f"{NET}.254/24", "dev", "cell")
    for device in ("cell", "lo"):
        run("ip", "link", "set", device, "up")
    return [Place(one) for one in range(1, number + 1)]


class Node:
    """An accessd, its folder, and what asks it."""

    def __init__(self, build, folder, number, ports, environment=None, inside=(), **settings):
        self.build = build
        self.name = f"node-{number + 1}"
        self.folder = os.path.join(folder, self.name)
        self.cache = os.path.join(folder, f"cache-{number + 1}")
        self.socket = os.path.join(self.folder, "socket")
        for path in (self.folder, self.cache):
            os.mkdir(path, 0o700)
        self.process = None
        peers = ",".join(f"127.0.0.1:{port}" for port in ports)
        settings = {
            "cache_dir": self.cache, "cache_point": "packed", "cache_force": 1, "idle_exit_s": 0,
            "node_name": self.name, "peers": f"static:{peers}", "peer_listen": f"127.0.0.1:{ports[number]}",
            "peer_key": os.path.join(folder, "cluster.key"), **settings,
        }
        self.command = [*inside, f"{build}/daemon/accessd", "--private", "--dir", self.folder]
        for name, value in settings.items():
            self.command += ["--set", f"{name}={value}"]
        self.environment = {**os.environ, **(environment or {})}
        self.log = os.path.join(folder, f"{self.name}.log")
        self.start()

    def start(self):
        """The first time, or again: with the folders that it had."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stderr=log, env=self.environment)

    def status(self):
        """What access-ctl says, {} while there is no answer."""
        said = subprocess.run([f"{self.build}/tools/access-ctl", "--socket", self.socket, "--json", "status"],
                              capture_output=True, check=False)
        return json.loads(said.stdout) if said.returncode == 0 else {}

    def start_job(self, dataset, result, *options):
        """access-bench, whose figures will be in the file `result`."""
        return subprocess.Popen([f"{self.build}/tools/access-bench", "--socket", self.socket, "--dataset", dataset,
                                 "--quiet", "--json", result, *options])

    def kill(self):
        """As a machine that loses its power."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def free_ports(number):
    """Ports of 127.0.0.1 that nobody else gets as long as this program lives: who listens with SO_REUSEADDR, as nodes do, has them."""
    for _ in range(number):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        held.append(one)
    return [one.getsockname()[1] for one in held[-number:]]


def wait_until(what, is_so):
    """TimeoutError where that does not become so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def is_met(nodes):
    """Is each connected to all others?"""
    for node in nodes:
        status = node.status()
        if not status or ("cluster" in status and len(status["cluster"]["channels"]) < len(nodes) - 1):
            return False
    return True


def write_key(folder):
    """The cluster's secret, where Node looks for it."""
    path = os.path.join(folder, "cluster.key")
    with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o400)) as key:
        key.write(secrets.token_hex(32))


def start_nodes(build, folder, number, places=None, **settings):
    """So many, which have met: one in each place, or all on the loopback."""
    ports = [PORT] * number if places else free_ports(number)
    there = "static:" + ",".join(place.address for place in places or ())
    nodes = []
    try:
        for i in range(number):
            where = {"inside": places[i].inside, "peers": there, "peer_listen": f"{places[i].address}:{PORT}"} if places else {}
            nodes.append(Node(build, folder, i, ports, **{**where, **settings}))
        wait_until(f"the nodes of {folder} do not meet", lambda: is_met(nodes))
    except BaseException:
        stop_nodes(nodes)
        raise
    return nodes


def stop_nodes(nodes):
    """Waits until they are gone."""
    for node in nodes:
        node.process.terminate()
    for node in nodes:
        node.process.wait()


def figures(node):
    """Of its streams: samples that came as files, from its own cache, and from other nodes."""
    caches = [stream["cache"] for stream in node.status().get("streams", [])]
    files, hits, peers = (sum(cache.get(key, 0) for cache in caches) for key in ("misses", "hits", "peer_hits"))
    return files, hits - peers, peers


def family(pid):
    """Of each process below pid: its pid and name."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    text = file.read()
            except OSError:
                continue
            head, tail = text.rsplit(")", 1)
            found[int(entry)] = (int(tail.split()[1]), head.split("(", 1)[1], tail.split()[0])
    below = []
    for one, (parent, name, state) in found.items():
        at = parent
        while at in found and at != pid:
            at = found[at][0]
        if at == pid and state != "Z":
            below.append((one, name))
    return below


def of_name(node, name):
    return {pid for pid, has in family(node.process.pid) if has == name}


def real_programs(build, folder):
    """A build folder without libtool's scripts, which take longer than what they start."""
    place = os.path.join(folder, "programs")
    for name in ("daemon/accessd", "tools/access-ctl", "tools/access-bench"):
        room, program = name.split("/")
        os.makedirs(os.path.join(place, room), exist_ok=True)
        subprocess.run([f"{build}/{name}", "--help"], check=True, capture_output=True)
        ways = [f"{build}/{room}/.libs/{prefix}{program}" for prefix in ("lt-", "")] + [f"{build}/{name}"]
        os.symlink(next(way for way in ways if os.path.exists(way)), os.path.join(place, name))
    os.environ["LD_LIBRARY_PATH"] = f"{build}/libaccess/.libs"
    return place
