# SPDX-License-Identifier: Apache-2.0
"""tokenize(): texts of all kinds of sources, by a tokenizer of bytes, into files that tokens() and Megatron-LM read."""

import bz2
import contextlib
import gzip
import importlib
import importlib.util
import itertools
import json
import lzma
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import numpy
import oneaccess as oa
import support

END = 256
PATIENCE = 300       # with what hangs


def has(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def texts_of(count, seed=1):
    draw = random.Random(seed)
    return ["".join(draw.choices("abc äß\n€😀", k=draw.randrange(0, 40))) for _ in range(count)]


def wanted(texts, end=(END,)):
    """Each text's tokens; one without any is a document without a sequence."""
    return [[*text.encode(), *end] if text else [] for text in texts]


def idx_of(sizes, token, code):
    """As preprocess_data.py of Megatron-LM writes it."""
    ends = [0, *itertools.accumulate(size > 0 for size in sizes)]
    sizes = [size for size in sizes if size]
    starts = [token * start for start in itertools.accumulate(sizes, initial=0)][:-1]
    return b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sizes), len(ends)) + struct.pack(
        f"<{len(sizes)}i{len(sizes)}q{len(ends)}q", *sizes, *starts, *ends)


class Case(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def jsonl(self, rows, name="a.jsonl"):
        path = self.work / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def check(self, found, documents, dtype="u2"):
        path = pathlib.Path(found)
        self.assertEqual(path.suffix, ".bin")
        self.assertEqual(numpy.fromfile(path, dtype).tolist(), [token for document in documents for token in document])
        self.assertEqual(path.with_suffix(".idx").read_bytes(), idx_of([len(document) for document in documents], *{"u2": (2, 8), "i4": (4, 4)}[dtype]))

    def only(self, *names):
        self.assertEqual(sorted(os.listdir(self.work)), sorted(names))

    def fails(self, why, source, tokenizer="bytes", error=oa.errors.DatasetError, **options):
        """In this process and in others; nothing is left."""
        there = sorted(os.listdir(self.work))
        for processes in (1, 2):
            with self.assertRaisesRegex(error, why):
                oa.tokenize(source() if callable(source) else source, tokenizer, self.work / "failed", processes=processes, **options)
            self.only(*there)


class Sources(Case):
    def test_jsonl_with_any_number_of_processes(self):
        texts = texts_of(5000)
        path = self.jsonl({"text": text, "other": [1]} for text in texts)
        for processes in (1, 2, 3, None):
            self.check(oa.tokenize(path, "bytes", self.work / f"out-{processes}", processes=processes), wanted(texts))

    def test_compressed(self):
        texts = texts_of(300)
        plain = self.jsonl({"text": text} for text in texts).read_bytes()
        half = plain.index(b"\n", len(plain) // 2) + 1
        packed = {"gz": gzip.compress(plain[:half]) + gzip.compress(plain[half:]), "bz2": bz2.compress(plain), "xz": lzma.compress(plain)}
        for suffix, data in packed.items():
            path = self.work / f"b.json.{suffix}"
            path.write_bytes(data)
            self.check(oa.tokenize(path, "bytes", self.work / suffix), wanted(texts))
            path.write_bytes(data[:-20])
            self.fails(f"b.json.{suffix} cannot be read", path)

    def test_zst(self):
        if has("compression.zstd"):
            from compression import zstd
        elif has("zstandard"):
            import zstandard as zstd
        else:
            path = self.work / "a.jsonl.zst"
            path.write_bytes(b"")
            self.fails("pip install zstandard", path, error=oa.errors.ArgumentError)
            self.skipTest("zstandard is not installed: not tested: .zst")
        texts = texts_of(3000)
        plain = self.jsonl({"text": text} for text in texts).read_bytes()
        half = plain.index(b"\n", len(plain) // 2) + 1
        path = self.work / "b.jsonl.zst"
        data = zstd.compress(plain[:half]) + zstd.compress(plain[half:])
        path.write_bytes(data)
        self.check(oa.tokenize(path, "bytes", self.work / "zst"), wanted(texts))
        path.write_bytes(data[:-20])
        self.fails("b.jsonl.zst cannot be read: the last frame is cut off", path)
        path.write_bytes(b"no zst" * 9)
        self.fails("b.jsonl.zst cannot be read", path)

    def test_txt(self):
        path = self.work / "a.txt"
        path.write_bytes(b"\xef\xbb\xbfone\r\n\n  \ntwo ends here")
        self.check(oa.tokenize(path, "bytes", self.work / "file"), wanted([path.read_bytes().decode("utf-8-sig")]))
        self.check(oa.tokenize(path, "bytes", self.work / "lines", lines=True), wanted(["one", "two ends here"]))

    def test_folders_patterns_and_lists(self):
        (self.work / "d" / "e").mkdir(parents=True)
        for name, text in (("d/2.jsonl", "two"), ("d/1.jsonl", "one"), ("d/e/3.jsonl", "three")):
            self.jsonl([{"text": text}], name)
        self.check(oa.tokenize(self.work / "d", "bytes", self.work / "folder"), wanted(["one", "two", "three"]))
        self.check(oa.tokenize(str(self.work / "d/*.jsonl"), "bytes", self.work / "pattern"), wanted(["one", "two"]))
        self.check(oa.tokenize([self.work / "d/e/3.jsonl", str(self.work / "d/1.jsonl")], "bytes", self.work / "list"), wanted(["three", "one"]))

    def test_iterators_and_data_sets(self):
        texts = texts_of(2500)
        for name, source in (("texts", iter(texts)), ("dicts", ({"text": text, "other": object()} for text in texts))):
            self.check(oa.tokenize(source, "bytes", self.work / name, processes=2), wanted(texts))

        class Table:
            """As Hugging Face's; a picture beside the text would be decoded."""
            column_names = ("picture", "body")
            names = None

            def select_columns(self, names):
                self.names = names
                return self

            def __iter__(self):
                return iter([{"body": "a"}, {"body": "b"}] if self.names == ["body"] else [])
        self.check(oa.tokenize(Table(), "bytes", self.work / "table", text="body"), wanted(["a", "b"]))

    def test_parquet(self):
        if not has("pyarrow"):
            self.skipTest("pyarrow is not installed: not tested: Parquet")
        import pyarrow
        import pyarrow.parquet
        texts = texts_of(1500)
        path = self.work / "a.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"n": range(1500), "text": texts}), path, row_group_size=700)
        self.check(oa.tokenize(path, "bytes", self.work / "out", processes=2), wanted(texts))
        self.fails("a.parquet has no column 'body'; there are: n, text", path, text="body")
        self.fails("a.parquet: row 0: 'n' is a int, no text", path, text="n")

    def test_data_set_of_hugging_face(self):
        if not has("datasets"):
            self.skipTest("datasets is not installed: not tested: its data sets")
        import datasets
        texts = texts_of(600)
        rows = datasets.Dataset.from_dict({"text": texts, "n": list(range(600))})
        self.check(oa.tokenize(rows, "bytes", self.work / "map"), wanted(texts))
        self.check(oa.tokenize(rows.to_iterable_dataset(), "bytes", self.work / "stream"), wanted(texts))
        self.fails("one split of it", datasets.DatasetDict(train=rows), error=oa.errors.ArgumentError)

    def test_errors_say_where(self):
        good = [{"text": "a"}] * 1500
        for line, why in (('{"text": "a"', "no JSON"), ("[1]", "no JSON object"), ('{"body": "a"}', "has no member 'text'; there are: body"),
                          ('{"text": 7}', "'text' is a int, no text"), ('{"text": "\\ud800"}', "no JSON: .*surrogates")):
            path = self.jsonl(good)
            path.write_text(f"\n{path.read_text()}{line}\n")
            self.fails(f"a.jsonl:1502: {why}", path)
        path.write_bytes(b'{"text": "a"}\n{"text": "\xff"}\n')
        self.fails("a.jsonl:2: no UTF-8", path)

        def goes_away():
            yield "a"
            raise ConnectionError("the server has gone")
        self.fails("^the server has gone", goes_away, error=ConnectionError)
        self.fails("row 1: is a int", lambda: iter([{"text": "a"}, 7]))
        self.fails("has no text: nothing is written", self.jsonl([{"text": ""}]))
        self.fails("no text file is at .*iter", self.work / "none.jsonl")
        (self.work / "a.csv").write_text("text\na\n")
        self.fails("a.csv: texts are read from .jsonl", self.work / "a.csv", error=oa.errors.ArgumentError)
        self.fails("is a dict: give", {"train": []}, error=oa.errors.ArgumentError)

    def test_tokenizers_that_fail(self):
        path = self.jsonl({"text": str(number)} for number in range(2000))

        def raises(text):
            if text == "1234":
                raise ValueError("no such letter")
            return [1]
        self.fails("a.jsonl:1235: ValueError: no such letter", path, raises, append=None)
        for wrong, why in (([-1], "has the token -1, and they are from 0 to 99"), ([1, 100], "has the token 100"), ([1.5], "no list of whole numbers"),
                           ("ab", "no list of whole numbers"), ([1 << 70], "no list of whole numbers")):
            self.fails(f"a.jsonl:1235: .*{why}", path, lambda text, wrong=wrong: wrong if text == "1234" else numpy.array([1, 2]), append=None,
                       vocabulary=100)

        class Panic(BaseException):
            """As tokenizers in Rust raise it."""

        def panics(text):
            if text == "1234":
                raise Panic("a stack overflow")
            return [1]
        self.fails("a.jsonl:1235: Panic: a stack overflow", path, panics, append=None)
        self.fails("a.jsonl:1: it has the token 8589934592", path, lambda text: [1 << 33], append=None, vocabulary=1 << 34)
        self.fails("a.jsonl:1: it has the token 2147483648", path, lambda text: [1], append=1 << 31, vocabulary=9)

        def dies(text):
            os.kill(os.getpid(), signal.SIGKILL)
        with self.assertRaisesRegex(oa.errors.DatasetError, "was killed, or ended"):
            oa.tokenize(path, dies, self.work / "out", append=None, processes=2)
        self.only("a.jsonl")

    def test_a_process_that_dies_with_much_under_way(self):
        """More than a pipe holds is on its way to it then."""
        program = ("import os, signal, oneaccess as oa\n"
                   "def dies(text):\n"
                   "    if text > '5':\n"
                   "        os.kill(os.getpid(), signal.SIGKILL)\n"
                   "    return [1]\n"
                   f"oa.tokenize((str(row) * 600 for row in range(100000)), dies, {str(self.work / 'out')!r}, append=None, processes=2)\n")
        run = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False, timeout=PATIENCE)
        self.assertIn(b"was killed, or ended; if memory is short", run.stderr)
        self.only()

    def test_interrupted(self):
        """Also while a tokenizer does not return; no process stays."""
        program = ("import signal, time, oneaccess as oa\n"
                   "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                   "def stays(text):\n"
                   "    print('begun', flush=True)\n"
                   "    time.sleep(100000)\n"
                   f"oa.tokenize(map(str, range(5000)), stays, {str(self.work / 'out')!r}, append=None, processes=2)\n")
        run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            self.assertEqual(run.stdout.readline(), b"begun\n")
            os.killpg(run.pid, signal.SIGINT)
            run.communicate(timeout=PATIENCE)       # to the end of all
            self.assertEqual(run.returncode, -signal.SIGINT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
        self.only()

    def test_the_first_error_is_told(self):
        """Whichever process meets one first."""
        def fails(text):
            if text == "10":
                time.sleep(0.2)
            raise ValueError(text)
        rows = (text for first in ("10", "20", "30") for text in [first] * 1000)
        with self.assertRaisesRegex(oa.errors.DatasetError, "row 0: ValueError: 10"):
            oa.tokenize(rows, fails, self.work / "out", append=None, processes=3)


class Written(Case):
    def test_type_follows_the_vocabulary(self):
        for vocabulary, dtype in ((65499, "u2"), (65500, "i4"), (None, "i4")):
            found = oa.tokenize(iter(["ab", "c"]), lambda text: [ord(letter) for letter in text], self.work / f"of-{vocabulary}", append=7,
                                vocabulary=vocabulary)
            self.check(found, [[97, 98, 7], [99, 7]], dtype)

    def test_idx_in_parts(self):
        texts = texts_of(1000)
        for at_once in (1, 7, 1000, 1001):
            with unittest.mock.patch.object(oa.writing.tokenizing, "_DOCUMENTS_AT_ONCE", at_once):
                self.check(oa.tokenize(iter(texts), "bytes", self.work / "out", overwrite=True), wanted(texts))

    def test_what_is_behind_a_text(self):
        self.check(oa.tokenize(iter(["a", "b"]), "bytes", self.work / "none", append=None), [[97], [98]])
        self.check(oa.tokenize(iter(["a", "b"]), lambda text: [*text.encode(), 3], self.work / "twice", append=3, vocabulary=200), [[97, 3], [98, 3]])

    def test_arguments(self):
        def refused(why, source=("a",), tokenizer="bytes", **options):
            with self.assertRaisesRegex(oa.errors.ArgumentError, why):
                oa.tokenize(iter(source), tokenizer, options.pop("out", self.work / "out"), **options)
        refused("give append=ID, or append=None", tokenizer=len)
        refused("tokenizer is a int", tokenizer=3, append=None)
        refused("append=-1", append=-1)
        refused("processes=0", processes=0)
        refused("vocabulary='5'", vocabulary="5")
        refused("in a folder that is there", out=self.work / "no" / "out")
        refused("in a folder that is there", out=f"{self.work}/")
        for out in ("", b"out", None, 3):
            refused("a str or a pathlib.Path", out=out)
        refused("go together", prompt="a")
        refused("one says what", messages="a", render=len)
        refused("render=3", render=3)
        refused("needs a tokenizer with apply_chat_template", messages="m")
        self.only()

    def test_what_is_there_stays(self):
        found = oa.tokenize(iter(["a"]), "bytes", self.work / "out")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "out.bin is there: .*overwrite=True"):
            oa.tokenize(iter(["b"]), "bytes", self.work / "out")
        with self.assertRaises(oa.errors.DatasetError):
            oa.tokenize(iter(["b", 7]), "bytes", self.work / "out", overwrite=True)
        self.check(found, wanted(["a"]))
        (self.work / "out.loss").mkdir()
        with self.assertRaisesRegex(oa.errors.ArgumentError, "out.loss is a folder"):
            oa.tokenize(iter(["b"]), "bytes", self.work / "out", overwrite=True)
        self.check(found, wanted(["a"]))
        (self.work / "out.loss").rmdir()
        oa.tokenize(iter(["b"]), None, found, overwrite=True, render=lambda row: ([1], [1]), vocabulary=9)
        self.only("out.bin", "out.idx", "out.loss")
        self.check(oa.tokenize(iter(["b"]), "bytes", found, overwrite=True), wanted(["b"]))
        self.only("out.bin", "out.idx")
        self.assertEqual(os.stat(found).st_mode & 0o777, os.stat(self.jsonl([])).st_mode & 0o777)

    def test_killed(self):
        """In mid-run: no name of a file is there, and no process stays."""
        program = ("import os, signal, oneaccess as oa\n"
                   "def texts():\n"
                   "    for number in range(30000):\n"
                   "        yield 'text'\n"
                   "    os.kill(os.getpid(), signal.SIGKILL)\n"
                   f"oa.tokenize(texts(), 'bytes', {str(self.work / 'out')!r}, processes=3)\n")
        run = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)     # to the end of all
        self.assertEqual(run.returncode, -signal.SIGKILL, run.stderr)
        self.assertFalse([name for name in os.listdir(self.work) if not name.startswith(".")])

    def test_told_on_a_terminal(self):
        program = ("import time, oneaccess as oa\n"
                   "def texts():\n"
                   "    for number in range(2500):\n"
                   "        yield 'text'\n"
                   "    time.sleep(0.6)\n"        # it is told twice a second
                   f"oa.tokenize(texts(), 'bytes', {str(self.work / 'out')!r}, processes=1)\n")
        ours, theirs = os.openpty()
        run = subprocess.Popen([sys.executable, "-c", program], stderr=theirs)
        os.close(theirs)
        told = b""
        try:
            while piece := os.read(ours, 1000):
                told += piece
        except OSError:     # nobody has the other end
            pass
        os.close(ours)
        self.assertEqual(run.wait(), 0, told)
        self.assertIn(b"2,500 documents, 12,500 tokens", told)

    def test_program(self):
        texts = texts_of(50)
        path = self.jsonl({"body": text} for text in texts)

        def run(*more):
            return subprocess.run([sys.executable, "-m", "oneaccess.tokenize", path, "--out", self.work / "out", *more], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False)
        ran = run("--tokenizer", "bytes", "--text", "body")
        count = sum(map(len, wanted(texts)))
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, f"{self.work}/out.bin: 50 documents, {count:,} tokens (uint16)\n", ""))
        self.check(self.work / "out.bin", wanted(texts))
        ran = run("--tokenizer", "bytes", "--text", "body")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("oneaccess.tokenize: ", ran.stderr)
        ran = run("--tokenizer", "none.json", "--overwrite")
        self.assertRegex(ran.stderr, "^oneaccess.tokenize: (tokenizer 'none.json' cannot be had: |.*pip install tokenizers)")
        ran = run("--tokenizer", "bytes", "--text", "body", "--overwrite", "--append", "none")
        self.assertEqual(ran.returncode, 0)
        self.check(self.work / "out.bin", wanted(texts, ()))

        with self.assertRaisesRegex(ImportError, "a program"):
            importlib.import_module("oneaccess.tokenize")
        self.assertTrue(callable(oa.tokenize))

    def test_files_of_megatron(self):
        """Byte for byte what Megatron's own builder writes of the same tokens."""
        if not has("megatron.core"):
            self.skipTest("megatron-core is not installed: not tested: its builder")
        import torch
        from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
        texts = texts_of(700)
        for vocabulary in (257, 65499, 65500, 70000):
            builder = IndexedDatasetBuilder(str(self.work / "theirs.bin"), dtype=DType.optimal_dtype(vocabulary))
            for document in wanted(texts):
                builder.add_document(torch.tensor(document, dtype=torch.int64), [len(document)] if document else [])
            builder.finalize(str(self.work / "theirs.idx"))
            oa.tokenize(iter(texts), lambda text: text.encode(), self.work / "ours", append=END, vocabulary=vocabulary, overwrite=True)
            for suffix in ("bin", "idx"):
                self.assertEqual((self.work / f"ours.{suffix}").read_bytes(), (self.work / f"theirs.{suffix}").read_bytes())


