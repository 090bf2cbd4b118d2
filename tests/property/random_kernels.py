"""Random kernels for gfx90a: structured control flow over few registers, all state written out at the end.

In: a random.Random. Out: rows for `synthetic.assemble`. Invariant: every program ends, reads and writes only its
own slot of the buffers, never races, and ends with EXEC as it was. One wave has 64 lanes; its kernel arguments
are input, probes, output (pointers).

Probes: with ``inline=True`` a probe adds a register's value to its slot of the probe buffer in each active lane, by
code of the program itself; otherwise it is an `s_nop` whose number tells it, for a hook to do the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from luthier_py.isa import EXEC, M0, SCC, VCC, InstructionSet, Reg, instruction_set, sgpr, target, vgpr

ISA = instruction_set(target("gfx90a"))
Row = tuple[Any, ...] | bytes | str

DATA = range(2, 10)           # VGPRs that programs compute with
OWN, INPUT, OUT = vgpr(10), vgpr(12, 2), vgpr(14, 2)
PROBE, TEMPORARY = vgpr(16, 2), vgpr(18)
SCALARS = range(8, 18)        # SGPRs that programs compute with
LOADED = sgpr(20, 4)
MASKS = range(24, 40, 2)      # saved EXEC, one pair for each nesting level
COUNTER = range(40, 48)       # trip counts, one for each nesting level
SLOT_BYTES = 4 * (len(DATA) + len(SCALARS) + 2)
INPUT_BYTES = 16              # of each lane
PROBES = 24
VECTOR = ["v_add_u32", "v_xor_b32", "v_sub_u32", "v_and_b32", "v_max_u32", "v_mul_lo_u32", "v_bfi_b32",
          "v_cndmask_b32", "v_add_co_u32_e32", "v_addc_co_u32_e32", "v_lshlrev_b64", "v_mov_b32_sdwa"]
SCALAR = ["s_add_u32", "s_addc_u32", "s_xor_b32", "s_mul_i32", "s_cselect_b32", "s_min_u32", "s_cmp_lt_u32",
          "s_lshr_b32", "s_mov_b64", "s_bitcmp1_b32"]
VCC_PAIR, EXEC_PAIR = sgpr(VCC, 2), sgpr(EXEC, 2)


@dataclass
class Program:
    """A kernel being written. ``probes``: which register each probe shows."""

    rng: random.Random
    inline: bool
    rows: list[Row] = field(default_factory=list)
    probes: list[Reg] = field(default_factory=list)
    labels: int = 0
    depth: int = 0
    isa: InstructionSet = ISA

    def emit(self, *row: Any, **modifiers: int) -> None:
        self.rows.append(self.isa.make(*row, **modifiers).raw if modifiers else row)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def place(self, label: str) -> None:
        self.rows.append(f"{label}:")

    def v(self) -> Reg:
        return vgpr(self.rng.choice(DATA))

    def s(self) -> Reg:
        return sgpr(self.rng.choice(SCALARS))


def kernel(
    seed: int, inline: bool, size: int = 12, isa: InstructionSet = ISA, before: Iterable[Row] = (),
    behind: Iterable[Row] = (),
) -> Program:
    """The program of a seed; the same one whether probes are inline or not. ``before`` and ``behind``: what else stands
    there, around all that is random."""
    program = Program(random.Random(seed), inline, isa=isa)
    _begin(program)
    program.rows += before
    _statements(program, size)
    program.rows += behind
    _finish(program)
    return program


def _begin(p: Program) -> None:
    """Addresses of this lane's slots, and values from the input."""
    p.emit("s_load_dwordx4", LOADED, sgpr(4, 2), 0)
    p.emit("s_load_dwordx2", sgpr(18, 2), sgpr(4, 2), 16)
    p.emit("v_and_b32", OWN, 1023, vgpr(0))
    p.emit("v_lshl_add_u32", OWN, sgpr(6), 6, OWN)  # work-groups have 64 work-items
    p.emit("s_waitcnt", 0)
    buffers = (INPUT, sgpr(20, 2), INPUT_BYTES), (PROBE, sgpr(22, 2), 0), (OUT, sgpr(18, 2), SLOT_BYTES)
    for pair, base, scale in buffers:
        low, high = vgpr(pair.index), vgpr(pair.index + 1)
        p.emit("v_mov_b32", high, sgpr(base.index + 1))
        p.emit("v_mul_u32_u24", low, scale, OWN)
        p.emit("v_add_co_u32_e32", low, VCC_PAIR, sgpr(base.index), low)
        p.emit("v_addc_co_u32_e32", high, VCC_PAIR, 0, high, VCC_PAIR)
    p.emit("global_load_dwordx4", vgpr(2, 4), INPUT, "off")
    for index in SCALARS:
        p.emit("s_mul_i32", sgpr(index), sgpr(6), p.rng.getrandbits(32))
    p.emit("s_waitcnt", 0)
    for index in range(6, 10):
        p.emit("v_xor_b32", vgpr(index), vgpr(index - 4), OWN)
    p.emit("s_mov_b32", sgpr(M0), 3)


