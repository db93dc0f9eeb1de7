#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/pipeline/numbers: files of numbers as tifffile and NumPy write them, and a text of what is in each.

    make_numbers.py FOLDER              (needs numpy, tifffile, imagecodecs, pillow)
    make_numbers.py --resized FOLDER    (needs numpy, torch, torchvision)
    make_numbers.py --medical FOLDER    (needs numpy, pydicom, python-gdcm, nibabel; adds to numbers.tsv)

A number is (1000 channel + 37 row + 11 column) of its file's type; floats are an eighth of that. numbers.tsv has of each file its
channels, height, width and dtype. resized-FILTER-HEIGHT-WIDTH.npy are what torchvision's resize with antialias makes of f32-5.npy.
"""

import pathlib
import sys

import numpy as np

HEIGHT, WIDTH = 19, 23


def values(channels, dtype, height=HEIGHT, width=WIDTH):
    c, y, x = np.ogrid[:channels, :height, :width]
    whole = 1000 * c + 37 * y + 11 * x
    if np.dtype(dtype).kind == "f":
        return (whole / 8).astype(dtype)
    return whole.astype(np.int64).astype(dtype)     # those of 8 bits wrap around


def resized(folder):
    import torch
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.functional import resize

    numbers = torch.from_numpy(np.load(folder / "f32-5.npy"))
    for word, height, width in (("bilinear", 9, 14), ("bilinear", 40, 31), ("bicubic", 11, 50), ("nearest", 8, 31)):
        options = {} if word == "nearest" else {"antialias": True}
        made = resize(numbers, [height, width], InterpolationMode(word), **options)
        np.save(folder / f"resized-{word}-{height}-{width}.npy", made.numpy())


def nifti_more(add):
    """Of NIfTI-2, and in gzip's members, some of which are empty."""
    import gzip

    import nibabel

    def second(path, array, order="<"):
        nibabel.save(nibabel.Nifti2Image(array.T, np.eye(4), nibabel.Nifti2Header(endianness=order), dtype=array.dtype), path)

    def members(path, array):
        file = nibabel.Nifti1Image(array.T, np.eye(4), dtype=array.dtype).to_bytes()
        path.write_bytes(b"".join(gzip.compress(file[at:end], mtime=0) for at, end in ((0, 100), (100, 100), (100, 900), (900, len(file)))))

    add("i16-second.nii", 2, "i2", second)
    add("f32-second-big.nii", 3, "f4", lambda path, array: second(path, array, ">"))
    add("u16-members.nii.gz", 4, "u2", members)


def floats():
    """(name, channels, what writes it) of files of flow and disparity, and an array whose last dimension is the channels."""
    def flo(path, array):
        path.write_bytes(b"PIEH" + np.array([WIDTH, HEIGHT], "<i4").tobytes() + array.transpose(1, 2, 0).tobytes())

    def pfm(order):
        def write(path, array):
            head = b"P%s\n%d %d\n%s\n" % (b"F" if len(array) == 3 else b"f", WIDTH, HEIGHT, b"-1.0" if order == "<" else b"1.0")
            path.write_bytes(head + array.transpose(1, 2, 0)[::-1].astype(order + "f4").tobytes())
        return write

    return [("f32.flo", 2, flo), ("f32.dpt", 1, flo), ("f32.pfm", 1, pfm("<")), ("f32-3.pfm", 3, pfm("<")), ("f32-3-big.pfm", 3, pfm(">")),
            ("f32-3-last.npy", 3, lambda path, array: np.save(path, np.ascontiguousarray(array.transpose(1, 2, 0))))]


