# SPDX-License-Identifier: Apache-2.0
"""Columns of tables as a model takes them: filled, clamped, hashed, looked up, cut and stacked, whole row groups at once, in the pool's
processes, once for all jobs that share.

    from oneaccess import features as f
    dense, sparse = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
    data = oa.from_parquet("criteo/", {
        "dense": f.Stack(dense, f.Fill(0), f.Clamp(min=0), f.Log1p()),             # float32 [13]
        "sparse": f.Stack(sparse, f.Fill(""), f.Hash(1_000_000)),                  # int64 [26]
        "clicks": f.Column("clicks", f.First(50), f.Hash(1_000_000)),              # int64, ragged
        "label": "label",
    })

A field of a batch is the name of a column, a list of names, a Column, a Cross or a Stack. Ops are done in their order. Floats become float32,
whole numbers and bool int64; between, ops compute in float64. Of a column of lists they are about each value, a list that is missing is
empty, and at the end there is a First or a Pad. A value that is missing (null) and that no op fills makes a bad sample (Loader's bad=), as does a
number beyond float32 or, where it is not hashed, int64; a NaN that no op fills stays one. Fill(0.0) makes floats of whole numbers, too.

Where an op of a Stack takes a list of as many as there are columns, each column has its own.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import ArgumentError, TransformError, needs

_MOST, _MOST_WHOLE = 1 << 30, (1 << 63) - 1


class Values:
    """A column of a row group on its way: data, an array of numbers, or of places in words, an array of Arrow's, where it is text; missing:
    which of them are, or None; name: the column's; offsets: of lists, where each begins and the last one ends; most: the longest list that there may be;
    wrong: [(which rows, why)], which are bad samples."""

    def __init__(self, data: Any, missing: Any = None, words: Any = None, name: str = ""):
        self.data, self.missing, self.words, self.name = data, missing, words, name
        self.offsets, self.most, self.wrong = None, None, []

    def refuse(self, which: Any, why: str) -> None:
        """These of the values, unless they are missing."""
        import numpy as np
        if self.missing is not None:
            which = which & ~self.missing
        if which.any():
            if self.data.ndim > 1:
                which = which.any(1)
            if self.offsets is not None:
                sums = np.concatenate([[0], np.cumsum(which)])
                which = np.diff(sums[self.offsets]) > 0
            self.wrong.append((which, why))

    def numbers(self, op: Any) -> Any:
        if self.words is not None:
            raise TransformError(f"{op} is of numbers, and this is text: Hash or Vocabulary makes numbers of it")
        return self.data

    def whole(self) -> Any:
        """Whole numbers as int64; greater ones are bad."""
        import numpy as np
        if self.data.dtype == np.uint64:
            self.refuse(self.data > np.uint64(_MOST_WHOLE), "it is above 2**63 - 1, where int64 ends: Hash(buckets) takes it")
        return self.data.astype(np.int64, copy=False)

    def without(self, which: Any) -> None:
        """These are missing, too."""
        self.missing = which if self.missing is None else self.missing | which


def values_of(column: Any) -> Values:
    """Of a column as pyarrow has it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    types = pa.types
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    type_ = array.type
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        made = values_of(array.flatten())
        if made.offsets is not None:
            raise TransformError("it has lists of lists")
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        made.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return made
    if types.is_dictionary(type_) and not _is_text(type_.value_type):
        array = array.dictionary_decode()
        type_ = array.type
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if types.is_dictionary(type_) or _is_text(type_):
        array = array if types.is_dictionary(type_) else array.dictionary_encode()
        return Values(pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False), missing, array.dictionary)
    if types.is_decimal(type_):
        array = array.cast(pa.float64())
    elif types.is_boolean(type_) or types.is_float16(type_):
        array = array.cast(pa.int64() if types.is_boolean(type_) else pa.float32())
    elif not (types.is_integer(type_) or types.is_floating(type_)):
        raise TransformError(f"it is {type_}, of which no number is made")
    return Values(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), missing)