def _finish(p: Program) -> None:
    p.emit("s_cselect_b32", sgpr(18), 1, 0)
    values = [*map(vgpr, DATA), *map(sgpr, SCALARS), sgpr(18), sgpr(VCC)]
    for number, reg in enumerate(values):
        p.emit("v_mov_b32", TEMPORARY, reg)
        p.emit("global_store_dword", OUT, TEMPORARY, "off", offset=4 * number)
    p.emit("s_endpgm")


def _statements(p: Program, count: int) -> None:
    for _ in range(count):
        kinds = SIMPLE if p.depth >= 3 else SIMPLE + NESTED
        p.rng.choice(kinds)(p)


def _vector(p: Program) -> None:
    for _ in range(p.rng.randint(1, 4)):
        name = p.rng.choice(VECTOR)
        if name == "v_bfi_b32":
            p.emit(name, p.v(), p.v(), p.v(), p.s())
        elif name == "v_cndmask_b32":
            p.emit("v_cndmask_b32_e32", p.v(), p.v(), p.v(), VCC_PAIR)
        elif name == "v_add_co_u32_e32":
            p.emit(name, p.v(), VCC_PAIR, p.v(), p.v())
        elif name == "v_addc_co_u32_e32":
            p.emit(name, p.v(), VCC_PAIR, p.v(), p.v(), VCC_PAIR)
        elif name == "v_lshlrev_b64":
            p.emit(name, vgpr(p.rng.choice((2, 4, 6, 8)), 2), p.rng.randint(1, 40), vgpr(p.rng.choice((2, 4, 6, 8)), 2))
        elif name == "v_mov_b32_sdwa":  # writes half a register
            p.emit(name, p.v(), p.v(), dst_sel=4, dst_unused=2, src0_sel=6)
        else:
            p.emit(name, p.v(), p.rng.choice((p.v(), p.s(), p.rng.randint(0, 64))), p.v())


def _scalar(p: Program) -> None:
    for _ in range(p.rng.randint(1, 4)):
        name = p.rng.choice(SCALAR)
        if name.startswith("s_cmp") or name.startswith("s_bitcmp"):
            p.emit(name, p.s(), p.s())
        elif name == "s_mov_b64":
            p.emit(name, p.rng.choice((VCC_PAIR, sgpr(10, 2))), p.rng.choice((sgpr(12, 2), sgpr(14, 2), VCC_PAIR)))
        else:
            p.emit(name, p.s(), p.s(), p.rng.choice((p.s(), p.rng.getrandbits(32), 3)))


def _across(p: Program) -> None:
    choice = p.rng.randrange(4)
    if choice == 0:
        p.emit("v_readfirstlane_b32", p.s(), p.v())
    elif choice == 1:
        p.emit("v_readlane_b32", p.s(), p.v(), p.rng.randrange(64))
    elif choice == 2:
        p.emit("v_writelane_b32", p.v(), p.s(), p.rng.choice((p.rng.randrange(64), sgpr(M0))))
    else:
        p.emit("s_and_b32", sgpr(M0), p.s(), 63)


def _compare(p: Program) -> None:
    p.emit(p.rng.choice(["v_cmp_lt_u32_e32", "v_cmp_ge_i32_e32", "v_cmp_ne_u32_e32"]), VCC_PAIR, p.v(), p.v())


