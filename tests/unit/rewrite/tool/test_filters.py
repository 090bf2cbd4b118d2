"""Filters choose what plain Python over the same instructions chooses; what is no filter is refused with its place."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_samples import OPTIONS

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.isa import OpFlag, Space, instruction_set, memory_access, target
from luthier_py.program.analysis import analyse, loops_of, source_lines
from luthier_py.program.ir import Function, Instr, Program, lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Mutator, load_tool
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.samples import SAMPLES, sample

MEMORY = OpFlag.VMEM | OpFlag.LDS | OpFlag.SMEM


def program_of(name: str) -> Program:
    return lift(load(sample(name).path.read_bytes(), name))


def in_loop(program: Program, function: Function, instr: Instr, depth: int = 1) -> bool:
    return sum(program.block_of(instr) in loop.blocks for loop in loops_of(function)) >= depth


FILTERS: dict[str, Callable[[Program, Function, Instr], bool]] = {
    "memory": lambda p, f, i: bool(i.op.flags & MEMORY),
    "global & load": lambda p, f, i: Space.GLOBAL in i.op.spaces and not i.op.flags & OpFlag.MAY_STORE,
    "lds|scalar": lambda p, f, i: bool(i.op.spaces & (Space.LDS | Space.SCALAR)),
    "!memory & !branch": lambda p, f, i: not i.op.flags & MEMORY and (
        OpFlag.CALL in i.op.flags or not i.op.flags & (OpFlag.BRANCH | OpFlag.INDIRECT)),
    "opcode = v_*_f32* | opcode=s_load_*": lambda p, f, i: i.op.mnemonic.startswith("s_load_") or (
        i.op.mnemonic.startswith("v_") and "_f32" in i.op.mnemonic),
    "opcode != v_*": lambda p, f, i: not i.op.mnemonic.startswith("v_"),
    "loop": in_loop,
    "depth >= 2": lambda p, f, i: in_loop(p, f, i, 2),
    "index = 3..5": lambda p, f, i: 3 <= i.at <= 5,
    "index=0x4|index==7": lambda p, f, i: i.at in (4, 7),
    "index == 3..5": lambda p, f, i: 3 <= i.at <= 5,
    "index = 008..0012": lambda p, f, i: 8 <= i.at <= 12,
    "vector_alu & (loop | index < 4)": lambda p, f, i: bool(i.op.flags & OpFlag.VALU) and not i.op.flags & (
        OpFlag.TRANS | OpFlag.MATRIX) and (in_loop(p, f, i) or i.at < 4),
    "index > 2 | index < 2 & index > 5": lambda p, f, i: i.at > 2,
    "conditional": lambda p, f, i: OpFlag.CONDITIONAL in i.op.flags,
    "function = red*": lambda p, f, i: f.name.startswith("red"),
}


@pytest.mark.parametrize("text", FILTERS)
def test_what_is_chosen(text: str) -> None:
    chosen, of = 0, FILTERS[text]
    for name in ("reduce", "scratch", "bitonic_sort", "nbody", "device_call"):
        program = program_of(name)
        m = Mutator(program, analyse(program))
        for function in program.functions:
            found = m.instrs(function, where=text)
            assert found == tuple(instr for instr in function.instrs if of(program, function, instr))
            chosen += len(found)
    assert chosen


def bytes_of(mnemonic: str) -> int:
    """By the words of the ISA's names."""
    if found := re.fullmatch(r"ds_[a-z_]+?(2|2st64)?(?:_rtn)?_[bui](\d+)(?:_.*)?", mnemonic):
        return int(found[2]) // 8 * (2 if found[1] else 1)
    found = re.fullmatch(r"(?:s|global)_(?:load|store)_(?:dword(?:x(\d+))?)", mnemonic)
    return 4 * int(found[1] or 1) if found else 0


@pytest.mark.parametrize(("name", "text"), [
    ("gfx90a", "buffer_wbl2"), ("gfx90a", "buffer_wbinvl1_vol"), ("gfx90a", "s_dcache_wb"),
    ("gfx942", "buffer_inv sc1"), ("gfx1030", "buffer_gl0_inv"), ("gfx1201", "global_wb scope:SCOPE_SYS"),
])
def test_what_tends_caches_accesses_no_memory(name: str, text: str) -> None:
    isa = instruction_set(target(name))
    inst = isa.decode(isa.assemble(text), 0)
    assert inst.op.flags & MEMORY and memory_access(inst) is None


@pytest.mark.parametrize("least", [1, 8, 12, 16, 32])
def test_widths(least: int) -> None:
    for name in ("lds_widths", "matmul", "saxpy"):
        program = program_of(name)
        chosen = parse_filter(f"width >= {least}").of(program)
        for function in program.functions:
            for instr in function.instrs:
                assert chosen(instr) == (bytes_of(instr.op.mnemonic) >= least), instr


def test_lines_and_files() -> None:
    program = program_of("transpose")
    lines = source_lines(program.obj)
    for text, of in {
        "line = 11": lambda line: line is not None and line.line == 11,
        "line = 8..12 & file = *transpose*": lambda line: line is not None and 8 <= line.line <= 12
        and "transpose" in line.file,
        "file != *.hip": lambda line: line is None or not line.file.endswith(".hip"),
    }.items():
        chosen = parse_filter(text).of(program)
        for function in program.functions:
            assert [i for i in function.instrs if chosen(i)] == [i for i in function.instrs if of(lines.at(i.pc))]


