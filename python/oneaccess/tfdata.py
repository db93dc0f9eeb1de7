# SPDX-License-Identifier: Apache-2.0
"""A Loader as a tf.data.Dataset, for Keras and loops of TensorFlow."""

import itertools
from typing import Any

from .errors import ArgumentError
from .ragged import Ragged


def _plain(part, where="batch"):
    """What TensorFlow knows: tuples and dicts of NumPy's arrays, which are views as the batch's are."""
    import numpy as np
    if isinstance(part, dict):
        return {name: _plain(inner, f"{where}[{name!r}]") for name, inner in part.items()}
    if isinstance(part, tuple):
        return tuple(_plain(inner, f"{where}[{at}]") for at, inner in enumerate(part))
    try:
        if not isinstance(part, Ragged):
            return np.asarray(part)
    except ValueError:  # lists of unequal length
        pass
    raise ArgumentError(f"{where} is no tensor, as its samples differ in length: make the Loader with ragged=\"padded\", and say output_signature, as"
                        " batches differ in their longest sample")


def to_tf_dataset(loader: Any, output_signature: Any = None) -> Any:
    """A tf.data.Dataset of the batches, for Keras and loops of TensorFlow: tuples or dicts of tensors, without ids.

        model.fit(loader.to_tf_dataset(), epochs=3)

    Each iteration over it is the next epoch of the Loader. Types and shapes are those of the first batch, which is taken
    for that, held until the first iteration, and comes first in it. Batches may differ in the number of samples; if they
    differ in more, give output_signature, as for tf.data.Dataset.from_generator().
    """
    import tensorflow as tf
    begun = []
    if output_signature is None:
        loop = iter(loader)
        first = next(loop, None)
        if first is None:
            raise ArgumentError("the Loader has no batch whose types and shapes could be seen: say output_signature")
        begun.append(itertools.chain([first], loop))
        tensors = tf.nest.map_structure(tf.convert_to_tensor, _plain(first))
        output_signature = tf.nest.map_structure(lambda tensor: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype), tensors)
    return tf.data.Dataset.from_generator(lambda: map(_plain, begun.pop() if begun else loader), output_signature=output_signature)