def _load(p: Program) -> None:
    """A load whose wait comes later; what is between leaves its destination alone."""
    target, kept = p.v(), p.s()
    kind = p.rng.randrange(3)
    if kind == 0:
        p.emit("global_load_dword", target, INPUT, "off", offset=4 * p.rng.randrange(4))
    elif kind == 1:
        p.emit("v_lshlrev_b32", TEMPORARY, 2, vgpr(0))
        p.emit("ds_write_b32", TEMPORARY, p.v())
        p.emit("ds_read_b32", target, TEMPORARY)
    else:
        p.emit("s_load_dword", kept, sgpr(4, 2), 8 * p.rng.randrange(3) + 4)
    for _ in range(p.rng.randrange(3)):
        other = vgpr(p.rng.choice([i for i in DATA if i != target.index]))
        p.emit("v_add_u32", other, p.rng.randint(0, 64), other)
    if p.rng.random() < 0.4:
        p.emit("s_nop", 0)
    p.emit("s_waitcnt", p.rng.choice((0, 0, 0x0070)) if kind != 2 else 0)  # lgkmcnt(0) vmcnt(0) either way


def _probe(p: Program) -> None:
    if len(p.probes) == PROBES:
        return
    reg = p.rng.choice((p.v(), p.v(), p.s(), sgpr(VCC), sgpr(M0), sgpr(EXEC), sgpr(SCC)))
    number = len(p.probes)
    p.probes.append(reg)
    if not p.inline:
        p.emit("s_nop", 7)
        return
    if reg == sgpr(SCC):
        p.emit("s_cselect_b32", sgpr(48), 1, 0)
        p.emit("v_mov_b32", TEMPORARY, sgpr(48))
    else:
        p.emit("v_mov_b32", TEMPORARY, reg)
    p.emit("global_atomic_add", PROBE, TEMPORARY, "off", offset=4 * number)


def _if(p: Program) -> None:
    mask, over = sgpr(MASKS[p.depth], 2), p.label()
    _compare(p)
    p.emit("s_and_saveexec_b64", mask, VCC_PAIR)
    if p.rng.random() < 0.5:
        p.emit("s_cbranch_execz", over)
    _nest(p)
    if p.rng.random() < 0.5:
        p.place(over)
        over = p.label()
        p.emit("s_xor_b64", EXEC_PAIR, EXEC_PAIR, mask)
        if p.rng.random() < 0.5:
            p.emit("s_cbranch_execz", over)
        _nest(p)
    p.place(over)
    if p.rng.random() < 0.3:
        p.emit("s_mov_b64", EXEC_PAIR, mask)
    else:
        p.emit("s_or_b64", EXEC_PAIR, EXEC_PAIR, mask)


def _uniform_if(p: Program) -> None:
    over, end = p.label(), p.label()
    p.emit("s_cmp_gt_u32", p.s(), p.s())
    p.emit(p.rng.choice(("s_cbranch_scc0", "s_cbranch_scc1")), over)
    _nest(p)
    p.emit("s_branch", end)
    p.place(over)
    _nest(p)
    p.place(end)


def _loop(p: Program) -> None:
    counter, again = sgpr(COUNTER[p.depth]), p.label()
    p.emit("s_mov_b32", counter, p.rng.randint(1, 3))
    p.place(again)
    _nest(p)
    p.emit("s_sub_u32", counter, counter, 1)
    p.emit("s_cmp_lg_u32", counter, 0)
    p.emit("s_cbranch_scc1", again)


def _divergent_loop(p: Program) -> None:
    """Lanes leave one after the other."""
    counter, mask, again = vgpr(20 + p.depth), sgpr(MASKS[p.depth], 2), p.label()
    p.emit("v_and_b32", counter, 3, p.v())
    p.emit("s_mov_b64", mask, EXEC_PAIR)
    p.place(again)
    _nest(p)
    p.emit("v_cmp_ne_u32_e32", VCC_PAIR, 0, counter)
    p.emit("v_add_u32", counter, -1, counter)
    p.emit("s_and_b64", EXEC_PAIR, EXEC_PAIR, VCC_PAIR)
    p.emit("s_cbranch_execnz", again)
    p.emit("s_mov_b64", EXEC_PAIR, mask)


def _nest(p: Program) -> None:
    p.depth += 1
    _statements(p, p.rng.randint(0, 4))
    p.depth -= 1


Statement = Callable[[Program], None]
SIMPLE: list[Statement] = [_vector, _scalar, _across, _compare, _load, _probe, _probe]
NESTED: list[Statement] = [_if, _uniform_if, _loop, _divergent_loop]
