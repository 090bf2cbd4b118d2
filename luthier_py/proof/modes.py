"""What else decides what vector instructions of the application do: whether some lane is active, and modes that make
vector operands relative, or skip vector instructions.

In: the graph. Out: Modes before each node, and `step_modes` for the way through one. Invariant: each claim holds
whenever control gets there. A wave starts with some lane active and both modes off, and so does code that is not known.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from luthier_py.isa import EXEC, MODE, Inst, InstructionSet, OperandKind, OpFlag
from luthier_py.isa.properties.vector_modes import Turned, classify_mode_switch
from luthier_py.isa.semantics import Scalar, find_meaning
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.control import Branch
from luthier_py.proof.code import within
from luthier_py.proof.graph import Graph, solve_dataflow
from luthier_py.proof.meanings import sources_of

_EXEC_BIT = 1 << EXEC
_MASKS = (1 << 128) - 1  # scalar registers that may hold masks


class Modes(NamedTuple):
    """``lanes``: bit i says that the mask in SGPR i has some lane. ``relative``: vector operands may mean other
    registers. ``skips``: vector instructions may be skipped; ``ending``: not behind the next instruction."""

    lanes: int
    relative: bool = False
    skips: bool = False
    ending: bool = False
    foreign: int = 0
    """Masks that calls write, of which nothing is known."""

    @property
    def some_lane(self) -> bool:
        """Whether EXEC is known to have a lane."""
        return bool(self.lanes & _EXEC_BIT)


_START = Modes(_EXEC_BIT)
_STRANGE = Modes(0)


class _NonZero:
    """Ops of whether a value is known not to be zero."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, bool(value))

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        refs = [bool(operand.ref) for operand in operands]
        if prim is Prim.OR:
            return Value(self, type, any(refs))
        if prim is Prim.BITS:
            return Value(self, type, refs[0])
        return Value(self, type, prim is Prim.SELECT and refs[1] and refs[2])


_OPS = _NonZero()


@lru_cache(maxsize=1 << 16)
def matters(inst: Inst) -> bool:
    """Whether `step_modes` may change anything at this instruction."""
    return bool(inst.writes.sgpr & _MASKS or sets_modes(inst))


@lru_cache(maxsize=1 << 16)
def sets_modes(inst: Inst) -> bool:
    """Whether it may make operands relative, or skip instructions, or end that."""
    flags = inst.op.flags
    return bool(flags & OpFlag.INDEXES_REGISTERS and OpFlag.SALU in flags) or bool(inst.writes.sgpr >> MODE & 1)


def step_modes(isa: InstructionSet, inst: Inst, modes: Modes) -> Modes:
    """Behind an instruction."""
    if modes.ending:
        modes = modes._replace(skips=False, ending=False)
    if not matters(inst):
        return modes
    switch = classify_mode_switch(isa.target, inst) if sets_modes(inst) else Turned.NOT
    if switch in (Turned.BOTH_ON, Turned.RELATIVE_ON, Turned.RELATIVE_OFF):
        modes = modes._replace(relative=switch is not Turned.RELATIVE_OFF)
    if switch in (Turned.BOTH_ON, Turned.SKIP_ON, Turned.SKIP_OFF):
        modes = modes._replace(skips=True, ending=switch is Turned.SKIP_OFF)
    written = inst.writes.sgpr & _MASKS
    kept = modes.lanes & ~(written | written >> 1)
    lanes = kept | _nonzero(isa, inst, modes.lanes) if written else modes.lanes
    lanes &= ~modes.foreign
    return modes if lanes == modes.lanes else modes._replace(lanes=lanes)


def _nonzero(isa: InstructionSet, inst: Inst, lanes: int) -> int:
    """Masks that ``inst`` leaves with some lane."""
    return _whole(isa, inst, lanes & _read(inst)) if _computes_mask(inst) else 0


