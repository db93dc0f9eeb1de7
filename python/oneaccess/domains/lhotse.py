# SPDX-License-Identifier: Apache-2.0
"""Manifests of Lhotse: cuts, or recordings and supervisions, as icefall and NeMo have them. They are read here, without Lhotse, when a data set is
made; sounds are read by the pool (speech.py)."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..columns import Pad, named
from ..errors import ArgumentError, DatasetError, TransformError, needs
from ..segments import number
from ..sources.lines import parsed_json
from ..sources.members import shards_of
from ..wrapped import Wrapped
from ..writing.texts import lines_of, suffixes_of
from .speech import Parts, Texts, column_of, data_of

_MOST_LINE = 64 << 20
_OF_SUPERVISION = ("text", "speaker", "language", "gender")
_USUAL = ("text", "speaker", "language", "id")
_SAVE = "have Lhotse write what it loads, by cuts.save_audios(FOLDER).to_file(FILE), and give that file"
_MENDS = {"Speed": "give the cuts as they are without perturb_speed(), and the pipeline oa.audio(..., speeds=(0.9, 1.0, 1.1))",
          "Volume": "give the cuts as they are without perturb_volume(), and the pipeline oa.transforms.Vol()"}
_SOURCES = {"command": "commands are never run", "url": "URLs are not fetched", "memory": "its sound is not in a file",
            "shar": "its sound is in Lhotse Shar's tar files, which from_tar() reads: {\"audio\": \"flac;wav\"}"}


def _frames(seconds, rate):
    """As Lhotse rounds."""
    return math.floor(round(seconds * rate, 8) + 0.5)


# ---- lines ----


def _files(paths, what):
    files = shards_of(paths, ".jsonl*", f"manifest of {what}", "from_lhotse()")
    for file in files:
        if suffixes_of(file)[0] != ".jsonl":
            raise ArgumentError(f"{file}: manifests are read from .jsonl and .jsonl.gz files: write it anew, as by `lhotse copy {os.path.basename(file)} NEW.jsonl.gz`")
    return files


def _each(paths, what) -> Iterator[tuple[str, dict]]:
    """(FILE:LINE, object)"""
    for file in _files(paths, what):
        for at, line in enumerate(lines_of(file, suffixes_of(file)[1], _MOST_LINE), 1):
            where = f"{os.path.basename(file)}:{at}"
            if not line.strip():
                continue
            try:
                yield where, parsed_json(line.decode(), where)
            except UnicodeDecodeError as why:
                raise DatasetError(f"{where}: no UTF-8: {why}") from None
            except TransformError as why:
                raise DatasetError(str(why)) from None


# ---- what they say ----


class _Where:
    """A recording's file, and how its seconds are counted."""

    def __init__(self, recording, channel, who):
        self.rate = _rate_of(recording, who)
        wanted = list(channel) if isinstance(channel, list) else [channel]
        sources = [source for source in recording["sources"] if set(wanted) & set(source["channels"])]
        kinds = [source["type"] for source in sources if source["type"] != "file"]
        if kinds:
            raise DatasetError(f"{who} has a source of the type {kinds[0]!r}: {_SOURCES.get(kinds[0], 'it is not known')}. Or {_SAVE}")
        if len(sources) != 1:
            raise DatasetError(f"{who} is of channels {wanted}, which are in {len(sources)} files of its recording, and a sample is of one: {_SAVE}")
        self.path, channels = sources[0]["source"], sources[0]["channels"]
        self.channels, self.channel = len(channels), -1
        if set(wanted) != set(channels):
            if len(wanted) > 1:
                raise DatasetError(f"{who} is of {len(wanted)} channels of the {len(channels)} that {self.path} has, and a sample has one of them or all: {_SAVE}")
            self.channel = channels.index(wanted[0])
        if not isinstance(self.path, str) or not 0 <= self.channels < 1 << 15:
            raise ValueError("its source names no file")

    def add(self, parts, name, start, duration):
        if not 0 <= start < math.inf or not 0 < duration < math.inf:
            raise DatasetError(f"it begins at second {start:g} and has {duration:g}")
        first, count = _frames(start, self.rate), _frames(duration, self.rate)
        parts.add(name, self.path, first / self.rate, max(count, 1) / self.rate, self.channel, self.rate, self.channels)


def _rate_of(recording, who):
    """Of the file; what is resampled from it has the same seconds, and the pipeline resamples, too."""
    rate = recording["sampling_rate"]
    for each in reversed(recording.get("transforms") or []):
        if each["name"] != "Resample":
            raise DatasetError(f"{who} is made by {each['name']}, which is not done here: {_MENDS.get(each['name'], _SAVE)}")
        rate = each["kwargs"]["source_sampling_rate"]
    if isinstance(rate, bool) or not isinstance(rate, int) or rate < 1:
        raise ValueError(f"sampling_rate is {rate!r}")
    return rate


