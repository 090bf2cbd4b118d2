"""What an instruction reads and writes, by its meaning alone.

In: a table row, of which only the names of its operands are looked at, and its meaning. Out: which operands and
registers the meaning asks for, and which it writes. Value functions are run on values that remember what they were
made of, so a source that a function does not look at is no read. Invariant: nothing here comes from LLVM's records,
so that the two can be compared (tests/unit/isa/semantics/test_effects.py).
"""

from __future__ import annotations

from luthier_py.base.records import dataclass, field
from luthier_py.isa.encoding.instruction import Access, OpFlag, OpInfo
from luthier_py.isa.semantics import control, elements, images, lds, matrix, memory, transfers, wave_matrices
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.cdna4 import SwapRows, TransposedLoad
from luthier_py.isa.semantics.crossings import GatherInGroup, GatherInRow, RelativeMove
from luthier_py.isa.semantics.meaning import Lanes, Meaning, Scalar, SignaturePart, Variants
from luthier_py.isa.semantics.readers import binding
from luthier_py.isa.semantics.readers.binding import DESTINATIONS, REGISTERS, select_operand_names
from luthier_py.isa.semantics.scaled_floats import ManyConverted

READ, WRITE = Access.READ, Access.WRITE
_ROUNDS = frozenset({Prim.ADD, Prim.SUB, Prim.MUL, Prim.DIV, Prim.FMA, Prim.SQRT, Prim.EXP2, Prim.LOG2, Prim.SIN,
                     Prim.COS, Prim.TANH, Prim.CONVERT})
_DATA = ("vdata", "data0", "data1", "vdst", "sdst", "sdata")


@dataclass(slots=True)
class Asked:
    """Mutable while it is made. Registers are "vcc", "exec", "scc", "m0" and "mode"."""

    operands: dict[str, Access] = field(default_factory=dict)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    keeps: bool = False
    """Bits of the vector result stay as they were, whatever the operands are."""
    dwords: dict[str, int] = field(default_factory=dict)
    """Width of operands, where the meaning says it."""

    def read(self, name: str) -> None:
        """Note that the meaning asks for the operand ``name``."""
        self.operands[name] = self.operands.get(name, Access.NONE) | READ

    def read_of(self, name: str, is_operand: bool) -> None:
        """Note that it asks for an operand, or for the register "vcc", "exec", "scc", "m0" or "mode"."""
        if is_operand:
            self.read(name)
        else:
            self.reads.add(name)

    def write(self, name: str) -> None:
        """Note that it writes the operand ``name``."""
        self.operands[name] = self.operands.get(name, Access.NONE) | WRITE


class _Trace:
    """Ops whose values are the numbers of the sources that they were made of."""

    def __init__(self) -> None:
        self.rounds = False

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, frozenset[int]())

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        self.rounds |= prim in _ROUNDS and type.kind is Kind.FLOAT
        return Value(self, type, frozenset[int]().union(*(operand.ref for operand in operands)))  # type: ignore[arg-type]


def collect_effects(op: OpInfo, row: Meaning) -> Asked:
    """What the meaning ``row`` of ``op`` asks for and changes."""
    found = Asked()
    if isinstance(row, Variants):
        row = row.typical
    if isinstance(row, (Lanes, Scalar)):
        _values(op, row, found)
    elif isinstance(row, control.Branch):
        found.reads |= {row.register} if row.register is not None else set()
    elif isinstance(row, control.Action):
        _action(op, row, found)
    elif isinstance(row, control.Switch):
        _switch(op, row, found)
    elif isinstance(row, (
            control.CrossLane, control.Indexing, lds.Permute, SwapRows, GatherInGroup, GatherInRow, RelativeMove,
            matrix.Matrix, matrix.MixedMatrix, matrix.SparseMatrix, wave_matrices.WaveMatrix,
            wave_matrices.WaveMixedMatrix, ManyConverted)):
        _moves(op, row, found)
    else:
        _memory(op, row, found)
    vector = not op.base.startswith("S_") and row is not control.Action.NOTHING
    if vector and OpFlag.IGNORES_EXEC not in op.flags:
        found.reads.add("exec")
    return found


