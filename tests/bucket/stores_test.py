#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real access-bucket against a server that answers as the Hub, Google Cloud Storage, Azure and any other server of HTTP
do: what is listed, and that bytes come."""

import array
import base64
import datetime
import email.utils
import fcntl
import hashlib
import hmac
import http.server
import json
import mmap
import os
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

PROGRAM = os.path.join(os.environ.get("top_builddir", "."), "bucket/access-bucket")
MAGIC = 0x314B4342214F4121
WATCH, HELLO, READ = 1, 2, 3
READY, REFUSED = 2, 3
GOOD, CHANGED = 0, 1
PATIENCE_S = 60
WHEN = "Fri, 27 Nov 2026 09:00:00 GMT"
COMMIT = "1f2e3d4c5b6a79880123456789abcdef01234567"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
FILES = {
    "data/a b.bin": bytes(range(256)) * 40,
    "data/sub/c.bin": b"c" * 100000,
    "data/sub/\u00e9.bin": b"few",
    "other/d.bin": b"not asked for",
}


def etag_of(body):
    return '"%s"' % hashlib.md5(body, usedforsecurity=False).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def say(self, status, body=b"", **headers):
        if isinstance(body, str):
            body = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def bytes_of(self, body, **headers):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not asked:
            return self.say(200, body, **headers)
        first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
        headers["Content_Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.say(206, body[first : last + 1], **headers)

    def do(self):
        size = int(self.headers.get("Content-Length") or 0)
        self.form = self.rfile.read(size).decode()
        url = urllib.parse.urlsplit(self.path)
        self.raw = url.path
        self.at = urllib.parse.unquote(url.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        with self.server.lock:
            self.server.asked.append((self.command, self.path, dict(self.headers.items()), self.form))
        self.server.answer(self)

    do_GET = do_HEAD = do_POST = do


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.lock = threading.Lock()
        self.asked = []
        self.files = dict(FILES)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def end(self):
        self.shutdown()
        self.thread.join()
        self.server_close()


class Bucket:
    """A folder of access-bucket, with a job that wants it and a reader."""

    def __init__(self, test, url, options=(), env=None):
        self.folder = tempfile.TemporaryDirectory(dir=test.scratch)
        self.name = os.path.join(self.folder.name, "f")
        os.mkdir(self.name, 0o700)
        done = subprocess.run(
            [PROGRAM, self.name, url, *options],
            env=test.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
        if done.returncode:
            raise AssertionError(done.stderr.decode())
        self.job = self.connect()
        self.job.send(struct.pack("<QIIQQ", MAGIC, WATCH, 0, 0, 0))
        while True:
            news = struct.unpack("<QIIQQ992s", self.job.recv(1024))
            if news[1] == REFUSED:
                raise AssertionError(news[5].split(b"\0")[0].decode())
            if news[1] == READY:
                break
        self.memory_fd = os.memfd_create("memory", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.memory_fd, 1 << 20)
        fcntl.fcntl(self.memory_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.memory = mmap.mmap(self.memory_fd, 1 << 20)
        self.reader = self.connect()
        hello = struct.pack("<QIIQQ", MAGIC, HELLO, 0, 1 << 20, 0)
        self.reader.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.memory_fd]))])

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(PATIENCE_S)
        connection.connect(os.path.join(self.name, "socket"))
        return connection

    def listed(self):
        data = os.path.join(self.name, "data")
        return {
            os.path.relpath(os.path.join(folder, name), data): os.stat(os.path.join(folder, name))
            for folder, _, names in os.walk(data)
            for name in names
        }

    def read(self, name, at, size):
        """The status, and the bytes of a range."""
        is_now = os.stat(os.path.join(self.name, "data", name))
        raw = name.encode()
        ask = struct.pack("<QQQQqIIQQ", 7, at, 4096, is_now.st_size, is_now.st_mtime_ns, size, len(raw), 0, 0)
        self.reader.send(struct.pack("<QIIQQ", MAGIC, READ, 1, 0, 0) + ask + raw)
        answer, status, code, text = struct.unpack("<QIi48s", self.reader.recv(64))
        assert answer == 7
        self.said = (code, text.split(b"\0")[0].decode())
        return status, self.memory[4096 : 4096 + size]

    def read_all(self, names):
        """Their first bytes, by one question: the statuses."""
        asks = b""
        for i, name in enumerate(names):
            is_now = os.stat(os.path.join(self.name, "data", name))
            asks += struct.pack("<QQQQqIIQQ", i, 0, 4096 * i, is_now.st_size, is_now.st_mtime_ns, 1, len(name.encode()), 0, 0)
        self.reader.send(struct.pack("<QIIQQ", MAGIC, READ, len(names), 0, 0) + asks + "".join(names).encode())
        statuses = []
        while len(statuses) < len(names):
            message = self.reader.recv(65536)
            statuses += [struct.unpack_from("<QI", message, at)[1] for at in range(0, len(message), 64)]
        return set(statuses)

    def end(self):
        peer = self.job.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process = os.pidfd_open(struct.unpack("3i", peer)[0])
        signal.pidfd_send_signal(process, signal.SIGTERM)
        select.select([process], [], [], PATIENCE_S)
        os.close(process)
        self.job.close()
        self.reader.close()
        self.memory.close()
        os.close(self.memory_fd)
        self.folder.cleanup()


class Stores(unittest.TestCase):
    def setUp(self):
        self.scratch_folder = tempfile.TemporaryDirectory()
        self.scratch = self.scratch_folder.name
        self.addCleanup(self.scratch_folder.cleanup)

    def serve(self, answer):
        server = Server(answer)
        self.addCleanup(server.end)
        return server

    def bucket(self, url, *options, **env):
        bucket = Bucket(self, url, options, env)
        self.addCleanup(bucket.end)
        return bucket

    def environment(self, env):
        mine = {name: os.environ[name] for name in os.environ if re.match("PATH$|TMPDIR$|[A-Z]*SAN_OPTIONS$|LD_", name)}
        return mine | {"HOME": self.scratch, "no_proxy": "127.0.0.1"} | (env or {})

    def refusal(self, url, *options, **env):
        done = subprocess.run(
            [PROGRAM, "--list", url, *options],
            env=self.environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
        self.assertNotEqual(done.returncode, 0)
        return done.stderr.decode()

    def is_like(self, bucket, files):
        """The placeholders are those, and any range of each comes."""
        listed = bucket.listed()
        self.assertEqual({name: st.st_size for name, st in listed.items()}, {n: len(b) for n, b in files.items()})
        for name, body in files.items():
            self.assertTrue(stat.S_ISREG(listed[name].st_mode))
            for at, size in ((0, len(body)), (len(body) // 3, len(body) // 2)):
                status, data = bucket.read(name, at, size)
                self.assertEqual((status, bucket.said), (GOOD, (0, "")), name)
                self.assertEqual(data, body[at : at + size], name)

    # ---- any server of HTTP ----

    def test_https(self):
        def answer(ask):
            body = ask.server.files.get("data" + ask.at)
            if body is None:
                return ask.say(404, "no such thing")
            if ask.headers.get("Authorization") != "Bearer t0k":
                return ask.say(401)
            return ask.bytes_of(body, ETag=etag_of(body), Last_Modified=WHEN)

        server = self.serve(answer)
        server.files = {f"data/s-{i:03}.tar": b"%d" % i * 1000 for i in range(12)}
        token = os.path.join(self.scratch, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("t0k\n")
        bucket = self.bucket(f"http://{server.host}/s-{{000..011}}.tar", f"token_file={token}")
        self.is_like(bucket, {name[5:]: body for name, body in server.files.items()})
        server.files["data/s-003.tar"] = b"4" * 1000
        self.assertEqual(bucket.read("s-003.tar", 0, 10)[0], CHANGED)
        said = self.refusal(f"http://{server.host}/none.tar", f"token_file={token}")
        self.assertIn("answers 404: there is nothing of that name", said)
        said = self.refusal(f"http://{server.host}/s-000.tar")
        self.assertIn("say token_file=PATH", said)

    # Signed for GET alone; the signature is in no message, and not in the file's name.
    def test_presigned(self):
        def answer(ask):
            if ask.command != "GET" or ask.query.get("Signature") != "a/b":
                return ask.say(403, "<Error><Message>Request has expired</Message></Error>")
            return ask.bytes_of(FILES["data/sub/c.bin"], ETag=etag_of(b"c"), Last_Modified=WHEN)

        server = self.serve(answer)
        url = f"http://{server.host}/x/c.bin?Expires=1&Signature=a/b"
        bucket = self.bucket(url)
        self.is_like(bucket, {"c.bin": FILES["data/sub/c.bin"]})
        said = self.refusal(url.replace("a/b", "s3cret"))
        self.assertIn("answers 403 (Request has expired): is what stands behind", said)
        self.assertNotIn("s3cret", said)

    # What changes without a word cannot be told from what stays.
    def test_no_tag(self):
        server = self.serve(lambda ask: ask.bytes_of(b"x" * 100))
        self.assertIn("ETag", self.refusal(f"http://{server.host}/x.bin"))

    # ---- the Hub ----

    def hub(self):
        def cdn_answer(ask):
            if ask.query["sig"] != ask.server.signature:
                if ask.server.together:
                    ask.server.together.wait(PATIENCE_S)
                return ask.say(403, "<Error><Message>Request has expired</Message></Error>")
            return ask.bytes_of(FILES[ask.at[1:]], ETag='"of-the-cdn"', Last_Modified=WHEN)

        cdn = self.serve(cdn_answer)
        cdn.signature, cdn.together = "first", None

        def entry(path):
            body = FILES[path]
            lfs = {"lfs": {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 134}}
            oid = hashlib.sha1(body, usedforsecurity=False).hexdigest()
            return {"type": "file", "path": path, "size": len(body), "oid": oid} | (lfs if len(body) > 5000 else {})

        def answer(ask):
            api, repo = "/api/datasets/O/N", "/datasets/O/N/resolve/" + COMMIT
            if ask.headers.get("Authorization") != "Bearer hf_t0k":
                return ask.say(401, '{"error": "Invalid username or password."}')
            if ask.at == api + "/revision/main":
                return ask.say(200, json.dumps({"id": "O/N", "sha": COMMIT}))
            if ask.at == f"{api}/paths-info/{COMMIT}" and ask.command == "POST":
                wanted = urllib.parse.parse_qs(ask.form)["paths"]
                return ask.say(200, json.dumps([entry(path) for path in wanted if path in FILES]))
            if ask.at.startswith(f"{api}/tree/{COMMIT}"):
                below = ask.at[len(f"{api}/tree/{COMMIT}") :].strip("/")
                if below and not any(path.startswith(below + "/") for path in FILES):
                    return ask.say(404, '{"error": "None does not exist"}')
                page = [entry(path) for path in sorted(FILES, reverse=True) if path.startswith(below)]
                first = int(ask.query.get("cursor", 0))
                more = {}
                if first + 1 < len(page):
                    more["Link"] = f'<https://huggingface.co{ask.raw}?cursor={first + 1}&more={ask.server.more}>; rel="next"'
                return ask.say(200, json.dumps(page[first : first + 1]), **more)
            if ask.at.startswith(repo) and ask.at[len(repo) + 1 :] in FILES:
                return ask.say(302, Location=f"http://{cdn.host}{ask.raw[len(repo) :]}?sig={cdn.signature}", ETag='"linked"')
            return ask.say(404, "Not Found")

        server = self.serve(answer)
        server.more = "x" * 4000  # a cursor may be long
        return server, cdn

    def test_hf(self):
        hub, cdn = self.hub()
        env = {"HF_ENDPOINT": f"http://{hub.host}", "HF_TOKEN": "hf_t0k"}
        bucket = self.bucket("hf://datasets/O/N/data", **env)
        self.is_like(bucket, {name[5:]: body for name, body in FILES.items() if name.startswith("data/")})
        times = {st.st_mtime_ns for st in bucket.listed().values()}
        self.assertEqual(len(times), 3)
        one = self.bucket("hf://datasets/O/N/data/sub/c.bin", **env)
        self.is_like(one, {"c.bin": FILES["data/sub/c.bin"]})
        self.assertEqual(one.listed()["c.bin"].st_mtime_ns, bucket.listed()["sub/c.bin"].st_mtime_ns)
        # A file of which a range was read is at the CDN: the Hub is asked once for each.
        resolved = [path for _, path, _, _ in hub.asked if "/resolve/" in path]
        self.assertEqual(len(resolved), 4)
        self.assertEqual(len(cdn.asked), 8)
        cdn.signature = "second"  # the other has ended
        self.assertEqual(bucket.read("sub/c.bin", 5, 10), (GOOD, b"c" * 10))
        # All end at once: each of those that were asked together comes.
        cdn.signature, names = "third", sorted(bucket.listed())
        cdn.together = threading.Barrier(len(names), action=lambda: setattr(cdn, "together", None))
        self.assertEqual(bucket.read_all(names), {GOOD})
        for _, _, headers, _ in cdn.asked:
            self.assertNotIn("Authorization", headers)
        hub.more = "x" * 20000
        self.assertIn("a link of more than 8191 bytes", self.refusal("hf://datasets/O/N/data", **env))
        said = self.refusal("hf://datasets/O/N", "anonymous=1", **env)
        self.assertIn("answers 401 (Invalid username or password.): it is private, gated", said)
        self.assertIn("there is no such data set", self.refusal("hf://datasets/O/N/none/", **env))

    # ---- Google Cloud Storage ----

    def test_gs(self):
        generation = {name: str(1700000000000000 + i) for i, name in enumerate(FILES)}
        tokens = iter(range(1, 100))

        def answer(ask):
            if ask.at.startswith("/computeMetadata/"):
                if ask.headers.get("Metadata-Flavor") != "Google":
                    return ask.say(403)
                return ask.say(200, json.dumps({"access_token": f"ya29.{next(tokens)}", "expires_in": 3599}))
            if not ask.headers.get("Authorization", "").startswith("Bearer ya29."):
                return ask.say(401, json.dumps({"error": {"code": 401, "message": "Anonymous caller"}}))
            if ask.at == "/storage/v1/b/my-bucket/o":
                names = sorted(n for n in ask.server.files if n.startswith(ask.query["prefix"]))
                first = int(ask.query.get("pageToken", 0))
                items = [
                    {"name": n, "size": str(len(ask.server.files[n])), "generation": generation[n]}
                    for n in names[first : first + 2]
                ]
                more = {"nextPageToken": str(first + 2)} if first + 2 < len(names) else {}
                return ask.say(200, json.dumps({"items": items} | more))
            body = ask.server.files.get(ask.at.removeprefix("/my-bucket/"))
            if body is None:
                return ask.say(404, "<Error><Message>No such object</Message></Error>")
            # Metadata were changed: another Last-Modified, the same generation.
            return ask.bytes_of(
                body,
                ETag=etag_of(body),
                Last_Modified="Sat, 28 Nov 2026 09:00:00 GMT",
                x_goog_generation=generation[ask.at.removeprefix("/my-bucket/")],
            )

        server = self.serve(answer)
        env = {"GCE_METADATA_HOST": server.host}
        endpoint = f"endpoint=http://{server.host}"
        bucket = self.bucket("gs://my-bucket/data", endpoint, **env)
        self.is_like(bucket, {name[5:]: body for name, body in FILES.items() if name.startswith("data/")})
        generation["data/sub/c.bin"] = "1800000000000000"
        self.assertEqual(bucket.read("sub/c.bin", 0, 10)[0], CHANGED)
        said = self.refusal("gs://my-bucket/data", endpoint, "anonymous=1", **env)
        self.assertIn("answers 401 (Anonymous caller) to nobody: the bucket is not public", said)

    # ---- Azure ----

    def signed(self, ask):
        """Shared Key, as its manual says."""
        names = "Content-Encoding Content-Language Content-Length Content-MD5 Content-Type Date If-Modified-Since If-Match "
        lines = [ask.command]
        lines += [ask.headers.get(name, "") for name in (names + "If-None-Match If-Unmodified-Since Range").split()]
        lines += sorted(f"{n.lower()}:{v}" for n, v in ask.headers.items() if n.lower().startswith("x-ms-"))
        lines += ["/acc" + ask.raw] + sorted(f"{n}:{v}" for n, v in ask.query.items())
        mac = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
        return "SharedKey acc:" + base64.b64encode(mac).decode()

    def azure(self, is_good):
        def answer(ask):
            if not is_good(ask):
                return ask.say(403, "<Error><Code>AuthenticationFailed</Code><Message>Server failed</Message></Error>")
            when = email.utils.parsedate_to_datetime(ask.headers.get("x-ms-date", WHEN))
            assert abs((when - datetime.datetime.now(datetime.timezone.utc)).days) < 10000
            if ask.query.get("comp") == "list":
                names = sorted(n for n in FILES if n.startswith(ask.query["prefix"]))
                first = int(ask.query.get("marker", 0))
                blobs = "".join(
                    f"<Blob><Name>{n}</Name><Properties><Last-Modified>{WHEN}</Last-Modified><Etag>0x{i}</Etag>"
                    f"<Content-Length>{len(FILES[n])}</Content-Length></Properties></Blob>"
                    for i, n in list(enumerate(names, 16))[first : first + 2]
                )
                more = str(first + 2) if first + 2 < len(names) else ""
                return ask.say(
                    200,
                    '\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>'
                    f"{blobs}</Blobs><NextMarker>{more}</NextMarker></EnumerationResults>",
                )
            name = ask.at.removeprefix("/acc/c/")
            number = sorted(n for n in FILES if n.startswith("data/")).index(name) + 16
            return ask.bytes_of(FILES[name], ETag=f'"0x{number}"', Last_Modified=WHEN)

        server = self.serve(answer)
        return server, f"endpoint=http://{server.host}/acc"

    def test_azure(self):
        wanted = {name[5:]: body for name, body in FILES.items() if name.startswith("data/")}
        _, endpoint = self.azure(lambda ask: ask.headers.get("Authorization") == self.signed(ask))
        self.is_like(self.bucket("az://acc/c/data", endpoint, AZURE_STORAGE_KEY=KEY), wanted)
        said = self.refusal("az://acc/c/data", endpoint, AZURE_STORAGE_KEY=base64.b64encode(b"other").decode())
        self.assertIn("answers 403 (Server failed) to AZURE_STORAGE_KEY: is it the key of this account", said)

    def test_azure_sas(self):
        wanted = {name[5:]: body for name, body in FILES.items() if name.startswith("data/")}
        _, endpoint = self.azure(lambda ask: ask.query.get("sig") == "a/b=" and ask.query.get("sp") == "rl")
        env = {"AZURE_STORAGE_SAS_TOKEN": "sp=rl&sig=a%2Fb%3D"}
        url = "abfss://c@acc.dfs.core.windows.net/data"
        self.is_like(self.bucket(url, endpoint, **env), wanted)
        said = self.refusal(url, endpoint, AZURE_STORAGE_SAS_TOKEN="sp=r&sig=s3cret")
        self.assertIn("may it read and list (sp=rl)", said)
        self.assertNotIn("s3cret", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
