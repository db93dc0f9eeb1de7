# SPDX-License-Identifier: Apache-2.0
"""python -m oneaccess.look DATASET: what is in a data set: how many samples each class has, which samples are bad, mean and standard
deviation for Normalize(), and a sheet of its pictures. In a program look.describe() and look.sheet() do this for any Loader."""

import argparse
import dataclasses
import os
import sys

from . import choices, transforms
from .bad import BadSample
from .errors import ArgumentError, Error
from .loader import Loader
from .mix import Mix
from .ragged import Ragged
from .rows import Rows

_EDGE, _GAP, _MOST_BAD = 160, 4, 20
_COLORS = ((230, 60, 60), (60, 180, 75), (70, 120, 240), (245, 130, 48), (145, 30, 180), (60, 190, 190), (240, 50, 230), (170, 140, 20))


@dataclasses.dataclass
class Description:
    """What describe() has found; str() is a text for people."""

    name: str
    count: int                  # samples of the data set
    looked_at: int              # of these
    classes: dict[str, int]     # how many samples each has, of all; empty where there are no labels of classes
    mean: list[float]           # of each channel
    std: list[float]
    bad: list[BadSample]        # of those that were looked at

    def __str__(self):
        lines = [f"{self.name}: {self.count:,} samples" + (f" in {len(self.classes):,} classes" if self.classes else "")]
        if self.classes:
            few, many = (pick(self.classes.items(), key=lambda one: one[1]) for pick in (min, max))
            lines.append(f"classes  {few[1]:,} ({few[0]}) to {many[1]:,} ({many[0]}) samples" if few[1] < many[1] else f"classes  {few[1]:,} samples each")
        lines.append(f"looked at {self.looked_at:,} samples")
        for name, values in (("mean", self.mean), ("std", self.std)):
            lines.append(f"{name:8} ({', '.join(f'{value:.4g}' for value in values)})")
        lines.append(f"bad      {len(self.bad):,} samples" if self.bad else "bad      none")
        lines += [f"         {one.path}: {one.stage}: {one.error}" for one in self.bad[:_MOST_BAD]]
        if len(self.bad) > _MOST_BAD:
            lines.append(f"         and {len(self.bad) - _MOST_BAD:,} others")
        return "\n".join(lines)


class _Moments:
    """Of all values of each channel, batch by batch (Chan, Golub, LeVeque 1979)."""

    def __init__(self):
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, values):
        """[channels, values], of which NaN are none."""
        import numpy as np
        count = np.sum(~np.isnan(values), axis=1)
        mean = np.nansum(values, axis=1) / np.maximum(count, 1)
        squares = np.nansum((values - mean[:, None]) ** 2, axis=1)
        total, apart = self.count + count, mean - self.mean
        self.squares = self.squares + squares + apart ** 2 * self.count * count / np.maximum(total, 1)
        self.mean, self.count = self.mean + apart * count / np.maximum(total, 1), total


def _host(value):
    """As NumPy's, of a tensor wherever it is."""
    if isinstance(value, Ragged):
        return Ragged(_host(value.values), _host(value.lengths), value.is_text)
    if not hasattr(value, "detach"):
        return value
    value = value.detach().cpu()
    return (value.float() if value.is_floating_point() else value).numpy()


def _fields(batch):
    return {str(name): _host(value) for name, value in (batch.items() if isinstance(batch, dict) else enumerate(batch))}


def _images(fields):
    """Those that are images: {name: [n, channels, height, width]}, also of spectrograms (one channel) and clips (first frame)."""
    found = {}
    for name, value in fields.items():
        shape = () if isinstance(value, (Ragged, list)) else value.shape
        if len(shape) == 5:
            value, shape = value[:, 0], value[:, 0].shape
        if len(shape) == 3 and not found:
            value = value[:, None]
        elif len(shape) == 4 and shape[3] in (1, 3) and shape[1] not in (1, 3):
            value = value.transpose(0, 3, 1, 2)
        elif len(shape) != 4:
            continue
        found[name] = value
    if not found:
        raise ArgumentError("the batches have no images: a field of [samples, channels, height, width]")
    return found


