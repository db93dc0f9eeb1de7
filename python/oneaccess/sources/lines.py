# SPDX-License-Identifier: Apache-2.0
"""Rows of text files, JSON Lines and CSV, as data sets for the pool (wrap()). Where rows begin is found once for all processes of a
pool; a row is then read alone, so that any order is to be had. Pictures and classes that rows name need none of this: accessd reads such
files itself (oneaccess-sources(7), Manifests)."""

import contextlib
import csv
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..columns import Pad
from ..errors import ArgumentError, DatasetError, TransformError
from ..masks import Image, Mask, Measured, following
from ..segments import NEMO, Place, Segment, place_of
from ..wrapped import Wrapped, wrap
from .members import Field
from .stores import PerProcess
from .tables import Kept, files_of, needs, stamp_of, unchanged
from .where import Where, numbers_in, numbers_of, versioned

_JSON = (".jsonl", ".ndjson")
_CSV = (".csv", ".tsv")
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_PIECE = 16 << 20           # bytes that are searched for line ends at a time
_LOOKED_AT = 1000           # rows that say what a column holds
_MOST_OPEN = 16
_MARK = b"\xef\xbb\xbf"     # that a file of UTF-8 may begin with


def _rows_of(path, quoted):
    """Where the rows of a file begin that are not empty, and where they end, as arrays. quoted: lines go on within quotes."""
    import numpy as np
    begins, returns, at, inside, quote, last = [], [], 0, 0, 0, b"\n"
    with open(path, "rb") as file:
        begins.append(np.array([len(_MARK) if file.read(len(_MARK)) == _MARK else 0]))
        file.seek(0)
        while piece := file.read(_PIECE):
            found = np.frombuffer(last + piece, np.uint8)   # and the byte before it
            ends = np.flatnonzero(found[1:] == ord("\n"))
            if quoted:
                quotes = np.flatnonzero(found[1:] == ord('"'))
                ends = ends[(np.searchsorted(quotes, ends) + inside) % 2 == 0]
                inside, quote = (inside + len(quotes)) % 2, at + int(quotes[-1]) if len(quotes) else quote
            begins.append(at + ends + 1)
            returns.append(found[ends] == ord("\r"))
            at, last = at + len(piece), piece[-1:]
    if inside:
        raise DatasetError(f"{path}: a quote is never closed: the last one is at byte {quote}. Close it, or, where quotes are text, give"
                           " quotes=False")
    begins, returns = np.concatenate(begins), np.concatenate([*returns, [last == b"\r"]])
    ends = np.append(begins[1:] - 1, at)
    some = ends - begins > returns[:len(ends)]
    return begins[some], ends[some]


def _files(paths, suffixes, what, who):
    """Those that are meant; compressed ones of a folder, too, which are refused then."""
    return files_of(paths, suffixes + tuple(suffix + packed for suffix in suffixes for packed in _PACKED), what, who)


