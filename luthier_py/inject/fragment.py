"""A compiled hook, prepared once for being inlined at many places.

In: a Payload. Out: a Fragment, and its instructions with other registers. Invariant: instructions are shared
between places that use the same registers; an Inst never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from luthier_py.inject.allocate import Group, Pin, Placement, Pool, fragment_groups, place
from luthier_py.isa import M0, VCC, Inst, InstructionSet, Reg, RegFile, RegSet
from luthier_py.isa.hazards import unsafe_shift_amount
from luthier_py.jit import Payload


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """What every place needs to know of a payload."""

    payload: Payload
    groups: tuple[Group, ...]
    used: RegSet                    # general registers that it names
    written: RegSet                 # those that it writes
    jumps: tuple[int | None, ...]   # for each instruction, the one that it branches to; their number for the end


def prepare(isa: InstructionSet, payload: Payload) -> Fragment:
    general = general_registers(isa)
    slots = [slot.reg for slot in (*payload.params, *payload.results)]
    starts = list(accumulate((inst.size_bytes for inst in payload.instrs), initial=0))
    jumps = []
    for start, inst in zip(starts, payload.instrs, strict=False):
        target = inst.branch_target(start)
        jumps.append(None if target is None else starts.index(target))
    return Fragment(
        payload, tuple(fragment_groups(payload.instrs, slots, general)),
        (payload.reads | payload.writes | RegSet.of(*slots)) & general, payload.writes & general, tuple(jumps),
    )


def settle(isa: InstructionSet, fragment: Fragment, pins: list[Pin], pool: Pool) -> tuple[Placement, Pool]:
    """Places for the fragment's registers, none of which the hardware gets wrong; and what is left of ``pool``."""
    banned = RegSet()
    while True:
        rest = Pool(pool.free - banned, pool.where)
        kept = [pin for pin in pins if not banned.overlaps(RegSet.of(pin.home))]
        placement = place(fragment.groups, fragment.used, fragment.written, kept, rest)
        shifts = [i for i in instructions(isa, fragment, placement) if unsafe_shift_amount(isa.target, i)]
        if not shifts:
            return placement, rest
        banned |= RegSet.of(*(reg for shift in shifts if (reg := shift["src0"].reg) is not None))


def instructions(isa: InstructionSet, fragment: Fragment, placement: Placement) -> list[Inst]:
    """The fragment's code in the registers of a place."""
    return [
        _renamed(isa, inst, tuple(0 if o.reg is None else placement(o.reg).index for o in inst.operands))
        for inst in fragment.payload.instrs
    ]


@lru_cache(maxsize=1 << 16)
def _renamed(isa: InstructionSet, inst: Inst, indices: tuple[int, ...]) -> Inst:
    """``inst`` with new register indices, one per operand."""
    new = dict(zip((operand.name for operand in inst.operands), indices, strict=True))
    return isa.with_registers(inst, lambda operand: new[operand.name])


def general_registers(isa: InstructionSet) -> RegSet:
    """Registers without a special meaning on this target."""
    vectors = (1 << isa.target.vgpr_limit) - 1
    return RegSet((1 << isa.target.sgpr_limit) - 1, vectors, vectors if isa.target.has_agprs else 0)


def is_general(reg: Reg) -> bool:
    return reg.file is not RegFile.SGPR or reg.index < min(VCC, M0)
