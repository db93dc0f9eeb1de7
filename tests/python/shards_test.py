# SPDX-License-Identifier: Apache-2.0
"""Tar shards: what a scan finds against Python's tarfile and webdataset's grouping, and a Loader over shards against one over
the folder that they were made of."""

import io
import os
import pathlib
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"shards_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import BUILD, SAMPLES, DaemonCase

PICTURES = ("jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp", "avif", "jp2", "j2k", "jpx", "jxl", "heic", "heif")
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
PIPELINE = oa.imagenet_eval(64)


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def grouped(path):
    """The samples of a shard as webdataset groups them (its tar_file_iterator and group_by_keys), with what we ask of
    one: where its first picture is, and its label."""
    samples, key = [], None
    with tarfile.open(path) as tar:
        for member in tar:
            name = member.name
            if not member.isreg() or re.match(r"__[^/]*__($|/)", name):
                continue
            match = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", name, re.DOTALL)
            if not match:
                continue
            prefix, suffix = match.group(1), match.group(2).lower()
            if prefix != key:
                key = prefix
                samples.append({"key": key})
            if suffix in samples[-1]:
                raise ValueError(f"{name}: duplicate")
            samples[-1][suffix] = member
    found = []
    for sample in samples:
        pictures = [member for field, member in sample.items() if field in PICTURES]
        if pictures:
            label = "-"
            if "cls" in sample:
                with tarfile.open(path) as tar:
                    label = tar.extractfile(sample["cls"]).read().decode().strip()
            found.append((pictures[0].offset_data, pictures[0].size, label, sample["key"]))
    return found


def scanned(path):
    out = subprocess.run([BUILD / "tests/storage/records", "tar", path], capture_output=True, text=True)
    if out.returncode:
        raise ValueError(out.stderr)
    fields = [line.split(" ", 3) for line in out.stdout.splitlines()]
    return [(int(at), int(size), label, key) for at, size, label, key in fields]


