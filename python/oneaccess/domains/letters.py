# SPDX-License-Identifier: Apache-2.0
"""What letters of DNA, RNA and proteins become: one-hot vectors, tokens or a text."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, DatasetError
from ..writing.tokenizing import tokenizer_of

_DNA = "ACGT"
_PAIRS = "ATTAUACGGCRYYRKMMKBVVBDHHD"
_UNKNOWN = -1
_BESIDE = 16                # tokens that a tokenizer makes beside those of letters
_DTYPES = {"onehot": ("float32", "float16", "uint8"), "tokens": ("int64", "int32", "int16", "uint8")}

_COMPLEMENT, _UPPER = bytes.maketrans((_PAIRS[::2] + _PAIRS[::2].lower()).encode(), (_PAIRS[1::2] + _PAIRS[1::2].lower()).encode()), bytes(range(256)).upper()


def _translated(letters, table):
    """Each byte by a table of 256: as fast as the memory, where NumPy would make an index of eight bytes of each first."""
    return np.frombuffer(letters.tobytes().translate(table), np.uint8).reshape(letters.shape)


def complement(letters: Any) -> Any:
    """Of DNA in one order or the other, with the letters of IUPAC for several."""
    return _translated(letters, _COMPLEMENT)


def _token(what, value):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ArgumentError(f"{what} is {value!r}: the number of a token, from 0 on")
    return value


class Letters:
    """encode= of from_fasta(): made(letters) of letters [n, L], or of those of many in a row, of one length or not."""

    def __init__(self, encode: Any, dtype: str | None, unknown: float | None, is_first: bool, bos: int | None, eos: int | None):
        self.is_text, self.is_onehot, self.function = encode == "text", encode == "onehot", None
        kind = "onehot" if self.is_onehot else "tokens"
        self.is_first, self.bos, self.eos = is_first, bos, eos
        if self.is_text or self.is_onehot:
            if bos is not None or eos is not None:
                raise ArgumentError(f"bos= and eos= are tokens, and encode is {encode!r}")
        if dtype is not None and (self.is_text or not any(dtype in (name, getattr(np, name)) for name in _DTYPES[kind])):
            raise ArgumentError(f"dtype is {dtype!r}: {', '.join(_DTYPES[kind])}, of encode=\"onehot\" or tokens")
        self.dtype = np.dtype(dtype or _DTYPES[kind][0])
        if self.is_onehot:
            self._onehot(0.0 if unknown is None else unknown)
        elif not self.is_text:
            self._tokens(encode, unknown)

    # ---- at the beginning ----

    def _onehot(self, unknown):
        """A table to the number that is 1; 4: none of them."""
        if isinstance(unknown, bool) or not isinstance(unknown, (int, float)) or not 0 <= unknown <= 1 or self.dtype == np.uint8 and unknown != int(unknown):
            raise ArgumentError(f"unknown is {unknown!r}: 0, or 0.25 with a dtype of floats: what each of the four numbers of N is")
        self.unknown, table = unknown, bytearray([len(_DNA)] * 256)
        for letter, number in zip(_DNA + "U", (0, 1, 2, 3, 3)):
            table[ord(letter)] = table[ord(letter.lower())] = number
        self.table = bytes(table)

    def _tokens(self, encode, unknown):
        if callable(encode) or hasattr(encode, "encode") and not isinstance(encode, str):
            if unknown is not None or self.bos is not None or self.eos is not None:
                raise ArgumentError("unknown=, bos= and eos= are for a vocabulary: a tokenizer has its own")
            tokenizer_of(encode)
            self.function = encode
            return
        if encode == "tokens":
            encode, unknown = "ACGTN", 4 if unknown is None else unknown
        numbers = {letter: number for number, letter in enumerate(encode)} if isinstance(encode, str) else dict(encode) if isinstance(encode, Mapping) else {}
        numbers = {letter: _token(f"encode[{letter!r}]", number) for letter, number in numbers.items() if isinstance(letter, str) and len(letter) == 1 and letter.isascii()}
        if not numbers or isinstance(encode, str) and len(numbers) < len(encode):       # a letter twice, as of "one-hot"
            raise ArgumentError(f"encode is {encode!r}: \"onehot\", \"tokens\", \"text\", letters in the order of their tokens, {{letter: token}}, or a tokenizer")
        tokens = np.full(256, _UNKNOWN if unknown is None else _token("unknown", unknown), np.int64)
        for letter, number in numbers.items():
            for each in {letter.upper(), letter.lower()} - ({*numbers} - {letter}):
                tokens[ord(each)] = number
        for what, value in (("bos", self.bos), ("eos", self.eos)):
            if value is not None:
                _token(what, value)
        largest = max(tokens.max(), self.bos or 0, self.eos or 0)
        if largest > np.iinfo(self.dtype).max:
            raise ArgumentError(f"dtype={self.dtype.name!r} has no room for token {largest}")
        self.known = bytes(np.flatnonzero(tokens >= 0).tolist())
        self.tokens, self.table = tokens.astype(self.dtype), bytes(np.maximum(tokens, 0).tolist()) if tokens.max() < 256 else None

    @property
    def beside(self) -> int:
        """Tokens that a sample may have beside those of its letters."""
        return _BESIDE if self.function is not None else (self.bos is not None) + (self.eos is not None) if not self.is_onehot and not self.is_text else 0

    @property
    def is_ragged(self) -> bool:
        """Also where all samples have as many letters."""
        return self.is_text or self.function is not None

    # ---- samples ----

    def example(self, length: int, is_ragged: bool) -> Any:
        """What a sample is like."""
        if self.is_text:
            return ""
        if self.is_onehot:
            return np.zeros((0, 4) if is_ragged else (4, length) if self.is_first else (length, 4), self.dtype)
        return np.zeros(0 if is_ragged else length + self.beside, self.dtype)

    def made(self, letters: Any, offsets: Any, called: Any, is_ragged: bool, out: Any = None) -> Any:
        """letters: uint8, of all samples in a row, each of which begins at its offset. An array [samples, ...], out if that is given, or with is_ragged
        (values, offsets). called: a function that names a sample."""
        count, whole = len(offsets) - 1, None if is_ragged else int(offsets[1] - offsets[0]) if len(offsets) > 1 else 0
        if self.is_text:
            return _translated(letters, _UPPER), offsets
        if self.function is not None:
            return self._tokenized(letters, offsets)
        if self.is_onehot:
            codes = _translated(letters, self.table)
            if is_ragged:
                return self._hot(codes, np.empty((len(codes), len(_DNA)), self.dtype), False), offsets
            out = np.stack([self.example(whole, False)] * count) if out is None else out
            return self._hot(codes.reshape(count, whole), out, self.is_first)
        if letters.tobytes().translate(None, self.known):
            wrong = int(np.argmin(np.isin(letters, np.frombuffer(self.known, np.uint8))))
            number = int(np.searchsorted(offsets, wrong, "right")) - 1
            raise DatasetError(f"{called(number)}: letter {wrong - int(offsets[number]):,} is {chr(letters[wrong])!r}, for which encode= has no token: name it, or give unknown=")
        values = self.tokens[letters] if self.table is None else _translated(letters, self.table).astype(self.dtype)
        if not is_ragged:
            out = np.empty((count, whole + self.beside), self.dtype) if out is None else out
            return self._framed(values.reshape(count, whole), out)
        if not self.beside:
            return values, offsets
        before = int(self.bos is not None)
        own = offsets + np.arange(count + 1) * self.beside
        made = np.empty(own[-1], self.dtype)
        made[np.arange(len(values)) + np.repeat(np.arange(count) * self.beside + before, np.diff(offsets))] = values
        for token, places in ((self.bos, own[:-1]), (self.eos, own[1:] - 1)):
            if token is not None:
                made[places] = token
        return made, own

    def _hot(self, codes, out, is_first):
        """out: [..., 4], or is_first: [samples, 4, letters]"""
        if not is_first:
            rows = np.full((len(_DNA) + 1, len(_DNA)), self.unknown, self.dtype)
            rows[:len(_DNA)] = np.eye(len(_DNA))
            return np.take(rows, codes, axis=0, out=out, mode="clip")
        for number in range(len(_DNA)):
            out[:, number] = codes == number
        if self.unknown:
            sample, place = np.nonzero(codes == len(_DNA))
            out[sample, :, place] = self.unknown
        return out

    def _framed(self, values, out):
        before = int(self.bos is not None)
        out[:, before:before + values.shape[1]] = values
        if self.bos is not None:
            out[:, 0] = self.bos
        if self.eos is not None:
            out[:, -1] = self.eos
        return out

    def _tokenized(self, letters, offsets):
        text = letters.tobytes().upper().decode("ascii")
        texts = [text[begin:end] for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
        made = [np.asarray(tokens, self.dtype).reshape(-1) for tokens in tokenizer_of(self.function).encode(texts)]
        return np.concatenate([np.zeros(0, self.dtype), *made]), np.concatenate([[0], np.cumsum([len(tokens) for tokens in made])]).astype(np.int64)
