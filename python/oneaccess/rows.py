# SPDX-License-Identifier: Apache-2.0
"""Data sets whose samples are rows of numbers: a .npy, windows over tokens, records of fixed size."""

import ast
import os
import struct
from collections.abc import Mapping
from typing import Any

from .errors import ArgumentError, TransformError

_RECORD_DTYPES = {"|u1": 1, "|b1": 1, "<f2": 2, "<f4": 3}   # all else that accessd takes becomes int64
_I64 = 4


class Rows:
    """A file of rows, for a Loader; oneaccess.tokens() makes one."""

    def __init__(self, path: str | os.PathLike, options: dict[str, Any]):
        self.path, self.options = os.path.expanduser(os.fspath(path)), options

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<rows of {self.path}: {', '.join(f'{key}={value}' for key, value in self.options.items())}>"


def tokens(path: str | os.PathLike, seq_len: int, dtype: str | None = None) -> Rows:
    """Windows over the tokens of a file, for a Loader: sample i begins with token i * seq_len. Batches are dicts of two views of
    [batch, seq_len] int64 numbers: ``input_ids``, and ``labels``, which are the next tokens (models of transformers shift by
    themselves: they take input_ids for both). The views are of one array and not contiguous: ``reshape(-1)``, not ``view(-1)``.

    path: a .bin of plain numbers, whose dtype is "uint16", "uint32", "int32" or "int64"; a .bin of Megatron-LM with its .idx
    beside it, or a one-dimensional .npy, which say it themselves. The tokens are one row: a window may hold
    parts of several documents, and what is left behind the last window is left out."""
    if isinstance(seq_len, bool) or not isinstance(seq_len, int) or seq_len < 1:
        raise ArgumentError(f"seq_len={seq_len!r}: how many tokens a sample has")
    return Rows(path, {"seq_len": seq_len} if dtype is None else {"seq_len": seq_len, "dtype": str(dtype)})


# ---- what a batch of them is ----


def layout_of(path: str, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """As a pool says of a wrapped data set; None: the file is of another kind."""
    options = options or {}
    if not os.path.isfile(path):
        return None                       # accessd says what is wrong
    if "seq_len" in options:
        return {"kind": "tokens", "names": ["tokens"], "fields": [[_I64, int(options["seq_len"]) + 1]]}
    if "record" in options:
        return {"kind": "tuple", "names": ["record"], "fields": [[1, int(options["record"])]]}
    if not path.endswith(".npy"):
        return None
    head = _head_of(path)
    if head is None:
        return None
    return {"kind": "tuple", "names": ["row"],
            "fields": [[_RECORD_DTYPES.get(head["descr"], _I64), *head["shape"][1:]]]}


def _head_of(path):
    """The head of a .npy, as far as it is one."""
    try:
        with open(path, "rb") as file:
            begin = file.read(65536)
        size, at = (struct.unpack_from("<H", begin, 8)[0], 10) if begin[6:7] == b"\1" else \
            (struct.unpack_from("<I", begin, 8)[0], 12)
        head = ast.literal_eval(begin[at:at + size].decode("latin-1"))
        return head if isinstance(head["descr"], str) and isinstance(head["shape"], tuple) else None
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, struct.error):
        return None


def refuse_pipeline(pipeline: object, path: str) -> None:
    if pipeline is not None:
        raise TransformError(f"{path} has rows of numbers, which go to the batch as they are: leave out the pipeline")


def shaped(arrays: list, layout: dict[str, Any], as_: str | None) -> dict[str, Any] | None:
    """The views of a batch of tokens; None: there are none of its arrays."""
    if layout["kind"] != "tokens":
        return None
    whole = arrays[0]
    if as_ == "dlpack":                   # cannot be cut here
        return {"tokens": whole}
    return {"input_ids": whole[:, :-1], "labels": whole[:, 1:]}
