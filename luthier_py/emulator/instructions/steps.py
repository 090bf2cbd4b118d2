"""What an instruction does to registers and counters, as native code reads it that watches a wave.

In: an instruction. Out: a list of numbers: Column's, then registers that it reads, and writes, with their roles;
counters that it waits for, and raises; logic on bits of scalars (watching/registers.c, defined.c). Registers have the
numbers of the scalar file, and from 256 on those of layout's rows. Which operations finish in
order is taken leniently (docs/checks.md): of flat ones as of loads of memory. Invariant: which lane a lane reads is
not said here but found by the instruction's own code (shadows); which register M0 chooses, by native code.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, IntEnum

from luthier_py.emulator.instructions.barriers import is_named
from luthier_py.emulator.instructions.operands import register
from luthier_py.emulator.instructions.routes import (
    RelativeBits,
    collect_moved_operands,
    collect_written_operands,
    map_routed_rows,
    read_operands,
    registers_of,
    relative_operands,
)
from luthier_py.emulator.records.layout import AGPR_ROW
from luthier_py.isa.encoding.instruction import Access, Counter, Inst, Operand, OpFlag, Space, find_unnamed_addresses
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.isa.model.registers import AGPR_SHIFT, EXEC, MODE, SCC, VGPR_SHIFT, RegFile, RegSet, agpr, sgpr, vgpr
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.barriers import GROUPS, barrier_number
from luthier_py.isa.properties.coherence import acquires
from luthier_py.isa.properties.merging import merges
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.cdna4 import SwapRows
from luthier_py.isa.semantics.control import Action, Branch, CrossLane, Indexing
from luthier_py.isa.semantics.crossings import GatherInGroup, RelativeMove
from luthier_py.isa.semantics.lds import Permute
from luthier_py.isa.semantics.meaning import Dual, Lanes, Scalar, Variants
from luthier_py.isa.semantics.readers.dwords import dependents
from luthier_py.isa.semantics.readers.lane_bits import assignments
from luthier_py.isa.semantics.scaled_floats import ManyConverted

_COUNTERS = (Counter.VM, Counter.LGKM, Counter.VS, Counter.SAMPLE, Counter.BVH, Counter.KM, Counter.ASYNC)
"""By number. Of others nothing is read here: exports, and replays after page faults."""
LDS_COUNTER = _COUNTERS.index(Counter.LGKM)
_UNNAMED = RegSet(1 << EXEC | 1 << EXEC + 1 | 1 << MODE)
VECTORS = 256
_NUMBER, PLACE, ALL_DWORDS = 0xFFFF, 24, 255
"""Of a register in a list: its number, and from which bit on a mask: which dword of the results it is, or which depend
on it; ALL_DWORDS where there is but one. Sources that none depends on are not listed. Where a meaning does not say it,
a dword depends on those up to its place."""
ROLE, RELATIVE, ROUTED = 16, 20, 22
"""From which bits on its RegisterRole stands, its RelativeBits, and 1 more than the row of shadows with what its lanes
are where other lanes read them."""
CONSTANT = _NUMBER  # in the place of a register's number
_LAST = 7  # and all behind it
LOGIC_COLUMNS, _MOST_SOURCES, _MOST_LOGIC = 6, 3, 8


class Column(IntEnum):
    """Of a step's first numbers."""

    PC = 0
    KIND = 1    # a Step, and flags
    COUNTS = 2  # bytes: registers read, and written, counters waited for, and raised
    LOGIC = 3   # how many rows of LOGIC_COLUMNS there are at the end: target, sources, table, up to three sources
    LISTS = 4   # the first of all lists


class Step(IntEnum):
    """What an instruction is to the wave's work-group."""

    PLAIN = 0
    BARRIER = 1
    SIGNAL = 2
    WAIT = 3
    END = 4
    MEET = 5    # a barrier of all waves of the launch
    NAMED_SIGNAL = 6
    NAMED_WAIT = 7


class StepFlag(Flag):
    """In the column of the kind."""

    IGNORES_EXEC = 1 << 8
    DEFINES = 1 << 9       # whatever its sources are, its results are defined
    CROSSES = 1 << 10      # lanes look at others, any at any
    MERGES = 1 << 11       # results are put together of parts of the sources
    SELECTS = 1 << 12      # a mask says which of two sources
    BRANCHES = 1 << 13     # scalars that it reads decide where it branches
    WRITES_EXEC = 1 << 14
    WRITES_SCC = 1 << 15
    READS_LANE = 1 << 16   # of its sources it reads one lane
    WRITES_LANE = 1 << 17  # of its result it writes one lane
    MASKED = 1 << 18       # a row of shadows has the lanes that it writes
    INDEXED = 1 << 19      # M0 adds to numbers of its registers
    ACQUIRES = 1 << 20     # from now on plain loads find what other work-groups have written


