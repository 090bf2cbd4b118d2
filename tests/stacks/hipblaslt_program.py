"""GEMMs of hipBLASLt against NumPy, by the algorithm that its heuristic has first: each precision, each way its
matrices may be transposed, and one to which a bias is added.

In: the folder of its libraries. Out: a line for each; PASSED. Names and numbers are those of hipblaslt.h and
hipblas-common.h.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
from gemm import OPERATIONS, by_row, matrices, product
from on_device import OnDevice, checked, compare, library

LT = library("libhipblaslt")
SIZES = 65, 33, 47
KINDS = {"f32": (0, np.float32, 1e-5), "f16": (2, np.float16, 2e-3), "bf16": (14, np.uint16, 2e-2)}
FLOAT, COMPUTED_IN_FLOAT = 0, 2
WAY_OF_A, WAY_OF_B, EPILOGUE, BIAS, BIAS_KIND = range(5)  # attributes of a product
MOST_WORKSPACE = 1  # of a preference
ADD_BIAS = 4
WORKSPACE = 4 << 20


def made(name: str, *words: Any) -> ctypes.c_void_p:
    found = ctypes.c_void_p()
    checked(getattr(LT, f"hipblasLt{name}Create")(ctypes.byref(found), *words), f"hipblasLt{name}Create")
    return found


def set_attribute(of: str, which: ctypes.c_void_p, attribute: int, value: Any) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(value))
    status = getattr(LT, f"hipblasLt{of}SetAttribute")(which, attribute, ctypes.byref(value), size)
    checked(status, f"{of}'s attribute {attribute}")


def multiply(handle: ctypes.c_void_p, name: str, transposed: str, workspace: OnDevice, biased: bool = False) -> None:
    number, kind, most = KINDS[name]
    arrays = matrices((kind, kind), transposed, SIZES, 1)
    on_device = [OnDevice(array) for array in arrays]
    expected = 1.5 * product(arrays, transposed) + 0.5 * by_row(arrays[2])
    layouts = [made("MatrixLayout", number, *map(ctypes.c_uint64, array.shape[:0:-1]), ctypes.c_int64(array.shape[-1]))
               for array in arrays]
    described, wish = made("MatmulDesc", COMPUTED_IN_FLOAT, FLOAT), made("MatmulPreference")
    for attribute, way in zip((WAY_OF_A, WAY_OF_B), transposed, strict=True):
        set_attribute("MatmulDesc", described, attribute, ctypes.c_int32(OPERATIONS[way]))
    if biased:
        bias = OnDevice(np.ascontiguousarray(arrays[2][0, 0]))  # one for each row
        expected += by_row(bias.data[None])
        for attribute, value in ((EPILOGUE, ctypes.c_int32(ADD_BIAS)), (BIAS, bias.place),
                                 (BIAS_KIND, ctypes.c_int32(number))):
            set_attribute("MatmulDesc", described, attribute, value)
    set_attribute("MatmulPreference", wish, MOST_WORKSPACE, ctypes.c_uint64(WORKSPACE))
    algorithm, found = ctypes.create_string_buffer(256), ctypes.c_int()  # a hipblasLtMatmulHeuristicResult_t
    a, b, c = layouts
    status = LT.hipblasLtMatmulAlgoGetHeuristic(handle, described, a, b, c, c, wish, 1, algorithm, ctypes.byref(found))
    checked(status or found.value != 1, f"an algorithm for {name} {transposed}")
    alpha, beta = ctypes.c_float(1.5), ctypes.c_float(0.5)
    x, y, z = (array.place for array in on_device)
    status = LT.hipblasLtMatmul(handle, described, ctypes.byref(alpha), x, a, y, b, ctypes.byref(beta), z, c, z, c,
                                algorithm, workspace.place, ctypes.c_size_t(WORKSPACE), None)
    checked(status, f"{name} {transposed}")
    what = f"{name} {transposed}{' with a bias' * biased}"
    compare(what, by_row(on_device[2].back()), expected, most)


def main() -> None:
    handle = made("")
    workspace = OnDevice(np.zeros(WORKSPACE, np.uint8))
    for name, a, b in itertools.product(KINDS, "NT", "NT"):
        multiply(handle, name, f"{a}{b}", workspace)
    for name in KINDS:
        multiply(handle, name, "NN", workspace, biased=True)
    print("PASSED")


if __name__ == "__main__":
    main()
