"""One function of GPU code to one host function.

In: the basic blocks of a function. Out: the text of an LLVM function ``i32 name(ptr wave)`` that
runs a wave from ``wave.pc`` until it has to give way, and returns a Status. Invariant: between
blocks the wave's memory holds the whole state, so any block may be entered from outside.

Counters: one per block counts its executions; one per stretch of instructions under one EXEC sums
the active lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from luthier_py.emulator import layout
from luthier_py.emulator.access import Access
from luthier_py.emulator.crosslane import cross_lane, permute
from luthier_py.emulator.discover import CodeBlock
from luthier_py.emulator.dpp import Dpp
from luthier_py.emulator.emitter import Emitter
from luthier_py.emulator.layout import WAVE, WORKER, Fault, Status
from luthier_py.emulator.liveness import live_rows
from luthier_py.emulator.matrix import matrix
from luthier_py.emulator.operands import Context, Result, Source, destinations, read_scalar, row_of, scalar_operands, value_operands
from luthier_py.emulator.scalars import Scalars
from luthier_py.emulator.strip import Chunk, Strip, Write
from luthier_py.errors import Location, Unsupported
from luthier_py.isa.instruction import Inst, OpFlag, OperandKind
from luthier_py.isa.registers import EXEC, M0, MODE, VCC
from luthier_py.isa.semantics import Lanes, Scalar, meaning
from luthier_py.isa.semantics.algebra import BOOL, U32, U64, Kind, Type, Value
from luthier_py.isa.semantics.control import Action, Branch, CrossLane
from luthier_py.isa.semantics.lds import LoadTwo, Permute, StoreTwo
from luthier_py.isa.semantics.matrix import Matrix
from luthier_py.isa.semantics.meaning import Slot
from luthier_py.isa.semantics.memory import Atomic, Load, ScalarLoad, ScalarStore, Store

_MEMORY = (Load, Store, Atomic, ScalarLoad, ScalarStore, LoadTwo, StoreTwo)


@dataclass(slots=True)
class Numbers:
    """Mutable: numbers given out to counters and memory sites of one module."""

    counters: list[tuple[bool, tuple[int, ...]]] = field(default_factory=list)
    """(whether it sums lanes, the instructions it counts)."""
    sites: list[int] = field(default_factory=list)
    """The instruction of each memory site."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the code generated depends on beside the instructions."""

    wave_size: int
    mode: int  # as a kernel starts



