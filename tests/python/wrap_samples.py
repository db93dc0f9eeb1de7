# SPDX-License-Identifier: Apache-2.0
"""Data sets for wrap_test.py, which its pools import."""

import io
import os
import random
import signal
import time

import numpy as np
from PIL import Image

SAMPLES = 96


class Counted:
    """Sample i is full of i; each __getitem__ leaves a byte in a file."""

    def __init__(self, log, count=SAMPLES):
        self.log, self.count = str(log), count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, b".")
        os.close(descriptor)
        return np.full((3, 8, 8), i, np.float32), i


class Noisy(Counted):
    """Random numbers of Python and NumPy beside the number."""

    def __getitem__(self, i):
        return np.float32([random.random(), np.random.rand()]), i


class Tensors(Counted):
    """Random numbers of PyTorch beside the number."""

    def __getitem__(self, i):
        import torch
        return torch.rand(2), torch.tensor(i)


class Many(Counted):
    """Has __getitems__, too, which does with sample 5 what the word says, and leaves the numbers of samples that it was
    asked for in the log."""

    def __init__(self, log, word=""):
        super().__init__(log, 512)
        self.word = word

    def __getitems__(self, many):
        with open(self.log, "a") as log:
            log.write(f"{len(many)}\n")
        if self.word == "short":
            return []
        return [self.one(i, 5 in many) for i in many]

    def __getitem__(self, i):
        return self.one(i, False)

    def one(self, i, has_five):
        if has_five and self.word == "exit":
            os._exit(3)
        if has_five and self.word == "hang":
            time.sleep(3600)
        if i == 5 and self.word == "raise":
            raise ValueError(f"nothing good about {i}")
        return np.float32([random.random(), np.random.rand()] if self.word == "noise" else [i, i + 1]), i


class Faulty(Counted):
    """Sample 5 does what the word says."""

    def __init__(self, log, word):
        super().__init__(log)
        self.word = word

    def __getitem__(self, i):
        if i == 5:
            if self.word == "exit":
                os._exit(3)
            if self.word == "die once" and not os.path.exists(self.log + ".died"):
                open(self.log + ".died", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            if self.word == "hang":
                time.sleep(3600)
            if self.word == "raise":
                raise ValueError(f"nothing good about {i}")
            if self.word == "shape":
                return np.zeros((3, 8, 9), np.float32), i
        return super().__getitem__(i)


class Odd(Counted):
    """Samples of the kind that the word names."""

    def __init__(self, log, word):
        super().__init__(log, 8)
        self.word = word

    def __getitem__(self, i):
        if self.word == "stop":
            breakpoint()
        return {
            "dict": {"x": np.int16([i, i + 1]), "flag": i % 2 == 0, "share": i / 2},
            "one": np.float16([[i]]),
            "four": (i, np.uint8(i), Image.new("RGB", (4, 3), (i, 0, 9)), np.float32(i)),
            "text": ("a" * i, i),
            "nested": (np.float32([i]), {"id": i, "name": f"{i}.png", "more": {"size": (i, 2 * i)}}),
            "alike": {"a.b": i, "a": {"b": i}},
            "uneven": (i, {"id": i} if i < 3 else {"number": i}),
            "complex": (np.zeros(3, np.complex128), i),
            "many": tuple(range(24)),
        }[self.word]


class Files:
    """A folder's pictures: their bytes, or decoded."""

    def __init__(self, folder, is_decoded):
        self.files = sorted((at, os.path.join(top, name)) for at, (top, _, names) in
                            enumerate(sorted(os.walk(folder))) for name in names)
        self.is_decoded = is_decoded

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        label, file = self.files[i]
        with open(file, "rb") as opened:
            data = opened.read()
        return Image.open(io.BytesIO(data)).convert("RGB") if self.is_decoded else data, label - 1
