"""What is known of registers inside a run of inserted instructions.

A scalar register holds the application's value of some register, a kept flag, a part of the application's
EXEC, or something unknown. Paths meet by equality. Sound: every rule claims less than what the instruction does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from luthier_py.analysis import Pending
from luthier_py.isa import EXEC, SCC, Inst, InstructionSet, Operand, OperandKind, OpFlag, RegFile, RegSet

Value = tuple[object, ...]
APP, FLAG, MASK = "app", "flag", "mask"
UNKNOWN: Value = ("unknown",)


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


def transfer(isa: InstructionSet, inst: Inst, state: State) -> State:
    """The state after one inserted instruction."""
    new = state.copy()
    new.raced |= inst.writes & state.pending.registers
    new.pending = state.pending.after(isa, inst)
    vectors = RegSet(vgpr=inst.writes.vgpr, agpr=inst.writes.agpr)
    if state.narrow and not inst.op.flags & OpFlag.IGNORES_EXEC:
        new.narrow_writes |= vectors
    else:
        new.wide_writes |= vectors
    for reg in RegSet(sgpr=inst.writes.sgpr):
        new.scalars[reg.index] = UNKNOWN
    rule = RULES.get(inst.op.base)
    if rule is not None:
        rule(inst, state, new)
    elif inst.op.base.startswith("V_CMPX") and state.narrow:
        _set_exec(new, True)
    return new


def _register(operand: Operand) -> int | None:
    return operand.reg.index if operand.reg is not None and operand.reg.file is RegFile.SGPR else None


def _move(inst: Inst, old: State, new: State) -> None:
    to, source = _register(inst["sdst"]), _register(inst["src0"])
    reg = inst["sdst"].reg
    if to is not None and source is not None and reg is not None:
        for offset in range(reg.dwords):
            new.scalars[to + offset] = old.get(source + offset)


def _keep_flag(inst: Inst, old: State, new: State) -> None:
    to, chosen = _register(inst["sdst"]), [inst[n] for n in ("src0", "src1")]
    if to is not None and [(o.kind, o.value) for o in chosen] == [(OperandKind.CONSTANT, 1), (OperandKind.CONSTANT, 0)]:
        new.scalars[to] = (FLAG, old.get(SCC))


def _restore_flag(inst: Inst, old: State, new: State) -> None:
    kept, zero = _register(inst["src0"]), inst["src1"]
    value = old.get(kept) if kept is not None else UNKNOWN
    if value[0] == FLAG and zero.kind is OperandKind.CONSTANT and zero.value == 0:
        new.scalars[SCC] = value[1]  # type: ignore[assignment]


def _set_exec(new: State, narrow: bool) -> None:
    for half in (0, 1):
        new.scalars[EXEC + half] = (MASK, half) if narrow else UNKNOWN


def _save_exec(inst: Inst, old: State, new: State) -> None:
    """sdst := EXEC; EXEC := EXEC and something."""
    to = _register(inst["sdst"])
    if to is not None:
        for half in (0, 1):
            new.scalars[to + half] = old.get(EXEC + half)
    _set_exec(new, old.narrow)


def _mask_logic(inst: Inst, old: State, new: State) -> None:
    """Logic on masks: a part of EXEC stays a part of it, and joins EXEC to give EXEC."""
    to = _register(inst["sdst"])
    sources = [_register(inst[n]) for n in ("src0", "src1")]
    if to is None:
        return
    values = [[old.get(s + half) if s is not None else UNKNOWN for half in (0, 1)] for s in sources]
    masks = [all(_is_mask(v[half], half) for half in (0, 1)) for v in values]
    whole = [all(v[half] == (APP, EXEC + half) for half in (0, 1)) for v in values]
    base = inst.op.base
    if base == "S_OR_B64" and all(masks) and any(whole):
        result: list[Value] = [(APP, EXEC), (APP, EXEC + 1)]
    elif (base == "S_AND_B64" and any(masks)) or (base == "S_ANDN2_B64" and masks[0]) or all(masks):
        result = [(MASK, 0), (MASK, 1)]
    else:
        return
    new.scalars[to], new.scalars[to + 1] = result


RULES: dict[str, Callable[[Inst, State, State], None]] = {
    "S_MOV_B32": _move, "S_MOV_B64": _move,
    "S_CSELECT_B32": _keep_flag, "S_CMP_LG_U32": _restore_flag,
    "S_AND_SAVEEXEC_B64": _save_exec,
    "S_AND_B64": _mask_logic, "S_OR_B64": _mask_logic, "S_ANDN2_B64": _mask_logic, "S_XOR_B64": _mask_logic,
}