def describe(dataset, pipeline=None, samples: int | None = 2000, *, seed: int = 0, **options) -> Description:
    """Counts the classes of a data set, and looks at some of its samples for mean, standard deviation and bad ones.

        print(look.describe("/data/train"))
        about = look.describe("/data/eurosat", oa.Compose([t.Bands(13), t.CenterCrop(64)]), samples=None)
        t.Normalize(about.mean, about.std)

    dataset, pipeline and options are those of Loader. Without a pipeline images are resized to 256 and their middle, 224 x 224, is
    looked at, with values from 0 to 1; with one mean and std are of the values that it makes, so leave Normalize out.
    samples: how many, drawn by the seed; None: all. mean and std are of all values of a channel together (std: divided by their
    number), of the first image of a sample; NaN do not count. Errors: those of Loader; bad samples are none.
    """
    if isinstance(dataset, (Loader, Mix)):
        raise ArgumentError(f"dataset is a {type(dataset).__name__}: give what its Loader was made with, a folder, shards or a table; describe() makes a Loader itself")
    if isinstance(dataset, Rows):
        raise ArgumentError(f"{dataset.path} has rows of numbers, and describe() looks at images")
    if samples is not None:
        samples = choices.counted("samples", samples)
    pipeline = transforms.imagenet_eval(224, dtype="uint8") if pipeline is None else pipeline
    moments, looked = _Moments(), 0
    with Loader(dataset, pipeline, 32, **{"as_": "numpy", "order": "seeded", "seed": seed, "bad": "skip", "bad_budget": 1 << 31, "epochs": 1, **options}) as loader:
        count, names = len(loader.dataset), _classes(loader)
        for batch in loader:
            images = next(iter(_images(_fields(batch)).values()))[:None if samples is None else samples - looked]
            scale = 255 if images.dtype == "uint8" else 1
            moments.add(images.swapaxes(0, 1).reshape(images.shape[1], -1).astype("float64") / scale)
            looked += len(images)
            if looked == samples:
                break
        bad = loader.bad_samples
        std = (moments.squares / moments.count.clip(1)) ** 0.5
        return Description(str(dataset), count, looked, names, moments.mean.tolist(), std.tolist(), bad)


def _classes(loader):
    try:
        names, targets = loader.classes, loader.targets
    except (Error, AttributeError):
        return {}
    if not names:
        return {}
    counts = [0] * len(names)
    for label in targets:
        counts[label] += 1
    return dict(zip(names, counts))


# ---- a sheet ----

