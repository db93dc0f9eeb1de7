# SPDX-License-Identifier: Apache-2.0
"""tokenize(): texts into a file of tokens, which tokens() reads. The files are those of Megatron-LM's indexed data sets, byte for byte as its
preprocess_data.py writes them (IndexedDatasetBuilder, IndexedWriter).

The caller's process reads the source and hands out pieces (texts.py). Forked processes parse them and run the tokenizer, and return the
tokens as bytes, which the first one writes in the order of the pieces. Twice as many pieces as processes are under way, so memory is bounded,
but for a few bytes of each document. Files get their names when all of them are on the disk, and the .idx last: without it nothing is there.

Which tokens count for the loss, where that was said, is a file of its own beside them, a byte a token, so that other readers of the format
need know nothing of it."""

import array
import contextlib
import ctypes
import itertools
import multiprocessing
import multiprocessing.connection
import os
import re
import secrets
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import urls
from ..errors import ArgumentError, DatasetError, Error
from ..sources.tables import needs
from .texts import pieces_of

_U16, _I32 = ("H", "uint16", 8), ("i", "int32", 4)     # of array and struct, of NumPy, of the .idx
_MOST_U16 = 65500               # from so many tokens on Megatron-LM writes i32
_DOCUMENTS_AT_ONCE = 1 << 20     # of the .idx
_PR_SET_PDEATHSIG = 1
_GENERATION = re.compile(r"\{%-?\s*generation\b")


# ---- tokenizers ----


class Tokenizer(NamedTuple):
    """One of any library."""

    encode: Callable[[list], list]      # texts -> their tokens, with special ones as the tokenizer puts them
    bare: Callable[[list], list]        # the same without these: of what goes on behind other tokens
    vocabulary: int | None              # numbers of tokens are below
    end: int | None                     # the token behind a text
    chat: Any = None                    # what has apply_chat_template()


def _named_tokenizer(name):
    """By a name: tiktoken:ENCODING, bytes, a tokenizer.json, a .model of SentencePiece, or a folder or name that transformers knows."""
    try:
        if name == "bytes":
            return Tokenizer(_bytes, _bytes, 257, 256)
        if name.startswith("tiktoken:"):
            return needs("tiktoken", "a tokenizer of tiktoken").get_encoding(name.partition(":")[2])
        if name.endswith(".json"):
            return needs("tokenizers", "a tokenizer.json").Tokenizer.from_file(name)
        if name.endswith(".model"):
            return needs("sentencepiece", "a .model").SentencePieceProcessor(model_file=name)
        return needs("transformers", "a tokenizer by its name").AutoTokenizer.from_pretrained(name)
    except Error:
        raise
    except Exception as why:        # of these libraries
        raise ArgumentError(f"tokenizer {name!r} cannot be had: {why}") from why


def _bytes(texts):
    return [list(text.encode()) for text in texts]


def _id(tokenizer, *names):
    """An attribute's number, or what a method of that name says; None: it has none, or says that there is none."""
    for name in names:
        value = getattr(tokenizer, name, None)
        value = value() if callable(value) else value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _beyond(numbers):
    return max(numbers, default=-1) + 1


def tokenizer_of(given: Any) -> Tokenizer:
    """What is there of a library's tokenizer, told by its methods, so that none of them is imported."""
    if isinstance(given, (str, os.PathLike)):
        given = _named_tokenizer(os.fspath(given))
    if isinstance(given, Tokenizer):
        return given
    if callable(given) and hasattr(given, "convert_tokens_to_ids"):             # transformers
        def encode(texts, **more):
            return given(texts, verbose=False, return_attention_mask=False, **more)["input_ids"]
        return Tokenizer(encode, lambda texts: encode(texts, add_special_tokens=False), _beyond(given.get_vocab().values()),
                         _id(given, "eos_token_id"), given)
    if hasattr(given, "encode_batch") and hasattr(given, "token_to_id"):        # tokenizers
        return Tokenizer(lambda texts: [found.ids for found in given.encode_batch(texts)],
                         lambda texts: [found.ids for found in given.encode_batch(texts, add_special_tokens=False)],
                         _beyond(given.get_vocab().values()), None)
    if hasattr(given, "encode_ordinary_batch"):                                 # tiktoken
        def encode(texts):
            return given.encode_ordinary_batch(texts, num_threads=1)
        return Tokenizer(encode, encode, given.n_vocab, _id(given, "eot_token"))
    chat = given if hasattr(given, "apply_chat_template") else None
    if hasattr(given, "encode") and not callable(given):                        # SentencePiece and who is like it
        def encode(texts):
            return [given.encode(text) for text in texts]
        return Tokenizer(encode, encode, _id(given, "get_piece_size", "n_vocab", "vocab_size"), _id(given, "eos_id", "eos_token_id"), chat)
    if not callable(given):
        raise ArgumentError(f"tokenizer is a {type(given).__name__}: give a function text -> ids, a tokenizer of transformers, tokenizers,"
                            " tiktoken or SentencePiece, or its name")

    def encode(texts):
        return [given(text) for text in texts]
    return Tokenizer(encode, encode, _id(given, "vocab_size"), _id(given, "eos_token_id"), chat)


