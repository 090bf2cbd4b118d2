"""The text form of clones: for people, for goldens, and as fixtures of tests.

In: a clone, or its text. Out: the other. Invariant: printing what was parsed gives the text again.

    clone k.luthier of 0x1000
    .x1000:                                         ; a block; `.1:` is a point of inserted code
      0x1000                    | s_mov_b32 s0, 0   ; of a slice: unchanged
      0x1004                    = s_cbranch_scc1 -> .x1000                    ; the application's, names what moves
      call 0 add before 0x1008  + s_getpc_b64 s[4:5]                          ; inserted
      call 0 add before 0x1008  + s_add_u32 s4, s4, ? -> low total+8 - .1     ; a literal that is filled in
      call 0 add before 0x1008  * v_mov_b32_e32 v1, 0                         ; of the hook
      wait                      + s_nop 4
      0x100c                    ~ s_nop 0             ; replaces the application's
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, field
from luthier_py.binary.patch import FixupKind
from luthier_py.isa import Inst, InstructionSet
from luthier_py.isa.build import PLACEHOLDER, PLACEHOLDER64
from luthier_py.isa.columns import Columns, read_columns
from luthier_py.program.ir.model import instr_at
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Item, Label, Reference, Referent, Run, Single, Slice
from luthier_py.rewrite.tool import Place

COPIED, KEPT, INSERTED, PAYLOAD, INSTEAD = "|=+*~"
OWN = (COPIED, KEPT, INSTEAD)
KINDS = {FixupKind.REL32_LO: "low", FixupKind.REL32_HI: "high", FixupKind.REL64: "all",
         FixupKind.BACK32_LO: "back-low", FixupKind.BACK32_HI: "back-high"}
_LINE = re.compile(r"  (?P<who>\S.*?) +(?P<mark>[|=+*~]) (?P<text>.*?)(?: -> (?P<to>.*))?")
_CALL = re.compile(r"call (\d+) (\S+) (before|after|taken) 0x([0-9a-f]+)")
_REFERENCE = re.compile(r"(low|high|all|back-low|back-high) (\S+?)(?:\+(\d+))? - (\S+)")


def format_clone(isa: InstructionSet, clone: Clone) -> str:
    """The text of a clone, a line for each instruction, which `parse_clone` reads."""
    return "\n".join(_Printer(isa, clone).lines()) + "\n"


def parse_clone(isa: InstructionSet, text: str) -> Clone:
    """Raises Invalid with the line that is wrong."""
    return _Reader(isa).read(text)


class _Printer:
    def __init__(self, isa: InstructionSet, clone: Clone) -> None:
        self.isa, self.clone = isa, clone
        inner = (item for item in clone.items if isinstance(item, Label) and item.address is None)
        self.names = {label: f".{number}" for number, label in enumerate(inner, 1)}
        self.names |= {label: f".x{address:x}" for address, label in clone.labels.items()}

    def lines(self) -> Iterator[str]:
        yield f"clone {self.clone.name} of 0x{self.clone.original:x}"
        for item in self.clone.items:
            if isinstance(item, Label):
                yield f"{self.names[item]}:"
            elif isinstance(item, Slice):
                for instr in item.instrs:
                    yield _line(f"0x{instr.pc:x}", COPIED, self.isa.text(instr.inst))
            elif isinstance(item, Run):
                for inst in item.insts[item.start : item.stop]:
                    yield _line(_who(item.edit), PAYLOAD, self.isa.text(inst))
            else:
                yield self.single(item)

    def single(self, item: Single) -> str:
        text = self.isa.text(item.inst)
        if item.jump is not None:
            text = f"{text.rpartition(' ')[0]} -> {self.names[item.jump]}"
        if item.reference is not None:
            text = f"{text.rpartition(' ')[0]} ? -> {self.reference(item.reference)}"
        if item.origin is not None:
            return _line(f"0x{item.origin.pc:x}", INSTEAD if item.instead else KEPT, text)
        assert item.edit is not None
        return _line(_who(item.edit), PAYLOAD if item.payload else INSERTED, text)

    def reference(self, reference: Reference) -> str:
        target = reference.target
        where = self.names[target.label] if target.label is not None else target.variable
        if target.function is not None:
            where = f"clone:0x{target.function:x}"
        elif target.address is not None:
            where = f"0x{target.address:x}"
        more = f"+{target.offset}" if target.offset else ""
        return f"{KINDS[reference.kind]} {where}{more} - {self.names[reference.base]}"


def _line(who: str, mark: str, text: str) -> str:
    return f"  {who:24} {mark} {text}"


def _who(edit: Edit) -> str:
    if edit.cause is Cause.CALL:
        return f"call {edit.number} {edit.name} {edit.place.value} 0x{edit.point:x}"
    return f"{edit.cause.value} 0x{edit.point:x}" if edit.point else edit.cause.value


class _Line(NamedTuple):
    """One line but for labels."""

    who: str
    mark: str
    inst: Inst
    jump: Label | None
    reference: Reference | None


@dataclass
class _Reader:
    """Mutable: what was read so far."""

    isa: InstructionSet
    lines: list[Label | _Line] = field(default_factory=list)
    labels: dict[str, Label] = field(default_factory=dict)

    def read(self, text: str) -> Clone:
        first, *lines = text.splitlines()
        _, name, _, original = first.split()
        for number, line in enumerate(lines, 2):
            bare = line.partition(";")[0].rstrip()
            try:
                self.line(bare) if bare else None
            except (ValueError, KeyError, Invalid) as error:
                raise Invalid(f"line {number} of a clone is wrong: {line.strip()}") from error
        blocks = {label.address: label for label in self.labels.values() if label.address is not None}
        return Clone(int(original, 16), name, tuple(self.items()), blocks)

    def line(self, line: str) -> None:
        if line.endswith(":"):
            self.lines.append(self.label(line[:-1]))
            return
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(line)
        who, mark, text, to = match.groups()
        int(who, 16) if mark in OWN else _edit(who)
        self.lines.append(_Line(who, mark, *self.inst(text, to)))

    def items(self) -> list[Item]:
        own = [(int(line.who, 16), line.inst.raw) for line in self.lines
               if isinstance(line, _Line) and line.mark in OWN]
        code = _columns(self.isa, own)
        items: list[Item] = []
        at = 0
        for line in self.lines:
            if isinstance(line, Label):
                items.append(line)
                continue
            last = items[-1] if items else None
            if line.mark == COPIED:
                start = at
                if isinstance(last, Slice):
                    start = last.start
                    items.pop()
                items.append(Slice(code, start, at + 1))
            elif line.mark == PAYLOAD and line.jump is None:
                edit, insts = _edit(line.who), [line.inst]
                if isinstance(last, Run) and last.edit == edit:
                    items.pop()
                    insts = [*last.insts, line.inst]
                items.append(Run(tuple(insts), 0, len(insts), edit))
            else:
                origin = instr_at(code, at) if line.mark in OWN else None
                given = _edit(line.who) if origin is None else None
                if origin is not None and line.mark == INSTEAD:
                    given = Edit(Cause.INSTEAD, point=origin.pc)
                items.append(Single(line.inst, origin, given, line.mark == PAYLOAD, line.jump, line.reference))
            at += line.mark in OWN
        return items

    def inst(self, text: str, to: str | None) -> tuple[Inst, Label | None, Reference | None]:
        if to is None:
            return self.isa.parse(text), None, None
        if not text.endswith("?"):
            return self.isa.parse(f"{text} 0"), self.label(to), None
        match = _REFERENCE.fullmatch(to)
        if match is None:
            raise ValueError(to)
        kind = next(kind for kind, name in KINDS.items() if name == match[1])
        literal = PLACEHOLDER64 if kind is FixupKind.REL64 else PLACEHOLDER
        target = self.target(match[2], int(match[3] or 0))
        return self.isa.parse(f"{text[:-1]}0x{literal:x}"), None, Reference(kind, target, self.label(match[4]))

    def target(self, where: str, offset: int) -> Referent:
        if where.startswith("."):
            return Referent(label=self.label(where), offset=offset)
        if where.startswith("clone:"):
            return Referent(function=int(where.removeprefix("clone:"), 16), offset=offset)
        if where.startswith("0x"):
            return Referent(address=int(where, 16), offset=offset)
        return Referent(variable=where, offset=offset)

    def label(self, name: str) -> Label:
        if name not in self.labels:
            self.labels[name] = Label(int(name[2:], 16) if name.startswith(".x") else None)
        return self.labels[name]


def _edit(who: str) -> Edit:
    if match := _CALL.fullmatch(who):
        return Edit(Cause.CALL, int(match[1]), match[2], int(match[4], 16), Place(match[3]))
    name, _, point = who.partition(" ")
    if (cause := Cause(name)) is Cause.CALL:
        raise ValueError(who)
    return Edit(cause, point=int(point or "0", 16))


def _columns(isa: InstructionSet, instructions: Sequence[tuple[int, bytes]]) -> Columns:
    found = read_columns(isa, instructions or [(0, b"")])
    pcs, kinds = ([getattr(part, name) for part in found] for name in ("pcs", "kinds"))
    return Columns(found[0].distinct, np.concatenate(pcs), np.concatenate(kinds))
