# SPDX-License-Identifier: Apache-2.0
"""from_rlds() against what TensorFlow Datasets 4.9.10 itself read of the files that it wrote: rlds.json has the files, base64, the steps that it
said (of pictures the beginning of their files' SHA-256), and the statistics that OpenVLA's formula makes of them."""

import base64
import copy
import hashlib
import io
import json
import os
import pathlib
import pickle
import shutil
import struct
import sys
import tempfile
import unittest
import warnings
from unittest import mock

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"rlds_test: skipped: {missing}")
    sys.exit(77)

import damage
import oneaccess as oa
from oneaccess.domains import rlds_files
from oneaccess.sources import tfrecord
from robot_samples import noisy
from shard_files import _varint, write_tfrecord
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

GOLDEN = json.loads((pathlib.Path(__file__).parent / "rlds.json").read_text(encoding="utf-8"))
EPISODES = GOLDEN["episodes"]["train"]
STEPS = [(episode, at) for episode, each in enumerate(EPISODES) for at in range(len(each["steps"]))]
CAMERAS = ["observation/image", "observation/wrist_image"]
TEXTS = ("language_instruction", "episode_metadata/file_path")
NUMBERS = ["action", "action_dict/joint", "discount", "is_first", "is_last", "is_terminal", "kind", "observation/bumps", "observation/state",
           "observation/touch", "reward", "tick", "episode_metadata/number", "episode_metadata/success"]
TYPES = {"kind": "int64", "tick": "int64", "observation/bumps": "int64", "episode_metadata/number": "int64", "is_first": "bool", "is_last": "bool",
         "is_terminal": "bool", "episode_metadata/success": "bool"}
ALL = [*CAMERAS, *NUMBERS, *TEXTS]


def said(name, episode, at):
    """By TFDS."""
    value = EPISODES[episode] if name.startswith("episode_metadata/") else EPISODES[episode]["steps"][at]
    for key in name.split("/"):
        value = value[key]
    return base64.b64decode(value).decode() if name in TEXTS else value


def sha(data):
    return hashlib.sha256(data).hexdigest()[:16]


