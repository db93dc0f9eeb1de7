# SPDX-License-Identifier: Apache-2.0
"""Rasters of remote sensing, GeoTIFF and others that GDAL reads: windows of their bands, and of a raster of labels at the same place, by
rasterio (scenes.py)."""

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import urls
from ..errors import ArgumentError, DatasetError, needs
from ..masks import Mask
from ..sources.folders import found_at, shown
from ..sources.tables import files_of, size_of, stamp_of, unchanged
from .scenes import MOST_LOOK, Cut, Reader, Scene, Unreadable, Windows, rows_of, share_of, whole

_SUFFIXES = (".tif", ".tiff", ".jp2", ".img", ".vrt")
_CACHE = 64 << 20           # decoded blocks, of a process
_NEAR = 1e-3                # of a pixel
_MOST_LABEL = 65535


class _Raster:
    """An open one, with its labels."""

    def __init__(self, reader, path):
        self._reader = reader
        with reader.bounded(), contextlib.ExitStack() as ends:
            self.image = ends.enter_context(reader.opened(path))
            self.mask = self._labels(reader.masks[path], ends) if path in reader.masks else None
            self.close = ends.pop_all().close

    def _labels(self, mask, ends):
        """The labels' raster, as it is where its pixels are the image's, else warped to them."""
        unchanged(mask, self._reader.stamps[mask])
        labels = ends.enter_context(self._reader.opened(mask))
        image = self.image
        if labels.count != 1:
            raise Unreadable(f"{mask} has {labels.count} bands, and a raster of labels has one")
        if (labels.width, labels.height) == (image.width, image.height) and (
                not (image.crs and labels.crs) or image.crs == labels.crs and _are_near(image.transform, labels.transform, image.width, image.height)):
            return labels
        if not (image.crs and labels.crs):
            raise Unreadable(f"{mask} has {labels.width} x {labels.height} pixels, the image {image.width} x {image.height}, and not both say where on earth they lie")
        from rasterio.enums import Resampling
        from rasterio.vrt import WarpedVRT
        return ends.enter_context(WarpedVRT(labels, crs=image.crs, transform=image.transform, width=image.width, height=image.height,
                                            resampling=Resampling.nearest, add_alpha=labels.nodata is None))

    def read(self, opened, bands, x, y, side):
        """[bands, side, side], or less where the raster ends."""
        from rasterio.windows import Window
        width, height = min(side, opened.width - x), min(side, opened.height - y)
        if width <= 0 or height <= 0:
            raise Unreadable(f"it has {opened.width} x {opened.height} pixels")
        with self._reader.bounded():
            return opened.read(bands, window=Window(x, y, width, height))


def _filled(pixels, side, fill):
    """[bands, side, side], with `fill` beyond the raster, or 0 where its type has no such number."""
    import numpy as np
    if pixels.shape[1:] == (side, side):
        return pixels
    with np.errstate(invalid="ignore"):
        number = np.float64(fill).astype(pixels.dtype)
    made = np.full((len(pixels), side, side), number if number == fill or number != number else 0, pixels.dtype)
    made[:, :pixels.shape[1], :pixels.shape[2]] = pixels
    return made


def _are_near(one, other, width, height):
    """Do they put the corners at the same places?"""
    def corner(transform, x, y):
        a, b, c, d, e, f = transform[:6]
        return a * x + b * y + c, d * x + e * y + f
    least = _NEAR * min(math.hypot(one[0], one[3]), math.hypot(one[1], one[4]))
    return all(abs(have - want) < least for place in ((0, 0), (width, 0), (0, height)) for have, want in zip(corner(one, *place), corner(other, *place)))