class ScanTest(unittest.TestCase):
    """The same records as by tarfile, whatever is in the archive."""

    def setUp(self):
        self.work = tempfile.TemporaryDirectory(prefix="access-shards.")
        self.addCleanup(self.work.cleanup)
        self.path = os.path.join(self.work.name, "x.tar")

    def compare(self):
        try:
            wanted = grouped(self.path)
        except ValueError:
            with self.assertRaisesRegex(ValueError, "has two files"):
                scanned(self.path)
            return 0
        self.assertEqual(scanned(self.path), wanted)
        return len(wanted)

    def test_random_archives(self):
        rng, compared = random.Random(19), 0
        suffixes = PICTURES + ("cls", "json", "txt", "JPG", "seg.png", "tar.jpg", "")
        for turn in range(120):
            with tarfile.open(self.path, "w", format=FORMATS[turn % 3]) as tar:
                key = "k"
                for _ in range(rng.randrange(1, 30)):
                    if rng.random() < 0.6:
                        long = "long" * rng.randrange(1, 60 if turn % 3 else 20) + "/"
                        folder = rng.choice(("", "a/", "a/b.c/", long, "__m__/", "\u00e9/"))
                        key = folder + rng.choice(("", "__x__", "n")) + f"{rng.randrange(50):04d}"
                    suffix = rng.choice(suffixes)
                    name = key + rng.choice((".", ".", ".", "")) + suffix
                    data = str(rng.randrange(1000)).encode() if suffix == "cls" else rng.randbytes(rng.randrange(2000))
                    if rng.random() < 0.1:
                        member = tarfile.TarInfo(name)
                        member.type = rng.choice((tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE))
                        tar.addfile(member)
                    else:
                        add(tar, name, data)
            compared += self.compare()
        self.assertGreater(compared, 300)

    def test_webdataset_itself(self):
        try:
            import webdataset
        except ImportError:
            self.skipTest("webdataset is not installed: not tested")
        with tarfile.open(self.path, "w") as tar:
            for number in range(50):
                for suffix in ("JPG", "cls", "json"):
                    add(tar, f"./part.{number % 3}/{number:05d}.{suffix}", str(number).encode())
        theirs = list(webdataset.WebDataset(self.path, shardshuffle=False))
        ours = scanned(self.path)
        with open(self.path, "rb") as file:
            for sample, (at, size, label, key) in zip(theirs, ours, strict=True):
                file.seek(at)
                self.assertEqual((os.path.normpath(sample["__key__"]), sample["jpg"], sample["cls"].decode()),
                                 (key, file.read(size), label))

    def test_cut_anywhere(self):
        with tarfile.open(self.path, "w") as tar:
            for number in range(4):
                add(tar, f"{number}.jpg", b"x" * 700)
        data = pathlib.Path(self.path).read_bytes()
        for end in range(1, 4 * 1536, 97):
            with open(self.path, "wb") as file:
                file.write(data[:end])
            at = end % 1536
            if at == 0 or at >= 512 + 700:  # a file is whole; tar programs take that for the end
                self.assertEqual(len(scanned(self.path)), end // 1536 + (at > 0))
            else:
                with self.assertRaisesRegex(ValueError, f"^{end - at}: .*cut"):
                    scanned(self.path)


class ShardsTest(DaemonCase):
    """A Loader over shards is one over the folder that they were made of."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shards = str(cls.work / "shards")
        os.mkdir(cls.shards)
        classes = sorted(os.listdir(cls.data))
        cls.files = [(os.path.join(cls.data, name, file), label) for label, name in enumerate(classes)
                     for file in sorted(os.listdir(os.path.join(cls.data, name)))]
        for number in range(4):
            cls.write(os.path.join(cls.shards, f"train-{number:06d}.tar"), number, FORMATS[number % 3])

    @classmethod
    def write(cls, path, number, form=tarfile.PAX_FORMAT, labels=True):
        with tarfile.open(path, "w", format=form) as tar:
            for index in range(number * SAMPLES // 4, (number + 1) * SAMPLES // 4):
                file, label = cls.files[index]
                if labels:
                    add(tar, f"{index:08d}.cls", str(label).encode())
                tar.add(file, f"{index:08d}{os.path.splitext(file)[1]}")
                add(tar, f"{index:08d}.json", b"{}")

    def over(self, path, **kwargs):
        loader = oa.Loader(path, PIPELINE, 16, socket=self.socket, timeout=600, as_="numpy", copy=True,
                           **{"order": "sequential", "epochs": 1, **kwargs})
        self.addCleanup(loader.close)
        return loader

    def all_of(self, path, **kwargs):
        batches = list(self.over(path, **kwargs))
        return [np.concatenate(field) for field in zip(*batches)]

    def copy(self, name):
        """Shards of this test's own."""
        folder = self.work / name
        folder.mkdir()
        for number in range(4):
            self.write(str(folder / f"{number}.tar"), number)
        return str(folder)

    def test_pixels_and_labels_are_the_folders(self):
        pixels, labels = self.all_of(self.data)
        braces = os.path.join(self.shards, "train-{000000..000003}.tar")
        for path in (self.shards, braces):
            for _ in range(2):  # the second time by the stored index
                found = self.all_of(path)
                np.testing.assert_array_equal(found[0], pixels)
                np.testing.assert_array_equal(found[1], labels)
        found = self.all_of(os.path.join(self.shards, "train-{000003,000001}.tar"))
        half = np.r_[SAMPLES // 4:SAMPLES // 2, 3 * SAMPLES // 4:SAMPLES]
        np.testing.assert_array_equal(found[0], pixels[half])
        one = self.all_of(os.path.join(self.shards, "train-000002.tar"))
        np.testing.assert_array_equal(one[0], pixels[SAMPLES // 2:3 * SAMPLES // 4])
        np.testing.assert_array_equal(one[1], labels[SAMPLES // 2:3 * SAMPLES // 4])

    def test_each_once_in_other_orders(self):
        for order in ("seeded", "carousel"):
            loader = oa.Loader(self.shards, oa.imagenet_train(32), 16, socket=self.socket, timeout=600, order=order)
            self.addCleanup(loader.close)
            for _ in range(2):
                ids = [number for batch in loader for number in batch.ids.tolist()]
                self.assertEqual(sorted(ids), list(range(SAMPLES)))

    def test_resume_goes_on(self):
        wanted = [batch.ids.tolist() for batch in self.over(self.shards, order="seeded", seed=3)]
        loader = self.over(self.shards, order="seeded", seed=3)
        iterator = iter(loader)
        begun = [next(iterator).ids.tolist() for _ in range(5)]
        state = loader.state_dict()
        loader.close()
        rest = self.over(self.shards, order="seeded", seed=3, state=state)
        self.assertEqual(begun + [batch.ids.tolist() for batch in rest], wanted)

    def test_ranks_share_an_epoch(self):
        ids = [number for rank in range(2)
               for batch in self.over(self.shards, rank=rank, world_size=2, order="seeded", seed=1)
               for number in batch.ids.tolist()]
        self.assertEqual(sorted(ids), list(range(SAMPLES)))

    def test_classes_are_numbers(self):
        labels = self.all_of(self.shards, classes=["1"])[1]
        self.assertEqual(set(labels.tolist()), {1})
        self.assertEqual(len(labels), SAMPLES // 3)

    def test_without_labels(self):
        path = str(self.work / "bare.tar")
        self.write(path, 1, labels=False)
        self.assertEqual(set(self.all_of(path)[1].tolist()), {0})

    def test_some_labels_are_refused(self):
        folder = self.copy("some")
        self.write(os.path.join(folder, "2.tar"), 2, labels=False)
        with self.assertRaisesRegex(oa.Error, r"sample 2.tar:\d+ \(00000120\) has no label, and 0.tar:\d+ \(00000000\) has one"):
            self.all_of(folder)

    def test_changed_shard_is_noticed(self):
        folder = self.copy("changed")
        self.all_of(folder)
        for how in ("rewritten", "replaced", "removed"):
            shard = os.path.join(folder, "2.tar")
            loader = self.over(folder, epochs=None, order="seeded", seed=1)  # an epoch of which is not had from slots
            seen = 0
            with self.assertRaisesRegex(oa.Error, "2.tar:.*(written to|removed) since it was listed"):
                for epoch in range(200):
                    for _ in loader:
                        seen += 1
                        if seen == 20:
                            self.change(how, shard)
            loader.close()
            self.write(shard, 2)
            self.assertEqual(len(self.all_of(folder)[1]), SAMPLES)

    def change(self, how, shard):
        if how == "removed":
            os.remove(shard)
            return
        path = shard if how == "rewritten" else shard + ".new"
        self.write(path, 1)
        if how == "replaced":
            os.rename(path, shard)

    def test_shards_that_come_and_go_are_noticed(self):
        folder = self.copy("more")
        self.assertEqual(len(self.all_of(folder)[1]), SAMPLES)
        os.rename(os.path.join(folder, "3.tar"), str(self.work / "kept.tar"))
        self.assertEqual(len(self.all_of(folder)[1]), SAMPLES * 3 // 4)
        os.rename(str(self.work / "kept.tar"), os.path.join(folder, "9.tar"))
        self.assertEqual(len(self.all_of(folder)[1]), SAMPLES)

    def test_made_anew(self):
        """The folder is removed and copied back, as it was, while a job reads it."""
        folder = self.copy("anew")
        loader = self.over(folder, epochs=None)
        epochs = 0
        for _ in range(6):
            count = 0
            for step, batch in enumerate(loader):
                count += len(batch.ids)
                if epochs == 1 and step == 3:
                    subprocess.run(["cp", "-a", folder, folder + ".copy"], check=True)
                    subprocess.run(["rm", "-r", folder], check=True)
                    os.rename(folder + ".copy", folder)
            self.assertEqual(count, SAMPLES)
            epochs += 1

    def test_options_that_no_kind_takes(self):
        for path, kind in ((self.shards, r"\(tar\) there are: members"), (self.data, r"\(folder\) there are: none"),
                           (self.shards + "/train-{000000..000003}.tar", r"\(tar\) there are: members")):
            with self.assertRaisesRegex(oa.Error, rf"\?seq_len=8\".*key=value.*this kind {kind}"):
                self.all_of(path, source={"seq_len": 8})
            with self.assertRaisesRegex(oa.Error, "No such file"):
                self.all_of(path + "nothing", source={"seq_len": 8})
        for source in ({"Seq": 1}, {"a": ""}, {"a": "1,b=2"}, {"a": "x?y"}):
            with self.assertRaisesRegex(ValueError, "is no option"):
                self.all_of(self.shards, source=source)
        self.assertEqual(len(self.all_of(self.shards, source={})[1]), SAMPLES)

    def test_path_of_a_bad_sample(self):
        folder = self.copy("paths")
        with tarfile.open(os.path.join(folder, "3.tar"), "a") as tar:
            add(tar, "odd.jpg", b"no picture")
            add(tar, "odd.cls", b"0")
        for path in (folder, folder + "/3.tar", folder + "/{2..3}.tar"):
            loader = self.over(path, bad="skip")
            self.assertGreater(sum(len(batch.ids) for batch in loader), 0)
            self.assertEqual([bad.path for bad in loader.bad_samples], [folder + "/3.tar:odd"])

    def test_bad_picture_has_its_key(self):
        folder = self.copy("bad")
        with tarfile.open(os.path.join(folder, "0.tar"), "a") as tar:
            add(tar, "odd.jpg", b"no picture")
            add(tar, "odd.cls", b"0")
        with self.assertRaisesRegex(oa.Error, r"0.tar:odd"):
            self.all_of(folder)
        self.assertEqual(len(self.all_of(folder, bad="skip")[1]), SAMPLES)

    def test_what_is_refused(self):
        folder = self.work / "refused"
        folder.mkdir()
        shard = folder / "a.tar"
        self.write(str(shard), 0)
        data = bytearray(shard.read_bytes())
        data[1024 + 3] ^= 1  # in the second header
        shard.write_bytes(data)
        whole = bytes(data)
        for text, change in (
                (r"a.tar:1024: no header of a tar archive", lambda: None),
                (r"a.tar:\d+: .*it is cut", lambda: self.write(str(shard), 0) or os.truncate(shard, 30000)),
                (r"a.tar:0: it is empty", lambda: shard.write_bytes(b"")),
                (r"no sample found in the tar shards .*has a picture", lambda: shard.write_bytes(bytes(10240))),
                (r"a.tar:0: .*reaches beyond its end", lambda: shard.write_bytes(whole[:512])),
                (r"\"b.tar.gz\" is compressed.*access-ctl convert .* NEW.tar", lambda: (folder / "b.tar.gz").write_bytes(b"x")),
        ):
            change()
            with self.assertRaisesRegex(oa.Error, text):
                self.all_of(str(folder))
        for name, text in (("b.tar.gz", "is compressed"), ("{0..3", "No such file"), ("{3..0}.tar", "smaller number first"),
                           ("{a,../b}/x.tar", "no .* as a folder"), ("{0..9999999}.tar", "more than 1048576 names"),
                           ("{0..1048575}/" + 200 * "x" + ".tar", "names take more than 256 MiB"),
                           ("x-{000..001}.tar", '"x-000.tar" .*cannot be opened: No such file')):
            with self.assertRaisesRegex(oa.Error, text):
                self.all_of(str(folder / name))

    def test_pictures_beside_tar_files_are_a_folder(self):
        folder = self.work / "beside"
        subprocess.run(["cp", "-a", self.data, folder], check=True)
        self.write(str(folder / "backup.tar"), 0)
        self.assertEqual(len(self.all_of(str(folder))[1]), SAMPLES)


class KeptTest(DaemonCase):
    settings = {"cache_size": "64M", "cache_point": "decoded"}

    def test_shards_that_look_alike(self):
        """Names, sizes and mtimes are the same, and once all that is listed of samples: nothing that is kept of the one
        data set, be it pixels or labels, comes with another."""
        folders = []
        for number, (order, labels) in enumerate(((1, 1), (-1, 1), (1, -1))):
            folder = self.work / f"alike-{number}"
            folder.mkdir()
            folders.append(folder)
            shade = [0, 255][::order]
            label = b"37"[::labels]
            with tarfile.open(folder / "1.tar", "w") as tar:
                for index in range(2):
                    add(tar, f"{index}.ppm", b"P6 64 64 255\n" + bytes([shade[index]]) * (64 * 64 * 3))
                    add(tar, f"{index}.cls", label[index:index + 1])
            os.utime(folder / "1.tar", (1e9, 1e9))
        for folder in folders + folders:
            subprocess.run([BUILD / "tools/access-ctl", "--socket", self.socket, "cache", "warm", folder, "--form", "decoded",
                            "--pipeline", PIPELINE.json], check=True, capture_output=True)
            loader = oa.Loader(str(folder), PIPELINE, 2, socket=self.socket, timeout=600, as_="numpy", copy=True,
                               order="sequential", epochs=3)
            self.addCleanup(loader.close)
            with tarfile.open(folder / "1.tar") as tar:
                wanted = [(tar.extractfile(f"{index}.ppm").read()[-1], int(tar.extractfile(f"{index}.cls").read()))
                          for index in range(2)]
            for _ in range(3):
                for pixels, labels in loader:
                    self.assertEqual([int(label) for label in labels], [label for _, label in wanted])
                    self.assertEqual([bool(picture.mean() > 0) for picture in pixels], [bool(shade) for shade, _ in wanted])


if __name__ == "__main__":
    unittest.main(verbosity=2)
