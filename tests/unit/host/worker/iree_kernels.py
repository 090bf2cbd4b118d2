"""Kernels that IREE compiles from MLIR and runs through its own HIP driver, which finds the emulator's libamdhip64.so.

argv: ``all``, or some by their names (``"matmul f16,softmax"``), and a file for results. Says PASSED when NumPy gets
the same, else a line for each kernel that differs or fails. The target is LUTHIER_DEVICE's. Floats smaller than f32 go
in and out as integers of their width.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import iree.compiler.tools as compiler
import iree.runtime as iree
import numpy as np
from foreign_numbers import Comparison

WIDTHS = {"f32": "f32", "f16": "f16", "bf16": "i16", "f8E4M3FNUZ": "i8", "f8E5M2FNUZ": "i8", "f8E4M3FN": "i8",
          "f8E5M2": "i8"}  # fmt: skip
FNUZ, OCP = ("f8E4M3FNUZ", "f8E5M2FNUZ"), ("f8E4M3FN", "f8E5M2")
EIGHTHS = {"gfx942": FNUZ, "gfx950": OCP, "gfx1200": OCP, "gfx1201": OCP, "gfx1250": OCP}
"""Which floats of 8 bits a target's matrix instructions take; others have none."""

SIZES = (128, 64, 128), (33, 70, 50)  # rows, inner, columns: what tiles divide, and what they do not
IDENTITY = "affine_map<(d0, d1) -> (d0, d1)>"


class Bench(Comparison):
    """Mutable: results so far, what was wrong; compiles for one target."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target, self.config = target, iree.Config(device=iree.get_device("hip"))

    def run(self, name: str, text: str, *inputs: np.ndarray) -> list[np.ndarray]:
        """The results of the module's one function, ``f``."""
        words = ["--iree-hal-target-device=hip", f"--iree-rocm-target={self.target}"]
        binary = compiler.compile_str(text, extra_args=words)
        module = iree.load_vm_module(iree.VmModule.copy_buffer(self.config.vm_instance, binary), self.config)
        found = module.f(*inputs)
        arrays = [np.array(each.to_host()) for each in (found if isinstance(found, Sequence) else (found,))]
        self.results |= {f"{name} {number}": array for number, array in enumerate(arrays)}
        return arrays


