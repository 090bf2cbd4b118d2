"""Layers of networks by MIOpen against NumPy: softmax, activation, batch normalisation, pooling, and convolutions by
each solution that it has for one. Its kernels are compiled when they are first used. Names and numbers are those of
miopen.h."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from on_device import OnDevice, checked, compare, library

NET = library("libMIOpen")
SHAPE, FILTER, PADDING = (2, 5, 12, 10), (4, 5, 3, 3), 1
KINDS = {np.float32: (1, 1e-5), np.float16: (0, 5e-3)}
RELU, MOST_OF_WINDOW, PER_CHANNEL, CROSS_CORRELATION = 3, 0, 1, 0
EPSILON = 1e-3


class Solution(ctypes.Structure):
    """miopenConvSolution_t."""

    _fields_ = [("time", ctypes.c_float), ("workspace", ctypes.c_size_t), ("number", ctypes.c_uint64),
                ("algorithm", ctypes.c_int)]


def call(name: str, *words: Any) -> None:
    checked(getattr(NET, f"miopen{name}")(*words), f"miopen{name}")


def made(name: str) -> ctypes.c_void_p:
    found = ctypes.c_void_p()
    call(f"Create{name}", ctypes.byref(found))
    return found


def tensor(kind: int, shape: tuple[int, ...]) -> ctypes.c_void_p:
    found = made("TensorDescriptor")
    call("Set4dTensorDescriptor", found, kind, *shape)
    return found


def windows(values: np.ndarray, side: int, step: int = 1) -> np.ndarray:
    """Of height and width, as the last two axes."""
    return np.lib.stride_tricks.sliding_window_view(values, (side, side), axis=(2, 3))[:, :, ::step, ::step]


def layers(handle: ctypes.c_void_p, kind: type) -> None:
    number, most = KINDS[kind]
    rng = np.random.default_rng(5)
    values = rng.standard_normal(SHAPE).astype(kind)
    x, exact, shape = OnDevice(values), values.astype(float), tensor(number, SHAPE)
    one, zero = (ctypes.byref(ctypes.c_float(factor)) for factor in (1, 0))

    def layer(name: str, expected: np.ndarray, *words: Any, before: tuple[Any, ...] = (), middle: Any = None) -> None:
        result = OnDevice(np.zeros(expected.shape, kind))
        scaled = (one, shape, x.place, zero) if middle is None else (one, zero, shape, x.place)
        call(name, handle, *before, *scaled, tensor(number, expected.shape), result.place, *words)
        compare(f"{np.dtype(kind).name} {name}", result.back().astype(float), expected, most)

    powers = np.exp(exact)
    layer("SoftmaxForward", powers / powers.sum(1, keepdims=True))
    activation = made("ActivationDescriptor")
    call("SetActivationDescriptor", activation, RELU, *map(ctypes.c_double, (1, 1, 1)))
    layer("ActivationForward", np.maximum(exact, 0), before=(activation,))
    pooling = made("PoolingDescriptor")
    call("Set2dPoolingDescriptor", pooling, MOST_OF_WINDOW, 2, 2, 0, 0, 2, 2)
    layer("PoolingForward", windows(exact, 2, 2).max((4, 5)), ctypes.c_bool(False), None, ctypes.c_size_t(0),
          before=(pooling,))
    scale, bias, mean, variance = rng.random((4, 1, SHAPE[1], 1, 1)).astype(np.float32) + 0.5
    known = [OnDevice(each) for each in (scale, bias, mean, variance)]
    layer("BatchNormalizationForwardInference", (exact - mean) / np.sqrt(variance + EPSILON) * scale + bias,
          tensor(KINDS[np.float32][0], scale.shape), *(each.place for each in known), ctypes.c_double(EPSILON),
          before=(PER_CHANNEL,), middle=True)


def convolve(handle: ctypes.c_void_p, kind: type) -> None:
    number, most = KINDS[kind]
    rng = np.random.default_rng(6)
    values, weights = rng.standard_normal(SHAPE).astype(kind), rng.standard_normal(FILTER).astype(kind)
    padded = np.pad(values.astype(float), ((0, 0), (0, 0), (PADDING, PADDING), (PADDING, PADDING)))
    expected = np.einsum("nchwij,kcij->nkhw", windows(padded, FILTER[2]), weights.astype(float))
    how = made("ConvolutionDescriptor")
    call("InitConvolutionDescriptor", how, CROSS_CORRELATION, PADDING, PADDING, 1, 1, 1, 1)
    of, by, to = (tensor(number, shape) for shape in (SHAPE, FILTER, expected.shape))
    x, w = OnDevice(values), OnDevice(weights)
    solutions, count = (Solution * 32)(), ctypes.c_size_t()
    call("ConvolutionForwardGetSolution", handle, by, of, how, to, ctypes.c_size_t(len(solutions)),
         ctypes.byref(count), solutions)
    if not count.value:
        sys.exit("there is no solution")
    for solution in solutions[: count.value]:
        result, chosen = OnDevice(np.zeros(expected.shape, kind)), ctypes.c_uint64(solution.number)
        space = OnDevice(np.zeros(solution.workspace, np.uint8))
        call("ConvolutionForwardCompileSolution", handle, by, of, how, to, chosen)
        call("ConvolutionForwardImmediate", handle, by, w.place, of, x.place, how, to, result.place, space.place,
             ctypes.c_size_t(solution.workspace), chosen)
        what = f"{np.dtype(kind).name} convolution {solution.number}"
        compare(what, result.back().astype(float), expected, most)


def main() -> None:
    handle = ctypes.c_void_p()
    call("Create", ctypes.byref(handle))
    for kind in KINDS:
        layers(handle, kind)
        convolve(handle, kind)
    print("PASSED")


if __name__ == "__main__":
    main()