NESTED = """
#define DEVICE static __attribute__((device)) inline
namespace shapes {
template <class T> DEVICE T square(T x) {
  return x * x;
}
}
DEVICE float twice(float x) { return shapes::square(x) + x; }
extern "C" __attribute__((global)) void k(float *p, int n) {
  float sum = 0;
#pragma clang loop unroll(disable) vectorize(disable)
  for (int i = 0; i < n; ++i) {
    sum += p[i * n];
#pragma clang loop unroll(disable) vectorize(disable)
    for (int j = 0; j < i; ++j)
      sum = shapes::square(sum) + p[j];
  }
  p[0] = twice(sum);
}
"""


def test_places_in_the_source(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """What LLVM's symbolizer says of each instruction, and of which loops its block is."""
    (tmp_path / "k.hip").write_text(NESTED)
    out = tmp_path / "k.co"
    options = (*OPTIONS, "-O2", "-g", "-ffp-contract=off", "--offload-arch=gfx90a")
    subprocess.run([require_tool("clang-22"), *options, "k.hip", "-o", out], check=True, cwd=tmp_path)
    program = lift(load(out.read_bytes()))
    [function] = program.functions
    command = [require_tool("llvm-symbolizer-22"), f"--obj={out}", "--inlines", *(hex(i.pc) for i in function.instrs)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().split("\n\n")
    frames = {instr: [(name, int(place.split(":")[1])) for name, place in zip(
        rows.splitlines()[::2], rows.splitlines()[1::2], strict=True)]
        for instr, rows in zip(function.instrs, told, strict=True)}
    outer, inner = loops_of(function)

    def of(*lines: int) -> Callable[[Instr], bool]:
        return lambda instr: any(line in lines for _, line in frames[instr])

    wanted: dict[str, Callable[[Instr], bool]] = {
        "inlined = square": lambda i: frames[i][0][0].startswith("float shapes::square<float>"),
        "inlined = shapes::* | inlined = *square*": lambda i: any("square" in name for name, _ in frames[i]),
        "inlined = twice & inlined != square": lambda i: frames[i][0][0] == "twice(float)",
        "inlined = k": lambda i: True,
        "lines = k.hip:5": of(5),
        "lines = *.hip:4-8 & lines != k.hip:16": lambda i: of(*range(4, 9))(i) and not of(16)(i),
        f"lines = {tmp_path}/k.hip:18": of(18), "lines = other.hip:1-99": lambda i: False,
        "loop = k.hip:12": lambda i: program.block_of(i) in outer.blocks,
        "loop = k.hip:13": lambda i: program.block_of(i) in outer.blocks,
        "loop = k.hip:15 & loop": lambda i: program.block_of(i) in inner.blocks,
        "loop != k.hip:16": lambda i: program.block_of(i) not in inner.blocks,
        "loop = k.hip:10": lambda i: False,
    }  # fmt: skip
    for text, said in wanted.items():
        chosen = parse_filter(text).of(program)
        known = [instr for instr in function.instrs if frames[instr][0][1]]  # what is of no line is in between
        assert [i for i in known if chosen(i)] == [i for i in known if said(i)], text
        assert any(map(said, known)) or text in ("lines = other.hip:1-99", "loop = k.hip:10")
    between = parse_filter("lines = k.hip:9-19").of(program)
    assert len(known) < len([*function.instrs]) and all(map(between, function.instrs))


@pytest.mark.parametrize(("text", "message"), [
    ("lines = k.hip", "character 9, at 'k.hip': here should be lines of a file, as in kernel.hip:22-50 or kernel.hip"),
    ("memory & lines != k.hip:9-8", "character 19, at 'k.hip:9-8': here should be lines of a file"),
    ("lines = .:3", "character 9, at '.:3': here should be lines of a file"),
    ("loop =", "character 7, at the end: here should be lines of a file, as in kernel.hip:22-50"),
    ("lines & memory", "character 7, at '& memory': here should be = or !=, and lines of a file"),
    ("memory & widht >= 8", "character 10, at 'widht >= 8': widht is unknown; did you mean width"),
    ("width >=", "character 9, at the end: here should be a number"),
    ("width 8", "character 7, at '8': here should be one of = != < <= > >=, and a number"),
    ("memory store", "character 8, at 'store': here should be & or |, or the end"),
    ("(memory", "character 8, at the end: here should be [)]"),
    ("", "character 1, at the end: here should be a fact"),
    ("memory & ", "character 10, at the end: here should be a fact"),
    ("opcode v_*", "character 8, at 'v_[*]': here should be = or !=, and a pattern"),
    ("opcode =", "character 9, at the end: here should be a pattern"),
    ("index = 3..", "character 12, at the end: here should be a number"),
    ("index < 3..5", "character 10, at '[.][.]5': here should be & or |, or the end"),
    ("zzzzz", "zzzzz is unknown; known are matrix, "),
])
def test_what_is_no_filter(text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        parse_filter(text)


@pytest.mark.parametrize("mode", ["block", "instruction"])
def test_users_choose_for_tools(mode: str) -> None:
    for one in SAMPLES[:6]:
        code = one.path.read_bytes()
        program, device = lift(load(code)), EmulatorDevice(load(code).target)
        run_original(device, code, launch_of(one))
        assert device.profile is not None
        chosen = parse_filter("global & vector_memory").of(program)
        wanted = sum(count for pc, count in device.profile.counts.items() if any(
            i.pc == pc and chosen(i) for f in program.functions for i in f.instrs))
        tool = load_tool("instr_count", {"mode": mode, "INSTRUMENT": "global & vector_memory"})
        ran = run_instrumented(device, instrument(code, tool), tool, launch_of(one))
        assert ran.report["instructions"] == wanted > 0


def test_options_are_read_at_once() -> None:
    with pytest.raises(Invalid, match="character 1, at 'lood': lood is unknown"):
        load_tool("none", {"INSTRUMENT": "lood"})
