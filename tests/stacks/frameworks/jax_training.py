"""Ten steps of training a small network with JAX, on the device and on the CPU: the same losses."""

import jax
import jax.numpy as jnp
import numpy as np

TOLERANCE = 1e-5
random = np.random.default_rng(0)
inputs, wanted = (random.standard_normal((64, size)).astype(np.float32) for size in (48, 8))
first = [0.1 * random.standard_normal(shape).astype(np.float32) for shape in ((48, 32), (32, 8))]


def loss(weights, inputs, wanted):
    return ((jnp.tanh(inputs @ weights[0]) @ weights[1] - wanted) ** 2).mean()


@jax.jit
def step(weights, inputs, wanted):
    value, slopes = jax.value_and_grad(loss)(weights, inputs, wanted)
    return value, [weight - 0.5 * slope for weight, slope in zip(weights, slopes, strict=True)]


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
