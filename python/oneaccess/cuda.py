# SPDX-License-Identifier: Apache-2.0
"""CUDA as PyTorch has it: which device is meant, a stream for copies beside the training's, memory that
the device reads directly.

Memory is registered, and read, by the driver's own calls: a failing one of the runtime's is reported a
second time by whatever PyTorch does next, and a copy of PyTorch's costs the host several times as much. Slots
are mapped for reading only, which the driver has to be told.
"""

import ctypes
import os

import torch

from .errors import ArgumentError

_PORTABLE, _MAPPED, _READ_ONLY = 1, 2, 8  # CU_MEMHOSTREGISTER_...
_NO_CONTEXT = (201, 400)                  # CUDA_ERROR_INVALID_CONTEXT, _INVALID_HANDLE


def _absent():
    if torch.version.cuda is None:
        return f"this PyTorch ({torch.__version__}) is one without CUDA: install one that has it"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES is \"{visible}\": does it name a GPU that is there?"
    return "does nvidia-smi show one? In a container it must be passed through (--gpus all)"


def _own(count):
    """The device of "cuda": the current one where the program chose one, else this rank's."""
    current = torch.cuda.current_device()
    rank = os.environ.get("LOCAL_RANK", "")
    return int(rank) if current == 0 and rank.isdecimal() and int(rank) < count else current


def choose(device) -> torch.device | None:
    """A device that is there; None for the processor's memory."""
    try:
        asked = torch.device(device)
    except (RuntimeError, TypeError) as wrong:
        raise ArgumentError(f"device is {device!r}: {str(wrong).splitlines()[0]}") from None
    if asked.type == "cpu":
        return None
    if asked.type != "cuda":
        raise ArgumentError(f"device is \"{asked}\"; there are: cpu, cuda, cuda:N. For another one take"
                            " the batches as they are and copy them")
    if torch.version.cuda is None or not torch.cuda.is_available():
        raise ArgumentError(f"device is \"{asked}\", but PyTorch finds no GPU: {_absent()}. Without a GPU"
                            " leave device out, or say device=\"cpu\"")
    count = torch.cuda.device_count()
    index = _own(count) if asked.index is None else asked.index
    if index >= count:
        raise ArgumentError(f"device is \"{asked}\", and there are {count}, from cuda:0 on")
    return torch.device("cuda", index)


def _driver():
    driver = ctypes.CDLL("libcuda.so.1")
    address, size = ctypes.c_void_p, ctypes.c_size_t
    for name, *types in (("cuMemHostRegister_v2", address, size, ctypes.c_uint),
                         ("cuMemHostUnregister", address),
                         ("cuMemcpyHtoDAsync_v2", ctypes.c_uint64, address, size, address),
                         ("cuGetErrorName", ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))):
        getattr(driver, name).argtypes = types
    return driver


class Cuda:
    """What device.Feed needs of a device."""

    def __init__(self, device: torch.device):
        self.device = device
        self._side = torch.cuda.Stream(device)
        self._handle = self._side.cuda_stream
        self._driver = _driver()
        self._copy = self._driver.cuMemcpyHtoDAsync_v2

    def event(self):
        """One that sleeps where it waits."""
        return torch.cuda.Event(blocking=True)

    def current(self):
        """The stream on which the caller works."""
        return torch.cuda.current_stream(self.device.index)

    def _call(self, name, *arguments):
        """With the device's context, which a thread has from the first use on, and a program with
        several devices that of another one. OSError."""
        call = getattr(self._driver, name)
        code = call(*arguments)
        if code in _NO_CONTEXT:
            with torch.cuda.device(self.device):
                self._side.query()
                code = call(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(code, ctypes.byref(text))
            raise OSError(code, f"{name}: {(text.value or b'error').decode()} ({code})")

    def copy(self, triples, after, done):
        """Copies (to address, from address, bytes), beside the caller's stream, behind the event `after`; then
        comes the event `done`."""
        after.wait(self._side)
        for target, source, nbytes in triples:
            if self._copy(target, source, nbytes, self._handle):
                self._call("cuMemcpyHtoDAsync_v2", target, source, nbytes, self._handle)
        done.record(self._side)

    @staticmethod
    def staging(nbytes):
        """Bytes that the device reads directly."""
        return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)

    def register(self, address, nbytes):
        """OSError where the driver refuses."""
        self._call("cuMemHostRegister_v2", address, nbytes, _PORTABLE | _MAPPED | _READ_ONLY)

    def unregister(self, address):
        self._call("cuMemHostUnregister", address)