class Tokenizers(Case):
    """Of each library what is there of it, and it itself where it is installed."""

    def same(self, tokenizer, documents, **options):
        texts = ["a b", "c", "b"]
        self.check(oa.tokenize(iter(texts), tokenizer, self.work / "out", processes=2, overwrite=True, **options), documents)

    def test_duck_typed(self):
        class Sentences:
            def encode(self, text):
                return list(text.encode())

            def eos_id(self):
                return 2

            def get_piece_size(self):
                return 200
        self.same(Sentences(), wanted(["a b", "c", "b"], [2]))

        class Ordinary:
            n_vocab, eot_token = 300, 299

            def encode_ordinary_batch(self, texts, num_threads):
                return [list(text.encode()) for text in texts]
        self.same(Ordinary(), wanted(["a b", "c", "b"], [299]))

    def test_tokenizers(self):
        if not has("tokenizers"):
            self.skipTest("tokenizers is not installed: not tested: its own")
        import tokenizers
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "c": 2, "</s>": 9}, unk_token="a"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        documents = [[0, 1, 9], [2, 9], [1, 9]]
        self.same(words, documents, append=9)
        words.save(str(self.work / "tokenizer.json"))
        self.same(str(self.work / "tokenizer.json"), documents, append=9)
        if not has("transformers"):
            self.skipTest("transformers is not installed: not tested: its own")
        import transformers
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>")
        self.same(fast, documents)
        fast.save_pretrained(self.work / "saved")
        self.same(self.work / "saved", documents)

    def test_sentencepiece(self):
        if not has("sentencepiece"):
            self.skipTest("sentencepiece is not installed: not tested: its own")
        import sentencepiece
        with open(self.work / "of.model", "wb") as file:
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c", "c b", "b a b"] * 9), model_writer=file, vocab_size=12,
                                                     hard_vocab_limit=False, minloglevel=2)
        model = sentencepiece.SentencePieceProcessor(model_file=str(self.work / "of.model"))
        documents = [[*model.encode(text), model.eos_id()] for text in ("a b", "c", "b")]
        self.same(model, documents)
        self.same(str(self.work / "of.model"), documents)

    def test_tiktoken(self):
        if not has("tiktoken"):
            self.skipTest("tiktoken is not installed: not tested: its own")
        import tiktoken
        encoding = tiktoken.Encoding("bytes", pat_str=".", mergeable_ranks={bytes([byte]): byte for byte in range(256)},
                                     special_tokens={"<|endoftext|>": 256})
        self.same(encoding, wanted(["a b", "c", "b"]))


