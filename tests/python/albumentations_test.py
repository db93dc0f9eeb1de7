# SPDX-License-Identifier: Apache-2.0
"""oa.from_albumentations(): with stand-ins that have the attributes of albumentations 2.0.8, and with the package where it is there."""

import importlib.util
import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"albumentations_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import DaemonCase

t = oa.transforms


def made(name, p=1.0, module="albumentations.transforms", **attributes):
    """An object of a class of that name and module."""
    transform = type(name, (), {"__module__": module})()
    transform.__dict__.update(p=p, **attributes)
    return transform


def compose(*transforms, **attributes):
    return made("Compose", transforms=[*transforms], processors={}, **attributes)


def resize(height, width, interpolation=1, **attributes):
    return made("Resize", height=height, width=width, interpolation=interpolation, area_for_downscale=None, **attributes)


def affine(name="Affine", **attributes):
    return made(name, **{"scale": {"x": (1.0, 1.0), "y": (1.0, 1.0)}, "translate_percent": None, "translate_px": {"x": (0, 0), "y": (0, 0)},
                         "rotate": (0.0, 0.0), "shear": {"x": (0.0, 0.0), "y": (0.0, 0.0)}, "interpolation": 1, "fit_output": False,
                         "keep_ratio": False, "balanced_scale": False, "border_mode": 0, "fill": 0.0, **attributes})


def brightness_contrast(brightness=(-0.2, 0.2), contrast=(-0.2, 0.2), p=0.5, **attributes):
    return made("RandomBrightnessContrast", p, **{"brightness_limit": brightness, "contrast_limit": contrast, "brightness_by_max": True,
                                                  "ensure_safe_range": False, **attributes})


def gamma(low=80.0, high=120.0, p=0.5):
    return made("RandomGamma", p, gamma_limit=(low, high))


