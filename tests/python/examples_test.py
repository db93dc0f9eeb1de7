# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say, on a few small pictures. Needs PyTorch and torchvision."""

import importlib.util
import io
import json
import math
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
import unittest

try:
    import PIL.Image
    import torch  # noqa: F401
    import torchvision  # noqa: F401
except ImportError as missing:
    print(f"examples_test: skipped: {missing}")
    sys.exit(77)

from support import SAMPLES, DaemonCase

EXAMPLES = pathlib.Path(os.environ["top_srcdir"]) / "python/examples"
SEEDED = pathlib.Path(__file__).with_name("seeded.py")
LONGEST = 1800  # only ends what hangs: beside much else, imports alone take minutes
SMALL = ["--size", "32", "--batch-size", "24"]
CAN_VIDEO = shutil.which("ffmpeg") and os.path.exists(os.path.join(os.environ["ACCESS_LIBEXEC"], "access-video.so"))


class ExamplesTest(DaemonCase):
    def environment(self):
        return {**os.environ, "ACCESS_SOCKET": self.socket, "DATA": self.data}

    def run_words(self, *words, **variables):
        run = subprocess.run([sys.executable, *words], timeout=LONGEST, env={**self.environment(), **variables}, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def run_example(self, name, *arguments):
        return self.run_words(EXAMPLES / name, self.data, *arguments)

    def test_training_with_either_loader(self):
        for loader in ("oneaccess", "torch", "torch-io"):
            file = self.work / f"{loader}.json"
            self.run_example("train.py", "--loader", loader, "--steps", "3", "--json", file, *SMALL)
            result = json.loads(file.read_text())
            self.assertEqual((result["step"], result["samples"]), (3, 72))

    def test_search(self):
        said = self.run_example("search.py", "--steps", "2", *SMALL)
        self.assertEqual(sum(line.strip()[:1].isdigit() and "%" in line for line in said.splitlines()), 4)

    def test_ranks(self):
        said = self.run_example("ddp.py", "--epochs", "1", "--size", "32", "--batch-size", "20")
        self.assertEqual(said.splitlines()[-1], f"epoch 1: {SAMPLES} samples in 6 steps of 2 ranks")

    def test_a_killed_job_goes_on(self):
        checkpoint, file = self.work / "model.pt", self.work / "result.json"
        arguments = ["--epochs", "2", "--checkpoint", checkpoint, "--save-every", "2", "--json", file, *SMALL]
        job = subprocess.Popen([sys.executable, EXAMPLES / "train.py", self.data, *arguments],
                               env=self.environment(), stdout=subprocess.DEVNULL)
        end = time.monotonic() + LONGEST
        while not checkpoint.exists() and time.monotonic() < end:
            time.sleep(0.05)
        job.send_signal(signal.SIGKILL)
        job.wait()
        self.assertTrue(checkpoint.exists())
        self.run_example("train.py", *arguments)
        result = json.loads(file.read_text())
        self.assertEqual((result["epoch"], result["step"], result["samples"]), (2, 18, 432))

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "no PyTorch Lightning")
    def test_lightning_goes_on_in_mid_epoch(self):
        arguments = ["--accelerator", "cpu", "--checkpoint", self.work / "lit.ckpt", "--save-every", "4", *SMALL]
        said = self.run_example("lit.py", "--epochs", "2", *arguments)
        self.assertIn("432 samples, 18 steps", said)
        said = self.run_example("lit.py", "--epochs", "3", *arguments)  # from the 16th, 7 of the epoch's 9
        self.assertIn("264 samples, 27 steps", said)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "no Accelerate")
    def test_accelerate_goes_on(self):
        arguments = ["--cpu", "--epochs", "2", "--checkpoint", self.work / "accelerated", *SMALL]
        for _ in range(2):  # the second goes on
            said = self.run_example("accelerated.py", *arguments)
            self.assertEqual(said.count("240 samples, 4 steps"), 2, said)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "no transformers")
    def test_a_trainer(self):
        said = self.run_example("hf_trainer.py", "--cpu", "--output", self.work / "trainer", *SMALL)
        self.assertIn("480 samples, 8 steps", said)

    def test_distillation(self):
        said = [self.run_example("distill.py", self.work / "logits", "--epochs", "2", *SMALL) for _ in range(2)]
        self.assertIn(f"the teacher has seen {SAMPLES} samples", said[0])
        self.assertIn("the teacher has seen 0 samples", said[1])
        for text in said:
            losses = [float(loss) for loss in re.findall(rf"epoch \d: {SAMPLES} samples, divergence (\S+)", text)]
            self.assertEqual(len(losses), 2, text)
            self.assertLess(losses[1], losses[0])

    def test_packed_tokens(self):
        corpus = self.work / "corpus.bin"
        self.run_words(EXAMPLES / "packed_lm.py", corpus, "--epochs", "0")  # which makes the corpus
        text = self.run_learning("packed_lm.py", corpus, "--seq-len", "64", "--epochs", "2")
        said = re.findall(r"epoch \d: (\d+) tokens, (\S+) % padding, loss (\S+)", text)
        self.assertEqual(len(said), 2, text)
        self.assertEqual({int(tokens) for tokens, _, _ in said}, {corpus.stat().st_size // 2})
        self.assertLess(float(said[1][2]), float(said[0][2]))

    def test_masked_tokens(self):
        corpus = self.work / "masked.bin"
        self.run_words(EXAMPLES / "masked_lm.py", corpus, "--epochs", "0")  # which makes the corpus
        text = self.run_learning("masked_lm.py", corpus, "--seq-len", "64", "--epochs", "3")
        said = [[float(number) for number in found] for found in re.findall(r"epoch \d: (\d+) tokens, (\d+) chosen, loss (\S+)", text)]
        self.assertEqual({tokens for tokens, _, _ in said}, {corpus.stat().st_size // 2}, text)
        self.assertEqual(len({chosen for _, chosen, _ in said}), 3, text)      # drawn anew
        self.assertTrue(all(0.12 < chosen / tokens < 0.17 for tokens, chosen, _ in said), text)
        self.assertLess(said[2][2], said[0][2])

    def test_chats(self):
        chats = self.work / "chats.jsonl"
        self.run_words(EXAMPLES / "sft.py", chats, "--epochs", "0")     # which makes the files
        for suffix in (".bin", ".idx", ".loss"):
            os.utime(chats.with_suffix(suffix), (1700000000, 1700000000))
        text = self.run_learning("sft.py", chats, "--seq-len", "64", "--epochs", "2")
        said = re.findall(r"epoch \d: (\d+) tokens, of which (\d+) count, loss (\S+)", text)
        self.assertEqual(len(said), 2, text)
        loss = chats.with_suffix(".loss").read_bytes()
        self.assertEqual({(int(tokens), int(counted)) for tokens, counted, _ in said}, {(len(loss), sum(loss))})
        self.assertLess(float(said[1][2]), float(said[0][2]))

    def run_learning(self, name, *arguments):
        """What it learns it learns in each run: by a seed the order depends on the files alone, and when they were written. Its data set may
        have a pool."""
        for path in arguments:
            if isinstance(path, pathlib.Path):
                for file in (path, *path.rglob("*")):
                    os.utime(file, (1700000000, 1700000000))
        (self.work / "run").mkdir(mode=0o700, exist_ok=True)
        return self.run_words(SEEDED, EXAMPLES / name, *arguments, XDG_RUNTIME_DIR=str(self.work / "run"))

    def losses(self, said, *counts, below=None):
        """Of each epoch, which has these counts; they fall, or end below this one."""
        epochs = re.findall(r"epoch \d+: (\d+) samples.* loss ([0-9.]+)", said)
        self.assertEqual([int(samples) for samples, _ in epochs], [*counts], said)
        self.assertLess(float(epochs[-1][1]), below or float(epochs[0][1]), said)

    def test_two_views(self):
        """Of the 127 others the right one is found more often than by a guess; of three colours, jittered, not always."""
        self.losses(self.run_learning("simclr.py", pathlib.Path(self.data), "--epochs", "3"), 192, 192, 192, below=math.log(127))

    @unittest.skipUnless(importlib.util.find_spec("av") and importlib.util.find_spec("pyarrow"), "no PyAV or pyarrow")
    def test_robots(self):
        import robot_samples
        root = robot_samples.write_3(self.work / "robots")
        learned = sum(robot_samples.LENGTHS[:-1]) // 8 * 8
        self.losses(self.run_learning("robots.py", root, "--epochs", "4", "--batch-size", "8"), *[learned] * 4)

    @unittest.skipUnless(importlib.util.find_spec("openslide"), "no openslide")
    def test_slides(self):
        """Tissue of two colours, which is learned; each slide's map has a pixel of each window of tissue."""
        import scene_samples
        slides, maps = self.work / "slides", self.work / "maps"
        for number in range(4):
            kind = ("normal", "tumor")[number % 2]
            scene_samples.write_slide(slides / kind / f"{kind}{number}.tif", scene_samples.slide_pixels(number, number % 2))
        said = self.run_learning("slides.py", slides, "--size", "64", "--batch-size", "16", "--epochs", "4", f"--maps={maps}")
        self.losses(said, *[4 * 36 // 16 * 16] * 4)
        shares = {kind: float(share) for kind, share in re.findall(r"(normal|tumor)\d.tif: 36 windows, ([0-9.]+)% tumor", said)}
        self.assertLess(shares["normal"], 50, said)
        self.assertGreater(shares["tumor"], 50, said)
        left, top, right, bottom = (side // 64 for side in scene_samples.TISSUE)
        for kind, name in (("normal", "normal0"), ("tumor", "tumor3")):
            with PIL.Image.open(maps / f"{name}.png") as image:
                self.assertEqual(image.size, (right, bottom))
                inside = [image.getpixel((x, y)) > 127 for x in range(left, right) for y in range(top, bottom)]
            self.assertEqual({*inside}, {kind == "tumor"})

    @unittest.skipUnless(importlib.util.find_spec("h5py"), "no h5py")
    def test_cells(self):
        """Cells of a type have most of their counts in genes of its own."""
        import h5py
        import numpy as np
        draw, types, path = np.random.default_rng(1), np.arange(600) % 3, self.work / "cells.h5ad"
        counts = draw.poisson(np.where(np.arange(30) % 3 == types[:, None], 2.0, 0.2))
        with h5py.File(path, "w") as root:
            root["X"] = counts.astype("f4")
            for name, index in (("obs", [f"cell-{at}" for at in range(600)]), ("var", [f"gene-{at}" for at in range(30)])):
                root.create_group(name).attrs["_index"] = "names"
                root.create_dataset(f"{name}/names", data=index, dtype=h5py.string_dtype())
            root["obs/cell_type/codes"] = types.astype("i1")
            root.create_dataset("obs/cell_type/categories", data=["B cell", "NK", "T cell"], dtype=h5py.string_dtype())
        said = self.run_learning("cells.py", path, "--epochs", "4", "--batch-size", "32")
        self.assertIn("600 cells, 30 genes, 3 types", said)
        self.losses(said, *[600] * 4)

    def test_genome(self):
        """A peak has a word that the background has not, in either direction."""
        import numpy as np
        draw, path = np.random.default_rng(1), self.work / "genome.fa"
        beds = {name: [] for name in ("peaks", "background")}
        with open(path, "w", encoding="ascii") as file:
            for chromosome in ("chr1", "chr2", "chr8"):
                letters = draw.choice([*"ACGT"], 20000)
                for start in range(100, 19900, 100):
                    name = ("peaks", "background")[start // 100 % 2]
                    if name == "peaks":
                        letters[start + 20:start + 40] = [*"TGACTCATGACGTTGACGTA"]
                    beds[name].append(f"{chromosome}\t{start}\t{start + 60}\n")
                file.write(f">{chromosome}\n{''.join(letters)}\n")
        for name, lines in beds.items():
            (self.work / f"{name}.bed").write_text("".join(lines))
        said = self.run_learning("genome.py", path, self.work / "peaks.bed", self.work / "background.bed", "--held-out", "chr8", "--length", "60", "--jitter", "5",
                                 "--batch-size", "16", "--epochs", "4")
        self.assertIn("396 windows to train on, 198 to validate on, 2 classes", said)
        self.losses(said, *[396] * 4)
        self.assertGreater(float(re.findall(r"([0-9.]+)% of those held out", said)[-1]), 90)
    def test_graphs(self):
        """Energies of atoms of three kinds."""
        import numpy as np
        draw, path = np.random.default_rng(1), self.work / "atoms.db"
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE systems (id INTEGER PRIMARY KEY, numbers BLOB, positions BLOB, energy REAL)")
            for _ in range(120):
                kinds = draw.integers(0, 3, draw.integers(2, 8))
                database.execute("INSERT INTO systems (numbers, positions, energy) VALUES (?, ?, ?)",
                                 [np.array([1, 6, 8], "<i4")[kinds].tobytes(), draw.random((len(kinds), 3)).tobytes(), float(kinds.sum())])
        database.close()
        self.losses(self.run_learning("graphs.py", path, "--epochs", "4", "--batch-size", "16"), *[120] * 4)
    @unittest.skipUnless(importlib.util.find_spec("xarray") and importlib.util.find_spec("netCDF4"), "no xarray and netCDF4")
    def test_forecast(self):
        """A wave that goes around the globe."""
        import numpy as np
        import xarray as xr
        step, where = np.arange(120), ("latitude", "longitude")
        wave = np.cos(np.arange(8)[:, None] - 4) * np.sin(np.arange(16) * np.pi / 4 - step[:, None, None] / 4)
        fields = {"heat": (("time", *where), 280 + 10 * wave), "height": (("time", "level", *where), 5000 + 100 * np.stack([wave, -wave], 1)), "land": (where, wave[0] > 0.5)}
        xr.Dataset(fields, {"time": np.datetime64("2015-12-11", "ns") + step * np.timedelta64(6, "h"), "level": [500, 850]}).to_netcdf(self.work / "weather.nc")
        said = self.run_learning("forecast.py", self.work / "weather.nc", "heat", "height", "--static", "land", "--until", "2015", "--validate-from", "2016", "--epochs", "4")
        self.assertIn("81 samples of 3 channels: heat, height_500, height_850", said)
        self.losses(said, *[81] * 4)
        self.assertIn("validation: 33 samples", said)

    def test_hard_examples(self):
        said = self.run_example("hard_examples.py", *SMALL)
        epochs = re.findall(r"epoch \d: (\d+) samples(?:, of losses from ([0-9.]+) on; the others to ([0-9.]+))?, loss", said)
        half = str(SAMPLES // 2)
        self.assertEqual([count for count, *_ in epochs], [str(SAMPLES), half, half] * 2, said)
        for _, least, most in epochs:
            self.assertGreaterEqual(float(least or 0), float(most or 0), said)
        worst = re.findall(r"learned worst: (.*), loss", said)
        self.assertEqual([os.path.isfile(os.path.join(self.data, name)) for name in worst], [True] * 3, said)

    def test_pruning_goes_on_in_mid_epoch(self):
        arguments = ["--epochs", "4", "--checkpoint", self.work / "pruned.pt", *SMALL]
        said = self.run_example("infobatch.py", "--steps", "12", *arguments)    # an epoch has 10 at most, and 5 at least
        said += self.run_example("infobatch.py", "--steps", "3", *arguments) + self.run_example("infobatch.py", *arguments)
        epochs = re.findall(r"epoch (\d): (\d+) samples, (all|(\d+) above the mean and (\d+) of (\d+) below it);", said)
        self.assertEqual([int(number) for number, *_ in epochs], [1, 2, 3, 4], said)
        self.assertEqual([int(epochs[at][1]) for at in (0, 3)], [SAMPLES] * 2, said)
        for _, count, _, above, stay, below in epochs[1:3]:
            self.assertEqual(int(count), int(above) + int(stay), said)
            self.assertEqual(int(above) + int(below), SAMPLES, said)

    def test_captions(self):
        """The colour of each picture, in words."""
        shard = self.work / "captions.tar"
        colours = {"red": (220, 20, 20), "dark green": (10, 120, 10), "blue": (20, 20, 220), "white": (250, 250, 250)}
        with tarfile.open(shard, "w") as tar:
            for index in range(96):
                name, file = list(colours)[index % 4], io.BytesIO()
                PIL.Image.new("RGB", (80 + index % 9, 70), colours[name]).save(file, "JPEG")
                for kind, data in (("jpg", file.getvalue()), ("txt", f"a {name} wall".encode())):
                    member = tarfile.TarInfo(f"{index:04}.{kind}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        said = self.run_learning("clip.py", shard, "--batch-size", "32")
        self.losses(said, 96, 96, 96)
        letters = sum(len(f"a {list(colours)[index % 4]} wall") for index in range(96))
        self.assertEqual(said.count(f"captions of {letters} letters"), 3, said)

    def moving(self, name, colour, across, up):
        """A video of a square that moves."""
        file = self.work / f"{name}.mp4"
        run = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", f"color=gray:80x60:d=2:r=12", "-f", "lavfi", "-i",
                              f"color={colour}:20x20:d=2:r=12", "-filter_complex", f"overlay=x='30+{across}*t':y='20+{up}*t'", "-pix_fmt", "yuv420p", file],
                             check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        return file

    @unittest.skipUnless(CAN_VIDEO, "no ffmpeg, or a build that decodes no videos")
    def test_videos(self):
        """Squares that move sideways, up and down, and not at all."""
        ways = {"across": (14, 0), "up": (0, -10), "still": (0, 0)}
        for index in range(60):
            name, number = list(ways)[index % 3], index // 3
            (self.work / "moving" / name).mkdir(parents=True, exist_ok=True)
            across, up = (way * (1 if number % 2 else -1) for way in ways[name])
            colour = f"0x{40 * (number % 6) + 20:02x}{255 - 9 * number:02x}40"
            shutil.move(self.moving("one", colour, across, up), self.work / "moving" / name / f"{number:02}.mp4")
        said = self.run_learning("video.py", self.work / "moving", "--epochs", "12")
        self.losses(said, *[60] * 12)

    @unittest.skipUnless(CAN_VIDEO, "no ffmpeg, or a build that decodes no videos")
    def test_videos_and_captions(self):
        shard, words = self.work / "clips.tar", {"red": "red", "green": "green", "blue": "blue", "white": "white"}
        files = {name: self.moving(name, colour, 8, 0).read_bytes() for name, colour in words.items()}
        with tarfile.open(shard, "w") as tar:
            for index in range(64):
                name = list(words)[index % 4]
                for kind, data in (("mp4", files[name]), ("txt", f"a {name} square moves".encode())):
                    member = tarfile.TarInfo(f"{index:04}.{kind}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        self.losses(self.run_learning("video_captions.py", shard), 64, 64, 64)

    def test_vision_and_language(self):
        """Photographs of any proportion: what colour they have is learned."""
        rows, colours = self.work / "rows.jsonl", ["red", "green", "blue", "white"]
        lines = []
        for index in range(64):
            name = colours[index % 4]
            PIL.Image.new("RGB", (40 + 37 * index % 300, 30 + 53 * index % 300), name).save(self.work / f"vlm-{index}.png")
            lines.append({"image": f"vlm-{index}.png", "text": f"it is {name}"})
        rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = self.run_learning("vlm.py", rows)
        told = re.findall(r"epoch \d: (\d+) samples, (\d+) patches, loss (\S+)", said)
        self.assertEqual([int(samples) for samples, _, _ in told], [64] * 3, said)
        self.assertEqual(len({patches for _, patches, _ in told}), 1)
        self.assertLess(float(told[-1][2]), float(told[0][2]) / 2)

    def test_boxes_of_scans(self):
        import driving_samples
        driving_samples.write_cars(self.work / "cars", 24)
        arguments = ["--split", "training", "--all-around", "--classes", "Car", "--epochs", "3", "--batch-size", "4"]
        self.losses(self.run_learning("pillars.py", self.work / "cars", *arguments), 24, 24, 24)

    def test_meshes(self):
        """Boxes that are flat, long or neither."""
        sides = {"cube": (1, 1, 1), "plate": (1, 1, .1), "rod": (.1, .1, 1)}
        for index in range(48):
            name, size = list(sides)[index % 3], 1 + index / 10
            folder = self.work / "meshes" / name / "train"
            folder.mkdir(parents=True, exist_ok=True)
            corners = "".join(" ".join(str(size * side * (corner >> axis & 1)) for axis, side in enumerate(sides[name])) + "\n" for corner in range(8))
            (folder / f"{index:02}.off").write_text(f"OFF\n8 6 0\n{corners}4 0 2 3 1\n4 4 5 7 6\n4 0 1 5 4\n4 2 6 7 3\n4 0 4 6 2\n4 1 3 7 5\n")
        said = self.run_learning("meshes.py", self.work / "meshes", "--points", "128", "--batch-size", "12", "--epochs", "4")
        self.losses(said, *[48] * 4)

    def test_segmentation(self):
        """Squares of three colours: which pixel is of which is learned."""
        names = []
        for index in range(96):
            picture, mask = PIL.Image.new("RGB", (120, 110)), PIL.Image.new("P", (120, 110))
            mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0])
            for number in range(1 + index % 3):
                left, top = 5 + (index * 17 + number * 41) % 80, 5 + (index * 29 + number * 53) % 70
                colour = [0, 0, 0]
                colour[number] = 255
                picture.paste(tuple(colour), (left, top, left + 30, top + 30))
                mask.paste(number + 1, (left, top, left + 30, top + 30))
            for folder, of, kind in (("pixels", picture, "jpg"), ("labels", mask, "png")):
                (self.work / folder).mkdir(exist_ok=True)
                of.save(self.work / folder / f"{index:04}.{kind}")
            names.append(f"{index:04}\n")
        (self.work / "names.txt").write_text("".join(names[:80]))
        said = self.run_learning("segment.py", self.work / "pixels", self.work / "labels", "--names", self.work / "names.txt", "--classes", "4",
                               "--epochs", "2")
        self.losses(said, 80, 80)
        self.assertEqual(said.count("% of the pixels are right"), 2, said)

    def test_restoration(self):
        """What is in a square is learned from what is around, of the same places."""
        for index in range(48):
            picture = PIL.Image.new("RGB", (160, 140), (index * 5, 200 - index, 90))
            picture.paste((255 - index, 40, index * 3), (20 + index, 30, 80 + index, 100))
            for folder, of in (("noisy", picture.resize((80, 70))), ("clean", picture)):
                (self.work / folder).mkdir(exist_ok=True)
                of.save(self.work / folder / f"{index:04}.png")
        self.losses(self.run_learning("restore.py", self.work / "noisy", self.work / "clean", "--scale", "2", "--epochs", "2"), 48, 48)

    def test_detection(self):
        """Squares of three colours: their places are learned, and each sample's boxes and caption come."""
        shard, count = self.work / "squares.tar", 96
        with tarfile.open(shard, "w") as tar:
            for index in range(count):
                picture, boxes, classes = PIL.Image.new("RGB", (120, 110)), [], []
                for number in range(1 + index % 3):
                    left, top = 5 + (index * 17 + number * 41) % 90, 5 + (index * 29 + number * 53) % 80
                    colour = [0, 0, 0]
                    colour[number] = 255
                    picture.paste(tuple(colour), (left, top, left + 20, top + 20))
                    boxes.append([left, top, left + 20, top + 20])
                    classes.append(number)
                file = io.BytesIO()
                picture.save(file, "PNG")
                for kind, data in (("png", file.getvalue()), ("json", json.dumps({"boxes": boxes, "classes": classes}).encode()),
                                   ("txt", f"{len(boxes)} squares".encode())):
                    member = tarfile.TarInfo(f"{index:04}.{kind}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        said = self.run_learning("detect.py", shard, "--epochs", "4")
        epochs = re.findall(r"epoch \d: (\d+) samples, (\d+) boxes, captions of (\d+) letters, loss ([0-9.]+)", said)
        self.assertEqual(len(epochs), 4, said)
        for samples, boxes, letters, _ in epochs:
            self.assertEqual((int(samples), int(letters)), (count, 9 * count))
            self.assertGreater(int(boxes), count)
            self.assertLessEqual(int(boxes), 2 * count)
        self.assertLess(float(epochs[-1][3]), float(epochs[0][3]), said)
        said = self.run_learning("detect.py", shard, "--epochs", "2", "--mosaic", "1")
        several, usual = (int(boxes) for boxes in re.findall(r"96 samples, (\d+) boxes, captions of 864 letters", said))
        self.assertGreater(several, 2 * count, said)
        self.assertLessEqual(usual, 2 * count, said)

    @unittest.skipUnless(importlib.util.find_spec("timm"), "no timm")
    def test_timm(self):
        said = self.run_example("with_timm.py", *SMALL)
        self.assertEqual(said.count("240 samples, "), 2, said)

    @unittest.skipUnless(importlib.util.find_spec("datasets"), "no datasets")
    def test_datasets(self):
        said = self.run_example("with_datasets.py", *SMALL)
        self.assertEqual(said.count("240 samples, loss "), 2, said)

    @unittest.skipUnless(importlib.util.find_spec("jax"), "no JAX")
    def test_jax(self):
        said = self.run_example("with_jax.py", *SMALL)
        self.assertEqual(said.count("240 samples, loss "), 2, said)

    @unittest.skipUnless(importlib.util.find_spec("optuna"), "no Optuna")
    def test_optuna(self):
        said = self.run_example("with_optuna.py", "--trials", "3", "--jobs", "2", *SMALL)
        self.assertIn("3 trials, the best rate is ", said)

    def test_the_notebook(self):
        cells = json.loads((EXAMPLES / "look.ipynb").read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        subprocess.run([sys.executable, "-c", code], env=self.environment(), timeout=LONGEST, check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
