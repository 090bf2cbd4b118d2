"""What does one visit of a hook cost: inlined with free registers, inlined where none is free, called by a trampoline?

In: nothing. Out: a table on stdout, and in trampoline.md. Instructions of a wave are counted by the emulator, which
runs all of it: a kernel whose loop visits a marker, with the hook and without it, often and twice as often. The
trampoline is assembly that does what NVBit's does: it saves all registers that the kernel has, calls the same compiled
hook as a function, and restores them. In all three ways the kernel's memory must be what it is without the hook, and
the hook's what NumPy makes of as many visits as the emulator counts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "property")]

import conftest  # noqa: E402, F401  (makes samples importable)
import numpy as np  # noqa: E402
from crowded_kernels import kernel_object  # noqa: E402
from emulated import KERNARG_BYTES, LANES  # noqa: E402
from synthetic import Row  # noqa: E402

from luthier_py import Lane, Mutator, Tool, Variable, hook, ptr, sgpr, u32, u64, vgpr  # noqa: E402
from luthier_py.emulator import EmulatorDevice, LaunchProfile  # noqa: E402
from luthier_py.intrinsics import atomic_add  # noqa: E402
from luthier_py.isa import EXEC, M0, VCC, Reg, RegFile, instruction_set, target  # noqa: E402
from luthier_py.rewrite.inject.policies import CELL_BYTES  # noqa: E402
from luthier_py.rewrite.jit.compile import compile_hooks  # noqa: E402
from luthier_py.rewrite.jit.payload import Payload  # noqa: E402
from luthier_py.rewrite.pipeline import instrument, plan  # noqa: E402
from luthier_py.rewrite.tool import Hook, Lanes  # noqa: E402

PAGE = HERE / "trampoline.md"
GPU = target("gfx942")
ISA = instruction_set(GPU)
MARKER = ISA.make("s_nop", 7).raw
VISITS = 64
WORDS = 64
SIZES = ((24, 16), (48, 64), (102, 128), (102, 256))  # SGPRs and VGPRs of kernels
LINK, SPARE = sgpr(12, 2), sgpr(10)  # the trampoline has these for itself, as by an ABI
COUNTER, DATA, OUT = sgpr(6), sgpr(0, 2), sgpr(2, 2)
FIRST = 14  # scalar register of those that hold something
EXEC_PAIR, VCC_PAIR = sgpr(EXEC, 2), sgpr(VCC, 2)
SCALARS = sgpr(8), sgpr(9)  # arguments that are one for the wave
TEXT = """# A visit of a hook

`python benchmarks/trampoline.py` wrote this page. Instructions that a wave executes for one visit of a hook, the
hook's own among them, counted by the emulator as {target}, which ran all of it; memory of the application and what the
hook counted were the same in all ways.

* *inlined*: as the engine puts it in where registers are free: 8 of the kernel's registers of each file are dead.
* *crowded*: the same where each of the kernel's registers holds something. The smallest kernel gets more registers,
  which cost it no waves; in the others live registers are put aside.
* *trampoline*: the site jumps to code that saves all registers of the kernel, moves arguments to where a function wants
  them, calls the same compiled hook, restores all and jumps back, as NVBit does. It was written for this page: stores
  to private memory for vector registers, lanes of some of these for scalars. It has three scalar registers for itself,
  and leaves out the wait states that hardware wants, so it is cheaper than a real one.

