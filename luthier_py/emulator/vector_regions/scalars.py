"""Scalar registers within one basic block: SSA values in front of the wave's memory.

In: reads and writes of scalar registers. Out: IR that loads a register when first read and stores
what was written when the block ends. Invariant: between blocks memory holds every register.

A pair is held as one 64-bit value when it was written or read as one, so that masks and
addresses do not go through halves.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.emulator.records.layout import sgpr_offset
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.semantics.algebra import U32, U64, Type, Value

KnownScalar = tuple[dict[int, Value], dict[int, Value], Value | None, set[int]]


class Scalars:
    """Mutable: the registers of the block being written; ``wave`` is the wave's pointer.

    ``settle`` is called before a register in ``pending`` (a bit mask) is touched: vector code that
    produces it has been put off, and has to be written now.
    """

    def __init__(self, emitter: Emitter, wave: str, settle: Callable[[], None]) -> None:
        self.pending = 0
        self._settle = settle
        self.ops = LlvmOps(emitter)
        self._emitter = emitter
        self._wave = wave
        self._words: dict[int, Value] = {}
        self._pairs: dict[int, Value] = {}
        self._scc: Value | None = None
        self._dirty: set[int] = set()

    def read(self, index: int, dwords: int = 1) -> Value:
        """Registers from ``index`` on as one unsigned value."""
        self._touch(index, dwords)
        if dwords == 1:
            return self._word(index)
        if dwords == 2:
            return self._pair(index)
        wide = Type(U32.kind, 32 * dwords)
        value = self.read(index, 1).to(wide)
        for i in range(1, dwords):
            value = value | (self.read(index + i).to(wide) << 32 * i)
        return value

    def write(self, index: int, value: Value) -> None:
        """``value`` has 32 bits for each register."""
        self._touch(index, value.type.bits // 32)
        value = value.as_(value.type.unsigned)
        if value.type.bits == 32:
            for other in (index - 1, index):
                self._split(other)
            self._words[index] = value
            self._dirty.add(index)
        elif value.type.bits == 64:
            for other in (index - 1, index + 1):
                self._split(other)
            self._words.pop(index, None)
            self._words.pop(index + 1, None)
            self._pairs[index] = value
            self._dirty |= {index, index + 1}
        else:
            for i in range(value.type.bits // 32):
                self.write(index + i, (value >> 32 * i).to(U32) if i else value.to(U32))

    def scc(self) -> Value:
        """SCC as a BOOL; loaded when it is first read in the block."""
        if self._scc is None:
            self._scc = self._load(SCC, U32).ne(0)
        return self._scc

    def write_scc(self, value: Value) -> None:
        """Set SCC to a BOOL; :meth:`flush` stores it."""
        self._scc = value
        self._dirty.add(SCC)

    def flush(self) -> None:
        """Store what was written; the values stay known."""
        stored: set[int] = set()
        for index in sorted(self._dirty):
            if index == SCC:
                self._store(SCC, self.scc().to(U32))
            elif index in stored:
                continue
            elif index in self._words:
                self._store(index, self._words[index])
            else:
                first = index if index in self._pairs else index - 1
                self._store(first, self._pairs[first])
                stored |= {first, first + 1}
        self._dirty.clear()

    def forget(self) -> None:
        """Start a block: nothing is known."""
        assert not self._dirty
        self._words.clear()
        self._pairs.clear()
        self._scc = None

    def save(self) -> KnownScalar:
        """What is known here, for ``restore`` after code that may not have run."""
        return dict(self._words), dict(self._pairs), self._scc, set(self._dirty)

    def restore(self, known: KnownScalar) -> None:
        """Go back to what :meth:`save` gave."""
        words, pairs, self._scc, dirty = known
        self._words, self._pairs, self._dirty = dict(words), dict(pairs), set(dirty)

    def address(self, index: int) -> str:
        """Pointer (a name of LLVM) to a scalar register in the wave's memory."""
        return self._emitter.let(f"getelementptr i8, ptr {self._wave}, i64 {sgpr_offset(index)}")

    def _touch(self, index: int, dwords: int) -> None:
        if self.pending >> index & ((1 << dwords) - 1):
            self._settle()

    def _word(self, index: int) -> Value:
        known = self._words.get(index)
        if known is None:
            if index in self._pairs:
                known = self._pairs[index].to(U32)
            elif index - 1 in self._pairs:
                known = (self._pairs[index - 1] >> 32).to(U32)
            else:
                known = self._load(index, U32)
            self._words[index] = known
        return known

    def _pair(self, index: int) -> Value:
        known = self._pairs.get(index)
        if known is None:
            if not self._is_known(index) and not self._is_known(index + 1):
                known = self._load(index, U64)
            else:
                known = self._word(index).to(U64) | (self._word(index + 1).to(U64) << 32)
            if index - 1 not in self._pairs and index + 1 not in self._pairs:
                self._pairs[index] = known
        return known

    def _is_known(self, index: int) -> bool:
        return index in self._words or index in self._pairs or index - 1 in self._pairs

    def _split(self, index: int) -> None:
        """Forget a pair, keeping its halves."""
        if index in self._pairs:
            self._word(index)
            self._word(index + 1)
            del self._pairs[index]

    def _load(self, index: int, type: Type) -> Value:
        return self.ops.let(type, f"load {self.ops.name(type)}, ptr {self.address(index)}, align 4")

    def _store(self, index: int, value: Value) -> None:
        self._emitter.emit(f"store {self.ops.name(value.type)} {value.ref}, ptr {self.address(index)}, align 4")
