# SPDX-License-Identifier: Apache-2.0
"""FASTA: windows of a genome and records against slices of the texts that were written, tracks against what was drawn, damage in each index; against a
real daemon. pyfaidx, pysam and pyBigWig read the same where they are installed."""

import contextlib
import os
import struct
import sys
import tempfile
import unittest
import warnings
import zlib
from unittest import mock

try:
    import numpy as np
except ImportError as missing:
    print(f"genome_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import pool, record
from oneaccess.domains import fasta
from oneaccess.domains.intervals import Genome, Intervals, Regions
from oneaccess.domains.letters import complement
from support import PoolCase, needs

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

SIZES = {"chr1": 5003, "chr2": 3000, "chrM": 61, "tiny": 7}
LETTERS = np.frombuffer(b"ACGTacgtNnRYK", np.uint8)
TURNED = str.maketrans("ACGTNRYK", "TGCANYRM")
EPOCHS = 2


def turned(text):
    return text.translate(TURNED)[::-1]


def onehot(text):
    return np.array([[letter == each for letter in text] for each in "ACGT"], np.float32)


def block(data, more=b""):
    """As bgzip writes one."""
    machine = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = machine.compress(data) + machine.flush()
    extra = more + b"BC\2\0" + struct.pack("<H", len(packed) + 25 + len(more))
    return b"\x1f\x8b\x08\x04\0\0\0\0\0\xff" + struct.pack("<H", len(extra)) + extra + packed + struct.pack("<II", zlib.crc32(data), len(data))


class GenomeCase(PoolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["XDG_CACHE_HOME"] = str(cls.work / "cached")
        draw = np.random.default_rng(1)
        cls.texts = {name: LETTERS[draw.integers(0, len(LETTERS), size)].tobytes().decode() for name, size in SIZES.items()}

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.work)
        self.path = self.write("g.fa", self.fasta(self.texts))

    def write(self, name, data, at=0):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        if at:
            os.utime(path, (os.stat(path).st_mtime + at,) * 2)
        return path

    def fasta(self, texts, width=60, end="\n"):
        return "".join(f">{name} of {len(text)}{end}" + "".join(text[at:at + width] + end for at in range(0, len(text), width)) for name, text in texts.items())

    def bed(self, *lines, name="a.bed"):
        return self.write(name, "".join("\t".join(map(str, line)) + "\n" for line in lines))

    def fai(self, *lines):
        return self.write("g.fa.fai", "".join("\t".join(map(str, line)) + "\n" for line in lines))

    def window(self, name, start, length, strand=1):
        text = self.texts[name].upper()
        text = "N" * max(0, -start) + text[max(0, start):max(0, start + length)]
        return (text + "N" * (length - len(text))) if strand > 0 else turned(text + "N" * (length - len(text)))

    def places(self, count=60, length=40):
        draw = np.random.default_rng(2)
        for at in range(count):
            name = ("chr1", "chr2", "chrM")[at % 3]
            start = int(draw.integers(0, SIZES[name] - length))
            yield name, start, start + length, f"peak{at % 4}", at, "+-."[at // 3 % 3]

    def samples(self, *args, **kwargs):
        """Of the data set itself, without its pool."""
        data = oa.from_fasta(*args, **kwargs)
        return data, data.dataset.__getitems__([*range(len(data))])

    def check(self, data, samples, length):
        for (chromosome, start, strand), sample in zip(data.windows.tolist(), samples, strict=True):
            self.assertEqual(sample["sequence"], self.window(data.chromosomes[chromosome], start, length, strand), (chromosome, start, strand))
            self.assertEqual((sample["chromosome"], sample["start"], sample["strand"]), (chromosome, start, strand))

    def refused(self, words, *args, kind=oa.errors.DatasetError, **kwargs):
        with self.assertRaisesRegex(kind, words):
            oa.from_fasta(*(args or (self.path, None, 10)), **kwargs)


class WindowsTest(GenomeCase):
    def test_letters_by_place(self):
        """Whatever lines are like, and by whichever index: also windows that begin and end beyond a chromosome."""
        bed = self.bed(*self.places(), ("tiny", 0, 1), ("tiny", 6, 7, "x", 0, "-"))
        for what, width, end in (("lines", 60, "\n"), ("of Windows", 61, "\r\n"), ("one line", 9999, "\n"), ("a letter", 1, "\n")):
            path = self.write(f"{what}.fa", self.fasta(self.texts, width, end).rstrip() if what == "lines" else self.fasta(self.texts, width, end))
            for length in (1, 7, 61, 200):
                with self.subTest(what, length=length):
                    self.check(*self.samples(path, bed, length, encode="text"), length)

    def test_an_index_beside_the_file(self):
        bed, before, lines = self.bed(*self.places()), 0, []
        for name, text in self.texts.items():
            before += len(f">{name} of {len(text)}\n")
            lines.append((name, len(text), before, 60, 61))
            before += len(text) + -(-len(text) // 60)
        self.fai(*lines[::-1])
        with mock.patch.object(fasta, "_passed", side_effect=AssertionError("read")):
            self.check(*self.samples(self.path, bed, 50, encode="text"), 50)
        good = lines[1]
        for at, wrong, words in ((0, ("chr2", 3000, 7), r"g.fa.fai:2: no index of FASTA"), (0, ("chr2", "x", 1, 2, 3), "g.fa.fai:2: no index"),
                                 (0, ("chr2", 1 << 60, *good[2:]), r"g.fa.fai:2: 1,152,.* letters .* are in no file of"), (0, ("chr2", *good[1:3], 0, 61), "fai:2: 3,000"),
                                 (0, ("chr2", *good[1:3], 60, 1 << 62), "fai:2: "), (0, ("chr2", -1, *good[2:]), "fai:2: "),
                                 (0, ("chr2", 0, good[2], 1 << 70, 1 << 70), "fai:2: 0 letters in lines of 1,180"), (0, ("chr2", 0, good[2], -5, -(1 << 70)), "fai:2: "),
                                 (0, ("chr3", *good[1:]), "g.fa.fai:2: .*g.fa has no record 'chr3' whose letters begin at byte 5,1"),
                                 (0, ("chr2", 3000, good[2] + 1, 60, 61), "g.fa.fai:2: .*g.fa has no record 'chr2'"),
                                 (0, ("chr2", 2999, *good[2:]), "g.fa.fai:2: .* has more letters of 'chr2'")):
            with self.subTest(wrong):
                self.fai(lines[0], wrong, *lines[2:])
                self.refused(words)
        self.fai(*lines[:3], ("tiny", 6, *lines[3][2:]))
        self.refused("fai:4: .* has more letters of 'tiny': make it anew: samtools faidx .*, or remove it")
        self.fai(lines[0], lines[1], *lines[1:])
        self.refused("fai:3: .* has no record 'chr2'")
        self.fai(lines[0], ("chr2", 3000, good[2], 61, 62), *lines[2:])         # as many bytes, and lines elsewhere
        with self.assertRaisesRegex(oa.errors.DatasetError, "g.fa, chr2: byte 0x0a in place of letter 60: .* or is not as its index says"):
            oa.from_fasta(self.path, None, 100, chromosomes="chr2").dataset.__getitems__([0])
        self.fai(lines[2], lines[0])                                            # not of all records
        self.assertEqual(oa.from_fasta(self.path, None, 100).chromosomes, ["chrM", "chr1"])
        self.write("g.fa.fai", b"\0\xff" * 1000, at=-100)                       # older than the file
        self.check(*self.samples(self.path, bed, 50, encode="text"), 50)

    def test_one_pass(self):
        """In pieces that end anywhere, and what is no FASTA."""
        source = fasta.opened(self.write("short.fa", self.fasta({name: text[:185] for name, text in self.texts.items()})))
        want = fasta._passed(source)
        self.assertEqual(want["length"].tolist(), [185, 185, 61, 7])
        for piece in (1, 7, 64, 997):
            with self.subTest(piece), mock.patch.object(fasta, "_PIECE", piece):
                found = fasta._passed(source)
                self.assertEqual({name: values.tolist() for name, values in found.items()}, {name: values.tolist() for name, values in want.items()})
        source.close()
        for at, (text, words) in enumerate((("ACGT\n>a\nAC\n", ":1: no FASTA"), ("", "has no record"), ("\n\n", "has no record"),
                                            (">a\nACGT\nAC\nACGT\n", ":3: lines of a record differ"),
                                            (">a\nAC\nACGT\n", ":3: lines"), (">a\nACGT\n\nACGT\n", ":3: lines"), (">a\nAC\n>a\nAC\n", "two records of the name 'a'"),
                                            (">a" + "x" * 70000 + "\nAC\n", ":1: a record's first line has 70,002 bytes"))):
            for piece in (3, 1 << 20):
                with self.subTest(text[:20], piece=piece), mock.patch.object(fasta, "_PIECE", piece):
                    self.refused(words, self.write(f"bad{at}{piece}.fa", text), None, 1)
        path = self.write("odd.fa", "\n>a\nAC\nA\n\n>empty\n>b\n\n>c\nACGT")
        self.assertEqual([sample["sequence"] for sample in self.samples(path, None, 2, stride=2, encode="text")[1]], ["AC", "AN", "AC", "GT"])

    def test_bgzip(self):
        text = self.fasta(self.texts).encode()
        cuts = [0, 1, 100, 100, 4000, len(text)]
        parts = [block(text[begin:end], b"XX\1\0a" if begin == 100 else b"") for begin, end in zip(cuts, cuts[1:])]
        path, bed = self.write("g.fa.gz", b"".join(parts) + block(b"")), self.bed(*self.places())
        for said in (None, 2, 4):
            if said:
                places = [(sum(map(len, parts[:at])), cuts[at]) for at in range(1, said + 1)]
                self.write("g.fa.gz.gzi", struct.pack("<Q", said) + b"".join(struct.pack("<QQ", *each) for each in places), at=1)
            with self.subTest(said):
                self.check(*self.samples(path, bed, 200, encode="text"), 200)
        for data, words in ((b"\5\0\0\0\0\0\0\0", "g.fa.gz.gzi is no index of bgzip"), (struct.pack("<QQQ", 1, 40, 1 << 40), "g.fa.gz.gzi: entry 0"), (b"x", "is no index")):
            self.write("g.fa.gz.gzi", data, at=1)
            self.refused(words, path, bed, 200)
        self.write("g.fa.gz.gzi", struct.pack("<QQQ", 1, 45, 3), at=1)
        self.refused("no bgzip block begins at byte 45", path, bed, 200)
        os.remove(f"{path}.gzi")
        self.write("g.fa.gz", b"".join(parts)[:-9])
        self.refused("no bgzip block begins at byte .*: the file is cut off", path, bed, 200)
        damaged = bytearray(b"".join(parts))
        damaged[-30] ^= 0x55
        self.write("g.fa.gz", damaged)
        self.refused("the bgzip block at byte .* is damaged", path, bed, 200)
        machine = zlib.compressobj(wbits=31)
        self.refused(r"plain.fa.gz is gzip, of which no part can be read alone. bgzip .*gunzip -c", self.write("plain.fa.gz", machine.compress(text) + machine.flush()), bed, 200)

    def test_which_windows(self):
        def windows(intervals=None, length=None, **more):
            data = oa.from_fasta(self.path, intervals, length, **more)
            return [(data.chromosomes[number], start) for number, start, _ in data.windows.tolist()]

        self.assertEqual(windows(self.bed(("chr2", 10, 21), ("chr1", 0, 11))), [("chr2", 10), ("chr1", 0)])
        self.assertEqual(windows(self.bed(("chr2", 10, 21)), 4), [("chr2", 13)])
        self.assertEqual(windows(self.bed(("chr2", 10, 21)), 4, stride=3), [("chr2", 10), ("chr2", 13), ("chr2", 16)])
        self.assertEqual(windows(None, 1500, chromosomes=["chr2", "tiny"]), [("chr2", 0), ("chr2", 1500), ("tiny", 0)])
        self.assertEqual(windows(None, 2000, chromosomes="chr2"), [("chr2", 0), ("chr2", 2000)])
        self.assertEqual(windows(None, 2000, chromosomes="chr2", border="drop", stride=500), [("chr2", 0), ("chr2", 500), ("chr2", 1000)])
        edges = self.bed(("chr2", 0, 2), ("chr2", 100, 102), ("chr2", 2998, 3000), name="edges.bed")
        self.assertEqual(windows(edges, 10), [("chr2", -4), ("chr2", 96), ("chr2", 2994)])
        self.assertEqual(windows(edges, 10, border="drop"), [("chr2", 96)])
        black = self.bed(("chrUn", 0, 10), ("chr2", 0, 1), ("chr2", 106, 107), name="black.bed")
        self.assertEqual(windows(edges, 10, exclude=black), [("chr2", 96), ("chr2", 2994)])
        self.assertEqual(windows(edges, 10, exclude=black, jitter=1), [("chr2", 2994)])
        table = {"chromosome": np.array(["chr1", "chr2"]), "start": np.array([5, 6]), "stop": [15, 16], "strand": ["-", "+"], "score": [.5, 2]}
        data, samples = self.samples(self.path, table, 10, encode="text", columns=["score"])
        self.check(data, samples, 10)
        self.assertEqual(data.windows.tolist(), [[0, 5, -1], [1, 6, 1]])
        self.assertEqual([sample["score"] for sample in samples], [.5, 2])
        csv = self.write("t.csv", "chrom,start,end,cell\nchr2,6,16,B\nchr1,7,17,A\n")
        data, samples = self.samples(self.path, {"yes": csv, "no": [csv, csv]}, encode="text", columns={"type": "cell"})
        self.assertEqual(([int(sample["label"]) for sample in samples], data.classes), ([1, 1, 0, 0, 0, 0], {"label": ["no", "yes"], "type": ["A", "B"]}))
        self.assertEqual([int(sample["type"]) for sample in samples], [1, 0] * 3)
        peaks = self.write("p.narrowPeak", "track type=narrowPeak\n#x\nchr1\t5\t15\tp\t7\t.\t3.5\t1\t2\t4\n")
        data, samples = self.samples(self.path, peaks, columns=["signalValue", 10])
        self.assertEqual((samples[0]["signalValue"], samples[0]["column10"]), (3.5, 4))

    def test_what_is_refused(self):
        bad = oa.errors.ArgumentError
        for line, words in ((("chr9", 1, 2), "a.bed:2: .*g.fa has no chromosome 'chr9'; it has chr1, chr2, chrM and 1 others"), (("chr1", 5), "a.bed:2: 2 columns"),
                            (("chr1", "a", 7), "a.bed:2: start 'a'"), (("chr1", 7, 7), "a.bed:2: 7 to 7 is no part of chr1"), (("chr1", -1, 7), "a.bed:2: "),
                            (("chr1", 1, 5004), "a.bed:2: 1 to 5,004 .*5,003 letters .*assembly"), (("chr1", 1, 1 << 70), "a.bed:2: "),
                            (("chr1", 1, 2, "x", 0, "?"), r"a.bed:2: strand '\?': it is"),
                            (("chr1", 1, "9" * 5000), "a.bed:2: ")):
            with self.subTest(line):
                self.refused(words, self.path, self.bed(("chr1", 1, 2), line), 10)
        for start, end in ((1.5, 5), (1, float("inf")), (float("nan"), 5), (1, 10 ** 400), ([1], 5)):
            with self.subTest(start=start, end=end):
                self.refused("intervals, row 0: start .*: whole numbers", self.path, {"chrom": ["chr1"], "start": [start], "end": [end]}, 10)
        self.refused("a.jsonl:1: start 1 and end inf: whole", self.path, self.write("a.jsonl", '{"chrom": "chr1", "start": 1, "end": 1e999}\n'), 10)
        self.refused("a.jsonl:2: no column end", self.path, self.write("a.jsonl", '{"chrom": "chr1", "start": 1, "end": 9}\n{"chrom": "chr1", "start": 1}\n'), 10)
        self.assertEqual(len(oa.from_fasta(self.path, self.write("a.csv", "chrom,start,end\nchr1,1.0,9.0\n"), 10)), 1)
        self.refused("a.bed:1: .*nor any of .*a.bed", self.path, None, 10, exclude=self.bed(("1", 5, 6)))
        self.refused("g.fa has no such window", self.path, self.bed(("tiny", 0, 2)), 10, border="drop")
        self.refused("cannot be read", self.path, self.write("b.bed.gz", b"\x1f\x8bnothing"), 10)
        bed = self.bed(("chr1", 1, 2), ("chr1", 5, 9))
        for words, more in (("have 1 to 4 letters: length=", {}), ("length is 0", {"length": 0}), ("channels is 'x'", {"length": 5, "channels": "x"}),
                            ("chromosomes= names chr7", {"length": 5, "chromosomes": "chr7"}), ("unknown is 0.25", {"length": 5, "unknown": .25, "dtype": "uint8"}),
                            ("dtype is 'int8'", {"length": 5, "dtype": "int8"}), ("no room for token 256", {"length": 5, "encode": {"A": 256}, "dtype": "uint8"}),
                            ("encode is 7", {"length": 5, "encode": 7}), ("encode is 'one-hot': \"onehot\", ", {"length": 5, "encode": "one-hot"}),
                            ("dtype is 'half'", {"length": 5, "dtype": "half"}), ("dtype is 'foo': float32, float16", {"length": 5, "dtype": "foo"}), ("columns= names 'x'", {"length": 5, "columns": "x"}),
                            ("makes a field 'start'", {"length": 5, "columns": "start"}),
                            ("about tracks=", {"length": 5, "bin": 2}), ("crop= is of records", {"length": 5, "crop": 2}), ("bos= and eos=", {"length": 5, "bos": 1}),
                            ("track_length=5", {"length": 5, "bin": 2, "tracks": {"a": bed}}),
                            ("strand_pairs= has", {"length": 5, "tracks": {"a": bed}, "strand_pairs": [("a", "b")]}),
                            ("tracks= has .*g.fa", {"length": 5, "tracks": {"a": self.path}})):
            with self.subTest(words):
                self.refused(words, self.path, bed, kind=bad, **more)
        self.refused("columns= makes a field 'label'", self.path, {"a": bed, "b": bed}, 5, columns={"label": 1}, kind=bad)
        self.refused("jitter= is of windows", self.path, kind=bad, jitter=1)
        self.refused("index=", self.path, None, 5, index=self.path)

    def test_damage_later(self):
        """A letter that is none is of the samples with it; a file that was written to is no longer read."""
        at = len(">chr1 of 5003\n") + 61 * 10 + 3
        data = bytearray(self.fasta(self.texts).encode())
        data[at] = ord(">")
        rows = oa.from_fasta(self.write("g.fa", data), None, 100).dataset
        with self.assertRaisesRegex(oa.errors.DatasetError, "g.fa, chr1: byte 0x3e in place of letter 603: the file is damaged"):
            rows.__getitems__([5, 6])
        self.assertEqual(len(rows.__getitems__([5, 7])), 2)
        self.write("g.fa", data[:-30], at=5)
        with self.assertRaisesRegex(oa.errors.DatasetError, "was written to since"):
            rows[5]

    def test_encodings(self):
        bed, text = self.bed(("chr1", 100, 200), ("chr1", 100, 200, "x", 0, "-")), self.window("chr1", 100, 100)
        self.assertTrue({"N", "R"} <= {*text})
        rna = self.write("rna.fa", ">r\nAUGc\n")
        self.assertEqual(self.samples(rna, None, 4)[1][0]["sequence"].argmax(0).tolist(), [0, 3, 2, 1])
        for at, want in ((0, text), (1, turned(text))):
            hot = onehot(want)
            quarter = np.where(hot.any(0), hot, .25)
            numbers = [{**dict(zip("ACGT", range(4)))}.get(letter, 4) for letter in want]
            for value, more in ((hot, {}), (hot.T, {"channels": "last"}), (quarter, {"unknown": .25}),
                                (quarter.T.astype("f2"), {"unknown": .25, "channels": "last", "dtype": "float16"}),
                                (hot.astype("u1"), {"dtype": "uint8"}), (np.array(numbers), {"encode": "tokens"}),
                                (np.array([9, *numbers, 8], "u1"), {"encode": "tokens", "bos": 9, "eos": 8, "dtype": "uint8"}),
                                (np.array([700 if letter == "A" else 3 for letter in want], "i4"), {"encode": {"A": 700, "<x>": 5}, "unknown": 3, "dtype": "int32"}),
                                (np.array([len(want), 5]), {"encode": lambda text: [len(text), 5]})):
                with self.subTest(at=at, **more):
                    found = self.samples(self.path, bed, **more)[1][at]["sequence"]
                    np.testing.assert_array_equal(found, value)
                    self.assertEqual(found.dtype, value.dtype)
        with self.assertRaisesRegex(oa.errors.DatasetError, "g.fa, chr1:100-200: letter .* is 'N'.*no token: name it, or give unknown="):
            self.samples(self.path, bed, encode="ACGTRYKM")
        self.assertEqual(bytes(complement(np.frombuffer(b"ACGTUNRYSWKMBDHVacgtx", np.uint8))), b"TGCAANYRSWMKVHDBtgcax")

    def test_records_are_those_of_samples(self):
        """What goes to a batch in one piece is what each sample is, alone and in memory that is used again."""
        bed = self.bed(*self.places())
        for more in ({}, {"channels": "last"}, {"encode": "text", "columns": ["name", "score"]}, {"encode": "tokens", "bos": 7},
                     {"tracks": {"a": bed}, "columns": ["score"], "bin": 10}):
            data = oa.from_fasta(self.path, bed, 40, jitter=9, reverse_complement=True, **more)
            rows, words = data.dataset, pool.words_of([(1, 2, 3, each) for each in range(60)])
            layout = record.describe(rows.__example__(), False, rows.most, True)
            for some in (slice(0, 40), slice(40, 60), slice(7, 8)):
                indices = np.arange(60)[some]
                data, sizes = rows.__getrecords__(indices, layout, words[some])
                data, at, made = bytes(data), 0, []
                for size in sizes:
                    made.append(data[at:at + size])
                    at += -(-size // 64) * 64
                for sample, got in zip(rows._samples(rows.columns(indices, words[some])), made, strict=True):
                    one = record.Record(sample, layout, False)
                    memory = memoryview(bytearray(one.size))
                    one.write(memory)
                    self.assertEqual(bytes(memory), got)

    def test_coverage(self):
        """Of intervals that overlap, touch and lie apart, against a letter each."""
        genome, draw = Genome("g", SIZES, [*SIZES.values()]), np.random.default_rng(3)
        number = draw.integers(0, 2, 200)
        start = draw.integers(0, 2900, 200)
        end = start + draw.integers(1, 60, 200)
        there = np.zeros(genome.begins[-1], bool)
        for at, begin, until in zip(number, start, end):
            there[genome.begins[at] + begin:genome.begins[at] + until] = True
        regions = Regions(genome, Intervals(number, start, end, None, {}))
        np.testing.assert_array_equal(regions.covered(np.arange(len(there) + 1)), np.concatenate([[0], np.cumsum(there)]))
        self.assertEqual(Regions(genome, Intervals(*[np.zeros(0, np.int64)] * 3, None, {})).covered(np.array([0, 9])).tolist(), [0, 0])

    @needs("pyfaidx")
    def test_as_pyfaidx(self):
        import pyfaidx
        with contextlib.closing(pyfaidx.Fasta(self.path, sequence_always_upper=True)) as other:     # which writes a .fai
            data, samples = self.samples(self.path, self.bed(*self.places()), 60, border="drop", encode="text")
            for (chromosome, start, strand), sample in zip(data.windows.tolist(), samples, strict=True):
                want = other[data.chromosomes[chromosome]][start:start + 60]
                self.assertEqual(sample["sequence"], (want if strand > 0 else want.reverse.complement).seq.upper())

    @needs("pysam")
    def test_as_pysam(self):
        import pysam
        packed = f"{self.path}.gz"
        pysam.tabix_compress(self.path, packed)
        with pysam.FastaFile(packed) as other:                  # which writes .fai and .gzi
            data, samples = self.samples(packed, self.bed(*self.places()), 60, border="drop", encode="text")
            for (chromosome, start, strand), sample in zip(data.windows.tolist(), samples, strict=True):
                want = other.fetch(data.chromosomes[chromosome], start, start + 60).upper()
                self.assertEqual(sample["sequence"], want if strand > 0 else turned(want))


class BigWigTest(GenomeCase):
    def wig(self, name="a.bw", sizes=SIZES, seed=5):
        import pyBigWig
        draw, path = np.random.default_rng(seed), os.path.join(self.folder, name)
        file = pyBigWig.open(path, "w")
        file.addHeader([*sizes.items()])
        for each in [*sizes][:2]:
            starts = np.sort(draw.choice(2900, 300, replace=False))
            file.addEntries([each] * 300, starts.tolist(), ends=np.append(starts[1:], 2900).tolist() if each == [*sizes][0] else (starts + 1).tolist(),
                            values=draw.normal(0, 100, 300).tolist())
        file.close()
        return path

    @needs("pyBigWig")
    def test_as_pybigwig(self):
        import pyBigWig
        one, other = self.wig(), self.wig("b.bw", seed=6)
        bed = self.bed(*self.places(), ("chr1", 0, 40), ("chr1", 4990, 5003, "x", 0, "-"))
        for bin_, length, reduce in ((1, 200, "mean"), (40, 200, "mean"), (25, 100, "sum")):
            data, samples = self.samples(self.path, bed, 200, tracks={"one": one, "other": other}, bin=bin_, track_length=length, reduce=reduce, strand_pairs=[("one", "other")])
            for (chromosome, start, strand), sample in zip(data.windows.tolist(), samples, strict=True):
                name, begin, want = data.chromosomes[chromosome], start + (200 - length) // 2, np.zeros((2, length), np.float32)
                for row, path in zip(want, (one, other)):
                    file = pyBigWig.open(path)
                    for at in range(length):
                        if 0 <= begin + at < SIZES[name]:
                            row[at] = np.nan_to_num(np.float32((file.values(name, begin + at, begin + at + 1) or [0])[0]))
                    file.close()
                made = np.add.reduceat(want, np.arange(0, length, bin_), axis=1, dtype=np.float64)
                made = (made / (bin_ if reduce == "mean" else 1)).astype(np.float32)
                np.testing.assert_array_equal(sample["tracks"], made if strand > 0 else made[::-1, ::-1])
            self.assertEqual(data.tracks, ["one", "other"])

    @needs("pyBigWig")
    def test_what_is_refused(self):
        for words, path in (("chr1 has 5,004 letters, and 5,003 in .*another assembly", self.wig("c.bw", {**SIZES, "chr1": 5004})),
                            ("e.bw has no chromosome of .*g.fa: 1, 2, ...; it has chr1", self.wig("e.bw", {"1": 5003, "2": 3000})),
                            ("is no BigWig file", self.write("d.bw", b"no" * 100))):
            self.refused(words, self.path, None, 10, tracks={"a": path})

    def test_a_package_that_is_missing(self):
        with mock.patch.dict(sys.modules, pyBigWig=None):
            self.refused("pip install pyBigWig .Debian: apt-get install python3-pybigwig", self.path, None, 10, tracks={"a": self.write("a.bw", b"")}, kind=oa.errors.ArgumentError)


class LoaderTest(GenomeCase):
    def test_epochs(self):
        """Each window once an epoch, elsewhere and turned in the next one, with tracks of the same place; and the same with the same seed."""
        bed = self.bed(*self.places())
        path = self.write("g.fa.gz", block(self.fasta(self.texts).encode()) + block(b""))
        data = oa.from_fasta(path, bed, 200, jitter=30, shift=2, reverse_complement=True, tracks={"a": bed}, track_length=100, columns=["score"], keep=0.2)
        there = {name: np.zeros(size, np.float32) for name, size in SIZES.items()}
        for name, start, end, *_ in self.places():
            there[name][start:end] = 1
        seen = []
        for _ in range(2):
            loader = self.open(data, order="seeded", seed=4, epochs=EPOCHS, as_="numpy", batch_size=20)
            told = []
            for _ in range(EPOCHS):
                for batch in loader:
                    for at, sample in enumerate(batch.ids):
                        name, first, last, _, score, _ = [*self.places()][sample]
                        start, strand = int(batch["start"][at]), int(batch["strand"][at])
                        self.assertEqual((data.chromosomes[batch["chromosome"][at]], int(batch["score"][at])), (name, score))
                        self.assertLessEqual(abs(start - ((first + last) // 2 - 100)), 30)
                        hot = batch["sequence"][at]
                        shifts = [shift for shift in range(-2, 3) if np.array_equal(hot, onehot(self.window(name, start + shift, 200, strand)))]
                        self.assertTrue(shifts, (name, start, strand))
                        want = [there[name][place] if 0 <= place < SIZES[name] else 0 for place in range(start + 50, start + 150)]
                        np.testing.assert_array_equal(batch["tracks"][at], [want[::strand]])
                        told.append((sample, start, strand, shifts[0]))
            loader.close()
            seen.append(told)
        self.assertEqual(*seen)
        one, other = (sorted(seen[0][:60]), sorted(seen[0][60:]))
        self.assertEqual([[each[0] for each in part] for part in (one, other)], [[*range(60)]] * 2)
        for what, least in ((1, 40), (2, 15), (3, 20)):        # start, strand, shift: most of them differ
            self.assertGreater(sum(a[what] != b[what] for a, b in zip(one, other)), least)

    def test_proteins(self):
        draw = np.random.default_rng(4)
        texts = {f"P{at}": "".join(draw.choice([*"ACDEFGHIKLMNPQRSTVWY"], 1 + at * 7 % 50)) for at in range(60)}
        path = self.write("p.fasta", "".join(f">{name}\tof {name} é\n{text[:9]}\n{text[9:]}{'*' if name == 'P7' else ''}\n" for name, text in texts.items()))
        texts["P7"] += "*"
        data = oa.from_fasta(path, encode={"<cls>": 0, **{letter: at + 4 for at, letter in enumerate("LAGVSERTIDPKQNFYMHWC")}}, bos=0, eos=2, unknown=3, crop=30, keep=0.2)
        self.assertEqual(data.lengths.tolist(), [min(30, len(text)) for text in texts.values()])
        with self.assertRaises(oa.errors.Error):     # no sounds, of which durations() would know something without a daemon
            oa.durations(data, socket="/nowhere")
        numbers = dict(zip("LAGVSERTIDPKQNFYMHWC*", [*range(4, 24), 3]))
        begins, sizes = [], []
        loader = self.open(data, order=oa.orders.by_length(data.lengths, 10), epochs=EPOCHS, batch_size=10, as_="numpy")
        for batch in (batch for _ in range(EPOCHS) for batch in loader):
            sizes.append([len(tokens) for tokens in batch["sequence"].list()])
            for tokens, name, description, sample in zip(batch["sequence"].list(), batch["name"], batch["description"], batch.ids):
                text = texts[name]
                self.assertEqual((name, description), (f"P{sample}", f"of {name} é"))
                found = [first for first in range(max(1, len(text) - 29)) if tokens.tolist() == [0, *(numbers[letter] for letter in text[first:first + 30]), 2]]
                self.assertTrue(found, (name, tokens))
                begins.append(found[0])
        self.assertEqual(sum(map(len, sizes)), 120)
        self.assertLess(max(max(each) - min(each) for each in sizes), 31)
        self.assertGreater(len({*begins}), 5)
        data, samples = self.samples(path, columns="name")
        self.assertEqual([(sample["name"], sample["sequence"]) for sample in samples], [*texts.items()])
        data = oa.from_fasta(self.write("q.fasta", ">a b c\nACGT\n>e\n>f \nAC\n"), encode="onehot")
        self.assertEqual([(each["sequence"].shape, each["name"], each["description"]) for each in data.dataset.__getitems__([0, 1, 2])],
                         [((4, 4), "a", "b c"), ((0, 4), "e", ""), ((2, 4), "f", "")])


if __name__ == "__main__":
    unittest.main()
