# SPDX-License-Identifier: Apache-2.0
"""Samples that are chosen anew between epochs: which come, how often, in which bytes, and what a state says of it."""

import array
import collections
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import unittest
from unittest import mock

import numpy as np

import oneaccess as oa
from oneaccess import _core, choices, transforms
from oneaccess.errors import ArgumentError, StateError
from support import BUILD, SAMPLES, DaemonCase

PIPELINE, CALM = oa.imagenet_train(16, dtype="uint8"), oa.imagenet_eval(16, dtype="uint8")
SEEDED = {"order": "seeded", "seed": 7}
WAYS = ((PIPELINE, {}), (CALM, {"order": "any"}), (PIPELINE, SEEDED), (PIPELINE, {"shuffle": False}), (PIPELINE, {"classes": ["class_0000", "class_0002"]}))


def batch_of(batch):
    """All that a job sees of it."""
    images, labels = batch
    return batch.epoch, batch.step, batch.is_last, tuple(batch.ids), np.asarray(images).tobytes(), np.asarray(labels).tobytes()


class Case(DaemonCase):
    def open(self, pipeline=PIPELINE, **options):
        return self.loader(pipeline, 16, **{"as_": "numpy", **options})

    def epoch(self, loader):
        """Its number, ids as they came, and how many batches, which is known when it begins."""
        loop = iter(loader)
        steps = len(loader)
        batches = [batch_of(batch) for batch in loop]
        self.assertEqual(len(batches), steps)
        number, = {batch[0] for batch in batches}
        return number, [each for batch in batches for each in batch[3]], len(batches)

    def check(self, loader, number, ids):
        """The next epoch, exactly."""
        said, came, _ = self.epoch(loader)
        self.assertEqual((said, sorted(came)), (number, sorted(ids)))
        return came