def dicom(path, array, *, syntax="1.2.840.10008.1.2.1", coded=None, colours="MONOCHROME2", stored=None, more=()):
    """array: [frames, H, W], or [H, W, 3]. syntax: of native pixels; coded: what gdcm makes of them then."""
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import UID, generate_uid

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = UID(syntax)
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", generate_uid(entropy_srcs=[path.name])
    data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128, is_implicit_VR=syntax.endswith("1.2"), is_little_endian=not syntax.endswith(".2.2"))
    data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    is_colour = array.shape[-1] == 3
    bits = 8 * array.dtype.itemsize
    data.Rows, data.Columns = array.shape[:2] if is_colour else array.shape[1:]
    data.SamplesPerPixel, data.PhotometricInterpretation = (3, "RGB") if is_colour else (1, colours)
    data.BitsAllocated, data.BitsStored, data.HighBit = bits, stored or bits, (stored or bits) - 1
    data.PixelRepresentation = int(array.dtype.kind == "i")
    if is_colour:
        data.PlanarConfiguration = 0
    elif len(array) > 1:
        data.NumberOfFrames = len(array)
    for name, value in more:
        setattr(data, name, value)
    if data.get("PlanarConfiguration"):
        array = array.transpose(2, 0, 1)
    raw = array.astype(array.dtype.newbyteorder("<>"[syntax.endswith(".2.2")])).tobytes()
    data.PixelData = raw + b"\0" * (len(raw) % 2)
    data["PixelData"].VR = "OW" if bits > 8 else "OB"
    data.save_as(path, enforce_file_format=True)
    if coded == "RLE":
        data = pydicom.dcmread(path)
        data.compress("1.2.840.10008.1.2.5", encoding_plugin="pydicom", generate_instance_uid=False)
        data.save_as(path)
    elif coded:
        import gdcm
        reader = gdcm.ImageReader()
        reader.SetFileName(str(path))
        assert reader.Read()
        change = gdcm.ImageChangeTransferSyntax()
        change.SetTransferSyntax(gdcm.TransferSyntax(getattr(gdcm.TransferSyntax, coded)))
        change.SetInput(reader.GetImage())
        assert change.Change()
        writer = gdcm.ImageWriter()
        writer.SetFileName(str(path))
        writer.SetFile(reader.GetFile())
        writer.SetImage(change.GetOutput())
        assert writer.Write()


def medical(folder):
    import nibabel

    rows = []

    def add(name, channels, dtype, write):
        write(folder / name, values(channels, dtype))
        rows.append(f"{name}\t{channels}\t{HEIGHT}\t{WIDTH}\t{np.dtype(dtype).name}\n")

    def colours(**options):
        return lambda path, array: dicom(path, array.transpose(1, 2, 0), **options)

    def grey(**options):
        return lambda path, array: dicom(path, array, **options)

    def nifti(path, array):
        volume = nibabel.Nifti1Image(array.transpose(2, 1, 0), np.eye(4), dtype=array.dtype)
        nibabel.save(volume, path)

    add("u16.dcm", 1, "u2", grey(stored=12))
    add("u16-implicit.dcm", 1, "u2", grey(syntax="1.2.840.10008.1.2"))
    add("i16-big.dcm", 1, "i2", grey(syntax="1.2.840.10008.1.2.2"))
    add("u16-deflated.dcm", 3, "u2", grey(syntax="1.2.840.10008.1.2.1.99"))
    add("u32.dcm", 1, "u4", grey())
    add("u8-rgb.dcm", 3, "u1", colours())
    add("u8-rgb-planes.dcm", 3, "u1", colours(more=[("PlanarConfiguration", 1)]))
    add("i16-rle.dcm", 1, "i2", grey(coded="RLE"))
    add("u16-frames-rle.dcm", 4, "u2", grey(coded="RLE"))
    add("u8-rgb-rle.dcm", 3, "u1", colours(coded="RLE"))
    add("u16-lossless.dcm", 1, "u2", grey(coded="JPEGLosslessProcess14_1"))
    add("i16-lossless.dcm", 1, "i2", grey(coded="JPEGLosslessProcess14_1"))
    add("u12-lossless.dcm", 1, "u2", grey(coded="JPEGLosslessProcess14", stored=12))
    add("u16-jp2.dcm", 1, "u2", grey(coded="JPEG2000Lossless"))
    add("i16-jp2.dcm", 1, "i2", grey(coded="JPEG2000Lossless"))
    add("i16.nii", 6, "i2", nifti)
    add("u8.nii.gz", 3, "u1", nifti)
    add("f64.nii.gz", 2, "f8", nifti)
    add("u16-big.nii", 1, "u2", lambda path, array: nibabel.save(nibabel.Nifti1Image(array.T, np.eye(4), nibabel.Nifti1Header(endianness=">"), dtype="u2"), path))
    nifti_more(add)
    list_ = folder / "numbers.tsv"
    kept = [row for row in list_.read_text().splitlines(True) if ".dcm" not in row and ".nii" not in row]
    list_.write_text("".join(kept + rows))
    # Not as they are stored.
    one = values(1, "u2")
    dicom(folder / "hounsfield.dcm", one, stored=12, more=[("RescaleSlope", "2"), ("RescaleIntercept", "-1024.5")])
    dicom(folder / "white-least.dcm", one, stored=12, colours="MONOCHROME1")
    dicom(folder / "jpeg-ls.dcm", one, coded="JPEGLSLossless")
    scaled = nibabel.Nifti1Image(one.T, np.eye(4))
    scaled.header.set_slope_inter(2, -1024.5)
    nibabel.save(scaled, folder / "scaled.nii.gz")


