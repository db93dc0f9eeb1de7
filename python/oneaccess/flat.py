# SPDX-License-Identifier: Apache-2.0
"""Samples as fields with names: of a tuple, a dict, or one with dicts in it, as (picture, mask, {"id": 3, "size": (480, 640)}), whose fields
are "0", "1", "2.id" and "2.size". Batches have the form that samples have."""

from collections.abc import Mapping
from typing import Any

from .errors import TransformError


def _keyed(sample, prefix):
    for name in sample:
        if not isinstance(name, str):
            raise TransformError(f"the sample has the key {prefix + str(name) if prefix else name!r}; keys are strings")
    return sample.items()


def _fields(sample, prefix, form):
    """(name, value) of each; form gets what stands in its place."""
    for key, value in _keyed(sample, prefix) if isinstance(sample, dict) else enumerate(sample):
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            inner = {}
            yield from _fields(value, f"{name}.", inner)
        else:
            inner = name
            yield name, value
        if isinstance(form, dict):
            form[key] = inner
        else:
            form.append(inner)


def parts(sample: Any) -> tuple[str, list[str], list[Any], Any]:
    """"dict", "tuple" or "one", names, values, and the form, if there are dicts in it."""
    if not isinstance(sample, (dict, tuple, list)):
        return "one", ["0"], [sample], None
    kind, form = ("dict", {}) if isinstance(sample, dict) else ("tuple", [])
    fields = [*_fields(sample, "", form)]
    names, values = [name for name, _ in fields], [value for _, value in fields]
    if kind == "tuple" and hasattr(sample, "_fields") and len(names) == len(form):
        names = [*sample._fields]
    if len(set(names)) < len(names):
        raise TransformError(f"fields of the sample have one name, with that of the dict before the point: {', '.join(names)}")
    is_nested = any(isinstance(inner, dict) for inner in (form.values() if kind == "dict" else form))
    return kind, names, values, form if is_nested else None


def formed(form: Any, values: Mapping[str, Any]) -> Any:
    """The values in the places where samples have them."""
    if isinstance(form, str):
        return values[form]
    if isinstance(form, dict):
        return {key: formed(inner, values) for key, inner in form.items()}
    return [formed(inner, values) for inner in form]


def at(batch: Any, index: int) -> Any:
    """One sample of a batch."""
    if isinstance(batch, dict):
        return {name: at(inner, index) for name, inner in batch.items()}
    if isinstance(batch, tuple):
        return tuple(at(inner, index) for inner in batch)
    return batch[index]