class RegisterRole(IntEnum):
    """Of a register of an instruction."""

    PLAIN = 0
    ADDRESS = 1
    LOW_LANES = 2   # a mask's lanes from 0 on
    HIGH_LANES = 3  # from 32 on
    FIRST = 4       # of two sources the one where the mask is 0
    SECOND = 5
    STORED = 6      # to memory that others see


_STEPS = {
    Action.BARRIER: Step.BARRIER, Action.END: Step.END, Action.GWS_BARRIER: Step.MEET,
    Action.GWS_SEMA_V: Step.NAMED_SIGNAL, Action.GWS_SEMA_RELEASE_ALL: Step.NAMED_SIGNAL,
    Action.GWS_SEMA_P: Step.NAMED_WAIT,
}  # fmt: skip
_HALVES_OF_BARRIERS = {
    Action.BARRIER_SIGNAL: (Step.SIGNAL, Step.NAMED_SIGNAL), Action.BARRIER_WAIT: (Step.WAIT, Step.NAMED_WAIT),
    Action.BARRIER_SIGNAL_ISFIRST: (Step.SIGNAL, Step.NAMED_SIGNAL),
}  # fmt: skip
"""Of the work-group's own barrier, and of those with names; others are nothing to it."""
_ADDRESSES = frozenset({"addr", "vaddr", "saddr", "sbase", "soffset", "srsrc"})
_DATA = frozenset({"vdata", "data0", "data1", "sdata"})
_BY_LANE = Lanes, Variants, Scalar, Branch, RelativeMove, Indexing, GatherInGroup
"""What does not look at other lanes, or at those alone that shadows look at."""
_HALVES = RegisterRole.LOW_LANES, RegisterRole.HIGH_LANES
_MEMORY = OpFlag.VMEM | OpFlag.LDS | OpFlag.SMEM


def step_of(pc: int, inst: Inst, target: Target, wave_size: int, indexed: int = 0) -> list[int]:
    """The numbers of ``inst`` at ``pc``; ``indexed``: roles of operands in a region of indexed registers."""
    waits = [_COUNTERS.index(counter) | count << 8 for counter, count in waits_for(target, inst).items()
             if counter in _COUNTERS]
    issues = [number | _in_order(inst, counter) << 8 for number, counter in enumerate(_COUNTERS)
              if counter in inst.op.counters]
    roles, relative, (reads, writes) = _roles(inst, wave_size), relative_operands(inst, indexed), registers_of(inst)
    written = _numbers(writes - _UNNAMED)
    read = [number for number in _read(inst, reads, relative) if not (issues and number & _NUMBER in written)]
    counts = len(read) | len(written) << 8 | len(waits) << 16 | len(issues) << 24
    logic, places = _logic(inst, relative), _places(inst)
    added = {number: relative[operand.name] << RELATIVE for operand in collect_written_operands(inst)
             if operand.name in relative for number in _numbers(RegSet.of(register(operand)))}
    lists = [*(number | roles.get(number & _NUMBER, 0) << ROLE for number in read),
             *(number | _mask_role(roles.get(number, 0)) << ROLE | added.get(number, 0)
               | places.get(number, ALL_DWORDS) << PLACE for number in written), *waits, *issues]
    masked = OpFlag.DPP in inst.op.flags and map_routed_rows(inst)
    kind = _kind(inst, target) | (StepFlag.INDEXED.value if relative else StepFlag.MASKED.value if masked else 0)
    return [pc, kind, counts, len(logic), *lists, *(number for row in logic for number in row)]


