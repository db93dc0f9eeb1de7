# SPDX-License-Identifier: Apache-2.0
"""The Loader in a PyTorch program, and torchvision's pipelines translated. Needs both."""

import importlib.util
import subprocess
import sys
import unittest
import warnings

try:
    import torch
    import torch.utils.data
    import torchvision.transforms as tv
    v2 = importlib.import_module("torchvision.transforms.v2") if importlib.util.find_spec("torchvision.transforms.v2") else None
except ImportError as missing:
    print(f"torch_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import SAMPLES, DaemonCase

warnings.simplefilter("error")


class Inside(torch.utils.data.Dataset):
    """One that makes a Loader where it must not."""

    def __init__(self, data, socket):
        self.data, self.socket = data, socket

    def __len__(self):
        return 1

    def __getitem__(self, index):
        try:
            oa.Loader(self.data, oa.imagenet_train(32), 8, socket=self.socket)
        except oa.errors.ForkedError as refused:
            return str(refused)
        return "was let"


class TorchTest(DaemonCase):
    def test_tensors_are_views(self):
        loader = self.loader()
        for images, labels in loader:
            self.assertEqual((images.shape, images.dtype), ((16, 3, 32, 32), torch.float32))
            self.assertEqual((labels.shape, labels.dtype), ((16,), torch.int64))
        expected = images.clone()
        loader.close()
        self.assertTrue(torch.equal(images, expected))

    def test_dtypes(self):
        for name in ("uint8", "float16", "bfloat16", "float32"):
            dtype = getattr(torch, name)
            images, _ = next(iter(self.loader(oa.imagenet_train(32, dtype=dtype), 4)))
            self.assertEqual(images.dtype, dtype)

    def test_a_model_learns(self):
        torch.manual_seed(1)
        loader = self.loader(oa.imagenet_eval(32), 48)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        losses = []
        for _ in range(6):
            total = 0.0
            for images, labels in loader:
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach())
            losses.append(total)
        self.assertLess(losses[-1], losses[0])

    def test_copies_are_writable(self):
        images, _ = next(iter(self.loader(copy=True)))
        images.mul_(0)
        self.assertEqual(float(images.abs().sum()), 0)

    def test_a_write_is_the_programs_own(self):
        program = (
            "import torch, oneaccess as oa\n"
            f"loader = oa.Loader({self.data!r}, oa.imagenet_train(32), 16, socket={self.socket!r})\n"
            "images, labels = next(iter(loader))\n"
            "labels.mul_(2)\n"
            "print('labels', flush=True)\n"
            "images.mul_(2)\n"
            "print('images')\n")
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             timeout=600, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "labels\nimages\n"), run.stderr)

    def test_states_go_through_a_checkpoint(self):
        loader = self.loader()
        next(iter(loader))
        path = self.work / "checkpoint.pt"
        torch.save(loader.state_dict(), path)
        rest = sum(len(labels) for _, labels in self.loader(state=torch.load(path)))
        self.assertEqual(rest, SAMPLES - 16)

    def test_workers_of_a_dataloader_are_refused(self):
        inside = torch.utils.data.DataLoader(Inside(self.data, self.socket), num_workers=1)
        self.assertIn("needs no workers", next(iter(inside))[0])
        with self.assertRaisesRegex(oa.errors.TransformError, "no Dataset"):
            self.loader()[0]

    def test_pipelines_are_translated(self):
        """What comes is what the same ops of our own give: bit for bit, in a seeded order."""
        mean, std = oa.transforms.IMAGENET_MEAN, oa.transforms.IMAGENET_STD
        theirs = tv.Compose([tv.RandomResizedCrop(32), tv.RandomHorizontalFlip(), tv.ToTensor(),
                             tv.Normalize(mean, std)])
        got = self.loader(oa.from_torchvision(theirs), 16, order="seeded", seed=1, copy=True)
        want = self.loader(oa.imagenet_train(32), 16, order="seeded", seed=1, copy=True)
        for (images, labels), (want_images, want_labels) in zip(got, want, strict=True):
            self.assertTrue(torch.equal(images, want_images))
            self.assertTrue(torch.equal(labels, want_labels))

    def test_evaluation_is_torchvisions(self):
        """Deterministic pipelines: the very tensors that torchvision makes of the files."""
        from torchvision.datasets import ImageFolder
        theirs = tv.Compose([tv.CenterCrop(48), tv.ToTensor(),
                             tv.Normalize(oa.transforms.IMAGENET_MEAN, oa.transforms.IMAGENET_STD)])
        folder = ImageFolder(self.data, theirs)
        at = 0
        for images, labels in self.loader(oa.from_torchvision(theirs), 16, shuffle=False):
            for image, label in zip(images, labels):
                want, want_label = folder[at]
                self.assertTrue(torch.equal(image, want), at)
                self.assertEqual(int(label), want_label)
                at += 1
        self.assertEqual(at, SAMPLES)

    def test_all_that_is_known_is_accepted(self):
        newer = [v2.RandomChannelPermutation(), v2.ScaleJitter((40, 40)), v2.RandomShortestSize([20, 30], 50), v2.RandomResize(20, 40),
                 v2.RandomZoomOut({"others": (123.0, 117.0, 104.0)}, p=1), v2.RandomPhotometricDistort(), v2.SanitizeBoundingBoxes(),
                 v2.ClampBoundingBoxes()] if v2 else []
        newer += [getattr(v2, name)(*given) for name, given in (("JPEG", ((10, 90),)), ("GaussianNoise", (0.1, 0.2, False))) if hasattr(v2, name)]
        for transform in (
                tv.Resize(32), tv.Resize((32, 40)), tv.CenterCrop((20, 30)), tv.RandomCrop(32, padding=4),
                tv.RandomCrop(80, pad_if_needed=True, fill=(1, 2, 3)), tv.Pad(3, padding_mode="edge"),
                tv.RandomVerticalFlip(0.3), tv.RandomRotation(20), tv.RandomAffine(10, (0.1, 0.1)),
                tv.RandomPerspective(0.3, fill=(1, 2, 3)),
                tv.ColorJitter(0.4, 0.4, 0.4, 0.1), tv.Grayscale(3), tv.RandomGrayscale(0.2),
                tv.GaussianBlur(5), tv.RandomAutocontrast(), tv.RandomEqualize(), tv.RandomInvert(),
                tv.RandomPosterize(4), tv.RandomSolarize(128), tv.RandomAdjustSharpness(2),
                tv.RandAugment(), tv.TrivialAugmentWide(), tv.AutoAugment(), tv.AugMix(), tv.ElasticTransform(50.0, 1.0, fill=7),
                tv.AutoAugment(tv.AutoAugmentPolicy.CIFAR10), tv.RandomOrder([tv.Pad(1), tv.Grayscale(3), tv.Resize(40)]), *newer):
            theirs = tv.Compose([transform, tv.Resize((32, 32)), tv.ToTensor(), tv.RandomErasing()])
            with self.subTest(transform=str(transform)):
                images, _ = next(iter(self.loader(oa.from_torchvision(theirs), 8)))
                self.assertEqual(tuple(images.shape[2:]), (32, 32))

    def test_what_is_not_there_is_named(self):
        for transform, text in ((tv.Lambda(abs), r"transforms\[1\], Lambda.*function of Python"),
                                (abs, "Python of your own"),
                                (type("MixUp", (), {"__module__": "torchvision.transforms.v2"})(), r"MixUp.*on batches.*transforms\.MixUp"),
                                (tv.RandomErasing(inplace=True), "inplace")):
            with self.assertRaisesRegex(oa.errors.TransformError, text):
                oa.from_torchvision(tv.Compose([tv.Resize(32), transform]))
        with self.assertRaisesRegex(oa.errors.TransformError, "from_torchvision"):
            self.loader(tv.Compose([tv.ToTensor()]), 8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
