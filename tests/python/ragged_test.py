# SPDX-License-Identifier: Apache-2.0
"""Fields whose samples differ in length, of all types, alone and beside a picture: ragged= of wrap() and Loader."""

import importlib.util
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"ragged_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import ArgumentError, DatasetError, SampleError, TransformError
from shard_files import write_mds
from support import BUILD, PoolCase

COUNT, BATCH = 70, 8        # chunks of 32: some batches are of two
MOST = {"text": 40, "boxes": 5, "tokens": 12}
HAS_TORCHVISION = unittest.skipUnless(importlib.util.find_spec("torchvision") and
                                      importlib.util.find_spec("torchvision.tv_tensors"), "not tested: no torchvision of v2")
HAS_TORCH = unittest.skipUnless(importlib.util.find_spec("torch"), "no torch")
TYPES = ("uint8", "float16", "float32", "int64", "int8", "int16", "int32", "uint16", "uint32", "uint64", "float64", "bool")


def text_of(index):
    return "é" * (index % 9) + str(index) if index % 10 else ""


def boxes_of(index):
    return np.arange(index % 6 * 4, dtype=np.float32).reshape(-1, 4) + index


class Captions:
    """Text, boxes and tokens, each of which is nothing for some samples."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"label": index, "text": text_of(index), "boxes": boxes_of(index), "tokens": list(range(index, index + (index + 1) % 13))}


class Pairs(Captions):
    def __getitem__(self, index):
        return boxes_of(index), index


class Types(Captions):
    """Each type of one's own, dense and ragged."""

    def __getitem__(self, index):
        values = [(np.arange(index % 4) + index % 2).astype(name) for name in TYPES]
        return {**{f"of_{name}": value for name, value in zip(TYPES[1:], values[1:])}, "one": np.uint64(2**64 - 1 - index)}


class Dense(Captions):
    def __getitem__(self, index):
        return {name: np.array([index % 2, index % 100]).astype(name) for name in TYPES}


class Odd(Captions):
    """Sample 5 is not as the others are."""

    def __init__(self, value):
        self.value = value

    def __getitem__(self, index):
        return {"boxes": self.value if index == 5 else boxes_of(index)}


class Detection(Captions):
    """A picture's bytes or pixels, boxes, a label a box, and a caption."""

    def __getitem__(self, index):
        picture = PIL.Image.new("RGB", (40 + index, 50), (index, 0, 0))
        return {"picture": picture, "boxes": boxes_of(index), "classes": list(range(index % 6)), "caption": text_of(index)}


class Marked(Captions):
    """A black picture with white rectangles, each in a channel of its own, their boxes, and their channels."""

    def __getitem__(self, index):
        picture = np.zeros((60 + index % 7, 90 - index % 5, 3), np.uint8)
        boxes = [[10 + index % 9, 12, 40 + index % 20, 35], [50, 5 + index % 11, 80, 55], [2, 40, 8, 58]][:index % 4]
        for channel, (left, top, right, bottom) in enumerate(boxes):
            picture[top:bottom, left:right, channel] = 255
        return {"picture": PIL.Image.fromarray(picture), "boxes": np.float32(boxes).reshape(-1, 4), "channels": list(range(len(boxes)))}


def seen_in(channel):
    """Where the white is: left, top, right, bottom; None: there is none."""
    rows, columns = np.nonzero(channel.max(1) > 127)[0], np.nonzero(channel.max(0) > 127)[0]
    return [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1] if len(rows) else None


class Labelled(Detection):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return sample["picture"], index, sample["caption"], np.float64(index / 2)


class Lists(Captions):
    """Lists of lists of each kind, and of nothing."""

    def __getitem__(self, index):
        count = index % 4
        return {"texts": [text_of(index + at) for at in range(count)], "ids": [list(range(at, at + (index + at) % 6)) for at in range(count)],
                "points": [np.float32(np.arange(at * 2)).reshape(-1, 2) + index for at in range(count)], "label": index}


class Scores(Captions):
    """Of each three samples two have no number."""

    def __getitem__(self, index):
        return {"scores": [[[]], [[], []], [[], [index / 2, 1.5]]][index % 3]}


LISTS = {"texts": (3, 20), "ids": (3, 5), "points": (3, 2)}


