"""A compiled hook, prepared once for being inlined at many places.

In: a Payload. Out: a Fragment, and its instructions with other registers. Invariant: instructions are shared
between places that use the same registers; an Inst never changes.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import accumulate
from operator import or_

from luthier_py.base.records import dataclass
from luthier_py.isa import M0, NO_REGS, VCC, Inst, InstructionSet, OpFlag, Reg, RegFile, RegSet
from luthier_py.isa.hazards.wait_states import unsafe_shift_amount
from luthier_py.isa.model.registers import NAMED
from luthier_py.rewrite.inject.allocate import Group, Pin, Placement, Pool, fragment_groups, place
from luthier_py.rewrite.jit import Payload

VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """What every place needs to know of a payload."""

    payload: Payload
    groups: tuple[Group, ...]
    used: RegSet                    # general registers that it names
    written: RegSet                 # those that it writes
    jumps: dict[int, int]           # for branches, by number, where they go; the number of all for the end
    cuts: tuple[int, ...]           # by number, what branches, what follows it, what is branched to; start and end
    vector: bool                    # it has vector instructions
    in_inactive_lanes: RegSet                    # vector registers that it writes in lanes that are not active
    operands: tuple[tuple[tuple[str, tuple[RegFile, int]], ...], ...]  # of each instruction, registers by name


def prepare(isa: InstructionSet, payload: Payload) -> Fragment:
    """What every place needs to know of ``payload``, worked out once; registers are those that the compiler chose."""
    general = general_registers(isa)
    slots = [slot.reg for slot in (*payload.params, *payload.results)]
    slots += [each for each in (payload.stack, payload.resource) if each is not None]
    starts = list(accumulate((inst.size_bytes for inst in payload.instrs), initial=0))
    targets = (inst.branch_target(start) for start, inst in zip(starts, payload.instrs, strict=False))
    jumps = {number: starts.index(target) for number, target in enumerate(targets) if target is not None}
    cuts = {0, len(payload.instrs), *jumps, *jumps.values(), *(number + 1 for number in jumps)}
    return Fragment(
        payload, tuple(fragment_groups(payload.instrs, slots, general)),
        (payload.reads | payload.writes | RegSet.of(*slots)) & general, payload.writes & general, jumps,
        tuple(sorted(cuts)), any(inst.op.flags & VECTOR for inst in payload.instrs), _in_inactive_lanes(payload),
        tuple(map(_collect_operand_regs, payload.instrs)),
    )


def _in_inactive_lanes(payload: Payload) -> RegSet:
    """In whose lanes it keeps scalars, mostly."""
    own = (inst.writes.vectors for inst in payload.instrs if OpFlag.IGNORES_EXEC in inst.op.flags)
    return reduce(or_, own, RegSet())


def settle(isa: InstructionSet, fragment: Fragment, pins: list[Pin], pool: Pool,
           dead_in_all_lanes: RegSet | None = None) -> tuple[Placement, Pool]:
    """Places for the fragment's registers, none of which the hardware gets wrong; and what is left of ``pool``.
    ``dead_in_all_lanes``: what no instruction reads in any lane, where the hook may not write others in inactive
    lanes."""
    in_inactive_lanes = NO_REGS if dead_in_all_lanes is None else fragment.in_inactive_lanes
    banned = RegSet()
    while True:
        rest = Pool(pool.free - banned, pool.where, pool.why, asked=pool.asked, busy=pool.busy - banned)
        kept = [pin for pin in pins if not banned.overlaps(RegSet.of(pin.location))]
        placement = place(fragment.groups, fragment.used, fragment.written, kept, rest, in_inactive_lanes,
                          dead_in_all_lanes or NO_REGS)
        shifts = [i for i in instructions(isa, fragment, placement) if unsafe_shift_amount(isa.target, i)]
        if not shifts:
            return placement, rest
        banned |= RegSet.of(*(reg for shift in shifts if (reg := shift["src0"].reg) is not None))


def _collect_operand_regs(inst: Inst) -> tuple[tuple[str, tuple[RegFile, int]], ...]:
    return tuple((o.name, (o.reg.file, o.reg.index)) for o in inst.operands if o.reg is not None)


def instructions(isa: InstructionSet, fragment: Fragment, placement: Placement) -> tuple[Inst, ...]:
    """The fragment's code in the registers of a place."""
    return _instructions(isa, fragment, frozenset(placement.renamed.items()))


@lru_cache(maxsize=1 << 10)
def _instructions(
    isa: InstructionSet, fragment: Fragment, renamed: frozenset[tuple[tuple[RegFile, int], int]]
) -> tuple[Inst, ...]:
    new = dict(renamed)
    return tuple([
        _rename_registers(isa, inst, tuple([new.get(reg, reg[1]) for _, reg in named]))
        for inst, named in zip(fragment.payload.instrs, fragment.operands, strict=True)
    ])


@lru_cache(maxsize=1 << 16)
def _rename_registers(isa: InstructionSet, inst: Inst, indices: tuple[int, ...]) -> Inst:
    """``inst`` with new register indices, one for each operand that is a register."""
    new = dict(zip((name for name, _ in _collect_operand_regs(inst)), indices, strict=True))
    return isa.with_registers(inst, lambda operand: new[operand.name])


@lru_cache(maxsize=1 << 16)
def with_literal(isa: InstructionSet, inst: Inst, literal: int) -> Inst:
    """``inst`` with another literal dword."""
    return isa.decode(inst.raw[:-4] + literal.to_bytes(4, "little"))


def general_registers(isa: InstructionSet) -> RegSet:
    """Registers without a special meaning on this target, which an operand names whatever MODE is."""
    vectors = (1 << min(isa.target.vgpr_limit, NAMED)) - 1
    return RegSet.by_file((1 << isa.target.sgpr_limit) - 1, vectors, vectors if isa.target.has_agprs else 0)


def is_general(reg: Reg) -> bool:
    """Whether it is no special register: a vector register, or scalars below VCC."""
    return reg.file is not RegFile.SGPR or reg.index < min(VCC, M0)
