"""What wrong injectors are tried on: kernels that need all that inserted code may destroy, and tools that want all that
is to be had.

In: a compiler, a target. Out: Subjects: a code object and a tool that can be made again. Invariant: what a launch
leaves, and what the tool counts, does not depend on the order of waves.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compiled_samples import OPTIONS

from luthier_py import Lane, Mutator, Tool, Variable, WaveVariable, f32, hook, ptr, u32, u64
from luthier_py.features.run.launch import Launch
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import as_bits, atomic_add, read_first_lane
from luthier_py.isa import SCC, Counter, sgpr
from luthier_py.rewrite.tool import Entry

GROUPS, LANES = 2, 64
KERNEL = r"""
typedef unsigned u32;
#define FUNCTION extern "C" __attribute__((device, noinline)) u32
#if defined(__GFX8__)
#define LOAD "flat_load_dword %2, %7"
#define LATER "flat_load_dword %3, %7"
#define WAIT "s_waitcnt vmcnt(0) lgkmcnt(0)"
#elif defined(__GFX12__)
#define LOAD "global_load_b32 %2, %7, off"
#define LATER "global_load_b32 %3, %7, off offset:4"
#define WAIT "s_wait_loadcnt 0x0"
#else
#define LOAD "global_load_dword %2, %7, off"
#define LATER "global_load_dword %3, %7, off offset:4"
#define WAIT "s_waitcnt vmcnt(0)"
#endif
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void
FUNCTION mixed(u32 x, u32 y) { for (u32 i = 0; i < (y & 3); ++i) x = x * 5 + (x >> 3); return x ^ y; }
FUNCTION other(u32 x, u32 y) { return x * 3 + y; }
KERNEL k(u32 *out, const u32 *in, u32 n) {
    static __attribute__((shared)) u32 near[64];
    u32 x = __builtin_amdgcn_workitem_id_x(), t = in[x] + in[x ^ 3] * 5 + in[x ^ 6], u = 0;
    near[x] = t += __builtin_amdgcn_workgroup_id_x();
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
    t += near[x ^ 1];
    for (u32 i = 0; i < n; ++i)
        if (t >> i & 1) t = t * 3 + i; else t ^= i;
    u32 low = (u32)(unsigned long)in, high = (u32)((unsigned long)in >> 32);
    const u32 *far = in + (x * 7 & 63);
    u32 late = 0, later = 0;
    if (x % 3 == 1)
        asm volatile(LOAD "\n\t" LATER "\n\ts_mov_b32 m0, %4\n\ts_mov_b64 vcc, exec\n\ts_cmp_lt_u32 %4, 9\n\t"
                     "v_readfirstlane_b32 s40, %5\n\tv_readfirstlane_b32 s41, %6\n\tv_sqrt_f32 %0, %0\n\t"
                     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n\ts_nop 7\n\t"
                     "v_mov_b32 %0, %0\n\ts_cselect_b32 %1, 1, 2\n\ts_add_u32 %1, %1, m0\n\t"
                     "s_add_u32 %1, %1, vcc_lo\n\t" WAIT
                     : "+v"(t), "=&s"(u), "+v"(late), "+v"(later) : "s"(n), "v"(low), "v"(high), "v"(far)
                     : "vcc", "scc", "s40", "s41");
    t = mixed(t, u) + late * later + (u32)((float)t * 0.25f);
    out[__builtin_amdgcn_workgroup_id_x() * 64 + x] = other(t, u);
#if defined(__GFX11__) || defined(__GFX12__)
    asm volatile("s_nop 0\n\ts_sendmsg sendmsg(MSG_DEALLOC_VGPRS)" : : : "memory");
#endif
}
KERNEL through(u32 *out, const u32 *in, u32 n) {
    u32 (*pointer)(u32, u32) = n > 3 ? mixed : other, x = __builtin_amdgcn_workitem_id_x();
    asm volatile("" : "+s"(pointer));
    out[__builtin_amdgcn_workgroup_id_x() * 64 + x] = pointer(in[x], n);
}
#ifdef LIVE
extern "C" __attribute__((global, amdgpu_flat_work_group_size(1024, 1024))) void full(u32 *out, const u32 *in, u32 n) {
    u32 x = __builtin_amdgcn_workitem_id_x(), t = x, kept[LIVE];
    for (int i = 0; i < LIVE; ++i) kept[i] = *(volatile const u32 *)(in + (x * 7 + i * n) % 64);
    for (int i = 0; i < LIVE; ++i) asm volatile("" : "+v"(kept[i]));
    asm volatile("s_nop 7\n\tv_mov_b32 %0, %0" : "+v"(t));
    for (int i = 0; i < LIVE; ++i) t = t * 31 + kept[i];
    out[x] = t;
}
#endif
"""
LIVE = {"gfx803": 60, "gfx900": 60, "gfx906": 60, "gfx90a": 124, "gfx942": 124, "gfx1030": 124, "gfx1100": 186,
        "gfx1201": 190, "gfx1250": 250}
"""Vector registers that are live at the marker of `full`, so that none is left of those that a work-group leaves."""
TARGETS = tuple(LIVE)


@cache
def compiled(clang: str, target: str, folder: Path) -> bytes:
    out = folder / f"{target}.co"
    (folder / "k.hip").write_text(KERNEL)
    subprocess.run([clang, *OPTIONS, "-O2", "-fgpu-flush-denormals-to-zero", f"-DLIVE={LIVE[target]}",
                    f"--offload-arch={target}", folder / "k.hip", "-o", out], check=True)
    return out.read_bytes()


def marker(m: Mutator) -> tuple[object, ...]:
    """The marker and what stands behind it."""
    for function in m.functions():
        instrs = m.instrs(function)
        for k, instr in enumerate(instrs):
            if instr.inst.op.base == "S_NOP" and instr.inst["simm16"].value == 7:
                return function, instrs, instr, instrs[k + 1]
    raise AssertionError("no marker")


class Marked(Tool):
    """Hooks at one place: of lanes, of floats, that do not commute, with constants that are fields."""

    found = Variable(u32, 2)
    sums = Variable(u64, 4)
    value = WaveVariable(u32)
    votes = WaveVariable(u32)

    @hook
    def twice(value: u32) -> u32:
        return value + value

    @hook
    def more(value: u32) -> u32:
        return value + u32(1)

    @hook
    def vote(votes: u32, x: Lane[u32]) -> u32:
        return votes + read_first_lane(x)

    @hook
    def small(found: ptr[u32], x: Lane[u32]) -> None:
        atomic_add(found, as_bits(f32(x) * f32(1e-38) * f32(1e-3)))

    @hook(lanes="one", fold=False)
    def add(sum: ptr[u64], by: u64, value: u32, votes: u32, more: u32) -> None:
        atomic_add(sum, by + u64(value) * u64(votes) + u64(more))

    @hook(lanes="all")
    def everywhere(sum: ptr[u64], flag: u32, mask: u64) -> None:
        atomic_add(sum, u64(1) + u64(flag) + (mask & u64(1)))

    @hook
    def read(sum: ptr[u64], words: ptr[u32], late: Lane[u32], later: Lane[u32]) -> None:
        if late > words[later & u32(1)]:
            atomic_add(sum, u64(later + words[2]))

    @hook
    def exchange(a: u32, b: u32) -> tuple[u32, u32]:
        return b, a

    def instrument(self, m: Mutator) -> None:
        _, instrs, at, behind = marker(m)
        lanes, at_number = behind.inst["vdst"].reg, list(instrs).index(at)
        m.after(at, self.twice, self.value, into=self.value)
        m.before(behind, self.more, self.value, into=self.value)
        m.before(behind, self.vote, self.votes, lanes, into=self.votes)
        m.before(behind, self.small, self.found[1], lanes)
        late, later = [each.inst["vdst"].reg for each in instrs[:at_number]
                       if each.inst.op.counters & Counter.VM and each.inst.find("vdst")][-2:]
        m.before(at, self.read, self.sums[1], sgpr(40, 2), late, later)
        m.before(at, self.exchange, self.value, self.votes, into=(self.votes, self.value))
        m.before(instrs[-1], self.add, self.sums[2], 0x1234_5678_9ABC_DEF0, self.value, self.votes, 0x1234567)
        m.before(instrs[-1], self.add, self.sums[3], 0x1111_2222_3333_4444, self.votes, self.value, 0x7654321)
        m.before(at, self.everywhere, self.sums[0], sgpr(SCC), sgpr(126, 2))


class Results(Tool):
    """Hooks whose results are the application's, which is changed by them."""

    @hook
    def same(x: Lane[u32]) -> Lane[u32]:
        return (x ^ u32(5)) ^ u32(5)

    @hook
    def flag(old: u32) -> u32:
        return old ^ u32(1)

    @hook
    def mask(old: u64) -> u64:
        return old ^ u64(6)

    def instrument(self, m: Mutator) -> None:
        _, _, at, behind = marker(m)
        lanes = behind.inst["vdst"].reg
        m.before(at, self.same, lanes, into=lanes)
        m.after(at, self.flag, sgpr(SCC), into=sgpr(SCC))
        m.before(behind, self.mask, sgpr(106, 2), into=sgpr(106, 2))


