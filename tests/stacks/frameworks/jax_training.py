"""Ten steps of training a small network with JAX, on the device and on the CPU: the same losses."""

import jax
import jax.numpy as jnp
import numpy as np
from jax_network import first, inputs, step, wanted

TOLERANCE = 1e-5


def losses(device):
    with jax.default_device(device):
        weights, found = [jnp.asarray(weight) for weight in first], []
        for _ in range(10):
            value, weights = step(weights, jnp.asarray(inputs), jnp.asarray(wanted))
            found.append(float(value))
    return found


here, there = (losses(jax.devices(platform)[0]) for platform in ("rocm", "cpu"))
print(f"loss {here[0]:.6f} to {here[-1]:.6f}, CPU {there[-1]:.6f}")
assert np.allclose(here, there, rtol=TOLERANCE) and here[-1] < here[0]
print("PASSED")
