# SPDX-License-Identifier: Apache-2.0
"""Pictures with boxes, as COCO, Pascal VOC and YOLO annotate them. Annotations are read when the data set is made; pictures by the pool
(wrap()), decoded by accessd's workers."""

import array
import functools
import io
import json
import math
import os
import re
import xml.etree.ElementTree as xml
from collections.abc import Mapping, Sequence

from .. import urls
from ..errors import ArgumentError, DatasetError, not_there
from ..masks import Mask
from ..points import Points
from ..record import size_of_picture
from ..sources.folders import Files, found_at, names_of, refuse_missing, shown
from ..sources.tables import needs
from ..wrapped import Wrapped
from . import outlines

_TYPES = {"boxes": ("f", 4), "classes": ("q", 1), "area": ("f", 1), "crowd": ("B", 1), "difficult": ("B", 1), "mask_id": ("q", 1),
          "keypoints": ("f", 3)}   # of a box; how many points, its Boxes know
_MASKS = ("mask", "class_mask")
_MOST_ID, _MOST_AREA = 1 << 63, 1e38
_SLACK = 4096       # what a sample has beside its picture and its boxes


def _listed_names(classes):
    if isinstance(classes, str):
        raise ArgumentError(f"classes is {classes!r}: a list of names")
    return list(classes)


class Boxes:
    """The boxes of all pictures: arrays, and where those of each picture begin; also what each picture has alone."""

    def __init__(self, path, fields, own, classes):
        self.path, self.fields, self.own = path, fields, {name: [] for name in fields if name in own}
        self.values = {name: array.array(_TYPES[name][0]) for name in fields if name in _TYPES}
        self.masks = [name for name in _MASKS if name in fields]
        self.outlines, self.numbers, self.sizes = outlines.Outlines(), array.array("q"), []
        self.classes, self.number = _listed_names(classes), {each: at for at, each in enumerate(classes)}
        self.n_points, self.flip_indices = 1, ()
        self.starts, self.most, self.paths = array.array("q", [0]), 1, []
        if len(self.number) < len(self.classes):
            raise ArgumentError(f"classes={classes!r} names one twice")

    def add(self, path, boxes, size=None, **own):
        """boxes: of dicts with a value for each field that boxes have; size: height and width, where there are masks."""
        self.paths.append(path)
        for at, box in enumerate(boxes, 1):
            box["mask_id"] = at
        if self.masks:
            self._add_outlines(boxes, size)
        for name, values in self.values.items():
            for box in boxes:
                values.extend(box[name]) if name in ("boxes", "keypoints") else values.append(box[name])
        for name, values in self.own.items():
            values.append(own[name])
        self.starts.append(self.starts[-1] + len(boxes))
        self.most = max(self.most, len(boxes))

    def _add_outlines(self, boxes, size):
        if not all(0 < side < 1 << 16 for side in size):
            raise DatasetError(f"{self.path}: {self.paths[-1]} has the height {size[0]} and the width {size[1]}, and fields= has a mask")
        self.sizes.append(size)
        for box in boxes:
            try:
                self.outlines.add(box["outline"], *size)
            except outlines.Bad as why:
                raise DatasetError(f"{box['place']}: {why}; fields= has a mask: mend the file, or leave masks out") from None
            self.numbers.append(box["classes"] + 1)

    def box(self, place, left, top, right, bottom):
        """In pixels; place: where it is written."""
        if not all(map(math.isfinite, (left, top, right, bottom))) or right < left or bottom < top:
            raise DatasetError(f"{place}: box {left:g}, {top:g}, {right:g}, {bottom:g} (left, top, right, bottom) ends before it begins")
        return left, top, right, bottom


