# SPDX-License-Identifier: Apache-2.0
"""Shards whose samples are fields of any number and type, as accessd itself takes them apart: its workers pick members out of a sample's
bytes (members of oneaccess-pipeline(5)), and no process of Python's has a part in it."""

import copy
import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from . import record
from .errors import ArgumentError
from .masks import codes
from .wrapped import pipeline_of

_LABELS = ("label", "labels", "class", "cls", "target", "y")


class Direct(NamedTuple):
    """Shards that accessd reads: the path and options of a Loader of them, what samples are like (record.describe()), the pipeline's
    first op's part, and the fields that are boxes and what has a row for each."""

    path: str
    source: dict
    layout: dict
    op: dict
    boxes: Sequence[str]

    def text(self, pipeline: str | None) -> str:
        """For accessd, of the job's pipeline or of none: what is to be picked, and what becomes of it."""
        spec = json.loads(pipeline_of(pipeline, self.layout, False, self.boxes))
        op = spec["ops"][0]
        op.pop("source", None)
        op.update(self.op)
        return json.dumps(spec, separators=(",", ":"))


class Picked:
    """Of a from_...() of shards, for Loader. members: {field of a batch: the member that it is made of}; sample: {field: value}, one as
    Python has it, which says what all are like. own_labels: shards may be asked for a label, which is then the class."""

    def __init__(self, path: str | os.PathLike, source: Mapping[str, Any], members: Mapping[str, str], sample: Mapping[str, Any], *,
                 ragged: Mapping[str, int] | None = None, boxes: str | Sequence[str] | None = None, masks: Any = None, own_labels: bool = True):
        self.path, self.source, self.members, self.sample = os.path.expanduser(os.fspath(path)), dict(source), dict(members), dict(sample)
        self.ragged, self.masks, self.own_labels, self.sides = dict(ragged or {}), codes(masks or {}), own_labels, ()
        self.boxes = [boxes] if isinstance(boxes, str) else list(boxes or ())
        for name in self.boxes:
            if name not in self.ragged:
                raise ArgumentError(f"boxes= names {name!r}, which is not among ragged={self.ragged}: boxes differ in number")

    def __repr__(self):
        return f"<{', '.join(self.members)} of {self.path}>"

    def beside(self, sides: Collection[str]) -> "Picked":
        """The same, whose fields of these names a pipeline's views decode."""
        made = copy.copy(self)
        made.sides = sides
        return made

    def direct(self, pictures: bool) -> Direct:
        """With a pipeline the first field is the picture, and a class behind it the shards' label."""
        layout, source = record.describe(dict(self.sample), pictures, self.ragged, False, self.masks, self.sides), dict(self.source)
        names = layout["names"]
        first = len(names) - layout["beside"] if pictures else 0
        if first == 2:
            if self.own_labels and names[1] in _LABELS and ":" not in self.members[names[1]]:
                source["label"] = self.members[names[1]]
            else:
                first = 1
                layout.update(beside=len(names) - 1, places=[0, *range(2, len(names) + 1)])
        members = [self.members[name] for at, name in enumerate(names) if at >= first or at == 0]
        return Direct(self.path, source, layout, {"members": members}, self.boxes)
