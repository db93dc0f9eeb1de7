# SPDX-License-Identifier: Apache-2.0
from collections.abc import Buffer, Callable, Sequence
from typing import Any

version: str

class Client:
    def __new__(cls, socket: str | None = None) -> Client: ...
    def status(self) -> str: ...

def guard() -> None: ...

class Dataset:
    count: int
    classes: list[str]
    def __new__(cls, client: Client, path: str) -> Dataset: ...
    def labels(self) -> bytes: ...

class Field:
    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    kind: str
    lengths: bytes | None
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Batch:
    fields: tuple[Field, ...]
    ids: bytes
    parts: bytes | None
    count: int
    epoch: int
    step: int
    substituted: int
    copied: int
    kept: int
    is_last: bool
    slot: tuple[int, int] | None
    def release(self) -> None: ...

class Twin:
    address: int
    nbytes: int
    def __new__(cls, batch: Batch) -> Twin: ...
    def places(self, batch: Batch, /) -> list[int | None]: ...
    def close(self) -> None: ...

class Stream:
    def __new__(cls, client: Client, *, dataset: str, pipeline: str, batch: int, flags: int = 0,
                epochs: int | None = None, job: str | None = None, bad: int = 0,
                bad_budget: int | None = None, ranks: int | None = None, rank: int | None = None,
                token: Buffer | None = None, chunk: int | None = None, timeout_ms: int | None = None,
                progress: Callable[[str, int, int], object] | None = None, order: int | None = None,
                seed: int | None = None, record: str | None = None, replay: str | None = None,
                reuse: int | None = None, ids: Buffer | None = None,
                classes: Sequence[str] | None = None, split_from: float | None = None,
                split_to: float | None = None, split_seed: int | None = None,
                weights: Buffer | None = None, samples: int | None = None,
                sampler_flags: int | None = None, blocks: Buffer | None = None,
                window: int | None = None) -> Stream: ...
    def next(self, timeout_ms: int = -1, /) -> Batch | None: ...
    def state(self, epoch: int = ..., /) -> bytes: ...
    def bad_samples(self, timeout_ms: int = 0, /) -> list[tuple[int, str, str, str]]: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

class Mix:
    def __new__(cls, client: Client, parts: tuple[tuple[dict[str, Any], int], ...], batch: int, flags: int = 0,
                epochs: int = 0, seed: int = 0, end: int = 0, unit: int = 0, token: Buffer | None = None) -> Mix: ...
    def next(self, timeout_ms: int = -1, /) -> Batch | None: ...
    def state(self) -> bytes: ...
    def close(self) -> None: ...
