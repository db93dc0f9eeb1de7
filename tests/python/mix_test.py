# SPDX-License-Identifier: Apache-2.0
"""Mixes: exact shares, each part's samples once in each of its own epochs, resumed and among ranks, too."""

import json
import subprocess
import sys
import types
import unittest
import unittest.mock
from collections import Counter

import oneaccess as oa
from support import BUILD, SAMPLES, DaemonCase

OTHERS = 90
BATCH = 20


class MixTest(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = str(cls.work / "other")
        subprocess.run([BUILD / "tests/scenarios/pictures", cls.other, str(OTHERS), "2", "64"],
                       check=True, stdout=subprocess.DEVNULL)

    def part(self, data, size=32, **kwargs):
        kwargs = {"as_": "numpy", "socket": self.socket, "timeout": 600, **kwargs}
        loader = oa.Loader(data, kwargs.pop("pipeline", oa.imagenet_eval(size)), **kwargs)
        self.addCleanup(loader.close)
        return loader

    def mixed(self, weights=(7, 3), batch_size=BATCH, parts=None, part=None, **kwargs):
        parts = parts or [self.part(self.data, **(part or {})), self.part(self.other, **(part or {}))]
        made = oa.mix(parts, weights, batch_size, timeout=600, **kwargs)
        self.addCleanup(made.close)
        return made

    def test_shares_are_exact(self):
        """After every batch a part has its share but for less than one sample, and gives each of its own once before it
        gives one again, over the mix's epochs."""
        seen = [Counter(), Counter()]
        mixed = self.mixed()
        for epoch in range(2):
            had = Counter()
            for batch in mixed:
                self.assertEqual((batch.epoch, len(batch.parts)), (epoch, len(batch.ids)))
                had.update(batch.parts)
                self.assertLess(abs(had[0] - 0.7 * had.total()), 1)
                for part, index in zip(batch.parts, batch.ids):
                    seen[part][index] += 1
            self.assertTrue(batch.is_last)
        for counts, samples in zip(seen, (SAMPLES, OTHERS)):
            times = {counts[index] for index in range(samples)}
            self.assertLessEqual(max(times) - min(times), 1)
            self.assertLess(max(counts), samples)

    def test_pictures_are_the_parts_own(self):
        pictures = [{}, {}]
        for of, data in zip(pictures, (self.data, self.other)):
            for batch in self.part(data, batch_size=30):
                for index, image, label in zip(batch.ids, *batch):
                    of[index] = (image.copy(), int(label))
        for batch in self.mixed():
            for part, index, image, label in zip(batch.parts, batch.ids, *batch):
                self.assertTrue((pictures[part][index][0] == image).all())
                self.assertEqual(pictures[part][index][1], label)

    def test_the_ends_of_an_epoch(self):
        for end, part, samples in (("first", 1, OTHERS), ("all", 0, SAMPLES), ("longest", 0, SAMPLES)):
            counts = Counter()
            for batch in self.mixed((1, 1), end=end):
                counts.update(batch.parts)
            self.assertEqual(counts[part], samples, end)
            self.assertLessEqual(abs(counts[0] - counts[1]), 1)

    def test_whole_batches_take_turns(self):
        turns = []
        for batch in self.mixed((2, 1), unit="batches", drop_last=True):
            self.assertEqual((len(batch.ids), len(set(batch.parts))), (BATCH, 1))
            turns.append(batch.parts[0])
        self.assertEqual(Counter(turns[:6]), {0: 4, 1: 2})

    def test_batches_are_the_jobs_own(self):
        first, *_ = [batch for batch in self.mixed()]
        images = first[0]
        self.assertTrue(images.flags.writeable)
        images[:] = 0

    def test_it_goes_on_exactly(self):
        for unit in ("samples", "batches"):
            seeded = {"order": "seeded", "seed": 5}
            whole = [(list(batch.parts), list(batch.ids)) for batch in self.mixed(part=seeded, unit=unit, seed=3)]
            mixed = self.mixed(part=seeded, unit=unit, seed=3)
            got = [(list(batch.parts), list(batch.ids)) for _, batch in zip(range(4), mixed)]
            state = json.loads(json.dumps(mixed.state_dict()))
            mixed.close()
            again = self.mixed(part=seeded, unit=unit, seed=3, state=state)
            got += [(list(batch.parts), list(batch.ids)) for batch in again]
            self.assertEqual(got, whole)

    def test_a_state_is_loaded_into_another(self):
        seeded = {"order": "seeded", "seed": 5}
        mixed = self.mixed(part=seeded)
        loop = iter(mixed)
        next(loop)
        state = mixed.state_dict()
        rest = [list(batch.ids) for batch in loop]
        mixed.load_state_dict(state)
        self.assertEqual([list(batch.ids) for batch in mixed], rest)
        with self.assertRaisesRegex(oa.Error, "another loop"):
            next(loop)

    def test_a_loop_that_was_left_goes_on(self):
        mixed = self.mixed((1, 1))
        count = 0
        for batch in mixed:
            count += len(batch.ids)
            break
        for batch in mixed:
            count += len(batch.ids)
        self.assertTrue(batch.is_last)
        self.assertLessEqual(abs(count - 2 * OTHERS), 1)

    def test_ranks_have_each_their_own(self):
        seen = [Counter(), Counter()]
        part = {"order": "seeded", "seed": 1, "world_size": 2, "job": "mixed ranks"}
        mixes = [self.mixed((2, 1), parts=[self.part(data, rank=rank, **part) for data in (self.data, self.other)])
                 for rank in (0, 1)]
        for mixed in mixes:
            for batch in mixed:
                for number, index in zip(batch.parts, batch.ids):
                    seen[number][index] += 1
        self.assertEqual({count for counts in seen for count in counts.values()}, {1})
        self.assertGreater(len(seen[0]), SAMPLES // 2)

    def test_ranks_that_come_up_later(self):
        def gather(everybody, mine):
            everybody[:] = [(rank, *mine[1:]) for rank in range(2)]
        mixes = [self.mixed((2, 1), part={"order": "seeded", "seed": 1, "job": "late ranks"}) for _ in (0, 1)]
        seen = []
        for rank, mixed in enumerate(mixes):
            distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda rank=rank: rank,
                                                get_world_size=lambda: 2, all_gather_object=gather)
            with unittest.mock.patch.dict(sys.modules, {"torch.distributed": distributed}):
                loop = iter(mixed)
            seen.append({(part, index) for batch in loop for part, index in zip(batch.parts, batch.ids)})
        self.assertEqual(seen[0] & seen[1], set())
        self.assertEqual([part.rank for mixed in mixes for part in mixed.parts], [0, 0, 1, 1])
        self.assertGreater(min(map(len, seen)), OTHERS / 2)

    def test_all_epochs(self):
        mixed = self.mixed(epochs=1)
        self.assertGreater(len(list(mixed)), 1)
        with self.assertRaisesRegex(oa.Error, "all 1 epochs"):
            next(iter(mixed))

    def test_what_does_not_fit_is_named(self):
        a, b = self.part(self.data, batch_size=8), self.part(self.other, batch_size=9)
        for arguments, options, text in (
                (([],), {}, "no parts"), (([a, "b"],), {}, "part 1 of the mix is a str"),
                (([a, b],), {}, "8, 9: give the mix its batch_size="), (([a, b], [1]), {}, "1 weights for 2 parts"),
                (([a, b], [0.7, 0.3], 8), {}, "7 and"), (([a, b], [0, 1], 8), {}, "from 1 on"),
                (([a, b], None, 8), {"unit": "pixels"}, "samples, batches"),
                (([a, b], None, 8), {"end": "never"}, "first, all, longest"),
                (([a, b], None, 8), {"state": {"oneaccess": 1}}, "no state of a mix"),
                (([a, b], None, 8), {"state": {"oneaccess-mix": 9, "token": ""}}, "version 9"),
                (([a, b], None, 8), {"state": {"oneaccess-mix": 1, "token": "§"}}, "no base64"),
                (([a, b], None, 8), {"state": {"oneaccess-mix": 1, "token": "AAAA"}}, "token"),
                (([a, self.part(self.other, 24)], None, 8), {}, "part 1")):
            with self.subTest(text=text), self.assertRaisesRegex(oa.Error, text):
                oa.mix(*arguments, **options)

    def test_closed_it_says_so(self):
        mixed = self.mixed()
        mixed.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            next(iter(mixed))


if __name__ == "__main__":
    unittest.main(verbosity=2)
