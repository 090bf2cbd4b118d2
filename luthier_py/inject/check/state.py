"""What is known of registers inside a run of inserted instructions.

A scalar register holds the application's value of some register, a kept flag, a part of the application's
EXEC, a kept field of MODE, or something unknown; MODE is the application's, or that but for one field. Paths
meet by equality. Sound: every rule claims less than what the instruction does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from luthier_py.analysis import Pending
from luthier_py.analysis.waits import NONE_PENDING
from luthier_py.isa import EXEC, MODE, SCC, Inst, InstructionSet, Operand, OperandKind, OpFlag, RegFile, RegSet

Value = tuple[object, ...]
APP, FLAG, MASK, FIELD, ALTERED = "app", "flag", "mask", "field", "altered"
Values = dict[int, Value]  # by register
UNKNOWN: Value = ("unknown",)
_PART_OF_EXEC: Values = {EXEC: (MASK, 0), EXEC + 1: (MASK, 1)}


@dataclass(slots=True)
class State:
    """Scalar values by index; what is missing is the application's own. Vector writes and outstanding loads so far."""

    pending: Pending
    raced: RegSet = field(default_factory=RegSet)          # written while a load still owed them
    scalars: dict[int, Value] = field(default_factory=dict)
    narrow_writes: RegSet = field(default_factory=RegSet)  # under EXEC or less
    wide_writes: RegSet = field(default_factory=RegSet)    # under some other EXEC

    def get(self, index: int) -> Value:
        return self.scalars.get(index, (APP, index))

    def copy(self) -> State:
        return State(self.pending, self.raced, dict(self.scalars), self.narrow_writes, self.wide_writes)

    def meet(self, other: State) -> State:
        keys = self.scalars.keys() | other.scalars.keys()
        scalars = {k: self.get(k) if self.get(k) == other.get(k) else _meet(self.get(k), other.get(k)) for k in keys}
        return State(
            self.pending.join(other.pending), self.raced | other.raced, scalars,
            self.narrow_writes | other.narrow_writes, self.wide_writes | other.wide_writes,
        )

    @property
    def narrow(self) -> bool:
        """Whether EXEC is known to be the application's or a part of it."""
        return all(_is_mask(self.get(EXEC + half), half) for half in (0, 1))


def _is_mask(value: Value, half: int) -> bool:
    return value == (MASK, half) or value == (APP, EXEC + half)


def _meet(a: Value, b: Value) -> Value:
    for half in (0, 1):
        if _is_mask(a, half) and _is_mask(b, half):
            return (MASK, half)
    return UNKNOWN


def step(isa: InstructionSet, inst: Inst, state: State) -> None:
    """Change ``state`` from before an inserted instruction to after it."""
    writes, op = inst.writes, inst.op
    vectors = RegSet(vgpr=writes.vgpr, agpr=writes.agpr)
    narrow = state.narrow
    if vectors and narrow and OpFlag.IGNORES_EXEC not in op.flags:
        state.narrow_writes |= vectors
    elif vectors:
        state.wide_writes |= vectors
    if state.pending.queues != NONE_PENDING:
        state.raced |= writes & state.pending.registers
    state.pending = state.pending.after(isa, inst)
    rule = RULES.get(op.base)
    known: Values = rule(inst, state) if rule is not None else {}
    if OpFlag.VALU in op.flags and op.implicit_writes.sgpr >> EXEC & 1 and narrow:  # v_cmpx
        known = _PART_OF_EXEC
    for reg in RegSet(sgpr=writes.sgpr):
        state.scalars[reg.index] = known.get(reg.index, UNKNOWN)


def _register(operand: Operand) -> int | None:
    return operand.reg.index if operand.reg is not None and operand.reg.file is RegFile.SGPR else None


def _move(inst: Inst, state: State) -> Values:
    to, source = _register(inst["sdst"]), _register(inst["src0"])
    reg = inst["sdst"].reg
    if to is None or source is None or reg is None:
        return {}
    return {to + offset: state.get(source + offset) for offset in range(reg.dwords)}


