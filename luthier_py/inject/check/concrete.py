"""A few scalar instructions on numbers: what runs the compare chain before an indirect call."""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.isa import SCC, Inst, Operand, OpFlag


class Concrete:
    """A few scalar instructions on numbers: enough for the compare chain before an indirect call (mutable)."""

    def __init__(self, code: Mapping[int, Inst], registers: dict[int, int]) -> None:
        self.code, self.registers = code, registers

    def source(self, operand: Operand) -> int:
        if operand.reg is not None:
            return self.registers.get(operand.reg.index, 0)
        return operand.value & 0xFFFFFFFF

    def run(self, pc: int, end: int) -> dict[int, int]:
        while pc != end:
            inst = self.code[pc]
            target = inst.branch_target(pc)
            taken = target is not None and (self.registers.get(SCC, 0) or not inst.op.flags & OpFlag.CONDITIONAL)
            if target is None:
                self.step(inst, pc)
            pc = target if taken and target is not None else pc + inst.size_bytes
        return self.registers

    def step(self, inst: Inst, pc: int) -> None:
        base, reg = inst.op.base, self.registers
        a, b = ([self.source(inst[n]) if inst.find(n) else 0 for n in ("src0", "src1")])
        carry = reg.get(SCC, 0)
        if base == "S_GETPC_B64":
            to = inst["sdst"].reg
            assert to is not None
            reg[to.index], reg[to.index + 1] = (pc + inst.size_bytes) & 0xFFFFFFFF, (pc + inst.size_bytes) >> 32
            return
        signed = a - (a >> 31 << 32)
        results: dict[str, tuple[int | None, int | None]] = {
            "S_ADD_U32": (a + b, (a + b) >> 32), "S_ADDC_U32": (a + b + carry, (a + b + carry) >> 32),
            "S_SUB_U32": (a - b, int(b > a)), "S_SUBB_U32": (a - b - carry, int(b + carry > a)),
            "S_ASHR_I32": (signed >> (b & 31), int(signed >> (b & 31) != 0)),
            "S_CMP_LG_U32": (None, int(a != b)), "S_CMP_EQ_U32": (None, int(a == b)),
            "S_CSELECT_B32": (a if carry else b, None), "S_MOV_B32": (a, None),
        }
        value, flag = results.get(base, (None, None))
        if value is not None and (to := inst["sdst"].reg) is not None:
            reg[to.index] = value & 0xFFFFFFFF
        if flag is not None:
            reg[SCC] = flag