def _is_text(type_):
    from pyarrow import types
    return types.is_string(type_) or types.is_large_string(type_) or types.is_binary(type_) or types.is_large_binary(type_)


# ---- ops ----


class FeatureOp:
    """What is done with a column. Its arguments are what it is told apart by."""

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def run(self, values: Values, at: int, count: int) -> Values:
        """The column is the at-th of count in its Stack."""
        raise NotImplementedError


def _each(what, value, at, count):
    """A column's own, where there is a list of them."""
    import numpy as np
    if np.ndim(value) == 0:
        return value
    if len(value) != count:
        raise ArgumentError(f"{what} has {len(value)} numbers, and the Stack {count} columns: give one, or one for each")
    return value[at]


def _number(what, value):
    """A number, or a list of them, as Python's, whatever they come from."""
    import numpy as np
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.ndim > 1 or not np.isfinite(array).all() or (array.dtype == np.uint64 and (array > np.uint64(_MOST_WHOLE)).any()):
        raise ArgumentError(f"{what}={value!r}: a number, or one for each column of a Stack")
    return array.tolist()


def _whole(what, value, least=1):
    made = _number(what, value)
    for each in made if isinstance(made, list) else [made]:
        if not isinstance(each, int) or not least <= each <= 1 << 62:
            raise ArgumentError(f"{what}={value!r}: a whole number from {least} on, or one for each column of a Stack")
    return made


class Fill(FeatureOp):
    """What is missing becomes value: a null, and of floats a NaN. Of texts it is a text."""

    def __init__(self, value: float | str | Sequence[float] = 0):
        self.value = value if isinstance(value, str) else _number("Fill(value)", value)

    def run(self, values, at, count):
        import numpy as np
        import pyarrow as pa
        value, data = _each("Fill", self.value, at, count), values.data
        is_text = values.words is not None
        if is_text != isinstance(value, str):
            raise TransformError(f"Fill({value!r}) is {'a number, and this is text' if is_text else 'text, and these are numbers'}")
        if data.dtype.kind == "f":
            missing = np.isnan(data)
            if missing.any():
                values.without(missing)
        if isinstance(value, float) and data.dtype.kind != "f":     # also in row groups that lack none
            data = values.data = data.astype(np.float64)
        if values.missing is None:
            return values
        if is_text:
            words = values.words.cast(pa.large_binary())
            values.words = pa.concat_arrays([words, pa.array([value.encode()], pa.large_binary())])
            value = len(words)
        elif data.dtype.kind in "iu" and (value < 0 or data.dtype != np.uint64):
            data = values.whole()
        values.data, values.missing = np.where(values.missing, data.dtype.type(value) if not is_text else np.int64(value), data), None
        return values


class Clamp(FeatureOp):
    """min(max(x, min), max)."""

    def __init__(self, min: float | Sequence[float] | None = None, max: float | Sequence[float] | None = None):
        if min is None and max is None:
            raise ArgumentError("Clamp() has neither min nor max: give one or both")
        self.min, self.max = (None if end is None else _number(f"Clamp({name})", end) for name, end in (("min", min), ("max", max)))

    def run(self, values, at, count):
        import numpy as np
        low, high = (None if end is None else _each("Clamp", end, at, count) for end in (self.min, self.max))
        data = values.numbers(self)
        if data.dtype.kind != "f":
            is_whole = not any(isinstance(end, float) for end in (low, high))
            data = values.whole() if is_whole else data.astype(np.float64)
        values.data = np.clip(data, low, high)
        return values


class Log1p(FeatureOp):
    """log(1 + x), natural. A value of -1 or less makes a bad sample."""

    def run(self, values, at, count):
        import numpy as np
        data = values.numbers(self).astype(np.float64, copy=False)
        low = data <= -1
        if low.any():
            values.refuse(low, "Log1p() is of numbers above -1, and this is less: Clamp(min=0) before it")
            data = np.where(low, 0, data)
        values.data = np.log1p(data)
        return values


