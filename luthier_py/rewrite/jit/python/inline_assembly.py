"""Assembly in device code: checked for the target, and brought to LLVM as what it reads, gives and destroys.

In: a text with numbers in braces for results and inputs, values, types. Out: values of the results, and one `asm` in
LLVM's IR, of which the text is in a comment: `inserted_text` assembles it when LLVM has chosen registers. ValueError
says what it may not do. Invariant: the text computes, and nothing else: it changes no register but its results, VCC and
SCC, and what it reads it was given or has written itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from luthier_py.base.errors import LuthierError
from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, M0, MODE, NO_REGS, SCC, VCC, Inst, InstructionSet, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.encoding.instruction import SRC_LDS_DIRECT, Access, OperandKind
from luthier_py.isa.properties.side_effects import computes, outside
from luthier_py.isa.text.parse import COMMENT
from luthier_py.rewrite.jit import convention
from luthier_py.rewrite.jit.python.builder import Builder, llvm
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.hooks.types import BOOL, LaneType, Scalar, Type

MARK = ";luthier: "
"""Before each line of a text in LLVM's own: to LLVM a comment, which has no size."""
MOST_OPERANDS = 10
_FIRST = {RegFile.SGPR: 32, RegFile.VGPR: 64}  # registers that stand for operands before LLVM has chosen some
_NUMBER = re.compile(r"\{(\d+)\}")
_NAMED = re.compile(r"(?<![\w.:$])(?:[sva]|ttmp)(?:\d+\b|\[)")
_LABEL = re.compile(r"^[\w.$]+:(?!:)", re.MULTILINE)
_HIGH = re.compile(r"\.h\b|\bop_sel:|\bdst_sel:")  # in the text of what writes the upper half of a register, or may
_OTHER_LANES = OpFlag.IGNORES_EXEC | OpFlag.READS_OTHER_LANES
_LEAVES = OpFlag.TERMINATOR | OpFlag.BRANCH | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.SETS_PC | OpFlag.FORKS
_EXEC, _MODE, _M0 = RegSet.of(sgpr(EXEC, 2)), RegSet.of(sgpr(MODE)), RegSet.of(sgpr(M0))
_DESTROYED = {"vcc": RegSet.of(sgpr(VCC, 2)), "scc": RegSet.of(sgpr(SCC))}
_OWN = _DESTROYED["vcc"] | _DESTROYED["scc"]


@dataclass(frozen=True, slots=True)
class SpillVgpr:
    """The registers in which an operand travels: their file, and how many; whether it has no more than 16 bits."""

    file: RegFile
    dwords: int
    half: bool = False


@dataclass(frozen=True, slots=True)
class Fitted:
    """What LLVM has to know of a text: where its inputs are, what it destroys, whether it writes results early."""

    inputs: tuple[SpillVgpr, ...]
    destroyed: tuple[str, ...]
    early: bool


def inline_assembly(
    ir: Builder, isa: InstructionSet, text: str, inputs: Sequence[Value], types: Sequence[Type | LaneType | None]
) -> tuple[Value, ...]:
    """The results of a text; it is assembled where it is written, and runs as often as that."""
    results = [_result(kind) for kind in types]
    for value in inputs:
        if not _travels(value.type):
            raise ValueError(f"asm takes numbers, and this is {value.type}; convert it, as in u64(...)")
    lines = "\n".join(line for each in text.splitlines() if (line := COMMENT.sub("", each).strip()))
    fitted = _fit_registers(isa, lines, tuple(place for _, place in results),
                     tuple((value.type.dwords, value.lane) for value in inputs))
    given = [_lower_input(ir, value, place) for value, place in zip(inputs, fitted.inputs, strict=True)]
    called = _emit_asm_call(ir, lines, _constraints(results, fitted), [f"i{32 * place.dwords}" for _, place in results],
                            given)
    return tuple(convention.unpack_value(ir, Value(convention.spill_vgpr(type), name, place.file is RegFile.VGPR), type)
                 for name, (type, place) in zip(called, results, strict=True))


