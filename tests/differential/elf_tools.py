"""The other readers of code objects that the differential tests compare with: llvm-readelf and comgr.

In: the bytes of a code object. Out: what the reader says of it, as plain data. Nothing here uses luthier_py.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCE = r"""
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
typedef unsigned u32;
__device__ u32 counter;
__device__ u32 table[16] = {1, 2, 3};
__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ __attribute__((noinline)) float twice(float x) { return x * 2.f; }
__device__ __attribute__((noinline)) float thrice(float x) { return x * 3.f; }
typedef float (*Function)(float);
__device__ Function functions[2] = {twice, thrice};
__device__ inline u32 index() {
  return __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
}
extern "C" __global__ void vadd(const float *a, const float *b, float *c, u32 n) {
  u32 i = index();
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void reduce(float *a, float *out) {
  __shared__ float tile[256];
  u32 t = __builtin_amdgcn_workitem_id_x();
  tile[t] = a[index()];
  __builtin_amdgcn_s_barrier();
  out[index()] = tile[255 - t];
  __atomic_fetch_add(&counter, 1u, __ATOMIC_RELAXED);
}
extern "C" __global__ void pointers(float *a, u32 k) {
  a[index()] = functions[k](a[index()]) + table[k] + coefficients[k & 3];
}
extern "C" __global__ void direct(float *a) { a[index()] = twice(a[index()]); }
struct Big { double values[9]; };
template <typename T> __global__ void typed(Big big, T *out, char small) { *out = big.values[small]; }
template __global__ void typed<double>(Big, double *, char);
extern "C" __global__ void empty() {}
"""

# (processor, code object version): every version, XNACK and SRAM-ECC settings, both wave sizes, a generic target
VARIANTS = (
    ("gfx90a", 4), ("gfx90a", 5), ("gfx90a:xnack+:sramecc-", 6), ("gfx9-generic", 6), ("gfx906:xnack-", 5),
    ("gfx942", 5), ("gfx1030", 5), ("gfx1100", 5), ("gfx1201", 6),
)


def compile_hip(clang: str, processor: str, version: int, source: str = SOURCE) -> bytes:
    command = [
        clang, "-x", "hip", f"--offload-arch={processor}", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib",
        "-nogpuinc", "-O2", f"-mcode-object-version={version}", "-", "-o", "-",
    ]
    return subprocess.run(command, input=source.encode(), capture_output=True, check=True).stdout


def readelf(tool: str, path: Path, *options: str) -> str:
    """llvm-readelf's text; a warning is a failure."""
    result = subprocess.run([tool, *options, str(path)], capture_output=True, text=True, check=True)
    assert result.stderr == "", result.stderr
    assert "warning" not in result.stdout
    return result.stdout


def readelf_json(tool: str, path: Path) -> dict[str, Any]:
    options = ["--file-header", "--sections", "--segments", "--symbols", "--dyn-symbols", "--relocations", "--notes"]
    document: dict[str, Any] = json.loads(readelf(tool, path, "--elf-output-style=JSON", *options))[0]
    return document


class Comgr:
    """AMD's code object manager, which HIP reads kernels and their metadata with."""

    _EXECUTABLE = 8
    _STRING, _MAP, _LIST = 1, 2, 3
    _NAME_LENGTH, _NAME, _TYPE, _SIZE, _UNDEFINED, _VALUE = range(6)

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"amd_comgr_{name}")(*arguments)
        assert status == 0, f"amd_comgr_{name} says {status}"

    def isa(self, data: bytes) -> str:
        """Name of the target; comgr 2.4 says it for code objects up to version 4."""
        with self._data(data) as handle:
            return self._text("get_data_isa_name", handle)

    def metadata(self, data: bytes) -> dict[str, Any]:
        """The metadata document, all scalars as text."""
        with self._data(data) as handle:
            node = ctypes.c_uint64()
            self._call("get_data_metadata", handle, ctypes.byref(node))
            metadata: dict[str, Any] = self._node(node)
            self._call("destroy_metadata", node)
            return metadata

    def symbols(self, data: bytes) -> dict[str, tuple[int, int, bool, int]]:
        """Dynamic symbols: name -> (type, size, undefined, value)."""
        with self._data(data) as handle:
            return dict(self._symbols(handle))

    @contextmanager
    def _data(self, data: bytes) -> Iterator[ctypes.c_uint64]:
        handle = ctypes.c_uint64()
        self._call("create_data", self._EXECUTABLE, ctypes.byref(handle))
        try:
            self._call("set_data", handle, ctypes.c_size_t(len(data)), data)
            yield handle
        finally:
            self._call("release_data", handle)

    def _text(self, function: str, handle: ctypes.c_uint64) -> str:
        size = ctypes.c_size_t()
        self._call(function, handle, ctypes.byref(size), None)
        buffer = ctypes.create_string_buffer(size.value)
        self._call(function, handle, ctypes.byref(size), buffer)
        return buffer.value.decode()

    def _node(self, node: ctypes.c_uint64) -> Any:
        kind = ctypes.c_int()
        self._call("get_metadata_kind", node, ctypes.byref(kind))
        if kind.value == self._STRING:
            return self._text("get_metadata_string", node)
        if kind.value == self._LIST:
            size = ctypes.c_size_t()
            self._call("get_metadata_list_size", node, ctypes.byref(size))
            return [self._item(node, index) for index in range(size.value)]
        assert kind.value == self._MAP
        result: dict[str, Any] = {}

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
        def visit(key: int, value: int, _: Any) -> int:
            result[self._node(ctypes.c_uint64(key))] = self._node(ctypes.c_uint64(value))
            return 0

        self._call("iterate_map_metadata", node, visit, None)
        return result

    def _item(self, node: ctypes.c_uint64, index: int) -> Any:
        item = ctypes.c_uint64()
        self._call("index_list_metadata", node, ctypes.c_size_t(index), ctypes.byref(item))
        value = self._node(item)
        self._call("destroy_metadata", item)
        return value

    def _symbols(self, handle: ctypes.c_uint64) -> Iterator[tuple[str, tuple[int, int, bool, int]]]:
        found: list[tuple[str, tuple[int, int, bool, int]]] = []

        def info(symbol: ctypes.c_uint64, attribute: int) -> int:
            value = ctypes.c_uint64()
            self._call("symbol_get_info", symbol, attribute, ctypes.byref(value))
            return value.value

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)
        def visit(raw: int, _: Any) -> int:
            symbol = ctypes.c_uint64(raw)
            name = ctypes.create_string_buffer(info(symbol, self._NAME_LENGTH) + 1)
            self._call("symbol_get_info", symbol, self._NAME, name)
            type, size, undefined, value = (
                info(symbol, what) for what in (self._TYPE, self._SIZE, self._UNDEFINED, self._VALUE)
            )
            found.append((name.value.decode(), (type, size, bool(undefined & 0xFF), value)))
            return 0

        self._call("iterate_symbols", handle, visit, None)
        return iter(found)
