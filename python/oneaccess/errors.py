# SPDX-License-Identifier: Apache-2.0
"""Exceptions of OneAccess. Each text says what is wrong, where, and how to mend it.

Every one is an ``Error`` with ``code`` (of libaccess; 0: of this package) and ``name`` ("OA_E_TIMEOUT"). Most are also one
of Python's own, so that ``except TimeoutError`` works.
"""

import errno
import glob
import importlib
import os
import re
import sys
import types
import warnings


class Error(Exception):
    """The base class."""

    code = 0
    name = ""

    def __str__(self):  # OSError's would begin with a number, once filename is there
        return self.args[0] if len(self.args) == 1 else super().__str__()


class BatchTimeout(Error, TimeoutError):
    """No batch came in time. The text names the stage that stalls: storage, workers, slots or the daemon."""


class HeldError(Error):
    """More batches are held than two slots have, with held="error". Release one."""


class RefusedError(Error):
    """accessd refuses; the text says why and how to mend it."""


class NodeMemoryError(Error):
    """There is not enough memory in accessd's budget. The text has the numbers."""


class DatasetError(Error):
    """The data set cannot be opened, or changed during the job."""


class MissingError(DatasetError, FileNotFoundError):
    """There is no such folder or file; ``filename`` names it."""


def not_there(text: str, path: str) -> MissingError:
    """One of that path."""
    error = MissingError(text)
    error.filename = path
    return error


class NoFolderError(DatasetError, NotADirectoryError):
    """The path leads through a file, or to a file that is no data set; ``filename`` names it."""


class ClosedError(DatasetError, PermissionError):
    """This user may not read the data set; ``filename`` names it."""


class PipelineError(Error, ValueError):
    """The pipeline is wrong. The text names the op and the parameter."""


class SampleError(Error):
    """A sample is bad and bad="error", or an epoch has more bad samples than bad_budget. The text names the file."""


class StateError(Error, ValueError):
    """A saved state is damaged, of another data set or order, or of a newer version."""


class VersionError(Error):
    """This package and the daemon do not fit. The text says which to upgrade."""


class UnreachableError(Error, ConnectionError):
    """No daemon answers, and none could be started."""


class DeniedError(Error, PermissionError):
    """This user may not use that accessd."""


class ForkedError(Error, RuntimeError):
    """A Loader of the parent process was used in a child."""


class ArgumentError(Error, ValueError):
    """An argument is wrong; the text says which."""


class LimitError(Error, OSError):
    """A limit of this process (descriptors, memory) is too low. The text names it."""


class TransformError(Error, TypeError):
    """A transform, a data set, or an argument of another loader has no counterpart here."""


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(text: str, category: type) -> None:
    """At the line of the program, however many of this package's own lead here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


_CLASSES = {
    2: BatchTimeout,
    3: HeldError,
    4: RefusedError,
    5: NodeMemoryError,
    6: DatasetError,
    7: PipelineError,
    8: SampleError,
    9: StateError,
    10: VersionError,
    11: UnreachableError,
    12: DeniedError,
    13: ForkedError,
    15: ArgumentError,
    16: LimitError,
}

# The library's texts name what C programs call: these words are Python's. A path is no such word.
_WORDS = tuple((re.compile(r"(?<![/\w.-])" + pattern), words) for pattern, words in (
    (r"release one before oa_next\(\), or open with OA_KEEP or OA_COPY",
     'let go of one before the next (del, or no list of them), or open the loader with held="copy" or copy=True'),
    (r"a token that oa_(?:mix_)?state\(\) returned", "what state_dict() returned"),
    (r"leave ids NULL", "leave ids out"),
    (r"oa_\w+\(\):? ?", ""),
    (r"options\.sampler\.from and \.to are", "split is"),
    (r"options\.sampler\.(?:n_)?(\w+)", r"\1"),
    (r"options\.sampler\b", "the part of the data set"),
    (r"options\.flags has OA_RESAMPLE\b", "choose()"),
    (r"options\.flags\b", "a flag"),
    (r"options\.batch\b", "batch_size"),
    (r"options\.ranks\b", "world_size"),
    (r"options\.token_size\b", "its size"),
    (r"options\.token\b", "state"),
    (r"options of\b", "arguments of"),
    (r"options\.size must be sizeof\(struct \w+\)", "this package and libaccess differ"),
    (r"options\.(\w+)", r"\1"),
    (r"order OA_ORDER_(\w+)", lambda match: f'order="{match[1].lower()}"'),
    (r"OA_(ORDER|BAD)_([A-Z]+)", lambda match: f'{match[1].lower()}="{match[2].lower()}"'),
    (r"an OA_(ORDER|BAD|OBJECTIVE)_\.\.\.", "one of those that there are"),
    (r"OA_KEEP\b", 'held="copy"'),
    (r"OA_WRITABLE\b", 'held="copy"'),
    (r"OA_COPY\b", "copy=True"),
    (r"OA_DROP_LAST\b", "drop_last=True"),
    (r"OA_REPLACEMENT\b", "replacement=True"),
    (r"classes are whole numbers from 0, -1 for none, or words",
     "classes are whole numbers from 0, -1 for none, or words; other numbers, and several labels of a row, come by oneaccess.from_csv() or"
     ' from_jsonl(), whose transform= makes {"image": bytes of the file, "label": array} of a row'),
    (r"which the op video decodes", "which the op video decodes: oa.video(frames, size)"),
    (r"which the op audio decodes", "which the op audio decodes: oa.audio(sample_rate, seconds)"),
    (r"whose sound needs oneaccess-video", "whose sound needs access-video.so, of the package oneaccess-video or a build with FFmpeg's libraries; without it"
     " ffmpeg -i FILE -vn FILE.flac makes a file of its sound that is read"),
    (r"which the op decode decodes", "which the op decode decodes: oa.imagenet_train(), or other transforms of pictures"),
))


def in_python(text: str) -> str:
    """A text of the library with Python's words."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def of_outcome(code: int, name: str, text: str) -> Error:
    """The exception of an outcome of libaccess."""
    text = in_python(text)
    if code == 8 and "bad_samples" not in text:
        text += ('; bad="skip" goes on without such samples, bad="substitute" puts others in their place, and'
                 " Loader.bad_samples lists them")
    if code == 5 and "raise `memory`" in text:
        text += ("; that is oneaccess.configure(memory=\"…\") before the first Loader where a private accessd is"
                 " started, and accessd.conf(5) for the system's")
    if code == 13:
        text += (": a Loader belongs to the process that made it; make it in the child,"
                 " or iterate in the parent (OneAccess needs no worker processes)")
    error = _CLASSES.get(code, Error)(text)
    error.code = code
    error.name = name
    return error