class Standardize(FeatureOp):
    """(x - mean) / std, as column_stats() measures them. A std of 0 makes 0."""

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]):
        self.mean, self.std = _number("Standardize(mean)", mean), _number("Standardize(std)", std)

    def run(self, values, at, count):
        import numpy as np
        mean, std = _each("Standardize(mean)", self.mean, at, count), _each("Standardize(std)", self.std, at, count)
        data = values.numbers(self).astype(np.float64, copy=False)
        values.data = (data - mean) / std if std else np.zeros_like(data)
        return values


class Bucketize(FeatureOp):
    """How many of the boundaries are less than x, as torch.bucketize() without right: 0 to len(boundaries). NaN is missing.

    boundaries: numbers that increase; or a list of such lists, one for each column of a Stack.
    """

    def __init__(self, boundaries: Sequence[float] | Sequence[Sequence[float]]):
        self.boundaries = [_number("Bucketize(boundaries)", each) for each in boundaries]
        for each in self.boundaries if isinstance(next(iter(self.boundaries), None), list) else [self.boundaries]:
            if not each or any(b <= a for a, b in zip(each, each[1:])):
                raise ArgumentError(f"Bucketize({each!r}): boundaries increase")

    def run(self, values, at, count):
        import numpy as np
        ends, data = self.boundaries, values.numbers(self)
        if isinstance(ends[0], list):
            if len(ends) != count:
                raise ArgumentError(f"Bucketize has {len(ends)} lists of boundaries, and the Stack {count} columns")
            ends = ends[at]
        missing = np.isnan(data) if data.dtype.kind == "f" else None
        if missing is not None and missing.any():
            values.without(missing)
        values.data = np.searchsorted(np.asarray(ends), data, "left").astype(np.int64, copy=False)
        return values


class Hash(FeatureOp):
    """XXH64(value, seed) mod buckets: 0 to buckets - 1. It is the same everywhere, so that a model meets the same numbers where it serves.

    Of a text XXH64 is of its UTF-8 bytes, of a whole number of its 8 bytes as int64, the lowest first; xxhash.xxh64_intdigest(x, seed) %
    buckets says the same. Floats are refused: Bucketize makes whole numbers of them.

    buckets: the size of the table; a list has one for each column of a Stack.
    """

    def __init__(self, buckets: int | Sequence[int], seed: int = 0):
        self.buckets, self.seed = _whole("Hash(buckets)", buckets), _whole("Hash(seed)", seed, 0)

    def run(self, values, at, count):
        import numpy as np
        buckets = _each("Hash(buckets)", self.buckets, at, count)
        made = hashed(values, _each("Hash(seed)", self.seed, at, count), self) % np.uint64(buckets)
        values.data, values.words = made.astype(np.int64), None
        return values


def hashed(values: Values, seed: int, op: Any) -> Any:
    """XXH64 of each, uint64."""
    import numpy as np
    from . import hashes
    if values.words is None:
        whole = whole_of(values, op)
        return hashes.of_words(whole.view(np.uint64).reshape(-1, 1), seed).reshape(whole.shape)
    made = hashes.of_bytes(*bytes_of(values.words), seed)
    return made[values.data] if len(made) else np.zeros(len(values.data), np.uint64)


def whole_of(values: Values, op: Any) -> Any:
    """The column's whole numbers, int64."""
    import numpy as np
    if values.data.dtype.kind == "f":
        raise TransformError(f"{op} is of texts and whole numbers, and these are {values.data.dtype}: Bucketize them first")
    return np.ascontiguousarray(values.data, np.int64)


def bytes_of(words: Any) -> tuple[Any, Any, Any]:
    """All in a row, where each begins, and how long it is; what is null has no bytes."""
    import numpy as np
    import pyarrow as pa
    words = words.cast(pa.large_binary()).fill_null(b"")
    _, offsets, data = words.buffers()
    if not len(words):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = np.frombuffer(offsets, np.int64)[words.offset:words.offset + len(words) + 1]
    data = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return data, offsets[:-1], np.diff(offsets)