def _name(value):
    if not isinstance(value, str):
        raise ValueError(f"id is {value!r}, no text")
    return value


def _refuse_others(cut, who):
    kind = cut.get("type")
    if kind in ("MixedCut", "PaddingCut"):
        raise DatasetError(f"{who} is a {kind}, which is mixed or padded when it is loaded: {_SAVE}; the pipeline has t.AddNoise(), and pads")
    if "recording" in cut:
        return
    other = who.replace(": cut ", ": ", 1)
    if "sources" in cut:
        raise DatasetError(f"{other} is a recording: give the file as recordings=, with supervisions=")
    if "recording_id" in cut and "channel" in cut and "type" not in cut:
        raise DatasetError(f"{other} is a supervision: give the file as supervisions=, with recordings=")
    raise DatasetError(f"{who} has no recording" + (", but features, which are not read: the pipeline makes them, as by t.MelSpectrogram()" if "features" in cut else "")
                       + ". Make the cuts with recordings=, as by CutSet.from_manifests()")


class _Fields:
    """Values of the fields that were asked for; None: the usual ones, of which there is something."""

    def __init__(self, asked):
        self._is_asked = asked is not None
        self._values = {name: Texts() if name in _OF_SUPERVISION else [] for name in (_USUAL if asked is None else asked) if name != "id"}
        self._names = list(_USUAL if asked is None else asked)

    def add(self, custom, supervisions, who):
        for name, values in self._values.items():
            if name in _OF_SUPERVISION:
                values.append(_text_of(name, supervisions, who))
            else:
                values.append(_custom_of(name, custom, supervisions, who))

    def columns(self, ids):
        made = {}
        for name in self._names:
            values = ids if name == "id" else self._values[name]
            if isinstance(values, list):
                made[name] = column_of(name, values, ids)
            elif self._is_asked or values.longest:
                made[name] = values
        return made


def _text_of(name, supervisions, who):
    found = [each.get(name) for each in supervisions]
    found = [value for value in found if value is not None]
    if not all(isinstance(value, str) for value in found):
        raise ValueError(f"{name} of a supervision is no text")
    if name == "text":
        return " ".join(found)
    if len(set(found)) > 1:
        raise DatasetError(f"{who} has supervisions with several values of {name!r}, such as {found[0]!r} and {next(each for each in found if each != found[0])!r}: give"
                           f" trim=True, for samples of a supervision each, or fields= without {name!r}")
    return found[0] if found else ""


def _custom_of(name, custom, supervisions, who):
    if name in custom:
        return custom[name]
    found = [each["custom"][name] for each in supervisions if name in (each.get("custom") or ())]
    if len(found) > 1:
        raise DatasetError(f"{who} has {len(supervisions)} supervisions with {name!r}: give trim=True, for samples of a supervision each")
    return found[0] if found else None


# ---- samples ----


class _Reading:
    def __init__(self, root, fields):
        self.parts, self.fields = Parts(root), _Fields(fields)

    def _whole(self, cut, who):
        supervisions = cut.get("supervisions") or []
        where = _Where(cut["recording"], cut["channel"], who)
        where.add(self.parts, _name(cut["id"]), number(cut["start"], "start", 0.0), number(cut["duration"], "duration", 0.0))
        self.fields.add(cut.get("custom") or {}, supervisions, who)

    def _trimmed(self, cut, who):
        rate = cut["recording"]["sampling_rate"]

        def frames(of, key):
            return _frames(number(of[key], key, 0.0), rate)
        for each in cut.get("supervisions") or []:
            first, end = max(frames(each, "start"), 0), min(frames(each, "start") + frames(each, "duration"), frames(cut, "duration"))
            where = _Where(cut["recording"], each["channel"] if isinstance(cut["channel"], list) else cut["channel"], who)
            where.add(self.parts, _name(each["id"]), (frames(cut, "start") + first) / rate, (end - first) / rate)
            self.fields.add(cut.get("custom") or {}, [each], who)

    def cuts(self, paths, trim):
        for where, cut in _each(paths, "cuts"):
            who = f"{where}: cut {cut.get('id')}"
            _refuse_others(cut, who)
            _told(who, self._trimmed if trim else self._whole, cut, who)

    def manifests(self, recordings, supervisions):
        """Each supervision is a sample; without any, each recording."""
        found = {}
        for where, each in _each(recordings, "recordings"):
            who = f"{where}: recording {each.get('id')}"
            if "sources" not in each:
                raise DatasetError(f"{who} has no sources, so it is none: recordings= is a manifest of recordings")
            found[_told(who, lambda each, who: _name(each["id"]), each, who)] = each
            if supervisions is None:
                _told(who, self._recording, each, who)
        for where, each in _each(supervisions, "supervisions") if supervisions is not None else ():
            who = f"{where}: supervision {each.get('id')}"
            _told(who, self._supervision, each, found, who)

    def _recording(self, recording, who):
        channels = sorted(channel for source in recording["sources"] for channel in source["channels"])
        _Where(recording, channels, who).add(self.parts, _name(recording["id"]), 0.0, number(recording["duration"], "duration", 0.0))
        self.fields.add({}, [], who)

    def _supervision(self, each, recordings, who):
        if each["recording_id"] not in recordings:
            raise DatasetError(f"{who} is of recording {each['recording_id']}, which recordings= has not: give all manifests of recordings")
        where = _Where(recordings[each["recording_id"]], each["channel"], who)
        where.add(self.parts, _name(each["id"]), number(each["start"], "start", 0.0), number(each["duration"], "duration", 0.0))
        self.fields.add({}, [each], who)


