# SPDX-License-Identifier: Apache-2.0
"""Batches as trees of arrays, for libraries that walk trees: ``jax.jit(step)(state, batch)``, ``jax.device_put(batch)``, PyTorch's and Keras'.

They look for an object's type, not for what it derives from, so to them a Batch would be a leaf. What they put together again has
arrays alone: no ids, no epoch."""

import contextlib
import sys
import threading


def _leaves(batch):
    """Arrays, and what else the batch is made of."""
    return (list(batch.values()), tuple(batch)) if isinstance(batch, dict) else (list(batch), None)


def _whole(cls, names, arrays):
    return cls(arrays if names is None else zip(names, arrays))


def _of_jax(module, cls):
    module.register_pytree_node(cls, _leaves, lambda names, arrays: _whole(cls, names, arrays))


def _of_torch(module, cls):
    """torch.export also wants each array's place, and a name for the file that it saves."""
    register = getattr(module, "register_pytree_node", None) or module._register_pytree_node  # the second: before 2.2
    more = {}
    if hasattr(module, "SequenceKey"):
        def placed(batch):
            arrays, names = _leaves(batch)
            places = map(module.SequenceKey, range(len(arrays))) if names is None else map(module.MappingKey, names)
            return [*zip(places, arrays)], names
        more = {"flatten_with_keys_fn": placed, "serialized_type_name": f"{cls.__module__}.{cls.__qualname__}",
                "to_dumpable_context": lambda names: names, "from_dumpable_context": lambda names: names and tuple(names)}
    register(cls, _leaves, lambda arrays, names: _whole(cls, names, arrays), **more)


def _of_keras(module, cls):
    """Its trees are optree's, but with PyTorch, whose own they are then."""
    module.register_pytree_node(cls, _leaves, lambda names, arrays: _whole(cls, names, arrays), namespace="keras")


_WAYS = {"jax.tree_util": _of_jax, "torch.utils._pytree": _of_torch, "optree": _of_keras}
_known: set[str] = set()
_lock = threading.Lock()


def register(*classes: type) -> None:
    """With what the program has imported by now; each once."""
    with _lock:
        for name in _WAYS.keys() - _known:
            module = sys.modules.get(name)
            if module is None or getattr(module.__spec__, "_initializing", False):
                continue
            _known.add(name)
            for cls in classes:
                with contextlib.suppress(ValueError):   # the program itself has registered it
                    _WAYS[name](module, cls)
