# SPDX-License-Identifier: Apache-2.0
"""In the manner of JAX's guide to a network with PyTorch's data loading: a network of jax.numpy, vmap, grad and jit, a
DataLoader with a collate_fn that makes NumPy arrays."""
import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np
from torch.utils.data import DataLoader, default_collate
from torchvision import transforms
from torchvision.datasets import ImageFolder


def numpy_collate(batch):
    return jax.tree_util.tree_map(np.asarray, default_collate(batch))


def layers(sizes, key):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (n, m)) * (2 / m) ** 0.5, jnp.zeros(n)) for m, n, k in zip(sizes, sizes[1:], keys)]


def predict(params, image):
    activations = jnp.ravel(image)
    for weights, bias in params[:-1]:
        activations = jax.nn.relu(weights @ activations + bias)
    weights, bias = params[-1]
    return jax.nn.log_softmax(weights @ activations + bias)


batched_predict = jax.vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(jnp.sum(batched_predict(params, images) * targets, axis=1))


@jax.jit
def update(params, images, targets, rate):
    gradients = jax.grad(loss)(params, images, targets)
    return jax.tree_util.tree_map(lambda value, gradient: value - rate * gradient, params, gradients)


def accuracy(params, loader):
    right = seen = 0
    for images, labels in loader:
        right += int(jnp.sum(jnp.argmax(batched_predict(params, images), axis=1) == labels))
        seen += len(labels)
    return 100 * right / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--workers", default=0, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--size", default=64, type=int)
    parser.add_argument("--lr", default=0.003, type=float)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()

    end = [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    train_dataset = ImageFolder(os.path.join(args.data, "train"), transforms.Compose(
        [transforms.RandomResizedCrop(args.size), transforms.RandomHorizontalFlip(), *end]))
    test_dataset = ImageFolder(os.path.join(args.data, "val"), transforms.Compose(
        [transforms.Resize(args.size), transforms.CenterCrop(args.size), *end]))
    training_generator = DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True, collate_fn=numpy_collate)
    test_generator = DataLoader(test_dataset, batch_size=args.batch_size, collate_fn=numpy_collate)

    classes = len(train_dataset.classes)
    params = layers([3 * args.size * args.size, 128, 64, classes], jax.random.key(args.seed))
    right = 0.0
    for epoch in range(args.epochs):
        for images, labels in training_generator:
            params = update(params, images, jax.nn.one_hot(labels, classes), args.lr)
        right = accuracy(params, test_generator)
        print(f"epoch {epoch}: accuracy {right:.2f}")
    print(f"accuracy {right:.2f}")


if __name__ == "__main__":
    main()