def _read(inst: Inst, registers: RegSet, relative: Mapping[str, RelativeBits]) -> list[int]:
    """Operand by operand, with their places there, then what no operand names, if it is certain."""
    found: list[int] = []
    made, routed = dependents(inst), {} if relative else map_routed_rows(inst)
    rest = registers - _UNNAMED - RegSet(find_unnamed_addresses(inst.operands))
    rest -= RegSet.of(*(each.reg for each in inst.operands if each.reg is not None
                        and (Access.READ in each.access or _leaves_lanes(inst))))
    for operand in read_operands(inst):
        numbers = _numbers(RegSet.of(register(operand)) & registers)
        upwards = [ALL_DWORDS << min(place, _LAST) & ALL_DWORDS for place in range(len(numbers))]
        masks = made.get(operand.name, upwards)
        bits = [relative.get(operand.name, 0) << RELATIVE] * len(numbers)
        if (row := routed.get(operand.name)) is not None:
            bits = [row + place + 1 << ROUTED for place in range(len(numbers))]
            masks = [1 << row] if isinstance(find_meaning(inst.op), SwapRows) else masks
        found += [number | mask << PLACE | more for number, mask, more in zip(numbers, masks, bits, strict=False)
                  if mask]
    return [*found, *(number | ALL_DWORDS << PLACE for number in _numbers(rest))]


def _leaves_lanes(inst: Inst) -> bool:
    """Whether what it reads of its result is but what lanes keep that it does not write."""
    row = find_meaning(inst.op)
    return bool(collect_moved_operands(inst)) or OpFlag.DPP in inst.op.flags and isinstance(row, Lanes) and all(
        slot.type.bits * slot.count >= 32 for slot in row.signature.results)


def _places(inst: Inst) -> dict[int, int]:
    """Of the dwords of results that have several, but masks."""
    numbers = [number for operand in collect_written_operands(inst)
               if not (inst.op.flags & OpFlag.VALU and register(operand).file is RegFile.SGPR)
               for number in _numbers(RegSet.of(register(operand)))]
    return {number: 1 << min(place, _LAST) for place, number in enumerate(numbers)} if len(numbers) > 1 else {}


def _step(inst: Inst, row: object) -> Step:
    if not isinstance(row, Action):
        return Step.PLAIN
    if row not in _HALVES_OF_BARRIERS:
        return _STEPS.get(row, Step.PLAIN)
    own, named = _HALVES_OF_BARRIERS[row]
    number = barrier_number(inst)
    return own if number == GROUPS else named if is_named(number) else Step.PLAIN


def _kind(inst: Inst, target: Target) -> int:
    row, flags = find_meaning(inst.op), inst.op.flags
    kind = _step(inst, row)
    found = StepFlag(0)
    if OpFlag.IGNORES_EXEC in flags:
        found |= StepFlag.IGNORES_EXEC
    if isinstance(row, Action) or flags & _MEMORY and not isinstance(row, Permute):
        found |= StepFlag.DEFINES
    elif isinstance(row, CrossLane) and row is not CrossLane.OTHER_HALF:
        found |= StepFlag.WRITES_LANE if row is CrossLane.WRITE else StepFlag.READS_LANE
    elif isinstance(row, Dual | ManyConverted) or merges(inst.op) or _keeps_a_part(inst):
        found |= StepFlag.MERGES
    elif not (isinstance(row, _BY_LANE) or collect_moved_operands(inst)):
        found |= StepFlag.CROSSES
    elif isinstance(row, Lanes) and _selects(row):
        found |= StepFlag.SELECTS
    if isinstance(row, Branch):
        found |= StepFlag.BRANCHES
    if inst.writes.sgpr >> EXEC & 3:
        found |= StepFlag.WRITES_EXEC
    if inst.writes.sgpr >> SCC & 1:
        found |= StepFlag.WRITES_SCC
    if acquires(inst, target):
        found |= StepFlag.ACQUIRES
    return int(kind) | found.value


def _keeps_a_part(inst: Inst) -> bool:
    """Of what was in its result, which no operand names."""
    reads, writes = registers_of(inst)
    named = RegSet.of(*(each.reg for each in inst.operands if each.reg is not None and Access.READ in each.access))
    return bool((reads - named) & writes) and not _leaves_lanes(inst)


def _selects(row: Lanes) -> bool:
    names = [slot.name for slot in row.signature.sources]
    return len(names) == 3 and names[2] == "b" and len(row.signature.results) == 1


