# SPDX-License-Identifier: Apache-2.0
"""Shards whose samples are fields of any number and type, as accessd itself takes them apart: its workers pick members out of a sample's
bytes (members of oneaccess-pipeline(5)), and no process of Python's has a part in it."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import record
from .errors import ArgumentError
from .masks import codes
from .transforms import Op
from .wrapped import ops_of

_LABELS = ("label", "labels", "class", "cls", "target", "y")


class Picked:
    """Of a from_...() of shards, for Loader. members: {field of a batch: the member that it is made of}; sample: {field: value}, one as
    Python has it, which says what all are like."""

    def __init__(self, path: str | os.PathLike, source: Mapping[str, Any], members: Mapping[str, str], sample: Mapping[str, Any], *,
                 ragged: Mapping[str, int] | None = None, boxes: str | Sequence[str] | None = None, masks: Any = None,
                 columns: str | None = None):
        self.path, self.source, self.members, self.sample = os.path.expanduser(os.fspath(path)), dict(source), dict(members), dict(sample)
        self.ragged, self.masks, self.columns = dict(ragged or {}), codes(masks), columns
        self.boxes = [boxes] if isinstance(boxes, str) else list(boxes or ())
        for name in self.boxes:
            if name not in self.ragged:
                raise ArgumentError(f"boxes= names {name!r}, which is not among ragged={self.ragged}: boxes differ in number")

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self):
        return f"<{', '.join(self.members)} of {self.path}>"

    def of(self, pictures: bool) -> "Layout":
        return Layout(self, pictures)


class Layout(dict):
    """What a batch has, as a pool says it of wrap(): with a pipeline the first field is the picture, and a class behind it the shards' label."""

    def __init__(self, picked: Picked, pictures: bool):
        super().__init__(record.describe(dict(picked.sample), pictures, picked.ragged, False, picked.masks))
        self._picked, self._pictures = picked, pictures
        names = list(picked.members)
        has_label = (pictures and len(names) > 1 and names[1] in _LABELS and ":" not in picked.members[names[1]]
                     and self["fields"][1] == [record.I64] and self["kinds"][1] == record.DENSE)
        self._first = pictures + has_label
        self["places"] = [*range(self._first), *range(2 * pictures, 2 * pictures + len(names) - self._first)]
        self.source = dict(picked.source)
        if has_label:
            self.source["label"] = picked.members[names[1]]

    def text(self, pipeline: str | None) -> str:
        """The pipeline for accessd: what is to be picked, and what becomes of it."""
        picked, names = self._picked, self["names"]
        members = list(picked.members.values())
        about = {"members": [*members[:self._pictures], *members[self._first:]], "fields": self["fields"][self._first:],
                 "kinds": self._kinds()[self._first:]}
        if picked.columns is not None:
            about["columns"] = picked.columns
        colors = next((mask[2] for mask in self["masks"].values()), None)
        if colors:
            about["colors"] = colors
        taken = {"index", "image", "label"} if self._pictures else {"index"}
        if all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,22}", name) and name not in taken for name in names[self._first:]):
            about["names"] = names[self._first:]
        if not self._pictures:
            return json.dumps({"ops": [Op("record", **about).spec()]}, separators=(",", ":"))
        ops = ops_of(pipeline)
        ops[0] = {**ops[0], **{word: value for word, value in about.items() if value}}
        return json.dumps({"ops": ops}, separators=(",", ":"))

    def _kinds(self):
        """3: boxes that follow the picture; 4: a row for each box."""
        roles = {name: 4 if at else 3 for at, name in enumerate(self._picked.boxes)} if self._pictures else {}
        return [roles.get(name, kind) for name, kind in zip(self["names"], self["kinds"])]
