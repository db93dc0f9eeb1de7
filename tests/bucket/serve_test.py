#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""access-bucket as a whole, with the simplest of providers (plain.c): a server here that breaks in all the ways there are, jobs
that watch, and readers that ask. No test decides by time: what must come is waited for."""

import email.utils
import fcntl
import http.server
import mmap
import os
import pathlib
import random
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

PROGRAM = os.path.join(os.environ.get("top_builddir", "."), "tests/bucket/access-bucket")
MAGIC = 0x314B4342214F4121
WATCH, HELLO, READ, YIELD = 1, 2, 3, 4
LISTING, READY, REFUSED, MOVED = 1, 2, 3, 4
GOOD, CHANGED, DENIED, FAILED = 0, 1, 2, 3
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
PATIENCE = 600
DATE = 1700000000


class Server(http.server.ThreadingHTTPServer):
    """Objects by name. broken: what it does to the next requests of an object, one each: a status, alone or with its
    Retry-After, "cut", "hang up", or "late": no byte
    until it is closed."""

    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.tags, self.broken, self.token, self.page = {}, {}, [], None, 1000
        self.lock, self.asked, self.lists, self.says_200 = threading.Lock(), [], 0, False
        self.trickle, self.wants_login, self.held = 0, False, None  # an event that the next list waits for
        self.told_to_wait, self.waited, self.gone, self.is_first_there = [], [], False, False
        self.circle, self.goes_on, self.read_token, self.is_closing = None, False, None, threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def handle_error(self, request, client_address):
        pass  # clients may go whenever they want

    @property
    def url(self):
        return f"plain://127.0.0.1:{self.server_address[1]}"

    def put(self, name, data):
        with self.lock:
            self.tags[name] = f'"{random.getrandbits(64):x}"'
            self.objects[name] = data

    def close(self):
        self.is_closing.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def say(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def list(self, prefix, after):
        server = self.server
        with server.lock:
            held, server.held = server.held, None
        if held:
            held.wait(PATIENCE)
        if server.goes_on and after:
            return self.say(200, f"next {int(after) + 1}\n".encode())
        with server.lock:
            server.lists += 1
            names = sorted(name for name in server.objects if name.startswith(prefix) and name > after)
            lines = [f"{len(server.objects[name])} {DATE} {server.tags[name]} {name}\n" for name in names[:server.page]]
        if len(names) > server.page:
            lines.append(f"next {names[server.page - 1]}\n")
        elif server.goes_on:
            lines.append("next 1\n")
        elif server.circle:
            lines.append(f"next {server.circle}\n")
        if server.trickle:
            return self.drip("".join(lines).encode())
        return self.say(200, "".join(lines).encode())

    def drip(self, body):
        """A byte a tenth of a second, until nobody listens any more."""
        self.server.trickle -= 1
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 30))
        self.end_headers()
        try:
            for _ in range(PATIENCE * 10):
                self.wfile.write(body[:1])
                time.sleep(0.1)
        except OSError:
            self.close_connection = True

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server, parts = self.server, urllib.parse.urlsplit(self.path)
        if server.wants_login:
            return self.say(407)
        if server.token is not None and self.headers.get("Token") != server.token:
            return self.say(403, b"no")
        query = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
        if "list" in query and server.gone and (query["after"][0] or not server.is_first_there):
            return self.say(server.gone, b"gone")
        if "list" in query:
            return self.list(query["list"][0], query["after"][0])
        if server.read_token is not None and self.headers.get("Token") != server.read_token:
            return self.say(403, b"no")
        name = urllib.parse.unquote(parts.path)[1:]
        with server.lock:
            data, tag = server.objects.get(name), server.tags.get(name)
            broken = server.broken.pop() if server.broken else None
            server.asked.append((name, self.headers.get("Range")))
        if isinstance(broken, int):
            return self.say(broken, b"broken")
        if isinstance(broken, tuple):
            server.told_to_wait.append(time.monotonic())
            return self.say(broken[0], b"broken", [("Retry-After", broken[1])])
        server.told_to_wait and server.waited.append(time.monotonic())
        if data is None:
            return self.say(404, b"none")
        headers = [("ETag", tag), ("Last-Modified", email.utils.formatdate(DATE, usegmt=True))]
        if self.headers.get("Range") is None:
            return self.say(200, data, headers)
        first, last = (int(number) for number in self.headers["Range"][len("bytes="):].split("-"))
        part = data[first:last + 1]
        headers.append(("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}"))
        if broken is None:
            return self.say(200 if server.says_200 else 206, part, headers)
        self.close_connection = True
        if broken == "late":
            server.is_closing.wait(PATIENCE)
        if broken == "cut":
            self.send_response(206)
            for header in headers:
                self.send_header(*header)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part[:len(part) // 2])
        return None


def head(kind, count=0, memory=0):
    return struct.pack("<QIIQQ", MAGIC, kind, count, memory, 0)


class Peer:
    """A connection to access-bucket."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        here = os.open(folder, os.O_PATH)
        while self.is_full(f"/proc/self/fd/{here}/socket"):
            time.sleep(0.01)
        os.close(here)

    def is_full(self, path):
        try:
            self.socket.connect(path)
            return False
        except BlockingIOError:
            return True

    def close(self):
        self.socket.close()

    def ends(self):
        try:
            return self.socket.recv(4096) == b""
        except ConnectionResetError:
            return True


