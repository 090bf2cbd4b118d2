"""Instructions as columns: arrays over places, and what depends on bytes alone once for each distinct instruction.

In: code. Out: :class:`Columns`, a range of a scan; its :class:`Kinds` are shared by all ranges of the scan.
Invariant: what is said of a kind is what the decoded instruction says; an Inst is made at first use.

A set of registers is one int here: SGPRs and special registers from bit 0, VGPRs from VGPR_SHIFT, AGPRs from
AGPR_SHIFT.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from luthier_py.base.errors import Malformed
from luthier_py.isa.encoding.decode import OperandMemo
from luthier_py.isa.encoding.instruction import (
    SETS_HARDWARE,
    Access,
    Inst,
    OperandKind,
    OpFlag,
    OpInfo,
    find_underlying_scalars,
)
from luthier_py.isa.encoding.scan import UNKNOWN, Array, Fields, Scan
from luthier_py.isa.model.registers import SCALARS

if TYPE_CHECKING:
    from luthier_py.isa.by_target import InstructionSet

NOWHERE = np.iinfo(np.int64).min
VECTORS = ~SCALARS
APART = bytes(32)  # between pieces of code: as long as the longest instruction, and each dword of it is one
_PLAIN = frozenset({"imm", "branch", "kimm", "dpp8fi", "dpp", "dpp64", "select", "unused"})  # name no register


class Masks(NamedTuple):
    """Registers by kind: read, written, and those of the written ones that may keep bits (see Inst)."""

    reads: list[int]
    writes: list[int]
    partial: list[int]


class Kinds:
    """The distinct instructions of a scan (mutable: caches answers)."""

    def __init__(self, isa: InstructionSet, code: bytes, scan: Scan) -> None:
        self.isa, self._code, self._scan = isa, code, scan
        self.rows, self.sizes, self.flags = scan.kind_rows, scan.kind_sizes, scan.kind_flags
        self._insts: list[Inst | None] = [None] * len(self.rows)
        self._writing: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def inst(self, kind: int) -> Inst:
        """The decoded instruction; Malformed if the kind is none."""
        found = self._insts[kind]
        if found is None:
            found = self._insts[kind] = self.isa.decode(self._code, int(self._scan.kind_first[kind]))
        return found

    def op(self, kind: int) -> OpInfo:
        """The row of the target's table that the kind is of. The kind must be an instruction, not UNKNOWN."""
        return self.isa.op(int(self.rows[kind]))

    def match_ops(self, said: Callable[[OpInfo], object]) -> Array:
        """Of which kinds the row is such that ``said`` says so."""
        rows = [row for row in np.unique(self.rows).tolist() if row != UNKNOWN and said(self.isa.op(row))]
        return np.isin(self.rows, rows)

    def match_writes(self, wanted: int) -> Array:
        """Which kinds write any of the registers ``wanted``."""
        found = self._writing.get(wanted)
        if found is None:
            found = np.fromiter((mask & wanted != 0 for mask in self.masks.writes), bool, len(self))
            self._writing[wanted] = found
        return found

    @cached_property
    def raws(self) -> list[bytes]:
        """Their bytes."""
        starts = self._scan.kind_first.tolist()
        return [self._code[at : at + size] for at, size in zip(starts, self.sizes.tolist(), strict=True)]

    @cached_property
    def distances(self) -> Array:
        """How far from its start each kind branches, in bytes, or NOWHERE."""
        found = np.full(len(self), NOWHERE, np.int64)
        for group in self._scan.groups:
            for info, values in zip(group.op.operands, group.values, strict=True):
                if info.kind == "branch":
                    dwords = values.astype(np.uint16).view(np.int16).astype(np.int64)
                    found[group.positions] = self.sizes[group.positions] + 4 * dwords
        return found

    def raw(self, kind: int) -> bytes:
        """The bytes of the kind, its literal included; of what is no instruction one dword."""
        first = int(self._scan.kind_first[kind])
        return self._code[first : first + int(self.sizes[kind])]

    def texts(self, wanted: Collection[int]) -> dict[int, str]:
        """LLVM's texts of some kinds, branches with their displacement."""
        found: dict[int, str] = {}
        rows = self.rows.tolist()
        for group in self._scan.groups:
            fields = list(zip(*group.values.tolist(), strict=True)) or [()] * len(group.positions)
            members: defaultdict[int, dict[int, tuple[int, ...]]] = defaultdict(dict)
            for kind, values in zip(group.positions.tolist(), fields, strict=True):
                if kind in wanted:
                    members[rows[kind]][kind] = values
            for row, each in members.items():
                found.update(zip(each, self._row_texts(self.isa.op(row), each), strict=True))
        return found

    def _row_texts(self, op: OpInfo, fields: Mapping[int, tuple[int, ...]]) -> list[str]:
        """Of kinds of one row, by their fields."""
        kinds = list(fields)
        behind = (self._scan.kind_first[kinds] + op.size_bytes).tolist()
        literals = (
            None if size == op.size_bytes else int.from_bytes(self._code[at : at + size - op.size_bytes], "little")
            for at, size in zip(behind, self.sizes[kinds].tolist(), strict=True)
        )
        values = [(*each, literal) for each, literal in zip(fields.values(), literals, strict=True)]
        return self.isa.texts(op, values, lambda number: self.inst(kinds[number]))

    @cached_property
    def masks(self) -> Masks:
        """What each kind reads and writes, implicit operands included; nothing for a kind that is no instruction."""
        found = Masks([0] * len(self), [0] * len(self), [0] * len(self))
        for group in self._scan.groups:
            self._add_masks(group, found)
        return found

    def _add_masks(self, group: Fields, found: Masks) -> None:
        ops = [self.op(kind) for kind in group.positions.tolist()]
        implicit = {op.row: (op.implicit_reads.bits, op.implicit_writes.bits) for op in set(ops)}
        reads, writes = ([implicit[op.row][side] for op in ops] for side in (0, 1))
        for slot, values in zip(self.isa.slots(group.op), group.values.tolist(), strict=True):
            if slot.info.kind in _PLAIN:
                continue
            masks = {value: _registers(slot, value) for value in set(values)}
            if any(read for read, _ in masks.values()):
                reads = [mask | masks[value][0] for mask, value in zip(reads, values, strict=True)]
            if any(written for _, written in masks.values()):
                writes = [mask | masks[value][1] for mask, value in zip(writes, values, strict=True)]
        for kind, op, read, written in zip(group.positions.tolist(), ops, reads, writes, strict=True):
            kept = written & VECTORS if op.partial else 0
            if op.may_mask_lanes or op.base in SETS_HARDWARE or self.isa.operands_depend(op):
                read, written, kept = (regs.bits for regs in self.inst(kind).effects())
            found.reads[kind], found.writes[kind], found.partial[kind] = read | kept, written, kept


