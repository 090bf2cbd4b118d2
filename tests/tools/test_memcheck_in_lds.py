"""memcheck beside the emulator's check of bounds: accesses to LDS, by LDS instructions and by flat ones, at the same
instructions; and the launch goes on, with what is beyond LDS left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiled_samples import OPTIONS
from elftools.elf.elffile import ELFFile

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import Space
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.tools.memcheck.hooks import FLAT, LDS

HEAD = """
typedef unsigned u32;
typedef u32 four __attribute__((ext_vector_type(4)));
#define X __builtin_amdgcn_workitem_id_x()
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared)) static u32
#define MEET __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \\
             __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
"""
FILLED = "SHARED s[64]; s[X] = X; MEET; "
WRONG = {  # n is 60
    "stores": FILLED + "s[X + n] = 7; MEET; out[X] = s[X];",
    "loads": FILLED + "out[X] = s[X + n];",
    "pairs": FILLED + "out[X] = s[X + n] + s[X + n + 5];",
    "atomics": FILLED + "__hip_atomic_fetch_add(&s[X + n], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); MEET; "
               "out[X] = s[X];",
    "brings": FILLED + "out[X] = __hip_atomic_exchange(&s[X + n], 9u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);",
    "wide": FILLED + "four v = *(four *)&s[(X & 31) * 4 + n - 60]; out[X] = v.x + v.w;",
    "bytes": FILLED + "out[X] = ((unsigned char *)s)[X + 3 * n + 40];",
    "before_it": FILLED + "out[X] = s[(int)X - (int)n + 40];",
    "flat_stores": FILLED + "volatile u32 *p = n > 9 ? s : out; p[X + n] = 7; MEET; out[X] = s[X];",
    "flat_loads": FILLED + "volatile u32 *p = n > 9 ? s : out; out[X] = p[X + n];",
    "flat_in_memory": FILLED + "volatile u32 *p = n > 9 ? out : s; u32 x = p[X + n - 59]; out[X] = x & 0;",
}  # fmt: skip
RIGHT = {
    "in_lds": FILLED + "s[X] = s[X] + n; MEET; out[X] = s[63 - X] + s[X ^ 1];",
    "flat": FILLED + "volatile u32 *p = n > 9 ? s : out; p[X] = p[X] + 3; MEET; out[X] = s[X];",
    "own_arguments": FILLED + "typedef const __attribute__((address_space(4))) u32 *given; "
                     "given a = (given)__builtin_amdgcn_kernarg_segment_ptr(); "
                     "out[X] = a[2 * (X & 1)] * (X & 1) + s[X];",
    "own_memory": FILLED + "u32 own[8] = {1, 2, 3, n, 5, X, 7, 8}; volatile u32 *p = n > 9 ? own : s; p[n & 7] = 4; "
               "out[X] = own[(n + X) & 7] + s[X];",
}  # fmt: skip
KERNELS = {**WRONG, **RIGHT}
IN_MEMORY = ("flat_in_memory",)
README = Path(__file__).resolve().parents[2] / "tools" / "memcheck" / "README.md"
TARGETS = [pytest.param(target, marks=() if target == "gfx90a" else pytest.mark.slow)
           for target in ("gfx90a", "gfx906", "gfx942", "gfx1030", "gfx1100", "gfx1201")]


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    def make(target):
        folder = tmp_path_factory.mktemp(target)
        text = [HEAD, *(f"KERNEL {name}(u32 *out, u32 n) {{ {body} }}" for name, body in KERNELS.items())]
        (folder / "k.hip").write_text("\n".join(text))
        subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                       cwd=folder, check=True)
        return (folder / "k.co").read_bytes()

    return make


def launched(kernel):
    return Launch(kernel, (2, 1, 1), (64, 1, 1), (parse_argument("inout:u32[64]=zeros"), parse_argument("u32=60")))


def by_the_emulator(data, kernel):
    """What its check tells: address of the instruction, space, first address; and what the launch leaves."""
    device = EmulatorDevice(load(data).target, options=LaunchOptions(checks=Checks.BOUNDS))
    left = run_original(device, data, launched(kernel)).outputs
    return {(each.where.pc, each.address % (1 << 32) if "in LDS" in each.what else each.address): each.count
            for each in device.findings}, left


@pytest.mark.parametrize("target", TARGETS)
def test_accesses_beyond_lds_are_told_and_left_out(target, compiled):
    data = compiled(target)
    tool = load_tool("memcheck", {"told_lanes": 64})
    made = instrument(data, tool)
    assert not made.refused
    for kernel in KERNELS:
        expected, left = by_the_emulator(data, kernel)
        made_all_the_same = kernel == "flat_stores" and load(data).target.generation in (10, 11)
        checks = Checks.BOUNDS if made_all_the_same else Checks.NONE
        device = EmulatorDevice(load(data).target, options=LaunchOptions(checks=checks))
        after = run_instrumented(device, made, tool, launched(kernel))
        rows = after.report["bad"]
        assert {row["pc"] for row in rows} == {pc for pc, _ in expected}, kernel
        assert bool(rows) == (kernel in WRONG), kernel
        assert not [row for row in after.report["left_out"] if "flat" in row["instruction"]]
        for row in rows:
            first = min(row["first"], key=lambda each: (each["workgroup"], each["wave"], each["lane"]))
            in_lds = kernel not in IN_MEMORY
            assert (first["space"] == "LDS") == in_lds
            if in_lds:
                assert (row["pc"], first["address"]) in expected, kernel
                assert "(256 bytes)" in first["what"] and "in LDS: " in after.text
        if kernel in RIGHT:
            assert [each.tobytes() for each in after.outputs.values()] == [each.tobytes() for each in left.values()]


DYNAMIC = HEAD + """
extern __attribute__((shared)) u32 d[];
KERNEL dynamic(u32 *out) { d[X] = X; MEET; out[X] = d[X]; }
"""


def test_lds_that_nobody_asked_for(require_tool, tmp_path):
    """What a kernel declares without a size has what the launch gives: here nothing."""
    (tmp_path / "k.hip").write_text(DYNAMIC)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", "--offload-arch=gfx90a", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    data, tool = (tmp_path / "k.co").read_bytes(), load_tool("memcheck", {})
    launch = Launch("dynamic", (1, 1, 1), (64, 1, 1), (parse_argument("out:u32[64]"),))
    after = run_instrumented(EmulatorDevice(load(data).target), instrument(data, tool), tool, launch)
    assert [each["what"] for row in after.report["bad"] for each in row["first"][:1]] == [
        "0 bytes past the end of the work-group's LDS (0 bytes)"] * 2


NEIGHBOURS = HEAD + """
KERNEL k(u32 *out, u32 n) {
    SHARED a[64]; SHARED b[64]; a[X] = 1; b[X] = 2; MEET; out[X] = %s + a[X] + b[X]; }
