# SPDX-License-Identifier: Apache-2.0
"""Texts into a file of tokens, in Megatron-LM's format: OUT.bin and OUT.idx, for oneaccess.tokens(). What is meant by each is told by
help(oneaccess.tokenize)."""

import argparse
import sys

if __name__ != "__main__":      # else oneaccess.tokenize would be this, no longer the function
    raise ImportError("a program, python -m oneaccess.tokenize; the function is oneaccess.tokenize()")

from .errors import Error  # noqa: E402
from .writing.tokenizing import tokenized  # noqa: E402


def _append(text):
    if text in ("eos", "none"):
        return None if text == "none" else text
    return int(text)


def _parser():
    parser = argparse.ArgumentParser("python -m oneaccess.tokenize", description=__doc__)
    parser.add_argument("source", nargs="+", help="files, folders or patterns: .jsonl, .ndjson, .json, .txt (also .gz, .bz2, .xz, .zst), .parquet")
    parser.add_argument("--tokenizer", required=True, metavar="NAME",
                        help="of transformers, a name or folder; or tiktoken:ENCODING, a tokenizer.json, a .model of SentencePiece, or bytes")
    parser.add_argument("--out", required=True, metavar="PREFIX", help="of PREFIX.bin, PREFIX.idx, and for fine-tuning PREFIX.loss")
    parser.add_argument("--text", default="text", metavar="NAME", help="the member of a row that is tokenized (text)")
    parser.add_argument("--prompt", metavar="NAME", help="with --completion: only completions count for the loss")
    parser.add_argument("--completion", metavar="NAME")
    parser.add_argument("--messages", metavar="NAME", help="the member with a chat; only the assistant's messages count for the loss")
    parser.add_argument("--append", type=_append, default="eos", metavar="ID", help="the token behind each text; eos (the tokenizer's own), none")
    parser.add_argument("--vocabulary", type=int, metavar="N", help="how many tokens there are, if the tokenizer does not say it")
    parser.add_argument("--lines", action="store_true", help="each line of a .txt is a document")
    parser.add_argument("--processes", type=int, metavar="N", help="that run the tokenizer (as many as there are CPUs)")
    parser.add_argument("--overwrite", action="store_true", help="files of this name may be there")
    return parser


def main(arguments):
    options = vars(_parser().parse_args(arguments))
    try:
        made = tokenized(options.pop("source"), options.pop("tokenizer"), options.pop("out"), **options)
    except Error as why:
        print(f"oneaccess.tokenize: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    counted = "" if made.counted is None else f", {made.counted:,} of them count for the loss"
    print(f"{made.path}: {made.documents:,} documents, {made.tokens:,} tokens ({made.dtype}){counted}")
    return 0


sys.exit(main(sys.argv[1:]))
