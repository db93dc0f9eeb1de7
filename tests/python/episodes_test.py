# SPDX-License-Identifier: Apache-2.0
"""from_episodes(): files as robomimic, LIBERO, Diffusion Policy, Minari, D4RL and ALOHA write them, step by step against what was written."""

import importlib.util
import io
import json
import os
import pathlib
import pickle
import sys
import unittest
import warnings
from unittest import mock

try:
    import h5py
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"episodes_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

LENGTHS = (5, 3, 7)
CAMERA, WRIST = "obs/front", "obs/wrist"
STEPS = [(episode, at) for episode, length in enumerate(LENGTHS) for at in range(length)]
ENDS = np.cumsum(LENGTHS)


def frames(episode, count=None, size=(8, 9)):
    steps = np.arange(LENGTHS[episode] if count is None else count)
    return (np.arange(size[0] * size[1] * 3).reshape(*size, 3) + 50 * episode + steps[:, None, None, None]).astype(np.uint8)


def numbers(episode, count=None, width=2, of=0.0):
    steps = np.arange(LENGTHS[episode] if count is None else count)
    return np.stack([100 * episode + steps + 0.25 * axis + of for axis in range(width)], 1)


def write_demos(path, episodes=(0, 1, 2), chunk=None, task=None):
    """robomimic's; demo_9 to demo_11, written in another order."""
    path.unlink(missing_ok=True)
    with h5py.File(path, "w") as file:
        for episode in reversed(episodes):
            demo = file.create_group(f"data/demo_{9 + episode}")
            demo.attrs["num_samples"] = LENGTHS[episode]
            options = {"chunks": (chunk, 8, 9, 3), "compression": "gzip"} if chunk else {}
            demo.create_dataset(CAMERA, data=frames(episode), **options)
            demo.create_dataset(WRIST, data=255 - frames(episode))
            demo["obs/joints"], demo["next_obs/joints"] = numbers(episode), numbers(episode, of=1)
            demo["actions"], demo["dones"] = numbers(episode, width=3), (np.arange(LENGTHS[episode]) == LENGTHS[episode] - 1).astype(int)
            demo["src_demo_inds"] = np.zeros(LENGTHS[episode] + 2)
        file["mask/train"], file["mask/valid"] = [b"demo_11", b"demo_9"], [b"demo_10"]
        if task:
            file["data"].attrs["problem_info"] = json.dumps({"language_instruction": [f'"{task}"']})
    return path


def write_row(path, **more):
    """Diffusion Policy's, here in HDF5."""
    path.unlink(missing_ok=True)
    with h5py.File(path, "w") as file:
        file["meta/episode_ends"] = ENDS
        file["data/action"] = np.concatenate([numbers(episode) for episode in range(3)])
        for name, value in more.items():
            file[f"data/{name}"] = value
    return path


