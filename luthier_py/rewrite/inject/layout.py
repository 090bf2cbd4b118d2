"""Addresses for a clone: items to bytes.

In: a clone whose branches reach. Out: a Chunk (bytes and fixups), and where each item starts in it. Invariant: slices
are the original's bytes; of Singles only displacements and literals that name a label are filled in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from luthier_py.base.records import dataclass
from luthier_py.binary.loader.origins import BACK
from luthier_py.binary.patch import ENTRY_ALIGN_BYTES, Chunk, Fixup
from luthier_py.isa import Inst, InstructionSet, OperandKind
from luthier_py.program.ir import Function, Instr
from luthier_py.rewrite.inject.items import Clone, Label, Referent, Run, Single, Slice
from luthier_py.rewrite.inject.model import Offsets, SourceMap
from luthier_py.rewrite.inject.relax import offsets


@dataclass(frozen=True, slots=True)
class Placed:
    """A clone's chunk, and where each item starts in it (bytes)."""

    clone: Clone
    chunk: Chunk
    offsets: tuple[int, ...]


def lay_out(isa: InstructionSet, clone: Clone, names: Mapping[int, str]) -> Placed:
    """``names``: chunk names of cloned functions by original address."""
    starts = offsets(clone.items)
    at = {item: start for item, start in zip(clone.items, starts, strict=True) if isinstance(item, Label)}
    code = bytearray()
    fixups: list[Fixup] = []
    for item in clone.items:
        if isinstance(item, Slice):
            code += item.code.raw(item.start, item.stop)
        elif isinstance(item, Run):
            code += b"".join([inst.raw for inst in item.insts[item.start : item.stop]])
        elif isinstance(item, Single):
            inst = item.inst
            if item.jump is not None:
                distance = at[item.jump] - len(code) - item.size_bytes
                inst = isa.with_field(inst, _target_name(inst), distance // 4)
            code += inst.raw
            if item.reference is not None:
                kind, target, base = item.reference.kind, item.reference.target, at[item.reference.base]
                if target.label is not None:
                    code[-kind.size_bytes :] = kind.encode_distance(at[target.label] - base)
                else:
                    fixups.append(Fixup(len(code) - kind.size_bytes, kind, _name(target, names), target.offset, base))
    return Placed(clone, Chunk(clone.name, bytes(code), tuple(fixups), ENTRY_ALIGN_BYTES, _origins(clone, starts)),
                  tuple(starts))


def _origins(clone: Clone, starts: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """Rows that go on where the one before ends are one; branches that lead back in the original have their own."""
    rows: list[tuple[int, int, int]] = []
    for item, start in zip(clone.items, starts, strict=True):
        if isinstance(item, Slice):
            origin = item.pc
        elif isinstance(item, Single) and item.origin is not None:
            origin = item.origin.pc
        else:
            continue
        if isinstance(item, Single) and item.origin is not None and _leads_back(item.origin):
            rows.append((start, origin, item.size_bytes | BACK))
            continue
        last = rows[-1] if rows else (0, 0, BACK)
        if not last[2] & BACK and (last[0] + last[2], last[1] + last[2]) == (start, origin):
            rows[-1] = last[0], last[1], last[2] + item.size_bytes
        else:
            rows.append((start, origin, item.size_bytes))
    return tuple(rows)


def _leads_back(instr: Instr) -> bool:
    target = instr.inst.branch_target(instr.pc)
    return target is not None and target <= instr.pc


def _name(target: Referent, names: Mapping[int, str]) -> str | int:
    if target.function is not None:
        return names[target.function]
    if target.variable is not None:
        return target.variable
    assert target.address is not None
    return target.address


def _target_name(inst: Inst) -> str:
    return next(o.name for o in inst.operands if o.kind is OperandKind.TARGET)


def source_map(function: Function, placed: Placed) -> SourceMap:
    """Where each original instruction, and each block, of ``function`` is in the chunk of its clone."""
    pieces: list[tuple[Iterable[Instr], int]] = []
    labels: dict[int, int] = {}
    for item, at in zip(placed.clone.items, placed.offsets, strict=True):
        if isinstance(item, Slice):
            pieces.append((item.instrs, at - item.pc))
        elif isinstance(item, Single):
            if item.origin is not None:
                pieces.append(((item.origin,), at - item.origin.pc))
        elif isinstance(item, Label) and item.address is not None:
            labels[item.address] = at
    return SourceMap(function, placed.clone.name, Offsets(pieces), labels)