class DetectionRows:
    """A picture, its boxes, and what is beside them. classes: the names, in the order of their numbers; category_ids: what COCO's file
    has for these."""

    def __init__(self, boxes, category_ids=None):
        np = needs("numpy", "a data set with boxes")
        if not boxes.paths:
            raise DatasetError(f"{boxes.path} has no picture with a box that is meant: classes= and empty= say which are")
        self.classes, self.category_ids, self.fields, self.starts = boxes.classes, category_ids, boxes.fields, boxes.starts
        shapes = {"boxes": (-1, 4), "keypoints": (-1, boxes.n_points, 3)}
        self.values = {name: np.frombuffer(values, values.typecode).reshape(shapes.get(name, -1)) for name, values in boxes.values.items()}
        self.own, self.masks, self.outlines, self.numbers, self.sizes = boxes.own, boxes.masks, boxes.outlines, boxes.numbers, boxes.sizes
        self.files = _files(boxes.paths)

    def __len__(self):
        return len(self.files.paths)

    def __getitem__(self, index):
        index = range(len(self))[index]
        beside = {name: self._beside(name, index) for name in self.fields}
        return self._placed(self.files.read(index), beside, self.files.paths[index])

    def _beside(self, name, index):
        begin, end = self.starts[index:index + 2]
        if name in self.masks:
            numbers = range(1, 1 + end - begin) if name == "mask" else self.numbers[begin:end]
            return outlines.paint(self.outlines, range(begin, end), numbers, *self.sizes[index])
        return self.values[name][begin:end] if name in self.values else self.own[name][index]

    def _placed(self, data, beside, path):
        return {"image": data, **beside}


def _files(paths):
    try:
        return Files(paths)
    except FileNotFoundError as why:
        missing = [path for path in paths if not os.path.exists(path)]
        if not missing:
            raise
        raise not_there(f"{len(missing):,} of {len(paths):,} pictures are not there: {shown(missing)}: images= is the folder that their names"
                             " are relative to", missing[0]) from why


def _fields(fields, allowed, default):
    fields = default if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
    for name in fields:
        if name not in allowed:
            raise ArgumentError(f"fields= names {name!r}; there are: {', '.join(allowed)}")
    if len(set(fields)) < len(fields):
        raise ArgumentError(f"fields={fields!r} names one twice")
    if not set(fields) & {"boxes", "captions", *_MASKS}:
        raise ArgumentError(f"fields={fields!r}: \"boxes\", \"captions\" or a mask must be among them; a Loader of a folder has images alone")
    if "boxes" not in fields and set(fields) & set(_TYPES):
        raise ArgumentError(f"fields={fields!r}: {', '.join(sorted(set(fields) & set(_TYPES)))} of boxes, which must be among them, too")
    return fields


def _data(rows, boxes, more):
    """The data set of these rows, with room for the largest picture and the most boxes."""
    ragged = {name: boxes.most for name in boxes.values}
    room = rows.files.largest + _SLACK + boxes.most * sum(values.itemsize * _TYPES[name][1] * (boxes.n_points if name == "keypoints" else 1)
                                                          for name, values in boxes.values.items())
    if "captions" in boxes.own:
        texts = boxes.own["captions"]
        ragged["captions"] = max(1, *map(len, texts)), max((len(text.encode()) for each in texts for text in each), default=1) or 1
        room += math.prod(ragged["captions"]) + 8 * ragged["captions"][0]
    most = {"mask": boxes.most, "class_mask": len(boxes.classes)}
    masks = {name: Mask(dtype="uint8" if most[name] < 256 else "uint16") for name in boxes.masks}
    room += sum(max(map(math.prod, boxes.sizes)) * (1 if mask.dtype == "uint8" else 2) for mask in masks.values())
    rows_of = [Points(name, boxes.flip_indices) if name == "keypoints" else name for name in boxes.fields if name in boxes.values]
    return Detection(rows, boxes=rows_of, ragged=ragged, room=room, masks=masks, **more)


class Detection(Wrapped):
    """Of from_coco(), from_voc() and from_yolo(), for Loader."""

    def __init__(self, rows, *, name=None, version="", workers=None, timeout=60, keep=30.0, **more):
        boxes = sorted(more.pop("boxes"), key=lambda field: field != "boxes")
        super().__init__(rows, name, version, workers, timeout, False, keep=keep, boxes=boxes, **more)
        self.classes, self.category_ids = rows.classes, rows.category_ids


# ---- COCO ----


_COCO = ("boxes", "classes", "area", "crowd", "image_id", "captions", "mask", "mask_id", "class_mask", "keypoints")
_COCO_OWN = ("image_id", "captions")
_SAID = {int: "a whole number", str: "a text", list: "a list"}


def _without_outlines(found):
    found.pop("segmentation", None)     # the most of a file, and nothing here
    return found


