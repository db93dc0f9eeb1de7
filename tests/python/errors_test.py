# SPDX-License-Identifier: Apache-2.0
"""Errors as a Python program expects them: Python's classes, Python's words, and how to mend it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import warnings

import oneaccess as oa
from oneaccess import errors
from support import SAMPLES, DaemonCase

LITERALS = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')
C_WORDS = re.compile(r"\bOA_[A-Z]|\boa_[a-z_]+\(|\boptions\.")
TREE = pathlib.Path(__file__).resolve().parents[2]


def texts(source):
    """The string literals of a C file, those that stand together as one."""
    for literal in LITERALS.findall(source):
        yield re.sub(r'"\s*"', "", literal.strip())[1:-1].replace('\\"', '"')


class WordsTest(unittest.TestCase):
    def test_no_text_of_the_library_keeps_words_of_c(self):
        found = 0
        for file in sorted((TREE / "libaccess").rglob("*.c")):
            if file.name == "error.c" or file.name.startswith("mix"):  # names of codes; what Python has no call for
                continue
            for text in texts(re.sub(r"^#.*$", "", file.read_text(), flags=re.M)):
                if C_WORDS.search(text) and not text.startswith("OA_POISON"):  # which ends the process
                    found += 1
                    self.assertNotRegex(errors.in_python(text), C_WORDS, f"{file.name}: {text}")
        self.assertGreater(found, 40)

    def test_paths_stay_as_they_are(self):
        for path in ("/data/options.batch/OA_COPY", "/x/oa_open()", "/d/a.options.seed"):
            self.assertIn(path, errors.in_python(f'cannot open dataset "{path}": why'))

    def test_all_that_is_imported_is_named(self):
        """What the package takes from its modules is public, and a merge that leaves some out of __all__ is seen."""
        public = {name for name, value in vars(oa).items() if getattr(value, "__module__", "").startswith("oneaccess.") and not name.startswith("_")}
        self.assertEqual(public - {*oa.__all__}, set())
        self.assertEqual([name for name in oa.__all__ if not hasattr(oa, name)], [])
        self.assertEqual(oa.__all__, sorted(oa.__all__))

    def test_an_import_needs_nothing_else(self):
        """What a function needs is imported there: NumPy, too, may be missing or of another kind."""
        program = "import sys, oneaccess; print(*{'av', 'jax', 'numpy', 'PIL', 'pyarrow', 'tensorflow', 'torch', 'zarr'} & {*sys.modules})"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout, "\n")

    def test_words(self):
        for text, words in (("oa_open(): options.batch is 0, must be 1 to 9", "batch_size is 0, must be 1 to 9"),
                            ("oa_open(): options.sampler.weights needs options.order OA_ORDER_SEEDED",
                             'weights needs order="seeded"'),
                            ("oa_open(): options.sampler.from and .to are 2 and 1", "split is 2 and 1")):
            self.assertEqual(errors.in_python(text), words)


class PathsTest(DaemonCase):
    def fails(self, kind, path):
        with self.assertRaises(kind) as caught:
            oa.Loader(path, oa.imagenet_train(32), 16, socket=self.socket)
        self.assertIsInstance(caught.exception, errors.DatasetError)
        return caught.exception

    def test_what_is_not_there(self):
        path = str(self.work / "nowhere")
        error = self.fails(FileNotFoundError, path)
        self.assertEqual(error.filename, path)
        self.assertIn(path, str(error))
        self.assertFalse(str(error).startswith("[Errno"))

    def test_a_url(self):
        self.assertIn("begins with one of s3://", str(self.fails(errors.DatasetError, "ftp://bucket/train")))

    def test_what_is_no_folder(self):
        file = self.work / "notes.txt"
        file.write_text("no data set")
        self.fails(NotADirectoryError, str(file))
        self.fails(NotADirectoryError, str(file / "train"))

    def test_files_of_other_kinds_are_told_what_reads_them(self):
        for name, words in (("a.npz", "save each array as .npy"), ("train.txt", "columns as path and label"),
                            ("a.h5", "from_hdf5"), ("a.h5ad", "from_h5ad"), ("a.pt", r"oneaccess.wrap\(\)"), ("a.jpg", "give its folder")):
            with self.subTest(name=name):
                file = self.work / name
                file.write_text("no data set")
                self.assertRegex(str(self.fails(NotADirectoryError, str(file))), words)
                self.assertNotRegex(str(self.fails(NotADirectoryError, str(file / "train"))), words)
        file = self.work / "instances.JSON"
        file.write_text('{"images": [], "annotations": []}')
        self.assertRegex(str(self.fails(errors.DatasetError, str(file))), "row a line.*COCO's annotations come by oneaccess.from_coco")
        self.assertIn("stars are not looked up", str(self.fails(FileNotFoundError, str(self.work / "*" / "*.jpg"))))

    def test_folders_of_other_kinds_are_told_what_reads_them(self):
        for inside, words in (("metadata/00001-a.metadata.json", "from_iceberg"), ("_versions/1.manifest", "from_lance"), ("zarr.json", "from_zarr"),
                              (".zgroup", "from_zarr"), ("meta/info.json", "from_lerobot"), ("features.json", "from_rlds"), ("data/main_data.hdf5", "from_episodes")):
            with self.subTest(inside=inside):
                file = self.work / f"of {words}" / inside
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("{}")
                self.assertIn(f"oneaccess.{words}(", str(self.fails(errors.DatasetError, str(self.work / f"of {words}"))))

    def test_a_folder_that_nobody_opens(self):
        if os.geteuid() == 0:
            self.assertIs(errors._PATHS[13], errors.ClosedError)  # root opens all of them
            return
        closed = self.work / "closed"
        closed.mkdir(mode=0)
        self.addCleanup(closed.chmod, 0o700)
        self.fails(PermissionError, str(closed))

    def test_a_folder_without_pictures_is_another_error(self):
        empty = self.work / "empty"
        empty.mkdir(exist_ok=True)
        self.assertNotIsInstance(self.fails(errors.DatasetError, str(empty)), OSError)

    def test_home(self):
        home = os.environ.get("HOME")
        os.environ["HOME"] = str(self.work)
        try:
            with oa.Loader("~/data", oa.imagenet_train(32), 16, socket=self.socket) as loader:
                self.assertEqual(str(loader.dataset), self.data)
        finally:
            if home is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = home


class ArgumentsTest(DaemonCase):
    def test_a_name_that_no_pipeline_has(self):
        with self.assertRaises(ValueError) as caught:
            self.loader("imagenet_train", 16)
        for name in ("imagenet_train", "imagenet-train", "imagenet-eval-u8"):
            self.assertIn(name, str(caught.exception))

    def test_what_is_no_pipeline(self):
        for wrong, words in ((32, "32 is no pipeline: .*batch_size=32"), (oa.imagenet_train, r"call it, as imagenet_train\(\)"),
                             (lambda image: image, r"is no pipeline: .*oneaccess.wrap\(\)")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(oa.errors.TransformError, words):
                self.loader(wrong, 16)

    def test_a_list_is_a_pipeline(self):
        """Also one in which a name of torchvision's stands for several ops, as ToTensor() does."""
        t = oa.transforms
        for transforms in ([t.Resize((32, 32)), t.ToTensor()], (t.ToTensor(), t.Resize((32, 32))), t.Compose([t.Resize((32, 32)), t.ToTensor()])):
            with self.subTest(transforms=transforms):
                self.assertEqual(next(iter(self.loader(transforms, 16)))[0].shape, (16, 3, 32, 32))
        self.assertEqual(next(iter(self.loader(t.Resize((32, 32)), 16)))[0].shape, (16, 32, 32, 3))

    def test_what_is_no_size(self):
        """A text, whose letters would be taken for two sides."""
        for make in (oa.transforms.Resize, oa.transforms.CenterCrop, oa.imagenet_train, oa.imagenet_eval):
            for size in ("64", 64.5, ("64", "64"), (64, None), float("nan"), float("inf"), {"height": 64}):
                with self.subTest(make=make, size=size), self.assertRaisesRegex(oa.errors.TransformError, "size is .*: a whole number of pixels"):
                    make(size)
        self.assertEqual([oa.transforms.Resize(size).parameters["size"] for size in (64, 64.0, (64,), [64, 96.0])], [64, 64, 64, [64, 96]])

    def test_what_is_no_number(self):
        for size in (0, -1, 2.0, "32", None):
            with self.assertRaisesRegex(oa.errors.ArgumentError, f"batch_size is {size!r}"):
                self.loader(oa.imagenet_train(32), size)
        for rank, ranks in ((2, 2), (-1, 2), (1, 1)):
            with self.assertRaisesRegex(oa.errors.ArgumentError, f"rank={rank}, world_size={ranks}"):
                self.loader(rank=rank, world_size=ranks)

    def test_what_would_mean_something_else(self):
        """A mask, of which two samples would be taken over and over; a part without samples; a word in the place of a truth."""
        for options, words in (({"ids": [True, False, True]}, "ids has booleans.*numpy.flatnonzero"), ({"split": (0, 0)}, "split is 0 and 0, must be 0 to 1, and differ"),
                               ({"split": (0, .5, 1, 2)}, "split is .0, 0.5, 1, 2.: .from, to. or .from, to, seed"), ({"split": .5}, "split is 0.5"),
                               ({"seed": -1}, "seed is -1: a whole number from 0"), ({"seed": 1 << 64}, "seed is 18446744073709551616: .*below 2.64"),
                               ({"seed": 1.5}, "seed is 1.5"), ({"split": (0, .5, -1)}, "the seed of split is -1"),
                               ({"epochs": 0}, "epochs is 0"), ({"epochs": -1}, "epochs is -1"), ({"weights": [1] * SAMPLES, "samples": 0}, "samples is 0"),
                               ({"shuffle": "block"}, 'shuffle is \'block\'; there are: True, False, "blocks"'), ({"timeout": "x"}, "timeout is 'x'"),
                               ({"timeout": -1}, "timeout is -1"), ({"timeout": float("nan")}, "timeout is nan")):
            with self.subTest(options=options), self.assertRaisesRegex(errors.ArgumentError, words):
                self.loader(**options)
        for timeout in (0, float("inf"), 1e30):    # torch's 0 is no limit
            self.assertEqual(sum(len(batch.ids) for batch in self.loader(timeout=timeout)), SAMPLES)
        self.assertIsNone(self.loader(timeout=0)._timeout)

    def test_words_are_pythons(self):
        with self.assertRaisesRegex(oa.errors.ArgumentError, "leave ids out for all"):
            self.loader(ids=[])
        with self.assertRaisesRegex(oa.errors.StateError, r"give what state_dict\(\) returned, unchanged"):
            self.loader(state={"oneaccess": 1, "token": "AAAA"})

    def test_a_seed_alone(self):
        with self.assertWarnsRegex(UserWarning, 'seed=7 .* order="seeded"') as caught:
            one = self.loader(seed=7)
        self.assertEqual(pathlib.Path(caught.filename).name, "support.py")  # where the Loader is made
        two = self.loader(seed=7, order="seeded")
        self.assertEqual([int(i) for batch in one for i in batch.ids], [int(i) for batch in two for i in batch.ids])

    def test_a_seed_with_an_order_says_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.loader(seed=7, order="seeded")
            self.loader(seed=7, shuffle=False)

    def test_weights_alone(self):
        weights = [0.0] * 240
        weights[17] = 1.0
        loader = self.loader(oa.imagenet_train(32), 8, weights=weights, samples=8, replacement=True)
        self.assertEqual([int(i) for batch in loader for i in batch.ids], [17] * 8)


class BadSampleTest(DaemonCase):
    def test_the_error_says_how_to_go_on(self):
        folder = self.work / "bad" / "a"
        folder.mkdir(parents=True)
        good = sorted(pathlib.Path(self.data).rglob("*.*"))[:9]
        for number, file in enumerate(good):
            shutil.copy(file, folder / f"{number}{file.suffix}")
        (folder / "zz.jpg").write_bytes(b"no picture")
        loader = oa.Loader(folder.parent, oa.imagenet_train(32), 5, socket=self.socket, timeout=600)
        self.addCleanup(loader.close)
        with self.assertRaises(errors.SampleError) as caught:
            for _ in range(2):
                list(loader)
        for words in ("zz.jpg", 'bad="skip"', "Loader.bad_samples"):
            self.assertIn(words, str(caught.exception))
        self.assertEqual([bad.path for bad in loader.bad_samples], [str(folder / "zz.jpg")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