| hook | SGPRs | VGPRs | its own | inlined | crowded | trampoline | beside inlined | beside crowded |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
{rows}
"""


@hook(lanes="one")
def bump(total: ptr[u64]) -> None:
    atomic_add(total, u64(1))


@hook
def histogram(bins: ptr[u64], value: Lane[u32]) -> None:
    atomic_add(bins + (value & 31), u64(1))


@hook(fold=())
def access(lines: ptr[u64], size: u32, site: u32, where: Lane[u64]) -> None:
    atomic_add(lines + (((where >> 6) + u64(site)) & 31), u64(size))


HOOKS: Mapping[Hook, tuple[Reg, ...]] = {bump: (), histogram: (vgpr(5),), access: (*SCALARS, vgpr(6, 2))}


class Visits(Tool):
    """One hook at the marker; ``where``: the counts' address, if that is in a register."""

    counts = Variable(u64, WORDS)

    def __init__(self, hook: Hook, where: Reg | None = None) -> None:
        super().__init__()
        self.hook, self.where = hook, where

    def instrument(self, m: Mutator) -> None:
        (marker,) = (i for i in m.functions()[0].instrs if i.inst.raw == MARKER)
        counts = self.where if self.where is not None else self.counts
        m.before(marker, self.hook, counts, *HOOKS[self.hook])


@dataclass(frozen=True, slots=True)
class Size:
    """Registers of a kernel that hold something, from the first to the last."""

    sgprs: int
    vgprs: int
    dead: int = 0

    @property
    def scalars(self) -> list[Reg]:
        return [*SCALARS, *map(sgpr, range(FIRST, self.sgprs - self.dead))]

    @property
    def vectors(self) -> list[Reg]:
        return [*map(vgpr, range(1, self.vgprs - self.dead))]


