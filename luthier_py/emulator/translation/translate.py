"""Blocks of GPU code to one host function.

In: basic blocks of a function. Out: the text of LLVM functions ``i32 name(ptr wave)`` that
run a wave from ``wave.pc`` until it has to give way, and return a Status (see also next_wave). Invariant: between
blocks the wave's memory holds the whole state, so any block may be entered from outside.

Counters: one per block counts its executions; two per run of instructions under one EXEC sum
the active lanes, and the executions with any. A host function numbers its own from 0; what comes before them is
known when it is linked, as the addresses of two symbols.
"""

from __future__ import annotations

from collections.abc import Set

from luthier_py.base.errors import Location, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.binary.loader.origins import Origins, number_of_own
from luthier_py.emulator.instructions.control_code import ControlCode, act, block_label, branch
from luthier_py.emulator.instructions.modes import REPLAYS, sets_from_register
from luthier_py.emulator.instructions.operands import read_scalar
from luthier_py.emulator.instructions.shadows import watch
from luthier_py.emulator.instructions.vector_code import in_situation
from luthier_py.emulator.instructions.writers import WRITERS
from luthier_py.emulator.native import next_wave
from luthier_py.emulator.options.settings import (
    FIRST_COUNTER,
    FIRST_SITE,
    CodeNumbers,
    CounterKind,
    Settings,
    Style,
    number_of,
)
from luthier_py.emulator.reading.discover import CodeBlock, interrupts, traps
from luthier_py.emulator.records.layout import SITE_BYTES, WAVE, WORKER, Fault, Status
from luthier_py.isa.encoding.instruction import Inst, OpFlag, Space
from luthier_py.isa.encoding.operands import SCRATCH_BASE
from luthier_py.isa.model.registers import EXEC, MODE
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import U64, Value
from luthier_py.isa.semantics.control import Action, Branch, Switch
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.refusals import refusal

_ENDINGS = (
    Action.END, Action.BARRIER, Action.BARRIER_SIGNAL, Action.BARRIER_SIGNAL_ISFIRST, Action.BARRIER_WAIT,
    Action.GWS_BARRIER, Action.GWS_SEMA_P, Action.SLEEP, Action.SETPC, Action.ADD_PC, Action.SWAPPC, Action.CALL,
)
_SHARED_BASE, _SHARED_LIMIT, _PRIVATE_BASE, _PRIVATE_LIMIT = 235, 236, 237, 238  # operand encodings
_APERTURE_BYTES = 1 << 32
_SKIPPED = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS  # by S_SETVSKIP (Vega ISA, 12.4)
_JUMPS = Action.SETPC, Action.ADD_PC, Action.SWAPPC, Action.CALL


def _leaves(inst: Inst) -> bool:
    """Whether its code says where the wave continues, or that it ends."""
    row = find_meaning(inst.op)
    return isinstance(row, Branch) or row in _ENDINGS or traps(inst) or interrupts(inst)


def _wants_vectors(inst: Inst) -> bool:
    """Whether it has to do with vector registers or private memory, or other code may have."""
    touches = inst.reads.vectors | inst.writes.vectors
    return bool(touches or Space.SCRATCH in inst.op.spaces) or find_meaning(inst.op) in _JUMPS


@dataclass(frozen=True, slots=True)
class WholeFunction:
    """What is known of a function, of which a host function may be a part.

    ``live``: :func:`live_rows`, and ``mode_at``: :func:`modes`; ``restores``: it writes MODE from a register, so that
    the value is known when it runs only; ``skips``: it has S_SETVSKIP; ``without_vectors``: as the function of that
    name.
    """

    live: dict[int, int]
    mode_at: dict[int, tuple[int, ...]]
    restores: bool
    skips: bool
    without_vectors: Set[int]


