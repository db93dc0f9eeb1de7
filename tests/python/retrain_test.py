# SPDX-License-Identifier: Apache-2.0
"""oneaccess.retrain: what is new is what came, each trigger has a reason when it is due and no earlier, and what failed is due again."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import unittest.mock

try:
    import numpy as np
except ImportError as missing:
    print(f"retrain_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess import retrain
from support import SAMPLES, DaemonCase

HOUR = 3600.0


class RetrainTest(DaemonCase):
    def setUp(self):
        self.folder = self.work / self.id().rsplit(".", 1)[-1]
        shutil.copytree(self.data, self.folder)
        self.files = sorted(self.folder.glob("*/*"))
        self.state = self.work / f"{self.folder.name}.npz"
        clock = unittest.mock.patch.object(retrain.time, "time", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)
        self.now = 1e9

    def grow(self, count, name="new"):
        """count samples more, between those that are there."""
        for at in range(count):
            file = self.files[7 * at % len(self.files)]
            shutil.copy(file, file.parent / f"{file.stem}-{name}-{at}{file.suffix}")

    def look(self, *triggers):
        return retrain.look(self.folder, triggers, self.state, socket=self.socket, timeout=600)

    def train(self, *triggers):
        due = self.look(*triggers)
        self.assertIsNotNone(due)
        retrain.trained(due, self.state)
        return due

    def test_the_first_has_all(self):
        due = self.train(retrain.amount(10 ** 9))
        self.assertEqual((due.count, due.new.tolist(), due.removed, due.seconds), (SAMPLES, list(range(SAMPLES)), 0, 0))
        self.assertIsNone(self.look(retrain.amount(1)))

    def test_amount(self):
        self.train(retrain.amount(8))
        self.grow(7)
        self.assertIsNone(self.look(retrain.amount(8), retrain.amount(share=8 / SAMPLES)))
        self.grow(8)
        self.files[-1].unlink()
        for trigger in (retrain.amount(8), retrain.amount(share=8 / SAMPLES)):
            due = self.look(trigger)
            self.assertRegex(due.why, "^8 new samples: 8 are a reason to train$")
            self.assertEqual((due.count, due.removed, len(due.known)), (SAMPLES + 7, 1, SAMPLES - 1))
            self.assertTrue(all("-new-" in due.names[index] for index in due.new))
            self.assertEqual(sorted([*due.new, *due.known]), list(range(due.count)))

    def test_numbers_are_those_of_a_loader(self):
        self.train(retrain.amount(1))
        self.grow(5)
        due = self.look(retrain.amount(1))
        with due.loader(oa.imagenet_eval(8, dtype="uint8"), 5, ids=due.new, epochs=1) as loader:
            self.assertEqual([sorted(batch.ids) for batch in loader], [sorted(due.new)])

    def test_every(self):
        daily = retrain.every(hours=24)
        self.train(daily)
        self.now += 25 * HOUR
        self.assertIsNone(self.look(daily))                 # nothing came
        self.assertRegex(self.look(retrain.every(days=1, unchanged=True)).why, "^25 hours")
        self.grow(1)
        self.assertRegex(self.look(daily).why, "^25 hours since the last training: 24 are")
        self.train(daily)
        self.grow(2)
        self.now += 23 * HOUR
        self.assertIsNone(self.look(daily))

    def test_cost(self):
        dear = retrain.cost(training=10, waiting=1)         # ten sample-hours
        self.train(dear)
        self.grow(4)
        self.assertIsNone(self.look(dear))
        self.now += HOUR
        self.assertIsNone(self.look(dear))                  # at most four
        self.now += HOUR
        self.assertIsNone(self.look(dear))                  # eight
        self.now += HOUR
        self.assertRegex(self.look(dear).why, "12")
        self.train(dear)
        self.assertIsNone(self.look(dear))

    def test_score(self):
        asked = []

        def accuracy(due):
            asked.append(len(due.new))
            return 0.95 if len(due.new) < 4 else 0.5

        trigger = retrain.score(accuracy, below=0.9)
        self.train(trigger)
        self.assertIsNone(self.look(trigger))
        self.assertEqual(asked, [])                         # nothing is new
        self.grow(3)
        self.assertIsNone(self.look(trigger))
        self.assertIsNone(self.look(trigger))
        self.assertEqual(asked, [3])                        # once for one set
        self.grow(4)
        self.assertRegex(self.look(trigger).why, "0.5")

    def test_drift(self):
        def means(batch):
            return batch[0].reshape(len(batch[0]), 3, -1).mean(2)

        trigger = retrain.drift(means, oa.imagenet_eval(16, dtype="uint8"), least=20, as_="numpy")
        self.train(trigger)
        self.grow(60)                                       # more of the same
        self.assertIsNone(self.look(trigger))
        dark = b"P6 16 16 255\n" + bytes(16 * 16 * 3)
        for at in range(30):
            (self.folder / self.files[0].parent.name / f"dark-{at}.ppm").write_bytes(dark)
        self.assertRegex(self.look(trigger).why, r"differ from those trained on \(p = 0.000999\)")

    def test_drift_is_rarely_found_where_none_is(self):
        """Under the hypothesis the probability is uniform: of 200 tests as many are at or below 0.1 as chance has it."""
        draw = np.random.default_rng(1)
        found = sum(retrain._discrepancy(draw.normal(size=(40, 3)), draw.normal(size=(60, 3)), draw, 99) <= 0.1 for _ in range(200))
        self.assertTrue(6 <= found <= 40, found)            # 20 are expected; outside: below 1e-4

    def test_all_of(self):
        asked = []
        both = retrain.all_of(retrain.amount(2), lambda due: asked.append(1) or "dear")
        self.train(both)
        self.grow(1)
        self.assertIsNone(self.look(both))
        self.assertEqual(asked, [])
        self.grow(2)
        self.assertRegex(self.look(both).why, "^2 new samples.*; dear$")

    def test_what_failed_is_due_again(self):
        for _ in range(2):
            watched = retrain.watch(self.folder, retrain.amount(1), self.state, socket=self.socket, timeout=600)
            self.assertEqual(next(watched).why, "nothing was trained yet")
            watched.close()                                 # as an error in the loop's body does
        self.grow(2)
        watched = retrain.watch(self.folder, retrain.amount(1), self.state, poll=0, socket=self.socket, timeout=600)
        self.assertEqual(len(next(watched).new), SAMPLES + 2)
        with unittest.mock.patch.object(retrain.time, "sleep", lambda _: self.grow(3, "later")):
            self.assertEqual(len(next(watched).new), 3)     # it had looked once in vain
        watched.close()

    def test_one_trains_at_a_time(self):
        options = {"poll": 0, "socket": self.socket, "timeout": 600}
        first, second = (retrain.watch(self.folder, retrain.amount(1), self.state, **options) for _ in range(2))
        next(first)
        self.run_command("true", code=3)
        self.assertFalse(self.state.exists())
        with unittest.mock.patch.object(retrain.time, "sleep", lambda _: first.close()):     # the second waits for the first
            self.assertEqual(next(second).why, "nothing was trained yet")
        second.close()

    def test_a_clock_that_goes_back(self):
        self.now += 1000 * HOUR
        self.train(retrain.amount(1))
        self.now -= 1000 * HOUR
        daily = retrain.every(hours=24, unchanged=True)
        self.assertIsNone(self.look(daily))
        self.now += 24 * HOUR
        self.assertIn("24 hours since", self.look(daily).why)

    def test_of_a_table(self):
        """A data set without names grows at its end."""
        rows = list(range(10))
        source = lambda: oa.wrap([{"x": np.float32(row)} for row in rows])
        look = lambda: retrain.look(source, retrain.amount(2), self.state)
        retrain.trained(look(), self.state)
        rows.append(10)
        self.assertIsNone(look())
        rows.append(11)
        self.assertEqual((look().new.tolist(), look().names), ([10, 11], []))

    def test_other_files(self):
        for content in (b"", b"nothing", b"PK\3\4" + bytes(40)):
            self.state.write_bytes(content)
            with self.assertRaisesRegex(oa.errors.ArgumentError, f"{self.state} is no state of oneaccess.retrain"):
                self.look(retrain.amount(1))
        for fields in ({}, {"names": np.zeros((2, 2), np.uint64)}, {"trained": np.zeros(3)}, {"waited": np.array(["x"])}):
            np.savez(self.state, **{"names": np.zeros(2, np.uint64), "trained": 0.0, "looked": 0.0, "waited": 0.0, **fields} if fields else {"x": 1})
            with self.assertRaisesRegex(oa.errors.ArgumentError, "is no state"):
                self.look(retrain.amount(1))

    def test_arguments(self):
        for wrong in (retrain.amount, lambda: retrain.amount(0), lambda: retrain.amount(1, share=0.1), lambda: retrain.amount(share=-1), retrain.every,
                      lambda: retrain.cost(0, 1), lambda: retrain.drift(len, p=0), lambda: self.look()):
            with self.assertRaises(oa.errors.ArgumentError):
                wrong()

    def run_command(self, *command, code=0, options=("--amount", "3")):
        ran = subprocess.run([sys.executable, "-m", "oneaccess.retrain", self.folder, *options, "--state", self.state, "--new", f"{self.state}.new",
                              "--once", "--socket", self.socket, "--", *command], capture_output=True, text=True, env=os.environ)
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran

    def test_command(self):
        told = ["sh", "-c", "echo $ONEACCESS_NEW: $ONEACCESS_WHY"]
        self.assertIn("it is due again", self.run_command("false", code=1).stderr)
        self.assertIn(f"{SAMPLES}: nothing was trained yet", self.run_command(*told).stdout)
        self.run_command(*told, code=3)
        self.grow(3)
        self.assertIn("3: 3 new samples: 3 are a reason to train", self.run_command(*told).stdout)
        names = pathlib.Path(f"{self.state}.new").read_bytes().split(b"\0")
        self.assertEqual([name.count(b"-new-") for name in names], [1, 1, 1, 0])
        self.run_command(*told, code=3, options=("--amount", "1%", "--every", "24h", "--cost", "40:0.001"))
        for wrong in (("--every", "1"), ("--amount", "many"), ("--cost", "1"), ()):
            self.run_command("true", code=2, options=wrong)


if __name__ == "__main__":
    unittest.main()
