# SPDX-License-Identifier: Apache-2.0
"""Mosaic: each batch is, bit for bit, what NumPy makes of the batch without it and of the draws, which are done here once more."""

import sys
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"mosaic_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import TransformError
from support import PoolCase

COUNT, BATCH, SEED, POINTS, MOST = 26, 8, 5, 3, 5
WHOLE = (1 << 64) - 1
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FIELDS = ["boxes", "classes", "joints", "mask_id"]


# ---- draws: base/philox.h, plan_nonce(), mosaic_draw() ----


def philox(key, a, b):
    x, keys = [a & 0xffffffff, a >> 32, b & 0xffffffff, b >> 32], [key & 0xffffffff, key >> 32]
    for _ in range(10):
        p, q = 0xd2511f53 * x[0], 0xcd9e8d57 * x[2]
        x = [(q >> 32) ^ x[1] ^ keys[0], q & 0xffffffff, (p >> 32) ^ x[3] ^ keys[1], p & 0xffffffff]
        keys = [(keys[0] + 0x9e3779b9) & 0xffffffff, (keys[1] + 0xbb67ae85) & 0xffffffff]
    return x


def halves(x):
    return x[1] << 32 | x[0], x[3] << 32 | x[2]


class Draws:
    def __init__(self, sample, epoch, number):
        nonce = halves(philox(SEED, epoch, 0x6c61700000000000))[0]
        key, a = halves(philox(SEED ^ 0x6f616d6f73616963, nonce, sample))
        self.words = (word for at in range(1 << 30) for word in philox(key, (a + epoch) & WHOLE, number << 32 | at))

    def unit(self):
        low = next(self.words)
        return ((next(self.words) << 32 | low) >> 11) / (1 << 53)

    def between(self, pair):
        return pair[0] + (pair[1] - pair[0]) * self.unit()

    def below(self, bound):
        while True:
            product = next(self.words) * bound
            if product & 0xffffffff >= (1 << 32) % bound:
                return product >> 32


class Drawn:
    """Of a picture: is_done, tiles, center (y, x), scale."""

    def __init__(self, sample, epoch, number, count, size, p, center, scale):
        draws = Draws(sample, epoch, number)
        self.is_done = draws.unit() < p
        self.center = [int(draws.between(center) * side) for side in size]
        self.scale, self.size = draws.between(scale), size
        self.tiles = [number]
        while len(self.tiles) < 4:
            other = draws.below(count)
            if count < 4 or other not in self.tiles:
                self.tiles.append(other)


# ---- NumPy's ----