def _emit_asm_call(ir: Builder, lines: str, constraints: str, gives: Sequence[str], given: Sequence[str]) -> list[str]:
    """Names of what LLVM's `asm` gives, of these types."""
    text = "\\0A".join(MARK + line for line in _NUMBER.sub(r"$\1", lines).splitlines())
    kind = gives[0] if len(gives) == 1 else f"{{ {', '.join(gives)} }}"
    found = ir.raw(f'call {kind} asm sideeffect "{text}", "{constraints}"({", ".join(given)}) '
                   "convergent nounwind memory(inaccessiblemem: readwrite)")
    return [found] if len(gives) == 1 else [ir.raw(f"extractvalue {kind} {found}, {at}") for at in range(len(gives))]


def _result(declared: Type | LaneType | None) -> tuple[Type, SpillVgpr]:
    type = declared.of if isinstance(declared, LaneType) else declared
    if type is None or not _travels(type):
        raise ValueError("a result of asm is a number, one for the wave, as u32, or each lane's, as Lane[u32]")
    return type, SpillVgpr(RegFile.VGPR if isinstance(declared, LaneType) else RegFile.SGPR, type.dwords,
                           _is_half(type))


def _is_half(type: Type) -> bool:
    return isinstance(type, Scalar) and type.bits <= 16


def _travels(type: Type) -> bool:
    return isinstance(type, Scalar) and type != BOOL


def _lower_input(ir: Builder, value: Value, spill_vgpr: SpillVgpr) -> str:
    """An input, with its type. LLVM may not know of what is one for the wave that it is."""
    bits = convention.pack_value(ir, value)
    if spill_vgpr.file is RegFile.SGPR and bits.text.startswith("%"):
        bits = ir.call(f"llvm.amdgcn.readfirstlane.i{32 * spill_vgpr.dwords}", bits.type, (bits,), lane=False)
    return f"{llvm(bits.type)} {bits.text}"


def _constraints(results: Sequence[tuple[Type, SpillVgpr]], fitted: Fitted) -> str:
    letters = {RegFile.SGPR: "s", RegFile.VGPR: "v"}
    gives = [f"={'&' * fitted.early}{letters[place.file]}" for _, place in results]
    takes = [letters[place.file] for place in fitted.inputs]
    return ",".join([*gives, *takes, *(f"~{{{name}}}" for name in fitted.destroyed)])


# -- what a text is --------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 10)
def _fit_registers(isa: InstructionSet, text: str, results: tuple[SpillVgpr, ...],
                   inputs: tuple[tuple[int, bool], ...]) -> Fitted:
    """``inputs``: how many registers each takes, and whether lanes differ in it."""
    _check_numbers(text, len(results) + len(inputs))
    refused = ""
    for places in _choices(inputs):
        regs = _registers((*results, *places))
        try:
            insts = _assemble_text(isa, text, regs)
        except LuthierError as error:
            refused = refused or _restore_placeholders(error.message, regs)
            continue
        writes = NO_REGS
        for inst in insts:
            writes |= inst.writes
        halves = RegSet.of(*(reg for reg, place in zip(regs, results, strict=False) if place.half))
        _check(isa, insts, RegSet.of(*regs[: len(results)]), RegSet.of(*regs[len(results) :]), halves, regs)
        destroyed = tuple(name for name, each in _DESTROYED.items() if writes.overlaps(each))
        return Fitted(places, destroyed, early=len(insts) > 1 or any(place.dwords > 1 for place in results))
    raise ValueError(refused)


def _check_numbers(text: str, count: int) -> None:
    if found := _NAMED.search(text):
        raise ValueError(f"the text names a register, {text[found.start():].split()[0].rstrip(',')}; registers are "
                         "chosen when the hook is compiled: write {0} for the result, {1} for the first input")
    if found := _LABEL.search(text):
        raise ValueError(f"the text has a label, {found[0]} nothing can lead there; use if, while and for")
    named = {int(number) for number in _NUMBER.findall(text)}
    if count > MOST_OPERANDS:
        raise ValueError(f"asm has {MOST_OPERANDS} results and inputs at most, not {count}")
    if named != set(range(count)):
        odd = min(named ^ set(range(count)))
        what = "is not in the text" if odd < count else "is in the text, but there is no such result or input"
        raise ValueError(f"{{{odd}}} {what}; results come first, inputs have the numbers behind")