"""


def test_a_right_and_a_wrong_program_are_one_code(require_tool, tmp_path):
    """So no tool tells an access that leaves its array in LDS for another one; nor does debug information say where
    these lie."""
    codes = []
    for number, read in enumerate(("b[X ^ n]", "a[(X ^ n) + 64]")):
        (tmp_path / "k.hip").write_text(NEIGHBOURS % read)
        out = tmp_path / f"{number}.co"
        subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", "-g", "--offload-arch=gfx90a", "k.hip", "-o", out],
                       cwd=tmp_path, check=True)
        codes.append(out)
    first, second = (load(each.read_bytes()) for each in codes)
    assert all(first.read(part.start, len(part)) == second.read(part.start, len(part)) for part in first.text_ranges)
    assert first.text_ranges == second.text_ranges and first.kernels[0].descriptor.group_segment_fixed_size == 512
    assert not [symbol for symbol in first.symbols if symbol.name in ("a", "b")]
    with codes[0].open("rb") as file:
        units = ELFFile(file).get_dwarf_info().iter_CUs()
        arrays = [die for unit in units for die in unit.iter_DIEs()
                  if die.tag == "DW_TAG_variable" and "DW_AT_name" in die.attributes
                  and die.attributes["DW_AT_name"].value in (b"a", b"b")]
    assert len(arrays) == 2 and not any("DW_AT_location" in die.attributes for die in arrays)


def test_the_page_says_in_how_many_ways():
    assert len(WRONG) - len(IN_MEMORY) == 10 and "beyond LDS in ten ways, and beyond memory" in README.read_text()


def test_spaces_are_those_of_the_instruction():
    assert (LDS, FLAT) == (Space.LDS.value, (Space.GLOBAL | Space.LDS | Space.SCRATCH).value)
