# SPDX-License-Identifier: Apache-2.0
"""Paths of data sets: what stands behind them, and where their samples lie."""

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping

from . import urls
from .errors import ArgumentError

NAMED = "name:"
_MANIFESTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_LABELS = ("label", "class", "y")   # of a manifest's columns (storage/source/scan/scan_manifest.c)


def is_named(path: object) -> bool:
    """Is it the name of a data set that an administrator shows to others, and no path?"""
    return isinstance(path, str) and path.startswith(NAMED)


def expanded(path: str | os.PathLike) -> str | bytes:
    path = os.fspath(path)
    return os.path.expanduser(path) if isinstance(path, str) else path


def said_behind(path: str | os.PathLike | bytes) -> tuple[str | os.PathLike | bytes, dict[str, str]]:
    """The path, and the options that stand behind it, as accessd finds them (storage/source/source_root.c)."""
    whole = os.fsdecode(path)
    if urls.is_url(whole):
        return urls.parted(whole)
    plain, mark, options = whole.rpartition("?")
    if not mark or is_named(path) or os.path.exists(whole):
        return path, {}
    return plain, dict(option.partition("=")[::2] for option in options.split(",") if option)


def with_source(path: str | os.PathLike | bytes, source: Mapping[str, object]) -> str:
    """The path with its options behind it."""
    whole = os.fsdecode(path)
    mark, words = urls.mark_of(whole) if urls.is_url(whole) else "?", []
    for key, value in sorted(source.items()):
        word = f"{key}={int(value) if isinstance(value, bool) else value}"
        if not re.fullmatch("[a-z][a-z0-9_]*=[^,?]+", word):
            raise ArgumentError(f"source: {word!r} is no option: names have a-z, 0-9 and _, values are not empty and have"
                                " neither , nor ?")
        words.append(word)
    return whole + mark + ",".join(words)


def _columns(manifest):
    """The names in its first line; pairs have none."""
    if manifest.lower().endswith(".json"):
        return []
    with open(manifest, encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(1 << 16)
    try:
        if manifest.lower().endswith((".jsonl", ".ndjson")):
            return list(json.loads(line))
        return [name.strip() for name in next(csv.reader([line], delimiter="\t" if manifest.lower().endswith(".tsv") else ","))]
    except (ValueError, TypeError, StopIteration, csv.Error):
        return []


def _has_pairs(file):
    """Is it a dataset.json of StyleGAN's kind?"""
    try:
        with open(file, "rb") as there:
            return bool(re.match(rb'\s*{\s*"labels"\s*:\s*\[', there.read(256)))
    except OSError:
        return False


def _root(path, name):
    """The folder that a sample's name is below: of shards and manifests, that of these."""
    if not os.path.exists(path):
        path = path.rpartition("?")[0] or path
    if os.path.isfile(path) and (path.lower().endswith(_MANIFESTS) or os.path.basename(path) == name.partition(":")[0]):
        return os.path.dirname(path)
    return path if os.path.exists(path) else os.path.dirname(path.partition("{")[0])


def untold_labels(path: str | os.PathLike | bytes) -> Iterator[str]:
    """Of a table that has columns, and none by a label's name, class 0 throughout may not be what was meant; nor a folder's folders, where
    its labels lie in a dataset.json: what to tell people."""
    path, said = said_behind(path)
    manifest = os.fsdecode(path)
    beside = os.path.join(manifest, "dataset.json")
    if not urls.is_url(manifest) and _has_pairs(beside):
        yield f"{beside} has labels, and a folder's labels are the folders in it: for those of the file give Loader() its path, {beside!r}"
    if "label" in said or not manifest.lower().endswith(_MANIFESTS):
        return
    try:
        names = _columns(manifest)
    except OSError:     # one of an object store, or a name
        return
    if len(names) > 1 and not set(_LABELS) & set(names):
        yield (f"{manifest} has no column label, class or y, so all labels are 0; it has {', '.join(names[:20])}: if one of these is the label,"
               " say source={\"label\": \"ITS NAME\"}")


def of_sample(folder: str | os.PathLike | bytes, name: str) -> str:
    """Where a sample of a data set lies, by its name."""
    if is_named(folder):
        return f"{folder}/{name}"   # where it lies is not ours to know
    if urls.is_url(folder):
        return urls.below(folder, name)
    return os.path.join(_root(os.path.abspath(folder), name), name)