class Vocabulary(FeatureOp):
    """The place of a value among values, plus first; unknown for all others; missing for what is missing, by default as unknown.

    values: texts or whole numbers, as column_values() finds them; or {column: values}, of each column of a Stack.
    """

    def __init__(self, values: Sequence | Mapping[str, Sequence], first: int = 1, unknown: int = 0, missing: int | None = None):
        self.of = {name: _known(each) for name, each in values.items()} if isinstance(values, Mapping) else _known(values)
        self.first, self.unknown = _whole("Vocabulary(first)", first, 0), _whole("Vocabulary(unknown)", unknown, 0)
        self.missing = self.unknown if missing is None else _whole("Vocabulary(missing)", missing, 0)

    def __repr__(self):
        digest = hashlib.sha256(repr(self.of).encode()).hexdigest()
        return f"Vocabulary(<{digest[:32]}>, first={self.first}, unknown={self.unknown}, missing={self.missing})"

    def named(self, name: str) -> Any:
        """The values of a column, an array of Arrow's."""
        import pyarrow as pa
        if isinstance(self.of, dict) and name not in self.of:
            raise ArgumentError(f"Vocabulary has values of the columns {', '.join(self.of)}, and none of {name}")
        with pa.ipc.open_stream(self.of[name] if isinstance(self.of, dict) else self.of) as stream:
            return stream.read_all().column(0).combine_chunks()

    def run(self, values, at, count):
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc
        known = self.named(values.name)
        is_text = values.words is not None
        if is_text != pa.types.is_large_binary(known.type):
            raise TransformError(f"Vocabulary has {'whole numbers, and this is text' if is_text else 'texts, and these are numbers'}")
        wanted = values.words.cast(pa.large_binary()) if is_text else pa.array(whole_of(values, self).reshape(-1))
        made = pc.index_in(wanted, value_set=known)
        made = pc.fill_null(pc.add(made.cast(pa.int64()), self.first), self.unknown).to_numpy(zero_copy_only=False)
        if is_text:
            made = made[values.data] if len(made) else np.full(len(values.data), self.unknown)
        made = made.reshape(values.data.shape)
        if values.missing is not None:
            made = np.where(values.missing, self.missing, made)
        values.data, values.words, values.missing = made, None, None
        return values


def _known(values):
    """As the bytes of a stream of Arrow's, which are the same for the same values."""
    pa = needs("pyarrow", "Vocabulary", "pyarrow")
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    is_text = bool(values) and isinstance(values[0], (str, bytes))
    try:
        array = pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.large_binary() if is_text else pa.int64())
    except (pa.ArrowException, TypeError, OverflowError) as why:
        raise ArgumentError(f"the values of Vocabulary are texts or whole numbers: {why}") from None
    if len(array.unique()) != len(array) or array.null_count or not len(array):
        raise ArgumentError("the values of Vocabulary differ from each other, none is missing, and there is one at least")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("", array.type)])) as stream:
        stream.write_batch(pa.record_batch([array], [""]))
    return sink.getvalue().to_pybytes()


class First(FeatureOp):
    """The first count values of a list, or the last: a ragged field (Ragged)."""

    def __init__(self, count: int, last: bool = False):
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST:
            raise ArgumentError(f"{type(self).__name__}({count!r}): a whole number from 1 on")
        self.count, self.last = count, bool(last)

    def run(self, values, at, count):
        import numpy as np
        if values.offsets is None:
            raise TransformError(f"{type(self).__name__} is of lists, and this column has one value in a row")
        values.most = self.count
        lengths = np.diff(values.offsets)
        if (lengths > self.count).any():
            kept = np.minimum(lengths, self.count)
            offsets = np.concatenate([[0], np.cumsum(kept)])
            begins = values.offsets[1:] - kept if self.last else values.offsets[:-1]
            rows = np.repeat(begins - offsets[:-1], kept) + np.arange(offsets[-1])
            values.data, values.offsets = values.data[rows], offsets
            values.missing = None if values.missing is None else values.missing[rows]
        return values


