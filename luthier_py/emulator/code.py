"""Host functions made of a text's code.

In: a text. Out: a table from each dword of it to the host function that a wave enters there. Functions are translated
when a launch first needs them, and compiled when a wave first comes there. Invariant: the table only grows, and an
entry never changes.
"""

from __future__ import annotations

import threading

import numpy as np

from luthier_py.emulator.discover import direct_calls, discover
from luthier_py.emulator.engine import compile_function
from luthier_py.emulator.layout import SITE_BYTES
from luthier_py.emulator.parts import effort
from luthier_py.emulator.pool import Pages
from luthier_py.emulator.text import Text
from luthier_py.emulator.translate import HostFunction, translate
from luthier_py.emulator.wave_code import ModuleNumbers, Settings
from luthier_py.errors import Location, LuthierError, Malformed, Unsupported
from luthier_py.isa import instruction_set
from luthier_py.isa.instruction import Inst
from luthier_py.llvm import Effort, HostCode

COUNTERS = SITES = 1 << 20  # of a module; address space, not memory, until they are used


class Tally:
    """Mutable: counters and site caches of one worker, zero whenever nobody uses them."""

    def __init__(self) -> None:
        self._blocks = Pages(8 * COUNTERS), Pages(SITE_BYTES * SITES)
        self.counters, self.sites = (np.frombuffer(block.memory, dtype=np.uint64) for block in self._blocks)

    def clear(self, numbers: ModuleNumbers) -> None:
        self.counters[: len(numbers.counters)] = 0
        self.sites[: len(numbers.sites) * SITE_BYTES // 8] = 0


class HostedCode:
    """Mutable: the code of one text as host functions, for one wave size and MODE."""

    def __init__(self, text: Text, settings: Settings) -> None:
        self.source = text
        self.settings = settings
        self.numbers = ModuleNumbers()
        self.isa = instruction_set(text.target, settings.wave_size)
        self.base = text.base
        self.start = text.extent.start
        self.table = np.zeros((len(text.extent) + 3) // 4, dtype=np.uint64)
        self._engines: list[HostCode] = []
        self._lock = threading.Lock()
        self.insts: dict[int, Inst] = {}
        self._idle: list[Tally] = []
        self._first: Tally | None = None
        self.site_bytes = np.zeros(1, dtype=np.uint64)
        """Of all sites' records; native code reads it."""
        self._translated: dict[int, tuple[HostFunction, Effort]] = {}
        """By the address of each block: what is to be compiled when a wave comes there."""

    def holds(self, address: int) -> bool:
        """Whether the table has a place for a device address."""
        return 0 <= address - self.base - self.start < 4 * len(self.table)

    def take_tally(self) -> Tally:
        return self._idle.pop() if self._idle else Tally()

    def overlaps(self, start: int, size: int) -> bool:
        """Whether any of these device addresses may have its code."""
        first = self.base + self.start
        return first < start + size and start < first + 4 * len(self.table)

    @property
    def first_tally(self) -> Tally:
        """For launches that run one after another; whoever has read it clears it."""
        if self._first is None:
            self._first = self.take_tally()
        return self._first

    def give_tally(self, tally: Tally) -> None:
        tally.clear(self.numbers)
        self._idle.append(tally)

    def decode(self, pc: int) -> Inst:
        data = self.source.at(pc) if pc % 4 == 0 else b""
        if not data:
            raise Malformed(f"0x{pc:x} is not an address of code")
        inst = self.isa.decode(data)
        self.source.used(pc, inst.raw)
        self.insts[pc] = inst
        return inst

    def require(self, pc: int, kernel: str) -> None:
        """Make the table's entry for ``pc``; Unsupported or Malformed if it or what it calls directly cannot be run."""
        with self._lock:
            work = [pc]
            while work:
                entry = work.pop()
                place = (entry - self.start) // 4
                if entry in self._translated or 0 <= place < len(self.table) and self.table[place]:
                    continue
                try:
                    work += self._translate(entry)
                except (Unsupported, Malformed) as error:
                    raise self._located(error, kernel, entry) from error
            if pc in self._translated:
                self._compile(*self._translated[pc])

    def _translate(self, entry: int) -> set[int]:
        """Translate the function at ``entry``; what it calls directly."""
        blocks = discover(self.decode, entry)
        how = effort(blocks)
        for function in translate(blocks, entry, self.settings, self.numbers):
            for block in function.blocks:
                self._translated.setdefault(block.start, (function, how))
        if max(len(self.numbers.counters), len(self.numbers.sites)) > COUNTERS:
            raise Unsupported("more code than the emulator has counters for")
        self.site_bytes[0] = len(self.numbers.sites) * SITE_BYTES
        return direct_calls(blocks)

    def _compile(self, function: HostFunction, how: Effort) -> None:
        engine = compile_function(function.name, function.ir, self.settings.wave_size, how)
        self._engines.append(engine)
        address = engine.address(function.name)
        for block in function.blocks:
            self._translated.pop(block.start, None)
            place = (block.start - self.start) // 4
            if not self.table[place]:
                self.table[place] = address

    def _located(self, error: LuthierError, kernel: str, pc: int) -> LuthierError:
        where = error.where
        at = where.pc if where is not None and where.pc is not None else pc
        return type(error)(error.message, Location(kernel, at, self.text(at)))

    def text(self, pc: int) -> str | None:
        """Assembly text of a decoded instruction."""
        inst = self.insts.get(pc)
        return None if inst is None else self.isa.text(inst, pc)
