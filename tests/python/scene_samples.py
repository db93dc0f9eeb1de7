# SPDX-License-Identifier: Apache-2.0
"""Large images for tests: slides as tiled TIFF with levels, which OpenSlide reads, and georeferenced rasters with labels, by rasterio."""

import struct

import numpy as np

TILE = 64
GLASS = 244
WIDTH, HEIGHT = 900, 700
TISSUE = (192, 128, 576, 512)       # left, top, right, bottom


def slide_pixels(seed=1, kind=0):
    """[H, W, 3]: glass, and tissue of some colour in a part of it."""
    random = np.random.default_rng(seed)
    pixels = np.full((HEIGHT, WIDTH, 3), GLASS, np.uint8)
    left, top, right, bottom = TISSUE
    colour = np.array([(200, 90, 160), (120, 60, 190)][kind])
    pixels[top:bottom, left:right] = colour + random.integers(-30, 31, (bottom - top, right - left, 1))
    return pixels


def write_slide(path, pixels, downs=(1, 2, 4), mpp=None):
    """An uncompressed tiled TIFF, a page for each level, which has every second or fourth pixel."""
    data, link = bytearray(b"II*\0\0\0\0\0"), 4
    for number, down in enumerate(downs):
        level = pixels[::down, ::down]
        height, width = level.shape[:2]
        rows, columns = -(-height // TILE), -(-width // TILE)
        padded = np.zeros((rows * TILE, columns * TILE, 3), np.uint8)
        padded[:height, :width] = level
        offsets = []
        for row in range(rows):
            for column in range(columns):
                offsets.append(len(data))
                data += padded[row * TILE:(row + 1) * TILE, column * TILE:(column + 1) * TILE].tobytes()

        def placed(values, kind):
            at = len(data)
            data.extend(struct.pack(f"<{len(values)}{kind}", *values))
            data.extend(b"\0" * (len(data) % 2))
            return at
        entries = [(254, 4, 1, int(number > 0)), (256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, placed([8] * 3, "H")), (259, 3, 1, 1), (262, 3, 1, 2), (277, 3, 1, 3)]
        if mpp:
            entries += [(tag, 5, 1, placed([round(1e7 / mpp / down), 1000], "I")) for tag in (282, 283)]
        entries += [(284, 3, 1, 1)]
        if mpp:
            entries += [(296, 3, 1, 3)]
        entries += [(322, 4, 1, TILE), (323, 4, 1, TILE), (324, 4, len(offsets), placed(offsets, "I")), (325, 4, len(offsets), placed([TILE * TILE * 3] * len(offsets), "I"))]
        struct.pack_into("<I", data, link, len(data))
        data += struct.pack("<H", len(entries))
        for tag, kind, count, value in entries:
            data += struct.pack("<HHI", tag, kind, count) + (struct.pack("<HH", value, 0) if kind == 3 and count == 1 else struct.pack("<I", value))
        link = len(data)
        data += struct.pack("<I", 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def write_raster(path, pixels, *, crs="EPSG:32633", left=500000.0, top=5600000.0, sides=10.0, nodata=None, overviews=False):
    """[bands, H, W] as tiled GeoTIFF."""
    import rasterio
    from rasterio.transform import from_origin
    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(path, "w", driver="GTiff", width=pixels.shape[2], height=pixels.shape[1], count=len(pixels), dtype=pixels.dtype, crs=crs, nodata=nodata,
                       transform=from_origin(left, top, sides, sides), tiled=True, blockxsize=64, blockysize=64, compress="deflate") as raster:
        raster.write(pixels)
    if overviews:
        with rasterio.open(path, "r+") as raster:
            raster.build_overviews([2, 4], rasterio.enums.Resampling.nearest)
    return path


def scene(seed, bands=4, height=200, width=260):
    """[bands, H, W] of uint16, and labels [1, H, W]: where the first band is high."""
    random = np.random.default_rng(seed)
    labels = np.zeros((1, height, width), np.uint8)
    for _ in range(6):
        top, left = random.integers(0, height - 40), random.integers(0, width - 40)
        labels[0, top:top + 40, left:left + 40] = random.integers(1, 3)
    pixels = random.integers(0, 2000, (bands, height, width))
    pixels[0] += 3000 * labels[0]
    return pixels.astype(np.uint16), labels