class Translator:
    """Mutable: writes one function."""

    def __init__(self, name: str, blocks: list[CodeBlock], settings: Settings, numbers: Numbers) -> None:
        self.name = name
        self.blocks = blocks
        self.settings = settings
        self.numbers = numbers
        self.wave_size = settings.wave_size
        self.emitter = Emitter(self.wave_size)
        self.scalars = Scalars(self.emitter, "%wave", self.settle)
        self.strip = Strip(self.emitter, "%wave", self.wave_size)
        self.ops = self.scalars.ops
        self.mask = Type(Kind.UINT, self.wave_size)
        self.context = Context(self.scalars, self.wave_size, {}, not settings.mode >> 5 & 1, not settings.mode >> 7 & 1)
        self.access = Access(self)
        self.pc = 0
        self.next_pc = 0
        self.starts = {block.start for block in blocks}
        self.live = live_rows(blocks)

    def translate(self) -> str:
        """The function's text; Unsupported if any instruction of it is."""
        emitter = self.emitter
        emitter.place("entry")
        self.context.apertures.update(self._entry())
        for block in self.blocks:
            emitter.place(f"L{block.start:x}")
            self.scalars.forget()
            self._block(block)
        emitter.place("fault")
        emitter.emit(f"ret i32 {Status.FAULT}")
        emitter.define(f"i32 @{self.name}(ptr noalias %wave)")
        return emitter.module()

    def _entry(self) -> dict[int, Value]:
        emitter = self.emitter
        emitter.emit(f"%worker = load ptr, ptr {self.field('worker')}")
        for name in ("counters", "sites", "code_base", "shared_base", "private_base", "clock"):
            kind = "ptr" if name in ("counters", "sites", "clock") else "i64"
            emitter.emit(f"%{name} = load {kind}, ptr {self._at('%worker', WORKER[name])}")
        shared, private = (self.ops.value(U64, f"%{name}_base") for name in ("shared", "private"))
        apertures = {235: shared, 236: shared + 0xFFFFFFFF, 237: private, 238: private + 0xFFFFFFFF}
        pc = emitter.let(f"load i64, ptr {self.field('pc')}")
        relative = emitter.let(f"sub i64 {pc}, %code_base")
        cases = " ".join(f"i64 {block.start}, label %L{block.start:x}" for block in self.blocks)
        emitter.emit(f"switch i64 {relative}, label %nowhere [ {cases} ]")
        emitter.place("nowhere")
        emitter.emit(f"store i64 {Fault.JUMP}, ptr {self.field('fault_kind')}")
        emitter.emit("br label %fault")
        return apertures

    def _at(self, pointer: str, offset: int) -> str:
        return self.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def field(self, name: str) -> str:
        """Pointer to a field of the wave."""
        return self._at("%wave", WAVE[name])

    def settle(self) -> None:
        self.strip.flush(self.scalars)

    def exec(self) -> Value:
        return self.scalars.read(EXEC, self.wave_size // 32)

    def finish_state(self) -> None:
        """Bring the wave's memory up to date."""
        self.settle()
        self.scalars.flush()

    # Blocks

    def _block(self, block: CodeBlock) -> None:
        self._count(False, tuple(pc for pc, _ in block.insts), self.ops.constant(U64, 1))
        stretch: list[int] = []
        for pc, inst in block.insts:
            if not stretch:
                stretch_exec = self.exec()
            stretch.append(pc)
            self.pc, self.next_pc = pc, pc + inst.size_bytes
            last = pc == block.insts[-1][0]
            if inst.writes.sgpr >> EXEC & 3 or last:
                self._count_lanes(stretch, stretch_exec)
                stretch = []
            self._instruction(inst)
        if not self._ends(block.insts[-1][1]):
            self._goto(block.end)

    def _ends(self, inst: Inst) -> bool:
        row = meaning(inst.op)
        ending = (Action.END, Action.BARRIER, Action.SLEEP, Action.SETPC, Action.SWAPPC, Action.CALL, Action.TRAP)
        return isinstance(row, Branch) or row in ending

    def _count(self, lanes: bool, pcs: tuple[int, ...], amount: Value) -> None:
        number = len(self.numbers.counters)
        self.numbers.counters.append((lanes, pcs))
        place = self._at("%counters", 8 * number)
        old = self.emitter.let(f"load i64, ptr {place}")
        self.emitter.emit(f"store i64 {self.emitter.let(f'add i64 {old}, {amount.ref}')}, ptr {place}")

    def _count_lanes(self, pcs: list[int], mask: Value) -> None:
        active = self.ops.intrinsic(f"llvm.ctpop.i{self.wave_size}", self.mask, [mask])
        self._count(True, tuple(pcs), active.to(U64))

    def _goto(self, target: int) -> None:
        """Continue at a block of this function; a backward branch takes from the budget."""
        self.finish_state()
        if target not in self.starts:
            self.leave(Status.JUMP, self.absolute(target))
        elif target > self.pc:
            self.emitter.emit(f"br label %L{target:x}")
        else:
            place = self.field("budget")
            left = self.emitter.let(f"add i64 {self.emitter.let(f'load i64, ptr {place}')}, -1")
            self.emitter.emit(f"store i64 {left}, ptr {place}")
            tired = self.emitter.label("tired")
            self.emitter.branch(self.emitter.let(f"icmp slt i64 {left}, 0"), tired, f"L{target:x}")
            self.emitter.place(tired)
            self.leave(Status.YIELD, self.absolute(target))

    def absolute(self, pc: int) -> Value:
        """Device address of an address of the object."""
        return self.ops.value(U64, "%code_base") + pc

    def leave(self, status: Status, pc: Value) -> None:
        """Return; the wave goes on at ``pc``."""
        self.finish_state()
        self.emitter.emit(f"store i64 {pc.ref}, ptr {self.field('pc')}")
        self.emitter.emit(f"ret i32 {status}")

    # Instructions

    def _instruction(self, inst: Inst) -> None:
        row = meaning(inst.op)
        try:
            if row is None or OpFlag.INDEXES_REGISTERS in inst.op.flags:
                raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")
            if isinstance(row, Lanes):
                self._lanes(inst, row)
            elif isinstance(row, Scalar):
                self._scalar(inst, row)
            elif isinstance(row, Branch):
                self._branch(inst, row)
            elif isinstance(row, Action):
                self._action(inst, row)
            elif isinstance(row, _MEMORY):
                self.access.access(inst, row)
            elif isinstance(row, CrossLane):
                cross_lane(self, inst, row)
            elif isinstance(row, Permute):
                permute(self, inst, row)
            elif isinstance(row, Matrix):
                matrix(self, inst, row)
        except Unsupported as error:
            raise Unsupported(error.message, Location(None, self.pc, inst.op.mnemonic)) from None

    def _lanes(self, inst: Inst, row: Lanes) -> None:
        """Put off a vector instruction."""
        if OpFlag.IGNORES_EXEC in inst.op.flags:
            raise Unsupported(f"{inst.op.mnemonic} ignores EXEC")
        operands = iter(value_operands(inst))
        targets = iter(destinations(inst))
        old = next((d for d in destinations(inst) if d.name == "vdst"), None)
        dpp = self._dpp(inst)
        sources: list[Source | int] = []
        for slot in row.signature.sources:
            operand = None if slot.special else next(operands, None)
            if slot.type is BOOL:
                reg = operand.reg if operand is not None else None
                sources.append(reg.index if reg is not None else VCC)
            else:
                reg = operand.reg if operand is not None else old.reg if old is not None else None
                typed = slot if slot.type.bits else Slot(slot.name, row.signature.results[0].type)
                sources.append(Source(typed, operand, reg, inst, self.context, dpp))
        for mask in [source for source in sources if isinstance(source, int)]:
            if mask not in self.strip.masks:
                self.scalars.read(mask, self.wave_size // 32)
        results: list[Result | int] = []
        for slot in row.signature.results:
            if slot.name == "exec":
                results.append(EXEC)
                continue
            operand = next(targets, None)
            if slot.type is BOOL:
                results.append(operand.reg.index if operand is not None and operand.reg is not None else VCC)
            elif operand is not None:
                results.append(Result(slot, operand, inst, self.context, dpp))
        saturate = row.saturating is not None and any(isinstance(r, Result) and r.clamp for r in results)
        compute = row.saturating if saturate and row.saturating is not None else row.compute
        self._put_off(sources, results, compute, any(slot.count > 1 for slot in row.signature.results))

    def _dpp(self, inst: Inst) -> Dpp | None:
        source = inst.find("src0")
        reg = source.reg if source is not None else None
        return Dpp.of(self, inst, None if reg is None else row_of(reg), 1 if reg is None else reg.dwords)

    def _put_off(self, sources: list[Source | int], results: list[Result | int], compute: object, packed: bool) -> None:
        self.exec()  # may settle the strip, so that masks in it become known
        known = {source: str(self.scalars.read(source, self.wave_size // 32).ref)
                 for source in sources if isinstance(source, int) and source not in self.strip.masks}

        def take(chunk: Chunk, element: int | None) -> list[object]:
            taken: list[object] = []
            for source in sources:
                if isinstance(source, int):
                    taken.append(chunk.lanes_of(known[source]) if source in known else chunk.results[source])
                elif source.count > 1 and element is None:
                    taken.append((source.read(chunk, 0), source.read(chunk, 1)))
                else:
                    taken.append(source.read(chunk, element or 0))
            return taken

        def write(chunk: Chunk) -> None:
            if packed:
                outputs: tuple[object, ...] = ((compute(*take(chunk, 0)), compute(*take(chunk, 1))),)  # type: ignore[operator]
            else:
                output = compute(*take(chunk, None))  # type: ignore[operator]
                outputs = output if isinstance(output, tuple) else (output,)
            for result, output in zip(results, outputs, strict=True):
                if isinstance(result, int):
                    chunk.write_mask(result, output)
                else:
                    result.write(chunk, output if isinstance(output, tuple) else (output,))

        self.put_off(write, *(result for result in results if isinstance(result, int)))

    def put_off(self, write: Write, *masks: int) -> None:
        """Add to the strip; ``write`` gives mask results for the scalar registers ``masks``."""
        self.strip.add(self.exec(), write, masks)
        self.strip.live = self.live[self.pc]
        for index in masks:
            self.scalars.pending |= ((1 << self.wave_size // 32) - 1) << index

    def _scalar(self, inst: Inst, row: Scalar) -> None:
        operands = iter(scalar_operands(inst))
        target = next((o for o in destinations(inst) if o.reg is not None), None)
        width = next((slot.type for slot in (*row.signature.results, *row.signature.sources) if slot.type.bits > 1), U32)
        taken = [self._scalar_source(slot, operands, target, width) for slot in row.signature.sources]
        output = row.compute(*taken)
        outputs = output if isinstance(output, tuple) else (output,)
        for slot, value in zip(row.signature.results, outputs, strict=True):
            if slot.name == "scc":
                self.scalars.write_scc(value)
            elif slot.name == "exec":
                self.scalars.write(EXEC, value)
            elif target is not None and target.reg is not None:
                self.scalars.write(target.reg.index, value)

    def _scalar_source(self, slot: Slot, operands: object, target: object, width: Type) -> Value:
        if slot.name == "scc":
            return self.scalars.scc()
        if slot.name == "exec":
            return self.scalars.read(EXEC, width.bits // 32)
        if slot.name == "m0":
            return self.scalars.read(M0)
        if slot.name == "old":
            return read_scalar(target, width.bits, self.context).as_(width)  # type: ignore[arg-type]
        operand = next(operands)  # type: ignore[call-overload]
        value = read_scalar(operand, max(slot.type.bits, 32), self.context)
        return value.to(slot.type.unsigned).as_(slot.type)

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
        after = self.absolute(self.next_pc)
        target = next((o.reg.index for o in destinations(inst) if o.reg is not None), 0)
        if row is Action.END:
            self.leave(Status.DONE, after)
        elif row is Action.BARRIER:
            self.leave(Status.BARRIER, after)
        elif row is Action.SLEEP:
            self.leave(Status.YIELD, after)
        elif row is Action.GETPC:
            self.scalars.write(target, after)
        elif row is Action.SETPC:
            self.leave(Status.JUMP, read_scalar(inst["src0"], 64, self.context))
        elif row is Action.SWAPPC:
            to = read_scalar(inst["src0"], 64, self.context)
            self.scalars.write(target, after)
            self.leave(Status.JUMP, to)
        elif row is Action.CALL:
            self.scalars.write(target, after)
            self.leave(Status.JUMP, self.absolute(inst.branch_target(self.pc) or 0))
        elif row is Action.CLOCK:
            self.scalars.write(target, self.ops.let(U64, "load i64, ptr %clock"))
        elif row in (Action.GETREG, Action.SETREG, Action.SETREG_IMM):
            self._hardware_register(inst, row, target)
        elif row is Action.TRAP:
            self.emitter.emit(f"store i64 {Fault.TRAP}, ptr {self.field('fault_kind')}")
            self.access.trap()

    def _hardware_register(self, inst: Inst, row: Action, target: int) -> None:
        control = next(o.value for o in inst.operands if o.kind is OperandKind.IMMEDIATE and o.name == "simm16")
        number, offset, size = control & 63, control >> 6 & 31, (control >> 11 & 31) + 1
        if number != 1:
            raise Unsupported(f"hardware register {number}; only MODE (1) is emulated")
        mode = self.scalars.read(MODE)
        mask = (1 << size) - 1
        if row is Action.GETREG:
            self.scalars.write(target, (mode >> offset) & mask)
            return
        raise Unsupported("s_setreg of MODE: the emulator keeps rounding and denormals as the kernel descriptor has them")


__all__ = ["Numbers", "Settings", "Translator", "layout"]
