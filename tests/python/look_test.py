# SPDX-License-Identifier: Apache-2.0
"""oneaccess.look: what it says of a data set is what NumPy finds in its files, and a sheet has what a loop gets."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"look_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import look
from oneaccess import transforms as t
from support import SAMPLES, PoolCase

WHOLE = oa.Compose([t.Resize((64, 64)), t.PILToTensor()])


class Shapes:
    """A box, a mask and a key point at known places of a grey picture."""

    classes = ["thing"]

    def __len__(self):
        return 4

    def __getitem__(self, index):
        mask = np.zeros((80, 80), np.uint8)
        mask[60:70, 60:70] = 1
        mask[70:80, 60:70] = 255    # outside of all classes
        return {"image": np.full((80, 80, 3), 128, np.uint8), "boxes": np.array([[10, 20, 40, 50]], np.float32), "classes": np.array([0]),
                "mask": mask, "points": np.array([[[50, 10, 2], [70, 10, 0]]], np.float32)}


class LookTest(PoolCase):
    def copied(self):
        folder = self.work / self.id().rsplit(".", 1)[-1]
        shutil.copytree(self.data, folder)
        return folder

    def describe(self, *args, **options):
        return look.describe(*args, socket=self.socket, timeout=600, **options)

    def test_moments_of_all(self):
        about = self.describe(self.data, WHOLE, samples=None)
        files = sorted(pathlib.Path(self.data).rglob("*.*"))
        pixels = np.stack([np.asarray(PIL.Image.open(file).convert("RGB").resize((64, 64), PIL.Image.BILINEAR)) for file in files]) / 255
        np.testing.assert_allclose(about.mean, pixels.mean((0, 1, 2)), atol=1e-9)
        np.testing.assert_allclose(about.std, pixels.std((0, 1, 2)), atol=1e-9)
        self.assertEqual((about.count, about.looked_at, about.bad), (SAMPLES, SAMPLES, []))
        self.assertEqual(sum(about.classes.values()), SAMPLES)
        self.assertEqual(list(about.classes), sorted(os.listdir(self.data)))

    def test_some(self):
        one, same, other = (self.describe(self.data, WHOLE, samples=40, seed=seed) for seed in (1, 1, 2))
        self.assertEqual((one.looked_at, one.mean), (40, same.mean))
        self.assertNotEqual(one.mean, other.mean)

    def test_bad_ones(self):
        folder = self.copied()
        bad = sorted(folder.rglob("*.*"))[7]
        bad.write_bytes(bad.read_bytes()[:100])
        about = self.describe(folder, WHOLE, samples=None)
        self.assertEqual([one.path for one in about.bad], [str(bad)])
        self.assertEqual(about.looked_at, SAMPLES - 1)
        self.assertIn(str(bad), str(about))

    def test_none_is_good(self):
        folder = self.copied()
        for file in folder.rglob("*.*"):
            file.write_bytes(b"\xff\xd8")
        with self.assertRaises(oa.Error) as caught:
            self.describe(folder, WHOLE)
        self.assertIn("bad", str(caught.exception))

    def test_numbers_without_some(self):
        """NaN are no values, and a channel of nothing else has no influence."""
        values = np.arange(8 * 2 * 3 * 3, dtype=np.float32).reshape(8, 2, 3, 3)
        values[3, 0], values[:, 1, 0, 0] = np.nan, np.nan
        moments = look._Moments()
        for part in (values[:3], values[3:4], values[4:]):
            moments.add(part.swapaxes(0, 1).reshape(2, -1).astype("float64"))
        np.testing.assert_allclose(moments.mean, np.nanmean(values, (0, 2, 3)))
        np.testing.assert_allclose((moments.squares / moments.count) ** 0.5, np.nanstd(values, (0, 2, 3)))

    def test_sheet(self):
        """Each cell is its picture, at its place, with Normalize() undone."""
        file = self.work / "sheet.png"
        pipeline = oa.imagenet_eval(64)
        loader = self.open(self.data, pipeline, order="sequential")
        look.sheet(loader, file, samples=20, columns=5)
        page = np.asarray(PIL.Image.open(file)).astype(int)
        with oa.Loader(self.data, oa.imagenet_eval(64, dtype="uint8"), 20, order="sequential", as_="numpy", socket=self.socket, timeout=600) as plain:
            pictures = next(iter(plain))[0]
        height, width = (page.shape[0] - 4) // 4, (page.shape[1] - 4) // 5
        for at, picture in enumerate(pictures):
            top, left = at // 5 * height + 4 + 12, at % 5 * width + 4
            cell = page[top:top + 128:2, left:left + 128:2]
            self.assertLessEqual(np.abs(cell - picture.transpose(1, 2, 0)).max(), 1)

    def test_sheet_of_a_named_pipeline(self):
        """Bytes are drawn as they are; what is normalized, to the same."""
        pages = []
        for name in ("imagenet-eval", "imagenet-eval-u8"):
            file = self.work / f"{name}.png"
            look.sheet(self.open(self.data, name, order="sequential"), file, samples=4)
            with PIL.Image.open(file) as page:
                pages.append(np.asarray(page).astype(int))
        self.assertLessEqual(np.abs(pages[0] - pages[1]).max(), 1)

    def test_sheet_of_objects(self):
        data = oa.wrap(Shapes(), random=False, ragged={"boxes": 2, "classes": 2, "points": 2}, boxes=["boxes", "classes", oa.Points("points")], masks="mask")
        file = self.work / "objects.png"
        look.sheet(self.open(data, oa.Compose([t.CenterCrop(80), t.ToTensor()]), order="sequential", batch_size=4), file)
        cell = np.asarray(PIL.Image.open(file))[4:164, 4:164].astype(int)
        grey, red, green = [128] * 3, list(look._COLORS[0]), list(look._COLORS[1])
        self.assertEqual(cell[70, 20].tolist(), red)        # the box' left side
        self.assertEqual(cell[20, 100].tolist(), green)     # the point that is seen
        self.assertEqual(cell[20, 140].tolist(), grey)      # the one that is none
        self.assertEqual(cell[130, 130].tolist(), [64 + part // 2 for part in green])
        self.assertEqual(cell[150, 130].tolist(), grey)     # a mask's fill
        self.assertEqual(cell[60, 130].tolist(), grey)

    def test_no_images(self):
        data = oa.wrap([{"x": np.arange(3.0)} for _ in range(4)], random=False)
        for call in (lambda: self.describe(data), lambda: look.sheet(self.open(data, batch_size=2), self.work / "none.png")):
            with self.assertRaises(oa.Error) as caught:
                call()
            self.assertNotIn("Traceback", str(caught.exception))
        self.assertIn("no images", str(caught.exception))

    def test_what_is_wrong_is_said_before(self):
        np.save(self.work / "series.npy", np.zeros((20, 3), np.float32))
        loader = self.loader()
        mix = oa.mix([self.loader()], [1], 16)
        self.addCleanup(mix.close)
        name = str(self.work / "a.png")
        for call, words in ((lambda: look.describe(loader), "dataset is a Loader: give what its Loader was made with"),
                            (lambda: look.describe(mix), "dataset is a Mix"),
                            (lambda: look.describe(oa.windows(self.work / "series.npy", 4)), "rows of numbers, and describe"),
                            (lambda: look.describe(self.data, samples=0), "samples is 0: a whole number from 1 on"),
                            (lambda: look.sheet(mix, name), "one of each part of the mix"),
                            (lambda: look.sheet(loader, name, 0), "samples is 0"),
                            (lambda: look.sheet(loader, name, columns=0), "columns is 0"),
                            (lambda: look.sheet(loader, str(self.work / "a.foo")), "no name of an image file")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                call()
        self.assertIn("classes  80 samples each", str(look.describe(self.data, WHOLE, 8, socket=self.socket)))

    def test_program(self):
        settings = {**os.environ, "ACCESS_SOCKET": self.socket}
        made = subprocess.run([sys.executable, "-m", "oneaccess.look", self.data, "--samples", "50", "--sheet", self.work / "two.png"], env=settings,
                              capture_output=True, text=True, check=True)
        self.assertIn(f"{SAMPLES} samples in 3 classes", made.stdout)
        self.assertIn("looked at 50 samples", made.stdout)
        self.assertEqual(made.stderr, "")
        with PIL.Image.open(self.work / "two.png") as page:
            self.assertEqual(page.size[0], 8 * (160 + 4) + 4)
        made = subprocess.run([sys.executable, "-m", "oneaccess.look", self.work / "nowhere"], env=settings, capture_output=True, text=True)
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stderr, "^oneaccess.look: .*nowhere")


if __name__ == "__main__":
    unittest.main()