class Job(Peer):
    def __init__(self, folder):
        super().__init__(folder)
        self.socket.send(head(WATCH))

    def news(self):
        message = self.socket.recv(4096)
        magic, what, _, objects, size = struct.unpack_from("<QIIQQ", message)
        assert magic == MAGIC and len(message) == 1024, message
        return what, objects, size, message[32:].split(b"\0")[0].decode()

    def wait(self):
        while True:
            news = self.news()
            if news[0] != LISTING:
                return news


class Reader(Peer):
    def __init__(self, folder, size=1 << 24, seals=F_SEAL_SHRINK):
        super().__init__(folder)
        self.folder, self.id = folder, 0
        fd = os.memfd_create("reader", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        if seals:
            fcntl.fcntl(fd, F_ADD_SEALS, seals)
        self.memory = mmap.mmap(fd, size)
        socket.send_fds(self.socket, [head(HELLO, 0, size)], [fd])
        os.close(fd)

    def ask(self, ranges):
        """(name, at, bytes, place) each: one message."""
        asks, names = b"", b""
        for name, at, size, place in ranges:
            stat = os.stat(f"{self.folder}/data/{name}")
            encoded = name.encode()
            asks += struct.pack("<QQQQqIIQQ", self.id, at, place, stat.st_size, stat.st_mtime_ns, size, len(encoded), 0, 0)
            names += encoded
            self.id += 1
        self.socket.send(head(READ, len(ranges)) + asks + names)

    def answers(self, n):
        """By id: status, code, text."""
        found = {}
        while len(found) < n:
            message = self.socket.recv(1 << 16)
            assert message and len(message) % 64 == 0, message
            for at in range(0, len(message), 64):
                id_, status, code = struct.unpack_from("<QIi", message, at)
                assert id_ not in found
                found[id_] = (status, code, message[at + 16:at + 64].split(b"\0")[0].decode())
        return found

    def read(self, name, at, size, place=0):
        self.ask([(name, at, size, place)])
        (answer,) = self.answers(1).values()
        return answer, self.memory[place:place + size]


class ServeTest(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="serve_test."))
        self.folder = str(self.work / "folder")
        self.server = Server()
        self.closing = []

    def tearDown(self):
        for peer in self.closing:
            peer.close()
        self.wait_end()
        self.server.close()
        shutil.rmtree(self.work)

    def start(self, path="/", *options, keep=PATIENCE, code=0, **env):
        done = subprocess.run([PROGRAM, "--keep", str(keep), self.folder, self.server.url + path, *options],
                              capture_output=True, text=True, timeout=PATIENCE, check=False, env=os.environ | env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def peer(self, made):
        self.closing.append(made)
        return made

    def job(self, *arguments, **options):
        self.start(*arguments, **options)
        job = self.peer(Job(self.folder))
        return job, job.wait()

    def pid(self):
        """Of the one whose log is locked, by the kernel's list."""
        log = os.path.join(self.folder, "log")
        if not os.path.exists(log):
            return None
        inode = f":{os.stat(log).st_ino}"
        for line in pathlib.Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(inode):
                return int(words[4])
        return None

    def wait_end(self, signal=15):
        """It is told to end, if it is there; and waited for, by the lock of its log."""
        pid = self.pid()
        if pid:
            os.kill(pid, signal)
        log = os.path.join(self.folder, "log")
        if os.path.exists(log):
            with open(log, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)

    def check(self, reader, name, at, size, place=0):
        answer, data = reader.read(name, at, size, place)
        self.assertEqual(answer, (GOOD, 0, ""))
        self.assertEqual(data, self.server.objects["set/" + name][at:at + size])

    def fill(self, n=20):
        for i in range(n):
            self.server.put(f"set/{i % 3}/{i}.bin", random.Random(i).randbytes(1000 + 7 * i))
        self.server.put("set/t-000.tar", random.Random(99).randbytes(3 << 20))

    def test_reads(self):
        self.fill()
        _, news = self.job("/set/")
        self.assertEqual(news[:3], (READY, 21, sum(map(len, self.server.objects.values()))))
        reader = self.peer(Reader(self.folder))
        names = [name[len("set/"):] for name in self.server.objects]
        reader.ask([(name, 0, os.stat(f"{self.folder}/data/{name}").st_size, i << 18) for i, name in enumerate(names[:20])])
        self.assertEqual(set(reader.answers(20).values()), {(GOOD, 0, "")})
        for i, name in enumerate(names[:20]):
            data = self.server.objects["set/" + name]
            self.assertEqual(reader.memory[i << 18:(i << 18) + len(data)], data)

    def test_merges(self):
        """Neighbours are asked for once, what overlaps, too; and what is between them goes nowhere."""
        self.fill()
        self.job("/set/t-000.tar")
        self.assertEqual(os.listdir(self.folder + "/data"), ["t-000.tar"])
        data, reader = self.server.objects["set/t-000.tar"], self.peer(Reader(self.folder))
        ranges = [("t-000.tar", at, 1000, 4096 * i) for i, at in enumerate((500, 250000, 0, 700, 2000000))]
        reader.ask(ranges)
        self.assertEqual(set(reader.answers(5).values()), {(GOOD, 0, "")})
        self.assertEqual(sorted(self.server.asked), [("set/t-000.tar", "bytes=0-250999"), ("set/t-000.tar", "bytes=2000000-2000999")])
        for _, at, size, place in ranges:
            self.assertEqual(reader.memory[place:place + size], data[at:at + size])
            self.assertEqual(reader.memory[place + size:place + 4096], bytes(4096 - size))

    def test_pattern(self):
        for name in ("in/t-000.tar", "in/t-001.tar", "in/t-002.json", "in/t-x/3.tar", "in/other"):
            self.server.put(name, name.encode())
        _, news = self.job("/in/t-{000..001}.tar")
        self.assertEqual(news[:2], (READY, 2))
        self.assertEqual(sorted(os.listdir(self.folder + "/data")), ["t-000.tar", "t-001.tar"])
        answer, data = self.peer(Reader(self.folder)).read("t-001.tar", 3, 5)
        self.assertEqual((answer[0], data), (GOOD, b"t-001"))

    def test_listless(self):
        """Each name is asked for where there is no list."""
        for i in range(40):
            self.server.put(f"in/t-{i:02}", bytes(i))
        _, news = self.job("/in/t-{00..39}", "listless=1")
        self.assertEqual(news[:3], (READY, 40, sum(range(40))))
        self.assertEqual(os.stat(self.folder + "/data/t-39").st_size, 39)
        self.assertEqual(self.server.lists, 0)

    def test_other_credentials(self):
        """Who comes with others has them served, if the store lists anything for them; those that are there go over."""
        self.fill()
        self.server.token = "old"
        first, news = self.job("/set/", "token=old", HF_TOKEN="old")
        self.assertEqual(news[0], READY)
        was = self.pid()
        reader = self.peer(Reader(self.folder))
        self.check(reader, "0/0.bin", 3, 10)
        self.start("/set/", "token=old", HF_TOKEN="old")
        self.assertEqual(self.pid(), was)
        # Those that are good for nothing take nothing away.
        said = self.start("/set/", "token=bad", code=1, HF_TOKEN="bad")
        self.assertIn("refused with 403", said)
        self.assertEqual(self.pid(), was)
        self.check(reader, "0/0.bin", 3, 10)
        # Neither do those that may list alone.
        self.server.token, self.server.read_token = None, "old"
        said = self.start("/set/", "token=lists", code=1, HF_TOKEN="lists")
        self.assertIn("set/0/0.bin: refused with 403", said)
        self.assertEqual(self.pid(), was)
        self.check(reader, "0/0.bin", 3, 10)
        self.server.token, self.server.read_token = "new", None
        self.start("/set/", "token=new", HF_TOKEN="new")
        self.assertNotEqual(self.pid(), was)
        self.assertEqual(first.wait()[0], MOVED)
        self.assertTrue(first.ends() and reader.ends())
        _, news = self.job("/set/", "token=new", HF_TOKEN="new")
        self.assertEqual(news[0], READY)
        self.check(self.peer(Reader(self.folder)), "0/0.bin", 3, 10)
        for kept in ("keys", "oneaccess-bucket", "log"):
            self.assertNotIn(b"new", (self.work / "folder" / kept).read_bytes().replace(b"renewed", b""))

    def test_commits(self):
        """Who takes another's place, or comes when one was ended beside its jobs, reads the commit that was found first."""
        self.fill()
        commit = self.work / "folder" / "commit"
        self.start("/set/", "token=a", HF_TOKEN="a", PLAIN_COMMIT="first")
        was = self.pid()
        self.start("/set/", "token=b", HF_TOKEN="b", PLAIN_COMMIT="second")
        self.assertNotEqual(self.pid(), was)
        self.assertEqual(commit.read_text(), "first")
        for signal in (9, 15):
            was = self.pid()
            self.peer(Job(self.folder)).wait()
            self.wait_end(signal)
            self.start("/set/", "token=b", HF_TOKEN="b", PLAIN_COMMIT="second")
            self.assertEqual(commit.read_text(), "first")
        # One that was killed without jobs left it, some time ago.
        self.wait_end(9)
        os.utime(commit, (0, time.time() - 700))
        self.start("/set/", "token=b", HF_TOKEN="b", PLAIN_COMMIT="second")
        self.assertEqual(commit.read_text(), "second")
        # With the last job it goes, and where the store has it no more.
        self.wait_end()
        self.assertFalse(commit.exists())
        self.start("/set/", keep=1, PLAIN_COMMIT="second")
        with open(self.folder + "/log", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        self.assertFalse(commit.exists())
        self.server.gone = 404
        self.start("/set/", PLAIN_COMMIT="third")
        self.assertEqual(self.peer(Job(self.folder)).wait()[0], REFUSED)
        with open(self.folder + "/log", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        self.assertFalse(commit.exists())

    def test_refused_credentials(self):
        """One that is refused is like nobody: who comes with what seemed to be the same is served with that."""
        self.fill()
        self.server.token = "old"
        self.job("/set/", "token=old", HF_TOKEN="same")
        was, keys, reader = self.pid(), self.work / "folder" / "keys", self.peer(Reader(self.folder))
        before = keys.read_bytes()
        self.start("/set/", "token=new", HF_TOKEN="same")
        self.assertEqual(self.pid(), was)
        self.server.put("set/0/0.bin", b"another one")  # so it is listed anew
        self.assertEqual(reader.read("0/0.bin", 3, 5)[0][0], CHANGED)
        self.server.token = "new"
        self.assertEqual(self.peer(Job(self.folder)).wait()[0], REFUSED)
        self.assertEqual(keys.read_bytes(), bytes(32))
        _, news = self.job("/set/", "token=new", HF_TOKEN="same")
        self.assertEqual(news[0], READY)
        self.assertNotEqual(self.pid(), was)
        self.assertEqual(keys.read_bytes(), before)

    def test_a_part_that_is_refused(self):
        """Whoever may list no more than those that are served, ends none of their jobs."""
        self.fill()
        self.server.page = 1
        job, news = self.job("/set/", HF_TOKEN="same")
        self.assertEqual(news[0], READY)
        was, reader = self.pid(), self.peer(Reader(self.folder))
        self.server.put("set/0/0.bin", b"another one")  # so it is listed anew
        self.assertEqual(reader.read("0/0.bin", 3, 5)[0][0], CHANGED)
        self.server.gone, self.server.is_first_there = 403, True
        self.assertEqual(self.peer(Job(self.folder)).wait()[0], REFUSED)
        self.assertEqual((self.work / "folder" / "keys").read_bytes(), bytes(32))
        self.assertIn("403", self.start("/set/", HF_TOKEN="same", code=1))
        self.assertEqual(self.pid(), was)
        self.assertEqual(reader.read("1/1.bin", 3, 5)[0][0], GOOD)
        self.assertEqual(select.select([job.socket], [], [], 0)[0], [])

    def test_listings_that_break(self):
        """Who is not refused, but cannot list, has the credentials that it had."""
        self.fill()
        self.job("/set/", HF_TOKEN="same")
        was, keys, reader = self.pid(), self.work / "folder" / "keys", self.peer(Reader(self.folder))
        before = keys.read_bytes()
        self.server.put("set/0/0.bin", b"another one")  # so it is listed anew
        self.assertEqual(reader.read("0/0.bin", 3, 5)[0][0], CHANGED)
        self.server.gone = 404
        self.assertEqual(self.peer(Job(self.folder)).wait()[0], REFUSED)
        self.assertEqual(keys.read_bytes(), before)
        self.start("/set/", HF_TOKEN="same")
        self.assertEqual(self.pid(), was)

    def test_other_credentials_of_no_bytes(self):
        """What is listed without bytes is not tried, and keeps nobody away."""
        self.server.put("set/a", b"")
        self.server.read_token = "old"
        self.start("/set/", "token=old", HF_TOKEN="old")
        was = self.pid()
        self.start("/set/", "token=lists", HF_TOKEN="lists")
        self.assertNotEqual(self.pid(), was)

    def test_renewed_credentials(self):
        """What it has read anew from a file is not another job's alone."""
        self.fill()
        token = self.work / "token"
        token.write_text("one")
        self.server.token = "a"
        self.job("/set/", "token=a", HF_TOKEN_PATH=str(token))
        was, keys, reader = self.pid(), self.work / "folder" / "keys", self.peer(Reader(self.folder))
        before = keys.read_bytes()
        token.write_text("two")
        self.server.token = "a+"
        self.check(reader, "0/0.bin", 3, 10)
        while keys.read_bytes() == before:
            time.sleep(0.01)
        self.start("/set/", "token=a", HF_TOKEN_PATH=str(token))
        self.assertEqual(self.pid(), was)

    def test_other_credentials_behind_a_listing(self):
        """Jobs that wait for a listing have it before their access-bucket goes."""
        self.fill()
        listing = self.server.held = threading.Event()
        self.start("/set/", HF_TOKEN="old")
        first = self.peer(Job(self.folder))
        other = threading.Thread(target=self.start, args=("/set/",), kwargs={"HF_TOKEN": "new"})
        other.start()
        while "yields" not in (self.work / "folder" / "log").read_text():
            time.sleep(0.01)
        listing.set()
        self.assertEqual(first.wait()[0], READY)
        self.assertEqual(first.wait()[0], MOVED)
        other.join()

    def test_markers(self):
        """Objects without bytes of a folder's name, as ADLS has them, are passed over, that of the URL, too."""
        for name in ("set", "set/", "set/a", "set/a/", "set/a/1", "set/a/2", "set/b"):
            self.server.put(name, b"bytes" if name[-1].isdigit() else b"")
        _, news = self.job("/set")
        self.assertEqual(news[:3], (READY, 3, 10))
        self.assertEqual(sorted(os.listdir(self.folder + "/data")), ["a", "b"])
        self.check(self.peer(Reader(self.folder)), "a/1", 0, 5)

    def test_trickle(self):
        """A list of which a byte comes now and then is asked for again."""
        self.fill(3)
        self.server.trickle = 1
        _, news = self.job("/set")
        self.assertEqual(news[:2], (READY, 4))
        self.assertEqual(self.server.lists, 3)  # the first one twice

    def test_too_many(self):
        """Who is one too many is told so, and is no trouble to the others."""
        self.fill(3)
        self.job("/set")
        for _ in range(511):
            self.peer(Peer(self.folder))
        what, *_, text = self.peer(Job(self.folder)).wait()
        self.assertEqual((what, text[:19]), (REFUSED, "too many processes "))
        self.assertTrue(self.peer(Reader(self.folder)).ends())
        more = [Peer(self.folder) for _ in range(64 + 1)]
        self.assertTrue(select.select([more[-1].socket], [], [], PATIENCE)[0])
        self.assertEqual(more[-1].socket.recv(1024)[8:12], struct.pack("<I", REFUSED))
        self.assertTrue(more[-1].ends())
        self.assertIn("too many processes", self.start("/set", code=1, HF_TOKEN="other"))
        for peer in more:
            peer.close()
        self.closing.pop(1).close()
        while True:  # as soon as it has noticed
            try:
                self.check(self.peer(Reader(self.folder)), "0/0.bin", 0, 9)
                break
            except (AssertionError, OSError):
                time.sleep(0.01)
        was = self.pid()
        self.peer(Peer(self.folder))
        self.start("/set", HF_TOKEN="other")  # who is to take the place over is no guest
        self.assertNotEqual(self.pid(), was)

    def test_nobody_there(self):
        """What may be the matter with a server that is not reached."""
        done = subprocess.run([PROGRAM, "--list", "plain://127.0.0.1:1/set"], capture_output=True, text=True, timeout=PATIENCE,
                              check=False, env=os.environ | {"no_proxy": "*"})
        self.assertRegex(done.stderr, "127.0.0.1:1: .*is its name right.*https_proxy names a proxy")

    def test_proxy(self):
        """What a proxy is in the way of is not called the server's."""
        self.fill(3)
        server = f"127.0.0.1:{self.server.server_address[1]}"
        said = self.told(http_proxy="http://me:secret@127.0.0.1:1", no_proxy="")
        self.assertIn(f"plain://{server}: {server}: the proxy 127.0.0.1:1 (http_proxy): Failed to connect", said)
        self.assertNotIn("secret", said)
        self.server.wants_login = True
        self.assertIn(f"the proxy {server} (http_proxy) wants a user and a password", self.told(http_proxy=f"http://{server}", no_proxy=""))
        self.server.wants_login = False
        for but in ("*", "10.0.0.1,127.0.0.1"):
            self.wait_end()
            self.assertEqual(self.job("/set/", http_proxy="http://127.0.0.1:1", no_proxy=but)[1][0], READY)

    def told(self, **env):
        """What a job is told."""
        self.start("/set/", **env)
        what, *_, text = self.peer(Job(self.folder)).wait()
        self.assertEqual(what, REFUSED)
        self.wait_end()
        return text

    def test_pages(self):
        self.server.page = 7
        self.fill(50)
        _, news = self.job()
        self.assertEqual(news[:2], (READY, 51))
        self.assertEqual(self.server.lists, 8)

    def test_circle(self):
        """A list that never ends is seen to go round."""
        self.fill(50)
        self.server.page, self.server.circle = 7, "set/0/15.bin"
        _, news = self.job()
        self.assertEqual(news[0], REFUSED)
        self.assertIn("the server's list has no end", news[3])

    def test_refused_while_listing(self):
        """Who reads gets other credentials, however long a list takes."""
        self.fill()
        self.server.goes_on, self.server.read_token = True, "+"
        self.start("/set/")
        job, reader = self.peer(Job(self.folder)), self.peer(Reader(self.folder))
        while not os.path.exists(f"{self.folder}/data/0/0.bin"):
            time.sleep(0.01)
        self.check(reader, "0/0.bin", 0, 9)
        self.server.goes_on = False
        self.assertEqual(job.wait()[0], READY)

    def test_broken(self):
        """Whatever passes is tried again, and goes on at the byte."""
        self.fill()
        self.job("/set")
        reader = self.peer(Reader(self.folder))
        for broken in ([503], [429, 500], ["cut"], ["hang up", "cut", 503], ["cut", "cut", "cut", "cut"]):
            self.server.broken = list(broken)
            self.server.asked.clear()
            self.check(reader, "t-000.tar", 5, 2 << 20)
            self.assertEqual(len(self.server.asked), len(broken) + 1)
        self.assertGreater(int(self.server.asked[-1][1][len("bytes="):].split("-")[0]), 5)
        self.server.broken = [500] * 5
        answer, _ = reader.read("0/0.bin", 0, 9)
        self.assertEqual(answer, (FAILED, 500, "the server says 500"))
        self.check(reader, "0/0.bin", 0, 9)
        self.server.broken = [405]
        answer, _ = reader.read("0/0.bin", 0, 9)
        self.assertEqual(answer, (FAILED, 405, "the server says 405"))

    def test_busy(self):
        """A server that wants fewer questions, or is away for a while, is waited for."""
        self.fill()
        self.job("/set")
        reader = self.peer(Reader(self.folder))
        for broken in ([503] * 6, ["hang up"] * 6):
            self.server.broken = list(broken)
            self.check(reader, "0/0.bin", 0, 9)
            self.assertEqual(self.server.broken, [])

    def test_late(self):
        """An answer that others overtake is asked for once more; what comes then is good."""
        self.fill()
        self.job("/set")
        reader = self.peer(Reader(self.folder))
        others = [("t-000.tar", 400000 + 30000 * i, 9, 4096 * (1 + i)) for i in range(64)]
        reader.ask(others)
        reader.answers(64)
        late, found = reader.id, {}
        self.server.broken = ["late"]
        reader.ask([("0/0.bin", 0, 9, 0)])
        while self.server.broken:
            time.sleep(0.001)
        while late not in found:
            reader.ask([(name, 0, 9, 4096) for name in ("1/1.bin", "2/2.bin", "0/3.bin", "1/4.bin")])
            found |= reader.answers(4)
        found |= reader.answers(reader.id - late - len(found)) if reader.id - late > len(found) else {}
        self.assertEqual(set(found.values()), {(GOOD, 0, "")})
        self.assertEqual(reader.memory[:9], self.server.objects["set/0/0.bin"][:9])
        self.assertEqual([name for name, _ in self.server.asked].count("set/0/0.bin"), 2)

    def test_waits(self):
        """A server says when it wants questions again: no object is asked for sooner."""
        self.fill()
        self.job("/set")
        reader = self.peer(Reader(self.folder))
        for status in (503, 429):
            self.server.told_to_wait, self.server.waited = [], []
            self.server.broken = [(status, "1")]
            self.check(reader, "0/0.bin", 0, 9)
            self.assertGreaterEqual(self.server.waited[0] - self.server.told_to_wait[0], 1)
        self.server.broken = [(503, "Wed, 21 Oct 2015 07:28:00 GMT"), (503, ""), (503, "soon"), (503, "0.5"), (503, "1, 2")]
        self.check(reader, "0/0.bin", 0, 9)
        self.assertEqual(self.server.broken, [])

    def test_says_200(self):
        self.fill()
        self.job("/set")
        self.server.says_200 = True
        self.check(self.peer(Reader(self.folder)), "t-000.tar", 5, 2000)

    def test_changed(self):
        self.fill()
        job, _ = self.job("/set")
        reader = self.peer(Reader(self.folder))
        size = len(self.server.objects["set/0/0.bin"])
        self.server.put("set/0/0.bin", bytes(size))
        answer, data = reader.read("0/0.bin", 0, 9)
        self.assertEqual((answer[0], data), (CHANGED, bytes(9)))
        self.server.put("set/1/1.bin", b"short")
        self.assertEqual(reader.read("1/1.bin", 0, 3)[0][0], CHANGED)
        del self.server.objects["set/2/2.bin"]
        self.assertEqual(reader.read("2/2.bin", 0, 9)[0][:2], (CHANGED, 404))
        # While it goes on: no byte of the other one is told as good.
        self.server.broken = ["cut"]
        self.check(reader, "t-000.tar", 0, 1 << 20)
        self.assertEqual(job.socket.send(head(READ)), 32)
        self.assertTrue(job.ends())

    def test_refused(self):
        """New credentials help once; else it is said why."""
        self.fill()
        self.server.token = "a"
        self.job("/set", "token=a")
        reader = self.peer(Reader(self.folder))
        self.check(reader, "0/0.bin", 0, 9)
        self.server.token = "a+"
        self.check(reader, "0/0.bin", 0, 9)
        self.server.token = "b"
        answer, _ = reader.read("0/0.bin", 0, 9)
        self.assertEqual(answer, (DENIED, 0, "set/0/0.bin: refused with 403"))
        self.server.token = "a+"
        self.check(reader, "0/0.bin", 0, 9)

    def test_no_list(self):
        """Who came for a listing that fails is told, and it ends: the next job starts its own."""
        self.server.token = "b"
        job, news = self.job("/set/", "token=a")
        self.assertEqual((news[0], news[3]), (REFUSED, "set/: refused with 403"))
        self.assertTrue(job.ends())
        with open(self.folder + "/log", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        self.assertFalse(os.path.exists(self.folder + "/socket"))
        self.server.token = None
        self.fill()
        _, news = self.job("/set/")
        self.assertEqual(news[0], READY)

    def test_hopeless(self):
        self.assertIn("there are no credentials", self.start("/", "token=none", code=1))
        self.assertIn('no option "region"', self.start("/", "region=x", code=1))
        self.assertIn("{000..123}", self.start("/{0..1}/x", code=1))
        self.assertFalse(os.path.exists(self.folder + "/socket"))

    def test_arguments(self):
        """What a URL is signed by is not to be seen among processes."""
        self.start("/set?X-Signature=abc")
        arguments = pathlib.Path(f"/proc/{self.pid()}/cmdline").read_bytes()
        self.assertIn(b"plain://", arguments)
        self.assertNotIn(b"abc", arguments)

    def test_nothing(self):
        _, news = self.job("/nothing")
        self.assertEqual(news[0], REFUSED)
        self.assertIn("no object of that name", news[3])

    def test_started_twice(self):
        self.fill()
        self.job("/set")
        pid = self.pid()
        self.start("/set")
        self.assertEqual(self.pid(), pid)

    def test_ends(self):
        """With the last job; what is left says what it is, and is used again."""
        self.fill()
        job = None
        while not job:  # which may come too late
            self.start("/set", keep=1)
            try:
                job = Job(self.folder)
                self.assertEqual(job.wait()[0], READY)
            except (OSError, struct.error):
                job = None
        other = Job(self.folder)
        self.assertEqual(other.wait()[0], READY)
        job.close()
        stat = os.stat(self.folder + "/data/0/0.bin")
        other.close()
        with open(self.folder + "/log", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        self.assertEqual(sorted(os.listdir(self.folder)), ["data", "log", "oneaccess-bucket"])
        note = pathlib.Path(self.folder, "oneaccess-bucket").read_bytes()
        url = f"{self.server.url}/set".encode()
        self.assertEqual(note, struct.pack("<QII48x", MAGIC, len(url), 0) + url)
        _, news = self.job("/set")
        self.assertEqual(news[0], READY)
        self.assertEqual(os.stat(self.folder + "/data/0/0.bin").st_ino, stat.st_ino)

    def test_strangers(self):
        """What makes no sense ends that connection, and no other."""
        self.fill()
        self.job("/set")
        good = self.peer(Reader(self.folder))
        for message in (b"", b"x", head(9), head(READ, 1), head(WATCH)[:31], head(WATCH) + b"x", head(HELLO, 0, 4096)):
            peer = self.peer(Peer(self.folder))
            if message:
                peer.socket.send(message)
            else:
                peer.socket.shutdown(socket.SHUT_WR)
            self.assertTrue(peer.ends(), message)
        self.assertTrue(self.peer(Reader(self.folder, seals=0)).ends())
        twice = self.peer(Reader(self.folder))
        twice.socket.send(head(WATCH))
        self.assertTrue(twice.ends())
        self.check(good, "0/0.bin", 0, 9)

    def test_leaves(self):
        """A reader that goes in the middle of its answers takes its memory along."""
        self.fill()
        self.job("/set")
        for _ in range(5):
            reader = Reader(self.folder)
            reader.ask([("t-000.tar", 30000 * i, 20000, 20000 * i) for i in range(64)])
            reader.close()
        self.check(self.peer(Reader(self.folder)), "t-000.tar", 0, 1 << 20)

    def test_many(self):
        """More than one reader may have unanswered, by several readers at once."""
        self.fill()
        self.job("/set")
        readers = [self.peer(Reader(self.folder)) for _ in range(3)]
        names = [name[len("set/"):] for name in self.server.objects]
        self.server.broken = [503, "cut", "hang up"] * 5

        def run(reader, seed, failed):
            draw = random.Random(seed)
            for _ in range(20):
                first = reader.id
                ranges = [(draw.choice(names), draw.randrange(900), 1 + draw.randrange(100), 4096 * i) for i in range(64)]
                reader.ask(ranges)
                answers = reader.answers(64)
                for i, (name, at, size, place) in enumerate(ranges):
                    if answers[first + i][0] != GOOD or \
                            reader.memory[place:place + size] != self.server.objects["set/" + name][at:at + size]:
                        failed.append((name, answers[first + i]))

        failed = []
        threads = [threading.Thread(target=run, args=(reader, i, failed)) for i, reader in enumerate(readers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_listed_anew(self):
        """A job that comes later sees what is there then."""
        self.fill()
        self.start("/set")
        job = self.peer(Job(self.folder))
        self.assertEqual(job.wait()[1], 21)
        self.server.put("set/new", b"new")
        del self.server.objects["set/0/0.bin"]
        count = 0
        while not os.path.exists(self.folder + "/data/new"):  # for BUCKET_FRESH_S one listing is as good as another
            later = Job(self.folder)
            self.assertEqual(later.wait()[0], READY)
            later.close()
            count += 1
        self.assertFalse(os.path.exists(self.folder + "/data/0/0.bin"))
        self.assertEqual(os.stat(self.folder + "/data/new").st_size, 3)

    def test_listed_anew_behind_a_change(self):
        """Who opens it again since an object was replaced sees the new one at once."""
        self.fill()
        self.start("/set")
        job = self.peer(Job(self.folder))
        self.assertEqual(job.wait()[1], 21)
        reader = self.peer(Reader(self.folder))
        self.server.put("set/0/0.bin", bytes(1000))
        self.assertEqual(reader.read("0/0.bin", 0, 9)[0][0], CHANGED)
        later = self.peer(Job(self.folder))
        self.assertEqual(later.wait()[0], READY)
        self.check(reader, "0/0.bin", 0, 9)

    def test_printed(self):
        self.fill(3)
        done = subprocess.run([PROGRAM, "--list", self.server.url + "/set"], capture_output=True, text=True, check=True)
        self.assertEqual([line.split()[::2] for line in done.stdout.splitlines()],
                         [["1000", "0/0.bin"], ["1007", "1/1.bin"], ["1014", "2/2.bin"], [str(3 << 20), "t-000.tar"]])
        self.assertIn("2023-11-14T22:13:20Z", done.stdout)

    def test_not_dumpable(self):
        """Nobody of the user's reads the credentials out of its memory; root may, so it is the flag that counts."""
        self.fill()
        self.job("/set", "token=secret-of-the-test")
        pid = self.pid()
        self.assertEqual(os.stat(f"/proc/{pid}/environ").st_uid, 0)
        self.assertNotIn("secret", pathlib.Path(self.folder, "log").read_text())


if __name__ == "__main__":
    unittest.main()
