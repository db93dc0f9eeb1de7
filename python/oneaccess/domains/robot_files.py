# SPDX-License-Identifier: Apache-2.0
"""The files of a data set of LeRobot's, of versions 2.0, 2.1 and 3.0: what meta/ says of episodes, tasks and where everything lies."""

import contextlib
import glob
import json
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import ArgumentError, DatasetError, Error, MissingError
from ..sources.tables import needs
from .steps import numbered

_PART = re.compile(r"\{(\w+)(?::0?(\d)d)?\}")
_CAMERAS = ("video", "image")
_VALUES = {"string", "bool", *(f"{kind}{bits}" for kind, each in (("float", (16, 32, 64)), ("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64))) for bits in each)}


class Episode(NamedTuple):
    """data: its Parquet file, below the root; videos: of each camera that has some, the file and when it begins there, in seconds."""

    number: int
    length: int
    tasks: Sequence[str]
    data: str
    videos: dict[str, tuple[str, float]]


def _not_there(path):
    return MissingError(f"{path} is not there: it belongs to every data set of LeRobot's of this version")


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise _not_there(path) from None


@contextlib.contextmanager
def _as_written(root):
    """Whatever a file has that is not where LeRobot has it."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as why:
        if isinstance(why, Error):
            raise
        raise DatasetError(f"{root}/meta is not as LeRobot writes it: {type(why).__name__}: {why}") from None


def _lines(path):
    return [json.loads(line) for line in _read(path).splitlines() if line.strip()]


def _rows(paths, columns=lambda names: names):
    """Of Parquet files, as dicts."""
    parquet = needs("pyarrow.parquet", "oneaccess.from_lerobot()")
    rows = []
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                rows += file.read(columns(file.schema_arrow.names), use_threads=False).to_pylist()
        except FileNotFoundError:
            raise _not_there(path) from None
        except (OSError, ValueError) as why:
            raise DatasetError(f"{path} cannot be read: {why}") from None
    return rows


def _filled(pattern, **values):
    """The path that a pattern of info.json means; it stays below the root."""
    path = _PART.sub(lambda part: str(values[part[1]]).zfill(int(part[2] or 0)), pattern)
    if os.path.isabs(path) or ".." in path.split("/"):
        raise DatasetError(f"meta/info.json: {pattern!r} leads out of the data set")
    return path


def _why_not(feature):
    """Why it has no place in a batch; None: it has."""
    about = {**(feature.get("video_info") or {}), **(feature.get("info") or {})}
    if about.get("is_depth_map") or about.get("video.is_depth_map"):
        return "is a depth map, whose numbers are no colours"
    return None if feature["dtype"] in _VALUES or feature["dtype"] in _CAMERAS else f"has type {feature['dtype']}"


class Meta:
    """What meta/ says."""

    def __init__(self, root):
        self.root = root
        with _as_written(root):
            self._load()

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def _load(self):
        info = json.loads(_read(self.path("meta", "info.json")))
        self.info, self.version, self.fps = info, info["codebase_version"].lstrip("v"), info["fps"]
        self.features = {name: {**feature, "shape": tuple(map(int, feature["shape"]))} for name, feature in info["features"].items()}
        if not {"timestamp", "episode_index", "task_index"} <= self.features.keys():
            raise ValueError("info.json has no features timestamp, episode_index and task_index")
        self.left = {name: why for name, feature in self.features.items() if (why := _why_not(feature))}
        self.cameras = [name for name, feature in self.features.items() if feature["dtype"] in _CAMERAS and name not in self.left]
        if not self.fps > 0:
            raise ValueError(f"fps is {self.fps}")
        load = {"2": self._load_2, "3": self._load_3}.get(self.version.partition(".")[0])
        if load is None:
            raise DatasetError(f"{self.root} has version {self.version} of LeRobot's format; 2.0, 2.1 and 3.0 are read: convert it by LeRobot's own scripts")
        self.tasks, episodes = load(info)
        self.episodes = sorted(episodes, key=lambda episode: episode.number)
        if len({episode.number for episode in episodes}) < len(episodes):
            raise ValueError("two episodes have one number")
        if any(not 0 < episode.length < 1 << 40 for episode in episodes):
            raise ValueError("an episode has no length")

    def videos(self):
        return [name for name in self.cameras if self.features[name]["dtype"] == "video"]

    def _load_2(self, info):
        tasks = {int(line["task_index"]): str(line["task"]) for line in _lines(self.path("meta", "tasks.jsonl"))}
        episodes = []
        for line in _lines(self.path("meta", "episodes.jsonl")):
            number = int(line["episode_index"])
            values = {"episode_chunk": number // int(info["chunks_size"]), "episode_index": number}
            videos = {name: (_filled(info["video_path"], video_key=name, **values), 0.0) for name in self.videos()}
            episodes.append(Episode(number, int(line["length"]), line["tasks"], _filled(info["data_path"], **values), videos))
        return tasks, episodes

    def _load_3(self, info):
        tasks = {}
        for row in _rows([self.path("meta", "tasks.parquet")]):
            number = int(row.pop("task_index"))
            tasks[number] = [text for text in row.values() if isinstance(text, str)][0]
        files = sorted(glob.glob(os.path.join(glob.escape(self.path("meta", "episodes")), "*", "*.parquet")))
        if not files:
            raise MissingError(f"{self.path('meta', 'episodes')} has no Parquet file of episodes")
        episodes = []
        for row in _rows(files, lambda names: [name for name in names if not name.startswith("stats/")]):
            videos = {}
            for name in self.videos():
                at = {each: row[f"videos/{name}/{each}"] for each in ("chunk_index", "file_index", "from_timestamp")}
                begin = float(at.pop("from_timestamp"))
                videos[name] = _filled(info["video_path"], video_key=name, **at), begin
            data = _filled(info["data_path"], chunk_index=row["data/chunk_index"], file_index=row["data/file_index"])
            episodes.append(Episode(int(row["episode_index"]), int(row["length"]), row["tasks"], data, videos))
        return tasks, episodes

    def chosen(self, episodes):
        """Those of the numbers, in the data set's order."""
        there = {episode.number: episode for episode in self.episodes}
        if episodes is None:
            numbers = list(there)
        else:
            numbers = numbered(episodes)
            missing = [number for number in numbers if number not in there]
            if missing:
                raise ArgumentError(f"episodes= names {missing[0]}, which {self.root} has not: it has {len(there):,}, from {min(there, default=0)} to"
                                    f" {max(there, default=0)}")
        if not numbers:
            raise DatasetError(f"{self.root}: no episode is meant")
        return [there[number] for number in numbers]

    # ---- statistics ----

    def stats(self, episodes):
        """{feature: {"mean": array, ...}}: of version 2.1 of these episodes, of others as the file has them. {}: there are none."""
        with _as_written(self.root):
            return self._stats(episodes)

    def _stats(self, episodes):
        import numpy as np

        def arrays(stats):
            return {name: {kind: np.array(value) for kind, value in each.items()} for name, each in stats.items()}
        path = self.path("meta", "episodes_stats.jsonl")
        if self.version.startswith("3") or not os.path.exists(path):
            path = self.path("meta", "stats.json")
            return arrays(json.loads(_read(path))) if os.path.exists(path) else {}
        of_each = {int(line["episode_index"]): arrays(line["stats"]) for line in _lines(path)}
        some = [of_each[episode.number] for episode in episodes if episode.number in of_each]
        return {name: _together([each[name] for each in some if name in each]) for name in (some[0] if some else ())}


def _together(stats):
    """Those of several episodes as of one, as LeRobot's aggregate_stats() computes them."""
    import numpy as np
    means, counts = np.stack([each["mean"] for each in stats]), np.stack([each["count"] for each in stats])
    total = counts.sum(axis=0)
    counts = counts.reshape(counts.shape + (1,) * (means.ndim - counts.ndim))
    mean = (means * counts).sum(axis=0) / total
    variance = ((np.stack([each["std"] for each in stats]) ** 2 + (means - mean) ** 2) * counts).sum(axis=0) / total
    return {"min": np.min([each["min"] for each in stats], axis=0), "max": np.max([each["max"] for each in stats], axis=0),
            "mean": mean, "std": np.sqrt(variance), "count": total}


# ---- where it is ----


def found(root, revision):
    """The folder of a data set: a path, or the name of one on the Hub, "lerobot/pusht" or hf://datasets/lerobot/pusht."""
    name = os.path.expanduser(os.fspath(root))
    if os.path.isdir(name):
        return os.path.abspath(name)
    name = name.removeprefix("hf://").removeprefix("datasets/")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise MissingError(f"{root} is no folder, and no name of a data set on the Hub, as lerobot/pusht")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingError(f"{root} is no folder: pip install huggingface_hub, which fetches it from the Hub, or fetch it yourself:"
                           f" hf download {name} --repo-type dataset --local-dir FOLDER") from None
    return snapshot_download(name, repo_type="dataset", revision=revision)
