# SPDX-License-Identifier: Apache-2.0
"""Whole-slide images of pathology: windows by OpenSlide, at a resolution that is asked for, where tissue is (scenes.py)."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, DatasetError, needs
from ..sources.tables import files_of, size_of
from .scenes import MOST_LOOK, Cut, Reader, Scene, Unreadable, Windows, rows_of, share_of, whole

_SUFFIXES = (".svs", ".tif", ".tiff", ".ndpi", ".mrxs", ".scn", ".bif", ".vms", ".vmu", ".svslide", ".czi", ".dcm")
_CACHE = 64 << 20           # decoded tiles, of a process
_NEAR = 1.05                # a level whose resolution differs by less is read as it is
_TENTH = 10.0               # micrometres of a pixel, times magnification: 40 x are 0.25 micrometres
_LEAST_LOOK = 1024          # pixels of the longer side of a level in which tissue is looked for
_PIECE = 16 << 20           # pixels that are looked at together
_BLUR, _PALEST = 7, 8       # of the saturation, as CLAM has it
_TISSUE = 0.25


def _number(properties, name):
    try:
        value = float(properties.get(name, "nan"))
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _mpp(properties):
    """Micrometres of a pixel. OpenSlide before version 4 leaves a plain TIFF's resolution as it is written there."""
    unit = {"centimeter": 1e4, "inch": 25400.0}.get(properties.get("tiff.ResolutionUnit"))
    sides = []
    for axis in "xy":
        dots = _number(properties, f"tiff.{axis.upper()}Resolution")
        sides.append(_number(properties, f"openslide.mpp-{axis}") or (unit / dots if unit and dots else None))
    return None if None in sides else sum(sides) / 2


def _on_glass(openslide, slide, region):
    """Without what the scanner left out, which has the slide's background colour, else white."""
    from PIL import Image
    ground = slide.properties.get(openslide.PROPERTY_NAME_BACKGROUND_COLOR, "")
    made = Image.new("RGB", region.size, f"#{ground}" if len(ground) == 6 else "#ffffff")
    made.paste(region, None, region)
    return made


def otsu(counts) -> int:
    """The value of a histogram that parts it best in two, as Otsu has it: what is above is the upper part."""
    import numpy as np
    values = np.arange(len(counts))
    below, sums = np.cumsum(counts).astype(float), np.cumsum(counts * values).astype(float)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return int(np.argmax(np.nan_to_num(apart)))