def tensor(shape: Sequence[int], kind: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{kind}>"


def given(name: str, shape: Sequence[int], kind: str) -> str:
    """%NAME, of that kind, from %NAME_bits as they come in."""
    known, there = tensor(shape, kind), tensor(shape, WIDTHS[kind])
    if known == there:
        return f"%{name} = util.optimization_barrier %{name}_bits : {known}\n"
    return f"%{name} = arith.bitcast %{name}_bits : {there} to {known}\n"


def filled(name: str, shape: Sequence[int], kind: str, value: str) -> str:
    whole = tensor(shape, kind)
    return (f"%{name}_value = arith.constant {value} : {kind}\n%{name}_empty = tensor.empty() : {whole}\n"
            f"%{name} = linalg.fill ins(%{name}_value : {kind}) outs(%{name}_empty : {whole}) -> {whole}\n")


def matmul(bench: Bench, kind: str, rows: int, inner: int, columns: int) -> None:
    """Into f32, or of bytes into i32."""
    integers = kind == "i8"
    left, right, out = (rows, inner), (inner, columns), tensor((rows, columns), "i32" if integers else "f32")
    types = [tensor(shape, kind) for shape in (left, right)]
    bits = [tensor(shape, WIDTHS.get(kind, kind)) for shape in (left, right)]
    names = ("%a_bits", "%b_bits") if integers else ("%a", "%b")
    casts = "" if integers else given("a", left, kind) + given("b", right, kind)
    zero = filled("zero", (rows, columns), *(("i32", "0") if integers else ("f32", "0.0")))
    text = f"""func.func @f(%a_bits: {bits[0]}, %b_bits: {bits[1]}) -> {out} {{
      {casts}{zero}%y = linalg.matmul ins({", ".join(names)} : {", ".join(types)}) outs(%zero : {out}) -> {out}
      return %y : {out} }}"""
    if integers:
        a, b = (bench.random.integers(-128, 128, shape).astype(np.int8) for shape in (left, right))
        exact, error = a.astype(int) @ b.astype(int), 0.0
    else:
        (a, a_numbers), (b, b_numbers) = bench.floats(kind, left), bench.floats(kind, right)
        exact, error = a_numbers @ b_numbers, 2e-6 * float((np.abs(a_numbers) @ np.abs(b_numbers)).max())
    name = f"matmul {kind} {rows}x{inner}x{columns}"
    bytes_ = [each.view(np.int16) if each.dtype == np.uint16 else each.view(np.int8) if each.itemsize == 1 else each
              for each in (a, b)]
    bench.near(name, bench.run(name, text, *bytes_)[0], exact, error)


def softmax(bench: Bench) -> None:
    whole = tensor((8, 301), "f32")
    rows = bench.random.standard_normal((8, 301)).astype(np.float32)
    out, = bench.run("softmax", f"""func.func @f(%x: {whole}) -> {whole} {{
      %e = tensor.empty() : {whole}
      %y = linalg.softmax dimension(1) ins(%x : {whole}) outs(%e : {whole}) -> {whole}
      return %y : {whole} }}""", rows)
    powers = np.exp(rows.astype(float) - rows.max(1, keepdims=True))
    bench.near("softmax", out, powers / powers.sum(1, keepdims=True), 1e-6)


def dynamic(bench: Bench) -> None:
    """Sizes that are known when it runs: one module, two sizes."""
    whole = "tensor<?x?xf32>"
    text = f"""func.func @f(%a: {whole}, %b: {whole}) -> {whole} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rows = tensor.dim %a, %c0 : {whole}
      %columns = tensor.dim %b, %c1 : {whole}
      %z = arith.constant 0.0 : f32
      %e = tensor.empty(%rows, %columns) : {whole}
      %zero = linalg.fill ins(%z : f32) outs(%e : {whole}) -> {whole}
      %y = linalg.matmul ins(%a, %b : {whole}, {whole}) outs(%zero : {whole}) -> {whole}
      return %y : {whole} }}"""
    for rows, inner, columns in ((5, 17, 33), (70, 40, 3)):
        (a, left), (b, right) = bench.floats("f32", (rows, inner)), bench.floats("f32", (inner, columns))
        name = f"dynamic {rows}x{inner}x{columns}"
        bench.near(name, bench.run(name, text, a, b)[0], left @ right, 1e-4)


def attention(bench: Bench, kind: str) -> None:
    shape, heads, rows, width = (2, 64, 32), 2, 64, 32
    whole, there = tensor(shape, kind), tensor(shape, WIDTHS[kind])
    maps = ", ".join(f"affine_map<(d0, d1, d2, d3, d4) -> ({axes})>"
                     for axes in ("d0, d1, d2", "d0, d3, d2", "d0, d3, d4", "", "d0, d1, d4"))
    scale = 1 / math.sqrt(width)
    text = f"""func.func @f(%q_bits: {there}, %k_bits: {there}, %v_bits: {there}) -> {tensor(shape, "f32")} {{
      {given("q", shape, kind)}{given("k", shape, kind)}{given("v", shape, kind)}
      %scale = arith.constant {scale:.17g} : {kind}
      %e = tensor.empty() : {tensor(shape, "f32")}
      %y = iree_linalg_ext.attention <indexing_maps = [{maps}]>
          ins(%q, %k, %v, %scale : {whole}, {whole}, {whole}, {kind}) outs(%e : {tensor(shape, "f32")}) {{
        ^bb0(%score: f32):
          iree_linalg_ext.yield %score : f32
      }} -> {tensor(shape, "f32")}
      return %y : {tensor(shape, "f32")} }}"""
    (q, q_is), (k, k_is), (v, v_is) = (bench.floats(kind, shape) for _ in "qkv")
    name = f"attention {kind}"
    inputs = (each.view(np.int16) if each.dtype == np.uint16 else each for each in (q, k, v))
    out, = bench.run(name, text, *inputs)
    wanted = np.zeros((heads, rows, width))
    for head in range(heads):
        powers = np.exp((scores := q_is[head] @ k_is[head].T * scale) - scores.max(1, keepdims=True))
        wanted[head] = powers / powers.sum(1, keepdims=True) @ v_is[head]
    bench.near(name, out, wanted, {"f32": 2e-6, "f16": 4e-3, "bf16": 3e-2}[kind])


def convolution(bench: Bench, kind: str) -> None:
    image, kernel, result = (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32)
    out = tensor(result, "f32")
    text = f"""func.func @f(%x_bits: {tensor(image, kind)}, %w_bits: {tensor(kernel, kind)}) -> {out} {{
      {given("x", image, kind)}{given("w", kernel, kind)}{filled("zero", result, "f32", "0.0")}
      %y = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
          ins(%x, %w : {tensor(image, kind)}, {tensor(kernel, kind)}) outs(%zero : {out}) -> {out}
      return %y : {out} }}"""
    (x, x_is), (w, w_is) = bench.floats(kind, image), bench.floats(kind, kernel)
    wanted = sum(np.einsum("bhwc,cf->bhwf", x_is[:, i : i + 16, j : j + 16], w_is[i, j])
                 for i in range(3) for j in range(3))
    name = f"convolution {kind}"
    bench.near(name, bench.run(name, text, x, w)[0], np.asarray(wanted), 2e-4)


def elementwise(bench: Bench, name: str, body: str, kinds: tuple[str, str], x: np.ndarray) -> np.ndarray:
    """``body`` makes %r of %x."""
    inside, outside = (tensor(x.shape, kind) for kind in kinds)
    text = f"""func.func @f(%in: {inside}) -> {outside} {{
      %e = tensor.empty() : {outside}
      %y = linalg.generic {{indexing_maps = [{IDENTITY}, {IDENTITY}], iterator_types = ["parallel", "parallel"]}}
          ins(%in : {inside}) outs(%e : {outside}) {{
        ^bb0(%x: {kinds[0]}, %old: {kinds[1]}):
          {body}
          linalg.yield %r : {kinds[1]}
      }} -> {outside}
      return %y : {outside} }}"""
    return bench.run(name, text, x)[0]


FUNCTIONS: dict[str, tuple[Callable[[float], float], float]] = {
    "sin": (math.sin, 2e-6), "cos": (math.cos, 2e-6), "tanh": (math.tanh, 1e-6), "exp": (math.exp, 2e-4),
    "exp2": (lambda x: 2.0**x, 2e-5), "expm1": (math.expm1, 2e-4), "erf": (math.erf, 1e-6), "atan": (math.atan, 1e-6),
    "floor": (math.floor, 0), "ceil": (math.ceil, 0), "roundeven": (round, 0),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), 1e-6),
}  # fmt: skip


