"""Numbers for programs that run the kernels of others: as memory has them, and what they are; who is near enough.

In: a kind's name, as compilers have it. Out: arrays. Invariant: nothing here is imported from the package, nor run on
the device.
"""

from __future__ import annotations

import numpy as np

SMALL = {"f8E4M3FNUZ": (4, 8), "f8E5M2FNUZ": (5, 16), "f8E4M3FN": (4, 7), "f8E5M2": (5, 15)}
"""Bits of the exponent, and its bias, by MLIR's name."""


class Comparison:
    """Mutable: results so far by name, and a line for each that was wrong."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.results: dict[str, np.ndarray] = {}
        self.wrong: list[str] = []

    def near(self, name: str, got: np.ndarray, wanted: np.ndarray, error: float) -> None:
        """Each number within ``error`` of what is wanted; NaN is near to nothing."""
        off = np.abs(got.astype(float) - wanted)
        if not np.all(off <= error):
            place = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            self.wrong.append(f"{name}: {got.flat[place]} for {np.asarray(wanted).flat[place]} at {place}")

    def floats(self, kind: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """As memory has them (bf16 as words, fp8 as bytes), and the numbers that they are."""
        values = self.random.standard_normal(shape).astype(np.float32)
        if kind == "f16":
            return values.astype(np.float16), values.astype(np.float16).astype(float)
        if kind == "bf16":
            bits = values.view(np.uint32) >> 16
            return bits.astype(np.uint16), (bits.astype(np.uint32) << 16).view(np.float32).astype(float)
        if kind == "f32":
            return values, values.astype(float)
        exponent, _ = SMALL[kind]
        size = self.random.integers(1 << 7 - exponent, 10 << 7 - exponent, shape)  # below 1, mostly
        bits = (size | self.random.integers(0, 2, shape) << 7).astype(np.uint8)
        return bits, small(bits, kind)

    def end(self, file: str | None) -> None:
        """Says what was wrong, or PASSED; results go to that file."""
        if file:
            np.savez(file, **self.results)
        print("\n".join(line.replace("\n", " ") for line in self.wrong) or "PASSED")


def small(bits: np.ndarray, kind: str) -> np.ndarray:
    """What bytes are as floats of that kind; no infinities and NaNs."""
    exponent, bias = SMALL[kind]
    mantissa = 7 - exponent
    sign, power, rest = bits >> 7, bits >> mantissa & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
    size = np.where(power > 0, (1 + rest / 2**mantissa) * 2.0 ** (power.astype(int) - bias),
                    rest / 2**mantissa * 2.0 ** (1 - bias))
    return np.where(sign > 0, -size, size)
