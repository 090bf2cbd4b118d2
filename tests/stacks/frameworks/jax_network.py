"""A small network, and a step of its training."""

import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
inputs, wanted = (random.standard_normal((64, size)).astype(np.float32) for size in (48, 8))
first = [0.1 * random.standard_normal(shape).astype(np.float32) for shape in ((48, 32), (32, 8))]


def loss(weights, inputs, wanted):
    return ((jnp.tanh(inputs @ weights[0]) @ weights[1] - wanted) ** 2).mean()


@jax.jit
def step(weights, inputs, wanted):
    value, slopes = jax.value_and_grad(loss)(weights, inputs, wanted)
    return value, [weight - 0.5 * slope for weight, slope in zip(weights, slopes, strict=True)]
