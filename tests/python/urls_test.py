# SPDX-License-Identifier: Apache-2.0
"""Data sets with URLs, as a job in Python sees them. An access-bucket of this test puts real files where placeholders would be, so that
what is read can be compared; the true one is in tests/scenarios."""

import os
import pathlib
import shutil
import stat
import sys
import unittest

import numpy
import oneaccess as oa
import support
from oneaccess import doctor, urls

PIPELINE = '[{"op": "decode"}, {"op": "random_resized_crop", "size": 32}]'
ORDER = {"order": "sequential", "seed": 3, "epochs": 1, "as_": "numpy"}

# access-bucket FOLDER URL [KEY=VALUE ...]: s3://NAME is the folder NAME of STORE, and https://HOST/NAME?... a file.
BUCKET = '''#!{python} -IS
import os, socket, struct, sys
folder, url, *told = sys.argv[1:]
os.chdir(folder)
with open("../told", "a") as file:
    print(url, *told, file=file)
scheme, _, path = url.partition("://")
if scheme not in ("s3", "https"):
    sys.exit(f"access-bucket knows no {{scheme}}://")
path = os.path.join({store!r}, path.partition("/")[2].partition("?")[0] if scheme == "https" else path.partition("{{")[0].rstrip("/"))
there = os.path.exists(path)
def place(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.exists(target):
        os.link(source, target)
if os.path.isfile(path):
    place(path, os.path.join("data", os.path.basename(path)))
for at, _, files in os.walk(path):
    for file in files:
        place(os.path.join(at, file), os.path.join("data", os.path.relpath(os.path.join(at, file), path)))
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if os.path.exists("socket"):
    os.unlink("socket")
listener.bind("socket")
listener.listen()
if os.fork():
    sys.exit(0)
held = []
import select
while True:
    for one in select.select([listener, *held], [], [])[0]:
        if one is listener:
            held.append(listener.accept()[0])
            held[-1].recv(64)
            text = b"" if there else b"there is no such bucket"
            held[-1].send(struct.pack("=QIIQQ992s", 0x314b4342214f4121, 2 if there else 3, 0, 1, 1, text))
        else:
            held.remove(one)
    if not held:
        os.unlink("socket")
        sys.exit(0)
'''


