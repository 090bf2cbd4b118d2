"""Memory instructions: addresses from operands, then one call of a support function.

In: an instruction and its row of isa.semantics. Out: IR that makes the addresses, moves the data,
and leaves by %fault when a check fails. Sources: AMD Instinct MI200 ISA, chapters 8 to 11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.emulator.layout import SITE_BYTES, TEMPORARY_ROW, row_offset
from luthier_py.emulator.operands import field, read_scalar, row_of
from luthier_py.emulator.strip import Chunk
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst, OpFlag, Operand, OperandKind, Space
from luthier_py.isa.registers import M0
from luthier_py.isa.semantics.algebra import U32, U64, Kind, Type, Value
from luthier_py.isa.semantics.lds import LoadTwo, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, ScalarLoad, ScalarStore, Store

if TYPE_CHECKING:
    from luthier_py.emulator.translate import Translator


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
        elif isinstance(row, LoadTwo):
            for i, name in enumerate(("offset0", "offset1")):
                target = row_of(_reg(inst["vdst"])) + i * row.dwords
                self._call("lds_load", f"b{32 * row.dwords}", inst, target, field(inst, name) * row.stride)
        elif isinstance(row, StoreTwo):
            for i, name in enumerate(("offset0", "offset1")):
                source = row_of(_reg(inst[f"data{i}"]))
                self._call("lds_store", f"b{32 * row.dwords}", inst, source, field(inst, name) * row.stride)
        elif isinstance(row, Atomic):
            self._atomic(inst, row)

    # Vector memory

    def _load(self, inst: Inst, row: Load) -> None:
        target = row_of(_reg(inst.find("vdst") or inst["vdata"]))
        element = f"b{32 * row.dwords}" if row.bits == 32 else f"{'i' if row.signed else 'u'}{row.bits}"
        if not row.half:
            self._call(f"{self._space(inst)}_load", element, inst, target, None)
            return
        self._call(f"{self._space(inst)}_load", element, inst, TEMPORARY_ROW, None)

        def merge(chunk: Chunk) -> None:
            old, new = chunk.row(target), chunk.row(TEMPORARY_ROW)
            merged = (old & 0xFFFF) | (new << 16) if row.half == "high" else (old & 0xFFFF0000) | (new & 0xFFFF)
            chunk.write_row(target, merged)

        self.t.strip.add(self.t.exec(), merge)

    def _store(self, inst: Inst, row: Store) -> None:
        source = row_of(_reg(inst.find("vdata") or inst["data0"]))
        element = f"b{32 * row.dwords}" if row.bits == 32 else f"b{row.bits}"
        if row.half == "high":
            self.t.strip.add(self.t.exec(), lambda chunk: chunk.write_row(TEMPORARY_ROW, chunk.row(source) >> 16))
            source = TEMPORARY_ROW
        self._call(f"{self._space(inst)}_store", element, inst, source, None)

    def _atomic(self, inst: Inst, row: Atomic) -> None:
        raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")

    def _space(self, inst: Inst) -> str:
        """Which family of support functions serves the instruction."""
        name = inst.op.base.split("_", 1)[0]
        if name == "GLOBAL":
            return "near" if _present(inst.find("saddr")) else "far"
        if name in ("FLAT", "SCRATCH", "BUFFER"):
            return {"FLAT": "flat", "SCRATCH": "private", "BUFFER": "buffer"}[name]
        if field(inst, "gds"):
            raise Unsupported("global data share")
        return "lds"

    def _call(self, function: str, element: str, inst: Inst, data: int, offset: int | None) -> None:
        """Call a support function; ``offset`` replaces the instruction's offset field."""
        emitter, ops = self.t.emitter, self.t.ops
        offset = field(inst, "offset") if offset is None else offset
        base = ops.constant(U64, offset)
        vaddr = inst.find("vaddr") or inst.find("addr")
        if function.startswith("near"):
            base = read_scalar(inst["saddr"], 64, self.t.context) + offset
        elif function.startswith(("private", "buffer")):
            raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")
        mask = self.t.exec().to(U64)
        self.t._settle()
        assert vaddr is not None
        arguments = [
            ("ptr", "%wave"), ("i64", str(mask.ref)), ("i64", str(base.ref)),
            ("ptr", self.row_pointer(row_of(_reg(vaddr)))), ("ptr", self.row_pointer(data)), ("ptr", self.site()),
        ]
        done = emitter.support("i1", f"{function}_{element}", arguments)
        self.check(done)

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

    def fault_here(self) -> None:
        raise Unsupported("s_trap")

    def clock(self) -> Value:
        return self.t.ops.let(U64, "load i64, ptr %clock")

    # Scalar memory

    def _scalar(self, inst: Inst, row: ScalarLoad | ScalarStore) -> None:
        if isinstance(row, ScalarStore) or row.buffer:
            raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")
        address = read_scalar(inst["sbase"], 64, self.t.context)
        soffset = inst.find("soffset")
        if soffset is not None and _present(soffset):
            address = address + read_scalar(soffset, 32, self.t.context).to(U64)
        address = (address + field(inst, "offset")) & ~3
        self._resolve(address, 4 * row.dwords)
        target = _reg(inst["sdst"]).index
        emitter = self.t.emitter
        pointer = emitter.let(f"inttoptr i64 {address.ref} to ptr")
        step = min(row.dwords, 2)
        values = []
        for i in range(0, row.dwords, step):
            place = emitter.let(f"getelementptr i8, ptr {pointer}, i64 {4 * i}")
            values.append(self.t.ops.let(Type(Kind.UINT, 32 * step), f"load i{32 * step}, ptr {place}, align 4"))
        for i, value in enumerate(values):
            self.t.scalars.write(target + i * step, value)

    def _resolve(self, address: Value, size: int) -> None:
        """Check an access that is the same for all lanes; the search only if it is not where the last was."""
        emitter = self.t.emitter
        self.t._settle()
        site = self.site()
        base = emitter.let(f"load i64, ptr {site}")
        end = emitter.let(f"load i64, ptr {emitter.let(f'getelementptr i8, ptr {site}, i64 8')}")
        last = emitter.let(f"add i64 {address.ref}, {size}")
        above, below = emitter.let(f"icmp uge i64 {address.ref}, {base}"), emitter.let(f"icmp ule i64 {last}, {end}")
        known, search = emitter.label("known"), emitter.label("search")
        emitter.branch(emitter.let(f"and i1 {above}, {below}"), known, search)
        emitter.place(search)
        arguments = [("ptr", "%wave"), ("i64", str(address.ref)), ("i64", str(size)), ("ptr", site), ("i64", "0"), ("i64", "0")]
        found = emitter.support("ptr", "resolve", arguments)
        emitter.branch(emitter.let(f"icmp ne ptr {found}, null"), known, "fault")
        emitter.place(known)


def _reg(operand: Operand):  # type: ignore[no-untyped-def]
    assert operand.reg is not None
    return operand.reg


def _present(operand: Operand | None) -> bool:
    return operand is not None and operand.kind is not OperandKind.ABSENT


__all__ = ["M0", "U32", "Access", "OpFlag", "Space"]
