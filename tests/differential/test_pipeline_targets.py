"""The sample kernels compiled for other targets: lifted, instrumented, checked and linked, as LLVM's tools see it.

Nothing is run: test_table does that. A part runs always; ``-m slow`` takes every sample on every target here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from compiled_samples import OPTIONS, CompiledSamples

from luthier_py import Lane, Mutator, Tool, Variable, hook, ptr, u32, u64
from luthier_py.base.errors import EditConflict, HookError
from luthier_py.binary.loader import load
from luthier_py.intrinsics import active_mask, atomic_add, is_first_lane, popcount
from luthier_py.isa import OpFlag, vgpr
from luthier_py.program.ir import Instr
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Turn, made_tool
from luthier_py.samples import FOLDER, SAMPLES, Sample

TARGETS = (
    ("gfx803", 64), ("gfx906", 64), ("gfx908", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1010", 32), ("gfx1030", 32),
    ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64), ("gfx1151", 32), ("gfx1201", 32), ("gfx1201", 64),
    ("gfx1250", 32),
)
TOOLS = ("instr_count", "opcode_histogram")
LOOPS = "matmul"  # whose steps are counted behind them
SOME = [pytest.param(*each, marks=() if each in (
    ("gfx803", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 64), ("gfx1201", 32), ("gfx1250", 32),
) else pytest.mark.slow) for each in TARGETS]  # one of each generation always
FEW = ("function_pointers", "histogram", LOOPS)  # indirect calls and atomics, LDS
Compiled = Callable[[str, str, int], bytes]


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory) -> Compiled:
    """Source name, target and wave size -> code object."""
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("targets")).code


def tried(code: bytes, tool: Tool | str, tmp_path: Path, require_tool) -> Instrumented:
    """Instrumented (which proves the patch), and read by LLVM's tools without a complaint."""
    made = instrument(code, made_tool(tool))
    path = tmp_path / "instrumented.co"
    path.write_bytes(made.data)
    read = subprocess.run([require_tool("llvm-readelf-22"), "-a", path], capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")
    assert made.patched.report and all(row.sites > 0 for row in made.patched.report)
    return made


@pytest.mark.parametrize(("target", "wave_size", "tool"), [
    *((*each, "instr_count") for each in TARGETS),
    *(pytest.param(*each.values, "opcode_histogram", marks=each.marks) for each in SOME)])
def test_some_samples(target: str, wave_size: int, tool: str, compiled, tmp_path, require_tool) -> None:
    source = LOOPS if tool == "instr_count" else FEW[TARGETS.index((target, wave_size)) % len(FEW)]
    made = tried(compiled(source, target, wave_size), tool, tmp_path, require_tool)
    assert (made.obj.target.name, made.program.isa.wave_size) == (target, wave_size)


class EveryEdit(Tool):
    """Removes stores, replaces moves, counts edges, inserts assembly, skips what a hook says."""

    taken = Variable(u64)

    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, u64(1))

    @hook
    def same(x: Lane[u32]) -> Lane[u32]:
        return x

    @hook
    def never() -> u32:
        return u32(0)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for edge in m.edges(function):
                m.at_edge(edge, self.bump, self.taken)
            for number, instr in enumerate(function.instrs):
                self.edit(m, number, instr)

    def edit(self, m: Mutator, number: int, instr: Instr) -> None:
        flags, base = instr.op.flags, instr.op.base
        if flags & OpFlag.VMEM and flags & OpFlag.MAY_STORE and not flags & OpFlag.ATOMIC:
            m.remove(instr)
        elif base == "V_MOV_B32" and instr.op.format == "VOP1":
            m.replace(instr, self.same)
        elif flags & OpFlag.VALU and number % 3 == 0:
            with suppress(HookError, EditConflict):  # writes masks, or lanes that are not active
                m.skip_if(instr, self.never)
        elif not flags & OpFlag.TERMINATOR and number % 5 == 0:
            m.insert("v_not_b32 v0, v0\n v_not_b32 v0, v0", after=instr, writes=vgpr(0))


@pytest.mark.parametrize(("target", "wave_size"), SOME)
def test_edits(target: str, wave_size: int, compiled, tmp_path, require_tool) -> None:
    """All of them together in one kernel, proved."""
    source = FEW[TARGETS.index((target, wave_size)) % len(FEW)]
    made = tried(compiled(source, target, wave_size), EveryEdit(), tmp_path, require_tool)
    kinds = {i.turn for i in made.edits.insertions}
    assert made.edits.instead and {Turn.BODY, Turn.INSTEAD} <= kinds and kinds & {Turn.ARRIVE, Turn.LEAVE}


