# SPDX-License-Identifier: Apache-2.0
"""What a language model is to learn of windows of tokens, where that is not the next token: objective= of oneaccess.tokens().

The windows are read once for all jobs, whatever each of them learns of these; what is drawn and moved of a batch is done by the job,
as it takes it (oa_open(3), doc/decisions/130-batch-ops.md)."""

import array
import hashlib
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ArgumentError

_MASKED, _SPANS, _MIDDLE = 1, 2, 3      # enum oa_objective_kind
_SPECIAL, _CONTINUES = 1, 2             # enum oa_token_what
_MOST = 1 << 32


def token(name: str, number: Any) -> int:
    """Of any type of whole numbers, NumPy's too."""
    try:
        made = operator.index(number)
    except TypeError:
        made = -1
    if made < 0 or isinstance(number, bool):
        raise ArgumentError(f"{name}={number!r}: a token is a whole number from 0")
    return made


def _share(name, value, has_zero=True):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1 or not (value or has_zero):
        raise ArgumentError(f"{name}={value!r}: a share, {'from' if has_zero else 'above'} 0 to 1")
    return float(value)


def _end(number):
    return -1 if number is None else token("end_id", number)


class Objective:
    """What objective= takes."""

    def raw(self, seq_len: int, pack: bool) -> int:
        """Tokens of a window for samples of seq_len."""
        return seq_len

    def request(self) -> dict[str, Any]:
        """As options of a stream."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__} {hashlib.sha256(repr(sorted(self.request().items())).encode()).hexdigest()[:8]}"

    def shaped(self, whole: Any, layout: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a batch, views. layout: of the windows."""
        raise NotImplementedError


_PACKED = ("input_ids", "labels", "position_ids", "doc_ids")


def _rows(whole):
    return {name: whole[:, row] for row, name in zip(range(whole.shape[1]), _PACKED)}


@dataclass(frozen=True, eq=False, repr=False)
class MaskedLM(Objective):
    """Masked language modelling, as of BERT: by the rules of transformers' DataCollatorForLanguageModeling.

        data = oa.tokens("corpus", 512, objective=oa.MaskedLM(tokenizer.mask_token_id, len(tokenizer), special_ids=tokenizer.all_special_ids))
        for batch in oa.Loader(data, batch_size=32): model(input_ids=batch["input_ids"], labels=batch["labels"])

    Each token is chosen with the same probability, by itself; of the chosen ones the share ``mask`` becomes mask_token_id, the
    share ``random`` any token of the vocabulary, and the rest stays. ``labels`` are the chosen tokens, and -100 elsewhere.

    mask_token_id, vocab_size: of the tokenizer.
    special_ids: tokens that are never chosen, such as tokenizer.all_special_ids. Padding of packed samples never is.
    continues: for whole words: of each token of the vocabulary, whether it continues the word of the token before it, as an array of
        bools; words(tokenizer) makes one. Each word is then chosen with the probability, and all of its tokens are.
    """

    mask_token_id: int
    vocab_size: int
    probability: float = 0.15
    mask: float = 0.8
    random: float = 0.1
    special_ids: Iterable[int] = ()
    continues: Any = None

    def __post_init__(self):
        token("mask_token_id", self.mask_token_id)
        if isinstance(self.vocab_size, bool) or not isinstance(self.vocab_size, int) or not 1 <= self.vocab_size <= _MOST:
            raise ArgumentError(f"vocab_size={self.vocab_size!r}: how many tokens there are")
        for name in "probability", "mask", "random":
            _share(name, getattr(self, name))
        if self.mask + self.random > 1 + 1e-9:
            raise ArgumentError(f"mask={self.mask} and random={self.random}: together at most 1")
        object.__setattr__(self, "special_ids", tuple(token("special_ids", number) for number in self.special_ids))
        object.__setattr__(self, "_what", self._table())

    def _table(self):
        """A byte for each token up to the last of which there is something to say."""
        continues = [] if self.continues is None else self.continues
        if len(continues) > self.vocab_size or any(number >= _MOST for number in self.special_ids):
            raise ArgumentError(f"continues has {len(continues):,} tokens, and special_ids go up to {max(self.special_ids, default=0):,}: the vocabulary has"
                                f" {self.vocab_size:,}")
        what = bytearray(max(len(continues), max(self.special_ids, default=-1) + 1))
        for number, goes_on in enumerate(continues):
            what[number] = _CONTINUES if goes_on else 0
        for number in self.special_ids:
            what[number] |= _SPECIAL
        return bytes(what)

    def request(self):
        return {"kind": _MASKED, "probability": float(self.probability), "mask": float(self.mask), "random": float(self.random),
                "mask_token": self.mask_token_id, "vocabulary": self.vocab_size, "what": self._what or None}

    def shaped(self, whole, layout):
        return _rows(whole)


