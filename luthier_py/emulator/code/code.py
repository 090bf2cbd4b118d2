"""Host functions made of a text's code.

In: a text. Out: a table from each dword of it to the host function that a wave enters there. A function is translated,
or found among those that were translation_cache, when a wave first comes to it: a library's kernel may call hundreds,
of which a launch needs three. Its parts are compiled in the same way: what is large fast at first, and well once it
runs often. Invariant: the table only grows; an entry changes to better code for the same instructions, with the same
counters, and what it was before stays."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from luthier_py.base.errors import Location, LuthierError, Malformed, Unsupported
from luthier_py.base.llvm import Effort, HostCode
from luthier_py.binary.loader.origins import number_of_own
from luthier_py.emulator.code import translation_cache
from luthier_py.emulator.code.compile_queue import COMPILE_QUEUE
from luthier_py.emulator.code.engine import link_function
from luthier_py.emulator.code.hosted_part import HostedPart, Improvable
from luthier_py.emulator.memory.pool import Pages
from luthier_py.emulator.native.clocks import ExecutedInstructions, InstructionClock
from luthier_py.emulator.options.settings import FIRST_COUNTER, FIRST_SITE, CodeNumbers, CounterKind, Settings
from luthier_py.emulator.reading.known_code import KnownCode
from luthier_py.emulator.reading.text import Text
from luthier_py.emulator.records.layout import SITE_BYTES
from luthier_py.emulator.records.words import zero_words
from luthier_py.emulator.translation.translated import HostPart, Translation
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.target import Target

if TYPE_CHECKING:
    from luthier_py.emulator.translation.host_functions import DividedFunction
    from luthier_py.isa import InstructionSet

COUNTERS = SITES = 1 << 20  # of a module; address space, not memory, until they are used
AHEAD = 2
"""How many of the host functions that follow a requested one are compiled ahead, for each compiler process."""
LOOK_SECONDS = 0.25


class Tally:
    """Mutable: counters and site caches of one worker, zero whenever no worker uses them."""

    def __init__(self, clock: InstructionClock) -> None:
        self._clock = clock
        self._blocks = Pages(8 * COUNTERS), Pages(SITE_BYTES * SITES)
        self.counters = memoryview(self._blocks[0].memory).cast("Q")
        self.places = self._blocks[0].address, self._blocks[1].address
        """Of counters and sites."""

    def snapshot_counters(self, numbers: CodeNumbers) -> memoryview:
        """The counters as they are now."""
        return memoryview(self.counters[: len(numbers.counters)].tobytes()).cast("Q")

    def clear(self, numbers: CodeNumbers) -> None:
        """Zero the counters and site caches that ``numbers`` has; where a wave has read the core's clock, the
        instructions counted are added to the device's first."""
        self._clock.settle(self.counters)
        for place, size in zip(self.places, (8 * len(numbers.counters), SITE_BYTES * len(numbers.sites)), strict=True):
            ctypes.memset(place, 0, size)


class TextCode:
    """Mutable: what was translated of one text. ``executed``: on its device."""

    def __init__(self, text: Text, executed: ExecutedInstructions) -> None:
        self._text, self._executed = text, executed
        self._codes: dict[Settings, HostedCode] = {}

    def code(self, settings: Settings) -> HostedCode:
        """The text's code as host functions for ``settings``, one for each of them; nothing is translated yet."""
        if settings not in self._codes:
            self._codes[settings] = HostedCode(self._text, settings, self._executed)
        return self._codes[settings]

    def forget(self) -> None:
        """The text is gone."""
        self._codes.clear()