# ---- rows to tokens ----


class Made(NamedTuple):
    """What a piece became."""

    sizes: array.array          # of each row
    tokens: bytes
    loss: bytes | None          # of each token


class _Problem(Exception):
    """Of one row of a piece."""

    def __init__(self, at, why):
        super().__init__(at, why)
        self.at, self.why = at, why


def _member(row, name):
    if not isinstance(row, Mapping):
        raise DatasetError(f"is a {type(row).__name__}, and {name!r} is a member of a dict")
    if name not in row:
        raise DatasetError(f"has no member {name!r}; there are: {', '.join(map(str, row)) or 'none'}")
    return row[name]


def _text(row, name):
    value = row if isinstance(row, str) else _member(row, name)
    if not isinstance(value, str):
        raise DatasetError(f"{name!r} is a {type(value).__name__}, no text")
    return value


class Maker:
    """Pieces to tokens; a copy is in each process. The forms of rows are methods: rows -> (ids, mask or None) of each."""

    def __init__(self, tokenizer: Tokenizer, form: str, names: tuple, render: Any, append: int | None, kind: tuple, vocabulary: int | None):
        self.tokenizer, self.form, self.names, self.render, self.append = tokenizer, form, names, render, append
        self.code, self.dtype, _ = kind
        self.most = min(vocabulary or 1 << 31, 1 << 31)
        self.has_loss = form != "text"

    def made(self, piece) -> Made:
        rows, places = [], []
        try:
            for at, row in piece.each():
                rows.append(row)
                places.append(at)
            return self._packed(self._all(rows))
        except _Problem as problem:
            at, why = problem.at, problem.why
            told = str(why) if isinstance(why, Error) else f"{type(why).__name__}: {why}"
            raise DatasetError(f"{piece.where(places[at])}: {told}") from None

    def _all(self, rows):
        """Together, as tokenizers are faster so; what fails is looked for one by one. Panics of those in Rust are no Exception."""
        form = getattr(self, f"_of_{self.form}")
        try:
            return form(rows)
        except KeyboardInterrupt:
            raise
        except BaseException as all_why:
            for at, row in enumerate(rows):
                try:
                    form([row])
                except KeyboardInterrupt:
                    raise
                except BaseException as why:
                    raise _Problem(at, why) from None
            raise _Problem(0, all_why) from None

    def _ended(self, ids):
        """With the token behind it; which some tokenizers put there themselves."""
        ids = list(ids)
        return ids if self.append is None or not ids or ids[-1] == self.append else [*ids, self.append]

    def _of_text(self, rows):
        ids = self.tokenizer.encode([_text(row, self.names[0]) for row in rows])
        return [(self._ended(each), None) for each in ids]

    def _of_pair(self, rows):
        prompts, completions = ([_text(_member(row, name), name) for row in rows] for name in self.names)
        found = []
        for prompt, completion in zip(self.tokenizer.encode(prompts), self.tokenizer.bare(completions), strict=True):
            prompt, completion = list(prompt), list(completion)
            if prompt and prompt[-1] == self.tokenizer.end:
                prompt.pop()
            if self.append is not None and completion[-1:] != [self.append]:
                completion.append(self.append)
            found.append((prompt + completion, [0] * len(prompt) + [1] * len(completion)))
        return found

    def _of_chat(self, rows):
        return [self._chat(_member(row, self.names[0])) for row in rows]

    def _chat(self, messages):
        chat = self.tokenizer.chat
        template = chat.get_chat_template() if hasattr(chat, "get_chat_template") else chat.chat_template
        if _GENERATION.search(template if isinstance(template, str) else ""):
            found = chat.apply_chat_template(messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
            return found["input_ids"], found["assistant_masks"]

        def rendered(count, **more):
            return list(chat.apply_chat_template(messages[:count], tokenize=True, return_dict=True, **more)["input_ids"])
        ids = rendered(len(messages))
        mask = [0] * len(ids)
        for at, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before, behind = rendered(at, add_generation_prompt=True) if at else [], rendered(at + 1)
            if ids[:len(before)] != before or ids[:len(behind)] != behind:
                raise DatasetError(f"of message {at} the chat template makes other tokens when more messages follow, so which are the assistant's"
                                   " is not known: mark them in the template, with {% generation %} and {% endgeneration %}, or give render=")
            mask[len(before):len(behind)] = [1] * (len(behind) - len(before))
        return ids, mask

    def _of_render(self, rows):
        return [self._rendered(self.render(row)) for row in rows]

    def _rendered(self, found):
        if not isinstance(found, tuple) or len(found) != 2:
            raise ArgumentError(f"render gave a {type(found).__name__}: two values, the tokens and of each whether it counts for the loss")
        return found

    # ---- to bytes ----

    def _packed(self, found):
        import numpy
        sizes, tokens, loss = array.array("i"), array.array("q"), bytearray()
        for at, (ids, mask) in enumerate(found):
            before = len(tokens)
            try:
                tokens.extend(ids)
                sizes.append(len(tokens) - before)
                loss += b"" if mask is None else bytes(map(bool, mask))
            except (TypeError, OverflowError) as why:
                raise _Problem(at, ArgumentError(f"the tokenizer gave no list of whole numbers, or more than 2^31 - 1: {why}")) from None
            if self.has_loss and len(loss) != len(tokens):
                raise _Problem(at, ArgumentError(f"there are {sizes[-1]} tokens, and of {len(loss) - before} it is said whether they count"))
        numbers = numpy.frombuffer(tokens, "i8") if tokens else numpy.zeros(0, "i8")
        wrong = numpy.flatnonzero((numbers < 0) | (numbers >= self.most))
        if len(wrong):
            raise _Problem(int(numpy.searchsorted(numpy.cumsum(sizes), wrong[0], "right")), DatasetError(
                f"it has the token {numbers[wrong[0]]}, and they are from 0 to {self.most - 1}: give vocabulary=, or another tokenizer"))
        return Made(sizes, numbers.astype(self.dtype).tobytes(), bytes(loss) if self.has_loss else None)


# ---- processes ----


def _serve(maker, parent, asked):
    """Of a forked process: it gets a piece, and gives back what it became, until it is killed."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # the first process ends the others
    while True:
        piece = asked.recv()
        try:
            made = maker.made(piece)
        except Exception as why:
            made = why if isinstance(why, Error) else DatasetError(f"{piece.where(0)}: {type(why).__name__}: {why}")
        asked.send(made)


@contextlib.contextmanager
def _forking():
    """Libraries of tokenizers have threads, and want to know; Python warns of them, also of those that only sleep."""
    name = "TOKENIZERS_PARALLELISM"
    said = os.environ.get(name)
    os.environ[name] = "false"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
            yield
    finally:
        del os.environ[name]
        if said is not None:
            os.environ[name] = said


class _Crew:
    """Forked processes. Each has one piece at a time, so that it waits for the next one, or we for it, and never both are writing."""

    def __init__(self):
        self.processes, self.idle, self.busy = [], [], {}       # connections; of those with a piece its number

    def begin(self, maker, count):
        context = multiprocessing.get_context("fork")
        try:
            with _forking():
                for _ in range(count):
                    ours, theirs = context.Pipe()
                    self.idle.append(ours)
                    with theirs:
                        process = context.Process(target=_serve, args=(maker, os.getpid(), theirs))
                        process.start()
                    self.processes.append(process)
        except OSError as why:
            raise DatasetError(f"no process can be begun that runs the tokenizer: {why.strerror}; give fewer processes=") from None

    def give(self, number, piece):
        connection = self.idle.pop()
        connection.send(piece)
        self.busy[connection] = number

    def take(self):
        """Of those that are done the number, and what it became, or why not."""
        for connection in multiprocessing.connection.wait(list(self.busy)):
            made = connection.recv()
            yield self.busy.pop(connection), made
            self.idle.append(connection)

    def end(self):
        """At once, whatever they do."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        for connection in (*self.idle, *self.busy):
            connection.close()


@contextlib.contextmanager
def _answered():
    try:
        yield
    except (EOFError, OSError):
        raise DatasetError("a process that runs the tokenizer was killed, or ended; if memory is short, give fewer processes=") from None


def _results(pieces, maker, processes):
    """What each piece became, in their order."""
    if processes == 1:
        yield from map(maker.made, pieces)
        return
    crew, made, numbered = _Crew(), {}, enumerate(pieces)
    try:
        crew.begin(maker, processes)
        piece = next(numbered, None)
        for number in itertools.count():
            while number not in made:
                while piece and crew.idle and piece[0] < number + 2 * processes:
                    with _answered():
                        crew.give(*piece)
                    piece = next(numbered, None)
                if not crew.busy:
                    return
                with _answered():
                    made.update(crew.take())
            found = made.pop(number)
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        crew.end()


# ---- the files ----


class _Progress:
    """On a terminal a line, twice a second."""

    def __init__(self):
        self.is_shown = sys.stderr is not None and sys.stderr.isatty()
        self.began = self.told = time.monotonic()

    def tell(self, documents, tokens):
        now = time.monotonic()
        if self.is_shown and now - self.told >= 0.5:
            self.told = now
            print(f"\r{documents:,} documents, {tokens:,} tokens, {tokens / (now - self.began):,.0f} tokens/s\033[K", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.is_shown and self.told != self.began:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Files(contextlib.ExitStack):
    """Files that get their names together; those that do not are removed."""

    def __init__(self, prefix):
        super().__init__()
        self.prefix, self.made = prefix, {}

    def new(self, suffix):
        folder, name = os.path.split(self.prefix)
        file = self.enter_context(open(os.path.join(folder, f".{name}{suffix}.{secrets.token_hex(8)}"), "xb"))
        self.callback(lambda: os.path.exists(file.name) and os.unlink(file.name))
        self.made[suffix] = file
        return file

    def name(self):
        """The .idx goes first and comes last, so that never one of other files is there."""
        for file in self.made.values():
            file.flush()
            os.fsync(file.fileno())
        for suffix in (".idx", ".loss"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.prefix + suffix)
        for suffix in sorted(self.made, key=lambda suffix: suffix == ".idx"):
            os.rename(self.made[suffix].name, self.prefix + suffix)
        folder = os.open(os.path.dirname(self.prefix), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write_idx(file, sizes, kind):
    """sizes: of each document, 0 where there is none of its tokens: such a one has no sequence."""
    import numpy
    sizes = numpy.frombuffer(sizes, "i4")
    parts = [sizes[at:at + _DOCUMENTS_AT_ONCE] for at in range(0, len(sizes), _DOCUMENTS_AT_ONCE)]
    file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, kind[2], int(numpy.count_nonzero(sizes)), len(sizes) + 1))
    for part in parts:
        file.write(part[part > 0].astype("<i4").tobytes())
    end = 0
    for part in parts:
        ends = end + numpy.cumsum(part, dtype="i8")
        file.write(((ends - part)[part > 0] * struct.calcsize(kind[0])).astype("<i8").tobytes())
        end = ends[-1]
    sequences = 0
    file.write(struct.pack("<q", 0))
    for part in parts:
        ends = sequences + numpy.cumsum(part > 0, dtype="i8")
        file.write(ends.astype("<i8").tobytes())
        sequences = ends[-1]


class Written(NamedTuple):
    """What came of it."""

    path: str
    documents: int
    tokens: int
    counted: int | None     # of these for the loss
    dtype: str


class _OfSource(Exception):
    """An OSError of an iterator, as of a network: nothing is wrong with the files that are written."""


def _apart(pieces):
    try:
        yield from pieces
    except OSError as why:
        raise why if isinstance(why, Error) else _OfSource(why) from None


def write(pieces: Any, maker: Maker, prefix: str, kind: tuple, processes: int) -> Written:
    sizes, total, counted, progress = array.array("i"), 0, 0, _Progress()
    try:
        with _Files(prefix) as files, contextlib.closing(_results(_apart(pieces), maker, processes)) as results:
            bin_ = files.new(".bin")
            loss = files.new(".loss") if maker.has_loss else None
            for made in results:
                sizes.extend(made.sizes)
                bin_.write(made.tokens)
                if loss:
                    loss.write(made.loss)
                    counted += sum(made.loss)
                total += sum(made.sizes)
                progress.tell(len(sizes), total)
            if total == 0:
                raise DatasetError("the source has no text: nothing is written")
            if loss and not counted:
                raise DatasetError("no token of the source counts for the loss: nothing is written")
            _write_idx(files.new(".idx"), sizes, kind)
            files.name()
    except _OfSource as of:
        raise of.args[0] from None
    except OSError as why:
        if isinstance(why, Error):
            raise
        raise DatasetError(f"{prefix}.bin cannot be written: {why.strerror or why}") from why
    finally:
        progress.end()
    return Written(f"{prefix}.bin", len(sizes), total, counted if maker.has_loss else None, kind[1])


# ---- what the user says ----


def _form_of(text, prompt, completion, messages, render):
    """The form's name, and the members that it needs (None: all)."""
    if (prompt is None) != (completion is None):
        raise ArgumentError("prompt= and completion= go together: the members of a row that are asked and answered")
    given = [("pair", (prompt, completion))] * (prompt is not None) + [("chat", (messages,))] * (messages is not None) + [("render", None)] * (
        render is not None)
    if len(given) > 1:
        raise ArgumentError("of prompt= with completion=, messages= and render= one says what a row's tokens are")
    if render is not None and not callable(render):
        raise ArgumentError(f"render={render!r}: a function of a row that returns its tokens, and of each whether it counts")
    form, names = given[0] if given else ("text", (text,))
    for name in names or ():
        if not isinstance(name, str):
            raise ArgumentError(f"{name!r} is no name of a member of a row")
    return form, names


def _append_of(append, form, tokenizer):
    if append != "eos":
        if append is not None and (isinstance(append, bool) or not isinstance(append, int) or append < 0):
            raise ArgumentError(f"append={append!r}: the number of a token, None, or \"eos\", the tokenizer's own")
        return append
    if form in ("chat", "render"):
        return None
    if tokenizer.end is None:
        raise ArgumentError("the tokenizer does not say which token ends a text: give append=ID, or append=None for none")
    return tokenizer.end


def _prefix_of(out, overwrite):
    if not isinstance(out, (str, os.PathLike)) or not os.fspath(out):
        raise ArgumentError(f"out={out!r}: PREFIX of PREFIX.bin and PREFIX.idx, a str or a pathlib.Path")
    prefix = urls.local(out, "tokenize()").removesuffix(".bin")
    if os.fspath(out).endswith(os.sep) or not os.path.isdir(os.path.dirname(prefix)):
        raise ArgumentError(f"out={os.fspath(out)!r}: PREFIX of PREFIX.bin and PREFIX.idx, in a folder that is there")
    there = [prefix + suffix for suffix in (".bin", ".idx", ".loss") if os.path.lexists(prefix + suffix)]
    if there and not overwrite:
        raise ArgumentError(f"{there[0]} is there: remove it, or give overwrite=True (--overwrite)")
    for path in filter(os.path.isdir, there):
        raise ArgumentError(f"{path} is a folder: remove it, or give another out")
    return prefix


def tokenized(source: Any, tokenizer: Any, out: str | os.PathLike, *, text: str = "text", prompt: str | None = None, completion: str | None = None,
              messages: str | None = None, render: Callable[[Any], tuple] | None = None, append: int | str | None = "eos",
              vocabulary: int | None = None, lines: bool = False, processes: int | None = None, overwrite: bool = False) -> Written:
    """As tokenize(), which says less of what was written."""
    needs("numpy", "tokenize()")
    form, names = _form_of(text, prompt, completion, messages, render)
    for what, number in (("processes", processes), ("vocabulary", vocabulary)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ArgumentError(f"{what}={number!r}: a whole number from 1 on")
    prefix = _prefix_of(out, overwrite)
    pieces = pieces_of(source, names, lines)
    found = Tokenizer(None, None, None, None) if tokenizer is None and form == "render" else tokenizer_of(tokenizer)
    if form == "chat" and found.chat is None:
        raise ArgumentError("messages= needs a tokenizer with apply_chat_template(), as those of transformers")
    if form == "chat" and not getattr(found.chat, "chat_template", None):
        raise ArgumentError("the tokenizer has no chat_template: set one, or give render=")
    append = _append_of(append, form, found)
    vocabulary = vocabulary or found.vocabulary
    if append is not None and vocabulary is not None:
        vocabulary = max(vocabulary, append + 1)
    kind = _U16 if vocabulary is not None and vocabulary < _MOST_U16 else _I32
    maker = Maker(found, form, names, render, append, kind, vocabulary)
    return write(pieces, maker, prefix, kind, processes or len(os.sched_getaffinity(0)))


def tokenize(source: Any, tokenizer: Any, out: str | os.PathLike, *, text: str = "text", prompt: str | None = None, completion: str | None = None,
             messages: str | None = None, render: Callable[[Any], tuple] | None = None, append: int | str | None = "eos",
             vocabulary: int | None = None, lines: bool = False, processes: int | None = None, overwrite: bool = False) -> str:
    """Texts into a file of tokens, for tokens(). Returns its path, PREFIX.bin. As a program: python -m oneaccess.tokenize.

        corpus = oa.tokenize("c4/*.json.gz", transformers.AutoTokenizer.from_pretrained("gpt2"), "corpus")
        loader = oa.Loader(oa.tokens(corpus, seq_len=2048, pack=True), batch_size=16)

        chats = oa.tokenize("chats.jsonl", tokenizer, "chats", messages="messages")
        loader = oa.Loader(oa.tokens(chats, seq_len=2048, pack=True, loss=True), batch_size=16)

    source: a path, a folder, a pattern, or a list of these, of .jsonl, .ndjson and .json (an object a line), .txt and .parquet files, the first
        four also as .gz, .bz2, .xz and .zst; or a data set or an iterator whose items are texts or dicts, as one split of Hugging Face's
        datasets. A .txt is one document.
    tokenizer: one of transformers, tokenizers, tiktoken or SentencePiece; a function of a text that returns its tokens; or a name: of
        transformers, "tiktoken:ENCODING", a tokenizer.json, a .model of SentencePiece, "bytes" (UTF-8, and 256 at the end).
    out: PREFIX of PREFIX.bin and PREFIX.idx, Megatron-LM's format: uint16 where the vocabulary is below 65,500, else int32.
    text: the member of a row that is tokenized.
    append: the token behind each text or completion. "eos": the tokenizer's own, of messages and render none. None: none.
    vocabulary: how many tokens there are, if the tokenizer does not say it; of a function int32 is written without it.
    lines: each line of a .txt that is not blank is a document.
    processes: how many run the tokenizer. Default: as many as there are CPUs. They are forked. 1: this process.
    overwrite: files of this name may be there.

    For fine-tuning PREFIX.loss says, a byte for each token, whether it counts for the loss (1 or 0). Rows are one of
    prompt, completion: two members that are texts. They are tokenized each by itself; the completion counts, with the token behind it.
    messages: the member with a chat, for apply_chat_template(). The assistant's messages count: as the template marks them with
        {% generation %}, or else what each adds to the messages before it, up to the next one.
    render: a function of a row that returns two lists, its tokens and whether each counts. tokenizer may be None.

    Documents are in the order of the source, whatever the number of processes. Memory is bounded, but for a few bytes of each document, and a
    .txt or row that is long. An error names the file and line. The files get their names when all is on the disk: a run that fails leaves
    none of them, and one that is killed at most hidden ones, .PREFIX.bin.* and their like, to be removed.
    """
    return tokenized(source, tokenizer, out, text=text, prompt=prompt, completion=completion, messages=messages, render=render, append=append,
                     vocabulary=vocabulary, lines=lines, processes=processes, overwrite=overwrite).path