def functions(bench: Bench) -> None:
    x = bench.random.uniform(-6, 6, (4, 65)).astype(np.float32)
    for name, (function, error) in FUNCTIONS.items():
        out = elementwise(bench, name, f"%r = math.{name} %x : f32", ("f32", "f32"), x)
        bench.near(name, out, np.vectorize(function, otypes=[float])(x.astype(float)), error)
    for name, wanted in (("log", np.log), ("sqrt", np.sqrt), ("rsqrt", lambda v: v**-0.5), ("log2", np.log2)):
        positive = np.abs(x) + np.float32(0.01)
        out = elementwise(bench, name, f"%r = math.{name} %x : f32", ("f32", "f32"), positive)
        bench.near(name, out, wanted(positive.astype(float)), 2e-6 * 10)


def smaller(bench: Bench, kind: str) -> None:
    """f32 rounded to a small float and back, each the nearest; ties to even are in the bits that are given."""
    codes, known = bench.floats(kind, (8, 32))
    there = WIDTHS[kind]
    out = elementwise(bench, f"from {kind}", f"%s = arith.bitcast %x : {there} to {kind}\n"
                      f"%r = arith.extf %s : {kind} to f32", (there, "f32"), codes.view(np.int8))
    bench.near(f"from {kind}", out, known, 0)
    values = known * (1 + bench.random.uniform(-1, 1, known.shape) / 4096)  # nearer to it than to its neighbours
    out = elementwise(bench, f"to {kind}", f"%s = arith.truncf %x : f32 to {kind}\n"
                      f"%r = arith.bitcast %s : {kind} to {there}", ("f32", there), values.astype(np.float32))
    bench.near(f"to {kind}", out.view(np.uint8), codes, 0)


