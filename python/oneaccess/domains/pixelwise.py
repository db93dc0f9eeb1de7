# SPDX-License-Identifier: Apache-2.0
"""What was measured of an image's pixels: optical flow, disparity, depth and normals, which follow the image, and pairs of frames with flow between."""

import os
from collections.abc import Sequence

from ..errors import ArgumentError, DatasetError
from ..masks import Measured, following
from ..sources.folders import Files, FolderRows, found_at, names_of, shown
from ..sources.members import Field
from ..wrapped import Wrapped, wrap


class Flow(Measured):
    """Optical flow beside an image, for masks= of wrap(): float32 [2, H, W], u and v in pixels of the batch's image.

        data = oa.wrap(dataset, images="next", masks={"flow": oa.Flow()})
        for batch in oa.Loader(data, pipeline, batch_size=8): batch["image"], batch["next"], batch["flow"], batch["flow_valid"]

    A file: .flo, .pfm (of three channels the third is left out), KITTI's PNG of 16 bits ((number - 2^15) / 64, and whether it was measured), TIFF or .npy
    of floats; or an array [2, H, W] or [H, W, 2]. Of the image's size. What is NaN or 1e9 and more was not measured.

    It follows the image's crops, flips, resizes, padding and rotations with the same draws, and vectors change with it: a resize multiplies u by the
    widths' ratio and v by the heights', flips negate, rotations and affine maps turn. flow_valid, bool [H, W], says which pixels were measured;
    others, also outside of the image, are 0 in flow. RandomPerspective and ElasticTransform are refused.

    nearest: False (default): a resize has the image's filter, and a pixel that an unmeasured one has a part in was not measured. True: nearest, as
        sparse flow (KITTI, HD1K) needs it.
    """

    _what = 3

    def __init__(self, nearest: bool = False):
        super().__init__(nearest)


class Disparity(Measured):
    """Disparity beside the left image of a stereo pair, for masks= of wrap(): float32 [1, H, W], in pixels of the batch's image, above 0.

    As Flow: with NAME_valid, bool [H, W]. A resize multiplies it by the widths' ratio. Files are .pfm, KITTI's PNG of 16 bits (number / 256), Sintel's PNG of
    three channels, TIFF or .npy. 0, NaN and infinity were not measured; numbers below 0 lose their sign, as torchvision has it. Left to right flips and
    rotations are refused: in a mirror the right image is the left one.

    nearest: as of Flow, for sparse disparity (KITTI). divisor: a whole number that the file's numbers are divided by: 32 of CREStereo's PNG. Default: 256
        in a PNG of 16 bits, else 1.
    """

    _what = 2

    def __init__(self, nearest: bool = False, divisor: int | None = None):
        super().__init__(nearest, divisor)


class Depth(Measured):
    """Depth beside an image, for masks= of wrap(): float32 [1, H, W], in the file's unit.

    As Flow: with NAME_valid, bool [H, W]. The image's ops put it elsewhere, all that masks follow, and change no number. Files are PNG and TIFF of 16 bits or
    floats, .npy, .pfm, Sintel's .dpt; or an array [H, W]. 0, below 0, NaN and infinity were not measured.

    nearest: True (default): a resize makes no depth of two others. False: it has the image's filter. divisor: a whole number that the file's numbers are
        divided by: 1000 where a PNG has millimetres, 256 of KITTI, 5000 of TUM.
    """

    _what = 1

    def __init__(self, nearest: bool = True, divisor: int | None = None):
        super().__init__(nearest, divisor)


class Normals(Measured):
    """Normals of surfaces beside an image, for masks= of wrap(): float32 [3, H, W]; x is across and y down, or up.

    As Flow: with NAME_valid, bool [H, W]. Flips negate x or y; resizes do not change lengths. Files are .npy, .pfm or TIFF of three floats; or an array [3, H, W] or
    [H, W, 3]. NaN, infinity and 0, 0, 0 were not measured. Rotations and bends are refused.

    nearest: as of Depth. With False normals are averages, which are shorter than 1.
    """

    _what = 4

    def __init__(self, nearest: bool = True):
        super().__init__(nearest)


# ---- pairs of frames ----


