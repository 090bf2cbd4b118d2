"""Code of hooks that authors write as assembly.

In: a listing, and registers of the application that it writes on purpose. Out: Assembly: its code, the registers that
it finds the application's values in, and those that it leaves results in. HookError says what it may not do. Invariant:
what it reads before it surely wrote it is the application's; registers that it writes, and was not to, are its own, and
become others where it is inserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from luthier_py.base.errors import HookError, LuthierError, Unsupported
from luthier_py.base.records import dataclass, replace
from luthier_py.isa import EXEC, M0, MODE, SCC, VCC, Inst, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.build import jump_if_flag, set_flag
from luthier_py.isa.instead import make_replacement
from luthier_py.isa.properties.side_effects import outside

if TYPE_CHECKING:
    from luthier_py.isa import InstructionSet

_KEPT = RegSet.of(sgpr(EXEC, 2), sgpr(MODE))
_FIXED = RegSet.of(sgpr(SCC), sgpr(VCC, 2), sgpr(M0))
_IN_LDS = "addr"
_ADDRESSES = ("saddr", "vaddr", "sbase", _IN_LDS)
_OTHER_LANES = OpFlag.IGNORES_EXEC | OpFlag.READS_OTHER_LANES
_LOADS = OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """``takes``: registers that hold the application's values when it begins; ``gives``: those that it leaves results
    in. ``pointers``: those of the former through which it touches memory. ``resumes``: it is an instruction of the
    application's, run or not."""

    name: str
    place: str  # file:line
    code: bytes
    takes: tuple[Reg, ...]
    gives: tuple[Reg, ...]
    pointers: frozenset[Reg]
    resumes: bool = False


def assemble_text(isa: InstructionSet, text: str, writes: Sequence[Reg], place: str) -> Assembly:
    """``text`` as a listing in LLVM's syntax."""
    try:
        code = isa.assemble(text)
    except LuthierError as error:
        raise HookError(f"{place}: {error.message}") from None
    return _analyse_code(isa, code, RegSet.of(*writes), place)