def _roles(inst: Inst, wave_size: int) -> dict[int, int]:
    """By number, of registers that have one."""
    found: dict[int, int] = {}
    selects = isinstance(row := find_meaning(inst.op), Lanes) and _selects(row)
    shared = inst.op.spaces == Space.GLOBAL
    if inst.op.flags & OpFlag.VALU and not isinstance(row, CrossLane):
        for first in _masks(inst, wave_size):
            found.update(zip(range(first, first + wave_size // 32), _HALVES, strict=False))
    for operand in inst.operands:
        takes = inst.op.flags & _MEMORY and not isinstance(row, Permute) or selects
        role = _role(operand, selects, shared) if takes else RegisterRole.PLAIN
        if operand.reg is not None and role is not RegisterRole.PLAIN:
            found.update(dict.fromkeys(_numbers(RegSet.of(operand.reg)), role))
    return {number: int(role) for number, role in found.items()}


def _role(operand: Operand, selects: bool, shared: bool) -> RegisterRole:
    if selects:
        return {"src0": RegisterRole.FIRST, "src1": RegisterRole.SECOND}.get(operand.name, RegisterRole.PLAIN)
    if operand.name in _ADDRESSES:
        return RegisterRole.ADDRESS
    return RegisterRole.STORED if shared and operand.name in _DATA else RegisterRole.PLAIN


def _masks(inst: Inst, wave_size: int) -> list[int]:
    """First scalars of what may be lane masks."""
    found = [operand.reg.index for operand in inst.operands if operand.reg is not None
             and operand.reg.file is RegFile.SGPR and operand.reg.dwords == wave_size // 32]
    implicit = (inst.op.implicit_reads | inst.op.implicit_writes).sgpr
    return [*found, *(first for first in range(0, VECTORS, 2) if implicit >> first & 1 and first < EXEC)]


def _mask_role(role: int) -> int:
    return role if role in (RegisterRole.LOW_LANES, RegisterRole.HIGH_LANES) else int(RegisterRole.PLAIN)


def _logic(inst: Inst, relative: Mapping[str, RelativeBits]) -> list[list[int]]:
    """Rows for results that are logic on bits of scalars at the same place; none where some result is not."""
    if relative and isinstance(find_meaning(inst.op), Indexing):
        return _encode_relative_move(inst, relative)
    if not isinstance(find_meaning(inst.op), Scalar):
        return []
    rows = []
    for assign in assignments(inst, 32):
        if any(bit is None for bit in assign.table) or any(source < 0 for source in assign.sources):
            return []
        if len(assign.sources) > _MOST_SOURCES:
            return []
        table = sum(int(bit or 0) << place for place, bit in enumerate(assign.table))
        sources = [*assign.sources, *[0] * (_MOST_SOURCES - len(assign.sources))]
        rows.append([assign.mask, len(assign.sources), table, *sources])
    return rows if len(rows) <= _MOST_LOGIC else []


def _encode_relative_move(inst: Inst, relative: Mapping[str, RelativeBits]) -> list[list[int]]:
    """The same of scalars that M0 chooses: bits as they are, or a constant's."""
    source, target = inst["src0"], register(inst["sdst"])
    from_, to = (relative.get(name, 0) << RELATIVE for name in ("src0", "sdst"))
    if source.reg is None:
        return [[target.index + dword | to, 0, 0, 0, 0, 0] for dword in range(target.dwords)]
    return [[target.index + dword | to, 1, 0b10, source.reg.index + dword | from_, 0, 0]
            for dword in range(target.dwords)]


def _in_order(inst: Inst, counter: Counter) -> bool:
    """Whether operations that raise this counter finish in the order in which they were issued."""
    if counter is Counter.KM:
        return False
    return not (counter is Counter.LGKM and inst.op.flags & OpFlag.SMEM or not inst.op.flags & _MEMORY)


def _numbers(registers: RegSet) -> list[int]:
    """Ascending."""
    found = [reg.number for reg in registers]
    return [_row(number) if number >= VGPR_SHIFT else number for number in found]


def _row(number: int) -> int:
    if number >= AGPR_SHIFT:
        return number - AGPR_SHIFT + AGPR_ROW + VECTORS
    return min(number - VGPR_SHIFT, AGPR_ROW - 1) + VECTORS


def numbers_of(operand: Operand) -> list[int]:
    """Of the registers of an operand."""
    return [] if operand.reg is None else _numbers(RegSet.of(operand.reg))


def register_number(row: int) -> int:
    """In a step, of a row of vector registers."""
    return row + VECTORS


def register_name(number: int) -> str:
    """Of a number of a step."""
    if number < VECTORS:
        return str(sgpr(number))
    row = number - VECTORS
    return str(agpr(row - AGPR_ROW) if row >= AGPR_ROW else vgpr(row))