def _choices(inputs: tuple[tuple[int, bool], ...]) -> Iterator[tuple[SpillVgpr, ...]]:
    """Where inputs may be: what is one for the wave in scalar registers, as many as go there."""
    uniform = [at for at, (_, lane) in enumerate(inputs) if not lane]
    for count in range(len(uniform) + 1):
        for moved in combinations(uniform, count):
            yield tuple(SpillVgpr(RegFile.VGPR if lane or at in moved else RegFile.SGPR, dwords)
                        for at, (dwords, lane) in enumerate(inputs))


def _registers(places: Sequence[SpillVgpr]) -> tuple[Reg, ...]:
    return tuple(Reg(place.file, _FIRST[place.file] + 2 * at, place.dwords) for at, place in enumerate(places))


def _assemble_text(isa: InstructionSet, text: str, regs: Sequence[Reg]) -> tuple[Inst, ...]:
    return isa.decode_all(isa.assemble(_NUMBER.sub(lambda number: str(regs[int(number[1])]), text)))


def _restore_placeholders(message: str, regs: Sequence[Reg]) -> str:
    """A message of the assembler, with numbers for registers."""
    for at, reg in enumerate(regs):
        message = re.sub(rf"(?<![\w.]){re.escape(str(reg))}(?![\w:])", f"{{{at}}}", message)
    return message


def _check(
    isa: InstructionSet, insts: Sequence[Inst], results: RegSet, inputs: RegSet, halves: RegSet, regs: Sequence[Reg]
) -> None:
    """``halves``: results whose upper 16 bits are not read."""
    if not insts:
        raise ValueError("there is no instruction in the text")
    written = NO_REGS
    for inst in insts:
        text = f"`{_restore_placeholders(isa.text(inst), regs)}`"
        if why := _unfit(inst):
            raise ValueError(f"{text} {why}")
        if lost := inst.writes - results - _OWN:
            what = "an input" if lost.overlaps(inputs) else str(lost)
            raise ValueError(f"{text} writes {what}; asm writes its results, and may use vcc and scc")
        if unknown := _read(isa, inst, halves) - inputs - written - _EXEC - _MODE:
            what = "a result" if unknown.overlaps(results) else str(unknown)
            raise ValueError(f"{text} reads {what}, which nothing in the text has written before")
        written |= inst.writes
    if missing := [at for at, reg in enumerate(regs) if RegSet.of(reg) <= results and reg not in written]:
        raise ValueError(f"nothing in the text writes all of {{{missing[0]}}}")


def _read(isa: InstructionSet, inst: Inst, halves: RegSet) -> RegSet:
    """What it reads, but for the upper halves of such results that it leaves as they are."""
    if not inst.op.partial or _HIGH.search(isa.text(inst)) or OpFlag.WRITES_HIGH_HALF in inst.op.flags:
        return inst.reads
    taken = (each.reg for each in inst.operands if each.reg is not None and Access.READ in each.access)
    return inst.reads - (inst.partial_writes & halves - RegSet.of(*taken))


def _unfit(inst: Inst) -> str | None:
    """Why an instruction cannot stand in a hook."""
    flags, op = inst.op.flags, inst.op
    if flags & _LEAVES:
        return "decides where control goes; use if, while and for"
    if inst.writes.overlaps(_EXEC):
        return "changes EXEC, which lanes are active; use if"
    if inst.writes.overlaps(_MODE):
        return "changes MODE; a hook says how its floats are rounded as @hook(mode=...)"
    if op.counters or op.spaces or any(
            operand.kind is OperandKind.SPECIAL and operand.value == SRC_LDS_DIRECT for operand in inst.operands):
        return "touches memory, or is waited for as if it did; use pointers and intrinsics"
    if flags & _OTHER_LANES:
        return "takes or changes values of lanes that may not be active; use read_lane"
    if inst.writes.overlaps(_M0) or flags & (OpFlag.CLAUSE | OpFlag.GETS_PC) or not computes(op) or "::" in op.template:
        return f"does more than compute: it {outside(op) or 'matters to the instructions around it'}"
    return None
