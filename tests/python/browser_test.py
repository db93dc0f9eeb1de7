# SPDX-License-Identifier: Apache-2.0
"""The page of access-exporter in Debian's Chromium, beside jobs that run: what stands in its document, how it fits
narrow and wide windows, by day and by night, what it fetches, and what it looks like, by pixels of screenshots.
$ACCESS_SHOTS: a folder where the screenshots are left. Chromium is told what to do over its pipe, and tells when it is done."""

import base64
import fcntl
import html
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

try:
    from PIL import Image
except ImportError as missing:
    print(f"browser_test: skipped: {missing}")
    sys.exit(77)

from support import BUILD, DaemonCase

CHROMIUM = shutil.which("chromium")
JOB = "a <b>bold</b> & \"quoted\" job"
COLUMN = 8  # pixels; a terminal's 80 are a narrow window
WINDOWS = {"telephone": 360, "narrow": 80 * COLUMN, "wide": 200 * COLUMN}
PATIENCE_S = 300
GROUND = {"light": (0xfb, 0xfc, 0xfd), "dark": (0x12, 0x17, 0x1d)}


def _above(fd):
    """The same, by a number that Chromium does not give to its pipe."""
    above = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return above


class Chromium:
    """One without a window, and a page of it."""

    def __init__(self, folder):
        to_read, self.to = (_above(fd) for fd in os.pipe())
        self.come, to_write = (_above(fd) for fd in os.pipe())
        command = [CHROMIUM, "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", f"--user-data-dir={folder}/profile", "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "-", *command], pass_fds=(to_read, to_write),
            env={**os.environ, "HOME": str(folder)}, stdout=subprocess.DEVNULL, stderr=open(folder + "/chromium.log", "wb"))
        self.log = folder + "/chromium.log"
        os.close(to_read)
        os.close(to_write)
        self.left, self.number, self.page, self.fetched, self.told = b"", 0, None, [], []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.page = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{part}.enable")

    def end(self):
        os.close(self.to)
        self.process.kill()
        self.process.wait()
        os.close(self.come)

    def hear(self):
        while b"\0" not in self.left:
            more = os.read(self.come, 1 << 20)
            if not more:
                with open(self.log, errors="replace") as log:
                    raise RuntimeError(f"Chromium has ended: {log.read()[-2000:]}")
            self.left += more
        text, _, self.left = self.left.partition(b"\0")
        heard = json.loads(text)
        if heard.get("method") == "Network.requestWillBeSent":
            self.fetched.append(heard["params"]["request"]["url"])
        if heard.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.told.append(heard["params"])
        return heard

    def ask(self, method, **parameters):
        self.number += 1
        said = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.page} if self.page else {})}
        os.write(self.to, json.dumps(said).encode() + b"\0")
        while (heard := self.hear()).get("id") != self.number:
            pass
        if "error" in heard:
            raise RuntimeError(f"{method}: {heard['error']}")
        return heard["result"]

    def go(self, url):
        self.ask("Page.navigate", url=url)
        while self.hear().get("method") != "Page.loadEventFired":
            pass

    def find(self, expression):
        """Of the page that there is: it may just be loading itself anew."""
        for _ in range(3):
            try:
                said = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
                return said["result"]["value"]
            except (KeyError, RuntimeError) as error:
                failed = error
        raise failed

    def wear(self, width, scheme):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def shoot(self):
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


