"""Fourier transforms of rocFFT against NumPy: in one to three dimensions, of lengths that are no powers of two, too, in
place and not, real and complex. Names and numbers are those of rocfft.h."""

from __future__ import annotations

import ctypes

import numpy as np
from on_device import OnDevice, checked, compare, library

FFT = library("librocfft")
IN_PLACE, NOT_IN_PLACE = 0, 1
FORWARD, INVERSE, REAL_FORWARD, REAL_INVERSE = range(4)
SINGLE, DOUBLE = 0, 1
LENGTHS = {np.float32: ((60,), (97,), (32, 24), (8, 12, 10)), np.float64: ((64,),)}  # rocFFT compiles for each
MOST = {np.float32: 1e-5, np.float64: 1e-13}
BATCH = 2


def transform(values: np.ndarray, like: np.ndarray, kind: int, lengths: tuple[int, ...], place: int) -> np.ndarray:
    """``lengths``: of what is real, where that is."""
    plan, precision = ctypes.c_void_p(), DOUBLE if values.dtype in (np.float64, np.complex128) else SINGLE
    sizes = (ctypes.c_size_t * len(lengths))(*lengths[::-1])  # the fastest first
    checked(FFT.rocfft_plan_create(ctypes.byref(plan), place, kind, precision, ctypes.c_size_t(len(lengths)), sizes,
                                   ctypes.c_size_t(BATCH), None), "rocfft_plan_create")
    source = OnDevice(values)
    to = source if place == IN_PLACE else OnDevice(like)
    buffers = [(ctypes.c_void_p * 1)(array.place) for array in (source, to)]
    checked(FFT.rocfft_execute(plan, buffers[0], None if place == IN_PLACE else buffers[1], None), "rocfft_execute")
    found = to.back()
    checked(FFT.rocfft_plan_destroy(plan), "rocfft_plan_destroy")
    return found


def main() -> None:
    checked(FFT.rocfft_setup(), "rocfft_setup")
    rng = np.random.default_rng(7)
    for kind, most in MOST.items():
        for lengths in LENGTHS[kind]:
            axes, shape = tuple(range(1, len(lengths) + 1)), (BATCH, *lengths)
            whole = np.result_type(kind, np.complex64)
            given = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(whole)
            name = f"{np.dtype(whole).name} {'x'.join(map(str, lengths))}"
            for place in (IN_PLACE, NOT_IN_PLACE):
                found = transform(given, np.zeros_like(given), FORWARD, lengths, place)
                compare(f"{name} forward {place}", found, np.fft.fftn(given, axes=axes), most)
            found = transform(given, np.zeros_like(given), INVERSE, lengths, NOT_IN_PLACE)
            compare(f"{name} inverse", found, np.fft.ifftn(given, axes=axes) * np.prod(lengths), most)
            real = rng.standard_normal(shape).astype(kind)
            half = np.fft.rfftn(real, axes=axes)
            found = transform(real, np.zeros(half.shape, whole), REAL_FORWARD, lengths, NOT_IN_PLACE)
            compare(f"{name} of reals", found, half, most)
            found = transform(half.astype(whole), np.zeros_like(real), REAL_INVERSE, lengths, NOT_IN_PLACE)
            compare(f"{name} to reals", found, real * np.prod(lengths), most)
    checked(FFT.rocfft_cleanup(), "rocfft_cleanup")
    print("PASSED")


if __name__ == "__main__":
    main()