# What a file of another kind is read by.
_INSTEAD = {
    ".npz": "of an .npz save each array as .npy, or give oneaccess.wrap(list(zip(images, labels))) of its arrays",
    **dict.fromkeys((".txt", ".lst"), "a list of files is a .csv, .tsv or .jsonl with columns as path and label, which its first row names"),
    ".arrow": "Arrow's files come by oneaccess.from_hf(datasets.Dataset.from_file(path))",
    ".h5ad": "AnnData comes by oneaccess.from_h5ad(path, [columns of obs])",
    **dict.fromkeys((".h5", ".hdf5"), "HDF5 comes by oneaccess.from_hdf5(path, {\"image\": \"images\"}), fields along time by oneaccess.from_xarray(path, variables, delta_steps), episodes of robots by"
                    " oneaccess.from_episodes(path)"),
    **dict.fromkeys((".nc", ".nc4"), "NetCDF comes by oneaccess.from_xarray(path, variables, delta_steps)"),
    **dict.fromkeys((".svs", ".ndpi", ".mrxs", ".scn", ".bif", ".svslide"), "windows of slides come by oneaccess.from_slides(path, mpp=0.5)"),
    **dict.fromkeys((".pt", ".pth", ".pkl", ".pickle"), "give oneaccess.wrap() a data set that loads it"),
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".webp", ".avif", ".jp2", ".j2k", ".jpx", ".jxl", ".heic", ".heif", ".dcm", ".dicom", ".nii"), "one picture is no data set: give its folder, or a table (.csv, .jsonl) that names it"),
}
# What is in a folder that is read by another function.
_STORES = {
    "_delta_log/*.json": "it is a table of Delta Lake: oneaccess.from_delta(path)",
    "metadata/*.metadata.json": "it is a table of Iceberg: oneaccess.from_iceberg(metadata.json)",
    "_versions/*.manifest": "it is a data set of Lance: oneaccess.from_lance(path)",
    **dict.fromkeys(("zarr.json", ".zgroup", ".zarray"), "it is of Zarr: oneaccess.from_zarr(path, {\"image\": \"images\"}), fields along time oneaccess.from_xarray(path, variables, delta_steps), cells of AnnData"
                     " oneaccess.from_h5ad(path), a replay buffer oneaccess.from_episodes(path)"),
    "data/main_data.hdf5": "it is a data set of Minari: oneaccess.from_episodes(path)",
    "features.json": "TensorFlow Datasets prepared it: oneaccess.from_tfds(path, split), of episodes of robots oneaccess.from_rlds(path, split)",
    "meta/info.json": "it may be a data set of robots: oneaccess.from_lerobot(path)",
}
_PATHS = {errno.ENOENT: MissingError, errno.ENOTDIR: NoFolderError, errno.EACCES: ClosedError}


def of_path(error: DatasetError, path: str) -> DatasetError:
    """The error of a data set that could not be opened, as one of Python's own where the path says why."""
    number = None
    try:
        with os.scandir(path):
            pass
    except OSError as why:
        number = why.errno
    if number is None:
        instead = next((words for inside, words in _STORES.items() if glob.glob(os.path.join(glob.escape(path), inside))), None)
        if instead:
            error.args = (f"{error}; {instead}",)
    if number not in _PATHS or os.strerror(number) not in str(error):  # a file, or a list of shards, is no folder
        return error
    instead = _INSTEAD.get(os.path.splitext(path)[1].lower()) if os.path.isfile(path) else None
    if number == errno.ENOENT and "*" in str(path):
        instead = "stars are not looked up: give the folder, shards as \"train-{000..123}.tar\", or a table (.csv, .jsonl) of files"
    more = _PATHS[number](f"{error}; {instead}" if instead else str(error))
    more.code, more.name, more.errno, more.filename = error.code, error.name, number, path
    return more


def needs(name: str, of: str, package: str | None = None) -> types.ModuleType:
    """The module, or what to do."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ArgumentError(f"{of} needs {name.partition('.')[0]}, which is not installed: pip install"
                            f" {package or name.partition('.')[0]}") from None
