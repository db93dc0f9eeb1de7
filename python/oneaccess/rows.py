# SPDX-License-Identifier: Apache-2.0
"""Data sets whose samples are rows of numbers: a .npy, windows of its rows, windows over tokens, records of fixed size."""

import ast
import itertools
import os
import re
import struct
from collections.abc import Mapping
from typing import Any

from . import objectives, urls
from .errors import ArgumentError, TransformError

_RECORD_DTYPES = {"|u1": 1, "|b1": 1, "<f2": 2, "<f4": 3, "<u8": 11, "<f8": 12}   # all else that accessd takes becomes int64
_I64 = 4
_NAMES = {"packed": ("input_ids", "labels", "position_ids", "doc_ids"), "counted": ("input_ids", "labels")}   # of a sample's rows


class Rows:
    """A file of rows, for a Loader; oneaccess.tokens() and windows() make one. parts: {field: rows of a window}; objective: of tokens."""

    def __init__(self, path: str | os.PathLike, options: dict[str, Any], parts: dict[str, int] | None = None,
                 objective: objectives.Objective | None = None):
        self.path, self.options, self.parts, self.objective = urls.path_of(path), options, parts, objective

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<rows of {self.path}: {', '.join(f'{key}={value}' for key, value in self.options.items())}>"


def tokens(path: str | os.PathLike, seq_len: int, dtype: str | None = None, *, pack: bool = False,
           pad: int | None = None, loss: bool = False, objective: objectives.Objective | None = None) -> Rows:
    """Windows over a file of tokens, for Loader. It takes no pipeline.

        loader = oa.Loader(oa.tokens("/data/train.bin", seq_len=2048, dtype="uint16"), batch_size=16)
        for batch in loader: batch["input_ids"], batch["labels"]

    Batches are dicts of int64, [batch, seq_len]. Sample i begins with token i * seq_len; ``labels`` are the next tokens
    (models of transformers shift by themselves: they take input_ids for both). The two are views of one array and not
    contiguous: use ``reshape(-1)``, not ``view(-1)``. A window may hold parts of several documents; what remains after the
    last window is left out.

    path: a .bin of plain numbers; a .bin of Megatron-LM with its .idx beside it; or a one-dimensional .npy.
    seq_len: tokens in a sample.
    dtype: of plain numbers: "uint16", "uint32", "int32" or "int64". The other files say it themselves.
    pack: True: a sample is packed from whole documents, those of the .idx: pieces of seq_len of long ones, and the rests
        and short ones combined so that little is unused. Each token of each document is in one sample, and the same files
        and seq_len give the same samples to every job in every epoch.
    pad: the token that fills a packed sample; default 0.
    loss: True: of a .bin with a .loss beside it, which tokenize() writes for fine-tuning: ``labels`` are -100, too, where the next
        token does not count for the loss. Models of transformers take them by ``labels = batch["labels"].contiguous()`` and
        ``model(input_ids=..., labels=labels, shift_labels=labels)``: without ``shift_labels`` they would shift them once more.
    objective: what is to be learned, instead of the next token: a MaskedLM, SpanCorruption or FillInMiddle, which say what ``input_ids``
        and ``labels`` then are. Each sample is drawn anew in each epoch; with order="seeded" from the seed, the epoch and the sample alone, so the same
        comes in a resumed run, with other batch sizes and ranks. The windows are shared with jobs that have other objectives, or none. Batches are private copies.

    tokenize() makes such files of texts. With pack, a document of at most seq_len tokens is never cut, ``labels`` is -100 where
    the next token is not of the same document, ``position_ids`` count from 0 in each document's part, and
    ``doc_ids`` are the documents' numbers, -1 for padding. varlen() prepares such a batch for attention within documents.
    """
    if isinstance(seq_len, bool) or not isinstance(seq_len, int) or seq_len < 1:
        raise ArgumentError(f"seq_len={seq_len!r}: how many tokens a sample has")
    if objective is not None:
        objectives.checked(objective, loss)
        seq_len = objective.raw(seq_len, pack)
    options = {"seq_len": seq_len} if dtype is None else {"seq_len": seq_len, "dtype": str(dtype)}
    if pad is not None and not pack:
        raise ArgumentError(f"pad={pad!r} fills packed sequences: give pack=True, or leave pad out")
    if pack:
        options.update(pack=1, pad=objectives.token("pad", 0 if pad is None else pad))
    if loss:
        options.update(loss=1)
    return Rows(path, options, objective=objective)


def varlen(batch: Mapping[str, Any]) -> dict[str, Any]:
    """A batch of packed tokens() without its padding, as attention with variable lengths takes it.

    ``input_ids``, ``labels``, ``position_ids`` and ``doc_ids`` are [tokens], one document's part after the other.
    ``cu_seqlens``, int32 [parts + 1], is where each part begins and the last one ends; ``max_seqlen`` is an int. Arrays of
    NumPy, or tensors on any device.
    """
    import numpy
    real = batch["doc_ids"] >= 0
    flat = {name: batch[name][real] for name in ("input_ids", "labels", "position_ids", "doc_ids")}
    places = flat["position_ids"]
    if isinstance(places, numpy.ndarray):
        ends = numpy.append(numpy.flatnonzero(places == 0), len(places)).astype("i4")
        lengths = numpy.diff(ends)
    else:
        import torch
        starts = (places == 0).nonzero().flatten()
        ends = torch.cat([starts, starts.new_tensor([len(places)])]).to(torch.int32)
        lengths = ends.diff()
    return {**flat, "cu_seqlens": ends, "max_seqlen": int(lengths.max()) if len(lengths) else 0}