def words(tokenizer: Any) -> list[bool]:
    """Of each token of a tokenizer of transformers or tokenizers, whether it continues the word of the token before it: for continues= of MaskedLM.

    By how its vocabulary is written: "##" begins those that do (WordPiece, as of BERT), or "Ġ" (bytes, as of GPT-2 and ModernBERT) or "▁"
    (SentencePiece, as of XLM-R) those that do not. With the last two, a comma behind a word is of that word.
    """
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    made = [False] * (max(vocabulary.values(), default=-1) + 1)
    begins = None if any(text.startswith("##") and len(text) > 2 for text in vocabulary) else \
        next((sign for sign in "Ġ▁" if any(text.startswith(sign) for text in vocabulary)), "")
    if begins == "":
        raise ArgumentError("the tokenizer's vocabulary has no sign of words (##, Ġ or ▁): give continues= a list of bools, one for each token")
    special = set(getattr(tokenizer, "all_special_tokens", ()))
    for text, number in vocabulary.items():
        made[number] = text not in special and (text.startswith("##") if begins is None else not text.startswith((begins, "Ċ", "<", "[")))
    return made


@dataclass(frozen=True, eq=False, repr=False)
class SpanCorruption(Objective):
    """Span corruption, as of T5: by the rules of t5's random_spans_noise_mask, as transformers' FlaxDataCollatorForT5MLM has them.

        objective = oa.SpanCorruption(sentinel_ids=range(32099, 31999, -1), end_id=1)        # <extra_id_0> to <extra_id_99>, </s>
        for batch in oa.Loader(oa.tokens("corpus", 512, objective=objective), batch_size=32):
            model(input_ids=batch["input_ids"], labels=batch["labels"])

    A share of a window's tokens is taken out in spans; ``input_ids`` have a sentinel for each, ``labels`` the sentinels with
    what was taken out behind them. Both have the same length in all samples: seq_len of tokens() is that of ``input_ids``, and
    lengths(seq_len) says how many tokens a window has for it, and how many ``labels`` have: 568 and 114 for 512. The spans' lengths are drawn.

    sentinel_ids: for the first span, the second, ...: as many as there are spans, or more.
    end_id: the token behind inputs and targets; None: none.
    density, mean_span: the share of tokens that is taken out, and how long a span is on average.
    """

    sentinel_ids: Iterable[int]
    end_id: int | None = None
    density: float = 0.15
    mean_span: float = 3.0

    def __post_init__(self):
        object.__setattr__(self, "sentinel_ids", tuple(token("sentinel_ids", number) for number in self.sentinel_ids))
        _end(self.end_id)
        _share("density", self.density, has_zero=False)
        if isinstance(self.mean_span, bool) or not isinstance(self.mean_span, (int, float)) or not 1 <= self.mean_span < 1 << 31:
            raise ArgumentError(f"mean_span={self.mean_span!r}: the mean length of a span, from 1 token on")
        if not self.sentinel_ids:
            raise ArgumentError("sentinel_ids is empty: give a token for each span")

    def _both(self, window):
        """The lengths of inputs and targets; spans."""
        taken = min(max(round(window * self.density), 1), window - 1)
        spans = max(round(taken / self.mean_span), 1)
        end = self.end_id is not None
        return window - taken + spans + end, taken + spans + end, taken, spans

    def lengths(self, seq_len: int) -> tuple[int, int]:
        """(tokens of a window, tokens of ``labels``) for inputs of seq_len: compute_input_and_target_lengths() of t5."""
        window = max(seq_len - 1, 2)
        while self._both(window + 1)[0] <= seq_len:
            window += 1
        inputs, targets, taken, spans = self._both(window)
        if self.density == 0.5 and targets > inputs:
            window -= 1
            inputs, targets, taken, spans = self._both(window)
        if inputs > seq_len or spans > min(taken, window - taken):
            raise ArgumentError(f"seq_len={seq_len} has no room for spans of {self.mean_span:g} tokens that are {self.density:g} of all: take longer samples, longer spans,"
                                " or fewer tokens out")
        if spans > len(self.sentinel_ids):
            raise ArgumentError(f"seq_len={seq_len} has {spans} spans, and there are {len(self.sentinel_ids)} sentinel_ids: give one for each")
        return window, targets

    def raw(self, seq_len, pack):
        if pack:
            raise ArgumentError("SpanCorruption takes windows, across documents, as T5 does: leave pack out")
        return self.lengths(seq_len)[0]

    def request(self):
        return {"kind": _SPANS, "density": float(self.density), "mean_span": float(self.mean_span), "end": _end(self.end_id),
                "sentinels": array.array("q", self.sentinel_ids)}

    def shaped(self, whole, layout):
        inputs = self._both(layout["fields"][0][1] - 1)[0]
        return {"input_ids": whole[:, :inputs], "labels": whole[:, inputs:]}


