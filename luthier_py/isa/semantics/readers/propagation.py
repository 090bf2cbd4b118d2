"""How a difference in registers or memory passes through one instruction.

In: an instruction. Out: :class:`Propagation`: for each result the registers that it is made of, what an address is made
of, what is stored, and what decides where control goes; registers are named by the numbers of their bits in a RegSet.
Invariant: whatever an instruction writes is the result of some way, made at least of all that the meaning looks at;
EXEC says which lanes take part, and is no part of their values.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import (
    MOVES,
    Access,
    Inst,
    Operand,
    OperandKind,
    OpFlag,
    find_underlying_scalars,
)
from luthier_py.isa.model.registers import EXEC, MODE, set_bits
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, Branch, HardwareRegister
from luthier_py.isa.semantics.readers.binding import REGISTERS
from luthier_py.isa.semantics.readers.implementation_defined import ImplementationDefined, implementation_defined

RegBits = tuple[int, ...]
_DATA = ("vdata", "data0", "data1", "vdst", "sdst", "sdata")
_LANES = 3 << EXEC
_VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS


@dataclass(frozen=True, slots=True)
class ToRegisters:
    """To ``into``, from the values of some registers, and from the bits of NaN in some."""

    into: RegBits
    of_values: RegBits
    of_nans: RegBits
    own: frozenset[ImplementationDefined]


@dataclass(frozen=True, slots=True)
class Propagation:
    """``ways``: to registers. Of an access of memory: ``address`` and ``stored``, what they are made of, and what it
    leaves open of memory itself. ``decides``: what chooses where control goes next."""

    ways: tuple[ToRegisters, ...]
    address: RegBits = ()
    stored: RegBits = ()
    left: frozenset[ImplementationDefined] = frozenset()
    decides: RegBits = ()


def compute_dataflow(inst: Inst) -> Propagation:
    """How a difference in what ``inst`` reads gets into what it writes, stores, addresses and decides."""
    op, row = inst.op, find_meaning(inst.op)
    free = implementation_defined(op)
    if isinstance(row, Branch):
        return Propagation((), decides=_bits(inst.reads.bits if row.register is not None else 0))
    if op.spaces and op.flags & MOVES:
        return _access(inst)
    ways = list(_collect_named_results(inst))
    rest = inst.writes.bits
    for way in ways:
        rest &= ~sum(1 << bit for bit in way.into)
    reads = inst.reads.bits & ~(1 << MODE) & ~(_LANES if op.flags & _VECTOR else 0)
    if rest:
        ways.append(ToRegisters(_bits(rest), _bits(reads), _bits(reads), frozenset() if _is_mode(inst) else free.own))
    jumps = OpFlag.INDIRECT in op.flags
    return Propagation(tuple(ways), decides=_bits(reads) if jumps else ())


def _is_mode(inst: Inst) -> bool:
    """Whether it reads or writes MODE, which is what it is."""
    return find_meaning(inst.op) is Action.GETREG and inst["simm16"].value & 63 == HardwareRegister.MODE.value


def _access(inst: Inst) -> Propagation:
    op, free = inst.op, implementation_defined(inst.op)
    data, address = 0, op.implicit_reads.bits & ~(1 << MODE) & ~_LANES
    for operand in inst.operands:
        if operand.name not in _DATA:
            address |= _of(operand)
        elif Access.READ in operand.access:
            data |= _of(operand)
    into = _bits(inst.writes.bits)
    ways = (ToRegisters(into, _bits(address), (), free.own),) if into else ()
    return Propagation(ways, _bits(address), _bits(data), free.left)


def _collect_named_results(inst: Inst) -> Iterator[ToRegisters]:
    """Of results that are functions of named operands."""
    for result in implementation_defined(inst.op).results or ():
        into = _of_name(inst, result.name)
        if into:
            values, nans = (_bits(_union(inst, names)) for names in (result.of_values, result.of_nans))
            yield ToRegisters(_bits(into), values, nans, result.own)


def _union(inst: Inst, names: frozenset[str]) -> int:
    found = 0
    for name in names:
        found |= _of_name(inst, name)
    return found


def _of_name(inst: Inst, name: str) -> int:
    if name in REGISTERS:
        return (3 if name in ("vcc", "exec") else 1) << REGISTERS[name]
    operand = inst.find(name)
    return 0 if operand is None else _of(operand)


def _of(operand: Operand) -> int:
    return operand.reg.bits if operand.reg is not None else find_underlying_scalars(operand.value) if (
        operand.kind is OperandKind.SPECIAL) else 0


def _bits(regs: int) -> RegBits:
    return tuple(set_bits(regs))