def conditional(isa: InstructionSet, inst: Inst, place: str) -> tuple[Assembly, Reg]:
    """``inst``, and a wait for what it loads, run only where a scalar register is 0; and that register."""
    touched = inst.reads | inst.writes
    if fixed := inst.writes & _FIXED:
        raise HookError(f"{place}: an instruction that writes {fixed} cannot be skipped")
    if fixed := inst.reads & _FIXED:
        raise HookError(f"{place}: an instruction that reads {fixed} cannot be skipped: it would run in code of hooks, "
                        "which has the application's values in other registers; call the hook with before()")
    if inst.op.flags & OpFlag.SMEM and inst.writes:
        raise HookError(f"{place}: a scalar memory instruction with a result cannot be skipped: no call gives its "
                        "registers; call the hook with before()")
    if inst.find("srsrc") is not None:
        raise HookError(f"{place}: an instruction with a descriptor cannot be skipped: code of hooks touches memory "
                        "through pointers; call the hook with before()")
    flag = next(reg for reg in map(sgpr, range(isa.target.sgpr_limit)) if not touched.overlaps(RegSet.of(reg)))
    try:
        counted = [make_replacement(isa, inst)] if inst.op.counters else []
    except Unsupported as error:
        raise HookError(f"{place}: {error.message}") from None
    body = b"".join(each.raw for each in (inst, *counted))
    over = isa.with_field(jump_if_flag(isa), "simm16", len(body) // 4)
    code = _analyse_code(isa, set_flag(isa, flag).raw + over.raw + body, inst.writes, place)
    return replace(code, resumes=True), flag


def _analyse_code(isa: InstructionSet, code: bytes, wanted: RegSet, place: str) -> Assembly:
    insts = isa.decode_all(code)
    starts = [*accumulate((inst.size_bytes for inst in insts), initial=0)]
    if not insts:
        raise HookError(f"{place}: there is no instruction to insert")
    surely = _surely_written(insts, starts)
    taken, written = wanted - surely[-1], RegSet()
    for inst, before in zip(insts, surely, strict=False):
        taken, written = taken | inst.reads - before - _KEPT, written | inst.writes
    _check(isa, insts, taken, written, wanted, place)
    pairs, pointers = list(_pairs(insts)), [reg for inst in insts for reg in _pointers(inst)]
    takes = tuple(_group_registers(taken, [*pointers, *pairs]))  # what is loaded may overlap half of its address
    return Assembly("text", place, code, takes, tuple(_group_registers(wanted, pairs)), frozenset(pointers))


def _surely_written(insts: Sequence[Inst], starts: Sequence[int]) -> list[RegSet]:
    """Before each instruction, and at the end: what is written on all ways there."""
    everything = RegSet(-1)
    found = [RegSet(), *[everything] * len(insts)]
    changed = True
    while changed:
        changed = False
        for at, inst in enumerate(insts):
            after, target = found[at] | inst.writes, inst.branch_target(starts[at])
            goes_on = target is None or OpFlag.CONDITIONAL in inst.op.flags
            for to in [at + 1] * goes_on + ([starts.index(target)] if target in starts else []):
                if found[to] & after != found[to]:
                    found[to], changed = found[to] & after, True
    return found


def _check(
    isa: InstructionSet, insts: Sequence[Inst], taken: RegSet, written: RegSet, wanted: RegSet, place: str
) -> None:
    if lost := written & _KEPT:
        raise HookError(f"{place}: inserted text may not write {lost}; change an instruction that does")
    if asked := taken & _FIXED:
        raise HookError(f"{place}: inserted text cannot take {asked} from the application; write it first")
    if more := wanted - written:
        raise HookError(f"{place}: writes= names {more}, which the text does not write")
    if wanted.overlaps(_FIXED) or any(reg.file is RegFile.AGPR for reg in (taken | written).ranges()):
        raise HookError(f"{place}: inserted text takes and gives plain SGPRs and VGPRs only")
    if other := next((inst for inst in insts if inst.op.flags & _OTHER_LANES), None):
        raise HookError(f"{place}: inserted text has the lanes that are active, and no others: `{isa.text(other)}`")
    if said := next(((inst, why) for inst in insts if (why := outside(inst.op))), None):
        raise HookError(f"{place}: `{isa.text(said[0])}` {said[1]}; inserted text computes, and accesses memory")
    last = max((at for at, inst in enumerate(insts) if inst.op.flags & _LOADS and inst.writes), default=-1)
    if last >= 0 and not any(OpFlag.WAIT in inst.op.flags for inst in insts[last + 1:]):
        raise HookError(f"{place}: inserted text must wait for what it loads: `{isa.text(insts[last])}`")


def _pairs(insts: Iterable[Inst]) -> Iterator[Reg]:
    """Registers that instructions name two by two."""
    for inst in insts:
        for reg in (operand.reg for operand in inst.operands):
            if reg is not None and reg.dwords >= 2:
                yield from (Reg(reg.file, reg.index + at, 2) for at in range(0, reg.dwords - 1, 2))


def _group_registers(regs: RegSet, pairs: Sequence[Reg]) -> Iterator[Reg]:
    """``regs``, in pairs where instructions have them so."""
    left = regs
    for pair in dict.fromkeys(pairs):
        both = RegSet.of(pair)
        if left & both == both:
            left -= both
            yield pair
    for reg in left.ranges():
        yield from (Reg(reg.file, reg.index + at) for at in range(reg.dwords))


def _pointers(inst: Inst) -> Iterator[Reg]:
    """Registers that an instruction touches memory through."""
    for name in _ADDRESSES if inst.op.flags & _LOADS else ():
        operand = inst.find(name)
        if operand is not None and operand.reg is not None and operand.reg.dwords == (1 if name == _IN_LDS else 2):
            yield operand.reg
            return