class Transforms(unittest.TestCase):
    def ops(self, *transforms, **kwargs):
        return oa.from_albumentations(compose(*transforms), **kwargs)

    def test_what_comes_of_each(self):
        quarter = t.RandomRotation([90, 90], expand=True)
        for given, want in (
                (resize(32, 40), t.Resize([32, 40], "bilinear")),
                (resize(32, 40, 3), t.Resize([32, 40], "box")),
                (made("LongestMaxSize", max_size=64, max_size_hw=None, interpolation=2), t.Resize([64, 64], "bicubic", fit="contain")),
                (made("SmallestMaxSize", max_size=[64, 80], interpolation=1),
                 t.RandomChoice([t.Resize([64, 64], "bilinear", fit="cover"), t.Resize([80, 80], "bilinear", fit="cover")])),
                (made("RandomCrop", height=20, width=30, pad_if_needed=False), t.RandomCrop([20, 30])),
                (made("CenterCrop", height=20, width=30, pad_if_needed=False), t.CenterCrop([20, 30], half="down")),
                (made("RandomResizedCrop", size=(20, 30), scale=(0.1, 1), ratio=(0.75, 1.5), interpolation=1),
                 t.RandomResizedCrop([20, 30], (0.1, 1), (0.75, 1.5), "bilinear")),
                (made("RandomResizedCrop", height=20, width=30, scale=(0.1, 1), ratio=(0.75, 1.5), interpolation=3),
                 t.RandomResizedCrop([20, 30], (0.1, 1), (0.75, 1.5), "box")),
                (made("HorizontalFlip", 0.5), t.RandomHorizontalFlip(0.5)),
                (made("VerticalFlip", 0.3), t.RandomVerticalFlip(0.3)),
                (made("Transpose", 0.5), t.RandomApply([quarter, t.RandomVerticalFlip(1)], 0.5)),
                (made("D4"), t.Compose([t.RandomHorizontalFlip(0.5), t.RandomVerticalFlip(0.5), t.RandomApply([quarter], 0.5)])),
                (made("Rotate", 0.5, limit=(-20.0, 20.0), interpolation=1, border_mode=0, crop_border=False, fill=(1.0, 2.0, 3.0)),
                 t.RandomApply([t.RandomRotation([-20.0, 20.0], "bilinear", fill=[1, 2, 3])], 0.5)),
                (affine(rotate=(-5.0, 10.0), translate_percent={"x": (-0.1, 0.1), "y": (0, 0)}),
                 t.RandomAffine([-10.0, 5.0], [0.1, 0], interpolation="bilinear", fill=0)),
                (made("Rotate", limit=(-20.0, 20.0), interpolation=1, border_mode=4, crop_border=False, fill=0),
                 t.RandomRotation([-20.0, 20.0], "bilinear", fill=0, padding_mode="reflect")),
                (affine(border_mode=1), t.RandomAffine([0.0, 0.0], interpolation="bilinear", fill=0, padding_mode="edge")),
                (affine("ShiftScaleRotate", scale={"x": (0.9, 1.1), "y": (0.9, 1.1)}),
                 t.RandomAffine([0.0, 0.0], None, [0.9, 1.1], None, "bilinear", 0, scale_y=[0.9, 1.1])),
                (affine(scale={"x": (0.9, 1.1), "y": (0.9, 1.1)}, keep_ratio=True), t.RandomAffine([0.0, 0.0], None, [0.9, 1.1], None, "bilinear", 0)),
                (brightness_contrast(), t.Levels(brightness=[-0.2, 0.2], contrast=[0.8, 1.2], p=0.5)),
                (gamma(), t.Levels(gamma=[0.8, 1.2], p=0.5)),
                (made("RGBShift", r_shift_limit=(-20, 20), g_shift_limit=(-1, 0.5), b_shift_limit=(0, 0)),
                 t.Levels(red=[-20, 20], green=[-255, 127.5], blue=[0, 0], p=1)),
                (made("ToGray", 0.1, num_output_channels=3, method="weighted_average"), t.RandomGrayscale(0.1)),
                (made("ChannelShuffle", 0.5), t.RandomApply([t.RandomChannelPermutation()], 0.5)),
                (made("InvertImg", 0.2), t.RandomInvert(0.2)),
                (made("Posterize", 0.5, num_bits=(4, 4)), t.RandomPosterize(4, 0.5)),
                (made("Solarize", 0.5, threshold_range=(0.5, 0.5)), t.RandomSolarize(127.5, 0.5)),
                (made("GaussianBlur", 0.5, blur_limit=(3, 7), sigma_limit=(0.5, 3.0)),
                 t.RandomApply([t.RandomChoice([t.GaussianBlur(size, [0.5, 3.0]) for size in (3, 5, 7)], [1, 2, 2])], 0.5)),
                (made("ImageCompression", compression_type="jpeg", quality_range=(50, 90)), t.JPEG([50, 90])),
                (made("HueSaturationValue", 0.3, hue_shift_limit=(-20, 20), sat_shift_limit=(-30.0, 30.0), val_shift_limit=(5, 5)),
                 t.HueSaturationValue([-20, 20], [-30.0, 30.0], [5, 5], 0.3)),
                (made("Blur", 0.3, blur_limit=(3, 7)), t.Blur([3, 7], 0.3)),
                (made("MedianBlur", 0.3, blur_limit=(4, 4)), t.MedianBlur([5, 5], 0.3)),
                (made("MotionBlur", 0.3, blur_limit=(3, 9), angle_range=(0, 90), direction_range=(-1.0, 1.0), allow_shifted=True),
                 t.MotionBlur([3, 9], [0, 90], [-1.0, 1.0], True, 0.3)),
                (made("Sharpen", 0.3, alpha=(0.2, 0.5), lightness=(0.5, 1.0), method="kernel"), t.Sharpen([0.2, 0.5], [0.5, 1.0], 0.3)),
                (made("CoarseDropout", 0.3, num_holes_range=(1, 8), hole_height_range=(8, 16), hole_width_range=(8, 32), fill=(1.0, 2.0, 3.0),
                      fill_mask=None), t.CoarseDropout([1, 8], [8, 16], [8, 32], [1, 2, 3], 0.3)),
                (made("CoarseDropout", num_holes_range=(2, 2), hole_height_range=(0.1, 0.2), hole_width_range=(0.1, 0.2), fill="random",
                      fill_mask=None), t.CoarseDropout([2, 2], [0.1, 0.2], [0.1, 0.2], "random", 1)),
                (made("GaussNoise", 0.3, per_channel=True, mean_range=(0, 0), std_range=(0.1, 0.2)),
                 t.GaussianNoise(0, [0.1, 0.2], p=0.3)),
                (made("Normalize", mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), max_pixel_value=255.0, normalization="standard"),
                 t.Normalize([0.5] * 3, [0.25] * 3)),
                (made("Normalize", mean=(0, 0, 0), std=(1, 1, 1), max_pixel_value=51.0), t.Normalize([0.0] * 3, [0.2] * 3)),
                (made("ToFloat", max_value=None), t.Cast("float32")),
                (made("ToTensorV2", module="albumentations.pytorch.transforms", transpose_mask=False), t.Layout("CHW")),
                (made("NoOp", 0.5), []),
                (made("OneOf", 0.5, transforms=[gamma(p=0.3), made("InvertImg", 0.1)]),
                 t.RandomApply([t.RandomChoice([t.Levels(gamma=[0.8, 1.2], p=1), t.RandomInvert(1)], [0.3, 0.1])], 0.5)),
                (made("SomeOf", n=1, replace=False, transforms=[gamma(p=0.3), made("InvertImg", 0.1)]),
                 t.RandomChoice([t.Levels(gamma=[0.8, 1.2], p=0.3), t.RandomInvert(0.1)])),
                (made("OneOrOther", 0.25, transforms=[gamma(p=0.3), made("InvertImg", 0.1)]),
                 t.RandomChoice([t.Levels(gamma=[0.8, 1.2], p=1), t.RandomInvert(1)], [0.25, 0.75])),
                (made("Sequential", 0.5, transforms=[gamma(), made("InvertImg", 0.1)]),
                 t.RandomApply([t.Levels(gamma=[0.8, 1.2], p=0.5), t.RandomInvert(0.1)], 0.5))):
            with self.subTest(type(given).__name__):
                self.assertEqual(self.ops(given, antialias=True), t.Compose([want] if not isinstance(want, list) else want))

    def test_padding_of_images_that_are_no_larger(self):
        longest = made("LongestMaxSize", max_size=64, interpolation=3)
        pad = {"min_height": 64, "min_width": 70, "pad_height_divisor": None, "pad_width_divisor": None, "border_mode": 0, "fill": 7.0}
        have = t.Resize([64, 64], "box", fit="contain")
        self.assertEqual(self.ops(longest, made("PadIfNeeded", position="center", **pad)), t.Compose([have, t.CenterCrop([64, 70], fill=7)]))
        self.assertEqual(self.ops(longest, made("PadIfNeeded", position="top_left", **pad)), t.Compose([have, t.FixedSizeCrop([64, 70], 7)]))
        for before in ([], [made("LongestMaxSize", max_size=80, interpolation=3)], [made("LongestMaxSize", 0.5, max_size=64, interpolation=3)],
                       [longest, affine(), made("Transpose", 0.5)]):
            with self.assertRaisesRegex(oa.errors.TransformError, "PadIfNeeded.*put LongestMaxSize"):
                self.ops(*before, made("PadIfNeeded", position="center", **pad))

    def test_what_is_not_there_is_named(self):
        boxes = type("Processor", (), {})()
        boxes.params = made("BboxParams", format="coco")
        for given, text in (
                (resize(32, 32), r"transforms\.transforms\[0\], Resize.*antialias=True"),
                (made("CLAHE"), "CLAHE.*Equalize"),
                (made("GridShuffle"), "no op like it.*wrap"),
                (made("CoarseDropout", max_holes=8), "num_holes_range"),
                (made("MedianBlur", blur_limit=(3, 17)), "up to 15"),
                (made("MotionBlur", blur_limit=(3, 7)), "no attribute.*2.0.8"),
                (made("Sharpen", alpha=(0.2, 0.5), lightness=(0.5, 1.0), method="gaussian"), "kernel"),
                (made("CoarseDropout", num_holes_range=(1, 2), fill="random", fill_mask=3), "fill_mask"),
                (made("CoarseDropout", num_holes_range=(1, 2), fill="inpaint_ns", fill_mask=None), "inpaint_ns.*random_uniform"),
                (resize(32, 32, 7), "interpolation=7.*INTER_AREA"),
                (made("ShiftScaleRotate", shift_limit_x=(0, 0)), "ShiftScaleRotate.*no attribute.*2.0.8"),
                (made("OneOf", transforms=[made("NoOp"), made("GaussNoise", per_channel=True, mean_range=(0, 0), std_range=(0.1, 0.2))]),
                 "OneOf.*gaussian_noise cannot be done at random"),
                (made("Mine", module="mine"), "Python of your own"),
                (made("OneOf", transforms=[made("NoOp"), made("Lambda")]), r"transforms\[0\]\.transforms\[1\], Lambda"),
                (made("Rotate", limit=(-9, 9), interpolation=1, border_mode=3, fill=0), "border_mode=3.*BORDER_CONSTANT"),
                (affine(shear={"x": (0, 5), "y": (0, 0)}), "shear"),
                (affine(translate_percent={"x": (0, 0.5), "y": (0, 0)}), r"translate_percent=\(-0.5, 0.5\)"),
                (brightness_contrast(brightness_by_max=False), "brightness_by_max=True"),
                (made("Solarize", threshold_range=(0.2, 0.5)), "one number"),
                (made("SomeOf", n=2, replace=False, transforms=[made("NoOp")] * 5), "10 combinations"),
                (made("Normalize", mean=(0,), std=(1,), max_pixel_value=255.0, normalization="image"), "normalization='standard'")):
            with self.subTest(type(given).__name__), self.assertRaisesRegex(oa.errors.TransformError, text):
                self.ops(given)
        for attributes, text in (({"processors": {"bboxes": boxes}}, "BboxParams.*pascal_voc"),
                                 ({"p": 0.5}, "Sequential"),
                                 ({"additional_targets": {"more": "keypoints"}}, "additional_targets.*more")):
            pipeline = compose()
            pipeline.__dict__.update(attributes)
            with self.assertRaisesRegex(oa.errors.TransformError, text):
                oa.from_albumentations(pipeline)


