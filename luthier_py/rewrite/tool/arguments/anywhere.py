"""What calls may depend on that may go to any of several places.

In: instructions, arguments and results. Out: HookError where the value of one depends on the place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier_py.base.errors import HookError
from luthier_py.isa import EXEC, Reg, RegSet, sgpr
from luthier_py.rewrite.tool.arguments.computed import of_a_place
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller

if TYPE_CHECKING:
    from luthier_py.program.ir import Instr


def while_exec_stays(instrs: Sequence[Instr]) -> Sequence[Instr]:
    """Instructions before which EXEC is what it is before the first one; what lies between them may write it, too."""
    code, exec = instrs[0].code, RegSet.of(sgpr(EXEC, 2))
    for place in range(instrs[0].at, instrs[-1].at):
        if code.inst(place).writes.overlaps(exec):
            return instrs[: bisect_right(instrs, place, key=lambda instr: instr.at)]
    return instrs


def check_independent(values: tuple[object, ...]) -> None:
    """HookError where one of the values is made of a register that may differ from place to place: any but EXEC."""
    for reg in of_a_place(values):
        expect(reg, Reg)
        raise HookError(f"{caller()}: anywhere=True leaves the place open, but the value of {reg} depends on it")
