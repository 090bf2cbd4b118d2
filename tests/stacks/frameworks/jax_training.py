"""Ten steps of training a small network with JAX, on the device and on the CPU: the same losses."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from beside import beside
from jax_network import first, inputs, step, wanted

TOLERANCE = 1e-5


def losses(platform):
    with jax.default_device(jax.devices(platform)[0]):
        weights, found = [jnp.asarray(weight) for weight in first], []
        for _ in range(10):
            value, weights = step(weights, jnp.asarray(inputs), jnp.asarray(wanted))
            found.append(float(value))
    return found


here, there = beside(partial(losses, "rocm"), partial(losses, "cpu"))
print(f"loss {here[0]:.6f} to {here[-1]:.6f}, CPU {there[-1]:.6f}")
assert np.allclose(here, there, rtol=TOLERANCE) and here[-1] < here[0]
print("PASSED")