class Pixels(DaemonCase):
    """The integer tables of albumentations, in NumPy, on pixels of the pictures."""

    def both(self, *transforms, size=(40, 48)):
        """(as they are, changed) of all pictures."""
        crop = made("CenterCrop", height=size[0], width=size[1], pad_if_needed=False)
        return [np.concatenate([images for images, _ in self.loader(oa.from_albumentations(compose(crop, *more)), 16, shuffle=False, copy=True, as_="numpy")])
                for more in ((), transforms)]

    def test_brightness_and_contrast(self):
        for contrast, brightness in ((0.2, 0.1), (-0.37, -0.05), (0.0, 0.3), (1.5, -0.7)):
            table = np.clip(np.arange(0, 256, dtype=np.float32) * np.float32(1 + contrast) + np.float32(brightness * 255), 0, 255).astype(np.uint8)
            before, after = self.both(brightness_contrast((brightness,) * 2, (contrast,) * 2, 1.0))
            np.testing.assert_array_equal(after, table[before])

    def test_gamma(self):
        for power in (80.0, 117.3, 250.0):
            table = ((np.arange(0, 256.0 / 255, 1.0 / 255) ** (power / 100)) * 255).astype(np.uint8)
            before, after = self.both(gamma(power, power, 1.0))
            np.testing.assert_array_equal(after, table[before], str(power))

    def test_shifts_are_cut_towards_0(self):
        before, after = self.both(made("RGBShift", r_shift_limit=(20.7, 20.7), g_shift_limit=(-30.7, -30.7), b_shift_limit=(0, 0)))
        np.testing.assert_array_equal(after, np.clip(before.astype(int) + [20, -30, 0], 0, 255))

    def test_quarter_turns(self):
        before, after = self.both(made("Transpose"))
        np.testing.assert_array_equal(after, before.transpose(0, 2, 1, 3))
        before, after = self.both(made("RandomRotate90"), size=(40, 40))
        ways = [[turns for turns in range(4) if np.array_equal(np.rot90(one, turns), other)] for one, other in zip(before, after)]
        self.assertTrue(all(ways))
        self.assertEqual({way for found in ways for way in found}, {0, 1, 2, 3})
        before, after = self.both(made("D4"), size=(40, 40))
        met = set()
        for one, other in zip(before, after):
            found = [(turns, flip) for turns in range(4) for flip in (False, True)
                     if np.array_equal(np.rot90(one.transpose(1, 0, 2) if flip else one, turns), other)]
            self.assertTrue(found)
            met.update(found)
        self.assertEqual(len(met), 8)