def rows(size: Size, visits: int, marker: Sequence[Row], behind: Sequence[Row] = ()) -> list[Row]:
    """A kernel that fills its registers, visits the marker, and shows them."""
    fill = [*(("s_mov_b32", reg, 3 * reg.index + 1) for reg in size.scalars),
            *(("v_add_u32", reg, 7 * reg.index, vgpr(0)) for reg in size.vectors)]
    show = [*(("v_xor_b32", vgpr(1), reg, vgpr(1)) for reg in size.scalars),
            *(("v_add_u32", vgpr(1), vgpr(1), reg) for reg in size.vectors[1:])]
    return [("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), *fill,
            ("v_cmp_lt_u32_e32", VCC_PAIR, 5, vgpr(0)), ("s_mov_b32", sgpr(M0), 77), ("s_mov_b32", COUNTER, visits),
            "again:", ("s_cmp_lg_u32", COUNTER, 3), *marker, ("s_cselect_b32", sgpr(7), 1, 0),
            ("v_add_u32", vgpr(1), sgpr(7), vgpr(1)), ("s_sub_u32", COUNTER, COUNTER, 1),
            ("s_cmp_lg_u32", COUNTER, 0), ("s_cbranch_scc1", "again"), *show,
            ("v_addc_co_u32_e32", vgpr(1), VCC_PAIR, 0, vgpr(1), VCC_PAIR), ("v_add_u32", vgpr(1), sgpr(M0), vgpr(1)),
            ("v_lshlrev_b32", vgpr(0), 2, vgpr(0)),
            ISA.make("global_store_dword", vgpr(0), vgpr(1), OUT).raw, ("s_endpgm",), *behind]


def trampoline(size: Size, hook: Hook, payload: Payload, address: int) -> tuple[list[Row], list[Row]]:
    """What stands at the marker, and behind the kernel: save all, call, restore all, jump back; and the function."""
    saved = [DATA, OUT, sgpr(4, 2), COUNTER, sgpr(7), *size.scalars, VCC_PAIR, LINK]
    words = [sgpr(reg.index + k) for reg in saved for k in range(reg.dwords)]
    lanes = [(vgpr(number // LANES), number % LANES) for number in range(len(words) + 2)]
    *places, flag, m0 = lanes
    vectors, carriers = [vgpr(0), *size.vectors], [vgpr(n) for n in range(lanes[-1][0].index + 1)]
    code: list[Row] = ["tramp:", ("s_mov_b64", LINK, EXEC_PAIR), ("s_mov_b64", EXEC_PAIR, -1)]
    code += [_scratch("store", reg, reg.index) for reg in vectors]
    code += [("v_writelane_b32", *_first(place, reg)) for place, reg in zip(places, words, strict=True)]
    code += [("s_cselect_b32", SPARE, 1, 0), ("v_writelane_b32", *_first(flag, SPARE)),
             ("s_mov_b32", SPARE, sgpr(M0)), ("v_writelane_b32", *_first(m0, SPARE))]
    code += [_scratch("store", reg, size.vgprs + reg.index) for reg in carriers]
    code += [("s_mov_b64", EXEC_PAIR, 1 if hook.lanes is Lanes.ONE else LINK),
             *_set_up(payload, address, HOOKS[hook])]
    code += [("s_getpc_b64", LINK), ("s_add_u32", sgpr(12), sgpr(12), "function"),
             ("s_addc_u32", sgpr(13), sgpr(13), "function"), ("s_swappc_b64", LINK, LINK)]
    code += [("s_mov_b64", EXEC_PAIR, -1), *(_scratch("load", reg, size.vgprs + reg.index) for reg in carriers),
             ("s_waitcnt", 0), ("v_readlane_b32", SPARE, *m0), ("s_mov_b32", sgpr(M0), SPARE),
             ("v_readlane_b32", SPARE, *flag), ("s_cmp_lg_u32", SPARE, 0)]
    code += [("v_readlane_b32", reg, *place) for place, reg in zip(places, words, strict=True)]
    code += [_scratch("load", reg, reg.index) for reg in vectors]
    code += [("s_waitcnt", 0), ("s_mov_b64", EXEC_PAIR, LINK), ("s_branch", "back")]
    body = [inst.raw for inst in payload.instrs]
    function: list[Row] = ["function:", ("s_waitcnt", 0), *body, ("s_setpc_b64", LINK)]
    return [("s_branch", "tramp"), "back:", ("s_nop", 7)], [*code, *function]


def _first(place: tuple[Reg, int], reg: Reg) -> tuple[Reg, Reg, int]:
    return place[0], reg, place[1]


def _scratch(what: str, reg: Reg, cell: int) -> Row:
    operands = ("off", reg, "off") if what == "store" else (reg, "off", "off")
    return ISA.make(f"scratch_{what}_dword", *operands, offset=CELL_BYTES * cell).raw


def _set_up(payload: Payload, address: int, arguments: Sequence[Reg]) -> list[Row]:
    """Arguments where the function wants them: from where they were saved, as others may be there by now."""
    first, *others = payload.params
    made: list[Row] = []
    for slot, reg in zip(others, arguments, strict=True):
        for k in range(reg.dwords):
            to = Reg(slot.reg.file, slot.reg.index + k, 1)
            if reg.file is RegFile.VGPR:
                made.append(_scratch("load", to, reg.index + k))
            else:
                made.append(("s_mov_b32", to, 3 * (reg.index + k) + 1))
    low = first.reg.index
    return [*made, ("s_mov_b32", sgpr(low), address & 0xFFFFFFFF), ("s_mov_b32", sgpr(low + 1), address >> 32)]


class Bench:
    """A device, with buffers at the same addresses for all runs: what kernels show, and what the trampoline counts."""

    def __init__(self) -> None:
        self.device = EmulatorDevice(GPU)
        self.unused, self.shown, self.counts = (self.device.alloc(8 * max(WORDS, LANES)) for _ in range(3))

    @property
    def profile(self) -> LaunchProfile:
        """Of the last run."""
        assert self.device.profile is not None
        return self.device.profile

    def run(self, data: bytes, kernel: str, variable: Variable | None) -> tuple[int, bytes, bytes]:
        """Instructions, what the kernel shows, what the hook counted."""
        device = self.device
        for buffer in (self.shown, self.counts):
            device.write(buffer.address, bytes(buffer.size))
        addresses = b"".join(b.address.to_bytes(8, "little") for b in (self.unused, self.shown, self.counts))
        module = device.load(data, kernel)
        device.launch(module.kernel(kernel), (1, 1, 1), (LANES, 1, 1), addresses.ljust(KERNARG_BYTES, b"\0"))
        where = self.counts.address if variable is None else module.variable(variable.name).address
        found = self.profile.total, device.read(self.shown.address, 4 * LANES), device.read(where, 8 * WORDS)
        module.unload()
        return found


def whole(size: Size, code: Sequence[Row], behind: Sequence[Row] = (), visits: int = VISITS) -> bytes:
    return kernel_object(GPU, rows(size, visits, code, behind), size.sgprs, size.vgprs,
                         scratch_bytes=CELL_BYTES * (size.vgprs + 2) if behind else 0)


def expected(hook: Hook, profile: LaunchProfile) -> bytes:
    """What the hook counts in as many visits as the kernel makes without it, by the registers that ``rows`` fills."""
    (pc,) = (pc for pc, inst in profile.insts.items() if inst.raw == MARKER)
    visits, lane, counts = profile.counts[pc], np.arange(LANES, dtype=np.uint64), np.zeros(WORDS, np.uint64)
    assert profile.lanes[pc] == LANES * visits
    if hook is bump:
        counts[0] = visits
    elif hook is histogram:
        np.add.at(counts, (7 * 5 + lane) & 31, visits)
    else:
        size, site = (3 * reg.index + 1 for reg in SCALARS)
        where = 7 * 6 + lane | 7 * 7 + lane << 32
        np.add.at(counts, ((where >> 6) + site) & 31, visits * size)
    return counts.tobytes()


def visit_costs(bench: Bench, hook: Hook, size: Size, called: bool) -> float:
    """Instructions that one visit adds."""
    found = []
    for visits in (2 * VISITS, VISITS):
        plain = whole(size, [("s_nop", 7)], visits=visits)
        before, shown, _ = bench.run(plain, "k", None)
        wanted = expected(hook, bench.profile)
        if called:
            code, behind = trampoline(size, hook, compiled(plain, hook), bench.counts.address)
            after, again, counted = bench.run(whole(size, code, behind, visits), "k", None)
        else:
            tool = Visits(hook)
            made = instrument(plain, tool, kernels=["k"])
            after, again, counted = bench.run(made.data, "k.luthier", tool.counts)
        assert shown == again, f"{hook.name}: the kernel shows something else"
        assert counted == wanted, f"{hook.name}: the hook counts something else"
        found.append(after - before)
    return (found[0] - found[1]) / VISITS


def compiled(plain: bytes, hook: Hook) -> Payload:
    """The hook with all arguments in registers, as a function has them."""
    planned = plan(plain, Visits(hook, DATA), kernels=["k"])
    (payload,) = compile_hooks(planned.edits, ISA).values()
    return payload


def row(bench: Bench, hook: Hook, sgprs: int, vgprs: int) -> str:
    full = Size(sgprs, vgprs)
    inlined = visit_costs(bench, hook, Size(sgprs, vgprs, dead=8), False)
    crowded = visit_costs(bench, hook, full, False)
    called = visit_costs(bench, hook, full, True)
    payload = compiled(whole(full, [("s_nop", 7)]), hook)
    cells = (len(payload.instrs), inlined, crowded, called)
    numbers = " | ".join(f"{cell:,.0f}" for cell in cells)
    names = ", ".join(each.name for each in hook.signature.parameters)
    times = f"{called / inlined:.1f} | {called / crowded:.1f}"
    return f"| {hook.name}({names}) | {sgprs} | {vgprs} | {numbers} | {times} |"


def main() -> None:
    bench = Bench()
    lines = []
    for each in HOOKS:
        for sgprs, vgprs in SIZES:
            lines.append(row(bench, each, sgprs, vgprs))
            print(lines[-1], flush=True)
    PAGE.write_text(TEXT.format(target=GPU.name, rows="\n".join(lines)))


if __name__ == "__main__":
    main()
