# SPDX-License-Identifier: Apache-2.0
"""Windows of large images, from_slides() and from_rasters(): each against the library's own read of it, against a real daemon."""

import json
import os
import shutil
import sys
import unittest
import warnings
from unittest import mock

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"scenes_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
import scene_samples as samples
from oneaccess.domains import places, scenes, slides
from oneaccess import transforms as t
from support import PoolCase, needs

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

SIZE = 64
LEFT, TOP, RIGHT, BOTTOM = samples.TISSUE


def array(value):
    return np.asarray(value)


class ScenesCase(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["XDG_CACHE_HOME"] = str(cls.work / "kept")
        cls.build()

    @classmethod
    def build(cls):
        pass

    def refused(self, pattern, call, *args, error=oa.Error, **kwargs):
        with self.assertRaisesRegex(error, pattern):
            call(*args, **kwargs)

    def samples_of(self, data, *args, **kwargs):
        """{number: fields} of an epoch; each exactly once."""
        seen = {}
        for batch in self.open(data, *args, epochs=1, copy=True, **kwargs):
            for place, number in enumerate(batch.ids):
                self.assertNotIn(int(number), seen)
                seen[int(number)] = {name: array(values[place]) for name, values in batch.items()}
        self.assertEqual(sorted(seen), [*range(len(data))])
        return seen


class Math(unittest.TestCase):
    """Where windows are, without a file."""

    def scene(self, width, height, **more):
        return scenes.Scene(width, height, [1.0], None, None, 3, "uint8", *scenes.Scene.packed(more["mask"])) if more else scenes.Scene(
            width, height, [1.0], None, None, 3, "uint8", None, (0, 0))

    def test_grid(self):
        self.assertEqual(scenes.grid(self.scene(10, 7), 4, 3, True).tolist(), [[x, y] for y in (0, 3) for x in (0, 3, 6)])
        self.assertEqual(scenes.grid(self.scene(11, 4), 4, 3, True).tolist(), [[0, 0], [3, 0], [6, 0], [7, 0]])
        self.assertEqual(scenes.grid(self.scene(11, 4), 4, 3, False).tolist(), [[0, 0], [3, 0], [6, 0]])
        self.assertEqual(scenes.grid(self.scene(3, 2), 4, 3, True).tolist(), [[0, 0]])
        self.assertEqual(scenes.grid(self.scene(9, 1), 2, 2.5, True)[:, 0].tolist(), [0, 3, 5, 7])

    def test_every_pixel_is_in_a_window(self):
        random = np.random.default_rng(3)
        for _ in range(200):
            width, height, extent = (int(value) for value in random.integers(1, 60, 3))
            step = extent * float(random.uniform(0.2, 1))
            coords, seen = scenes.grid(self.scene(width, height), extent, step, True), np.zeros((height, width), bool)
            for x, y in coords:
                self.assertTrue(x + extent <= max(width, extent) and y + extent <= max(height, extent))
                seen[y:y + extent, x:x + extent] = True
            self.assertTrue(seen.all())
            self.assertEqual(len({*map(tuple, coords.tolist())}), len(coords))

    def test_counting(self):
        """Against sums of the pixels themselves, where the copy is as large."""
        random = np.random.default_rng(5)
        mask = random.random((40, 60)) < 0.3
        mask[:20, :30] = False
        scene = self.scene(60, 40, mask=mask)
        coords = scenes.grid(scene, 8, 5, True)
        shares = np.array([mask[y:y + 8, x:x + 8].mean() for x, y in coords])
        for least in (0, 0.1, 0.3, 1):
            self.assertEqual(scenes.counting(scene, coords, 8, least).tolist(), ((shares > 0) & (shares >= least)).tolist())

    def test_counting_in_a_smaller_copy(self):
        scene = self.scene(1000, 800, mask=np.eye(4, 5, dtype=bool))
        self.assertEqual(scenes.counting(scene, np.array([[0, 0], [200, 200], [150, 0], [200, 0], [950, 790]]), 50, 0.1).tolist(), [True, True, True, False, False])

    def test_otsu(self):
        """Against the variance of the two parts, value by value."""
        for seed in range(5):
            random = np.random.default_rng(seed)
            values = np.concatenate([random.normal(40, 12, 4000), random.normal(150, 20, 500 * seed + 20)]).clip(0, 255).astype(np.uint8)
            parts = {at: (values[values <= at], values[values > at]) for at in range(int(values.min()), int(values.max()))}
            apart = {at: len(low) * len(high) * (low.mean() - high.mean()) ** 2 for at, (low, high) in parts.items()}
            self.assertAlmostEqual(apart[slides.otsu(np.bincount(values, minlength=256))] / max(apart.values()), 1)
        self.assertEqual(slides.otsu([9, 0, 0, 0, 7]), 0)
        self.assertEqual(slides.otsu([0, 0, 5, 0]), 0)

    def test_levels(self):
        scene = scenes.Scene(100000, 80000, [1.0, 4.0, 16.0], 0.2527, 40.0, 3, "uint8", None, (0, 0))
        for mpp, power, want in ((0.25, None, (0, 224, 224)), (1.0, None, (1, 224, 896)), (0.5, None, (0, 443, 443)), (2.0, None, (1, 443, 1773)),
                                 (None, 40, (0, 224, 224)), (None, 20, (0, 448, 448)), (None, 10, (1, 224, 896)), (None, 2.5, (2, 224, 3584))):
            self.assertEqual(slides.scaled("a", scene, 224, mpp, power, None), want)
        with self.assertRaisesRegex(oa.Error, "a has 0.2527 micrometres a pixel, and mpp=0.2 is finer"):
            slides.scaled("a", scene, 224, 0.2, None, None)
        bare = scene._replace(mpp=None, magnification=None)
        for wanted in ((0.5, None), (None, 20)):
            with self.assertRaisesRegex(oa.Error, "slide_mpp="):
                slides.scaled("a", bare, 224, *wanted, None)
            self.assertEqual(slides.scaled("a", bare, 224, *wanted, 0.25), (0, 448, 448))
        self.assertEqual(slides.scaled("a", bare._replace(magnification=20.0), 224, 1.0, None, None), (0, 448, 448))


class Tables(ScenesCase):
    """What at= and labels= say."""

    FILES = ["/d/tumor/a.svs", "/d/normal/b.svs", "/d/normal/c.d.svs"]

    def write(self, name, text):
        (self.work / name).write_text(text)
        return self.work / name

    def test_places(self):
        rows = [("a", 5, 6, "x"), ("normal/b.svs", 7, 8, "y"), ("a", 1, 2, "y"), ("c.d", 3, 4, "x")]
        files = (self.write("at.csv", "x,y,label,slide_id\n" + "".join(f"{x}.0,{y},{label},{name}\n" for name, x, y, label in rows)),
                 self.write("at.jsonl", "".join(json.dumps({"slide": name, "x": x, "y": y, "label": label}) + "\n" for name, x, y, label in rows)))
        for path in files:
            found = places.places_of(path, self.FILES, "slide")
            self.assertEqual([place.coords.tolist() for place in found], [[[5, 6], [1, 2]], [[7, 8]], [[3, 4]]])
            self.assertEqual([place.labels for place in found], [["x", "y"], ["y"], ["x"]])

    def test_what_is_wrong_with_places(self):
        for name, text, pattern in (("1.csv", "slide,x\na,1\n", "1.csv:2: no column of the place: it is y; there are slide, x"),
                                    ("2.csv", "x,y\n1,2\n", "no column of the file's name"),
                                    ("3.csv", "slide,x,y\na,1,-2\n", "3.csv:2: '-2' is no place"),
                                    ("4.csv", "slide,x,y\na,1.5,2\n", "'1.5' is no place"),
                                    ("5.csv", "slide,x,y\na,nan,2\n", "'nan' is no place"),
                                    ("6.csv", "slide,x,y\na,,2\n", "'' is no place"),
                                    ("7.csv", "slide,x,y\n", "has no row"),
                                    ("8.jsonl", "[1]\n", "8.jsonl:1: no JSON object"),
                                    ("9.csv", "slide,x,y\nq,1,2\n", "9.csv names none of the 3 slides; it has q")):
            self.refused(pattern, places.places_of, self.write(name, text), self.FILES, "slide")
        self.refused("{name: array}", places.places_of, np.zeros((1, 2), int), self.FILES, "slide")
        self.refused(r"float64 of shape \(1, 2\)", places.places_of, {"a": np.zeros((1, 2))}, self.FILES, "slide")
        self.refused("from -1 to 3: they are pixels", places.places_of, {"a": np.array([[-1, 3]])}, self.FILES, "slide")
        self.refused("no .h5 file", places.places_of, self.work / "node", self.FILES, "slide")
        self.refused("there is no", places.places_of, "/nowhere/a.csv", self.FILES, "slide", error=FileNotFoundError)

    def test_names(self):
        names = places.Names(["/d/1/a.svs", "/d/2/a.svs", "/d/2/b.svs"], "slide")
        self.assertEqual([names.find(name, "t") for name in ("1/a", "2/a.svs", "/d/2/a.svs", "b", "b.svs", "c")], [0, 1, 1, 2, 2, None])
        with self.assertRaisesRegex(oa.Error, "t names 'a', and 2 slides have that name: name them with their folder"):
            names.find("a", "t")

    def test_labels(self):
        table = self.write("labels.csv", "slide,label\na,tumor\nb,normal\nb,normal\nc.d,normal\n")
        self.assertEqual(places.labels_of(table, self.FILES, "slide"), ["tumor", "normal", "normal"])
        self.assertEqual(places.labels_of("folders", self.FILES, "slide"), ["tumor", "normal", "normal"])
        self.assertEqual(places.labels_of({"a": 3, "c.d": 0.5}, self.FILES, "slide"), [3, None, 0.5])
        with self.assertWarnsRegex(UserWarning, "names 1 slides that are not there: q"):
            places.labels_of({"a": 3, "q": 1}, self.FILES, "slide")
        for labels, pattern in ((self.write("2.csv", "slide,label\na,1\na,2\n"), "a has the labels '1' and '2'"), (self.write("3.csv", "slide,label\na,\n"), "a has no label"),
                                (5, "labels is 5"), ({}, "labels is {}"), (self.write("4.csv", "slide,kind\na,1\n"), "no column of the label")):
            self.refused(pattern, places.labels_of, labels, self.FILES, "slide")
        self.refused(r"5.csv:3: this window has no label", places.places_of, self.write("5.csv", "slide,x,y,label\na,0,0,1\na,4,4,\n"), self.FILES, "slide")
        self.refused("in no folder of a class", places.labels_of, "folders", self.FILES[1:], "slide")

    def test_classes(self):
        for given, want, dtype, classes in ((["b", "a", "b"], [1, 0, 1], np.int64, ["a", "b"]), (["1", "0"], [1, 0], np.int64, None), ([1, 0.5], [1, 0.5], np.float32, None),
                                            (["1.5", "2"], [1.5, 2], np.float32, None), ([True, False], [1, 0], np.int64, None)):
            numbers, words = places.classed(given)
            self.assertEqual((numbers.tolist(), numbers.dtype, words), (want, dtype, classes))

    def test_what_is_to_be_installed(self):
        image = self.write("a.tif", "")
        with mock.patch.dict(sys.modules, {"openslide": None, "rasterio": None}):
            self.refused("needs openslide.*pip install openslide-python openslide-bin .Debian: apt-get install python3-openslide", oa.from_slides, image)
            self.refused("needs rasterio.*pip install rasterio .Debian: apt-get install python3-rasterio", oa.from_rasters, image)


@needs("openslide")
class Slides(ScenesCase):
    @classmethod
    def build(cls):
        import openslide
        cls.folder = cls.work / "slides"
        cls.files = [samples.write_slide(cls.folder / kind / f"{name}.tif", samples.slide_pixels(seed, seed % 2), mpp=0.25)
                     for seed, (kind, name) in enumerate((("normal", "n1"), ("tumor", "t1"), ("tumor", "t2")))]
        cls.opened = [openslide.OpenSlide(str(file)) for file in cls.files]
        for slide in cls.opened:
            cls.addClassCleanup(slide.close)

    def region(self, number, place, level, side):
        return self.opened[number].read_region(place, level, (side, side)).convert("RGB")

    def test_a_grid(self):
        data = oa.from_slides(self.folder, SIZE, overlap=16, tissue=False)
        x = [*range(0, samples.WIDTH - SIZE, 48), samples.WIDTH - SIZE]
        y = [*range(0, samples.HEIGHT - SIZE, 48), samples.HEIGHT - SIZE]
        want = [[slide, left, top] for slide in range(3) for top in y for left in x]
        self.assertEqual(data.windows.tolist(), want)
        self.assertEqual(data.files, [str(file) for file in self.files])
        self.assertEqual(data.sides, [SIZE] * 3)
        for number, sample in self.samples_of(data, batch_size=64).items():
            slide, *place = want[number]
            self.assertEqual([*sample], ["image", "coords", "slide"])
            self.assertEqual((int(sample["slide"]), sample["coords"].tolist()), (slide, place))
            np.testing.assert_array_equal(sample["image"], array(self.region(slide, place, 0, SIZE)))

    def test_a_pipeline(self):
        data = oa.from_slides(self.folder, SIZE, labels="folders")
        self.assertEqual(data.classes, ["normal", "tumor"])
        pipeline = oa.Compose([t.CenterCrop(48), t.RandomHorizontalFlip(1.0), t.ToTensor()])
        for number, sample in self.samples_of(data, pipeline, order="seeded", seed=1).items():
            slide, *place = data.windows[number].tolist()
            want = array(self.region(slide, place, 0, SIZE))[8:56, 55:7:-1].transpose(2, 0, 1) / np.float32(255)
            np.testing.assert_array_equal(sample["image"], want)
            self.assertEqual((int(sample["label"]), int(sample["slide"]), sample["coords"].tolist()), (int(slide > 0), slide, place))

    def test_tissue(self):
        """Where it is is known to four pixels, by the median filter."""
        rows = {least: {(x, y) for slide, x, y in oa.from_slides(self.files[0], SIZE, tissue=least).windows.tolist()} for least in (0.0, True, 0.9)}
        whole = {(x, y) for x in range(LEFT, RIGHT, SIZE) for y in range(TOP, BOTTOM, SIZE)}
        self.assertEqual(rows[True], whole)
        self.assertEqual(rows[0.9], whole)
        self.assertLessEqual(whole, rows[0.0])
        blank = samples.write_slide(self.work / "blank.tif", np.full((samples.HEIGHT, samples.WIDTH, 3), samples.GLASS, np.uint8))
        self.refused("blank.tif has no window with enough to see: see tissue=", oa.from_slides, blank, SIZE)
        half = {(x, y) for _, x, y in oa.from_slides(self.files[0], 32, mpp=0.5).windows.tolist()}
        self.assertEqual(half, whole)

    def test_resolutions(self):
        for said, level, side in (({"mpp": 0.5}, 1, SIZE), ({"mpp": 0.51}, 1, SIZE), ({"mpp": 0.75}, 1, 96), ({"magnification": 10}, 2, SIZE), ({"magnification": 32}, 0, 80),
                                  ({"level": 2}, 2, SIZE)):
            data = oa.from_slides(self.files[1], SIZE, tissue=False, **said)
            self.assertEqual(data.sides, [side << level], said)
            self.assertEqual(data.windows[0].tolist(), [0, 0, 0])
            for number, sample in enumerate(data.dataset):
                want = self.region(1, sample["coords"].tolist(), level, side)
                want = want if side == SIZE else want.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
                np.testing.assert_array_equal(sample["image"], array(want))
                self.assertEqual(sample["coords"].tolist(), data.windows[number, 1:].tolist())

    @needs("h5py")
    def test_clam(self):
        import h5py
        folder = self.work / "clam/patches"
        folder.mkdir(parents=True)
        random = np.random.default_rng(2)
        coords = {name: random.integers(0, 500, (count, 2)) for name, count in (("n1", 5), ("t2", 7))}
        for name, places_ in coords.items():
            with h5py.File(folder / f"{name}.h5", "w") as file:
                found = file.create_dataset("coords", data=places_.astype(np.int32))
                found.attrs.update({"patch_size": 32, "patch_level": 1, "downsample": [2.0, 2.0], "name": name})
        with self.assertWarnsRegex(UserWarning, "at= says nothing of 1 of 3 slides, which are left out: t1.tif"):
            data = oa.from_slides(self.folder, at=folder)
        self.assertEqual(data.files, [str(self.files[0]), str(self.files[2])])
        self.assertEqual(data.windows[:, 1:].tolist(), [*coords["n1"].tolist(), *coords["t2"].tolist()])
        self.assertEqual(data.sides, [64, 64])
        for number, sample in self.samples_of(data).items():
            np.testing.assert_array_equal(sample["image"], array(self.region(0 if number < 5 else 2, data.windows[number, 1:].tolist(), 1, 32)))
        larger = oa.from_slides(self.files[0], 48, at=folder / "n1.h5")
        want = self.region(0, coords["n1"][0].tolist(), 1, 32).resize((48, 48), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(larger.dataset[0]["image"], array(want))
        with h5py.File(folder / "n1.h5", "a") as file:         # as TRIDENT has it: 128 pixels of the finest level, which become 64
            found = file["coords"]
            del found.attrs["patch_level"]
            found.attrs.update({"patch_size": 64, "patch_size_level0": 128, "level0_magnification": 40, "target_magnification": 20})
        data = oa.from_slides(self.files[0], at=folder / "n1.h5")
        self.assertEqual(data.sides, [128])
        np.testing.assert_array_equal(data.dataset[1]["image"], array(self.region(0, coords["n1"][1].tolist(), 1, 64)))
        self.refused("the windows of .*n1.tif have 64 pixels, those of .*t2.tif 32: give size=", oa.from_slides, [self.files[0], self.files[2]], at=folder)
        with h5py.File(folder / "n1.h5", "a") as file:
            del file["coords"]
            file["other"] = [1]
        self.refused("no array \"coords\" of whole numbers .* it has: other", oa.from_slides, self.files[0], at=folder / "n1.h5")
        (folder / "n1.h5").write_bytes(b"no HDF5")
        self.refused("n1.h5 is no HDF5 file that can be read", oa.from_slides, self.files[0], at=folder / "n1.h5")

    def test_places_of_a_table(self):
        table = self.work / "at.csv"
        table.write_text("slide,x,y,label\nt1,10,20,3\nn1,7,9,1\nt1,30,40,2\nt2,0,0,5\n")
        data = oa.from_slides(self.folder, SIZE, at=table, mpp=0.25)
        seen = self.samples_of(data)
        self.assertEqual([(int(seen[at]["slide"]), seen[at]["coords"].tolist(), int(seen[at]["label"])) for at in range(4)],
                         [(0, [7, 9], 1), (1, [10, 20], 3), (1, [30, 40], 2), (2, [0, 0], 5)])

    def test_labels_choose_slides(self):
        with self.assertWarnsRegex(UserWarning, "labels= says nothing of 1 of 3 slides"):
            data = oa.from_slides(self.folder, 128, labels={"t2": 0.5, "n1": 2})
        seen = self.samples_of(data)
        self.assertEqual({(int(each["slide"]), float(each["label"])) for each in seen.values()}, {(0, 2.0), (1, 0.5)})
        self.assertEqual(data.files[1], str(self.files[2]))

    def test_windows_are_drawn(self):
        data = oa.from_slides(self.files[0], SIZE, tissue=False, jitter=True)
        self.assertTrue(data.random)
        loader, epochs = self.open(data, order="seeded", seed=3, epochs=2, copy=True), []
        for _ in range(2):
            seen = {}
            for batch in loader:
                for number, image, place in zip(batch.ids, array(batch["image"]), array(batch["coords"]).tolist()):
                    seen[int(number)] = place
                    np.testing.assert_array_equal(image, array(self.region(0, place, 0, SIZE)))
            epochs.append(seen)
        for number, (_, *begin) in enumerate(data.windows.tolist()):
            for seen in epochs:
                self.assertTrue(all(0 <= at - low < SIZE and at + SIZE <= side for at, low, side in zip(seen[number], begin, (samples.WIDTH, samples.HEIGHT))))
        self.assertNotEqual(*epochs)
        self.refused("jitter= draws windows of a grid", oa.from_slides, self.files[0], SIZE, at=[[1, 2]], jitter=True)

    def test_subsets_and_states(self):
        data = oa.from_slides(self.folder, SIZE)
        train, held = (self.open(data, split=split, epochs=1, batch_size=8, copy=True) for split in oa.fold(0, 3, seed=1))
        seen = [[int(number) for batch in loader for number in batch.ids] for loader in (train, held)]
        self.assertEqual(sorted(seen[0] + seen[1]), [*range(len(data))])
        loader, begun, state = self.open(data, epochs=1, batch_size=8, copy=True), [], None
        for batch in loader:
            begun += [int(number) for number in batch.ids]
            if len(begun) == 40:
                state = loader.state_dict()
                break
        loader.close()
        again = self.open(oa.from_slides(self.folder, SIZE), epochs=1, batch_size=8, copy=True)
        again.load_state_dict(state)
        begun += [int(number) for batch in again for number in batch.ids]
        self.assertEqual(sorted(begun), [*range(len(data))])

    def test_what_is_found_is_kept(self):
        first = oa.from_slides(self.files[0], SIZE, index=self.work / "index")
        self.assertEqual(len(os.listdir(self.work / "index")), 1)
        with mock.patch.object(slides.OpenSlideReader, "scene", side_effect=AssertionError):
            second = oa.from_slides(self.files[0], SIZE, index=self.work / "index")
        self.assertEqual(first.windows.tolist(), second.windows.tolist())
        self.assertEqual(first.identity(True), second.identity(True))
        place, = (self.work / "index").iterdir()
        for text in ("", "{", "[]", "{}", place.read_text().replace('"share": "', '"share": "AAAA')):
            place.write_text(text)
            self.assertEqual(oa.from_slides(self.files[0], SIZE, index=self.work / "index").windows.tolist(), first.windows.tolist())
        file = self.work / "no folder"
        file.write_text("")
        self.assertEqual(oa.from_slides(self.files[0], SIZE, index=file).windows.tolist(), first.windows.tolist())

    def test_bad_slides(self):
        folder = self.work / "some"
        shutil.copytree(self.folder, folder)
        (folder / "tumor/t0.tif").write_bytes(b"no slide at all")
        data = oa.from_slides(folder, SIZE)
        bad = data.windows[:, 0].tolist().index(1)
        self.assertEqual(data.windows[:, 0].tolist().count(1), 1)
        loader = self.open(data, epochs=1, bad="skip", copy=True)
        seen = [int(number) for batch in loader for number in batch.ids]
        self.assertEqual(sorted(seen), [number for number in range(len(data)) if number != bad])
        self.refused("t0.tif: it is of no kind that OpenSlide reads.*vips tiffsave", lambda: [*self.open(data, epochs=1, shuffle=False)])
        self.refused("t0.tif: it is of no kind that OpenSlide reads", oa.from_slides, folder / "tumor/t0.tif", SIZE)
        os.utime(folder / "tumor/t2.tif", (1, 1))
        self.refused("t2.tif was written to since the data set was opened", lambda: data.dataset[len(data) - 1])
        self.assertNotEqual(oa.from_slides(folder, SIZE).identity(True), data.identity(True))

    def test_a_bad_tile(self):
        """Other windows of the slide are still read after it, as OpenSlide's handle is given up."""
        pixels = samples.slide_pixels()
        file = samples.write_slide(self.work / "cut.tif", pixels)
        data = bytearray(file.read_bytes())
        at = data.index((0x00040144).to_bytes(4, "little"))         # tile offsets, as LONG
        place = int.from_bytes(data[at + 8:at + 12], "little")
        data[place:place + 4] = (0x7ffffff0).to_bytes(4, "little")
        file.write_bytes(data)
        rows = oa.from_slides(file, SIZE, tissue=False).dataset
        for _ in range(2):
            self.refused("cut.tif, window at 0, 0: ", lambda: rows[0])
            np.testing.assert_array_equal(rows[1]["image"], pixels[:SIZE, SIZE:2 * SIZE])

    def test_what_lies_beyond_is_glass(self):
        data = oa.from_slides(self.files[0], SIZE, at=[[samples.WIDTH - 10, 0]])
        self.assertTrue((data.dataset[0]["image"][:, 10:] == 255).all())

    def test_arguments(self):
        for pattern, more in (("give one of them", {"mpp": 1, "level": 0}), ("mpp is 0", {"mpp": 0}), ("level is -1", {"level": -1}), ("3 levels, counted from 0, and level=3", {"level": 3}),
                              ("overlap is 64, and windows have 64", {"overlap": 64}), ("tissue is 2", {"tissue": 2}), ("and mpp=0.1 is finer than that", {"mpp": 0.1}),
                              ("40 x, and magnification=80 is finer", {"magnification": 80})):
            self.refused(pattern, oa.from_slides, self.files[0], SIZE, **more)
        self.refused("size is 0", oa.from_slides, self.files[0], 0)
        self.refused("no slide file is at", oa.from_slides, "/nowhere", error=FileNotFoundError)
        self.refused(r"from_slides\(\) reads s3://a/b in Python", oa.from_slides, "s3://a/b")


@needs("rasterio")
class Rasters(ScenesCase):
    @classmethod
    def build(cls):
        cls.folder, cls.labels = cls.work / "scenes", cls.work / "labels"
        cls.pixels, cls.of = zip(*(samples.scene(seed) for seed in range(3)))
        names = ("a", "b", "deep/c")
        cls.files = [samples.write_raster(cls.folder / f"{name}.tif", pixels, overviews=True) for name, pixels in zip(names, cls.pixels)]
        cls.masks = [samples.write_raster(cls.labels / f"{name}.tif", labels) for name, labels in zip(names, cls.of)]

    def cut(self, pixels, row):
        raster, x, y = row
        return pixels[raster][:, y:y + SIZE, x:x + SIZE]

    def test_a_grid(self):
        """The numbers as they are, of some bands."""
        data = oa.from_rasters(self.folder, size=SIZE, stride=50, bands=(2, 0))
        self.assertEqual(data.windows.tolist(), [[raster, x, y] for raster in range(3) for y in (0, 50, 100, 136) for x in (0, 50, 100, 150, 196)])
        for number, sample in self.samples_of(data, batch_size=32).items():
            row = data.windows[number].tolist()
            self.assertEqual(([*sample], [int(sample["raster"]), *sample["coords"].tolist()]), (["image", "coords", "raster"], row))
            self.assertEqual(sample["image"].dtype, np.uint16)
            np.testing.assert_array_equal(sample["image"], self.cut(self.pixels, row)[[2, 0]])

    def test_masks_follow(self):
        data = oa.from_rasters(self.folder, self.labels, SIZE, mask=oa.Mask(dtype="int64"), labels={"a": "city", "b": "field", "c": "city"})
        pipeline = oa.Compose([t.Bands(4, scale=0.5), t.RandomCrop(48), t.RandomVerticalFlip()])
        seen = self.samples_of(data, pipeline, order="seeded", seed=4)
        for number, sample in seen.items():
            row, (image, mask) = data.windows[number].tolist(), (sample["image"], sample["mask"])
            self.assertEqual((image.dtype, mask.dtype, int(sample["label"])), (np.float32, np.int64, row[0] % 2))
            whole, labels = self.cut(self.pixels, row) * np.float32(0.5), self.cut(self.of, row)[0]
            places = [(y, x, turn) for y in range(17) for x in range(17) for turn in (1, -1) if np.array_equal(whole[:, y:y + 48, x:x + 48][:, ::turn], image)]
            self.assertEqual(len(places), 1)
            (y, x, turn), = places
            np.testing.assert_array_equal(mask, labels[y:y + 48, x:x + 48][::turn])
        self.assertGreater(len({sample["image"].tobytes() for sample in seen.values()}), len(seen) // 2)

    def labels_read(self, masks, file=None, **more):
        """What a window's mask is, without a pipeline."""
        data = oa.from_rasters(file or self.files[0], masks, SIZE, **more)
        return data, [data.dataset[index]["mask"] for index in range(len(data))]

    def test_labels_of_another_grid(self):
        """Against rasterio's own warp of the whole raster."""
        import rasterio
        from rasterio.warp import Resampling, reproject
        finer = np.kron(self.of[0][0], np.ones((2, 2), np.uint8))[None, :, :440]       # of half the pixels' side, and not all of the image
        paths = [samples.write_raster(self.work / "finer.tif", finer, sides=5.0), samples.write_raster(self.work / "shifted.tif", self.of[0], left=500100.0, nodata=255)]
        with rasterio.open(self.files[0]) as image:
            crs, transform, shape = image.crs, image.transform, image.shape
        for path in paths:
            with rasterio.open(path) as raster:
                want = np.full(shape, 255, np.uint8)
                reproject(raster.read(1), want, src_transform=raster.transform, src_crs=raster.crs, dst_transform=transform, dst_crs=crs, resampling=Resampling.nearest,
                          src_nodata=raster.nodata, dst_nodata=255, init_dest_nodata=True)
            self.assertIn(255, want)
            data, masks = self.labels_read(path, mask=oa.Mask(fill=255))
            for row, mask in zip(data.windows, masks):
                np.testing.assert_array_equal(mask, self.cut([want[None]], row)[0])

    def test_labels_that_are_no_labels(self):
        other = samples.write_raster(self.work / "of float.tif", np.where(self.of[0] == 1, np.nan, self.of[0]).astype(np.float32), nodata=np.nan)
        for row, mask in zip(*self.windows_of(other, oa.Mask(fill=7))):
            want = self.cut(self.of, row)[0]
            np.testing.assert_array_equal(mask, np.where(want == 1, 7, want))
        less = samples.write_raster(self.work / "less.tif", np.where(self.of[0] == 1, -9999, self.of[0]).astype(np.int16), nodata=-9999)
        for row, mask in zip(*self.windows_of(less, None)):
            want = self.cut(self.of, row)[0]
            np.testing.assert_array_equal(mask, np.where(want == 1, 0, want))
        halves = samples.write_raster(self.work / "halves.tif", self.of[0] + np.float32(0.5))
        self.refused("its labels are not whole numbers", self.labels_read, halves)
        several = samples.write_raster(self.work / "several.tif", self.pixels[0])
        self.refused("several.tif has 4 bands, and a raster of labels has one", self.labels_read, several)
        bare = samples.write_raster(self.work / "bare.tif", self.of[0][:, :90], crs=None)
        self.refused("bare.tif has 260 x 90 pixels, the image 260 x 200, and not both say where on earth", self.labels_read, bare)

    def windows_of(self, path, mask):
        data, masks = self.labels_read(path, mask=mask)
        return data.windows.tolist(), masks

    def test_pairs(self):
        for images, masks in ((f"{self.folder}/*.tif", f"{self.labels}/*.tif"), (self.files[:2], self.masks[:2])):
            data = oa.from_rasters(images, masks, SIZE)
            self.assertEqual(data.files, [*map(str, self.files[:2])])
            for index in (0, len(data) - 1):
                np.testing.assert_array_equal(data.dataset[index]["mask"], self.cut(self.of, data.windows[index])[0])
        self.refused("2 rasters, and masks= are 3", oa.from_rasters, self.files[:2], self.masks)
        shutil.copytree(self.labels, self.work / "fewer")
        (self.work / "fewer/deep/c.tif").unlink()
        self.refused("fewer has no raster of labels for deep/c, of 3 rasters", oa.from_rasters, self.folder, self.work / "fewer")

    def test_windows_without_data(self):
        pixels = self.pixels[0].copy()
        pixels[:, :, :140] = 0
        file = samples.write_raster(self.work / "half.tif", pixels, nodata=0, overviews=True)
        columns = {least: {x for _, x, _ in oa.from_rasters(file, size=SIZE, stride=20, valid=least).windows.tolist()} for least in (0, 0.5, 1)}
        self.assertEqual(columns, {0: {80, 100, 120, 140, 160, 180, 196}, 0.5: {120, 140, 160, 180, 196}, 1: {140, 160, 180, 196}})
        silent = samples.write_raster(self.work / "silent.tif", pixels)
        self.assertEqual(min(oa.from_rasters(silent, size=SIZE, stride=20, nodata=0).windows[:, 1]), 80)
        self.assertEqual(min(oa.from_rasters(silent, size=SIZE, stride=20).windows[:, 1]), 0)
        empty = samples.write_raster(self.work / "empty.tif", pixels * 0, nodata=0)
        self.refused("empty.tif has no window with enough to see: .*valid=", oa.from_rasters, empty, size=SIZE)

    def test_a_small_raster_is_filled(self):
        file = samples.write_raster(self.work / "small.tif", self.pixels[0][:, :30, :50].astype(np.float32), nodata=-1)
        labels = samples.write_raster(self.work / "small labels.tif", self.of[0][:, :30, :50])
        data = oa.from_rasters(file, labels, SIZE, mask=oa.Mask(fill=255))
        sample, want = data.dataset[0], np.full((4, SIZE, SIZE), -1, np.float32)
        want[:, :30, :50] = self.pixels[0][:, :30, :50]
        self.assertEqual(len(data), 1)
        np.testing.assert_array_equal(sample["image"], want)
        odd = samples.write_raster(self.work / "odd.tif", self.pixels[0][:, :30, :50].astype(np.float32), nodata=float("nan"))
        self.assertTrue(np.isnan(oa.from_rasters(odd, size=SIZE).dataset[0]["image"][:, 30:]).all())
        self.assertTrue((sample["mask"][30:] == 255).all() and (sample["mask"][:30, :50] == self.of[0][0, :30, :50]).all())

    def test_windows_are_drawn(self):
        """Image and labels at one place, which is written down."""
        data = oa.from_rasters(self.files[0], self.masks[0], SIZE, jitter=True)
        loader, epochs = self.open(data, [t.Bands(4), t.CenterCrop(SIZE)], order="seeded", seed=3, epochs=2, copy=True), []
        for _ in range(2):
            epochs.append({})
            for batch in loader:
                for number, image, mask, place in zip(batch.ids, array(batch["image"]), array(batch["mask"]), array(batch["coords"]).tolist()):
                    epochs[-1][int(number)] = place
                    np.testing.assert_array_equal(image, self.cut(self.pixels, [0, *place]))
                    np.testing.assert_array_equal(mask, self.cut(self.of, [0, *place])[0])
        self.assertNotEqual(*epochs)

    def test_bad_rasters(self):
        folder = self.work / "some"
        shutil.copytree(self.folder, folder)
        (folder / "a0.tif").write_bytes(b"no raster at all")
        data = oa.from_rasters(folder, size=SIZE)
        self.assertEqual(data.windows[:, 0].tolist().count(1), 1)
        self.refused("a0.tif: GDAL cannot read it", lambda: [*self.open(data, epochs=1, shuffle=False)])
        seen = [int(number) for batch in self.open(data, epochs=1, bad="skip", copy=True) for number in batch.ids]
        self.assertEqual(sorted(seen), [number for number, raster in enumerate(data.windows[:, 0]) if raster != 1])
        os.utime(folder / "b.tif", (1, 1))
        self.refused("b.tif was written to since", lambda: data.dataset[data.windows[:, 0].tolist().index(2)])
        cut = folder / "deep/c.tif"
        content = bytearray(cut.read_bytes())
        content[len(content) // 3:len(content) // 2] = bytes(len(content) // 2 - len(content) // 3)
        cut.write_bytes(content)
        rows = oa.from_rasters(cut, size=SIZE).dataset
        with self.assertRaisesRegex(oa.Error, r"c.tif, window at \d+, \d+: "):
            for index in range(len(rows)):
                rows[index]

    def test_arguments(self):
        for pattern, more in (("size is 0", {"size": 0}), ("stride is 0", {"stride": 0}), ("4 bands, counted from 0, and bands=.1, 4.", {"bands": (1, 4)}), (r"bands=\[\] names none", {"bands": []}),
                              ("valid is 2", {"valid": 2}), ("mask is .*, with masks=", {"mask": oa.Mask()}), ("jitter= draws windows of a grid", {"jitter": True, "at": {"a": [[1, 2]]}})):
            self.refused(pattern, oa.from_rasters, self.folder, **{"size": SIZE, **more})
        fewer = samples.write_raster(self.work / "fewer bands.tif", self.pixels[0][:3])
        self.refused("fewer bands.tif has 3 bands, .*a.tif has 4: give bands=", oa.from_rasters, [self.files[0], fewer], size=SIZE)
        self.assertEqual(oa.from_rasters([self.files[0], fewer], size=SIZE, bands=0).dataset[0]["image"].shape, (1, SIZE, SIZE))
        whole = samples.write_raster(self.work / "complex.tif", self.pixels[0].astype(np.complex64))
        self.refused("complex.tif: its bands are complex64", oa.from_rasters, whole, size=SIZE)

    def test_places_beyond(self):
        rows = oa.from_rasters(self.files[0], size=SIZE, at=np.array([[250, 190], [260, 0]])).dataset
        np.testing.assert_array_equal(rows[0]["image"][:, :10, :10], self.pixels[0][:, 190:, 250:])
        self.refused("a.tif, window at 260, 0: it has 260 x 200 pixels", lambda: rows[1])


if __name__ == "__main__":
    unittest.main()