class Chat:
    """A tokenizer of bytes with a template, as those of transformers; 257 to 259 begin a message of each role, 256 ends it."""
    eos_token_id, vocab_size, roles = END, 260, {"system": 257, "user": 258, "assistant": 259}

    def __init__(self, template):
        self.chat_template = template

    def __call__(self, text):
        return list(text.encode())

    def apply_chat_template(self, messages, *, tokenize, return_dict, add_generation_prompt=False, return_assistant_tokens_mask=False):
        ids, mask = [], []
        for at, message in enumerate(messages):
            text = message["content"].encode()
            if "strip" in self.chat_template and at < len(messages) - 1:
                text = text.strip()
            ids += [self.roles[message["role"]], *text, END]
            mask += [0, *[message["role"] == "assistant"] * (len(text) + 1)]
        ids += [259] * add_generation_prompt
        return {"input_ids": ids, **({"assistant_masks": [int(is_one) for is_one in mask]} if return_assistant_tokens_mask else {})}


def chats_of(count):
    draw = random.Random(3)
    return [[{"role": role, "content": " ".join(draw.choices(["yes", "no", "well"], k=draw.randrange(1, 6)))}
             for role in (["system"] if number % 3 == 0 else []) + ["user", "assistant"] * draw.randrange(1, 4)] for number in range(count)]


