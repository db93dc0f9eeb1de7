# SPDX-License-Identifier: Apache-2.0
"""Key points: fields whose places follow the picture, as boxes do."""

import operator
from collections.abc import Sequence

from .errors import ArgumentError


class Points(str):
    """The name of a field of key points, for boxes= of wrap(): boxes=["boxes", "classes", oa.Points("keypoints", flip_indices)].

    The field is ragged, float32 [n, k, 3] or, as COCO writes it, [n, 3 k]: x, y and visibility (0: none, 1: hidden, 2: seen) of
        each. Beside boxes it has a row for each box and goes with it; without boxes no row is removed.
    flip_indices: for each point of a row, from 0, which one it becomes where the picture is mirrored, as the left eye the right
        one: [0, 2, 1, ...]; flip_idx of Ultralytics' data.yaml. Default: none changes.
    """

    flip_indices: tuple[int, ...]

    def __new__(cls, name: str, flip_indices: Sequence[int] = ()):
        self = super().__new__(cls, name)
        try:
            self.flip_indices = tuple(map(operator.index, flip_indices))
        except TypeError:
            self.flip_indices = (-1,)
        if any(not 0 <= other < len(self.flip_indices) or self.flip_indices[other] != at for at, other in enumerate(self.flip_indices)):
            raise ArgumentError(f"flip_indices={flip_indices!r}: a list with a number from 0 for each point of a row, so that two become each other")
        return self


def boxes_of(boxes):
    """Which of the fields that boxes= names has the boxes themselves; None: none has."""
    names = [boxes] if isinstance(boxes, str) else boxes or ()
    return next((name for name in names if not isinstance(name, Points)), None)


def points_of(boxes):
    """The same of key points."""
    names = [name for name in ([boxes] if isinstance(boxes, str) else boxes or ()) if isinstance(name, Points)]
    if len(names) > 1:
        raise ArgumentError(f"boxes= names the key points {', '.join(map(repr, names))}: a sample has one field of them, so put these into one")
    return names[0] if names else None