def _with_outlines(found):
    if "segmentation" in found:
        found["segmentation"] = outlines.of_coco(found["segmentation"])     # short
    return found


def _parsed(path, has_outlines=False):
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file, object_hook=_with_outlines if has_outlines else _without_outlines)
    except FileNotFoundError:
        raise not_there(f"no file of annotations is at {path}", path) from None
    except (ValueError, RecursionError) as why:
        raise DatasetError(f"{path} is no JSON: {why}") from None
    if not isinstance(found, dict) or not isinstance(found.get("images"), list):
        raise DatasetError(f"{path} has no list of images, as COCO's instances_train2017.json has")
    for what in "annotations", "categories":        # image_info_test2017.json has no annotations
        if not isinstance(found.setdefault(what, []), list):
            raise DatasetError(f"{path}: {what} is no list")
    return found


def _listed(path, found, what, members):
    """The objects of a list of the file, each with these members."""
    for at, each in enumerate(found[what]):
        if not isinstance(each, dict) or not all(isinstance(each.get(name), type_) and not isinstance(each[name], bool) for name, type_ in members.items()):
            wanted = ", ".join(f"{name} ({_SAID[type_]})" for name, type_ in members.items())
            raise DatasetError(f"{path}: {what}[{at}] is {json.dumps(each, default=lambda _: '...')[:200]}: it must have {wanted}")
        yield at, each


def _by_id(path, found, what, members):
    known = {}
    for at, each in _listed(path, found, what, {"id": int, **members}):
        if known.setdefault(each["id"], each) is not each:
            raise DatasetError(f"{path}: {what}[{at}] has the id {each['id']}, which another has")
        if abs(each["id"]) >= _MOST_ID:
            raise DatasetError(f"{path}: {what}[{at}] has the id {each['id']}, which 64 bits have no room for")
    return known


def _skeleton(path, categories):
    """The names of the key points that the classes which are meant have."""
    names = {tuple(each["keypoints"]) for each in categories if isinstance(each.get("keypoints"), list) and each["keypoints"]
             and all(isinstance(name, str) for name in each["keypoints"])}
    if len(names) != 1:
        raise DatasetError(f"{path}: {'no class that is meant has key points' if not names else 'classes have different key points'}: classes= names one"
                           " that has")
    return names.pop()


def _flips_of(names):
    """left_eye becomes right_eye in a mirror."""
    other, names = {"left": "right", "right": "left"}, [name.lower() for name in names]
    turned = [re.sub("left|right", lambda side: other[side[0]], name) for name in names]
    return [names.index(name) if name in names and names.count(name) == names.count(names[at]) == 1 else at for at, name in enumerate(turned)]


def _flip_indices(given, count):
    if given and len(given) != count:
        raise ArgumentError(f"flip_indices has {len(given)} numbers, and there are {count} key points")
    return given


def _points(place, values, count):
    """x, y and visibility of each, as the file has them; nothing where it has none."""
    if values is None or values == []:
        return [0.0] * (3 * count)
    if not isinstance(values, list) or len(values) != 3 * count or not all(type(value) in (int, float) and abs(value) < _MOST_AREA for value in values):
        raise DatasetError(f"{place} has the key points {json.dumps(values)[:200]}: they are {3 * count} numbers, x, y and visibility of each")
    return values


def _coco_box(boxes, path, at, found, category_ids):
    """A box of an annotation, or None of a class that is not meant."""
    number = category_ids.get(found["category_id"])
    if number is None:
        return None
    try:
        left, top, width, height = map(float, found["bbox"])
    except (ValueError, TypeError, OverflowError):
        raise DatasetError(f"{path}: annotations[{at}] has the bbox {json.dumps(found['bbox'])[:200]}: left, top, width and height are four numbers") from None
    area, place = found.get("area"), f"{path}: annotations[{at}]"
    return {"boxes": boxes.box(place, left, top, left + width, top + height), "classes": number, "place": place,
            "outline": found.get("segmentation", outlines.NONE),
            "keypoints": _points(place, found.get("keypoints"), boxes.n_points) if "keypoints" in boxes.values else None,
            "area": area if isinstance(area, (int, float)) and abs(area) < _MOST_AREA else width * height, "crowd": bool(found.get("iscrowd"))}


