# SPDX-License-Identifier: Apache-2.0
"""Fields of a batch as arrays of this or that library. Each way is a function of a field and whether it
is to be a copy of the job's own."""

import sys

from . import record
from .errors import ArgumentError


def numpy():
    import numpy as np

    def convert(field, own):
        if field.dtype == "bfloat16":
            return _bfloat16(np, field, own)
        array = np.asarray(field)
        return array.copy() if own else array

    return convert


def _bfloat16(np, field, own):
    try:
        import ml_dtypes
    except ImportError:
        raise ArgumentError("NumPy has no bfloat16 of its own: pip install ml_dtypes, or cast to"
                            " float16 or float32 in the pipeline") from None
    array = np.frombuffer(field, ml_dtypes.bfloat16).reshape(field.shape)
    return array.copy() if own else array


def tensor_of(field):
    """A view of the field as a tensor."""
    import torch
    from torch.utils.dlpack import from_dlpack
    tensor = from_dlpack(field.__dlpack__())
    return tensor.view(torch.bool) if field.dtype == "bool" else tensor


def torch():
    import torch.utils.dlpack  # noqa: F401, that it is there is told at once

    def convert(field, own):
        tensor = tensor_of(field)
        return tensor.clone() if own else tensor

    return convert


def jax():
    import jax

    to_numpy = numpy()

    def convert(field, own):
        """As jnp.asarray() makes them: bound to no device (DLPack's are to the CPU), so that a step runs where its other arrays are, or
        on all devices. On the CPU a view."""
        return jax.device_put(to_numpy(field, own))

    return convert


def dlpack():
    return lambda field, own: field


def refuse(name, layout):
    """Fields of types that torch's tensors do not have: before 2.3 it has no whole numbers without a sign but bytes."""
    if name != "torch" or layout is None:
        return
    import torch
    for field, (code, *_) in zip(layout["names"], layout["fields"]):
        if not hasattr(torch, record.NAMES[code]):
            raise ArgumentError(f"field {field} has {record.NAMES[code]}, and torch {torch.__version__} has no tensors of it: convert it"
                                " in the data set, leave exact=True out where that is given, or take as_=\"numpy\"")


WAYS = {"numpy": numpy, "torch": torch, "jax": jax, "dlpack": dlpack}


def way(name):
    """The name, or what the program has imported; and the function."""
    if name is None:
        name = "torch" if "torch" in sys.modules else "numpy"
    if name not in WAYS:
        raise ArgumentError(f"as_ is \"{name}\"; there are: {', '.join(WAYS)}")
    return name, WAYS[name]()
