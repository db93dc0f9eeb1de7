# SPDX-License-Identifier: Apache-2.0
"""Volumes and their labels as the Medical Segmentation Decathlon lists them, in dataset.json, which MONAI reads, too."""

import json
import os

from .. import urls
from ..errors import ArgumentError, DatasetError, not_there
from ..masks import Mask, following
from ..sources.folders import Files, FolderRows
from ..sources.members import Field
from ..wrapped import Wrapped, wrap


def _cases(path, part):
    """[(image, label or None)] as the list has them."""
    with open(path, encoding="utf-8") as file:
        try:
            lists = json.load(file)
        except ValueError as why:
            raise DatasetError(f"{path} is no JSON: {why}") from None
    parts = [name for name, cases in lists.items() if isinstance(cases, list) and cases] if isinstance(lists, dict) else []
    if part not in parts:
        raise DatasetError(f"{path} has no list of cases {part!r}; its lists are: {', '.join(parts) or 'none'}")
    cases = [(case, None) if isinstance(case, str) else (case.get("image"), case.get("label")) if isinstance(case, dict) else (None, None)
             for case in lists[part]]
    kinds = {tuple(map(type, case)) for case in cases}
    if kinds not in ({(str, str)}, {(str, type(None))}):
        raise DatasetError(f"{path}: each case of {part!r} is to be a file, or {{\"image\": file, \"label\": file}}, and all of one kind")
    return cases


class _CaseRows(FolderRows):
    """The files of a case, relative to the list's folder."""

    def __init__(self, path, part):
        folder, columns = os.path.dirname(path), [*zip(*_cases(path, part))]
        columns = columns if columns[1][0] is not None else columns[:1]
        self.makers, self.names = {}, [os.path.normpath(name) for name in columns[0]]
        self.fields = [Field(name, "*") for name in ("image", "mask")[:len(columns)]]
        try:
            self.files = [Files([os.path.join(folder, name) for name in column]) for column in columns]
        except FileNotFoundError as why:
            raise not_there(f"{path} names {why.filename}, which is not there", why.filename) from None


def from_decathlon(path: str | os.PathLike, part: str = "training", *, mask: Mask | None = None, workers: int | None = None, name: str | None = None,
                   version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Volumes and labels that a dataset.json lists, as in the Medical Segmentation Decathlon and for MONAI's load_decathlon_datalist().

        data = oa.from_decathlon("/data/Task09_Spleen")
        pipeline = oa.Compose([t.Volume(clamp=(-160, 240), fill=-160), t.RandomCropByLabel(96), t.Normalize(-160, 400)])
        for batch in oa.Loader(data, pipeline, batch_size=2): batch["image"], batch["mask"]

    path: the folder, or the file. part: which of its lists: "training", "validation", "test". A list without labels gives images alone.
    mask: how labels become a field, oneaccess.Mask(fill=..., dtype=...). Files are relative to the list's folder. Cases of several
    images are refused. The other arguments are those of wrap().
    """
    if mask is not None and not isinstance(mask, Mask):
        raise ArgumentError(f"mask is {mask!r}: give oneaccess.Mask(fill=..., dtype=...)")
    path = urls.local(path, "from_decathlon()")
    rows = _CaseRows(os.path.join(path, "dataset.json") if os.path.isdir(path) else path, part)
    return wrap(rows, name=name, version=version, workers=workers, timeout=timeout, random=False, room=room, keep=keep,
                masks=following({"mask": mask or Mask()} if len(rows.fields) > 1 else None, None))
