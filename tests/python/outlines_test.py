# SPDX-License-Identifier: Apache-2.0
"""Outlines become the pixels that pycocotools makes of them: outlines.json has what it made (pycocotools 2.0.11, by this program with
--golden); where it is installed, also of outlines drawn at random."""

import importlib.util
import json
import os
import pathlib
import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"outlines_test: skipped: {missing}")
    sys.exit(77)

from oneaccess.domains import outlines

GOLDEN = pathlib.Path(os.environ.get("top_srcdir", "."), "tests/python/outlines.json")


def drawn(rng):
    """Height, width and polygons: beyond the edges, with corners on each other, on whole pixels and halves."""
    height, width = (int(side) for side in rng.integers(1, 120, 2))
    polygons = []
    for _ in range(rng.integers(1, 4)):
        count, kind = int(rng.integers(3, 16)), rng.integers(4)
        corners = rng.uniform(-0.2, 1.2, (count, 2)) * [width, height]
        if kind == 0:       # around a middle
            angle = np.sort(rng.uniform(0, 6.28, count))
            corners = np.stack([np.cos(angle), np.sin(angle)], 1) * rng.uniform(.1, .6, (count, 1)) * [width, height] + rng.uniform(.2, .8, 2) * [width, height]
        corners = np.round(corners, 2) if kind < 2 else np.round(corners * 2) / 2 if kind == 2 else corners
        if rng.random() < .2:
            corners[1] = corners[0]
        polygons.append(corners.ravel().tolist())
    return height, width, polygons


def ours(segmentation, height, width):
    made = outlines.Outlines()
    made.add(outlines.of_coco(segmentation), height, width)
    return outlines.paint(made, [0], [1], height, width)


def pixels(text, height, width):
    """Of runs "4 2 7", which begin with pixels that are not of it."""
    counts = [int(count) for count in text.split()]
    return np.repeat(np.arange(len(counts)) % 2, counts).reshape(width, height).T


class OutlinesTest(unittest.TestCase):
    def test_as_recorded(self):
        cases = json.loads(GOLDEN.read_text())
        self.assertGreater(len(cases), 50)
        for case in cases:
            height, width = case["size"]
            want = pixels(case["counts"], height, width)
            for what in case["polygons"], {"size": case["size"], "counts": case["text"]}, {"size": case["size"], "counts": [*map(int, case["counts"].split())]}:
                np.testing.assert_array_equal(ours(what, height, width), want, str(what))
        self.assertGreater(sum(case["counts"].count(" ") for case in cases), 1000)

    @unittest.skipUnless(importlib.util.find_spec("pycocotools"), "not tested: no pycocotools")
    def test_as_pycocotools(self):
        from pycocotools import mask
        rng = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
        for _ in range(300):
            height, width, polygons = drawn(rng)
            want = mask.merge(mask.frPyObjects(polygons, height, width))
            np.testing.assert_array_equal(ours(polygons, height, width), mask.decode(want), str((height, width, polygons)))
            runs = {"size": [height, width], "counts": want["counts"].decode()}
            np.testing.assert_array_equal(ours(runs, height, width), mask.decode(want), str(runs))

    def test_smaller_over_larger(self):
        """Of objects of one size the first is seen; numbers beyond a byte have two."""
        square = [[[1, 1, 9, 1, 9, 9, 1, 9]], [[3, 3, 6, 3, 6, 6, 3, 6]], [[3, 3, 6, 3, 6, 6, 3, 6]]]
        for order in ([0, 1, 2], [1, 2, 0], [1, 0, 2]):
            made = outlines.Outlines()
            for at in order:
                made.add(outlines.of_coco(square[at]), 10, 12)
            mask = outlines.paint(made, range(3), [7, 8, 300], 10, 12)
            first = [7, 8, 300][min(order.index(1), order.index(2))]
            self.assertEqual((mask.shape, mask.dtype, mask[4, 4], mask[2, 2], mask[0, 0]), ((10, 12), np.uint16, first, [7, 8, 300][order.index(0)], 0))

    def test_that_are_wrong(self):
        for found, what in (([], "no segmentation"), (None, "no segmentation"), ([[1, 2, 3, 4]], "at least three points"), ([[1, 2, 3, 4, 5, 6, 7]], "7 numbers"),
                            ([["a"] * 6], "is a list of numbers"), ([[1, 2, 3, 4, 5, float("nan")]], "pixels away"), ([[1, 2, 3, 4, 5, 1e9]], "pixels away"),
                            ([[[1, 2], [3, 4], [5, 6]]], "polygon of 3 numbers"), ([7], "polygon of 0 numbers"), ({}, "size of runs"),
                            ({"size": [3, 4], "counts": [5, 6]}, "together are height x width, 3 x 4"), ({"size": [3, 4], "counts": [13, -1]}, "together"),
                            ({"size": [3, 4], "counts": [12.0]}, "together"), ({"size": [1 << 15, 1 << 16], "counts": []}, "size of runs"),
                            ({"size": [3, 4], "counts": "o"}, "compressed runs"), ({"size": [3, 4], "counts": "ooooooooo0"}, "compressed runs"),
                            ({"size": [3, 4], "counts": "\x7f0"}, "compressed runs"), ({"size": [3, 4], "counts": ";"}, "together"),
                            ({"size": [3, 4], "counts": "<é"}, "compressed runs")):
            made = outlines.of_coco(found)
            self.assertIsInstance(made, outlines.Bad, str(found))
            with self.assertRaisesRegex(outlines.Bad, what, msg=str(found)):
                outlines.Outlines().add(made, 3, 4)
        with self.assertRaisesRegex(outlines.Bad, "runs is 3 x 4, and its picture's 4 x 3"):
            outlines.Outlines().add(outlines.of_coco({"size": [3, 4], "counts": [12]}), 4, 3)


def golden():
    from pycocotools import mask
    rng, cases = np.random.default_rng(20), []
    for _ in range(80):
        height, width, polygons = drawn(rng)
        made = mask.merge(mask.frPyObjects(polygons, height, width))
        flat = mask.decode(made).ravel(order="F")
        ends = [*np.flatnonzero(np.diff(flat)) + 1, len(flat)]
        counts = ([0] if flat[0] else []) + np.diff([0, *ends]).tolist()
        cases.append({"size": [height, width], "polygons": polygons, "text": made["counts"].decode(), "counts": " ".join(map(str, counts))})
    print("[" + ",\n".join(map(json.dumps, cases)) + "]")


if __name__ == "__main__":
    golden() if sys.argv[1:] == ["--golden"] else unittest.main()
