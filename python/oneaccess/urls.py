# SPDX-License-Identifier: Apache-2.0
"""Data sets with URLs. accessd reads them by access-bucket; what Python reads are files of this machine, and Parquet by pyarrow's own
file systems."""

import os
import re
import urllib.request
from typing import Any

from .errors import ArgumentError, DatasetError, MissingError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOST = re.compile(r"([a-z][a-z0-9+.-]+):/[^/]")
_OPTIONS = re.compile(r"[a-z_][a-z0-9_]*=[^,]+(,[a-z_][a-z0-9_]*=[^,]+)*")


def is_url(path: Any) -> bool:
    """SCHEME://, but not file://, which is a path (base/url.c)."""
    return isinstance(path, str) and _SCHEME.match(path) is not None and not path.lower().startswith("file://")


def mark_of(path: str) -> str:
    """What options stand behind: a web server has its own behind a "?"."""
    return "#" if path.lower().startswith(("http://", "https://")) else "?"


def parted(url: str) -> tuple[str, dict[str, str]]:
    """The URL, and the options that stand behind it."""
    plain, mark, options = url.rpartition(mark_of(url))
    if not mark or not _OPTIONS.fullmatch(options):
        return url, {}
    return plain, dict(option.partition("=")[::2] for option in options.split(","))


def suffixed(url: str, suffixes: str | tuple[str, ...]) -> bool:
    """Does the name that it ends with end so?"""
    plain, _ = parted(url)
    return (plain.partition("?")[0] if mark_of(url) == "#" else plain).endswith(suffixes)


def path_of(path: str | os.PathLike | bytes) -> Any:
    """As a person writes it: a URL, or a path, with ~ and file:// taken out."""
    if isinstance(path, os.PathLike):
        lost = _LOST.match(os.fsdecode(path))
        if lost and not os.path.exists(path):
            raise ArgumentError(f"{os.fsdecode(path)!r}: pathlib makes one slash of the two in a URL: give \"{lost[1]}://...\" as a str")
    path = os.fspath(path)
    if not isinstance(path, str) or is_url(path):
        return path
    return os.path.expanduser(path[7:] if path.lower().startswith("file://") else path)


def local(path: str | os.PathLike, who: str) -> str:
    """Absolute, of a file or folder that Python reads."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentError(f"{who} has {path!r} for a path: give a str or a pathlib.Path")
    path = path_of(path)
    if is_url(path):
        raise ArgumentError(f"{who} reads {path} in Python, from files of this machine: mount the store, or copy the files. Loader(url) reads"
                            " images, shards with an image and a label, .npy and tokens from object stores, and Parquet with pyarrow")
    return os.path.abspath(path)


def below(url: str, name: str) -> str:
    """The URL of a sample of that name (of shards: shard:key)."""
    root = parted(url)[0]
    if mark_of(url) == "#":
        root = root.partition("?")[0]
    root = root.partition("{")[0].rpartition("/")[0] if "{" in root else root.rstrip("/")
    if root.rpartition("/")[2] == name.partition(":")[0]:
        root = root.rpartition("/")[0]
    return f"{root}/{name}"


# ---- by pyarrow ----


def for_arrow(url: str, source: Any) -> str:
    """The URL with what source= says of the store, as pyarrow has it in a URL."""
    words = []
    for key, value in (source or {}).items():
        if key == "endpoint":
            scheme, _, host = str(value).rpartition("://")
            words += [f"scheme={scheme or 'https'}", f"endpoint_override={host.rstrip('/')}"]
        elif key == "region":
            words.append(f"region={value}")
        else:
            raise ArgumentError(f"source={{{key!r}: ...}} of {url}: Parquet files are read by pyarrow, to which endpoint and region can be given; others as it"
                                " documents them for its URLs")
    return url + ("&" if "?" in url else "?") * bool(words) + "&".join(words)


def _system(url):
    from pyarrow import fs
    try:
        return fs.FileSystem.from_uri(url)
    except (ValueError, NotImplementedError, OSError) as why:
        raise ArgumentError(f"{url}: Parquet files are read by pyarrow, which cannot open this ({why}): copy the files, or mount the store") from None


def files(url: str, suffixes: tuple[str, ...], what: str) -> list[str]:
    """The URLs of the files there, or below."""
    from pyarrow import fs
    system, path = _system(url)
    try:
        about = system.get_file_info(path)
        if about.type == fs.FileType.File:
            return [url]
        about = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    except OSError as why:
        raise DatasetError(f"{url} cannot be listed by pyarrow: {why}") from None
    plain, mark, query = url.partition("?")
    head = plain.rstrip("/")
    found = [f"{head}{one.path[len(path.rstrip('/')):]}{mark}{query}" for one in about
             if one.type == fs.FileType.File and one.path.lower().endswith(suffixes)]
    if not found:
        raise MissingError(f"no {what} file is at {url}")
    return sorted(found)


def binary(file: str) -> Any:
    """A path or a URL, opened to read bytes of it from any place."""
    return opened(file) if is_url(file) else open(file, "rb")


def stamp_of(url: str) -> tuple[int, int]:
    system, path = _system(url)
    about = system.get_file_info(path)
    return about.size or 0, about.mtime_ns or 0


def reading(url: str) -> Any:
    """A file to read the beginning of."""
    if mark_of(url) == "#":
        return urllib.request.urlopen(urllib.request.Request(url, headers={"Range": "bytes=0-65535"}), timeout=60)
    try:
        system, path = _system(url)
        return system.open_input_stream(path)
    except ImportError:
        raise ArgumentError(f"{url}: what a row of a .npy is, Python reads by pyarrow, which is not installed: pip install pyarrow") from None


def opened(file: str) -> Any:
    """What pyarrow opens: a path, or a URL's bytes."""
    if not is_url(file):
        return file
    system, path = _system(file)
    return system.open_input_file(path)