@unittest.skipUnless(importlib.util.find_spec("albumentations"), "no package albumentations")
class Package(Pixels):
    """The package's own objects, and its own pixels."""

    def test_they_are_as_the_stand_ins(self):
        import albumentations as A
        for theirs, stand_in in ((A.RandomBrightnessContrast(), brightness_contrast()), (A.RandomGamma(), gamma()), (A.Resize(3, 4), resize(3, 4)),
                                 (A.Affine(p=1, rotate=(-5, 10)), affine(rotate=(-5.0, 10.0)))):
            self.assertEqual(oa.from_albumentations(A.Compose([theirs]), antialias=True), oa.from_albumentations(compose(stand_in), antialias=True))

    def test_pixels(self):
        import albumentations as A
        for theirs in (A.HorizontalFlip(p=1), A.Transpose(p=1), A.InvertImg(p=1), A.Posterize(3, p=1), A.Solarize((0.4, 0.4), p=1),
                       A.RandomBrightnessContrast((0.1, 0.1), (0.3, 0.3), p=1), A.RandomGamma((130, 130), p=1),
                       A.RGBShift((9.5, 9.5), (-9.5, -9.5), (3, 3), p=1), A.CenterCrop(31, 31), A.Blur((5, 5), p=1), A.MedianBlur((7, 7), p=1), A.Sharpen((0.3, 0.3), (0.7, 0.7), p=1),
                       A.MotionBlur((7, 7), angle_range=(30, 30), direction_range=(0.5, 0.5), allow_shifted=False, p=1),
                       A.CoarseDropout((1, 1), (40, 40), (48, 48), fill=(9, 77, 200), p=1)):
            with self.subTest(str(theirs)):
                before, after = self.both(theirs)
                np.testing.assert_array_equal(after, np.stack([theirs(image=image)["image"] for image in before]))

    def test_pixels_whose_rows_fill_vectors(self):
        import albumentations as A
        for shifts in ((20, 30, -20), (-17.3, 9.5, 12.5), (171.9, -33.7, 0)):
            before, after = self.both(theirs := A.HueSaturationValue(*((shift, shift) for shift in shifts), p=1), size=(40, 64))
            np.testing.assert_array_equal(after, np.stack([theirs(image=image)["image"] for image in before]), str(shifts))


if __name__ == "__main__":
    unittest.main(verbosity=2)