def from_coco(annotations: str | os.PathLike, images: str | os.PathLike, *, classes: Sequence[str] | None = None,
              fields: Sequence[str] | None = None, flip_indices: Sequence[int] | None = None, empty: bool = True, workers: int | None = None,
              name: str | None = None, version: str = "", timeout: int = 60, keep: float = 30.0) -> "Detection":
    """Pictures and boxes, or captions, of a file of annotations in COCO's form, for Loader.

        data = oa.from_coco("coco/annotations/instances_train2017.json", "coco/train2017")
        loader = oa.Loader(data, pipeline, batch_size=16)
        for batch in loader: batch["image"], batch["boxes"][i], batch["classes"][i], batch["image_id"][i]

    annotations: the file. Its pictures are taken in the order of their ids, as by torchvision's CocoDetection.
    images: the folder that file_name is relative to.
    fields: what a batch has beside "image", in this order. Default: boxes, classes and image_id; of a file of captions,
        captions and image_id.
            boxes     ragged float32 [n, 4]: left, top, right and bottom in pixels, as pipelines take them
            classes   ragged int64 [n]: the place in data.classes, from 0; data.category_ids has COCO's own number there
            area      ragged float32 [n]: the file's, in pixels of the file; where it has none, the box's
            crowd     ragged uint8 [n]: 1 for a crowd. Without this field boxes of crowds are left out
            image_id  int64: the file's, for an evaluation by pycocotools
            captions  ragged: lists of texts
            mask      [H, W] of uint8 (uint16, where a picture has more than 255 boxes): the number of the object that a pixel
                      belongs to, 0 for none, by the file's outlines
            mask_id   ragged int64 [n]: the number of each box in "mask": mask[i] == mask_id[i][j] is the outline of box j
            class_mask  [H, W]: a pixel's class as in "classes", plus 1; 0 for none. May stand alone, without boxes
            keypoints  ragged float32 [n, k, 3]: x, y and visibility of each key point, as in person_keypoints_train2017.json;
                      zeros for a box that the file gives none
    flip_indices: for each key point which one it becomes where the picture is mirrored. Default: the points' names say it, as
        left_eye and right_eye.
    classes: the names of those that are meant, in the order of their numbers; boxes of others are left out. Default: all
        categories of the file, in the order of their ids.
    empty: whether pictures without a box that is meant are samples, too. A box without width or height, as COCO has one, counts
        here; crops and resizes remove it.

    Boxes, and what is beside each, follow the pipeline and are removed with what it cuts away, as wrap() says. Masks do as
    well; a removed box's number may be left in one. They are, pixel by pixel, what pycocotools' annToMask() makes of polygons and
    of runs (RLE). Where outlines overlap, the object of fewer pixels is seen, of equal ones the first. A picture that has changed since is a bad sample. The other arguments are those of wrap().
    """
    path, folder = urls.local(annotations, "from_coco()"), urls.local(images, "from_coco()")
    has_masks = bool({*_MASKS} & {*((fields,) if isinstance(fields, str) else fields or ())})
    found = _parsed(path, has_masks)
    pictures = _by_id(path, found, "images", {"file_name": str, **({"height": int, "width": int} if has_masks else {})})
    has_captions = any(isinstance(each, dict) and "caption" in each for each in found["annotations"][:1])
    fields = _fields(fields, _COCO, _COCO_OWN[::-1] if has_captions else ("boxes", "classes", "image_id"))
    categories = {} if has_captions else _by_id(path, found, "categories", {"name": str})
    ids = {each["name"]: number for number, each in sorted(categories.items())}
    if not has_captions and len(ids) < len(categories):
        raise DatasetError(f"{path} has two categories of one name: {', '.join(each['name'] for each in categories.values())}")
    for each in _listed_names(classes or ()):
        if each not in ids:
            raise ArgumentError(f"classes= names {each!r}, and {path} has: {', '.join(ids)}")
    boxes = Boxes(path, fields, _COCO_OWN, list(ids) if classes is None else classes)
    category_ids = {ids[each]: number for each, number in boxes.number.items()}
    if "keypoints" in fields:
        names = _skeleton(path, [categories[number] for number in category_ids])
        boxes.n_points, boxes.flip_indices = len(names), _flips_of(names) if flip_indices is None else _flip_indices(flip_indices, len(names))
    of = {number: [] for number in pictures}
    if ("captions" in fields) != has_captions:
        raise DatasetError(f"{path} has {'captions' if has_captions else 'no captions'}, and fields={fields!r}")
    for at, each in _listed(path, found, "annotations", {"image_id": int, **({"caption": str} if has_captions else {"bbox": list, "category_id": int})}):
        if each["image_id"] not in of:
            continue
        if has_captions:
            of[each["image_id"]].append(each["caption"])
        elif "crowd" in fields or not each.get("iscrowd"):
            if each["category_id"] not in categories:
                raise DatasetError(f"{path}: annotations[{at}] has the category {each['category_id']}, which the file does not have")
            box = _coco_box(boxes, path, at, each, category_ids)
            if box is not None:
                of[each["image_id"]].append(box)
    for number, picture in sorted(pictures.items()):
        if of[number] or empty:
            boxes.add(os.path.join(folder, picture["file_name"]), [] if has_captions else of[number], (picture.get("height"), picture.get("width")),
                      image_id=number, captions=of[number])
    return _data(DetectionRows(boxes, list(category_ids)), boxes,
                 {"workers": workers, "name": name, "version": version, "timeout": timeout, "keep": keep})


