"""A code object in device memory, and the host functions made of its code.

In: a CodeObject. Out: its segments mapped and relocated, its variables' addresses, and a table
from each dword of code to the host function that a wave enters there. Functions are translated
when a launch first needs them, and compiled when a wave first comes there. Invariant: the table only
grows, and an entry never changes.
"""

from __future__ import annotations

import threading

import numpy as np

from luthier_py.emulator.discover import direct_calls, discover
from luthier_py.emulator.engine import compile_function
from luthier_py.emulator.layout import SITE_BYTES
from luthier_py.emulator.memory import Allocation, Memory, write_bytes
from luthier_py.emulator.parts import effort
from luthier_py.emulator.pool import Block
from luthier_py.emulator.translate import HostFunction, Numbers, Settings, translate
from luthier_py.errors import DeviceError, Invalid, Location, LuthierError, Malformed, Unsupported
from luthier_py.isa import instruction_set
from luthier_py.isa.instruction import Inst
from luthier_py.llvm import Effort, HostCode
from luthier_py.loader import CodeObject, RelocationKind, SegmentFlag
from luthier_py.runtime.device import Buffer, KernelHandle

_PAGE = 4096


COUNTERS = SITES = 1 << 20  # of a module; address space, not memory, until they are used


class Tally:
    """Mutable: counters and site caches of one worker, zero whenever nobody uses them."""

    def __init__(self) -> None:
        self._blocks = Block(8 * COUNTERS), Block(SITE_BYTES * SITES)
        self.counters, self.sites = (np.frombuffer(block.memory, dtype=np.uint64) for block in self._blocks)

    def clear(self, numbers: Numbers) -> None:
        self.counters[: len(numbers.counters)] = 0
        self.sites[: len(numbers.sites) * SITE_BYTES // 8] = 0


class Code:
    """Mutable: one module's code as host functions, for one wave size and MODE."""

    def __init__(self, module: EmulatorModule, settings: Settings) -> None:
        self.module = module
        self.settings = settings
        self.numbers = Numbers()
        self.isa = instruction_set(module.object.target, settings.wave_size)
        start = min((r.start for r in module.object.text_ranges), default=0)
        end = max((r.stop for r in module.object.text_ranges), default=0)
        self.start = start
        self._text = {r: module.object.read(r.start, len(r)) for r in module.object.text_ranges}
        self.table = np.zeros((end - start + 3) // 4, dtype=np.uint64)
        self._engines: list[HostCode] = []
        self._lock = threading.Lock()
        self.insts: dict[int, Inst] = {}
        self._idle: list[Tally] = []
        self._translated: dict[int, tuple[HostFunction, Effort]] = {}
        """By the address of each block: what is to be compiled when a wave comes there."""

    def take_tally(self) -> Tally:
        return self._idle.pop() if self._idle else Tally()

    def give_tally(self, tally: Tally) -> None:
        tally.clear(self.numbers)
        self._idle.append(tally)

    def decode(self, pc: int) -> Inst:
        for extent, data in self._text.items():
            if pc in extent and pc % 4 == 0:
                inst = self.isa.decode(data, pc - extent.start)
                self.insts[pc] = inst
                return inst
        raise Malformed(f"0x{pc:x} is not an address of code")

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


class EmulatorModule:
    """A loaded code object."""

    def __init__(self, memory: Memory, code_object: CodeObject) -> None:
        self.memory = memory
        self.object = code_object
        loads = [s for s in code_object.segments if s.load]
        if not loads:
            raise Malformed(f"{code_object.name}: nothing to load")
        size = max(s.end for s in loads)
        self.base = memory.reserve(size, _PAGE)
        self.loaded = True
        self._codes: dict[Settings, Code] = {}
        for segment in loads:
            address = self.base + segment.address
            write_bytes(address, code_object.read(segment.address, segment.file_size))
            if segment.memory_size:
                writable = SegmentFlag.WRITE in segment.flags
                memory.register(Allocation(address, segment.memory_size, f"{code_object.name}", writable))
        self._relocate()

    def _relocate(self) -> None:
        for relocation in self.object.relocations:
            place = self.base + relocation.address
            symbol = relocation.symbol
            if symbol is not None and not symbol.defined:
                raise Unsupported(f"{self.object.name}: undefined symbol {symbol.name}")
            target = (self.base + symbol.address if symbol is not None else 0) + relocation.addend
            if relocation.kind is RelocationKind.RELATIVE64:
                value, width = self.base + relocation.addend, 8
            elif relocation.kind is RelocationKind.ABS64:
                value, width = target, 8
            elif relocation.kind is RelocationKind.REL64:
                value, width = target - place, 8
            elif relocation.kind in (RelocationKind.ABS32, RelocationKind.ABS32_LO):
                value, width = target, 4
            elif relocation.kind is RelocationKind.ABS32_HI:
                value, width = target >> 32, 4
            elif relocation.kind in (RelocationKind.REL32, RelocationKind.REL32_LO):
                value, width = target - place, 4
            elif relocation.kind is RelocationKind.REL32_HI:
                value, width = (target - place) >> 32, 4
            else:
                raise Unsupported(f"{self.object.name}: relocation {relocation.kind.name}")
            write_bytes(place, (value & ((1 << 8 * width) - 1)).to_bytes(width, "little"))

    def kernel(self, name: str) -> KernelHandle:
        self._check()
        return KernelHandle(name, self.object.kernel(name), self)

    def variable(self, name: str) -> Buffer:
        self._check()
        symbol = self.object.symbol(name)
        if symbol is None or not symbol.defined:
            raise Invalid(f"{self.object.name}: no variable {name}")
        return Buffer(self.base + symbol.address, symbol.size)

    def code(self, settings: Settings) -> Code:
        if settings not in self._codes:
            self._codes[settings] = Code(self, settings)
        return self._codes[settings]

    def unload(self) -> None:
        self._check()
        self.memory.free(self.base)
        self.loaded = False
        self._codes.clear()

    def _check(self) -> None:
        if not self.loaded:
            raise DeviceError(f"{self.object.name} was unloaded")