class Ways(Tool):
    """Blocks, ways between them, loops, the functions that are called: counted in memory and for the wave."""

    counts = Variable(u64, 1024)
    waves = Variable(u64, 1)
    steps = WaveVariable(u32)

    @hook(lanes="one")
    def bump(count: ptr[u64]) -> None:
        atomic_add(count, u64(1))

    @hook
    def lanes(count: ptr[u64]) -> None:
        atomic_add(count, u64(1))

    @hook
    def step(steps: u32, by: u32) -> u32:
        return steps + by

    @hook(lanes="one")
    def give(waves: ptr[u64], steps: u32) -> None:
        atomic_add(waves, u64(steps))

    def instrument(self, m: Mutator) -> None:
        number = 0
        for kernel in m.kernels:
            m.at_exit(kernel, self.give, self.waves, self.steps)
        for function in m.functions():
            for block in function.blocks:
                m.at_block(block, self.bump, self.counts[number])
                m.before(block.instrs[0], self.step, self.steps, number % 7 + 1, into=self.steps)
                number += 1
            for edge in m.edges(function):
                m.at_edge(edge, self.lanes, self.counts[number])
                number += 1


class Everywhere(Tool):
    """A hook before and behind each instruction of every function."""

    counts = Variable(u64, 4096)

    @hook
    def lanes(count: ptr[u64]) -> None:
        atomic_add(count, u64(1))

    def instrument(self, m: Mutator) -> None:
        number = 0
        for function in m.functions():
            for instr in m.instrs(function):
                m.before(instr, self.lanes, self.counts[number])
                number += 1