class RasterioReader(Reader):
    noun = "raster"

    def __init__(self, bands, nodata, masks, fill, cache):
        self.bands, self.nodata, self.masks, self.fill, self._cache = bands, nodata, masks, fill, cache
        self.stamps = {path: stamp_of(path) for path in dict.fromkeys(masks.values())}
        self.dtype, self.count = None, None      # of the first raster

    def load(self):
        rasterio = needs("rasterio", "oneaccess.from_rasters()", "rasterio (Debian: apt-get install python3-rasterio)")
        self.errors = (rasterio.errors.RasterioError, rasterio.errors.RasterioIOError, OSError, ValueError)
        return rasterio

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "errors"}

    def facts(self):
        return [self.nodata]

    def bounded(self):
        """GDAL keeps 5 % of the memory for each process otherwise."""
        return self.load().Env(GDAL_CACHEMAX=self._cache)

    def opened(self, path):
        rasterio = self.load()
        try:
            return rasterio.open(path)
        except rasterio.errors.RasterioIOError as why:
            raise Unreadable(f"GDAL cannot read it: {why}") from None

    def scene(self, path, is_masked):
        with self.bounded(), self.opened(path) as raster:
            dtypes = {*raster.dtypes}
            if len(dtypes) != 1 or next(iter(dtypes)).startswith("complex"):
                raise Unreadable(f"its bands are {', '.join(sorted(dtypes))}: they are to be of one type of real numbers")
            share, mask_size = self._share(raster) if is_masked else (None, (0, 0))
            return Scene(raster.width, raster.height, [1.0], None, None, raster.count, next(iter(dtypes)), share, mask_size)

    def _share(self, raster):
        """Where it has data, in a small copy, which GDAL reads from an overview where one is; nothing, where all is data."""
        import numpy as np
        from rasterio.enums import MaskFlags
        times = max(1, -(-max(raster.width, raster.height) // MOST_LOOK))
        sides = -(-raster.height // times), -(-raster.width // times)
        if self.nodata is not None:
            numbers = raster.read(out_shape=(raster.count, *sides))
            return Scene.packed((~self._is_nothing(numbers, self.nodata)).any(0))
        if all(MaskFlags.all_valid in flags for flags in raster.mask_flag_enums):
            return None, (0, 0)
        return Scene.packed(np.asarray(raster.dataset_mask(out_shape=sides)) != 0)

    @staticmethod
    def _is_nothing(numbers, nodata):
        import numpy as np
        return np.isnan(numbers) if nodata != nodata else numbers == nodata

    def open(self, path):
        return _Raster(self, path)

    def fields(self, opened, x, y, cut, size):
        image = opened.image
        bands = [each + 1 for each in self.bands] if self.bands is not None else [*image.indexes]
        nothing = self.nodata if self.nodata is not None else image.nodata
        sample = {"image": _filled(opened.read(image, bands, x, y, size), size, 0 if nothing is None else nothing)}
        if opened.mask is not None:
            sample["mask"] = self._labels(opened, x, y, size)
        return sample

    def _labels(self, opened, x, y, size):
        """Of whole numbers; what is no data of the labels' raster stays if it is a label."""
        import numpy as np
        nothing, fill = opened.mask.nodata, self.fill
        labels, *alpha = opened.read(opened.mask, [*opened.mask.indexes], x, y, size)       # alpha: of a warp, where it has labels
        there = np.ones(labels.shape, bool) if not alpha else alpha[0] != 0
        if nothing is not None and 0 <= nothing <= _MOST_LABEL and nothing == int(nothing):
            fill = int(nothing)
        elif nothing is not None:
            there = ~self._is_nothing(labels, nothing)
        whole_ones = np.where(there, labels, 0).astype(np.int64)
        if not np.array_equal(whole_ones[there], labels[there]):
            raise Unreadable("its labels are not whole numbers")
        whole_ones[~there] = fill
        return _filled(whole_ones[None], size, fill)[0]

    def example(self, size):
        import numpy as np
        sample = {"image": np.zeros((self.count, size, size), self.dtype)}
        return {**sample, "mask": np.zeros((size, size), np.uint8)} if self.masks else sample


def _by_name(place, files):
    """{name: file} of a folder, or of what stands for a pattern's stars."""
    if "*" in os.fspath(place):
        return found_at(place, "from_rasters()")
    folder = urls.local(place, "from_rasters()")
    folder = folder if os.path.isdir(folder) else os.path.dirname(folder)
    return {os.path.splitext(os.path.relpath(file, folder))[0]: file for file in files}


def _pairs(images, masks):
    """The files, and the mask of each: of the same name in a folder, of the same place in a list, or one for all."""
    files = files_of(images, _SUFFIXES, "raster", "from_rasters()")
    if masks is None:
        return files, {}
    found = files_of(masks, _SUFFIXES, "raster", "from_rasters()")
    if len(found) == 1:
        return files, dict.fromkeys(files, found[0])
    if not all(isinstance(place, (str, os.PathLike)) for place in (images, masks)):
        if len(found) != len(files):
            raise ArgumentError(f"{len(files)} rasters, and masks= are {len(found)}: as many, in the same order, or two folders with files of the same names")
        return files, dict(zip(files, found))
    one, other = _by_name(images, files), _by_name(masks, found)
    missing = [name for name in one if name not in other]
    if missing:
        raise DatasetError(f"{os.fspath(masks)} has no raster of labels for {shown(missing)}, of {len(one):,} rasters")
    return [*one.values()], {path: other[name] for name, path in one.items()}


def from_rasters(images: str | os.PathLike | Sequence, masks: str | os.PathLike | Sequence | None = None, size: int | None = None, *,
                 stride: int | None = None, bands: Sequence[int] | None = None, nodata: float | None = None, valid: float = 0.0, at: Any = None,
                 labels: str | os.PathLike | Mapping[str, Any] | None = None, jitter: bool = False, mask: Mask | None = None,
                 cache: int | str = _CACHE, index: str | os.PathLike | None = None, workers: int | None = None, name: str | None = None,
                 version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Windows:
    """Windows of rasters (GeoTIFF, COG, JPEG 2000, VRT), for Loader, with labels of the same places. Needs rasterio.

        data = oa.from_rasters("/data/scenes", "/data/labels", 256, bands=(3, 2, 1, 7))
        pipeline = t.Compose([t.Bands(4, scale=1 / 10000), t.RandomCrop(224), t.RandomHorizontalFlip(), t.RandomVerticalFlip()])
        for batch in oa.Loader(data, pipeline, batch_size=32):
            batch["image"], batch["mask"], batch["raster"], batch["coords"]         # float32 [32, 4, 224, 224], uint8 [32, 224, 224]

    A batch has image ([bands, size, size], with the raster's type; with a pipeline, which begins with Bands(), float32), label, mask (with a
    pipeline), coords (x and y of the upper left pixel) and raster, a number in data.files. data.windows has raster, x and y of all samples.

    images: a file, a folder (its .tif, .tiff, .jp2, .img and .vrt files, and those in folders below), a pattern, or a list of these. All have as many
        bands, or those of bands=. Bands in a file each, and of several resolutions, make one raster by gdalbuildvrt -separate.
    masks: rasters of labels: a folder with files of the same names, a pattern with as many stars, a list in the same order, or one file for all. One whose pixels are not the
        image's (another grid or projection) is read at the same place, by the nearest pixel. Without a pipeline there are none.
    mask: how labels become a field: oneaccess.Mask(fill=255, dtype="int64"). fill is also what lies beyond the labels' raster.
    size: pixels of a window's side. Default: 256.
    stride: pixels from one window to the next; default: size. The last ones of a row and a column end with the raster, so that all of it is seen.
    bands: which of them are read, counted from 0; default: all.
    nodata: the number that means no data, of rasters that do not say theirs.
    valid: the least share of a window with data. Windows with none are left out. It is looked for in a copy with sides to 2,048, by an overview where the raster has one.
    jitter: each epoch draws a window anew: up to one stride to the right of and below its place.
    at: where windows are, in place of the grid: a table (.csv, .tsv, .jsonl) with columns raster, x, y, and maybe label; {raster: array [n, 2]}; or
        an array, of one raster.
    labels: of whole rasters, as of from_slides().
    cache: bytes of decoded blocks that each process of the pool keeps. It keeps 16 rasters open.
    index: as of from_slides().

    A raster that is smaller than a window is filled with its number for no data, else 0. One that cannot be read is a bad sample (Loader's bad=), as is a window of one that
    was written to since; of a VRT that file alone is looked at. The other arguments are those of wrap().
    """
    if mask is not None and (masks is None or not isinstance(mask, Mask)):
        raise ArgumentError(f"mask is {mask!r}: oneaccess.Mask(fill=..., dtype=...), with masks=")
    if bands is not None:
        bands = [whole("bands", each, 0, 65535) for each in ([bands] if isinstance(bands, int) else bands)]
        if not bands:
            raise ArgumentError("bands=[] names none: numbers of bands, counted from 0")
    if stride is not None:
        whole("stride", stride, 1)
    files, of = _pairs(images, masks)
    mask = (mask or Mask()) if of else None
    reader = RasterioReader(bands, nodata, of, mask.fill if mask else 0, size_of(cache, "cache"))

    def cut_of(path, scene, place, size):
        count = scene.bands if bands is None else len(bands)
        if bands is not None and max(bands) >= scene.bands:
            raise DatasetError(f"{path} has {scene.bands} bands, counted from 0, and bands={tuple(bands)}")
        if reader.dtype is None:
            reader.dtype, reader.count, reader.first = scene.dtype, count, path
        if count != reader.count:
            raise DatasetError(f"{path} has {count} bands, {reader.first} has {reader.count}: give bands=, or leave it out")
        return Cut(0, size, size)

    rows = rows_of(reader, files, size, cut_of=cut_of, step=lambda size: (stride or size) / size, least=share_of("valid", valid), at=at, labels=labels, jitter=bool(jitter),
                   index=index)
    return Windows(rows, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep, masks={"mask": mask} if mask else None)