class _File:
    """A descriptor, closed with it."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self):
        os.close(self._fd)

    def row(self, begin, end):
        return os.pread(self._fd, end - begin, begin)


def _decoded(row):
    return row.decode().removesuffix("\r")


class Lines(PerProcess):
    """Rows of files, as _parsed() and then transform make them; columns of `named` have the names of files, which are read."""

    quoted = False
    nan_is_null = False     # for where=: is what is missing NaN?
    knows_nemo = False      # offset is about audio_filepath
    chosen = None           # with where=: of each file the rows that are there

    def __init__(self, files, transform, named=None, place=None):
        needs("numpy", "a file of rows")
        if not files:
            raise ArgumentError("paths is an empty list: name a file, a folder or a pattern")
        for file in files:
            if file.lower().endswith(_PACKED):
                raise ArgumentError(f"{file} is compressed, and its rows cannot be read one by one: unpack it (gunzip, zstd -d)")
        if transform is not None and not callable(transform):
            raise ArgumentError(f"transform is {transform!r}: a function of a row, which is a dict")
        if not isinstance(named or (), (str, Sequence)):
            raise ArgumentError(f"files is {named!r}: the name of a column, or several")
        self.files, self.transform = [(file, stamp_of(file)) for file in files], transform
        self.named = {column: Field(column, "*") for column in ([named] if isinstance(named, str) else named or ())}
        self.place: Place | None = place
        self._find()
        if not len(self):
            raise DatasetError(f"{files[0]} has no row" if len(files) == 1 else f"no row is in {files[0]} and {len(files) - 1} more")

    def _find(self):
        import numpy as np
        self.rows, self.firsts = [], [0]
        for file, stamp in self.files:
            unchanged(file, stamp)
            try:
                self.rows.append(self._found(file))
            except OSError as why:
                raise DatasetError(f"{file} cannot be read: {why.strerror}") from None
            self.firsts.append(self.firsts[-1] + len(self.rows[-1][0]))
        self.firsts = np.array(self.firsts)
        if self.chosen is not None:
            self._keep_chosen()

    def _keep_chosen(self):
        import numpy as np
        self.before, self.rows = self.firsts, [(begins[some], ends[some]) for (begins, ends), some in zip(self.rows, self.chosen)]
        self.firsts = np.cumsum([0, *map(len, self.chosen)])

    def _found(self, file):
        return _rows_of(file, self.quoted)

    # ---- where= ----

    def choose(self, where):
        """Only these rows are there from now on, as they are before transform; and those that cannot be read, which are bad samples."""
        if where is None:
            return
        where, count = Where(where), len(self)
        schema = self._schema()
        names = where.used(schema, self.files[0][0])
        self.chosen = [self._chosen(where, schema, names, at) for at in range(len(self.files))]
        self._keep_chosen()
        if not len(self):
            raise where.nothing(count, self.files[0][0])

    def rows_of(self, ids):
        """The numbers in the whole table of samples by their numbers, as batch.ids has them: of where= an array of int64."""
        import numpy as np
        ids = numbers_in(None, len(self), ids)
        if self.chosen is None:
            return ids
        files = np.searchsorted(self.firsts, ids, "right") - 1
        return np.array([self.before[at] + self.chosen[at][index - self.firsts[at]] for at, index in zip(files, ids)], np.int64)

    def _read(self, at, begin, end):
        """Rows of a file; None: such as cannot be read."""
        begins, ends = (found[begin:end].tolist() for found in self.rows[at])
        data, made = self.opened().get(at).row(begins[0], ends[-1]), []
        for first, last in zip(begins, ends):
            try:
                made.append(self._parsed(_decoded(data[first - begins[0]:last - begins[0]]), ""))
            except (TransformError, UnicodeDecodeError):
                made.append(None)
        return made

    def _schema(self):
        """What the first rows say of the columns' types. Those that have none are no columns of a table."""
        import pyarrow as pa
        rows, made = [], {}
        for at, (begins, _) in enumerate(self.rows):
            if len(begins) and len(rows) < _LOOKED_AT:
                rows += [row for row in self._read(at, 0, _LOOKED_AT) if row is not None]
        for name in dict.fromkeys(name for row in rows for name in row):
            with contextlib.suppress(pa.ArrowException, OverflowError):
                made[name] = self._array([row.get(name) for row in rows]).type
        return pa.schema(made)

    def _array(self, values, type_=None):
        """type_: of values that are all missing."""
        import pyarrow as pa
        array = pa.array(values, from_pandas=self.nan_is_null)
        return pa.nulls(len(values), type_) if type_ is not None and pa.types.is_null(array.type) else array

    def _chosen(self, where, schema, names, at):
        import numpy as np
        import pyarrow as pa
        path, count, made = self.files[at][0], len(self.rows[at][0]), [np.zeros(0, np.int64)]
        for begin in range(0, count, _LOOKED_AT):
            rows, columns = self._read(at, begin, begin + _LOOKED_AT), {}
            for name in names:
                try:
                    columns[name] = self._array([row and row.get(name) for row in rows], schema.field(name).type)
                except (pa.ArrowException, OverflowError) as why:
                    raise ArgumentError(f"where={where.shown}: {path}, of its rows from {begin} on: {name} has values of different types: {why}") from None
            mask = where.mask(pa.table(columns), path) if columns else np.ones(len(rows), bool)
            made.append(numbers_of(mask | np.array([row is None for row in rows]), begin))
        unchanged(*self.files[at])
        return np.concatenate(made)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name not in ("rows", "firsts", "before")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._find()            # once for all processes that are forked

    def __len__(self):
        return int(self.firsts[-1])

    def open(self):
        return Kept(_MOST_OPEN, self._open)

    def _open(self, at):
        return _File(self.files[at][0])

    def _text(self, index):
        """The row's, its name for people, and the file's folder."""
        index = range(len(self))[index]
        at = int(self.firsts.searchsorted(index, "right")) - 1
        row = index - int(self.firsts[at])
        begin, end = (int(found[row]) for found in self.rows[at])
        text = self.opened().get(at).row(begin, end)
        name = f"{os.path.basename(self.files[at][0])}:{begin}"  # short: lists of bad samples have little room
        unchanged(*self.files[at])
        try:
            return _decoded(text), name, os.path.dirname(self.files[at][0])
        except UnicodeDecodeError as why:
            raise TransformError(f"{name}: no UTF-8: {why}") from None

    def _parsed(self, text, name):
        raise NotImplementedError

    def _contents(self, row, name, folder):
        """The row with the files that it names, which come first."""
        found, place = {}, self.place and self._place(row, name)
        for column, field in self.named.items():
            if found and column == NEMO and self.knows_nemo and self.transform is None and not self.place and row.get("offset"):
                raise TransformError(f"{name}: it has an offset, and a part is taken of the first one of files=: name {NEMO!r} first")
            if not isinstance(row.get(column), str):
                raise TransformError(f"{name}: {column}, of files=, names no file: {row.get(column)!r}; there are: {', '.join(row)}")
            path = os.path.join(folder, row.pop(column))
            try:
                if place and not found:
                    found[column] = self._segment(path, *place)
                    continue
                with open(path, "rb") as file:
                    found[column] = field.value(os.path.splitext(path)[1][1:].lower(), file.read(), None)
            except OSError as why:
                raise DatasetError(f"{name}: {path}: {why.strerror}") from None
            except DatasetError as why:
                raise DatasetError(f"{name}: {why}: {path}") from None      # short: lists of bad samples have little room
            except (ValueError, KeyError, IndexError, TypeError) as why:
                raise DatasetError(f"{name}: {path}: {type(why).__name__}: {why}") from None
        return {**found, **row}

    def _place(self, row, name):
        try:
            return self.place.of(row)
        except DatasetError as why:
            raise DatasetError(f"{name}: {why}") from None

    def _segment(self, path, start, duration):
        """The file's part. A transform gets the whole file, as its row says where the part is."""
        if self.transform is None:
            return Segment.read(path, start, duration)
        with open(path, "rb") as file:
            return Segment(file.read(), start, duration)

    def __getitem__(self, index):
        text, name, folder = self._text(index)
        row = self._contents(self._parsed(text, name), name, folder)
        return row if self.transform is None else self.transform(row)