class RLDSTest(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["XDG_CACHE_HOME"] = str(cls.work / "kept")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.work)) / "1.0.0"
        self.folder.mkdir()
        for name, data in GOLDEN["files"].items():
            (self.folder / name).write_bytes(base64.b64decode(data))

    def opened(self, columns=ALL, split="train", **options):
        return oa.from_rlds(self.folder, split, columns, keep=0.2, **options)

    def rows(self, *args, **options):
        return self.opened(*args, **options).dataset

    def refused(self, words, *args, error=oa.Error, **options):
        with self.assertRaisesRegex(error, words):
            self.opened(*args, **options)

    def told(self, file="features.json", **changes):
        """Features of steps that are others."""
        told = json.loads(base64.b64decode(GOLDEN["files"][file]))
        told["featuresDict"]["features"]["steps"]["sequence"]["feature"]["featuresDict"]["features"].update(changes)
        (self.folder / file).write_text(json.dumps(told))

    # ---- samples ----

    def check(self, rows):
        self.assertEqual(len(rows), len(STEPS))
        for index, (episode, at) in enumerate(STEPS):
            sample = rows[index]
            self.assertEqual([*sample], ALL)
            for name, value in sample.items():
                want = said(name, episode, at)
                if name in TEXTS:
                    self.assertEqual(value, want)
                elif name in CAMERAS:
                    self.assertEqual(sha(value), want)
                else:
                    np.testing.assert_array_equal(value, np.array(want, value.dtype), f"{name} {episode} {at}")
                    self.assertEqual(value.dtype.name, TYPES.get(name, "float32"), name)

    def test_steps_are_those_of_tfds(self):
        rows = self.rows()
        self.check(rows)
        self.check(pickle.loads(pickle.dumps(rows)))
        rows = self.rows(["frame_index", "episode_index"])
        self.assertEqual([(sample["episode_index"], sample["frame_index"]) for sample in (rows[index] for index in range(len(rows)))], STEPS)
        with self.assertRaises(IndexError):
            rows[len(STEPS)]

    def test_splits_are_those_of_tfds(self):
        for split, numbers in GOLDEN["splits"].items():
            rows = self.rows(["episode_metadata/number"], split)
            found = [int(rows[int(start)]["episode_metadata/number"]) for start, end in zip(rows.starts, rows.starts[1:]) if end > start]
            there = [number for number in numbers if number != EPISODES[0]["episode_metadata"]["number"]] if split != "all" else None
            if there is None:       # 1, of the episode without steps, is a number of another one, too
                there = numbers[1:]
            self.assertEqual((split, found), (split, there))
        self.refused("has the splits train, val", split="test")
        self.refused("has no sample", split="train[:0]")
        self.refused("has no samples", split="train[:1]")       # an episode without steps

    def test_windows_are_those_of_octo(self):
        history, ahead = 3, 4
        rows = self.rows(["observation/state", "action", "is_first", "language_instruction"],
                         delta_steps={"observation": range(1 - history, 1), "action": range(1 - history, ahead + 1), "observation/touch": [0], "tick": [5, -5]})
        for index, (episode, at) in enumerate(STEPS):
            sample, count = rows[index], len(EPISODES[episode]["steps"])
            for name, key, first, last in (("observation/state", "observation", 1 - history, 0), ("action", "action", 1 - history, ahead)):
                places = np.arange(first, last + 1) + at        # as chunk_act_obs(), whose masks are where a step is
                want = np.float32([said(name, episode, place) for place in np.clip(places, 0, count - 1)])
                np.testing.assert_array_equal(sample[name], want)
                np.testing.assert_array_equal(sample[f"{key}_is_pad"], (places < 0) | (places >= count))
            self.assertEqual([*sample], ["observation/state", "action", "is_first", "language_instruction", "observation_is_pad", "action_is_pad"])
        rows = self.rows(["tick", "tick_is_pad", "observation/bumps", "observation/touch"],
                         delta_steps={"tick": [5, -5], "observation": [0], "observation/touch": [1, 0]})
        episode, at = STEPS[2]
        self.assertEqual(self.rows(["action"], delta_steps={"action": np.arange(3)})[0]["action"].shape, (3, 7))
        self.assertEqual(rows[2]["tick"].tolist(), [said("tick", episode, min(at + 5, 5)), said("tick", episode, 0)])
        self.assertEqual({name: value.shape for name, value in rows[2].items()}, {
            "tick": (2,), "tick_is_pad": (2,), "observation/bumps": (1, 2), "observation/touch": (2, 2, 2), "observation_is_pad": (1,),
            "observation/touch_is_pad": (2,)})

    def test_forms_of_pictures(self):
        files = [self.rows(CAMERAS)[index] for index in range(len(STEPS))]
        pixels = [{name: np.asarray(Image.open(io.BytesIO(data))) for name, data in each.items()} for each in files]
        rows = self.rows(CAMERAS, delta_steps={CAMERAS[0]: [-1, 0]}, pixels={CAMERAS[1]: (6, 9)})
        for index, (_, at) in enumerate(STEPS):
            sample = rows[index]
            np.testing.assert_array_equal(sample[CAMERAS[0]], np.stack([pixels[index - (at > 0)][CAMERAS[0]], pixels[index][CAMERAS[0]]]))
            self.assertEqual(sample[f"{CAMERAS[0]}_is_pad"].tolist(), [at == 0, False])
            want = Image.fromarray(pixels[index][CAMERAS[1]]).resize((9, 6), Image.Resampling.BILINEAR)
            np.testing.assert_array_equal(sample[CAMERAS[1]], np.asarray(want))
        sample = self.rows(CAMERAS, dtype="float32")[3]
        np.testing.assert_array_equal(sample[CAMERAS[0]], pixels[3][CAMERAS[0]].transpose(2, 0, 1) / np.float32(255))

    def test_only_what_a_sample_has_is_read(self):
        rows = self.rows([CAMERAS[1], "action", "language_instruction"], delta_steps={"action": range(3)})
        rows[0]
        read = []
        with mock.patch.object(rlds_files.os, "pread", side_effect=lambda fd, size, at, of=os.pread: read.append(size) or of(fd, size, at)):
            sample = rows[1]
        self.assertEqual(read, [len(sample[CAMERAS[1]]), 3 * 7 * 4, len(sample["language_instruction"].encode())])

    # ---- by a Loader ----

    def test_batches(self):
        data, seen = self.opened(delta_steps={"action": range(3)}, workers=2), 0
        for batch in self.open(data, shuffle=False, epochs=1, copy=True, as_="numpy", batch_size=5):
            self.assertEqual([*batch], [*ALL, "action_is_pad"])
            for place in range(len(batch["tick"])):
                want = data.dataset[seen]
                for name, value in want.items():
                    if name in CAMERAS:
                        value = np.asarray(Image.open(io.BytesIO(value)))
                    got = batch[name][place]
                    self.assertEqual(got, value) if name in TEXTS else np.testing.assert_array_equal(got, value, name)
                    if name not in TEXTS:
                        self.assertEqual(batch[name].dtype, value.dtype, name)
                seen += 1
        self.assertEqual(seen, len(STEPS))

    def test_a_pipeline_has_the_first_camera_and_others_by_name(self):
        pipeline = oa.Compose([oa.transforms.Resize((8, 12)), oa.transforms.RandomHorizontalFlip(1.0)])
        data = self.opened(["observation/image", "action", "observation/wrist_image", "tick"], images=["observation/wrist_image"])
        for batch in self.open(data, pipeline, order="seeded", seed=1, epochs=1, copy=True, as_="numpy"):
            for place, index in enumerate(batch.ids):
                sample = data.dataset[int(index)]
                for camera in CAMERAS:
                    want = Image.open(io.BytesIO(sample[camera])).resize((12, 8), Image.Resampling.BILINEAR)
                    np.testing.assert_array_equal(batch[camera][place], np.asarray(want)[:, ::-1])
                np.testing.assert_array_equal(batch["action"][place], sample["action"])
        beside = self.opened(["observation/image", "observation/wrist_image", "tick"])        # as it is, decoded by the pool
        for batch in self.open(beside, pipeline, order="seeded", seed=1, epochs=1, copy=True, as_="numpy"):
            for place, index in enumerate(batch.ids):
                want = np.asarray(Image.open(io.BytesIO(beside.dataset[int(index)][CAMERAS[1]])))
                np.testing.assert_array_equal(batch[CAMERAS[1]][place], want)

    def test_image_transforms(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no package torch")
        data = self.opened([CAMERAS[0], "tick"], image_transforms=noisy, dtype="float32", delta_steps={CAMERAS[0]: [-1, 0]})
        self.assertTrue(data.random)
        plain = self.rows([CAMERAS[0]], dtype="float32", delta_steps={CAMERAS[0]: [-1, 0]})
        for batch in self.open(data, order="seeded", seed=2, epochs=1, copy=True, as_="numpy"):
            for place, index in enumerate(batch.ids):
                added = batch[CAMERAS[0]][place] - plain[int(index)][CAMERAS[0]]
                self.assertTrue((abs(added - added[0, 0, 0, 0]) < 1e-6).all())

    # ---- beside the samples ----

    def test_statistics(self):
        data = self.opened()
        self.assertEqual([each["length"] for each in data.episodes], [len(each["steps"]) for each in EPISODES])
        self.assertEqual(data.cameras, CAMERAS)
        for kind, want in GOLDEN["stats"]["action"].items():
            np.testing.assert_allclose(data.stats["action"][kind], want, rtol=1e-5, atol=1e-6, err_msg=kind)
        self.assertEqual(data.stats["action"]["count"], len(STEPS))
        self.assertEqual({*data.stats}, {"action", "action_dict/joint", "discount", "observation/bumps", "observation/state", "reward", "tick"})
        ticks = [said("tick", *step) for step in STEPS]
        self.assertEqual((data.stats["tick"]["min"], data.stats["tick"]["max"]), (min(ticks), max(ticks)))
        with self.assertRaises(KeyError):
            data.stats["observation/touch"]
        with mock.patch.object(rlds_files.IndexStats, "_computed", side_effect=AssertionError("again")):
            np.testing.assert_array_equal(self.opened().stats["action"]["q01"], data.stats["action"]["q01"])
            with self.assertRaisesRegex(AssertionError, "again"):
                self.opened(split="train[1:]").stats["action"]
        of_some = self.opened(split="train[1:2]").stats["reward"]
        self.assertEqual((of_some["count"], of_some["max"]), (6, 1))
        kept = pathlib.Path(data.dataset.index.folder)
        for damaged in ("{", "3", "[]", "null", "{}", '{"mean": 1}', "[" * 100000, '{"mean": [[1], [1, 2]]}', '{"mean": {}}'):
            for file in kept.glob("stats-*.json"):
                file.write_text(damaged)
            np.testing.assert_array_equal(self.opened().stats["action"]["q99"], data.stats["action"]["q99"], damaged[:20])
        for file in kept.glob("stats-*.json"):
            file.unlink()
        whole = np.load(kept / "places.npy")
        for change, words in ((whole + [0, 4], "steps/action of record . of arm-train.*is not as features.json says: cannot reshape.*damaged: remove it"),
                              (whole * [1, 0], "there are values for 0 steps, and not for 6; or .* is damaged: remove it"),
                              (whole + [0, 1 << 60], f"{kept} is damaged: remove it")):
            np.save(kept / "places.npy", change)
            with self.assertRaisesRegex(oa.Error, words):
                self.opened().stats["action"]
        np.save(kept / "places.npy", whole)

    def test_what_was_found_is_kept(self):
        first = self.rows()
        with mock.patch.object(rlds_files, "_find", side_effect=AssertionError("again")):
            self.check(self.rows())
            self.assertEqual(self.rows(["action"]).index.folder, first.index.folder)
            with self.assertRaisesRegex(AssertionError, "again"):
                self.rows(split="val")
        kept = pathlib.Path(first.index.folder)
        for name, change in (("steps", lambda path: path.unlink()), ("parts", lambda path: os.truncate(path, 200)), ("places", lambda path: path.write_bytes(b"x")),
                             ("longest", lambda path: np.save(path, np.zeros(3)))):
            change(kept / f"{name}.npy")
            self.check(self.rows())
        whole = (kept / "longest.npy").read_bytes()
        for damaged in (whole.replace(b"}", b" "), b"PK\3\4" + whole, whole.replace(b"<i8", b"|O8")):
            (kept / "longest.npy").write_bytes(damaged)
            self.check(self.rows())
        arrays = {path: np.load(path) for path in kept.glob("*.npy")}
        for path, array in arrays.items():
            np.save(path, array if path.stem == "longest" else array[:0])
        self.check(self.rows())
        kept.with_suffix(".new").mkdir()        # of a job that was killed
        (kept / "steps.npy").unlink()
        self.check(self.rows())
        self.assertFalse(kept.with_suffix(".new").exists())
        self.assertEqual(kept.stat().st_mode, kept.parent.stat().st_mode)
        whole = np.load(kept / "places.npy")
        for damaged in (whole * 0 - 1, whole * 0 + (1 << 60), whole + (1 << 40)):
            np.save(kept / "places.npy", damaged)
            with self.assertRaisesRegex(oa.Error, f"{kept} is damaged: remove"):
                self.rows()[0]
        np.save(kept / "places.npy", whole)
        path = self.folder / "arm-train.tfrecord-00000-of-00002"
        os.utime(path, ns=(0, 0))
        with self.assertRaisesRegex(oa.Error, "was written to since"):
            pickle.loads(pickle.dumps(first))[0]
        again = self.rows()
        self.assertNotEqual(again.index.folder, first.index.folder)
        self.check(again)
        here = self.work / "here"
        self.assertEqual(pathlib.Path(self.rows(index=here).index.folder).parent, here)
        (self.work / "file").write_text("")
        self.refused("cannot be kept in .*: name another folder by index=", index=self.work / "file" / "below")

    # ---- what is wrong ----

    def test_arguments(self):
        for words, options in (("names 'actoin'; the data set has", {"columns": ["actoin"]}),
                               ("names 'actoin'; the data set has", {"delta_steps": {"actoin": [0]}}),
                               ("give whole numbers", {"delta_steps": {"action": 3}}), ("give whole numbers", {"delta_steps": {"action": [1 << 60]}}),
                               ("has no feature, and NAME_is_pad", {"columns": ["action_is_pad"], "delta_steps": {"action": [0]}}),
                               ("has no feature", {"columns": []}), ("give whole numbers", {"delta_steps": {"action": []}}), ("give whole numbers", {"delta_steps": {"action": [0.1]}}),
                               ("is a text, and has no windows", {"delta_steps": {"language_instruction": [0]}}),
                               ("is of the episode, and has no windows", {"delta_steps": {"episode_metadata/number": [0]}}),
                               ("cameras are: observation/image", {"pixels": {"action": (8, 8)}}), ("give .height, width.", {"pixels": {CAMERAS[0]: (8,)}}),
                               ("dtype is 'float64'", {"dtype": "float64"}), ("has no place in a batch", {"columns": ["observation/far"]})):
            with self.subTest(words=words):
                self.refused(words, **options)
        with self.assertRaisesRegex(oa.Error, "give the folder of a version, as .*1.0.0"):
            oa.from_rlds(self.folder.parent, "train")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "path is 3"):
            oa.from_rlds(3, "train")

    def test_what_has_no_place(self):
        with self.assertWarnsRegex(UserWarning, "left out: observation/depth is a picture of 16 bits; observation/far is a picture of floats.*; observation/points"
                                                " differs in length"):
            self.assertEqual({*self.opened(None).dataset.names}, {*ALL})
        with self.assertWarnsRegex(UserWarning, "steps is the steps of an episode .RLDS., many samples in one record: oneaccess.from_rlds"):
            oa.from_tfds(self.folder, "train")
        told = json.loads((self.folder / "features.json").read_text())
        del told["featuresDict"]["features"]["steps"]
        (self.folder / "features.json").write_text(json.dumps(told))
        self.refused("has no steps of episodes .*from_tfds", ["episode_metadata/number"], error=oa.errors.ArgumentError)
        for name, words in (("array_record", "format array_record, of which nothing can be read alone"), ("riegeli", "which are not read here")):
            (self.folder / "features.json").write_bytes(base64.b64decode(GOLDEN["files"]["features.json"]))
            info = base64.b64decode(GOLDEN["files"]["dataset_info.json"]).replace(b'"fileFormat":"tfrecord"', b'"fileFormat":"%s"' % name.encode())
            (self.folder / "dataset_info.json").write_bytes(info.replace(b"{FILEFORMAT}", b"tfrecord"))
            self.refused(words)

    def test_features_that_records_do_not_have(self):
        told = {"pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor", "tensor": {"shape": {"dimensions": ["6"]}, "dtype": "float32",
                                                                                                     "encoding": "none"}}
        for name, change, words in (("action", told, "feature steps/action has values for 7 steps, and not for 6|has values for"),
                                    ("new", told, "feature steps/new has values for 0 steps, and not for 6"),
                                    ("tick", told, "feature steps/tick is a list of another type")):
            self.told(**{name: change})
            with self.subTest(name=name):
                self.refused(f"record [01] is no episode as features.json says: ({words})", split="train[1:]", error=oa.errors.DatasetError)

    def test_a_picture_that_is_none(self):
        path, at = self.folder / "arm-train.tfrecord-00000-of-00002", 4
        picture = self.rows([CAMERAS[1]])[at][CAMERAS[1]]
        path.write_bytes(path.read_bytes().replace(picture, b"\0" * len(picture)))
        with self.assertRaisesRegex(oa.Error, "step 4 of record 1 of arm-train.tfrecord-00000-of-00002, observation/wrist_image, has no picture that can"
                                              " be decoded"):
            self.rows([CAMERAS[1]], dtype="float32")[at]
        loader = self.open(self.opened([CAMERAS[1], "tick"]), bad="skip", epochs=1, shuffle=False, copy=True)
        self.assertEqual(sum(len(batch["tick"]) for batch in loader), len(STEPS) - 1)
        self.assertEqual([bad.index for bad in loader.bad_samples], [at])

    def test_a_file_that_is_cut_off_later(self):
        rows = self.rows(CAMERAS)
        rows[0]
        os.truncate(self.folder / "arm-train.tfrecord-00000-of-00002", 2000)
        with self.assertRaisesRegex(oa.Error, "00000-of-00002 was cut off since it was opened"):
            rows[6]

    # ---- damage ----

    def test_messages(self):
        """What Protocol Buffers forbid, and what they allow and TFDS does not write."""
        numbers = [0, 1, 127, 128, -1, 1 << 62, -(1 << 63)]
        self.assertEqual(tfrecord.whole_numbers(b"".join(map(_varint, numbers))).tolist(), numbers)
        self.assertEqual(len(tfrecord.whole_numbers(b"")), 0)
        for data, error in ((b"\x01\x80", IndexError), (b"\x80" * 10 + b"\x01", ValueError)):
            with self.assertRaises(error):
                tfrecord.whole_numbers(data)
        self.assertEqual(list(tfrecord.places(b"\x0a\x02ab\x10\x05", 0, 6)), [(1, 2, 2, 4), (2, 0, 5, 6)])
        for data, end, error in ((b"\x0a\x03abc", 4, IndexError), (b"\x0a\x09abc", 5, IndexError), (b"\x0d123", 4, IndexError), (b"\x0b", 1, KeyError),
                                 (b"\x08" + b"\x80" * 1000, 1001, ValueError)):
            with self.assertRaises(error):
                list(tfrecord.places(data, 0, end))
        one = b"\x0a\x04\0\0\0\0"
        self.assertEqual(rlds_files._packed(one, 0, 6), (2, 6))
        self.assertEqual(rlds_files._packed(one, 0, 0), (0, 0))
        for data in one + one, b"\x0d\0\0\0\0", b"\x08\x01":
            with self.assertRaisesRegex(ValueError, "is not packed"):
                rlds_files._packed(data, 0, len(data))

    def tried(self, columns=ALL):
        """Whatever is in the files, it is told in words of ours."""
        try:
            rows = self.rows(columns, index=self.folder / "index")
            for index in range(min(len(rows), 8)):
                rows[index]
        except oa.Error:
            return False
        finally:
            shutil.rmtree(self.folder / "index", ignore_errors=True)
        return True

    def test_damaged_features(self):
        whole = json.loads(base64.b64decode(GOLDEN["files"]["features.json"]))
        steps = whole["featuresDict"]["features"]["steps"]["sequence"]["feature"]["featuresDict"]["features"]
        for name in [*steps]:       # one of each kind is enough
            if name not in ("observation", "action", "tick", "language_instruction"):
                del steps[name]
        for name in ("far", "depth", "state", "wrist_image", "bumps"):
            del steps["observation"]["featuresDict"]["features"][name]
        good = 0
        for made in damage.of_json(copy.deepcopy(whole)):
            (self.folder / "features.json").write_text(json.dumps(made))
            good += self.tried(["action", "tick", "language_instruction", "observation/image", "observation/touch"])
        self.assertGreater(good, 0)

    def test_damaged_records(self):
        path = self.folder / "arm-train.tfrecord-00000-of-00002"
        records, data = [], path.read_bytes()
        while data:
            length, = struct.unpack_from("<Q", data)
            records.append(data[12:12 + length])
            data = data[16 + length:]
        good = 0
        with mock.patch("shard_files._masked", return_value=b"\0" * 4):     # nobody looks at checksums here
            for made in damage.of_bytes(records[1], 200):
                write_tfrecord(path, [records[0], made, *records[2:]])
                good += self.tried()
        self.assertGreater(good, 0)


if __name__ == "__main__":
    unittest.main()