class Born(Tool):
    """What a wave starts with."""

    sums = Variable(u64, 8)

    @hook(lanes="one")
    def note(sums: ptr[u64], words: ptr[u32], packet: ptr[u32], x: u32, y: u32, z: u32, ids: u32) -> None:
        atomic_add(sums, u64(words[4]) + u64(x) * u64(3) + u64(y) * u64(5) + u64(z) * u64(7) + u64(ids) * u64(11))
        atomic_add(sums + u32(1), u64(packet[1]) + u64(packet[3]))

    def instrument(self, m: Mutator) -> None:
        _, instrs, _, _ = marker(m)
        m.before(instrs[-1], self.note, self.sums, Entry.KERNARG_PTR, Entry.DISPATCH_PTR, Entry.WORKGROUP_ID_X,
                 Entry.WORKGROUP_ID_Y, Entry.WORKGROUP_ID_Z, Entry.FIRST_WORKITEM)


class Full(Tool):
    """A hook where no vector register is free."""

    total = Variable(u64)

    @hook
    def note(total: ptr[u64], x: Lane[u32]) -> None:
        atomic_add(total, u64(x) * 7)

    @hook(lanes="all")
    def note_all(total: ptr[u64], x: Lane[u32]) -> None:
        atomic_add(total, u64(x) * 7)

    def instrument(self, m: Mutator) -> None:
        _, _, at, behind = marker(m)
        m.before(at, self.note, self.total, behind.inst["vdst"].reg)
        m.before(at, self.note_all, self.total, behind.inst["vdst"].reg)


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel of the object and a tool, made anew for each copy."""

    name: str
    kernel: str
    tool: Callable[[], Tool]
    changes: bool = False
    """The application is meant to compute something else."""

    @property
    def launch(self) -> Launch:
        block = 1024 if self.kernel == "full" else LANES
        words = f"out:u32[{max(block, GROUPS * LANES)}]", "in:u32[64]=random:1", "u32=6"
        return Launch(self.kernel, (1 if self.kernel == "full" else GROUPS, 1, 1), (block, 1, 1),
                      tuple(map(parse_argument, words)))


SUBJECTS = {each.name: each for each in (
    Subject("marked", "k", Marked), Subject("results", "k", Results, changes=True), Subject("ways", "k", Ways),
    Subject("born", "k", Born), Subject("everywhere", "k", Everywhere), Subject("through", "through", Everywhere),
    Subject("full", "full", Full))}