def _list(files):
    return [files] if isinstance(files, str) else list(files or ()) if isinstance(files or (), Sequence) else []


def _wrapped(rows, random, where, version, **more):
    rows.choose(where)
    return wrap(rows, version=versioned(version, rows.chosen), random=rows.transform is not None if random is None else random, **more)


# ---- JSON Lines ----


def parsed_json(text: str, name: str) -> dict:
    """A row that is a JSON object."""
    try:
        row = json.loads(text)
        if "\\ud" in text or "\\uD" in text:          # half a character
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as why:
        raise TransformError(f"{name}: no JSON: {why}") from None
    if not isinstance(row, dict):
        raise TransformError(f"{name}: no JSON object: {text[:80]}")
    return row


class JSONRows(Lines):
    """Rows that are JSON objects."""

    knows_nemo = True

    def _parsed(self, text, name):
        return parsed_json(text, name)


def from_jsonl(paths: str | os.PathLike | Sequence, columns: Sequence[str] | None = None, *,
               transform: Callable[[dict], Any] | None = None, files: Sequence[str] | str | None = None, start: str | None = None,
               duration: str | None = None, end: str | None = None, random: bool | None = None, pad: dict[str, Pad] | None = None,
               ragged: dict[str, int | tuple[int, int]] | None = None, boxes: Sequence[str] | str | None = None,
               masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
               images: str | Sequence[str] | Mapping[str, Image] | None = None, exact: bool = False, where: Any = None, workers: int | None = None,
               name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None,
               keep: float = 30.0) -> Wrapped:
    """The rows of JSON Lines files (UTF-8, a JSON object a line), for Loader.

        rows = oa.from_jsonl("train.jsonl", ["text", "label"], ragged={"text": 4096})
        for batch in oa.Loader(rows, batch_size=64): batch["text"], batch["label"]

        def tokens(row):                            # in the pool's processes, once for all jobs
            return {"input_ids": tokenizer(row["text"], truncation=True, max_length=512)["input_ids"]}
        rows = oa.from_jsonl("train.jsonl", transform=tokens, random=False, pad={"input_ids": oa.Pad(512)})

        rows = oa.from_jsonl("manifest.jsonl", ["audio_filepath", "text"], files="audio_filepath", ragged={"text": 400})
        for batch in oa.Loader(rows, oa.audio(16000, 20.0), batch_size=16): batch["audio_filepath"], batch["length"], batch["text"]

    paths: a file, a folder (its .jsonl and .ndjson files and those in folders below), a pattern, or a list of these.
        Compressed files are refused: their rows cannot be read one by one.
    columns: the members of a row that a batch has, in this order. Default: those of the first row.
    transform: a function that makes a sample, as in wrap(), of a row (a dict). columns, pad and ragged then mean its result.
    files: members that name files, relative to the table's folder: the file's content takes the name's place, and comes first in a
        sample, where a pipeline decodes it: the picture, sound or video. .txt is text, .npy an array, others are bytes.
    start, duration or end: members that say, in seconds, which part of the first of these files, a sound or a video, is the sample, as
        Segment has it. Without start it is from the begin, without the other two to the end; null is as without. Rows with files=
        "audio_filepath", as NeMo's, have it in offset and duration, if they have these. A transform gets the whole file, and the part is taken of
        what it leaves in its place.
    random: whether transform draws random numbers; if not, epochs may share samples. Default: True with a transform.
    where: which rows, by their members before transform; see from_parquet(). Needs pyarrow, and each job reads all rows once, when it
        opens the data set. A member that a row lacks is null. Rows that cannot be read stay, as the bad samples that they are.

    A row is read alone, so any order works. Empty lines are no rows. A row that is no JSON object, or whose members differ
    from those of the first row, is a bad sample (Loader's bad=); its error begins with FILE:BYTE. NaN, Infinity and -Infinity,
    which json.dumps() writes, are numbers.

    The other arguments are those of wrap().
    """
    place = place_of(start, duration, end, _list(files), knows_nemo=True)
    rows = JSONRows(_files(paths, _JSON, "JSON Lines", "from_jsonl()"), transform, files, place)
    return _wrapped(rows, random, where, version, name=name, workers=workers, timeout=timeout, room=room, keep=keep, columns=columns, pad=pad,
                    ragged=ragged, boxes=boxes, masks=following(masks, images), exact=exact)