class UrlsTest(support.DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.store = cls.work / "store"
        shutil.copytree(cls.data, cls.store / "pets/train")
        numpy.save(cls.store / "pets/rows.npy", numpy.arange(600, dtype="<f4").reshape(100, 6))
        numpy.arange(1001, dtype="<u2").tofile(cls.store / "pets/tokens.bin")
        programs = cls.work / "libexec"
        programs.mkdir()
        program = programs / "access-bucket"
        program.write_text(BUCKET.format(python=sys.executable, store=str(cls.store)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        before = os.environ["ACCESS_LIBEXEC"]
        os.environ["ACCESS_LIBEXEC"] = str(programs)
        cls.addClassCleanup(os.environ.__setitem__, "ACCESS_LIBEXEC", before)

    def told(self):
        """What the last access-bucket was told."""
        return (self.work / "node/buckets/told").read_text().splitlines()[-1]

    def open(self, dataset, *args, **kwargs):
        loader = oa.Loader(dataset, *args, socket=self.socket, timeout=600, **{**ORDER, **kwargs})
        self.addCleanup(loader.close)
        return loader

    def test_a_folder(self):
        mine, folder = self.open("s3://pets/train", PIPELINE, 32), self.open(self.data, PIPELINE, 32)
        count = 0
        for one, other in zip(mine, folder, strict=True):
            numpy.testing.assert_array_equal(one[0], other[0])
            numpy.testing.assert_array_equal(one[1], other[1])
            count += len(one[1])
        self.assertEqual(count, support.SAMPLES)
        self.assertEqual(self.told(), "s3://pets/train")
        self.assertEqual(mine.classes, folder.classes)
        self.assertEqual(mine.targets, folder.targets)
        self.assertEqual(mine.dataset.root, "s3://pets/train")
        self.assertIn("s3://pets/train", repr(mine))

    def test_states(self):
        """One of the URL goes on with it, and with a folder that is the same."""
        loader = self.open("s3://pets/train", PIPELINE, 32)
        loop = iter(loader)
        seen = [next(loop).ids.tolist() for _ in range(3)]
        state = loader.state_dict()
        loader.close()
        rest = [[batch.ids.tolist() for batch in self.open(place, PIPELINE, 32, state=state)]
                for place in ("s3://pets/train/", str(self.store / "pets/train"))]
        self.assertEqual(rest[0], rest[1])
        self.assertEqual(sorted(sum(seen + rest[0], [])), list(range(support.SAMPLES)))

    def test_options(self):
        """Those of the store are access-bucket's, the others accessd's."""
        loader = self.open("s3://pets/tokens.bin", batch_size=2, source={"record": 11, "endpoint": "http://minio:9000", "anonymous": True})
        self.assertEqual(self.told(), "s3://pets/tokens.bin anonymous=1 endpoint=http://minio:9000")
        self.assertEqual(next(iter(loader))[0].shape, (2, 11))
        loader = self.open("s3://pets/tokens.bin?region=eu-west-1", batch_size=2, source={"record": 11})
        self.assertEqual(self.told(), "s3://pets/tokens.bin region=eu-west-1")
        self.assertEqual(next(iter(loader))[0].shape, (2, 11))

    def test_rows(self):
        def reading(url):  # access-bucket's part is not Python's
            self.assertIn("/pets/rows.npy", url)
            return open(self.store / "pets/rows.npy", "rb")
        before, urls.reading = urls.reading, reading
        self.addCleanup(setattr, urls, "reading", before)
        for dataset in ("s3://pets/rows.npy", "https://host/pets/rows.npy?signature=a=b"):
            rows, = next(iter(self.open(dataset, batch_size=10)))
            numpy.testing.assert_array_equal(rows, numpy.arange(60, dtype="<f4").reshape(10, 6))
            batch = next(iter(self.open(oa.windows(dataset, parts={"past": 3, "next": 1}, stride=2), batch_size=10)))
            numpy.testing.assert_array_equal(batch["next"], numpy.arange(600, dtype="<f4").reshape(100, 1, 6)[3:23:2])
        for path, starts in (("s3://pets/rows.npy", "starts.npy"), ("s3://pets/rows-{0,1}.npy", None), ("s3://pets", None)):
            with self.assertRaisesRegex(oa.Error, "reads one .npy that is one series"):
                oa.windows(path, 4, starts=starts)
        for dataset in (oa.tokens("s3://pets/tokens.bin", 50, "uint16"), oa.tokens("https://host/pets/tokens.bin?sig=1", 50, "uint16")):
            batch = next(iter(self.open(dataset, batch_size=2)))
            numpy.testing.assert_array_equal(batch["input_ids"], numpy.arange(100).reshape(2, 50))

    def test_refused(self):
        for dataset, error, words in (
                ("s3://cats/train", oa.errors.DatasetError, "there is no such bucket"),
                ("ftp://cats/train", oa.errors.DatasetError, "access-bucket knows no ftp://"),
                (pathlib.Path("s3://pets/train"), oa.errors.ArgumentError, "pathlib makes one slash of the two")):
            with self.subTest(dataset), self.assertRaises(error) as caught:
                self.open(dataset, PIPELINE, 32)
            self.assertIn(words, str(caught.exception))
        for call in (lambda url: oa.from_tar(url, {"image": "jpg"}), lambda url: oa.from_mds(url, {"image": "image"}),
                     lambda url: oa.from_tfrecord(url, {"image": "image/encoded"}), oa.from_csv, oa.from_jsonl,
                     lambda url: oa.from_hdf5(url, {"x": "x"}), lambda url: oa.from_folders({"x": url}), lambda url: oa.from_coco(url, "."), lambda url: oa.from_voc(url, "."),
                     lambda url: oa.from_yolo(url, ".", ["cat"])):
            with self.assertRaises(oa.errors.ArgumentError) as caught:
                call("s3://pets/x")
            self.assertIn("reads s3://pets/x in Python, from files of this machine", str(caught.exception))

    def test_names(self):
        """URLs, and nothing of the folder that stands for them."""
        files = sorted((self.store / "pets/train").rglob("*.*"))
        loader = self.open("s3://pets/train", PIPELINE, 32)
        urls = [f"s3://pets/{file.relative_to(self.store / 'pets')}" for file in files]
        self.assertEqual((loader.names(), [path for path, _ in loader.dataset.samples]), (urls, urls))
        for batch in loader:
            self.assertEqual(loader.names(batch.ids), [urls[number] for number in batch.ids])

    def test_bad_samples(self):
        shutil.copytree(self.store / "pets/train", self.store / "pets/worse")
        first = sorted((self.store / "pets/worse").rglob("*.*"))[0]
        first.write_bytes(b"no picture")
        loader = self.open("s3://pets/worse", PIPELINE, 32, bad="skip")
        self.assertEqual(sum(len(batch.ids) for batch in loader), support.SAMPLES - 1)
        self.assertEqual([bad.path for bad in loader.bad_samples], [f"s3://pets/worse/{first.relative_to(self.store / 'pets/worse')}"])

    def test_file_urls(self):
        loader = self.open("file://" + self.data, PIPELINE, 32)
        self.assertEqual(len(loader.dataset), support.SAMPLES)

    def test_doctor(self):
        before = os.environ.get("ACCESS_SOCKET")
        os.environ["ACCESS_SOCKET"] = self.socket
        try:
            doctor.main(["s3://pets/train"])
        finally:
            os.environ.pop("ACCESS_SOCKET") if before is None else os.environ.__setitem__("ACCESS_SOCKET", before)


class PartsTest(unittest.TestCase):
    def test_parts(self):
        for url, parts in {
                "s3://b/a": ("s3://b/a", {}),
                "s3://b/a?label=none,region=x": ("s3://b/a", {"label": "none", "region": "x"}),
                "s3://b/a?b": ("s3://b/a?b", {}),
                "https://h/a?b=c": ("https://h/a?b=c", {}),
                "https://h/a?b=c#label=none": ("https://h/a?b=c", {"label": "none"})}.items():
            self.assertEqual(urls.parted(url), parts)

    def test_below(self):
        for url, name, below in (
                ("s3://b/a/?label=none", "x/1.jpg", "s3://b/a/x/1.jpg"),
                ("s3://b/a", "0.tar:key", "s3://b/a/0.tar:key"),
                ("s3://b/0.tar", "0.tar:key", "s3://b/0.tar:key"),
                ("s3://b/{0..3}.tar", "0.tar:key", "s3://b/0.tar:key"),
                ("https://h/a/0.tar?sig=1", "0.tar:key", "https://h/a/0.tar:key")):
            self.assertEqual(urls.below(url, name), below)

    def test_what_is_one(self):
        for path in ("s3://b", "HTTPS://h/x", "abfss://c@a/x"):
            self.assertTrue(urls.is_url(path))
        for path in ("/s3://b", "name:x", "file:///x", "s3:/b", b"s3://b", None):
            self.assertFalse(urls.is_url(path))
        self.assertEqual(urls.path_of("file:///x"), "/x")

    def test_for_arrow(self):
        self.assertEqual(urls.for_arrow("s3://b/a.parquet", {"endpoint": "http://h:1/", "region": "x"}),
                         "s3://b/a.parquet?scheme=http&endpoint_override=h:1&region=x")
        self.assertEqual(urls.for_arrow("s3://b/a.parquet", None), "s3://b/a.parquet")
        with self.assertRaises(oa.errors.ArgumentError):
            urls.for_arrow("s3://b/a.parquet", {"label": "none"})


if __name__ == "__main__":
    unittest.main()
