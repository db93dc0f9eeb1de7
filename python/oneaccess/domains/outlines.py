# SPDX-License-Identifier: Apache-2.0
"""Outlines of objects, as COCO and Ultralytics write them, to masks: pixel by pixel what pycocotools' annToMask() makes of them.

pycocotools walks along a polygon in fifths of pixels and notes where it crosses the middle of a column (rleFrPoly). Between such
crossings of a column, pixels belong to the object or do not, in turn. Here, too, a part of an outline is a list of these places, counted
down one column after the other; what COCO calls runs (RLE) are the same."""

import array
import itertools

from ..sources.tables import needs

_SCALE = 5                  # rleFrPoly's: what follows are its sums
_MOST_SIDE = 1 << 16        # of a picture; no coordinate is further away


class Bad(ValueError):
    """What is wrong with an outline."""


NONE = Bad("it has no segmentation: a list of polygons, or size and counts")


# ---- as they are written ----


def polygon(values):
    """The corners, in fifths of pixels, as bytes of 32 bits."""
    np = needs("numpy", "a mask of outlines")
    try:
        corners = np.asarray(values, np.float64)
    except (ValueError, TypeError):
        raise Bad("a polygon is a list of numbers: x, y, x, y, ...") from None
    if corners.ndim != 1 or len(corners) < 6 or len(corners) % 2:
        raise Bad(f"a polygon of {len(corners) if corners.ndim else 0} numbers: it has at least three points, x, y, x, y, x, y")
    if not (np.abs(corners) < _MOST_SIDE).all():
        raise Bad(f"a polygon has a point more than {_MOST_SIDE:,} pixels away")
    return (_SCALE * corners + .5).astype(np.int32).tobytes()


def _runs_of_text(text, most):
    """Numbers of five bits a character, the lowest first, each but the first three less the last but one."""
    runs, at = [], 0
    while at < len(text):
        value, shift, has_more = 0, 0, True
        while has_more:
            if at == len(text) or not 0 <= ord(text[at]) - 48 < 64 or shift > 30:
                raise Bad("its counts are no compressed runs")
            part = ord(text[at]) - 48
            at, value, shift, has_more = at + 1, value | (part & 31) << shift, shift + 5, bool(part & 32)
            if not has_more and part & 16:
                value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        if not 0 <= runs[-1] <= most:
            raise Bad("its counts are no compressed runs")
    return runs


def runs(found):
    """Height, width, and where runs end, as bytes of 32 bits."""
    size, counts = found.get("size"), found.get("counts")
    if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int and 0 < side < _MOST_SIDE for side in size) or size[0] * size[1] >= 1 << 31:
        raise Bad("the size of runs is [height, width]")
    most = size[0] * size[1]
    if isinstance(counts, str):
        counts = _runs_of_text(counts, most)
    if not isinstance(counts, list) or not all(type(count) is int and 0 <= count <= most for count in counts) or sum(counts) != most:
        raise Bad(f"counts of runs are whole numbers, or a text of such, that together are height x width, {size[0]} x {size[1]}")
    return *size, array.array("i", itertools.accumulate(counts)).tobytes()


def of_coco(found):
    """A segmentation: a list of polygons, or runs. What is wrong with it is told when its place is known."""
    try:
        if isinstance(found, dict):
            return runs(found)
        if not isinstance(found, list) or not found:
            raise NONE
        return [polygon(each) for each in found]
    except Bad as why:
        return why


