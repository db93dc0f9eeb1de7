# SPDX-License-Identifier: Apache-2.0
"""access-ctl convert from each kind of data set, compressed shards too: what comes about has the samples of the folder."""

import csv
import ctypes
import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
import unittest
import zlib

import numpy
import oneaccess as oa
import shard_files
import support

PIPELINE = '[{"op": "decode"}, {"op": "random_resized_crop", "size": 32}]'
ORDER = {"order": "sequential", "seed": 3, "epochs": 1, "as_": "numpy"}


def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = library.ZSTD_compressBound.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = library.ZSTD_compressBound(len(data))
    out = ctypes.create_string_buffer(room)
    size = library.ZSTD_compress(out, room, data, len(data), 3)
    return out.raw[:size]


class ConvertTest(support.DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.samples = []
        for label, name in enumerate(sorted(os.listdir(cls.data))):
            for file in sorted(os.listdir(os.path.join(cls.data, name))):
                path = os.path.join(cls.data, name, file)
                with open(path, "rb") as picture:
                    cls.samples.append((picture.read(), label, path))
        cls.folder = cls.batches(cls.data)
        half = len(cls.samples) // 2
        cls.tars = [cls.tar(cls.samples[:half]), cls.tar(cls.samples[half:])]

    @classmethod
    def batches(cls, dataset, **options):
        with oa.Loader(str(dataset), PIPELINE, 32, socket=cls.socket, **{**ORDER, **options}) as loader:
            return [(batch[0].copy(), batch[1].copy()) for batch in loader]

    @staticmethod
    def tar(samples):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            for number, (picture, label, path) in enumerate(samples):
                for suffix, data in ((path.rpartition(".")[2], picture), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{number:05}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        return file.getvalue()

    def assert_same(self, dataset):
        found = self.batches(dataset)
        self.assertEqual(len(found), len(self.folder))
        for (pictures, labels), (of_folder, labels_of_folder) in zip(found, self.folder):
            numpy.testing.assert_array_equal(pictures, of_folder)
            numpy.testing.assert_array_equal(labels, labels_of_folder)

    def run_convert(self, *words):
        return subprocess.run([support.BUILD / "tools/access-ctl", "convert", *map(str, words)], capture_output=True, text=True)

    def convert(self, source, name, *forms):
        """To both, and from them to a Loader."""
        out = self.work / f"{name}.out"
        out.mkdir()
        targets = {"x.oads": (), "x.tar": (), **{f"{form}.oads": ("--form", form) for form in forms}}
        for target, more in targets.items():
            done = self.run_convert(*more, source, out / target)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_same(out / target)
        done = self.run_convert("--check", out / "x.oads")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(out)), sorted(targets))  # and nothing that was unpacked
        return out

    def fails(self, words, source, *more):
        out = self.work / "failed"
        out.mkdir(exist_ok=True)
        done = self.run_convert(source, *more, out / "x.tar")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(os.listdir(out), [])

    def write(self, name, files):
        folder = self.work / name
        folder.mkdir()
        for file, data in files.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(data)
        return folder

    def refused(self, dataset, words):
        with self.assertRaises(oa.errors.DatasetError) as caught:
            self.batches(dataset)
        self.assertIn(words, str(caught.exception))

    def test_tar(self):
        folder = self.write("tar", {f"{number}.tar": data for number, data in enumerate(self.tars)})
        out = self.convert(folder, "tar", "file", "indexed")
        with tarfile.open(out / "x.tar") as shard:  # pictures as they were, with their own suffixes
            pictures = [shard.extractfile(member).read() for member in shard if not member.name.endswith((".cls", ".json"))]
        self.assertEqual(pictures, [picture for picture, _, _ in self.samples])
        self.convert(f"{folder}/{{0..1}}.tar", "tar-list")

    def test_compressed_tar(self):
        files = {"0.tar.gz": gzip.compress(self.tars[0][:7000]) + gzip.compress(self.tars[0][7000:]),
                 "1.tar.zst": zstd(self.tars[1][:7000]) + zstd(self.tars[1][7000:])}
        folder = self.write("compressed", files)
        self.refused(folder, f'write plain shards with access-ctl convert "{folder}" NEW.tar')
        self.convert(folder, "compressed")
        mixed = self.write("mixed", {"0.tar": self.tars[0], "1.tgz": gzip.compress(self.tars[1])})
        self.convert(mixed, "mixed")
        nested = self.write("nested", {"b/0.tar.gz": gzip.compress(self.tars[1]), "a/1.tar.gz": gzip.compress(self.tars[0])})
        self.refused(f"{nested}/{{a,b}}/{{0..1}}.tar.gz", "access-ctl convert")
        self.convert(f"{nested}/{{a/1,b/0}}.tar.gz", "nested")
        filled = self.write("filled", {"0.tar.gz": files["0.tar.gz"] + bytes(1 << 17),  # up to a block's end, as tapes are
                                       "1.tar.gz": gzip.compress(self.tars[1]) + bytes(3)})
        self.convert(filled, "filled")
        one = self.work / "one.tar.zst"
        one.write_bytes(zstd(self.tar(self.samples)))
        self.convert(one, "one")

    def test_an_inherited_signal(self):
        folder = self.write("signal", {"0.tar.gz": gzip.compress(self.tar(self.samples))})
        out = self.work / "signal.oads"
        done = subprocess.run([support.BUILD / "tools/access-ctl", "convert", folder, out], capture_output=True, text=True, timeout=600,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same(out)

    def test_damaged_archives(self):
        good = gzip.compress(self.tars[0])
        folder = self.write("damaged", {"a.tar.gz": good[:-20]})
        self.fails('shard "a.tar.gz" ends within its compressed data', folder)
        (folder / "a.tar.gz").write_bytes(good[:2000] + bytes(50) + good[2050:])
        self.fails('shard "a.tar.gz" is damaged', folder)
        (folder / "a.tar.gz").write_bytes(gzip.compress(self.tars[0][:30000]))
        self.fails("it is cut", folder)
        os.rename(folder / "a.tar.gz", folder / "a.tar.zst")
        self.fails('shard "a.tar.zst" is damaged', folder)
        (folder / "a.tar.zst").write_bytes(zstd(self.tars[0])[:-9])
        self.fails('shard "a.tar.zst" ends within its compressed data', folder)
        raw = b"\x01\0\0"  # a last block without bytes, behind a window of 256 MiB
        (folder / "a.tar.zst").write_bytes(b"\x28\xb5\x2f\xfd\0" + bytes([18 << 3]) + raw)
        self.fails('shard "a.tar.zst" needs a window over 128 MiB: unpack it by zstd -d --long=31', folder)
        os.rename(folder / "a.tar.zst", folder / "a.tar.bz2")
        self.fails("unpack it (gunzip, bunzip2, unxz) and give the plain tar shards", folder)

    def test_tfrecord(self):
        folder = self.work / "records"
        folder.mkdir()
        shard_files.write_tfrecord(folder / "a.tfrecord", [
            shard_files.example({"kind": [label], "photo": picture, "image/encoded": b"\xff\xd8\xff another one"})
            for picture, label, _ in self.samples])
        self.convert(f"{folder}?image=photo,label=kind", "tfrecord")
        data = (folder / "a.tfrecord").read_bytes()
        (folder / "a.tfrecord").unlink()
        (folder / "a.tfrecord.zlib").write_bytes(zlib.compress(data))
        self.convert(f"{folder}?image=photo,label=kind", "tfrecord-zlib")

    def test_mds(self):
        folder = self.work / "mds"
        shard_files.write_mds(folder, {"image": "jpeg", "label": "int"},
                              [[{"image": picture, "label": label.to_bytes(8, "little")} for picture, label, _ in self.samples]])
        self.convert(folder, "mds")
        index = json.loads((folder / "index.json").read_text())
        for shard in index["shards"]:
            plain = folder / shard["raw_data"]["basename"]
            shard["compression"], shard["zip_data"] = "zstd", {"basename": plain.name + ".zstd"}
            (folder / (plain.name + ".zstd")).write_bytes(zstd(plain.read_bytes()))
            plain.unlink()
        (folder / "index.json").write_text(json.dumps(index))
        self.refused(folder, "access-ctl convert")
        self.convert(folder, "mds-zstd")

    def test_manifest(self):
        path = self.work / "list.csv"
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("path", "label"))
            writer.writerows((path, ("cat", "dog", "N/A")[(label + 2) % 3]) for _, label, path in self.samples)  # in any order
        out = self.convert(path, "manifest")
        with oa.Loader(str(out / "x.oads"), PIPELINE, 32, socket=self.socket) as loader:
            self.assertEqual(loader.classes, ["N/A", "cat", "dog"])
            self.assertEqual(len(loader.dataset), len(self.samples))

    def test_what_is_not_converted(self):
        rows = self.work / "rows.npy"
        numpy.save(rows, numpy.zeros((4, 3), "f4"))
        self.fails("has rows of numbers", rows)
        done = self.run_convert(self.data, self.work / "folder.oads")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.fails("is a converted data set", self.work / "folder.oads")
        self.fails("nowhere\": No such file", self.work / "nowhere")
        self.fails("the options of dataset", f"{self.data}?label=x")


if __name__ == "__main__":
    unittest.main(verbosity=2)