class Pad(First):
    """The first count values of a list, or the last, with value behind them where there are fewer: a field [count]. Texts are hashed or
    looked up before it."""

    def __init__(self, count: int, value: float = 0, last: bool = False):
        super().__init__(count, last)
        self.value = _number("Pad(value)", value)

    def run(self, values, at, count):
        import numpy as np
        values.numbers(self)
        values = super().run(values, at, count)
        there = np.arange(self.count) < np.diff(values.offsets)[:, None]
        if isinstance(self.value, float):
            values.data = values.data.astype(np.float64, copy=False)
        made = np.full(there.shape, self.value, values.data.dtype)
        made[there] = values.data
        if values.missing is not None:
            missing = np.zeros(there.shape, bool)
            missing[there] = values.missing
            values.missing = missing
        values.data, values.offsets, values.most = made, None, None
        return values


class NGram(FeatureOp):
    """Of each list the n-grams, hashed: XXH64 of n values in a row as 8 bytes each, mod buckets. Of a text its XXH64 stands for it. A list of
    fewer than n values becomes empty.

    n: values in one, from 2 on. buckets, seed: as of Hash.
    """

    def __init__(self, n: int, buckets: int, seed: int = 0):
        self.n, self.buckets, self.seed = _whole("NGram(n)", n, 2), _whole("NGram(buckets)", buckets), _whole("NGram(seed)", seed, 0)

    def run(self, values, at, count):
        import numpy as np
        from . import hashes
        if values.offsets is None:
            raise TransformError("NGram is of lists, and this column has one value in a row")
        data = words_of(values, self.seed, self)
        kept = np.maximum(np.diff(values.offsets) - (self.n - 1), 0)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        begins = np.repeat(values.offsets[:-1] - offsets[:-1], kept) + np.arange(offsets[-1])
        rows = begins[:, None] + np.arange(self.n)
        values.data = (hashes.of_words(data[rows], self.seed) % np.uint64(self.buckets)).astype(np.int64)
        values.missing = None if values.missing is None else values.missing[rows].any(1)
        values.words, values.offsets = None, offsets
        return values


def words_of(values: Values, seed: int, op: Any) -> Any:
    """8 bytes of each value, uint64: a whole number itself, of a text its XXH64."""
    import numpy as np
    return whole_of(values, op).view(np.uint64) if values.words is None else hashed(values, seed, op)


class Call(FeatureOp):
    """A function of the user's, of an array of numbers, that returns another of its shape. Its source is told apart, too."""

    def __init__(self, function: Callable[[Any], Any]):
        if not callable(function):
            raise ArgumentError(f"{function!r} is no op: those of oneaccess.features, or a function of an array that returns another of its shape")
        self.function = function

    def __repr__(self):
        if isinstance(self.function, functools.partial):
            return f"{Call(self.function.func)!r}(*{self.function.args!r}, **{self.function.keywords!r})"
        named = self.function if hasattr(self.function, "__name__") else type(self.function)
        return f"{getattr(named, '__module__', None)}.{getattr(named, '__qualname__', named.__name__)}"

    def run(self, values, at, count):
        import numpy as np
        data = values.numbers(self)
        made = np.asarray(self.function(data))
        if made.shape != data.shape or made.dtype.kind not in "biuf":
            raise TransformError(f"{self} made {made.dtype} {made.shape} of {data.dtype} {data.shape}, and is to make numbers of that shape")
        values.data = made
        return values


# ---- columns ----


