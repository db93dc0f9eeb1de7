# SPDX-License-Identifier: Apache-2.0
"""scrape.py EXPORTER-PORT FOLDER DOCUMENTS: what tests/scenarios/28-metrics.sh asks of an exporter, beside a job that runs:
its answers to Prometheus, to browsers and to enemies. A real Prometheus, if --prometheus says that it is here, scrapes
it, and every query of DOCUMENTS, the dashboard and the alerts, is put to that."""

import html.parser
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

PATIENCE_S = 300
OLD_S = 20  # serve.c: a connection may be as old


def fail(*words):
    sys.exit("FAIL: " + " ".join(str(word) for word in words))


def until(what, function):
    end = time.monotonic() + PATIENCE_S
    while not (value := function()):
        if time.monotonic() > end:
            fail(what)
        time.sleep(0.1)
    return value


def get(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def status_of(port, request):
    """The status line's number, 0: it hung up."""
    with connect(port) as sock:
        try:
            sock.sendall(request)
            words = sock.recv(100).split()
        except OSError:
            return 0
    return int(words[1]) if words else 0


class Page(html.parser.HTMLParser):
    """Every element ends where it should, and nothing is fetched from anywhere."""

    open_ones, texts = (), ()

    def handle_starttag(self, tag, attrs):
        assert tag != "script" and "src" not in dict(attrs) and not dict(attrs).get("href", "/").startswith("http"), (tag, attrs)
        if tag != "meta":
            self.open_ones += (tag,)

    def handle_endtag(self, tag):
        assert self.open_ones[-1:] == (tag,), (tag, self.open_ones)
        self.open_ones = self.open_ones[:-1]

    def handle_data(self, data):
        self.texts += (data,)


# ---- answers -------------------------------------------------------------------------------------


def check_answers(port):
    answer, text = get(port, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text"), answer.headers
    assert text.endswith("# EOF\n"), text[-100:]
    answer, text = get(port, "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
    assert re.search(r"^oneaccess_up 1$", text, re.M), text[:300]
    assert re.search(r"^oneaccess_job_active\{", text, re.M), "the job has no series"
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series)), "a series twice"
    answer, text = get(port, "/")
    assert answer.status == 200 and "<h2>Jobs</h2>" in text and "default-src 'none'" in answer.headers["Content-Security-Policy"]
    page = Page()
    page.feed(text)
    assert page.open_ones == () and "bench-0" in page.texts and "delivered" in page.texts, page.texts
    assert get(port, "/healthz")[1] == "ok\n"
    assert get(port, "/nothing")[0].status == 404


def check_enemies(port):
    assert status_of(port, b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n") in (405, 501)
    assert status_of(port, b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n") in (0, 400, 405, 413, 501)
    assert status_of(port, b"DELETE / HTTP/1.1\r\n\r\n") in (405, 501)
    assert status_of(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 100000 + b"\r\n\r\n") in (0, 400, 413)
    assert status_of(port, b"\0\xff" * 5000 + b"\r\n\r\n") in (0, 400)
    assert status_of(port, b"GET http://elsewhere/../../etc/passwd HTTP/1.1\r\n\r\n") in (0, 400, 404)
    assert status_of(port, b"GET " + b"/" * 7000 + b" HTTP/1.1\r\n\r\n") in (0, 400, 404, 413)
    crowd = [connect(port) for _ in range(200)]  # more than may be; they say nothing
    for number, sock in enumerate(crowd):
        if number % 2:
            sock.close()
    answer, text = get(port, "/metrics")  # when the first of them were cut off
    assert answer.status == 200 and "oneaccess_up 1" in text
    for sock in crowd:
        sock.close()


class Trickle:
    """Says a byte now and then, and is cut off all the same."""

    def __init__(self, port):
        self.sock, self.begin = connect(port), time.monotonic()
        self.sock.sendall(b"GET / HTTP/1.1\r\nX: ")

    def is_cut(self):
        self.sock.settimeout(1)
        try:
            self.sock.sendall(b"x")
            return self.sock.recv(1000) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


# ---- Prometheus ----------------------------------------------------------------------------------


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def start_prometheus(port, folder, rules):
    with open(f"{folder}/prometheus.yml", "w") as file:
        json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "rule_files": [rules],
                   "scrape_configs": [{"job_name": "oneaccess", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}, file)
    for _ in range(5):  # somebody may have taken the port
        own = free_port()
        log = open(f"{folder}/prometheus.log", "w")
        process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                                    f"--web.listen-address=127.0.0.1:{own}"], stdout=log, stderr=log,
                                   env=dict(os.environ, GOMAXPROCS="1"))
        while process.poll() is None:
            try:
                if get(own, "/-/ready")[0].status == 200:
                    return process, own
            except OSError:
                pass
            time.sleep(0.1)
    fail("prometheus does not start:", open(f"{folder}/prometheus.log").read()[-2000:])


def query(own, expression):
    answer, text = get(own, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    result = json.loads(text)
    assert answer.status == 200 and result["status"] == "success", f"{expression}: {text}"
    return result["data"]["result"]


def dashboard_queries(path):
    for panel in json.load(open(path))["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "1m")
            assert "$" not in expression, expression
            yield panel["title"], expression


def check_prometheus(port, folder, documents):
    rules, dashboard = f"{documents}/prometheus/oneaccess.rules.yml", f"{documents}/grafana/oneaccess.json"
    subprocess.run(["promtool", "check", "rules", rules], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["promtool", "check", "metrics"], input=get(port, "/metrics")[1], text=True, check=True)
    process, own = start_prometheus(port, folder, rules)
    try:
        until("Prometheus does not scrape", lambda: query(own, "count_over_time(oneaccess_job_active[1m]) >= 5"))
        until("Prometheus does not reach it", lambda: query(own, "up == 1"))
        if "--peers" in sys.argv:
            until("the other node is not met", lambda: query(own, "count_over_time(oneaccess_peer_open[1m]) >= 5"))
        asked = 0
        for title, expression in dashboard_queries(dashboard):
            asked += 1
            # A private accessd has no tenants; a build without a cluster has no peers.
            left_out = "tenant" in expression or ("_peer_" in expression and "--peers" not in sys.argv)
            if left_out:
                query(own, expression)
            else:  # a machine with much to do has a scrape now and then
                until(f'the panel "{title}" is empty: {expression}', lambda: query(own, expression))
        assert asked > 30, asked
        until("no samples are delivered", lambda: query(own, "sum(rate(oneaccess_samples_delivered_total[1m])) > 0"))
        saved = float(until("nothing is saved", lambda: query(own, "oneaccess_saved_samples / oneaccess_samples_delivered_total"))[0]["value"][1])
        assert 0.2 < saved < 0.6, f"two jobs that share save {saved}, not about a half"

        def groups():
            return [rule for group in json.loads(get(own, "/api/v1/rules")[1])["data"]["groups"] for rule in group["rules"]]
        until("the rules are not evaluated", lambda: len(groups()) >= 6 and all(rule["health"] == "ok" for rule in groups()))
        for rule in groups():
            query(own, rule["query"])
        down = f"{folder}/down"
        open(down, "w").close()  # the scenario stops accessd
        until("nobody says that accessd is down", lambda: query(own, 'ALERTS{alertname="OneAccessDown"}'))
        os.unlink(down)
        until("accessd is not back", lambda: query(own, "oneaccess_up == 1"))
    finally:
        process.terminate()
        process.wait()


def main():
    port, folder, documents = int(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
    trickle = Trickle(port)
    check_answers(port)
    if "--prometheus" in sys.argv:
        check_prometheus(port, folder, documents)
    check_enemies(port)
    until("who says a byte now and then stays for ever", trickle.is_cut)
    check_answers(port)


if __name__ == "__main__":
    main()
