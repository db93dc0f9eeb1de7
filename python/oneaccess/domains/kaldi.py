# SPDX-License-Identifier: Apache-2.0
"""Folders of Kaldi (wav.scp, segments, text, utt2spk), as ESPnet has them, and WeNet's lists of JSON lines. They are read here when a data set is made;
sounds are read by the pool (speech.py). Pipes in wav.scp are never run."""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import urls
from ..columns import Pad, named
from ..errors import ArgumentError, DatasetError, TransformError, needs, not_there
from ..segments import head_of, number
from ..sources.lines import parsed_json
from ..wrapped import Wrapped
from ..writing.texts import lines_of
from .speech import Parts, Texts, column_of, data_of

_MOST_LINE = 64 << 20
_FILES = {"text": "text", "speaker": "utt2spk", "language": "utt2lang"}
_KEYS = {"text": "txt", "speaker": "spk", "language": "lang"}       # of WeNet's lines
_ARCHIVE = re.compile(r"\.ark:\d+(\[.*\])?\Z")
_CHANNELS = {"A": 0, "B": 1, "1": 0, "2": 1, "0": 0}


def _lines(path):
    """(FILE:LINE, text) of those with something."""
    for at, line in enumerate(lines_of(path, "", _MOST_LINE), 1):
        where = f"{os.path.basename(path)}:{at}"
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as why:
            raise DatasetError(f"{where}: no UTF-8: {why}") from None
        if text:
            yield where, text


def _table(path):
    """{first word: the rest of the line}"""
    found = {}
    for where, text in _lines(path):
        key, *rest = text.split(None, 1)
        if key in found:
            raise DatasetError(f"{where}: {key} is there twice")
        found[key] = rest[0] if rest else ""
    return found


def _sound(path, where):
    """A file's path, as wav.scp and data.list have it."""
    if not path:
        raise DatasetError(f"{where} names no file")
    if path.endswith("|") or path.startswith("|"):
        raise DatasetError(f"{where}: {path[:80]!r} is a pipe, and commands are never run: write its sound to a file once, as by ESPnet's"
                           " scripts/audio/format_wav_scp.sh or Kaldi's wav-copy, and name that. NIST SPHERE files (.sph) can be named as they are")
    if _ARCHIVE.search(path):
        raise DatasetError(f"{where}: {path[-80:]!r} is a place in an archive: give files of their own, as ESPnet makes them with audio_format=flac")
    if urls.is_url(path):
        raise DatasetError(f"{where}: {path[:80]!r} is a URL, which is not fetched: copy the file, or mount the store")
    return path


# ---- a folder ----


def _seconds(text, what, where):
    try:
        return number(float(text), what, 0.0)
    except (ValueError, DatasetError):
        raise DatasetError(f"{where}: {what} is {text!r}: a number of seconds") from None


def _segments(path, sounds, parts, root):
    heads: dict[str, tuple[int, int]] = {}
    for where, text in _lines(path):
        utterance, *words = text.split()
        if len(words) not in (3, 4):
            raise DatasetError(f"{where}: {text[:80]!r} is not utterance, recording, start and end")
        if words[0] not in sounds:
            raise DatasetError(f"{where}: wav.scp has no recording {words[0]}")
        start, end = _seconds(words[1], "start", where), _seconds(words[2], "end", where)
        duration = math.inf if end == -1 else end - start       # -1: to the recording's end
        if not duration > 0 or start < 0:
            raise DatasetError(f"{where}: a part from second {start:g} to {end:g}")
        if len(words) == 4 and words[3] not in _CHANNELS:
            raise DatasetError(f"{where}: channel is {words[3]!r}: {', '.join(_CHANNELS)}")
        sound = sounds[words[0]]
        if sound not in heads:
            heads[sound] = head_of(os.path.join(root, sound))
        parts.add(utterance, sound, start, duration, _CHANNELS[words[3]] if len(words) == 4 else -1, *heads[sound])


def _folder(folder, root, fields):
    parts = Parts(root)
    sounds = {key: _sound(path, f"wav.scp, {key}") for key, path in _table(os.path.join(folder, "wav.scp")).items()}
    if os.path.exists(os.path.join(folder, "segments")):
        _segments(os.path.join(folder, "segments"), sounds, parts, root)
    else:
        lasts = _table(os.path.join(folder, "utt2dur")) if os.path.exists(os.path.join(folder, "utt2dur")) else {}
        for key, path in sounds.items():
            parts.add(key, path, seconds=_seconds(lasts[key], "duration", f"utt2dur, {key}") if key in lasts else math.inf)
    names = [*(name for name, file in _FILES.items() if os.path.exists(os.path.join(folder, file))), "id"] if fields is None else fields
    return parts, {name: parts.ids if name == "id" else _column(folder, name, parts.ids) for name in names}


