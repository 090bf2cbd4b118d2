"""Injectors that get one inserted instruction wrong, whichever it is: each of those that a clone has, one at a time.

Out: TABLE: by name, what becomes of an instruction: others in its place, or None where it cannot be wrong in that way.
Instructions of hooks, and waits between, are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from injectors.judge import Patch, put
from luthier_py.base.errors import LuthierError
from luthier_py.isa import Inst, InstructionSet, OperandKind, RegFile
from luthier_py.rewrite.inject import apply
from luthier_py.rewrite.inject.items import Clone, Run, Single

Change = Callable[[InstructionSet, Inst], "list[Inst] | None"]


def register(name: str, by: int) -> Change:
    """One operand names another register."""
    def change(isa: InstructionSet, inst: Inst) -> list[Inst] | None:
        operand = inst.find(name)
        if operand is None or operand.reg is None or operand.reg.index >= 100 and operand.reg.file is RegFile.SGPR:
            return None
        step = by * (operand.reg.dwords if operand.reg.dwords < 3 else 4)
        return [isa.with_registers(inst, lambda o: o.reg.index + (step if o.name == name else 0))]

    return change


def special(name: str, index: int) -> Change:
    """An operand is a special register."""
    def change(isa: InstructionSet, inst: Inst) -> list[Inst] | None:
        operand = inst.find(name)
        if operand is None or operand.reg is None or operand.reg.file is not RegFile.SGPR:
            return None
        return [isa.with_registers(inst, lambda o: index if o.name == name else o.reg.index)]

    return change


def field(name: str, by: int) -> Change:
    def change(isa: InstructionSet, inst: Inst) -> list[Inst] | None:
        operand = inst.find(name)
        if operand is None or operand.reg is not None or operand.kind is OperandKind.TARGET:
            return None
        return [isa.with_field(inst, name, operand.value + by)]

    return change


def literal(by: int) -> Change:
    return lambda isa, inst: None if inst.literal is None else [
        isa.with_field(inst, "literal", inst.literal + by & 0xFFFFFFFF)]


def other(*pairs: tuple[str, str]) -> Change:
    """Another operation with the same operands."""
    names = dict(pairs) | {b: a for a, b in pairs}

    def change(isa: InstructionSet, inst: Inst) -> list[Inst] | None:
        name = names.get(inst.op.base.lower())
        if name is None:
            return None
        given = [o.reg if o.reg is not None else o.value for o in inst.operands
                 if o.kind in (OperandKind.REGISTER, OperandKind.CONSTANT, OperandKind.IMMEDIATE, OperandKind.TARGET)
                 and o.name in ("sdst", "vdst", "src0", "src1", "simm16")]
        return [isa.make(name, *given)]

    return change


def behind(made: Callable[[InstructionSet], Inst]) -> Change:
    """Something stands behind it."""
    return lambda isa, inst: [inst, made(isa)]


CHANGES: dict[str, Change] = {
    "is left out": lambda isa, inst: [],
    "is there twice": lambda isa, inst: [inst, inst],
    "writes the next scalar register": register("sdst", 1),
    "writes the register before": register("sdst", -1),
    "writes the next vector register": register("vdst", 1),
    "reads the next register": register("src0", 1),
    "reads the register before": register("src0", -1),
    "reads another second register": register("src1", 1),
    "stores the next register": register("vdata", 1),
    "has the next address": register("vaddr", 1),
    "has the next scalar address": register("saddr", 1),
    "writes VCC": special("sdst", 106),
    "writes M0": special("sdst", 124),
    "reads VCC": special("src0", 106),
    "reads EXEC": special("src0", 126),
    "has a literal that is one more": literal(1),
    "has a literal that is four less": literal(-4),
    "has another upper half in its literal": literal(1 << 16),
    "has an offset that is four more": field("offset", 4),
    "has an offset that is a page more": field("offset", 2048),
    "has another cache policy": field("cpol", 1),
    "has a number that is one more": field("simm16", 1),
    "has a number that is one less": field("simm16", -1),
    "has another constant": field("src0", 1),
    "has another second constant": field("src1", 1),
    "clamps": field("clamp", 1),
    "is another comparison": other(("s_cmp_lg_u32", "s_cmp_eq_u32"), ("s_cmp_gt_u32", "s_cmp_lt_u32")),
    "is the other branch": other(("s_cbranch_scc0", "s_cbranch_scc1"), ("s_cbranch_execz", "s_cbranch_execnz"),
                                 ("s_cbranch_vccz", "s_cbranch_vccnz")),
    "is another sum": other(("s_add_u32", "s_add_i32"), ("s_addc_u32", "s_add_u32"), ("s_sub_u32", "s_subb_u32")),
    "is a conditional move": other(("s_mov_b32", "s_cmov_b32"), ("s_mov_b64", "s_cmov_b64")),
    "is the complement": other(("s_mov_b32", "s_not_b32"), ("s_mov_b64", "s_not_b64"), ("v_mov_b32", "v_not_b32")),
    "is moved for whole quads": other(("s_mov_b64", "s_wqm_b64"), ("s_mov_b32", "s_wqm_b32")),
    "is sign-extended": other(("s_mov_b32", "s_sext_i32_i16"), ("v_mov_b32", "v_cvt_f32_f16")),
    "is read from the first lane": other(("v_readlane_b32", "v_readfirstlane_b32")),
    "is an exchange of halves": other(("s_mov_b32", "s_brev_b32"), ("v_mov_b32", "v_bfrev_b32")),
    "is followed by a barrier": behind(lambda isa: isa.parse("s_barrier") if isa.target.generation < 12 else isa.parse(
        "s_barrier_signal -1")),
    "is followed by a long sleep": behind(lambda isa: isa.make("s_sleep", 7)),
    "is followed by another priority": behind(lambda isa: isa.make("s_setprio", 3)),
    "is followed by a stop": behind(lambda isa: isa.make("s_sethalt", 1)),
    "is followed by the end": behind(lambda isa: isa.make("s_endpgm")),
    "is followed by another mode": behind(lambda isa: isa.make("s_setreg_imm32_b32", 1 | 8 << 6 | 1 << 11, 3)),
    "is followed by a trap": behind(lambda isa: isa.make("s_trap", 2)),
    "is followed by a group": behind(lambda isa: isa.parse("s_clause 0x2")),
    "is followed by a message": behind(lambda isa: isa.make("s_sendmsg", 3)),
    "is followed by a change of relative registers": behind(lambda isa: isa.parse("s_set_gpr_idx_off")),
    "is followed by other banks": behind(lambda isa: isa.parse("s_set_vgpr_msb 1")),
}


def places(clone: Clone) -> Iterator[tuple[int, int, Inst]]:
    """Numbers of items, and of instructions in a Run; what was inserted."""
    for number, item in enumerate(clone.items):
        if isinstance(item, Single) and item.inserted:
            yield number, -1, item.inst
        elif isinstance(item, Run):
            for at in range(item.start, item.stop):
                yield number, at, item.insts[at]


def changed(isa: InstructionSet, clone: Clone, which: int, change: Change) -> Clone:
    """``which`` of the kinds of inserted instructions is wrong, in its first place; itself if there is none or it
    cannot be."""
    kinds: dict[bytes, tuple[int, int, Inst]] = {}
    for place in places(clone):
        kinds.setdefault(place[2].raw, place)
    if which >= len(kinds):
        return clone
    number, at, inst = list(kinds.values())[which]
    try:
        made = change(isa, inst)
    except LuthierError:
        made = None
    if made is None:
        return clone
    item = clone.items[number]
    if isinstance(item, Run):
        before, after = item.insts[:at], item.insts[at + 1:]
        insts = (*before, *made, *after)
        new: list[Any] = [Run(insts, item.start, item.stop + len(made) - 1, item.edit)]
    else:
        new = [replace(item, inst=each) if k == 0 else replace(
            item, inst=each, jump=None, reference=None, payload=False) for k, each in enumerate(made)]
        if not made:
            new = []
    return replace(clone, items=(*clone.items[:number], *new, *clone.items[number + 1:]))


def wrong(name: str, which: int) -> Patch:
    """On the first clone of a kernel."""
    def make(relax: Any) -> Any:
        def relaxed(isa, clone):
            return changed(isa, relax(isa, clone), which, CHANGES[name])

        return relaxed

    return put(apply, "relax", make)


MOST_KINDS = 60
