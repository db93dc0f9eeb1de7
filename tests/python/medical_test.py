# SPDX-License-Identifier: Apache-2.0
"""DICOM and NIfTI files by Bands(): in folders, archives, shards, lists, beside masks and wrapped; JPEG in DICOM against Pillow. What files
of each kind give is tests/pipeline/bands_test.c's."""

import gzip
import io
import struct
import sys
import tarfile
import unittest
import zipfile

try:
    import numpy as np
    import PIL.Image
except ImportError as missing:
    print(f"medical_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import transforms as t
from oneaccess.errors import SampleError
from support import PoolCase

COUNT, HEIGHT, WIDTH = 12, 30, 26


def numbers_of(index):
    row, column = np.ogrid[:HEIGHT, :WIDTH]
    return ((row * 7 + column * 13 + index * 5) % 200).astype(np.uint16)


def dicom(array, *, colours=b"MONOCHROME2", frame=None, syntax=b"1.2.840.10008.1.2.1", intercept=0):
    """Explicit VR, little-endian. array: [H, W] or [H, W, 3]; frame: its JPEG."""
    def element(group, number, vr, value):
        value += (b" " if vr in (b"DS", b"CS") else b"\0") * (len(value) % 2)
        if vr in (b"OB", b"OW"):
            return struct.pack("<HH2sHI", group, number, vr, 0, 0xffffffff if frame else len(value)) + value
        return struct.pack("<HH2sH", group, number, vr, len(value)) + value

    bits = 8 * array.itemsize
    pixels = array.tobytes()
    if frame:
        frame += b"\0" * (len(frame) % 2)
        pixels = struct.pack("<HHI", 0xfffe, 0xe000, 0) + struct.pack("<HHI", 0xfffe, 0xe000, len(frame)) + frame + struct.pack("<HHI", 0xfffe, 0xe0dd, 0)
    meta = element(2, 0x10, b"UI", syntax)
    shorts = {0x02: array.ndim == 3 and 3 or 1, 0x10: array.shape[0], 0x11: array.shape[1], 0x100: bits, 0x101: bits, 0x102: bits - 1,
              0x103: array.dtype.kind == "i"}
    texts = {0x04: (b"CS", colours), 0x1052: (b"DS", b"%d" % intercept), 0x1053: (b"DS", b"1")}
    body = {**{number: element(0x28, number, b"US", struct.pack("<H", value)) for number, value in shorts.items()},
            **{number: element(0x28, number, *value) for number, value in texts.items()}}
    return b"\0" * 128 + b"DICM" + meta + b"".join(body[number] for number in sorted(body)) + element(0x7fe0, 0x10, b"OW" if bits > 8 else b"OB", pixels)


def nifti(array):
    """array: [slices, H, W] of int16."""
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *array.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<2h", head, 70, 4, 16)
    struct.pack_into("<3f", head, 108, 352, 0, 0)
    head[344:348] = b"n+1\0"
    return bytes(head) + array.astype("<i2").tobytes()


def png(array):
    file = io.BytesIO()
    PIL.Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


class Scans:
    """A wrapped data set: bytes of files."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return {"image": dicom(numbers_of(index)), "label": index, "mask": png(numbers_of(index).astype(np.uint8))}


WHOLE = t.CenterCrop((HEIGHT, WIDTH))


class MedicalTest(PoolCase):
    settings = {"memory": "1G"}
    loader = None

    def made(self, dataset, ops, **options):
        if self.loader is not None:
            self.loader.close()
        self.loader = self.open(dataset, oa.Compose(ops), **{"batch_size": 5, "as_": "numpy", "shuffle": False, "epochs": 1, **options})
        return self.loader

    def check(self, loader, order):
        seen, labels = [], []
        for batch in loader:
            image, label = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
            for number, one, its in zip(batch.ids, image, label):
                np.testing.assert_array_equal(one[0], numbers_of(order[number]))
                seen.append(order[number])
                labels.append(int(its))
        self.assertEqual(sorted(seen), list(range(COUNT)))
        return labels

    def test_folders_archives_shards_and_lists(self):
        root, order = self.work / "scans", [*range(0, COUNT, 2), *range(1, COUNT, 2)]
        for index in range(COUNT):
            folder = root / ("ill", "well")[index % 2]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{index:02}.{('dcm', 'DICOM', 'dicom')[index % 3]}").write_bytes(dicom(numbers_of(index)))
        ops = [t.Bands(1), WHOLE]
        self.assertEqual(self.check(self.made(root, ops), order), [index % 2 for index in order])
        with zipfile.ZipFile(self.work / "scans.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(root.glob("*/*")):
                archive.write(path, path.relative_to(root))
        self.assertEqual(self.check(self.made(self.work / "scans.zip", ops), order), [index % 2 for index in order])
        with tarfile.open(self.work / "scans.tar", "w") as archive:
            for index in range(COUNT):
                for suffix, data in (("dcm", dicom(numbers_of(index))), ("cls", b"%d" % (index + 1))):
                    member = tarfile.TarInfo(f"{index:04}.{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        self.assertEqual(self.check(self.made(self.work / "scans.tar", ops), range(COUNT)), list(range(1, COUNT + 1)))
        for index in range(COUNT):
            (self.work / f"{index:03}").write_bytes(dicom(numbers_of(index)))      # without a suffix, as PACS name them
        (self.work / "scans.csv").write_text("path,label\n" + "".join(f"{index:03},{index % 3}\n" for index in range(COUNT)))
        self.assertEqual(self.check(self.made(self.work / "scans.csv", ops), range(COUNT)), [index % 3 for index in range(COUNT)])

    def test_volumes(self):
        """Slices of NIfTI are channels; some of them are taken; .nii.gz lies in folders, archives and shards."""
        (self.work / "volumes").mkdir()
        files = {f"{index:02}.{'nii.gz' if index % 2 else 'nii'}": nifti(np.stack([numbers_of(index), numbers_of(index + 1), numbers_of(index)])) for index in range(COUNT)}
        with tarfile.open(self.work / "volumes.tar", "w") as tar, zipfile.ZipFile(self.work / "volumes.zip", "w") as archive:
            for name, data in files.items():
                data = gzip.compress(data) if name.endswith(".gz") else data
                (self.work / "volumes" / name).write_bytes(data)
                archive.write(self.work / "volumes" / name, name)
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        for place in "volumes", "volumes.tar", "volumes.zip":
            self.check(self.made(self.work / place, [t.Bands(bands=(2, 1)), WHOLE]), range(COUNT))
        for batch in self.made(self.work / "volumes", [t.Bands(3), WHOLE]):
            for number, one in zip(batch.ids, batch[0]):
                np.testing.assert_array_equal(one[1], numbers_of(number + 1))
        (self.work / "masks").mkdir()
        for index in range(COUNT):
            (self.work / "masks" / f"{index:02}.png").write_bytes(png(numbers_of(index).astype(np.uint8)))
        data = oa.from_folders({"image": self.work / "volumes", "mask": self.work / "masks"}, masks="mask")
        for batch in self.made(data, [t.Bands(3), t.RandomCrop(20), t.RandomHorizontalFlip()]):
            np.testing.assert_array_equal(batch["image"][:, 0], batch["mask"])

    def test_masks_beside(self):
        for folder in "images", "labels":
            (self.work / folder).mkdir()
        for index in range(COUNT):
            (self.work / "images" / f"{index:02}.dcm").write_bytes(dicom(numbers_of(index)))
            (self.work / "labels" / f"{index:02}.png").write_bytes(png(numbers_of(index).astype(np.uint8)))
        data = oa.from_folders({"image": self.work / "images", "mask": self.work / "labels"}, masks="mask")
        for dataset in data, oa.wrap(Scans(), keep=3, masks="mask"):
            for batch in self.made(dataset, [t.Bands(1), t.RandomCrop(20), t.RandomVerticalFlip()]):
                np.testing.assert_array_equal(batch["image"][:, 0], batch["mask"])

    def test_a_window(self):
        """Of Hounsfield units, as 0 to 1: documented so."""
        files = [dicom((20 * numbers_of(index)).astype(np.int16), intercept=-1024) for index in range(COUNT)]
        loader = self.made(oa.wrap([(file, 0) for file in files]), [t.Bands(1, clamp=(-1000, 400)), WHOLE, t.Normalize(-1000, 1400)])
        for batch in loader:
            for number, one in zip(batch.ids, batch[0]):
                units = np.clip(20 * numbers_of(number).astype(np.float32) - 1024, -1000, 400)
                np.testing.assert_array_equal(one[0], (units + 1000) / np.float32(1400))

    def test_jpeg_is_pillows(self):
        random = np.random.default_rng(1)
        grey = [np.kron(random.integers(0, 256, (4, 4)), np.ones((8, 8))).astype(np.uint8) for _ in range(4)]
        colours = [np.kron(random.integers(0, 256, (4, 4, 3)), np.ones((8, 8, 1))).astype(np.uint8) for _ in range(4)]
        for arrays, kind in ((grey, b"MONOCHROME2"), (colours, b"YBR_FULL_422")):
            files, wanted = [], []
            for array in arrays:
                file = io.BytesIO()
                PIL.Image.fromarray(array).save(file, "JPEG", quality=80)
                files.append((dicom(array, colours=kind, frame=file.getvalue(), syntax=b"1.2.840.10008.1.2.4.50"), 0))
                decoded = np.asarray(PIL.Image.open(file))
                wanted.append(decoded[None] if decoded.ndim == 2 else decoded.transpose(2, 0, 1))
            for batch in self.made(oa.wrap(files), [t.Bands(len(wanted[0])), t.CenterCrop(32)]):
                for number, one in zip(batch.ids, batch[0]):
                    np.testing.assert_array_equal(one, wanted[number])

    def test_without_bands(self):
        """The error says what to take."""
        for file, wanted in ((dicom(numbers_of(0)), r"DICOM: no picture; t\.Bands\(1\)"), (nifti(numbers_of(0)[None]), r"NIfTI: no picture; t\.Bands\(\)")):
            with self.assertRaisesRegex(SampleError, wanted):
                next(iter(self.made(oa.wrap([(file, 0)] * 3), [t.CenterCrop(8), t.PILToTensor()])))


if __name__ == "__main__":
    unittest.main()
