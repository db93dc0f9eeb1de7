# SPDX-License-Identifier: Apache-2.0
"""Transforms that libraries publish with their models: timm's, and those of torchvision's weights."""

import collections
import importlib.util
import sys
import unittest

try:
    import torch
    from torchvision import models
    from torchvision import transforms as tv
    from torchvision.datasets import ImageFolder
except ImportError as missing:
    print(f"published_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import TransformError
from support import SAMPLES, DaemonCase

HAS_TIMM = unittest.skipUnless(importlib.util.find_spec("timm"), "no timm")


class PublishedTest(DaemonCase):
    def equals(self, theirs, ours):
        """The very tensors that their transforms make of the files."""
        folder, at = ImageFolder(self.data, theirs), 0
        for images, _ in self.loader(ours, 16, shuffle=False):
            for image in images:
                self.assertTrue(torch.equal(image, folder[at][0]), at)
                at += 1
        self.assertEqual(at, SAMPLES)

    def test_weights_of_torchvision(self):
        theirs = models.ResNet50_Weights.IMAGENET1K_V2.transforms()
        ours = oa.pipeline_for("torchvision/ResNet50_Weights.IMAGENET1K_V2")
        self.assertEqual(oa.from_torchvision(theirs), ours)
        self.equals(theirs, ours)

    def test_random_apply_of_one(self):
        known = oa.transforms
        for theirs, p, ours in ((tv.ColorJitter(0.4), 0.8, known.ColorJitter([0.6, 1.4], p=0.8)),
                                (tv.GaussianBlur(5), 0.3, known.GaussianBlur([5, 5], [0.1, 2.0], 0.3)),
                                (tv.RandomHorizontalFlip(0.5), 0.5, known.RandomHorizontalFlip(0.25)),
                                (tv.Grayscale(3), 0.2, known.RandomGrayscale(0.2))):
            self.assertEqual(oa.from_torchvision(tv.RandomApply([theirs], p)), oa.Compose([ours]))

    def test_random_apply_that_is_sure_is_its_transforms(self):
        inner = [tv.CenterCrop(40), tv.RandomApply([tv.ColorJitter(0.4), tv.Grayscale(3)], 1), tv.ToTensor()]
        self.assertEqual(oa.from_torchvision(tv.RandomApply(inner, 1.0)),
                         oa.from_torchvision(tv.Compose([tv.CenterCrop(40), tv.ColorJitter(0.4), tv.Grayscale(3),
                                                         tv.ToTensor()])))

    def test_random_apply_is_done_or_not(self):
        def pictures(p):
            pipeline = oa.Compose([oa.transforms.CenterCrop(48), oa.transforms.ColorJitter([2, 2], p=p)])
            return torch.cat([images for images, _ in self.loader(pipeline, 16, order="seeded", seed=2, copy=True)])
        never, seldom, always = (pictures(p) for p in (0, 0.3, 1))
        done = [bool(torch.equal(one, two)) for one, two in zip(seldom, always)]
        for one, two, is_done in zip(seldom, never, done):
            self.assertTrue(is_done or torch.equal(one, two))
        self.assertTrue(40 < sum(done) < 110, sum(done))  # of 240; 72 on average

    def test_groups_at_random(self):
        """Each of the ops of a group is done, or none; one of several is."""
        jitter, flip, gray = tv.ColorJitter(0.4), tv.RandomVerticalFlip(0.5), tv.Grayscale(3)
        for theirs, names in (
                (tv.RandomApply([jitter, gray], 0.3), ["random_apply", "color_jitter", "grayscale"]),
                (tv.RandomApply([tv.RandomRotation(9)]), ["random_apply", "rotate"]),
                (tv.RandomApply([tv.Compose([jitter]), tv.RandomApply([flip, gray])]),
                 ["random_apply", "color_jitter", "random_apply", "vflip", "grayscale"]),
                (tv.RandomChoice([jitter, flip]), ["random_apply", "color_jitter", "vflip"]),
                (tv.RandomOrder([gray, flip]), ["random_apply", "grayscale", "vflip", "vflip", "grayscale"])):
            ours = oa.from_torchvision(tv.Compose([tv.CenterCrop(40), theirs, tv.ToTensor()]))
            self.assertEqual([op.op for op in ours.ops], ["center_crop", *names, "cast", "layout"])
            images, _ = next(iter(self.loader(ours, 16)))
            self.assertEqual(tuple(images.shape), (16, 3, 40, 40))

    def test_detection(self):
        """torchvision's references/detection/presets.py, of attributes that v2's transforms have."""
        t, mean, bilinear = oa.transforms, (123.0, 117.0, 104.0), tv.InterpolationMode.BILINEAR

        def v2(name, **attributes):
            return type(name, (), {**attributes, "__module__": "torchvision.transforms.v2"})()
        fill = collections.defaultdict(lambda: mean, {type("Mask", (), {}): 0})
        end = [tv.PILToTensor(), v2("ConvertBoundingBoxFormat", format="XYXY"), v2("SanitizeBoundingBoxes", min_size=1.0, min_area=1.0),
               v2("ClampBoundingBoxes", clamping_mode="auto"), v2("ToPureTensor")]
        iou = {"min_scale": 0.3, "max_scale": 1.0, "min_aspect_ratio": 0.5, "max_aspect_ratio": 2.0, "options": [0.0, 0.5, 1.0], "trials": 40}
        for theirs, ours in (
                ([v2("ScaleJitter", target_size=(1024, 1024), scale_range=(0.1, 2.0), interpolation=bilinear, antialias=True)],
                 [t.ScaleJitter((1024, 1024), (0.1, 2.0), "bilinear")]),
                ([v2("RandomShortestSize", min_size=(480, 800), max_size=1333, interpolation=bilinear, antialias=True)],
                 [t.RandomShortestSize((480, 800), 1333, "bilinear")]),
                ([v2("RandomPhotometricDistort", brightness=(0.875, 1.125), contrast=(0.5, 1.5), saturation=(0.5, 1.5), hue=(-0.05, 0.05), p=0.5),
                  v2("RandomZoomOut", fill=fill, side_range=(1.0, 4.0), p=0.5), v2("RandomIoUCrop", **iou)],
                 [t.RandomPhotometricDistort((0.875, 1.125), (0.5, 1.5), (0.5, 1.5), (-0.05, 0.05), 0.5),
                  t.RandomZoomOut((123, 117, 104), (1.0, 4.0), 0.5), t.RandomIoUCrop(0.3, 1.0, 0.5, 2.0, [0.0, 0.5, 1.0], 40)]),
                ([v2("RandomZoomOut", fill={"Image": 7.0, "others": 3}, side_range=(1.0, 4.0), p=0.5)], [t.RandomZoomOut(7, (1.0, 4.0), 0.5)])):
            self.assertEqual(oa.from_torchvision(tv.Compose([*theirs, *end])), oa.Compose([*ours, t.PILToTensor()]))
        for transform, text in ((v2("SanitizeBoundingBoxes", min_size=5, min_area=1), "less than 1 pixel"),
                                (v2("ConvertBoundingBoxFormat", format="CXCYWH"), "XYXY"), (v2("ClampBoundingBoxes", clamping_mode=None), "cut off"),
                                (v2("RandomZoomOut", fill={"Mask": 1, "Video": 2}, side_range=(1, 4), p=1), "none of images"),
                                (v2("ScaleJitter", target_size=(9, 9), scale_range=(1, 1), interpolation=bilinear, antialias=False), "antialias=False")):
            with self.assertRaisesRegex(TransformError, text):
                oa.from_torchvision(transform)
        with self.assertRaisesRegex(oa.Error, "fixed_size_crop"):
            self.loader(oa.Compose([t.ScaleJitter(64)]), 8)
        with self.assertRaisesRegex(oa.Error, "chooses by the boxes"):
            self.loader(oa.Compose([t.RandomIoUCrop(), t.Resize((32, 32))]), 8)
        images, _ = next(iter(self.loader(oa.Compose([t.RandomShortestSize(range(32, 65, 8), 90), t.FixedSizeCrop(90), t.TenCrop(40)]), 8)))
        self.assertEqual(tuple(images.shape), (8, 10, 40, 40, 3))

    def test_one_of_several_is_done(self):
        """Each picture is one of the three that it can be, and each of them comes about as often as its weight says."""
        def pictures(transform, **options):
            pipeline = oa.from_torchvision(tv.Compose([tv.CenterCrop(40), transform, tv.PILToTensor()]))
            return torch.cat([images for images, _ in self.loader(pipeline, 16, copy=True, **options)])
        choices = [tv.RandomVerticalFlip(1), tv.RandomInvert(1), tv.Compose([tv.Grayscale(3), tv.RandomInvert(1)])]
        chosen = pictures(tv.RandomChoice(choices, p=[0.5, 0.25, 0.25]), order="seeded", seed=5)
        made = [pictures(each, order="seeded", seed=5) for each in choices]
        which = [[bool(torch.equal(one, two)) for two in others] for one, *others in zip(chosen, *made)]
        self.assertTrue(all(any(each) for each in which))  # a grey picture may be two of them
        counts = [sum(each) for each in zip(*which)]
        self.assertTrue(80 < counts[0] < 160 and all(30 < count < 95 for count in counts[1:]), counts)

    def test_what_is_not_there_is_named(self):
        for transform, text in ((tv.RandomApply([tv.ColorJitter(0.4), tv.Lambda(abs)]),
                                 r"transforms\[1\], Lambda, cannot.*function of Python"),
                                (tv.RandomApply([tv.CenterCrop(9), tv.ToTensor()]), "cast cannot be done at random"),
                                (tv.RandomOrder([tv.Grayscale(3)] * 4), "RandomChoice")):
            with self.assertRaisesRegex(TransformError, text):
                oa.from_torchvision(transform)
        for name, text in (("resnet50", "names no library"), ("torchvision/nothing", "no weights"),
                           ("torchvision/ResNet50_Weights.DEFAULT", "trained")):
            with self.assertRaisesRegex(TransformError, text):
                oa.pipeline_for(name, train="trained" in text)

    @HAS_TIMM
    def test_timm_evaluates_alike(self):
        from timm.data import create_transform
        for size, crop_mode, interpolation in ((40, "center", "bicubic"), (40, "squash", "bilinear"),
                                               (40, "border", "bicubic"), (48, "center", "bilinear")):
            theirs = create_transform((3, 40, size), interpolation=interpolation, crop_mode=crop_mode, crop_pct=0.9)
            self.equals(theirs, oa.from_torchvision(theirs))

    @HAS_TIMM
    def test_timm_trains(self):
        from timm.data import create_transform
        theirs = create_transform((3, 40, 40), is_training=True, interpolation="bicubic", color_jitter_prob=0.8,
                                  gaussian_blur_prob=0.3, grayscale_prob=0.2, re_prob=0.25, re_mode="pixel")
        ours = oa.from_torchvision(theirs)
        self.assertEqual([op.op for op in ours.ops],
                         ["random_resized_crop", "hflip", "color_jitter", "random_grayscale", "gaussian_blur",
                          "normalize", "cast", "layout", "random_erasing"])
        images, _ = next(iter(self.loader(ours, 16)))
        self.assertEqual(tuple(images.shape), (16, 3, 40, 40))

    @HAS_TIMM
    def test_timm_mixes(self):
        from timm.data import create_transform
        for name, parts in (("augmix-m5-w4-d2", {"width": 4, "depth": 2, "magnitude": 5.0, "uniform": True, "alpha": 1.0}),
                            ("augmix-mstd0.5-a0.3", {"width": 3, "depth": -1, "magnitude_std": 0.5, "uniform": False, "alpha": 0.3})):
            ours = oa.from_torchvision(create_transform((3, 40, 40), is_training=True, auto_augment=name, interpolation="bicubic"))
            made = next(op for op in ours.ops if op.op == "timm_aug_mix")
            self.assertEqual({part: made.parameters[part] for part in parts}, parts)
            self.assertEqual((made.parameters["translate"], made.parameters["fill"]), (0.3, [124, 116, 104]))
            next(iter(self.loader(ours, 16)))

    @HAS_TIMM
    def test_timm_augments(self):
        from timm.data import create_transform
        known = oa.transforms
        for config, interpolation, op in (
                ("rand-m9-mstd0.5-inc1", "random", known.TimmRandAugment(
                    2, 0.5, 9.0, 0.5, False, 10.0, True, "random", [124, 116, 104], 0.45)),
                ("rand-m7-n3-p0.7-mstd101-mmax15", "bicubic", known.TimmRandAugment(
                    3, 0.7, 7.0, None, True, 15.0, False, "bicubic", [124, 116, 104], 0.45))):
            ours = oa.from_torchvision(create_transform((3, 40, 40), is_training=True, auto_augment=config,
                                                        interpolation=interpolation))
            self.assertEqual(ours.ops[2], op)
            crop = {"interpolation": "bilinear", "or_interpolation": "bicubic"} if interpolation == "random" else {
                "interpolation": "bicubic"}
            self.assertEqual({name: ours.ops[0].parameters.get(name) for name in ("interpolation", "or_interpolation")},
                             {"or_interpolation": None, **crop})
            images, _ = next(iter(self.loader(ours, 16)))
            self.assertEqual(tuple(images.shape), (16, 3, 40, 40))

    @HAS_TIMM
    def test_timm_shares_with_who_writes_it_down(self):
        """Means are numbers as people write them, not as float32 has them."""
        ours = oa.pipeline_for("timm/resnet50.a1_in1k", train=True, size=160).json
        self.assertIn("[0.485,0.456,0.406]", ours)

    @HAS_TIMM
    def test_what_timm_has_of_its_own_is_named(self):
        from timm.data import create_transform
        for options, text in (({"auto_augment": "rand-m9-tweights"}, "RandAugment.*other changes"),
                              ({"auto_augment": "rand-n6"}, "n5 or less"),
                              ({"auto_augment": "augmix-m3-b1"}, "AugMixAugment.*b1"),
                              ({"auto_augment": "original"}, "AutoAugment.*rand-m9"),
                              ({"train_crop_mode": "rkrc"}, "ResizeKeepRatio.*rrc"),
                              ({"interpolation": "bicubic", "re_prob": 1, "re_count": 3}, "re_count=1"),
                              ({"interpolation": "bicubic", "re_prob": 1, "re_mode": "rand"}, "re_mode")):
            with self.assertRaisesRegex(TransformError, text):
                oa.from_torchvision(create_transform((3, 40, 40), is_training=True, **options))
        with self.assertRaisesRegex(TransformError, "resnet50"):
            oa.pipeline_for("timm/resnet5")


if __name__ == "__main__":
    unittest.main(verbosity=2)
