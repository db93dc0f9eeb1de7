#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX: batches are arrays of JAX in shared memory, without a copy on the CPU.

    -for images, labels in tfds.as_numpy(dataset.batch(64)):
    -    state = step(state, jnp.asarray(images), jnp.asarray(labels))
    +for images, labels in oa.Loader(data, pipeline, 64, as_="jax", drop_last=True):
    +    state = step(state, images, labels)

Over several devices: sharding=NamedSharding(mesh, PartitionSpec("data")) in the place of as_= gives global arrays, also of several processes.

drop_last=True gives all batches one shape, so that step is compiled once. JAX runs behind the loop: batches that it still
computes with are kept by the Loader until it has done so.
"""
import argparse

import jax
import jax.numpy as jnp

import oneaccess as oa


def loss_of(weights, images, labels):
    scores = images.mean((2, 3)) @ weights
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()


@jax.jit
def step(weights, images, labels):
    loss, gradient = jax.value_and_grad(loss_of)(weights, images, labels)
    return weights - 0.1 * gradient, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of pictures, CLASS/NAME.jpg")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=96)
    options = parser.parse_args()

    train = oa.Loader(options.data, oa.imagenet_train(options.size), options.batch_size, as_="jax", drop_last=True)
    weights = jnp.zeros((3, len(train.classes)))
    for epoch in range(options.epochs):
        samples = 0
        for images, labels in train:
            weights, loss = step(weights, images, labels)
            samples += len(labels)
        print(f"epoch {epoch + 1}: {samples} samples, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
