# SPDX-License-Identifier: Apache-2.0
"""What is learned of tokens: masked tokens, corrupted spans, middles, in all orders, resumed, among ranks and in mixes; beside the
rules of transformers, t5 and bigcode, written out here, and transformers itself where it is installed."""

import json
import random
import struct
import types
import unittest
import unittest.mock

import numpy
import oneaccess as oa
import support

MASK, VOCABULARY, LENGTH = 1003, 1000, 64


def of(dataset, socket, **options):
    """{(epoch, id): (input_ids, labels)} of some epochs, with all fields as copies."""
    options = {"order": "seeded", "seed": 5, "epochs": 2, "as_": "numpy", **options}
    found = {}
    with oa.Loader(dataset, batch_size=options.pop("batch_size", 7), socket=socket, **options) as loader:
        for _ in range(options["epochs"]):
            for batch in loader:
                for at, number in enumerate(batch.ids):
                    found[batch.epoch, number] = {name: field[at].copy() for name, field in batch.items()}
    return found


class ObjectiveCase(support.DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.numbers = numpy.random.default_rng(1).integers(0, VOCABULARY, 30 * 1000 + 1).astype("u2")
        cls.numbers[::50] = VOCABULARY - 1      # ends of documents
        cls.path = cls.work / "tokens.npy"
        numpy.save(cls.path, cls.numbers)
        sizes = [int(size) for size in numpy.random.default_rng(2).integers(1, 90, 400)]
        cls.packed = cls.work / "packed.bin"
        cls.texts = numpy.random.default_rng(3).integers(0, VOCABULARY, sum(sizes)).astype("u2")
        cls.texts.tofile(cls.packed)
        with open(cls.packed.with_suffix(".idx"), "wb") as file:
            file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(sizes), len(sizes) + 1))
            file.write(numpy.array(sizes, "i4").tobytes() + (numpy.cumsum([0, *sizes[:-1]]) * 2).astype("i8").tobytes()
                       + numpy.arange(len(sizes) + 1, dtype="i8").tobytes())

    def windows(self, length):
        count = (len(self.numbers) - 1) // length
        return self.numbers[:count * length].reshape(count, length).astype("i8")

    def assert_same(self, one, other):
        self.assertEqual(one.keys(), other.keys())
        for key, fields in one.items():
            for name, field in fields.items():
                numpy.testing.assert_array_equal(field, other[key][name], f"{key} {name}")

    def objectives(self):
        masked = oa.MaskedLM(MASK, VOCABULARY, special_ids=[VOCABULARY - 1])
        return {"masked": (masked, False), "masked and packed": (masked, True),
                "spans": (oa.SpanCorruption(range(2000, 1900, -1), end_id=1), False),
                "middle": (oa.FillInMiddle(2001, 2002, 2003, end_id=VOCABULARY - 1), False),
                "middle and packed": (oa.FillInMiddle(2001, 2002, 2003, rate=1), True)}

    def given(self, objective, pack):
        return oa.tokens(self.packed if pack else self.path, LENGTH, pack=pack, objective=objective)