class Outlines:
    """Of all boxes, one behind the other: each has one or more parts, which are polygons or runs."""

    def __init__(self):
        self.values, self.ends, self.are_runs, self.starts = array.array("i"), array.array("q", [0]), bytearray(), array.array("q", [0])

    def _part(self, data, are_runs):
        self.values.frombytes(data)
        self.ends.append(len(self.values))
        self.are_runs.append(are_runs)

    def add(self, found, height, width):
        """Of a picture of that size; found: of of_coco()."""
        if isinstance(found, Bad):
            raise found
        if isinstance(found, list):
            for data in found:
                self._part(data, False)
        elif found[:2] != (height, width):
            raise Bad(f"the size of its runs is {found[0]} x {found[1]}, and its picture's {height} x {width} (height, width)")
        else:
            self._part(found[2], True)
        self.starts.append(len(self.are_runs))

    def places(self, box, height, width):
        """Of each part of a box: where pixels of it begin and end, ascending."""
        np = needs("numpy", "a mask of outlines")
        for part in range(self.starts[box], self.starts[box + 1]):
            values = np.frombuffer(self.values, np.int32)[self.ends[part]:self.ends[part + 1]].astype(np.int64)
            yield values if self.are_runs[part] else crossings(values.reshape(-1, 2), height, width)


# ---- to pixels ----


def crossings(corners, height, width):
    """Where a polygon crosses middles of columns; corners in fifths of pixels."""
    np = needs("numpy", "a mask of outlines")
    after, edges = np.roll(corners, -1, 0), np.arange(len(corners))
    across, down = np.abs(after - corners).T
    along = (down > across).astype(np.int64)        # the axis that steps of one fifth go along
    is_back = corners[edges, along] > after[edges, along]
    begin, end = np.where(is_back[:, None], after, corners), np.where(is_back[:, None], corners, after)
    steps = np.maximum(across, down)
    slope = (end[edges, 1 - along] - begin[edges, 1 - along]) / np.maximum(steps, 1)
    edge, ends = np.repeat(edges, steps + 1), np.cumsum(steps + 1)
    step = np.arange(len(edge)) - (ends - steps - 1)[edge]
    step = np.where(is_back[edge], steps[edge] - step, step)
    points, each = np.empty((len(edge), 2), np.int64), np.arange(len(edge))
    points[each, along[edge]] = begin[edge, along[edge]] + step
    points[each, 1 - along[edge]] = (begin[edge, 1 - along[edge]] + slope[edge] * step + .5).astype(np.int64)
    x, y = points.T
    moved = np.flatnonzero(x[1:] != x[:-1])
    column = np.where(x[moved + 1] < x[moved], x[moved + 1], x[moved + 1] - 1)
    are_middles = (column % _SCALE == _SCALE // 2) & (column >= 0) & (column < _SCALE * width)
    row = np.minimum(y[moved], y[moved + 1])[are_middles]
    row = np.ceil(np.clip((row + .5) / _SCALE - .5, 0, height)).astype(np.int64)
    return np.sort(column[are_middles] // _SCALE * height + row)


def _part_covers(places, end):
    """The place of the first pixel, and which from there on belong to it; None: none."""
    np = needs("numpy", "a mask of outlines")
    if len(places) % 2:
        places = np.append(places, end)
    if len(places) == 0:
        return None
    return places[0], np.repeat(np.arange(len(places) - 1) % 2 == 0, np.diff(places))


def covers(parts, end):
    """The same of all parts of an outline together."""
    np = needs("numpy", "a mask of outlines")
    found = [each for each in (_part_covers(part, end) for part in parts) if each is not None]
    if len(found) < 2:
        return found[0] if found else (0, np.zeros(0, bool))
    begin = min(at for at, _ in found)
    together = np.zeros(max(at + len(pixels) for at, pixels in found) - begin, bool)
    for at, pixels in found:
        together[at - begin:at - begin + len(pixels)] |= pixels
    return begin, together


def paint(outlines, boxes, numbers, height, width):
    """A mask with the number of each of these boxes where its outline is, and 0 elsewhere. Where several are, that with fewer pixels is
    seen, of equal ones the first."""
    np = needs("numpy", "a mask of outlines")
    covered = [covers(outlines.places(box, height, width), height * width) for box in boxes]
    canvas = np.zeros(height * width, np.uint8 if max(numbers, default=0) < 256 else np.uint16)
    for at in sorted(range(len(covered)), key=lambda at: (-int(covered[at][1].sum()), -at)):
        begin, pixels = covered[at]
        canvas[begin:begin + len(pixels)][pixels] = numbers[at]
    return np.ascontiguousarray(canvas.reshape(width, height).T)
