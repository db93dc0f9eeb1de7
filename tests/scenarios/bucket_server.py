#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bucket_server.py serve FOLDER [OPTION...]     an object store of the folders in FOLDER
bucket_server.py set PORT NAME=VALUE...       switches its faults
bucket_server.py counts PORT [NAME]           what it was asked for: JSON, or one of the numbers
bucket_server.py until PORT NAME NUMBER       waits until that number is reached

A small S3, written from Amazon's description of it (ListObjectsV2, GetObject, HeadObject, Signature Version 4), on the loopback. A bucket
is a folder in FOLDER, an object a file below it, read anew at each request, so files that are replaced or removed are objects that are; an
empty folder is an object of no bytes whose key ends in "/". The same is served without signatures where --anonymous is given, as a plain
web server's files are. It prints its port, and ends with its parent.

  --key ID:SECRET[:TOKEN]   who may read, several times; none: all must be anonymous
  --anonymous               requests without a signature are served
  --region NAME             that of all buckets (us-east-1)
  --cert FILE               HTTPS with the certificate and the key in FILE
  --port N                  (0: a free one)

Faults are numbers, 0 at first. N: each N-th request that they concern; N/M: the first M of these, and then none; +K: the first K requests
of each object, and of each page of a list. `only` is a part that keys must have for faults of objects.

  slow_down      503 SlowDown, lists too          internal       500 InternalError, lists too
  reset          the connection is reset in the middle of an object
  cut            it is closed there, with no error of the network
  stall          no byte follows the middle of an object, until this fault is 0
  silent         no byte of an answer, until this fault is 0, lists too
  trickle        a byte a tenth of a second       stop_heads     a HEAD is answered by 403
  wrong_range    Content-Range of another place   wrong_total    Content-Range of another size
  short          fewer bytes than were asked for, and said so
  long           more of them                     whole          200 and the whole object
  other_etag     another ETag                     no_etag        none
  missing        404 NoSuchKey                    denied         403 AccessDenied, lists too
  garbage        a list that is no XML            endless        a list without an end
  loop           a list whose next page is itself html           a page of HTML for a list
  latency_ms     each answer waits                page           keys of a page of a list (1000)
  etag_parts     ETags as of uploads in parts     expired        requests of key number N (1: the first) are expired
  region=NAME    where buckets are: 301 for others (x-amz-bucket-region), 400 in lists
