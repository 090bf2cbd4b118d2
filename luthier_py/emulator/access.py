"""Memory instructions: addresses from operands, then one call of a support function.

In: an instruction and its row of isa.semantics. Out: IR that makes the addresses, moves the data,
and leaves by %fault when a check fails. Sources: AMD Instinct MI200 ISA, chapters 8 to 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from luthier_py.emulator.buffers import scalar_buffer_load, vector_buffer
from luthier_py.emulator.crosslane import transpose
from luthier_py.emulator.layout import PASSING_ROW, SITE_BYTES, TEMPORARY_ROW, WAVE, ZERO_ROW, row_offset
from luthier_py.emulator.loads import ChunkLoad
from luthier_py.emulator.operands import field, read_scalar, row_of
from luthier_py.emulator.strip import Chunk
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst, Operand, OperandKind, OpFlag
from luthier_py.isa.registers import M0, Reg
from luthier_py.isa.semantics.algebra import F32, U64, Kind, Type, Value
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.lds import LoadToLds, LoadTwo, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarLoad, ScalarStore, Store

if TYPE_CHECKING:
    from luthier_py.emulator.translate import Translator


_DWORDS = {"b32": 1, "b64": 2, "b96": 3, "b128": 4}
MEMORY_ROWS = (Load, Store, Atomic, ScalarLoad, ScalarStore, LoadTwo, StoreTwo, LoadToLds, TransposedLoad)


@dataclass(frozen=True, slots=True)
class Move:
    """One call of a support function: what to do with which rows."""

    operation: str          # load, store or atomic, and the element: "load_b64"
    data: int               # row of the data
    second: int | None = None  # atomics: row of the value compared with
    result: int | None = None  # atomics: row for the old values
    distance: int = 0          # pairs: bytes from the first element to the second


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where: see native for the kinds."""

    kind: str
    base: Value
    row: int
    mask: Value


