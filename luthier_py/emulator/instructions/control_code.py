"""Instructions that branch, that make a wave give way, or that read clocks, ids and the host's answers.

In: the code of one host function, and an instruction without data to compute with. Out: IR in it. Invariant: an action
without a line in the table is Unsupported, and so never nothing by mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from luthier_py.base.errors import Unsupported
from luthier_py.binary.loader.origins import Origins
from luthier_py.emulator.instructions import barriers
from luthier_py.emulator.instructions.access import AccessCode
from luthier_py.emulator.instructions.asked import answer, wall_clock, wave_number
from luthier_py.emulator.instructions.operands import destinations, read_scalar
from luthier_py.emulator.instructions.scalar_code import hardware, set_mode
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native import next_wave
from luthier_py.emulator.options.settings import CodeNumbers, Settings, Style
from luthier_py.emulator.reading.discover import interrupts, traps
from luthier_py.emulator.records.budgets import OWN_STEP
from luthier_py.emulator.records.layout import Fault, Status
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.registers import EXEC, VCC
from luthier_py.isa.properties.barriers import GROUPS, barrier_number
from luthier_py.isa.properties.wave_registers import gives_back_vectors
from luthier_py.isa.semantics.algebra import BOOL, U64, Value
from luthier_py.isa.semantics.control import Action, Branch


def block_label(start: int, mode: int) -> str:
    """Of a block under one MODE."""
    return f"L{start:x}.{mode:x}"


class ControlCode(WaveCode):
    """Mutable: a host function while it is written, and its ways from block to block and out of it."""

    def __init__(self, settings: Settings, numbers: CodeNumbers, live: dict[int, int], style: Style,
                 starts: set[int], origins: Origins | None) -> None:
        """``starts``: of its blocks; ``origins``: of its instructions, in a copy."""
        super().__init__(settings, numbers, live, style, origins)
        self.even = style is Style.EVEN_LOOPS
        self.access = AccessCode(self)
        self.starts = starts
        self.next_pc = 0
        self.slept = -1  # where a tool's code does, the last so far

    def go_to(self, target: int, more: int = 0) -> None:
        """Continue at a block; a way back takes from the budget, and any way does where waves give way often. ``more``:
        what it takes beside."""
        self.finish_state()
        if target <= self.slept <= self.pc and self.is_inserted:
            self.emitter.support("i32", "pause", [])  # a loop that polls the host
        cost = self.cost(target) + more
        left = self.spend(cost) if cost else ""
        if target not in self.starts:
            self.leave(Status.JUMP, self.absolute(target))
        elif not cost:
            self.emitter.emit(f"br label %{block_label(target, self.mode)}")
        else:
            tired = self.emitter.label("tired")
            self.emitter.branch(self.emitter.let(f"icmp slt i64 {left}, 0"), tired, block_label(target, self.mode))
            self.emitter.place(tired)
            self.leave(Status.YIELD, self.absolute(target))

    def cost(self, target: int) -> int:
        """Of continuing at a block, in what a budget counts. A copy's wave has its turns as the original's: only ways
        back that are the original's end them, and inserted code as good as never."""
        if self.settings.yields:
            return OWN_STEP * (target in self.starts)
        if self.origins is None or self.pc not in self.origins.code:
            return OWN_STEP * (target <= self.pc)
        if self.is_inserted:
            return int(target <= self.pc)
        return OWN_STEP * (target != self.next_pc and self.pc in self.origins.backward)

    def spend(self, cost: int) -> str:
        """What is left of the budget then."""
        place = self.field("budget")
        left = self.emitter.let(f"add i64 {self.emitter.let(f'load i64, ptr {place}')}, -{cost}")
        self.emitter.emit(f"store i64 {left}, ptr {place}")
        return left

    def absolute(self, pc: int) -> Value:
        """Device address of an address of the object."""
        return self.ops.value(U64, "%code_base") + pc

    def leave(self, status: Status, pc: Value) -> None:
        """Return; the wave continues at ``pc``."""
        self.finish_state()
        self.emitter.emit(f"store i64 {pc.ref}, ptr {self.field('pc')}")
        self.give_way(status)

    def give_way(self, status: Status) -> None:
        """Return, or hand the turn on to the next wave, where there is code for that."""
        if self.even and status in next_wave.THROUGH:
            self.emitter.emit(f"br label %{next_wave.THROUGH[status]}")
        else:
            next_wave.leave(self.emitter, status, self.even)

    def jump(self) -> None:
        """A call, a return or the like may lead back."""
        if not self.settings.yields:
            self.spend(1 if self.is_inserted else OWN_STEP)

    def leave_for(self, place: Value) -> None:
        """The same for what a register says, where there may be no code; the scheduler looks at the budget."""
        self.jump()
        self.emitter.emit(f"store i64 {self.absolute(self.pc).ref}, ptr {self.field('left_at')}")
        self.leave(Status.JUMP, place)

    @property
    def after(self) -> Value:
        """Device address of the next instruction."""
        return self.absolute(self.next_pc)

    def write_result(self, inst: Inst, value: Value) -> None:
        """To the scalar destination, unless it is null."""
        for operand in destinations(inst):
            if operand.reg is not None:
                self.scalars.write(operand.reg.index, value)