def _column(folder, name, ids):
    path = os.path.join(folder, _FILES.get(name, name))
    if os.path.basename(path) != _FILES.get(name, name) or not os.path.isfile(path):
        raise ArgumentError(f"fields= names {name!r}, and {path} is no file; there are: id, {', '.join(_FILES)}, and files with a line for each utterance")
    values, made = _table(path), Texts()
    for key in ids:
        if key not in values:
            raise DatasetError(f"{path} has no utterance {key}: have Kaldi's utils/fix_data_dir.sh keep those that all files have, or give fields= without {name!r}")
        made.append(values[key])
    return made


# ---- WeNet's lists ----


def _listed(path, root, fields):
    parts, rows, found = Parts(root), [], {}
    for where, text in _lines(path):
        if not text.startswith("{"):
            raise DatasetError(f"{where}: no JSON object, but {text[:60]!r}: a list of shards is read by from_tar(SHARDS, {{\"audio\": \"wav;flac\", \"text\": \"txt\"}})")
        try:
            row = parsed_json(text, where)
        except TransformError as why:
            raise DatasetError(str(why)) from None
        if not isinstance(row.get("key"), str) or not isinstance(row.get("wav"), str):
            raise DatasetError(f"{where} has no key and wav: {text[:80]}")
        start = number(row.get("start"), f"{where}: start", 0.0)
        end = number(row.get("end"), f"{where}: end", math.inf)
        if not 0 <= start < end:
            raise DatasetError(f"{where}: a part from second {start:g} to {end:g}")
        parts.add(row["key"], _sound(row["wav"], where), start, end - start)
        rows.append(row)
    if fields is None:
        fields = [*(name for name, key in _KEYS.items() if any(key in row for row in rows)), "id"]
    for name in fields:
        found[name] = parts.ids if name == "id" else column_of(name, [row.get(_KEYS.get(name, name)) for row in rows], parts.ids)
    return parts, found


def from_kaldi(folder: str | os.PathLike, *, root: str | os.PathLike | None = None, fields: Sequence[str] | str | None = None,
               transform: Callable[[dict], Any] | None = None, random: bool | None = None, pad: dict[str, Pad] | None = None,
               ragged: Mapping[str, Any] | None = None, workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
               room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Utterances of a folder of Kaldi's, as ESPnet has them, or of WeNet's data.list, for Loader with a pipeline of sounds.

        data = oa.from_kaldi("dump/raw/train_clean_100", root="/espnet/egs2/librispeech/asr1")
        for batch in oa.Loader(data, oa.audio(16000, 20.0), batch_size=16): batch["audio"], batch["length"], batch["text"].strings()

    folder: a folder with wav.scp, or a file of JSON lines with key, wav and txt, and perhaps start and end in seconds.
    root: what relative paths of sounds are relative to. Default: the current folder, as in Kaldi.
    fields: what a batch has beside "audio", in this order: "text", "speaker" (utt2spk), "language" (utt2lang), "id" (the utterance's), or the name of
        another file of the folder with an utterance and a text in each line; of a list also its other members. Default: of these four those that are there.
    transform, random, ragged, pad: as of from_lhotse().

    With a file segments, samples are its parts of recordings, in seconds, each to the nearest frame; an end of -1 is the recording's, and a channel
    may stand behind it; else the files of wav.scp. durations() takes what segments or utt2dur say, where these are there. A pipe in wav.scp ("sph2pipe
    ... |") is refused, by name: commands are never run. So are places in archives (.ark:123). An utterance that one of the files lacks is refused, too.

    The folder is read by each job, when it makes the data set; sounds are read as from_jsonl() reads parts. The other arguments are those of wrap().
    """
    needs("numpy", "a folder of Kaldi")
    path, fields = urls.local(folder, "from_kaldi()"), named(fields)
    root = os.path.abspath(os.path.expanduser(os.fspath(root or ".")))
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "wav.scp")) or not os.path.exists(path):
        raise not_there(f"{path} has no wav.scp: give a folder of Kaldi's, or a file of JSON lines such as WeNet's data.list", path)
    parts, columns = _folder(path, root, fields) if os.path.isdir(path) else _listed(path, root, fields)
    if not len(parts):
        raise DatasetError(f"{path} has no utterance")
    return data_of(parts, columns, transform=transform, random=random, pad=pad, ragged=ragged, workers=workers, name=name, version=version, timeout=timeout,
                   room=room, keep=keep)