# ---- CSV ----


# Fields of a float column that are NaN: the words that people use, most of which are pandas' too.
_MISSING = re.compile("(na|n/a|null|none)?", re.IGNORECASE)
_WORDS = re.compile("[-+]?(nan|inf|infinity)", re.IGNORECASE)
# Of columns whose type nobody said: 007, 1_2 and what is around blanks are no numbers.
_GUESSES = {int: re.compile("-?(0|[1-9][0-9]*)"),
            float: re.compile(rf"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]+)?|{_WORDS.pattern}|{_MISSING.pattern}", re.IGNORECASE)}


def _value(text, type_, is_guess):
    if (is_guess and type_ in _GUESSES and not _GUESSES[type_].fullmatch(text)) or (type_ is not str and "_" in text):
        raise ValueError
    return float("nan" if _MISSING.fullmatch(text) else text) if type_ is float else type_(text)


def _guess(values):
    """int, float or str. float32 has no room for each whole number, so these do not become floats for a word among them."""
    numbers = {value for value in values if not _MISSING.fullmatch(value)}
    found = next((type_ for type_, pattern in _GUESSES.items() if numbers and all(map(pattern.fullmatch, values))), str)
    digits = {value for value in numbers if not _WORDS.fullmatch(value)}
    return str if found is float and digits and all(map(_GUESSES[int].fullmatch, digits)) else found