class Access:
    """Writes the memory instructions of one function."""

    def __init__(self, translator: Translator) -> None:
        self.t = translator

    def access(self, inst: Inst, row: object) -> None:
        if isinstance(row, ScalarLoad | ScalarStore):
            self._scalar(inst, row)
        elif isinstance(row, Load):
            self._load(inst, row)
        elif isinstance(row, Store):
            self._store(inst, row)
        elif isinstance(row, Atomic):
            self._atomic(inst, row)
        elif isinstance(row, LoadToLds):
            self._load_to_lds(inst, row)
        elif isinstance(row, TransposedLoad):
            self._transposed(inst, row)
        elif isinstance(row, LoadTwo):
            target = row_of(register(inst["vdst"]))
            self._two(inst, row, "load", target, target + row.dwords)
        elif isinstance(row, StoreTwo):
            self._two(inst, row, "store", *(row_of(register(inst[name])) for name in ("data0", "data1")))

    # Vector memory

    def _two(self, inst: Inst, row: LoadTwo | StoreTwo, operation: str, first: int, second: int) -> None:
        """Both elements in one call, the one at the lower address first."""
        low, high = (field(inst, name) * row.stride for name in ("offset0", "offset1"))
        if high < low:
            low, high, first, second = high, low, second, first
        self.call(Move(f"{operation}_pb{32 * row.dwords}", first, second, distance=high - low), self._lds(inst, low))

    def _load(self, inst: Inst, row: Load) -> None:
        target = row_of(register(inst.find("vdst") or inst["vdata"]))
        element = f"b{32 * row.dwords}" if row.bits == 32 else f"{'i' if row.signed else 'u'}{row.bits}"
        if not row.half:
            self._vector(inst, Move(f"load_{element}", target), row.dwords * row.bits // 8)
            return
        self._vector(inst, Move(f"load_{element}", TEMPORARY_ROW), row.bits // 8)

        def merge(chunk: Chunk) -> None:
            old, new = chunk.row(target), chunk.row(TEMPORARY_ROW)
            merged = (old & 0xFFFF) | (new << 16) if row.half == "high" else (old & 0xFFFF0000) | (new & 0xFFFF)
            chunk.write_row(target, merged)

        self.t.put_off(merge)

    def _load_to_lds(self, inst: Inst, row: LoadToLds) -> None:
        element, lanes = f"b{32 * row.dwords}", self.t.wave_size
        self._vector(inst, Move(f"load_{element}", PASSING_ROW), 4 * row.dwords)
        self.t.settle()
        places = ", ".join(f"i32 {4 * row.dwords * lane}" for lane in range(lanes))
        addresses = PASSING_ROW + row.dwords
        self.t.emitter.emit(f"store <{lanes} x i32> <{places}>, ptr {self.row_pointer(addresses)}, align 64")
        base = (self.t.scalars.read(M0) & 0x3FFFF).to(U64) + field(inst, "offset")
        self.call(Move(f"store_{element}", PASSING_ROW), Addresses("lds", base, addresses, self.mask()))

    def _transposed(self, inst: Inst, row: TransposedLoad) -> None:
        target = row_of(register(inst["vdst"]))
        self._vector(inst, Move("load_b64", TEMPORARY_ROW), 8)
        self.t.settle()
        transpose(self.t, TEMPORARY_ROW, TEMPORARY_ROW + 2, row.bits)
        for word in range(2):
            def write(chunk: Chunk, word: int = word) -> None:
                chunk.write_row(target + word, chunk.row(TEMPORARY_ROW + 2 + word))

            self.t.put_off(write)

    def _store(self, inst: Inst, row: Store) -> None:
        source = row_of(register(inst.find("vdata") or inst["data0"]))
        if row.half == "high":
            data = source
            self.t.put_off(lambda chunk: chunk.write_row(TEMPORARY_ROW, chunk.row(data) >> 16))
            source = TEMPORARY_ROW
        element = f"b{32 * row.dwords}" if row.bits == 32 else f"b{row.bits}"
        self._vector(inst, Move(f"store_{element}", source), row.dwords * row.bits // 8)

    def _atomic(self, inst: Inst, row: Atomic) -> None:
        data = row_of(register(inst.find("vdata") or inst["data0"]))
        second = inst.find("data1")
        other = row_of(register(second)) if second is not None else data + row.bits // 32
        if row.modify is Modify.COMPARE_SWAP and second is not None:
            data, other = other, data  # DS: the first is compared, the second stored
        target = inst.find("vdst") or inst["vdata"] if OpFlag.ATOMIC_RETURN in inst.op.flags else None
        result = TEMPORARY_ROW if target is None else row_of(register(target))
        operation = f"atomic_{row.modify.name.lower()}_{row.kind}{row.bits}{self._flushes(inst, row)}"
        has_second = row.modify in (Modify.COMPARE_SWAP, Modify.MASK_OR, Modify.WRAP)
        self._vector(inst, Move(operation, data, other if has_second else ZERO_ROW, result), row.bits // 8)

    def _flushes(self, inst: Inst, row: Atomic) -> str:
        """Which denormals LDS flushes: the end of the operation's name."""
        mode = self.t.context.mode
        if inst.op.base.split("_", 1)[0] != "DS" or row.modify is not Modify.ADD or (row.kind, row.bits) != ("f", 32):
            return ""
        return "s" * mode.flushes_sources(F32) + "r" * mode.flushes_results(F32)

    def _vector(self, inst: Inst, move: Move, size: int) -> None:
        """Make the addresses, then move ``size`` bytes for each lane."""
        family = inst.op.base.split("_", 1)[0]
        if family == "BUFFER":
            vector_buffer(self, inst, move, size)
        elif family == "DS":
            self.call(move, self._lds(inst, field(inst, "offset")))
        elif family == "SCRATCH":
            self.call(move, self._scratch(inst))
        else:
            self.call(move, self._global(inst, "flat" if family == "FLAT" else "far"))

    def _lds(self, inst: Inst, offset: int) -> Addresses:
        if field(inst, "gds"):
            raise Unsupported("global data share")
        return Addresses("lds", self.t.ops.constant(U64, offset), row_of(register(inst["addr"])), self.mask())

    def _global(self, inst: Inst, kind: str) -> Addresses:
        base = self.t.ops.constant(U64, field(inst, "offset"))
        saddr = inst.find("saddr")
        if saddr is not None and present(saddr):
            kind, base = "near", read_scalar(saddr, 64, self.t.context) + base
        return Addresses(kind, base, row_of(register(inst["vaddr"])), self.mask())

    def _scratch(self, inst: Inst) -> Addresses:
        base = self.t.ops.constant(U64, field(inst, "offset"))
        vaddr, saddr = inst.find("vaddr"), inst.find("saddr")
        if saddr is not None and present(saddr):
            base = base + read_scalar(saddr, 32, self.t.context).to(U64)
        row = row_of(register(vaddr)) if vaddr is not None and present(vaddr) else ZERO_ROW
        return Addresses("private", base, row, self.mask())

    def mask(self) -> Value:
        return self.t.exec().to(U64)

    def call(self, move: Move, where: Addresses) -> None:
        """For the lanes of EXEC: loads of whole dwords become part of the strip."""
        words = _DWORDS.get(move.operation.removeprefix("load_").removeprefix("p"))
        if move.operation.startswith("load_") and words is not None and where.kind != "private":
            rows = (move.data,) if move.second is None else (move.data, move.second)
            load = ChunkLoad(self.t, where, self.site(), words, rows, move.distance)
            self.t.put_off(load.write)
        else:
            self.support(move, where)

    def support(self, move: Move, where: Addresses) -> None:
        """Call the support function for the lanes of ``where.mask``."""
        self.t.settle()
        arguments = [
            ("ptr", "%wave"), ("i64", str(where.mask.ref)), ("i64", str(where.base.ref)),
            ("ptr", self.row_pointer(where.row)), ("ptr", self.row_pointer(move.data)),
        ]
        second = self.row_pointer(ZERO_ROW if move.second is None else move.second)
        if move.result is not None:
            arguments += [("ptr", second), ("ptr", self.row_pointer(move.result)), ("ptr", self.site())]
        else:
            arguments += [("ptr", self.site()), ("i64", str(move.distance)), ("ptr", second)]
        self.check(self.t.emitter.support("i1", f"{where.kind}_{move.operation}", arguments))

    def row_pointer(self, row: int) -> str:
        return self.t.emitter.let(f"getelementptr i8, ptr %wave, i64 {row_offset(row, self.t.wave_size)}")

    def site(self) -> str:
        """Pointer to a new site for the current instruction."""
        number = len(self.t.numbers.sites)
        self.t.numbers.sites.append(self.t.pc)
        return self.t.emitter.let(f"getelementptr i8, ptr %sites, i64 {number * SITE_BYTES}")

    def check(self, ok: str) -> None:
        """Leave by %fault unless ``ok``."""
        after = self.t.emitter.label("ok")
        self.t.emitter.branch(ok, after, "fault")
        self.t.emitter.place(after)

    def trap(self) -> None:
        """Stop here, with a fault of its own kind (already in the wave)."""
        self.t.finish_state()
        number = len(self.t.numbers.sites)
        self.t.numbers.sites.append(self.t.pc)
        self.t.emitter.emit(f"store i64 {number}, ptr {self.t.field('fault_site')}")
        self.t.emitter.emit("br label %fault")

    def field_value(self, name: str) -> Value:
        """A field of the wave."""
        assert name in WAVE
        return self.t.ops.let(U64, f"load i64, ptr {self.t.field(name)}")

    # Scalar memory

    def _scalar(self, inst: Inst, row: ScalarLoad | ScalarStore) -> None:
        offset = self.t.ops.constant(U64, field(inst, "offset"))
        soffset = inst.find("soffset")
        if soffset is not None and present(soffset):
            offset = offset + read_scalar(soffset, 32, self.t.context).to(U64)
        if isinstance(row, ScalarLoad) and row.buffer:
            scalar_buffer_load(self, inst, offset, row.dwords)
            return
        address = (read_scalar(inst["sbase"], 64, self.t.context) + offset) & ~3
        pointer = self.resolve(address, self.t.ops.constant(U64, 4 * row.dwords), isinstance(row, ScalarStore))
        data = register(inst.find("sdst") or inst["sdata"]).index
        if isinstance(row, ScalarLoad):
            self.load_words(pointer, data, row.dwords)
            return
        for i in range(row.dwords):
            place = self.t.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {4 * i}")
            self.t.emitter.emit(f"store i32 {self.t.scalars.read(data + i).ref}, ptr {place}, align 4")
        self.t.note_change()

    def load_words(self, pointer: str, target: int, dwords: int) -> None:
        """Consecutive memory to consecutive scalar registers, two at a time."""
        step = min(dwords, 2)
        values = []
        for i in range(0, dwords, step):
            place = self.t.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {4 * i}")
            values.append(self.t.ops.let(Type(Kind.UINT, 32 * step), f"load i{32 * step}, ptr {place}, align 4"))
        for i, value in enumerate(values):
            self.t.scalars.write(target + i * step, value)

    def resolve(self, address: Value, size: Value, writes: bool = False) -> str:
        """A checked pointer for an access that all lanes share; searched for if it is not where the last was."""
        emitter = self.t.emitter
        self.t.settle()
        site = self.site()
        base = emitter.let(f"load i64, ptr {site}")
        end = emitter.let(f"load i64, ptr {emitter.let(f'getelementptr i8, ptr {site}, i64 8')}")
        known, search = emitter.label("known"), emitter.label("search")
        emitter.branch(emitter.inside(str(address.ref), str(size.ref), base, end), known, search)
        emitter.place(search)
        arguments = [("ptr", "%wave"), ("i64", str(address.ref)), ("i64", str(size.ref)), ("ptr", site), ("i64", "0"),
                     ("i64", str(int(writes)))]
        found = emitter.support("ptr", "resolve", arguments)
        emitter.branch(emitter.let(f"icmp ne ptr {found}, null"), known, "fault")
        emitter.place(known)
        return emitter.let(f"inttoptr i64 {address.ref} to ptr")


def register(operand: Operand) -> Reg:
    assert operand.reg is not None
    return operand.reg


def present(operand: Operand) -> bool:
    return operand.kind is not OperandKind.ABSENT