class Rules(ObjectiveCase):
    def test_masked(self):
        """Each token of each window is there, masked or not, and no special one is masked."""
        found = of(self.given(*self.objectives()["masked"]), self.socket)
        windows, chosen, masked, differs = self.windows(LENGTH), 0, 0, 0
        self.assertEqual(len(found), 2 * len(windows))
        for (epoch, number), fields in found.items():
            ids, labels = fields["input_ids"], fields["labels"]
            self.assertEqual((ids.dtype, ids.shape, labels.shape), (numpy.int64, (LENGTH,), (LENGTH,)))
            numpy.testing.assert_array_equal(numpy.where(labels < 0, ids, labels), windows[number])
            self.assertEqual(set(labels[labels < 0].tolist()), {-100})
            self.assertFalse((labels == VOCABULARY - 1).any())
            chosen, masked = chosen + (labels >= 0).sum(), masked + (ids == MASK).sum()
            differs += not numpy.array_equal(labels, found[1 - epoch, number]["labels"])
        tokens = 2 * (windows != VOCABULARY - 1).sum()
        self.assertLess(abs(chosen - 0.15 * tokens), 5 * (tokens * 0.15 * 0.85) ** 0.5)
        self.assertLess(abs(masked - 0.8 * chosen), 5 * (chosen * 0.8 * 0.2) ** 0.5)
        self.assertGreater(differs, 0.99 * len(found))      # each epoch has masks of its own

    def test_masked_words(self):
        continues = numpy.arange(VOCABULARY) % 3 != 0
        found = of(oa.tokens(self.path, LENGTH, objective=oa.MaskedLM(MASK, VOCABULARY, 0.5, continues=continues)), self.socket)
        windows = self.windows(LENGTH)
        for (_, number), fields in found.items():
            is_chosen = fields["labels"] >= 0
            inside = continues[windows[number]][1:]
            numpy.testing.assert_array_equal(is_chosen[1:][inside], is_chosen[:-1][inside])

    def test_packed(self):
        """What is not masked is as without an objective."""
        plain = of(oa.tokens(self.packed, LENGTH, pack=True), self.socket)
        masked = of(self.given(*self.objectives()["masked and packed"]), self.socket)
        middle = of(self.given(*self.objectives()["middle and packed"]), self.socket)
        self.assertEqual(plain.keys(), masked.keys())
        cut = 0
        for key, fields in plain.items():
            for other in masked[key], middle[key]:
                self.assertEqual(list(other), list(fields))
                for name in "position_ids", "doc_ids":
                    numpy.testing.assert_array_equal(other[name], fields[name])
            ids, labels = masked[key]["input_ids"], masked[key]["labels"]
            numpy.testing.assert_array_equal(numpy.where(labels < 0, ids, labels), fields["input_ids"])
            self.assertTrue((labels[fields["doc_ids"] < 0] == -100).all())
            ids, labels = middle[key]["input_ids"], middle[key]["labels"]
            same = fields["doc_ids"][1:] == fields["doc_ids"][:-1]
            numpy.testing.assert_array_equal(labels[:-1][same & (fields["doc_ids"][1:] >= 0)], ids[1:][same & (fields["doc_ids"][1:] >= 0)])
            for token in 2001, 2002, 2003:
                self.assertEqual((ids == token).sum(), (ids == 2001).sum())
            self.assertTrue((ids[(fields["position_ids"] == 0) & (ids > 2000)] == 2001).all())
            cut += (ids == 2001).sum()
        self.assertGreater(cut, 300)

    def test_spans(self):
        objective = oa.SpanCorruption(range(2000, 1900, -1), end_id=1)
        window, targets = objective.lengths(LENGTH)
        found = of(oa.tokens(self.path, LENGTH, objective=objective), self.socket)
        windows, spans = self.windows(window), []
        self.assertEqual(len(found), 2 * len(windows))
        for (_, number), fields in found.items():
            ids, labels = fields["input_ids"], fields["labels"]
            self.assertEqual((len(ids), len(labels)), (LENGTH, targets))
            is_noise = numpy.zeros(window, bool)    # which of the window's tokens were taken out
            at = 0
            for part, taken in zip(numpy.split(ids, numpy.flatnonzero(ids > 1000)), numpy.split(labels, numpy.flatnonzero(labels > 1000))[1:], strict=False):
                at += len(part) - (part[0] > 1000)
                count = len(taken) - 1 - (taken[-1] == 1 and len(part) and taken[0] == labels[labels > 1000][-1])
                is_noise[at:at + count] = True
                spans.append(count)
                at += count
            wanted_ids, wanted_labels = t5(windows[number], is_noise, 2001, 1)
            numpy.testing.assert_array_equal(ids, wanted_ids)
            numpy.testing.assert_array_equal(labels, wanted_labels)
        self.assertGreater(len(set(spans)), 5)
        self.assertAlmostEqual(numpy.mean(spans), round(window * 0.15) / round(round(window * 0.15) / 3))

    def test_lengths_of_t5(self):
        """Of compute_input_and_target_lengths() and random_spans_noise_mask(), as t5 has them."""
        for density, mean in ((0.15, 3.0), (0.15, 8.0), (0.5, 3.0), (0.5, 32.0), (0.25, 5.0)):
            for inputs in (64, 100, 128, 256, 511, 512, 1024, 2048):
                objective = oa.SpanCorruption(range(10000, 9000, -1), end_id=1, density=density, mean_span=mean)
                self.assertEqual(objective.lengths(inputs), lengths_of_t5(inputs, density, mean))
        self.assertEqual(oa.SpanCorruption(range(100), end_id=1).lengths(512), (568, 114))

    def test_middle(self):
        """Each document of a window, with its parts put back, is what it was."""
        found = of(oa.tokens(self.path, LENGTH * 4, objective=oa.FillInMiddle(2001, 2002, 2003, VOCABULARY - 1)), self.socket)
        cut = documents = 0
        for (_, number), fields in found.items():
            ids = numpy.append(fields["input_ids"], fields["labels"][-1])
            numpy.testing.assert_array_equal(ids[1:], fields["labels"])
            whole = self.numbers[number * LENGTH * 4:(number + 1) * LENGTH * 4 + 1].astype("i8")
            made = [part for part in numpy.split(ids, numpy.flatnonzero(ids == VOCABULARY - 1) + 1)][:-1]
            for part, was in zip(made, numpy.split(whole, numpy.flatnonzero(whole == VOCABULARY - 1) + 1)):
                documents += len(part) > 1
                cut += part[0] == 2001
                numpy.testing.assert_array_equal(joined(part[:-1]), was[:-1])
        self.assertLess(abs(cut - documents / 2), 5 * (documents / 4) ** 0.5)


