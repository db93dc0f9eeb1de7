# SPDX-License-Identifier: Apache-2.0
"""What a pool's processes share: made once, read by all, also where one of them dies."""

import os
import signal
import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"shelf_test: skipped: {missing}")
    sys.exit(77)

from oneaccess.shelf import Shelf


class ShelfTest(unittest.TestCase):
    def setUp(self):
        self.log, self.said = os.pipe()
        os.set_blocking(self.log, False)
        self.addCleanup(os.close, self.log)
        self.addCleanup(os.close, self.said)

    def make(self, key):
        """Two arrays and a word; each making is one byte in the log."""
        os.write(self.said, bytes([key]))
        return {"numbers": np.arange(100) + key, "more": np.full((3, 5), key, "float32"), "word": f"the {key}"}

    def made(self):
        try:
            return [*os.read(self.log, 1000)]
        except BlockingIOError:
            return []

    def shelf(self, places, size=4096, make=None, keys=50):
        return Shelf(places, size, make or self.make, keys)

    def check(self, shelf, key):
        with shelf.get(key) as found:
            self.assertEqual((found["numbers"].tolist(), found["more"].tolist(), found["word"]),
                             ([*range(key, key + 100)], [[key] * 5] * 3, f"the {key}"))

    def child(self, work):
        """Its end, after work()."""
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except BaseException:
                os._exit(1)
            os._exit(0)
        return pid

    def ended(self, pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_made_once(self):
        shelf = self.shelf(3)
        for key in (1, 2, 1, 2):
            self.check(shelf, key)
        for _ in range(2):
            self.assertEqual(self.ended(self.child(lambda: [self.check(shelf, key) for key in (2, 3, 1)])), 0)
        self.check(shelf, 3)
        self.assertEqual(self.made(), [1, 2, 3])

    def test_what_was_used_longest_ago_goes(self):
        shelf = self.shelf(2)
        for key in (1, 2, 1, 3, 1, 2):
            self.check(shelf, key)
        self.assertEqual(self.made(), [1, 2, 3, 2])
        self.assertEqual(self.ended(self.child(lambda: [self.check(shelf, key) for key in (4, 5)])), 0)
        self.check(shelf, 1)        # which this process has read at its old place
        self.assertEqual(self.made(), [4, 5, 1])

    def test_what_does_not_fit_or_finds_no_place(self):
        shelf = self.shelf(1, make=lambda key: {**self.make(key), "large": np.zeros(5000 if key == 7 else 0)})
        with shelf.get(7) as found:
            self.assertEqual(found["word"], "the 7")
        self.check(shelf, 1)
        ready, go = os.pipe(), os.pipe()

        def read():
            with shelf.get(1):
                os.write(ready[1], b"x")
                os.read(go[0], 1)

        pid = self.child(read)
        os.read(ready[0], 1)
        self.made()
        self.check(shelf, 2)
        self.check(shelf, 2)
        self.check(shelf, 1)
        self.assertEqual(self.made(), [2])
        os.write(go[1], b"x")
        self.assertEqual(self.ended(pid), 0)
        self.check(shelf, 3)
        self.assertEqual(self.ended(self.child(lambda: self.check(shelf, 3))), 0)
        self.assertEqual(self.made(), [3])
        for end in (*ready, *go):
            os.close(end)

    def test_what_does_not_fit_is_made_once(self):
        shelf = self.shelf(2, make=lambda key: {**self.make(key), "large": np.zeros(5000)})
        for key in (7, 7, 7, 8, 8):
            with shelf.get(key) as found:
                self.assertEqual(found["numbers"].tolist(), [*range(key, key + 100)])
        self.assertEqual(self.made(), [7, 8])

    def test_what_raises_is_tried_again(self):
        fails = [True]

        def make(key):
            if fails:
                fails.pop()
                raise ValueError("no")
            return self.make(key)

        shelf = self.shelf(1, make=make)
        with self.assertRaisesRegex(ValueError, "no"), shelf.get(1):
            pass
        self.check(shelf, 1)
        self.assertEqual(self.ended(self.child(lambda: self.check(shelf, 1))), 0)
        self.assertEqual(self.made(), [1])

    def test_one_dies_as_it_writes(self):
        mine = os.getpid()

        def make(key):
            if os.getpid() != mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return self.make(key)

        shelf = self.shelf(2, make=make)
        for _ in range(2):
            self.assertEqual(self.ended(self.child(lambda: self.check(shelf, 1))), -signal.SIGKILL)
        self.check(shelf, 1)
        self.assertEqual(self.ended(self.child(lambda: self.check(shelf, 1))), 0)
        self.assertEqual(self.made(), [1])

    def test_the_next_one_is_made_where_one_waits(self):
        begun, go, mine = os.pipe(), os.pipe(), os.getpid()

        def make(key):
            if key == 2 and os.getpid() != mine:
                os.write(begun[1], b"x")
                os.read(go[0], 1)
            if key == 3 and os.getpid() == mine:
                os.write(go[1], b"x")       # now it may end
            return self.make(key)

        shelf = self.shelf(4, make=make)
        self.check(shelf, 1)
        pid = self.child(lambda: self.check(shelf, 2))
        os.read(begun[0], 1)
        self.check(shelf, 2)
        self.assertEqual(self.ended(pid), 0)
        self.check(shelf, 3)
        self.assertEqual(sorted(self.made()), [1, 2, 3])
        for end in (*begun, *go):
            os.close(end)


if __name__ == "__main__":
    unittest.main()