class Translator(ControlCode):
    """Mutable: writes one host function."""

    def __init__(self, name: str, blocks: list[CodeBlock], whole: WholeFunction, settings: Settings, style: Style,
                 origins: Origins | None = None) -> None:
        super().__init__(settings, CodeNumbers(), whole.live, style, {block.start for block in blocks}, origins)
        self.name = name
        self.blocks = blocks
        self._whole = whole
        self._called_with = next_wave.FIRST_WAVE if self.even else "%wave"

    def translate(self) -> str:
        """The function's text; Unsupported if any instruction of it is."""
        emitter = self.emitter
        emitter.place("entry")
        self._entry()
        for block in self.blocks:
            for mode in self._whole.mode_at[block.start]:
                emitter.place(block_label(block.start, mode))
                self.scalars.forget()
                self.set_mode(mode)
                self._block(block)
        emitter.place("fault")
        self.give_way(Status.FAULT)
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
        known = self._whole.mode_at[start]
        return f"M{start:x}" if self._whole.restores or len(known) > 1 else block_label(start, known[0])

    def _choose(self, start: int) -> None:
        """The code for the MODE that the wave has."""
        emitter, known = self.emitter, self._whole.mode_at[start]
        emitter.place(f"M{start:x}")
        whole = emitter.let(f"load i32, ptr {self.scalars.address(MODE)}")
        mode = emitter.let(f"and i32 {whole}, {~REPLAYS}")
        cases = " ".join(f"i32 {value}, label %{block_label(start, value)}" for value in known)
        emitter.emit(f"switch i32 {mode}, label %M{start:x}.unknown [ {cases} ]")
        emitter.place(f"M{start:x}.unknown")
        self._wrong_mode(start, emitter.let(f"zext i32 {mode} to i64"))

    def _wrong_mode(self, pc: int, mode: str) -> None:
        self.emitter.emit(f"store i64 {self.absolute(pc).ref}, ptr {self.field('pc')}")
        self.emitter.emit(f"store i64 {mode}, ptr {self.field('fault_address')}")
        self.emitter.emit(f"store i64 {Fault.MODE}, ptr {self.field('fault_kind')}")
        self.emitter.emit("br label %fault")

    # Blocks

    def _block(self, block: CodeBlock) -> None:
        self._count(CounterKind.WAVES, tuple(pc for pc, _ in block.insts), self.ops.constant(U64, 1))
        stretch: list[int] = []
        if self.cycles is not None:
            self.cycles.begin()
        own_left = number_of_own(self.origins, (pc for pc, _ in block.insts))
        for left, (pc, inst) in zip(range(len(block.insts) - 1, -1, -1), block.insts, strict=True):
            self.pc, self.next_pc = pc, pc + inst.size_bytes
            own_left -= not self.is_inserted
            self.left = left if self.is_inserted else own_left
            if not stretch:
                stretch_exec = self.exec()
            stretch.append(pc)
            if inst.writes.sgpr >> EXEC & 3 or pc == block.insts[-1][0]:
                active = self.ops.intrinsic(f"llvm.ctpop.i{self.wave_size}", stretch_exec.type, [stretch_exec])
                self._count(CounterKind.LANES, tuple(stretch), active.to(U64))
                self._count(CounterKind.ACTIVE_WAVES, tuple(stretch), stretch_exec.ne(0).to(U64))
                stretch = []
            if self.cycles is not None:
                weights = self.settings.weights
                self.cycles.before(inst, not left and _leaves(inst), 1 if weights is None else weights.at(pc))
            if self._whole.skips and inst.op.flags & _SKIPPED:
                self._unless_skipped(inst)
            else:
                if pc in self._whole.without_vectors and _wants_vectors(inst):
                    self._must_be_zero("released", Fault.RELEASED)
                self._instruction(inst)
            if self.cycles is not None and not _leaves(inst):
                self.cycles.after()
        if self.index is not None:
            raise Unsupported("a region of indexed registers that ends in another block", Location(None, self.pc))
        last = block.insts[-1][1]
        if self.cycles is not None and not _leaves(last):
            self.cycles.end()
        if sets_from_register(last) and block.end in self.starts:
            self.finish_state()
            self.emitter.emit(f"br label %M{block.end:x}")
        elif not _leaves(last):
            self.go_to(block.end)

    def _count(self, what: CounterKind, pcs: tuple[int, ...], amount: Value) -> None:
        number = len(self.numbers.counters)
        self.numbers.counters.append((what, pcs))
        place = self.at("%counters", 8 * number)
        old = self.emitter.let(f"load i64, ptr {place}")
        self.emitter.emit(f"store i64 {self.emitter.let(f'add i64 {old}, {amount.ref}')}, ptr {place}")

    # Instructions

    def _instruction(self, inst: Inst) -> None:
        row, why = find_meaning(inst.op), refusal(inst.op, self.settings.target)
        try:
            if why is not None:
                raise Unsupported(f"the emulator refuses {inst.op.mnemonic}: {why.reason}; {why.advice}")
            if self.settings.checks:
                watch(self.access, inst)
            if isinstance(row, Variants):
                row = in_situation(self, inst, row)
            if isinstance(row, Branch):
                branch(self, inst, row)
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

    def _must_be_zero(self, field: str, fault: Fault) -> None:
        """What runs next has no code for a wave where it is not."""
        emitter = self.emitter
        self.finish_state()
        emitter.emit(f"store i64 {self.absolute(self.pc).ref}, ptr {self.field('pc')}")
        emitter.emit(f"store i64 {fault}, ptr {self.field('fault_kind')}")
        value = emitter.let(f"load i64, ptr {self.field(field)}")
        self.access.check(emitter.let(f"icmp eq i64 {value}, 0"))

    def _set_skipping(self, inst: Inst) -> None:
        source, number = (read_scalar(inst[name], 32, self.context) for name in ("src0", "src1"))
        bit = (source >> (number & 31)) & 1
        self.emitter.emit(f"store i64 {bit.to(U64).ref}, ptr {self.field('skips')}")

    def _action(self, inst: Inst, row: Action) -> None:
        if row in _JUMPS and self._whole.skips:
            self._must_be_zero("skips", Fault.SKIPS)
        if row not in _JUMPS or self.mode == self.settings.mode:
            act(self, inst, row)
        elif self._whole.restores:
            self.finish_state()
            self._wrong_mode(self.pc, str(self.mode))
        else:
            raise Unsupported("a call or return with MODE changed")