def joined(part):
    """A document whose middle was taken out, in its own order."""
    if len(part) == 0 or part[0] != 2001:
        return part
    suffix, middle = (int(numpy.flatnonzero(part == token)[0]) for token in (2003, 2002))
    return numpy.concatenate([part[1:suffix], part[middle + 1:], part[suffix + 1:middle]])


def t5(window, is_noise, sentinels, end):
    """As transformers' FlaxDataCollatorForT5MLM: create_sentinel_ids() and filter_input_ids() of the mask and of its opposite."""
    def side(mask):
        starts = mask - numpy.roll(mask, 1) * mask
        starts[0] = mask[0]
        ids = numpy.where(starts != 0, numpy.cumsum(starts), starts)
        ids = numpy.where(ids != 0, sentinels - ids, 0) - (mask - starts)
        full = numpy.where(ids != 0, ids, window)
        return numpy.append(full[full >= 0], end)
    return side(is_noise.astype("i8")), side((~is_noise).astype("i8"))


def lengths_of_t5(inputs_length, density, mean):
    def lengths(tokens):
        noise = int(round(tokens * density))
        spans = int(round(noise / mean))
        return tokens - noise + spans + 1, noise + spans + 1
    tokens = inputs_length - 1
    while lengths(tokens + 1)[0] <= inputs_length:
        tokens += 1
    inputs, targets = lengths(tokens)
    if density == 0.5 and targets > inputs:
        tokens -= 1      # and targets, which t5 then fills up where the tokens that are taken out are two fewer
    return tokens, lengths(tokens)[1]