class HostedCode:
    """Mutable: the code of one text as host functions, for one wave size and MODE. ``executed``: on its device."""

    def __init__(self, text: Text, settings: Settings, executed: ExecutedInstructions) -> None:
        self.source = text
        self.settings = settings
        self.numbers = CodeNumbers()
        self.clock = InstructionClock(COUNTERS, executed)
        self.base = text.base
        self.start = text.extent.start
        self.entries = (len(text.extent) + 3) // 4
        self._pages = Pages(8 * max(self.entries, 1))
        self.table = memoryview(self._pages.memory).cast("Q")[: self.entries]
        self.table_address = self._pages.address
        self.insts = KnownCode(partial(_decode, text.target, settings.wave_size))
        self._kinds: dict[bytes, Inst] = {}
        """One instruction for all that have the same bytes: what is worked out of it is worked out once."""
        self._engines: list[HostCode] = []
        self._lock = threading.Lock()
        self._idle: list[Tally] = []
        self._first: Tally | None = None
        self.site_bytes = zero_words(1)
        """Of all sites' records; native code reads it."""
        self._used: list[Tally] = []
        self._waiting: dict[int, HostedPart] = {}
        """Host functions that no wave has come to, by the address of each block."""
        self._parts: dict[int, list[HostedPart]] = {}
        """Those of each function that is compiled fast, in the order of addresses."""
        self._divided: dict[int, DividedFunction] = {}
        """Functions of which a part may still be written, by entry."""
        self._improvable = Improvable()
        self.rows_read_first: dict[int, int] = {}
        """Rows that a wave has to find cleared, by the address of each function that was found; see first_reads."""
        self.scalars_named: dict[int, int] = {}
        """In the same way, how many SGPRs a wave needs."""
        self._watched = False

    @property
    def isa(self) -> InstructionSet:
        """Read late: its module takes a while to import, its tables to read, and cached code needs neither."""
        from luthier_py.isa import instruction_set

        return instruction_set(self.source.target, self.settings.wave_size)

    def holds(self, address: int) -> bool:
        """Whether the table has a place for a device address."""
        return 0 <= address - self.base - self.start < 4 * self.entries

    def take_tally(self) -> Tally:
        """A tally for one worker alone, all zero; `give_tally` takes it back."""
        tally = self._idle.pop() if self._idle else Tally(self.clock)
        self._used.append(tally)
        return tally

    def overlaps(self, start: int, size: int) -> bool:
        """Whether any of these device addresses may have its code."""
        first = self.base + self.start
        return first < start + size and start < first + 4 * self.entries

    @property
    def first_tally(self) -> Tally:
        """For launches that run one after another; a reader clears it after reading."""
        if self._first is None:
            self._first = self.take_tally()
        return self._first

    def give_tally(self, tally: Tally) -> None:
        """Take back what `take_tally` gave, when the worker's part of the launch has ended; it is zeroed for the next
        worker."""
        self._used.remove(tally)
        self.clear(tally)
        self._idle.append(tally)

    def clear(self, tally: Tally) -> None:
        """A launch that counted there has ended."""
        if self._improvable.parts:
            with self._lock:
                self._improvable.note(tally.counters)
        tally.clear(self.numbers)

    def decode(self, pc: int) -> Inst:
        """The instruction at ``pc``, an address of the text. Its bytes are noted as used, since they must stay the
        same. Malformed where there is no code, ``pc`` is no multiple of 4, or the bytes are no instruction of the
        target."""
        data = self.source.at(pc) if pc % 4 == 0 else b""
        if not data:
            raise Malformed(f"0x{pc:x} is not an address of code")
        inst = self.isa.decode(data)
        inst = self._kinds.setdefault(inst.raw, inst)
        self.source.note_decoded(pc, inst.raw)
        self.insts.add(pc, inst)
        return inst

    def require(self, pc: int, kernel: str) -> None:
        """Make the table's entry for ``pc``; Unsupported or Malformed if its function cannot be run."""
        with self._lock:
            place = self._place(pc)
            if pc not in self._waiting and not (0 <= place < self.entries and self.table[place]):
                try:
                    self._add(pc)
                except (Unsupported, Malformed) as error:
                    raise self._locate_error(error, kernel, pc) from error
            if pc in self._waiting:
                self._link(self._waiting[pc])

    def _add(self, entry: int) -> None:
        """Find or translate the function at ``entry``."""
        translation, texts = translation_cache.find(self.source, self.settings, entry), dict[str, str]()
        if translation is None:
            from luthier_py.emulator.translation.translating import (
                translate_function,  # imports all meanings, which takes longer than a start
            )

            made = translate_function(self.decode, entry, self.settings, self.source.origins)
            translation, texts = made.translation, made.texts
            if translation.effort is Effort.FAST:
                self._divided[entry] = made.function
            translation_cache.keep(self.source, self.settings, entry, translation)
        else:
            self._reuse(translation)
        self._make_room(translation)
        self.rows_read_first[entry] = translation.rows_read_first
        self.scalars_named[entry] = translation.scalars_named
        hosted = [self._host_part(part, entry, translation, texts.get(part.name)) for part in translation.parts]
        self._waiting.update((start, one) for one in hosted for start in one.starts)
        if translation.effort is Effort.FAST:
            self._parts[entry] = hosted
        self.site_bytes[0] = len(self.numbers.sites) * SITE_BYTES
        self.clock.weigh(*((len(pcs), number_of_own(self.source.origins, pcs)) if what is CounterKind.WAVES else (0, 0)
                           for what, pcs in self.numbers.counters[self.clock.counters :]))

    def _make_room(self, translation: Translation) -> None:
        """Before anything is remembered of what there is no room for."""
        counters = len(self.numbers.counters) + sum(len(part.counters) for part in translation.parts)
        sites = len(self.numbers.sites) + sum(len(part.sites) for part in translation.parts)
        if max(counters, sites) > COUNTERS:
            raise Unsupported(f"a module with more than {COUNTERS} blocks or accesses that run: split it into several")

    def _reuse(self, translation: Translation) -> None:
        pcs = sorted(pc for part in translation.parts for pc in part.pcs)
        for start, data in translation.runs:
            self.source.note_decoded(start, data)
            first, end = (bisect_left(pcs, place) for place in (start, start + len(data)))
            self.insts.add_run(start, data, pcs[first:end])

    def _host_part(self, part: HostPart, entry: int, translation: Translation, ir: str | None) -> HostedPart:
        first = {FIRST_COUNTER: len(self.numbers.counters), FIRST_SITE: len(self.numbers.sites)}
        self.numbers.counters += part.resolve_counters()
        self.numbers.sites += part.site_pcs
        starts = [start for start in part.starts if start not in self._waiting and not self.table[self._place(start)]]
        return HostedPart(part, entry, translation.effort, first, tuple(starts), ir)

    def _place(self, pc: int) -> int:
        """In the table."""
        return (pc - self.start) // 4

    def _text(self, hosted: HostedPart, effort: Effort) -> Callable[[], str]:
        """What gives the LLVM IR that is compiled with ``effort``."""
        if effort is hosted.effort and (ir := hosted.ir) is not None:
            return lambda: ir
        entry = hosted.entry
        if entry not in self._divided:
            from luthier_py.emulator.translation.translating import split_function  # as for _add

            self._divided[entry] = split_function(self._find_inst, entry, self.settings, self.source.origins)
        return partial(self._text_again, hosted.part, entry, effort)

    def _text_again(self, part: HostPart, entry: int, effort: Effort) -> str:
        """The LLVM IR of a part that was translated before: its machine code is lost, or more effort requested."""
        from luthier_py.emulator.translation.translating import make_host_part  # as for _add

        function = self._divided[entry]
        again = function.translate_part(part.name, function.effort)
        if make_host_part(again) != part:
            raise Malformed(f"the cache has a translation of 0x{entry:x} that this translator does not make: remove it")
        if effort is function.effort:
            return again.ir
        better = function.translate_part(part.name, effort)
        assert better.numbers == again.numbers  # both count in the same places
        return better.ir

    def _find_inst(self, pc: int) -> Inst:
        """Whatever memory holds by now."""
        if pc not in self.insts:
            raise Malformed(f"0x{pc:x} was not translated")
        return self.insts[pc]

    def _link(self, hosted: HostedPart) -> None:
        """Make the table's entries of a host function; waves are likely to reach those that follow it next."""
        if hosted.effort is Effort.FAST and COMPILE_QUEUE.places > 1:
            following = self._parts[hosted.entry]
            at = following.index(hosted)
            for one in following[at : at + 1 + AHEAD * COMPILE_QUEUE.places]:
                if self._waits(one) and not one.is_kept:
                    one.begin(self._text(one, Effort.FAST), Effort.FAST)
        code, effort = hosted.code(lambda: self._text(hosted, hosted.effort)())
        self._enter(hosted, code)
        if effort is Effort.FAST:
            self._improvable.add(hosted)
            if not self._watched:
                self._watched = True
                threading.Thread(target=_watch, args=(weakref.ref(self),), name="luthier-watch", daemon=True).start()

    def _waits(self, hosted: HostedPart) -> bool:
        return any(start in self._waiting for start in hosted.starts)

    def _enter(self, hosted: HostedPart, code: bytes) -> None:
        part = hosted.part
        engine = link_function(part.name, code, self.settings.wave_size, hosted.first)
        address = engine.address(part.name)
        self._engines.append(engine)
        for start in hosted.starts:
            self._waiting.pop(start, None)
            self.table[self._place(start)] = address

    def improve(self) -> bool:
        """Have better code made of what runs often; whether there is any that could still be better."""
        with self._lock:
            self._improve()
            self._watched = bool(self._improvable.parts)
        return self._watched

    def _improve(self) -> None:
        for hosted in self._improvable.hot([tally.counters for tally in tuple(self._used)]):
            hosted.begin(self._text(hosted, Effort.GENERATE), Effort.GENERATE)
        for hosted in self._improvable.parts:
            if hosted.job is not None and hosted.job.ended:
                self._improvable.remove(hosted)
                if (code := hosted.take_improved_code()) is not None:
                    self._enter(hosted, code)

    def _locate_error(self, error: LuthierError, kernel: str, pc: int) -> LuthierError:
        where = error.where
        at = where.pc if where is not None and where.pc is not None else pc
        return type(error)(error.message, Location(kernel, at, self.text(at)))

    def text(self, pc: int) -> str | None:
        """Assembly text of a decoded instruction."""
        inst = self.insts.get(pc)
        return None if inst is None else self.isa.text(inst, pc)


def _watch(code: weakref.ref[HostedCode]) -> None:
    """As long as there is such code; a thread of its own."""
    while True:
        time.sleep(LOOK_SECONDS)
        hosted = code()
        if hosted is None or not hosted.improve():
            return
        del hosted


def _decode(target: Target, wave_size: int, data: bytes) -> Inst:
    from luthier_py.isa import instruction_set  # as for HostedCode.isa

    return instruction_set(target, wave_size).decode(data)