def _by_scene(found):
    """{scene: paths in the order of frames}, of what found_at() gives."""
    scenes = {}
    for name in sorted(found):
        scenes.setdefault(name.rpartition("/")[0], []).append(found[name])
    return scenes


class FlowRows(FolderRows):
    """Frames that follow each other in a scene, and the flow between them."""

    def __init__(self, frames, flow, backward, scenes):
        of_frames, of_flow = _by_scene(found_at(frames, "from_flow()")), None
        if flow is not None:
            found = found_at(flow, "from_flow()")
            is_of_scenes = os.fspath(flow).count("*") < os.fspath(frames).count("*")
            of_flow = {name: [path] for name, path in found.items()} if is_of_scenes else _by_scene(found)
        chosen = sorted(of_frames) if scenes is None else names_of(scenes)
        missing = [scene for scene in chosen if scene not in of_frames or (of_flow is not None and scene not in of_flow)]
        if missing:
            raise DatasetError(f"from_flow(): no frames or no flow for scene {shown(missing)}, of {len(chosen):,}: scenes= is a list of those that are meant")
        rows = [row for scene in chosen for row in self._pairs(scene, of_frames[scene], None if of_flow is None else of_flow[scene], backward)]
        if not rows:
            raise DatasetError(f"{os.fspath(frames)}: no scene has two frames")
        self.makers, self.fields = {}, [Field(name, "*") for name in ("image", "next", "flow")[:len(rows[0])]]
        self.files = [Files(column) for column in zip(*rows)]
        self.names = self.files[0].paths

    @staticmethod
    def _pairs(scene, frames, flow, backward):
        pairs = list(zip(frames, frames[1:]))
        if backward:
            pairs = [(later, first) for first, later in pairs]
        if flow is None:
            return pairs
        if len(flow) not in (len(frames), len(frames) - 1):
            raise DatasetError(f"scene {scene} has {len(frames)} frames and {len(flow)} files of flow: one for each frame, or for each but the last (or, with"
                               " backward=True, the first)")
        of_pairs = flow[len(flow) - len(pairs):] if backward else flow[:len(pairs)]
        return [(*pair, each) for pair, each in zip(pairs, of_pairs)]


def from_flow(frames: str | os.PathLike, flow: str | os.PathLike | None = None, *, kind: Flow | None = None, backward: bool = False,
              scenes: str | os.PathLike | Sequence[str] | None = None, workers: int | None = None, name: str | None = None, version: str = "",
              timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Pairs of frames that follow each other, and the optical flow from the first to the second, for Loader.

        data = oa.from_flow("Sintel/training/clean/*/*.png", "Sintel/training/flow/*/*.flo")
        pipeline = oa.Compose([t.RandomResizedCrop((368, 768), scale=(0.4, 1)), t.RandomHorizontalFlip(), t.ToTensor()])
        for batch in oa.Loader(data, pipeline, batch_size=8): batch["image"], batch["next"], batch["flow"], batch["flow_valid"]

    frames: a pattern: the last star is the frame, all before it are the scene. Or a folder of scenes' folders. Frames of a scene are sorted by name, and each one
        with the next is a sample; no sample is of two scenes.
    flow: the same of flow, sorted likewise: the first file is of the first pair. There are as many as frames, or one less. Or a pattern without the frame's
        star, where a scene has one file. Default: there is none.
    kind: how flow is resized, oneaccess.Flow(nearest=...). Default: by nearest where files are .png (KITTI, HD1K), else by the image's filter.
    backward: the flow is from a frame to the one before it: image is the later one.
    scenes: those that are meant, in this order: a list, or a file with one in each line. Default: all.

    "next" follows the image, as images= of wrap() says; "flow" as Flow says. The other arguments are those of wrap().
    """
    if kind is not None and not isinstance(kind, Flow):
        raise ArgumentError(f"kind is {kind!r}: give oneaccess.Flow(nearest=...)")
    rows = FlowRows(frames, flow, backward, scenes)
    if kind is None:
        kind = Flow(nearest=rows.files[-1].paths[0].lower().endswith(".png"))
    return wrap(rows, name=name, version=version, workers=workers, timeout=timeout, random=False, room=room, keep=keep,
                masks=following({"flow": kind} if flow is not None else None, "next"))