class Life(ObjectiveCase):
    def test_the_same_in_any_batches_and_ranks(self):
        for name, (objective, pack) in self.objectives().items():
            with self.subTest(name):
                data = self.given(objective, pack)
                wanted = of(data, self.socket)
                self.assert_same(of(data, self.socket, batch_size=32, copy=True), wanted)
                self.assert_same({**of(data, self.socket, rank=0, world_size=2), **of(data, self.socket, rank=1, world_size=2)}, wanted)
                other = of(data, self.socket, seed=6)
                self.assertEqual(other.keys(), wanted.keys())
                self.assertTrue(any((other[key]["labels"] != wanted[key]["labels"]).any() for key in wanted))

    def test_resumed(self):
        for name, (objective, pack) in self.objectives().items():
            with self.subTest(name):
                data, found = self.given(objective, pack), {}
                wanted = of(data, self.socket)
                options = {"order": "seeded", "seed": 5, "epochs": 2, "as_": "numpy", "socket": self.socket}
                with oa.Loader(data, batch_size=5, **options) as loader:
                    for step, batch in enumerate(loader):
                        found.update(((batch.epoch, number), {name: field[at].copy() for name, field in batch.items()}) for at, number in enumerate(batch.ids))
                        if step == 3:
                            break
                    state = loader.state_dict()
                with oa.Loader(data, batch_size=9, state=state, **options) as loader:
                    for _ in range(2):
                        for batch in loader:
                            for at, number in enumerate(batch.ids):
                                self.assertNotIn((batch.epoch, number), found)
                                found[batch.epoch, number] = {name: field[at].copy() for name, field in batch.items()}
                self.assert_same(found, wanted)

    def test_carousel_and_shared(self):
        """Jobs with other objectives, or none, have one stream."""
        with oa.Loader(oa.tokens(self.path, LENGTH), batch_size=4, socket=self.socket, as_="numpy", job="plain") as plain, \
                oa.Loader(self.given(*self.objectives()["masked"]), batch_size=4, socket=self.socket, as_="numpy", job="masked") as masked, \
                oa.Loader(self.given(*self.objectives()["middle"]), batch_size=4, socket=self.socket, as_="numpy", job="middle") as middle:
            self.assertIn("shares its stream with 2 other jobs", middle.stats()["shares"])
            windows, seen = self.windows(LENGTH), set()
            for one, other, third in zip(plain, masked, middle, strict=True):
                numpy.testing.assert_array_equal(one["input_ids"], windows[list(one.ids)])
                numpy.testing.assert_array_equal(numpy.where(other["labels"] < 0, other["input_ids"], other["labels"]), windows[list(other.ids)])
                seen.update(other.ids)
            self.assertEqual(seen, set(range(len(windows))))
            self.assertGreater(masked.stats()["batch_mixed"], 0)

    def test_a_sample_several_times_in_an_epoch(self):
        """Each time it is another draw."""
        with oa.Loader(self.given(*self.objectives()["masked"]), batch_size=20, socket=self.socket, as_="numpy", order="sequential", ids=[3] * 20, epochs=1) as loader:
            labels = next(iter(loader))["labels"]
            self.assertEqual(len({row.tobytes() for row in labels}), 20)

    def test_mixes(self):
        """Of samples and of batches; a part that begins anew has other masks then."""
        objective = self.objectives()["masked"][0]
        small = self.work / "small.npy"
        numpy.save(small, self.numbers[:5 * LENGTH + 1])
        wanted = {number: of(oa.tokens(path, LENGTH, objective=objective), self.socket, epochs=4) for number, path in enumerate((self.path, small))}
        for unit in "samples", "batches":
            parts = [oa.Loader(oa.tokens(path, LENGTH, objective=objective), batch_size=5, socket=self.socket, as_="numpy", order="seeded", seed=5)
                     for path in (self.path, small)]
            seen = [{}, {}]
            with oa.mix(parts, weights=[3, 1], batch_size=5, unit=unit, end="longest", epochs=1) as mixed:
                for batch in mixed:
                    for at, (part, number) in enumerate(zip(batch.parts, batch.ids)):
                        epoch = seen[part].get(number, 0)
                        seen[part][number] = epoch + 1
                        if epoch < 4:
                            numpy.testing.assert_array_equal(batch["labels"][at], wanted[part][epoch, number]["labels"])
                            numpy.testing.assert_array_equal(batch["input_ids"][at], wanted[part][epoch, number]["input_ids"])
            self.assertGreater(min(seen[1].values()), 4)
        parts = [oa.Loader(oa.tokens(self.path, LENGTH, objective=objective), socket=self.socket, as_="numpy")
                 for objective in (oa.MaskedLM(MASK, VOCABULARY), oa.MaskedLM(MASK, VOCABULARY, 0.3))]
        with self.assertRaisesRegex(oa.Error, "part 0 of the mix are tokens for MaskedLM"):
            oa.mix(parts)
        for part in parts:
            part.close()

    def test_arrays(self):
        for name, (objective, pack) in self.objectives().items():
            wanted = of(self.given(objective, pack), self.socket, epochs=1)
            options = {"order": "seeded", "seed": 5, "epochs": 1, "batch_size": 8, "socket": self.socket}
            with oa.Loader(self.given(objective, pack), as_="torch", **options) as loader:
                for batch in loader:
                    for at, number in enumerate(batch.ids):
                        for field in batch:
                            numpy.testing.assert_array_equal(batch[field][at].numpy(), wanted[0, number][field])
                    batch["input_ids"].add_(1)      # one's own
            with oa.Loader(self.given(objective, pack), as_="dlpack", **options) as loader:
                batch = next(iter(loader))
                self.assertEqual(list(batch), ["tokens"])
                self.assertEqual(numpy.from_dlpack(batch["tokens"]).size, sum(field.size * 8 for field in wanted[0, batch.ids[0]].values())
                                 - (8 * (LENGTH - 1) if name == "middle" else 0))


