"""Blocks of GPU code to one host function.

In: basic blocks of a function. Out: the text of LLVM functions ``i32 name(ptr wave)`` that
run a wave from ``wave.pc`` until it has to give way, and return a Status (see also next_wave). Invariant: between
blocks the wave's memory holds the whole state, so any block may be entered from outside.

Counters: one per block counts its executions; two per stretch of instructions under one EXEC sum
the active lanes, and the executions with any. A host function numbers its own from 0; what comes before them is
known when it is linked, as the addresses of two symbols.
"""

from __future__ import annotations

from luthier_py.emulator import barriers, next_wave
from luthier_py.emulator.access import AccessCode
from luthier_py.emulator.asked import answer, wall_clock, wave_number
from luthier_py.emulator.discover import CodeBlock, interrupts, traps
from luthier_py.emulator.layout import SITE_BYTES, WAVE, WORKER, Fault, Status
from luthier_py.emulator.modes import sets_from_register
from luthier_py.emulator.operands import destinations, read_scalar
from luthier_py.emulator.scalar_code import hardware, set_mode
from luthier_py.emulator.settings import FIRST_COUNTER, FIRST_SITE, CodeNumbers, CounterKind, Settings, Style, number_of
from luthier_py.emulator.vector_code import in_situation
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.emulator.writers import WRITERS
from luthier_py.errors import Location, Unsupported
from luthier_py.isa.instruction import Inst, OpFlag
from luthier_py.isa.operands import SCRATCH_BASE
from luthier_py.isa.registers import EXEC, MODE, VCC
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.algebra import BOOL, U64, Value
from luthier_py.isa.semantics.control import Action, Branch, Switch
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.refusals import refusal

_ENDINGS = (
    Action.END, Action.BARRIER, Action.BARRIER_SIGNAL, Action.BARRIER_SIGNAL_FIRST, Action.BARRIER_WAIT,
    Action.GRID_BARRIER, Action.GRID_TAKE, Action.SLEEP, Action.SETPC, Action.ADDPC, Action.SWAPPC, Action.CALL,
)
_SHARED_BASE, _SHARED_LIMIT, _PRIVATE_BASE, _PRIVATE_LIMIT = 235, 236, 237, 238  # operand encodings
_APERTURE_BYTES = 1 << 32
_SKIPPED = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS  # by S_SETVSKIP (Vega ISA, 12.4)
_LEAVES = Action.SETPC, Action.ADDPC, Action.SWAPPC, Action.CALL


def _label(start: int, mode: int) -> str:
    """Of a block under one MODE."""
    return f"L{start:x}.{mode:x}"


def _leaves(inst: Inst) -> bool:
    """Whether its code says where the wave goes on, or that it does not."""
    row = meaning(inst.op)
    return isinstance(row, Branch) or row in _ENDINGS or traps(inst) or interrupts(inst)


