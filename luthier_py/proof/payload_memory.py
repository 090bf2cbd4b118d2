"""Memory that a payload touches: addresses are made of pointers, and those of private memory of its stack pointer. What
the application has in LDS and in private memory is read only, at addresses made of pointers into it; LDS is changed by
the application's own instructions alone, where these are called (`instead`).

In: a payload's instructions and the ways between them. Out: nothing; CheckFailed names what touches other memory.
Invariant: a register holds a pointer where it was made of one on every way of the lane whose memory is touched; what
other lanes have is what the wave has on every way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.isa import SCC, Inst, InstructionSet, OperandKind, OpFlag, Space
from luthier_py.isa.model.registers import SCALARS
from luthier_py.isa.properties.private_buffers import private_resource
from luthier_py.isa.properties.side_effects import tends_caches
from luthier_py.proof.claim import Payload
from luthier_py.proof.code import number, ones
from luthier_py.proof.meanings import mangles
from luthier_py.proof.payload_lanes import Jumps, Point, Ways, ways_of_wave

OF_STACK = 1 << 20  # of what is made of the stack pointer
_OF_NEAR = {Space.LDS: 1 << 21, Space.SCRATCH: 1 << 22}  # of a pointer into what the application has there
_KINDS = OF_STACK | sum(_OF_NEAR.values())
_MEMORY = OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS | OpFlag.GDS

Depths = dict[int, int]  # by register: how many times what it holds is a pointer, and of which kinds; 0 is left out
Solution = Mapping[Point, Depths]


def check_memory(
    isa: InstructionSet, payload: Payload, insts: Sequence[Inst], jumps: Jumps, lanes: Ways | None
) -> None:
    """``lanes``: the ways of single lanes, if they are known. Raises CheckFailed."""
    whole = _Memory(payload, insts, ways_of_wave(jumps))
    wrong = whole.wrong() if lanes is None else _Memory(payload, insts, lanes, whole.solution).wrong()
    if wrong:
        where = insts[min(wrong)]
        what = {Space.SCRATCH: "private memory that is not its stack",
                Space.LDS: "local memory at an address that is not made of a pointer into it"}.get(
            where.op.spaces, "memory at an address that is not made of a pointer")
        raise CheckFailed(f"hook {payload.name} touches {what}", Location(None, None, isa.text(where)))


class _Memory:
    """What registers hold at each point, solved (mutable while it is)."""

    def __init__(self, payload: Payload, insts: Sequence[Inst], ways: Ways, whole: Solution | None = None) -> None:
        """``whole``: what they hold on every way of the wave, which is what is read of other lanes."""
        self.payload, self.insts, self.ways, self.whole = payload, insts, ways, whole
        self.kept = 0  # how often a pointer what is read from the stack is
        self.solution: dict[Point, Depths] = {}
        while True:
            self.solution = self._solve_depths()
            kept = reduce(_either, map(self._compute_stored_depth, self.solution), 0)
            if kept == self.kept:
                return
            self.kept = kept

    def wrong(self) -> list[int]:
        """Numbers of instructions that touch what they must not."""
        return [point.at for point, depths in self.solution.items()
                if point.at < len(self.insts) and self._touches(point) and not _fits(
                    self.payload, self.insts[point.at], depths)]

    def _touches(self, point: Point) -> bool:
        inst = self.insts[point.at]
        memory = bool(inst.op.flags & _MEMORY and inst.op.spaces) and not tends_caches(inst.op)
        return memory and (point.on or not inst.op.flags & (OpFlag.VMEM | OpFlag.LDS))

    def _start(self) -> Depths:
        start: Depths = {}
        for reg, depth in zip(self.payload.params, self.payload.pointers, strict=True):
            start.update({number(reg) + k: depth for k in range(reg.dwords) if depth})
        for reg, space in zip(self.payload.params, self.payload.near, strict=bool(self.payload.near)):
            start |= {number(reg): _OF_NEAR[space]} if space else {}
        if self.payload.stack is not None:
            start[number(self.payload.stack)] = OF_STACK
        return start

    def _solve_depths(self) -> dict[Point, Depths]:
        found = {point: self._start() for point in self.ways.starts}
        work = list(found)
        while work:
            point = work.pop()
            if point.at == len(self.insts):
                continue
            after = self._after(point, found[point])
            for to in self.ways.onward[point]:
                old = found.get(to)
                new = after if old is None else _on_both_ways(old, after)
                if new != old:
                    found[to] = new
                    work.append(to)
        return found

    def _after(self, point: Point, depths: Depths) -> Depths:
        inst = self.insts[point.at]
        others = inst.op.flags & OpFlag.DPP or inst.op.flags & OpFlag.VALU and not inst.writes.bits & ~SCALARS
        if others and self.whole is not None:
            found = self._compute_result_depth(inst, self.whole.get(Point(point.at, None), {}))
        else:
            found = self._compute_result_depth(inst, depths)
        writes = inst.writes.bits
        if not point.on and OpFlag.IGNORES_EXEC not in inst.op.flags:
            writes &= SCALARS
        after = {reg: depth for reg, depth in depths.items() if not writes >> reg & 1}
        if found:
            after.update(dict.fromkeys(ones(writes), found))
            if after.get(SCC, 0) & _KINDS:
                after[SCC] &= ~_KINDS
        return after

    def _compute_result_depth(self, inst: Inst, depths: Depths) -> int:
        """How often a pointer what an instruction makes is."""
        if inst.op.flags & _MEMORY:
            if not inst.op.spaces or tends_caches(inst.op):
                return 0
            if not in_private(self.payload, inst):
                return max(_address_depth(inst, depths) - 1, 0)
            return self.kept if _of_kind(inst, depths, OF_STACK) else 0
        read = [depth for reg, depth in depths.items() if inst.reads.bits >> reg & 1]
        if mangles(inst.op):
            return reduce(or_, read, 0) & OF_STACK
        if any(operand.kind is OperandKind.CONSTANT for operand in inst.operands):
            near = [kind for space, kind in _OF_NEAR.items() if space & self.payload.near_numbers]
            read += [self.payload.absolute, *near]
        return reduce(_either, read, 0)

    def _compute_stored_depth(self, point: Point) -> int:
        """How often a pointer what is written to the stack is."""
        if point.at == len(self.insts):
            return 0
        inst = self.insts[point.at]
        data = inst.find("vdata") or inst.find("data")
        if not in_private(self.payload, inst) or OpFlag.MAY_STORE not in inst.op.flags or not point.on or (
                data is None or data.reg is None):
            return 0
        first, depths = number(data.reg), self.solution[point]
        return reduce(_either, (depths.get(first + k, 0) for k in range(data.reg.dwords)), 0) & ~OF_STACK


def _either(a: int, b: int) -> int:
    """Of what is made of both."""
    return max(a & ~_KINDS, b & ~_KINDS) | (a | b) & _KINDS


def _on_both_ways(a: Depths, b: Depths) -> Depths:
    both = ((reg, min(d & ~_KINDS, b[reg] & ~_KINDS) | d & b[reg] & _KINDS) for reg, d in a.items() if reg in b)
    return {reg: depth for reg, depth in both if depth}


def _fits(payload: Payload, inst: Inst, depths: Depths) -> bool:
    if inst.op.spaces is Space.LDS:
        return _of_kind(inst, depths, _OF_NEAR[Space.LDS])
    if not in_private(payload, inst):
        return _address_depth(inst, depths) > 0
    reads = OpFlag.MAY_STORE not in inst.op.flags
    return _of_kind(inst, depths, OF_STACK | (_OF_NEAR[Space.SCRATCH] if reads else 0))


def in_private(payload: Payload, inst: Inst) -> bool:
    """Whether it moves data between lanes and their private memory, and does nothing else."""
    return inst.op.spaces is Space.SCRATCH or payload.resource is not None and (
        private_resource(inst) == payload.resource)


def _of_kind(inst: Inst, depths: Depths, kinds: int) -> bool:
    """Whether its address is made of a pointer of one of some kinds."""
    places = [operand.reg for name in ("saddr", "vaddr", "addr", "soffset") if (operand := inst.find(name)) is not None]
    return any(reg is not None and depths.get(number(reg), 0) & kinds for reg in places)


def in_lds(inst: Inst) -> bool:
    """Whether it does nothing but to access a work-group's memory where its address says."""
    gds = inst.find("gds")
    return inst.op.spaces is Space.LDS and inst.find("addr") is not None and (gds is None or not gds.value)


def changes_lds(inst: Inst) -> bool:
    """Whether it may, in such a way."""
    return in_lds(inst) and inst.op.flags & (OpFlag.MAY_LOAD | OpFlag.MAY_STORE | OpFlag.ATOMIC) is not OpFlag.MAY_LOAD


def _address_depth(inst: Inst, depths: Depths) -> int:
    if Space.SCRATCH in inst.op.spaces and not is_flat(inst):
        return 0
    for name in ("saddr", "sbase", "vaddr"):
        operand = inst.find(name)
        if operand is not None and operand.reg is not None and operand.reg.dwords >= 2:
            first = number(operand.reg)
            return min(depths.get(first + k, 0) & ~_KINDS for k in range(2))
    return 0


def is_flat(inst: Inst) -> bool:
    """Whether its address may be of global memory or others."""
    return OpFlag.FLAT in inst.op.flags and Space.GLOBAL in inst.op.spaces