def _keep_flag(inst: Inst, state: State) -> Values:
    to, chosen = _register(inst["sdst"]), [inst[n] for n in ("src0", "src1")]
    if to is not None and [(o.kind, o.value) for o in chosen] == [(OperandKind.CONSTANT, 1), (OperandKind.CONSTANT, 0)]:
        return {to: (FLAG, state.get(SCC))}
    return {}


def _restore_flag(inst: Inst, state: State) -> Values:
    kept, zero = _register(inst["src0"]), inst["src1"]
    value = state.get(kept) if kept is not None else UNKNOWN
    if value[0] == FLAG and isinstance(value[1], tuple) and zero.kind is OperandKind.CONSTANT and zero.value == 0:
        return {SCC: value[1]}
    return {}


def _save_exec(inst: Inst, state: State) -> Values:
    """sdst := EXEC; EXEC := EXEC and something."""
    to, halves = _register(inst["sdst"]), _halves(inst)
    kept = {to + half: state.get(EXEC + half) for half in halves} if to is not None else {}
    return {**kept, **{EXEC + half: _PART_OF_EXEC[EXEC + half] for half in halves}} if state.narrow else kept


def _halves(inst: Inst) -> range:
    """The halves of a mask that an instruction makes; one of 32 bits makes the low one."""
    reg = inst["sdst"].reg
    return range(0 if reg is None else reg.dwords)


def _mask_logic(inst: Inst, state: State) -> Values:
    """Logic on masks: a part of EXEC stays a part of it, and joins EXEC to give EXEC."""
    to, halves = _register(inst["sdst"]), _halves(inst)
    sources = [_register(inst[n]) for n in ("src0", "src1")]
    if to is None:
        return {}
    values = [[state.get(s + half) if s is not None else UNKNOWN for half in halves] for s in sources]
    masks = [all(_is_mask(v[half], half) for half in halves) for v in values]
    whole = [all(v[half] == (APP, EXEC + half) for half in halves) for v in values]
    operation = inst.op.base.rpartition("_")[0]
    if operation == "S_OR" and all(masks) and any(whole):
        return {to + half: (APP, EXEC + half) for half in halves}
    if (operation == "S_AND" and any(masks)) or (operation == "S_ANDN2" and masks[0]) or all(masks):
        return {to + half: (MASK, half) for half in halves}
    return {}


def _keep_field(inst: Inst, state: State) -> Values:
    """sdst := bits of MODE, while it is the application's."""
    to = _register(inst["sdst"])
    return {to: (FIELD, inst["simm16"].value)} if to is not None and state.get(MODE) == (APP, MODE) else {}


def _alter_field(inst: Inst, state: State) -> Values:
    altered = (ALTERED, inst["simm16"].value)
    return {MODE: altered} if state.get(MODE) in ((APP, MODE), altered) else {}


def _restore_field(inst: Inst, state: State) -> Values:
    """MODE gets back the only field that was altered."""
    kept, field = _register(inst["sdst"]), inst["simm16"].value
    if kept is None or state.get(kept) != (FIELD, field) or state.get(MODE) not in ((APP, MODE), (ALTERED, field)):
        return {}
    return {MODE: (APP, MODE)}


RULES: dict[str, Callable[[Inst, State], Values]] = {
    "S_MOV_B32": _move, "S_MOV_B64": _move,
    "S_GETREG_B32": _keep_field, "S_SETREG_IMM32_B32": _alter_field, "S_SETREG_B32": _restore_field,
    "S_CSELECT_B32": _keep_flag, "S_CMP_LG_U32": _restore_flag,
    **{f"S_AND_SAVEEXEC_B{bits}": _save_exec for bits in (32, 64)},
    **{f"S_{name}_B{bits}": _mask_logic for name in ("AND", "OR", "ANDN2", "XOR") for bits in (32, 64)},
}