class Column:
    """A column by its name, and what is done with it."""

    def __init__(self, name: str, *ops: Any):
        if not isinstance(name, str):
            raise ArgumentError(f"Column({name!r}): the name of a column")
        self.name, self.ops = name, _ops(ops)

    def __repr__(self):
        return f"Column({', '.join(map(repr, [self.name, *self.ops]))})"

    def names(self) -> list[str]:
        return [self.name]

    def made(self, table: Any) -> list[Values]:
        """Of a row group, those of each column."""
        return [self.of(table)]

    def of(self, table: Any, ops: Sequence = (), at: int = 0, count: int = 1) -> Values:
        """With these ops behind its own."""
        try:
            return self._run(values_of(table.column(self.name)), ops, at, count)
        except TransformError as why:
            raise TransformError(f"column {self.name}: {why}") from None

    def _run(self, values, ops, at, count):
        values.name = self.name
        for op in self.ops:
            values = op.run(values, 0, 1)
        for op in ops:
            values = op.run(values, at, count)
        return values


class Cross(Column):
    """Several columns as one: XXH64 of a value of each, as 8 bytes each, mod buckets. A whole number is its int64, a text its XXH64 (seed).
    Where one is missing, so is the result.

    columns: names or Columns. buckets, seed: as of Hash. ops: what is done with the result.
    """

    def __init__(self, columns: Sequence[str | Column], buckets: int, *ops: Any, seed: int = 0):
        self.columns = _columns("Cross", columns)
        self.buckets, self.seed = _whole("Cross(buckets)", buckets), _whole("Cross(seed)", seed, 0)
        self.name, self.ops = " x ".join(column.name for column in self.columns), _ops(ops)

    def __repr__(self):
        return f"Cross({', '.join(map(repr, [self.columns, self.buckets, *self.ops]))}, seed={self.seed})"

    def names(self):
        return [name for column in self.columns for name in column.names()]

    def of(self, table, ops=(), at=0, count=1):
        import numpy as np
        from . import hashes
        parts = [column.of(table) for column in self.columns]
        for column, part in zip(self.columns, parts):
            if part.offsets is not None or part.data.ndim > 1:
                raise TransformError(f"column {column.name}: Cross is of columns with one value in a row, and this one has lists")
        words = np.stack([words_of(part, self.seed, self) for part in parts], 1)
        made = Values((hashes.of_words(words, self.seed) % np.uint64(self.buckets)).astype(np.int64))
        for part in parts:
            made.wrong += part.wrong
            if part.missing is not None:
                made.without(part.missing)
        return self._run(made, ops, at, count)


class Stack:
    """Several columns as one field: [columns], of one type.

    columns: names, Columns or Crosses. ops: what is done with each of them, behind its own.
    """

    def __init__(self, columns: Sequence[str | Column], *ops: Any):
        self.columns, self.ops = _columns("Stack", columns), _ops(ops)

    def __repr__(self):
        return f"Stack({', '.join(map(repr, [self.columns, *self.ops]))})"

    def names(self) -> list[str]:
        return [name for column in self.columns for name in column.names()]

    def made(self, table: Any) -> list[Values]:
        return [column.of(table, self.ops, at, len(self.columns)) for at, column in enumerate(self.columns)]


def _columns(what, columns):
    if isinstance(columns, (str, Column)) or not isinstance(columns, Sequence) or not columns:
        raise ArgumentError(f"{what}({columns!r}): a list of columns")
    return [column if isinstance(column, Column) else Column(column) for column in columns]


def _ops(ops):
    return [op if isinstance(op, FeatureOp) else Call(op) for op in ops]


def fields_of(columns: Mapping[str, Any]) -> dict[str, Column | Stack]:
    """What columns= says of each field."""
    made = {}
    for name, given in columns.items():
        if isinstance(given, (str, Column)):
            made[name] = given if isinstance(given, Column) else Column(given)
        elif isinstance(given, (Stack, list, tuple)):
            made[name] = given if isinstance(given, Stack) else Stack(given)
        else:
            raise ArgumentError(f"columns={{{name!r}: {given!r}}}: the name of a column, a list of names, or a Column, Cross or Stack of oneaccess.features")
    if not made or not all(isinstance(name, str) for name in made):
        raise ArgumentError(f"columns={columns!r}: {{field of a batch: what it is made of}}")
    return made
