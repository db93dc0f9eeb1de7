# SPDX-License-Identifier: Apache-2.0
"""Data sets of robots, from_lerobot(): each frame against the whole video's and against what was written, against a real daemon."""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

try:
    import av
    import numpy as np
    import pyarrow  # noqa: F401
    from PIL import Image
except ImportError as missing:
    print(f"robots_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
import robot_samples as samples
from oneaccess.domains import frames
from oneaccess.domains import robots
from robot_samples import FPS, LENGTHS, SIZES, TASKS, TOP, WRIST, frame, state, write_video
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

ROWS = [(episode, at) for episode, length in enumerate(LENGTHS) for at in range(length)]
WINDOWS = {TOP: [-0.4, -0.1, 0.0], "action": [n / FPS for n in range(-1, 5)]}


def videos_of(root):
    """{(camera, episode, frame): pixels}: of files that are decoded from their beginning to their end."""
    made = {}
    version = json.loads((root / "meta/info.json").read_text())["codebase_version"]
    for camera in SIZES:
        files = sorted(root.glob(f"videos/chunk-000/{camera}/*.mp4" if version.startswith("v2") else f"videos/{camera}/chunk-000/*.mp4"))
        rows = iter(ROWS)       # files are in the order of the episodes in both
        for file in files:
            with av.open(str(file)) as container:
                for decoded in container.decode(video=0):
                    made[camera, *next(rows)] = decoded.to_ndarray(format="rgb24")
    return made


class RobotsCase(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.roots = {"2.0": samples.write_2(cls.work / "first", version="2.0"), "2.1": samples.write_2(cls.work / "two"),
                     "3.0": samples.write_3(cls.work / "three")}
        cls.videos = {version: videos_of(root) for version, root in cls.roots.items()}

    def copied(self, version="2.1"):
        folder = Path(tempfile.mkdtemp(dir=self.work)) / "set"
        shutil.copytree(self.roots[version], folder)
        return folder

    def change(self, root, **info):
        path = root / "meta/info.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **info}))
        return root

    def check_numbers(self, sample, episode, at):
        np.testing.assert_array_equal(sample["observation.state"], np.float32(state(episode, at)))
        self.assertEqual((sample["episode_index"], sample["frame_index"], sample["task_index"]), (episode, at, episode % 2))
        self.assertEqual((sample["index"], sample["next.done"]), (ROWS.index((episode, at)), at == LENGTHS[episode] - 1))
        self.assertEqual((sample["timestamp"], sample["next.reward"]), (np.float32(at / FPS), np.float32(at / 3)))
        self.assertEqual(sample["task"], TASKS[episode % 2])

    # ---- samples ----

    def test_every_frame_is_its_own_in_any_order(self):
        for version, root in self.roots.items():
            rows = oa.from_lerobot(root).dataset
            self.assertEqual(len(rows), len(ROWS))
            for index in [*np.random.default_rng(3).permutation(len(ROWS)), *range(len(ROWS)), *reversed(range(len(ROWS)))]:
                sample = rows[int(index)]
                self.check_numbers(sample, *ROWS[index])
                for camera in SIZES:
                    np.testing.assert_array_equal(sample[camera], self.videos[version][camera, *ROWS[index]], f"{version} {camera} {ROWS[index]}")

    def test_windows_end_where_the_episode_does(self):
        for version, root in self.roots.items():
            rows = oa.from_lerobot(root, delta_timestamps=WINDOWS).dataset
            for index, (episode, at) in enumerate(ROWS):
                sample, last = rows[index], LENGTHS[episode] - 1
                for name, ahead in ((TOP, (-4, -1, 0)), ("action", range(-1, 5))):
                    places = [min(max(at + n, 0), last) for n in ahead]
                    if name == TOP:
                        want = np.stack([self.videos[version][TOP, episode, place] for place in places])
                    else:
                        want = np.float32([state(episode, place + 1)[:2] for place in places])
                    np.testing.assert_array_equal(sample[name], want, f"{version} {name} {episode} {at}")
                    self.assertEqual(sample[f"{name}_is_pad"].tolist(), [not 0 <= at + n <= last for n in ahead])

    def decoded(self, function):
        """How many frames, while that runs."""
        taken = []
        with mock.patch.object(frames._Video, "_next", autospec=True, side_effect=lambda video, of=frames._Video._next: taken.append(1) or of(video)):
            function()
        return len(taken)

    def test_few_frames_are_decoded(self):
        rows = oa.from_lerobot(self.roots["3.0"], [TOP]).dataset
        self.assertLessEqual(self.decoded(lambda: [rows[index] for index in range(len(ROWS))]), len(ROWS) + 1)
        self.assertLessEqual(self.decoded(lambda: rows[30]), 6 + 1)         # from the key frame before
        self.assertLessEqual(self.decoded(lambda: rows[32]), 2)             # which is as far as this one
        rows = oa.from_lerobot(self.roots["3.0"], [TOP]).dataset
        for index in range(14):
            rows[index]
        self.assertLessEqual(self.decoded(lambda: rows[22]), 6 + 1)         # a key frame is nearer, as is known by then

    def test_no_more_are_decoded_than_from_the_key_frame(self):
        """With one for each second frame, as LeRobot writes them, also where nothing is known of a file."""
        path = self.work / "second.mp4"
        write_video(path, TOP, [(0, at) for at in range(60)], gop=2)
        for gap in range(3, 12):
            videos, times = frames.Videos(), [at / FPS for at in range(1, 60, gap)]
            self.assertLessEqual(self.decoded(lambda: videos.pixels(str(path), times, 1e-4)), 2 * len(times), gap)

    def test_several_at_once_come_in_the_order_of_the_files(self):
        for version, root in self.roots.items():
            rows, asked = oa.from_lerobot(root).dataset, [33, 2, 34, 1, 33]
            one_by_one = self.decoded(lambda: [rows[index] for index in asked])
            rows = oa.from_lerobot(root).dataset
            self.assertLess(self.decoded(lambda: rows.__getitems__(asked)), one_by_one)
            for index, sample in zip(asked, rows.__getitems__(asked)):
                self.check_numbers(sample, *ROWS[index])
                np.testing.assert_array_equal(sample[TOP], self.videos[version][TOP, *ROWS[index]])

    def test_episodes(self):
        for version, root in self.roots.items():
            data = oa.from_lerobot(root, episodes=[3, 1], delta_timestamps={"action": [0.0, 0.1]})
            self.assertEqual([(each["episode_index"], each["length"], each["tasks"]) for each in data.episodes], [(1, 7, [TASKS[1]]), (3, 5, [TASKS[1]])])
            self.assertEqual(len(data), 12)
            for index, (episode, at) in enumerate(row for row in ROWS if row[0] in (1, 3)):
                self.check_numbers(data.dataset[index], episode, at)
                np.testing.assert_array_equal(data.dataset[index][WRIST], self.videos[version][WRIST, episode, at])
                self.assertEqual(data.dataset[index]["action_is_pad"].tolist(), [False, at == LENGTHS[episode] - 1])

    def test_what_is_known_of_the_data(self):
        for version, root in self.roots.items():
            data = oa.from_lerobot(root)
            self.assertEqual((data.fps, data.tasks, data.cameras), (FPS, dict(enumerate(TASKS)), [TOP, WRIST]))
            self.assertEqual(len(data.episodes), len(LENGTHS))
            values = np.array([state(*row) for row in ROWS])
            for kind in ("mean", "std", "min", "max"):
                np.testing.assert_allclose(data.stats["observation.state"][kind], getattr(values, kind)(axis=0), rtol=1e-12, err_msg=version)
            self.assertEqual(data.stats["action"].get("count"), None if version == "2.0" else [len(ROWS)])
        part = oa.from_lerobot(self.roots["2.1"], episodes=[1]).stats["observation.state"]["mean"]
        np.testing.assert_allclose(part, np.mean([state(1, at) for at in range(LENGTHS[1])], axis=0))

    def test_forms_of_frames(self):
        rows = oa.from_lerobot(self.roots["2.1"], [WRIST, "action"], dtype="float32", pixels={WRIST: (16, 24)}).dataset
        pixels = Image.fromarray(self.videos["2.1"][WRIST, 0, 2]).resize((24, 16), Image.Resampling.BILINEAR)
        want = np.asarray(pixels).transpose(2, 0, 1).astype(np.float32) / np.float32(255)
        self.assertEqual([*rows[2]], [WRIST, "action"])
        np.testing.assert_array_equal(rows[2][WRIST], want)

    # ---- images in Parquet ----

    def test_images_in_parquet(self):
        for write, name in ((samples.write_2, "images2"), (samples.write_3, "images3")):
            root = write(self.work / name, images=(TOP, WRIST), row_group_size=5)
            rows = oa.from_lerobot(root, delta_timestamps={TOP: [-0.1, 0.0]}).dataset
            self.assertIsNone(rows.blocks)
            for index, (episode, at) in enumerate(ROWS):
                np.testing.assert_array_equal(rows[index][TOP], [frame(TOP, episode, max(0, at - 1)), frame(TOP, episode, at)])
                np.testing.assert_array_equal(rows[index][WRIST], frame(WRIST, episode, at))
            data = oa.from_lerobot(root, [WRIST, "index"], episodes=[0, 2], cache="4K")
            self.assertEqual(data.dataset.blocks.starts[0], 0)
            self.assertGreater(len(data.dataset.blocks.starts), data.dataset.blocks.window)
            with self.assertRaisesRegex(oa.Error, 'shuffle="blocks"'):
                self.open(data, order="seeded", seed=1)
            seen = np.concatenate([batch["index"] for batch in self.open(data, shuffle="blocks", seed=5, epochs=1, copy=True)])
            self.assertEqual(sorted(seen), [index for index, (episode, _) in enumerate(ROWS) if episode in (0, 2)])
            self.assertNotEqual(list(seen), sorted(seen))

    # ---- by a Loader ----

    def test_batches(self):
        for version, root in self.roots.items():
            data, count = oa.from_lerobot(root, delta_timestamps=WINDOWS, workers=2), 0
            for batch in self.open(data, shuffle=False, epochs=1, copy=True):
                for index in range(len(batch["index"])):
                    want = data.dataset[count]
                    self.assertEqual([*batch], [*want])
                    for name, value in want.items():
                        got = batch[name][index]
                        self.assertEqual(got, value) if name == "task" else np.testing.assert_array_equal(np.asarray(got), value, f"{version} {name}")
                        if name != "task":
                            self.assertEqual(str(batch[name].dtype).removeprefix("torch."), value.dtype.name, name)
                    count += 1
            self.assertEqual(count, len(ROWS))

    def test_a_pipeline_has_the_first_camera(self):
        t = oa.transforms
        data = oa.from_lerobot(self.roots["3.0"], [WRIST, TOP, "action", "index"])
        pipeline = oa.Compose([t.CenterCrop(16), t.ToTensor()])
        for batch in self.open(data, pipeline, order="seeded", seed=1, epochs=1, copy=True):
            for place, index in enumerate(np.asarray(batch["index"])):
                want = self.videos["3.0"][WRIST, *ROWS[index]][8:24, 8:24].transpose(2, 0, 1) / np.float32(255)
                np.testing.assert_array_equal(np.asarray(batch[WRIST][place]), want)
                np.testing.assert_array_equal(np.asarray(batch[TOP][place]), self.videos["3.0"][TOP, *ROWS[index]])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no package torch")
    def test_image_transforms(self):
        data = oa.from_lerobot(self.roots["2.1"], [TOP, WRIST, "index"], dtype="float32", image_transforms=samples.noisy, delta_timestamps={TOP: [-.1, 0]})
        self.assertTrue(data.random)
        loader = self.open(data, order="seeded", seed=2, epochs=2, copy=True)
        epochs = [{int(index): np.asarray(value) for batch in loader for index, value in zip(batch["index"], batch[WRIST])} for _ in range(2)]
        for index, row in enumerate(ROWS):
            want = self.videos["2.1"][WRIST, *row].transpose(2, 0, 1) / 255
            added = [epoch[index] - want for epoch in epochs]
            for each in added:
                self.assertTrue((abs(each - each[0, 0, 0]) < 1e-6).all() and 0 <= each[0, 0, 0] < 1)
            self.assertNotEqual(*(each[0, 0, 0] for each in added))

    # ---- what is wrong ----

    def refused(self, pattern, *args, error=oa.Error, **kwargs):
        with self.assertRaisesRegex(error, pattern):
            oa.from_lerobot(*args, **kwargs)

    def test_arguments(self):
        root = self.roots["2.1"]
        self.refused("names 'actoin'", root, delta_timestamps={"actoin": [0.0]})
        self.refused(r"n / 10", root, delta_timestamps={"action": [0.0, 0.05]})
        self.refused(r"\[\]", root, delta_timestamps={"action": []})
        self.refused("names 'state'; the data set has", root, ["state"])
        self.refused("names 9, which", root, episodes=[1, 9])
        self.refused("no episode", root, episodes=[])
        self.refused("float64", root, dtype="float64")
        self.refused("cameras are", root, pixels={"action": (8, 8)})
        self.refused("no folder", "/nowhere/at/all")
        with mock.patch.dict(sys.modules, {"huggingface_hub": None}):
            self.refused("hf download lerobot/pusht", "lerobot/pusht")
        hub = mock.Mock(snapshot_download=mock.Mock(return_value=str(root)))
        with mock.patch.dict(sys.modules, {"huggingface_hub": hub}):
            self.assertEqual(len(oa.from_lerobot("hf://datasets/lerobot/pusht", revision="v2.1")), len(ROWS))
        hub.snapshot_download.assert_called_once_with("lerobot/pusht", repo_type="dataset", revision="v2.1")
        for package in ("av", "pyarrow.parquet"):
            with mock.patch.dict(sys.modules, {package: None}):
                self.refused(f"pip install {package.partition('.')[0]}", root)

    def test_what_has_no_place(self):
        features = json.loads((self.roots["3.0"] / "meta/info.json").read_text())["features"]
        features["language_events"] = {"dtype": "language", "shape": [1], "names": None}
        for version, about in (("2.0", "video_info"), ("3.0", "info")):
            features[WRIST].pop("info", None)
            features[WRIST][about] = {"video.is_depth_map": True}
            root = self.change(self.copied(version), features=features)
            with self.assertWarnsRegex(UserWarning, f"left out: {WRIST} is a depth map.*; language_events has type language"):
                data = oa.from_lerobot(root)
            self.assertEqual(data.cameras, [TOP])
            self.assertNotIn(WRIST, data.dataset[0])
            self.refused("depth map", root, [WRIST])

    def test_files_that_are_wrong(self):
        self.refused("version 1.6", self.change(self.copied(), codebase_version="v1.6"))
        self.refused("leads out", self.change(self.copied(), data_path="../{episode_chunk}/{episode_index}"))
        self.refused("leads out", self.change(self.copied(), video_path="/etc/{video_key}"))
        self.refused("not as LeRobot writes", self.change(self.copied(), data_path="{nobody}"))
        self.refused("not as LeRobot writes", self.change(self.copied(), features={"action": {"dtype": "float32", "shape": [2]}}))
        self.refused("not as LeRobot writes", self.change(self.copied(), fps=0))
        root = self.copied()
        (root / "meta/episodes.jsonl").write_text("[1, 2]\n")
        self.refused("not as LeRobot writes", root)
        (root / "meta/episodes.jsonl").unlink()
        self.refused("episodes.jsonl is not there", root, error=FileNotFoundError)
        root = self.copied()
        (root / "meta/episodes_stats.jsonl").write_text('{"episode_index": 0, "stats": {"action": {"mean": [1]}}}\n')
        self.refused("not as LeRobot writes", root)
        root = self.copied("3.0")
        os.truncate(root / "meta/episodes/chunk-000/file-000.parquet", 100)
        self.refused("file-000.parquet cannot be read", root)
        (root / "meta/tasks.parquet").unlink()
        self.refused("tasks.parquet is not there", root, error=FileNotFoundError)
        root = self.copied()
        lines = (root / "meta/episodes.jsonl").read_text().replace('"length": 12', '"length": 13')
        (root / "meta/episodes.jsonl").write_text(lines)
        with self.assertRaisesRegex(oa.Error, "other lengths"):
            oa.from_lerobot(root).dataset[0]
        with self.assertRaisesRegex(oa.Error, "other lengths"):
            self.open(oa.from_lerobot(root))

    def test_videos_that_are_wrong(self):
        root = self.copied()
        video = root / f"videos/chunk-000/{TOP}/episode_000001.mp4"
        os.truncate(video, 40)
        with self.assertRaisesRegex(oa.Error, "no video that can be read"):
            oa.from_lerobot(root).dataset[LENGTHS[0]]
        loader = self.open(oa.from_lerobot(root), bad="skip", epochs=1, shuffle=False, copy=True)
        self.assertEqual(sum(len(batch["index"]) for batch in loader), len(ROWS) - LENGTHS[1])
        self.assertEqual([bad.index for bad in loader.bad_samples], [*range(LENGTHS[0], LENGTHS[0] + LENGTHS[1])])
        video.unlink()
        self.refused("episode_000001.mp4 is not there", root)
        self.assertEqual(len(oa.from_lerobot(root, [WRIST])), len(ROWS))
        self.assertEqual(len(oa.from_lerobot(root, episodes=[0])), LENGTHS[0])
        shutil.copy(root / f"videos/chunk-000/{TOP}/episode_000003.mp4", video)     # shorter than the episode
        rows = oa.from_lerobot(root).dataset
        rows[LENGTHS[0] + LENGTHS[3] - 1]
        with self.assertRaisesRegex(oa.Error, r"no frame within 0.0001 s of 0.6\d* s, the nearest is at 0.4\d* s: tolerance_s="):
            rows[LENGTHS[0] + LENGTHS[1] - 1]
        self.assertEqual(oa.from_lerobot(root, tolerance_s=0.3).dataset[LENGTHS[0] + LENGTHS[1] - 1][TOP].shape, (48, 64, 3))


class PickledCase(unittest.TestCase):
    """What goes to the pool."""

    def test_numbers_do_not(self):
        import pickle
        with tempfile.TemporaryDirectory() as folder:
            rows = oa.from_lerobot(samples.write_2(Path(folder) / "set")).dataset
            rows[0]
            data = pickle.dumps(rows)
            self.assertLess(len(data), 6000)
            loaded = pickle.loads(data)
            self.assertEqual(set(loaded._numbers), set(rows._numbers))
            with open(Path(folder) / "set/data/chunk-000/episode_000000.parquet", "ab") as file:
                file.write(b"more")
            with self.assertRaisesRegex(oa.Error, "was written to"):
                pickle.loads(data)
            self.assertIsInstance(rows, robots.LeRobotRows)


if __name__ == "__main__":
    unittest.main()