# ---- Pascal VOC ----


def _voc_objects(path):
    """The class of each object, whether it is difficult, and its box's sides as they are written."""
    try:
        return [((each.findtext("name") or "").strip(), (each.findtext("difficult") or "0").strip() not in ("", "0"),
                 [each.findtext(f"bndbox/{side}") or "" for side in ("xmin", "ymin", "xmax", "ymax")])
                for each in xml.parse(path).getroot().iterfind("object")]
    except (xml.ParseError, ValueError) as why:
        raise DatasetError(f"{path} is no XML: {why}") from None


def _voc_box(boxes, path, name, is_difficult, sides):
    try:
        left, top, right, bottom = map(float, sides)
    except ValueError:
        raise DatasetError(f"{path}: an object {name} has no bndbox of xmin, ymin, xmax and ymax") from None
    return {"boxes": boxes.box(path, left - 1, top - 1, right, bottom), "classes": boxes.number[name], "difficult": is_difficult}


def from_voc(annotations: str | os.PathLike, images: str | os.PathLike, *, names: str | os.PathLike | Sequence[str] | None = None,
             classes: Sequence[str] | None = None, difficult: bool = False, fields: Sequence[str] | None = None, empty: bool = True,
             workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, keep: float = 30.0) -> "Detection":
    """Pictures and boxes with annotations in Pascal VOC's form, a file of XML for each picture, for Loader.

        data = oa.from_voc("VOC2012/Annotations", "VOC2012/JPEGImages", names="VOC2012/ImageSets/Main/train.txt")
        loader = oa.Loader(data, pipeline, batch_size=16)
        for batch in loader: batch["image"], batch["boxes"][i], batch["classes"][i]

    annotations, images: the folders; files with the same name, without suffix, are one sample.
    names: the samples, in this order: a list, or a file with one name in each line (the rest after a blank is ignored).
        Default: all annotations, by name.
    classes: the names of those that are meant, in the order of their numbers; boxes of others are left out. Default: all
        that the annotations name, sorted; data.classes has them. Name them where names= is a part, so that parts agree.
    difficult: whether objects that are marked as difficult are boxes, too.
    fields: of boxes, classes and difficult (ragged uint8 [n]), what a batch has beside "image", in this order. Default: boxes
        and classes.
    empty: whether pictures without a box that is meant are samples, too.

    Boxes are float32 [n, 4]: left, top, right and bottom in pixels from 0. VOC counts pixels from 1 and includes the last, so 1
    is taken from xmin and ymin. They follow the pipeline as wrap() says. The other arguments are those of wrap().
    """
    trees, pictures = found_at(annotations, "from_voc()"), found_at(images, "from_voc()")
    trees = {each: path for each, path in trees.items() if path.lower().endswith(".xml")}
    names = list(trees) if names is None else names_of(names)
    refuse_missing(((annotations, trees), (images, pictures)), names)
    found = [_voc_objects(trees[each]) for each in names]
    known = sorted({name for objects in found for name, _, _ in objects} - {""})
    if classes is not None and known and not set(_listed_names(classes)) & set(known):
        raise ArgumentError(f"classes={classes!r}: none of them is annotated; there are: {', '.join(known)}")
    classes = known if classes is None else classes
    boxes = Boxes(annotations, _fields(fields, ("boxes", "classes", "difficult"), ("boxes", "classes")), (), classes)
    for each, objects in zip(names, found):
        meant = [_voc_box(boxes, trees[each], *one) for one in objects if one[0] in boxes.number and (difficult or not one[1])]
        if meant or empty:
            boxes.add(pictures[each], meant)
    return _data(DetectionRows(boxes), boxes, {"workers": workers, "name": name, "version": version, "timeout": timeout, "keep": keep})