@lru_cache(maxsize=1 << 16)
def _read(inst: Inst) -> int:
    return inst.reads.sgpr & _MASKS | _EXEC_BIT


@lru_cache(maxsize=1 << 16)
def _computes_mask(inst: Inst) -> bool:
    target = inst.find("sdst")
    return isinstance(find_meaning(inst.op), Scalar) and target is not None and target.reg is not None


@lru_cache(maxsize=1 << 16)
def _whole(isa: InstructionSet, inst: Inst, lanes: int) -> int:
    row, width = find_meaning(inst.op), isa.wave_size
    values, target = [], inst["sdst"].reg
    assert target is not None and isinstance(row, Scalar)
    for slot, name in sources_of(inst.op):
        type = slot.type if slot.type.bits else Type(Kind.UINT, width)
        operand = inst.find(name) if name is not None else None
        some = slot.name == "exec" and bool(lanes & _EXEC_BIT)
        if operand is not None and operand.kind is OperandKind.CONSTANT:
            some = bool(operand.value & (1 << type.bits) - 1)
        elif operand is not None and operand.reg is not None and type.bits == width:
            some = bool(lanes >> operand.reg.index & 1)
        values.append(Value(_OPS, type, some))
    made = row.compute(*values)
    made = made if isinstance(made, tuple) else (made,)
    found = {EXEC if slot.name == "exec" else target.index
             for slot, value in zip(row.signature.results, made, strict=True)
             if value.ref and slot.name != "scc" and value.type.bits == width}
    return sum(1 << register for register in found)


def solve_modes(graph: Graph, foreign: int = 0) -> list[Modes]:
    """Before each node; the least that can be known where control never comes, and where nothing asks. ``foreign``:
    masks that calls write."""
    strange, start = _STRANGE._replace(foreign=foreign), _START._replace(foreign=foreign)
    if not any(body.code.match(_asks).any() for body in graph.bodies):
        return [strange] * len(graph.nodes)
    changing = [body.code.those(matters) for body in graph.bodies]
    steps = [within(changing[node.function], node.span) for node in graph.nodes]
    boundary: list[Modes | None] = [strange if k in graph.arrives else start if k in graph.kernels else None
                                    for k in range(len(graph.nodes))]

    def flow(k: int, modes: Modes) -> Modes:
        code = graph.bodies[graph.nodes[k].function].code
        for at in steps[k]:
            modes = step_modes(code.isa, code.inst(at), modes)
        return _end_skipping(modes) if not steps[k] or steps[k][-1] != graph.nodes[k].span[-1] else modes

    found = solve_dataflow(range(len(graph.nodes)), graph.successors, boundary, _join, flow,
                   lambda k, target, modes: _along(graph, k, target, modes))
    return [strange if modes is None else modes for modes in found]


def _asks(inst: Inst) -> bool:
    return sets_modes(inst) or OpFlag.READS_FIRST_LANE in inst.op.flags


def _join(a: Modes, b: Modes) -> Modes:
    skips = a.skips or b.skips
    ending = skips and all(each.ending or not each.skips for each in (a, b))
    return Modes(a.lanes & b.lanes, a.relative or b.relative, skips, ending, a.foreign)


def _end_skipping(modes: Modes) -> Modes:
    """Behind an instruction that changes nothing."""
    return modes._replace(skips=False, ending=False) if modes.ending else modes


def _along(graph: Graph, k: int, target: int, modes: Modes) -> Modes:
    """Modes along an edge: a branch on EXEC being zero takes one way only if some lane is active."""
    node = graph.nodes[k]
    body = graph.bodies[node.function]
    row = find_meaning(body.code.inst(node.span[-1]).op)
    ways = body.following[node.block]
    if not isinstance(row, Branch) or row.register != "exec" or len(ways) != 2:
        return modes
    some = ways[1] if row.if_zero else ways[0]
    return modes._replace(lanes=modes.lanes | _EXEC_BIT) if graph.first[node.function] + some == target else modes