def _registers(slot: OperandMemo, value: int) -> tuple[int, int]:
    """What an operand with this field reads and writes."""
    try:
        operand = slot[value]
    except Malformed:  # a literal
        return 0, 0
    if operand.reg is None:
        return (find_underlying_scalars(operand.value) if operand.kind is OperandKind.SPECIAL else 0), 0
    mask = operand.reg.bits
    return mask if operand.access is not Access.WRITE else 0, mask if operand.access is not Access.READ else 0


_NOT_ASKED = 2


@lru_cache(maxsize=1 << 6)
def _answers(isa: InstructionSet, said: Callable[[OpInfo], object]) -> Array:
    """Of each row of the table; the last one is UNKNOWN's."""
    found = np.full(isa.row_count + 1, _NOT_ASKED, np.uint8)
    found[UNKNOWN] = False
    return found


class Columns:
    """Instructions by address, as arrays: of address ``pcs``, of kind ``kinds`` of ``distinct``."""

    def __init__(self, distinct: Kinds, pcs: Array, kinds: Array) -> None:
        self.distinct, self.pcs, self.kinds = distinct, pcs, kinds

    def __len__(self) -> int:
        return len(self.pcs)

    @property
    def sizes(self) -> Array:
        """Sizes in bytes."""
        return self.distinct.sizes[self.kinds]

    @property
    def rows(self) -> Array:
        """Rows of the target's table."""
        return self.distinct.rows[self.kinds]

    @property
    def flags(self) -> Array:
        """Bits of OpFlag."""
        return self.distinct.flags[self.kinds]

    @cached_property
    def used(self) -> list[int]:
        """Kinds of the instructions, ascending, each once."""
        found: list[int] = np.unique(self.kinds).tolist()
        return found

    @cached_property
    def touched(self) -> int:
        """Registers that any instruction reads or writes."""
        masks = self.distinct.masks
        return reduce(or_, (masks.reads[kind] | masks.writes[kind] for kind in self.used), 0)

    @cached_property
    def bounds(self) -> tuple[list[int], list[int]]:
        """Where each instruction starts, and where it ends: NumPy's arrays are slow to look into one by one."""
        return self.pcs.tolist(), (self.pcs + self.sizes).tolist()

    def size(self, at: int) -> int:
        """Bytes of the instruction at place ``at``."""
        return int(self.distinct.sizes[self.kinds[at]])

    def row(self, at: int) -> int:
        """Number of the row of the target's table for the instruction at place ``at``; UNKNOWN where there is none."""
        return int(self.distinct.rows[self.kinds[at]])

    def inst(self, at: int) -> Inst:
        """The decoded instruction, the same object for all of its kind."""
        return self.distinct.inst(self.kinds[at])

    def raw(self, start: int, stop: int) -> bytes:
        """The bytes of the instructions from place ``start`` to ``stop``, one behind the other."""
        raws = self.distinct.raws
        return b"".join([raws[kind] for kind in self.kinds[start:stop].tolist()])

    def where(self, of_kind: Array, start: int = 0, stop: int | None = None) -> list[int]:
        """Places from ``start`` to ``stop`` whose kind is one of those that ``of_kind`` says."""
        found: list[int] = (np.flatnonzero(of_kind[self.kinds[start:stop]]) + start).tolist()
        return found

    def find_flagged(self, flags: OpFlag, start: int = 0, stop: int | None = None) -> list[int]:
        """Places whose instruction has any of ``flags``."""
        places = np.flatnonzero(self.distinct.flags[self.kinds[start:stop]] & flags.value)
        found: list[int] = (places + start).tolist()
        return found

    def find_ops(self, said: Callable[[OpInfo], object]) -> list[int]:
        """Places whose instruction is of a row such that ``said`` says so, which is asked once for each row of the
        table, as long as it is the same object."""
        isa, rows = self.distinct.isa, self.rows
        answers = _answers(isa, said)
        for row in np.unique(rows[answers[rows] == _NOT_ASKED]).tolist():
            answers[row] = bool(said(isa.op(row)))
        found: list[int] = np.flatnonzero(answers[rows]).tolist()
        return found

    def select_places(self, places: slice | Array) -> Columns:
        """Only those at ``places``."""
        return Columns(self.distinct, self.pcs[places], self.kinds[places])


def read_columns(isa: InstructionSet, pieces: Sequence[tuple[int, bytes]], starts: Sequence[int] = ()) -> list[Columns]:
    """Pieces of code with their addresses, each swept from its first byte on; an instruction starts at each of
    ``starts``, which are addresses in the only piece. The last one may reach beyond its piece: then it is none."""
    padded = [code + bytes(-len(code) % 4) + APART for _, code in pieces]
    code = b"".join(padded)
    scan = isa.scan(code, [start - pieces[0][0] for start in starts])
    distinct = Kinds(isa, code, scan)
    found, begin = [], 0
    for (address, piece), part in zip(pieces, padded, strict=True):
        first, last = scan.offsets.searchsorted([begin, begin + len(piece)]).tolist()
        found.append(Columns(distinct, scan.offsets[first:last] + (address - begin), scan.kinds[first:last]))
        begin += len(part)
    return found