# ---- YOLO ----


_YOLO = ("boxes", "classes", "mask", "mask_id", "class_mask", "keypoints")
_BEYOND = 0.01      # by which rounding may leave the picture
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".avif", ".jp2", ".j2k", ".jpx", ".jxl", ".heic", ".heif", ".tif", ".tiff", ".gif", ".bmp", ".dib", ".ppm", ".pgm", ".pbm", ".pnm")


class YOLORows(DetectionRows):
    """Boxes are parts of a picture, whose size is known when its bytes are."""

    def _placed(self, data, beside, path):
        import numpy as np
        height, width = size_of_picture(io.BytesIO(data), path)
        if "boxes" in beside:
            beside["boxes"] = beside["boxes"] * np.array([width, height, width, height], np.float32)
        if "keypoints" in beside:
            beside["keypoints"] = beside["keypoints"] * np.array([width, height, 1], np.float32)
        return {"image": data, **beside}


def _yolo_outlines(path, found):
    """Gives boxes their outlines; the picture's size, of which they are parts."""
    try:
        height, width = size_of_picture(path, path)
    except DatasetError:
        height, width = 1, 1        # a bad sample, which its pool will tell
    for box in found:
        outline = box["outline"]
        box["outline"] = outlines.of_coco([[part * (height if at % 2 else width) for at, part in enumerate(outline)]]) if outline else outlines.Bad(
            "this row is a box and no outline")
    return height, width


