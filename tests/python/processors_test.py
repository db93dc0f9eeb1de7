# SPDX-License-Identifier: Apache-2.0
"""Image processors of transformers, translated. Without transformers what is translated is a likeness, whose
attributes are those of the real classes; its pixels are torchvision's on Pillow's pictures."""

import os
import sys
import unittest

os.environ.setdefault("USE_TF", "0")  # transformers would look for TensorFlow

try:
    import torch
    from torchvision import transforms as tv
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import InterpolationMode
except ImportError as missing:
    print(f"processors_test: skipped: {missing}")
    sys.exit(77)
try:
    import transformers
    REAL = hasattr(transformers, "ViTImageProcessorPil")
except ImportError:
    REAL = False

import oneaccess as oa
from oneaccess.errors import TransformError
from support import SAMPLES, DaemonCase

HALF = [0.5, 0.5, 0.5]


def likeness(name, own=(), bases=(), **attributes):
    """A processor of a class of transformers by that name, with methods of its own."""
    members = {"__module__": "transformers.models", **{step: lambda self: None for step in own}}
    made = type(name, bases, members)()
    vars(made).update(attributes)
    return made


def pil(name="ViTImageProcessorPil", own=(), **attributes):
    steps = ("process_image", "convert_to_rgb", "_preprocess", "resize", "center_crop", "rescale", "normalize")
    base = type(likeness("PilBackend", steps))
    given = {"do_resize": True, "size": {"height": 40, "width": 56}, "resample": 2, "do_center_crop": None,
             "crop_size": None, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
             "image_mean": HALF, "image_std": HALF, "do_pad": None, "do_convert_rgb": None}
    return likeness(name, own, (base,), **{**given, **attributes})


class ProcessorsTest(DaemonCase):
    def equals(self, expected, processor):
        """expected: of a file's picture the very tensor that the Loader gives."""
        folder, at = ImageFolder(self.data), 0
        with self.loader(oa.from_torchvision(processor), 16, shuffle=False) as loader:
            for image in (image for images, _ in loader for image in images):
                want = expected(folder[at][0])
                self.assertEqual(image.dtype, want.dtype)
                self.assertTrue(torch.equal(image, want), at)
                at += 1
        self.assertEqual(at, SAMPLES)

    def test_pixels_are_those_of_pillow(self):
        end = [tv.ToTensor(), tv.Normalize(HALF, HALF)]
        bicubic = InterpolationMode.BICUBIC
        for processor, theirs in (
                (pil(), [tv.Resize((40, 56)), *end]),
                (pil(size={"height": 52, "width": 48}, resample=3, do_center_crop=True,
                     crop_size={"height": 40, "width": 40}), [tv.Resize((52, 48), bicubic), tv.CenterCrop(40), *end]),
                (pil("ConvNextImageProcessorPil", ("resize", "_preprocess"), size={"shortest_edge": 384},
                     crop_pct=0.875), [tv.Resize((384, 384)), *end]),
                (pil(do_normalize=False, image_mean=None, image_std=None), [tv.Resize((40, 56)), tv.ToTensor()]),
                (pil(do_normalize=False, do_rescale=False), [tv.Resize((40, 56)), tv.PILToTensor()])):
            with self.subTest(processor=vars(processor)):
                self.equals(tv.Compose(theirs), processor)

    def test_what_rounds_otherwise_is_named(self):
        crop = {"do_center_crop": True, "crop_size": {"height": 224, "width": 224}}
        for processor, text in (
                (likeness("ViTImageProcessor"), 'backend="pil"'),
                (pil(own=["resize"]), r"resize\(\) is ViTImageProcessorPil's own"),
                (pil(do_pad=True), "do_pad=False"),
                (pil(size={"shortest_edge": 200}, **crop), "size of no less"),
                (pil(size={"height": 224, "width": 223}, **crop), "size of no less"),
                (pil(do_resize=False, **crop), "size of no less"),
                (pil("ConvNextImageProcessorPil", size={"height": 224, "width": 224}), "no shortest_edge"),
                (pil(size={"shortest_edge": 40, "longest_edge": 90}), "longest_edge.*otherwise"),
                (pil(do_center_crop=True, crop_size={"shortest_edge": 9}), "no height and width"),
                (pil(resample=9), "resample=9"),
                (pil(rescale_factor=1 / 127.5), "rescale_factor"),
                (pil(do_rescale=False), "without do_rescale")):
            with self.subTest(text=text), self.assertRaisesRegex(TransformError, text):
                oa.from_torchvision(processor)

    def test_crops_round_down(self):
        """What rounds alike is torchvision's CenterCrop, so that jobs with either share."""
        crop = {"height": 224, "width": 224}
        for extent, half in ((224, None), (225, None), (226, None), (227, "down"), (228, None), (229, None),
                             (222, None), (231, "down")):
            ours = oa.from_torchvision(pil(size={"height": extent, "width": 224}, do_center_crop=True, crop_size=crop))
            self.assertEqual(ours.ops[1], oa.transforms.CenterCrop((224, 224), half=half))
        ours = oa.from_torchvision(pil(size={"shortest_edge": 256}, do_center_crop=True, crop_size=crop))
        self.assertEqual(ours.ops[1], oa.transforms.CenterCrop((224, 224), half="down"))
        ours = oa.from_torchvision(pil("ConvNextImageProcessorPil", size={"shortest_edge": 224}, crop_pct=0.875))
        self.assertEqual(ours.ops[:2], (oa.transforms.Resize(256, "bilinear"),
                                        oa.transforms.CenterCrop((224, 224), half="down")))

    @unittest.skipUnless(REAL, "no transformers 5")
    def test_pixels_are_those_of_transformers(self):
        small = {"height": 40, "width": 48}
        for name, settings in (
                ("ViT", {"size": small}), ("ViT", {"size": {"height": 80, "width": 72}, "resample": 1}),
                ("DeiT", {"size": {"height": 56, "width": 52}, "crop_size": {"height": 41, "width": 48}}),
                ("DeiT", {"size": {"height": 39, "width": 40}, "crop_size": {"height": 45, "width": 46}}),
                ("Beit", {"size": small, "do_reduce_labels": True}), ("ConvNext", {"size": {"shortest_edge": 384}}),
                ("CLIP", {"size": {"shortest_edge": 41}, "crop_size": {"height": 40, "width": 40}}),
                ("Bit", {"size": {"shortest_edge": 47}, "crop_size": {"height": 40, "width": 40}}),
                ("ConvNext", {"size": {"shortest_edge": 48}, "crop_pct": 0.875}),
                ("Siglip", {"size": small, "do_normalize": False}), ("Pvt", {"size": small}),
                ("Blip", {"size": small, "do_normalize": False, "do_rescale": False})):
            processor = getattr(transformers, f"{name}ImageProcessorPil")(**settings)
            with self.subTest(name=name, settings=settings):
                self.equals(lambda picture: processor(picture, return_tensors="pt")["pixel_values"][0], processor)

    @unittest.skipUnless(REAL, "no transformers 5")
    def test_what_transformers_has_of_its_own_is_named(self):
        for name, text in (("ViTImageProcessor", 'backend="pil"'), ("PoolFormerImageProcessorPil", "PoolFormerImageProcessorPil's own"),
                           ("EfficientNetImageProcessorPil", "EfficientNetImageProcessorPil's own")):
            with self.subTest(name=name), self.assertRaisesRegex(TransformError, text):
                oa.from_torchvision(getattr(transformers, name)())


if __name__ == "__main__":
    unittest.main(verbosity=2)