class Translator(WaveCode):
    """Mutable: writes one host function."""

    def __init__(self, name: str, blocks: list[CodeBlock], live: dict[int, int], mode_at: dict[int, tuple[int, ...]],
                 restores: bool, skips: bool, settings: Settings, style: Style) -> None:
        """``live``: :func:`live_rows`, and ``mode_at``: :func:`modes`, of the whole function; ``restores``: it writes
        MODE from a register, so that the value is known when it runs only; ``skips``: it has S_SETVSKIP.
        """
        super().__init__(settings, CodeNumbers(), live, style)
        self.name = name
        self.blocks = blocks
        self.access = AccessCode(self)
        self.next_pc = 0
        self._starts = {block.start for block in blocks}
        self._modes = mode_at
        self._restores = restores
        self._skips = skips
        self.even = style is Style.EVEN_LOOPS
        self._called_with = next_wave.FIRST_WAVE if self.even else "%wave"

    def translate(self) -> str:
        """The function's text; Unsupported if any instruction of it is."""
        emitter = self.emitter
        emitter.place("entry")
        self._entry()
        for block in self.blocks:
            for mode in self._modes[block.start]:
                emitter.place(_label(block.start, mode))
                self.scalars.forget()
                self.set_mode(mode)
                self._block(block)
        emitter.place("fault")
        self._return(Status.FAULT)
        if self.even:
            next_wave.hand_on(emitter)
        emitter.define(f"i32 @{self.name}(ptr noalias {self._called_with})")
        return "".join(f"@{name} = external global i8\n" for name in (FIRST_COUNTER, FIRST_SITE)) + emitter.module()

    def _entry(self) -> None:
        emitter = self.emitter
        emitter.emit(f"%worker = load ptr, ptr {self.at(self._called_with, WAVE['worker'])}")
        for name in ("code_base", "shared_base", "private_base"):
            emitter.emit(f"%{name} = load i64, ptr {self.at('%worker', WORKER[name])}")
        for name, first, size in (("counters", FIRST_COUNTER, 8), ("sites", FIRST_SITE, SITE_BYTES)):
            every = emitter.let(f"load ptr, ptr {self.at('%worker', WORKER[name])}")
            emitter.emit(f"%{name} = getelementptr [{size} x i8], ptr {every}, i64 {number_of(first)}")
        for base, limit, name in ((_SHARED_BASE, _SHARED_LIMIT, "shared"), (_PRIVATE_BASE, _PRIVATE_LIMIT, "private")):
            self.apertures[base] = self.ops.value(U64, f"%{name}_base")
            self.apertures[limit] = self.apertures[base] + (_APERTURE_BYTES - 1)
        if self.settings.target.scratch_base_sources:
            self.apertures |= dict.fromkeys(SCRATCH_BASE, self.apertures[_PRIVATE_BASE])
        next_wave.enter(emitter, self.even, {block.start: self._entrance(block.start) for block in self.blocks})
        emitter.place("nowhere")
        emitter.emit(f"store i64 {Fault.JUMP}, ptr {self.field('fault_kind')}")
        emitter.emit("br label %fault")
        for block in self.blocks:
            if self._entrance(block.start) == f"M{block.start:x}":
                self._choose(block.start)

    def _entrance(self, start: int) -> str:
        """Where a block is entered when MODE is known when the wave runs only."""
        known = self._modes[start]
        return f"M{start:x}" if self._restores or len(known) > 1 else _label(start, known[0])

    def _choose(self, start: int) -> None:
        """The code for the MODE that the wave has."""
        emitter, known = self.emitter, self._modes[start]
        emitter.place(f"M{start:x}")
        mode = emitter.let(f"load i32, ptr {self.scalars.address(MODE)}")
        cases = " ".join(f"i32 {value}, label %{_label(start, value)}" for value in known)
        emitter.emit(f"switch i32 {mode}, label %M{start:x}.unknown [ {cases} ]")
        emitter.place(f"M{start:x}.unknown")
        self._wrong_mode(start, emitter.let(f"zext i32 {mode} to i64"))

    def _wrong_mode(self, pc: int, mode: str) -> None:
        self.emitter.emit(f"store i64 {self._absolute(pc).ref}, ptr {self.field('pc')}")
        self.emitter.emit(f"store i64 {mode}, ptr {self.field('fault_address')}")
        self.emitter.emit(f"store i64 {Fault.MODE}, ptr {self.field('fault_kind')}")
        self.emitter.emit("br label %fault")

    # Blocks

    def _block(self, block: CodeBlock) -> None:
        self._count(CounterKind.WAVES, tuple(pc for pc, _ in block.insts), self.ops.constant(U64, 1))
        stretch: list[int] = []
        if self.cycles is not None:
            self.cycles.begin()
        for left, (pc, inst) in zip(range(len(block.insts) - 1, -1, -1), block.insts, strict=True):
            self.left = left
            if not stretch:
                stretch_exec = self.exec()
            stretch.append(pc)
            self.pc, self.next_pc = pc, pc + inst.size_bytes
            if inst.writes.sgpr >> EXEC & 3 or pc == block.insts[-1][0]:
                active = self.ops.intrinsic(f"llvm.ctpop.i{self.wave_size}", stretch_exec.type, [stretch_exec])
                self._count(CounterKind.LANES, tuple(stretch), active.to(U64))
                self._count(CounterKind.ACTIVE_WAVES, tuple(stretch), stretch_exec.ne(0).to(U64))
                stretch = []
            if self.cycles is not None:
                self.cycles.before(inst, not left and _leaves(inst))
            if self._skips and inst.op.flags & _SKIPPED:
                self._unless_skipped(inst)
            else:
                self._instruction(inst)
            if self.cycles is not None and not _leaves(inst):
                self.cycles.after()
        if self.index is not None:
            raise Unsupported("a region of indexed registers that ends in another block", Location(None, self.pc))
        last = block.insts[-1][1]
        if self.cycles is not None and not _leaves(last):
            self.cycles.end()
        if sets_from_register(last) and block.end in self._starts:
            self.finish_state()
            self.emitter.emit(f"br label %M{block.end:x}")
        elif not _leaves(last):
            self._goto(block.end)

    def _count(self, what: CounterKind, pcs: tuple[int, ...], amount: Value) -> None:
        number = len(self.numbers.counters)
        self.numbers.counters.append((what, pcs))
        place = self.at("%counters", 8 * number)
        old = self.emitter.let(f"load i64, ptr {place}")
        self.emitter.emit(f"store i64 {self.emitter.let(f'add i64 {old}, {amount.ref}')}, ptr {place}")

    def _goto(self, target: int) -> None:
        """Continue at a block; a backward branch takes from the budget, and any way does where waves give way often."""
        self.finish_state()
        if target not in self._starts:
            self._leave(Status.JUMP, self._absolute(target))
        elif target > self.pc and not self.settings.yields:
            self.emitter.emit(f"br label %{_label(target, self.mode)}")
        else:
            place = self.field("budget")
            left = self.emitter.let(f"add i64 {self.emitter.let(f'load i64, ptr {place}')}, -1")
            self.emitter.emit(f"store i64 {left}, ptr {place}")
            tired = self.emitter.label("tired")
            self.emitter.branch(self.emitter.let(f"icmp slt i64 {left}, 0"), tired, _label(target, self.mode))
            self.emitter.place(tired)
            self._leave(Status.YIELD, self._absolute(target))

    def _absolute(self, pc: int) -> Value:
        """Device address of an address of the object."""
        return self.ops.value(U64, "%code_base") + pc

    def _leave(self, status: Status, pc: Value) -> None:
        """Return; the wave goes on at ``pc``."""
        self.finish_state()
        self.emitter.emit(f"store i64 {pc.ref}, ptr {self.field('pc')}")
        self._return(status)

    def _return(self, status: Status) -> None:
        if self.even and status in next_wave.THROUGH:
            self.emitter.emit(f"br label %{next_wave.THROUGH[status]}")
        else:
            next_wave.leave(self.emitter, status, self.even)

    def _leave_for(self, place: Value) -> None:
        """The same for what a register says, where there may be no code."""
        self.emitter.emit(f"store i64 {self._absolute(self.pc).ref}, ptr {self.field('left_at')}")
        self._leave(Status.JUMP, place)

    def _instruction(self, inst: Inst) -> None:
        row, why = meaning(inst.op), refusal(inst.op, self.settings.target)
        try:
            if why is not None:
                raise Unsupported(f"the emulator refuses {inst.op.mnemonic}: {why.reason}; {why.advice}")
            if self.settings.checks:
                self.access.watch(inst)
            if isinstance(row, Variants):
                row = in_situation(self, inst, row)
            if isinstance(row, Branch):
                self._branch(inst, row)
            elif isinstance(row, Action):
                self._action(inst, row)
            elif row is Switch.SKIP:
                self._set_skipping(inst)
            elif (write := WRITERS.get(type(row))) is not None:
                write(self.access, inst, row)
            else:
                raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")
        except Unsupported as error:
            raise Unsupported(error.message, Location(None, self.pc, inst.op.mnemonic)) from None

    def _unless_skipped(self, inst: Inst) -> None:
        """A vector instruction between states that are whole in memory, since it may run or not."""
        emitter = self.emitter
        self.finish_state()
        runs, passed = emitter.label("runs"), emitter.label("passed")
        skips = emitter.let(f"load i64, ptr {self.field('skips')}")
        emitter.branch(emitter.let(f"icmp eq i64 {skips}, 0"), runs, passed)
        emitter.place(runs)
        self._instruction(inst)
        self.finish_state()
        emitter.emit(f"br label %{passed}")
        emitter.place(passed)
        self.scalars.forget()

    def _must_not_skip(self) -> None:
        """Whatever runs next has no code for it."""
        emitter = self.emitter
        self.finish_state()
        emitter.emit(f"store i64 {self._absolute(self.pc).ref}, ptr {self.field('pc')}")
        emitter.emit(f"store i64 {Fault.SKIPS}, ptr {self.field('fault_kind')}")
        skips = emitter.let(f"load i64, ptr {self.field('skips')}")
        self.access.check(emitter.let(f"icmp eq i64 {skips}, 0"))

    def _set_skipping(self, inst: Inst) -> None:
        source, number = (read_scalar(inst[name], 32, self.context) for name in ("src0", "src1"))
        bit = (source >> (number & 31)) & 1
        self.emitter.emit(f"store i64 {bit.to(U64).ref}, ptr {self.field('skips')}")

    def _branch(self, inst: Inst, row: Branch) -> None:
        target = inst.branch_target(self.pc)
        assert target is not None
        if row.register is None:
            self._goto(target)
            return
        if row.register == "scc":
            nonzero = self.scalars.scc()
        else:
            nonzero = self.scalars.read(EXEC if row.register == "exec" else VCC, self.wave_size // 32).ne(0)
        self.finish_state()
        taken, passed = self.emitter.label("taken"), self.emitter.label("passed")
        self.emitter.branch(str(nonzero.ref), *((passed, taken) if row.if_zero else (taken, passed)))
        self.emitter.place(taken)
        self._goto(target)
        self.emitter.place(passed)
        self._goto(self.next_pc)

    def _action(self, inst: Inst, row: Action) -> None:
        after = self._absolute(self.next_pc)
        if row in _LEAVES and self._skips:
            self._must_not_skip()
        if row in _LEAVES and self.mode != self.settings.mode:
            if not self._restores:
                raise Unsupported("a call or return with MODE changed")
            self.finish_state()
            self._wrong_mode(self.pc, str(self.mode))
        elif row is Action.END:
            self._leave(Status.DONE, after)
        elif row is Action.BARRIER:
            self._leave(Status.BARRIER, after)
        elif row in (Action.BARRIER_SIGNAL, Action.BARRIER_SIGNAL_FIRST):
            self._signal(inst, row is Action.BARRIER_SIGNAL_FIRST)
        elif row is Action.BARRIER_WAIT:
            self._wait(inst)
        elif row is Action.BARRIER_INIT:
            barriers.initialise(self, barriers.barrier_number(inst))
        elif row is Action.BARRIER_JOIN:
            barriers.join(self, barriers.barrier_number(inst))
        elif row is Action.BARRIER_STATE:
            self._write_result(inst, barriers.state(self, barriers.barrier_number(inst)))
        elif row is Action.QUESTION:
            self._write_result(inst, answer(self, inst))
        elif row in (Action.GRID_BARRIER, Action.GRID_TAKE):
            (barriers.meet if row is Action.GRID_BARRIER else barriers.take)(self, inst)
            self._leave(Status.MEETING, after)
        elif row in barriers.OF_SEMAPHORES:
            barriers.change_semaphore(self, inst, row)
        elif row is Action.SLEEP:
            self._leave(Status.YIELD, after)
        elif interrupts(inst):
            self._leave(Status.MESSAGE, after)
        elif row is Action.GETPC:
            self._write_result(inst, after)
        elif row in (Action.SETPC, Action.ADDPC):
            to = read_scalar(inst["src0"], 64, self.context)
            self._leave_for(to if row is Action.SETPC else after + to)
        elif row in (Action.SWAPPC, Action.CALL):
            called = self._absolute(inst.branch_target(self.pc) or 0)
            to = read_scalar(inst["src0"], 64, self.context) if row is Action.SWAPPC else called
            self._write_result(inst, after)
            self._leave_for(to)
        elif row is Action.CLOCK:
            self._write_result(inst, self.clock())
        elif row is Action.WALL_CLOCK:
            self._write_result(inst, wall_clock(self))
        elif row is Action.WAVE_NUMBER:
            self._write_result(inst, wave_number(self))
        elif row in (Action.GETREG, Action.SETREG, Action.SETREG_IMM):
            hardware(self, inst, row)
        elif row in (Action.ROUND_MODE, Action.DENORMAL_MODE):
            set_mode(self, inst)
        elif traps(inst):
            self.emitter.emit(f"store i64 {Fault.TRAP}, ptr {self.field('fault_kind')}")
            self.access.trap()

    def _signal(self, inst: Inst, first: bool) -> None:
        """Barriers of trap handlers (-2) are not a program's: nothing happens there, and nobody was first."""
        number = barriers.barrier_number(inst)
        if number == barriers.GROUPS:
            if first:
                self.scalars.write_scc(barriers.nobody_has_come(self))
            self._leave(Status.SIGNAL, self._absolute(self.next_pc))
            return
        if barriers.is_named(number):
            barriers.signal(self, number, first)
        elif first:
            self.scalars.write_scc(self.ops.constant(BOOL, 0))
        self._goto(self.next_pc)

    def _wait(self, inst: Inst) -> None:
        number = barriers.barrier_number(inst)
        if number == barriers.GROUPS:
            self._leave(Status.WAIT, self._absolute(self.next_pc))
        elif number and barriers.is_named(number):
            barriers.await_joined(self)
            self._leave(Status.MEETING, self._absolute(self.next_pc))
        else:
            self._goto(self.next_pc)

    def _write_result(self, inst: Inst, value: Value) -> None:
        """To the scalar destination, unless it is null."""
        for operand in destinations(inst):
            if operand.reg is not None:
                self.scalars.write(operand.reg.index, value)
