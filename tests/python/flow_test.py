# SPDX-License-Identifier: Apache-2.0
"""Optical flow, disparity, depth and normals beside an image: files against what was written and against torchvision's readers, and how numbers follow the
image's ops."""

import importlib.util
import io
import os
import pathlib
import struct
import sys
import tarfile
import unittest
import zlib

try:
    import numpy as np
except ImportError as missing:
    print(f"flow_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import ArgumentError, DatasetError, SampleError
from support import PoolCase

t = oa.transforms
HEIGHT, WIDTH = 19, 26
HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None


def numbers(channels, height=HEIGHT, width=WIDTH):
    """Above 0, each another one, which 16 bits of KITTI's flow and disparity have, too."""
    c, y, x = np.ogrid[:channels, :height, :width]
    return (1 + 97 * c + 2.25 * y + 0.5 * x).astype(np.float32)


def picture(height=HEIGHT, width=WIDTH, value=7):
    return b"P6\n%d %d\n255\n" % (width, height) + bytes([value]) * (3 * height * width)


def flo(array):
    return b"PIEH" + np.array(array.shape[:0:-1], "<i4").tobytes() + np.ascontiguousarray(array.transpose(1, 2, 0), "<f4").tobytes()


def pfm(array, order="<"):
    head = b"P%s\n%d %d\n%s\n" % (b"F" if len(array) == 3 else b"f", *array.shape[:0:-1], b"-1.0" if order == "<" else b"1.0")
    return head + np.ascontiguousarray(array.transpose(1, 2, 0)[::-1], order + "f4").tobytes()


def png(array, bits=16):
    """[1 or 3, H, W]"""
    rows = np.ascontiguousarray(array.transpose(1, 2, 0), ">u2" if bits == 16 else "u1")
    head = struct.pack(">IIBBBBB", *array.shape[:0:-1], bits, 2 if len(array) == 3 else 0, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def kitti(flow, valid):
    return png(np.concatenate([flow * 64 + 32768, valid[None]]))


def is_measured(height=HEIGHT, width=WIDTH):
    y, x = np.ogrid[:height, :width]
    return (y * 5 + x * 3) % 7 > 2


class Rows:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        flow = numbers(2) + index
        return {"image": np.zeros((HEIGHT, WIDTH, 3), np.uint8), "label": index, "flow": flow.transpose(1, 2, 0) if index else flow,
                "depth": numbers(1)[0].astype(np.float64), "text": "ab"}


class FlowTest(PoolCase):
    tars = 0

    def batch(self, ops, files, kinds, size=(HEIGHT, WIDTH), **kwargs):
        """Of one sample of a shard, which accessd reads: files are {name: (suffix, bytes)}."""
        FlowTest.tars += 1
        path = self.work / f"{self.tars}.tar"
        with tarfile.open(path, "w") as tar:
            for name, (suffix, data) in {"image": ("ppm", picture(*size)), **files}.items():
                member = tarfile.TarInfo(f"0.{name}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        fields = {"image": "image.ppm", **{name: f"{name}.{suffix}" for name, (suffix, _) in files.items()}}
        loader = self.open(oa.from_tar(path, fields, masks=kinds, **kwargs), oa.Compose([*ops, t.ToTensor()]), batch_size=1, as_="numpy", shuffle=False)
        batch, = loader
        loader.close()
        return {name: array[0] for name, array in batch.items()}

    def test_files(self):
        """What was written comes, and what torchvision's readers make of the same files."""
        flow, one, valid = numbers(2), numbers(1), is_measured()
        sintel = np.stack([np.full((HEIGHT, WIDTH), 3), np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % 256, np.full((HEIGHT, WIDTH), 9)])
        infinite = np.where(valid, one, np.inf)
        unknown = np.where(valid, flow, 1666666752).astype(np.float32)
        three = np.concatenate([flow, np.zeros_like(one)])
        all_ = np.ones_like(valid)
        last = np.ascontiguousarray(flow.transpose(1, 2, 0))
        files = {
            "flo": (oa.Flow(), flo(flow), flow, all_), "holes.flo": (oa.Flow(), flo(unknown), flow, valid),
            "three.pfm": (oa.Flow(), pfm(three), flow, all_), "big.pfm": (oa.Flow(), pfm(three, ">"), flow, all_),
            "kitti.png": (oa.Flow(), kitti(flow, valid), flow, valid), "last.npy": (oa.Flow(), npy(last), flow, all_),
            "first.npy": (oa.Flow(), npy(flow), flow, all_),
            "one.pfm": (oa.Disparity(), pfm(infinite), one, valid), "one.big.pfm": (oa.Disparity(), pfm(-one, ">"), one, all_),
            "disparity.png": (oa.Disparity(), png(np.where(valid, one * 256, 0)), one, valid),
            "sintel.png": (oa.Disparity(), png(sintel, 8), (sintel[0] * 4 + sintel[1] / 64 + sintel[2] / 16384)[None], all_),
            "crestereo.png": (oa.Disparity(divisor=32), png(np.where(valid, one * 32, 0)), one, valid),
            "middlebury.png": (oa.Disparity(), png(np.arange(HEIGHT * WIDTH).reshape(1, HEIGHT, WIDTH) % 256, 8), np.arange(HEIGHT * WIDTH).reshape(1, HEIGHT, WIDTH) % 256,
                               np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % 256 > 0),
            "depth.png": (oa.Depth(divisor=1000), png(np.where(valid, one * 1000, 0)), np.rint(one * 1000) / 1000, valid), "dpt": (oa.Depth(), flo(one), one, all_),
            "normals.npy": (oa.Normals(), npy(np.where(valid, numbers(3), 0).astype(np.float32)), numbers(3), valid),
        }
        names = {suffix: f"field{at}" for at, suffix in enumerate(files)}
        for some in (list(files)[:8], list(files)[8:]):     # a batch has place for 23 fields
            batch = self.batch([t.CenterCrop((HEIGHT, WIDTH))], {names[suffix]: (suffix.rpartition(".")[2], files[suffix][1]) for suffix in some},
                               {names[suffix]: files[suffix][0] for suffix in some})
            for suffix in some:
                _, _, want, measured = files[suffix]
                got, got_valid = batch[names[suffix]], batch[names[suffix] + "_valid"]
                self.assertEqual((got.dtype, got_valid.dtype), (np.float32, bool), suffix)
                np.testing.assert_array_equal(got_valid, measured, suffix)
                np.testing.assert_array_equal(got, np.where(measured, want, 0).astype(np.float32), suffix)
        if HAS_TORCHVISION:
            self.check_torchvision({suffix: file[1] for suffix, file in files.items()}, flow, one, valid)

    def check_torchvision(self, files, flow, one, valid):
        from torchvision.datasets import _optical_flow
        from torchvision.datasets.utils import _read_pfm
        for suffix, data in files.items():
            (self.work / suffix).write_bytes(data)
        np.testing.assert_array_equal(_optical_flow._read_flo(self.work / "flo"), flow)
        for name in ("three.pfm", "big.pfm"):
            np.testing.assert_array_equal(_read_pfm(self.work / name), flow)
        np.testing.assert_array_equal(np.abs(_read_pfm(self.work / "one.big.pfm", slice_channels=1)), one)
        got, got_valid = _optical_flow._read_16bits_png_with_flow_and_valid_mask(str(self.work / "kitti.png"))
        np.testing.assert_array_equal(got_valid, valid)
        np.testing.assert_array_equal(got, flow)

    def test_crops_flips_and_sizes(self):
        """A crop cuts, a flip negates, a resize multiplies; what lies outside was not measured."""
        flow, disparity, depth, normals = numbers(2), numbers(1) + 5, numbers(1) + 9, numbers(3)
        files = {"flow": ("flo", flo(flow)), "depth": ("npy", npy(depth[0])), "normals": ("npy", npy(normals))}
        kinds = {"flow": oa.Flow(), "depth": oa.Depth(), "normals": oa.Normals()}
        down = np.array([1, -1], np.float32)[:, None, None]
        batch = self.batch([t.RandomHorizontalFlip(1), t.CenterCrop((11, 12)), t.RandomVerticalFlip(1), t.Pad(3, padding_mode="reflect")], files, kinds)
        inside = np.zeros((17, 18), bool)
        inside[3:-3, 3:-3] = True
        part = np.s_[:, 4:15, 7:19]
        for name, want in (("flow", -flow), ("depth", depth), ("normals", normals * np.float32([-1, -1, 1])[:, None, None])):
            np.testing.assert_array_equal(batch[name + "_valid"], inside, name)
            np.testing.assert_array_equal(batch[name][:, 3:-3, 3:-3], want[:, ::-1, ::-1][part], name)
            self.assertFalse(batch[name][:, ~inside].any())
        files["disparity"], kinds["disparity"] = ("pfm", pfm(disparity)), oa.Disparity(nearest=True)
        kinds["flow"] = oa.Flow(nearest=True)
        batch = self.batch([t.RandomVerticalFlip(1), t.Resize((38, 13))], files, kinds)
        y, x = np.arange(38) // 2, np.arange(13) * 2            # PyTorch's nearest
        near = np.ix_(range(2), y, x)
        np.testing.assert_array_equal(batch["flow"], (flow * down)[:, ::-1][near] * np.float32([.5, 2])[:, None, None])
        np.testing.assert_array_equal(batch["disparity"], disparity[:, ::-1][np.ix_([0], y, x)] / 2)
        np.testing.assert_array_equal(batch["depth"], depth[:, ::-1][np.ix_([0], y, x)])
        self.assertTrue(all(batch[name + "_valid"].all() for name in kinds))

    @unittest.skipUnless(HAS_TORCHVISION, "no torchvision")
    def test_filters(self):
        """Dense flow has the op's own filter: torchvision's resize with antialias, times the ratio of the sizes."""
        import torch
        from torchvision.transforms.functional import resize
        flow = np.sin(numbers(2) / 9).astype(np.float32)
        for size in ((9, 40), (31, 11)):
            want = resize(torch.from_numpy(flow), size, antialias=True).numpy() * np.float32([size[1] / WIDTH, size[0] / HEIGHT])[:, None, None]
            np.testing.assert_allclose(self.batch([t.Resize(size)], {"flow": ("flo", flo(flow))}, {"flow": oa.Flow()})["flow"], want, atol=2e-6)

    def test_beyond(self):
        """Bicubic goes below 0 beside an edge: there is no such disparity or depth."""
        edge = np.where(np.arange(WIDTH) < WIDTH // 2, np.float32(.1), 100)[None, None].repeat(HEIGHT, 1)
        batch = self.batch([t.Resize((HEIGHT, 2 * WIDTH), interpolation="bicubic")], {"near": ("pfm", pfm(edge)), "far": ("pfm", pfm(edge))},
                           {"near": oa.Disparity(), "far": oa.Depth(nearest=False)})
        for name in ("near", "far"):
            some = batch[name + "_valid"]
            self.assertTrue(some.any() and not some.all())
            self.assertGreater(batch[name][:, some].min(), 0)
            self.assertFalse(batch[name][:, ~some].any())

    def test_turns(self):
        """Vectors turn and grow with the image."""
        flow = np.broadcast_to(np.float32([3, -2])[:, None, None], (2, HEIGHT, WIDTH))
        cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
        for op, want in ((t.RandomRotation((30, 30)), (3 * cos - 2 * sin, -3 * sin - 2 * cos)),        # counter-clockwise, y down
                         (t.RandomAffine(0, scale=(1.5, 1.5)), (4.5, -3)), (t.RandomRotation((90, 90), expand=True), (-2, -3))):
            batch = self.batch([op, t.CenterCrop(16)], {"flow": ("flo", flo(flow))}, {"flow": oa.Flow()})
            valid = batch["flow_valid"]
            self.assertGreater(valid.sum(), 100)
            np.testing.assert_allclose(batch["flow"][:, valid].T, np.broadcast_to(want, (valid.sum(), 2)), rtol=1e-6)
            self.assertFalse(batch["flow"][:, ~valid].any())

    def test_pixels_are_where_flow_says(self):
        """Flow that differs from place to place leads from each pixel of the batch's image to its own in the next one: these differ by what filters do to something
        smooth, and by a tenth of the range where flow is left out."""
        height, width, slope, shift = 90, 120, np.array([[.03, -.02], [.015, -.04]]), np.array([2.5, -1.5])

        def seen(place):
            x, y = place[..., 0] / 9, place[..., 1] / 7
            return np.rint(np.stack([127 + 60 * np.sin(x + k) + 60 * np.cos(y - k) for k in range(3)], -1)).astype(np.uint8)

        place = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).astype(float)
        frames = seen(place), seen((place - shift) @ np.linalg.inv(np.eye(2) + slope).T)
        files = {name: ("ppm", b"P6\n%d %d\n255\n" % (width, height) + frame.tobytes()) for name, frame in zip(("image", "next"), frames)}
        files["flow"] = "flo", flo((place @ slope.T + shift).transpose(2, 0, 1).astype(np.float32))
        turned = {"interpolation": "bilinear"}
        for ops in ([t.RandomHorizontalFlip(1), t.RandomVerticalFlip(1), t.CenterCrop((80, 100))], [t.RandomResizedCrop((70, 110), scale=(.5, .9)), t.RandomHorizontalFlip(1)],
                    [t.RandomAffine(20, translate=(.1, .1), scale=(.8, 1.3), shear=(-15, 15, -10, 10), **turned), t.CenterCrop((70, 80))],
                    [t.RandomRotation((90, 90), expand=True), t.Resize((90, 100))], [t.Pad(9), t.ScaleJitter((110, 110), (.8, 1.5)), t.RandomCrop(80, pad_if_needed=True)]):
            batch = self.batch(ops, files, {"flow": oa.Flow()}, images="next")
            image, later, valid = batch["image"] * 255, batch["next"] * 255, batch["flow_valid"]
            y, x = np.mgrid[:valid.shape[0], :valid.shape[1]]
            x, y = x + batch["flow"][0], y + batch["flow"][1]
            left, top = (np.floor(at).astype(int).clip(0, end - 2) for at, end in ((x, valid.shape[1]), (y, valid.shape[0])))
            corners = [later[:, top + down, left + across] for down in (0, 1) for across in (0, 1)]
            across, down = x - left, y - top
            moved = sum(corner * weight for corner, weight in zip(corners, ((1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down)))
            known = valid & (np.minimum.reduce(corners).min(0) > 0) & (across >= 0) & (across <= 1) & (down >= 0) & (down <= 1)
            self.assertGreater(known.sum(), 2000)
            self.assertLess(np.abs(moved - image)[:, known].mean(), 2)
            self.assertGreater(np.abs(later - image)[:, known].mean(), 15)

    def test_the_draws_are_the_images(self):
        """Each pixel has its place in both images and as what was measured: all three come from the same place."""
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        place = np.stack([y, x, y * 0]).astype(np.uint8)
        image = b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT) + place.transpose(1, 2, 0).tobytes()
        files = {"image": ("ppm", image), "next": ("ppm", image), "flow": ("npy", npy(place[[1, 0]].astype(np.float32) + 1))}
        ops = [t.RandomApply([t.RandomCrop((14, 15))], 0.5), t.RandomHorizontalFlip(), t.RandomCrop((12, 13)), t.ColorJitter(0.4), t.RandomVerticalFlip()]
        for _ in range(2):
            batch = self.batch(ops[:3] + ops[4:], files, {"flow": oa.Flow()}, images="next")
            np.testing.assert_array_equal(batch["image"], batch["next"])
            np.testing.assert_array_equal(np.abs(batch["flow"]) - 1, np.rint(batch["image"][[1, 0]] * 255))
            self.assertTrue(batch["flow_valid"].all())

    def test_sparse(self):
        """By nearest a measured pixel stays one; by a filter nothing is mixed with what was not measured."""
        flow, valid = numbers(2), is_measured()
        files = {"flow": ("png", kitti(flow, valid)), "other": ("png", kitti(flow, valid))}
        batch = self.batch([t.Resize((38, 52))], files, {"flow": oa.Flow(nearest=True), "other": oa.Flow()})
        np.testing.assert_array_equal(batch["flow_valid"], valid.repeat(2, 0).repeat(2, 1))
        np.testing.assert_array_equal(batch["flow"], np.where(valid, flow * 2, 0).repeat(2, 1).repeat(2, 2))
        some, whole = batch["other_valid"], self.batch([t.Resize((38, 52))], {"flow": ("flo", flo(flow))}, {"flow": oa.Flow()})["flow"]
        self.assertTrue(some.any() and not (some & ~batch["flow_valid"]).any())
        np.testing.assert_array_equal(batch["other"][:, some], whole[:, some])

    def test_frames(self):
        """No pair is of two scenes; as torchvision's Sintel, FlyingChairs and HD1K."""
        root, wanted = pathlib.Path(self.work) / "Sintel" / "training", []
        for scene, count in (("alley_1", 3), ("cave_2", 4)):
            for part in ("clean", "flow"):
                (root / part / scene).mkdir(parents=True)
            for at in range(1, count + 1):
                (root / "clean" / scene / f"frame_{at:04d}.png").write_bytes(png(np.full((3, HEIGHT, WIDTH), 10 * len(wanted) + at), 8))
                if at < count:
                    (root / "flow" / scene / f"frame_{at:04d}.flo").write_bytes(flo(numbers(2) + at))
                    wanted.append((scene, at))
        data = oa.from_flow(root / "clean/*/*.png", root / "flow/*/*.flo", keep=5, workers=1)
        self.assertEqual([tuple(os.path.relpath(files.paths[at], root) for files in data.dataset.files) for at in range(len(data))],
                         [(f"clean/{scene}/frame_{at:04d}.png", f"clean/{scene}/frame_{at + 1:04d}.png", f"flow/{scene}/frame_{at:04d}.flo") for scene, at in wanted])
        batch, = self.open(data, oa.Compose([t.CenterCrop((HEIGHT, WIDTH)), t.ToTensor()]), batch_size=5, as_="numpy", shuffle=False)
        self.assertEqual(list(batch), ["image", "next", "flow", "flow_valid"])
        np.testing.assert_array_equal(batch["flow"], [numbers(2) + at for _, at in wanted])
        self.assertEqual(batch["next"].shape, (5, 3, HEIGHT, WIDTH))
        if HAS_TORCHVISION:
            from torchvision.datasets import Sintel
            theirs = Sintel(str(self.work))
            pairs = {tuple(map(str, pair)): flow for pair, flow in zip(theirs._image_list, theirs._flow_list)}
            self.assertEqual(pairs, {(first, later): flow for first, later, flow in zip(*(files.paths for files in data.dataset.files))})
        for files, others in zip(data.dataset.files, oa.from_flow(root / "clean", root / "flow").dataset.files):
            self.assertEqual(files.paths, others.paths)
        late = oa.from_flow(root / "clean/*/*.png", root / "flow/*/*.flo", backward=True, scenes=["cave_2"]).dataset
        self.assertEqual([os.path.basename(files.paths[0]) for files in late.files], ["frame_0002.png", "frame_0001.png", "frame_0001.flo"])
        chairs = self.work / "chairs"
        chairs.mkdir()
        for at in (1, 2):
            (chairs / f"0000{at}_flow.flo").write_bytes(b"")
            for which in (1, 2):
                (chairs / f"0000{at}_img{which}.ppm").write_bytes(b"")
        rows = oa.from_flow(chairs / "*_img*.ppm", chairs / "*_flow.flo", scenes=["00002"]).dataset
        self.assertEqual([os.path.basename(files.paths[0]) for files in rows.files], ["00002_img1.ppm", "00002_img2.ppm", "00002_flow.flo"])
        os.remove(root / "flow/cave_2/frame_0002.flo")
        for wrong, why in ((dict(flow=root / "flow/*/*.flo"), "cave_2 has 4 frames and 2 files of flow"), (dict(scenes=["market"]), "no flow for scene market"),
                           (dict(flow=root / "flow/*/*.pfm"), "no file is at")):
            with self.assertRaisesRegex(DatasetError, why):
                oa.from_flow(root / "clean/*/*.png", **wrong)

    def test_arrays(self):
        """Of a program: arrays of both orders, and a picture beside other fields."""
        data = oa.wrap(Rows(), masks={"flow": oa.Flow(), "depth": oa.Depth()}, keep=5, workers=1)
        batch, = self.open(data, oa.Compose([t.CenterCrop((HEIGHT, WIDTH)), t.ToTensor()]), batch_size=2, as_="numpy", shuffle=False)
        self.assertEqual(list(batch), ["image", "label", "flow", "depth", "text", "flow_valid", "depth_valid"])
        np.testing.assert_array_equal(batch["flow"], [numbers(2), numbers(2) + 1])
        np.testing.assert_array_equal(batch["depth"][1], numbers(1))

    def test_what_is_refused(self):
        flow, disparity = {"flow": ("flo", flo(numbers(2)))}, {"flow": ("pfm", pfm(numbers(1)))}
        crop = t.CenterCrop(8)
        for files, kind, op, why in (
                (disparity, oa.Disparity(), t.RandomHorizontalFlip(), "hflip.*disparity cannot follow it: in a mirror"),
                (disparity, oa.Disparity(), t.RandomRotation(9), "rotate.*one row"), (disparity, oa.Normals(), t.RandomAffine(9), "affine.*normals cannot"),
                (flow, oa.Flow(), t.RandomPerspective(), "random_perspective.*flow, disparity and normals"),
                (flow, oa.Flow(), t.TrivialAugmentWide(), "what was measured of pixels cannot follow")):
            with self.assertRaisesRegex(oa.Error, why):
                self.batch([op, crop], files, {"flow": kind})
        for files, kind, why in ((disparity, oa.Flow(), "flow: 1 channels are no flow"), (flow, oa.Depth(), "flow: 2 channels are no depth"),
                                 ({"flow": ("flo", flo(numbers(2))[:-4])}, oa.Flow(), "ends before"), ({"flow": ("flo", flo(numbers(2, 9)))}, oa.Flow(), "26 x 9, not 1 x"),
                                 ({"flow": ("pfm", pfm(numbers(1))[:-1])}, oa.Disparity(), "ends before"), ({"flow": ("pfm", b"Pf\n3 x\n-1\n")}, oa.Disparity(), "PFM: no width"),
                                 ({"flow": ("png", png(numbers(1)))}, oa.Flow(), "1 channels are no flow"), ({"flow": ("png", png(numbers(3), 8))}, oa.Flow(), "3 channels are no flow"),
                                 ({"flow": ("ppm", picture())}, oa.Flow(), "3 channels are no flow")):
            with self.assertRaisesRegex(SampleError, why):
                self.batch([crop], files, {"flow": kind})
        with self.assertRaisesRegex(SampleError, "FLO: no picture"):
            self.batch([crop], {"image": ("flo", flo(numbers(2))), **flow}, {"flow": oa.Flow()})
        with self.assertRaisesRegex(oa.Error, "flow_valid, which a batch has"):
            self.batch([crop], {**flow, "flow_valid": ("ppm", picture())}, {"flow": oa.Flow()})
        for wrong in (0, 1.5, True):
            with self.assertRaises(ArgumentError):
                oa.Disparity(divisor=wrong)


if __name__ == "__main__":
    unittest.main()
