"""Barriers of a work-group: which one an instruction is about, and what a wave does at its own work-group's.

In: an instruction. Out: the barrier's number; a BarrierPart. Source: RDNA 4 ISA, 16.3 (S_BARRIER_SIGNAL and its like).
Invariant: up to gfx11 one instruction is both parts.
"""

from __future__ import annotations

from enum import Flag, auto

from luthier_py.base.errors import Unsupported
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action

GROUPS, TRAP, CLUSTERS, CLUSTER_TRAP = -1, -2, -3, -4
"""Numbers of barriers that have no name."""


class BarrierPart(Flag):
    """What a wave does: it says that it has come, or it waits until all have."""

    NONE = 0
    COMES = auto()
    WAITS = auto()


_HALVES: dict[object, BarrierPart] = {
    Action.BARRIER_SIGNAL: BarrierPart.COMES, Action.BARRIER_SIGNAL_ISFIRST: BarrierPart.COMES,
    Action.BARRIER_WAIT: BarrierPart.WAITS,
}


def barrier_number(inst: Inst) -> int | None:
    """The barrier that an instruction names; None if M0 does."""
    operand = inst.find("src0") or inst.find("simm16")
    if operand is None:
        return None
    number = (operand.value & 0xFFFF) - ((operand.value & 0x8000) << 1)
    if number in (CLUSTERS, CLUSTER_TRAP):
        raise Unsupported("a barrier of a cluster of work-groups: none is in one; leave it out where there is one")
    return number


def barrier_part(inst: Inst) -> BarrierPart:
    """At the barrier that the work-group has without a name; nothing at others."""
    row = find_meaning(inst.op)
    if row is Action.BARRIER:
        return BarrierPart.COMES | BarrierPart.WAITS
    if row not in _HALVES or barrier_number(inst) != GROUPS:
        return BarrierPart.NONE
    return _HALVES[row]


def meets_elsewhere(inst: Inst) -> bool:
    """Whether a wave comes to, or waits at, a barrier that has a name, or is not of its work-group."""
    return meets_the_grid(inst) or find_meaning(inst.op) in _HALVES and not barrier_part(inst)


def meets_the_grid(inst: Inst) -> bool:
    """Whether a wave comes to, and waits at, a barrier at which waves of several work-groups meet."""
    return find_meaning(inst.op) is Action.GWS_BARRIER
