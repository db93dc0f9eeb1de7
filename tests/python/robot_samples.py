# SPDX-License-Identifier: Apache-2.0
"""Small data sets of robots in LeRobot's layouts of versions 2.0, 2.1 and 3.0, written by PyAV and pyarrow."""

import io
import json
from fractions import Fraction

import numpy as np

FPS = 10
TOP, WRIST = "observation.images.top", "observation.images.wrist"
SIZES = {TOP: (48, 64), WRIST: (32, 32)}
LENGTHS = (12, 7, 15, 5)
TASKS = ["push the block", "put the red cube, which lies left of the cup, into the box" * 6]


def frame(camera, episode, number):
    """A picture that no other frame has, and which moves as those of a camera do."""
    height, width = SIZES[camera]
    y, x = np.mgrid[:height, :width]
    array = np.stack([x * 3 + number * 8, y * 4 + episode * 40, (x + y) * 2 + number * 5], axis=-1) % 256
    array[8:24, 4 + number:20 + number] = (40 * episode + 30, 250 - 12 * number, 12 * number)
    return array.astype(np.uint8)


def state(episode, number):
    return [np.sin(number / 5 + episode + axis) for axis in range(3)]


def write_video(path, camera, frames, gop=6):
    import av
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"g": str(gop), "bf": "2", "crf": "20"})
        stream.height, stream.width = SIZES[camera]
        stream.pix_fmt, stream.codec_context.time_base = "yuv420p", Fraction(1, FPS)
        for number, (episode, at) in enumerate(frames):
            made = av.VideoFrame.from_ndarray(frame(camera, episode, at), format="rgb24")
            made.pts, made.time_base = number, Fraction(1, FPS)
            container.mux(stream.encode(made))
        container.mux(stream.encode())


def _png(array):
    from PIL import Image
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png")
    return {"bytes": file.getvalue(), "path": "frame.png"}


def _table(episodes, first, images):
    """Rows of some episodes; first: the index of the first row of all."""
    import pyarrow as pa
    rows = [(episode, at) for episode in episodes for at in range(LENGTHS[episode])]
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        "observation.state": pa.array([state(*row) for row in rows], pa.list_(pa.float32(), 3)),
        **{camera: pa.array([_png(frame(camera, *row)) for row in rows], image) for camera in SIZES if camera in images},
        "action": pa.array([state(episode, at + 1)[:2] for episode, at in rows], pa.list_(pa.float32(), 2)),
        "next.done": pa.array([at == LENGTHS[episode] - 1 for episode, at in rows]),
        "next.reward": pa.array([at / 3 for _, at in rows], pa.float64()),
        "timestamp": pa.array([at / FPS for _, at in rows], pa.float32()),
        "frame_index": pa.array([at for _, at in rows], pa.int64()),
        "episode_index": pa.array([episode for episode, _ in rows], pa.int64()),
        "index": pa.array(range(first, first + len(rows)), pa.int64()),
        "task_index": pa.array([episode % 2 for episode, _ in rows], pa.int64()),
    }
    types = {"timestamp": "float32", "next.done": "bool", "next.reward": "float64"}
    features = {name: {"_type": "Value", "dtype": types.get(name, "int64")} for name in columns}
    for name, length in (("observation.state", 3), ("action", 2)):
        features[name] = {"_type": "Sequence", "length": length, "feature": {"_type": "Value", "dtype": "float32"}}
    features.update({camera: {"_type": "Image"} for camera in images})
    return pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def _stats(episodes):
    made = {}
    for name, of in (("observation.state", state), ("action", lambda episode, at: state(episode, at + 1)[:2])):
        values = np.array([of(episode, at) for episode in episodes for at in range(LENGTHS[episode])])
        made[name] = {kind: getattr(values, kind)(axis=0).tolist() for kind in ("min", "max", "mean", "std")} | {"count": [len(values)]}
    return made


def _info(version, images, paths):
    numbers = {"dtype": "int64", "shape": [1], "names": None}
    about = {"video.fps": float(FPS), "video.codec": "h264", "video.pix_fmt": "yuv420p", "video.is_depth_map": False, "has_audio": False}
    cameras = {name: {"dtype": "image", "shape": [*size, 3], "names": ["height", "width", "channels"]} if name in images else
               {"dtype": "video", "shape": [*size, 3], "names": ["height", "width", "channel"], "video_info" if version == "2.0" else "info": about}
               for name, size in SIZES.items()}
    return {"codebase_version": f"v{version}", "robot_type": "so100", "total_episodes": len(LENGTHS), "total_frames": sum(LENGTHS), "total_tasks": 2,
            "total_videos": 0, "total_chunks": 1, "chunks_size": 1000, "data_files_size_in_mb": 100, "video_files_size_in_mb": 500, "fps": FPS,
            "splits": {"train": f"0:{len(LENGTHS)}"}, **paths,
            "features": {"observation.state": {"dtype": "float32", "shape": [3], "names": ["x", "y", "z"]}, **cameras,
                         "action": {"dtype": "float32", "shape": [2], "names": ["x", "y"]},
                         "next.done": {"dtype": "bool", "shape": [1], "names": None}, "next.reward": {"dtype": "float64", "shape": [1], "names": None},
                         "timestamp": {"dtype": "float32", "shape": [1], "names": None},
                         **{name: numbers for name in ("frame_index", "episode_index", "index", "task_index")}}}