def whole_numbers(bench: Bench) -> None:
    x = bench.random.integers(-(2**31), 2**31, (4, 70)).astype(np.int32)
    half = np.where(x < 0, -1, 1) * (np.abs(x.astype(np.int64)) // 7)
    for name, body, wanted in (
        ("divide", "%c = arith.constant 7 : i32\n%r = arith.divsi %x, %c : i32", half),
        ("remainder", "%c = arith.constant 1000003 : i32\n%r = arith.remsi %x, %c : i32",
         np.sign(x.astype(np.int64)) * (np.abs(x.astype(np.int64)) % 1000003)),
        ("ones", "%r = math.ctpop %x : i32", np.vectorize(lambda v: bin(int(v) & 0xFFFFFFFF).count("1"))(x)),
        ("leading", "%r = math.ctlz %x : i32", np.vectorize(lambda v: 32 - (int(v) & 0xFFFFFFFF).bit_length())(x)),
    ):  # fmt: skip
        bench.near(name, elementwise(bench, name, body, ("i32", "i32"), x), wanted, 0)
    y = bench.random.integers(-(2**62), 2**62, (3, 40))
    out = elementwise(bench, "divide 64", "%c = arith.constant 1234567891 : i64\n%r = arith.divsi %x, %c : i64",
                      ("i64", "i64"), y)
    bench.near("divide 64", out - np.where(y < 0, -1, 1) * (np.abs(y) // 1234567891), np.zeros_like(y), 0)


def row_sums(bench: Bench) -> None:
    """Sums and the place of the largest, along rows."""
    shape = (9, 1000)
    x = bench.random.standard_normal(shape).astype(np.float32)
    maps = "affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>"
    text = f"""func.func @f(%x: {tensor(shape, "f32")}) -> (tensor<9xf32>, tensor<9xi32>) {{
      {filled("zero", (9,), "f32", "0.0")}{filled("least", (9,), "f32", "0xFF800000")}{filled("at", (9,), "i32", "0")}
      %s = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}
          ins(%x : {tensor(shape, "f32")}) outs(%zero : tensor<9xf32>) {{
        ^bb0(%v: f32, %sum: f32):
          %n = arith.addf %v, %sum : f32
          linalg.yield %n : f32
      }} -> tensor<9xf32>
      %m:2 = linalg.generic {{indexing_maps = [{maps}, affine_map<(d0, d1) -> (d0)>],
                              iterator_types = ["parallel", "reduction"]}}
          ins(%x : {tensor(shape, "f32")}) outs(%least, %at : tensor<9xf32>, tensor<9xi32>) {{
        ^bb0(%v: f32, %most: f32, %where: i32):
          %i = linalg.index 1 : index
          %here = arith.index_cast %i : index to i32
          %more = arith.cmpf ogt, %v, %most : f32
          %best = arith.select %more, %v, %most : f32
          %place = arith.select %more, %here, %where : i32
          linalg.yield %best, %place : f32, i32
      }} -> (tensor<9xf32>, tensor<9xi32>)
      return %s, %m#1 : tensor<9xf32>, tensor<9xi32> }}"""
    sums, places = bench.run("rows", text, x)
    bench.near("rows: sums", sums, x.astype(float).sum(1), 1e-3)
    bench.near("rows: largest", places, x.argmax(1), 0)


def sort(bench: Bench) -> None:
    whole = tensor((3, 64), "i32")
    x = bench.random.integers(-1000, 1000, (3, 64)).astype(np.int32)
    out, = bench.run("sort", f"""func.func @f(%x: {whole}) -> {whole} {{
      %y = iree_linalg_ext.sort dimension(1) outs(%x : {whole}) {{
        ^bb0(%a: i32, %b: i32):
          %less = arith.cmpi slt, %a, %b : i32
          iree_linalg_ext.yield %less : i1
      }} -> {whole}
      return %y : {whole} }}""", x)
    bench.near("sort", out, np.sort(x, 1), 0)


def scan(bench: Bench) -> None:
    whole = tensor((4, 128), "f32")
    x = bench.random.integers(-50, 50, (4, 128)).astype(np.float32)
    out, = bench.run("scan", f"""func.func @f(%x: {whole}) -> {whole} {{
      %e = tensor.empty() : {whole}
      {filled("zero", (4,), "f32", "0.0")}
      %y:2 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : {whole})
          outs(%e, %zero : {whole}, tensor<4xf32>) {{
        ^bb0(%a: f32, %b: f32):
          %s = arith.addf %a, %b : f32
          iree_linalg_ext.yield %s : f32
      }} -> {whole}, tensor<4xf32>
      return %y#0 : {whole} }}""", x)
    bench.near("scan", out, np.cumsum(x, 1), 0)


def main() -> None:
    target = os.environ["LUTHIER_DEVICE"].partition(":")[2]
    bench, eighths = Bench(target), EIGHTHS.get(target, ())
    tasks: list[tuple[Any, ...]] = [
        *((matmul, kind, *size) for kind in ("f32", "f16", "bf16", "i8", *eighths) for size in SIZES), (softmax,),
        (dynamic,), *((attention, kind) for kind in ("f32", "f16", "bf16")),
        *((convolution, kind) for kind in ("f32", "f16")), *((smaller, kind) for kind in eighths),
        (functions,), (whole_numbers,), (row_sums,), (sort,), (scan,)]
    chosen = None if sys.argv[1] == "all" else set(sys.argv[1].split(","))
    for task, *arguments in tasks:
        if chosen is not None and " ".join([task.__name__, *arguments[:1]]) not in chosen:
            continue
        try:
            task(bench, *arguments)
        except (compiler.CompilerToolError, RuntimeError) as error:
            words = " ".join(line for line in str(error).splitlines() if "error" in line) or str(error)
            bench.wrong.append(f"{' '.join(map(str, (task.__name__, *arguments)))}: {words}"[:400])
    bench.end(sys.argv[2] if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()