class BrowserTest(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.exporter = cls.begin(BUILD / "exporter/access-exporter", "--socket", cls.socket, "--listen", "127.0.0.1:0",
                                 stderr=subprocess.PIPE, text=True)
        while " ready " not in (line := cls.exporter.stderr.readline()):
            assert line, "access-exporter has ended"
        cls.url = f"http://127.0.0.1:{line.split('port=')[1].split()[0]}/"
        cls.begin(BUILD / "tools/access-bench", "--socket", cls.socket, "--dataset", cls.data, "--pipeline", "imagenet-train-u8", "--batch", "16",
                  "--jobs", "2", "--step-ms", "20", "--epochs", "60000", "--quiet")
        program = ("import sys, oneaccess as oa\n"
                   f"with oa.Loader({cls.data!r}, oa.imagenet_eval(32), 16, job={JOB!r}, socket={cls.socket!r}) as loader:\n"
                   "    next(iter(loader))\n    print('here', flush=True)\n    sys.stdin.read()\n")
        job = cls.begin(sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert job.stdout.readline(), "the job has ended"
        folder = tempfile.mkdtemp(dir=cls.work)
        cls.chromium = Chromium(folder)
        cls.addClassCleanup(cls.chromium.end)

    @classmethod
    def begin(cls, *command, **how):
        process = subprocess.Popen(command, **how)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        return process

    def load(self, width=WINDOWS["wide"], scheme="light"):
        self.chromium.wear(width, scheme)
        self.chromium.go(self.url)

    def test_the_document_says_what_there_is(self):
        self.load()
        self.assertEqual(self.chromium.find("document.title"), "OneAccess")
        self.assertEqual(self.chromium.find("[...document.querySelectorAll('h2')].map(each => each.textContent)")[:2], ["Jobs", "Streams"])
        names = self.chromium.find("[...document.querySelectorAll('table')[0].rows].slice(1).map(row => row.cells[1].textContent)")
        self.assertIn(JOB, names)  # as text, and no element of it
        self.assertEqual(self.chromium.find("document.querySelectorAll('b').length"), 0)
        self.assertEqual(sorted(set(names) - {JOB}), ["bench-0", "bench-1"])
        facts = dict(self.chromium.find("[...document.querySelectorAll('dl div')].map(one => [...one.children].map(each => each.textContent))"))
        self.assertEqual(facts["jobs"], "3")
        self.assertGreater(int(facts["samples delivered"]), 0)
        self.assertEqual(self.chromium.find("document.querySelector('a').getAttribute('href')"), "/metrics")
        self.assertNotIn(html.escape(JOB), self.chromium.find("document.body.textContent"))

    def test_nothing_is_fetched_from_elsewhere(self):
        del self.chromium.fetched[:], self.chromium.told[:]
        self.load()
        self.assertTrue(self.chromium.fetched)
        self.assertEqual([each for each in self.chromium.fetched if not each.startswith(self.url)], [])
        self.assertEqual([each for each in self.chromium.told if "favicon" not in json.dumps(each)], [])

    def test_it_fits(self):
        for name, width in WINDOWS.items():
            with self.subTest(name):
                self.load(width)
                self.assertLessEqual(self.chromium.find("document.documentElement.scrollWidth"), width)
                inside = "[...document.querySelectorAll('dd,dt,h1,h2')].every(one => one.getBoundingClientRect().right <= innerWidth)"
                self.assertTrue(self.chromium.find(inside))
                self.assertTrue(self.chromium.find("[...document.querySelectorAll('td')].every(one => one.getBoundingClientRect().width > 0)"))

    def test_it_looks_like_something(self):
        for scheme, ground in GROUND.items():
            for name, width in WINDOWS.items():
                with self.subTest(f"{scheme}, {name}"):
                    self.load(width, scheme)
                    shot = self.chromium.shoot()
                    if "ACCESS_SHOTS" in os.environ:
                        pathlib.Path(os.environ["ACCESS_SHOTS"], f"status-{scheme}-{name}.png").write_bytes(shot)
                    picture = Image.open(io.BytesIO(shot)).convert("RGB")
                    self.assertEqual(picture.size, (width, 1000))
                    self.assertEqual(picture.getpixel((2, 2)), ground)
                    counts = {colour: n for n, colour in picture.getcolors(1 << 24)}
                    inked = 1 - counts[ground] / (width * 1000)
                    self.assertTrue(0.01 < inked < 0.5, f"{inked:.3f} of it is not ground")
                    darkness = [sum(colour) for colour in counts]
                    self.assertGreater(max(darkness) - min(darkness), 500, "ink and ground are alike")

    def test_without_accessd_it_says_so(self):
        self.stop()
        self.addCleanup(self.start)
        end = time.monotonic() + PATIENCE_S
        while self.load() or not self.chromium.find("document.querySelector('.bad') !== null"):  # what it has asked for it shows for a while
            self.assertLess(time.monotonic(), end)
        self.assertIn("accessd does not answer", self.chromium.find("document.querySelector('.bad').textContent"))


if __name__ == "__main__":
    if not CHROMIUM:
        print("browser_test: skipped: Debian's package chromium is not here")
        sys.exit(77)
    unittest.main()