def _lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_2(root, images=(), row_group_size=1000, version="2.1"):
    """Of version 2.0 or 2.1: a file for each episode. images: the cameras whose frames are PNGs in the Parquet files."""
    import pyarrow.parquet as parquet
    (root / "meta").mkdir(parents=True)
    (root / "data" / "chunk-000").mkdir(parents=True)
    info = _info(version, images, {"data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
                                 "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"})
    (root / "meta" / "info.json").write_text(json.dumps(info))
    _lines(root / "meta" / "tasks.jsonl", [{"task_index": number, "task": text} for number, text in enumerate(TASKS)])
    _lines(root / "meta" / "episodes.jsonl", [{"episode_index": episode, "tasks": [TASKS[episode % 2]], "length": length}
                                              for episode, length in enumerate(LENGTHS)])
    if version == "2.0":        # which has one file of all statistics, without counts
        of_all = {name: {kind: value for kind, value in each.items() if kind != "count"} for name, each in _stats(range(len(LENGTHS))).items()}
        (root / "meta" / "stats.json").write_text(json.dumps(of_all))
    else:
        _lines(root / "meta" / "episodes_stats.jsonl", [{"episode_index": episode, "stats": _stats([episode])} for episode in range(len(LENGTHS))])
    for episode, length in enumerate(LENGTHS):
        path = root / f"data/chunk-000/episode_{episode:06d}.parquet"
        parquet.write_table(_table([episode], sum(LENGTHS[:episode]), images), path, row_group_size=row_group_size)
        for camera in SIZES:
            if camera not in images:
                write_video(root / f"videos/chunk-000/{camera}/episode_{episode:06d}.mp4", camera, [(episode, at) for at in range(length)])
    return root


def write_3(root, images=(), row_group_size=1000):
    """Of version 3.0: three episodes in the first file, one in the second; of the wrist's videos two in each."""
    import pyarrow as pa
    import pyarrow.parquet as parquet
    for folder in ("meta/episodes/chunk-000", "data/chunk-000"):
        (root / folder).mkdir(parents=True)
    info = _info("3.0", images, {"data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
                                 "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"})
    (root / "meta" / "info.json").write_text(json.dumps(info))
    (root / "meta" / "stats.json").write_text(json.dumps(_stats(range(len(LENGTHS)))))
    index = pa.array(TASKS)
    tasks = pa.table({"task_index": pa.array([0, 1], pa.int64()), "__index_level_0__": index})
    told = {"index_columns": ["__index_level_0__"], "column_indexes": [], "pandas_version": "2.0.0",
            "columns": [{"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64", "metadata": None},
                        {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object", "metadata": None}]}
    parquet.write_table(tasks.replace_schema_metadata({"pandas": json.dumps(told)}), root / "meta" / "tasks.parquet")
    groups = {"data": [[0, 1, 2], [3]], TOP: [[0, 1, 2, 3]], WRIST: [[0, 1], [2, 3]]}
    rows = [{"episode_index": episode, "tasks": [TASKS[episode % 2]], "length": length, "dataset_from_index": sum(LENGTHS[:episode]),
             "dataset_to_index": sum(LENGTHS[:episode + 1]), "stats/action/mean": [0.0, 0.0]} for episode, length in enumerate(LENGTHS)]
    for what, files in groups.items():
        for number, episodes in enumerate(files):
            if what == "data":
                parquet.write_table(_table(episodes, sum(LENGTHS[:episodes[0]]), images), root / f"data/chunk-000/file-{number:03d}.parquet",
                                    row_group_size=row_group_size)
            elif what not in images:
                write_video(root / f"videos/{what}/chunk-000/file-{number:03d}.mp4", what, [(e, at) for e in episodes for at in range(LENGTHS[e])])
            else:
                continue
            for episode in episodes:
                prefix = "data" if what == "data" else f"videos/{what}"
                rows[episode].update({f"{prefix}/chunk_index": 0, f"{prefix}/file_index": number})
                if what != "data":
                    begin = sum(LENGTHS[e] for e in episodes[:episodes.index(episode)]) / FPS
                    rows[episode].update({f"{prefix}/from_timestamp": begin, f"{prefix}/to_timestamp": begin + LENGTHS[episode] / FPS})
    parquet.write_table(pa.Table.from_pylist(rows), root / "meta/episodes/chunk-000/file-000.parquet")
    return root


def noisy(image):
    """A transform of LeRobot's kind: brighter by one random number."""
    import torch
    return image + torch.rand(())