class CSVRows(Lines):
    """Rows of CSV as RFC 4180 has it, with the columns' names in the first row of each file."""

    nan_is_null = True

    def __init__(self, files, transform, separator, types, quotes, named=None, place=None):
        if types is not None and not isinstance(types, Mapping):
            raise ArgumentError(f"types is {types!r}: {{column: int, float or str}}")
        self.quoted = bool(quotes)
        if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n'):
            raise ArgumentError(f"separator is {separator!r}: one character, such as ';'")
        self.separator = separator or ("\t" if files and files[0].lower().endswith(".tsv") else ",")
        self.names = None
        super().__init__(files, transform, named, place)
        for column in place.names() if place else ():
            if column not in self.names:
                raise ArgumentError(f"{column!r} is to say where a sample's part is, and {files[0]} has the columns {', '.join(self.names)}")
        for column in self.named:
            if column not in self.names:
                raise ArgumentError(f"files= names {column!r}, and {files[0]} has the columns {', '.join(self.names)}")
        for column, type_ in (types or {}).items():
            if column not in self.names:
                raise ArgumentError(f"types= names {column!r}, and {files[0]} has the columns {', '.join(self.names)}")
            if type_ not in (int, float, str):
                raise ArgumentError(f"types={{{column!r}: {type_!r}}}: int, float or str")
        self.said = {**dict.fromkeys(self.named, str), **(types or {})}
        self.types = {**self._guesses(), **self.said} if set(self.names) - set(self.said) else self.said

    def _found(self, file):
        begins, ends = super()._found(file)
        if not len(begins):
            raise DatasetError(f"{file} is empty: its first row names the columns")
        head = _File(file).row(int(begins[0]), int(ends[0]))
        try:
            names = [name.strip() for name in self._split(_decoded(head), f"{file}: its first row")]
        except (UnicodeDecodeError, TransformError) as why:
            raise DatasetError(f"{file}: its first row names no columns: {why}") from None
        if len(set(names)) < len(names) or "" in names:
            raise DatasetError(f"{file}: its first row must name each column, each differently: {', '.join(map(repr, names))}")
        self.names = self.names or names
        if names != self.names:
            raise DatasetError(f"{file} has other columns than {self.files[0][0]}: {', '.join(names)}; there: {', '.join(self.names)}")
        return begins[1:], ends[1:]

    def _split(self, text, name):
        limit = csv.field_size_limit(sys.maxsize)
        try:
            rows = list(csv.reader([text], delimiter=self.separator, strict=True,
                                   quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE))
        except csv.Error as why:
            raise TransformError(f"{name}: no CSV: {why}") from None
        finally:
            csv.field_size_limit(limit)
        if len(rows) != 1:
            raise TransformError(f"{name}: {len(rows)} rows in one: is a quote never closed?")
        return rows[0]

    def _fields(self, text, name):
        fields = self._split(text, name)
        if len(fields) != len(self.names):
            raise TransformError(f"{name}: {len(fields)} fields, and {len(self.names)} columns")
        return dict(zip(self.names, fields))

    def _guesses(self):
        """int, float or str of each column, by the first rows."""
        rows, wrong = [], None
        for index in range(min(len(self), _LOOKED_AT)):
            try:
                rows.append(self._fields(*self._text(index)[:2]))
            except TransformError as why:
                wrong = why
        if not rows:
            raise DatasetError(f"no row of {self.files[0][0]} can be read: {wrong}")
        return {column: _guess({row[column] for row in rows}) for column in self.names}

    def _parsed(self, text, name):
        row = self._fields(text, name)
        for column, type_ in self.types.items():
            try:
                row[column] = _value(row[column], type_, column not in self.said)
            except ValueError:
                raise TransformError(f"{name}: {column} {row[column]!r} is no {type_.__name__}: mend it, or types={{{column!r}: str}}") from None
        return row


