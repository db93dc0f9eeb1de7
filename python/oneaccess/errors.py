# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions. Each text says what, where and how to mend it.

Every exception of OneAccess is an ``Error`` with ``code`` (of libaccess, 0: of this package) and
``name`` ("OA_E_TIMEOUT"); most are one of Python's own, too, so that ``except TimeoutError`` works.
"""


class Error(Exception):
    """Any outcome that is no batch."""

    code = 0
    name = ""


class BatchTimeout(Error, TimeoutError):
    """No batch in the time given; names the stage that stalls: storage, workers, slots, the daemon."""


class HeldError(Error):
    """More batches are held than two slots have, and held="error": let go of one."""


class RefusedError(Error):
    """accessd refuses; the text says why and how to mend it."""


class NodeMemoryError(Error):
    """Refused for memory of the node, with the numbers."""


class DatasetError(Error):
    """The data set cannot be opened, or changed under the job."""


class PipelineError(Error, ValueError):
    """The pipeline is wrong; names the op and the parameter."""


class SampleError(Error):
    """A sample is bad and bad="error", or the budget of bad samples is spent; names the file."""


class StateError(Error, ValueError):
    """A saved state is damaged, of another data set or order, or of a newer version."""


class VersionError(Error):
    """This package and the daemon differ; says which to upgrade."""


class UnreachableError(Error, ConnectionError):
    """No daemon answers, and none could be started."""


class DeniedError(Error, PermissionError):
    """This user may not."""


class ForkedError(Error, RuntimeError):
    """A loader of the parent process was used in a child."""


class ArgumentError(Error, ValueError):
    """An argument is wrong; the text says which."""


class LimitError(Error, OSError):
    """A limit of this process (descriptors, memory) is too low; the text names it."""


class TransformError(Error, TypeError):
    """A transform, a data set or an argument of another loader that has no counterpart here."""


_CLASSES = {
    2: BatchTimeout,
    3: HeldError,
    4: RefusedError,
    5: NodeMemoryError,
    6: DatasetError,
    7: PipelineError,
    8: SampleError,
    9: StateError,
    10: VersionError,
    11: UnreachableError,
    12: DeniedError,
    13: ForkedError,
    15: ArgumentError,
    16: LimitError,
}

# The library's texts name what C programs call.
_WORDS = (
    ("release one before oa_next(), or open with OA_KEEP or OA_COPY",
     "let go of one before the next (del, or no list of them), or open the loader with held=\"copy\" or copy=True"),
    ("oa_next(): ", ""),
    ("oa_open(): ", ""),
    ("options.sampler", "the part of the data set"),
    ("options.", ""),
    ("OA_DROP_LAST", "drop_last"),
    ("OA_COPY", "copy=True"),
)


def of_outcome(code: int, name: str, text: str) -> Error:
    """The exception of an outcome of libaccess."""
    for c_word, python_word in _WORDS:
        text = text.replace(c_word, python_word)
    if code == 13:
        text += (": a Loader belongs to the process that made it; make it in the child,"
                 " or iterate in the parent (OneAccess needs no worker processes)")
    error = _CLASSES.get(code, Error)(text)
    error.code = code
    error.name = name
    return error
