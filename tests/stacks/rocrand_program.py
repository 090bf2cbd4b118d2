"""Random numbers of rocRAND's generators on the device against those of the same generators on the host, which are
compiled for the CPU. Names and numbers are those of rocrand.h."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from on_device import OnDevice, checked, compare, library

RANDOM = library("librocrand")
GENERATORS = {"xorwow": 401, "mrg32k3a": 402, "philox": 404, "threefry2_64": 409, "sobol32": 501}
EVEN = 500  # from here on: sequences that fill a cube evenly
COUNT = 5000  # even: so many normal numbers some generators want
MOST = {np.uint32: 1e-15, np.float32: 1e-5, np.float64: 1e-12}
WIDE = "threefry2_64"  # has no numbers of 32 bits


def fill(way: str, generator: int, what: str, place: ctypes.c_void_p, *words: Any) -> None:
    handle = ctypes.c_void_p()
    checked(getattr(RANDOM, f"rocrand_create_generator{way}")(ctypes.byref(handle), generator), f"create {generator}")
    if generator < EVEN:
        checked(RANDOM.rocrand_set_seed(handle, ctypes.c_uint64(123456789)), "rocrand_set_seed")
    status = getattr(RANDOM, f"rocrand_generate{what}")(handle, place, ctypes.c_size_t(COUNT), *words)
    checked(status, f"rocrand_generate{what} by {generator}{way}")
    if not way:
        checked(RANDOM.rocrand_destroy_generator(handle), "rocrand_destroy_generator")


def main() -> None:
    cases = [("", np.uint32, ()), ("_uniform", np.float32, ()), ("_uniform_double", np.float64, ()),
             ("_normal", np.float32, (ctypes.c_float(1), ctypes.c_float(2))),
             ("_normal_double", np.float64, (ctypes.c_double(1), ctypes.c_double(2)))]
    for name, generator in GENERATORS.items():
        # Of an even sequence, normal numbers near their mean are differences of almost equal ones: last bits decide.
        for what, kind, words in cases[:3] if generator > EVEN else cases:
            if name == WIDE and not what:
                what, kind = "_long_long", np.uint64
            found, expected = OnDevice(np.zeros(COUNT, kind)), np.zeros(COUNT, kind)
            fill("", generator, what, found.place, *words)
            fill("_host_blocking", generator, what, ctypes.c_void_p(expected.ctypes.data), *words)
            if not expected.any():
                raise SystemExit(f"{name}{what}: the host has made nothing")
            compare(f"{name}{what}", found.back().astype(float), expected.astype(float), MOST.get(kind, 1e-15))
    print("PASSED")


if __name__ == "__main__":
    main()