class Refused(ObjectiveCase):
    def test_numbers(self):
        for words, make in (("mask_token_id=-1", lambda: oa.MaskedLM(-1, 5)), ("vocab_size=0", lambda: oa.MaskedLM(1, 0)),
                            ("probability=1.5", lambda: oa.MaskedLM(1, 5, 1.5)), ("together at most 1", lambda: oa.MaskedLM(1, 5, mask=0.8, random=0.3)),
                            ("special_ids='a'", lambda: oa.MaskedLM(1, 5, special_ids=["a"])), ("continues has 6 tokens", lambda: oa.MaskedLM(1, 5, continues=[True] * 6)),
                            ("sentinel_ids is empty", lambda: oa.SpanCorruption([])), ("density=0", lambda: oa.SpanCorruption([1], density=0)),
                            ("mean_span=0.5", lambda: oa.SpanCorruption([1], mean_span=0.5)),
                            ("28 spans, and there are 3", lambda: oa.tokens(self.path, 512, objective=oa.SpanCorruption([5, 6, 7]))),
                            ("no room for spans", lambda: oa.tokens(self.path, 512, objective=oa.SpanCorruption(range(999), density=0.9, mean_span=1))),
                            ("leave pack out", lambda: oa.tokens(self.packed, 64, pack=True, objective=oa.SpanCorruption(range(99)))),
                            ("leave one of them out", lambda: oa.tokens(self.packed, 64, loss=True, objective=oa.MaskedLM(1, 5))),
                            ("objective='mlm'", lambda: oa.tokens(self.packed, 64, objective="mlm")),
                            ("prefix_id=None", lambda: oa.FillInMiddle(None, 1, 2)), ("rate=0", lambda: oa.FillInMiddle(1, 2, 3, rate=0))):
            with self.subTest(words), self.assertRaises(oa.errors.ArgumentError) as caught:
                make()
            self.assertIn(words, str(caught.exception))

    def test_what_is_no_window(self):
        """accessd's library says so, whoever asks."""
        numpy.save(self.work / "floats.npy", numpy.zeros((50, 4), "f4"))
        rows = oa.rows.Rows(self.work / "floats.npy", {}, objective=oa.MaskedLM(MASK, VOCABULARY))
        with self.assertRaisesRegex(oa.Error, "no windows of these"):
            oa.Loader(rows, batch_size=4, socket=self.socket, as_="numpy")
        for name, value, words in (("kind", 9, "kind is 9"), ("probability", 2.0, "probability is 2"), ("mask_token", -3, "mask_token is -3"), ("vocabulary", 0, "vocabulary is 0"),
                                   ("colour", 1, "no option \"colour\"")):
            objective = oa.MaskedLM(MASK, VOCABULARY)
            request = {**objective.request(), name: value}
            object.__setattr__(objective, "request", lambda request=request: request)
            with self.subTest(name), self.assertRaisesRegex((oa.Error, TypeError), words):
                oa.Loader(oa.tokens(self.path, 64, objective=objective), socket=self.socket, as_="numpy")

    def test_words(self):
        def tokenizer(*texts, special=()):
            return types.SimpleNamespace(get_vocab=lambda: {text: at for at, text in enumerate(texts)}, all_special_tokens=special)
        self.assertEqual(oa.words(tokenizer("[CLS]", "play", "##ing", "##", special=("[CLS]",))), [False, False, True, True])
        self.assertEqual(oa.words(tokenizer("<s>", "Ġplay", "ing", special=("<s>",))), [False, False, True])
        self.assertEqual(oa.words(tokenizer("</s>", "▁play", "ing")), [False, False, True])
        with self.assertRaisesRegex(oa.Error, "no sign of words"):
            oa.words(tokenizer("a", "b"))


def pair(row):
    answers = [row["chosen"], row["rejected"]]
    return {"input_ids": [row["prompt"] + answer for answer in answers],
            "completion_mask": [[0] * len(row["prompt"]) + [1] * len(answer) for answer in answers]}