def canvas_of(drawn, tiles, fill):
    """[2 h, 2 w, ...] of the four [h, w, ...]."""
    (height, width), (middle, center) = drawn.size, drawn.center
    canvas = np.empty((4 * height, 4 * width, *tiles[0].shape[2:]), tiles[0].dtype)       # a side more on each side
    canvas[...] = fill
    for at, tile in enumerate(tiles):
        top, left = middle + height * (at // 2), center + width * (at % 2)
        canvas[top:top + height, left:left + width] = tile
    canvas = canvas[height:3 * height, width:3 * width].copy()
    return canvas


def places_of(side, scale):
    return (np.arange(side) + 0.5 - side // 2) / scale + side


def scaled(drawn, canvas, fill):
    """Between four pixels, in float32, down and then across."""
    for axis in (0, 1):
        side = drawn.size[axis]
        place = places_of(side, drawn.scale) - 0.5
        first = np.floor(place)
        share = (place - first).astype(np.float32)
        shape = list(canvas.shape)
        shape[axis] = 20 * side                 # scale is 0.1 at least
        around = np.empty(shape, np.float32)
        around[...] = fill
        around[(slice(None),) * axis + (slice(9 * side, 11 * side),)] = canvas
        share = share.reshape([-1 if at == axis else 1 for at in range(canvas.ndim)])
        one, other = (around.take(first.astype(int) + 9 * side + k, axis) for k in (0, 1))
        canvas = one + (other - one) * share
    return canvas


def picture_of(drawn, tiles, fill):
    """[h, w, c] of the four."""
    canvas = canvas_of(drawn, tiles, fill)
    (height, width), dtype = drawn.size, canvas.dtype
    if drawn.scale == 1:
        top, left = height - height // 2, width - width // 2
        return canvas[top:top + height, left:left + width]
    result = scaled(drawn, canvas.astype(np.float32), np.float32(fill))
    return (result + np.float32(0.5)).astype(dtype) if dtype == np.uint8 else result.astype(dtype)


def mask_of(drawn, tiles, fill, numbers):
    """numbers: {(tile, number): new number}, or None."""
    if numbers is not None:
        tiles = [np.vectorize(lambda value, at=at: value if value == fill else numbers.get((at, value), 0), otypes=[tile.dtype])(tile)
                 for at, tile in enumerate(tiles)]
    canvas = np.pad(canvas_of(drawn, tiles, fill), 1, constant_values=fill)
    rows, columns = (np.clip(np.floor(places_of(side, drawn.scale)).astype(int), -1, 2 * side) + 1 for side in drawn.size)
    return canvas[rows][:, columns]


def axis_of(drawn, tile, axis):
    """(map, least, most) of y (0) or x (1)."""
    side, center = drawn.size[axis], drawn.center[axis]
    shift = center if (tile & 1 if axis else tile >> 1) else center - side

    def place(at):
        return (at + shift - side) * drawn.scale + side // 2
    least, most = (np.float32(min(max(place(at), 0), side)) for at in (max(-shift, 0), min(2 * side - shift, side)))
    return place, least, most


def rows_of(drawn, rows, min_size, min_visibility):
    """rows: of each of the four a dict of arrays. The same of the result, and {(tile, number): new number}."""
    kept = {name: [] for name in FIELDS}
    numbers = {}
    for tile, own in enumerate(rows):
        (down, top, bottom), (across, left, right) = axis_of(drawn, tile, 0), axis_of(drawn, tile, 1)
        for at, box in enumerate(own["boxes"].astype(float)):
            cut = np.float32([min(max(np.float32(across(box[0])), left), right), min(max(np.float32(down(box[1])), top), bottom),
                              min(max(np.float32(across(box[2])), left), right), min(max(np.float32(down(box[3])), top), bottom)])
            sides = cut[2:].astype(float) - cut[:2]
            area = (box[2] - box[0]) * (box[3] - box[1]) * drawn.scale * drawn.scale
            if min(sides) <= 0 or min(sides) < min_size or sides[0] * sides[1] < min_visibility * area:
                continue
            points = own["joints"][at].astype(float)
            moved = np.float32([[across(x), down(y), 0] for x, y, _ in points])
            moved[:, 2] = [seen if left <= x <= right and top <= y <= bottom else 0 for (x, y, _), (_, _, seen) in zip(moved, points)]
            kept["boxes"].append(cut)
            kept["joints"].append(moved)
            kept["classes"].append(own["classes"][at])
            kept["mask_id"].append(len(kept["mask_id"]) + 1)
            numbers[tile, int(own["mask_id"][at])] = len(kept["mask_id"])
    return kept, numbers


class Sample:
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        height, width = 40 + index % 7, 61 - index % 5
        count = index % (MOST + 1)
        corner = rng.integers(0, 25, (count, 2))
        boxes = np.concatenate([corner, corner + rng.integers(3, 16, (count, 2))], 1).astype(np.float32)
        mask = np.zeros((height, width), np.uint8)
        for at, (left, top, right, bottom) in enumerate(boxes.astype(int)):
            mask[top:bottom, left:right] = at + 1
        points = np.concatenate([boxes[:, None, :2] + rng.integers(0, 9, (count, POINTS, 2)), rng.integers(0, 3, (count, POINTS, 1))], 2)
        return {"image": rng.integers(0, 256, (height, width, 3), np.uint8), "label": index, "boxes": boxes,
                "classes": rng.integers(0, 9, count), "joints": points.astype(np.float32), "mask_id": np.arange(1, count + 1), "mask": mask,
                "kind": mask % 3 + 40, "caption": "x" * (index % 4)}


class Pointed(Sample):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return {name: sample[name] for name in ("image", "label", "joints")}


RAGGED = {"boxes": MOST, "classes": MOST, "joints": MOST, "mask_id": MOST, "caption": 9}
CROP = [t.RandomCrop((36, 45), pad_if_needed=True), t.RandomHorizontalFlip()]
BYTES, FLOATS = [t.PILToTensor()], [t.ToTensor(), t.Normalize(MEAN, STD)]


class MosaicTest(PoolCase):
    def made(self, ops, dataset=None, **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, "batch_size": BATCH, "as_": "numpy", "order": "seeded", "seed": SEED, **kwargs}
        loader = oa.Loader(dataset or self.dataset(), oa.Compose(ops), **kwargs)
        self.addCleanup(loader.close)
        return loader

    def dataset(self):
        return oa.wrap(Sample(), ragged=RAGGED, boxes=["boxes", "classes", "mask_id", oa.Points("joints")],
                       masks={"mask": oa.Mask(), "kind": oa.Mask(fill=255, dtype="int32")})

    def check(self, batch, plain, fill, p=1, center=(0.5, 1.5), scale=(0.5, 1.5), min_size=1, min_visibility=0.1, epochs=None):
        """Returns how many pictures were done."""
        is_planar = plain["image"].shape[1] == 3
        image = np.moveaxis(plain["image"], 1, -1) if is_planar else plain["image"]
        result = np.moveaxis(batch["image"], 1, -1) if is_planar else batch["image"]
        count, done = len(image), 0
        np.testing.assert_array_equal(batch["label"], plain["label"])
        self.assertEqual((batch.epoch, batch["caption"].strings()), (plain.epoch, plain["caption"].strings()))
        for at in range(count):
            drawn = Drawn(int(plain.ids[0]), plain.epoch, at, count, image.shape[1:3], p, center, scale)
            if not drawn.is_done or (epochs and plain.epoch >= epochs):
                np.testing.assert_array_equal(result[at], image[at])
                for name in [*FIELDS, "mask", "kind"]:
                    np.testing.assert_array_equal(batch[name][at], plain[name][at])
                continue
            done += 1
            np.testing.assert_array_equal(result[at], picture_of(drawn, [image[tile] for tile in drawn.tiles], fill))
            rows, numbers = rows_of(drawn, [{name: plain[name][tile] for name in FIELDS} for tile in drawn.tiles], min_size, min_visibility)
            for name in FIELDS:
                self.assertEqual(len(batch[name][at]), len(rows[name]))
                if rows[name]:
                    np.testing.assert_array_equal(batch[name][at], rows[name])
            for name, outside in (("mask", 0), ("kind", 255)):
                want = mask_of(drawn, [plain[name][tile] for tile in drawn.tiles], outside, numbers if name == "mask" else None)
                np.testing.assert_array_equal(batch[name][at], want)
            for number in batch["mask_id"][at]:       # as the guide says
                self.assertIn(number, rows["mask_id"])
        self.assertEqual([batch[name].values.shape[1] for name in FIELDS], [4 * MOST] * 4)
        return done

    def test_against_numpy(self):
        """Types, layouts, sizes and bounds; beside a job without it, which shares all."""
        float_fill = (np.float32(114) / np.float32(255) - np.float32(MEAN)) / np.float32(STD)
        for end, fill, arguments in (
                (BYTES, 114, {}), (FLOATS, float_fill, {}), (FLOATS, float_fill, {"scale": 1}), (BYTES, 114, {"scale": (1, 1), "p": 0.5}),
                ([t.Cast("f16")], np.float16(np.float32(114) / np.float32(255)), {"scale": (0.1, 0.6)}),
                ([], [7, 80, 250], {"center": (0, 2), "scale": (0.1, 4), "fill": (7, 80, 250), "min_size": 0, "min_visibility": 0}),
                ([], 114, {"center": 1, "scale": 0.5, "min_size": 4, "min_visibility": 0.9}),
                (BYTES, 114, {"center": (0.2, 1.9), "scale": 1, "epochs": 1})):
            with self.subTest(end=end, arguments=arguments):
                plain, mosaic = self.made([*CROP, *end], epochs=2), self.made([*CROP, *end, t.Mosaic(**arguments)], epochs=2)
                done = 0
                arguments.pop("fill", None)
                for name in {"center", "scale"} & set(arguments):
                    pair = arguments[name]
                    arguments[name] = pair if isinstance(pair, tuple) else (pair, pair)
                for _ in range(2):
                    for batch, own in zip(mosaic, plain, strict=True):
                        done += self.check(batch, own, fill, **arguments)
                self.assertGreater(done, 10)
                self.assertEqual(done == 2 * COUNT, "p" not in arguments and "epochs" not in arguments)
                if "epochs" in arguments:
                    self.assertEqual(done, COUNT)
                plain.close()
                mosaic.close()

    def test_resumed_copied_and_ranked(self):
        ops = [*CROP, *BYTES]
        for kwargs in ({"copy": True}, {"rank": 1, "world_size": 2}, {"batch_size": 3}):
            with self.subTest(kwargs=kwargs):
                plain, first = self.made(ops, epochs=2, **kwargs), self.made([*ops, t.Mosaic()], epochs=2, **kwargs)
                wanted = [batch for _ in range(2) for batch in map(oa_copy, plain)]
                batches, state = iter(first), None
                seen = [oa_copy(next(batches)) for _ in range(2)]
                state = first.state_dict()
                first.close()
                second = self.made([*ops, t.Mosaic()], epochs=2, **kwargs)
                second.load_state_dict(state)
                while len(seen) < len(wanted):
                    seen += map(oa_copy, second)
                self.assertEqual(len(seen), len(wanted))
                for batch, own in zip(seen, wanted):
                    self.check(batch, own, 114)

    def test_without_boxes(self):
        """Pictures and labels alone; points without boxes are all kept."""
        dataset = oa.wrap(Pointed(), ragged={"joints": MOST}, boxes=[oa.Points("joints")])
        plain, mosaic = self.made([*CROP, *BYTES], dataset), self.made([*CROP, *BYTES, t.Mosaic()], dataset)
        for batch, own in zip(mosaic, plain, strict=True):
            for at in range(len(own["label"])):
                drawn = Drawn(int(own.ids[0]), own.epoch, at, len(own["label"]), own["image"].shape[2:], 1, (0.5, 1.5), (0.5, 1.5))
                self.assertEqual(len(batch["joints"][at]), sum(len(own["joints"][tile]) for tile in drawn.tiles))
        alone = self.loader(oa.Compose([t.Resize((24, 24)), *BYTES, t.Mosaic(scale=1)]), 16, as_="numpy")
        image, label = next(iter(alone))
        self.assertEqual((image.shape, label.shape), ((16, 3, 24, 24), (16,)))

    def test_what_is_refused(self):
        for ops, words in (
                ([t.Mosaic(), t.Mosaic()], "op 4 \\(mosaic\\): mosaic is the only op on a pipeline's batches"),
                ([t.CutMix(num_classes=3), t.Mosaic()], "op 4 \\(mosaic\\).*only op"),
                ([t.Mosaic(), t.CutMix(num_classes=3)], "op 4 \\(cutmix\\).*only op"),
                ([t.Mosaic(center=(0.5, 2.5))], "center"), ([t.Mosaic(scale=(1.5, 0.5))], "scale"), ([t.Mosaic(p=2)], "p is not"),
                ([t.Mosaic(epochs=0)], "epochs"), ([t.Mosaic(fill=300)], "fill"),
                ([t.Mosaic(), t.RandomHorizontalFlip()], "op 4 \\(hflip\\)|put it before")):
            with self.subTest(ops=ops), self.assertRaisesRegex(oa.Error, words):
                self.loader(oa.Compose([t.Resize((32, 32)), *ops]), 8)
        with self.assertRaisesRegex(TransformError, "mosaic cannot be done at random"):
            t.RandomApply([t.Mosaic()])
        one = oa.Compose([t.Resize((32, 32))])
        with self.assertRaisesRegex(oa.Error, "mosaic, mixup and cutmix would change the first picture alone"):
            self.loader(oa.views(oa.Compose([*one.ops, t.Mosaic()]), one), 8)


def oa_copy(batch):
    """What is left of a batch when its memory is another's."""
    return Kept(batch)


class Kept(dict):
    def __init__(self, batch):
        super().__init__({name: batch[name] if name in RAGGED else batch[name].copy() for name in batch})
        self.ids, self.epoch = np.array(batch.ids), batch.epoch
        self.batch = batch


if __name__ == "__main__":
    unittest.main()