def from_csv(paths: str | os.PathLike | Sequence, columns: Sequence[str] | None = None, *, separator: str | None = None,
             quotes: bool = True, types: Mapping[str, type] | None = None, transform: Callable[[dict], Any] | None = None,
             files: Sequence[str] | str | None = None, start: str | None = None, duration: str | None = None, end: str | None = None,
             random: bool | None = None, pad: dict[str, Pad] | None = None, ragged: dict[str, int | tuple[int, int]] | None = None,
             boxes: Sequence[str] | str | None = None, masks: str | Sequence[str] | Mapping[str, Mask | Measured] | None = None,
             images: str | Sequence[str] | Mapping[str, Image] | None = None,
             exact: bool = False, where: Any = None, workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
             room: int | None = None, keep: float = 30.0) -> Wrapped:
    """The rows of CSV files (RFC 4180, UTF-8; the first row of each names the columns), for Loader.

        rows = oa.from_csv("train.csv", ["text", "label"], ragged={"text": 4096})
        for batch in oa.Loader(rows, batch_size=64): batch["text"], batch["label"]

    paths: a file, a folder (its .csv and .tsv files and those in folders below), a pattern, or a list of these; all files
        have the same columns.
    separator: the character between fields. Default: a tab if the first file is a .tsv, else a comma.
    quotes: whether fields may stand in quotes, with separators and line ends in them. False: a quote is text.
    types: {column: int, float or str}. Default for a column: int or float if all of the first 1,000 rows have numbers there
        (007 and 1_2 are none), else str. In a float column an empty field, NA, N/A, null and None are NaN, and nan and inf
        are what they say, as in pandas. A column of whole numbers and such words is str: say float if these may be rounded to
        float32. In a batch int is int64, float float32.
    columns, transform, files, start, duration, end, random, where: as in from_jsonl(), but no column is meant by its name alone; a field that is NaN for being empty, NA, null or the like is null in
        where, as in pyarrow.csv.

    Empty lines are no rows. A row with another number of fields, or with a field that is not of its column's type, is a bad sample (Loader's bad=);
    its error begins with FILE:BYTE.

    The other arguments are those of wrap().
    """
    place = place_of(start, duration, end, _list(files))
    rows = CSVRows(_files(paths, _CSV, "CSV", "from_csv()"), transform, separator, types, quotes, files, place)
    return _wrapped(rows, random, where, version, name=name, workers=workers, timeout=timeout, room=room, keep=keep, columns=columns, pad=pad,
                    ragged=ragged, boxes=boxes, masks=following(masks, images), exact=exact)