class Told(Marked):
    """A text for each box: its channel's."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return {**sample, "texts": [["red", "green", "ü"][channel] for channel in sample["channels"]]}


class RaggedTest(PoolCase):
    def made(self, dataset, *pipeline, wrap=None, **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, "batch_size": BATCH, "as_": "numpy", **kwargs}
        if "order" not in kwargs:
            kwargs.setdefault("shuffle", False)
        loader = oa.Loader(oa.wrap(dataset, keep=0.5, **(wrap or {})), *pipeline, **kwargs)
        self.addCleanup(loader.close)
        return loader

    def captions(self, **kwargs):
        return self.made(Captions(), wrap={"ragged": MOST}, **kwargs)

    def same(self, batch, ids):
        for at, index in enumerate(ids):
            want = Captions()[index]
            self.assertEqual((batch["label"][at], batch["text"][at]), (index, want["text"]))
            np.testing.assert_array_equal(batch["boxes"][at], want["boxes"])
            np.testing.assert_array_equal(batch["tokens"][at], np.int64(want["tokens"]))

    def test_samples_are_as_long_as_they_are(self):
        for kwargs in ({}, {"copy": True}, {"shuffle": True, "batch_size": 7}, {"order": "seeded", "seed": 3}):
            with self.subTest(**kwargs):
                seen = []
                for batch in self.captions(**kwargs):
                    self.assertEqual(list(batch), ["label", "text", "boxes", "tokens"])
                    self.assertTrue(isinstance(batch["text"], oa.Ragged) and batch["text"].is_text)
                    self.assertEqual((batch["boxes"].dtype, batch["boxes"].shape[1:]), (np.float32, (5, 4)))
                    self.same(batch, batch.ids)
                    seen += batch.ids.tolist()
                self.assertEqual(sorted(seen), list(range(COUNT)))

    def test_what_stands_behind_a_sample_is_nothing(self):
        """A slot is used again; what was there before is not seen."""
        loader = self.captions(order="seeded", seed=1)
        for _ in range(3):
            for batch in loader:
                for field in (batch["text"], batch["boxes"], batch["tokens"]):
                    for values, length in zip(field.values, field.lengths):
                        self.assertFalse(values[length:].any())

    def test_ways(self):
        for batch in self.captions(batch_size=BATCH):
            boxes, text = batch["boxes"], batch["text"]
            longest = max(len(boxes_of(index)) for index in batch.ids)
            self.assertEqual(boxes.padded().shape, (len(batch.ids), longest, 4))
            self.assertTrue(np.shares_memory(boxes.padded(), boxes.values))
            filled = boxes.padded(-1, to=7)
            self.assertEqual(filled.shape, (len(batch.ids), 7, 4))
            for at, index in enumerate(batch.ids):
                np.testing.assert_array_equal(filled[at], np.concatenate([boxes_of(index), np.full((7 - index % 6, 4), -1)]))
            self.assertEqual(boxes.padded(to=2).shape[1], 2)
            self.assertEqual([len(each) for each in boxes.list()], boxes.lengths.tolist())
            self.assertEqual(text.strings(), [text_of(index) for index in batch.ids])
            self.assertRegex(repr(boxes), "Ragged of 8, float32|Ragged of 6, float32")
            with self.assertRaisesRegex(ArgumentError, "texts"):
                boxes.strings()
            with self.assertRaisesRegex(ArgumentError, "as_=\"torch\""):
                boxes.nested()

    def test_ways_that_the_loader_is_told(self):
        ways = {"text": "strings", "boxes": "padded", "tokens": "list"}
        for batch in self.captions(ragged=ways):
            self.assertEqual(batch["text"], [text_of(index) for index in batch.ids])
            self.assertIsInstance(batch["boxes"], np.ndarray)
            self.assertEqual([len(each) for each in batch["tokens"]], [(index + 1) % 13 for index in batch.ids])
        for boxes, _ in self.made(Pairs(), wrap={"ragged": {"0": 5}}, ragged="list"):
            self.assertIsInstance(boxes, list)
        for why, way in (("there are: padded", "flat"), ("has numbers", "strings"), ("ragged= names 'nobody'", {"nobody": "list"})):
            with self.assertRaisesRegex(ArgumentError, why):
                self.captions(ragged=way)
        with self.assertRaisesRegex(ArgumentError, "has none"):
            self.made(Dense(), ragged="list")

    def lists(self, batch):
        for at, index in enumerate(batch.ids):
            want = Lists()[index]
            self.assertEqual(batch["texts"][at], want["texts"])
            self.assertEqual([row.tolist() for row in batch["ids"][at]], want["ids"])
            self.assertEqual([row.tolist() for row in batch["points"][at]], [row.tolist() for row in want["points"]])

    def test_lists_of_lists(self):
        for batch in self.made(Lists(), wrap={"ragged": LISTS}):
            self.assertEqual(list(batch), ["texts", "ids", "points", "label"])
            self.lists(batch)
            rows = [row for index in batch.ids for row in Lists()[index]["ids"]]
            values, lists, samples = batch["ids"].csr()
            self.assertEqual(values.tolist(), sum(rows, []))
            self.assertEqual([values[begin:end].tolist() for begin, end in zip(lists, lists[1:])], rows)
            self.assertEqual(np.diff(samples).tolist(), [index % 4 for index in batch.ids])
            self.assertEqual((batch["ids"].padded().shape[1], batch["points"].values.shape[1:]), (max(index % 4 for index in batch.ids), (3, 2, 2)))
            self.assertEqual(batch["points"].csr()[0].shape[1:], (2,))
        for batch in self.made(Lists(), wrap={"ragged": LISTS}, ragged={"texts": "strings", "ids": "list"}):
            self.assertEqual(batch["texts"], [Lists()[index]["texts"] for index in batch.ids])
            self.assertEqual([len(each) for each in batch["ids"]], [index % 4 for index in batch.ids])

    @HAS_TORCH
    def test_lists_of_lists_as_tensors(self):
        for batch in self.made(Lists(), wrap={"ragged": LISTS}, as_="torch"):
            self.lists(batch)
            self.assertEqual(batch["ids"].csr()[0].tolist(), [number for index in batch.ids for row in Lists()[index]["ids"] for number in row])

    def test_lists_of_lists_by_dlpack(self):
        for batch in self.made(Lists(), wrap={"ragged": LISTS}, as_="dlpack"):
            ids = batch["ids"]
            values = np.from_dlpack(ids.values)
            for at, index in enumerate(batch.ids):
                rows = [values[at, row, :ids.inner[at, row]].tolist() for row in range(ids.lengths[at])]
                self.assertEqual(rows, Lists()[index]["ids"])
            with self.assertRaisesRegex(ArgumentError, r"take \.values and \.lengths, of lists of lists \.inner"):
                ids.padded()

    def test_lists_of_lists_of_nothing(self):
        """Each is of what the others hold, in whichever process it is made."""
        for workers in (1, 4):
            seen = []
            for batch in self.made(Scores(), wrap={"ragged": {"scores": (2, 3)}, "workers": workers}):
                self.assertEqual(batch["scores"].dtype, np.float32)
                self.assertEqual([[row.tolist() for row in rows] for rows in batch["scores"]], [Scores()[index]["scores"] for index in batch.ids])
                seen += batch.ids.tolist()
            self.assertEqual(seen, list(range(COUNT)))
        with self.assertRaisesRegex(DatasetError, "field scores is an empty list in each of the first samples"):
            self.made([{"scores": [[]]}] * 3, wrap={"ragged": {"scores": (2, 3)}})

    def test_whole_numbers_among_floats(self):
        """Lists of Python's that have no type become float32, as a list that is not of lists does."""
        rows = [[[0.5, 1], [2]], [[3, 4]], [[5], [0.25]], [[]]] * 10
        seen = []
        for batch in self.made([{"scores": each} for each in rows], wrap={"ragged": {"scores": (2, 3)}}):
            self.assertEqual(batch["scores"].dtype, np.float32)
            seen += [[row.tolist() for row in lists] for lists in batch["scores"]]
        self.assertEqual(seen, rows)
        with self.assertRaisesRegex(TransformError, "field scores: float32, sample 0: int64"):
            list(self.made([{"scores": each} for each in rows[1:]], wrap={"ragged": {"scores": (2, 3)}}))

    def test_lists_of_lists_of_another_length_are_another_data_set(self):
        one, same, other = (oa.wrap(Lists(), name="lists", ragged={"ids": (3, most)}).identity(False) for most in (5, 5, 6))
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_lists_of_lists_that_do_not_fit(self):
        for ragged, why in (({"ids": (3, 2)}, "a list of length 3, at most 2"), ({"ids": (2, 5)}, "length 3, at most 2"), ({"label": (2, 5)}, "is a int"),
                            ({"ids": 3}, r"lists of lists by ragged={name: \(most lists, most in one\)}"), ({"texts": 3}, r"not of one shape: of lists or texts give ragged=")):
            with self.assertRaisesRegex((DatasetError, SampleError, TransformError), why):
                list(self.made(Lists(), wrap={"ragged": {**LISTS, **ragged}}))
        with self.assertRaisesRegex(DatasetError, r"the sample is a tuple, .*ragged= of 1.*: make the sample a dict"):
            self.made([(index, [[index]]) for index in range(3)], wrap={"ragged": {"1": (2, 5)}})
        with self.assertRaisesRegex(ArgumentError, r"ragged\['ids'\] is 0"):
            oa.wrap(Lists(), ragged={"ids": (0, 4)})

    def test_a_text_for_each_box(self):
        """Boxes that a crop leaves out take their texts along."""
        t = oa.transforms
        marked = {"ragged": {"boxes": 3, "channels": 3, "texts": (3, 8)}, "boxes": ["boxes", "channels", "texts"]}
        kept = 0
        for batch in self.made(Told(), t.Compose([t.RandomResizedCrop(40, scale=(0.1, 0.3)), t.PILToTensor()]), wrap=marked, order="seeded", seed=4):
            for channels, texts in zip(batch["channels"], batch["texts"]):
                self.assertEqual(texts, [["red", "green", "ü"][channel] for channel in channels])
                kept += len(texts)
        self.assertTrue(0 < kept < sum(index % 4 for index in range(COUNT)))

    def test_csr(self):
        for batch in self.captions():
            values, offsets = batch["boxes"].csr()
            np.testing.assert_array_equal(values, np.concatenate([boxes_of(index) for index in batch.ids]))
            self.assertEqual(np.diff(offsets).tolist(), batch["boxes"].lengths.tolist())
            whole = batch["boxes"].values.reshape(-1, 4)
            for start, length, index in zip(batch["boxes"].starts, batch["boxes"].lengths, batch.ids):
                np.testing.assert_array_equal(whole[start:start + length], boxes_of(index))

    def test_samples_for_a_collate_fn(self):
        batches = list(self.captions(collate_fn=lambda samples: [(s["text"], len(s["boxes"])) for s in samples]))
        self.assertEqual(sum(batches, []), [(text_of(index), index % 6) for index in range(COUNT)])

    def test_all_types(self):
        names = [f"of_{name}" for name in TYPES[1:]]
        loader = self.made(Types(), wrap={"ragged": {name: 4 for name in names[:10]}, "exact": True, "columns": [*names[:10], "one"]})
        for batch in loader:
            for at, index in enumerate(batch.ids):
                for name in names[:10]:
                    want = Types()[index][name]
                    self.assertEqual(batch[name][at].dtype, want.dtype)
                    np.testing.assert_array_equal(batch[name][at], want)
                self.assertEqual(batch["one"][at], 2**64 - 1 - index)
        for exact in (True, False):
            for batch in self.made(Dense(), wrap={"exact": exact}):
                for name in TYPES:
                    want = np.stack([Dense()[index][name] for index in batch.ids])
                    np.testing.assert_array_equal(batch[name], want)
                    self.assertEqual(batch[name].dtype == want.dtype, exact or name in
                                     ("uint8", "float16", "float32", "int64", "uint64", "float64"), name)

    @HAS_TORCH
    def test_all_types_as_tensors(self):
        import torch
        lacking = [name for name in TYPES if not hasattr(torch, name)]
        there = [name for name in TYPES if name not in lacking]
        for copy in (False, True):
            for batch in self.made(Dense(), wrap={"exact": True, "columns": there}, as_="torch", copy=copy):
                for name in there:
                    want = np.stack([Dense()[index][name] for index in batch.ids])
                    self.assertEqual((batch[name].dtype, batch[name].tolist()), (getattr(torch, name), want.tolist()))
        names = [f"of_{name}" for name in there[1:]]
        for batch in self.made(Types(), wrap={"exact": True, "columns": names[:10], "ragged": {name: 4 for name in names[:10]}}, as_="torch"):
            for name in names[:10]:
                self.assertEqual([each.tolist() for each in batch[name]], [Types()[index][name].tolist() for index in batch.ids])
        for name in lacking:
            with self.assertRaisesRegex(ArgumentError, f"field {name} has {name}, and torch .* has no tensors of it"):
                self.made(Dense(), wrap={"exact": True, "columns": [name]}, as_="torch")

    def test_numbers_of_numpy_stay(self):
        for exact in (True, False):
            batch = next(iter(self.made([(np.float64(0.1), 0.1, 1)] * 8, wrap={"exact": exact})))
            self.assertEqual([field.dtype for field in batch], [np.float64, np.float32, np.int64])
            self.assertEqual(batch[0][0], 0.1)

    def test_what_does_not_fit_is_a_bad_sample(self):
        for value, why in ((np.zeros((6, 4), np.float32), "length 6, at most 5"), (np.zeros((2, 3), np.float32), "shape 2x3, sample 0: 2x4"),
                           (np.zeros((2, 4), np.int64), "int64, sample 0: float32"), ("text", "no numbers, as in sample 0")):
            with self.assertRaisesRegex(SampleError, why):
                list(self.made(Odd(value), wrap={"ragged": {"boxes": 5}}))
            loader = self.made(Odd(value), wrap={"ragged": {"boxes": 5}}, bad="skip")
            self.assertEqual([index for batch in loader for index in batch.ids], [index for index in range(COUNT) if index != 5])
        for value in ([], np.zeros((0, 9), np.int64)):
            batches = list(self.made(Odd(value), wrap={"ragged": {"boxes": 5}}, copy=True))
            self.assertEqual(batches[0]["boxes"][5].shape, (0, 4))

    def test_what_is_refused(self):
        for ragged, why in (({"nobody": 3}, "ragged= names 'nobody'"), ({"label": 3}, "one number, and has no length"),
                            ({"text": 40, "boxes": 5}, "tokens")):
            with self.assertRaisesRegex((DatasetError, TransformError), why):
                self.made(Captions(), wrap={"ragged": ragged})
        with self.assertRaisesRegex(ArgumentError, "ragged\\['boxes'\\] is 0"):
            oa.wrap(Captions(), ragged={"boxes": 0})
        with self.assertRaisesRegex(DatasetError, "empty list"):
            self.made([[[]], [[]]], wrap={"ragged": {"0": 3}})
        for (field,) in self.made([[[]], [[7, 8]]], wrap={"ragged": {"0": 3}}):
            self.assertEqual([each.tolist() for each in field], [[], [7, 8]])

    def test_beside_a_picture(self):
        ragged = {"boxes": 5, "classes": 5, "caption": 40}
        pipeline = oa.imagenet_eval(32, dtype="uint8")
        for batch in self.made(Detection(), pipeline, wrap={"ragged": ragged}):
            self.assertEqual(list(batch), ["picture", "boxes", "classes", "caption"])
            self.assertEqual(batch["picture"].shape[1:], (3, 32, 32))
            for at, index in enumerate(batch.ids):
                self.assertTrue((batch["picture"][at, 0] == index).all())
                np.testing.assert_array_equal(batch["boxes"][at], boxes_of(index))
                self.assertEqual((batch["classes"][at].tolist(), batch["caption"][at]), (list(range(index % 6)), text_of(index)))
        for images, labels, captions, halves in self.made(Labelled(), pipeline, wrap={"ragged": {"2": 40}}, ragged="strings"):
            self.assertEqual((labels.tolist(), halves.tolist()), (images[:, 0, 0, 0].tolist(), (labels / 2).tolist()))
            self.assertEqual(captions, [text_of(index) for index in labels])

    def test_boxes_follow_the_picture(self):
        """They are where the pixels say; a wide one that is nowhere has no white left in the picture."""
        t = oa.transforms
        marked = {"ragged": {"boxes": 3, "channels": 3}, "boxes": ["boxes", "channels"]}
        for ops in ([t.Resize((120, 45))], [t.CenterCrop((40, 100))], [t.Resize(40), t.CenterCrop(40)],
                    [t.RandomResizedCrop((64, 80), scale=(0.3, 1)), t.RandomHorizontalFlip(), t.ColorJitter(0.1)],
                    [t.RandomCrop((50, 70), padding=(8, 4, 2, 6)), t.RandomVerticalFlip()], [t.RandomHorizontalFlip(1), t.Pad(5), t.Resize((70, 100))],
                    [t.RandomApply([t.RandomHorizontalFlip(1)], p=0.5), t.Resize((60, 90))],
                    [t.RandomRotation((90, 90), expand=True), t.Resize((90, 60))], [t.RandomAffine(0, (0.1, 0.2), (0.8, 1.4)), t.Resize((60, 90))],
                    [t.RandomPerspective(0.2, 1), t.Resize((60, 90))], [t.ScaleJitter((60, 90), (0.8, 1.4)), t.FixedSizeCrop((70, 80))],
                    [t.RandomZoomOut(side_range=(1, 1.4)), t.RandomShortestSize([60, 70], 100), t.FixedSizeCrop(100)],
                    [t.RandomResize(50, 80), t.RandomIoUCrop(), t.RandomHorizontalFlip(), t.Resize((120, 180))]):
            found, keeps_all = 0, not any(op.op == "random_iou_crop" for op in t.Compose(ops).ops)
            for _ in range(2):
                loader = self.made(Marked(), t.Compose([*ops, t.PILToTensor()]), wrap=marked, order="seeded", seed=4)
                for batch in loader:
                    for picture, boxes, channels in zip(*batch.values()):
                        self.assertEqual(len(boxes), len(channels))
                        for box, channel in zip(boxes, channels):
                            seen = seen_in(picture[channel])
                            if seen is not None:        # else it is thinner than what resizing leaves white
                                np.testing.assert_allclose(box, seen, atol=1.01)
                                found += 1
                        for channel in set(range(3)) - set(channels.tolist()) if keeps_all else ():
                            seen = seen_in(picture[channel])
                            self.assertTrue(seen is None or min(seen[2] - seen[0], seen[3] - seen[1]) <= 1)
                loader.close()
            self.assertGreater(found, COUNT)

    def test_boxes_that_cannot_follow(self):
        t = oa.transforms
        for op in (t.TrivialAugmentWide(), t.RandAugment()):
            with self.assertRaisesRegex(oa.Error, "boxes cannot follow"):
                self.made(Marked(), t.Compose([op, t.Resize((60, 90))]), wrap={"ragged": {"boxes": 3, "channels": 3}, "boxes": "boxes"})
        with self.assertRaisesRegex(ArgumentError, "not among ragged"):
            oa.wrap(Marked(), boxes="boxes")

    @HAS_TORCHVISION
    def test_boxes_are_torchvisions(self):
        import torch
        from torchvision.transforms import v2
        from torchvision import tv_tensors
        t = oa.transforms

        def centered(sample):
            """v2.CenterCrop((40, 100)), padded as it pads pictures: it moves boxes by half of that rounded, which may be one too many."""
            missing = max(0, 100 - sample["picture"].size[0])
            return v2.CenterCrop((40, 100))(v2.Pad((missing // 2, 0, missing - missing // 2, 0))(sample))
        for ours, theirs in (([t.Resize((120, 45))], [v2.Resize((120, 45))]), ([t.CenterCrop((40, 100))], [centered]),
                             ([t.RandomHorizontalFlip(1), t.Pad((3, 4, 5, 6)), t.Resize(48), t.CenterCrop(48)],
                              [v2.RandomHorizontalFlip(1), v2.Pad((3, 4, 5, 6)), v2.Resize(48), v2.CenterCrop(48)]),
                             ([t.RandomVerticalFlip(1), t.Resize((33, 77))], [v2.RandomVerticalFlip(1), v2.Resize((33, 77))]),
                             ([t.RandomRotation((25, 25)), t.Resize((60, 90))], [v2.RandomRotation((25, 25)), v2.Resize((60, 90))]),
                             ([t.RandomAffine((-20, -20), None, (0.7, 0.7), (10, 10, 5, 5)), t.Resize((60, 90))],
                              [v2.RandomAffine((-20, -20), None, (0.7, 0.7), (10, 10, 5, 5)), v2.Resize((60, 90))])):
            after = v2.Compose([*theirs, v2.SanitizeBoundingBoxes(labels_getter=None)])
            for batch in self.made(Marked(), t.Compose([*ours, t.PILToTensor()]), as_="torch",
                                   wrap={"ragged": {"boxes": 3, "channels": 3}, "boxes": ["boxes", "channels"]}):
                for index, boxes in zip(batch.ids, batch["boxes"]):
                    sample = Marked()[index]
                    size = sample["picture"].size[::-1]
                    want = after({"picture": sample["picture"], "boxes": tv_tensors.BoundingBoxes(
                        torch.from_numpy(sample["boxes"]), format="XYXY", canvas_size=size)})["boxes"]
                    self.assertTrue(torch.allclose(boxes, want.as_subclass(torch.Tensor), atol=1e-3), (boxes, want))

    def shards(self, folder, count=2, **instead):
        """With members in one row a sample, some of folders of their own; instead: of sample 9, where not None."""
        (self.work / folder).mkdir()
        for shard in range(count):
            with tarfile.open(self.work / folder / f"part-{shard:02}.tar", "w") as tar:
                for index in range(shard * 20, shard * 20 + 20):
                    sample, file = Marked()[index], io.BytesIO()
                    sample["picture"].save(file, "PNG")
                    about = {"of": {"boxes": sample["boxes"].astype(int).tolist()}, "channels": sample["channels"]}
                    array = io.BytesIO()
                    np.save(array, np.full(3, index, np.int16))
                    parts = {"png": file.getvalue(), "json": json.dumps(about).encode(), "txt": text_of(index).encode(),
                             "cls": b"%d" % index, "more.npy": array.getvalue()}
                    for kind, data in {**parts, **(instead if index == 9 else {})}.items():
                        if data is not None:
                            member = tarfile.TarInfo(f"of{index % 2}/{index:04}.{kind}")
                            member.size = len(data)
                            tar.addfile(member, io.BytesIO(data))
        return str(self.work / folder)

    def of_tar(self, paths, fields, *pipeline, tar=None, **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, "batch_size": BATCH, "as_": "numpy", "shuffle": False, **kwargs}
        loader = oa.Loader(oa.from_tar(paths, fields, keep=0.5, **(tar or {})), *pipeline, **kwargs)
        self.addCleanup(loader.close)
        return loader

    def test_tar_shards(self):
        folder = self.shards("members")
        fields = {"image": "jpg;png", "label": "cls", "boxes": "json:of/boxes", "channels": "json:channels", "text": "txt", "more": "more.npy"}
        ragged = {"ragged": {"boxes": 3, "channels": 3, "text": 40}, "boxes": ["boxes", "channels"], "exact": True}
        t = oa.transforms
        pipeline = t.Compose([t.RandomHorizontalFlip(1), t.Resize((60, 90)), t.PILToTensor()])
        for paths in (folder, folder + "/part-{00..01}.tar", [folder + "/part-00.tar", folder + "/part-01.tar"], folder + "/part*.tar"):
            seen = []
            for batch in self.of_tar(paths, fields, pipeline, tar=ragged):
                self.assertEqual(list(batch), list(fields))
                for at, index in enumerate(batch.ids):
                    self.assertEqual((batch["label"][at], batch["text"][at], batch["more"][at].tolist()), (index, text_of(index), [index] * 3))
                    self.assertEqual(batch["more"].dtype, np.int16)
                    for box, channel in zip(batch["boxes"][at], batch["channels"][at]):
                        np.testing.assert_allclose(box, seen_in(batch["image"][at][channel]), atol=1.01)
                seen += batch.ids.tolist()
            self.assertEqual(seen, list(range(40)))

    def test_tar_shards_without_a_pool(self):
        """What a pipeline's members are is what from_tar() gives."""
        folder = self.shards("whole")
        fields = {"image": "png", "boxes": "json:of/boxes", "channels": "json:channels", "text": "txt", "more": "more.npy"}
        tail = [{"op": "hflip", "p": 1}, {"op": "resize", "size": [60, 90]}]
        ours = [{"op": "decode", "members": ["jpg;png", *list(fields.values())[1:]], "fields": [[3, 3, 4], [4, 3], [1, 40], [4, 3]], "kinds": [3, 4, 2, 0],
                 "names": list(fields)[1:]}, *tail]
        ragged = {"ragged": {"boxes": 3, "channels": 3, "text": 40}, "boxes": ["boxes", "channels"]}
        pooled = {**ragged, "room": 1 << 20}      # which only a pool heeds
        loader = oa.Loader(folder, json.dumps(ours), BATCH, socket=self.socket, timeout=600, as_="numpy", shuffle=False, source={"members": "all"})
        self.addCleanup(loader.close)
        count = 0
        thin, pool = (self.of_tar(folder, fields, json.dumps([{"op": "decode"}, *tail]), tar=each) for each in (ragged, pooled))
        self.assertEqual((thin._pool is None, pool._pool is None), (True, False))
        for batch, want, also in zip(loader, pool, thin, strict=True):
            self.same_fields(also, want)
            image, label, *others = batch[:6]
            np.testing.assert_array_equal(image, want["image"])
            self.assertEqual(label.tolist(), want.ids.tolist())
            for name, field in zip(list(fields)[1:], others, strict=True):
                if name == "more":
                    np.testing.assert_array_equal(field, want[name])
                    continue
                self.assertEqual(field.lengths.tolist(), want[name].lengths.tolist())
                np.testing.assert_array_equal(field.values, want[name].values)
            count += len(image)
        self.assertEqual(count, 40)
        with self.assertRaisesRegex(SampleError, 'decode needs .*members'):
            next(iter(self.plain(folder, json.dumps([{"op": "decode"}, *tail]), source={"members": "all"})))
        with self.assertRaisesRegex(SampleError, "members=all"):
            next(iter(self.plain(folder, json.dumps(ours))))
        with self.assertRaisesRegex(DatasetError, r"part-0\d.tar:0: the option members is all"):
            self.plain(folder, json.dumps(ours), source={"members": "some"})

    def test_tar_shards_are_not_counted(self):
        """Where no pool needs it, only the first of them is looked at."""
        data = oa.from_tar(self.shards("uncounted"), {"label": "cls", "text": "txt"}, ragged={"text": 40})
        loader = oa.Loader(data, batch_size=BATCH, shuffle=False, as_="numpy", socket=self.socket, timeout=600)
        self.addCleanup(loader.close)
        self.assertEqual(next(iter(loader))["label"].tolist(), list(range(BATCH)))
        self.assertRegex(repr(loader), r"wrap\(TarRows\)")
        self.assertTrue(data)
        self.assertEqual(data.dataset.starts, [])
        self.assertEqual(len(data), 40)
        self.assertEqual(repr(data), "wrap(TarRows, 40 samples)")

    def test_a_first_sample_that_is_bad(self):
        """The next ones say what all are like."""
        fields = {"x": "json:x", "text": "txt"}
        for name, first in (("json", [("0.json", b"{"), ("0.txt", b"zero")]), ("less", [("0.json", b'{"x": 0}')])):
            self.rows_of(f"bad-{name}.tar", *first, ("1.json", b'{"x": 1}'), ("1.txt", b"one"), fields=fields)
            path = str(self.work / f"bad-{name}.tar")
            loader = self.of_tar(path, fields, tar={"ragged": {"text": 40}}, bad="skip")
            self.assertEqual([(batch["x"].tolist(), batch["text"][0]) for batch in loader], [([1], "one")])
            self.assertIsNone(loader._pool)
            with self.assertRaisesRegex((DatasetError, SampleError), f"bad-{name}.tar"):
                list(self.of_tar(path, fields, tar={"ragged": {"text": 40}}))
        with self.assertRaisesRegex(DatasetError, r"none.tar:512: field x cannot be made of this json"):
            self.rows_of("none.tar", ("0.json", b"{"), ("0.txt", b"zero"), ("1.json", b"["), ("1.txt", b"one"), fields=fields)

    def same_fields(self, batch, want):
        self.assertEqual((list(batch), batch.ids.tolist()), (list(want), want.ids.tolist()))
        for name in want:
            if isinstance(want[name], oa.Ragged):
                self.assertEqual((batch[name].lengths.tolist(), batch[name].is_text), (want[name].lengths.tolist(), want[name].is_text))
            mine, theirs = (getattr(each[name], "values", each[name]) for each in (batch, want))
            self.assertEqual(mine.dtype, theirs.dtype)
            np.testing.assert_array_equal(mine, theirs)

    def test_shards_with_and_without_a_pool(self):
        """Without a pipeline, with one, with labels; and what a pool is for."""
        folder, text = self.shards("both"), '[{"op": "decode"}, {"op": "center_crop", "size": 32}]'
        every = {"image": "png", "label": "cls", "boxes": "json:of/boxes", "text": "txt", "more": "more.npy"}
        for fields, pipeline in ((every, [text]), ({"label": "cls", "text": "txt", "more": "more.npy", "file": "png"}, []), ({"image": "png", "label": "cls"}, [text])):
            ragged = {name: most for name, most in (("boxes", 3), ("text", 40), ("file", 1 << 16)) if name in fields}
            thin = self.of_tar(folder, fields, *pipeline, tar={"ragged": ragged})
            pool = self.of_tar(folder, fields, *pipeline, tar={"ragged": ragged, "room": 1 << 20})
            self.assertEqual((thin._pool is None, pool._pool is None), (True, False))
            for batch, want in zip(thin, pool, strict=True):
                self.same_fields(batch, want)
            thin.close()
            pool.close()
        for paths, fields, more in ((folder, {"more": "more.npy"}, {"exact": True}), (folder, {"label": "cls", "more": "png;npy"}, {"ragged": {"more": 1 << 16}}),
                                    ([folder + "/part-01.tar", folder + "/part-00.tar"], {"label": "cls"}, {})):
            loader = self.of_tar(paths, fields, tar=more)
            self.assertIsNotNone(loader._pool)
            self.assertEqual(len(next(iter(loader)).ids), BATCH)
            loader.close()

    def plain(self, folder, text, **kwargs):
        loader = oa.Loader(folder, text, BATCH, socket=self.socket, timeout=600, as_="numpy", shuffle=False, **kwargs)
        self.addCleanup(loader.close)
        return loader

    def test_the_example_in_c(self):
        """Boxes that are the whole picture stay so, wherever the crop is."""
        with tarfile.open(self.work / "street-000.tar", "w") as tar:
            for index in range(12):
                size = 40 + index, 50
                about = {"boxes": [[0, 0, *size]] * (index % 3), "classes": [index] * (index % 3)}
                for kind, data in (("jpg", PIL.Image.new("RGB", size)), ("mask.png", PIL.Image.new("L", size, 7)), ("json", json.dumps(about).encode()),
                                   ("txt", text_of(index).encode()), ("cls", b"%d" % index)):
                    file = io.BytesIO() if isinstance(data, PIL.Image.Image) else io.BytesIO(data)
                    if isinstance(data, PIL.Image.Image):
                        data.save(file, "JPEG" if kind == "jpg" else "PNG")
                    member = tarfile.TarInfo(f"{index:04}.{kind}")
                    member.size = len(file.getvalue())
                    tar.addfile(member, io.BytesIO(file.getvalue()))
        run = subprocess.run([BUILD / "doc/examples/detect", self.work / "street-{000..000}.tar"], timeout=600, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, "ACCESS_SOCKET": self.socket})
        self.assertEqual(run.returncode, 0, run.stdout)
        want = {f'{index}: label {index}, "{text_of(index)}", 9216 pixels of mask\n' + f"  class {index}: 0.0 0.0 96.0 96.0\n" * (index % 3)
                for index in range(12)}
        self.assertEqual(set(re.findall(r"\d+: .*\n(?:  .*\n)*", run.stdout)), want)

    def test_tar_shards_that_are_wrong(self):
        for number, (instead, why) in enumerate(((({"txt": None}, r"wrong0/part-00.tar.*of1/0009.*: no file for txt")),
                                                 ({"json": b"{"}, r"wrong1/part-00.tar.*of1/0009.*: json:channels: it is no JSON"),
                                                 ({"json": b"[]"}, r"of1/0009.*: json:channels: nothing is there"),
                                                 ({"txt": b"\xff"}, r"of1/0009.*: txt: no UTF-8 at byte 0"))):
            folder = self.shards(f"wrong{number}", 1, **instead)
            with self.assertRaisesRegex((DatasetError, SampleError), why):
                list(self.of_tar(folder, {"channels": "json:channels", "text": "txt"}, tar={"ragged": {"channels": 3, "text": 40}}))
        (self.work / "no.tar").write_bytes(b"no tar at all" * 100)
        with self.assertRaisesRegex(DatasetError, "no tar shard"):
            oa.from_tar(self.work / "no.tar", {"text": "txt"})
        with self.assertRaisesRegex(oa.errors.MissingError, "no tar shard is at"):
            oa.from_tar(self.work / "nowhere-{0..3}.tar", {"text": "txt"})
        with self.assertRaisesRegex(ArgumentError, "json:key"):
            oa.from_tar(folder, {"text": "txt:key"})

    def rows_of(self, name, *files, fields=None):
        """Of a shard with these (path, bytes)."""
        with tarfile.open(self.work / name, "w") as tar:
            for path, data in files:
                member = tarfile.TarInfo(path)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return oa.from_tar(self.work / name, fields or {"text": "txt"}, ragged={"text": 40}).dataset

    def test_tar_names(self):
        rows = self.rows_of("names.tar", ("README", b"no key"), ("._1.txt", b"no key"), ("1.cls", b"1"), ("__meta__/a.txt", b"{}"), ("1.txt", b"one"),
                            ("__x__", b""), ("__2__.txt", b"two"), ("3/__4__/5.txt", b"three"))
        self.assertEqual([row["text"] for row in rows], ["one", "two", "three"])
        with self.assertRaisesRegex(DatasetError, r"twice.tar:\d+ \(a/1\): the sample has two files .txt"):
            self.rows_of("twice.tar", ("a/1.txt", b"one"), ("a/1.TXT", b"again"))

    def test_shards_that_are_named_are_there(self):
        folder = self.shards("named", 3)
        was = os.getcwd()
        self.addCleanup(os.chdir, was)
        os.chdir(folder)
        rows = oa.from_tar("part-{00..02}.tar", {"text": "txt"}, ragged={"text": 40}).dataset
        os.chdir(was)
        self.assertEqual((len(rows), rows[59]["text"]), (60, text_of(59)))
        os.unlink(folder + "/part-01.tar")
        for paths in (folder + "/part-{00..02}.tar", [folder + "/part-00.tar", folder + "/part-01.tar"], folder + "/{0..1}-*.tar"):
            with self.assertRaisesRegex(oa.errors.MissingError, "no tar shard is at .*(part-01.tar|/0-)"):
                oa.from_tar(paths, {"text": "txt"})
        self.assertEqual(len(oa.from_tar(folder + "/part-*.tar", {"text": "txt"}, ragged={"text": 40}).dataset), 40)

    def test_boxes_that_end_before_they_begin(self):
        rows = oa.from_tar(self.shards("coco", 1, json=b'{"of": {"boxes": [[30, 40, 20, 50]]}}'), {"boxes": "json:of/boxes"}, ragged={"boxes": 3},
                           boxes="boxes").dataset
        self.assertEqual(len(rows[8]["boxes"]), 0)
        with self.assertRaisesRegex(DatasetError, "box 30, 40, 20, 50 ends before it begins: .* not left, top, width, height"):
            rows[9]

    def test_mds_columns_of_other_encodings(self):
        write_mds(self.work / "passed", {"text": "str", "other": "pkl"}, [[{"text": b"one", "other": b"any"}]])
        self.assertEqual(oa.from_mds(self.work / "passed", {"text": "text"}, ragged={"text": 40}).dataset[0]["text"], "one")
        write_mds(self.work / "unknown", {"text": "str", "more": "complex64"}, [[{"text": b"one", "more": b"12345678"}]])
        about = json.loads((self.work / "unknown/index.json").read_text())
        about["shards"][0]["column_sizes"] = [8, None]
        (self.work / "unknown/index.json").write_text(json.dumps(about))
        with self.assertRaisesRegex(DatasetError, "index.json: column more has encoding complex64, whose size is not known"):
            oa.from_mds(self.work / "unknown", {"text": "text"})

    def test_mds(self):
        columns = {"photo": "png", "about": "json", "text": "str", "number": "int", "small": "int32"}
        shards = []
        for first in (0, 20):
            shards.append([])
            for index in range(first, first + 20):
                sample, file = Marked()[index], io.BytesIO()
                sample["picture"].save(file, "PNG")
                shards[-1].append({"photo": file.getvalue(), "text": text_of(index).encode(), "number": struct.pack("<q", -index), "small":
                                   struct.pack("<i", index), "about": json.dumps({"boxes": sample["boxes"].astype(int).tolist()}).encode()})
        write_mds(self.work / "mds", columns, shards)
        t = oa.transforms
        fields = {"image": "photo", "boxes": "about:boxes", "caption": "text", "number": "number", "small": "small"}
        data = oa.from_mds(self.work / "mds", fields, ragged={"boxes": 3, "caption": 40}, boxes="boxes", exact=True, keep=0.5)
        self.assertIsNotNone(data.direct(True))
        loader = oa.Loader(data, t.Compose([t.RandomVerticalFlip(1), t.Resize((60, 90)), t.PILToTensor()]), BATCH, shuffle=False, as_="numpy",
                           socket=self.socket, timeout=600)
        self.addCleanup(loader.close)
        seen = []
        for batch in loader:
            self.assertEqual((list(batch), batch["small"].dtype), (list(fields), np.int32))
            for at, index in enumerate(batch.ids):
                self.assertEqual((batch["number"][at], batch["small"][at], batch["caption"][at]), (-index, index, text_of(index)))
                for channel, box in enumerate(batch["boxes"][at]):
                    np.testing.assert_allclose(box, seen_in(batch["image"][at][channel]), atol=1.01)
            seen += batch.ids.tolist()
        self.assertEqual(seen, list(range(40)))
        for fields, why in (({"a": "nobody"}, "there are: about"), ({"a": "text:key"}, "encoding str")):
            with self.assertRaisesRegex(ArgumentError, why):
                oa.from_mds(self.work / "mds", fields)
        rows = data.dataset
        with open(self.work / "mds/shard.00001.mds", "r+b") as file:
            file.seek(8)
            file.write(b"\xff\xff\xff\x7f")
        os.utime(self.work / "mds/shard.00001.mds", ns=(rows.files[1][1][1],) * 2)
        with self.assertRaisesRegex(DatasetError, "shard.00001.mds:.*(ends before|cannot be made)"):
            rows[20]
        with open(self.work / "mds/shard.00001.mds", "ab") as file:
            file.write(b"more")
        with self.assertRaisesRegex(DatasetError, "by index.json"):
            oa.from_mds(self.work / "mds", {"a": "text"})
        with self.assertRaisesRegex(oa.errors.MissingError, "index.json is not there"):
            oa.from_mds(self.work, {"a": "text"})

    def test_mixed(self):
        mix = oa.mix([self.captions(), self.captions(order="seeded", seed=2)], [1, 1], batch_size=6, unit="samples")
        self.addCleanup(mix.close)
        for batch in mix:
            self.same(batch, batch.ids)
        with self.assertRaisesRegex(ArgumentError, "of part 0 of the mix are dicts of .*, those of part 1 are .*, text as strings"):
            oa.mix([self.captions(), self.captions(ragged={"text": "strings"})], [1, 1], batch_size=6)
        samples = [[(np.zeros((4, 4, 3), np.uint8), label, text) for text in ("a", "b")] for label in (1, np.float32(1))]
        parts = [self.made(each, oa.imagenet_eval(8), wrap={"ragged": {"2": 4}}) for each in samples]
        with self.assertRaisesRegex(ArgumentError, "of part 0 of the mix are tuples, those of part 1 are tuples without a label"):
            oa.mix(parts, [1, 1], batch_size=6)

    @HAS_TORCH
    def test_tensors(self):
        import torch
        for batch in self.captions(as_="torch"):
            boxes = batch["boxes"]
            self.assertTrue(torch.equal(boxes.lengths, torch.tensor([index % 6 for index in batch.ids])))
            self.assertTrue(torch.equal(boxes.padded(2.0, to=6)[0, -1], torch.full((4,), 2.0)))
            nested = boxes.nested()
            self.assertTrue(nested.is_nested)
            for part, index in zip(nested.unbind(), batch.ids):
                self.assertTrue(torch.equal(part, torch.from_numpy(boxes_of(index))))
            self.assertEqual(batch["text"].strings(), [text_of(index) for index in batch.ids])


if __name__ == "__main__":
    unittest.main(verbosity=2)