class Pairs(ObjectiveCase):
    """Of preferences, as doc/python.md has them: what TRL's DataCollatorForPreference makes of the same rows."""

    def test_pairs(self):
        draw = random.Random(1)
        rows = [{name: draw.choices(range(1, 500), k=draw.randrange(1, 30)) for name in ("prompt", "chosen", "rejected")} for _ in range(40)]
        path = self.work / "pairs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

        most = (2, 64)
        pairs = oa.from_jsonl(path, transform=pair, random=False, ragged={"input_ids": most, "completion_mask": most})
        with oa.Loader(pairs, batch_size=8, socket=self.socket, as_="torch", epochs=1) as loader:
            for batch in loader:
                made = {name: batch[name].padded().transpose(0, 1).flatten(0, 1) for name in batch}
                lengths = batch["input_ids"].inner.T.reshape(-1)
                made["attention_mask"] = numpy.arange(made["input_ids"].shape[1]) < lengths[:, None]
                wanted = collated([rows[number] for number in batch.ids])
                self.assertEqual(made.keys(), wanted.keys())
                for name, field in made.items():
                    numpy.testing.assert_array_equal(field, wanted[name], name)


def collated(rows):
    """By TRL itself where it is installed."""
    try:
        from trl.trainer.dpo_trainer import DataCollatorForPreference
        return DataCollatorForPreference(pad_token_id=0)([{f"{name}_ids": ids for name, ids in row.items()} for row in rows])
    except ImportError:
        both = [(row["prompt"], row[name]) for name in ("chosen", "rejected") for row in rows]
    longest = max(len(prompt) + len(answer) for prompt, answer in both)
    filled = [(prompt, answer, [0] * (longest - len(prompt) - len(answer))) for prompt, answer in both]
    return {"input_ids": [prompt + answer + rest for prompt, answer, rest in filled],
            "attention_mask": [[1] * len(prompt + answer) + rest for prompt, answer, rest in filled],
            "completion_mask": [[0] * len(prompt) + [1] * len(answer) + rest for prompt, answer, rest in filled]}


class BesideTransformers(ObjectiveCase):
    """The collator's own code on the same windows, with the choices that were drawn here."""

    def test_masked(self):
        try:
            import torch
            from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast
            from tokenizers import Tokenizer, models
        except ImportError:
            self.skipTest("transformers is not installed: not tested: its collator")
        vocabulary = {f"w{number}": number for number in range(VOCABULARY)} | {"[PAD]": VOCABULARY, "[CLS]": VOCABULARY + 1, "[SEP]": VOCABULARY + 2, "[MASK]": MASK}
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocabulary, "[PAD]")), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
        objective = oa.MaskedLM(MASK, len(tokenizer), special_ids=tokenizer.all_special_ids)
        found = of(oa.tokens(self.path, LENGTH, objective=objective), self.socket, epochs=1)
        ids, labels = (torch.tensor(numpy.stack([fields[name] for fields in found.values()])) for name in ("input_ids", "labels"))
        windows = torch.tensor(self.windows(LENGTH)[[number for _, number in found]])
        chosen, differs = labels >= 0, ids != windows
        draws = iter([chosen.float(), (ids == MASK).float(), (differs & (ids != MASK)).float()])
        collator = DataCollatorForLanguageModeling(tokenizer)
        special = torch.isin(windows, torch.tensor(tokenizer.all_special_ids))
        with unittest.mock.patch.object(torch, "bernoulli", lambda p, **kwargs: next(draws)), \
                unittest.mock.patch.object(torch, "randint", lambda *args, **kwargs: ids):
            inputs, wanted = collator.torch_mask_tokens(windows.clone(), special)
        self.assertTrue(torch.equal(inputs, ids) and torch.equal(wanted, labels))
        torch.manual_seed(1)
        theirs, mask = collator.torch_mask_tokens(windows.clone(), special)
        for ours, others in ((chosen, mask >= 0), (ids == MASK, theirs == MASK), (differs, theirs != windows)):
            count, share = ours.numel(), others.float().mean().item()
            self.assertLess(abs(ours.sum().item() - others.sum().item()), 7 * (2 * count * share * (1 - share)) ** 0.5)


if __name__ == "__main__":
    unittest.main()