class EpisodesTest(PoolCase):
    def file(self, name="a.hdf5"):
        folder = self.work / self.id()
        folder.mkdir(exist_ok=True)
        return folder / name

    def rows(self, path, *args, **options):
        return oa.from_episodes(path, *args, **options).dataset

    def refused(self, words, path, *args, error=oa.Error, **options):
        with self.assertRaisesRegex(error, words):
            oa.from_episodes(path, *args, **options)

    # ---- robomimic, LIBERO ----

    def test_steps_of_demonstrations(self):
        path = write_demos(self.file())
        with self.assertWarnsRegex(UserWarning, "left out: src_demo_inds has not a value for each step; columns="):
            whole = oa.from_episodes(path)
        self.assertEqual([*whole.dataset.names], [CAMERA, WRIST, "actions", "dones", "next_obs/joints", "obs/joints"])
        self.assertEqual(whole.cameras, [CAMERA, WRIST])
        for rows in whole.dataset, pickle.loads(pickle.dumps(whole.dataset)):
            self.assertEqual(len(rows), len(STEPS))
            for sample, (episode, at) in zip(rows.__getitems__([*range(len(STEPS))]), STEPS):
                np.testing.assert_array_equal(sample[CAMERA], frames(episode)[at])
                np.testing.assert_array_equal(sample["actions"], numbers(episode, width=3)[at])
                np.testing.assert_array_equal(sample["next_obs/joints"], numbers(episode, of=1)[at])
                self.assertEqual((sample["actions"].dtype, sample["dones"].dtype, sample["dones"]), ("float32", "int64", at == LENGTHS[episode] - 1))
        stats, values = whole.stats["actions"], np.concatenate([numbers(episode, width=3) for episode in range(3)])
        self.assertEqual({*whole.stats}, {"actions", "dones", "next_obs/joints", "obs/joints"})
        np.testing.assert_allclose([stats["mean"], stats["std"], stats["min"], stats["max"], stats["q01"], stats["q99"]],
                                   [values.mean(0), values.std(0), values.min(0), values.max(0), *np.quantile(values, (.01, .99), axis=0)], rtol=1e-6)
        self.assertEqual(stats["count"], len(STEPS))

    def test_windows_and_what_is_meant(self):
        """As robomimic's SequenceDataset with frame_stack=2, seq_length=3."""
        path = write_demos(self.file())
        delta = {"obs": range(-1, 3), "actions": range(-1, 3)}
        rows = self.rows(path, [CAMERA, "obs/joints", "actions"], delta_steps=delta)
        for index, (episode, at) in enumerate(STEPS):
            places = np.arange(at - 1, at + 3)
            inside = np.clip(places, 0, LENGTHS[episode] - 1)
            np.testing.assert_array_equal(rows[index][CAMERA], frames(episode)[inside])
            np.testing.assert_array_equal(rows[index]["obs/joints"], numbers(episode)[inside])
            np.testing.assert_array_equal(rows[index]["actions_is_pad"], places != inside)
            self.assertEqual([*rows[index]][3:], ["obs_is_pad", "actions_is_pad"])
        self.assertEqual(rows[0][CAMERA].shape, (4, 8, 9, 3))
        of = self.rows(path, ["episode_index", "frame_index"], split="train", drop_n_last_frames=4)
        self.assertEqual([tuple(of[index].values()) for index in range(len(of))], [(0, 0), (2, 0), (2, 1), (2, 2)])
        data = oa.from_episodes(path, ["actions", "episode_index"], split="train", episodes=[1, 2])
        self.assertEqual([(each["episode_index"], each["length"], each["group"]) for each in data.episodes], [(2, 7, "data/demo_11")])
        self.assertEqual(data.stats["actions"]["min"].tolist(), numbers(2, width=3)[0].tolist())
        self.assertEqual(data.dataset[3]["actions"].tolist(), numbers(2, width=3)[3].tolist())
        floats = self.rows(path, [CAMERA], dtype="float32", pixels={CAMERA: (4, 6)})[0][CAMERA]
        self.assertEqual((floats.shape, floats.dtype, floats.max() <= 1), ((3, 4, 6), "float32", True))

    def test_files_of_a_suite(self):
        write_demos(self.file("b.hdf5"), (2,), task="open the drawer")
        write_demos(self.file("a.hdf5"), (0, 1), task="put the bowl on the plate")
        data = oa.from_episodes(self.file().parent, ["obs/joints", "language_instruction"])
        found = [(sample["obs/joints"].tolist(), sample["language_instruction"]) for sample in (data.dataset[index] for index in range(len(data)))]
        self.assertEqual(found, [(numbers(e)[at].tolist(), "open the drawer" if e == 2 else "put the bowl on the plate") for e, at in STEPS])
        self.assertEqual([pathlib.Path(each["file"]).name for each in data.episodes], ["a.hdf5", "a.hdf5", "b.hdf5"])
        self.assertEqual(data.dataset.bytes_of_texts, {"language_instruction": 25})

    # ---- Diffusion Policy ----

    def check_sequences(self, path):
        """The samples of SequenceSampler, by its definition."""
        for horizon, seen, done in ((6, 2, 3), (4, 2, 3), (1, 1, 1), (5, 1, 5)):
            before, after = seen - 1, done - 1
            rows = self.rows(path, ["action"], delta_steps={"action": range(1 - seen, horizon - before)},
                             drop_n_last_frames=max(0, horizon - seen - done + 1))
            want = []
            for episode, length in enumerate(LENGTHS):
                for begin in range(-before, length - horizon + after + 1):
                    want.append(numbers(episode)[np.clip(np.arange(begin, begin + horizon), 0, length - 1)])
            np.testing.assert_array_equal([rows[index]["action"] for index in range(len(rows))], want)

    def test_sequences_of_a_replay_buffer(self):
        self.check_sequences(write_row(self.file()))

    @unittest.skipUnless(importlib.util.find_spec("zarr"), "no package zarr")
    def test_zarr(self):
        import zarr
        img = np.concatenate([frames(episode) for episode in range(3)])
        self.file("no.txt").write_text("no episode")
        for path in self.file("a.zarr"), self.file("a.zarr.zip"):
            is_zip = path.suffix == ".zip"
            store = zarr.storage.ZipStore(str(path), mode="w") if is_zip else str(path)
            root = zarr.open_group(store, mode="w", **({"zarr_format": 2} if zarr.__version__ >= "3" else {}))
            for key, value, chunk in (("data/action", np.concatenate([numbers(episode) for episode in range(3)]), 4), ("data/img", img, 4),
                                      ("meta/episode_ends", ENDS, 3)):
                group = root.require_group(key.partition("/")[0])
                made = group.create_array if hasattr(group, "create_array") else group.zeros
                made(key.partition("/")[2], shape=value.shape, dtype=value.dtype, chunks=(chunk, *value.shape[1:]))[:] = value
            if is_zip:
                store.close()
            self.check_sequences(path)
            rows = pickle.loads(pickle.dumps(self.rows(path, ["img"], delta_steps={"img": [0, 1]})))
            for index, (episode, at) in enumerate(STEPS):
                np.testing.assert_array_equal(rows[index]["img"], frames(episode)[[at, min(at + 1, LENGTHS[episode] - 1)]])
            self.assertEqual([rows.files.paths, self.rows(path.parent, ["img"]).files.paths[0]], [[str(path)], str(self.file("a.zarr"))])
            self.assertEqual(rows.blocks, None)
            few = self.rows(path, ["img"], cache=4 * 216)
            self.assertEqual((few.blocks.starts, few.blocks.window), ([0, 4, 8, 12], 1))

    # ---- reinforcement learning ----

    def test_transitions_of_minari(self):
        """Where an episode was cut off, its last next observation is there, too."""
        path = self.file("set/data/main_data.hdf5")
        path.parent.mkdir(parents=True)
        with h5py.File(path, "w") as file:
            for episode, length in enumerate(LENGTHS):
                group = file.create_group(f"episode_{episode}")
                group.attrs["total_steps"] = length
                group["observations/goal"], group["observations/state/_index_0"] = numbers(episode, length + 1), numbers(episode, length + 1, of=7)
                group["observations/mission"] = np.array([f"go {episode} {at}" for at in range(length + 1)], h5py.string_dtype())
                group["actions"], group["rewards"] = np.arange(length), np.arange(length) / 4
                group["terminations"], group["truncations"] = (np.arange(length) == (length - 1 if kind else -1) for kind in (episode == 1, episode != 1))
        data = oa.from_episodes(path.parent.parent, delta_steps={"observations": [0, 1]})
        self.assertEqual({*data.stats}, {"actions", "observations/goal", "observations/state/_index_0", "rewards"})
        self.assertEqual(data.stats["observations/goal"]["count"], len(STEPS))      # and not those behind the last action
        for index, (episode, at) in enumerate(STEPS):
            sample = data.dataset[index]
            np.testing.assert_array_equal(sample["observations/goal"], numbers(episode, 9)[[at, at + 1]])
            np.testing.assert_array_equal(sample["observations/state/_index_0"], numbers(episode, 9, of=7)[[at, at + 1]])
            self.assertEqual((sample["observations_is_pad"].tolist(), sample["observations/mission"]), ([False, False], f"go {episode} {at}"))
            is_last = at == LENGTHS[episode] - 1
            self.assertEqual((sample["actions"], sample["rewards"], sample["terminations"], sample["truncations"]),
                             (at, at / 4, is_last and episode == 1, is_last and episode != 1))

    def test_transitions_of_d4rl(self):
        """A timeout is no terminal, and what comes behind it not known: qlearning_dataset() leaves this step out."""
        seen = np.concatenate([numbers(episode) for episode in range(3)])
        told = {"observations": seen, "actions": seen[:, :1], "rewards": seen[:, 0], "infos/qpos": seen, "metadata/policy/bias": np.zeros(3),
                "terminals": np.isin(np.arange(15), [4]), "timeouts": np.isin(np.arange(15), [7])}
        with h5py.File(self.file(), "w") as file:
            for name, value in told.items():
                file[name] = value
        rows, kept = self.rows(self.file(), delta_steps={"observations": [0, 1]}), []
        for index, (episode, at) in enumerate(STEPS):
            sample = rows[index]
            is_last = at == LENGTHS[episode] - 1
            self.assertEqual(sample["observations_is_pad"].tolist(), [False, is_last])
            np.testing.assert_array_equal(sample["observations"], numbers(episode)[[at, at if is_last else at + 1]])
            if sample["terminals"] or not sample["observations_is_pad"][1]:
                kept.append(index)
        self.assertEqual(kept, [index for index in range(14) if index != 7])        # as qlearning_dataset()
        with h5py.File(self.file(), "a") as file:
            del file["timeouts"]
        with self.assertWarnsRegex(UserWarning, "has no timeouts"):
            self.assertEqual([each["length"] for each in oa.from_episodes(self.file(), ["actions"]).episodes], [5, 10])

    def test_a_file_for_each_episode(self):
        for episode in range(3):
            with h5py.File(self.file(f"episode_{episode}.hdf5"), "w") as file:
                file["action"], file["observations/images/top"] = numbers(episode), frames(episode)
        rows = self.rows(self.file().parent, ["observations/images/top", "action", "frame_index"], delta_steps={"action": [4]})
        for index, (episode, at) in enumerate(STEPS):
            np.testing.assert_array_equal(rows[index]["observations/images/top"], frames(episode)[at])
            self.assertEqual(rows[index]["action"].tolist(), [numbers(episode)[min(at + 4, LENGTHS[episode] - 1)].tolist()])
            self.assertEqual(rows[index]["frame_index"], at)

    def test_frames_that_are_files(self):
        """As Minari writes large ones, of varied length, and ALOHA, in rows as long as the longest."""
        def file_of(frame):
            made = io.BytesIO()
            Image.fromarray(frame).save(made, "png")
            return np.frombuffer(made.getvalue(), np.uint8)
        with h5py.File(self.file(), "w") as file:
            for episode, length in enumerate(LENGTHS):
                files, group = [file_of(frame) for frame in frames(episode)], file.create_group(f"episode_{episode}")
                row = group.create_dataset("observations/row", (length, max(map(len, files)) + episode), np.uint8)
                image = group.create_dataset("observations/image", length, h5py.vlen_dtype(np.uint8))
                for at, each in enumerate(files):
                    image[at], row[at, :len(each)] = each, each
                group["actions"] = numbers(episode)
        data = oa.from_episodes(self.file(), keep=0.2)
        self.assertEqual(data.cameras, ["observations/image", "observations/row"])
        seen = 0
        for batch in self.open(data, oa.Compose([oa.transforms.CenterCrop(8)]), shuffle=False, epochs=1, copy=True, as_="numpy"):
            for image, row in zip(batch["observations/image"], batch["observations/row"]):
                want = frames(STEPS[seen][0])[STEPS[seen][1]]
                np.testing.assert_array_equal(row, want)
                np.testing.assert_array_equal(image, want[:, :8])       # half of a column goes to the right
                seen += 1
        self.assertEqual(seen, len(STEPS))
        window = self.rows(self.file(), delta_steps={"observations": [1, 0]})[4]
        np.testing.assert_array_equal(window["observations/row"], frames(0)[[4, 4]])

    # ---- by a Loader ----

    def test_a_pipeline_and_blocks(self):
        path = write_demos(self.file(), chunk=2)
        pipeline = oa.Compose([oa.transforms.Resize((8, 9)), oa.transforms.RandomHorizontalFlip(1.0)])
        data = oa.from_episodes(path, [CAMERA, "actions", WRIST, "episode_index", "frame_index"], delta_steps={"actions": [0, 1]}, images=[WRIST],
                                cache=2000, workers=2, keep=0.2)
        self.assertEqual((data.dataset.blocks.starts, data.dataset.blocks.window), ([0, 2, 4, 5, 7, 8, 10, 12, 14], 3))
        seen = []
        for batch in self.open(data, pipeline, shuffle="blocks", seed=1, epochs=1, copy=True, as_="numpy", batch_size=4):
            for place in range(len(batch["actions"])):
                episode, at = int(batch["episode_index"][place]), int(batch["frame_index"][place])
                np.testing.assert_array_equal(batch[CAMERA][place], frames(episode)[at][:, ::-1])
                np.testing.assert_array_equal(batch[WRIST][place], 255 - frames(episode)[at][:, ::-1])
                np.testing.assert_array_equal(batch["actions"][place], numbers(episode, width=3)[[at, min(at + 1, LENGTHS[episode] - 1)]])
                self.assertEqual(batch["actions_is_pad"][place].tolist(), [False, at == LENGTHS[episode] - 1])
                seen.append((episode, at))
        self.assertEqual(sorted(seen), STEPS)
        self.assertNotEqual(seen, STEPS)

    def test_pixels_that_are_floats(self):
        """As of Diffusion Policy's PushT; a frame that is none is a bad sample."""
        img = np.concatenate([frames(episode, size=(20, 20)) for episode in range(3)]).astype(np.float32)
        img[6, 0, 0, 0] = 0.5
        data = oa.from_episodes(write_row(self.file(), img=img, depth=img[..., :1]), ["img", "depth", "action"], keep=0.2)
        self.assertEqual((data.cameras, data.dataset[0]["img"].dtype, data.dataset[0]["depth"].dtype), (["img"], "uint8", "float32"))
        loader = self.open(data, bad="skip", shuffle=False, epochs=1, copy=True, as_="numpy")
        found = np.concatenate([batch["img"] for batch in loader])
        np.testing.assert_array_equal(found, np.delete(img, 6, 0))
        self.assertEqual([bad.index for bad in loader.bad_samples], [6])
        with self.assertRaisesRegex(oa.Error, "data/img has pixels that are no whole numbers from 0 to 255"):
            data.dataset[6]

    # ---- what is wrong ----

    def test_arguments(self):
        path = write_demos(self.file())
        for words, options in (("names 'obs/font'; the data set has", {"columns": ["obs/font"]}), ("names 'ob'; the data", {"delta_steps": {"ob": [0]}}),
                               ("has no place in a batch", {"columns": ["src_demo_inds"]}), ("there are: train, valid", {"split": "test"}),
                               ("names 3: the data set has 3", {"episodes": [3]}), ("no episode is meant", {"episodes": []}),
                               ("cameras are: obs/front, obs/wrist", {"pixels": {"actions": (3, 3)}}),
                               ("give .height, width", {"pixels": {"obs/front": 3}, "columns": ["obs/front"]}), ("pixels=.*say of which field", {"pixels": (3, 3)}),
                               ("delta_steps=.*say of which field", {"delta_steps": ["actions"]}), ("episodes is 5", {"episodes": 5}), ("episodes is", {"episodes": [0.5]}),
                               ("image_transforms is a int", {"image_transforms": 3}), ("drop_n_last_frames is -1", {"drop_n_last_frames": -1}),
                               ("the data set has no samples", {"drop_n_last_frames": 7}), ("cache is 0", {"cache": 0})):
            with self.subTest(words=words):
                self.refused(words, path, **{"columns": ["actions"], **options})
        self.refused("a path is 3", 3)
        self.refused("empty list of files", [])
        self.refused("no episode file is at", self.file("gone"), error=FileNotFoundError)
        self.refused("no filter keys|there are none|is none: name episodes=", write_row(self.file("row.hdf5")), split="train")
        with h5py.File(self.file("other.hdf5"), "w") as file:
            file["images"] = np.zeros(3)
        self.refused("has no episodes: neither data/demo_N.*from_hdf5", self.file("other.hdf5"))
        self.file("text.hdf5").write_text("no HDF5")
        self.refused("text.hdf5 has no episodes that can be read", self.file("text.hdf5"))

    def changed(self, change, columns=("actions",), index=0):
        """A file of demonstrations that was written otherwise, and its step."""
        path = write_demos(self.file())
        with h5py.File(path, "a") as file:
            change(file)
        rows = self.rows(path, list(columns))
        return pickle.loads(pickle.dumps(rows))[index]

    def test_files_that_are_wrong(self):
        def replaced(name, value):
            def change(file):
                del file[name]
                if value is not None:
                    file[name] = value
            return change

        def told(name, key, value):
            return lambda file: file[name].attrs.__setitem__(key, value)
        for words, change, columns, index in (
                ("demo_10/actions has the shape .4, 3. and", replaced("data/demo_10/actions", np.zeros((4, 3))), ["actions"], 0),
                ("demo_10/actions has the shape .3, 3. and the type int64", replaced("data/demo_10/actions", np.zeros((3, 3), int)), ["actions"], 0),
                ("no episodes that can be read: KeyError", replaced("data/demo_11/actions", None), ["actions"], 0),
                ("obs/front has the shape .3, 4, 4, 3.", replaced(f"data/demo_10/{CAMERA}", np.zeros((3, 4, 4, 3), np.uint8)), [CAMERA], 6),
                ("obs/front, step 1, cannot be read: KeyError", replaced(f"data/demo_10/{CAMERA}", None), [CAMERA], 6),
                ("demo_9, does not say how many steps it has: -1", told("data/demo_9", "num_samples", -1), ["actions"], 0),
                ("no array with a value for each of its 1,000 steps", told("data/demo_9", "num_samples", 1000), ["actions"], 0),
                ("has no episodes that can be read: ValueError", told("data/demo_9", "num_samples", "many"), ["actions"], 0),
                ("has no episodes that can be read: OverflowError", told("data/demo_9", "num_samples", np.inf), ["actions"], 0)):
            with self.subTest(words=words), self.assertRaisesRegex(oa.Error, words):
                self.changed(change, columns, index)
        path = write_demos(self.file("texts.hdf5"))
        with h5py.File(path, "a") as file:
            for number, name in enumerate(("demo_9", "demo_10", "demo_11")):
                file[f"data/{name}/word"] = np.array([f"{number} {at}".encode() for at in range(LENGTHS[number])])
        self.assertEqual(self.rows(path, ["word"])[6]["word"], "1 1")
        for at in 0, 1:         # of all episodes, or but the first
            with h5py.File(path, "a") as file:
                for number, name in enumerate(("demo_9", "demo_10", "demo_11")):
                    file.pop(f"data/{name}/said", None)
                    file[f"data/{name}"].create_dataset("said", LENGTHS[number], f"S{100000 if number >= at else 10}", chunks=(1,))
            with self.assertRaisesRegex(oa.Error, "has texts of 100,000 bytes"):
                self.rows(path, ["said"])._numbers("said")
        self.file("secret").write_bytes(bytes(64))
        with h5py.File(path, "a") as file:
            file["data/demo_9"].create_dataset("other", LENGTHS[0], "u1", external=[(str(self.file("secret")), 0, LENGTHS[0])])
        self.refused("has its values in files of another kind", path, ["other"])
        path = write_row(self.file("row.hdf5"))
        with h5py.File(path, "a") as file:
            del file["meta/episode_ends"]
            file.create_group("meta/episode_ends")
        self.refused("row.hdf5 has no episodes that can be read: AttributeError", path)
        for value in ("{", "[]", "[" * 100000, '{"language_instruction": {}}'):
            self.changed(told("data", "problem_info", value))
        for ends in ([5, 3, 15], [-1, 3, 8], [5, 8, 1 << 40]):
            path = write_row(self.file("row.hdf5"))
            with h5py.File(path, "a") as file:
                file["meta/episode_ends"][:] = ends
            self.refused("do not end one behind the other", path)
            with h5py.File(path, "a") as file:
                file["meta/episode_ends"][:] = [5, 8, 16]
            self.refused("has no array with a value for each of its 16 steps", path)
        rows = self.rows(write_demos(self.file()), ["actions"])
        with mock.patch("os.sysconf", return_value=8), self.assertRaisesRegex(oa.Error, "actions have 0.0 GiB, and this machine's memory is 0.0 GiB: name fewer"):
            rows[0]
        os.utime(self.file(), ns=(0, 0))
        with self.assertRaisesRegex(oa.Error, "was written to since"):
            pickle.loads(pickle.dumps(rows))


if __name__ == "__main__":
    unittest.main()
