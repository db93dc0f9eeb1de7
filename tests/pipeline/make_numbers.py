#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/pipeline/numbers: files of numbers as tifffile and NumPy write them, and a text of what is in each.

    make_numbers.py FOLDER              (needs numpy, tifffile, imagecodecs, pillow)
    make_numbers.py --resized FOLDER    (needs numpy, torch, torchvision)

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
    (folder / "numbers.tsv").write_text("".join(rows))


if __name__ == "__main__":
    if sys.argv[1] == "--resized":
        resized(pathlib.Path(sys.argv[2]))
    else:
        main(pathlib.Path(sys.argv[1]))
