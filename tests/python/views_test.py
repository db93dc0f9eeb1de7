# SPDX-License-Identifier: Apache-2.0
"""Several views of each picture: oa.views()."""

import json
import sys
import unittest

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"views_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import _core
from oneaccess.errors import TransformError
from support import SAMPLES, PoolCase

t = oa.transforms
LARGE = t.Compose([t.RandomResizedCrop(32), t.RandomHorizontalFlip(), t.ColorJitter(0.4), t.PILToTensor()])
SMALL = t.Compose([t.RandomResizedCrop((16, 20), scale=(0.05, 0.3)), t.ColorJitter(0.6), t.ToTensor()])
PLAIN, FAST = t.Op("decode"), t.Op("decode", fast=True)
SEEDED = {"as_": "numpy", "order": "seeded", "seed": 3}


class Masked:
    def __len__(self):
        return 16

    def __getitem__(self, index):
        labels = (np.arange(40)[:, None] * 5 + np.arange(50) * 3 + index).astype(np.uint8)
        return PIL.Image.fromarray(labels).convert("RGB"), index, labels


class Named(Masked):
    def __getitem__(self, index):
        image, label, labels = super().__getitem__(index)
        return {"image": image, "label": label, "image2": labels}


class ViewsTest(PoolCase):
    def made(self):
        """Of a loader of one epoch all are made when its last batch has come; of others the next epoch goes on."""
        return json.loads(_core.Client(self.socket).status())["node"]["samples_preprocessed"]

    def test_each_is_its_own_and_decoded_once(self):
        alone = {}
        loader = self.loader(LARGE, 16, epochs=1, **SEEDED)
        for batch in loader:
            alone.update(zip(batch.ids.tolist(), np.array(batch[0])))
        loader.close()
        before = self.made()
        loader = self.loader(oa.views(LARGE, LARGE, local=(SMALL, 3)), 16, epochs=1, **SEEDED)
        seen, alike = [], []
        for batch in loader:
            self.assertEqual(list(batch), ["image", "label", "image2", "local1", "local2", "local3"])
            self.assertEqual((batch["image2"].shape[1:], batch["local3"].shape[1:], batch["local3"].dtype), ((3, 32, 32), (3, 16, 20), np.float32))
            for at, index in enumerate(batch.ids.tolist()):
                np.testing.assert_array_equal(batch["image"][at], alone[index])
                alike += (batch["image"][at] == batch["image2"][at]).all(), (batch["local1"][at] == batch["local2"][at]).all()
                seen.append(index)
        self.assertEqual(sorted(seen), list(range(SAMPLES)))
        self.assertLess(np.mean(alike), 0.1)        # pictures of one colour, jittered to another one
        self.assertEqual(self.made() - before, SAMPLES)

    def test_beside_a_mask(self):
        """The mask follows the first picture; of tuples views stand at the end."""
        nearest = t.Compose([t.RandomResizedCrop(24, interpolation="nearest"), t.PILToTensor()])
        data = oa.wrap(Masked(), masks={"2": oa.Mask(nearest="pillow")}, keep=0.5)
        loader = oa.Loader(data, oa.views(nearest, again=nearest), 8, socket=self.socket, timeout=600, epochs=1, **SEEDED)
        self.addCleanup(loader.close)
        for image, label, mask, again in loader:
            np.testing.assert_array_equal(image[:, 0], mask)
            self.assertEqual((again.shape[1:], len(label)), ((3, 24, 24), 8))
            self.assertFalse((again == image).all())

    def test_wrong_ones(self):
        for views, why in ((lambda: oa.views(LARGE, [t.Resize(3)]), "a view is a Pipeline"),
                           (lambda: oa.views(LARGE, t.Compose([t.CenterCrop(9), t.OneHot(3)])), "put it into the first pipeline"),
                           (lambda: oa.views(LARGE, fast=oa.Compose([FAST, *SMALL.ops])), r"view fast has decode\(fast=True\)"),
                           (lambda: oa.views(oa.Compose([FAST, *LARGE.ops]), oa.Compose([PLAIN, *SMALL.ops])), r"view image2 has decode\(\)")):
            with self.assertRaisesRegex(TransformError, why):
                views()
        self.assertEqual(oa.views(LARGE, SMALL), oa.views(LARGE, oa.Compose([PLAIN, *SMALL.ops])))
        fast = oa.Compose([FAST, *LARGE.ops])
        self.assertEqual(oa.views(fast, fast), oa.views(fast, LARGE))
        with self.assertRaisesRegex(oa.Error, "another field has that name"):
            self.loader(oa.views(LARGE, label=SMALL), 16)

    def test_a_name_that_samples_have(self):
        """A batch has room for one of them."""
        data = oa.wrap(Named(), keep=0.5)
        with self.assertRaisesRegex(TransformError, "view image2 has the name of a field"):
            oa.Loader(data, oa.views(LARGE, LARGE), 8, socket=self.socket, timeout=600, epochs=1, **SEEDED)


if __name__ == "__main__":
    unittest.main(verbosity=2)