def _told(who, read, *arguments):
    """What is wrong with a line, with its place."""
    try:
        return read(*arguments)
    except DatasetError as why:
        raise why if str(why).startswith(who) else DatasetError(f"{who}: {why}") from None
    except KeyError as why:
        raise DatasetError(f"{who} has no {why}, so it is none of Lhotse's") from None
    except (ValueError, TypeError, AttributeError, ArithmeticError) as why:
        raise DatasetError(f"{who} is none of Lhotse's: {why}") from None


def from_lhotse(cuts: str | os.PathLike | Sequence | None = None, *, recordings: str | os.PathLike | Sequence | None = None,
                supervisions: str | os.PathLike | Sequence | None = None, trim: bool = False, root: str | os.PathLike | None = None,
                fields: Sequence[str] | str | None = None, transform: Callable[[dict], Any] | None = None, random: bool | None = None,
                pad: dict[str, Pad] | None = None, ragged: Mapping[str, Any] | None = None, workers: int | None = None, name: str | None = None,
                version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Wrapped:
    """Cuts of Lhotse's manifests, for Loader with a pipeline of sounds. Lhotse need not be installed.

        data = oa.from_lhotse("data/fbank/librispeech_cuts_train-clean-100.jsonl.gz", root="/data")
        for batch in oa.Loader(data, oa.audio(16000, 20.0), batch_size=16): batch["audio"], batch["length"], batch["text"].strings()

        seconds = oa.durations(data)[:, 0]              # of the manifest: no file is opened
        order = oa.orders.by_length(seconds, 16, ids=numpy.flatnonzero((seconds > 1) & (seconds < 20)))

    cuts: a manifest of cuts (.jsonl, .jsonl.gz), a pattern, "cuts.{000..003}.jsonl.gz", or a list of these. A sample is a cut.
    recordings, supervisions: in place of cuts, manifests of these. A sample is a supervision, or without any a recording.
    trim: True: a sample is a supervision of a cut, as of Lhotse's trim_to_supervisions(keep_overlapping=False).
    root: what relative paths are relative to. Default: the current folder, as in Lhotse.
    fields: what a batch has beside "audio", in this order: "id", the supervision's "text", "speaker", "language" and "gender", and custom values
        of cuts and supervisions by their names: texts, numbers (int64, float32) or lists of numbers (ragged). Default: of text, speaker and language
        those that any sample has, and id. A text that is missing is empty; texts of several supervisions of a cut are joined by blanks. "id" is that of
        what a sample is.
    transform: a function that makes a sample of a dict of "audio" and these fields, as in wrap(); ragged and pad then mean its result. "audio" is a
        Segment: who decodes it there seeks to its start and reads its duration, as soundfile.read(start=, frames=) does.
    random: whether transform draws random numbers. Default: True with a transform.

    The sound is what cut.load_audio() gives, of the same frames, as the pipeline resamples and mixes it: of a recording with several channels the cut's
    channel, or all of a MultiCut. Resample of a recording is left to the pipeline. What is not read is refused here, with the cut's name: mixed and padded
    cuts, recordings that are perturbed, sources that are no files, features without recordings.

    The manifest is read by each job, when it makes the data set, some 20,000 cuts a second; sounds are read as from_jsonl() reads parts. The other arguments are those of wrap().
    """
    needs("numpy", "a manifest of Lhotse")
    if (cuts is None) == (recordings is None) or (supervisions is not None and recordings is None):
        raise ArgumentError("give cuts, or recordings= with supervisions= or without")
    if trim and cuts is None:
        raise ArgumentError("trim=True is about cuts; with recordings= each supervision is a sample anyway")
    reading = _Reading(root, named(fields))
    if cuts is not None:
        reading.cuts(cuts, trim)
    else:
        reading.manifests(recordings, supervisions)
    if not len(reading.parts):
        raise DatasetError(f"{cuts or supervisions or recordings} has no sample" + (", as no cut has a supervision" if trim else ""))
    return data_of(reading.parts, reading.fields.columns(reading.parts.ids), transform=transform, random=random, pad=pad, ragged=ragged, workers=workers, name=name,
                   version=version, timeout=timeout, room=room, keep=keep)