def main(folder):
    import PIL.Image
    import tifffile

    folder.mkdir(exist_ok=True)
    rows = []

    def add(name, channels, dtype, write):
        array = values(channels, dtype)
        write(folder / name, array)
        rows.append(f"{name}\t{channels}\t{HEIGHT}\t{WIDTH}\t{np.dtype(dtype).name}\n")

    def tiff(**options):
        planar = options.get("planarconfig")

        def write(path, array):
            data = array if planar == "separate" else array[0] if len(array) == 1 else array.transpose(1, 2, 0)
            tifffile.imwrite(path, data, photometric="minisblack", metadata=None, **options)
        return write

    add("u8.tif", 3, "u1", tiff(planarconfig="contig"))
    add("u16-13-tiles-deflate.tif", 13, "u2", tiff(planarconfig="contig", tile=(16, 16), compression="zlib", predictor=True))
    add("u16-13-planes-lzw.tif", 13, "u2", tiff(planarconfig="separate", compression="lzw"))
    add("u16-planes-tiles.tif", 4, "u2", tiff(planarconfig="separate", tile=(16, 16)))
    add("u16-big.tif", 2, "u2", tiff(planarconfig="contig", bigtiff=True))
    add("u16-motorola.tif", 1, "u2", tiff(byteorder=">"))
    add("u16-strips-zstd.tif", 1, "u2", tiff(rowsperstrip=4, compression="zstd"))
    add("i16.tif", 1, "i2", tiff())
    add("i8.tif", 1, "i1", tiff())
    add("u32.tif", 1, "u4", tiff())
    add("i32.tif", 1, "i4", tiff())
    add("f16.tif", 1, "f2", tiff())
    add("f32-5-deflate.tif", 5, "f4", tiff(planarconfig="contig", compression="zlib", predictor=True))
    add("f64.tif", 1, "f8", tiff())
    add("u16-pages.tif", 6, "u2", lambda path, array: tifffile.imwrite(path, array, photometric="minisblack"))

    def overviews(path, array):
        """As GDAL's: smaller copies behind it."""
        with tifffile.TiffWriter(path) as writer:
            writer.write(array[0], photometric="minisblack", metadata=None)
            writer.write(array[0, ::2, ::2], subfiletype=1, photometric="minisblack", metadata=None)
    add("u16-overview.tif", 1, "u2", overviews)
    add("u16.png", 1, "u2", lambda path, array: PIL.Image.fromarray(array[0]).save(path))
    add("u8.png", 3, "u1", lambda path, array: PIL.Image.fromarray(np.ascontiguousarray(array.transpose(1, 2, 0))).save(path))
    add("u16.pgm", 1, "u2", lambda path, array: path.write_bytes(b"P5\n%d %d\n65535\n" % (WIDTH, HEIGHT) + array.astype(">u2").tobytes()))
    add("u8.ppm", 3, "u1", lambda path, array: path.write_bytes(b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT) + array.transpose(1, 2, 0).tobytes()))
    add("u16.npy", 1, "u2", lambda path, array: np.save(path, array[0]))
    add("f32-5.npy", 5, "f4", np.save)
    for name, channels, write in floats():
        add(name, channels, "f4", write)
    (folder / "numbers.tsv").write_text("".join(rows))


if __name__ == "__main__":
    if sys.argv[1] == "--resized":
        resized(pathlib.Path(sys.argv[2]))
    elif sys.argv[1] == "--medical":
        medical(pathlib.Path(sys.argv[2]))
    else:
        main(pathlib.Path(sys.argv[1]))