def _yolo_rows(path):
    with open(path, encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", line.split()
        except UnicodeDecodeError as why:
            raise DatasetError(f"{path} is no text: {why}") from None


def _yolo_pose(boxes, place, words, each):
    """A box, and of each key point x, y and, where each of them has three numbers, visibility."""
    if len(words) != 5 + boxes.n_points * each:
        raise DatasetError(f"{place}: a row is a class, its box's middle, width and height, and {boxes.n_points} key points of {each} numbers, by"
                           f" keypoints=; this has {len(words)} numbers")
    box = _yolo_box(boxes, place, [*words[:5]])
    try:
        values = [*map(float, words[5:])]
    except ValueError:
        values = [math.nan] * (len(words) - 5)
    points = [value for at in range(0, len(values), each) for value in (*values[at:at + 2], values[at + 2] if each == 3 else 1.0)]
    if not all(-_BEYOND <= value <= (2 if at % 3 == 2 else 1 + _BEYOND) for at, value in enumerate(points)):
        raise DatasetError(f"{place}: key points are x and y from 0 to 1, parts of the picture, and a visibility of 0, 1 or 2; this is"
                           f" {' '.join(words[5:])[:100]}")
    return {**box, "keypoints": points}


def _yolo_box(boxes, place, words):
    """Of class, middle, width and height, or of class and an outline."""
    try:
        number, values = int(words[0]), [*map(float, words[1:])]
    except ValueError:
        values = []
    if len(values) != 4 and (len(values) < 6 or len(values) % 2):
        raise DatasetError(f"{place}: a row is a class and its box's middle, width and height, or the points of an outline, as parts of the picture;"
                           f" this is {' '.join(words)[:100]}")
    if not 0 <= number < len(boxes.classes):
        raise DatasetError(f"{place}: class {number}, and classes= has {len(boxes.classes)}, from 0")
    if not all(-_BEYOND <= value <= 1 + _BEYOND for value in values):
        raise DatasetError(f"{place}: {' '.join(words)[:100]} is in pixels, or ends beyond the picture: numbers are parts of it, from 0 to 1")
    if len(values) == 4:
        (x, y, width, height), outline = values, None
        left, top, right, bottom = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    else:
        left, top, right, bottom, outline = min(values[::2]), min(values[1::2]), max(values[::2]), max(values[1::2]), values
    return {"boxes": boxes.box(place, left, top, right, bottom), "classes": number, "place": place, "outline": outline}


def from_yolo(labels: str | os.PathLike, images: str | os.PathLike, classes: Sequence[str] | Mapping[int, str], *,
              fields: Sequence[str] | None = None, keypoints: tuple[int, int] | None = None, flip_indices: Sequence[int] = (),
              empty: bool = True, workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
              keep: float = 30.0) -> "Detection":
    """Pictures and boxes with labels in YOLO's form, a text file for each picture, for Loader.

        data = oa.from_yolo("coco8/labels/train", "coco8/images/train", ["person", "bicycle", ...])
        loader = oa.Loader(data, pipeline, batch_size=16)
        for batch in loader: batch["image"], batch["boxes"][i], batch["classes"][i]

        data = oa.from_yolo("coco8-seg/labels/train", "coco8-seg/images/train", names, fields=["boxes", "classes", "mask", "mask_id"])
        data = oa.from_yolo("coco8-pose/labels/train", "coco8-pose/images/train", ["person"], keypoints=(17, 3), flip_indices=[0, 2, 1, ...])

    labels, images: the folders; files with the same name, without suffix, are one sample. A picture without a file of labels
        has no box.
    classes: the names, in the order of their numbers, or {number: name}: names of data.yaml.
    fields: of boxes, classes, mask, mask_id, class_mask and keypoints, what a batch has beside "image", as from_coco() has
        them. Default: boxes, classes and, with keypoints=, keypoints. Masks need an outline in each row, and the size of each
        picture is read at once.
    keypoints: of rows of poses how many key points each has, and of how many numbers: kpt_shape of data.yaml. A point of two
        numbers has visibility 1.
    flip_indices: for each key point which one it becomes where the picture is mirrored: flip_idx of data.yaml. Default: none
        changes, so that in a mirrored picture the left eye is where the right one is to be.
    empty: whether pictures without a box are samples, too.

    A row is a class and a box's middle, width and height, or the points of an outline, all as parts of the picture. A batch has
    boxes in pixels, float32 [n, 4]: left, top, right and bottom. They follow the pipeline as wrap() says. Pillow reads the size of a picture; one that EXIF turns is a bad sample. The other arguments are those of wrap().
    """
    needs("PIL.Image", "from_yolo()", "pillow")
    texts, pictures = found_at(labels, "from_yolo()"), found_at(images, "from_yolo()")
    texts = {each: path for each, path in texts.items() if path.endswith(".txt")}
    pictures = {each: path for each, path in pictures.items() if path.lower().endswith(_PICTURES)}
    if isinstance(classes, Mapping):
        if sorted(classes) != [*range(len(classes))]:
            raise ArgumentError(f"classes={classes!r}: numbers go from 0 to {len(classes) - 1}")
        classes = [classes[number] for number in range(len(classes))]
    if keypoints is not None and (not isinstance(keypoints, Sequence) or len(keypoints) != 2 or keypoints[1] not in (2, 3)
                                  or not isinstance(keypoints[0], int) or keypoints[0] < 1):
        raise ArgumentError(f"keypoints={keypoints!r}: how many a box has, and of how many numbers, 2 or 3: (17, 3), kpt_shape of data.yaml")
    boxes = Boxes(labels, _fields(fields, _YOLO if keypoints else _YOLO[:-1], ("boxes", "classes", *(["keypoints"] if keypoints else []))), (), classes)
    make = _yolo_box
    if keypoints:
        boxes.n_points, boxes.flip_indices = keypoints[0], _flip_indices(flip_indices, keypoints[0])
        make = functools.partial(_yolo_pose, each=keypoints[1])
    for each, path in pictures.items():
        found = [make(boxes, place, words) for place, words in _yolo_rows(texts[each])] if each in texts else []
        if found or empty:
            boxes.add(path, found, _yolo_outlines(path, found) if boxes.masks else None)
    if not any(each in pictures for each in texts):
        raise DatasetError(f"no file of {labels} has the name of one of {images}")
    return _data(YOLORows(boxes), boxes, {"workers": workers, "name": name, "version": version, "timeout": timeout, "keep": keep})