@pytest.mark.slow
@pytest.mark.parametrize(("target", "wave_size"), TARGETS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_sample(target: str, wave_size: int, sample: Sample, compiled, tmp_path, require_tool) -> None:
    if (sample.name, target) == ("lds_widths", "gfx1250"):
        pytest.skip("its inline assembly has s_waitcnt")
    for tool in TOOLS:
        tried(compiled(sample.name, target, wave_size), tool, tmp_path, require_tool)


def clone_of(made: Instrumented) -> list[str]:
    """The text of the first clone."""
    linked, isa = load(made.data), made.program.isa
    symbol = linked.symbol(made.patched.chunks[0].name)
    assert symbol is not None
    code, at, texts = linked.read(symbol.address, symbol.size), 0, list[str]()
    while at < len(code):
        inst = isa.decode(code, at)
        texts.append(isa.text(inst))
        at += inst.size_bytes
    return texts


class Everywhere(Tool):
    """Something before every instruction, also inside the groups that `s_clause` makes."""

    name = "everywhere"
    total = Variable(u64)

    @hook(lanes="one")
    def add(total: ptr[u64]) -> None:
        atomic_add(total, 1)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in (instr for block in function.blocks for instr in block.instrs):
                m.before(instr, self.add, self.total)


class Loaded(Tool):
    """What each load from memory brought, in the instruction behind it: the hook has to wait for it."""

    name = "loaded"
    total = Variable(u32)

    @hook
    def add(total: ptr[u32], value: Lane[u32]) -> None:
        atomic_add(total, value)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in (instr for block in function.blocks for instr in block.instrs):
                destination = instr.inst.find("vdst") if OpFlag.VMEM in instr.inst.op.flags else None
                if destination is not None and destination.reg is not None and destination.reg.dwords == 1:
                    m.after(instr, self.add, self.total, destination.reg)


@pytest.mark.parametrize(("target", "wave_size", "wait"), [
    ("gfx942", 64, "s_waitcnt vmcnt(0)"), ("gfx1030", 32, "s_waitcnt vmcnt(0)"), ("gfx1201", 32, "s_wait_loadcnt 0x0")])
def test_hooks_wait_for_what_they_read(target: str, wave_size: int, wait: str, compiled) -> None:
    made = instrument(compiled("vector_add", target, wave_size), Loaded())
    texts = clone_of(made)
    assert sum(b == wait and a.startswith("global_load") for a, b in zip(texts, texts[1:], strict=False)) >= 2


class Branches(Tool):
    """A hook that some of its lanes leave early, at every block."""

    name = "branches"
    total = Variable(u32)

    @hook
    def add(total: ptr[u32]) -> None:
        if is_first_lane():
            atomic_add(total, popcount(active_mask()))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for block in function.blocks:
                m.at_block(block, self.add, self.total)


@pytest.mark.parametrize(("target", "wave_size"), SOME)
def test_hooks_that_change_exec(target: str, wave_size: int, compiled) -> None:
    made = instrument(compiled("histogram", target, wave_size), Branches())
    assert sum("_saveexec_b" in text or text.startswith("v_cmpx") for text in clone_of(made)) > 2


@pytest.mark.parametrize(("target", "wave_size"), [("gfx942", 64), ("gfx1010", 32), ("gfx1100", 64), ("gfx1201", 32)])
def test_before_every_instruction(target: str, wave_size: int, compiled) -> None:
    made = instrument(compiled("matmul", target, wave_size), Everywhere())
    texts = clone_of(made)
    assert not any(text.startswith("s_clause") for text in texts)
    inserted = sum(text.startswith(("global_atomic_add_x2", "global_atomic_add_u64")) for text in texts)
    assert inserted == sum(len(block.instrs) for block in made.program.kernels[0].function.blocks)


@pytest.mark.parametrize(("target", "wave_size"), [("gfx1030", 64), ("gfx1100", 32), ("gfx1201", 32)])
def test_llvm_reads_the_clones(target: str, wave_size: int, compiled, tmp_path, require_tool) -> None:
    """What was inserted is what LLVM's disassembler sees, instruction by instruction."""
    made = tried(compiled("histogram", target, wave_size), "opcode_histogram", tmp_path, require_tool)
    command = [require_tool("llvm-objdump-22"), "-d", "--disassemble-symbols=histogram.luthier",
               tmp_path / "instrumented.co"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in printed.splitlines() if line.startswith("\t") and "//" in line]
    ours = [text.split()[0] for text in clone_of(made)]
    assert "<unknown>" not in printed and names[: len(ours)] == ours and {*names[len(ours) :]} <= {"s_nop"}  # padding
    assert any(name.startswith("global_atomic_add") for name in names)


@pytest.mark.parametrize("tool", TOOLS)
def test_kernels_that_share_nothing(tool: str, require_tool, tmp_path: Path) -> None:
    """What a tool keeps in one kernel another may use for itself."""
    (tmp_path / "two.hip").write_text(
        '#include "device.h"\nKERNEL void store(u32 *out) { out[thread_x()] = 1; }\nKERNEL void empty() {}\n')
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", "--offload-arch=gfx90a", f"-I{FOLDER}",
                    tmp_path / "two.hip",
                    "-o", tmp_path / "two.co"], check=True)
    made = tried((tmp_path / "two.co").read_bytes(), tool, tmp_path, require_tool)
    assert len(made.patched.report) == 2


@pytest.mark.parametrize(("target", "wave_size"), SOME)
@pytest.mark.parametrize("tool", ("mem_trace", pytest.param("mem_printf", marks=pytest.mark.slow)))
def test_channels(
    tool: str, target: str, wave_size: int, compiled: Compiled, tmp_path: Path,
    require_tool: Callable[[str], str],
) -> None:
    """Hooks that push wait for the host, and write back what caches have: as each target does that."""
    tried(compiled(LOOPS, target, wave_size), str(FOLDER.parents[1] / "tools" / tool), tmp_path, require_tool)