class EpochsTest(Case):
    def test_each_epoch_has_what_was_chosen_for_it(self):
        draw = random.Random(3)
        for pipeline, options in WAYS:
            with self.subTest(**options):
                loader = self.open(pipeline, **options)
                whole = range(SAMPLES)
                if "classes" in options:
                    wanted = [loader.class_to_idx[name] for name in options["classes"]]
                    whole = [number for number, label in enumerate(loader.targets) if label in wanted]
                self.check(loader, 0, whole)
                for number in range(1, 6):
                    ids = draw.sample(range(SAMPLES), draw.choice((17, 100, 239)))
                    loader.choose(ids=np.array(ids, np.int32))
                    left = sorted(set(ids) & set(whole))
                    self.assertEqual((len(loader), len(loader.dataset)), (-(-len(left) // 16), len(left)))
                    came = self.check(loader, number, left)
                    if options.get("shuffle") is False:
                        self.assertEqual(came, ids)
                self.check(loader, 6, left)     # until another one
                loader.choose()
                self.check(loader, 7, whole)

    def test_before_the_first_epoch(self):
        for pipeline, options in WAYS[:4]:
            with self.subTest(**options):
                loader = self.open(pipeline, **options)
                loader.choose(ids=range(5))
                loader.choose(ids=range(9))
                self.check(loader, 0, range(9))
        loader = self.open(**SEEDED, ids=range(30))
        loader.choose()
        self.check(loader, 0, range(SAMPLES))

    def test_draws_are_those_of_a_loader_with_these_weights(self):
        """In each epoch, by its number: with repeats and without."""
        weights = np.arange(SAMPLES) % 5 * 0.5
        for drawn in ({"samples": 1000, "replacement": True}, {"samples": 100}, {}):
            with self.subTest(**drawn):
                other, loader = self.open(weights=weights, **SEEDED, **drawn), self.open(**SEEDED)
                wanted = [[batch_of(batch) for batch in other] for _ in range(3)]
                self.check(loader, 0, range(SAMPLES))
                loader.choose(weights=weights, **drawn)
                self.assertEqual([[batch_of(batch) for batch in loader] for _ in range(2)], wanted[1:])
                came = collections.Counter(each for batch in wanted[1] for each in batch[3])
                self.assertEqual(sum(came.values()), drawn.get("samples", SAMPLES * 4 // 5))
                self.assertEqual([number for number in came if number % 5 == 0], [])
                if "replacement" not in drawn:
                    self.assertEqual(set(came.values()), {1})
        loader.choose(ids=[3, 5, 7], weights=[1, 1, 0], samples=50, replacement=True)
        self.assertEqual(set(self.epoch(loader)[1]), {3, 5})

    def test_shares_are_the_weights(self):
        """Of 20,000 draws a share differs from its weight by less than five standard deviations; the seed is fixed."""
        loader, count = self.open(CALM, **SEEDED), 20_000
        next(iter(loader))
        weights = [float(1 + (number * 7) % 4) for number in range(SAMPLES)]
        loader.choose(weights=weights, samples=count, replacement=True)
        came = collections.Counter(self.epoch(loader)[1])
        for weight in range(1, 5):
            share = sum(of for of in weights if of == weight) / sum(weights)
            drawn = sum(came[number] for number, of in enumerate(weights) if of == weight)
            self.assertLess(abs(drawn - share * count), 5 * (count * share * (1 - share)) ** 0.5)

    def test_a_choice_in_the_middle_is_for_the_next_epoch(self):
        for pipeline, options in WAYS[:4]:
            with self.subTest(**options):
                loader = self.open(pipeline, **options)
                came = []
                for batch in loader:
                    came += batch.ids
                    loader.choose(ids=range(batch.step + 10, 100))     # the last one counts
                    if not batch.is_last:
                        self.assertEqual((len(loader), len(loader.dataset)), (15, SAMPLES))
                self.assertEqual(sorted(came), list(range(SAMPLES)))
                self.check(loader, 1, range(24, 100))
                next(iter(loader))
                loader.choose(ids=range(50))
                next(iter(loader))                                      # of the fourth epoch, which is left, too
                loader.choose(ids=range(70))
                self.check(loader, 4, range(70))
                begun = iter(loader)                                    # none of it is delivered yet
                loader.choose(ids=range(33))
                self.assertEqual(sorted(each for batch in begun for each in batch.ids), list(range(33)))
                self.check(loader, 6, range(33))

    def test_the_number_of_epochs_and_short_batches(self):
        loader = self.open(epochs=3, drop_last=True, **SEEDED)
        for number, count in enumerate((SAMPLES, 40, 17)):
            said, came, batches = self.epoch(loader)
            self.assertEqual((said, len(set(came)), batches), (number, count // 16 * 16, count // 16))
            loader.choose(ids=range((40, 17, 16)[number]))
        with self.assertRaisesRegex(oa.Error, "all 3 epochs are delivered"):
            next(iter(loader))
        loader = self.open(drop_last=True)
        with self.assertRaisesRegex(ArgumentError, "an epoch has 15 samples, fewer than one batch of 16"):
            loader.choose(ids=range(15))
        self.check(loader, 0, range(SAMPLES))

    def test_what_the_program_changes_is_not_the_choice(self):
        weights, ids = np.ones(SAMPLES), array.array("q", range(48))
        loader = self.open(weights=weights, **SEEDED)
        weights[:] = 0
        next(iter(loader))
        self.check(loader, 1, range(SAMPLES))       # opened again behind the epoch that was left
        loader.choose(ids=ids)
        ids[0] = 239
        next(iter(loader))
        self.check(loader, 3, range(48))

    def test_ids_say_whose_losses_they_are(self):
        losses, torch = np.zeros(SAMPLES), None
        if importlib.util.find_spec("torch"):
            import torch
            also = torch.zeros(SAMPLES)
        for images, labels in (loader := self.open()):
            pass
        for batch in loader:
            losses[batch.ids] = np.arange(len(batch.ids)) + 100 * batch.step
            if torch is not None:
                also[batch.ids] = torch.arange(len(batch.ids)).float() + 100 * batch.step
            self.assertEqual(list(losses[batch.ids]), [100 * batch.step + at for at in range(len(batch.ids))])
        self.assertTrue(torch is None or (also.numpy() == losses).all())

    def test_the_same_choice_again_costs_nothing(self):
        for options in ({}, {"ids": range(100)}):
            loader = self.open(**options)
            ids = np.array(options.get("ids", range(SAMPLES)))
            with mock.patch.object(_core, "Stream", side_effect=AssertionError("it was opened")):
                loader.choose(ids=options.get("ids"))
                self.check(loader, 0, ids)
                loader.choose(ids=options.get("ids"))
            next(iter(loader))
            loader.choose(ids=range(7))
            loader.choose(ids=options.get("ids"))       # after all
            self.assertNotIn("next", loader.state_dict())
            self.check(loader, 2, ids)

    def test_a_recording_goes_on(self):
        path = str(self.work / "recorded")
        loader = self.open(record=path)
        wanted = [[batch_of(batch) for batch in loader]]
        loader.choose(ids=range(40))
        wanted += [[batch_of(batch) for batch in loader]]
        loader.close()
        again = self.open(replay=path)
        self.assertEqual([[batch_of(batch) for batch in again] for _ in range(2)], wanted)


class RightTest(Case):
    def test_what_is_wrong_is_said_and_changes_nothing(self):
        usual, seeded = self.open(), self.open(**SEEDED)
        ones = [1.0] * SAMPLES
        for said, words in ((dict(ids=[]), "ids is empty"), (dict(ids=np.array([], np.int64)), "ids is empty"), (dict(ids=[3, SAMPLES]), "ids.1. is 240: the data set has samples 0 to 239"),
                            (dict(ids=[-1]), "ids.0. is -1"), (dict(ids=np.arange(SAMPLES) < 5), "ids has booleans"),
                            (dict(weights=ones[1:]), "there are 239 weights, and the data set has 240 samples"),
                            (dict(ids=[1, 2], weights=[1.0]), "there are 1 weights, and there are 2 ids"),
                            (dict(weights=[float("nan"), *ones[1:]]), "weights.0. is nan"), (dict(weights=[*ones[1:], -0.5]), "weights.239. is -0.5"),
                            (dict(weights=[float("inf"), *ones[1:]]), "weights.0. is inf"), (dict(weights=[0.0] * SAMPLES), "all 240 weights are 0"),
                            (dict(weights=[1.0, *[0.0] * 239], samples=2), "samples=2 of 1 that have a weight"),
                            (dict(weights=ones, samples=0), "samples is 0"), (dict(samples=5), "samples= goes with weights="),
                            (dict(ids=[1], replacement=True), "replacement= goes with weights=")):
            with self.subTest(**{name: str(value)[:20] for name, value in said.items()}):
                with self.assertRaisesRegex(ArgumentError, words):
                    seeded.choose(**said)
        with self.assertRaisesRegex(ArgumentError, "ids.2. is 7, which came before"):
            usual.choose(ids=[7, 3, 7])
        with self.assertRaisesRegex(ArgumentError, "weights beside an order.*order=\"seeded\""):
            usual.choose(weights=ones)
        for loader in (usual, seeded):
            self.assertNotIn("chosen", loader.state_dict())
            self.check(loader, 0, range(SAMPLES))
            loader.choose(ids=range(20))
            with self.assertRaises(ArgumentError):
                loader.choose(ids=[SAMPLES])
            self.check(loader, 1, range(20))

    def test_weights_are_counted_in_the_part_that_remains(self):
        """Of classes, a split and a filter: by choose() and by the constructor."""
        ones, filtered = np.ones(SAMPLES), oa.Compose([oa.imagenet_train(16, dtype="uint8"), transforms.Filter(keep=[1])])
        for pipeline, options in ((PIPELINE, {"split": (0, 0.5, 1)}), (PIPELINE, {"classes": ["class_0001"]}), (filtered, {})):
            with self.subTest(**options):
                loader = self.open(pipeline, **SEEDED, **options)
                _, part, _ = self.epoch(loader)
                gone = np.ones(SAMPLES)
                gone[part] = 0
                few = np.ones(SAMPLES)
                few[part[5:]] = 0
                for said, words in (({"weights": ones, "samples": 200}, f"samples is 200, but only {len(part)} of"), ({"weights": few, "samples": 6}, "only 5 of"),
                                    ({"weights": gone}, f"weights are 0 for all {len(part)} samples"),
                                    ({"weights": gone, "samples": 50, "replacement": True}, f"weights are 0 for all {len(part)} samples")):
                    with self.assertRaisesRegex(ArgumentError, words):
                        loader.choose(**said)
                    with self.assertRaisesRegex(ArgumentError, words):
                        len(self.open(pipeline, **SEEDED, **options, **said))
                self.check(loader, 1, part)
                loader.choose(weights=few, samples=5)
                self.check(loader, 2, part[:5])
                loader.choose(weights=ones)
                self.check(loader, 3, part)

    def test_what_are_no_numbers_is_told(self):
        loader = self.open(**SEEDED)
        for said, words in ((dict(ids=np.arange(6).reshape(3, 2)), "one dimension"), (dict(ids=np.array(5)), "ids is 5"), (dict(ids=np.arange(5)[:, None]), "one dimension"),
                            (dict(ids=(number < 5 for number in range(SAMPLES))), "ids has booleans"), (dict(ids=[np.True_, np.False_]), "ids has booleans"),
                            (dict(ids=np.arange(5.0)), "ids is no list"), (dict(ids=5), "ids is 5"), (dict(ids=[None]), "ids is no list"), (dict(ids="abc"), "ids is no list"),
                            (dict(ids=np.array([1 << 63], np.uint64)), "ids is no list"), (dict(weights=np.ones((120, 2))), "weights is no list"),
                            (dict(weights=["a"] * SAMPLES), "weights is no list"), (dict(weights=np.ones(SAMPLES), replacement="no"), "replacement is 'no'")):
            with self.subTest(words, **{name: str(value)[:20] for name, value in said.items()}):
                with self.assertRaisesRegex(ArgumentError, words):
                    loader.choose(**said)
        self.check(loader, 0, range(SAMPLES))

    def test_a_choice_in_the_middle_is_refused_once(self):
        """By what is known then; what accessd says of it later is said once, too."""
        loader = self.open(drop_last=True)
        next(iter(loader))
        with self.assertRaisesRegex(ArgumentError, "an epoch has 5 samples, fewer than one batch of 16"):
            loader.choose(ids=range(5))
        self.check(loader, 1, range(SAMPLES))
        loader = self.open(classes=["class_0001"])
        _, part, _ = self.epoch(loader)
        next(iter(loader))
        loader.choose(ids=sorted(set(range(SAMPLES)) - set(part)))
        with self.assertRaises(ArgumentError):
            iter(loader)
        self.assertNotIn("next", loader.state_dict())
        self.check(loader, 2, part)

    def test_no_choice_is_left_behind_the_last_epoch(self):
        loader = self.open(epochs=1)
        for batch in loader:
            loader.choose(ids=[1])
        self.assertNotIn("next", loader.state_dict())

    def test_what_accessd_refuses_changes_nothing(self):
        """None of the ids is of the class; and it is gone for a while."""
        loader = self.open(classes=["class_0001"])
        number, ids, _ = self.epoch(loader)
        others = sorted(set(range(SAMPLES)) - set(ids))
        with self.assertRaises(oa.Error):
            loader.choose(ids=others)
        self.check(loader, 1, ids)
        with mock.patch.object(_core, "Stream", side_effect=oa.errors.UnreachableError("nobody is there")):
            with self.assertRaisesRegex(oa.Error, "nobody is there"):
                loader.choose(ids=ids[:20])
        self.check(loader, 2, ids)
        next(iter(loader))
        loader.choose(ids=ids[:20])
        with mock.patch.object(_core, "Stream", side_effect=oa.errors.UnreachableError("nobody is there")):
            with self.assertRaisesRegex(oa.Error, "nobody is there"):
                iter(loader)
        self.check(loader, 4, ids[:20])

    def test_what_has_no_meaning_is_refused(self):
        path = str(self.work / "once")
        recorded = self.open(record=path, epochs=1)
        self.epoch(recorded)
        recorded.close()
        one, two = self.open(**SEEDED), self.open(**SEEDED)
        one.choose(ids=range(32))
        mixed = oa.mix([one, two])
        self.assertEqual(sum(batch.parts.tolist().count(0) for batch in mixed), 32)
        for loader, words in ((self.open(replay=path), "beside replay="), (self.open(refresh="epoch"), "beside refresh="), (two, "a part of a mix")):
            with self.assertRaisesRegex(ArgumentError, words):
                loader.choose(ids=[1])
        between = self.open(**SEEDED)
        next(iter(between))
        between.choose(ids=[1, 2])
        with self.assertRaisesRegex(ArgumentError, "part 0 of the mix is in the middle of an epoch"):
            oa.mix([between])


class StatesTest(Case):
    """The program chooses before its second and its fourth epoch, and in the middle of its second one."""

    WEIGHTS = [1.0 + number % 3 for number in range(SAMPLES)]

    def run_program(self, loader, states=None, epochs=5, weights=WEIGHTS):
        """From where the loader is. Batches; states gets one behind each, and of each beginning."""
        came, chosen = [], choices.place_of(loader._open().state())
        begun = chosen.epoch if chosen.delivered else -1
        for number in range(chosen.epoch, epochs):
            if number == 1 and number != begun:
                loader.choose(ids=range(30, 90))
            if number == 3 and number != begun:
                if weights:
                    loader.choose(weights=weights, samples=50)
                else:
                    loader.choose(ids=[*range(200, 230), 201])
            for batch in loader:
                came.append(batch_of(batch))
                if batch.epoch == 1 and batch.step == 1:
                    loader.choose(ids=range(60, 110))
                if states is not None:
                    states.append((len(came), json.dumps(loader.state_dict())))
        return came

    def test_each_state_goes_on_in_equal_bytes(self):
        for options in ({"ids": range(40), **SEEDED}, {"ids": range(40), "shuffle": False}):
            with self.subTest(**options):
                states, weights = [], self.WEIGHTS if "seed" in options else None
                came = self.run_program(self.open(epochs=5, **options), states, weights=weights)
                self.assertEqual([batch[0] for batch in came].count(2), 4)
                for at, state in states[::1 if weights else 5]:
                    again = self.open(epochs=5, **options)
                    again.load_state_dict(json.loads(state))
                    self.assertEqual(self.run_program(again, weights=weights), came[at:], at)
                    again.close()
                at, state = states[len(states) // 2]
                again = self.open(epochs=5, ids=range(40), state=json.loads(state))    # which says the order
                self.assertEqual(self.run_program(again, weights=weights), came[at:])

    def test_the_usual_order_goes_on_with_the_rest(self):
        loader, seen, state = self.open(), [], None
        self.check(loader, 0, range(SAMPLES))
        loader.choose(ids=range(100, 200))
        for batch in loader:
            seen += batch.ids
            if batch.step == 2:
                loader.choose(ids=range(40))
                state = loader.state_dict()
                break
        again = self.open(state=state)
        rest = [each for batch in again for each in batch.ids]
        self.assertEqual(sorted(seen + rest), list(range(100, 200)))
        self.check(again, 2, range(40))
        self.check(loader, 2, range(40))
        begin = self.open(state=loader.state_dict())
        self.assertEqual(len(begin), 3)
        begin.choose()
        self.check(begin, 3, range(SAMPLES))

    def test_a_state_has_the_choice_in_the_place_of_the_program_s(self):
        loader = self.open(ids=range(64), **SEEDED)
        first = loader.state_dict()
        self.assertEqual(set(first), {"oneaccess", "token"})
        self.check(loader, 0, range(64))
        loader.choose(ids=range(64, 96))
        self.check(loader, 1, range(64, 96))
        later = loader.state_dict()
        loader.load_state_dict(first)
        self.check(loader, 0, range(64))
        loader.load_state_dict(later)
        self.check(loader, 2, range(64, 96))

    def test_other_ids_than_the_state_s_are_told(self):
        loader = self.open(**SEEDED)
        loader.choose(ids=range(64))
        next(iter(loader))
        state = loader.state_dict()
        other = choices.said(choices.made(range(1, 65), None, None, False))
        for chosen in (other, None):
            with self.assertRaisesRegex(StateError, "of a job with"):
                self.open(state={**state, "chosen": chosen})
        for name in ("chosen", "next"):
            for damaged in (7, {"ids": "?"}, {"ids": "QUJD"}, {"ids": 5}, {"samples": -1}, {"samples": 1.5}, {"sampler_flags": 8}):
                with self.assertRaisesRegex(StateError, "the state is damaged"):
                    self.open(state={**state, name: damaged})

    def test_a_state_that_is_refused_changes_nothing(self):
        loader, other = self.open(**SEEDED), self.open(**SEEDED)
        next(iter(other))
        state = other.state_dict()
        self.check(loader, 0, range(SAMPLES))
        for damaged in ({"token": "?"}, {"begins": -1}, {"chosen": {"ids": "?"}}, {"next": 7}):
            with self.assertRaisesRegex(StateError, "the state is damaged"):
                loader.load_state_dict({**state, **damaged})
        self.check(loader, 1, range(SAMPLES))

    def test_rates_are_of_what_was_opened_last(self):
        loader = self.open(**SEEDED)
        self.check(loader, 0, range(SAMPLES))
        loader.choose(ids=range(20))
        self.assertEqual([loader.stats()[name] for name in ("samples", "seconds", "samples_per_second", "waiting")], [0, 0, 0, 0])

    def test_accessd_is_killed_between(self):
        """In the middle of an epoch, behind its last batch, and before a choice."""
        states = []
        want = self.run_program(self.open(epochs=5, **SEEDED), states)
        loader, came = self.open(epochs=5, **SEEDED), []
        for number in range(5):
            if number == 1:
                self.kill()
                self.start()
                loader.choose(ids=range(30, 90))
            if number == 3:
                loader.choose(weights=self.WEIGHTS, samples=50)
                self.kill()
                self.start()
            for batch in loader:
                came.append(batch_of(batch))
                if number == 1 and batch.step == 1:
                    loader.choose(ids=range(60, 110))
                    self.kill()
                    self.start()
        self.assertEqual(came, want)


class SharingTest(Case):
    settings = {"cache_size": "64M", "cache_point": "decoded"}

    def test_what_two_choices_have_in_common_is_decoded_once(self):
        subprocess.run([BUILD / "tools/access-ctl", "--socket", self.socket, "cache", "warm", self.data, "--form", "decoded", "--pipeline",
                        PIPELINE.json], check=True, capture_output=True)
        loaders, begun = [self.open(), self.open(**SEEDED)], self.read()
        for number in range(4):
            for loader, ids in zip(loaders, (range(0, 160, 1 + number % 2), range(80 - number, SAMPLES))):
                loader.choose(ids=ids)
                self.check(loader, number, ids)
        # Some are read once more to measure what reading costs.
        self.assertLess(self.read() - begun, 4 * 2 * SAMPLES // 10)

    def read(self):
        return json.loads(_core.Client(self.socket).status())["node"]["samples_read"]


RANK = """
import os, sys
import numpy as np
import torch
import oneaccess as oa
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]), world_size=2)
rank = int(sys.argv[3])
loader = oa.Loader(sys.argv[1], oa.imagenet_train(16), 10, timeout=600, epochs=3, as_="numpy", **eval(sys.argv[4]))
ids = []
for epoch in range(3):
    ids.append([])
    for batch in loader:
        ids[epoch] += batch.ids
        torch.distributed.barrier()
    exec(sys.argv[5])
print(ids, flush=True)
loader.close()
"""


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch")
class RanksTest(Case):
    runs = 0

    def run_ranks(self, options, does, program=RANK):
        """What each of two ranks had, epoch by epoch; does() is behind each."""
        RanksTest.runs += 1
        ranks = [subprocess.Popen([sys.executable, "-c", program, self.data, self.work / f"meet{self.runs}", str(rank), repr(options), does], text=True,
                                  env={**os.environ, "ACCESS_SOCKET": self.socket}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                 for rank in range(2)]
        said = [rank.communicate(timeout=1800)[0] for rank in ranks]
        return [json.loads(re.findall(r"^\[\[.*\]\]$", text, re.MULTILINE)[0]) if rank.returncode == 0 else text for rank, text in zip(ranks, said)]

    def test_ranks_choose_alike(self):
        for options in ({}, SEEDED, {"shuffle": False}):
            with self.subTest(**options):
                one, two = self.run_ranks(options, "loader.choose(ids=range(epoch, 60 + 10 * epoch))")
                wanted = [range(SAMPLES), range(60), range(1, 70)]
                self.assertEqual([sorted(mine + theirs) for mine, theirs in zip(one, two)], [list(ids) for ids in wanted])

    def test_ranks_that_come_behind_the_loader_compare(self):
        lines = RANK.splitlines(keepends=True)
        begin, make = (next(at for at, line in enumerate(lines) if line.startswith(word)) for word in ("torch.dist", "loader ="))
        late = "".join([*lines[:begin], *lines[begin + 1:make + 1], lines[begin], "loader.choose(ids=range(60 + rank))\n", *lines[make + 1:]])
        for text in self.run_ranks(SEEDED, "", late):
            self.assertRegex(text, "rank 0 and rank 1 choose other ids, weights or samples")

    def test_ranks_that_choose_otherwise_are_told(self):
        for does, words in (("loader.choose(ids=range(60 + rank))", "rank 0 and rank 1 choose other ids, weights or samples"),
                            ("loader.choose(ids=[240] if rank else [1])", "rank 1 cannot choose, so no rank does: ids.0. is 240|ids.0. is 240: the data")):
            for text in self.run_ranks(SEEDED, does):
                self.assertRegex(text, words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