def _values(op: OpInfo, row: Lanes | Scalar, found: Asked) -> None:
    sources = binding.sources(op, row)
    used, floats = _trace_sources(row, binding.width(row))
    for number, (slot, name) in enumerate(zip(row.signature.sources, sources, strict=True)):
        is_operand = name not in REGISTERS
        if number in used:
            found.read_of(name, is_operand)
        if is_operand and slot.type.bits > 1:
            found.dwords[name] = -(-slot.type.bits * slot.count // 32)
    for name in binding.results(op, row):
        if name in REGISTERS:
            found.writes.add(name)
        else:
            found.write(name)
    if floats:
        found.reads.add("mode")


def _trace_sources(row: Lanes | Scalar, width: Type) -> tuple[frozenset[int], bool]:
    """The sources that the results are made of, and whether MODE decides how."""
    trace = _Trace()

    def make_source(number: int, slot: SignaturePart) -> object:
        type = slot.type if slot.type.bits else width
        value = Value(trace, type, frozenset({number}))
        return (value,) * slot.count if slot.count > 1 and not packed else value

    packed = isinstance(row, Lanes) and row.packed
    results = row.compute(*(make_source(number, slot) for number, slot in enumerate(row.signature.sources)))
    results = results if isinstance(results, tuple) else (results,)
    flushes = (isinstance(row, Scalar) or row.flushes) and any(
        slot.type.kind is Kind.FLOAT for slot in (*row.signature.sources, *row.signature.results))
    return frozenset[int]().union(*(result.ref for result in results)), trace.rounds or flushes


_GIVES = frozenset({
    control.Action.GETPC, control.Action.SWAPPC, control.Action.CALL, control.Action.GETREG, control.Action.CLOCK,
    control.Action.WALL_CLOCK, control.Action.BARRIER_STATE, control.Action.SENDMSG_RTN, control.Action.WAVE_ID,
})  # fmt: skip
_NUMBERED = frozenset({
    control.Action.BARRIER_SIGNAL, control.Action.BARRIER_SIGNAL_ISFIRST, control.Action.BARRIER_INIT,
    control.Action.BARRIER_JOIN, control.Action.BARRIER_STATE,
})  # fmt: skip
_OF_GWS = frozenset({
    control.Action.GWS_BARRIER, control.Action.GWS_INIT, control.Action.GWS_SEMA_V, control.Action.GWS_SEMA_P,
    control.Action.GWS_SEMA_RELEASE_ALL,
})  # fmt: skip
_TAKES = _NUMBERED | {control.Action.SETPC, control.Action.ADD_PC, control.Action.SWAPPC, control.Action.SLEEP}


def _action(op: OpInfo, row: control.Action, found: Asked) -> None:
    action = control.Action
    if row in _GIVES:
        found.write("sdst")
    if row in _TAKES:
        for name in select_operand_names(op, ("src0",)):
            found.read(name)
    if row in _NUMBERED and not any(select_operand_names(op, ("src0", "simm16"))) or row is action.BARRIER_INIT:
        found.reads.add("m0")
    if row is action.BARRIER_SIGNAL_ISFIRST:
        found.reads.add("scc")  # stays where the wave is alone
        found.writes.add("scc")
    if row is action.SETREG:
        found.read("sdst")
    sets = (action.SETREG, action.SETREG_IMM, action.ROUND_MODE, action.DENORM_MODE)
    if row in sets:
        found.writes.add("mode")
    if row in sets or row is action.GETREG:
        found.reads.add("mode")  # its other bits stay
    if row in _OF_GWS:
        for name in select_operand_names(op, ("data0",)):
            found.read(name)
        found.reads.add("m0")


def _switch(op: OpInfo, row: control.Switch, found: Asked) -> None:
    """Their bits of MODE and M0; the others stay. (Skipping of vector instructions is not counted as a bit of MODE.)"""
    for name in select_operand_names(op, ("src0", "src1")):
        found.read(name)
    touched = {control.Switch.SKIP: set[str](), control.Switch.UPPER: {"mode"}}.get(row, {"mode", "m0"})
    found.reads |= touched
    found.writes |= touched


def _moves(op: OpInfo, row: Meaning, found: Asked) -> None:
    """Lanes, rows and indexed registers that change places."""
    names: tuple[str, ...] = ("src0", "src1", "src2")
    if isinstance(row, (matrix.MixedMatrix, wave_matrices.WaveMixedMatrix)):
        names = (*names, "scale_src0", "scale_src1")
    elif isinstance(row, matrix.SparseMatrix):
        names = ("vdst", "src0", "src1", "idx")
    elif isinstance(row, wave_matrices.WaveMatrix) and row.sparse:
        names = ("vdst", *names)
    if isinstance(row, lds.Permute):
        names = ("addr", "data0")
    elif isinstance(row, SwapRows):
        names = ("vdst", "src0")
        found.write("src0")
    for name in select_operand_names(op, names):
        found.read(name)
    if isinstance(row, RelativeMove):
        found.reads.add("m0")
        for name in select_operand_names(op, ("vdst", "src0") if len(row.row.signature.results) > 1 else ()):
            found.read(name)
            found.write(name)
    if isinstance(row, GatherInRow):  # lanes that ask for one which is not active may stay
        found.read("vdst")
        found.keeps = True
    if row is control.CrossLane.WRITE:
        found.read("vdst")
        found.keeps = True
    if isinstance(row, control.Indexing):
        region = row in (control.Indexing.ON, control.Indexing.OFF)  # MODE says whether one is open, M0 what it is
        touched = ({"mode"} if region else set()) | (set() if row is control.Indexing.OFF else {"m0"})
        found.reads |= touched
        found.writes |= touched if region else set()
    for name in select_operand_names(op, DESTINATIONS):
        found.write(name)


def _memory(op: OpInfo, row: Meaning, found: Asked) -> None:
    """Whatever is no data is part of the address."""
    for operand in op.operands:
        if operand.dwords and operand.name not in _DATA:
            found.read(operand.name)
    atomic = isinstance(row, (memory.Atomic, memory.ScalarAtomic))
    stores = atomic or isinstance(row, (
        memory.Store, lds.StoreTwo, lds.ExchangeTwo, memory.ScalarStore, elements.FormatStore))
    returns = atomic and OpFlag.ATOMIC_RETURN in op.flags
    loads = isinstance(row, (memory.Load, lds.LoadTwo, lds.ExchangeTwo, lds.LaneCount, memory.ScalarLoad,
                             TransposedLoad, elements.FormatLoad))
    data = list(select_operand_names(op, _DATA))
    by_lane = isinstance(row, (memory.Load, memory.Store)) and row.by_lane and OpFlag.LDS in op.flags
    if isinstance(row, transfers.BlockTransfer | transfers.LdsCopy | transfers.LdsBroadcast):
        _transfer(op, row, found)
        return
    if isinstance(row, images.ImageMove | images.ImageAtomic | images.ImageQuery):
        stores_one = isinstance(row, images.ImageMove) and row.stores
        if stores_one or isinstance(row, images.ImageAtomic):
            found.read("vdata")
        if not stores_one:
            found.write("vdata")
        return
    to_lds = isinstance(row, elements.FormatLoad) and row.to_lds
    if by_lane or to_lds or isinstance(row, (lds.LoadToLds, lds.StoreFromLds, lds.LaneCount)):
        found.reads.add("m0")
    result = next(iter(select_operand_names(op, DESTINATIONS)), "vdata")
    for name in data:
        if stores and name not in DESTINATIONS:
            found.read(name)
        if name == result and (loads or returns):
            found.write(name)
        if isinstance(row, memory.ScalarAtomic) and name in DESTINATIONS:  # the same register
            found.read(name)
    if isinstance(row, memory.Load | elements.FormatLoad) and row.status:
        found.keeps = True
    if isinstance(row, elements.FormatLoad) and row.narrow and row.components == 1:
        found.keeps = True
    if isinstance(row, memory.Load) and row.half:
        found.keeps = True
        for name in data:
            found.read(name)
    _memory_widths(row, data, found)


def _transfer(op: OpInfo, row: Meaning, found: Asked) -> None:
    """What a copy calls its data is an address in LDS."""
    copies = isinstance(row, transfers.LdsCopy)
    for name in select_operand_names(op, _DATA):
        if copies or isinstance(row, transfers.BlockTransfer) and row.stores:
            found.read(name)
        else:
            found.write(name)
        found.dwords[name] = transfers.BLOCK if isinstance(row, transfers.BlockTransfer) else 1
    if not copies:
        found.reads.add("m0")
    found.keeps = isinstance(row, transfers.BlockTransfer) and not row.stores


def _memory_widths(row: Meaning, data: list[str], found: Asked) -> None:
    if isinstance(row, elements.FormatLoad | elements.FormatStore):
        if not row.narrow:  # which has as many as the target packs them into
            found.dwords |= dict.fromkeys(data, row.components + row.status)
        return
    if isinstance(row, lds.ExchangeTwo):
        found.dwords |= {name: row.dwords * (2 if name == "vdst" else 1) for name in data}
        return
    twice = isinstance(row, lds.LoadTwo) + 1
    atomic = row.atomic if isinstance(row, memory.ScalarAtomic) else row if isinstance(row, memory.Atomic) else None
    dwords = atomic.bits // 32 if atomic else 1 if isinstance(row, lds.LaneCount) else getattr(row, "dwords", 2) * twice
    dwords += getattr(row, "status", False)
    compares = atomic is not None and atomic.modify is memory.Modify.COMPARE_SWAP
    for name in data:
        found.dwords[name] = dwords * (2 if compares and "data1" not in found.operands and name != "vdst" else 1)
