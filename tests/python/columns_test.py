# SPDX-License-Identifier: Apache-2.0
"""Data sets of dicts, texts, lists and varied lengths: columns=, pad=, collate_fn=, and Hugging Face's datasets."""

import importlib.util
import sys
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"columns_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import ArgumentError, SampleError, TransformError
from support import PoolCase

COUNT, BATCH = 60, 8
HAS_DATASETS = unittest.skipUnless(importlib.util.find_spec("datasets"), "no datasets")


def length_of(index):
    return 1 + index * 7 % 23


def text_of(index):
    return "é" * (index % 9) + str(index)


class Words:
    """Six fields, two of them of varied length."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"ids": list(range(length_of(index))), "label": index, "text": text_of(index), "score": index / 2,
                "box": [0.0, 1.5, 2.0, float(index)], "nothing": None}


class Pairs(Words):
    def __getitem__(self, index):
        return np.arange(length_of(index), dtype=np.int64), index


class Pictures(Words):
    """Of varied size, between other fields."""

    def __getitem__(self, index):
        return {"name": text_of(index), "picture": PIL.Image.new("RGB", (40 + index, 50), (index, 0, 0)), "label": index}


class Late(Words):
    """Only the one in the middle is of another shape."""

    def __getitem__(self, index):
        return np.zeros(3 if index != COUNT // 2 else 4, np.float32)


class Sounds(Words):
    """As torchaudio gives them: channels first."""

    def __getitem__(self, index):
        return np.zeros((1, 11 + index), np.float32), index


class ColumnsTest(PoolCase):
    def made(self, dataset, *pipeline, wrap=None, **kwargs):
        kwargs = {"socket": self.socket, "timeout": 600, "batch_size": BATCH, "shuffle": False, "as_": "numpy", **kwargs}
        loader = oa.Loader(oa.wrap(dataset, keep=0.5, **(wrap or {})), *pipeline, **kwargs)
        self.addCleanup(loader.close)
        return loader

    def test_chosen_columns(self):
        at = 0
        for batch in self.made(Words(), wrap={"columns": ["label", "box", "score"]}):
            self.assertEqual(list(batch), ["label", "box", "score"])
            for label, box, score in zip(*batch.values()):
                self.assertEqual((label, box.tolist(), score), (at, [0.0, 1.5, 2.0, at], at / 2))
                at += 1
        self.assertEqual(at, COUNT)

    def test_padded_columns(self):
        """Each sample is whole, the rest is the value; a batch is no longer than it has to be."""
        for side in ("right", "left"):
            pad = {"ids": oa.Pad(30, -1, side, multiple_of=4), "text": oa.Pad(40)}
            at = 0
            for batch in self.made(Words(), wrap={"columns": ["ids", "text"], "pad": pad}):
                self.assertEqual(list(batch), ["ids", "text", "ids_length", "text_length"])
                lengths = [length_of(at + i) for i in range(len(batch["ids"]))]
                self.assertEqual(batch["ids_length"].tolist(), lengths)
                self.assertEqual(batch["ids"].shape[1], -(-max(lengths) // 4) * 4)
                for ids, text, count, size in zip(*batch.values()):
                    there, rest = (ids[:count], ids[count:]) if side == "right" else (ids[-count:], ids[:-count])
                    self.assertEqual(there.tolist(), list(range(count)))
                    self.assertTrue((rest == -1).all())
                    self.assertEqual(bytes(text[:size]).decode(), text_of(at))
                    at += 1
            self.assertEqual(at, COUNT)

    def test_padded_tuples(self):
        at = 0
        for numbers, labels, lengths in self.made(Pairs(), wrap={"pad": {"0": oa.Pad(23)}}):
            self.assertEqual(numbers.shape[1], lengths.max())
            for row, label, length in zip(numbers, labels, lengths):
                self.assertEqual((row[:length].tolist(), label, length), (list(range(length)), at, length_of(at)))
                at += 1

    def test_dicts_with_a_pipeline(self):
        pipeline = oa.Compose([oa.transforms.Resize([32, 32]), oa.transforms.PILToTensor()])
        at = 0
        for batch in self.made(Pictures(), pipeline, wrap={"columns": ["picture", "label"]}):
            self.assertEqual((list(batch), batch["picture"].shape[1:]), (["picture", "label"], (3, 32, 32)))
            for picture, label in zip(batch["picture"], batch["label"]):
                self.assertEqual((picture[0].min(), picture[0].max(), picture[1:].max(), label), (at, at, 0, at))
                at += 1
        self.assertEqual(at, COUNT)

    def test_what_has_no_place_is_named_when_opened(self):
        pad = {"pad": {"ids": oa.Pad(30)}}
        for dataset, wrap, text in (
                (Words(), {}, "field nothing of the sample is a NoneType.*by where=.*columns="),
                (Words(), {"columns": ["nothing"]}, "field nothing of the sample is a NoneType.*columns="),
                (Words(), {"columns": ["ids", "lable"]}, "no field 'lable'; there are: ids, label"),
                (Words(), {"columns": ["ids"]}, "not alike, sample 30: field ids: shape 4, sample 0: shape 1.*|"
                                                "not alike, sample 30: field ids: shape 4, sample 0: 1.*pad="),
                (Sounds(), {}, "sample 30: field 0: shape 1x41, sample 0: 1x11, which differ in the second dimension.*sound\\[0\\] of"),
                (Sounds(), {"pad": {"0": oa.Pad(90)}}, "sample 30: .*which differ in the second dimension"),
                (Late(), {}, "not alike, sample 30:.*shape 4, sample 0: 3.*resized"),
                (Words(), {"columns": ["label"], **pad}, "not among columns")):
            with self.subTest(text=text), self.assertRaisesRegex(oa.Error, text):
                self.made(dataset, wrap=wrap)
        for arguments, text in (((0,), "length=0"), ((4, 0, "middle"), "right, left"), ((4, 0, "right", True), "multiple_of")):
            with self.assertRaisesRegex(ArgumentError, text):
                oa.Pad(*arguments)

    def test_who_skips_goes_on_without_them(self):
        labels = [int(row.sum()) for batch in self.made(Late(), bad="skip") for row in batch[0]]
        self.assertEqual(len(labels), COUNT - 1)

    def test_what_is_too_long_is_a_bad_sample(self):
        with self.assertRaisesRegex(SampleError, "length 2[0-9], and pad= has place for 20"):
            list(self.made(Words(), wrap={"columns": ["ids"], "pad": {"ids": oa.Pad(20)}}))

    def test_a_collate_function_of_the_job(self):
        def collate(samples):
            return {"n": len(samples), "labels": [int(sample["label"]) for sample in samples]}
        loader = self.made(Words(), wrap={"columns": ["label", "box"]}, collate_fn=collate)
        for _ in range(2):
            batches = list(loader)
            self.assertEqual([label for batch in batches for label in batch["labels"]], list(range(COUNT)))
            self.assertEqual(batches[-1]["n"], COUNT % BATCH)

    def test_a_collate_function_of_pictures(self):
        loader = self.loader(oa.imagenet_eval(32), 16, as_="numpy", collate_fn=lambda samples: [*zip(*samples)])
        images, labels = next(iter(loader))
        self.assertEqual((len(images), images[0].shape, len(labels)), (16, (3, 32, 32), 16))

    def test_a_lambda_without_a_package_says_what_helps(self):
        class Local:
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return index
        if importlib.util.find_spec("cloudpickle") or importlib.util.find_spec("dill"):
            self.assertEqual([number for batch, in self.made(Local()) for number in batch.tolist()], [0, 1, 2, 3])
        else:
            with self.assertRaisesRegex(TransformError, "pip install cloudpickle"):
                self.made(Local())

    def pictures(self):
        import datasets
        features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"]),
                                      "caption": datasets.Value("string"), "tags": datasets.Sequence(datasets.Value("int64"))})
        rows = {"image": [PIL.Image.new("RGB", (48, 40), (index, 0, 0)) for index in range(COUNT)],
                "label": [index % 2 for index in range(COUNT)], "caption": [text_of(index) for index in range(COUNT)],
                "tags": [list(range(length_of(index))) for index in range(COUNT)]}
        return datasets.Dataset.from_dict(rows, features=features)

    @HAS_DATASETS
    def test_hugging_face(self):
        batches = self.made(self.pictures(), wrap={"pad": {"caption": oa.Pad(64), "tags": oa.Pad(32)},
                                                   "columns": ["image", "caption", "tags"][1:]})
        self.assertEqual([bytes(text[:size]).decode() for batch in batches
                          for text, size in zip(batch["caption"], batch["caption_length"])],
                         [text_of(index) for index in range(COUNT)])
        pipeline = oa.Compose([oa.transforms.Resize([32, 32]), oa.transforms.PILToTensor()])
        loader = self.made(self.pictures(), pipeline, wrap={"columns": ["image", "label"]})
        self.assertEqual([int(image[0, 0, 0]) for batch in loader for image in batch["image"]], list(range(COUNT)))
        self.assertEqual(loader.dataset.column_names, ["image", "label", "caption", "tags"])

    @HAS_DATASETS
    def test_hugging_face_with_a_lambda(self):
        dataset = self.pictures().with_transform(lambda rows: {"twice": [2 * label for label in rows["label"]]})
        self.assertEqual([int(value) for batch in self.made(dataset) for value in batch["twice"]],
                         [2 * (index % 2) for index in range(COUNT)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