"""
import argparse
import base64
import binascii
import calendar
import datetime
import email.utils
import hashlib
import hmac
import http.server
import json
import os
import re
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

MOST_PAGE = 1000
SKEW_S = 900
ENDLESS_BYTES = 1 << 32
OF_LISTS = {"slow_down", "internal", "silent", "denied"}
OF_OBJECTS = OF_LISTS | {"reset", "cut", "stall", "trickle", "wrong_range", "wrong_total", "short", "long", "whole", "other_etag", "no_etag",
                         "missing"}
SWITCHES = {"garbage", "endless", "loop", "html", "latency_ms", "page", "etag_parts", "expired", "stop_heads"}


class Refusal(Exception):
    def __init__(self, status, code, text, headers=()):
        super().__init__(text)
        self.status, self.code, self.text, self.headers = status, code, text, headers


class State:
    """What is switched, and what was counted."""

    def __init__(self, options):
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.root = os.path.abspath(options.folder)
        self.keys = [key.split(":") for key in options.key]
        self.anonymous = options.anonymous
        self.region = options.region
        self.only = ""
        self.every = {}  # a fault: (each N-th, the first M or None), or (-K, None)
        self.seen = {}  # a fault: requests that it concerned; and for each of them how often it came
        self.tags = {}  # a path: its size, time and MD5
        self.in_flight = 0
        self.clear()

    def clear(self):
        self.counts = {"requests": 0, "lists": 0, "gets": 0, "heads": 0, "bytes": 0, "connections": 0, "in_flight_most": 0, "refused": 0,
                       "unsigned": 0, "done": {}, "by_key": {}, "by_object": {}}

    def count(self, name, by=1):
        with self.changed:
            self.counts[name] += by
            self.changed.notify_all()

    def count_of(self, table, name, by=1):
        with self.changed:
            self.counts[table][name] = self.counts[table].get(name, 0) + by
            self.changed.notify_all()

    def switch(self, name, value):
        with self.changed:
            if name in ("region", "only"):
                setattr(self, name, value)
            elif name == "clear":
                self.clear()
            elif name in OF_OBJECTS | SWITCHES:
                number, _, first = value.partition("/")
                self.every[name] = -int(number) if number.startswith("+") else int(number), int(first) if first else None
                self.seen[name] = {"": 0}
            else:
                raise ValueError(f"no fault {name}")
            self.changed.notify_all()

    def value(self, name):
        return self.every.get(name, (0, None))[0]

    def hits(self, name, key, what):
        """Whether this request is one of those that get the fault; what: of this object, or page."""
        with self.changed:
            number, first = self.every.get(name, (0, None))
            if number == 0 or self.only not in key:
                return False
            which = what if number < 0 else ""
            seen = self.seen[name][which] = self.seen[name].get(which, 0) + 1
            if seen > -number if number < 0 else seen % number or first is not None and seen // number > first:
                return False
            self.counts["done"][name] = self.counts["done"].get(name, 0) + 1
            self.changed.notify_all()
            return True

    def wait_off(self, name):
        with self.changed:
            self.changed.wait_for(lambda: not self.every[name][0], 3600)

    def tag(self, path):
        """Size, time and ETag of a file."""
        found = os.stat(path)
        as_it_is = found.st_size, found.st_mtime_ns, found.st_ino
        with self.lock:
            kept = self.tags.get(path)
        if not kept or kept[0] != as_it_is:
            digest = hashlib.md5()
            with open(path, "rb") as opened:
                while part := opened.read(1 << 20):
                    digest.update(part)
            kept = as_it_is, digest.hexdigest()
            with self.lock:
                self.tags[path] = kept
        md5 = kept[1]
        if self.value("etag_parts"):
            md5 = hashlib.md5(bytes.fromhex(md5)).hexdigest() + "-3"
        return found.st_size, int(found.st_mtime), f'"{md5}"'


# ---- Signature Version 4, "Authenticating Requests (AWS Signature Version 4)" ------------------------------------------------------


def encoded(text, keep=""):
    return urllib.parse.quote(text, safe="-_.~" + keep)


def canonical_query(query):
    pairs = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        pairs.append((encoded(urllib.parse.unquote(name)), encoded(urllib.parse.unquote(value))))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def signing_key(secret, date, region, service):
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def check_signature(state, method, path, query, headers, body):
    """Refusal, or the number of the key that signed this; None: nobody did."""
    said = headers.get("Authorization")
    if said is None:
        if state.anonymous:
            state.count("unsigned")
            return None
        raise Refusal(403, "AccessDenied", "Access Denied")
    found = re.fullmatch(r"AWS4-HMAC-SHA256 +Credential=([^,]+), *SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})", said)
    if not found:
        raise Refusal(400, "AuthorizationHeaderMalformed", "The authorization header is malformed")
    credential, signed, signature = found.groups()
    scope = credential.split("/")
    if len(scope) != 5 or scope[3:] != ["s3", "aws4_request"]:
        raise Refusal(400, "AuthorizationHeaderMalformed", "The credential is not KEY/DATE/REGION/s3/aws4_request")
    identity, date, region = scope[:3]
    number = next((i for i, key in enumerate(state.keys) if key[0] == identity), None)
    if number is None:
        raise Refusal(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
    key = state.keys[number]
    at = headers.get("x-amz-date", "")
    try:
        then = calendar.timegm(datetime.datetime.strptime(at, "%Y%m%dT%H%M%SZ").timetuple())
    except ValueError:
        raise Refusal(403, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header") from None
    if abs(then - time.time()) > SKEW_S:
        raise Refusal(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
    if date != at[:8]:
        raise Refusal(400, "AuthorizationHeaderMalformed", "The credential's date is not the request's")
    names = signed.split(";")
    if names != sorted(names) or "host" not in names:
        raise Refusal(403, "SignatureDoesNotMatch", "The signed headers are not in order, or host is not among them")
    for name in headers:
        if name.lower().startswith("x-amz-") and name.lower() not in names:
            raise Refusal(403, "AccessDenied", f"There were headers present in the request which were not signed: {name}")
    hashed = headers.get("x-amz-content-sha256")
    if hashed is None:
        raise Refusal(400, "MissingSecurityHeader", "Missing required header for this request: x-amz-content-sha256")
    if hashed != "UNSIGNED-PAYLOAD" and hashed != hashlib.sha256(body).hexdigest():
        raise Refusal(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
    try:
        lines = "".join(f"{name}:{','.join(re.sub(' +', ' ', value.strip()) for value in headers.get_all(name))}\n" for name in names)
    except TypeError:
        raise Refusal(403, "SignatureDoesNotMatch", "A signed header is not there") from None
    canonical = "\n".join((method, encoded(urllib.parse.unquote(path), "/"), canonical_query(query), lines, signed, hashed))
    to_sign = "\n".join(("AWS4-HMAC-SHA256", at, "/".join(scope[1:]), hashlib.sha256(canonical.encode()).hexdigest()))
    due = hmac.new(signing_key(key[1], date, region, "s3"), to_sign.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(due, signature):
        raise Refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
    if state.value("expired") == number + 1:
        raise Refusal(400, "ExpiredToken", "The provided token has expired.")
    if headers.get("x-amz-security-token") != (key[2] if len(key) > 2 else None):
        raise Refusal(400, "InvalidToken", "The provided token is malformed or otherwise invalid.")
    if region != state.region:
        there = [("x-amz-bucket-region", state.region)]
        if "list-type" in query:
            raise Refusal(400, "AuthorizationHeaderMalformed", f"The authorization header is malformed; the region '{region}' is wrong", there)
        raise Refusal(301, "PermanentRedirect", "The bucket you are attempting to access must be addressed using the specified endpoint.", there)
    return number


# ---- requests ----------------------------------------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "bucket_server"
    timeout = 600

    def setup(self):
        self.server.state.count("connections")
        if self.server.tls:
            self.request.settimeout(60)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve()

    def do_HEAD(self):
        self.serve()

    def do_POST(self):
        self.serve()

    do_PUT = do_DELETE = do_POST

    def serve(self):
        state = self.server.state
        self.close_connection = False
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        if path.startswith("/_"):
            return self.control(path, query)
        with state.changed:
            state.counts["requests"] += 1
            state.in_flight += 1
            state.counts["in_flight_most"] = max(state.counts["in_flight_most"], state.in_flight)
            state.changed.notify_all()
        try:
            if state.value("latency_ms"):
                time.sleep(state.value("latency_ms") / 1000)
            self.answer(path, query)
        except Refusal as why:
            state.count("refused")
            self.refuse(why)
        except (ConnectionError, ssl.SSLError, TimeoutError):
            self.close_connection = True
        finally:
            with state.lock:
                state.in_flight -= 1

    def control(self, path, query):
        state = self.server.state
        if path == "/_set":
            try:
                for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
                    state.switch(name, value)
            except ValueError as why:
                return self.reply(400, [], str(why).encode())
        with state.lock:
            counts = json.dumps(state.counts, sort_keys=True).encode()
        self.reply(200, [("Content-Type", "application/json")], counts)

    def reply(self, status, headers, body, length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("x-amz-request-id", "4442587FB7D0A2F9")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, why):
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{why.code}</Code><Message>{escape(why.text)}</Message>'
                f"<Resource>{escape(self.path)}</Resource><RequestId>4442587FB7D0A2F9</RequestId></Error>").encode()
        self.reply(why.status, [("Content-Type", "application/xml"), *why.headers], body)

    def answer(self, path, query):
        state = self.server.state
        check_signature(state, self.command, path, query, self.headers, self.body)
        if self.command not in ("GET", "HEAD"):
            raise Refusal(405, "MethodNotAllowed", "The specified method is not allowed against this resource.")
        bucket, _, key = urllib.parse.unquote(path)[1:].partition("/")
        host = self.headers.get("Host", "").partition(".")[0]
        if host and os.path.isdir(os.path.join(state.root, host)):  # BUCKET.HOST
            bucket, key = host, urllib.parse.unquote(path)[1:]
        if not bucket or bucket.startswith(".") or not os.path.isdir(os.path.join(state.root, bucket)):
            raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist")
        wanted = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        is_list = not key
        for fault in sorted(OF_LISTS if is_list else OF_OBJECTS):
            if fault in ("slow_down", "internal", "silent", "denied", "missing") and self.hits(fault, key):
                self.fail(fault)
        if is_list:
            return self.list(bucket, wanted)
        return self.object(bucket, key)

    def hits(self, fault, key):
        return self.server.state.hits(fault, key, f"{self.command} {self.path}")

    def fail(self, fault):
        state = self.server.state
        if fault == "slow_down":
            raise Refusal(503, "SlowDown", "Please reduce your request rate.")
        if fault == "internal":
            raise Refusal(500, "InternalError", "We encountered an internal error. Please try again.")
        if fault == "denied":
            raise Refusal(403, "AccessDenied", "Access Denied")
        if fault == "missing":
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        state.wait_off(fault)

    # ---- lists

    def keys(self, bucket):
        top = os.path.join(self.server.state.root, bucket)
        found = []
        for folder, folders, files in os.walk(top, followlinks=True):
            below = os.path.relpath(folder, top)
            below = "" if below == "." else below + "/"
            found += [below + name for name in files]
            if below and not folders and not files:
                found.append(below)
        return sorted(found, key=lambda name: name.encode())

    def list(self, bucket, wanted):
        state = self.server.state
        state.count("lists")
        if self.command == "HEAD":
            return self.reply(200, [("x-amz-bucket-region", state.region)], b"")
        if wanted.get("list-type") != "2":
            raise Refusal(501, "NotImplemented", "Only list-type=2 is here")
        if state.value("html"):
            return self.reply(200, [("Content-Type", "text/html")], b"<!doctype html><html><body>Please log in<br></body></html>")
        if state.value("garbage"):
            return self.reply(200, [("Content-Type", "application/xml")], b"<?xml version=\"1.0\"?><ListBucketResult><Contents><Key>a</Wrong>\0\xff<<<")
        if state.value("endless"):
            return self.endless()
        prefix, delimiter = wanted.get("prefix", ""), wanted.get("delimiter", "")
        most = min(int(wanted.get("max-keys", MOST_PAGE)), state.value("page") or MOST_PAGE)
        after = wanted.get("start-after", "")
        if "continuation-token" in wanted:
            try:
                after = base64.b64decode(wanted["continuation-token"], validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise Refusal(400, "InvalidArgument", "The continuation token provided is incorrect") from None
        entries, last, more = [], "", False
        folders = set()
        for key in self.keys(bucket):
            if not key.startswith(prefix) or key.encode() <= after.encode():
                continue
            folder = ""
            if delimiter and delimiter in key[len(prefix):]:
                folder = prefix + key[len(prefix):].partition(delimiter)[0] + delimiter
                if folder in folders or after.startswith(folder):
                    continue
            if len(entries) == most:
                more = True
                break
            last = key
            if folder:
                folders.add(folder)
                last = folder + "\U0010ffff"
                entries.append((folder, None))
            else:
                entries.append((key, key))
        self.send_list(bucket, wanted, prefix, delimiter, most, entries, last if more else None)

    def send_list(self, bucket, wanted, prefix, delimiter, most, entries, last):
        state = self.server.state
        as_url = wanted.get("encoding-type") == "url"

        def name(text):
            return escape(urllib.parse.quote(text, safe="-_.~/*") if as_url else text)

        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
               f"<Name>{bucket}</Name><Prefix>{name(prefix)}</Prefix>", f"<KeyCount>{len(entries)}</KeyCount><MaxKeys>{most}</MaxKeys>"]
        out += [f"<Delimiter>{name(delimiter)}</Delimiter>"] if delimiter else []
        out += ["<EncodingType>url</EncodingType>"] if as_url else []
        out.append(f"<IsTruncated>{'true' if last is not None or state.value('loop') else 'false'}</IsTruncated>")
        if state.value("loop"):
            out.append("<NextContinuationToken>MA==</NextContinuationToken>")
        elif last is not None:
            out.append(f"<NextContinuationToken>{base64.b64encode(last.encode()).decode()}</NextContinuationToken>")
        for shown, key in entries:
            if key is None:
                out.append(f"<CommonPrefixes><Prefix>{name(shown)}</Prefix></CommonPrefixes>")
                continue
            try:
                size, at, etag = self.found(bucket, key)
            except FileNotFoundError:
                continue
            when = datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            out.append(f"<Contents><Key>{name(key)}</Key><LastModified>{when}</LastModified><ETag>{escape(etag, {chr(34): '&quot;'})}</ETag>"
                       f"<Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>")
        out.append("</ListBucketResult>")
        self.reply(200, [("Content-Type", "application/xml"), ("x-amz-bucket-region", state.region)], "".join(out).encode())

    def endless(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>')
        sent = 0
        while sent < ENDLESS_BYTES and self.server.state.value("endless"):
            part = "".join(f"<Contents><Key>x/{sent}-{i}.jpg</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;0&quot;</ETag>"
                           "<Size>1</Size></Contents>" for i in range(500)).encode()
            self.chunk(part)
            sent += len(part)
        self.close_connection = True

    def chunk(self, part):
        self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")

    # ---- objects

    def path_of(self, bucket, key):
        if any(part in ("", ".", "..") for part in key.rstrip("/").split("/")):
            raise FileNotFoundError
        return os.path.join(self.server.state.root, bucket, key)

    def found(self, bucket, key):
        path = self.path_of(bucket, key)
        if key.endswith("/"):
            if not os.path.isdir(path) or os.listdir(path):
                raise FileNotFoundError
            return 0, int(os.stat(path).st_mtime), '"d41d8cd98f00b204e9800998ecf8427e"'
        if not os.path.isfile(path):
            raise FileNotFoundError
        return self.server.state.tag(path)

    def object(self, bucket, key):
        state = self.server.state
        state.count("heads" if self.command == "HEAD" else "gets")
        if self.command == "HEAD" and self.hits("stop_heads", key):
            raise Refusal(403, "AccessDenied", "Access Denied")
        try:
            size, at, etag = self.found(bucket, key)
            data = b""
            if self.command == "GET" and size:
                with open(self.path_of(bucket, key), "rb") as opened:
                    data = opened.read()
                size = len(data)
        except (FileNotFoundError, NotADirectoryError):
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.") from None
        if self.command == "GET":
            state.count_of("by_object", f"{bucket}/{key}")
        self.preconditions(at, etag)
        headers = [("Last-Modified", email.utils.formatdate(at, usegmt=True)), ("Accept-Ranges", "bytes"),
                   ("Content-Type", "application/octet-stream")]
        if self.hits("other_etag", key):
            etag = '"00000000000000000000000000000000"'
        if not self.hits("no_etag", key):
            headers.append(("ETag", etag))
        first, last = self.range(size)
        if first is None or self.command == "GET" and self.hits("whole", key):
            return self.send_object(200, headers, data, size, key)
        if self.command == "GET" and self.hits("short", key):
            last = first + (last - first) // 2
        if self.command == "GET" and self.hits("long", key):
            last = min(last + 1, size - 1)
        shift = 1 if self.hits("wrong_range", key) else 0
        total = size + 1 if self.hits("wrong_total", key) else size
        headers.append(("Content-Range", f"bytes {first + shift}-{last + shift}/{total}"))
        self.send_object(206, headers, data[first:last + 1], last + 1 - first, key)

    def preconditions(self, at, etag):
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != "*" and etag not in [one.strip() for one in wanted.split(",")] and etag.strip('"') != wanted:
            raise Refusal(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        since = self.headers.get("If-Unmodified-Since")
        if wanted is None and since and (parsed := email.utils.parsedate(since)) and at > calendar.timegm(parsed):
            raise Refusal(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")

    def range(self, size):
        """The first byte and the last one that are wanted; None: all."""
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not found or found.group(0) == "bytes=-":
            return None, None
        first, last = found.groups()
        if not first:
            first, last = max(0, size - int(last)), size - 1
        first, last = int(first), min(int(last), size - 1) if last != "" else size - 1
        if first >= size or last < first:
            raise Refusal(416, "InvalidRange", "The requested range is not satisfiable", [("Content-Range", f"bytes */{size}")])
        return first, last

    def send_object(self, status, headers, data, length, key):
        state = self.server.state
        if self.command == "HEAD":
            return self.reply(status, headers, b"", length)
        half = len(data) // 2
        if self.hits("reset", key):
            self.reply(status, headers, data[:half], length)
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            raise ConnectionResetError
        if self.hits("cut", key):
            self.reply(status, headers, data[:half], length)
            self.close_connection = True
            return None
        if self.hits("stall", key):
            self.reply(status, headers, data[:half], length)
            self.wfile.flush()
            state.wait_off("stall")
            data = data[half:]
            self.wfile.write(data)
        elif self.hits("trickle", key):
            self.reply(status, headers, b"", length)
            for at in range(len(data)):
                self.wfile.write(data[at:at + 1])
                self.wfile.flush()
                if state.value("trickle"):
                    time.sleep(0.1)
        else:
            self.reply(status, headers, data, length)
        state.count("bytes", len(data))
        return None


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 512
    allow_reuse_address = True
    state = tls = None

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, ssl.SSLError, ValueError)):
            super().handle_error(request, client_address)


def serve(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--anonymous", action="store_true")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--cert")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(arguments)
    parent = os.getppid()
    server = Server(("127.0.0.1", options.port), Handler)
    server.state = State(options)
    if options.cert:
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(options.cert)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    while os.getppid() == parent:
        time.sleep(0.2)


# ---- who asks it -------------------------------------------------------------------------------------------------------------------


def ask(port, what):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for scheme in ("http", "https"):
        try:
            with urllib.request.urlopen(f"{scheme}://127.0.0.1:{port}{what}", context=context if scheme == "https" else None, timeout=60) as said:
                return json.load(said)
        except (urllib.error.URLError, ConnectionError, http.client.HTTPException) as why:
            if isinstance(why, urllib.error.HTTPError):
                sys.exit(f"bucket_server: {why.read().decode()}")
            if scheme == "https":
                sys.exit(f"bucket_server: nobody at port {port}: {why}")
    return None


def number_of(counts, name):
    for part in name.split("."):
        counts = counts.get(part, 0)
    return counts


def main():
    what, *rest = sys.argv[1:] or ["--help"]
    if what == "serve":
        serve(rest)
    elif what == "set":
        ask(rest[0], "/_set?" + "&".join(f"{urllib.parse.quote(name)}={urllib.parse.quote(value)}" for name, _, value in
                                        (one.partition("=") for one in rest[1:])))
    elif what == "counts":
        counts = ask(rest[0], "/_counts")
        print(json.dumps(number_of(counts, rest[1])) if rest[1:] else json.dumps(counts, indent=1, sort_keys=True))
    elif what == "until":
        until = time.monotonic() + 300
        while number_of(ask(rest[0], "/_counts"), rest[1]) < int(rest[2]):
            if time.monotonic() > until:
                sys.exit(f"bucket_server: {rest[1]} does not reach {rest[2]}")
            time.sleep(0.05)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
