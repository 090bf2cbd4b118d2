"""What discovery finds in compiled code: the samples, and code for the same source on other targets."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.program.ir import Program, lift, verify
from luthier_py.samples import Sample

DATA = Path(__file__).parents[3] / "data"


def lifted(path: Path) -> Program:
    program = lift(load(path.read_bytes(), path.name))
    verify(program)
    return program


def test_samples_are_complete(sample: Sample) -> None:
    program = lifted(DATA / f"{sample.name}.co")
    assert [f.incomplete for f in program.functions] == [None] * len(program.functions)
    assert {kernel.name for kernel in program.kernels} == {record.name for record in program.obj.kernels}


def test_what_is_left_out_is_padding(sample: Sample, require_tool: Callable[[str], str]) -> None:
    """Every instruction that llvm-objdump shows inside a function's symbol is in the IR, with the same mnemonic."""
    path = DATA / f"{sample.name}.co"
    shown = subprocess.run([require_tool("llvm-objdump-22"), "-d", path], capture_output=True, text=True, check=True)
    program = lifted(path)
    own = {i.pc: i.inst.op.mnemonic for f in program.functions for i in f.instrs}
    theirs = {int(m[2], 16): m[1] for m in re.finditer(r"^\t(\w+).*// ([0-9A-F]{12}):", shown.stdout, re.M)}
    assert own.items() <= theirs.items()
    inside = {pc for pc in theirs for symbol in program.obj.symbols if 0 <= pc - symbol.address < symbol.size}
    assert {theirs[pc] for pc in inside - own.keys()} <= {"s_nop", "s_code_end"}


def test_calls_of_the_call_samples() -> None:
    program = lifted(DATA / "device_call.co")
    sites = [site for f in program.functions for site in program.calls(f)]
    assert sites and all(not site.indirect and len(site.targets) == 1 for site in sites)
    program = lifted(DATA / "function_pointers.co")
    (site,) = program.calls(program.kernel("function_pointers").function)
    assert site.indirect and not site.unknown and len(site.targets) == 4


SOURCE = """
#define NI __attribute__((device, noinline))
#define TID __builtin_amdgcn_workitem_id_x()
typedef int (*pointer)(int);
NI int one(int x) { return x * 3 + 1; }
NI int two(int x) { int r = 0; for (int i = 0; i < x; i++) r += one(i ^ x); return r; }
NI int three(int x) { return x < 2 ? 1 : three(x - 1) + three(x - 2) * two(x); }
__attribute__((device)) pointer table[] = {one, two};
extern "C" __attribute__((global)) void direct(int *p) { p[TID] = three(p[TID]); }
extern "C" __attribute__((global)) void indirect(int *p, int n) {
  for (int i = 0; i < n; i++) p[TID] += table[p[i] & 1](i);
}
extern "C" __attribute__((global)) void cases(int *p) {
  int v = p[TID];
  switch (v) { case 0: v = one(v); break; case 1: v = 7; break; case 2: v += p[1]; break; default: v = -v; }
  p[TID] = v;
}
extern "C" __attribute__((global)) void trap(int *p) { if (p[TID] > 3) __builtin_trap(); p[TID] = 2; }
"""


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1200", "gfx1250"])
def test_compiled_code_of_all_generations(gpu: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    source, out = tmp_path / "k.hip", tmp_path / "k.co"
    source.write_text(SOURCE)
    options = ["--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc", "-O2", f"--offload-arch={gpu}"]
    subprocess.run([require_tool("clang-22"), "-x", "hip", *options, source, "-o", out], check=True)
    program = lifted(out)
    assert [f.incomplete for f in program.functions] == [None] * len(program.functions)
    names = {f.address: f.name for f in program.functions}
    calls = {f.name: {t.name for s in program.calls(f) for t in s.targets} for f in program.functions}
    assert calls["direct"] == {"_Z5threei"} and calls["_Z5threei"] == {"_Z5threei", "_Z3twoi"}
    assert calls["indirect"] == {"_Z3onei", "_Z3twoi"} == {names[a] for a in program.address_taken}
