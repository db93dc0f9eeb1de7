# SPDX-License-Identifier: Apache-2.0
"""Batches, as a loop gets them."""

import array

from . import columns, flat, nested, ragged, rows
from .errors import TransformError
from .masks import is_image, is_measured
from .transforms import FIRST_FIELD, sides_of


class Batch(tuple):
    """A batch, as a tuple of arrays: ``images, labels = batch``.

    The first dimension of each array is the samples. Images are a view of shared memory, which lives as long as any array of it;
    what is written to it is private. Labels are private.
    """

    ids: object         # of the samples in the data set: a memoryview of int64
    epoch: int          # from 0
    step: int           # from 0 in each epoch
    is_last: bool       # of its epoch
    substituted: int    # samples that are another sample, as theirs was bad

    def __repr__(self):
        shapes = ", ".join(str(tuple(getattr(array, "shape", ()))) for array in self.arrays())
        place = f" {self.step} of epoch {self.epoch}" if hasattr(self, "step") else ""  # a tree of arrays has none
        return f"<Batch{place}: {shapes}>"

    def arrays(self):
        """The arrays, as a plain tuple."""
        return tuple(self)

    def __reduce__(self):
        """For pickle and copy.deepcopy(), after which the arrays are one's own."""
        facts = vars(self).items()
        numbers = {name: array.array(fact.format, fact.tolist()) for name, fact in facts if isinstance(fact, memoryview)}
        arrays = list(self.items()) if isinstance(self, dict) else list(self)
        return _restored, (type(self), arrays, {name: fact for name, fact in facts if name not in numbers}, numbers)


class DictBatch(dict):
    """A Batch of samples that are dicts: ``batch["name"]``."""

    __repr__, __reduce__ = Batch.__repr__, Batch.__reduce__

    def arrays(self):
        return tuple(self.values())

    ids: object
    epoch: int
    step: int
    is_last: bool
    substituted: int


def _restored(cls, arrays, facts, numbers):
    """A batch that was pickled."""
    batch = cls(arrays)
    vars(batch).update(facts, **{name: memoryview(some) for name, some in numbers.items()})
    return batch


def _views_of(ops):
    """[(name, view)] of the fields of views, in a batch's order: the pictures, then what begins with an op of its own, and what that has behind it; None: what
    nobody is shown."""
    own = {}
    try:
        for op in ops:
            if op["op"] == "view":
                names = op["names"]
                own.update({name: [] for name in names})
            for name in names if own else ():
                own[name].append(op["op"])
    except (KeyError, TypeError):
        return []
    sides = sides_of(ops)
    made = [(name, name) for name in own if name not in sides]
    for name, first in sides.items():
        rest = [f"{name}_length"] if first in FIRST_FIELD else [f"{name}_grid", None] if "patches" in own[name] else []
        made += [(field, name) for field in (name, *rest)]
    return made


def _third_of(ops):
    """(the first field's name, that of a third one behind it and label): of clips their lengths, of patches their grids; or None."""
    names = [op["op"] for op in ops]
    if names and names[0] in FIRST_FIELD:
        return FIRST_FIELD[names[0]], "length"
    return ("image", "grid") if "patches" in names else None


def named(made, batch, ids):
    """With what is known of it."""
    made.ids = memoryview(ids).cast("q")
    made.epoch = batch.epoch
    made.step = batch.step
    made.is_last = batch.is_last
    made.substituted = batch.substituted
    return made


def as_ragged(array, lengths, kind):
    return array if lengths is None else ragged.Ragged(array, lengths, kind == "text")


class Shape:
    """What the arrays of a batch become: a tuple, or a dict of the fields' names.

    layout: that of a data set of features; None: of files with a label."""

    def __init__(self, ops, layout, wrapped, ragged):
        self._layout, self._wrapped, self._ragged = layout, wrapped, ragged
        views, self._third = _views_of(ops), _third_of(ops)
        files = {} if layout is None else {name for name, code in layout.get("masks", {}).items() if is_image(code)}
        self._views = [name for name, view in views if name != view or name not in files]       # those have a field already
        for name in self._views:
            if layout is not None and name in layout["names"]:
                raise TransformError(f"view {name} has the name of a field of the data set's samples: name the field by images=, if it is an image, or give"
                                     " the view another name, as views(first, other=pipeline) does")
        masks = {} if layout is None else layout.get("masks", {})
        self._views[:0] = [f"{name}_valid" for name in (layout or {}).get("names", ()) if name in masks and is_measured(masks[name])]    # in front of them

    def is_own(self, field):
        """Labels and numbers are the job's own."""
        return (len(field.shape) == 1 or (self._layout is None and field.name == "label")
                or (field.name == "grid" and self._third == ("image", "grid")))

    def made(self, arrays, as_, is_cut, is_rows):
        """A batch of arrays. is_cut: to what this batch has, where samples differ. is_rows: they are rows of numbers, and no features."""
        layout, views = self._layout, [*zip(self._views, arrays[len(arrays) - len(self._views):])]
        views = [view for view in views if view[0] is not None]
        if layout is None:
            names = (self._third[0], "label", self._third[1]) if self._third else ("image", "label")
            arrays = arrays[:len(names)] if self._third else arrays     # behind grids the patches' lengths, which are known
            return DictBatch([*zip(names, arrays), *views]) if views else Batch(arrays)
        if self._third:
            first, label, third, *beside = arrays
            arrays = [first, label, *(beside[1:] if self._third[1] == "grid" else beside)]
            views = [(self._third[1], third), *views]
        arrays = [arrays[at] for at in layout.get("places", range(len(layout["fields"])))]
        if is_rows:
            views = rows.shaped(arrays, layout, as_)
            return Batch(arrays) if views is None else DictBatch(views)
        names = layout["names"]
        if self._wrapped is not None and self._wrapped.nested:
            names, arrays = nested.joined(names, arrays, self._wrapped.nested, layout["texts"])
        for at, name in enumerate(names):
            if name in self._ragged:
                arrays[at] = getattr(arrays[at], self._ragged[name])()
        dataset = None if self._wrapped is None else self._wrapped.dataset
        if isinstance(dataset, columns.Columns) and is_cut:
            arrays = columns.cut(arrays, names, dataset.pads)
        if getattr(dataset, "together", 1) > 1 and is_cut:
            arrays = [array.reshape(-1, *array.shape[2:]) for array in arrays]
        if layout.get("form"):
            arrays = flat.formed(layout["form"], dict(zip(names, arrays)))
            names, arrays = (arrays.keys(), arrays.values()) if layout["kind"] == "dict" else (names, arrays)
        if layout["kind"] == "dict":
            return DictBatch([*zip(names, arrays), *(view for view in views if view[0] not in names)])
        return Batch([*arrays, *(view for _, view in views)])