# ---- what a batch of them is ----


def _first(path: str) -> str:
    """Of a folder or a list, a file."""
    if os.path.isdir(path):
        return min((os.path.join(path, name) for name in os.listdir(path) if name.endswith(".npy") and name[0] != "."), default=path)
    while not os.path.exists(path) and "{" in path:
        before, _, rest = path.partition("{")
        choice, _, rest = rest.partition("}")
        path = before + re.split(r",|\.\.", choice)[0] + rest
    return path


def layout_of(path: str, options: Mapping[str, Any] | None, parts: Mapping[str, int] | None = None,
              objective: objectives.Objective | None = None) -> dict[str, Any] | None:
    """As a pool says of a wrapped data set; None: the file is of another kind. parts: of windows(); objective: of tokens()."""
    layout = _layout_of(path, options, parts)
    return layout if objective is None or layout is None else {**layout, "objective": objective}


def _layout_of(path, options, parts):
    options = options or {}
    try:
        sizes = {name: int(options[name]) for name in ("seq_len", "record", "window") if name in options}
    except (TypeError, ValueError):
        return None                       # accessd says what is wrong
    is_url = urls.is_url(path)
    if "window" in options and not is_url:
        path = _first(os.fsdecode(path))
    if not is_url and not os.path.isfile(path):
        return None
    if "seq_len" in options and "pack" in options:
        return {"kind": "packed", "names": ["tokens"], "fields": [[_I64, 4, sizes["seq_len"]]]}
    if "seq_len" in options and "loss" in options:
        return {"kind": "counted", "names": ["tokens"], "fields": [[_I64, 2, sizes["seq_len"]]]}
    if "seq_len" in options:
        return {"kind": "tokens", "names": ["tokens"], "fields": [[_I64, sizes["seq_len"] + 1]]}
    if "record" in options:
        return {"kind": "tuple", "names": ["record"], "fields": [[1, sizes["record"]]]}
    if not (urls.suffixed(path, ".npy") if is_url else path.endswith(".npy")):
        return None
    head = _head_of(urls.for_arrow(path, {key: options[key] for key in ("endpoint", "region") if key in options}) if is_url else path)
    if head is None:
        return None
    dtype, row = _RECORD_DTYPES.get(head["descr"], _I64), head["shape"][1:]
    if "window" in options and len(row) > 3:
        raise ArgumentError(f"{path} has {len(row) + 1} dimensions, and windows are of arrays of up to 4: save it with fewer")
    if "window" in options:
        return {"kind": "windows", "names": ["window"], "fields": [[dtype, sizes["window"], *row]], "parts": parts or {"window": sizes["window"]}}
    return {"kind": "tuple", "names": ["row"], "fields": [[dtype, *row]]}


def _head_of(path):
    """The head of a .npy, as far as it is one."""
    try:
        with urls.reading(path) if urls.is_url(path) else open(path, "rb") as file:
            begin = file.read(65536)
        size, at = (struct.unpack_from("<H", begin, 8)[0], 10) if begin[6:7] == b"\1" else \
            (struct.unpack_from("<I", begin, 8)[0], 12)
        head = ast.literal_eval(begin[at:at + size].decode("latin-1"))
        return head if isinstance(head["descr"], str) and isinstance(head["shape"], tuple) else None
    except ArgumentError:       # of a URL, which nothing here reads
        raise
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, struct.error):
        return None


def refuse_pipeline(pipeline: object, path: str) -> None:
    if pipeline is not None:
        size = f", and say the batch's size by batch_size={pipeline}" if isinstance(pipeline, int) else ""
        raise TransformError(f"{path} has rows of numbers, which go to the batch as they are: leave out the pipeline{size}")


def shaped(arrays: list, layout: dict[str, Any], as_: str | None) -> dict[str, Any] | None:
    """The views of a batch of tokens or windows; None: there are none of its arrays."""
    if layout["kind"] not in (*_NAMES, "tokens", "windows"):
        return None
    whole = arrays[0]
    if as_ == "dlpack":                   # cannot be cut here
        return {layout["names"][0]: whole}
    if "objective" in layout:
        return layout["objective"].shaped(whole, layout)
    if layout["kind"] == "windows":
        ends = itertools.accumulate(layout["parts"].values())
        return {name: whole[:, end - rows:end] for (name, rows), end in zip(layout["parts"].items(), ends)}
    if layout["kind"] in _NAMES:
        return {name: whole[:, row] for row, name in enumerate(_NAMES[layout["kind"]])}
    return {"input_ids": whole[:, :-1], "labels": whole[:, 1:]}