def sheet(loader, file, samples: int = 32, *, columns: int = 8) -> None:
    """Draws what the loop of a Loader gets: the first samples of its next epoch, as an image file.

        look.sheet(loader, "sheet.png")

    Normalize() is undone; other numbers beyond 0 to 1 are stretched from each image's least to its greatest. Of several views each
    is drawn, of a clip its first frame, of bands the first three. Boxes (with classes' names), masks (0 and their fill have no
    colour) and key points are drawn on the image, labels above it. file: a name as Pillow's Image.save() takes it. Needs Pillow.
    Errors: ArgumentError: the samples have no images; those of the loop.
    """
    if isinstance(loader, Mix):
        raise ArgumentError("a sheet is of one Loader: draw one of each part of the mix")
    _check_sheet(file)
    samples, columns = choices.counted("samples", samples), choices.counted("columns", columns)
    import PIL.Image
    undo, names, cells = _normalized(loader), _class_names(loader), []
    for batch in loader:
        fields = _fields(batch)
        images = _images(fields).values()
        cells += [_drawn(image[index], undo, fields, index, names) for index in range(len(next(iter(images)))) for image in images]
        if len(cells) >= samples:
            break
    cells = cells[:samples]
    columns = min(columns, len(cells))
    width, height = (max(cell.size[side] for cell in cells) + _GAP for side in (0, 1))
    page = PIL.Image.new("RGB", (columns * width + _GAP, -(-len(cells) // columns) * height + _GAP), "white")
    for at, cell in enumerate(cells):
        page.paste(cell, (at % columns * width + _GAP, at // columns * height + _GAP))
    page.save(file)


def _check_sheet(file):
    try:
        import PIL.Image
    except ImportError:
        raise ArgumentError("a sheet is drawn by Pillow, which is not installed: pip install pillow") from None
    if isinstance(file, (str, os.PathLike)) and os.path.splitext(file)[1].lower() not in PIL.Image.registered_extensions():
        raise ArgumentError(f"{os.fspath(file)!r} is no name of an image file: give one as sheet.png")


def _normalized(loader):
    """What Normalize() of the Loader's pipeline takes off and divides by."""
    text = loader._options["pipeline"]
    if text in ("imagenet-train", "imagenet-eval"):
        return transforms.IMAGENET_MEAN, transforms.IMAGENET_STD
    return next(((op["mean"], op["std"]) for op in transforms.ops_of(text) if op["op"] == "normalize"), None)


def _class_names(loader):
    return _classes(loader) or getattr(loader.dataset, "classes", None) or ()


def _drawn(image, undo, by_name, index, names):
    """A cell: the image of a sample, what belongs to it, and its label above."""
    import numpy as np
    import PIL.Image
    import PIL.ImageDraw
    values = np.array(image, "float32")
    if undo is not None:
        values = values * np.asarray(undo[1], "float32").reshape(-1, 1, 1) + np.asarray(undo[0], "float32").reshape(-1, 1, 1)
    values = np.nan_to_num(values if image.dtype != "uint8" or undo is not None else values / 255)
    values = values[:3] if len(values) >= 3 else np.repeat(values[:1], 3, axis=0)
    if values.min() < -0.01 or values.max() > 1.01:
        values = (values - values.min()) / max(values.max() - values.min(), 1e-9)
    pixels = (values.clip(0, 1) * 255).round().astype("uint8").transpose(1, 2, 0)
    fields = list(by_name.values())
    for field in fields:
        if not isinstance(field, (Ragged, list)) and field.shape[1:] == pixels.shape[:2] and field.dtype.kind in "iu":
            labels = field[index]
            colored = np.array(_COLORS, "uint8")[labels % len(_COLORS)]
            pixels = np.where(((labels > 0) & (labels != 255))[:, :, None], pixels // 2 + colored // 2, pixels)
    scale = max(1, _EDGE // max(pixels.shape[:2]))
    page = PIL.Image.fromarray(pixels).resize((pixels.shape[1] * scale, pixels.shape[0] * scale), PIL.Image.NEAREST)
    draw = PIL.ImageDraw.Draw(page)
    classes = next((field[index] for field in fields if isinstance(field, Ragged) and not field.is_text and len(field.shape) == 2 and field.dtype.kind in "iu"), [])
    for field in fields:
        if not isinstance(field, Ragged) or field.is_text or field.dtype.kind != "f":
            continue
        if field.shape[2:] == (4,):
            for at, box in enumerate(field[index].tolist()):
                color = _COLORS[(int(classes[at]) if at < len(classes) else at) % len(_COLORS)]
                draw.rectangle([side * scale for side in box], outline=color, width=2)
                if at < len(classes):
                    draw.text((box[0] * scale + 3, box[1] * scale + 2), _named(classes[at], names), fill=color)
        elif field.shape[3:] == (3,):
            for x, y, is_seen in field[index].reshape(-1, 3).tolist():
                if is_seen > 0:
                    draw.ellipse([x * scale - 2, y * scale - 2, x * scale + 2, y * scale + 2], fill=_COLORS[1])
    label = by_name.get("label", by_name.get("1"))
    if getattr(label, "ndim", 0) != 1:
        return page
    cell = PIL.Image.new("RGB", (page.width, page.height + 12), "white")
    PIL.ImageDraw.Draw(cell).text((0, 0), _named(label[index], names), fill="black")
    cell.paste(page, (0, 12))
    return cell


def _named(label, names):
    """The class' name, else the number."""
    names, number = list(names), label.item()
    return str(names[number])[:24] if isinstance(number, int) and 0 <= number < len(names) else f"{number:g}"


# ---- the program ----

def main(arguments):
    parser = argparse.ArgumentParser("python -m oneaccess.look", description=__doc__)
    parser.add_argument("dataset", help="as the first argument of a Loader is written: a folder, shards, a table, a URL")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--samples", type=int, default=2000, metavar="N", help="look at so many, drawn at random (2000)")
    which.add_argument("--all", action="store_true", help="look at all of them: finds every bad one")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (0)")
    parser.add_argument("--pipeline", metavar="JSON", help="in place of the middle of each image (oneaccess-pipeline(5))")
    parser.add_argument("--sheet", metavar="FILE", help="also draw 32 of the images, such as sheet.png")
    given = parser.parse_args(arguments)
    try:
        if given.sheet:
            _check_sheet(given.sheet)
        print(describe(given.dataset, given.pipeline, None if given.all else given.samples, seed=given.seed))
        if given.sheet:
            with Loader(given.dataset, given.pipeline or transforms.imagenet_eval(_EDGE, dtype="uint8"), 32, as_="numpy", order="seeded", seed=given.seed,
                        bad="skip", bad_budget=1 << 31, epochs=1) as loader:
                sheet(loader, given.sheet)
            print(f"sheet    {given.sheet}")
    except (Error, OSError, ModuleNotFoundError) as why:
        print(f"oneaccess.look: {why}" + (f": pip install {why.name}" if isinstance(why, ModuleNotFoundError) else ""), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