class _Slide:
    """An open one."""

    def __init__(self, openslide, path, cache=None):
        self._openslide = openslide
        try:
            self.slide = openslide.open_slide(path) if openslide.OpenSlide.detect_format(path) else None
        except openslide.OpenSlideError as why:
            raise Unreadable(f"OpenSlide cannot read it: {why}") from None
        if self.slide is None:
            raise Unreadable("it is of no kind that OpenSlide reads: tiled TIFF with levels, SVS, NDPI, MRXS, SCN, BIF, VMS, SVSLIDE; vips tiffsave FILE OUT.tif"
                             " --tile --pyramid makes one of other images")
        if cache is not None:
            self.slide.set_cache(cache)
        self.close = self.slide.close

    def read(self, place, level, sides):
        return _on_glass(self._openslide, self.slide, self.slide.read_region(place, level, sides))

    def tissue(self):
        """Which pixels of a small copy are of a colour, by Otsu's threshold of the saturation."""
        import numpy as np
        from PIL import Image, ImageFilter
        slide = self.slide
        level = max((at for at, sides in enumerate(slide.level_dimensions) if max(sides) >= _LEAST_LOOK), default=0)
        (width, height), down = slide.level_dimensions[level], slide.level_downsamples[level]
        times = -(-max(width, height) // MOST_LOOK)
        rows = max(1, _PIECE // width // times) * times
        made = []
        for top in range(0, height, rows):
            piece = self.read((0, round(top * down)), level, (width, min(rows, height - top)))
            made.append(np.asarray(piece.reduce(times).convert("HSV").getchannel("S")))
        small = Image.fromarray(np.concatenate(made)).filter(ImageFilter.MedianFilter(_BLUR))
        return np.asarray(small) > max(otsu(small.histogram()), _PALEST)


class OpenSlideReader(Reader):
    noun = "slide"

    def __init__(self, cache):
        self._cache = cache

    def load(self):
        openslide = needs("openslide", "oneaccess.from_slides()", "openslide-python openslide-bin (Debian: apt-get install python3-openslide)")
        self.errors = (openslide.OpenSlideError, OSError, ValueError)
        needs("PIL", "oneaccess.from_slides()", "pillow")
        return openslide

    def __getstate__(self):
        return {"_cache": self._cache}

    def scene(self, path, is_masked):
        opened = _Slide(self.load(), path)
        slide = opened.slide
        try:
            share, mask_size = Scene.packed(opened.tissue()) if is_masked else (None, (0, 0))
            return Scene(*slide.dimensions, [float(down) for down in slide.level_downsamples], _mpp(slide.properties),
                         _number(slide.properties, "openslide.objective-power"), 3, "uint8", share, mask_size)
        finally:
            opened.close()

    def open(self, path):
        return _Slide(self.load(), path, self._tiles())

    def _tiles(self):
        """One cache for all slides that the process has open, where the library has such (OpenSlide 4); else each has 32 MiB."""
        openslide = self.load()
        if not hasattr(self, "_shared"):
            try:
                self._shared = openslide.OpenSlideCache(self._cache)
            except (AttributeError, openslide.OpenSlideVersionError):
                self._shared = None
        return self._shared

    def fields(self, opened, x, y, cut, size):
        import numpy as np
        from PIL import Image
        picture = opened.read((x, y), cut.level, (cut.side, cut.side))
        return {"image": np.asarray(picture if cut.side == size else picture.resize((size, size), Image.Resampling.BILINEAR))}

    def example(self, size):
        import numpy as np
        return {"image": np.zeros((size, size, 3), np.uint8)}


# ---- resolutions ----


def _times(path, scene, mpp, magnification, slide_mpp):
    """How many pixels of the finest level one of a window is wide."""
    own = scene.mpp or slide_mpp
    if magnification is not None:
        power = scene.magnification or (own and _TENTH / own)
        if not power:
            raise DatasetError(f"{path} does not say its magnification, nor micrometres of a pixel: give slide_mpp=, or level=")
        return power / magnification, f"{power:g} x, and magnification={magnification:g}"
    own = own or (scene.magnification and _TENTH / scene.magnification)
    if not own:
        raise DatasetError(f"{path} does not say how many micrometres a pixel has: give slide_mpp=, or level=")
    return mpp / own, f"{own:.4g} micrometres a pixel, and mpp={mpp:g}"


def scaled(path: str, scene: Scene, size: int, mpp: float | None, magnification: float | None, slide_mpp: float | None) -> Cut:
    """By the coarsest level that is fine enough."""
    times, words = _times(path, scene, mpp, magnification, slide_mpp)
    fine = [(down, at) for at, down in enumerate(scene.downsamples) if down <= times * _NEAR]
    if not fine:
        raise DatasetError(f"{path} has {words} is finer than that: take a coarser resolution, give level= if the file is wrong, or leave the slide out")
    down, level = max(fine)
    if times < down * _NEAR:
        return Cut(level, size, round(size * down))
    return Cut(level, whole(f"{path}: the side of a window at its level {level}", round(size * times / down), 1), round(size * times))


def _as_said(path, scene, place, size):
    """By the attributes of CLAM's and TRIDENT's files."""
    if place.level is not None and place.size:
        if place.level >= len(scene.downsamples):
            raise DatasetError(f"{path} has {len(scene.downsamples)} levels, and at= has places of its level {place.level}")
        return Cut(place.level, place.size, round(place.size * scene.downsamples[place.level]))
    if place.extent:
        down, level = max((down, at) for at, down in enumerate(scene.downsamples) if at == 0 or down <= place.extent / size * _NEAR)
        return Cut(level, max(1, round(place.extent / down)), place.extent)
    return Cut(0, size, size)


def from_slides(paths: str | os.PathLike | Sequence, size: int | None = None, *, mpp: float | None = None, magnification: float | None = None,
                level: int | None = None, overlap: int = 0, at: Any = None, tissue: bool | float = True,
                labels: str | os.PathLike | Mapping[str, Any] | None = None, jitter: bool = False, slide_mpp: float | None = None,
                cache: int | str = _CACHE, index: str | os.PathLike | None = None, workers: int | None = None, name: str | None = None,
                version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Windows:
    """Windows of whole-slide images, for Loader. Needs openslide (OpenSlide's package for Python).

        data = oa.from_slides("/data/camelyon", 256, mpp=0.5, labels="labels.csv")              # where tissue is
        data = oa.from_slides("/data/tcga/*.svs", at="clam/patches")                            # where CLAM's or TRIDENT's .h5 files say
        pipeline = t.Compose([t.RandomCrop(224), t.RandomHorizontalFlip(), t.ColorJitter(.2, .2, .2), t.ToTensor()])
        for batch in oa.Loader(data, pipeline, batch_size=64):
            batch["image"], batch["label"], batch["slide"], batch["coords"]

    A batch has image (uint8 [size, size, 3], or what the pipeline makes of it), label, coords (x and y of the upper left pixel, of the finest
    level) and slide, a number in data.files. data.windows has slide, x and y of all samples; data.sides, how many pixels of a slide's finest level its windows are wide.

    paths: a file, a folder (its .svs, .tif, .tiff, .ndpi, .mrxs, .scn, .bif, .vms, .svslide, .czi and .dcm files, and those in folders below), a
        pattern, or a list of these. OpenSlide says which of them it reads.
    size: pixels of a window's side. Default: what the files of at= say, else 256.
    mpp, magnification, level: one of them: micrometres of a pixel; the objective's (20 for 20 x; where a slide does not say its own, 40 x
        is 0.25 micrometres); a level of the file. Default: the finest level, or what the files of at= say. Of the levels the coarsest one is read that is
        fine enough, and resized if its resolution differs by over 5 % (bilinear, by Pillow). A slide that is coarser is an error.
    slide_mpp: of slides that do not say theirs.
    overlap: pixels that windows of the grid share with the next ones. The last ones of a row and a column end with the slide.
    tissue: the least share of a window that is tissue; True: 0.25, False: all windows. Tissue is what has colour, in a copy with sides to 2,048: by Otsu's
        threshold of the saturation (at least 8 of 255) behind a median filter of 7.
    at: where windows are, in place of the grid: CLAM's folder of .h5 files (or TRIDENT's), whose patch_size and patch_level are taken if nothing else is
        said; a table (.csv, .tsv, .jsonl) with columns slide, x, y, and maybe label; {slide: array [n, 2]}; or an array, of one slide.
    labels: a table with columns slide and label, {slide: label}, or "folders", those in which slides lie. Words are numbered in their order
        (data.classes), numbers stay. Slides without a label are left out, with a warning. Slides are named as their files are, with or without folder and suffix.
    jitter: each epoch draws a window anew: up to one step to the right of and below its place.
    cache: bytes of decoded tiles that each process of the pool keeps (OpenSlide 4). It keeps 16 slides open.
    index: the folder that keeps what was found of slides. Default: $XDG_CACHE_HOME/oneaccess/scenes, else ~/.cache/oneaccess/scenes.

    What a scanner left out has the slide's background colour, else white. A slide that cannot be read is a bad sample (Loader's bad=), as is a window of
    one that was written to since; of .mrxs that file alone is looked at. The other arguments are those of wrap().
    """
    if sum(each is not None for each in (mpp, magnification, level)) > 1:
        raise ArgumentError("mpp=, magnification= and level= each say the resolution: give one of them")
    for what, value in (("mpp", mpp), ("magnification", magnification), ("slide_mpp", slide_mpp)):
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < 1e4):
            raise ArgumentError(f"{what} is {value!r}: a number above 0")
    whole("level", level or 0, 0, 64)
    whole("overlap", overlap, 0)
    least = None if tissue is False else _TISSUE if tissue is True else share_of("tissue", tissue)

    def cut_of(path, scene, place, size):
        if mpp is not None or magnification is not None:
            return scaled(path, scene, size, mpp, magnification, slide_mpp)
        if level is None and place is not None:
            return _as_said(path, scene, place, size)
        if (level or 0) >= len(scene.downsamples):
            raise DatasetError(f"{path} has {len(scene.downsamples)} levels, counted from 0, and level={level}")
        return Cut(level or 0, size, round(size * scene.downsamples[level or 0]))

    def step(size):
        if overlap >= size:
            raise ArgumentError(f"overlap is {overlap}, and windows have {size} pixels")
        return (size - overlap) / size

    rows = rows_of(OpenSlideReader(size_of(cache, "cache")), files_of(paths, _SUFFIXES, "slide", "from_slides()"), size, cut_of=cut_of, step=step, least=least, at=at, labels=labels,
                   jitter=bool(jitter), index=index)
    return Windows(rows, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep)