def wanted_chats(chats):
    whole = [Chat("").apply_chat_template(chat, tokenize=True, return_dict=True, return_assistant_tokens_mask=True) for chat in chats]
    return [chat["input_ids"] for chat in whole], [chat["assistant_masks"] for chat in whole]


class Tuned(Case):
    def check_loss(self, found, documents, masks, dtype="u2"):
        self.check(found, documents, dtype)
        loss = pathlib.Path(found).with_suffix(".loss").read_bytes()
        self.assertEqual(list(loss), [int(counts) for mask in masks for counts in mask])

    def test_prompts(self):
        pairs = [(f"ask {number}", "answer" * (number % 4)) for number in range(1500)]
        rows = ({"q": question, "a": answer, "n": 1} for question, answer in pairs)
        found = oa.tokenize(rows, "bytes", self.work / "out", prompt="q", completion="a", processes=2)
        self.check_loss(found, [[*question.encode(), *answer.encode(), END] for question, answer in pairs],
                        [[0] * len(question) + [1] * (len(answer) + 1) for question, answer in pairs])
        self.fails("row 0: has no member 'a'; there are: q", lambda: iter([{"q": "x"}]), prompt="q", completion="a")

        def ends(text):
            return [*text.encode(), 3]
        found = oa.tokenize(iter([{"q": "a", "a": "b"}]), ends, self.work / "ends", prompt="q", completion="a", append=3, vocabulary=200)
        self.check_loss(found, [[97, 3, 98, 3]], [[0, 0, 1, 1]])

        class Special:
            """Puts 1 before a text and its end behind it, unless it is not to."""
            eos_token_id = 2

            def __call__(self, texts, add_special_tokens=True, **options):
                return {"input_ids": [[1, *text.encode(), 2] if add_special_tokens else list(text.encode()) for text in texts]}

            def convert_tokens_to_ids(self):
                pass

            def get_vocab(self):
                return {"a": 0, "b": 199}
        found = oa.tokenize(iter([{"q": "aa", "a": "b"}]), Special(), self.work / "special", prompt="q", completion="a")
        self.check_loss(found, [[1, 97, 97, 98, 2]], [[0, 0, 0, 1, 1]])

    def test_chats(self):
        chats = chats_of(300)
        path = self.jsonl({"messages": chat} for chat in chats)
        for name, template in (("marked", "{%- generation %}"), ("by-prefix", "plain")):
            found = oa.tokenize(path, Chat(template), self.work / name, messages="messages", processes=2)
            self.check_loss(found, *wanted_chats(chats))
        rows = [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": content}, {"role": "user", "content": "c"}]}
                for content in ("b", " b ")]
        self.fails("row 1: of message 1 the chat template makes other tokens", lambda: iter(rows), Chat("strip"), messages="messages")
        self.fails("row 0: KeyError", lambda: iter([{"messages": [{"content": "a"}]}]), Chat("plain"), messages="messages")
        self.fails("no token of the source counts", lambda: iter([{"messages": rows[0]["messages"][:1]}]), Chat("plain"), messages="messages")
        self.fails("has no chat_template", lambda: iter(rows), Chat(None), messages="messages", error=oa.errors.ArgumentError)

    def test_render(self):
        rows = [{"ids": list(range(number)), "from": number // 2} for number in range(1, 90)]
        found = oa.tokenize(iter(rows), None, self.work / "out", render=lambda row: (row["ids"], [at >= row["from"] for at in row["ids"]]),
                            vocabulary=100, processes=2)
        self.check_loss(found, [row["ids"] for row in rows], [[at >= row["from"] for at in row["ids"]] for row in rows])
        for render, why in ((lambda row: [1], "render gave a list: two values"), (lambda row: ([1, 2], [1]), "there are 2 tokens, and of 1"),
                            (lambda row: ([1, 2], None), "there are 2 tokens, and of 0"),
                            (lambda row: ([1, 2], 5), "no list of whole numbers")):
            self.fails(f"row 0: .*{why}", lambda: iter(rows), None, render=render)

    def test_chats_of_transformers(self):
        if not has("transformers") or not has("jinja2"):
            self.skipTest("transformers or jinja2 is not installed: not tested: its chat templates")
        import tokenizers
        import transformers
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<user>": 0, "<assistant>": 1, "</s>": 2, "yes": 3, "no": 4, "well": 5, "<system>": 6},
                                                                 unk_token="no"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>")
        begin, end = "{% for m in messages %}{{ '<' + m.role + '> ' }}", "{% endfor %}{% if add_generation_prompt %}{{ '<assistant> ' }}{% endif %}"
        chats = chats_of(50)
        for name, middle in (("marked", "{% if m.role == 'assistant' %}{% generation %}{{ m.content + ' </s> ' }}{% endgeneration %}"
                              "{% else %}{{ m.content + ' </s> ' }}{% endif %}"), ("by-prefix", "{{ m.content + ' </s> ' }}")):
            fast.chat_template = begin + middle + end
            found = oa.tokenize(({"messages": chat} for chat in chats), fast, self.work / name, messages="messages")
            documents, masks = [], []
            for chat in chats:
                ids = [[words.token_to_id(word) for word in (f"<{message['role']}>", *message["content"].split(), "</s>")] for message in chat]
                documents.append(sum(ids, []))
                masks.append([counts for message, part in zip(chat, ids) for counts in [0, *[message["role"] == "assistant"] * (len(part) - 1)]])
            self.check_loss(found, documents, masks)


class Loaded(support.DaemonCase):
    def test_a_loader_reads_it(self):
        texts = texts_of(400)
        tokens = [token for document in wanted(texts) for token in document]
        found = oa.tokenize(iter(texts), "bytes", self.work / "corpus")
        with oa.Loader(oa.tokens(found, 32), batch_size=4, order="sequential", epochs=1, as_="numpy", socket=self.socket) as loader:
            windows = numpy.concatenate([batch["input_ids"].ravel() for batch in loader])
        self.assertEqual(windows.tolist(), tokens[:len(windows)])
        with oa.Loader(oa.tokens(found, 32, pack=True), batch_size=4, order="any", epochs=1, as_="numpy", socket=self.socket) as loader:
            packed = numpy.concatenate([batch["input_ids"][batch["doc_ids"] >= 0] for batch in loader])
        self.assertEqual(sorted(packed.tolist()), sorted(tokens))

    def test_only_answers_count(self):
        documents, masks = wanted_chats(chats_of(200))
        found = oa.tokenize(({"chat": chat} for chat in chats_of(200)), Chat("plain"), self.work / "chats", messages="chat")
        seen = 0
        with oa.Loader(oa.tokens(found, 128, pack=True, loss=True), batch_size=4, order="any", epochs=1, as_="numpy", socket=self.socket) as loader:
            for batch in map(oa.varlen, loader):
                for begin, end in itertools.pairwise(batch["cu_seqlens"]):
                    document, mask = documents[batch["doc_ids"][begin]], masks[batch["doc_ids"][begin]]
                    self.assertEqual(batch["input_ids"][begin:end].tolist(), document)      # none is cut
                    self.assertEqual(batch["labels"][begin:end].tolist(),
                                     [token if counts else -100 for token, counts in zip(document[1:], mask[1:])] + [-100])
                    seen += 1
        self.assertEqual(seen, len(documents))


del Case

if __name__ == "__main__":
    unittest.main(verbosity=2)