def branch(code: ControlCode, inst: Inst, row: Branch) -> None:
    """To its target, or on."""
    target = inst.branch_target(code.pc)
    assert target is not None
    if row.register is None:
        code.go_to(target)
        return
    if row.register == "scc":
        nonzero = code.scalars.scc()
    else:
        nonzero = code.scalars.read(EXEC if row.register == "exec" else VCC, code.wave_size // 32).ne(0)
    code.finish_state()
    taken, passed = code.emitter.label("taken"), code.emitter.label("passed")
    code.emitter.branch(str(nonzero.ref), *((passed, taken) if row.if_zero else (taken, passed)))
    code.emitter.place(taken)
    code.go_to(target)
    code.emitter.place(passed)
    code.go_to(code.next_pc)


def act(code: ControlCode, inst: Inst, row: Action) -> None:
    """Unsupported for what is in no table."""
    if row in _ACTIONS:
        _ACTIONS[row](code, inst)
    elif row in _RESULTS:
        code.write_result(inst, _RESULTS[row](code, inst))
    else:
        raise Unsupported(f"the emulator has no code for {inst.op.mnemonic}, which is Action.{row.name}")


def _nothing(code: ControlCode, inst: Inst) -> None:
    """No effect on results."""


def _leave(status: Status) -> Callable[[ControlCode, Inst], None]:
    return lambda code, inst: code.leave(status, code.after)


def _sleep(code: ControlCode, inst: Inst) -> None:
    """The application gives way; what a tool inserted waits for the host, and ends a turn only if that takes long."""
    if code.is_inserted and not code.settings.yields:
        code.go_to(code.next_pc, more=1)
        code.slept = code.pc
    else:
        code.leave(Status.YIELD, code.after)


def _signal(code: ControlCode, inst: Inst, first: bool = False) -> None:
    """Barriers of trap handlers (-2) are not a program's: nothing happens there, and SCC is 0."""
    number = barrier_number(inst)
    if number == GROUPS:
        if first:
            code.scalars.write_scc(barriers.nobody_has_come(code))
        code.leave(Status.SIGNAL, code.after)
        return
    if barriers.is_named(number):
        barriers.signal(code, number, first)
    elif first:
        code.scalars.write_scc(code.ops.constant(BOOL, 0))
    code.go_to(code.next_pc)


def _wait(code: ControlCode, inst: Inst) -> None:
    number = barrier_number(inst)
    if number == GROUPS:
        code.leave(Status.WAIT, code.after)
    elif number and barriers.is_named(number):
        barriers.await_joined(code)
        code.leave(Status.MEETING, code.after)
    else:
        code.go_to(code.next_pc)


def _meet(code: ControlCode, inst: Inst) -> None:
    barriers.meet(code, inst)
    code.leave(Status.MEETING, code.after)


def _take(code: ControlCode, inst: Inst) -> None:
    barriers.take(code, inst)
    code.leave(Status.MEETING, code.after)


def _message(code: ControlCode, inst: Inst) -> None:
    if interrupts(inst):
        code.leave(Status.MESSAGE, code.after)
    elif gives_back_vectors(inst, code.settings.target):
        code.emitter.emit(f"store i64 1, ptr {code.field('released')}")


def _trap(code: ControlCode, inst: Inst) -> None:
    if traps(inst):
        code.emitter.emit(f"store i64 {Fault.TRAP}, ptr {code.field('fault_kind')}")
        code.access.trap()


def _set_pc(code: ControlCode, inst: Inst) -> None:
    code.leave_for(read_scalar(inst["src0"], 64, code.context))


def _add_pc(code: ControlCode, inst: Inst) -> None:
    code.leave_for(code.after + read_scalar(inst["src0"], 64, code.context))


def _swap_pc(code: ControlCode, inst: Inst) -> None:
    to = read_scalar(inst["src0"], 64, code.context)
    code.write_result(inst, code.after)
    code.leave_for(to)


def _call(code: ControlCode, inst: Inst) -> None:
    to = code.absolute(inst.branch_target(code.pc) or 0)
    code.write_result(inst, code.after)
    code.leave_for(to)


def _register(row: Action) -> Callable[[ControlCode, Inst], None]:
    return lambda code, inst: hardware(code, inst, row)


_ACTIONS: dict[Action, Callable[[ControlCode, Inst], None]] = {
    Action.NOTHING: _nothing,
    Action.END: _leave(Status.DONE),
    Action.BARRIER: _leave(Status.BARRIER),
    Action.BARRIER_SIGNAL: _signal,
    Action.BARRIER_SIGNAL_ISFIRST: partial(_signal, first=True),
    Action.BARRIER_WAIT: _wait,
    Action.BARRIER_INIT: lambda code, inst: barriers.initialise(code, barrier_number(inst)),
    Action.BARRIER_JOIN: lambda code, inst: barriers.join(code, barrier_number(inst)),
    Action.GWS_BARRIER: _meet,
    Action.GWS_SEMA_P: _take,
    **{row: partial(barriers.change_semaphore, row=row) for row in barriers.OF_SEMAPHORES},
    Action.SLEEP: _sleep,
    Action.SENDMSG: _message,
    Action.TRAP: _trap,
    Action.SETPC: _set_pc,
    Action.ADD_PC: _add_pc,
    Action.SWAPPC: _swap_pc,
    Action.CALL: _call,
    Action.GETREG: _register(Action.GETREG),
    Action.SETREG: _register(Action.SETREG),
    Action.SETREG_IMM: _register(Action.SETREG_IMM),
    Action.ROUND_MODE: set_mode,
    Action.DENORM_MODE: set_mode,
}
_RESULTS: dict[Action, Callable[[ControlCode, Inst], Value]] = {
    Action.BARRIER_STATE: lambda code, inst: barriers.state(code, barrier_number(inst)),
    Action.SENDMSG_RTN: answer,
    Action.GETPC: lambda code, inst: code.after,
    Action.CLOCK: lambda code, inst: code.clock(),
    Action.WALL_CLOCK: lambda code, inst: wall_clock(code),
    Action.WAVE_ID: lambda code, inst: wave_number(code),
}
"""What is written to the scalar destination."""
