# SPDX-License-Identifier: Apache-2.0
"""Numbers of a program's, as they are written to files."""

from typing import Any

from ..errors import ArgumentError


def array_of(value: Any) -> Any:
    """As NumPy has it, wherever it lies."""
    import numpy as np
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        return value.cpu().numpy()
    made = np.asarray(value)
    return made.astype(np.float32) if made.dtype.name == "bfloat16" else made


def cast(value: Any, dtype: str, what: str) -> Any:
    """Without a value that becomes another one; floats are rounded."""
    import numpy as np
    array = array_of(value)
    if array.dtype == dtype:
        return np.asarray(array, order="C")
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"{what} is {array.dtype}: numbers are stored")
    with np.errstate(over="ignore", invalid="ignore"):
        made = array.astype(dtype)
        if np.dtype(dtype).kind == "f":
            is_good = np.isfinite(made).all() or (np.isfinite(made) == np.isfinite(array)).all()
        else:
            is_good = bool((made == array).all())
    if not is_good:
        raise ArgumentError(f"{what} has a value that {dtype} has no room for: say another type, or scale it")
    return np.asarray(made, order="C")