@dataclass(frozen=True, eq=False, repr=False)
class FillInMiddle(Objective):
    """Fill in the middle, as of code models: by the rules of bigcode's Megatron-LM, with cuts between tokens.

        objective = oa.FillInMiddle(prefix_id, middle_id, suffix_id, end_id=tokenizer.eos_token_id)
        data = oa.tokens("code", 2048, pack=True, objective=objective)

    Of the documents the share ``rate`` is cut at two places, into prefix, middle and suffix, and becomes prefix_id prefix suffix_id suffix middle_id
    middle (PSM), or, of these the share ``spm_rate``, prefix_id suffix_id suffix middle_id prefix middle (SPM). A model learns the
    next token of it: ``labels`` are as without an objective.

    With pack=True each document's part keeps its place and length: its suffix loses the three tokens, and one with a shorter suffix stays as it is. In
    windows documents grow, and what is too much at the end of the window is cut off.

    prefix_id, middle_id, suffix_id: the tokenizer's sentinels.
    end_id: the token at a document's end, which stays there. In windows it says where documents end; None: a window is one.
    """

    prefix_id: int
    middle_id: int
    suffix_id: int
    end_id: int | None = None
    rate: float = 0.5
    spm_rate: float = 0.5

    def __post_init__(self):
        for name in "prefix_id", "middle_id", "suffix_id":
            token(name, getattr(self, name))
        _end(self.end_id)
        _share("rate", self.rate, has_zero=False)
        _share("spm_rate", self.spm_rate)

    def request(self):
        return {"kind": _MIDDLE, "rate": float(self.rate), "swapped": float(self.spm_rate), "prefix": self.prefix_id, "middle": self.middle_id,
                "suffix": self.suffix_id, "end": _end(self.end_id)}

    def shaped(self, whole, layout):
        return _rows(whole) if layout["kind"] == "packed" else {"input_ids": whole[:, :-1], "labels": whole[:, 1:]}


def checked(objective: Any, loss: bool) -> None:
    """Beside the other arguments of tokens()."""
    if not isinstance(objective, Objective):
        raise ArgumentError(f"objective={objective!r}: give an oa.MaskedLM, SpanCorruption or FillInMiddle")
    if loss:
        raise ArgumentError(f"loss=True says which next tokens count, and {type(objective).__name__} says what is learned itself: leave one of them out")
